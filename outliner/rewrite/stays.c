/* SPDX-License-Identifier: MIT
 *
 * Unwind rows of tails that stay in place. Others jump to them, with rows that may
 * differ in settled registers (choose/tails.c): the rules of those are left out, from
 * there on until the tail ends.
 */
#include "outliner/rewrite/rewrite.h"

#include <stdlib.h>

static int by_start(const void *left, const void *right)
{
    const struct stay_range *a = left, *b = right;
    if (a->code != b->code)
        return a->code < b->code ? -1 : 1;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return (a->end > b->end) - (a->end < b->end);
}

struct stay_list stays_of_plan(struct arena *arena, const struct program *program,
                               const struct plan *plan)
{
    struct stay_list list = {0};
    for (uint32_t h = 0; h < plan->helper_count; h++) {
        const struct helper *helper = &plan->helpers[h];
        if (!helper->stays || helper->settled == 0)
            continue;
        uint32_t function = program_function_of_insn(program, helper->stays_at);
        const struct insn *first = &program->insns[helper->stays_at];
        const struct insn *last = first + helper->length - 1;
        struct stay_range range = {program->functions[function].code, first->offset,
                                   last->offset + last->length, helper->settled};
        array_push(arena, &list, range);
    }
    if (list.count)
        qsort(list.items, list.count, sizeof *list.items, by_start);
    return list;
}

/* The first range that starts at an offset of a code section, or behind it. */
static uint32_t range_at(const struct stay_list *list, uint32_t code, uint32_t offset)
{
    uint32_t low = 0, high = list->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct stay_range *range = &list->items[middle];
        if (range->code < code || (range->code == code && range->start < offset))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The ranges of one entry, and the entry's changes with theirs. */
struct overlay {
    struct arena *arena;
    const struct program *program;
    const struct fde *fde;
    const struct stay_range *ranges;
    uint32_t range_count;
    struct row_change *items;
    uint32_t count, capacity;
};

/* One tail may be the end of another: all that is settled in either goes. */
static void put_row(struct overlay *overlay, uint32_t offset)
{
    uint64_t settled = 0;
    for (uint32_t i = 0; i < overlay->range_count; i++) {
        const struct stay_range *range = &overlay->ranges[i];
        if (range->start <= offset && offset < range->end)
            settled |= range->settled;
    }
    uint32_t row = row_without(overlay->arena, overlay->program,
                               fde_row_at(overlay->fde, offset), settled);
    if (overlay->count && overlay->items[overlay->count - 1].row == row)
        return;
    struct row_change change = {offset, row};
    array_push(overlay->arena, overlay, change);
}

static int by_offset(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

/* Where rows may change, sorted. */
static uint32_t *places_of(const struct overlay *overlay, uint32_t *count)
{
    const struct fde *fde = overlay->fde;
    uint32_t *places = arena_new_array(overlay->arena, uint32_t,
                                       fde->change_count + 2 * overlay->range_count);
    *count = 0;
    for (uint32_t i = 0; i < fde->change_count; i++)
        places[(*count)++] = fde->changes[i].offset;
    for (uint32_t i = 0; i < overlay->range_count; i++) {
        places[(*count)++] = overlay->ranges[i].start;
        if (overlay->ranges[i].end < fde->start + fde->length)
            places[(*count)++] = overlay->ranges[i].end;
    }
    qsort(places, *count, sizeof *places, by_offset);
    return places;
}

bool stays_change_rows(struct arena *arena, const struct program *program,
                       const struct stay_list *list, uint32_t code,
                       const struct fde *fde, struct fde *out)
{
    uint32_t first = range_at(list, code, fde->start), end = first, count;
    while (end < list->count && list->items[end].code == code &&
           list->items[end].start < fde->start + fde->length)
        end++;
    if (end == first || fde->refusal != REFUSAL_NONE)
        return false;
    struct overlay overlay = {.arena = arena,
                              .program = program,
                              .fde = fde,
                              .ranges = list->items + first,
                              .range_count = end - first};
    uint32_t *places = places_of(&overlay, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (i == 0 || places[i] != places[i - 1])
            put_row(&overlay, places[i]);
    }
    *out = *fde;
    out->changes = overlay.items;
    out->change_count = overlay.count;
    return true;
}
