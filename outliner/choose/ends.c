/* SPDX-License-Identifier: MIT
 *
 * What is left over and is the end of a helper. Two instructions that occur once more
 * pay for no helper of their own, but where some helper ends in them they can be had
 * for the call. So when the choice is made, all code that it left alone is compared
 * with the ends of the called helpers, and the best disjoint matches become sites that
 * join (join.c).
 *
 * The ends are a tree of words that are read backwards, with one root for each way in
 * which bodies differ that tokens do not tell: thunk or not, with unwind rows or not,
 * and how far down SP is. What a word is worth depends on nothing but itself, so the
 * best disjoint matches are found by one pass: the best up to an instruction is the
 * best up to the one before, or a match that ends here and the best up to its start.
 * Most instructions end no helper; a look at their token says so.
 */
#include "outliner/choose/choose.h"

/* A node of the tree. */
struct end {
    uint32_t host;   /* candidate: the first helper that ends so */
    uint32_t length; /* instructions */
};

struct match {
    uint32_t node; /* NO_INDEX: none ends here */
    struct site site;
};

struct searcher {
    struct arena *stage;
    const struct facts *facts;
    struct candidates *candidates;
    struct table *nodes; /* (parent, token) -> index of `ends`; roots come first */
    array_of(struct end) ends;
    uint8_t *roots;        /* by token, a bit for each root below which it stands */
    uint8_t *busy;         /* a bit for each instruction: edited, or stays in place */
    int64_t *best;         /* by position: up to it */
    struct match *matches; /* by position: the one that ends in front of it */
};

enum {
    ROOT_THUNK = 1,
    ROOT_ROWS = 2,
    ROOT_SHIFTED = 4, /* the link register lies on the stack, and SP is used */
    ROOT_COUNT = 8,
};

/* --- the tree --- */

static bool has_rows(const struct facts *facts, const struct candidate *candidate)
{
    for (uint32_t i = 0; i < candidate->site_count; i++) {
        if (facts->at[candidate->sites[i].insn].row != ROW_NONE)
            return true;
    }
    return false;
}

static bool is_host(const struct facts *facts, const struct candidate *candidate)
{
    return candidate->chosen && candidate->payload.kind != PAYLOAD_TAIL &&
           candidate->stays_at == NO_INDEX && candidate->payload.length > 1 &&
           slots_key(facts, candidate->sites[0].insn, candidate->payload.length) == 0;
}

static uint32_t root_of(const struct facts *facts, const struct candidate *candidate)
{
    bool shifted =
        candidate->payload.uses_sp && candidate->sites[0].form == FORM_SAVE_STACK;
    return (candidate->payload.kind == PAYLOAD_THUNK ? ROOT_THUNK : 0u) +
           (has_rows(facts, candidate) ? ROOT_ROWS : 0u) +
           (shifted ? ROOT_SHIFTED : 0u);
}

static void add_ends(struct searcher *searcher, uint32_t host, uint32_t position)
{
    const struct candidate *candidate = &searcher->candidates->items[host];
    uint32_t node = root_of(searcher->facts, candidate);
    searcher->roots[searcher->facts->tokens->values[position - 1]] |=
        (uint8_t)(1u << node);
    for (uint32_t k = 1; k < candidate->payload.length; k++) {
        uint32_t key[2] = {node, searcher->facts->tokens->values[position - k]};
        uint32_t count = searcher->ends.count;
        node = ROOT_COUNT + table_intern(searcher->nodes, key, sizeof key);
        if (node == count) {
            struct end end = {host, k};
            array_push(searcher->stage, &searcher->ends, end);
        }
    }
}

static void set_busy(struct searcher *searcher, const struct candidate *candidate)
{
    uint32_t length = candidate->payload.length;
    for (uint32_t i = 0; i < candidate->site_count; i++) {
        for (uint32_t k = 0; k < length; k++)
            bit_set(searcher->busy, candidate->sites[i].insn + k);
    }
    for (uint32_t k = 0; candidate->stays_at != NO_INDEX && k < length; k++)
        bit_set(searcher->busy, candidate->stays_at + k);
}

static void make_tree(struct searcher *searcher, const uint32_t *positions)
{
    for (uint32_t r = 0; r < ROOT_COUNT; r++) {
        struct end root = {NO_INDEX, 0};
        array_push(searcher->stage, &searcher->ends, root);
    }
    for (uint32_t c = 0; c < searcher->candidates->count; c++) {
        const struct candidate *candidate = &searcher->candidates->items[c];
        if (!candidate->chosen)
            continue;
        set_busy(searcher, candidate);
        if (is_host(searcher->facts, candidate))
            add_ends(searcher, c,
                     positions[candidate->sites[0].insn] + candidate->payload.length);
    }
}

/* --- matches --- */

/* The last `length` instructions of the host's payload. */
static bool end_payload(const struct searcher *searcher, const uint32_t *positions,
                        const struct end *end, struct payload *out)
{
    const struct facts *facts = searcher->facts;
    const struct candidate *host = &searcher->candidates->items[end->host];
    uint32_t insn = host->sites[0].insn + host->payload.length - end->length, size = 0;
    for (uint32_t k = 0; k < end->length; k++)
        size += facts->tokens->sizes[positions[insn] + k];
    return payload_make(facts, insn, end->length, size, host->payload.kind, out);
}

/* An occurrence as a site that joins the host; what it saves, or 0. */
static int64_t match_site(const struct searcher *searcher, uint32_t root,
                          const struct payload *payload, uint32_t insn,
                          struct site *out)
{
    const struct facts *facts = searcher->facts;
    bool rows = facts->at[insn].row != ROW_NONE;
    if (fact_is(facts, insn, FACT_PARTED) || rows != ((root & ROOT_ROWS) != 0) ||
        !site_make(facts, payload, insn, out))
        return 0;
    bool shifted = payload->uses_sp && out->form == FORM_SAVE_STACK;
    bool fits = !payload->uses_sp || shifted == ((root & ROOT_SHIFTED) != 0);
    if (!fits || slots_key(facts, insn, payload->length) != 0)
        return 0;
    out->stay = STAY_NEVER;
    int64_t saving = cost_site(facts, payload, out);
    return saving > 0 ? saving : 0;
}

static void match_ends(struct searcher *searcher, const uint32_t *positions,
                       uint32_t root, uint32_t last)
{
    const struct tokens *tokens = searcher->facts->tokens;
    uint32_t node = root;
    for (uint32_t p = last;; p--) {
        uint32_t insn = tokens->insns[p];
        if (insn == NO_INDEX || bit_get(searcher->busy, insn))
            return;
        uint32_t key[2] = {node, tokens->values[p]};
        uint32_t found = table_find(searcher->nodes, key, sizeof key);
        if (found == NO_INDEX)
            return;
        node = ROOT_COUNT + found;
        struct payload payload;
        struct site site;
        if (!end_payload(searcher, positions, &searcher->ends.items[node], &payload))
            return;
        int64_t saving = match_site(searcher, root, &payload, insn, &site);
        if (saving > 0 && searcher->best[p] + saving > searcher->best[last + 1]) {
            searcher->best[last + 1] = searcher->best[p] + saving;
            searcher->matches[last + 1] = (struct match){node, site};
        }
        if (p == 0)
            return;
    }
}

static void match_all(struct searcher *searcher, const uint32_t *positions)
{
    uint32_t count = searcher->facts->tokens->count;
    searcher->best = arena_new_array(searcher->stage, int64_t, count + 1u);
    searcher->matches = arena_new_array(searcher->stage, struct match, count + 1u);
    for (uint32_t p = 0; p < count; p++) {
        searcher->best[p + 1] = searcher->best[p];
        searcher->matches[p + 1].node = NO_INDEX;
        uint32_t token = searcher->facts->tokens->values[p];
        if (token == TOKEN_SEPARATOR)
            continue;
        for (uint32_t root = 0; root < ROOT_COUNT; root++) {
            if (searcher->roots[token] >> root & 1)
                match_ends(searcher, positions, root, p);
        }
    }
}

/* --- what becomes of them --- */

struct found {
    array_of(struct site) sites; /* from right to left */
    int64_t saving;
};

static void add_joining(struct searcher *searcher, const uint32_t *positions,
                        const struct end *end, struct found *found)
{
    struct candidate candidate = {.site_count = found->sites.count,
                                  .stays_at = NO_INDEX,
                                  .chosen = true,
                                  .joins = true,
                                  .saving = found->saving};
    if (!end_payload(searcher, positions, end, &candidate.payload))
        return;
    candidate.sites = arena_new_array(searcher->stage, struct site, found->sites.count);
    for (uint32_t i = 0; i < found->sites.count; i++)
        candidate.sites[i] = found->sites.items[found->sites.count - 1 - i];
    array_push(searcher->stage, searcher->candidates, candidate);
}

static void take_matches(struct searcher *searcher, const uint32_t *positions)
{
    struct found *found =
        arena_new_array(searcher->stage, struct found, searcher->ends.count);
    for (uint32_t p = searcher->facts->tokens->count; p > 0;) {
        const struct match *match = &searcher->matches[p];
        if (match->node == NO_INDEX) {
            p--;
            continue;
        }
        struct found *of = &found[match->node];
        uint32_t length = searcher->ends.items[match->node].length;
        array_push(searcher->stage, &of->sites, match->site);
        of->saving += searcher->best[p] - searcher->best[p - length];
        p -= length;
    }
    for (uint32_t n = 0; n < searcher->ends.count; n++) {
        if (found[n].sites.count > 0)
            add_joining(searcher, positions, &searcher->ends.items[n], &found[n]);
    }
}

void ends_take(struct arena *stage, const struct facts *facts,
               struct candidates *candidates)
{
    const uint32_t needed = TECHNIQUE_JOIN | TECHNIQUE_LEFTOVERS;
    if (facts->options->apart || (facts->options->without & needed) != 0)
        return;
    struct searcher searcher = {
        .stage = stage,
        .facts = facts,
        .candidates = candidates,
        .nodes = table_new(stage),
        .roots = arena_alloc(stage, facts->tokens->alphabet),
        .busy = arena_alloc(stage, facts->program->insn_count / 8 + 1),
    };
    const uint32_t *positions = positions_of_insns(stage, facts);
    make_tree(&searcher, positions);
    match_all(&searcher, positions);
    take_matches(&searcher, positions);
}
