/* SPDX-License-Identifier: MIT
 *
 * Functions without the no-ops that align their labels. Compilers put them before loops
 * and branch targets (-falign-loops, -falign-jumps; GCC from -O2 on): they cost bytes,
 * are run where code falls through to the label, and mean nothing.
 *
 * A run of no-ops is padding when a label follows it at once. Others stay: a no-op may
 * be there to be patched, keep a return address inside of its function, or part two
 * instructions that a processor gets wrong side by side (-mfix-cortex-a53-835769; GCC
 * and linkers). So where instructions of one length need no alignment for decoding, only
 * what is never run goes: behind a jump or return.
 */
#include "outliner/rewrite/rewrite.h"

struct edits {
    struct edit *items;
    uint32_t count, capacity;
};

static bool is_padding(const struct insn *insn)
{
    return (insn->traits & INSN_NOP) && insn->flow == FLOW_NEXT &&
           !(insn->traits & (INSN_RELOCATED | INSN_PINNED | INSN_MARKER | INSN_GLUED |
                             INSN_ENTERED | INSN_JOINED | INSN_FORBIDDEN));
}

static bool falls_through(const struct insn *insn)
{
    return insn->flow != FLOW_JUMP && insn->flow != FLOW_JUMP_INDIRECT &&
           insn->flow != FLOW_RETURN && insn->flow != FLOW_STOP;
}

/* The run of no-ops [first, end) before instruction `end` of a function aligns it. (That
 * is no no-op itself: with some gone and some not, nobody could tell which.) */
static bool aligns(const struct program *program, const struct function *function,
                   uint32_t first, uint32_t end)
{
    const struct insn *insns = program->insns;
    if (first == end || first == function->first_insn ||
        !(insns[end].traits & INSN_LEADER) || (insns[end].traits & INSN_NOP) ||
        (insns[first - 1].traits & INSN_GLUED))
        return false;
    /* A call that never returns may be all that is before it: its return address must
     * not lie in code that belongs to something else. */
    uint8_t flow = insns[first - 1].flow;
    if (flow == FLOW_CALL || flow == FLOW_CALL_INDIRECT)
        return false;
    return program->target->code_align == 1 || !falls_through(&insns[first - 1]);
}

static bool is_target(const struct edges *edges, uint32_t index)
{
    return edges->start[index + 1] > edges->start[index];
}

/* By instruction of the function: another one takes its address. (GCC's AArch64 jump
 * tables count from a label that has the no-ops of the first case behind it.) */
static bool *find_taken(struct arena *arena, const struct program *program,
                        const struct function *function)
{
    bool *taken = arena_new_array(arena, bool, function->insn_count);
    for (uint32_t i = 0; i < function->insn_count; i++) {
        uint32_t number = function->first_insn + i;
        const struct insn *insn = &program->insns[number];
        if (insn->flow != FLOW_NEXT || !(insn->traits & INSN_PC_RELATIVE) ||
            insn->target < function->start || insn->target >= function->end)
            continue;
        uint32_t at = program_insn_at(program, function->code, insn->target);
        if (at != NO_INDEX)
            taken[at - function->first_insn] = true;
    }
    return taken;
}

/* (No-ops that something leads to are code: what is written at -O0 where nothing was
 * to be done.) */
static void unpad_function(struct arena *arena, const struct program *program,
                           const struct function *function, struct edits *out)
{
    struct edges edges = function_edges(arena, program, function);
    const bool *taken = find_taken(arena, program, function);
    uint32_t first = function->first_insn, end = first + function->insn_count;
    for (uint32_t i = first; i < end; i++) {
        if (is_padding(&program->insns[i]) &&
            !is_target(&edges, i - function->first_insn) &&
            !taken[i - function->first_insn])
            continue;
        if (aligns(program, function, first, i)) {
            const struct insn *start = &program->insns[first];
            struct edit edit = {.insn = first,
                                .insn_count = i - first,
                                .start = start->offset,
                                .end = program->insns[i].offset,
                                .site = NO_INDEX,
                                .helper = NO_INDEX};
            array_push(arena, out, edit);
        }
        first = i + 1;
    }
}

bool program_unpad(struct arena *arena, const struct program *program,
                   struct objects *out, bool *more, struct error *err)
{
    struct arena *stage = arena_new();
    struct edits edits = {0};
    for (uint32_t f = 0; f < program->function_count; f++) {
        const struct function *function = &program->functions[f];
        if (function->refusal == REFUSAL_NONE && !function_traps(program, function) &&
            program->code[function->code].refusal == REFUSAL_NONE)
            unpad_function(stage, program, function, &edits);
    }
    const struct edit_list list = {edits.items, edits.count};
    struct plan none = {0};
    struct rewrite_options options = {NO_INDEX, ""};
    *more = edits.count > 0;
    bool done = !*more ||
                rewrite_with_edits(arena, program, &none, &list, &options, out, err);
    arena_free(stage);
    return done;
}
