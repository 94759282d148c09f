/* SPDX-License-Identifier: MIT
 *
 * Resolution: one symbol for every global name, as a linker would choose it.
 *
 *     strong definition > common > weak definition > strong reference > weak reference
 *
 * Of two equals the first wins; two strong definitions are an error, of two commons the
 * larger size and the larger alignment count. A definition in a dropped copy of a group
 * is a reference. Visibility is the most constraining that anybody states (gABI chapter
 * 4, "Symbol Table": "the resulting visibility is the most constraining").
 *
 * Local symbols stay apart, and vanish with their section. A weak function that has lost
 * becomes one: its code is still there, and without a name nobody could tell it from
 * data.
 */
#include "merge.h"

#include "mo/array.h"

#include <elf.h>

enum rank { RANK_WEAK_REFERENCE, RANK_REFERENCE, RANK_WEAK, RANK_COMMON, RANK_STRONG };

struct global {
    struct symbol symbol; /* its section is of the result */
    enum rank rank;
    const char *unit; /* that defines it */
};

struct resolution {
    struct merge *merge;
    struct table *names;
    array_of(struct global) globals; /* by number in the table */
    array_of(struct symbol) locals;
};

static bool is_dropped(const struct input *input, const struct symbol *symbol)
{
    return symbol->section < input->object->section_count &&
           input->dropped[symbol->section];
}

static enum rank rank_of(const struct symbol *symbol)
{
    bool weak = symbol->bind == STB_WEAK;
    if (symbol->section == SECTION_UNDEFINED)
        return weak ? RANK_WEAK_REFERENCE : RANK_REFERENCE;
    if (symbol->section == SECTION_COMMON)
        return RANK_COMMON;
    return weak ? RANK_WEAK : RANK_STRONG;
}

/* The symbol as it is in the result, before it meets others of its name. */
static struct symbol placed(const struct input *input, const struct symbol *from)
{
    struct symbol symbol = *from;
    if (from->section >= input->object->section_count ||
        from->section == SECTION_UNDEFINED)
        return symbol; /* undefined, absolute, common */
    symbol.section = input->section_at[from->section];
    if (is_dropped(input, from))
        symbol.value = symbol.size = 0;
    else
        symbol.value = merge_offset(input, from->section, from->value);
    return symbol;
}

/* Internal 1, hidden 2, protected 3, default 0: the smallest but 0 constrains most. */
static uint8_t join_visibility(uint8_t a, uint8_t b)
{
    uint8_t x = ELF64_ST_VISIBILITY(a), y = ELF64_ST_VISIBILITY(b);
    return x == STV_DEFAULT ? y : y == STV_DEFAULT || x < y ? x : y;
}

static uint8_t join_other(const struct global *winner, uint8_t a, uint8_t b)
{
    uint8_t rest = winner->symbol.other;
    if (winner->rank <= RANK_REFERENCE)
        rest = a | b; /* machine bits of references: whoever knows more is right */
    return (uint8_t)((rest & ~3u) | join_visibility(a, b));
}

static void join_common(struct symbol *symbol, const struct symbol *other)
{
    if (other->size > symbol->size)
        symbol->size = other->size;
    if (other->value > symbol->value)
        symbol->value = other->value;
}

/* A weak definition whose name now means another one. */
static void keep_loser(struct resolution *resolution, const struct global *loser)
{
    struct symbol symbol = loser->symbol;
    if (loser->rank != RANK_WEAK || symbol.type != STT_FUNC || symbol.size == 0)
        return;
    symbol.bind = STB_LOCAL;
    symbol.other = (uint8_t)(symbol.other & ~3u); /* gABI: locals have no visibility */
    array_push(resolution->merge->stage, &resolution->locals, symbol);
}

static bool join(struct resolution *resolution, struct global *known,
                 const struct global *other)
{
    const struct place place = {.file = resolution->merge->name};
    uint8_t a = known->symbol.other, b = other->symbol.other;
    if (known->rank == RANK_STRONG && other->rank == RANK_STRONG)
        return fail(resolution->merge->err, &place,
                    "symbol %s is defined in %s and in %s", known->symbol.name,
                    known->unit, other->unit);
    if (known->rank == RANK_COMMON && other->rank == RANK_COMMON) {
        join_common(&known->symbol, &other->symbol);
    } else if (other->rank > known->rank) {
        uint8_t type = known->symbol.type;
        keep_loser(resolution, known);
        *known = *other;
        if (known->rank == RANK_REFERENCE && known->symbol.type == STT_NOTYPE)
            known->symbol.type = type;
    } else if (known->rank <= RANK_REFERENCE && known->symbol.type == STT_NOTYPE &&
               other->rank <= RANK_REFERENCE) {
        known->symbol.type = other->symbol.type;
    } else {
        keep_loser(resolution, other);
    }
    known->symbol.other = join_other(known, a, b);
    return true;
}

static bool add_global(struct resolution *resolution, const struct input *input,
                       const struct symbol *from, uint32_t *number)
{
    struct global global = {.symbol = placed(input, from)};
    global.rank = rank_of(&global.symbol);
    global.unit = from->section < input->object->section_count &&
                          from->section != SECTION_UNDEFINED
                      ? section_unit(input->object, from->section)
                      : input->object->name;
    *number = resolution->merge->by_name
                  ? table_intern_string(resolution->names, from->name)
                  : resolution->globals.count;
    if (*number < resolution->globals.count)
        return join(resolution, &resolution->globals.items[*number], &global);
    array_push(resolution->merge->stage, &resolution->globals, global);
    return true;
}

/* Marks the local symbols that exist only to name a group that has gone. */
static bool *find_unneeded(const struct merge *merge, const struct input *input)
{
    const struct object *object = input->object;
    bool *unneeded = arena_new_array(merge->stage, bool, object->symbol_count);
    for (uint32_t i = 0; i < object->group_count; i++) {
        const struct group *group = &object->groups[i];
        const struct symbol *symbol = &object->symbols[group->signature];
        unneeded[group->signature] = symbol->bind == STB_LOCAL &&
                                     symbol->section == SECTION_UNDEFINED &&
                                     merge_group_is_gone(input, group);
    }
    return unneeded;
}

static bool add_symbols(struct resolution *resolution, struct input *input)
{
    const struct object *object = input->object;
    input->symbol_at =
        arena_new_array(resolution->merge->stage, uint32_t, object->symbol_count);
    const bool *unneeded = find_unneeded(resolution->merge, input);
    for (uint32_t i = 1; i < object->symbol_count; i++) {
        const struct symbol *symbol = &object->symbols[i];
        if (symbol->bind != STB_LOCAL) {
            if (!add_global(resolution, input, symbol, &input->symbol_at[i]))
                return false;
        } else if (!is_dropped(input, symbol) && !unneeded[i]) {
            array_push(resolution->merge->stage, &resolution->locals,
                       placed(input, symbol));
            input->symbol_at[i] = resolution->locals.count; /* behind the null symbol */
        }
    }
    return true;
}

/* Globals have been counted from 0 so far; they come behind the locals. */
static void number_globals(struct input *input, uint32_t first)
{
    for (uint32_t i = 1; i < input->object->symbol_count; i++) {
        if (input->object->symbols[i].bind != STB_LOCAL)
            input->symbol_at[i] += first;
    }
}

bool merge_symbols(struct merge *merge)
{
    struct resolution resolution = {.merge = merge, .names = table_new(merge->stage)};
    for (uint32_t i = 0; i < merge->input_count; i++) {
        if (!add_symbols(&resolution, &merge->inputs[i]))
            return false;
    }
    uint32_t locals = resolution.locals.count, globals = resolution.globals.count;
    for (uint32_t i = 0; i < merge->input_count; i++)
        number_globals(&merge->inputs[i], 1 + locals);
    merge->symbol_count = 1 + locals + globals;
    merge->symbols = arena_new_array(merge->arena, struct symbol, merge->symbol_count);
    merge->symbols[0].name = "";
    for (uint32_t i = 0; i < locals; i++)
        merge->symbols[1 + i] = resolution.locals.items[i];
    for (uint32_t i = 0; i < globals; i++)
        merge->symbols[1 + locals + i] = resolution.globals.items[i].symbol;
    return true;
}
