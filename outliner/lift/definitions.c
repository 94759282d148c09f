/* SPDX-License-Identifier: MIT
 *
 * Which function it is that is run in the end where a call or jump names one.
 * Everything is looked up once for each symbol, as there are many more calls.
 */
#include "outliner/lift/inner_calls.h"

#include <elf.h>
#include <string.h>

struct finder {
    struct arena *stage;
    const struct program *program;
    struct table *names;
    array_of(uint32_t) functions; /* by number of the name */
    bool *is_private;
};

/* Copies of an inline function of C++ are the same function by the language's rules,
 * and its name tells its parameters. Other weak ones give way to who knows what. */
static bool is_certain(const struct object *object, const struct symbol *symbol)
{
    bool inlined = object->sections[symbol->section].group != NO_INDEX &&
                   strncmp(symbol->name, "_Z", 2) == 0;
    return symbol->type == STT_FUNC && (inlined || symbol->bind == STB_GLOBAL);
}

static void define(struct finder *finder, uint32_t number, const struct symbol *symbol)
{
    const struct program *program = finder->program;
    const struct object *object = program->objects->items[number];
    if (symbol_is_local(symbol) || symbol->section >= object->section_count ||
        symbol->section == SECTION_UNDEFINED ||
        !section_is_code(&object->sections[symbol->section]))
        return;
    uint32_t name = table_intern_string(finder->names, symbol->name);
    uint32_t code = program_code_of(program, number, symbol->section);
    uint32_t function =
        code == NO_INDEX ? NO_INDEX
                         : program_function_at(program, code, (uint32_t)symbol->value);
    bool certain = function != NO_INDEX && is_certain(object, symbol) &&
                   program->functions[function].start == symbol->value;
    bool grouped = object->sections[symbol->section].group != NO_INDEX;
    if (name == finder->functions.count)
        array_push(finder->stage, &finder->functions, certain ? function : NO_INDEX);
    else if (!certain || !grouped)
        finder->functions.items[name] = NO_INDEX;
}

static const struct definition *look_up(struct finder *finder,
                                        const struct object *object)
{
    struct definition *of =
        arena_new_array(finder->stage, struct definition, object->symbol_count);
    for (uint32_t s = 1; s < object->symbol_count; s++) {
        const struct symbol *symbol = &object->symbols[s];
        if (symbol_is_local(symbol))
            continue;
        uint32_t name = table_find_string(finder->names, symbol->name);
        of[s].function = name == NO_INDEX ? NO_INDEX : finder->functions.items[name];
        of[s].is_private = name_is_private(symbol->name);
    }
    return of;
}

struct definitions definitions_find(struct arena *stage, const struct program *program)
{
    uint32_t count = program->objects->count;
    struct finder finder = {.stage = stage,
                            .program = program,
                            .names = table_new(stage),
                            .is_private =
                                arena_new_array(stage, bool, program->function_count)};
    const struct definition **of =
        arena_new_array(stage, const struct definition *, count);
    for (uint32_t o = 0; o < count; o++) {
        const struct object *object = program->objects->items[o];
        for (uint32_t s = 1; s < object->symbol_count; s++)
            define(&finder, o, &object->symbols[s]);
    }
    for (uint32_t o = 0; o < count; o++)
        of[o] = look_up(&finder, program->objects->items[o]);
    for (uint32_t f = 0; f < program->function_count; f++)
        finder.is_private[f] = function_is_private(program, f);
    return (struct definitions){of, finder.is_private};
}

static struct destination place_of(const struct program *program,
                                   const struct definitions *definitions, uint32_t code,
                                   int64_t offset)
{
    struct destination to = {NO_INDEX, NO_INDEX, true};
    if (code == NO_INDEX || offset < 0 || offset >= NO_INDEX)
        return to;
    to.offset = (uint32_t)offset;
    to.function = program_function_at(program, code, to.offset);
    if (to.function == NO_INDEX)
        return to;
    const struct function *function = &program->functions[to.function];
    bool entry = function->start == to.offset && function->symbol != NO_INDEX;
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
    uint32_t object = program->code[code].object;
    const struct reloc *reloc = &program_section(program, code)->relocs[insn->reloc];
    struct referent to =
        program_referent(program_object(program, code), reloc,
                         program->target->reloc_bias(insn, reloc->offset));
    if (to.local)
        return place_of(program, definitions,
                        program_code_of(program, object, to.section), to.offset);
    const struct definition *definition = &definitions->of[object][to.symbol];
    return (struct destination){definition->function, NO_INDEX,
                                definition->is_private || to.addend != 0};
}
