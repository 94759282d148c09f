/* SPDX-License-Identifier: MIT
 *
 * Calls that may be made from inside of a helper that has been called itself
 * (INSN_INNER). There the callee finds the helper's return address, and what the helper
 * has pushed to align the stack, where it would find arguments. That is so only when
 *
 * - it is certain which function is run (definitions.c);
 * - it looks at nothing there, whatever it does (blind.c). What its callers do proves
 *   nothing: compilers leave out the first arguments on the stack when their values are
 *   undefined, and store those behind them;
 * - neither it nor anybody whom it calls takes a stack for granted that is aligned to
 * more than the helper keeps (-mpreferred-stack-boundary=5, -mstack-alignment=32): it
 * is called somewhere with one that is not.
 */
#include "outliner/lift/inner_calls.h"

struct job {
    struct program *program;
    struct definitions definitions;
    struct stretches stretches;
    bool *plain; /* by function: somewhere it is called with a stack that is not aligned
                    to more than the ABI wants */
};

/* If the stack was aligned to more when the caller was entered, as callers of callees
 * that want more will have it, it is not at the call. */
static bool aligns_plainly(const struct target *target, const struct row *row)
{
    int64_t alignment = target->call_pushes + target->align_shift;
    return row_base(target, row) == BASE_STACK &&
           row->cfa_offset % (2 * alignment) != 0;
}

/* Calls of a function, in order, of those that may be entered by a name that is theirs.
 */
struct calls {
    const struct job *job;
    const struct function *function;
    struct row_walk walk;
    uint32_t next; /* instruction index */
};

static bool calls_start(const struct job *job, uint32_t number, struct calls *out)
{
    const struct function *function = &job->program->functions[number];
    *out = (struct calls){.job = job, .function = function};
    out->next = function->first_insn;
    return function->refusal == REFUSAL_NONE && function->has_calls &&
           row_walk_start(job->program, number, &out->walk);
}

/* The next one, with its row and callee; false: there is none left. */
static bool calls_next(struct calls *calls, uint32_t *number, const struct row **row,
                       uint32_t *callee)
{
    const struct program *program = calls->job->program;
    uint32_t end = calls->function->first_insn + calls->function->insn_count;
    while (calls->next < end) {
        *number = calls->next++;
        const struct insn *insn = &program->insns[*number];
        if (insn->flow != FLOW_CALL)
            continue;
        struct destination to =
            destination_of(program, &calls->job->definitions, *number);
        if (to.is_private || to.function == NO_INDEX)
            continue;
        *row = row_walk_to(program, &calls->walk, insn->offset);
        *callee = to.function;
        return true;
    }
    return false;
}

/* Calls that the assembler has resolved are not asked: the checker finds the others
 * without decoding. */
static void note_plain(struct job *job, uint32_t number)
{
    const struct program *program = job->program;
    const struct row *row;
    uint32_t insn, callee;
    struct calls calls;
    if (job->definitions.is_private[number] || !calls_start(job, number, &calls))
        return;
    while (calls_next(&calls, &insn, &row, &callee)) {
        if ((program->insns[insn].traits & INSN_RELOCATED) &&
            aligns_plainly(program->target, row))
            __atomic_store_n(&job->plain[callee], true, __ATOMIC_RELAXED);
    }
}

static void look_at_part(void *context, uint32_t part, uint32_t worker)
{
    struct job *job = context;
    struct program *program = job->program;
    struct stretch stretch = job->stretches.items[part];
    (void)worker;
    for (uint32_t f = stretch.first; f < stretch.first + stretch.count; f++) {
        note_plain(job, f);
        program->functions[f].blind = !job->definitions.is_private[f] &&
                                      function_is_blind(program, &job->definitions, f);
    }
}

static void mark_part(void *context, uint32_t part, uint32_t worker)
{
    struct job *job = context;
    struct program *program = job->program;
    struct stretch stretch = job->stretches.items[part];
    (void)worker;
    for (uint32_t f = stretch.first; f < stretch.first + stretch.count; f++) {
        const struct row *row;
        uint32_t insn, callee;
        struct calls calls;
        bool more = calls_start(job, f, &calls);
        while (more && calls_next(&calls, &insn, &row, &callee)) {
            bool plain = job->plain[callee] || aligns_plainly(program->target, row);
            if (plain && program->functions[callee].blind)
                program->insns[insn].traits |= INSN_INNER;
        }
    }
}

void lift_inner_calls(struct program *program)
{
    if (program->target->align_shift == 0)
        return;
    struct arena *stage = arena_new();
    struct job job = {.program = program};
    job.definitions = definitions_find(stage, program);
    job.stretches = program_stretches(stage, program, PART_INSNS);
    job.plain = arena_new_array(stage, bool, program->function_count);
    parallel_do(program->workers, job.stretches.count, look_at_part, &job);
    parallel_do(program->workers, job.stretches.count, mark_part, &job);
    arena_free(stage);
}
