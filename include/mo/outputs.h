/* SPDX-License-Identifier: MIT
 *
 * Files from sets of objects. All are built in memory before the first is written.
 */
#ifndef MO_OUTPUTS_H
#define MO_OUTPUTS_H

#include "mo/inputs.h"

#define HELPERS_FILE "mo-outlined.o"

/* The options' output from the sets after all rounds. `sets` are those of
 * inputs_arrange(), with new objects in the place of the old ones; the helpers of a set
 * may be one more object behind its others. With --dry-run everything is built and
 * nothing written. */
MO_MUST_CHECK bool outputs_write(struct arena *session, const struct options *options,
                                 const struct inputs *inputs, const struct sets *sets,
                                 struct error *err);

/* --- readback.c --- */

/* The bytes, read again, are this object. Fails with the first difference. */
MO_MUST_CHECK bool output_read_back(const struct object *object, struct bytes image,
                                    struct error *err);

#endif
