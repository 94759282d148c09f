/* SPDX-License-Identifier: MIT
 *
 * Where direct calls and jumps go, and whether what is there keeps the ABI's conventions
 * or some of its own.
 */
#include "outliner/lift/effects.h"

#include <string.h>

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* LLVM's outliner makes functions with conventions of their own, and so do we; the cold
 * part of a function continues it. */
bool name_is_private(const char *name)
{
    if (starts_with(name, "OUTLINED_FUNCTION_"))
        return true;
    const char *dot = strchr(name, '.'); /* most names have none */
    return dot && (starts_with(name, HELPER_PREFIX) || strstr(dot, ".cold") ||
                   strstr(dot, ".__part."));
}

bool function_is_private(const struct program *program, uint32_t function)
{
    return program->code[program->functions[function].code].helpers ||
           name_is_private(program_function_name(program, function));
}

static enum callee callee_at(const struct program *program, uint32_t code,
                             int64_t position, uint32_t *function_out)
{
    uint32_t number = code == NO_INDEX || position < 0 || position > UINT32_MAX
                          ? NO_INDEX
                          : program_function_at(program, code, (uint32_t)position);
    if (number == NO_INDEX)
        return CALLEE_PRIVATE;
    const struct function *function = &program->functions[number];
    if (function->start == (uint32_t)position)
        *function_out = number;
    bool entry = function->start == (uint32_t)position && function->symbol != NO_INDEX;
    if (!entry || function_is_private(program, number))
        return CALLEE_PRIVATE;
    return CALLEE_LOCAL;
}

enum callee lift_callee_of(const struct program *program, uint32_t number,
                           uint32_t *function)
{
    *function = NO_INDEX;
    const struct insn *insn = &program->insns[number];
    uint32_t code = program->functions[program_function_of_insn(program, number)].code;
    uint32_t first;
    if (program_relocs(program, number, &first) == 0)
        return callee_at(program, code,
                         insn->target == NO_INDEX ? -1 : (int64_t)insn->target,
                         function);
    const struct object *object = program_object(program, code);
    const struct reloc *reloc = &program_section(program, code)->relocs[first];
    uint8_t bias = program->target->reloc_bias(insn, reloc->offset);
    struct referent to = program_referent(object, reloc, bias);
    if (to.local)
        return callee_at(
            program, program_code_of(program, program->code[code].object, to.section),
            to.offset, function);
    bool plain = to.addend == 0 && !name_is_private(object->symbols[to.symbol].name);
    return plain ? CALLEE_PUBLIC : CALLEE_PRIVATE;
}

uint32_t insn_destination(const struct program *program, uint32_t number)
{
    const struct insn *insn = &program->insns[number];
    uint32_t code = program->functions[insn->function].code, first;
    if (insn->flow != FLOW_JUMP && insn->flow != FLOW_CALL)
        return NO_INDEX;
    if (program_relocs(program, number, &first) == 0)
        return insn->target == NO_INDEX ? NO_INDEX
                                        : program_insn_at(program, code, insn->target);
    const struct object *object = program_object(program, code);
    const struct reloc *reloc = &program_section(program, code)->relocs[first];
    struct referent to = program_referent(
        object, reloc, program->target->reloc_bias(insn, reloc->offset));
    uint32_t there =
        to.local ? program_code_of(program, program->code[code].object, to.section)
                 : NO_INDEX;
    return there == NO_INDEX || to.offset < 0 || to.offset >= NO_INDEX
               ? NO_INDEX
               : program_insn_at(program, there, (uint32_t)to.offset);
}

uint32_t insn_callee(const struct program *program, uint32_t insn)
{
    uint32_t function;
    lift_callee_of(program, insn, &function);
    return function;
}

/* A jump out of the function is a tail call when it goes to a function's entry. What
 * the callee reads is not trusted beyond that: only the veneer's registers are free. */
bool insn_is_tail_call(const struct program *program, uint32_t number)
{
    const struct insn *insn = &program->insns[number];
    if (insn->flow == FLOW_JUMP_INDIRECT)
        return !table_of_insn(program, number); /* anything else sealed the function */
    uint32_t function;
    return insn->flow == FLOW_JUMP &&
           lift_callee_of(program, number, &function) != CALLEE_PRIVATE;
}
