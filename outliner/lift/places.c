/* SPDX-License-Identifier: MIT
 *
 * Places in data that relocations refer to, from anywhere in the object. Nothing states
 * the end of a jump table, but whatever the next reference leads to is something else.
 *
 * Asked for every table, so they are sorted once; and few, since tables whose end
 * matters lie in sections that have relocations themselves.
 */
#include "outliner/lift/lift.h"

#include <stdlib.h>

static bool may_hold_tables(const struct section *section)
{
    return section->reloc_count != 0 && !section_is_code(section) &&
           !section_is_frame(section) && !section_is_debug(section);
}

static void note_places(struct lift *lift, uint32_t object, uint32_t from)
{
    const struct object *of = lift->program->objects->items[object];
    const struct section *section = &of->sections[from];
    uint32_t code = program_code_of(lift->program, object, from);
    for (uint32_t i = 0; i < section->reloc_count; i++) {
        const struct reloc *reloc = &section->relocs[i];
        const struct symbol *symbol = &of->symbols[reloc->symbol];
        if (symbol->section == SECTION_UNDEFINED ||
            symbol->section >= of->section_count ||
            !may_hold_tables(&of->sections[symbol->section]))
            continue;
        int64_t offset = wrapping_add((int64_t)symbol->value, reloc->addend);
        uint32_t insn = program_insn_of_reloc(lift->program, code, reloc);
        offset = wrapping_add(offset, insn_reloc_bias(lift->program, insn, reloc));
        uint64_t address = (uint64_t)offset & ADDRESS_BITS;
        struct data_place place = {object, symbol->section, (uint32_t)address};
        if (address < NO_INDEX)
            array_push(lift->arena, &lift->places, place);
    }
}

static int compare_places(const void *left, const void *right)
{
    const struct data_place *a = left, *b = right;
    if (a->object != b->object)
        return a->object < b->object ? -1 : 1;
    if (a->section != b->section)
        return a->section < b->section ? -1 : 1;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

void lift_places(struct lift *lift)
{
    struct program *program = lift->program;
    for (uint32_t o = 0; o < program->objects->count; o++) {
        for (uint32_t s = 1; s < program->objects->items[o]->section_count; s++)
            note_places(lift, o, s);
    }
    if (lift->places.count)
        qsort(lift->places.items, lift->places.count, sizeof *lift->places.items,
              compare_places);
    program->places = lift->places.items;
    program->place_count = lift->places.count;
}

uint32_t program_next_place(const struct program *program, uint32_t object,
                            uint32_t section, uint32_t offset)
{
    struct data_place wanted = {object, section, offset};
    uint32_t low = 0, high = program->place_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare_places(&program->places[middle], &wanted) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < program->place_count && program->places[low].object == object &&
                 program->places[low].section == section;
    return found ? program->places[low].offset : NO_INDEX;
}
