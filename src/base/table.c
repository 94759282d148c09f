/* SPDX-License-Identifier: MIT
 *
 * Open addressing with linear probing over entry numbers; entries themselves lie in
 * order of first appearance. At most half of the slots are taken.
 */
#include "mo/table.h"
#include "mo/array.h"

#include <string.h>
#include <xxhash.h>

struct entry {
    struct bytes key;
    uint64_t hash;
};

/* The tag keeps most unequal keys apart without a look at their entries. */
struct slot {
    uint32_t number; /* of the entry, plus 1; 0: free */
    uint32_t tag;    /* upper half of its hash */
};

struct table {
    struct arena *arena;
    struct slot *slots;
    uint32_t slot_count; /* a power of two */
    array_of(struct entry) entries;
};

enum { FIRST_SLOTS = 64 };

uint64_t hash_bytes(const void *bytes, size_t size)
{
    return XXH3_64bits(bytes, size);
}

struct table *table_new(struct arena *arena)
{
    struct table *table = arena_new_one(arena, struct table);
    table->arena = arena;
    table->slot_count = FIRST_SLOTS;
    table->slots = arena_new_array(arena, struct slot, FIRST_SLOTS);
    return table;
}

uint32_t table_count(const struct table *table)
{
    return table->entries.count;
}

static uint32_t tag_of(uint64_t hash)
{
    return (uint32_t)(hash >> 32);
}

/* The slot that holds the key, or the empty slot where it belongs. */
static uint32_t find_slot(const struct table *table, const void *key, size_t size,
                          uint64_t hash)
{
    uint32_t mask = table->slot_count - 1;
    uint32_t slot = (uint32_t)hash & mask;
    for (; table->slots[slot].number; slot = (slot + 1) & mask) {
        if (table->slots[slot].tag != tag_of(hash))
            continue;
        const struct entry *entry =
            &table->entries.items[table->slots[slot].number - 1];
        if (entry->hash == hash && entry->key.size == size &&
            (size == 0 || memcmp(entry->key.at, key, size) == 0))
            break;
    }
    return slot;
}

static void grow(struct table *table)
{
    table->slot_count *= 2;
    table->slots = arena_new_array(table->arena, struct slot, table->slot_count);
    uint32_t mask = table->slot_count - 1;
    for (uint32_t i = 0; i < table->entries.count; i++) {
        uint64_t hash = table->entries.items[i].hash;
        uint32_t slot = (uint32_t)hash & mask;
        while (table->slots[slot].number)
            slot = (slot + 1) & mask;
        table->slots[slot] = (struct slot){i + 1, tag_of(hash)};
    }
}

uint32_t table_intern(struct table *table, const void *key, size_t size)
{
    uint64_t hash = hash_bytes(key, size);
    uint32_t slot = find_slot(table, key, size, hash);
    if (table->slots[slot].number)
        return table->slots[slot].number - 1;
    struct entry entry = {
        {arena_copy(table->arena, key, size), size},
        hash
    };
    array_push(table->arena, &table->entries, entry);
    uint32_t number = table->entries.count - 1;
    table->slots[slot] = (struct slot){number + 1, tag_of(hash)};
    if (table->entries.count * 2 > table->slot_count)
        grow(table);
    return number;
}

uint32_t table_intern_string(struct table *table, const char *text)
{
    return table_intern(table, text, strlen(text));
}

uint32_t table_find(const struct table *table, const void *key, size_t size)
{
    uint32_t slot = find_slot(table, key, size, hash_bytes(key, size));
    uint32_t number = table->slots[slot].number;
    return number ? number - 1 : NO_INDEX;
}

uint32_t table_find_string(const struct table *table, const char *text)
{
    return table_find(table, text, strlen(text));
}

struct bytes table_key(const struct table *table, uint32_t number)
{
    return table->entries.items[number].key;
}
