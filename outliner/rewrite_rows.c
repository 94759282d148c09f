/* SPDX-License-Identifier: MIT
 *
 * Unwind rows that exist only because of us.
 *
 * While a site keeps the link register elsewhere, the caller's row says where. On the
 * stack it lies at SP itself; that is a plain offset from the CFA if the CFA is told by
 * SP, and else an expression, since the row alone does not say how far SP is from the
 * CFA.
 *
 * Inside a called helper the frame is the helper's own: its CFA is the value that SP
 * had at the site. The payload may move SP and save registers; a save lies at a fixed
 * distance from the function's CFA, hence, at the site, from SP: that is the helper's
 * CFA.
 *
 * A helper that is jumped to has no frame of its own: the rows of the payload hold
 * there as they did at its first site.
 */
#include "rewrite.h"

#include <assert.h>
#include <string.h>

enum { DW_OP_BREG0 = 0x70, DW_OP_BREGX = 0x92 };

uint32_t row_with_rule(struct arena *arena, struct row_table *rows, uint32_t row,
                       const struct rule *rule)
{
    struct row copy = *row_get(rows, row);
    struct rule *rules = arena_new_array(arena, struct rule, copy.rule_count + 1);
    uint32_t count = 0, i = 0;
    for (; i < copy.rule_count && copy.rules[i].column < rule->column; i++)
        rules[count++] = copy.rules[i];
    rules[count++] = *rule;
    if (i < copy.rule_count && copy.rules[i].column == rule->column)
        i++;
    for (; i < copy.rule_count; i++)
        rules[count++] = copy.rules[i];
    copy.rules = rules;
    copy.rule_count = count;
    return row_intern(rows, &copy);
}

/* "Saved at register + offset". */
static struct rule rule_at_register(struct arena *arena, uint32_t column,
                                    uint32_t dwarf_register, int64_t offset)
{
    struct buffer code = buffer_new(arena);
    if (dwarf_register < 32) {
        buffer_u8(&code, (uint8_t)(DW_OP_BREG0 + dwarf_register));
    } else {
        buffer_u8(&code, DW_OP_BREGX);
        buffer_uleb(&code, dwarf_register);
    }
    buffer_sleb(&code, offset);
    return (struct rule){
        .column = column, .kind = RULE_EXPRESSION, .expression = buffer_bytes(&code)};
}

static bool told_by_stack(const struct target *target, const struct row *row)
{
    return !row->cfa_is_expression && row->cfa_register == target->dwarf_stack_column;
}

static uint32_t row_on_stack(struct arena *arena, const struct program *program,
                             uint32_t row)
{
    const struct target *target = program->target;
    uint32_t column = target->dwarf_return_column;
    struct row copy = *row_get(program->rows, row);
    if (!told_by_stack(target, &copy)) {
        struct rule rule =
            rule_at_register(arena, column, target->dwarf_stack_column, 0);
        return row_with_rule(arena, program->rows, row, &rule);
    }
    copy.cfa_offset += target->save_stack_shift;
    struct rule rule = {
        .column = column, .kind = RULE_OFFSET, .value = -copy.cfa_offset};
    return row_with_rule(arena, program->rows, row_intern(program->rows, &copy), &rule);
}

uint32_t row_while_saved(struct arena *arena, const struct program *program,
                         uint32_t row, const struct site *site)
{
    if (row == ROW_NONE)
        return row;
    if (site->form == FORM_SAVE_STACK)
        return row_on_stack(arena, program, row);
    assert(site->form == FORM_SAVE_REGISTER);
    uint32_t dwarf = program->target->dwarf_of_register(site->scratch);
    assert(dwarf != NO_INDEX);
    struct rule rule = {.column = program->target->dwarf_return_column,
                        .kind = RULE_REGISTER,
                        .value = dwarf};
    return row_with_rule(arena, program->rows, row, &rule);
}

/* --- helpers
 * ------------------------------------------------------------------------------ */

static bool same_rule(const struct rule *a, const struct rule *b)
{
    return a && a->kind == b->kind && a->value == b->value &&
           a->expression.size == b->expression.size &&
           (a->expression.size == 0 ||
            memcmp(a->expression.at, b->expression.at, a->expression.size) == 0);
}

/* The row of a called helper, `depth` bytes below its entry, where the function's row
 * has gone from `before` to `now`: with what has been saved in between. */
static uint32_t called_row(struct arena *arena, const struct program *program,
                           uint32_t before, uint32_t now, int64_t depth)
{
    const struct target *target = program->target;
    uint32_t result = row_at_entry(program->rows, target->machine);
    if (depth) {
        struct row copy = *row_get(program->rows, result);
        copy.cfa_offset += depth;
        result = row_intern(program->rows, &copy);
    }
    if (now == before)
        return result;
    const struct row old = *row_get(program->rows, before);
    const struct row new = *row_get(program->rows, now);
    for (uint32_t i = 0; i < new.rule_count; i++) {
        const struct rule *saved = &new.rules[i];
        if (saved->kind != RULE_OFFSET ||
            saved->column == target->dwarf_return_column ||
            same_rule(row_rule(&old, saved->column), saved) || old.cfa_is_expression)
            continue;
        struct rule rule = {.column = saved->column,
                            .kind = RULE_OFFSET,
                            .value = old.cfa_offset + saved->value};
        if (!told_by_stack(target, &old))
            rule = rule_at_register(arena, saved->column, old.cfa_register, rule.value);
        result = row_with_rule(arena, program->rows, result, &rule);
    }
    return result;
}

void rows_of_helper(struct arena *arena, const struct program *program,
                    const struct helper *helper, const struct site *first,
                    uint32_t *rows)
{
    int64_t depth = 0;
    uint32_t before = program_row(program, first->insn), now = before;
    for (uint32_t i = 0; i < helper->length; i++) {
        const struct insn *insn = &program->insns[first->insn + i];
        now = program_row(program, first->insn + i);
        if (helper->entry_row == ROW_NONE)
            rows[i] = ROW_NONE;
        else if (helper->tail)
            rows[i] = now;
        else
            rows[i] = called_row(arena, program, before, now, depth);
        if (insn->traits & INSN_SP_ADJUST)
            depth -= insn->sp_value;
    }
    /* Only the return of a called helper comes behind the payload. */
    rows[helper->length] = rows[helper->length - 1];
    if (depth != 0 && !helper->tail && helper->entry_row != ROW_NONE)
        rows[helper->length] = called_row(arena, program, before, now, depth);
}
