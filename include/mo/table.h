/* SPDX-License-Identifier: MIT
 *
 * Interning: equal byte strings get the same small number. Numbers are dense and given in
 * the order of first appearance, so they depend on the input alone, never on addresses or
 * hash seeds: that is what makes our output reproducible.
 */
#ifndef MO_TABLE_H
#define MO_TABLE_H

#include "mo/arena.h"

struct table;

struct table *table_new(struct arena *arena);
uint32_t table_count(const struct table *table);

/* The number of this key, new or old. The key is copied. */
uint32_t table_intern(struct table *table, const void *key, size_t size);
uint32_t table_intern_string(struct table *table, const char *text);

/* NO_INDEX when the key was never interned. */
uint32_t table_find(const struct table *table, const void *key, size_t size);
uint32_t table_find_string(const struct table *table, const char *text);

/* The key of a number; lives as long as the arena. */
struct bytes table_key(const struct table *table, uint32_t number);

/* XXH3 64-bit, for names made from content. */
uint64_t hash_bytes(const void *bytes, size_t size);

#endif
