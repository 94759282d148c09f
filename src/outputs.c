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

struct builder {
    struct arena *session;
    const struct options *options;
    const struct inputs *inputs;
    struct {
        struct file *items;
        uint32_t count, capacity;
    } files;
};

/* A file of the output directory. */
static bool add_file(struct builder *builder, const char *name, struct bytes bytes,
                     struct error *err)
{
    const char *path = path_join(builder->session, builder->options->output, name);
    for (uint32_t i = 0; i < builder->files.count; i++) {
        if (strcmp(builder->files.items[i].path, path) == 0)
            return fail(err, NULL, "%s: an input has the name that the helpers need",
                        path);
    }
    array_push(builder->session, &builder->files, ((struct file){path, bytes}));
    return true;
}

static bool build(struct builder *builder, const struct object *object,
                  struct bytes *out, struct error *err)
{
    return object_build(builder->session, object, out, err) &&
           (builder->options->no_verify || output_read_back(object, *out, err));
}

static bool build_loose(struct builder *builder, const struct set *set,
                        struct error *err)
{
    const struct inputs *inputs = builder->inputs;
    uint32_t next = 0;
    for (uint32_t i = 0; i <= inputs->count; i++) {
        bool helpers = i == inputs->count;
        if (helpers ? next == set->objects.count : inputs->items[i].is_archive)
            continue;
        const char *name = helpers ? HELPERS_FILE : path_base(inputs->items[i].path);
        struct bytes bytes = {0};
        if (!build(builder, set->objects.items[next++], &bytes, err) ||
            !add_file(builder, name, bytes, err))
            return false;
    }
    return true;
}

/* An archive with the members in their old order and the helpers, in a member of their
 * own, behind them. Thin archives become ordinary ones: their members' files are
 * inputs. */
static bool build_archive(struct builder *builder, const struct set *set,
                          struct error *err)
{
    struct arena *session = builder->session;
    const struct input *input = &builder->inputs->items[set->archive];
    array_of(struct archive_member) members = {0};
    uint32_t next = 0;
    for (uint32_t i = 0; i < input->archive.count; i++) {
        struct archive_member member = input->archive.members[i];
        if (member.is_object &&
            !build(builder, set->objects.items[next++], &member.image, err))
            return false;
        array_push(session, &members, member);
    }
    if (next < set->objects.count) {
        struct archive_member helpers = {HELPERS_FILE, {0}, true};
        if (!build(builder, set->objects.items[next], &helpers.image, err))
            return false;
        array_push(session, &members, helpers);
    }
    struct archive archive = {path_base(input->path), members.items, members.count,
                              false};
    struct bytes bytes = {0};
    return archive_build(session, &archive, &bytes, err) &&
           add_file(builder, archive.name, bytes, err);
}

static bool build_all(struct builder *builder, const struct sets *sets,
                      struct error *err)
{
    for (uint32_t i = 0; i < sets->count; i++) {
        const struct set *set = &sets->items[i];
        struct bytes bytes = {0};
        bool ok = true;
        if (!builder->options->output_is_directory) {
            ok = build(builder, set->objects.items[0], &bytes, err);
            array_push(builder->session, &builder->files,
                       ((struct file){builder->options->output, bytes}));
        } else if (set->archive == NO_INDEX) {
            ok = build_loose(builder, set, err);
        } else {
            ok = build_archive(builder, set, err);
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
    struct builder builder = {.session = session, .options = options, .inputs = inputs};
    if (!build_all(&builder, sets, err))
        return false;
    if (options->dry_run || !options->output)
        return true;
    if (options->output_is_directory && mkdir(options->output, 0777) != 0 &&
        errno != EEXIST)
        return fail_errno(err, NULL, "cannot make the directory %s", options->output);
    for (uint32_t i = 0; i < builder.files.count; i++) {
        const struct file *file = &builder.files.items[i];
        if (!file_write(file->path, file->bytes, err))
            return false;
    }
    return true;
}
