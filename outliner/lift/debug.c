/* SPDX-License-Identifier: MIT
 *
 * Debug information: where some position is not understood, the code of its unit stays
 * where it is. (What would be wrong else could only be dropped, and debug information is
 * full of distances that nothing marks.)
 */
#include "outliner/lift/lift.h"

static void freeze_section(struct lift *lift, uint32_t object, uint32_t section,
                           enum refusal why)
{
    uint32_t code = program_code_of(lift->program, object, section);
    if (code != NO_INDEX)
        lift_freeze(lift, code, why, 0);
}

/* The reason of some refused unit: usually there is but one. */
static enum refusal reason(const struct object *object, const struct debug *debug,
                           uint32_t section)
{
    uint32_t unit = object->sections[section].unit;
    return debug->refused[unit] != REFUSAL_NONE ? (enum refusal)debug->refused[unit]
                                                : REFUSAL_DEBUG_INFO;
}

static void freeze_refused(struct lift *lift, uint32_t object)
{
    const struct object *of = lift->program->objects->items[object];
    const struct debug *debug = &lift->program->debug[object];
    struct arena *stage = arena_new();
    bool *refused = arena_new_array(stage, bool, of->section_count);
    debug_refused_code(of, debug, refused);
    for (uint32_t s = 1; s < of->section_count; s++)
        if (refused[s])
            freeze_section(lift, object, s, reason(of, debug, s));
    arena_free(stage);
}

static bool starts_function(const struct program *program, uint32_t code,
                            uint32_t position)
{
    uint32_t function = program_function_at(program, code, position);
    return function != NO_INDEX && program->functions[function].start == position;
}

/* The value of a pointer to a function is right wherever that goes; nobody knows what a
 * pointer into its middle is for. */
static void check_points(struct lift *lift, uint32_t object)
{
    const struct program *program = lift->program;
    const struct debug *debug = &program->debug[object];
    for (uint32_t i = 0; i < debug->point_count; i++) {
        const struct debug_point *point = &debug->points[i];
        uint32_t code = program_code_of(program, object, point->code);
        if (point->role == DEBUG_ENTRY && code != NO_INDEX &&
            !starts_function(program, code, point->position))
            freeze_section(lift, object, point->code, REFUSAL_DEBUG_INFO);
    }
}

/* Rows can only be where the program's steps reach. */
static void check_lines(struct lift *lift, uint32_t object)
{
    const struct debug *debug = &lift->program->debug[object];
    for (uint32_t i = 0; i < debug->lines_count; i++) {
        const struct debug_lines *lines = &debug->lines[i];
        if (lift->program->target->code_align % lines->minimum_length == 0)
            continue;
        for (uint32_t s = 0; s < lines->sequence_count; s++)
            if (lines->sequences[s].code != NO_INDEX)
                freeze_section(lift, object, lines->sequences[s].code,
                               REFUSAL_DEBUG_INFO);
    }
}

void lift_debug(struct lift *lift)
{
    struct program *program = lift->program;
    uint32_t count = program->objects->count;
    struct debug *debug = arena_new_array(lift->arena, struct debug, count);
    program->debug = debug;
    for (uint32_t o = 0; o < count; o++) {
        debug_read(lift->arena, program->objects->items[o], &debug[o]);
        freeze_refused(lift, o);
        check_points(lift, o);
        check_lines(lift, o);
    }
}
