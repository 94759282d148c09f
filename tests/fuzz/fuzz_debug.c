/* SPDX-License-Identifier: MIT
 *
 * The readers of debug information against objects with damaged debug sections: what is
 * read holds positions that are there; line programs without edits keep every byte, and
 * rows that are written anew are the rows that are read.
 */
#include "mo/debug.h"
#include "tests/fuzz/replay.h"

#include <stdlib.h>
#include <string.h>

static void must(bool ok)
{
    if (!ok)
        abort();
}

static bool is_refused(const struct object *object, const struct debug *debug,
                       uint32_t section)
{
    return debug->refused[object->sections[section].unit] != REFUSAL_NONE;
}

static void check_positions(const struct object *object, const struct debug *debug)
{
    for (uint32_t i = 0; i < debug->point_count; i++)
        must(debug->points[i].position <=
             object->sections[debug->points[i].code].data.size);
    for (uint32_t i = 0; i < debug->range_count; i++) {
        const struct debug_range *range = &debug->ranges[i];
        must(range->start <= range->end &&
             range->end <= object->sections[range->code].data.size);
    }
}

static bool same_rows(const struct debug_sequence *a, const struct debug_sequence *b)
{
    if (a->row_count != b->row_count || a->last != b->last)
        return false;
    for (uint32_t i = 0; i < a->row_count; i++)
        if (a->rows[i].position != b->rows[i].position ||
            a->rows[i].line != b->rows[i].line || a->rows[i].file != b->rows[i].file ||
            a->rows[i].column != b->rows[i].column ||
            a->rows[i].is_stmt != b->rows[i].is_stmt)
            return false;
    return true;
}

/* Writes the programs of a section; `anew`: from their rows. */
static void write_section(struct arena *arena, const struct object *object,
                          const struct debug *debug, uint32_t section, bool anew,
                          struct section *out)
{
    struct debug_lines_edit *edits =
        arena_new_array(arena, struct debug_lines_edit, debug->lines_count);
    uint32_t *starts = arena_new_array(arena, uint32_t, debug->lines_count);
    for (uint32_t l = 0; anew && l < debug->lines_count; l++) {
        const struct debug_lines *lines = &debug->lines[l];
        const struct debug_sequence **rows = arena_new_array(
            arena, const struct debug_sequence *, lines->sequence_count);
        for (uint32_t i = 0; i < lines->sequence_count; i++)
            if (lines->sequences[i].code != NO_INDEX)
                rows[i] = &lines->sequences[i];
        edits[l].rows = rows;
    }
    *out = object->sections[section];
    debug_lines_write(arena, object, section, out->relocs, debug, edits, out, starts);
}

static void try_lines(struct arena *arena, const struct object *object,
                      const struct debug *debug, uint32_t section)
{
    struct section out;
    write_section(arena, object, debug, section, false, &out);
    must(out.data.size == object->sections[section].data.size &&
         (out.data.size == 0 ||
          memcmp(out.data.at, object->sections[section].data.at, out.data.size) == 0));
    write_section(arena, object, debug, section, true, &out);
    struct section *sections =
        arena_copy(arena, object->sections, object->section_count * sizeof *sections);
    struct object *again = arena_new_one(arena, struct object);
    struct debug read;
    sections[section] = out;
    *again = *object;
    again->sections = sections;
    debug_read(arena, again, &read);
    must(read.lines_count == debug->lines_count);
    for (uint32_t l = 0; l < debug->lines_count; l++) {
        if (debug->lines[l].section != section)
            continue;
        must(read.lines[l].sequence_count == debug->lines[l].sequence_count);
        for (uint32_t i = 0; i < read.lines[l].sequence_count; i++)
            must(debug->lines[l].sequences[i].code == NO_INDEX ||
                 same_rows(&debug->lines[l].sequences[i], &read.lines[l].sequences[i]));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new();
    struct error err = {0};
    const struct object *object;
    struct debug debug;
    if (object_read(arena, "fuzz.o", (struct bytes){data, size}, &object, &err)) {
        debug_read(arena, object, &debug);
        check_positions(object, &debug);
        for (uint32_t s = 1; s < object->section_count; s++)
            if (strcmp(object->sections[s].name, ".debug_line") == 0 &&
                !is_refused(object, &debug, s) && section_is_debug(&object->sections[s]))
                try_lines(arena, object, &debug, s);
    }
    arena_free(arena);
    return 0;
}
