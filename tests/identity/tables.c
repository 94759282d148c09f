/* SPDX-License-Identifier: MIT
 *
 * Checks of call-site tables on real objects and archives, given as arguments:
 *
 *   - rewriting without an edit gives the section back byte for byte;
 *   - rewriting every table from its own call sites gives a section that is no larger,
 *     and in which the same tables are read again.
 *
 * Prints one line for each file: tables, refused tables, call sites, sections, how many
 * of those came out byte for byte when all of their tables were written anew.
 */
#include "mo/lsda.h"
#include "tests/identity/objects.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

struct totals {
    uint32_t objects, tables, refused, sites, sections, identical;
    uint64_t old_bytes, new_bytes;
};

static bool same_bytes(struct bytes a, struct bytes b)
{
    return a.size == b.size && memcmp(a.at, b.at, a.size) == 0;
}

static bool same_sites(const struct lsda *a, const struct lsda *b)
{
    if (a->site_count != b->site_count || a->type_count != b->type_count ||
        a->actions_end - a->actions != b->actions_end - b->actions)
        return false;
    for (uint32_t i = 0; i < a->site_count; i++) {
        const struct call_site *x = &a->sites[i], *y = &b->sites[i];
        if (x->start != y->start || x->end != y->end || x->pad != y->pad ||
            x->action != y->action)
            return false;
    }
    return true;
}

struct checker {
    struct arena *arena;
    const struct object *object;
    struct frames frames;
    struct lsdas lsdas;
    struct lsda_edit *none, *all;
    uint32_t *starts;
    struct section *sections; /* of the object with all tables written anew */
    struct symbol *symbols;
    struct fde *fdes;
    struct totals *totals;
};

static void move(struct checker *checker, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        const struct lsda *lsda = &checker->lsdas.items[i];
        checker->fdes[lsda->fde].lsda_offset = checker->starts[i];
        for (uint32_t s = 1; s < checker->object->symbol_count; s++) {
            const struct symbol *old = &checker->object->symbols[s];
            if (old->section == lsda->section && old->type != STT_SECTION &&
                old->value == lsda->start)
                checker->symbols[s].value = checker->starts[i];
        }
    }
}

static bool check_section(struct checker *checker, uint32_t first, uint32_t end,
                          struct error *err)
{
    uint32_t number = checker->lsdas.items[first].section;
    const struct section *old = &checker->object->sections[number];
    struct section *new = &checker->sections[number];
    struct place place = object_place(checker->object, number, 0);
    lsdas_rewrite(checker->arena, checker->object, number, old->relocs, &checker->lsdas,
                  checker->none, new, checker->starts);
    if (!same_bytes(old->data, new->data))
        return fail(err, &place, "no edits, but the section differs");
    lsdas_rewrite(checker->arena, checker->object, number, old->relocs, &checker->lsdas,
                  checker->all, new, checker->starts);
    checker->totals->sections++;
    checker->totals->identical += same_bytes(old->data, new->data);
    checker->totals->old_bytes += old->data.size;
    checker->totals->new_bytes += new->data.size;
    move(checker, first, end);
    return new->data.size <= old->data.size ||
           fail(err, &place, "the section has grown");
}

static bool check_again(struct checker *checker, struct error *err)
{
    struct object copy = *checker->object;
    copy.sections = checker->sections;
    copy.symbols = checker->symbols;
    struct frames frames = checker->frames;
    frames.fdes = checker->fdes;
    struct lsdas again;
    lsdas_read(checker->arena, &copy, &frames, &again);
    for (uint32_t i = 0; i < checker->lsdas.count; i++) {
        const struct lsda *old = &checker->lsdas.items[i];
        const struct lsda *new = &again.items[again.of_fde[old->fde]];
        struct place place = object_place(checker->object, old->section, old->start);
        if (old->refusal != new->refusal)
            return fail(err, &place, "the new table cannot be read");
        if (old->refusal == REFUSAL_NONE && !same_sites(old, new))
            return fail(err, &place, "the new table says something else");
    }
    return true;
}

static void prepare(struct checker *checker)
{
    const struct object *object = checker->object;
    uint32_t count = checker->lsdas.count;
    checker->none = arena_new_array(checker->arena, struct lsda_edit, count);
    checker->all = arena_new_array(checker->arena, struct lsda_edit, count);
    checker->starts = arena_new_array(checker->arena, uint32_t, count);
    checker->sections = arena_copy(checker->arena, object->sections,
                                   object->section_count * sizeof *object->sections);
    checker->symbols = arena_copy(checker->arena, object->symbols,
                                  object->symbol_count * sizeof *object->symbols);
    checker->fdes = arena_copy(checker->arena, checker->frames.fdes,
                               checker->frames.fde_count * sizeof *checker->fdes);
    for (uint32_t i = 0; i < count; i++) {
        const struct lsda *lsda = &checker->lsdas.items[i];
        bool good = lsda->refusal == REFUSAL_NONE;
        checker->all[i] = (struct lsda_edit){
            good, checker->frames.fdes[lsda->fde].start, lsda->sites, lsda->site_count};
        checker->totals->refused += !good;
        checker->totals->sites += lsda->site_count;
    }
    checker->totals->tables += count;
}

static bool check_object(struct arena *arena, const struct object *object,
                         void *context, struct error *err)
{
    struct totals *totals = context;
    struct checker checker = {.arena = arena, .object = object, .totals = totals};
    struct row_table *rows = row_table_new(arena);
    if (!frames_read(arena, object, rows, &checker.frames, err))
        return false;
    lsdas_read(arena, object, &checker.frames, &checker.lsdas);
    prepare(&checker);
    totals->objects++;
    for (uint32_t i = 0; i < checker.lsdas.count;) {
        uint32_t first = i, section = checker.lsdas.items[i].section;
        while (i < checker.lsdas.count && checker.lsdas.items[i].section == section)
            i++;
        if (!check_section(&checker, first, i, err))
            return false;
    }
    return check_again(&checker, err);
}

static bool print_file(const char *path, const void *context, struct error *err)
{
    const struct totals *totals = context;
    (void)err;
    printf("%s: %u objects, %u tables, %u refused, %u sites, %u sections, %u "
           "identical; %lu -> %lu bytes\n",
           path, totals->objects, totals->tables, totals->refused, totals->sites,
           totals->sections, totals->identical, (unsigned long)totals->old_bytes,
           (unsigned long)totals->new_bytes);
    return true;
}

int main(int argc, char **argv)
{
    struct totals totals;
    const struct object_check check = {check_object, print_file, &totals, sizeof totals};
    return check_files(argc, argv, &check);
}
