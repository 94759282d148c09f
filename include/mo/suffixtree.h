/* SPDX-License-Identifier: MIT
 *
 * Every repeat of a sequence of 32-bit integers, by Ukkonen's suffix tree: linear in time
 * and memory, iterative, the same on every run. Knows nothing but the arena.
 */
#ifndef MO_SUFFIXTREE_H
#define MO_SUFFIXTREE_H

#include "mo/arena.h"

/* One right-maximal repeat: `length` integers that stand at every one of the positions
 * positions[first .. first + count). Occurrences may overlap (tandem repeats included) and
 * are in no useful order: leaves of a subtree lie side by side, so all repeats share one
 * array and a repeat is an interval of it. */
struct repeat {
    uint32_t length; /* integers */
    uint32_t first;  /* index in repeats.positions */
    uint32_t count;  /* occurrences, at least 2 */
};

struct repeats {
    const uint32_t *positions; /* suffix starts, each once at most, in leaf order */
    uint32_t position_count;
    const struct repeat *items; /* in preorder of the tree: a parent before its children */
    uint32_t count;
};

/* All right-maximal repeats of at least `minimum` integers: for each, all its occurrences.
 * Values from `alphabet` on separate: they are equal to nothing, not to each other
 * either. The result lives in `arena`; the tree itself is freed before the function
 * returns. */
struct repeats suffixtree_repeats(struct arena *arena, const uint32_t *values,
                                  uint32_t count, uint32_t alphabet, uint32_t minimum);

/* Peak bytes that the last two lines cost per integer, for tests/bench: same work, and
 * *peak is the largest number of bytes the tree and the result held together. */
struct repeats suffixtree_repeats_measured(struct arena *arena, const uint32_t *values,
                                           uint32_t count, uint32_t alphabet,
                                           uint32_t minimum, uint64_t *peak);

#endif
