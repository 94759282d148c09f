/* SPDX-License-Identifier: MIT
 *
 * Folding of a whole set of objects, as one stage of link.c.
 */
#ifndef MO_FOLD_SET_H
#define MO_FOLD_SET_H

#include "mo/fold.h"
#include "mo/inputs.h"
#include "mo/report.h"

struct fold_job {
    struct arena *session;
    const struct options *options;
    struct row_table *rows;
    struct lift_options lift; /* of the set */
    struct report *report;
};

/* The set with its functions folded, each object in itself: in a directory objects must
 * be able to do without each other. Verified, unless the options say otherwise. */
MO_MUST_CHECK bool fold_set(const struct fold_job *job, const struct set *set,
                            struct set *out, struct error *err);

#endif
