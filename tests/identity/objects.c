/* SPDX-License-Identifier: MIT */
#include "tests/identity/objects.h"

#include <stdio.h>
#include <string.h>

/* A lone object is an archive of one. */
static bool read_members(struct arena *session, const char *path,
                         struct archive *archive, struct error *err)
{
    struct bytes image;
    if (!file_read(session, path, &image, err))
        return false;
    if (archive_recognise(image))
        return archive_read(session, path, image, archive, err);
    struct archive_member alone = {path, image, true, NULL};
    *archive = (struct archive){
        path, arena_copy(session, &alone, sizeof alone), 1, false};
    return true;
}

static bool check_file(struct arena *session, const char *path,
                       const struct object_check *check, struct error *err)
{
    struct archive archive = {0};
    if (!read_members(session, path, &archive, err))
        return false;
    memset(check->totals, 0, check->totals_size);
    for (uint32_t i = 0; i < archive.count; i++) {
        const struct archive_member *member = &archive.members[i];
        const struct object *object;
        if (!member->is_object)
            continue;
        struct arena *stage = arena_new();
        bool good = object_read(stage, member->name, member->image, &object, err) &&
                    check->object(stage, object, check->totals, err);
        arena_free(stage);
        if (!good)
            return false;
    }
    return check->file(path, check->totals, err);
}

int check_files(int argc, char **argv, const struct object_check *check)
{
    int status = 0;
    for (int i = 1; i < argc; i++) {
        struct arena *session = arena_new();
        struct error err = {0};
        if (!check_file(session, argv[i], check, &err)) {
            fprintf(stderr, "%s\n", err.message);
            status = 1;
        }
        arena_free(session);
    }
    return status;
}
