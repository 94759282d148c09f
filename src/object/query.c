/* SPDX-License-Identifier: MIT */
#include "mo/object.h"

#include <elf.h>
#include <string.h>

/* Clang and rustc give .eh_frame this type on x86-64 (psABI 4.2); gcc uses PROGBITS. */
#define FRAME_TYPE SHT_X86_64_UNWIND

bool section_is_code(const struct section *section)
{
    const uint64_t code = SHF_ALLOC | SHF_EXECINSTR;
    return section->type == SHT_PROGBITS && (section->flags & code) == code;
}

bool section_is_frame(const struct section *section)
{
    return (section->type == SHT_PROGBITS || section->type == FRAME_TYPE) &&
           (section->flags & SHF_ALLOC) && strcmp(section->name, ".eh_frame") == 0;
}

static bool has_prefix(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

bool section_is_debug(const struct section *section)
{
    static const char *const prefixes[] = {
        ".debug_", ".zdebug_", ".stab", ".line", ".gnu.debuglto_", ".gnu.linkonce.wi."};
    if (section->flags & SHF_ALLOC)
        return false;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        if (has_prefix(section->name, prefixes[i]))
            return true;
    }
    return strcmp(section->name, ".gdb_index") == 0 ||
           strcmp(section->name, ".debug") == 0;
}

uint32_t section_reloc_at(const struct section *section, uint64_t offset)
{
    uint32_t low = 0, high = section->reloc_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (section->relocs[middle].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool symbol_is_local(const struct symbol *symbol)
{
    return symbol->bind == STB_LOCAL || symbol->type == STT_SECTION;
}

uint32_t object_section_symbol(const struct object *object, uint32_t section)
{
    for (uint32_t i = 1; i < object->symbol_count; i++) {
        const struct symbol *symbol = &object->symbols[i];
        if (symbol->type == STT_SECTION && symbol->section == section)
            return i;
    }
    return NO_INDEX;
}

struct place object_place(const struct object *object, uint32_t section,
                          uint64_t offset)
{
    struct place place = {.file = section_unit(object, section)};
    if (section == 0 || section >= object->section_count)
        return place;
    place.section = object->sections[section].name;
    place.offset = offset;
    for (uint32_t i = 1; i < object->symbol_count; i++) {
        const struct symbol *symbol = &object->symbols[i];
        bool around = symbol->section == section && offset >= symbol->value &&
                      (offset - symbol->value < symbol->size ||
                       (symbol->size == 0 && offset == symbol->value));
        if (symbol->type == STT_FUNC && around) {
            place.function = symbol->name;
            place.function_offset = offset - symbol->value;
            break;
        }
    }
    return place;
}

const char *section_unit(const struct object *object, uint32_t section)
{
    if (section >= object->section_count)
        return object->name;
    uint32_t unit = object->sections[section].unit;
    return unit < object->unit_count ? object->units[unit].name : object->name;
}
