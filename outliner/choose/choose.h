/* SPDX-License-Identifier: MIT
 *
 * Private to the choice: program -> tokens -> candidates -> plan. The rooms, in the
 * order in which they are walked through:
 *
 *   key.c         what an instruction is, apart from where it stands; why it must stay
 *   key_referents.c  … and what its fields refer to
 *   traces.c      what the round before has left behind
 *   changed.c     what a later round has to look at
 *   tokens.c      the program as one string
 *   tails.c       what rows have to say at the end of a function
 *   facts.c       per instruction: row, function, what breaks a call
 *   throws.c      what call-site tables have against it
 *   form_rows.c   what unwind rows have against it
 *   forms.c       may this occurrence be a site, and in which form
 *   stay.c        may it stay in place instead
 *   cost.c        what that is worth
 *   candidates.c  repeats -> payloads with sites, priced
 *   search.c      the same for all repeats, in parts
 *   greedy.c      the best of them, disjoint
 *   relax.c       the same, with a view of the whole
 *   plan.c        all of it
 *   ends.c        what is left over and is the end of a helper
 *   join.c        helpers that are the end of others
 */
#ifndef MO_OUTLINER_CHOOSE_H
#define MO_OUTLINER_CHOOSE_H

#include "mo/array.h"
#include "mo/plan.h"
#include "mo/suffixtree.h"
#include "mo/table.h"

static inline bool bit_get(const uint8_t *bits, uint32_t at)
{
    return (bits[at / 8] >> (at % 8) & 1) != 0;
}

static inline void bit_set(uint8_t *bits, uint32_t at)
{
    bits[at / 8] = (uint8_t)(bits[at / 8] | 1u << (at % 8));
}

/* Grows a hash by a value. */
static inline uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* --- key.c --- */

enum key_mode {
    KEY_EXACT,  /* equal keys: interchangeable instructions of this program */
    KEY_STABLE, /* the same in every build: no indices, so not quite as sharp */
};

/* What there is to say beside the key. */
struct token {
    uint8_t size; /* bytes that the instruction takes in a helper */
    bool glued;   /* as insn_is_glued() says */
};

/* Like insn_refusal(), and if there is no refusal: appends the key. */
enum refusal insn_key(const struct program *program, uint32_t code, uint32_t insn,
                      enum key_mode mode, struct buffer *key, struct token *out);

/* Must not be parted from the next instruction. */
bool insn_is_glued(const struct program *program, uint32_t code, uint32_t insn);

/* --- changed.c --- */

/* By instruction index: whether a repeat may hold it that the round before has not
 * seen. `old`: names of the helpers that there were before that round. */
const bool *changes_find(struct arena *arena, const struct program *program,
                         const struct table *old);

/* --- tails.c --- */

/* Rows of tails without the rules of settled registers, each made once. */
struct tail_rows;
struct tail_rows *tail_rows_new(struct arena *arena, const struct program *program);
uint32_t tail_row(struct tail_rows *rows, uint32_t row, uint64_t settled);

/* --- facts.c --- */

/* What is asked of every occurrence of every repeat: half a cache line. Ends are
 * instruction indices, and at most that of the function. */
struct fact {
    uint32_t function;     /* its index */
    uint32_t function_end; /* behind its last instruction */
    uint32_t row;          /* number in the row_table, or ROW_NONE */
    uint32_t row_end;      /* first instruction behind it with another row */
    uint32_t thrower;      /* first one from here on for which its call site matters */
    uint32_t tail_end;     /* first one from here on that a tail cannot hold */
    uint32_t offset;       /* section offset */
    uint8_t length;        /* bytes */
    uint16_t flags;        /* FACT_… */
};
enum fact_flag {
    FACT_GLUED = 1u << 0,       /* must not be parted from the next one … */
    FACT_PARTED = 1u << 9,      /* … nor this from the one before it */
    FACT_LINK_STORED = 1u << 1, /* see fill_link_stored() */
    FACT_VENEER_LIVE = 1u << 2, /* a veneer would clobber what is live: no form */
    /* Of its function: */
    FACT_PRIVATE = 1u << 3,      /* its exits do not follow the ABI */
    FACT_RED_ZONE = 1u << 4,     /* it may keep bytes below SP */
    FACT_KEPT_WHOLE = 1u << 5,   /* no link drops its section: see stay.c */
    FACT_SIGNAL_FRAME = 1u << 6, /* so says its unwind entry */
    FACT_B_KEY = 1u << 7,        /* the same */
    FACT_COLD = 1u << 8,         /* compilers put it where little is run */
};

struct facts {
    const struct program *program;
    const struct tokens *tokens;
    const struct plan_options *options;
    /* By instruction index, of functions with tokens alone: */
    const struct fact *at;
    const uint32_t *call_end; /* first instruction from here on that a called payload
                                 cannot hold; the block's end if there is none */
    const uint32_t *inner_end; /* the same when it may call others; NULL: none may */
    const uint32_t *site_end; /* first instruction behind it with another call site, or
                                 gap; the function's end if there is none.
                                 Only of functions with a call-site table */
    struct tail_rows *tail_rows;
};

static inline bool fact_is(const struct facts *facts, uint32_t insn,
                           enum fact_flag flag)
{
    return (facts->at[insn].flags & flag) != 0;
}

void facts_make(struct arena *arena, const struct program *program,
                const struct tokens *tokens, const struct plan_options *options,
                struct facts *out);

/* The instruction behind a payload, or NO_INDEX when the function ends there. */
uint32_t facts_behind(const struct facts *facts, uint32_t insn, uint32_t length);

/* Section bytes of `length` instructions. */
uint32_t facts_bytes(const struct facts *facts, uint32_t insn, uint32_t length);

/* --- forms.c --- */

enum payload_kind { PAYLOAD_PLAIN, PAYLOAD_THUNK, PAYLOAD_TAIL };

/* A sequence as a helper's body, judged by its instructions alone. */
struct payload {
    uint32_t insn, length; /* one occurrence, instructions */
    enum payload_kind kind;
    bool uses_sp;     /* addresses memory through SP, or copies it */
    bool inner;       /* calls others, and not only as the end of a thunk */
    bool indirect;    /* thunk: the last call goes through a register */
    uint64_t touched; /* registers read or written */
    uint64_t written;
    uint64_t settled; /* tail: registers that hold the caller's values already */
    /* Bytes of the helper with SP as a call leaves it, and with the link register on
     * the stack, too; 0: some operand cannot be shifted that far. */
    uint32_t size, stack_size;
};

/* False: no helper of this kind. `size` is the unshifted size of the instructions. */
bool payload_make(const struct facts *facts, uint32_t insn, uint32_t length,
                  uint32_t size, enum payload_kind kind, struct payload *out);

/* The last instruction is a call that a jump can stand in for. */
bool thunk_ends_at(const struct facts *facts, uint32_t insn);
/* The last instruction leaves the function for good. */
bool tail_ends_at(const struct facts *facts, uint32_t insn);

/* The occurrence at `insn` may be a site of the payload; fills its form. */
bool site_make(const struct facts *facts, const struct payload *payload, uint32_t insn,
               struct site *out);

/* A helper has the unwind rows that its first site asks for, so its sites must agree:
 * tails on the rows of every instruction, others on what the payload saves and where,
 * and on how much lower SP is if it matters. Sites with equal keys can share. */
uint64_t site_key(const struct facts *facts, const struct payload *payload,
                  const struct site *site);

/* The settled registers of a tail's site: none where exits are no exits. */
uint64_t site_settled(const struct facts *facts, const struct payload *payload,
                      const struct site *site);

/* --- stay.c --- */

/* The function lies in a section that links keep as a whole. */
bool is_kept_whole(const struct program *program, const struct function *function);

/* Whether the site may stay where it is, and be jumped to by the others. */
enum stay site_stay(const struct facts *facts, const struct site *site);
/* The same for a function with conventions of its own (a helper that is there already),
 * as if it had none: its rows are never touched, so they must be right as they are.
 * Fills `key` with what site_key() says of sites that may jump to it. */
bool helper_may_stay(const struct facts *facts, const struct payload *payload,
                     const struct site *site, uint64_t *key);
/* Bytes that its unwind table grows by when it stays. */
int64_t stay_cost(const struct facts *facts, const struct payload *payload,
                  const struct site *site);

/* --- throws.c --- */

/* Fills thrower and tail_end of a function's instructions, and site_end if it has a
 * call-site table. */
void throws_fill(const struct program *program, const struct function *function,
                 struct fact *facts, uint32_t *site_end);
/* Exceptions find what they found if these instructions become a tail. */
bool throws_allow_tail(const struct facts *facts, uint32_t insn, uint32_t length);
/* … if the payload is called here as the site says. */
bool throws_allow_call(const struct facts *facts, const struct payload *payload,
                       const struct site *site);

/* --- form_rows.c --- */

/* Unwinding finds the same frames if the payload becomes a called helper here. */
bool rows_allow_call(const struct facts *facts, const struct payload *payload,
                     uint32_t insn);

/* What the helper's rows say when they are made from this site: equal keys, equal rows.
 */
uint64_t slots_key(const struct facts *facts, uint32_t insn, uint32_t length);

/* The return address is in the link register before this instruction. */
bool link_is_live(const struct facts *facts, uint32_t insn);

/* Like site_key() of a tail, with these settled registers. */
uint64_t tail_key(const struct facts *facts, const struct payload *payload,
                  uint32_t insn, uint64_t settled);

/* --- cost.c --- */

/* Bytes of unwind program that go from one row to another take: at the least. */
uint32_t cost_change(const struct facts *facts, uint32_t from_row, uint32_t to_row);

/* Fills what the choice has to know of a site. False: it saves nothing. */
bool cost_site(const struct facts *facts, const struct payload *payload,
               struct site *site);
/* Code bytes of the helper, and all that it takes, for sites like this one. */
uint32_t cost_body(const struct payload *payload, const struct site *site);
int64_t cost_helper(const struct facts *facts, const struct payload *payload,
                    const struct site *site);

/* How good it is to save that much by replacing so many bytes of code. */
int64_t cost_merit(int64_t saving, uint64_t covered);

/* --- candidates.c --- */

/* A payload with disjoint sites, all of which could be taken. */
struct candidate {
    struct payload payload;
    struct site *sites; /* sorted by instruction */
    uint32_t site_count;
    uint32_t stays_at; /* instruction of the one that stays in place, or NO_INDEX */
    bool chosen;       /* then its sites are those that it has been given */
    bool joins;        /* found as the end of another one that is chosen */
    int64_t saving;   /* bytes, all sites taken */
    uint64_t covered; /* bytes of code that the sites replace */
    uint32_t cold;    /* of the sites, those in code that is hardly run */
    int64_t merit;    /* in the choice: the best one first; see cost.c */
};

struct candidates {
    struct candidate *items;
    uint32_t count, capacity;
};

/* Gathers the facts, and everything that saves at least `options.minimum_saving` by
 * itself. */
void candidates_make(struct arena *arena, const struct program *program,
                     const struct tokens *tokens, const struct plan_options *options,
                     struct facts *facts, struct candidates *out);

/* The same for some of the repeats: whole trees, in preorder. */
void candidates_look(struct arena *arena, const struct facts *facts,
                     const struct repeats *repeats, uint32_t minimum,
                     struct candidates *out);

/* Fills saving, covered and merit from the sites that are left. */
void candidate_price(const struct facts *facts, struct candidate *candidate);

/* --- greedy.c --- */

/* Disjoint candidates, marked as chosen in a copy. `suggested`: by candidate a byte for
 * each of its sites that it should have, or NULL; NULL: nobody suggests anything. */
struct candidates choose(struct arena *stage, const struct facts *facts,
                         const struct candidates *candidates,
                         uint8_t *const *suggested);
/* The same without suggestions, and without a copy. */
void choose_in_place(struct arena *stage, const struct facts *facts,
                     struct candidates *candidates);
int64_t chosen_saving(const struct candidates *candidates);

/* --- relax.c --- */

/* The best choice that it can find with the effort that is wanted: some candidates are
 * chosen, and none is what it was. `bound`: bytes that no choice among these candidates
 * can save more than, or 0 when nobody has looked. */
void relax(struct arena *stage, const struct facts *facts, struct candidates *candidates,
           int64_t *bound);

/* --- ends.c --- */

/* Adds chosen candidates that join: the sites where code that nobody has taken is the
 * end of a chosen helper. */
void ends_take(struct arena *stage, const struct facts *facts, const uint32_t *positions,
               struct candidates *candidates);

/* --- join.c --- */

/* By instruction its position in the tokens, if it has one. */
const uint32_t *positions_of_insns(struct arena *stage, const struct facts *facts);

/* A helper that has been chosen. */
struct entry {
    struct helper helper;
    uint32_t candidate;
    uint32_t group; /* order of the unwind ranges */
};

/* Helpers that are the end of a longer one lose their bodies. Entries keep their order
 * from here on. */
void entries_join(struct arena *stage, const struct facts *facts,
                  const uint32_t *positions, const struct candidates *candidates,
                  struct entry *entries, uint32_t count);

#endif
