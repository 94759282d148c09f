/* SPDX-License-Identifier: MIT
 *
 * What is left to check once it is known where every instruction went: code that has
 * not changed, data, debug information, unwind entries, symbols. No object's answer to
 * one of these depends on another's, nor on what else is asked, so several workers take
 * some objects and one of the questions each; a link may have made one object of all.
 */
#include "outliner/verify/verify.h"

/* Bytes of sections that make a part: some hundred microseconds. */
enum { PART_BYTES = 256 * 1024 };

struct part {
    uint32_t first, end; /* objects */
    struct error *errs;  /* by question */
};
struct parts {
    const struct verify *verify;
    struct verify *workers; /* by worker: copies */
    array_of(struct part) items;
};

static bool check_unchanged(struct verify *verify, struct error *err)
{
    for (uint32_t i = verify->first; i < verify->end; i++) {
        const struct object *object = verify->before.objects->items[i];
        for (uint32_t s = 1; s < object->section_count; s++) {
            if (verify->maps[i][s].identity && !verify_unchanged(verify, i, s, err))
                return false;
        }
    }
    return true;
}

/* Debug information is read side by side once the sections are known to correspond. */
static bool check_contents(struct verify *verify, struct error *err)
{
    return verify_data(verify, err) && verify_debug(verify, err);
}

static bool (*const questions[])(struct verify *verify, struct error *err) = {
    check_unchanged, check_contents, verify_frames, verify_symbols};
enum { QUESTIONS = sizeof questions / sizeof *questions };

static void check_part(void *context, uint32_t number, uint32_t worker)
{
    struct parts *parts = context;
    struct part *part = &parts->items.items[number / QUESTIONS];
    struct verify *verify = &parts->workers[worker];
    verify->first = part->first;
    verify->end = part->end;
    (void)questions[number % QUESTIONS](verify, &part->errs[number % QUESTIONS]);
}

/* The first one that one worker alone would have met. */
static bool tell_errors(const struct parts *parts, struct error *err)
{
    for (uint32_t i = 0; i < parts->items.count * QUESTIONS; i++) {
        const struct part *part = &parts->items.items[i / QUESTIONS];
        if (part->errs[i % QUESTIONS].set)
            return fail(err, NULL, "%s", part->errs[i % QUESTIONS].message);
    }
    return true;
}

static uint64_t bytes_of(const struct object *object)
{
    uint64_t bytes = 0;
    for (uint32_t s = 1; s < object->section_count; s++)
        bytes += object->sections[s].data.size;
    return bytes;
}

static struct parts cut(const struct verify *verify)
{
    const struct objects *objects = verify->before.objects;
    struct parts parts = {.verify = verify};
    uint64_t bytes = PART_BYTES; /* in the part at hand */
    for (uint32_t i = 0; i < objects->count; i++) {
        if (bytes >= PART_BYTES) {
            struct part part = {
                .first = i,
                .errs = arena_new_array(verify->arena, struct error, QUESTIONS)};
            array_push(verify->arena, &parts.items, part);
            bytes = 0;
        }
        parts.items.items[parts.items.count - 1].end = i + 1;
        bytes += bytes_of(objects->items[i]);
    }
    return parts;
}

bool verify_objects(struct verify *verify, struct error *err)
{
    struct parts parts = cut(verify);
    parts.workers = arena_new_array(verify->arena, struct verify, MOST_WORKERS);
    for (uint32_t w = 0; w < MOST_WORKERS && w < verify->workers + !verify->workers;
         w++)
        parts.workers[w] = verify_copy(verify);
    parallel_do(verify->workers, parts.items.count * QUESTIONS, check_part, &parts);
    for (uint32_t w = 0; w < MOST_WORKERS && parts.workers[w].arena; w++)
        arena_free(parts.workers[w].arena);
    return tell_errors(&parts, err);
}
