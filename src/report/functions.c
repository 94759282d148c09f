/* SPDX-License-Identifier: MIT
 *
 * Functions and sections before and after, under names that the next build will use,
 * too.
 *
 * A function's key is the last part of its unit's path and its name, "foo.o:main", and
 * "foo.o:main#1" for the next one of the same key: folders differ from machine to
 * machine, and a unit may hold several local functions of one name.
 *
 * Sections are named as the link will name them: ".text.foo" goes into ".text".
 */
#include "mo/report.h"

#include "mo/array.h"
#include "mo/costs.h"

#include <stdlib.h>
#include <string.h>

/* --- functions --- */

static const char *key_base(struct report *report, const char *unit, const char *name)
{
    const char *slash = strrchr(unit, '/');
    return arena_format(report->session, "%s:%s", slash ? slash + 1 : unit, name);
}

/* Its index in report.functions. */
static uint32_t function_of(struct report *report, uint32_t unit,
                            const struct cost *cost, bool after)
{
    const char *key = key_base(report, report->units.items[unit].name, cost->name);
    uint32_t base = table_intern_string(report->key_bases, key);
    if (base == report->repeats.count)
        array_push(report->session, &report->repeats, ((struct report_repeat){{0}}));
    uint32_t repeat = report->repeats.items[base].count[after]++;
    if (repeat > 0)
        key = arena_format(report->session, "%s#%u", key, repeat);
    uint32_t number = table_intern_string(report->keys, key);
    if (number == report->functions.count) {
        struct report_function function = {
            .key = key,
            .name = arena_strdup(report->session, cost->name),
            .unit = unit,
            .is_helper = cost->is_helper,
        };
        array_push(report->session, &report->functions, function);
    }
    return number;
}

void report_add_functions(struct report *report, const struct objects *objects,
                          bool after)
{
    struct costs costs = costs_of(report->session, objects);
    uint32_t *functions = arena_new_array(report->session, uint32_t, costs.count);
    for (uint32_t i = 0; i < costs.count; i++) {
        const struct cost *cost = &costs.items[i];
        const struct object *object = objects->items[cost->object];
        uint32_t unit =
            report_unit_of(report, object, &object->sections[cost->section]);
        functions[i] = function_of(report, unit, cost, after);
        struct report_function *function = &report->functions.items[functions[i]];
        *(after ? &function->after : &function->before) += cost->bytes;
        *(after ? &function->after_shared : &function->before_shared) += cost->shared;
    }
    if (after && report->wants_bodies)
        report_add_bodies(report, objects, &costs, functions);
}

/* What it really costs. */
static uint64_t cost_before(const struct report_function *function)
{
    return function->before + function->before_shared;
}

static uint64_t cost_after(const struct report_function *function)
{
    return function->after + function->after_shared;
}

static int compare_functions(const void *left, const void *right)
{
    const struct report_function *a = left, *b = right;
    int64_t gain_a = (int64_t)(cost_before(a) - cost_after(a));
    int64_t gain_b = (int64_t)(cost_before(b) - cost_after(b));
    if (gain_a != gain_b)
        return gain_a > gain_b ? -1 : 1;
    return strcmp(a->key, b->key);
}

const struct report_function *report_functions_sorted(struct arena *session,
                                                      const struct report *report,
                                                      uint32_t *count)
{
    struct report_function *sorted =
        arena_new_array(session, struct report_function, report->functions.count);
    *count = 0;
    for (uint32_t i = 0; i < report->functions.count; i++) {
        if (!report->functions.items[i].is_helper)
            sorted[(*count)++] = report->functions.items[i];
    }
    if (*count > 1)
        qsort(sorted, *count, sizeof *sorted, compare_functions);
    return sorted;
}

/* --- sections --- */

/* What GNU ld's and lld's default scripts join. */
static const char *output_name(struct arena *session, const char *name)
{
    static const char *const joined[] = {
        ".text",       ".rodata",     ".data.rel.ro",      ".data",  ".bss",
        ".init_array", ".fini_array", ".gcc_except_table", ".tdata", ".tbss"};
    for (size_t i = 0; i < sizeof joined / sizeof *joined; i++) {
        size_t size = strlen(joined[i]);
        if (strncmp(name, joined[i], size) == 0 && name[size] == '.')
            return joined[i];
    }
    return arena_strdup(session, name);
}

static void add_section(struct report *report, const char *name, uint64_t bytes,
                        bool after)
{
    if (bytes == 0)
        return;
    uint32_t number = table_intern_string(report->section_names, name);
    if (number == report->sections.count)
        array_push(report->session, &report->sections,
                   ((struct report_section){.name = name}));
    struct report_section *section = &report->sections.items[number];
    *(after ? &section->after : &section->before) += bytes;
}

void report_add_section(struct report *report, const struct section *section,
                        const struct sizes *sizes, bool after)
{
    add_section(report, output_name(report->session, section->name),
                sizes->loaded - sizes->eh_frame_hdr, after);
    add_section(report, ".eh_frame_hdr", sizes->eh_frame_hdr, after);
}
