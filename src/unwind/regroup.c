/* SPDX-License-Identifier: MIT
 *
 * Helpers of several rounds in one section: their unwind tables, one of each round,
 * were put end to end, and here become one. What is read are rows, and rows are
 * written, so nothing is carried over but what they mean.
 */
#include "internal.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

/* Of an entry that others go into: an unwinder runs its program from the start. */
enum { MOST_CHANGES = 128 };

struct range_list {
    struct frame_range *items;
    uint32_t count, capacity;
};

/* Everything else that is said of frames in the object is of no interest. */
static struct object only_section(struct arena *arena, const struct object *object,
                                  uint32_t section)
{
    struct object view = *object;
    struct section *sections =
        arena_copy(arena, object->sections, object->section_count * sizeof *sections);
    for (uint32_t s = 1; s < object->section_count; s++) {
        if (s != section && section_is_frame(&sections[s]))
            sections[s] = (struct section){.name = "", .align = 1, .group = NO_INDEX};
    }
    view.sections = sections;
    return view;
}

/* frames_build() can make the entry again. */
static bool is_plain(const struct object *object, const struct cie *cie,
                     const struct fde *fde, const struct row_table *rows,
                     const struct cie *helper)
{
    bool same = fde->refusal == REFUSAL_NONE && !fde->has_lsda &&
                !cie->has_personality && fde->code_section != NO_INDEX &&
                fde->length > 0 && fde->change_count > 0 &&
                fde->changes[0].offset == fde->start &&
                section_is_code(&object->sections[fde->code_section]) &&
                cie->code_align == helper->code_align &&
                cie->return_column == helper->return_column;
    for (uint32_t c = 0; same && c < fde->change_count; c++)
        same = cie_can_state(rows, helper, fde->changes[c].row);
    return same;
}

/* The symbol that the entry names its code by. */
static uint32_t symbol_of(const struct object *object, const struct fde *fde)
{
    enum { START_FIELD = 8 };
    const struct section *section = &object->sections[fde->section];
    return section->relocs[section_reloc_at(section, fde->offset + START_FIELD)].symbol;
}

/* `range` goes on where `last` ends. */
static bool can_follow(const struct frame_range *last, const struct frame_range *range)
{
    return last->symbol == range->symbol &&
           last->start + last->length == range->start &&
           last->signal_frame == range->signal_frame && last->b_key == range->b_key &&
           last->change_count + range->change_count <= MOST_CHANGES;
}

static void follow(struct arena *arena, struct frame_range *last,
                   const struct frame_range *range)
{
    uint32_t count = last->change_count;
    struct row_change *changes =
        arena_new_array(arena, struct row_change, count + range->change_count);
    memcpy(changes, last->changes, count * sizeof *changes);
    for (uint32_t c = 0; c < range->change_count; c++) {
        if (range->changes[c].row != changes[count - 1].row)
            changes[count++] = range->changes[c];
    }
    last->changes = changes;
    last->change_count = count;
    last->length += range->length;
}

static bool gather(struct arena *arena, const struct object *object,
                   const struct frames *frames, struct row_table *rows,
                   struct range_list *out)
{
    const struct cie helper = helper_cie(rows, object->machine);
    for (uint32_t f = 0; f < frames->fde_count; f++) {
        const struct fde *fde = &frames->fdes[f];
        const struct cie *cie = &frames->cies[fde->cie];
        if (!is_plain(object, cie, fde, rows, &helper))
            return false;
        struct frame_range range = {.start = fde->start,
                                    .length = fde->length,
                                    .signal_frame = cie->signal_frame,
                                    .b_key = cie->b_key,
                                    .changes = fde->changes,
                                    .change_count = fde->change_count,
                                    .symbol = symbol_of(object, fde)};
        struct frame_range *last = out->count ? &out->items[out->count - 1] : NULL;
        if (last && can_follow(last, &range))
            follow(arena, last, &range);
        else
            array_push(arena, out, range);
    }
    return true;
}

/* --- where helpers begin --- */

static int compare_starts(const void *left, const void *right)
{
    const struct symbol *a = left, *b = right;
    if (a->section != b->section)
        return a->section < b->section ? -1 : 1;
    return (a->value > b->value) - (a->value < b->value);
}

/* Function symbols by section and value. */
struct starts {
    struct symbol *items;
    uint32_t count, capacity;
};

static struct starts find_starts(struct arena *arena, const struct object *object,
                                 const struct frames *frames)
{
    struct starts starts = {0};
    bool *wanted = arena_new_array(arena, bool, object->section_count);
    for (uint32_t f = 0; f < frames->fde_count; f++)
        wanted[frames->fdes[f].code_section] = true;
    for (uint32_t i = 1; i < object->symbol_count; i++) {
        const struct symbol *symbol = &object->symbols[i];
        if (symbol->type == STT_FUNC && symbol->section < object->section_count &&
            wanted[symbol->section])
            array_push(arena, &starts, *symbol);
    }
    if (starts.count)
        qsort(starts.items, starts.count, sizeof *starts.items, compare_starts);
    return starts;
}

static void put_starts(struct arena *arena, const struct object *object,
                       const struct starts *starts, struct frame_range *range)
{
    uint32_t section = object->symbols[range->symbol].section, count = 0;
    uint32_t *offsets = arena_new_array(arena, uint32_t, starts->count + 1);
    for (uint32_t i = 0; i < starts->count; i++) {
        const struct symbol *symbol = &starts->items[i];
        if (symbol->section == section && symbol->value > range->start &&
            symbol->value < range->start + range->length)
            offsets[count++] = (uint32_t)symbol->value;
    }
    range->starts = offsets;
    range->start_count = count;
}

/* Bytes of the table, and of its part of .eh_frame_hdr. */
static uint64_t price(const struct section *table)
{
    return table->data.size + 8 * (uint64_t)frame_count(table);
}

bool frames_regroup(struct arena *arena, const struct object *object, uint32_t section,
                    struct section *out, struct error *err)
{
    struct row_table *rows = row_table_new(arena);
    struct object view = only_section(arena, object, section);
    struct range_list ranges = {0};
    struct frames frames;
    *out = object->sections[section];
    if (!frames_read(arena, &view, rows, &frames, err))
        return false;
    if (!gather(arena, &view, &frames, rows, &ranges) || ranges.count == 0)
        return true;
    struct starts starts = find_starts(arena, object, &frames);
    for (uint32_t i = 0; i < ranges.count; i++)
        put_starts(arena, object, &starts, &ranges.items[i]);
    struct section made;
    frames_build(arena, object->machine, rows, ranges.items, ranges.count, 0, out->unit,
                 &made);
    if (price(&made) < price(out))
        *out = made;
    return true;
}
