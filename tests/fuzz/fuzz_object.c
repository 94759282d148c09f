/* SPDX-License-Identifier: MIT
 *
 * The reader of objects and archives against arbitrary bytes. What it accepts must be
 * written, read again, merged with itself as far as names allow, and stripped, without
 * a crash; and what is written must be read.
 */
#include "mo/object.h"
#include "tests/fuzz/replay.h"

#include <stdio.h>
#include <stdlib.h>

static void must(bool ok, const struct error *err)
{
    if (!ok) {
        fprintf(stderr, "%s\n", err->message);
        abort();
    }
}

static void try_object(struct arena *arena, struct bytes image)
{
    struct error err = {0}, merge_err = {0};
    const struct object *object, *again, *merged;
    struct bytes built;
    if (!object_read(arena, "fuzz.o", image, &object, &err))
        return;
    must(object_build(arena, object, &built, &err), &err);
    must(object_read(arena, "again.o", built, &again, &err), &err);
    must(object_build(arena, object_strip_debug(arena, object), &built, &err), &err);
    const struct object *const twice[] = {object, again};
    const struct objects objects = {twice, 2};
    if (objects_merge(arena, "merged.o", &objects, &merged, &merge_err))
        must(object_build(arena, merged, &built, &err), &err);
}

static void try_archive(struct arena *arena, struct bytes image)
{
    struct error err = {0};
    struct archive archive;
    /* Thin archives would read files. */
    if (image.at[2] == 't' || !archive_read(arena, "fuzz.a", image, &archive, &err))
        return;
    struct bytes built;
    for (uint32_t i = 0; i < archive.count; i++) {
        if (archive.members[i].is_object)
            try_object(arena, archive.members[i].image);
    }
    if (archive_build(arena, &archive, &built, &err))
        must(archive_read(arena, "again.a", built, &archive, &err), &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new();
    struct bytes image = {data, size};
    if (archive_recognise(image))
        try_archive(arena, image);
    else
        try_object(arena, image);
    arena_free(arena);
    return 0;
}
