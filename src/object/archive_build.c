/* SPDX-License-Identifier: MIT
 *
 * Writing an archive, byte for byte as `ar rcsD` does: symbol index first, then long
 * names, then the members; no dates, no owners.
 *
 * The index lists, for each member in order, the names of the global symbols that it
 * defines, and where its header lies: a count and offsets (32 bits, big-endian), then
 * the names.
 */
#include "archive.h"

#include "mo/array.h"

#include <elf.h>
#include <inttypes.h>
#include <string.h>

struct entry {
    const char *symbol;
    uint32_t member;
};

struct building {
    struct arena *stage;
    const struct archive *archive;
    array_of(struct entry) index;
    struct buffer long_names;
    const char **name_fields; /* by member */
    uint64_t *offsets;        /* of the headers, by member */
    struct error *err;
};

static bool defines(const struct symbol *symbol)
{
    return symbol->bind != STB_LOCAL && symbol->section != SECTION_UNDEFINED;
}

static bool index_member(struct building *building, uint32_t member)
{
    const struct archive_member *from = &building->archive->members[member];
    const char *name = from->object ? NULL
                                    : arena_format(building->stage, "%s(%s)",
                                                   building->archive->name, from->name);
    const struct object *object = from->object;
    if (!from->is_object)
        return true;
    if (!object && !object_read(building->stage, name, from->image, &object, building->err))
        return false;
    for (uint32_t i = 1; i < object->symbol_count; i++) {
        if (!defines(&object->symbols[i]))
            continue;
        struct entry entry = {object->symbols[i].name, member};
        array_push(building->stage, &building->index, entry);
    }
    return true;
}

static void name_member(struct building *building, uint32_t member)
{
    const char *name = building->archive->members[member].name;
    const char *slash = strrchr(name, '/'); /* thin archives name paths */
    if (slash)
        name = slash + 1;
    /* "/" is the index, "#1/" starts a BSD name: neither can be a member's field. */
    if (*name && strlen(name) < ARCHIVE_NAME && strcmp(name, "#1") != 0) {
        building->name_fields[member] = arena_format(building->stage, "%s/", name);
        return;
    }
    building->name_fields[member] =
        arena_format(building->stage, "/%" PRIu64, building->long_names.size);
    buffer_put(&building->long_names, name, strlen(name));
    buffer_put(&building->long_names, "/\n", 2);
}

static uint64_t even(uint64_t size)
{
    return size + (size & 1);
}

static uint64_t index_size(const struct building *building)
{
    uint64_t size = 4 + 4 * (uint64_t)building->index.count;
    for (uint32_t i = 0; i < building->index.count; i++)
        size += strlen(building->index.items[i].symbol) + 1;
    return even(size);
}

static bool place_members(struct building *building)
{
    uint64_t at = ARCHIVE_MAGIC;
    if (building->index.count)
        at += ARCHIVE_HEADER + index_size(building);
    if (building->long_names.size)
        at += ARCHIVE_HEADER + even(building->long_names.size);
    for (uint32_t i = 0; i < building->archive->count; i++) {
        uint64_t size = building->archive->members[i].image.size;
        building->offsets[i] = at;
        at += ARCHIVE_HEADER + even(size);
        if (at > UINT32_MAX || size > 9999999999u)
            return fail(building->err, &(struct place){.file = building->archive->name},
                        "archives of more than 4 GiB cannot be written");
    }
    return true;
}

static void put_big_endian(struct buffer *out, uint32_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        buffer_u8(out, (uint8_t)(value >> shift));
}

static void put_header(struct building *building, struct buffer *out, const char *name,
                       const char *mode, uint64_t size)
{
    const char *text =
        arena_format(building->stage, "%-16s%-12s%-6s%-6s%-8s%-10" PRIu64 "`\n", name,
                     "0", "0", "0", mode, size);
    buffer_put(out, text, ARCHIVE_HEADER);
}

static void put_index(struct building *building, struct buffer *out)
{
    if (building->index.count == 0)
        return;
    put_header(building, out, "/", "0", index_size(building));
    uint64_t start = out->size;
    put_big_endian(out, building->index.count);
    for (uint32_t i = 0; i < building->index.count; i++)
        put_big_endian(out,
                       (uint32_t)building->offsets[building->index.items[i].member]);
    for (uint32_t i = 0; i < building->index.count; i++)
        buffer_string(out, building->index.items[i].symbol);
    buffer_fill(out, 0, start + index_size(building) - out->size);
}

static void put_long_names(struct building *building, struct buffer *out)
{
    uint64_t size = building->long_names.size;
    if (size == 0)
        return;
    const char *text =
        arena_format(building->stage, "%-48s%-10" PRIu64 "`\n", "//", even(size));
    buffer_put(out, text, ARCHIVE_HEADER);
    buffer_put(out, building->long_names.at, size);
    buffer_fill(out, '\n', size & 1);
}

static void put_archive(struct building *building, struct buffer *out)
{
    const struct archive *archive = building->archive;
    buffer_put(out, "!<arch>\n", ARCHIVE_MAGIC);
    put_index(building, out);
    put_long_names(building, out);
    for (uint32_t i = 0; i < archive->count; i++) {
        struct bytes image = archive->members[i].image;
        put_header(building, out, building->name_fields[i], "644", image.size);
        if (image.size)
            buffer_put(out, image.at, image.size);
        buffer_fill(out, '\n', image.size & 1);
    }
}

bool archive_build(struct arena *arena, const struct archive *archive,
                   struct bytes *out, struct error *err)
{
    struct arena *stage = arena_new();
    struct building building = {.stage = stage, .archive = archive, .err = err};
    building.long_names = buffer_new(stage);
    building.name_fields = arena_new_array(stage, const char *, archive->count);
    building.offsets = arena_new_array(stage, uint64_t, archive->count);
    bool ok = true;
    for (uint32_t i = 0; i < archive->count && ok; i++) {
        name_member(&building, i);
        ok = index_member(&building, i);
    }
    ok = ok && place_members(&building);
    if (ok) {
        struct buffer buffer = buffer_new(arena);
        put_archive(&building, &buffer);
        *out = buffer_bytes(&buffer);
    }
    arena_free(stage);
    return ok;
}
