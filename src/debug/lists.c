/* SPDX-License-Identifier: MIT
 *
 * Lists of ranges and of places (DWARF 5, 2.6.2, 2.17.3, 7.28, 7.29; DWARF 4, 2.6.2 and
 * 2.17.3 for those without codes). A list is read with the base address of the unit that
 * refers to it; two units with different bases cannot share one.
 */
#include "internal.h"

enum { LIST_ENTRIES = 1 << 20 };

/* Codes of both kinds of lists; those of places have one more in the middle. */
enum entry_kind {
    ENTRY_END,
    ENTRY_BASE_INDEX,
    ENTRY_START_END_INDEX,
    ENTRY_START_INDEX_LENGTH,
    ENTRY_OFFSETS,
    ENTRY_DEFAULT,
    ENTRY_BASE,
    ENTRY_START_END,
    ENTRY_START_LENGTH,
    ENTRY_VIEWS,
    ENTRY_UNKNOWN,
};

struct list {
    struct reader *reader;
    const struct unit_of *unit;
    const struct scope_of *scope; /* of places; NULL: ranges */
    uint32_t section;
    struct cursor cursor;
    struct cursor views; /* pairs of view numbers, in front of the list */
    bool has_views;
    struct place_of base;
    struct debug_field start_view, end_view; /* of the next entry */
};

/* True when the list is new; *same tells whether an earlier reading of it means the same.
 */
static bool is_new(struct list *list, uint64_t offset, bool *same)
{
    struct reader *reader = list->reader;
    uint64_t key[2] = {list->section, offset};
    struct list_context context = {list->base,
                                   list->scope ? list->scope->frame_base : 0};
    uint32_t count = table_count(reader->lists);
    uint32_t number = table_intern(reader->lists, key, sizeof key);
    if (number == count) {
        array_push(reader->stage, &reader->list_contexts, context);
        return true;
    }
    const struct list_context *old = &reader->list_contexts.items[number];
    *same = old->frame_base == context.frame_base &&
            old->base.known == context.base.known &&
            (!old->base.known || (old->base.code == context.base.code &&
                                  old->base.position == context.base.position));
    return false;
}

static struct debug_range new_range(const struct list *list)
{
    return (struct debug_range){.location = list->scope != NULL,
                                .start_field = NOWHERE,
                                .end_field = NOWHERE,
                                .start_view = list->start_view,
                                .end_view = list->end_view};
}

/* Adds what has been read, if it is a range of code that is here. */
static bool add(struct list *list, struct debug_range *range, struct place_of start,
                struct place_of end, uint64_t registers)
{
    list->start_view = list->end_view = NOWHERE;
    if (!start.known || !end.known)
        return start.known == end.known;
    uint64_t size = list->reader->object->sections[start.code].data.size;
    if (start.code != end.code || end.position < start.position || end.position > size)
        return false;
    range->code = start.code;
    range->start = start.position;
    range->end = end.position;
    range->base = range->start_bound == DEBUG_FROM_BASE ? list->base.position
                                                        : start.position;
    range->registers = registers;
    array_push(list->reader->arena, &list->reader->ranges, *range);
    return true;
}

static bool move(struct place_of *place, uint64_t distance)
{
    if (distance > NO_INDEX - 1 - (uint64_t)place->position)
        return !place->known;
    place->position += (uint32_t)distance;
    return true;
}

static bool take_views(struct list *list)
{
    if (!list->has_views)
        return true;
    field_uleb(&list->views, list->section, &list->start_view);
    field_uleb(&list->views, list->section, &list->end_view);
    return cursor_ok(&list->views);
}

/* The expression of a place, behind `size` (bytes) has been read. */
static bool take_expression(struct list *list, uint64_t size, uint64_t *registers)
{
    uint64_t offset = list->cursor.position;
    cursor_take(&list->cursor, size);
    return cursor_ok(&list->cursor) &&
           expression_read(list->reader, list->unit, list->scope, offset, size,
                           list->section, registers);
}

/* --- version 5 --- */

static enum entry_kind kind_of(const struct list *list, uint8_t code)
{
    if (list->scope)
        return code <= 9 ? (enum entry_kind)code : ENTRY_UNKNOWN;
    return code <= 4 ? (enum entry_kind)code
           : code <= 7 ? (enum entry_kind)(code + 1)
                       : ENTRY_UNKNOWN;
}

/* An address in the list; a start that others may share is a point of its own. */
static bool take_address(struct list *list, bool pooled, struct place_of *place,
                         struct debug_field *field)
{
    struct cursor *cursor = &list->cursor;
    if (!pooled) {
        *place = read_place(list->reader, list->section, cursor->position, field);
        cursor_u64(cursor);
        return true;
    }
    if (!pool_place(list->reader, list->unit, cursor_uleb(cursor), place, field))
        return false;
    if (place->known)
        add_point(list->reader, DEBUG_START, *place, *field);
    return true;
}

static bool take_base(struct list *list, bool pooled)
{
    struct debug_field field;
    if (!take_address(list, pooled, &list->base, &field))
        return false;
    if (!pooled && list->base.known)
        add_point(list->reader, DEBUG_START, list->base, field);
    return true;
}

/* The bounds of one entry. */
static bool take_bounds(struct list *list, enum entry_kind kind,
                        struct debug_range *range, struct place_of *start,
                        struct place_of *end)
{
    struct cursor *cursor = &list->cursor;
    switch (kind) {
    case ENTRY_OFFSETS:
        range->start_bound = range->end_bound = DEBUG_FROM_BASE;
        *start = *end = list->base;
        return move(start, field_uleb(cursor, list->section, &range->start_field)) &&
               move(end, field_uleb(cursor, list->section, &range->end_field));
    case ENTRY_START_INDEX_LENGTH:
    case ENTRY_START_LENGTH:
        range->start_bound =
            kind == ENTRY_START_LENGTH ? DEBUG_ADDRESS : DEBUG_ELSEWHERE;
        range->end_bound = DEBUG_FROM_START;
        if (!take_address(list, kind == ENTRY_START_INDEX_LENGTH, start,
                          &range->start_field))
            return false;
        *end = *start;
        return move(end, field_uleb(cursor, list->section, &range->end_field));
    case ENTRY_START_END:
        range->start_bound = range->end_bound = DEBUG_ADDRESS;
        return take_address(list, false, start, &range->start_field) &&
               take_address(list, false, end, &range->end_field);
    default: return false; /* an end in the pool would be taken for a start */
    }
}

static bool take_range(struct list *list, enum entry_kind kind)
{
    struct debug_range range = new_range(list);
    struct place_of start = {0}, end = {0};
    uint64_t registers = 0;
    if (kind != ENTRY_DEFAULT && !take_bounds(list, kind, &range, &start, &end))
        return false;
    if (list->scope &&
        !take_expression(list, cursor_uleb(&list->cursor), &registers))
        return false;
    /* A place that holds everywhere else cannot be taken away from a part. */
    if (kind == ENTRY_DEFAULT)
        return registers == 0;
    return add(list, &range, start, end, registers);
}

static bool read_coded(struct list *list)
{
    for (uint32_t i = 0; i < LIST_ENTRIES; i++) {
        enum entry_kind kind = kind_of(list, cursor_u8(&list->cursor));
        bool done = true;
        if (!cursor_ok(&list->cursor))
            return false;
        if (kind == ENTRY_END)
            return true;
        if (kind == ENTRY_UNKNOWN)
            return false;
        if (kind == ENTRY_VIEWS) {
            field_uleb(&list->cursor, list->section, &list->start_view);
            field_uleb(&list->cursor, list->section, &list->end_view);
        } else if (kind == ENTRY_BASE || kind == ENTRY_BASE_INDEX) {
            done = take_base(list, kind == ENTRY_BASE_INDEX);
        } else {
            done = take_views(list) && take_range(list, kind);
        }
        if (!done || !cursor_ok(&list->cursor))
            return false;
    }
    return false;
}

/* --- before version 5 --- */

static struct debug_field word_at(const struct list *list, uint64_t offset)
{
    return (struct debug_field){list->section, (uint32_t)offset, NO_INDEX, 8, false};
}

static bool take_pair(struct list *list, uint64_t at, uint64_t first, uint64_t second,
                      struct place_of start, struct place_of end,
                      const struct debug_field *fields)
{
    struct debug_range range = new_range(list);
    uint64_t registers = 0;
    bool placed = fields[0].reloc != NO_INDEX;
    if (placed != (fields[1].reloc != NO_INDEX))
        return false;
    range.start_bound = range.end_bound = placed ? DEBUG_ADDRESS : DEBUG_FROM_BASE;
    range.start_field = placed ? fields[0] : word_at(list, at);
    range.end_field = placed ? fields[1] : word_at(list, at + 8);
    if (!placed) {
        start = end = list->base;
        if (!move(&start, first) || !move(&end, second))
            return false;
    }
    if (list->scope && !take_expression(list, cursor_u16(&list->cursor), &registers))
        return false;
    return add(list, &range, start, end, registers);
}

static bool read_pairs(struct list *list)
{
    for (uint32_t i = 0; i < LIST_ENTRIES; i++) {
        struct debug_field fields[2];
        uint64_t at = list->cursor.position;
        struct place_of start = read_place(list->reader, list->section, at, &fields[0]);
        struct place_of end =
            read_place(list->reader, list->section, at + 8, &fields[1]);
        uint64_t first = cursor_u64(&list->cursor), second = cursor_u64(&list->cursor);
        if (!cursor_ok(&list->cursor))
            return false;
        bool placed = fields[0].reloc != NO_INDEX || fields[1].reloc != NO_INDEX;
        if (!placed && first == 0 && second == 0)
            return true;
        if (fields[0].reloc == NO_INDEX && first == UINT64_MAX) {
            list->base = end;
            if (end.known)
                add_point(list->reader, DEBUG_START, end, fields[1]);
        } else if (!take_views(list) ||
                   !take_pair(list, at, first, second, start, end, fields)) {
            return false;
        }
    }
    return false;
}

/* --- both --- */

static bool read_list(struct list *list, uint64_t offset, bool coded)
{
    bool same = true;
    list->base = list->unit->base;
    list->start_view = list->end_view = NOWHERE;
    if (!is_new(list, offset, &same))
        return same;
    list->cursor = cursor_at(list->reader, list->section, offset);
    return coded ? read_coded(list) : read_pairs(list);
}

bool ranges_read(struct reader *reader, const struct unit_of *unit, uint32_t section,
                 uint64_t offset)
{
    struct list list = {.reader = reader, .unit = unit, .section = section};
    if (section_named(reader, section, ".debug_ranges"))
        return read_list(&list, offset, false);
    return section_named(reader, section, ".debug_rnglists") &&
           read_list(&list, offset, true);
}

bool locations_read(struct reader *reader, const struct unit_of *unit,
                    const struct scope_of *scope, uint32_t section, uint64_t offset,
                    uint64_t views)
{
    struct list list = {.reader = reader,
                        .unit = unit,
                        .scope = scope,
                        .section = section,
                        .views = cursor_at(reader, section, views),
                        .has_views = views != UINT64_MAX};
    return read_list(&list, offset, section_named(reader, section, ".debug_loclists"));
}
