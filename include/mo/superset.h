/* SPDX-License-Identifier: MIT
 *
 * Bytes that may be code or data, nobody knows: what could they refer to, if any part of
 * them was code? Every offset is tried as the start of an instruction.
 */
#ifndef MO_SUPERSET_H
#define MO_SUPERSET_H

#include "mo/array.h"
#include "mo/decoder.h"
#include "mo/object.h"

struct superset_reference {
    uint32_t from, to; /* section offsets; `to` lies outside of the bytes */
};

struct superset {
    array_of(struct superset_reference) references;
};

/* The bytes, and what may be meant outside of them: code refers to whole instructions, or
 * to other bytes of which nobody knows. */
struct superset_range {
    const struct section *section;
    uint32_t start, end;
    bool (*is_place)(const void *context, uint32_t offset);
    const void *context;
};

/* All references out of the range into the same section that no relocation makes. */
struct superset superset_of(struct arena *arena, struct decoder *decoder,
                            const struct target *target,
                            const struct superset_range *range);

#endif
