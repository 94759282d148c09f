/* SPDX-License-Identifier: MIT
 *
 * Which function is run where a call or jump names one, whatever the objects are linked
 * with: one that its own object defines, by a name that no other definition can take.
 * Local names are such, and hidden and protected ones. So are global ones in objects
 * that can become part of an executable only, where the own definition comes first
 * (gABI, "Shared Object Dependencies"): there code takes addresses of global names
 * directly, which in a shared library another definition might have taken over.
 * Compilers take them so only where they, too, rely on that (-fno-pic, -fpie).
 *
 * Weak names, and those in COMDAT groups, may mean the code of another object: it is
 * the same function by the language's rules, but other code. And with --wrap a name may
 * mean another function even in its own object (lld).
 */
#include "outliner/lift/inner_calls.h"

#include <elf.h>

/* --- objects --- */

/* A reference that cannot be kept apart from the address of the definition next to it.
 */
static bool is_direct(const struct program *program, const struct object *object,
                      const struct reloc *reloc)
{
    const struct reloc_kind *kind = program->target->reloc_kind(reloc->type);
    const struct symbol *symbol = &object->symbols[reloc->symbol];
    bool data = symbol->type == STT_NOTYPE || symbol->type == STT_OBJECT ||
                symbol->type == STT_FUNC;
    return kind && kind->kind == RELOC_PC && symbol->bind == STB_GLOBAL && data &&
           ELF64_ST_VISIBILITY(symbol->other) == STV_DEFAULT;
}

static bool has_direct(const struct program *program, const struct object *object,
                       const struct section *section)
{
    for (uint32_t r = 0; r < section->reloc_count; r++) {
        if (is_direct(program, object, &section->relocs[r]))
            return true;
    }
    return false;
}

/* By unit, as each is compiled by itself; helpers come from any of them. */
static const bool *find_fixed(struct arena *stage, const struct program *program,
                              uint32_t number)
{
    const struct object *object = program->objects->items[number];
    bool *fixed = arena_new_array(stage, bool, object->unit_count);
    bool *has_code = arena_new_array(stage, bool, object->unit_count), all = true;
    for (uint32_t s = 1; s < object->section_count; s++) {
        const struct section *section = &object->sections[s];
        if (!section_is_code(section))
            continue;
        has_code[section->unit] |= section->data.size > 0;
        if (!fixed[section->unit])
            fixed[section->unit] = has_direct(program, object, section);
    }
    for (uint32_t u = 0; u < object->unit_count; u++)
        all &= fixed[u] || !has_code[u] || object->units[u].helpers;
    for (uint32_t u = 0; u < object->unit_count; u++)
        fixed[u] = object->units[u].helpers ? all : fixed[u];
    return fixed;
}

struct definitions definitions_find(struct arena *stage, const struct program *program)
{
    uint32_t count = program->objects->count;
    const bool **fixed = arena_new_array(stage, const bool *, count);
    bool *is_private = arena_new_array(stage, bool, program->function_count);
    for (uint32_t o = 0; o < count; o++)
        fixed[o] = find_fixed(stage, program, o);
    for (uint32_t f = 0; f < program->function_count; f++)
        is_private[f] = function_is_private(program, f);
    return (struct definitions){fixed, is_private};
}

/* --- names --- */

static bool is_bound(const struct object *object, const struct symbol *symbol,
                     bool fixed)
{
    return symbol->section != SECTION_UNDEFINED &&
           symbol->section < object->section_count && symbol->type == STT_FUNC &&
           symbol->bind == STB_GLOBAL &&
           object->sections[symbol->section].group == NO_INDEX &&
           (fixed || ELF64_ST_VISIBILITY(symbol->other) != STV_DEFAULT);
}

static struct destination place_of(const struct program *program,
                                   const struct definitions *definitions, uint32_t code,
                                   int64_t offset)
{
    struct destination to = {NO_INDEX, true};
    if (code == NO_INDEX || offset < 0 || offset >= NO_INDEX)
        return to;
    to.function = program_function_at(program, code, (uint32_t)offset);
    if (to.function == NO_INDEX)
        return to;
    const struct function *function = &program->functions[to.function];
    bool entry = function->start == (uint32_t)offset && function->symbol != NO_INDEX;
    to.is_private = !entry || definitions->is_private[to.function];
    return to;
}

struct destination destination_of(const struct program *program,
                                  const struct definitions *definitions,
                                  uint32_t number)
{
    const struct insn *insn = &program->insns[number];
    uint32_t code = program->functions[insn->function].code;
    if (!(insn->traits & INSN_RELOCATED))
        return place_of(program, definitions, code,
                        insn->target == NO_INDEX ? -1 : (int64_t)insn->target);
    uint32_t number_of = program->code[code].object;
    const struct object *object = program_object(program, code);
    const struct section *section = program_section(program, code);
    const struct reloc *reloc = &section->relocs[insn->reloc];
    struct referent to = program_referent(
        object, reloc, program->target->reloc_bias(insn, reloc->offset));
    if (to.local)
        return place_of(program, definitions,
                        program_code_of(program, number_of, to.section), to.offset);
    const struct symbol *symbol = &object->symbols[to.symbol];
    bool fixed = definitions->is_fixed[number_of][section->unit];
    bool wrapped = insn->traits & INSN_WRAPPED;
    if (to.addend == 0 && !wrapped && is_bound(object, symbol, fixed))
        return place_of(program, definitions,
                        program_code_of(program, number_of, symbol->section),
                        (int64_t)symbol->value);
    return (struct destination){NO_INDEX,
                                to.addend != 0 || name_is_private(symbol->name)};
}
