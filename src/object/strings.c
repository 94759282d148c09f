/* SPDX-License-Identifier: MIT */
#include "layout.h"

#include <string.h>

struct strings *strings_new(struct arena *arena)
{
    struct strings *strings = arena_new_one(arena, struct strings);
    strings->known = table_new(arena);
    strings->bytes = buffer_new(arena);
    (void)strings_add(strings, ""); /* offset 0, as gABI demands */
    return strings;
}

uint32_t strings_add(struct strings *strings, const char *text)
{
    uint32_t count = table_count(strings->known);
    uint32_t number = table_intern_string(strings->known, text);
    if (number < count)
        return (uint32_t)strings->offsets[number];
    if (number >= strings->capacity) {
        uint32_t capacity = strings->capacity ? strings->capacity * 2 : 256;
        uint64_t *offsets = arena_new_array(strings->bytes.arena, uint64_t, capacity);
        if (strings->capacity)
            memcpy(offsets, strings->offsets, strings->capacity * sizeof *offsets);
        strings->offsets = offsets;
        strings->capacity = capacity;
    }
    strings->offsets[number] = strings->bytes.size;
    buffer_string(&strings->bytes, text);
    return (uint32_t)strings->offsets[number];
}
