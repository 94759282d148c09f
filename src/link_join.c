/* SPDX-License-Identifier: MIT
 *
 * What the rounds made, put together. Each round makes a section of helpers, with
 * unwind entries of its own, and in a directory an object of its own. Of an object's
 * helpers those in sections of one name become one section: an entry costs 8 bytes of
 * .eh_frame_hdr and 20 of .eh_frame before it says anything, and a CIE as much.
 *
 * Whatever drops sections that nobody needs (--gc-sections) has one instead of some to
 * drop. It could hardly tell them apart before: helpers of an earlier round go on in
 * those of later ones, which are cut out of them.
 *
 * Sections of an earlier run, or of the input, stay what they are.
 */
#include "link_parts.h"

#include <elf.h>
#include <string.h>

bool is_helper_object(const struct object *object)
{
    uint32_t helpers = 0;
    for (uint32_t i = 1; i < object->symbol_count; i++) {
        const struct symbol *symbol = &object->symbols[i];
        if (symbol->type != STT_FUNC || symbol->section == SECTION_UNDEFINED)
            continue;
        if (strncmp(symbol->name, HELPER_PREFIX, strlen(HELPER_PREFIX)) != 0)
            return false;
        helpers++;
    }
    return helpers > 0;
}

/* In a directory each round puts an object of helpers behind the others. They become
 * one, in the place of the one that came in with the input, if there is one: it will be
 * a file with a name of its own, and each object pays for a property note. */
bool link_join_objects(struct link *link, const struct set *set,
                       struct objects *objects, struct error *err)
{
    uint32_t old_count = set->objects.count;
    if (objects->count == old_count)
        return true;
    uint32_t home = 0; /* at most old_count: the first new object */
    while (home < old_count && !is_helper_object(objects->items[home]))
        home++;
    const struct object **items =
        arena_copy(link->session, objects->items, objects->count * sizeof *items);
    const struct object **parts =
        arena_new_array(link->session, const struct object *, objects->count);
    uint32_t part_count = 0;
    parts[part_count++] = items[home];
    for (uint32_t i = old_count; i < objects->count; i++) {
        if (i != home)
            parts[part_count++] = items[i];
    }
    *objects = (struct objects){items, home < old_count ? old_count : old_count + 1};
    return part_count == 1 ||
           objects_merge(link->session, set->name, &(struct objects){parts, part_count},
                         &items[home], err);
}

/* For each section the one that takes it, as object_append() wants it; whether there is
 * any. Units from `first_unit` on are ours. */
static bool find_takers(const struct object *object, uint32_t first_unit,
                        uint32_t *onto)
{
    bool any = false;
    for (uint32_t s = 1; s < object->section_count; s++) {
        const struct section *section = &object->sections[s];
        bool ours = section->unit >= first_unit &&
                    (section_is_code(section) || section_is_frame(section));
        for (uint32_t t = 1; ours && t < s && onto[s] == 0; t++) {
            const struct section *taker = &object->sections[t];
            if (taker->unit >= first_unit && onto[t] == 0 &&
                section_can_follow(taker, section))
                onto[s] = t;
        }
        any |= onto[s] != 0;
    }
    return any;
}

static bool regroup(struct arena *arena, const struct object **object,
                    uint32_t first_unit, struct error *err)
{
    struct object *copy = arena_copy(arena, *object, sizeof *copy);
    struct section *sections =
        arena_copy(arena, copy->sections, copy->section_count * sizeof *sections);
    for (uint32_t s = 1; s < copy->section_count; s++) {
        if (sections[s].unit >= first_unit && section_is_frame(&sections[s]) &&
            !frames_regroup(arena, *object, s, &sections[s], err))
            return false;
    }
    copy->sections = sections;
    *object = copy;
    return true;
}

static bool join_sections(struct arena *arena, const struct object **object,
                          uint32_t first_unit, struct error *err)
{
    uint32_t *onto = arena_new_array(arena, uint32_t, (*object)->section_count);
    return !find_takers(*object, first_unit, onto) ||
           (object_append(arena, *object, onto, object, err) &&
            regroup(arena, object, first_unit, err));
}

/* What went into a section of its own says so no more, and nothing else has changed:
 * the code has as many bytes, and the tables have fewer. */
static bool count_savings(struct link *link, const struct object *before,
                          const struct object *after, struct error *err)
{
    struct sizes old = sizes_of(&(struct objects){&before, 1});
    struct sizes new = sizes_of(&(struct objects){&after, 1});
    link->report.shared_entries += (int64_t)(old.eh_frame - new.eh_frame) +
                                   (int64_t)(old.eh_frame_hdr - new.eh_frame_hdr);
    return (old.text == new.text && old.eh_frame >= new.eh_frame &&
            old.eh_frame_hdr >= new.eh_frame_hdr) ||
           fail(err, &(struct place){.file = after->name},
                "internal error: sections of helpers grow when they are put together");
}

bool link_join_sections(struct link *link, const struct set *set,
                        struct objects *objects, struct error *err)
{
    if (objects->items == set->objects.items)
        return true;
    const struct object **items =
        arena_copy(link->session, objects->items, objects->count * sizeof *items);
    for (uint32_t i = 0; i < objects->count; i++) {
        bool new = i >= set->objects.count;
        uint32_t first_unit = new ? 0 : set->objects.items[i]->unit_count;
        if (items[i]->unit_count > first_unit + 1 &&
            (!join_sections(link->session, &items[i], first_unit, err) ||
             !count_savings(link, objects->items[i], items[i], err)))
            return false;
    }
    objects->items = items;
    return true;
}
