/* SPDX-License-Identifier: MIT
 *
 * Folding: of functions that are the same code one stays, and the others become names
 * of it. What it must not change is what a program can see: two functions whose
 * addresses somebody may compare keep two addresses. So a function that goes leaves
 * either its names, as aliases of the one that stays (nobody can have its address), or
 * a jump with its names on it.
 *
 * Where a function lies in a section of its own (-ffunction-sections, COMDAT groups) its
 * section goes. Where it shares one, what callers reach by distances cannot be led
 * elsewhere: its code becomes that jump, and padding, which goes when the section is laid
 * out again. Everything is about one object.
 */
#ifndef MO_FOLD_H
#define MO_FOLD_H

#include "mo/program.h"

struct fold_function {
    uint32_t section, start, end; /* section index, section offsets */
    uint32_t class;               /* equal numbers: the same code */
    bool alone;                   /* it is all that the section holds */
};

struct folded {
    uint32_t function; /* that goes: index in plan.functions */
    uint32_t heir;     /* that stays in its place: the same */
    bool jumps;        /* its names are on a jump to the heir; else on the heir itself */
};

struct folder;
struct fold_plan {
    const struct fold_function *functions; /* that were looked at; sorted by place */
    uint32_t function_count;
    const struct folded *items; /* sorted by function */
    uint32_t count;
    const bool *dropped;   /* by section: the ones that go */
    const bool *dissolved; /* by group: an heir lies in it, so it is a group no more */
    const struct folder *folder; /* what its maker found out, for fold_apply */
    int64_t code;          /* bytes of code saved, padding not counted */
    int64_t padding;       /* bytes of code that have become padding */
};

struct fold_options {
    bool apart; /* other objects of the link may hold the same COMDAT groups */
};

/* --- outliner/fold --- */

/* What to fold in an object of the program. An empty plan is a result. */
void fold_make(struct arena *arena, const struct program *program, uint32_t object,
               const struct fold_options *options, struct fold_plan *out);

/* The object with its plan carried out; the program is still needed. `section_at`: by old
 * section index the new one, 0 for those that have gone. */
MO_MUST_CHECK bool fold_apply(struct arena *arena, const struct fold_plan *plan,
                              const struct object **out, const uint32_t **section_at,
                              struct error *err);

/* --- outliner/verify/fold.c ---
 * Says whether `after` is `before` with the plan carried out, and the plan right:
 * everything of a class is the same code, nobody can tell that functions have gone, and
 * all else is as it was. Shares nothing with who made the plan. */
MO_MUST_CHECK bool fold_verify(const struct object *before, const struct object *after,
                               const struct fold_plan *plan, const uint32_t *section_at,
                               struct error *err);

#endif
