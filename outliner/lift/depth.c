/* SPDX-License-Identifier: MIT
 *
 * Stack depth, by a forward pass over the blocks of each function: how far SP lies
 * below its value on entry, and the frame register too where it is one. Three uses:
 *
 * - the two witnesses: at calls, the depth that the code has must be the one that the
 *   unwind rows state (only at calls, since AArch64 compilers state no epilogues);
 * - an indirect jump that is no table is a tail call only with the stack as on entry;
 * - the red zone: memory below SP that a call would overwrite, addressed through SP, or
 *   through a frame register in a function that never moved SP (x86-64 psABI 3.2.2);
 *   red_zone.c adds what instructions alone do not show.
 *
 * The depth is known or it is not; unknown never proves anything.
 */
#include "outliner/lift/effects.h"

struct state {
    bool reached, depth_known, frame_known;
    bool frame_foreign; /* the frame register holds something that was not made of SP */
    int64_t depth; /* entry SP - SP, bytes */
    int64_t frame; /* entry SP - frame register, bytes */
};

struct walker {
    struct lift *lift;
    struct arena *stage;
    uint32_t function;    /* index */
    struct state *states; /* on entry to each block of the function */
    array_of(uint32_t) work;
    bool sets_frame; /* the frame register is a copy of SP somewhere in it */
};

static bool join(struct state *into, const struct state *from)
{
    if (!into->reached) {
        *into = *from;
        into->reached = true;
        return true;
    }
    bool changed = false;
    if (into->depth_known && (!from->depth_known || from->depth != into->depth)) {
        into->depth_known = false;
        changed = true;
    }
    if (into->frame_foreign && !from->frame_foreign) {
        into->frame_foreign = false;
        changed = true;
    }
    if (into->frame_known && (!from->frame_known || from->frame != into->frame)) {
        into->frame_known = false;
        changed = true;
    }
    return changed;
}

static void step(const struct target *target, const struct insn *insn,
                 struct state *state)
{
    uint64_t stack = (uint64_t)1 << target->stack_register;
    uint64_t frame = (uint64_t)1 << target->frame_register;
    struct state before = *state;
    bool call = insn->flow == FLOW_CALL || insn->flow == FLOW_CALL_INDIRECT ||
                insn->flow == FLOW_RETURN;
    if (insn->traits & INSN_SP_ADJUST) {
        state->depth -= insn->sp_value;
    } else if (insn->traits & INSN_SP_FROM_FRAME) {
        state->depth_known = before.frame_known;
        state->depth = before.frame - insn->sp_value;
    } else if ((insn->defs & stack) && !call) {
        state->depth_known = false;
    }
    if (insn->traits & INSN_FRAME_SET) {
        state->frame_known = before.depth_known;
        state->frame = before.depth - insn->sp_value;
        state->frame_foreign = false;
    } else if (insn->defs & frame) {
        state->frame_known = false;
        state->frame_foreign = true;
    }
}

/* Helpers that end in a jump to others, as deep as this. */
enum { CALLEE_LEVELS = 8 };

/* Where the body of a helper of ours begins, or of LLVM's for frames; NO_INDEX: it is
 * none, or nobody knows. */
static uint32_t body_of(const struct program *program, uint32_t number, bool *moves)
{
    uint32_t there;
    if (insn_moves_frame(program, number, &there)) {
        *moves = true;
        return there;
    }
    there = insn_destination(program, number);
    bool ours = there != NO_INDEX &&
                program->code[program->functions[program->insns[there].function].code]
                    .helpers;
    return ours ? there : NO_INDEX;
}

/* Whether it enters code that may move the frame: if so, what becomes of that. Helpers of
 * ours come into it when they end in a jump to one of LLVM's. */
static bool step_callee(const struct program *program, uint32_t number,
                        struct state *state)
{
    struct state after = *state;
    bool moves = false;
    for (int level = 0; level < CALLEE_LEVELS; level++) {
        uint32_t at = body_of(program, number, &moves);
        if (at == NO_INDEX)
            break;
        const struct function *function =
            &program->functions[program->insns[at].function];
        uint32_t end = function->first_insn + function->insn_count;
        while (at < end && program->insns[at].flow == FLOW_NEXT)
            step(program->target, &program->insns[at++], &after);
        uint8_t flow = at < end ? program->insns[at].flow : (uint8_t)FLOW_NEXT;
        if (flow == FLOW_RETURN && moves) {
            *state = after;
            return true;
        }
        if (flow != FLOW_JUMP)
            break;
        number = at;
    }
    if (moves)
        state->depth_known = state->frame_known = false;
    return moves;
}

/* The row's CFA, as a distance from the entry SP, when it is SP- or frame-based. */
static bool rows_agree(const struct program *program, const struct state *state,
                       uint32_t insn)
{
    uint32_t number = program_row(program, insn);
    if (number == ROW_NONE)
        return true;
    const struct target *target = program->target;
    const struct row *row = row_get(program->rows, number);
    if (row->cfa_is_expression)
        return true;
    int64_t base = row->cfa_offset - target->call_pushes;
    if (row->cfa_register == target->dwarf_stack_column)
        return !state->depth_known || base == state->depth;
    if (row->cfa_register == target->dwarf_of_register(target->frame_register))
        return !state->frame_known || base == state->frame;
    return true;
}

/* Compilers move what needs the frame register alone in front of the `sub` that makes
 * room. How far SP will be lowered in the entry block before anything can be done with a
 * pointer, bytes. By 128, the size of the red zone, inline assembly steps over it. */
static int64_t room_to_come(const struct walker *walker, uint32_t number)
{
    enum { RED_ZONE = 128 };
    const struct program *program = walker->lift->program;
    const struct function *function = &program->functions[walker->function];
    const struct block *entry = &program->blocks[function->first_block];
    int64_t room = 0;
    for (uint32_t i = number + 1; i < entry->first_insn + entry->insn_count; i++) {
        const struct insn *insn = &program->insns[i];
        if ((insn->traits & (INSN_FAULTS | INSN_SP_OPAQUE)) || insn->flow != FLOW_NEXT ||
            insn->sp_value == -RED_ZONE)
            break;
        if (insn->traits & INSN_SP_ADJUST)
            room -= insn->sp_value;
    }
    return room;
}

/* Memory through the frame register, or a pointer made of it, that lies, or may lie,
 * below SP. */
static bool below_stack(const struct walker *walker, uint32_t number,
                        const struct state *state)
{
    const struct insn *insn = &walker->lift->program->insns[number];
    if (!(insn->traits & (INSN_FRAME_MEMORY | INSN_FRAME_COPY)) ||
        !walker->sets_frame || insn->sp_value >= 0)
        return false;
    if (!state->frame_known || !state->depth_known)
        return (insn->traits & INSN_FRAME_MEMORY) != 0; /* a pointer: looks_somewhere() */
    int64_t below = state->frame - state->depth - insn->sp_value;
    return below > 0 &&
           ((insn->traits & INSN_FRAME_MEMORY) || below > room_to_come(walker, number));
}

/* A call that compilers made, for which they state rows. One to a helper may stand in the
 * middle of a prologue whose rows come at its end. */
static bool is_witness(const struct program *program, uint32_t number)
{
    uint8_t flow = program->insns[number].flow;
    if (flow != FLOW_CALL)
        return flow == FLOW_CALL_INDIRECT;
    uint32_t callee = insn_callee(program, number);
    uint32_t body;
    if (insn_moves_frame(program, number, &body))
        return false;
    return callee == NO_INDEX || !program->code[program->functions[callee].code].helpers;
}

/* It adds an index to SP or the frame register, or makes a pointer of a frame register of
 * which nobody knows where it is: nothing says where that goes. (A pointer to something
 * above SP is not counted: it would have to be led down to where an array begins that is
 * never addressed from there. One to something below is counted elsewhere.) */
static bool looks_somewhere(const struct walker *walker, const struct insn *insn,
                            const struct state *state)
{
    const uint32_t frame = INSN_FRAME_MEMORY | INSN_FRAME_COPY;
    if (insn->traits & INSN_FRAME_SET)
        return false;
    if (insn->traits & INSN_SP_OPAQUE)
        return true;
    if ((insn->traits & frame) && (!walker->sets_frame || state->frame_foreign))
        return false;
    if (insn->traits & INSN_INDEXED)
        return true;
    return (insn->traits & INSN_FRAME_COPY) &&
           (!state->frame_known || !state->depth_known);
}

/* Wherever the ABI is followed, SP is a multiple of 16 at a call (x86-64 psABI 3.2.2). The
 * entry hook of a profiler is called as one comes in, and inline assembly that wants to
 * call something first steps over what may lie below SP. A call to a helper: whoever put
 * it there has asked. */
static void note_call(struct walker *walker, uint32_t number, const struct state *state)
{
    enum { CALL_ALIGN = 16 };
    const struct program *program = walker->lift->program;
    struct function *function = &walker->lift->program->functions[walker->function];
    uint32_t callee;
    bool helper = program->insns[number].flow == FLOW_CALL &&
                  lift_callee_of(program, number, &callee) == CALLEE_PRIVATE;
    int64_t pushed = program->target->call_pushes;
    if (helper || !state->depth_known)
        function->call_depth = INT32_MIN;
    else if ((state->depth + pushed) % CALL_ALIGN == 0 &&
             state->depth < function->call_depth)
        function->call_depth = (int32_t)state->depth;
}

static void note_look(struct walker *walker, const struct state *state)
{
    struct function *function = &walker->lift->program->functions[walker->function];
    /* Unknown: deeper than any call. */
    int64_t depth = state->depth_known ? state->depth : INT32_MAX - 1;
    if (depth < function->look_depth)
        function->look_depth = (int32_t)(depth < INT32_MIN ? INT32_MIN : depth);
}

static void check(struct walker *walker, uint32_t number, const struct state *state)
{
    struct program *program = walker->lift->program;
    struct function *function = &program->functions[walker->function];
    const struct insn *insn = &program->insns[number];
    bool call = is_witness(program, number);
    if (call && !program->code[function->code].helpers &&
        !rows_agree(program, state, number))
        lift_seal(walker->lift, walker->function, REFUSAL_DEPTH_MISMATCH, insn->offset);
    bool home = state->depth_known && state->depth == 0;
    if (insn->flow == FLOW_RETURN && state->depth_known && state->depth != 0 &&
        !program->code[function->code].helpers &&
        !name_moves_frame(program_function_name(program, walker->function)))
        lift_seal(walker->lift, walker->function, REFUSAL_DEPTH_MISMATCH, insn->offset);
    const struct jump_table *table =
        insn->flow == FLOW_JUMP_INDIRECT ? table_of_insn(program, number) : NULL;
    if (insn->flow == FLOW_JUMP_INDIRECT && !table && !home &&
        !program->code[function->code].helpers)
        lift_seal(walker->lift, walker->function, REFUSAL_INDIRECT_JUMP, insn->offset);
    if (table && table->doubtful && home) /* so the labels are for something else */
        lift_seal(walker->lift, walker->function, REFUSAL_LABEL_TAKEN, insn->offset);
    if ((insn->traits & INSN_BELOW_SP) || below_stack(walker, number, state))
        function->red_zone = true;
    if (program->target->call_pushes == 0)
        return;
    if (insn->flow == FLOW_CALL || insn->flow == FLOW_CALL_INDIRECT)
        note_call(walker, number, state);
    else if (looks_somewhere(walker, insn, state))
        note_look(walker, state);
}

static void flow_to(struct walker *walker, uint32_t block, const struct state *state)
{
    if (block == NO_INDEX)
        return;
    const struct function *function =
        &walker->lift->program->functions[walker->function];
    if (join(&walker->states[block - function->first_block], state))
        array_push(walker->stage, &walker->work, block);
}

/* An exception lands with SP as it is at the call, less the arguments on the stack that
 * the row tells of. */
static void flow_to_pad(struct walker *walker, uint32_t number,
                        const struct state *state)
{
    const struct program *program = walker->lift->program;
    const struct function *function = &program->functions[walker->function];
    const struct call_site *site = insn_call_site(function, &program->insns[number]);
    if (site->pad == NO_INDEX)
        return;
    struct state landing = *state;
    uint32_t row = program_row(program, number);
    if (row != ROW_NONE)
        landing.depth -= (int64_t)row_get(program->rows, row)->args_size;
    uint32_t pad = program_insn_at(program, function->code, site->pad);
    flow_to(walker, program_block_of_insn(program, pad), &landing);
}

/* Runs through a block; the checks are made in a second pass, when states are final. */
static struct state run_block(struct walker *walker, uint32_t number, bool checking)
{
    const struct program *program = walker->lift->program;
    const struct block *block = &program->blocks[number];
    const struct function *function = &program->functions[walker->function];
    struct state state = walker->states[number - function->first_block];
    for (uint32_t i = 0; i < block->insn_count; i++) {
        uint32_t insn = block->first_insn + i;
        if (checking)
            check(walker, insn, &state);
        else if (program->insns[insn].traits & INSN_LANDS)
            flow_to_pad(walker, insn, &state);
        if (program->insns[insn].flow != FLOW_CALL || program->target->call_pushes ||
            !step_callee(program, insn, &state))
            step(program->target, &program->insns[insn], &state);
    }
    return state;
}

static void flow_on(struct walker *walker, uint32_t number, const struct state *state)
{
    const struct program *program = walker->lift->program;
    struct successors to = block_successors(program, number);
    flow_to(walker, to.direct[0], state);
    flow_to(walker, to.direct[1], state);
    for (uint32_t i = 0; to.table && i < to.table->count; i++) {
        uint32_t insn = table_insn(program, to.table, i);
        if (insn != NO_INDEX)
            flow_to(walker, program_block_of_insn(program, insn), state);
    }
}

/* The state at a function's entry. A cold part is entered with the frame of the
 * function that it continues: the row at its start says how deep. */
static struct state entry_state(const struct program *program,
                                const struct function *function)
{
    struct state entry = {true, true, false, true, 0, 0};
    uint32_t number =
        function->insn_count ? program_row(program, function->first_insn) : ROW_NONE;
    if (number == ROW_NONE || program->code[function->code].helpers)
        return entry;
    const struct target *target = program->target;
    const struct row *row = row_get(program->rows, number);
    int64_t base = row->cfa_offset - target->call_pushes;
    if (!row->cfa_is_expression && row->cfa_register == target->dwarf_stack_column) {
        entry.depth = base;
        return entry;
    }
    entry.depth_known = false;
    entry.frame_known =
        !row->cfa_is_expression &&
        row->cfa_register == target->dwarf_of_register(target->frame_register);
    entry.frame_foreign = false;
    entry.frame = base;
    return entry;
}

static void walk(struct walker *walker)
{
    const struct program *program = walker->lift->program;
    const struct function *function = &program->functions[walker->function];
    struct state entry = entry_state(program, function);
    flow_to(walker, function->first_block, &entry);
    while (walker->work.count) {
        uint32_t block = walker->work.items[--walker->work.count];
        struct state out = run_block(walker, block, false);
        flow_on(walker, block, &out);
    }
    /* Blocks that nothing inside reaches (entered from another section): unknown. */
    for (uint32_t b = 0; b < function->block_count; b++)
        run_block(walker, function->first_block + b, true);
}

struct parts {
    struct lift *lift;
    struct stretches stretches;
};

/* Looks at other functions, but changes and refuses only its own. */
static void walk_part(void *context, uint32_t part, uint32_t worker)
{
    const struct parts *parts = context;
    struct stretch stretch = parts->stretches.items[part];
    struct program *program = parts->lift->program;
    struct walker walker = {.lift = parts->lift, .stage = arena_new()};
    walker.states = arena_new_array(walker.stage, struct state,
                                    lift_most_blocks(program, stretch));
    (void)worker;
    for (uint32_t f = stretch.first; f < stretch.first + stretch.count; f++) {
        struct function *function = &program->functions[f];
        function->call_depth = INT32_MIN;
        function->look_depth = INT32_MAX;
        if (function->refusal != REFUSAL_NONE || function->block_count == 0)
            continue;
        function->call_depth = INT32_MAX;
        for (uint32_t b = 0; b < function->block_count; b++)
            walker.states[b] = (struct state){0};
        walker.function = f;
        walker.sets_frame = function_has_traits(program, f, INSN_FRAME_SET);
        walk(&walker);
    }
    arena_free(walker.stage);
}

void lift_depth(struct lift *lift)
{
    struct arena *stage = arena_new();
    struct parts parts = {lift, program_stretches(stage, lift->program, PART_INSNS)};
    parallel_do(lift->program->workers, parts.stretches.count, walk_part, &parts);
    arena_free(stage);
}
