/* SPDX-License-Identifier: MIT
 *
 * What the x86-64 target says of instructions chosen by hand.
 */
#include "tests/unit/x86_64_text.h"

#include <elf.h>
#include <string.h>

static struct insn decode(const char *hex)
{
    struct text text = text_of(hex);
    struct insn insn;
    ck_assert_msg(TARGET->decode(text.bytes, text.length, 0x100, &insn), "%s", hex);
    ck_assert_msg(insn.length == text.length, "%s", hex);
    return insn;
}

/* --- sets --- */

static const struct {
    const char *hex;
    uint64_t uses, defs;
    uint8_t flag_uses, flag_defs;
} sets[] = {
    {"48 01 d8",          BIT(RAX) | BIT(RBX),                   BIT(RAX),                                  0,          ARITHMETIC}, /* add %rbx,%rax */
    {"89 d8",             BIT(RBX),                              BIT(RAX),                                  0,          0         }, /* mov %ebx,%eax */
    {"88 d8",             BIT(RBX) | BIT(RAX),                   BIT(RAX),                                  0,          0         }, /* mov %bl,%al */
    {"88 dc",             BIT(RBX) | BIT(RAX),                   BIT(RAX),                                  0,          0         }, /* mov %bl,%ah */
    {"66 89 d8",          BIT(RBX) | BIT(RAX),                   BIT(RAX),                                  0,          0         }, /* mov %bx,%ax */
    {"0f b6 c3",          BIT(RBX),                              BIT(RAX),                                  0,          0         }, /* movzbl %bl,%eax */
    {"31 c0",             0,                                     BIT(RAX),                                  0,          ARITHMETIC}, /* xor %eax,%eax */
    {"66 31 c0",          BIT(RAX),                              BIT(RAX),                                  0,          ARITHMETIC}, /* xor %ax,%ax */
    {"19 c0",             0,                                     BIT(RAX),                                  CF,         ARITHMETIC}, /* sbb %eax,%eax */
    {"0f 44 c3",          BIT(RAX) | BIT(RBX),                   BIT(RAX),                                  ZF,         0         }, /* cmove %ebx,%eax */
    {"d3 e0",             BIT(RAX) | BIT(RCX),                   BIT(RAX),                                  ARITHMETIC, ARITHMETIC}, /* shl %cl,%eax */
    {"c1 e0 04",          BIT(RAX),                              BIT(RAX),                                  0,          ARITHMETIC}, /* shl $4,%eax */
    {"c1 e0 20",          BIT(RAX),                              BIT(RAX),                                  0,          0         }, /* shl $32,%eax */
    {"0f bc c3",          BIT(RBX) | BIT(RAX),                   BIT(RAX),                                  0,          ARITHMETIC}, /* bsf %ebx,%eax */
    {"fd",                0,                                     0,                                         0,          DF        }, /* std */
    {"a4",                BIT(RSI) | BIT(RDI),                   BIT(RSI) | BIT(RDI),                       DF,         0         }, /* movsb */
    {"f3 aa",             BIT(RCX) | BIT(RDI) | BIT(RAX),        BIT(RCX) | BIT(RDI),                       DF,
     0                                                                                                                            }, /* rep stosb */
    {"48 f7 f3",          BIT(RAX) | BIT(RDX) | BIT(RBX),        BIT(RAX) | BIT(RDX),                       0,          ARITHMETIC},
    {"c5 f5 58 c2",       BIT(V1) | BIT(V2) | BIT(STATE),        BIT(V0) | BIT(STATE),                      0,          0         },
    {"c5 f5 ef c2",       BIT(V1) | BIT(V2),                     BIT(V0),                                   0,          0         }, /* vpxor */
    {"c5 f1 ef c1",       0,                                     BIT(V0),                                   0,          0         }, /* vpxor %xmm1,%xmm1,%xmm0 */
    {"66 0f ef c0",       BIT(V0),                               BIT(V0),                                   0,          0         }, /* pxor: bits from 128 on */
    {"0f 28 c1",          BIT(V0) | BIT(V1),                     BIT(V0),                                   0,          0         }, /* movaps: the same */
    {"f3 0f 10 c1",       BIT(V0) | BIT(V1),                     BIT(V0),                                   0,          0         }, /* movss %xmm1,%xmm0 */
    {"62 f1 75 48 fe c2", BIT(V1) | BIT(V2),                     BIT(V0),                                   0,          0         }, /* vpaddd zmm */
    {"62 f1 75 49 fe c2", BIT(V0) | BIT(V1) | BIT(V2) | BIT(K1), BIT(V0),                                   0,
     0                                                                                                                            }, /* {k1} */
    {"62 f1 75 c9 fe c2", BIT(V1) | BIT(V2) | BIT(K1),           BIT(V0),                                   0,          0         }, /* {k1}{z} */
    {"d9 c1",             BIT(X87),                              BIT(X87),                                  0,          0         }, /* fld %st(1) */
    {"0f 6f c1",          BIT(X87),                              BIT(X87),                                  0,          0         }, /* movq %mm1,%mm0 */
    {"0f a2",             BIT(RAX) | BIT(RCX),                   BIT(RAX) | BIT(RBX) | BIT(RCX) | BIT(RDX), 0,          0         },
    {"66 0f 1f 44 00 00", 0,                                     0,                                         0,          0         }, /* nopw 0(%rax,%rax) */
};

START_TEST(test_sets)
{
    struct insn insn = decode(sets[_i].hex);
    ck_assert_msg(insn.uses == sets[_i].uses, "%s uses %lx", sets[_i].hex,
                  (unsigned long)insn.uses);
    ck_assert_msg(insn.defs == sets[_i].defs, "%s defs %lx", sets[_i].hex,
                  (unsigned long)insn.defs);
    ck_assert_msg(insn.flag_uses == sets[_i].flag_uses, "%s flag uses %x", sets[_i].hex,
                  insn.flag_uses);
    ck_assert_msg(insn.flag_defs == sets[_i].flag_defs, "%s flag defs %x", sets[_i].hex,
                  insn.flag_defs);
}
END_TEST

/* --- traits --- */

static const struct {
    const char *hex;
    uint32_t traits;
    int32_t sp_value;
    uint8_t flow;
} traits[] = {
    {"55",                            INSN_SP_ADJUST,                               -8,  FLOW_NEXT         }, /* push %rbp */
    {"66 50",                         INSN_SP_ADJUST,                               -2,  FLOW_NEXT         }, /* push %ax */
    {"5d",                            INSN_SP_ADJUST,                               8,   FLOW_NEXT         }, /* pop %rbp */
    {"54",                            INSN_SP_OPAQUE,                               0,   FLOW_NEXT         }, /* push %rsp */
    {"5c",                            INSN_SP_OPAQUE,                               0,   FLOW_NEXT         }, /* pop %rsp */
    {"ff 74 24 08",                   INSN_SP_ADJUST | INSN_PINNED,                 -8,  FLOW_NEXT         }, /* push 8(%rsp) */
    {"9c",                            INSN_SP_ADJUST,                               -8,  FLOW_NEXT         }, /* pushf */
    {"48 83 ec 18",                   INSN_SP_ADJUST,                               -24, FLOW_NEXT         }, /* sub $24,%rsp */
    {"48 83 ec 80",                   INSN_SP_ADJUST,                               128, FLOW_NEXT         }, /* sub $-128,%rsp */
    {"48 81 c4 00 01 00 00",          INSN_SP_ADJUST,                               256, FLOW_NEXT         }, /* add $256,%rsp */
    {"83 ec 18",                      INSN_SP_OPAQUE,                               0,   FLOW_NEXT         }, /* sub $24,%esp */
    {"48 29 c4",                      INSN_SP_OPAQUE,                               0,   FLOW_NEXT         }, /* sub %rax,%rsp */
    {"48 83 e4 f0",                   INSN_SP_OPAQUE,                               0,   FLOW_NEXT         }, /* and $-16,%rsp */
    {"48 39 e0",                      INSN_SP_OPAQUE,                               0,   FLOW_NEXT         }, /* cmp %rsp,%rax */
    {"48 8d 64 24 f8",                INSN_SP_ADJUST,                               -8,  FLOW_NEXT         }, /* lea -8(%rsp),%rsp */
    {"48 8d 65 f0",                   INSN_SP_FROM_FRAME,                           -16, FLOW_NEXT         }, /* lea -16(%rbp),%rsp */
    {"49 8d 62 f8",                   INSN_SP_OPAQUE,                               0,
     FLOW_NEXT                                                                                             }, /* lea -8(%r10),%rsp: nothing below */
    {"48 89 ec",                      INSN_SP_FROM_FRAME,                           0,   FLOW_NEXT         }, /* mov %rbp,%rsp */
    {"c9",                            INSN_SP_FROM_FRAME,                           8,   FLOW_NEXT         }, /* leave */
    {"c8 10 00 00",                   INSN_SP_OPAQUE | INSN_PINNED,                 0,   FLOW_NEXT         },
    {"48 89 c4",                      INSN_SP_OPAQUE,                               0,   FLOW_NEXT         }, /* mov %rax,%rsp */
    {"48 89 e5",                      INSN_SP_COPY | INSN_FRAME_SET,                0,   FLOW_NEXT         }, /* mov %rsp,%rbp */
    {"48 8b fc",                      INSN_SP_COPY,                                 0,   FLOW_NEXT         }, /* mov %rsp,%rdi, 8b */
    {"48 8d 6c 24 10",                INSN_SP_COPY | INSN_FRAME_SET,                16,  FLOW_NEXT         },
    {"48 8d 7c 24 f0",                INSN_SP_COPY | INSN_BELOW_SP,                 -16, FLOW_NEXT         },
    {"8d 7c 24 10",                   INSN_SP_OPAQUE,                               0,   FLOW_NEXT         }, /* lea 16(%rsp),%edi */
    {"48 8d 0c 04",                   INSN_SP_OPAQUE,                               0,   FLOW_NEXT         }, /* lea (%rsp,%rax),%rcx */
    {"48 8b 04 24",                   INSN_SP_MEMORY,                               0,   FLOW_NEXT         }, /* mov (%rsp),%rax */
    {"48 8b 44 24 f8",                INSN_SP_MEMORY | INSN_BELOW_SP,               -8,  FLOW_NEXT         },
    {"48 8b 44 8c 08",                INSN_SP_MEMORY | INSN_FAULTS | INSN_INDEXED,                 8,   FLOW_NEXT         }, /* 8(%rsp,%rcx,4) */
    {"48 89 24 24",                   INSN_SP_OPAQUE,                               0,   FLOW_NEXT         }, /* mov %rsp,(%rsp) */
    {"48 8b 64 24 08",                INSN_SP_OPAQUE,                               0,   FLOW_NEXT         }, /* mov 8(%rsp),%rsp */
    {"67 8b 04 24",                   INSN_SP_OPAQUE | INSN_FAULTS,                 0,   FLOW_NEXT         }, /* mov (%esp),%eax */
    {"48 8b 45 f8",                   INSN_FRAME_MEMORY,                            -8,  FLOW_NEXT         }, /* mov -8(%rbp),%rax */
    {"48 8d 45 f8",                   INSN_FRAME_COPY,                              -8,  FLOW_NEXT         }, /* lea -8(%rbp),%rax */
    {"48 8d 44 85 f8",                INSN_FRAME_COPY | INSN_INDEXED,               -8,  FLOW_NEXT         }, /* lea -8(%rbp,%rax,4),%rax */
    {"48 89 e8",                      INSN_FRAME_COPY,                              0,   FLOW_NEXT         }, /* mov %rbp,%rax */
    {"62 f1 7c 48 28 44 24 01",       INSN_SP_MEMORY,                               64,
     FLOW_NEXT                                                                                             }, /* vmovaps 64(%rsp),%zmm0 */
    {"e8 00 00 00 00",                INSN_PC_RELATIVE,                             0,   FLOW_CALL         },
    {"ff d0",                         0,                                            0,   FLOW_CALL_INDIRECT},
    {"ff 54 24 08",                   INSN_SP_MEMORY,                               8,   FLOW_CALL_INDIRECT},
    {"ff d4",                         INSN_SP_OPAQUE,                               0,   FLOW_CALL_INDIRECT}, /* call *%rsp */
    {"e9 00 00 00 00",                INSN_PC_RELATIVE,                             0,   FLOW_JUMP         },
    {"74 00",                         INSN_PC_RELATIVE,                             0,   FLOW_BRANCH       },
    {"e3 00",                         INSN_PC_RELATIVE,                             0,   FLOW_BRANCH       }, /* jrcxz */
    {"e2 00",                         INSN_PC_RELATIVE,                             0,   FLOW_BRANCH       }, /* loop */
    {"3e ff e0",                      0,                                            0,   FLOW_JUMP_INDIRECT}, /* notrack jmp *%rax */
    {"ff 25 00 00 00 00",             INSN_PC_RELATIVE,                             0,   FLOW_JUMP_INDIRECT},
    {"c3",                            0,                                            0,   FLOW_RETURN       },
    {"f3 c3",                         0,                                            0,   FLOW_RETURN       },
    {"c2 08 00",                      INSN_PINNED,                                  0,   FLOW_RETURN       },
    {"0f 0b",                         INSN_PINNED | INSN_OPAQUE,                    0,   FLOW_STOP         }, /* ud2 */
    {"cc",                            INSN_PINNED | INSN_OPAQUE,                    0,   FLOW_NEXT         }, /* int3 */
    {"f4",                            INSN_PINNED | INSN_OPAQUE,                    0,   FLOW_NEXT         }, /* hlt */
    {"0f 05",                         INSN_PINNED | INSN_OPAQUE,                    0,   FLOW_NEXT         }, /* syscall */
    {"0f ae e8",                      INSN_PINNED | INSN_OPAQUE,                    0,   FLOW_NEXT         }, /* lfence */
    {"0f ae f0",                      0,                                            0,   FLOW_NEXT         }, /* mfence */
    {"c7 f8 00 00 00 00",             INSN_PINNED | INSN_OPAQUE | INSN_PC_RELATIVE, 0,   FLOW_BRANCH       },
    {"0f a2",                         INSN_OPAQUE,                                  0,   FLOW_NEXT         }, /* cpuid */
    {"f3 0f 1e fa",                   INSN_MARKER,                                  0,   FLOW_NEXT         }, /* endbr64 */
    {"90",                            INSN_NOP,                                     0,   FLOW_NEXT         },
    {"66 90",                         INSN_NOP,                                     0,   FLOW_NEXT         },
    {"66 2e 0f 1f 84 00 00 00 00 00", INSN_NOP,                                     0,   FLOW_NEXT         },
    {"f3 90",                         0,                                            0,   FLOW_NEXT         }, /* pause */
    {"f0 48 0f b1 0f",                INSN_FAULTS,                                  0,   FLOW_NEXT         }, /* lock cmpxchg */
    {"64 48 8b 04 25 28 00 00 00",    0,                                            0,   FLOW_NEXT         }, /* mov %fs:0x28,%rax */
    {"48 8d 05 10 00 00 00",          INSN_PC_RELATIVE,                             0,   FLOW_NEXT         }, /* lea 16(%rip),%rax */
    {"48 8b 05 10 00 00 00",          INSN_PC_RELATIVE,                             0,   FLOW_NEXT         }, /* mov 16(%rip),%rax */
    {"48 8b 07",                      INSN_FAULTS,                                  0,   FLOW_NEXT         }, /* mov (%rdi),%rax */
    {"48 8d 07",                      0,                                            0,   FLOW_NEXT         }, /* lea (%rdi),%rax */
    {"48 8b 44 05 f8",                INSN_FRAME_MEMORY | INSN_FAULTS | INSN_INDEXED,              -8,
     FLOW_NEXT                                                                                             }, /* -8(%rbp,%rax) */
    {"a4",                            INSN_FAULTS,                                  0,   FLOW_NEXT         }, /* movsb */
    {"48 f7 f9",                      INSN_FAULTS,                                  0,   FLOW_NEXT         }, /* idiv %rcx */
    {"48 f7 e9",                      0,                                            0,   FLOW_NEXT         }, /* imul %rcx */
    {"f2 0f 58 c1",                   INSN_FAULTS,                                  0,   FLOW_NEXT         }, /* addsd */
    {"0f 28 c1",                      0,                                            0,   FLOW_NEXT         }, /* movaps */
    {"66 0f ef c0",                   0,                                            0,   FLOW_NEXT         }, /* pxor */
    {"dd 44 24 08",                   INSN_SP_MEMORY | INSN_FAULTS,                                   8,   FLOW_NEXT         }, /* fldl 8(%rsp) */
    {"ff 30",                         INSN_SP_ADJUST | INSN_FAULTS,                 -8,  FLOW_NEXT         }, /* push (%rax) */
    {"53",                            INSN_SP_ADJUST,                               -8,  FLOW_NEXT         }, /* push %rbx */
};

START_TEST(test_traits)
{
    struct insn insn = decode(traits[_i].hex);
    ck_assert_msg(insn.traits == traits[_i].traits, "%s traits %x not %x",
                  traits[_i].hex, insn.traits, traits[_i].traits);
    ck_assert_msg(insn.sp_value == traits[_i].sp_value, "%s value %d", traits[_i].hex,
                  insn.sp_value);
    ck_assert_msg(insn.flow == traits[_i].flow, "%s flow %d", traits[_i].hex,
                  insn.flow);
}
END_TEST

static const char *const unknown[] = {
    "06",                   /* push %es: not in 64-bit code */
    "66 e8 00 00",          /* callw */
    "66 c3",                /* retw */
    "ff 2d 00 00 00 00",    /* ljmp */
    "67 8b 05 00 00 00 00", /* mov (%eip),%eax */
    "f3 0f a6 e0",          /* xcryptofb */
    "48",
    "",
};

START_TEST(test_unknown)
{
    struct text text = text_of(unknown[_i]);
    struct insn insn;
    ck_assert_msg(!TARGET->decode(text.bytes, text.length, 0, &insn), "%s",
                  unknown[_i]);
}
END_TEST

START_TEST(test_targets)
{
    ck_assert_uint_eq(decode("eb fe").target, 0x100);
    ck_assert_uint_eq(decode("e8 01 00 00 00").target, 0x106);
    ck_assert_uint_eq(decode("80 3d 10 00 00 00 01").target, 0x117);
    ck_assert_uint_eq(decode("e9 00 f0 ff ff").target, NO_INDEX);
    ck_assert_uint_eq(decode("c3").target, NO_INDEX);
    struct insn compare = decode("81 3d 00 00 00 00 78 56 34 12");
    ck_assert_uint_eq(TARGET->reloc_bias(&compare, 0x102), 8);
    struct insn add = decode("48 05 00 00 00 00");
    ck_assert_uint_eq(TARGET->reloc_bias(&add, 0x102), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("x86-64");
    TCase *tests = tcase_create("all");
    tcase_add_loop_test(tests, test_sets, 0, COUNT(sets));
    tcase_add_loop_test(tests, test_traits, 0, COUNT(traits));
    tcase_add_loop_test(tests, test_unknown, 0, COUNT(unknown));
    tcase_add_test(tests, test_targets);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
