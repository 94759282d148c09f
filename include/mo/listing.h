/* SPDX-License-Identifier: MIT
 *
 * Code as text, for people to look at: one line for each instruction.
 */
#ifndef MO_LISTING_H
#define MO_LISTING_H

#include "mo/object.h"

struct listing_line {
    uint64_t at; /* section offset */
    uint8_t length;
    const char *hex;      /* "48 89 e5"; one word where instructions are words */
    const char *text;     /* "mov %rsp, %rbp"; with what a relocation names */
    const char *same;     /* equal for instructions that do the same wherever they lie */
    const char *referent; /* "memcpy", "[.rodata]+0x10"; NULL: nothing is relocated */
    uint32_t reloc;       /* index of its first relocation in the section, or NO_INDEX */
};

struct listing {
    const struct listing_line *lines;
    uint32_t count;
};

/* The code from section offset `start` on. Bytes that are no instruction become data. */
struct listing listing_of(struct arena *arena, const struct object *object,
                          uint32_t section, uint64_t start, uint64_t size);

#endif
