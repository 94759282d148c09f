/* SPDX-License-Identifier: MIT
 *
 * Calls that are made from inside of a called helper. The callee finds the helper's
 * return address above its own, and what the helper has pushed, where arguments on the
 * stack would be. So it must look at none of that, as far as its own code shows, its
 * .cold part, what it jumps to, and outlined functions of the input that it calls. That
 * the caller has put no arguments there would need dataflow, and is taken on trust:
 * whoever reads none is given none.
 */
#include "outliner/verify/verify.h"

#include <elf.h>
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

static const struct object *object_of(const struct look *look, uint32_t object)
{
    return look->verify->before.objects->items[object];
}

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

/* The global symbol that a branch of `before` names, or NULL. */
static const struct symbol *named_by(const struct look *look, const struct view *view)
{
    const struct object *object = object_of(look, view->at.object);
    for (uint32_t i = 0; i < view->reloc_count; i++) {
        const struct symbol *symbol = &object->symbols[view->relocs[i].symbol];
        if (!symbol_is_local(symbol))
            return symbol;
    }
    return NULL;
}

/* Where a branch of `before` leads. A weak definition may give way to another one,
 * unless it is a copy of an inline function of C++. */
static bool find_target(const struct look *look, const struct view *view,
                        struct spot *out)
{
    const struct side *side = &look->verify->before;
    const struct symbol *symbol = named_by(look, view);
    struct view direct = *view;
    if (direct.insn.flow == FLOW_BRANCH)
        direct.insn.flow = FLOW_JUMP;
    if (!view_target(look->verify, side, &direct, out))
        return false;
    if (!symbol)
        return true;
    uint32_t name = table_find_string(side->names, symbol->name);
    struct named named = side->definitions.items[name];
    const struct object *of = object_of(look, named.object);
    const struct symbol *definition = &of->symbols[named.symbol];
    bool inlined = of->sections[definition->section].group != NO_INDEX &&
                   strncmp(definition->name, "_Z", 2) == 0;
    return definition->type == STT_FUNC && (definition->bind != STB_WEAK || inlined);
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
    bool copies = named && !(insn->traits &
                             (INSN_FRAME_MEMORY | INSN_SP_ADJUST | INSN_SP_FROM_FRAME));
    bool pops_more = insn->flow == FLOW_RETURN && (insn->traits & INSN_PINNED);
    look->looks_beyond |= !by_frame && (far || copies);
    if ((!by_stack && !by_frame) || (insn->traits & INSN_SP_OPAQUE) || pops_more ||
        (by_frame && copies))
        return true;
    if (((insn->traits & stack) || framed) && at + insn->sp_value >= -pushed)
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

static bool is_home(const struct look *look, const struct row *row, int64_t above)
{
    const struct target *target = look->verify->target;
    return above == 0 && is_told_by(row, target->dwarf_stack_column) &&
           row->cfa_offset == target->call_pushes;
}

/* A jump to somebody of whom only the name is known is a tail call. */
static bool follow_jump(struct look *look, const struct view *view,
                        const struct row *row, int64_t above)
{
    const struct symbol *symbol = named_by(look, view);
    struct spot to;
    if (find_target(look, view, &to) && (!symbol || function_around(look, to)))
        return add_part(look, to, above);
    return symbol && !name_is_private(symbol->name) && is_home(look, row, above);
}

/* Outlined functions of the input address the frame of their caller. */
static bool follow_call(struct look *look, const struct view *view,
                        const struct row *row, int64_t above)
{
    const struct symbol *symbol = named_by(look, view);
    struct spot to;
    bool found = view_target(look->verify, &look->verify->before, view, &to);
    bool private =
        symbol ? name_is_private(symbol->name) : !found || is_private(look, to);
    return !private || (found && add_part(look, to, above - row->cfa_offset) &&
                        is_told_by(row, look->verify->target->dwarf_stack_column));
}

/* Where it leads, as far as that is in the frame. (An indirect jump that is no tail
 * call goes through a table, which leads to the function's own parts.) */
static bool follow(struct look *look, const struct view *view, const struct row *row,
                   const struct part *part)
{
    uint8_t flow = view->insn.flow;
    if (flow == FLOW_JUMP || flow == FLOW_BRANCH)
        return follow_jump(look, view, row, part->above);
    return flow != FLOW_CALL || follow_call(look, view, row, part->above);
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
            !follow(look, &view, row, &part) ||
            (next.offset < part.code.end && !row_follows(look, &view.insn, row, next)))
            return false;
    }
    return at.offset == part.code.end;
}

static bool is_blind(struct verify *verify, struct spot callee)
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

bool verify_callee_is_blind(struct verify *verify, const struct view *call)
{
    struct look look = {.verify = verify};
    struct spot callee;
    if (call->insn.flow != FLOW_CALL || !find_target(&look, call, &callee))
        return false;
    uint32_t count = verify->callees_blind.count;
    uint32_t number = table_intern(verify->callees, &callee, sizeof callee);
    if (number == count)
        array_push(verify->arena, &verify->callees_blind, is_blind(verify, callee));
    return verify->callees_blind.items[number];
}
