/* SPDX-License-Identifier: MIT
 *
 * mo-link in the linker's place: `cc -B<prefix>/libexec/mo-link …` and nothing else.
 *
 * A link is done twice. The first time it is the user's own, with the question what it
 * loads; its output is complete and lies where it should. Then everything loaded is
 * outlined as one program, and the same link is done again with the new files in the
 * places of the old ones. Its output takes the place of the first one's only if the
 * linker was content, loaded the same, and the result is smaller. So whatever goes wrong
 * behind the first link costs the gain and nothing else.
 *
 * (To load what the linker would load ourselves, and link once, would save time. But
 * what a linker loads and drops is known to nobody but it: archive order, groups, weak
 * symbols, scripts, plugins, garbage collection.)
 *
 * What we cannot follow goes to the real linker as it came, and so does every link that
 * fails: what the user sees then are its messages and its status.
 */
#define _XOPEN_SOURCE 700 /* realpath() */
#include "ld.h"

#include "mo/array.h"
#include "mo/link.h"
#include "mo/outputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct step {
    struct arena *session;
    const char *real;
    struct command command;
    struct options options; /* of mo-link, from MO_LINK_FLAGS */
    const char *scratch;
    const char *map; /* where mold writes its map; NULL for the others */
    struct outcome first;
    struct trace trace;
    struct choice choice;
    struct places places;
    const char *target; /* the output, where it really lies; its mode */
    mode_t mode;
    struct extent before;
    double started, linked, outlined; /* seconds, for -v */
};

enum verdict { LINKED, PASS_ON, INTERRUPTED };

static void say(const struct step *step, const char *what, const char *detail)
{
    if (step->options.verbose)
        fprintf(stderr, "mo-link: %s: %s%s\n", step->command.output, what,
                detail ? detail : "");
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* --- before the first link --- */

/* MO_LINK_FLAGS, as if they stood on mo-link's own command line. */
static bool read_flags(struct step *step, struct error *err)
{
    static const char name[] = "MO_LINK_FLAGS";
    const char *flags = getenv(name);
    struct text_list words = {0};
    struct bytes text = {(const uint8_t *)flags, flags ? strlen(flags) : 0};
    if (!options_split(step->session, name, text, &words, err))
        return false;
    const char *const ours[] = {"mo-link", "--outline", "--reruns=2"};
    const char *const target[] = {"--set-name=link", "-o", "scratch/", "input"};
    char **all = arena_new_array(step->session, char *, words.count + 8);
    int count = 0;
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        all[count++] = arena_strdup(step->session, ours[i]);
    for (uint32_t i = 0; i < words.count; i++)
        all[count++] = arena_strdup(step->session, words.items[i]);
    for (size_t i = 0; i < sizeof target / sizeof *target; i++)
        all[count++] = arena_strdup(step->session, target[i]);
    struct error why = {0};
    if (!options_parse(step->session, count, all, &step->options, &why))
        return fail(err, NULL, "%s: %s", name, why.message);
    if (step->options.inputs.count != 1 || step->options.help ||
        step->options.version || step->options.baseline ||
        step->options.remarks || step->options.print)
        return fail(err, NULL, "%s: only options that say how to outline", name);
    if (!options_load(step->session, &step->options, err))
        return false;
    step->options.strip_debug |= step->command.strips_debug;
    for (uint32_t i = 0; i < step->command.wrap.count; i++)
        array_push(step->session, &step->options.wrap, step->command.wrap.items[i]);
    return true;
}

static const char *script_obstacle(struct step *step, const char *path,
                                   struct bytes text)
{
    struct arena *session = step->session;
    const char *word = script_names_files(session, text);
    if (word)
        return arena_format(session, "linker script %s names files: %s", path, word);
    word = places_read(session, &step->command, text, &step->places);
    return word ? arena_format(session, "linker script %s is not understood at %s",
                               path, word)
                : NULL;
}

/* A reason to leave the link to the real linker; NULL: we can follow it. */
static const char *obstacle(struct step *step)
{
    struct arena *session = step->session;
    const struct command *command = &step->command;
    const char *why = NULL;
    struct bytes text = {0};
    if (command->strange)
        return arena_format(session, "%s is not understood", command->strange);
    for (uint32_t i = 0; !why && i < command->scripts.count; i++) {
        const char *path = command->scripts.items[i];
        why = script_open(session, command, path, &text)
                  ? script_obstacle(step, path, text)
                  : arena_format(session, "linker script %s cannot be read", path);
    }
    /* Linkers read what is no object as one more script. */
    for (uint32_t i = 0; !why && i < command->count; i++) {
        const struct word *word = &command->words[i];
        if (word->role == WORD_FILE && script_is(session, word->text, &text))
            why = script_obstacle(step, word->text, text);
    }
    return why;
}

static bool is_mold(const char *path)
{
    char target[4096];
    ssize_t size = readlink(path, target, sizeof target - 1);
    target[size > 0 ? size : 0] = '\0';
    return strstr(path_base(path), "mold") || strstr(path_base(target), "mold");
}

/* --- the two links --- */

static bool succeeded(const struct outcome *outcome)
{
    return WIFEXITED(outcome->status) && WEXITSTATUS(outcome->status) == 0;
}

static struct trace read_trace(struct step *step, const struct outcome *outcome)
{
    struct bytes text = {0};
    struct error ignored = {0};
    if (!step->map)
        return trace_read(step->session, outcome);
    if (!file_read(step->session, step->map, &text, &ignored))
        return (struct trace){0}; /* nothing was loaded that we may replace */
    return trace_read_map(step->session, text);
}

static enum verdict link_first(struct step *step)
{
    struct error err = {0};
    if (is_mold(step->real))
        step->map = step->command.map ? step->command.map
                                      : path_join(step->session, step->scratch, "map");
    struct arguments arguments =
        arguments_first(step->session, step->real, &step->command,
                        step->command.map ? NULL : step->map);
    if (!process_run(step->session, step->scratch, &arguments,
                     step->command.gc_sections, &step->first, &err)) {
        fprintf(stderr, "mo-link: %s\n", err.message);
        return PASS_ON;
    }
    if (WIFSIGNALED(step->first.status))
        return INTERRUPTED;
    if (!succeeded(&step->first))
        return PASS_ON;
    step->trace = read_trace(step, &step->first);
    return LINKED;
}

/* Where all code lies within reach of a branch, no linker needs veneers. */
enum { VENEER_FREE_SPAN = 120 * 1024 * 1024 };

static bool outline(struct step *step)
{
    step->choice = choose_inputs(step->session, &step->command, &step->trace,
                                 step->scratch);
    const char *fault =
        judge_measure(step->session, step->command.output, &step->before);
    if (fault) {
        say(step, "not outlined: ", fault);
        return false;
    }
    if (step->before.code_span < VENEER_FREE_SPAN)
        step->options.no_veneers = true;
    struct outline_job job = {&step->options, &step->choice, &step->trace,
                              &step->places, step->scratch, step->command.output};
    enum outline_result result = outline_apart(step->session, &job);
    step->outlined = seconds();
    if (result == OUTLINE_NOTHING)
        say(step, "nothing to outline", NULL);
    return result == OUTLINE_DONE;
}

/* Why the second link is not taken; NULL when it is. */
static const char *second_fault(struct step *step, const struct outcome *outcome,
                                const char *helpers, const char *output,
                                struct extent *after)
{
    if (!succeeded(outcome))
        return arena_format(step->session, "the linker refuses the outlined files: %.*s",
                            (int)outcome->err.size, (const char *)outcome->err.at);
    struct trace second = read_trace(step, outcome);
    const char *name =
        judge_traces(step->session, &step->trace, &second, &step->choice, helpers);
    if (name)
        return arena_format(step->session, "it would load other files: %s", name);
    const char *fault = judge_measure(step->session, output, after);
    if (fault)
        return fault;
    if (step->options.no_veneers && after->code_span >= VENEER_FREE_SPAN)
        return "it would need veneers";
    if (after->loaded >= step->before.loaded)
        return arena_format(step->session, "nothing gained (%llu bytes, %llu before)",
                            (unsigned long long)after->loaded,
                            (unsigned long long)step->before.loaded);
    return NULL;
}

static bool link_second(struct step *step)
{
    struct arena *session = step->session;
    struct outcome outcome = {0};
    struct error err = {0};
    struct extent after = {0};
    const char *helpers = path_join(session, step->scratch, HELPERS_FILE);
    const char *output =
        arena_format(session, "%s.mo-link-%ld", step->target, (long)getpid());
    struct arguments arguments =
        arguments_second(session, step->real, &step->command, &step->choice, helpers,
                         output, step->command.map ? NULL : step->map);
    const char *fault = NULL;
    if (!process_run(session, step->scratch, &arguments, step->command.gc_sections,
                     &outcome, &err))
        fault = err.message;
    else
        fault = second_fault(step, &outcome, helpers, output, &after);
    if (!fault && (chmod(output, step->mode) != 0 || rename(output, step->target) != 0))
        fault = "cannot rename the output";
    if (fault) {
        unlink(output);
        /* That nothing repeats is the way of small programs; all else is worth a line. */
        if (signals_caught())
            return false;
        if (after.loaded < step->before.loaded || step->options.verbose)
            fprintf(stderr, "mo-link: %s: linked without outlining: %s\n",
                    step->command.output, fault);
        return false;
    }
    say(step, "outlined: ",
        arena_format(session,
                     "%llu loaded bytes, %llu before (seconds: link %.2f, outlining "
                     "%.2f, link %.2f)",
                     (unsigned long long)after.loaded,
                     (unsigned long long)step->before.loaded,
                     step->linked - step->started, step->outlined - step->linked,
                     seconds() - step->outlined));
    struct delivery delivery = {session, &step->command, &step->choice, step->scratch,
                                output, step->map};
    deliver_output(&delivery, outcome.out);
    deliver_map(&delivery);
    return true;
}

/* --- the whole --- */

/* Where the first link's output lies, and whether another may take its place. GNU ld,
 * gold and mold write through a symbolic link, lld replaces it; behind a link that was
 * left is what they wrote. A device or a pipe cannot be replaced, nor a file of several
 * names, under which the user would find two programs. */
static bool find_target(struct step *step)
{
    struct stat status;
    char *real = realpath(step->command.output, NULL);
    if (!real)
        return false;
    step->target = arena_strdup(step->session, real);
    free(real);
    if (stat(step->target, &status) != 0 || !S_ISREG(status.st_mode))
        return false;
    step->mode = status.st_mode & 07777;
    if (status.st_nlink > 1)
        fprintf(stderr,
                "mo-link: %s: linked without outlining: it has other names (hard links)\n",
                step->command.output);
    return status.st_nlink == 1;
}

static enum verdict link_in_scratch(struct step *step)
{
    step->started = seconds();
    enum verdict verdict = link_first(step);
    step->linked = seconds();
    if (signals_caught())
        return INTERRUPTED;
    if (verdict != LINKED)
        return verdict;
    deliver_messages(&step->command, step->first.err);
    bool better = find_target(step) && outline(step) &&
                  !signals_caught() && link_second(step);
    if (signals_caught())
        return INTERRUPTED;
    if (better || step->options.dry_run)
        deliver_reports(step->session, &step->options, step->command.output,
                        step->scratch);
    /* The first link was silent about what the user wants to read. */
    return better || !step->command.prints ? LINKED : PASS_ON;
}

static enum verdict run(struct step *step)
{
    struct error err = {0};
    if (!scratch_make(step->session, &step->scratch, &err)) {
        fprintf(stderr, "mo-link: linked without outlining: %s\n", err.message);
        return PASS_ON;
    }
    enum verdict verdict = link_in_scratch(step);
    scratch_remove(step->session, step->scratch);
    return verdict;
}

/* What the user's own options print is part of the link; a report is not. */
static int end_linked(const struct step *step)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    fprintf(stderr, "mo-link: %s: cannot write to standard output\n",
            step->command.output);
    return step->command.prints ? 1 : 0;
}

static int step_run(struct step *step, int argc, char **argv)
{
    struct error err = {0};
    const char *const *words = NULL;
    uint32_t count = 0;
    if (!options_expand(step->session, argc, argv, &words, &count, &err)) {
        step->command.strange = "a response file that cannot be read";
    } else {
        step->command = command_read(step->session, words, count);
    }
    const struct command *command = &step->command;
    if (!real_find(step->session, argv[0], command->emulation, &step->real, &err) ||
        !read_flags(step, &err)) {
        fprintf(stderr, "mo-link: error: %s\n", err.message);
        return 2;
    }
    bool no_link = !command->strange &&
                   (command->file_count == 0 || command->relocatable);
    if (no_link || getenv("MO_LINK_DEPTH"))
        return real_exec(step->real, argv);
    const char *why = obstacle(step);
    if (why) {
        fprintf(stderr, "mo-link: %s: linked without outlining: %s\n",
                command->output ? command->output : "link", why);
        return real_exec(step->real, argv);
    }
    signals_catch();
    switch (run(step)) {
    case LINKED: return end_linked(step);
    case INTERRUPTED:
        return signals_end(WIFSIGNALED(step->first.status) ? WTERMSIG(step->first.status)
                                                           : signals_caught());
    case PASS_ON: break;
    }
    return real_exec(step->real, argv);
}

int main(int argc, char **argv)
{
    struct arena *session = arena_new();
    struct step step = {.session = session};
    int status = step_run(&step, argc, argv);
    arena_free(session);
    return status;
}
