/* SPDX-License-Identifier: MIT
 *
 * Objects -> program. Everything in an object that encodes a code position is found
 * here, once; what is not understood is refused here, by name, and later stages trust
 * the rest.
 *
 * The order matters in one way only: freezing and sealing must be complete before
 * blocks and liveness are made, since they rely on seeing every way into a function.
 */
#include "outliner/lift/lift.h"

#include <fnmatch.h>

void lift_freeze(struct lift *lift, uint32_t code, enum refusal why, uint64_t offset)
{
    struct code *of = &lift->program->code[code];
    if (of->refusal == REFUSAL_NONE) {
        of->refusal = why;
        of->why_offset = offset;
    }
}

void lift_seal(struct lift *lift, uint32_t function, enum refusal why, uint64_t offset)
{
    struct function *of = &lift->program->functions[function];
    if (of->refusal == REFUSAL_NONE) {
        of->refusal = why;
        of->why_offset = offset;
    }
    /* There may be data in it, aligned more strictly than functions need. */
    if (why == REFUSAL_LABEL_TAKEN || why == REFUSAL_BRANCH_INTO_INSN ||
        why == REFUSAL_SYMBOL_INSIDE) {
        uint64_t limit = program_section(lift->program, of->code)->align;
        uint64_t bit = of->start ? of->start & (~of->start + 1) : limit;
        of->align = (uint32_t)(bit < limit ? bit : limit);
    }
}

bool lift_matches(const char *const *globs, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++) {
        if (fnmatch(globs[i], name, 0) == 0)
            return true;
    }
    return false;
}

/* Functions of frozen sections are nobody's business any more: they are marked with the
 * section's reason, and the section says that it has none. */
static void drop_frozen(struct program *program)
{
    for (uint32_t i = 0; i < program->code_count; i++) {
        struct code *code = &program->code[i];
        if (code->refusal == REFUSAL_NONE)
            continue;
        for (uint32_t f = 0; f < code->function_count; f++)
            program->functions[code->first_function + f].refusal = code->refusal;
        code->function_count = 0;
    }
}

static void count_bytes(struct program *program, enum refusal why, uint64_t bytes)
{
    program->refused_bytes[why] += bytes;
    program->refused_count[why]++;
}

static void count_refusals(struct program *program)
{
    for (uint32_t i = 0; i < program->code_count; i++) {
        const struct code *code = &program->code[i];
        if (code->refusal != REFUSAL_NONE)
            count_bytes(program, code->refusal, program_section(program, i)->data.size);
        for (uint32_t f = 0; f < code->function_count; f++) {
            const struct function *function =
                &program->functions[code->first_function + f];
            count_bytes(program, function->refusal, function->end - function->start);
        }
    }
}

bool program_lift(struct arena *arena, const struct objects *objects,
                  struct row_table *rows, const struct lift_options *options,
                  struct program **out, struct error *err)
{
    struct program *program = arena_new_one(arena, struct program);
    struct lift lift = {.arena = arena, .options = options, .program = program};
    program->objects = objects;
    program->loose = options->loose;
    program->rows = rows;
    program->workers = options->workers;
    program->target = objects->count ? target_of(objects->items[0]->machine) : NULL;
    *out = program;
    if (!program->target)
        return objects->count == 0 || fail(err, NULL, "no target for this machine");
    program->frames = options->frames;
    if (!options->only_tables &&
        !frames_read_all(arena, objects, rows, options->workers, &program->frames, err))
        return false;

    lift_sections(&lift);
    lift_functions(&lift);
    /* From here on the arrays of functions and instructions keep their place. */
    lift_operands(&lift);
    lift_positions(&lift);
    lift_outside(&lift);
    if (!options->only_tables)
        lift_debug(&lift);
    if (program->frames)
        lift_landings(&lift);
    lift_places(&lift);
    lift_switches(&lift);
    lift_gotos(&lift);
    if (options->only_tables)
        return true;
    lift_covered(&lift);
    lift_islands(&lift);
    lift_frames(&lift);
    drop_frozen(program);
    /* From here on every way into an open function is known. */
    lift_blocks(&lift);
    lift_depth(&lift);
    lift_red_zones(program);
    if (options->inner_calls)
        lift_inner_calls(program);
    lift_liveness(&lift);
    count_refusals(program);
    return true;
}
