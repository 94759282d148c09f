/* SPDX-License-Identifier: MIT
 *
 * Helpers that are the end of others. A called helper "c; return" is there already when
 * "a; b; c; return" is one: its sites call the place in the middle. The same goes for
 * thunks that end in the same jump.
 *
 * At that place everything must be as at a helper's entry. In a called helper it is:
 * SP does not move in it, the link register is not touched, and the unwind row is the
 * plain one unless the payload has saved registers (then nobody joins). SP must be as
 * far down as it would be in a body of its own.
 *
 * Tails need none of this: see stay.c.
 */
#include "outliner/choose/choose.h"

#include <assert.h>
#include <stdlib.h>

struct joiner {
    struct arena *stage;
    const struct facts *facts;
    const struct candidates *candidates;
    struct entry *entries;
    const uint32_t *positions; /* in the tokens, by instruction */
    struct table *ends;        /* ends of payloads: a key -> … */
    array_of(uint32_t) hosts;  /* … the entry that has it */
};

const uint32_t *positions_of_insns(struct arena *stage, const struct facts *facts)
{
    const struct tokens *tokens = facts->tokens;
    uint32_t *positions = arena_new_array(stage, uint32_t, facts->program->insn_count);
    for (uint32_t p = 0; p < tokens->count; p++) {
        if (tokens->insns[p] != NO_INDEX) {
            positions[tokens->insns[p]] = p;
        }
    }
    return positions;
}

static const struct candidate *candidate_of(const struct joiner *joiner, uint32_t entry)
{
    return &joiner->candidates->items[joiner->entries[entry].candidate];
}

static bool can_join(const struct joiner *joiner, uint32_t number)
{
    const struct candidate *candidate = candidate_of(joiner, number);
    const struct helper *helper = &joiner->entries[number].helper;
    return !helper->tail && !helper->stays &&
           slots_key(joiner->facts, candidate->sites[0].insn, helper->length) == 0;
}

/* The last `length` instructions of the helper's payload, and what else must be equal:
 * how it ends, where SP is if they use it, whether it has unwind data. The tokens tell
 * sections with names of their own apart. */
static struct bytes key_of_end(struct joiner *joiner, uint32_t number, uint32_t length)
{
    const struct helper *helper = &joiner->entries[number].helper;
    const struct candidate *candidate = candidate_of(joiner, number);
    uint32_t insn = candidate->sites[0].insn + helper->length - length;
    uint32_t position = joiner->positions[insn];
    struct buffer key = buffer_new(joiner->stage);
    bool uses_sp = false;
    buffer_u8(&key, helper->thunk);
    buffer_u32(&key, helper->entry_row);
    for (uint32_t i = 0; i < length; i++) {
        uint32_t traits = joiner->facts->program->insns[insn + i].traits;
        uses_sp |= (traits & (INSN_SP_MEMORY | INSN_SP_COPY)) != 0;
        buffer_u32(&key, joiner->facts->tokens->values[position + i]);
    }
    buffer_u32(&key, uses_sp ? helper->stack_shift : 0);
    return buffer_bytes(&key);
}

static void offer_ends(struct joiner *joiner, uint32_t number)
{
    for (uint32_t length = 1; length < joiner->entries[number].helper.length;
         length++) {
        struct bytes key = key_of_end(joiner, number, length);
        uint32_t count = table_count(joiner->ends);
        if (table_intern(joiner->ends, key.at, key.size) == count) {
            array_push(joiner->stage, &joiner->hosts, number);
        }
    }
}

static void join_or_offer(struct joiner *joiner, uint32_t number)
{
    struct helper *helper = &joiner->entries[number].helper;
    struct bytes key = key_of_end(joiner, number, helper->length);
    uint32_t found = table_find(joiner->ends, key.at, key.size);
    assert(found != NO_INDEX || !candidate_of(joiner, number)->joins);
    if (found == NO_INDEX) {
        offer_ends(joiner, number);
        return;
    }
    helper->joins = true;
    helper->joined = joiner->hosts.items[found];
    helper->joins_at = joiner->entries[helper->joined].helper.length - helper->length;
    helper->saving += candidate_of(joiner, number)->joins ? 0 : helper->body_size;
    helper->body_size = 0;
}

struct ranked {
    uint32_t length, number;
};

/* The longest first: what joins it must find it. */
static int compare_ranked(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    if (a->length != b->length) {
        return a->length > b->length ? -1 : 1;
    }
    return (a->number > b->number) - (a->number < b->number);
}

void entries_join(struct arena *stage, const struct facts *facts,
                  const struct candidates *candidates, struct entry *entries,
                  uint32_t count)
{
    struct joiner joiner = {.stage = stage,
                            .facts = facts,
                            .candidates = candidates,
                            .entries = entries,
                            .ends = table_new(stage)};
    if (facts->options->apart || (facts->options->without & TECHNIQUE_JOIN) != 0 ||
        count < 2) {
        return;
    }
    joiner.positions = positions_of_insns(stage, facts);
    struct ranked *ranked = arena_new_array(stage, struct ranked, count);
    for (uint32_t i = 0; i < count; i++) {
        ranked[i] = (struct ranked){entries[i].helper.length, i};
    }
    qsort(ranked, count, sizeof *ranked, compare_ranked);
    for (uint32_t i = 0; i < count; i++) {
        if (can_join(&joiner, ranked[i].number)) {
            join_or_offer(&joiner, ranked[i].number);
        }
    }
}
