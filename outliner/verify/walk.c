/* SPDX-License-Identifier: MIT
 *
 * One code section of `before` in step with its counterpart. Both are cut where their
 * function symbols begin and end, so that a difference shows where it is, and so that
 * padding between functions, which may differ, can be told from code, which may not.
 *
 * The cuts are pairs (old offset, new offset), from the n-th function symbol of the one
 * to the n-th of the other. Two cuts may have the same old offset: the end of a
 * function and the start of the next one, with padding between them in the output only.
 */
#include "outliner/verify/verify.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

static int by_place(const void *a, const void *b)
{
    const struct range *x = a, *y = b;
    if (x->section != y->section)
        return x->section < y->section ? -1 : 1;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static bool is_function(const struct symbol *symbol)
{
    return (symbol->type == STT_FUNC || symbol->type == STT_GNU_IFUNC) &&
           symbol->size > 0 && symbol->section != SECTION_UNDEFINED &&
           symbol->section < SECTION_COMMON;
}

/* Aliases are one range: their number may change, when a local gets a global one. */
static void drop_equal(struct ranges *ranges)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < ranges->count; i++) {
        if (kept == 0 || by_place(&ranges->items[kept - 1], &ranges->items[i]) != 0)
            ranges->items[kept++] = ranges->items[i];
    }
    ranges->count = kept;
}

/* Of the whole object, sorted. */
static struct ranges find_ranges(struct arena *arena, const struct object *object)
{
    struct ranges ranges = {arena_new_array(arena, struct range, object->symbol_count),
                            0};
    for (uint32_t i = 1; i < object->symbol_count; i++) {
        const struct symbol *symbol = &object->symbols[i];
        if (is_function(symbol))
            ranges.items[ranges.count++] =
                (struct range){symbol->section, (uint32_t)symbol->value,
                               (uint32_t)(symbol->value + symbol->size)};
    }
    if (ranges.count)
        qsort(ranges.items, ranges.count, sizeof *ranges.items, by_place);
    drop_equal(&ranges);
    return ranges;
}

static struct ranges ranges_in(const struct ranges *all, uint32_t section)
{
    uint32_t low = 0, high = all->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (all->items[middle].section < section)
            low = middle + 1;
        else
            high = middle;
    }
    struct ranges ranges = {all->items + low, 0};
    while (low + ranges.count < all->count &&
           ranges.items[ranges.count].section == section)
        ranges.count++;
    return ranges;
}

/* --- cuts --- */

struct cuts {
    struct pair *items;
    uint32_t count;
};

static int by_before(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    if (x->before != y->before)
        return x->before < y->before ? -1 : 1;
    return (x->after > y->after) - (x->after < y->after);
}

static struct cuts make_cuts(struct arena *arena, const struct ranges *before,
                             const struct ranges *after, struct pair whole)
{
    struct cuts cuts = {
        arena_new_array(arena, struct pair, 2 * (size_t)before->count + 2), 0};
    cuts.items[cuts.count++] = (struct pair){0, 0};
    cuts.items[cuts.count++] = whole;
    for (uint32_t i = 0; i < before->count; i++) {
        const struct range *old = &before->items[i], *new = &after->items[i];
        cuts.items[cuts.count++] = (struct pair){old->start, new->start};
        if (old->end > old->start)
            cuts.items[cuts.count++] = (struct pair){old->end, new->end};
    }
    qsort(cuts.items, cuts.count, sizeof *cuts.items, by_before);
    return cuts;
}

/* --- one stretch between two cuts --- */

/* Offset behind the last instruction of `before` in [start, end) that is not padding.
 */
static uint32_t end_of_code(const struct walk *walk, uint32_t start, uint32_t end)
{
    struct view view;
    struct spot at = walk->before;
    uint32_t last = start;
    for (at.offset = start; at.offset < end; at.offset += view.insn.length) {
        if (!view_at(walk->verify, &walk->verify->before, at, &view))
            return end;
        if (!(view.insn.traits & INSN_NOP))
            last = at.offset + view.insn.length;
    }
    return last;
}

static bool check_padding(struct walk *walk, uint32_t end, struct error *err)
{
    struct view view;
    for (; walk->after.offset < end; walk->after.offset += view.insn.length) {
        if (!view_at(walk->verify, &walk->verify->after, walk->after, &view) ||
            !(view.insn.traits & INSN_NOP))
            return verify_fail(walk->verify, walk->before, walk->after, err,
                               "there is more code than there was");
    }
    return walk->after.offset == end ||
           verify_fail(walk->verify, walk->before, walk->after, err,
                       "an instruction lies across the end of its function");
}

/* No-ops of the output before an instruction that is none. An unwinder finds there what
 * it finds behind them. */
static bool pass_padding(struct walk *walk, uint32_t end, struct error *err)
{
    struct view before, after;
    if (!view_at(walk->verify, &walk->verify->before, walk->before, &before) ||
        (before.insn.traits & INSN_NOP))
        return true;
    while (walk->after.offset < end &&
           view_at(walk->verify, &walk->verify->after, walk->after, &after) &&
           (after.insn.traits & INSN_NOP) && after.reloc_count == 0) {
        if (!walk->verify->dropped && !walk_check_row(walk, NOT_KEPT, err))
            return false;
        walk->after.offset += after.insn.length;
    }
    return true;
}

/* Positions among no-ops that have gone mean what is behind them. */
static void note_gone(struct walk *walk, struct section_map *map, uint32_t before,
                      uint32_t first, uint32_t end)
{
    struct image gone = {before, first, end};
    if (first < end)
        array_push(walk->verify->arena, &map->gone, gone);
}

static void note_end(struct walk *walk, struct section_map *map)
{
    struct image end = {walk->before.offset, walk->after.offset, walk->after.offset};
    array_push(walk->verify->arena, &map->ends, end);
}

/* All of `before` up to `end` decodes: into walk->views, which is empty. */
static bool decodes(struct walk *walk, uint32_t start, uint32_t end)
{
    const struct section *section = spot_section(&walk->verify->before, walk->before);
    uint32_t reloc = section_reloc_at(section, start);
    struct spot at = walk->before;
    at.offset = start;
    while (at.offset < end) {
        struct view view = {.at = at, .bytes = section->data.at + at.offset};
        if (!decoder_decode(walk->verify->decoder, view.bytes,
                            section->data.size - at.offset, at.offset, &view.insn) ||
            view.insn.length == 0)
            return false;
        at.offset += view.insn.length;
        uint32_t first = reloc;
        while (reloc < section->reloc_count &&
               section->relocs[reloc].offset < at.offset)
            reloc++;
        view.reloc_count = reloc - first;
        view.relocs = view.reloc_count ? &section->relocs[first] : NULL;
        array_push(walk->verify->arena, &walk->views, view);
    }
    return at.offset == end;
}

/* Behind functions without their padding a gap may need some to keep its alignment, that
 * it did not need where they had it: no-ops from here up to `end`. */
static bool pass_new_padding(struct walk *walk, uint32_t end)
{
    struct view view;
    while (walk->before.offset < end &&
           view_at(walk->verify, &walk->verify->before, walk->before, &view) &&
           (view.insn.traits & INSN_NOP) && view.reloc_count == 0)
        walk->before.offset += view.insn.length;
    return walk->before.offset == end;
}

/* What may be data. Padding may have grown in front of a gap. */
static bool walk_island(struct walk *walk, struct section_map *map, struct pair start,
                        struct pair end, bool gap, struct error *err)
{
    uint32_t size = end.before - start.before, room = end.after - start.after;
    walk->before.offset = start.before;
    if (gap && walk->verify->dropped && room < size &&
        pass_new_padding(walk, end.before - room)) {
        start.before = walk->before.offset;
        size = room;
    }
    walk->before.offset = start.before;
    walk->after.offset = start.after;
    if (room < size || (!gap && room != size))
        return verify_fail(walk->verify, walk->before, walk->after, err,
                           "data among code has another size");
    if (!check_padding(walk, end.after - size, err))
        return false;
    struct island island = {start.before, walk->after.offset, size, gap};
    if (!verify_island(walk->verify, &island, walk->before, walk->after, map, err))
        return false;
    walk->before.offset = end.before;
    walk->after.offset = end.after;
    note_end(walk, map);
    return true;
}

/* The code that the walk has the views of; none between functions. */
static bool walk_code(struct walk *walk, struct section_map *map, struct pair start,
                      struct pair end, uint32_t code_end, struct error *err)
{
    walk->before.offset = start.before;
    walk->after.offset = start.after;
    for (uint32_t i = 0;; i++) {
        i = walk_over_kept(walk, map, i, end);
        if (walk->before.offset >= code_end)
            break;
        const struct view *view = &walk->views.items[i];
        uint32_t first = walk->after.offset;
        if (walk->verify->padded && !pass_padding(walk, end.after, err))
            return false;
        note_gone(walk, map, walk->before.offset, first, walk->after.offset);
        if (walk->depth == 0) {
            if (walk->after.offset >= end.after)
                return verify_fail(walk->verify, walk->before, walk->after, err,
                                   "instructions are missing");
            map_note(walk->verify->arena, map, walk->before.offset, walk->after.offset);
        }
        map_note_taken(map, &view->insn);
        if (!walk_over(walk, view, err))
            return false;
    }
    if (walk->depth != 0 || walk->before.offset != code_end)
        return verify_fail(walk->verify, walk->before, walk->after, err,
                           "a helper goes on behind the end of a function");
    note_end(walk, map);
    if (code_end == end.before)
        note_gone(walk, map, code_end, walk->after.offset, end.after);
    walk->before.offset = end.before;
    return check_padding(walk, end.after, err);
}

static bool same_stretch(const struct walk *walk, struct pair start, struct pair end)
{
    uint32_t size = end.before - start.before;
    const struct verify *verify = walk->verify;
    return end.after - start.after == size &&
           memcmp(spot_section(&verify->before, walk->before)->data.at + start.before,
                  spot_section(&verify->after, walk->after)->data.at + start.after,
                  size) == 0;
}

/* The function has kept its bytes. What it refers to is excused if that turns out to be
 * data: see is_excused(). */
static void note_suspect(struct walk *walk, struct pair start, struct pair end,
                         uint32_t pending)
{
    struct verify *verify = walk->verify;
    struct suspect suspect = {
        .island = {start.before, start.after, end.before - start.before, false},
        .old = walk->before,
        .new = walk->after
    };
    if (verify->pending.count == pending)
        return;
    array_push(verify->arena, &verify->suspects, suspect);
    for (uint32_t i = pending; i < verify->pending.count; i++)
        verify->pending.items[i].suspect = verify->suspects.count;
}

/* What lies between functions is nobody's code; a function is code if it decodes. One
 * that has kept its bytes may hold data all the same. */
static bool walk_stretch(struct walk *walk, struct section_map *map, struct pair start,
                         struct pair end, struct error *err)
{
    bool gap = start.before >= walk->function_end;
    walk->views.count = 0;
    walk->end = gap ? end.before : walk->function_end;
    if (gap && end_of_code(walk, start.before, end.before) == start.before)
        return walk_code(walk, map, start, end, start.before, err);
    if (gap || !decodes(walk, start.before, end.before))
        return walk_island(walk, map, start, end, gap, err);
    uint32_t pending = walk->verify->pending.count;
    if (!walk_code(walk, map, start, end, end.before, err))
        return false;
    /* Where there are mapping symbols, they say what is data. */
    if (!walk->verify->target->code_mark && same_stretch(walk, start, end))
        note_suspect(walk, start, end, pending);
    return true;
}

/* --- one section --- */

static void note_effects(struct walk *walk, const struct insn *insn)
{
    walk->written |= insn->defs;
    walk->below_sp |= (insn->traits & INSN_BELOW_SP) != 0;
}

/* walk->views has all of the function. */
static bool has_views(const struct walk *walk)
{
    uint32_t count = walk->views.count;
    if (count == 0 || walk->views.items[0].at.offset != walk->function_start)
        return false;
    const struct view *last = &walk->views.items[count - 1];
    return last->at.offset + last->insn.length == walk->function_end;
}

static void know_own_part(struct walk *walk)
{
    struct view view;
    struct spot at = walk->before;
    for (at.offset = walk->function_start; at.offset < walk->function_end;
         at.offset += view.insn.length) {
        if (!view_at(walk->verify, &walk->verify->before, at, &view))
            return;
        note_effects(walk, &view.insn);
    }
}

/* Some instruction of the stretch touches memory below SP. */
static bool looks_below(const struct walk *walk, struct stretch_of_code stretch)
{
    struct view view;
    struct spot at = stretch.start;
    for (; at.offset < stretch.end; at.offset += view.insn.length) {
        if (!view_at(walk->verify, &walk->verify->before, at, &view))
            return false;
        if (view.insn.traits & INSN_BELOW_SP)
            return true;
    }
    return false;
}

/* What an instruction of the function around does anywhere in it matters at each site.
 */
void walk_know_function(struct walk *walk)
{
    struct spot start = walk->before;
    struct stretch_of_code other;
    if (walk->is_known)
        return;
    walk->is_known = true;
    walk->written = 0;
    walk->below_sp = false;
    if (!has_views(walk))
        know_own_part(walk);
    for (uint32_t i = 0; has_views(walk) && i < walk->views.count; i++)
        note_effects(walk, &walk->views.items[i].insn);
    start.offset = walk->function_start;
    if (verify_other_part(walk->verify, start, &other))
        walk->below_sp |= looks_below(walk, other);
}

/* Overlapping function symbols count as one function; between functions, the gap does.
 */
static void enter_function(struct walk *walk, const struct ranges *ranges,
                           uint32_t *next, uint32_t offset)
{
    if (offset < walk->function_end)
        return;
    walk->function_start = walk->function_end = offset;
    while (*next < ranges->count && ranges->items[*next].start < offset)
        ++*next;
    for (uint32_t i = *next; i < ranges->count; i++) {
        const struct range *range = &ranges->items[i];
        bool joined = range->start == offset || range->start < walk->function_end;
        if (!joined)
            break;
        if (range->end > walk->function_end)
            walk->function_end = range->end;
    }
    walk->is_known = walk->is_told_known = false;
}

static bool walk_section(struct walk *walk, struct section_map *map,
                         const struct ranges *ranges, const struct cuts *cuts,
                         struct error *err)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i + 1 < cuts->count; i++) {
        struct pair start = cuts->items[i], end = cuts->items[i + 1];
        walk->before.offset = start.before;
        walk->after.offset = start.after;
        if (end.after < start.after)
            return verify_fail(walk->verify, walk->before, walk->after, err,
                               "functions are in another order");
        enter_function(walk, ranges, &next, start.before);
        if (!walk_stretch(walk, map, start, end, err))
            return false;
        walk->before.offset = end.before;
        note_end(walk, map);
    }
    return true;
}

bool verify_section(struct verify *verify, const struct changed *changed,
                    struct error *err)
{
    struct spot old = changed->old, new = changed->new;
    struct walk walk = {
        .verify = verify, .before = old, .after = new, .views = verify->views};
    uint64_t old_size = spot_section(&verify->before, old)->data.size;
    uint64_t new_size = spot_section(&verify->after, new)->data.size;
    struct section_map *map = &verify->maps[old.object][old.section];
    map_prepare(verify->arena, map, (uint32_t)old_size);
    if (changed->before.count != changed->after.count)
        return verify_fail(verify, old, new, err, "%u functions have become %u",
                           changed->before.count, changed->after.count);
    struct pair whole = {(uint32_t)old_size, (uint32_t)new_size};
    struct cuts cuts =
        make_cuts(verify->arena, &changed->before, &changed->after, whole);
    bool good = walk_section(&walk, map, &changed->before, &cuts, err);
    verify->views = walk.views;
    verify->views.count = 0;
    return good && verify_distances(verify, old, new, err);
}

void verify_find_changes(struct verify *verify, uint32_t number, struct changes *out)
{
    const struct object *object = verify->before.objects->items[number];
    struct ranges before = find_ranges(verify->arena, object);
    struct ranges after =
        find_ranges(verify->arena, verify->after.objects->items[number]);
    for (uint32_t s = 1; s < object->section_count; s++) {
        if (!section_is_code(&object->sections[s]) || verify->maps[number][s].identity)
            continue;
        uint32_t to = verify->after_of[number][s];
        struct changed changed = {.old = {number, s, 0},
                                  .new = {number, to, 0},
                                  .before = ranges_in(&before, s),
                                  .after = ranges_in(&after, to)};
        array_push(verify->arena, out, changed);
    }
}
