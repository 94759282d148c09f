/* SPDX-License-Identifier: MIT
 *
 * The AArch64 target on instructions chosen by hand. tests/oracle/oracle_aarch64.c asks an
 * emulator about all the others.
 */
#include "mo/bytes.h"
#include "mo/program.h"

#include <check.h>
#include <elf.h>
#include <string.h>

#define TARGET       (&target_aarch64)
#define X(n)         (UINT64_C(1) << (n))
#define V(n)         (UINT64_C(1) << (32 + (n)))
#define SP           X(31)
#define COUNT(array) (int)(sizeof(array) / sizeof((array)[0]))

enum { N = 1, Z = 2, C = 4, VF = 8, NZCV = 15 };

static bool decode(uint32_t word, uint32_t offset, struct insn *out)
{
    uint8_t bytes[4];
    store_le(bytes, 4, word);
    return TARGET->decode(bytes, 4, offset, out);
}

/* --- decode --- */

struct sets {
    const char *text;
    uint32_t word;
    uint64_t uses, defs;
    uint8_t flag_uses, flag_defs;
};

static const struct sets sets[] = {
    {"cmp w0, #2",                  0x7100081f, X(0),                             0,                    0,      NZCV  },
    {"cmp sp, #16",                 0xf10043ff, SP,                               0,                    0,      NZCV  },
    {"mov w8, w0",                  0x2a0003e8, X(0),                             X(8),                 0,      0     },
    {"madd x0, x1, x2, x3",         0x9b020c20, X(1) | X(2) | X(3),               X(0),                 0,      0     },
    {"csel x0, x1, x2, hi",         0x9a828020, X(1) | X(2),                      X(0),                 C | Z,  0     },
    {"ccmp x1, #3, #0, ge",         0xfa43a820, X(1),                             0,                    N | VF, NZCV  },
    {"adcs x0, x1, x2",             0xba020020, X(1) | X(2),                      X(0),                 C,      NZCV  },
    {"bfi w0, w1, #3, #4",          0x331d0c20, X(0) | X(1),                      X(0),                 0,      0     },
    {"movk x0, #1, lsl #16",        0xf2a00020, X(0),                             X(0),                 0,      0     },
    {"rmif x0, #3, #9",             0xba018409, X(0),                             0,                    0,      N | VF},
    {"mrs x1, nzcv",                0xd53b4201, 0,                                X(1),                 NZCV,   0     },
    {"mrs x0, tpidr_el0",           0xd53bd040, 0,                                X(0),                 0,      0     },
    {"ldr x0, [x1], #8",            0xf8408420, X(1),                             X(0) | X(1),          0,      0     },
    {"ldrb w1, [x1, w0, uxtw]",     0x38604821, X(0) | X(1),                      X(1),                 0,      0     },
    {"ldpsw x0, x1, [sp, #8]",      0x694107e0, SP,                               X(0) | X(1),          0,      0     },
    {"stp q0, q1, [sp, #32]",       0xad0107e0, V(0) | V(1) | SP,                 0,                    0,      0     },
    {"str wzr, [sp, #16380]",       0xb93fffff, SP,                               0,                    0,      0     },
    {"ldaxr x0, [x1]",              0xc85ffc20, X(1),                             X(0),                 0,      0     },
    {"stlxr w2, x0, [x1]",          0xc802fc20, X(0) | X(1),                      X(2),                 0,      0     },
    {"casal x0, x1, [x2]",          0xc8e0fc41, X(0) | X(1) | X(2),               X(0),                 0,      0     },
    {"casp x2, x3, x4, x5, [x6]",   0x48227cc4, X(2) | X(3) | X(4) | X(5) | X(6),
     X(2) | X(3),                                                                                       0,      0     },
    {"ldaddal w3, w4, [x5]",        0xb8e300a4, X(3) | X(5),                      X(4),                 0,      0     },
    {"fcmp d0, d1",                 0x1e612000, V(0) | V(1),                      0,                    0,      NZCV  },
    {"fcsel d0, d1, d2, mi",        0x1e624c20, V(1) | V(2),                      V(0),                 N,      0     },
    {"fmla v0.4s, v1.4s, v2.4s",    0x4e22cc20, V(0) | V(1) | V(2),               V(0),                 0,      0     },
    {"fmul v0.8h, v1.8h, v15.h[7]", 0x4f3f9820, V(1) | V(15),                     V(0),                 0,      0     },
    {"mov v3.d[1], x2",             0x4e181c43, V(3) | X(2),                      V(3),                 0,      0     },
    {"xtn2 v0.16b, v1.8h",          0x4e212820, V(0) | V(1),                      V(0),                 0,      0     },
    {"tbl v0.16b, {v30-v0}, v4",    0x4e0443c0, V(30) | V(31) | V(0) | V(4),      V(0),                 0,      0     },
    {"ld1 {v30, v31}, [x1], #32",   0x4cdfa03e, X(1),                             X(1) | V(30) | V(31), 0,      0     },
    {"ld1 {v2.s}[1], [x1], x3",     0x0dc39022, X(1) | X(3) | V(2),               X(1) | V(2),          0,      0     },
    {"bl",                          0x94000002, 0,                                X(30),                0,      0     },
    {"blr x3",                      0xd63f0060, X(3),                             X(30),                0,      0     },
    {"blraa x3, sp",                0xd73f087f, X(3) | SP,                        X(30),                0,      0     },
    {"b.eq",                        0x54000040, 0,                                0,                    Z,      0     },
    {"ret",                         0xd65f03c0, X(30),                            0,                    0,      0     },
    {"paciasp",                     0xd503233f, X(30) | SP,                       X(30),                0,      0     },
    {"xpaclri",                     0xd50320ff, X(30),                            X(30),                0,      0     },
};

START_TEST(test_sets)
{
    const struct sets *want = &sets[_i];
    struct insn insn;
    ck_assert_msg(decode(want->word, 0, &insn), "%s", want->text);
    ck_assert_msg(insn.uses == want->uses, "%s: reads %llx", want->text,
                  (unsigned long long)insn.uses);
    ck_assert_msg(insn.defs == want->defs, "%s: writes %llx", want->text,
                  (unsigned long long)insn.defs);
    ck_assert_msg(insn.flag_uses == want->flag_uses, "%s: reads flags %x", want->text,
                  insn.flag_uses);
    ck_assert_msg(insn.flag_defs == want->flag_defs, "%s: writes flags %x", want->text,
                  insn.flag_defs);
}
END_TEST

struct trait_case {
    const char *text;
    uint32_t word;
    uint8_t flow;
    uint32_t traits;
    int32_t sp_value;
};

static const struct trait_case trait_cases[] = {
    {"sub sp, sp, #64",           0xd10103ff, FLOW_NEXT,          INSN_SP_ADJUST,                             -64},
    {"stp x29, x30, [sp, #-32]!", 0xa9be7bfd, FLOW_NEXT,          INSN_SP_ADJUST,                             -32},
    {"ldp x29, x30, [sp], #32",   0xa8c27bfd, FLOW_NEXT,          INSN_SP_ADJUST,                             32 },
    {"ld1 {v2.4s}, [sp], #16",    0x4cdf7be2, FLOW_NEXT,          INSN_SP_ADJUST,                             16 },
    {"mov x29, sp",               0x910003fd, FLOW_NEXT,          INSN_SP_COPY | INSN_FRAME_SET,              0  },
    {"add x29, sp, #16",          0x910043fd, FLOW_NEXT,          INSN_SP_COPY | INSN_FRAME_SET,              16 },
    {"sub x9, sp, #16",           0xd10043e9, FLOW_NEXT,          INSN_SP_COPY | INSN_BELOW_SP,               -16},
    {"mov sp, x29",               0x910003bf, FLOW_NEXT,          INSN_SP_FROM_FRAME,                         0  },
    {"sub sp, x29, #32",          0xd10083bf, FLOW_NEXT,          INSN_SP_FROM_FRAME,                         -32},
    {"sub sp, sp, x0",            0xcb2063ff, FLOW_NEXT,          INSN_SP_OPAQUE,                             0  },
    {"add x0, sp, x1",            0x8b2163e0, FLOW_NEXT,          INSN_SP_OPAQUE,                             0  },
    {"cmp sp, #16",               0xf10043ff, FLOW_NEXT,          INSN_SP_OPAQUE,                             0  },
    {"ldr x0, [sp, x1]",          0xf8616be0, FLOW_NEXT,          INSN_SP_OPAQUE | INSN_FAULTS,               0  },
    {"str x0, [sp, #8]",          0xf90007e0, FLOW_NEXT,          INSN_SP_MEMORY,                             8  },
    {"ldr q3, [sp, #64]",         0x3dc013e3, FLOW_NEXT,          INSN_SP_MEMORY,                             64 },
    {"ldpsw x0, x1, [sp, #8]",    0x694107e0, FLOW_NEXT,          INSN_SP_MEMORY,                             8  },
    {"stur x0, [sp, #-8]",        0xf81f83e0, FLOW_NEXT,          INSN_SP_MEMORY | INSN_BELOW_SP,             -8 },
    {"ldr x0, [x29, #16]",        0xf9400ba0, FLOW_NEXT,          INSN_FRAME_MEMORY,                          16 },
    {"stur w0, [x29, #-4]",       0xb81fc3a0, FLOW_NEXT,          INSN_FRAME_MEMORY,                          -4 },
    {"ldp x19, x20, [x29, #-16]", 0xa97f53b3, FLOW_NEXT,          INSN_FRAME_MEMORY,                          -16},
    {"paciasp",                   0xd503233f, FLOW_NEXT,          INSN_SIGNS | INSN_SP_OPAQUE,                0  },
    {"xpaclri",                   0xd50320ff, FLOW_NEXT,          INSN_SIGNS,                                 0  },
    {"retaa",                     0xd65f0bff, FLOW_RETURN,        INSN_SIGNS | INSN_SP_OPAQUE,                0  },
    {"bti c",                     0xd503245f, FLOW_NEXT,          INSN_MARKER,                                0  },
    {"nop",                       0xd503201f, FLOW_NEXT,          INSN_NOP,                                   0  },
    {"dmb ish",                   0xd5033bbf, FLOW_NEXT,          0,                                          0  },
    {"svc #0",                    0xd4000001, FLOW_NEXT,          INSN_PINNED | INSN_OPAQUE | INSN_SP_OPAQUE, 0  },
    {"msr daifset, #2",           0xd50342df, FLOW_NEXT,
     INSN_PINNED | INSN_OPAQUE | INSN_SP_OPAQUE | INSN_FAULTS,                                                0  },
    {"mrs x0, tpidr_el0",         0xd53bd040, FLOW_NEXT,          0,                                          0  },
    {"brk #1",                    0xd4200020, FLOW_NEXT,          INSN_PINNED,                                0  },
    {"cpyp [x0]!, [x1]!, x2!",    0x19010440, FLOW_NEXT,          INSN_GLUED,                                 0  },
    {"cpym [x0]!, [x1]!, x2!",    0x19410440, FLOW_NEXT,          INSN_GLUED,                                 0  },
    {"cpye [x0]!, [x1]!, x2!",    0x19810440, FLOW_NEXT,          0,                                          0  },
    {"setp [x0]!, x1!, x2",       0x19c20420, FLOW_NEXT,          INSN_GLUED,                                 0  },
    {"sete [x0]!, x1!, x2",       0x19c28420, FLOW_NEXT,          0,                                          0  },
    {"udf #0",                    0x00000000, FLOW_STOP,          INSN_PINNED,                                0  },
    {"ldaxr x0, [x1]",            0xc85ffc20, FLOW_NEXT,          INSN_EXCLUSIVE | INSN_FAULTS,               0  },
    {"ret",                       0xd65f03c0, FLOW_RETURN,        0,                                          0  },
    {"br x1",                     0xd61f0020, FLOW_JUMP_INDIRECT, 0,                                          0  },
    {"blr x3",                    0xd63f0060, FLOW_CALL_INDIRECT, 0,                                          0  },
    {"bl",                        0x94000002, FLOW_CALL,          INSN_PC_RELATIVE,                           0  },
    {"b",                         0x14000002, FLOW_JUMP,          INSN_PC_RELATIVE,                           0  },
    {"b.eq",                      0x54000040, FLOW_BRANCH,        INSN_PC_RELATIVE,                           0  },
    {"add z0.d, z1.d, z2.d",      0x04e20020, FLOW_NEXT,          INSN_OPAQUE | INSN_FAULTS,                  0  },
    {"addvl sp, sp, #-1",         0x043f57ff, FLOW_NEXT,
     INSN_OPAQUE | INSN_SP_OPAQUE | INSN_FAULTS,                                                              0  },
    {"ldr x0, [x1, #8]",          0xf9400420, FLOW_NEXT,          INSN_FAULTS,                                0  },
    {"str x0, [x29], #8",         0xf80087a0, FLOW_NEXT,          INSN_FAULTS,                                0  },
    {"ldr x0, [x29, x1]",         0xf8616ba0, FLOW_NEXT,          INSN_FAULTS,                                0  },
    {"ld1 {v0.16b}, [x0]",        0x4c407000, FLOW_NEXT,          INSN_FAULTS,                                0  },
    {"ldr x0, =",                 0x58000040, FLOW_NEXT,          INSN_PC_RELATIVE,                           0  },
    {"fadd d0, d1, d2",           0x1e622820, FLOW_NEXT,          INSN_FAULTS,                                0  },
    {"fmov x0, d1",               0x9e660020, FLOW_NEXT,          0,                                          0  },
    {"udiv x0, x1, x2",           0x9ac20820, FLOW_NEXT,          0,                                          0  },
};

START_TEST(test_traits)
{
    const struct trait_case *want = &trait_cases[_i];
    struct insn insn;
    ck_assert_msg(decode(want->word, 0, &insn), "%s", want->text);
    ck_assert_msg(insn.flow == want->flow, "%s: flow %u", want->text, insn.flow);
    ck_assert_msg(insn.traits == want->traits, "%s: traits %x", want->text,
                  insn.traits);
    ck_assert_msg(insn.sp_value == want->sp_value, "%s: %d", want->text, insn.sp_value);
}
END_TEST

/* Reserved encodings, one for each kind of reason. */
static const uint32_t unknown[] = {
    0x12400000, /* and w, bitmask of 64 bits */
    0x9240fc00, /* and x, all ones */
    0x53408000, /* ubfm w with N */
    0x0b008000, /* add w, shifted by 32 */
    0x8bc00000, /* add, ror */
    0x8b201400, /* add, extended and shifted by 5 */
    0x52c00000, /* movz w, lsl #32 */
    0x1ea12800, /* fadd of the fourth type */
    0x0ee08400, /* add v.1d */
    0x0c402c00, /* ld1, four registers of 1d: that exists … */
    0x0c400c00, /* … ld4 of 1d does not */
    0x0f008c00, /* shift by immediate with immh zero and no such constant */
    0xd4000000, /* an exception of no kind */
    0xe8000000, /* pair of no size */
};

START_TEST(test_unknown)
{
    struct insn insn;
    for (int i = 0; i < COUNT(unknown); i++)
        ck_assert_msg(decode(unknown[i], 0, &insn) == (unknown[i] == 0x0c402c00),
                      "%08x", unknown[i]);
    uint8_t bytes[4] = {0x1f, 0x20, 0x03, 0xd5};
    ck_assert(!TARGET->decode(bytes, 3, 0, &insn));
    ck_assert(!TARGET->decode(bytes, 4, 2, &insn));
}
END_TEST

/* --- PC-relative fields --- */

struct reach_case {
    uint32_t word;
    int64_t limit; /* bytes, either way */
    int64_t step;
};

static const struct reach_case reach_cases[] = {
    {0x94000002, 1 << 27, 4},
    {0x14000002, 1 << 27, 4},
    {0x54000040, 1 << 20, 4},
    {0xb4000041, 1 << 20, 4},
    {0x37180041, 1 << 15, 4},
    {0x30000040, 1 << 20, 1},
    {0x58000080, 1 << 20, 4},
    {0xd8000080, 1 << 20, 4},
};

START_TEST(test_retarget)
{
    const struct reach_case *of = &reach_cases[_i];
    const uint32_t at = 0x40000000;
    uint8_t bytes[4], out[4];
    store_le(bytes, 4, of->word);
    const int64_t good[] = {
        0, of->step, -of->step, 0x1234, of->limit - of->step, -of->limit};
    const int64_t bad[] = {of->limit, -of->limit - of->step};
    for (int i = 0; i < COUNT(good); i++) {
        struct insn insn;
        ck_assert(TARGET->retarget(bytes, 4, good[i], out));
        ck_assert(TARGET->decode(out, 4, at, &insn));
        ck_assert_int_eq((int64_t)insn.target - at, good[i]);
        struct code_bytes a, b;
        ck_assert(TARGET->canonical(bytes, 4, &a) && TARGET->canonical(out, 4, &b));
        ck_assert(memcmp(&a, &b, sizeof a) == 0);
    }
    for (int i = 0; i < COUNT(bad); i++)
        ck_assert(!TARGET->retarget(bytes, 4, bad[i], out));
    if (of->step == 4)
        ck_assert(!TARGET->retarget(bytes, 4, 2, out));
}
END_TEST

START_TEST(test_no_target)
{
    struct insn insn;
    uint8_t bytes[4], out[4];
    ck_assert(decode(0xb0000000, 0x1000, &insn)); /* adrp */
    ck_assert_uint_eq(insn.target, NO_INDEX);
    ck_assert_uint_eq(insn.traits, INSN_PC_RELATIVE);
    ck_assert(decode(0x17fffff8, 16, &insn)); /* b #-32 */
    ck_assert_uint_eq(insn.target, NO_INDEX);
    store_le(bytes, 4, 0xb0000000);
    ck_assert(!TARGET->retarget(bytes, 4, 0, out));
    store_le(bytes, 4, 0x91000021);
    ck_assert(!TARGET->retarget(bytes, 4, 0, out));
}
END_TEST

/* --- other words made from words --- */

struct shift_case {
    uint32_t word;
    int32_t delta;
    uint32_t want; /* 0: cannot */
};

static const struct shift_case shift_cases[] = {
    {0xf90007e0, 16,  0xf9000fe0}, /* str x0, [sp, #8] */
    {0x3dc013e3, 16,  0x3dc017e3}, /* ldr q3, [sp, #64] */
    {0x3dc013e3, 8,   0         },
    {0x397fffe0, 1,   0         }, /* ldrb w0, [sp, #4095] */
    {0xb93fffff, 16,  0         }, /* str wzr, [sp, #16380] */
    {0xf81f83e0, 8,   0xf80003e0}, /* stur x0, [sp, #-8] */
    {0xb84fc3e0, 4,   0xb94103e0}, /* ldur w0, [sp, #252]: ldr w0, [sp, #256] */
    {0xb84fc3e0, 2,   0xb84fe3e0}, /* … #254 */
    {0xb84fc3e0, 5,   0         }, /* … #257 has no form */
    {0xa94153f3, 16,  0xa94253f3}, /* ldp x19, x20, [sp, #16] */
    {0xa94153f3, 4,   0         },
    {0xa94153f3, 504, 0         },
    {0xa94153f3, 488, 0xa95fd3f3},
    {0xad0107e0, 16,  0xad0187e0}, /* stp q0, q1, [sp, #32] */
    {0x694107e0, 16,  0x694307e0}, /* ldpsw x0, x1, [sp, #8] */
    {0x910043fd, 16,  0x910083fd}, /* add x29, sp, #16 */
    {0x910003fd, 16,  0x910043fd}, /* mov x29, sp */
    {0xd10043e9, 16,  0x910003e9}, /* sub x9, sp, #16 */
    {0xd10043e9, 0,   0xd10043e9},
    {0xd14007e9, 16,  0         }, /* sub x9, sp, #4096 */
    {0xf8616be0, 16,  0         }, /* ldr x0, [sp, x1] */
    {0xa9be7bfd, 16,  0         }, /* stp x29, x30, [sp, #-32]! */
    {0xf9400ba0, 16,  0         }, /* ldr x0, [x29, #16] */
    {0xd503233f, 16,  0         }, /* paciasp */
};

START_TEST(test_shift_sp)
{
    const struct shift_case *of = &shift_cases[_i];
    uint8_t bytes[4];
    struct code_bytes out;
    store_le(bytes, 4, of->word);
    ck_assert_int_eq(TARGET->shift_sp(bytes, 4, of->delta, &out), of->want != 0);
    if (!of->want)
        return;
    ck_assert_uint_eq(out.length, 4);
    ck_assert(!out.has_reloc);
    ck_assert_uint_eq(load_le(out.bytes, 4), of->want);
    struct insn before, after;
    ck_assert(decode(of->word, 0, &before) && decode(of->want, 0, &after));
    ck_assert_int_eq(after.sp_value, before.sp_value + of->delta);
    ck_assert_uint_eq(after.uses, before.uses);
    ck_assert_uint_eq(after.defs, before.defs);
}
END_TEST

static uint32_t jump_of(uint32_t call, bool *has_reloc)
{
    uint8_t bytes[4];
    struct code_bytes out;
    store_le(bytes, 4, call);
    if (!TARGET->call_to_jump(bytes, 4, &out))
        return 0;
    *has_reloc = out.has_reloc;
    return (uint32_t)load_le(out.bytes, 4);
}

START_TEST(test_calls)
{
    bool has_reloc = false;
    ck_assert_uint_eq(jump_of(0x94000002, &has_reloc), 0x14000002);
    ck_assert(has_reloc);
    ck_assert_uint_eq(jump_of(0xd63f0060, &has_reloc), 0xd61f0060); /* br x3 */
    ck_assert(!has_reloc);
    ck_assert_uint_eq(jump_of(0xd73f087f, &has_reloc), 0xd71f087f); /* braa x3, sp */
    ck_assert_uint_eq(jump_of(0x14000002, &has_reloc), 0);
    ck_assert_uint_eq(TARGET->call_reloc_to_jump(R_AARCH64_CALL26), R_AARCH64_JUMP26);

    uint8_t bytes[4];
    struct code_bytes out;
    store_le(bytes, 4, 0x94000002);
    ck_assert(TARGET->relocatable(bytes, 4, &out));
    ck_assert_uint_eq(load_le(out.bytes, 4), 0x94000000);
    ck_assert(out.has_reloc && out.reloc_offset == 0 && out.reloc_addend == 0);
    ck_assert_uint_eq(out.reloc_type, R_AARCH64_CALL26);
    store_le(bytes, 4, 0x54000040);
    ck_assert(!TARGET->relocatable(bytes, 4, &out));
    ck_assert(!TARGET->widen(bytes, 4, &out));
}
END_TEST

START_TEST(test_emission)
{
    struct code_bytes before, after;
    struct insn insn;
    TARGET->emit_save_register(9, &before, &after);
    ck_assert_uint_eq(before.length + after.length, TARGET->save_register_size);
    ck_assert(TARGET->decode(before.bytes, 4, 0, &insn));
    ck_assert(insn.uses == X(30) && insn.defs == X(9));
    ck_assert(TARGET->decode(after.bytes, 4, 0, &insn));
    ck_assert(insn.uses == X(9) && insn.defs == X(30));

    TARGET->emit_save_stack(&before, &after);
    ck_assert_uint_eq(before.length + after.length, TARGET->save_stack_size);
    ck_assert(TARGET->decode(before.bytes, 4, 0, &insn));
    ck_assert(insn.traits == INSN_SP_ADJUST &&
              insn.sp_value == -TARGET->save_stack_shift);
    ck_assert(TARGET->decode(after.bytes, 4, 0, &insn));
    ck_assert(insn.sp_value == TARGET->save_stack_shift && insn.defs == (X(30) | SP));

    uint8_t padding[12];
    TARGET->emit_padding(padding, sizeof padding);
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(load_le(padding + 4 * i, 4), 0xd503201f);
    TARGET->emit_return(&after);
    ck_assert_uint_eq(load_le(after.bytes, 4), 0xd65f03c0);
    ck_assert_uint_eq(after.length, TARGET->return_size);
}
END_TEST

START_TEST(test_relocs)
{
    uint32_t count = 0;
    for (uint32_t type = 0; type < 1200; type++) {
        const struct reloc_kind *kind = TARGET->reloc_kind(type);
        if (!kind)
            continue;
        count++;
        ck_assert(strncmp(kind->name, "R_AARCH64_", 10) == 0);
        ck_assert(kind->size == 8 || kind->mask >> (8 * kind->size) == 0);
    }
    ck_assert_uint_eq(count, 117); /* a table out of order would lose some */
    ck_assert_uint_eq(TARGET->reloc_kind(R_AARCH64_CALL26)->kind, RELOC_CALL);
    ck_assert_uint_eq(TARGET->reloc_kind(R_AARCH64_TLSDESC_CALL)->kind, RELOC_TLS_ATOM);
    ck_assert_ptr_null(TARGET->reloc_kind(R_AARCH64_RELATIVE));
    ck_assert_ptr_null(TARGET->reloc_kind(UINT32_MAX));
    for (uint32_t column = 0; column < 128; column++) {
        const uint8_t reg = TARGET->register_of_dwarf(column);
        ck_assert(reg == 0xff || TARGET->dwarf_of_register(reg) == column);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("aarch64");
    TCase *tests = tcase_create("target");
    tcase_add_loop_test(tests, test_sets, 0, COUNT(sets));
    tcase_add_loop_test(tests, test_traits, 0, COUNT(trait_cases));
    tcase_add_test(tests, test_unknown);
    tcase_add_loop_test(tests, test_retarget, 0, COUNT(reach_cases));
    tcase_add_test(tests, test_no_target);
    tcase_add_loop_test(tests, test_shift_sp, 0, COUNT(shift_cases));
    tcase_add_test(tests, test_calls);
    tcase_add_test(tests, test_emission);
    tcase_add_test(tests, test_relocs);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
