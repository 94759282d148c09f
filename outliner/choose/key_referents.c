/* SPDX-License-Identifier: MIT
 *
 * What a field of an instruction refers to, and when that may be told by its contents.
 *
 * Contents are no referent for half a reference. `adrp` and `add :lo12:` must mean the
 * same copy of a string, and whether the linker merges two copies is its business; so
 * the halves are compared by contents only where they stand side by side and the second
 * overwrites what the first made, and such a pair is glued: no payload has just one
 * half.
 */
#include "outliner/choose/key.h"

#include <elf.h>
#include <string.h>

struct view view_of(const struct program *program, uint32_t code, uint32_t insn)
{
    return (struct view){
        .program = program,
        .object = program_object(program, code),
        .section = program_section(program, code),
        .code = code,
        .insn = &program->insns[insn],
        .index = insn,
    };
}

const uint8_t *view_bytes(const struct view *view)
{
    return view->section->data.at + view->insn->offset;
}

uint32_t mask_bits(uint64_t mask)
{
    return (uint32_t)__builtin_popcountll(mask);
}

struct referent view_referent(const struct view *view, const struct reloc *reloc)
{
    const struct target *target = view->program->target;
    const struct reloc_kind *kind = target->reloc_kind(reloc->type);
    bool biased = kind->kind == RELOC_PC || kind->kind == RELOC_CALL;
    uint8_t bias = biased ? target->reloc_bias(view->insn, reloc->offset) : 0;
    return program_referent(view->object, reloc, bias);
}

/* Another function, or an earlier helper of ours, goes on there: a tail that stayed in
 * place, the end of a helper. The section and the offset say where that is, which only
 * helpers in the same object can do. */
static bool is_shared_end(const struct view *view, uint32_t function, uint32_t offset)
{
    const struct program *program = view->program;
    uint8_t flow = view->insn->flow;
    bool helpers = program->code[program->functions[function].code].helpers;
    bool entered = flow == FLOW_JUMP || (flow == FLOW_CALL && helpers);
    if (program->objects->count != 1 || !entered) {
        return false;
    }
    uint32_t insn = program_insn_in(program, function, offset);
    return insn != NO_INDEX && (program->insns[insn].traits & INSN_LEADER) != 0;
}

/* Positions in code move, so a helper may refer only to those that have a name of their
 * own: starts of functions. Frozen sections keep every position. */
bool view_stays_found(const struct view *view, uint32_t section, int64_t offset)
{
    const struct program *program = view->program;
    uint32_t object = program->code[view->code].object;
    uint32_t code = program_code_of(program, object, section);
    if (code == NO_INDEX || program->code[code].refusal != REFUSAL_NONE) {
        return true;
    }
    if (offset < 0 || offset > UINT32_MAX) {
        return false;
    }
    uint32_t function = program_function_at(program, code, (uint32_t)offset);
    return function != NO_INDEX &&
           (program->functions[function].start == offset ||
            is_shared_end(view, function, (uint32_t)offset));
}

bool section_is_mergeable(const struct section *section)
{
    /* Addresses may be mergeable, too, but their bytes are in the relocations. */
    return (section->flags & SHF_MERGE) != 0 && section->data.at != NULL &&
           section->reloc_count == 0;
}

static bool string_starts_at(const struct section *section, int64_t offset,
                             uint64_t unit)
{
    static const uint8_t zeros[8];
    return (uint64_t)offset % unit == 0 && unit <= sizeof zeros &&
           (offset == 0 ||
            memcmp(section->data.at + (uint64_t)offset - unit, zeros, unit) == 0);
}

/* The mergeable contents that start at an offset, terminator included; size 0 if there
 * are none. In the middle of a string there are none: code that walks to the end of
 * "abc" compares with the address of its NUL, and another empty string will not do. */
struct bytes section_contents(const struct section *section, int64_t offset)
{
    uint64_t size = section->data.size;
    uint64_t unit = section->entry_size != 0 ? section->entry_size : 1;
    if (offset < 0 || (uint64_t)offset >= size || unit > size - (uint64_t)offset) {
        return (struct bytes){0};
    }
    const uint8_t *at = section->data.at + offset;
    if ((section->flags & SHF_STRINGS) != 0 &&
        !string_starts_at(section, offset, unit)) {
        return (struct bytes){0};
    }
    if ((section->flags & SHF_STRINGS) == 0) {
        bool whole = (uint64_t)offset % unit == 0;
        return whole ? (struct bytes){at, unit} : (struct bytes){0};
    }
    uint64_t left = size - (uint64_t)offset;
    for (uint64_t end = 0; unit <= left - end; end += unit) {
        uint64_t zeros = 0;
        while (zeros < unit && at[end + zeros] == 0) {
            zeros++;
        }
        if (zeros == unit) {
            return (struct bytes){at, end + unit};
        }
    }
    return (struct bytes){0};
}

bool reloc_is_local(const struct object *object, const struct reloc *reloc)
{
    return reloc->symbol != 0 && symbol_is_local(&object->symbols[reloc->symbol]);
}

/* (program_relocs() would look for the section again.) */
uint32_t view_relocs(const struct view *view, uint32_t *first)
{
    const struct section *section = view->section;
    uint64_t end = (uint64_t)view->insn->offset + view->insn->length;
    uint32_t count = 0;
    *first = 0;
    if ((view->insn->traits & INSN_RELOCATED) != 0) {
        *first = view->insn->reloc;
        while (*first + count < section->reloc_count &&
               section->relocs[*first + count].offset < end) {
            count++;
        }
    }
    return count;
}

static const struct reloc *only_reloc(const struct view *view)
{
    uint32_t first;
    return view_relocs(view, &first) == 1 ? &view->section->relocs[first] : NULL;
}

/* Of two that stand side by side: asked first, as most are none. */
static bool may_be_pair(const struct insn *first)
{
    const struct insn *second = first + 1;
    return (first->traits & second->traits & INSN_RELOCATED) != 0 &&
           (second->traits & INSN_LEADER) == 0 && first->defs != 0 &&
           first->defs == second->defs;
}

/* The instruction makes the page of a mergeable thing and the next one, which
 * overwrites the same register, adds the rest: together they refer to the contents. */
static bool is_contents_pair(const struct program *program, uint32_t code,
                             uint32_t insn)
{
    if (!may_be_pair(&program->insns[insn])) {
        return false;
    }
    struct view page = view_of(program, code, insn);
    struct view low = view_of(program, code, insn + 1);
    const struct reloc *page_reloc = only_reloc(&page);
    const struct reloc *low_reloc = only_reloc(&low);
    if (page_reloc == NULL || low_reloc == NULL ||
        page_reloc->symbol != low_reloc->symbol || page_reloc->addend != low_reloc->addend ||
        !reloc_is_local(page.object, page_reloc)) {
        return false;
    }
    const struct reloc_kind *first = program->target->reloc_kind(page_reloc->type);
    const struct reloc_kind *second = program->target->reloc_kind(low_reloc->type);
    if (first == NULL || second == NULL || first->kind != RELOC_PAGE ||
        second->kind != RELOC_ABSOLUTE) {
        return false;
    }
    struct referent referent = program_referent(page.object, page_reloc, 0);
    return referent.local &&
           section_is_mergeable(&page.object->sections[referent.section]) &&
           section_contents(&page.object->sections[referent.section], referent.offset)
                   .size > 0;
}

bool insn_heads_pair(const struct program *program, uint32_t code, uint32_t insn)
{
    return insn + 1 < program->insn_count && is_contents_pair(program, code, insn);
}

bool insn_ends_pair(const struct program *program, uint32_t code, uint32_t insn)
{
    return insn > 0 && is_contents_pair(program, code, insn - 1);
}

/* `insn` is a call, with the link register put away right before it and fetched right
 * behind it: our own doing, in an earlier round. */
static bool is_saving_call(const struct program *program, uint32_t insn)
{
    const struct target *target = program->target;
    if (target->link_register >= 64 || insn == 0 || insn + 1 >= program->insn_count) {
        return false;
    }
    const struct insn *call = &program->insns[insn];
    const struct insn *before = call - 1, *behind = call + 1;
    if (call->flow != FLOW_CALL || before->flow != FLOW_NEXT ||
        behind->flow != FLOW_NEXT || ((call->traits | behind->traits) & INSN_LEADER)) {
        return false;
    }
    uint64_t link = (uint64_t)1 << target->link_register;
    uint64_t rest = ~(link | (uint64_t)1 << target->stack_register);
    return (before->uses & link) != 0 && (before->uses & rest) == 0 &&
           (behind->defs & link) != 0 && (behind->defs & rest) == 0;
}

bool insn_is_glued(const struct program *program, uint32_t code, uint32_t insn)
{
    return (program->insns[insn].traits & INSN_GLUED) != 0 ||
           insn_heads_pair(program, code, insn) || is_saving_call(program, insn) ||
           is_saving_call(program, insn + 1);
}
