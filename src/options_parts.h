/* SPDX-License-Identifier: MIT
 *
 * Shared by options.c (table and parser), options_help.c (--help and "did you mean")
 * and options_response.c (response files). Nobody else includes it.
 */
#ifndef MO_OPTIONS_PARTS_H
#define MO_OPTIONS_PARTS_H

#include "mo/options.h"

/* Positions in options_table. ORDER option */
enum option_position {
    OPTION_OUTLINE,
    OPTION_RERUNS,
    OPTION_FOLD,
    OPTION_DRY_RUN,
    OPTION_OUTPUT,
    OPTION_SET_NAME,
    OPTION_WHOLE_ARCHIVE,
    OPTION_STRIP_DEBUG,
    OPTION_KEEP,
    OPTION_KEEP_SECTION,
    OPTION_KEEP_FILE,
    OPTION_ONLY,
    OPTION_WRAP,
    OPTION_PROFILE,
    OPTION_HOT_SHARE,
    OPTION_OUTLINE_HOT,
    OPTION_MIN_SAVING,
    OPTION_NO_VENEERS,
    OPTION_EFFORT,
    OPTION_WITHOUT,
    OPTION_DROP_ALIGNMENT,
    OPTION_NO_VERIFY,
    OPTION_REPORT,
    OPTION_BASELINE,
    OPTION_COMPARE,
    OPTION_MAX_GROWTH,
    OPTION_BISECT_LIMIT,
    OPTION_PRINT,
    OPTION_REMARKS,
    OPTION_EXPLAIN,
    OPTION_DUMP,
    OPTION_JOBS,
    OPTION_VERBOSE,
    OPTION_VERSION,
    OPTION_HELP,
    OPTION_SHAKE,
    OPTION_COUNT
};

enum option_kind {
    KIND_FLAG,   /* bool */
    KIND_TEXT,   /* const char *, not empty */
    KIND_LIST,   /* struct text_list, one more each time */
    KIND_COUNT,  /* uint32_t */
    KIND_SEED,   /* uint32_t, at least 1 */
    KIND_LIMIT,  /* uint32_t, the value plus one: 0 is for "not given" */
    KIND_BYTES,  /* int64_t, at least 1 */
    KIND_STAGE,  /* enum dump_stage */
    KIND_BITS,   /* bits of a uint32_t: enum technique, one more each time */
    KIND_REPORT, /* enum report_format and a path; the value is optional */
};

/* Headings of --help, in this order. */
enum option_group {
    GROUP_WORK,
    GROUP_OUTPUT,
    GROUP_CHOICE,
    GROUP_LOOK,
    GROUP_GENERAL,
    GROUP_PROOFS,
    GROUP_COUNT
};

struct option {
    const char *name;   /* "--output" */
    const char *letter; /* "-o", or NULL */
    enum option_kind kind;
    const char *value; /* what --help calls the value, or NULL */
    size_t field;      /* offset in struct options */
    enum option_group group;
    const char *help; /* one sentence; --help breaks its lines */
};

extern const struct option options_table[];

/* --- options_report.c --- */

/* The value of -R, NULL when it has none. `next` is the word behind it, or NULL: a
 * format that stands there would be taken for an input. */
MO_MUST_CHECK bool options_report(struct options *out, const char *value,
                                  const char *next, struct error *err);

/* By its ending and by being there: functions are called like programs ("main",
 * "test"), but hardly ever like objects. */
bool options_is_input(const char *text);

/* --baseline and --max-growth: what they say, and that they go together. */
MO_MUST_CHECK bool options_check_gate(const struct options *options, struct error *err);

/* --compare: instead of a run. */
MO_MUST_CHECK bool options_check_compare(const struct options *options,
                                         struct error *err);

/* Fails when a value that should name functions is one of the inputs instead. */
MO_MUST_CHECK bool options_check_function(const char *option, const char *value,
                                          struct error *err);

/* --- options_help.c --- */

/* The option's name that is spelt most like this, or NULL when none is near. */
const char *options_nearest(struct arena *session, const char *argument);

/* Adds the bit of a technique's name. */
MO_MUST_CHECK bool options_technique(const char *name, uint32_t *out,
                                     struct error *err);

#endif
