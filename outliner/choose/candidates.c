/* SPDX-License-Identifier: MIT
 *
 * From repeats to payloads that are worth a helper. The suffix tree knows where
 * sequences can be no longer; a called helper needs to know where they must be no
 * longer, because a call, a jump or a move of SP comes next. So every repeat is looked
 * at as
 *
 *   a tail      all of it, if it ends in a jump out of the function
 *   a thunk     up to and with its first call
 *   plain       up to the first instruction that a called helper cannot hold
 *
 * and the last two once more with calls inside of the helper where these are allowed.
 *
 * Shorter prefixes belong to a node nearer to the root, which has more occurrences, and
 * suffixes to other nodes, so each pair of payload and occurrences comes up once.
 *
 * Work. Each repeat costs as much as it has occurrences, which adds up to the tree's
 * depth for every position: a few in compiled code, but as many as there are
 * instructions in a long run of equal ones. Deep down a chain of nodes only some are
 * looked at, fewer and fewer, so that no position is visited more than some hundred
 * times.
 */
#include "outliner/choose/choose.h"

#include <stdlib.h>
#include <string.h>

/* Ancestors of a repeat that are all looked at. */
enum { FULL_DEPTH = 64 };

struct ancestor {
    uint32_t end;    /* of its interval of positions */
    uint32_t length; /* instructions */
};

struct keyed {
    uint64_t key;
    struct site site;
};

struct sharers {
    const struct keyed *keyed; /* the first of them */
    uint32_t count;
};

struct finder {
    struct arena *arena; /* of the result */
    struct arena *stage;
    const struct facts *facts;
    struct repeats repeats;
    uint32_t *insns; /* occurrences of the repeat at hand, sorted */
    uint32_t insn_count;
    struct keyed *keyed; /* those that can be sites, with what they must agree on */
    struct sharers *sharers;
    struct site *sites; /* those that do */
    array_of(struct ancestor) ancestors;
    struct candidates *out;
};

/* --- occurrences --- */

static int compare_insns(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

static void sort_insns(uint32_t *insns, uint32_t count)
{
    if (count > 16) {
        qsort(insns, count, sizeof *insns, compare_insns);
        return;
    }
    for (uint32_t i = 1; i < count; i++) {
        uint32_t insn = insns[i], at = i;
        for (; at > 0 && insns[at - 1] > insn; at--) {
            insns[at] = insns[at - 1];
        }
        insns[at] = insn;
    }
}

/* An occurrence that begins with the second half of a pair is none. */
static void load_occurrences(struct finder *finder, const struct repeat *repeat)
{
    const struct tokens *tokens = finder->facts->tokens;
    const uint32_t *positions = finder->repeats.positions + repeat->first;
    finder->insn_count = 0;
    for (uint32_t i = 0; i < repeat->count; i++) {
        uint32_t insn = tokens->insns[positions[i]];
        if (!fact_is(finder->facts, insn, FACT_PARTED)) {
            finder->insns[finder->insn_count++] = insn;
        }
    }
    sort_insns(finder->insns, finder->insn_count);
}

/* --- pricing --- */

/* The site that it costs least to leave in place, or NULL; `cost` in bytes. Of equals the
 * one that is run: it goes on as it did, while the others jump. */
static const struct site *find_stay(const struct facts *facts,
                                    const struct candidate *candidate, int64_t *cost)
{
    const struct site *best = NULL;
    for (uint32_t i = 0; i < candidate->site_count; i++) {
        const struct site *site = &candidate->sites[i];
        if (site->stay == STAY_NEVER) {
            continue;
        }
        int64_t price = site->stay == STAY_CAN ? site->saving : 0;
        if (best != NULL && price > *cost) {
            continue;
        }
        price += stay_cost(facts, &candidate->payload, site);
        bool warmer = best != NULL && price == *cost && best->cold && !site->cold;
        if (best == NULL || price < *cost || warmer) {
            best = site;
            *cost = price;
        }
    }
    return best;
}

/* A helper with a body for all sites, or one of them stays where it is. */
void candidate_price(const struct facts *facts, struct candidate *candidate)
{
    const struct payload *payload = &candidate->payload;
    const struct site *first = NULL;
    uint32_t count = 0;
    int64_t sum = 0, staying = 0;
    candidate->covered = 0;
    candidate->cold = 0;
    for (uint32_t i = 0; i < candidate->site_count; i++) {
        const struct site *site = &candidate->sites[i];
        if (site->stay == STAY_ONLY) {
            continue;
        }
        first = count++ == 0 ? site : first;
        sum += site->saving;
        candidate->cold += site->cold;
        candidate->covered += site->bytes;
    }
    candidate->saving = count > 1 ? sum - cost_helper(facts, payload, first) : 0;
    candidate->stays_at = NO_INDEX;
    const struct site *stay = find_stay(facts, candidate, &staying);
    if (stay != NULL && count > (stay->stay == STAY_CAN) &&
        sum - staying > candidate->saving) {
        candidate->saving = sum - staying;
        candidate->stays_at = stay->insn;
    }
    candidate->merit = cost_merit(candidate->saving, candidate->covered);
}

/* The first `count` of finder->sites. */
static void offer(struct finder *finder, const struct payload *payload, uint32_t count)
{
    struct site *sites = finder->sites;
    struct candidate candidate = {
        .payload = *payload, .sites = sites, .site_count = count};
    candidate_price(finder->facts, &candidate);
    if (candidate.saving >= finder->facts->options->minimum_saving &&
        candidate.saving > 0) {
        candidate.sites = arena_copy(finder->arena, sites, count * sizeof *sites);
        array_push(finder->arena, finder->out, candidate);
    }
}

/* --- sites --- */

static int compare_keyed(const void *left, const void *right)
{
    const struct keyed *a = left, *b = right;
    if (a->key != b->key) {
        return a->key < b->key ? -1 : 1;
    }
    return (a->site.insn > b->site.insn) - (a->site.insn < b->site.insn);
}

static int compare_sharers(const void *left, const void *right)
{
    const struct site *a = &((const struct sharers *)left)->keyed->site;
    const struct site *b = &((const struct sharers *)right)->keyed->site;
    if (a->insn != b->insn) {
        return a->insn < b->insn ? -1 : 1;
    }
    return (a->stay > b->stay) - (a->stay < b->stay);
}

/* Sites in finder->keyed with equal keys can share a helper; each group is a candidate.
 * Keys are numbers without a meaning: groups come in the order of their first sites. */
static void offer_groups(struct finder *finder, const struct payload *payload,
                         uint32_t count, bool mixed)
{
    struct keyed *keyed = finder->keyed;
    uint32_t groups = 0;
    if (mixed) {
        qsort(keyed, count, sizeof *keyed, compare_keyed);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (i == 0 || keyed[i].key != keyed[i - 1].key) {
            finder->sharers[groups++] = (struct sharers){&keyed[i], 0};
        }
        finder->sharers[groups - 1].count++;
    }
    if (groups > 1) {
        qsort(finder->sharers, groups, sizeof *finder->sharers, compare_sharers);
    }
    for (uint32_t g = 0; g < groups; g++) {
        for (uint32_t i = 0; i < finder->sharers[g].count; i++) {
            finder->sites[i] = finder->sharers[g].keyed[i].site;
        }
        offer(finder, payload, finder->sharers[g].count);
    }
}

/* From left to right, as many as there is room for. */
static void offer_payload(struct finder *finder, const struct payload *payload)
{
    const struct facts *facts = finder->facts;
    uint32_t count = 0, free_from = 0;
    bool mixed = false;
    for (uint32_t i = 0; i < finder->insn_count; i++) {
        uint32_t insn = finder->insns[i];
        struct site site;
        if (insn < free_from || !site_make(facts, payload, insn, &site) ||
            !cost_site(facts, payload, &site)) {
            continue;
        }
        free_from = insn + payload->length;
        struct keyed *keyed = &finder->keyed[count++];
        *keyed = (struct keyed){site_key(facts, payload, &site), site};
        mixed |= keyed->key != finder->keyed[0].key;
        if (helper_may_stay(facts, payload, &site, &keyed[1].key)) {
            keyed[1].site = site;
            keyed[1].site.stay = STAY_ONLY;
            count++;
            mixed = true;
        }
    }
    offer_groups(finder, payload, count, mixed);
}

/* A bound, before looking at all the occurrences. Unwind bytes come with row changes
 * only, and hardly ever more than one with an instruction. */
static bool could_pay(const struct facts *facts, uint32_t insn, uint32_t length,
                      uint32_t count, int64_t body)
{
    int64_t frame = facts->at[insn].row_end <= insn + length ? length : 0;
    int64_t bytes = facts_bytes(facts, insn, length);
    return count * (bytes - facts->program->target->call_size + frame) > body;
}

static uint32_t size_of(const struct tokens *tokens, uint32_t position, uint32_t length)
{
    uint32_t size = 0;
    for (uint32_t i = 0; i < length; i++) {
        size += tokens->sizes[position + i];
    }
    return size;
}

/* False: there is none, or it cannot pay. Most repeats are shorter than a call, so that
 * is asked first. */
static bool make_payload(const struct finder *finder, const struct repeat *repeat,
                         uint32_t length, enum payload_kind kind, struct payload *out)
{
    const struct facts *facts = finder->facts;
    uint32_t position = finder->repeats.positions[repeat->first];
    uint32_t insn = facts->tokens->insns[position], count = repeat->count;
    bool tail = kind == PAYLOAD_TAIL;
    if (!tail && !could_pay(facts, insn, length, count, 0)) {
        return false;
    }
    uint32_t size = size_of(facts->tokens, position, length);
    if (!payload_make(facts, insn, length, size, kind, out)) {
        return false;
    }
    int64_t body = out->size != 0 ? out->size : out->stack_size;
    return tail || could_pay(facts, insn, length, count, body);
}

/* --- repeats --- */

/* Payloads of one repeat: their lengths in instructions, 0 where there is none. */
enum cut { CUT_PLAIN, CUT_THUNK, CUT_INNER, CUT_INNER_THUNK, CUT_TAIL, CUT_COUNT };
struct cuts {
    uint32_t lengths[CUT_COUNT];
};

static enum payload_kind kind_of(enum cut cut)
{
    if (cut == CUT_TAIL) {
        return PAYLOAD_TAIL;
    }
    return cut == CUT_THUNK || cut == CUT_INNER_THUNK ? PAYLOAD_THUNK : PAYLOAD_PLAIN;
}

/* `room`: up to the first call. The thunk ends in the last call that is left. */
static void cut_inner(const struct facts *facts, uint32_t insn, uint32_t room,
                      uint32_t length, struct cuts *cuts)
{
    uint32_t inner = facts->inner_end[insn] - insn;
    uint32_t end = inner < length ? inner + 1 : length;
    inner = inner < length ? inner : length;
    while (inner > room && fact_is(facts, insn + inner - 1, FACT_GLUED)) {
        inner--;
    }
    while (end > room + 1 && (fact_is(facts, insn + end - 1, FACT_GLUED) ||
                              !thunk_ends_at(facts, insn + end - 1))) {
        end--;
    }
    cuts->lengths[CUT_INNER] = inner > room + 1 && inner != end ? inner : 0;
    cuts->lengths[CUT_INNER_THUNK] = end > room + 1 ? end : 0;
}

static struct cuts cuts_of(const struct facts *facts, uint32_t insn,
                           uint32_t parent_length, uint32_t length)
{
    struct cuts cuts = {0};
    uint32_t room = facts->call_end[insn] - insn;
    uint32_t plain = room < length ? room : length;
    while (plain > 0 && fact_is(facts, insn + plain - 1, FACT_GLUED)) {
        plain--;
    }
    cuts.lengths[CUT_PLAIN] = plain;
    if (room < length && room + 1 > parent_length &&
        !fact_is(facts, insn + room, FACT_GLUED) && thunk_ends_at(facts, insn + room)) {
        cuts.lengths[CUT_THUNK] = room + 1;
    }
    if (room < length && facts->inner_end != NULL) {
        cut_inner(facts, insn, room, length, &cuts);
    }
    for (uint32_t c = 0; c < CUT_COUNT; c++) {
        cuts.lengths[c] = cuts.lengths[c] > parent_length ? cuts.lengths[c] : 0;
    }
    if (tail_ends_at(facts, insn + length - 1)) {
        cuts.lengths[CUT_TAIL] = length;
    }
    return cuts;
}

static void look_at(struct finder *finder, const struct repeat *repeat,
                    uint32_t parent_length)
{
    const struct facts *facts = finder->facts;
    uint32_t insn = facts->tokens->insns[finder->repeats.positions[repeat->first]];
    struct cuts cuts = cuts_of(facts, insn, parent_length, repeat->length);
    struct payload payloads[CUT_COUNT];
    bool has[CUT_COUNT], any = false;
    for (uint32_t c = 0; c < CUT_COUNT; c++) {
        enum payload_kind kind = kind_of((enum cut)c);
        has[c] = cuts.lengths[c] > 0 &&
                 make_payload(finder, repeat, cuts.lengths[c], kind, &payloads[c]);
        any |= has[c];
    }
    if (!any) {
        return;
    }
    load_occurrences(finder, repeat);
    for (uint32_t c = 0; c < CUT_COUNT; c++) {
        if (has[c]) {
            offer_payload(finder, &payloads[c]);
        }
    }
}

/* Below FULL_DEPTH ancestors every second is looked at, below twice as many every
 * fourth, and so on. */
static bool is_looked_at(uint32_t depth)
{
    uint32_t step = 1;
    for (uint32_t limit = FULL_DEPTH; depth >= limit && step < 1u << 16; limit *= 2) {
        step *= 2;
    }
    return depth % step == 0;
}

/* The repeat's ancestors are on the stack: preorder, and intervals nest. */
static void look_at_all(struct finder *finder, uint32_t minimum)
{
    for (uint32_t i = 0; i < finder->repeats.count; i++) {
        const struct repeat *repeat = &finder->repeats.items[i];
        uint32_t count = finder->ancestors.count;
        while (count > 0 && finder->ancestors.items[count - 1].end <= repeat->first) {
            count--;
        }
        finder->ancestors.count = count;
        uint32_t parent =
            count > 0 ? finder->ancestors.items[count - 1].length : minimum - 1;
        if (is_looked_at(count)) {
            look_at(finder, repeat, parent);
        }
        struct ancestor self = {repeat->first + repeat->count, repeat->length};
        array_push(finder->stage, &finder->ancestors, self);
    }
}

void candidates_look(struct arena *arena, const struct facts *facts,
                     const struct repeats *repeats, uint32_t minimum,
                     struct candidates *out)
{
    struct arena *stage = arena_new();
    struct finder finder = {.arena = arena,
                            .stage = stage,
                            .facts = facts,
                            .repeats = *repeats,
                            .out = out};
    uint32_t most = 1;
    for (uint32_t i = 0; i < repeats->count; i++) {
        most = repeats->items[i].count > most ? repeats->items[i].count : most;
    }
    finder.insns = arena_new_array(stage, uint32_t, most);
    /* One more than there are occurrences for helpers that are there already. */
    finder.keyed = arena_new_array(stage, struct keyed, 2 * (size_t)most + 1);
    finder.sharers = arena_new_array(stage, struct sharers, 2 * (size_t)most + 1);
    finder.sites = arena_new_array(stage, struct site, 2 * (size_t)most + 1);
    look_at_all(&finder, minimum);
    arena_free(stage);
}
