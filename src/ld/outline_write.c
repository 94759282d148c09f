/* SPDX-License-Identifier: MIT
 *
 * New files in the scratch folder: for each input file that holds a unit one under its
 * own base name, in a folder of its own, since linker scripts and --exclude-libs know
 * files by that name. An archive keeps all of its members, so that its index stays the
 * same; those that the link needs have new contents.
 */
#include "ld.h"

#include "mo/outputs.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static bool build(struct arena *session, const struct outline_job *job,
                  const struct object *object, struct bytes *out, struct error *err)
{
    return object_build(session, object, out, err) &&
           (job->options->no_verify || output_read_back(object, *out, err));
}

static bool write_new(struct arena *session, const char *path, struct bytes bytes,
                      struct error *err)
{
    const char *base = path_base(path);
    const char *folder = arena_format(session, "%.*s", (int)(base - path), path);
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return fail_errno(err, NULL, "cannot make the folder %s", folder);
    return file_write(path, bytes, err);
}

static bool write_archive(struct arena *session, const struct outline_job *job,
                          const struct unit_list *units, const struct objects *objects,
                          uint32_t file, struct error *err)
{
    const struct archive *old = &units->archives[file];
    struct archive_member *members =
        arena_copy(session, old->members, old->count * sizeof *members);
    for (uint32_t i = 0; i < units->count; i++) {
        const struct unit_place *place = &units->places[i];
        if (place->file == file &&
            !build(session, job, objects->items[i], &members[place->member].image, err))
            return false;
    }
    for (uint32_t i = 0; old->thin && i < old->count; i++)
        members[i].name = path_base(members[i].name);
    struct archive archive = {old->name, members, old->count, false};
    struct bytes bytes = {0};
    return archive_build(session, &archive, &bytes, err) &&
           write_new(session, job->choice->files[file].new_path, bytes, err);
}

/* Libraries that name what now lies elsewhere. */
static bool write_scripts(struct arena *session, const struct outline_job *job,
                          const bool *written, struct error *err)
{
    for (uint32_t i = 0; i < job->choice->file_count; i++) {
        const struct chosen *file = &job->choice->files[i];
        struct bytes text = {0};
        if (file->script.size > 0 &&
            script_rewrite(session, job->choice, written, file->script, &text) &&
            !write_new(session, file->new_path, text, err))
            return false;
    }
    return true;
}

bool outline_write(struct arena *session, const struct outline_job *job,
                   const struct unit_list *units, const struct objects *objects,
                   struct error *err)
{
    bool *done = arena_new_array(session, bool, job->choice->file_count);
    for (uint32_t i = 0; i < units->count; i++) {
        const struct unit_place *place = &units->places[i];
        const char *path = job->choice->files[place->file].new_path;
        struct bytes bytes = {0};
        if (done[place->file])
            continue;
        done[place->file] = true;
        bool ok = place->member != NO_INDEX
                      ? write_archive(session, job, units, objects, place->file, err)
                      : build(session, job, objects->items[i], &bytes, err) &&
                            write_new(session, path, bytes, err);
        if (!ok)
            return false;
    }
    if (!write_scripts(session, job, done, err))
        return false;
    if (objects->count == units->count)
        return true;
    struct bytes bytes = {0};
    return build(session, job, objects->items[units->count], &bytes, err) &&
           file_write(path_join(session, job->scratch, HELPERS_FILE), bytes, err);
}
