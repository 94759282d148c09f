/* SPDX-License-Identifier: MIT
 *
 * Gives each function its unwind entry. An open function has exactly one, which covers
 * exactly it - or none, in a unit that has no unwind entries at all (firmware). A
 * function without one beside others that have some is hand-written: nothing says what
 * its author relied on. Our own helpers share entries, so there an entry may cover
 * several.
 */
#include "outliner/lift/lift.h"

#include <elf.h>

/* For each unit of an object: whether any unwind entry describes its code. */
static bool *units_with_frames(struct arena *arena, const struct object *object,
                               const struct frames *frames)
{
    bool *has = arena_new_array(arena, bool, object->unit_count);
    for (uint32_t i = 0; i < frames->fde_count; i++)
        has[object->sections[frames->fdes[i].section].unit] = true;
    return has;
}

static void seal_range(struct lift *lift, uint32_t code, const struct fde *fde,
                       enum refusal why)
{
    const struct code *of = &lift->program->code[code];
    for (uint32_t i = 0; i < of->function_count; i++) {
        uint32_t number = of->first_function + i;
        const struct function *function = &lift->program->functions[number];
        if (function->start < fde->start + fde->length && fde->start < function->end)
            lift_seal(lift, number, why, fde->start);
    }
}

/* The entry covers whole functions, the first from `number` on: earlier runs unite
 * entries. (One with a call-site table is one function's.) */
static bool covers_functions(const struct lift *lift, uint32_t code,
                             const struct fde *fde, uint32_t number)
{
    const struct code *of = &lift->program->code[code];
    const struct function *functions = lift->program->functions;
    uint32_t end = fde->start + fde->length;
    if (fde->has_lsda || fde->length == 0 || functions[number].start != fde->start)
        return false;
    while (number + 1 < of->first_function + of->function_count &&
           functions[number].end < end && functions[number + 1].start < end)
        number++;
    return functions[number].end == end;
}

/* An entry that is not exactly one function's: harmless while all that it covers keeps
 * its bytes and stays together, so it may lie inside one function (which is sealed),
 * but not reach over two. */
static void check_entry(struct lift *lift, uint32_t code, const struct fde *fde)
{
    struct program *program = lift->program;
    uint32_t number = program_function_at(program, code, fde->start);
    uint32_t end = fde->start + fde->length;
    if (program->code[code].helpers)
        return;
    const struct function *function =
        number == NO_INDEX ? NULL : &program->functions[number];
    bool empty = fde->length == 0;
    if (function && function->end < end && covers_functions(lift, code, fde, number))
        return;
    if (!function || end > function->end || (empty && fde->start != function->start)) {
        lift_freeze(lift, code, REFUSAL_FRAME_MISMATCH, fde->start);
        return;
    }
    if (empty)
        return; /* says nothing, and moves with the function's start */
    if (function->start != fde->start || function->end != end)
        seal_range(lift, code, fde, REFUSAL_FRAME_MISMATCH);
    else if (fde->has_lsda && !function->lsda)
        lift_seal(lift, number, REFUSAL_EXCEPTION_TABLE, fde->start);
}

static void give_frame(struct lift *lift, uint32_t number, bool unit_has_frames)
{
    struct program *program = lift->program;
    struct function *function = &program->functions[number];
    const struct code *code = &program->code[function->code];
    uint32_t first;
    uint32_t count = frames_find(&program->frames[code->object], code->section,
                                 function->start, function->end, &first);
    if (count == 1)
        function->fde = first;
    else if (count > 1)
        lift_seal(lift, number, REFUSAL_FRAME_MISMATCH, function->start);
    else if (unit_has_frames && !code->helpers)
        lift_seal(lift, number, REFUSAL_NO_FRAME, function->start);
}

/* An entry that cannot be read, or that describes something else than code. */
static bool is_strange(const struct lift *lift, uint32_t object, const struct fde *fde)
{
    if (fde->code_section == NO_INDEX)
        return fde->refusal != REFUSAL_NONE;
    const struct section *section =
        &lift->program->objects->items[object]->sections[fde->code_section];
    return fde->refusal != REFUSAL_NONE || !section_is_code(section) ||
           (uint64_t)fde->start + fde->length > section->data.size;
}

/* A table with strange entries is not touched, nor is any code that it describes. */
static void freeze_strange(struct lift *lift, struct arena *stage, uint32_t object)
{
    const struct object *of = lift->program->objects->items[object];
    const struct frames *frames = &lift->program->frames[object];
    bool *strange = arena_new_array(stage, bool, of->section_count);
    for (uint32_t i = 0; i < frames->fde_count; i++) {
        if (is_strange(lift, object, &frames->fdes[i]))
            strange[frames->fdes[i].section] = true;
    }
    for (uint32_t i = 0; i < frames->fde_count; i++) {
        const struct fde *fde = &frames->fdes[i];
        uint32_t code = !strange[fde->section] || fde->code_section == NO_INDEX
                            ? NO_INDEX
                            : program_code_of(lift->program, object, fde->code_section);
        if (code != NO_INDEX)
            lift_freeze(lift, code, REFUSAL_BAD_FRAME_SECTION, fde->start);
    }
}

void lift_frames(struct lift *lift)
{
    struct program *program = lift->program;
    struct arena *stage = arena_new();
    bool *has = NULL;
    for (uint32_t o = 0; o < program->objects->count; o++)
        freeze_strange(lift, stage, o);
    for (uint32_t c = 0; c < program->code_count; c++) {
        const struct code *code = &program->code[c];
        const struct object *object = program_object(program, c);
        const struct frames *frames = &program->frames[code->object];
        if (c == 0 || code->object != program->code[c - 1].object)
            has = units_with_frames(stage, object, frames);
        if (code->function_count == 0)
            continue;
        uint32_t first, size = (uint32_t)program_section(program, c)->data.size;
        uint32_t count = frames_find(frames, code->section, 0, size, &first);
        for (uint32_t i = 0; i < count; i++)
            check_entry(lift, c, &frames->fdes[first + i]);
        bool in_unit = has[object->sections[code->section].unit];
        for (uint32_t f = 0; f < code->function_count; f++)
            give_frame(lift, code->first_function + f, in_unit);
    }
    arena_free(stage);
}
