/* SPDX-License-Identifier: MIT
 *
 * One instruction of `before` against the output, through as many helpers as it takes.
 *
 * The walk keeps a stack of the helpers it is in. A call adds what it pushes to the
 * distance of SP; a jump adds nothing, and where it is left is decided by the payload's
 * own end. Four things make an instruction of the output one that `before` does not
 * have:
 *
 *   call H, jmp H          H lies among the helpers, and `before` does not go there
 *   save; call H; restore  the same with the link register kept meanwhile
 *   ret                    while a call is open: back to behind that call
 *   jmp f                  where `before` calls f while a helper's call is open: a
 * thunk. f returns to behind that call, so the call is closed, too
 *
 * Everything else must agree with the next instruction of `before`. Helpers call
 * helpers, so this is a loop, not a case: only the depth is bounded.
 */
#include "outliner/verify.h"

#include <string.h>

/* The innermost helper that has been called, or NULL. */
static struct entered *open_call(struct walk *walk)
{
    for (uint32_t i = walk->depth; i-- > 0;)
        if (walk->entered[i].call)
            return &walk->entered[i];
    return NULL;
}

/* The outermost one: its caller is what an unwinder sees behind all helpers. */
static struct entered *first_call(struct walk *walk)
{
    for (uint32_t i = 0; i < walk->depth; i++)
        if (walk->entered[i].call)
            return &walk->entered[i];
    return NULL;
}

static int32_t shift_of(const struct walk *walk)
{
    int32_t shift = 0;
    for (uint32_t i = 0; i < walk->depth; i++)
        shift += walk->entered[i].shift;
    return shift;
}

#define differ(walk, err, ...)                                                         \
    verify_fail((walk)->verify, (walk)->before, (walk)->after, (err), __VA_ARGS__)

static bool has(uint64_t regs, uint8_t reg)
{
    return reg < 64 && (regs >> reg & 1);
}

static uint32_t row_before(const struct walk *walk)
{
    return row_of_spot(&walk->verify->before, walk->before, NULL);
}

/* --- rows
 * -----------------------------------------------------------------------------------
 */

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

/* The row at the next instruction of the output is what it must be. A helper that has
 * been called has a frame of its own; code without unwind data does not care which. */
static bool check_row(struct walk *walk, enum save save, uint8_t scratch,
                      struct error *err)
{
    struct verify *verify = walk->verify;
    const struct fde *old, *new;
    uint32_t before = row_of_spot(&verify->before, walk->before, &old);
    uint32_t after = row_of_spot(&verify->after, walk->after, &new);
    bool behind = walk->before.offset >= walk->end;
    if (open_call(walk)) {
        if ((before == ROW_NONE || behind) && after == ROW_NONE)
            return true;
        return row_is_saved(verify, verify->entry_row, after, save, scratch) ||
               differ(walk, err, "wrong unwind row in a called helper");
    }
    if (behind)
        return true;
    if (!row_is_saved(verify, before, after, save, scratch))
        return differ(walk, err, "wrong unwind row");
    return walk->depth == 0 || same_kind_of_frame(walk, old, new) ||
           differ(walk, err, "the unwind entry of a tail is of another kind");
}

/* --- entering
 * ------------------------------------------------------------------------------- */

/* Old helpers, which `before` has as well, are entered only where `before` does not. */
static bool goes_to_helper(struct walk *walk, const struct view *before,
                           const struct view *after, struct spot *target)
{
    const struct verify *verify = walk->verify;
    if (!view_target(verify, &verify->after, after, target) ||
        !is_helper_section(verify, target->object, target->section))
        return false;
    uint32_t origin = verify->before_of[target->object][target->section];
    struct spot old;
    return origin == NO_INDEX || !view_target(verify, &verify->before, before, &old) ||
           old.object != target->object || old.section != origin;
}

static bool check_entry(struct walk *walk, const struct entered *entered,
                        struct error *err)
{
    struct verify *verify = walk->verify;
    const struct target *target = verify->target;
    const struct fde *fde;
    uint32_t row = row_of_spot(&verify->before, walk->before, &fde);
    if (walk->depth == MOST_ENTERED)
        return differ(walk, err, "helpers call each other without end");
    if (row == ROW_UNREAD || (fde && fde->has_lsda))
        return differ(walk, err, "a helper stands for code with a call-site table");
    if (!entered->call)
        return true;
    if (entered->save == SAVE_NONE && target->link_register < 64 && open_call(walk))
        return differ(walk, err, "a helper loses its own return address");
    if (entered->shift > 0 && walk->below_sp)
        return differ(walk, err, "a call overwrites what lies below SP");
    return true;
}

static bool enter(struct walk *walk, struct entered entered, struct spot target,
                  struct error *err)
{
    entered.row = row_before(walk);
    if (!check_entry(walk, &entered, err))
        return false;
    walk->entered[walk->depth++] = entered;
    walk->after = target;
    return true;
}

static bool enter_plainly(struct walk *walk, const struct view *view,
                          struct spot target, struct error *err)
{
    struct entered entered = {.call = view->insn.flow == FLOW_CALL, .resume = view->at};
    entered.resume.offset += view->insn.length;
    entered.shift = entered.call ? walk->verify->target->call_pushes : 0;
    return enter(walk, entered, target, err);
}

/* --- entering with the link register kept
 * --------------------------------------------------- */

static bool bytes_are(const struct verify *verify, struct spot spot,
                      const struct code_bytes *code)
{
    const struct section *section = spot_section(&verify->after, spot);
    return (uint64_t)spot.offset + code->length <= section->data.size &&
           memcmp(section->data.at + spot.offset, code->bytes, code->length) == 0;
}

/* Which way of keeping the link register the code there is; SAVE_NONE: none. */
static enum save find_save(const struct verify *verify, struct spot spot,
                           uint8_t *scratch, uint8_t *length)
{
    const struct target *target = verify->target;
    struct code_bytes before, after;
    for (*scratch = 0; target->save_register_size && *scratch < 64; ++*scratch) {
        if (!has(target->scratch_registers, *scratch))
            continue;
        target->emit_save_register(*scratch, &before, &after);
        *length = before.length;
        if (bytes_are(verify, spot, &before))
            return SAVE_REGISTER;
    }
    if (!target->save_stack_size)
        return SAVE_NONE;
    target->emit_save_stack(&before, &after);
    *length = before.length;
    return bytes_are(verify, spot, &before) ? SAVE_STACK : SAVE_NONE;
}

static struct code_bytes restore_of(const struct verify *verify,
                                    const struct entered *entered)
{
    struct code_bytes before, after;
    if (entered->save == SAVE_REGISTER)
        verify->target->emit_save_register(entered->scratch, &before, &after);
    else
        verify->target->emit_save_stack(&before, &after);
    return after;
}

/* `entered` gets everything of a site that keeps the link register; false when the code
 * is none. It is none when `before` has the same instruction: a payload that is reached
 * this way never begins with one that reads the link register. */
static bool is_saving_site(struct walk *walk, const struct view *before,
                           const struct view *view, struct entered *entered,
                           struct view *call, struct spot *target)
{
    const struct verify *verify = walk->verify;
    uint8_t link = verify->target->link_register, length;
    if (!has(view->insn.uses, link) || view->insn.flow != FLOW_NEXT ||
        (before->insn.length == view->insn.length &&
         memcmp(before->bytes, view->bytes, view->insn.length) == 0))
        return false;
    struct spot spot = walk->after;
    *entered = (struct entered){.call = true};
    entered->save = find_save(verify, spot, &entered->scratch, &length);
    spot.offset += length;
    return entered->save != SAVE_NONE && view_at(verify, &verify->after, spot, call) &&
           call->insn.flow == FLOW_CALL && goes_to_helper(walk, before, call, target);
}

static bool enter_saving(struct walk *walk, struct entered entered,
                         const struct view *call, struct spot target, struct error *err)
{
    const struct target *machine = walk->verify->target;
    if (entered.save == SAVE_REGISTER && !has(walk->written, entered.scratch))
        return differ(walk, err,
                      "the link register is kept in a register that the "
                      "function does not write");
    entered.shift = machine->call_pushes +
                    (entered.save == SAVE_STACK ? machine->save_stack_shift : 0);
    walk->after = call->at;
    if (!check_row(walk, entered.save, entered.scratch, err))
        return false;
    entered.resume = call->at;
    entered.resume.offset += call->insn.length;
    return enter(walk, entered, target, err);
}

/* --- leaving
 * ---------------------------------------------------------------------------------- */

/* The call has overwritten the link register, so nobody may have wanted it. */
static bool check_link(struct walk *walk, const struct entered *entered,
                       struct error *err)
{
    const struct verify *verify = walk->verify;
    if (entered->save != SAVE_NONE || verify->target->link_register >= 64 ||
        open_call(walk))
        return true;
    bool behind = walk->before.offset >= walk->end;
    if (row_keeps_link(verify, entered->row) ||
        (!behind && row_keeps_link(verify, row_before(walk))))
        return differ(walk, err, "the call to a helper loses the return address");
    return true;
}

/* Behind the payload of a called helper: its return, then what restores the link
 * register. */
static bool leave(struct walk *walk, struct error *err)
{
    struct verify *verify = walk->verify;
    struct entered *top = open_call(walk), *first = first_call(walk);
    struct code_bytes code;
    verify->target->emit_return(&code);
    if (!bytes_are(verify, walk->after, &code))
        return differ(walk, err, "a helper returns in an unusual way");
    if (!check_row(walk, SAVE_NONE, 0, err))
        return false;
    if (walk->before.offset < walk->end &&
        !row_still_true(verify, first->row, row_before(walk), first->written))
        return differ(walk, err, "the unwind row of the site is wrong in the helper");
    struct entered left = *top;
    walk->depth = (uint32_t)(top - walk->entered);
    walk->after = left.resume;
    if (left.save == SAVE_NONE)
        return check_link(walk, &left, err);
    code = restore_of(verify, &left);
    if (!bytes_are(verify, walk->after, &code))
        return differ(walk, err, "the link register is not restored");
    if (!check_row(walk, left.save, left.scratch, err))
        return false;
    walk->after.offset += code.length;
    return true;
}

/* Takes the walk out of all helpers whose payload is complete. */
static bool settle(struct walk *walk, struct error *err)
{
    struct view view;
    while (open_call(walk) &&
           view_at(walk->verify, &walk->verify->after, walk->after, &view)) {
        if (view.insn.flow != FLOW_RETURN)
            return true;
        if (!leave(walk, err))
            return false;
    }
    return true;
}

/* --- what a helper must not hold
 * -------------------------------------------------------------- */

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
        return differ(walk, err, "an instruction that must not move is in a helper");
    for (uint32_t i = 0; i < walk->depth; i++) {
        const struct entered *entered = &walk->entered[i];
        if (entered->save == SAVE_REGISTER &&
            has(view->insn.uses | view->insn.defs, entered->scratch))
            return differ(walk, err,
                          "a helper touches the register that keeps the link "
                          "register");
    }
    return true;
}

/* In a helper that has been called. */
static bool check_called(struct walk *walk, const struct view *view, struct error *err)
{
    const struct target *target = walk->verify->target;
    uint64_t touched = view->insn.uses | view->insn.defs;
    bool shifted = shift_of(walk) != 0;
    if (view->insn.flow != FLOW_NEXT && view->insn.flow != FLOW_STOP)
        return differ(walk, err, "control flow inside a called helper");
    if (has(touched, target->link_register) || (view->insn.traits & INSN_SIGNS))
        return differ(walk, err, "a called helper touches the return address");
    if ((view->insn.traits & (INSN_SP_ADJUST | INSN_SP_FROM_FRAME)) ||
        has(view->insn.defs, target->stack_register))
        return differ(walk, err, "a called helper moves SP");
    if (shifted && has(touched, target->stack_register) &&
        !(view->insn.traits & (INSN_SP_MEMORY | INSN_SP_COPY)))
        return differ(walk, err, "a called helper uses SP in an unknown way");
    if (shifted && (view->insn.traits & INSN_BELOW_SP))
        return differ(walk, err, "a called helper touches memory below SP");
    struct entered *first = first_call(walk);
    if (!row_still_true(walk->verify, first->row, row_before(walk), first->written))
        return differ(walk, err, "the unwind row of the site is wrong in the helper");
    first->written |= view->insn.defs;
    return true;
}

/* The call at the end of a thunk: the callee sees what it saw. */
static bool check_thunk(struct walk *walk, const struct view *view, struct error *err)
{
    const struct entered *top = open_call(walk);
    if (top->save != SAVE_NONE || shift_of(walk) != top->shift ||
        top != first_call(walk))
        return differ(walk, err,
                      "a thunk's callee would see another SP or return address");
    if (has(view->insn.uses, walk->verify->target->link_register) ||
        (view->insn.traits & INSN_SIGNS))
        return differ(walk, err, "a thunk's last call reads the link register");
    if (row_before(walk) != top->row)
        return differ(walk, err, "the unwind row changes inside a thunk");
    return true;
}

/* --- one instruction
 * -------------------------------------------------------------------------- */

static bool is_thunk_end(struct walk *walk, const struct view *before,
                         const struct view *after)
{
    bool calls =
        before->insn.flow == FLOW_CALL || before->insn.flow == FLOW_CALL_INDIRECT;
    bool jumps =
        after->insn.flow == FLOW_JUMP || after->insn.flow == FLOW_JUMP_INDIRECT;
    return calls && jumps && open_call(walk);
}

/* Where the walk goes on behind an instruction that both have. */
static void advance(struct walk *walk, const struct view *before,
                    const struct view *after, bool thunk)
{
    uint8_t flow = before->insn.flow;
    bool ends = flow == FLOW_RETURN || flow == FLOW_JUMP ||
                flow == FLOW_JUMP_INDIRECT || flow == FLOW_STOP;
    walk->before.offset += before->insn.length;
    walk->after.offset += after->insn.length;
    if (thunk) {
        struct entered *top = open_call(walk);
        walk->after = top->resume;
        walk->depth = (uint32_t)(top - walk->entered);
    } else if (ends && walk->depth > 0 && !open_call(walk)) {
        walk->after = walk->entered[0].resume;
        walk->depth = 0;
    }
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
    return !parted || differ(walk, err,
                             "two instructions have been parted that a "
                             "linker rewrites together");
}

static bool take(struct walk *walk, const struct view *before, const struct view *after,
                 struct error *err)
{
    bool thunk = is_thunk_end(walk, before, after);
    bool fine = check_glue(walk, before, err) &&
                (walk->depth == 0 || check_moved(walk, before, err));
    if (fine && thunk)
        fine = check_thunk(walk, before, err);
    else if (fine && open_call(walk))
        fine = check_called(walk, before, err);
    if (!fine || !views_agree(walk->verify, before, after, shift_of(walk), thunk, err))
        return false;
    walk->is_glued = is_first_half(walk->verify, before);
    walk->glued = after->at;
    walk->glued.offset += after->insn.length;
    advance(walk, before, after, thunk);
    return settle(walk, err);
}

bool walk_over(struct walk *walk, const struct view *before, struct error *err)
{
    for (;;) {
        struct view view, call;
        struct entered entered;
        struct spot target;
        if (!view_at(walk->verify, &walk->verify->after, walk->after, &view))
            return differ(walk, err, "no instruction is left");
        if (!check_row(walk, SAVE_NONE, 0, err))
            return false;
        bool entering = true;
        if (goes_to_helper(walk, before, &view, &target))
            entering = enter_plainly(walk, &view, target, err);
        else if (is_saving_site(walk, before, &view, &entered, &call, &target))
            entering = enter_saving(walk, entered, &call, target, err);
        else
            return take(walk, before, &view, err);
        if (!entering)
            return false;
    }
}
