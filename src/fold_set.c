/* SPDX-License-Identifier: MIT */
#include "mo/fold_set.h"

#include "mo/dump.h"

#include <inttypes.h>
#include <stdio.h>

static const bool *flags_after(struct arena *session, const bool *before,
                               uint32_t before_count, uint32_t section_count,
                               const uint32_t *section_at)
{
    if (!before)
        return NULL;
    bool *after = arena_new_array(session, bool, section_count);
    for (uint32_t s = 1; s < before_count; s++)
        after[section_at[s]] = before[s];
    after[0] = false;
    return after;
}

/* What the link does with sections, under their new numbers. */
static struct unused unused_after(struct arena *session, const struct unused *before,
                                  uint32_t section_count, const uint32_t *section_at)
{
    return (struct unused){flags_after(session, before->sections, before->count,
                                       section_count, section_at),
                           flags_after(session, before->apart, before->count,
                                       section_count, section_at),
                           section_count};
}

/* Folds one object, has that verified, and tells what it saved. */
static bool fold_object(const struct fold_job *job, const struct program *program,
                        uint32_t number, const struct fold_options *options,
                        const struct object **out, struct unused *unused,
                        struct error *err)
{
    const struct object *before = program->objects->items[number];
    struct fold_plan plan;
    fold_make(job->session, program, number, options, &plan);
    *out = before;
    if (plan.count == 0)
        return true;
    const uint32_t *section_at;
    if (!fold_apply(job->session, &plan, out, &section_at, err) ||
        (!job->options->no_verify &&
         !fold_verify(before, *out, &plan, section_at, err)))
        return false;
    struct sizes old = sizes_of(&(struct objects){&before, 1});
    struct sizes new = sizes_of(&(struct objects){out, 1});
    int64_t code = (int64_t)(old.text - new.text);
    if (code != plan.code)
        return fail(err, NULL,
                    "internal error: predicted to save %" PRId64
                    " bytes of code by folding, measured %" PRId64,
                    plan.code, code);
    if (unused)
        *unused = unused_after(job->session, unused, (*out)->section_count, section_at);
    report_folds(job->report, before, &plan);
    if (job->options->verbose)
        fprintf(stderr,
                "mo-link: %s: folded %" PRIu32 " functions, saves %" PRId64
                " bytes of code, %" PRId64 " of .eh_frame\n",
                before->name, plan.count, code, (int64_t)(old.eh_frame - new.eh_frame));
    return true;
}

bool fold_set(const struct fold_job *job, const struct set *set, struct set *out,
              struct error *err)
{
    struct arena *stage = arena_new();
    struct program *program = NULL;
    struct fold_options options = {.apart = job->options->output_is_directory};
    uint32_t count = set->objects.count;
    const struct object **items =
        arena_new_array(job->session, const struct object *, count);
    struct unused *unused =
        set->unused ? arena_copy(job->session, set->unused, count * sizeof *unused)
                    : NULL;
    bool ok = program_lift(stage, &set->objects, job->rows, &job->lift, &program, err);
    for (uint32_t i = 0; ok && i < count; i++)
        ok = fold_object(job, program, i, &options, &items[i],
                         unused ? &unused[i] : NULL, err);
    arena_free(stage);
    out->objects = (struct objects){items, count};
    out->unused = unused;
    return ok;
}
