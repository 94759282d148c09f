/* SPDX-License-Identifier: MIT
 *
 * Which functions are the same code. All that look alike begin in one class; a class is
 * split when its functions call what lies in different classes, until nothing splits
 * any more. (Partition refinement, as for the states of an automaton: Hopcroft 1971.
 * Beginning with all in one, functions that call each other in a circle are found, which
 * they are not when equal callees must be known first.)
 *
 * Alike: the same bytes; the same relocations at the same places, to the same things;
 * the same unwind rows, personality, call-site table. Two functions that call two
 * others of one class call the same, if it is certain that the names will still mean
 * these two when the program runs. That is so of local and hidden names, and, by the
 * one-definition rule, of those in COMDAT groups: whatever takes such a one's place is
 * the same function. Only calls may differ that way: two addresses are two things.
 */
#include "outliner/fold/fold.h"

#include "mo/bytes.h"
#include "mo/table.h"
#include "outliner/choose/key.h"

#include <elf.h>
#include <string.h>

/* The name will mean the definition in this object, or one that is as good. */
static bool is_bound(const struct folder *folder, const struct symbol *symbol)
{
    uint8_t visibility = ELF64_ST_VISIBILITY(symbol->other);
    if (symbol_is_local(symbol) ||
        (symbol->bind == STB_GLOBAL &&
         (visibility == STV_HIDDEN || visibility == STV_INTERNAL)))
        return true;
    return symbol->bind == STB_WEAK &&
           folder->object->sections[symbol->section].group != NO_INDEX;
}

/* The candidate that a relocation calls, or NO_INDEX. */
static uint32_t callee_of(const struct folder *folder, uint32_t section, uint32_t reloc,
                          const struct lead *lead)
{
    const struct reloc *at = &folder->object->sections[section].relocs[reloc];
    if (lead->section == SECTION_UNDEFINED || !lead->transfers ||
        !is_bound(folder, &folder->object->symbols[at->symbol]))
        return NO_INDEX;
    return fold_at(folder, lead->section, lead->position);
}

enum { REFERS_SELF, REFERS_CLASS, REFERS_PLACE, REFERS_CONTENTS, REFERS_SYMBOL };

/* What a relocation refers to, apart from classes. `around`: the function that it lies
 * in, or NULL. */
static void put_referent(const struct folder *folder, struct buffer *key,
                         const struct foldable *around, uint32_t section, uint32_t reloc)
{
    const struct object *object = folder->object;
    const struct reloc *at = &object->sections[section].relocs[reloc];
    const struct symbol *symbol = &object->symbols[at->symbol];
    struct lead lead = fold_lead(folder, section, reloc);
    int64_t offset = (int64_t)(symbol->value + (uint64_t)at->addend);
    bool local = at->symbol != 0 && symbol_is_local(symbol) &&
                 lead.section != SECTION_UNDEFINED;
    bool itself = local && around && lead.section == section && lead.exact &&
                  lead.position > around->start && lead.position < around->end;
    uint32_t callee = callee_of(folder, section, reloc, &lead);
    struct bytes contents = {0};
    if (local && lead.exact && section_is_mergeable(&object->sections[lead.section]))
        contents = section_contents(&object->sections[lead.section], lead.position);
    if (callee != NO_INDEX) {
        buffer_u8(key, REFERS_CLASS);
        buffer_u64(key, (uint64_t)lead.position -
                            folder->candidates.items[callee].start);
    } else if (itself) {
        buffer_u8(key, REFERS_SELF);
        buffer_u64(key, (uint64_t)offset - around->start);
    } else if (contents.size) {
        buffer_u8(key, REFERS_CONTENTS);
        buffer_u64(key, contents.size);
        buffer_put(key, contents.at, contents.size);
        buffer_u32(key, (uint32_t)object->sections[lead.section].entry_size);
        buffer_u32(key, (uint32_t)object->sections[lead.section].align);
    } else if (local) {
        buffer_u8(key, REFERS_PLACE);
        buffer_u32(key, lead.section);
        buffer_u64(key, (uint64_t)offset);
    } else {
        buffer_u8(key, REFERS_SYMBOL);
        buffer_u32(key, at->symbol);
        buffer_u64(key, (uint64_t)at->addend);
    }
}

/* Relocations and bytes of a part of a section, counted from its start. */
static void put_part(const struct folder *folder, struct buffer *key,
                     const struct foldable *around, uint32_t number, uint32_t start,
                     uint32_t end)
{
    const struct section *section = &folder->object->sections[number];
    buffer_u32(key, end - start);
    buffer_put(key, section->data.at + start, end - start);
    for (uint32_t r = section_reloc_at(section, start);
         r < section->reloc_count && section->relocs[r].offset < end; r++) {
        buffer_u32(key, (uint32_t)section->relocs[r].offset - start);
        buffer_u32(key, section->relocs[r].type);
        put_referent(folder, key, around, number, r);
    }
}

/* A table says the same as another one also where padding and sizes of numbers differ,
 * which depend on where it lies. */
static void put_lsda(const struct folder *folder, struct buffer *key,
                     const struct foldable *candidate)
{
    const struct lsda *lsda = candidate->lsda;
    uint32_t section = lsda->section, types = lsda->types_end;
    buffer_u32(key, lsda->site_count);
    for (uint32_t i = 0; i < lsda->site_count; i++) {
        const struct call_site *site = &lsda->sites[i];
        buffer_u32(key, site->start - candidate->start);
        buffer_u32(key, site->end - candidate->start);
        buffer_u32(key,
                   site->pad == NO_INDEX ? NO_INDEX : site->pad - candidate->start);
        buffer_u32(key, site->action);
    }
    put_part(folder, key, NULL, section, lsda->actions, lsda->actions_end);
    buffer_u8(key, lsda->types_encoding);
    if (types == NO_INDEX)
        return;
    put_part(folder, key, NULL, section,
             types - lsda->type_count * lsda_type_size(lsda), types);
    put_part(folder, key, NULL, section, types, lsda->lists_end);
}

static void put_frame(const struct folder *folder, struct buffer *key,
                      const struct fde *fde)
{
    buffer_u8(key, fde != NULL);
    if (!fde)
        return;
    const struct cie *cie = &folder->program->frames[folder->number].cies[fde->cie];
    buffer_u8(key, cie->signal_frame);
    buffer_u8(key, cie->b_key);
    buffer_u8(key, cie->has_personality);
    buffer_u32(key, cie->personality);
    buffer_u32(key, cie->return_column);
    buffer_u32(key, fde->length);
    buffer_u32(key, fde->change_count);
    for (uint32_t i = 0; i < fde->change_count; i++) {
        buffer_u32(key, fde->changes[i].offset - fde->start);
        buffer_u32(key, fde->changes[i].row);
    }
}

/* ".text.unlikely…", ".text.hot…", … are laid out apart. */
static void put_kind(struct buffer *key, const char *name)
{
    static const char *const kinds[] = {".text.unlikely", ".text.hot", ".text.startup",
                                        ".text.exit"};
    uint8_t kind = 0;
    for (uint8_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strncmp(name, kinds[i], strlen(kinds[i])) == 0)
            kind = (uint8_t)(i + 1);
    }
    buffer_u8(key, kind);
}

static uint32_t first_class(const struct folder *folder, struct arena *stage,
                            struct table *keys, const struct foldable *candidate)
{
    struct buffer key = buffer_new(stage);
    const struct object *object = folder->object;
    const struct section *section = &object->sections[candidate->section];
    put_kind(&key, section->name);
    buffer_u64(&key, section->flags & ~(uint64_t)SHF_GROUP);
    buffer_u32(&key, object->units[section->unit].features);
    put_part(folder, &key, candidate, candidate->section, candidate->start,
             candidate->end);
    put_frame(folder, &key, candidate->fde);
    buffer_u8(&key, candidate->lsda != NULL);
    if (candidate->lsda)
        put_lsda(folder, &key, candidate);
    struct bytes bytes = buffer_bytes(&key);
    return table_intern(keys, bytes.at, bytes.size);
}

static uint32_t next_class(const struct folder *folder, struct arena *stage,
                           struct table *keys, const struct foldable *candidate)
{
    struct buffer key = buffer_new(stage);
    buffer_u32(&key, candidate->class);
    const struct section *section = &folder->object->sections[candidate->section];
    for (uint32_t r = section_reloc_at(section, candidate->start);
         r < section->reloc_count && section->relocs[r].offset < candidate->end; r++) {
        struct lead lead = fold_lead(folder, candidate->section, r);
        uint32_t callee = callee_of(folder, candidate->section, r, &lead);
        if (callee != NO_INDEX)
            buffer_u32(&key, folder->candidates.items[callee].class);
    }
    struct bytes bytes = buffer_bytes(&key);
    return table_intern(keys, bytes.at, bytes.size);
}

/* Gives all candidates their next classes; how many there are. */
static uint32_t step(struct folder *folder, bool first)
{
    struct arena *stage = arena_new();
    struct table *keys = table_new(stage);
    uint32_t count = folder->candidates.count;
    uint32_t *classes = arena_new_array(stage, uint32_t, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct foldable *candidate = &folder->candidates.items[i];
        classes[i] = first ? first_class(folder, stage, keys, candidate)
                           : next_class(folder, stage, keys, candidate);
    }
    for (uint32_t i = 0; i < count; i++)
        folder->candidates.items[i].class = classes[i];
    uint32_t found = table_count(keys);
    arena_free(stage);
    return found;
}

void fold_classify(struct folder *folder)
{
    uint32_t count = step(folder, true);
    for (uint32_t before = 0; before != count;) {
        before = count;
        count = step(folder, false);
    }
}
