/* SPDX-License-Identifier: MIT
 *
 * The whole tool as one function.
 */
#ifndef MO_LINK_H
#define MO_LINK_H

#include "mo/error.h"
#include "mo/options.h"

/* Does what the options say. On failure nothing has been written. Reports and dumps go
 * to standard output, the lines of -v to standard error, errors nowhere: the caller
 * prints. */
MO_MUST_CHECK bool link_run(const struct options *options, struct error *err);

#endif
