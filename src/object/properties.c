/* SPDX-License-Identifier: MIT */
#include "properties.h"

#include <elf.h>
#include <string.h>

enum { WORD_ALIGN = 8 }; /* ELFCLASS64 */

bool section_is_property(const struct section *section)
{
    return section->type == SHT_NOTE &&
           strcmp(section->name, ".note.gnu.property") == 0;
}

struct property_reader properties_of(struct bytes note)
{
    return (struct property_reader){.notes = cursor_of(note)};
}

static void skip_padding(struct cursor *cursor)
{
    uint64_t next = align_up(cursor->position, WORD_ALIGN);
    uint64_t left = cursor_left(cursor);
    uint64_t padding = next - cursor->position;
    (void)cursor_take(cursor, padding < left ? padding : left);
}

/* Moves on to the next note that holds properties. */
static bool next_note(struct property_reader *reader)
{
    struct cursor *notes = &reader->notes;
    while (cursor_left(notes) > 0) {
        uint32_t name_size = cursor_u32(notes), size = cursor_u32(notes);
        uint32_t type = cursor_u32(notes);
        struct bytes name = cursor_take(notes, align_up(name_size, 4));
        struct bytes descriptor = cursor_take(notes, size);
        skip_padding(notes);
        if (!cursor_ok(notes))
            return false;
        if (type != NT_GNU_PROPERTY_TYPE_0 || name_size != 4 ||
            memcmp(name.at, "GNU", 4) != 0 || size == 0)
            continue;
        reader->properties = cursor_of(descriptor);
        return true;
    }
    return false;
}

bool property_next(struct property_reader *reader, struct property *out)
{
    struct cursor *properties = &reader->properties;
    if (cursor_left(properties) == 0 && !next_note(reader))
        return false;
    out->type = cursor_u32(properties);
    uint32_t size = cursor_u32(properties);
    out->data = cursor_take(properties, size);
    skip_padding(properties);
    return cursor_ok(properties);
}

uint32_t property_word(const struct property *property)
{
    return property->data.size == 4 ? (uint32_t)load_le(property->data.at, 4) : 0;
}

uint32_t properties_features(uint16_t machine, struct bytes note)
{
    uint32_t wanted = machine == EM_AARCH64 ? GNU_PROPERTY_AARCH64_FEATURE_1_AND
                                            : GNU_PROPERTY_X86_FEATURE_1_AND;
    struct property_reader reader = properties_of(note);
    struct property property;
    while (property_next(&reader, &property)) {
        if (property.type == wanted)
            return property_word(&property);
    }
    return 0;
}
