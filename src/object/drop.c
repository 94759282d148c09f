/* SPDX-License-Identifier: MIT */
#include "merge.h"

#include <string.h>

bool object_drop(struct arena *arena, const struct object *object, const bool *dropped,
                 const struct object **out, const uint32_t **section_at,
                 struct error *err)
{
    struct merge merge = {.arena = arena, .err = err, .name = object->name};
    const struct objects one = {&object, 1};
    merge.stage = arena_new();
    merge_start(&merge, &one);
    memcpy(merge.inputs[0].dropped, dropped, object->section_count * sizeof *dropped);
    bool ok = merge_apply(&merge, NULL, 0, out) && object_check(*out, err);
    *section_at = arena_copy(arena, merge.inputs[0].section_at,
                             object->section_count * sizeof **section_at);
    arena_free(merge.stage);
    return ok;
}
