/* SPDX-License-Identifier: MIT
 *
 * What an earlier round has changed. A repeat that holds nothing new was there in that
 * round, too: it was taken then, or it did not pay. And repeats do not cross blocks. So
 * a later round only looks at blocks that have become other blocks: the helpers, and
 * whatever now goes to one of them, or into the middle of another function, where a
 * tail has stayed in place.
 *
 * The objects alone tell. A block that an earlier *run* changed is taken for new, which
 * costs time; nobody relies on the opposite.
 */
#include "outliner/choose/choose.h"

#include <string.h>

/* Somewhere in the object, at another place than the start of a function of its own. */
static bool goes_to_ours(const struct program *program, uint32_t destination)
{
    uint32_t number = program->insns[destination].function;
    const struct function *function = &program->functions[number];
    return destination != function->first_insn ||
           program->code[function->code].helpers;
}

static bool names_ours(const struct program *program, uint32_t code, uint32_t insn)
{
    uint32_t first;
    uint32_t count = program_relocs(program, insn, &first);
    const struct reloc *relocs = program_section(program, code)->relocs;
    const struct symbol *symbols = program_object(program, code)->symbols;
    for (uint32_t i = first; i < first + count; i++) {
        const char *name = symbols[relocs[i].symbol].name;
        if (strncmp(name, HELPER_PREFIX, strlen(HELPER_PREFIX)) == 0)
            return true;
    }
    return false;
}

static bool is_changed(const struct program *program, uint32_t code, uint32_t insn)
{
    const struct insn *at = &program->insns[insn];
    if (at->flow != FLOW_CALL && at->flow != FLOW_JUMP)
        return false;
    if ((at->traits & INSN_RELOCATED) != 0 && names_ours(program, code, insn))
        return true;
    uint32_t destination = insn_destination(program, insn);
    return destination != NO_INDEX &&
           program->insns[destination].function != at->function &&
           goes_to_ours(program, destination);
}

bool block_is_changed(const struct program *program, uint32_t code,
                      const struct block *block)
{
    if (program->code[code].helpers)
        return true;
    for (uint32_t i = 0; i < block->insn_count; i++) {
        if (is_changed(program, code, block->first_insn + i))
            return true;
    }
    return false;
}
