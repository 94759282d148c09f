/* SPDX-License-Identifier: MIT
 *
 * The whole pipeline against arbitrary bytes: each input becomes an error, or an output
 * that the verifier has accepted. An internal error means that the tool would have been
 * wrong without its checks: with MO_FUZZ_STRICT in the environment it counts as a crash.
 * Nothing is written (--dry-run).
 */
#include "mo/link.h"
#include "tests/fuzz/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void run(const char *path, bool directory)
{
    const char *inputs[] = {path};
    const struct options options = {
        .inputs = {inputs, 1, 1},
        .outline = true,
        .reruns = 1,
        .dry_run = true,
        .min_saving = 1,
        .jobs = 1,
        .output = directory ? "fuzz/" : NULL,
        .output_is_directory = directory,
    };
    struct error err = {0};
    if (!link_run(&options, &err) && getenv("MO_FUZZ_STRICT") &&
        strstr(err.message, "internal error")) {
        fprintf(stderr, "%s\n", err.message);
        abort();
    }
}

/* The front door takes paths, so the bytes go through a file in memory. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[] = "/dev/shm/mo-fuzz-XXXXXX";
    int file = mkstemp(path);
    /* A thin archive would read files of its own choice. */
    bool thin = size > 2 && data[2] == 't';
    if (file < 0 || write(file, data, size) != (ssize_t)size)
        abort();
    close(file);
    for (int directory = 0; !thin && directory < 2; directory++)
        run(path, directory);
    unlink(path);
    return 0;
}
