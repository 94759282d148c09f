/* SPDX-License-Identifier: MIT
 *
 * Plan -> edits. An edit says which instructions go and which bytes come instead, and
 * knows nothing of where either will lie.
 */
#include "mo/parallel.h"
#include "outliner/rewrite/rewrite.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void append(struct code_bytes *to, const struct code_bytes *more)
{
    assert(to->length + more->length <= CODE_BYTES);
    if (more->has_reloc) {
        to->has_reloc = true;
        to->reloc_offset = (uint8_t)(to->length + more->reloc_offset);
        to->reloc_type = more->reloc_type;
        to->reloc_addend = more->reloc_addend;
    }
    memcpy(to->bytes + to->length, more->bytes, more->length);
    to->length = (uint8_t)(to->length + more->length);
}

static void write_site(const struct target *target, const struct site *site,
                       struct edit *edit)
{
    struct code_bytes before = {0}, call = {0}, after = {0};
    switch ((enum form)site->form) {
    case FORM_SAVE_REGISTER:
        target->emit_save_register(site->scratch, &before, &after);
        break;
    case FORM_SAVE_STACK: target->emit_save_stack(&before, &after); break;
    default: break;
    }
    if (site->form == FORM_TAIL)
        target->emit_jump(&call);
    else
        target->emit_call(&call);
    append(&edit->code, &before);
    edit->call = edit->code.length;
    append(&edit->code, &call);
    edit->call_end = edit->code.length;
    append(&edit->code, &after);
}

static void set_range(const struct program *program, struct edit *edit)
{
    const struct insn *first = &program->insns[edit->insn];
    const struct insn *last = first + edit->insn_count - 1;
    edit->start = first->offset;
    edit->end = last->offset + last->length;
}

static int by_insn(const void *left, const void *right)
{
    const struct edit *a = left, *b = right;
    if (a->insn != b->insn)
        return a->insn < b->insn ? -1 : 1;
    /* An insertion comes before what is done to the instruction itself. */
    return a->insn_count < b->insn_count ? -1 : a->insn_count > b->insn_count;
}

static void check_order(const struct edit *edits, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        assert(edits[i - 1].insn + edits[i - 1].insn_count <= edits[i].insn);
}

void edits_sort(struct edit *edits, uint32_t count)
{
    if (count)
        qsort(edits, count, sizeof *edits, by_insn);
    check_order(edits, count);
}

/* --- all of them --- */

enum { PART_SITES = 1024 };

struct job {
    const struct program *program;
    const struct plan *plan;
    const uint32_t *helpers; /* by site */
    const uint32_t *order;   /* sites, by instruction */
    struct edit *edits;      /* in that order */
};

static void write_part(void *context, uint32_t number, uint32_t worker)
{
    const struct job *job = context;
    uint32_t first = number * PART_SITES, left = job->plan->site_count - first;
    (void)worker;
    for (uint32_t i = first; i < first + (left < PART_SITES ? left : PART_SITES); i++) {
        struct edit *edit = &job->edits[i];
        edit->site = job->order[i];
        edit->helper = job->helpers[edit->site];
        edit->insn = job->plan->sites[edit->site].insn;
        edit->insn_count = job->plan->helpers[edit->helper].length;
        set_range(job->program, edit);
        write_site(job->program->target, &job->plan->sites[edit->site], edit);
    }
}

static const uint32_t *helpers_of_sites(struct arena *arena, const struct plan *plan)
{
    uint32_t *helpers = arena_new_array(arena, uint32_t, plan->site_count);
    uint32_t count = 0;
    for (uint32_t h = 0; h < plan->helper_count; h++) {
        const struct helper *helper = &plan->helpers[h];
        for (uint32_t s = 0; s < helper->site_count; s++)
            helpers[helper->first_site + s] = h;
        count += helper->site_count;
    }
    assert(count == plan->site_count);
    return helpers;
}

/* No two sites begin with the same instruction, so each instruction has a place for one
 * of them: that is quicker than to compare sites. */
static const uint32_t *sites_in_order(struct arena *arena,
                                      const struct program *program,
                                      const struct plan *plan)
{
    uint32_t *starting = arena_new_array(arena, uint32_t, program->insn_count);
    uint32_t *order = arena_new_array(arena, uint32_t, plan->site_count);
    for (uint32_t s = 0; s < plan->site_count; s++)
        starting[plan->sites[s].insn] = s + 1;
    uint32_t count = 0;
    for (uint32_t i = 0; i < program->insn_count; i++) {
        if (starting[i])
            order[count++] = starting[i] - 1;
    }
    assert(count == plan->site_count);
    return order;
}

struct edit_list edits_of_plan(struct arena *arena, const struct program *program,
                               const struct plan *plan, const struct edit_list *extra)
{
    uint32_t sites = plan->site_count, count = sites + (extra ? extra->count : 0);
    struct edit *edits = arena_new_array(arena, struct edit, count);
    if (sites) {
        struct arena *stage = arena_new();
        struct job job = {program, plan, helpers_of_sites(stage, plan),
                          sites_in_order(stage, program, plan), edits};
        parallel_do(program->workers, (sites + PART_SITES - 1) / PART_SITES, write_part,
                    &job);
        arena_free(stage);
    }
    if (extra && extra->count) {
        memcpy(edits + sites, extra->items, extra->count * sizeof *edits);
        edits_sort(edits, count);
    }
    check_order(edits, count);
    return (struct edit_list){edits, count};
}
