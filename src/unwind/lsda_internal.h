/* SPDX-License-Identifier: MIT
 *
 * One call-site table, read: what lsda.c asks of lsda_table.c.
 */
#ifndef MO_LSDA_INTERNAL_H
#define MO_LSDA_INTERNAL_H

#include "internal.h"
#include "mo/lsda.h"

/* Reads the table of an FDE. Its fde, section, start and end are set; the rest is
 * filled, a refusal if need be. */
void lsda_read(struct arena *arena, const struct object *object, const struct fde *fde,
               struct lsda *lsda);

/* Bytes of a number in a call site; 0: an LEB128. */
uint32_t lsda_number_size(uint8_t encoding);

#endif
