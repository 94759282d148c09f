/* SPDX-License-Identifier: MIT
 *
 * References to moved positions, outside of the code itself: addends of relocations,
 * and the entries of jump tables.
 *
 * A relocation whose symbol does not track its position keeps its symbol, and its
 * addend changes by as much as the position moved, less what the symbol itself moved.
 * Whatever bias the addend holds (the end of the instruction, the entry's place in a
 * table) stays in it. That is computed from the old relocation, never from one already
 * changed, so a relocation that two things explain is not moved twice; a jump table
 * knows best what its entries mean, so it has the last word.
 */
#include "outliner/rewrite/rewrite.h"

#include <assert.h>
#include <string.h>

/* A private copy of a section's relocations, at their old places. */
struct reloc *rewrite_own_relocs(struct rewrite *rewrite, uint32_t object,
                                 uint32_t section)
{
    struct draft *draft = &rewrite->drafts[object];
    struct section *of = &draft->sections[section];
    if (!draft->relocs[section]) {
        draft->relocs[section] = arena_copy(rewrite->arena, of->relocs,
                                            of->reloc_count * sizeof *of->relocs);
        of->relocs = draft->relocs[section];
    }
    return draft->relocs[section];
}

/* The same for its bytes. */
uint8_t *rewrite_own_data(struct rewrite *rewrite, uint32_t object, uint32_t section)
{
    struct draft *draft = &rewrite->drafts[object];
    struct section *of = &draft->sections[section];
    if (!draft->data[section]) {
        draft->data[section] = arena_copy(rewrite->arena, of->data.at, of->data.size);
        of->data.at = draft->data[section];
    }
    return draft->data[section];
}

/* Makes a relocation mean where `position` of a code section is now. */
static void move_reloc(struct rewrite *rewrite, uint32_t object, uint32_t section,
                       uint32_t reloc, uint32_t code, uint32_t position)
{
    const struct draft *draft = &rewrite->drafts[object];
    const struct reloc *old = &draft->old->sections[section].relocs[reloc];
    int64_t moved = (int64_t)offsets_start(&rewrite->layouts[code].offsets, position) -
                    (int64_t)position;
    int64_t tracked = (int64_t)draft->symbols.items[old->symbol].value -
                      (int64_t)draft->old->symbols[old->symbol].value;
    rewrite_own_relocs(rewrite, object, section)[reloc].addend =
        wrapping_add(old->addend, moved - tracked);
}

/* --- jump tables --- */

static bool moves(const struct rewrite *rewrite, uint32_t code)
{
    return rewrite->layouts[code].edits.count > 0;
}

static void move_table_relocs(struct rewrite *rewrite, const struct jump_table *table)
{
    const struct section *section =
        &rewrite->drafts[table->object].old->sections[table->section];
    for (uint32_t i = 0; i < table->count; i++) {
        uint64_t at = table->offset + (uint64_t)i * table->entry_size;
        uint32_t code = table_code(rewrite->program, table, i);
        uint32_t reloc = section_reloc_at(section, at);
        assert(reloc < section->reloc_count && section->relocs[reloc].offset == at);
        if (moves(rewrite, code))
            move_reloc(rewrite, table->object, table->section, reloc, code,
                       table->targets[i]);
    }
}

static bool fail_entry(const struct rewrite *rewrite, const struct jump_table *table,
                       uint64_t at, struct error *err)
{
    struct place place =
        object_place(rewrite->drafts[table->object].old, table->section, at);
    return fail(err, &place,
                "an entry of a jump table does not fit after outlining (a bug of "
                "mo-link)");
}

static bool move_raw_entries(struct rewrite *rewrite, const struct jump_table *table,
                             uint32_t code, struct error *err)
{
    const struct offsets *offsets = &rewrite->layouts[code].offsets;
    uint8_t *data = rewrite_own_data(rewrite, table->object, table->section);
    int64_t base = offsets_start(offsets, table->base);
    for (uint32_t i = 0; i < table->count; i++) {
        uint64_t at = table->offset + (uint64_t)i * table->entry_size;
        int64_t distance = (int64_t)offsets_start(offsets, table->targets[i]) - base;
        int64_t entry = distance / ((int64_t)1 << table->shift);
        uint32_t bits = table->entry_size * 8u;
        bool fits = table->is_signed
                        ? fits_signed(entry, bits)
                        : entry >= 0 && fits_unsigned((uint64_t)entry, bits);
        if (!fits || entry * ((int64_t)1 << table->shift) != distance)
            return fail_entry(rewrite, table, at, err);
        store_le(data + at, table->entry_size, (uint64_t)entry);
    }
    return true;
}

static bool move_table(struct rewrite *rewrite, const struct jump_table *table,
                       struct error *err)
{
    uint32_t function = program_function_of_insn(rewrite->program, table->insn);
    uint32_t code = rewrite->program->functions[function].code;
    if (table->kind == TABLE_RAW) /* such distances do not leave the section */
        return !moves(rewrite, code) || move_raw_entries(rewrite, table, code, err);
    if (table->kind != TABLE_LABELS) /* whose relocations are references like others */
        move_table_relocs(rewrite, table);
    return true;
}

/* --- those of one object --- */

/* The first reference of an object, or of one behind it. */
static uint32_t first_ref(const struct program *program, uint32_t object)
{
    uint32_t low = 0, high = program->ref_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (program->refs[middle].object < object)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The same for tables: they lie in the objects of their jumps, by which they are sorted. */
static uint32_t first_table(const struct program *program, uint32_t object)
{
    uint32_t low = 0, high = program->table_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (program->tables[middle].object < object)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool references_move(struct rewrite *rewrite, uint32_t object, struct error *err)
{
    const struct program *program = rewrite->program;
    for (uint32_t i = first_ref(program, object);
         i < program->ref_count && program->refs[i].object == object; i++) {
        const struct code_ref *ref = &program->refs[i];
        if (moves(rewrite, ref->code))
            move_reloc(rewrite, object, ref->section, ref->reloc, ref->code,
                       ref->position);
    }
    for (uint32_t i = first_table(program, object);
         i < program->table_count && program->tables[i].object == object; i++) {
        if (!move_table(rewrite, &program->tables[i], err))
            return false;
    }
    return true;
}
