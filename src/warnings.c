/* SPDX-License-Identifier: MIT */
#include "mo/warnings.h"

#include "mo/match.h"
#include "mo/table.h"

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

/* --explain has a word on labels and frozen code, too. */
static bool names_code(const struct object *object, const char *glob)
{
    for (uint32_t i = 1; i < object->symbol_count; i++) {
        const struct symbol *symbol = &object->symbols[i];
        if (symbol->section < object->section_count && symbol->section != 0 &&
            section_is_code(&object->sections[symbol->section]) &&
            glob_is_function(glob, section_unit(object, symbol->section), symbol->name))
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

static bool names_unit(const struct object *object, const char *glob)
{
    for (uint32_t i = 0; i < object->unit_count; i++) {
        if (glob_is_unit(glob, object->units[i].name))
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

static void warn_each(FILE *out, const struct sets *sets, const struct text_list *globs,
                      names_something *names, const char *option, const char *what)
{
    for (uint32_t i = 0; i < globs->count; i++) {
        if (!is_matched(sets, names, globs->items[i]))
            fprintf(out, "mo-link: warning: %s=%s: there is no such %s here\n", option,
                    globs->items[i], what);
    }
}

static bool is_profiled(const struct object *object, const struct table *names)
{
    for (uint32_t i = 1; i < object->symbol_count; i++) {
        const struct symbol *symbol = &object->symbols[i];
        if (symbol->section != SECTION_UNDEFINED &&
            table_find_string(names, symbol->name) != NO_INDEX)
            return true;
    }
    return false;
}

/* A profile names much that is no input (the kernel, libraries); one of which nothing is
 * here is that of another program, or has other names (perf demangles). */
static void warn_profile(FILE *out, const struct options *options,
                         const struct sets *sets)
{
    bool found = options->profiled == NULL;
    for (uint32_t i = 0; i < sets->count && !found; i++) {
        const struct objects *objects = &sets->items[i].objects;
        for (uint32_t j = 0; j < objects->count && !found; j++)
            found = is_profiled(objects->items[j], options->profiled);
    }
    if (!found)
        fprintf(out, "mo-link: warning: --profile=%s: %s\n", options->profile,
                table_count(options->profiled) ? "none of its functions is here"
                                               : "there is no function in it");
}

void warn_unmatched(FILE *out, const struct options *options, const struct sets *sets)
{
    warn_each(out, sets, &options->keep, names_function, "--keep", "function");
    warn_each(out, sets, &options->only, names_function, "--only", "function");
    warn_each(out, sets, &options->keep_sections, names_section, "--keep-section",
              "code section");
    warn_each(out, sets, &options->keep_files, names_unit, "--keep-file", "input");
    warn_profile(out, options, sets);
}

bool check_named(const struct options *options, const struct sets *sets,
                 struct error *err)
{
    const char *const names[][2] = {{"--explain", options->explain},
                                    {"--print", options->print}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *glob = names[i][1];
        if (glob && !is_matched(sets, names_code, glob))
            return fail(err, NULL, "%s=%s: there is no such function here", names[i][0],
                        glob);
    }
    return true;
}
