/* SPDX-License-Identifier: MIT
 *
 * Memory by lifetime. An arena hands out zeroed memory that lives until the arena is
 * freed; nothing is freed alone. The variable's name says the lifetime: `session` lives as
 * long as the run, `stage` until the stage that made it returns.
 *
 * Out of memory prints one line and exits with status 1: no caller can do better.
 */
#ifndef MO_ARENA_H
#define MO_ARENA_H

#include "mo/base.h"

struct arena;

struct arena *arena_new(void);
void arena_free(struct arena *arena); /* NULL is allowed */

/* Memory of arenas that are gone waits for new ones. Gives it back to the system, which
 * may need it for files that are written now: it has pages in hand then, and need not
 * look for others. */
void arena_release(void);

/* Whatever lives in `other` lives as long as the arena from now on; `other` is gone. */
void arena_adopt(struct arena *arena, struct arena *other);

/* Zeroed memory aligned for any type; never NULL, also for size 0. */
void *arena_alloc(struct arena *arena, size_t size);
void *arena_alloc_array(struct arena *arena, size_t count, size_t size);

/* Memory with the old contents in its first bytes, and anything behind them: in the old
 * place, or a copy. The old size is what was asked for, and may be 0. */
void *arena_grow(struct arena *arena, const void *memory, size_t old_size, size_t size);

/* Copies that live in the arena. */
void *arena_copy(struct arena *arena, const void *bytes, size_t size);
char *arena_strdup(struct arena *arena, const char *text);
char *arena_format(struct arena *arena, const char *format, ...) MO_PRINTF(2, 3);

/* Bytes handed out so far (for the benchmarks' bytes-per-token figures). */
uint64_t arena_used(const struct arena *arena);

#define arena_new_array(arena, type, count) \
    ((type *)arena_alloc_array((arena), (count), sizeof(type)))
#define arena_new_one(arena, type) ((type *)arena_alloc((arena), sizeof(type)))

#endif
