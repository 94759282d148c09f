/* SPDX-License-Identifier: MIT
 *
 * --print: functions before and after, side by side.
 */
#ifndef MO_SIDES_H
#define MO_SIDES_H

#include "mo/inputs.h"

#include <stdio.h>

/* Every function that the glob names: on the left as it was, on the right as it is, with
 * the helpers that it enters expanded in the margin. `after` has a set for each of
 * `before`. */
void print_sides(FILE *out, const struct sets *before, const struct sets *after,
                 const char *glob);

#endif
