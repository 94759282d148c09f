/* SPDX-License-Identifier: MIT
 *
 * Which of the loaded files and members we may replace: those that a word of the
 * command line names, itself or through a library that is a script (script.c). What the
 * linker found by itself (through another script, in a plugin) stays as it is, and so
 * does whatever is not certain to be what a word means:
 *
 * - start files hold almost no code, and linker scripts know them by name;
 * - a library word stands for the archive of that name among the loaded files, if there
 *   is one such file and no shared library of that name beside it.
 *
 * Of two members of one name nobody can say which was loaded: outline.c looks at that.
 */
#include "ld.h"

#include "mo/array.h"
#include "mo/table.h"

#include <string.h>
#include <sys/stat.h>

struct choosing {
    struct arena *session;
    const struct command *command;
    const struct trace *trace;
    const char *scratch;
    struct table *loaded; /* paths */
    struct table *chosen; /* paths: number = index in files */
    array_of(struct chosen) files;
};

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_start_file(const char *path)
{
    static const char *const names[] = {"crt1.o", "Scrt1.o", "gcrt1.o", "Mcrt1.o",
                                        "rcrt1.o", "grcrt1.o", "crti.o", "crtn.o",
                                        "crtfastmath.o"};
    const char *name = path_base(path);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    return starts_with(name, "crtbegin") || starts_with(name, "crtend");
}

static bool same_path(const char *a, const char *b)
{
    struct stat one, two;
    if (strcmp(a, b) == 0)
        return true;
    /* mold tidies paths up before it prints them */
    return strcmp(path_base(a), path_base(b)) == 0 && stat(a, &one) == 0 &&
           stat(b, &two) == 0 && one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

/* The library "foo" or ":libfoo.a" may be this file: 1 as an archive, -1 as something
 * else (a shared library, or a script of that name), 0 not at all. */
static int library_match(struct arena *session, const char *library, const char *path)
{
    const char *name = path_base(path);
    if (library[0] == ':')
        return strcmp(name, library + 1) == 0 ? 1 : 0;
    if (strcmp(name, arena_format(session, "lib%s.a", library)) == 0)
        return 1;
    return starts_with(name, arena_format(session, "lib%s.so", library)) ? -1 : 0;
}

/* The path of the one loaded file that the library word means, or NULL. */
static const char *library_path(const struct choosing *choosing, const char *library)
{
    const char *found = NULL;
    for (uint32_t i = 0; i < choosing->trace->count; i++) {
        const char *path = choosing->trace->items[i].path;
        int match = library_match(choosing->session, library, path);
        if (match < 0 || (match > 0 && found && !same_path(found, path)))
            return NULL;
        if (match > 0 && !found)
            found = path;
    }
    return found;
}

/* As the trace spells it; NULL when the word names nothing that was loaded. */
static const char *loaded_path(const struct choosing *choosing, const struct word *word)
{
    if (word->library)
        return library_path(choosing, word->library);
    if (word->role != WORD_FILE)
        return NULL;
    if (table_find_string(choosing->loaded, word->text) != NO_INDEX)
        return word->text;
    for (uint32_t i = 0; i < choosing->trace->count; i++) {
        if (same_path(choosing->trace->items[i].path, word->text))
            return choosing->trace->items[i].path;
    }
    /* gold does not trace what a plugin has claimed; but the user wants to read of it */
    size_t size = strlen(word->text);
    return size > 2 && strcmp(word->text + size - 2, ".o") == 0 ? word->text : NULL;
}

static uint32_t file_number(struct choosing *choosing, const char *path)
{
    uint32_t number = table_intern_string(choosing->chosen, path);
    if (number == choosing->files.count) {
        const char *new_path =
            arena_format(choosing->session, "%s/%u/%s", choosing->scratch,
                         (unsigned)number, path_base(path));
        array_push(choosing->session, &choosing->files,
                   ((struct chosen){path, new_path, {0}}));
    }
    return number;
}

/* A library that names others: these are chosen, and the script for their sake. */
static uint32_t script_number(struct choosing *choosing, const struct word *word)
{
    struct script script;
    if (!word->library || !script_find(choosing->session, choosing->command,
                                       choosing->loaded, word->library, &script))
        return NO_INDEX;
    for (uint32_t i = 0; i < script.archives.count; i++)
        (void)file_number(choosing, script.archives.items[i]);
    const char *traced = library_path(choosing, word->library); /* by GNU ld */
    uint32_t number = file_number(choosing, traced ? traced : script.path);
    choosing->files.items[number].script = script.text;
    return number;
}

struct choice choose_inputs(struct arena *session, const struct command *command,
                            const struct trace *trace, const char *scratch)
{
    struct choosing choosing = {session, command, trace, scratch, .files = {0}};
    choosing.loaded = table_new(session);
    choosing.chosen = table_new(session);
    for (uint32_t i = 0; i < trace->count; i++)
        (void)table_intern_string(choosing.loaded, trace->items[i].path);
    uint32_t *file_of = arena_new_array(session, uint32_t, command->count);
    for (uint32_t i = 0; i < command->count; i++) {
        const struct word *word = &command->words[i];
        const char *path = loaded_path(&choosing, word);
        file_of[i] = script_number(&choosing, word);
        if (file_of[i] == NO_INDEX && path && !is_start_file(path))
            file_of[i] = file_number(&choosing, path);
    }
    return (struct choice){choosing.files.items, choosing.files.count, file_of};
}
