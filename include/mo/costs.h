/* SPDX-License-Identifier: MIT
 *
 * What each function of a set costs, its share of the helpers included.
 */
#ifndef MO_COSTS_H
#define MO_COSTS_H

#include "mo/object.h"

struct cost {
    const char *name; /* of several names for one range, one that others can see */
    bool is_helper;
    uint32_t object, section; /* index in the set; section index there */
    uint64_t start;           /* section offset */
    uint64_t bytes;           /* its own */
    uint64_t shared;          /* its part of the bytes of helpers */
    uint32_t first_entry, entry_count; /* of a helper: who enters it, in costs.entries */
};

/* One place that enters a helper. */
struct entry {
    uint32_t helper, caller; /* indices in costs.items */
    uint64_t offset;         /* of the relocation, in the caller's section */
    uint64_t skipped;        /* bytes of the helper before the place that is entered */
};

struct costs {
    struct cost *items; /* sorted by (object, section, start); ranges do not overlap */
    uint32_t count;
    struct entry *entries; /* sorted by (helper, caller, offset) */
    uint32_t entry_count;
};

/* All sized function symbols of the set. The sum of bytes and shared over all that are no
 * helpers, plus the bytes of helpers that nobody enters, is the sum of all bytes. */
struct costs costs_of(struct arena *session, const struct objects *objects);

/* The function at a section offset, or NO_INDEX. */
uint32_t costs_at(const struct costs *costs, uint32_t object, uint32_t section,
                  uint64_t offset);

#endif
