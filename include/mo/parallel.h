/* SPDX-License-Identifier: MIT
 *
 * Work that falls into parts, none of which looks at what another one does: done on
 * several processors at once. A part leaves its result where its number says; who did
 * it, and when, must not show. So the output is the same however many workers there
 * are.
 */
#ifndef MO_PARALLEL_H
#define MO_PARALLEL_H

#include "mo/arena.h"

enum { MOST_WORKERS = 64 };

/* How many processors there are, MOST_WORKERS at most. */
uint32_t parallel_processors(void);

/* Calls work(context, part, worker) for every part below `count` and returns when all
 * are done. There are `workers` at most (0 counts as 1), numbered from 0 on; calls with
 * the same one never overlap, so what a worker needs for itself can be prepared once
 * for all of its parts. */
void parallel_do(uint32_t workers, uint32_t count,
                 void (*work)(void *context, uint32_t part, uint32_t worker),
                 void *context);

/* An arena for each worker; and all of them handed over, once the work is done. */
struct arena **parallel_arenas(struct arena *arena, uint32_t workers);
void parallel_adopt(struct arena *arena, struct arena *const *arenas, uint32_t workers);

#endif
