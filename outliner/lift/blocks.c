/* SPDX-License-Identifier: MIT
 *
 * Basic blocks. A block starts at a function's entry, where anything may jump to, and
 * behind every instruction that may not go on to the next one. Calls do not end a
 * block.
 */
#include "outliner/lift/lift.h"

static bool ends_block(const struct insn *insn)
{
    return insn->flow != FLOW_NEXT && insn->flow != FLOW_CALL &&
           insn->flow != FLOW_CALL_INDIRECT;
}

/* Marks the leaders of a function and what it does as a whole. Returns how many blocks
 * it has. */
static uint32_t mark_leaders(struct program *program, struct function *function)
{
    uint32_t count = 0;
    bool leader = true;
    for (uint32_t i = 0; i < function->insn_count; i++) {
        struct insn *insn = &program->insns[function->first_insn + i];
        if (leader)
            insn->traits |= INSN_LEADER;
        count += (insn->traits & INSN_LEADER) != 0;
        leader = ends_block(insn);
        /* What writes less than it may does not count, nor what only some execute. */
        if (!(insn->traits & INSN_OPAQUE) && !function->shared)
            function->written |= insn->defs;
        if (insn->flow == FLOW_CALL || insn->flow == FLOW_CALL_INDIRECT)
            function->has_calls = true;
        if (insn->traits & INSN_SIGNS)
            function->signs = true;
    }
    return count;
}

static void cut_function(struct program *program, uint32_t number)
{
    const struct function *function = &program->functions[number];
    uint32_t next = function->first_block;
    struct block *block = NULL; /* until the first one, which is a leader */
    for (uint32_t i = 0; i < function->insn_count; i++) {
        uint32_t insn = function->first_insn + i;
        if (program->insns[insn].traits & INSN_LEADER) {
            block = &program->blocks[next++];
            *block = (struct block){.function = number, .first_insn = insn};
        }
        block->insn_count++;
    }
}

struct parts {
    struct lift *lift;
    struct stretches stretches;
};

static void mark_part(void *context, uint32_t number, uint32_t worker)
{
    const struct parts *parts = context;
    struct stretch stretch = parts->stretches.items[number];
    (void)worker;
    for (uint32_t f = stretch.first; f < stretch.first + stretch.count; f++) {
        struct function *function = &parts->lift->program->functions[f];
        lift_special(parts->lift, f);
        function->block_count = mark_leaders(parts->lift->program, function);
    }
}

static void cut_part(void *context, uint32_t number, uint32_t worker)
{
    const struct parts *parts = context;
    struct stretch stretch = parts->stretches.items[number];
    (void)worker;
    for (uint32_t f = stretch.first; f < stretch.first + stretch.count; f++)
        cut_function(parts->lift->program, f);
}

void lift_blocks(struct lift *lift)
{
    struct program *program = lift->program;
    struct arena *stage = arena_new();
    struct parts parts = {lift, program_stretches(stage, program, PART_INSNS)};
    parallel_do(program->workers, parts.stretches.count, mark_part, &parts);
    for (uint32_t f = 0; f < program->function_count; f++) {
        program->functions[f].first_block = program->block_count;
        program->block_count += program->functions[f].block_count;
    }
    program->blocks = arena_new_array(lift->arena, struct block, program->block_count);
    parallel_do(program->workers, parts.stretches.count, cut_part, &parts);
    arena_free(stage);
}

/* The block of the same function that starts at a section offset, or NO_INDEX. */
static uint32_t block_at(const struct program *program, const struct function *function,
                         uint32_t offset)
{
    if (offset < function->start || offset >= function->end)
        return NO_INDEX;
    uint32_t low = function->first_block, high = low + function->block_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (program->insns[program->blocks[middle].first_insn].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < function->first_block + function->block_count &&
                 program->insns[program->blocks[low].first_insn].offset == offset;
    return found ? low : NO_INDEX;
}

struct successors block_successors(const struct program *program, uint32_t number)
{
    const struct block *block = &program->blocks[number];
    const struct function *function = &program->functions[block->function];
    uint32_t last = block->first_insn + block->insn_count - 1;
    const struct insn *insn = &program->insns[last];
    struct successors to = {
        {NO_INDEX, NO_INDEX},
        NULL, false
    };
    bool last_block = number + 1 == function->first_block + function->block_count;
    if (insn->flow == FLOW_JUMP || insn->flow == FLOW_BRANCH) {
        to.direct[0] = insn->target == NO_INDEX
                           ? NO_INDEX
                           : block_at(program, function, insn->target);
        to.leaves = to.direct[0] == NO_INDEX;
    }
    if (insn->flow == FLOW_JUMP_INDIRECT) {
        to.table = table_of_insn(program, last);
        to.leaves = !to.table || table_leaves(program, to.table);
    }
    bool goes_on = insn->flow == FLOW_BRANCH || !ends_block(insn);
    if (goes_on && last_block)
        to.leaves = true;
    else if (goes_on)
        to.direct[1] = number + 1;
    return to;
}
