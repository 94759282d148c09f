/* SPDX-License-Identifier: MIT
 *
 * Which section of the output is which section of the input: the n-th of its name in
 * its unit. What is left over in the output must be ours. Symbols of the output may
 * have new names and another order, so nothing here goes by symbol index.
 */
#include "outliner/verify/verify.h"

#include <elf.h>
#include <string.h>

static const struct object *object_of(const struct side *side, uint32_t object)
{
    return side->objects->items[object];
}

struct naming {
    struct table *names; /* of section and unit */
    array_of(uint32_t) seen; /* by number of the name: sections so far, on this side */
    struct table *keys;      /* of name and order */
};

static struct naming naming_new(struct arena *arena)
{
    return (struct naming){.names = table_new(arena), .keys = table_new(arena)};
}

static void naming_restart(struct naming *naming)
{
    for (uint32_t i = 0; i < naming->seen.count; i++)
        naming->seen.items[i] = 0;
}

/* A number for (name, unit, order): equal for sections that correspond. */
static uint32_t key_of(struct verify *verify, struct naming *naming,
                       const struct section *section)
{
    const char *text = arena_format(verify->arena, "%u %s", section->unit, section->name);
    uint32_t name = table_intern_string(naming->names, text);
    if (name == naming->seen.count)
        array_push(verify->arena, &naming->seen, 0);
    uint32_t key[] = {name, naming->seen.items[name]++};
    return table_intern(naming->keys, key, sizeof key);
}

static bool same_kind(const struct section *a, const struct section *b)
{
    return a->type == b->type && a->flags == b->flags && a->align == b->align &&
           a->entry_size == b->entry_size;
}

static bool pair_object(struct verify *verify, uint32_t number, struct error *err)
{
    const struct object *before = object_of(&verify->before, number);
    const struct object *after = object_of(&verify->after, number);
    struct naming naming = naming_new(verify->arena);
    uint32_t *by_key =
        arena_new_array(verify->arena, uint32_t, (size_t)before->section_count + 1);
    for (uint32_t s = 1; s < before->section_count; s++)
        by_key[key_of(verify, &naming, &before->sections[s])] = s;
    uint32_t known = table_count(naming.keys);
    naming_restart(&naming);
    for (uint32_t s = 1; s < after->section_count; s++) {
        uint32_t key = key_of(verify, &naming, &after->sections[s]);
        if (key >= known)
            continue;
        verify->after_of[number][by_key[key]] = s;
        verify->before_of[number][s] = by_key[key];
    }
    for (uint32_t s = 1; s < before->section_count; s++) {
        uint32_t other = verify->after_of[number][s];
        struct spot old = {number, s, 0}, new = {number, 0, 0};
        if (other == NO_INDEX)
            return verify_fail(verify, old, new, err, "the section is gone");
        new.section = other;
        if (!same_kind(&before->sections[s], &after->sections[other]))
            return verify_fail(verify, old, new, err,
                               "type, flags, alignment or entry size differ");
    }
    return true;
}

static bool unit_is_ours(const struct object *object, uint32_t unit)
{
    return unit < object->unit_count && object->units[unit].helpers;
}

/* New sections hold helpers and what goes with them, nothing else. */
static bool check_new_sections(struct verify *verify, uint32_t number,
                               struct error *err)
{
    const struct object *object = object_of(&verify->after, number);
    for (uint32_t s = 1; s < object->section_count; s++) {
        if (verify->before_of[number][s] == NO_INDEX &&
            !unit_is_ours(object, object->sections[s].unit)) {
            struct place place = object_place(object, s, 0);
            return fail(err, &place, "internal error: the section is new");
        }
    }
    return true;
}

/* --- groups --- */

static const struct group *group_of(const struct object *object, uint32_t section)
{
    uint32_t group = object->sections[section].group;
    return group == NO_INDEX ? NULL : &object->groups[group];
}

static bool same_group(const struct object *before, const struct group *a,
                       const struct object *after, const struct group *b)
{
    if (!a || !b)
        return a == b;
    return a->flags == b->flags && a->member_count == b->member_count &&
           strcmp(before->symbols[a->signature].name,
                  after->symbols[b->signature].name) == 0;
}

static bool check_links(struct verify *verify, uint32_t number, struct error *err)
{
    const struct object *before = object_of(&verify->before, number);
    const struct object *after = object_of(&verify->after, number);
    for (uint32_t s = 1; s < before->section_count; s++) {
        uint32_t other = verify->after_of[number][s];
        struct spot old = {number, s, 0}, new = {number, other, 0};
        if (!same_group(before, group_of(before, s), after, group_of(after, other)))
            return verify_fail(verify, old, new, err, "the section's group differs");
        uint32_t link = before->sections[s].link;
        uint32_t wanted = link ? verify->after_of[number][link] : 0;
        if (after->sections[other].link != wanted)
            return verify_fail(verify, old, new, err, "the section's link differs");
    }
    return true;
}

static uint32_t *no_indices(struct arena *arena, uint32_t count)
{
    uint32_t *indices = arena_new_array(arena, uint32_t, count);
    memset(indices, 0xff, count * sizeof *indices);
    return indices;
}

static bool same_header(const struct object *a, const struct object *b)
{
    return a->machine == b->machine && a->flags == b->flags && a->os_abi == b->os_abi &&
           b->unit_count >= a->unit_count && a->group_count == b->group_count;
}

bool verify_pair_sections(struct verify *verify, struct error *err)
{
    uint32_t count = verify->after.objects->count;
    verify->after_of = arena_new_array(verify->arena, uint32_t *, count);
    verify->before_of = arena_new_array(verify->arena, uint32_t *, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct object *after = object_of(&verify->after, i);
        bool extra = i >= verify->before.objects->count;
        verify->before_of[i] = no_indices(verify->arena, after->section_count);
        const struct object *before = extra ? NULL : object_of(&verify->before, i);
        verify->after_of[i] =
            no_indices(verify->arena, extra ? 0 : before->section_count);
        if (!extra && !same_header(before, after))
            return fail(err, &(struct place){.file = after->name},
                        "internal error: the object's header or groups differ");
        if (!(extra || pair_object(verify, i, err)) ||
            !check_new_sections(verify, i, err) ||
            !(extra || check_links(verify, i, err)))
            return false;
    }
    return true;
}

/* --- names --- */

/* Of several definitions a linker takes the strong one. */
static void index_symbol(struct arena *arena, struct side *side, uint32_t object,
                         uint32_t number)
{
    const struct symbol *symbol = &object_of(side, object)->symbols[number];
    if (symbol_is_local(symbol) || symbol->section == SECTION_UNDEFINED)
        return;
    uint32_t name = table_intern_string(side->names, symbol->name);
    struct named named = {object, number};
    if (name == side->definitions.count)
        array_push(arena, &side->definitions, named);
    else if (symbol->bind != STB_WEAK)
        side->definitions.items[name] = named;
}

static uint32_t *look_up_symbols(struct arena *arena, const struct side *side,
                                 const struct object *object)
{
    uint32_t *wanted = arena_new_array(arena, uint32_t, object->symbol_count);
    for (uint32_t s = 0; s < object->symbol_count; s++) {
        const struct symbol *symbol = &object->symbols[s];
        wanted[s] = symbol->section == SECTION_UNDEFINED
                        ? table_find_string(side->names, symbol->name)
                        : NO_INDEX;
    }
    return wanted;
}

void verify_index_names(struct arena *arena, struct side *side)
{
    uint32_t count = side->objects->count;
    side->names = table_new(arena);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t s = 1; s < object_of(side, i)->symbol_count; s++)
            index_symbol(arena, side, i, s);
    side->wanted = arena_new_array(arena, uint32_t *, count);
    for (uint32_t i = 0; i < count; i++)
        side->wanted[i] = look_up_symbols(arena, side, object_of(side, i));
}

bool is_helper_section(const struct verify *verify, uint32_t object, uint32_t section)
{
    const struct object *of = object_of(&verify->after, object);
    if (section == 0 || section >= of->section_count ||
        !section_is_code(&of->sections[section]))
        return false;
    return verify->before_of[object][section] == NO_INDEX ||
           unit_is_ours(of, of->sections[section].unit);
}
