/* SPDX-License-Identifier: MIT
 *
 * Two reports, row by row: what baseline_read.c fills and baseline.c judges.
 */
#ifndef MO_COMPARISON_H
#define MO_COMPARISON_H

#include "mo/array.h"
#include "mo/baseline.h"

struct change {
    enum scope scope;
    const char *name;
    bool was_there, is_there;
    int64_t before, after;
};

struct comparison {
    struct arena *session;
    const char *path;    /* of the old report */
    struct table *names; /* scope's letter and name */
    array_of(struct change) rows;
};

/* Of one report, as what was or as what is: the bytes of a row. */
void comparison_put(struct comparison *comparison, bool is_new, enum scope scope,
                    const char *name, int64_t bytes);
/* The same for all that a file says. */
MO_MUST_CHECK bool comparison_read(struct comparison *comparison, bool is_new,
                                   const char *path, struct error *err);

/* What the row of SCOPE_TOTAL is called. */
#define COMPARISON_TOTAL "of all that is loaded"

#endif
