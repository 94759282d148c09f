/* SPDX-License-Identifier: MIT
 *
 * Backward liveness over registers and flags, per function, to a fixed point.
 *
 * What is assumed of other code is little, since objects are full of private
 * conventions (gcc's -fipa-ra, LLVM's outlined functions, preserve_most, hand-written
 * assembly): a call reads what the ABI lets it read and preserves every register but
 * the link register and, when it may go through a veneer, the veneer's. Returning, all
 * that the ABI lets a caller see is live. What leaves a function in any other way needs
 * everything.
 *
 * Our own helpers are known better: each is one block, so what it reads of its callers'
 * registers and what it overwrites can be read off it (function.reads, .overwrites).
 *
 * A caller may also rely on a register that this function never writes (-fipa-ra
 * again); function.written answers that question, not liveness.
 */
#include "outliner/lift/lift.h"

#include <string.h>

static struct regset joined(struct regset a, struct regset b)
{
    return (struct regset){a.regs | b.regs, (uint8_t)(a.flags | b.flags)};
}

static bool same(struct regset a, struct regset b)
{
    return a.regs == b.regs && a.flags == b.flags;
}

/* Where a direct call or jump goes. */
enum callee {
    CALLEE_PUBLIC,  /* a global function: the ABI's conventions */
    CALLEE_LOCAL,   /* a local function: perhaps conventions of its author */
    CALLEE_PRIVATE, /* an outlined function, a cold part, the middle of something */
};

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* LLVM's outliner makes functions with conventions of their own, and so do we; the cold
 * part of a function continues it. */
bool name_is_private(const char *name)
{
    if (starts_with(name, "OUTLINED_FUNCTION_"))
        return true;
    const char *dot = strchr(name, '.'); /* most names have none */
    return dot && (starts_with(name, HELPER_PREFIX) || strstr(dot, ".cold") ||
                   strstr(dot, ".__part."));
}

bool function_is_private(const struct program *program, uint32_t function)
{
    return program->code[program->functions[function].code].helpers ||
           name_is_private(program_function_name(program, function));
}

static enum callee callee_at(const struct program *program, uint32_t code,
                             int64_t position, uint32_t *function_out)
{
    uint32_t number = code == NO_INDEX || position < 0 || position > UINT32_MAX
                          ? NO_INDEX
                          : program_function_at(program, code, (uint32_t)position);
    if (number == NO_INDEX)
        return CALLEE_PRIVATE;
    const struct function *function = &program->functions[number];
    if (function->start == (uint32_t)position)
        *function_out = number;
    bool entry = function->start == (uint32_t)position && function->symbol != NO_INDEX;
    if (!entry || function_is_private(program, number))
        return CALLEE_PRIVATE;
    return CALLEE_LOCAL;
}

/* *function is the one whose entry it is, or NO_INDEX. */
static enum callee callee_of(const struct program *program, uint32_t number,
                             uint32_t *function)
{
    *function = NO_INDEX;
    const struct insn *insn = &program->insns[number];
    uint32_t code = program->functions[program_function_of_insn(program, number)].code;
    uint32_t first;
    if (program_relocs(program, number, &first) == 0)
        return callee_at(program, code,
                         insn->target == NO_INDEX ? -1 : (int64_t)insn->target,
                         function);
    const struct object *object = program_object(program, code);
    const struct reloc *reloc = &program_section(program, code)->relocs[first];
    uint8_t bias = program->target->reloc_bias(insn, reloc->offset);
    struct referent to = program_referent(object, reloc, bias);
    if (to.local)
        return callee_at(
            program, program_code_of(program, program->code[code].object, to.section),
            to.offset, function);
    bool plain = to.addend == 0 && !name_is_private(object->symbols[to.symbol].name);
    return plain ? CALLEE_PUBLIC : CALLEE_PRIVATE;
}

uint32_t insn_destination(const struct program *program, uint32_t number)
{
    const struct insn *insn = &program->insns[number];
    uint32_t code = program->functions[insn->function].code, first;
    if (insn->flow != FLOW_JUMP && insn->flow != FLOW_CALL)
        return NO_INDEX;
    if (program_relocs(program, number, &first) == 0)
        return insn->target == NO_INDEX ? NO_INDEX
                                        : program_insn_at(program, code, insn->target);
    const struct object *object = program_object(program, code);
    const struct reloc *reloc = &program_section(program, code)->relocs[first];
    struct referent to = program_referent(
        object, reloc, program->target->reloc_bias(insn, reloc->offset));
    uint32_t there =
        to.local ? program_code_of(program, program->code[code].object, to.section)
                 : NO_INDEX;
    return there == NO_INDEX || to.offset < 0 || to.offset >= NO_INDEX
               ? NO_INDEX
               : program_insn_at(program, there, (uint32_t)to.offset);
}

uint32_t insn_callee(const struct program *program, uint32_t insn)
{
    uint32_t function;
    callee_of(program, insn, &function);
    return function;
}

/* What a run of instructions does to liveness: in = uses + (out - kills). */
struct summary {
    struct regset uses, kills;
};

/* Helpers whose middle is called from the middle of another one, as deep as this. */
enum { JOIN_LEVELS = 2 };

static void effects(const struct program *program, uint32_t number, int level,
                    struct regset *uses, struct regset *kills);

static struct summary summarise(const struct program *program, uint32_t first,
                                uint32_t count, int level)
{
    struct summary sum = {0};
    for (uint32_t i = count; i-- > 0;) {
        struct regset uses, kills;
        effects(program, first + i, level, &uses, &kills);
        sum.uses.regs = (sum.uses.regs & ~kills.regs) | uses.regs;
        sum.uses.flags = (uint8_t)((sum.uses.flags & ~kills.flags) | uses.flags);
        sum.kills = joined(sum.kills, kills);
    }
    return sum;
}

/* Instructions from `first` on to where the function is left in a straight line; 0 when
 * it is not. */
static uint32_t straight_line(const struct program *program, uint32_t first)
{
    const struct function *in =
        &program->functions[program_function_of_insn(program, first)];
    uint32_t end = in->first_insn + in->insn_count;
    for (uint32_t i = first; i < end; i++) {
        switch ((enum flow)program->insns[i].flow) {
        case FLOW_NEXT:
        case FLOW_CALL:
        case FLOW_CALL_INDIRECT: break;
        case FLOW_RETURN:
        case FLOW_JUMP:
        case FLOW_JUMP_INDIRECT: return i + 1 - first;
        default: return 0;
        }
    }
    return 0;
}

static uint64_t link_bit(const struct target *target)
{
    return target->link_register < 64 ? (uint64_t)1 << target->link_register : 0;
}

/* A call to a helper, from its entry or its middle on: the link register that it reads
 * is its own return address. */
static void apply_helper(const struct target *target, const struct summary *helper,
                         uint8_t last_flow, struct regset *uses, struct regset *kills)
{
    struct regset out = {0};
    if (last_flow != FLOW_RETURN) /* goes on to who knows what */
        out = (struct regset){UINT64_MAX & ~target->veneer_registers, UINT8_MAX};
    uses->regs = helper->uses.regs | (out.regs & ~helper->kills.regs);
    uses->regs = (uses->regs & ~link_bit(target)) | (uint64_t)1
                                                        << target->stack_register;
    uses->flags = (uint8_t)(helper->uses.flags | (out.flags & ~helper->kills.flags));
    *kills = joined(*kills, helper->kills);
}

static uint8_t last_flow(const struct program *program, uint32_t function)
{
    const struct function *of = &program->functions[function];
    return program->insns[of->first_insn + of->insn_count - 1].flow;
}

/* What is known of a helper that is called. */
static bool summary_of_call(const struct program *program, uint32_t number,
                            uint32_t function, int level, struct summary *out,
                            uint8_t *last)
{
    if (function != NO_INDEX && program->functions[function].is_summarised) {
        const struct function *of = &program->functions[function];
        *out = (struct summary){of->reads, of->overwrites};
        *last = last_flow(program, function);
        return true;
    }
    if (function != NO_INDEX || level >= JOIN_LEVELS)
        return false;
    uint32_t first;
    bool frame = insn_moves_frame(program, number, &first);
    first = frame ? first : insn_destination(program, number);
    if (first == NO_INDEX)
        return false;
    const struct function *in =
        &program->functions[program_function_of_insn(program, first)];
    uint32_t count = straight_line(program, first);
    if ((!frame && !program->code[in->code].helpers) || in->refusal != REFUSAL_NONE ||
        count == 0)
        return false;
    *out = summarise(program, first, count, level + 1);
    *last = program->insns[first + count - 1].flow;
    return true;
}

static void flow_effects(const struct program *program, uint32_t number, int level,
                         struct regset *uses, struct regset *kills)
{
    const struct target *target = program->target;
    const struct insn *insn = &program->insns[number];
    *uses = (struct regset){insn->uses, insn->flag_uses};
    *kills = (struct regset){insn->defs, insn->flag_defs};
    if (insn->flow != FLOW_CALL && insn->flow != FLOW_CALL_INDIRECT)
        return;
    *uses = joined(*uses, target->call_uses);
    if (insn->flow == FLOW_CALL_INDIRECT)
        return;
    uint32_t function;
    enum callee callee = callee_of(program, number, &function);
    /* What goes through a relocation may go through a veneer, so that nobody can be
     * waiting for the veneer's registers behind it. */
    bool relocated = insn->traits & INSN_RELOCATED;
    if (relocated)
        kills->regs |= target->veneer_registers;
    struct summary helper;
    uint8_t last;
    if (callee == CALLEE_PRIVATE &&
        summary_of_call(program, number, function, level, &helper, &last)) {
        apply_helper(target, &helper, last, uses, kills);
        return;
    }
    if (callee != CALLEE_PUBLIC)
        *uses = (struct regset){
            UINT64_MAX & ~link_bit(target) & ~target->veneer_registers, UINT8_MAX};
    if (callee == CALLEE_PRIVATE && !relocated)
        uses->regs |= target->veneer_registers;
}

static void effects(const struct program *program, uint32_t number, int level,
                    struct regset *uses, struct regset *kills)
{
    flow_effects(program, number, level, uses, kills);
    /* What a landing pad finds: see landings.c. */
    if (program->insns[number].traits & INSN_LANDS)
        *uses = joined(*uses, program->target->callee_saved);
}

void insn_effects(const struct program *program, uint32_t number, struct regset *uses,
                  struct regset *kills)
{
    effects(program, number, 0, uses, kills);
}

/* Registers that may have other values behind the callee of a call or jump: by the ABI,
 * or what is known of a helper. */
static uint64_t callee_may_write(const struct program *program, uint32_t number)
{
    const struct insn *insn = &program->insns[number];
    uint32_t function;
    if (insn->flow == FLOW_CALL_INDIRECT || insn->flow == FLOW_JUMP_INDIRECT ||
        callee_of(program, number, &function) != CALLEE_PRIVATE)
        return program->target->call_kills.regs;
    uint32_t there = insn_destination(program, number);
    if (there == NO_INDEX)
        return UINT64_MAX;
    const struct function *helper =
        &program->functions[program_function_of_insn(program, there)];
    return helper->is_summarised ? helper->clobbers : UINT64_MAX;
}

uint64_t insn_may_write(const struct program *program, uint32_t number)
{
    const struct insn *insn = &program->insns[number];
    if (insn->flow != FLOW_CALL && insn->flow != FLOW_CALL_INDIRECT)
        return insn->defs;
    return insn->defs | callee_may_write(program, number);
}

/* Of a helper without branches. */
static uint64_t helper_clobbers(const struct program *program,
                                const struct function *function)
{
    uint32_t last = function->first_insn + function->insn_count - 1;
    uint64_t clobbers = 0;
    for (uint32_t i = function->first_insn; i <= last; i++)
        clobbers |= insn_may_write(program, i);
    if (program->insns[last].flow != FLOW_RETURN)
        clobbers |= callee_may_write(program, last);
    return clobbers;
}

/* A jump out of the function is a tail call when it goes to a function's entry. What
 * the callee reads is not trusted beyond that: only the veneer's registers are free. */
bool insn_is_tail_call(const struct program *program, uint32_t number)
{
    const struct insn *insn = &program->insns[number];
    if (insn->flow == FLOW_JUMP_INDIRECT)
        return !table_of_insn(program, number); /* anything else sealed the function */
    uint32_t function;
    return insn->flow == FLOW_JUMP &&
           callee_of(program, number, &function) != CALLEE_PRIVATE;
}

/* What is live where `last` jumps to a helper that leaves the function in its place. */
static bool live_into_helper(const struct program *program, uint32_t last,
                             struct regset at_return, struct regset *live)
{
    uint32_t number;
    if (program->insns[last].flow != FLOW_JUMP)
        return false;
    callee_of(program, last, &number);
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
    uint32_t count = first == NO_INDEX ? 0 : straight_line(program, first);
    if (count == 0)
        return false;
    const struct insn *exit = &program->insns[first + count - 1];
    struct regset out = at_return;
    if (exit->flow == FLOW_JUMP && (exit->traits & INSN_RELOCATED))
        out =
            (struct regset){UINT64_MAX & ~program->target->veneer_registers, UINT8_MAX};
    else if (exit->flow != FLOW_RETURN)
        return false;
    struct summary sum = summarise(program, first, count, 0);
    live->regs = sum.uses.regs | (out.regs & ~sum.kills.regs);
    live->flags = (uint8_t)(sum.uses.flags | (out.flags & ~sum.kills.flags));
    return true;
}

/* What may be live behind a helper of ours, or one of LLVM's for frames. Whatever the code around its sites needs;
 * but on the way to a helper a veneer may clobber its registers, so that nobody waits
 * for what they held before, and behind it only for what the helper itself has put
 * there. (A jump from one helper to another is a site like any other: there they are
 * dead.) */
static struct regset live_behind_helper(const struct program *program, uint32_t number)
{
    const struct function *function = &program->functions[number];
    uint64_t written = 0;
    for (uint32_t i = 0; i < function->insn_count; i++) {
        uint32_t insn = function->first_insn + i, callee;
        uint8_t flow = program->insns[insn].flow;
        written |= program->insns[insn].defs;
        if (flow == FLOW_CALL && callee_of(program, insn, &callee) == CALLEE_PRIVATE)
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
        .sum = summarise(program, block->first_insn, block->insn_count, 0),
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

static void mark(const struct program *program, const struct block *block,
                 uint8_t *marks)
{
    const struct target *target = program->target;
    struct regset live = block->live_out;
    for (uint32_t i = block->first_insn + block->insn_count; i-- > block->first_insn;) {
        struct regset uses, kills;
        insn_effects(program, i, &uses, &kills);
        live.regs = (live.regs & ~kills.regs) | uses.regs;
        marks[i] = (uint8_t)((live.regs & link_bit(target) ? MARK_LINK : 0) |
                             (live.regs & target->veneer_registers ? MARK_VENEER : 0));
    }
}

/* Helpers call helpers of earlier rounds: as deep as this, the rest stays unknown. */
enum { HELPER_LEVELS = 4 };

static void summarise_helpers(struct program *program)
{
    for (int level = 0; level < HELPER_LEVELS; level++) {
        for (uint32_t f = 0; f < program->function_count; f++) {
            struct function *function = &program->functions[f];
            if (!program->code[function->code].helpers ||
                function->refusal != REFUSAL_NONE || function->insn_count == 0 ||
                straight_line(program, function->first_insn) != function->insn_count)
                continue;
            struct summary sum =
                summarise(program, function->first_insn, function->insn_count, 0);
            function->clobbers = helper_clobbers(program, function);
            function->is_summarised = true;
            function->reads = sum.uses;
            function->overwrites = sum.kills;
        }
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
};

static void solve_part(void *context, uint32_t part, uint32_t worker)
{
    const struct parts *parts = context;
    struct stretch stretch = parts->stretches.items[part];
    struct program *program = parts->program;
    struct arena *stage = arena_new();
    uint32_t most = lift_most_blocks(program, stretch);
    struct regset *ins = arena_new_array(stage, struct regset, most);
    struct shape *shapes = arena_new_array(stage, struct shape, most);
    (void)worker;
    for (uint32_t f = stretch.first; f < stretch.first + stretch.count; f++) {
        struct function *function = &program->functions[f];
        if (function->refusal != REFUSAL_NONE)
            continue;
        solve(program, function, ins, shapes);
        if (function->block_count)
            function->keeps = ins[0].regs & ~program->target->call_uses.regs;
        for (uint32_t b = 0; parts->marks && b < function->block_count; b++)
            mark(program, &program->blocks[function->first_block + b], parts->marks);
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
    summarise_helpers(program);
    program->no_liveness = !lift->options->all_liveness && !is_asked(program->target);
    if (program->no_liveness)
        return;
    /* From here on nobody looks at another function but for its summary. */
    struct arena *stage = arena_new();
    struct parts parts = {.program = program,
                          .stretches = program_stretches(stage, program, PART_INSNS)};
    if (marked_registers(program->target))
        parts.marks = arena_new_array(stage, uint8_t, program->insn_count);
    parallel_do(program->workers, parts.stretches.count, solve_part, &parts);
    if (parts.marks)
        parallel_do(program->workers, parts.stretches.count, keep_marks, &parts);
    arena_free(stage);
}
