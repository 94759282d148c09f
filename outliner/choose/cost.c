/* SPDX-License-Identifier: MIT
 *
 * What a site and a helper are worth, in loaded bytes. Code is counted exactly;
 * .eh_frame by a few constants, as the choice has to look at many millions of
 * occurrences: plan_price() measures the finished plan.
 */
#include "outliner/choose/choose.h"

/* Bytes of unwind program: operations with operands of one byte, which is what they
 * have in all but huge frames. */
enum {
    EH_ADVANCE = 1,
    EH_CFA = 2,           /* def_cfa_offset, mostly */
    EH_SAVE = 2,          /* offset */
    EH_RESTORE = 1,       /* restore; or a toggle of the signing state */
    EH_BACK = 2,          /* remember and restore of a whole state … */
    EH_ALIGN = 6, /* advance and def_cfa_offset where a helper pushes, and where it pops */
    EH_KEEP_REGISTER = 6, /* advance, register (3), advance, restore */
    EH_KEEP_STACK = 10,   /* advance, def_cfa_offset (2), offset (2), and all back */
};

/* Of going from one row to another: by the difference … */
uint32_t cost_change(const struct facts *facts, uint32_t from_row, uint32_t to_row)
{
    if (from_row == to_row) {
        return 0;
    }
    const struct row *from = row_get(facts->program->rows, from_row);
    const struct row *to = row_get(facts->program->rows, to_row);
    bool moved =
        from->cfa_register != to->cfa_register || from->cfa_offset != to->cfa_offset;
    uint32_t size = moved ? EH_CFA : 0;
    for (uint32_t i = 0; i < from->rule_count; i++) {
        size += row_rule(to, from->rules[i].column) == NULL ? EH_RESTORE : 0;
    }
    for (uint32_t i = 0; i < to->rule_count; i++) {
        size += row_rule(from, to->rules[i].column) == NULL ? EH_SAVE : 0;
    }
    size += from->ra_signed != to->ra_signed ? EH_RESTORE : 0;
    return EH_ADVANCE + size;
}

/* … or back to one that was remembered. */
static uint32_t back_size(const struct facts *facts, uint32_t from_row, uint32_t to_row)
{
    uint32_t size = cost_change(facts, from_row, to_row);
    return size < EH_ADVANCE + EH_BACK ? size : EH_ADVANCE + EH_BACK;
}

/* Of all row changes behind the first instruction and before `end`. */
static uint32_t changes_size(const struct facts *facts, uint32_t insn, uint32_t end)
{
    uint32_t size = 0;
    for (uint32_t i = insn, to = facts->at[i].row_end; to < end; i = to) {
        to = facts->at[i].row_end;
        if (to < end) {
            size += cost_change(facts, facts->at[i].row, facts->at[to].row);
        }
    }
    return size;
}

/* What the unwind program of the site's function gets smaller by. */
static int64_t frame_gain(const struct facts *facts, const struct payload *payload,
                          const struct site *site)
{
    uint32_t end = site->insn + payload->length;
    uint32_t behind = facts_behind(facts, site->insn, payload->length);
    if (facts->at[site->insn].row == ROW_NONE) {
        return 0;
    }
    if (site->form == FORM_TAIL) {
        int64_t gain = changes_size(facts, site->insn, end);
        if (behind != NO_INDEX) {
            gain += back_size(facts, facts->at[end - 1].row, facts->at[behind].row);
            gain -= back_size(facts, facts->at[site->insn].row, facts->at[behind].row);
        }
        return gain;
    }
    if (site->form == FORM_SAVE_REGISTER) {
        return -EH_KEEP_REGISTER;
    }
    if (site->form == FORM_SAVE_STACK) {
        return -EH_KEEP_STACK;
    }
    /* All changes are stated at once, behind the call. */
    int64_t advances = 0;
    uint32_t last = behind == NO_INDEX ? end - 1 : behind;
    for (uint32_t i = facts->at[site->insn].row_end; i <= last; i = facts->at[i].row_end) {
        advances += EH_ADVANCE;
    }
    return advances > 0 ? advances - EH_ADVANCE : 0;
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

bool cost_site(const struct facts *facts, const struct payload *payload,
               struct site *site)
{
    int64_t after = site_size(facts->program->target, site);
    site->bytes = facts_bytes(facts, site->insn, payload->length);
    int64_t saving = site->bytes - after + frame_gain(facts, payload, site);
    site->saving = (int32_t)saving;
    site->cold = fact_is(facts, site->insn, FACT_COLD);
    return saving > 0;
}

uint32_t cost_body(const struct payload *payload, const struct site *site)
{
    return site->form == FORM_SAVE_STACK ? payload->stack_size : payload->size;
}

/* Tails with the same row at their entry lie side by side: going on to the next is
 * going back. The first of them states all of its row; say that two share. */
static uint32_t tail_entry(const struct facts *facts, const struct payload *payload,
                           const struct site *site)
{
    uint32_t entry = tail_row(facts->tail_rows, facts->at[site->insn].row,
                              site_settled(facts, payload, site));
    const struct row *row = row_get(facts->program->rows, entry);
    uint32_t whole = EH_ADVANCE + EH_CFA + EH_SAVE * row->rule_count;
    return EH_ADVANCE + EH_BACK + whole / 2;
}

int64_t cost_helper(const struct facts *facts, const struct payload *payload,
                    const struct site *site)
{
    int64_t cost = cost_body(payload, site);
    if (payload->inner && facts->at[site->insn].row != ROW_NONE) {
        cost += EH_ALIGN;
    }
    uint32_t end = site->insn + payload->length;
    if (facts->at[site->insn].row_end >= end && site->form != FORM_TAIL) {
        return cost;
    }
    uint32_t changes = changes_size(facts, site->insn, end);
    if (site->form == FORM_TAIL && facts->at[site->insn].row != ROW_NONE) {
        cost += tail_entry(facts, payload, site) + changes;
    } else if (site_key(facts, payload, site) != 0) {
        cost += changes + EH_BACK;
    }
    return cost;
}

/* Binary logarithm of a positive number, in units of 2^-LOG_BITS: by squaring, so that
 * every machine gets the same bits. */
enum { LOG_BITS = 24 };
static int64_t binary_log(uint64_t number)
{
    int64_t log = 0;
    for (; number >= UINT64_C(1) << 32; number >>= 1) {
        log++;
    }
    for (; number < UINT64_C(1) << 31; number <<= 1) {
        log--;
    }
    log += 31; /* now it is number * 2^-31 in [1, 2) whose logarithm is missing */
    for (uint32_t bit = 0; bit < LOG_BITS; bit++) {
        number = number * number >> 31;
        log *= 2;
        if (number >= UINT64_C(1) << 32) {
            number >>= 1;
            log++;
        }
    }
    return log;
}

/* saving / covered^1.08, as a logarithm. With an exponent of 1 many small sequences
 * beat the few long ones that they are parts of; measured over ten libraries, 1.05
 * to 1.1 saves most on both targets (x86-64: 2 to 3 % more than 1), 1.2 less than 1. */
int64_t cost_merit(int64_t saving, uint64_t covered)
{
    if (saving <= 0 || covered == 0) {
        return INT64_MIN;
    }
    return 100 * binary_log((uint64_t)saving) - 108 * binary_log(covered);
}
