/* SPDX-License-Identifier: MIT
 *
 * Whose address may be known to somebody. A direct call or jump does not take the
 * address of its callee; anything else does that refers to the start of a function:
 * a word of data, a `lea`, an `adrp` with its other half, a way through the GOT. What
 * other objects of the link do cannot be seen, so every global name may be taken there.
 *
 * (LLVM's .llvm_addrsig says the same of Clang's objects, but nothing of GCC's.)
 */
#include "outliner/fold/fold.h"

#include <elf.h>
#include <stdlib.h>

struct lead fold_lead(const struct folder *folder, uint32_t section, uint32_t reloc)
{
    const struct program *program = folder->program;
    const struct section *from = &folder->object->sections[section];
    const struct reloc *at = &from->relocs[reloc];
    const struct symbol *symbol = &folder->object->symbols[at->symbol];
    struct lead lead = {.section = symbol->section};
    if (at->symbol == 0 || symbol->section >= folder->object->section_count)
        return (struct lead){.section = SECTION_UNDEFINED};
    const struct reloc_kind *kind = program->target->reloc_kind(at->type);
    uint32_t insn = program_insn_of_reloc(
        program, program_code_of(program, folder->number, section), at);
    bool relative = kind && (kind->kind == RELOC_PC || kind->kind == RELOC_CALL);
    if (insn != NO_INDEX && relative) {
        enum flow flow = (enum flow)program->insns[insn].flow;
        lead.transfers =
            flow == FLOW_JUMP || flow == FLOW_BRANCH || flow == FLOW_CALL;
    }
    /* An addend to what goes through the GOT is none to the symbol. */
    bool indirect = kind && kind->kind == RELOC_GOT && symbol->type == STT_SECTION;
    lead.exact = kind && !indirect && (insn != NO_INDEX || kind->kind == RELOC_ABSOLUTE);
    lead.position = wrapping_add(wrapping_add((int64_t)symbol->value, at->addend),
                                 insn_reloc_bias(program, insn, at));
    return lead;
}

/* An entry of a table of distances counts from the table's start, so symbol and addend
 * alone name a place somewhere behind the one that is meant. The checker knows no tables:
 * what it would take for the middle of a function is not folded. */
static void keep_around(struct folder *folder, uint32_t section, const struct lead *lead)
{
    uint32_t around =
        lead->exact ? NO_INDEX : fold_at(folder, section, lead->position);
    if (around != NO_INDEX &&
        lead->position != folder->candidates.items[around].start)
        folder->candidates.items[around].fixed = true;
}

/* A relocation of something that stays in the program while it runs. A name on a jump
 * cannot serve who wants the middle of a function, or who may want it. */
static void note(struct folder *folder, uint32_t section, uint32_t reloc)
{
    const struct reloc *at = &folder->object->sections[section].relocs[reloc];
    uint32_t to = folder->object->symbols[at->symbol].section;
    if (at->symbol == 0 || to >= folder->object->section_count ||
        folder->first_of[to] == NO_INDEX)
        return;
    struct lead lead = fold_lead(folder, section, reloc);
    keep_around(folder, to, &lead);
    struct foldable *candidate = &folder->candidates.items[folder->first_of[to]];
    if (!candidate->alone)
        return; /* it keeps its entry, and nothing refers to its middle */
    bool by_name = !symbol_is_local(&folder->object->symbols[at->symbol]);
    bool entry = lead.position == 0;
    if (!lead.transfers && (entry || !lead.exact))
        candidate->taken = true;
    if (!lead.exact || (by_name && !entry))
        candidate->unsure = true;
}

void fold_find_taken(struct folder *folder)
{
    const struct object *object = folder->object;
    for (uint32_t s = 1; s < object->symbol_count; s++) {
        const struct symbol *symbol = &object->symbols[s];
        uint32_t at = symbol->section < object->section_count && !symbol_is_local(symbol)
                          ? fold_at(folder, symbol->section, (int64_t)symbol->value)
                          : NO_INDEX;
        if (at != NO_INDEX)
            folder->candidates.items[at].outside = true;
    }
    for (uint32_t s = 1; s < object->section_count; s++) {
        if (fold_is_table(&object->sections[s]))
            continue;
        for (uint32_t r = 0; r < object->sections[s].reloc_count; r++)
            note(folder, s, r);
    }
}
