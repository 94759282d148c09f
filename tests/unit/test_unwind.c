/* SPDX-License-Identifier: MIT
 *
 * src/unwind on small sections: reading, refusing, telling rows apart.
 */
#include "tests/unit/unwind_draft.h"

/* --- reading --- */

START_TEST(rows_of_a_push)
{
    struct fde fde = read_one(PUSH_POP, sizeof PUSH_POP, 0x20);
    ck_assert_int_eq(fde.refusal, REFUSAL_NONE);
    ck_assert_uint_eq(fde.code_section, CODE);
    ck_assert_uint_eq(fde.start, 0x40);
    ck_assert_uint_eq(fde.length, 0x20);
    ck_assert_uint_eq(fde.program_size, sizeof PUSH_POP);
    ck_assert_uint_eq(fde.change_count, 3);
    ck_assert_uint_eq(fde.changes[0].row, row_at_entry(rows, EM_X86_64));
    ck_assert_uint_eq(fde.changes[1].offset, 0x41);
    const struct row *row = row_get(rows, fde.changes[1].row);
    ck_assert_uint_eq(row->cfa_register, 7);
    ck_assert_int_eq(row->cfa_offset, 16);
    ck_assert_uint_eq(row->rule_count, 2);
    ck_assert_int_eq(row_rule(row, 3)->value, -16);
    ck_assert_ptr_null(row_rule(row, 6));
    ck_assert_uint_eq(fde.changes[2].offset, 0x51);
    ck_assert_uint_eq(fde_row_at(&fde, 0x50), fde.changes[1].row);
    ck_assert_uint_eq(fde_row_at(&fde, 0x51), fde.changes[2].row);
    ck_assert_uint_eq(fde_row_at(&fde, 0x3f), ROW_NONE);
}
END_TEST

START_TEST(changes_behind_the_end_do_not_count)
{
    struct fde fde = read_one(PUSH_POP, sizeof PUSH_POP, 0x11);
    ck_assert_uint_eq(fde.change_count, 2);
}
END_TEST

START_TEST(arguments_are_not_remembered)
{
    /* args_size 16; remember; advance; args_size 0, cfa 16; advance; restore */
    static const uint8_t program[] = {0x2e, 16,   0x0a, 0x41, 0x2e,
                                      0,    0x0e, 16,   0x41, 0x0b};
    struct fde fde = read_one(program, sizeof program, 0x20);
    ck_assert_uint_eq(fde.change_count, 3);
    ck_assert(fde.remembers);
    ck_assert_uint_eq(row_get(rows, fde.changes[0].row)->args_size, 16);
    ck_assert_uint_eq(fde.changes[2].row, row_at_entry(rows, EM_X86_64));
}
END_TEST

START_TEST(signing_state)
{
    static const uint8_t program[] = {0x41, 0x2d, 0x41, 0x2d};
    ck_assert_int_eq(read_one(program, sizeof program, 32).refusal, REFUSAL_BAD_FRAME);
    object.machine = EM_AARCH64;
    struct fde fde = read_one(program, sizeof program, 32);
    ck_assert_int_eq(fde.refusal, REFUSAL_NONE);
    ck_assert_uint_eq(fde.changes[1].offset, 0x44); /* factored by 4 */
    ck_assert(row_get(rows, fde.changes[1].row)->ra_signed);
    ck_assert_uint_eq(fde.changes[2].row, row_at_entry(rows, EM_AARCH64));
}
END_TEST

static const struct {
    const char *what;
    uint8_t size, bytes[8];
} BAD_PROGRAMS[] = {
    {"unknown opcode",           1, {0x3f}                                    },
    {"set_loc",                  5, {0x01, 1, 0, 0, 0}                        },
    {"restore without remember", 1, {0x0b}                                    },
    {"cut off operand",          7, {0x0c, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80}},
    {"block leads outside",      2, {0x0f, 0x70}                              },
    {"offset of an expression",  5, {0x0f, 1, 0x30, 0x0e, 8}                  },
    {"column out of range",      4, {0x08, 0xff, 0xff, 0x7f}                  },
};

START_TEST(bad_programs_are_refused)
{
    struct fde fde = read_one(BAD_PROGRAMS[_i].bytes, BAD_PROGRAMS[_i].size, 16);
    ck_assert_msg(fde.refusal == REFUSAL_BAD_FRAME, "%s", BAD_PROGRAMS[_i].what);
    ck_assert_uint_eq(fde.change_count, 0);
    ck_assert_uint_eq(fde.code_section, CODE);
}
END_TEST

static const struct {
    const char *letters;
    bool good, signal_frame, b_key;
} LETTERS[] = {
    {"zR",  true,  false, false},
    {"zRS", true,  true,  false},
    {"zRB", true,  false, true },
    {"zRG", false, false, false},
    {"zRQ", false, false, false},
};

START_TEST(augmentation_letters)
{
    struct buffer out = buffer_new(arena);
    put_cie(&out, LETTERS[_i].letters, (struct bytes){PCREL4, 1});
    struct reloc reloc = pc_begin(out.size, 0);
    put_fde(&out, 0, 16, "", 0);
    set_frames(buffer_bytes(&out), &reloc, 1);
    struct frames frames;
    struct error err = {0};
    ck_assert(frames_read(arena, &object, rows, &frames, &err));
    ck_assert_int_eq(frames.fdes[0].refusal == REFUSAL_NONE, LETTERS[_i].good);
    ck_assert_int_eq(frames.cies[0].refusal == REFUSAL_NONE, LETTERS[_i].good);
    ck_assert_uint_eq(frames.fdes[0].code_section, CODE);
    if (LETTERS[_i].good) {
        ck_assert_int_eq(frames.cies[0].signal_frame, LETTERS[_i].signal_frame);
        ck_assert_int_eq(frames.cies[0].b_key, LETTERS[_i].b_key);
    }
}
END_TEST

/* What makes a whole section fail: one byte changed in a good one. */
static const struct {
    const char *what;
    uint32_t at;
    uint8_t value;
} BROKEN[] = {
    {"length leads outside",           1,      1 },
    {"length below four",              0,      2 },
    {"unknown version",                8,      2 },
    {"CIE pointer to nowhere",         24 + 4, 12},
    {"CIE pointer before the section", 24 + 5, 1 },
    {"record behind the terminator",   0,      0 },
};

START_TEST(broken_sections_fail)
{
    struct buffer out = buffer_new(arena);
    put_plain_cie(&out);
    ck_assert_uint_eq(out.size, 24);
    struct reloc reloc = pc_begin(out.size, 0);
    put_fde(&out, 0, 16, PUSH_POP, sizeof PUSH_POP);
    if (BROKEN[_i].at == 0 && BROKEN[_i].value == 0)
        store_le(out.at, 4, 0);
    else
        out.at[BROKEN[_i].at] = BROKEN[_i].value;
    set_frames(buffer_bytes(&out), &reloc, 1);
    struct frames frames;
    struct error err = {0};
    ck_assert_msg(!frames_read(arena, &object, rows, &frames, &err), "%s",
                  BROKEN[_i].what);
    ck_assert_ptr_nonnull(strstr(err.message, "a.o: .eh_frame+0x"));
}
END_TEST

START_TEST(overlapping_frames_are_refused)
{
    struct buffer out = buffer_new(arena);
    struct reloc relocs[3];
    put_plain_cie(&out);
    for (uint32_t i = 0; i < 3; i++) {
        relocs[i] = pc_begin(out.size, (int64_t)i * 16);
        put_fde(&out, 0, i == 0 ? 17 : 16, "", 0);
    }
    set_frames(buffer_bytes(&out), relocs, 3);
    struct frames frames;
    struct error err = {0};
    ck_assert(frames_read(arena, &object, rows, &frames, &err));
    ck_assert_int_eq(frames.fdes[0].refusal, REFUSAL_BAD_FRAME);
    ck_assert_int_eq(frames.fdes[1].refusal, REFUSAL_BAD_FRAME);
    ck_assert_int_eq(frames.fdes[2].refusal, REFUSAL_NONE);
}
END_TEST

START_TEST(equal_rows_have_equal_numbers)
{
    struct rule rules[2] = {
        {3,  RULE_OFFSET, -16, {NULL, 0}},
        {16, RULE_OFFSET, -8,  {NULL, 0}}
    };
    struct row row = {
        .cfa_register = 7, .cfa_offset = 16, .rules = rules, .rule_count = 2};
    uint32_t first = row_intern(rows, &row);
    rules[0].kind = RULE_SAME_VALUE;
    rules[0].value = 0;
    ck_assert_uint_ne(row_intern(rows, &row), first);
    rules[0] = (struct rule){
        3, RULE_OFFSET, -16, {NULL, 0}
    };
    ck_assert_uint_eq(row_intern(rows, &row), first);
    ck_assert_int_eq(row_rule(row_get(rows, first), 3)->kind, RULE_OFFSET);
}
END_TEST

#define COUNT(table) ((int)(sizeof(table) / sizeof(table)[0]))

int main(void)
{
    Suite *suite = suite_create("unwind");
    TCase *tests = tcase_create("reading");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, rows_of_a_push);
    tcase_add_test(tests, changes_behind_the_end_do_not_count);
    tcase_add_test(tests, arguments_are_not_remembered);
    tcase_add_test(tests, signing_state);
    tcase_add_loop_test(tests, bad_programs_are_refused, 0, COUNT(BAD_PROGRAMS));
    tcase_add_loop_test(tests, augmentation_letters, 0, COUNT(LETTERS));
    tcase_add_loop_test(tests, broken_sections_fail, 0, COUNT(BROKEN));
    tcase_add_test(tests, overlapping_frames_are_refused);
    tcase_add_test(tests, equal_rows_have_equal_numbers);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
