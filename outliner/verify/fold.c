/* SPDX-License-Identifier: MIT
 *
 * The checker of folding. It is told which functions are said to be the same code and
 * which of them have gone, believes none of it, and looks:
 *
 *   sections   are all there, with their bytes, but those of functions that have gone
 *   code       functions of one class cannot be told apart by what they do (fold_code.c)
 *   references mean what they meant; where that has gone, its heir; where somebody may
 *              compare addresses, a jump that leads there and has no other owner
 *   symbols    every name is there, on what it named or on what stands for that
 *   rows       every function that stays is described as before (fold_parts.c)
 */
#include "outliner/verify/fold.h"

#include <elf.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool fold_fail(const struct fold_check *check, uint32_t section, uint64_t offset,
               const char *format, ...)
{
    va_list list;
    va_start(list, format);
    char text[256];
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    struct place place = object_place(check->before, section, offset);
    return fail(check->err, &place, "internal error: folding: %s; nothing was written",
                text);
}

uint32_t fold_function_at(const struct fold_check *check, uint32_t section,
                          int64_t offset)
{
    const struct fold_function *all = check->plan->functions;
    uint32_t low = check->first_of[section], high = check->plan->function_count;
    if (low == NO_INDEX)
        return NO_INDEX;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (all[middle].section == section && all[middle].end <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < check->plan->function_count && all[low].section == section &&
                 all[low].start <= offset;
    return found ? low : NO_INDEX;
}

/* (The distance from an x86-64 field to the end of its instruction is 4 wherever
 * functions are referred to. If it is not, the reference is none that is understood
 * below.) */
bool fold_place_of(const struct object *object, const struct section *from,
                   const struct reloc *reloc, struct fold_place *out)
{
    const struct symbol *symbol = &object->symbols[reloc->symbol];
    if (reloc->symbol == 0 || symbol->section == SECTION_UNDEFINED ||
        symbol->section >= object->section_count)
        return false;
    bool counts = object->machine == EM_X86_64 && section_is_code(from) &&
                  (reloc->type == R_X86_64_PC32 || reloc->type == R_X86_64_PLT32 ||
                   reloc->type == R_X86_64_GOTPCREL ||
                   reloc->type == R_X86_64_GOTPCRELX ||
                   reloc->type == R_X86_64_REX_GOTPCRELX);
    *out = (struct fold_place){symbol->section,
                               (int64_t)symbol->value + reloc->addend + (counts ? 4 : 0)};
    return true;
}

bool fold_transfers(const struct object *object, const struct section *from,
                    const struct reloc *reloc)
{
    if (!section_is_code(from))
        return false;
    if (object->machine == EM_AARCH64)
        return reloc->type == R_AARCH64_CALL26 || reloc->type == R_AARCH64_JUMP26;
    if (reloc->type != R_X86_64_PC32 && reloc->type != R_X86_64_PLT32)
        return false;
    const uint8_t *field = from->data.at + reloc->offset;
    return reloc->offset > 0 &&
           (field[-1] == 0xe8 || field[-1] == 0xe9 ||
            (reloc->offset > 1 && field[-2] == 0x0f && (field[-1] & 0xf0) == 0x80));
}

bool fold_is_bound(const struct object *object, const struct symbol *symbol)
{
    uint8_t visibility = ELF64_ST_VISIBILITY(symbol->other);
    if (symbol->bind == STB_LOCAL)
        return true;
    if (symbol->bind == STB_GLOBAL)
        return visibility == STV_HIDDEN || visibility == STV_INTERNAL;
    uint32_t group = object->sections[symbol->section].group;
    return group != NO_INDEX && (object->groups[group].flags & GRP_COMDAT);
}

/* --- sections --- */

static bool follows_dropped(const struct fold_check *check, const struct section *of)
{
    return ((of->flags & SHF_LINK_ORDER) && !check->section_at[of->link]) ||
           ((of->flags & SHF_INFO_LINK) && !check->section_at[of->info]);
}

/* The bytes outside of functions that have become jumps. */
static bool same_bytes(const struct fold_check *check, uint32_t number,
                       const struct section *old, const struct section *new)
{
    if (old->data.size != new->data.size || !old->data.at != !new->data.at)
        return false;
    uint64_t at = 0;
    for (uint32_t i = check->first_of[number];
         i < check->plan->function_count &&
         check->plan->functions[i].section == number;
         i++) {
        const struct fold_function *function = &check->plan->functions[i];
        if (!check->gone[i])
            continue;
        if (memcmp(old->data.at + at, new->data.at + at, function->start - at) != 0)
            return false;
        at = function->end;
    }
    return !old->data.at ||
           memcmp(old->data.at + at, new->data.at + at, old->data.size - at) == 0;
}

static bool check_section(const struct fold_check *check, uint32_t number)
{
    const struct section *old = &check->before->sections[number];
    uint32_t at = check->section_at[number];
    if (at == 0)
        return check->plan->dropped[number] || follows_dropped(check, old) ||
               fold_fail(check, number, 0, "the section has gone");
    const struct section *new = &check->after->sections[at];
    if (strcmp(old->name, new->name) != 0 || old->type != new->type ||
        old->flags != new->flags || old->align != new->align ||
        old->entry_size != new->entry_size || old->unit != new->unit)
        return fold_fail(check, number, 0, "the section has changed its kind");
    if (old->group != NO_INDEX && new->group != NO_INDEX &&
        strcmp(check->before->symbols[check->before->groups[old->group].signature].name,
               check->after->symbols[check->after->groups[new->group].signature].name))
        return fold_fail(check, number, 0, "the section is in another group");
    if (old->group == NO_INDEX && new->group != NO_INDEX)
        return fold_fail(check, number, 0, "the section has come into a group");
    if (section_is_frame(old) || section_is_debug(old))
        return true;
    return same_bytes(check, number, old, new) ||
           fold_fail(check, number, 0, "its bytes have changed");
}

/* What is in no group any more may be defined elsewhere, too. */
static bool check_dissolved(const struct fold_check *check)
{
    for (uint32_t i = 1; i < check->before->symbol_count; i++) {
        const struct symbol *symbol = &check->before->symbols[i];
        if (symbol->section >= check->before->section_count ||
            symbol->bind == STB_LOCAL || symbol->bind == STB_WEAK)
            continue;
        const struct section *old = &check->before->sections[symbol->section];
        uint32_t at = check->section_at[symbol->section];
        if (old->group != NO_INDEX &&
            (!at || check->after->sections[at].group == NO_INDEX))
            return fold_fail(check, symbol->section, symbol->value,
                             "%s must stay in its group", symbol->name);
    }
    return true;
}

/* --- references --- */

/* What a place of `before` is in `after`, for somebody who calls it or looks at it. */
static bool is_image(struct fold_check *check, const struct fold_place *old,
                     const struct fold_place *new, bool transfers)
{
    uint32_t number = fold_function_at(check, old->section, old->offset);
    const struct folded *item = number == NO_INDEX ? NULL : check->gone[number];
    if (!item)
        return check->section_at[old->section] == new->section &&
               old->offset == new->offset;
    const struct fold_function *function = &check->plan->functions[number];
    const struct fold_function *heir = &check->plan->functions[item->heir];
    int64_t inside = old->offset - function->start;
    bool on_heir = check->section_at[heir->section] == new->section &&
                   new->offset == heir->start + inside;
    if (inside > 0)
        return on_heir && function->alone;
    if (on_heir && (transfers || !item->jumps))
        return true;
    const struct fold_jump *jump;
    return item->jumps && fold_claim_jump(check, new, number, &jump);
}

static bool same_reference(struct fold_check *check, uint32_t section,
                           const struct section *new_section, const struct reloc *old,
                           const struct reloc *new)
{
    const struct object *before = check->before, *after = check->after;
    const struct section *old_section = &before->sections[section];
    const struct symbol *a = &before->symbols[old->symbol];
    const struct symbol *b = &after->symbols[new->symbol];
    if (old->offset != new->offset || old->type != new->type ||
        !old->symbol != !new->symbol)
        return false;
    if (a->bind != STB_LOCAL || b->bind != STB_LOCAL || old->symbol == 0)
        return a->bind != STB_LOCAL && b->bind != STB_LOCAL
                   ? strcmp(a->name, b->name) == 0 && old->addend == new->addend
                   : old->symbol == 0 && old->addend == new->addend;
    struct fold_place from, to;
    bool placed = fold_place_of(before, old_section, old, &from);
    if (!placed)
        return a->section == b->section && a->value == b->value &&
               old->addend == new->addend;
    return fold_place_of(after, new_section, new, &to) &&
           is_image(check, &from, &to, fold_transfers(before, old_section, old));
}

static bool in_gone(const struct fold_check *check, uint32_t section, uint64_t offset)
{
    uint32_t function = fold_function_at(check, section, (int64_t)offset);
    return function != NO_INDEX && check->gone[function];
}

static bool next_is_gone(const struct fold_check *check, uint32_t section,
                         const struct section *of, uint32_t at)
{
    return at < of->reloc_count && in_gone(check, section, of->relocs[at].offset);
}

static bool check_references(struct fold_check *check, uint32_t section)
{
    const struct section *old = &check->before->sections[section];
    const struct section *new =
        &check->after->sections[check->section_at[section]];
    uint32_t a = 0, b = 0;
    for (;;) {
        while (next_is_gone(check, section, old, a))
            a++;
        while (next_is_gone(check, section, new, b))
            b++;
        if (a == old->reloc_count && b == new->reloc_count)
            return true;
        if (a == old->reloc_count || b == new->reloc_count ||
            !same_reference(check, section, new, &old->relocs[a], &new->relocs[b]))
            return fold_fail(check, section,
                             a < old->reloc_count ? old->relocs[a].offset : 0,
                             "a reference means something else");
        a++;
        b++;
    }
}

/* Debug information: what spoke of code that has gone speaks of address 0 or 1; all else
 * is as it was. */
static bool check_debug(struct fold_check *check, uint32_t section)
{
    const struct section *old = &check->before->sections[section];
    const struct section *new =
        &check->after->sections[check->section_at[section]];
    uint32_t b = 0;
    for (uint32_t a = 0; a < old->reloc_count; a++) {
        struct fold_place place;
        bool there = b < new->reloc_count &&
                     new->relocs[b].offset == old->relocs[a].offset &&
                     new->relocs[b].type == old->relocs[a].type;
        bool lost = fold_place_of(check->before, old, &old->relocs[a], &place) &&
                    check->plan->dropped[place.section];
        if (lost == there)
            return fold_fail(check, section, old->relocs[a].offset,
                             "debug information speaks of something else");
        b += there;
    }
    return b == new->reloc_count && old->data.size == new->data.size;
}

static bool check_all_references(struct fold_check *check)
{
    for (uint32_t s = 1; s < check->before->section_count; s++) {
        const struct section *of = &check->before->sections[s];
        if (!check->section_at[s] || section_is_frame(of))
            continue;
        if (section_is_debug(of) ? !check_debug(check, s) : !check_references(check, s))
            return false;
    }
    return true;
}

/* --- the whole --- */

/* So that they can be searched. */
static bool in_order(const struct fold_check *check)
{
    const struct fold_function *all = check->plan->functions;
    for (uint32_t i = 0; i < check->plan->function_count; i++) {
        if (all[i].section >= check->before->section_count ||
            all[i].start >= all[i].end ||
            (i > 0 && (all[i].section < all[i - 1].section ||
                       (all[i].section == all[i - 1].section &&
                        all[i].start < all[i - 1].end))))
            return false;
    }
    return true;
}

/* The plan says what it means: no heir has gone, and all is in order. */
static bool check_plan(struct fold_check *check)
{
    const struct fold_plan *plan = check->plan;
    if (!in_order(check))
        return fold_fail(check, 0, 0, "the functions are not in order");
    check->gone =
        arena_new_array(check->arena, const struct folded *, plan->function_count);
    check->first_of =
        arena_new_array(check->arena, uint32_t, check->before->section_count);
    for (uint32_t s = 0; s < check->before->section_count; s++)
        check->first_of[s] = NO_INDEX;
    for (uint32_t i = plan->function_count; i-- > 0;)
        check->first_of[plan->functions[i].section] = i;
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct folded *item = &plan->items[i];
        check->gone[item->function] = item;
        if (plan->functions[item->function].class != plan->functions[item->heir].class)
            return fold_fail(check, 0, 0, "an heir of another class");
    }
    for (uint32_t i = 0; i < plan->count; i++) {
        if (check->gone[plan->items[i].heir])
            return fold_fail(check, 0, 0, "an heir has gone");
    }
    return true;
}

static bool read_tables(struct fold_check *check)
{
    check->rows = row_table_new(check->arena);
    if (!frames_read(check->arena, check->before, check->rows, &check->old_frames,
                     check->err) ||
        !frames_read(check->arena, check->after, check->rows, &check->new_frames,
                     check->err))
        return false;
    lsdas_read(check->arena, check->before, &check->old_frames, &check->old_lsdas);
    lsdas_read(check->arena, check->after, &check->new_frames, &check->new_lsdas);
    return true;
}

bool fold_verify(const struct object *before, const struct object *after,
                 const struct fold_plan *plan, const uint32_t *section_at,
                 struct error *err)
{
    struct fold_check check = {.arena = arena_new(),
                               .before = before,
                               .after = after,
                               .target = target_of(before->machine),
                               .plan = plan,
                               .section_at = section_at,
                               .err = err};
    bool ok = check_plan(&check) && read_tables(&check);
    for (uint32_t s = 1; ok && s < before->section_count; s++)
        ok = check_section(&check, s);
    ok = ok && check_dissolved(&check) && fold_check_classes(&check) &&
         fold_find_jumps(&check) && check_all_references(&check) &&
         fold_check_symbols(&check) && fold_check_frames(&check);
    arena_free(check.arena);
    return ok;
}
