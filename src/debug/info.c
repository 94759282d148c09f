/* SPDX-License-Identifier: MIT
 *
 * Units and entries (DWARF 5, 7.5.1): one pass over all of them, with a stack of what
 * holds around.
 */
#include "internal.h"

#include <string.h>

enum { MOST_VALUES = 256, MOST_DEPTH = 4096 };
enum { UNIT_TYPE = 2, UNIT_SKELETON = 4, UNIT_SPLIT_COMPILE = 5, UNIT_SPLIT_TYPE = 6 };

struct walk_of {
    struct reader *reader;
    struct unit_of unit;
    struct cursor cursor;
    array_of(struct scope_of) scopes; /* around the next entry, outermost first */
};

static bool complain(struct walk_of *walk, const char *text)
{
    refuse(walk->reader, walk->unit.section, text);
    return false;
}

static uint64_t read_offset(struct cursor *cursor, uint32_t size)
{
    return size == 8 ? cursor_u64(cursor) : cursor_u32(cursor);
}

static bool read_abbrevs(struct walk_of *walk)
{
    uint64_t offset;
    uint32_t size = walk->unit.offset_size;
    uint32_t section = read_link(walk->reader, walk->unit.section,
                                 walk->cursor.position, size, &offset);
    read_offset(&walk->cursor, size);
    if (section == NO_INDEX)
        return complain(walk, "a unit whose abbreviations are not known");
    walk->unit.abbrevs = abbrevs_at(walk->reader, section, offset);
    return !walk->unit.abbrevs->bad || complain(walk, "malformed abbreviations");
}

/* Version 5 tells the kind of unit, and has its fields in another order. */
static bool read_header(struct walk_of *walk, bool types)
{
    struct cursor *cursor = &walk->cursor;
    struct unit_of *unit = &walk->unit;
    uint64_t length = cursor_u32(cursor);
    unit->offset_size = length == UINT32_MAX ? 8 : 4;
    if (length == UINT32_MAX)
        length = cursor_u64(cursor);
    if (!cursor_ok(cursor) || length > cursor_left(cursor))
        return complain(walk, "a unit that leads outside of its section");
    unit->end = cursor->position + length;
    unit->version = cursor_u16(cursor);
    if (unit->version < 2 || unit->version > 5)
        return complain(walk, "an unknown version of DWARF");
    uint8_t kind = unit->version >= 5 ? cursor_u8(cursor) : types ? UNIT_TYPE : 0;
    uint8_t address_size = unit->version >= 5 ? cursor_u8(cursor) : 8;
    if (!read_abbrevs(walk))
        return false;
    if (unit->version < 5)
        address_size = cursor_u8(cursor);
    if (address_size != 8)
        return complain(walk, "addresses that are not of 8 bytes");
    if (kind == UNIT_SKELETON || kind == UNIT_SPLIT_COMPILE || kind == UNIT_SPLIT_TYPE) {
        refuse_unit(walk->reader, walk->reader->object->sections[unit->section].unit,
                    REFUSAL_DEBUG_SPLIT, "split debug information");
        return false;
    }
    if (kind == UNIT_TYPE) {
        cursor_u64(cursor); /* signature */
        read_offset(cursor, unit->offset_size);
    }
    return cursor_ok(cursor) || complain(walk, "a unit's header is cut off");
}

static bool read_values(struct walk_of *walk, const struct abbrev *abbrev,
                        struct value *values)
{
    if (abbrev->attribute_count > MOST_VALUES)
        return complain(walk, "an entry with very many attributes");
    for (uint32_t i = 0; i < abbrev->attribute_count; i++) {
        if (!value_read(&walk->cursor, &walk->unit, &abbrev->attributes[i], &values[i]) ||
            walk->cursor.position > walk->unit.end)
            return complain(walk, "an attribute that cannot be read");
    }
    return true;
}

/* Goes up one level. */
static void leave(struct walk_of *walk)
{
    if (walk->scopes.count > 0)
        walk->scopes.count--;
}

static bool read_entry(struct walk_of *walk, bool root)
{
    struct value values[MOST_VALUES];
    uint64_t code = cursor_uleb(&walk->cursor);
    if (code == 0) {
        leave(walk);
        return cursor_ok(&walk->cursor) || complain(walk, "entries are cut off");
    }
    const struct abbrev *abbrev = abbrev_find(walk->unit.abbrevs, code);
    if (!abbrev)
        return complain(walk, "an entry without an abbreviation");
    if (!read_values(walk, abbrev, values))
        return false;
    uint32_t count = abbrev->attribute_count;
    if (root && !root_read(walk->reader, &walk->unit, values, count))
        return false;
    struct scope_of scope = {.entry_index = NO_INDEX};
    if (walk->scopes.count)
        scope = walk->scopes.items[walk->scopes.count - 1];
    if (!entry_read(walk->reader, &walk->unit, abbrev->tag, values, count, &scope))
        return complain(walk, "an attribute that is not understood");
    if (abbrev->has_children) {
        if (walk->scopes.count >= MOST_DEPTH)
            return complain(walk, "entries are nested too deep");
        array_push(walk->reader->stage, &walk->scopes, scope);
    }
    return true;
}

static bool read_unit(struct walk_of *walk, bool types)
{
    if (!read_header(walk, types))
        return false;
    bool root = true;
    while (walk->cursor.position < walk->unit.end) {
        if (!read_entry(walk, root))
            return false;
        root = false;
    }
    return true;
}

void info_read(struct reader *reader, uint32_t section, bool types)
{
    struct walk_of walk = {.reader = reader, .cursor = cursor_at(reader, section, 0)};
    uint64_t size = reader->object->sections[section].data.size;
    while (walk.cursor.position < size) {
        walk.scopes.count = 0;
        walk.unit = (struct unit_of){.section = section,
                                     .addr_section = NO_INDEX,
                                     .rnglists_section = NO_INDEX,
                                     .loclists_section = NO_INDEX};
        if (!read_unit(&walk, types))
            return; /* refused: what comes behind does not matter any more */
        walk.cursor.position = walk.unit.end;
    }
}
