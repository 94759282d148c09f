/* SPDX-License-Identifier: MIT
 *
 * What becomes of the positions that debug information speaks of. Where code is kept that
 * is what the offset map says. Inside of a replaced payload there is nothing any more that
 * could be meant, so the meaning decides:
 *
 * - a range of code begins, or ends, behind the replacement: the call belongs to what the
 *   payload's first instruction belonged to, and ranges that were nested stay so;
 * - the place of a variable begins behind it, but ends right at its start: before the call
 *   is made everything is as it was before the payload, and during it nobody can tell. One
 *   byte into the call is what an unwinder from the helper does not look at;
 * - a call that has moved into a helper returns there, unless it was the last one of a
 *   thunk or a tail: the replacement stands for it then;
 * - a label in there is gone, unless what was there were no-ops: it is behind them;
 * - a call in a tail that others jump to is not only the function's own any more, and what
 *   is said of its arguments need not be true: gone, too.
 *
 * A replacement may also write registers that the code did not, while debug information
 * still finds a dead variable in them. Such a place ends there.
 */
#include "outliner/rewrite/rewrite.h"

#include <assert.h>
#include <stdlib.h>

static const struct layout *layout_of(const struct debug_places *places,
                                      uint32_t section)
{
    uint32_t code = places->rewrite->drafts[places->object].code_of[section];
    if (code == NO_INDEX || places->rewrite->layouts[code].edits.count == 0)
        return NULL;
    return &places->rewrite->layouts[code];
}

bool debug_moves(const struct debug_places *places, uint32_t section)
{
    return layout_of(places, section) != NULL;
}

static bool is_inside(const struct layout *layout, uint32_t position)
{
    const struct piece *piece = offsets_piece(&layout->offsets, position);
    return piece->kind == PIECE_REPLACED && position > piece->old_start;
}

/* The piece is what --drop-alignment dropped: a site leaves something. */
static bool is_dropped(const struct layout *layout, const struct piece *piece)
{
    return piece->kind == PIECE_REPLACED && piece[1].new_start == piece->new_start &&
           layout->edits.items[piece->edit].site == NO_INDEX;
}

bool debug_is_dropped(const struct debug_places *places, uint32_t section,
                      uint32_t position)
{
    const struct layout *layout = layout_of(places, section);
    return layout && is_dropped(layout, offsets_piece(&layout->offsets, position));
}

bool debug_is_inside(const struct debug_places *places, uint32_t section,
                     uint32_t position)
{
    const struct layout *layout = layout_of(places, section);
    return layout && is_inside(layout, position);
}

/* Start or end, it is the same: nothing moves, or what was there is gone. */
static bool is_plain(const struct layout *layout, uint32_t position, uint32_t *out)
{
    *out = position;
    if (layout && is_inside(layout, position))
        *out = offsets_piece(&layout->offsets, position)[1].new_start;
    return !layout || is_inside(layout, position);
}

uint32_t debug_start(const struct debug_places *places, uint32_t section,
                     uint32_t position)
{
    const struct layout *layout = layout_of(places, section);
    uint32_t place;
    return is_plain(layout, position, &place)
               ? place
               : offsets_start(&layout->offsets, position);
}

uint32_t debug_end(const struct debug_places *places, uint32_t section,
                   uint32_t position)
{
    const struct layout *layout = layout_of(places, section);
    uint32_t place;
    if (is_plain(layout, position, &place))
        return place;
    /* What is inserted belongs to the code in front of it. */
    const struct piece *piece = offsets_piece(&layout->offsets, position);
    bool inserted = piece > layout->offsets.pieces && piece->old_start == position &&
                    piece[-1].kind == PIECE_REPLACED && piece[-1].old_start == position;
    return inserted ? piece->new_start : offsets_end(&layout->offsets, position);
}

/* The first tail that others jump to which ends behind a position, or NULL. */
static const struct debug_tail *tail_behind(const struct debug_places *places,
                                            uint32_t section, uint32_t position)
{
    uint32_t low = 0, high = places->tail_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct debug_tail *tail = &places->tails[middle];
        if (tail->section < section ||
            (tail->section == section && tail->end <= position))
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < places->tail_count && places->tails[low].section == section;
    return found ? &places->tails[low] : NULL;
}

/* The byte lies in a tail that others jump to. */
static bool is_shared(const struct debug_places *places, uint32_t section,
                      uint32_t position)
{
    const struct debug_tail *tail = tail_behind(places, section, position);
    return tail && tail->start <= position;
}

/* The edit of a site that has replaced the byte at a position, or NULL. */
static const struct edit *site_around(const struct layout *layout, uint32_t position,
                                      const struct piece **piece)
{
    *piece = offsets_piece(&layout->offsets, position);
    if ((*piece)->kind != PIECE_REPLACED)
        return NULL;
    const struct edit *edit = &layout->edits.items[(*piece)->edit];
    return edit->site == NO_INDEX ? NULL : edit;
}

static enum form form_of(const struct debug_places *places, const struct edit *edit)
{
    return (enum form)places->rewrite->plan->sites[edit->site].form;
}

static uint32_t return_place(const struct debug_places *places,
                             const struct layout *layout, uint32_t position)
{
    const struct piece *piece;
    if (position == 0)
        return NO_INDEX;
    const struct edit *edit = site_around(layout, position - 1, &piece);
    if (!edit)
        return offsets_end(&layout->offsets, position);
    enum form form = form_of(places, edit);
    bool last = position == edit->end && (form == FORM_THUNK || form == FORM_TAIL);
    return last ? piece->new_start + edit->call_end : NO_INDEX;
}

static uint32_t call_place(const struct debug_places *places,
                           const struct layout *layout, uint32_t position)
{
    const struct program *program = places->rewrite->program;
    const struct piece *piece;
    const struct edit *edit = site_around(layout, position, &piece);
    if (!edit)
        return offsets_start(&layout->offsets, position);
    uint32_t last = edit->insn + edit->insn_count - 1;
    enum form form = form_of(places, edit);
    bool kept = (form == FORM_THUNK || form == FORM_TAIL) &&
                program->insns[last].offset == position;
    return kept ? piece->new_start + edit->call : NO_INDEX;
}

uint32_t debug_point_place(const struct debug_places *places,
                           const struct debug_point *point)
{
    const struct layout *layout = layout_of(places, point->code);
    bool is_return = point->role == DEBUG_RETURN && point->position > 0;
    if ((is_return || point->role == DEBUG_CALL) &&
        is_shared(places, point->code, point->position - is_return))
        return NO_INDEX;
    if (!layout)
        return point->position;
    switch ((enum debug_role)point->role) {
    case DEBUG_RETURN: return return_place(places, layout, point->position);
    case DEBUG_CALL: return call_place(places, layout, point->position);
    case DEBUG_LABEL:
        if (is_inside(layout, point->position) &&
            !is_dropped(layout, offsets_piece(&layout->offsets, point->position)))
            return NO_INDEX;
        break;
    case DEBUG_START:
    case DEBUG_ENTRY: break;
    }
    return debug_start(places, point->code, point->position);
}

/* --- registers --- */

static uint64_t dwarf_bit(const struct target *target, uint8_t reg)
{
    uint32_t column = target->dwarf_of_register(reg);
    return column < 64 ? UINT64_C(1) << column : 0;
}

/* DWARF registers that the code at a site writes, and the payload did not. */
static uint64_t writes(const struct debug_places *places, const struct edit *edit)
{
    const struct target *target = places->rewrite->program->target;
    if (edit->site == NO_INDEX)
        return 0;
    const struct site *site = &places->rewrite->plan->sites[edit->site];
    uint64_t registers = places->veneers;
    if (site->form != FORM_TAIL && target->link_register < 64)
        registers |= dwarf_bit(target, target->link_register);
    if (site->form == FORM_SAVE_REGISTER)
        registers |= dwarf_bit(target, site->scratch);
    else if (edit->call > 0) /* it makes room on the stack */
        registers |= dwarf_bit(target, target->stack_register);
    return registers;
}

/* The first edit that ends behind an old offset. */
static uint32_t first_edit(const struct edit_list *edits, uint32_t position)
{
    uint32_t low = 0, high = edits->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (edits->items[middle].end <= position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int compare_tails(const void *left, const void *right)
{
    const struct debug_tail *a = left, *b = right;
    if (a->section != b->section)
        return a->section < b->section ? -1 : 1;
    return (a->start > b->start) - (a->start < b->start);
}

/* Sorts them and makes one of those that overlap. Returns how many are left. */
static uint32_t tidy_tails(struct debug_tail *tails, uint32_t count)
{
    uint32_t kept = 0;
    if (count)
        qsort(tails, count, sizeof *tails, compare_tails);
    for (uint32_t i = 0; i < count; i++) {
        struct debug_tail *last = kept ? &tails[kept - 1] : NULL;
        if (!last || last->section != tails[i].section || last->end <= tails[i].start)
            tails[kept++] = tails[i];
        else if (last->end < tails[i].end)
            last->end = tails[i].end;
    }
    return kept;
}

static uint64_t veneer_bits(const struct target *target)
{
    uint64_t registers = 0;
    for (uint8_t reg = 0; reg < 64; reg++)
        if (target->veneer_registers >> reg & 1)
            registers |= dwarf_bit(target, reg);
    return registers;
}

struct debug_places debug_places_of(const struct rewrite *rewrite, uint32_t object)
{
    const struct program *program = rewrite->program;
    const struct plan *plan = rewrite->plan;
    array_of(struct debug_tail) tails = {0};
    for (uint32_t h = 0; h < plan->helper_count; h++) {
        const struct helper *helper = &plan->helpers[h];
        if (!helper->stays)
            continue;
        const struct code *code = &program->code[rewrite->places.bodies[h].code];
        const struct insn *start = &program->insns[helper->stays_at];
        const struct insn *last = start + helper->length - 1;
        struct debug_tail tail = {code->section, start->offset,
                                  last->offset + last->length};
        if (code->object == object)
            array_push(rewrite->stage, &tails, tail);
    }
    uint32_t count = tidy_tails(tails.items, tails.count);
    return (struct debug_places){rewrite, object, tails.items, count,
                                 veneer_bits(program->target)};
}

/* Where the range enters a tail that others jump to, or its end: from there on the frame
 * may be that of another function. */
static uint32_t end_before_tails(const struct debug_places *places,
                                 const struct debug_range *range)
{
    const struct debug_tail *tail = tail_behind(places, range->code, range->start);
    return tail && tail->start < range->end ? tail->start : range->end;
}

uint32_t debug_location_end(const struct debug_places *places,
                            const struct debug_range *range)
{
    const struct layout *layout = layout_of(places, range->code);
    uint32_t end = end_before_tails(places, range);
    if (!layout)
        return end;
    const struct edit_list *edits = &layout->edits;
    for (uint32_t e = first_edit(edits, range->start);
         e < edits->count && edits->items[e].start < end; e++) {
        const struct edit *edit = &edits->items[e];
        if (edit->site == NO_INDEX || edit->start < range->start)
            continue;
        bool cut = edit->end > end || (writes(places, edit) & range->registers);
        if (cut)
            return offsets_start(&layout->offsets, edit->start) + 1;
    }
    return end < range->end ? debug_start(places, range->code, end)
                            : debug_end(places, range->code, end);
}

static bool writes_in(const struct debug_places *places, const struct layout *layout,
                      uint32_t start, uint32_t end, uint64_t registers)
{
    const struct edit_list *edits = &layout->edits;
    for (uint32_t e = first_edit(edits, start);
         e < edits->count && edits->items[e].start < end; e++)
        if (writes(places, &edits->items[e]) & registers)
            return true;
    return false;
}

bool debug_expression_holds(const struct debug_places *places,
                            const struct debug_expression *expression)
{
    const struct object *object = places->rewrite->drafts[places->object].old;
    for (uint32_t s = 1; s < object->section_count; s++) {
        bool all = expression->code == NO_INDEX &&
                   object->sections[s].unit == expression->unit;
        const struct layout *layout =
            all || expression->code == s ? layout_of(places, s) : NULL;
        uint32_t end = all ? UINT32_MAX : expression->end;
        if (layout && writes_in(places, layout, all ? 0 : expression->start, end,
                                expression->registers))
            return false;
    }
    return true;
}
