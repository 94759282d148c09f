/* SPDX-License-Identifier: MIT
 *
 * The frame of a check over the objects in files and archives.
 */
#ifndef MO_TESTS_OBJECTS_H
#define MO_TESTS_OBJECTS_H

#include "mo/object.h"

struct object_check {
    /* Looks at one object; false, with `err`, ends the file. The arena is freed after it. */
    bool (*object)(struct arena *arena, const struct object *object, void *totals,
                   struct error *err);
    /* At the end of a file: prints what was seen, and judges it. */
    bool (*file)(const char *path, const void *totals, struct error *err);
    void *totals; /* zeroed before each file */
    size_t totals_size;
};

/* Checks each file named on the command line. Returns the exit status: 0 or 1. */
int check_files(int argc, char **argv, const struct object_check *check);

#endif
