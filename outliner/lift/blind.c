/* SPDX-License-Identifier: MIT
 *
 * Functions that see nothing of their callers' frames. A call may be made from a frame
 * of a helper's when its callee takes no arguments from the stack, does not look at its
 * return address and does not return twice. Of that the code of the callee shows all
 * that matters: it touches neither the place of its return address nor what lies above
 * it. Where SP is at each instruction the unwind rows say; the instructions must agree
 * with them all along. Pointers into the frame are not followed, so there are none, and
 * nothing is addressed with an index: compilers fold a constant into the base, and then
 * the base of an array among the arguments may well lie in the callee's own frame.
 *
 * What belongs to a function is more than its own instructions: where it jumps to, its
 * .cold part or a tail of an earlier round or another function, that runs in its frame;
 * and helpers that it calls address its frame through SP. Whom it jumps to must be
 * known: that one finds the arguments on the stack that it has itself been given.
 */
#include "outliner/lift/inner_calls.h"

#include <elf.h>

/* Code that runs in the frame of the function in question, and how far its own CFA is
 * above that one's. */
struct part {
    uint32_t function;
    int64_t above;
};

enum { MOST_PARTS = 64 };

struct look {
    const struct program *program;
    const struct definitions *definitions;
    struct part parts[MOST_PARTS];
    uint32_t part_count;
    bool sets_frame;   /* some part makes the frame register a copy of SP … */
    bool looks_beyond; /* … and some part reads far above one that it did not make, or
                          above SP, although rows did not tell where that is (an earlier
                          round may have made them tell) */
};

/* --- rows --- */

bool row_walk_start(const struct program *program, uint32_t number,
                    struct row_walk *out)
{
    const struct function *function = &program->functions[number];
    uint32_t object = program->code[function->code].object;
    *out = (struct row_walk){0};
    if (function->fde == NO_INDEX)
        return false;
    out->fde = &program->frames[object].fdes[function->fde];
    out->change = fde_change_at(out->fde, function->start);
    return out->fde->refusal == REFUSAL_NONE && out->change != NO_INDEX;
}

const struct row *row_walk_to(const struct program *program, struct row_walk *walk,
                              uint32_t offset)
{
    const struct fde *fde = walk->fde;
    while (walk->change + 1 < fde->change_count &&
           fde->changes[walk->change + 1].offset <= offset)
        walk->change++;
    return row_get(program->rows, fde->changes[walk->change].row);
}

enum base row_base(const struct target *target, const struct row *row)
{
    if (row->cfa_is_expression)
        return BASE_NONE;
    if (row->cfa_register == target->dwarf_stack_column)
        return BASE_STACK;
    return row->cfa_register == target->dwarf_of_register(target->frame_register)
               ? BASE_FRAME
               : BASE_NONE;
}

/* Behind the instruction the CFA is as far from SP, or from the frame register, as it
 * has made it: rows that come late would hide where SP is. */
static bool rows_follow(const struct target *target, const struct insn *insn,
                        const struct row *now, const struct row *next)
{
    enum base from = row_base(target, now), to = row_base(target, next);
    bool moves = has_register(insn->defs, target->stack_register);
    int64_t change = insn->traits & INSN_SP_ADJUST ? insn->sp_value : 0;
    if (from == BASE_STACK && to == BASE_STACK)
        return (!moves || (insn->traits & INSN_SP_ADJUST) || insn->flow != FLOW_NEXT) &&
               next->cfa_offset == now->cfa_offset - change;
    if (from == BASE_FRAME && to == BASE_FRAME)
        return next->cfa_offset == now->cfa_offset;
    if (from == BASE_STACK && to == BASE_FRAME)
        return (insn->traits & INSN_FRAME_SET) &&
               next->cfa_offset == now->cfa_offset - insn->sp_value;
    /* `leave`, or the frame register popped: SP is where the call has left it. */
    return from == BASE_FRAME && to == BASE_STACK && moves &&
           next->cfa_offset == target->call_pushes;
}

/* --- one instruction --- */

static bool add_part(struct look *look, uint32_t function, int64_t above)
{
    for (uint32_t i = 0; i < look->part_count; i++) {
        if (look->parts[i].function == function && look->parts[i].above == above)
            return true;
    }
    if (function == NO_INDEX || look->part_count == MOST_PARTS)
        return false;
    look->parts[look->part_count++] = (struct part){function, above};
    return true;
}

/* The frame register of a frame that is made elsewhere lies at most where the return
 * address does. */
static void note_frame(struct look *look, const struct insn *insn, enum base base)
{
    const struct target *target = look->program->target;
    look->sets_frame |= (insn->traits & INSN_FRAME_SET) || base == BASE_FRAME;
    bool far = (insn->traits & INSN_FRAME_MEMORY) &&
               insn->sp_value >= (int64_t)target->call_pushes;
    bool high = (insn->traits & (INSN_SP_MEMORY | INSN_SP_COPY)) &&
                insn->sp_value >= (int64_t)target->call_pushes;
    bool foreign = base != BASE_FRAME && (far || insn_copies_frame(target, insn));
    look->looks_beyond |= high || foreign;
}

/* Addresses count from the CFA of the function in question. SP is never above the frame
 * register, so where only that tells the CFA what is said through SP lies lower still.
 */
static bool touches_above(const struct target *target, const struct insn *insn,
                          const struct row *row, int64_t above)
{
    bool through_stack = insn->traits & (INSN_SP_MEMORY | INSN_SP_COPY);
    bool through_frame =
        (insn->traits & INSN_FRAME_MEMORY) && row_base(target, row) == BASE_FRAME;
    bool raises = (insn->traits & INSN_SP_ADJUST) && insn->sp_value > 0;
    int64_t at = above - row->cfa_offset, limit = -(int64_t)target->call_pushes;
    int64_t end = insn->sp_value + access_reach(insn->uses | insn->defs);
    if (through_stack || through_frame)
        return at + end > limit;
    return raises && row_base(target, row) == BASE_STACK && at >= limit;
}

/* It may touch something above for all that its traits say: pushes of memory, pointers
 * made from the frame register, returns that pop arguments. */
static bool is_unclear(const struct look *look, const struct insn *insn, enum base base)
{
    const struct target *target = look->program->target;
    bool adjusts = insn->traits & INSN_SP_ADJUST;
    bool framed = (base == BASE_FRAME || look->sets_frame) &&
                  !(insn->traits & INSN_FRAME_SET) &&
                  has_register(insn->uses, target->frame_register);
    bool points = (insn->traits & INSN_SP_COPY) && !(insn->traits & INSN_FRAME_SET);
    if (points || (insn->traits & (INSN_SP_OPAQUE | INSN_INDEXED)))
        return true;
    if (insn->traits & INSN_PINNED)
        return adjusts || insn->flow == FLOW_RETURN;
    return framed &&
           ((adjusts && insn->sp_value < 0) || insn_copies_frame(target, insn));
}

/* SP is where it was on entry to the part. */
static bool is_home(const struct target *target, const struct row *row)
{
    return row_base(target, row) == BASE_STACK &&
           row->cfa_offset == target->call_pushes;
}

/* Entries of a jump table that lead to another section, to the .cold part. */
static bool follow_table(struct look *look, const struct jump_table *table,
                         int64_t above)
{
    for (uint32_t i = 0; table->codes && i < table->count; i++) {
        uint32_t function =
            program_function_at(look->program, table->codes[i], table->targets[i]);
        if (!add_part(look, function, above))
            return false;
    }
    return true;
}

/* A helper that has been called and ends in a jump, calls in the function's name. */
static bool follow_jump(struct look *look, uint32_t number, const struct row *row,
                        int64_t above)
{
    const struct program *program = look->program;
    struct destination to = destination_of(program, look->definitions, number);
    bool calls = above < 0 && is_home(program->target, row) && !to.is_private &&
                 !(program->insns[number].traits & INSN_FORBIDDEN);
    return calls || add_part(look, to.function, above);
}

/* A helper addresses the frame of its caller. Whoever is called as the ABI wants it
 * does not; hooks of profilers do, which are known by name, or called with a stack that
 * is not aligned. (So are functions of which the compiler knows that they do without.)
 */
static bool follow_call(struct look *look, uint32_t number, const struct row *row,
                        int64_t above)
{
    const struct program *program = look->program;
    const struct target *target = program->target;
    struct destination to = destination_of(program, look->definitions, number);
    bool by_stack = row_base(target, row) == BASE_STACK;
    int64_t depth = row->cfa_offset - above;
    uint32_t body;
    bool aligned =
        !by_stack || depth % (target->call_pushes + target->align_shift) == 0;
    if (!to.is_private && aligned)
        return !(program->insns[number].traits & INSN_FORBIDDEN);
    return by_stack && !insn_moves_frame(program, number, &body) &&
           add_part(look, to.function, above - row->cfa_offset);
}

/* Where else it leads, within the frame. */
static bool follow(struct look *look, uint32_t number, const struct row *row,
                   int64_t above)
{
    const struct program *program = look->program;
    const struct insn *insn = &program->insns[number];
    if (insn->flow == FLOW_CALL)
        return follow_call(look, number, row, above);
    if (insn_leaves(&program->functions[insn->function], insn))
        return follow_jump(look, number, row, above);
    if (insn->flow == FLOW_RETURN)
        return is_home(program->target, row);
    if (insn->flow != FLOW_JUMP_INDIRECT)
        return true;
    /* With the stack as on entry it may be a tail call. A helper's is a call. */
    if (is_home(program->target, row))
        return above < 0;
    const struct jump_table *table = table_of_insn(program, number);
    return table && follow_table(look, table, above);
}

/* --- functions --- */

static bool can_be_read(const struct program *program, const struct function *function)
{
    bool open = function->refusal == REFUSAL_NONE ||
                function->refusal == REFUSAL_KEEP || function->refusal == REFUSAL_HOT;
    const struct object *object = program_object(program, function->code);
    bool chosen = function->symbol != NO_INDEX &&
                  object->symbols[function->symbol].type == STT_GNU_IFUNC;
    return open && !chosen && function->symbol != NO_INDEX && !function->opaque &&
           function->insn_count > 0;
}

static bool part_is_blind(struct look *look, struct part part)
{
    const struct program *program = look->program;
    const struct function *function = &program->functions[part.function];
    struct row_walk walk;
    if (!can_be_read(program, function) ||
        !row_walk_start(program, part.function, &walk))
        return false;
    const struct row *row = row_walk_to(program, &walk, function->start);
    uint32_t end = function->first_insn + function->insn_count;
    const struct row *seen = NULL; /* with an instruction */
    for (uint32_t i = function->first_insn; i < end; i++) {
        const struct insn *insn = &program->insns[i];
        if (row == seen && i + 1 < end && insn_is_off_stack(program->target, insn) &&
            row_walk_to(program, &walk, insn[1].offset) == row)
            continue;
        seen = row;
        enum base base = row_base(program->target, row);
        note_frame(look, insn, base);
        if (base == BASE_NONE || is_unclear(look, insn, base) ||
            touches_above(program->target, insn, row, part.above) ||
            !follow(look, i, row, part.above))
            return false;
        if (i + 1 == end)
            return insn->flow != FLOW_NEXT && insn->flow != FLOW_BRANCH;
        const struct row *now = row;
        row = row_walk_to(program, &walk, insn[1].offset);
        /* Behind padding, or a call that never returns, there may be anything. */
        bool call = insn->flow == FLOW_CALL || insn->flow == FLOW_CALL_INDIRECT;
        bool ends =
            (insn[1].traits & INSN_LEADER) && (call || (insn->traits & INSN_NOP));
        bool goes_on =
            (insn->flow == FLOW_NEXT || insn->flow == FLOW_BRANCH || call) && !ends;
        if (goes_on && !rows_follow(program->target, insn, now, row))
            return false;
    }
    return false;
}

bool function_is_blind(const struct program *program,
                       const struct definitions *definitions, uint32_t function)
{
    struct look look = {.program = program, .definitions = definitions};
    add_part(&look, function, 0);
    for (uint32_t i = 0; i < look.part_count; i++) {
        if (!part_is_blind(&look, look.parts[i]))
            return false;
    }
    return !look.sets_frame || !look.looks_beyond;
}
