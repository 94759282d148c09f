/* SPDX-License-Identifier: MIT
 *
 * mo-link: see README.md for what it does, src/link.c for how.
 *
 * The only file that exits and that prints errors.
 */
#include "mo/link.h"
#include "mo/options.h"

#include <stdio.h>
#include <stdlib.h>

enum { EXIT_INPUT = 1, EXIT_USAGE = 2, EXIT_SIZE = 3 };

static int complain(const struct error *err, int status)
{
    fprintf(stderr, "mo-link: error: %s\n", err->message);
    return status;
}

/* A full disk shows when standard output is flushed, not before. */
static int finish(struct error *err)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        (void)fail_errno(err, NULL, "cannot write to standard output");
        return complain(err, EXIT_INPUT);
    }
    return EXIT_SUCCESS;
}

static int run(struct arena *session, int argc, char **argv)
{
    struct error err = {0};
    struct options options;
    if (!options_parse(session, argc, argv, &options, &err))
        return complain(&err, EXIT_USAGE);
    if (options.help)
        fputs(options_help(session), stdout);
    else if (options.version)
        puts("mo-link " MO_VERSION);
    else if (options.command && !options_run_command(session, &options, &err))
        return complain(&err, EXIT_USAGE); /* it does not return otherwise */
    else if (!options_load(session, &options, &err) || !link_run(&options, &err))
        return complain(&err, err.over_limit ? EXIT_SIZE : EXIT_INPUT);
    return finish(&err);
}

int main(int argc, char **argv)
{
    struct arena *session = arena_new();
    int status = run(session, argc, argv);
    arena_free(session);
    return status;
}
