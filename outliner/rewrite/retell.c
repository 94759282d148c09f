/* SPDX-License-Identifier: MIT
 *
 * Rows that are told by SP. Compilers for AArch64 that set up a frame pointer tell the
 * CFA by it (DW_CFA_def_cfa: three bytes), although few functions move SP between
 * prologue and epilogue. In those SP tells it as well, and as a call has left SP where
 * the function keeps it from the start, that is one byte less (DW_CFA_def_cfa_offset),
 * often one more where the row of the entry comes back, and true as soon as SP has moved.
 *
 * Both say the same where two things hold: the frame pointer is set to SP + height in a
 * straight line that ends where the rows begin; and from there on SP is written nowhere
 * but where the frame pointer is not the function's own any more (on the way out, where
 * rows that describe calls only are stale in either form). Nobody else may enter that
 * stretch: neither a jump from another function, nor one through data.
 */
#include "outliner/rewrite/rewrite.h"

#include <string.h>

/* Up to here the operand has one byte, as a multiple of -4. */
enum { MOST_SHORT = 256 };

struct retelling {
    const struct program *program;
    const struct fde *fde;
    uint32_t first, end; /* changes [first, end): the rows told by the frame pointer */
    int64_t height;      /* bytes from SP up to the frame pointer in them */
};

static bool writes(const struct insn *insn, uint8_t reg)
{
    return (insn->defs >> reg & 1) != 0;
}

static bool is_told_by_frame(const struct program *program, uint32_t number)
{
    if (number == ROW_NONE)
        return false;
    const struct row *row = row_get(program->rows, number);
    const struct target *target = program->target;
    return !row->cfa_is_expression &&
           row->cfa_register == target->dwarf_of_register(target->frame_register);
}

/* The one stretch of such rows. */
static bool find_rows(struct retelling *retelling)
{
    const struct fde *fde = retelling->fde;
    uint32_t i = 0;
    while (i < fde->change_count &&
           !is_told_by_frame(retelling->program, fde->changes[i].row))
        i++;
    retelling->first = i;
    while (i < fde->change_count &&
           is_told_by_frame(retelling->program, fde->changes[i].row))
        i++;
    retelling->end = i;
    for (; i < fde->change_count; i++) {
        if (is_told_by_frame(retelling->program, fde->changes[i].row))
            return false;
    }
    return retelling->first < retelling->end;
}

/* In a straight line before `insn` the frame pointer has been set, and SP stayed. */
static bool find_height(struct retelling *retelling, const struct function *function,
                        uint32_t insn)
{
    const struct program *program = retelling->program;
    const struct target *target = program->target;
    for (uint32_t i = insn; i > function->first_insn; i--) {
        const struct insn *before = &program->insns[i - 1];
        if ((program->insns[i].traits & INSN_LEADER) || before->flow != FLOW_NEXT ||
            writes(before, target->stack_register))
            return false;
        if (writes(before, target->frame_register)) {
            retelling->height = before->sp_value;
            return (before->traits & INSN_FRAME_SET) && (before->traits & INSN_SP_COPY);
        }
    }
    return false;
}

static bool ends_line(uint8_t flow)
{
    return flow == FLOW_RETURN || flow == FLOW_JUMP || flow == FLOW_JUMP_INDIRECT ||
           flow == FLOW_STOP;
}

/* It refers to a helper of LLVM's outliner, or of its homogeneous prologues and epilogues,
 * which may move SP or the frame pointer for its caller. */
static bool goes_to_llvm(const struct program *program, uint32_t code, uint32_t insn)
{
    static const char prefix[] = "OUTLINED_FUNCTION_";
    const struct object *object = program_object(program, code);
    uint32_t first = 0, count = program_relocs(program, insn, &first);
    for (uint32_t i = first; i < first + count; i++) {
        uint32_t symbol = program_section(program, code)->relocs[i].symbol;
        if (strncmp(object->symbols[symbol].name, prefix, sizeof prefix - 1) == 0)
            return true;
    }
    return false;
}

/* SP stays as it is in instructions [insn, end), while the frame pointer does. */
static bool stack_stays(const struct program *program, uint32_t code, uint32_t insn,
                        uint32_t end)
{
    const struct target *target = program->target;
    bool gone = false;
    for (uint32_t i = insn; i < end; i++) {
        const struct insn *at = &program->insns[i];
        bool frame = writes(at, target->frame_register);
        if ((at->traits & (INSN_ENTERED | INSN_JOINED | INSN_FRAME_SET)) ||
            goes_to_llvm(program, code, i))
            return false;
        if (at->traits & INSN_LEADER)
            gone = false;
        if (writes(at, target->stack_register) && !frame && !gone)
            return false;
        gone = (gone || frame) && !ends_line(at->flow);
    }
    return true;
}

static uint32_t told_by_stack(const struct retelling *retelling, uint32_t number)
{
    const struct program *program = retelling->program;
    struct row row = *row_get(program->rows, number);
    int64_t offset = row.cfa_offset + retelling->height;
    if (offset <= 0 || offset > MOST_SHORT || offset % ROW_FACTOR != 0)
        return number;
    row.cfa_register = program->target->dwarf_stack_column;
    row.cfa_offset = offset;
    return row_intern(program->rows, &row);
}

static bool can_retell(struct retelling *retelling, const struct function *function)
{
    const struct program *program = retelling->program;
    const struct fde *fde = retelling->fde;
    if (program->target->call_pushes != 0 || function->shared ||
        function->refusal != REFUSAL_NONE || fde->start != function->start ||
        fde->start + fde->length != function->end || !find_rows(retelling))
        return false;
    uint32_t number = program_function_of_insn(program, function->first_insn);
    uint32_t first = program_insn_in(program, number,
                                     fde->changes[retelling->first].offset);
    uint32_t end = function->first_insn + function->insn_count;
    if (retelling->end < fde->change_count)
        end = program_insn_in(program, number, fde->changes[retelling->end].offset);
    return first != NO_INDEX && end != NO_INDEX &&
           find_height(retelling, function, first) && stack_stays(program, function->code, first, end);
}

bool rows_retold(struct arena *arena, const struct program *program, uint32_t code,
                 const struct fde *fde, struct fde *out)
{
    struct retelling retelling = {.program = program, .fde = fde};
    uint32_t number = program_function_at(program, code, fde->start);
    if (number == NO_INDEX || program->functions[number].insn_count == 0 ||
        !can_retell(&retelling, &program->functions[number]))
        return false;
    struct row_change *changes =
        arena_copy(arena, fde->changes, fde->change_count * sizeof *changes);
    for (uint32_t i = retelling.first; i < retelling.end; i++)
        changes[i].row = told_by_stack(&retelling, changes[i].row);
    *out = *fde;
    out->changes = changes;
    return true;
}
