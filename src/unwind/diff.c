/* SPDX-License-Identifier: MIT
 *
 * The instructions between two rows, each in its shortest encoding.
 *
 * Most facts can be said in several ways: a CFA offset plain or factored
 * (DW_CFA_def_cfa_offset_sf says 256 in one byte), a rule by itself or as a return to
 * the rule of the CIE. The shortest wins; among equals the one that compilers use.
 */
#include "internal.h"

#include <assert.h>

/* Columns that fit into the opcode byte. */
enum { SHORT_COLUMNS = 64 };

void sink_u8(struct sink *sink, uint8_t value)
{
    if (sink->out)
        buffer_u8(sink->out, value);
    sink->size++;
}

static uint32_t uleb_size(uint64_t value)
{
    uint32_t size = 1;
    while (value >>= 7)
        size++;
    return size;
}

static uint32_t sleb_size(int64_t value)
{
    uint64_t magnitude = (uint64_t)(value < 0 ? ~value : value);
    uint32_t size = 1;
    for (; magnitude > 0x3f; magnitude >>= 7)
        size++;
    return size;
}

static void sink_uleb(struct sink *sink, uint64_t value)
{
    if (sink->out)
        buffer_uleb(sink->out, value);
    sink->size += uleb_size(value);
}

static void sink_sleb(struct sink *sink, int64_t value)
{
    if (sink->out)
        buffer_sleb(sink->out, value);
    sink->size += sleb_size(value);
}

static void sink_word(struct sink *sink, uint32_t size, uint64_t value)
{
    for (uint32_t i = 0; i < size; i++)
        sink_u8(sink, (uint8_t)(value >> (8 * i)));
}

static void sink_block(struct sink *sink, struct bytes block)
{
    sink_uleb(sink, block.size);
    if (sink->out)
        buffer_put(sink->out, block.at, block.size);
    sink->size += block.size;
}

/* An instruction with a column, which may fit into the opcode. */
static void sink_column(struct sink *sink, uint8_t brief, uint8_t extended,
                        uint32_t column)
{
    if (brief && column < SHORT_COLUMNS) {
        sink_u8(sink, (uint8_t)(brief | column));
        return;
    }
    sink_u8(sink, extended);
    sink_uleb(sink, column);
}

void sink_advance(struct sink *sink, uint64_t units)
{
    if (units == 0)
        return;
    if (units < 0x40) {
        sink_u8(sink, (uint8_t)(CFA_ADVANCE_LOC | units));
    } else if (units <= UINT8_MAX) {
        sink_u8(sink, CFA_ADVANCE_LOC1);
        sink_word(sink, 1, units);
    } else if (units <= UINT16_MAX) {
        sink_u8(sink, CFA_ADVANCE_LOC2);
        sink_word(sink, 2, units);
    } else {
        assert(units <= UINT32_MAX);
        sink_u8(sink, CFA_ADVANCE_LOC4);
        sink_word(sink, 4, units);
    }
}

/* --- the CFA --- */

static bool same_cfa(const struct row *a, const struct row *b)
{
    if (a->cfa_is_expression || b->cfa_is_expression)
        return a->cfa_is_expression && b->cfa_is_expression &&
               bytes_equal(a->cfa_expression, b->cfa_expression);
    return a->cfa_register == b->cfa_register && a->cfa_offset == b->cfa_offset;
}

static void sink_cfa(struct sink *sink, const struct terms *terms,
                     const struct row *from, const struct row *to)
{
    if (to->cfa_is_expression) {
        sink_u8(sink, CFA_DEF_CFA_EXPRESSION);
        sink_block(sink, to->cfa_expression);
        return;
    }
    /* A negative offset that cannot be factored is ten bytes long, and wraps around. */
    uint64_t plain = (uint64_t)to->cfa_offset;
    int64_t factored = to->cfa_offset / terms->data_align;
    bool factor = to->cfa_offset % terms->data_align == 0 &&
                  sleb_size(factored) < uleb_size(plain);
    bool same_register =
        !from->cfa_is_expression && from->cfa_register == to->cfa_register;
    bool same_offset = !from->cfa_is_expression &&
                       from->cfa_register != CFA_UNDEFINED &&
                       from->cfa_offset == to->cfa_offset;
    if (same_offset) {
        sink_column(sink, 0, CFA_DEF_CFA_REGISTER, to->cfa_register);
        return;
    }
    if (same_register)
        sink_u8(sink, factor ? CFA_DEF_CFA_OFFSET_SF : CFA_DEF_CFA_OFFSET);
    else
        sink_column(sink, 0, factor ? CFA_DEF_CFA_SF : CFA_DEF_CFA, to->cfa_register);
    if (factor)
        sink_sleb(sink, factored);
    else
        sink_uleb(sink, plain);
}

/* --- rules --- */

/* A value as a factored operand: unsigned where it can be. */
static void sink_factored(struct sink *sink, const struct rule *rule, int64_t factored,
                          const uint8_t opcodes[3])
{
    if (factored >= 0) {
        sink_column(sink, opcodes[0], opcodes[1], rule->column);
        sink_uleb(sink, (uint64_t)factored);
    } else {
        sink_column(sink, 0, opcodes[2], rule->column);
        sink_sleb(sink, factored);
    }
}

static void sink_rule(struct sink *sink, const struct terms *terms,
                      const struct rule *rule)
{
    static const uint8_t offset[] = {CFA_OFFSET, CFA_OFFSET_EXTENDED,
                                     CFA_OFFSET_EXTENDED_SF};
    static const uint8_t val_offset[] = {0, CFA_VAL_OFFSET, CFA_VAL_OFFSET_SF};
    int64_t factored = rule->value / terms->data_align;
    switch ((enum rule_kind)rule->kind) {
    case RULE_UNDEFINED: sink_column(sink, 0, CFA_UNDEFINED_RULE, rule->column); break;
    case RULE_SAME_VALUE: sink_column(sink, 0, CFA_SAME_VALUE, rule->column); break;
    case RULE_OFFSET:
    case RULE_VAL_OFFSET:
        assert(rule->value % terms->data_align == 0);
        sink_factored(sink, rule, factored,
                      rule->kind == RULE_OFFSET ? offset : val_offset);
        break;
    case RULE_REGISTER:
        sink_column(sink, 0, CFA_REGISTER, rule->column);
        sink_uleb(sink, (uint64_t)rule->value);
        break;
    case RULE_EXPRESSION:
    case RULE_VAL_EXPRESSION:
        sink_column(sink, 0,
                    rule->kind == RULE_EXPRESSION ? CFA_EXPRESSION : CFA_VAL_EXPRESSION,
                    rule->column);
        sink_block(sink, rule->expression);
        break;
    case RULE_UNSPECIFIED: assert(rule->kind != RULE_UNSPECIFIED); break;
    }
}

/* Column `column` becomes `rule`, or unspecified when that is NULL. */
static void sink_column_change(struct sink *sink, const struct terms *terms,
                               uint32_t column, const struct rule *rule)
{
    const struct rule *initial = row_rule(terms->initial, column);
    if (!rule_equal(initial, rule)) {
        assert(rule); /* nothing says "unspecified" but a return to the CIE */
        sink_rule(sink, terms, rule);
    } else {
        sink_column(sink, CFA_RESTORE, CFA_RESTORE_EXTENDED, column);
    }
}

void sink_difference(struct sink *sink, const struct terms *terms,
                     const struct row *from, const struct row *to, uint64_t limit)
{
    uint64_t before = sink->size;
    if (from == to)
        return;
    if (!same_cfa(from, to))
        sink_cfa(sink, terms, from, to);
    if (from->ra_signed != to->ra_signed)
        sink_u8(sink, CFA_NEGATE_RA_STATE);
    if (from->args_size != to->args_size) {
        sink_u8(sink, CFA_GNU_ARGS_SIZE);
        sink_uleb(sink, to->args_size);
    }
    uint32_t f = 0, t = 0;
    while (f < from->rule_count || t < to->rule_count) {
        if (!sink->out && sink->size - before >= limit)
            return;
        const struct rule *old = f < from->rule_count ? &from->rules[f] : NULL;
        const struct rule *new = t < to->rule_count ? &to->rules[t] : NULL;
        if (!new || (old && old->column < new->column)) {
            sink_column_change(sink, terms, old->column, NULL);
            f++;
        } else if (!old || new->column < old->column) {
            sink_column_change(sink, terms, new->column, new);
            t++;
        } else {
            if (!rule_equal(old, new))
                sink_column_change(sink, terms, new->column, new);
            f++;
            t++;
        }
    }
}
