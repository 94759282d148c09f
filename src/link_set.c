/* SPDX-License-Identifier: MIT
 *
 * One set: folding, alignment, the rounds, the checks, and the unwind entries that functions
 * share.
 */
#include "link_parts.h"

#include "mo/dump.h"
#include "mo/fold_set.h"
#include "mo/parallel.h"
#include "mo/table.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct table *names_defined(struct link *link,
                                         const struct objects *objects)
{
    struct table *names = table_new(link->session);
    for (uint32_t i = 0; i < objects->count; i++) {
        const struct object *object = objects->items[i];
        for (uint32_t s = 1; s < object->symbol_count; s++) {
            const struct symbol *symbol = &object->symbols[s];
            if (symbol->section != SECTION_UNDEFINED && !symbol_is_local(symbol))
                table_intern_string(names, symbol->name);
        }
    }
    return names;
}

/* A link takes some members of an archive, each for a name that somebody wants. What
 * helpers refer to was wanted by the members that they come from, and these still say
 * so; a helper itself wants nothing, or the few that are needed would bring in all
 * others. So it says weakly what it refers to.
 *
 * In the linker step, too: the helpers of a link stand first, and a name that they want
 * would be looked for before anything is loaded. In libstdc++.a complex_io.o is the
 * first member with a copy of ~basic_stringbuf; who asks later finds the copy of some
 * other member, which is there for reasons of its own. There a name that none of the
 * files defines stays as it was: mold makes a name of a shared library that is not
 * defined as weak as the first file says, and the next link would not look for it. */
static void loosen_helpers(struct link *link, struct objects *objects)
{
    const struct table *defined = link->known_link ? names_defined(link, objects) : NULL;
    const struct object **items =
        arena_copy(link->session, objects->items, objects->count * sizeof *items);
    for (uint32_t i = 0; i < objects->count; i++) {
        if (!is_helper_object(items[i]))
            continue;
        struct object *object = arena_copy(link->session, items[i], sizeof *object);
        struct symbol *symbols = arena_copy(link->session, object->symbols,
                                            object->symbol_count * sizeof *symbols);
        for (uint32_t s = 1; s < object->symbol_count; s++) {
            if (symbols[s].section == SECTION_UNDEFINED &&
                symbols[s].bind == STB_GLOBAL &&
                (!defined || table_find_string(defined, symbols[s].name) != NO_INDEX))
                symbols[s].bind = STB_WEAK;
        }
        object->symbols = symbols;
        items[i] = object;
    }
    objects->items = items;
}

/* What was promised is what was done, byte for byte: the plan's arithmetic is the only
 * reason to believe that a choice was good. */
static bool check_savings(const struct set *set, const struct objects *after,
                          const struct savings *sum, struct error *err)
{
    struct sizes old = sizes_of(&set->objects), new = sizes_of(after);
    int64_t code = (int64_t)(old.text - new.text);
    int64_t eh_frame = (int64_t)(old.eh_frame - new.eh_frame);
    int64_t hdr = (int64_t)(old.eh_frame_hdr - new.eh_frame_hdr);
    if (code == sum->code && eh_frame == sum->eh_frame && hdr == sum->eh_frame_hdr)
        return true;
    return fail(err, NULL,
                "internal error: predicted to save %" PRId64 " + %" PRId64 " + %" PRId64
                " bytes (code, .eh_frame, .eh_frame_hdr), measured %" PRId64
                " + %" PRId64 " + %" PRId64 "; nothing was written",
                sum->code, sum->eh_frame, sum->eh_frame_hdr, code, eh_frame, hdr);
}

/* --drop-alignment: inside of functions, too. The result with the no-ops put back would
 * be what it was, so that is what is verified. */
static bool unpad_set(struct link *link, struct set *set, struct error *err)
{
    struct arena *stage = arena_new();
    struct program *program = NULL;
    const struct objects padded = set->objects;
    struct lift_options lift = link_lift_options(link, set);
    bool more = false;
    bool ok = program_lift(stage, &padded, link->rows, &lift, &program, err) &&
              program_unpad(link->session, program, &set->objects, &more, err) &&
              (!more || link->options->no_verify ||
               unpad_verify(&padded, &set->objects, link->workers, err));
    if (ok && link->options->verbose)
        fprintf(stderr, "mo-link: dropped %" PRId64 " bytes of alignment\n",
                (int64_t)(sizes_of(&padded).text - sizes_of(&set->objects).text));
    arena_free(stage);
    return ok;
}

struct uniting {
    const struct objects *objects;
    const struct object **items;
    const struct error **errs;  /* by object; NULL: none */
    struct arena **arenas;      /* by worker */
    struct row_table **rows;    /* by worker: what is kept are bytes, not their numbers */
};

static void unite_object(void *context, uint32_t number, uint32_t worker)
{
    struct uniting *uniting = context;
    struct arena *arena = uniting->arenas[worker];
    struct error err = {0};
    if (!frames_unite(arena, uniting->objects->items[number], uniting->rows[worker],
                      &uniting->items[number], &err))
        uniting->errs[number] = arena_copy(arena, &err, sizeof err);
}

static bool unite_objects(struct link *link, const struct objects *objects,
                          const struct object **items, struct error *err)
{
    struct uniting uniting = {
        .objects = objects,
        .items = items,
        .errs = arena_new_array(link->session, const struct error *, objects->count),
        .arenas = parallel_arenas(link->session, link->workers),
        .rows = arena_new_array(link->session, struct row_table *, MOST_WORKERS)};
    for (uint32_t w = 0; w < MOST_WORKERS && w < link->workers; w++)
        uniting.rows[w] = row_table_new(uniting.arenas[w]);
    parallel_do(link->workers, objects->count, unite_object, &uniting);
    parallel_adopt(link->session, uniting.arenas, link->workers);
    for (uint32_t i = 0; i < objects->count; i++) {
        if (uniting.errs[i])
            return fail(err, NULL, "%s", uniting.errs[i]->message);
    }
    return true;
}

/* Functions that lie side by side share unwind entries, as helpers do anyway. Behind the
 * check of the rest, which compares entry with entry; this step proves itself. */
static bool unite_entries(struct link *link, const struct set *set,
                          struct objects *objects, struct error *err)
{
    if ((link->options->without & TECHNIQUE_UNITE) != 0 ||
        objects->items == set->objects.items)
        return true;
    const struct object **items =
        arena_copy(link->session, objects->items, objects->count * sizeof *items);
    if (!unite_objects(link, objects, items, err))
        return false;
    struct sizes old = sizes_of(objects);
    objects->items = items;
    struct sizes new = sizes_of(objects);
    link->report.shared_entries += (int64_t)(old.eh_frame - new.eh_frame) +
                                   (int64_t)(old.eh_frame_hdr - new.eh_frame_hdr);
    return true;
}

bool link_outline_set(struct link *link, const struct set *given,
                      struct objects *after, struct error *err)
{
    struct savings sum = {0};
    struct set folded = *given;
    struct fold_job job = {link->session, link->options, link->rows,
                           link_lift_options(link, given), &link->report};
    if (link->options->fold && given->objects.count > 0 &&
        !fold_set(&job, given, &folded, err))
        return false;
    if (link->options->drop_alignment && given->objects.count > 0 &&
        !unpad_set(link, &folded, err))
        return false;
    const struct set *set = &folded;
    bool more = set->objects.count > 0;
    *after = set->objects;
    link->helpers = table_new(link->session);
    for (uint32_t round = 1; more && round <= 1 + link->options->reruns; round++) {
        if (!link_round(link, set, round, after, &sum, &more, err))
            return false;
    }
    if (!link_join_objects(link, set, after, err) ||
        !check_savings(set, after, &sum, err) ||
        !link_join_sections(link, set, after, err))
        return false;
    progress_at(link->progress, "verifying", 0);
    struct verify_options verify = {link->workers, link->decoder, &link->tables};
    if (set->archive != NO_INDEX || link->known_link)
        loosen_helpers(link, after);
    return (link->options->no_verify ||
            outline_verify(&set->objects, after, &verify, err)) &&
           unite_entries(link, set, after, err);
}

bool link_shake_set(struct link *link, struct objects *objects, struct error *err)
{
    struct arena *stage = arena_new();
    struct program *program = NULL;
    struct objects shaken;
    /* (Not `unused` of the set: its sections may have other numbers by now.) */
    const struct set set = {.objects = *objects, .archive = NO_INDEX};
    struct lift_options lift = link_lift_options(link, &set);
    bool ok =
        program_lift(stage, objects, link->rows, &lift, &program, err) &&
        program_shake(link->session, program, link->options->shake, &shaken, err) &&
        (link->options->no_verify || shake_verify(objects, &shaken, err));
    if (ok)
        *objects = shaken;
    arena_free(stage);
    return ok;
}
