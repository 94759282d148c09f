/* SPDX-License-Identifier: MIT
 *
 * The offset map on hand-made pieces: two functions, a site in each, padding between
 * them that grows and padding at the end that goes.
 */
#include "outliner/rewrite/rewrite.h"

#include <check.h>
#include <stdlib.h>

/*   old   0    8      20   24 (pad) 28   32    40 41 (pad) 48
 *   new   0    8      12   16 (pad) 16   20    25 26 (gone) 26 */
static const struct piece pieces[] = {
    {0,  0,  PIECE_KEPT,     0},
    {8,  8,  PIECE_REPLACED, 0},
    {20, 12, PIECE_KEPT,     1},
    {24, 16, PIECE_PADDING,  1},
    {28, 16, PIECE_KEPT,     1},
    {32, 20, PIECE_REPLACED, 1},
    {40, 25, PIECE_KEPT,     2},
    {41, 26, PIECE_PADDING,  2},
    {48, 26, PIECE_KEPT,     2},
};
enum { COUNT = sizeof pieces / sizeof *pieces };
static const struct offsets map = {.pieces = pieces, .count = COUNT};

START_TEST(nothing_moved)
{
    const struct offsets none = {.count = 0};
    for (uint32_t i = 0; i < 100; i++) {
        ck_assert_uint_eq(offsets_start(&none, i), i);
        ck_assert_uint_eq(offsets_end(&none, i), i);
    }
    ck_assert_ptr_null(offsets_piece(&none, 5));
}
END_TEST

START_TEST(boundaries)
{
    static const struct {
        uint32_t old, start, end;
    } rows[] = {
        {0,  0,  0 },
        {4,  4,  4 },
        {8,  8,  8 },
        {20, 12, 12},
        {22, 14, 14},
        {24, 16, 16},
        {28, 16, 16},
        {32, 20, 20},
        {40, 25, 25},
        {41, 26, 26},
        {48, 26, 26},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ck_assert_uint_eq(offsets_start(&map, rows[i].old), rows[i].start);
        ck_assert_uint_eq(offsets_end(&map, rows[i].old), rows[i].end);
    }
}
END_TEST

START_TEST(strictly_monotone_in_kept_code)
{
    uint32_t last = 0;
    for (uint32_t old = 1; old < 41; old++) {
        const struct piece *piece = offsets_piece(&map, old);
        if (piece->kind != PIECE_KEPT)
            continue;
        ck_assert_uint_gt(offsets_start(&map, old), last);
        last = offsets_start(&map, old);
    }
}
END_TEST

/* Pieces of 1 to 9 bytes, some of them padding that had none, over several steps. */
START_TEST(index_finds_the_same)
{
    enum { MANY = 100 };
    struct arena *stage = arena_new();
    struct piece many[MANY] = {0};
    for (uint32_t i = 1; i < MANY; i++) {
        bool padding = i % 7 == 3;
        many[i].old_start = many[i - 1].old_start + (padding ? 0 : i * 5 % 9 + 1);
        many[i].new_start = many[i - 1].new_start + (i * 5 % 9 + 1);
    }
    struct offsets plain = {.pieces = many, .count = MANY};
    struct offsets indexed = offsets_make(stage, many, MANY);
    ck_assert_ptr_nonnull(indexed.index);
    for (uint32_t old = 0; old <= many[MANY - 1].old_start; old++) {
        ck_assert_uint_eq(offsets_start(&indexed, old), offsets_start(&plain, old));
        ck_assert_uint_eq(offsets_end(&indexed, old), offsets_end(&plain, old));
        ck_assert_ptr_eq(offsets_piece(&indexed, old), offsets_piece(&plain, old));
    }
    arena_free(stage);
}
END_TEST

/* Two functions that touched, and are 3 bytes apart now: one boundary, two places. */
START_TEST(padding_parts_neighbours)
{
    static const struct piece parted[] = {
        {0,  0,  PIECE_KEPT,    0},
        {8,  5,  PIECE_PADDING, 0},
        {8,  8,  PIECE_KEPT,    0},
        {16, 16, PIECE_KEPT,    0},
    };
    const struct offsets offsets = {.pieces = parted, .count = 4};
    ck_assert_uint_eq(offsets_end(&offsets, 8), 5);
    ck_assert_uint_eq(offsets_start(&offsets, 8), 8);
    ck_assert_uint_eq(offsets_start(&offsets, 0), 0);
    ck_assert_uint_eq(offsets_end(&offsets, 0), 0);
}
END_TEST

/* What is inserted before an instruction lies between its neighbours. */
START_TEST(insertion)
{
    static const struct piece inserted[] = {
        {0, 0,  PIECE_KEPT,     0},
        {4, 4,  PIECE_REPLACED, 0},
        {4, 7,  PIECE_KEPT,     1},
        {8, 11, PIECE_KEPT,     1},
    };
    const struct offsets offsets = {.pieces = inserted, .count = 4};
    ck_assert_uint_eq(offsets_end(&offsets, 4), 4);
    ck_assert_uint_eq(offsets_start(&offsets, 4), 7);
    ck_assert_uint_eq(offsets_end(&offsets, 8), 11);
}
END_TEST

START_TEST(inside_of_a_payload)
{
    offsets_start(&map, 12); /* an assert */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("offsets");
    TCase *tests = tcase_create("offsets");
    tcase_add_test(tests, nothing_moved);
    tcase_add_test(tests, boundaries);
    tcase_add_test(tests, strictly_monotone_in_kept_code);
    tcase_add_test(tests, padding_parts_neighbours);
    tcase_add_test(tests, index_finds_the_same);
    tcase_add_test(tests, insertion);
    tcase_add_test_raise_signal(tests, inside_of_a_payload, 6);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
