/* SPDX-License-Identifier: MIT
 *
 * Private to arena.c: the blocks that arenas are made of, and what becomes of those that
 * nobody needs any more.
 */
#ifndef MO_BASE_BLOCKS_H
#define MO_BASE_BLOCKS_H

#include "mo/base.h"

struct pool;
struct block {
    struct block *next;
    size_t used, size; /* bytes, this header included */
    size_t dirty;      /* zeros lie behind this many bytes, and behind `used` */
    struct pool *pool; /* where it comes from, and which unit of it it begins with */
    uint32_t start;
};

/* A block of at least `size` bytes; NULL: out of memory. */
struct block *blocks_take(size_t size);
/* Takes back a list of blocks; may be called by any thread. */
void blocks_give(struct block *list);
/* Gives memory that nobody needs back to the system, where that is many pages. */
void blocks_release(void);

/* Under AddressSanitizer every allocation is a block of its own, so that overruns show. */
#if defined(__SANITIZE_ADDRESS__)
#define BLOCKS_ONE_EACH 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BLOCKS_ONE_EACH 1
#endif
#endif
#ifndef BLOCKS_ONE_EACH
#define BLOCKS_ONE_EACH 0
#endif

#endif
