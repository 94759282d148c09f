/* SPDX-License-Identifier: MIT
 *
 * The machine that runs call frame instructions (DWARF 5, 6.4.2) and notes the row that
 * holds from each location on.
 *
 * An instruction is decoded by a table of operand forms, then applied to the current
 * row. What unwinders really do counts where the standard leaves room:
 *   - DW_CFA_restore returns a column to the rule of the CIE (6.4.2.3);
 *   - DW_CFA_restore_state brings back the CFA, the rules and the signing state, but
 * not the size of outgoing arguments: libgcc keeps that outside of the saved state;
 *   - DW_CFA_same_value is a rule, other than saying nothing, although most unwinders
 * act alike: what was said must be said again when a program is written anew.
 *
 * Everything odd is REFUSAL_BAD_FRAME: unknown opcodes, DW_CFA_set_loc (a relocated
 * address inside the program, that no compiler writes), an offset without a register, a
 * restore without a remember, numbers out of range.
 */
#include "internal.h"

#include <elf.h>
#include <string.h>

enum { MAX_RULES = 128, MAX_DEPTH = 64, MAX_COLUMN = 1024 };

enum operand { NOTHING, ULEB, SLEB, BLOCK, BYTE, HALF, WORD };

/* Operands of the instructions below 0x40, by opcode; what is not listed is NOTHING,
 * which is right for CFA_NOP, remember, restore_state and (checked apart)
 * negate_ra_state. */
static const struct {
    uint8_t first, second;
} FORMS[0x40] = {
    [CFA_ADVANCE_LOC1] = {BYTE,  NOTHING},
    [CFA_ADVANCE_LOC2] = {HALF,  NOTHING},
    [CFA_ADVANCE_LOC4] = {WORD,  NOTHING},
    [CFA_OFFSET_EXTENDED] = {ULEB,  ULEB   },
    [CFA_RESTORE_EXTENDED] = {ULEB,  NOTHING},
    [CFA_UNDEFINED_RULE] = {ULEB,  NOTHING},
    [CFA_SAME_VALUE] = {ULEB,  NOTHING},
    [CFA_REGISTER] = {ULEB,  ULEB   },
    [CFA_DEF_CFA] = {ULEB,  ULEB   },
    [CFA_DEF_CFA_REGISTER] = {ULEB,  NOTHING},
    [CFA_DEF_CFA_OFFSET] = {ULEB,  NOTHING},
    [CFA_DEF_CFA_EXPRESSION] = {BLOCK, NOTHING},
    [CFA_EXPRESSION] = {ULEB,  BLOCK  },
    [CFA_OFFSET_EXTENDED_SF] = {ULEB,  SLEB   },
    [CFA_DEF_CFA_SF] = {ULEB,  SLEB   },
    [CFA_DEF_CFA_OFFSET_SF] = {SLEB,  NOTHING},
    [CFA_VAL_OFFSET] = {ULEB,  ULEB   },
    [CFA_VAL_OFFSET_SF] = {ULEB,  SLEB   },
    [CFA_VAL_EXPRESSION] = {ULEB,  BLOCK  },
    [CFA_GNU_ARGS_SIZE] = {ULEB,  NOTHING},
    [CFA_GNU_NEGATIVE_OFFSET_EXTENDED] = {ULEB,  ULEB   },
};

struct operation {
    uint8_t opcode;
    uint64_t a, b; /* operands in order; signed ones as two's complement */
    struct bytes block;
};

struct machine {
    struct row_table *rows;
    const struct cie *cie;
    const struct row *initial; /* NULL while the CIE itself runs */
    bool arm;
    struct row row; /* the current one; its rules are in `rules` */
    struct rule rules[MAX_RULES];
    uint32_t stack[MAX_DEPTH]; /* remembered rows */
    uint32_t depth;
    uint32_t number;   /* of the current row; NO_INDEX: not asked for yet */
    uint64_t location; /* bytes from the start of the FDE's code */
};

/* --- decoding --- */

static uint64_t read_operand(struct cursor *cursor, uint8_t form, struct bytes *block)
{
    switch (form) {
    case ULEB: return cursor_uleb(cursor);
    case SLEB: return (uint64_t)cursor_sleb(cursor);
    case BYTE: return cursor_u8(cursor);
    case HALF: return cursor_u16(cursor);
    case WORD: return cursor_u32(cursor);
    case BLOCK: *block = cursor_take(cursor, cursor_uleb(cursor)); return 0;
    default: return 0;
    }
}

/* The next instruction; its operands are 0 when the cursor has failed. */
static void read_operation(struct cursor *cursor, struct operation *operation)
{
    uint8_t byte = cursor_u8(cursor);
    *operation = (struct operation){.opcode = byte};
    if (byte & 0xc0) {
        operation->opcode = byte & 0xc0;
        operation->a = byte & 0x3f;
        if (operation->opcode == CFA_OFFSET)
            operation->b = cursor_uleb(cursor);
        return;
    }
    operation->a = read_operand(cursor, FORMS[byte].first, &operation->block);
    operation->b = read_operand(cursor, FORMS[byte].second, &operation->block);
}

/* --- applying --- */

/* Puts the rule in its place among the sorted rules; RULE_UNSPECIFIED removes it. */
static bool set_rule(struct machine *machine, struct rule rule)
{
    struct row *row = &machine->row;
    struct rule *rules = machine->rules;
    if (rule.column >= MAX_COLUMN)
        return false;
    uint32_t at = 0;
    while (at < row->rule_count && rules[at].column < rule.column)
        at++;
    bool there = at < row->rule_count && rules[at].column == rule.column;
    size_t behind = row->rule_count - at;
    if (rule.kind == RULE_UNSPECIFIED) {
        if (there) {
            memmove(&rules[at], &rules[at + 1], (behind - 1) * sizeof *rules);
            row->rule_count--;
        }
        return true;
    }
    if (!there) {
        if (row->rule_count == MAX_RULES)
            return false;
        memmove(&rules[at + 1], &rules[at], behind * sizeof *rules);
        row->rule_count++;
    }
    rules[at] = rule;
    return true;
}

/* Multiplies a factored operand with the data alignment. */
static bool unfactor(const struct machine *machine, uint64_t operand, int64_t *value)
{
    return !__builtin_mul_overflow((int64_t)operand, machine->cie->data_align, value);
}

static bool set_offset(struct machine *machine, const struct operation *operation,
                       uint32_t kind, bool negative)
{
    int64_t value;
    if (!unfactor(machine, operation->b, &value) || value == INT64_MIN ||
        operation->a >= MAX_COLUMN)
        return false;
    struct rule rule = {(uint32_t)operation->a, kind, negative ? -value : value, {0}};
    return set_rule(machine, rule);
}

static bool restore_rule(struct machine *machine, uint64_t column)
{
    if (!machine->initial || column >= MAX_COLUMN)
        return false;
    const struct rule *rule = row_rule(machine->initial, (uint32_t)column);
    struct rule none = {.column = (uint32_t)column, .kind = RULE_UNSPECIFIED};
    return set_rule(machine, rule ? *rule : none);
}

static bool apply_rule(struct machine *machine, const struct operation *operation)
{
    struct rule rule = {.column = (uint32_t)operation->a,
                        .expression = operation->block};
    if (operation->a >= MAX_COLUMN)
        return false;
    switch (operation->opcode) {
    case CFA_RESTORE:
    case CFA_RESTORE_EXTENDED: return restore_rule(machine, operation->a);
    case CFA_UNDEFINED_RULE: rule.kind = RULE_UNDEFINED; break;
    case CFA_SAME_VALUE: rule.kind = RULE_SAME_VALUE; break;
    case CFA_EXPRESSION: rule.kind = RULE_EXPRESSION; break;
    case CFA_VAL_EXPRESSION: rule.kind = RULE_VAL_EXPRESSION; break;
    case CFA_REGISTER:
        rule.kind = RULE_REGISTER;
        rule.value = (int64_t)operation->b;
        if (operation->b >= MAX_COLUMN)
            return false;
        break;
    case CFA_OFFSET:
    case CFA_OFFSET_EXTENDED:
    case CFA_OFFSET_EXTENDED_SF:
        return set_offset(machine, operation, RULE_OFFSET, false);
    case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
        return set_offset(machine, operation, RULE_OFFSET, true);
    case CFA_VAL_OFFSET:
    case CFA_VAL_OFFSET_SF:
        return set_offset(machine, operation, RULE_VAL_OFFSET, false);
    default: return false;
    }
    return set_rule(machine, rule);
}

static bool set_cfa(struct machine *machine, uint64_t reg, int64_t offset)
{
    if (reg >= MAX_COLUMN)
        return false;
    machine->row.cfa_is_expression = false;
    machine->row.cfa_register = (uint32_t)reg;
    machine->row.cfa_offset = offset;
    return true;
}

static bool apply_cfa(struct machine *machine, const struct operation *operation)
{
    struct row *row = &machine->row;
    int64_t value;
    bool plain = !row->cfa_is_expression && row->cfa_register != CFA_UNDEFINED;
    switch (operation->opcode) {
    case CFA_DEF_CFA: return set_cfa(machine, operation->a, (int64_t)operation->b);
    case CFA_DEF_CFA_SF:
        return unfactor(machine, operation->b, &value) &&
               set_cfa(machine, operation->a, value);
    case CFA_DEF_CFA_REGISTER:
        return plain && set_cfa(machine, operation->a, row->cfa_offset);
    case CFA_DEF_CFA_OFFSET:
        return plain && set_cfa(machine, row->cfa_register, (int64_t)operation->a);
    case CFA_DEF_CFA_OFFSET_SF:
        return plain && unfactor(machine, operation->a, &value) &&
               set_cfa(machine, row->cfa_register, value);
    case CFA_DEF_CFA_EXPRESSION:
        row->cfa_is_expression = true;
        row->cfa_expression = operation->block;
        return true;
    default: return false;
    }
}

static uint32_t current_row(struct machine *machine)
{
    machine->row.rules = machine->rules;
    if (machine->number == NO_INDEX)
        machine->number = row_intern(machine->rows, &machine->row);
    return machine->number;
}

static void load_row(struct machine *machine, const struct row *row)
{
    machine->row = *row;
    if (row->rule_count)
        memcpy(machine->rules, row->rules, row->rule_count * sizeof *row->rules);
}

static bool apply_state(struct machine *machine, const struct operation *operation)
{
    uint64_t args_size = machine->row.args_size;
    switch (operation->opcode) {
    case CFA_NOP: return true;
    case CFA_REMEMBER_STATE:
        if (!machine->initial || machine->depth == MAX_DEPTH)
            return false;
        machine->stack[machine->depth++] = current_row(machine);
        return true;
    case CFA_RESTORE_STATE:
        if (!machine->depth)
            return false;
        load_row(machine, row_get(machine->rows, machine->stack[--machine->depth]));
        machine->row.args_size = args_size;
        return true;
    case CFA_NEGATE_RA_STATE:
        machine->row.ra_signed = !machine->row.ra_signed;
        return machine->arm;
    case CFA_GNU_ARGS_SIZE: machine->row.args_size = operation->a; return true;
    default: return false;
    }
}

static bool apply(struct machine *machine, const struct operation *operation)
{
    if (operation->opcode != CFA_NOP && operation->opcode != CFA_REMEMBER_STATE)
        machine->number = NO_INDEX;
    switch (operation->opcode) {
    case CFA_NOP:
    case CFA_REMEMBER_STATE:
    case CFA_RESTORE_STATE:
    case CFA_NEGATE_RA_STATE:
    case CFA_GNU_ARGS_SIZE: return apply_state(machine, operation);
    case CFA_DEF_CFA:
    case CFA_DEF_CFA_SF:
    case CFA_DEF_CFA_REGISTER:
    case CFA_DEF_CFA_OFFSET:
    case CFA_DEF_CFA_OFFSET_SF:
    case CFA_DEF_CFA_EXPRESSION: return apply_cfa(machine, operation);
    default: return apply_rule(machine, operation);
    }
}

static bool is_advance(uint8_t opcode)
{
    return opcode == CFA_ADVANCE_LOC || opcode == CFA_ADVANCE_LOC1 ||
           opcode == CFA_ADVANCE_LOC2 || opcode == CFA_ADVANCE_LOC4;
}

/* --- running --- */

/* Not an initializer: that would clear all the room for rules, for every FDE. */
static void start(struct machine *machine, struct row_table *rows, uint16_t kind,
                  const struct cie *cie)
{
    machine->rows = rows;
    machine->cie = cie;
    machine->arm = kind == EM_AARCH64;
    machine->initial = NULL;
    machine->row = (struct row){.cfa_register = CFA_UNDEFINED};
    machine->depth = 0;
    machine->number = NO_INDEX;
    machine->location = 0;
}

enum refusal machine_run_cie(struct row_table *rows, uint16_t machine_kind,
                             struct cie *cie, struct bytes program)
{
    struct machine machine;
    start(&machine, rows, machine_kind, cie);
    struct cursor cursor = cursor_of(program);
    while (cursor_left(&cursor)) {
        struct operation operation;
        read_operation(&cursor, &operation);
        if (!cursor_ok(&cursor) || !apply(&machine, &operation))
            return REFUSAL_BAD_FRAME;
    }
    cie->initial_row = current_row(&machine);
    return REFUSAL_NONE;
}

typedef array_of(struct row_change) changes;

/* The current row holds from the current location on. Behind the end of the code
 * nothing is noted: nobody can be there. */
static bool note_row(struct arena *arena, struct machine *machine,
                     const struct fde *fde, changes *list)
{
    const struct row *row = &machine->row;
    if (list->count && machine->location >= fde->length)
        return true;
    if (!row->cfa_is_expression && row->cfa_register == CFA_UNDEFINED)
        return false;
    uint32_t number = current_row(machine);
    if (list->count && list->items[list->count - 1].row == number)
        return true;
    struct row_change change = {fde->start + (uint32_t)machine->location, number};
    array_push(arena, list, change);
    return true;
}

static bool run(struct arena *arena, struct machine *machine, struct bytes program,
                struct fde *fde, changes *list)
{
    struct cursor cursor = cursor_of(program);
    while (cursor_left(&cursor)) {
        struct operation operation;
        read_operation(&cursor, &operation);
        if (!cursor_ok(&cursor))
            return false;
        if (operation.opcode != CFA_NOP)
            fde->program_size = (uint32_t)cursor.position;
        fde->remembers |= operation.opcode == CFA_REMEMBER_STATE;
        if (!is_advance(operation.opcode)) {
            if (!apply(machine, &operation))
                return false;
        } else if (operation.a) {
            if (!note_row(arena, machine, fde, list))
                return false;
            /* At most 2^32 * 255 for each of fewer than 2^32 bytes: no overflow. */
            machine->location += operation.a * machine->cie->code_align;
        }
    }
    return note_row(arena, machine, fde, list);
}

enum refusal machine_run_fde(struct arena *arena, struct row_table *rows,
                             uint16_t machine_kind, const struct cie *cie,
                             struct bytes program, struct fde *fde)
{
    struct machine machine;
    start(&machine, rows, machine_kind, cie);
    machine.initial = row_get(rows, cie->initial_row);
    load_row(&machine, machine.initial);
    changes list = {0};
    if (!run(arena, &machine, program, fde, &list))
        return REFUSAL_BAD_FRAME;
    fde->changes = list.items;
    fde->change_count = list.count;
    return REFUSAL_NONE;
}
