/* SPDX-License-Identifier: MIT
 *
 * Jump tables: the target explains each indirect jump that it can. What a table
 * explains (the address of an inner label, relocations in data) is then no longer a
 * mystery; every label that stays unexplained seals its function, and a PC-relative
 * field in data that stays unexplained, so that nobody knows what it counts from,
 * freezes the section.
 */
#include "outliner/lift/lift.h"

#include <stdlib.h>

struct places {
    const struct jump_table *tables;
    const uint32_t *by_place; /* table numbers, sorted by (object, section, offset) */
    uint32_t count;
};

struct place_key {
    uint32_t object, section;
    uint64_t offset;
    uint32_t number;
};

static int compare_keys(const void *left, const void *right)
{
    const struct place_key *a = left, *b = right;
    if (a->object != b->object)
        return a->object < b->object ? -1 : 1;
    if (a->section != b->section)
        return a->section < b->section ? -1 : 1;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static struct place_key key_of(const struct jump_table *table, uint32_t number)
{
    return (struct place_key){table->object, table->section, table->offset, number};
}

static uint64_t table_end(const struct jump_table *table)
{
    return (uint64_t)table->offset + (uint64_t)table->count * table->entry_size;
}

bool table_leaves(const struct program *program, const struct jump_table *table)
{
    if (table->kind == TABLE_LABELS) /* who knows */
        return true;
    for (uint32_t i = 0; table->codes && i < table->count; i++) {
        if (table_insn(program, table, i) == NO_INDEX)
            return true;
    }
    return false;
}

/* Jumps may be many, and all are asked for the way to them. */
static void know_edges(struct program *program, struct arena *stage, uint32_t number)
{
    if (program->edges.start)
        return;
    program->edges = function_edges(stage, program, &program->functions[number]);
    program->edges_of = number;
}

/* One round: adds the tables of a function. Returns how many entries they have. */
static uint64_t find_once(struct lift *lift, struct arena *stage, uint32_t number)
{
    struct program *program = lift->program;
    const struct function *function = &program->functions[number];
    uint64_t entries = 0;
    for (uint32_t i = 0; i < function->insn_count; i++) {
        uint32_t insn = function->first_insn + i;
        struct jump_table table = {.explains = NO_INDEX};
        if (program->insns[insn].flow != FLOW_JUMP_INDIRECT)
            continue;
        know_edges(program, stage, number);
        if (!program->target->find_table(lift->arena, program, insn, &table))
            continue;
        table.insn = insn;
        entries += table.count;
        array_push(lift->arena, &lift->tables, table);
    }
    program->edges.start = NULL;
    return entries;
}

/* Rounds that the tables of one function get to agree with each other. */
enum { ROUNDS = 8 };

/* A switch inside of a case can be understood only once it is known how control comes
 * there, so we look again by the light of the tables that the last look has found, until
 * nothing changes. */
static void find_in_function(struct lift *lift, struct arena *stage, uint32_t number)
{
    uint32_t first = lift->tables.count, count = 0;
    uint64_t entries = 0;
    for (int round = 0; round < ROUNDS; round++) {
        if (count > 0)
            lift->program->tables = arena_copy(lift->arena, lift->tables.items + first,
                                               count * sizeof *lift->tables.items);
        lift->program->table_count = count;
        lift->tables.count = first;
        uint64_t now = find_once(lift, stage, number);
        if (lift->tables.count - first == count && now == entries)
            return;
        count = lift->tables.count - first;
        entries = now;
    }
    lift->tables.count = first;
}

static void find_tables(struct lift *lift)
{
    struct program *program = lift->program;
    struct arena *stage = arena_new();
    for (uint32_t f = 0; f < program->function_count; f++) {
        const struct function *function = &program->functions[f];
        if (program->code[function->code].refusal == REFUSAL_NONE)
            find_in_function(lift, stage, f);
    }
    arena_free(stage);
    program->tables = lift->tables.items;
    program->table_count = lift->tables.count;
}

static uint32_t function_of_table(const struct program *program,
                                  const struct jump_table *table)
{
    return program_function_of_insn(program, table->insn);
}

/* Two tables that share bytes must mean the same by them. */
static bool agree(const struct jump_table *a, const struct jump_table *b)
{
    return a->offset == b->offset && a->kind == b->kind && a->base == b->base &&
           a->entry_size == b->entry_size && a->shift == b->shift &&
           a->is_signed == b->is_signed;
}

static void seal_overlaps(struct lift *lift, const struct place_key *keys)
{
    struct program *program = lift->program;
    for (uint32_t i = 0; i + 1 < program->table_count; i++) {
        const struct jump_table *a = &program->tables[keys[i].number];
        const struct jump_table *b = &program->tables[keys[i + 1].number];
        if (a->object != b->object || a->section != b->section ||
            table_end(a) <= b->offset)
            continue;
        uint32_t fa = function_of_table(program, a), fb = function_of_table(program, b);
        if (agree(a, b) && program->functions[fa].code == program->functions[fb].code)
            continue;
        lift_seal(lift, fa, REFUSAL_INDIRECT_JUMP, program->insns[a->insn].offset);
        lift_seal(lift, fb, REFUSAL_INDIRECT_JUMP, program->insns[b->insn].offset);
    }
}

/* The table that has an entry at this place, or NULL. */
static const struct jump_table *table_at(const struct program *program,
                                         const struct place_key *keys, uint32_t object,
                                         uint32_t section, uint64_t offset)
{
    struct place_key wanted = {object, section, offset, UINT32_MAX};
    uint32_t low = 0, high = program->table_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare_keys(&keys[middle], &wanted) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return NULL;
    const struct jump_table *table = &program->tables[keys[low - 1].number];
    bool holds = table->object == object && table->section == section &&
                 offset >= table->offset && offset < table_end(table);
    return holds ? table : NULL;
}

static const struct jump_table *table_of_label(const struct program *program,
                                               const struct place_key *keys,
                                               const struct taken_label *label)
{
    const struct object *object = program->objects->items[label->object];
    uint64_t offset = object->sections[label->section].relocs[label->reloc].offset;
    return table_at(program, keys, label->object, label->section, offset);
}

/* Binary search: refs are sorted by (object, section, reloc). */
static struct code_ref *ref_of_label(struct program *program,
                                     const struct taken_label *label)
{
    uint32_t low = 0, high = program->ref_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct code_ref *ref = &program->refs[middle];
        bool before = ref->object < label->object ||
                      (ref->object == label->object &&
                       (ref->section < label->section ||
                        (ref->section == label->section && ref->reloc < label->reloc)));
        if (before)
            low = middle + 1;
        else
            high = middle;
    }
    return low < program->ref_count ? &program->refs[low] : NULL;
}

/* A relocation of a table says its position once the table's bias is known. */
static void settle_entry(struct program *program, const struct jump_table *table,
                         const struct taken_label *label)
{
    const struct object *object = program->objects->items[label->object];
    uint64_t offset = object->sections[label->section].relocs[label->reloc].offset;
    struct code_ref *ref = ref_of_label(program, label);
    if (ref)
        ref->position = table->targets[(offset - table->offset) / table->entry_size];
}

static bool is_pc_relative(const struct program *program,
                           const struct taken_label *label)
{
    const struct object *object = program->objects->items[label->object];
    const struct reloc *reloc = &object->sections[label->section].relocs[label->reloc];
    const struct reloc_kind *kind = program->target->reloc_kind(reloc->type);
    return !kind || kind->kind != RELOC_ABSOLUTE;
}

static void settle_label(struct lift *lift, const struct place_key *keys,
                         const bool *explained, const struct taken_label *label)
{
    struct program *program = lift->program;
    if (label->insn != NO_INDEX) {
        uint32_t f = program_function_at(program, label->code, label->position);
        if (!explained[label->insn]) {
            lift_seal(lift, f, REFUSAL_LABEL_TAKEN, label->position);
            array_push(lift->arena, &lift->suspects, f);
        }
        return;
    }
    const struct jump_table *table = table_of_label(program, keys, label);
    if (table) {
        settle_entry(program, table, label);
        return;
    }
    if (!label->exact && is_pc_relative(program, label)) {
        lift_freeze(lift, label->code, REFUSAL_REFERENCE_INTO_SECTION, label->position);
        return;
    }
    uint32_t f = program_function_at(program, label->code, label->position);
    if (!label_is_goto(lift, f, label))
        lift_seal(lift, f, REFUSAL_LABEL_TAKEN, label->position);
}

static void mark_targets(struct lift *lift)
{
    struct program *program = lift->program;
    for (uint32_t t = 0; t < program->table_count; t++) {
        const struct jump_table *table = &program->tables[t];
        uint32_t f = function_of_table(program, table);
        if (function_traps(program, &program->functions[f])) /* see landings.c */
            lift_seal(lift, f, REFUSAL_EXCEPTION_TABLE, program->functions[f].start);
        for (uint32_t i = 0; i < table->count; i++) {
            uint32_t insn = program_insn_at(program, table_code(program, table, i),
                                            table->targets[i]);
            if (insn == NO_INDEX)
                lift_seal(lift, f, REFUSAL_BRANCH_INTO_INSN, table->targets[i]);
            else
                program->insns[insn].traits |= INSN_LEADER;
        }
    }
}

void lift_switches(struct lift *lift)
{
    struct program *program = lift->program;
    find_tables(lift);
    struct arena *stage = arena_new();
    struct place_key *keys =
        arena_new_array(stage, struct place_key, program->table_count);
    bool *explained = arena_new_array(stage, bool, program->insn_count);
    for (uint32_t t = 0; t < program->table_count; t++) {
        keys[t] = key_of(&program->tables[t], t);
        if (program->tables[t].explains != NO_INDEX)
            explained[program->tables[t].explains] = true;
    }
    if (program->table_count)
        qsort(keys, program->table_count, sizeof *keys, compare_keys);
    seal_overlaps(lift, keys);
    mark_targets(lift);
    for (uint32_t i = 0; i < lift->taken.count; i++)
        settle_label(lift, keys, explained, &lift->taken.items[i]);
    arena_free(stage);
}
