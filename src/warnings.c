/* SPDX-License-Identifier: MIT */
#include "mo/warnings.h"

#include <elf.h>
#include <fnmatch.h>

static bool names_function(const struct object *object, const char *glob)
{
    for (uint32_t i = 1; i < object->symbol_count; i++) {
        const struct symbol *symbol = &object->symbols[i];
        if ((symbol->type == STT_FUNC || symbol->type == STT_GNU_IFUNC) &&
            symbol->section != SECTION_UNDEFINED && fnmatch(glob, symbol->name, 0) == 0)
            return true;
    }
    return false;
}

static bool names_section(const struct object *object, const char *glob)
{
    for (uint32_t i = 1; i < object->section_count; i++) {
        const struct section *section = &object->sections[i];
        if (section_is_code(section) && fnmatch(glob, section->name, 0) == 0)
            return true;
    }
    return false;
}

typedef bool names_something(const struct object *object, const char *glob);

static bool is_matched(const struct sets *sets, names_something *names,
                       const char *glob)
{
    for (uint32_t i = 0; i < sets->count; i++) {
        const struct objects *objects = &sets->items[i].objects;
        for (uint32_t j = 0; j < objects->count; j++) {
            if (names(objects->items[j], glob))
                return true;
        }
    }
    return false;
}

void warn_unmatched(FILE *out, const struct options *options, const struct sets *sets)
{
    for (uint32_t i = 0; i < options->keep.count; i++) {
        const char *glob = options->keep.items[i];
        if (!is_matched(sets, names_function, glob))
            fprintf(out,
                    "mo-link: warning: --keep=%s: there is no such function here\n",
                    glob);
    }
    for (uint32_t i = 0; i < options->keep_sections.count; i++) {
        const char *glob = options->keep_sections.items[i];
        if (!is_matched(sets, names_section, glob))
            fprintf(
                out,
                "mo-link: warning: --keep-section=%s: there is no such code section "
                "here\n",
                glob);
    }
}
