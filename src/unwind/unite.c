/* SPDX-License-Identifier: MIT
 *
 * One unwind entry for several functions. An entry costs 8 bytes in .eh_frame_hdr and
 * 20 in .eh_frame before it says anything. Functions that lie side by side can share
 * one: where the next begins, the row is that of a function's entry again, which the
 * program says by coming back to where it began, in some 3 bytes.
 *
 * Shared by entries of one kind (the same CIE) without call-site tables (a table counts
 * from the start of its entry) that leave no gap. So that unwinding stays quick, which
 * runs the program from its start, an entry stops growing at ROWS_IN_FDE row changes.
 *
 * A state is remembered and restored within one function only; program.c says why.
 *
 * What an unwinder calls the start of the function is the start of the entry then. It
 * matters to call-site tables; names are looked up in symbol tables.
 */
#include "mo/unwind.h"

#include <assert.h>

enum { ROWS_IN_FDE = 32 };

static bool can_share(const struct object *object, const struct fde *fde)
{
    return fde->refusal == REFUSAL_NONE && fde->code_section != NO_INDEX &&
           fde->length > 0 && !fde->has_lsda && fde->change_count > 0 &&
           fde->changes[0].offset == fde->start &&
           section_is_code(&object->sections[fde->code_section]);
}

/* Behind `head`, whose code ends at `end`, `next` is one more function. */
static bool can_follow(const struct object *object, const struct fde *head,
                       uint32_t end, const struct fde *next)
{
    return can_share(object, next) && next->section == head->section &&
           next->cie == head->cie && next->code_section == head->code_section &&
           next->start == end && next->changes[0].row == head->changes[0].row;
}

/* fdes[first] takes over what the next `count - 1` say. */
static void unite(struct arena *arena, const struct frames *frames, uint32_t first,
                  uint32_t count, struct fde_edit *edits)
{
    const struct fde *head = &frames->fdes[first];
    uint32_t room = 0, length = 0, at = 0;
    for (uint32_t i = first; i < first + count; i++)
        room += frames->fdes[i].change_count;
    struct row_change *changes = arena_new_array(arena, struct row_change, room);
    uint32_t *starts = arena_new_array(arena, uint32_t, count);
    for (uint32_t i = first; i < first + count; i++) {
        const struct fde *fde = &frames->fdes[i];
        for (uint32_t c = 0; c < fde->change_count; c++) {
            if (at == 0 || changes[at - 1].row != fde->changes[c].row)
                changes[at++] = (struct row_change){
                    fde->changes[c].offset - head->start, fde->changes[c].row};
        }
        starts[i - first] = length;
        length += fde->length;
        edits[i].drop = i > first;
    }
    edits[first] = (struct fde_edit){
        .rewrite = true,
        .length = length,
        .changes = changes,
        .change_count = at,
        .starts = starts + 1, /* where more of them begin */
        .start_count = count - 1,
    };
}

/* Returns whether there is anything to do. */
static bool decide(struct arena *arena, const struct object *object,
                   const struct frames *frames, struct fde_edit *edits)
{
    bool any = false;
    for (uint32_t first = 0, next; first < frames->fde_count; first = next) {
        const struct fde *head = &frames->fdes[first];
        uint32_t end = head->start + head->length, rows = head->change_count;
        next = first + 1;
        if (!can_share(object, head))
            continue;
        while (next < frames->fde_count &&
               can_follow(object, head, end, &frames->fdes[next]) &&
               rows + frames->fdes[next].change_count <= ROWS_IN_FDE) {
            end += frames->fdes[next].length;
            rows += frames->fdes[next].change_count;
            next++;
        }
        if (next - first > 1)
            unite(arena, frames, first, next - first, edits);
        any |= next - first > 1;
    }
    return any;
}

/* --- and the proof --- */

/* The entry of `new` around all of `fde`, with the same rows at the same places. */
static bool says_the_same(const struct frames *new, const struct fde *fde)
{
    uint32_t first, end = fde->start + fde->length;
    if (frames_find(new, fde->code_section, fde->start, end, &first) != 1)
        return false;
    const struct fde *around = &new->fdes[first];
    if (around->start > fde->start || around->start + around->length < end)
        return false;
    for (uint32_t c = 0; c < fde->change_count; c++) {
        uint32_t to = c + 1 < fde->change_count ? fde->changes[c + 1].offset : end;
        uint32_t at = fde_change_at(around, fde->changes[c].offset);
        for (; at < around->change_count && around->changes[at].offset < to; at++) {
            if (around->changes[at].row != fde->changes[c].row)
                return false;
        }
    }
    return true;
}

static bool check(struct arena *arena, const struct object *object,
                  struct row_table *rows, const struct frames *old, struct error *err)
{
    struct frames new;
    if (!frames_read(arena, object, rows, &new, err))
        return false;
    for (uint32_t i = 0; i < old->fde_count; i++) {
        const struct fde *fde = &old->fdes[i];
        if (fde->refusal == REFUSAL_NONE && can_share(object, fde) &&
            !says_the_same(&new, fde)) {
            struct place place = object_place(object, fde->code_section, fde->start);
            return fail(err, &place, "internal error: unwind rows have changed");
        }
    }
    return true;
}

/* Marks of data ("$d", AAELF64 5.3) stand where the tables of units began. One at the
 * start says it for all of the section. NULL: something else points into a table. */
static struct symbol *move_marks(struct arena *arena, const struct object *object)
{
    struct symbol *symbols = arena_copy(arena, object->symbols,
                                        object->symbol_count * sizeof *object->symbols);
    for (uint32_t i = 1; i < object->symbol_count; i++) {
        struct symbol *symbol = &symbols[i];
        if (symbol->section == 0 || symbol->section >= object->section_count ||
            !section_is_frame(&object->sections[symbol->section]) || symbol->value == 0)
            continue;
        if (symbol->name[0] != '$' || symbol->name[1] != 'd')
            return NULL;
        symbol->value = 0;
    }
    return symbols;
}

bool frames_unite(struct arena *arena, const struct object *object,
                  struct row_table *rows, const struct object **out, struct error *err)
{
    struct frames frames;
    *out = object;
    if (!frames_read(arena, object, rows, &frames, err))
        return false;
    struct fde_edit *edits = arena_new_array(arena, struct fde_edit, frames.fde_count);
    struct symbol *symbols = move_marks(arena, object);
    if (!symbols || !decide(arena, object, &frames, edits))
        return true;
    struct object *copy = arena_copy(arena, object, sizeof *object);
    struct section *sections = arena_copy(
        arena, object->sections, object->section_count * sizeof *object->sections);
    for (uint32_t s = 1; s < object->section_count; s++) {
        if (section_is_frame(&object->sections[s]))
            frames_rewrite(arena, object, s, rows, &frames, edits, &sections[s]);
    }
    copy->sections = sections;
    copy->symbols = symbols;
    *out = copy;
    return check(arena, copy, rows, &frames, err);
}
