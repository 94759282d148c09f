/* SPDX-License-Identifier: MIT
 *
 * The checker on AArch64 rows that a compiler tells by the frame pointer, and the output
 * by SP.
 */
#include "verify_draft.h"

#define STP_FRAME 0xa9be7bfdu /* stp x29, x30, [sp, #-32]! */
#define LDP_FRAME 0xa8c27bfdu /* ldp x29, x30, [sp], #32 */
#define LDP_AT_0  0xa9407bfdu /* ldp x29, x30, [sp] */
#define ADD_SP    0x910083ffu /* add sp, sp, #32 */
#define SUB_SP    0xd10043ffu /* sub sp, sp, #16 */
#define ADD_29_SP 0x910043fdu /* add x29, sp, #16 */
#define MOV_29_X0 0xaa0003fdu /* mov x29, x0 */
#define MOV_X0    0xd2800020u /* mov x0, #1 */
#define MOV_X1    0xd2800041u /* mov x1, #2 */
#define CBZ_BACK  0xb4ffffe0u /* cbz x0, .-4 */
#define B_BACK    0x17ffffffu /* b .-4 */
#define NOP       0xd503201fu
#define BL        0x94000000u
#define RET       0xd65f03c0u

static uint32_t frame_row(struct scene *scene, uint32_t base, int64_t cfa)
{
    const struct rule rules[] = {SAVED(29, -32), SAVED(30, -24)};
    return row_intern(scene->rows, &(struct row){.cfa_register = base,
                                                 .cfa_offset = cfa,
                                                 .rules = rules,
                                                 .rule_count = 2});
}

static void add_rows(struct scene *scene, struct draft *draft, uint32_t symbol,
                     uint32_t size, uint32_t start, uint32_t framed)
{
    struct row_change changes[] = {
        {0,     row_at_entry(scene->rows, EM_AARCH64)},
        {start, framed                               },
    };
    add_frame(scene, draft, symbol, 0, size, changes, 2);
}

enum { COUNT = 9 };

/* f's middle is called; the frame pointer is 16 above SP, and 16 below the CFA. */
static void told_aarch64(struct scene *scene)
{
    struct draft *old = &scene->before, *new = &scene->after;
    uint32_t text, symbol, helper_symbol, helpers;
    uint32_t words[COUNT] = {STP_FRAME, ADD_29_SP, MOV_X0,    MOV_X1, NOP,
                             NOP,       NOP,       LDP_FRAME, RET};
    if (has(scene, "SP moves"))
        words[5] = SUB_SP;
    if (has(scene, "SP moves first"))
        words[6] = ADD_SP;
    if (has(scene, "frame set otherwise"))
        words[1] = MOV_29_X0;
    if (has(scene, "frame set again"))
        words[6] = ADD_29_SP;
    if (has(scene, "led to behind")) {
        words[5] = LDP_AT_0;
        words[6] = ADD_SP;
        words[7] = CBZ_BACK;
    }
    if (has(scene, "jumped to behind")) {
        words[5] = LDP_AT_0;
        words[6] = ADD_SP;
        words[7] = RET;
        words[8] = B_BACK - 1;
    }
    if (has(scene, "frame gone first")) {
        words[6] = LDP_AT_0;
        words[7] = ADD_SP;
    }
    text = add_code(old, 0, words, sizeof words, &symbol);
    add_function(old, "f", text, 0, sizeof words, true);
    add_rows(scene, old, symbol, sizeof words, 8, frame_row(scene, 29, 16));

    uint32_t edited[COUNT - 1] = {words[0], words[1], BL};
    memcpy(edited + 3, words + 4, sizeof words - 16);
    text = add_code(new, 0, edited, sizeof edited, &symbol);
    add_function(new, "f", text, 0, sizeof edited, true);
    add_rows(scene, new, symbol, sizeof edited, 8,
             frame_row(scene, 31, has(scene, "height") ? 48 : 32));
    uint32_t body[] = {MOV_X0, MOV_X1, RET};
    helpers = add_code(new, 1, body, sizeof body, &helper_symbol);
    add_function(new, "h", helpers, 0, sizeof body, false);
    add_reloc(new, text, 8, R_AARCH64_CALL26, helper_symbol, 0);
    helper_rows(scene, helper_symbol, sizeof body,
                row_at_entry(scene->rows, EM_AARCH64));
}

static const struct pair_case cases[] = {
    {EM_AARCH64, told_aarch64, "",                    NULL              },
    {EM_AARCH64, told_aarch64, "frame gone first",    NULL              },
    {EM_AARCH64, told_aarch64, "height",              "wrong unwind row"},
    {EM_AARCH64, told_aarch64, "SP moves",            "wrong unwind row"},
    {EM_AARCH64, told_aarch64, "SP moves first",      "wrong unwind row"},
    {EM_AARCH64, told_aarch64, "frame set otherwise", "wrong unwind row"},
    {EM_AARCH64, told_aarch64, "frame set again",     "wrong unwind row"},
    {EM_AARCH64, told_aarch64, "led to behind",       "wrong unwind row"},
    {EM_AARCH64, told_aarch64, "jumped to behind",    "wrong unwind row"},
};

START_TEST(pairs)
{
    check_pair(&cases[_i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("verify_told");
    TCase *tests = tcase_create("pairs");
    tcase_add_loop_test(tests, pairs, 0, (int)(sizeof cases / sizeof *cases));
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
