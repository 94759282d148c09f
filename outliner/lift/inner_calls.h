/* SPDX-License-Identifier: MIT
 *
 * Private to inner_calls.c, definitions.c and blind.c: callees that may be called with other
 * things on the stack above their return address than their callers have put there.
 */
#ifndef MO_OUTLINER_INNER_CALLS_H
#define MO_OUTLINER_INNER_CALLS_H

#include "outliner/lift/lift.h"

/* --- definitions.c --- */

struct definitions {
    const bool *const *is_fixed; /* by object, unit: its own definitions are what it means */
    const bool *is_private;      /* by function: it follows conventions of its own */
};
struct definitions definitions_find(struct arena *stage, const struct program *program);

/* Where a direct call, jump or branch leads. */
struct destination {
    uint32_t function; /* that holds the place; NO_INDEX: not known, or uncertain */
    bool is_private;   /* to code that follows conventions of its own */
};
struct destination destination_of(const struct program *program,
                                  const struct definitions *definitions, uint32_t insn);

/* --- blind.c --- */

/* The rows of a function, instruction by instruction. */
struct row_walk {
    const struct fde *fde;
    uint32_t change;
};
/* False when nothing can be said of them. */
bool row_walk_start(const struct program *program, uint32_t function,
                    struct row_walk *out);
/* The row at a section offset that is not before the last one asked for. */
const struct row *row_walk_to(const struct program *program, struct row_walk *walk,
                              uint32_t offset);

/* A jump or branch to somewhere else than its own function. */
static inline bool insn_leaves(const struct function *function, const struct insn *insn)
{
    return (insn->flow == FLOW_JUMP || insn->flow == FLOW_BRANCH) &&
           (insn->target == NO_INDEX || insn->target < function->start ||
            insn->target >= function->end);
}

/* It does something with the frame register itself: lea, mov. */
static inline bool insn_copies_frame(const struct target *target, const struct insn *insn)
{
    const uint32_t known = INSN_FRAME_MEMORY | INSN_SP_ADJUST | INSN_SP_FROM_FRAME;
    return has_register(insn->uses, target->frame_register) &&
           (!(insn->traits & known) || (insn->traits & INSN_FRAME_STORED));
}

/* Neither touches the stack, as far as anybody can tell, nor SP, nor looks at the frame
 * register: most instructions. */
static inline bool insn_is_off_stack(const struct target *target, const struct insn *insn)
{
    const uint32_t on = INSN_SP_MEMORY | INSN_SP_COPY | INSN_SP_OPAQUE | INSN_SP_ADJUST |
                        INSN_SP_FROM_FRAME | INSN_FRAME_MEMORY | INSN_FRAME_SET |
                        INSN_PINNED;
    return insn->flow == FLOW_NEXT && (insn->traits & on) == 0 &&
           !has_register(insn->uses, target->frame_register) &&
           !has_register(insn->defs, target->stack_register);
}

/* What a row tells the CFA by. */
enum base { BASE_NONE, BASE_STACK, BASE_FRAME };
enum base row_base(const struct target *target, const struct row *row);

/* The function neither reads its own return address nor anything above it, whatever it
 * goes on to do. */
bool function_is_blind(const struct program *program,
                       const struct definitions *definitions, uint32_t function);

#endif
