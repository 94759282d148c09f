/* SPDX-License-Identifier: MIT
 *
 * The suffix tree against a search that is too simple to be wrong, on strings that are
 * small enough for it.
 */
#include "mo/suffixtree.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t random_state;

static uint32_t random_below(uint32_t limit)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    uint64_t high = (random_state * UINT64_C(0x2545f4914f6cdd1d)) >> 32;
    return (uint32_t)((high * limit) >> 32);
}

/* --- the search --- */

/* What the strings are made of; other values separate. */
enum { ALPHABET = 1000 };

static uint32_t common_length(const uint32_t *values, uint32_t count, uint32_t a,
                              uint32_t b)
{
    uint32_t length = 0;
    while (a + length < count && b + length < count && values[a + length] < ALPHABET &&
           values[a + length] == values[b + length])
        length++;
    return length;
}

/* wanted[length * count + start]: the string at `start`, which has its first occurrence
 * there, is a right-maximal repeat. Two suffixes that part after `length` show one. */
static bool *search_repeats(const uint32_t *values, uint32_t count, uint32_t minimum,
                            uint32_t *found)
{
    bool *wanted = calloc((size_t)count * (count + 1) + 1, 1);
    ck_assert_ptr_nonnull(wanted);
    *found = 0;
    for (uint32_t a = 0; a < count; a++)
        for (uint32_t b = a + 1; b < count; b++) {
            uint32_t length = common_length(values, count, a, b);
            if (length == 0 || length < minimum)
                continue;
            uint32_t first = 0;
            while (common_length(values, count, first, a) < length)
                first++;
            bool *cell = &wanted[length * count + first];
            *found += !*cell;
            *cell = true;
        }
    return wanted;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* `sorted` are the occurrences that the tree gives: they must be all, and once each. */
static void check_occurrences(const uint32_t *values, uint32_t count, uint32_t length,
                              const uint32_t *sorted, uint32_t sorted_count)
{
    uint32_t next = 0;
    for (uint32_t at = 0; at < count; at++)
        if (common_length(values, count, sorted[0], at) >= length) {
            ck_assert_uint_lt(next, sorted_count);
            ck_assert_uint_eq(sorted[next++], at);
        }
    ck_assert_uint_eq(next, sorted_count);
}

/* Preorder: a repeat's interval lies inside the innermost one before it that reaches
 * that far, and there it is longer. */
static void check_preorder(const struct repeats *repeats)
{
    uint32_t *open = malloc(sizeof *open * (repeats->count + 1)), depth = 0;
    ck_assert_ptr_nonnull(open);
    for (uint32_t i = 0; i < repeats->count; i++) {
        const struct repeat *item = &repeats->items[i], *outer;
        for (; depth > 0; depth--) {
            outer = &repeats->items[open[depth - 1]];
            if (item->first < outer->first + outer->count)
                break;
        }
        if (depth > 0) {
            ck_assert_uint_ge(item->first, outer->first);
            ck_assert_uint_le(item->first + item->count, outer->first + outer->count);
            ck_assert_uint_gt(item->length, outer->length);
        }
        open[depth++] = i;
    }
    free(open);
}

static void check_positions(const struct repeats *repeats, uint32_t count)
{
    ck_assert_uint_le(repeats->position_count, count);
    bool *seen = calloc(count + 1, 1);
    ck_assert_ptr_nonnull(seen);
    for (uint32_t i = 0; i < repeats->position_count; i++) {
        ck_assert_uint_lt(repeats->positions[i], count);
        ck_assert(!seen[repeats->positions[i]]);
        seen[repeats->positions[i]] = true;
    }
    free(seen);
}

static void check_string(const uint32_t *values, uint32_t count, uint32_t minimum)
{
    struct arena *arena = arena_new();
    struct repeats repeats = suffixtree_repeats(arena, values, count, ALPHABET, minimum);
    uint32_t wanted_count;
    bool *wanted = search_repeats(values, count, minimum, &wanted_count);
    uint32_t *sorted = malloc(sizeof *sorted * (count + 1));
    ck_assert_ptr_nonnull(sorted);
    check_positions(&repeats, count);
    check_preorder(&repeats);
    ck_assert_uint_eq(repeats.count, wanted_count);
    for (uint32_t i = 0; i < repeats.count; i++) {
        const struct repeat *item = &repeats.items[i];
        ck_assert_uint_ge(item->count, 2);
        ck_assert_uint_le(item->first + item->count, count);
        memcpy(sorted, repeats.positions + item->first, sizeof *sorted * item->count);
        qsort(sorted, item->count, sizeof *sorted, by_number);
        bool *cell = &wanted[item->length * count + sorted[0]];
        ck_assert_msg(*cell, "%u integers at %u: not wanted, or twice", item->length,
                      sorted[0]);
        *cell = false;
        check_occurrences(values, count, item->length, sorted, item->count);
    }
    free(sorted);
    free(wanted);
    arena_free(arena);
}

/* --- strings --- */

START_TEST(short_strings)
{
    static const uint32_t values[] = {5, 5, 5};
    static const uint32_t different[] = {ALPHABET - 1, 0};
    static const uint32_t separators[] = {UINT32_MAX, ALPHABET, ALPHABET};
    for (uint32_t minimum = 0; minimum < 3; minimum++) {
        check_string(NULL, 0, minimum);
        for (uint32_t count = 0; count <= 3; count++)
            check_string(values, count, minimum);
        check_string(different, 2, minimum);
        check_string(separators, 3, minimum);
    }
}
END_TEST

START_TEST(known_answer)
{
    /* banana: "a" at 1 3 5, "ana" at 1 3, "na" at 2 4 */
    static const uint32_t values[] = {2, 1, 3, 1, 3, 1};
    struct arena *arena = arena_new();
    struct repeats repeats = suffixtree_repeats(arena, values, 6, ALPHABET, 1);
    ck_assert_uint_eq(repeats.count, 3);
    uint32_t occurrences = 0, integers = 0;
    for (uint32_t i = 0; i < 3; i++) {
        occurrences += repeats.items[i].count;
        integers += repeats.items[i].length;
    }
    ck_assert_uint_eq(occurrences, 3 + 2 + 2);
    ck_assert_uint_eq(integers, 1 + 3 + 2);
    ck_assert_uint_eq(suffixtree_repeats(arena, values, 6, ALPHABET, 2).count, 2);
    ck_assert_uint_eq(suffixtree_repeats(arena, values, 6, ALPHABET, 4).count, 0);
    arena_free(arena);
}
END_TEST

START_TEST(all_equal)
{
    uint32_t values[120];
    for (uint32_t i = 0; i < 120; i++)
        values[i] = 9;
    for (uint32_t count = 0; count <= 120; count += 1 + count / 3)
        check_string(values, count, 1);
    check_string(values, 100, 50);
}
END_TEST

START_TEST(fibonacci)
{
    uint32_t values[233] = {0, 1}, shorter = 1, longer = 2;
    while (longer < 233) {
        memcpy(values + longer, values, sizeof *values * shorter);
        uint32_t both = longer + shorter;
        shorter = longer;
        longer = both;
        check_string(values, longer, 1);
    }
    check_string(values, 233, 8);
}
END_TEST

START_TEST(tandem)
{
    uint32_t values[150];
    for (uint32_t period = 1; period <= 8; period++) {
        for (uint32_t i = 0; i < 150; i++)
            values[i] = i < 140 ? i % period : 100 + i % 3;
        check_string(values, 150, 1);
        check_string(values, 140, 2);
    }
}
END_TEST

START_TEST(random_strings)
{
    for (uint32_t round = 0; round < 400; round++) {
        uint32_t values[80], letters = 1 + random_below(4);
        uint32_t count = random_below(81);
        for (uint32_t i = 0; i < count; i++)
            values[i] = random_below(letters) * (ALPHABET / 4);
        check_string(values, count, random_below(4));
    }
}
END_TEST

/* As code looks: most tokens once, and copies of what came before. */
START_TEST(large_alphabet)
{
    for (uint32_t round = 0; round < 60; round++) {
        uint32_t values[200];
        for (uint32_t i = 0; i < 200; i++)
            values[i] = i > 10 && random_below(3) ? values[i - 1 - random_below(10)]
                                                  : random_below(ALPHABET);
        for (uint32_t i = 100; i < 130; i++)
            values[i] = values[i - 60];
        check_string(values, 200, 1 + random_below(3));
    }
}
END_TEST

/* Equal separators, side by side and apart: no repeat holds one, and all end there. */
START_TEST(separators)
{
    for (uint32_t round = 0; round < 400; round++) {
        uint32_t values[80], letters = 1 + random_below(4), often = 2 + random_below(10);
        uint32_t count = random_below(81);
        for (uint32_t i = 0; i < count; i++)
            values[i] = random_below(often) ? random_below(letters)
                                            : ALPHABET + random_below(2);
        check_string(values, count, random_below(4));
    }
}
END_TEST

/* Long enough for every kind of growth; two runs, one of them in a used arena. */
START_TEST(same_every_time)
{
    enum { COUNT = 50000 };
    uint32_t *values = malloc(sizeof *values * COUNT);
    ck_assert_ptr_nonnull(values);
    for (uint32_t i = 0; i < COUNT; i++)
        values[i] = random_below(random_below(2) ? 10 : 5000);
    struct arena *one = arena_new(), *two = arena_new();
    arena_alloc(two, 12345);
    struct repeats a = suffixtree_repeats(one, values, COUNT, 5000, 2);
    struct repeats b = suffixtree_repeats(two, values, COUNT, 5000, 2);
    ck_assert_uint_eq(a.count, b.count);
    ck_assert_uint_eq(a.position_count, b.position_count);
    ck_assert_mem_eq(a.items, b.items, sizeof *a.items * a.count);
    ck_assert_mem_eq(a.positions, b.positions, sizeof *a.positions * a.position_count);
    check_positions(&a, COUNT);
    check_preorder(&a);
    arena_free(one);
    arena_free(two);
    free(values);
}
END_TEST

/* The deepest tree there is, and the largest for its string: nothing may recurse, and
 * the memory stays within what mo/suffixtree.h and the design promise. */
START_TEST(deep_and_small)
{
    enum { COUNT = 200000 };
    uint32_t *values = calloc(COUNT, sizeof *values);
    ck_assert_ptr_nonnull(values);
    struct arena *arena = arena_new();
    uint64_t peak;
    struct repeats repeats =
        suffixtree_repeats_measured(arena, values, COUNT, 1, 1, &peak);
    ck_assert_uint_eq(repeats.count, COUNT - 1);
    for (uint32_t i = 0; i < repeats.count; i++)
        ck_assert_uint_eq(repeats.items[i].length + repeats.items[i].count, COUNT + 1);
    ck_assert_uint_le(peak, UINT64_C(64) * COUNT);
    arena_free(arena);
    free(values);
}
END_TEST

int main(void)
{
    const char *text = getenv("MO_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : 20240229;
    printf("seed %" PRIu64 " (MO_SEED sets it)\n", seed);
    random_state = seed ? seed : 1;
    Suite *suite = suite_create("suffixtree");
    TCase *cases = tcase_create("repeats");
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, short_strings);
    tcase_add_test(cases, known_answer);
    tcase_add_test(cases, all_equal);
    tcase_add_test(cases, fibonacci);
    tcase_add_test(cases, tandem);
    tcase_add_test(cases, random_strings);
    tcase_add_test(cases, large_alphabet);
    tcase_add_test(cases, separators);
    tcase_add_test(cases, same_every_time);
    tcase_add_test(cases, deep_and_small);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
