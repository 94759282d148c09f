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
 * Most instructions end no helper; a look at their token says so. No match reaches over
 * a separator, so the tokens are looked at in parts, on several processors.
 */
#include "mo/parallel.h"
#include "outliner/choose/choose.h"

/* Tokens, nodes that make a part: about a millisecond. */
enum { PART_TOKENS = 32 * 1024, PART_NODES = 4 * 1024 };

/* A node of the tree. */
struct end {
    uint32_t host;   /* candidate: the first helper that ends so */
    uint32_t length; /* instructions */
    bool is_payload; /* those of the host can stand alone: */
    struct payload payload;
};

struct match {
    uint32_t node;
    uint32_t saving; /* bytes */
    struct site site;
};

/* Positions from one separator to another. */
struct part {
    uint32_t first, end;
    struct arena *arena; /* of the matches: the worker's */
    array_of(struct match) matches;
};

struct searcher {
    struct arena *stage;
    const struct facts *facts;
    struct candidates *candidates;
    struct table *nodes; /* (parent, token) -> index of `ends`; roots come first */
    array_of(struct end) ends;
    const uint32_t *positions; /* in the tokens, by instruction */
    uint8_t *roots;       /* by token, a bit for each root below which it stands */
    uint8_t *busy;        /* a bit for each instruction: edited, or stays in place */
    uint32_t *best;       /* by position: bytes saved by its part up to and with it */
    uint32_t *matched;    /* by position: the match of its part that ends with it; NO_INDEX */
    struct arena **arenas; /* by worker */
    array_of(struct part) parts;
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
           !candidate->payload.inner &&
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
            struct end end = {.host = host, .length = k};
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

static void make_tree(struct searcher *searcher)
{
    for (uint32_t r = 0; r < ROOT_COUNT; r++) {
        struct end root = {.host = NO_INDEX};
        array_push(searcher->stage, &searcher->ends, root);
    }
    for (uint32_t c = 0; c < searcher->candidates->count; c++) {
        const struct candidate *candidate = &searcher->candidates->items[c];
        if (!candidate->chosen)
            continue;
        set_busy(searcher, candidate);
        if (is_host(searcher->facts, candidate))
            add_ends(searcher, c,
                     searcher->positions[candidate->sites[0].insn] +
                         candidate->payload.length);
    }
}

/* The last `length` instructions of the host's payload. */
static bool end_payload(const struct searcher *searcher, const struct end *end,
                        struct payload *out)
{
    const struct facts *facts = searcher->facts;
    const struct candidate *host = &searcher->candidates->items[end->host];
    uint32_t insn = host->sites[0].insn + host->payload.length - end->length, size = 0;
    for (uint32_t k = 0; k < end->length; k++)
        size += facts->tokens->sizes[searcher->positions[insn] + k];
    return payload_make(facts, insn, end->length, size, host->payload.kind, out);
}

/* Each is asked for many times. */
static void make_payloads(void *context, uint32_t part, uint32_t worker)
{
    const struct searcher *searcher = context;
    uint32_t first = part * PART_NODES, count = searcher->ends.count;
    uint32_t end = count - first < PART_NODES ? count : first + PART_NODES;
    (void)worker;
    for (uint32_t n = first < ROOT_COUNT ? ROOT_COUNT : first; n < end; n++) {
        struct end *node = &searcher->ends.items[n];
        node->is_payload = end_payload(searcher, node, &node->payload);
    }
}

/* --- matches --- */

/* A called helper changes unwind bytes by row changes only: all but one of those that
 * the payload holds may be told for nothing. */
static bool could_save(const struct facts *facts, const struct payload *payload,
                       uint32_t insn)
{
    return facts_bytes(facts, insn, payload->length) + payload->length >
           facts->program->target->call_size + 1u;
}

/* An occurrence as a site that joins the host; bytes that it saves, or 0. */
static uint32_t match_site(const struct searcher *searcher, uint32_t root,
                          const struct payload *payload, uint32_t insn,
                          struct site *out)
{
    const struct facts *facts = searcher->facts;
    bool rows = facts->at[insn].row != ROW_NONE;
    if (fact_is(facts, insn, FACT_PARTED) || rows != ((root & ROOT_ROWS) != 0) ||
        !could_save(facts, payload, insn) || !site_make(facts, payload, insn, out))
        return 0;
    bool shifted = payload->uses_sp && out->form == FORM_SAVE_STACK;
    bool fits = !payload->uses_sp || shifted == ((root & ROOT_SHIFTED) != 0);
    if (!fits || slots_key(facts, insn, payload->length) != 0)
        return 0;
    out->stay = STAY_NEVER;
    return cost_site(facts, payload, out) ? (uint32_t)out->saving : 0;
}

static void note_match(const struct searcher *searcher, struct part *part,
                       uint32_t last, const struct match *match)
{
    uint32_t first = last + 1 - searcher->ends.items[match->node].length;
    uint32_t before = first > part->first ? searcher->best[first - 1] : 0;
    if (before + match->saving <= searcher->best[last])
        return;
    searcher->best[last] = before + match->saving;
    searcher->matched[last] = part->matches.count;
    array_push(part->arena, &part->matches, *match);
}

static void match_ends(const struct searcher *searcher, struct part *part, uint32_t root,
                       uint32_t last)
{
    const struct tokens *tokens = searcher->facts->tokens;
    struct match match = {.node = root};
    for (uint32_t p = last;; p--) {
        uint32_t insn = tokens->insns[p];
        if (insn == NO_INDEX || bit_get(searcher->busy, insn))
            return;
        uint32_t key[2] = {match.node, tokens->values[p]};
        uint32_t found = table_find(searcher->nodes, key, sizeof key);
        if (found == NO_INDEX)
            return;
        match.node = ROOT_COUNT + found;
        const struct end *end = &searcher->ends.items[match.node];
        if (!end->is_payload)
            return;
        match.saving = match_site(searcher, root, &end->payload, insn, &match.site);
        if (match.saving > 0)
            note_match(searcher, part, last, &match);
        if (p == part->first)
            return;
    }
}

static void match_part(void *context, uint32_t number, uint32_t worker)
{
    const struct searcher *searcher = context;
    struct part *part = &searcher->parts.items[number];
    part->arena = searcher->arenas[worker];
    for (uint32_t p = part->first; p < part->end; p++) {
        searcher->best[p] = p > part->first ? searcher->best[p - 1] : 0;
        searcher->matched[p] = NO_INDEX;
        uint32_t token = searcher->facts->tokens->values[p];
        if (token == TOKEN_SEPARATOR)
            continue;
        for (uint32_t root = 0; root < ROOT_COUNT; root++) {
            if (searcher->roots[token] >> root & 1)
                match_ends(searcher, part, root, p);
        }
    }
}

static void cut_parts(struct searcher *searcher)
{
    const struct tokens *tokens = searcher->facts->tokens;
    for (uint32_t p = 0, first = 0; p < tokens->count; p++) {
        bool whole = tokens->values[p] == TOKEN_SEPARATOR && p - first >= PART_TOKENS;
        if (!whole && p + 1 < tokens->count)
            continue;
        struct part part = {.first = first, .end = p + 1};
        array_push(searcher->stage, &searcher->parts, part);
        first = p + 1;
    }
}

static void match_all(struct searcher *searcher)
{
    uint32_t workers = searcher->facts->program->workers;
    uint32_t count = searcher->facts->tokens->count;
    searcher->best = array_room(searcher->stage, count, sizeof *searcher->best);
    searcher->matched = array_room(searcher->stage, count, sizeof *searcher->matched);
    searcher->arenas = parallel_arenas(searcher->stage, workers);
    cut_parts(searcher);
    parallel_do(workers, searcher->parts.count, match_part, searcher);
    parallel_adopt(searcher->stage, searcher->arenas, workers);
}

/* --- what becomes of them --- */

struct found {
    array_of(struct site) sites; /* from right to left */
    int64_t saving;
};

static void add_joining(struct searcher *searcher, const struct end *end,
                        struct found *found)
{
    struct candidate candidate = {.payload = end->payload,
                                  .site_count = found->sites.count,
                                  .stays_at = NO_INDEX,
                                  .chosen = true,
                                  .joins = true,
                                  .saving = found->saving};
    candidate.sites = arena_new_array(searcher->stage, struct site, found->sites.count);
    for (uint32_t i = 0; i < found->sites.count; i++)
        candidate.sites[i] = found->sites.items[found->sites.count - 1 - i];
    array_push(searcher->stage, searcher->candidates, candidate);
}

static void take_part(struct searcher *searcher, const struct part *part,
                      struct found *found)
{
    for (uint32_t p = part->end; p > part->first;) {
        uint32_t matched = searcher->matched[p - 1];
        if (matched == NO_INDEX) {
            p--;
            continue;
        }
        const struct match *match = &part->matches.items[matched];
        struct found *of = &found[match->node];
        array_push(searcher->stage, &of->sites, match->site);
        of->saving += match->saving;
        p -= searcher->ends.items[match->node].length;
    }
}

static void take_matches(struct searcher *searcher)
{
    struct found *found =
        arena_new_array(searcher->stage, struct found, searcher->ends.count);
    for (uint32_t i = searcher->parts.count; i-- > 0;)
        take_part(searcher, &searcher->parts.items[i], found);
    for (uint32_t n = 0; n < searcher->ends.count; n++) {
        if (found[n].sites.count > 0)
            add_joining(searcher, &searcher->ends.items[n], &found[n]);
    }
}

void ends_take(struct arena *stage, const struct facts *facts, const uint32_t *positions,
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
        .positions = positions,
        .roots = arena_alloc(stage, facts->tokens->alphabet),
        .busy = arena_alloc(stage, facts->program->insn_count / 8 + 1),
    };
    make_tree(&searcher);
    parallel_do(facts->program->workers, (searcher.ends.count - 1) / PART_NODES + 1,
                make_payloads, &searcher);
    match_all(&searcher);
    take_matches(&searcher);
}
