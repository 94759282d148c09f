/* SPDX-License-Identifier: MIT
 *
 * What users name on the command line: globs as of fnmatch.
 */
#ifndef MO_MATCH_H
#define MO_MATCH_H

#include "mo/base.h"

/* The unit's whole name, or what stands behind its last slash. */
bool glob_is_unit(const char *glob, const char *unit);

/* "NAME", or "UNIT:NAME" where several units have a function of that name. */
bool glob_is_function(const char *glob, const char *unit, const char *name);

#endif
