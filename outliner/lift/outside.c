/* SPDX-License-Identifier: MIT
 *
 * References from one object to the middle of a function of another: "symbol + 8". In
 * one object these are references like all others; where the output is several, the
 * addend stays as it is, so such a function is sealed. (In gcc's and Clang's output
 * there are none.)
 */
#include "mo/table.h"
#include "outliner/lift/lift.h"

#include <elf.h>

struct wanted {
    uint32_t name;   /* number in the table */
    uint32_t object; /* that refers */
    int64_t addend;
};

struct outside {
    struct lift *lift;
    struct arena *stage;
    struct table *names;
    array_of(struct wanted) wanted;
};

/* What is added to the symbol, bias included. Fields of code that is not decoded, and whose
 * bias is not known therefore, nearly all mean the symbol itself. */
static int64_t meant_addend(const struct program *program, uint32_t code,
                            const struct reloc *reloc)
{
    bool biased = code != NO_INDEX && program->target->code_align == 1;
    const struct reloc_kind *kind = program->target->reloc_kind(reloc->type);
    if (biased && reloc->addend == -4 && kind && kind->kind == RELOC_CALL)
        return 0; /* most of them */
    uint32_t insn = program_insn_of_reloc(program, code, reloc);
    if (biased && reloc->addend == -4 && insn == NO_INDEX)
        return 0;
    return wrapping_add(reloc->addend, insn_reloc_bias(program, insn, reloc));
}

static void collect(struct outside *outside, uint32_t number, uint32_t index)
{
    const struct program *program = outside->lift->program;
    const struct object *object = program->objects->items[number];
    const struct section *section = &object->sections[index];
    uint32_t code =
        section_is_code(section) ? program_code_of(program, number, index) : NO_INDEX;
    for (uint32_t r = 0; r < section->reloc_count; r++) {
        const struct reloc *reloc = &section->relocs[r];
        const struct symbol *symbol = &object->symbols[reloc->symbol];
        if (reloc->symbol == 0 || symbol_is_local(symbol))
            continue;
        int64_t addend = meant_addend(program, code, reloc);
        if (addend == 0)
            continue;
        struct wanted wanted = {table_intern_string(outside->names, symbol->name),
                                number, addend};
        array_push(outside->stage, &outside->wanted, wanted);
    }
}

static void seal_wanted(struct outside *outside, uint32_t number,
                        const struct symbol *symbol)
{
    const struct program *program = outside->lift->program;
    uint32_t name = table_find_string(outside->names, symbol->name);
    uint32_t code = program_code_of(program, number, symbol->section);
    for (uint32_t i = 0; name != NO_INDEX && i < outside->wanted.count; i++) {
        const struct wanted *wanted = &outside->wanted.items[i];
        int64_t position = wrapping_add((int64_t)symbol->value, wanted->addend);
        if (wanted->name != name || wanted->object == number)
            continue;
        uint32_t function =
            position < 0 || position >= (int64_t)NO_INDEX
                ? NO_INDEX
                : program_function_at(program, code, (uint32_t)position);
        bool own = function != NO_INDEX &&
                   program->functions[function].start == (uint32_t)symbol->value;
        if (own)
            lift_seal(outside->lift, function, REFUSAL_LABEL_TAKEN, (uint64_t)position);
        else
            lift_freeze(outside->lift, code, REFUSAL_REFERENCE_INTO_SECTION,
                        symbol->value);
    }
}

void lift_outside(struct lift *lift)
{
    const struct program *program = lift->program;
    if (program->objects->count < 2)
        return;
    struct arena *stage = arena_new();
    struct outside outside = {.lift = lift, .stage = stage, .names = table_new(stage)};
    for (uint32_t o = 0; o < program->objects->count; o++) {
        const struct object *object = program->objects->items[o];
        for (uint32_t s = 1; s < object->section_count; s++) {
            if (object->sections[s].flags & SHF_ALLOC)
                collect(&outside, o, s);
        }
    }
    for (uint32_t o = 0; o < program->objects->count; o++) {
        const struct object *object = program->objects->items[o];
        for (uint32_t s = 1; s < object->symbol_count && outside.wanted.count; s++) {
            const struct symbol *symbol = &object->symbols[s];
            if (!symbol_is_local(symbol) && symbol->section < object->section_count &&
                program_code_of(program, o, symbol->section) != NO_INDEX)
                seal_wanted(&outside, o, symbol);
        }
    }
    arena_free(stage);
}
