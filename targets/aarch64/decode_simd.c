/* SPDX-License-Identifier: MIT
 *
 * The instruction forms of scalar floating point, Advanced SIMD and cryptography. Arm
 * ARM DDI 0487, C4.1.95 ("Data processing - scalar floating-point and advanced SIMD");
 * every array is one of its encoding classes, or its vector and scalar halves.
 *
 * A row of a vector class stands for all opcodes with the same operands: `opcodes`
 * lists them by number, `sizes` says for which element sizes (and Q) they are
 * allocated. Element sizes in the order of the bits: 8, 16, 32, 64 bits, first for Q =
 * 0.
 */
#include "form.h"

/* Sizes */
#define NO_1D      0xf7 /* all but one doubleword */
#define BHS        0x77
#define HS         0x66
#define B_ONLY     0x11
#define BH         0x33
#define S_ONLY     0x44
#define HSD        0xe6
#define SD_LOW     0x31 /* size 0x as a float type: 2s, 4s, 2d */
#define SD_HIGH    0xc4 /* size 1x likewise: the top bit is part of the opcode */
#define H_FLOAT_SD 0xd5 /* by element: h, s, and d with Q only */
#define ALL        0xff
/* The same for scalars, whose bit 30 is always set */
#define ONE      0xf0
#define ONE_D    0x80
#define ONE_HS   0x60
#define ONE_BHS  0x70
#define ONE_LOW  0x30
#define ONE_HIGH 0xc0
#define ONE_HSD  0xe0

/* Sets of opcodes. Four-bit fields use the bit above for something else: say it twice.
 */
#define BIT(n)   (1u << (n))
#define OP4(set) ((set) | (uint32_t)(set) << 16)
#define EVERY    0xffffffffu

#define UNARY  (VD_W | VN_R)
#define BINARY (VD_W | VN_R | VM_R)
#define KEEP   VD_R

#define V(name, value, mask, shift, opcodes, sizes, roles)                             \
    {                                                                                  \
        value, mask, opcodes, roles, 0, shift, sizes, PLAIN, FLOW_NEXT, name           \
    }
#define K(name, value, mask, roles, kind)                                              \
    {                                                                                  \
        value, mask, EVERY, roles, 0, 0, ALL, kind, FLOW_NEXT, name                    \
    }

static const struct form float_forms[] = {
    K("fmul", 0x1e200800, 0xff20cc00, BINARY, FLOAT),
    K("fmax", 0x1e204800, 0xff20cc00, BINARY, FLOAT),
    K("fnmul", 0x1e208800, 0xff20fc00, BINARY, FLOAT),
    K("fmov imm", 0x1e201000, 0xff201fe0, VD_W, FLOAT),
    K("fcsel", 0x1e200c00, 0xff200c00, BINARY | COND_R, FLOAT),
    K("fcmp", 0x1e202000, 0xff20fc0f, VN_R | VM_R | FLAGS_W, FLOAT),
    K("fcmp zero", 0x1e202008, 0xff3ffc0f, VN_R | FLAGS_W, FLOAT),
    K("fccmp", 0x1e200400, 0xff200c00, VN_R | VM_R | COND_R | FLAGS_W, FLOAT),
    K("fmov", 0x1e204000, 0xff3e7c00, UNARY, FLOAT), /* fabs, fneg, fsqrt */
    K("fcvt", 0x1e224000, 0xff3e7c00, UNARY, FLOAT_CONVERT),
    V("frint", 0x1e204000, 0xff307c00, 15, 0x0000df00, 0x0b, UNARY),
    V("frint32", 0x1e204000, 0xff307c00, 15, 0x000f0000, 0x03, UNARY),
    K("bfcvt", 0x1e634000, 0xfffffc00, UNARY, PLAIN),
    K("scvtf", 0x1e220000, 0x7f3efc00, VD_W | N_R, FLOAT),
    K("fcvtzs", 0x1e200000, 0x7f26fc00, D_W | VN_R, FLOAT),
    K("fcvtas", 0x1e240000, 0x7f3efc00, D_W | VN_R, FLOAT),
    K("fmov to gpr", 0x1e260000, 0x7f3ffc00, D_W | VN_R, FLOAT_MOVE),
    K("fmov to v", 0x1e270000, 0x7f3ffc00, VD_W | N_R, FLOAT_MOVE),
    K("fmov to top", 0x9eaf0000, 0xfffffc00, VD_W | KEEP | N_R, PLAIN),
    K("fmov from top", 0x9eae0000, 0xfffffc00, D_W | VN_R, PLAIN),
    K("fjcvtzs", 0x1e7e0000, 0xfffffc00, D_W | VN_R | FLAGS_W, PLAIN),
    K("scvtf fixed", 0x1e020000, 0x7f3e0000, VD_W | N_R, FLOAT_FIXED),
    K("fcvtzs fixed", 0x1e180000, 0x7f3e0000, D_W | VN_R, FLOAT_FIXED),
};

static const struct form float3_forms[] = {
    K("fmadd", 0x1f000000, 0xff000000, BINARY | VA_R, FLOAT),
};

/* 0 Q U 01110 size 1 Rm opcode:5 1 Rn Rd */
static const struct form same_forms[] = {
    V("add v", 0x0e200400, 0xbf200400, 11, BIT(16) | BIT(17) | BIT(23) | 0x0fe2, NO_1D,
      BINARY),
    V("and v", 0x0e200400, 0xbf200400, 11, BIT(3), ALL, BINARY),
    V("eor v", 0x2e201c00, 0xbfe0fc00, 0, EVERY, ALL, BINARY),
    V("bsl v", 0x2e200400, 0xbf200400, 11, BIT(3), ALL, BINARY | KEEP),
    V("sub v", 0x2e200400, 0xbf200400, 11, BIT(16) | BIT(17) | 0x0fe2, NO_1D, BINARY),
    V("smax v", 0x0e200400, 0xbf200400, 11,
      BIT(0) | BIT(2) | BIT(4) | BIT(12) | BIT(13) | BIT(14) | BIT(19) | BIT(20) |
          BIT(21),
      BHS, BINARY),
    V("umax v", 0x2e200400, 0xbf200400, 11,
      BIT(0) | BIT(2) | BIT(4) | BIT(12) | BIT(13) | BIT(14) | BIT(20) | BIT(21), BHS,
      BINARY),
    V("mla v", 0x0e200400, 0x9f200400, 11, BIT(15) | BIT(18), BHS, BINARY | KEEP),
    V("pmul v", 0x2e200400, 0xbf200400, 11, BIT(19), B_ONLY, BINARY),
    V("sqdmulh v", 0x0e200400, 0x9f200400, 11, BIT(22), HS, BINARY),
    V("fadd v", 0x0e200400, 0xbf200400, 11,
      BIT(24) | BIT(26) | BIT(27) | BIT(28) | BIT(30) | BIT(31), SD_LOW, BINARY),
    V("fsub v", 0x0e200400, 0xbf200400, 11, BIT(24) | BIT(26) | BIT(30) | BIT(31),
      SD_HIGH, BINARY),
    V("fmla v", 0x0e200400, 0xbf200400, 11, BIT(25), SD_LOW | SD_HIGH, BINARY | KEEP),
    V("fmul v", 0x2e200400, 0xbf200400, 11,
      BIT(24) | BIT(26) | BIT(27) | BIT(28) | BIT(29) | BIT(30) | BIT(31), SD_LOW,
      BINARY),
    V("fabd v", 0x2e200400, 0xbf200400, 11,
      BIT(24) | BIT(26) | BIT(28) | BIT(29) | BIT(30), SD_HIGH, BINARY),
    V("fmlal v", 0x0e200400, 0xbf200400, 11, BIT(29), 0x55, BINARY | KEEP),
    V("fmlal2 v", 0x2e200400, 0xbf200400, 11, BIT(25), 0x55, BINARY | KEEP),
};

static const struct form same_scalar_forms[] = {
    V("sqadd d", 0x5e200400, 0xdf200400, 11, BIT(1) | BIT(5) | BIT(9) | BIT(11), ONE,
      BINARY),
    V("add d", 0x5e200400, 0xdf200400, 11,
      BIT(6) | BIT(7) | BIT(8) | BIT(10) | BIT(16) | BIT(17), ONE_D, BINARY),
    V("sqdmulh s", 0x5e200400, 0xdf200400, 11, BIT(22), ONE_HS, BINARY),
    V("fmulx s", 0x5e200400, 0xff200400, 11, BIT(27) | BIT(28) | BIT(31), ONE_LOW,
      BINARY),
    V("frsqrts s", 0x5e200400, 0xff200400, 11, BIT(31), ONE_HIGH, BINARY),
    V("fcmge s", 0x7e200400, 0xff200400, 11, BIT(28) | BIT(29), ONE_LOW, BINARY),
    V("fabd s", 0x7e200400, 0xff200400, 11, BIT(26) | BIT(28) | BIT(29), ONE_HIGH,
      BINARY),
};

/* 0 Q U 01110 a 10 Rm 00 opcode:3 1 Rn Rd; bit 14 of the opcode is always zero */
static const struct form same16_forms[] = {
    V("fadd h", 0x0e400400, 0xbfe0c400, 11, 0xdd, ALL, BINARY),
    V("fsub h", 0x0ec00400, 0xbfe0c400, 11, 0xc5, ALL, BINARY),
    V("fmla h", 0x0e400400, 0xbf60c400, 11, BIT(1), ALL, BINARY | KEEP),
    V("fmul h", 0x2e400400, 0xbfe0c400, 11, 0xfd, ALL, BINARY),
    V("fabd h", 0x2ec00400, 0xbfe0c400, 11, 0x75, ALL, BINARY),
};

static const struct form same16_scalar_forms[] = {
    V("fmulx h", 0x5e400400, 0xffe0c400, 11, 0x98, ALL, BINARY),
    V("frsqrts h", 0x5ec00400, 0xffe0c400, 11, 0x80, ALL, BINARY),
    V("fcmge h", 0x7e400400, 0xffe0c400, 11, 0x30, ALL, BINARY),
    V("fabd h s", 0x7ec00400, 0xffe0c400, 11, 0x34, ALL, BINARY),
};

/* 0 Q U 01110 size 0 Rm 1 opcode:4 1 Rn Rd; the opcode's fifth bit is the fixed 1 */
static const struct form extra_forms[] = {
    V("sdot", 0x0e008400, 0xbf208400, 11, BIT(18) | BIT(19), S_ONLY, BINARY | KEEP),
    V("udot", 0x2e008400, 0xbf208400, 11, BIT(18), S_ONLY, BINARY | KEEP),
    V("sqrdmlah", 0x2e008400, 0xbf208400, 11, BIT(16) | BIT(17), HS, BINARY | KEEP),
    V("fcmla", 0x2e008400, 0xbf208400, 11, 0x0f000000, HSD, BINARY | KEEP),
    V("fcadd", 0x2e008400, 0xbf208400, 11, BIT(28) | BIT(30), HSD, BINARY),
    V("bfdot", 0x2e40fc00, 0xbfe0fc00, 0, EVERY, ALL, BINARY | KEEP),
    V("bfmlal", 0x2ec0fc00, 0xbfe0fc00, 0, EVERY, ALL, BINARY | KEEP),
    V("bfmmla", 0x6e40ec00, 0xffe0fc00, 0, EVERY, ALL, BINARY | KEEP),
    V("smmla", 0x4e80a400, 0xdfe0fc00, 0, EVERY, ALL, BINARY | KEEP),
    V("usmmla", 0x4e80ac00, 0xffe0fc00, 0, EVERY, ALL, BINARY | KEEP),
};

static const struct form extra_scalar_forms[] = {
    V("sqrdmlah s", 0x7e008400, 0xff208400, 11, BIT(16) | BIT(17), ONE_HS,
      BINARY | KEEP),
};

/* 0 Q U 01110 size 10000 opcode:5 10 Rn Rd */
static const struct form misc_forms[] = {
    V("rev64", 0x0e200800, 0xbf3e0c00, 12, BIT(0) | BIT(2) | BIT(4), BHS, UNARY),
    V("rev16", 0x0e200800, 0xbf3e0c00, 12, BIT(1) | BIT(5), B_ONLY, UNARY),
    V("suqadd", 0x0e200800, 0x9f3e0c00, 12, BIT(3), NO_1D, UNARY | KEEP),
    V("sadalp", 0x0e200800, 0x9f3e0c00, 12, BIT(6), BHS, UNARY | KEEP),
    V("abs v", 0x0e200800, 0xbf3e0c00, 12, BIT(7) | BIT(8) | BIT(9) | BIT(10) | BIT(11),
      NO_1D, UNARY),
    V("xtn", 0x0e200800, 0x9f3e0c00, 12, BIT(18) | BIT(20), BHS, UNARY | VD_R_IF_Q),
    V("fcvtn", 0x0e200800, 0xbf3e0c00, 12, BIT(22), BH, UNARY | VD_R_IF_Q),
    V("bfcvtn", 0x0e200800, 0xbf3e0c00, 12, BIT(22), S_ONLY, UNARY | VD_R_IF_Q),
    V("fcvtl", 0x0e200800, 0xbf3e0c00, 12, BIT(23), BH, UNARY),
    V("scvtf v", 0x0e200800, 0x9f3e0c00, 12, 0xff000000, SD_LOW, UNARY),
    V("fabs v", 0x0e200800, 0xbf3e0c00, 12, 0x2f00f000, SD_HIGH, UNARY),
    V("urecpe", 0x0e200800, 0x9f3e0c00, 12, BIT(28), S_ONLY, UNARY),
    V("rev32 v", 0x2e200800, 0xbf3e0c00, 12, BIT(0) | BIT(5), BH, UNARY),
    V("clz v", 0x2e200800, 0xbf3e0c00, 12, BIT(2) | BIT(4) | BIT(19), BHS, UNARY),
    V("neg v", 0x2e200800, 0xbf3e0c00, 12, BIT(7) | BIT(8) | BIT(9) | BIT(11), NO_1D,
      UNARY),
    V("fcvtxn", 0x2e200800, 0xbf3e0c00, 12, BIT(22), 0x22, UNARY | VD_R_IF_Q),
    V("fneg v", 0x2e200800, 0xbf3e0c00, 12, 0xae00b000, SD_HIGH, UNARY),
};

static const struct form misc_scalar_forms[] = {
    V("suqadd s", 0x5e200800, 0xdf3e0c00, 12, BIT(3), ONE, UNARY | KEEP),
    V("sqabs s", 0x5e200800, 0xdf3e0c00, 12, BIT(7), ONE, UNARY),
    V("abs d", 0x5e200800, 0xff3e0c00, 12, BIT(8) | BIT(9) | BIT(10) | BIT(11), ONE_D,
      UNARY),
    V("sqxtn s", 0x5e200800, 0xdf3e0c00, 12, BIT(20), ONE_BHS, UNARY),
    V("scvtf s", 0x5e200800, 0xdf3e0c00, 12, 0x3c000000, ONE_LOW, UNARY),
    V("frecpe s", 0x5e200800, 0xff3e0c00, 12, 0xac007000, ONE_HIGH, UNARY),
    V("neg d", 0x7e200800, 0xff3e0c00, 12, BIT(8) | BIT(9) | BIT(11), ONE_D, UNARY),
    V("sqxtun s", 0x7e200800, 0xff3e0c00, 12, BIT(18), ONE_BHS, UNARY),
    V("fcvtxn s", 0x7e200800, 0xff3e0c00, 12, BIT(22), 0x20, UNARY),
    V("frsqrte s", 0x7e200800, 0xff3e0c00, 12, 0x2c003000, ONE_HIGH, UNARY),
};

/* 0 Q U 01110 a 111100 opcode:5 10 Rn Rd */
static const struct form misc16_forms[] = {
    V("scvtf h", 0x0e780800, 0x9ffe0c00, 12, 0x3f000000, ALL, UNARY),
    V("fabs h", 0x0ef80800, 0xbffe0c00, 12, 0x2f00f000, ALL, UNARY),
    V("fneg h", 0x2ef80800, 0xbffe0c00, 12, 0xae00b000, ALL, UNARY),
};

static const struct form misc16_scalar_forms[] = {
    V("scvtf h s", 0x5e780800, 0xdffe0c00, 12, 0x3c000000, ALL, UNARY),
    V("frecpe h s", 0x5ef80800, 0xfffe0c00, 12, 0xac007000, ALL, UNARY),
    V("frsqrte h s", 0x7ef80800, 0xfffe0c00, 12, 0x2c003000, ALL, UNARY),
};

/* 0 Q U 01110 size 11000 opcode:5 10 Rn Rd; scalar: pairwise */
static const struct form across_forms[] = {
    V("addv", 0x0e300800, 0xbf3e0c00, 12, BIT(3) | BIT(10) | BIT(26) | BIT(27), 0x73,
      UNARY),
    V("uaddlv", 0x2e300800, 0xbf3e0c00, 12, BIT(3) | BIT(10) | BIT(26), 0x73, UNARY),
    V("fmaxv", 0x2e300800, 0xbf3e0c00, 12, BIT(12) | BIT(15), 0x50, UNARY),
    V("fmaxv h", 0x0e300800, 0xbf3e0c00, 12, BIT(12) | BIT(15), 0x55, UNARY),
};

static const struct form pairwise_forms[] = {
    V("addp d", 0x5e300800, 0xff3e0c00, 12, BIT(27), ONE_D, UNARY),
    V("faddp s", 0x7e300800, 0xff3e0c00, 12, BIT(12) | BIT(13) | BIT(15), ONE_LOW,
      UNARY),
    V("fminp s", 0x7e300800, 0xff3e0c00, 12, BIT(12) | BIT(15), ONE_HIGH, UNARY),
    V("faddp h", 0x5e300800, 0xff3e0c00, 12, BIT(12) | BIT(13) | BIT(15), 0x10, UNARY),
    V("fminp h", 0x5e300800, 0xff3e0c00, 12, BIT(12) | BIT(15), 0x40, UNARY),
};

/* 0 Q U 01110 size 1 Rm opcode:4 00 Rn Rd */
static const struct form different_forms[] = {
    V("saddl", 0x0e200000, 0x9f200c00, 12, OP4(0x108f), BHS, BINARY),
    V("addhn", 0x0e200000, 0x9f200c00, 12, OP4(0x0050), BHS, BINARY | VD_R_IF_Q),
    V("smlal", 0x0e200000, 0x9f200c00, 12, OP4(0x0520), BHS, BINARY | KEEP),
    V("sqdmlal", 0x0e200000, 0xbf200c00, 12, OP4(0x0a00), HS, BINARY | KEEP),
    V("sqdmull", 0x0e200000, 0xbf200c00, 12, OP4(0x2000), HS, BINARY),
    V("pmull", 0x0e200000, 0xbf200c00, 12, OP4(0x4000), 0x99, BINARY),
};

static const struct form different_scalar_forms[] = {
    V("sqdmlal s", 0x5e200000, 0xff200c00, 12, OP4(0x0a00), ONE_HS, BINARY | KEEP),
    V("sqdmull s", 0x5e200000, 0xff200c00, 12, OP4(0x2000), ONE_HS, BINARY),
};

/* 0 Q op 01110000 imm5 0 imm4 1 Rn Rd */
static const struct form copy_forms[] = {
    K("dup lane", 0x0e000400, 0xbfe0fc00, UNARY, LANE_DUP),
    K("dup", 0x0e000c00, 0xbfe0fc00, VD_W | N_R, LANE_DUP),
    K("smov", 0x0e002c00, 0xbfe0fc00, D_W | VN_R, LANE_SMOV),
    K("umov", 0x0e003c00, 0xbfe0fc00, D_W | VN_R, LANE_UMOV),
    K("ins", 0x4e001c00, 0xffe0fc00, VD_W | KEEP | N_R, LANE_ANY),
    K("ins lane", 0x6e000400, 0xffe08400, UNARY | KEEP, LANE_ANY),
    K("dup scalar", 0x5e000400, 0xffe0fc00, UNARY, LANE_ANY),
};

/* 0 Q op 0111100000 abc cmode:4 o2 1 defgh Rd */
static const struct form constant_forms[] = {
    V("movi", 0x0f000400, 0xbff80c00, 12, OP4(0xf555), ALL, VD_W),
    V("orr imm v", 0x0f000400, 0x9ff80c00, 12, OP4(0x0aaa), ALL, VD_W | KEEP),
    V("mvni", 0x2f000400, 0xbff80c00, 12, OP4(0x7555), ALL, VD_W),
    V("fmov 2d", 0x6f00f400, 0xfff8fc00, 0, EVERY, ALL, VD_W),
    V("fmov 8h", 0x0f00fc00, 0xbff8fc00, 0, EVERY, ALL, VD_W),
};

/* 0 Q U 011110 immh immb opcode:5 1 Rn Rd, immh not zero */
#define S (SIZE_IMMH)
static const struct form shift_forms[] = {
    V("sshr", 0x0f000400, 0x9f800400, 11, BIT(0) | BIT(4) | BIT(14), NO_1D, UNARY | S),
    V("shl", 0x0f000400, 0xbf800400, 11, BIT(10), NO_1D, UNARY | S),
    V("sqshlu", 0x2f000400, 0xbf800400, 11, BIT(12), NO_1D, UNARY | S),
    V("ssra", 0x0f000400, 0x9f800400, 11, BIT(2) | BIT(6), NO_1D, UNARY | KEEP | S),
    V("sri", 0x2f000400, 0xbf800400, 11, BIT(8) | BIT(10), NO_1D, UNARY | KEEP | S),
    V("shrn", 0x0f000400, 0x9f800400, 11, BIT(16) | BIT(17) | BIT(18) | BIT(19), BHS,
      UNARY | VD_R_IF_Q | S),
    V("sshll", 0x0f000400, 0x9f800400, 11, BIT(20), BHS, UNARY | S),
    V("scvtf v imm", 0x0f000400, 0x9f800400, 11, BIT(28) | BIT(31), HSD, UNARY | S),
};

static const struct form shift_scalar_forms[] = {
    V("sshr d", 0x5f000400, 0xdf800400, 11, BIT(0) | BIT(4), ONE_D, UNARY | S),
    V("shl d", 0x5f000400, 0xff800400, 11, BIT(10), ONE_D, UNARY | S),
    V("ssra d", 0x5f000400, 0xdf800400, 11, BIT(2) | BIT(6), ONE_D, UNARY | KEEP | S),
    V("sri d", 0x7f000400, 0xff800400, 11, BIT(8) | BIT(10), ONE_D, UNARY | KEEP | S),
    V("sqshl s", 0x5f000400, 0xdf800400, 11, BIT(14), ONE, UNARY | S),
    V("sqshlu s", 0x7f000400, 0xff800400, 11, BIT(12), ONE, UNARY | S),
    V("sqshrn s", 0x5f000400, 0xdf800400, 11, BIT(18) | BIT(19), ONE_BHS, UNARY | S),
    V("sqshrun s", 0x7f000400, 0xff800400, 11, BIT(16) | BIT(17), ONE_BHS, UNARY | S),
    V("scvtf s imm", 0x5f000400, 0xdf800400, 11, BIT(28) | BIT(31), ONE_HSD, UNARY | S),
};
#undef S

/* 0 Q U 01111 size L M Rm:4 opcode:4 H 0 Rn Rd. Halfwords are indexed by H, L and M, so
 * that Rm has four bits only; the dot products index words. */
#define H_ELEMENT (VD_W | VN_R | VM4_R)
#define E(name, value, mask, opcodes, sizes, roles)                                    \
    V(name, value, (mask) | 0x400u, 12, OP4(opcodes), sizes, roles)
static const struct form element_forms[] = {
    E("mul e h", 0x0f000000, 0xbf000000, 0x3d00, 0x22, H_ELEMENT),
    E("mul e s", 0x0f000000, 0xbf000000, 0x3d00, S_ONLY, BINARY),
    E("smlal e h", 0x0f000000, 0xbf000000, 0x00cc, 0x22, H_ELEMENT | KEEP),
    E("smlal e s", 0x0f000000, 0xbf000000, 0x00cc, S_ONLY, BINARY | KEEP),
    E("fmul e h", 0x0f000000, 0x9f000000, 0x0200, B_ONLY, H_ELEMENT),
    E("fmla e h", 0x0f000000, 0xbf000000, 0x0022, B_ONLY, H_ELEMENT | KEEP),
    E("fmul e s", 0x0f000000, 0x9f000000, 0x0200, S_ONLY, BINARY),
    E("fmla e s", 0x0f000000, 0xbf000000, 0x0022, S_ONLY, BINARY | KEEP),
    {0x4fc09000, 0xdfe0f400, EVERY, BINARY,        0, 0, ALL,  PLAIN,           FLOW_NEXT, "fmul e d"},
    {0x4fc01000, 0xffe0b400, EVERY, BINARY | KEEP, 0, 0, ALL,  PLAIN,           FLOW_NEXT,
                                                                         "fmla e d"                                                                                      },
    E("sdot e", 0x0f000000, 0x9f000000, 0x4000, S_ONLY, BINARY | KEEP),
    E("usdot e", 0x0f000000, 0xbf000000, 0x8000, 0x77, BINARY | KEEP),
    E("bfmlal e", 0x0f000000, 0xbf000000, 0x8000, 0x88, H_ELEMENT | KEEP),
    E("fmlal e", 0x0f000000, 0xbf000000, 0x0011, S_ONLY, H_ELEMENT | KEEP),
    E("fmlal2 e", 0x2f000000, 0xbf000000, 0x1100, S_ONLY, H_ELEMENT | KEEP),
    E("umull e h", 0x2f000000, 0xbf000000, 0x0400, 0x22, H_ELEMENT),
    E("umull e s", 0x2f000000, 0xbf000000, 0x0400, S_ONLY, BINARY),
    E("mla e h", 0x2f000000, 0xbf000000, 0xa055, 0x22, H_ELEMENT | KEEP),
    E("mla e s", 0x2f000000, 0xbf000000, 0xa055, S_ONLY, BINARY | KEEP),
    {0x2f001000, 0xbf009400, EVERY, BINARY | KEEP, 0, 0, 0x62, ELEMENT_COMPLEX,
                                                                         FLOW_NEXT,                                                                            "fcmla e" },
};

static const struct form element_scalar_forms[] = {
    E("sqdmulh e h", 0x5f000000, 0xff000000, 0x3800, 0x20, H_ELEMENT),
    E("sqdmulh e s", 0x5f000000, 0xff000000, 0x3800, 0x40, BINARY),
    E("sqdmlal e h", 0x5f000000, 0xff000000, 0x0088, 0x20, H_ELEMENT | KEEP),
    E("sqdmlal e s", 0x5f000000, 0xff000000, 0x0088, 0x40, BINARY | KEEP),
    E("sqrdmlah e h", 0x7f000000, 0xff000000, 0xa000, 0x20, H_ELEMENT | KEEP),
    E("sqrdmlah e s", 0x7f000000, 0xff000000, 0xa000, 0x40, BINARY | KEEP),
    E("fmul e h1", 0x5f000000, 0xdf000000, 0x0200, 0x10, H_ELEMENT),
    E("fmul e s1", 0x5f000000, 0xdf000000, 0x0200, 0x40, BINARY),
    E("fmla e h1", 0x5f000000, 0xff000000, 0x0022, 0x10, H_ELEMENT | KEEP),
    E("fmla e s1", 0x5f000000, 0xff000000, 0x0022, 0x40, BINARY | KEEP),
    {0x5fc09000, 0xdfe0f400, EVERY, BINARY,        0, 0, ALL, PLAIN, FLOW_NEXT, "fmul e d1"},
    {0x5fc01000, 0xffe0b400, EVERY, BINARY | KEEP, 0, 0, ALL, PLAIN, FLOW_NEXT,
                                                                        "fmla e d1"                                                                           },
};

static const struct form permute_forms[] = {
    V("zip", 0x0e000800, 0xbf208c00, 12, OP4(0xeeee), NO_1D, BINARY),
    K("ext", 0x2e000000, 0xbfe08400, BINARY, VECTOR_EXT),
    K("tbl", 0x0e000000, 0xbfe09c00, BINARY, VECTOR_TABLE),
    K("tbx", 0x0e001000, 0xbfe09c00, BINARY | KEEP, VECTOR_TABLE),
};

static const struct form crypto_forms[] = {
    K("aese", 0x4e284800, 0xffffec00, UNARY | KEEP, PLAIN),
    K("aesmc", 0x4e286800, 0xffffec00, UNARY, PLAIN),
    V("sha256h", 0x5e000000, 0xffe08c00, 12, OP4(0x7f7f), ALL, BINARY | KEEP),
    K("sha1h", 0x5e280800, 0xfffffc00, UNARY, PLAIN),
    K("sha1su1", 0x5e281800, 0xfffffc00, UNARY | KEEP, PLAIN),
    K("sha256su0", 0x5e282800, 0xfffffc00, UNARY | KEEP, PLAIN),
};

static const struct form crypto2_forms[] = {
    V("sha512h", 0xce608000, 0xffe0f000, 10, 0x77777777, ALL, BINARY | KEEP),
    K("rax1", 0xce608c00, 0xffe0fc00, BINARY, PLAIN),
    K("sm3partw", 0xce60c000, 0xffe0f800, BINARY | KEEP, PLAIN),
    K("sm4ekey", 0xce60c800, 0xffe0fc00, BINARY, PLAIN),
    K("sha512su0", 0xcec08000, 0xfffff800, UNARY | KEEP, PLAIN),
    K("eor3", 0xce000000, 0xffc08000, BINARY | VA_R, PLAIN),
    K("sm3ss1", 0xce400000, 0xffe08000, BINARY | VA_R, PLAIN),
    K("sm3tt", 0xce408000, 0xffe0c000, BINARY | KEEP, PLAIN),
    K("xar", 0xce800000, 0xffe00000, BINARY, PLAIN),
};

const struct form_group aarch64_simd_groups[] = {
    FORM_GROUP(0x1e000000, 0x7f000000, float_forms),
    FORM_GROUP(0x1f000000, 0xff000000, float3_forms),
    FORM_GROUP(0x0f000400, 0x9ff80400, constant_forms),
    FORM_GROUP(0x0e000400, 0x9fe08400, copy_forms),
    FORM_GROUP(0x0e200400, 0x9f200400, same_forms),
    FORM_GROUP(0x0e200800, 0x9f3e0c00, misc_forms),
    FORM_GROUP(0x0f000400, 0x9f800400, shift_forms),
    FORM_GROUP(0x0e200000, 0x9f200c00, different_forms),
    FORM_GROUP(0x0f000000, 0x9f000400, element_forms),
    FORM_GROUP(0x0e000000, 0x9f208400, permute_forms),
    FORM_GROUP(0x0e300800, 0x9f3e0c00, across_forms),
    FORM_GROUP(0x0e008400, 0x9f208400, extra_forms),
    FORM_GROUP(0x0e400400, 0x9f60c400, same16_forms),
    FORM_GROUP(0x0e780800, 0x9f7e0c00, misc16_forms),
    FORM_GROUP(0x5e200400, 0xdf200400, same_scalar_forms),
    FORM_GROUP(0x5e200800, 0xdf3e0c00, misc_scalar_forms),
    FORM_GROUP(0x5e300800, 0xdf3e0c00, pairwise_forms),
    FORM_GROUP(0x5f000400, 0xdf800400, shift_scalar_forms),
    FORM_GROUP(0x5f000000, 0xdf000400, element_scalar_forms),
    FORM_GROUP(0x5e200000, 0xdf200c00, different_scalar_forms),
    FORM_GROUP(0x5e000400, 0xffe0fc00, copy_forms),
    FORM_GROUP(0x5e000000, 0xff200c00, crypto_forms),
    FORM_GROUP(0x4e280800, 0xef3f0c00, crypto_forms),
    FORM_GROUP(0x5e008400, 0xdf208400, extra_scalar_forms),
    FORM_GROUP(0x5e400400, 0xdf60c400, same16_scalar_forms),
    FORM_GROUP(0x5e780800, 0xdf7e0c00, misc16_scalar_forms),
    FORM_GROUP(0xce000000, 0xff000000, crypto2_forms),
    FORM_GROUP_END,
};
