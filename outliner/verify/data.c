/* SPDX-License-Identifier: MIT
 *
 * Everything that is not changed code: each byte must be what it was, and each
 * relocation must mean what it meant. The exceptions are jump tables. An entry is a
 * distance from a base in code or from the table itself, so its bytes or its addend may
 * change; what it leads to must be the same instruction. Which tables there are is
 * asked of the lifter, about `before`; that it is asked at all is this file's only debt
 * to the front end.
 */
#include "outliner/verify/verify.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

static bool same_reloc_fields(const struct section *a, const struct section *b)
{
    if (a->reloc_count != b->reloc_count)
        return false;
    for (uint32_t i = 0; i < a->reloc_count; i++)
        if (a->relocs[i].offset != b->relocs[i].offset ||
            a->relocs[i].type != b->relocs[i].type)
            return false;
    return true;
}

static bool same_bytes(const struct section *a, const struct section *b, uint64_t start,
                       uint64_t end)
{
    return start >= end || !a->data.at || !b->data.at ||
           memcmp(a->data.at + start, b->data.at + start, end - start) == 0;
}

/* --- unchanged code --- */

static bool calls_helpers(const struct verify *verify, uint32_t object,
                          const struct section *section)
{
    for (uint32_t i = 0; i < section->reloc_count; i++) {
        struct meaning meaning =
            meaning_of(&verify->after, object, &section->relocs[i], 0);
        if (meaning.placed &&
            verify->before_of[meaning.object][meaning.section] == NO_INDEX)
            return true;
    }
    return false;
}

bool is_unchanged(const struct verify *verify, uint32_t object, uint32_t section)
{
    struct spot old = {object, section, 0};
    struct spot new = {object, verify->after_of[object][section], 0};
    const struct section *a = spot_section(&verify->before, old);
    const struct section *b = spot_section(&verify->after, new);
    return a->data.size == b->data.size && same_reloc_fields(a, b) &&
           same_bytes(a, b, 0, a->data.size) && !calls_helpers(verify, object, b);
}

/* Takes `at` forward, instruction by instruction, to the one that the field lies in.
 * Returns false when it lies in none: the section does not decode up to there. */
static bool find_bias(const struct verify *verify, struct spot *at, uint64_t field,
                      uint8_t *bias)
{
    struct view view;
    while (view_at(verify, &verify->before, *at, &view)) {
        if (field < (uint64_t)at->offset + view.insn.length) {
            *bias = verify->target->reloc_bias(&view.insn, field);
            return true;
        }
        at->offset += view.insn.length;
    }
    return false;
}

/* What a field of undecoded code counts from is unknown, except that one with a symbol
 * of its own and the usual addend of x86-64 means the symbol itself: nothing else that
 * leads into changed code is left unfrozen. */
static uint8_t usual_bias(const struct verify *verify, uint32_t object,
                          const struct reloc *reloc)
{
    enum { FIELD = 4 }; /* bytes */
    const struct symbol *symbol =
        &verify->before.objects->items[object]->symbols[reloc->symbol];
    bool biased = verify->target->code_align == 1;
    return biased && symbol->type != STT_SECTION && reloc->addend == -FIELD ? FIELD : 0;
}

static uint8_t bias_of(const struct verify *verify, struct spot *at,
                       const struct reloc *reloc)
{
    uint8_t bias = 0;
    if (is_relative(verify, reloc) && !find_bias(verify, at, reloc->offset, &bias))
        bias = usual_bias(verify, at->object, reloc);
    return bias;
}

bool verify_reloc(struct verify *verify, struct spot old, struct spot new,
                  const struct reloc *a, const struct reloc *b, uint8_t bias,
                  struct error *err)
{
    struct meaning before = meaning_of(&verify->before, old.object, a, bias);
    struct meaning after = meaning_of(&verify->after, new.object, b, bias);
    old.offset = (uint32_t)a->offset;
    new.offset = (uint32_t)b->offset;
    return meanings_agree(verify, &before, &after, old, new, err);
}

bool verify_unchanged(struct verify *verify, uint32_t object, uint32_t section,
                      struct error *err)
{
    struct spot old = {object, section, 0};
    struct spot new = {object, verify->after_of[object][section], 0};
    const struct section *a = spot_section(&verify->before, old);
    const struct section *b = spot_section(&verify->after, new);
    struct spot at = old;
    for (uint32_t i = 0; i < a->reloc_count; i++) {
        uint8_t bias = bias_of(verify, &at, &a->relocs[i]);
        if (!verify_reloc(verify, old, new, &a->relocs[i], &b->relocs[i], bias, err))
            return false;
    }
    return true;
}

/* --- jump tables --- */

struct tables {
    struct known_table *items; /* sorted by place, as we go */
    uint32_t count, next;
};

static int compare_tables(const void *a, const void *b)
{
    const struct jump_table *x = &((const struct known_table *)a)->table;
    const struct jump_table *y = &((const struct known_table *)b)->table;
    if (x->object != y->object)
        return x->object < y->object ? -1 : 1;
    if (x->section != y->section)
        return x->section < y->section ? -1 : 1;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->count > y->count) - (x->count < y->count);
}

static struct tables sort_tables(struct arena *arena, const struct known_tables *known)
{
    struct tables tables = {.count = known->count};
    tables.items = arena_copy(arena, known->items, known->count * sizeof *known->items);
    if (tables.count)
        qsort(tables.items, tables.count, sizeof *tables.items, compare_tables);
    return tables;
}

/* The new place of an instruction of changed or unchanged code; NO_INDEX: none. */
static uint32_t new_start(const struct verify *verify, struct spot old)
{
    const struct section_map *map = &verify->maps[old.object][old.section];
    if (map->identity)
        return old.offset;
    return map->walked ? map_start(map, old.offset) : NO_INDEX;
}

static bool table_differs(const struct verify *verify, const struct jump_table *table,
                          uint32_t entry, struct error *err)
{
    struct spot old = {table->object, table->section,
                       table->offset + entry * table->entry_size};
    struct spot new = old;
    new.section = verify->after_of[old.object][old.section];
    return verify_fail(verify, old, new, err,
                       "entry %u of a jump table leads somewhere else", entry);
}

/* Entries without relocations: base + (entry << shift). */
static bool raw_agrees(const struct verify *verify, const struct known_table *known,
                       struct error *err)
{
    const struct jump_table *table = &known->table;
    struct spot base = {table->object, known->code, table->base}, old = base, new = base;
    new.section = verify->after_of[base.object][base.section];
    uint32_t start = new_start(verify, base);
    struct spot data = {table->object, verify->after_of[table->object][table->section],
                        0};
    const uint8_t *bytes = spot_section(&verify->after, data)->data.at + table->offset;
    for (uint32_t i = 0; i < table->count; i++, bytes += table->entry_size) {
        int64_t entry = table->is_signed ? load_le_signed(bytes, table->entry_size)
                                         : (int64_t)load_le(bytes, table->entry_size);
        int64_t target = (int64_t)start + entry * (INT64_C(1) << table->shift);
        old.offset = table->targets[i];
        new.offset = target < 0 || target > NO_INDEX ? NO_INDEX : (uint32_t)target;
        if (start == NO_INDEX || !positions_agree(verify, old, new))
            return table_differs(verify, table, i, err);
    }
    return true;
}

/* The table around a place in data, or NULL. Asked for ascending places. */
static const struct jump_table *table_at(struct tables *tables, struct spot spot)
{
    for (; tables->next < tables->count; tables->next++) {
        const struct jump_table *table = &tables->items[tables->next].table;
        uint64_t end = table->offset + (uint64_t)table->count * table->entry_size;
        bool passed = table->object < spot.object ||
                      (table->object == spot.object && table->section < spot.section) ||
                      (table->object == spot.object && table->section == spot.section &&
                       end <= spot.offset);
        if (!passed) {
            bool around = table->object == spot.object &&
                          table->section == spot.section &&
                          table->offset <= spot.offset;
            return around ? table : NULL;
        }
    }
    return NULL;
}

/* Where an entry that says "position - table" leads: its relocation counts from its own
 * place, so `distance` from the table's start is too much. */
static bool relative_target(const struct side *side, uint32_t object,
                            const struct reloc *reloc, uint32_t distance,
                            struct spot *out)
{
    struct meaning meaning = meaning_of(side, object, reloc, 0);
    int64_t target = meaning.offset - (int64_t)distance;
    *out = (struct spot){meaning.object, meaning.section, (uint32_t)target};
    return meaning.placed && target >= 0 && target < NO_INDEX &&
           section_is_code(spot_section(side, *out));
}

/* Both are read from the relocations: of the lifter's table nothing counts here but its
 * start. An entry may lead into any section of code (.cold parts). */
static bool relative_agrees(struct verify *verify, const struct jump_table *table,
                            struct spot old, const struct reloc *a,
                            const struct reloc *b, struct error *err)
{
    uint32_t distance = old.offset - table->offset;
    struct spot before, after;
    return (relative_target(&verify->before, old.object, a, distance, &before) &&
            relative_target(&verify->after, old.object, b, distance, &after) &&
            positions_agree(verify, before, after)) ||
           table_differs(verify, table, distance / table->entry_size, err);
}

/* --- data --- */

/* Bytes between raw tables are what they were. */
static bool bytes_agree(struct verify *verify, const struct tables *tables,
                        struct spot old, struct spot new, struct error *err)
{
    const struct section *a = spot_section(&verify->before, old);
    const struct section *b = spot_section(&verify->after, new);
    uint64_t start = 0;
    for (uint32_t i = tables->next; i < tables->count; i++) {
        const struct jump_table *table = &tables->items[i].table;
        if (table->object != old.object || table->section != old.section)
            break;
        if (table->kind != TABLE_RAW)
            continue;
        if (!same_bytes(a, b, start, table->offset))
            return verify_fail(verify, old, new, err, "the data differs");
        start = table->offset + (uint64_t)table->count * table->entry_size;
        if (!raw_agrees(verify, &tables->items[i], err))
            return false;
    }
    return same_bytes(a, b, start, a->data.size) ||
           verify_fail(verify, old, new, err, "the data differs");
}

static bool check_data(struct verify *verify, struct tables *tables, struct spot old,
                       struct error *err)
{
    struct spot new = {old.object, verify->after_of[old.object][old.section], 0};
    const struct section *a = spot_section(&verify->before, old);
    const struct section *b = spot_section(&verify->after, new);
    bool same_fields = a->data.size == b->data.size && same_reloc_fields(a, b);
    bool same = same_fields && same_bytes(a, b, 0, a->data.size);
    /* Call-site tables that have changed are judged with their unwind entries. */
    if (!same && holds_tables(verify, old.object, old.section))
        return true;
    if (!same_fields)
        return verify_fail(verify, old, new, err, "size or relocations differ");
    table_at(tables, old);
    if (!bytes_agree(verify, tables, old, new, err))
        return false;
    for (uint32_t i = 0; i < a->reloc_count; i++) {
        old.offset = new.offset = (uint32_t)a->relocs[i].offset;
        const struct jump_table *table = table_at(tables, old);
        bool relative = table && table->kind == TABLE_RELOC_RELATIVE;
        bool fine = relative ? relative_agrees(verify, table, old, &a->relocs[i],
                                               &b->relocs[i], err)
                             : verify_reloc(verify, old, new, &a->relocs[i],
                                            &b->relocs[i], 0, err);
        if (!fine)
            return false;
    }
    return true;
}

bool verify_find_tables(struct verify *verify, struct error *err)
{
    struct arena *stage = arena_new();
    struct program *program;
    struct lift_options options = {.only_tables = true,
                                   .frames = verify->before.frames,
                                   .lsdas = verify->before.lsdas};
    bool lifted = program_lift(stage, verify->before.objects, verify->rows, &options,
                               &program, err);
    verify->tables_arena = arena_new();
    if (lifted)
        verify->tables = program_tables(verify->tables_arena, program);
    arena_free(stage);
    return lifted;
}

bool verify_data(struct verify *verify, struct error *err)
{
    struct tables tables = sort_tables(verify->arena, &verify->tables);
    for (uint32_t i = verify->first; i < verify->end; i++) {
        const struct object *object = verify->before.objects->items[i];
        for (uint32_t s = 1; s < object->section_count; s++) {
            const struct section *section = &object->sections[s];
            struct spot spot = {i, s, 0};
            if (!section_is_code(section) && !section_is_frame(section) &&
                !is_debug_read(verify, i, s) &&
                !check_data(verify, &tables, spot, err))
                return false;
        }
    }
    return true;
}
