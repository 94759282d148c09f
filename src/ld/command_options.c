/* SPDX-License-Identifier: MIT
 *
 * The options of linkers, as far as one must know them to tell options, values and
 * inputs apart: those with a value in the next word, and those that mean something to
 * us. Everything else is carried through unread.
 *
 * Reference: GNU ld's manual, "Command Line Options"; gold's, lld's and mold's --help.
 * Long names have one dash or two, but those that begin with 'o' have two, since -oFILE
 * is an output.
 */
#include "ld.h"

#include <string.h>

struct option_entry {
    const char *name; /* without dashes */
    enum word_meaning meaning;
    bool takes_value;
};

/* clang-format off */
static const struct option_entry long_options[] = {
    {"output", MEANS_OUTPUT, true},
    {"library", MEANS_LIBRARY, true},
    {"Map", MEANS_MAP, true},
    {"script", MEANS_SCRIPT, true},
    {"default-script", MEANS_SCRIPT, true},
    {"dT", MEANS_SCRIPT, true},
    {"dependency-file", MEANS_SIDE, true},
    {"reproduce", MEANS_SIDE, true},
    {"relocatable", MEANS_RELOCATABLE, false},
    {"Ur", MEANS_RELOCATABLE, false},
    {"gc-sections", MEANS_GC, false},
    {"no-gc-sections", MEANS_NO_GC, false},
    {"strip-all", MEANS_STRIP, false},
    {"strip-debug", MEANS_STRIP, false},
    {"start-lib", MEANS_LAZY, false},
    {"end-lib", MEANS_EAGER, false},
    {"help", MEANS_INFORM, false},
    {"version", MEANS_INFORM, false},
    {"print-map", MEANS_PRINT_MAP, false},
    {"trace", MEANS_PRINT, false},
    {"verbose", MEANS_PRINT, false},
    {"dll-verbose", MEANS_PRINT, false},
    {"trace-symbol", MEANS_PRINT, true},
    {"cref", MEANS_PRINT, false},
    {"stats", MEANS_PRINT, false},
    {"print-gc-sections", MEANS_PRINT_GC, false},
    {"print-icf-sections", MEANS_PRINT, false},
    {"print-memory-usage", MEANS_PRINT, false},
    {"print-map-discarded", MEANS_PRINT, false},
    {"print-output-format", MEANS_PRINT, false},
    {"print-sysroot", MEANS_PRINT, false},
    {"format", MEANS_STRANGE, true},
    {"mri-script", MEANS_STRANGE, true},
    {"incremental", MEANS_STRANGE, false},
    {"incremental-full", MEANS_STRANGE, false},
    {"incremental-update", MEANS_STRANGE, false},
    {"architecture", MEANS_NOTHING, true},
    {"assert", MEANS_NOTHING, true},
    {"audit", MEANS_NOTHING, true},
    {"auxiliary", MEANS_NOTHING, true},
    {"defsym", MEANS_NOTHING, true},
    {"depaudit", MEANS_NOTHING, true},
    {"dynamic-linker", MEANS_NOTHING, true},
    {"dynamic-list", MEANS_NOTHING, true},
    {"entry", MEANS_NOTHING, true},
    {"exclude-libs", MEANS_NOTHING, true},
    {"export-dynamic-symbol", MEANS_NOTHING, true},
    {"export-dynamic-symbol-list", MEANS_NOTHING, true},
    {"filter", MEANS_NOTHING, true},
    {"fini", MEANS_NOTHING, true},
    {"image-base", MEANS_NOTHING, true},
    {"init", MEANS_NOTHING, true},
    {"just-symbols", MEANS_NOTHING, true},
    {"library-path", MEANS_NOTHING, true},
    {"oformat", MEANS_NOTHING, true},
    {"orphan-handling", MEANS_NOTHING, true},
    {"plugin", MEANS_NOTHING, true},
    {"plugin-opt", MEANS_NOTHING, true},
    {"remap-inputs-file", MEANS_NOTHING, true},
    {"require-defined", MEANS_NOTHING, true},
    {"retain-symbols-file", MEANS_NOTHING, true},
    {"rpath", MEANS_NOTHING, true},
    {"rpath-link", MEANS_NOTHING, true},
    {"section-ordering-file", MEANS_NOTHING, true},
    {"section-start", MEANS_NOTHING, true},
    {"soname", MEANS_NOTHING, true},
    {"symbol-ordering-file", MEANS_NOTHING, true},
    {"sysroot", MEANS_NOTHING, true},
    {"Tbss", MEANS_NOTHING, true},
    {"Tdata", MEANS_NOTHING, true},
    {"Tldata-segment", MEANS_NOTHING, true},
    {"Trodata-segment", MEANS_NOTHING, true},
    {"Ttext", MEANS_NOTHING, true},
    {"Ttext-segment", MEANS_NOTHING, true},
    {"undefined", MEANS_NOTHING, true},
    {"unresolved-symbols", MEANS_NOTHING, true},
    {"version-script", MEANS_NOTHING, true},
    {"wrap", MEANS_WRAP, true},
};

/* One letter, one dash. */
static const struct option_entry letters[] = {
    {"o", MEANS_OUTPUT, true},       {"l", MEANS_LIBRARY, true},
    {"T", MEANS_SCRIPT, true},       {"m", MEANS_EMULATION, true},
    {"b", MEANS_STRANGE, true},      {"c", MEANS_STRANGE, true},
    {"y", MEANS_PRINT, true},        {"A", MEANS_NOTHING, true},
    {"F", MEANS_NOTHING, true},      {"G", MEANS_NOTHING, true},
    {"I", MEANS_NOTHING, true},      {"L", MEANS_NOTHING, true},
    {"O", MEANS_NOTHING, true},      {"P", MEANS_NOTHING, true},
    {"R", MEANS_NOTHING, true},      {"Y", MEANS_NOTHING, true},
    {"a", MEANS_NOTHING, true},      {"e", MEANS_NOTHING, true},
    {"f", MEANS_NOTHING, true},      {"h", MEANS_NOTHING, true},
    {"u", MEANS_NOTHING, true},      {"z", MEANS_NOTHING, true},
    {"r", MEANS_RELOCATABLE, false}, {"i", MEANS_RELOCATABLE, false},
    {"s", MEANS_STRIP, false},       {"S", MEANS_STRIP, false},
    {"M", MEANS_PRINT_MAP, false},       {"t", MEANS_PRINT, false},
    {"v", MEANS_INFORM, false},      {"V", MEANS_INFORM, false},
};
/* clang-format on */

static struct known_option known(const struct option_entry *entry)
{
    return (struct known_option){entry->meaning, entry->takes_value};
}

static const struct option_entry *find_long(const char *name, const char **value)
{
    size_t size = strcspn(name, "=");
    for (size_t i = 0; i < sizeof long_options / sizeof *long_options; i++) {
        const struct option_entry *entry = &long_options[i];
        if (strlen(entry->name) != size || memcmp(entry->name, name, size) != 0)
            continue;
        *value = name[size] == '=' ? name + size + 1 : NULL;
        return entry;
    }
    return NULL;
}

static const struct option_entry *find_letter(const char *name, const char **value)
{
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++) {
        const struct option_entry *entry = &letters[i];
        if (entry->name[0] != name[0])
            continue;
        if (name[1] != '\0' && !entry->takes_value)
            return NULL; /* a long name that we do not know */
        *value = name[1] != '\0' ? name + 1 : NULL;
        return entry;
    }
    return NULL;
}

struct known_option option_known(const char *word, const char **value)
{
    *value = NULL;
    bool two = word[1] == '-';
    const char *name = word + 1 + two;
    const struct option_entry *entry = NULL;
    if (two || name[0] != 'o')
        entry = find_long(name, value);
    if (!entry && !two)
        entry = find_letter(name, value);
    return entry ? known(entry) : (struct known_option){MEANS_NOTHING, false};
}
