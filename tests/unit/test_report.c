/* SPDX-License-Identifier: MIT
 *
 * The report: sizes measured on objects made by hand, sums over sets and rounds, order,
 * and both forms of text.
 */
#include "mo/report.h"

#include <check.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum { UNITS = 3, SECTIONS = 6 };

/* Two inputs and helpers: text 100 + 20 + `helpers`, 40 bytes of data, 8 bytes of .bss,
 * and debug sections that no program loads. */
static const struct object *make_object(struct arena *arena, uint64_t text,
                                        uint64_t helpers)
{
    struct unit *units = arena_new_array(arena, struct unit, UNITS);
    units[0].name = "a.o";
    units[1].name = "lib\"odd\\\x01\xff.a(b.o)";
    units[2] = (struct unit){.name = "whatever", .helpers = true};
    const uint64_t code = SHF_ALLOC | SHF_EXECINSTR;
    struct section *sections = arena_new_array(arena, struct section, SECTIONS);
    uint8_t *zeros = arena_alloc(arena, 1000);
    sections[1] =
        (struct section){.name = ".text.a", .type = SHT_PROGBITS, .flags = code};
    sections[1].data = (struct bytes){zeros, text};
    sections[2] = (struct section){.name = ".data", .type = SHT_PROGBITS, .unit = 1};
    sections[2].flags = SHF_ALLOC | SHF_WRITE;
    sections[2].data = (struct bytes){zeros, 40};
    sections[3] =
        (struct section){.name = ".bss", .type = SHT_NOBITS, .flags = SHF_ALLOC};
    sections[3].data.size = 8;
    sections[4] = (struct section){.name = ".debug_info", .type = SHT_PROGBITS};
    sections[4].data = (struct bytes){zeros, 500};
    sections[5] = (struct section){
        .name = ".text.outlined", .type = SHT_PROGBITS, .flags = code, .unit = 2};
    sections[5].data = (struct bytes){zeros, helpers};
    struct object *object = arena_new_one(arena, struct object);
    *object = (struct object){.name = "out.o",
                              .machine = EM_AARCH64,
                              .units = units,
                              .unit_count = UNITS,
                              .sections = sections,
                              .section_count = SECTIONS};
    return object;
}

static struct objects one(struct arena *arena, const struct object *object)
{
    const struct object **items = arena_new_array(arena, const struct object *, 1);
    items[0] = object;
    return (struct objects){items, 1};
}

START_TEST(measures_what_is_loaded)
{
    struct arena *arena = arena_new();
    struct objects objects = one(arena, make_object(arena, 100, 20));
    struct sizes sizes = sizes_of(&objects);
    ck_assert_uint_eq(sizes.text, 120);
    ck_assert_uint_eq(sizes.eh_frame, 0);
    ck_assert_uint_eq(sizes.eh_frame_hdr, 0);
    ck_assert_uint_eq(sizes.loaded, 160);
    arena_free(arena);
}
END_TEST

static struct plan make_plan(struct arena *arena)
{
    struct helper *helpers = arena_new_array(arena, struct helper, 3);
    helpers[0] =
        (struct helper){.site_count = 2, .body_size = 8, .saving = 5, .hash = 2};
    helpers[1] = (struct helper){
        .first_site = 2, .site_count = 2, .body_size = 12, .saving = 50, .hash = 1};
    helpers[2] = (struct helper){
        .first_site = 4, .site_count = 1, .body_size = 4, .saving = 5, .hash = 1};
    struct site *sites = arena_new_array(arena, struct site, 5);
    sites[0].form = sites[1].form = FORM_TAIL;
    sites[2].form = FORM_SAVE_STACK;
    sites[3].form = FORM_PLAIN;
    sites[4].form = FORM_THUNK;
    return (struct plan){.helpers = helpers,
                         .helper_count = 3,
                         .sites = sites,
                         .site_count = 5,
                         .predicted_code = 30,
                         .predicted_eh = 24,
                         .predicted_hdr = 6,
                         .choice_saving = 50,
                         .choice_bound = 64};
}

static struct report make_report(struct arena *arena)
{
    struct report report = report_new(arena);
    struct objects before = one(arena, make_object(arena, 100, 0));
    struct objects after = one(arena, make_object(arena, 60, 20));
    struct program program = {0};
    program.refused_bytes[REFUSAL_NONE] = 75;
    program.refused_count[REFUSAL_NONE] = 3;
    program.refused_bytes[REFUSAL_LABEL_TAKEN] = 20;
    program.refused_count[REFUSAL_LABEL_TAKEN] = 1;
    program.refused_bytes[REFUSAL_OVERLAP] = 5;
    program.refused_count[REFUSAL_OVERLAP] = 1;
    struct plan plan = make_plan(arena);
    report_refusals(&report, &program);
    report_round(&report, 1, &program, &plan);
    report_round(&report, 2, &program, &plan);
    report_round(&report, 1, &program, &plan); /* another set's first round */
    report_before(&report, &before);
    report_after(&report, &after);
    report.outlined = report.verified = true;
    return report;
}

START_TEST(sums_rounds_and_units)
{
    struct arena *arena = arena_new();
    struct report report = make_report(arena);
    ck_assert_uint_eq(report.rounds.count, 2);
    ck_assert_uint_eq(report.rounds.items[0].helpers, 6);
    ck_assert_uint_eq(report.rounds.items[0].sites, 10);
    ck_assert_int_eq(report.rounds.items[0].code, 60);
    ck_assert_int_eq(report.rounds.items[1].eh_frame, 24);
    ck_assert_int_eq(report.rounds.items[1].eh_frame_hdr, 6);
    ck_assert_int_eq(report.rounds.items[0].choice_saving, 100);
    ck_assert_int_eq(report.rounds.items[0].choice_bound, 128);

    struct sizes before, after;
    report_totals(&report, &before, &after);
    ck_assert_uint_eq(before.text, 100);
    ck_assert_uint_eq(after.text, 80);
    ck_assert_uint_eq(before.loaded, 140);
    ck_assert_uint_eq(after.loaded, 120);
    ck_assert_uint_eq(report.units.count, UNITS);
    ck_assert_str_eq(report.units.items[0].name, "a.o");
    ck_assert_str_eq(report.units.items[2].name, "(helpers)");
    ck_assert_uint_eq(report.units.items[2].before.text, 0);
    ck_assert_uint_eq(report.units.items[2].after.text, 20);
    arena_free(arena);
}
END_TEST

START_TEST(largest_helpers_first)
{
    struct arena *arena = arena_new();
    struct report report = make_report(arena);
    ck_assert_uint_eq(report.helpers.count, 9);
    const struct report_helper *sorted = report_helpers_sorted(arena, &report);
    ck_assert_int_eq(sorted[0].saving, 50);
    ck_assert_uint_eq(sorted[0].round, 1);
    ck_assert_uint_eq(sorted[2].round, 2);
    ck_assert_str_eq(sorted[0].form, "plain+save-stack");
    ck_assert_int_eq(sorted[3].saving, 5);
    ck_assert_str_eq(sorted[3].form, "thunk");
    ck_assert_str_eq(sorted[8].form, "tail");
    arena_free(arena);
}
END_TEST

static char *text_of(struct arena *arena, struct bytes bytes)
{
    return arena_format(arena, "%.*s", (int)bytes.size, (const char *)bytes.at);
}

static void must_say(const char *text, const char *words)
{
    ck_assert_msg(strstr(text, words) != NULL, "'%s' is not in:\n%s", words, text);
}

START_TEST(text_says_all)
{
    struct arena *arena = arena_new();
    struct report report = make_report(arena);
    char *text = text_of(arena, report_text(arena, &report));
    must_say(text, "Verified");
    must_say(text,
             "  code                    100           80           20   20.00 %\n");
    must_say(text, "75.0 % was open to change, 20.0 % sealed");
    must_say(text, "5.0 % frozen");
    must_say(text, refusal_text(REFUSAL_LABEL_TAKEN));
    must_say(text, "(helpers)");
    must_say(text, "Helpers (9)");
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        ck_assert_msg(strlen(line) <= 100, "too long: %s", line);
    arena_free(arena);
}
END_TEST

START_TEST(text_of_nothing)
{
    struct arena *arena = arena_new();
    struct report report = report_new(arena);
    const char *text = text_of(arena, report_text(arena, &report));
    must_say(text, "Merged, not outlined.");
    must_say(text, "0.00 %");
    ck_assert_ptr_null(strstr(text, "Helpers"));
    ck_assert_ptr_null(strstr(text, "Left alone"));
    arena_free(arena);
}
END_TEST

START_TEST(json_says_all)
{
    struct arena *arena = arena_new();
    struct report report = make_report(arena);
    const char *text = text_of(arena, report_json(arena, &report));
    must_say(text, "\"before\": {\"text\": 100, \"eh_frame\": 0, \"eh_frame_hdr\": 0, "
                   "\"loaded\": 140}");
    must_say(text, "\"after\": {\"text\": 80, ");
    must_say(text, "\"saved\": {\"text\": 20, \"eh_frame\": 0, \"eh_frame_hdr\": 0, "
                   "\"loaded\": 20}");
    must_say(text, "\"saved\": {\"text\": 60, \"eh_frame\": 48, \"eh_frame_hdr\": 12, "
                   "\"loaded\": 120}");
    must_say(text, "\"form\": \"plain+save-stack\", \"saved\": 50}");
    must_say(text, "{\"reason\": \"LABEL_TAKEN\", \"level\": \"sealed\"");
    must_say(text, "\"verified\": true");
    must_say(text, "{\"name\": \"lib\\\"odd\\\\\\u0001\\ufffd.a(b.o)\"");
    arena_free(arena);
}
END_TEST

/* UTF-8 goes through; everything else becomes U+FFFD (RFC 3629 section 4). */
static const struct {
    const char *name, *written;
} names[] = {
    {"plain.o",          "\"plain.o\""                     },
    {"\xc3\xa4.o",       "\"\xc3\xa4.o\""                  },
    {"\xe2\x82\xac",     "\"\xe2\x82\xac\""                },
    {"\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\""            },
    {"\xc0\x80",         "\"\\ufffd\\ufffd\""              },
    {"\xed\xa0\x80",     "\"\\ufffd\\ufffd\\ufffd\""       },
    {"\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""},
    {"cut\xe2\x82",      "\"cut\\ufffd\\ufffd\""           },
    {"tab\tline\n",      "\"tab\\u0009line\\u000a\""       },
};

START_TEST(json_escapes)
{
    struct arena *arena = arena_new();
    struct report report = report_new(arena);
    const struct object *made = make_object(arena, 4, 0);
    struct object object = *made;
    struct unit units[UNITS] = {{.name = names[_i].name}};
    object.units = units;
    object.section_count = 2;
    struct objects objects = one(arena, &object);
    report_before(&report, &objects);
    must_say(text_of(arena, report_json(arena, &report)), names[_i].written);
    arena_free(arena);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("report");
    TCase *tests = tcase_create("report");
    tcase_add_test(tests, measures_what_is_loaded);
    tcase_add_test(tests, sums_rounds_and_units);
    tcase_add_test(tests, largest_helpers_first);
    tcase_add_test(tests, text_says_all);
    tcase_add_test(tests, text_of_nothing);
    tcase_add_test(tests, json_says_all);
    tcase_add_loop_test(tests, json_escapes, 0, (int)(sizeof names / sizeof *names));
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
