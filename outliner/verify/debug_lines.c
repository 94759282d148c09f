/* SPDX-License-Identifier: MIT
 *
 * Line programs. Each instruction that has kept a place of its own, and each call that
 * stands where one was, must have the line that it had; and each row about such a place
 * must be there again, in order. What is there besides speaks of helpers, or of the
 * places of calls, and that can only add breakpoints to a call.
 */
#include "outliner/verify/verify.h"

#include <string.h>

static bool differs(const struct verify *verify, struct spot old, const char *what,
                    struct error *err)
{
    struct spot new = {old.object, verify->after_of[old.object][old.section], 0};
    return verify_fail(verify, old, new, err, "line numbers: %s", what);
}

static bool same_line(const struct debug_row *a, const struct debug_row *b)
{
    return a->file == b->file && a->line == b->line && a->column == b->column &&
           a->isa == b->isa;
}

static bool same_row(const struct debug_row *a, const struct debug_row *b)
{
    return same_line(a, b) && a->discriminator == b->discriminator &&
           a->is_stmt == b->is_stmt && a->basic_block == b->basic_block &&
           a->prologue_end == b->prologue_end && a->epilogue_begin == b->epilogue_begin;
}

/* The new place of an old instruction, or NO_INDEX. */
static uint32_t place_of(const struct section_map *map, uint32_t position)
{
    if (map->identity)
        return position;
    return map->walked ? map_start(map, position) : NO_INDEX;
}

static bool instructions_agree(const struct verify *verify, uint32_t object,
                               const struct debug_sequence *a,
                               const struct debug_sequence *b, struct error *err)
{
    const struct section_map *map = &verify->maps[object][a->code];
    struct spot spot = {object, a->code, 0};
    for (uint32_t at = a->row_count ? a->rows[0].position : a->last; at < a->last;
         at++) {
        uint32_t place = place_of(map, at);
        if (place == NO_INDEX)
            continue;
        const struct debug_row *old = debug_row_at(a, at), *new = debug_row_at(b, place);
        spot.offset = at;
        if (!old || !new || !same_line(old, new))
            return differs(verify, spot, "an instruction has another line", err);
    }
    return true;
}

/* Row number `j` is about the new place of an old position. */
static bool stands_at(const struct verify *verify, struct spot old, uint32_t place,
                      const struct debug_sequence *b, uint32_t j)
{
    struct spot new = {old.object, b->code, b->rows[j].position};
    return new.offset == place || gone_agrees(verify, old, new);
}

static bool rows_agree(const struct verify *verify, uint32_t object,
                       const struct debug_sequence *a, const struct debug_sequence *b,
                       struct error *err)
{
    const struct section_map *map = &verify->maps[object][a->code];
    uint32_t j = 0;
    for (uint32_t i = 0; i < a->row_count; i++) {
        struct spot at = {object, a->code, a->rows[i].position};
        uint32_t place = place_of(map, at.offset);
        if (place == NO_INDEX)
            continue;
        while (j < b->row_count &&
               (!stands_at(verify, at, place, b, j) ||
                !same_row(&a->rows[i], &b->rows[j])))
            j++;
        if (j++ == b->row_count)
            return differs(verify, at, "a row is gone", err);
    }
    return !verify->dropped || a->row_count == b->row_count ||
           differs(verify, (struct spot){object, a->code, a->last}, "more rows", err);
}

static bool sequences_agree(const struct verify *verify, uint32_t object,
                            const struct debug_sequence *a,
                            const struct debug_sequence *b, struct spot spot,
                            struct error *err)
{
    if (a->code == NO_INDEX || b->code == NO_INDEX)
        return a->code == b->code ||
               differs(verify, spot, "a sequence has no address", err);
    struct spot before = {object, a->code, a->last}, after = {object, b->code, b->last};
    if (verify->after_of[object][a->code] != b->code)
        return differs(verify, spot, "a sequence of other code", err);
    const struct debug_sequence *result = verify->dropped ? a : b;
    bool same_end = debug_positions_agree(verify, before, after) ||
                    (result->row_count &&
                     result->rows[result->row_count - 1].position == result->last);
    return (same_end || differs(verify, before, "a sequence ends elsewhere", err)) &&
           instructions_agree(verify, object, a, b, err) &&
           rows_agree(verify, object, a, b, err);
}

/* Lines of helpers: nobody's statements. */
static bool is_about_helpers(const struct verify *verify, uint32_t object,
                             const struct debug_sequence *sequence)
{
    for (uint32_t i = 0; i < sequence->row_count; i++)
        if (sequence->rows[i].is_stmt)
            return false;
    /* In an object of their own they are beyond what this side can see. */
    return sequence->code == NO_INDEX ||
           is_helper_section(verify, object, sequence->code);
}

static bool same_header(const struct verify *verify, uint32_t object,
                        const struct debug_lines *a, const struct debug_lines *b)
{
    const struct object *x = verify->before.objects->items[object];
    const struct object *y = verify->after.objects->items[object];
    uint32_t skip = a->length_size, size = a->program - a->start;
    return a->length_size == b->length_size && size == b->program - b->start &&
           size >= skip &&
           memcmp(x->sections[a->section].data.at + a->start + skip,
                  y->sections[b->section].data.at + b->start + skip, size - skip) == 0;
}

static bool program_agrees(const struct verify *verify, uint32_t object,
                           const struct debug_lines *a, const struct debug_lines *b,
                           struct error *err)
{
    struct spot spot = {object, a->section, a->start};
    if (verify->after_of[object][a->section] != b->section ||
        !same_header(verify, object, a, b))
        return differs(verify, spot, "another header", err);
    if (a->sequence_count > b->sequence_count)
        return differs(verify, spot, "a sequence is gone", err);
    for (uint32_t i = 0; i < a->sequence_count; i++)
        if (!sequences_agree(verify, object, &a->sequences[i], &b->sequences[i], spot,
                             err))
            return false;
    for (uint32_t i = a->sequence_count; i < b->sequence_count; i++)
        if (!is_about_helpers(verify, object, &b->sequences[i]))
            return differs(verify, spot, "a sequence is new", err);
    return true;
}

/* --- links --- */

static uint32_t program_at(const struct debug *debug, uint32_t section, uint64_t start)
{
    for (uint32_t i = 0; i < debug->lines_count; i++)
        if (debug->lines[i].section == section && debug->lines[i].start == start)
            return i;
    return NO_INDEX;
}

/* A unit's line program is the one that it was. */
static bool links_agree(const struct verify *verify, uint32_t object, uint32_t section,
                        struct error *err)
{
    struct spot old = {object, section, 0},
                new = {object, verify->after_of[object][section], 0};
    const struct section *a = spot_section(&verify->before, old);
    const struct section *b = spot_section(&verify->after, new);
    for (uint32_t i = 0, j = 0; i < a->reloc_count; i++) {
        struct meaning x = meaning_of(&verify->before, object, &a->relocs[i], 0);
        while (j < b->reloc_count && b->relocs[j].offset < a->relocs[i].offset)
            j++;
        const struct object *of = verify->before.objects->items[object];
        if (!x.placed || x.object != object ||
            strcmp(of->sections[x.section].name, ".debug_line") != 0)
            continue;
        old.offset = (uint32_t)a->relocs[i].offset;
        if (j >= b->reloc_count || b->relocs[j].offset != a->relocs[i].offset)
            return differs(verify, old, "a link is gone", err);
        struct meaning y = meaning_of(&verify->after, object, &b->relocs[j], 0);
        if (!y.placed || y.object != object ||
            program_at(&verify->before.debug[object], x.section, (uint64_t)x.offset) !=
                program_at(&verify->after.debug[object], y.section, (uint64_t)y.offset))
            return differs(verify, old, "a link to another program", err);
    }
    return true;
}

bool verify_debug_lines(struct verify *verify, uint32_t object, struct error *err)
{
    const struct debug *a = &verify->before.debug[object];
    const struct debug *b = &verify->after.debug[object];
    const struct object *of = verify->before.objects->items[object];
    for (uint32_t i = 0; i < a->lines_count; i++) {
        struct spot spot = {object, a->lines[i].section, a->lines[i].start};
        if (i >= b->lines_count)
            return differs(verify, spot, "a program is gone", err);
        if (!program_agrees(verify, object, &a->lines[i], &b->lines[i], err))
            return false;
    }
    for (uint32_t s = 1; s < of->section_count; s++)
        if (is_debug_read(verify, object, s) && !links_agree(verify, object, s, err))
            return false;
    return true;
}
