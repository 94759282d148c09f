/* SPDX-License-Identifier: MIT
 *
 * What an instruction is, apart from where it stands: a string of bytes that two
 * instructions share exactly when one may stand in for the other in a helper; and the
 * reasons for which an instruction may not be moved at all.
 *
 * The string holds the instruction in its canonical form, the fields that the linker
 * fills cleared, and for each of those fields the relocation and what it refers to.
 * Referents are compared by what they mean after linking, not by how this object spells
 * them:
 *
 *   global or undefined symbol       its name: one symbol in the linked program
 *   mergeable string or constant     its contents, so that units can share
 *   any other place in the object    the place; only equal within one object
 *
 * A branch that the assembler resolved is described as the relocation that a helper
 * will need for it, so that `bl f` is the same with and without one.
 */
#include "outliner/choose/key.h"

#include <elf.h>
#include <string.h>

/* --- reasons to stay --- */

/* Helpers of an archive are linked with some of its members. What belongs to others
 * stays undefined; linkers take that, but for the address of something that another
 * module may define, told by a distance, in an image that can lie anywhere. */
static bool may_dangle(const struct view *view, const struct reloc *reloc,
                       const struct reloc_kind *kind)
{
    return view->program->loose && reloc->symbol != 0 &&
           (kind->kind == RELOC_PC || kind->kind == RELOC_PAGE) &&
           (view->object->symbols[reloc->symbol].other & 3) == STV_DEFAULT;
}

static enum refusal refuse_reloc(const struct view *view, const struct reloc *reloc)
{
    const struct reloc_kind *kind = view->program->target->reloc_kind(reloc->type);
    if (kind == NULL || kind->kind == RELOC_UNKNOWN || kind->kind == RELOC_BRANCH) {
        return REFUSAL_INSN_RELOC;
    }
    if (kind->kind == RELOC_TLS_ATOM) {
        return REFUSAL_INSN_TLS;
    }
    bool glued = (view->insn->traits & INSN_GLUED) != 0;
    bool follows = (view->insn->traits & INSN_LEADER) == 0 && view->index > 0 &&
                   (view->insn[-1].traits & INSN_GLUED) != 0;
    if ((kind->kind == RELOC_GOT_PAGE && !glued) ||
        (kind->kind == RELOC_GOT_LOW && !follows)) {
        return REFUSAL_INSN_PARTED;
    }
    /* Fields of 21 bits and less (adr, literal loads) may not reach from a helper; adrp
     * has 21, too, but counts pages. */
    uint32_t bits = mask_bits(kind->mask);
    if ((kind->kind == RELOC_PC && bits < 26) ||
        ((view->insn->traits & INSN_PC_RELATIVE) != 0 && bits < 21)) {
        return REFUSAL_INSN_RELOC;
    }
    struct referent referent = view_referent(view, reloc);
    if (!referent.local) {
        return may_dangle(view, reloc, kind) ? REFUSAL_INSN_RELOC : REFUSAL_NONE;
    }
    if (view->object->sections[referent.section].group != NO_INDEX) {
        return REFUSAL_INSN_RELOC; /* gone when the linker drops this copy */
    }
    return view_stays_found(view, referent.section, referent.offset)
               ? REFUSAL_NONE
               : REFUSAL_INSN_LOCAL;
}

/* Some relocation accounts for the PC-relative field. */
static bool is_pc_class(uint8_t kind)
{
    return kind != RELOC_NONE && kind != RELOC_ABSOLUTE && kind != RELOC_SIZE &&
           kind != RELOC_GOT_LOW;
}

static enum refusal refuse_resolved(const struct view *view)
{
    const struct program *program = view->program;
    const struct insn *insn = view->insn;
    struct code_bytes code;
    if (insn->target == NO_INDEX ||
        !view_stays_found(view, program->code[view->code].section, insn->target)) {
        return REFUSAL_INSN_LOCAL;
    }
    bool grouped = view->section->group != NO_INDEX;
    bool other_relocs = (insn->traits & INSN_RELOCATED) != 0;
    if (grouped || other_relocs ||
        !program->target->relocatable(view_bytes(view), insn->length, &code)) {
        return REFUSAL_INSN_RELOC;
    }
    return REFUSAL_NONE;
}

/* A jump within the function, or to its start (a loop, as far as we can tell). */
static bool jumps_inside(const struct view *view)
{
    if (view->insn->flow == FLOW_BRANCH || view->insn->flow == FLOW_STOP) {
        return true;
    }
    if (view->insn->flow != FLOW_JUMP || view->insn->target == NO_INDEX) {
        return false;
    }
    uint32_t own = program_function_of_insn(view->program, view->index);
    const struct function *function = &view->program->functions[own];
    return view->insn->target >= function->start && view->insn->target < function->end;
}

static enum refusal refuse(const struct view *view)
{
    uint32_t traits = view->insn->traits;
    if ((traits & (INSN_PINNED | INSN_MARKER | INSN_EXCLUSIVE | INSN_NOP)) != 0) {
        return REFUSAL_INSN_PINNED;
    }
    if ((traits & INSN_FORBIDDEN) != 0) {
        return REFUSAL_INSN_TWICE;
    }
    if ((traits & INSN_WRAPPED) != 0) {
        return REFUSAL_INSN_WRAPPED;
    }
    if (jumps_inside(view)) {
        return REFUSAL_INSN_LOCAL;
    }
    uint32_t first;
    uint32_t count = view_relocs(view, &first);
    bool explained = (traits & INSN_PC_RELATIVE) == 0;
    for (uint32_t i = first; i < first + count; i++) {
        const struct reloc *reloc = &view->section->relocs[i];
        enum refusal refusal = refuse_reloc(view, reloc);
        if (refusal != REFUSAL_NONE) {
            return refusal;
        }
        explained |= is_pc_class(view->program->target->reloc_kind(reloc->type)->kind);
    }
    return explained ? REFUSAL_NONE : refuse_resolved(view);
}

enum refusal insn_refusal(const struct program *program, uint32_t code, uint32_t insn)
{
    struct view view = view_of(program, code, insn);
    return refuse(&view);
}

/* --- the string --- */

static void put_place(const struct view *view, uint32_t section, int64_t offset,
                      enum key_mode mode, struct buffer *key)
{
    buffer_u8(key, 'p');
    if (mode == KEY_STABLE) {
        buffer_string(key, view->object->sections[section].name);
    } else {
        buffer_u32(key, view->program->code[view->code].object);
        buffer_u32(key, section);
    }
    buffer_u64(key, (uint64_t)offset);
}

/* Contents, if this relocation may be compared by them; else false. */
static bool put_contents(const struct view *view, const struct reloc *reloc,
                         const struct referent *referent, struct buffer *key)
{
    const struct section *section = &view->object->sections[referent->section];
    const struct symbol *symbol = &view->object->symbols[reloc->symbol];
    /* The helper would refer to the copy of one object, which a link may leave out. */
    if (view->program->loose) {
        return false;
    }
    /* A name with an addend means the name's contents (perhaps their end), whatever
     * lies behind them; only the section's symbol means what lies there. */
    bool direct =
        symbol->type == STT_SECTION || (int64_t)symbol->value == referent->offset;
    if (!section_is_mergeable(section) || !direct) {
        return false;
    }
    const struct reloc_kind *kind = view->program->target->reloc_kind(reloc->type);
    bool whole = (kind->kind == RELOC_PC || kind->kind == RELOC_ABSOLUTE) &&
                 mask_bits(kind->mask) >= 32;
    struct bytes contents = section_contents(section, referent->offset);
    if (contents.size == 0 ||
        !(whole || insn_heads_pair(view->program, view->code, view->index) ||
          insn_ends_pair(view->program, view->code, view->index))) {
        return false;
    }
    buffer_u8(key, 'c');
    buffer_u64(key, section->flags);
    buffer_u64(key, section->entry_size);
    buffer_u64(key, section->align);
    buffer_u64(key, contents.size);
    buffer_put(key, contents.at, contents.size);
    return true;
}

static void put_referent(const struct view *view, const struct reloc *reloc,
                         enum key_mode mode, struct buffer *key)
{
    const struct symbol *symbol = &view->object->symbols[reloc->symbol];
    struct referent referent = view_referent(view, reloc);
    if (referent.local) {
        if (!put_contents(view, reloc, &referent, key)) {
            put_place(view, referent.section, referent.offset, mode, key);
            buffer_u8(key, symbol->type == STT_GNU_IFUNC);
        }
        return;
    }
    bool local = reloc_is_local(view->object, reloc); /* absolute, usually */
    buffer_u8(key, local ? 'l' : 'g');
    if (local && mode == KEY_EXACT) {
        buffer_u32(key, view->program->code[view->code].object);
        buffer_u32(key, reloc->symbol);
    }
    buffer_string(key, reloc->symbol != 0 ? symbol->name : "");
    buffer_u64(key, (uint64_t)referent.addend);
}

static void put_relocs(const struct view *view, struct code_bytes *code,
                       enum key_mode mode, struct buffer *key)
{
    uint32_t first;
    uint32_t count = view_relocs(view, &first);
    for (uint32_t i = first; i < first + count; i++) {
        const struct reloc *reloc = &view->section->relocs[i];
        const struct reloc_kind *kind = view->program->target->reloc_kind(reloc->type);
        if (kind->kind == RELOC_NONE) {
            continue;
        }
        uint32_t at = (uint32_t)(reloc->offset - view->insn->offset);
        uint64_t word = load_le(code->bytes + at, kind->size);
        store_le(code->bytes + at, kind->size, word & ~kind->mask);
        buffer_u8(key, (uint8_t)at);
        buffer_u32(key, reloc->type);
        put_referent(view, reloc, mode, key);
    }
}

/* Sections of a special name keep to themselves: their code may be copied, discarded
 * after start-up, or placed in memory of its own. */
static bool is_plain_text(const char *name)
{
    const char *prefix = ".text";
    while (*prefix != '\0' && *prefix == *name) {
        prefix++;
        name++;
    }
    return *prefix == '\0' && (*name == '\0' || *name == '.');
}

enum refusal insn_key(const struct program *program, uint32_t code, uint32_t insn,
                      enum key_mode mode, struct buffer *key, struct token *out)
{
    struct view view = view_of(program, code, insn);
    enum refusal refusal = refuse(&view);
    if (refusal != REFUSAL_NONE) {
        return refusal;
    }
    const struct target *target = program->target;
    const uint8_t *bytes = view_bytes(&view);
    uint8_t length = view.insn->length;
    bool relocated = (view.insn->traits & INSN_RELOCATED) != 0;
    bool resolved = !relocated && (view.insn->traits & INSN_PC_RELATIVE) != 0;
    struct code_bytes form = {0};
    bool known = true;
    if (resolved) {
        known = target->relocatable(bytes, length, &form);
    } else if ((view.insn->traits & INSN_PC_RELATIVE) != 0) {
        known = target->canonical(bytes, length, &form);
    } else { /* is canonical as it is */
        form.length = length;
        memcpy(form.bytes, bytes, length);
    }
    if (!known || (relocated && form.length != length)) {
        return REFUSAL_INSN_RELOC;
    }
    if (relocated) {
        put_relocs(&view, &form, mode, key);
    } else if (resolved) {
        buffer_u8(key, form.reloc_offset);
        buffer_u32(key, form.reloc_type);
        put_place(&view, program->code[code].section, view.insn->target, mode, key);
        buffer_u8(key, 0);
    }
    buffer_put(key, form.bytes, form.length);
    out->size = form.length;
    out->glued = insn_is_glued(program, code, insn);
    buffer_u8(key, out->glued);
    if (!is_plain_text(view.section->name)) {
        buffer_string(key, view.section->name);
    }
    return REFUSAL_NONE;
}
