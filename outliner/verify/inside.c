/* SPDX-License-Identifier: MIT
 *
 * What must be so while a payload runs in a helper, as far as it can be seen without
 * dataflow: the unwind rows, and what an instruction that has moved must not be or do.
 *
 * A helper that was jumped to runs in the frame of its site, so its rows are the
 * site's. One that was called has a frame of its own, a plain one, and its caller is
 * looked at in the row that held before the site: nothing in the payload may make that
 * row wrong.
 */
#include "outliner/verify/verify.h"

#include <string.h>

/* The innermost helper that has been called, or NULL. */
struct entered *walk_open_call(struct walk *walk)
{
    for (uint32_t i = walk->depth; i-- > 0;)
        if (walk->entered[i].call)
            return &walk->entered[i];
    return NULL;
}

/* The outermost one: its caller is what an unwinder sees behind all helpers. */
struct entered *walk_first_call(struct walk *walk)
{
    for (uint32_t i = 0; i < walk->depth; i++)
        if (walk->entered[i].call)
            return &walk->entered[i];
    return NULL;
}

int32_t walk_shift(const struct walk *walk)
{
    int32_t shift = 0;
    for (uint32_t i = 0; i < walk->depth; i++)
        shift += walk->entered[i].shift;
    return shift;
}

static uint32_t row_before(const struct walk *walk)
{
    return row_of_spot(&walk->verify->before, walk->before, NULL);
}

/* --- rows --- */

static bool same_kind_of_frame(const struct walk *walk, const struct fde *before,
                               const struct fde *after)
{
    const struct verify *verify = walk->verify;
    if (!before || !after)
        return before == after;
    const struct cie *old =
        &verify->before.frames[walk->before.object].cies[before->cie];
    const struct cie *new = &verify->after.frames[walk->after.object].cies[after->cie];
    return old->b_key == new->b_key && old->signal_frame == new->signal_frame &&
           old->return_column == new->return_column;
}

/* The registers whose old values an unwinder finds on its way out of the innermost
 * helper to the first one: what the rows of those in between say at their calls. */
static uint64_t stated_around(const struct walk *walk)
{
    uint64_t stated = 0;
    for (uint32_t i = 0; i < walk->depth; i++) {
        uint32_t number = walk->entered[i].outer;
        if (!walk->entered[i].call || number >= ROW_UNREAD)
            continue;
        const struct row *row = row_get(walk->verify->rows, number);
        for (uint32_t r = 0; r < row->rule_count; r++) {
            const struct rule *rule = &row->rules[r];
            bool found = rule->kind == RULE_OFFSET || rule->kind == RULE_EXPRESSION;
            uint8_t reg = walk->verify->target->register_of_dwarf(rule->column);
            stated |= found && reg < 64 ? (uint64_t)1 << reg : 0;
        }
    }
    return stated;
}

static struct inside look_inside(struct walk *walk, struct keeping keeping)
{
    const struct entered *first = walk_first_call(walk);
    const struct entered *open = walk_open_call(walk);
    int32_t pushed = open->aligns ? walk->verify->target->align_shift : 0;
    bool behind = walk->before.offset >= walk->end;
    uint32_t now = behind ? walk->last_row : row_before(walk);
    /* What was told before its time is true of that time, too. */
    return (struct inside){
        .before = walk->before,
        .after = walk->after,
        .site = first->caller,
        .now = now == first->row ? first->caller : now,
        .last = walk->last_row == first->row ? first->caller : walk->last_row,
        .depth = walk_shift(walk) - walk->verify->target->call_pushes - pushed,
        .pushed = pushed,
        .written = first->written,
        .stated = stated_around(walk),
        .keeping = keeping,
    };
}

/* The link register holds the return address: nothing writes it before the function
 * returns through it, or its row finds the return address there. */
bool walk_link_is_return(const struct walk *walk)
{
    const struct verify *verify = walk->verify;
    struct view view;
    for (struct spot at = walk->before; at.offset < walk->end;
         at.offset += view.insn.length) {
        if (row_keeps_link(verify, row_of_spot(&verify->before, at, NULL)))
            return true;
        if (!view_at(verify, &verify->before, at, &view) ||
            has_register(view.insn.defs, verify->target->link_register) ||
            (view.insn.flow != FLOW_NEXT && view.insn.flow != FLOW_BRANCH))
            return view.insn.flow == FLOW_RETURN;
    }
    return false;
}

/* A jump to another place of its own function. */
static bool stays_inside(const struct walk *walk, const struct view *view)
{
    struct spot target;
    return view->insn.flow == FLOW_JUMP &&
           view_target(walk->verify, &walk->verify->before, view, &target) &&
           target.object == walk->before.object &&
           target.section == walk->before.section &&
           target.offset >= walk->function_start && target.offset < walk->end;
}

/* The registers that hold the caller's values from the next instruction of `before` on
 * until its function ends, because the ABI wants them there at the exit and nothing
 * writes them before. None when it does not leave in a straight line. */
static uint64_t settled_registers(const struct walk *walk)
{
    const struct target *target = walk->verify->target;
    uint64_t kept = target->callee_saved.regs;
    if (target->link_register < 64)
        kept |= (uint64_t)1 << target->link_register;
    struct view view;
    for (struct spot at = walk->before; at.offset < walk->end;
         at.offset += view.insn.length) {
        if (!view_at(walk->verify, &walk->verify->before, at, &view))
            return 0;
        kept &= ~view.insn.defs;
        if (stays_inside(walk, &view))
            return 0;
        if (view.insn.flow == FLOW_RETURN || view.insn.flow == FLOW_JUMP ||
            view.insn.flow == FLOW_JUMP_INDIRECT)
            return kept;
        if (view.insn.flow == FLOW_BRANCH || view.insn.flow == FLOW_STOP)
            return 0;
    }
    return 0;
}

/* `before` without those rules of settled registers that `after` leaves out. */
static uint32_t row_at_exit(const struct walk *walk, uint32_t before, uint32_t after,
                            struct keeping keeping)
{
    if (before == after || before >= ROW_UNREAD || after >= ROW_UNREAD)
        return before;
    const struct verify *verify = walk->verify;
    const struct row *weak = row_get(verify->rows, after);
    struct row copy = *row_get(verify->rows, before);
    uint64_t settled = settled_registers(walk);
    struct rule *rules = arena_new_array(verify->arena, struct rule, copy.rule_count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < copy.rule_count; i++) {
        uint32_t column = copy.rules[i].column;
        bool kept_here =
            keeping.save != SAVE_NONE && column == verify->target->dwarf_return_column;
        if (row_rule(weak, column) || kept_here ||
            !has_register(settled, verify->target->register_of_dwarf(column)))
            rules[count++] = copy.rules[i];
    }
    copy.rules = rules;
    copy.rule_count = count;
    return row_intern(verify->rows, &copy);
}

/* The row of `before` tells the CFA by SP, which has moved since in a straight line: no
 * unwinder finds a frame in it. */
static bool is_stale(const struct walk *walk, uint32_t number)
{
    if (!walk->row_stale || number != walk->last_row || number >= ROW_UNREAD)
        return false;
    const struct row *row = row_get(walk->verify->rows, number);
    return !row->cfa_is_expression &&
           row->cfa_register == walk->verify->target->dwarf_stack_column;
}

/* The return address has been stored, and the output says so before `before` does: with
 * all of the next row, where the one that holds is stale, else in that one. */
static uint32_t row_told_early(struct walk *walk, uint32_t before, uint32_t after)
{
    const struct verify *verify = walk->verify;
    uint32_t half = row_with_link_told(verify, walk->before, false);
    if (half == after || !is_stale(walk, before))
        return half;
    walk->row = row_with_link_told(verify, walk->before, true);
    return walk->row;
}

/* The row at the next instruction of the output is what it must be. A helper that has
 * been called has a frame of its own; code without unwind data does not care which. */
bool walk_check_row(struct walk *walk, struct keeping keeping, struct error *err)
{
    struct verify *verify = walk->verify;
    const struct fde *old, *new;
    uint32_t before = row_of_spot(&verify->before, walk->before, &old);
    uint32_t after = row_of_spot(&verify->after, walk->after, &new);
    walk->row = before;
    if (walk_open_call(walk)) {
        struct inside inside = look_inside(walk, keeping);
        return (inside.site == ROW_NONE && after == ROW_NONE) ||
               row_is_inside(verify, &inside, after) ||
               walk_fail(walk, err, "wrong unwind row in a called helper");
    }
    if (walk->before.offset >= walk->end)
        return true;
    bool told = walk->link_stored && before == walk->last_row &&
                (walk->link_lost || after != before);
    if (told && walk->link_lost && row_keeps_link(verify, after))
        return walk_fail(walk, err, "an unwind row finds a return address that is lost");
    if (told)
        before = row_told_early(walk, before, after);
    before = walk_row_told(walk, before, after);
    if (!told || walk->depth > 0)
        before = row_at_exit(walk, before, after, keeping);
    if (!row_is_saved(verify, before, after, keeping))
        return walk_fail(walk, err, "wrong unwind row");
    return walk->depth == 0 || same_kind_of_frame(walk, old, new) ||
           walk_fail(walk, err, "the unwind entry of a tail is of another kind");
}

/* --- what a helper must not hold --- */

static bool has_atom(const struct verify *verify, const struct view *view)
{
    for (uint32_t i = 0; i < view->reloc_count; i++) {
        const struct reloc_kind *kind =
            verify->target->reloc_kind(view->relocs[i].type);
        if (!kind || kind->kind == RELOC_UNKNOWN || kind->kind == RELOC_TLS_ATOM ||
            kind->kind == RELOC_BRANCH)
            return true;
    }
    return false;
}

/* In a helper of any kind. */
static bool check_moved(struct walk *walk, const struct view *view, struct error *err)
{
    const uint32_t never = INSN_MARKER | INSN_PINNED | INSN_EXCLUSIVE;
    if ((view->insn.traits & never) || view->insn.flow == FLOW_BRANCH ||
        has_atom(walk->verify, view))
        return walk_fail(walk, err, "an instruction that must not move is in a helper");
    for (uint32_t i = 0; i < walk->depth; i++) {
        const struct entered *entered = &walk->entered[i];
        if (entered->keeping.save == SAVE_REGISTER &&
            has_register(view->insn.uses | view->insn.defs, entered->keeping.scratch))
            return walk_fail(walk, err,
                             "a helper touches the register that keeps the link "
                             "register");
    }
    return true;
}

/* A call from a helper's frame, which is `lower` bytes below where it was made from. */
static bool check_inner_call(struct walk *walk, const struct view *view, int32_t lower,
                             struct error *err)
{
    const struct target *target = walk->verify->target;
    const uint32_t never = INSN_SP_MEMORY | INSN_SP_COPY | INSN_SP_OPAQUE;
    int32_t alignment = target->call_pushes + target->align_shift;
    if (target->align_shift == 0 || view->insn.flow != FLOW_CALL ||
        (view->insn.traits & never))
        return walk_fail(walk, err, "control flow inside a called helper");
    if (lower % alignment != 0)
        return walk_fail(walk, err, "a helper calls with a stack that is not aligned");
    walk_first_call(walk)->written |= target->call_kills.regs;
    verify_note_inner(walk->verify, walk->before, walk->after);
    return true;
}

/* In a helper that has been called. */
static bool check_called(struct walk *walk, const struct view *view, struct error *err)
{
    if (view->insn.flow == FLOW_CALL || view->insn.flow == FLOW_CALL_INDIRECT)
        return check_inner_call(walk, view, walk_shift(walk), err);
    const struct target *target = walk->verify->target;
    uint64_t touched = view->insn.uses | view->insn.defs;
    bool shifted = walk_shift(walk) != 0;
    if (view->insn.flow != FLOW_NEXT && view->insn.flow != FLOW_STOP)
        return walk_fail(walk, err, "control flow inside a called helper");
    if (has_register(touched, target->link_register) ||
        (view->insn.traits & INSN_SIGNS))
        return walk_fail(walk, err, "a called helper touches the return address");
    if ((view->insn.traits & (INSN_SP_ADJUST | INSN_SP_FROM_FRAME)) ||
        has_register(view->insn.defs, target->stack_register))
        return walk_fail(walk, err, "a called helper moves SP");
    if (shifted && has_register(touched, target->stack_register) &&
        !(view->insn.traits & (INSN_SP_MEMORY | INSN_SP_COPY)))
        return walk_fail(walk, err, "a called helper uses SP in an unknown way");
    if (shifted && (view->insn.traits & INSN_BELOW_SP))
        return walk_fail(walk, err, "a called helper touches memory below SP");
    walk_first_call(walk)->written |= view->insn.defs;
    return true;
}

/* The call at the end of a thunk: the callee sees what it saw. Inside of a helper that
 * has aligned the stack for calls it is one of those. */
static bool check_thunk(struct walk *walk, const struct view *view, struct error *err)
{
    const struct entered *top = walk_open_call(walk);
    if (top->aligns)
        return walk_fail(walk, err, "a thunk leaves SP lowered");
    if (walk->verify->target->align_shift != 0 && top != walk_first_call(walk))
        return check_inner_call(walk, view, walk_shift(walk) - top->shift, err);
    if (top->keeping.save != SAVE_NONE || walk_shift(walk) != top->shift ||
        top != walk_first_call(walk))
        return walk_fail(walk, err,
                         "a thunk's callee would see another SP or return address");
    if (has_register(view->insn.uses, walk->verify->target->link_register) ||
        (view->insn.traits & INSN_SIGNS))
        return walk_fail(walk, err, "a thunk's last call reads the link register");
    struct inside inside = look_inside(walk, NOT_KEPT);
    if (!row_is_good_enough(walk->verify, &inside))
        return walk_fail(walk, err, "a thunk's callee would see a wrong unwind row");
    return true;
}

/* What linkers rewrite by pattern: both halves must stay side by side. */
static bool is_first_half(const struct verify *verify, const struct view *view)
{
    for (uint32_t i = 0; i < view->reloc_count; i++) {
        const struct reloc_kind *kind =
            verify->target->reloc_kind(view->relocs[i].type);
        if (kind && (kind->kind == RELOC_GOT_PAGE || kind->kind == RELOC_TLS_ATOM))
            return true;
    }
    return false;
}

static bool is_second_half(const struct verify *verify, const struct view *view)
{
    for (uint32_t i = 0; i < view->reloc_count; i++) {
        const struct reloc_kind *kind =
            verify->target->reloc_kind(view->relocs[i].type);
        if (kind && (kind->kind == RELOC_GOT_LOW || kind->kind == RELOC_TLS_ATOM ||
                     kind->kind == RELOC_CALL))
            return true;
    }
    return false;
}

static bool check_glue(struct walk *walk, const struct view *before, struct error *err)
{
    bool parted = walk->is_glued && is_second_half(walk->verify, before) &&
                  memcmp(&walk->glued, &walk->after, sizeof walk->after) != 0;
    return !parted || walk_fail(walk, err,
                                "two instructions have been parted that a "
                                "linker rewrites together");
}

bool walk_check(struct walk *walk, const struct view *before, bool thunk,
                struct error *err)
{
    if (!check_glue(walk, before, err) ||
        (walk->depth > 0 && !check_moved(walk, before, err)))
        return false;
    if (thunk)
        return check_thunk(walk, before, err);
    return !walk_open_call(walk) || check_called(walk, before, err);
}

/* In a straight line from the store on, while the row stays the same. */
static bool is_link_stored(const struct walk *walk, const struct view *before,
                           uint32_t row)
{
    uint8_t link = walk->verify->target->link_register;
    bool in_frame = before->insn.traits & (INSN_SP_MEMORY | INSN_SP_ADJUST);
    bool stores = has_register(before->insn.uses, link) && in_frame &&
                  !(before->insn.traits & INSN_SIGNS);
    return (stores || (walk->link_stored && walk->last_row == row)) &&
           before->insn.flow == FLOW_NEXT && !has_register(before->insn.defs, link);
}

void walk_note_link(struct walk *walk, const struct view *before, uint32_t row)
{
    walk->link_stored = is_link_stored(walk, before, row);
    walk->row_stale = before->insn.flow == FLOW_NEXT &&
                      ((before->insn.traits & INSN_SP_ADJUST) ||
                       (walk->row_stale && walk->last_row == row));
    walk->link_lost = walk->link_lost && walk->link_stored;
    walk->last_row = row;
}

void walk_note_glue(struct walk *walk, const struct view *before)
{
    walk->is_glued = is_first_half(walk->verify, before);
    walk->glued = walk->after;
}
