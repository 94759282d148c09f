/* SPDX-License-Identifier: MIT
 *
 * What each function costs, in bytes of code: its own, and its share of the helpers
 * that it enters. Measured on objects, not taken from a plan: so it is right for any
 * number of rounds, and for what an earlier run left in the input.
 *
 * A helper's bytes are divided evenly over the places that enter it. Helpers enter
 * other helpers, so this is done from the innermost outwards: one that enters nothing
 * (any more) hands on all that it costs. What is divided is whole bytes, and their sum
 * stays what it was.
 *
 * A tail that stays in place is no helper: it is the cost of the function that keeps
 * it.
 */
#include "mo/costs.h"

#include "mo/array.h"
#include "mo/program.h"
#include "mo/table.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

struct counter {
    struct arena *session;
    const struct objects *objects;
    array_of(struct cost) items;
    array_of(struct entry) entries;
    struct table *helper_names; /* of those that other objects can enter */
    array_of(uint32_t) named;   /* index in items, by number of the name */
};

/* --- functions --- */

static bool is_function(const struct object *object, const struct symbol *symbol)
{
    return (symbol->type == STT_FUNC || symbol->type == STT_GNU_IFUNC) &&
           symbol->size > 0 && symbol->section != SECTION_UNDEFINED &&
           symbol->section < object->section_count &&
           section_is_code(&object->sections[symbol->section]);
}

struct named_range {
    uint32_t section, symbol;
    uint64_t start, size;
    uint8_t rank; /* the lower, the more it is the name of the function */
};

/* Whom others can see, then who is local, then who is hidden: the rewriting puts hidden
 * global names beside local ones where helpers want them, and the function's name has to
 * be the same before and after. */
static uint8_t rank_of(const struct symbol *symbol)
{
    if (symbol_is_local(symbol))
        return 1;
    unsigned visibility = ELF64_ST_VISIBILITY(symbol->other);
    return visibility == STV_HIDDEN || visibility == STV_INTERNAL ? 2 : 0;
}

/* By place; of aliases the largest, then by rank, then the first. */
static int compare_ranges(const void *left, const void *right)
{
    const struct named_range *a = left, *b = right;
    if (a->section != b->section)
        return a->section < b->section ? -1 : 1;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    if (a->size != b->size)
        return a->size > b->size ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return a->symbol < b->symbol ? -1 : a->symbol > b->symbol;
}

static void add_functions(struct counter *counter, uint32_t index)
{
    const struct object *object = counter->objects->items[index];
    array_of(struct named_range) ranges = {0};
    for (uint32_t i = 1; i < object->symbol_count; i++) {
        const struct symbol *symbol = &object->symbols[i];
        if (is_function(object, symbol))
            array_push(counter->session, &ranges,
                       ((struct named_range){symbol->section, i, symbol->value,
                                             symbol->size, rank_of(symbol)}));
    }
    if (ranges.count > 1)
        qsort(ranges.items, ranges.count, sizeof *ranges.items, compare_ranges);
    uint32_t section = 0;
    uint64_t end = 0;
    for (uint32_t i = 0; i < ranges.count; i++) {
        const struct named_range *range = &ranges.items[i];
        if (range->section == section && range->start < end)
            continue; /* an alias, or inside of another one */
        section = range->section;
        end = range->start + range->size;
        const char *name = object->symbols[range->symbol].name;
        struct cost cost = {
            .name = name,
            .is_helper = strncmp(name, HELPER_PREFIX, strlen(HELPER_PREFIX)) == 0,
            .object = index,
            .section = section,
            .start = range->start,
            .bytes = range->size,
        };
        array_push(counter->session, &counter->items, cost);
    }
}

uint32_t costs_at(const struct costs *costs, uint32_t object, uint32_t section,
                  uint64_t offset)
{
    uint32_t low = 0, high = costs->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct cost *cost = &costs->items[middle];
        bool before = cost->object != object     ? cost->object < object
                      : cost->section != section ? cost->section < section
                                                 : cost->start <= offset;
        if (before)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return NO_INDEX;
    const struct cost *cost = &costs->items[low - 1];
    bool inside = cost->object == object && cost->section == section &&
                  offset - cost->start < cost->bytes;
    return inside ? low - 1 : NO_INDEX;
}

/* --- who enters which helper --- */

static void name_helpers(struct counter *counter)
{
    counter->helper_names = table_new(counter->session);
    for (uint32_t i = 0; i < counter->items.count; i++) {
        const struct cost *cost = &counter->items.items[i];
        if (!cost->is_helper)
            continue;
        uint32_t number = table_intern_string(counter->helper_names, cost->name);
        if (number == counter->named.count)
            array_push(counter->session, &counter->named, i);
    }
}

/* The position in a code section that a call or jump means; NO_INDEX as the section
 * when that is elsewhere, or nothing is known of the relocation. In the encodings of
 * both machines the field of a call or jump is the instruction's end, and nothing else
 * refers to helpers. */
static struct referent aim_of(const struct object *object, const struct reloc *reloc)
{
    const struct target *target = target_of(object->machine);
    const struct reloc_kind *kind = target ? target->reloc_kind(reloc->type) : NULL;
    if (reloc->symbol == 0 || !kind ||
        (kind->kind != RELOC_CALL && kind->kind != RELOC_PC))
        return (struct referent){.section = NO_INDEX};
    struct insn field = {.offset = (uint32_t)reloc->offset,
                         .length = kind->size,
                         .traits = INSN_PC_RELATIVE};
    return program_referent(object, reloc, target->reloc_bias(&field, reloc->offset));
}

/* Ours are entered by their names; where one is the end of another, or another object
 * holds it, there are other ways. */
static bool find_entry(const struct counter *counter, const struct costs *costs,
                       uint32_t object, const struct reloc *reloc, struct entry *out)
{
    const struct object *of = counter->objects->items[object];
    struct referent aim = aim_of(of, reloc);
    out->helper = NO_INDEX;
    out->skipped = 0;
    if (aim.local && aim.offset >= 0) {
        uint64_t offset = (uint64_t)aim.offset;
        out->helper = costs_at(costs, object, aim.section, offset);
        if (out->helper != NO_INDEX)
            out->skipped = offset - costs->items[out->helper].start;
    } else if (!aim.local && aim.section != NO_INDEX) {
        uint32_t number =
            table_find_string(counter->helper_names, of->symbols[aim.symbol].name);
        if (number != NO_INDEX)
            out->helper = counter->named.items[number];
    }
    return out->helper != NO_INDEX && costs->items[out->helper].is_helper;
}

static void add_entries(struct counter *counter, const struct costs *costs,
                        uint32_t index)
{
    const struct object *object = counter->objects->items[index];
    for (uint32_t i = 1; i < object->section_count; i++) {
        const struct section *section = &object->sections[i];
        for (uint32_t j = 0; section_is_code(section) && j < section->reloc_count;
             j++) {
            struct entry entry = {.offset = section->relocs[j].offset};
            if (!find_entry(counter, costs, index, &section->relocs[j], &entry))
                continue;
            entry.caller = costs_at(costs, index, i, entry.offset);
            if (entry.caller != NO_INDEX && entry.caller != entry.helper)
                array_push(counter->session, &counter->entries, entry);
        }
    }
}

static int compare_entries(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    if (a->helper != b->helper)
        return a->helper < b->helper ? -1 : 1;
    if (a->caller != b->caller)
        return a->caller < b->caller ? -1 : 1;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* --- shares --- */

static void hand_on(struct costs *costs, uint32_t helper, uint32_t *open)
{
    struct cost *from = &costs->items[helper];
    uint64_t all = from->bytes + from->shared, count = from->entry_count;
    for (uint64_t i = 0; i < count; i++) {
        uint32_t caller = costs->entries[from->first_entry + i].caller;
        costs->items[caller].shared += all * (i + 1) / count - all * i / count;
        open[caller]--;
    }
}

/* open[i]: entries of function i into helpers that have not handed on yet. A circle (no
 * run of ours makes one) stays as it is. */
static void share(struct arena *session, struct costs *costs)
{
    uint32_t *open = arena_new_array(session, uint32_t, costs->count);
    uint32_t *ready = arena_new_array(session, uint32_t, costs->count);
    bool *queued = arena_new_array(session, bool, costs->count);
    for (uint32_t i = 0; i < costs->entry_count; i++)
        open[costs->entries[i].caller]++;
    uint32_t count = 0;
    for (uint32_t i = 0; i < costs->count; i++) {
        queued[i] = costs->items[i].is_helper && open[i] == 0;
        if (queued[i])
            ready[count++] = i;
    }
    for (uint32_t next = 0; next < count; next++) {
        const struct cost *helper = &costs->items[ready[next]];
        hand_on(costs, ready[next], open);
        for (uint32_t i = 0; i < helper->entry_count; i++) {
            uint32_t caller = costs->entries[helper->first_entry + i].caller;
            if (!costs->items[caller].is_helper || queued[caller] || open[caller] > 0)
                continue;
            queued[caller] = true;
            ready[count++] = caller;
        }
    }
}

struct costs costs_of(struct arena *session, const struct objects *objects)
{
    struct counter counter = {.session = session, .objects = objects};
    for (uint32_t i = 0; i < objects->count; i++)
        add_functions(&counter, i);
    name_helpers(&counter);
    struct costs costs = {.items = counter.items.items, .count = counter.items.count};
    for (uint32_t i = 0; i < objects->count; i++)
        add_entries(&counter, &costs, i);
    costs.entries = counter.entries.items;
    costs.entry_count = counter.entries.count;
    if (costs.entry_count > 1)
        qsort(costs.entries, costs.entry_count, sizeof *costs.entries, compare_entries);
    for (uint32_t i = costs.entry_count; i-- > 0;) {
        struct cost *helper = &costs.items[costs.entries[i].helper];
        helper->first_entry = i;
        helper->entry_count++;
    }
    share(session, &costs);
    return costs;
}
