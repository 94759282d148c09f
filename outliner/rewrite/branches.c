/* SPDX-License-Identifier: MIT
 *
 * Branches of an edited section that the assembler has resolved: those that no longer
 * reach are widened, those that have become needlessly long narrowed. All that look at
 * them go through one list, made once, instead of through the code.
 */
#include "outliner/rewrite/rewrite.h"

bool insn_is_resolved(const struct program *program, uint32_t insn)
{
    const struct insn *of = &program->insns[insn];
    if (!(of->traits & INSN_PC_RELATIVE) || of->target == NO_INDEX)
        return false;
    if (!(of->traits & INSN_RELOCATED))
        return true;
    /* `mov $symbol, local(%rip)` has both: a relocated immediate beside a resolved
     * field. */
    uint32_t first = 0, count = program_relocs(program, insn, &first);
    const struct section *section = program_section(
        program, program->functions[program_function_of_insn(program, insn)].code);
    for (uint32_t i = 0; i < count; i++) {
        const struct reloc_kind *kind =
            program->target->reloc_kind(section->relocs[first + i].type);
        if (!kind || (kind->kind != RELOC_ABSOLUTE && kind->kind != RELOC_NONE &&
                      kind->kind != RELOC_SIZE))
            return false;
    }
    return true;
}

void branches_find(struct arena *arena, const struct program *program, uint32_t code,
                   struct layout *layout)
{
    const struct code *of = &program->code[code];
    array_of(uint32_t) found = {0};
    for (uint32_t f = 0; f < of->function_count; f++) {
        const struct function *function = &program->functions[of->first_function + f];
        for (uint32_t i = 0; i < function->insn_count; i++) {
            uint32_t number = function->first_insn + i;
            if ((program->insns[number].traits & INSN_PC_RELATIVE) &&
                insn_is_resolved(program, number))
                array_push(arena, &found, number);
        }
    }
    layout->branches = found.items;
    layout->branch_count = found.count;
}

/* --- too short --- */

/* A branch that has not become longer reaches. */
static bool is_no_farther(int64_t old, int64_t new)
{
    return old < 0 ? new >= old &&new <= 0 : new >= 0 && new <= old;
}

static bool reaches(const struct program *program, const struct layout *layout,
                    const struct insn *insn, const uint8_t *bytes)
{
    uint8_t out[CODE_BYTES];
    int64_t from = offsets_start(&layout->offsets, insn->offset);
    int64_t to = offsets_start(&layout->offsets, insn->target);
    int64_t distance = (int64_t)insn->target - (int64_t)insn->offset;
    if (insn->flow != FLOW_NEXT && is_no_farther(distance, to - from))
        return true;
    return program->target->retarget(bytes, insn->length, to - from, out);
}

static bool fail_reach(const struct program *program, uint32_t code,
                       const struct insn *insn, struct error *err)
{
    struct place place = object_place(program_object(program, code),
                                      program->code[code].section, insn->offset);
    return fail(err, &place,
                "a branch cannot reach its target after outlining (a bug of mo-link); "
                "--keep this function");
}

/* Of one instruction; its code is still to be written. */
static struct edit edit_of(const struct insn *insn, uint32_t number)
{
    return (struct edit){.insn = number,
                         .insn_count = 1,
                         .start = insn->offset,
                         .end = insn->offset + insn->length,
                         .site = NO_INDEX,
                         .helper = NO_INDEX};
}

/* Adds an edit for each branch of the section that cannot reach any more. */
bool branches_widen(struct arena *arena, const struct program *program, uint32_t code,
                    const struct layout *layout, struct new_edits *added,
                    struct error *err)
{
    const uint8_t *bytes = program_section(program, code)->data.at;
    for (uint32_t i = 0; i < layout->branch_count; i++) {
        uint32_t number = layout->branches[i];
        const struct insn *insn = &program->insns[number];
        const struct piece *piece = offsets_piece(&layout->offsets, insn->offset);
        if (piece->kind == PIECE_REPLACED || piece_keeps_branch(piece, insn) ||
            reaches(program, layout, insn, bytes + insn->offset))
            continue;
        struct edit edit = edit_of(insn, number);
        uint32_t function = program_function_of_insn(program, number);
        if (program->functions[function].refusal != REFUSAL_NONE ||
            !program->target->widen(bytes + insn->offset, insn->length, &edit.code))
            return fail_reach(program, code, insn, err);
        array_push(arena, added, edit);
    }
    return true;
}

/* --- too long --- */

/* The branch stays in its function. */
static bool is_inside(const struct function *function, const struct insn *insn)
{
    return (insn->flow == FLOW_JUMP || insn->flow == FLOW_BRANCH) &&
           (insn->traits & INSN_PC_RELATIVE) && insn->target != NO_INDEX &&
           insn->target >= function->start && insn->target < function->end;
}

struct narrower {
    struct arena *arena;
    const struct program *program;
    const struct layout *layout;
    struct new_edits *added;
};

/* Adds an edit for the branch if it is long and a short one can do. */
static void narrow_branch(const struct narrower *narrower, uint32_t number)
{
    const struct program *program = narrower->program;
    const struct layout *layout = narrower->layout;
    const uint8_t *bytes = program_bytes(program, number);
    const struct insn *insn = &program->insns[number];
    struct edit edit = edit_of(insn, number);
    if (offsets_piece(&layout->offsets, insn->offset)->kind == PIECE_REPLACED ||
        !program->target->narrow(bytes, insn->length, &edit.code))
        return;
    int64_t from = offsets_start(&layout->offsets, insn->offset);
    int64_t distance = offsets_start(&layout->offsets, insn->target) - from;
    uint8_t out[CODE_BYTES];
    if (distance > 0) /* what is behind it comes nearer */
        distance -= insn->length - edit.code.length;
    if (program->target->retarget(edit.code.bytes, edit.code.length, distance, out))
        array_push(narrower->arena, narrower->added, edit);
}

/* The layout's branches of one function. */
struct branches {
    const uint32_t *items;
    uint32_t count;
};

/* No branch in it may have to be widened later: then nothing in it ever moves apart,
 * and what is near stays near. Only short branches to other functions may have to be.
 */
static bool only_shrinks(const struct program *program, const struct function *function,
                         struct branches branches)
{
    for (uint32_t i = 0; i < branches.count; i++) {
        uint32_t number = branches.items[i];
        const struct insn *insn = &program->insns[number];
        struct code_bytes longer;
        if ((insn->flow == FLOW_JUMP || insn->flow == FLOW_BRANCH) &&
            !is_inside(function, insn) &&
            program->target->widen(program_bytes(program, number), insn->length,
                                   &longer))
            return false;
    }
    return function->refusal == REFUSAL_NONE;
}

static void narrow_function(const struct narrower *narrower,
                            const struct function *function, struct branches branches)
{
    const struct insn *insns = narrower->program->insns;
    if (!only_shrinks(narrower->program, function, branches))
        return;
    for (uint32_t i = 0; i < branches.count; i++) {
        uint32_t number = branches.items[i];
        if (is_inside(function, &insns[number]))
            narrow_branch(narrower, number);
    }
}

void branches_narrow(struct arena *arena, const struct program *program, uint32_t code,
                     const struct layout *layout, struct new_edits *added)
{
    const struct code *of = &program->code[code];
    struct narrower narrower = {arena, program, layout, added};
    uint32_t next = 0;
    for (uint32_t f = 0; f < of->function_count; f++) {
        const struct function *function = &program->functions[of->first_function + f];
        uint32_t end = function->first_insn + function->insn_count, first = next;
        while (next < layout->branch_count && layout->branches[next] < end)
            next++;
        if (next > first)
            narrow_function(&narrower, function,
                            (struct branches){layout->branches + first, next - first});
    }
}
