/* SPDX-License-Identifier: MIT
 *
 * Positions outside of edited code, object by object: what says one lies in the object of
 * the code, so an object's part looks at no other object, and several workers take some
 * each. An object without a draft has nothing that has moved.
 */
#include "mo/parallel.h"
#include "outliner/rewrite/rewrite.h"

#include <assert.h>

/* --- unwind tables --- */

/* Records keep their order and their relocations, so these correspond by index. */
static void move_addends(struct rewrite *rewrite, uint32_t object, uint32_t section,
                         struct section *out)
{
    const struct reloc *moved = rewrite_relocs(rewrite, object, section);
    const struct section *old = &rewrite->drafts[object].old->sections[section];
    struct reloc *relocs =
        arena_copy(rewrite->arena, out->relocs, out->reloc_count * sizeof *out->relocs);
    assert(out->reloc_count == old->reloc_count);
    for (uint32_t i = 0; i < out->reloc_count; i++) {
        assert(relocs[i].symbol == moved[i].symbol && relocs[i].type == moved[i].type);
        relocs[i].addend = moved[i].addend;
    }
    out->relocs = relocs;
}

/* A linker's -r leaves a mark of data ($d) where each of its inputs began. Any place
 * is as good for it that the section still has. */
static void keep_marks_inside(struct rewrite *rewrite, uint32_t object)
{
    struct draft *draft = &rewrite->drafts[object];
    const bool *changed = rewrite->frames[object].changed;
    for (uint32_t i = 1; i < draft->symbols.count; i++) {
        struct symbol *symbol = &draft->symbols.items[i];
        if (symbol->section >= draft->old->section_count || !changed[symbol->section] ||
            symbol->name[0] != '$')
            continue;
        uint64_t size = draft->sections[symbol->section].data.size;
        symbol->value = symbol->value < size ? symbol->value : size;
    }
}

static void put_frames(struct rewrite *rewrite, uint32_t object)
{
    const struct new_frames *frames = &rewrite->frames[object];
    uint32_t count = rewrite->drafts[object].old->section_count;
    for (uint32_t s = 1; s < count; s++) {
        struct section *out = &rewrite->drafts[object].sections[s];
        if (!frames->changed[s])
            continue;
        *out = frames->sections[s];
        out->data.at = arena_copy(rewrite->arena, out->data.at, out->data.size);
        move_addends(rewrite, object, s, out);
    }
    keep_marks_inside(rewrite, object);
}

/* --- all of it --- */

struct moving {
    const struct rewrite *rewrite;
    struct arena **arenas, **stages; /* by worker */
    const struct error **errs;       /* by object; NULL: none */
};

static void move_object(void *context, uint32_t number, uint32_t worker)
{
    const struct moving *moving = context;
    struct rewrite rewrite = *moving->rewrite; /* with memory of its own */
    struct error err = {0};
    if (!rewrite.drafts[number].sections)
        return;
    rewrite.arena = moving->arenas[worker];
    rewrite.stage = moving->stages[worker];
    if (!references_move(&rewrite, number, &err)) {
        moving->errs[number] = arena_copy(rewrite.stage, &err, sizeof err);
        return;
    }
    tables_move(&rewrite, number);
    debug_move(&rewrite, number);
    put_frames(&rewrite, number);
}

bool objects_move(struct rewrite *rewrite, struct error *err)
{
    uint32_t workers = rewrite->program->workers;
    uint32_t count = rewrite->program->objects->count;
    struct moving moving = {rewrite, parallel_arenas(rewrite->stage, workers),
                            parallel_arenas(rewrite->stage, workers),
                            arena_new_array(rewrite->stage, const struct error *, count)};
    parallel_do(workers, count, move_object, &moving);
    parallel_adopt(rewrite->arena, moving.arenas, workers);
    parallel_adopt(rewrite->stage, moving.stages, workers);
    for (uint32_t o = 0; o < count; o++) {
        if (moving.errs[o])
            return fail(err, NULL, "%s", moving.errs[o]->message);
    }
    return true;
}
