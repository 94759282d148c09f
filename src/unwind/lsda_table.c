/* SPDX-License-Identifier: MIT
 *
 * Reading one call-site table. Its bytes come from a file that anybody may have
 * written, so nothing is believed: every offset is checked against the room that the
 * table has, call sites must be sorted and lie in the code of their FDE, and every
 * action that is reached must lead to a type that is there. No producer lets
 * relocations fill anything but types (and the place that landing pads count from);
 * where one lies elsewhere the bytes are not what they seem.
 */
#include "lsda_internal.h"

#include <string.h>

enum { ENCODING_ULEB = 0x01 };

uint32_t lsda_number_size(uint8_t encoding)
{
    switch (encoding) {
    case PE_UDATA2:
    case PE_SDATA2: return 2;
    case PE_UDATA4:
    case PE_SDATA4: return 4;
    case PE_UDATA8:
    case PE_SDATA8: return 8;
    default: return 0;
    }
}

uint32_t lsda_type_size(const struct lsda *lsda)
{
    return lsda->types_encoding == PE_OMIT ? 0 : pointer_size(lsda->types_encoding);
}

struct reader {
    struct arena *arena;
    const struct object *object;
    const struct section *section;
    const struct fde *fde;
    struct lsda *lsda;
    struct cursor cursor; /* positions are section offsets */
    uint32_t start_field; /* of the place that landing pads count from, or NO_INDEX */
    uint8_t *seen;        /* by offset from `actions`: an action has been looked at */
};

/* The relocation that lies exactly there, or NULL. */
static const struct reloc *reloc_at(const struct section *section, uint64_t offset)
{
    uint32_t i = section_reloc_at(section, offset);
    return i < section->reloc_count && section->relocs[i].offset == offset
               ? &section->relocs[i]
               : NULL;
}

/* --- header --- */

/* Landing pads may count from a place that is named. It is understood when that is the
 * start of the code, as without it. */
static bool read_start(struct reader *reader)
{
    uint8_t encoding = cursor_u8(&reader->cursor);
    if (encoding == PE_OMIT)
        return true;
    uint32_t size = pointer_size(encoding);
    uint32_t at = (uint32_t)reader->cursor.position;
    cursor_take(&reader->cursor, size);
    const struct reloc *reloc = reloc_at(reader->section, at);
    if (size < 4 || (encoding & (PE_APPLICATION | PE_INDIRECT)) || !reloc ||
        !cursor_ok(&reader->cursor) ||
        !reloc_fits(reader->object->machine, reloc->type, size, false))
        return false;
    const struct symbol *symbol = &reader->object->symbols[reloc->symbol];
    reader->start_field = at;
    return symbol->section == reader->fde->code_section &&
           symbol->value + (uint64_t)reloc->addend == reader->fde->start;
}

static bool read_header(struct reader *reader)
{
    struct lsda *lsda = reader->lsda;
    struct cursor *cursor = &reader->cursor;
    if (!read_start(reader))
        return false;
    lsda->types_encoding = cursor_u8(cursor);
    lsda->types_field = (uint32_t)cursor->position;
    lsda->types_end = NO_INDEX;
    if (lsda->types_encoding != PE_OMIT) {
        uint64_t distance = cursor_uleb(cursor);
        if (!cursor_ok(cursor) || lsda_type_size(lsda) < 4 ||
            distance > lsda->end - cursor->position)
            return false;
        lsda->types_end = (uint32_t)(cursor->position + distance);
    }
    lsda->sites_field = (uint32_t)cursor->position;
    lsda->sites_encoding = cursor_u8(cursor);
    uint64_t size = cursor_uleb(cursor);
    if (!cursor_ok(cursor) || size > cursor_left(cursor) ||
        (lsda->sites_encoding != ENCODING_ULEB &&
         lsda_number_size(lsda->sites_encoding) == 0))
        return false;
    lsda->actions = (uint32_t)(cursor->position + size);
    return lsda->types_end == NO_INDEX || lsda->types_end >= lsda->actions;
}

/* --- call sites --- */

static uint64_t read_number(struct reader *reader)
{
    uint32_t size = lsda_number_size(reader->lsda->sites_encoding);
    if (size == 0)
        return cursor_uleb(&reader->cursor);
    struct bytes bytes = cursor_take(&reader->cursor, size);
    /* Distances are never negative: a signed one that is gets too large. */
    return bytes.at ? load_le(bytes.at, size) : 0;
}

static bool read_sites(struct reader *reader)
{
    struct lsda *lsda = reader->lsda;
    struct cursor *cursor = &reader->cursor;
    uint64_t length = reader->fde->length;
    array_of(struct call_site) sites = {0};
    uint64_t last = 0;
    cursor->size = lsda->actions;
    while (cursor_left(cursor)) {
        uint64_t start = read_number(reader), size = read_number(reader);
        uint64_t pad = read_number(reader), action = cursor_uleb(cursor);
        if (!cursor_ok(cursor) || start < last || start > length ||
            size > length - start || pad >= length || action > lsda->end)
            return false;
        struct call_site site = {
            .start = reader->fde->start + (uint32_t)start,
            .end = reader->fde->start + (uint32_t)(start + size),
            .pad = pad ? reader->fde->start + (uint32_t)pad : NO_INDEX,
            .action = (uint32_t)action,
        };
        array_push(reader->arena, &sites, site);
        last = start + size;
    }
    lsda->sites = sites.items;
    lsda->site_count = sites.count;
    return cursor_ok(cursor);
}

/* --- actions --- */

static bool name_type(struct lsda *lsda, uint64_t number)
{
    uint32_t size = lsda_type_size(lsda);
    if (size == 0 || number > (lsda->types_end - lsda->actions) / size)
        return false;
    if (number > lsda->type_count)
        lsda->type_count = (uint32_t)number;
    return true;
}

/* A list of types (an exception specification) ends with a zero. */
static bool read_list(struct reader *reader, uint64_t offset)
{
    struct lsda *lsda = reader->lsda;
    if (lsda->types_end == NO_INDEX || offset >= lsda->end - lsda->types_end)
        return false;
    struct cursor cursor = reader->cursor;
    cursor.position = lsda->types_end + offset;
    cursor.size = lsda->end;
    for (;;) {
        uint64_t type = cursor_uleb(&cursor);
        if (!cursor_ok(&cursor) || (type && !name_type(lsda, type)))
            return false;
        if (cursor.position > lsda->lists_end)
            lsda->lists_end = (uint32_t)cursor.position;
        if (type == 0)
            return true;
    }
}

/* Follows the chain from one action. What has been seen ends it, so that all chains
 * together cost no more than the table is long. */
static bool read_chain(struct reader *reader, uint64_t offset)
{
    struct lsda *lsda = reader->lsda;
    struct cursor cursor = reader->cursor;
    cursor.size = lsda->types_end == NO_INDEX ? lsda->end : lsda->types_end;
    uint64_t room = cursor.size - lsda->actions;
    while (offset < room && !reader->seen[offset]) {
        reader->seen[offset] = 1;
        cursor.position = lsda->actions + offset;
        int64_t filter = cursor_sleb(&cursor);
        uint64_t next = cursor.position;
        int64_t distance = cursor_sleb(&cursor);
        if (!cursor_ok(&cursor) || (filter > 0 && !name_type(lsda, (uint64_t)filter)) ||
            (filter < 0 && !read_list(reader, (uint64_t) - (filter + 1))))
            return false;
        if (cursor.position > lsda->actions_end)
            lsda->actions_end = (uint32_t)cursor.position;
        if (distance == 0)
            return true;
        offset = next - lsda->actions + (uint64_t)distance;
    }
    return offset < room;
}

static bool read_actions(struct reader *reader)
{
    struct lsda *lsda = reader->lsda;
    lsda->actions_end = lsda->actions;
    lsda->lists_end = lsda->types_end == NO_INDEX ? 0 : lsda->types_end;
    reader->cursor.size = lsda->end;
    bool any = false;
    for (uint32_t i = 0; i < lsda->site_count; i++)
        any |= lsda->sites[i].action != 0;
    if (!any)
        return true;
    reader->seen = arena_alloc(reader->arena, lsda->end - lsda->actions);
    for (uint32_t i = 0; i < lsda->site_count; i++) {
        uint32_t action = lsda->sites[i].action;
        if (action && !read_chain(reader, action - UINT64_C(1)))
            return false;
    }
    uint32_t size = lsda->type_count * lsda_type_size(lsda);
    return size == 0 || lsda->types_end - size >= lsda->actions_end;
}

/* --- relocations --- */

/* A type is a relocation that fills it, or nothing at all: "any exception". */
static bool check_types(const struct reader *reader)
{
    static const uint8_t zeros[8];
    const struct lsda *lsda = reader->lsda;
    uint32_t size = lsda_type_size(lsda);
    for (uint32_t i = 1; i <= lsda->type_count; i++) {
        uint32_t at = lsda->types_end - i * size;
        if (!reloc_at(reader->section, at) &&
            memcmp(reader->section->data.at + at, zeros, size) != 0)
            return false;
    }
    return true;
}

static bool check_relocs(const struct reader *reader)
{
    const struct lsda *lsda = reader->lsda;
    const struct section *section = reader->section;
    uint32_t size = lsda_type_size(lsda);
    uint32_t types = size ? lsda->types_end - lsda->type_count * size : 0;
    uint64_t last = UINT64_MAX;
    for (uint32_t i = section_reloc_at(section, lsda->start);
         i < section->reloc_count && section->relocs[i].offset < lsda->end; i++) {
        uint64_t at = section->relocs[i].offset;
        bool is_type = size && at >= types && at < lsda->types_end &&
                       (lsda->types_end - at) % size == 0;
        bool in_lists = size && at >= lsda->types_end && at < lsda->lists_end;
        bool in_types = size && at >= types && at < lsda->types_end;
        bool fixed = at < lsda->actions_end && at != reader->start_field;
        if (fixed || in_lists || (in_types && !is_type) || at == last)
            return false;
        last = at;
    }
    return check_types(reader);
}

void lsda_read(struct arena *arena, const struct object *object, const struct fde *fde,
               struct lsda *lsda)
{
    const struct section *section = &object->sections[lsda->section];
    struct reader reader = {.arena = arena,
                            .object = object,
                            .section = section,
                            .fde = fde,
                            .lsda = lsda,
                            .cursor = cursor_of(section->data),
                            .start_field = NO_INDEX};
    reader.cursor.position = lsda->start;
    reader.cursor.size = lsda->end;
    bool sound = read_header(&reader) && read_sites(&reader) && read_actions(&reader) &&
                 check_relocs(&reader);
    if (!sound)
        lsda->refusal = REFUSAL_EXCEPTION_TABLE;
}
