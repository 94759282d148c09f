/* SPDX-License-Identifier: MIT
 *
 * Registers in which a function hands out more than the ABI knows of. Assembly does that
 * (the field arithmetic of elliptic curves returns its numbers in x14 to x17), and GNU C
 * with a variable that lives in a register. Nothing in the function itself tells: the
 * register is written, perhaps used, and there it is. What tells is
 *
 *   a value that nobody in the function uses: compilers do not make such;
 *   a caller that counts on the register behind its call.
 *
 * Of a caller that nobody has looked at everything may be wanted. And what a function
 * hands out may come from a function that it calls, or ends in.
 */
#include "outliner/lift/effects.h"

void results_note(struct results *results, uint32_t number, uint64_t live)
{
    struct program *program = results->program;
    const uint64_t scratch = program->target->scratch_registers;
    const struct insn *insn = &program->insns[number];
    if (insn->flow == FLOW_NEXT) {
        program->functions[insn->function].results |= insn->defs & ~live & scratch;
    } else if (insn->flow == FLOW_CALL && (live & scratch) != 0) {
        uint32_t callee = insn_callee(program, number);
        struct result result = {callee, live & scratch};
        if (callee != NO_INDEX)
            array_push(results->arena, &results->found, result);
    }
}

void results_note_unknown(struct results *results, uint32_t function)
{
    const struct function *of = &results->program->functions[function];
    for (uint32_t i = 0; i < of->insn_count; i++) {
        const struct insn *insn = &results->program->insns[of->first_insn + i];
        if (insn->flow == FLOW_CALL)
            results_note(results, of->first_insn + i, UINT64_MAX);
    }
}

struct closure {
    struct arena *stage;
    struct program *program;
    array_of(uint32_t) work; /* functions whose callees are to be told */
};

static void add(struct closure *closure, uint32_t function, uint64_t regs)
{
    struct function *of = &closure->program->functions[function];
    if ((regs & ~of->results) == 0)
        return;
    of->results |= regs;
    array_push(closure->stage, &closure->work, function);
}

static void tell_callees(struct closure *closure, uint32_t function)
{
    const struct program *program = closure->program;
    const struct function *of = &program->functions[function];
    for (uint32_t i = of->first_insn; i < of->first_insn + of->insn_count; i++) {
        const struct insn *insn = &program->insns[i];
        if (insn->flow != FLOW_CALL && insn->flow != FLOW_JUMP)
            continue;
        uint32_t callee = insn_callee(program, i);
        if (callee != NO_INDEX && callee != function)
            add(closure, callee, of->results);
    }
}

void results_spread(struct arena *stage, struct program *program,
                    const struct results *results, uint32_t count)
{
    struct closure closure = {.stage = stage, .program = program};
    for (uint32_t f = 0; f < program->function_count; f++) {
        if (program->functions[f].results != 0)
            array_push(stage, &closure.work, f);
    }
    for (uint32_t r = 0; r < count; r++) {
        for (uint32_t i = 0; i < results[r].found.count; i++)
            add(&closure, results[r].found.items[i].function,
                results[r].found.items[i].regs);
    }
    while (closure.work.count)
        tell_callees(&closure, closure.work.items[--closure.work.count]);
}
