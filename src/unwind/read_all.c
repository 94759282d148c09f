/* SPDX-License-Identifier: MIT
 *
 * The FDEs of many objects, on several processors. Rows are numbered in the order in
 * which they are met, so every part numbers its new ones for itself; these get their
 * final numbers when all parts are done, in the order of the parts: the numbers are
 * those that one reader after the other would have given.
 *
 * libdwarf may be used by several threads, as long as each has its own Dwarf_Debug.
 */
#include "internal.h"

#include "mo/parallel.h"

/* Bytes of unwind tables that make a part: some hundred microseconds. */
enum { PART_BYTES = 32 * 1024 };

struct part {
    uint32_t first, count; /* objects */
    struct arena *arena;
    struct row_table *rows;
    struct error err;
};

struct job {
    const struct objects *objects;
    struct frames *frames; /* one for each object */
    array_of(struct part) parts;
};

static uint64_t frame_bytes(const struct object *object)
{
    uint64_t bytes = 0;
    for (uint32_t i = 1; i < object->section_count; i++)
        if (section_is_frame(&object->sections[i]))
            bytes += object->sections[i].data.size;
    return bytes;
}

static void cut(struct job *job, struct arena *stage, const struct row_table *rows)
{
    uint64_t bytes = PART_BYTES;
    for (uint32_t i = 0; i < job->objects->count; i++) {
        if (bytes >= PART_BYTES) {
            struct part part = {.first = i, .arena = arena_new()};
            part.rows = row_table_over(part.arena, rows);
            array_push(stage, &job->parts, part);
            bytes = 0;
        }
        job->parts.items[job->parts.count - 1].count++;
        bytes += frame_bytes(job->objects->items[i]);
    }
}

static void read_part(void *context, uint32_t number, uint32_t worker)
{
    const struct job *job = context;
    struct part *part = &job->parts.items[number];
    (void)worker;
    for (uint32_t i = part->first; i < part->first + part->count; i++) {
        if (!frames_read(part->arena, job->objects->items[i], part->rows,
                         &job->frames[i], &part->err))
            return;
    }
}

static void renumber(uint32_t *row, const uint32_t *numbers, uint32_t known)
{
    if (*row != ROW_NONE && *row >= known)
        *row = numbers[*row - known];
}

/* The rows of a part get the numbers that they have in the table below. */
static void settle_rows(const struct job *job, const struct part *part,
                        struct row_table *rows, uint32_t known)
{
    const uint32_t *numbers = row_table_numbers(part->arena, rows, part->rows);
    for (uint32_t i = part->first; i < part->first + part->count; i++) {
        struct cie *cies = (struct cie *)(uintptr_t)job->frames[i].cies;
        const struct fde *fdes = job->frames[i].fdes;
        for (uint32_t c = 0; c < job->frames[i].cie_count; c++)
            if (cies[c].refusal == REFUSAL_NONE)
                renumber(&cies[c].initial_row, numbers, known);
        for (uint32_t f = 0; f < job->frames[i].fde_count; f++) {
            struct row_change *changes =
                (struct row_change *)(uintptr_t)fdes[f].changes;
            for (uint32_t c = 0; c < fdes[f].change_count; c++)
                renumber(&changes[c].row, numbers, known);
        }
    }
}

bool frames_read_all(struct arena *arena, const struct objects *objects,
                     struct row_table *rows, uint32_t workers,
                     const struct frames **out, struct error *err)
{
    struct arena *stage = arena_new();
    struct job job = {.objects = objects,
                      .frames = arena_new_array(arena, struct frames, objects->count)};
    uint32_t known = row_table_count(rows);
    cut(&job, stage, rows);
    parallel_do(workers, job.parts.count, read_part, &job);
    bool ok = true;
    for (uint32_t i = 0; i < job.parts.count; i++) {
        struct part *part = &job.parts.items[i];
        if (ok && part->err.set)
            ok = fail(err, NULL, "%s", part->err.message);
        if (ok)
            settle_rows(&job, part, rows, known);
        arena_adopt(arena, part->arena);
    }
    *out = job.frames;
    arena_free(stage);
    return ok;
}
