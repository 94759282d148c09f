/* SPDX-License-Identifier: MIT
 *
 * What the files of this room share. Nobody else includes it.
 */
#ifndef MO_REPORT_PARTS_H
#define MO_REPORT_PARTS_H

#include "mo/bytes.h"

/* --- string.c --- */

/* In double quotes, escaped; what is not UTF-8 as U+FFFD. */
void put_json_string(struct buffer *out, const char *string);

/* --- align.c --- */

/* By index in `a`: the index in `b` that it is matched with, or NO_INDEX. Matches are
 * of equal numbers, in order, and as many as can be. When the lists have next to
 * nothing in common there are none. */
uint32_t *align(struct arena *arena, const uint32_t *a, uint32_t a_count,
                const uint32_t *b, uint32_t b_count);

#endif
