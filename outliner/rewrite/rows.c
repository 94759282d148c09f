/* SPDX-License-Identifier: MIT
 *
 * Unwind rows that exist only because of us.
 *
 * While a site keeps the link register elsewhere, the caller's row says where. On the
 * stack it lies at SP itself; that is a plain offset from the CFA if the CFA is told by
 * SP, and else an expression, since the row alone does not say how far SP is from the
 * CFA (and an offset that is no multiple of ROW_FACTOR cannot be stated).
 *
 * Inside a called helper the frame is the helper's own: its CFA is the value that SP
 * had at the call. The payload may move SP and save registers; a save lies at a fixed
 * distance from the function's CFA, hence from SP at the site, hence from the helper's
 * CFA. All sites run the same instructions, so what the first one knows of a slot is
 * right for all of them.
 *
 * A helper that is jumped to has no frame of its own: the rows of the payload hold
 * there as they did at its first site.
 */
#include "outliner/rewrite/rewrite.h"

#include <assert.h>

enum { DW_OP_BREG0 = 0x70, DW_OP_BREGX = 0x92 };

static uint32_t row_with_rule(struct arena *arena, struct row_table *rows, uint32_t row,
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

/* The return address is in the link register. Otherwise that register holds something
 * else, and whoever keeps it says nothing about the return address. */
static bool row_holds_link(const struct target *target, const struct row *row)
{
    return rule_keeps_value(row_rule(row, target->dwarf_return_column));
}

bool row_loses_link(const struct program *program, uint32_t row, uint32_t form)
{
    return program->target->link_register < 64 && row != ROW_NONE &&
           (form == FORM_PLAIN || form == FORM_THUNK) &&
           row_holds_link(program->target, row_get(program->rows, row));
}

static uint32_t row_on_stack(struct arena *arena, const struct program *program,
                             uint32_t row)
{
    const struct target *target = program->target;
    uint32_t column = target->dwarf_return_column;
    struct row copy = *row_get(program->rows, row);
    bool stated = row_holds_link(target, &copy);
    bool told = told_by_stack(target, &copy);
    if (told)
        copy.cfa_offset += target->save_stack_shift;
    uint32_t moved = row_intern(program->rows, &copy);
    if (!stated)
        return moved;
    struct rule rule = rule_at_register(arena, column, target->dwarf_stack_column, 0);
    if (told && copy.cfa_offset % ROW_FACTOR == 0)
        rule = (struct rule){
            .column = column, .kind = RULE_OFFSET, .value = -copy.cfa_offset};
    return row_with_rule(arena, program->rows, moved, &rule);
}

uint32_t row_while_saved(struct arena *arena, const struct program *program,
                         uint32_t row, const struct site *site)
{
    if (row == ROW_NONE)
        return row;
    if (site->form == FORM_SAVE_STACK)
        return row_on_stack(arena, program, row);
    assert(site->form == FORM_SAVE_REGISTER);
    if (!row_holds_link(program->target, row_get(program->rows, row)))
        return row;
    uint32_t dwarf = program->target->dwarf_of_register(site->scratch);
    assert(dwarf != NO_INDEX);
    struct rule rule = {.column = program->target->dwarf_return_column,
                        .kind = RULE_REGISTER,
                        .value = dwarf};
    return row_with_rule(arena, program->rows, row, &rule);
}

/* --- helpers --- */

uint32_t row_with_link_of(struct arena *arena, const struct program *program, uint32_t row,
                          uint32_t other)
{
    const struct rule *rule = row_rule(row_get(program->rows, other),
                                       program->target->dwarf_return_column);
    assert(rule && rule->kind == RULE_OFFSET);
    return row_with_rule(arena, program->rows, row, rule);
}

/* Where a called helper is, as far as unwinding goes. */
struct inside {
    uint32_t before, now; /* the function's rows: at the call, and by now */
    uint32_t late_end;    /* instruction index; until there `before` holds, which has been
                             told before its time. 0: it has not */
    int64_t depth;        /* bytes that the payload has lowered SP by */
    int64_t shift;        /* bytes from the helper's CFA up to SP at the site */
    uint64_t written;     /* registers that the payload has written */
};

/* The rule of a register that the payload has saved. */
static struct rule saved_rule(struct arena *arena, const struct target *target,
                              const struct inside *inside, const struct row *site,
                              const struct rule *saved)
{
    int64_t offset = site->cfa_offset + saved->value;
    if (!told_by_stack(target, site))
        return rule_at_register(arena, saved->column, site->cfa_register, offset);
    return (struct rule){
        .column = saved->column, .kind = RULE_OFFSET, .value = offset + inside->shift};
}

/* A register that has been saved but not written is still where the site's row says. */
static bool is_written(const struct target *target, const struct inside *inside,
                       uint32_t column)
{
    uint8_t reg = target->register_of_dwarf(column);
    return reg < 64 && (inside->written >> reg & 1);
}

static uint32_t row_by_now(const struct program *program, const struct inside *inside,
                           uint32_t insn)
{
    return insn < inside->late_end ? inside->before : program_row(program, insn);
}

static uint32_t called_row(struct arena *arena, const struct program *program,
                           const struct inside *inside)
{
    const struct target *target = program->target;
    uint32_t result = row_at_entry(program->rows, target->machine);
    if (inside->depth) {
        struct row copy = *row_get(program->rows, result);
        copy.cfa_offset += inside->depth;
        result = row_intern(program->rows, &copy);
    }
    if (inside->now == inside->before)
        return result;
    const struct row site = *row_get(program->rows, inside->before);
    const struct row now = *row_get(program->rows, inside->now);
    for (uint32_t i = 0; i < now.rule_count && !site.cfa_is_expression; i++) {
        const struct rule *saved = &now.rules[i];
        if (saved->kind != RULE_OFFSET ||
            saved->column == target->dwarf_return_column ||
            !is_written(target, inside, saved->column) ||
            rule_equal(row_rule(&site, saved->column), saved))
            continue;
        struct rule rule = saved_rule(arena, target, inside, &site, saved);
        result = row_with_rule(arena, program->rows, result, &rule);
    }
    return result;
}

static void look_at_call(const struct program *program, const struct site *site,
                         struct inside *inside)
{
    uint32_t row = program_row(program, site->insn);
    inside->before = row;
    if (!row_loses_link(program, row, site->form) ||
        !program_row_is_stale(program, site->insn))
        return;
    inside->late_end = site->insn + 1;
    while ((inside->before = program_row(program, inside->late_end)) == row)
        inside->late_end++;
}

uint32_t row_while_aligned(const struct program *program, uint32_t row)
{
    struct row copy = *row_get(program->rows, row);
    copy.cfa_offset += program->target->align_shift;
    return row_intern(program->rows, &copy);
}

void rows_of_helper(struct arena *arena, const struct program *program,
                    const struct helper *helper, const struct site *first,
                    uint32_t *rows)
{
    struct inside inside = {.shift = (int64_t)helper->stack_shift -
                                     program->target->call_pushes};
    look_at_call(program, first, &inside);
    for (uint32_t i = 0; i < helper->length; i++) {
        const struct insn *insn = &program->insns[first->insn + i];
        inside.now = row_by_now(program, &inside, first->insn + i);
        if (helper->entry_row == ROW_NONE)
            rows[i] = ROW_NONE;
        else if (helper->tail)
            rows[i] = row_without(arena, program, inside.now, helper->settled);
        else
            rows[i] = called_row(arena, program, &inside);
        if (insn->traits & INSN_SP_ADJUST)
            inside.depth -= insn->sp_value;
        inside.written |= insn->defs;
    }
    /* Only the return of a called helper comes behind the payload. What the function
     * states there may be late: it is true all the same. */
    const struct function *function =
        &program->functions[program_function_of_insn(program, first->insn)];
    uint32_t behind = first->insn + helper->length;
    if (behind < function->first_insn + function->insn_count)
        inside.now = row_by_now(program, &inside, behind);
    bool returns = helper->entry_row != ROW_NONE && !helper->tail;
    rows[helper->length] =
        returns ? called_row(arena, program, &inside) : rows[helper->length - 1];
}
