/* SPDX-License-Identifier: MIT
 *
 * What a user probably did not mean, though nothing is wrong with it: one line each, and
 * the run goes on.
 */
#ifndef MO_WARNINGS_H
#define MO_WARNINGS_H

#include "mo/inputs.h"
#include "mo/options.h"

#include <stdio.h>

/* A --keep, --keep-section or --keep-file that names nothing in these sets: mistyped, or not quoted
 * and expanded by the shell. */
void warn_unmatched(FILE *out, const struct options *options, const struct sets *sets);

/* Fails when --explain or --print names nothing in these sets: the answer would be an
 * empty page. */
MO_MUST_CHECK bool check_named(const struct options *options, const struct sets *sets,
                               struct error *err);

#endif
