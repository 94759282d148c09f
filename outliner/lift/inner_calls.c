/* SPDX-License-Identifier: MIT
 *
 * Calls that may be made from inside of a helper that has been called itself
 * (INSN_INNER). There the callee finds the helper's return address, and what the helper
 * has pushed to align the stack, where it would find arguments. Two witnesses must say
 * that there are none:
 *
 * The callee: it is certain which function it is, and it looks at nothing there
 * (blind.c).
 *
 * The caller: where arguments would begin it has stored nothing since the last call, on
 * any way that leads to this one; or it reads from there, as from a variable of its own
 * (no compiler reads what it has passed); or the unwind row finds a register there.
 * That does without knowing how the callee computes its addresses, and it holds when
 * another function of the same name and prototype is run in the end.
 */
#include "outliner/lift/inner_calls.h"

/* --- the ways that lead to a call --- */

static bool flow_to(struct caller *caller, uint32_t block, words touched)
{
    if (block == NO_INDEX)
        return false;
    words *into = &caller->ways[block - caller->function->first_block].before;
    bool changed = (touched & ~*into) != 0;
    *into |= touched;
    return changed;
}

/* To all successors of a block: true if that was new to one of them. */
static bool flow_on(struct caller *caller, uint32_t number, words touched)
{
    const struct program *program = caller->program;
    struct successors to = block_successors(program, number);
    bool changed = flow_to(caller, to.direct[0], touched);
    changed |= flow_to(caller, to.direct[1], touched);
    for (uint32_t i = 0; to.table && i < to.table->count; i++) {
        uint32_t insn = table_insn(program, to.table, i);
        if (insn != NO_INDEX)
            changed |= flow_to(caller, program_block_of_insn(program, insn), touched);
    }
    return changed;
}

/* Padding between labels, which no way leads to. */
static bool is_padding(const struct program *program, const struct block *block)
{
    for (uint32_t i = 0; i < block->insn_count; i++) {
        if (!(program->insns[block->first_insn + i].traits & INSN_NOP))
            return false;
    }
    return true;
}

static bool has_joined(const struct program *program, const struct function *function)
{
    for (uint32_t b = 0; b < function->block_count; b++) {
        const struct block *block = &program->blocks[function->first_block + b];
        if (program->insns[block->first_insn].traits & INSN_JOINED)
            return true;
    }
    return false;
}

/* A successor is reached; what leads to it is not known yet. */
static void reach(struct caller *caller, uint32_t block)
{
    if (block != NO_INDEX)
        caller->ways[block - caller->function->first_block].before = UNTOUCHED;
}

/* Entries from elsewhere, and blocks that nothing is seen to lead to: landing pads. */
static void enter_blocks(struct caller *caller, bool is_private)
{
    const struct program *program = caller->program;
    const struct function *function = caller->function;
    bool many = caller->part_count > 1 || is_private || has_joined(program, function);
    words anywhere = many ? caller_touches(caller) : UNKNOWN;
    for (uint32_t b = 0; b < function->block_count; b++)
        caller->ways[b].before = UNKNOWN;
    for (uint32_t b = 0; b < function->block_count; b++) {
        struct successors to = block_successors(program, function->first_block + b);
        reach(caller, to.direct[0]);
        reach(caller, to.direct[1]);
        for (uint32_t i = 0; to.table && i < to.table->count; i++) {
            uint32_t insn = table_insn(program, to.table, i);
            if (insn != NO_INDEX)
                reach(caller, program_block_of_insn(program, insn));
        }
    }
    for (uint32_t b = 0; b < function->block_count; b++) {
        const struct block *block = &program->blocks[function->first_block + b];
        uint32_t traits = program->insns[block->first_insn].traits;
        if (traits & INSN_JOINED)
            caller->ways[b].before = function->shared ? UNKNOWN : anywhere;
        else if (traits & INSN_ENTERED)
            caller->ways[b].before = UNKNOWN;
        else if (is_padding(program, block))
            caller->ways[b].before = UNTOUCHED;
    }
    bool other = is_private && function->shared;
    caller->ways[0].before = !is_private ? UNTOUCHED : other ? UNKNOWN : anywhere;
}

static void find_ways(struct caller *caller, bool is_private)
{
    const struct function *function = caller->function;
    enter_blocks(caller, is_private);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = 0; b < function->block_count; b++) {
            const struct way *way = &caller->ways[b];
            words out = way->calls ? way->touched : way->before | way->touched;
            changed |= flow_on(caller, function->first_block + b, out);
        }
    }
}

static void mark_calls(struct caller *caller, uint32_t number)
{
    struct program *program = caller->program;
    struct row_walk walk;
    if (!row_walk_start(program, number, &walk))
        return;
    caller_find_parts(caller, number);
    caller_find_calls(caller, &walk);
    if (caller->calls.count == 0)
        return;
    find_ways(caller, caller->definitions->is_private[number]);
    for (uint32_t c = 0; c < caller->calls.count; c++) {
        const struct call *call = &caller->calls.items[c];
        words before = call->first ? caller->ways[call->block].before : UNTOUCHED;
        words doubtful = (before | call->touched | caller->copied) & ~caller->read;
        if ((doubtful & call->arguments) == 0)
            program->insns[call->insn].traits |= INSN_INNER;
    }
}

/* --- all functions --- */

struct job {
    struct program *program;
    struct definitions definitions;
    struct stretches stretches;
};

static void look_at_part(void *context, uint32_t part, uint32_t worker)
{
    struct job *job = context;
    struct program *program = job->program;
    struct stretch stretch = job->stretches.items[part];
    (void)worker;
    for (uint32_t f = stretch.first; f < stretch.first + stretch.count; f++)
        program->functions[f].blind = !job->definitions.is_private[f] &&
                                      function_is_blind(program, &job->definitions, f);
}

static void mark_part(void *context, uint32_t part, uint32_t worker)
{
    struct job *job = context;
    struct program *program = job->program;
    struct stretch stretch = job->stretches.items[part];
    struct arena *stage = arena_new();
    struct caller caller = {
        .program = program, .definitions = &job->definitions, .stage = stage};
    caller.ways =
        arena_new_array(stage, struct way, lift_most_blocks(program, stretch));
    (void)worker;
    for (uint32_t f = stretch.first; f < stretch.first + stretch.count; f++) {
        caller.function = &program->functions[f];
        if (caller.function->refusal == REFUSAL_NONE &&
            caller.function->block_count > 0 && caller.function->has_calls)
            mark_calls(&caller, f);
    }
    arena_free(stage);
}

void lift_inner_calls(struct program *program)
{
    if (program->target->align_shift == 0)
        return;
    struct arena *stage = arena_new();
    struct job job = {program, definitions_find(stage, program),
                      program_stretches(stage, program, PART_INSNS)};
    parallel_do(program->workers, job.stretches.count, look_at_part, &job);
    parallel_do(program->workers, job.stretches.count, mark_part, &job);
    arena_free(stage);
}
