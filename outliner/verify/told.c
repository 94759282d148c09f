/* SPDX-License-Identifier: MIT
 *
 * Rows of `before` that are told by the frame pointer, and in the output by SP.
 *
 * That says the same if SP is at a known distance from the frame pointer wherever such a
 * row holds and the frame pointer is still the function's own. The function is read from
 * its start to its end: `add fp, sp, #height` leads straight into the rows; in them, SP is
 * written only by what writes the frame pointer, too, or behind that in a straight line.
 * Where `before` jumps to begins a new line. (Helpers that move SP for their callers are
 * LLVM's, which a name tells.)
 */
#include "outliner/verify/verify.h"

#include <string.h>

struct reading {
    struct walk *walk;
    struct spot at;
    uint32_t size;      /* bytes of the function */
    bool *led_to;       /* by offset in the function: some branch leads there */
    bool is_set, in_rows, gone;
    int64_t height; /* bytes from SP up to the frame pointer, while it is set */
};

static bool told_by(const struct verify *verify, uint32_t number, uint8_t reg)
{
    if (number >= ROW_UNREAD)
        return false;
    const struct row *row = row_get(verify->rows, number);
    return !row->cfa_is_expression &&
           row->cfa_register == verify->target->dwarf_of_register(reg);
}

/* The offset in the function that the instruction leads to, or takes the address of. */
static uint32_t leads_to(const struct reading *reading, const struct view *view)
{
    const struct walk *walk = reading->walk;
    struct spot to = view->at;
    if (view->insn.flow == FLOW_CALL || !(view->insn.traits & INSN_PC_RELATIVE))
        return NO_INDEX;
    to.offset = view->insn.target;
    if (view->reloc_count > 0 &&
        (!view_target(walk->verify, &walk->verify->before, view, &to) ||
         to.object != view->at.object || to.section != view->at.section))
        return NO_INDEX;
    return to.offset - walk->function_start;
}

static bool find_labels(struct reading *reading)
{
    struct walk *walk = reading->walk;
    struct view view;
    struct spot at = reading->at;
    for (at.offset = walk->function_start; at.offset < walk->function_end;
         at.offset += view.insn.length) {
        if (!view_at(walk->verify, &walk->verify->before, at, &view))
            return false;
        uint32_t to = leads_to(reading, &view);
        if (to < reading->size)
            reading->led_to[to] = true;
    }
    return true;
}

/* The function has a cold part, which jumps back into it. */
static bool is_led_to_by_cold_part(const struct reading *reading)
{
    const struct verify *verify = reading->walk->verify;
    struct stretch_of_code part;
    struct view view;
    if (!verify_other_part(verify, reading->at, &part))
        return false;
    for (struct spot at = part.start; at.offset < part.end;
         at.offset += view.insn.length) {
        struct spot to;
        if (!view_at(verify, &verify->before, at, &view))
            return true;
        if (view.insn.flow != FLOW_CALL &&
            view_target(verify, &verify->before, &view, &to) &&
            to.object == reading->at.object && to.section == reading->at.section &&
            to.offset - reading->walk->function_start < reading->size)
            return true;
    }
    return false;
}

/* A call that may move SP or the frame pointer. */
static bool moves_frame(const struct walk *walk, const struct view *view)
{
    static const char names[] = "OUTLINED_FUNCTION_";
    const struct object *object = walk->verify->before.objects->items[view->at.object];
    for (uint32_t i = 0; i < view->reloc_count; i++) {
        const char *name = object->symbols[view->relocs[i].symbol].name;
        if (strncmp(name, names, sizeof names - 1) == 0)
            return true;
    }
    return false;
}

/* Before the rows: is SP + height in the frame pointer? */
static void look_before(struct reading *reading, const struct insn *insn)
{
    const struct target *target = reading->walk->verify->target;
    bool frame = has_register(insn->defs, target->frame_register);
    if (insn->flow != FLOW_NEXT || has_register(insn->defs, target->stack_register))
        reading->is_set = false;
    else if (frame)
        reading->is_set =
            (insn->traits & INSN_SP_COPY) && (insn->traits & INSN_FRAME_SET);
    if (reading->is_set && frame)
        reading->height = insn->sp_value;
}

/* In the rows: does it stay there? */
static bool look_inside(struct reading *reading, const struct view *view)
{
    const struct target *target = reading->walk->verify->target;
    const struct insn *insn = &view->insn;
    bool frame = has_register(insn->defs, target->frame_register);
    bool stack = has_register(insn->defs, target->stack_register);
    if ((stack && !frame && !reading->gone) || (insn->traits & INSN_FRAME_SET) ||
        moves_frame(reading->walk, view))
        return false;
    reading->gone |= frame;
    if (insn->flow != FLOW_NEXT && insn->flow != FLOW_BRANCH &&
        insn->flow != FLOW_CALL && insn->flow != FLOW_CALL_INDIRECT)
        reading->gone = false;
    return true;
}

static bool look_at(struct reading *reading, const struct view *view)
{
    struct verify *verify = reading->walk->verify;
    uint32_t row = row_of_spot(&verify->before, view->at, NULL);
    bool in_rows = told_by(verify, row, verify->target->frame_register);
    if (reading->led_to[view->at.offset - reading->walk->function_start]) {
        reading->gone = false;
        reading->is_set = reading->is_set && reading->in_rows;
    }
    if (in_rows && !reading->in_rows && !reading->is_set)
        return false;
    if (in_rows != reading->in_rows)
        reading->gone = false;
    reading->in_rows = in_rows;
    if (in_rows)
        return look_inside(reading, view);
    look_before(reading, &view->insn);
    return true;
}

/* One stretch of such rows, in a function. */
static bool read_function(struct walk *walk)
{
    struct verify *verify = walk->verify;
    struct reading reading = {.walk = walk,
                              .at = walk->before,
                              .size = walk->function_end - walk->function_start};
    reading.led_to = arena_new_array(verify->arena, bool, reading.size + 1);
    reading.at.offset = walk->function_start;
    bool seen = false;
    if (is_led_to_by_cold_part(&reading) || !find_labels(&reading))
        return false;
    struct view view;
    for (; reading.at.offset < walk->function_end;
         reading.at.offset += view.insn.length) {
        bool inside = reading.in_rows;
        if (!view_at(verify, &verify->before, reading.at, &view) ||
            !look_at(&reading, &view) || (seen && reading.in_rows && !inside))
            return false;
        seen |= reading.in_rows;
    }
    walk->height = reading.height;
    return seen;
}

uint32_t walk_row_told(struct walk *walk, uint32_t before, uint32_t after)
{
    struct verify *verify = walk->verify;
    const struct target *target = verify->target;
    if (before == after || target->call_pushes != 0 ||
        !told_by(verify, before, target->frame_register) ||
        !told_by(verify, after, target->stack_register))
        return before;
    if (!walk->is_told_known)
        walk->is_told_by_stack = read_function(walk);
    walk->is_told_known = true;
    if (!walk->is_told_by_stack)
        return before;
    struct row row = *row_get(verify->rows, before);
    row.cfa_register = target->dwarf_stack_column;
    row.cfa_offset += walk->height;
    return row_intern(verify->rows, &row);
}
