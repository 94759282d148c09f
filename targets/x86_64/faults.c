/* SPDX-License-Identifier: MIT
 *
 * May an instruction fault by what it is given? For programs whose signal handlers
 * throw (gcc -fnon-call-exceptions): memory that is not certain to be there, a
 * division, and floating-point arithmetic, which may raise an exception that somebody
 * has unmasked.
 *
 * The stack is there: SP or the frame register with a displacement. Whether rbp is a
 * frame register is not known here. Fixed addresses are there as well: relative to rip,
 * absolute, or thread-local. What pushes and pops is the stack, too, in its hidden
 * operand.
 */
#include "x86_64.h"

static bool is_certain(const ZydisDecodedOperandMem *mem)
{
    if (mem->type != ZYDIS_MEMOP_TYPE_MEM)
        return mem->type == ZYDIS_MEMOP_TYPE_AGEN; /* lea */
    if (mem->index != ZYDIS_REGISTER_NONE)
        return false;
    switch (mem->base) {
    case ZYDIS_REGISTER_NONE:
    case ZYDIS_REGISTER_RIP:
    case ZYDIS_REGISTER_RSP:
    case ZYDIS_REGISTER_RBP: return true;
    default: return false;
    }
}

static bool is_vector(ZydisRegister reg)
{
    return (reg >= ZYDIS_REGISTER_XMM0 && reg <= ZYDIS_REGISTER_ZMM31) ||
           (reg >= ZYDIS_REGISTER_MM0 && reg <= ZYDIS_REGISTER_MM7);
}

/* Moves between registers and what only looks at bits cannot; anything else that has a
 * vector or x87 register counts, without looking closer. */
static bool is_vector_arithmetic(const ZydisDecodedInstruction *insn,
                                 const ZydisDecodedOperand *operands)
{
    switch (insn->meta.category) {
    case ZYDIS_CATEGORY_DATAXFER:
    case ZYDIS_CATEGORY_LOGICAL:
    case ZYDIS_CATEGORY_LOGICAL_FP: return false;
    case ZYDIS_CATEGORY_X87_ALU:
    case ZYDIS_CATEGORY_FCMOV: return true;
    default: break;
    }
    for (uint32_t i = 0; i < insn->operand_count_visible; i++) {
        if (operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
            is_vector(operands[i].reg.value))
            return true;
    }
    return false;
}

bool x86_64_may_fault(const ZydisDecodedInstruction *insn,
                      const ZydisDecodedOperand *operands)
{
    if (insn->mnemonic == ZYDIS_MNEMONIC_DIV || insn->mnemonic == ZYDIS_MNEMONIC_IDIV)
        return true;
    for (uint32_t i = 0; i < insn->operand_count; i++) {
        if (operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
            !is_certain(&operands[i].mem))
            return true;
    }
    return is_vector_arithmetic(insn, operands);
}
