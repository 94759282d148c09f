/* SPDX-License-Identifier: MIT
 *
 * What to fold. Of each class one section stays, the heir; the others go.
 *
 * COMDAT groups. A linker drops all copies of a group but one, so what other code leans
 * on must not lie in a group: the heir's group becomes plain sections. Its names are
 * weak then, as they have been in the group, so copies in other objects clash with
 * nothing; only, they are not dropped any more. So groups are dissolved only when there
 * are no other objects that we know of. Names of what has gone are weak, too: whoever
 * has another copy may provide them.
 *
 * Addresses. Local functions of which nobody takes the address become aliases. Others
 * keep an address: a jump to the heir, in a section beside it. C++ knows functions
 * whose address nobody can take, constructors and destructors, but their names may
 * still be global; they could be aliases, at the price of reading names.
 */
#include "outliner/fold/fold.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

bool fold_jump(const struct folder *folder, const struct foldable *candidate,
               struct code_bytes *out)
{
    const struct program *program = folder->program;
    const struct function *function = &program->functions[candidate->function];
    const struct insn *first = &program->insns[function->first_insn];
    const struct section *section = &folder->object->sections[candidate->section];
    uint8_t mark = first->traits & INSN_MARKER ? first->length : 0;
    /* `paciasp` is a landing mark as well, and cannot be left behind. */
    if (function->insn_count == 0 ||
        ((first->traits & INSN_SIGNS) &&
         folder->object->units[section->unit].features != 0))
        return false;
    struct code_bytes jump;
    program->target->emit_jump(&jump);
    *out = jump;
    memcpy(out->bytes, section->data.at + candidate->start, mark);
    memcpy(out->bytes + mark, jump.bytes, jump.length);
    out->length = (uint8_t)(jump.length + mark);
    out->reloc_offset = (uint8_t)(jump.reloc_offset + mark);
    return true;
}

/* Every name in the group may be defined elsewhere, too, once it is no group. */
static bool *find_dissolvable(const struct folder *folder)
{
    const struct object *object = folder->object;
    bool *out = arena_new_array(folder->arena, bool, object->group_count);
    for (uint32_t g = 0; g < object->group_count; g++)
        out[g] = !folder->options->apart;
    for (uint32_t i = 1; i < object->symbol_count; i++) {
        const struct symbol *symbol = &object->symbols[i];
        uint32_t group = symbol->section < object->section_count
                             ? object->sections[symbol->section].group
                             : NO_INDEX;
        if (group != NO_INDEX && symbol->bind != STB_LOCAL && symbol->bind != STB_WEAK)
            out[group] = false;
    }
    return out;
}

struct planner {
    struct folder *folder;
    const bool *dissolvable;
    bool *dropped, *dissolved;
    array_of(struct folded) items;
    int64_t code, padding;
};

static uint32_t group_of(const struct planner *planner, uint32_t section)
{
    return planner->folder->object->sections[section].group;
}

/* (However it is aligned: names come onto it only of functions that nobody has the address
 * of. Addresses that somebody has, and C++ takes an odd one for a virtual function, are
 * those of jumps, which lie where the function was or are aligned themselves.) */
static bool may_stay(const struct planner *planner, const struct foldable *candidate)
{
    uint32_t group = group_of(planner, candidate->section);
    return group == NO_INDEX || planner->dissolvable[group];
}

static uint64_t size_of(const struct planner *planner, const struct foldable *of)
{
    return of->alone ? planner->folder->object->sections[of->section].data.size
                     : of->end - of->start;
}

/* Bytes of a jump where the next one begins. */
static uint32_t jump_size(const struct planner *planner, const struct code_bytes *jump)
{
    uint32_t align = planner->folder->program->target->function_align;
    return (jump->length + align - 1) / align * align;
}

/* The smallest unwind entry with its place in the header: what the jumps of a class cost
 * together, and what each function that goes saves at least. */
enum { JUMP_FRAME = 28 };

static void go(struct planner *planner, const struct foldable *candidate,
               const struct foldable *heir, bool jumps)
{
    const struct foldable *all = planner->folder->candidates.items;
    struct folded item = {(uint32_t)(candidate - all), (uint32_t)(heir - all), jumps};
    array_push(planner->folder->arena, &planner->items, item);
    uint32_t group = group_of(planner, heir->section);
    if (group != NO_INDEX)
        planner->dissolved[group] = true;
    if (candidate->alone) {
        planner->dropped[candidate->section] = true;
        planner->code += (int64_t)size_of(planner, candidate);
    }
}

static bool wants_alias(const struct foldable *candidate)
{
    return candidate->alone && !candidate->taken && !candidate->outside;
}

/* What a jump in the place of a function saves; 0 or less: nothing. */
static int64_t gain_of(const struct planner *planner, const struct foldable *candidate,
                       const struct code_bytes *jump)
{
    if (candidate->unsure || candidate->fixed)
        return 0;
    if (!candidate->alone) /* the entry stays, and the next function is aligned */
        return (int64_t)size_of(planner, candidate) - jump->length;
    int64_t gain = (int64_t)size_of(planner, candidate) - jump_size(planner, jump);
    return gain <= 0 ? gain : gain + (candidate->fde ? JUMP_FRAME : 0);
}

/* Those of a class that keep their addresses. The ones whose sections go share an unwind
 * entry for their jumps, so they go together or not at all. */
static void fold_onto_jumps(struct planner *planner, const struct foldable *const *all,
                            uint32_t count, const struct foldable *heir)
{
    struct code_bytes jump;
    if (!fold_jump(planner->folder, heir, &jump))
        return;
    int64_t together = -JUMP_FRAME;
    for (uint32_t i = 0; i < count; i++) {
        int64_t gain = gain_of(planner, all[i], &jump);
        if (all[i] != heir && all[i]->alone && !wants_alias(all[i]) && gain > 0)
            together += gain;
    }
    uint32_t alone = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool fits = gain_of(planner, all[i], &jump) > 0 &&
                    (!all[i]->alone || together > 0);
        if (all[i] == heir || wants_alias(all[i]) || !fits)
            continue;
        go(planner, all[i], heir, true);
        alone += all[i]->alone;
        if (!all[i]->alone)
            planner->padding += all[i]->end - all[i]->start - jump.length;
    }
    if (alone) /* nothing behind the last one */
        planner->code -= (int64_t)(alone - 1) * jump_size(planner, &jump) + jump.length;
}

/* Plain sections before groups, sections with one function after others: what goes
 * should go as a whole. */
static int rank_of(const struct planner *planner, const struct foldable *candidate)
{
    if (group_of(planner, candidate->section) != NO_INDEX)
        return 2;
    return candidate->alone ? 1 : 0;
}

static void fold_class(struct planner *planner, const struct foldable *const *all,
                       uint32_t count)
{
    const struct foldable *heir = NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (may_stay(planner, all[i]) &&
            (!heir || rank_of(planner, all[i]) < rank_of(planner, heir)))
            heir = all[i];
    }
    if (!heir || count < 2)
        return;
    for (uint32_t i = 0; i < count; i++) {
        if (all[i] != heir && wants_alias(all[i]))
            go(planner, all[i], heir, false);
    }
    fold_onto_jumps(planner, all, count, heir);
}

static int by_class(const void *left, const void *right)
{
    const struct foldable *a = *(const struct foldable *const *)left;
    const struct foldable *b = *(const struct foldable *const *)right;
    if (a->class != b->class)
        return a->class < b->class ? -1 : 1;
    return (a > b) - (a < b); /* of one array */
}

static int by_function(const void *left, const void *right)
{
    const struct folded *a = left, *b = right;
    return (a->function > b->function) - (a->function < b->function);
}

static void choose(struct planner *planner)
{
    const struct folder *folder = planner->folder;
    uint32_t count = folder->candidates.count;
    const struct foldable **sorted =
        arena_new_array(folder->arena, const struct foldable *, count);
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = &folder->candidates.items[i];
    if (count)
        qsort(sorted, count, sizeof(*sorted), by_class);
    for (uint32_t i = 0, end; i < count; i = end) {
        end = i;
        while (end < count && sorted[end]->class == sorted[i]->class)
            end++;
        fold_class(planner, sorted + i, end - i);
    }
    if (planner->items.count)
        qsort(planner->items.items, planner->items.count, sizeof *planner->items.items,
              by_function);
}

static const struct fold_function *functions_of(const struct folder *folder)
{
    uint32_t count = folder->candidates.count;
    struct fold_function *out =
        arena_new_array(folder->arena, struct fold_function, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct foldable *from = &folder->candidates.items[i];
        out[i] = (struct fold_function){from->section, from->start, from->end,
                                        from->class, from->alone};
    }
    return out;
}

/* Call-site tables of which none is needed any more go with their section. */
static void drop_tables(struct planner *planner)
{
    const struct folder *folder = planner->folder;
    const struct lsdas *lsdas = &folder->program->lsdas[folder->number];
    const struct frames *frames = &folder->program->frames[folder->number];
    for (uint32_t i = 0, end; i < lsdas->count; i = end) {
        bool needed = false;
        for (end = i; end < lsdas->count &&
                      lsdas->items[end].section == lsdas->items[i].section;
             end++) {
            uint32_t code = frames->fdes[lsdas->items[end].fde].code_section;
            needed = needed || code == NO_INDEX || !planner->dropped[code];
        }
        if (!needed)
            planner->dropped[lsdas->items[i].section] = true;
    }
}

void fold_make(struct arena *arena, const struct program *program, uint32_t object,
               const struct fold_options *options, struct fold_plan *out)
{
    const struct object *of = program->objects->items[object];
    struct folder *folder = arena_new_one(arena, struct folder);
    *folder = (struct folder){.arena = arena,
                              .program = program,
                              .number = object,
                              .object = of,
                              .options = options};
    fold_find(folder);
    fold_find_taken(folder);
    fold_classify(folder);
    struct planner planner = {.folder = folder,
                              .dissolvable = find_dissolvable(folder)};
    planner.dropped = arena_new_array(arena, bool, of->section_count);
    planner.dissolved = arena_new_array(arena, bool, of->group_count);
    choose(&planner);
    drop_tables(&planner);
    *out = (struct fold_plan){.functions = functions_of(folder),
                              .function_count = folder->candidates.count,
                              .items = planner.items.items,
                              .count = planner.items.count,
                              .dropped = planner.dropped,
                              .dissolved = planner.dissolved,
                              .folder = folder,
                              .code = planner.code,
                              .padding = planner.padding};
}
