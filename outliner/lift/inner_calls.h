/* SPDX-License-Identifier: MIT
 *
 * Private to inner_calls.c, inner_frame.c, definitions.c and blind.c: callees that may be
 * called with other things on the stack above their return address than their callers have
 * put there.
 */
#ifndef MO_OUTLINER_INNER_CALLS_H
#define MO_OUTLINER_INNER_CALLS_H

#include "outliner/lift/lift.h"

#include "mo/table.h"

/* What a name means, as far as the set of objects tells. */
struct definition {
    uint32_t function; /* the one that is run; NO_INDEX: it may well be another one */
    bool is_private;   /* it follows conventions of its own */
};
struct definitions {
    const struct definition **of; /* by object, symbol; nothing is known of local ones */
    const bool *is_private;       /* by function index */
};
struct definitions definitions_find(struct arena *stage, const struct program *program);

/* Where a direct call, jump or branch leads. */
struct destination {
    uint32_t function; /* that holds the place; NO_INDEX: not known, or uncertain */
    uint32_t offset;   /* section offset of the place; NO_INDEX: only a name says it */
    bool is_private;   /* to code that follows conventions of its own */
};
struct destination destination_of(const struct program *program,
                                  const struct definitions *definitions, uint32_t insn);

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

/* It does something with the frame register that no trait describes: lea, mov. */
static inline bool insn_copies_frame(const struct target *target, const struct insn *insn)
{
    const uint32_t known = INSN_FRAME_MEMORY | INSN_SP_ADJUST | INSN_SP_FROM_FRAME;
    return has_register(insn->uses, target->frame_register) && !(insn->traits & known);
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

/* --- inner_frame.c --- */

/* Places of the frame in which arguments could lie, a bit for each word: from the lowest
 * place that SP has in the function upwards. Addresses count from its CFA. What lies above
 * is too far away: of a call with SP up there nothing is known. */
typedef uint64_t words;
enum { WORD = 8, WORDS = 64 };
#define UNTOUCHED UINT64_C(0)
#define UNKNOWN   UINT64_MAX

/* Through a block. */
struct way {
    words before;  /* touched since the last call, on some way that leads to it */
    words touched; /* in it: since its last call … */
    bool calls;    /* … if there is one */
};

/* A call of somebody who sees nothing of the frame. */
struct call {
    uint32_t insn, block;
    words arguments; /* where they would begin; none: out of sight */
    words touched;   /* in the block, since the last call … */
    bool first;      /* … which is before the block */
};

enum { CALLER_PARTS = 4 };

struct caller {
    struct program *program;
    const struct definitions *definitions;
    const struct function *function;
    uint32_t parts[CALLER_PARTS], part_count; /* of a function: itself, .cold, … */
    bool is_torn;                           /* and perhaps there are more of them */
    bool sets_frame;   /* one of them does, or may */
    int64_t lowest;    /* address of the first word */
    words copied;      /* to which it makes pointers */
    words read;        /* it reads them somewhere: they are variables of its own */
    struct way *ways;  /* by its blocks */
    struct arena *stage;
    array_of(struct call) calls;
};

/* The parts of the function that one of them leads to. Of a .cold part that never goes back
 * nobody knows whose it is. */
void caller_find_parts(struct caller *caller, uint32_t number);
/* Looks at all blocks of the function, in one pass over it: fills all but `before` of the
 * ways. Calls that nothing else is to be asked about are marked. */
void caller_find_calls(struct caller *caller, struct row_walk *walk);
/* What all parts of the function write anywhere, or make a pointer to: one may be entered
 * from the other at any time. */
words caller_touches(struct caller *caller);

#endif
