/* SPDX-License-Identifier: MIT
 *
 * Functions with an inner label whose address is taken, nobody knows what for, where no
 * mapping symbols tell code from data (x86-64): the label may be a table or a string
 * that decodes by chance. If control gets from what is known to be entered to every
 * instruction of the function, there is no room for data. Otherwise it becomes opaque.
 */
#include "outliner/lift/lift.h"

struct cover {
    struct lift *lift;
    const struct function *function;
    bool *seen;
    array_of(uint32_t) work;
};

static void reach(struct cover *cover, uint32_t insn)
{
    const struct function *function = cover->function;
    if (insn == NO_INDEX || insn < function->first_insn ||
        insn - function->first_insn >= function->insn_count ||
        cover->seen[insn - function->first_insn])
        return;
    cover->seen[insn - function->first_insn] = true;
    array_push(cover->lift->arena, &cover->work, insn);
}

static void reach_next(struct cover *cover, uint32_t number)
{
    const struct program *program = cover->lift->program;
    const struct insn *insn = &program->insns[number];
    bool jump = insn->flow == FLOW_JUMP || insn->flow == FLOW_BRANCH;
    if (jump && insn->target >= cover->function->start &&
        insn->target < cover->function->end)
        reach(cover, program_insn_in(program, insn->function, insn->target));
    if (insn->flow == FLOW_NEXT || insn->flow == FLOW_BRANCH ||
        insn->flow == FLOW_CALL || insn->flow == FLOW_CALL_INDIRECT)
        reach(cover, number + 1);
    reach(cover, insn_landing(program, cover->function, number));
    const struct jump_table *table =
        insn->flow == FLOW_JUMP_INDIRECT ? table_of_insn(program, number) : NULL;
    for (uint32_t i = 0; table && i < table->count; i++)
        reach(cover, table_insn(program, table, i));
}

static bool is_covered(struct lift *lift, struct arena *stage, uint32_t number)
{
    const struct program *program = lift->program;
    const struct function *function = &program->functions[number];
    struct cover cover = {
        lift, function, arena_new_array(stage, bool, function->insn_count), {0}};
    reach(&cover, function->first_insn);
    for (uint32_t i = 0; i < function->insn_count; i++) {
        if (program->insns[function->first_insn + i].traits &
            (INSN_JOINED | INSN_ENTERED))
            reach(&cover, function->first_insn + i);
    }
    while (cover.work.count)
        reach_next(&cover, cover.work.items[--cover.work.count]);
    for (uint32_t i = 0; i < function->insn_count; i++) {
        if (!cover.seen[i] &&
            !(program->insns[function->first_insn + i].traits & INSN_NOP))
            return false;
    }
    return true;
}

void lift_covered(struct lift *lift)
{
    struct program *program = lift->program;
    struct arena *stage = arena_new();
    for (uint32_t i = 0; i < lift->suspects.count && !program->target->code_mark; i++) {
        uint32_t number = lift->suspects.items[i];
        if (!program->functions[number].opaque && !is_covered(lift, stage, number))
            lift_make_opaque(lift, number, REFUSAL_DATA_IN_CODE,
                             program->functions[number].start);
    }
    arena_free(stage);
}
