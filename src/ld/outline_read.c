/* SPDX-License-Identifier: MIT
 *
 * From what the linker has loaded to objects. A loaded file or member becomes a unit if
 * it is certain which one it is and we can read it; otherwise it stays as it is, which
 * is always right.
 *
 * Objects with intermediate code for link-time optimisation stay as they are, too: a
 * linker with the plugin takes that code and not ours. Of archives with such members
 * nothing is touched: their symbol index knows symbols that only the plugin can see,
 * and we could not write it anew.
 */
#include "ld.h"

#include "mo/array.h"
#include "mo/outputs.h"
#include "mo/table.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

struct slot {
    struct unit_place place;
    struct bytes image;
    uint32_t alike; /* members of this name */
};

struct reading {
    struct arena *session;
    const struct outline_job *job;
    struct archive *archives;
    struct table *names; /* "path\nmember": number = index in slots */
    array_of(struct slot) slots;
    array_of(const struct object *) objects;
    array_of(struct unused) unused;
    array_of(struct unit_place) places;
    struct text_list intermediate;
};

static const char *key_of(struct reading *reading, const char *path, const char *member)
{
    return arena_format(reading->session, "%s\n%s", path, member ? member : "");
}

static bool holds(struct bytes image, const char *word)
{
    size_t size = strlen(word);
    const uint8_t *at = image.at, *end = image.at + image.size;
    while (image.size >= size && at + size <= end) {
        at = memchr(at, word[0], (size_t)(end - at) - size + 1);
        if (!at)
            return false;
        if (memcmp(at, word, size) == 0)
            return true;
        at++;
    }
    return false;
}

/* The names of an object's sections, as one run of bytes; gABI chapter 4. */
static struct bytes section_names(struct bytes image)
{
    const uint8_t *at = NULL;
    uint64_t count = 0;
    if (!judge_sections(image, &at, &count) || count == 0)
        return (struct bytes){0};
    uint64_t index = load_le(image.at + 62, 2);
    if (index == 0xffff) /* SHN_XINDEX */
        index = load_le(at + 40, 4);
    if (index >= count)
        return (struct bytes){0};
    uint64_t offset = load_le(at + 64 * index + 24, 8);
    uint64_t size = load_le(at + 64 * index + 32, 8);
    if (offset > image.size || size > image.size - offset)
        return (struct bytes){0};
    return (struct bytes){image.at + offset, size};
}

static bool is_intermediate(struct bytes image)
{
    struct bytes names = section_names(image);
    return image.size >= 4 && (memcmp(image.at, "BC\xC0\xDE", 4) == 0 ||
                               memcmp(image.at, "\xDE\xC0\x17\x0B", 4) == 0 ||
                               holds(names, ".gnu.lto_.") || holds(names, ".llvm.lto"));
}

static void leave_alone(struct reading *reading, const char *name, const char *why)
{
    if (reading->job->options->verbose)
        fprintf(stderr, "mo-link: %s is left alone: %s\n", name, why);
}

/* --- what there is --- */

static void add_slot(struct reading *reading, const char *key, struct unit_place place,
                     struct bytes image)
{
    uint32_t number = table_intern_string(reading->names, key);
    if (number == reading->slots.count)
        array_push(reading->session, &reading->slots, ((struct slot){place, image, 0}));
    reading->slots.items[number].alike++;
}

/* GNU ld names members of thin archives by their own path, mold by the archive's path and
 * this one. */
static const char *thin_path(struct reading *reading, const char *archive,
                             const char *member)
{
    const char *base = path_base(archive);
    if (member[0] == '/')
        return member;
    return arena_format(reading->session, "%.*s%s", (int)(base - archive), archive,
                        member);
}

static void add_archive(struct reading *reading, uint32_t file, struct bytes image)
{
    const char *path = reading->job->choice->files[file].path;
    struct archive archive;
    struct error err = {0};
    if (!archive_read(reading->session, path, image, &archive, &err)) {
        leave_alone(reading, path, err.message);
        return;
    }
    for (uint32_t i = 0; i < archive.count; i++) {
        if (!is_intermediate(archive.members[i].image))
            continue;
        array_push(reading->session, &reading->intermediate, path);
        return;
    }
    for (uint32_t i = 0; i < archive.count; i++) {
        const struct archive_member *member = &archive.members[i];
        struct unit_place place = {file, i};
        add_slot(reading, key_of(reading, path, member->name), place, member->image);
        if (!archive.thin)
            continue;
        const char *own = thin_path(reading, path, member->name);
        add_slot(reading, key_of(reading, own, NULL), place, member->image);
        if (strcmp(own, member->name) != 0)
            add_slot(reading, key_of(reading, path, own), place, member->image);
    }
    reading->archives[file] = archive;
}

static bool add_file(struct reading *reading, uint32_t file, struct error *err)
{
    const char *path = reading->job->choice->files[file].path;
    struct bytes image = {0};
    if (reading->job->choice->files[file].script.size > 0)
        return true;
    if (!file_read(reading->session, path, &image, err))
        return false;
    if (archive_recognise(image))
        add_archive(reading, file, image);
    else if (is_intermediate(image))
        array_push(reading->session, &reading->intermediate, path);
    else if (image.size >= 18 && memcmp(image.at, "\177ELF", 4) == 0 &&
             load_le(image.at + 16, 2) == 1) /* ET_REL */
        add_slot(reading, key_of(reading, path, NULL),
                 (struct unit_place){file, NO_INDEX}, image);
    return true;
}

/* --- what was dropped --- */

static uint32_t times_named(const struct loaded *loaded, const char *section)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < loaded->named.count; i++)
        count += strcmp(loaded->named.items[i], section) == 0;
    return count;
}

static uint32_t times_there(const struct object *object, const char *name)
{
    uint32_t count = 0;
    for (uint32_t i = 1; i < object->section_count; i++)
        count += strcmp(object->sections[i].name, name) == 0;
    return count;
}

/* Several sections may have one name, and the linker tells no more than that: they all
 * count as dropped when any of them is. */
static struct unused unused_sections(struct reading *reading,
                                     const struct loaded *loaded,
                                     const struct object *object)
{
    bool kept = reading->job->trace->kept;
    bool *dropped = arena_new_array(reading->session, bool, object->section_count);
    for (uint32_t i = 1; i < object->section_count; i++) {
        const struct section *section = &object->sections[i];
        if (!section_is_code(section) || (!kept && loaded->named.count == 0))
            continue;
        uint32_t named = times_named(loaded, section->name);
        dropped[i] =
            kept ? named < times_there(object, section->name) && section->data.size > 0
                 : named > 0;
    }
    return (struct unused){dropped, NULL, object->section_count};
}

/* --- where it comes to lie --- */

/* What helpers for this section are called: outliner/rewrite/helpers.c. */
static const char *helpers_section(const char *name)
{
    bool plain = strcmp(name, ".text") == 0 || strncmp(name, ".text.", 6) == 0;
    return plain ? ".text.outlined" : name;
}

/* A script may put code elsewhere than the helpers for it would be, in memory of its
 * own. Such code must do without: the other memory may not be there while it runs. */
static bool *placed_apart(struct reading *reading, const struct loaded *loaded,
                          const struct object *object)
{
    struct arena *session = reading->session;
    const struct outline_job *job = reading->job;
    if (job->places->count == 0)
        return NULL;
    const char *helpers = path_join(session, job->scratch, HELPERS_FILE);
    bool *apart = arena_new_array(session, bool, object->section_count);
    for (uint32_t i = 1; i < object->section_count; i++) {
        const struct section *section = &object->sections[i];
        if (!section_is_code(section))
            continue;
        uint32_t place = places_find(session, job->places, loaded->path, loaded->member,
                                     section->name);
        apart[i] = place == PLACE_UNKNOWN ||
                   place != places_find(session, job->places, helpers, NULL,
                                        helpers_section(section->name));
    }
    return apart;
}

/* The new file lies in another folder. That may not matter to any pattern. */
static bool survives_moving(struct reading *reading, const struct loaded *loaded,
                            const struct slot *slot, const struct object *object)
{
    struct arena *session = reading->session;
    const struct places *places = reading->job->places;
    const char *path = reading->job->choice->files[slot->place.file].new_path;
    const char *member = loaded->member;
    if (slot->place.member != NO_INDEX)
        member =
            reading->archives[slot->place.file].members[slot->place.member].name;
    for (uint32_t i = 1; i < object->section_count && places->count > 0; i++) {
        const struct section *section = &object->sections[i];
        if ((section->flags & SHF_ALLOC) &&
            places_find(session, places, loaded->path, loaded->member, section->name) !=
                places_find(session, places, path, member, section->name))
            return false;
    }
    return true;
}

/* --- what was loaded --- */

static bool add_unit(struct reading *reading, const struct loaded *loaded,
                     const struct slot *slot, struct error *err)
{
    const char *name = loaded->member ? arena_format(reading->session, "%s(%s)",
                                                     loaded->path, loaded->member)
                                      : loaded->path;
    const struct object *object = NULL;
    struct error why = {0};
    if (loaded->times != 1 || slot->alike != 1) {
        leave_alone(reading, name, "there are others of that name");
        return true;
    }
    if (!object_read(reading->session, name, slot->image, &object, &why)) {
        leave_alone(reading, name, why.message);
        return true;
    }
    if (reading->objects.count > 0 &&
        object->machine != reading->objects.items[0]->machine)
        return true;
    if (!survives_moving(reading, loaded, slot, object))
        return fail(err, NULL, "a linker script names the folder of %s", name);
    if (reading->job->options->strip_debug)
        object = object_strip_debug(reading->session, object);
    array_push(reading->session, &reading->objects, object);
    struct unused unused = unused_sections(reading, loaded, object);
    unused.apart = placed_apart(reading, loaded, object);
    array_push(reading->session, &reading->unused, unused);
    array_push(reading->session, &reading->places, slot->place);
    return true;
}

static bool add_loaded(struct reading *reading, const struct loaded *loaded,
                       struct error *err)
{
    uint32_t number = table_find_string(
        reading->names, key_of(reading, loaded->path, loaded->member));
    return number == NO_INDEX || loaded->times == 0 ||
           add_unit(reading, loaded, &reading->slots.items[number], err);
}

bool outline_read(struct arena *session, const struct outline_job *job,
                  struct unit_list *out, struct error *err)
{
    struct reading reading = {.session = session, .job = job};
    reading.names = table_new(session);
    reading.archives = arena_new_array(session, struct archive, job->choice->file_count);
    for (uint32_t i = 0; i < job->choice->file_count; i++) {
        if (!add_file(&reading, i, err))
            return false;
    }
    for (uint32_t i = 0; i < job->trace->count; i++) {
        if (!add_loaded(&reading, &job->trace->items[i], err))
            return false;
    }
    *out = (struct unit_list){reading.objects.items, reading.unused.items,
                              reading.places.items,  reading.archives,
                              reading.objects.count, reading.intermediate};
    return true;
}
