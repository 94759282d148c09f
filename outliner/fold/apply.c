/* SPDX-License-Identifier: MIT
 *
 * The object with a plan carried out. First everything that refers to what goes is led
 * to what stays; what is left then are sections to which nobody refers but tables about
 * code, and dropping those is what the merger does with copies of COMDAT groups.
 */
#include "outliner/fold/fold.h"

#include <assert.h>
#include <elf.h>
#include <string.h>

struct symbol_list {
    struct symbol *items;
    uint32_t count, capacity;
};

/* The jumps of one class, in a section of their own. */
struct jumps {
    uint32_t section; /* its index in the draft */
    struct buffer bytes;
    array_of(struct reloc) relocs;
};

/* What becomes of one section that goes. */
struct fate {
    const struct folded *item; /* NULL: it stays */
    uint32_t jumps, at;        /* item->jumps: index in draft.jumps, section offset */
    uint32_t size;             /* of the jump */
};

/* A section whose functions become jumps where they lie. */
struct patch {
    uint8_t *data; /* NULL: there is none */
    array_of(struct reloc) relocs;
    uint32_t next; /* old relocation */
};

struct draft {
    const struct folder *folder;
    struct arena *arena;
    const struct fold_plan *plan;
    struct symbol_list symbols;
    struct section *sections;
    uint32_t section_count;
    uint32_t *section_symbols; /* by section of the draft: symbol index, or 0 */
    struct fate *fates;        /* by section */
    struct patch *patches;     /* by section */
    uint32_t *lengths;         /* by function: of the jump that it has become, or 0 */
    struct fde_edit *frames;   /* by FDE */
    uint32_t *jumps_of;        /* by heir, a function: index + 1 in jumps */
    array_of(struct jumps) jumps;
};

static uint32_t section_symbol(struct draft *draft, uint32_t section)
{
    uint32_t *known = &draft->section_symbols[section];
    if (*known == 0) {
        struct symbol symbol = {
            .name = "", .section = section, .bind = STB_LOCAL, .type = STT_SECTION};
        *known = draft->symbols.count;
        array_push(draft->arena, &draft->symbols, symbol);
    }
    return *known;
}

static const struct foldable *function_of(const struct draft *draft, uint32_t number)
{
    return &draft->folder->candidates.items[number];
}

/* --- jumps --- */

static void mark_code(struct draft *draft, uint32_t section)
{
    const char *mark = draft->folder->program->target->code_mark;
    struct symbol symbol = {.name = mark, .section = section, .bind = STB_LOCAL};
    if (mark)
        array_push(draft->arena, &draft->symbols, symbol);
}

static struct jumps *jumps_to(struct draft *draft, uint32_t heir)
{
    const struct folder *folder = draft->folder;
    if (draft->jumps_of[heir])
        return &draft->jumps.items[draft->jumps_of[heir] - 1];
    const struct section *like =
        &folder->object->sections[function_of(draft, heir)->section];
    struct jumps jumps = {.section = draft->section_count++,
                          .bytes = buffer_new(draft->arena)};
    draft->sections[jumps.section] =
        (struct section){.name = ".text.folded",
                         .type = SHT_PROGBITS,
                         .flags = like->flags & ~(uint64_t)SHF_GROUP,
                         .align = folder->program->target->function_align,
                         .group = NO_INDEX,
                         .unit = like->unit};
    array_push(draft->arena, &draft->jumps, jumps);
    draft->jumps_of[heir] = draft->jumps.count;
    mark_code(draft, jumps.section);
    return &draft->jumps.items[draft->jumps.count - 1];
}

/* The relocation of a jump that lies at an offset, and its bytes. */
static struct reloc jump_to(struct draft *draft, uint32_t heir, uint32_t offset,
                            struct code_bytes *jump)
{
    const struct foldable *function = function_of(draft, heir);
    bool can = fold_jump(draft->folder, function, jump);
    assert(can); /* it was planned with one */
    (void)can;
    return (struct reloc){offset + jump->reloc_offset,
                          jump->reloc_addend + function->start,
                          section_symbol(draft, function->section), jump->reloc_type};
}

static void add_jump(struct draft *draft, struct fate *fate)
{
    const struct folder *folder = draft->folder;
    struct jumps *jumps = jumps_to(draft, fate->item->heir);
    uint32_t align = folder->program->target->function_align;
    while (jumps->bytes.size % align) {
        uint8_t nop;
        folder->program->target->emit_padding(&nop, 1);
        buffer_u8(&jumps->bytes, nop);
    }
    fate->jumps = draft->jumps_of[fate->item->heir] - 1;
    fate->at = (uint32_t)jumps->bytes.size;
    struct code_bytes jump;
    struct reloc reloc = jump_to(draft, fate->item->heir, fate->at, &jump);
    fate->size = jump.length;
    buffer_put(&jumps->bytes, jump.bytes, jump.length);
    array_push(draft->arena, &jumps->relocs, reloc);
}

static void finish_jumps(struct draft *draft)
{
    for (uint32_t i = 0; i < draft->jumps.count; i++) {
        const struct jumps *jumps = &draft->jumps.items[i];
        struct section *section = &draft->sections[jumps->section];
        section->data = buffer_bytes(&jumps->bytes);
        section->relocs = jumps->relocs.items;
        section->reloc_count = jumps->relocs.count;
    }
}

/* At each of these jumps the caller is found as at the entry of any function. */
static void make_frames(struct draft *draft)
{
    const struct folder *folder = draft->folder;
    array_of(struct frame_range) ranges = {0};
    uint32_t row = row_at_entry(folder->program->rows, folder->object->machine);
    for (uint32_t heir = 0; heir < folder->candidates.count; heir++) {
        if (!draft->jumps_of[heir] || !function_of(draft, heir)->fde)
            continue;
        const struct jumps *jumps = &draft->jumps.items[draft->jumps_of[heir] - 1];
        struct row_change *change = arena_new_one(draft->arena, struct row_change);
        change->row = row;
        struct frame_range range = {.length = (uint32_t)jumps->bytes.size,
                                    .symbol = section_symbol(draft, jumps->section),
                                    .changes = change,
                                    .change_count = 1};
        array_push(draft->arena, &ranges, range);
    }
    if (ranges.count == 0)
        return;
    struct section *out = &draft->sections[draft->section_count++];
    frames_build(draft->arena, folder->object->machine, folder->program->rows,
                 ranges.items, ranges.count, 0,
                 draft->sections[draft->jumps.items[0].section].unit, out);
}

/* --- functions in company --- */

static void copy_relocs(struct draft *draft, struct patch *patch,
                        const struct section *from, uint64_t end)
{
    while (patch->next < from->reloc_count && from->relocs[patch->next].offset < end)
        array_push(draft->arena, &patch->relocs, from->relocs[patch->next++]);
}

/* (Functions come in the order of their places.) */
static void patch_function(struct draft *draft, const struct folded *item)
{
    const struct folder *folder = draft->folder;
    const struct foldable *function = function_of(draft, item->function);
    const struct section *from = &draft->sections[function->section];
    struct patch *patch = &draft->patches[function->section];
    if (!patch->data)
        patch->data = arena_copy(draft->arena, from->data.at, from->data.size);
    struct code_bytes jump;
    struct reloc reloc = jump_to(draft, item->heir, function->start, &jump);
    uint32_t rest = function->start + jump.length;
    memcpy(patch->data + function->start, jump.bytes, jump.length);
    folder->program->target->emit_padding(patch->data + rest, function->end - rest);
    copy_relocs(draft, patch, from, function->start);
    array_push(draft->arena, &patch->relocs, reloc);
    while (patch->next < from->reloc_count &&
           from->relocs[patch->next].offset < function->end)
        patch->next++;
    draft->lengths[item->function] = jump.length;
    if (!function->fde)
        return;
    const struct frames *frames = &folder->program->frames[folder->number];
    struct row_change *change = arena_new_one(draft->arena, struct row_change);
    change->row = function->fde->changes[0].row;
    draft->frames[function->fde - frames->fdes] = (struct fde_edit){
        .rewrite = true, .length = jump.length, .changes = change, .change_count = 1};
}

static void finish_patches(struct draft *draft)
{
    const struct folder *folder = draft->folder;
    const struct object *object = folder->object;
    for (uint32_t s = 1; s < object->section_count; s++) {
        struct patch *patch = &draft->patches[s];
        if (!patch->data)
            continue;
        copy_relocs(draft, patch, &draft->sections[s], UINT64_MAX);
        draft->sections[s].data.at = patch->data;
        draft->sections[s].relocs = patch->relocs.items;
        draft->sections[s].reloc_count = patch->relocs.count;
    }
}

static void edit_frames(struct draft *draft)
{
    const struct folder *folder = draft->folder;
    const struct frames *frames = &folder->program->frames[folder->number];
    uint32_t count = folder->object->section_count;
    bool *edited = arena_new_array(draft->arena, bool, count);
    for (uint32_t f = 0; f < frames->fde_count; f++)
        edited[frames->fdes[f].section] |= draft->frames[f].rewrite;
    for (uint32_t s = 1; s < count; s++) {
        if (!edited[s])
            continue;
        struct object now = *folder->object; /* with relocations that have moved on */
        now.sections = draft->sections;
        struct section out;
        frames_rewrite(draft->arena, &now, s, folder->program->rows, frames,
                       draft->frames, &out);
        draft->sections[s] = out;
    }
}

/* --- names --- */

/* Section symbols and mapping symbols go with their section. */
static bool goes(const struct symbol *symbol)
{
    return symbol->type == STT_SECTION || symbol->name[0] == '$';
}

static void move_symbol(struct draft *draft, struct symbol *symbol)
{
    const struct fate *fate = &draft->fates[symbol->section];
    uint32_t function = fold_at(draft->folder, symbol->section, (int64_t)symbol->value);
    if (!fate->item && function != NO_INDEX && draft->lengths[function]) {
        symbol->size = symbol->size ? draft->lengths[function] : 0;
    } else if (fate->item && fate->item->jumps && symbol->value == 0) {
        symbol->section = draft->jumps.items[fate->jumps].section;
        symbol->value = fate->at;
        symbol->size = symbol->size ? fate->size : 0;
    } else if (fate->item) {
        const struct foldable *heir = function_of(draft, fate->item->heir);
        symbol->section = heir->section;
        symbol->value += heir->start;
    }
}

static void move_symbols(struct draft *draft)
{
    const struct object *object = draft->folder->object;
    for (uint32_t i = 1; i < object->symbol_count; i++) {
        struct symbol *symbol = &draft->symbols.items[i];
        if (symbol->section < object->section_count && !goes(symbol))
            move_symbol(draft, symbol);
    }
}

/* --- references --- */

/* A table speaks of the code that goes: it keeps meaning that, and is told later. */
static void keep_meaning(struct draft *draft, uint32_t section, struct reloc *reloc)
{
    const struct symbol *symbol = &draft->folder->object->symbols[reloc->symbol];
    if (goes(symbol))
        return;
    reloc->addend += (int64_t)symbol->value;
    reloc->symbol = section_symbol(draft, section);
}

static void lead_on(struct draft *draft, uint32_t from, uint32_t number,
                    struct reloc *reloc)
{
    const struct symbol *symbol = &draft->folder->object->symbols[reloc->symbol];
    const struct fate *fate = &draft->fates[symbol->section];
    struct lead lead = fold_lead(draft->folder, from, number);
    bool entry = lead.position == 0;
    bool direct = symbol_is_local(symbol) && entry && lead.transfers;
    if (fate->item->jumps && !direct) {
        if (!goes(symbol))
            return; /* the name has moved */
        if (entry) {
            const struct jumps *jumps = &draft->jumps.items[fate->jumps];
            reloc->addend += fate->at;
            reloc->symbol = section_symbol(draft, jumps->section);
            return;
        }
    } else if (!direct && !goes(symbol)) {
        return;
    }
    const struct foldable *heir = function_of(draft, fate->item->heir);
    reloc->addend += (int64_t)symbol->value + heir->start;
    reloc->symbol = section_symbol(draft, heir->section);
}

static void move_relocs(struct draft *draft, uint32_t number)
{
    const struct object *object = draft->folder->object;
    const struct section *from = &object->sections[number];
    struct reloc *relocs = NULL;
    for (uint32_t i = 0; i < from->reloc_count; i++) {
        uint32_t symbol = from->relocs[i].symbol;
        uint32_t to = object->symbols[symbol].section;
        if (symbol == 0 || to >= object->section_count || !draft->fates[to].item)
            continue;
        if (!relocs)
            relocs = arena_copy(draft->arena, from->relocs,
                                from->reloc_count * sizeof *relocs);
        if (fold_is_table(from))
            keep_meaning(draft, to, &relocs[i]);
        else
            lead_on(draft, number, i, &relocs[i]);
    }
    if (relocs)
        draft->sections[number].relocs = relocs;
}

/* --- the whole --- */

static void start(struct draft *draft)
{
    const struct object *object = draft->folder->object;
    struct arena *arena = draft->arena;
    uint32_t most = object->section_count + draft->plan->count + 1;
    draft->sections = arena_new_array(arena, struct section, most);
    memcpy(draft->sections, object->sections,
           object->section_count * sizeof *draft->sections);
    draft->section_count = object->section_count;
    draft->section_symbols = arena_new_array(arena, uint32_t, most);
    draft->fates = arena_new_array(arena, struct fate, most);
    draft->patches = arena_new_array(arena, struct patch, most);
    draft->frames = arena_new_array(
        arena, struct fde_edit,
        draft->folder->program->frames[draft->folder->number].fde_count);
    uint32_t functions = draft->folder->candidates.count;
    draft->jumps_of = arena_new_array(arena, uint32_t, functions);
    draft->lengths = arena_new_array(arena, uint32_t, functions);
    draft->symbols.count = object->symbol_count;
    draft->symbols.capacity = object->symbol_count + 16;
    draft->symbols.items =
        arena_new_array(arena, struct symbol, draft->symbols.capacity);
    memcpy(draft->symbols.items, object->symbols,
           object->symbol_count * sizeof *draft->symbols.items);
    for (uint32_t i = 1; i < object->symbol_count; i++) {
        const struct symbol *symbol = &object->symbols[i];
        if (symbol->type == STT_SECTION && symbol->section < object->section_count &&
            draft->section_symbols[symbol->section] == 0)
            draft->section_symbols[symbol->section] = i;
    }
}

static struct group *dissolve(const struct draft *draft)
{
    const struct object *object = draft->folder->object;
    struct group *groups = arena_copy(draft->arena, object->groups,
                                      object->group_count * sizeof *groups);
    for (uint32_t g = 0; g < object->group_count; g++) {
        if (!draft->plan->dissolved[g])
            continue;
        for (uint32_t m = 0; m < groups[g].member_count; m++)
            draft->sections[groups[g].members[m]].group = NO_INDEX;
        groups[g].member_count = 0;
    }
    return groups;
}

static void make(struct draft *draft)
{
    const struct fold_plan *plan = draft->plan;
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct folded *item = &plan->items[i];
        const struct foldable *function = function_of(draft, item->function);
        struct fate *fate = &draft->fates[function->section];
        if (!function->alone)
            continue;
        fate->item = item;
        if (item->jumps)
            add_jump(draft, fate);
    }
    finish_jumps(draft);
    make_frames(draft);
    /* From here on every section has its number, and what goes its place. */
    for (uint32_t s = 1; s < draft->folder->object->section_count; s++) {
        if (!plan->dropped[s])
            move_relocs(draft, s);
    }
    for (uint32_t i = 0; i < plan->count; i++) {
        if (!function_of(draft, plan->items[i].function)->alone)
            patch_function(draft, &plan->items[i]);
    }
    finish_patches(draft);
    edit_frames(draft);
    move_symbols(draft);
}

bool fold_apply(struct arena *arena, const struct fold_plan *plan,
                const struct object **out, const uint32_t **section_at,
                struct error *err)
{
    struct arena *stage = arena_new();
    const struct object *of = plan->folder->object;
    struct draft draft = {.folder = plan->folder, .arena = arena, .plan = plan};
    start(&draft);
    make(&draft);
    struct object folded = *of;
    folded.groups = dissolve(&draft);
    folded.sections = draft.sections;
    folded.section_count = draft.section_count;
    folded.symbols = draft.symbols.items;
    folded.symbol_count = draft.symbols.count;
    bool *dropped = arena_new_array(stage, bool, folded.section_count);
    memcpy(dropped, plan->dropped, of->section_count * sizeof *dropped);
    bool ok = object_drop(arena, &folded, dropped, out, section_at, err);
    arena_free(stage);
    return ok;
}
