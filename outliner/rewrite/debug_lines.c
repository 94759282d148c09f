/* SPDX-License-Identifier: MIT
 *
 * Line programs of the output. Rows of kept code keep everything but their address. The
 * rows inside of a replaced payload go, but for two things:
 *
 * - the last of them still holds behind the replacement, unless another begins there;
 * - a line that began and ended inside would have no address at all, and no breakpoint.
 *   It gets one at the call, before the row that was there: so the call itself keeps the
 *   line that it had.
 *
 * Rows of no-ops that were dropped are about what is behind them.
 *
 * A helper gets the lines of its first site, as a sequence of its own. They are no
 * statements: who sets a breakpoint on a line means its site, not what others share.
 */
#include "outliner/rewrite/rewrite.h"

#include <elf.h>
#include <string.h>

struct line_mover {
    struct rewrite *rewrite;
    uint32_t object;
    const struct debug *debug;
    struct debug_places places;
    struct debug_lines_edit *edits; /* by line program */
    bool *changed;                  /* the same */
};

struct row_list {
    struct debug_row *items;
    uint32_t count, capacity;
};

static void add_row(struct line_mover *mover, struct row_list *list,
                    struct debug_row row, uint32_t position)
{
    row.position = position;
    array_push(mover->rewrite->arena, list, row);
}

/* A line among rows[first..last). */
static bool has_line(const struct debug_row *rows, uint32_t first, uint32_t last,
                     const struct debug_row *row)
{
    for (uint32_t i = first; i < last; i++)
        if (rows[i].is_stmt && rows[i].line == row->line && rows[i].file == row->file)
            return true;
    return false;
}

/* Statements of the payload that nothing else of it stands for: rows[first..last) are in
 * its inside, rows[from..first) at its start. */
static void add_swallowed(struct line_mover *mover, struct row_list *list,
                          const struct debug_sequence *sequence, uint32_t from,
                          uint32_t first, uint32_t last, uint32_t place)
{
    const struct debug_row *rows = sequence->rows;
    for (uint32_t i = first; i < last; i++) {
        bool stays = !rows[i].is_stmt || rows[i].line == 0 ||
                     has_line(rows, from, i, &rows[i]) ||
                     (from > 0 && has_line(rows, from - 1, from, &rows[i]));
        struct debug_row row = rows[i];
        row.prologue_end = row.epilogue_begin = row.basic_block = false;
        if (!stays)
            add_row(mover, list, row, place);
    }
}

static const struct piece *piece_at(const struct line_mover *mover,
                                    const struct debug_sequence *sequence,
                                    uint32_t position)
{
    uint32_t code = mover->rewrite->drafts[mover->object].code_of[sequence->code];
    return offsets_piece(&mover->rewrite->layouts[code].offsets, position);
}

/* Takes the rows of a replaced payload, from rows[i]; returns the first one behind it. */
static uint32_t move_payload(struct line_mover *mover, struct row_list *list,
                             const struct debug_sequence *sequence, uint32_t i,
                             const struct piece *piece)
{
    const struct debug_row *rows = sequence->rows;
    uint32_t count = sequence->row_count, from = i;
    uint32_t end = piece[1].old_start, behind = piece[1].new_start;
    while (i < count && rows[i].position == piece->old_start)
        i++;
    uint32_t first = i;
    while (i < count && rows[i].position < end)
        i++;
    bool followed = (i < count && rows[i].position == end) || end >= sequence->last;
    uint32_t swallowed = followed || i == first ? i : i - 1;
    add_swallowed(mover, list, sequence, from, first, swallowed, piece->new_start);
    for (uint32_t r = from; r < first; r++)
        add_row(mover, list, rows[r], piece->new_start);
    /* Without a row of its own the call goes on with the line before it. */
    if (from == first && list->count && from > 0 &&
        list->items[list->count - 1].position == piece->new_start) {
        struct debug_row row = rows[from - 1];
        row.is_stmt = row.prologue_end = row.epilogue_begin = row.basic_block = false;
        add_row(mover, list, row, piece->new_start);
    }
    if (!followed && i > first)
        add_row(mover, list, rows[i - 1], behind);
    return i;
}

static const struct debug_sequence *move_sequence(struct line_mover *mover,
                                                  const struct debug_sequence *old)
{
    struct debug_sequence *new =
        arena_new_one(mover->rewrite->arena, struct debug_sequence);
    struct row_list list = {0};
    *new = *old;
    for (uint32_t i = 0; i < old->row_count;) {
        const struct piece *piece = piece_at(mover, old, old->rows[i].position);
        bool dropped = debug_is_dropped(&mover->places, old->code, old->rows[i].position);
        if (!dropped && piece->kind == PIECE_REPLACED &&
            piece[1].old_start > piece->old_start) {
            i = move_payload(mover, &list, old, i, piece);
            continue;
        }
        add_row(mover, &list, old->rows[i],
                debug_start(&mover->places, old->code, old->rows[i].position));
        i++;
    }
    new->rows = list.items;
    new->row_count = list.count;
    new->address = debug_start(&mover->places, old->code, old->address);
    new->last = debug_end(&mover->places, old->code, old->last);
    /* Sequences of no length may end where padding begins. */
    if (list.count && new->last < list.items[list.count - 1].position)
        new->last = list.items[list.count - 1].position;
    return new;
}

static void move_program(struct line_mover *mover, uint32_t number)
{
    const struct debug_lines *lines = &mover->debug->lines[number];
    const struct debug_sequence **rows = arena_new_array(
        mover->rewrite->stage, const struct debug_sequence *, lines->sequence_count);
    for (uint32_t i = 0; i < lines->sequence_count; i++) {
        const struct debug_sequence *sequence = &lines->sequences[i];
        if (sequence->code == NO_INDEX || !debug_moves(&mover->places, sequence->code))
            continue;
        debug_move_reloc(mover->rewrite, mover->object, lines->section, sequence->reloc,
                         sequence->address,
                         debug_start(&mover->places, sequence->code, sequence->address));
        rows[i] = move_sequence(mover, sequence);
        mover->changed[number] = true;
    }
    mover->edits[number].rows = rows;
}

/* --- helpers --- */

/* The sequence that describes a position, by the number of its program. */
static const struct debug_sequence *sequence_at(const struct line_mover *mover,
                                                uint32_t code, uint32_t position,
                                                uint32_t *program)
{
    for (uint32_t l = 0; l < mover->debug->lines_count; l++) {
        const struct debug_lines *lines = &mover->debug->lines[l];
        for (uint32_t i = 0; i < lines->sequence_count; i++) {
            const struct debug_sequence *sequence = &lines->sequences[i];
            *program = l;
            if (sequence->code == code && sequence->row_count &&
                position >= sequence->rows[0].position && position < sequence->last)
                return sequence;
        }
    }
    return NULL;
}

static bool same_line(const struct debug_row *a, const struct debug_row *b)
{
    return a->file == b->file && a->line == b->line && a->column == b->column &&
           a->discriminator == b->discriminator && a->isa == b->isa;
}

static void add_helper(struct line_mover *mover, uint32_t number)
{
    struct rewrite *rewrite = mover->rewrite;
    const struct program *program = rewrite->program;
    const struct helper *helper = &rewrite->plan->helpers[number];
    const struct helper_body *body = &rewrite->places.bodies[number];
    const struct code *code = &program->code[body->code];
    uint32_t insn = rewrite->plan->sites[helper->first_site].insn, lines = 0;
    const struct debug_sequence *sequence =
        sequence_at(mover, code->section, program->insns[insn].offset, &lines);
    if (!sequence)
        return;
    struct reloc reloc = {0};
    symbols_helper(rewrite, mover->object, number, &reloc);
    struct row_list list = {0};
    for (uint32_t i = 0; i < helper->length; i++) {
        const struct debug_row *row =
            debug_row_at(sequence, program->insns[insn + i].offset);
        if (!row || (list.count && same_line(row, &list.items[list.count - 1])))
            continue;
        struct debug_row quiet = *row;
        quiet.is_stmt = quiet.basic_block = false;
        quiet.prologue_end = quiet.epilogue_begin = false;
        /* What a helper pushes first belongs to what comes next. */
        add_row(mover, &list, quiet, i == 0 ? 0 : body->offsets[i]);
    }
    struct debug_lines_edit *edit = &mover->edits[lines];
    struct debug_new_sequence *added = arena_new_array(
        rewrite->stage, struct debug_new_sequence, (size_t)edit->added_count + 1);
    if (edit->added_count)
        memcpy(added, edit->added, edit->added_count * sizeof *added);
    added[edit->added_count++] = (struct debug_new_sequence){
        .symbol = reloc.symbol,
        .addend = reloc.addend,
        .rows = list.items,
        .row_count = list.count,
        .last = (uint32_t)body->data.size};
    edit->added = added;
    mover->changed[lines] = true;
}

/* --- sections --- */

/* What refers to a line program names its start. */
static void move_links(struct line_mover *mover, uint32_t section,
                       const uint32_t *starts)
{
    const struct object *object = mover->rewrite->drafts[mover->object].old;
    for (uint32_t s = 1; s < object->section_count; s++) {
        const struct section *of = &object->sections[s];
        for (uint32_t i = 0; i < of->reloc_count; i++) {
            const struct symbol *symbol = &object->symbols[of->relocs[i].symbol];
            if (symbol->section != section)
                continue;
            uint64_t to = symbol->value + (uint64_t)of->relocs[i].addend;
            for (uint32_t l = 0; l < mover->debug->lines_count; l++) {
                const struct debug_lines *lines = &mover->debug->lines[l];
                if (lines->section == section && lines->start == to &&
                    starts[l] != lines->start)
                    debug_move_reloc(mover->rewrite, mover->object, s, i, lines->start,
                                     starts[l]);
            }
        }
    }
}

static void write_section(struct line_mover *mover, uint32_t section)
{
    struct rewrite *rewrite = mover->rewrite;
    struct draft *draft = &rewrite->drafts[mover->object];
    uint32_t *starts =
        arena_new_array(rewrite->stage, uint32_t, mover->debug->lines_count);
    debug_lines_write(rewrite->arena, draft->old, section,
                      rewrite_relocs(rewrite, mover->object, section), mover->debug,
                      mover->edits, &draft->sections[section], starts);
    move_links(mover, section, starts);
}

/* Marks of data ("$d") may stand anywhere, but not behind the end. */
static void keep_marks_inside(struct draft *draft, const bool *written)
{
    for (uint32_t i = 1; i < draft->symbols.count; i++) {
        struct symbol *symbol = &draft->symbols.items[i];
        if (symbol->section >= draft->old->section_count || !written[symbol->section])
            continue;
        uint64_t size = draft->sections[symbol->section].data.size;
        if (symbol->value > size)
            symbol->value = size;
    }
}

void debug_lines_move(struct rewrite *rewrite, const struct debug_places *places)
{
    uint32_t object = places->object;
    struct line_mover mover = {.rewrite = rewrite,
                               .object = object,
                               .debug = &rewrite->program->debug[object],
                               .places = *places};
    uint32_t count = mover.debug->lines_count;
    mover.edits = arena_new_array(rewrite->stage, struct debug_lines_edit, count);
    mover.changed = arena_new_array(rewrite->stage, bool, count);
    for (uint32_t l = 0; l < count; l++)
        move_program(&mover, l);
    for (uint32_t h = 0; count && h < rewrite->plan->helper_count; h++) {
        uint32_t code = rewrite->places.bodies[h].code;
        if (helper_has_body(&rewrite->plan->helpers[h]) &&
            rewrite->program->code[code].object == object)
            add_helper(&mover, h);
    }
    struct draft *draft = &rewrite->drafts[object];
    bool *written = arena_new_array(rewrite->stage, bool, draft->old->section_count);
    for (uint32_t l = 0; l < count;) {
        uint32_t section = mover.debug->lines[l].section;
        bool changed = false;
        for (; l < count && mover.debug->lines[l].section == section; l++)
            changed |= mover.changed[l];
        if (changed)
            write_section(&mover, section);
        written[section] = changed;
    }
    keep_marks_inside(draft, written);
}
