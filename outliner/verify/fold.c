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
    const struct fold_plan *plan = check->plan;
    for (uint32_t i = check->first_of[section];
         i < plan->function_count && plan->functions[i].section == section; i++) {
        if (plan->functions[i].start <= offset && offset < plan->functions[i].end)
            return i;
    }
    return NO_INDEX;
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

/* --- jumps --- */

static const struct reloc *reloc_in(const struct section *section, uint64_t start,
                                    uint64_t end)
{
    uint32_t at = section_reloc_at(section, start);
    bool one = at < section->reloc_count && section->relocs[at].offset < end &&
               (at + 1 == section->reloc_count || section->relocs[at + 1].offset >= end);
    return one ? &section->relocs[at] : NULL;
}

/* The function of the plan whose entry a place of `after` is; it has not gone. */
static uint32_t stays_at(const struct fold_check *check, const struct fold_place *place)
{
    for (uint32_t i = 0; i < check->plan->function_count; i++) {
        const struct fold_function *function = &check->plan->functions[i];
        if (!check->gone[i] && check->section_at[function->section] == place->section &&
            function->start == place->offset)
            return i;
    }
    return NO_INDEX;
}

/* Reads the jump that lies there: perhaps a landing mark, which the function that it
 * leads to begins with, and a jump to that function's entry. */
static bool read_jump(const struct fold_check *check, uint32_t section, uint32_t offset,
                      uint32_t end, struct fold_jump *out)
{
    const struct section *of = &check->after->sections[section];
    struct insn insn;
    uint32_t at = offset, mark = 0;
    if (!check->target->decode(of->data.at + at, end - at, at, &insn))
        return false;
    if (insn.traits & INSN_MARKER) {
        mark = insn.length;
        at += mark;
        if (at >= end || !check->target->decode(of->data.at + at, end - at, at, &insn))
            return false;
    }
    const struct reloc *reloc = reloc_in(of, at, at + insn.length);
    struct fold_place to;
    if (insn.flow != FLOW_JUMP || !reloc || !fold_transfers(check->after, of, reloc) ||
        check->after->symbols[reloc->symbol].bind != STB_LOCAL ||
        !fold_place_of(check->after, of, reloc, &to))
        return false;
    uint32_t function = stays_at(check, &to);
    if (function == NO_INDEX)
        return false;
    const uint8_t *entry = check->after->sections[to.section].data.at + to.offset;
    struct insn first;
    if (!check->target->decode(entry, check->after->sections[to.section].data.size -
                                          (uint64_t)to.offset,
                               (uint32_t)to.offset, &first) ||
        ((first.traits & INSN_MARKER) ? mark != first.length : mark != 0) ||
        memcmp(entry, of->data.at + offset, mark) != 0)
        return false;
    *out = (struct fold_jump){section, offset, at + insn.length - offset, function,
                              NO_INDEX};
    return true;
}

static bool only_nops(const struct fold_check *check, const struct section *of,
                      uint32_t at, uint32_t end)
{
    while (at < end) {
        struct insn insn;
        if (!check->target->decode(of->data.at + at, end - at, at, &insn) ||
            !(insn.traits & INSN_NOP) || reloc_in(of, at, at + insn.length))
            return false;
        at += insn.length;
    }
    return true;
}

/* A section that is new: nothing but jumps. */
static bool read_jumps(struct fold_check *check, uint32_t section)
{
    const struct section *of = &check->after->sections[section];
    uint32_t size = (uint32_t)of->data.size;
    for (uint32_t at = 0; at < size;) {
        struct fold_jump jump;
        if (!read_jump(check, section, at, size, &jump))
            return false;
        array_push(check->arena, &check->jumps, jump);
        at += jump.size;
        uint32_t align = check->target->function_align, next = at;
        while (next < size && next % align)
            next++;
        if (!only_nops(check, of, at, next))
            return false;
        at = next;
    }
    return true;
}

static bool find_jumps(struct fold_check *check)
{
    bool *known = arena_new_array(check->arena, bool, check->after->section_count);
    for (uint32_t s = 1; s < check->before->section_count; s++) {
        uint32_t at = check->section_at[s];
        if (at && (at >= check->after->section_count || known[at]))
            return fold_fail(check, s, 0, "two sections have become one");
        known[at] = true;
    }
    for (uint32_t s = 1; s < check->after->section_count; s++) {
        const struct section *of = &check->after->sections[s];
        if (known[s] || section_is_frame(of))
            continue;
        if (strcmp(of->name, ".text.folded") != 0 || !section_is_code(of) ||
            of->group != NO_INDEX || !read_jumps(check, s))
            return fold_fail(check, 0, 0, "a new section %s holds more than jumps",
                             of->name);
    }
    /* Where functions were: a jump, and no-ops. */
    for (uint32_t i = 0; i < check->plan->function_count; i++) {
        const struct fold_function *function = &check->plan->functions[i];
        uint32_t at = check->section_at[function->section];
        if (!check->gone[i] || !at)
            continue;
        struct fold_jump jump;
        if (!read_jump(check, at, function->start, function->end, &jump) ||
            !only_nops(check, &check->after->sections[at], function->start + jump.size,
                       function->end))
            return fold_fail(check, function->section, function->start,
                             "there is no jump in the place of the function");
        jump.owner = i;
        array_push(check->arena, &check->jumps, jump);
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
    for (uint32_t i = 0; i < check->jumps.count; i++) {
        struct fold_jump *jump = &check->jumps.items[i];
        if (jump->section != new->section || jump->offset != new->offset)
            continue;
        if (jump->owner == NO_INDEX)
            jump->owner = number;
        return jump->owner == number && jump->function == item->heir && item->jumps;
    }
    return false;
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
                         const struct section *of, uint32_t at, bool after)
{
    (void)after;
    return at < of->reloc_count && in_gone(check, section, of->relocs[at].offset);
}

static bool check_references(struct fold_check *check, uint32_t section)
{
    const struct section *old = &check->before->sections[section];
    const struct section *new =
        &check->after->sections[check->section_at[section]];
    uint32_t a = 0, b = 0;
    for (;;) {
        while (next_is_gone(check, section, old, a, false))
            a++;
        while (next_is_gone(check, section, new, b, true))
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

/* The plan says what it means: no heir has gone, and all is in order. */
static bool check_plan(struct fold_check *check)
{
    const struct fold_plan *plan = check->plan;
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
         find_jumps(&check) && check_all_references(&check) &&
         fold_check_symbols(&check) && fold_check_frames(&check);
    arena_free(check.arena);
    return ok;
}
