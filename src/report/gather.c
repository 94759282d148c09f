/* SPDX-License-Identifier: MIT
 *
 * Gathering the report's numbers. Sizes are measured on the objects, independently of
 * what the plan predicted; link.c compares the two.
 */
#include "mo/report.h"

#include "mo/array.h"
#include "mo/unwind.h"

#include <elf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { HDR_ENTRY = 8 }; /* bytes that the link writes to .eh_frame_hdr for each FDE */

struct report report_new(struct arena *session)
{
    return (struct report){.session = session,
                           .unit_names = table_new(session),
                           .section_names = table_new(session),
                           .key_bases = table_new(session),
                           .keys = table_new(session)};
}

static struct sizes sizes_of_section(const struct section *section)
{
    struct sizes sizes = {0};
    if (!(section->flags & SHF_ALLOC) || section->type == SHT_NOBITS)
        return sizes;
    if (section->flags & SHF_EXECINSTR)
        sizes.text = section->data.size;
    if (section_is_frame(section)) {
        sizes.eh_frame = section->data.size;
        sizes.eh_frame_hdr = (uint64_t)HDR_ENTRY * frame_count(section);
    }
    sizes.loaded = section->data.size + sizes.eh_frame_hdr;
    return sizes;
}

static void add_sizes(struct sizes *sum, const struct sizes *more)
{
    sum->text += more->text;
    sum->eh_frame += more->eh_frame;
    sum->eh_frame_hdr += more->eh_frame_hdr;
    sum->loaded += more->loaded;
}

struct sizes sizes_of(const struct objects *objects)
{
    struct sizes sum = {0};
    for (uint32_t i = 0; i < objects->count; i++) {
        const struct object *object = objects->items[i];
        for (uint32_t j = 1; j < object->section_count; j++) {
            struct sizes sizes = sizes_of_section(&object->sections[j]);
            add_sizes(&sum, &sizes);
        }
    }
    return sum;
}

uint32_t report_unit_of(struct report *report, const struct object *object,
                        const struct section *section)
{
    const char *name = object->name;
    if (section->unit < object->unit_count)
        name = object->units[section->unit].helpers ? "(helpers)"
                                                    : object->units[section->unit].name;
    uint32_t number = table_intern_string(report->unit_names, name);
    if (number == report->units.count)
        array_push(report->session, &report->units,
                   ((struct report_unit){.name = arena_strdup(report->session, name)}));
    return number;
}

static void add_units(struct report *report, const struct objects *objects, bool after)
{
    for (uint32_t i = 0; i < objects->count; i++) {
        const struct object *object = objects->items[i];
        for (uint32_t j = 1; j < object->section_count; j++) {
            const struct section *section = &object->sections[j];
            struct sizes sizes = sizes_of_section(section);
            if (sizes.loaded == 0)
                continue;
            uint32_t number = report_unit_of(report, object, section);
            struct report_unit *unit = &report->units.items[number];
            add_sizes(after ? &unit->after : &unit->before, &sizes);
            report_add_section(report, section, &sizes, after);
        }
    }
}

void report_before(struct report *report, const struct objects *objects)
{
    add_units(report, objects, false);
    report_add_functions(report, objects, false);
}

void report_after(struct report *report, const struct objects *objects)
{
    add_units(report, objects, true);
    report_add_functions(report, objects, true);
}

void report_totals(const struct report *report, struct sizes *before,
                   struct sizes *after)
{
    *before = *after = (struct sizes){0};
    for (uint32_t i = 0; i < report->units.count; i++) {
        add_sizes(before, &report->units.items[i].before);
        add_sizes(after, &report->units.items[i].after);
    }
}

/* Instructions that must stay, in functions that are open: part of the open bytes.
 * No-ops are not worth moving, so they are not counted as refused. */
static void add_pinned(struct report *report, const struct program *program)
{
    for (uint32_t i = 0; i < program->function_count; i++) {
        const struct function *function = &program->functions[i];
        if (function->refusal != REFUSAL_NONE)
            continue;
        for (uint32_t j = 0; j < function->insn_count; j++) {
            uint32_t insn = function->first_insn + j;
            enum refusal refusal = insn_refusal(program, function->code, insn);
            if (refusal == REFUSAL_NONE || program->insns[insn].traits & INSN_NOP)
                continue;
            report->refusals[refusal].bytes += program->insns[insn].length;
            report->refusals[refusal].count++;
        }
    }
}

void report_refusals(struct report *report, const struct program *program)
{
    for (uint32_t i = 0; i < REFUSAL_COUNT; i++) {
        report->refusals[i].bytes += program->refused_bytes[i];
        report->refusals[i].count += program->refused_count[i];
    }
    add_pinned(report, program);
}

/* "plain", or the names of all forms that the sites have: "plain+save-stack". */
static const char *forms_of(struct arena *session, const struct plan *plan,
                            const struct helper *helper)
{
    bool seen[FORM_COUNT] = {false};
    for (uint32_t i = 0; i < helper->site_count; i++)
        seen[plan->sites[helper->first_site + i].form] = true;
    const char *text = "";
    for (uint32_t form = 0; form < FORM_COUNT; form++) {
        if (seen[form])
            text = arena_format(session, "%s%s%s", text, text[0] ? "+" : "",
                                form_name((enum form)form));
    }
    return text;
}

void report_round(struct report *report, uint32_t round, const struct program *program,
                  const struct plan *plan)
{
    (void)program;
    while (report->rounds.count < round)
        array_push(report->session, &report->rounds, (struct report_round){0});
    struct report_round *sum = &report->rounds.items[round - 1];
    sum->helpers += plan->helper_count;
    sum->sites += plan->site_count;
    sum->code += plan->predicted_code;
    sum->eh_frame += plan->predicted_eh;
    sum->eh_frame_hdr += plan->predicted_hdr;
    sum->choice_saving += plan->choice_saving;
    sum->choice_bound += plan->choice_bound;
    for (uint32_t i = 0; i < plan->helper_count; i++) {
        const struct helper *helper = &plan->helpers[i];
        struct report_helper line = {
            .name = arena_format(report->session, HELPER_PREFIX "%016" PRIx64,
                                 helper->hash),
            .round = round,
            .size = helper->body_size,
            .sites = helper->site_count,
            .form = forms_of(report->session, plan, helper),
            .saving = helper->saving,
        };
        array_push(report->session, &report->helpers, line);
        sum->fixed -= helper->saving;
    }
    sum->fixed += plan->predicted_code + plan->predicted_eh + plan->predicted_hdr;
}

/* Largest saving first; then by round and name, so that the order is always the same.
 */
static int compare_helpers(const void *left, const void *right)
{
    const struct report_helper *a = left, *b = right;
    if (a->saving != b->saving)
        return a->saving > b->saving ? -1 : 1;
    if (a->round != b->round)
        return a->round < b->round ? -1 : 1;
    return strcmp(a->name, b->name);
}

const struct report_helper *report_helpers_sorted(struct arena *session,
                                                  const struct report *report)
{
    uint32_t count = report->helpers.count;
    struct report_helper *sorted =
        arena_copy(session, report->helpers.items, count * sizeof *sorted);
    if (count > 1)
        qsort(sorted, count, sizeof *sorted, compare_helpers);
    return sorted;
}
