/* SPDX-License-Identifier: MIT
 *
 * What call-site tables have against moving code (design 4.8).
 *
 * An unwinder comes to a function by the return address of a call, and the function's
 * personality looks up the call site around it. A helper has no personality. So while a
 * called helper or a thunk's callee throws, what counts is the call site around the
 * call to the helper; and what throws in a tail finds no call site at all: there, only
 * code may stand that exceptions pass through anyway.
 *
 * What may throw is a call, and with -fnon-call-exceptions whatever may fault. Nothing
 * in an object says that it was compiled so: a call-site table lists what may throw,
 * but some compilers list everything, and a gap (noexcept) lists nothing. So what may
 * fault counts always. Other instructions cannot throw, but one where a landing pad
 * would catch it is not believed.
 *
 * All that may throw in a called payload must share one call site, and no boundary may
 * follow the first of it: the rewriter puts boundaries inside of a payload in front of
 * the call to the helper.
 */
#include "outliner/choose/choose.h"

static bool is_call(const struct insn *insn)
{
    return insn->flow == FLOW_CALL || insn->flow == FLOW_CALL_INDIRECT;
}

static bool sets_frame(const struct program *program, const struct function *function)
{
    for (uint32_t i = 0; i < function->insn_count; i++) {
        if (program->insns[function->first_insn + i].traits & INSN_FRAME_SET)
            return true;
    }
    return false;
}

static void fill_function(const struct program *program,
                          const struct function *function, struct fact *facts,
                          uint32_t *ends)
{
    const struct insn *insns = program->insns;
    /* Without a frame its register may point anywhere. */
    uint32_t faults =
        INSN_FAULTS | (sets_frame(program, function) ? 0u : INSN_FRAME_MEMORY);
    uint32_t end = function->first_insn + function->insn_count;
    uint32_t site_end = end, thrower = end, tail_end = end;
    const struct call_site *behind = NULL;
    for (uint32_t i = end; i-- > function->first_insn;) {
        const struct call_site *site = insn_call_site(function, &insns[i]);
        enum guard guard = insn_guard(function, &insns[i]);
        if (i + 1 < end && site != behind)
            site_end = i + 1;
        bool may_throw = is_call(&insns[i]) || (insns[i].traits & faults) != 0;
        if (may_throw || guard == GUARD_PAD)
            thrower = i;
        if (guard == GUARD_PAD || (guard == GUARD_GAP && may_throw))
            tail_end = i;
        ends[i] = site_end;
        facts[i].thrower = thrower;
        facts[i].tail_end = tail_end;
        behind = site;
    }
}

void throws_fill(const struct program *program, const struct function *function,
                 struct fact *facts, uint32_t *site_end)
{
    if (function->lsda != NULL) {
        fill_function(program, function, facts, site_end);
        return;
    }
    uint32_t end = function->first_insn + function->insn_count;
    for (uint32_t i = function->first_insn; i < end; i++) {
        facts[i].thrower = facts[i].tail_end = end;
    }
}

bool throws_allow_tail(const struct facts *facts, uint32_t insn, uint32_t length)
{
    return facts->at[insn].tail_end >= insn + length;
}

bool throws_allow_call(const struct facts *facts, const struct payload *payload,
                       const struct site *site)
{
    uint32_t end = site->insn + payload->length;
    uint32_t thrower = facts->at[site->insn].thrower;
    if (thrower >= end) {
        return true;
    }
    if (facts->site_end[thrower] < end) {
        return false;
    }
    if ((facts->program->insns[thrower].traits & INSN_LANDS) == 0) {
        return true;
    }
    /* Something lands out of the helper's own frame: with SP as it is here, and with
     * the registers that the payload has written. What a thunk ends in has a frame of
     * its own, but when it is a helper of an earlier round it lands out of that. */
    bool last = payload->kind == PAYLOAD_THUNK && thrower + 1 == end;
    return (last || site->form == FORM_PLAIN || site->form == FORM_THUNK) &&
           facts->at[site->insn].row_end >= end;
}
