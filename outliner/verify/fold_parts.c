/* SPDX-License-Identifier: MIT
 *
 * Symbols and unwind entries after folding.
 */
#include "outliner/verify/fold.h"

#include <elf.h>
#include <string.h>

/* --- symbols --- */

/* Section symbols and mapping symbols say nothing to anybody but tools. */
static bool is_name(const struct symbol *symbol)
{
    return symbol->type != STT_SECTION && symbol->type != STT_FILE &&
           symbol->name[0] != '$' && symbol->name[0] != '\0';
}

/* The function that begins at a place, or NO_INDEX. */
static uint32_t entry_at(const struct fold_check *check, uint32_t section,
                         int64_t offset)
{
    uint32_t number = section == SECTION_UNDEFINED ||
                              section >= check->before->section_count
                          ? NO_INDEX
                          : fold_function_at(check, section, offset);
    bool entry =
        number != NO_INDEX && check->plan->functions[number].start == offset;
    return entry ? number : NO_INDEX;
}

/* By function: somebody among the inputs has its address, or may have. */
static const bool *find_compared(const struct fold_check *check)
{
    const struct object *before = check->before;
    bool *out = arena_new_array(check->arena, bool, check->plan->function_count);
    for (uint32_t i = 1; i < before->symbol_count; i++) {
        const struct symbol *symbol = &before->symbols[i];
        uint32_t number = symbol->bind == STB_LOCAL
                              ? NO_INDEX
                              : entry_at(check, symbol->section, (int64_t)symbol->value);
        if (number != NO_INDEX)
            out[number] = true;
    }
    for (uint32_t s = 1; s < before->section_count; s++) {
        const struct section *from = &before->sections[s];
        if (section_is_frame(from) || !(from->flags & SHF_ALLOC))
            continue;
        for (uint32_t r = 0; r < from->reloc_count; r++) {
            struct fold_place place;
            uint32_t number =
                fold_place_of(before, from, &from->relocs[r], &place) &&
                        !fold_transfers(before, from, &from->relocs[r])
                    ? entry_at(check, place.section, place.offset)
                    : NO_INDEX;
            if (number != NO_INDEX)
                out[number] = true;
        }
    }
    return out;
}

static bool on_jump(struct fold_check *check, const struct symbol *new, uint32_t number)
{
    struct fold_place place = {new->section, (int64_t)new->value};
    const struct fold_jump *jump;
    return fold_claim_jump(check, &place, number, &jump) &&
           (new->size == 0 || new->size == jump->size);
}

static bool same_symbol(struct fold_check *check, const struct symbol *old,
                        const struct symbol *new)
{
    if (old->bind != new->bind || old->type != new->type || old->other != new->other)
        return false;
    if (old->section == SECTION_UNDEFINED ||
        old->section >= check->before->section_count)
        return old->section == new->section && old->value == new->value;
    uint32_t number = fold_function_at(check, old->section, (int64_t)old->value);
    const struct folded *item = number == NO_INDEX ? NULL : check->gone[number];
    if (!item)
        return check->section_at[old->section] == new->section &&
               (section_is_frame(&check->before->sections[old->section]) ||
                (old->value == new->value && old->size == new->size));
    const struct fold_function *function = &check->plan->functions[number];
    if (old->value == function->start && item->jumps)
        return on_jump(check, new, number);
    const struct fold_function *heir = &check->plan->functions[item->heir];
    return function->alone && check->section_at[heir->section] == new->section &&
           new->value == old->value - function->start + heir->start &&
           new->size == old->size &&
           (old->value != function->start || !check->compared[number]);
}

/* Locals keep their order; one may have gone with a section that is no function's. */
static bool may_vanish(const struct fold_check *check, const struct symbol *symbol)
{
    return symbol->bind == STB_LOCAL && symbol->section < check->before->section_count &&
           (symbol->section == SECTION_UNDEFINED ||
            (!check->section_at[symbol->section] &&
             check->first_of[symbol->section] == NO_INDEX));
}

static uint32_t *index_globals(struct fold_check *check, struct table *names)
{
    const struct object *after = check->after;
    uint32_t *symbols = arena_new_array(check->arena, uint32_t, after->symbol_count);
    for (uint32_t i = 1; i < after->symbol_count; i++) {
        if (after->symbols[i].bind != STB_LOCAL)
            symbols[table_intern_string(names, after->symbols[i].name)] = i;
    }
    return symbols;
}

bool fold_check_symbols(struct fold_check *check)
{
    const struct object *before = check->before, *after = check->after;
    struct table *names = table_new(check->arena);
    const uint32_t *globals = index_globals(check, names);
    check->compared = find_compared(check);
    uint32_t local = 1;
    for (uint32_t i = 1; i < before->symbol_count; i++) {
        const struct symbol *old = &before->symbols[i], *new = NULL;
        if (!is_name(old))
            continue;
        if (old->bind != STB_LOCAL) {
            uint32_t name = table_find_string(names, old->name);
            new = name == NO_INDEX ? NULL : &after->symbols[globals[name]];
        } else if (!may_vanish(check, old)) {
            while (local < after->symbol_count &&
                   (after->symbols[local].bind != STB_LOCAL ||
                    strcmp(after->symbols[local].name, old->name) != 0))
                local++;
            new = local < after->symbol_count ? &after->symbols[local++] : NULL;
        } else {
            continue;
        }
        if (!new || !same_symbol(check, old, new))
            return fold_fail(check, old->section, old->value,
                             "symbol %s means something else", old->name);
    }
    return true;
}

/* --- unwind entries --- */

static bool same_lsda(const struct fold_check *check, const struct fde *old,
                      const struct fde *new)
{
    if (!old->has_lsda || !new->has_lsda)
        return !old->has_lsda && !new->has_lsda;
    return old->lsda_section == NO_INDEX
               ? new->lsda_section == NO_INDEX
               : check->section_at[old->lsda_section] == new->lsda_section &&
                     old->lsda_offset == new->lsda_offset;
}

static bool same_cie(const struct fold_check *check, const struct cie *a,
                     const struct cie *b)
{
    const struct symbol *p = &check->before->symbols[a->personality];
    const struct symbol *q = &check->after->symbols[b->personality];
    return a->signal_frame == b->signal_frame && a->b_key == b->b_key &&
           a->return_column == b->return_column &&
           a->has_personality == b->has_personality && strcmp(p->name, q->name) == 0 &&
           a->personality_encoding == b->personality_encoding &&
           a->lsda_encoding == b->lsda_encoding;
}

static bool same_fde(const struct fold_check *check, const struct fde *old,
                     const struct fde *new)
{
    if (new->start != old->start || new->refusal != old->refusal ||
        !same_cie(check, &check->old_frames.cies[old->cie],
                  &check->new_frames.cies[new->cie]) ||
        !same_lsda(check, old, new))
        return false;
    uint32_t number = fold_function_at(check, old->code_section, old->start);
    if (number != NO_INDEX && check->gone[number])
        return new->change_count == 1 && new->changes[0].row == old->changes[0].row;
    if (new->length != old->length || new->change_count != old->change_count)
        return false;
    for (uint32_t i = 0; i < old->change_count; i++) {
        if (old->changes[i].offset != new->changes[i].offset ||
            old->changes[i].row != new->changes[i].row)
            return false;
    }
    return true;
}

/* A jump finds its caller as the entry of its function does. */
static bool check_jump(const struct fold_check *check, const struct fold_jump *jump)
{
    const struct fold_function *to = &check->plan->functions[jump->function];
    uint32_t first, entry;
    if (frames_find(&check->old_frames, to->section, to->start, to->start + 1, &entry) ==
        0)
        return true;
    uint32_t count = frames_find(&check->new_frames, jump->section, jump->offset,
                                 jump->offset + jump->size, &first);
    const struct fde *fde = &check->new_frames.fdes[first];
    return count == 1 && fde->refusal == REFUSAL_NONE && fde->start <= jump->offset &&
           fde->start + fde->length >= jump->offset + jump->size &&
           fde_row_at(fde, jump->offset) ==
               fde_row_at(&check->old_frames.fdes[entry], to->start) &&
           fde_row_at(fde, jump->offset) ==
               fde_row_at(fde, jump->offset + jump->size - 1);
}

bool fold_check_frames(const struct fold_check *check)
{
    for (uint32_t f = 0; f < check->old_frames.fde_count; f++) {
        const struct fde *old = &check->old_frames.fdes[f];
        if (old->code_section == NO_INDEX || !check->section_at[old->code_section])
            continue;
        uint32_t first;
        uint32_t count =
            frames_find(&check->new_frames, check->section_at[old->code_section],
                        old->start, old->start + (old->length ? 1 : 0), &first);
        if (old->length && (count != 1 ||
                            !same_fde(check, old, &check->new_frames.fdes[first])))
            return fold_fail(check, old->code_section, old->start,
                             "its unwind entry is another one");
    }
    for (uint32_t i = 0; i < check->jumps.count; i++) {
        if (!check_jump(check, &check->jumps.items[i]))
            return fold_fail(check, 0, 0, "a jump has no unwind entry that is right");
    }
    return true;
}
