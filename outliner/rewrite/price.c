/* SPDX-License-Identifier: MIT
 *
 * What a plan saves, in bytes of the loaded image: the rewriter's own layout, bodies
 * and unwind tables, measured instead of written. Predicted and measured savings are
 * therefore equal, which a test asserts.
 */
#include "outliner/rewrite/rewrite.h"

/* One entry of the binary search table in .eh_frame_hdr. */
enum { HEADER_ENTRY = 8 };

struct pricer {
    const struct program *program;
    const struct placement *placement;
};

static int64_t price_code(const struct pricer *pricer)
{
    int64_t saved = 0;
    for (uint32_t c = 0; c < pricer->program->code_count; c++) {
        const struct layout *layout = &pricer->placement->layouts[c];
        if (layout->edits.count == 0)
            continue;
        const struct piece *end = &layout->offsets.pieces[layout->offsets.count - 1];
        saved += (int64_t)end->old_start - (int64_t)end->new_start;
    }
    const struct helper_places *places = &pricer->placement->places;
    for (uint32_t s = 0; s < places->section_count; s++)
        saved -= places->sections[s].size;
    return saved;
}

static int64_t price_frames(const struct pricer *pricer)
{
    const struct objects *objects = pricer->program->objects;
    int64_t saved = 0;
    for (uint32_t o = 0; o < objects->count; o++) {
        const struct object *object = objects->items[o];
        const struct new_frames *frames = &pricer->placement->frames[o];
        for (uint32_t s = 1; s < object->section_count; s++) {
            if (frames->changed[s])
                saved += (int64_t)object->sections[s].data.size -
                         (int64_t)frames->sections[s].data.size;
        }
    }
    return saved;
}

static void price_helper_frames(const struct pricer *pricer, struct plan *plan)
{
    for (uint32_t s = 0; s < pricer->placement->places.section_count; s++) {
        const struct section *table = &pricer->placement->helper_frames[s];
        plan->predicted_eh -= (int64_t)table->data.size;
        plan->predicted_hdr -= HEADER_ENTRY * (int64_t)table->reloc_count;
    }
}

bool placement_make(struct arena *arena, const struct program *program,
                    const struct plan *plan, const struct edit_list *extra,
                    struct placement *out, struct error *err)
{
    struct edit_list edits = edits_of_plan(arena, program, plan, extra);
    bool narrow = plan->short_branches && !extra; /* these make code longer */
    return layouts_make(arena, program, &edits, narrow, &out->layouts, err) &&
           helpers_make(arena, program, plan, &out->places, err) &&
           frames_make(arena, program, plan, out, err);
}

bool plan_price(struct arena *arena, const struct program *program, struct plan *plan,
                struct error *err)
{
    struct placement *placement = arena_new_one(arena, struct placement);
    plan->predicted_code = plan->predicted_eh = plan->predicted_hdr = 0;
    if (!placement_make(arena, program, plan, NULL, placement, err))
        return false;
    plan->placement = placement;
    struct pricer pricer = {program, placement};
    plan->predicted_code = price_code(&pricer);
    plan->predicted_eh = price_frames(&pricer);
    price_helper_frames(&pricer, plan);
    return true;
}
