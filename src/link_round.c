/* SPDX-License-Identifier: MIT
 *
 * One round over one set: lift, tokens, plan, price, rewrite. What it thinks with is gone
 * when it returns.
 */
#include "link_parts.h"

#include "mo/dump.h"

#include <inttypes.h>
#include <stdio.h>

static void print_round(const struct link *link, const struct set *set, uint32_t round,
                        const struct plan *plan, bool done)
{
    if (!link->options->verbose)
        return;
    if (plan->site_count == 0) {
        fprintf(stderr, "mo-link: %s%sround %" PRIu32 ": nothing found that pays\n",
                set->name, set->name[0] ? ": " : "", round);
        return;
    }
    fprintf(stderr,
            "mo-link: %s%sround %" PRIu32 ": %" PRIu32 " helpers, %" PRIu32
            " sites, saves %" PRId64 " bytes of code, %" PRId64
            " of .eh_frame, %" PRId64 " of .eh_frame_hdr%s\n",
            set->name, set->name[0] ? ": " : "", round, plan->helper_count,
            plan->site_count, plan->predicted_code, plan->predicted_eh,
            plan->predicted_hdr, done ? "" : " (not worth it, left out)");
}

/* The helper at which --bisect-limit stops. */
static void print_last(const struct program *program, const struct plan *plan,
                       uint32_t index)
{
    const struct helper *helper = &plan->helpers[index];
    const struct site *first = &plan->sites[helper->first_site];
    fprintf(stderr,
            "mo-link: --bisect-limit: the last one is " HELPER_PREFIX "%016" PRIx64
            " (%s, %" PRIu32 " sites, %" PRIu32 " instructions), first in ",
            helper->hash, form_name((enum form)first->form), helper->site_count,
            helper->length);
    dump_place(stderr, program, first->insn);
    fputc('\n', stderr);
}

struct lift_options link_lift_options(const struct link *link, const struct set *set)
{
    struct lift_options lift = lift_options_of(link->options);
    lift.loose = set->archive != NO_INDEX;
    lift.decoder = link->decoder;
    lift.unused = set->unused;
    lift.unused_count = set->unused ? set->objects.count : 0;
    lift.workers = link->workers;
    return lift;
}

/* Lifts `objects` and plans what to do with them. An empty plan is a result. */
static bool plan_round(struct link *link, struct arena *stage, const struct set *set,
                       uint32_t round, const struct objects *objects,
                       struct program **program, struct plan *plan, struct error *err)
{
    struct lift_options lift = link_lift_options(link, set);
    if (!program_lift(stage, objects, link->rows, &lift, program, err))
        return false;
    if (round == 1)
        link->tables = program_tables(link->session, *program);
    struct tokens tokens;
    bool again = round <= link->options->reruns;
    if (round == 1)
        tokens_make(stage, *program, again, &tokens);
    else
        tokens_make_changed(stage, *program, again, link->helpers, &tokens);
    helpers_note(link->helpers, objects);
    struct plan_options choice = plan_options_of(link->options);
    plan_make(stage, *program, &tokens, &choice, plan);
    plan->stack_rows = round == 1 && (choice.without & TECHNIQUE_ROWS) == 0;
    return true;
}

/* Under --bisect-limit: leaves of the plan what the limit still allows, and says where
 * it has cut. Whether the round pays was judged on the whole plan, so that the n-th
 * helper is the same one under every limit. */
static bool cut_round(struct link *link, struct arena *stage,
                      const struct program *program, struct plan *plan,
                      struct error *err)
{
    uint32_t left = link->options->bisect_stop - 1 - link->helper_count;
    if (left > 0 && left <= plan->helper_count)
        print_last(program, plan, left - 1);
    if (left >= plan->helper_count) {
        link->helper_count += plan->helper_count;
        return true;
    }
    link->helper_count += left;
    *plan = plan_cut(stage, plan, left);
    return plan->site_count == 0 || plan_price(stage, program, plan, err);
}

bool link_round(struct link *link, const struct set *set, uint32_t round,
                struct objects *objects, struct savings *sum, bool *more,
                struct error *err)
{
    struct arena *stage = arena_new();
    struct program *program = NULL;
    struct plan plan = {0};
    progress_at(link->progress, "looking for repeats", round);
    bool ok = plan_round(link, stage, set, round, objects, &program, &plan, err);
    if (ok && round == 1 && options_want_report(link->options))
        report_refusals(&link->report, program);
    if (ok && round == 1 && link->remarks)
        remarks_refusals(link->remarks, program);
    /* Sites are priced one by one; unwind tables are shared, so only the whole is
     * exact. */
    ok = ok && (plan.site_count == 0 || plan_price(stage, program, &plan, err));
    *more = ok && plan.predicted_code + plan.predicted_eh + plan.predicted_hdr > 0;
    if (ok)
        print_round(link, set, round, &plan, *more);
    if (*more && link->options->bisect_stop) {
        ok = cut_round(link, stage, program, &plan, err);
        *more = ok && plan.site_count > 0;
    }
    if (ok && *more && link->remarks) /* first: the program's objects are replaced */
        remarks_round(link->remarks, round, program, &plan);
    if (ok && *more) {
        const char *name = set->name[0] ? set->name : "(helpers)";
        struct rewrite_options rewrite = {
            link->options->output_is_directory ? NO_INDEX : 0, name};
        progress_at(link->progress, "rewriting", round);
        ok = program_rewrite(link->session, program, &plan, &rewrite, objects, err);
        report_round(&link->report, round, program, &plan);
        sum->code += plan.predicted_code;
        sum->eh_frame += plan.predicted_eh;
        sum->eh_frame_hdr += plan.predicted_hdr;
    }
    arena_free(stage);
    return ok;
}
