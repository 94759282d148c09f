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

/* Sections of an object. A merged object has thousands of tables: several parts. */
struct stretch {
    uint32_t object, first, end;
};

struct part {
    uint32_t first, count; /* stretches */
    struct arena *arena;
    struct row_table *rows;
    struct error err;
};

struct job {
    const struct objects *objects;
    array_of(struct stretch) stretches;
    struct frames_piece *pieces; /* one for each of them */
    array_of(struct part) parts;
};

static void begin_part(struct job *job, struct arena *stage,
                       const struct row_table *rows)
{
    struct part part = {.first = job->stretches.count, .arena = arena_new()};
    part.rows = row_table_over(part.arena, rows);
    array_push(stage, &job->parts, part);
}

static void begin_stretch(struct job *job, struct arena *stage, struct stretch table)
{
    array_push(stage, &job->stretches, table);
    job->parts.items[job->parts.count - 1].count++;
}

/* The next table, of `bytes` that the part at hand has already. */
static void add_table(struct job *job, struct arena *stage, const struct row_table *rows,
                      struct stretch table, uint64_t *bytes)
{
    const struct stretch *last =
        job->stretches.count ? &job->stretches.items[job->stretches.count - 1] : NULL;
    bool full = !last || *bytes >= PART_BYTES;
    if (full) {
        begin_part(job, stage, rows);
        *bytes = 0;
    }
    if (full || last->object != table.object)
        begin_stretch(job, stage, table);
    const struct object *object = job->objects->items[table.object];
    *bytes += object->sections[table.first].data.size;
    job->stretches.items[job->stretches.count - 1].end = table.end;
}

static void cut(struct job *job, struct arena *stage, const struct row_table *rows)
{
    uint64_t bytes = 0;
    for (uint32_t o = 0; o < job->objects->count; o++) {
        const struct object *object = job->objects->items[o];
        for (uint32_t s = 1; s < object->section_count; s++) {
            if (section_is_frame(&object->sections[s]))
                add_table(job, stage, rows, (struct stretch){o, s, s + 1}, &bytes);
        }
    }
    job->pieces = arena_new_array(stage, struct frames_piece, job->stretches.count);
}

static void read_part(void *context, uint32_t number, uint32_t worker)
{
    const struct job *job = context;
    struct part *part = &job->parts.items[number];
    (void)worker;
    for (uint32_t i = part->first; i < part->first + part->count; i++) {
        struct stretch stretch = job->stretches.items[i];
        if (!frames_read_sections(part->arena, job->objects->items[stretch.object],
                                  stretch.first, stretch.end, part->rows,
                                  &job->pieces[i], &part->err))
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
        struct cie *cies = job->pieces[i].cies;
        const struct fde *fdes = job->pieces[i].fdes;
        for (uint32_t c = 0; c < job->pieces[i].cie_count; c++)
            if (cies[c].refusal == REFUSAL_NONE)
                renumber(&cies[c].initial_row, numbers, known);
        for (uint32_t f = 0; f < job->pieces[i].fde_count; f++) {
            struct row_change *changes =
                (struct row_change *)(uintptr_t)fdes[f].changes;
            for (uint32_t c = 0; c < fdes[f].change_count; c++)
                renumber(&changes[c].row, numbers, known);
        }
    }
}

static bool settle(const struct job *job, struct arena *arena, struct row_table *rows,
                   struct error *err)
{
    uint32_t known = row_table_count(rows);
    bool ok = true;
    for (uint32_t i = 0; i < job->parts.count; i++) {
        struct part *part = &job->parts.items[i];
        if (ok && part->err.set)
            ok = fail(err, NULL, "%s", part->err.message);
        if (ok)
            settle_rows(job, part, rows, known);
        arena_adopt(arena, part->arena);
    }
    return ok;
}

static struct frames *join_all(const struct job *job, struct arena *arena)
{
    struct frames *all = arena_new_array(arena, struct frames, job->objects->count);
    for (uint32_t i = 0, count; i < job->stretches.count; i += count) {
        uint32_t object = job->stretches.items[i].object;
        count = 1;
        while (i + count < job->stretches.count &&
               job->stretches.items[i + count].object == object)
            count++;
        all[object] = frames_join(arena, &job->pieces[i], count);
    }
    return all;
}

bool frames_read_all(struct arena *arena, const struct objects *objects,
                     struct row_table *rows, uint32_t workers,
                     const struct frames **out, struct error *err)
{
    struct arena *stage = arena_new();
    struct job job = {.objects = objects};
    cut(&job, stage, rows);
    parallel_do(workers, job.parts.count, read_part, &job);
    bool ok = settle(&job, arena, rows, err);
    if (ok)
        *out = join_all(&job, arena);
    arena_free(stage);
    return ok;
}
