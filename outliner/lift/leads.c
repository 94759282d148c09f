/* SPDX-License-Identifier: MIT
 *
 * Finds every reference to a position in code; what it means is for positions.c to say.
 *
 * Most are branches inside of a function and calls to entries of others. Workers look
 * at all, settle those that concern one function alone, and leave the rest in order for
 * one that does what the first of several reasons decides. So the result is the same
 * for any number of workers.
 */
#include "outliner/lift/leads.h"

#include <assert.h>

static bool covers(const struct insn *insn, uint32_t offset)
{
    return insn->offset <= offset && offset - insn->offset < insn->length;
}

enum { NEARBY_INSNS = 16 };

/* The instruction that holds this byte of a code section; NO_INDEX when it lies in no
 * function. The one before it that was asked for last (`near`, or NO_INDEX) is usually not
 * far. */
static uint32_t insn_around(const struct program *program, uint32_t code,
                            uint32_t offset, uint32_t near)
{
    if (near != NO_INDEX) {
        const struct function *in = &program->functions[program->insns[near].function];
        uint32_t end = in->first_insn + in->insn_count;
        for (uint32_t i = near; i < end && i - near < NEARBY_INSNS; i++) {
            if (covers(&program->insns[i], offset))
                return i;
        }
    }
    uint32_t function = program_function_at(program, code, offset);
    bool none = function == NO_INDEX || program->functions[function].opaque;
    return none ? NO_INDEX : program_insn_around(program, function, offset);
}

/* What a worker leaves to be done: an instruction (reloc NO_INDEX) or a relocation. */
struct left {
    struct lead lead;
    enum lead_sort sort;
    bool frozen; /* in code that is not known */
};

struct part {
    struct stretch functions; /* whose instructions, or … */
    uint32_t object;          /* … whose sections: */
    struct stretch sections;
    array_of(uint32_t) insns;
    array_of(struct left) leads;
};

struct positions {
    struct lift *lift;
    struct arena *arenas[MOST_WORKERS]; /* of what parts have left */
    array_of(struct part) parts;
};

static void look_at_functions(struct positions *positions, struct part *part,
                              struct arena *arena)
{
    struct program *program = positions->lift->program;
    for (uint32_t f = 0; f < part->functions.count; f++) {
        const struct function *function =
            &program->functions[part->functions.first + f];
        uint32_t end = function->first_insn + function->insn_count;
        for (uint32_t i = function->first_insn; i < end; i++) {
            if (insn_refers(&program->insns[i]) && !lead_settle_branch(program, i))
                array_push(arena, &part->insns, i);
        }
    }
}

static void look_at_section(struct lift *lift, struct part *part, uint32_t index,
                            struct arena *arena)
{
    struct program *program = lift->program;
    const struct section *section =
        &program->objects->items[part->object]->sections[index];
    uint32_t code = section_is_code(section)
                        ? program_code_of(program, part->object, index)
                        : NO_INDEX;
    uint32_t near = NO_INDEX;
    for (uint32_t r = 0; r < section->reloc_count; r++) {
        struct left left = {.lead = {.lift = lift,
                                     .object = part->object,
                                     .section = index,
                                     .reloc = r,
                                     .at = &section->relocs[r],
                                     .insn = NO_INDEX}};
        struct lead *lead = &left.lead;
        bool in_code = code != NO_INDEX;
        if (in_code && program->code[code].function_count) {
            uint32_t at = (uint32_t)lead->at->offset;
            lead->insn = insn_around(program, code, at, near);
            near = lead->insn != NO_INDEX ? lead->insn : near;
            if (lead->insn == NO_INDEX &&
                program_function_at(program, code, at) == NO_INDEX)
                continue; /* in the padding: frozen already */
        }
        left.frozen = in_code && lead->insn == NO_INDEX;
        if (!left.frozen)
            left.sort = lead_sort_of(lead);
        if (left.frozen || left.sort != LEAD_PLAIN)
            array_push(arena, &part->leads, left);
    }
}

static void look_at_part(void *context, uint32_t number, uint32_t worker)
{
    struct positions *positions = context;
    struct part *part = &positions->parts.items[number];
    struct arena *arena = positions->arenas[worker];
    look_at_functions(positions, part, arena);
    for (uint32_t s = 0; s < part->sections.count; s++)
        look_at_section(positions->lift, part, part->sections.first + s, arena);
}

enum { PART_RELOCS = 8 * 1024 };

static void add_sections(struct positions *positions, struct arena *stage,
                         uint32_t object)
{
    const struct object *of = positions->lift->program->objects->items[object];
    uint32_t room = 0;
    for (uint32_t s = 1; s < of->section_count; s++) {
        if (room == 0) {
            struct part part = {.object = object, .sections = {s, 0}};
            array_push(stage, &positions->parts, part);
            room = PART_RELOCS;
        }
        positions->parts.items[positions->parts.count - 1].sections.count++;
        uint32_t count = of->sections[s].reloc_count;
        room = count < room ? room - count : 0;
    }
}

static void do_what_is_left(struct positions *positions)
{
    struct lift *lift = positions->lift;
    for (uint32_t p = 0; p < positions->parts.count; p++) {
        struct part *part = &positions->parts.items[p];
        for (uint32_t i = 0; i < part->insns.count; i++)
            lead_note_resolved(lift, part->insns.items[i]);
        for (uint32_t i = 0; i < part->leads.count; i++) {
            struct left *left = &part->leads.items[i];
            if (left->frozen)
                lead_note_frozen(&left->lead);
            else
                lead_note(&left->lead, left->sort);
        }
    }
}

/* Relocations are looked at when all instructions have been, so that a part is either
 * the one or the other. */
static void run_parts(struct positions *positions)
{
    parallel_do(positions->lift->program->workers, positions->parts.count, look_at_part,
                positions);
    do_what_is_left(positions);
    positions->parts.count = 0;
}

static bool are_sorted(const struct code_ref *refs, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        const struct code_ref *a = &refs[i - 1], *b = &refs[i];
        if (a->object > b->object ||
            (a->object == b->object &&
             (a->section > b->section ||
              (a->section == b->section && a->reloc >= b->reloc))))
            return false;
    }
    return true;
}

void lift_positions(struct lift *lift)
{
    struct program *program = lift->program;
    struct arena *stage = arena_new();
    struct positions positions = {.lift = lift};
    for (uint32_t i = 0; i < MOST_WORKERS && (i == 0 || i < program->workers); i++)
        positions.arenas[i] = arena_new();
    struct stretches stretches = program_stretches(stage, program, PART_INSNS);
    for (uint32_t i = 0; i < stretches.count; i++) {
        struct part part = {.functions = stretches.items[i]};
        array_push(stage, &positions.parts, part);
    }
    run_parts(&positions);
    for (uint32_t o = 0; o < program->objects->count; o++)
        add_sections(&positions, stage, o);
    run_parts(&positions);
    for (uint32_t i = 0; i < MOST_WORKERS; i++)
        arena_free(positions.arenas[i]);
    arena_free(stage);
    assert(are_sorted(lift->refs.items, lift->refs.count));
    program->refs = lift->refs.items;
    program->ref_count = lift->refs.count;
}
