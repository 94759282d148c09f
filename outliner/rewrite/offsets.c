/* SPDX-License-Identifier: MIT
 *
 * The offset map of one code section. A rewritten section is a row of pieces that tile
 * it, before and after: bytes that are kept, bytes that an edit replaces, padding. An
 * index, or a binary search, finds the piece around an old offset; the rest is a
 * subtraction.
 *
 * A boundary between two functions can mean the end of the one or the start of the
 * other, and once padding lies between them these are two places. So there are two
 * questions.
 */
#include "outliner/rewrite/rewrite.h"

#include <assert.h>

struct offsets offsets_make(struct arena *arena, const struct piece *pieces,
                            uint32_t count)
{
    uint32_t steps = count ? pieces[count - 1].old_start / OFFSETS_STEP + 1 : 0, at = 0;
    uint32_t *index = arena_new_array(arena, uint32_t, steps);
    for (uint32_t i = 0; i < steps; i++) {
        while (at < count && pieces[at].old_start < i * OFFSETS_STEP)
            at++;
        index[i] = at;
    }
    return (struct offsets){pieces, count, steps ? index : NULL};
}

static uint32_t pieces_by_index(const struct offsets *offsets, uint32_t old,
                                bool inclusive)
{
    uint32_t at = offsets->index[old / OFFSETS_STEP];
    for (; at < offsets->count; at++) {
        uint32_t start = offsets->pieces[at].old_start;
        if (start > old || (start == old && !inclusive))
            break;
    }
    return at;
}

/* Number of pieces that start before `old`, or at it when `inclusive`. */
static uint32_t pieces_before(const struct offsets *offsets, uint32_t old,
                              bool inclusive)
{
    uint32_t low = 0, high = offsets->count;
    assert(high == 0 || old <= offsets->pieces[high - 1].old_start);
    if (offsets->index)
        return pieces_by_index(offsets, old, inclusive);
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        uint32_t start = offsets->pieces[middle].old_start;
        if (start < old || (inclusive && start == old))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The new place of an old offset in, or at either end of, this piece. */
static uint32_t place_in(const struct piece *piece, uint32_t old)
{
    if (old == piece->old_start)
        return piece->new_start;
    assert(old <= piece[1].old_start);
    if (old == piece[1].old_start)
        return piece[1].new_start;
    assert(piece->kind != PIECE_REPLACED && "a position inside of a payload");
    uint32_t place = piece->new_start + (old - piece->old_start);
    return place < piece[1].new_start ? place : piece[1].new_start;
}

const struct piece *offsets_piece(const struct offsets *offsets, uint32_t old)
{
    uint32_t count = pieces_before(offsets, old, true);
    return count ? &offsets->pieces[count - 1] : NULL;
}

uint32_t offsets_start(const struct offsets *offsets, uint32_t old)
{
    const struct piece *piece = offsets_piece(offsets, old);
    return piece ? place_in(piece, old) : old;
}

uint32_t offsets_end(const struct offsets *offsets, uint32_t old)
{
    uint32_t count = pieces_before(offsets, old, false);
    return count ? place_in(&offsets->pieces[count - 1], old) : old;
}

bool piece_keeps_branch(const struct piece *piece, const struct insn *insn)
{
    return piece->kind == PIECE_KEPT && insn->flow != FLOW_NEXT &&
           insn->target >= piece->old_start && insn->target < piece[1].old_start;
}
