/* SPDX-License-Identifier: MIT
 *
 * What the merger, the writer and who reads it back must know about sections that the
 * file holds as one.
 */
#ifndef MO_OBJECT_FRAMES_H
#define MO_OBJECT_FRAMES_H

#include "mo/object.h"

/* The section ends in a record of length 0. Whatever a linker puts behind it is lost.
 */
bool frame_is_terminated(const struct section *section);

/* Of no type and no symbol. */
bool reloc_is_void(const struct reloc *reloc);

/* Where an unwind entry says which code it describes. */
bool frame_names_code(const struct section *section, uint64_t offset);

/* join.c: sections of equal keys are one section of the file; NULL: this one stays alone. */
const char *section_join_key(struct arena *stage, const struct section *section);

#endif
