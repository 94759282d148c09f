/* SPDX-License-Identifier: MIT
 *
 * What the merger and the writer must know about .eh_frame sections.
 */
#ifndef MO_OBJECT_FRAMES_H
#define MO_OBJECT_FRAMES_H

#include "mo/object.h"

/* The section ends in a record of length 0. Whatever a linker puts behind it is lost.
 */
bool frame_is_terminated(const struct section *section);

#endif
