/* SPDX-License-Identifier: MIT
 *
 * What a site and a helper are worth, in loaded bytes. Code is counted exactly;
 * .eh_frame by a few constants, as the choice has to look at many millions of
 * occurrences: plan_price() measures the finished plan.
 */
#include "outliner/choose.h"

/* Bytes of unwind program. Each change of row is an advance (1) and one operation (a
 * def_cfa_offset or a restore with one-byte operands: 1 to 3). */
enum {
    EH_CHANGE = 3,   /* a row change that a tail takes out of its function */
    EH_REMEMBER = 3, /* remember, advance, restore around an epilogue in the middle */
    EH_MERGED = 1,   /* advance of a change that falls together with another */
    EH_KEEP_REGISTER = 6, /* advance, register (3), advance, restore */
    EH_KEEP_STACK = 10,   /* advance, def_cfa_offset (2), offset (2) … and all back */
    EH_TAIL_ENTRY = 6,    /* from the row of the helper before it to this one's */
    EH_TAIL_CHANGE = 3,   /* a row change inside a tail helper */
    EH_CALLED_CHANGE = 4, /* a register saved inside a called one, and its row's end */
};

/* Row changes behind the first instruction and before `end`. */
static uint32_t changes_of(const struct facts *facts, uint32_t insn, uint32_t end)
{
    uint32_t count = 0;
    for (uint32_t i = facts->row_end[insn]; i < end; i = facts->row_end[i]) {
        count++;
    }
    return count;
}

/* What the unwind program of the site's function gets smaller by. */
static int64_t frame_gain(const struct facts *facts, const struct payload *payload,
                          const struct site *site)
{
    uint32_t end = site->insn + payload->length;
    uint32_t behind = facts_behind(facts, site->insn, payload->length);
    if (facts->row[site->insn] == ROW_NONE) {
        return 0;
    }
    if (site->form == FORM_TAIL) {
        int64_t changes = changes_of(facts, site->insn, end);
        bool in_middle = behind != NO_INDEX && changes > 0;
        return changes * EH_CHANGE + (in_middle ? EH_REMEMBER : 0);
    }
    /* All changes are stated at once, behind the call. */
    int64_t changes = changes_of(facts, site->insn, behind == NO_INDEX ? end : end + 1);
    int64_t gain = changes > 1 ? (changes - 1) * EH_MERGED : 0;
    if (site->form == FORM_SAVE_REGISTER) {
        gain -= EH_KEEP_REGISTER;
    } else if (site->form == FORM_SAVE_STACK) {
        gain -= EH_KEEP_STACK;
    }
    return gain;
}

static uint32_t site_size(const struct target *target, const struct site *site)
{
    switch ((enum form)site->form) {
    case FORM_TAIL: return target->jump_size;
    case FORM_SAVE_REGISTER:
        return (uint32_t)target->call_size + target->save_register_size;
    case FORM_SAVE_STACK: return (uint32_t)target->call_size + target->save_stack_size;
    default: return target->call_size;
    }
}

int64_t cost_site(const struct facts *facts, const struct payload *payload,
                  const struct site *site)
{
    int64_t before = facts_bytes(facts, site->insn, payload->length);
    int64_t after = site_size(facts->program->target, site);
    return before - after + frame_gain(facts, payload, site);
}

uint32_t cost_body(const struct payload *payload, const struct site *site)
{
    return site->form == FORM_SAVE_STACK ? payload->stack_size : payload->size;
}

int64_t cost_helper(const struct facts *facts, const struct payload *payload,
                    const struct site *site)
{
    int64_t cost = cost_body(payload, site);
    uint32_t changes = changes_of(facts, site->insn, site->insn + payload->length);
    if (site->form == FORM_TAIL && facts->row[site->insn] != ROW_NONE) {
        cost += EH_TAIL_ENTRY + EH_TAIL_CHANGE * changes;
    } else if (changes > 0 && site_key(facts, payload, site) != 0) {
        cost += EH_CALLED_CHANGE * changes;
    }
    return cost;
}
