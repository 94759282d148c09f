/* SPDX-License-Identifier: MIT
 *
 * The choice: a set of candidates whose sites are disjoint, saving as much as possible.
 * Finding the best set is hard (it contains set packing); taking again and again the
 * candidate that saves most *per byte that it covers* comes within 3 % of the optimum
 * on real programs, where "saves most" loses 12 to 20 %: big candidates eat up the
 * sites of many small good ones.
 *
 * Taking one spoils others: some of their sites are gone. Instead of looking for them,
 * a candidate is priced again when its turn comes. If it is no longer the best, it goes
 * back into the heap at its new price. Prices fall (but for a site that was hardly
 * worth it), so nothing better is overlooked.
 *
 * Somebody who sees the whole (relax.c) may know better which sites belong to whom:
 * such a suggestion is taken first, as far as it is worth it, and the rest as ever.
 */
#include "outliner/choose/choose.h"

/* --- heap --- */

/* What decides lies in the heap itself: candidates are large. */
struct rank {
    int64_t merit;
    uint32_t length, cold; /* as in the candidate */
    uint32_t candidate;    /* index */
};

struct heap {
    const struct candidate *candidates;
    struct rank *items; /* the best one first */
    uint32_t count;
};

static struct rank rank_of(const struct heap *heap, uint32_t number)
{
    const struct candidate *candidate = &heap->candidates[number];
    return (struct rank){candidate->merit, candidate->payload.length, candidate->cold,
                         number};
}

/* a is better than b; of equals, the longer one, the one with more sites in cold code,
 * the earlier one. */
static bool is_better(const struct rank *a, const struct rank *b)
{
    if (a->merit != b->merit) {
        return a->merit > b->merit;
    }
    if (a->length != b->length) {
        return a->length > b->length;
    }
    if (a->cold != b->cold) {
        return a->cold > b->cold;
    }
    return a->candidate < b->candidate;
}

static void heap_sink(struct heap *heap, uint32_t at)
{
    struct rank moving = heap->items[at];
    for (;;) {
        uint32_t child = at * 2 + 1;
        if (child >= heap->count) {
            break;
        }
        if (child + 1 < heap->count &&
            is_better(&heap->items[child + 1], &heap->items[child])) {
            child++;
        }
        if (!is_better(&heap->items[child], &moving)) {
            break;
        }
        heap->items[at] = heap->items[child];
        at = child;
    }
    heap->items[at] = moving;
}

/* Of all candidates that save something and have not been chosen. */
static struct heap heap_new(struct arena *arena, const struct candidates *candidates)
{
    struct heap heap = {
        .candidates = candidates->items,
        .items = array_room(arena, candidates->count, sizeof(struct rank)),
    };
    for (uint32_t i = 0; i < candidates->count; i++) {
        if (candidates->items[i].saving > 0 && !candidates->items[i].chosen) {
            heap.items[heap.count++] = rank_of(&heap, i);
        }
    }
    for (uint32_t i = heap.count / 2; i-- > 0;) {
        heap_sink(&heap, i);
    }
    return heap;
}

/* The first one has another price now. */
static void heap_refresh(struct heap *heap)
{
    heap->items[0] = rank_of(heap, heap->items[0].candidate);
    heap_sink(heap, 0);
}

static void heap_pop(struct heap *heap)
{
    heap->items[0] = heap->items[--heap->count];
    if (heap->count > 0) {
        heap_sink(heap, 0);
    }
}

/* --- taking --- */

/* A bit for each instruction. */
struct taken {
    uint8_t *edited; /* it is part of a site */
    uint8_t *stays;  /* it stays where it is, for others to jump to */
};

static bool has_bit(const uint8_t *bits, uint32_t insn, uint32_t length)
{
    for (uint32_t i = insn; i < insn + length; i++) {
        if (bit_get(bits, i)) {
            return true;
        }
    }
    return false;
}

static void set_bits(uint8_t *bits, uint32_t insn, uint32_t length)
{
    for (uint32_t i = insn; i < insn + length; i++) {
        bit_set(bits, i);
    }
}

/* False when nothing had to be dropped. */
static bool drop_taken(const struct taken *taken, struct candidate *candidate)
{
    uint32_t kept = 0, length = candidate->payload.length;
    bool changed = false;
    for (uint32_t i = 0; i < candidate->site_count; i++) {
        struct site site = candidate->sites[i];
        bool stays = site.stay != STAY_ONLY && has_bit(taken->stays, site.insn, length);
        changed |= stays;
        if (has_bit(taken->edited, site.insn, length) ||
            (stays && site.stay == STAY_NEVER)) {
            continue;
        }
        site.stay = stays ? STAY_ONLY : site.stay;
        candidate->sites[kept++] = site;
    }
    changed |= kept < candidate->site_count;
    candidate->site_count = kept;
    return changed;
}

/* Only those are left that become sites. */
static void drop_staying(struct candidate *candidate)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < candidate->site_count; i++) {
        const struct site *site = &candidate->sites[i];
        if (site->stay != STAY_ONLY && site->insn != candidate->stays_at) {
            candidate->sites[kept++] = *site;
        }
    }
    candidate->site_count = kept;
}

static void take(const struct taken *taken, struct candidate *candidate)
{
    uint32_t length = candidate->payload.length;
    drop_staying(candidate);
    for (uint32_t i = 0; i < candidate->site_count; i++) {
        set_bits(taken->edited, candidate->sites[i].insn, length);
    }
    if (candidate->stays_at != NO_INDEX) {
        set_bits(taken->stays, candidate->stays_at, length);
    }
}

/* --- choosing --- */

static bool is_worth_it(const struct facts *facts, const struct candidate *candidate)
{
    return candidate->saving > 0 && candidate->saving >= facts->options->minimum_saving;
}

static void choose_best(struct arena *stage, const struct facts *facts,
                        const struct taken *taken, struct candidates *candidates)
{
    struct heap heap = heap_new(stage, candidates);
    while (heap.count > 0) {
        struct candidate *candidate = &candidates->items[heap.items[0].candidate];
        if (!drop_taken(taken, candidate)) {
            take(taken, candidate);
            candidate->chosen = true;
            heap_pop(&heap);
            continue;
        }
        candidate_price(facts, candidate);
        if (is_worth_it(facts, candidate)) {
            heap_refresh(&heap);
        } else {
            heap_pop(&heap);
        }
    }
}

/* Only the sites that are suggested for the candidate; those that may only stay in
 * place are no sites. */
static void keep_suggested(struct candidate *candidate, const uint8_t *suggested)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < candidate->site_count; i++) {
        if (candidate->sites[i].stay == STAY_ONLY || suggested[i] != 0) {
            candidate->sites[kept++] = candidate->sites[i];
        }
    }
    candidate->site_count = kept;
}

/* The helper is there now: every further site is as good as free. */
static void take_more(const struct taken *taken, const struct candidate *all,
                      struct candidate *candidate)
{
    uint32_t length = candidate->payload.length, at = 0, count = 0;
    struct site *sites = all->sites;
    for (uint32_t i = 0; i < all->site_count; i++) {
        struct site site = sites[i];
        bool is_site =
            at < candidate->site_count && candidate->sites[at].insn == site.insn;
        bool is_free = site.stay != STAY_ONLY && site.insn != candidate->stays_at &&
                       !has_bit(taken->edited, site.insn, length) &&
                       !has_bit(taken->stays, site.insn, length) && site.saving > 0;
        at += is_site;
        if (!is_site && is_free) {
            set_bits(taken->edited, site.insn, length);
            candidate->saving += site.saving;
        }
        if (is_site || is_free) {
            sites[count++] = site;
        }
    }
    candidate->sites = sites;
    candidate->site_count = count;
}

/* The candidates with sites of their own, to be changed. */
static struct candidates copy_candidates(struct arena *stage,
                                         const struct candidates *candidates)
{
    struct candidates copy = {arena_copy(stage, candidates->items,
                                         candidates->count * sizeof *candidates->items),
                              candidates->count, candidates->count};
    for (uint32_t i = 0; i < copy.count; i++) {
        struct candidate *candidate = &copy.items[i];
        candidate->sites = arena_copy(stage, candidate->sites,
                                      candidate->site_count * sizeof *candidate->sites);
        candidate->chosen = false;
    }
    return copy;
}

static void choose_suggested(struct arena *stage, const struct facts *facts,
                             const struct taken *taken, uint8_t *const *suggested,
                             struct candidates *candidates)
{
    struct candidates few = copy_candidates(stage, candidates);
    for (uint32_t i = 0; i < few.count; i++) {
        if (suggested[i] == NULL) {
            few.items[i].saving = 0;
            continue;
        }
        keep_suggested(&few.items[i], suggested[i]);
        candidate_price(facts, &few.items[i]);
        if (!is_worth_it(facts, &few.items[i])) {
            few.items[i].saving = 0;
        }
    }
    choose_best(stage, facts, taken, &few);
    for (uint32_t i = 0; i < few.count; i++) {
        if (few.items[i].chosen) {
            take_more(taken, &candidates->items[i], &few.items[i]);
            candidates->items[i] = few.items[i];
        }
    }
}

static struct taken nothing_taken(struct arena *stage, const struct facts *facts)
{
    size_t bytes = facts->program->insn_count / 8 + 1;
    return (struct taken){arena_alloc(stage, bytes), arena_alloc(stage, bytes)};
}

void choose_in_place(struct arena *stage, const struct facts *facts,
                     struct candidates *candidates)
{
    struct taken taken = nothing_taken(stage, facts);
    choose_best(stage, facts, &taken, candidates);
}

struct candidates choose(struct arena *stage, const struct facts *facts,
                         const struct candidates *candidates, uint8_t *const *suggested)
{
    struct taken taken = nothing_taken(stage, facts);
    struct candidates copy = copy_candidates(stage, candidates);
    if (suggested != NULL) {
        choose_suggested(stage, facts, &taken, suggested, &copy);
    }
    choose_best(stage, facts, &taken, &copy);
    return copy;
}

int64_t chosen_saving(const struct candidates *candidates)
{
    int64_t saving = 0;
    for (uint32_t i = 0; i < candidates->count; i++) {
        saving += candidates->items[i].chosen ? candidates->items[i].saving : 0;
    }
    return saving;
}
