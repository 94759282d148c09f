/* SPDX-License-Identifier: MIT
 *
 * The jumps that stand for functions that have gone: in a section of their own, or where
 * the function was. All are read from the output, and each gets the one owner that names
 * and references give it.
 */
#include "outliner/verify/fold.h"

#include <assert.h>
#include <elf.h>
#include <string.h>

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
    uint32_t section = check->before_of[place->section];
    uint32_t number =
        section == 0 ? NO_INDEX : fold_function_at(check, section, place->offset);
    bool stays = number != NO_INDEX && !check->gone[number] &&
                 check->plan->functions[number].start == place->offset;
    return stays ? number : NO_INDEX;
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

static void add_jump(struct fold_check *check, const struct fold_jump *jump)
{
    uint32_t place[] = {jump->section, jump->offset};
    uint32_t number = table_intern(check->places, place, sizeof place);
    assert(number == check->jumps.count); /* no two lie in one place */
    (void)number;
    array_push(check->arena, &check->jumps, *jump);
}

bool fold_claim_jump(struct fold_check *check, const struct fold_place *place,
                     uint32_t number, const struct fold_jump **out)
{
    uint32_t key[] = {place->section, (uint32_t)place->offset};
    uint32_t at = place->offset < 0 || place->offset >= NO_INDEX
                      ? NO_INDEX
                      : table_find(check->places, key, sizeof key);
    if (at == NO_INDEX)
        return false;
    struct fold_jump *jump = &check->jumps.items[at];
    if (jump->owner == NO_INDEX)
        jump->owner = number;
    *out = jump;
    return jump->owner == number && jump->function == check->gone[number]->heir;
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
        add_jump(check, &jump);
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

bool fold_find_jumps(struct fold_check *check)
{
    check->places = table_new(check->arena);
    check->before_of =
        arena_new_array(check->arena, uint32_t, check->after->section_count);
    for (uint32_t s = 1; s < check->before->section_count; s++) {
        uint32_t at = check->section_at[s];
        if (at && (at >= check->after->section_count || check->before_of[at]))
            return fold_fail(check, s, 0, "two sections have become one");
        if (at)
            check->before_of[at] = s;
    }
    for (uint32_t s = 1; s < check->after->section_count; s++) {
        const struct section *of = &check->after->sections[s];
        if (check->before_of[s] || section_is_frame(of))
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
        add_jump(check, &jump);
    }
    return true;
}
