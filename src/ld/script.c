/* SPDX-License-Identifier: MIT
 *
 * Libraries that are linker scripts. Debian's libm.a is a few words of text:
 *
 *     GROUP ( /usr/lib/x86_64-linux-gnu/libm-2.36.a /usr/lib/x86_64-linux-gnu/libmvec.a )
 *
 * Most linkers' traces name the archives and not the script. So the folders of -L are
 * searched for one that names an archive which was loaded. If it should be another one
 * than the linker has read, the second link loads something else, and is not taken.
 *
 * A script that names shared libraries is left alone, such as libc.so: what its archive
 * adds is a handful of instructions.
 */
#include "ld.h"

#include "mo/array.h"
#include "mo/table.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LONGEST_SCRIPT = 4096 };

static const char gaps[] = " \t\r\n(),";

/* The folder of a -L, or NULL. */
static const char *folder_of(const struct command *command, uint32_t word)
{
    const char *text = command->words[word].text;
    if (command->words[word].role != WORD_OPTION || strncmp(text, "-L", 2) != 0)
        return NULL;
    if (text[2] != '\0')
        return text + 2;
    return word + 1 < command->count ? command->words[word + 1].text : NULL;
}

/* Read if it is a few words; an archive is not read for this. */
static bool read_script(struct arena *session, const char *path, struct bytes *out)
{
    struct error ignored = {0};
    struct stat status;
    return stat(path, &status) == 0 && status.st_size > 0 &&
           status.st_size < LONGEST_SCRIPT && file_read(session, path, out, &ignored) &&
           memchr(out->at, '\0', out->size) == NULL && out->at[0] != '!';
}

/* The archives of a script that were loaded. Fewer than one: none that we may touch. */
static struct text_list loaded_of(struct arena *session, struct bytes text,
                                  const struct table *loaded)
{
    struct text_list found = {0};
    char *copy = arena_format(session, "%.*s", (int)text.size, (const char *)text.at);
    if (strstr(copy, ".so"))
        return found;
    for (char *at = copy + strspn(copy, gaps); *at; at += strspn(at, gaps)) {
        char *word = at;
        at += strcspn(at, gaps);
        if (*at)
            *at++ = '\0';
        if (word[0] == '/' && table_find_string(loaded, word) != NO_INDEX)
            array_push(session, &found, word);
    }
    return found;
}

static bool read_as(struct arena *session, const char *path, const struct table *loaded,
                    struct script *out)
{
    out->path = path;
    if (!read_script(session, path, &out->text))
        return false;
    out->archives = loaded_of(session, out->text, loaded);
    return out->archives.count > 0;
}

bool script_find(struct arena *session, const struct command *command,
                 const struct table *loaded, const char *library, struct script *out)
{
    for (uint32_t i = 0; i < command->count && library[0] != ':'; i++) {
        const char *folder = folder_of(command, i);
        const char *path = arena_format(session, "%s/lib%s.a", folder ? folder : "",
                                        library);
        if (folder && access(path, F_OK) == 0) /* which the linker has taken, if any */
            return read_as(session, path, loaded, out);
    }
    return false;
}

bool script_open(struct arena *session, const struct command *command,
                 const char *name, struct bytes *out)
{
    struct error ignored = {0};
    if (file_read(session, name, out, &ignored))
        return true;
    for (uint32_t i = 0; i < command->count && name[0] != '/'; i++) {
        const char *folder = folder_of(command, i);
        if (folder && file_read(session, path_join(session, folder, name), out, &ignored))
            return true;
    }
    return false;
}

bool script_is(struct arena *session, const char *path, struct bytes *out)
{
    const char *end = strrchr(path_base(path), '.');
    bool is_object = end && (strcmp(end, ".o") == 0 || strcmp(end, ".a") == 0);
    struct error ignored = {0};
    if (is_object || !file_read(session, path, out, &ignored) || out->size < 8 ||
        memchr(out->at, '\0', out->size) || out->at[0] == '!')
        return false;
    const char *text = arena_format(session, "%.*s", (int)out->size, (const char *)out->at);
    return strstr(text, "SECTIONS") != NULL;
}

/* The new file in the place of one that the script names, or NULL. */
static const char *new_path_of(const struct choice *choice, const bool *written,
                               const char *word, size_t size)
{
    for (uint32_t i = 0; i < choice->file_count; i++) {
        const struct chosen *file = &choice->files[i];
        if (written[i] && strlen(file->path) == size &&
            memcmp(file->path, word, size) == 0)
            return file->new_path;
    }
    return NULL;
}

bool script_rewrite(struct arena *session, const struct choice *choice,
                    const bool *written, struct bytes text, struct bytes *out)
{
    struct buffer buffer = buffer_new(session);
    const char *at = arena_format(session, "%.*s", (int)text.size, (const char *)text.at);
    bool changed = false;
    while (*at) {
        size_t gap = strspn(at, gaps), size = strcspn(at + gap, gaps);
        const char *path = new_path_of(choice, written, at + gap, size);
        changed = changed || path;
        buffer_put(&buffer, at, gap);
        buffer_put(&buffer, path ? path : at + gap, path ? strlen(path) : size);
        at += gap + size;
    }
    *out = buffer_bytes(&buffer);
    return changed;
}
