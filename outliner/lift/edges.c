/* SPDX-License-Identifier: MIT
 *
 * Ways into the instructions of one function other than falling through, as far as they
 * are known before there are blocks: for those who follow values through a function to
 * find its jump tables (targets). A jump whose table is known leads to its entries, one
 * whose table is not known to every label whose address lies in data, a call to its
 * landing pad.
 */
#include "mo/program.h"

/* Edges are counted first (no `from` yet), then stored. */
struct collector {
    const struct program *program;
    const struct function *function;
    uint32_t *next; /* by target: how many, then where the next one goes */
    uint32_t *from;
};

static void add(struct collector *collector, uint32_t from, uint32_t to)
{
    uint32_t first = collector->function->first_insn;
    if (to == NO_INDEX)
        return;
    uint32_t at = collector->next[to - first]++;
    if (collector->from)
        collector->from[at] = from;
}

static void add_labels(struct collector *collector, uint32_t from)
{
    const struct function *function = collector->function;
    for (uint32_t i = 0; i < function->insn_count; i++) {
        uint32_t to = function->first_insn + i;
        if (collector->program->insns[to].traits & INSN_ENTERED)
            add(collector, from, to);
    }
}

static void add_insn(struct collector *collector, uint32_t from)
{
    const struct program *program = collector->program;
    const struct function *function = collector->function;
    const struct insn *insn = &program->insns[from];
    add(collector, from, insn_landing(program, function, from));
    if (insn->flow == FLOW_JUMP || insn->flow == FLOW_BRANCH) {
        if (insn->target >= function->start && insn->target < function->end)
            add(collector, from,
                program_insn_in(program, insn->function, insn->target));
    } else if (insn->flow == FLOW_JUMP_INDIRECT) {
        const struct jump_table *table = table_of_insn(program, from);
        if (!table)
            add_labels(collector, from);
        for (uint32_t i = 0; table && i < table->count; i++)
            add(collector, from, table_insn(program, table, i));
    }
}

static void add_all(struct collector *collector)
{
    const struct function *function = collector->function;
    for (uint32_t i = 0; i < function->insn_count; i++)
        add_insn(collector, function->first_insn + i);
}

struct edges function_edges(struct arena *arena, const struct program *program,
                            const struct function *function)
{
    uint32_t count = function->insn_count, sum = 0;
    if (program->edges.start &&
        function == &program->functions[program->edges_of])
        return program->edges;
    struct collector collector = {
        program, function, arena_new_array(arena, uint32_t, (size_t)count + 1), NULL};
    add_all(&collector);
    uint32_t *start = arena_new_array(arena, uint32_t, (size_t)count + 1);
    for (uint32_t i = 0; i < count; i++) {
        start[i] = sum;
        sum += collector.next[i];
        collector.next[i] = start[i];
    }
    start[count] = sum;
    collector.from = arena_new_array(arena, uint32_t, (size_t)sum + 1);
    add_all(&collector);
    return (struct edges){start, collector.from};
}
