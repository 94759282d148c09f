/* SPDX-License-Identifier: MIT
 *
 * The whole tool as one function.
 */
#ifndef MO_LINK_H
#define MO_LINK_H

#include "mo/error.h"
#include "mo/inputs.h"
#include "mo/options.h"

/* Does what the options say. On failure nothing has been written. Reports and dumps go
 * to standard output, the lines of -v to standard error, errors nowhere: the caller
 * prints. */
MO_MUST_CHECK bool link_run(const struct options *options, struct error *err);

/* The report in each form that the options ask for; empty in the others. */
struct report_texts {
    struct bytes by_format[REPORT_COUNT];
};

/* The same for sets that somebody else has arranged, and whose files somebody else will
 * write: `after` gets one set for each of `before`, with the helpers as one more object
 * at its end (the options name a directory), `reports` what the options ask for. The
 * first set is not empty. */
MO_MUST_CHECK bool link_sets(struct arena *session, const struct options *options,
                             const struct sets *before, struct sets *after,
                             struct report_texts *reports, struct error *err);

#endif
