/* SPDX-License-Identifier: MIT
 *
 * Which functions were folded, and onto which. Sizes of the parts come with the units
 * and the functions; this is the list by name.
 */
#include "mo/report.h"

#include "mo/array.h"
#include "mo/table.h"

/* Names of functions, by where they begin; of several the first. */
struct names {
    struct table *places;
    array_of(const char *) texts; /* by number of the place */
};

static struct names names_of(struct arena *stage, const struct object *object)
{
    struct names names = {.places = table_new(stage)};
    for (uint32_t i = 1; i < object->symbol_count; i++) {
        const struct symbol *symbol = &object->symbols[i];
        uint64_t place[] = {symbol->section, symbol->value};
        if (symbol->size > 0 && symbol->name[0] != '\0' &&
            table_intern(names.places, place, sizeof place) == names.texts.count)
            array_push(stage, &names.texts, symbol->name);
    }
    return names;
}

static const char *name_at(const struct names *names,
                           const struct fold_function *function)
{
    uint64_t place[] = {function->section, function->start};
    uint32_t number = table_find(names->places, place, sizeof place);
    return number == NO_INDEX ? "" : names->texts.items[number];
}

void report_folds(struct report *report, const struct object *object,
                  const struct fold_plan *plan)
{
    struct arena *stage = arena_new();
    struct names names = names_of(stage, object);
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct folded *item = &plan->items[i];
        const struct fold_function *function = &plan->functions[item->function];
        const struct fold_function *heir = &plan->functions[item->heir];
        struct report_folded folded = {
            .name = arena_strdup(report->session, name_at(&names, function)),
            .heir = arena_strdup(report->session, name_at(&names, heir)),
            .unit = arena_strdup(report->session, section_unit(object, function->section)),
            .bytes = function->end - function->start,
            .jumps = item->jumps};
        array_push(report->session, &report->folds, folded);
    }
    arena_free(stage);
}
