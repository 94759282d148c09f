/* SPDX-License-Identifier: MIT
 *
 * Tokens per second and bytes per token of the suffix tree, on strings of growing size
 * that look like code: mostly fresh or rare tokens, some very frequent ones, and copies
 * of earlier stretches. Both columns should stay level: that is what linear means.
 *
 *     suffixtree_bench [LARGEST]   made-up strings, up to LARGEST tokens
 *     suffixtree_bench -f FILE...  strings of 32-bit words from files: small numbers, and
 *                                  UINT32_MAX for separators
 */
#include "mo/suffixtree.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t random_state = 1;

/* xorshift64*, Vigna 2016 */
static uint32_t random_below(uint32_t limit)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    uint64_t high = (random_state * UINT64_C(0x2545f4914f6cdd1d)) >> 32;
    return (uint32_t)((high * limit) >> 32);
}

static void make_code(uint32_t *values, uint32_t count)
{
    uint32_t fresh = 100000;
    for (uint32_t i = 0; i < count;) {
        uint32_t kind = random_below(100);
        if (i > 100 && kind < 10) {
            uint32_t from = random_below(i - 50), length = 2 + random_below(20);
            for (; length && i < count; length--)
                values[i++] = values[from++];
        } else if (kind < 40) {
            values[i++] = fresh++;
        } else if (kind < 80) {
            values[i++] = random_below(50);
        } else {
            values[i++] = random_below(100000);
        }
    }
}

static void make_equal(uint32_t *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        values[i] = 7;
}

static void make_binary(uint32_t *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        values[i] = random_below(2);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Values from here on separate. */
static uint32_t alphabet_of(const uint32_t *values, uint32_t count)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < count; i++)
        most = values[i] != UINT32_MAX && values[i] > most ? values[i] : most;
    return most + 1;
}

static void measure(const char *name, uint32_t *values, uint32_t count)
{
    struct arena *arena = arena_new();
    uint64_t peak;
    uint32_t alphabet = alphabet_of(values, count);
    double start = now();
    struct repeats repeats =
        suffixtree_repeats_measured(arena, values, count, alphabet, 2, &peak);
    double seconds = now() - start;
    printf("%-8s %10" PRIu32 " %10" PRIu32 " %8.3f %8.2f %8.1f\n", name, count,
           repeats.count, seconds, count / seconds / 1e6, (double)peak / count);
    arena_free(arena);
}

static void print_titles(void)
{
    printf("%-8s %10s %10s %8s %8s %8s\n", "text", "tokens", "repeats", "seconds", "M/s",
           "B/token");
}

static int measure_files(char *const *paths)
{
    print_titles();
    for (; *paths; paths++) {
        FILE *file = fopen(*paths, "rb");
        if (!file || fseek(file, 0, SEEK_END) != 0)
            return 1;
        size_t count = (size_t)ftell(file) / sizeof(uint32_t);
        uint32_t *values = malloc(sizeof *values * (count ? count : 1));
        rewind(file);
        if (!values || fread(values, sizeof *values, count, file) != count)
            return 1;
        measure("file", values, (uint32_t)count);
        free(values);
        fclose(file);
    }
    return 0;
}

static int measure_kinds(uint32_t largest)
{
    static const struct {
        const char *name;
        void (*make)(uint32_t *values, uint32_t count);
    } kinds[] = {
        {"code",   make_code  },
        {"binary", make_binary},
        {"equal",  make_equal }
    };
    uint32_t *values = malloc(sizeof *values * largest);
    if (!values)
        return 1;
    print_titles();
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++)
        for (uint32_t count = largest / 64; count && count <= largest; count *= 4) {
            kinds[kind].make(values, count);
            measure(kinds[kind].name, values, count);
        }
    free(values);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "-f") == 0)
        return measure_files(argv + 2);
    return measure_kinds(argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 4000000);
}
