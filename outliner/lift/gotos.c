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
 * them.
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
    struct label add = {function, label->position};
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

/* A table of the labels for each jump of the function that has none. False: no jump
 * uses them. */
static bool add_tables(struct lift *lift, uint32_t number, const uint32_t *targets,
                       uint32_t count)
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
    if (!add_tables(lift, labels->function, targets, kept))
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
