/* SPDX-License-Identifier: MIT
 *
 * Where everything lies after the edits. The functions of an edited section are laid
 * out in their old order, each at the alignment that it keeps, with new padding between
 * them; padding at the section's end goes. A section without edits keeps every byte.
 *
 * Code only shrinks at sites, but padding may grow by a few bytes, so a short branch to
 * another function may no longer reach. It is then widened, which is one more edit, and
 * the section is laid out again: edits are only added, so this comes to an end. The
 * other way round, a long branch inside of a function may have become needlessly long.
 */
#include "mo/parallel.h"
#include "outliner/rewrite/rewrite.h"

#include <assert.h>
#include <string.h>

struct pieces {
    struct piece *items;
    uint32_t count, capacity;
};

/* A section while it is laid out: pieces up to `old` and `new`. */
struct placer {
    struct arena *arena;
    const struct program *program;
    uint32_t code;
    const struct edit *edits;
    uint32_t edit_count;
    struct pieces pieces;
    uint32_t old, new;
    uint32_t edit; /* the next one */
};

static void put(struct placer *placer, enum piece_kind kind, uint32_t old_end,
                uint32_t size)
{
    struct piece piece = {placer->old, placer->new, kind, placer->edit};
    if (old_end > placer->old || size > 0)
        array_push(placer->arena, &placer->pieces, piece);
    placer->old = old_end;
    placer->new += size;
}

static void keep_until(struct placer *placer, uint32_t end)
{
    assert(end >= placer->old);
    put(placer, PIECE_KEPT, end, end - placer->old);
}

static void place_function(struct placer *placer, const struct function *function)
{
    assert(function->start >= placer->old);
    if (function->fixed)
        keep_until(placer, function->start);
    uint32_t padding = (function->start - placer->new) & (function->align - 1);
    put(placer, PIECE_PADDING, function->start, function->fixed ? 0 : padding);
    uint32_t end_insn = function->first_insn + function->insn_count;
    for (; placer->edit < placer->edit_count; placer->edit++) {
        const struct edit *edit = &placer->edits[placer->edit];
        if (edit->insn >= end_insn)
            break;
        assert(function->refusal == REFUSAL_NONE && edit->end <= function->end);
        keep_until(placer, edit->start);
        put(placer, PIECE_REPLACED, edit->end, edit->code.length);
    }
    keep_until(placer, function->end);
}

static struct offsets place_section(struct placer *placer)
{
    const struct code *code = &placer->program->code[placer->code];
    placer->pieces = (struct pieces){0};
    /* At most two before and in each edit, two for a function, two at the end. */
    array_reserve(placer->arena, &placer->pieces,
                  2 * (placer->edit_count + code->function_count + 1));
    placer->old = placer->new = placer->edit = 0;
    for (uint32_t f = 0; f < code->function_count; f++)
        place_function(placer, &placer->program->functions[code->first_function + f]);
    assert(placer->edit == placer->edit_count);
    const struct section *section = program_section(placer->program, placer->code);
    put(placer, PIECE_PADDING, (uint32_t)section->data.size, 0);
    struct piece end = {placer->old, placer->new, PIECE_KEPT, NO_INDEX};
    array_push(placer->arena, &placer->pieces, end);
    return offsets_make(placer->arena, placer->pieces.items, placer->pieces.count);
}

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

struct edits {
    struct edit *items;
    uint32_t count, capacity;
};

/* Adds an edit for each branch of a function that cannot reach any more. */
static bool widen_function(const struct placer *placer, const struct layout *layout,
                           const struct function *function, struct edits *added,
                           struct error *err)
{
    const struct program *program = placer->program;
    const uint8_t *bytes = program_section(program, placer->code)->data.at;
    for (uint32_t i = 0; i < function->insn_count; i++) {
        uint32_t number = function->first_insn + i;
        const struct insn *insn = &program->insns[number];
        if (!(insn->traits & INSN_PC_RELATIVE) || !insn_is_resolved(program, number))
            continue;
        const struct piece *piece = offsets_piece(&layout->offsets, insn->offset);
        if (piece->kind == PIECE_REPLACED || piece_keeps_branch(piece, insn) ||
            reaches(program, layout, insn, bytes + insn->offset))
            continue;
        struct edit edit = {.insn = number,
                            .insn_count = 1,
                            .start = insn->offset,
                            .end = insn->offset + insn->length,
                            .site = NO_INDEX,
                            .helper = NO_INDEX};
        if (function->refusal != REFUSAL_NONE ||
            !program->target->widen(bytes + insn->offset, insn->length, &edit.code))
            return fail_reach(program, placer->code, insn, err);
        array_push(placer->arena, added, edit);
    }
    return true;
}

static bool widen_section(const struct placer *placer, const struct layout *layout,
                          struct edits *added, struct error *err)
{
    const struct code *code = &placer->program->code[placer->code];
    for (uint32_t f = 0; f < code->function_count; f++) {
        const struct function *function =
            &placer->program->functions[code->first_function + f];
        if (!widen_function(placer, layout, function, added, err))
            return false;
    }
    return true;
}

static void merge_edits(struct placer *placer, const struct edits *added)
{
    uint32_t count = placer->edit_count + added->count;
    struct edit *all = arena_new_array(placer->arena, struct edit, count);
    memcpy(all, placer->edits, placer->edit_count * sizeof *all);
    memcpy(all + placer->edit_count, added->items, added->count * sizeof *all);
    edits_sort(all, count);
    placer->edits = all;
    placer->edit_count = count;
}

/* The branch stays in its function. */
static bool is_inside(const struct function *function, const struct insn *insn)
{
    return (insn->flow == FLOW_JUMP || insn->flow == FLOW_BRANCH) &&
           (insn->traits & INSN_PC_RELATIVE) && insn->target != NO_INDEX &&
           insn->target >= function->start && insn->target < function->end;
}

/* Adds an edit for each long branch of a function that a short one can do for. */
static void narrow_function(const struct placer *placer, const struct layout *layout,
                            const struct function *function, struct edits *added)
{
    const struct program *program = placer->program;
    const uint8_t *bytes = program_section(program, placer->code)->data.at;
    for (uint32_t i = 0; i < function->insn_count; i++) {
        uint32_t number = function->first_insn + i;
        const struct insn *insn = &program->insns[number];
        struct edit edit = {.insn = number,
                            .insn_count = 1,
                            .start = insn->offset,
                            .end = insn->offset + insn->length,
                            .site = NO_INDEX,
                            .helper = NO_INDEX};
        if (!is_inside(function, insn) || !insn_is_resolved(program, number) ||
            offsets_piece(&layout->offsets, insn->offset)->kind == PIECE_REPLACED ||
            !program->target->narrow(bytes + insn->offset, insn->length, &edit.code))
            continue;
        int64_t from = offsets_start(&layout->offsets, insn->offset);
        int64_t distance = offsets_start(&layout->offsets, insn->target) - from;
        uint8_t out[CODE_BYTES];
        if (distance > 0) /* what is behind it comes nearer */
            distance -= insn->length - edit.code.length;
        if (program->target->retarget(edit.code.bytes, edit.code.length, distance, out))
            array_push(placer->arena, added, edit);
    }
}

/* No branch in it may have to be widened later: then nothing in it ever moves apart,
 * and what is near stays near. Only short branches to other functions may have to be.
 */
static bool only_shrinks(const struct program *program, const struct function *function)
{
    for (uint32_t i = 0; i < function->insn_count; i++) {
        uint32_t number = function->first_insn + i;
        const struct insn *insn = &program->insns[number];
        struct code_bytes longer;
        if ((insn->flow == FLOW_JUMP || insn->flow == FLOW_BRANCH) &&
            !is_inside(function, insn) && insn_is_resolved(program, number) &&
            program->target->widen(program_bytes(program, number), insn->length,
                                   &longer))
            return false;
    }
    return function->refusal == REFUSAL_NONE;
}

static void narrow_section(const struct placer *placer, const struct layout *layout,
                           struct edits *added)
{
    const struct code *code = &placer->program->code[placer->code];
    for (uint32_t f = 0; f < code->function_count; f++) {
        const struct function *function =
            &placer->program->functions[code->first_function + f];
        if (only_shrinks(placer->program, function))
            narrow_function(placer, layout, function, added);
    }
}

static bool layout_section(struct placer *placer, bool narrow, struct layout *layout,
                           struct error *err)
{
    for (;;) {
        struct edits added = {0};
        layout->offsets = place_section(placer);
        if (!widen_section(placer, layout, &added, err))
            return false;
        if (narrow && placer->program->target->narrow && added.count == 0)
            narrow_section(placer, layout, &added);
        layout->edits = (struct edit_list){placer->edits, placer->edit_count};
        if (added.count == 0)
            return true;
        merge_edits(placer, &added);
    }
}

/* --- all of them --- */

struct job {
    struct placer placer;
    const struct error *err; /* NULL: none */
};

struct jobs {
    array_of(struct job) items;
    struct layout *layouts;
    struct arena **arenas; /* by worker */
    bool narrow;
};

/* A job for each section that has edits. */
static void find_jobs(struct arena *arena, const struct program *program,
                      const struct edit_list *edits, struct jobs *jobs)
{
    uint32_t at = 0;
    for (uint32_t c = 0; c < program->code_count; c++) {
        const struct code *code = &program->code[c];
        if (code->function_count == 0)
            continue;
        const struct function *last =
            &program->functions[code->first_function + code->function_count - 1];
        uint32_t first = at, end = last->first_insn + last->insn_count;
        while (at < edits->count && edits->items[at].insn < end)
            at++;
        if (at == first)
            continue;
        struct job job = {.placer = {.program = program,
                                     .code = c,
                                     .edits = edits->items + first,
                                     .edit_count = at - first}};
        array_push(arena, &jobs->items, job);
    }
    assert(at == edits->count && "an edit outside of every function");
}

static void do_job(void *context, uint32_t number, uint32_t worker)
{
    struct jobs *jobs = context;
    struct job *job = &jobs->items.items[number];
    struct error err = {0};
    job->placer.arena = jobs->arenas[worker];
    if (!layout_section(&job->placer, jobs->narrow, &jobs->layouts[job->placer.code],
                        &err))
        job->err = arena_copy(jobs->arenas[worker], &err, sizeof err);
}

bool layouts_make(struct arena *arena, const struct program *program,
                  const struct edit_list *edits, bool narrow, const struct layout **out,
                  struct error *err)
{
    struct arena *stage = arena_new();
    struct jobs jobs = {
        .layouts = arena_new_array(arena, struct layout, program->code_count),
        .arenas = parallel_arenas(stage, program->workers),
        .narrow = narrow,
    };
    *out = jobs.layouts;
    find_jobs(stage, program, edits, &jobs);
    parallel_do(program->workers, jobs.items.count, do_job, &jobs);
    parallel_adopt(arena, jobs.arenas, program->workers);
    bool good = true;
    for (uint32_t i = 0; good && i < jobs.items.count; i++) {
        const struct error *failed = jobs.items.items[i].err;
        good = !failed || fail(err, NULL, "%s", failed->message);
    }
    arena_free(stage);
    return good;
}
