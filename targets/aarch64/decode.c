/* SPDX-License-Identifier: MIT
 *
 * From a word to the shared vocabulary (mo/insn.h). The tables say which fields an
 * instruction reads and writes; here are the things that need arithmetic or judgement:
 * reserved encodings, PC-relative targets, register lists, what happens to SP, and the
 * hint space, in which pointer authentication and branch targets live.
 *
 * SP. Only the plain forms can be re-encoded for a shifted stack, so only these are
 * told apart: [sp, #imm] of loads, stores and pairs, `add xN, sp, #imm`, and moves of
 * SP by a constant. Whatever else reads or writes SP is INSN_SP_OPAQUE.
 */
#include "form.h"
#include "mo/bytes.h"
#include "target.h"

#include <string.h>

enum { SP = 31, FRAME = 29, LINK = 30 };

#define SP_BIT     (1ull << SP)
#define VECTOR_ALL 0xffffffff00000000ull

static uint64_t general(uint32_t number)
{
    return number == 31 ? 0 : 1ull << number;
}

static uint64_t vectors(uint32_t first, uint32_t count)
{
    uint64_t set = 0;
    for (uint32_t i = 0; i < count; i++)
        set |= 1ull << (32 + (first + i) % 32);
    return set;
}

/* --- reserved encodings --- */

/* The bitmask immediate N:immr:imms exists (Arm ARM, DecodeBitMasks()). */
static bool bitmask_exists(uint32_t word)
{
    const uint32_t n = field(word, 22, 1), imms = field(word, 10, 6);
    if (n && !(word >> 31))
        return false;
    uint32_t length = 7;
    for (uint32_t bits = n << 6 | (~imms & 0x3f); length; length--) {
        if (bits >> (length - 1) & 1u)
            break;
    }
    if (length < 2)
        return false;
    const uint32_t levels = (1u << (length - 1)) - 1;
    return (imms & levels) != levels;
}

/* The size that the lowest set bit of imm5 says: 0 to 3, or 4 for a reserved one. */
static uint32_t lane_size(uint32_t word)
{
    uint32_t size = 0;
    while (size < 4 && !(word >> (16 + size) & 1u))
        size++;
    return size;
}

static bool lane_allocated(enum form_kind kind, uint32_t word)
{
    const uint32_t size = lane_size(word), q = field(word, 30, 1);
    switch (kind) {
    case LANE_DUP: return size < 3 || (size == 3 && q);
    case LANE_SMOV: return size < 2 + q;
    case LANE_UMOV: return q ? size == 3 : size < 3;
    default: return size < 4;
    }
}

static bool float_allocated(enum form_kind kind, uint32_t word)
{
    const uint32_t type = field(word, 22, 2), wide = word >> 31;
    if (type == 2)
        return false;
    switch (kind) {
    case FLOAT_FIXED: return wide || field(word, 15, 1);
    case FLOAT_MOVE: return type == 3 || type == wide;
    case FLOAT_CONVERT: return field(word, 15, 2) != 2 && field(word, 15, 2) != type;
    default: return true;
    }
}

static bool register_allocated(enum form_kind kind, uint32_t word)
{
    const bool wide = word >> 31;
    switch (kind) {
    case BITMASK_IMMEDIATE: return bitmask_exists(word);
    case MOVE_WIDE: return wide || !field(word, 22, 1);
    case BITFIELD:
        return field(word, 22, 1) == wide &&
               (wide || (!field(word, 21, 1) && !field(word, 15, 1)));
    case EXTRACT: return field(word, 22, 1) == wide && (wide || !field(word, 15, 1));
    case SHIFTED: return wide || !field(word, 15, 1);
    case SHIFTED_NO_ROR:
        return field(word, 22, 2) != 3 && (wide || !field(word, 15, 1));
    case EXTENDED: return field(word, 10, 3) <= 4;
    case CRC: return (field(word, 10, 2) == 3) == wide;
    default: return true;
    }
}

bool aarch64_allocated(const struct form *form, uint32_t word)
{
    const enum form_kind kind = (enum form_kind)form->kind;
    switch (kind) {
    case FLOAT:
    case FLOAT_FIXED:
    case FLOAT_MOVE:
    case FLOAT_CONVERT: return float_allocated(kind, word);
    case LANE_DUP:
    case LANE_SMOV:
    case LANE_UMOV:
    case LANE_ANY: return lane_allocated(kind, word);
    case VECTOR_EXT: return field(word, 30, 1) || !field(word, 14, 1);
    case ELEMENT_COMPLEX: /* words: H is the index; halfwords: H:L, only L when Q is 0
                           */
        return field(word, 22, 2) == 2 ? !field(word, 21, 1)
                                       : field(word, 30, 1) || !field(word, 11, 1);
    case AT_PAIR:
    case AT_PAIR_PRE:
    case AT_PAIR_POST: return field(word, 30, 2) != 3;
    case AT_SCALED:
    case AT_UNSCALED:
    case AT_PRE:
    case AT_POST:
    case AT_INDEX: return true;
    case AT_PLAIN: return !(form->roles & PAIRED) || !(word & 0x00010001u);
    case AT_LIST:
    case AT_LIST_POST:
    case AT_LANE:
    case AT_LANE_POST: return aarch64_list_count(form, word) != 0;
    default: return register_allocated(kind, word);
    }
}

/* --- memory --- */

uint32_t aarch64_access_scale(uint32_t word, bool pair)
{
    const uint32_t top = word >> 30, vector = field(word, 26, 1);
    if (!pair)
        return vector && field(word, 23, 1) ? 4 : top;
    if (vector)
        return 2 + top;
    if (top == 1) /* ldpsw, stgp */
        return field(word, 22, 1) ? 2 : 4;
    return 2 + (top >> 1);
}

uint32_t aarch64_list_count(const struct form *form, uint32_t word)
{
    if (form->kind == AT_LIST || form->kind == AT_LIST_POST) {
        static const uint8_t counts[16] = {4, 0, 4, 0, 3, 0, 3, 1, 2, 0, 2};
        const uint32_t opcode = field(word, 12, 4);
        const bool interleaved = !(opcode & 2);
        if (interleaved && field(word, 10, 2) == 3 && !field(word, 30, 1))
            return 0;
        return counts[opcode];
    }
    const uint32_t scale = field(word, 14, 2), size = field(word, 10, 2);
    const bool s = field(word, 12, 1);
    const uint32_t count = (field(word, 13, 1) << 1 | field(word, 21, 1)) + 1;
    switch (scale) {
    case 1: return size & 1 ? 0 : count;
    case 2: return size > 1 || (size == 1 && s) ? 0 : count;
    case 3: return s || !field(word, 22, 1) ? 0 : count; /* replicates: loads only */
    default: return count;
    }
}

/* Bytes that a structure load or store moves: its post-index increment. */
static int32_t list_bytes(const struct form *form, uint32_t word)
{
    const uint32_t count = aarch64_list_count(form, word);
    if (form->kind == AT_LIST_POST)
        return (int32_t)(count * (field(word, 30, 1) ? 16u : 8u));
    const uint32_t scale = field(word, 14, 2), size = field(word, 10, 2);
    const uint32_t log = scale == 3 ? size : scale + (scale == 2 && size == 1);
    return (int32_t)(count << log);
}

static int32_t displacement(const struct form *form, uint32_t word)
{
    switch ((enum form_kind)form->kind) {
    case AT_SCALED:
        return (int32_t)(field(word, 10, 12) << aarch64_access_scale(word, false));
    case AT_UNSCALED:
    case AT_PRE:
    case AT_POST: return field_signed(word, 12, 9);
    case AT_PAIR:
    case AT_PAIR_PRE:
    case AT_PAIR_POST:
        return field_signed(word, 15, 7) * (1 << aarch64_access_scale(word, true));
    case AT_AUTH:
        return ((int32_t)field(word, 12, 9) - (int32_t)field(word, 22, 1) * 512) * 8;
    case AT_TAG:
    case AT_TAG_PRE:
    case AT_TAG_POST: return field_signed(word, 12, 9) * 16;
    case AT_LIST_POST:
    case AT_LANE_POST: return list_bytes(form, word);
    default: return 0;
    }
}

/* The registers of a structure load or store. True when it steps by a register. */
static bool decode_list(const struct form *form, uint32_t word, struct insn *out)
{
    const uint64_t set = vectors(field(word, 0, 5), aarch64_list_count(form, word));
    out->uses |= form->roles & VD_R ? set : 0;
    out->defs |= form->roles & VD_W ? set : 0;
    if (!(form->roles & NSP_W) || field(word, 16, 5) == 31)
        return false;
    out->uses |= general(field(word, 16, 5));
    return true;
}

static bool is_list(const struct form *form)
{
    return form->kind >= AT_LIST && form->kind <= AT_LANE_POST;
}

static uint32_t stack_traits(bool plain, bool writes_back, bool by_register,
                             int32_t bytes)
{
    if (by_register)
        return INSN_SP_OPAQUE;
    if (writes_back)
        return INSN_SP_ADJUST;
    if (!plain)
        return INSN_SP_OPAQUE;
    return INSN_SP_MEMORY | (bytes < 0 ? INSN_BELOW_SP : 0u);
}

static void decode_memory(const struct form *form, uint32_t word, struct insn *out)
{
    const uint32_t base = field(word, 5, 5);
    const int32_t bytes = displacement(form, word);
    const bool steps = is_list(form) && decode_list(form, word, out);
    const bool by_register = steps || form->kind == AT_INDEX;
    const bool writes_back =
        form->roles & NSP_W || (form->kind == AT_AUTH && field(word, 11, 1));
    const bool plain =
        form->kind == AT_SCALED || form->kind == AT_UNSCALED || form->kind == AT_PAIR;
    if (writes_back)
        out->defs |= 1ull << base;
    if (base == SP ? by_register : base != FRAME || !plain)
        out->traits |= INSN_FAULTS;
    if (base == SP)
        out->traits |= stack_traits(plain, writes_back, by_register, bytes);
    else if (base == FRAME && plain)
        out->traits |= INSN_FRAME_MEMORY;
    if (out->traits & (INSN_SP_MEMORY | INSN_SP_ADJUST | INSN_FRAME_MEMORY))
        out->sp_value = bytes;
}

/* --- the other kinds --- */

static void decode_pc_relative(const struct form *form, uint32_t word, struct insn *out)
{
    int64_t bytes;
    out->traits |= INSN_PC_RELATIVE;
    switch ((enum form_kind)form->kind) {
    case PC_26: bytes = field_signed(word, 0, 26) * 4ll; break;
    case PC_19: bytes = field_signed(word, 5, 19) * 4ll; break;
    case PC_14: bytes = field_signed(word, 5, 14) * 4ll; break;
    case PC_ADR: bytes = field_signed(word, 5, 19) * 4ll + field(word, 29, 2); break;
    default: return; /* adrp always has a relocation */
    }
    const int64_t target = (int64_t)out->offset + bytes;
    if (target >= 0 && target < (int64_t)NO_INDEX)
        out->target = (uint32_t)target;
}

/* add and sub (immediate), where they read or write SP. */
static void decode_add(uint32_t word, struct insn *out)
{
    const uint32_t to = field(word, 0, 5), from = field(word, 5, 5);
    if (to != SP && from != SP)
        return;
    const int32_t size = (int32_t)(field(word, 10, 12) << field(word, 22, 1) * 12);
    const int32_t bytes = field(word, 30, 1) ? -size : size;
    out->sp_value = bytes;
    if (!(word >> 31)) {
        out->traits |= INSN_SP_OPAQUE;
        out->sp_value = 0;
    } else if (to == SP && from == SP) {
        out->traits |= INSN_SP_ADJUST;
    } else if (to != SP) {
        out->traits |= INSN_SP_COPY | (to == FRAME ? INSN_FRAME_SET : 0u) |
                       (bytes < 0 ? INSN_BELOW_SP : 0u);
    } else if (from == FRAME) {
        out->traits |= INSN_SP_FROM_FRAME;
    } else {
        out->traits |= INSN_SP_OPAQUE;
        out->sp_value = 0;
    }
}

/* System calls and the like have a contract of their own with the registers. */
static void decode_system_call(uint32_t word, struct insn *out)
{
    if (out->flow == FLOW_RETURN) { /* retaa, eret, eretaa */
        const bool to_anyone = (word & 0xffff0000u) == 0xd69f0000u; /* eret, eretaa */
        out->uses |= to_anyone ? UINT64_MAX : (1ull << LINK) | SP_BIT;
        out->flag_uses |= to_anyone ? AARCH64_FLAGS : 0;
        out->traits |= INSN_SP_OPAQUE;
        return;
    }
    /* Linux returns in x0 and keeps everything else; what hvc and smc keep is written
     * in the SMC calling convention (DEN0028): x4-x17 may change in its older versions.
     */
    out->uses = UINT64_MAX;
    out->flag_uses = AARCH64_FLAGS;
    out->defs = field(word, 0, 2) == 1 ? 1 : 0x3ffff;
    out->traits |= INSN_OPAQUE | INSN_SP_OPAQUE;
}

/* Registers by op0:op1:CRn:CRm:op2 that user code reads and writes freely. */
enum {
    REGISTER_NZCV = 0x5a10,      /* S3_3_C4_C2_0 */
    REGISTER_FPCR = 0x5a20,      /* S3_3_C4_C4_0 */
    REGISTER_FPSR = 0x5a21,      /* S3_3_C4_C4_1 */
    REGISTER_TPIDR_EL0 = 0x5e82, /* S3_3_C13_C0_2 */
    CRN_CRM_GCS = 0x25,          /* S3_x_C2_C5_x */
};

static void decode_system_register(const struct form *form, uint32_t word,
                                   struct insn *out)
{
    const bool reads = form->kind == SYSTEM_READ;
    /* GCSPR_ELx: a call moves it. */
    const bool guarded = field(word, 8, 8) == CRN_CRM_GCS;
    switch (field(word, 5, 15)) {
    case REGISTER_NZCV:
        out->flag_uses |= reads ? AARCH64_FLAGS : 0;
        out->flag_defs |= reads ? 0 : AARCH64_FLAGS;
        break;
    case REGISTER_FPCR:
    case REGISTER_FPSR:
    case REGISTER_TPIDR_EL0: break;
    default: /* msr spsel switches stacks; others change the machine */
        out->traits |= INSN_OPAQUE | (reads && !guarded ? 0u : INSN_PINNED);
        break;
    }
}

/* SVE and SME read anything. They write vectors, and of general registers none but that
 * of bits 0-4, if it is one. The immediate forms of msr change the mode of the machine:
 * smstart clears the vectors, `msr spsel` switches stacks. */
static void decode_unknown_state(uint32_t word, struct insn *out)
{
    const bool mode = out->traits & INSN_PINNED;
    const bool adds_length = (word & 0xffa0f000u) == 0x04205000u; /* addvl, addpl, … */
    const uint32_t to = field(word, 0, 5);
    const bool writes_sp = mode || (adds_length && to == SP);
    const bool reads_sp = writes_sp || field(word, 5, 5) == SP ||
                          (adds_length && field(word, 16, 5) == SP);
    out->uses = UINT64_MAX & ~(reads_sp ? 0 : SP_BIT);
    out->defs = VECTOR_ALL | (mode ? 0 : general(to)) | (writes_sp ? SP_BIT : 0);
    out->flag_uses = out->flag_defs = AARCH64_FLAGS;
    out->traits |= INSN_OPAQUE | (reads_sp ? INSN_SP_OPAQUE : 0u);
}

/* The hint space by CRm:op2. What is not listed does nothing that one could observe. */
static void decode_hint(uint32_t word, struct insn *out)
{
    const uint64_t x16 = 1ull << 16, x17 = 1ull << 17, x30 = 1ull << LINK;
    switch (field(word, 5, 7)) {
    case 0: out->traits |= INSN_NOP; break;
    case 1: break; /* yield */
    case 7:        /* xpaclri */
    case 24:       /* paciaz, pacibz, autiaz, autibz: modifier zero */
    case 26:
    case 28:
    case 30:
        out->uses |= x30;
        out->defs |= x30;
        out->traits |= INSN_SIGNS;
        break;
    case 8: /* pacia1716, pacib1716, autia1716, autib1716 */
    case 10:
    case 12:
    case 14:
        out->uses |= x16 | x17;
        out->defs |= x17;
        out->traits |= INSN_SIGNS;
        break;
    case 25: /* paciasp, pacibsp, autiasp, autibsp */
    case 27:
    case 29:
    case 31:
        out->uses |= x30 | SP_BIT;
        out->defs |= x30;
        out->traits |= INSN_SIGNS | INSN_SP_OPAQUE;
        break;
    case 32: /* bti, bti c, bti j, bti jc */
    case 34:
    case 36:
    case 38: out->traits |= INSN_MARKER; break;
    case 40: /* chkfeat x16 */
        out->uses |= x16;
        out->defs |= x16;
        break;
    default: out->traits |= INSN_PINNED; break;
    }
}

static bool decode_barrier(uint32_t word, struct insn *out)
{
    switch (field(word, 5, 3)) {
    case 2: out->traits |= INSN_EXCLUSIVE; return true; /* clrex */
    case 5: return true;                                /* dmb: order is kept */
    case 1:                                             /* dsb nXS */
    case 3:                                             /* tcommit */
    case 4:                                             /* dsb, ssbb, pssbb */
    case 6:                                             /* isb */
    case 7: out->traits |= INSN_PINNED; return true;    /* sb */
    default: return false;
    }
}

/* --- registers and flags --- */

/* Flags that a condition needs, by bits 1-3 of it: EQ CS MI VS HI GE GT AL. */
static uint8_t condition_flags(uint32_t condition)
{
    static const uint8_t flags[8] = {
        AARCH64_Z,
        AARCH64_C,
        AARCH64_N,
        AARCH64_V,
        AARCH64_C | AARCH64_Z,
        AARCH64_N | AARCH64_V,
        AARCH64_N | AARCH64_Z | AARCH64_V,
        0,
    };
    return flags[condition >> 1];
}

static void decode_general(uint32_t roles, uint32_t word, struct insn *out)
{
    const uint32_t d = field(word, 0, 5), n = field(word, 5, 5);
    const uint32_t a = field(word, 10, 5), m = field(word, 16, 5);
    out->uses |= (roles & D_R ? general(d) : 0) | (roles & DSP_R ? 1ull << d : 0) |
                 (roles & N_R ? general(n) : 0) | (roles & NSP_R ? 1ull << n : 0) |
                 (roles & M_R ? general(m) : 0) | (roles & MSP_R ? 1ull << m : 0) |
                 (roles & A_R ? general(a) : 0);
    out->defs |= (roles & D_W ? general(d) : 0) | (roles & DSP_W ? 1ull << d : 0) |
                 (roles & N_W ? general(n) : 0) | (roles & NSP_W ? 1ull << n : 0) |
                 (roles & M_W ? general(m) : 0) | (roles & A_W ? general(a) : 0) |
                 (roles & X30_W ? 1ull << LINK : 0);
    if (roles & PAIRED) {
        out->uses |= general(d + 1) | general(m + 1);
        out->defs |= general(m + 1);
    }
}

static void decode_vector(uint32_t roles, uint32_t word, struct insn *out)
{
    const uint32_t d = field(word, 0, 5), a = field(word, 10, 5);
    const bool keeps = roles & VD_R || (roles & VD_R_IF_Q && field(word, 30, 1));
    out->uses |= (keeps ? vectors(d, 1) : 0) |
                 (roles & VN_R ? vectors(field(word, 5, 5), 1) : 0) |
                 (roles & VM_R ? vectors(field(word, 16, 5), 1) : 0) |
                 (roles & VM4_R ? vectors(field(word, 16, 4), 1) : 0) |
                 (roles & VA_R ? vectors(a, 1) : 0);
    out->defs |=
        (roles & VD_W ? vectors(d, 1) : 0) | (roles & VA_W ? vectors(a, 1) : 0);
}

static void decode_flags(uint32_t roles, uint32_t word, struct insn *out)
{
    out->flag_uses =
        (uint8_t)((roles & FLAGS_R ? AARCH64_FLAGS : 0) |
                  (roles & CARRY_R ? AARCH64_C : 0) |
                  (roles & COND_R ? condition_flags(field(word, 12, 4)) : 0));
    out->flag_defs = roles & FLAGS_W ? AARCH64_FLAGS : 0;
}

static bool decode_kind(const struct form *form, uint32_t word, struct insn *out)
{
    switch ((enum form_kind)form->kind) {
    case PC_19:
        if ((word & 0xff000000u) == 0x54000000u)
            out->flag_uses |= condition_flags(field(word, 0, 4));
        decode_pc_relative(form, word, out);
        return true;
    case PC_26:
    case PC_14:
    case PC_ADR:
    case PC_PAGE: decode_pc_relative(form, word, out); return true;
    case ADD_IMMEDIATE: decode_add(word, out); return true;
    case VECTOR_TABLE:
        out->uses |= vectors(field(word, 5, 5), field(word, 13, 2) + 1);
        return true;
    case FLAGS_RMIF: /* mask and flags have opposite order */
        for (uint32_t bit = 0; bit < 4; bit++) {
            if (word >> (3 - bit) & 1u)
                out->flag_defs |= (uint8_t)(1u << bit);
        }
        return true;
    case FLAGS_SETF: out->flag_defs |= AARCH64_N | AARCH64_Z | AARCH64_V; return true;
    case CALL_SYSTEM: decode_system_call(word, out); return true;
    case SYSTEM_READ:
    case SYSTEM_WRITE: decode_system_register(form, word, out); return true;
    case HINT: decode_hint(word, out); return true;
    case BARRIER: return decode_barrier(word, out);
    case UNKNOWN_STATE: decode_unknown_state(word, out); return true;
    default:
        if (form_is_memory(form))
            decode_memory(form, word, out);
        return true;
    }
}

/* Arithmetic on vector registers: most processors cannot trap floating-point
 * exceptions, but they may (FPCR.IOE and its kin), and integers are not told apart
 * here. */
static bool is_vector_arithmetic(const struct form *form)
{
    switch ((enum form_kind)form->kind) {
    case FLOAT_MOVE:
    case LANE_DUP:
    case LANE_ANY:
    case LANE_SMOV:
    case LANE_UMOV:
    case VECTOR_EXT:
    case VECTOR_TABLE: return false;
    default: return !form_is_memory(form) && form->roles & (VN_R | VM_R | VA_R);
    }
}

bool aarch64_decode(const uint8_t *bytes, uint64_t size, uint32_t offset,
                    struct insn *out)
{
    if (size < 4 || offset % 4)
        return false;
    const uint32_t word = (uint32_t)load_le(bytes, 4);
    const struct form *form = aarch64_form(word);
    if (!form || !aarch64_allocated(form, word))
        return false;
    *out = (struct insn){
        .offset = offset,
        .target = NO_INDEX,
        .length = 4,
        .flow = form->flow,
        .traits = form->traits,
    };
    const bool list = form->kind >= AT_LIST && form->kind <= AT_LANE_POST;
    decode_general(form->roles, word, out);
    decode_vector(list ? form->roles & ~(uint32_t)(VD_R | VD_W) : form->roles, word,
                  out);
    decode_flags(form->roles, word, out);
    if (!decode_kind(form, word, out))
        return false;
    if (is_vector_arithmetic(form) || form->kind == UNKNOWN_STATE)
        out->traits |= INSN_FAULTS;
    /* Never silent about SP, whatever the form. */
    const uint32_t sp_traits = INSN_SP_MEMORY | INSN_SP_COPY | INSN_SP_ADJUST |
                               INSN_SP_FROM_FRAME | INSN_SP_OPAQUE;
    if ((out->uses | out->defs) & SP_BIT && !(out->traits & sp_traits))
        out->traits |= INSN_SP_OPAQUE;
    return true;
}
