/* SPDX-License-Identifier: MIT */
#include "trace.h"
#include "mo/bytes.h"
#include "target.h"

#include <elf.h>

enum { COPIES = 8, STACK = 31, LAST_RESULT = 1 };

/* orr xD, xzr, xM */
bool trace_is_copy(uint32_t word, uint32_t *source)
{
    if ((word & 0xffe0ffe0u) != 0xaa0003e0u)
        return false;
    *source = field(word, 16, 5);
    return true;
}

uint32_t trace_word(const struct trace *trace, uint32_t insn)
{
    return (uint32_t)load_le(
        trace->section->data.at + trace->program->insns[insn].offset, 4);
}

struct trace trace_new(struct arena *stage, const struct program *program,
                       uint32_t insn)
{
    const struct function *function =
        &program->functions[program_function_of_insn(program, insn)];
    struct trace trace = {
        .stage = stage,
        .program = program,
        .object = program_object(program, function->code),
        .section = program_section(program, function->code),
        .first = function->first_insn,
        .count = function->insn_count,
        .edges = function_edges(stage, program, function),
    };
    return trace;
}

static bool falls_through(const struct insn *insn)
{
    return insn->flow == FLOW_NEXT || insn->flow == FLOW_BRANCH ||
           insn->flow == FLOW_CALL || insn->flow == FLOW_CALL_INDIRECT;
}

bool trace_next_edge(const struct trace *trace, uint32_t insn, struct edge *edge)
{
    const uint32_t at = insn - trace->first;
    if (edge->from == NO_INDEX) {
        edge->next = trace->edges.start[at];
        if (at > 0 && falls_through(&trace->program->insns[insn - 1])) {
            edge->from = insn - 1;
            return true;
        }
    }
    if (edge->next == trace->edges.start[at + 1])
        return false;
    edge->from = trace->edges.from[edge->next++];
    edge->taken = true;
    return true;
}

bool trace_only_falls_in(const struct trace *trace, uint32_t insn)
{
    const uint32_t at = insn - trace->first;
    return at > 0 && trace->edges.start[at] == trace->edges.start[at + 1] &&
           !(trace->program->insns[insn].traits & INSN_JOINED) &&
           falls_through(&trace->program->insns[insn - 1]);
}

/* What becomes of the register in this instruction: written, lost in a call, or kept. A
 * call may leave a result in x0 or x1. In any other register the caller finds what was
 * there (gcc's -fipa-ra keeps values in registers that a callee is known not to write),
 * or looks for nothing. */
enum fate { FATE_KEPT, FATE_WRITTEN, FATE_LOST };

static enum fate fate_in(const struct trace *trace, uint32_t at, uint32_t reg)
{
    const struct insn *insn = &trace->program->insns[at];
    if (insn->flow == FLOW_CALL || insn->flow == FLOW_CALL_INDIRECT)
        return trace_calls_outlined(trace, at) || reg <= LAST_RESULT ? FATE_WRITTEN
                                                                     : FATE_KEPT;
    return insn->defs >> reg & 1u ? FATE_WRITTEN : FATE_KEPT;
}

/* LLVM's outliner and ours move any part of a function into another one: a call to such
 * a function may do to registers and stack slots whatever that part did. */
bool trace_calls_outlined(const struct trace *trace, uint32_t insn)
{
    if (trace->program->insns[insn].flow != FLOW_CALL)
        return false;
    const uint32_t callee = insn_callee(trace->program, insn);
    if (callee != NO_INDEX)
        return function_is_private(trace->program, callee);
    uint32_t first = 0;
    if (program_relocs(trace->program, insn, &first) != 1)
        return true; /* to no function's entry */
    const struct reloc *reloc = &trace->section->relocs[first];
    const struct symbol *symbol = &trace->object->symbols[reloc->symbol];
    return symbol->type == STT_SECTION || name_is_private(symbol->name);
}

bool trace_survives_call(const struct trace *trace, uint32_t insn, uint32_t reg)
{
    const bool kept = target_aarch64.callee_saved.regs >> reg & 1u;
    return kept && !trace_calls_outlined(trace, insn);
}

static void add_def(struct defs *defs, uint32_t insn)
{
    for (uint32_t i = 0; i < defs->count && i < DEFS; i++) {
        if (defs->insns[i] == insn)
            return;
    }
    if (defs->count < DEFS)
        defs->insns[defs->count] = insn;
    if (defs->count <= DEFS)
        defs->count++;
}

/* ldr or str of one register, unsigned or unscaled offset. */
bool trace_is_slot_access(uint32_t word, const struct insn *insn, bool load)
{
    const uint32_t scaled = load ? 0xb9400000u : 0xb9000000u;
    const uint32_t unscaled = load ? 0xb8400000u : 0xb8000000u;
    return insn->traits & INSN_SP_MEMORY &&
           ((word & 0xbfc00000u) == scaled || (word & 0xbfe00c00u) == unscaled);
}

bool trace_writes_slot(uint32_t word, const struct insn *insn, int32_t displacement,
                       int32_t size)
{
    const struct form *form = aarch64_form(word);
    if (!form || !form_is_store(form) || !(insn->traits & INSN_SP_MEMORY))
        return false;
    const bool pair = form->kind == AT_PAIR;
    const int32_t bytes = 1 << (aarch64_access_scale(word, pair) + (pair ? 1u : 0u));
    return insn->sp_value < displacement + size &&
           displacement < insn->sp_value + bytes;
}

bool trace_spilled(uint32_t word, const struct insn *insn, int32_t displacement,
                   uint32_t *reg)
{
    const bool single =
        trace_is_slot_access(word, insn, false) && field(word, 30, 1) != 0;
    const bool pair = (word & 0xffc00000u) == 0xa9000000u;
    const int32_t beyond = displacement - insn->sp_value;
    if (!(insn->traits & INSN_SP_MEMORY) || !(single || pair))
        return false;
    *reg = field(word, beyond == 8 ? 10 : 0, 5);
    return beyond == 0 || (pair && beyond == 8);
}

/* A register, or eight bytes of the stack. */
struct place_of_value {
    bool slot;
    uint32_t reg;
    int32_t displacement;
};

/* A slot that SP has just come down to hold was not written yet. */
static enum fate slot_fate(const struct trace *trace, uint32_t insn,
                           int32_t displacement)
{
    const struct insn *is = &trace->program->insns[insn];
    if (is->flow == FLOW_CALL && trace_calls_outlined(trace, insn))
        return FATE_WRITTEN;
    if (trace_writes_slot(trace_word(trace, insn), is, displacement, 8))
        return FATE_WRITTEN;
    if (!(is->defs >> STACK & 1u))
        return FATE_KEPT;
    /* stp x29, x30, [sp, #-n]! does write the first two */
    const bool stores = form_is_memory(aarch64_form(trace_word(trace, insn)));
    const bool fresh = is->traits & INSN_SP_ADJUST &&
                       displacement >= (stores ? 16 : 0) &&
                       displacement + 8 <= -(int64_t)is->sp_value;
    return fresh ? FATE_LOST : FATE_WRITTEN;
}

static struct defs defs_of(struct trace *trace, uint32_t insn, struct place_of_value of)
{
    struct defs defs = {0};
    array_of(uint32_t) work = {0};
    bool *seen = arena_new_array(trace->stage, bool, trace->count);
    array_push(trace->stage, &work, insn);
    while (work.count > 0 && defs.count <= DEFS) {
        const uint32_t at = work.items[--work.count];
        if (trace->program->insns[at].traits & INSN_JOINED) /* from who knows where */
            return (struct defs){.count = DEFS + 1};
        for (struct edge edge = FIRST_EDGE; trace_next_edge(trace, at, &edge);) {
            const uint32_t from = edge.from;
            const enum fate fate = of.slot ? slot_fate(trace, from, of.displacement)
                                           : fate_in(trace, from, of.reg);
            if (fate == FATE_WRITTEN)
                add_def(&defs, from);
            if (fate != FATE_KEPT || seen[from - trace->first])
                continue;
            seen[from - trace->first] = true;
            array_push(trace->stage, &work, from);
        }
    }
    return defs;
}

struct defs trace_defs(struct trace *trace, uint32_t insn, uint32_t reg)
{
    return defs_of(trace, insn, (struct place_of_value){.reg = reg});
}

struct defs trace_slot_defs(struct trace *trace, uint32_t insn, int32_t displacement)
{
    return defs_of(trace, insn,
                   (struct place_of_value){.slot = true, .displacement = displacement});
}

uint32_t trace_def(struct trace *trace, uint32_t insn, uint32_t reg)
{
    for (uint32_t i = 0; i < COPIES; i++) {
        const struct defs defs = trace_defs(trace, insn, reg);
        if (defs.count != 1)
            return NO_INDEX;
        insn = defs.insns[0];
        if (!trace_is_copy(trace_word(trace, insn), &reg))
            return insn;
    }
    return NO_INDEX;
}
