/* SPDX-License-Identifier: MIT
 *
 * All FDEs of an object: walk the sections, let libdwarf read the sound records, run
 * the instructions, sort by place.
 */
#include "internal.h"

#include <assert.h>
#include <stdlib.h>

struct reader {
    struct arena *arena; /* of the values that are made */
    struct arena *stage; /* of what it takes to make them */
    const struct object *object;
    uint32_t first, end; /* its sections that are read */
    array_of(struct walk) walks;
    uint32_t entry_count, cie_count, fde_count;
};

/* --- gathering --- */

static bool walk_all(struct reader *reader, struct error *err)
{
    const struct object *object = reader->object;
    for (uint32_t i = reader->first; i < reader->end; i++) {
        struct walk walk;
        if (!section_is_frame(&object->sections[i]))
            continue;
        if (!walk_section(reader->stage, object, i, &walk, err))
            return false;
        array_push(reader->stage, &reader->walks, walk);
        reader->cie_count += walk.cie_count;
        reader->fde_count += walk.fde_count;
    }
    return true;
}

/* The records that are sound, in file order. */
static struct entry *gather_entries(struct reader *reader)
{
    struct entry *entries = arena_new_array(reader->stage, struct entry,
                                            reader->cie_count + reader->fde_count);
    for (uint32_t w = 0; w < reader->walks.count; w++) {
        const struct walk *walk = &reader->walks.items[w];
        for (uint32_t i = 0; i < walk->record_count; i++) {
            const struct record *record = &walk->records[i];
            if (record->refusal != REFUSAL_NONE)
                continue;
            struct entry entry = {.walk = walk, .record = record};
            if (!record->is_cie)
                entry.target = fde_target(reader->object, walk, record);
            entries[reader->entry_count++] = entry;
        }
    }
    return entries;
}

/* --- making values --- */

/* Index of the relocation of the LSDA pointer, or NO_INDEX. */
static uint32_t lsda_reloc(const struct section *section, const struct record *record)
{
    for (uint32_t i = 0; i < record->reloc_count; i++)
        if (section->relocs[record->reloc + i].offset == record->lsda)
            return record->reloc + i;
    return NO_INDEX;
}

static void find_lsda(const struct object *object, const struct walk *walk,
                      const struct record *record, struct fde *fde)
{
    fde->lsda_section = fde->lsda_reloc = NO_INDEX;
    if (!record->lsda)
        return;
    const struct section *section = &object->sections[walk->section];
    const struct cie *cie = &walk->cies[record->cie];
    uint32_t size = lsda_size(cie);
    fde->lsda_reloc = lsda_reloc(section, record);
    if (fde->lsda_reloc == NO_INDEX) {
        fde->has_lsda = load_le(section->data.at + record->lsda, size) != 0;
        return;
    }
    fde->has_lsda = true;
    const struct reloc *reloc = &section->relocs[fde->lsda_reloc];
    uint8_t application = cie->lsda_encoding & (PE_APPLICATION | PE_INDIRECT);
    if ((application != 0 && application != PE_PCREL) ||
        !reloc_fits(object->machine, reloc->type, size, application == PE_PCREL) ||
        reloc->symbol >= object->symbol_count)
        return;
    const struct symbol *symbol = &object->symbols[reloc->symbol];
    uint64_t offset = symbol->value + (uint64_t)reloc->addend;
    if (symbol->section == SECTION_UNDEFINED ||
        symbol->section >= object->section_count ||
        offset >= object->sections[symbol->section].data.size || offset >= UINT32_MAX)
        return;
    fde->lsda_section = symbol->section;
    fde->lsda_offset = (uint32_t)offset;
}

static void make_cie(struct row_table *rows, uint16_t machine,
                     const struct entry *entry, struct cie *cie)
{
    if (!entry) /* the walk has refused it */
        return;
    cie->refusal = entry->agreed ? machine_run_cie(rows, machine, cie, entry->program)
                                 : REFUSAL_BAD_FRAME;
}

/* Length, and whether it is a place in the code section. */
static bool set_range(const struct object *object, const struct entry *entry,
                      struct fde *fde)
{
    uint64_t room = UINT32_MAX - 1 - fde->start;
    if (fde->code_section != NO_INDEX)
        room = object->sections[fde->code_section].data.size - fde->start;
    fde->length = (uint32_t)(entry->range < room ? entry->range : room);
    return entry->range <= room && entry->target.understood;
}

/* Every row has a rule for what has one at a function's entry: the return address, on
 * x86-64. Under another CIE, a helper's, nothing could say "no rule at all". */
static bool rows_are_whole(const struct row_table *rows, uint16_t machine,
                           const struct fde *fde)
{
    struct row entry = entry_row(machine);
    for (uint32_t c = 0; c < fde->change_count; c++) {
        const struct row *row = row_get(rows, fde->changes[c].row);
        for (uint32_t i = 0; i < entry.rule_count; i++)
            if (!row_rule(row, entry.rules[i].column))
                return false;
    }
    return true;
}

/* `entry` is NULL when the walk has refused the record. */
static void make_fde(struct reader *reader, struct row_table *rows,
                     const struct walk *walk, const struct record *record,
                     const struct entry *entry, struct fde *fde)
{
    const struct object *object = reader->object;
    const struct cie *cies = walk->cies;
    const struct cie *cie = &cies[record->cie];
    struct target_place target =
        entry ? entry->target : fde_target(object, walk, record);
    fde->section = walk->section;
    fde->offset = record->offset;
    fde->code_section = target.section;
    fde->start = target.offset;
    fde->refusal = REFUSAL_BAD_FRAME;
    fde->lsda_section = fde->lsda_reloc = NO_INDEX;
    if (!entry || !entry->agreed)
        return;
    find_lsda(object, walk, record, fde);
    if (set_range(object, entry, fde) && cie->refusal == REFUSAL_NONE)
        fde->refusal = machine_run_fde(reader->arena, rows, object->machine, cie,
                                       entry->program, fde);
    if (fde->refusal == REFUSAL_NONE && !rows_are_whole(rows, object->machine, fde)) {
        fde->refusal = REFUSAL_BAD_FRAME;
        fde->change_count = 0;
    }
}

/* --- order --- */

static int compare_u32(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

/* It covers no byte, and is known to. (Empty cold parts have such entries.) */
static bool is_empty(const struct fde *fde)
{
    return fde->length == 0 && fde->refusal == REFUSAL_NONE;
}

/* By place; of those that start at one place the empty ones come first, so that they
 * never stand between the others that touch a range. */
int fde_compare(const void *left, const void *right)
{
    const struct fde *a = left, *b = right;
    int order = compare_u32(a->code_section, b->code_section);
    if (!order)
        order = compare_u32(a->start, b->start);
    if (!order)
        order = compare_u32(!is_empty(a), !is_empty(b));
    if (!order)
        order = compare_u32(a->section, b->section);
    return order ? order : compare_u32(a->offset, b->offset);
}

/* FDEs that overlap contradict each other: refused. Searching by place relies on ends
 * that rise with the starts, so an inner one is taken to reach as far as the outer. An
 * empty one inside another stops being empty by that: returns whether the order may have
 * changed. */
static bool refuse_overlaps(struct fde *fdes, uint32_t count)
{
    bool any = false;
    uint32_t reaching = 0; /* the one that reaches farthest in the current section */
    for (uint32_t i = 1; i < count && fdes[i].code_section != NO_INDEX; i++) {
        struct fde *before = &fdes[reaching];
        uint64_t end = (uint64_t)before->start + before->length;
        bool same = before->code_section == fdes[i].code_section;
        if (same && fdes[i].start < end) {
            before->refusal = fdes[i].refusal = REFUSAL_BAD_FRAME;
            before->change_count = fdes[i].change_count = 0;
            if (fdes[i].start + (uint64_t)fdes[i].length < end)
                fdes[i].length = (uint32_t)(end - fdes[i].start);
            any = true;
        }
        if (!same || (uint64_t)fdes[i].start + fdes[i].length >= end)
            reaching = i;
    }
    return any;
}

/* In file order. */
static struct frames_piece make_piece(struct reader *reader, struct row_table *rows,
                                      const struct entry *entries)
{
    const struct object *object = reader->object;
    struct cie *cies = arena_new_array(reader->arena, struct cie, reader->cie_count);
    struct fde *fdes = arena_new_array(reader->arena, struct fde, reader->fde_count);
    uint32_t cie_count = 0, fde_count = 0, entry_at = 0;
    for (uint32_t w = 0; w < reader->walks.count; w++) {
        struct walk walk = reader->walks.items[w];
        uint32_t base = cie_count;
        walk.cies = &cies[base]; /* those that know their rows */
        for (uint32_t i = 0; i < walk.record_count; i++) {
            const struct record *record = &walk.records[i];
            const struct entry *entry =
                record->refusal == REFUSAL_NONE ? &entries[entry_at++] : NULL;
            if (record->is_cie) {
                cies[cie_count] = reader->walks.items[w].cies[record->cie];
                make_cie(rows, object->machine, entry, &cies[cie_count++]);
            } else {
                make_fde(reader, rows, &walk, record, entry, &fdes[fde_count]);
                fdes[fde_count++].cie = base + record->cie;
            }
        }
    }
    assert(entry_at == reader->entry_count && fde_count == reader->fde_count);
    return (struct frames_piece){cies, cie_count, fdes, fde_count};
}

bool frames_read_sections(struct arena *arena, const struct object *object,
                          uint32_t first, uint32_t end, struct row_table *rows,
                          struct frames_piece *out, struct error *err)
{
    struct reader reader = {.arena = arena,
                            .stage = arena_new(),
                            .object = object,
                            .first = first,
                            .end = end};
    bool ok = walk_all(&reader, err);
    if (ok) {
        struct entry *entries = gather_entries(&reader);
        image_read(reader.stage, object, entries, reader.entry_count);
        *out = make_piece(&reader, rows, entries);
    }
    arena_free(reader.stage);
    return ok;
}

/* All of them behind each other. */
static struct frames_piece join(struct arena *arena, const struct frames_piece *pieces,
                                uint32_t count)
{
    uint32_t cies = 0, fdes = 0;
    if (count == 1)
        return pieces[0];
    for (uint32_t i = 0; i < count; i++) {
        cies += pieces[i].cie_count;
        fdes += pieces[i].fde_count;
    }
    struct frames_piece all = {arena_new_array(arena, struct cie, cies), 0,
                               arena_new_array(arena, struct fde, fdes), 0};
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t f = 0; f < pieces[i].fde_count; f++) {
            struct fde *fde = &all.fdes[all.fde_count++];
            *fde = pieces[i].fdes[f];
            fde->cie += all.cie_count;
        }
        for (uint32_t c = 0; c < pieces[i].cie_count; c++)
            all.cies[all.cie_count++] = pieces[i].cies[c];
    }
    return all;
}

struct frames frames_join(struct arena *arena, const struct frames_piece *pieces,
                          uint32_t count)
{
    struct frames_piece all = join(arena, pieces, count);
    if (all.fde_count)
        qsort(all.fdes, all.fde_count, sizeof *all.fdes, fde_compare);
    if (refuse_overlaps(all.fdes, all.fde_count))
        qsort(all.fdes, all.fde_count, sizeof *all.fdes, fde_compare);
    return (struct frames){all.cies, all.cie_count, all.fdes, all.fde_count};
}

bool frames_read(struct arena *arena, const struct object *object,
                 struct row_table *rows, struct frames *out, struct error *err)
{
    struct frames_piece piece;
    if (!frames_read_sections(arena, object, 1, object->section_count, rows, &piece, err))
        return false;
    *out = frames_join(arena, &piece, 1);
    return true;
}

/* --- asking --- */

/* A place inside the code; an FDE of unknown length counts where it starts. */
static bool fde_touches(const struct fde *fde, uint64_t start, uint64_t end)
{
    uint64_t length = fde->length || is_empty(fde) ? fde->length : 1;
    return fde->start < end && fde->start + length > start;
}

uint32_t frames_find(const struct frames *frames, uint32_t code_section, uint32_t start,
                     uint32_t end, uint32_t *first)
{
    struct fde key = {.code_section = code_section,
                      .start = start}; /* empty: the first */
    uint32_t low = 0, high = frames->fde_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (fde_compare(&frames->fdes[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    while (low && frames->fdes[low - 1].code_section == code_section &&
           fde_touches(&frames->fdes[low - 1], start, end))
        low--;
    while (low < frames->fde_count && is_empty(&frames->fdes[low]) &&
           fde_compare(&frames->fdes[low],
                       &(struct fde){.code_section = code_section, .start = end}) < 0)
        low++;
    *first = low;
    uint32_t count = 0;
    while (low + count < frames->fde_count &&
           frames->fdes[low + count].code_section == code_section &&
           fde_touches(&frames->fdes[low + count], start, end))
        count++;
    return count;
}

uint32_t fde_change_at(const struct fde *fde, uint32_t offset)
{
    uint32_t low = 0, high = fde->change_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (fde->changes[middle].offset <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? low - 1 : NO_INDEX;
}

uint32_t fde_row_at(const struct fde *fde, uint32_t offset)
{
    uint32_t change = fde_change_at(fde, offset);
    return change == NO_INDEX ? ROW_NONE : fde->changes[change].row;
}
