/* SPDX-License-Identifier: MIT
 *
 * Work in parts, and what its results are handed over in: arenas that take in others,
 * row tables that lie over one.
 */
#include "mo/parallel.h"
#include "mo/unwind.h"

#include <check.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { PARTS = 500 };

struct count {
    atomic_int done[PARTS];       /* how often */
    atomic_bool busy[MOST_WORKERS];
    atomic_int overlaps, strangers; /* of equal workers, of numbers too large */
    uint32_t workers;
};

static void count_part(void *context, uint32_t part, uint32_t worker)
{
    struct count *count = context;
    if (worker >= (count->workers ? count->workers : 1)) {
        atomic_fetch_add(&count->strangers, 1);
        return;
    }
    if (atomic_exchange(&count->busy[worker], true))
        atomic_fetch_add(&count->overlaps, 1);
    atomic_fetch_add(&count->done[part], 1);
    nanosleep(&(struct timespec){.tv_nsec = 10000}, NULL);
    atomic_store(&count->busy[worker], false);
}

static const uint32_t workers[] = {0, 1, 2, 7, MOST_WORKERS};

START_TEST(test_parts)
{
    static struct count count;
    memset(&count, 0, sizeof count);
    count.workers = workers[_i];
    parallel_do(count.workers, PARTS, count_part, &count);
    parallel_do(count.workers, 0, count_part, &count);
    for (int i = 0; i < PARTS; i++)
        ck_assert_int_eq(atomic_load(&count.done[i]), 1);
    ck_assert_int_eq(atomic_load(&count.overlaps), 0);
    ck_assert_int_eq(atomic_load(&count.strangers), 0);
}
END_TEST

START_TEST(test_too_many)
{
    static struct count count;
    memset(&count, 0, sizeof count);
    count.workers = MOST_WORKERS;
    parallel_do(UINT32_MAX, PARTS, count_part, &count);
    ck_assert_int_eq(atomic_load(&count.strangers), 0);
    ck_assert_uint_ge(parallel_processors(), 1);
    ck_assert_uint_le(parallel_processors(), MOST_WORKERS);
}
END_TEST

START_TEST(test_adopt)
{
    struct arena *arena = arena_new(), *other = arena_new();
    char *mine = arena_strdup(arena, "mine");
    char *text = arena_strdup(other, "other");
    char *large = arena_alloc(other, 1000000);
    memset(large, 'x', 1000000);
    uint64_t used = arena_used(arena) + arena_used(other);
    arena_adopt(arena, other);
    ck_assert_uint_eq(arena_used(arena), used);
    for (int i = 0; i < 1000; i++) /* does not write into what was adopted */
        memset(arena_alloc(arena, 999), 'y', 999);
    ck_assert_str_eq(mine, "mine");
    ck_assert_str_eq(text, "other");
    ck_assert_int_eq(large[999999], 'x');
    struct arena *empty = arena_new();
    arena_adopt(empty, arena);
    ck_assert_str_eq(text, "other");
    arena_adopt(empty, arena_new());
    memset(arena_alloc(empty, 100), 'z', 100);
    ck_assert_str_eq(mine, "mine");
    arena_free(empty);
}
END_TEST

static uint32_t intern(struct row_table *table, int64_t offset)
{
    struct row row = {.cfa_register = 7, .cfa_offset = offset};
    return row_intern(table, &row);
}

START_TEST(test_rows)
{
    struct arena *arena = arena_new();
    struct row_table *below = row_table_new(arena);
    uint32_t eight = intern(below, 8), sixteen = intern(below, 16);
    struct row_table *a = row_table_over(arena, below);
    struct row_table *b = row_table_over(arena, below);
    ck_assert_uint_eq(intern(a, 16), sixteen);
    ck_assert_uint_eq(intern(b, 8), eight);
    uint32_t in_a = intern(a, 24), in_b = intern(b, 32);
    ck_assert_uint_gt(in_a, sixteen);
    ck_assert_uint_gt(in_b, sixteen);
    ck_assert_uint_eq(intern(a, 24), in_a);
    ck_assert_int_eq(row_get(a, in_a)->cfa_offset, 24);
    ck_assert_int_eq(row_get(b, in_b)->cfa_offset, 32);
    ck_assert_int_eq(row_get(a, eight)->cfa_offset, 8);
    intern(b, 24);
    row_table_collect(below, a);
    row_table_collect(below, b);
    uint32_t first = intern(below, 24), second = intern(below, 32);
    ck_assert_uint_eq(first, sixteen + 1);
    ck_assert_uint_eq(second, first + 1);
    ck_assert_uint_eq(intern(below, 40), second + 1);
    arena_free(arena);
}
END_TEST

/* Arenas in a row, of which every other one goes: what stays is not touched, and what
 * is handed out again is zero. */
START_TEST(test_release)
{
    enum { ARENAS = 8, SIZE = 5 << 20 };
    struct arena *arenas[ARENAS];
    uint8_t *memory[ARENAS];
    for (int i = 0; i < ARENAS; i++) {
        arenas[i] = arena_new();
        memory[i] = arena_alloc(arenas[i], SIZE);
        memset(memory[i], i + 1, SIZE);
    }
    for (int i = 0; i < ARENAS; i += 2)
        arena_free(arenas[i]);
    arena_release();
    for (int i = 0; i < ARENAS; i += 2) {
        arenas[i] = arena_new();
        memory[i] = arena_alloc(arenas[i], SIZE);
    }
    for (int i = 0; i < ARENAS; i++) {
        uint8_t wanted = i % 2 ? (uint8_t)(i + 1) : 0;
        int others = 0;
        for (int at = 0; at < SIZE; at += 61)
            others += memory[i][at] != wanted;
        ck_assert_int_eq(others, 0);
        arena_free(arenas[i]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("parallel");
    TCase *tests = tcase_create("all");
    tcase_add_loop_test(tests, test_parts, 0, sizeof workers / sizeof *workers);
    tcase_add_test(tests, test_too_many);
    tcase_add_test(tests, test_adopt);
    tcase_add_test(tests, test_release);
    tcase_add_test(tests, test_rows);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
