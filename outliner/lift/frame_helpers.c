/* SPDX-License-Identifier: MIT
 *
 * Homogeneous prologues and epilogues (LLVM, AArch64): helpers that save registers and
 * restore them for many functions,
 *
 *     stp x29, x30, [sp, #-32]!           bl  OUTLINED_FUNCTION_EPILOG_x19x20x30x29
 *     bl  OUTLINED_FUNCTION_PROLOG_…      b   callee
 *
 * or at the end b OUTLINED_FUNCTION_EPILOG_TAIL_…, which returns. They move SP and set
 * the frame register for their callers, so a call to one is no call as others are. Each
 * unit has a weak copy of those that it needs; the name says all of what it does, so each
 * copy is as good as another.
 */
#include "outliner/lift/lift.h"

#include <string.h>

bool name_moves_frame(const char *name)
{
    static const char prologue[] = "OUTLINED_FUNCTION_PROLOG";
    static const char epilogue[] = "OUTLINED_FUNCTION_EPILOG";
    return strncmp(name, prologue, sizeof prologue - 1) == 0 ||
           strncmp(name, epilogue, sizeof epilogue - 1) == 0;
}

bool insn_moves_frame(const struct program *program, uint32_t number, uint32_t *body)
{
    const struct insn *insn = &program->insns[number];
    uint32_t code = program->functions[insn->function].code, first;
    *body = NO_INDEX;
    if ((insn->flow != FLOW_CALL && insn->flow != FLOW_JUMP) ||
        program_relocs(program, number, &first) == 0)
        return false;
    const struct object *object = program_object(program, code);
    const struct reloc *reloc = &program_section(program, code)->relocs[first];
    const struct symbol *symbol = &object->symbols[reloc->symbol];
    if (reloc->symbol == 0 || !name_moves_frame(symbol->name))
        return false;
    uint32_t in = symbol->section == SECTION_UNDEFINED || reloc->addend != 0
                      ? NO_INDEX
                      : program_code_of(program, program->code[code].object,
                                        symbol->section);
    if (in != NO_INDEX)
        *body = program_insn_at(program, in, (uint32_t)symbol->value);
    return true;
}
