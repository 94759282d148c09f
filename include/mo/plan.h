/* SPDX-License-Identifier: MIT
 *
 * What one round will do: which sequences become helpers, and how each occurrence enters
 * its helper. A value; choosing it changes nothing.
 */
#ifndef MO_PLAN_H
#define MO_PLAN_H

#include "mo/program.h"

/* How a site enters the helper. */
enum form {
    FORM_PLAIN,         /* call; the link register is dead here, or calls push */
    FORM_SAVE_REGISTER, /* call, the link register kept in `scratch` around it */
    FORM_SAVE_STACK,    /* call, the link register kept on the stack around it */
    FORM_THUNK,         /* call; the helper ends in a jump to the payload's last callee */
    FORM_TAIL,          /* jump; the payload ends in a return or tail call */
    FORM_COUNT
};
const char *form_name(enum form form); /* "plain", … */

/* May the occurrence stay where it is, and be the helper of the others? */
enum stay {
    STAY_NEVER,
    STAY_CAN,
    STAY_ONLY, /* it cannot be a site any more */
};

struct site {
    uint32_t insn;   /* instruction index of the payload's first instruction */
    uint8_t form;    /* enum form */
    uint8_t scratch; /* FORM_SAVE_REGISTER: register bit number */
    /* For the choice alone: */
    uint8_t stay;   /* enum stay */
    bool cold;      /* in code that is hardly run */
    uint32_t bytes; /* of code that it replaces */
    int32_t saving; /* loaded bytes, its share of the helper not counted */
};

struct helper {
    uint32_t length; /* instructions of the payload */
    uint32_t first_site, site_count; /* in plan.sites; sorted by instruction index */
    uint32_t stack_shift; /* bytes by which SP is lower inside than at the site; all its
                             sites agree on it when the payload addresses SP */
    bool tail;       /* its sites are FORM_TAIL */
    bool thunk;      /* its sites are FORM_THUNK */
    bool inner;      /* called, and calls others itself: it aligns the stack first */
    bool stays;      /* it has no body: the sites jump to an occurrence that stays in place */
    uint32_t stays_at; /* that one's instruction index */
    bool joins;        /* it has no body: it is the end of another helper … */
    uint32_t joined;   /* … this one (index), from … */
    uint32_t joins_at; /* … this instruction of its payload on */
    uint32_t entry_row; /* rows at the payload's instructions start from it (tail), or the
                           plain row (all others); ROW_NONE: it needs no FDE */
    uint64_t settled;   /* tail: registers whose rules its rows leave out, see tails.c */
    uint32_t body_size; /* bytes of the helper; 0 when it has no body */
    int64_t saving;     /* estimated loaded bytes */
    uint64_t hash;      /* of the body, for its name */
};

static inline bool helper_has_body(const struct helper *helper)
{
    return !helper->stays && !helper->joins;
}

struct placement;
struct plan {
    const struct helper *helpers; /* in the order in which they will lie */
    uint32_t helper_count;
    const struct site *sites;
    uint32_t site_count;
    bool short_branches;    /* long branches become short ones where that will do */
    bool stack_rows;        /* rows told by the frame pointer are told by SP where they can
                               be; only in a first round, whose code the checker knows */
    int64_t predicted_code; /* code bytes saved, padding counted: filled by plan_price() */
    int64_t predicted_eh;   /* .eh_frame bytes saved */
    int64_t predicted_hdr;  /* .eh_frame_hdr bytes saved */
    /* What was chosen saves so many loaded bytes, priced helper by helper and before joins
     * and leftovers; no choice would save more than the bound (0: nobody knows). */
    int64_t choice_saving, choice_bound;
    const struct placement *placement; /* of the rewriter: where all will lie, once
                                          plan_price() has looked; NULL before */
};

struct plan_options {
    int64_t minimum_saving; /* per helper, loaded bytes; at least 1 */
    bool no_veneers;        /* the user promises that no veneer will be needed */
    bool apart;             /* the output is several objects */
    uint32_t effort;        /* of the choice: 1 greedy, 2 with a view of the whole */
    uint32_t without;       /* TECHNIQUE_… that are not wanted */
};

/* What can be switched off, one by one, to see what it is worth. ORDER technique:
 * options.c has the names. */
enum technique {
    TECHNIQUE_STAY = 1u << 0, /* tails that stay in place */
    TECHNIQUE_JOIN = 1u << 1, /* helpers that are the end of others */
    TECHNIQUE_SHORT = 1u << 2, /* short branches where long ones have become needless */
    TECHNIQUE_LEFTOVERS = 1u << 3, /* single sites that are the end of a helper */
    TECHNIQUE_UNITE = 1u << 4,     /* unwind entries that functions share */
    TECHNIQUE_ROWS = 1u << 5,      /* rows that are told by SP */
    TECHNIQUE_INNER = 1u << 6,     /* calls inside of called helpers */
};

/* --- cut.c --- */

/* Of the first `count` helpers of the plan those that need none of the others, with their
 * sites. Not priced. */
struct plan plan_cut(struct arena *arena, const struct plan *plan, uint32_t count);

/* --- tails.c: what an unwinder has to be told at the end of a function --- */

/* Registers that hold the caller's values all along these instructions, which end in an
 * exit of their function; 0 when that is not certain. */
uint64_t tail_settled(const struct program *program, uint32_t insn, uint32_t length);
/* The number of a row without the rules of these registers. */
uint32_t row_without(struct arena *arena, const struct program *program, uint32_t row,
                     uint64_t settled);

/* --- tokens.c ---
 * The program as one string: equal numbers are interchangeable instructions. */
#define TOKEN_SEPARATOR UINT32_MAX
struct tokens {
    const uint32_t *values; /* one for each position: below `alphabet`, or TOKEN_SEPARATOR */
    const uint32_t *insns;  /* instruction index of each position, or NO_INDEX (separator) */
    const uint8_t *sizes;   /* bytes of the instruction in a helper, SP operands unshifted */
    const uint8_t *glued;   /* 1: must not be parted from the next position */
    uint32_t count;
    uint32_t alphabet;
    const bool *functions; /* by function index: whether it has any */
};
/* `again`: a round is to come, which has to understand what this one leaves. */
void tokens_make(struct arena *arena, const struct program *program, bool again,
                 struct tokens *out);
/* The same for a later round: only code that may be part of a repeat which the round
 * before has not seen. `old`: names of the helpers that there were before that one. */
struct table;
void tokens_make_changed(struct arena *arena, const struct program *program, bool again,
                         const struct table *old, struct tokens *out);
/* Adds the names of the objects' helpers. */
void helpers_note(struct table *names, const struct objects *objects);

/* REFUSAL_NONE, or why the instruction (of this code index) must stay where it is. */
enum refusal insn_refusal(const struct program *program, uint32_t code, uint32_t insn);

/* --- candidates.c, cost.c, plan.c --- */
void plan_make(struct arena *arena, const struct program *program,
               const struct tokens *tokens, const struct plan_options *options,
               struct plan *out);

/* --- price.c ---
 * Fills the predictions of the plan: exactly what program_rewrite() will save. Fails where
 * that would. The arena must live until then. */
MO_MUST_CHECK bool plan_price(struct arena *arena, const struct program *program,
                              struct plan *plan, struct error *err);

/* --- rewrite.c ---
 * New objects = old objects + plan. The helpers go to a section .text.outlined (or the
 * name of the sites' section when that is not .text*) of `host`: the object with this
 * index, or, with NO_INDEX, a new object named `set_name` put behind the others; locals
 * that such an object needs become hidden globals under the set's name. Fails when a field
 * cannot reach: a bug of ours, said as such. */
struct rewrite_options {
    uint32_t host;
    const char *set_name;
};
MO_MUST_CHECK bool program_rewrite(struct arena *arena, const struct program *program,
                                   const struct plan *plan,
                                   const struct rewrite_options *options,
                                   struct objects *out, struct error *err);

/* --- shake.c ---
 * A proof, no work: the same objects with no-ops at random places of every open function,
 * which ones the seed says. Behaves as before, or a code reference was missed. */
MO_MUST_CHECK bool program_shake(struct arena *arena, const struct program *program,
                                 uint32_t seed, struct objects *out, struct error *err);

/* --- unpad.c ---
 * The same objects without no-ops that only align labels inside of functions. `more`:
 * there were some; else `out` keeps what it was. */
MO_MUST_CHECK bool program_unpad(struct arena *arena, const struct program *program,
                                 struct objects *out, bool *more, struct error *err);

/* --- verify.c ---
 * Expands every helper of `after` back and compares with `before`, instruction by
 * instruction, reference by reference, row by row. Shares nothing with the rewriter but
 * the decoder and the readers. Objects correspond by index (a helper object is extra),
 * sections by (name, unit, order), functions by order. The error names the first
 * difference. */
struct verify_options {
    uint32_t workers;        /* as in mo/parallel.h */
    struct decoder *decoder; /* that remembers `before`, or NULL */
    const struct known_tables *tables; /* of `before`, if somebody has lifted it, or NULL */
};
MO_MUST_CHECK bool outline_verify(const struct objects *before, const struct objects *after,
                                  const struct verify_options *options,
                                  struct error *err);
/* The same of objects that have been shaken: `after` may have no-ops that `before` has
 * not. */
MO_MUST_CHECK bool shake_verify(const struct objects *before, const struct objects *after,
                                struct error *err);
/* The same of objects that program_unpad() has made `after` of. */
MO_MUST_CHECK bool unpad_verify(const struct objects *before,
                                const struct objects *after, uint32_t workers,
                                struct error *err);

#endif
