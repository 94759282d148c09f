/* SPDX-License-Identifier: MIT
 *
 * From paths to objects. Files are told apart by their first bytes, never by their names.
 */
#include "mo/inputs.h"

#include "mo/array.h"
#include "mo/parallel.h"
#include "mo/table.h"

#include <elf.h>
#include <string.h>

static bool starts_with(struct bytes image, const char *magic, uint64_t size)
{
    return image.size >= size && memcmp(image.at, magic, size) == 0;
}

static bool contains(struct bytes text, const char *word)
{
    size_t size = strlen(word);
    for (uint64_t i = 0; i + size <= text.size; i++) {
        if (memcmp(text.at + i, word, size) == 0)
            return true;
    }
    return false;
}

/* /usr/lib/…/libc.so is such a text, so this happens to everybody once. */
static bool is_linker_script(struct bytes image)
{
    struct bytes head = {image.at, image.size < 1024 ? image.size : 1024};
    return contains(head, "GNU ld script") || contains(head, "OUTPUT_FORMAT") ||
           contains(head, "GROUP (") || contains(head, "GROUP(") ||
           contains(head, "INPUT (") || contains(head, "INPUT(");
}

static bool is_bitcode(struct bytes image)
{
    return starts_with(image, "BC\xC0\xDE", 4) ||
           starts_with(image, "\xDE\xC0\x17\x0B", 4);
}

/* Fails on files that are recognised as something else than objects. What stays unknown
 * is left to the reader of objects, which says what is wrong with it. */
static bool check_kind(const char *path, struct bytes image, struct error *err)
{
    struct place place = {.file = path};
    if (image.size == 0)
        return fail(err, &place, "an empty file, not an object");
    bool is_elf = starts_with(image, ELFMAG, SELFMAG);
    uint64_t type = is_elf && image.size >= 18 ? load_le(image.at + 16, 2) : ET_NONE;
    if (type == ET_DYN || type == ET_EXEC)
        return fail(err, &place,
                    "a %s, not an object: code can only be moved before it is linked",
                    type == ET_EXEC ? "program" : "shared library or program");
    if (!is_elf && !is_bitcode(image) && is_linker_script(image))
        return fail(err, &place,
                    "a linker script, not an object: give it to the linker");
    return true;
}

/* A file. */
struct source {
    struct input input;
    struct bytes image;
    const struct error *err; /* NULL: none; it can be read and taken apart */
};

/* An object in a file. */
struct piece {
    const char *name;
    struct bytes image;
    const struct object *object;
    const struct error *err; /* NULL: none */
};

/* Files, and then the objects in them, are read by several workers; what is told is what
 * one after the other would have met first. */
struct reader {
    struct arena *session;
    uint32_t workers;      /* as in mo/parallel.h */
    struct arena **arenas; /* by worker */
    struct source *sources;
    uint32_t source_count;
    array_of(struct piece) pieces; /* of one source after the other */
};

static void read_source(void *context, uint32_t number, uint32_t worker)
{
    const struct reader *reader = context;
    struct source *source = &reader->sources[number];
    struct input *input = &source->input;
    struct arena *arena = reader->arenas[worker];
    struct error err = {0};
    bool ok = file_read(arena, input->path, &source->image, &err);
    input->is_archive = ok && archive_recognise(source->image);
    if (!ok || (input->is_archive &&
                !archive_read(arena, input->path, source->image, &input->archive, &err)))
        source->err = arena_copy(arena, &err, sizeof err);
}

static void read_piece(void *context, uint32_t number, uint32_t worker)
{
    const struct reader *reader = context;
    struct piece *piece = &reader->pieces.items[number];
    struct arena *arena = reader->arenas[worker];
    struct error err = {0};
    if (!check_kind(piece->name, piece->image, &err) ||
        !object_read(arena, piece->name, piece->image, &piece->object, &err))
        piece->err = arena_copy(arena, &err, sizeof err);
}

/* Members that are no objects are carried through; but bitcode would be code that
 * silently is not there. */
static void add_members(struct reader *reader, const struct input *input)
{
    for (uint32_t i = 0; i < input->archive.count; i++) {
        const struct archive_member *member = &input->archive.members[i];
        if (!member->is_object && !is_bitcode(member->image))
            continue;
        struct piece piece = {.image = member->image};
        piece.name = arena_format(reader->session, "%s(%s)", input->path, member->name);
        array_push(reader->session, &reader->pieces, piece);
    }
}

static void add_pieces(struct reader *reader, struct source *source)
{
    struct input *input = &source->input;
    struct piece alone = {.name = input->path, .image = source->image};
    input->first = reader->pieces.count;
    if (input->is_archive)
        add_members(reader, input);
    else
        array_push(reader->session, &reader->pieces, alone);
    input->count = reader->pieces.count - input->first;
}

static void read_files(struct reader *reader, const struct options *options)
{
    reader->source_count = options->inputs.count;
    reader->sources =
        arena_new_array(reader->session, struct source, reader->source_count);
    for (uint32_t i = 0; i < reader->source_count; i++)
        reader->sources[i].input.path = options->inputs.items[i];
    reader->arenas = parallel_arenas(reader->session, reader->workers);
    parallel_do(reader->workers, reader->source_count, read_source, reader);
    for (uint32_t i = 0; i < reader->source_count && !reader->sources[i].err; i++)
        add_pieces(reader, &reader->sources[i]);
    parallel_do(reader->workers, reader->pieces.count, read_piece, reader);
    parallel_adopt(reader->session, reader->arenas, reader->workers);
}

/* What the reader has found, or the first thing that is wrong. */
static bool take_inputs(const struct reader *reader, struct inputs *out,
                        struct error *err)
{
    struct input *items =
        arena_new_array(reader->session, struct input, reader->source_count);
    const struct object **objects =
        arena_new_array(reader->session, const struct object *, reader->pieces.count);
    *out = (struct inputs){items, reader->source_count, objects, reader->pieces.count};
    for (uint32_t i = 0; i < reader->source_count; i++) {
        const struct source *source = &reader->sources[i];
        if (source->err)
            return fail(err, NULL, "%s", source->err->message);
        items[i] = source->input;
        for (uint32_t p = items[i].first; p < items[i].first + items[i].count; p++) {
            const struct piece *piece = &reader->pieces.items[p];
            if (piece->err)
                return fail(err, NULL, "%s", piece->err->message);
            objects[p] = piece->object;
        }
    }
    return true;
}

static const char *machine_name(uint16_t machine)
{
    return machine == EM_AARCH64 ? "AArch64" : "x86-64";
}

static bool check_machines(const struct inputs *inputs, struct error *err)
{
    if (inputs->object_count == 0)
        return fail(err, NULL, "%s: there is no object in it", inputs->items[0].path);
    const struct object *first = inputs->objects[0];
    for (uint32_t i = 1; i < inputs->object_count; i++) {
        const struct object *object = inputs->objects[i];
        if (object->machine != first->machine)
            return fail(err, NULL, "%s is for %s, but %s is for %s", object->name,
                        machine_name(object->machine), first->name,
                        machine_name(first->machine));
    }
    return true;
}

/* Two copies of an object define the same symbols; what the merger would say of one of
 * those hides what went wrong. Archives may come twice, as for every linker. */
static bool check_repeated(struct arena *session, const struct inputs *inputs,
                           struct error *err)
{
    struct table *paths = table_new(session);
    for (uint32_t i = 0; i < inputs->count; i++) {
        const struct input *input = &inputs->items[i];
        bool known = table_find_string(paths, input->path) != NO_INDEX;
        if (known && !input->is_archive)
            return fail(err, NULL, "%s is given twice", input->path);
        (void)table_intern_string(paths, input->path);
    }
    return true;
}

bool inputs_read(struct arena *session, const struct options *options,
                 struct inputs *out, struct error *err)
{
    struct reader reader = {.session = session,
                            .workers = options->jobs ? options->jobs
                                                     : parallel_processors()};
    read_files(&reader, options);
    return take_inputs(&reader, out, err) && check_machines(out, err) && check_repeated(session, out, err);
}
