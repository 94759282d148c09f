/* SPDX-License-Identifier: MIT
 *
 * What a function does with the places of its frame in which it could pass arguments,
 * and the calls for which that matters. Where SP is the unwind rows say; what cannot be
 * told counts as all of the places.
 */
#include "outliner/lift/inner_calls.h"

#include <string.h>

/* Those around an address. */
static words words_at(const struct caller *caller, int64_t address)
{
    int64_t at = address - caller->lowest;
    if (at <= -WORD || at >= WORD * WORDS)
        return UNTOUCHED;
    words first = at < 0 ? 0 : UINT64_C(1) << (at / WORD);
    bool across = at % WORD != 0 && at / WORD + 1 < WORDS;
    return first | (across ? UINT64_C(1) << (at < 0 ? 0 : at / WORD + 1) : 0);
}

/* What the instruction may write, or makes a pointer to. */
static words touched_by(const struct caller *caller, const struct insn *insn,
                        const struct row *row)
{
    const struct target *target = caller->program->target;
    enum base base = row_base(target, row);
    bool pushes = (insn->traits & INSN_SP_ADJUST) && insn->sp_value < 0;
    bool framed = base == BASE_FRAME || caller->sets_frame;
    if ((insn->traits & INSN_SP_OPAQUE) || (framed && insn_copies_frame(target, insn)))
        return UNKNOWN;
    if ((insn->traits & INSN_READS_ONLY) && !(insn->traits & INSN_SP_COPY))
        return UNTOUCHED;
    if (insn->traits & (INSN_SP_MEMORY | INSN_SP_COPY))
        return base == BASE_STACK ? words_at(caller, insn->sp_value - row->cfa_offset)
                                  : UNKNOWN;
    if (insn->traits & INSN_FRAME_MEMORY) {
        bool elsewhere = base == BASE_STACK && !caller->sets_frame;
        return elsewhere            ? UNTOUCHED
               : base == BASE_FRAME ? words_at(caller, insn->sp_value - row->cfa_offset)
                                    : UNKNOWN;
    }
    /* Arithmetic on SP writes flags, and nothing else. */
    if (pushes && insn->flag_defs == 0)
        return base == BASE_STACK ? words_at(caller, insn->sp_value - row->cfa_offset)
                                  : UNKNOWN;
    return UNTOUCHED;
}

/* The same for a call to a helper: all that this one addresses may be its caller's, and
 * what it makes may be a pointer to an argument. */
static words touched_by_helper(struct caller *caller, uint32_t number)
{
    const struct program *program = caller->program;
    const uint32_t pointers = INSN_SP_COPY | INSN_SP_OPAQUE;
    const uint32_t frame = pointers | INSN_SP_MEMORY | INSN_FRAME_MEMORY |
                           INSN_SP_ADJUST | INSN_SP_FROM_FRAME;
    const struct function *helper =
        number == NO_INDEX ? NULL : &program->functions[number];
    bool known = helper && helper->insn_count > 0 && helper->refusal == REFUSAL_NONE;
    uint32_t traits = 0;
    for (uint32_t k = 0; known && k < helper->insn_count; k++) {
        uint32_t i = helper->first_insn + k;
        uint8_t flow = program->insns[i].flow;
        traits |= program->insns[i].traits;
        known = (flow != FLOW_CALL && flow != FLOW_JUMP) ||
                !destination_of(program, caller->definitions, i).is_private;
    }
    /* What the frame register points to there, nobody has looked at. */
    known = known && !caller->sets_frame;
    if (!known || (traits & pointers))
        caller->copied = UNKNOWN;
    return known && !(traits & frame) ? UNTOUCHED : UNKNOWN;
}

/* Compilers make these while they put a large argument on the stack, others are there
 * already. */
static bool copies_arguments(const struct program *program, uint32_t number)
{
    static const char *const names[] = {"memcpy", "memmove", "memset"};
    const struct insn *insn = &program->insns[number];
    uint32_t code = program->functions[insn->function].code;
    if (!(insn->traits & INSN_RELOCATED))
        return false;
    const struct reloc *reloc = &program_section(program, code)->relocs[insn->reloc];
    const char *name = program_object(program, code)->symbols[reloc->symbol].name;
    for (size_t i = 0; name[0] == 'm' && i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

/* The row finds a register exactly where arguments would begin. */
static bool lies_on_save(const struct target *target, const struct row *row)
{
    for (uint32_t r = 0; r < row->rule_count; r++) {
        const struct rule *rule = &row->rules[r];
        if (rule->kind == RULE_OFFSET && rule->value == -row->cfa_offset &&
            rule->column != target->dwarf_return_column)
            return true;
    }
    return false;
}

/* --- one pass over a function --- */

/* Notes the call if its callee lets it be an inner one. Where a register lies, it is.
 */
static void note_call(struct caller *caller, const struct call *call,
                      const struct row *row, uint32_t callee)
{
    struct program *program = caller->program;
    struct insn *insn = &program->insns[call->insn];
    const uint32_t never = INSN_SP_MEMORY | INSN_SP_COPY | INSN_SP_OPAQUE;
    if ((insn->traits & never) || callee == NO_INDEX ||
        !program->functions[callee].blind ||
        row_base(program->target, row) != BASE_STACK)
        return;
    if (lies_on_save(program->target, row)) {
        insn->traits |= INSN_INNER;
        return;
    }
    int64_t at = -row->cfa_offset - caller->lowest;
    if (at < 0 || at >= WORD * WORDS || at % WORD != 0)
        return;
    struct call noted = *call;
    noted.arguments = UINT64_C(1) << (at / WORD);
    array_push(caller->stage, &caller->calls, noted);
}

static void note_insn(struct caller *caller, const struct insn *insn,
                      const struct row *row, words touched)
{
    const struct target *target = caller->program->target;
    enum base base = row_base(target, row);
    bool copies = (insn->traits & (INSN_SP_COPY | INSN_SP_OPAQUE)) &&
                  !(insn->traits & INSN_FRAME_SET);
    bool own = (base == BASE_STACK && (insn->traits & INSN_SP_MEMORY)) ||
               (base == BASE_FRAME && (insn->traits & INSN_FRAME_MEMORY));
    int64_t at = insn->sp_value - row->cfa_offset - caller->lowest;
    if (copies || insn_copies_frame(target, insn))
        caller->copied |= touched;
    if (own && (insn->traits & INSN_READS_ONLY) && at >= 0 && at < WORD * WORDS)
        caller->read |= UINT64_C(1) << (at / WORD);
}

static struct way run_block(struct caller *caller, uint32_t number,
                            struct row_walk *walk)
{
    const struct program *program = caller->program;
    const struct block *block = &program->blocks[number];
    struct way way = {0};
    for (uint32_t i = block->first_insn; i < block->first_insn + block->insn_count;
         i++) {
        const struct insn *insn = &program->insns[i];
        if (insn_is_off_stack(program->target, insn))
            continue;
        const struct row *row = row_walk_to(program, walk, insn->offset);
        if (insn->flow != FLOW_CALL && insn->flow != FLOW_CALL_INDIRECT) {
            words touched = touched_by(caller, insn, row);
            note_insn(caller, insn, row, touched);
            way.touched |= touched;
            continue;
        }
        if (insn->flow == FLOW_CALL) {
            struct destination to = destination_of(program, caller->definitions, i);
            if (to.is_private) {
                way.touched |= touched_by_helper(caller, to.function);
                continue;
            }
            struct call call = {.insn = i,
                                .block = number - caller->function->first_block,
                                .touched = way.touched,
                                .first = !way.calls};
            note_call(caller, &call, row, to.function);
            if (copies_arguments(program, i))
                continue;
        }
        way.touched = UNTOUCHED;
        way.calls = true;
    }
    return way;
}

/* Where SP is at its lowest, as far as rows say. */
static int64_t lowest_stack(const struct caller *caller, const struct row_walk *walk)
{
    const struct program *program = caller->program;
    const struct fde *fde = walk->fde;
    int64_t lowest = 0;
    for (uint32_t c = walk->change;
         c < fde->change_count && fde->changes[c].offset < caller->function->end; c++) {
        const struct row *row = row_get(program->rows, fde->changes[c].row);
        if (row_base(program->target, row) == BASE_STACK && -row->cfa_offset < lowest)
            lowest = -row->cfa_offset;
    }
    return lowest;
}

void caller_find_calls(struct caller *caller, struct row_walk *walk)
{
    const struct function *function = caller->function;
    caller->lowest = lowest_stack(caller, walk);
    caller->copied = caller->read = UNTOUCHED;
    caller->calls.count = 0;
    for (uint32_t b = 0; b < function->block_count; b++)
        caller->ways[b] = run_block(caller, function->first_block + b, walk);
}

/* --- its parts --- */

/* Compilers name a part that they have cut off after the function: foo.cold. */
static bool is_part_of(const struct program *program, uint32_t part, uint32_t whole)
{
    const char *name = program_function_name(program, whole);
    const char *longer = program_function_name(program, part);
    size_t length = strlen(name);
    return length > 0 && strncmp(longer, name, length) == 0 && longer[length] == '.';
}

static void add_part(struct caller *caller, uint32_t next)
{
    for (uint32_t p = 0; p < caller->part_count; p++) {
        if (caller->parts[p] == next)
            return;
    }
    if (caller->part_count == CALLER_PARTS)
        caller->is_torn = true;
    else
        caller->parts[caller->part_count++] = next;
}

/* Where a jump leads out of one part: to a part that has been cut off, or back. (A tail
 * that has stayed in another function, or lies in a helper, does not come back.) */
static void follow_jump(struct caller *caller, uint32_t from, uint32_t number)
{
    const struct program *program = caller->program;
    const bool *is_private = caller->definitions->is_private;
    uint32_t next = destination_of(program, caller->definitions, number).function;
    if (next == NO_INDEX || program->code[program->functions[next].code].helpers)
        return;
    uint32_t part = is_private[next] ? next : from;
    uint32_t whole = is_private[next] ? from : next;
    if (is_private[part] && !is_private[whole] && is_part_of(program, part, whole))
        add_part(caller, next);
    else
        caller->is_torn |= is_private[next];
}

void caller_find_parts(struct caller *caller, uint32_t number)
{
    const struct program *program = caller->program;
    uint32_t traits = 0;
    bool is_whole = false;
    caller->part_count = 0;
    caller->is_torn = false;
    add_part(caller, number);
    for (uint32_t p = 0; p < caller->part_count; p++) {
        const struct function *part = &program->functions[caller->parts[p]];
        uint32_t end = part->first_insn + part->insn_count;
        is_whole |= !caller->definitions->is_private[caller->parts[p]];
        for (uint32_t i = part->first_insn; i < end; i++) {
            traits |= program->insns[i].traits;
            if (insn_leaves(part, &program->insns[i]))
                follow_jump(caller, caller->parts[p], i);
        }
    }
    caller->is_torn |= !is_whole;
    caller->sets_frame = caller->is_torn || (traits & INSN_FRAME_SET);
}

/* What a part writes anywhere, or makes a pointer to; and it is noted what it reads. */
static words touched_by_part(struct caller *caller, uint32_t number)
{
    const struct program *program = caller->program;
    const struct function *part = &program->functions[number];
    words touched = UNTOUCHED;
    struct row_walk walk;
    if (part->refusal != REFUSAL_NONE || !row_walk_start(program, number, &walk))
        return UNKNOWN;
    for (uint32_t i = part->first_insn; i < part->first_insn + part->insn_count; i++) {
        const struct insn *insn = &program->insns[i];
        const struct row *row = row_walk_to(program, &walk, insn->offset);
        words by_this = touched_by(caller, insn, row);
        note_insn(caller, insn, row, by_this);
        touched |= by_this;
        if (insn->flow != FLOW_CALL)
            continue;
        struct destination to = destination_of(program, caller->definitions, i);
        if (to.is_private)
            touched |= touched_by_helper(caller, to.function);
    }
    return touched;
}

words caller_touches(struct caller *caller)
{
    words touched = UNTOUCHED;
    for (uint32_t p = 0; p < caller->part_count; p++)
        touched |= touched_by_part(caller, caller->parts[p]);
    return caller->is_torn ? UNKNOWN : touched;
}
