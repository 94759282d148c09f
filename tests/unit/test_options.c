/* SPDX-License-Identifier: MIT
 *
 * The command line: every kind of value, every rule about combinations, the help, and
 * response files.
 */
#include "mo/options.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_WORDS = 16 };

/* Splits at blanks and parses. */
static bool parse(struct arena *session, const char *line, struct options *out,
                  struct error *err)
{
    char *copy = arena_strdup(session, line);
    char *words[MOST_WORDS] = {"mo-link"};
    int count = 1;
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
        ck_assert_int_lt(count, MOST_WORDS);
        words[count++] = word;
    }
    return options_parse(session, count, words, out, err);
}

/* Command lines that make no sense, and what must stand in the message. */
static const struct {
    const char *line, *says;
} refused[] = {
    {"",                                                 "no input files"                                },
    {"-o out.o",                                         "no input files"                                },
    {"a.o",                                              "no output"                                     },
    {"--outline a.o",                                    "no output"                                     },
    {"--outline -R a.o",                                 "no output"                                     },
    {"-R --dump=code a.o",                               "no output"                                     },
    {"a.o -o",                                           "-o wants a value: --output=PATH"               },
    {"a.o --output=",                                    "wants a value"                                 },
    {"a.o -o x -o y",                                    "given twice: 'x' and 'y'"                      },
    {"a.o -o x --bogus",                                 "unknown option '--bogus'"                      },
    {"a.o -o x --outlin",                                "did you mean --outline?"                       },
    {"a.o -o x -outline",                                "did you mean --outline?"                       },
    {"a.o -o x --rerun=3",                               "did you mean --reruns?"                        },
    {"a.o -o x --exlpain=f",                             "did you mean --explain?"                       },
    {"a.o -o x -Q",                                      "unknown option '-Q'"                           },
    {"a.o -o x -vv",                                     "unknown option '-vv'"                          },
    {"a.o -o x --outline=yes",                           "--outline takes no value"                      },
    {"a.o -o x -v=1",                                    "--verbose takes no value"                      },
    {"a.o -o x --outline --reruns=",                     "--reruns wants a value: --reruns=N"            },
    {"a.o -o x --outline --reruns=-1",                   "whole number from 0 to 99, not '-1'"           },
    {"a.o -o x --outline --reruns=100",                  "from 0 to 99"                                  },
    {"a.o -o x --outline --reruns=2x",                   "not '2x'"                                      },
    {"a.o -o x --outline --reruns=99999999999999999999", "from 0 to 99"                                  },
    {"a.o -o x -j -1",                                   "--jobs wants a whole number from 0"            },
    {"a.o -o x --outline --min-saving=0",                "--min-saving wants a whole number from 1"      },
    {"a.o -o x --outline --keep=",                       "--keep wants a value: --keep=GLOB"             },
    {"a.o --dump=nonsense",                              "there is no stage 'nonsense'"                  },
    {"a.o --dump=none",                                  "there is no stage 'none'"                      },
    {"a.o -o x -R=xml",                                  "'xml' is no format"                            },
    {"a.o -o x -R=json:",                                "'json:' is no format"                          },
    {"a.o -o x -",                                       "standard input"                                },
    {"a.o -o x -- cc",                                   "a.o: the command behind '--'"                             },
 /* combinations */
    {"a.o -o x --reruns=2",                              "--reruns has no effect without --outline"      },
    {"a.o --dry-run",                                    "--dry-run has no effect without --outline"     },
    {"a.o -o x/ --set-name=s",                           "--set-name has no effect without --outline"    },
    {"a.o -o x --no-verify",                             "--no-verify has no effect without --outline"   },
    {"a.o -o x --keep=f",                                "--keep has no effect without --outline"        },
    {"a.o -o x --keep-section=f",                        "--keep-section has no effect without --outline"},
    {"a.o -o x --min-saving=8",                          "--min-saving has no effect without --outline"  },
    {"a.o -o x/ --wrap=f",                               "--wrap has no effect without --outline"        },
    {"a.o -o x --outline --wrap=f",                      "--wrap is for a directory"                     },
    {"a.o -o x --no-veneers",                            "--no-veneers has no effect without --outline"  },
    {"a.o -o x --effort=2",                              "--effort has no effect without --outline"      },
    {"a.o -o x --outline --effort=3",                    "--effort wants 1 or 2"                         },
    {"a.o -o x --without=joins",                         "--without has no effect without --outline"     },
    {"a.o -o x --outline --without=luck",                "there is no technique 'luck'"                  },
    {"a.o -o x --drop-alignment",                        "--drop-alignment has no effect without"        },
    {"a.o --dump=code --explain=f",                      "--dump and --explain: one at a time"           },
    {"a.o -o x -R=json --dump=code",                     "--dump and -R=json both print"                 },
    {"a.o -o x -R=json --explain=f",                     "--explain and -R=json both print"              },
    {"a.o -o x --outline --set-name=s",                  "--set-name is for a directory"                 },
    {"a.o --dry-run --outline --set-name=s",             "--set-name is for a directory"                 },
    {"a.o -o x/ --whole-archive",                        "--whole-archive is for a single object"        },
    {"a.o -o x -R=json:x",                               "-o and -R both name 'x'"                  },
    {"a.o -o . --outline",                               "says no name"                                  },
    {"a.o -o ../ --outline",                             "says no name"                                  },
    {"a.o -o / --outline",                               "says no name"                                  },
};

START_TEST(refuses)
{
    struct arena *session = arena_new();
    struct options options;
    struct error err = {0};
    bool ok = parse(session, refused[_i].line, &options, &err);
    ck_assert_msg(!ok && err.set, "'%s' was accepted", refused[_i].line);
    ck_assert_msg(strstr(err.message, refused[_i].says) != NULL,
                  "'%s' says '%s', not '%s'", refused[_i].line, err.message,
                  refused[_i].says);
    arena_free(session);
}
END_TEST

static const char *const accepted[] = {
    "a.o -o x",
    "--outline a.o b.o libc.a -o x",
    "--outline a.o --dry-run",
    "--outline a.o --dry-run -o x/ --set-name=s",
    "--outline a.o --dry-run --whole-archive",
    "--outline -R a.o -o x",
    "--outline -R=json:f --explain=g a.o -o x",
    "a.o --dump=plan --keep=f --keep-section=.x --min-saving=9 --no-veneers",
    "a.o --explain=f --keep=f",
    "a.o --dump=rows -o x",
    "a.o -R -o x",
    "--strip-debug a.o -o x",
    "--outline a.o -o . --set-name=s",
    "--outline a.o -o ./x",
    "--outline a.o --dry-run --wrap=f --wrap g",
    "--outline a.o -o x --no-verify --no-veneers -v",
    "--help --bogus-is-not-reached=0 -h",
};

START_TEST(accepts)
{
    struct arena *session = arena_new();
    struct options options;
    struct error err = {0};
    bool ok = parse(session, accepted[_i], &options, &err);
    /* The last line shows that an unknown option is an error even beside --help. */
    bool expected = strstr(accepted[_i], "bogus") == NULL;
    ck_assert_msg(ok == expected, "'%s' says '%s'", accepted[_i], err.message);
    arena_free(session);
}
END_TEST

START_TEST(stores_every_value)
{
    struct arena *session = arena_new();
    struct options options;
    struct error err = {0};
    ck_assert(parse(session,
                    "--outline --reruns=2 a.o --keep=f* --keep g -oout/ b.a "
                    "--keep-section=.init* --min-saving 12 --set-name=s -j3 "
                    "-R=json:r.json",
                    &options, &err));
    ck_assert(options.outline && !options.dry_run && !options.verbose);
    ck_assert(!options.no_verify && !options.no_veneers && !options.strip_debug);
    ck_assert_uint_eq(options.reruns, 2);
    ck_assert_uint_eq(options.inputs.count, 2);
    ck_assert_str_eq(options.inputs.items[0], "a.o");
    ck_assert_str_eq(options.inputs.items[1], "b.a");
    ck_assert_uint_eq(options.keep.count, 2);
    ck_assert_str_eq(options.keep.items[0], "f*");
    ck_assert_str_eq(options.keep.items[1], "g");
    ck_assert_uint_eq(options.keep_sections.count, 1);
    ck_assert_str_eq(options.keep_sections.items[0], ".init*");
    ck_assert_int_eq(options.min_saving, 12);
    ck_assert_uint_eq(options.jobs, 3);
    ck_assert_str_eq(options.output, "out/");
    ck_assert(options.output_is_directory);
    ck_assert_str_eq(options.set_name, "s");
    ck_assert(options.reports[REPORT_JSON].wanted);
    ck_assert_str_eq(options.reports[REPORT_JSON].path, "r.json");
    ck_assert_uint_eq(options_printed_report(&options), REPORT_NONE);
    arena_free(session);
}
END_TEST

START_TEST(starts_from_defaults)
{
    struct arena *session = arena_new();
    struct options options;
    struct error err = {0};
    ck_assert(parse(session, "a.o -o x", &options, &err));
    ck_assert(!options.outline && !options.output_is_directory && !options.explain);
    ck_assert_uint_eq(options.reruns, 0);
    ck_assert_int_eq(options.min_saving, 1);
    ck_assert_uint_eq(options.jobs, 0);
    ck_assert(!options_want_report(&options));
    ck_assert_uint_eq(options.dump, DUMP_NONE);
    ck_assert(!options_only_look(&options));
    arena_free(session);
}
END_TEST

START_TEST(last_value_counts)
{
    struct arena *session = arena_new();
    struct options options;
    struct error err = {0};
    ck_assert(parse(session, "a.o -o x --outline --reruns=2 --reruns=0 -R=json:f "
                             "-R=json:f",
                    &options, &err));
    ck_assert_uint_eq(options.reruns, 0);
    ck_assert(options.reports[REPORT_JSON].wanted);
    ck_assert_str_eq(options.reports[REPORT_JSON].path, "f");
    arena_free(session);
}
END_TEST

START_TEST(knows_every_stage)
{
    struct arena *session = arena_new();
    struct options options;
    struct error err = {0};
    const char *line =
        arena_format(session, "a.o --dump=%s", dump_stage_name((enum dump_stage)_i));
    ck_assert_msg(parse(session, line, &options, &err), "%s", err.message);
    ck_assert_uint_eq(options.dump, _i);
    ck_assert(options_only_look(&options));
    arena_free(session);
}
END_TEST

START_TEST(existing_directory_needs_no_slash)
{
    struct arena *session = arena_new();
    struct options options;
    struct error err = {0};
    ck_assert(parse(session, "a.o -o /tmp", &options, &err));
    ck_assert(options.output_is_directory);
    arena_free(session);
}
END_TEST

START_TEST(help_mentions_every_option)
{
    struct arena *session = arena_new();
    const char *help = options_help(session);
    for (uint32_t i = 0; options_name(i); i++)
        ck_assert_msg(strstr(help, options_name(i)) != NULL, "%s", options_name(i));
    for (uint32_t i = DUMP_NONE + 1; i < DUMP_COUNT; i++)
        ck_assert_ptr_nonnull(strstr(help, dump_stage_name((enum dump_stage)i)));
    ck_assert_ptr_nonnull(strstr(help, "Examples:"));
    arena_free(session);
}
END_TEST

START_TEST(help_fits_the_screen)
{
    struct arena *session = arena_new();
    char *help = arena_strdup(session, options_help(session));
    for (char *line = strtok(help, "\n"); line; line = strtok(NULL, "\n")) {
        ck_assert_msg(strlen(line) <= 88, "too long: %s", line);
        ck_assert_msg(line[strlen(line) - 1] != ' ', "blank at the end: %s", line);
    }
    arena_free(session);
}
END_TEST

/* A file in the working directory with this text; the caller unlinks it. */
static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

START_TEST(response_file)
{
    struct arena *session = arena_new();
    struct options options;
    struct error err = {0};
    write_file("words.rsp", "  a.o 'b c.o'\n\"d\\\"e.o\"\tf\\ g.o --outline\n\n");
    ck_assert_msg(parse(session, "first.o @words.rsp last.o -o x", &options, &err),
                  "%s", err.message);
    static const char *const expected[] = {"first.o", "a.o",   "b c.o",
                                           "d\"e.o",  "f g.o", "last.o"};
    ck_assert_uint_eq(options.inputs.count, 6);
    for (uint32_t i = 0; i < 6; i++)
        ck_assert_str_eq(options.inputs.items[i], expected[i]);
    ck_assert(options.outline);
    unlink("words.rsp");
    arena_free(session);
}
END_TEST

static const struct {
    const char *text, *says;
} bad_responses[] = {
    {"a.o 'b.o",            "a quote is not closed"},
    {"a.o @bad.rsp",        "too deeply"           },
    {"@does-not-exist.rsp", "does-not-exist.rsp"   },
};

START_TEST(bad_response_file)
{
    struct arena *session = arena_new();
    struct options options;
    struct error err = {0};
    write_file("bad.rsp", bad_responses[_i].text);
    ck_assert(!parse(session, "@bad.rsp -o x", &options, &err));
    ck_assert_msg(strstr(err.message, bad_responses[_i].says) != NULL, "%s",
                  err.message);
    unlink("bad.rsp");
    arena_free(session);
}
END_TEST

/* Each test works in a folder of its own: response files need names. */
static char folder[64];

static void enter_folder(void)
{
    strcpy(folder, "/tmp/mo-options-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
}

static void leave_folder(void)
{
    ck_assert_int_eq(chdir("/"), 0);
    rmdir(folder);
}

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

int main(void)
{
    Suite *suite = suite_create("options");
    TCase *tests = tcase_create("options");
    tcase_add_checked_fixture(tests, enter_folder, leave_folder);
    tcase_add_loop_test(tests, refuses, 0, COUNT(refused));
    tcase_add_loop_test(tests, accepts, 0, COUNT(accepted));
    tcase_add_test(tests, stores_every_value);
    tcase_add_test(tests, starts_from_defaults);
    tcase_add_test(tests, last_value_counts);
    tcase_add_loop_test(tests, knows_every_stage, DUMP_NONE + 1, DUMP_COUNT);
    tcase_add_test(tests, existing_directory_needs_no_slash);
    tcase_add_test(tests, help_mentions_every_option);
    tcase_add_test(tests, help_fits_the_screen);
    tcase_add_test(tests, response_file);
    tcase_add_loop_test(tests, bad_response_file, 0, COUNT(bad_responses));
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
