/* SPDX-License-Identifier: MIT
 *
 * A part of a plan: what is left when only its first helpers are made. A helper with
 * its sites is right by itself, but for one that is the end of another: it waits for
 * that.
 */
#include "mo/plan.h"

#include <string.h>

/* Those whose bodies are there: by old index the new one, or NO_INDEX. Whom a helper
 * joins may lie behind it, and may join a third one. */
static uint32_t *renumber(struct arena *arena, const struct plan *plan, uint32_t count)
{
    uint32_t *numbers = arena_new_array(arena, uint32_t, count);
    uint32_t next = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t host = i;
        while (host < count && plan->helpers[host].joins)
            host = plan->helpers[host].joined;
        numbers[i] = host < count ? next++ : NO_INDEX;
    }
    return numbers;
}

struct plan plan_cut(struct arena *arena, const struct plan *plan, uint32_t count)
{
    const uint32_t *numbers = renumber(arena, plan, count);
    struct helper *helpers = arena_new_array(arena, struct helper, count);
    struct site *sites = arena_new_array(arena, struct site, plan->site_count);
    struct plan part = {
        .helpers = helpers, .sites = sites, .stack_rows = plan->stack_rows};
    for (uint32_t i = 0; i < count; i++) {
        if (numbers[i] == NO_INDEX)
            continue;
        struct helper *helper = &helpers[part.helper_count++];
        *helper = plan->helpers[i];
        helper->first_site = part.site_count;
        if (helper->joins)
            helper->joined = numbers[helper->joined];
        memcpy(sites + part.site_count, plan->sites + plan->helpers[i].first_site,
               (size_t)helper->site_count * sizeof *sites);
        part.site_count += helper->site_count;
    }
    return part;
}
