/* SPDX-License-Identifier: MIT
 *
 * The front door. link_run() is the table of contents of the whole tool: one line for
 * each stage, with the reason why it is there and what holds behind it.
 *
 * A round is a function from a set of objects to a set of objects. Nothing is edited in
 * place, so `before` stays what it was and the checker can compare the last round's
 * result with it, however many rounds there were. What a round needs to think (the
 * lifted program, tokens, plan) lives in an arena of its own and is gone before the
 * next round begins; the objects it makes live as long as the session.
 *
 * Sets do not know of each other. All are done before the first file is written.
 */
#include "mo/link.h"

#include "link_parts.h"
#include "mo/dump.h"
#include "mo/fold_set.h"
#include "mo/parallel.h"
#include "mo/warnings.h"

#include <stdio.h>

/* What the rounds begin with: the set, folded if it is to be. */
static bool look_at_set(struct link *link, const struct set *given, struct error *err)
{
    struct options options = *link->options;
    options.verbose = false; /* it is told when it is done in earnest */
    struct report report = report_new(link->session);
    struct fold_job job = {link->session, &options, link->rows,
                           link_lift_options(link, given), &report};
    struct set set = *given;
    bool folds = options.fold && options.dump != DUMP_OBJECT;
    if (folds && !fold_set(&job, given, &set, err))
        return false;
    struct lift_options lift = link_lift_options(link, &set);
    return dump_set(stdout, &options, &lift, &set.objects, folds ? &report : NULL,
                    link->rows, err);
}

static bool look_at_sets(struct link *link, struct error *err)
{
    const struct options *options = link->options;
    if (options->dump == DUMP_NONE && !options->explain)
        return true;
    for (uint32_t i = 0; i < link->before.count; i++) {
        const struct set *set = &link->before.items[i];
        if (set->objects.count > 0 && !look_at_set(link, set, err))
            return false;
    }
    return true;
}

static bool work_on_sets(struct link *link, struct error *err)
{
    struct sets *after = &link->after;
    after->count = link->before.count;
    after->items = arena_copy(link->session, link->before.items,
                              after->count * sizeof *after->items);
    for (uint32_t i = 0; link->options->outline && i < after->count; i++) {
        if (!link_outline_set(link, &link->before.items[i], &after->items[i].objects,
                              err))
            return false;
    }
    for (uint32_t i = 0; link->options->shake && i < after->count; i++) {
        struct objects *objects = &after->items[i].objects;
        if (objects->count > 0 && !link_shake_set(link, objects, err))
            return false;
    }
    return true;
}

/* What the rounds themselves print, on request, would stand in the same line. */
static bool outline_sets(struct link *link, struct error *err)
{
    if (!link->options->verbose && !link->options->bisect_stop)
        link->progress = progress_start(link->session);
    bool ok = work_on_sets(link, err);
    progress_end(link->progress);
    return ok;
}

static bool run(struct link *link, struct error *err)
{
    const struct options *options = link->options;
    struct arena *session = link->session;

    /* Files become checked values. From here on nobody doubts an index. */
    if (!inputs_read(session, options, &link->inputs, err))
        return false;

    const struct target *target = target_of(link->inputs.objects[0]->machine);
    link->decoder = target ? decoder_new(session, target) : NULL;

    /* Before any work: an output that would destroy an input, or another output. */
    if (!inputs_check_output(session, options, &link->inputs, err))
        return false;

    /* Who shares helpers with whom. Sizes "before" are those of these sets: what
     * merging and stripping save is not our merit. */
    if (!inputs_arrange(session, options, &link->inputs, &link->before, err))
        return false;

    warn_unmatched(stderr, options, &link->before);
    if (!check_named(options, &link->before, err))
        return false;

    /* --dump and --explain show the first round, and change nothing. */
    if (!look_at_sets(link, err))
        return false;
    if (options_only_look(options))
        return true;

    /* The work. Behind it every set is as small as its rounds could make it, saves what
     * was predicted, and has been compared with what it was. */
    if (!outline_sets(link, err))
        return false;

    /* Only now, with nothing left that can go wrong but the file system, files appear.
     */
    return link_write(link, err);
}

bool link_sets(struct arena *session, const struct options *options,
               const struct sets *before, struct sets *after, struct report_texts *reports,
               struct error *err)
{
    struct link link = {.options = options, .session = session, .before = *before};
    link.known_link = true;
    link.workers = options->jobs ? options->jobs : parallel_processors();
    link.rows = row_table_new(session);
    link.report = report_new(session);
    const struct object *first = before->items[0].objects.items[0];
    const struct target *target = target_of(first->machine);
    link.decoder = target ? decoder_new(session, target) : NULL;
    if (!look_at_sets(&link, err) || !outline_sets(&link, err))
        return false;
    *after = link.after;
    link_report(&link, reports);
    return true;
}

bool link_run(const struct options *options, struct error *err)
{
    struct arena *session = arena_new();
    struct link link = {.options = options, .session = session};
    link.rows = row_table_new(session);
    link.report = report_new(session);
    link.workers = options->jobs ? options->jobs : parallel_processors();
    if (options->remarks)
        link.remarks = remarks_new(session, link_listing_name(&link));
    bool ok = options->compare ? link_compare(&link, err) : run(&link, err);
    arena_free(session);
    return ok;
}
