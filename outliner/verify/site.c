/* SPDX-License-Identifier: MIT
 *
 * One instruction of `before` against the output, through as many helpers as it takes.
 *
 * The walk keeps a stack of the helpers it is in. A call adds what it pushes to the
 * distance of SP; a jump adds nothing, and where it is left is decided by the payload's
 * own end. Five things make an instruction of the output one that `before` does not
 * have:
 *
 *   call H, jmp H          H lies among the helpers, and `before` does not go there
 *   save; call H; restore  the same with the link register kept meanwhile
 *   ret                    while a call is open: back to behind that call
 *   push, lea              while a call is open: SP is lower in between, for the calls that
 *                          the helper makes itself
 *   jmp f                  where `before` calls f while a helper's call is open: a
 * thunk. f returns to behind that call, so the call is closed, too
 *
 * Everything else must agree with the next instruction of `before`. Helpers call
 * helpers, so this is a loop, not a case: only the depth is bounded.
 */
#include "outliner/verify/verify.h"

#include <string.h>

/* --- entering --- */

/* The last instruction of a thunk: a jump for a call, through the same or both direct. */
static bool is_thunk_end(struct walk *walk, const struct view *before,
                         const struct view *after)
{
    uint8_t call = before->insn.flow, jump = after->insn.flow;
    bool fits = (call == FLOW_CALL && jump == FLOW_JUMP) ||
                (call == FLOW_CALL_INDIRECT && jump == FLOW_JUMP_INDIRECT);
    return fits && walk_open_call(walk);
}

/* Another jump that `before` does not have leads to the end of some function, which has
 * stayed in its place: it is walked through like a helper. */
static bool goes_to_tail(struct walk *walk, const struct view *before,
                         const struct view *after, const struct spot *target)
{
    const struct object *object = walk->verify->after.objects->items[target->object];
    return after->insn.flow == FLOW_JUMP && before->insn.flow != FLOW_JUMP &&
           !is_thunk_end(walk, before, after) &&
           section_is_code(&object->sections[target->section]);
}

/* Old helpers, which `before` has as well, are entered only where `before` does not. */
static bool goes_to_helper(struct walk *walk, const struct view *before,
                           const struct view *after, struct spot *target)
{
    const struct verify *verify = walk->verify;
    if (!view_target(verify, &verify->after, after, target))
        return false;
    if (!is_helper_section(verify, target->object, target->section))
        return goes_to_tail(walk, before, after, target);
    uint32_t origin = verify->before_of[target->object][target->section];
    struct spot old;
    return origin == NO_INDEX || !view_target(verify, &verify->before, before, &old) ||
           old.object != target->object || old.section != origin;
}

static bool check_entry(struct walk *walk, const struct entered *entered,
                        struct spot target, struct error *err)
{
    struct verify *verify = walk->verify;
    const struct target *machine = verify->target;
    uint32_t row = row_of_spot(&verify->before, walk->before, NULL);
    if (walk->depth == MOST_ENTERED)
        return walk_fail(walk, err, "helpers call each other without end");
    if (row == ROW_UNREAD || lsda_is_unread(&verify->before, walk->before))
        return walk_fail(walk, err, "a helper stands for code that nobody understands");
    if (spot_section(&verify->after, target)->group != NO_INDEX)
        return walk_fail(walk, err, "a helper lies in a group that may be dropped");
    if (!entered->call)
        return true;
    if (entered->keeping.save == SAVE_NONE && machine->link_register < 64 &&
        walk_open_call(walk))
        return walk_fail(walk, err, "a helper loses its own return address");
    /* Only where calls push (x86-64) may code keep something below SP. */
    if (machine->call_pushes == 0)
        return true;
    walk_know_function(walk);
    return !walk->below_sp ||
           walk_fail(walk, err, "a call overwrites what lies below SP");
}

static bool enter(struct walk *walk, struct entered entered, struct spot target,
                  struct error *err)
{
    entered.row = row_of_spot(&walk->verify->before, walk->before, NULL);
    entered.caller = walk->row;
    entered.link_stored = walk->link_stored && entered.row == walk->last_row;
    uint32_t row = row_of_spot(&walk->verify->after, walk->after, NULL);
    entered.link_told = !row_keeps_link(walk->verify, row);
    if (!check_entry(walk, &entered, target, err))
        return false;
    entered.outer = walk_open_call(walk)
                        ? row_of_spot(&walk->verify->after, walk->after, NULL)
                        : ROW_NONE;
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

/* --- entering with the link register kept --- */

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
        if (!has_register(target->scratch_registers, *scratch))
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
    if (entered->keeping.save == SAVE_REGISTER)
        verify->target->emit_save_register(entered->keeping.scratch, &before, &after);
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
    if (!has_register(view->insn.uses, link) || view->insn.flow != FLOW_NEXT ||
        (before->insn.length == view->insn.length &&
         memcmp(before->bytes, view->bytes, view->insn.length) == 0))
        return false;
    struct spot spot = walk->after;
    *entered = (struct entered){.call = true};
    entered->keeping.save = find_save(verify, spot, &entered->keeping.scratch, &length);
    spot.offset += length;
    return entered->keeping.save != SAVE_NONE &&
           view_at(verify, &verify->after, spot, call) &&
           call->insn.flow == FLOW_CALL && goes_to_helper(walk, before, call, target);
}

static bool enter_saving(struct walk *walk, struct entered entered,
                         const struct view *call, struct spot target, struct error *err)
{
    const struct target *machine = walk->verify->target;
    walk_know_function(walk);
    if (entered.keeping.save == SAVE_REGISTER &&
        !has_register(walk->written, entered.keeping.scratch))
        return walk_fail(walk, err,
                         "the link register is kept in a register that the "
                         "function does not write");
    entered.shift =
        machine->call_pushes +
        (entered.keeping.save == SAVE_STACK ? machine->save_stack_shift : 0);
    entered.keeping.returns = walk_link_is_return(walk);
    walk->after = call->at;
    if (!walk_check_row(walk, entered.keeping, err))
        return false;
    entered.resume = call->at;
    entered.resume.offset += call->insn.length;
    return enter(walk, entered, target, err);
}

/* --- calls inside of helpers --- */

/* The code there lowers SP so that it is aligned for calls, or raises it again. */
static bool finds_align(const struct verify *verify, struct spot spot, bool raises,
                        uint8_t *length)
{
    struct code_bytes before, after;
    if (verify->target->align_shift == 0)
        return false;
    verify->target->emit_align(&before, &after);
    *length = raises ? after.length : before.length;
    return bytes_are(verify, spot, raises ? &after : &before);
}

/* The next instruction is one of the helper's own. (Payloads of called helpers move SP in
 * no case.) */
static bool is_own(struct walk *walk, uint8_t *length)
{
    const struct entered *top = walk_open_call(walk);
    return top && finds_align(walk->verify, walk->after, top->aligns, length);
}

/* Such an instruction, as all that moves SP. (Most are told without looking at bytes.) */
static bool may_be_own(const struct walk *walk, const struct view *view)
{
    return walk->depth > 0 &&
           has_register(view->insn.defs, walk->verify->target->stack_register);
}

static void take_own(struct walk *walk, uint8_t length)
{
    struct entered *top = walk_open_call(walk);
    top->shift += top->aligns ? -walk->verify->target->align_shift
                              : walk->verify->target->align_shift;
    top->aligns = !top->aligns;
    walk->after.offset += length;
}

/* --- leaving --- */

/* The call has overwritten the link register, so nobody may have wanted it. */
static bool check_link(struct walk *walk, const struct entered *entered,
                       struct error *err)
{
    const struct verify *verify = walk->verify;
    if (entered->keeping.save != SAVE_NONE || verify->target->link_register >= 64 ||
        walk_open_call(walk))
        return true;
    bool behind = walk->before.offset >= walk->end;
    uint32_t now =
        behind ? entered->row : row_of_spot(&verify->before, walk->before, NULL);
    bool late = entered->link_stored && entered->link_told &&
                (now == entered->row || !row_keeps_link(verify, now));
    walk->link_lost = late && !behind;
    if (!late && (row_keeps_link(verify, entered->row) || row_keeps_link(verify, now)))
        return walk_fail(walk, err, "the call to a helper loses the return address");
    return true;
}

/* Behind the payload of a called helper: its return, then what restores the link
 * register. */
static bool leave(struct walk *walk, struct error *err)
{
    struct verify *verify = walk->verify;
    struct entered *top = walk_open_call(walk);
    struct code_bytes code;
    if (!walk_check_row(walk, NOT_KEPT, err))
        return false;
    if (top->aligns)
        return walk_fail(walk, err, "a helper leaves SP lowered");
    struct entered left = *top;
    walk->depth = (uint32_t)(top - walk->entered);
    walk->after = left.resume;
    if (left.keeping.save == SAVE_NONE)
        return check_link(walk, &left, err);
    code = restore_of(verify, &left);
    if (!bytes_are(verify, walk->after, &code))
        return walk_fail(walk, err, "the link register is not restored");
    if (!walk_check_row(walk, left.keeping, err))
        return false;
    walk->after.offset += code.length;
    return true;
}

/* A helper that has to raise SP jumps to where another one does that, or jumps there. */
static bool goes_to_raise(struct walk *walk, struct view *view, struct spot *target)
{
    const struct verify *verify = walk->verify;
    struct spot at = walk->after, next;
    uint8_t length;
    if (!walk_open_call(walk)->aligns)
        return false;
    for (uint32_t jumps = 0; jumps < MOST_ENTERED; jumps++) {
        struct view jump;
        if (!view_at(verify, &verify->after, at, &jump) ||
            jump.insn.flow != FLOW_JUMP ||
            !view_target(verify, &verify->after, &jump, &next))
            return false;
        if (jumps == 0) {
            *view = jump;
            *target = next;
        }
        if (finds_align(verify, next, true, &length))
            return true;
        at = next;
    }
    return false;
}

/* Takes the walk out of all helpers whose payload is complete: of those that return in
 * the way that ours do. */
static bool settle(struct walk *walk, struct error *err)
{
    struct code_bytes code;
    struct view view;
    struct spot target;
    uint8_t length;
    bool good = true;
    if (walk->depth == 0)
        return true;
    walk->verify->target->emit_return(&code);
    while (good && walk_open_call(walk)) {
        if (walk_open_call(walk)->aligns && is_own(walk, &length)) {
            good = walk_check_row(walk, NOT_KEPT, err);
            if (good)
                take_own(walk, length);
        } else if (goes_to_raise(walk, &view, &target))
            good = walk_check_row(walk, NOT_KEPT, err) &&
                   enter_plainly(walk, &view, target, err);
        else if (bytes_are(walk->verify, walk->after, &code))
            good = leave(walk, err);
        else
            break;
    }
    return good;
}

/* --- one instruction --- */

/* Behind an instruction that both have: out of helpers that it leaves. */
static void go_back(struct walk *walk, const struct view *before, bool thunk)
{
    uint8_t flow = before->insn.flow;
    bool ends = flow == FLOW_RETURN || flow == FLOW_JUMP ||
                flow == FLOW_JUMP_INDIRECT || flow == FLOW_STOP;
    if (thunk) {
        struct entered *top = walk_open_call(walk);
        walk->after = top->resume;
        walk->depth = (uint32_t)(top - walk->entered);
    } else if (ends && walk->depth > 0 && !walk_open_call(walk)) {
        walk->after = walk->entered[0].resume;
        walk->depth = 0;
    }
}

static bool take(struct walk *walk, const struct view *before, const struct view *after,
                 struct error *err)
{
    bool thunk = is_thunk_end(walk, before, after);
    if (!walk_check(walk, before, thunk, err) ||
        !walk_check_handler(walk, before, after, err) ||
        !views_agree(walk->verify, before, after, walk_shift(walk), thunk, err))
        return false;
    walk_note_link(walk, before, row_of_spot(&walk->verify->before, walk->before, NULL));
    walk->before.offset += before->insn.length;
    walk->after.offset += after->insn.length;
    walk_note_glue(walk, before);
    go_back(walk, before, thunk);
    return settle(walk, err);
}

bool walk_over(struct walk *walk, const struct view *before, struct error *err)
{
    for (;;) {
        struct view view, call;
        struct entered entered;
        struct spot target;
        if (!view_like(walk->verify, &walk->verify->after, walk->after, before, &view))
            return walk_fail(walk, err, "no instruction is left");
        if (!walk_check_row(walk, NOT_KEPT, err))
            return false;
        bool entering = true;
        uint8_t length;
        if (may_be_own(walk, &view) && is_own(walk, &length))
            take_own(walk, length);
        else if (goes_to_helper(walk, before, &view, &target))
            entering = enter_plainly(walk, &view, target, err);
        else if (is_saving_site(walk, before, &view, &entered, &call, &target))
            entering = enter_saving(walk, entered, &call, target, err);
        else
            return take(walk, before, &view, err);
        if (!entering)
            return false;
    }
}
