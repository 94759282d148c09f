/* SPDX-License-Identifier: MIT
 *
 * Bytes and relocations of edited code sections and of the helpers' sections.
 * Everything has its place already; this only copies, piece by piece, and re-encodes
 * the branches that the assembler had resolved.
 */
#include "mo/parallel.h"
#include "outliner/rewrite/rewrite.h"

#include <assert.h>
#include <elf.h>
#include <string.h>

struct code_writer {
    const struct rewrite *rewrite;
    uint32_t code;
    const struct layout *layout;
    const struct section *old;
    const struct reloc *old_relocs; /* with their new addends */
    uint8_t *data;
    struct reloc *relocs;
    uint32_t reloc_count;
    uint32_t next; /* old relocation */
    const struct reloc *site_relocs; /* by edit; offsets from its code */
};

static void keep_relocs(struct code_writer *writer, const struct piece *piece)
{
    for (; writer->next < writer->old->reloc_count; writer->next++) {
        struct reloc reloc = writer->old_relocs[writer->next];
        if (reloc.offset >= piece[1].old_start)
            return;
        reloc.offset = reloc.offset - piece->old_start + piece->new_start;
        writer->relocs[writer->reloc_count++] = reloc;
    }
}

static void drop_relocs(struct code_writer *writer, uint32_t end)
{
    while (writer->next < writer->old->reloc_count &&
           writer->old_relocs[writer->next].offset < end)
        writer->next++;
}

static void write_edit(struct code_writer *writer, const struct piece *piece)
{
    const struct edit *edit = &writer->layout->edits.items[piece->edit];
    memcpy(writer->data + piece->new_start, edit->code.bytes, edit->code.length);
    drop_relocs(writer, piece[1].old_start);
    if (!edit->code.has_reloc || edit->helper == NO_INDEX)
        return;
    struct reloc reloc = writer->site_relocs[piece->edit];
    reloc.offset += piece->new_start;
    writer->relocs[writer->reloc_count++] = reloc;
}

static void write_piece(struct code_writer *writer, const struct piece *piece)
{
    uint32_t size = piece[1].new_start - piece->new_start;
    switch ((enum piece_kind)piece->kind) {
    case PIECE_KEPT:
        memcpy(writer->data + piece->new_start, writer->old->data.at + piece->old_start,
               size);
        keep_relocs(writer, piece);
        break;
    case PIECE_REPLACED: write_edit(writer, piece); break;
    case PIECE_PADDING:
        if (size)
            writer->rewrite->program->target->emit_padding(
                writer->data + piece->new_start, size);
        drop_relocs(writer, piece[1].old_start);
        break;
    }
}

/* Re-encodes one branch at its new place. */
static bool retarget(struct code_writer *writer, const struct insn *insn,
                     struct error *err)
{
    const struct program *program = writer->rewrite->program;
    const struct offsets *offsets = &writer->layout->offsets;
    const struct piece *piece = offsets_piece(offsets, insn->offset);
    uint8_t length = insn->length;
    if (piece_keeps_branch(piece, insn))
        return true;
    if (piece->kind == PIECE_REPLACED) {
        const struct edit *edit = &writer->layout->edits.items[piece->edit];
        if (edit->site != NO_INDEX)
            return true;
        length = edit->code.length; /* widened */
    }
    uint32_t at = offsets_start(offsets, insn->offset);
    uint32_t to = offsets_start(offsets, insn->target);
    uint8_t out[CODE_BYTES];
    if (!program->target->retarget(writer->data + at, length, (int64_t)to - (int64_t)at,
                                   out)) {
        struct place place =
            object_place(program_object(program, writer->code),
                         program->code[writer->code].section, insn->offset);
        return fail(err, &place, "a branch cannot be re-encoded (a bug of mo-link)");
    }
    memcpy(writer->data + at, out, length);
    return true;
}

static bool retarget_all(struct code_writer *writer, struct error *err)
{
    const struct program *program = writer->rewrite->program;
    const struct layout *layout = writer->layout;
    for (uint32_t i = 0; i < layout->branch_count; i++) {
        if (!retarget(writer, &program->insns[layout->branches[i]], err))
            return false;
    }
    return true;
}

/* --- all sections --- */

struct job {
    uint32_t code;
    const struct reloc *site_relocs;
    const struct error *err; /* NULL: none */
};

struct jobs {
    array_of(struct job) items;
    const struct rewrite *rewrite;
    struct arena **arenas; /* by worker */
};

/* Symbols are numbered as they are asked for, so all are before the work is shared out.
 */
static const struct reloc *make_site_relocs(struct rewrite *rewrite, uint32_t code)
{
    uint32_t object = rewrite->program->code[code].object;
    const struct edit_list *edits = &rewrite->layouts[code].edits;
    struct reloc *relocs = arena_new_array(rewrite->stage, struct reloc, edits->count);
    for (uint32_t e = 0; e < edits->count; e++) {
        const struct edit *edit = &edits->items[e];
        relocs[e] = (struct reloc){.offset = edit->code.reloc_offset,
                                   .addend = edit->code.reloc_addend,
                                   .type = edit->code.reloc_type};
        if (edit->code.has_reloc && edit->helper != NO_INDEX)
            symbols_helper(rewrite, object, edit->helper, &relocs[e]);
    }
    return relocs;
}

static void write_code(void *context, uint32_t number, uint32_t worker)
{
    struct jobs *jobs = context;
    struct job *job = &jobs->items.items[number];
    const struct rewrite *rewrite = jobs->rewrite;
    const struct code *of = &rewrite->program->code[job->code];
    const struct layout *layout = &rewrite->layouts[job->code];
    const struct section *old = program_section(rewrite->program, job->code);
    uint32_t last = layout->offsets.count - 1;
    uint32_t size = layout->offsets.pieces[last].new_start;
    struct code_writer writer = {
        .rewrite = rewrite,
        .code = job->code,
        .layout = layout,
        .old = old,
        .old_relocs = rewrite_relocs(rewrite, of->object, of->section),
        .data = arena_alloc(jobs->arenas[worker], size),
        .relocs = arena_new_array(jobs->arenas[worker], struct reloc,
                                  old->reloc_count + layout->edits.count),
        .site_relocs = job->site_relocs};
    for (uint32_t p = 0; p < last; p++)
        write_piece(&writer, &layout->offsets.pieces[p]);
    struct error err = {0};
    if (!retarget_all(&writer, &err)) {
        job->err = arena_copy(jobs->arenas[worker], &err, sizeof err);
        return;
    }
    struct section *out = &rewrite->drafts[of->object].sections[of->section];
    out->data = (struct bytes){writer.data, size};
    out->relocs = writer.relocs;
    out->reloc_count = writer.reloc_count;
}

bool code_write(struct rewrite *rewrite, struct error *err)
{
    const struct program *program = rewrite->program;
    struct jobs jobs = {.rewrite = rewrite,
                        .arenas = parallel_arenas(rewrite->stage, program->workers)};
    for (uint32_t c = 0; c < program->code_count; c++) {
        if (rewrite->layouts[c].edits.count == 0)
            continue;
        struct job job = {.code = c, .site_relocs = make_site_relocs(rewrite, c)};
        array_push(rewrite->stage, &jobs.items, job);
    }
    parallel_do(program->workers, jobs.items.count, write_code, &jobs);
    parallel_adopt(rewrite->arena, jobs.arenas, program->workers);
    for (uint32_t i = 0; i < jobs.items.count; i++) {
        if (jobs.items.items[i].err)
            return fail(err, NULL, "%s", jobs.items.items[i].err->message);
    }
    return true;
}

/* --- helpers --- */

static void write_body(struct rewrite *rewrite, uint32_t helper, struct buffer *data,
                       struct reloc *relocs, uint32_t *count)
{
    const struct helper_body *body = &rewrite->places.bodies[helper];
    assert(data->size == body->start);
    buffer_put(data, body->data.at, body->data.size);
    uint32_t first = *count;
    for (uint32_t i = 0; i < body->ref_count; i++) {
        struct reloc reloc = symbols_import(rewrite, body, &body->refs[i]);
        reloc.offset = body->start + body->refs[i].offset;
        uint32_t at = (*count)++;
        for (; at > first && relocs[at - 1].offset > reloc.offset; at--)
            relocs[at] = relocs[at - 1];
        relocs[at] = reloc;
    }
}

static bool is_body_in(const struct rewrite *rewrite, uint32_t helper, uint32_t section)
{
    return helper_has_body(&rewrite->plan->helpers[helper]) &&
           rewrite->places.bodies[helper].section == section;
}

static uint32_t count_refs(const struct rewrite *rewrite, uint32_t section)
{
    uint32_t count = 0;
    for (uint32_t h = 0; h < rewrite->plan->helper_count; h++) {
        if (is_body_in(rewrite, h, section))
            count += rewrite->places.bodies[h].ref_count;
    }
    return count;
}

static void write_section(struct rewrite *rewrite, uint32_t number)
{
    const struct helper_section *section = &rewrite->places.sections[number];
    struct buffer data = buffer_new(rewrite->arena);
    struct reloc *relocs =
        arena_new_array(rewrite->arena, struct reloc, count_refs(rewrite, number));
    uint32_t count = 0;
    for (uint32_t h = 0; h < rewrite->plan->helper_count; h++) {
        if (is_body_in(rewrite, h, number))
            write_body(rewrite, h, &data, relocs, &count);
    }
    struct draft *home = &rewrite->drafts[rewrite->home];
    home->sections[rewrite->first_section + number] =
        (struct section){.name = section->name,
                         .type = SHT_PROGBITS,
                         .flags = section->flags,
                         .align = rewrite->program->target->code_align,
                         .data = buffer_bytes(&data),
                         .relocs = relocs,
                         .reloc_count = count,
                         .group = NO_INDEX,
                         .unit = rewrite->unit};
}

void helpers_write(struct rewrite *rewrite)
{
    for (uint32_t s = 0; s < rewrite->places.section_count; s++)
        write_section(rewrite, s);
}
