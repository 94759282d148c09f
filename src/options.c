/* SPDX-License-Identifier: MIT
 *
 * The table of options and its parser.
 *
 * The table says for each option how it is spelt, what its value is, which field of
 * `struct options` takes it, and what --help says of it. The parser knows kinds of
 * values, never single options; so does the help. The rules about combinations are the
 * exception: they are sentences about single options, and stand together in
 * check_combinations().
 *
 * Values are given as --name=VALUE or --name VALUE; letters as -oVALUE or -o VALUE. An
 * optional value needs the '='. When an option is given twice the last one counts, as
 * everywhere (makefiles append), but for -o and -R: there an output would silently go
 * missing.
 *
 * Reference: POSIX.1-2008 XBD chapter 12; response files are those of GCC and ld.
 */
#include "mo/options.h"

#include "mo/array.h"
#include "mo/object.h"
#include "options_parts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_COUNTED = 99 };

/* ORDER dump */
static const char *const stage_names[] = {
    "none", "object", "code", "rows", "tokens", "repeats", "candidates", "plan",
};
_Static_assert(sizeof stage_names / sizeof *stage_names == DUMP_COUNT, "ORDER dump");

const char *dump_stage_name(enum dump_stage stage)
{
    return stage_names[stage];
}

#define FIELD(name) offsetof(struct options, name)

/* ORDER option: options_parts.h has the positions. */
const struct option options_table[] = {
    {"--outline",        NULL, KIND_FLAG,   NULL,        FIELD(outline),        GROUP_WORK,
     "replace repeated instruction sequences by calls to shared helpers; without it "
     "the "
     "inputs are only merged"                                                                                   },
    {"--reruns",         NULL, KIND_COUNT,  "N",         FIELD(reruns),         GROUP_WORK,
     "after the first round, outline the result up to N more times; stops early when a "
     "round saves nothing (default: 0; 2 is what the linker step takes)"                                                                                      },
    {"--fold",           NULL, KIND_FLAG,   NULL,        FIELD(fold),           GROUP_WORK,
     "before the first round, keep one of all functions that are the same code (and lie in "
     "sections of their own); where an address may be compared, a jump is left of the others"                   },
    {"--dry-run",        NULL, KIND_FLAG,   NULL,        FIELD(dry_run),        GROUP_WORK,
     "do all the work, verification included, but write no objects (see -R)"                                    },

    {"--output",         "-o", KIND_TEXT,   "PATH",      FIELD(output),         GROUP_OUTPUT,
     "one relocatable object with everything in it; or, when PATH ends in a slash or "
     "is a "
     "directory, one object per input under its own name, archives as archives, and "
     "mo-outlined.o with the helpers; other files that lie there stay"                                                                           },
    {"--set-name",       NULL, KIND_TEXT,   "NAME",      FIELD(set_name),       GROUP_OUTPUT,
     "with a directory: the name that the helpers' symbols carry (default: the "
     "directory's name); two sets in one program need different names"                                          },
    {"--whole-archive",  NULL, KIND_FLAG,   NULL,        FIELD(whole_archive),  GROUP_OUTPUT,
     "with one object: take all members of archives, not only those that are needed"                            },
    {"--strip-debug",    NULL, KIND_FLAG,   NULL,        FIELD(strip_debug),    GROUP_OUTPUT,
     "drop debug sections instead of keeping them true"                                                          },

    {"--keep",           NULL, KIND_LIST,   "GLOB",      FIELD(keep),           GROUP_CHOICE,
     "leave these functions alone; may be repeated"                                                             },
    {"--keep-section",   NULL, KIND_LIST,   "GLOB",      FIELD(keep_sections),  GROUP_CHOICE,
     "leave these code sections alone; may be repeated"                                                         },
    {"--keep-file",      NULL, KIND_LIST,   "GLOB",      FIELD(keep_files),     GROUP_CHOICE,
     "leave the code of these inputs alone (a.o, or 'libfoo.a(*)' for members); may be "
     "repeated"                                                                                                 },
    {"--only",           NULL, KIND_LIST,   "GLOB",      FIELD(only),           GROUP_CHOICE,
     "leave all functions alone but these; may be repeated"                                                     },
    {"--wrap",           NULL, KIND_LIST,   "NAME",      FIELD(wrap),           GROUP_CHOICE,
     "the directory's objects will be linked with --wrap=NAME: leave alone what refers to "
     "the name; may be repeated"                                                                                },
    {"--profile",        NULL, KIND_TEXT,   "FILE",      FIELD(profile),        GROUP_CHOICE,
     "leave alone the functions in which the program spends its time; FILE is what "
     "'perf script --no-demangle' prints, or has a line 'NAME COUNT' for each function"                         },
    {"--hot-share",      NULL, KIND_COUNT,  "PERCENT",   FIELD(hot_share),      GROUP_CHOICE,
     "with --profile: the busiest functions that make up so much of it are left alone "
     "(default: 99)"                                                                                            },
    {"--outline-hot",    NULL, KIND_FLAG,   NULL,        FIELD(outline_hot),    GROUP_CHOICE,
     "outline sections .text.hot, too, where compilers put functions that a profile found hot"                  },
    {"--min-saving",     NULL, KIND_BYTES,  "BYTES",     FIELD(min_saving),     GROUP_CHOICE,
     "make no helper that saves less than this (default: 1)"                                                    },
    {"--no-veneers",     NULL, KIND_FLAG,   NULL,        FIELD(no_veneers),     GROUP_CHOICE,
     "promise that the linker will need no range-extension veneers, so that the "
     "registers "
     "which those clobber survive calls to helpers"                                                             },
    {"--effort",         NULL, KIND_COUNT,  "N",         FIELD(effort),         GROUP_CHOICE,
     "1, the default: choose helpers fast; 2: look for a better choice, and on x86-64 for "
     "helpers that call others in their middle, for half as much time again"                         },
    {"--without",        NULL, KIND_BITS,   "TECHNIQUE", FIELD(without),        GROUP_CHOICE,
     "an experiment: do without stay-in-place, joins, short-branches, leftovers, "
     "shared-entries, stack-rows or inner-calls; may be repeated"                                                                          },
    {"--drop-alignment", NULL, KIND_FLAG,   NULL,        FIELD(drop_alignment), GROUP_CHOICE,
     "pack functions: keep only the alignment that all of a section have, even where "
     "some asked for more; and drop the no-ops that align labels inside of them"                                                                                      },
    {"--no-verify",      NULL, KIND_FLAG,   NULL,        FIELD(no_verify),      GROUP_CHOICE,
     "do not expand the result and compare it with the input; faster, and nobody "
     "checks"                                                                                                   },

    {"--report",         "-R", KIND_REPORT, "[=FORMAT]", FIELD(reports),        GROUP_LOOK,
     "print what was saved, where, and what was left alone and why; FORMAT is text, "
     "json, json:FILE, html or html:FILE (a page that needs nothing else), and may be "
     "repeated for several; below -- %o in FILE is the output of each link"                                      },
    {"--baseline",       NULL, KIND_TEXT,   "FILE",      FIELD(baseline),       GROUP_LOOK,
     "compare with the report of an earlier run (-R=json:FILE), and print what changed, "
     "the largest first"                                                                                        },
    {"--compare",        NULL, KIND_TEXT,   "FILE",      FIELD(compare),        GROUP_LOOK,
     "with --baseline: do not outline anything, take this report for the new one"                               },
    {"--max-growth",     NULL, KIND_LIST,   "LIMIT",     FIELD(max_growth),     GROUP_LOOK,
     "with --baseline: write no objects and exit with 3 when more has grown; LIMIT is "
     "0.5% or a number of bytes, of the total, or with section: or function: before it "
     "of each; may be repeated"                                                                                 },
    {"--bisect-limit",   NULL, KIND_LIMIT,  "N",         FIELD(bisect_stop),    GROUP_LOOK,
     "make the first N helpers only, and name the last of them: mo-link-bisect uses it "
     "to find the one with which a program fails"                                                               },
    {"--print",          NULL, KIND_TEXT,   "FUNCTION",  FIELD(print),          GROUP_LOOK,
     "print these functions (globs: NAME or UNIT:NAME) before and after, side by side, "
     "with the helpers that they enter; alone, without -o, it implies --outline and --dry-run"                                   },
    {"--remarks",        NULL, KIND_TEXT,   "FILE",      FIELD(remarks),        GROUP_LOOK,
     "write what was outlined and what was refused as LLVM optimisation remarks (YAML, "
     "for opt-viewer), and the code that they speak of to FILE.s"                                               },
    {"--explain",        NULL, KIND_TEXT,   "FUNCTION",  FIELD(explain),        GROUP_LOOK,
     "print for these functions (globs: NAME or UNIT:NAME) every reason why "
     "instructions were left alone"                                                                                                    },
    {"--dump",           NULL, KIND_STAGE,  "STAGE",     FIELD(dump),           GROUP_LOOK,
     "print the first round's state after a stage: object, code, rows, tokens, "
     "repeats, "
     "candidates or plan"                                                                                       },

    {"--jobs",           "-j", KIND_COUNT,  "N",         FIELD(jobs),           GROUP_GENERAL,
     "work on N processors at once; 0, the default, means all; the output is the same"                          },
    {"--verbose",        "-v", KIND_FLAG,   NULL,        FIELD(verbose),        GROUP_GENERAL,
     "one line for each round on standard error"                                                                },
    {"--version",        NULL, KIND_FLAG,   NULL,        FIELD(version),        GROUP_GENERAL,
     "print the version"                                                                                        },
    {"--help",           "-h", KIND_FLAG,   NULL,        FIELD(help),           GROUP_GENERAL, "print this text"},

    {"--shake",          NULL, KIND_SEED,   "SEED",      FIELD(shake),          GROUP_PROOFS,
     "put no-ops at random places, after all other work: the result is larger and must "
     "behave the same, or a reference to code was missed"                                                       },
};
_Static_assert(sizeof options_table / sizeof *options_table == OPTION_COUNT,
               "ORDER option");

const char *options_name(uint32_t position)
{
    return position < OPTION_COUNT ? options_table[position].name : NULL;
}

struct parser {
    struct arena *session;
    struct options *out;
    const char *const *arguments;
    uint32_t count, next;
    bool seen[OPTION_COUNT];
    const char *taken, *taken_by; /* a value that looks like an input, or NULL */
};

/* Position of a long name that ends at `size`, or OPTION_COUNT. */
static uint32_t find_name(const char *name, size_t size)
{
    uint32_t i = 0;
    while (i < OPTION_COUNT && (strlen(options_table[i].name) != size ||
                                memcmp(options_table[i].name, name, size) != 0))
        i++;
    return i;
}

static bool takes_value(const struct option *option)
{
    return option->kind != KIND_FLAG && option->kind != KIND_REPORT;
}

/* The same for "-o", "-oVALUE" and "-R=VALUE". A long name with one dash too few is no
 * letter: "-outline" must not write a file "utline". */
static uint32_t find_letter(const char *argument, const char **value)
{
    char dash_added[32] = "-";
    strncat(dash_added, argument, sizeof dash_added - 2);
    if (find_name(dash_added, strcspn(dash_added, "=")) != OPTION_COUNT)
        return OPTION_COUNT;
    for (uint32_t i = 0; i < OPTION_COUNT; i++) {
        const struct option *option = &options_table[i];
        if (!option->letter || argument[1] != option->letter[1])
            continue;
        const char *glued = argument + 2;
        if (*glued == '\0')
            return i;
        if (takes_value(option))
            *value = glued;
        else if (*glued == '=')
            *value = glued + 1;
        else
            return OPTION_COUNT;
        return i;
    }
    return OPTION_COUNT;
}

/* Position in the table; OPTION_COUNT when there is no such option. `value` gets what
 * stands glued to the name: behind '=', or behind the letter; NULL when nothing does.
 */
static uint32_t find_option(const char *argument, const char **value)
{
    *value = NULL;
    size_t size = strcspn(argument, "=");
    uint32_t position = find_name(argument, size);
    if (position == OPTION_COUNT)
        return find_letter(argument, value);
    if (argument[size] == '=')
        *value = argument + size + 1;
    return position;
}

static bool parse_number(const char *name, const char *text, int64_t least,
                         int64_t most, int64_t *out, struct error *err)
{
    size_t digits = strspn(text, "0123456789");
    bool ok = digits > 0 && digits <= 18 && text[digits] == '\0';
    int64_t number = ok ? strtoll(text, NULL, 10) : 0;
    if (!ok || number < least || number > most)
        return fail(err, NULL, "%s wants a whole number from %lld to %lld, not '%s'",
                    name, (long long)least, (long long)most, text);
    *out = number;
    return true;
}

static bool parse_stage(const char *text, uint32_t *out, struct error *err)
{
    for (uint32_t i = DUMP_NONE + 1; i < DUMP_COUNT; i++) {
        if (strcmp(text, stage_names[i]) == 0) {
            *out = i;
            return true;
        }
    }
    return fail(err, NULL,
                "--dump: there is no stage '%s'; there are object, code, rows, tokens, "
                "repeats, candidates and plan",
                text);
}

/* Stores a value in the field that the table names. The casts are the price of a table
 * of offsets; each kind has one field type. */
static bool store(struct parser *parser, uint32_t position, const char *value,
                  struct error *err)
{
    const struct option *option = &options_table[position];
    void *field = (char *)parser->out + option->field;
    int64_t number = 0;
    switch (option->kind) {
    case KIND_FLAG: *(bool *)field = true; return true;
    case KIND_TEXT: *(const char **)field = value; return true;
    case KIND_LIST:
        array_push(parser->session, (struct text_list *)field, value);
        return true;
    case KIND_COUNT:
        if (!parse_number(option->name, value, 0, MOST_COUNTED, &number, err))
            return false;
        *(uint32_t *)field = (uint32_t)number;
        return true;
    case KIND_SEED:
        if (!parse_number(option->name, value, 1, UINT32_MAX, &number, err))
            return false;
        *(uint32_t *)field = (uint32_t)number;
        return true;
    case KIND_LIMIT:
        if (!parse_number(option->name, value, 0, UINT32_MAX - 1, &number, err))
            return false;
        *(uint32_t *)field = (uint32_t)number + 1;
        return true;
    case KIND_BYTES:
        return parse_number(option->name, value, 1, 1000000000, (int64_t *)field, err);
    case KIND_STAGE: return parse_stage(value, (uint32_t *)field, err);
    case KIND_BITS: return options_technique(value, (uint32_t *)field, err);
    case KIND_REPORT:
        return options_report(parser->out, value,
                              parser->next < parser->count
                                  ? parser->arguments[parser->next]
                                  : NULL,
                              err);
    }
    return true;
}

static bool fail_unknown(struct arena *session, const char *argument, struct error *err)
{
    const char *hint = options_nearest(session, argument);
    if (hint)
        return fail(err, NULL, "unknown option '%s'; did you mean %s?", argument, hint);
    return fail(err, NULL, "unknown option '%s' (--help lists them all)", argument);
}

static bool fail_no_value(const struct option *option, struct error *err)
{
    return fail(err, NULL, "%s wants a value: %s=%s",
                option->letter ? option->letter : option->name, option->name,
                option->value);
}

static bool parse_option(struct parser *parser, const char *argument, struct error *err)
{
    const char *value = NULL;
    uint32_t position = find_option(argument, &value);
    if (position == OPTION_COUNT)
        return fail_unknown(parser->session, argument, err);
    const struct option *option = &options_table[position];
    if (option->kind == KIND_FLAG && value)
        return fail(err, NULL, "%s takes no value", option->name);
    if (takes_value(option) && !value && parser->next < parser->count) {
        value = parser->arguments[parser->next++];
        if (position != OPTION_OUTPUT && options_is_input(value)) {
            parser->taken = value;
            parser->taken_by = option->name;
        }
    }
    if (takes_value(option) && (!value || value[0] == '\0'))
        return fail_no_value(option, err);
    if (position == OPTION_OUTPUT && parser->seen[position])
        return fail(err, NULL, "-o is given twice: '%s' and '%s'", parser->out->output,
                    value);
    parser->seen[position] = true;
    return store(parser, position, value, err);
}

bool options_only_look(const struct options *options)
{
    return (options->dump != DUMP_NONE || options->explain) && !options->output &&
           !options->dry_run;
}

/* Options that change nothing unless something is outlined; the second group also
 * counts when a plan is only looked at. A silent option is a lie, so they are errors.
 */
static bool check_outline_options(const struct parser *parser, struct error *err)
{
    static const uint32_t always[] = {OPTION_RERUNS, OPTION_SET_NAME, OPTION_DRY_RUN,
                                      OPTION_NO_VERIFY, OPTION_REMARKS,
                                      OPTION_BISECT_LIMIT, OPTION_PRINT,
                                      OPTION_FOLD};
    static const uint32_t planning[] = {OPTION_KEEP, OPTION_KEEP_SECTION, OPTION_KEEP_FILE,
                                        OPTION_ONLY, OPTION_WRAP, OPTION_PROFILE,
                                        OPTION_HOT_SHARE,
                                        OPTION_OUTLINE_HOT, OPTION_MIN_SAVING, OPTION_NO_VENEERS,
                                        OPTION_EFFORT, OPTION_WITHOUT, OPTION_DROP_ALIGNMENT};
    const struct options *out = parser->out;
    /* Shaking reads, rewrites and verifies as outlining does, but chooses nothing. */
    size_t count = out->shake ? 2 : sizeof always / sizeof *always;
    bool looks = out->dump != DUMP_NONE || out->explain || out->shake;
    for (size_t i = 0; !out->outline && i < count; i++) {
        if (parser->seen[always[i]])
            return fail(err, NULL, "%s has no effect without --outline",
                        options_table[always[i]].name);
    }
    for (size_t i = 0; !out->outline && i < sizeof planning / sizeof *planning; i++) {
        if (parser->seen[planning[i]] && !looks)
            return fail(err, NULL,
                        "%s has no effect without --outline (or --dump, --explain)",
                        options_table[planning[i]].name);
    }
    return true;
}

/* ".", "../..", "/": a directory whose path does not tell its name. */
static bool is_nameless(const char *path)
{
    size_t size = strlen(path);
    while (size > 0 && path[size - 1] == '/')
        size--;
    size_t start = size;
    while (start > 0 && path[start - 1] != '/')
        start--;
    return strspn(path + start, ".") >= size - start;
}

/* Every rule about options that do not go together. */
static bool check_combinations(const struct parser *parser, struct error *err)
{
    const struct options *out = parser->out;
    bool looks = out->dump != DUMP_NONE || out->explain;
    if (!options_check_function("--explain", out->explain, err) ||
        !options_check_function("--print", out->print, err))
        return false;
    if (out->compare)
        return options_check_compare(out, err);
    if (out->inputs.count == 0 && parser->taken)
        return fail(err, NULL, "no input files: %s was taken as the value of %s",
                    parser->taken, parser->taken_by);
    if (out->inputs.count == 0)
        return fail(err, NULL, "no input files (--help shows examples)");
    if (!check_outline_options(parser, err) || !options_check_gate(out, err))
        return false;
    if (out->effort < 1 || out->effort > 2)
        return fail(err, NULL, "--effort wants 1 or 2");
    if (parser->seen[OPTION_HOT_SHARE] && !out->profile)
        return fail(err, NULL, "--hot-share has no effect without --profile");
    if (out->dump != DUMP_NONE && out->explain)
        return fail(err, NULL, "--dump and --explain: one at a time");
    enum report_format printed = options_printed_report(out);
    if (looks && printed > REPORT_TEXT)
        return fail(err, NULL,
                    "%s and -R=%s both print to standard output: use -R=%s:FILE",
                    out->explain ? "--explain" : "--dump", report_format_name(printed),
                    report_format_name(printed));
    if (!out->output && !out->dry_run &&
        !(looks && !options_want_report(out) && !out->baseline))
        return fail(err, NULL,
                    "no output: give -o PATH, or --dry-run to write nothing");
    if (out->set_name && !out->output_is_directory)
        return fail(err, NULL,
                    "--set-name is for a directory (-o DIR/): the helpers of a single "
                    "object are local to it");
    if (parser->seen[OPTION_WRAP] && out->output && !out->output_is_directory)
        return fail(err, NULL,
                    "--wrap is for a directory (-o DIR/): in a single object no name that "
                    "it defines can be wrapped any more");
    if (out->outline && out->output_is_directory && !out->set_name &&
        is_nameless(out->output))
        return fail(err, NULL,
                    "-o %s: that says no name for the helpers' set; add --set-name",
                    out->output);
    if (out->whole_archive && out->output_is_directory)
        return fail(err, NULL,
                    "--whole-archive is for a single object: a directory gets whole "
                    "archives anyway");
    if (options_report_names(out, out->output))
        return fail(err, NULL, "-o and -R both name '%s'", out->output);
    return true;
}

/* What stands before "--" says how to outline; on what, the command's links say. */
static bool check_command(const struct parser *parser, struct error *err)
{
    struct options *out = parser->out;
    if (!out->command[0])
        return fail(err, NULL, "'%s' wants a command behind it", out->command[-1]);
    if (out->inputs.count > 0)
        return fail(err, NULL, "%s: the command behind '--' names the inputs",
                    out->inputs.items[0]);
    if (out->output)
        return fail(err, NULL, "-o: the command behind '--' names the output");
    out->words = (struct text_list){NULL, parser->count, parser->count};
    out->words.items = arena_copy(parser->session, parser->arguments,
                                  parser->count * sizeof *parser->arguments);
    return true;
}

static bool parse_all(struct parser *parser, struct error *err)
{
    while (parser->next < parser->count) {
        const char *argument = parser->arguments[parser->next++];
        if (strcmp(argument, "-") == 0)
            return fail(err, NULL, "'-': objects cannot be read from standard input");
        if (parser->out->inputs.count == 0 && strcmp(argument, "run") == 0 &&
            access(argument, F_OK) != 0)
            return fail(err, NULL,
                        "run: there is no such file; 'mo-link -- COMMAND' runs a command");
        if (argument[0] != '-')
            array_push(parser->session, &parser->out->inputs, argument);
        else if (!parse_option(parser, argument, err))
            return false;
    }
    return true;
}

static bool names_directory(const char *path)
{
    struct stat status;
    return path[strlen(path) - 1] == '/' ||
           (stat(path, &status) == 0 && S_ISDIR(status.st_mode));
}

/* A command follows: "--", or "-run", as mold has it. */
static bool is_run(const char *word)
{
    return strcmp(word, "--") == 0 || strcmp(word, "-run") == 0 ||
           strcmp(word, "--run") == 0;
}

bool options_parse(struct arena *session, int argc, char *const *argv,
                   struct options *out, struct error *err)
{
    *out = (struct options){.min_saving = 1, .effort = 1, .hot_share = 99};
    struct parser parser = {.session = session, .out = out};
    int own = 1;
    while (own < argc && !is_run(argv[own]))
        own++;
    if (own < argc)
        out->command = argv + own + 1;
    if (!options_expand(session, own, argv, &parser.arguments, &parser.count, err) ||
        !parse_all(&parser, err))
        return false;
    if (out->help || out->version)
        return true;
    if (out->command)
        return check_command(&parser, err);
    if (out->print && !out->output)
        out->outline = out->dry_run = true;
    out->output_is_directory = out->output && names_directory(out->output);
    return check_combinations(&parser, err);
}
