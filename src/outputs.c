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
#include "mo/parallel.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

struct file {
    const char *path;
    struct bytes bytes;
};

/* An object and the bytes of its file. */
struct building {
    const struct object *object;
    struct bytes image;
    const struct error *err; /* NULL: none */
};

struct builder {
    struct arena *session;
    const struct options *options;
    const struct inputs *inputs;
    uint32_t workers;      /* as in mo/parallel.h */
    struct arena **arenas; /* by worker */
    array_of(struct building) buildings; /* of all sets, in their order */
    uint32_t next;                       /* the first that is in no file yet */
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

static void build(void *context, uint32_t number, uint32_t worker)
{
    const struct builder *builder = context;
    struct building *building = &builder->buildings.items[number];
    struct arena *arena = builder->arenas[worker];
    struct error err = {0};
    if (!object_build(arena, building->object, &building->image, &err) ||
        !(builder->options->no_verify ||
          output_read_back(building->object, building->image, &err)))
        building->err = arena_copy(arena, &err, sizeof err);
}

static bool build_objects(struct builder *builder, const struct sets *sets,
                          struct error *err)
{
    for (uint32_t i = 0; i < sets->count; i++) {
        for (uint32_t j = 0; j < sets->items[i].objects.count; j++) {
            struct building building = {.object = sets->items[i].objects.items[j]};
            array_push(builder->session, &builder->buildings, building);
        }
    }
    builder->arenas = parallel_arenas(builder->session, builder->workers);
    parallel_do(builder->workers, builder->buildings.count, build, builder);
    parallel_adopt(builder->session, builder->arenas, builder->workers);
    for (uint32_t i = 0; i < builder->buildings.count; i++) {
        const struct error *failed = builder->buildings.items[i].err;
        if (failed)
            return fail(err, NULL, "%s", failed->message);
    }
    return true;
}

static const struct building *take(struct builder *builder)
{
    return &builder->buildings.items[builder->next++];
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
        next++;
        if (!add_file(builder, name, take(builder)->image, err))
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
    uint32_t end = builder->next + set->objects.count;
    for (uint32_t i = 0; i < input->archive.count; i++) {
        struct archive_member member = input->archive.members[i];
        if (member.is_object) {
            const struct building *built = take(builder);
            member.image = built->image;
            member.object = built->object;
        }
        array_push(session, &members, member);
    }
    if (builder->next < end) {
        const struct building *built = take(builder);
        struct archive_member helpers = {HELPERS_FILE, built->image, true,
                                         built->object};
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
    if (!build_objects(builder, sets, err))
        return false;
    for (uint32_t i = 0; i < sets->count; i++) {
        const struct set *set = &sets->items[i];
        bool ok = true;
        if (!builder->options->output_is_directory) {
            struct file file = {builder->options->output, take(builder)->image};
            array_push(builder->session, &builder->files, file);
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
    struct builder builder = {.session = session,
                              .options = options,
                              .inputs = inputs,
                              .workers = options->jobs ? options->jobs
                                                       : parallel_processors()};
    if (!build_all(&builder, sets, err))
        return false;
    if (options->dry_run || !options->output)
        return true;
    if (options->output_is_directory && mkdir(options->output, 0777) != 0 &&
        errno != EEXIST)
        return fail_errno(err, NULL, "cannot make the directory %s", options->output);
    arena_release();
    for (uint32_t i = 0; i < builder.files.count; i++) {
        const struct file *file = &builder.files.items[i];
        if (!file_write(file->path, file->bytes, err))
            return false;
    }
    return true;
}
