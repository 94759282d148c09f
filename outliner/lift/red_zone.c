/* SPDX-License-Identifier: MIT
 *
 * Bytes below SP that are in use where a function is entered in its middle. Ends of
 * functions are shared by jumps (ours, of earlier rounds: a site that stays in place is
 * jumped to by others; GCC's cold parts, too), and the code there runs on the stack of
 * whoever jumped. So what may be below SP in the one may be below SP in the other.
 */
#include "outliner/lift/lift.h"

/* The function that a jump enters in its middle, or NO_INDEX. */
static uint32_t entered_inside(const struct program *program, uint32_t number)
{
    const struct insn *insn = &program->insns[number];
    uint32_t code = program->functions[insn->function].code, first;
    int64_t offset = insn->target;
    if (insn->flow != FLOW_JUMP && insn->flow != FLOW_BRANCH)
        return NO_INDEX;
    if (program_relocs(program, number, &first) > 0) {
        const struct object *object = program_object(program, code);
        const struct reloc *reloc = &program_section(program, code)->relocs[first];
        const struct symbol *symbol = &object->symbols[reloc->symbol];
        /* A global one may be preempted, but need not be. */
        code = reloc->symbol != 0 && symbol->section < object->section_count
                   ? program_code_of(program, program->code[code].object,
                                     symbol->section)
                   : NO_INDEX;
        offset = (int64_t)symbol->value + reloc->addend +
                 program->target->reloc_bias(insn, reloc->offset);
    }
    if (code == NO_INDEX || offset < 0 || offset >= (int64_t)NO_INDEX)
        return NO_INDEX;
    uint32_t to = program_function_at(program, code, (uint32_t)offset);
    bool inside = to != NO_INDEX && to != insn->function &&
                  program->functions[to].start != (uint32_t)offset;
    return inside ? to : NO_INDEX;
}

/* Returns whether anything has changed. */
static bool spread(struct program *program, const struct function *function)
{
    bool changed = false;
    for (uint32_t i = 0; i < function->insn_count; i++) {
        uint32_t to = entered_inside(program, function->first_insn + i);
        if (to == NO_INDEX || program->functions[to].red_zone)
            continue;
        program->functions[to].red_zone = true;
        changed = true;
    }
    return changed;
}

void lift_red_zones(struct program *program)
{
    bool changed = program->target->call_pushes != 0;
    while (changed) {
        changed = false;
        for (uint32_t f = 0; f < program->function_count; f++) {
            /* Of sealed ones nobody has asked. */
            if (program->functions[f].red_zone ||
                program->functions[f].refusal != REFUSAL_NONE)
                changed |= spread(program, &program->functions[f]);
        }
    }
}
