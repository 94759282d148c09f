/* SPDX-License-Identifier: MIT
 *
 * The independent checker. The rewriter knows what it wants to do; this knows only the
 * two sets of objects, and shares nothing with it but readers and decoders. It answers
 * one question: if every helper is put back where it is called from, is that the
 * program that came in?
 *
 * How: each code section of `before` is walked in step with its counterpart in `after`.
 * Where `after` calls or jumps to a helper and `before` does not, the walk goes on
 * inside the helper, with a stack of what has been entered (site.c). Every
 * instruction of `before` must be met exactly once, in order, with the same bytes but
 * for fields that linkers fill and for SP operands, which must have grown by exactly
 * what the entered helpers have put on the stack. On the way the walk notes which old
 * position became which new one, and all references are judged by that: a branch, a
 * jump table, a symbol, an LSDA may mean a new position only if it meant the old one.
 *
 * It also asks at every instruction whether an unwinder would find the same frame, and
 * a few things that need no dataflow: nothing in a called helper touches the return
 * address or moves SP. What would need dataflow is taken on trust: that the register
 * which keeps the link register is dead, that no veneer register is live, that the red
 * zone of a function with a frame pointer is empty, that nothing is passed on the stack
 * to those who are called from inside of helpers (they must not look for it: blind.c). So is the meaning of indirect
 * jumps: which of them go through a table is asked of the lifter.
 */
#include "outliner/verify/verify.h"

#include "mo/plan.h"

#include <stdarg.h>
#include <stdio.h>

const struct section *spot_section(const struct side *side, struct spot spot)
{
    return &side->objects->items[spot.object]->sections[spot.section];
}

bool verify_fail(const struct verify *verify, struct spot before, struct spot after,
                 struct error *err, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    struct place old = object_place(verify->before.objects->items[before.object],
                                    before.section, before.offset);
    struct place new = object_place(verify->after.objects->items[after.object],
                                    after.section, after.offset);
    return fail(err, &old,
                "internal error: the output is not the same program: %s (there: %s: "
                "%s+0x%x, %s+0x%x)",
                text, new.file ? new.file : "?", new.section ? new.section : "?",
                after.offset, new.function ? new.function : "?",
                (unsigned)new.function_offset);
}

struct reading {
    struct side *sides[2];
    struct arena **arenas; /* by worker */
};

static void read_object(struct arena *arena, struct side *side, uint32_t number)
{
    const struct object *object = side->objects->items[number];
    lsdas_read(arena, object, &side->frames[number], &side->lsdas[number]);
    debug_read(arena, object, &side->debug[number]);
}

/* The first two parts are the names of the two sides, one is the functions of the input,
 * the others are the sides' objects. */
static void read_part(void *context, uint32_t number, uint32_t worker)
{
    const struct reading *reading = context;
    struct arena *arena = reading->arenas[worker];
    if (number < 2) {
        verify_index_names(arena, reading->sides[number]);
        return;
    }
    if (number == 2) {
        verify_index_functions(arena, reading->sides[0]);
        return;
    }
    number -= 3;
    uint32_t count = reading->sides[0]->objects->count;
    if (number < count)
        read_object(arena, reading->sides[0], number);
    else
        read_object(arena, reading->sides[1], number - count);
}

static bool start_side(struct verify *verify, const struct objects *objects,
                       struct side *side, struct error *err)
{
    side->objects = objects;
    side->nearby = arena_new_one(verify->arena, struct nearby);
    side->lsdas = arena_new_array(verify->arena, struct lsdas, objects->count);
    side->debug = arena_new_array(verify->arena, struct debug, objects->count);
    return frames_read_all(verify->arena, objects, verify->rows, verify->workers,
                           &side->frames, err);
}

static bool read_sides(struct verify *verify, const struct objects *before,
                       const struct objects *after, struct error *err)
{
    if (!start_side(verify, before, &verify->before, err) ||
        !start_side(verify, after, &verify->after, err))
        return false;
    struct reading reading = {{&verify->before, &verify->after},
                              parallel_arenas(verify->arena, verify->workers)};
    parallel_do(verify->workers, 3 + before->count + after->count, read_part, &reading);
    parallel_adopt(verify->arena, reading.arenas, verify->workers);
    return true;
}

static void find_unchanged(struct verify *verify, uint32_t number)
{
    const struct object *object = verify->before.objects->items[number];
    struct section_map *maps =
        arena_new_array(verify->arena, struct section_map, object->section_count);
    for (uint32_t s = 1; s < object->section_count; s++)
        maps[s].identity =
            section_is_code(&object->sections[s]) && is_unchanged(verify, number, s) &&
            rows_are_unchanged(verify, number, s);
    verify->maps[number] = maps;
}

static bool check_code(struct verify *verify, struct error *err)
{
    uint32_t count = verify->before.objects->count;
    verify->maps = arena_new_array(verify->arena, struct section_map *, count);
    for (uint32_t i = 0; i < count; i++)
        find_unchanged(verify, i);
    verify_find_parts(verify);
    verify->maps_complete = verify_code(verify, err);
    return verify->maps_complete;
}

static bool verify_sets(struct verify *verify, const struct objects *before,
                        const struct objects *after, struct error *err)
{
    return read_sides(verify, before, after, err) &&
           verify_pair_sections(verify, err) && check_code(verify, err) &&
           /* From here on it is known where every instruction went. */
           verify_objects(verify, err);
}

static bool verify_run(const struct objects *before, const struct objects *after,
                       struct verify verify, struct error *err)
{
    if (before->count == 0)
        return true;
    if (after->count < before->count || after->count > before->count + 1)
        return fail(err, NULL, "internal error: %u objects went in, %u came out",
                    before->count, after->count);
    struct arena *stage = arena_new();
    verify.arena = stage;
    uint16_t machine = before->items[0]->machine;
    verify.target = target_of(machine);
    if (!verify.decoder && verify.target)
        verify.decoder = decoder_new(stage, verify.target);
    verify.rows = row_table_new(stage);
    verify.claimed = table_new(stage);
    verify.confirmed = table_new(stage);
    verify.entry_row = row_at_entry(verify.rows, machine);
    bool same = verify.target ? verify_sets(&verify, before, after, err)
                              : fail(err, NULL, "no target for this machine");
    arena_free(verify.tables_arena);
    arena_free(stage);
    return same;
}

bool outline_verify(const struct objects *before, const struct objects *after,
                    const struct verify_options *options, struct error *err)
{
    struct verify verify = {.workers = options->workers, .decoder = options->decoder};
    verify.knows_tables = options->tables != NULL;
    if (options->tables)
        verify.tables = *options->tables;
    return verify_run(before, after, verify, err);
}

bool shake_verify(const struct objects *before, const struct objects *after,
                  struct error *err)
{
    return verify_run(before, after, (struct verify){.padded = true, .workers = 1}, err);
}

/* What was dropped is not run any more, so nobody asks for its rows. */
bool unpad_verify(const struct objects *before, const struct objects *after,
                  uint32_t workers, struct error *err)
{
    struct verify verify = {.padded = true, .dropped = true, .workers = workers};
    return verify_run(after, before, verify, err);
}
