/* SPDX-License-Identifier: MIT
 *
 * The properties in .note.gnu.property, one after another.
 * Reference: "Linux Extensions to gABI", chapter "Program Properties".
 */
#ifndef MO_OBJECT_PROPERTIES_H
#define MO_OBJECT_PROPERTIES_H

#include "mo/object.h"

struct property {
    uint32_t type; /* GNU_PROPERTY_... */
    struct bytes data;
};

struct property_reader {
    struct cursor notes;      /* the section */
    struct cursor properties; /* the descriptor of the current note */
};

struct property_reader properties_of(struct bytes note);
/* False at the end, and at the first thing that makes no sense. */
bool property_next(struct property_reader *reader, struct property *out);

/* The word of a property of 4 bytes; 0 for other sizes. */
uint32_t property_word(const struct property *property);

uint32_t properties_features(uint16_t machine, struct bytes note);

/* The .note.gnu.property section of an object merged from these, by the rule of each
 * type. False: there is nothing left to say, hence no section. */
bool properties_merge(struct arena *arena, const struct objects *objects,
                      struct section *out);

bool section_is_property(const struct section *section);

#endif
