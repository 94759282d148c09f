/* SPDX-License-Identifier: MIT
 *
 * Debug information. Read from both sides, it must say of each piece of kept code what it
 * said before. The fields that hold positions are in the same places on both sides, so
 * they are compared one by one; all other bytes must be what they were. What has been
 * taken back (an address of 0, an empty range, no place) is never wrong.
 *
 * By what rule a position may have moved is this file's own: to where its instruction is
 * now; or, when that instruction is in a helper, to the next one of the function that is
 * not. The place of a variable may also end one byte into a call that is now where one of
 * its instructions was.
 *
 * Where no-ops were dropped, `before` is the result. Nothing but empty ranges has been
 * taken back then, and a position has moved only from among no-ops to behind them.
 */
#include "outliner/verify/verify.h"

#include <string.h>

static const struct section *section_of(const struct side *side, uint32_t object,
                                        uint32_t section)
{
    return &side->objects->items[object]->sections[section];
}

bool is_debug_read(const struct verify *verify, uint32_t object, uint32_t section)
{
    const struct section *of = section_of(&verify->before, object, section);
    return section_is_debug(of) &&
           verify->before.debug[object].refused[of->unit] == REFUSAL_NONE;
}

/* --- positions --- */

/* The first position at or behind an old one that is known in the output. */
static uint32_t next_known(const struct section_map *map, uint32_t before)
{
    uint32_t at = before;
    while (at < map->size && !map_is_start(map, at) && !is_known_end(map, at))
        at++;
    return at;
}

bool debug_positions_agree(const struct verify *verify, struct spot before,
                           struct spot after)
{
    const struct section_map *map = &verify->maps[before.object][before.section];
    if (positions_agree(verify, before, after))
        return true;
    /* GCC ends the place of what a call destroys one byte before the call's end. */
    struct view old, new;
    if (map->walked && before.offset <= map->size &&
        views_around(verify, before, after, &old, &new))
        return true;
    if (verify->dropped)
        return gone_agrees(verify, before, after);
    if (!map->walked || before.offset > map->size ||
        verify->after_of[before.object][before.section] != after.section)
        return false;
    before.offset = next_known(map, before.offset);
    return positions_agree(verify, before, after);
}

/* `after` is the start, or one byte into, what an instruction of [start, end) has become:
 * a tail that others jump to, or a call. */
static bool ends_in_call(const struct verify *verify, struct spot start, uint32_t end,
                         uint32_t after)
{
    const struct section_map *map = &verify->maps[start.object][start.section];
    if (map->identity)
        return start.offset <= after && after < end;
    for (uint32_t at = start.offset; map->walked && at < end; at++)
        if (map_is_start(map, at) &&
            (map_start(map, at) == after || map_start(map, at) + 1 == after))
            return true;
    return false;
}

/* --- what may differ --- */

/* Bytes that hold positions, and relocations that do. */
struct mask {
    bool **bytes; /* by section of `before` */
    bool **relocs;
};

static void mask_field(const struct mask *mask, const struct debug_field *field)
{
    if (field->section == NO_INDEX)
        return;
    memset(mask->bytes[field->section] + field->offset, true, field->size);
    if (field->reloc != NO_INDEX)
        mask->relocs[field->section][field->reloc] = true;
}

static struct mask make_mask(struct verify *verify, uint32_t object)
{
    const struct object *of = verify->before.objects->items[object];
    const struct debug *debug = &verify->before.debug[object];
    struct mask mask = {arena_new_array(verify->arena, bool *, of->section_count),
                        arena_new_array(verify->arena, bool *, of->section_count)};
    for (uint32_t s = 1; s < of->section_count; s++) {
        if (!section_is_debug(&of->sections[s]))
            continue;
        mask.bytes[s] = arena_new_array(verify->arena, bool, of->sections[s].data.size);
        mask.relocs[s] = arena_new_array(verify->arena, bool, of->sections[s].reloc_count);
    }
    for (uint32_t i = 0; i < debug->point_count; i++) {
        mask_field(&mask, &debug->points[i].field);
        mask_field(&mask, &debug->points[i].index);
        mask_field(&mask, &debug->points[i].view);
    }
    for (uint32_t i = 0; i < debug->range_count; i++) {
        const struct debug_range *range = &debug->ranges[i];
        if (range->start_bound != DEBUG_ELSEWHERE)
            mask_field(&mask, &range->start_field);
        mask_field(&mask, &range->end_field);
        mask_field(&mask, &range->start_view);
        mask_field(&mask, &range->end_view);
    }
    for (uint32_t i = 0; i < debug->expression_count; i++)
        memset(mask.bytes[debug->expressions[i].section] + debug->expressions[i].offset,
               true, debug->expressions[i].size);
    return mask;
}

static bool differs(const struct verify *verify, struct spot old, const char *what,
                    struct error *err)
{
    struct spot new = old;
    new.section = verify->after_of[old.object][old.section];
    return verify_fail(verify, old, new, err, "debug information: %s", what);
}

static bool bytes_agree(const struct verify *verify, const struct mask *mask,
                        struct spot old, struct error *err)
{
    const struct section *a = spot_section(&verify->before, old);
    const struct section *b = section_of(&verify->after, old.object,
                                         verify->after_of[old.object][old.section]);
    if (a->data.size != b->data.size)
        return differs(verify, old, "another size", err);
    for (uint64_t i = 0; a->data.at && i < a->data.size; i++) {
        if (a->data.at[i] == b->data.at[i] || mask->bytes[old.section][i])
            continue;
        old.offset = (uint32_t)i;
        return differs(verify, old, "other bytes", err);
    }
    return true;
}

/* Relocations that hold no position of code mean what they meant. Those that do may be
 * gone; if not, they have been read. */
static bool links_agree(struct verify *verify, const struct mask *mask, struct spot old,
                        struct error *err)
{
    struct spot new = old;
    new.section = verify->after_of[old.object][old.section];
    const struct section *a = spot_section(&verify->before, old);
    const struct section *b = spot_section(&verify->after, new);
    uint32_t j = 0;
    for (uint32_t i = 0; i < a->reloc_count; i++) {
        bool there = j < b->reloc_count && b->relocs[j].offset == a->relocs[i].offset;
        old.offset = (uint32_t)a->relocs[i].offset;
        if (!there && mask->relocs[old.section][i])
            continue;
        if (!there || b->relocs[j].type != a->relocs[i].type)
            return differs(verify, old, "other relocations", err);
        struct meaning meaning =
            meaning_of(&verify->before, old.object, &a->relocs[i], 0);
        bool lines = meaning.placed &&
                     strcmp(section_of(&verify->before, meaning.object, meaning.section)
                                ->name,
                            ".debug_line") == 0;
        if (!mask->relocs[old.section][i] && !lines &&
            !verify_reloc(verify, old, new, &a->relocs[i], &b->relocs[j], 0, err))
            return false;
        j++;
    }
    return j == b->reloc_count || differs(verify, old, "more relocations", err);
}

/* --- fields --- */

static bool same_place(const struct verify *verify, uint32_t object,
                       const struct debug_field *a, const struct debug_field *b)
{
    if (a->section == NO_INDEX || b->section == NO_INDEX)
        return a->section == b->section;
    return verify->after_of[object][a->section] == b->section && a->offset == b->offset;
}

/* The counterpart of the point: it holds the same attribute. */
static bool same_point(const struct verify *verify, uint32_t object,
                       const struct debug_point *a, const struct debug_point *b)
{
    if (a->role != b->role || !same_place(verify, object, &a->index, &b->index))
        return false;
    return a->index.section != NO_INDEX ||
           same_place(verify, object, &a->field, &b->field);
}

/* The instructions that end there are the same one. */
static bool ends_agree(const struct verify *verify, struct spot before,
                       struct spot after)
{
    const struct section_map *map = &verify->maps[before.object][before.section];
    if (!map->walked || before.offset > map->size)
        return false;
    for (uint32_t back = 1; back <= MOST_INSN_BYTES && back <= before.offset; back++) {
        struct spot old = before, new = after;
        old.offset -= back;
        new.offset = map_start(map, old.offset);
        struct view x, y;
        if (new.offset != NO_INDEX)
            return view_at(verify, &verify->before, old, &x) && x.insn.length == back &&
                   view_at(verify, &verify->after, new, &y) &&
                   new.offset + y.insn.length == after.offset;
    }
    return false;
}

/* The call at an old position is the last thing that a helper does; what enters that
 * stands for it. */
static bool is_entered(const struct verify *verify, struct spot before,
                       struct spot after)
{
    const struct section_map *map = &verify->maps[before.object][before.section];
    if (!map->walked || before.offset >= map->size ||
        map_is_start(map, before.offset) ||
        verify->after_of[before.object][before.section] != after.section)
        return false;
    while (before.offset > 0 && !map_is_start(map, before.offset))
        before.offset--;
    struct view view;
    return map_start(map, before.offset) == after.offset &&
           view_at(verify, &verify->after, after, &view) &&
           (view.insn.flow == FLOW_JUMP || view.insn.flow == FLOW_CALL);
}

static bool point_agrees(const struct verify *verify, uint32_t object,
                         const struct debug_point *a, const struct debug_point *b)
{
    struct spot before = {object, a->code, a->position};
    struct spot after = {object, b->code, b->position};
    bool moved_index = !same_place(verify, object, &a->field, &b->field);
    if (moved_index) /* to what is no place of a call */
        return a->role != DEBUG_START && a->role != DEBUG_ENTRY;
    if (a->role == DEBUG_START)
        return debug_positions_agree(verify, before, after);
    if (verify->dropped)
        return positions_agree(verify, before, after) ||
               (a->role == DEBUG_LABEL && gone_agrees(verify, before, after)) ||
               (a->role == DEBUG_RETURN && ends_agree(verify, before, after));
    return positions_agree(verify, before, after) ||
           (a->role == DEBUG_RETURN && ends_agree(verify, before, after)) ||
           (a->role == DEBUG_CALL && is_entered(verify, before, after));
}

static bool points_agree(const struct verify *verify, uint32_t object,
                         struct error *err)
{
    const struct debug *a = &verify->before.debug[object];
    const struct debug *b = &verify->after.debug[object];
    uint32_t j = 0;
    for (uint32_t i = 0; i < a->point_count; i++) {
        const struct debug_point *point = &a->points[i];
        struct spot spot = {object, point->field.section, point->field.offset};
        bool there =
            j < b->point_count && same_point(verify, object, point, &b->points[j]);
        bool may_go = point->role != DEBUG_START && point->role != DEBUG_ENTRY &&
                      !verify->dropped;
        if (!there && !may_go)
            return differs(verify, spot, "an address is gone", err);
        if (there && !point_agrees(verify, object, point, &b->points[j]))
            return differs(verify, spot, "an address has become another", err);
        j += there;
    }
    return j == b->point_count ||
           differs(verify, (struct spot){object, b->points[j].field.section, 0},
                   "there are more addresses", err);
}

static bool range_agrees(const struct verify *verify, uint32_t object,
                         const struct debug_range *a, const struct debug_range *b)
{
    struct spot start = {object, a->code, a->start}, end = {object, a->code, a->end};
    struct spot new_start = {object, b->code, b->start},
                new_end = {object, b->code, b->end};
    const struct debug_range *result = verify->dropped ? a : b;
    if (result->start == result->end)
        return true;
    if (!debug_positions_agree(verify, start, new_start))
        return false;
    return debug_positions_agree(verify, end, new_end) ||
           (a->location && !verify->dropped &&
            ends_in_call(verify, start, a->end, b->end));
}

static bool ranges_agree(const struct verify *verify, uint32_t object,
                         struct error *err)
{
    const struct debug *a = &verify->before.debug[object];
    const struct debug *b = &verify->after.debug[object];
    for (uint32_t i = 0; i < a->range_count; i++) {
        const struct debug_range *range = &a->ranges[i];
        struct spot spot = {object, range->end_field.section, range->end_field.offset};
        if (i >= b->range_count ||
            !same_place(verify, object, &range->end_field, &b->ranges[i].end_field))
            return differs(verify, spot, "a range is gone", err);
        if (!range_agrees(verify, object, range, &b->ranges[i]))
            return differs(verify, spot, "a range has become another", err);
    }
    return a->range_count == b->range_count ||
           differs(verify, (struct spot){object, 0, 0}, "there are more ranges", err);
}

/* A place is as it was, or not there any more. */
static bool expressions_agree(const struct verify *verify, uint32_t object,
                              struct error *err)
{
    const struct debug *a = &verify->before.debug[object];
    const struct debug *b = &verify->after.debug[object];
    uint32_t j = 0;
    for (uint32_t i = 0; i < a->expression_count; i++) {
        const struct debug_expression *old = &a->expressions[i];
        struct spot spot = {object, old->section, old->offset};
        const struct debug_expression *new =
            j < b->expression_count ? &b->expressions[j] : NULL;
        if (!new || verify->after_of[object][old->section] != new->section ||
            old->offset != new->offset)
            continue;
        const uint8_t *x = section_of(&verify->before, object, old->section)->data.at;
        const uint8_t *y = section_of(&verify->after, object, new->section)->data.at;
        if (old->size != new->size ||
            memcmp(x + old->offset, y + new->offset, old->size) != 0)
            return differs(verify, spot, "a place has become another", err);
        j++;
    }
    return j == b->expression_count ||
           differs(verify, (struct spot){object, 0, 0}, "there are more places", err);
}

static bool check_object(struct verify *verify, uint32_t object, struct error *err)
{
    const struct object *of = verify->before.objects->items[object];
    const struct debug *a = &verify->before.debug[object];
    const struct debug *b = &verify->after.debug[object];
    for (uint32_t u = 0; u < of->unit_count; u++)
        if (a->refused[u] == REFUSAL_NONE && b->refused[u] != REFUSAL_NONE)
            return fail(err, &(struct place){.file = of->units[u].name},
                        "internal error: debug information cannot be read any more: %s",
                        b->whys[u]);
    struct mask mask = make_mask(verify, object);
    for (uint32_t s = 1; s < of->section_count; s++) {
        bool lines = strcmp(of->sections[s].name, ".debug_line") == 0;
        struct spot spot = {object, s, 0};
        if (is_debug_read(verify, object, s) && !lines &&
            (!bytes_agree(verify, &mask, spot, err) ||
             !links_agree(verify, &mask, spot, err)))
            return false;
    }
    return points_agree(verify, object, err) && ranges_agree(verify, object, err) &&
           expressions_agree(verify, object, err) &&
           verify_debug_lines(verify, object, err);
}

bool verify_debug(struct verify *verify, struct error *err)
{
    for (uint32_t i = verify->first; i < verify->end; i++)
        if (!check_object(verify, i, err))
            return false;
    return true;
}
