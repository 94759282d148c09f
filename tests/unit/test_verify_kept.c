/* SPDX-License-Identifier: MIT
 *
 * The checker has a short way over code that has kept its bytes. Here g is such code,
 * in a section where f, in front of it, has become shorter, behind e; whatever is
 * planted in g must be found there as it is everywhere else.
 */
#include "verify_draft.h"

static void change_byte(struct draft *draft, uint32_t section, uint32_t offset,
                        uint8_t value)
{
    ((uint8_t *)(uintptr_t)draft->sections[section].data.at)[offset] = value;
}

/* A row that holds for the middle of g. */
static void g_rows(struct scene *scene, struct draft *draft, uint32_t symbol,
                   uint32_t size, uint32_t start, uint32_t end)
{
    bool arm = draft->object.machine == EM_AARCH64, after = draft == &scene->after;
    int64_t cfa = after && has(scene, "row") ? 48 : 32;
    uint32_t entry = row_at_entry(scene->rows, draft->object.machine);
    uint32_t framed = arm ? row(scene, cfa, SAVED(29, -32), SAVED(30, -24))
                          : row(scene, cfa, SAVED(16, -8), NONE);
    struct row_change changes[] = {
        {0,     entry },
        {start, framed},
        {end,   entry }
    };
    add_frame(scene, draft, symbol, 0, size, changes, 3);
}

/* --- x86-64 --- */

#define BYTES(...)                                                                     \
    ((const uint8_t[]){__VA_ARGS__}), sizeof((const uint8_t[]){__VA_ARGS__})
#define MOV_EAX_1 0xb8, 1, 0, 0, 0
#define CALL_REL  0xe8, 0, 0, 0, 0
#define RETQ      0xc3
#define G_X86(back)                                                                    \
    0x48, 0x83, 0xec, 0x18,           /*  0 sub $24, %rsp */                           \
        MOV_EAX_1,                    /*  4 mov $1, %eax */                            \
        CALL_REL,                     /*  9 call ext */                                \
        0x48, 0x8d, 0x05, 0, 0, 0, 0, /* 14 lea .rodata+4(%rip), %rax */               \
        0x74, 1,                      /* 21 je 24 */                                   \
        0x90,                         /* 23 nop */                                     \
        0x48, 0x83, 0xc4, 0x18,       /* 24 add $24, %rsp */                           \
        0xeb, (back),                 /* 28 jmp e+5 */                                 \
        RETQ                          /* 30 ret */

#define E_X86 MOV_EAX_1, MOV_EAX_1, RETQ

enum { G_SIZE = 31, G_CALL = 9, G_LEA = 14, G_JE = 21, G_JMP = 28 };
enum { OLD_G = 22, NEW_G = 17 };

/* What g refers to; its start is `at`. */
static void g_relocs(struct scene *scene, struct draft *draft, uint32_t text,
                     uint32_t at)
{
    static const uint64_t zero;
    bool after = draft == &scene->after;
    bool plain = after && has(scene, "type"), gone = after && has(scene, "no reloc");
    bool more = after && has(scene, "more relocs");
    uint32_t data_symbol;
    add_section(draft, ".rodata", 0, 0, &zero, 8, &data_symbol);
    uint32_t ext = add_undefined(draft, after && has(scene, "symbol") ? "other" : "ext");
    if (more)
        add_reloc(draft, text, at + 5, R_X86_64_32, ext, 0);
    if (!gone)
        add_reloc(draft, text, at + G_CALL + 1, plain ? R_X86_64_PC32 : R_X86_64_PLT32,
                  ext, after && has(scene, "call addend") ? 0 : -4);
    add_reloc(draft, text, at + G_LEA + 3, R_X86_64_PC32, data_symbol,
              after && has(scene, "addend") ? 1 : 0);
}

static void plant(const struct scene *scene, struct draft *draft, uint32_t text,
                  uint32_t at)
{
    if (has(scene, "byte"))
        change_byte(draft, text, at + 5, 2);
    if (has(scene, "branch"))
        change_byte(draft, text, at + G_JE + 1, 0);
    if (has(scene, "condition"))
        change_byte(draft, text, at + G_JE, 0x75);
    if (has(scene, "far branch"))
        change_byte(draft, text, at + G_JMP + 1, 0xd7);
    if (has(scene, "old branch"))
        change_byte(draft, text, at + G_JMP + 1, 0xd1);
    if (has(scene, "last byte"))
        change_byte(draft, text, at + G_SIZE - 1, 0xf4);
}

static void kept_x86_64(struct scene *scene)
{
    struct draft *old = &scene->before, *new = &scene->after;
    uint32_t text, symbol, helpers, helper_symbol;
    text = add_code(old, 0, BYTES(E_X86, MOV_EAX_1, MOV_EAX_1, RETQ, G_X86(0xd1)),
                    &symbol);
    add_function(old, "e", text, 0, 11, true);
    add_function(old, "f", text, 11, 11, true);
    add_function(old, "g", text, OLD_G, G_SIZE, true);
    g_relocs(scene, old, text, OLD_G);
    g_rows(scene, old, symbol, OLD_G + G_SIZE, OLD_G + 4, OLD_G + G_JMP);

    text = add_code(new, 0, BYTES(E_X86, CALL_REL, RETQ, G_X86(0xd6)), &symbol);
    add_function(new, "e", text, 0, 11, true);
    add_function(new, "f", text, 11, 6, true);
    add_function(new, "g", text, NEW_G, G_SIZE, true);
    helpers = add_code(new, 1, BYTES(MOV_EAX_1, MOV_EAX_1, RETQ), &helper_symbol);
    add_function(new, "h", helpers, 0, 11, false);
    add_reloc(new, text, 12, R_X86_64_PLT32, helper_symbol, -4);
    g_relocs(scene, new, text, NEW_G);
    g_rows(scene, new, symbol, NEW_G + G_SIZE, NEW_G + (has(scene, "row late") ? 9 : 4),
           NEW_G + (has(scene, "row long") ? G_JMP + 2 : G_JMP));
    plant(scene, new, text, NEW_G);
    helper_rows(scene, helper_symbol, 11, row_at_entry(scene->rows, EM_X86_64));
}

/* --- AArch64 --- */

#define WORDS(...)                                                                     \
    ((const uint32_t[]){__VA_ARGS__}), sizeof((const uint32_t[]){__VA_ARGS__})
#define MOV_X0 0xd2800020u
#define MOV_X1 0xd2800041u
#define B      0x14000000u
#define RET    0xd65f03c0u
#define G_ARM                                                                          \
    0xa9be7bfdu,     /*  0 stp x29, x30, [sp, #-32]! */                                \
        MOV_X0,      /*  4 mov x0, #1 */                                               \
        0x94000000u, /*  8 bl ext */                                                   \
        0x90000000u, /* 12 adrp x0, .rodata+4 */                                       \
        0x91000000u, /* 16 add x0, x0, :lo12:.rodata+4 */                              \
        0xb4000040u, /* 20 cbz x0, 28 */                                               \
        MOV_X1,      /* 24 mov x1, #2 */                                               \
        0xa8c27bfdu, /* 28 ldp x29, x30, [sp], #32 */                                  \
        RET          /* 32 ret */

enum { ARM_SIZE = 36 };

static void arm_relocs(struct scene *scene, struct draft *draft, uint32_t text,
                       uint32_t at)
{
    static const uint64_t zero;
    bool after = draft == &scene->after;
    uint32_t data_symbol;
    add_section(draft, ".rodata", 0, 0, &zero, 8, &data_symbol);
    uint32_t ext = add_undefined(draft, after && has(scene, "symbol") ? "other" : "ext");
    if (!after || !has(scene, "no reloc"))
        add_reloc(draft, text, at + 8, R_AARCH64_CALL26, ext,
                  after && has(scene, "call addend") ? 4 : 0);
    add_reloc(draft, text, at + 12, R_AARCH64_ADR_PREL_PG_HI21, data_symbol, 4);
    add_reloc(draft, text, at + 16,
              after && has(scene, "type") ? R_AARCH64_ADR_PREL_LO21
                                          : R_AARCH64_ADD_ABS_LO12_NC,
              data_symbol, after && has(scene, "addend") ? 0 : 4);
}

static void kept_aarch64(struct scene *scene)
{
    struct draft *old = &scene->before, *new = &scene->after;
    uint32_t text, symbol, helpers, helper_symbol;
    text = add_code(old, 0, WORDS(MOV_X0, MOV_X1, RET, G_ARM), &symbol);
    add_function(old, "f", text, 0, 12, true);
    add_function(old, "g", text, 12, ARM_SIZE, true);
    arm_relocs(scene, old, text, 12);
    g_rows(scene, old, symbol, 12 + ARM_SIZE, 12 + 4, 12 + 32);

    text = add_code(new, 0, WORDS(B, G_ARM), &symbol);
    add_function(new, "f", text, 0, 4, true);
    add_function(new, "g", text, 4, ARM_SIZE, true);
    helpers = add_code(new, 1, WORDS(MOV_X0, MOV_X1, RET), &helper_symbol);
    add_function(new, "h", helpers, 0, 12, false);
    add_reloc(new, text, 0, R_AARCH64_JUMP26, helper_symbol, 0);
    arm_relocs(scene, new, text, 4);
    g_rows(scene, new, symbol, 4 + ARM_SIZE, 4 + (has(scene, "row late") ? 8 : 4),
           4 + 32);
    if (has(scene, "byte"))
        change_byte(new, text, 4 + 4, 0x40);
    if (has(scene, "branch"))
        change_byte(new, text, 4 + 20, 0x20);
    helper_rows(scene, helper_symbol, 12, row_at_entry(scene->rows, EM_AARCH64));
}

/* --- the table --- */

static const struct pair_case cases[] = {
    {EM_X86_64,  kept_x86_64,  "",            NULL                            },
    {EM_X86_64,  kept_x86_64,  "byte",        "another instruction"           },
    {EM_X86_64,  kept_x86_64,  "last byte",   "another instruction"           },
    {EM_X86_64,  kept_x86_64,  "condition",   "another instruction"           },
    {EM_X86_64,  kept_x86_64,  "branch",      "did not become"                },
    {EM_X86_64,  kept_x86_64,  "far branch",  "did not become"                },
    {EM_X86_64,  kept_x86_64,  "old branch",  "did not become"                },
    {EM_X86_64,  kept_x86_64,  "type",        "relocation type"               },
    {EM_X86_64,  kept_x86_64,  "no reloc",    "relocation against 'ext' is gone"},
    {EM_X86_64,  kept_x86_64,  "more relocs", "another instruction"           },
    {EM_X86_64,  kept_x86_64,  "symbol",      "'other' instead of 'ext'"      },
    {EM_X86_64,  kept_x86_64,  "call addend", "another addend"                },
    {EM_X86_64,  kept_x86_64,  "addend",      "it refers to .rodata"          },
    {EM_X86_64,  kept_x86_64,  "row",         "wrong unwind row"              },
    {EM_X86_64,  kept_x86_64,  "row late",    "wrong unwind row"              },
    {EM_X86_64,  kept_x86_64,  "row long",    "wrong unwind row"              },
    {EM_AARCH64, kept_aarch64, "",            NULL                            },
    {EM_AARCH64, kept_aarch64, "byte",        "another instruction"           },
    {EM_AARCH64, kept_aarch64, "branch",      "did not become"                },
    {EM_AARCH64, kept_aarch64, "type",        "relocation type"               },
    {EM_AARCH64, kept_aarch64, "no reloc",    "relocation against 'ext' is gone"},
    {EM_AARCH64, kept_aarch64, "symbol",      "'other' instead of 'ext'"      },
    {EM_AARCH64, kept_aarch64, "call addend", "another addend"                },
    {EM_AARCH64, kept_aarch64, "addend",      "it refers to .rodata"          },
    {EM_AARCH64, kept_aarch64, "row",         "wrong unwind row"              },
    {EM_AARCH64, kept_aarch64, "row late",    "wrong unwind row"              },
};

START_TEST(pairs)
{
    check_pair(&cases[_i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("verify_kept");
    TCase *tests = tcase_create("pairs");
    tcase_add_loop_test(tests, pairs, 0, (int)(sizeof cases / sizeof *cases));
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
