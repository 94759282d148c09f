/* SPDX-License-Identifier: MIT
 *
 * What was built says what was meant: reads the bytes of an output back and compares
 * the result with the model that they were built from. With that the verifier's word,
 * which is about models, holds for files.
 *
 * The file numbers things in its own way, which is known from gABI and from the comment
 * in object/join.c: local symbols come first, and all .eh_frame sections are one, as
 * are debug sections of equal names. Units are our own and not written.
 */
#include "mo/outputs.h"

#include "mo/table.h"
#include "object/frames.h"

#include <elf.h>
#include <string.h>

/* Sections of the model that are one in the file. */
struct joint {
    uint32_t section; /* index in the file's object; 0: not seen yet */
    uint32_t members;
    uint64_t size; /* so far */
    bool named;    /* its one section symbol has been seen */
};

struct comparison {
    const struct object *model, *back;
    uint32_t *section_at; /* by section of the model: its index in `back` */
    uint64_t *base;       /* and where it starts there */
    struct joint **joint; /* and what it is part of, or NULL */
    uint32_t section_count;
    struct place place;
};

static void find_joints(struct arena *stage, struct comparison *comparison)
{
    const struct object *model = comparison->model;
    struct table *keys = table_new(stage);
    struct joint **known = arena_new_array(stage, struct joint *, model->section_count);
    comparison->joint = arena_new_array(stage, struct joint *, model->section_count);
    for (uint32_t i = 1; i < model->section_count; i++) {
        const char *key = section_join_key(stage, &model->sections[i]);
        if (!key)
            continue;
        struct joint **joint = &known[table_intern_string(keys, key)];
        if (!*joint)
            *joint = arena_new_one(stage, struct joint);
        (*joint)->members++;
        comparison->joint[i] = *joint;
    }
}

/* Frames lie end to end, those that end in a terminator last; others are aligned. */
static void find_bases(struct comparison *comparison)
{
    const struct object *model = comparison->model;
    for (int last = 0; last <= 1; last++) {
        for (uint32_t i = 1; i < model->section_count; i++) {
            const struct section *section = &model->sections[i];
            struct joint *joint = comparison->joint[i];
            if (!joint || frame_is_terminated(section) != (last == 1))
                continue;
            if (!section_is_frame(section))
                joint->size = align_up(joint->size, section->align);
            comparison->base[i] = joint->size;
            joint->size += section->data.size;
        }
    }
}

static void map_sections(struct arena *stage, struct comparison *comparison)
{
    uint32_t count = comparison->model->section_count;
    comparison->section_at = arena_new_array(stage, uint32_t, count);
    comparison->base = arena_new_array(stage, uint64_t, count);
    comparison->section_count = 1;
    find_joints(stage, comparison);
    for (uint32_t i = 1; i < count; i++) {
        struct joint *joint = comparison->joint[i];
        uint32_t at = joint ? joint->section : 0;
        if (at == 0)
            at = comparison->section_count++;
        if (joint)
            joint->section = at;
        comparison->section_at[i] = at;
    }
    find_bases(comparison);
}

static bool is_in_section(const struct comparison *comparison,
                          const struct symbol *symbol)
{
    return symbol->section < comparison->model->section_count;
}

static uint64_t base_of(const struct comparison *comparison,
                        const struct symbol *symbol)
{
    return is_in_section(comparison, symbol) ? comparison->base[symbol->section] : 0;
}

static bool same_symbol(const struct comparison *comparison, const struct symbol *model,
                        const struct symbol *back)
{
    uint32_t section = is_in_section(comparison, model)
                           ? comparison->section_at[model->section]
                           : model->section;
    uint64_t base = model->type == STT_SECTION ? 0 : base_of(comparison, model);
    return model->value + base == back->value && model->size == back->size &&
           section == back->section && model->bind == back->bind &&
           model->type == back->type && model->other == back->other &&
           strcmp(model->name, back->name) == 0;
}

/* The sections that this is the section symbol of, if they are several: one symbol
 * stands for all. */
static struct joint *joint_of(const struct comparison *comparison,
                              const struct symbol *symbol)
{
    if (symbol->type != STT_SECTION || !is_in_section(comparison, symbol))
        return NULL;
    struct joint *joint = comparison->joint[symbol->section];
    return joint && joint->members > 1 ? joint : NULL;
}

/* All symbols in the file's order. */
static bool same_symbols(const struct comparison *comparison)
{
    const struct object *model = comparison->model, *back = comparison->back;
    uint32_t next = 1;
    for (int local = 1; local >= 0; local--) {
        for (uint32_t i = 1; i < model->symbol_count; i++) {
            const struct symbol *symbol = &model->symbols[i];
            if ((symbol->bind == STB_LOCAL) != (local == 1))
                continue;
            struct joint *joint = local ? joint_of(comparison, symbol) : NULL;
            if (joint && joint->named)
                continue;
            if (joint)
                joint->named = true;
            if (next == back->symbol_count ||
                !same_symbol(comparison, symbol, &back->symbols[next++]))
                return false;
        }
    }
    return next == back->symbol_count;
}

/* The relocations of a section, which stand from `first` on in the section of the file.
 */
static bool same_relocs(const struct comparison *comparison, uint32_t index,
                        uint32_t first)
{
    const struct section *of_model = &comparison->model->sections[index];
    const struct section *of_back =
        &comparison->back->sections[comparison->section_at[index]];
    if (of_back->reloc_count - first < of_model->reloc_count)
        return false;
    for (uint32_t i = 0; i < of_model->reloc_count; i++) {
        const struct reloc *x = &of_model->relocs[i], *y = &of_back->relocs[first + i];
        const struct symbol *symbol = &comparison->model->symbols[x->symbol];
        uint64_t base = symbol->type == STT_SECTION ? base_of(comparison, symbol) : 0;
        if (x->offset + comparison->base[index] != y->offset || x->type != y->type ||
            (uint64_t)x->addend + base != (uint64_t)y->addend ||
            !same_symbol(comparison, symbol, &comparison->back->symbols[y->symbol]))
            return false;
    }
    return true;
}

static bool same_header(const struct comparison *comparison,
                        const struct section *model, const struct section *back)
{
    const uint64_t derived = SHF_GROUP;
    uint32_t info = model->flags & SHF_INFO_LINK ? comparison->section_at[model->info]
                                                 : model->info;
    return strcmp(model->name, back->name) == 0 && model->type == back->type &&
           (model->flags | derived) == (back->flags | derived) &&
           model->entry_size == back->entry_size &&
           comparison->section_at[model->link] == back->link && info == back->info &&
           model->group == back->group;
}

static bool same_section(const struct comparison *comparison, uint32_t index)
{
    const struct section *model = &comparison->model->sections[index];
    const struct section *back =
        &comparison->back->sections[comparison->section_at[index]];
    uint64_t base = comparison->base[index], size = model->data.size;
    if (comparison->joint[index]) {
        if (base > back->data.size || back->data.size - base < size ||
            model->align > back->align)
            return false;
    } else if (!same_header(comparison, model, back) || model->align != back->align ||
               size != back->data.size || model->reloc_count != back->reloc_count) {
        return false;
    }
    return model->type == SHT_NOBITS || size == 0 ||
           memcmp(model->data.at, back->data.at + base, size) == 0;
}

static bool same_group(const struct comparison *comparison, uint32_t index)
{
    const struct group *x = &comparison->model->groups[index];
    const struct group *y = &comparison->back->groups[index];
    bool same = x->flags == y->flags && x->member_count == y->member_count &&
                same_symbol(comparison, &comparison->model->symbols[x->signature],
                            &comparison->back->symbols[y->signature]);
    for (uint32_t i = 0; same && i < x->member_count; i++)
        same = comparison->section_at[x->members[i]] == y->members[i];
    return same;
}

/* The first difference between the two, or NULL. */
static const char *difference(struct comparison *comparison)
{
    const struct object *model = comparison->model, *back = comparison->back;
    if (model->machine != back->machine || model->flags != back->flags ||
        model->os_abi != back->os_abi ||
        comparison->section_count != back->section_count ||
        model->group_count != back->group_count)
        return "the header";
    for (uint32_t i = 1; i < model->section_count; i++) {
        const struct section *section = &back->sections[comparison->section_at[i]];
        comparison->place.section = model->sections[i].name;
        if (!same_section(comparison, i))
            return "a section";
        if (!same_relocs(comparison, i, section_reloc_at(section, comparison->base[i])))
            return "a relocation";
    }
    comparison->place.section = NULL;
    if (!same_symbols(comparison))
        return "a symbol";
    for (uint32_t i = 0; i < model->group_count; i++) {
        if (!same_group(comparison, i))
            return "a section group";
    }
    return NULL;
}

bool output_read_back(const struct object *object, struct bytes image,
                      struct error *err)
{
    struct arena *stage = arena_new();
    struct comparison comparison = {.model = object, .place = {.file = object->name}};
    bool ok = object_read(stage, object->name, image, &comparison.back, err);
    if (ok) {
        map_sections(stage, &comparison);
        const char *what = difference(&comparison);
        ok = !what || fail(err, &comparison.place,
                           "internal error: %s came back from the file's bytes as "
                           "something else; nothing was written",
                           what);
    }
    arena_free(stage);
    return ok;
}
