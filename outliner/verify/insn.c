/* SPDX-License-Identifier: MIT
 *
 * Are two instructions the same? Their bytes must be, once the fields that linkers fill
 * and the PC-relative field are blanked; then what those fields mean is compared. On
 * the way from `before` to `after` an instruction may have changed in three ways, which
 * are applied to the old one first: its SP operand has grown, a call has become a jump,
 * a field that the assembler had filled is now a relocation's.
 */
#include "outliner/verify/verify.h"

#include <string.h>

enum { MOST_REFS = 4 };

/* One reference of an instruction. */
struct ref {
    uint32_t type; /* of its relocation; RESOLVED: it has none */
    struct meaning meaning;
};
#define RESOLVED UINT32_MAX

struct refs {
    struct ref pc; /* what the PC-relative field means */
    bool has_pc;
    struct ref others[MOST_REFS];
    uint32_t other_count;
};

enum { NEARBY_RELOCS = 4 };

/* The same as section_reloc_at(), which has the last word. */
static uint32_t reloc_at(const struct side *side, const struct section *section,
                         uint32_t offset)
{
    struct nearby *nearby = side->nearby;
    const struct reloc *relocs = section->relocs;
    uint32_t at = nearby->section == section ? nearby->reloc : 0;
    bool passed = at > 0 && relocs[at - 1].offset >= offset;
    for (int i = 0; i < NEARBY_RELOCS && at < section->reloc_count; i++, at++) {
        if (relocs[at].offset >= offset)
            break;
    }
    bool found = at == section->reloc_count || relocs[at].offset >= offset;
    if (passed || !found)
        at = section_reloc_at(section, offset);
    nearby->section = section;
    nearby->reloc = at;
    return at;
}

static void find_relocs(const struct side *side, const struct section *section,
                        struct view *out)
{
    uint32_t first = reloc_at(side, section, out->at.offset), count = 0;
    uint64_t end = (uint64_t)out->at.offset + out->insn.length;
    while (first + count < section->reloc_count &&
           section->relocs[first + count].offset < end)
        count++;
    out->relocs = count ? section->relocs + first : NULL;
    out->reloc_count = count;
}

bool view_at(const struct verify *verify, const struct side *side, struct spot at,
             struct view *out)
{
    const struct section *section = spot_section(side, at);
    if (at.offset >= section->data.size)
        return false;
    *out = (struct view){.at = at, .bytes = section->data.at + at.offset};
    if (!decoder_decode(verify->decoder, out->bytes, section->data.size - at.offset,
                        at.offset, &out->insn))
        return false;
    find_relocs(side, section, out);
    return true;
}

/* Decoding looks at an instruction's own bytes and nothing else, but for what counts
 * from its place. */
bool view_like(const struct verify *verify, const struct side *side, struct spot at,
               const struct view *like, struct view *out)
{
    const struct section *section = spot_section(side, at);
    uint8_t length = like->insn.length;
    if ((like->insn.traits & INSN_PC_RELATIVE) ||
        at.offset % verify->target->code_align != 0 ||
        (uint64_t)at.offset + length > section->data.size ||
        memcmp(section->data.at + at.offset, like->bytes, length) != 0)
        return view_at(verify, side, at, out);
    *out = (struct view){
        .at = at, .insn = like->insn, .bytes = section->data.at + at.offset};
    out->insn.offset = at.offset;
    find_relocs(side, section, out);
    return true;
}

bool is_hint(const struct verify *verify, const struct reloc *reloc)
{
    const struct reloc_kind *kind = verify->target->reloc_kind(reloc->type);
    return kind && kind->kind == RELOC_NONE;
}

bool is_relative(const struct verify *verify, const struct reloc *reloc)
{
    const struct reloc_kind *kind = verify->target->reloc_kind(reloc->type);
    return kind && (kind->kind == RELOC_PC || kind->kind == RELOC_CALL ||
                    kind->kind == RELOC_GOT);
}

static struct meaning meaning_in(const struct verify *verify, const struct side *side,
                                 const struct view *view, const struct reloc *reloc)
{
    bool relative = is_relative(verify, reloc);
    uint8_t bias =
        relative ? verify->target->reloc_bias(&view->insn, reloc->offset) : 0;
    return meaning_of(side, view->at.object, reloc, bias);
}

bool is_pc_field(const struct verify *verify, const struct view *view,
                 const struct reloc *reloc)
{
    struct code_bytes code;
    return (view->insn.traits & INSN_PC_RELATIVE) &&
           verify->target->canonical(view->bytes, view->insn.length, &code) &&
           reloc->offset - view->at.offset == code.reloc_offset;
}

static bool find_refs(const struct verify *verify, const struct side *side,
                      const struct view *view, struct refs *out)
{
    out->has_pc = false; /* (what nobody asks for needs no zeros) */
    out->other_count = 0;
    for (uint32_t i = 0; i < view->reloc_count; i++) {
        const struct reloc *reloc = &view->relocs[i];
        if (is_hint(verify, reloc))
            continue;
        struct ref ref = {reloc->type, meaning_in(verify, side, view, reloc)};
        if (is_pc_field(verify, view, reloc) && !out->has_pc) {
            out->pc = ref;
            out->has_pc = true;
        } else if (out->other_count < MOST_REFS) {
            out->others[out->other_count++] = ref;
        } else {
            return false;
        }
    }
    if (out->has_pc || !(view->insn.traits & INSN_PC_RELATIVE))
        return true;
    out->pc = (struct ref){RESOLVED, meaning_of_place(view->at, view->insn.target)};
    out->has_pc = true;
    return view->insn.target != NO_INDEX;
}

bool view_target(const struct verify *verify, const struct side *side,
                 const struct view *view, struct spot *out)
{
    struct refs refs;
    uint8_t flow = view->insn.flow;
    if ((flow != FLOW_CALL && flow != FLOW_JUMP) ||
        !find_refs(verify, side, view, &refs) || !refs.has_pc)
        return false;
    const struct meaning *meaning = &refs.pc.meaning;
    if (!meaning->placed || meaning->offset < 0 || meaning->offset >= NO_INDEX)
        return false;
    *out = (struct spot){meaning->object, meaning->section, (uint32_t)meaning->offset};
    return true;
}

/* --- bytes --- */

/* The bytes that the old instruction should have now. */
static bool expected_bytes(const struct verify *verify, const struct view *before,
                           int32_t shift, bool thunk, struct code_bytes *out)
{
    struct code_bytes code = {.length = before->insn.length};
    memcpy(code.bytes, before->bytes, code.length);
    bool shifted =
        shift != 0 && (before->insn.traits & (INSN_SP_MEMORY | INSN_SP_COPY));
    if (shifted &&
        !verify->target->shift_sp(before->bytes, before->insn.length, shift, &code))
        return false;
    *out = code;
    return !thunk || verify->target->call_to_jump(code.bytes, code.length, out);
}

/* Clears the bits that linkers fill. `end` is the section offset behind the instruction
 * that the relocations belong to: fields keep their distance from the end. */
static void blank_fields(const struct verify *verify, const struct view *view,
                         struct code_bytes *code)
{
    uint64_t end = (uint64_t)view->at.offset + view->insn.length;
    for (uint32_t i = 0; i < view->reloc_count; i++) {
        const struct reloc *reloc = &view->relocs[i];
        const struct reloc_kind *kind = verify->target->reloc_kind(reloc->type);
        uint64_t back = end - reloc->offset;
        if (!kind || back > code->length || kind->size > back || kind->size == 0)
            continue;
        uint8_t *field = code->bytes + (code->length - back);
        store_le(field, kind->size, load_le(field, kind->size) & ~kind->mask);
    }
}

static void make_canonical(const struct verify *verify, const struct view *view,
                           struct code_bytes *code)
{
    struct code_bytes canonical;
    uint8_t length = code->length;
    if ((view->insn.traits & INSN_PC_RELATIVE) &&
        verify->target->canonical(code->bytes, code->length, &canonical))
        *code = canonical;
    if (code->length == length)
        blank_fields(verify, view, code);
}

static bool bytes_agree(const struct verify *verify, const struct view *before,
                        const struct view *after, const struct code_bytes *expected)
{
    struct code_bytes old = *expected;
    struct code_bytes new = {.length = after->insn.length};
    memcpy(new.bytes, after->bytes, new.length);
    make_canonical(verify, before, &old);
    make_canonical(verify, after, &new);
    return old.length == new.length &&memcmp(old.bytes, new.bytes, old.length) == 0;
}

/* Distance of each field from the end: a field is where it was. */
static bool fields_agree(const struct verify *verify, const struct view *before,
                         const struct view *after)
{
    uint64_t old_end = (uint64_t)before->at.offset + before->insn.length;
    uint64_t new_end = (uint64_t)after->at.offset + after->insn.length;
    uint32_t j = 0;
    for (uint32_t i = 0; i < before->reloc_count; i++) {
        const struct reloc *reloc = &before->relocs[i];
        if (is_hint(verify, reloc) || is_pc_field(verify, before, reloc))
            continue;
        while (j < after->reloc_count &&
               (is_hint(verify, &after->relocs[j]) ||
                is_pc_field(verify, after, &after->relocs[j])))
            j++;
        if (j == after->reloc_count ||
            old_end - reloc->offset != new_end - after->relocs[j].offset)
            return false;
        j++;
    }
    return true;
}

/* --- references --- */

/* The relocation type that the PC-relative field should have now. */
static uint32_t expected_type(const struct verify *verify, uint32_t type, bool thunk,
                              const struct code_bytes *expected)
{
    struct code_bytes relocated;
    if (type != RESOLVED)
        return thunk ? verify->target->call_reloc_to_jump(type) : type;
    if (verify->target->relocatable(expected->bytes, expected->length, &relocated) &&
        relocated.has_reloc)
        return relocated.reloc_type;
    return RESOLVED;
}

static bool pc_agrees(struct verify *verify, const struct view *before,
                      const struct view *after, const struct refs *old,
                      const struct refs *new, uint32_t type, struct error *err)
{
    if (old->has_pc != new->has_pc)
        return verify_fail(verify, before->at, after->at, err,
                           "its PC-relative field differs");
    if (!old->has_pc)
        return true;
    if (new->pc.type != RESOLVED &&new->pc.type != type)
        return verify_fail(verify, before->at, after->at, err,
                           "relocation type %u instead of %u", new->pc.type, type);
    /* A name can only be named by a relocation. */
    if (new->pc.type == RESOLVED && old->pc.type != RESOLVED && old->pc.meaning.name)
        return verify_fail(verify, before->at, after->at, err,
                           "the relocation against '%s' is gone", old->pc.meaning.name);
    return meanings_agree(verify, &old->pc.meaning, &new->pc.meaning, before->at,
                          after->at, err);
}

static bool others_agree(struct verify *verify, const struct view *before,
                         const struct view *after, const struct refs *old,
                         const struct refs *new, struct error *err)
{
    if (old->other_count != new->other_count || !fields_agree(verify, before, after))
        return verify_fail(verify, before->at, after->at, err,
                           "its relocations differ in number or place");
    for (uint32_t i = 0; i < old->other_count; i++) {
        if (old->others[i].type != new->others[i].type)
            return verify_fail(verify, before->at, after->at, err,
                               "relocation type %u instead of %u", new->others[i].type,
                               old->others[i].type);
        if (!meanings_agree(verify, &old->others[i].meaning, &new->others[i].meaning,
                            before->at, after->at, err))
            return false;
    }
    return true;
}

/* It has no field that means anything beyond its bytes. */
static bool is_plain(const struct view *view)
{
    return view->reloc_count == 0 && !(view->insn.traits & INSN_PC_RELATIVE);
}

static bool same_bytes(const struct view *before, const struct view *after)
{
    return before->insn.length == after->insn.length &&
           memcmp(before->bytes, after->bytes, before->insn.length) == 0;
}

bool views_agree(struct verify *verify, const struct view *before,
                 const struct view *after, int32_t shift, bool thunk, struct error *err)
{
    struct code_bytes expected;
    struct refs old, new;
    if (shift == 0 && !thunk && is_plain(before) && is_plain(after) &&
        same_bytes(before, after))
        return true; /* all that follows would find nothing to compare */
    if (!expected_bytes(verify, before, shift, thunk, &expected))
        return verify_fail(verify, before->at, after->at, err,
                           "an instruction that cannot be shifted or jumped to is in a "
                           "helper");
    if (!bytes_agree(verify, before, after, &expected))
        return verify_fail(verify, before->at, after->at, err,
                           "another instruction (SP operands are %d bytes larger)",
                           (int)shift);
    if (!find_refs(verify, &verify->before, before, &old) ||
        !find_refs(verify, &verify->after, after, &new))
        return verify_fail(verify, before->at, after->at, err,
                           "it refers to a place that cannot be named");
    uint32_t type =
        old.has_pc ? expected_type(verify, old.pc.type, thunk, &expected) : RESOLVED;
    return pc_agrees(verify, before, after, &old, &new, type, err) &&
           others_agree(verify, before, after, &old, &new, err);
}
