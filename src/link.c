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

#include "mo/array.h"
#include "mo/baseline.h"
#include "mo/decoder.h"
#include "mo/dump.h"
#include "mo/fold_set.h"
#include "mo/inputs.h"
#include "mo/outputs.h"
#include "mo/parallel.h"
#include "mo/plan.h"
#include "mo/progress.h"
#include "mo/program.h"
#include "mo/remarks.h"
#include "mo/report.h"
#include "mo/sides.h"
#include "mo/warnings.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct link {
    const struct options *options;
    struct arena *session;
    struct row_table *rows;  /* unwind rows have one numbering for the whole run */
    uint32_t workers;        /* as in mo/parallel.h */
    struct decoder *decoder; /* the rounds see the same instructions again and again */
    struct inputs inputs;
    struct sets before, after;
    struct report report;
    struct remarks *remarks; /* NULL: not asked for */
    uint32_t helper_count;   /* made so far, under --bisect-limit */
    struct progress *progress;
    bool known_link;         /* the linker has said already what it loads */
};

static const char *listing_name(const struct link *link)
{
    return arena_format(link->session, "%s.s", link->options->remarks);
}

/* --- one round --- */

struct savings {
    int64_t code, eh_frame, eh_frame_hdr; /* bytes */
};

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

/* Lifts `objects` and plans what to do with them. An empty plan is a result. */
static bool plan_round(struct link *link, struct arena *stage, const struct set *set,
                       const struct objects *objects, struct program **program,
                       struct plan *plan, struct error *err)
{
    struct lift_options lift = lift_options_of(link->options);
    lift.loose = set->archive != NO_INDEX;
    lift.decoder = link->decoder;
    lift.unused = set->unused;
    lift.unused_count = set->unused ? set->objects.count : 0;
    lift.workers = link->workers;
    if (!program_lift(stage, objects, link->rows, &lift, program, err))
        return false;
    struct tokens tokens;
    tokens_make(stage, *program, &tokens);
    struct plan_options choice = plan_options_of(link->options);
    plan_make(stage, *program, &tokens, &choice, plan);
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

/* One round over one set. `more` tells whether it changed anything; if not, `objects`
 * is as it was. */
static bool run_round(struct link *link, const struct set *set, uint32_t round,
                      struct objects *objects, struct savings *sum, bool *more,
                      struct error *err)
{
    struct arena *stage = arena_new();
    struct program *program = NULL;
    struct plan plan = {0};
    progress_at(link->progress, "looking for repeats", round);
    bool ok = plan_round(link, stage, set, objects, &program, &plan, err);
    if (ok && round == 1 && link->options->report != REPORT_NONE)
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

/* --- one set --- */

/* Holds nothing but helpers: an earlier round made it, or an earlier run, of which only
 * the names tell. */
static bool is_helper_object(const struct object *object)
{
    uint32_t helpers = 0;
    for (uint32_t i = 1; i < object->symbol_count; i++) {
        const struct symbol *symbol = &object->symbols[i];
        if (symbol->type != STT_FUNC || symbol->section == SECTION_UNDEFINED)
            continue;
        if (strncmp(symbol->name, HELPER_PREFIX, strlen(HELPER_PREFIX)) != 0)
            return false;
        helpers++;
    }
    return helpers > 0;
}

/* In a directory each round puts an object of helpers behind the others. They become
 * one, in the place of the one that came in with the input, if there is one: it will be
 * a file with a name of its own, and each object pays for a property note. */
static bool join_helper_objects(struct link *link, const struct set *set,
                                struct objects *objects, struct error *err)
{
    uint32_t old_count = set->objects.count;
    if (objects->count == old_count)
        return true;
    uint32_t home = 0; /* at most old_count: the first new object */
    while (home < old_count && !is_helper_object(objects->items[home]))
        home++;
    const struct object **items =
        arena_copy(link->session, objects->items, objects->count * sizeof *items);
    const struct object **parts =
        arena_new_array(link->session, const struct object *, objects->count);
    uint32_t part_count = 0;
    parts[part_count++] = items[home];
    for (uint32_t i = old_count; i < objects->count; i++) {
        if (i != home)
            parts[part_count++] = items[i];
    }
    *objects = (struct objects){items, home < old_count ? old_count : old_count + 1};
    return part_count == 1 ||
           objects_merge(link->session, set->name, &(struct objects){parts, part_count},
                         &items[home], err);
}

/* A link takes some members of an archive, each for a name that somebody wants. What
 * helpers refer to was wanted by the members that they come from, and these still say
 * so; a helper itself wants nothing, or the few that are needed would bring in all
 * others. So it says weakly what it refers to.
 *
 * In the linker step, too: the helpers of a link stand first, and a name that they want
 * would be looked for before anything is loaded. In libstdc++.a complex_io.o is the
 * first member with a copy of ~basic_stringbuf; who asks later finds the copy of some
 * other member, which is there for reasons of its own. */
static void loosen_helpers(struct link *link, struct objects *objects)
{
    const struct object **items =
        arena_copy(link->session, objects->items, objects->count * sizeof *items);
    for (uint32_t i = 0; i < objects->count; i++) {
        if (!is_helper_object(items[i]))
            continue;
        struct object *object = arena_copy(link->session, items[i], sizeof *object);
        struct symbol *symbols = arena_copy(link->session, object->symbols,
                                            object->symbol_count * sizeof *symbols);
        for (uint32_t s = 1; s < object->symbol_count; s++) {
            if (symbols[s].section == SECTION_UNDEFINED &&
                symbols[s].bind == STB_GLOBAL)
                symbols[s].bind = STB_WEAK;
        }
        object->symbols = symbols;
        items[i] = object;
    }
    objects->items = items;
}

/* What was promised is what was done, byte for byte: the plan's arithmetic is the only
 * reason to believe that a choice was good. */
static bool check_savings(const struct set *set, const struct objects *after,
                          const struct savings *sum, struct error *err)
{
    struct sizes old = sizes_of(&set->objects), new = sizes_of(after);
    int64_t code = (int64_t)(old.text - new.text);
    int64_t eh_frame = (int64_t)(old.eh_frame - new.eh_frame);
    int64_t hdr = (int64_t)(old.eh_frame_hdr - new.eh_frame_hdr);
    if (code == sum->code && eh_frame == sum->eh_frame && hdr == sum->eh_frame_hdr)
        return true;
    return fail(err, NULL,
                "internal error: predicted to save %" PRId64 " + %" PRId64 " + %" PRId64
                " bytes (code, .eh_frame, .eh_frame_hdr), measured %" PRId64
                " + %" PRId64 " + %" PRId64 "; nothing was written",
                sum->code, sum->eh_frame, sum->eh_frame_hdr, code, eh_frame, hdr);
}

/* --drop-alignment: inside of functions, too. The result with the no-ops put back would
 * be what it was, so that is what is verified. */
static bool unpad_set(struct link *link, struct set *set, struct error *err)
{
    struct arena *stage = arena_new();
    struct program *program = NULL;
    const struct objects padded = set->objects;
    struct lift_options lift = lift_options_of(link->options);
    lift.decoder = link->decoder;
    lift.workers = link->workers;
    lift.loose = set->archive != NO_INDEX;
    lift.unused = set->unused;
    lift.unused_count = set->unused ? set->objects.count : 0;
    bool more = false;
    bool ok = program_lift(stage, &padded, link->rows, &lift, &program, err) &&
              program_unpad(link->session, program, &set->objects, &more, err) &&
              (!more || link->options->no_verify ||
               unpad_verify(&padded, &set->objects, link->workers, err));
    if (ok && link->options->verbose)
        fprintf(stderr, "mo-link: dropped %" PRId64 " bytes of alignment\n",
                (int64_t)(sizes_of(&padded).text - sizes_of(&set->objects).text));
    arena_free(stage);
    return ok;
}

/* Functions that lie side by side share unwind entries, as helpers do anyway. Behind the
 * check of the rest, which compares entry with entry; this step proves itself. */
static bool unite_entries(struct link *link, const struct set *set,
                          struct objects *objects, struct error *err)
{
    if ((link->options->without & TECHNIQUE_UNITE) != 0 ||
        objects->items == set->objects.items)
        return true;
    const struct object **items =
        arena_copy(link->session, objects->items, objects->count * sizeof *items);
    for (uint32_t i = 0; i < objects->count; i++) {
        if (!frames_unite(link->session, objects->items[i], link->rows, &items[i], err))
            return false;
    }
    struct sizes old = sizes_of(objects);
    objects->items = items;
    struct sizes new = sizes_of(objects);
    link->report.shared_entries += (int64_t)(old.eh_frame - new.eh_frame) +
                                   (int64_t)(old.eh_frame_hdr - new.eh_frame_hdr);
    return true;
}

static bool outline_set(struct link *link, const struct set *given,
                        struct objects *after, struct error *err)
{
    struct savings sum = {0};
    struct set folded = *given;
    struct fold_job job = {link->session, link->options, link->rows,
                           link->decoder, link->workers, &link->report};
    if (link->options->fold && given->objects.count > 0 &&
        !fold_set(&job, given, &folded, err))
        return false;
    if (link->options->drop_alignment && given->objects.count > 0 &&
        !unpad_set(link, &folded, err))
        return false;
    const struct set *set = &folded;
    bool more = set->objects.count > 0;
    *after = set->objects;
    for (uint32_t round = 1; more && round <= 1 + link->options->reruns; round++) {
        if (!run_round(link, set, round, after, &sum, &more, err))
            return false;
    }
    if (!join_helper_objects(link, set, after, err))
        return false;
    progress_at(link->progress, "verifying", 0);
    if (set->archive != NO_INDEX || link->known_link)
        loosen_helpers(link, after);
    return check_savings(set, after, &sum, err) &&
           (link->options->no_verify ||
            outline_verify(&set->objects, after, link->workers, err)) &&
           unite_entries(link, set, after, err);
}

/* --- all sets --- */

static bool look_at_sets(struct link *link, struct error *err)
{
    const struct options *options = link->options;
    if (options->dump == DUMP_NONE && !options->explain)
        return true;
    for (uint32_t i = 0; i < link->before.count; i++) {
        const struct set *set = &link->before.items[i];
        if (set->objects.count > 0 &&
            !dump_set(stdout, options, set->archive != NO_INDEX, &set->objects,
                      link->rows, err))
            return false;
    }
    return true;
}

/* A proof that nothing else moves along: see outliner/rewrite/shake.c. */
static bool shake_set(struct link *link, struct objects *objects, struct error *err)
{
    struct arena *stage = arena_new();
    struct program *program = NULL;
    struct objects shaken;
    struct lift_options lift = lift_options_of(link->options);
    lift.decoder = link->decoder;
    bool ok =
        program_lift(stage, objects, link->rows, &lift, &program, err) &&
        program_shake(link->session, program, link->options->shake, &shaken, err) &&
        (link->options->no_verify || shake_verify(objects, &shaken, err));
    if (ok)
        *objects = shaken;
    arena_free(stage);
    return ok;
}

static bool work_on_sets(struct link *link, struct error *err)
{
    struct sets *after = &link->after;
    after->count = link->before.count;
    after->items = arena_copy(link->session, link->before.items,
                              after->count * sizeof *after->items);
    for (uint32_t i = 0; link->options->outline && i < after->count; i++) {
        if (!outline_set(link, &link->before.items[i], &after->items[i].objects, err))
            return false;
    }
    for (uint32_t i = 0; link->options->shake && i < after->count; i++) {
        struct objects *objects = &after->items[i].objects;
        if (objects->count > 0 && !shake_set(link, objects, err))
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

static struct bytes report_bytes(struct link *link)
{
    const struct options *options = link->options;
    switch ((enum report_format)options->report) {
    case REPORT_JSON: return report_json(link->session, &link->report);
    case REPORT_TEXT: return report_text(link->session, &link->report);
    case REPORT_HTML: return report_html(link->session, &link->report);
    case REPORT_NONE:
    case REPORT_COUNT: break;
    }
    return (struct bytes){0};
}

static void measure(struct link *link)
{
    const struct options *options = link->options;
    link->report.wants_bodies = options->report == REPORT_HTML;
    for (uint32_t i = 0; i < link->before.count; i++) {
        report_before(&link->report, &link->before.items[i].objects);
        report_after(&link->report, &link->after.items[i].objects);
    }
    link->report.outlined = options->outline;
    link->report.verified = options->outline && !options->no_verify;
    link->report.dry_run = options->dry_run;
}

static void print(struct bytes text)
{
    if (text.size)
        fwrite(text.at, 1, text.size, stdout); /* main() looks at ferror(stdout) */
}

/* False, with err->over_limit: it has grown too much. */
static bool pass_gate(struct link *link, struct bytes *out, struct error *err)
{
    const struct options *options = link->options;
    struct limits limits = {0};
    *out = (struct bytes){0};
    if (!options->baseline)
        return true;
    for (uint32_t i = 0; i < options->max_growth.count; i++) {
        struct limit limit;
        if (limit_parse(options->max_growth.items[i], &limit))
            array_push(link->session, &limits, limit);
    }
    struct baseline baseline = {
        options->baseline, options->compare ? NULL : &link->report, options->compare};
    return baseline_compare(link->session, &baseline, &limits, out, err);
}

/* --compare: two reports, and no run. */
static bool compare(struct link *link, struct error *err)
{
    struct bytes text;
    bool passed = pass_gate(link, &text, err);
    print(text);
    return passed;
}

/* A file beside the objects. */
struct side_file {
    const char *path; /* NULL: not wanted */
    struct bytes bytes;
};

static void remove_side_files(const struct side_file *files, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (files[i].path)
            remove(files[i].path);
    }
}

static bool write_side_files(const struct side_file *files, uint32_t count,
                             struct error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        if (files[i].path && !file_write(files[i].path, files[i].bytes, err)) {
            remove_side_files(files, i);
            return false;
        }
    }
    return true;
}

/* The objects, and what is told of them: all or nothing. Side files are written first,
 * since they can be taken back. A closed gate keeps the objects back, so that the next
 * `make` does not take them for made; the side files are what tells why. */
static bool write_all(struct link *link, struct error *err)
{
    const struct options *options = link->options;
    if (options->report != REPORT_NONE || options->baseline)
        measure(link);
    struct bytes report = report_bytes(link), gate;
    bool passed = pass_gate(link, &gate, err);
    if (!passed && !err->over_limit)
        return false;
    struct side_file files[] = {
        {options->report_path,                      report},
        {options->remarks,                          {0}   },
        {link->remarks ? listing_name(link) : NULL, {0}   },
    };
    uint32_t count = sizeof files / sizeof *files;
    if (link->remarks) {
        files[1].bytes = remarks_yaml(link->remarks);
        files[2].bytes = remarks_listing(link->remarks);
    }
    if (!write_side_files(files, count, err))
        return false;
    if (passed &&
        !outputs_write(link->session, options, &link->inputs, &link->after, err)) {
        remove_side_files(files, count);
        return false;
    }
    if (options->print)
        print_sides(stdout, &link->before, &link->after, options->print);
    if (!options->report_path)
        print(report);
    print(gate);
    return passed;
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
    return write_all(link, err);
}

bool link_sets(struct arena *session, const struct options *options,
               const struct sets *before, struct sets *after, struct bytes *report,
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
    if (options->report != REPORT_NONE) {
        measure(&link);
        *report = report_bytes(&link);
    }
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
        link.remarks = remarks_new(session, listing_name(&link));
    bool ok = options->compare ? compare(&link, err) : run(&link, err);
    arena_free(session);
    return ok;
}
