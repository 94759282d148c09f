/* SPDX-License-Identifier: MIT
 *
 * Private to callees.c, effects.c, results.c and liveness.c: what calls and jumps lead to, and what
 * runs of instructions do to liveness.
 */
#ifndef MO_OUTLINER_EFFECTS_H
#define MO_OUTLINER_EFFECTS_H

#include "outliner/lift/lift.h"

static inline struct regset joined(struct regset a, struct regset b)
{
    return (struct regset){a.regs | b.regs, (uint8_t)(a.flags | b.flags)};
}

static inline uint64_t link_bit(const struct target *target)
{
    return target->link_register < 64 ? (uint64_t)1 << target->link_register : 0;
}

/* The flow of the last instruction of a function. */
static inline uint8_t last_flow(const struct program *program, uint32_t function)
{
    const struct function *of = &program->functions[function];
    return program->insns[of->first_insn + of->insn_count - 1].flow;
}

/* --- callees.c --- */

/* Where a direct call or jump goes. */
enum callee {
    CALLEE_PUBLIC,  /* a global function: the ABI's conventions */
    CALLEE_LOCAL,   /* a local function: perhaps conventions of its author */
    CALLEE_PRIVATE, /* an outlined function, a cold part, the middle of something */
};

/* *function is the one whose entry it is, or NO_INDEX. */
enum callee lift_callee_of(const struct program *program, uint32_t number,
                           uint32_t *function);

/* --- effects.c --- */

/* What a run of instructions does to liveness: in = uses + (out - kills). */
struct summary {
    struct regset uses, kills;
};

struct summary lift_summarise(const struct program *program, uint32_t first,
                              uint32_t count);
/* Instructions from `first` on to where the function is left in a straight line; 0 when
 * it is not. */
uint32_t lift_straight_line(const struct program *program, uint32_t first);
/* Fills what functions say of themselves as helpers. */
void lift_summarise_helpers(struct program *program);

/* --- results.c --- */

/* A callee from which somebody expects more than the ABI lets it return. */
struct result {
    uint32_t function; /* index */
    uint64_t regs;
};

/* What one worker has found of them. */
struct results {
    struct arena *arena;
    struct program *program;
    array_of(struct result) found;
};

/* Behind the instruction these registers are live; fills function.results of its own
 * function. */
void results_note(struct results *results, uint32_t insn, uint64_t live);
/* A function of which nobody knows what is live. */
void results_note_unknown(struct results *results, uint32_t function);
/* Completes function.results, once all have been looked at. */
void results_spread(struct arena *stage, struct program *program,
                    const struct results *results, uint32_t count);

#endif
