/* SPDX-License-Identifier: MIT
 *
 * What the user asked for. One table (options.c) drives the parser and --help, so an
 * option cannot exist without its line of help. Combinations that make no sense are
 * refused in one place, each with a message of its own.
 */
#ifndef MO_OPTIONS_H
#define MO_OPTIONS_H

#include "mo/arena.h"
#include "mo/error.h"

/* A stage whose result --dump prints. ORDER dump: options.c has the names. */
enum dump_stage {
    DUMP_NONE,
    DUMP_OBJECT,
    DUMP_CODE,
    DUMP_ROWS,
    DUMP_TOKENS,
    DUMP_REPEATS,
    DUMP_CANDIDATES,
    DUMP_PLAN,
    DUMP_COUNT
};

/* ORDER report: options_report.c has the names. */
enum report_format { REPORT_NONE, REPORT_TEXT, REPORT_JSON, REPORT_HTML, REPORT_COUNT };

/* One form of the report. */
struct report_wish {
    bool wanted;
    const char *path; /* NULL: standard output, where only one of them goes */
};

struct table;

struct text_list {
    const char **items;
    uint32_t count, capacity;
};

struct options {
    struct text_list inputs; /* paths, in the order given */

    bool outline;
    uint32_t reruns;
    bool fold;
    uint32_t bisect_stop; /* first helper, from 1, that is not made; 0: there is none */
    bool dry_run;

    const char *output;       /* NULL: write nothing */
    bool output_is_directory; /* "DIR/", or a directory that exists */
    const char *set_name;     /* NULL: made from the output's name */
    bool whole_archive;
    bool strip_debug;

    struct text_list keep;          /* globs of function names */
    struct text_list keep_sections; /* globs of section names */
    struct text_list keep_files;    /* globs of inputs and members */
    struct text_list only;          /* globs of function names; none: all */
    struct text_list wrap;          /* names that the link is given with --wrap */
    const char *profile;            /* path, or NULL */
    uint32_t hot_share;             /* per cent of the samples */
    const struct table *hot;        /* names that the profile has found; NULL: none */
    const struct table *profiled;   /* all names in it; NULL: none */
    bool outline_hot;               /* take .text.hot, too */
    int64_t min_saving;             /* loaded bytes, per helper */
    bool no_veneers;
    uint32_t effort;  /* 1 or 2 */
    uint32_t without; /* enum technique of mo/plan.h, bits */
    bool drop_alignment;
    bool no_verify;

    struct report_wish reports[REPORT_COUNT]; /* by enum report_format */
    const char *baseline;    /* an earlier report to compare with, or NULL */
    const char *compare;     /* the other report, instead of a run, or NULL */
    const char *remarks;     /* NULL: none */
    struct text_list max_growth; /* limits of mo/baseline.h */
    uint32_t dump;           /* enum dump_stage */
    const char *explain;     /* glob of function names, or NULL */
    uint32_t jobs;           /* processors to work on; 0: all */
    const char *print;       /* the same */
    bool verbose;

    uint32_t shake; /* a seed, or 0 */

    char *const *command;   /* what stands behind "--", ends in NULL; NULL: no "--" */
    struct text_list words; /* with a command: what stands before "--" */

    bool version; /* with these two the rest is not checked */
    bool help;
};

/* Fills `out` from a command line (argv[0] is skipped). An error here is a usage error:
 * exit status 2. Response files (@FILE) are read and put in their place. */
MO_MUST_CHECK bool options_parse(struct arena *session, int argc, char *const *argv,
                                 struct options *out, struct error *err);

/* Reads the files that options name (--profile). */
MO_MUST_CHECK bool options_load(struct arena *session, struct options *options,
                                struct error *err);

/* The command line (argv[0] skipped) with @FILE replaced by the words of the file. */
MO_MUST_CHECK bool options_expand(struct arena *session, int argc, char *const *argv,
                                  const char *const **out, uint32_t *count,
                                  struct error *err);

/* A text cut into words as in a response file. `where` is for messages. */
MO_MUST_CHECK bool options_split(struct arena *session, const char *where,
                                 struct bytes text, struct text_list *out,
                                 struct error *err);

/* Reports: whether there is one; the one that goes to standard output, or REPORT_NONE;
 * whether one goes to this file (NULL: none does). */
bool options_want_report(const struct options *options);
enum report_format options_printed_report(const struct options *options);
bool options_report_names(const struct options *options, const char *path);
/* "text", "json", … */
const char *report_format_name(enum report_format format);

/* Only prints a stage or explains functions: no output, no report. */
bool options_only_look(const struct options *options);

/* Becomes the options' command, with every link below it going through our linker step
 * (src/ld) under these options. Returns only on failure. */
MO_MUST_CHECK bool options_run_command(struct arena *session,
                                       const struct options *options,
                                       struct error *err);

/* The text of --help. */
const char *options_help(struct arena *session);

/* The long name ("--outline") at a position of the table; NULL behind the last. */
const char *options_name(uint32_t position);

/* "object", …: what --dump calls a stage. */
const char *dump_stage_name(enum dump_stage stage);

#endif
