/* SPDX-License-Identifier: MIT
 *
 * The only data of the library that change, as those of malloc() do: what waits here is
 * nobody's.
 *
 * Blocks come in powers of two. Those that came back wait, by size, for whoever needs
 * one next. Large ones come from the system on large pages, where it has some: a page
 * of 4 KB costs as much to get as a thousand instructions cost to decode.
 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, madvise() */

#include "blocks.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

/* A large page has 2 to the 21st bytes; blocks of fewer than four of them would waste too
 * much of the last one. A block that waits serves requests down to a 16th of it. */
enum { CLASSES = 64, PAGE_CLASS = 21, LARGE_CLASS = 23, LARGER = 4 };

static struct block *waiting[CLASSES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The binary logarithm of the least power of two that is no less. */
static uint32_t class_of(size_t size)
{
    return size < 2 ? 1 : 64 - (uint32_t)__builtin_clzl(size - 1);
}

/* On a boundary of large pages: the rest is given back. */
static void *map_aligned(size_t size)
{
    size_t page = (size_t)1 << PAGE_CLASS;
    uint8_t *memory = mmap(NULL, size + page, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    size_t before = -(uintptr_t)memory & (page - 1);
    if (before)
        munmap(memory, before);
    munmap(memory + before + size, page - before);
    madvise(memory + before, size, MADV_HUGEPAGE); /* or not: it is no promise */
    return memory + before;
}

static struct block *new_block(size_t size)
{
    if (BLOCKS_ONE_EACH || size < (size_t)1 << LARGE_CLASS)
        return calloc(1, size);
    return map_aligned(size);
}

struct block *blocks_take(size_t size)
{
    uint32_t class = class_of(size);
    if (!BLOCKS_ONE_EACH)
        size = (size_t)1 << class;
    pthread_mutex_lock(&lock);
    uint32_t from = class;
    while (from + 1 < CLASSES && from < class + LARGER && !waiting[from])
        from++;
    struct block *block = waiting[from];
    if (block)
        waiting[from] = block->next;
    pthread_mutex_unlock(&lock);
    if (!block && (block = new_block(size)) != NULL)
        block->size = size;
    return block;
}

void blocks_give(struct block *list)
{
    for (struct block *block = list, *next; block; block = next) {
        next = block->next;
        if (BLOCKS_ONE_EACH) {
            free(block);
            continue;
        }
        block->dirty = block->dirty > block->used ? block->dirty : block->used;
        uint32_t class = class_of(block->size);
        pthread_mutex_lock(&lock);
        block->next = waiting[class];
        waiting[class] = block;
        pthread_mutex_unlock(&lock);
    }
}
