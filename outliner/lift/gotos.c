/* SPDX-License-Identifier: MIT
 *
 * Computed goto (GNU C's labels as values): tables of label addresses in data, which
 * the code loads from and jumps through. Compilers hoist, spill and thread such loads
 * freely (glibc's printf keeps the addresses of five tables on the stack), so nobody
 * asks which table a jump reads. It does not matter: every entry has a relocation that
 * says its position, and a jump whose table is not known may lead to any label of its
 * function that lies in such a table. So all of these labels become blocks, and behind
 * the jump everything is live.
 *
 * That holds for addresses that nothing but a jump uses. Positions kept for other
 * purposes (probes in notes, fault handlers, call sites of profilers) lie in sections
 * of their own, and an assembler's author who computes with one ("label + 64 * i")
 * makes no table of them. So a table lies in plain data, has two entries or more side
 * by side, eight bytes each, all of one function - and that function has a jump to use
 * them, and refers to the table. Pairs of an instruction and where to go on after a fault
 * look like a table, too, but only the fault handler refers to them.
 */
#include "outliner/lift/lift.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRY = 8 }; /* bytes */

static bool is_plain_data(const struct section *section)
{
    static const char *const names[] = {".rodata", ".data", ".data.rel.ro", ".ldata",
                                        ".lrodata"};
    if (section->type != SHT_PROGBITS || !(section->flags & SHF_ALLOC))
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t length = strlen(names[i]);
        if (strncmp(section->name, names[i], length) == 0 &&
            (section->name[length] == '\0' || section->name[length] == '.'))
            return true;
    }
    return false;
}

/* The relocation is the absolute address of an instruction of this function. */
static bool is_entry(const struct program *program, const struct taken_label *label,
                     uint32_t function, uint32_t number)
{
    const struct object *object = program->objects->items[label->object];
    const struct section *section = &object->sections[label->section];
    if (number >= section->reloc_count)
        return false;
    const struct reloc *reloc = &section->relocs[number];
    const struct reloc_kind *kind = program->target->reloc_kind(reloc->type);
    struct referent to = program_referent(object, reloc, 0);
    if (!kind || kind->kind != RELOC_ABSOLUTE || kind->size != ENTRY || !to.local ||
        to.section != program->code[label->code].section || to.offset < 0 ||
        to.offset >= (int64_t)NO_INDEX)
        return false;
    return program_insn_in(program, function, (uint32_t)to.offset) != NO_INDEX;
}

bool label_is_goto(struct lift *lift, uint32_t function,
                   const struct taken_label *label)
{
    const struct program *program = lift->program;
    const struct section *section =
        &program->objects->items[label->object]->sections[label->section];
    uint32_t number = label->reloc;
    uint64_t at = section->relocs[number].offset;
    if (function == NO_INDEX || !is_plain_data(section) ||
        !is_entry(program, label, function, number))
        return false;
    bool before = number > 0 && is_entry(program, label, function, number - 1) &&
                  section->relocs[number - 1].offset + ENTRY == at;
    bool after = is_entry(program, label, function, number + 1) &&
                 section->relocs[number + 1].offset == at + ENTRY;
    if (!before && !after)
        return false;
    struct label add = {function, label->position, label->section, (uint32_t)at};
    array_push(lift->arena, &lift->labels, add);
    return true;
}

static int by_position(const void *left, const void *right)
{
    const struct label *a = left, *b = right;
    if (a->function != b->function)
        return a->function < b->function ? -1 : 1;
    return a->position < b->position ? -1 : a->position > b->position;
}

static int by_insn(const void *left, const void *right)
{
    const struct jump_table *a = left, *b = right;
    return a->insn < b->insn ? -1 : a->insn > b->insn;
}

/* How a function refers to where the addresses of its labels lie. */
enum use {
    USE_NONE,
    USE_SECTION, /* to something in that section: perhaps through an anchor */
    USE_ENTRY,   /* to one of them, or between them */
};

/* Where a section's entries lie. */
struct range {
    uint32_t section, first, last; /* section index, section offsets */
};
struct ranges {
    const struct range *items; /* sorted by section */
    uint32_t count;
};

static int by_place(const void *left, const void *right)
{
    const struct range *a = left, *b = right;
    if (a->section != b->section)
        return a->section < b->section ? -1 : 1;
    return a->first < b->first ? -1 : a->first > b->first;
}

static struct ranges ranges_of(struct arena *stage, const struct label *labels,
                               uint32_t count)
{
    struct range *ranges = arena_new_array(stage, struct range, count);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        ranges[i] =
            (struct range){labels[i].section, labels[i].offset, labels[i].offset};
    qsort(ranges, count, sizeof *ranges, by_place);
    for (uint32_t i = 1; i < count; i++) {
        if (ranges[i].section == ranges[kept].section)
            ranges[kept].last = ranges[i].last;
        else
            ranges[++kept] = ranges[i];
    }
    return (struct ranges){ranges, kept + 1};
}

static const struct range *find_range(const struct ranges *ranges, uint32_t section)
{
    uint32_t low = 0, high = ranges->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (ranges->items[middle].section < section)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < ranges->count && ranges->items[low].section == section;
    return found ? &ranges->items[low] : NULL;
}

/* The closest that there is. */
static enum use use_of(const struct program *program, const struct function *function,
                       const struct ranges *ranges)
{
    const struct object *object = program_object(program, function->code);
    const struct section *section = program_section(program, function->code);
    enum use use = USE_NONE;
    for (uint32_t r = section_reloc_at(section, function->start);
         r < section->reloc_count && section->relocs[r].offset < function->end; r++) {
        const struct reloc *reloc = &section->relocs[r];
        uint32_t insn = program_insn_of_reloc(program, function->code, reloc);
        struct referent to =
            program_referent(object, reloc, insn_reloc_bias(program, insn, reloc));
        const struct range *range = to.local ? find_range(ranges, to.section) : NULL;
        if (range && to.offset >= range->first && to.offset <= range->last)
            return USE_ENTRY;
        use = range ? USE_SECTION : use;
    }
    return use;
}

/* A table of the labels for each jump of the function that has none. False: no jump
 * uses them. */
static bool add_tables(struct lift *lift, uint32_t number, enum use use,
                       const uint32_t *targets, uint32_t count)
{
    struct program *program = lift->program;
    const struct function *function = &program->functions[number];
    bool used = false;
    for (uint32_t i = 0; i < function->insn_count; i++) {
        uint32_t insn = function->first_insn + i;
        if (program->insns[insn].flow != FLOW_JUMP_INDIRECT)
            continue;
        used = true;
        if (table_of_insn(program, insn))
            continue;
        struct jump_table table = {.insn = insn,
                                   .object = program->code[function->code].object,
                                   .section = NO_INDEX,
                                   .count = count,
                                   .entry_size = ENTRY,
                                   .kind = TABLE_LABELS,
                                   .doubtful = use != USE_ENTRY,
                                   .explains = NO_INDEX,
                                   .targets = targets};
        array_push(lift->arena, &lift->tables, table);
    }
    return used;
}

/* The labels of one function, sorted. */
static void settle(struct lift *lift, const struct label *labels, uint32_t count)
{
    struct program *program = lift->program;
    uint32_t *targets = arena_new_array(lift->arena, uint32_t, count), kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t insn =
            program_insn_in(program, labels[i].function, labels[i].position);
        program->insns[insn].traits |= INSN_LEADER;
        if (i == 0 || labels[i].position != labels[i - 1].position)
            targets[kept++] = labels[i].position;
    }
    struct arena *stage = arena_new();
    struct ranges ranges = ranges_of(stage, labels, count);
    enum use use = use_of(program, &program->functions[labels->function], &ranges);
    arena_free(stage);
    if (use == USE_NONE || !add_tables(lift, labels->function, use, targets, kept))
        lift_seal(lift, labels->function, REFUSAL_LABEL_TAKEN, labels->position);
}

void lift_gotos(struct lift *lift)
{
    struct program *program = lift->program;
    const struct label *labels = lift->labels.items;
    uint32_t count = lift->labels.count, first = 0;
    if (count == 0)
        return;
    qsort(lift->labels.items, count, sizeof *labels, by_position);
    for (uint32_t i = 1; i <= count; i++) {
        if (i < count && labels[i].function == labels[first].function)
            continue;
        settle(lift, labels + first, i - first);
        first = i;
    }
    if (lift->tables.count)
        qsort(lift->tables.items, lift->tables.count, sizeof *lift->tables.items,
              by_insn);
    program->tables = lift->tables.items;
    program->table_count = lift->tables.count;
}
