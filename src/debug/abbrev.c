/* SPDX-License-Identifier: MIT
 *
 * Abbreviations: the shapes of entries (DWARF 5, 7.5.3).
 */
#include "internal.h"

enum { MOST_ATTRIBUTES = 1024 };

static uint16_t narrow(uint64_t number)
{
    return number <= UINT16_MAX ? (uint16_t)number : 0;
}

static bool read_one(struct reader *reader, struct cursor *cursor, struct abbrev *out)
{
    array_of(struct abbrev_attribute) list = {0};
    uint64_t tag = cursor_uleb(cursor);
    out->tag = tag <= UINT32_MAX ? (uint32_t)tag : 0;
    out->has_children = cursor_u8(cursor) != 0;
    while (cursor_ok(cursor) && list.count < MOST_ATTRIBUTES) {
        uint64_t name = cursor_uleb(cursor), form = cursor_uleb(cursor);
        if (name == 0 && form == 0) {
            out->attributes = list.items;
            out->attribute_count = list.count;
            return true;
        }
        struct abbrev_attribute attribute = {narrow(name), narrow(form), 0};
        if (form == FORM_IMPLICIT_CONST)
            attribute.constant = cursor_sleb(cursor);
        array_push(reader->stage, &list, attribute);
    }
    return false;
}

static struct abbrev_table *read_table(struct reader *reader, uint32_t section,
                                       uint64_t offset)
{
    struct abbrev_table *table = arena_new_one(reader->stage, struct abbrev_table);
    struct cursor cursor = cursor_at(reader, section, offset);
    for (;;) {
        struct abbrev abbrev = {.code = cursor_uleb(&cursor)};
        if (!cursor_ok(&cursor) || abbrev.code == 0)
            break;
        if (!read_one(reader, &cursor, &abbrev))
            break;
        array_push(reader->stage, &table->items, abbrev);
    }
    table->bad = !cursor_ok(&cursor);
    return table;
}

const struct abbrev_table *abbrevs_at(struct reader *reader, uint32_t section,
                                      uint64_t offset)
{
    uint64_t key[2] = {section, offset};
    uint32_t count = table_count(reader->abbrevs);
    uint32_t number = table_intern(reader->abbrevs, key, sizeof key);
    if (number == count) {
        struct abbrev_table *table = read_table(reader, section, offset);
        array_push(reader->stage, &reader->abbrev_tables, table);
    }
    return reader->abbrev_tables.items[number];
}

const struct abbrev *abbrev_find(const struct abbrev_table *table, uint64_t code)
{
    /* Producers count from 1. */
    if (code - 1 < table->items.count && table->items.items[code - 1].code == code)
        return &table->items.items[code - 1];
    for (uint32_t i = 0; i < table->items.count; i++)
        if (table->items.items[i].code == code)
            return &table->items.items[i];
    return NULL;
}
