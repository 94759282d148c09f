/* SPDX-License-Identifier: MIT
 *
 * Which functions were folded, and onto which. Sizes of the parts come with the units
 * and the functions; this is the list by name.
 */
#include "mo/report.h"

#include "mo/array.h"

static const char *name_at(const struct object *object,
                           const struct fold_function *function)
{
    for (uint32_t i = 1; i < object->symbol_count; i++) {
        const struct symbol *symbol = &object->symbols[i];
        if (symbol->section == function->section && symbol->value == function->start &&
            symbol->size > 0 && symbol->name[0] != '\0')
            return symbol->name;
    }
    return "";
}

void report_folds(struct report *report, const struct object *object,
                  const struct fold_plan *plan)
{
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct folded *item = &plan->items[i];
        const struct fold_function *function = &plan->functions[item->function];
        const struct fold_function *heir = &plan->functions[item->heir];
        struct report_folded folded = {
            .name = arena_strdup(report->session, name_at(object, function)),
            .heir = arena_strdup(report->session, name_at(object, heir)),
            .unit = arena_strdup(report->session, section_unit(object, function->section)),
            .bytes = function->end - function->start,
            .jumps = item->jumps};
        array_push(report->session, &report->folds, folded);
    }
}
