/* SPDX-License-Identifier: MIT
 *
 * The middle of it: what the link has loaded, outlined as one set. It happens in a child
 * process, so that no input, however strange, can cost the user more than the gain: the
 * first link's output is there already.
 */
#include "ld.h"

#include "mo/link.h"
#include "mo/outputs.h"

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_FAILED = 1, EXIT_NOTHING = 3, MOST_NAMES = 3 };

static void name_intermediate(const struct text_list *names)
{
    if (names->count == 0)
        return;
    fprintf(stderr, "mo-link: left to link-time optimisation, not outlined:");
    for (uint32_t i = 0; i < names->count && i < MOST_NAMES; i++)
        fprintf(stderr, "%s %s", i > 0 ? "," : "", names->items[i]);
    if (names->count > MOST_NAMES)
        fprintf(stderr, " and %u more", (unsigned)(names->count - MOST_NAMES));
    fputc('\n', stderr);
}

static bool changed(const struct unit_list *units, const struct objects *after)
{
    if (after->count != units->count)
        return true;
    for (uint32_t i = 0; i < units->count; i++) {
        if (after->items[i] != units->objects[i])
            return true;
    }
    return false;
}

/* For deliver_reports(). */
static bool keep_reports(struct arena *session, const struct outline_job *job,
                         const struct report_texts *reports, struct error *err)
{
    for (uint32_t i = 0; i < REPORT_COUNT; i++) {
        const char *path = report_in_scratch(session, job->scratch, (enum report_format)i);
        if (job->options->reports[i].wanted &&
            !file_write(path, reports->by_format[i], err))
            return false;
    }
    return true;
}

static int outline_units(struct arena *session, const struct outline_job *job,
                         const struct unit_list *units, struct error *err)
{
    struct set set = {
        .name = set_name_clean(session, path_base(job->output)),
        .archive = NO_INDEX,
        .objects = {units->objects, units->count},
        .unused = units->unused
    };
    struct sets before = {&set, 1}, after = {0};
    struct report_texts reports = {0};
    if (!link_sets(session, job->options, &before, &after, &reports, err) ||
        !keep_reports(session, job, &reports, err))
        return EXIT_FAILED;
    const struct objects *objects = &after.items[0].objects;
    if (job->options->dry_run || !changed(units, objects))
        return EXIT_NOTHING;
    return outline_write(session, job, units, objects, err) ? 0 : EXIT_FAILED;
}

static int work(struct arena *session, const struct outline_job *job)
{
    struct error err = {0};
    struct unit_list units = {0};
    int status = EXIT_FAILED;
    if (outline_read(session, job, &units, &err)) {
        name_intermediate(&units.intermediate);
        status = units.count == 0 ? EXIT_NOTHING
                                  : outline_units(session, job, &units, &err);
    }
    if (status == EXIT_FAILED)
        fprintf(stderr, "mo-link: %s: linked without outlining: %s\n", job->output,
                err.message);
    fflush(NULL);
    return status;
}

enum outline_result outline_apart(struct arena *session, const struct outline_job *job)
{
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        signals_forget();
        _exit(work(session, job));
    }
    while (child > 0 && waitpid(child, &status, 0) < 0) {
        if (errno != EINTR)
            return OUTLINE_FAILED;
    }
    if (child > 0 && WIFEXITED(status)) {
        if (WEXITSTATUS(status) == EXIT_FAILED)
            return OUTLINE_FAILED;
        return WEXITSTATUS(status) == 0 ? OUTLINE_DONE : OUTLINE_NOTHING;
    }
    if (!signals_caught())
        fprintf(stderr, "mo-link: %s: linked without outlining, which %s\n", job->output,
                child > 0 && signals_interrupt(WTERMSIG(status)) ? "was interrupted"
                                                                 : "crashed");
    return OUTLINE_FAILED;
}
