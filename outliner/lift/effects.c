/* SPDX-License-Identifier: MIT
 *
 * What an instruction reads, and what it certainly overwrites.
 *
 * What is assumed of other code is little, since objects are full of private
 * conventions (gcc's -fipa-ra, LLVM's outlined functions, preserve_most, hand-written
 * assembly): a call reads what the ABI lets it read and preserves every register but
 * the link register and, when it may go through a veneer, the veneer's.
 *
 * Our own helpers are known better: each is one block, so what it reads of its callers'
 * registers and what it overwrites can be read off it (function.reads, .overwrites).
 */
#include "outliner/lift/effects.h"

/* Helpers whose middle is called from the middle of another one, as deep as this. */
enum { JOIN_LEVELS = 2 };

static void effects(const struct program *program, uint32_t number, int level,
                    struct regset *uses, struct regset *kills);

static struct summary summarise(const struct program *program, uint32_t first,
                                uint32_t count, int level)
{
    struct summary sum = {0};
    for (uint32_t i = count; i-- > 0;) {
        struct regset uses, kills;
        effects(program, first + i, level, &uses, &kills);
        sum.uses.regs = (sum.uses.regs & ~kills.regs) | uses.regs;
        sum.uses.flags = (uint8_t)((sum.uses.flags & ~kills.flags) | uses.flags);
        sum.kills = joined(sum.kills, kills);
    }
    return sum;
}

uint32_t lift_straight_line(const struct program *program, uint32_t first)
{
    const struct function *in =
        &program->functions[program_function_of_insn(program, first)];
    uint32_t end = in->first_insn + in->insn_count;
    for (uint32_t i = first; i < end; i++) {
        switch ((enum flow)program->insns[i].flow) {
        case FLOW_NEXT:
        case FLOW_CALL:
        case FLOW_CALL_INDIRECT: break;
        case FLOW_RETURN:
        case FLOW_JUMP:
        case FLOW_JUMP_INDIRECT: return i + 1 - first;
        default: return 0;
        }
    }
    return 0;
}

/* A call to a helper, from its entry or its middle on: the link register that it reads
 * is its own return address. */
static void apply_helper(const struct target *target, const struct summary *helper,
                         uint8_t last_flow, struct regset *uses, struct regset *kills)
{
    struct regset out = {0};
    if (last_flow != FLOW_RETURN) /* goes on to who knows what */
        out = (struct regset){UINT64_MAX & ~target->veneer_registers, UINT8_MAX};
    uses->regs = helper->uses.regs | (out.regs & ~helper->kills.regs);
    uses->regs = (uses->regs & ~link_bit(target)) | (uint64_t)1
                                                        << target->stack_register;
    uses->flags = (uint8_t)(helper->uses.flags | (out.flags & ~helper->kills.flags));
    *kills = joined(*kills, helper->kills);
}

/* What is known of a helper that is called. */
static bool summary_of_call(const struct program *program, uint32_t number,
                            uint32_t function, int level, struct summary *out,
                            uint8_t *last)
{
    if (function != NO_INDEX && program->functions[function].is_summarised) {
        const struct function *of = &program->functions[function];
        *out = (struct summary){of->reads, of->overwrites};
        *last = last_flow(program, function);
        return true;
    }
    if (function != NO_INDEX || level >= JOIN_LEVELS)
        return false;
    uint32_t first;
    bool frame = insn_moves_frame(program, number, &first);
    first = frame ? first : insn_destination(program, number);
    if (first == NO_INDEX)
        return false;
    const struct function *in =
        &program->functions[program_function_of_insn(program, first)];
    uint32_t count = lift_straight_line(program, first);
    if ((!frame && !program->code[in->code].helpers) || in->refusal != REFUSAL_NONE ||
        count == 0)
        return false;
    *out = summarise(program, first, count, level + 1);
    *last = program->insns[first + count - 1].flow;
    return true;
}

static void flow_effects(const struct program *program, uint32_t number, int level,
                         struct regset *uses, struct regset *kills)
{
    const struct target *target = program->target;
    const struct insn *insn = &program->insns[number];
    *uses = (struct regset){insn->uses, insn->flag_uses};
    *kills = (struct regset){insn->defs, insn->flag_defs};
    if (insn->flow != FLOW_CALL && insn->flow != FLOW_CALL_INDIRECT)
        return;
    *uses = joined(*uses, target->call_uses);
    if (insn->flow == FLOW_CALL_INDIRECT)
        return;
    uint32_t function;
    enum callee callee = lift_callee_of(program, number, &function);
    /* What goes through a relocation may go through a veneer, so that nobody can be
     * waiting for the veneer's registers behind it. */
    bool relocated = insn->traits & INSN_RELOCATED;
    if (relocated)
        kills->regs |= target->veneer_registers;
    struct summary helper;
    uint8_t last;
    if (callee == CALLEE_PRIVATE &&
        summary_of_call(program, number, function, level, &helper, &last)) {
        apply_helper(target, &helper, last, uses, kills);
        return;
    }
    if (callee != CALLEE_PUBLIC)
        *uses = (struct regset){
            UINT64_MAX & ~link_bit(target) & ~target->veneer_registers, UINT8_MAX};
    if (callee == CALLEE_PRIVATE && !relocated)
        uses->regs |= target->veneer_registers;
}

static void effects(const struct program *program, uint32_t number, int level,
                    struct regset *uses, struct regset *kills)
{
    flow_effects(program, number, level, uses, kills);
    /* What a landing pad finds: see landings.c. */
    if (program->insns[number].traits & INSN_LANDS)
        *uses = joined(*uses, program->target->callee_saved);
}

void insn_effects(const struct program *program, uint32_t number, struct regset *uses,
                  struct regset *kills)
{
    effects(program, number, 0, uses, kills);
}

/* Registers that may have other values behind the callee of a call or jump: by the ABI,
 * or what is known of a helper. */
static uint64_t callee_may_write(const struct program *program, uint32_t number)
{
    const struct insn *insn = &program->insns[number];
    uint32_t function;
    if (insn->flow == FLOW_CALL_INDIRECT || insn->flow == FLOW_JUMP_INDIRECT ||
        lift_callee_of(program, number, &function) != CALLEE_PRIVATE)
        return program->target->call_kills.regs;
    uint32_t there = insn_destination(program, number);
    if (there == NO_INDEX)
        return UINT64_MAX;
    const struct function *helper =
        &program->functions[program_function_of_insn(program, there)];
    return helper->is_summarised ? helper->clobbers : UINT64_MAX;
}

uint64_t insn_may_write(const struct program *program, uint32_t number)
{
    const struct insn *insn = &program->insns[number];
    if (insn->flow != FLOW_CALL && insn->flow != FLOW_CALL_INDIRECT)
        return insn->defs;
    return insn->defs | callee_may_write(program, number);
}

/* Of a helper without branches. */
static uint64_t helper_clobbers(const struct program *program,
                                const struct function *function)
{
    uint32_t last = function->first_insn + function->insn_count - 1;
    uint64_t clobbers = 0;
    for (uint32_t i = function->first_insn; i <= last; i++)
        clobbers |= insn_may_write(program, i);
    if (program->insns[last].flow != FLOW_RETURN)
        clobbers |= callee_may_write(program, last);
    return clobbers;
}

struct summary lift_summarise(const struct program *program, uint32_t first,
                              uint32_t count)
{
    return summarise(program, first, count, 0);
}

/* Helpers call helpers of earlier rounds: as deep as this, the rest stays unknown. */
enum { HELPER_LEVELS = 4 };

void lift_summarise_helpers(struct program *program)
{
    for (int level = 0; level < HELPER_LEVELS; level++) {
        for (uint32_t f = 0; f < program->function_count; f++) {
            struct function *function = &program->functions[f];
            if (!program->code[function->code].helpers ||
                function->refusal != REFUSAL_NONE || function->insn_count == 0 ||
                lift_straight_line(program, function->first_insn) != function->insn_count)
                continue;
            struct summary sum =
                summarise(program, function->first_insn, function->insn_count, 0);
            function->clobbers = helper_clobbers(program, function);
            function->is_summarised = true;
            function->reads = sum.uses;
            function->overwrites = sum.kills;
        }
    }
}
