/* SPDX-License-Identifier: MIT
 *
 * The call-site tables of an object: where they lie, and which sections of them can be
 * taken apart.
 *
 * GCC puts the tables of all functions of a unit into one section, back to back, and
 * nothing says how long one is; it ends where the next one starts. So a section is
 * understood when all that refers to it is known: the FDEs of its tables, each once,
 * and symbols that name a table's start. Then every table may grow or shrink alone.
 * Behind a table there may lie one that nobody refers to any more (its function was in
 * a COMDAT group that was dropped); it is carried along as bytes.
 */
#include "lsda_internal.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

/* --- where they lie --- */

static int by_place(const void *left, const void *right)
{
    const struct lsda *a = left, *b = right;
    if (a->section != b->section)
        return a->section < b->section ? -1 : 1;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return (a->fde > b->fde) - (a->fde < b->fde);
}

static bool can_hold_tables(const struct section *section)
{
    return section->type != SHT_NOBITS && section->data.at &&
           (section->flags & SHF_ALLOC) &&
           !(section->flags & (SHF_EXECINSTR | SHF_MERGE)) &&
           !section_is_frame(section) && section->data.size < UINT32_MAX;
}

/* The personalities that are known to read this format. */
static bool personality_is_known(const struct object *object, const struct cie *cie)
{
    static const char *const known[] = {
        "__gxx_personality_v0",  "__gcc_personality_v0",      "rust_eh_personality",
        "__gnat_personality_v0", "__gnu_objc_personality_v0", "__objc_personality_v0",
        "__gdc_personality_v0",  "__gccgo_personality_v0",
    };
    if (!cie->has_personality || cie->personality == 0 ||
        cie->personality >= object->symbol_count)
        return false;
    const char *name = object->symbols[cie->personality].name;
    if (strncmp(name, "DW.ref.", 7) == 0)
        name += 7;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(name, known[i]) == 0)
            return true;
    }
    return false;
}

/* Everything but what the bytes say. */
static bool is_fit(const struct object *object, const struct frames *frames,
                   const struct lsda *lsda)
{
    const struct fde *fde = &frames->fdes[lsda->fde];
    return can_hold_tables(&object->sections[lsda->section]) &&
           fde->code_section != NO_INDEX && fde->refusal == REFUSAL_NONE &&
           personality_is_known(object, &frames->cies[fde->cie]) &&
           lsda->start < lsda->end; /* else the next one lies there, too */
}

/* --- what refers to them --- */

struct sections {
    uint32_t *references; /* by section: relocations that lead there */
    uint32_t *tables;     /* by section: the FDEs' among them */
    bool *bad;
};

static void count_references(const struct object *object, struct sections *sections)
{
    for (uint32_t s = 1; s < object->section_count; s++) {
        const struct section *section = &object->sections[s];
        for (uint32_t i = 0; i < section->reloc_count; i++) {
            uint32_t symbol = section->relocs[i].symbol;
            uint32_t to = symbol < object->symbol_count
                              ? object->symbols[symbol].section
                              : SECTION_UNDEFINED;
            if (to < object->section_count)
                sections->references[to]++;
        }
    }
}

/* The first table that does not lie before this place. */
static uint32_t first_table(const struct lsdas *lsdas, uint32_t section,
                            uint64_t offset)
{
    uint32_t low = 0, high = lsdas->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct lsda *lsda = &lsdas->items[middle];
        bool before = lsda->section < section ||
                      (lsda->section == section && lsda->start < offset);
        if (before)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint32_t lsdas_in_section(const struct lsdas *lsdas, uint32_t section)
{
    return first_table(lsdas, section, 0);
}

static bool starts_a_table(const struct lsdas *lsdas, uint32_t section, uint64_t offset)
{
    uint32_t i = first_table(lsdas, section, offset);
    return i < lsdas->count && lsdas->items[i].section == section &&
           lsdas->items[i].start == offset;
}

/* What marks the bytes behind it as data (AAELF64, 4.5.5 "Mapping symbols"). GNU as
 * puts one wherever it fills up for alignment, in the middle of a table, too. */
static bool marks_data(const struct object *object, const struct symbol *symbol)
{
    return object->machine == EM_AARCH64 && strncmp(symbol->name, "$d", 2) == 0 &&
           (symbol->name[2] == '\0' || symbol->name[2] == '.') && symbol->size == 0 &&
           symbol->bind == STB_LOCAL && symbol->type == STT_NOTYPE;
}

/* Symbols move with their tables; what names another place would be lost. */
static void check_symbols(const struct object *object, const struct lsdas *lsdas,
                          struct sections *sections)
{
    for (uint32_t i = 1; i < object->symbol_count; i++) {
        const struct symbol *symbol = &object->symbols[i];
        if (symbol->section == SECTION_UNDEFINED ||
            symbol->section >= object->section_count || symbol->type == STT_SECTION ||
            sections->tables[symbol->section] == 0 || marks_data(object, symbol))
            continue;
        if (symbol->bind != STB_LOCAL || symbol->size != 0 ||
            !starts_a_table(lsdas, symbol->section, symbol->value))
            sections->bad[symbol->section] = true;
    }
}

/* --- all of them --- */

static uint32_t gather(const struct frames *frames, struct lsda *items)
{
    uint32_t count = 0;
    for (uint32_t f = 0; f < frames->fde_count; f++) {
        const struct fde *fde = &frames->fdes[f];
        if (fde->has_lsda && fde->lsda_section != NO_INDEX)
            items[count++] = (struct lsda){
                .fde = f, .section = fde->lsda_section, .start = fde->lsda_offset};
    }
    if (count)
        qsort(items, count, sizeof *items, by_place);
    return count;
}

static void read_all(struct arena *arena, const struct object *object,
                     const struct frames *frames, struct lsda *items, uint32_t count,
                     struct sections *sections)
{
    for (uint32_t i = 0; i < count; i++) {
        struct lsda *lsda = &items[i];
        bool last = i + 1 == count || items[i + 1].section != lsda->section;
        lsda->end = last ? (uint32_t)object->sections[lsda->section].data.size
                         : items[i + 1].start;
        sections->tables[lsda->section]++;
        if (is_fit(object, frames, lsda))
            lsda_read(arena, object, &frames->fdes[lsda->fde], lsda);
        else
            lsda->refusal = REFUSAL_EXCEPTION_TABLE;
        if (lsda->refusal != REFUSAL_NONE)
            sections->bad[lsda->section] = true;
    }
}

void lsdas_read(struct arena *arena, const struct object *object,
                const struct frames *frames, struct lsdas *out)
{
    struct lsda *items = arena_new_array(arena, struct lsda, frames->fde_count);
    uint32_t *of_fde = arena_new_array(arena, uint32_t, frames->fde_count);
    uint32_t count = gather(frames, items);
    memset(of_fde, 0xff, frames->fde_count * sizeof *of_fde);
    *out = (struct lsdas){items, count, of_fde};
    if (count == 0)
        return;
    struct arena *stage = arena_new();
    struct sections sections = {
        .references = arena_new_array(stage, uint32_t, object->section_count),
        .tables = arena_new_array(stage, uint32_t, object->section_count),
        .bad = arena_new_array(stage, bool, object->section_count)};
    read_all(arena, object, frames, items, count, &sections);
    count_references(object, &sections);
    check_symbols(object, out, &sections);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t section = items[i].section;
        of_fde[items[i].fde] = i;
        if (sections.bad[section] ||
            sections.references[section] != sections.tables[section])
            items[i].refusal = REFUSAL_EXCEPTION_TABLE;
    }
    arena_free(stage);
}

const struct call_site *lsda_site_at(const struct lsda *lsda, uint32_t offset)
{
    uint32_t low = 0, high = lsda->site_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (lsda->sites[middle].end <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < lsda->site_count && lsda->sites[low].start <= offset;
    return found ? &lsda->sites[low] : NULL;
}
