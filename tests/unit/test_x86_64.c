/* SPDX-License-Identifier: MIT
 *
 * The x86-64 target on instructions chosen by hand, and shift_sp on every instruction
 * of libc.a that addresses the stack (skipped where there is none).
 */
#include "mo/object.h"
#include "mo/target.h"

#include <check.h>
#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TARGET (&target_x86_64)
#define BIT(n) (UINT64_C(1) << (n))

enum {
    RAX,
    RCX,
    RDX,
    RBX,
    RSP,
    RBP,
    RSI,
    RDI,
    R8,
    R9,
    R10,
    R11,
    R12,
    R15 = 15,
    K1 = 17,
    X87 = 24,
    STATE = 25,
    V0 = 32,
    V1 = 33,
    V2 = 34
};
enum {
    CF = 1,
    PF = 2,
    AF = 4,
    ZF = 8,
    SF = 16,
    DF = 32,
    OF = 64,
    ARITHMETIC = CF | PF | AF | ZF | SF | OF
};

struct text {
    uint8_t bytes[16];
    uint8_t length;
};

/* "48 8b 04 24" */
static struct text text_of(const char *hex)
{
    struct text text = {.length = 0};
    unsigned value;
    int used;
    while (sscanf(hex, " %2x%n", &value, &used) == 1) {
        text.bytes[text.length++] = (uint8_t)value;
        hex += used;
    }
    return text;
}

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
    {"48 8b 44 8c 08",                INSN_SP_MEMORY | INSN_FAULTS,                 8,   FLOW_NEXT         }, /* 8(%rsp,%rcx,4) */
    {"48 89 24 24",                   INSN_SP_OPAQUE,                               0,   FLOW_NEXT         }, /* mov %rsp,(%rsp) */
    {"48 8b 64 24 08",                INSN_SP_OPAQUE,                               0,   FLOW_NEXT         }, /* mov 8(%rsp),%rsp */
    {"67 8b 04 24",                   INSN_SP_OPAQUE | INSN_FAULTS,                 0,   FLOW_NEXT         }, /* mov (%esp),%eax */
    {"48 8b 45 f8",                   INSN_FRAME_MEMORY,                            -8,  FLOW_NEXT         }, /* mov -8(%rbp),%rax */
    {"48 8d 45 f8",                   0,                                            0,   FLOW_NEXT         }, /* lea -8(%rbp),%rax */
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
    {"cc",                            INSN_PINNED | INSN_OPAQUE,                    0,   FLOW_STOP         }, /* int3 */
    {"f4",                            INSN_PINNED | INSN_OPAQUE,                    0,   FLOW_STOP         }, /* hlt */
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
    {"48 8b 44 05 f8",                INSN_FRAME_MEMORY | INSN_FAULTS,              -8,
     FLOW_NEXT                                                                                             }, /* -8(%rbp,%rax) */
    {"a4",                            INSN_FAULTS,                                  0,   FLOW_NEXT         }, /* movsb */
    {"48 f7 f9",                      INSN_FAULTS,                                  0,   FLOW_NEXT         }, /* idiv %rcx */
    {"48 f7 e9",                      0,                                            0,   FLOW_NEXT         }, /* imul %rcx */
    {"f2 0f 58 c1",                   INSN_FAULTS,                                  0,   FLOW_NEXT         }, /* addsd */
    {"0f 28 c1",                      0,                                            0,   FLOW_NEXT         }, /* movaps */
    {"66 0f ef c0",                   0,                                            0,   FLOW_NEXT         }, /* pxor */
    {"dd 44 24 08",                   INSN_SP_MEMORY | INSN_FAULTS,                 8,   FLOW_NEXT         }, /* fldl 8(%rsp) */
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

/* --- encoding --- */

static void check_code(const struct code_bytes *code, const char *hex)
{
    struct text text = text_of(hex);
    ck_assert_msg(code->length == text.length, "%s: %d", hex, code->length);
    ck_assert_msg(memcmp(code->bytes, text.bytes, text.length) == 0, "%s", hex);
}

static const struct {
    const char *hex, *result; /* NULL: refused */
} canonicals[] = {
    {"eb 10",                "e9 00 00 00 00"      },
    {"3e 74 10",             "3e 0f 84 00 00 00 00"},
    {"0f 85 10 00 00 00",    "0f 85 00 00 00 00"   },
    {"e3 10",                "e3 00"               },
    {"80 3d 10 00 00 00 01", "80 3d 00 00 00 00 01"},
    {"48 89 d8",             "48 89 d8"            },
    {"48 89",                NULL                  },
};

START_TEST(test_canonical)
{
    struct text text = text_of(canonicals[_i].hex);
    struct code_bytes code;
    bool ok = TARGET->canonical(text.bytes, text.length, &code);
    ck_assert(ok == (canonicals[_i].result != NULL));
    if (ok)
        check_code(&code, canonicals[_i].result);
}
END_TEST

static const struct {
    const char *hex;
    int64_t displacement;
    const char *result;
} retargets[] = {
    {"eb 00",                0,                      "eb fe"               },
    {"eb 00",                129,                    "eb 7f"               },
    {"eb 00",                130,                    NULL                  },
    {"eb 00",                -126,                   "eb 80"               },
    {"eb 00",                -127,                   NULL                  },
    {"e8 00 00 00 00",       5,                      "e8 00 00 00 00"      },
    {"e8 00 00 00 00",       (int64_t)1 << 31,       "e8 fb ff ff 7f"      },
    {"e8 00 00 00 00",       ((int64_t)1 << 31) + 5, NULL                  },
    {"80 3d 00 00 00 00 01", 0x17,                   "80 3d 10 00 00 00 01"},
    {"48 89 d8",             0,                      NULL                  },
};

START_TEST(test_retarget)
{
    struct text text = text_of(retargets[_i].hex);
    struct code_bytes code = {.length = text.length};
    bool ok = TARGET->retarget(text.bytes, text.length, retargets[_i].displacement,
                               code.bytes);
    ck_assert(ok == (retargets[_i].result != NULL));
    if (ok)
        check_code(&code, retargets[_i].result);
}
END_TEST

static const struct {
    const char *hex, *result;
    uint8_t offset;
    uint32_t type;
    int64_t addend;
} relocatables[] = {
    {"e8 10 00 00 00",                "e8 00 00 00 00",                1, R_X86_64_PLT32, -4},
    {"eb 10",                         "e9 00 00 00 00",                1, R_X86_64_PLT32, -4},
    {"f2 e9 10 00 00 00",             "f2 e9 00 00 00 00",             2, R_X86_64_PLT32, -4},
    {"48 8d 05 10 00 00 00",          "48 8d 05 00 00 00 00",          3, R_X86_64_PC32,  -4},
    {"80 3d 10 00 00 00 01",          "80 3d 00 00 00 00 01",          2, R_X86_64_PC32,  -5},
    {"81 3d 10 00 00 00 78 56 34 12", "81 3d 00 00 00 00 78 56 34 12", 2, R_X86_64_PC32,
     -8                                                                                     },
    {"ff 25 10 00 00 00",             "ff 25 00 00 00 00",             2, R_X86_64_PC32,  -4},
    {"74 10",                         NULL,                            0, 0,              0 },
    {"0f 84 10 00 00 00",             NULL,                            0, 0,              0 },
    {"e3 10",                         NULL,                            0, 0,              0 },
    {"c7 f8 00 00 00 00",             NULL,                            0, 0,              0 },
    {"c3",                            NULL,                            0, 0,              0 },
};

/* Short forms are the long ones' own: widening leads back. */
static const struct {
    const char *hex, *result;
} narrows[] = {
    {"e9 11 22 33 44",       "eb 00"}, /* jmp */
    {"0f 84 11 22 33 44",    "74 00"}, /* je */
    {"0f 8f 11 22 33 44",    "7f 00"}, /* jg */
    {"e8 11 22 33 44",       NULL   }, /* call */
    {"eb 11",                NULL   }, /* is short */
    {"f2 e9 11 22 33 44",    NULL   }, /* bnd jmp */
    {"3e 0f 84 11 22 33 44", NULL   }, /* a branch hint */
    {"ff e0",                NULL   }, /* jmp *%rax */
};

START_TEST(test_narrow)
{
    struct text text = text_of(narrows[_i].hex);
    struct code_bytes code, canonical, wide;
    bool ok = TARGET->narrow(text.bytes, text.length, &code);
    ck_assert(ok == (narrows[_i].result != NULL));
    if (!ok)
        return;
    check_code(&code, narrows[_i].result);
    ck_assert(TARGET->widen(code.bytes, code.length, &wide));
    ck_assert(TARGET->canonical(text.bytes, text.length, &canonical));
    ck_assert_uint_eq(wide.length, canonical.length);
    ck_assert_mem_eq(wide.bytes, canonical.bytes, wide.length);
}
END_TEST

START_TEST(test_relocatable)
{
    struct text text = text_of(relocatables[_i].hex);
    struct code_bytes code;
    bool ok = TARGET->relocatable(text.bytes, text.length, &code);
    ck_assert_msg(ok == (relocatables[_i].result != NULL), "%s", relocatables[_i].hex);
    if (!ok)
        return;
    check_code(&code, relocatables[_i].result);
    ck_assert(code.has_reloc);
    ck_assert_uint_eq(code.reloc_offset, relocatables[_i].offset);
    ck_assert_uint_eq(code.reloc_type, relocatables[_i].type);
    ck_assert_int_eq(code.reloc_addend, relocatables[_i].addend);
}
END_TEST

static const struct {
    const char *hex;
    int32_t delta;
    const char *result;
} shifts[] = {
    {"48 8b 04 24",                8,   "48 8b 44 24 08"                  },
    {"48 8b 44 24 08",             -8,  "48 8b 04 24"                     },
    {"48 8b 44 24 78",             8,   "48 8b 84 24 80 00 00 00"         },
    {"48 8b 84 24 80 00 00 00",    -8,  "48 8b 44 24 78"                  },
    {"48 89 e7",                   8,   "48 8d 7c 24 08"                  },
    {"49 89 e0",                   8,   "4c 8d 44 24 08"                  },
    {"4c 8b dc",                   8,   "4c 8d 5c 24 08"                  },
    {"48 89 e5",                   256, "48 8d ac 24 00 01 00 00"         },
    {"48 8d 6c 24 78",             16,  "48 8d ac 24 88 00 00 00"         },
    {"c7 44 24 78 01 00 00 00",    8,   "c7 84 24 80 00 00 00 01 00 00 00"},
    {"42 8b 44 24 08",             8,   "42 8b 44 24 10"                  }, /* (%rsp,%r12), not without index */
    {"8b 44 8c 08",                8,   "8b 44 8c 10"                     },
    {"ff 14 24",                   8,   "ff 54 24 08"                     },
    {"48 c7 44 24 08 00 00 00 00", 0,   "48 c7 44 24 08 00 00 00 00"      },
    {"62 f1 7c 48 28 44 24 01",    64,  "62 f1 7c 48 28 44 24 02"         },
    {"62 f1 7c 48 28 44 24 01",    8,   "62 f1 7c 48 28 84 24 48 00 00 00"},
    {"48 8b 84 24 00 00 00 00",    8,   NULL                              }, /* left to a relocation */
    {"55",                         8,   NULL                              },
    {"48 83 ec 18",                8,   NULL                              },
    {"ff 74 24 08",                8,   NULL                              },
    {"48 8b 45 08",                8,   NULL                              },
};

START_TEST(test_shift)
{
    struct text text = text_of(shifts[_i].hex);
    struct code_bytes code;
    bool ok = TARGET->shift_sp(text.bytes, text.length, shifts[_i].delta, &code);
    ck_assert_msg(ok == (shifts[_i].result != NULL), "%s", shifts[_i].hex);
    if (ok)
        check_code(&code, shifts[_i].result);
}
END_TEST

static const struct {
    const char *hex, *result;
} thunks[] = {
    {"e8 01 02 03 04",       "e9 01 02 03 04"      },
    {"67 e8 01 02 03 04",    "67 e9 01 02 03 04"   },
    {"ff d0",                "ff e0"               },
    {"41 ff d3",             "41 ff e3"            },
    {"3e ff d0",             "3e ff e0"            },
    {"ff 15 01 02 03 04",    "ff 25 01 02 03 04"   },
    {"48 ff 15 01 02 03 04", "48 ff 25 01 02 03 04"},
    {"ff 54 24 08",          "ff 64 24 08"         },
    {"ff 1d 00 00 00 00",    NULL                  }, /* lcall */
    {"e9 00 00 00 00",       NULL                  },
    {"c3",                   NULL                  },
};

START_TEST(test_call_to_jump)
{
    struct text text = text_of(thunks[_i].hex);
    struct code_bytes code;
    bool ok = TARGET->call_to_jump(text.bytes, text.length, &code);
    ck_assert_msg(ok == (thunks[_i].result != NULL), "%s", thunks[_i].hex);
    if (ok)
        check_code(&code, thunks[_i].result);
}
END_TEST

START_TEST(test_emission)
{
    struct code_bytes code;
    TARGET->emit_call(&code);
    check_code(&code, "e8 00 00 00 00");
    TARGET->emit_jump(&code);
    check_code(&code, "e9 00 00 00 00");
    ck_assert_uint_eq(code.reloc_offset, 1);
    ck_assert_int_eq(code.reloc_addend, -4);
    TARGET->emit_return(&code);
    check_code(&code, "c3");
    for (uint32_t size = 0; size <= 40; size++) {
        uint8_t padding[40];
        uint32_t at = 0;
        TARGET->emit_padding(padding, size);
        while (at < size) {
            struct insn insn;
            ck_assert(TARGET->decode(padding + at, size - at, at, &insn));
            ck_assert(insn.traits == INSN_NOP);
            at += insn.length;
        }
        ck_assert_uint_eq(at, size);
    }
}
END_TEST

START_TEST(test_dwarf)
{
    for (uint32_t reg = 0; reg < 64; reg++) {
        uint32_t column = TARGET->dwarf_of_register((uint8_t)reg);
        if (column != NO_INDEX)
            ck_assert_uint_eq(TARGET->register_of_dwarf(column), reg);
    }
    ck_assert_uint_eq(TARGET->dwarf_of_register(RSP), 7);
    ck_assert_uint_eq(TARGET->dwarf_of_register(RBX), 3);
    ck_assert_uint_eq(TARGET->dwarf_of_register(RDX), 1);
    ck_assert_uint_eq(TARGET->register_of_dwarf(16), 0xff);
}
END_TEST

/* --- every stack operand of a library --- */

static const int32_t deltas[] = {8, 16, 128, 4096, -8};

static uint32_t check_round_trip(const uint8_t *bytes, const struct insn *insn)
{
    uint32_t refused = 0;
    for (size_t i = 0; i < sizeof deltas / sizeof *deltas; i++) {
        struct code_bytes there, back;
        struct insn shifted;
        if (!TARGET->shift_sp(bytes, insn->length, deltas[i], &there)) {
            refused++;
            continue;
        }
        ck_assert(TARGET->decode(there.bytes, there.length, 0, &shifted));
        ck_assert(shifted.length == there.length);
        ck_assert_int_eq(shifted.sp_value, insn->sp_value + deltas[i]);
        ck_assert(TARGET->shift_sp(there.bytes, there.length, -deltas[i], &back));
        struct insn same;
        ck_assert(TARGET->decode(back.bytes, back.length, 0, &same));
        ck_assert_int_eq(same.sp_value, insn->sp_value);
        if (back.length == insn->length && !(insn->traits & INSN_SP_COPY))
            ck_assert(memcmp(back.bytes, bytes, back.length) == 0);
    }
    return refused;
}

static void check_section(const struct section *section, uint32_t *shifted,
                          uint32_t *refused)
{
    for (uint64_t at = 0; at < section->data.size;) {
        const uint8_t *bytes = section->data.at + at;
        struct insn insn;
        if (!TARGET->decode(bytes, section->data.size - at, (uint32_t)at, &insn)) {
            at++;
            continue;
        }
        if (insn.traits & (INSN_SP_MEMORY | INSN_SP_COPY)) {
            (*shifted)++;
            *refused += check_round_trip(bytes, &insn);
        }
        at += insn.length;
    }
}

START_TEST(test_library)
{
    const char *path = MO_CORPORA "/amd64/usr/lib/x86_64-linux-gnu/libc.a";
    if (access(path, R_OK) != 0)
        return;
    struct arena *session = arena_new();
    struct error err = {0};
    struct bytes image;
    struct archive archive;
    uint32_t shifted = 0, refused = 0;
    ck_assert(file_read(session, path, &image, &err));
    ck_assert(archive_read(session, path, image, &archive, &err));
    for (uint32_t i = 0; i < archive.count; i++) {
        const struct object *object;
        if (!archive.members[i].is_object ||
            !object_read(session, archive.members[i].name, archive.members[i].image,
                         &object, &err))
            continue;
        for (uint32_t s = 0; s < object->section_count; s++)
            if (section_is_code(&object->sections[s]))
                check_section(&object->sections[s], &shifted, &refused);
    }
    printf("%u stack operands, %u shifts refused\n", shifted, refused);
    ck_assert_uint_gt(shifted, 10000);
    ck_assert_uint_lt(refused, 50);
    arena_free(session);
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

int main(void)
{
    Suite *suite = suite_create("x86-64");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, test_sets, 0, COUNT(sets));
    tcase_add_loop_test(tests, test_traits, 0, COUNT(traits));
    tcase_add_loop_test(tests, test_unknown, 0, COUNT(unknown));
    tcase_add_test(tests, test_targets);
    tcase_add_loop_test(tests, test_canonical, 0, COUNT(canonicals));
    tcase_add_loop_test(tests, test_retarget, 0, COUNT(retargets));
    tcase_add_loop_test(tests, test_narrow, 0, COUNT(narrows));
    tcase_add_loop_test(tests, test_relocatable, 0, COUNT(relocatables));
    tcase_add_loop_test(tests, test_shift, 0, COUNT(shifts));
    tcase_add_loop_test(tests, test_call_to_jump, 0, COUNT(thunks));
    tcase_add_test(tests, test_emission);
    tcase_add_test(tests, test_dwarf);
    tcase_add_test(tests, test_library);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
