/* SPDX-License-Identifier: MIT
 *
 * Call-site tables. They are read for all objects; a function has one when its unwind
 * entry covers exactly it and everything in the table can be found again in its code:
 * call sites begin and end at instructions, landing pads are instructions of the same
 * function. Compilers give a cold part an entry and a table of its own, so no landing
 * pad lies elsewhere.
 *
 * A landing pad is entered from all calls that it belongs to, so a basic block starts
 * there. What is live then: an unwinder restores what a callee has to preserve, and
 * puts the exception into registers that a call would overwrite. So an instruction that
 * may lead to a landing pad needs all callee-saved registers, and no others.
 *
 * Whoever traces values back through a function to find jump tables sees calls as ways
 * into their landing pads. Other instructions that trap are no such ways: functions
 * with those and a jump table are sealed.
 */
#include "outliner/lift/lift.h"

static bool is_call(const struct insn *insn)
{
    return insn->flow == FLOW_CALL || insn->flow == FLOW_CALL_INDIRECT;
}

/* The index of the instruction of the function that starts there, or NO_INDEX. */
static uint32_t insn_in(const struct program *program, const struct function *function,
                        uint32_t offset)
{
    if (offset < function->start || offset >= function->end)
        return NO_INDEX;
    return program_insn_at(program, function->code, offset);
}

/* A boundary: an instruction starts there, or the function ends. */
static bool is_boundary(const struct program *program, const struct function *function,
                        uint32_t offset)
{
    return offset == function->end || insn_in(program, function, offset) != NO_INDEX;
}

static bool fits_code(const struct program *program, const struct function *function,
                      const struct lsda *lsda)
{
    for (uint32_t i = 0; i < lsda->site_count; i++) {
        const struct call_site *site = &lsda->sites[i];
        if (!is_boundary(program, function, site->start) ||
            !is_boundary(program, function, site->end) ||
            (site->pad != NO_INDEX &&
             insn_in(program, function, site->pad) == NO_INDEX))
            return false;
    }
    return true;
}

static void give_table(struct program *program, uint32_t object,
                       const struct lsda *lsda)
{
    const struct fde *fde = &program->frames[object].fdes[lsda->fde];
    if (lsda->refusal != REFUSAL_NONE)
        return;
    uint32_t code = program_code_of(program, object, fde->code_section);
    uint32_t number =
        code == NO_INDEX ? NO_INDEX : program_function_at(program, code, fde->start);
    if (number == NO_INDEX)
        return;
    struct function *function = &program->functions[number];
    if (function->start != fde->start || function->end != fde->start + fde->length ||
        !fits_code(program, function, lsda))
        return;
    function->lsda = lsda;
    for (uint32_t i = 0; i < lsda->site_count; i++) {
        uint32_t pad = lsda->sites[i].pad;
        if (pad != NO_INDEX)
            program->insns[insn_in(program, function, pad)].traits |= INSN_LEADER;
    }
    for (uint32_t i = 0; i < function->insn_count; i++) {
        struct insn *insn = &program->insns[function->first_insn + i];
        if (insn_guard(function, insn) == GUARD_PAD)
            insn->traits |= INSN_LANDS;
    }
}

uint32_t insn_landing(const struct program *program, const struct function *function,
                      uint32_t insn)
{
    const struct insn *of = &program->insns[insn];
    if (!(of->traits & INSN_LANDS) || !is_call(of))
        return NO_INDEX;
    const struct call_site *site = insn_call_site(function, of);
    return site->pad == NO_INDEX ? NO_INDEX : insn_in(program, function, site->pad);
}

bool function_traps(const struct program *program, const struct function *function)
{
    uint32_t i = function->first_insn, end = i + function->insn_count;
    for (uint32_t s = 0; function->lsda && s < function->lsda->site_count; s++) {
        const struct call_site *site = &function->lsda->sites[s];
        bool calls = false, others = false;
        while (i < end && program->insns[i].offset < site->start)
            i++;
        for (; i < end && program->insns[i].offset < site->end; i++) {
            calls |= is_call(&program->insns[i]);
            others |= program->insns[i].flow != FLOW_JUMP; /* to a helper, perhaps */
        }
        if (others && !calls)
            return true;
    }
    return false;
}

void lift_landings(struct lift *lift)
{
    struct program *program = lift->program;
    uint32_t count = program->objects->count;
    struct lsdas *lsdas = arena_new_array(lift->arena, struct lsdas, count);
    program->lsdas = lift->options->lsdas ? lift->options->lsdas : lsdas;
    for (uint32_t o = 0; o < count; o++) {
        if (!lift->options->lsdas)
            lsdas_read(lift->arena, program->objects->items[o], &program->frames[o],
                       &lsdas[o]);
        for (uint32_t i = 0; i < program->lsdas[o].count; i++)
            give_table(program, o, &program->lsdas[o].items[i]);
    }
}
