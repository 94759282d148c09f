/* SPDX-License-Identifier: MIT
 *
 * Writing a section of call-site tables anew. Numbers are written as small as they are,
 * so tables shrink with their code, and all tables behind move up.
 *
 * Types are read as words, so a table that has some keeps its distance from a multiple
 * of their size, and so do the types in it: what stood between actions and types as
 * padding is made anew. Nothing else is aligned. The section never grows by this: a
 * table that shrinks leaves room enough for what aligns the next one.
 *
 * Zeros without a relocation that lie behind everything that a call site leads to are
 * padding as well. Other bytes there may be anything, for instance a table whose
 * function is gone, and are carried along.
 */
#include "lsda_internal.h"

#include <assert.h>

/* Old bytes that are found at another place now. */
struct piece {
    uint32_t start, end; /* old section offsets */
    uint32_t to;         /* new section offset */
};

struct writer {
    struct arena *arena;
    const struct section *section;
    const struct reloc *relocs;
    struct buffer bytes;
    array_of(struct piece) pieces; /* sorted */
};

static void copy(struct writer *writer, uint32_t start, uint32_t end)
{
    struct piece piece = {start, end, (uint32_t)writer->bytes.size};
    if (end <= start)
        return;
    array_push(writer->arena, &writer->pieces, piece);
    buffer_put(&writer->bytes, writer->section->data.at + start, end - start);
}

/* Pads until the new offset is as far from a multiple of `unit` as the old one. */
static void align_like(struct writer *writer, uint32_t old, uint32_t unit)
{
    while (writer->bytes.size % unit != old % unit)
        buffer_u8(&writer->bytes, 0);
}

/* The end of [start, end) without the zeros that nothing fills. */
static uint32_t trimmed(const struct writer *writer, uint32_t start, uint32_t end)
{
    const struct section *section = writer->section;
    uint32_t after = section_reloc_at(section, end);
    if (after > 0) {
        uint64_t field = section->relocs[after - 1].offset + 8;
        if (field > start)
            start = field < end ? (uint32_t)field : end;
    }
    while (end > start && section->data.at[end - 1] == 0)
        end--;
    return end;
}

/* --- one table --- */

static uint32_t alignment(const struct lsda *lsda)
{
    uint32_t size =
        lsda->refusal == REFUSAL_NONE && lsda->type_count ? lsda_type_size(lsda) : 0;
    return size ? size : 1;
}

static void put_number(struct buffer *out, uint8_t encoding, uint64_t value)
{
    uint32_t size = lsda_number_size(encoding);
    if (size == 0) {
        buffer_uleb(out, value);
        return;
    }
    uint8_t word[8];
    store_le(word, size, value);
    buffer_put(out, word, size);
}

static struct bytes make_sites(struct arena *arena, const struct lsda *lsda,
                               const struct lsda_edit *edit)
{
    struct buffer out = buffer_new(arena);
    for (uint32_t i = 0; i < edit->site_count; i++) {
        const struct call_site *site = &edit->sites[i];
        put_number(&out, lsda->sites_encoding, site->start - edit->base);
        put_number(&out, lsda->sites_encoding, site->end - site->start);
        put_number(&out, lsda->sites_encoding,
                   site->pad == NO_INDEX ? 0 : site->pad - edit->base);
        buffer_uleb(&out, site->action);
    }
    return buffer_bytes(&out);
}

/* A ULEB128 of exactly `width` bytes. */
static void put_wide_uleb(struct buffer *out, uint64_t value, uint32_t width)
{
    for (uint32_t i = 1; i < width; i++, value >>= 7)
        buffer_u8(out, (uint8_t)(value & 0x7f) | 0x80);
    assert(value < 0x80);
    buffer_u8(out, (uint8_t)value);
}

static uint32_t uleb_size(uint64_t value)
{
    uint32_t size = 1;
    while (value >>= 7)
        size++;
    return size;
}

/* The first type, or what else a relocation fills between actions and types. */
static uint32_t first_type(const struct writer *writer, const struct lsda *lsda)
{
    uint32_t first = lsda->types_end - lsda->type_count * lsda_type_size(lsda);
    uint32_t i = section_reloc_at(writer->section, lsda->actions_end);
    if (i < writer->section->reloc_count && writer->section->relocs[i].offset < first)
        first = (uint32_t)writer->section->relocs[i].offset;
    return first;
}

/* What follows the header's first bytes depends on how long the distance to the types
 * is, which depends on what follows. */
static uint64_t types_distance(const struct lsda *lsda, uint64_t at, uint32_t width,
                               const struct bytes *sites, uint32_t kept, uint32_t first)
{
    uint64_t end = at + width + 1 + uleb_size(sites->size) + sites->size + kept;
    uint32_t unit = alignment(lsda);
    while (end % unit != first % unit)
        end++;
    return end + (lsda->types_end - first) - (at + width);
}

static void put_sites(struct writer *writer, const struct lsda *lsda,
                      const struct bytes *sites)
{
    buffer_u8(&writer->bytes, lsda->sites_encoding);
    buffer_uleb(&writer->bytes, sites->size);
    buffer_put(&writer->bytes, sites->at, sites->size);
}

static void write_edited(struct writer *writer, const struct lsda *lsda,
                         const struct lsda_edit *edit)
{
    struct bytes sites = make_sites(writer->arena, lsda, edit);
    copy(writer, lsda->start, lsda->types_field);
    if (lsda->types_end == NO_INDEX) {
        put_sites(writer, lsda, &sites);
        copy(writer, lsda->actions, trimmed(writer, lsda->actions_end, lsda->end));
        return;
    }
    uint32_t first = first_type(writer, lsda);
    uint32_t kept_end = trimmed(writer, lsda->actions_end, first);
    uint64_t at = writer->bytes.size, distance;
    uint32_t width = 0;
    do {
        width++;
        distance =
            types_distance(lsda, at, width, &sites, kept_end - lsda->actions, first);
    } while (uleb_size(distance) > width);
    put_wide_uleb(&writer->bytes, distance, width);
    put_sites(writer, lsda, &sites);
    copy(writer, lsda->actions, kept_end);
    align_like(writer, first, alignment(lsda));
    copy(writer, first, trimmed(writer, lsda->lists_end, lsda->end));
}

/* Its own bytes end where nothing that it leads to lies behind. */
static void write_kept(struct writer *writer, const struct lsda *lsda)
{
    uint32_t own = lsda->end;
    if (lsda->refusal == REFUSAL_NONE) {
        own = lsda->types_end == NO_INDEX ? lsda->actions_end : lsda->lists_end;
        own = trimmed(writer, own, lsda->end);
    }
    copy(writer, lsda->start, own);
}

/* --- the section --- */

static void move_relocs(struct writer *writer, struct section *out)
{
    struct reloc *relocs =
        arena_new_array(writer->arena, struct reloc, writer->section->reloc_count);
    uint32_t piece = 0;
    for (uint32_t i = 0; i < writer->section->reloc_count; i++) {
        relocs[i] = writer->relocs[i];
        while (piece < writer->pieces.count &&
               relocs[i].offset >= writer->pieces.items[piece].end)
            piece++;
        assert(piece < writer->pieces.count); /* what is filled is not trimmed */
        const struct piece *in = &writer->pieces.items[piece];
        assert(relocs[i].offset >= in->start);
        relocs[i].offset = relocs[i].offset - in->start + in->to;
    }
    out->relocs = relocs;
}

void lsdas_rewrite(struct arena *arena, const struct object *object, uint32_t section,
                   const struct reloc *relocs, const struct lsdas *lsdas,
                   const struct lsda_edit *edits, struct section *out, uint32_t *starts)
{
    const struct section *old = &object->sections[section];
    struct writer writer = {
        .arena = arena, .section = old, .relocs = relocs, .bytes = buffer_new(arena)};
    bool any = false;
    uint32_t first = lsdas_in_section(lsdas, section), end = first;
    for (; end < lsdas->count && lsdas->items[end].section == section; end++) {
        starts[end] = lsdas->items[end].start;
        any |= edits[end].rewrite;
    }
    *out = *old;
    out->relocs = relocs;
    if (!any)
        return;
    copy(&writer, 0, lsdas->items[first].start);
    for (uint32_t i = first; i < end; i++) {
        const struct lsda *lsda = &lsdas->items[i];
        align_like(&writer, lsda->start, alignment(lsda));
        starts[i] = (uint32_t)writer.bytes.size;
        if (edits[i].rewrite)
            write_edited(&writer, lsda, &edits[i]);
        else
            write_kept(&writer, lsda);
    }
    out->data = buffer_bytes(&writer.bytes);
    move_relocs(&writer, out);
}
