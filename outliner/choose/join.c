/* SPDX-License-Identifier: MIT
 *
 * Helpers that are the end of others. A called helper "c; return" is there already when
 * "a; b; c; return" is one: its sites call the place in the middle. The same goes for
 * thunks that end in the same jump.
 *
 * At that place everything must be as at a helper's entry. In a called helper it is:
 * SP does not move in it, the link register is not touched, and the unwind row is the
 * plain one unless the payload has saved registers (then nobody joins). SP must be as
 * far down as it would be in a body of its own. One that pushes something itself is no
 * host, and joins none.
 *
 * Ends are read backwards, as words of a tree: a node is found by the one above it and
 * a token.
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
    struct table *ends;        /* nodes: a key -> … */
    array_of(uint32_t) hosts;  /* … the first entry that ends so */
};

const uint32_t *positions_of_insns(struct arena *stage, const struct facts *facts)
{
    const struct tokens *tokens = facts->tokens;
    uint32_t *positions =
        array_room(stage, facts->program->insn_count, sizeof *positions);
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
    return !helper->tail && !helper->stays && !helper->inner &&
           slots_key(joiner->facts, candidate->sites[0].insn, helper->length) == 0;
}

/* Above the nodes: how the helper ends, and whether it has unwind data. Where SP is counts
 * for those that use it. The tokens tell sections with names of their own apart. */
struct key {
    uint32_t above; /* node, or NO_INDEX: the end begins here */
    uint32_t token;
    uint32_t entry_row;
    uint32_t stack_shift;
    uint32_t thunk;
};

/* A walk through the ends of one helper, from the shortest one on. */
struct walk {
    struct key key;
    uint32_t position; /* behind what is left of it */
    uint32_t insn;     /* the same */
};

static struct walk walk_from(const struct joiner *joiner, uint32_t number)
{
    const struct helper *helper = &joiner->entries[number].helper;
    uint32_t insn = candidate_of(joiner, number)->sites[0].insn;
    return (struct walk){
        .key = {NO_INDEX, 0, helper->entry_row, 0, helper->thunk},
        .position = joiner->positions[insn] + helper->length,
        .insn = insn + helper->length,
    };
}

/* The key of the next longer end, below this node. */
static const struct key *walk_on(const struct joiner *joiner, uint32_t number,
                                 uint32_t above, struct walk *walk)
{
    const struct insn *insn = &joiner->facts->program->insns[--walk->insn];
    walk->key.above = above;
    walk->key.token = joiner->facts->tokens->values[--walk->position];
    if ((insn->traits & (INSN_SP_MEMORY | INSN_SP_COPY)) != 0) {
        walk->key.stack_shift = joiner->entries[number].helper.stack_shift;
    }
    return &walk->key;
}

static void offer_ends(struct joiner *joiner, uint32_t number)
{
    struct walk walk = walk_from(joiner, number);
    uint32_t node = NO_INDEX;
    for (uint32_t length = 1; length < joiner->entries[number].helper.length;
         length++) {
        const struct key *key = walk_on(joiner, number, node, &walk);
        node = table_intern(joiner->ends, key, sizeof *key);
        if (node == joiner->hosts.count) {
            array_push(joiner->stage, &joiner->hosts, number);
        }
    }
}

/* The node of all of it, or NO_INDEX. */
static uint32_t find_whole(const struct joiner *joiner, uint32_t number)
{
    struct walk walk = walk_from(joiner, number);
    uint32_t node = NO_INDEX;
    for (uint32_t length = 1; length <= joiner->entries[number].helper.length;
         length++) {
        const struct key *key = walk_on(joiner, number, node, &walk);
        node = table_find(joiner->ends, key, sizeof *key);
        if (node == NO_INDEX) {
            return NO_INDEX;
        }
    }
    return node;
}

static void join_or_offer(struct joiner *joiner, uint32_t number)
{
    struct helper *helper = &joiner->entries[number].helper;
    uint32_t found = find_whole(joiner, number);
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
                  const uint32_t *positions, const struct candidates *candidates,
                  struct entry *entries, uint32_t count)
{
    struct joiner joiner = {.stage = stage,
                            .facts = facts,
                            .candidates = candidates,
                            .entries = entries,
                            .positions = positions,
                            .ends = table_new(stage)};
    if (facts->options->apart || (facts->options->without & TECHNIQUE_JOIN) != 0 ||
        count < 2) {
        return;
    }
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
