/* SPDX-License-Identifier: MIT
 *
 * The choice with a view of the whole, by Lagrangian relaxation.
 *
 * What makes the choice hard is that sites share the price of their helper. Say that
 * they do not: let every occurrence pay a share of its own, whatever the others do.
 * Then the best disjoint occurrences are found by one pass over the program: the best
 * up to an instruction is the best up to the one before, or an occurrence that ends
 * here and the best up to its start. With shares that add up to the price that is never
 * less than what any plan can save, so it is a bound as well.
 *
 * The shares are then moved from the occurrences that were left out to those that were
 * taken, step by step (a subgradient of the bound): who wants the helper pays for it.
 * After some steps most helpers are either wanted by all of their sites or by none, and
 * what was taken is a suggestion that greedy.c turns into a plan. The best plan of
 * several such suggestions, and of none, is the result.
 *
 * Left out of the bound: joins, and that one tail may stay in place for two helpers.
 *
 * Everything is counted in whole units of 1/256 byte, so that every machine comes to
 * the same plan. Reference: Held, Wolfe, Crowder, "Validation of subgradient
 * optimization", Mathematical Programming 6 (1974).
 */
#include "outliner/choose/choose.h"

#include <string.h>

enum {
    UNIT = 256,
    STEPS = 60,
    TRY_EVERY = 10, /* steps */
    PATIENCE = 4,   /* steps without a better bound before they become smaller */
};

struct occurrence {
    uint32_t start, end; /* instructions */
    uint32_t candidate, site;
    int64_t value; /* units, the share not counted */
    int64_t share;
    bool taken;
};

struct relaxation {
    struct arena *stage;
    const struct facts *facts;
    const struct candidates *candidates;
    struct occurrence *items; /* those of a candidate are contiguous … */
    uint32_t count;
    uint32_t *first;  /* … from here on; candidates->count + 1 of them */
    int64_t *price;   /* of each candidate's helper, units */
    uint32_t *by_end; /* occurrences by the instruction behind them … */
    uint32_t *ends;   /* … from here on; insn_count + 2 of them */
    int64_t *best;    /* by instruction: up to it, units */
    uint32_t *last;   /* by instruction: the occurrence that ends there, or NO_INDEX */
};

/* --- occurrences --- */

static void add_candidate(struct relaxation *relaxation, uint32_t number)
{
    const struct candidate *candidate = &relaxation->candidates->items[number];
    const struct payload *payload = &candidate->payload;
    int64_t sum = 0;
    relaxation->first[number] = relaxation->count;
    for (uint32_t i = 0; i < candidate->site_count; i++) {
        const struct site *site = &candidate->sites[i];
        if (site->stay == STAY_ONLY) {
            continue;
        }
        int64_t value = site->saving;
        sum += value;
        relaxation->items[relaxation->count++] = (struct occurrence){
            .start = site->insn,
            .end = site->insn + payload->length,
            .candidate = number,
            .site = i,
            .value = value * UNIT,
        };
    }
    relaxation->price[number] = (sum - candidate->saving) * UNIT;
}

static void share_evenly(struct relaxation *relaxation, uint32_t number)
{
    uint32_t first = relaxation->first[number], end = relaxation->first[number + 1];
    for (uint32_t i = first; i < end; i++) {
        relaxation->items[i].share = relaxation->price[number] / (end - first);
    }
}

/* A counting sort. */
static void sort_by_end(struct relaxation *relaxation)
{
    uint32_t insns = relaxation->facts->program->insn_count;
    uint32_t *ends = arena_new_array(relaxation->stage, uint32_t, insns + 2u);
    for (uint32_t i = 0; i < relaxation->count; i++) {
        ends[relaxation->items[i].end + 1]++;
    }
    for (uint32_t i = 1; i < insns + 2; i++) {
        ends[i] += ends[i - 1];
    }
    uint32_t *next = arena_copy(relaxation->stage, ends, (insns + 2u) * sizeof *ends);
    relaxation->by_end =
        arena_new_array(relaxation->stage, uint32_t, relaxation->count);
    for (uint32_t i = 0; i < relaxation->count; i++) {
        relaxation->by_end[next[relaxation->items[i].end]++] = i;
    }
    relaxation->ends = ends;
}

static struct relaxation relaxation_new(struct arena *stage, const struct facts *facts,
                                        const struct candidates *candidates)
{
    uint32_t insns = facts->program->insn_count, count = 0;
    for (uint32_t i = 0; i < candidates->count; i++) {
        count += candidates->items[i].site_count;
    }
    struct relaxation relaxation = {
        .stage = stage,
        .facts = facts,
        .candidates = candidates,
        .items = arena_new_array(stage, struct occurrence, count),
        .first = arena_new_array(stage, uint32_t, candidates->count + 1u),
        .price = arena_new_array(stage, int64_t, candidates->count),
        .best = arena_new_array(stage, int64_t, insns + 1u),
        .last = arena_new_array(stage, uint32_t, insns + 1u),
    };
    for (uint32_t i = 0; i < candidates->count; i++) {
        add_candidate(&relaxation, i);
    }
    relaxation.first[candidates->count] = relaxation.count;
    for (uint32_t i = 0; i < candidates->count; i++) {
        share_evenly(&relaxation, i);
    }
    sort_by_end(&relaxation);
    return relaxation;
}

/* --- one step --- */

/* Takes the best disjoint occurrences; returns what they are worth. */
static int64_t take_best(struct relaxation *relaxation)
{
    uint32_t insns = relaxation->facts->program->insn_count;
    for (uint32_t at = 1; at <= insns; at++) {
        int64_t best = relaxation->best[at - 1];
        uint32_t last = NO_INDEX;
        for (uint32_t k = relaxation->ends[at]; k < relaxation->ends[at + 1]; k++) {
            struct occurrence *item = &relaxation->items[relaxation->by_end[k]];
            int64_t worth = relaxation->best[item->start] + item->value - item->share;
            item->taken = false;
            if (worth > best) {
                best = worth;
                last = relaxation->by_end[k];
            }
        }
        relaxation->best[at] = best;
        relaxation->last[at] = last;
    }
    for (uint32_t at = insns; at > 0;) {
        uint32_t last = relaxation->last[at];
        if (last == NO_INDEX) {
            at--;
            continue;
        }
        relaxation->items[last].taken = true;
        at = relaxation->items[last].start;
    }
    return relaxation->best[insns];
}

static uint32_t count_taken(const struct relaxation *relaxation, uint32_t number)
{
    uint32_t count = 0;
    for (uint32_t i = relaxation->first[number]; i < relaxation->first[number + 1];
         i++) {
        count += relaxation->items[i].taken;
    }
    return count;
}

/* The square of the subgradient's length, in units. */
static int64_t slope(const struct relaxation *relaxation)
{
    int64_t sum = 0;
    for (uint32_t c = 0; c < relaxation->candidates->count; c++) {
        int64_t count = relaxation->first[c + 1] - relaxation->first[c];
        int64_t taken = count > 0 ? count_taken(relaxation, c) : 0;
        sum += count > 0 ? taken * (count - taken) * UNIT / count : 0;
    }
    return sum;
}

/* Shares are not negative, and add up to the price. */
static void move_shares_of(struct relaxation *relaxation, uint32_t number, int64_t step)
{
    uint32_t first = relaxation->first[number], end = relaxation->first[number + 1];
    int64_t count = end - first, taken = count_taken(relaxation, number), sum = 0;
    if (taken == 0 || taken == count) {
        return;
    }
    for (uint32_t i = first; i < end; i++) {
        struct occurrence *item = &relaxation->items[i];
        item->share +=
            item->taken ? step * (count - taken) / count : -(step * taken / count);
        item->share = item->share > 0 ? item->share : 0;
        sum += item->share;
    }
    for (uint32_t i = first; sum > 0 && i < end; i++) {
        relaxation->items[i].share =
            relaxation->items[i].share * relaxation->price[number] / sum;
    }
    if (sum == 0) {
        share_evenly(relaxation, number);
    }
}

static void move_shares(struct relaxation *relaxation, int64_t step)
{
    for (uint32_t c = 0; c < relaxation->candidates->count; c++) {
        move_shares_of(relaxation, c, step);
    }
}

/* --- plans --- */

/* The occurrences taken, of helpers that pay with them. */
static uint8_t **suggest(const struct relaxation *relaxation, struct arena *arena)
{
    uint32_t count = relaxation->candidates->count;
    uint8_t **suggested = arena_new_array(arena, uint8_t *, count);
    for (uint32_t c = 0; c < count; c++) {
        int64_t gain = -relaxation->price[c];
        for (uint32_t i = relaxation->first[c]; i < relaxation->first[c + 1]; i++) {
            gain += relaxation->items[i].taken ? relaxation->items[i].value : 0;
        }
        if (gain <= 0) {
            continue;
        }
        suggested[c] = arena_alloc(arena, relaxation->candidates->items[c].site_count);
        for (uint32_t i = relaxation->first[c]; i < relaxation->first[c + 1]; i++) {
            suggested[c][relaxation->items[i].site] = relaxation->items[i].taken;
        }
    }
    return suggested;
}

static void try_suggestion(const struct relaxation *relaxation, struct candidates *plan,
                           int64_t *saving)
{
    uint8_t **suggested = suggest(relaxation, relaxation->stage);
    struct candidates other =
        choose(relaxation->stage, relaxation->facts, relaxation->candidates, suggested);
    int64_t total = chosen_saving(&other);
    if (total > *saving) {
        *saving = total;
        *plan = other;
    }
}

void relax(struct arena *stage, const struct facts *facts, struct candidates *candidates,
           int64_t *bound_out)
{
    *bound_out = 0;
    if (facts->options->effort < 2 || candidates->count == 0) {
        choose_in_place(stage, facts, candidates);
        return;
    }
    struct candidates plan = choose(stage, facts, candidates, NULL);
    struct relaxation relaxation = relaxation_new(stage, facts, candidates);
    int64_t saving = chosen_saving(&plan), least = INT64_MAX, damping = 1;
    uint32_t patience = PATIENCE;
    for (uint32_t step = 1; step <= STEPS; step++) {
        int64_t bound = take_best(&relaxation);
        if (bound < least) {
            least = bound;
            patience = PATIENCE;
        } else if (--patience == 0) {
            damping *= 2;
            patience = PATIENCE;
        }
        if (step % TRY_EVERY == 0) {
            try_suggestion(&relaxation, &plan, &saving);
        }
        int64_t length = slope(&relaxation), gap = bound - saving * UNIT;
        if (length == 0 || gap < UNIT) { /* savings are whole bytes */
            break;
        }
        int64_t stride = gap * UNIT / length / damping;
        if (stride == 0) {
            break;
        }
        move_shares(&relaxation, stride);
    }
    *bound_out = least / UNIT;
    *candidates = plan;
}
