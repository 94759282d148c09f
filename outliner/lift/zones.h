/* SPDX-License-Identifier: MIT
 *
 * Private to red_zone.c and zones.c: which functions share a frame.
 */
#ifndef MO_OUTLINER_ZONES_H
#define MO_OUTLINER_ZONES_H

#include "outliner/lift/lift.h"

/* A jump or branch into another function. */
struct zone_jump {
    uint32_t from, to; /* function indices */
    uint32_t position; /* section offset that is jumped to */
};

struct zones {
    struct program *program;
    array_of(struct zone_jump) jumps; /* in the order of their instructions */
    /* By function: the other part of it, or NO_INDEX; SEVERAL: more than one claims to
     * be that. */
    uint32_t *other;
};
#define SEVERAL (NO_INDEX - 1)

struct zones zones_find(struct arena *arena, struct program *program);

/* The other part of a function, or NO_INDEX. Mutual, so that it is one function that
 * has two parts. */
uint32_t zones_other_part(const struct zones *zones, uint32_t function);

/* Most jumps and branches: resolved, to a place in the same function. */
bool jump_stays_inside(const struct program *program, const struct insn *insn);
/* The other function that a jump or branch leads to, and where in it, or NO_INDEX. */
uint32_t jump_leads_to(const struct program *program, uint32_t insn,
                       uint32_t *position);

#endif
