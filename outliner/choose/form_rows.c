/* SPDX-License-Identifier: MIT
 *
 * What unwind rows allow a called helper. While it runs, an unwinder finds the helper's
 * own frame first and then its caller in the row from before the site; the changes that
 * the payload made are stated behind the call. So the row from before must stay true
 * until the payload's end: where it does not, because a register has been saved and
 * then written, the helper's own rows can make up for it.
 */
#include "outliner/choose/choose.h"

/* The return address has been stored, and the next row, in a straight line from here and
 * before any call, says where. The rewriter says it at the site already: with all of that
 * row, where this one finds no frame. */
static bool is_told_soon(const struct facts *facts, uint32_t insn)
{
    const struct program *program = facts->program;
    uint32_t next = facts->at[insn].row_end;
    if (!fact_is(facts, insn, FACT_LINK_STORED) || next >= program->insn_count ||
        program->insns[next].function != program->insns[insn].function ||
        facts->at[next].row == ROW_NONE) {
        return false;
    }
    for (uint32_t i = insn; i < next; i++) {
        if (program->insns[i].flow != FLOW_NEXT ||
            (program->insns[i + 1].traits & INSN_LEADER) != 0) {
            return false;
        }
    }
    const struct row *row = row_get(program->rows, facts->at[next].row);
    const struct rule *rule = row_rule(row, program->target->dwarf_return_column);
    return rule != NULL && rule->kind == RULE_OFFSET;
}

static bool row_finds_link(const struct facts *facts, uint32_t insn)
{
    const struct row *row = row_get(facts->program->rows, facts->at[insn].row);
    uint32_t column = facts->program->target->dwarf_return_column;
    return rule_keeps_value(row_rule(row, column));
}

/* The row that an unwinder finds at a call that takes the place of the instruction (and
 * keeps the link register nowhere). */
static uint32_t row_at_call(const struct facts *facts, uint32_t insn)
{
    bool told = fact_is(facts, insn, FACT_LINK_STORED) && !link_is_live(facts, insn) &&
                row_finds_link(facts, insn) &&
                program_row_is_stale(facts->program, insn);
    return facts->at[told ? facts->at[insn].row_end : insn].row;
}

/* The payload has saved the register in the frame. The helper's own rows say so, too:
 * its slot is as far from the helper's frame at every site, and can be stated there. */
static bool is_slot(const struct target *target, const struct row *before,
                    const struct rule *rule)
{
    return rule->kind == RULE_OFFSET && rule->column != target->dwarf_return_column &&
           wrapping_add(before->cfa_offset, rule->value) % ROW_FACTOR == 0 &&
           !rule_equal(row_rule(before, rule->column), rule);
}

/* `before` says that the register still holds its value, `now` knows where it was
 * saved. Behind a thunk's jump there are no rows of the helper any more: there, and for
 * anything but a slot, the old value must still be in the register. */
static bool saves_are_safe(const struct facts *facts, const struct row *before,
                           const struct row *now, const struct payload *payload)
{
    const struct target *target = facts->program->target;
    for (uint32_t i = 0; i < now->rule_count; i++) {
        const struct rule *rule = &now->rules[i];
        const struct rule *old = row_rule(before, rule->column);
        if (rule_equal(old, rule)) {
            continue;
        }
        uint8_t reg = target->register_of_dwarf(rule->column);
        bool stated = payload->kind == PAYLOAD_PLAIN && is_slot(target, before, rule);
        bool lost = reg >= 64 || has_register(payload->written, reg);
        if (!rule_keeps_value(old) || (lost && !stated)) {
            return false;
        }
    }
    return true;
}

/* `before` finds a register in a place that `now` has given up: a slot of the frame is
 * still there (the payload does not move SP), another register may be not. */
static bool restores_are_safe(const struct row *before, const struct row *now)
{
    for (uint32_t i = 0; i < before->rule_count; i++) {
        const struct rule *rule = &before->rules[i];
        bool in_frame = rule->kind == RULE_OFFSET || rule->kind == RULE_SAME_VALUE;
        if (!rule_equal(rule, row_rule(now, rule->column)) && !in_frame) {
            return false;
        }
    }
    return true;
}

/* The return address has been signed and stored, and the rows say neither yet: Clang for
 * AArch64 states a whole prologue at its end. Nobody can unwind from before that, and a
 * plain payload calls nobody who would. */
static bool is_signed_late(const struct facts *facts, const struct payload *payload,
                           uint32_t insn)
{
    return payload->kind == PAYLOAD_PLAIN && fact_is(facts, insn, FACT_LINK_STORED);
}

/* While the instructions from `before` to `now` run, an unwinder may use `before`. */
static bool row_stays_true(const struct facts *facts, uint32_t insn, uint32_t now_row,
                           const struct payload *payload)
{
    uint32_t before_row = row_at_call(facts, insn);
    const struct program *program = facts->program;
    if (before_row == ROW_NONE || now_row == ROW_NONE) {
        return false;
    }
    const struct row *before = row_get(program->rows, before_row);
    const struct row *now = row_get(program->rows, now_row);
    if (before->cfa_is_expression || now->cfa_is_expression ||
        (before->ra_signed != now->ra_signed &&
         !is_signed_late(facts, payload, insn)) ||
        before->args_size != now->args_size) {
        return false;
    }
    bool moved = before->cfa_register != now->cfa_register ||
                 before->cfa_offset != now->cfa_offset;
    uint8_t base = program->target->register_of_dwarf(before->cfa_register);
    bool base_lost = base >= 64 || (base != program->target->stack_register &&
                                    has_register(payload->written, base));
    /* A callee that unwinds must find the frame that it was called from, and a row that
     * comes late (Clang states a whole prologue at its end) would be the wrong one. */
    if (moved && (base_lost || payload->kind == PAYLOAD_THUNK)) {
        return false;
    }
    return saves_are_safe(facts, before, now, payload) &&
           restores_are_safe(before, now);
}

bool rows_allow_call(const struct facts *facts, const struct payload *payload,
                     uint32_t insn)
{
    uint32_t last = insn + payload->length - 1;
    uint32_t behind = facts_behind(facts, insn, payload->length);
    /* The row behind a call is the next instruction's business, but it is stated at the
     * call to the helper's end: it must be the row at the call. */
    if (payload->kind == PAYLOAD_THUNK && behind != NO_INDEX &&
        facts->at[behind].row != facts->at[last].row) {
        return false;
    }
    uint32_t end = behind == NO_INDEX ? last : behind;
    for (uint32_t i = facts->at[insn].row_end; i <= end; i = facts->at[i].row_end) {
        if (!row_stays_true(facts, insn, facts->at[i].row, payload)) {
            return false;
        }
    }
    return true;
}

/* The slots that `i`, an instruction of the payload or the one behind it, knows of and
 * the site does not: of these registers. */
static uint64_t slots_at(const struct facts *facts, uint32_t insn, uint32_t i,
                         uint64_t registers)
{
    const struct program *program = facts->program;
    const struct target *target = program->target;
    const struct row *before = row_get(program->rows, row_at_call(facts, insn));
    const struct row *now = row_get(program->rows, facts->at[i].row);
    uint64_t key = 0;
    for (uint32_t r = 0; r < now->rule_count; r++) {
        const struct rule *rule = &now->rules[r];
        uint8_t reg = target->register_of_dwarf(rule->column);
        if (is_slot(target, before, rule) && has_register(registers, reg)) {
            int64_t slot = before->cfa_offset + rule->value;
            key = mix(mix(key, i - insn), before->cfa_register);
            key = mix(mix(key, rule->column), (uint64_t)slot);
        }
    }
    return key;
}

/* The slots that the helper's rows know of when they are made from this site. At its
 * return those count of which the payload has written the register: a compiler may
 * state them no sooner than behind it. */
uint64_t slots_key(const struct facts *facts, uint32_t insn, uint32_t length)
{
    uint64_t key = 0, written = 0;
    for (uint32_t i = facts->at[insn].row_end; i < insn + length; i = facts->at[i].row_end) {
        uint64_t slots = slots_at(facts, insn, i, UINT64_MAX);
        key = slots ? mix(key, slots) : key;
    }
    uint32_t behind = facts_behind(facts, insn, length);
    if (behind == NO_INDEX || behind < facts->at[insn].row_end ||
        facts->at[behind].row == row_at_call(facts, insn) ||
        facts->at[behind].row == ROW_NONE || facts->at[insn].row == ROW_NONE) {
        return key;
    }
    for (uint32_t i = insn; i < behind; i++) {
        written |= facts->program->insns[i].defs;
    }
    uint64_t late = slots_at(facts, insn, behind, written);
    return late ? mix(key, late) : key;
}

/* The second witness: where the row finds the return address in the link register, it
 * is there, whatever the code looks like. */
bool link_is_live(const struct facts *facts, uint32_t insn)
{
    const struct target *target = facts->program->target;
    if (target->link_register >= 64) {
        return false;
    }
    if ((facts->program->insns[insn].traits & INSN_LINK_LIVE) != 0) {
        return true;
    }
    if (facts->at[insn].row == ROW_NONE || is_told_soon(facts, insn)) {
        return false;
    }
    return row_finds_link(facts, insn);
}
