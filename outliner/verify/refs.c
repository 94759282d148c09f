/* SPDX-License-Identifier: MIT
 *
 * What a reference means, as far as the set itself can tell: a global name, or a place
 * in a section. A reference to a global name must stay one (it may be interposed), a
 * place must be the corresponding place. In code that is decided by what the walk has
 * noted, which is complete only at its end: until then references wait.
 *
 * Two places may also differ where a linker would not care: in a section of mergeable
 * strings or constants, equal content is as good.
 */
#include "outliner/verify/verify.h"

#include <elf.h>
#include <string.h>

static bool in_section(const struct symbol *symbol)
{
    return symbol->section != SECTION_UNDEFINED && symbol->section < SECTION_COMMON;
}

/* The symbol's definition in the set: itself, or the one of its name. */
static bool find_definition(const struct side *side, struct named *named)
{
    const struct symbol *symbol =
        &side->objects->items[named->object]->symbols[named->symbol];
    if (symbol->section != SECTION_UNDEFINED)
        return in_section(symbol);
    uint32_t name = side->wanted[named->object][named->symbol];
    if (name == NO_INDEX)
        return false;
    *named = side->definitions.items[name];
    return in_section(&side->objects->items[named->object]->symbols[named->symbol]);
}

struct meaning meaning_of(const struct side *side, uint32_t object,
                          const struct reloc *reloc, uint8_t bias)
{
    const struct symbol *symbol = &side->objects->items[object]->symbols[reloc->symbol];
    struct meaning meaning = {.addend = wrapping_add(reloc->addend, bias)};
    if (reloc->symbol == 0 ||
        (symbol_is_local(symbol) && symbol->section == SECTION_ABSOLUTE)) {
        meaning.absolute = true;
        meaning.addend =
            (int64_t)((uint64_t)reloc->addend + (reloc->symbol ? symbol->value : 0));
        return meaning;
    }
    if (!symbol_is_local(symbol))
        meaning.name = symbol->name;
    meaning.section_symbol = symbol->type == STT_SECTION;
    struct named named = {object, reloc->symbol};
    meaning.placed = find_definition(side, &named);
    if (meaning.placed) {
        symbol = &side->objects->items[named.object]->symbols[named.symbol];
        meaning.visibility = ELF64_ST_VISIBILITY(symbol->other);
        meaning.object = named.object;
        meaning.section = symbol->section;
        meaning.offset = (int64_t)((uint64_t)meaning.addend + symbol->value);
    }
    return meaning;
}

struct meaning meaning_of_place(struct spot spot, int64_t offset)
{
    return (struct meaning){.placed = true,
                            .object = spot.object,
                            .section = spot.section,
                            .offset = offset};
}

/* --- mergeable contents --- */

/* The string or constant around an offset; false when there is none. */
static bool find_piece(const struct section *section, int64_t offset, uint64_t *start,
                       uint64_t *end)
{
    uint64_t size = section->data.size, unit = section->entry_size;
    if (!(section->flags & SHF_MERGE) || section->reloc_count || unit == 0 ||
        !section->data.at || offset < 0 || (uint64_t)offset >= size)
        return false;
    *start = (uint64_t)offset / unit * unit;
    *end = *start + unit;
    if (!(section->flags & SHF_STRINGS))
        return *end <= size;
    static const uint8_t zeros[8];
    if (unit > sizeof zeros)
        return false;
    while (*start >= unit && memcmp(section->data.at + *start - unit, zeros, unit) != 0)
        *start -= unit;
    while (*end <= size && memcmp(section->data.at + *end - unit, zeros, unit) != 0)
        *end += unit;
    return *end <= size;
}

static bool same_content(const struct verify *verify, const struct meaning *before,
                         const struct meaning *after)
{
    const struct section *old = spot_section(
        &verify->before, (struct spot){before->object, before->section, 0});
    const struct section *new =
        spot_section(&verify->after, (struct spot){after->object, after->section, 0});
    uint64_t old_start, old_end, new_start, new_end;
    if (old->flags != new->flags || old->entry_size != new->entry_size ||
        !find_piece(old, before->offset, &old_start, &old_end) ||
        !find_piece(new, after->offset, &new_start, &new_end))
        return false;
    uint64_t size = old_end - old_start;
    return size == new_end - new_start &&
           (uint64_t)before->offset - old_start ==
               (uint64_t)after->offset - new_start &&
           memcmp(old->data.at + old_start, new->data.at + new_start, size) == 0;
}

/* Linkers look up the piece by symbol and addend when the symbol is the section's, by
 * the symbol alone when it is another: those are no replacement for each other, unless
 * the addend is nothing but the bias. */
static bool merges_alike(const struct verify *verify, const struct meaning *before,
                         const struct meaning *after)
{
    const struct section *old = spot_section(
        &verify->before, (struct spot){before->object, before->section, 0});
    if (!(old->flags & SHF_MERGE) || before->section_symbol == after->section_symbol)
        return true;
    return before->section_symbol && after->addend == 0;
}

/* --- positions in code --- */

static const struct section_map *map_of(const struct verify *verify, struct spot before)
{
    return &verify->maps[before.object][before.section];
}

/* The first image of what is not before an old offset. */
static uint32_t first_image(const struct images *images, uint32_t before)
{
    uint32_t low = 0, high = images->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (images->items[middle].before < before)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool has_image(const struct images *images, uint32_t before, uint32_t after)
{
    uint32_t i = first_image(images, before);
    for (; i < images->count && images->items[i].before == before; i++)
        if (images->items[i].first <= after && after <= images->items[i].last)
            return true;
    return false;
}

bool is_known_end(const struct section_map *map, uint32_t before)
{
    uint32_t i = first_image(&map->ends, before);
    return i < map->ends.count && map->ends.items[i].before == before;
}

bool views_around(const struct verify *verify, struct spot before, struct spot after,
                  struct view *old, struct view *new)
{
    const struct section_map *map = map_of(verify, before);
    uint32_t back = 1;
    while (back < before.offset && back < MOST_INSN_BYTES &&
           !map_is_start(map, before.offset - back))
        back++;
    if (back > before.offset || back > after.offset)
        return false;
    before.offset -= back;
    after.offset -= back;
    return map_start(map, before.offset) == after.offset &&
           view_at(verify, &verify->before, before, old) && old->insn.length > back &&
           view_at(verify, &verify->after, after, new) && new->insn.length > back;
}

/* A position inside of an instruction that kept its length: `je 1f; lock; 1: cmpxchg`
 * jumps over a prefix. The function is sealed then, so the instruction kept its bytes,
 * too. */
static bool inside_agrees(const struct verify *verify, struct spot before,
                          struct spot after)
{
    struct view old, new;
    return views_around(verify, before, after, &old, &new) &&
           old.insn.length == new.insn.length &&
           memcmp(old.bytes, new.bytes, old.insn.length) == 0;
}

bool positions_agree(const struct verify *verify, struct spot before, struct spot after)
{
    const struct section_map *map = map_of(verify, before);
    if (before.object != after.object ||
        verify->after_of[before.object][before.section] != after.section)
        return false;
    if (map->identity)
        return before.offset == after.offset;
    if (before.offset > map->size || after.offset == NO_INDEX)
        return false;
    return map_start(map, before.offset) == after.offset ||
           has_image(&map->ends, before.offset, after.offset) ||
           inside_agrees(verify, before, after);
}

bool gone_agrees(const struct verify *verify, struct spot before, struct spot after)
{
    return verify->dropped && before.object == after.object &&
           verify->after_of[before.object][before.section] == after.section &&
           has_image(&map_of(verify, before)->gone, before.offset, after.offset);
}

/* It lies in data, then, which looks like an instruction: what else it could be keeps
 * its distance. */
static bool is_excused(struct verify *verify, const struct pending *pending)
{
    struct error ignored = {0};
    if (pending->suspect == 0)
        return false;
    const struct suspect *suspect = &verify->suspects.items[pending->suspect - 1];
    const struct section_map *map = map_of(verify, suspect->old);
    uint32_t start = suspect->island.before, end = start + suspect->island.size;
    return map_is_taken(map, start + 1, end) &&
           verify_distance(verify, &suspect->island, suspect->old, suspect->new,
                           &ignored);
}

static bool judge(struct verify *verify, const struct pending *pending,
                  struct error *err)
{
    if (positions_agree(verify, pending->before, pending->after) ||
        is_excused(verify, pending))
        return true;
    return verify_fail(verify, pending->from_before, pending->from_after, err,
                       "it refers to offset 0x%x of %s, which did not become 0x%x",
                       pending->before.offset,
                       spot_section(&verify->before, pending->before)->name,
                       pending->after.offset);
}

bool verify_pending(struct verify *verify, struct error *err)
{
    for (uint32_t i = 0; i < verify->pending.count; i++) {
        if (!judge(verify, &verify->pending.items[i], err))
            return false;
    }
    return true;
}

static bool is_position(int64_t offset)
{
    return offset >= 0 && offset < NO_INDEX;
}

/* --- agreement --- */

static bool places_agree(struct verify *verify, const struct meaning *before,
                         const struct meaning *after, const struct pending *from,
                         struct error *err)
{
    struct pending pending = *from;
    pending.before = (struct spot){before->object, before->section, 0};
    pending.after = (struct spot){after->object, after->section, 0};
    bool same_section =
        before->object == after->object &&
        verify->after_of[before->object][before->section] == after->section;
    const struct section *section = spot_section(&verify->before, pending.before);
    if (same_section && section_is_code(section) && is_position(before->offset) &&
        is_position(after->offset)) {
        pending.before.offset = (uint32_t)before->offset;
        pending.after.offset = (uint32_t)after->offset;
        if (verify->maps_complete)
            return judge(verify, &pending, err);
        /* The map of its own section may know already. */
        bool known = pending.before.object == from->from_before.object &&
                     pending.before.section == from->from_before.section &&
                     map_start(map_of(verify, pending.before), pending.before.offset) ==
                         pending.after.offset;
        if (!known)
            array_push(verify->arena, &verify->pending, pending);
        return true;
    }
    if (same_section && !section_is_code(section) && before->offset == after->offset)
        return merges_alike(verify, before, after) ||
               verify_fail(verify, from->from_before, from->from_after, err,
                           "a linker would find another piece of %s", section->name);
    /* Outside of its section a place is nobody's: the same as long as nothing moves. */
    if (same_section && before->offset == after->offset &&
        is_unchanged(verify, before->object, before->section))
        return true;
    return same_content(verify, before, after) ||
           verify_fail(verify, from->from_before, from->from_after, err,
                       "it refers to %s+0x%llx instead of %s+0x%llx",
                       spot_section(&verify->after, pending.after)->name,
                       (unsigned long long)after->offset, section->name,
                       (unsigned long long)before->offset);
}

static bool names_agree(struct verify *verify, const struct meaning *before,
                        const struct meaning *after, const struct pending *from,
                        struct error *err)
{
    if (!after->name || strcmp(before->name, after->name) != 0)
        return verify_fail(verify, from->from_before, from->from_after, err,
                           "it refers to '%s' instead of '%s'",
                           after->name ? after->name : "a local place", before->name);
    /* An addend that leads away from the name is a position like any other. */
    bool inside =
        before->addend != 0 && before->placed && after->placed &&
        section_is_code(spot_section(
            &verify->before, (struct spot){before->object, before->section, 0}));
    if (inside)
        return places_agree(verify, before, after, from, err);
    return before->addend == after->addend ||
           verify_fail(verify, from->from_before, from->from_after, err,
                       "it refers to '%s' with another addend", before->name);
}

bool meanings_agree(struct verify *verify, const struct meaning *before,
                    const struct meaning *after, struct spot from_before,
                    struct spot from_after, struct error *err)
{
    struct pending from = {.from_before = from_before, .from_after = from_after};
    if (before->absolute || after->absolute)
        return (before->absolute == after->absolute &&
                before->addend == after->addend) ||
               verify_fail(verify, from_before, from_after, err,
                           "it refers to another absolute value");
    if (before->name)
        return names_agree(verify, before, after, &from, err);
    /* Local symbols that stand for nothing: all that is left is the addend. */
    if (!before->placed && !after->placed && !after->name &&
        before->addend == after->addend)
        return true;
    if (!before->placed || !after->placed)
        return verify_fail(verify, from_before, from_after, err,
                           "it refers to '%s', which is not in the output",
                           after->name ? after->name : "nothing");
    /* A local place may have been given a name, but not one that others can take over.
     */
    if (after->name && after->visibility != STV_HIDDEN &&
        after->visibility != STV_INTERNAL)
        return verify_fail(verify, from_before, from_after, err,
                           "it refers to '%s', which others can redefine", after->name);
    return places_agree(verify, before, after, &from, err);
}
