/* SPDX-License-Identifier: MIT
 *
 * What was given on the command line, read and arranged in sets: a *set* is a list of
 * objects that share helpers. One object out means one set with one object; a directory
 * means one set of the loose objects and one for each archive, because an archive must
 * stay usable without the rest.
 */
#ifndef MO_INPUTS_H
#define MO_INPUTS_H

#include "mo/object.h"
#include "mo/options.h"
#include "mo/program.h"

struct input {
    const char *path;
    bool is_archive;
    struct archive archive; /* is_archive */
    uint32_t first, count;  /* its objects, in inputs.objects */
};

struct inputs {
    const struct input *items; /* in the order of the command line */
    uint32_t count;
    const struct object *const *objects; /* all of one machine */
    uint32_t object_count;
};

struct set {
    const char *name; /* goes into names of symbols: letters, digits, '_', '.' */
    uint32_t archive; /* index in inputs.items, or NO_INDEX */
    struct objects
        objects; /* in the order of their inputs, or of the archive's members */
    const struct unused *unused; /* one for each object, or NULL */
};

struct sets {
    struct set *items;
    uint32_t count;
};

/* Reads all inputs, told apart by content. What is neither an object nor an archive
 * fails with what it is; so do inputs of different machines, and inputs without any
 * object. */
MO_MUST_CHECK bool inputs_read(struct arena *session, const struct options *options,
                               struct inputs *out, struct error *err);

/* No output path is an input, and no two outputs are one. Fails naming both. */
MO_MUST_CHECK bool inputs_check_output(struct arena *session,
                                       const struct options *options,
                                       const struct inputs *inputs, struct error *err);

/* The objects that will be worked on, merged (one object) or not (directory), with
 * debug sections dropped when that is asked for. */
MO_MUST_CHECK bool inputs_arrange(struct arena *session, const struct options *options,
                                  const struct inputs *inputs, struct sets *out,
                                  struct error *err);

/* `text` with '_' for everything that may not stand in a set's name. */
const char *set_name_clean(struct arena *session, const char *text);

/* The file's name without its folders. */
const char *path_base(const char *path);
/* "DIR/name", whether or not the directory ends in a slash already. */
const char *path_join(struct arena *session, const char *directory, const char *name);

#endif
