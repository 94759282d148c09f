/* SPDX-License-Identifier: MIT
 *
 * Drafts of the new objects. A draft starts as a copy of the old object in which every
 * symbol of an edited section has its new value and size; new symbols are put behind
 * the old ones, so an old symbol index stays what it was.
 *
 * Helpers are named after a hash of their body, never by a counter: the same code gets
 * the same names in every build, whatever else changed. In one object they are local
 * symbols. In an object of their own they are hidden globals, and carry the name of the
 * set, so that two sets outlined apart can be linked together.
 */
#include "mo/parallel.h"
#include "outliner/rewrite/rewrite.h"

#include <assert.h>
#include <elf.h>
#include <inttypes.h>
#include <string.h>

uint32_t rewrite_start(const struct rewrite *rewrite, uint32_t object, uint32_t section,
                       uint32_t position)
{
    uint32_t code = rewrite->drafts[object].code_of[section];
    return code == NO_INDEX ? position
                            : offsets_start(&rewrite->layouts[code].offsets, position);
}

const struct reloc *rewrite_relocs(const struct rewrite *rewrite, uint32_t object,
                                   uint32_t section)
{
    const struct draft *draft = &rewrite->drafts[object];
    return draft->relocs[section] ? draft->relocs[section]
                                  : draft->old->sections[section].relocs;
}

/* --- old symbols --- */

/* A mapping symbol marks a kind of contents, not a place: one in the middle of a
 * payload is as good at its start. */
static uint32_t symbol_start(const struct offsets *offsets, const struct symbol *symbol)
{
    const struct piece *piece = offsets_piece(offsets, (uint32_t)symbol->value);
    if (symbol->name[0] == '$' && piece->kind == PIECE_REPLACED)
        return piece->new_start;
    return offsets_start(offsets, (uint32_t)symbol->value);
}

static void move_symbol(const struct rewrite *rewrite, const struct draft *draft,
                        struct symbol *symbol)
{
    if (symbol->section == SECTION_UNDEFINED || symbol->type == STT_SECTION ||
        symbol->section >= draft->old->section_count)
        return;
    uint32_t code = draft->code_of[symbol->section];
    if (code == NO_INDEX || rewrite->layouts[code].edits.count == 0)
        return;
    const struct offsets *offsets = &rewrite->layouts[code].offsets;
    uint32_t start = symbol_start(offsets, symbol);
    if (symbol->size)
        symbol->size =
            offsets_end(offsets, (uint32_t)(symbol->value + symbol->size)) - start;
    symbol->value = start;
}

/* `added`: how many helpers the object will refer to. */
static void copy_symbols(struct arena *arena, const struct rewrite *rewrite,
                         struct draft *draft, uint32_t added)
{
    const struct object *old = draft->old;
    draft->symbols.capacity = old->symbol_count + added + 16;
    draft->symbols.count = old->symbol_count;
    draft->symbols.items =
        arena_new_array(arena, struct symbol, draft->symbols.capacity);
    memcpy(draft->symbols.items, old->symbols,
           old->symbol_count * sizeof *draft->symbols.items);
    for (uint32_t i = 1; i < old->symbol_count; i++) {
        struct symbol *symbol = &draft->symbols.items[i];
        move_symbol(rewrite, draft, symbol);
        if (symbol->type == STT_SECTION && symbol->section < old->section_count &&
            draft->section_symbols[symbol->section] == NO_INDEX)
            draft->section_symbols[symbol->section] = i;
    }
}

/* --- new symbols --- */

uint32_t symbols_add(struct rewrite *rewrite, uint32_t draft,
                     const struct symbol *symbol)
{
    struct symbol_list *symbols = &rewrite->drafts[draft].symbols;
    array_push(rewrite->arena, symbols, *symbol);
    return symbols->count - 1;
}

uint32_t symbols_section(struct rewrite *rewrite, uint32_t draft, uint32_t section)
{
    uint32_t *known = &rewrite->drafts[draft].section_symbols[section];
    if (*known == NO_INDEX) {
        struct symbol symbol = {
            .name = "", .section = section, .bind = STB_LOCAL, .type = STT_SECTION};
        *known = symbols_add(rewrite, draft, &symbol);
    }
    return *known;
}

const char *symbols_name(struct rewrite *rewrite, const char *text)
{
    const char *name = text;
    for (uint32_t i = 1; table_find_string(rewrite->names, name) != NO_INDEX; i++)
        name = arena_format(rewrite->arena, "%s.%u", text, i);
    table_intern_string(rewrite->names, name);
    return name;
}

/* Names like ours that earlier rounds left. */
static void collect_names(struct rewrite *rewrite)
{
    const char *set = rewrite->options->set_name;
    size_t set_length = set ? strlen(set) : 0;
    for (uint32_t o = 0; o < rewrite->program->objects->count; o++) {
        const struct object *object = rewrite->program->objects->items[o];
        for (uint32_t i = 1; i < object->symbol_count; i++) {
            const char *name = object->symbols[i].name;
            bool ours = strncmp(name, HELPER_PREFIX, strlen(HELPER_PREFIX)) == 0 ||
                        (set_length && strncmp(name, set, set_length) == 0);
            if (ours)
                table_intern_string(rewrite->names, name);
        }
    }
}

static struct symbol helper_symbol(struct rewrite *rewrite, uint32_t helper)
{
    const struct helper_body *body = &rewrite->places.bodies[helper];
    bool alone = rewrite->drafts[rewrite->home].old == NULL;
    uint64_t hash = rewrite->plan->helpers[helper].hash;
    const char *name =
        alone ? arena_format(rewrite->arena, HELPER_PREFIX "%016" PRIx64 ".%s", hash,
                             rewrite->options->set_name)
              : arena_format(rewrite->arena, HELPER_PREFIX "%016" PRIx64, hash);
    return (struct symbol){.name = symbols_name(rewrite, name),
                           .value = body->start,
                           .size = body->data.size,
                           .section = rewrite->first_section + body->section,
                           .bind = alone ? STB_GLOBAL : STB_LOCAL,
                           .type = STT_FUNC,
                           .other = alone ? STV_HIDDEN : STV_DEFAULT};
}

static void add_helper_symbols(struct rewrite *rewrite)
{
    const char *mark = rewrite->program->target->code_mark;
    for (uint32_t s = 0; mark && s < rewrite->places.section_count; s++) {
        struct symbol symbol = {.name = mark,
                                .section = rewrite->first_section + s,
                                .bind = STB_LOCAL,
                                .type = STT_NOTYPE};
        symbols_add(rewrite, rewrite->home, &symbol);
    }
    for (uint32_t h = 0; h < rewrite->plan->helper_count; h++) {
        if (!helper_has_body(&rewrite->plan->helpers[h]))
            continue;
        struct symbol symbol = helper_symbol(rewrite, h);
        rewrite->helper_symbols[h] = symbols_add(rewrite, rewrite->home, &symbol);
    }
}

/* A place in the middle of a function gets no symbol, which debuggers would take for a
 * function: its section and the offset say it as well. */
static void mean_staying(struct rewrite *rewrite, uint32_t object, uint32_t helper,
                         struct reloc *reloc)
{
    const struct program *program = rewrite->program;
    const struct code *code = &program->code[rewrite->places.bodies[helper].code];
    uint32_t insn = rewrite->plan->helpers[helper].stays_at;
    assert(code->object == object && "a site in another object");
    reloc->symbol = symbols_section(rewrite, object, code->section);
    reloc->addend +=
        rewrite_start(rewrite, object, code->section, program->insns[insn].offset);
}

/* The same in the middle of a helper. */
static void mean_joined(struct rewrite *rewrite, uint32_t object, uint32_t helper,
                        struct reloc *reloc)
{
    const struct helper_body *body = &rewrite->places.bodies[helper];
    assert(object == rewrite->home && "a site in another object");
    reloc->symbol =
        symbols_section(rewrite, object, rewrite->first_section + body->section);
    reloc->addend += body->start;
}

static uint32_t helper_symbol_in(struct rewrite *rewrite, uint32_t object,
                                 uint32_t helper)
{
    uint32_t there = rewrite->helper_symbols[helper];
    if (object == rewrite->home)
        return there;
    assert(rewrite->drafts[rewrite->home].old == NULL && "a site outside of the host");
    if (rewrite->site_objects[helper] != object + 1) {
        struct symbol symbol = rewrite->drafts[rewrite->home].symbols.items[there];
        symbol.section = SECTION_UNDEFINED;
        symbol.value = symbol.size = 0;
        symbol.type = STT_NOTYPE;
        rewrite->site_objects[helper] = object + 1;
        rewrite->site_symbols[helper] = symbols_add(rewrite, object, &symbol);
    }
    return rewrite->site_symbols[helper];
}

void symbols_helper(struct rewrite *rewrite, uint32_t object, uint32_t helper,
                    struct reloc *reloc)
{
    if (rewrite->plan->helpers[helper].stays)
        mean_staying(rewrite, object, helper, reloc);
    else if (rewrite->plan->helpers[helper].joins)
        mean_joined(rewrite, object, helper, reloc);
    else
        reloc->symbol = helper_symbol_in(rewrite, object, helper);
}

/* --- drafts --- */

static uint32_t *no_indices(struct arena *arena, uint32_t count)
{
    uint32_t *all = arena_new_array(arena, uint32_t, count);
    for (uint32_t i = 0; i < count; i++)
        all[i] = NO_INDEX;
    return all;
}

/* Some unwind table is written anew. */
static bool has_new_frames(const struct rewrite *rewrite, uint32_t object)
{
    const struct object *old = rewrite->program->objects->items[object];
    for (uint32_t s = 1; s < old->section_count; s++) {
        if (rewrite->frames[object].changed[s])
            return true;
    }
    return false;
}

/* By object: its code is edited, or it gets something. What refers to code, and may change
 * for that, lies in the object of the code. */
static bool *touched_objects(const struct rewrite *rewrite)
{
    const struct program *program = rewrite->program;
    bool *touched = arena_new_array(rewrite->stage, bool, program->objects->count);
    for (uint32_t c = 0; c < program->code_count; c++)
        touched[program->code[c].object] |= rewrite->layouts[c].edits.count > 0;
    for (uint32_t o = 0; o < program->objects->count; o++)
        touched[o] |= o == rewrite->options->host || has_new_frames(rewrite, o);
    return touched;
}

static void start_draft(struct rewrite *rewrite, struct draft *draft)
{
    const struct object *old = draft->old;
    /* Behind the old sections: code and unwind table for each kind of helper. */
    uint32_t room = old->section_count + 2 * rewrite->places.section_count;
    draft->sections = arena_new_array(rewrite->arena, struct section, room);
    memcpy(draft->sections, old->sections,
           old->section_count * sizeof *draft->sections);
    draft->section_count = old->section_count;
    draft->relocs = arena_new_array(rewrite->stage, struct reloc *, room);
    draft->data = arena_new_array(rewrite->stage, uint8_t *, room);
    draft->code_of = no_indices(rewrite->stage, room);
    draft->section_symbols = no_indices(rewrite->stage, room);
}

/* The object for the helpers of several: empty but for what every object has. */
static void start_helper_draft(struct rewrite *rewrite, struct draft *draft)
{
    uint32_t room = 3 + 2 * rewrite->places.section_count; /* null, notes, theirs */
    draft->sections = arena_new_array(rewrite->arena, struct section, room);
    draft->sections[0] = (struct section){.name = "", .group = NO_INDEX};
    draft->section_count = 1;
    draft->section_symbols = no_indices(rewrite->stage, room);
    struct symbol null = {.name = ""};
    array_push(rewrite->arena, &draft->symbols, null);
}

static bool has_bodies(const struct plan *plan)
{
    for (uint32_t h = 0; h < plan->helper_count; h++) {
        if (helper_has_body(&plan->helpers[h]))
            return true;
    }
    return false;
}

static void settle_home(struct rewrite *rewrite)
{
    const struct objects *objects = rewrite->program->objects;
    rewrite->draft_count = objects->count;
    rewrite->home = rewrite->options->host;
    if (!has_bodies(rewrite->plan)) {
        rewrite->home = NO_INDEX;
        return;
    }
    if (rewrite->home == NO_INDEX) {
        rewrite->home = rewrite->draft_count++;
        start_helper_draft(rewrite, &rewrite->drafts[rewrite->home]);
    } else {
        rewrite->unit = objects->items[rewrite->home]->unit_count;
    }
    struct draft *home = &rewrite->drafts[rewrite->home];
    rewrite->first_section = home->section_count;
    home->section_count += rewrite->places.section_count;
    add_helper_symbols(rewrite);
}

/* By object: the helpers that its sites go to. */
static const uint32_t *count_helpers(const struct rewrite *rewrite)
{
    const struct program *program = rewrite->program;
    uint32_t *counts =
        arena_new_array(rewrite->stage, uint32_t, program->objects->count);
    uint32_t *last = no_indices(rewrite->stage, rewrite->plan->helper_count);
    for (uint32_t c = 0; c < program->code_count; c++) {
        const struct edit_list *edits = &rewrite->layouts[c].edits;
        uint32_t object = program->code[c].object;
        for (uint32_t e = 0; e < edits->count; e++) {
            uint32_t helper = edits->items[e].helper;
            if (helper == NO_INDEX || last[helper] == object)
                continue;
            last[helper] = object;
            counts[object]++;
        }
    }
    return counts;
}

struct copying {
    struct rewrite *rewrite;
    const bool *touched;    /* by object … */
    const uint32_t *counts; /* … of helpers that it will refer to */
    struct arena **arenas;  /* by worker */
};

/* The names are all in one table, so they are one part: the first, which is the longest.
 * The others are the objects. */
static void copy_part(void *context, uint32_t number, uint32_t worker)
{
    const struct copying *copying = context;
    struct rewrite *rewrite = copying->rewrite;
    uint32_t object = number - 1;
    if (number == 0)
        collect_names(rewrite);
    else if (copying->touched[object])
        copy_symbols(copying->arenas[worker], rewrite, &rewrite->drafts[object],
                     copying->counts[object]);
}

static void copy_all(struct rewrite *rewrite, const bool *touched)
{
    const struct program *program = rewrite->program;
    struct copying copying = {rewrite, touched, count_helpers(rewrite),
                              parallel_arenas(rewrite->stage, program->workers)};
    parallel_do(program->workers, program->objects->count + 1, copy_part, &copying);
    parallel_adopt(rewrite->arena, copying.arenas, program->workers);
}

void symbols_draft(struct rewrite *rewrite)
{
    const struct program *program = rewrite->program;
    uint32_t helpers = rewrite->plan->helper_count;
    rewrite->drafts =
        arena_new_array(rewrite->stage, struct draft, program->objects->count + 1);
    rewrite->helper_symbols = arena_new_array(rewrite->stage, uint32_t, helpers);
    rewrite->site_symbols = arena_new_array(rewrite->stage, uint32_t, helpers);
    rewrite->site_objects = arena_new_array(rewrite->stage, uint32_t, helpers);
    rewrite->names = table_new(rewrite->stage);
    rewrite->imports = table_new(rewrite->stage);
    const bool *touched = touched_objects(rewrite);
    for (uint32_t o = 0; o < program->objects->count; o++) {
        rewrite->drafts[o].old = program->objects->items[o];
        if (touched[o])
            start_draft(rewrite, &rewrite->drafts[o]);
    }
    for (uint32_t c = 0; c < program->code_count; c++) {
        struct draft *draft = &rewrite->drafts[program->code[c].object];
        if (draft->sections)
            draft->code_of[program->code[c].section] = c;
    }
    copy_all(rewrite, touched);
    settle_home(rewrite);
}
