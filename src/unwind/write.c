/* SPDX-License-Identifier: MIT
 *
 * Writing .eh_frame sections: an old one with its FDEs edited, or a new one for
 * helpers.
 *
 * What is not edited keeps its bytes, its padding included; only the distance to its
 * CIE is recomputed. A new record is padded to four bytes, as assemblers do inside a
 * section (LSB core 10.6.1 asks for no more than that the length fields be aligned, and
 * unwinders read pointers byte by byte). The last record fills up the alignment of the
 * section: a linker that concatenates sections without reading them (ld -r) would leave
 * a gap of zeros there, and four zeros end the whole table.
 */
#include "internal.h"

#include <assert.h>
#include <elf.h>
#include <stdlib.h>

enum { RECORD_ALIGN = 4, HEADER = 8 /* length, identification */ };

uint32_t fde_header_size(const struct cie *cie)
{
    uint32_t augmentation = cie->augmented ? 1 + lsda_size(cie) : 0;
    return HEADER + 2 * pointer_size(cie->fde_encoding) + augmentation;
}

uint32_t fde_size(const struct row_table *rows, const struct cie *cie,
                  const struct row_change *changes, uint32_t change_count,
                  uint32_t start, uint32_t length)
{
    (void)length; /* takes a fixed number of bytes */
    struct terms terms = {row_get(rows, cie->initial_row), cie->code_align,
                          cie->data_align};
    struct span span = {changes, change_count, start, NULL, 0};
    uint64_t size = fde_header_size(cie) + program_write(NULL, &terms, rows, &span);
    return (uint32_t)align_up(size, RECORD_ALIGN);
}

uint32_t frame_count(const struct section *section)
{
    struct cursor cursor = cursor_of(section->data);
    uint32_t count = 0;
    while (cursor_left(&cursor)) {
        uint32_t length = cursor_u32(&cursor);
        if (length < 4 || length > cursor_left(&cursor))
            break;
        count += cursor_u32(&cursor) != 0;
        cursor_take(&cursor, length - 4);
    }
    return count;
}

/* --- an old section --- */

struct writer {
    struct arena *arena;
    const struct section *section; /* the old one */
    const struct walk *walk;
    const struct row_table *rows;
    const struct frames *frames;
    const struct fde_edit **edits; /* by record; NULL: none (and for CIEs) */
    const struct fde **fdes;       /* by record; NULL for CIEs */
    bool *kept;                    /* by record */
    uint32_t *cie_at;              /* by CIE of the walk: its new offset */
    struct buffer bytes;
    array_of(struct reloc) relocs;
    uint32_t last; /* new offset of the record that was written last */
};

/* Writes the length field of the record that starts at `at` and ends at the end. */
static void close_record(struct buffer *bytes, uint32_t at)
{
    store_le(bytes->at + at, 4, bytes->size - at - 4);
}

/* No compiler aligns .eh_frame by more; who asks for gigabytes does not get them. */
enum { MOST_ALIGN = 64 }; /* bytes */

/* Extends the record until the section's size is a multiple of `align`. */
static void pad_record(struct buffer *bytes, uint32_t at, uint64_t align)
{
    buffer_fill(bytes, CFA_NOP, align_up(bytes->size, align) - bytes->size);
    close_record(bytes, at);
}

static const struct fde *find_fde(const struct object *object, const struct walk *walk,
                                  const struct record *record,
                                  const struct frames *frames)
{
    struct target_place target = fde_target(object, walk, record);
    struct fde key = {.code_section = target.section,
                      .start = target.offset,
                      .section = walk->section,
                      .offset = record->offset};
    const struct fde *fde =
        bsearch(&key, frames->fdes, frames->fde_count, sizeof key, fde_compare);
    key.refusal = REFUSAL_BAD_FRAME; /* it sorts like one that is not empty */
    if (!fde)
        fde = bsearch(&key, frames->fdes, frames->fde_count, sizeof key, fde_compare);
    assert(fde); /* frames were read from this object */
    return fde;
}

/* Finds the edit of every record and what is kept. Returns whether anything changes. */
static bool decide(struct writer *writer, const struct object *object,
                   const struct fde_edit *edits)
{
    const struct walk *walk = writer->walk;
    bool *used = arena_new_array(writer->arena, bool, walk->cie_count);
    bool *lost = arena_new_array(writer->arena, bool, walk->cie_count);
    bool any = false;
    for (uint32_t i = 0; i < walk->record_count; i++) {
        const struct record *record = &walk->records[i];
        if (record->is_cie)
            continue;
        writer->fdes[i] = find_fde(object, walk, record, writer->frames);
        const struct fde_edit *edit = &edits[writer->fdes[i] - writer->frames->fdes];
        assert(!edit->rewrite || edit->drop ||
               writer->fdes[i]->refusal == REFUSAL_NONE);
        writer->edits[i] = edit->rewrite ? edit : NULL;
        writer->kept[i] = !edit->drop;
        *(edit->drop ? &lost[record->cie] : &used[record->cie]) = true;
        any |= edit->drop || edit->rewrite;
    }
    /* A CIE goes with the last of its FDEs; one that never had any stays. */
    for (uint32_t i = 0; i < walk->record_count; i++) {
        const struct record *record = &walk->records[i];
        if (record->is_cie)
            writer->kept[i] = used[record->cie] || !lost[record->cie];
    }
    return any;
}

static void move_relocs(struct writer *writer, const struct record *record, uint32_t at)
{
    for (uint32_t i = 0; i < record->reloc_count; i++) {
        struct reloc reloc = writer->section->relocs[record->reloc + i];
        reloc.offset = reloc.offset - record->offset + at;
        array_push(writer->arena, &writer->relocs, reloc);
    }
}

/* The header of the old record, the new length, the new program. */
static void write_edited(struct writer *writer, const struct record *record,
                         const struct fde_edit *edit, const struct cie *cie)
{
    struct buffer *bytes = &writer->bytes;
    uint32_t at = (uint32_t)bytes->size;
    uint32_t pointer = pointer_size(cie->fde_encoding);
    buffer_put(bytes, writer->section->data.at + record->offset, fde_header_size(cie));
    store_le(bytes->at + at + HEADER + pointer, pointer, edit->length);
    struct terms terms = {row_get(writer->rows, cie->initial_row), cie->code_align,
                          cie->data_align};
    struct span span = {edit->changes, edit->change_count, 0, edit->starts,
                        edit->start_count};
    program_write(bytes, &terms, writer->rows, &span);
    pad_record(bytes, at, RECORD_ALIGN);
}

static void write_record(struct writer *writer, uint32_t index)
{
    const struct record *record = &writer->walk->records[index];
    const struct fde_edit *edit = writer->edits[index];
    struct buffer *bytes = &writer->bytes;
    uint32_t at = (uint32_t)bytes->size;
    if (edit)
        write_edited(writer, record, edit,
                     &writer->frames->cies[writer->fdes[index]->cie]);
    else
        buffer_put(bytes, writer->section->data.at + record->offset, record->size);
    if (record->is_cie)
        writer->cie_at[record->cie] = at;
    else
        store_le(bytes->at + at + 4, 4, at + 4 - writer->cie_at[record->cie]);
    move_relocs(writer, record, at);
    writer->last = at;
}

void frames_rewrite(struct arena *arena, const struct object *object, uint32_t section,
                    const struct row_table *rows, const struct frames *frames,
                    const struct fde_edit *edits, struct section *out)
{
    const struct section *old = &object->sections[section];
    struct walk walk;
    struct error none = {0};
    bool sound = walk_section(arena, object, section, &walk, &none);
    assert(sound); /* frames_read has walked it before */
    (void)sound;
    struct writer writer = {.arena = arena,
                            .section = old,
                            .walk = &walk,
                            .rows = rows,
                            .frames = frames,
                            .bytes = buffer_new(arena)};
    writer.edits = arena_new_array(arena, const struct fde_edit *, walk.record_count);
    writer.fdes = arena_new_array(arena, const struct fde *, walk.record_count);
    writer.kept = arena_new_array(arena, bool, walk.record_count);
    writer.cie_at = arena_new_array(arena, uint32_t, walk.cie_count);
    *out = *old;
    if (!decide(&writer, object, edits))
        return;
    for (uint32_t i = 0; i < walk.record_count; i++)
        if (writer.kept[i])
            write_record(&writer, i);
    if (writer.bytes.size && walk.end == old->data.size)
        pad_record(&writer.bytes, writer.last,
                   old->align < MOST_ALIGN ? old->align : MOST_ALIGN);
    buffer_put(&writer.bytes, old->data.at + walk.end, old->data.size - walk.end);
    out->data = buffer_bytes(&writer.bytes);
    out->relocs = writer.relocs.items;
    out->reloc_count = writer.relocs.count;
}

/* --- a new section --- */

static uint32_t build_cie(struct buffer *bytes, uint16_t machine,
                          const struct frame_range *range)
{
    static const uint8_t x86[] = {CFA_DEF_CFA, 7, 8, CFA_OFFSET | 16, 1};
    static const uint8_t arm[] = {CFA_DEF_CFA, 31, 0};
    bool is_arm = machine == EM_AARCH64;
    uint32_t at = (uint32_t)bytes->size;
    buffer_u32(bytes, 0);
    buffer_u32(bytes, 0);
    buffer_u8(bytes, 1);
    buffer_put(bytes, "zR", 2);
    if (range->b_key)
        buffer_u8(bytes, 'B');
    if (range->signal_frame)
        buffer_u8(bytes, 'S');
    buffer_u8(bytes, 0);
    buffer_uleb(bytes, is_arm ? 4 : 1);
    buffer_sleb(bytes, -8);
    buffer_u8(bytes, is_arm ? 30 : 16);
    buffer_u8(bytes, 1); /* augmentation data: the encoding */
    buffer_u8(bytes, PE_PCREL | PE_SDATA4);
    if (is_arm)
        buffer_put(bytes, arm, sizeof arm);
    else
        buffer_put(bytes, x86, sizeof x86);
    pad_record(bytes, at, RECORD_ALIGN);
    return at;
}

static struct span span_of_range(struct arena *arena, const struct frame_range *range)
{
    if (range->starts)
        return (struct span){range->changes, range->change_count, range->start,
                             range->starts, range->start_count};
    uint32_t *starts = arena_new_array(arena, uint32_t, range->change_count);
    for (uint32_t i = 0; i < range->change_count; i++)
        starts[i] = range->changes[i].offset;
    return (struct span){range->changes, range->change_count, range->start, starts,
                         range->change_count};
}

void frames_build(struct arena *arena, uint16_t machine, const struct row_table *rows,
                  const struct frame_range *ranges, uint32_t range_count,
                  uint32_t symbol, uint32_t unit, struct section *out)
{
    struct row entry = entry_row(machine);
    struct terms terms = {&entry, machine == EM_AARCH64 ? 4 : 1, -8};
    struct buffer bytes = buffer_new(arena);
    struct reloc *relocs = arena_new_array(arena, struct reloc, range_count);
    uint32_t type = machine == EM_AARCH64 ? R_AARCH64_PREL32 : R_X86_64_PC32;
    uint32_t cie_at[4]; /* by kind */
    bool there[4] = {false};
    uint32_t last = 0;
    for (uint32_t i = 0; i < range_count; i++) {
        const struct frame_range *range = &ranges[i];
        uint32_t kind = (uint32_t)range->signal_frame << 1 | range->b_key;
        if (!there[kind])
            cie_at[kind] = build_cie(&bytes, machine, range);
        there[kind] = true;
        last = (uint32_t)bytes.size;
        buffer_u32(&bytes, 0);
        buffer_u32(&bytes, last + 4 - cie_at[kind]);
        uint32_t base = range->symbol ? range->symbol : symbol;
        relocs[i] = (struct reloc){bytes.size, range->start, base, type};
        buffer_u32(&bytes, 0);
        buffer_u32(&bytes, range->length);
        buffer_u8(&bytes, 0); /* no augmentation data */
        struct span span = span_of_range(arena, range);
        program_write(&bytes, &terms, rows, &span);
        pad_record(&bytes, last, RECORD_ALIGN);
    }
    if (range_count)
        pad_record(&bytes, last, 8);
    *out = (struct section){.name = ".eh_frame",
                            .type = SHT_PROGBITS,
                            .flags = SHF_ALLOC,
                            .align = 8,
                            .data = buffer_bytes(&bytes),
                            .relocs = relocs,
                            .reloc_count = range_count,
                            .group = NO_INDEX,
                            .unit = unit};
}
