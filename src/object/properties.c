/* SPDX-License-Identifier: MIT */
#include "properties.h"

#include "mo/array.h"

#include <elf.h>
#include <stdlib.h>
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

/* How properties of one type come together (Linux Extensions to gABI; psABI 4.2.2 for
 * x86-64, aaelf64 6.2 for AArch64). `absent` stands for a type that says nothing about
 * merging: such a property is not carried over. */
enum rule {
    RULE_ABSENT,
    RULE_AND,    /* bits that all have; an object without it has none */
    RULE_OR,     /* bits that any has */
    RULE_OR_AND, /* the same, but gone if one object does not have it */
    RULE_MAX,    /* GNU_PROPERTY_STACK_SIZE */
    RULE_ANY,    /* no value: there if it is anywhere */
};

struct range {
    uint32_t first, last;
    uint16_t machine; /* EM_NONE: all */
    enum rule rule;
};

static const struct range ranges[] = {
    {GNU_PROPERTY_STACK_SIZE,            GNU_PROPERTY_STACK_SIZE,            EM_NONE,    RULE_MAX   },
    {GNU_PROPERTY_NO_COPY_ON_PROTECTED,  GNU_PROPERTY_NO_COPY_ON_PROTECTED,  EM_NONE,
     RULE_ANY                                                                                       },
    {GNU_PROPERTY_UINT32_AND_LO,         GNU_PROPERTY_UINT32_AND_HI,         EM_NONE,    RULE_AND   },
    {GNU_PROPERTY_UINT32_OR_LO,          GNU_PROPERTY_UINT32_OR_HI,          EM_NONE,    RULE_OR    },
    {GNU_PROPERTY_AARCH64_FEATURE_1_AND, GNU_PROPERTY_AARCH64_FEATURE_1_AND, EM_AARCH64,
     RULE_AND                                                                                       },
    {0xc0000002,                         0xc0007fff,                         EM_X86_64,  RULE_AND   },
    {0xc0008000,                         0xc000ffff,                         EM_X86_64,  RULE_OR    },
    {0xc0010000,                         0xc0017fff,                         EM_X86_64,  RULE_OR_AND},
};

static enum rule rule_of(uint16_t machine, uint32_t type)
{
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        if (type >= ranges[i].first && type <= ranges[i].last &&
            (ranges[i].machine == EM_NONE || ranges[i].machine == machine))
            return ranges[i].rule;
    }
    return RULE_ABSENT;
}

struct merged {
    uint32_t type;
    enum rule rule;
    uint64_t value;
    uint32_t count;  /* objects that have it */
    uint32_t object; /* the last of them */
};

static uint64_t property_value(const struct property *property)
{
    return property->data.size == 8 ? load_le(property->data.at, 8)
                                    : property_word(property);
}

static void join_value(struct merged *merged, uint64_t value)
{
    switch (merged->rule) {
    case RULE_AND: merged->value &= value; break;
    case RULE_OR:
    case RULE_OR_AND: merged->value |= value; break;
    case RULE_MAX: merged->value = value > merged->value ? value : merged->value; break;
    case RULE_ANY:
    case RULE_ABSENT: break;
    }
}

struct merging {
    struct arena *arena;
    array_of(struct merged) types;
};

static uint32_t size_of(enum rule rule)
{
    return rule == RULE_ANY ? 0 : rule == RULE_MAX ? 8 : 4;
}

static void add_property(struct merging *merging, uint16_t machine, uint32_t object,
                         const struct property *property)
{
    enum rule rule = rule_of(machine, property->type);
    if (rule == RULE_ABSENT || property->data.size != size_of(rule))
        return;
    for (uint32_t i = 0; i < merging->types.count; i++) {
        struct merged *known = &merging->types.items[i];
        if (known->type == property->type) {
            join_value(known, property_value(property));
            known->count += known->object != object;
            known->object = object;
            return;
        }
    }
    struct merged first = {property->type, rule, property_value(property), 1, object};
    array_push(merging->arena, &merging->types, first);
}

/* A property that is empty for its type says what its absence says. */
static bool is_kept(const struct merged *merged, uint32_t object_count)
{
    bool in_all = merged->count == object_count;
    switch (merged->rule) {
    case RULE_AND: return in_all && merged->value != 0;
    case RULE_OR_AND: return in_all;
    case RULE_OR: return merged->value != 0;
    case RULE_MAX:
    case RULE_ANY: return true;
    case RULE_ABSENT: break;
    }
    return false;
}

static int compare_types(const void *left, const void *right)
{
    const struct merged *a = left, *b = right;
    return a->type < b->type ? -1 : a->type > b->type;
}

/* The properties of all notes of an object, all of them. */
static void add_object(struct merging *merging, const struct object *object,
                       uint32_t number)
{
    for (uint32_t i = 1; i < object->section_count; i++) {
        if (!section_is_property(&object->sections[i]))
            continue;
        struct property_reader reader = properties_of(object->sections[i].data);
        struct property property;
        while (property_next(&reader, &property))
            add_property(merging, object->machine, number, &property);
    }
}

bool properties_merge(struct arena *arena, const struct objects *objects,
                      struct section *out)
{
    struct merging merging = {.arena = arena};
    struct buffer list = buffer_new(arena), note = buffer_new(arena);
    for (uint32_t i = 0; i < objects->count; i++)
        add_object(&merging, objects->items[i], i);
    if (merging.types.count)
        qsort(merging.types.items, merging.types.count, sizeof(struct merged),
              compare_types);
    for (uint32_t i = 0; i < merging.types.count; i++) {
        const struct merged *merged = &merging.types.items[i];
        if (!is_kept(merged, objects->count))
            continue;
        buffer_u32(&list, merged->type);
        buffer_u32(&list, size_of(merged->rule));
        for (uint32_t k = 0; k < size_of(merged->rule); k++)
            buffer_u8(&list, (uint8_t)(merged->value >> 8 * k));
        buffer_fill(&list, 0, align_up(list.size, WORD_ALIGN) - list.size);
    }
    buffer_u32(&note, 4);
    buffer_u32(&note, (uint32_t)list.size);
    buffer_u32(&note, NT_GNU_PROPERTY_TYPE_0);
    buffer_put(&note, "GNU", 4);
    buffer_put(&note, list.at, list.size);
    *out = (struct section){.name = ".note.gnu.property",
                            .type = SHT_NOTE,
                            .flags = SHF_ALLOC,
                            .align = WORD_ALIGN,
                            .data = buffer_bytes(&note),
                            .group = NO_INDEX};
    return list.size > 0;
}
