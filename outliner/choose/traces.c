/* SPDX-License-Identifier: MIT
 *
 * What the round before has left behind, as far as the objects tell: calls and jumps to
 * helpers whose names are new; and those that go into functions, to hosts and ends of
 * helpers, which have no names and may be older.
 */
#include "outliner/choose/traces.h"

#include <string.h>

static bool is_helper_name(const char *name)
{
    return strncmp(name, HELPER_PREFIX, strlen(HELPER_PREFIX)) == 0;
}

void helpers_note(struct table *names, const struct objects *objects)
{
    for (uint32_t o = 0; o < objects->count; o++) {
        const struct object *object = objects->items[o];
        for (uint32_t s = 1; s < object->symbol_count; s++) {
            const struct symbol *symbol = &object->symbols[s];
            if (symbol->section != SECTION_UNDEFINED && is_helper_name(symbol->name)) {
                table_intern_string(names, symbol->name);
            }
        }
    }
}

/* By object and symbol. */
static bool **find_new_names(struct arena *arena, const struct objects *objects,
                             const struct table *old)
{
    bool **is_new = arena_new_array(arena, bool *, objects->count);
    for (uint32_t o = 0; o < objects->count; o++) {
        const struct object *object = objects->items[o];
        is_new[o] = arena_new_array(arena, bool, object->symbol_count);
        for (uint32_t s = 1; s < object->symbol_count; s++) {
            const char *name = object->symbols[s].name;
            is_new[o][s] =
                is_helper_name(name) && table_find_string(old, name) == NO_INDEX;
        }
    }
    return is_new;
}

struct traces traces_find(struct arena *arena, const struct program *program,
                          const struct table *old)
{
    uint8_t **entered = arena_new_array(arena, uint8_t *, program->code_count);
    for (uint32_t c = 0; c < program->code_count; c++) {
        entered[c] = arena_alloc(arena, program_section(program, c)->data.size / 8 + 1);
    }
    return (struct traces){program, find_new_names(arena, program->objects, old),
                           entered};
}

bool trace_is_helper(const struct traces *traces, uint32_t number)
{
    const struct program *program = traces->program;
    const struct function *function = &program->functions[number];
    const struct code *code = &program->code[function->code];
    return code->helpers && function->symbol != NO_INDEX &&
           traces->is_new[code->object][function->symbol];
}

void traces_enter(const struct traces *traces, uint32_t number)
{
    const struct insn *insn = &traces->program->insns[number];
    uint32_t code = traces->program->functions[insn->function].code;
    bit_set(traces->entered[code], insn->offset);
}

/* Some relocation of the instruction does. */
static bool names_new_helper(const struct traces *traces, uint32_t object,
                             const struct section *section, const struct insn *insn)
{
    uint64_t end = (uint64_t)insn->offset + insn->length;
    for (uint32_t r = insn->reloc;
         r < section->reloc_count && section->relocs[r].offset < end; r++) {
        if (traces->is_new[object][section->relocs[r].symbol]) {
            return true;
        }
    }
    return false;
}

static bool is_entered(const struct traces *traces, const struct function *from,
                       uint32_t code, int64_t offset)
{
    bool outside =
        code != from->code || offset < from->start || offset >= from->end;
    return outside && offset >= 0 &&
           (uint64_t)offset < program_section(traces->program, code)->data.size &&
           bit_get(traces->entered[code], (uint32_t)offset);
}

bool trace_is_site(const struct traces *traces, uint32_t number)
{
    const struct program *program = traces->program;
    const struct insn *insn = &program->insns[number];
    const struct function *function = &program->functions[insn->function];
    if ((insn->traits & INSN_RELOCATED) == 0) {
        return insn->target != NO_INDEX &&
               is_entered(traces, function, function->code, insn->target);
    }
    uint32_t object = program->code[function->code].object;
    const struct section *section = program_section(program, function->code);
    if (names_new_helper(traces, object, section, insn)) {
        return true;
    }
    const struct reloc *reloc = &section->relocs[insn->reloc];
    struct referent to = program_referent(
        program->objects->items[object], reloc, program->target->reloc_bias(insn, reloc->offset));
    uint32_t code = to.local ? program_code_of(program, object, to.section) : NO_INDEX;
    return code != NO_INDEX && is_entered(traces, function, code, to.offset);
}
