/* SPDX-License-Identifier: MIT
 *
 * Without debug sections. A debug section that something else needs (a relocation, a
 * link between sections, the name of a group) stays: it is not only for debuggers then.
 */
#include "merge.h"

#include <elf.h>

/* Unmarks a section; true if it was marked. */
static bool keep(const struct object *object, bool *dropped, uint32_t section)
{
    if (section >= object->section_count || !dropped[section])
        return false;
    dropped[section] = false;
    return true;
}

/* Keeps what a kept section needs; true if that was news. */
static bool keep_needs(const struct object *object, bool *dropped, uint32_t index)
{
    const struct section *section = &object->sections[index];
    bool news =
        (section->link && keep(object, dropped, section->link)) ||
        ((section->flags & SHF_INFO_LINK) && keep(object, dropped, section->info));
    for (uint32_t i = 0; i < section->reloc_count; i++) {
        uint32_t target = object->symbols[section->relocs[i].symbol].section;
        news = keep(object, dropped, target) || news;
    }
    if (section->group != NO_INDEX) {
        uint32_t signature = object->groups[section->group].signature;
        news = keep(object, dropped, object->symbols[signature].section) || news;
    }
    return news;
}

static void choose(const struct object *object, bool *dropped)
{
    for (uint32_t i = 1; i < object->section_count; i++)
        dropped[i] = section_is_debug(&object->sections[i]);
    for (bool more = true; more;) {
        more = false;
        for (uint32_t i = 1; i < object->section_count; i++)
            more = (!dropped[i] && keep_needs(object, dropped, i)) || more;
    }
}

const struct object *object_strip_debug(struct arena *arena,
                                        const struct object *object)
{
    bool any = false;
    for (uint32_t i = 1; i < object->section_count; i++)
        any |= section_is_debug(&object->sections[i]);
    if (!any)
        return object;
    struct error err = {0};
    struct merge merge = {.arena = arena, .err = &err, .name = object->name};
    const struct objects one = {&object, 1};
    const struct object *stripped = NULL;
    merge.stage = arena_new();
    merge_start(&merge, &one);
    choose(object, merge.inputs[0].dropped);
    bool ok = merge_apply(&merge, NULL, 0, &stripped);
    arena_free(merge.stage);
    /* What can fail is .eh_frame that refers to debug sections and cannot be read. */
    return ok ? stripped : object;
}
