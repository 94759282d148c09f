/* SPDX-License-Identifier: MIT
 *
 * Would an unwinder find the same frames? Rows are interned, so "the same" is equality
 * of numbers; what needs thought is what a row may be while a helper runs: see
 * row_is_saved() and row_is_inside().
 */
#include "outliner/verify/verify.h"

#include <string.h>

static bool is_around(const struct fde *fde, struct spot spot)
{
    uint32_t length = fde->length ? fde->length : 1;
    return fde->code_section == spot.section && fde->start <= spot.offset &&
           spot.offset - fde->start < length;
}

/* The entry found last is the answer again. (One that can be read overlaps none that
 * is longer than nothing.) */
static bool is_nearby(const struct side *side, struct spot spot)
{
    const struct nearby *nearby = side->nearby;
    const struct frames *frames = &side->frames[spot.object];
    if (nearby->object != spot.object || nearby->fde >= frames->fde_count)
        return false;
    const struct fde *fde = &frames->fdes[nearby->fde];
    return fde->refusal == REFUSAL_NONE && is_around(fde, spot) &&
           (nearby->fde == 0 || !is_around(fde - 1, spot));
}

static const struct fde *fde_of_spot(const struct side *side, struct spot spot)
{
    const struct frames *frames = &side->frames[spot.object];
    if (is_nearby(side, spot))
        return &frames->fdes[side->nearby->fde];
    uint32_t first;
    uint32_t count =
        frames_find(frames, spot.section, spot.offset, spot.offset + 1, &first);
    if (count == 0)
        return NULL;
    side->nearby->object = spot.object;
    side->nearby->fde = first;
    return &frames->fdes[first];
}

/* The row that holds from the change on is the answer. */
static bool holds_at(const struct fde *fde, uint32_t change, uint32_t offset)
{
    return change < fde->change_count && fde->changes[change].offset <= offset &&
           (change + 1 == fde->change_count || fde->changes[change + 1].offset > offset);
}

/* The same as fde_row_at(): usually what it was, or the next one. */
static uint32_t row_at(const struct side *side, const struct fde *fde, uint32_t offset)
{
    uint32_t *change = &side->nearby->change;
    if (!holds_at(fde, *change, offset))
        *change = holds_at(fde, *change + 1, offset) ? *change + 1
                                                      : fde_change_at(fde, offset);
    return *change == NO_INDEX ? ROW_NONE : fde->changes[*change].row;
}

/* The row that has just been found there is the answer up to its end, or to that of its
 * entry. */
static void keep_row(struct nearby *nearby, const struct fde *fde, struct spot spot,
                     uint32_t row)
{
    uint32_t next = nearby->change + 1, end = fde->start + fde->length;
    if (next < fde->change_count && fde->changes[next].offset < end)
        end = fde->changes[next].offset;
    nearby->rows[1] = nearby->rows[0];
    nearby->rows[0] = (struct known_row){fde, spot, end, row};
}

static bool is_known_at(const struct known_row *known, struct spot spot)
{
    return known->fde && known->from.object == spot.object &&
           known->from.section == spot.section && known->from.offset <= spot.offset &&
           spot.offset < known->end;
}

static const struct known_row *recall_row(struct nearby *nearby, struct spot spot)
{
    if (!is_known_at(&nearby->rows[0], spot)) {
        if (!is_known_at(&nearby->rows[1], spot))
            return NULL;
        struct known_row first = nearby->rows[0];
        nearby->rows[0] = nearby->rows[1];
        nearby->rows[1] = first;
    }
    return &nearby->rows[0];
}

static uint32_t find_row(const struct side *side, struct spot spot,
                         const struct fde **fde)
{
    const struct fde *found = *fde = fde_of_spot(side, spot);
    if (!found)
        return ROW_NONE;
    if (found->refusal != REFUSAL_NONE)
        return ROW_UNREAD;
    uint32_t row = row_at(side, found, spot.offset);
    if (row != ROW_NONE)
        keep_row(side->nearby, found, spot, row);
    return row;
}

uint32_t row_of_spot(const struct side *side, struct spot spot, const struct fde **fde)
{
    const struct known_row *known = recall_row(side->nearby, spot);
    const struct fde *found = known ? known->fde : NULL;
    uint32_t row = known ? known->row : find_row(side, spot, &found);
    if (fde)
        *fde = found;
    return row;
}

uint32_t row_end(const struct side *side, struct spot spot)
{
    const struct known_row *known = recall_row(side->nearby, spot);
    return known ? known->end : spot.offset + 1;
}

/* The same, or, where no entry is, up to the next one of the section. */
static uint32_t row_or_gap_end(const struct side *side, struct spot spot)
{
    const struct frames *frames = &side->frames[spot.object];
    uint32_t next;
    if (recall_row(side->nearby, spot) ||
        frames_find(frames, spot.section, spot.offset, spot.offset + 1, &next) > 0)
        return row_end(side, spot);
    if (next == frames->fde_count || frames->fdes[next].code_section != spot.section)
        return NO_INDEX;
    uint32_t start = frames->fdes[next].start;
    return start > spot.offset ? start : spot.offset + 1;
}

bool rows_stay(const struct verify *verify, struct spot *before, struct spot *after,
               uint32_t size)
{
    const struct side *old = &verify->before, *new = &verify->after;
    for (uint32_t left = size; left > 0;) {
        if (row_of_spot(old, *before, NULL) != row_of_spot(new, *after, NULL))
            return false;
        uint32_t step = row_or_gap_end(old, *before) - before->offset;
        uint32_t other = row_or_gap_end(new, *after) - after->offset;
        step = step < other ? step : other;
        step = step < left ? step : left;
        before->offset += step;
        after->offset += step;
        left -= step;
    }
    return true;
}

static const struct row *known_row(const struct verify *verify, uint32_t row)
{
    return row == ROW_NONE || row == ROW_UNREAD ? NULL : row_get(verify->rows, row);
}

bool row_keeps_link(const struct verify *verify, uint32_t row)
{
    const struct row *of = known_row(verify, row);
    return of && rule_keeps_value(row_rule(of, verify->target->dwarf_return_column));
}

/* The number of `row` with the rule of the return column replaced (NULL: without one)
 * and the CFA moved by `shift`. */
static uint32_t changed_row(const struct verify *verify, const struct row *row,
                            const struct rule *rule, int64_t shift)
{
    struct row copy = *row;
    uint32_t column = verify->target->dwarf_return_column, count = 0;
    struct rule *rules =
        arena_new_array(verify->arena, struct rule, (size_t)row->rule_count + 1);
    for (uint32_t i = 0; i < row->rule_count; i++) {
        if (row->rules[i].column < column)
            rules[count++] = row->rules[i];
    }
    if (rule)
        rules[count++] = *rule;
    for (uint32_t i = 0; i < row->rule_count; i++) {
        if (row->rules[i].column > column)
            rules[count++] = row->rules[i];
    }
    copy.rules = rules;
    copy.rule_count = count;
    copy.cfa_offset += shift;
    return row_intern(verify->rows, &copy);
}

static bool is_told_by_stack(const struct verify *verify, const struct row *row)
{
    return !row->cfa_is_expression &&
           row->cfa_register == verify->target->dwarf_stack_column;
}

/* DW_OP_breg<n> offset: the address `offset` bytes from a register. */
static struct bytes address_at(const struct verify *verify, uint32_t dwarf_register,
                               int64_t offset)
{
    enum { OP_BREG0 = 0x70, OP_BREGX = 0x92, SHORT_FORMS = 32 };
    struct buffer code = buffer_new(verify->arena);
    if (dwarf_register < SHORT_FORMS) {
        buffer_u8(&code, (uint8_t)(OP_BREG0 + dwarf_register));
    } else {
        buffer_u8(&code, OP_BREGX);
        buffer_uleb(&code, dwarf_register);
    }
    buffer_sleb(&code, offset);
    return buffer_bytes(&code);
}

/* A register keeps the link register: that is all there is to say. On the stack it lies
 * at SP, below everything: the CFA is further away from SP, and the return address lies
 * that far below the CFA, or, where SP does not tell the CFA or at a distance that no
 * factor divides, at SP. */
bool row_is_saved(const struct verify *verify, uint32_t before, uint32_t after,
                  struct keeping keeping)
{
    const struct row *row = known_row(verify, before);
    if (!row || keeping.save == SAVE_NONE)
        return before == after;
    struct rule rule = {.column = verify->target->dwarf_return_column};
    const struct rule *kept = row_rule(row, rule.column);
    int64_t shift = 0;
    if (keeping.save == SAVE_STACK && is_told_by_stack(verify, row))
        shift = verify->target->save_stack_shift;
    if (keeping.save == SAVE_REGISTER) {
        rule.kind = RULE_REGISTER;
        rule.value = verify->target->dwarf_of_register(keeping.scratch);
    } else if (shift && (row->cfa_offset + shift) % ROW_FACTOR == 0) {
        rule.kind = RULE_OFFSET;
        rule.value = -(row->cfa_offset + shift);
    } else {
        rule.kind = RULE_EXPRESSION;
        rule.expression = address_at(verify, verify->target->dwarf_stack_column, 0);
    }
    bool new_place = rule_keeps_value(kept) || keeping.returns;
    return (new_place && after == changed_row(verify, row, &rule, shift)) ||
           (!rule_keeps_value(kept) && after == changed_row(verify, row, kept, shift));
}

/* Nothing but instructions that go on to the next one, up to an offset. */
static bool is_straight(const struct verify *verify, struct spot spot, uint32_t end)
{
    struct view view;
    for (; spot.offset < end; spot.offset += view.insn.length) {
        if (!view_at(verify, &verify->before, spot, &view) ||
            view.insn.flow != FLOW_NEXT)
            return false;
    }
    return true;
}

uint32_t row_with_link_told(const struct verify *verify, struct spot spot, bool stale)
{
    const struct fde *fde;
    uint32_t number = row_of_spot(&verify->before, spot, &fde);
    if (!row_keeps_link(verify, number))
        return number;
    uint32_t c = 0;
    while (c < fde->change_count && fde->changes[c].offset <= spot.offset)
        c++;
    const struct row *next =
        c < fde->change_count ? known_row(verify, fde->changes[c].row) : NULL;
    const struct rule *rule =
        next ? row_rule(next, verify->target->dwarf_return_column) : NULL;
    if (!rule || rule->kind != RULE_OFFSET ||
        !is_straight(verify, spot, fde->changes[c].offset))
        return number;
    return stale ? fde->changes[c].row
                 : changed_row(verify, known_row(verify, number), rule, 0);
}

/* --- called helpers --- */

/* `rule` of the helper's row says the same place as the rule of its column in `truth`,
 * a row of the function: an offset from the CFA that the site's row tells. */
static bool is_true(const struct verify *verify, const struct inside *inside,
                    const struct rule *rule, uint32_t truth)
{
    const struct row *site = known_row(verify, inside->site);
    const struct row *now = known_row(verify, truth);
    const struct rule *wanted = now ? row_rule(now, rule->column) : NULL;
    if (!wanted || wanted->kind != RULE_OFFSET || site->cfa_is_expression)
        return false;
    int64_t offset = site->cfa_offset + wanted->value;
    if (is_told_by_stack(verify, site))
        return rule->kind == RULE_OFFSET && rule->value == offset + inside->depth;
    struct bytes code = address_at(verify, site->cfa_register, offset);
    return rule->kind == RULE_EXPRESSION && rule->expression.size == code.size &&
           memcmp(rule->expression.at, code.at, code.size) == 0;
}

/* What a row says of a register, as bytes: equal claims are about the same instruction.
 */
static struct bytes claim_key(const struct verify *verify, struct spot spot,
                              const struct rule *rule)
{
    struct buffer key = buffer_new(verify->arena);
    buffer_u32(&key, spot.object);
    buffer_u32(&key, spot.section);
    buffer_u32(&key, spot.offset);
    buffer_u32(&key, rule->column);
    buffer_u32(&key, rule->kind);
    buffer_u64(&key, (uint64_t)rule->value);
    buffer_put(&key, rule->expression.at, rule->expression.size);
    return buffer_bytes(&key);
}

/* All sites of a helper run the same instructions, so what one of them knows of a slot
 * holds for all. And it is harmless where it means nothing: a site whose own row knows
 * better is asked after the helper. */
static void note_claim(struct verify *verify, const struct inside *inside,
                       const struct rule *rule)
{
    struct bytes key = claim_key(verify, inside->after, rule);
    /* What was true one instruction ago still is: the slots of the frame are not given
     * up before the helper is left. */
    if (is_true(verify, inside, rule, inside->now) ||
        is_true(verify, inside, rule, inside->last)) {
        table_intern(verify->confirmed, key.at, key.size);
        return;
    }
    struct claim claim = {table_intern(verify->claimed, key.at, key.size),
                          inside->before, inside->after};
    array_push(verify->arena, &verify->claims, claim);
}

bool verify_claims(struct verify *verify, struct error *err)
{
    for (uint32_t i = 0; i < verify->claims.count; i++) {
        const struct claim *claim = &verify->claims.items[i];
        struct bytes key = table_key(verify->claimed, claim->number);
        if (table_find(verify->confirmed, key.at, key.size) == NO_INDEX)
            return verify_fail(verify, claim->before, claim->after, err,
                               "the helper's unwind row finds a register where no site "
                               "has put it");
    }
    return true;
}

/* The row without what it says of registers that the payload has saved. */
static uint32_t plain_part(struct verify *verify, const struct inside *inside,
                           uint32_t number)
{
    const struct row *row = known_row(verify, number);
    if (!row || !known_row(verify, inside->site))
        return number;
    struct row plain = *row;
    uint32_t column = verify->target->dwarf_return_column;
    struct rule *rules = arena_new_array(verify->arena, struct rule, row->rule_count);
    plain.rules = rules;
    plain.rule_count = 0;
    for (uint32_t i = 0; i < row->rule_count; i++) {
        if (row->rules[i].column == column)
            rules[plain.rule_count++] = row->rules[i];
        else
            note_claim(verify, inside, &row->rules[i]);
    }
    return plain.rule_count == row->rule_count ? number
                                               : row_intern(verify->rows, &plain);
}

/* The site's row must still compute the CFA, and find nothing in a register that has
 * another value by now. */
static bool site_is_true(const struct verify *verify, const struct inside *inside,
                         const struct row *site, const struct row *now)
{
    const struct target *target = verify->target;
    uint8_t base = target->register_of_dwarf(site->cfa_register);
    if (!site->cfa_is_expression && base != target->stack_register &&
        has_register(inside->written, base) &&
        (site->cfa_register != now->cfa_register ||
         site->cfa_offset != now->cfa_offset))
        return false;
    for (uint32_t i = 0; i < site->rule_count; i++) {
        const struct rule *rule = &site->rules[i];
        if (rule->kind == RULE_REGISTER &&
            has_register(inside->written,
                         target->register_of_dwarf((uint32_t)rule->value)))
            return false;
    }
    return true;
}

/* Registers that the payload has saved and then written: the helper's row must know
 * where the old value is (or that of a helper around it, which an unwinder meets next),
 * since the site's says that it is still there. */
static bool saves_are_known(const struct verify *verify, const struct inside *inside,
                            const struct row *site, const struct row *now,
                            const struct row *after)
{
    for (uint32_t i = 0; i < now->rule_count; i++) {
        const struct rule *rule = &now->rules[i];
        uint8_t reg = verify->target->register_of_dwarf(rule->column);
        if (!rule_keeps_value(rule) && rule_keeps_value(row_rule(site, rule->column)) &&
            has_register(inside->written, reg) && !has_register(inside->stated, reg) &&
            !(after && row_rule(after, rule->column)))
            return false;
    }
    return true;
}

/* `known` is what the function knew of saves, `after` what the helper says of them. */
static bool is_good_with(const struct verify *verify, const struct inside *inside,
                         uint32_t known, const struct row *after)
{
    const struct row *site = known_row(verify, inside->site);
    const struct row *now = known_row(verify, inside->now);
    if (inside->site == inside->now)
        return true;
    return site && now && site_is_true(verify, inside, site, now) &&
           (!known_row(verify, known) ||
            saves_are_known(verify, inside, site, known_row(verify, known), after));
}

bool row_is_good_enough(const struct verify *verify, const struct inside *inside)
{
    return is_good_with(verify, inside, inside->now, NULL);
}

/* A save is stated before the register is written, hence one instruction ago at the
 * latest, or not in time at all (Clang states a whole prologue at its end). */
bool row_is_inside(struct verify *verify, const struct inside *inside, uint32_t after)
{
    const struct row *entry = row_get(verify->rows, verify->entry_row);
    uint32_t plain = verify->entry_row;
    if (inside->pushed)
        plain = changed_row(verify, entry,
                            row_rule(entry, verify->target->dwarf_return_column),
                            inside->pushed);
    return row_is_saved(verify, plain, plain_part(verify, inside, after),
                        inside->keeping) &&
           is_good_with(verify, inside, inside->last, known_row(verify, after));
}
