/* SPDX-License-Identifier: MIT
 *
 * What an unwinder has to be told in a helper that is jumped to.
 *
 * The rows of its sites say where the function saved each register. Functions that end
 * alike have often saved different ones, so that their rows differ in what no longer
 * matters: a callee-saved register that the payload does not write, on the way out of
 * the function, already holds the caller's value - the ABI demands it at the exit, and
 * nothing in between changes it. The same goes for the link register, which a return
 * needs. Without the rules of such *settled* registers the rows of many more ends of
 * functions are equal, and shorter.
 *
 * This needs a true exit: a return, or a jump to a function's entry with the frame
 * taken down in the payload. A jump to a cold part continues the function, and our own
 * helpers (and LLVM's) are left with registers that are not their caller's.
 */
#include "outliner/choose/choose.h"

struct tail_rows {
    struct arena *arena;
    const struct program *program;
    struct table *keys; /* (row, settled) -> index of `rows` */
    array_of(uint32_t) rows;
};

static uint64_t register_bit(uint8_t reg)
{
    return reg < 64 ? (uint64_t)1 << reg : 0;
}

/* The instructions take the frame down: they move SP up or bring back the link
 * register. */
static bool takes_frame_down(const struct program *program, uint32_t insn,
                             uint32_t length)
{
    uint64_t link = register_bit(program->target->link_register);
    for (uint32_t i = insn; i < insn + length; i++) {
        const struct insn *at = &program->insns[i];
        bool raises = (at->traits & INSN_SP_ADJUST) && at->sp_value > 0;
        if (raises || (at->traits & INSN_SP_FROM_FRAME) || (at->defs & link))
            return true;
    }
    return false;
}

uint64_t tail_settled(const struct program *program, uint32_t insn, uint32_t length)
{
    uint32_t last = insn + length - 1;
    const struct target *target = program->target;
    bool returns = program->insns[last].flow == FLOW_RETURN;
    if (!returns &&
        !(insn_is_tail_call(program, last) && takes_frame_down(program, insn, length)))
        return 0;
    uint64_t written = 0;
    for (uint32_t i = insn; i <= last; i++)
        written |= insn_may_write(program, i);
    uint64_t kept = target->callee_saved.regs | register_bit(target->link_register);
    return kept & ~written & ~register_bit(target->stack_register);
}

uint32_t row_without(struct arena *arena, const struct program *program, uint32_t row,
                     uint64_t settled)
{
    if (row == ROW_NONE || settled == 0)
        return row;
    struct row copy = *row_get(program->rows, row);
    struct rule *rules = arena_new_array(arena, struct rule, copy.rule_count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < copy.rule_count; i++) {
        uint8_t reg = program->target->register_of_dwarf(copy.rules[i].column);
        if (!(register_bit(reg) & settled))
            rules[count++] = copy.rules[i];
    }
    copy.rules = rules;
    copy.rule_count = count;
    return row_intern(program->rows, &copy);
}

struct tail_rows *tail_rows_new(struct arena *arena, const struct program *program)
{
    struct tail_rows *rows = arena_new_one(arena, struct tail_rows);
    rows->arena = arena;
    rows->program = program;
    rows->keys = table_new(arena);
    return rows;
}

uint32_t tail_row(struct tail_rows *rows, uint32_t row, uint64_t settled)
{
    if (row == ROW_NONE || settled == 0)
        return row;
    uint64_t key[2] = {row, settled};
    uint32_t number = table_intern(rows->keys, key, sizeof key);
    if (number == rows->rows.count)
        array_push(rows->arena, &rows->rows,
                   row_without(rows->arena, rows->program, row, settled));
    return rows->rows.items[number];
}
