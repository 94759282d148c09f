/* SPDX-License-Identifier: MIT
 *
 * identity FILE...
 *
 * For every object in the files (objects or archives): reading, writing and reading
 * again gives the same object. For every archive: the same holds for its bytes when it
 * is built anew and read again, and the object merged from all members holds every
 * section of every member that it keeps, byte for byte.
 *
 * Exit status 0 when all of it holds. One line for each file says how much was
 * compared.
 */
#include "mo/object.h"
#include "mo/table.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct totals {
    uint64_t objects, sections, relocs, symbols, bytes;
    uint64_t merged_sections, kept_sections;
};

static bool differ(const char *name, const char *what, uint32_t index)
{
    printf("%s: %s %" PRIu32 " differs\n", name, what, index);
    return false;
}

static bool same_bytes(struct bytes a, struct bytes b)
{
    return a.size == b.size && (a.at == NULL) == (b.at == NULL) &&
           (a.size == 0 || a.at == NULL || memcmp(a.at, b.at, a.size) == 0);
}

/* `symbol_of` gives b's symbol index for each of a's: the writer puts locals first. */
static bool same_section(const struct section *a, const struct section *b,
                         const uint32_t *symbol_of)
{
    if (strcmp(a->name, b->name) != 0 || a->type != b->type || a->flags != b->flags ||
        a->align != b->align || a->entry_size != b->entry_size || a->link != b->link ||
        a->info != b->info || a->group != b->group || !same_bytes(a->data, b->data) ||
        a->reloc_count != b->reloc_count)
        return false;
    for (uint32_t i = 0; i < a->reloc_count; i++) {
        const struct reloc *x = &a->relocs[i], *y = &b->relocs[i];
        if (x->offset != y->offset || x->addend != y->addend || x->type != y->type ||
            symbol_of[x->symbol] != y->symbol)
            return false;
    }
    return true;
}

static bool same_symbol(const struct symbol *a, const struct symbol *b)
{
    return strcmp(a->name, b->name) == 0 && a->value == b->value &&
           a->size == b->size && a->section == b->section && a->bind == b->bind &&
           a->type == b->type && a->other == b->other;
}

static bool same_groups(const struct object *a, const struct object *b,
                        const uint32_t *symbol_of)
{
    for (uint32_t i = 0; i < a->group_count; i++) {
        const struct group *x = &a->groups[i], *y = &b->groups[i];
        if (symbol_of[x->signature] != y->signature || x->flags != y->flags ||
            x->member_count != y->member_count ||
            memcmp(x->members, y->members, x->member_count * sizeof *x->members) != 0)
            return differ(a->name, "group", i);
    }
    return true;
}

static bool same_object(struct arena *stage, const struct object *a,
                        const struct object *b)
{
    if (a->machine != b->machine || a->flags != b->flags || a->os_abi != b->os_abi ||
        a->section_count != b->section_count || a->symbol_count != b->symbol_count ||
        a->group_count != b->group_count)
        return differ(a->name, "header", 0);
    uint32_t *symbol_of = arena_new_array(stage, uint32_t, a->symbol_count);
    uint32_t next = 1;
    for (int local = 1; local >= 0; local--) {
        for (uint32_t i = 1; i < a->symbol_count; i++) {
            if ((a->symbols[i].bind == STB_LOCAL) == local)
                symbol_of[i] = next++;
        }
    }
    for (uint32_t i = 1; i < a->section_count; i++) {
        if (!same_section(&a->sections[i], &b->sections[i], symbol_of))
            return differ(a->name, a->sections[i].name, i);
    }
    for (uint32_t i = 1; i < a->symbol_count; i++) {
        if (!same_symbol(&a->symbols[i], &b->symbols[symbol_of[i]]))
            return differ(a->name, a->symbols[i].name, i);
    }
    return same_groups(a, b, symbol_of);
}

static void count(struct totals *totals, const struct object *object)
{
    totals->objects++;
    totals->sections += object->section_count;
    totals->symbols += object->symbol_count;
    for (uint32_t i = 1; i < object->section_count; i++) {
        totals->relocs += object->sections[i].reloc_count;
        if (object->sections[i].data.at)
            totals->bytes += object->sections[i].data.size;
    }
}

static bool check_object(struct arena *arena, const char *name, struct bytes image,
                         const struct object **out, struct totals *totals)
{
    struct error err = {0};
    const struct object *again = NULL;
    struct bytes built, twice;
    struct arena *stage = arena_new();
    bool ok = object_read(arena, name, image, out, &err) &&
              object_build(stage, *out, &built, &err) &&
              object_read(stage, name, built, &again, &err) &&
              object_build(stage, again, &twice, &err);
    if (!ok)
        puts(err.message);
    ok = ok && same_object(stage, *out, again);
    if (ok && !same_bytes(built, twice))
        ok = differ(name, "second writing", 0);
    if (ok)
        count(totals, *out);
    arena_free(stage);
    return ok;
}

/* Every section of the merged object is a section of the unit that it names. Frames are
 * left out when FDEs of dropped groups were cut from them. */
static bool check_merged(struct arena *stage, const struct object *merged,
                         const struct object *const *objects, uint32_t object_count,
                         struct totals *totals)
{
    struct table *known = table_new(stage);
    for (uint32_t i = 0; i < object_count; i++) {
        for (uint32_t k = 1; k < objects[i]->section_count; k++) {
            const struct section *section = &objects[i]->sections[k];
            uint64_t key[2] = {i, section->data.at
                                      ? hash_bytes(section->data.at, section->data.size)
                                      : section->data.size};
            (void)table_intern(known, key, sizeof key);
        }
        totals->merged_sections += objects[i]->section_count - 1;
    }
    for (uint32_t i = 1; i < merged->section_count; i++) {
        const struct section *section = &merged->sections[i];
        uint64_t key[2] = {section->unit,
                           section->data.at
                               ? hash_bytes(section->data.at, section->data.size)
                               : section->data.size};
        totals->kept_sections++;
        bool made = section->type == SHT_NOTE || section_is_frame(section) ||
                    !(section->flags & SHF_ALLOC);
        if (!made && table_find(known, key, sizeof key) == NO_INDEX)
            return differ(section_unit(merged, i), section->name, i);
    }
    return true;
}

static bool check_merge(struct arena *stage, const char *name,
                        const struct object *const *objects, uint32_t object_count,
                        const char *merged_path, struct totals *totals)
{
    struct error err = {0};
    const struct object *merged, *again;
    struct bytes built;
    struct objects set = {objects, object_count};
    if (!objects_merge(stage, name, &set, &merged, &err) ||
        !object_build(stage, merged, &built, &err) ||
        !object_read(stage, name, built, &again, &err) ||
        (merged_path && !file_write(merged_path, built, &err))) {
        puts(err.message);
        return false;
    }
    return check_merged(stage, merged, objects, object_count, totals);
}

static bool check_archive(struct arena *arena, const char *path, struct bytes image,
                          const char *merged_path, struct totals *totals)
{
    struct error err = {0};
    struct archive archive, again;
    struct bytes built;
    if (!archive_read(arena, path, image, &archive, &err) ||
        !archive_build(arena, &archive, &built, &err) ||
        !archive_read(arena, path, built, &again, &err)) {
        puts(err.message);
        return false;
    }
    if (again.count != archive.count)
        return differ(path, "member count", again.count);
    const struct object **objects =
        arena_new_array(arena, const struct object *, archive.count);
    uint32_t used = 0;
    for (uint32_t i = 0; i < archive.count; i++) {
        const struct archive_member *member = &archive.members[i];
        const char *name = arena_format(arena, "%s(%s)", path, member->name);
        if (!same_bytes(member->image, again.members[i].image) ||
            strcmp(member->name, again.members[i].name) != 0)
            return differ(path, member->name, i);
        if (!member->is_object)
            continue;
        if (!check_object(arena, name, member->image, &objects[used], totals))
            return false;
        used++;
    }
    return used == 0 || check_merge(arena, path, objects, used, merged_path, totals);
}

static bool check_file(const char *path, const char *merged_path)
{
    struct error err = {0};
    struct bytes image;
    struct totals totals = {0};
    struct arena *arena = arena_new();
    const struct object *object;
    bool ok = file_read(arena, path, &image, &err);
    if (!ok)
        puts(err.message);
    else if (archive_recognise(image))
        ok = check_archive(arena, path, image, merged_path, &totals);
    else
        ok = check_object(arena, path, image, &object, &totals);
    if (ok)
        printf("%s: %" PRIu64 " objects, %" PRIu64 " sections, %" PRIu64
               " relocations, %" PRIu64 " symbols, %" PRIu64 " bytes; merged %" PRIu64
               " sections of %" PRIu64 "\n",
               path, totals.objects, totals.sections, totals.relocs, totals.symbols,
               totals.bytes, totals.kept_sections, totals.merged_sections);
    arena_free(arena);
    return ok;
}

/* "-o FILE" writes the object merged from the archives that follow. */
int main(int argc, char **argv)
{
    const char *merged_path = NULL;
    bool ok = true;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-o") == 0 && i + 1 < argc)
            merged_path = argv[++i];
        else
            ok = check_file(argv[i], merged_path) && ok;
    }
    return ok ? 0 : 1;
}
