/* SPDX-License-Identifier: MIT
 *
 * Without debug sections. A debug section that something else refers to (by relocation)
 * stays: it is not only for debuggers then.
 */
#include "merge.h"

#include <assert.h>
#include <elf.h>

/* Unmarks what `section` refers to. */
static void keep_targets(const struct object *object, const struct section *section,
                         bool *dropped)
{
    for (uint32_t i = 0; i < section->reloc_count; i++) {
        uint32_t target = object->symbols[section->relocs[i].symbol].section;
        if (target < object->section_count)
            dropped[target] = false;
    }
}

const struct object *object_strip_debug(struct arena *arena,
                                        const struct object *object)
{
    struct error err = {0};
    struct merge merge = {.arena = arena, .err = &err, .name = object->name};
    const struct objects one = {&object, 1};
    const struct object *stripped = NULL;
    merge.stage = arena_new();
    merge_start(&merge, &one);
    bool *dropped = merge.inputs[0].dropped;
    for (uint32_t i = 1; i < object->section_count; i++)
        dropped[i] = section_is_debug(&object->sections[i]);
    for (uint32_t i = 1; i < object->section_count; i++) {
        if (!section_is_debug(&object->sections[i]))
            keep_targets(object, &object->sections[i], dropped);
    }
    bool ok = merge_apply(&merge, NULL, 0, &stripped);
    /* Nothing that is left refers to what has gone, so nothing can fail. */
    assert(ok && stripped);
    (void)ok;
    arena_free(merge.stage);
    return stripped;
}
