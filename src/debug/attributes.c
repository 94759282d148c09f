/* SPDX-License-Identifier: MIT
 *
 * What an entry says of code: ranges (low_pc with high_pc, or a list), single positions,
 * and places of variables. An attribute that holds an address of code in a way that is
 * not listed here is not understood, and refuses the unit.
 */
#include "internal.h"

#include <string.h>

static const struct value *find(const struct value *values, uint32_t count,
                                uint16_t name)
{
    for (uint32_t i = 0; i < count; i++)
        if (values[i].name == name)
            return &values[i];
    return NULL;
}

/* The value is an offset into a debug section; DWARF 3 and before say so by a relocated
 * number. */
static bool is_link(const struct value *value)
{
    return value->form == FORM_SEC_OFFSET || value->form == FORM_DATA4 ||
           value->form == FORM_DATA8;
}

static uint32_t follow(struct reader *reader, const struct unit_of *unit,
                       const struct value *value, uint64_t *to)
{
    return is_link(value)
               ? read_link(reader, unit->section, value->offset, value->size, to)
               : NO_INDEX;
}

bool pool_place(struct reader *reader, const struct unit_of *unit, uint64_t index,
                struct place_of *place, struct debug_field *field)
{
    if (unit->addr_section == NO_INDEX)
        return false;
    uint64_t size = reader->object->sections[unit->addr_section].data.size;
    if (unit->addr_base > size || index >= (size - unit->addr_base) / 8)
        return false;
    *place = read_place(reader, unit->addr_section, unit->addr_base + 8 * index, field);
    return true;
}

static bool address_of(struct reader *reader, const struct unit_of *unit,
                       const struct value *value, struct place_of *place,
                       struct debug_field *field)
{
    if (form_is_index(value->form))
        return pool_place(reader, unit, value->number, place, field);
    *place = read_place(reader, unit->section, value->offset, field);
    return true;
}

static struct debug_field field_of(const struct unit_of *unit, const struct value *value)
{
    return (struct debug_field){unit->section, value->offset, NO_INDEX,
                                (uint8_t)value->size,
                                value->form == FORM_UDATA || value->form == FORM_ADDRX ||
                                    value->form == FORM_GNU_ADDR_INDEX};
}

/* --- the first entry of a unit --- */

static bool take_base(struct reader *reader, const struct unit_of *unit,
                      const struct value *value, uint32_t *section, uint64_t *base)
{
    if (!value)
        return true;
    *section = follow(reader, unit, value, base);
    return *section != NO_INDEX;
}

bool root_read(struct reader *reader, struct unit_of *unit, const struct value *values,
               uint32_t count)
{
    uint32_t number = reader->object->sections[unit->section].unit;
    if (find(values, count, AT_DWO_NAME) || find(values, count, AT_GNU_DWO_NAME)) {
        refuse_unit(reader, number, REFUSAL_DEBUG_SPLIT, "split debug information");
        return false;
    }
    if (!take_base(reader, unit, find(values, count, AT_ADDR_BASE), &unit->addr_section,
                   &unit->addr_base) ||
        !take_base(reader, unit, find(values, count, AT_RNGLISTS_BASE),
                   &unit->rnglists_section, &unit->rnglists_base) ||
        !take_base(reader, unit, find(values, count, AT_LOCLISTS_BASE),
                   &unit->loclists_section, &unit->loclists_base)) {
        refuse(reader, unit->section, "a table that is not known");
        return false;
    }
    const struct value *low = find(values, count, AT_LOW_PC);
    struct debug_field field;
    if (low && form_is_address(low->form) &&
        !address_of(reader, unit, low, &unit->base, &field)) {
        refuse(reader, unit->section, "an address that is not known");
        return false;
    }
    return true;
}

/* --- single positions --- */

static enum debug_role role_of(uint32_t tag, uint16_t name)
{
    switch (name) {
    case AT_CALL_RETURN_PC: return DEBUG_RETURN;
    case AT_CALL_PC: return DEBUG_CALL;
    case AT_LOW_PC:
        return tag == TAG_GNU_CALL_SITE ? DEBUG_RETURN
               : tag == TAG_LABEL       ? DEBUG_LABEL
                                        : DEBUG_START;
    default: return DEBUG_START;
    }
}

static bool is_known_position(uint16_t name)
{
    return name == AT_LOW_PC || name == AT_HIGH_PC || name == AT_ENTRY_PC ||
           name == AT_CALL_RETURN_PC || name == AT_CALL_PC;
}

static bool read_point(struct reader *reader, const struct unit_of *unit, uint32_t tag,
                       const struct value *value, const struct value *view,
                       const struct scope_of *scope)
{
    struct place_of place;
    struct debug_field field;
    if (!address_of(reader, unit, value, &place, &field))
        return false;
    if (!place.known)
        return true;
    if (!is_known_position(value->name))
        return false;
    add_point(reader, role_of(tag, value->name), place, field);
    struct debug_point *point = &reader->points.items[reader->points.count - 1];
    if (form_is_index(value->form)) {
        point->index = field_of(unit, value);
        point->spare = scope->entry_index;
    }
    if (view && value->name == AT_ENTRY_PC) {
        if (!form_is_constant(view->form) || view->form == FORM_SDATA)
            return false;
        point->view = field_of(unit, view);
    }
    return true;
}

/* --- ranges --- */

static bool read_high(struct reader *reader, const struct unit_of *unit,
                      const struct value *low, const struct value *high,
                      struct scope_of *scope)
{
    struct debug_field field;
    struct place_of start, end;
    if (!address_of(reader, unit, low, &start, &field))
        return false;
    struct debug_range range = {.start_bound = DEBUG_ELSEWHERE,
                                .end_bound = DEBUG_FROM_START,
                                .start_view = NOWHERE,
                                .end_view = NOWHERE,
                                .end_field = field_of(unit, high)};
    if (form_is_address(high->form)) {
        /* Not of a pool: its entry would be taken for the start of something. */
        if (high->form != FORM_ADDR)
            return false;
        end = read_place(reader, unit->section, high->offset, &range.end_field);
        range.end_bound = DEBUG_ADDRESS;
    } else {
        if (!form_is_constant(high->form) || high->form == FORM_IMPLICIT_CONST ||
            high->form == FORM_SDATA)
            return false;
        end = start;
        if (high->number > NO_INDEX - 1 - end.position)
            return !start.known;
        end.position += (uint32_t)high->number;
    }
    if (!start.known || !end.known)
        return start.known == end.known;
    if (start.code != end.code || end.position < start.position ||
        end.position > reader->object->sections[end.code].data.size)
        return false;
    range.code = start.code;
    range.start = range.base = start.position;
    range.end = end.position;
    array_push(reader->arena, &reader->ranges, range);
    scope->ranged = true;
    scope->start = start;
    scope->end = end.position;
    return true;
}

static bool read_range_list(struct reader *reader, const struct unit_of *unit,
                            const struct value *value)
{
    uint64_t offset;
    uint32_t section;
    if (value->form == FORM_RNGLISTX) {
        section = unit->rnglists_section;
        if (section == NO_INDEX)
            return false;
        struct cursor cursor = cursor_at(reader, section, unit->rnglists_base);
        cursor_take(&cursor, value->number * unit->offset_size);
        offset = unit->rnglists_base +
                 (unit->offset_size == 8 ? cursor_u64(&cursor) : cursor_u32(&cursor));
        if (value->number > UINT32_MAX || !cursor_ok(&cursor))
            return false;
    } else {
        section = follow(reader, unit, value, &offset);
    }
    return section != NO_INDEX && ranges_read(reader, unit, section, offset);
}

/* --- places --- */

static bool read_place_list(struct reader *reader, const struct unit_of *unit,
                            const struct value *value, const struct value *views,
                            const struct scope_of *scope)
{
    uint64_t offset, views_at = UINT64_MAX;
    uint32_t section;
    if (value->form == FORM_LOCLISTX) {
        section = unit->loclists_section;
        if (section == NO_INDEX || value->number > UINT32_MAX)
            return false;
        struct cursor cursor = cursor_at(reader, section, unit->loclists_base);
        cursor_take(&cursor, value->number * unit->offset_size);
        offset = unit->loclists_base +
                 (unit->offset_size == 8 ? cursor_u64(&cursor) : cursor_u32(&cursor));
        if (!cursor_ok(&cursor))
            return false;
    } else {
        section = follow(reader, unit, value, &offset);
    }
    /* Most numbers are no offsets. */
    if (section == NO_INDEX)
        return value->form != FORM_SEC_OFFSET;
    if (!section_named(reader, section, ".debug_loc") &&
        !section_named(reader, section, ".debug_loclists"))
        return true;
    if (views && value->name == AT_LOCATION &&
        follow(reader, unit, views, &views_at) != section)
        return false;
    return locations_read(reader, unit, scope, section, offset, views_at);
}

static bool read_expression(struct reader *reader, const struct unit_of *unit,
                            const struct value *value, struct scope_of *scope)
{
    uint64_t registers = 0;
    if (!expression_read(reader, unit, scope, value->body, value->number, unit->section,
                         &registers))
        return false;
    if (value->name == AT_FRAME_BASE)
        scope->frame_base = registers;
    /* Only a place can become wrong; what a call passes is judged with the call. */
    if (registers && (value->name == AT_LOCATION || value->name == AT_FRAME_BASE)) {
        if (value->form != FORM_EXPRLOC && value->form != FORM_BLOCK)
            return false;
        struct debug_expression expression = {
            .section = unit->section,
            .offset = value->offset,
            .size = value->size,
            .registers = registers,
            .code = scope->ranged ? scope->start.code : NO_INDEX,
            .start = scope->start.position,
            .end = scope->end,
            .unit = reader->object->sections[unit->section].unit};
        array_push(reader->arena, &reader->expressions, expression);
    }
    return true;
}

/* --- the whole --- */

static bool read_value(struct reader *reader, const struct unit_of *unit, uint32_t tag,
                       const struct value *values, uint32_t count,
                       const struct value *value, struct scope_of *scope)
{
    if (value->name == AT_SEGMENT)
        return false;
    if (form_is_address(value->form)) {
        if (value->name == AT_HIGH_PC)
            return true; /* with low_pc */
        return read_point(reader, unit, tag, value,
                          find(values, count, AT_GNU_ENTRY_VIEW), scope);
    }
    /* DWARF 5 allows it as a distance from the unit's start. */
    if (value->name == AT_ENTRY_PC)
        return false;
    if (value->name == AT_RANGES)
        return read_range_list(reader, unit, value);
    if (value->form == FORM_EXPRLOC ||
        (form_is_block(value->form) && value->name == AT_LOCATION))
        return read_expression(reader, unit, value, scope);
    if (value->form == FORM_LOCLISTX || value->form == FORM_SEC_OFFSET ||
        ((value->form == FORM_DATA4 || value->form == FORM_DATA8) &&
         unit->version < 4)) {
        if (value->name == AT_GNU_LOCVIEWS || value->name == AT_LOCLISTS_BASE)
            return true;
        return read_place_list(reader, unit, value,
                               find(values, count, AT_GNU_LOCVIEWS), scope);
    }
    return true;
}

bool entry_read(struct reader *reader, struct unit_of *unit, uint32_t tag,
                const struct value *values, uint32_t count, struct scope_of *scope)
{
    const struct value *low = find(values, count, AT_LOW_PC);
    const struct value *high = find(values, count, AT_HIGH_PC);
    if (high && (!low || !form_is_address(low->form)))
        return false;
    if (find(values, count, AT_RANGES))
        scope->ranged = false;
    if (high && !read_high(reader, unit, low, high, scope))
        return false;
    if (tag == TAG_SUBPROGRAM)
        scope->entry_index =
            low && form_is_index(low->form) ? (uint32_t)low->number : NO_INDEX;
    /* The frame base first: it counts for what stands beside it. */
    const struct value *frame = find(values, count, AT_FRAME_BASE);
    if (tag == TAG_SUBPROGRAM)
        scope->frame_base = frame && frame->form == FORM_EXPRLOC ? 0 : UINT64_MAX;
    for (uint32_t i = 0; i < count; i++)
        if (!read_value(reader, unit, tag, values, count, &values[i], scope))
            return false;
    return true;
}
