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

static void merge_edits(struct placer *placer, const struct new_edits *added)
{
    uint32_t count = placer->edit_count + added->count;
    struct edit *all = arena_new_array(placer->arena, struct edit, count);
    memcpy(all, placer->edits, placer->edit_count * sizeof *all);
    memcpy(all + placer->edit_count, added->items, added->count * sizeof *all);
    edits_sort(all, count);
    placer->edits = all;
    placer->edit_count = count;
}

static bool layout_section(struct placer *placer, bool narrow, struct layout *layout,
                           struct error *err)
{
    branches_find(placer->arena, placer->program, placer->code, layout);
    for (;;) {
        struct new_edits added = {0};
        layout->offsets = place_section(placer);
        if (!branches_widen(placer->arena, placer->program, placer->code, layout, &added,
                            err))
            return false;
        if (narrow && placer->program->target->narrow && added.count == 0)
            branches_narrow(placer->arena, placer->program, placer->code, layout, &added);
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
