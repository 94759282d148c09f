/* SPDX-License-Identifier: MIT
 *
 * Nothing is lost: every global symbol and every function of `before` is there, at the
 * corresponding place and with the corresponding size. A local one may have become a
 * hidden global under another name (helpers in another object need it), so locals are
 * looked for by place when their name is gone.
 */
#include "outliner/verify/verify.h"

#include <elf.h>
#include <string.h>

struct index {
    const struct object *object;
    struct table *names;
    uint32_t *first; /* by number in names: a symbol, or NO_INDEX … */
    uint32_t *next;  /* … and by symbol: the next one of that name */
};

static struct index index_symbols(struct arena *arena, const struct object *object)
{
    struct index index = {object, table_new(arena), NULL, NULL};
    index.first = arena_new_array(arena, uint32_t, object->symbol_count);
    index.next = arena_new_array(arena, uint32_t, object->symbol_count);
    uint32_t known = 0;
    for (uint32_t i = object->symbol_count; i-- > 1;) {
        uint32_t name = table_intern_string(index.names, object->symbols[i].name);
        index.next[i] = name == known ? NO_INDEX : index.first[name];
        known += name == known;
        index.first[name] = i;
    }
    return index;
}

static bool in_section(const struct symbol *symbol)
{
    return symbol->section != SECTION_UNDEFINED && symbol->section < SECTION_COMMON;
}

static struct spot spot_of(uint32_t object, const struct symbol *symbol,
                           uint64_t offset)
{
    return (struct spot){object, in_section(symbol) ? symbol->section : 0,
                         (uint32_t)offset};
}

/* Value and size say the same places. */
static bool same_range(const struct verify *verify, uint32_t object,
                       const struct symbol *a, const struct symbol *b)
{
    if (!in_section(a) || !in_section(b))
        return a->section == b->section && a->value == b->value && a->size == b->size;
    if (verify->after_of[object][a->section] != b->section)
        return false;
    if (!section_is_code(spot_section(&verify->before, spot_of(object, a, 0))))
        return a->value == b->value && a->size == b->size;
    if (!positions_agree(verify, spot_of(object, a, a->value),
                         spot_of(object, b, b->value)))
        return false;
    return a->size == 0
               ? b->size == 0
               : positions_agree(verify, spot_of(object, a, a->value + a->size),
                                 spot_of(object, b, b->value + b->size));
}

static bool same_symbol(const struct verify *verify, uint32_t object,
                        const struct symbol *a, const struct symbol *b)
{
    bool promoted = a->bind == STB_LOCAL && b->bind == STB_GLOBAL &&
                    ELF64_ST_VISIBILITY(b->other) == STV_HIDDEN;
    bool same_kind = a->bind == b->bind && a->other == b->other;
    return a->type == b->type && (same_kind || promoted) &&
           same_range(verify, object, a, b);
}

/* Most keep their number, too; that is no more than a good place to look first. */
static bool is_in_place(const struct verify *verify, uint32_t object, uint32_t number)
{
    const struct object *after = verify->after.objects->items[object];
    const struct symbol *symbol =
        &verify->before.objects->items[object]->symbols[number];
    return number < after->symbol_count &&
           strcmp(after->symbols[number].name, symbol->name) == 0 &&
           same_symbol(verify, object, symbol, &after->symbols[number]);
}

static bool is_there(const struct verify *verify, const struct index *index,
                     uint32_t object, const struct symbol *symbol)
{
    uint32_t name = table_find_string(index->names, symbol->name);
    uint32_t i = name == NO_INDEX ? NO_INDEX : index->first[name];
    for (; i != NO_INDEX; i = index->next[i]) {
        if (same_symbol(verify, object, symbol, &index->object->symbols[i]))
            return true;
    }
    if (symbol->bind != STB_LOCAL)
        return false;
    for (i = 1; i < index->object->symbol_count; i++) {
        const struct symbol *other = &index->object->symbols[i];
        if (other->bind != STB_LOCAL && same_symbol(verify, object, symbol, other))
            return true;
    }
    return false;
}

/* Linkers and callers may count on the alignment of a function: C++ keeps a flag in the
 * lowest bit of its address. */
static bool check_alignment(struct verify *verify, uint32_t object, struct error *err)
{
    const struct object *after = verify->after.objects->items[object];
    uint8_t align = verify->target->code_align;
    for (uint32_t i = 1; i < after->symbol_count; i++) {
        const struct symbol *symbol = &after->symbols[i];
        bool code = symbol->type == STT_FUNC && in_section(symbol) &&
                    section_is_code(&after->sections[symbol->section]);
        if (!code || symbol->value % align == 0)
            continue;
        uint32_t old = verify->before_of[object][symbol->section];
        if (old == NO_INDEX || !is_unchanged(verify, object, old)) {
            struct place place = object_place(after, symbol->section, symbol->value);
            return fail(err, &place, "internal error: a function is not aligned");
        }
    }
    return true;
}

static bool check_symbols(struct verify *verify, uint32_t number, struct error *err)
{
    const struct object *object = verify->before.objects->items[number];
    struct index index = {0}; /* made when it is needed */
    for (uint32_t i = 1; i < object->symbol_count; i++) {
        const struct symbol *symbol = &object->symbols[i];
        bool matters = symbol->bind != STB_LOCAL || symbol->type == STT_FUNC;
        /* Whoever still refers to an undefined one has been compared already. */
        if (!matters || symbol->section == SECTION_UNDEFINED ||
            is_in_place(verify, number, i))
            continue;
        if (!index.object)
            index = index_symbols(verify->arena, verify->after.objects->items[number]);
        if (is_there(verify, &index, number, symbol))
            continue;
        struct spot old = spot_of(number, symbol, symbol->value);
        struct spot new = {number, 0, 0};
        return verify_fail(verify, old, new, err,
                           "symbol '%s' is gone, or its value or size is another",
                           symbol->name);
    }
    return check_alignment(verify, number, err);
}

bool verify_symbols(struct verify *verify, struct error *err)
{
    for (uint32_t i = verify->first; i < verify->end; i++) {
        if (!check_symbols(verify, i, err))
            return false;
    }
    return true;
}
