/* SPDX-License-Identifier: MIT
 *
 * The size gate: compares a run with the report of an earlier one.
 */
#ifndef MO_BASELINE_H
#define MO_BASELINE_H

#include "mo/report.h"

/* What a limit speaks of. ORDER scope */
enum scope {
    SCOPE_TOTAL,    /* all that is loaded */
    SCOPE_SECTION,  /* each section of the link */
    SCOPE_FUNCTION, /* each function, with its share of helpers */
    SCOPE_COUNT
};

struct limit {
    const char *text; /* as the user wrote it */
    enum scope scope;
    bool is_percent;
    int64_t amount; /* bytes; or ten thousandths of a percent */
};

struct limits {
    struct limit *items;
    uint32_t count, capacity;
};

/* "0.5%", "function:64", …; false when it is no limit. */
bool limit_parse(const char *text, struct limit *out);

/* What is compared. */
struct baseline {
    const char *old;             /* path of the earlier report */
    const struct report *report; /* this run; or, when NULL, … */
    const char *new;             /* … the path of the other report */
};

/* `out` gets the rows that changed, as text, also when a limit is exceeded. Then it fails
 * with err->over_limit, and names the worst of what is over: a function before a section,
 * a section before the total. */
MO_MUST_CHECK bool baseline_compare(struct arena *session,
                                    const struct baseline *baseline,
                                    const struct limits *limits, struct bytes *out,
                                    struct error *err);

#endif
