/* SPDX-License-Identifier: MIT
 *
 * Every reference to a position in code, wherever it is stored. Two sorts:
 *
 * - instructions whose PC-relative field the assembler resolved (insn.target says it
 * all);
 * - relocations, in any section, whose symbol does not track the position by itself:
 * those go to program->refs, and their addends are computed anew after a rewrite.
 *
 * A relocation says where a field points only once its bias is known: on x86-64 the
 * field of an instruction counts from the instruction's end, and the entries of a jump
 * table from the table's start. So the value of a PC-relative relocation in *data* is
 * unknown until a table explains it (switches.c); one that nothing explains freezes the
 * section.
 *
 * What refers to the middle of a function is a branch (a basic block starts there), or
 * takes a label's address: that is remembered, to be explained by a table or to seal
 * the function.
 *
 * Most references are branches inside of a function and calls to entries of others.
 * Workers look at all, settle those that concern one function alone, and leave the rest
 * in order for one that does what the first of several reasons decides.
 */
#include "outliner/lift/lift.h"

#include <assert.h>
#include <elf.h>
#include <string.h>

/* One relocation that leads into a code section. */
struct lead {
    struct lift *lift;
    uint32_t object, section, reloc; /* where it is */
    const struct reloc *at;
    const struct reloc_kind *kind;
    uint32_t insn;    /* the instruction that holds it, or NO_INDEX */
    uint32_t code;    /* code index it leads into */
    int64_t position; /* section offset there */
    bool exact;       /* that is certain, whatever the relocation's bias */
};

static const struct section *lead_section(const struct lead *lead)
{
    return &lead->lift->program->objects->items[lead->object]->sections[lead->section];
}

static void add_ref(const struct lead *lead)
{
    struct code_ref ref = {lead->object, lead->section, lead->reloc, lead->code,
                           (uint32_t)lead->position};
    array_push(lead->lift->arena, &lead->lift->refs, ref);
}

static void take_label(const struct lead *lead)
{
    struct taken_label taken = {lead->code,   (uint32_t)lead->position,
                                lead->object, lead->section,
                                lead->reloc,  lead->insn,
                                lead->exact};
    array_push(lead->lift->arena, &lead->lift->taken, taken);
}

static bool is_transfer(const struct insn *insn)
{
    return insn->flow == FLOW_JUMP || insn->flow == FLOW_BRANCH ||
           insn->flow == FLOW_CALL;
}

/* The function at a position: most references stay in their own. */
static uint32_t function_near(const struct lead *lead, uint32_t position)
{
    const struct program *program = lead->lift->program;
    uint32_t own = program_function_of_insn(program, lead->insn);
    const struct function *function = &program->functions[own];
    if (function->code == lead->code && position >= function->start &&
        position < function->end)
        return own;
    return program_function_at(program, lead->code, position);
}

/* A jump from another function: a cold part is none, but a helper is. */
static void note_joined(struct program *program, uint32_t from, uint32_t number)
{
    bool helper = program->code[program->functions[from].code].helpers;
    program->functions[number].shared |=
        from != number && (helper || !function_is_private(program, from));
}

/* An instruction refers to `position` of a code section. Branches to it make it a
 * block; everything else is a label whose address is taken. */
static void note_from_insn(const struct lead *lead)
{
    struct program *program = lead->lift->program;
    const struct insn *insn = &program->insns[lead->insn];
    uint32_t position = (uint32_t)lead->position;
    uint32_t number = function_near(lead, position);
    if (number == NO_INDEX) {
        lift_freeze(lead->lift, lead->code, REFUSAL_REFERENCE_INTO_SECTION, position);
        return;
    }
    const struct function *function = &program->functions[number];
    if (position == function->start || function->opaque)
        return; /* in the other case nothing moves around it: islands.c */
    uint32_t there = program_insn_in(program, number, position);
    if (there == NO_INDEX) {
        lift_seal(lead->lift, number, REFUSAL_BRANCH_INTO_INSN, position);
        if (!is_transfer(insn))
            array_push(lead->lift->arena, &lead->lift->suspects, number);
    } else if (insn->flow == FLOW_CALL && !program->code[lead->code].helpers) {
        lift_seal(lead->lift, number, REFUSAL_CALL_INSIDE, position);
    } else if (is_transfer(insn)) {
        note_joined(program, insn->function, number);
        program->insns[there].traits |=
            insn->function == number ? INSN_LEADER : INSN_LEADER | INSN_JOINED;
    } else {
        take_label(lead);
    }
}

/* A memory operand (not the address of something) that reads from the code section. */
static bool reads_code(const struct insn *insn)
{
    return insn->flow == FLOW_JUMP_INDIRECT || insn->flow == FLOW_CALL_INDIRECT;
}

/* A branch to where the function has ended and no other starts: compilers write that
 * for what is never reached (Clang at -O0, behind a throw). */
static bool branches_to_end(const struct program *program,
                            const struct function *function, const struct insn *insn)
{
    return insn->target == function->end && !(insn->traits & INSN_RELOCATED) &&
           (insn->flow == FLOW_JUMP || insn->flow == FLOW_BRANCH) &&
           program_function_at(program, function->code, function->end) == NO_INDEX;
}

static bool is_filled(const struct insn *insn)
{
    return insn->traits & INSN_RELOCATED;
}

/* It has a PC-relative field that means something. */
static bool is_reference(const struct insn *insn)
{
    return (insn->traits & INSN_PC_RELATIVE) &&
           !(insn->target == NO_INDEX && is_filled(insn));
}

/* The resolved PC-relative field of an instruction. */
static void note_resolved(struct lift *lift, uint32_t number)
{
    struct program *program = lift->program;
    const struct insn *insn = &program->insns[number];
    const struct function *function = &program->functions[insn->function];
    uint32_t code = function->code;
    if (branches_to_end(program, function, insn)) {
        lift_seal(lift, insn->function, REFUSAL_BRANCH_TO_END, insn->offset);
        return;
    }
    if (insn->target >= program_section(program, code)->data.size ||
        (reads_code(insn) && !is_filled(insn))) {
        lift_freeze(lift, code, REFUSAL_REFERENCE_INTO_SECTION, insn->offset);
        return;
    }
    struct lead lead = {.lift = lift,
                        .object = program->code[code].object,
                        .section = NO_INDEX,
                        .insn = number,
                        .code = code,
                        .position = insn->target};
    /* A relocated one is seen again with its relocation, below. */
    if (!is_filled(insn) || is_transfer(insn))
        note_from_insn(&lead);
}

/* Settles a branch to an instruction of its own function. False: it is something else. */
static bool settle_branch(struct program *program, uint32_t number)
{
    const struct insn *insn = &program->insns[number];
    const struct function *function = &program->functions[insn->function];
    if ((insn->flow != FLOW_JUMP && insn->flow != FLOW_BRANCH) ||
        insn->target < function->start || insn->target >= function->end)
        return false;
    if (insn->target == function->start)
        return true;
    uint32_t there = program_insn_in(program, insn->function, insn->target);
    if (there == NO_INDEX)
        return false;
    program->insns[there].traits |= INSN_LEADER;
    return true;
}

/* The relocation's symbol tracks the position: nothing to do when code moves. */
static bool tracked_by_symbol(const struct lead *lead)
{
    const struct object *object = lead->lift->program->objects->items[lead->object];
    const struct symbol *symbol = &object->symbols[lead->at->symbol];
    return symbol->type != STT_SECTION && (int64_t)symbol->value == lead->position;
}

static void note_code_reloc(struct lead *lead)
{
    if (!tracked_by_symbol(lead))
        add_ref(lead);
    const struct insn *insn = &lead->lift->program->insns[lead->insn];
    bool seen = is_transfer(insn) && insn->target != NO_INDEX;
    if (!seen)
        note_from_insn(lead);
}

static bool is_frame_reloc(const struct lead *lead)
{
    return section_is_frame(lead_section(lead));
}

/* A relocation in data. */
static void note_data_reloc(struct lead *lead)
{
    struct program *program = lead->lift->program;
    enum reloc_class kind =
        lead->kind ? (enum reloc_class)lead->kind->kind : RELOC_UNKNOWN;
    if (is_frame_reloc(lead)) {
        uint64_t size = program_section(program, lead->code)->data.size;
        if (lead->position < 0 || (uint64_t)lead->position > size)
            lift_freeze(lead->lift, lead->code, REFUSAL_FRAME_MISMATCH, size);
        else if (!tracked_by_symbol(lead))
            add_ref(lead);
        return; /* frames.c looks at what they mean */
    }
    if (section_is_debug(lead_section(lead)))
        return; /* debug.c */
    if (tracked_by_symbol(lead))
        return;
    uint32_t number =
        program_function_at(program, lead->code, (uint32_t)lead->position);
    bool at_start = number != NO_INDEX &&
                    program->functions[number].start == (uint32_t)lead->position;
    if (!lead->exact && (kind == RELOC_PC || kind == RELOC_CALL)) {
        take_label(lead); /* only a jump table can explain it */
        add_ref(lead);
    } else if (!lead->exact && kind != RELOC_ABSOLUTE) {
        lift_freeze(lead->lift, lead->code, REFUSAL_UNKNOWN_RELOC, 0);
    } else if (number == NO_INDEX) {
        lift_freeze(lead->lift, lead->code, REFUSAL_REFERENCE_INTO_SECTION,
                    (uint64_t)lead->position);
    } else {
        uint32_t insn = program_insn_in(program, number, (uint32_t)lead->position);
        bool opaque = program->functions[number].opaque;
        if (!at_start && !opaque)
            take_label(lead);
        if (!at_start && insn != NO_INDEX)
            program->insns[insn].traits |= INSN_ENTERED;
        add_ref(lead);
    }
}

/* The code section that a relocation leads into, and where: false when it leads
 * elsewhere, or is tracked by a symbol that may be preempted. */
static bool find_lead(struct lead *lead, uint8_t bias)
{
    const struct object *object = lead->lift->program->objects->items[lead->object];
    const struct symbol *symbol = &object->symbols[lead->at->symbol];
    if (lead->at->symbol == 0 || symbol->section == SECTION_UNDEFINED ||
        symbol->section >= object->section_count)
        return false;
    lead->code = program_code_of(lead->lift->program, lead->object, symbol->section);
    lead->position =
        wrapping_add(wrapping_add((int64_t)symbol->value, lead->at->addend), bias);
    return lead->code != NO_INDEX;
}

/* A relocation in code that was not decoded, or in an opaque function. Its bias is unknown where the target has
 * one, so only a call or reference to a symbol itself is understood (an addend of -4 is
 * the common case of x86-64; without a bias the addend is exact). */
static void note_frozen_reloc(struct lead *lead)
{
    const struct target *target = lead->lift->program->target;
    lead->kind = target->reloc_kind(lead->at->type);
    if (!find_lead(lead, 0))
        return;
    const struct object *object = lead->lift->program->objects->items[lead->object];
    const struct symbol *symbol = &object->symbols[lead->at->symbol];
    bool exact = target->code_align > 1;
    lead->exact = exact;
    if (symbol->type != STT_SECTION &&
        lead->at->addend ==
            (exact || !lead->kind || lead->kind->kind == RELOC_ABSOLUTE ? 0 : -4))
        return;
    if (exact || (lead->kind && lead->kind->kind == RELOC_ABSOLUTE))
        note_data_reloc(lead);
    else
        lift_freeze(lead->lift, lead->code, REFUSAL_REFERENCE_INTO_SECTION, 0);
}

static bool covers(const struct insn *insn, uint32_t offset)
{
    return insn->offset <= offset && offset - insn->offset < insn->length;
}

/* The instruction of the function that holds this byte. */
static uint32_t insn_covering(const struct program *program, uint32_t function,
                              uint32_t offset)
{
    const struct function *in = &program->functions[function];
    uint32_t low = in->first_insn, high = low + in->insn_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct insn *insn = &program->insns[middle];
        if (insn->offset + insn->length <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

enum { NEARBY_INSNS = 16 };

/* The same, of a code section; NO_INDEX when it lies in no function. The one before it
 * that was asked for last (`near`, or NO_INDEX) is usually not far. */
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
    return none ? NO_INDEX : insn_covering(program, function, offset);
}

/* A relocation in code: where the symbol tracks the start of a function, or the
 * instruction has been seen as a branch, there is nothing to do. */
static bool is_plain_code_reloc(const struct lead *lead)
{
    const struct program *program = lead->lift->program;
    const struct insn *insn = &program->insns[lead->insn];
    if (!tracked_by_symbol(lead))
        return false;
    if (is_transfer(insn) && insn->target != NO_INDEX)
        return true;
    uint32_t number = function_near(lead, (uint32_t)lead->position);
    return number != NO_INDEX &&
           program->functions[number].start == (uint32_t)lead->position;
}

/* One in data that follows its symbol, or that debug.c looks at. */
static bool is_plain_data_reloc(const struct lead *lead)
{
    return tracked_by_symbol(lead) ||
           (section_is_debug(lead_section(lead)) && !is_frame_reloc(lead));
}

enum sort { PLAIN, IN_CODE, IN_DATA, OUTSIDE };

static enum sort sort_of(struct lead *lead)
{
    struct program *program = lead->lift->program;
    uint8_t bias = 0;
    lead->kind = program->target->reloc_kind(lead->at->type);
    bool pc = lead->kind &&
              (lead->kind->kind == RELOC_PC || lead->kind->kind == RELOC_CALL ||
               lead->kind->kind == RELOC_BRANCH || lead->kind->kind == RELOC_GOT);
    if (lead->insn != NO_INDEX && pc)
        bias =
            program->target->reloc_bias(&program->insns[lead->insn], lead->at->offset);
    if (!find_lead(lead, bias))
        return PLAIN;
    const struct section *into = program_section(program, lead->code);
    /* The entry of a jump table counts from the table's start, and may lead beyond the
     * section's end; its table will settle it. */
    bool biased = lead->insn == NO_INDEX && pc;
    bool inside = lead->position >= 0 && (uint64_t)lead->position <= into->data.size;
    if (!biased && !inside)
        return OUTSIDE;
    if (lead->insn != NO_INDEX)
        return is_plain_code_reloc(lead) ? PLAIN : IN_CODE;
    return inside && is_plain_data_reloc(lead) ? PLAIN : IN_DATA;
}

static void note_reloc(struct lead *lead, enum sort sort)
{
    switch (sort) {
    case PLAIN: break;
    case IN_CODE: note_code_reloc(lead); break;
    case IN_DATA: note_data_reloc(lead); break;
    case OUTSIDE:
        lift_freeze(lead->lift, lead->code, REFUSAL_REFERENCE_INTO_SECTION, 0);
    }
}

/* --- workers --- */

/* What a worker leaves to be done: an instruction (reloc NO_INDEX) or a relocation. */
struct left {
    struct lead lead;
    enum sort sort;
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
            if (is_reference(&program->insns[i]) && !settle_branch(program, i))
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
            left.sort = sort_of(lead);
        if (left.frozen || left.sort != PLAIN)
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
            note_resolved(lift, part->insns.items[i]);
        for (uint32_t i = 0; i < part->leads.count; i++) {
            struct left *left = &part->leads.items[i];
            if (left->frozen)
                note_frozen_reloc(&left->lead);
            else
                note_reloc(&left->lead, left->sort);
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
