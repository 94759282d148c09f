/* SPDX-License-Identifier: MIT
 *
 * Functions that look neither at their return address nor above it, as far as their own
 * code shows, their .cold part, what they jump to, and outlined functions of the input
 * that they call. (What the callers of a function do with their stack proves nothing.)
 * Somebody who has been given arguments on the stack may well compute their addresses
 * from what is his own, so there are no pointers to that, and no indices.
 */
#include "outliner/verify/verify.h"

#include <string.h>

/* Code that runs in the callee's frame, and how far its own CFA is above that frame's.
 */
struct part {
    struct stretch_of_code code;
    int64_t above;
};

struct look {
    struct verify *verify;
    array_of(struct part) parts;
    bool has_frame;    /* the frame register tells some row … */
    bool looks_beyond; /* … and somebody else addresses memory far above it */
};

enum { MOST_PARTS = 256 };

/* --- functions --- */

static const struct symbol *function_around(const struct look *look, struct spot spot)
{
    return verify_function_around(&look->verify->before, spot);
}

static bool add_function(struct look *look, struct spot spot, int64_t above)
{
    const struct symbol *symbol = function_around(look, spot);
    if (!symbol || look->parts.count == MOST_PARTS)
        return false;
    spot.offset = (uint32_t)symbol->value;
    struct part part = {
        {spot, (uint32_t)(symbol->value + symbol->size)},
        above
    };
    for (uint32_t i = 0; i < look->parts.count; i++) {
        const struct part *known = &look->parts.items[i];
        if (memcmp(&known->code.start, &spot, sizeof spot) == 0 &&
            known->above == above)
            return true;
    }
    array_push(look->verify->arena, &look->parts, part);
    return true;
}

/* With its .cold part, which a jump table may lead to. */
static bool add_part(struct look *look, struct spot spot, int64_t above)
{
    const struct symbol *symbol = function_around(look, spot);
    struct stretch_of_code other;
    if (!symbol || !add_function(look, spot, above))
        return false;
    spot.offset = (uint32_t)symbol->value;
    return !verify_other_part(look->verify, spot, &other) ||
           add_function(look, other.start, above);
}

static bool is_private(const struct look *look, struct spot spot)
{
    const struct symbol *symbol = function_around(look, spot);
    return !symbol || symbol->value != spot.offset || name_is_private(symbol->name);
}

/* --- instructions --- */

static bool is_told_by(const struct row *row, uint32_t column)
{
    return !row->cfa_is_expression && row->cfa_register == column;
}

static const struct row *known_row(const struct look *look, struct spot spot)
{
    uint32_t row = row_of_spot(&look->verify->before, spot, NULL);
    return row == ROW_NONE || row == ROW_UNREAD ? NULL
                                                : row_get(look->verify->rows, row);
}

static bool looks_above(struct look *look, const struct insn *insn,
                        const struct row *row, int64_t above)
{
    const struct target *target = look->verify->target;
    const uint32_t stack = INSN_SP_MEMORY | INSN_SP_COPY;
    bool by_stack = is_told_by(row, target->dwarf_stack_column);
    bool by_frame = is_told_by(row, target->dwarf_of_register(target->frame_register));
    int64_t pushed = target->call_pushes, at = above - row->cfa_offset;
    bool framed = (insn->traits & INSN_FRAME_MEMORY) && by_frame;
    look->has_frame |= by_frame || (insn->traits & INSN_FRAME_SET);
    bool named = has_register(insn->uses, target->frame_register);
    bool far = (insn->traits & INSN_FRAME_MEMORY) && insn->sp_value >= pushed;
    bool copies =
        named && ((insn->traits & INSN_FRAME_STORED) ||
                  !(insn->traits &
                    (INSN_FRAME_MEMORY | INSN_SP_ADJUST | INSN_SP_FROM_FRAME)));
    int64_t end = insn->sp_value + access_reach(insn->uses | insn->defs);
    bool pops_more = insn->flow == FLOW_RETURN && (insn->traits & INSN_PINNED);
    bool points = (insn->traits & INSN_SP_COPY) && !(insn->traits & INSN_FRAME_SET);
    look->looks_beyond |= !by_frame && (far || copies);
    if ((!by_stack && !by_frame) || pops_more || points || (by_frame && copies) ||
        (insn->traits & (INSN_SP_OPAQUE | INSN_INDEXED)))
        return true;
    if (((insn->traits & stack) || framed) && at + end > -pushed)
        return true;
    if (!(insn->traits & INSN_SP_ADJUST))
        return false;
    return (insn->traits & INSN_PINNED) || (by_frame && insn->sp_value < 0 && named) ||
           (by_stack && insn->sp_value > 0 && at >= -pushed);
}

/* Behind it the row says of SP what it has done to it. */
static bool row_follows(const struct look *look, const struct insn *insn,
                        const struct row *row, struct spot next)
{
    uint32_t column = look->verify->target->dwarf_stack_column;
    const struct row *after = known_row(look, next);
    int64_t change = insn->traits & INSN_SP_ADJUST ? insn->sp_value : 0;
    if (insn->flow != FLOW_NEXT || (insn->traits & INSN_NOP))
        return true;
    return after && (!is_told_by(row, column) || !is_told_by(after, column) ||
                     after->cfa_offset == row->cfa_offset - change);
}

/* SP is as it was on entry to the part. */
static bool is_home(const struct look *look, const struct row *row)
{
    const struct target *target = look->verify->target;
    return is_told_by(row, target->dwarf_stack_column) &&
           row->cfa_offset == target->call_pushes;
}

static bool is_private_code(const struct look *look, const struct view *view,
                            const struct symbol *symbol)
{
    struct spot to;
    if (symbol)
        return name_is_private(symbol->name);
    return !view_target(look->verify, &look->verify->before, view, &to) ||
           is_private(look, to);
}

/* An outlined function that has been called calls by a jump whom its caller called. */
static bool follow_jump(struct look *look, const struct view *view,
                        const struct row *row, int64_t above)
{
    const struct symbol *symbol = verify_name(look->verify, view);
    struct spot to;
    bool calls = above < 0 && is_home(look, row) && view->insn.flow == FLOW_JUMP &&
                 !is_private_code(look, view, symbol) &&
                 !(symbol && name_stays(symbol->name));
    return calls ||
           (verify_callee(look->verify, view, &to) && add_part(look, to, above));
}

/* Outlined functions of the input address the frame of their caller. Hooks of profilers
 * look there, too: they have known names, or are called with the stack as it is.
 * (Others who are must be known, and are looked at.) */
static bool follow_call(struct look *look, const struct view *view,
                        const struct row *row, int64_t above)
{
    const struct target *target = look->verify->target;
    const struct symbol *symbol = verify_name(look->verify, view);
    bool by_stack = is_told_by(row, target->dwarf_stack_column);
    int64_t depth = row->cfa_offset - above;
    struct spot to;
    bool aligned =
        !by_stack || depth % (target->call_pushes + target->align_shift) == 0;
    if (aligned && !is_private_code(look, view, symbol))
        return !(symbol && name_stays(symbol->name));
    return by_stack && verify_callee(look->verify, view, &to) &&
           add_part(look, to, above - row->cfa_offset);
}

/* Where it leads, as far as that is in the frame. An indirect jump with the stack as on
 * entry may be a tail call; another one goes through a table, which leads to the
 * function's own parts. */
static bool follow(struct look *look, const struct view *view, const struct row *row,
                   const struct part *part)
{
    uint8_t flow = view->insn.flow;
    if (flow == FLOW_JUMP || flow == FLOW_BRANCH)
        return follow_jump(look, view, row, part->above);
    if (flow == FLOW_RETURN)
        return is_home(look, row);
    if (flow == FLOW_JUMP_INDIRECT)
        return !is_home(look, row) || part->above < 0;
    return flow != FLOW_CALL || follow_call(look, view, row, part->above);
}

/* The part's last instruction goes on to what lies behind it. */
static bool falls_through(const struct part *part, const struct view *view)
{
    bool last = (uint64_t)view->at.offset + view->insn.length >= part->code.end;
    return last && (view->insn.flow == FLOW_NEXT || view->insn.flow == FLOW_BRANCH);
}

static bool part_is_blind(struct look *look, struct part part)
{
    struct view view;
    struct spot at = part.code.start;
    for (; at.offset < part.code.end; at.offset += view.insn.length) {
        const struct row *row = known_row(look, at);
        if (!row || !view_at(look->verify, &look->verify->before, at, &view))
            return false;
        struct spot next = at;
        next.offset += view.insn.length;
        if (looks_above(look, &view.insn, row, part.above) ||
            !follow(look, &view, row, &part) || falls_through(&part, &view) ||
            (next.offset < part.code.end && !row_follows(look, &view.insn, row, next)))
            return false;
    }
    return at.offset == part.code.end;
}

bool verify_is_blind(struct verify *verify, struct spot callee)
{
    struct look look = {.verify = verify};
    if (is_private(&look, callee) || !add_part(&look, callee, 0))
        return false;
    for (uint32_t i = 0; i < look.parts.count; i++) {
        if (!part_is_blind(&look, look.parts.items[i]))
            return false;
    }
    return !look.has_frame || !look.looks_beyond;
}
