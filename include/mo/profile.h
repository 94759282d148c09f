/* SPDX-License-Identifier: MIT
 *
 * Profiles: which functions a program spends its time in.
 */
#ifndef MO_PROFILE_H
#define MO_PROFILE_H

#include "mo/error.h"
#include "mo/table.h"

struct bytes;

/* The names of the functions that make up so many per cent of all samples, the busiest
 * first: no more of them than it takes. The text is what `perf script` prints, or has one
 * line "NAME COUNT" for each function; which of the two it is, the text itself shows.
 * `all` are the names of all that has been seen. Fails when it is neither, naming the
 * first line that is not understood. */
MO_MUST_CHECK bool profile_read(struct arena *session, const char *path,
                                struct bytes text, uint32_t percent, struct table **hot,
                                struct table **all, struct error *err);

#endif
