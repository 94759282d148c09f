/* SPDX-License-Identifier: MIT
 *
 * What an instruction means for the stack pointer: one of the SP traits of mo/insn.h,
 * and the number that goes with it.
 *
 * The rule for what is not listed: an instruction that touches rsp, in an operand that
 * is written or in a hidden one, and is not understood here, is SP_OPAQUE. Only calls
 * and returns touch it without having a trait.
 */
#include "x86_64.h"

#include "mo/bytes.h"

static bool is_rsp(ZydisRegister reg)
{
    return reg == ZYDIS_REGISTER_RSP || reg == ZYDIS_REGISTER_ESP ||
           reg == ZYDIS_REGISTER_SP || reg == ZYDIS_REGISTER_SPL;
}

/* The first explicit memory operand, or NULL. */
static const ZydisDecodedOperandMem *
explicit_memory(const ZydisDecodedInstruction *insn,
                const ZydisDecodedOperand *operands)
{
    for (uint32_t i = 0; i < insn->operand_count_visible; i++)
        if (operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
            return &operands[i].mem;
    return NULL;
}
static bool names_rsp(const ZydisDecodedInstruction *insn,
                      const ZydisDecodedOperand *operands)
{
    for (uint32_t i = 0; i < insn->operand_count_visible; i++)
        if (operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
            is_rsp(operands[i].reg.value))
            return true;
    return false;
}

static bool is_register(const ZydisDecodedOperand *operand, ZydisRegister reg)
{
    return operand->type == ZYDIS_OPERAND_TYPE_REGISTER && operand->reg.value == reg;
}

static void set_sp(struct insn *out, uint32_t trait, int64_t value)
{
    if (!fits_signed(value, 32)) {
        out->traits |= INSN_SP_OPAQUE;
        return;
    }
    out->traits |= trait;
    out->sp_value = (int32_t)value;
}

/* `destination` = rsp + value. */
static void set_sp_copy(struct insn *out, const ZydisDecodedOperand *destination,
                        int64_t value)
{
    uint32_t traits = INSN_SP_COPY;
    if (is_register(destination, ZYDIS_REGISTER_RBP))
        traits |= INSN_FRAME_SET;
    if (value < 0)
        traits |= INSN_BELOW_SP;
    set_sp(out, traits, value);
}

/* push, pop, pushf, popf. Addressing memory through rsp as well (push 8(%rsp)) has no
 * trait of its own: pinned, so that nobody shifts one without the other. */
static void judge_push(struct insn *out, const ZydisDecodedInstruction *insn,
                       const ZydisDecodedOperand *operands, int64_t sign)
{
    const ZydisDecodedOperandMem *mem = explicit_memory(insn, operands);
    if (names_rsp(insn, operands)) {
        out->traits |= INSN_SP_OPAQUE;
        return;
    }
    set_sp(out, INSN_SP_ADJUST, sign * (insn->operand_width / 8));
    if (mem && is_rsp(mem->base))
        out->traits |= INSN_PINNED;
}

static void judge_lea(struct insn *out, const ZydisDecodedOperand *operands)
{
    const ZydisDecodedOperandMem *mem = &operands[1].mem;
    bool plain = mem->index == ZYDIS_REGISTER_NONE &&
                 operands[0].reg.value >= ZYDIS_REGISTER_RAX &&
                 operands[0].reg.value <= ZYDIS_REGISTER_R15;
    bool to_rsp = is_register(&operands[0], ZYDIS_REGISTER_RSP);
    if (plain && mem->base == ZYDIS_REGISTER_RSP && to_rsp)
        set_sp(out, INSN_SP_ADJUST, mem->disp.value);
    else if (plain && mem->base == ZYDIS_REGISTER_RSP)
        set_sp_copy(out, &operands[0], mem->disp.value);
    else if (plain && mem->base == ZYDIS_REGISTER_RBP && to_rsp)
        set_sp(out, INSN_SP_FROM_FRAME, mem->disp.value);
    else if (is_rsp(mem->base))
        out->traits |= INSN_SP_OPAQUE | (mem->disp.value < 0 ? INSN_BELOW_SP : 0u);
    else if (to_rsp)
        out->traits |=
            INSN_SP_OPAQUE; /* from elsewhere (DRAP): says nothing of below */
    else if (mem->base == ZYDIS_REGISTER_RBP)
        set_sp(out, INSN_FRAME_COPY | (plain ? 0u : INSN_INDEXED), mem->disp.value);
}

static void judge_move(struct insn *out, const ZydisDecodedInstruction *insn,
                       const ZydisDecodedOperand *operands)
{
    if (is_register(&operands[0], ZYDIS_REGISTER_RSP) &&
        is_register(&operands[1], ZYDIS_REGISTER_RBP))
        set_sp(out, INSN_SP_FROM_FRAME, 0);
    else if (is_register(&operands[1], ZYDIS_REGISTER_RSP) &&
             operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
             !is_rsp(operands[0].reg.value))
        set_sp_copy(out, &operands[0], 0);
    else if (is_register(&operands[1], ZYDIS_REGISTER_RBP) &&
             operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
             !is_rsp(operands[0].reg.value))
        set_sp(out, INSN_FRAME_COPY, 0);
    else if (names_rsp(insn, operands))
        out->traits |= INSN_SP_OPAQUE;
}

static void judge_arithmetic(struct insn *out, const ZydisDecodedInstruction *insn,
                             const ZydisDecodedOperand *operands, int64_t sign)
{
    if (is_register(&operands[0], ZYDIS_REGISTER_RSP) &&
        operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
        set_sp(out, INSN_SP_ADJUST, sign * operands[1].imm.value.s);
    else if (names_rsp(insn, operands))
        out->traits |= INSN_SP_OPAQUE;
}

/* Bits of memory by their number, which may be any. */
static bool is_bit_string(const ZydisDecodedInstruction *insn,
                          const ZydisDecodedOperand *operands)
{
    bool tests = insn->mnemonic == ZYDIS_MNEMONIC_BT ||
                 insn->mnemonic == ZYDIS_MNEMONIC_BTS ||
                 insn->mnemonic == ZYDIS_MNEMONIC_BTR ||
                 insn->mnemonic == ZYDIS_MNEMONIC_BTC;
    return tests && operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER;
}

static bool names_rbp(const ZydisDecodedInstruction *insn,
                      const ZydisDecodedOperand *operands)
{
    for (uint32_t i = 0; i < insn->operand_count_visible; i++)
        if (is_register(&operands[i], ZYDIS_REGISTER_RBP))
            return true;
    return false;
}

static void judge_memory(struct insn *out, const ZydisDecodedInstruction *insn,
                         const ZydisDecodedOperand *operands)
{
    const ZydisDecodedOperandMem *mem = explicit_memory(insn, operands);
    if (!mem || (out->traits & INSN_SP_OPAQUE))
        return;
    if (mem->base == ZYDIS_REGISTER_RSP)
        set_sp(out, INSN_SP_MEMORY | (mem->disp.value < 0 ? INSN_BELOW_SP : 0u),
               mem->disp.value);
    else if (is_rsp(mem->base))
        out->traits |= INSN_SP_OPAQUE;
    else if (mem->base == ZYDIS_REGISTER_RBP)
        set_sp(out, INSN_FRAME_MEMORY, mem->disp.value);
    if (!(out->traits & (INSN_SP_MEMORY | INSN_FRAME_MEMORY)))
        return;
    if (mem->index != ZYDIS_REGISTER_NONE || is_bit_string(insn, operands))
        out->traits |= INSN_INDEXED;
    if (names_rbp(insn, operands))
        out->traits |= INSN_FRAME_STORED;
}

static void judge_other(struct insn *out, const ZydisDecodedInstruction *insn,
                        const ZydisDecodedOperand *operands)
{
    bool through = out->flow == FLOW_CALL || out->flow == FLOW_CALL_INDIRECT ||
                   out->flow == FLOW_RETURN;
    if (names_rsp(insn, operands))
        out->traits |= INSN_SP_OPAQUE;
    judge_memory(out, insn, operands);
    /* Whatever else touches rsp, in a hidden operand. */
    if (((out->uses | out->defs) & BIT(BIT_RSP)) && !through &&
        !(out->traits & (INSN_SP_MEMORY | INSN_SP_OPAQUE)))
        out->traits |= INSN_SP_OPAQUE;
}

void x86_64_judge_stack(struct insn *out, const ZydisDecodedInstruction *insn,
                        const ZydisDecodedOperand *operands)
{
    switch (insn->mnemonic) {
    case ZYDIS_MNEMONIC_PUSH:
    case ZYDIS_MNEMONIC_PUSHF:
    case ZYDIS_MNEMONIC_PUSHFQ: judge_push(out, insn, operands, -1); return;
    case ZYDIS_MNEMONIC_POP:
    case ZYDIS_MNEMONIC_POPF:
    case ZYDIS_MNEMONIC_POPFQ: judge_push(out, insn, operands, 1); return;
    case ZYDIS_MNEMONIC_LEAVE:
        if (insn->operand_width == 64)
            set_sp(out, INSN_SP_FROM_FRAME, 8);
        else
            out->traits |= INSN_SP_OPAQUE | INSN_PINNED;
        return;
    case ZYDIS_MNEMONIC_ENTER: out->traits |= INSN_SP_OPAQUE | INSN_PINNED; return;
    case ZYDIS_MNEMONIC_LEA: judge_lea(out, operands); return;
    case ZYDIS_MNEMONIC_MOV: judge_move(out, insn, operands); break;
    case ZYDIS_MNEMONIC_ADD: judge_arithmetic(out, insn, operands, 1); break;
    case ZYDIS_MNEMONIC_SUB: judge_arithmetic(out, insn, operands, -1); break;
    default: judge_other(out, insn, operands); return;
    }
    judge_memory(out, insn, operands);
}
