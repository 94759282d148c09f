/* SPDX-License-Identifier: MIT
 *
 * The instruction forms of the general part of A64: data processing, branches, system,
 * loads and stores. Arm ARM DDI 0487, C4.1: the groups here are its encoding classes.
 *
 * A word is looked up in two steps: bits 25-28 choose a short list of groups, a group
 * that matches is searched for the form. Commoner groups and forms stand first. Words
 * of the scalable extensions (SVE, SME) are recognised, but no detail of them is known.
 */
#include "form.h"

#define ANY 0xffffffffu

/* value, mask, roles, kind, and what else: flow and traits */
#define F(name, value, mask, roles, kind)                                              \
    {                                                                                  \
        value, mask, ANY, roles, 0, 0, 0xff, kind, FLOW_NEXT, name                     \
    }
#define FT(name, value, mask, roles, kind, traits)                                     \
    {                                                                                  \
        value, mask, ANY, roles, traits, 0, 0xff, kind, FLOW_NEXT, name                \
    }
#define FLOW(name, value, mask, roles, kind, flow, traits)                             \
    {                                                                                  \
        value, mask, ANY, roles, traits, 0, 0xff, kind, flow, name                     \
    }

static const struct form immediate_forms[] = {
    F("add", 0x11000000, 0x7f800000, DSP_W | NSP_R, ADD_IMMEDIATE),
    F("sub", 0x51000000, 0x7f800000, DSP_W | NSP_R, ADD_IMMEDIATE),
    F("subs", 0x71000000, 0x7f800000, D_W | NSP_R | FLAGS_W, PLAIN),
    F("adds", 0x31000000, 0x7f800000, D_W | NSP_R | FLAGS_W, PLAIN),
    F("adrp", 0x90000000, 0x9f000000, D_W, PC_PAGE),
    F("movz", 0x52800000, 0x7f800000, D_W, MOVE_WIDE),
    F("movn", 0x12800000, 0x7f800000, D_W, MOVE_WIDE),
    F("movk", 0x72800000, 0x7f800000, D_R | D_W, MOVE_WIDE),
    F("and", 0x12000000, 0x7f800000, DSP_W | N_R, BITMASK_IMMEDIATE),
    F("orr", 0x32000000, 0x7f800000, DSP_W | N_R, BITMASK_IMMEDIATE),
    F("eor", 0x52000000, 0x7f800000, DSP_W | N_R, BITMASK_IMMEDIATE),
    F("ands", 0x72000000, 0x7f800000, D_W | N_R | FLAGS_W, BITMASK_IMMEDIATE),
    F("ubfm", 0x53000000, 0x7f800000, D_W | N_R, BITFIELD),
    F("sbfm", 0x13000000, 0x7f800000, D_W | N_R, BITFIELD),
    F("bfm", 0x33000000, 0x7f800000, D_R | D_W | N_R, BITFIELD),
    F("adr", 0x10000000, 0x9f000000, D_W, PC_ADR),
    F("extr", 0x13800000, 0x7fa00000, D_W | N_R | M_R, EXTRACT),
    F("smax imm", 0x11c00000, 0x7ff00000, D_W | N_R, PLAIN),
    F("addg", 0x91800000, 0xffc0c000, DSP_W | NSP_R, PLAIN),
    F("subg", 0xd1800000, 0xffc0c000, DSP_W | NSP_R, PLAIN),
};

static const struct form branch_forms[] = {
    FLOW("bl", 0x94000000, 0xfc000000, X30_W, PC_26, FLOW_CALL, 0),
    FLOW("b", 0x14000000, 0xfc000000, 0, PC_26, FLOW_JUMP, 0),
    FLOW("b.cond", 0x54000000, 0xff000000, 0, PC_19, FLOW_BRANCH, 0),
    FLOW("cbz", 0x34000000, 0x7e000000, D_R, PC_19, FLOW_BRANCH, 0),
    FLOW("tbz", 0x36000000, 0x7e000000, D_R, PC_14, FLOW_BRANCH, 0),
    FLOW("ret", 0xd65f0000, 0xfffffc1f, N_R, PLAIN, FLOW_RETURN, 0),
    FLOW("blr", 0xd63f0000, 0xfffffc1f, N_R | X30_W, PLAIN, FLOW_CALL_INDIRECT, 0),
    FLOW("br", 0xd61f0000, 0xfffffc1f, N_R, PLAIN, FLOW_JUMP_INDIRECT, 0),
    FLOW("braaz", 0xd61f081f, 0xfffffc1f, N_R, PLAIN, FLOW_JUMP_INDIRECT, 0),
    FLOW("brabz", 0xd61f0c1f, 0xfffffc1f, N_R, PLAIN, FLOW_JUMP_INDIRECT, 0),
    FLOW("braa", 0xd71f0800, 0xfffff800, N_R | DSP_R, PLAIN, FLOW_JUMP_INDIRECT, 0),
    FLOW("blraaz", 0xd63f081f, 0xfffffc1f, N_R | X30_W, PLAIN, FLOW_CALL_INDIRECT, 0),
    FLOW("blrabz", 0xd63f0c1f, 0xfffffc1f, N_R | X30_W, PLAIN, FLOW_CALL_INDIRECT, 0),
    FLOW("blraa", 0xd73f0800, 0xfffff800, N_R | DSP_R | X30_W, PLAIN,
         FLOW_CALL_INDIRECT, 0),
    FLOW("retaa", 0xd65f0bff, 0xfffffbff, 0, CALL_SYSTEM, FLOW_RETURN, INSN_SIGNS),
    FLOW("eret", 0xd69f03e0, 0xffffffff, 0, CALL_SYSTEM, FLOW_RETURN, INSN_PINNED),
    FLOW("eretaa", 0xd69f0bff, 0xfffffbff, 0, CALL_SYSTEM, FLOW_RETURN, INSN_PINNED),
    FLOW("svc", 0xd4000001, 0xffe0001f, 0, CALL_SYSTEM, FLOW_NEXT, INSN_PINNED),
    FLOW("hvc", 0xd4000002, 0xffe0001f, 0, CALL_SYSTEM, FLOW_NEXT, INSN_PINNED),
    FLOW("smc", 0xd4000003, 0xffe0001f, 0, CALL_SYSTEM, FLOW_NEXT, INSN_PINNED),
    /* A debugger, a handler or the host of a semihosted program goes on behind these. */
    FLOW("brk", 0xd4200000, 0xffe0001f, 0, PLAIN, FLOW_NEXT, INSN_PINNED),
    FLOW("hlt", 0xd4400000, 0xffe0001f, 0, CALL_SYSTEM, FLOW_NEXT, INSN_PINNED),
};

static const struct form system_forms[] = {
    F("hint", 0xd503201f, 0xfffff01f, 0, HINT),
    F("barrier", 0xd503301f, 0xfffff01f, 0, BARRIER),
    F("mrs", 0xd5300000, 0xfff00000, D_W, SYSTEM_READ),
    F("msr", 0xd5100000, 0xfff00000, D_R, SYSTEM_WRITE),
    /* The guarded control stack: a call has pushed to it. */
    FT("gcs", 0xd50b7700, 0xffffff00, D_R, PLAIN, INSN_OPAQUE | INSN_PINNED),
    FT("gcsl", 0xd52b7700, 0xffffff00, D_W, PLAIN, INSN_OPAQUE | INSN_PINNED),
    FT("sys", 0xd5080000, 0xfff80000, D_R, PLAIN, INSN_OPAQUE),
    FT("sysl", 0xd5280000, 0xfff80000, D_W, PLAIN, INSN_OPAQUE),
    F("cfinv", 0xd500401f, 0xffffffff, FLAGS_R | FLAGS_W, PLAIN),
    F("xaflag", 0xd500403f, 0xffffffff, FLAGS_R | FLAGS_W, PLAIN),
    F("axflag", 0xd500405f, 0xffffffff, FLAGS_R | FLAGS_W, PLAIN),
    FT("msr imm", 0xd500401f, 0xfff8f01f, 0, UNKNOWN_STATE, INSN_PINNED),
    FT("wfet", 0xd5031000, 0xffffffc0, D_R, PLAIN, INSN_PINNED),
};

static const struct form register_forms[] = {
    F("orr", 0x2a000000, 0x7f000000, D_W | N_R | M_R, SHIFTED),
    F("and", 0x0a000000, 0x7f000000, D_W | N_R | M_R, SHIFTED),
    F("eor", 0x4a000000, 0x7f000000, D_W | N_R | M_R, SHIFTED),
    F("ands", 0x6a000000, 0x7f000000, D_W | N_R | M_R | FLAGS_W, SHIFTED),
    F("add", 0x0b000000, 0x7f200000, D_W | N_R | M_R, SHIFTED_NO_ROR),
    F("sub", 0x4b000000, 0x7f200000, D_W | N_R | M_R, SHIFTED_NO_ROR),
    F("subs", 0x6b000000, 0x7f200000, D_W | N_R | M_R | FLAGS_W, SHIFTED_NO_ROR),
    F("adds", 0x2b000000, 0x7f200000, D_W | N_R | M_R | FLAGS_W, SHIFTED_NO_ROR),
    F("add ext", 0x0b200000, 0x7fe00000, DSP_W | NSP_R | M_R, EXTENDED),
    F("sub ext", 0x4b200000, 0x7fe00000, DSP_W | NSP_R | M_R, EXTENDED),
    F("subs ext", 0x6b200000, 0x7fe00000, D_W | NSP_R | M_R | FLAGS_W, EXTENDED),
    F("adds ext", 0x2b200000, 0x7fe00000, D_W | NSP_R | M_R | FLAGS_W, EXTENDED),
};

static const struct form source_forms[] = {
    F("csel", 0x1a800000, 0x7fe00800, D_W | N_R | M_R | COND_R, PLAIN),
    F("csinv", 0x5a800000, 0x7fe00800, D_W | N_R | M_R | COND_R, PLAIN),
    F("ccmn", 0x3a400000, 0x7fe00c10, N_R | M_R | COND_R | FLAGS_W, PLAIN),
    F("ccmp", 0x7a400000, 0x7fe00c10, N_R | M_R | COND_R | FLAGS_W, PLAIN),
    F("ccmn imm", 0x3a400800, 0x7fe00c10, N_R | COND_R | FLAGS_W, PLAIN),
    F("ccmp imm", 0x7a400800, 0x7fe00c10, N_R | COND_R | FLAGS_W, PLAIN),
    F("madd", 0x1b000000, 0x7fe00000, D_W | N_R | M_R | A_R, PLAIN),
    F("smaddl", 0x9b200000, 0xffe00000, D_W | N_R | M_R | A_R, PLAIN),
    F("umaddl", 0x9ba00000, 0xffe00000, D_W | N_R | M_R | A_R, PLAIN),
    F("smulh", 0x9b407c00, 0xffe0fc00, D_W | N_R | M_R, PLAIN),
    F("umulh", 0x9bc07c00, 0xffe0fc00, D_W | N_R | M_R, PLAIN),
    F("udiv", 0x1ac00800, 0x7fe0f800, D_W | N_R | M_R, PLAIN),
    F("lslv", 0x1ac02000, 0x7fe0f000, D_W | N_R | M_R, PLAIN),
    F("adc", 0x1a000000, 0x7fe0fc00, D_W | N_R | M_R | CARRY_R, PLAIN),
    F("adcs", 0x3a000000, 0x7fe0fc00, D_W | N_R | M_R | CARRY_R | FLAGS_W, PLAIN),
    F("sbc", 0x5a000000, 0x7fe0fc00, D_W | N_R | M_R | CARRY_R, PLAIN),
    F("sbcs", 0x7a000000, 0x7fe0fc00, D_W | N_R | M_R | CARRY_R | FLAGS_W, PLAIN),
    F("rbit", 0x5ac00000, 0x7ffff800, D_W | N_R, PLAIN), /* and rev16 */
    F("rev32", 0x5ac00800, 0x7ffffc00, D_W | N_R, PLAIN),
    F("rev64", 0xdac00c00, 0xfffffc00, D_W | N_R, PLAIN),
    F("clz", 0x5ac01000, 0x7ffff800, D_W | N_R, PLAIN),
    F("ctz", 0x5ac01800, 0x7ffff800, D_W | N_R, PLAIN),
    F("abs", 0x5ac02000, 0x7ffffc00, D_W | N_R, PLAIN),
    F("crc32", 0x1ac04000, 0x7fe0e000, D_W | N_R | M_R, CRC),
    F("smax", 0x1ac06000, 0x7fe0f000, D_W | N_R | M_R, PLAIN),
    FT("pacia", 0xdac10000, 0xffffe000, D_R | D_W | NSP_R, PLAIN, INSN_SIGNS),
    FT("paciza", 0xdac123e0, 0xffffe3e0, D_R | D_W, PLAIN, INSN_SIGNS),
    FT("xpaci", 0xdac143e0, 0xfffffbe0, D_R | D_W, PLAIN, INSN_SIGNS),
    F("pacga", 0x9ac03000, 0xffe0fc00, D_W | N_R | MSP_R, PLAIN),
    F("subp", 0x9ac00000, 0xffe0fc00, D_W | NSP_R | MSP_R, PLAIN),
    F("subps", 0xbac00000, 0xffe0fc00, D_W | NSP_R | MSP_R | FLAGS_W, PLAIN),
    F("irg", 0x9ac01000, 0xffe0fc00, DSP_W | NSP_R | M_R, PLAIN),
    F("gmi", 0x9ac01400, 0xffe0fc00, D_W | NSP_R | M_R, PLAIN),
    F("rmif", 0xba000400, 0xffe07c10, N_R, FLAGS_RMIF),
    F("setf8", 0x3a00080d, 0xffffbc1f, N_R, FLAGS_SETF),
};

/* The five ways to address one register's worth of memory. Pre- and post-indexed forms
 * write the base; base and data the same register is unpredictable and not told apart.
 */
#define MODES(name, roles, size, mask)                                                 \
    F(name " [imm]", 0x39000000u | (size), 0x3fc00000u | (mask), roles | NSP_R,        \
      AT_SCALED),                                                                      \
        F(name " unscaled", 0x38000000u | (size), 0x3fe00c00u | (mask), roles | NSP_R, \
          AT_UNSCALED),                                                                \
        F(name " pre", 0x38000c00u | (size), 0x3fe00c00u | (mask),                     \
          roles | NSP_R | NSP_W, AT_PRE),                                              \
        F(name " post", 0x38000400u | (size), 0x3fe00c00u | (mask),                    \
          roles | NSP_R | NSP_W, AT_POST),                                             \
        F(name " [reg]", 0x38204800u | (size), 0x3fe04c00u | (mask),                   \
          roles | NSP_R | M_R, AT_INDEX)

#define VECTOR 0x04000000u

static const struct form single_forms[] = {
    MODES("ldr", D_W, 0x00400000, 0),
    MODES("str", D_R, 0, 0),
    MODES("ldrs b", D_W, 0x00800000, 0xc0000000),
    MODES("ldrs b w", D_W, 0x00c00000, 0xc0000000),
    MODES("ldrs h", D_W, 0x40800000, 0xc0000000),
    MODES("ldrs h w", D_W, 0x40c00000, 0xc0000000),
    MODES("ldrsw", D_W, 0x80800000, 0xc0000000),
    F("prfm [imm]", 0xf9800000, 0xffc00000, NSP_R, AT_SCALED),
    F("prfum", 0xf8800000, 0xffe00c00, NSP_R, AT_UNSCALED),
    F("prfm [reg]", 0xf8a04800, 0xffe04c00, NSP_R | M_R, AT_INDEX),
    F("sttr", 0x38000800, 0x3fe00c00, D_R | NSP_R, AT_UNSCALED),
    F("ldtr", 0x38400800, 0x3fe00c00, D_W | NSP_R, AT_UNSCALED),
    F("ldtrs", 0x38800800, 0xbfa00c00, D_W | NSP_R, AT_UNSCALED),
    F("ldtrsw", 0xb8800800, 0xffe00c00, D_W | NSP_R, AT_UNSCALED),
    F("ldadd", 0x38200000, 0x3f208c00, M_R | D_W | NSP_R, AT_PLAIN),
    F("swp", 0x38208000, 0x3f20fc00, M_R | D_W | NSP_R, AT_PLAIN),
    F("ldapr", 0x38bfc000, 0x3ffffc00, D_W | NSP_R, AT_PLAIN),
    F("ldraa", 0xf8200400, 0xff200400, D_W | NSP_R, AT_AUTH),
};

static const struct form single_vector_forms[] = {
    MODES("ldr v", VD_W, VECTOR | 0x00400000, VECTOR),
    MODES("ldr q", VD_W, VECTOR | 0x00c00000, VECTOR | 0xc0000000),
    MODES("str v", VD_R, VECTOR, VECTOR),
    MODES("str q", VD_R, VECTOR | 0x00800000, VECTOR | 0xc0000000),
};

#define PAIRS(name, roles, size, mask)                                                 \
    F(name, 0x29000000u | (size), mask, roles | NSP_R, AT_PAIR),                       \
        F(name " post", 0x28800000u | (size), mask, roles | NSP_R | NSP_W,             \
          AT_PAIR_POST),                                                               \
        F(name " pre", 0x29800000u | (size), mask, roles | NSP_R | NSP_W, AT_PAIR_PRE)

static const struct form pair_forms[] = {
    PAIRS("ldp", D_W | A_W, 0x00400000, 0x7fc00000),
    PAIRS("stp", D_R | A_R, 0, 0x7fc00000),
    PAIRS("ldp v", VD_W | VA_W, VECTOR | 0x00400000, 0x3fc00000),
    PAIRS("stp v", VD_R | VA_R, VECTOR, 0x3fc00000),
    PAIRS("ldpsw", D_W | A_W, 0x40400000, 0xffc00000),
    PAIRS("stgp", D_R | A_R, 0x40000000, 0xffc00000),
    F("ldnp", 0x28400000, 0x7fc00000, D_W | A_W | NSP_R, AT_PAIR),
    F("stnp", 0x28000000, 0x7fc00000, D_R | A_R | NSP_R, AT_PAIR),
    F("ldnp v", 0x2c400000, 0x3fc00000, VD_W | VA_W | NSP_R, AT_PAIR),
    F("stnp v", 0x2c000000, 0x3fc00000, VD_R | VA_R | NSP_R, AT_PAIR),
};

static const struct form literal_forms[] = {
    F("ldr lit", 0x18000000, 0xbf000000, D_W, PC_19),
    F("ldrsw lit", 0x98000000, 0xff000000, D_W, PC_19),
    F("prfm lit", 0xd8000000, 0xff000000, 0, PC_19),
    F("ldr v lit", 0x1c000000, 0xbf000000, VD_W, PC_19),
    F("ldr q lit", 0x9c000000, 0xff000000, VD_W, PC_19),
};

static const struct form exclusive_forms[] = {
    F("ldar", 0x08df7c00, 0x3fff7c00, D_W | NSP_R, AT_PLAIN),
    F("stlr", 0x089f7c00, 0x3fff7c00, D_R | NSP_R, AT_PLAIN),
    FT("ldxr", 0x085f7c00, 0x3fff7c00, D_W | NSP_R, AT_PLAIN, INSN_EXCLUSIVE),
    FT("stxr", 0x08007c00, 0x3fe07c00, M_W | D_R | NSP_R, AT_PLAIN, INSN_EXCLUSIVE),
    FT("ldxp", 0x887f0000, 0xbfff0000, D_W | A_W | NSP_R, AT_PLAIN, INSN_EXCLUSIVE),
    FT("stxp", 0x88200000, 0xbfe00000, M_W | D_R | A_R | NSP_R, AT_PLAIN,
       INSN_EXCLUSIVE),
    F("cas", 0x08a07c00, 0x3fa07c00, M_R | M_W | D_R | NSP_R, AT_PLAIN),
    F("casp", 0x08207c00, 0xbfa07c00, M_R | M_W | D_R | PAIRED | NSP_R, AT_PLAIN),
};

/* Release consistency (unscaled), memory tagging, and the memory copy instructions. */
static const struct form ordered_forms[] = {
    F("stlur", 0x19000000, 0x3fe00c00, D_R | NSP_R, AT_UNSCALED),
    F("ldapur", 0x19400000, 0x3fe00c00, D_W | NSP_R, AT_UNSCALED),
    F("ldapurs", 0x19800000, 0xbfa00c00, D_W | NSP_R, AT_UNSCALED),
    F("ldapursw", 0x99800000, 0xffe00c00, D_W | NSP_R, AT_UNSCALED),
    F("stlur v", 0x1d000800, 0x3fe00c00, VD_R | NSP_R, AT_UNSCALED),
    F("ldapur v", 0x1d400800, 0x3fe00c00, VD_W | NSP_R, AT_UNSCALED),
    F("stlur q", 0x1d800800, 0xffe00c00, VD_R | NSP_R, AT_UNSCALED),
    F("ldapur q", 0x1dc00800, 0xffe00c00, VD_W | NSP_R, AT_UNSCALED),
    F("stg", 0xd9200800, 0xff200c00, DSP_R | NSP_R, AT_TAG),
    F("stg pre", 0xd9200c00, 0xff200c00, DSP_R | NSP_R | NSP_W, AT_TAG_PRE),
    F("stg post", 0xd9200400, 0xff200c00, DSP_R | NSP_R | NSP_W, AT_TAG_POST),
    F("ldg", 0xd9600000, 0xffe00c00, D_R | D_W | NSP_R, AT_TAG),
    /* Prologue, main part and epilogue stand side by side (Arm ARM C3.2.15). */
    FT("setp", 0x19c00400, 0xfbe0cc00, D_R | D_W | N_R | N_W | M_R | FLAGS_R | FLAGS_W,
       PLAIN, INSN_GLUED),
    FT("setm", 0x19c04400, 0xfbe0cc00, D_R | D_W | N_R | N_W | M_R | FLAGS_R | FLAGS_W,
       PLAIN, INSN_GLUED),
    F("sete", 0x19c08400, 0xfbe0cc00, D_R | D_W | N_R | N_W | M_R | FLAGS_R | FLAGS_W,
      PLAIN),
    FT("cpyp", 0x19000400, 0xfbe00c00,
       D_R | D_W | N_R | N_W | M_R | M_W | FLAGS_R | FLAGS_W, PLAIN, INSN_GLUED),
    FT("cpym", 0x19400400, 0xfbe00c00,
       D_R | D_W | N_R | N_W | M_R | M_W | FLAGS_R | FLAGS_W, PLAIN, INSN_GLUED),
    F("cpye", 0x19800400, 0xfbe00c00,
      D_R | D_W | N_R | N_W | M_R | M_W | FLAGS_R | FLAGS_W, PLAIN),
};

/* The opcode fields of these say how many registers: aarch64_list_count(). */
static const struct form list_forms[] = {
    F("ld1", 0x0c400000, 0xbfff0000, VD_W | NSP_R, AT_LIST),
    F("st1", 0x0c000000, 0xbfff0000, VD_R | NSP_R, AT_LIST),
    F("ld1 post", 0x0cc00000, 0xbfe00000, VD_W | NSP_R | NSP_W, AT_LIST_POST),
    F("st1 post", 0x0c800000, 0xbfe00000, VD_R | NSP_R | NSP_W, AT_LIST_POST),
    F("ld1r", 0x0d40c000, 0xbfdfd000, VD_W | NSP_R, AT_LANE),
    F("ld1r post", 0x0dc0c000, 0xbfc0d000, VD_W | NSP_R | NSP_W, AT_LANE_POST),
    F("ld1 lane", 0x0d400000, 0xbfdf0000, VD_R | VD_W | NSP_R, AT_LANE),
    F("st1 lane", 0x0d000000, 0xbfdf0000, VD_R | NSP_R, AT_LANE),
    F("ld1 lane post", 0x0dc00000, 0xbfc00000, VD_R | VD_W | NSP_R | NSP_W,
      AT_LANE_POST),
    F("st1 lane post", 0x0d800000, 0xbfc00000, VD_R | NSP_R | NSP_W, AT_LANE_POST),
};

static const struct form udf_forms[] = {
    FLOW("udf", 0x00000000, 0xffff0000, 0, PLAIN, FLOW_STOP, INSN_PINNED),
};

static const struct form scalable_forms[] = {
    /* The instruction that it prefixes follows it (Arm ARM C8, MOVPRFX). */
    FT("movprfx", 0x0420bc00, 0xfffffc00, 0, UNKNOWN_STATE, INSN_GLUED),
    FT("movprfx p", 0x04102000, 0xff3ee000, 0, UNKNOWN_STATE, INSN_GLUED),
    F("sve", 0x04000000, 0x1e000000, 0, UNKNOWN_STATE),
    F("sme", 0x80000000, 0x9e000000, 0, UNKNOWN_STATE),
};

static const struct form_group reserved_groups[] = {
    FORM_GROUP(0x00000000, 0xffff0000, udf_forms),
    FORM_GROUP(0x80000000, 0x9e000000, scalable_forms),
    FORM_GROUP_END,
};
static const struct form_group scalable_groups[] = {
    FORM_GROUP(0x04000000, 0x1e000000, scalable_forms),
    FORM_GROUP_END,
};
static const struct form_group immediate_groups[] = {
    FORM_GROUP(0x10000000, 0x1c000000, immediate_forms),
    FORM_GROUP_END,
};
static const struct form_group branch_groups[] = {
    FORM_GROUP(0xd5000000, 0xff000000, system_forms),
    FORM_GROUP(0x14000000, 0x1c000000, branch_forms),
    FORM_GROUP_END,
};
static const struct form_group memory_groups[] = {
    FORM_GROUP(0x38000000, 0x3e000000, single_forms),
    FORM_GROUP(0x28000000, 0x3a000000, pair_forms),
    FORM_GROUP(0x3c000000, 0x3e000000, single_vector_forms),
    FORM_GROUP(0x08000000, 0x3f000000, exclusive_forms),
    FORM_GROUP(0x18000000, 0x3b000000, literal_forms),
    FORM_GROUP(0x0c000000, 0xbe000000, list_forms),
    FORM_GROUP(0x19000000, 0x3b000000, ordered_forms),
    FORM_GROUP_END,
};
static const struct form_group register_groups[] = {
    FORM_GROUP(0x0a000000, 0x1e000000, register_forms),
    FORM_GROUP(0x1a000000, 0x1e000000, source_forms),
    FORM_GROUP_END,
};
static const struct form_group no_groups[] = {FORM_GROUP_END};

/* By bits 25-28: Arm ARM C4.1, table "Main encoding table". */
static const struct form_group *const classes[16] = {
    reserved_groups,  no_groups,        scalable_groups, no_groups,
    memory_groups,    register_groups,  memory_groups,   aarch64_simd_groups,
    immediate_groups, immediate_groups, branch_groups,   branch_groups,
    memory_groups,    register_groups,  memory_groups,   aarch64_simd_groups,
};

static uint32_t size_of(const struct form *form, uint32_t word)
{
    if (form->roles & SIZE_LOW)
        return field(word, 10, 2);
    if (!(form->roles & SIZE_IMMH))
        return field(word, 22, 2);
    uint32_t size = 0;
    for (uint32_t immh = field(word, 19, 4); immh > 1; immh >>= 1)
        size++;
    return size;
}

const struct form *aarch64_form(uint32_t word)
{
    const struct form_group *group = classes[field(word, 25, 4)];
    for (; group->forms; group++) {
        if ((word & group->mask) != group->value)
            continue;
        for (uint32_t i = 0; i < group->count; i++) {
            const struct form *form = &group->forms[i];
            if ((word & form->mask) != form->value)
                continue;
            if (!(form->opcodes >> field(word, form->shift, 5) & 1u))
                continue;
            if (form->roles & SIZE_IMMH && !field(word, 19, 4))
                continue;
            if (form->sizes == 0xff)
                return form;
            const uint32_t q_size = field(word, 30, 1) << 2 | size_of(form, word);
            if (form->sizes >> q_size & 1u)
                return form;
        }
    }
    return NULL;
}
