/* SPDX-License-Identifier: MIT
 *
 * The checker on x86-64: shifted operands, nesting, tables, mergeable strings.
 */
#include "verify_draft.h"

#define BYTES(...)                                                                     \
    ((const uint8_t[]){__VA_ARGS__}), sizeof((const uint8_t[]){__VA_ARGS__})
#define SUB_24     0x48, 0x83, 0xec, 0x18
#define ADD_24     0x48, 0x83, 0xc4, 0x18
#define MOV_EAX_1  0xb8, 1, 0, 0, 0
#define LOAD(disp) 0x48, 0x8b, 0x4c, 0x24, (disp) /* mov disp(%rsp), %rcx */
#define CALL_REL   0xe8, 0, 0, 0, 0
#define JMP_REL    0xe9, 0, 0, 0, 0
#define RETQ       0xc3

static void stack_rows(struct scene *scene, struct draft *draft, uint32_t symbol,
                       uint32_t size, uint32_t end)
{
    uint32_t entry = row_at_entry(scene->rows, EM_X86_64);
    struct row_change changes[] = {
        {0,         entry    },
        {4,         row(scene, 32, SAVED(16, -8), NONE)},
        {end, entry      }
    };
    add_frame(scene, draft, symbol, 0, size, changes, 3);
}

static void plain_x86_64(struct scene *scene)
{
    struct draft *old = &scene->before, *new = &scene->after;
    uint32_t text, symbol, helpers, helper_symbol;
    if (has(scene, "red zone"))
        text = add_code(old, 0,
                        BYTES(SUB_24, MOV_EAX_1, LOAD(8), ADD_24, LOAD(0xf8), RETQ),
                        &symbol);
    else
        text = add_code(
            old, 0, BYTES(SUB_24, MOV_EAX_1, LOAD(8), ADD_24, LOAD(8), RETQ), &symbol);
    add_function(old, "f", text, 0, 24, true);
    stack_rows(scene, old, symbol, 24, 18);
    if (has(scene, "red zone"))
        text = add_code(new, 0, BYTES(SUB_24, CALL_REL, ADD_24, LOAD(0xf8), RETQ),
                        &symbol);
    else
        text =
            add_code(new, 0, BYTES(SUB_24, CALL_REL, ADD_24, LOAD(8), RETQ), &symbol);
    add_function(new, "f", text, 0, 19, true);
    stack_rows(scene, new, symbol, 19, 13);
    if (has(scene, "not shifted"))
        helpers = add_code(new, 1, BYTES(MOV_EAX_1, LOAD(8), RETQ), &helper_symbol);
    else if (has(scene, "red zone"))
        helpers = add_code(new, 1, BYTES(MOV_EAX_1, LOAD(16), RETQ), &helper_symbol);
    else if (has(scene, "no return"))
        helpers = add_code(new, 1, BYTES(MOV_EAX_1, LOAD(16), 0x90), &helper_symbol);
    else
        helpers = add_code(new, 1, BYTES(MOV_EAX_1, LOAD(16), RETQ), &helper_symbol);
    add_function(new, "h", helpers, 0, 11, false);
    add_reloc(new, text, 5, R_X86_64_PLT32, helper_symbol, -4);
    uint32_t plain = row_at_entry(scene->rows, EM_X86_64);
    helper_rows(scene, helper_symbol, 11,
                has(scene, "helper row") ? row(scene, 16, SAVED(16, -8), NONE) : plain);
}

/* A helper that calls a helper: 16 bytes of shift in the inner one, and a thunk's end.
 */
static void nested_x86_64(struct scene *scene)
{
    struct draft *old = &scene->before, *new = &scene->after;
    uint32_t text, symbol, helpers, helper_symbol;
    text = add_code(
        old, 0, BYTES(SUB_24, MOV_EAX_1, LOAD(8), MOV_EAX_1, ADD_24, JMP_REL), &symbol);
    add_function(old, "f", text, 0, 28, true);
    add_reloc(old, text, 24, R_X86_64_PLT32, add_undefined(old, "callee"), -4);
    stack_rows(scene, old, symbol, 28, 23);
    text = add_code(new, 0, BYTES(SUB_24, CALL_REL, ADD_24, JMP_REL), &symbol);
    add_function(new, "f", text, 0, 18, true);
    stack_rows(scene, new, symbol, 18, 13);
    /* outer: mov, call inner, mov, ret; inner: load, ret */
    if (has(scene, "inner shift"))
        helpers = add_code(new, 1,
                           BYTES(MOV_EAX_1, CALL_REL, MOV_EAX_1, RETQ, LOAD(16), RETQ),
                           &helper_symbol);
    else
        helpers = add_code(new, 1,
                           BYTES(MOV_EAX_1, CALL_REL, MOV_EAX_1, RETQ, LOAD(24), RETQ),
                           &helper_symbol);
    add_function(new, "outer", helpers, 0, 16, false);
    add_function(new, "inner", helpers, 16, 6, false);
    add_reloc(new, text, 5, R_X86_64_PLT32, helper_symbol, -4);
    add_reloc(new, text, 14, R_X86_64_PLT32,
              add_undefined(new, has(scene, "wrong callee") ? "other" : "callee"), -4);
    add_reloc(new, helpers, 6, R_X86_64_PLT32, helper_symbol,
              has(scene, "endless") ? -4 : 12);
    helper_rows(scene, helper_symbol, 22, row_at_entry(scene->rows, EM_X86_64));
}

/* switch (edi) through a table of four; two of the cases call what is a helper now. */
static void table_x86_64(struct scene *scene)
{
#define DISPATCH                                                                       \
    0x83, 0xff, 3,                    /*  0 cmp $3, %edi */                            \
        0x77, 0x12,                   /*  3 ja 23 */                                   \
        0x89, 0xff,                   /*  5 mov %edi, %edi */                          \
        0x48, 0x8d, 0x05, 0, 0, 0, 0, /*  7 lea table(%rip), %rax */                   \
        0x48, 0x63, 0x14, 0xb8,       /* 14 movslq (%rax,%rdi,4), %rdx */              \
        0x48, 0x01, 0xc2,             /* 18 add %rax, %rdx */                          \
        0xff, 0xe2                    /* 21 jmp *%rdx */
    static const int64_t old_cases[4] = {23, 24, 35, 46};
    static const int64_t new_cases[4] = {23, 24, 30, 36};
    struct draft *old = &scene->before, *new = &scene->after;
    uint32_t text, symbol, table, table_symbol, helpers, helper_symbol;
    static const uint8_t zeros[16];
    text = add_code(old, 0,
                    BYTES(DISPATCH, RETQ, MOV_EAX_1, MOV_EAX_1, RETQ, MOV_EAX_1,
                          MOV_EAX_1, RETQ, RETQ),
                    &symbol);
    add_function(old, "f", text, 0, 47, true);
    table = add_section(old, ".rodata", 0, 0, zeros, 16, &table_symbol);
    add_reloc(old, text, 10, R_X86_64_PC32, table_symbol, -4);
    for (uint32_t i = 0; i < 4; i++)
        add_reloc(old, table, 4 * i, R_X86_64_PC32, symbol, old_cases[i] + 4 * i);

    text = add_code(new, 0, BYTES(DISPATCH, RETQ, CALL_REL, RETQ, CALL_REL, RETQ, RETQ),
                    &symbol);
    add_function(new, "f", text, 0, 37, true);
    table = add_section(new, ".rodata", 0, 0, zeros, 16, &table_symbol);
    add_reloc(new, text, 10, R_X86_64_PC32, table_symbol,
              has(scene, "wrong table") ? 0 : -4);
    for (uint32_t i = 0; i < 4; i++)
        add_reloc(new, table, 4 * i, R_X86_64_PC32, symbol,
                  new_cases[has(scene, "wrong entry") && i == 2 ? 1 : i] + 4 * i +
                      (has(scene, "middle") && i == 3));
    helpers = add_code(new, 1, BYTES(MOV_EAX_1, MOV_EAX_1, RETQ), &helper_symbol);
    add_function(new, "h", helpers, 0, 11, false);
    add_reloc(new, text, 25, R_X86_64_PLT32, helper_symbol, -4);
    add_reloc(new, text, 31, R_X86_64_PLT32, helper_symbol, -4);
}

/* A string that two objects have: a helper may use either, under a hidden name. */
static void strings_x86_64(struct scene *scene)
{
#define LEA_RAX 0x48, 0x8d, 0x05, 0, 0, 0, 0
    struct draft *old = &scene->before, *new = &scene->after;
    uint32_t text, symbol, one, two, ignored, helpers, helper_symbol;
    text = add_code(old, 0, BYTES(LEA_RAX, MOV_EAX_1, RETQ), &symbol);
    add_function(old, "f", text, 0, 13, true);
    one = add_section(old, ".rodata.1", SHF_MERGE | SHF_STRINGS, 0, "a\0text", 7,
                      &ignored);
    two = add_section(old, ".rodata.2", SHF_MERGE | SHF_STRINGS, 0, "text\0b", 7,
                      &ignored);
    old->sections[one].entry_size = old->sections[two].entry_size = 1;
    struct symbol string = {.name = "string", .section = one, .value = 2};
    add_reloc(old, text, 3, R_X86_64_PC32, add_symbol(old, string), -4);

    text = add_code(new, 0, BYTES(CALL_REL, RETQ), &symbol);
    add_function(new, "f", text, 0, 6, true);
    one = add_section(new, ".rodata.1", SHF_MERGE | SHF_STRINGS, 0, "a\0text", 7,
                      &ignored);
    two = add_section(new, ".rodata.2", SHF_MERGE | SHF_STRINGS, 0, "text\0b", 7,
                      &ignored);
    new->sections[one].entry_size = new->sections[two].entry_size = 1;
    bool same = has(scene, "same place");
    string = (struct symbol){.name = "string.set",
                             .section = same ? one : two,
                             .value = same                         ? 2
                                      : has(scene, "other string") ? 5
                                                                   : 0,
                             .bind = STB_GLOBAL,
                             .other = has(scene, "shown") ? STV_DEFAULT : STV_HIDDEN};
    uint32_t name = add_symbol(new, string);
    helpers = add_code(new, 1, BYTES(LEA_RAX, MOV_EAX_1, RETQ), &helper_symbol);
    add_function(new, "h", helpers, 0, 13, false);
    add_reloc(new, text, 1, R_X86_64_PLT32, helper_symbol, -4);
    add_reloc(new, helpers, 3, R_X86_64_PC32, name,
              has(scene, "in its middle") ? -3 : -4);
}

/* A branch around a site, resolved by the assembler: rel8 in both. */
static void branch_x86_64(struct scene *scene)
{
    struct draft *old = &scene->before, *new = &scene->after;
    uint32_t text, symbol, helpers, helper_symbol;
    text = add_code(old, 0, BYTES(0x74, 10, MOV_EAX_1, MOV_EAX_1, RETQ, 0x90, RETQ),
                    &symbol);
    add_function(old, "f", text, 0, 13, true);
    add_function(old, "g", text, 14, 1, true);
    if (has(scene, "wrong branch"))
        text = add_code(new, 0, BYTES(0x74, 6, CALL_REL, RETQ, RETQ), &symbol);
    else if (has(scene, "code behind"))
        text = add_code(new, 0, BYTES(0x74, 5, CALL_REL, RETQ, 0xf4, RETQ), &symbol);
    else
        text = add_code(new, 0, BYTES(0x74, 5, CALL_REL, RETQ, RETQ), &symbol);
    bool longer = has(scene, "code behind");
    add_function(new, "f", text, 0, 8, true);
    add_function(new, "g", text, longer ? 9 : 8, 1, true);
    helpers = add_code(new, 1, BYTES(MOV_EAX_1, MOV_EAX_1, RETQ), &helper_symbol);
    add_function(new, "h", helpers, 0, 11, false);
    add_reloc(new, text, 3, R_X86_64_PLT32, helper_symbol, -4);
}

/* A function in two parts: what the one keeps below SP is there in the other, too. */
static void cold_x86_64(struct scene *scene)
{
    struct draft *old = &scene->before, *new = &scene->after;
    uint32_t text, symbol, helpers, helper_symbol;
    const char *name = has(scene, "of another") ? "g.cold" : "f.cold";
    bool below = has(scene, "below");
    text = add_code(old, 0, BYTES(MOV_EAX_1, MOV_EAX_1, RETQ, LOAD(0xf8), RETQ), &symbol);
    add_function(old, name, text, 0, 11, true);
    if (below || has(scene, "of another"))
        add_function(old, "f", text, 11, 6, true);
    text = add_code(new, 0, BYTES(CALL_REL, RETQ, LOAD(0xf8), RETQ), &symbol);
    add_function(new, name, text, 0, 6, true);
    if (below || has(scene, "of another"))
        add_function(new, "f", text, 6, 6, true);
    helpers = add_code(new, 1, BYTES(MOV_EAX_1, MOV_EAX_1, RETQ), &helper_symbol);
    add_function(new, "h", helpers, 0, 11, false);
    add_reloc(new, text, 1, R_X86_64_PLT32, helper_symbol, -4);
}

/* --- the table --- */

static const struct pair_case cases[] = {
    {EM_X86_64, plain_x86_64,   "",              NULL                         },
    {EM_X86_64, plain_x86_64,   "not shifted",   "another instruction"        },
    {EM_X86_64, plain_x86_64,   "red zone",      "below SP"                   },
    {EM_X86_64, plain_x86_64,   "no return",     "moves SP"                   },
    {EM_X86_64, plain_x86_64,   "helper row",    "called helper"              },
    {EM_X86_64, nested_x86_64,  "",              NULL                         },
    {EM_X86_64, nested_x86_64,  "inner shift",   "another instruction"        },
    {EM_X86_64, nested_x86_64,  "wrong callee",  "'other' instead of 'callee'"},
    {EM_X86_64, nested_x86_64,  "endless",       "another instruction"        },
    {EM_X86_64, table_x86_64,   "",              NULL                         },
    {EM_X86_64, table_x86_64,   "wrong entry",   "entry 2 of a jump table"    },
    {EM_X86_64, table_x86_64,   "middle",        "entry 3 of a jump table"    },
    {EM_X86_64, table_x86_64,   "wrong table",   "it refers to"               },
    {EM_X86_64, strings_x86_64, "",              NULL                         },
    {EM_X86_64, strings_x86_64, "same place",    NULL                         },
    {EM_X86_64, strings_x86_64, "other string",  "it refers to"               },
    {EM_X86_64, strings_x86_64, "in its middle", "it refers to"               },
    {EM_X86_64, strings_x86_64, "shown",         "others can redefine"        },
    {EM_X86_64, branch_x86_64,  "",              NULL                         },
    {EM_X86_64, branch_x86_64,  "wrong branch",  "did not become"             },
    {EM_X86_64, branch_x86_64,  "code behind",   "more code"                  },
    {EM_X86_64, cold_x86_64,    "below",         "below SP"                   },
    {EM_X86_64, cold_x86_64,    "of another",    NULL                         },
};

START_TEST(pairs)
{
    check_pair(&cases[_i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("verify_x86_64");
    TCase *tests = tcase_create("pairs");
    tcase_add_loop_test(tests, pairs, 0, (int)(sizeof cases / sizeof *cases));
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
