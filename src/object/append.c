/* SPDX-License-Identifier: MIT
 *
 * Sections of one object put end to end, as a linker does it. What was said of the
 * start of one that has moved is said of a place in the middle then: symbols have new
 * values, and relocations against its section symbol, which means its start, new
 * addends (both machines have RELA, and no field looks at the addend alone).
 *
 * Only plain sections move: in no group, linked to none. Padding belongs to whoever
 * knows code, so nothing is appended that would need some.
 */
#include "mo/array.h"
#include "mo/object.h"

#include <elf.h>
#include <string.h>

struct appending {
    struct arena *arena; /* of the result */
    const struct object *old;
    const uint32_t *onto; /* by section */
    uint64_t *base;       /* by section: where it begins in the one that takes it */
    uint32_t
        *section_at;     /* by section: its index in the result, or that of its taker */
    uint32_t *symbol_at; /* by symbol: its index in the result */
    uint32_t first;      /* symbol that changes; those before it stay what they were */
    struct section *sections;
    uint32_t section_count;
    struct symbol *symbols;
    uint32_t symbol_count;
};

static bool moves(const struct appending *appending, uint32_t section)
{
    return section < appending->old->section_count && appending->onto[section] != 0;
}

static void place_sections(struct appending *appending)
{
    const struct object *old = appending->old;
    uint64_t *size = arena_new_array(appending->arena, uint64_t, old->section_count);
    appending->section_count = 1;
    for (uint32_t s = 1; s < old->section_count; s++) {
        size[s] = old->sections[s].data.size;
        if (!moves(appending, s)) {
            appending->section_at[s] = appending->section_count++;
            continue;
        }
        uint32_t taker = appending->onto[s];
        appending->section_at[s] = appending->section_at[taker];
        appending->base[s] = size[taker];
        size[taker] += size[s];
    }
}

/* --- symbols --- */

/* Of a section symbol: where the index of the one that says the same in the result is
 * kept, by section of the result. NULL: the symbol is none. */
static uint32_t *section_symbol(const struct appending *appending, uint32_t *symbols,
                                const struct symbol *symbol)
{
    if (symbol->type != STT_SECTION || symbol->section >= appending->old->section_count)
        return NULL;
    return &symbols[appending->section_at[symbol->section]];
}

/* Sections that were put together need one section symbol; others keep what they have.
 */
static void move_symbols(struct appending *appending)
{
    const struct object *old = appending->old;
    bool *joined = arena_new_array(appending->arena, bool, old->section_count);
    uint32_t *ones = arena_new_array(appending->arena, uint32_t, old->section_count);
    for (uint32_t s = 1; s < old->section_count; s++)
        joined[appending->section_at[s]] |= moves(appending, s);
    appending->symbols =
        arena_new_array(appending->arena, struct symbol, old->symbol_count);
    appending->symbols[0] = old->symbols[0];
    appending->symbol_count = 1;
    appending->first = old->symbol_count;
    for (uint32_t i = 1; i < old->symbol_count; i++) {
        struct symbol symbol = old->symbols[i];
        uint32_t *one = section_symbol(appending, ones, &symbol);
        bool shared = one && joined[appending->section_at[symbol.section]];
        if ((shared || moves(appending, symbol.section)) && i < appending->first)
            appending->first = i;
        if (shared && *one) {
            appending->symbol_at[i] = *one;
            continue;
        }
        if (symbol.section < old->section_count) {
            symbol.value += one ? 0 : appending->base[symbol.section];
            symbol.section = appending->section_at[symbol.section];
        }
        if (shared)
            *one = appending->symbol_count;
        appending->symbol_at[i] = appending->symbol_count;
        appending->symbols[appending->symbol_count++] = symbol;
    }
}

/* --- relocations --- */

static struct reloc move_reloc(const struct appending *appending, struct reloc reloc)
{
    const struct symbol *symbol = &appending->old->symbols[reloc.symbol];
    if (symbol->type == STT_SECTION && moves(appending, symbol->section))
        reloc.addend += (int64_t)appending->base[symbol->section];
    reloc.symbol = appending->symbol_at[reloc.symbol];
    return reloc;
}

static bool changes(const struct appending *appending, const struct section *section)
{
    for (uint32_t i = 0; i < section->reloc_count; i++) {
        if (section->relocs[i].symbol >= appending->first)
            return true;
    }
    return false;
}

static void move_relocs(const struct appending *appending, struct section *section)
{
    if (!changes(appending, section))
        return;
    struct reloc *relocs =
        arena_new_array(appending->arena, struct reloc, section->reloc_count);
    for (uint32_t i = 0; i < section->reloc_count; i++)
        relocs[i] = move_reloc(appending, section->relocs[i]);
    section->relocs = relocs;
}

/* --- sections --- */

/* `section` has been moved already; `taken` is as it was. */
static void take(const struct appending *appending, struct section *section,
                 uint32_t taken)
{
    const struct section *from = &appending->old->sections[taken];
    uint64_t base = appending->base[taken];
    uint32_t count = section->reloc_count + from->reloc_count;
    uint8_t *data = arena_alloc(appending->arena, base + from->data.size);
    struct reloc *relocs = arena_new_array(appending->arena, struct reloc, count);
    memcpy(data, section->data.at, base);
    memcpy(data + base, from->data.at, from->data.size);
    if (section->reloc_count)
        memcpy(relocs, section->relocs, section->reloc_count * sizeof *relocs);
    for (uint32_t i = 0; i < from->reloc_count; i++) {
        struct reloc reloc = move_reloc(appending, from->relocs[i]);
        reloc.offset += base;
        relocs[section->reloc_count + i] = reloc;
    }
    section->data = (struct bytes){data, base + from->data.size};
    section->relocs = relocs;
    section->reloc_count = count;
}

static void move_sections(struct appending *appending)
{
    const struct object *old = appending->old;
    appending->sections =
        arena_new_array(appending->arena, struct section, appending->section_count);
    appending->sections[0] = old->sections[0];
    for (uint32_t s = 1; s < old->section_count; s++) {
        struct section *out = &appending->sections[appending->section_at[s]];
        if (moves(appending, s)) {
            take(appending, out, s);
            continue;
        }
        *out = old->sections[s];
        out->link = appending->section_at[out->link];
        if (out->flags & SHF_INFO_LINK)
            out->info = appending->section_at[out->info];
        move_relocs(appending, out);
    }
}

static const struct group *move_groups(const struct appending *appending)
{
    const struct object *old = appending->old;
    struct group *groups =
        arena_copy(appending->arena, old->groups, old->group_count * sizeof *groups);
    for (uint32_t g = 0; g < old->group_count; g++) {
        uint32_t *members = arena_copy(appending->arena, groups[g].members,
                                       groups[g].member_count * sizeof *members);
        for (uint32_t i = 0; i < groups[g].member_count; i++)
            members[i] = appending->section_at[members[i]];
        groups[g].members = members;
        groups[g].signature = appending->symbol_at[groups[g].signature];
    }
    return groups;
}

bool section_can_follow(const struct section *section, const struct section *next)
{
    const uint64_t special = SHF_INFO_LINK | SHF_LINK_ORDER | SHF_MERGE | SHF_GROUP;
    return strcmp(section->name, next->name) == 0 && section->type == next->type &&
           section->type == SHT_PROGBITS && section->flags == next->flags &&
           (section->flags & special) == 0 && section->align == next->align &&
           section->data.size % section->align == 0 &&
           next->data.size % next->align == 0 &&
           section->entry_size == next->entry_size && section->group == NO_INDEX &&
           next->group == NO_INDEX && !section->link && !next->link && !section->info &&
           !next->info && !section->compressed && !next->compressed;
}

bool object_append(struct arena *arena, const struct object *object,
                   const uint32_t *onto, const struct object **out, struct error *err)
{
    struct appending appending = {
        .arena = arena,
        .old = object,
        .onto = onto,
        .base = arena_new_array(arena, uint64_t, object->section_count),
        .section_at = arena_new_array(arena, uint32_t, object->section_count),
        .symbol_at = arena_new_array(arena, uint32_t, object->symbol_count)};
    place_sections(&appending);
    move_symbols(&appending);
    move_sections(&appending);
    struct object *copy = arena_copy(arena, object, sizeof *object);
    copy->groups = move_groups(&appending);
    copy->sections = appending.sections;
    copy->section_count = appending.section_count;
    copy->symbols = appending.symbols;
    copy->symbol_count = appending.symbol_count;
    *out = copy;
    return object_check(copy, err);
}
