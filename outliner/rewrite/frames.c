/* SPDX-License-Identifier: MIT
 *
 * Unwind tables of the output. Where a function was edited its rows are written anew:
 * kept instructions keep their row. At a site the caller's row from before the payload
 * holds through the call (an unwinder looks up the return address less one), and right
 * behind it the row that the payload led to. So what the payload itself changed is told
 * once, late; where it was an epilogue, nothing is left to tell.
 *
 * Helpers lie side by side and share FDEs. One of the plain kind needs no instruction
 * at all; a limit on those that do keeps unwinding through the shared ones quick.
 */
#include "mo/parallel.h"
#include "outliner/rewrite/rewrite.h"

#include <assert.h>

enum { ROW_CHANGERS_IN_FDE = 64 };

struct changes {
    struct arena *arena;
    struct row_change *items;
    uint32_t count, capacity;
};

/* From `offset` on `row` holds. What was said of the same place is overruled. */
static void change(struct changes *changes, uint32_t offset, uint32_t row)
{
    if (changes->count && changes->items[changes->count - 1].offset == offset)
        changes->count--;
    assert(!changes->count || changes->items[changes->count - 1].offset < offset);
    if (changes->count && changes->items[changes->count - 1].row == row)
        return;
    struct row_change item = {offset, row};
    array_push(changes->arena, changes, item);
}

/* --- edited functions --- */

struct frame_editor {
    struct arena *arena;
    const struct program *program;
    const struct plan *plan;
    const struct layout *layout;
    uint32_t code; /* code index */
    const struct fde *fde;
    uint32_t start, end; /* new section offsets */
    struct changes changes;
    /* `late` holds until old offset `late_end`, and a site in it has overwritten the
     * link register: `told` takes its place from there on. ROW_NONE: no such row. */
    uint32_t late, late_end, told;
};

/* A site overwrites the link register where the row still finds the return address
 * there: it has been stored, and the next row says where (choose has looked). That is
 * said now; and if the row is stale anyway, all of the next one. */
static void tell_link(struct frame_editor *editor, const struct edit *edit,
                      uint32_t row)
{
    const struct fde *fde = editor->fde;
    if (edit->site == NO_INDEX || row == ROW_NONE || row == editor->late)
        return;
    const struct program *program = editor->program;
    const struct site *site = &editor->plan->sites[edit->site];
    if (!row_loses_link(program, row, site->form))
        return;
    uint32_t next = fde_change_at(fde, edit->start) + 1;
    assert(next < fde->change_count);
    editor->late = row;
    editor->late_end = fde->changes[next].offset;
    editor->told = fde->changes[next].row;
    if (!program_row_is_stale(program, site->insn))
        editor->told = row_with_link_of(editor->arena, program, row, editor->told);
}

static uint32_t told_row(const struct frame_editor *editor, uint32_t row, uint32_t old)
{
    return row == editor->late && old < editor->late_end ? editor->told : row;
}

static void change_at_edit(struct frame_editor *editor, const struct edit *edit)
{
    const struct fde *fde = editor->fde;
    uint32_t at = offsets_start(&editor->layout->offsets, edit->start) - editor->start;
    if (edit->insn_count == 0)
        at -= edit->code.length;
    uint32_t before = fde_row_at(fde, edit->start);
    bool last = edit->end >= fde->start + fde->length;
    uint32_t after = last ? before : fde_row_at(fde, edit->end);
    if (edit->start >= editor->late_end)
        editor->late = ROW_NONE;
    tell_link(editor, edit, before);
    before = told_row(editor, before, edit->start);
    after = told_row(editor, after, edit->end);
    change(&editor->changes, at, before);
    if (edit->site != NO_INDEX && edit->call > 0) {
        const struct site *site = &editor->plan->sites[edit->site];
        change(&editor->changes, at + edit->call,
               row_while_saved(editor->arena, editor->program, before, site));
        change(&editor->changes, at + edit->call_end,
               row_while_saved(editor->arena, editor->program, after, site));
    }
    if (!last)
        change(&editor->changes, at + edit->code.length, after);
}

/* The first edit of the section at or behind an old offset. */
static uint32_t edit_at(const struct edit_list *edits, uint32_t start)
{
    uint32_t low = 0, high = edits->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (edits->items[middle].start < start)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void edit_rows(struct frame_editor *editor, uint32_t first_edit)
{
    const struct fde *fde = editor->fde;
    const struct edit_list *edits = &editor->layout->edits;
    uint32_t c = 0, end = fde->start + fde->length;
    for (uint32_t e = first_edit; e < edits->count && edits->items[e].start < end;
         e++) {
        const struct edit *edit = &edits->items[e];
        for (; c < fde->change_count && fde->changes[c].offset < edit->start; c++)
            change(&editor->changes,
                   offsets_start(&editor->layout->offsets, fde->changes[c].offset) -
                       editor->start,
                   fde->changes[c].row);
        change_at_edit(editor, edit);
        while (c < fde->change_count && fde->changes[c].offset < edit->end)
            c++;
    }
    for (; c < fde->change_count; c++)
        change(&editor->changes,
               offsets_start(&editor->layout->offsets, fde->changes[c].offset) -
                   editor->start,
               fde->changes[c].row);
}

/* Where more functions begin in the entry: it may be one of helpers, or one that
 * functions share. Offsets from its new start. */
static const uint32_t *starts_in(const struct frame_editor *editor, uint32_t *count)
{
    const struct program *program = editor->program;
    const struct code *code = &program->code[editor->code];
    const struct fde *fde = editor->fde;
    uint32_t low = 0, high = code->function_count;
    while (low < high) { /* the first one behind the entry's start */
        uint32_t middle = low + (high - low) / 2;
        if (program->functions[code->first_function + middle].start <= fde->start)
            low = middle + 1;
        else
            high = middle;
    }
    for (high = low; high < code->function_count; high++) {
        if (program->functions[code->first_function + high].start >=
            fde->start + fde->length)
            break;
    }
    *count = high - low;
    uint32_t *starts = arena_new_array(editor->arena, uint32_t, *count);
    for (uint32_t i = 0; i < *count; i++)
        starts[i] =
            offsets_start(&editor->layout->offsets,
                          program->functions[code->first_function + low + i].start) -
            editor->start;
    return starts;
}

static bool edit_fde(struct frame_editor *editor, const struct object *object,
                     bool rows_differ, struct fde_edit *out, struct error *err)
{
    const struct fde *fde = editor->fde;
    const struct edit_list *edits = &editor->layout->edits;
    uint32_t end = fde->start + fde->length, first = edit_at(edits, fde->start);
    editor->start = offsets_start(&editor->layout->offsets, fde->start);
    editor->end = offsets_end(&editor->layout->offsets, end);
    bool edited = first < edits->count && edits->items[first].start < end;
    if (!edited && !rows_differ && editor->end - editor->start == fde->length)
        return true;
    if (fde->refusal != REFUSAL_NONE) {
        struct place place = object_place(object, fde->code_section, fde->start);
        return fail(err, &place,
                    "an unwind entry of edited code cannot be read (a bug "
                    "of mo-link)");
    }
    struct fde retold;
    if (edited && !rows_differ && editor->plan->stack_rows &&
        rows_retold(editor->arena, editor->program, editor->code, fde, &retold))
        editor->fde = &retold;
    edit_rows(editor, first);
    *out = (struct fde_edit){.rewrite = true,
                             .length = editor->end - editor->start,
                             .changes = editor->changes.items,
                             .change_count = editor->changes.count};
    out->starts = starts_in(editor, &out->start_count);
    return true;
}

/* What becomes of the unwind entries of one object. */
struct frame_job {
    struct arena *arena; /* of the result, which frames_rewrite() takes */
    const struct program *program;
    const struct plan *plan;
    const struct layout *layouts;
    const struct stay_list *stays;
    uint32_t object;
};
struct frame_edits {
    const struct fde_edit *items; /* by FDE of the object */
    const bool *changed;          /* by section: some FDE in it is written anew */
};

/* The code index of what the FDE describes, or NO_INDEX. */
static uint32_t code_of(const struct frame_job *job, const struct fde *fde)
{
    if (fde->code_section == NO_INDEX || fde->length == 0)
        return NO_INDEX;
    return program_code_of(job->program, job->object, fde->code_section);
}

static bool edit_object(const struct frame_job *job, struct frame_edits *out,
                        struct error *err)
{
    const struct object *object = job->program->objects->items[job->object];
    const struct frames *frames = &job->program->frames[job->object];
    struct fde_edit *edits =
        arena_new_array(job->arena, struct fde_edit, frames->fde_count);
    bool *changed = arena_new_array(job->arena, bool, object->section_count);
    *out = (struct frame_edits){edits, changed};
    for (uint32_t f = 0; f < frames->fde_count; f++) {
        const struct fde *fde = &frames->fdes[f];
        uint32_t code = code_of(job, fde);
        struct fde weaker;
        bool differ =
            code != NO_INDEX &&
            stays_change_rows(job->arena, job->program, job->stays, code, fde, &weaker);
        if (code == NO_INDEX || (job->layouts[code].edits.count == 0 && !differ))
            continue;
        struct frame_editor editor = {.arena = job->arena,
                                      .program = job->program,
                                      .plan = job->plan,
                                      .layout = &job->layouts[code],
                                      .code = code,
                                      .fde = differ ? &weaker : fde,
                                      .late = ROW_NONE,
                                      .changes = {.arena = job->arena}};
        if (!edit_fde(&editor, object, differ, &edits[f], err))
            return false;
        changed[fde->section] |= edits[f].rewrite;
    }
    return true;
}

static bool make_object(const struct frame_job *job, struct new_frames *out,
                        struct error *err)
{
    const struct program *program = job->program;
    const struct object *object = program->objects->items[job->object];
    struct frame_edits edits;
    if (!edit_object(job, &edits, err))
        return false;
    struct section *sections =
        arena_new_array(job->arena, struct section, object->section_count);
    for (uint32_t s = 1; s < object->section_count; s++) {
        if (edits.changed[s])
            frames_rewrite(job->arena, object, s, program->rows,
                           &program->frames[job->object], edits.items, &sections[s]);
    }
    *out = (struct new_frames){sections, edits.changed};
    return true;
}

/* --- helpers --- */

/* The unwind ranges of the helpers in one helper section. */
struct range_list {
    struct frame_range *items;
    uint32_t count, capacity;
};

struct ranger {
    struct arena *arena;
    const struct program *program;
    const struct plan *plan;
    const struct helper_places *places;
    struct range_list list;
    struct changes changes; /* of the last range */
    uint32_t changers;      /* helpers in it that change their row */
    bool open;              /* the last range may go on */
};

/* What the frame of a helper is besides its rows. Only a helper that is jumped to
 * stands for a frame of the program. */
static void find_kind(const struct ranger *ranger, const struct helper *helper,
                      bool *signal_frame, bool *b_key)
{
    const struct program *program = ranger->program;
    *signal_frame = *b_key = false;
    if (!helper->tail)
        return;
    uint32_t insn = ranger->plan->sites[helper->first_site].insn;
    const struct function *function =
        &program->functions[program_function_of_insn(program, insn)];
    if (function->fde == NO_INDEX)
        return;
    const struct frames *frames =
        &program->frames[program->code[function->code].object];
    const struct cie *cie = &frames->cies[frames->fdes[function->fde].cie];
    *signal_frame = cie->signal_frame;
    *b_key = cie->b_key;
}

static void close_range(struct ranger *ranger)
{
    if (!ranger->open)
        return;
    struct frame_range *range = &ranger->list.items[ranger->list.count - 1];
    range->changes = ranger->changes.items;
    range->change_count = ranger->changes.count;
    ranger->open = false;
}

static void open_range(struct ranger *ranger, uint32_t start, bool signal_frame,
                       bool b_key)
{
    struct frame_range range = {
        .start = start, .signal_frame = signal_frame, .b_key = b_key};
    array_push(ranger->arena, &ranger->list, range);
    ranger->changes = (struct changes){.arena = ranger->arena};
    ranger->changers = 0;
    ranger->open = true;
}

/* A helper that lowers SP for its calls has the plain row, but for where it has done so:
 * from its first instruction on to the last one, or to the return behind it. */
static void add_aligned(struct ranger *ranger, const struct helper *helper,
                        const struct helper_body *body)
{
    struct code_bytes push, pop;
    ranger->program->target->emit_align(&push, &pop);
    uint32_t end = body->offsets[helper->length - (helper->thunk ? 1 : 0)];
    change(&ranger->changes, body->start, helper->entry_row);
    change(&ranger->changes, body->start + push.length,
           row_while_aligned(ranger->program, helper->entry_row));
    change(&ranger->changes, body->start + end, helper->entry_row);
}

static void add_plain(struct ranger *ranger, const struct helper *helper,
                      const struct helper_body *body)
{
    uint32_t *rows = arena_new_array(ranger->arena, uint32_t, helper->length + 1);
    rows_of_helper(ranger->arena, ranger->program, helper,
                   &ranger->plan->sites[helper->first_site], rows);
    for (uint32_t i = 0; i < helper->length + 1; i++) {
        if (body->offsets[i] < body->data.size)
            change(&ranger->changes, body->start + body->offsets[i], rows[i]);
    }
}

static void add_helper(struct ranger *ranger, uint32_t number)
{
    const struct helper *helper = &ranger->plan->helpers[number];
    const struct helper_body *body = &ranger->places->bodies[number];
    if (helper->entry_row == ROW_NONE) {
        close_range(ranger);
        return;
    }
    bool signal_frame, b_key;
    find_kind(ranger, helper, &signal_frame, &b_key);
    const struct frame_range *last =
        ranger->open ? &ranger->list.items[ranger->list.count - 1] : NULL;
    if (!last || last->signal_frame != signal_frame || last->b_key != b_key ||
        ranger->changers >= ROW_CHANGERS_IN_FDE) {
        close_range(ranger);
        open_range(ranger, body->start, signal_frame, b_key);
    }
    uint32_t count = ranger->changes.count;
    if (helper->inner)
        add_aligned(ranger, helper, body);
    else
        add_plain(ranger, helper, body);
    if (ranger->changes.count > count + (count == 0))
        ranger->changers++;
    ranger->list.items[ranger->list.count - 1].length += (uint32_t)body->data.size;
}

static struct range_list ranges_of_helpers(struct arena *arena,
                                           const struct program *program,
                                           const struct plan *plan,
                                           const struct helper_places *places,
                                           uint32_t section)
{
    struct ranger ranger = {
        .arena = arena, .program = program, .plan = plan, .places = places};
    for (uint32_t h = 0; h < plan->helper_count; h++) {
        if (helper_has_body(&plan->helpers[h]) && places->bodies[h].section == section)
            add_helper(&ranger, h);
    }
    close_range(&ranger);
    return ranger.list;
}

/* Unwind tables of the helpers, whose symbols get their numbers later. */
static void make_helpers(struct arena *arena, const struct program *program,
                         const struct plan *plan, const struct helper_places *places,
                         struct section *out)
{
    for (uint32_t s = 0; s < places->section_count; s++) {
        struct range_list ranges = ranges_of_helpers(arena, program, plan, places, s);
        if (ranges.count)
            frames_build(arena, program->target->machine, program->rows, ranges.items,
                         ranges.count, 0, 0, &out[s]);
    }
}

/* --- all of them --- */

struct frame_jobs {
    struct frame_job common;
    const struct helper_places *places;
    struct section *helper_frames; /* by helper section */
    struct program *programs; /* by worker: rows that nobody else needs are its own */
    struct program helpers;   /* and those of the helpers */
    struct arena *arena;      /* of theirs */
    struct arena **arenas;    /* by worker */
    struct new_frames *frames;
    const struct error **errs; /* by object; NULL: none */
};

static void do_object(struct frame_jobs *jobs, uint32_t object, uint32_t worker)
{
    struct frame_job job = jobs->common;
    job.arena = jobs->arenas[worker];
    job.program = &jobs->programs[worker];
    job.object = object;
    struct error err = {0};
    if (!make_object(&job, &jobs->frames[object], &err))
        jobs->errs[object] = arena_copy(job.arena, &err, sizeof err);
}

/* The helpers are the first part, since they are the longest one. */
static void do_part(void *context, uint32_t number, uint32_t worker)
{
    struct frame_jobs *jobs = context;
    if (number == 0)
        make_helpers(jobs->arena, &jobs->helpers, jobs->common.plan, jobs->places,
                     jobs->helper_frames);
    else
        do_object(jobs, number - 1, worker);
}

static struct program with_own_rows(struct arena *arena, const struct program *program)
{
    struct program own = *program;
    own.rows = row_table_over(arena, program->rows);
    return own;
}

/* What is kept of them are bytes, which say nothing of how rows are numbered. */
static bool make_all(struct arena *arena, const struct frame_job *common,
                     struct placement *placement, struct new_frames *frames,
                     struct error *err)
{
    const struct program *program = common->program;
    uint32_t count = program->objects->count;
    struct arena *stage = arena_new();
    struct frame_jobs jobs = {
        .common = *common,
        .places = &placement->places,
        .helper_frames =
            arena_new_array(arena, struct section, placement->places.section_count),
        .programs = arena_new_array(stage, struct program, MOST_WORKERS),
        .arena = arena_new(),
        .arenas = parallel_arenas(stage, program->workers),
        .frames = frames,
        .errs = arena_new_array(stage, const struct error *, count)};
    for (uint32_t w = 0; w < MOST_WORKERS && w < program->workers + !program->workers;
         w++)
        jobs.programs[w] = with_own_rows(jobs.arenas[w], program);
    jobs.helpers = with_own_rows(jobs.arena, program);
    parallel_do(program->workers, count + 1, do_part, &jobs);
    row_table_collect(program->rows, jobs.helpers.rows);
    parallel_adopt(arena, jobs.arenas, program->workers);
    arena_adopt(arena, jobs.arena);
    placement->helper_frames = jobs.helper_frames;
    bool good = true;
    for (uint32_t o = 0; good && o < count; o++)
        good = !jobs.errs[o] || fail(err, NULL, "%s", jobs.errs[o]->message);
    arena_free(stage);
    return good;
}

bool frames_make(struct arena *arena, const struct program *program,
                 const struct plan *plan, struct placement *placement,
                 struct error *err)
{
    struct new_frames *frames =
        arena_new_array(arena, struct new_frames, program->objects->count);
    struct stay_list stays = stays_of_plan(arena, program, plan);
    struct frame_job common = {.program = program,
                               .plan = plan,
                               .layouts = placement->layouts,
                               .stays = &stays};
    placement->frames = frames;
    return make_all(arena, &common, placement, frames, err);
}
