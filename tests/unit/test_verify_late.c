/* SPDX-License-Identifier: MIT
 *
 * The checker on AArch64 prologues whose rows come at their end: a helper is called from
 * the middle, where the row still finds the return address in the link register. The
 * next row must be stated at that call.
 */
#include "verify_draft.h"

#define STP_FRAME 0xa9bf7bfdu /* stp x29, x30, [sp, #-16]! */
#define STP_AT_0  0xa9007bfdu /* stp x29, x30, [sp] */
#define LDP_FRAME 0xa8c17bfdu /* ldp x29, x30, [sp], #16 */
#define MOV_29_SP 0x910003fdu /* mov x29, sp */
#define MOV_X0    0xd2800020u /* mov x0, #1 */
#define MOV_X1    0xd2800041u /* mov x1, #2 */
#define CBZ_NEXT  0xb4000020u /* cbz x0, .+4 */
#define BL        0x94000000u
#define B         0x14000000u
#define RET       0xd65f03c0u

static uint32_t add_words(struct draft *draft, uint32_t unit, const uint32_t *words,
                          uint32_t count, uint32_t *symbol)
{
    return add_code(draft, unit, words, 4 * (uint64_t)count, symbol);
}

/* An entry for the `size` bytes of a function whose frame is known in [start, end). */
static void frame_rows(struct scene *scene, struct draft *draft, uint32_t symbol,
                       uint32_t size, uint32_t start, uint32_t end)
{
    uint32_t entry = row_at_entry(scene->rows, EM_AARCH64);
    uint32_t framed = row(scene, 16, SAVED(29, -16), SAVED(30, -8));
    struct row_change changes[] = {
        {0,     entry },
        {start, framed},
        {end,   entry }
    };
    add_frame(scene, draft, symbol, 0, size, changes, 3);
}

/* A helper holds the rest of the prologue. */
static void late_aarch64(struct scene *scene)
{
    struct draft *old = &scene->before, *new = &scene->after;
    uint32_t text, symbol, helper_symbol;
    uint32_t words[] = {STP_FRAME, MOV_X0, MOV_29_SP, MOV_X1, LDP_FRAME, RET};
    if (has(scene, "branch before the row"))
        words[3] = CBZ_NEXT;
    if (has(scene, "row not stale"))
        words[0] = STP_AT_0;
    text = add_words(old, 0, words, 6, &symbol);
    add_function(old, "f", text, 0, 24, true);
    frame_rows(scene, old, symbol, 24,
               has(scene, "branch before the row") ? 16 : 12, 20);

    uint32_t edited[] = {words[0], BL, words[3], LDP_FRAME, RET};
    text = add_words(new, 0, edited, 5, &symbol);
    add_function(new, "f", text, 0, 20, true);
    frame_rows(scene, new, symbol, 20, has(scene, "told behind") ? 8 : 4, 16);
    uint32_t body[] = {MOV_X0, MOV_29_SP, RET};
    uint32_t helpers = add_words(new, 1, body, 3, &helper_symbol);
    add_function(new, "h", helpers, 0, 12, false);
    add_reloc(new, text, 4, R_AARCH64_CALL26, helper_symbol, 0);
    helper_rows(scene, helper_symbol, 12, row_at_entry(scene->rows, EM_AARCH64));
}

/* A thunk holds the rest of the prologue and the first call. */
static void late_thunk_aarch64(struct scene *scene)
{
    struct draft *old = &scene->before, *new = &scene->after;
    uint32_t text, symbol, helper_symbol;
    uint32_t words[] = {STP_FRAME, MOV_29_SP, MOV_X0, BL, LDP_FRAME, RET};
    text = add_words(old, 0, words, 6, &symbol);
    add_function(old, "f", text, 0, 24, true);
    add_reloc(old, text, 12, R_AARCH64_CALL26, add_undefined(old, "callee"), 0);
    frame_rows(scene, old, symbol, 24, has(scene, "call before the row") ? 16 : 8, 20);

    uint32_t edited[] = {STP_FRAME, BL, LDP_FRAME, RET};
    text = add_words(new, 0, edited, 4, &symbol);
    add_function(new, "f", text, 0, 16, true);
    frame_rows(scene, new, symbol, 16, has(scene, "told behind") ? 8 : 4, 12);
    uint32_t body[] = {MOV_29_SP, MOV_X0, B};
    uint32_t helpers = add_words(new, 1, body, 3, &helper_symbol);
    add_function(new, "h", helpers, 0, 12, false);
    add_reloc(new, text, 4, R_AARCH64_CALL26, helper_symbol, 0);
    add_reloc(new, helpers, 8, R_AARCH64_JUMP26, add_undefined(new, "callee"), 0);
    helper_rows(scene, helper_symbol, 12, row_at_entry(scene->rows, EM_AARCH64));
}

static const struct pair_case cases[] = {
    {EM_AARCH64, late_aarch64,       "",                      NULL                   },
    {EM_AARCH64, late_aarch64,       "told behind",           "loses the return"     },
    {EM_AARCH64, late_aarch64,       "row not stale",         "wrong unwind row"     },
    {EM_AARCH64, late_aarch64,       "branch before the row", "wrong unwind row"     },
    {EM_AARCH64, late_thunk_aarch64, "",                      NULL                   },
    {EM_AARCH64, late_thunk_aarch64, "told behind",           "wrong unwind row"     },
    {EM_AARCH64, late_thunk_aarch64, "call before the row",   "wrong unwind row"     },
};

START_TEST(pairs)
{
    check_pair(&cases[_i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("verify_late");
    TCase *tests = tcase_create("pairs");
    tcase_add_loop_test(tests, pairs, 0, (int)(sizeof cases / sizeof *cases));
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
