/* SPDX-License-Identifier: MIT
 *
 * Interned rows. A row is written in a canonical form (fixed words, then the rules in
 * their order, then the expressions), and that form is interned: equal rows have equal
 * forms, because rules are sorted, unspecified columns are never listed, and fields
 * that do not count are zero.
 */
#include "internal.h"

#include "mo/table.h"

#include <assert.h>
#include <elf.h>

struct row_table {
    struct arena *arena;
    const struct row_table *below; /* or NULL: there are … */
    uint32_t below_count;          /* … so many rows, which have the first numbers */
    struct table *forms;
    array_of(struct row) rows; /* by number */
    /* The form of the row that is being interned: */
    uint64_t *words;
    uint32_t word_count;
    struct buffer form; /* if there are expressions */
};

enum { HEAD_WORDS = 4, RULE_WORDS = 2 }; /* of a form */

struct row_table *row_table_new(struct arena *arena)
{
    struct row_table *table = arena_new_one(arena, struct row_table);
    table->arena = arena;
    table->forms = table_new(arena);
    table->form = buffer_new(arena);
    return table;
}

struct row_table *row_table_over(struct arena *arena, const struct row_table *below)
{
    assert(!below->below);
    struct row_table *table = row_table_new(arena);
    table->below = below;
    table->below_count = below->rows.count;
    return table;
}

static bool has_expression(const struct rule *rule)
{
    return rule->kind == RULE_EXPRESSION || rule->kind == RULE_VAL_EXPRESSION;
}

/* Returns whether there are expressions, of which the words tell the sizes only. */
static bool put_words(uint64_t *words, const struct row *row)
{
    bool expression = row->cfa_is_expression, any = expression;
    words[0] =
        (uint64_t)row->rule_count << 2 | (uint64_t)row->ra_signed << 1 | expression;
    words[1] = expression ? row->cfa_expression.size : row->cfa_register;
    words[2] = expression ? 0 : (uint64_t)row->cfa_offset;
    words[3] = row->args_size;
    for (uint32_t i = 0; i < row->rule_count; i++) {
        const struct rule *rule = &row->rules[i];
        bool computed = has_expression(rule);
        assert(rule->kind != RULE_UNSPECIFIED);
        assert(i == 0 || row->rules[i - 1].column < rule->column);
        assert(!computed || rule->value == 0);
        any |= computed;
        words[HEAD_WORDS + RULE_WORDS * i] = (uint64_t)rule->column << 32 | rule->kind;
        words[HEAD_WORDS + RULE_WORDS * i + 1] =
            computed ? rule->expression.size : (uint64_t)rule->value;
    }
    return any;
}

/* Words in the machine's own byte order: a form never leaves the process. */
static struct bytes form_of(struct row_table *table, const struct row *row)
{
    uint32_t count = HEAD_WORDS + RULE_WORDS * row->rule_count;
    if (count > table->word_count) {
        table->words = arena_new_array(table->arena, uint64_t, count);
        table->word_count = count;
    }
    struct bytes words = {(const uint8_t *)table->words, count * sizeof *table->words};
    if (!put_words(table->words, row))
        return words;
    struct buffer *form = &table->form;
    form->size = 0;
    buffer_put(form, words.at, words.size);
    if (row->cfa_is_expression)
        buffer_put(form, row->cfa_expression.at, row->cfa_expression.size);
    for (uint32_t i = 0; i < row->rule_count; i++)
        if (has_expression(&row->rules[i]))
            buffer_put(form, row->rules[i].expression.at,
                       row->rules[i].expression.size);
    return buffer_bytes(form);
}

static struct bytes copy_bytes(struct arena *arena, struct bytes bytes)
{
    if (!bytes.size)
        return (struct bytes){0};
    return (struct bytes){arena_copy(arena, bytes.at, bytes.size), bytes.size};
}

static struct row copy_row(struct arena *arena, const struct row *row)
{
    struct row copy = *row;
    struct rule *rules = arena_new_array(arena, struct rule, row->rule_count);
    for (uint32_t i = 0; i < row->rule_count; i++) {
        rules[i] = row->rules[i];
        rules[i].expression = copy_bytes(arena, row->rules[i].expression);
    }
    copy.rules = rules;
    copy.cfa_expression = copy_bytes(arena, row->cfa_expression);
    if (copy.cfa_is_expression) {
        copy.cfa_register = 0;
        copy.cfa_offset = 0;
    } else {
        copy.cfa_expression = (struct bytes){0};
    }
    return copy;
}

uint32_t row_intern(struct row_table *table, const struct row *row)
{
    struct bytes form = form_of(table, row);
    uint32_t number = NO_INDEX;
    if (table->below)
        number = table_find(table->below->forms, form.at, form.size);
    if (number != NO_INDEX)
        return number;
    number = table_intern(table->forms, form.at, form.size);
    if (number == table->rows.count)
        array_push(table->arena, &table->rows, copy_row(table->arena, row));
    return table->below_count + number;
}

void row_table_collect(struct row_table *below, const struct row_table *over)
{
    assert(over->below == below);
    for (uint32_t i = 0; i < over->rows.count; i++)
        row_intern(below, &over->rows.items[i]);
}

const uint32_t *row_table_numbers(struct arena *arena, struct row_table *below,
                                  const struct row_table *over)
{
    assert(over->below == below);
    uint32_t *numbers = arena_new_array(arena, uint32_t, over->rows.count);
    for (uint32_t i = 0; i < over->rows.count; i++)
        numbers[i] = row_intern(below, &over->rows.items[i]);
    return numbers;
}

uint32_t row_table_count(const struct row_table *table)
{
    return table->below_count + table->rows.count;
}

const struct row *row_get(const struct row_table *table, uint32_t row)
{
    if (row < table->below_count)
        return &table->below->rows.items[row];
    row -= table->below_count;
    assert(row < table->rows.count);
    return &table->rows.items[row];
}

const struct rule *row_rule(const struct row *row, uint32_t column)
{
    for (uint32_t i = 0; i < row->rule_count; i++)
        if (row->rules[i].column == column)
            return &row->rules[i];
    return NULL;
}

bool rule_equal(const struct rule *a, const struct rule *b)
{
    if (!a || !b)
        return a == b;
    return a->column == b->column && a->kind == b->kind && a->value == b->value &&
           bytes_equal(a->expression, b->expression);
}

bool rule_keeps_value(const struct rule *rule)
{
    return !rule || rule->kind == RULE_SAME_VALUE;
}

struct row entry_row(uint16_t machine)
{
    static const struct rule pushed = {
        16, RULE_OFFSET, -8, {NULL, 0}
    };
    if (machine == EM_AARCH64)
        return (struct row){.cfa_register = 31}; /* sp; the return address is in x30 */
    return (struct row){.cfa_register = 7,
                        .cfa_offset = 8,
                        .rules = &pushed,
                        .rule_count = 1}; /* rsp */
}

uint32_t row_at_entry(struct row_table *rows, uint16_t machine)
{
    struct row row = entry_row(machine);
    return row_intern(rows, &row);
}

struct cie helper_cie(struct row_table *rows, uint16_t machine)
{
    bool arm = machine == EM_AARCH64;
    return (struct cie){.section = NO_INDEX,
                        .code_align = arm ? 4 : 1,
                        .data_align = -ROW_FACTOR,
                        .return_column = arm ? 30 : 16,
                        .augmented = true,
                        .fde_encoding = PE_PCREL | PE_SDATA4,
                        .lsda_encoding = PE_OMIT,
                        .personality_encoding = PE_OMIT,
                        .initial_row = row_at_entry(rows, machine)};
}

bool cie_can_state(const struct row_table *rows, const struct cie *cie, uint32_t row)
{
    const struct row *initial = row_get(rows, cie->initial_row);
    const struct row *wanted = row_get(rows, row);
    if (!wanted->cfa_is_expression && wanted->cfa_register == CFA_UNDEFINED)
        return false;
    for (uint32_t i = 0; i < initial->rule_count; i++)
        if (!row_rule(wanted, initial->rules[i].column))
            return false;
    for (uint32_t i = 0; i < wanted->rule_count; i++) {
        const struct rule *rule = &wanted->rules[i];
        bool factored = rule->kind == RULE_OFFSET || rule->kind == RULE_VAL_OFFSET;
        if (factored && rule->value % cie->data_align != 0)
            return false;
    }
    return true;
}
