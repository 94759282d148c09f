/* SPDX-License-Identifier: MIT
 *
 * An AArch64 instruction form: a pattern of fixed bits, and the roles that the operand
 * fields play in it. Shared by the files of this target only.
 *
 * Fields have the same place in nearly every instruction (Arm ARM DDI 0487, C4.1):
 *   Rd/Rt bits 0-4, Rn 5-9, Rt2/Ra 10-14, Rm/Rs 16-20, Q or size at 30, size at 22-23.
 * So one set of role bits says it all. Where register 31 is SP and not XZR depends on
 * the instruction alone, hence two roles for each such field.
 */
#ifndef MO_AARCH64_FORM_H
#define MO_AARCH64_FORM_H

#include "mo/insn.h"

/* D: bits 0-4, N: bits 5-9, A: bits 10-14, M: bits 16-20; R read, W written. */
enum role {
    D_R = 1u << 0,
    D_W = 1u << 1,
    DSP_R = 1u << 2,
    DSP_W = 1u << 3,
    N_R = 1u << 4,
    N_W = 1u << 5,
    NSP_R = 1u << 6,
    NSP_W = 1u << 7,
    M_R = 1u << 8,
    M_W = 1u << 9,
    MSP_R = 1u << 10,
    A_R = 1u << 11,
    A_W = 1u << 12,
    PAIRED = 1u << 13, /* D and M name an even register and mean the next one, too */
    VD_R = 1u << 14,
    VD_W = 1u << 15,
    VD_R_IF_Q = 1u << 16, /* xtn2 and the like keep the low half */
    VN_R = 1u << 17,
    VM_R = 1u << 18,
    VM4_R = 1u << 19, /* only bits 16-19: v0 to v15 */
    VA_R = 1u << 20,
    VA_W = 1u << 21,
    FLAGS_R = 1u << 22,
    FLAGS_W = 1u << 23,
    CARRY_R = 1u << 24,
    COND_R = 1u << 25,    /* the flags that the condition in bits 12-15 needs */
    X16_RW = 1u << 26,    /* implied registers of the hint forms of pointer */
    X30_RW = 1u << 27,    /* authentication */
    X30_W = 1u << 28,     /* bl, blr */
    SIZE_IMMH = 1u << 29, /* the size that `sizes` is about is the top bit of immh */
    SIZE_LOW = 1u << 30,  /* … is in bits 10-11 */
};

/* How an instruction addresses memory or the program counter, and what makes an
 * encoding of its form unallocated. */
enum form_kind {
    PLAIN,
    PC_26,
    PC_19,
    PC_14,
    PC_ADR,
    PC_PAGE,
    AT_PLAIN,    /* [Xn] and nothing else */
    AT_INDEX,    /* [Xn, Xm] */
    AT_SCALED,   /* [Xn, #imm12 * size] */
    AT_UNSCALED, /* [Xn, #imm9] */
    AT_PRE,      /* [Xn, #imm9]! */
    AT_POST,     /* [Xn], #imm9 */
    AT_PAIR,     /* [Xn, #imm7 * size] */
    AT_PAIR_PRE,
    AT_PAIR_POST,
    AT_AUTH, /* ldraa: [Xn, #imm10 * 8], perhaps with ! */
    AT_TAG,  /* [Xn, #imm9 * 16] */
    AT_TAG_PRE,
    AT_TAG_POST,
    AT_LIST, /* {Vt, …}, [Xn] */
    AT_LIST_POST,
    AT_LANE, /* {Vt, …}[i], [Xn] */
    AT_LANE_POST,
    ADD_IMMEDIATE,
    BITMASK_IMMEDIATE,
    MOVE_WIDE, /* w registers have two halfwords only */
    BITFIELD,
    EXTRACT,
    SHIFTED, /* w registers shift by less than 32 */
    SHIFTED_NO_ROR,
    EXTENDED,
    SELECT_64, /* allocated for x registers only */
    SELECT_32,
    CRC,
    FLOAT, /* type in bits 22-23 is not 2 */
    FLOAT_FIXED,
    FLOAT_MOVE,    /* between general and vector register of the same size */
    FLOAT_CONVERT, /* fcvt: to another type */
    LANE_DUP,      /* index encodings of the copy group */
    LANE_ANY,
    LANE_SMOV,
    LANE_UMOV,
    VECTOR_EXT,
    VECTOR_TABLE,   /* tbl: registers from Vn on */
    ELEMENT_DOUBLE, /* by element, doubles: one index bit */
    ELEMENT_COMPLEX,
    FLAGS_RMIF,
    FLAGS_SETF,
    CALL_SYSTEM,
    SYSTEM_READ,
    SYSTEM_WRITE,
    HINT,
    BARRIER,
    UNKNOWN_STATE, /* SVE, SME and the like: no detail */
};

struct form {
    uint32_t value, mask;
    uint32_t opcodes; /* bit n: allocated when bits shift .. shift+4 have the value n */
    uint32_t roles;
    uint32_t traits;
    uint8_t shift;
    uint8_t sizes; /* bit n: allocated when Q:size (bit 30 and two more) is n */
    uint8_t kind;
    uint8_t flow;
    const char *name; /* of its best-known member; for tests and dumps */
};

struct form_group {
    uint32_t value, mask;
    const struct form *forms;
    uint32_t count;
};

#define FORM_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define FORM_GROUP(value, mask, array)                                                 \
    {                                                                                  \
        value, mask, array, FORM_COUNT(array)                                          \
    }
#define FORM_GROUP_END                                                                 \
    {                                                                                  \
        0, 0, NULL, 0                                                                  \
    }

/* The form of a word, or NULL. Some words of a form may still be unallocated: see
 * aarch64_allocated(). */
const struct form *aarch64_form(uint32_t word);

/* Not a reserved encoding within its form. */
bool aarch64_allocated(const struct form *form, uint32_t word);

/* Vector and scalar floating point groups (decode_simd.c), ended by FORM_GROUP_END. */
extern const struct form_group aarch64_simd_groups[];

/* Log2 of the size of one register of a load or store, AT_SCALED to AT_PAIR_POST. */
uint32_t aarch64_access_scale(uint32_t word, bool pair);

/* Registers of a vector structure load or store; 0 when unallocated. */
uint32_t aarch64_list_count(const struct form *form, uint32_t word);

static inline bool form_is_memory(const struct form *form)
{
    return form->kind >= AT_PLAIN && form->kind <= AT_LANE_POST;
}

static inline bool form_is_store(const struct form *form)
{
    const uint32_t stored = D_R | DSP_R | VD_R | A_R | M_W;
    return form_is_memory(form) && form->roles & stored;
}

static inline uint32_t field(uint32_t word, uint32_t low, uint32_t bits)
{
    return (word >> low) & ((1u << bits) - 1u);
}

static inline int32_t field_signed(uint32_t word, uint32_t low, uint32_t bits)
{
    const uint32_t sign = 1u << (bits - 1u);
    return (int32_t)(field(word, low, bits) ^ sign) - (int32_t)sign;
}

#endif
