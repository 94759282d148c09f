/* SPDX-License-Identifier: MIT
 *
 * Plan -> edits. An edit says which instructions go and which bytes come instead, and
 * knows nothing of where either will lie.
 */
#include "outliner/rewrite/rewrite.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void append(struct code_bytes *to, const struct code_bytes *more)
{
    assert(to->length + more->length <= CODE_BYTES);
    if (more->has_reloc) {
        to->has_reloc = true;
        to->reloc_offset = (uint8_t)(to->length + more->reloc_offset);
        to->reloc_type = more->reloc_type;
        to->reloc_addend = more->reloc_addend;
    }
    memcpy(to->bytes + to->length, more->bytes, more->length);
    to->length = (uint8_t)(to->length + more->length);
}

static void write_site(const struct target *target, const struct site *site,
                       struct edit *edit)
{
    struct code_bytes before = {0}, call = {0}, after = {0};
    switch ((enum form)site->form) {
    case FORM_SAVE_REGISTER:
        target->emit_save_register(site->scratch, &before, &after);
        break;
    case FORM_SAVE_STACK: target->emit_save_stack(&before, &after); break;
    default: break;
    }
    if (site->form == FORM_TAIL)
        target->emit_jump(&call);
    else
        target->emit_call(&call);
    append(&edit->code, &before);
    edit->call = edit->code.length;
    append(&edit->code, &call);
    edit->call_end = edit->code.length;
    append(&edit->code, &after);
}

static void set_range(const struct program *program, struct edit *edit)
{
    const struct insn *first = &program->insns[edit->insn];
    const struct insn *last = first + edit->insn_count - 1;
    edit->start = first->offset;
    edit->end = last->offset + last->length;
}

static int by_insn(const void *left, const void *right)
{
    const struct edit *a = left, *b = right;
    if (a->insn != b->insn)
        return a->insn < b->insn ? -1 : 1;
    /* An insertion comes before what is done to the instruction itself. */
    return a->insn_count < b->insn_count ? -1 : a->insn_count > b->insn_count;
}

void edits_sort(struct edit *edits, uint32_t count)
{
    if (count)
        qsort(edits, count, sizeof *edits, by_insn);
    for (uint32_t i = 1; i < count; i++)
        assert(edits[i - 1].insn + edits[i - 1].insn_count <= edits[i].insn);
}

struct edit_list edits_of_plan(struct arena *arena, const struct program *program,
                               const struct plan *plan, const struct edit_list *extra)
{
    uint32_t count = plan->site_count + (extra ? extra->count : 0);
    struct edit *edits = arena_new_array(arena, struct edit, count);
    uint32_t at = 0;
    for (uint32_t h = 0; h < plan->helper_count; h++) {
        const struct helper *helper = &plan->helpers[h];
        for (uint32_t s = 0; s < helper->site_count; s++) {
            struct edit *edit = &edits[at++];
            edit->site = helper->first_site + s;
            edit->helper = h;
            edit->insn = plan->sites[edit->site].insn;
            edit->insn_count = helper->length;
            set_range(program, edit);
            write_site(program->target, &plan->sites[edit->site], edit);
        }
    }
    assert(at == plan->site_count);
    if (extra && extra->count)
        memcpy(edits + at, extra->items, extra->count * sizeof *edits);
    edits_sort(edits, count);
    return (struct edit_list){edits, count};
}
