/* SPDX-License-Identifier: MIT
 *
 * What is left to check once it is known where every instruction went: code that has
 * not changed, data, debug information, unwind entries, symbols. No object's answer
 * depends on another's, so several workers take some objects each.
 */
#include "outliner/verify/verify.h"

/* Bytes of sections that make a part: some hundred microseconds. */
enum { PART_BYTES = 256 * 1024 };

struct part {
    uint32_t first, end; /* objects */
    struct error err;
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

static void check_part(void *context, uint32_t number, uint32_t worker)
{
    struct parts *parts = context;
    struct part *part = &parts->items.items[number];
    struct verify *verify = &parts->workers[worker];
    verify->first = part->first;
    verify->end = part->end;
    (void)(check_unchanged(verify, &part->err) && verify_data(verify, &part->err) &&
           verify_debug(verify, &part->err) && verify_frames(verify, &part->err) &&
           verify_symbols(verify, &part->err));
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
            struct part part = {.first = i};
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
    parallel_do(verify->workers, parts.items.count, check_part, &parts);
    for (uint32_t w = 0; w < MOST_WORKERS && parts.workers[w].arena; w++)
        arena_free(parts.workers[w].arena);
    for (uint32_t i = 0; i < parts.items.count; i++) {
        if (parts.items.items[i].err.set)
            return fail(err, NULL, "%s", parts.items.items[i].err.message);
    }
    return true;
}
