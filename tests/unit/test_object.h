/* SPDX-License-Identifier: MIT
 *
 * Small objects for the tests of src/object, made by hand.
 */
#ifndef MO_TEST_OBJECT_H
#define MO_TEST_OBJECT_H

#include "mo/object.h"

#include <elf.h>
#include <string.h>

enum { TEST_SECTIONS = 16, TEST_SYMBOLS = 32, TEST_GROUPS = 4 };

struct sketch {
    struct arena *arena;
    struct unit unit;
    struct section sections[TEST_SECTIONS];
    struct symbol symbols[TEST_SYMBOLS];
    struct group groups[TEST_GROUPS];
    struct object object;
};

static inline struct sketch *sketch_new(struct arena *arena, const char *name)
{
    struct sketch *sketch = arena_new_one(arena, struct sketch);
    sketch->arena = arena;
    sketch->unit.name = name;
    sketch->sections[0] = (struct section){.name = "", .align = 1, .group = NO_INDEX};
    sketch->symbols[0].name = "";
    sketch->object = (struct object){.name = name,
                                     .machine = EM_X86_64,
                                     .units = &sketch->unit,
                                     .unit_count = 1,
                                     .sections = sketch->sections,
                                     .section_count = 1,
                                     .symbols = sketch->symbols,
                                     .symbol_count = 1,
                                     .groups = sketch->groups};
    return sketch;
}

static inline uint32_t sketch_section(struct sketch *sketch, const char *name,
                                      uint64_t flags, const void *bytes, uint64_t size)
{
    uint32_t index = sketch->object.section_count++;
    sketch->sections[index] = (struct section){
        .name = name,
        .type = SHT_PROGBITS,
        .flags = flags,
        .align = 1,
        .data = {arena_copy(sketch->arena, bytes, size), size},
        .group = NO_INDEX
    };
    return index;
}

static inline uint32_t sketch_symbol(struct sketch *sketch, const char *name,
                                     uint8_t bind, uint32_t section, uint64_t value,
                                     uint64_t size)
{
    uint32_t index = sketch->object.symbol_count++;
    sketch->symbols[index] = (struct symbol){.name = name,
                                             .value = value,
                                             .size = size,
                                             .section = section,
                                             .bind = bind,
                                             .type = *name ? STT_NOTYPE : STT_SECTION};
    return index;
}

static inline void sketch_reloc(struct sketch *sketch, uint32_t section,
                                uint64_t offset, uint32_t symbol, uint32_t type,
                                int64_t addend)
{
    struct section *to = &sketch->sections[section];
    struct reloc *relocs =
        arena_new_array(sketch->arena, struct reloc, to->reloc_count + 1);
    if (to->reloc_count)
        memcpy(relocs, to->relocs, to->reloc_count * sizeof *relocs);
    relocs[to->reloc_count++] = (struct reloc){offset, addend, symbol, type};
    to->relocs = relocs;
}

/* A COMDAT group of one section. */
static inline void sketch_group(struct sketch *sketch, uint32_t signature,
                                uint32_t section)
{
    uint32_t number = sketch->object.group_count++;
    uint32_t *members = arena_new_array(sketch->arena, uint32_t, 1);
    members[0] = section;
    sketch->groups[number] = (struct group){signature, GRP_COMDAT, members, 1};
    sketch->sections[section].group = number;
}

/* The symbol of that name, or NULL. */
static inline const struct symbol *find_symbol(const struct object *object,
                                               const char *name)
{
    for (uint32_t i = 1; i < object->symbol_count; i++) {
        if (strcmp(object->symbols[i].name, name) == 0)
            return &object->symbols[i];
    }
    return NULL;
}

/* The section of that name and unit, or NULL. */
static inline const struct section *find_section(const struct object *object,
                                                 const char *name, uint32_t unit)
{
    for (uint32_t i = 1; i < object->section_count; i++) {
        if (strcmp(object->sections[i].name, name) == 0 &&
            object->sections[i].unit == unit)
            return &object->sections[i];
    }
    return NULL;
}

#endif
