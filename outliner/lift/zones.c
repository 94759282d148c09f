/* SPDX-License-Identifier: MIT
 *
 * Functions in two parts. GCC cuts a function in two: foo, and foo.cold in a section of
 * its own, with jumps from one to the other.
 */
#include "outliner/lift/zones.h"

#include <string.h>

/* What GCC and LLVM add to a function's name for its cold part. (LLVM's hot-cold
 * splitting appends a number, too: those are functions that are called.) */
static const char COLD[] = ".cold";

bool jump_stays_inside(const struct program *program, const struct insn *insn)
{
    const struct function *function = &program->functions[insn->function];
    return (insn->traits & INSN_RELOCATED) == 0 && insn->target >= function->start &&
           insn->target < function->end;
}

uint32_t jump_leads_to(const struct program *program, uint32_t number,
                       uint32_t *position)
{
    const struct insn *insn = &program->insns[number];
    uint32_t code = program->functions[insn->function].code, first;
    int64_t offset = insn->target;
    if ((insn->flow != FLOW_JUMP && insn->flow != FLOW_BRANCH) ||
        jump_stays_inside(program, insn))
        return NO_INDEX;
    if (program_relocs(program, number, &first) > 0) {
        const struct object *object = program_object(program, code);
        const struct reloc *reloc = &program_section(program, code)->relocs[first];
        const struct symbol *symbol = &object->symbols[reloc->symbol];
        /* A global one may be preempted, but need not be. */
        code =
            reloc->symbol != 0 && symbol->section < object->section_count
                ? program_code_of(program, program->code[code].object, symbol->section)
                : NO_INDEX;
        offset = (int64_t)symbol->value + reloc->addend +
                 program->target->reloc_bias(insn, reloc->offset);
    }
    if (code == NO_INDEX || offset < 0 || offset >= (int64_t)NO_INDEX)
        return NO_INDEX;
    *position = (uint32_t)offset;
    return program_function_at(program, code, (uint32_t)offset);
}

/* --- functions in two parts --- */

static bool is_cold_part(const struct program *program, uint32_t main, uint32_t part)
{
    const char *name = program_function_name(program, main);
    const char *long_name = program_function_name(program, part);
    size_t length = strlen(name);
    return length > 0 && strncmp(long_name, name, length) == 0 &&
           strcmp(long_name + length, COLD) == 0;
}

static void pair(const struct zones *zones, uint32_t one, uint32_t two)
{
    uint32_t *first = &zones->other[one], *second = &zones->other[two];
    bool alone = *first == NO_INDEX && *second == NO_INDEX;
    if (*first == two && *second == one)
        return;
    *first = alone ? two : SEVERAL;
    *second = alone ? one : SEVERAL;
}

/* A name alone shows nothing: there must be a jump, too. */
static void find_other(const struct zones *zones, const struct zone_jump *jump)
{
    if (is_cold_part(zones->program, jump->from, jump->to) ||
        is_cold_part(zones->program, jump->to, jump->from))
        pair(zones, jump->from, jump->to);
}

uint32_t zones_other_part(const struct zones *zones, uint32_t number)
{
    uint32_t other = zones->other[number];
    return other != NO_INDEX && other != SEVERAL && zones->other[other] == number
               ? other
               : NO_INDEX;
}

/* --- jumps --- */

struct part {
    struct stretch functions;
    array_of(struct zone_jump) jumps;
};

struct finder {
    const struct program *program;
    struct arena **arenas; /* by worker */
    struct part *parts;
};

static void find_in_function(const struct program *program, uint32_t number,
                             struct arena *arena, struct part *part)
{
    const struct function *function = &program->functions[number];
    for (uint32_t i = 0; i < function->insn_count; i++) {
        struct zone_jump jump = {.from = number};
        jump.to = jump_leads_to(program, function->first_insn + i, &jump.position);
        if (jump.to != NO_INDEX && jump.to != number)
            array_push(arena, &part->jumps, jump);
    }
}

static void find_part(void *context, uint32_t number, uint32_t worker)
{
    const struct finder *finder = context;
    struct part *part = &finder->parts[number];
    for (uint32_t f = 0; f < part->functions.count; f++)
        find_in_function(finder->program, part->functions.first + f,
                         finder->arenas[worker], part);
}

static void find_jumps(struct arena *arena, struct zones *zones)
{
    const struct program *program = zones->program;
    struct stretches stretches = program_stretches(arena, program, PART_INSNS);
    struct finder finder = {program, parallel_arenas(arena, program->workers),
                            arena_new_array(arena, struct part, stretches.count)};
    for (uint32_t p = 0; p < stretches.count; p++)
        finder.parts[p].functions = stretches.items[p];
    parallel_do(program->workers, stretches.count, find_part, &finder);
    for (uint32_t p = 0; p < stretches.count; p++) {
        for (uint32_t i = 0; i < finder.parts[p].jumps.count; i++)
            array_push(arena, &zones->jumps, finder.parts[p].jumps.items[i]);
    }
    parallel_adopt(arena, finder.arenas, program->workers);
}

struct zones zones_find(struct arena *arena, struct program *program)
{
    struct zones zones = {
        .program = program,
        .other = array_room(arena, program->function_count, sizeof *zones.other)};
    memset(zones.other, 0xff, program->function_count * sizeof *zones.other);
    find_jumps(arena, &zones);
    for (uint32_t i = 0; i < zones.jumps.count; i++)
        find_other(&zones, &zones.jumps.items[i]);
    return zones;
}
