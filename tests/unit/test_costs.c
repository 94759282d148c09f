/* SPDX-License-Identifier: MIT
 *
 * The report's own arithmetic: alignment of two lists, limits of the size gate, shares
 * of helpers.
 */
#include "mo/baseline.h"
#include "mo/costs.h"
#include "src/report/report_parts.h"

#include <check.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

/* --- alignment --- */

enum { LONGEST = 40 };

/* Length of the longest common subsequence, by the textbook table. */
static uint32_t common(const uint32_t *a, uint32_t a_count, const uint32_t *b,
                       uint32_t b_count)
{
    uint32_t best[LONGEST + 1][LONGEST + 1] = {{0}};
    for (uint32_t i = 1; i <= a_count; i++) {
        for (uint32_t j = 1; j <= b_count; j++) {
            uint32_t up = best[i - 1][j], left = best[i][j - 1];
            best[i][j] = a[i - 1] == b[j - 1] ? best[i - 1][j - 1] + 1
                         : up > left          ? up
                                              : left;
        }
    }
    return best[a_count][b_count];
}

START_TEST(aligns_as_well_as_can_be)
{
    srand(7);
    for (uint32_t round = 0; round < 2000; round++) {
        struct arena *arena = arena_new();
        uint32_t a[LONGEST], b[LONGEST], matched = 0, last = 0;
        uint32_t a_count = (uint32_t)rand() % (LONGEST + 1);
        uint32_t b_count = (uint32_t)rand() % (LONGEST + 1);
        int letters = 1 + rand() % 6;
        for (uint32_t i = 0; i < LONGEST; i++) {
            a[i] = (uint32_t)(rand() % letters);
            b[i] = (uint32_t)(rand() % letters);
        }
        const uint32_t *matches = align(arena, a, a_count, b, b_count);
        for (uint32_t i = 0; i < a_count; i++) {
            if (matches[i] == NO_INDEX)
                continue;
            ck_assert_uint_lt(matches[i], b_count);
            ck_assert_uint_eq(a[i], b[matches[i]]);
            ck_assert(matched == 0 || matches[i] > last);
            last = matches[i];
            matched++;
        }
        ck_assert_uint_eq(matched, common(a, a_count, b, b_count));
        arena_free(arena);
    }
}
END_TEST

/* --- limits --- */

START_TEST(reads_limits)
{
    static const struct {
        const char *text;
        enum scope scope;
        bool is_percent;
        int64_t amount;
    } good[] = {
        {"0",              SCOPE_TOTAL,    false, 0      },
        {"64",             SCOPE_TOTAL,    false, 64     },
        {"0.5%",           SCOPE_TOTAL,    true,  5000   },
        {"total:12.0625%", SCOPE_TOTAL,    true,  120625 },
        {"section:1%",     SCOPE_SECTION,  true,  10000  },
        {"function:128",   SCOPE_FUNCTION, false, 128    },
        {"function:100%",  SCOPE_FUNCTION, true,  1000000},
    };
    static const char *const bad[] = {
        "",    "%",         "-1",  "1.5",     "1.%%", "1 %",     "unit:1",  "0x10",
        "1%x", "function:", ".5%", "total:x", "1e3",  "100001%", "1.23456%"};
    struct limit limit;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ck_assert_msg(limit_parse(good[i].text, &limit), "%s", good[i].text);
        ck_assert_int_eq(limit.scope, good[i].scope);
        ck_assert_int_eq(limit.is_percent, good[i].is_percent);
        ck_assert_int_eq(limit.amount, good[i].amount);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(!limit_parse(bad[i], &limit), "'%s' is taken", bad[i]);
}
END_TEST

/* --- costs --- */

/* f (20 bytes) enters h1 twice, g (10) enters h2; h2 (7) enters h1 (11). */
static struct costs example(struct arena *arena)
{
    static const uint8_t code[64] = {0};
    static const struct reloc text[] = {
        {1,  -4, 3, R_X86_64_PLT32},
        {9,  -4, 3, R_X86_64_PC32 },
        {15, -4, 5, R_X86_64_PLT32}, /* no helper */
        {21, -4, 4, R_X86_64_PLT32},
    };
    static const struct reloc helpers[] = {
        {13, -4, 3, R_X86_64_PLT32},
    };
    static const struct section sections[] = {
        {0                },
        { .name = ".text",
         .type = SHT_PROGBITS,
         .flags = SHF_ALLOC | SHF_EXECINSTR,
         .data = {code, 30},
         .relocs = text,
         .reloc_count = 4,
         .group = NO_INDEX},
        { .name = ".text.outlined",
         .type = SHT_PROGBITS,
         .flags = SHF_ALLOC | SHF_EXECINSTR,
         .data = {code, 18},
         .relocs = helpers,
         .reloc_count = 1,
         .group = NO_INDEX},
    };
    static const struct symbol symbols[] = {
        {.name = ""         },
        {                   .name = "f",                     .size = 20,                           .section = 1, .bind = STB_GLOBAL, .type = STT_FUNC},
        {   .name = "g",                                  .value = 20,                                                         .size = 10, .section = 1, .type = STT_FUNC},
        {               .name = "mo_outlined.1",                              .size = 11,          .section = 2, .type = STT_FUNC},
        {       .name = "mo_outlined.2",
         .value = 11,
         .size = 7,
         .section = 2,
         .type = STT_FUNC},
        {                               .name = "h",                                                             .bind = STB_GLOBAL                                                                                              },
        {.name = "alias",.size = 20,.section = 1, .type = STT_FUNC},
        {.name = "set.0.g",
         .value = 20,
         .size = 10,
         .section = 1,
         .bind = STB_GLOBAL,
         .type = STT_FUNC,
         .other = STV_HIDDEN},
    };
    static const struct unit unit = {.name = "a.o"};
    static const struct object object = {.name = "a.o",
                                         .machine = EM_X86_64,
                                         .units = &unit,
                                         .unit_count = 1,
                                         .sections = sections,
                                         .section_count = 3,
                                         .symbols = symbols,
                                         .symbol_count = 8};
    static const struct object *const items[] = {&object};
    return costs_of(arena, &(struct objects){items, 1});
}

START_TEST(shares_helpers)
{
    struct arena *arena = arena_new();
    struct costs costs = example(arena);
    ck_assert_uint_eq(costs.count, 4);
    ck_assert_str_eq(costs.items[0].name, "f"); /* not its local alias */
    ck_assert_str_eq(costs.items[1].name, "g"); /* not what our rewriting put there */
    ck_assert_uint_eq(costs.entry_count, 4);
    /* h1 is entered at three places: 3 + 4 + 4 bytes. h2 hands on its own and that. */
    ck_assert_uint_eq(costs.items[0].shared + costs.items[1].shared, 11 + 7);
    ck_assert_uint_eq(costs.items[0].shared, 7);
    ck_assert_uint_eq(costs.items[1].shared, 7 + 4);
    ck_assert_uint_eq(costs_at(&costs, 0, 1, 19), 0);
    ck_assert_uint_eq(costs_at(&costs, 0, 1, 20), 1);
    ck_assert_uint_eq(costs_at(&costs, 0, 1, 30), NO_INDEX);
    ck_assert_uint_eq(costs_at(&costs, 0, 2, 11), 3);
    ck_assert_uint_eq(costs_at(&costs, 1, 1, 0), NO_INDEX);
    arena_free(arena);
}
END_TEST

/* --- strings --- */

START_TEST(escapes_names)
{
    static const struct {
        const char *name, *json;
    } names[] = {
        {"plain",             "\"plain\""                    },
        {"a\"b\\c\n\x7f",     "\"a\\\"b\\\\c\\u000a\\u007f\""},
        {"\xc3\xa4",          "\"\xc3\xa4\""                 },
        {"\xc3",              "\"\\ufffd\""                  },
        {"\xed\xa0\x80",      "\"\\ufffd\\ufffd\\ufffd\""    },
        {"\xf0\x9f\x92\xa9!", "\"\xf0\x9f\x92\xa9!\""        },
    };
    struct arena *arena = arena_new();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct buffer out = buffer_new(arena);
        put_json_string(&out, names[i].name);
        buffer_u8(&out, '\0');
        ck_assert_str_eq((const char *)out.at, names[i].json);
    }
    arena_free(arena);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("costs");
    TCase *test = tcase_create("costs");
    suite_add_tcase(suite, test);
    tcase_add_test(test, aligns_as_well_as_can_be);
    tcase_add_test(test, reads_limits);
    tcase_add_test(test, shares_helpers);
    tcase_add_test(test, escapes_names);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
