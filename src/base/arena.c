/* SPDX-License-Identifier: MIT
 *
 * Memory comes in blocks. Blocks that an arena gives back wait for the next arena
 * (blocks.c), since new pages cost more than what is done with them: a run makes and
 * frees the same hundred MB in every round. What was used of a block is known, and
 * zeroed when it is handed out again, just before it is written to.
 */
#include "mo/arena.h"
#include "mo/array.h"
#include "blocks.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BLOCK = 64 * 1024, LARGEST_BLOCK = 16 * 1024 * 1024, ALIGNMENT = 16 };

struct arena {
    struct block *blocks; /* the first one has the room */
    size_t next_size;
    uint64_t handed_out;
};

static void *must(void *memory)
{
    if (!memory) {
        fputs("mo-link: error: out of memory\n", stderr);
        exit(1);
    }
    return memory;
}

static size_t rounded(size_t size)
{
    return (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
}

#define HEADER rounded(sizeof(struct block))

struct arena *arena_new(void)
{
    struct arena *arena = must(calloc(1, sizeof *arena));
    arena->next_size = FIRST_BLOCK;
    return arena;
}

void arena_free(struct arena *arena)
{
    if (!arena)
        return;
    blocks_give(arena->blocks);
    free(arena);
}

/* The first block stays the one with the room. */
void arena_adopt(struct arena *arena, struct arena *other)
{
    struct block **end = &arena->blocks;
    while (*end)
        end = &(*end)->next;
    *end = other->blocks;
    arena->handed_out += other->handed_out;
    free(other);
}

static struct block *add_block(struct arena *arena, size_t size)
{
    struct block *block = must(blocks_take(size));
    /* A block made for one large request goes behind the one that still has room. */
    if (arena->blocks && arena->blocks->size - arena->blocks->used > FIRST_BLOCK / 4 &&
        size > arena->next_size) {
        block->next = arena->blocks->next;
        arena->blocks->next = block;
    } else {
        block->next = arena->blocks;
        arena->blocks = block;
    }
    block->used = HEADER;
    return block;
}

/* Memory with anything in its first *dirty bytes, and zeros behind them. */
static void *take(struct arena *arena, size_t size, size_t *dirty)
{
    if (size > SIZE_MAX / 2)
        must(NULL);
    size_t need = BLOCKS_ONE_EACH ? size : rounded(size ? size : 1);
    struct block *block = arena->blocks;
    if (BLOCKS_ONE_EACH || !block || block->size - block->used < need) {
        bool large = BLOCKS_ONE_EACH || HEADER + need > arena->next_size;
        block = add_block(arena, large ? HEADER + need : arena->next_size);
        if (arena->next_size < LARGEST_BLOCK)
            arena->next_size *= 2;
    }
    void *memory = (uint8_t *)block + block->used;
    size_t old = block->dirty > block->used ? block->dirty - block->used : 0;
    *dirty = old < need ? old : need;
    block->used += need;
    arena->handed_out += need;
    return memory;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    size_t dirty;
    void *memory = take(arena, size, &dirty);
    if (dirty)
        memset(memory, 0, dirty);
    return memory;
}

void *arena_alloc_array(struct arena *arena, size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total))
        must(NULL);
    return arena_alloc(arena, total);
}

void *arena_copy(struct arena *arena, const void *bytes, size_t size)
{
    size_t dirty;
    void *copy = take(arena, size, &dirty);
    if (size)
        memcpy(copy, bytes, size);
    return copy;
}

char *arena_strdup(struct arena *arena, const char *text)
{
    return arena_copy(arena, text, strlen(text) + 1);
}

char *arena_format(struct arena *arena, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = arena_alloc(arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

uint64_t arena_used(const struct arena *arena)
{
    return arena->handed_out;
}

/* What was handed out last ends where its block's room begins, and takes more of that. */
static bool grow_in_place(struct arena *arena, const uint8_t *memory, size_t old_size,
                          size_t size)
{
    struct block *block = arena->blocks;
    if (BLOCKS_ONE_EACH || !memory || !old_size || !block ||
        memory + rounded(old_size) != (uint8_t *)block + block->used)
        return false;
    size_t more = rounded(size) - rounded(old_size);
    if (block->size - block->used < more)
        return false;
    block->used += more;
    arena->handed_out += more;
    return true;
}

void *arena_grow(struct arena *arena, const void *memory, size_t old_size, size_t size)
{
    if (size < old_size || size > SIZE_MAX / 2)
        must(NULL);
    if (grow_in_place(arena, memory, old_size, size))
        return (void *)(uintptr_t)memory;
    size_t dirty;
    void *copy = take(arena, size, &dirty);
    if (old_size)
        memcpy(copy, memory, old_size);
    return copy;
}

void *array_grow(struct arena *arena, const void *items, uint32_t *capacity, size_t size)
{
    uint32_t wanted = *capacity ? *capacity * 2 : 8;
    size_t total = 0;
    if (wanted <= *capacity || __builtin_mul_overflow(wanted, size, &total))
        must(NULL);
    void *grown = arena_grow(arena, items, *capacity * size, total);
    *capacity = wanted;
    return grown;
}

void *array_room(struct arena *arena, uint32_t wanted, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(wanted, size, &total))
        must(NULL);
    return arena_grow(arena, NULL, 0, total);
}

void arena_release(void)
{
    blocks_release();
}
