/* SPDX-License-Identifier: MIT
 *
 * From objects to sets of objects; where the output goes.
 *
 * Of an archive that goes into one object only those members are taken that a linker
 * would load, because that one object is given to the link as a whole: members nobody
 * needs would come along, with symbols that clash. With archives alone there is nobody
 * to need anything, and all members are taken.
 */
#include "mo/inputs.h"

#include "mo/array.h"
#include "mo/table.h"

#include <ctype.h>
#include <elf.h>
#include <string.h>
#include <sys/stat.h>

/* --- output paths --- */

const char *path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

const char *path_join(struct arena *session, const char *directory, const char *name)
{
    size_t size = strlen(directory);
    const char *slash = size > 0 && directory[size - 1] == '/' ? "" : "/";
    return arena_format(session, "%s%s%s", directory, slash, name);
}

static bool same_file(const char *a, const char *b)
{
    struct stat one, two;
    if (strcmp(a, b) == 0)
        return true;
    return stat(a, &one) == 0 && stat(b, &two) == 0 && one.st_dev == two.st_dev &&
           one.st_ino == two.st_ino;
}

static bool check_against_inputs(const struct inputs *inputs, const char *path,
                                 struct error *err)
{
    for (uint32_t i = 0; path && i < inputs->count; i++) {
        if (same_file(path, inputs->items[i].path))
            return fail(err, NULL, "%s: the output is the input %s", path,
                        inputs->items[i].path);
    }
    return true;
}

/* In a directory every output has its input's base name. A name that is taken twice
 * fails before any work is done. */
static bool check_directory(struct arena *session, const char *directory,
                            const struct inputs *inputs, struct error *err)
{
    struct table *names = table_new(session);
    for (uint32_t i = 0; i < inputs->count; i++) {
        const char *path = inputs->items[i].path;
        const char *output = path_join(session, directory, path_base(path));
        uint32_t first = table_find_string(names, output);
        if (first != NO_INDEX)
            return fail(err, NULL, "%s and %s would both be written to %s",
                        inputs->items[first].path, path, output);
        (void)table_intern_string(names, output);
        if (!check_against_inputs(inputs, output, err))
            return false;
    }
    return true;
}

bool inputs_check_output(struct arena *session, const struct options *options,
                         const struct inputs *inputs, struct error *err)
{
    for (uint32_t i = 0; i < REPORT_COUNT; i++) {
        if (!check_against_inputs(inputs, options->reports[i].path, err))
            return false;
    }
    if (!check_against_inputs(inputs, options->remarks, err))
        return false;
    if (!options->output)
        return true;
    return options->output_is_directory
               ? check_directory(session, options->output, inputs, err)
               : check_against_inputs(inputs, options->output, err);
}

/* --- sets --- */

/* "./out.dir/" -> "out.dir": what identifies the set on every build, and nothing else.
 */
static const char *set_name_of(struct arena *session, const char *directory)
{
    char *path = arena_strdup(session, directory);
    for (size_t size = strlen(path); size > 1 && path[size - 1] == '/'; size--)
        path[size - 1] = '\0';
    return path_base(path);
}

const char *set_name_clean(struct arena *session, const char *text)
{
    char *clean = arena_strdup(session, text[0] ? text : "set");
    for (char *at = clean; *at; at++) {
        if (!isalnum((unsigned char)*at) && *at != '.')
            *at = '_';
    }
    return clean;
}

/* chosen[i] belongs to inputs.objects[i]. */
static bool *choose(struct arena *session, const struct options *options,
                    const struct inputs *inputs)
{
    bool *chosen = arena_new_array(session, bool, inputs->object_count);
    array_of(const struct object *) roots = {0}, members = {0};
    array_of(uint32_t) member_of = {0};
    for (uint32_t i = 0; i < inputs->count; i++) {
        const struct input *input = &inputs->items[i];
        for (uint32_t j = input->first; j < input->first + input->count; j++) {
            chosen[j] = !input->is_archive || options->whole_archive;
            if (chosen[j]) {
                array_push(session, &roots, inputs->objects[j]);
                continue;
            }
            array_push(session, &members, inputs->objects[j]);
            array_push(session, &member_of, j);
        }
    }
    bool *loaded = arena_new_array(session, bool, members.count);
    if (roots.count > 0)
        archive_choose(session, &(struct objects){roots.items, roots.count},
                       members.items, members.count, loaded);
    for (uint32_t i = 0; i < members.count; i++)
        chosen[member_of.items[i]] = loaded[i] || roots.count == 0;
    return chosen;
}

static bool arrange_merged(struct arena *session, const struct options *options,
                           const struct inputs *inputs, struct sets *out,
                           struct error *err)
{
    const bool *chosen = choose(session, options, inputs);
    array_of(const struct object *) objects = {0};
    for (uint32_t i = 0; i < inputs->object_count; i++) {
        if (chosen[i])
            array_push(session, &objects, inputs->objects[i]);
    }
    const struct object **merged = arena_new_array(session, const struct object *, 1);
    const char *name = options->output ? options->output : "(merged)";
    if (!objects_merge(session, name, &(struct objects){objects.items, objects.count},
                       merged, err))
        return false;
    out->count = 1;
    out->items = arena_new_one(session, struct set);
    out->items[0] = (struct set){
        .name = "", .archive = NO_INDEX, .objects = {merged, 1}
    };
    return true;
}

/* The loose objects first, then the archives in their order. */
static void arrange_directory(struct arena *session, const struct options *options,
                              const struct inputs *inputs, struct sets *out)
{
    const char *name =
        set_name_clean(session, options->set_name ? options->set_name
                                               : set_name_of(session, options->output));
    array_of(const struct object *) loose = {0};
    array_of(struct set) sets = {0};
    array_push(session, &sets, ((struct set){.name = name, .archive = NO_INDEX}));
    for (uint32_t i = 0; i < inputs->count; i++) {
        const struct input *input = &inputs->items[i];
        if (!input->is_archive) {
            array_push(session, &loose, inputs->objects[input->first]);
            continue;
        }
        const char *base = set_name_clean(session, path_base(input->path));
        struct set set = {
            .name = arena_format(session, "%s.%s", name, base),
            .archive = i,
            .objects = {inputs->objects + input->first, input->count}
        };
        array_push(session, &sets, set);
    }
    sets.items[0].objects = (struct objects){loose.items, loose.count};
    out->items = sets.items;
    out->count = sets.count;
}

static struct objects strip_debug(struct arena *session, struct objects objects)
{
    const struct object **stripped =
        arena_new_array(session, const struct object *, objects.count);
    for (uint32_t i = 0; i < objects.count; i++)
        stripped[i] = object_strip_debug(session, objects.items[i]);
    return (struct objects){stripped, objects.count};
}

bool inputs_arrange(struct arena *session, const struct options *options,
                    const struct inputs *inputs, struct sets *out, struct error *err)
{
    if (options->output_is_directory)
        arrange_directory(session, options, inputs, out);
    else if (!arrange_merged(session, options, inputs, out, err))
        return false;
    for (uint32_t i = 0; options->strip_debug && i < out->count; i++)
        out->items[i].objects = strip_debug(session, out->items[i].objects);
    return true;
}
