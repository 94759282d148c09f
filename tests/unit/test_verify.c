/* SPDX-License-Identifier: MIT
 *
 * The checker on AArch64: forms, rows, the link register.
 */
#include "verify_draft.h"

#define STP_FRAME 0xa9bf7bfdu /* stp x29, x30, [sp, #-16]! */
#define LDP_FRAME 0xa8c17bfdu /* ldp x29, x30, [sp], #16 */
#define MOV_X0    0xd2800020u /* mov x0, #1 */
#define MOV_X1    0xd2800041u /* mov x1, #2 */
#define MOV_X1_3  0xd2800061u /* mov x1, #3 */
#define MOV_X9    0xd2800029u /* mov x9, #1 */
#define MOV_X9_30 0xaa1e03e9u /* mov x9, x30 */
#define MOV_30_X9 0xaa0903feu /* mov x30, x9 */
#define MOV_10_30 0xaa1e03eau /* mov x10, x30 */
#define MOV_30_10 0xaa0a03feu /* mov x30, x10 */
#define PUSH_X30  0xf81f0ffeu /* str x30, [sp, #-16]! */
#define POP_X30   0xf84107feu /* ldr x30, [sp], #16 */
#define LDR_SP_8  0xf94007e2u /* ldr x2, [sp, #8] */
#define LDR_SP_16 0xf9400be2u /* ldr x2, [sp, #16] */
#define LDR_SP_24 0xf9400fe2u /* ldr x2, [sp, #24] */
#define SUB_SP    0xd10043ffu /* sub sp, sp, #16 */
#define BL        0x94000000u
#define B         0x14000000u
#define RET       0xd65f03c0u
#define WORDS(...)                                                                     \
    ((const uint32_t[]){__VA_ARGS__}), sizeof((const uint32_t[]){__VA_ARGS__})

static void frame_rows(struct scene *scene, struct draft *draft, uint32_t symbol,
                       uint32_t size, uint32_t end, bool flawed)
{
    uint32_t entry = row_at_entry(scene->rows, EM_AARCH64);
    uint32_t framed = row(scene, 16, SAVED(29, -16), SAVED(30, -8));
    if (flawed)
        framed = row(scene, 16, SAVED(29, -16), SAVED(30, -16));
    struct row_change changes[] = {
        {0,   entry },
        {4,   framed},
        {end, entry }
    };
    add_frame(scene, draft, symbol, 0, size, changes, 3);
}

/* f saves its return address; its middle is called. `probe` refers into f. */
static void plain_aarch64(struct scene *scene)
{
    struct draft *old = &scene->before, *new = &scene->after;
    uint32_t text, symbol, data, ignored, helpers, helper_symbol;
    static const uint64_t zero, other = 1;
    text = add_code(old, 0, WORDS(STP_FRAME, MOV_X0, MOV_X1, LDR_SP_8, LDP_FRAME, RET),
                    &symbol);
    add_function(old, "f", text, 0, 24, true);
    data = add_section(old, ".data", SHF_WRITE, 0, &zero, 8, &ignored);
    add_reloc(old, data, 0, R_AARCH64_ABS64, symbol, 16);
    frame_rows(scene, old, symbol, 24, 20, false);

    text = add_code(new, 0, WORDS(STP_FRAME, BL, LDP_FRAME, RET), &symbol);
    add_function(new, has(scene, "symbol gone") ? "g" : "f", text, 0,
                 has(scene, "symbol size") ? 12 : 16, true);
    data = add_section(new, ".data", SHF_WRITE, 0,
                       has(scene, "data byte") ? &other : &zero, 8, &ignored);
    add_reloc(new, data, 0, R_AARCH64_ABS64, symbol, has(scene, "data ref") ? 4 : 8);
    frame_rows(scene, new, symbol, 16, has(scene, "row late") ? 8 : 12,
               has(scene, "wrong row"));
    if (has(scene, "shifted"))
        helpers =
            add_code(new, 1, WORDS(MOV_X0, MOV_X1, LDR_SP_16, RET), &helper_symbol);
    else if (has(scene, "dropped"))
        helpers = add_code(new, 1, WORDS(MOV_X0, LDR_SP_8, RET, RET), &helper_symbol);
    else if (has(scene, "added"))
        helpers = add_code(new, 1, WORDS(MOV_X0, MOV_X1, LDR_SP_8, MOV_X0, RET),
                           &helper_symbol);
    else if (has(scene, "another"))
        helpers =
            add_code(new, 1, WORDS(MOV_X0, MOV_X1_3, LDR_SP_8, RET), &helper_symbol);
    else
        helpers =
            add_code(new, 1, WORDS(MOV_X0, MOV_X1, LDR_SP_8, RET), &helper_symbol);
    add_function(new, "h", helpers, 0, 16, false);
    add_reloc(new, text, 4, R_AARCH64_CALL26, helper_symbol,
              has(scene, "wrong helper") ? 4 : 0);
    uint32_t plain = row_at_entry(scene->rows, EM_AARCH64);
    helper_rows(scene, helper_symbol, 16,
                has(scene, "helper row") ? row(scene, 16, NONE, NONE) : plain);
    if (has(scene, "new section"))
        add_section(new, ".more", 0, 0, &zero, 8, &ignored);
}

/* A leaf keeps its return address in x9, which it writes anyway, or on the stack. */
static void saving_aarch64(struct scene *scene, bool stack)
{
    struct draft *old = &scene->before, *new = &scene->after;
    uint32_t text, symbol, helpers, helper_symbol;
    bool forgotten = has(scene, "not restored"),
         foreign = has(scene, "foreign scratch");
    text = add_code(old, 0, WORDS(MOV_X9, MOV_X0, MOV_X1, LDR_SP_8, RET), &symbol);
    add_function(old, "f", text, 0, 20, true);
    uint32_t entry = row_at_entry(scene->rows, EM_AARCH64);
    struct row_change one = {0, entry};
    add_frame(scene, old, symbol, 0, 20, &one, 1);

    uint32_t before = stack ? PUSH_X30 : foreign ? MOV_10_30 : MOV_X9_30;
    uint32_t after = stack ? POP_X30 : foreign ? MOV_30_10 : MOV_30_X9;
    text = add_code(new, 0, WORDS(0, 0, 0, 0, 0), &symbol);
    uint32_t words[5] = {MOV_X9, before, BL, forgotten ? MOV_X0 : after, RET};
    if (has(scene, "unsaved"))
        words[1] = MOV_X9;
    new->sections[text].data.at = arena_copy(scene->arena, words, sizeof words);
    add_function(new, "f", text, 0, 20, true);
    uint32_t kept = stack     ? row(scene, 16, SAVED(30, -16), NONE)
                    : foreign ? row(scene, 0, KEPT(30, 10), NONE)
                              : row(scene, 0, KEPT(30, 9), NONE);
    if (has(scene, "row not kept"))
        kept = entry;
    struct row_change changes[] = {
        {0,      entry},
        {         8,  kept     },
        { has(scene, "row kept long") ? 20 : 16,      entry}
    };
    add_frame(scene, new, symbol, 0, 20, changes, has(scene, "row kept long") ? 2 : 3);
    bool shifted = stack != has(scene, "shift forgotten");
    if (has(scene, "scratch used"))
        helpers =
            add_code(new, 1, WORDS(MOV_X0, MOV_X9, LDR_SP_8, RET), &helper_symbol);
    else if (shifted)
        helpers =
            add_code(new, 1, WORDS(MOV_X0, MOV_X1, LDR_SP_24, RET), &helper_symbol);
    else
        helpers =
            add_code(new, 1, WORDS(MOV_X0, MOV_X1, LDR_SP_8, RET), &helper_symbol);
    if (has(scene, "scratch used"))
        ((uint32_t *)(uintptr_t)old->sections[1].data.at)[2] = MOV_X9;
    add_function(new, "h", helpers, 0, 16, false);
    add_reloc(new, text, 8, R_AARCH64_CALL26, helper_symbol, 0);
    helper_rows(scene, helper_symbol, 16, entry);
}

static void register_aarch64(struct scene *scene)
{
    saving_aarch64(scene, false);
}

static void stack_aarch64(struct scene *scene)
{
    saving_aarch64(scene, true);
}

/* A leaf without any saving: the call would lose the return address. */
static void lost_link_aarch64(struct scene *scene)
{
    struct draft *old = &scene->before, *new = &scene->after;
    uint32_t text, symbol, helpers, helper_symbol;
    struct row_change entry = {0, row_at_entry(scene->rows, EM_AARCH64)};
    text = add_code(old, 0, WORDS(MOV_X0, MOV_X1, RET), &symbol);
    add_function(old, "f", text, 0, 12, true);
    add_frame(scene, old, symbol, 0, 12, &entry, 1);
    bool flawed = has(scene, "called");
    text = add_code(new, 0, WORDS(0, 0), &symbol);
    uint32_t words[2] = {flawed ? BL : B, RET};
    new->sections[text].data =
        (struct bytes){arena_copy(scene->arena, words, sizeof words), flawed ? 8 : 4};
    add_function(new, "f", text, 0, flawed ? 8 : 4, true);
    add_frame(scene, new, symbol, 0, flawed ? 8 : 4, &entry, 1);
    helpers = add_code(new, 1, WORDS(MOV_X0, MOV_X1, RET), &helper_symbol);
    add_function(new, "h", helpers, 0, 12, false);
    add_reloc(new, text, 0, flawed ? R_AARCH64_CALL26 : R_AARCH64_JUMP26, helper_symbol,
              0);
    helper_rows(scene, helper_symbol, 12, entry.row);
}

/* A tail that pops the frame: its rows are the site's, at every instruction. Then g, so
 * that the walk has to come back. */
static void tail_aarch64(struct scene *scene)
{
    struct draft *old = &scene->before, *new = &scene->after;
    uint32_t text, symbol, helpers, helper_symbol;
    text = add_code(old, 0, WORDS(STP_FRAME, MOV_X0, LDP_FRAME, RET, MOV_X0, RET),
                    &symbol);
    add_function(old, "f", text, 0, 16, true);
    add_function(old, "g", text, 16, 8, true);
    frame_rows(scene, old, symbol, 24, 12, false);
    text = add_code(new, 0, WORDS(STP_FRAME, MOV_X0, B, MOV_X0, RET), &symbol);
    add_function(new, "f", text, 0, 12, true);
    add_function(new, "g", text, 12, 8, true);
    frame_rows(scene, new, symbol, 20, 12, false);
    helpers = add_code(new, 1, WORDS(LDP_FRAME, RET), &helper_symbol);
    add_function(new, "h", helpers, 0, 8, false);
    add_reloc(new, text, 8, R_AARCH64_JUMP26, helper_symbol, 0);
    uint32_t entry = row_at_entry(scene->rows, EM_AARCH64);
    uint32_t framed = row(scene, 16, SAVED(29, -16), SAVED(30, -8));
    struct row_change changes[] = {
        {0, has(scene, "tail row") ? entry : framed},
        {4, entry         }
    };
    add_frame(scene, new, helper_symbol, 1, 8, changes, 2);
}

/* The last call of the payload has become a jump. */
static void thunk_aarch64(struct scene *scene)
{
    struct draft *old = &scene->before, *new = &scene->after;
    uint32_t text, symbol, helpers, helper_symbol;
    text = add_code(old, 0, WORDS(STP_FRAME, MOV_X0, BL, LDP_FRAME, RET), &symbol);
    add_function(old, "f", text, 0, 20, true);
    add_reloc(old, text, 8, R_AARCH64_CALL26, add_undefined(old, "callee"), 0);
    frame_rows(scene, old, symbol, 20, 16, false);
    text = add_code(new, 0, WORDS(STP_FRAME, BL, LDP_FRAME, RET), &symbol);
    add_function(new, "f", text, 0, 16, true);
    frame_rows(scene, new, symbol, 16, 12, false);
    helpers = add_code(new, 1, WORDS(MOV_X0, 0), &helper_symbol);
    uint32_t words[2] = {MOV_X0, has(scene, "called") ? BL : B};
    new->sections[helpers].data.at = arena_copy(scene->arena, words, sizeof words);
    add_function(new, "h", helpers, 0, 8, false);
    add_reloc(new, text, 4, R_AARCH64_CALL26, helper_symbol, 0);
    uint32_t callee =
        add_undefined(new, has(scene, "wrong callee") ? "other" : "callee");
    add_reloc(new, helpers, 4,
              has(scene, "called") || has(scene, "call type") ? R_AARCH64_CALL26
                                                              : R_AARCH64_JUMP26,
              callee, has(scene, "addend") ? 4 : 0);
    helper_rows(scene, helper_symbol, 8, row_at_entry(scene->rows, EM_AARCH64));
}

/* What must not be in a called helper: SP moves. There are no rows to give it away. */
static void moving_aarch64(struct scene *scene)
{
    struct draft *old = &scene->before, *new = &scene->after;
    uint32_t text, symbol, helpers, helper_symbol;
    uint32_t middle = has(scene, "moves SP")    ? SUB_SP
                      : has(scene, "reads x30") ? MOV_X9_30
                                                : MOV_X0;
    uint32_t before[4] = {MOV_X0, middle, MOV_X1, RET};
    uint32_t body[3] = {middle, MOV_X1, RET};
    text = add_code(old, 0, arena_copy(scene->arena, before, 16), 16, &symbol);
    add_function(old, "f", text, 0, 16, true);
    text = add_code(new, 0, WORDS(MOV_X0, BL, RET), &symbol);
    add_function(new, "f", text, 0, 12, true);
    helpers = add_code(new, 1, arena_copy(scene->arena, body, 12), 12, &helper_symbol);
    add_function(new, "h", helpers, 0, 12, false);
    add_reloc(new, text, 4, R_AARCH64_CALL26, helper_symbol, 0);
}

/* --- the table --- */

static const struct pair_case cases[] = {
    {EM_AARCH64, plain_aarch64,     "",                NULL                         },
    {EM_AARCH64, plain_aarch64,     "shifted",         "another instruction"        },
    {EM_AARCH64, plain_aarch64,     "dropped",         "another instruction"        },
    {EM_AARCH64, plain_aarch64,     "added",           "touches the return address" },
    {EM_AARCH64, plain_aarch64,     "another",         "another instruction"        },
    {EM_AARCH64, plain_aarch64,     "wrong helper",    "another instruction"        },
    {EM_AARCH64, plain_aarch64,     "wrong row",       "wrong unwind row"           },
    {EM_AARCH64, plain_aarch64,     "row late",        "wrong unwind row"           },
    {EM_AARCH64, plain_aarch64,     "helper row",      "called helper"              },
    {EM_AARCH64, plain_aarch64,     "no helper row",   "called helper"              },
    {EM_AARCH64, plain_aarch64,     "symbol gone",     "'f' is gone"                },
    {EM_AARCH64, plain_aarch64,     "symbol size",     "instructions are missing"   },
    {EM_AARCH64, plain_aarch64,     "data byte",       "the data differs"           },
    {EM_AARCH64, plain_aarch64,     "data ref",        "did not become"             },
    {EM_AARCH64, plain_aarch64,     "new section",     "the section is new"         },
    {EM_AARCH64, register_aarch64,  "",                NULL                         },
    {EM_AARCH64, register_aarch64,  "not restored",    "not restored"               },
    {EM_AARCH64, register_aarch64,  "unsaved",         "another instruction"        },
    {EM_AARCH64, register_aarch64,  "row not kept",    "wrong unwind row"           },
    {EM_AARCH64, register_aarch64,  "row kept long",   "wrong unwind row"           },
    {EM_AARCH64, register_aarch64,  "foreign scratch", "does not write"             },
    {EM_AARCH64, register_aarch64,  "scratch used",    "touches the register"       },
    {EM_AARCH64, register_aarch64,  "shift forgotten", "another instruction"        },
    {EM_AARCH64, stack_aarch64,     "",                NULL                         },
    {EM_AARCH64, stack_aarch64,     "not restored",    "not restored"               },
    {EM_AARCH64, stack_aarch64,     "row not kept",    "wrong unwind row"           },
    {EM_AARCH64, stack_aarch64,     "shift forgotten", "another instruction"        },
    {EM_AARCH64, lost_link_aarch64, "",                NULL                         },
    {EM_AARCH64, lost_link_aarch64, "called",          "loses the return address"   },
    {EM_AARCH64, tail_aarch64,      "",                NULL                         },
    {EM_AARCH64, tail_aarch64,      "tail row",        "wrong unwind row"           },
    {EM_AARCH64, thunk_aarch64,     "",                NULL                         },
    {EM_AARCH64, thunk_aarch64,     "called",          "control flow"               },
    {EM_AARCH64, thunk_aarch64,     "call type",       "relocation type"            },
    {EM_AARCH64, thunk_aarch64,     "wrong callee",    "'other' instead of 'callee'"},
    {EM_AARCH64, thunk_aarch64,     "addend",          "another addend"             },
    {EM_AARCH64, moving_aarch64,    "",                NULL                         },
    {EM_AARCH64, moving_aarch64,    "moves SP",        "moves SP"                   },
    {EM_AARCH64, moving_aarch64,    "reads x30",       "touches the return address" },
};

START_TEST(pairs)
{
    check_pair(&cases[_i]);
}
END_TEST

/* Nothing changed is the same program; and nothing at all is, too. */
START_TEST(identity)
{
    struct scene *scene = make_scene(&cases[0]);
    const struct object *both[2] = {&scene->before.object, &scene->after.object};
    struct error err = {0};
    for (uint32_t i = 0; i < 2; i++) {
        struct objects one = {&both[i], 1};
        ck_assert_msg(outline_verify(&one, &one, &one_worker, &err), "%s", err.message);
    }
    struct objects none = {both, 0}, two = {both, 2}, first = {both, 1};
    ck_assert(outline_verify(&none, &none, &one_worker, &err));
    ck_assert(!outline_verify(&two, &first, &one_worker, &err));
    free_scene(scene);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("verify");
    TCase *tests = tcase_create("pairs");
    tcase_add_loop_test(tests, pairs, 0, (int)(sizeof cases / sizeof *cases));
    tcase_add_test(tests, identity);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
