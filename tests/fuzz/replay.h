/* SPDX-License-Identifier: MIT
 *
 * A fuzz target and the program that replays what it found.
 *
 *     clang -fsanitize=fuzzer,address,undefined -DMO_LIBFUZZER ...
 *
 * makes a target; without MO_LIBFUZZER there is a main(), which hands the files named as
 * arguments to the target one by one.
 */
#ifndef MO_TESTS_REPLAY_H
#define MO_TESTS_REPLAY_H

#include "mo/object.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifndef MO_LIBFUZZER
int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        struct arena *arena = arena_new();
        struct bytes image;
        struct error err = {0};
        bool good = file_read(arena, argv[i], &image, &err);
        if (good)
            (void)LLVMFuzzerTestOneInput(image.at, image.size);
        else
            fprintf(stderr, "%s\n", err.message);
        arena_free(arena);
        if (!good)
            return 1;
    }
    return 0;
}
#endif

#endif
