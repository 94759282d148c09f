/* SPDX-License-Identifier: MIT
 *
 * The helpers as they are in the end, whatever later rounds did to them: their code,
 * and the places that enter them.
 */
#include "mo/report.h"

#include "mo/array.h"
#include "mo/costs.h"

static struct report_body body_of(struct report *report, const struct objects *objects,
                                  const struct costs *costs, const uint32_t *functions,
                                  uint32_t index)
{
    const struct cost *cost = &costs->items[index];
    struct report_body body = {
        .function = functions[index],
        .code = listing_of(report->session, objects->items[cost->object], cost->section,
                           cost->start, cost->bytes),
        .site_count = cost->entry_count,
    };
    struct report_site *sites =
        arena_new_array(report->session, struct report_site, cost->entry_count);
    for (uint32_t i = 0; i < cost->entry_count; i++) {
        const struct entry *entry = &costs->entries[cost->first_entry + i];
        sites[i] =
            (struct report_site){functions[entry->caller],
                                 entry->offset - costs->items[entry->caller].start};
    }
    body.sites = sites;
    return body;
}

void report_add_bodies(struct report *report, const struct objects *objects,
                       const struct costs *costs, const uint32_t *functions)
{
    for (uint32_t i = 0; i < costs->count; i++) {
        if (costs->items[i].is_helper)
            array_push(report->session, &report->bodies,
                       body_of(report, objects, costs, functions, i));
    }
}
