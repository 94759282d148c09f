/* SPDX-License-Identifier: MIT
 *
 * The bodies of helpers. A body is the payload of the helper's first site, instruction
 * by instruction, changed only where its new place demands it:
 *
 * - in a called helper SP is lower than at the site, so operands on the stack are
 * shifted;
 * - a field that the assembler resolved needs a relocation in another section;
 * - the last call of a thunk becomes a jump; other called helpers get a return;
 * - one that calls others pushes a register first, and pops it before it is left.
 *
 * What a field refers to is only named here (struct helper_ref): which symbol says that
 * is up to the object that the helper ends up in, and sizes do not depend on it. So
 * plans are priced with the very bodies that will be written.
 */
#include "mo/parallel.h"
#include "outliner/rewrite/rewrite.h"

#include <elf.h>
#include <string.h>

struct writer {
    struct arena *arena;
    const struct program *program;
    const struct helper *helper;
    const struct section *section; /* of the first site */
    struct helper_body *body;
    struct buffer data;
    array_of(struct helper_ref) refs;
};

static bool fail_body(const struct writer *writer, const struct insn *insn,
                      const char *what, struct error *err)
{
    const struct code *code = &writer->program->code[writer->body->code];
    struct place place =
        object_place(program_object(writer->program, writer->body->code), code->section,
                     insn->offset);
    return fail(err, &place, "%s (a bug of mo-link)", what);
}

/* Only a PC-relative field has one. */
static uint8_t bias_of(const struct target *target, const struct insn *insn,
                       const struct reloc *reloc)
{
    const struct reloc_kind *kind = target->reloc_kind(reloc->type);
    bool biased = kind && (kind->kind == RELOC_PC || kind->kind == RELOC_CALL ||
                           kind->kind == RELOC_BRANCH);
    return biased ? target->reloc_bias(insn, reloc->offset) : 0;
}

/* The relocations of the instruction, as references of the body. `growth` is what the
 * instruction gained in front of them. */
static void copy_relocs(struct writer *writer, uint32_t number, uint32_t growth)
{
    const struct insn *insn = &writer->program->insns[number];
    uint32_t first = 0, count = program_relocs(writer->program, number, &first);
    for (uint32_t i = 0; i < count; i++) {
        const struct reloc *reloc = &writer->section->relocs[first + i];
        uint32_t offset = (uint32_t)(reloc->offset - insn->offset) + growth;
        struct helper_ref ref = {.offset = (uint32_t)writer->data.size + offset,
                                 .type = reloc->type,
                                 .reloc = first + i,
                                 .target = NO_INDEX,
                                 .bias = bias_of(writer->program->target, insn, reloc)};
        array_push(writer->arena, &writer->refs, ref);
    }
}

/* The field that the assembler resolved, as a reference. */
static bool relocate(struct writer *writer, uint32_t number, struct code_bytes *code,
                     struct error *err)
{
    const struct insn *insn = &writer->program->insns[number];
    struct code_bytes out = {0};
    if (!writer->program->target->relocatable(code->bytes, code->length, &out))
        return fail_body(writer, insn, "a payload that cannot leave its section", err);
    struct helper_ref ref = {.offset = (uint32_t)writer->data.size + out.reloc_offset,
                             .type = out.reloc_type,
                             .reloc = NO_INDEX,
                             .target = insn->target,
                             .addend = out.reloc_addend};
    array_push(writer->arena, &writer->refs, ref);
    *code = out;
    return true;
}

/* The last call becomes a jump: same place, but its field may lie elsewhere. */
static bool jump_instead(struct writer *writer, uint32_t number, uint32_t first_ref,
                         struct code_bytes *code, struct error *err)
{
    const struct target *target = writer->program->target;
    const struct insn *insn = &writer->program->insns[number];
    struct code_bytes out = {0};
    if (!target->call_to_jump(code->bytes, code->length, &out))
        return fail_body(writer, insn, "a thunk that does not end in a call", err);
    for (uint32_t i = first_ref; i < writer->refs.count; i++) {
        struct helper_ref *ref = &writer->refs.items[i];
        ref->type = target->call_reloc_to_jump(ref->type);
        if (out.has_reloc)
            ref->offset = (uint32_t)writer->data.size + out.reloc_offset;
    }
    *code = out;
    return true;
}

static bool write_insn(struct writer *writer, uint32_t number, bool last,
                       struct error *err)
{
    const struct target *target = writer->program->target;
    const struct insn *insn = &writer->program->insns[number];
    const struct helper *helper = writer->helper;
    uint32_t first_ref = writer->refs.count;
    struct code_bytes code = {.length = insn->length};
    memcpy(code.bytes, writer->section->data.at + insn->offset, insn->length);
    if (helper->stack_shift && (insn->traits & (INSN_SP_MEMORY | INSN_SP_COPY))) {
        struct code_bytes out = {0};
        if (!target->shift_sp(code.bytes, code.length, (int32_t)helper->stack_shift,
                              &out))
            return fail_body(writer, insn, "a stack operand that has no room", err);
        code = out;
    }
    copy_relocs(writer, number, (uint32_t)code.length - insn->length);
    if (insn_is_resolved(writer->program, number) &&
        !relocate(writer, number, &code, err))
        return false;
    if (helper->thunk && last && !jump_instead(writer, number, first_ref, &code, err))
        return false;
    buffer_put(&writer->data, code.bytes, code.length);
    return true;
}

/* What aligns the stack, or undoes that. */
static void write_align(struct writer *writer, bool leaving)
{
    const struct helper *helper = writer->helper;
    struct code_bytes before, after;
    if (!helper->inner)
        return;
    writer->program->target->emit_align(&before, &after);
    const struct code_bytes *code = leaving ? &after : &before;
    buffer_put(&writer->data, code->bytes, code->length);
}

static bool write_body(struct writer *writer, const struct site *first,
                       struct error *err)
{
    const struct helper *helper = writer->helper;
    uint32_t *offsets = arena_new_array(writer->arena, uint32_t, helper->length + 1);
    write_align(writer, false);
    for (uint32_t i = 0; i < helper->length; i++) {
        bool last = i + 1 == helper->length;
        if (last && helper->thunk)
            write_align(writer, true);
        offsets[i] = (uint32_t)writer->data.size;
        if (!write_insn(writer, first->insn + i, last, err))
            return false;
    }
    if (!helper->thunk)
        write_align(writer, true);
    offsets[helper->length] = (uint32_t)writer->data.size;
    if (!helper->tail && !helper->thunk) {
        struct code_bytes code = {0};
        writer->program->target->emit_return(&code);
        buffer_put(&writer->data, code.bytes, code.length);
    }
    writer->body->data = buffer_bytes(&writer->data);
    writer->body->offsets = offsets;
    writer->body->refs = writer->refs.items;
    writer->body->ref_count = writer->refs.count;
    return true;
}

/* Plain code shares one section; code in a section with a name of its own (.init.text
 * is freed, .ramfunc is copied) keeps its helpers under that name. */
static const char *section_name(const struct section *from)
{
    bool plain = strcmp(from->name, ".text") == 0 || !strncmp(from->name, ".text.", 6);
    return plain ? ".text.outlined" : from->name;
}

struct section_list {
    struct helper_section *items;
    uint32_t count, capacity;
};

static uint32_t find_section(struct arena *arena, struct section_list *sections,
                             const struct section *from)
{
    /* What a section of code may be, besides being in a group or ordered by another. */
    const uint64_t keep = SHF_WRITE | SHF_ALLOC | SHF_EXECINSTR;
    const char *name = section_name(from);
    for (uint32_t i = 0; i < sections->count; i++) {
        if (strcmp(sections->items[i].name, name) == 0)
            return i;
    }
    struct helper_section section = {.name = name, .flags = from->flags & keep};
    array_push(arena, sections, section);
    return sections->count - 1;
}

/* Those that are the end of another one lie there. */
static void join_bodies(const struct plan *plan, struct helper_body *bodies)
{
    for (uint32_t h = 0; h < plan->helper_count; h++) {
        const struct helper *helper = &plan->helpers[h];
        if (!helper->joins)
            continue;
        const struct helper_body *other = &bodies[helper->joined];
        bodies[h].section = other->section;
        bodies[h].start = other->start + other->offsets[helper->joins_at];
    }
}

/* --- all of them --- */

enum { PART_HELPERS = 128 };

struct job {
    const struct program *program;
    const struct plan *plan;
    struct helper_body *bodies;
    struct arena **arenas;     /* by worker */
    const struct error **errs; /* by part; NULL: none */
};

static bool make_body(const struct job *job, struct arena *arena, uint32_t number,
                      struct error *err)
{
    const struct program *program = job->program;
    const struct helper *helper = &job->plan->helpers[number];
    const struct site *first = &job->plan->sites[helper->first_site];
    struct helper_body *body = &job->bodies[number];
    uint32_t function =
        program_function_of_insn(program, helper->stays ? helper->stays_at : first->insn);
    body->code = program->functions[function].code;
    body->section = NO_INDEX;
    if (!helper_has_body(helper))
        return true;
    struct writer writer = {.arena = arena,
                            .program = program,
                            .helper = helper,
                            .section = program_section(program, body->code),
                            .body = body,
                            .data = buffer_new(arena)};
    return write_body(&writer, first, err);
}

static void make_part(void *context, uint32_t part, uint32_t worker)
{
    const struct job *job = context;
    struct arena *arena = job->arenas[worker];
    uint32_t first = part * PART_HELPERS, left = job->plan->helper_count - first;
    uint32_t end = first + (left < PART_HELPERS ? left : PART_HELPERS);
    struct error err = {0};
    for (uint32_t h = first; h < end; h++) {
        if (!make_body(job, arena, h, &err)) {
            job->errs[part] = arena_copy(arena, &err, sizeof err);
            return;
        }
    }
}

/* One behind the other, in their order. */
static struct section_list place_bodies(struct arena *arena, const struct job *job)
{
    struct section_list sections = {0};
    for (uint32_t h = 0; h < job->plan->helper_count; h++) {
        struct helper_body *body = &job->bodies[h];
        if (!helper_has_body(&job->plan->helpers[h]))
            continue;
        body->section =
            find_section(arena, &sections, program_section(job->program, body->code));
        body->start = sections.items[body->section].size;
        sections.items[body->section].size += (uint32_t)body->data.size;
    }
    return sections;
}

bool helpers_make(struct arena *arena, const struct program *program,
                  const struct plan *plan, struct helper_places *out, struct error *err)
{
    uint32_t parts = (plan->helper_count + PART_HELPERS - 1) / PART_HELPERS;
    struct job job = {program, plan,
                      arena_new_array(arena, struct helper_body, plan->helper_count),
                      parallel_arenas(arena, program->workers),
                      arena_new_array(arena, const struct error *, parts)};
    parallel_do(program->workers, parts, make_part, &job);
    parallel_adopt(arena, job.arenas, program->workers);
    for (uint32_t i = 0; i < parts; i++) {
        if (job.errs[i])
            return fail(err, NULL, "%s", job.errs[i]->message);
    }
    struct section_list sections = place_bodies(arena, &job);
    join_bodies(plan, job.bodies);
    *out = (struct helper_places){job.bodies, sections.items, sections.count};
    return true;
}
