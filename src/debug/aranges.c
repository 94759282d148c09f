/* SPDX-License-Identifier: MIT
 *
 * .debug_aranges (DWARF 5, 6.1.2): which unit describes which code.
 */
#include "internal.h"

static bool read_tuple(struct reader *reader, uint32_t section, struct cursor *cursor,
                       bool *last)
{
    struct debug_range range = {.start_bound = DEBUG_ADDRESS,
                                .end_bound = DEBUG_FROM_START,
                                .start_view = NOWHERE,
                                .end_view = NOWHERE};
    struct place_of place =
        read_place(reader, section, cursor->position, &range.start_field);
    uint64_t address = cursor_u64(cursor);
    range.end_field =
        (struct debug_field){section, (uint32_t)cursor->position, NO_INDEX, 8, false};
    uint64_t length = cursor_u64(cursor);
    *last = range.start_field.reloc == NO_INDEX && address == 0 && length == 0;
    if (!place.known)
        return cursor_ok(cursor);
    uint64_t size = reader->object->sections[place.code].data.size;
    if (length > size || place.position > size - length)
        return false;
    range.code = place.code;
    range.start = range.base = place.position;
    range.end = place.position + (uint32_t)length;
    array_push(reader->arena, &reader->ranges, range);
    return cursor_ok(cursor);
}

static bool read_set(struct reader *reader, uint32_t section, struct cursor *cursor)
{
    uint64_t start = cursor->position, length = cursor_u32(cursor);
    bool wide = length == UINT32_MAX, last = false;
    if (wide)
        length = cursor_u64(cursor);
    if (length > cursor_left(cursor))
        return false;
    uint64_t end = cursor->position + length;
    uint16_t version = cursor_u16(cursor);
    cursor_take(cursor, wide ? 8 : 4);
    uint8_t address_size = cursor_u8(cursor), segment_size = cursor_u8(cursor);
    if (version != 2 || address_size != 8 || segment_size != 0)
        return false;
    /* The first tuple is aligned to the size of one, from the start of the set. */
    cursor_take(cursor, align_up(cursor->position - start, 16) -
                            (cursor->position - start));
    while (cursor->position < end && !last)
        if (!read_tuple(reader, section, cursor, &last) || cursor->position > end)
            return false;
    cursor->position = end;
    return cursor_ok(cursor);
}

void aranges_read(struct reader *reader, uint32_t section)
{
    struct cursor cursor = cursor_at(reader, section, 0);
    while (cursor_left(&cursor) > 0) {
        if (!read_set(reader, section, &cursor)) {
            refuse(reader, section, "a table of ranges that cannot be read");
            return;
        }
    }
}
