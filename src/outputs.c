/* SPDX-License-Identifier: MIT
 *
 * From sets of objects to files.
 *
 * Everything that can fail for reasons of ours or of the input happens while the files
 * are built in memory; what is left then are the file system's own failures, of which
 * each leaves whole files only (file_write() renames).
 */
#include "mo/outputs.h"

#include "mo/array.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

struct file {
    const char *path;
    struct bytes bytes;
};

struct files {
    struct file *items;
    uint32_t count, capacity;
};

/* A file of a directory; the slash at the directory's end may be there or not. */
static bool add_file(struct arena *session, const char *directory, const char *name,
                     struct bytes bytes, struct files *files, struct error *err)
{
    const char *path = path_join(session, directory, name);
    for (uint32_t i = 0; i < files->count; i++) {
        if (strcmp(files->items[i].path, path) == 0)
            return fail(err, NULL, "%s: an input has the name that the helpers need",
                        path);
    }
    array_push(session, files, ((struct file){path, bytes}));
    return true;
}

static bool build_loose(struct arena *session, const char *directory,
                        const struct inputs *inputs, const struct set *set,
                        struct files *files, struct error *err)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i <= inputs->count; i++) {
        bool helpers = i == inputs->count;
        if (helpers ? next == set->objects.count : inputs->items[i].is_archive)
            continue;
        const char *name = helpers ? HELPERS_FILE : path_base(inputs->items[i].path);
        struct bytes bytes = {0};
        if (!object_build(session, set->objects.items[next++], &bytes, err) ||
            !add_file(session, directory, name, bytes, files, err))
            return false;
    }
    return true;
}

/* An archive with the members in their old order and the helpers, in a member of their
 * own, behind them. Thin archives become ordinary ones: their members' files are
 * inputs. */
static bool build_archive(struct arena *session, const char *directory,
                          const struct inputs *inputs, const struct set *set,
                          struct files *files, struct error *err)
{
    const struct input *input = &inputs->items[set->archive];
    array_of(struct archive_member) members = {0};
    uint32_t next = 0;
    for (uint32_t i = 0; i < input->archive.count; i++) {
        struct archive_member member = input->archive.members[i];
        if (member.is_object &&
            !object_build(session, set->objects.items[next++], &member.image, err))
            return false;
        array_push(session, &members, member);
    }
    if (next < set->objects.count) {
        struct archive_member helpers = {HELPERS_FILE, {0}, true};
        if (!object_build(session, set->objects.items[next], &helpers.image, err))
            return false;
        array_push(session, &members, helpers);
    }
    struct archive archive = {path_base(input->path), members.items, members.count,
                              false};
    struct bytes bytes = {0};
    return archive_build(session, &archive, &bytes, err) &&
           add_file(session, directory, archive.name, bytes, files, err);
}

static bool build_all(struct arena *session, const struct options *options,
                      const struct inputs *inputs, const struct sets *sets,
                      struct files *files, struct error *err)
{
    for (uint32_t i = 0; i < sets->count; i++) {
        const struct set *set = &sets->items[i];
        struct bytes bytes = {0};
        bool ok = true;
        if (!options->output_is_directory) {
            ok = object_build(session, set->objects.items[0], &bytes, err);
            array_push(session, files, ((struct file){options->output, bytes}));
        } else if (set->archive == NO_INDEX) {
            ok = build_loose(session, options->output, inputs, set, files, err);
        } else {
            ok = build_archive(session, options->output, inputs, set, files, err);
        }
        if (!ok)
            return false;
    }
    return true;
}

bool outputs_write(struct arena *session, const struct options *options,
                   const struct inputs *inputs, const struct sets *sets,
                   struct error *err)
{
    struct files files = {0};
    if (!build_all(session, options, inputs, sets, &files, err))
        return false;
    if (options->dry_run || !options->output)
        return true;
    if (options->output_is_directory && mkdir(options->output, 0777) != 0 &&
        errno != EEXIST)
        return fail_errno(err, NULL, "cannot make the directory %s", options->output);
    for (uint32_t i = 0; i < files.count; i++) {
        if (!file_write(files.items[i].path, files.items[i].bytes, err))
            return false;
    }
    return true;
}
