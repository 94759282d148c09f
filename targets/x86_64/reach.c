/* SPDX-License-Identifier: MIT
 *
 * Backward search through one function.
 *
 * The graph is the one that is known by then: falling through, and edges.c. Entries
 * that are not visible (from a cold part in another section, by a table not found yet)
 * are missing, so answers are "all definitions seen" and "bound on all paths seen".
 * tables.c checks what it builds on them against the relocations, which are
 * independent.
 */
#include "reach.h"

#include <string.h>

enum { BOUND_LIMIT = 1 << 16, FLAGS_DISTANCE = 16 };

static uint32_t insn_count(const struct reach *reach)
{
    return reach->function->insn_count;
}

static void find_indirect(struct reach *reach)
{
    uint32_t first = reach->function->first_insn;
    for (uint32_t i = first; i < first + insn_count(reach); i++)
        if (reach->program->insns[i].flow == FLOW_JUMP_INDIRECT)
            reach->indirect[reach->indirect_count++] = i;
}

void reach_init(struct reach *reach, struct arena *arena, const struct program *program,
                uint32_t insn)
{
    const struct function *function =
        &program->functions[program_function_of_insn(program, insn)];
    uint32_t count = function->insn_count;
    *reach = (struct reach){
        .program = program,
        .object = program_object(program, function->code),
        .section = program_section(program, function->code),
        .code = &program->code[function->code],
        .function = function,
        .edges = function_edges(arena, program, function),
        .indirect = arena_new_array(arena, uint32_t, count),
        .work = arena_new_array(arena, uint32_t, (size_t)count * 16),
        .seen = arena_new_array(arena, uint16_t, count),
    };
    find_indirect(reach);
}

bool reach_view(const struct reach *reach, uint32_t insn, struct view *out)
{
    const struct insn *at = &reach->program->insns[insn];
    out->insn = insn;
    return x86_64_parse(reach->section->data.at + at->offset, at->length,
                        &out->parsed) &&
           x86_64_operands(&out->parsed, out->operands);
}

uint8_t view_register(ZydisRegister reg)
{
    ZydisRegister whole =
        ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    if (whole < ZYDIS_REGISTER_RAX || whole > ZYDIS_REGISTER_R15)
        return NO_REG;
    return (uint8_t)(whole - ZYDIS_REGISTER_RAX);
}

static bool is_register(const ZydisDecodedOperand *operand)
{
    return operand->type == ZYDIS_OPERAND_TYPE_REGISTER;
}

bool view_is_copy(const struct view *view, uint8_t *reg)
{
    if (view->parsed.insn.mnemonic != ZYDIS_MNEMONIC_MOV ||
        view->parsed.insn.operand_width < 32 || !is_register(&view->operands[0]) ||
        !is_register(&view->operands[1]))
        return false;
    uint8_t source = view_register(view->operands[1].reg.value);
    if (source == NO_REG || view_register(view->operands[0].reg.value) == NO_REG)
        return false;
    *reg = source;
    return true;
}

static bool is_call(const struct insn *insn)
{
    return insn->flow == FLOW_CALL || insn->flow == FLOW_CALL_INDIRECT;
}

static bool falls_through(const struct insn *insn)
{
    return insn->flow == FLOW_NEXT || insn->flow == FLOW_BRANCH || is_call(insn);
}

static bool defines(const struct reach *reach, const struct insn *insn, uint8_t reg)
{
    uint64_t defs = insn->defs;
    if (is_call(insn))
        defs |= reach->program->target->call_kills.regs;
    return defs >> reg & 1;
}

/* --- reaching definitions --- */

static void visit(struct reach *reach, uint32_t insn, uint8_t reg, uint32_t *top)
{
    uint32_t at = insn - reach->function->first_insn;
    if (reach->seen[at] & (1u << reg))
        return;
    reach->seen[at] = (uint16_t)(reach->seen[at] | 1u << reg);
    reach->work[(*top)++] = at << 4 | reg;
}

/* The call may leave a value in the register that its caller goes on to use: a result,
 * or what an outlined part of the caller has made. In any other register the caller
 * finds what was there (gcc's -fipa-ra keeps values in registers that a callee is known
 * not to write), or looks for nothing. */
static bool call_results(const struct reach *reach, uint32_t insn, uint8_t reg)
{
    const uint64_t results = 1u << BIT_RAX | 1u << BIT_RDX;
    const struct insn *at = &reach->program->insns[insn];
    uint64_t abi = at->defs | reach->program->target->call_kills.regs;
    return (results >> reg & 1) || insn_may_write(reach->program, insn) & ~abi;
}

/* The predecessor's own definition ends the path. False: there are too many. */
static bool step_back(struct reach *reach, uint32_t insn, uint8_t reg, uint32_t *top,
                      struct defs *defs)
{
    bool call = is_call(&reach->program->insns[insn]);
    if (call ? !call_results(reach, insn, reg)
             : !defines(reach, &reach->program->insns[insn], reg)) {
        visit(reach, insn, reg, top);
        return true;
    }
    if (call) {
        defs->killed = true;
        return true;
    }
    for (uint32_t i = 0; i < defs->count; i++)
        if (defs->insns[i] == insn)
            return true;
    if (defs->count == DEFS_LIMIT)
        return false;
    defs->insns[defs->count++] = insn;
    return true;
}

struct defs reach_definitions(struct reach *reach, uint32_t insn, uint8_t reg,
                              bool hidden)
{
    const struct insn *insns = reach->program->insns;
    uint32_t first = reach->function->first_insn, top = 0;
    struct defs defs = {0};
    memset(reach->seen, 0, insn_count(reach) * sizeof *reach->seen);
    visit(reach, insn, reg, &top);
    while (top != 0) {
        uint32_t at = reach->work[--top] >> 4;
        bool through = at != 0 && falls_through(&insns[first + at - 1]);
        bool lost =
            at != 0 && !through && reach->edges.start[at] == reach->edges.start[at + 1];
        bool ok = !through || step_back(reach, first + at - 1, reg, &top, &defs);
        for (uint32_t i = reach->edges.start[at]; ok && i < reach->edges.start[at + 1];
             i++)
            ok = step_back(reach, reach->edges.from[i], reg, &top, &defs);
        for (uint32_t i = 0; ok && lost && hidden && i < reach->indirect_count; i++)
            ok = step_back(reach, reach->indirect[i], reg, &top, &defs);
        if (!ok)
            return (struct defs){0};
    }
    return defs;
}

/* --- bounds --- */

/* The compare with a constant that a conditional jump decides on: values of `reg` below
 * the result go on to `ja`'s fall-through. 0 when it is anything else. */
static uint64_t compared_with(const struct reach *reach, uint32_t jump, uint8_t reg)
{
    const struct insn *insns = reach->program->insns;
    uint32_t first = reach->function->first_insn;
    for (uint32_t i = jump; i > first && jump - i < FLAGS_DISTANCE; i--) {
        const struct insn *before = &insns[i - 1];
        uint32_t at = i - first;
        if (reach->edges.start[at] != reach->edges.start[at + 1] ||
            before->flow != FLOW_NEXT || insns[i].traits & INSN_JOINED)
            return 0;
        if (!(before->flag_defs & (FLAG_CF | FLAG_ZF))) {
            if (defines(reach, before, reg))
                return 0;
            continue;
        }
        struct view view;
        if (!reach_view(reach, i - 1, &view) ||
            view.parsed.insn.mnemonic != ZYDIS_MNEMONIC_CMP ||
            !is_register(&view.operands[0]) ||
            view.operands[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE ||
            view_register(view.operands[0].reg.value) != reg)
            return 0;
        uint64_t value = view.operands[1].imm.value.u;
        return value < BOUND_LIMIT ? value + 1 : 0;
    }
    return 0;
}

/* Values of `reg` that pass from conditional jump to the given side; 0: not known. */
static uint32_t edge_bound(const struct reach *reach, uint32_t jump, bool taken,
                           uint8_t reg)
{
    enum { JB = 2, JAE = 3, JBE = 6, JA = 7 };
    struct view view;
    if (!reach_view(reach, jump, &view))
        return 0;
    const ZydisDecodedInstruction *is = &view.parsed.insn;
    bool jcc =
        (is->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && (is->opcode & 0xf0) == 0x70) ||
        (is->opcode_map == ZYDIS_OPCODE_MAP_0F && (is->opcode & 0xf0) == 0x80);
    uint32_t condition = is->opcode & 0x0f;
    bool inclusive = condition == (taken ? JBE : JA);
    bool exclusive = condition == (taken ? JB : JAE);
    if (!jcc || (!inclusive && !exclusive))
        return 0;
    uint64_t bound = compared_with(reach, jump, reg);
    return (uint32_t)(bound == 0 ? 0 : bound - exclusive);
}

/* A definition that bounds the value (and, movzx) or passes on another register's. */
static bool defined_bound(const struct reach *reach, uint32_t insn, uint8_t *reg,
                          uint32_t *bound)
{
    struct view view;
    *bound = 0;
    if (!reach_view(reach, insn, &view))
        return false;
    const ZydisDecodedOperand *operands = view.operands;
    if (view_is_copy(&view, reg))
        return true;
    switch (view.parsed.insn.mnemonic) {
    case ZYDIS_MNEMONIC_AND:
        if (operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
            is_register(&operands[0]) && view.parsed.insn.operand_width >= 32 &&
            operands[1].imm.value.u < BOUND_LIMIT)
            *bound = (uint32_t)operands[1].imm.value.u + 1;
        return *bound != 0;
    case ZYDIS_MNEMONIC_MOVZX:
    case ZYDIS_MNEMONIC_MOVSXD:
    case ZYDIS_MNEMONIC_CDQE:
        if (view.parsed.insn.mnemonic == ZYDIS_MNEMONIC_CDQE)
            return true; /* eax into rax: the same register */
        if (!is_register(&operands[1]))
            return false;
        *reg = view_register(operands[1].reg.value);
        return *reg != NO_REG;
    default: return false;
    }
}

/* Follows one edge back. False: the bound is not known on this path. */
static bool bound_edge(struct reach *reach, uint32_t from, bool taken, uint8_t reg,
                       uint32_t *top, struct bound *bound)
{
    const struct insn *insn = &reach->program->insns[from];
    uint32_t here = 0;
    if (insn->flow == FLOW_BRANCH)
        here = edge_bound(reach, from, taken, reg);
    if (here == 0 && defines(reach, insn, reg)) {
        if (insn->flow != FLOW_NEXT || !defined_bound(reach, from, &reg, &here))
            return false;
        bound->is_exact = bound->is_exact && here == 0;
    }
    if (here == 0)
        visit(reach, from, reg, top);
    else if (here > bound->count)
        bound->count = here;
    return true;
}

struct bound reach_bound(struct reach *reach, uint32_t insn, uint8_t reg)
{
    const struct insn *insns = reach->program->insns;
    uint32_t first = reach->function->first_insn, top = 0;
    struct bound bound = {.is_exact = true}, unknown = {0};
    memset(reach->seen, 0, insn_count(reach) * sizeof *reach->seen);
    visit(reach, insn, reg, &top);
    while (top != 0) {
        uint32_t state = reach->work[--top];
        uint32_t at = state >> 4;
        uint8_t tracked = state & 15;
        bool through = at != 0 && falls_through(&insns[first + at - 1]);
        if (at == 0 ||
            (!through && reach->edges.start[at] == reach->edges.start[at + 1]))
            return unknown; /* the value comes from where we cannot see */
        if (through && !bound_edge(reach, first + at - 1, false, tracked, &top, &bound))
            return unknown;
        for (uint32_t i = reach->edges.start[at]; i < reach->edges.start[at + 1]; i++)
            if (!bound_edge(reach, reach->edges.from[i], true, tracked, &top, &bound))
                return unknown;
    }
    return bound;
}
