/* SPDX-License-Identifier: MIT
 *
 * Backward liveness over registers and flags, per function, to a fixed point.
 *
 * What single instructions do, and what is assumed of the callees of calls: effects.c.
 * Returning, all that the ABI lets a caller see is live. What leaves a function in any
 * other way needs everything.
 *
 * A caller may also rely on a register that this function never writes (-fipa-ra
 * again); function.written answers that question, not liveness.
 */
#include "outliner/lift/effects.h"

static bool same(struct regset a, struct regset b)
{
    return a.regs == b.regs && a.flags == b.flags;
}

/* What is live where `last` jumps to a helper that leaves the function in its place. */
static bool live_into_helper(const struct program *program, uint32_t last,
                             struct regset at_return, struct regset *live)
{
    uint32_t number;
    if (program->insns[last].flow != FLOW_JUMP)
        return false;
    lift_callee_of(program, last, &number);
    if (number == NO_INDEX || !program->functions[number].is_summarised)
        return false;
    const struct function *helper = &program->functions[number];
    struct regset out = at_return;
    if (last_flow(program, number) != FLOW_RETURN)
        out =
            (struct regset){UINT64_MAX & ~program->target->veneer_registers, UINT8_MAX};
    live->regs = helper->reads.regs | (out.regs & ~helper->overwrites.regs);
    live->flags =
        (uint8_t)(helper->reads.flags | (out.flags & ~helper->overwrites.flags));
    return true;
}

/* The same for the end of another function, which an earlier round left in its place.
 */
static bool live_into_tail(const struct program *program, uint32_t last,
                           struct regset at_return, struct regset *live)
{
    uint32_t first;
    if (!insn_moves_frame(program, last, &first))
        first = insn_destination(program, last);
    uint32_t count = first == NO_INDEX ? 0 : lift_straight_line(program, first);
    if (count == 0)
        return false;
    const struct insn *exit = &program->insns[first + count - 1];
    struct regset out = at_return;
    if (exit->flow == FLOW_JUMP && (exit->traits & INSN_RELOCATED))
        out =
            (struct regset){UINT64_MAX & ~program->target->veneer_registers, UINT8_MAX};
    else if (exit->flow != FLOW_RETURN)
        return false;
    struct summary sum = lift_summarise(program, first, count);
    live->regs = sum.uses.regs | (out.regs & ~sum.kills.regs);
    live->flags = (uint8_t)(sum.uses.flags | (out.flags & ~sum.kills.flags));
    return true;
}

/* What may be live behind a helper of ours, or one of LLVM's for frames. Whatever the code
 * around its sites needs; but on the way to a helper a veneer may clobber its registers,
 * so that nobody waits for what they held before, and behind it only for what the helper
 * itself has put there. (A jump from one helper to another is a site like any other: there they are
 * dead.) */
static struct regset live_behind_helper(const struct program *program, uint32_t number)
{
    const struct function *function = &program->functions[number];
    uint64_t written = 0;
    for (uint32_t i = 0; i < function->insn_count; i++) {
        uint32_t insn = function->first_insn + i, callee;
        uint8_t flow = program->insns[insn].flow;
        written |= program->insns[insn].defs;
        if (flow == FLOW_CALL && lift_callee_of(program, insn, &callee) == CALLEE_PRIVATE)
            written = UINT64_MAX;
    }
    struct regset live = REGSET_ALL;
    live.regs &= ~(program->target->veneer_registers & ~written);
    return live;
}

static struct regset live_at_exit(const struct program *program, uint32_t number,
                                  uint32_t last)
{
    const struct target *target = program->target;
    const struct insn *insn = &program->insns[last];
    /* An outlined function returns into the middle of the code that it came from:
     * helpers of an earlier run and LLVM's are known by their names alone. */
    bool helper = program->code[program->functions[number].code].helpers;
    bool frame = name_moves_frame(program_function_name(program, number));
    struct regset at_return = helper || frame ? live_behind_helper(program, number)
                              : function_is_private(program, number)
                                  ? REGSET_ALL
                                  : target->return_uses;
    struct regset live = REGSET_ALL;
    if (insn->flow == FLOW_STOP)
        return (struct regset){0};
    if (insn->flow == FLOW_RETURN)
        return at_return;
    if (live_into_helper(program, last, at_return, &live) ||
        live_into_tail(program, last, at_return, &live))
        return live;
    if ((helper || !function_is_private(program, number)) &&
        insn_is_tail_call(program, last))
        live.regs &= ~target->veneer_registers;
    return live;
}

static struct regset live_in(const struct summary *sum, struct regset out)
{
    return (struct regset){
        (out.regs & ~sum->kills.regs) | sum->uses.regs,
        (uint8_t)((out.flags & ~sum->kills.flags) | sum->uses.flags)};
}

/* What is known of a block before anything is live. */
struct shape {
    struct summary sum;
    struct successors to;
    struct regset exit; /* live where control leaves the function */
};

static struct shape shape_of(const struct program *program, uint32_t number)
{
    const struct block *block = &program->blocks[number];
    uint32_t last = block->first_insn + block->insn_count - 1;
    struct shape shape = {
        .sum = lift_summarise(program, block->first_insn, block->insn_count),
        .to = block_successors(program, number)};
    if (shape.to.leaves || program->insns[last].flow == FLOW_RETURN)
        shape.exit = live_at_exit(program, block->function, last);
    return shape;
}

static struct regset live_out(const struct program *program,
                              const struct function *function,
                              const struct shape *shape, const struct regset *ins)
{
    const struct jump_table *table = shape->to.table;
    struct regset out = shape->exit;
    for (int i = 0; i < 2; i++) {
        if (shape->to.direct[i] != NO_INDEX)
            out = joined(out, ins[shape->to.direct[i] - function->first_block]);
    }
    for (uint32_t i = 0; table && i < table->count; i++) {
        uint32_t insn = table_insn(program, table, i);
        if (insn != NO_INDEX)
            out = joined(
                out, ins[program_block_of_insn(program, insn) - function->first_block]);
    }
    return out;
}

static void solve(struct program *program, const struct function *function,
                  struct regset *ins, struct shape *shapes)
{
    for (uint32_t b = 0; b < function->block_count; b++) {
        ins[b] = (struct regset){0};
        shapes[b] = shape_of(program, function->first_block + b);
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = function->block_count; b-- > 0;) {
            struct block *block = &program->blocks[function->first_block + b];
            block->live_out = live_out(program, function, &shapes[b], ins);
            struct regset in = live_in(&shapes[b].sum, block->live_out);
            changed = changed || !same(in, ins[b]);
            ins[b] = in;
        }
    }
}

/* What candidates ask of every instruction is kept as a trait, in the end: while others
 * are at work the traits of all are read. */
enum mark { MARK_LINK = 1, MARK_VENEER = 2 };

static uint64_t marked_registers(const struct target *target)
{
    return link_bit(target) | target->veneer_registers;
}

static void mark(struct results *results, const struct block *block, uint8_t *marks)
{
    const struct program *program = results->program;
    const struct target *target = program->target;
    struct regset live = block->live_out;
    for (uint32_t i = block->first_insn + block->insn_count; i-- > block->first_insn;) {
        struct regset uses, kills;
        results_note(results, i, live.regs);
        insn_effects(program, i, &uses, &kills);
        live.regs = (live.regs & ~kills.regs) | uses.regs;
        marks[i] = (uint8_t)((live.regs & link_bit(target) ? MARK_LINK : 0) |
                             (live.regs & target->veneer_registers ? MARK_VENEER : 0));
    }
}

uint32_t lift_most_blocks(const struct program *program, struct stretch stretch)
{
    uint32_t most = 0;
    for (uint32_t f = stretch.first; f < stretch.first + stretch.count; f++) {
        if (program->functions[f].block_count > most)
            most = program->functions[f].block_count;
    }
    return most;
}

struct parts {
    struct program *program;
    struct stretches stretches;
    uint8_t *marks; /* by instruction; NULL: the target has no such registers */
    struct results results[MOST_WORKERS];
};

static void solve_part(void *context, uint32_t part, uint32_t worker)
{
    struct parts *parts = context;
    struct stretch stretch = parts->stretches.items[part];
    struct program *program = parts->program;
    struct results *results = &parts->results[worker];
    struct arena *stage = arena_new();
    uint32_t most = lift_most_blocks(program, stretch);
    struct regset *ins = arena_new_array(stage, struct regset, most);
    struct shape *shapes = arena_new_array(stage, struct shape, most);
    for (uint32_t f = stretch.first; f < stretch.first + stretch.count; f++) {
        struct function *function = &program->functions[f];
        if (function->refusal != REFUSAL_NONE) {
            results_note_unknown(results, f);
            continue;
        }
        solve(program, function, ins, shapes);
        if (function->block_count)
            function->keeps = ins[0].regs & ~program->target->call_uses.regs;
        for (uint32_t b = 0; parts->marks && b < function->block_count; b++)
            mark(results, &program->blocks[function->first_block + b], parts->marks);
    }
    arena_free(stage);
}

static void keep_marks(void *context, uint32_t part, uint32_t worker)
{
    const struct parts *parts = context;
    struct stretch stretch = parts->stretches.items[part];
    const struct function *first = &parts->program->functions[stretch.first];
    const struct function *last = first + stretch.count - 1;
    (void)worker;
    for (uint32_t i = first->first_insn; i < last->first_insn + last->insn_count; i++) {
        struct insn *insn = &parts->program->insns[i];
        if (parts->marks[i] & MARK_LINK)
            insn->traits |= INSN_LINK_LIVE;
        if (parts->marks[i] & MARK_VENEER)
            insn->traits |= INSN_VENEER_LIVE;
    }
}

/* Somebody asks what is live: whether a call may overwrite its link register or those of
 * veneers, and which register is free to keep the one in. */
static bool is_asked(const struct target *target)
{
    return target->link_register < 64 || target->veneer_registers != 0 ||
           target->save_register_size != 0;
}

void lift_liveness(struct lift *lift)
{
    struct program *program = lift->program;
    lift_summarise_helpers(program);
    program->no_liveness = !lift->options->all_liveness && !is_asked(program->target);
    if (program->no_liveness)
        return;
    /* From here on nobody looks at another function but for its summary. */
    struct arena *stage = arena_new();
    struct parts parts = {.program = program,
                          .stretches = program_stretches(stage, program, PART_INSNS)};
    if (marked_registers(program->target))
        parts.marks = arena_new_array(stage, uint8_t, program->insn_count);
    for (uint32_t w = 0; w < MOST_WORKERS && (w == 0 || w < program->workers); w++)
        parts.results[w] = (struct results){.arena = arena_new(), .program = program};
    parallel_do(program->workers, parts.stretches.count, solve_part, &parts);
    results_spread(stage, program, parts.results, MOST_WORKERS);
    for (uint32_t w = 0; w < MOST_WORKERS; w++)
        arena_free(parts.results[w].arena);
    if (parts.marks)
        parallel_do(program->workers, parts.stretches.count, keep_marks, &parts);
    arena_free(stage);
}
