/* SPDX-License-Identifier: MIT
 *
 * The size gate: this run's report against the report of an earlier one.
 *
 * What is compared are bytes after outlining: of all that is loaded, of each section,
 * and of each function with its share of the helpers. Helpers are no rows of their own,
 * their callers answer for them. A limit in percent says nothing about what is new.
 */
#include "comparison.h"

#include "mo/table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 30, HUNDRED_PERCENT = 1000000 };

/* ORDER scope */
static const char *const scope_names[SCOPE_COUNT] = {"total", "section", "function"};

/* --- rows --- */

static struct change *change_of(struct comparison *comparison, enum scope scope,
                                const char *name)
{
    const char *key =
        arena_format(comparison->session, "%s %s", scope_names[scope], name);
    uint32_t number = table_intern_string(comparison->names, key);
    if (number == comparison->rows.count) {
        struct change row = {.scope = scope,
                             .name = arena_strdup(comparison->session, name)};
        array_push(comparison->session, &comparison->rows, row);
    }
    return &comparison->rows.items[number];
}

void comparison_put(struct comparison *comparison, bool is_new, enum scope scope,
                    const char *name, int64_t bytes)
{
    struct change *change = change_of(comparison, scope, name);
    bool exists = bytes > 0 || scope == SCOPE_TOTAL;
    if (is_new) {
        change->is_there = exists;
        change->after = bytes;
    } else {
        change->was_there = exists;
        change->before = bytes;
    }
}

/* --- limits --- */

/* "12", "0.5%": the number in bytes, or in ten thousandths of a percent. */
static bool parse_amount(const char *text, struct limit *out)
{
    char *end = NULL;
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 12)
        return false;
    out->amount = strtoll(text, &end, 10);
    out->is_percent = text[strlen(text) - 1] == '%';
    if (!out->is_percent)
        return *end == '\0';
    int64_t unit = HUNDRED_PERCENT / 100;
    out->amount *= unit;
    if (*end == '.') {
        for (end++; *end >= '0' && *end <= '9' && unit > 1; end++) {
            unit /= 10;
            out->amount += (*end - '0') * unit;
        }
    }
    return strcmp(end, "%") == 0 && out->amount <= 1000 * (int64_t)HUNDRED_PERCENT;
}

bool limit_parse(const char *text, struct limit *out)
{
    *out = (struct limit){.text = text};
    const char *amount = text;
    for (uint32_t i = 0; i < SCOPE_COUNT; i++) {
        size_t size = strlen(scope_names[i]);
        if (strncmp(text, scope_names[i], size) == 0 && text[size] == ':') {
            out->scope = (enum scope)i;
            amount = text + size + 1;
        }
    }
    return parse_amount(amount, out);
}

static bool is_over(const struct limit *limit, const struct change *row)
{
    if (limit->scope != row->scope || !row->is_there)
        return false;
    int64_t growth = row->after - row->before;
    if (!limit->is_percent)
        return growth > limit->amount;
    /* Sizes are below 2^33 (read_bytes), amounts of 1000 %: nothing overflows. */
    return row->was_there && growth * HUNDRED_PERCENT > limit->amount * row->before;
}

/* --- this run --- */

static void put_report(struct comparison *comparison, const struct report *report)
{
    struct sizes before, after;
    report_totals(report, &before, &after);
    comparison_put(comparison, true, SCOPE_TOTAL, COMPARISON_TOTAL,
                   (int64_t)after.loaded);
    for (uint32_t i = 0; i < report->sections.count; i++) {
        const struct report_section *section = &report->sections.items[i];
        comparison_put(comparison, true, SCOPE_SECTION, section->name,
                       (int64_t)section->after);
    }
    for (uint32_t i = 0; i < report->functions.count; i++) {
        const struct report_function *function = &report->functions.items[i];
        if (!function->is_helper && function->after > 0)
            comparison_put(comparison, true, SCOPE_FUNCTION, function->key,
                           (int64_t)(function->after + function->after_shared));
    }
}

/* --- what is said of it --- */

static int64_t growth_of(const struct change *row)
{
    return row->after - row->before;
}

/* By scope; in it the largest change first, then by name. */
static int compare_rows(const void *left, const void *right)
{
    const struct change *a = left, *b = right;
    if (a->scope != b->scope)
        return a->scope < b->scope ? -1 : 1;
    int64_t growth_a = growth_of(a), growth_b = growth_of(b);
    int64_t size_a = growth_a < 0 ? -growth_a : growth_a;
    int64_t size_b = growth_b < 0 ? -growth_b : growth_b;
    if (size_a != size_b)
        return size_a > size_b ? -1 : 1;
    if (growth_a != growth_b)
        return growth_a > growth_b ? -1 : 1;
    return strcmp(a->name, b->name);
}

MO_PRINTF(2, 3) static void put(struct buffer *text, const char *format, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (size > 0)
        buffer_put(text, line,
                   (size_t)size < sizeof line ? (size_t)size : sizeof line - 1);
}

static void put_row(struct buffer *text, const struct change *row, bool over)
{
    char percent[24] = "gone";
    if (!row->was_there)
        strcpy(percent, "new");
    else if (row->is_there && row->before > 0)
        snprintf(percent, sizeof percent, "%+.2f %%",
                 100.0 * (double)growth_of(row) / (double)row->before);
    put(text, "  %+10" PRId64 " %12s %10" PRId64 " %10" PRId64 "  ", growth_of(row),
        percent, row->before, row->after);
    buffer_put(text, row->name, strlen(row->name));
    put(text, "%s\n", over ? "  <- over the limit" : "");
}

static const struct limit *limit_over(const struct limits *limits,
                                      const struct change *row)
{
    for (uint32_t i = 0; i < limits->count; i++) {
        if (is_over(&limits->items[i], row))
            return &limits->items[i];
    }
    return NULL;
}

static const char *title_of(const struct comparison *comparison, enum scope scope)
{
    switch (scope) {
    case SCOPE_TOTAL:
        return arena_format(comparison->session, "Size against %s", comparison->path);
    case SCOPE_SECTION: return "\nSections that changed";
    default: return "\nFunctions that changed, with their share of helpers";
    }
}

/* Rows beyond the first ones are counted only, unless they are over a limit. */
static void put_scope(struct buffer *text, const struct comparison *comparison,
                      const struct limits *limits, enum scope scope)
{
    uint32_t changed = 0, hidden = 0;
    for (uint32_t i = 0; i < comparison->rows.count; i++) {
        const struct change *row = &comparison->rows.items[i];
        if (row->scope != scope || (growth_of(row) == 0 && scope != SCOPE_TOTAL))
            continue;
        if (changed++ == 0)
            put(text, "%s\n  %10s %12s %10s %10s\n", title_of(comparison, scope),
                "growth", "", "before", "now");
        bool over = limit_over(limits, row) != NULL;
        if (changed <= MOST_ROWS || over)
            put_row(text, row, over);
        else
            hidden++;
    }
    if (hidden > 0)
        put(text, "  and %" PRIu32 " more\n", hidden);
}

/* "; most in main (+16)": what to look at when a sum is too large. */
static const char *cause_of(const struct comparison *comparison, enum scope scope)
{
    for (uint32_t i = 0; scope != SCOPE_FUNCTION && i < comparison->rows.count; i++) {
        const struct change *row = &comparison->rows.items[i];
        if (row->scope == SCOPE_FUNCTION && growth_of(row) > 0)
            return arena_format(comparison->session, "; most in %s (%+" PRId64 ")",
                                row->name, growth_of(row));
    }
    return "";
}

static bool judge(const struct comparison *comparison, const struct limits *limits,
                  struct error *err)
{
    for (uint32_t i = 0; i < comparison->rows.count; i++) {
        const struct change *row = &comparison->rows.items[i];
        const struct limit *limit = limit_over(limits, row);
        if (!limit)
            continue;
        err->over_limit = true;
        return fail(err, NULL,
                    "size gate: %s %s grew by %" PRId64 " bytes, from %" PRId64
                    " to %" PRId64 ", and --max-growth=%s allows less%s",
                    scope_names[row->scope], row->name, growth_of(row), row->before,
                    row->after, limit->text, cause_of(comparison, row->scope));
    }
    return true;
}

/* The limit that is nearest to the cause speaks first: functions, sections, total. */
static bool judge_all(const struct comparison *comparison, const struct limits *limits,
                      struct error *err)
{
    for (uint32_t scope = SCOPE_COUNT; scope-- > 0;) {
        struct limits some = {0};
        for (uint32_t i = 0; i < limits->count; i++) {
            if (limits->items[i].scope == scope)
                array_push(comparison->session, &some, limits->items[i]);
        }
        if (!judge(comparison, &some, err))
            return false;
    }
    return true;
}

bool baseline_compare(struct arena *session, const struct baseline *baseline,
                      const struct limits *limits, struct bytes *out, struct error *err)
{
    struct comparison comparison = {
        .session = session, .path = baseline->old, .names = table_new(session)};
    if (!comparison_read(&comparison, false, baseline->old, err))
        return false;
    if (baseline->report)
        put_report(&comparison, baseline->report);
    else if (!comparison_read(&comparison, true, baseline->new, err))
        return false;
    qsort(comparison.rows.items, comparison.rows.count, sizeof *comparison.rows.items,
          compare_rows);
    struct buffer text = buffer_new(session);
    for (uint32_t scope = 0; scope < SCOPE_COUNT; scope++)
        put_scope(&text, &comparison, limits, (enum scope)scope);
    *out = buffer_bytes(&text);
    return judge_all(&comparison, limits, err);
}
