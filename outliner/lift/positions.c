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
 * Who looks at what, and when: leads.c.
 */
#include "outliner/lift/leads.h"

#include <elf.h>
#include <string.h>

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

bool insn_refers(const struct insn *insn)
{
    return (insn->traits & INSN_PC_RELATIVE) &&
           !(insn->target == NO_INDEX && is_filled(insn));
}

void lead_note_resolved(struct lift *lift, uint32_t number)
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

bool lead_settle_branch(struct program *program, uint32_t number)
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
void lead_note_frozen(struct lead *lead)
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

enum lead_sort lead_sort_of(struct lead *lead)
{
    struct program *program = lead->lift->program;
    uint8_t bias = 0;
    lead->kind = program->target->reloc_kind(lead->at->type);
    bool pc = lead->kind &&
              (lead->kind->kind == RELOC_PC || lead->kind->kind == RELOC_CALL ||
               lead->kind->kind == RELOC_BRANCH || lead->kind->kind == RELOC_GOT);
    if (lead->insn != NO_INDEX)
        bias = insn_reloc_bias(program, lead->insn, lead->at);
    if (!find_lead(lead, bias))
        return LEAD_PLAIN;
    const struct section *into = program_section(program, lead->code);
    /* The entry of a jump table counts from the table's start, and may lead beyond the
     * section's end; its table will settle it. */
    bool biased = lead->insn == NO_INDEX && pc;
    bool inside = lead->position >= 0 && (uint64_t)lead->position <= into->data.size;
    if (!biased && !inside)
        return LEAD_OUTSIDE;
    if (lead->insn != NO_INDEX)
        return is_plain_code_reloc(lead) ? LEAD_PLAIN : LEAD_IN_CODE;
    return inside && is_plain_data_reloc(lead) ? LEAD_PLAIN : LEAD_IN_DATA;
}

void lead_note(struct lead *lead, enum lead_sort sort)
{
    switch (sort) {
    case LEAD_PLAIN: break;
    case LEAD_IN_CODE: note_code_reloc(lead); break;
    case LEAD_IN_DATA: note_data_reloc(lead); break;
    case LEAD_OUTSIDE:
        lift_freeze(lead->lift, lead->code, REFUSAL_REFERENCE_INTO_SECTION, 0);
    }
}
