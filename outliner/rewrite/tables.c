/* SPDX-License-Identifier: MIT
 *
 * Call-site tables of the output. Call sites and landing pads are positions like all
 * others, but for one thing: a call site may begin or end inside of a payload, when
 * nothing in front of that boundary can throw (throws.c). Then it begins, or ends,
 * where the site's new code does, so that what throws in the payload, or in the
 * helper's callee, finds the site under the record that covered it before.
 *
 * A call site that has become empty covers nothing and goes. Tables whose distances
 * have not changed keep their bytes, and so do sections without an edited table; in the
 * others all tables move, and with them the symbols that name them and the relocations
 * of their FDEs.
 */
#include "outliner/rewrite/rewrite.h"

#include <elf.h>

static uint32_t place_of(const struct offsets *offsets, uint32_t old, bool end)
{
    const struct piece *piece = offsets_piece(offsets, old);
    if (piece && piece->kind == PIECE_REPLACED && old > piece->old_start &&
        old < piece[1].old_start)
        return piece->new_start;
    return end ? offsets_end(offsets, old) : offsets_start(offsets, old);
}

/* The same distances from the start of the code. */
static bool same_site(const struct call_site *a, uint32_t a_base,
                      const struct call_site *b, uint32_t b_base)
{
    bool same_pad = a->pad == NO_INDEX || b->pad == NO_INDEX
                        ? a->pad == b->pad
                        : a->pad - a_base == b->pad - b_base;
    return a->start - a_base == b->start - b_base &&
           a->end - a_base == b->end - b_base && same_pad && a->action == b->action;
}

static struct lsda_edit edit_of(const struct rewrite *rewrite, uint32_t code,
                                const struct fde *fde, const struct lsda *lsda)
{
    const struct offsets *offsets = &rewrite->layouts[code].offsets;
    struct call_site *sites =
        arena_new_array(rewrite->stage, struct call_site, lsda->site_count);
    struct lsda_edit edit = {.base = offsets_start(offsets, fde->start),
                             .sites = sites};
    for (uint32_t i = 0; i < lsda->site_count; i++) {
        const struct call_site *old = &lsda->sites[i];
        struct call_site *site = &sites[edit.site_count];
        *site = *old;
        site->start = place_of(offsets, old->start, false);
        site->end = place_of(offsets, old->end, true);
        if (old->pad != NO_INDEX)
            site->pad = offsets_start(offsets, old->pad);
        if (site->start >= site->end) {
            edit.rewrite = true;
            continue;
        }
        edit.rewrite |= !same_site(old, fde->start, site, edit.base);
        edit.site_count++;
    }
    return edit;
}

/* One edit for each table of an object; false when there is nothing to do. */
static bool make_edits(struct rewrite *rewrite, uint32_t object,
                       struct lsda_edit *edits)
{
    const struct program *program = rewrite->program;
    const struct lsdas *lsdas = &program->lsdas[object];
    bool any = false;
    for (uint32_t i = 0; i < lsdas->count; i++) {
        const struct lsda *lsda = &lsdas->items[i];
        const struct fde *fde = &program->frames[object].fdes[lsda->fde];
        if (lsda->refusal != REFUSAL_NONE)
            continue;
        uint32_t code = program_code_of(program, object, fde->code_section);
        if (code == NO_INDEX || rewrite->layouts[code].edits.count == 0)
            continue;
        uint32_t number = program_function_at(program, code, fde->start);
        /* A table that does not fit its function has sealed it. */
        if (number == NO_INDEX || program->functions[number].lsda != lsda)
            continue;
        edits[i] = edit_of(rewrite, code, fde, lsda);
        any |= edits[i].rewrite;
    }
    return any;
}

/* What names a table follows it, and so does what lies in its middle: `lsdas_read` has
 * seen that this is nothing but marks of data, which are as good at its start. */
static void move_symbols(struct rewrite *rewrite, uint32_t object, uint32_t section,
                         const uint32_t *starts)
{
    const struct lsdas *lsdas = &rewrite->program->lsdas[object];
    struct draft *draft = &rewrite->drafts[object];
    for (uint32_t s = 1; s < draft->old->symbol_count; s++) {
        const struct symbol *old = &draft->old->symbols[s];
        if (old->section != section || old->type == STT_SECTION)
            continue;
        for (uint32_t i = lsdas_in_section(lsdas, section);
             i < lsdas->count && lsdas->items[i].section == section; i++) {
            if (lsdas->items[i].start <= old->value)
                draft->symbols.items[s].value = starts[i];
        }
    }
}

static void move_pointer(struct rewrite *rewrite, uint32_t object,
                         const struct lsda *lsda, uint32_t start)
{
    const struct fde *fde = &rewrite->program->frames[object].fdes[lsda->fde];
    const struct draft *draft = &rewrite->drafts[object];
    struct reloc *reloc =
        &rewrite_own_relocs(rewrite, object, fde->section)[fde->lsda_reloc];
    int64_t tracked = (int64_t)draft->symbols.items[reloc->symbol].value -
                      (int64_t)draft->old->symbols[reloc->symbol].value;
    reloc->addend += (int64_t)start - (int64_t)lsda->start - tracked;
}

static void move_section(struct rewrite *rewrite, uint32_t object, uint32_t section,
                         const struct lsda_edit *edits, uint32_t *starts)
{
    const struct lsdas *lsdas = &rewrite->program->lsdas[object];
    struct draft *draft = &rewrite->drafts[object];
    lsdas_rewrite(rewrite->arena, draft->old, section,
                  rewrite_relocs(rewrite, object, section), lsdas, edits,
                  &draft->sections[section], starts);
    move_symbols(rewrite, object, section, starts);
    for (uint32_t i = lsdas_in_section(lsdas, section);
         i < lsdas->count && lsdas->items[i].section == section; i++)
        move_pointer(rewrite, object, &lsdas->items[i], starts[i]);
}

void tables_move(struct rewrite *rewrite, uint32_t object)
{
    const struct lsdas *lsdas = &rewrite->program->lsdas[object];
    struct lsda_edit *edits =
        arena_new_array(rewrite->stage, struct lsda_edit, lsdas->count);
    uint32_t *starts = arena_new_array(rewrite->stage, uint32_t, lsdas->count);
    if (!make_edits(rewrite, object, edits))
        return;
    for (uint32_t i = 0; i < lsdas->count;) {
        uint32_t section = lsdas->items[i].section;
        bool edited = false;
        for (; i < lsdas->count && lsdas->items[i].section == section; i++)
            edited |= edits[i].rewrite;
        if (edited)
            move_section(rewrite, object, section, edits, starts);
    }
}
