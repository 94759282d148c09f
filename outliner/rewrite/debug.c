/* SPDX-License-Identifier: MIT
 *
 * Debug information of the output: each field that the reader found is computed anew from
 * the positions that it meant, and stored in its place. Nothing changes its size but line
 * programs. What cannot be said any more is taken back: an empty range, an address of 0
 * (what linkers write for code that is gone), an expression of length 0.
 */
#include "outliner/rewrite/rewrite.h"

#include <assert.h>
#include <elf.h>
#include <string.h>

/* What a relocated address has become. */
struct address {
    bool known;
    uint32_t place; /* NO_INDEX: dropped */
};

struct mover {
    struct rewrite *rewrite;
    uint32_t object;
    const struct debug *debug;
    struct debug_places places;
    struct address **addresses; /* by section, relocation; NULL: none of it */
};

void debug_move_reloc(struct rewrite *rewrite, uint32_t object, uint32_t section,
                      uint32_t reloc, uint32_t from, uint32_t to)
{
    const struct draft *draft = &rewrite->drafts[object];
    const struct reloc *old = &draft->old->sections[section].relocs[reloc];
    int64_t tracked = (int64_t)draft->symbols.items[old->symbol].value -
                      (int64_t)draft->old->symbols[old->symbol].value;
    rewrite_own_relocs(rewrite, object, section)[reloc].addend =
        wrapping_add(old->addend, (int64_t)to - (int64_t)from - tracked);
}

static bool store(struct mover *mover, const struct debug_field *field, uint64_t value)
{
    return debug_store(rewrite_own_data(mover->rewrite, mover->object, field->section),
                       field, value);
}

static void forget_view(struct mover *mover, const struct debug_field *view,
                        uint32_t code, uint32_t position)
{
    if (view->section != NO_INDEX &&
        debug_is_inside(&mover->places, code, position))
        store(mover, view, 0);
}

/* --- addresses --- */

static struct address *address_at(struct mover *mover, const struct debug_field *field)
{
    struct address **of = &mover->addresses[field->section];
    const struct object *object = mover->rewrite->drafts[mover->object].old;
    if (!*of)
        *of = arena_new_array(mover->rewrite->stage, struct address,
                              object->sections[field->section].reloc_count);
    return &(*of)[field->reloc];
}

static void set_address(struct mover *mover, const struct debug_field *field,
                        uint32_t from, uint32_t to)
{
    *address_at(mover, field) = (struct address){true, to};
    debug_move_reloc(mover->rewrite, mover->object, field->section, field->reloc, from,
                     to == NO_INDEX ? from : to);
}

static bool is_shared(const struct debug_point *point)
{
    return point->role == DEBUG_START || point->role == DEBUG_ENTRY;
}

/* First those that code depends on, then calls and labels, which can give way. */
static void move_points(struct mover *mover, bool shared)
{
    for (uint32_t i = 0; i < mover->debug->point_count; i++) {
        const struct debug_point *point = &mover->debug->points[i];
        if (is_shared(point) != shared || !debug_moves(&mover->places, point->code))
            continue;
        uint32_t place = debug_point_place(&mover->places, point);
        const struct address *address = address_at(mover, &point->field);
        if (!address->known) {
            set_address(mover, &point->field, point->position, place);
        } else if (address->place != place) {
            assert(!shared && point->index.section != NO_INDEX);
            bool done = store(mover, &point->index, point->spare);
            assert(done);
            (void)done;
        }
        forget_view(mover, &point->view, point->code, point->position);
    }
}

/* --- ranges --- */

static void set_bound(struct mover *mover, const struct debug_range *range,
                      uint8_t bound, const struct debug_field *field, uint32_t from,
                      uint32_t to, uint32_t start, bool *fits)
{
    switch ((enum debug_bound)bound) {
    case DEBUG_ADDRESS: set_address(mover, field, from, to); break;
    case DEBUG_FROM_BASE: {
        uint32_t base = debug_start(&mover->places, range->code, range->base);
        *fits = *fits && to >= base && store(mover, field, to - base);
        break;
    }
    case DEBUG_FROM_START: *fits = *fits && store(mover, field, to - start); break;
    case DEBUG_ELSEWHERE: break;
    }
}

/* In lists before version 5 a pair of zeros is their end (DWARF 4, 2.6.2 and 2.17.3): an
 * empty range at the base begins one byte behind it. Nothing is in it there, either. */
static uint64_t empty_distance(const struct debug_range *range)
{
    return range->start_bound == DEBUG_FROM_BASE && !range->start_field.uleb;
}

/* Code may have moved so far that a short field cannot say it: an empty range can be said
 * in any field. */
static void drop_range(struct mover *mover, const struct debug_range *range)
{
    if (range->start_bound == DEBUG_FROM_BASE)
        store(mover, &range->start_field, empty_distance(range));
    store(mover, &range->end_field, empty_distance(range));
}

static bool is_at_base(const struct mover *mover, const struct debug_range *range,
                       uint32_t place)
{
    return range->start_bound == DEBUG_FROM_BASE &&
           place == debug_start(&mover->places, range->code, range->base);
}

static void move_range(struct mover *mover, const struct debug_range *range)
{
    bool shared = range->location && mover->places.tail_count > 0;
    if (!debug_moves(&mover->places, range->code) && !shared)
        return;
    uint32_t start = debug_start(&mover->places, range->code, range->start);
    uint32_t end = range->location
                       ? debug_location_end(&mover->places, range)
                       : debug_end(&mover->places, range->code, range->end);
    if (end < start)
        end = start;
    bool fits = true;
    set_bound(mover, range, range->start_bound, &range->start_field, range->start, start,
              start, &fits);
    set_bound(mover, range, range->end_bound, &range->end_field, range->end, end, start,
              &fits);
    if (!fits || (start == end && is_at_base(mover, range, start)))
        drop_range(mover, range);
    forget_view(mover, &range->start_view, range->code, range->start);
    forget_view(mover, &range->end_view, range->code, range->end);
}

/* --- expressions --- */

/* A length of 0 in the room of the whole expression. Lengths of more than nine bytes are
 * more than readers take; then it says that the value is in no place at all. */
static void drop_expression(struct mover *mover, const struct debug_expression *of)
{
    enum { OP_NOP = 0x96, OP_PIECE = 0x93, MOST_LENGTH = 9, MOST_SIZE = 0x7f };
    uint8_t *at =
        rewrite_own_data(mover->rewrite, mover->object, of->section) + of->offset;
    if (of->size <= MOST_LENGTH) {
        struct debug_field length = {of->section, of->offset, NO_INDEX,
                                     (uint8_t)of->size, true};
        store(mover, &length, 0);
        return;
    }
    while (*at & 0x80)
        at++;
    at++;
    uint8_t *end = rewrite_own_data(mover->rewrite, mover->object, of->section) +
                   of->offset + of->size;
    memset(at, OP_NOP, (size_t)(end - at));
    end[-2] = OP_PIECE;
    end[-1] = MOST_SIZE;
}

static void move_expressions(struct mover *mover)
{
    for (uint32_t i = 0; i < mover->debug->expression_count; i++) {
        const struct debug_expression *expression = &mover->debug->expressions[i];
        if (!debug_expression_holds(&mover->places, expression))
            drop_expression(mover, expression);
    }
}

/* --- the whole --- */

/* Takes out the relocations of addresses that mean nothing any more. */
static void drop_addresses(struct mover *mover, uint32_t index)
{
    struct draft *draft = &mover->rewrite->drafts[mover->object];
    struct section *section = &draft->sections[index];
    const struct address *addresses = mover->addresses[index];
    uint32_t kept = 0, count = draft->old->sections[index].reloc_count;
    for (uint32_t i = 0; addresses && i < count; i++)
        kept += !addresses[i].known || addresses[i].place != NO_INDEX;
    if (!addresses || kept == count)
        return;
    struct reloc *relocs = rewrite_own_relocs(mover->rewrite, mover->object, index);
    uint8_t *data = rewrite_own_data(mover->rewrite, mover->object, index);
    kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (addresses[i].known && addresses[i].place == NO_INDEX)
            store_le(data + relocs[i].offset, 8, 0);
        else
            relocs[kept++] = relocs[i];
    }
    section->reloc_count = kept;
}

static void move_object(struct rewrite *rewrite, uint32_t object)
{
    const struct object *of = rewrite->drafts[object].old;
    struct mover mover = {.rewrite = rewrite,
                          .object = object,
                          .debug = &rewrite->program->debug[object],
                          .places = debug_places_of(rewrite, object)};
    mover.addresses =
        arena_new_array(rewrite->stage, struct address *, of->section_count);
    move_points(&mover, true);
    move_points(&mover, false);
    for (uint32_t i = 0; i < mover.debug->range_count; i++)
        move_range(&mover, &mover.debug->ranges[i]);
    move_expressions(&mover);
    debug_lines_move(rewrite, &mover.places);
    /* From here on relocations have other numbers than they had. */
    for (uint32_t s = 1; s < of->section_count; s++)
        drop_addresses(&mover, s);
}

static bool says_anything(const struct debug *debug)
{
    return debug->point_count || debug->range_count || debug->expression_count ||
           debug->lines_count;
}

void debug_move(struct rewrite *rewrite, uint32_t object)
{
    const struct debug *debug = rewrite->program->debug;
    if (debug && says_anything(&debug[object]))
        move_object(rewrite, object);
}
