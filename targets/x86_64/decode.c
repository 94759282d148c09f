/* SPDX-License-Identifier: MIT
 *
 * Distils what Zydis says of an instruction into struct insn.
 *
 * Zydis lists every operand with its action, hidden ones (the rsp of push, the rcx of
 * rep) included, and the flags tested, modified and left undefined. Three things it
 * does not say, and this file adds:
 *
 *  - Writes that keep a part of the register, and so read it: 8 and 16 bits of a
 * general register (Intel SDM vol. 1, 3.4.1.1); everything above bit 127 in legacy SSE
 * (vol. 1, 14.1.3; VEX and EVEX zero it instead); lanes that a merging mask leaves out.
 *  - Writes that may not happen: flags of a shift by %cl = 0, everything under rep with
 *    %rcx = 0, the destination of bsf when its source is 0. Sets of *definitions* say
 * what surely is overwritten, so a write that may not happen counts as a read too.
 *  - What the instruction means for the stack pointer (see enum insn_trait).
 *
 * Prefixes make some encodings mean different things to Intel and AMD (66 before a near
 * branch) or to old and new processors (f3 before bsr: bsr or lzcnt). The first are not
 * decoded at all; of the second the union of both meanings is stated.
 */
#include "x86_64.h"

/* As ZydisDecoderInit() leaves it for 64-bit code; MPX and CET decode as such, which is
 * right on processors without them too: their encodings are no-ops there. */
static const ZydisDecoder decoder = {
    .machine_mode = ZYDIS_MACHINE_MODE_LONG_64,
    .stack_width = ZYDIS_STACK_WIDTH_64,
    .decoder_mode = {[ZYDIS_DECODER_MODE_MPX] = ZYAN_TRUE,
                     [ZYDIS_DECODER_MODE_CET] = ZYAN_TRUE,
                     [ZYDIS_DECODER_MODE_LZCNT] = ZYAN_TRUE,
                     [ZYDIS_DECODER_MODE_TZCNT] = ZYAN_TRUE,
                     [ZYDIS_DECODER_MODE_CLDEMOTE] = ZYAN_TRUE},
};

/* Categories that are not plain computation. */
enum rule {
    RULE_PLAIN,
    RULE_REJECT, /* no such processor runs 64-bit Linux, or nobody knows it exactly */
    RULE_PINNED, /* talks to the system: may look at any register, and stays in place */
    RULE_OPAQUE, /* depends on more than registers and memory, but may move */
    RULE_STATE,  /* saves or restores most registers, depending on a mask */
};

static const uint8_t category_rule[ZYDIS_CATEGORY_MAX_VALUE + 1] = {
    [ZYDIS_CATEGORY_INVALID] = RULE_REJECT,
    [ZYDIS_CATEGORY_KNC] = RULE_REJECT,
    [ZYDIS_CATEGORY_KNCMASK] = RULE_REJECT,
    [ZYDIS_CATEGORY_KNCSCALAR] = RULE_REJECT,
    [ZYDIS_CATEGORY_PADLOCK] = RULE_REJECT,
    [ZYDIS_CATEGORY_AMX_TILE] = RULE_PINNED,
    [ZYDIS_CATEGORY_CET] = RULE_PINNED,
    [ZYDIS_CATEGORY_ENQCMD] = RULE_PINNED,
    [ZYDIS_CATEGORY_HRESET] = RULE_PINNED,
    [ZYDIS_CATEGORY_INTERRUPT] = RULE_PINNED,
    [ZYDIS_CATEGORY_IO] = RULE_PINNED,
    [ZYDIS_CATEGORY_IOSTRINGOP] = RULE_PINNED,
    [ZYDIS_CATEGORY_KEYLOCKER] = RULE_PINNED,
    [ZYDIS_CATEGORY_KEYLOCKER_WIDE] = RULE_PINNED,
    [ZYDIS_CATEGORY_PCONFIG] = RULE_PINNED,
    [ZYDIS_CATEGORY_PKU] = RULE_PINNED,
    [ZYDIS_CATEGORY_PT] = RULE_PINNED,
    [ZYDIS_CATEGORY_RDWRFSGS] = RULE_PINNED,
    [ZYDIS_CATEGORY_SEGOP] = RULE_PINNED,
    [ZYDIS_CATEGORY_SERIALIZE] = RULE_PINNED,
    [ZYDIS_CATEGORY_SGX] = RULE_PINNED,
    [ZYDIS_CATEGORY_SMAP] = RULE_PINNED,
    [ZYDIS_CATEGORY_SYSCALL] = RULE_PINNED,
    [ZYDIS_CATEGORY_SYSRET] = RULE_PINNED,
    [ZYDIS_CATEGORY_SYSTEM] = RULE_PINNED,
    [ZYDIS_CATEGORY_TSX_LDTRK] = RULE_PINNED,
    [ZYDIS_CATEGORY_UINTR] = RULE_PINNED,
    [ZYDIS_CATEGORY_VTX] = RULE_PINNED,
    [ZYDIS_CATEGORY_WAITPKG] = RULE_PINNED,
    [ZYDIS_CATEGORY_RDPID] = RULE_OPAQUE,
    [ZYDIS_CATEGORY_RDPRU] = RULE_OPAQUE,
    [ZYDIS_CATEGORY_RDRAND] = RULE_OPAQUE,
    [ZYDIS_CATEGORY_RDSEED] = RULE_OPAQUE,
    [ZYDIS_CATEGORY_XSAVE] = RULE_STATE,
    [ZYDIS_CATEGORY_XSAVEOPT] = RULE_STATE,
};

static enum rule rule_of(const ZydisDecodedInstruction *insn)
{
    switch (insn->mnemonic) {
    case ZYDIS_MNEMONIC_CPUID:
    case ZYDIS_MNEMONIC_RDTSC:
    case ZYDIS_MNEMONIC_RDTSCP:
    case ZYDIS_MNEMONIC_RDPMC:
    case ZYDIS_MNEMONIC_POPF: /* the interrupt flag */
    case ZYDIS_MNEMONIC_POPFQ:
    case ZYDIS_MNEMONIC_XGETBV: return RULE_OPAQUE;
    case ZYDIS_MNEMONIC_FXSAVE:
    case ZYDIS_MNEMONIC_FXSAVE64:
    case ZYDIS_MNEMONIC_FXRSTOR:
    case ZYDIS_MNEMONIC_FXRSTOR64: return RULE_STATE;
    case ZYDIS_MNEMONIC_ENDBR64: return RULE_PLAIN;
    /* Beside the categories: speculation barrier, transactions, traps, odd ones. */
    case ZYDIS_MNEMONIC_LFENCE:
    case ZYDIS_MNEMONIC_XBEGIN:
    case ZYDIS_MNEMONIC_XEND:
    case ZYDIS_MNEMONIC_XABORT:
    case ZYDIS_MNEMONIC_XTEST:
    case ZYDIS_MNEMONIC_INT1:
    case ZYDIS_MNEMONIC_INT3:
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_HLT:
    case ZYDIS_MNEMONIC_CLI:
    case ZYDIS_MNEMONIC_STI:
    case ZYDIS_MNEMONIC_MONITOR:
    case ZYDIS_MNEMONIC_MONITORX:
    case ZYDIS_MNEMONIC_MWAIT:
    case ZYDIS_MNEMONIC_MWAITX:
    case ZYDIS_MNEMONIC_XSETBV: return RULE_PINNED;
    default: break;
    }
    if (insn->attributes & ZYDIS_ATTRIB_IS_PRIVILEGED)
        return RULE_PINNED;
    return category_rule[insn->meta.category];
}

bool x86_64_parse(const uint8_t *bytes, uint64_t size, struct parsed *out)
{
    ZyanUSize length = size > ZYDIS_MAX_INSTRUCTION_LENGTH
                           ? ZYDIS_MAX_INSTRUCTION_LENGTH
                           : (ZyanUSize)size;
    return size != 0 && ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
                            &decoder, &out->context, bytes, length, &out->insn));
}

bool x86_64_operands(const struct parsed *parsed,
                     ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT])
{
    return ZYAN_SUCCESS(ZydisDecoderDecodeOperands(&decoder, &parsed->context,
                                                   &parsed->insn, operands,
                                                   parsed->insn.operand_count));
}

bool x86_64_is_rip_memory(const ZydisDecodedInstruction *insn)
{
    return (insn->attributes & ZYDIS_ATTRIB_HAS_MODRM) && insn->raw.modrm.mod == 0 &&
           insn->raw.modrm.rm == RM_RIP && insn->raw.disp.size == 32;
}

/* Encodings that we do not want to know: far branches; near branches of 16 bits (Intel
 * ignores the 66, AMD truncates rip); addresses relative to eip. */
static bool is_rejected(const ZydisDecodedInstruction *insn)
{
    if (rule_of(insn) == RULE_REJECT ||
        insn->encoding == ZYDIS_INSTRUCTION_ENCODING_MVEX ||
        insn->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
        return true;
    bool near = insn->meta.branch_type != ZYDIS_BRANCH_TYPE_NONE ||
                insn->meta.category == ZYDIS_CATEGORY_RET;
    bool wide = (insn->attributes & ZYDIS_ATTRIB_HAS_REX) && insn->raw.rex.W;
    if (near && (insn->attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE) && !wide)
        return true;
    return x86_64_is_rip_memory(insn) && insn->address_width != 64;
}

/* --- registers --- */

static bool is_general(ZydisRegister reg)
{
    return reg >= ZYDIS_REGISTER_AL && reg <= ZYDIS_REGISTER_R15;
}

/* Zydis numbers al cl dl bl ah ch dh bh spl … r15b, then 16 of each wider kind. */
static uint32_t general_number(ZydisRegister reg)
{
    if (reg >= ZYDIS_REGISTER_AX)
        return (uint32_t)(reg - ZYDIS_REGISTER_AX) & 15;
    uint32_t index = (uint32_t)(reg - ZYDIS_REGISTER_AL);
    return index < 4 ? index : index - 4;
}

static bool is_vector(ZydisRegister reg)
{
    return reg >= ZYDIS_REGISTER_XMM0 && reg <= ZYDIS_REGISTER_ZMM31;
}

/* The bit of a register; 0 for the instruction pointer and the flags, which are kept
 * elsewhere. What the sets have no bit for counts as "other state". */
static uint64_t register_bit(ZydisRegister reg)
{
    if (is_general(reg))
        return BIT(general_number(reg));
    if (is_vector(reg))
        return BIT(BIT_ZMM0 + ((uint32_t)(reg - ZYDIS_REGISTER_XMM0) & 31));
    if (reg >= ZYDIS_REGISTER_K0 && reg <= ZYDIS_REGISTER_K7)
        return BIT(BIT_K0 + (uint32_t)(reg - ZYDIS_REGISTER_K0));
    if (reg >= ZYDIS_REGISTER_ST0 && reg <= ZYDIS_REGISTER_MM7)
        return BIT(BIT_X87);
    if (reg == ZYDIS_REGISTER_NONE ||
        (reg >= ZYDIS_REGISTER_FLAGS && reg <= ZYDIS_REGISTER_RIP))
        return 0;
    return BIT(BIT_STATE);
}

/* Writing this operand leaves some of the register as it was. */
static bool is_partial(const ZydisDecodedInstruction *insn, ZydisRegister reg)
{
    if (is_general(reg))
        return reg < ZYDIS_REGISTER_EAX;
    if (is_vector(reg))
        return insn->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY ||
               insn->avx.mask.mode == ZYDIS_MASK_MODE_MERGING;
    return false;
}

static void add_register(struct insn *out, const ZydisDecodedInstruction *insn,
                         const ZydisDecodedOperand *operand)
{
    ZydisRegister reg = operand->reg.value;
    uint64_t bit = register_bit(reg);
    ZydisOperandActions actions = operand->actions;
    if (operand->encoding == ZYDIS_OPERAND_ENCODING_MASK && reg == ZYDIS_REGISTER_K0)
        return; /* says "no mask" */
    if (operand->attributes & ZYDIS_OATTRIB_IS_MULTISOURCE4) {
        uint32_t first = (uint32_t)(reg - ZYDIS_REGISTER_XMM0) & 28;
        bit |= UINT64_C(15) << (BIT_ZMM0 + first);
    }
    if (bit & (BIT(BIT_X87) | BIT(BIT_STATE)))
        actions |= ZYDIS_OPERAND_ACTION_READ; /* many registers in one bit */
    if (actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) {
        out->defs |= bit;
        if ((actions & ZYDIS_OPERAND_ACTION_CONDWRITE) || is_partial(insn, reg))
            out->uses |= bit;
    }
    if (actions & ZYDIS_OPERAND_ACTION_MASK_READ)
        out->uses |= bit;
    bool segment = reg >= ZYDIS_REGISTER_ES && reg <= ZYDIS_REGISTER_GS;
    if (segment && (actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
        out->traits |= INSN_PINNED; /* who knows what descriptors there are */
}

static void add_memory(struct insn *out, const ZydisDecodedOperandMem *mem)
{
    out->uses |= register_bit(mem->base) | register_bit(mem->index);
    if (mem->segment == ZYDIS_REGISTER_FS || mem->segment == ZYDIS_REGISTER_GS)
        out->uses |= BIT(BIT_STATE);
}

/* The x87 stack, its control, status and tag words and the MMX registers are one bit:
 * whatever touches any of them reads and writes it. */
static bool touches_x87(const ZydisDecodedInstruction *insn)
{
    return insn->meta.category == ZYDIS_CATEGORY_X87_ALU ||
           insn->meta.category == ZYDIS_CATEGORY_FCMOV ||
           insn->mnemonic == ZYDIS_MNEMONIC_EMMS ||
           insn->mnemonic == ZYDIS_MNEMONIC_FEMMS ||
           (insn->attributes &
            (ZYDIS_ATTRIB_FPU_STATE_CR | ZYDIS_ATTRIB_FPU_STATE_CW)) != 0;
}

/* Floating-point arithmetic on vectors reads the rounding mode from mxcsr and adds
 * sticky exception bits to it: those are the instructions of exception types 2, 3 and
 * 11 (Intel SDM vol. 2, 2.4 and 2.8). */
static bool touches_mxcsr(const ZydisDecodedInstruction *insn)
{
    switch (insn->mnemonic) { /* MMX operands: types of their own */
    case ZYDIS_MNEMONIC_CVTPI2PS:
    case ZYDIS_MNEMONIC_CVTPS2PI:
    case ZYDIS_MNEMONIC_CVTTPS2PI:
    case ZYDIS_MNEMONIC_CVTPD2PI:
    case ZYDIS_MNEMONIC_CVTTPD2PI: return true;
    default: break;
    }
    switch (insn->meta.exception_class) {
    case ZYDIS_EXCEPTION_CLASS_SSE2:
    case ZYDIS_EXCEPTION_CLASS_SSE3:
    case ZYDIS_EXCEPTION_CLASS_AVX2:
    case ZYDIS_EXCEPTION_CLASS_AVX3:
    case ZYDIS_EXCEPTION_CLASS_AVX11:
    case ZYDIS_EXCEPTION_CLASS_E2:
    case ZYDIS_EXCEPTION_CLASS_E2NF:
    case ZYDIS_EXCEPTION_CLASS_E3:
    case ZYDIS_EXCEPTION_CLASS_E3NF:
    case ZYDIS_EXCEPTION_CLASS_E11: return true;
    default: return false;
    }
}

static void add_operands(struct insn *out, const ZydisDecodedInstruction *insn,
                         const ZydisDecodedOperand *operands)
{
    for (uint32_t i = 0; i < insn->operand_count; i++) {
        if (operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER)
            add_register(out, insn, &operands[i]);
        else if (operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
            add_memory(out, &operands[i].mem);
    }
    if (touches_mxcsr(insn)) {
        out->uses |= BIT(BIT_STATE);
        out->defs |= BIT(BIT_STATE);
    }
    if (touches_x87(insn) || ((out->uses | out->defs) & BIT(BIT_X87))) {
        out->uses |= BIT(BIT_X87);
        out->defs |= BIT(BIT_X87);
    }
}

/* --- flags --- */

static uint8_t flags_of(ZydisAccessedFlagsMask mask)
{
    uint32_t flags = (mask & ZYDIS_CPUFLAG_CF) ? FLAG_CF : 0;
    flags |= (mask & ZYDIS_CPUFLAG_PF) ? FLAG_PF : 0;
    flags |= (mask & ZYDIS_CPUFLAG_AF) ? FLAG_AF : 0;
    flags |= (mask & ZYDIS_CPUFLAG_ZF) ? FLAG_ZF : 0;
    flags |= (mask & ZYDIS_CPUFLAG_SF) ? FLAG_SF : 0;
    flags |= (mask & ZYDIS_CPUFLAG_DF) ? FLAG_DF : 0;
    flags |= (mask & ZYDIS_CPUFLAG_OF) ? FLAG_OF : 0;
    return (uint8_t)flags;
}

static void add_flags(struct insn *out, const ZydisDecodedInstruction *insn)
{
    const ZydisAccessedFlags *flags = insn->cpu_flags;
    if (!flags)
        return;
    out->flag_uses = flags_of(flags->tested);
    out->flag_defs =
        flags_of(flags->modified | flags->set_0 | flags->set_1 | flags->undefined);
}

/* --- what the operand list does not say --- */

/* Shifts and rotates leave the flags alone when the count, taken modulo 32 (64 with
 * REX.W), is 0. The count is the last visible operand: %cl, 1 or an immediate. */
static void correct_shift(struct insn *out, const ZydisDecodedInstruction *insn,
                          const ZydisDecodedOperand *operands)
{
    const ZydisDecodedOperand *count = &operands[insn->operand_count_visible - 1];
    uint64_t modulus = insn->operand_width == 64 ? 63 : 31;
    if (count->type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
        out->flag_uses |= out->flag_defs;
    else if ((count->imm.value.u & modulus) == 0)
        out->flag_defs = 0;
}

static bool is_same_register(const ZydisDecodedOperand *a, const ZydisDecodedOperand *b)
{
    return a->type == ZYDIS_OPERAND_TYPE_REGISTER &&
           b->type == ZYDIS_OPERAND_TYPE_REGISTER && a->reg.value == b->reg.value;
}

/* xor %eax,%eax and its kin give the same result whatever the register held. */
static void correct_zeroing(struct insn *out, const ZydisDecodedOperand *operands,
                            uint32_t first)
{
    const ZydisDecodedOperand *a = &operands[first], *b = &operands[first + 1];
    if (!is_same_register(a, b))
        return;
    ZydisRegister reg = a->reg.value;
    if (is_vector(reg) || (is_general(reg) && reg >= ZYDIS_REGISTER_EAX))
        out->uses &= ~register_bit(reg);
}

static void correct_vzero(struct insn *out, bool whole)
{
    out->defs |= FIRST_VECTORS;
    if (!whole)
        out->uses |= FIRST_VECTORS;
}

/* String operations advance the registers they address memory by (Zydis 4.0 says so of
 * movs, stos and lods only). Under rep they may do nothing at all. */
static void correct_string(struct insn *out, const ZydisDecodedInstruction *insn,
                           const ZydisDecodedOperand *operands)
{
    for (uint32_t i = 0; i < insn->operand_count; i++)
        if (operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
            out->defs |= register_bit(operands[i].mem.base);
    if (insn->attributes &
        (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE)) {
        out->uses |= out->defs;
        out->flag_uses |= out->flag_defs;
    }
}

static void correct_by_mnemonic(struct insn *out, const ZydisDecodedInstruction *insn,
                                const ZydisDecodedOperand *operands)
{
    switch (insn->mnemonic) {
    case ZYDIS_MNEMONIC_SHL:
    case ZYDIS_MNEMONIC_SHR:
    case ZYDIS_MNEMONIC_SAR:
    case ZYDIS_MNEMONIC_ROL:
    case ZYDIS_MNEMONIC_ROR:
    case ZYDIS_MNEMONIC_RCL:
    case ZYDIS_MNEMONIC_RCR:
    case ZYDIS_MNEMONIC_SHLD:
    case ZYDIS_MNEMONIC_SHRD: correct_shift(out, insn, operands); break;
    case ZYDIS_MNEMONIC_BSF: /* keep the destination when the source is 0 … */
    case ZYDIS_MNEMONIC_BSR:
    case ZYDIS_MNEMONIC_TZCNT: /* … and so do these, run as bsf and bsr */
    case ZYDIS_MNEMONIC_LZCNT:
        out->uses |= register_bit(operands[0].reg.value);
        out->flag_defs |= FLAG_ZF;
        break;
    case ZYDIS_MNEMONIC_XOR:
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_SBB: correct_zeroing(out, operands, 0); break;
    case ZYDIS_MNEMONIC_VPXOR:
    case ZYDIS_MNEMONIC_VXORPS:
    case ZYDIS_MNEMONIC_VXORPD:
        if (insn->encoding == ZYDIS_INSTRUCTION_ENCODING_VEX)
            correct_zeroing(out, operands, 1);
        break;
    case ZYDIS_MNEMONIC_VPTEST: /* clear the other four (Zydis 4.0 knows it of ptest) */
    case ZYDIS_MNEMONIC_VTESTPS:
    case ZYDIS_MNEMONIC_VTESTPD:
        out->flag_defs |= FLAG_PF | FLAG_AF | FLAG_SF | FLAG_OF;
        break;
    case ZYDIS_MNEMONIC_VZEROALL: correct_vzero(out, true); break;
    case ZYDIS_MNEMONIC_VZEROUPPER: correct_vzero(out, false); break;
    case ZYDIS_MNEMONIC_VP2INTERSECTD: /* writes a pair of masks */
    case ZYDIS_MNEMONIC_VP2INTERSECTQ:
        out->defs |= register_bit(operands[0].reg.value ^ 1);
        out->uses |= out->defs;
        break;
    default: break;
    }
    if (insn->meta.category == ZYDIS_CATEGORY_STRINGOP)
        correct_string(out, insn, operands);
}

static void apply_rule(struct insn *out, const ZydisDecodedInstruction *insn)
{
    switch (rule_of(insn)) {
    case RULE_PINNED:
        out->traits |= INSN_PINNED | INSN_OPAQUE;
        out->uses = UINT64_MAX;
        out->flag_uses = UINT8_MAX;
        break;
    case RULE_OPAQUE: out->traits |= INSN_OPAQUE; break;
    case RULE_STATE:
        out->traits |= INSN_OPAQUE;
        out->uses = UINT64_MAX;
        if (insn->attributes & (ZYDIS_ATTRIB_FPU_STATE_CW | ZYDIS_ATTRIB_XMM_STATE_CW))
            out->defs |= ALL_VECTORS | ALL_MASKS | BIT(BIT_X87) | BIT(BIT_STATE);
        break;
    case RULE_PLAIN:
    case RULE_REJECT: break;
    }
}

/* --- control flow --- */

static enum flow flow_of(const ZydisDecodedInstruction *insn)
{
    bool direct = insn->raw.imm[0].is_relative;
    switch (insn->mnemonic) {
    /* (Not int3 and hlt: a debugger or a handler goes on behind them, and so does a
     * processor after an interrupt.) */
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2: return FLOW_STOP;
    case ZYDIS_MNEMONIC_XBEGIN: return FLOW_BRANCH;
    case ZYDIS_MNEMONIC_XABORT: return FLOW_NEXT;
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
    case ZYDIS_MNEMONIC_UIRET:
    case ZYDIS_MNEMONIC_SYSRET:
    case ZYDIS_MNEMONIC_SYSEXIT: return FLOW_RETURN;
    default: break;
    }
    switch (insn->meta.category) {
    case ZYDIS_CATEGORY_CALL: return direct ? FLOW_CALL : FLOW_CALL_INDIRECT;
    case ZYDIS_CATEGORY_UNCOND_BR: return direct ? FLOW_JUMP : FLOW_JUMP_INDIRECT;
    case ZYDIS_CATEGORY_COND_BR: return FLOW_BRANCH;
    case ZYDIS_CATEGORY_RET: return FLOW_RETURN;
    default: return FLOW_NEXT;
    }
}

static void add_target(struct insn *out, const ZydisDecodedInstruction *insn)
{
    int64_t displacement;
    if (insn->raw.imm[0].is_relative)
        displacement = insn->raw.imm[0].value.s;
    else if (x86_64_is_rip_memory(insn))
        displacement = insn->raw.disp.value;
    else
        return;
    int64_t target = (int64_t)out->offset + out->length + displacement;
    out->traits |= INSN_PC_RELATIVE;
    if (target >= 0 && target < (int64_t)NO_INDEX)
        out->target = (uint32_t)target;
}

/* --- all together --- */

static bool is_nop(const ZydisDecodedInstruction *insn)
{
    return insn->mnemonic == ZYDIS_MNEMONIC_NOP;
}

/* A call and a return as such; what the callee does is the ABI's business. The push is
 * undone by the return, so rsp counts as read only. */
static void judge_flow(struct insn *out, const ZydisDecodedInstruction *insn)
{
    if (out->flow == FLOW_CALL || out->flow == FLOW_CALL_INDIRECT)
        out->defs &= ~BIT(BIT_RSP);
    bool pops = insn->mnemonic == ZYDIS_MNEMONIC_RET && insn->raw.imm[0].size != 0;
    if (pops)
        out->traits |= INSN_PINNED;
}

bool x86_64_decode(const uint8_t *bytes, uint64_t size, uint32_t offset,
                   struct insn *out)
{
    struct parsed parsed;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    if (!x86_64_parse(bytes, size, &parsed) || is_rejected(&parsed.insn))
        return false;
    const ZydisDecodedInstruction *insn = &parsed.insn;
    *out = (struct insn){.offset = offset, .target = NO_INDEX, .length = insn->length};
    if (is_nop(insn)) {
        out->traits = INSN_NOP;
        return true;
    }
    if (!x86_64_operands(&parsed, operands))
        return false;
    out->flow = (uint8_t)flow_of(insn);
    if (insn->mnemonic == ZYDIS_MNEMONIC_ENDBR64)
        out->traits |= INSN_MARKER;
    add_operands(out, insn, operands);
    add_flags(out, insn);
    correct_by_mnemonic(out, insn, operands);
    add_target(out, insn);
    x86_64_judge_stack(out, insn, operands);
    if (x86_64_may_fault(insn, operands))
        out->traits |= INSN_FAULTS;
    judge_flow(out, insn);
    apply_rule(out, insn);
    return true;
}
