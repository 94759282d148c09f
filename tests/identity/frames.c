/* SPDX-License-Identifier: MIT
 *
 * Checks of src/unwind on real objects and archives, given as arguments:
 *
 *   - rewriting without an edit gives the section back byte for byte;
 *   - rewriting every FDE from its own rows gives a section with the same FDEs and
 * rows, of the size that fde_size() predicts;
 *   - no program becomes longer than the compiler's.
 *
 * Prints one line for each file: objects, FDEs, refused FDEs, bytes of programs and of
 * sections before and after.
 */
#include "mo/unwind.h"
#include "tests/identity/objects.h"

#include <stdio.h>
#include <string.h>

struct totals {
    uint32_t objects, fdes, refused, longer;
    uint64_t old_programs, new_programs, old_sections, new_sections;
};

static bool same_section(const struct section *a, const struct section *b)
{
    return a->data.size == b->data.size &&
           (!a->data.size || a->data.at == b->data.at ||
            memcmp(a->data.at, b->data.at, a->data.size) == 0) &&
           a->reloc_count == b->reloc_count &&
           (!a->reloc_count || a->relocs == b->relocs ||
            memcmp(a->relocs, b->relocs, a->reloc_count * sizeof *a->relocs) == 0);
}

/* The object with its .eh_frame sections written anew. */
static struct object rewritten(struct arena *arena, const struct object *object,
                               const struct row_table *rows,
                               const struct frames *frames,
                               const struct fde_edit *edits, struct totals *totals)
{
    struct section *sections =
        arena_new_array(arena, struct section, object->section_count);
    for (uint32_t i = 0; i < object->section_count; i++) {
        sections[i] = object->sections[i];
        if (!section_is_frame(&sections[i]))
            continue;
        frames_rewrite(arena, object, i, rows, frames, edits, &sections[i]);
        totals->old_sections += object->sections[i].data.size;
        totals->new_sections += sections[i].data.size;
    }
    struct object copy = *object;
    copy.sections = sections;
    return copy;
}

static bool same_changes(const struct fde *a, const struct fde *b)
{
    if (a->change_count != b->change_count || a->start != b->start ||
        a->length != b->length || a->code_section != b->code_section ||
        a->refusal != b->refusal || a->has_lsda != b->has_lsda)
        return false;
    for (uint32_t i = 0; i < a->change_count; i++)
        if (a->changes[i].offset != b->changes[i].offset ||
            a->changes[i].row != b->changes[i].row)
            return false;
    return true;
}

static struct fde_edit *edit_all(struct arena *arena, const struct frames *frames)
{
    struct fde_edit *edits = arena_new_array(arena, struct fde_edit, frames->fde_count);
    for (uint32_t i = 0; i < frames->fde_count; i++) {
        const struct fde *fde = &frames->fdes[i];
        struct row_change *changes =
            arena_new_array(arena, struct row_change, fde->change_count);
        for (uint32_t c = 0; c < fde->change_count; c++)
            changes[c] = (struct row_change){fde->changes[c].offset - fde->start,
                                             fde->changes[c].row};
        if (fde->refusal == REFUSAL_NONE)
            edits[i] = (struct fde_edit){.rewrite = true,
                                         .length = fde->length,
                                         .changes = changes,
                                         .change_count = fde->change_count};
    }
    return edits;
}

/* Bytes of an FDE's record in its section. */
static uint32_t record_size(const struct object *object, const struct fde *fde)
{
    return (uint32_t)load_le(object->sections[fde->section].data.at + fde->offset, 4) +
           4;
}

static bool check_object(struct arena *arena, const struct object *object,
                         void *context, struct error *err)
{
    struct totals *totals = context;
    struct place place = {.file = object->name};
    struct row_table *rows = row_table_new(arena);
    struct frames frames, again;
    if (!frames_read(arena, object, rows, &frames, err))
        return false;
    struct fde_edit *none = arena_new_array(arena, struct fde_edit, frames.fde_count);
    struct totals unused = {0};
    struct object copy = rewritten(arena, object, rows, &frames, none, &unused);
    for (uint32_t i = 0; i < object->section_count; i++)
        if (!same_section(&object->sections[i], &copy.sections[i]))
            return fail(err, &place, "no edits, but the section differs");
    struct fde_edit *edits = edit_all(arena, &frames);
    copy = rewritten(arena, object, rows, &frames, edits, totals);
    if (!frames_read(arena, &copy, rows, &again, err))
        return false;
    if (again.fde_count != frames.fde_count)
        return fail(err, &place, "FDEs are lost");
    for (uint32_t i = 0; i < frames.fde_count; i++) {
        const struct fde *old = &frames.fdes[i], *new = &again.fdes[i];
        if (!same_changes(old, new))
            return fail(err, &place, "FDE at 0x%x has other rows", old->offset);
        totals->old_programs += old->program_size;
        totals->new_programs += new->program_size;
        totals->refused += old->refusal != REFUSAL_NONE;
        totals->longer += new->program_size > old->program_size;
        uint32_t size = fde_size(rows, &frames.cies[old->cie], old->changes,
                                 old->change_count, old->start, old->length);
        /* The last record fills up its section. */
        bool last = new->offset + record_size(&copy, new) ==
                    copy.sections[new->section].data.size;
        if (old->refusal == REFUSAL_NONE && record_size(&copy, new) != size &&
            !(last && record_size(&copy, new) - size < 8))
            return fail(err, &place, "FDE at 0x%x has another size", old->offset);
    }
    totals->objects++;
    totals->fdes += frames.fde_count;
    return true;
}

static bool print_file(const char *path, const void *context, struct error *err)
{
    const struct totals *totals = context;
    printf("%s: %u objects, %u FDEs, %u refused, %u longer; programs %lu -> %lu, "
           "sections %lu -> %lu\n",
           path, totals->objects, totals->fdes, totals->refused, totals->longer,
           (unsigned long)totals->old_programs, (unsigned long)totals->new_programs,
           (unsigned long)totals->old_sections, (unsigned long)totals->new_sections);
    return !totals->longer || fail(err, NULL, "%s: programs became longer", path);
}

int main(int argc, char **argv)
{
    struct totals totals;
    const struct object_check check = {check_object, print_file, &totals, sizeof totals};
    return check_files(argc, argv, &check);
}
