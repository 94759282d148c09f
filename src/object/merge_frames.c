/* SPDX-License-Identifier: MIT
 *
 * .eh_frame is one section for all code of an object, also for the code that lies in
 * COMDAT groups. When a group is dropped, the FDEs of its functions must go too: left
 * alone they would describe address 0. A linker does the same. So do those that lld -r
 * leaves behind, which name no code any more.
 *
 * Only the frame of the section is looked at (LSB, "Exception Frames"): records with a
 * length; a CIE has id 0, an FDE the distance back to its CIE, and right behind it the
 * relocated address of its code. A section is rewritten only if something is cut from
 * it. CIEs that lose their last FDE are cut as well.
 */
#include "merge.h"

#include "mo/array.h"

#include <elf.h>
#include <inttypes.h>
#include <string.h>

struct record {
    uint32_t at;   /* offset of the length field */
    uint32_t size; /* with the length field */
    uint32_t id;   /* offset of the id field; 0 for a terminator */
    uint32_t cie; /* number of its CIE in the records; NO_INDEX for a CIE, terminator */
    uint32_t uses; /* of a CIE: FDEs that are left */
    bool cut;
};

struct walk {
    struct merge *merge;
    const struct input *input;
    uint32_t section;
    array_of(struct record) records;
    bool any_cut;
};

#define walk_fail(walk, at, ...)                                                       \
    fail((walk)->merge->err,                                                           \
         &(struct place){.file = section_unit((walk)->input->object, (walk)->section), \
                         .section = ".eh_frame",                                       \
                         .offset = (at)},                                              \
         __VA_ARGS__)

static const struct section *section_of(const struct walk *walk)
{
    return &walk->input->object->sections[walk->section];
}

/* The record that starts at `at`, or NO_INDEX. Records are sorted by start. */
static uint32_t find_record(const struct walk *walk, uint64_t at)
{
    uint32_t low = 0, high = walk->records.count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (walk->records.items[middle].at < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low < walk->records.count && walk->records.items[low].at == at ? low
                                                                          : NO_INDEX;
}

/* Refers to a section that has been dropped, or to nothing. */
static bool is_dead(const struct input *input, const struct reloc *reloc)
{
    const struct object *object = input->object;
    uint32_t target = object->symbols[reloc->symbol].section;
    return reloc_is_void(reloc) ||
           (target < object->section_count && input->dropped[target]);
}

/* Whether the field at `at` has such a relocation. */
static bool refers_to_dropped(const struct walk *walk, uint32_t at)
{
    const struct section *section = section_of(walk);
    uint32_t number = section_reloc_at(section, at);
    return number < section->reloc_count && section->relocs[number].offset == at &&
           is_dead(walk->input, &section->relocs[number]);
}

static bool read_record(struct walk *walk, struct cursor *cursor)
{
    struct record record = {.at = (uint32_t)cursor->position, .cie = NO_INDEX};
    uint64_t length = cursor_u32(cursor);
    if (length == UINT32_MAX)
        length = cursor_u64(cursor);
    record.id = (uint32_t)cursor->position;
    (void)cursor_take(cursor, length);
    if (!cursor_ok(cursor) || (length > 0 && length < 4))
        return walk_fail(walk, record.at,
                         "record of 0x%" PRIx64 " bytes leaves the section", length);
    record.size = (uint32_t)cursor->position - record.at;
    if (length == 0) {
        record.id = 0;
        array_push(walk->merge->stage, &walk->records, record);
        return true;
    }
    uint32_t distance = (uint32_t)load_le(cursor->at + record.id, 4);
    if (distance != 0) {
        record.cie =
            distance <= record.id ? find_record(walk, record.id - distance) : NO_INDEX;
        if (record.cie == NO_INDEX || walk->records.items[record.cie].cie != NO_INDEX)
            return walk_fail(walk, record.id, "FDE refers to a CIE that is not there");
        record.cut = refers_to_dropped(walk, record.id + 4);
        walk->any_cut = walk->any_cut || record.cut;
        walk->records.items[record.cie].uses += !record.cut;
    }
    array_push(walk->merge->stage, &walk->records, record);
    return true;
}

/* A CIE goes with its last FDE; one that had none to begin with stays. */
static void cut_unused_cies(struct walk *walk)
{
    for (uint32_t i = 0; i < walk->records.count; i++) {
        const struct record *record = &walk->records.items[i];
        if (!record->cut || record->cie == NO_INDEX)
            continue;
        struct record *cie = &walk->records.items[record->cie];
        cie->cut = cie->uses == 0;
    }
}

static void copy_relocs(const struct walk *walk, struct frame_cut *cut)
{
    const struct section *from = section_of(walk);
    struct reloc *relocs =
        arena_new_array(walk->merge->stage, struct reloc, from->reloc_count);
    uint32_t used = 0, at = 0;
    for (uint32_t i = 0; i < from->reloc_count; i++) {
        while (at + 1 < cut->count && cut->old_at[at + 1] <= from->relocs[i].offset)
            at++;
        if (at < walk->records.count && walk->records.items[at].cut)
            continue;
        relocs[used] = from->relocs[i];
        relocs[used].offset = relocs[used].offset - cut->old_at[at] + cut->new_at[at];
        used++;
    }
    cut->section.relocs = relocs;
    cut->section.reloc_count = used;
}

static struct frame_cut *copy_kept(const struct walk *walk)
{
    struct arena *stage = walk->merge->stage;
    const struct section *from = section_of(walk);
    uint32_t count = walk->records.count;
    uint32_t *old_at = arena_new_array(stage, uint32_t, count + 1);
    uint32_t *new_at = arena_new_array(stage, uint32_t, count + 1);
    uint8_t *bytes = arena_alloc(walk->merge->arena, from->data.size);
    uint32_t size = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct record *record = &walk->records.items[i];
        old_at[i] = record->at;
        new_at[i] = size;
        if (record->cut)
            continue;
        memcpy(bytes + size, from->data.at + record->at, record->size);
        uint32_t id = size + (record->id - record->at);
        if (record->cie != NO_INDEX)
            store_le(bytes + id, 4, id - new_at[record->cie]);
        size += record->size;
    }
    old_at[count] = (uint32_t)from->data.size;
    new_at[count] = size;
    struct frame_cut *cut = arena_new_one(stage, struct frame_cut);
    *cut = (struct frame_cut){*from, old_at, new_at, count + 1};
    cut->section.data = (struct bytes){bytes, size};
    copy_relocs(walk, cut);
    return cut;
}

/* Whether any relocation is dead: if not, the section need not be understood. */
static bool concerns(const struct input *input, uint32_t section)
{
    const struct section *of = &input->object->sections[section];
    for (uint32_t i = 0; i < of->reloc_count; i++) {
        if (is_dead(input, &of->relocs[i]))
            return true;
    }
    return false;
}

static bool cut_section(struct merge *merge, const struct input *input,
                        uint32_t section)
{
    struct walk walk = {.merge = merge, .input = input, .section = section};
    struct cursor cursor = cursor_of(input->object->sections[section].data);
    while (cursor_left(&cursor) > 0) {
        if (!read_record(&walk, &cursor))
            return false;
    }
    if (!walk.any_cut)
        return true;
    cut_unused_cies(&walk);
    input->cuts[section] = copy_kept(&walk);
    return true;
}

bool merge_cut_frames(struct merge *merge)
{
    for (uint32_t i = 0; i < merge->input_count; i++) {
        const struct input *input = &merge->inputs[i];
        for (uint32_t k = 1; k < input->object->section_count; k++) {
            if (section_is_frame(&input->object->sections[k]) && !input->dropped[k] &&
                concerns(input, k) && !cut_section(merge, input, k))
                return false;
        }
    }
    return true;
}

uint64_t merge_offset(const struct input *input, uint32_t section, uint64_t offset)
{
    const struct frame_cut *cut = input->cuts[section];
    if (!cut)
        return offset;
    uint32_t low = 0, high = cut->count;
    while (low + 1 < high) {
        uint32_t middle = low + (high - low) / 2;
        if (cut->old_at[middle] <= offset)
            low = middle;
        else
            high = middle;
    }
    /* Inside a record that was cut, all offsets become the start of the next one. */
    bool gone = low + 1 < cut->count && cut->new_at[low] == cut->new_at[low + 1];
    return cut->new_at[low] + (gone ? 0 : offset - cut->old_at[low]);
}
