/* SPDX-License-Identifier: MIT
 *
 * Copies. The same inline function, template or constant comes with many objects; each
 * copy lies in a COMDAT group, and a linker keeps the first group of each name (gABI
 * chapter 4, "Section Groups") and drops the members of the others. In one object there
 * is only one group of a name, so we do it here.
 *
 * `.gnu.linkonce.*` sections are the same idea, older: of equal names the first stays.
 */
#include "merge.h"

#include <elf.h>
#include <string.h>

/* The name of a group. A section symbol stands for the name of its section. */
static const char *group_name(const struct object *object, const struct group *group)
{
    const struct symbol *symbol = &object->symbols[group->signature];
    if (symbol->type == STT_SECTION && symbol->section < object->section_count)
        return object->sections[symbol->section].name;
    return symbol->name;
}

static void drop_groups(struct input *input, struct table *known)
{
    const struct object *object = input->object;
    for (uint32_t i = 0; i < object->group_count; i++) {
        const struct group *group = &object->groups[i];
        uint32_t count = table_count(known);
        if (!(group->flags & GRP_COMDAT) ||
            table_intern_string(known, group_name(object, group)) == count)
            continue;
        for (uint32_t k = 0; k < group->member_count; k++)
            input->dropped[group->members[k]] = true;
    }
}

static void drop_linkonce(struct input *input, struct table *known)
{
    static const char prefix[] = ".gnu.linkonce.";
    const struct object *object = input->object;
    for (uint32_t i = 1; i < object->section_count; i++) {
        const char *name = object->sections[i].name;
        uint32_t count = table_count(known);
        if (strncmp(name, prefix, sizeof prefix - 1) == 0 &&
            object->sections[i].group == NO_INDEX &&
            table_intern_string(known, name) < count)
            input->dropped[i] = true;
    }
}

void merge_drop_copies(struct merge *merge)
{
    struct table *groups = table_new(merge->stage);
    struct table *linkonce = table_new(merge->stage);
    for (uint32_t i = 0; i < merge->input_count; i++) {
        drop_groups(&merge->inputs[i], groups);
        drop_linkonce(&merge->inputs[i], linkonce);
    }
}

/* The section says something about another one, which has gone. */
static bool lost_its_section(const struct input *input, const struct section *section)
{
    return ((section->flags & SHF_LINK_ORDER) && input->dropped[section->link]) ||
           ((section->flags & SHF_INFO_LINK) && input->dropped[section->info]);
}

void merge_drop_linked(struct merge *merge)
{
    for (uint32_t i = 0; i < merge->input_count; i++) {
        struct input *input = &merge->inputs[i];
        for (bool more = true; more;) {
            more = false;
            for (uint32_t k = 1; k < input->object->section_count; k++) {
                if (!input->dropped[k] &&
                    lost_its_section(input, &input->object->sections[k]))
                    input->dropped[k] = more = true;
            }
        }
    }
}

bool merge_group_is_gone(const struct input *input, const struct group *group)
{
    for (uint32_t i = 0; i < group->member_count; i++) {
        if (!input->dropped[group->members[i]])
            return false;
    }
    return true;
}

/* One group of an input in the result; false when no member is left. */
static bool build_group(const struct merge *merge, const struct input *input,
                        const struct group *from, uint32_t number, struct group *out)
{
    uint32_t *members = arena_new_array(merge->arena, uint32_t, from->member_count);
    *out = (struct group){input->symbol_at[from->signature], from->flags, members, 0};
    for (uint32_t i = 0; i < from->member_count; i++) {
        uint32_t section = input->section_at[from->members[i]];
        if (section == 0)
            continue;
        members[out->member_count++] = section;
        merge->sections[section].group = number;
    }
    return out->member_count > 0;
}

bool merge_build_groups(struct merge *merge, struct object *out)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < merge->input_count; i++)
        count += merge->inputs[i].object->group_count;
    struct group *groups = arena_new_array(merge->arena, struct group, count);
    uint32_t used = 0;
    for (uint32_t i = 0; i < merge->input_count; i++) {
        const struct input *input = &merge->inputs[i];
        for (uint32_t k = 0; k < input->object->group_count; k++) {
            const struct group *from = &input->object->groups[k];
            if (!build_group(merge, input, from, used, &groups[used]))
                continue;
            if (groups[used].signature == 0)
                return fail(merge->err, &(struct place){.file = input->object->name},
                            "the symbol that names group %s has gone",
                            group_name(input->object, from));
            used++;
        }
    }
    out->groups = groups;
    out->group_count = used;
    return true;
}
