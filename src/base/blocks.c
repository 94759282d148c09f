/* SPDX-License-Identifier: MIT
 *
 * The only data of the library that change, as those of malloc() do: what waits here is
 * nobody's.
 *
 * Blocks are cut from pools, as so many units side by side, each from the first place
 * that has room. So what came back is handed out again before memory that nobody has
 * touched yet, whatever the sizes, and a run needs no more than what lives at one time.
 * A unit knows whether it was ever written to: the others need no zeros.
 *
 * Pools lie on large pages, where the system has some: a page of 4 KB costs as much to
 * get as a thousand instructions cost to decode. The first pool does not: a run over a
 * small object needs less than one large page.
 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, madvise() */

#include "blocks.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define UNIT       ((size_t)64 * 1024)
#define LARGE_PAGE ((size_t)2 * 1024 * 1024)

enum { FIRST_POOL = 96, POOL = 1024 }; /* units; larger for a block that needs more */

struct pool {
    struct pool *next;
    uint8_t *memory;
    uint32_t units;
    uint32_t first_free; /* no unit before it is free */
    uint32_t *taken;     /* by unit: units of the block that begins there; 0: free */
    bool *written;       /* by unit */
};

static struct pool *pools;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* On a boundary of large pages: the rest is given back. */
static uint8_t *map_aligned(size_t size)
{
    uint8_t *memory = mmap(NULL, size + LARGE_PAGE, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    size_t before = -(uintptr_t)memory & (LARGE_PAGE - 1);
    if (before)
        munmap(memory, before);
    munmap(memory + before + size, LARGE_PAGE - before);
    return memory + before;
}

static struct pool *new_pool(uint32_t units)
{
    struct pool *pool = calloc(1, sizeof *pool);
    uint32_t *taken = calloc(units, sizeof *taken);
    bool *written = calloc(units, sizeof *written);
    uint8_t *memory = pool && taken && written ? map_aligned(units * UNIT) : NULL;
    if (!memory) {
        free(pool);
        free(taken);
        free(written);
        return NULL;
    }
    *pool = (struct pool){NULL, memory, units, 0, taken, written};
    return pool;
}

/* Behind the others, so that these are filled first. */
static struct pool *add_pool(uint32_t units)
{
    uint32_t usual = pools ? POOL : FIRST_POOL;
    struct pool *pool = units < usual ? new_pool(usual) : NULL;
    if (!pool) /* a large one, or memory is short */
        pool = new_pool(units);
    if (pool && pools)
        madvise(pool->memory, pool->units * UNIT, MADV_HUGEPAGE); /* no promise */
    struct pool **end = &pools;
    while (*end)
        end = &(*end)->next;
    *end = pool;
    return pool;
}

/* The first of so many free units side by side, or NO_INDEX. */
static uint32_t find_room(struct pool *pool, uint32_t units)
{
    while (pool->first_free < pool->units && pool->taken[pool->first_free])
        pool->first_free += pool->taken[pool->first_free];
    uint32_t start = pool->first_free;
    for (uint32_t at = start; pool->units - start >= units;) {
        if (at - start == units)
            return start;
        if (pool->taken[at])
            start = at = at + pool->taken[at];
        else
            at++;
    }
    return NO_INDEX;
}

static struct block *cut_block(struct pool *pool, uint32_t start, uint32_t units)
{
    pool->taken[start] = units;
    uint32_t dirty = units;
    while (dirty > 0 && !pool->written[start + dirty - 1])
        dirty--;
    struct block *block = (struct block *)(pool->memory + start * UNIT);
    *block = (struct block){
        .size = units * UNIT, .dirty = dirty * UNIT, .pool = pool, .start = start};
    return block;
}

static struct block *take_units(uint32_t units)
{
    for (struct pool *pool = pools; pool; pool = pool->next) {
        uint32_t start = find_room(pool, units);
        if (start != NO_INDEX)
            return cut_block(pool, start, units);
    }
    struct pool *pool = add_pool(units);
    return pool ? cut_block(pool, 0, units) : NULL;
}

struct block *blocks_take(size_t size)
{
    if (BLOCKS_ONE_EACH) {
        struct block *block = calloc(1, size);
        if (block)
            block->size = size;
        return block;
    }
    size_t units = size / UNIT + (size % UNIT != 0);
    if (units >= NO_INDEX)
        return NULL;
    pthread_mutex_lock(&lock);
    struct block *block = take_units((uint32_t)units);
    pthread_mutex_unlock(&lock);
    return block;
}

static void give_back(const struct block *block)
{
    struct pool *pool = block->pool;
    uint32_t start = block->start;
    for (uint32_t i = 0; i * UNIT < block->used; i++)
        pool->written[start + i] = true;
    pool->taken[start] = 0;
    pool->first_free = start < pool->first_free ? start : pool->first_free;
}

void blocks_give(struct block *list)
{
    if (!BLOCKS_ONE_EACH)
        pthread_mutex_lock(&lock);
    for (struct block *block = list, *next; block; block = next) {
        next = block->next;
        if (BLOCKS_ONE_EACH)
            free(block);
        else
            give_back(block);
    }
    if (!BLOCKS_ONE_EACH)
        pthread_mutex_unlock(&lock);
}

/* The free units from `start` on, all side by side. */
static uint32_t free_run(const struct pool *pool, uint32_t start)
{
    uint32_t end = start;
    while (end < pool->units && pool->taken[end] == 0)
        end++;
    return end - start;
}

/* Only whole large pages: to take one apart is dear. */
static void release_run(struct pool *pool, uint32_t start, uint32_t count)
{
    const uint32_t page = LARGE_PAGE / UNIT;
    uint32_t first = (start + page - 1) / page * page,
             end = (start + count) / page * page;
    if (first >= end ||
        madvise(pool->memory + first * UNIT, (end - first) * UNIT, MADV_DONTNEED) != 0)
        return;
    memset(&pool->written[first], 0, (end - first) * sizeof *pool->written);
}

void blocks_release(void)
{
    pthread_mutex_lock(&lock);
    for (struct pool *pool = pools; pool; pool = pool->next) {
        for (uint32_t at = 0; at < pool->units;) {
            uint32_t run = free_run(pool, at);
            if (run > 0)
                release_run(pool, at, run);
            at += run > 0 ? run : pool->taken[at];
        }
    }
    pthread_mutex_unlock(&lock);
}
