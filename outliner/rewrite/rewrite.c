/* SPDX-License-Identifier: MIT
 *
 * New objects = old objects + plan. Everything is placed first (edits, layout, bodies
 * of helpers), then everything is written: each part knows from the offset map alone
 * where all others are, so nothing is patched twice and nothing depends on the order of
 * writing.
 *
 * Old indices stay valid: sections and symbols are only added behind the old ones, and
 * no FDE goes. Only relocations of edited code sections are numbered anew, once all
 * others have been looked at.
 */
#include "mo/parallel.h"
#include "outliner/rewrite/rewrite.h"

#include <elf.h>
#include <string.h>

/* Unwind tables of the helpers: one section for each section of helpers. */
static void put_helper_frames(struct rewrite *rewrite)
{
    for (uint32_t s = 0; s < rewrite->places.section_count; s++) {
        const struct section *table = &rewrite->helper_frames[s];
        if (table->reloc_count == 0)
            continue;
        uint32_t symbol =
            symbols_section(rewrite, rewrite->home, rewrite->first_section + s);
        struct draft *home = &rewrite->drafts[rewrite->home];
        struct section *out = &home->sections[home->section_count++];
        struct reloc *relocs = arena_copy(rewrite->arena, table->relocs,
                                          table->reloc_count * sizeof *table->relocs);
        for (uint32_t i = 0; i < table->reloc_count; i++)
            relocs[i].symbol = symbol;
        *out = *table;
        out->data.at = arena_copy(rewrite->arena, out->data.at, out->data.size);
        out->relocs = relocs;
        out->unit = rewrite->unit;
    }
}

/* --- objects --- */

/* Helpers can do what all of the code that they come from can. */
static struct unit helper_unit(const struct rewrite *rewrite)
{
    struct unit unit = {
        .name = rewrite->options->set_name, .features = UINT32_MAX, .helpers = true};
    if (!unit.name)
        unit.name = "outlined";
    const struct objects *objects = rewrite->program->objects;
    for (uint32_t o = 0; o < objects->count; o++) {
        for (uint32_t u = 0; u < objects->items[o]->unit_count; u++)
            unit.features &= objects->items[o]->units[u].features;
    }
    return unit;
}

static struct object *finish_draft(struct rewrite *rewrite, const struct draft *draft,
                                   bool home)
{
    struct object *object = arena_new_one(rewrite->arena, struct object);
    *object = *draft->old;
    object->sections = draft->sections;
    object->section_count = draft->section_count;
    object->symbols = draft->symbols.items;
    object->symbol_count = draft->symbols.count;
    if (!home)
        return object;
    struct unit *units =
        arena_new_array(rewrite->arena, struct unit, object->unit_count + 1);
    memcpy(units, object->units, object->unit_count * sizeof *units);
    units[object->unit_count++] = helper_unit(rewrite);
    object->units = units;
    return object;
}

/* Without these notes a linker would take the stack for executable, and switch off
 * branch protection for the whole program. */
static void add_notes(struct rewrite *rewrite, struct draft *draft)
{
    struct section note = {0};
    if (properties_merge(rewrite->arena, rewrite->program->objects, &note)) {
        note.unit = rewrite->unit;
        note.group = NO_INDEX;
        draft->sections[draft->section_count++] = note;
    }
    draft->sections[draft->section_count++] =
        (struct section){.name = ".note.GNU-stack",
                         .type = SHT_PROGBITS,
                         .align = 1,
                         .group = NO_INDEX,
                         .unit = rewrite->unit};
}

static struct object *finish_helpers(struct rewrite *rewrite, struct draft *draft)
{
    add_notes(rewrite, draft);
    const struct object *like = rewrite->program->objects->items[0];
    struct unit *unit = arena_new_one(rewrite->arena, struct unit);
    *unit = helper_unit(rewrite);
    struct object *object = arena_new_one(rewrite->arena, struct object);
    *object = (struct object){.name = rewrite->options->set_name,
                              .machine = like->machine,
                              .flags = like->flags,
                              .units = unit,
                              .unit_count = 1,
                              .sections = draft->sections,
                              .section_count = draft->section_count,
                              .symbols = draft->symbols.items,
                              .symbol_count = draft->symbols.count};
    return object;
}

struct checks {
    const struct object **objects;
    const struct error **errs; /* by object; NULL: none */
    struct arena **arenas;     /* by worker */
};

static void check_object(void *context, uint32_t number, uint32_t worker)
{
    const struct checks *checks = context;
    struct error err = {0};
    if (checks->objects[number] && !object_check(checks->objects[number], &err))
        checks->errs[number] = arena_copy(checks->arenas[worker], &err, sizeof err);
}

/* Those that are new; the others have been checked when they were. */
static bool check_objects(const struct rewrite *rewrite, const struct object **objects,
                          struct error *err)
{
    uint32_t count = rewrite->draft_count, workers = rewrite->program->workers;
    struct checks checks = {
        arena_new_array(rewrite->stage, const struct object *, count),
        arena_new_array(rewrite->stage, const struct error *, count),
        parallel_arenas(rewrite->stage, workers)};
    for (uint32_t i = 0; i < count; i++)
        checks.objects[i] = rewrite->drafts[i].sections ? objects[i] : NULL;
    parallel_do(workers, count, check_object, &checks);
    parallel_adopt(rewrite->stage, checks.arenas, workers);
    for (uint32_t i = 0; i < count; i++) {
        if (checks.errs[i])
            return fail(err, NULL, "%s", checks.errs[i]->message);
    }
    return true;
}

static bool finish(struct rewrite *rewrite, struct objects *out, struct error *err)
{
    const struct object **objects =
        arena_new_array(rewrite->arena, const struct object *, rewrite->draft_count);
    for (uint32_t i = 0; i < rewrite->draft_count; i++) {
        struct draft *draft = &rewrite->drafts[i];
        objects[i] = !draft->sections ? draft->old
                     : draft->old     ? finish_draft(rewrite, draft, i == rewrite->home)
                                      : finish_helpers(rewrite, draft);
    }
    *out = (struct objects){objects, rewrite->draft_count};
    return check_objects(rewrite, objects, err);
}

/* --- the whole --- */

static bool rewrite_run(struct rewrite *rewrite, const struct edit_list *extra,
                        struct objects *out, struct error *err)
{
    const struct program *program = rewrite->program;
    const struct plan *plan = rewrite->plan;
    struct placement placement;
    if (plan->placement && !extra)
        placement = *plan->placement;
    else if (!placement_make(rewrite->stage, program, plan, extra, &placement, err))
        return false;
    rewrite->layouts = placement.layouts;
    rewrite->places = placement.places;
    rewrite->frames = placement.frames;
    rewrite->helper_frames = placement.helper_frames;
    /* From here on every position is known. */

    symbols_draft(rewrite);
    if (!objects_move(rewrite, err))
        return false;
    /* From here on every field outside of edited code says its new position. */

    helpers_write(rewrite);
    if (!code_write(rewrite, err))
        return false;
    put_helper_frames(rewrite);
    return finish(rewrite, out, err);
}

bool rewrite_with_edits(struct arena *arena, const struct program *program,
                        const struct plan *plan, const struct edit_list *extra,
                        const struct rewrite_options *options, struct objects *out,
                        struct error *err)
{
    struct rewrite rewrite = {.arena = arena,
                              .stage = arena_new(),
                              .program = program,
                              .plan = plan,
                              .options = options};
    bool done = rewrite_run(&rewrite, extra, out, err);
    arena_free(rewrite.stage);
    return done;
}

bool program_rewrite(struct arena *arena, const struct program *program,
                     const struct plan *plan, const struct rewrite_options *options,
                     struct objects *out, struct error *err)
{
    return rewrite_with_edits(arena, program, plan, NULL, options, out, err);
}
