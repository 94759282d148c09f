/* SPDX-License-Identifier: MIT
 *
 * The report for people: answers "what did I gain?" in the first lines, then "from
 * where?" and "why not more?". At most 92 columns; long names are cut at their
 * beginning, because their ends tell them apart. JSON has everything, this has the
 * largest.
 */
#include "mo/report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_HELPERS = 20,
    MOST_UNITS = 30, MOST_FOLDS = 10,
    MOST_FUNCTIONS = 20,
    NAME_COLUMNS = 32,
    KEY_COLUMNS = 48
};

struct page {
    struct arena *session;
    struct buffer text;
};

MO_PRINTF(2, 3) static void put(struct page *page, const char *format, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (size > 0)
        buffer_put(&page->text, line,
                   (size_t)size < sizeof line ? (size_t)size : sizeof line - 1);
}

static const char *ending_of(struct arena *session, const char *name, size_t columns)
{
    size_t size = strlen(name);
    if (size <= columns)
        return name;
    return arena_format(session, "...%s", name + size - (columns - 3));
}

static const char *shortened(struct arena *session, const char *name)
{
    return ending_of(session, name, NAME_COLUMNS);
}

static double percent(int64_t part, uint64_t whole)
{
    return whole == 0 ? 0.0 : 100.0 * (double)part / (double)whole;
}

static int64_t saved(uint64_t before, uint64_t after)
{
    return (int64_t)before - (int64_t)after;
}

static void put_size(struct page *page, const char *what, uint64_t before,
                     uint64_t after)
{
    int64_t gain = saved(before, after);
    put(page, "  %-14s %12" PRIu64 " %12" PRIu64 " %12" PRId64 " %7.2f %%\n", what,
        before, after, gain, percent(gain, before));
}

/* All that is loaded and is none of the other three: constants, tables, variables. */
static uint64_t data_of(const struct sizes *sizes)
{
    return sizes->loaded - sizes->text - sizes->eh_frame - sizes->eh_frame_hdr;
}

static void put_totals(struct page *page, const struct report *report)
{
    struct sizes before, after;
    report_totals(report, &before, &after);
    put(page, "%s%s\n\n", report->dry_run ? "Dry run: nothing was written. " : "",
        !report->outlined  ? "Merged, not outlined."
        : report->verified ? "Verified: the helpers, expanded back, give the input."
                           : "Not verified.");
    put(page, "  %-14s %12s %12s %12s\n", "bytes", "before", "after", "saved");
    put_size(page, "code", before.text, after.text);
    put_size(page, ".eh_frame", before.eh_frame, after.eh_frame);
    put_size(page, ".eh_frame_hdr", before.eh_frame_hdr, after.eh_frame_hdr);
    put_size(page, "data", data_of(&before), data_of(&after));
    put_size(page, "all loaded", before.loaded, after.loaded);
}

/* How close the choice of each round is to the best one, where --effort=2 knows. */
static void put_choices(struct page *page, const struct report *report)
{
    bool known = false;
    for (uint32_t i = 0; i < report->rounds.count; i++) {
        const struct report_round *round = &report->rounds.items[i];
        if (round->choice_bound <= 0)
            continue;
        if (!known)
            put(page, "  loaded bytes, helper by helper (before ends of helpers are"
                      " shared):\n");
        known = true;
        put(page,
            "  %5" PRIu32 " chosen %" PRId64 ", the best choice has at most %" PRId64
            " (%.2f %%)\n",
            i + 1, round->choice_saving, round->choice_bound,
            100.0 * (double)round->choice_saving / (double)round->choice_bound);
    }
}

static void put_rounds(struct page *page, const struct report *report)
{
    if (report->rounds.count == 0)
        return;
    put(page, "\nRounds\n  %5s %10s %10s %12s %12s %14s\n", "round", "helpers", "sites",
        "code saved", ".eh_frame", ".eh_frame_hdr");
    for (uint32_t i = 0; i < report->rounds.count; i++) {
        const struct report_round *round = &report->rounds.items[i];
        put(page,
            "  %5" PRIu32 " %10" PRIu32 " %10" PRIu32 " %12" PRId64 " %12" PRId64
            " %14" PRId64 "\n",
            i + 1, round->helpers, round->sites, round->code, round->eh_frame,
            round->eh_frame_hdr);
    }
    put_choices(page, report);
}

/* The largest first; then by name. */
static int compare_folds(const void *left, const void *right)
{
    const struct report_folded *a = left, *b = right;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return strcmp(a->name, b->name);
}

static void put_folds(struct page *page, const struct report *report)
{
    uint32_t count = report->folds.count;
    uint64_t bytes = 0;
    if (count == 0)
        return;
    struct report_folded *sorted = arena_copy(page->session, report->folds.items,
                                              count * sizeof *report->folds.items);
    qsort(sorted, count, sizeof *sorted, compare_folds);
    for (uint32_t i = 0; i < count; i++)
        bytes += sorted[i].bytes;
    put(page, "\nFolded functions (%" PRIu32 " of %" PRIu64 " bytes%s)\n  %8s\n", count,
        bytes, count > MOST_FOLDS ? ", the largest" : "", "bytes");
    for (uint32_t i = 0; i < count && i < MOST_FOLDS; i++)
        put(page, "  %8" PRIu32 "  %s: %s %s\n", sorted[i].bytes,
            shortened(page->session, sorted[i].name),
            sorted[i].jumps ? "a jump to" : "the same as",
            shortened(page->session, sorted[i].heir));
}

/* So that the column adds up to what was saved. */
static void put_sum(struct page *page, const struct report *report, int64_t rest,
                    uint32_t rest_count)
{
    int64_t fixed = 0, all = 0;
    for (uint32_t i = 0; i < report->rounds.count; i++) {
        const struct report_round *round = &report->rounds.items[i];
        fixed += round->fixed;
        all += round->code + round->eh_frame + round->eh_frame_hdr;
    }
    if (rest_count > 0)
        put(page, "  %8" PRId64 "  %" PRIu32 " more\n", rest, rest_count);
    put(page,
        "  %8" PRId64 "  the set as a whole: padding, CIE, FDEs, header entries\n",
        fixed);
    if (report->shared_entries != 0)
        put(page, "  %8" PRId64 "  unwind entries that functions share\n",
            report->shared_entries);
    put(page, "  %8" PRId64 "  in all\n", all + report->shared_entries);
}

/* A helper of no bytes looks like a mistake unless it is explained. */
static void put_no_bytes(struct page *page, const struct report_helper *sorted,
                         uint32_t count)
{
    for (uint32_t i = 0; i < count && i < MOST_HELPERS; i++) {
        if (sorted[i].size > 0)
            continue;
        put(page, "  (bytes 0: no code of its own; its sites jump into another helper, or "
                  "to an\n  occurrence that stays where it was)\n");
        return;
    }
}

static void put_helpers(struct page *page, const struct report *report)
{
    uint32_t count = report->helpers.count;
    if (count == 0)
        return;
    const struct report_helper *sorted = report_helpers_sorted(page->session, report);
    put(page, "\nHelpers (%" PRIu32 "%s)\n  %8s %8s %8s %6s  %-24s %s\n", count,
        count > MOST_HELPERS ? ", the largest savings" : "", "saved", "bytes", "sites",
        "round", "form", "name");
    for (uint32_t i = 0; i < count && i < MOST_HELPERS; i++) {
        const struct report_helper *helper = &sorted[i];
        put(page, "  %8" PRId64 " %8" PRIu32 " %8" PRIu32 " %6" PRIu32 "  %-24s %s\n",
            helper->saving, helper->size, helper->sites, helper->round, helper->form,
            shortened(page->session, helper->name));
    }
    int64_t rest = 0;
    for (uint32_t i = MOST_HELPERS; i < count; i++)
        rest += sorted[i].saving;
    put_sum(page, report, rest, count > MOST_HELPERS ? count - MOST_HELPERS : 0);
    put_no_bytes(page, sorted, count);
}

/* The units that gained (or lost) most first; then by name. */
static int compare_units(const void *left, const void *right)
{
    const struct report_unit *a = left, *b = right;
    int64_t gain_a = saved(a->before.loaded, a->after.loaded);
    int64_t gain_b = saved(b->before.loaded, b->after.loaded);
    if (gain_a != gain_b)
        return gain_a > gain_b ? -1 : 1;
    return strcmp(a->name, b->name);
}

static void put_unit(struct page *page, const struct report_unit *unit)
{
    const struct sizes *before = &unit->before, *after = &unit->after;
    put(page,
        "  %-32s %9" PRIu64 " %7" PRId64 " %9" PRIu64 " %7" PRId64 " %9" PRIu64
        " %7" PRId64 "\n",
        shortened(page->session, unit->name), before->text,
        saved(before->text, after->text), before->eh_frame,
        saved(before->eh_frame, after->eh_frame), before->loaded,
        saved(before->loaded, after->loaded));
}

static void put_units(struct page *page, const struct report *report)
{
    uint32_t count = report->units.count;
    if (count == 0)
        return;
    struct report_unit *sorted = arena_copy(page->session, report->units.items,
                                            count * sizeof *report->units.items);
    qsort(sorted, count, sizeof *sorted, compare_units);
    put(page, "\nUnits (%" PRIu32 "%s)\n  %-32s %9s %7s %9s %7s %9s %7s\n", count,
        count > MOST_UNITS ? ", the largest savings" : "", "", "code", "saved",
        ".eh_frame", "saved", "loaded", "saved");
    for (uint32_t i = 0; i < count && i < MOST_UNITS; i++)
        put_unit(page, &sorted[i]);
}

static void put_functions(struct page *page, const struct report *report)
{
    uint32_t count;
    const struct report_function *sorted =
        report_functions_sorted(page->session, report, &count);
    if (count == 0 || !report->outlined)
        return;
    put(page,
        "\nFunctions (%" PRIu32 "%s)\n  %9s %9s %9s %9s  bytes of code; real: with its "
        "share of helpers\n",
        count, count > MOST_FUNCTIONS ? ", the largest savings" : "", "before", "after",
        "real", "saved");
    for (uint32_t i = 0; i < count && i < MOST_FUNCTIONS; i++) {
        const struct report_function *function = &sorted[i];
        uint64_t before = function->before + function->before_shared;
        uint64_t real = function->after + function->after_shared;
        put(page, "  %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9" PRId64 "  %s\n", before,
            function->after, real, saved(before, real),
            ending_of(page->session, function->key, KEY_COLUMNS));
    }
}

static uint64_t bytes_of_level(const struct report *report, const char *level)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < REFUSAL_COUNT; i++) {
        if (strcmp(refusal_level((enum refusal)i), level) == 0)
            bytes += report->refusals[i].bytes;
    }
    return bytes;
}

struct reason {
    uint32_t refusal;
    struct report_refusal size;
};

static int compare_reasons(const void *left, const void *right)
{
    const struct reason *a = left, *b = right;
    if (a->size.bytes != b->size.bytes)
        return a->size.bytes > b->size.bytes ? -1 : 1;
    return a->refusal < b->refusal ? -1 : a->refusal > b->refusal;
}

static void put_refusals(struct page *page, const struct report *report)
{
    uint64_t open = bytes_of_level(report, "open");
    uint64_t closed = bytes_of_level(report, "sealed");
    uint64_t frozen = bytes_of_level(report, "frozen");
    uint64_t all = open + closed + frozen;
    if (all == 0)
        return;
    put(page,
        "\nLeft alone\n  of the code %.1f %% was open to change, %.1f %% sealed (whole "
        "functions), %.1f %% frozen\n  (whole sections)\n",
        percent((int64_t)open, all), percent((int64_t)closed, all),
        percent((int64_t)frozen, all));
    struct reason reasons[REFUSAL_COUNT];
    uint32_t count = 0;
    for (uint32_t i = REFUSAL_NONE + 1; i < REFUSAL_COUNT; i++) {
        if (report->refusals[i].count > 0)
            reasons[count++] = (struct reason){i, report->refusals[i]};
    }
    if (count == 0)
        return;
    qsort(reasons, count, sizeof *reasons, compare_reasons);
    put(page, "  %10s %8s  %s\n", "bytes", "count", "why");
    for (uint32_t i = 0; i < count; i++) {
        enum refusal refusal = (enum refusal)reasons[i].refusal;
        put(page, "  %10" PRIu64 " %8" PRIu32 "  %s: %s\n", reasons[i].size.bytes,
            reasons[i].size.count, refusal_level(refusal), refusal_text(refusal));
    }
}

/* What the user can do about a reason, or NULL. */
static const char *remedy_of(enum refusal refusal)
{
    switch (refusal) {
    case REFUSAL_DEBUG_INFO:
    case REFUSAL_DEBUG_SPLIT: return "--strip-debug lifts that";
    case REFUSAL_DEBUG_COMPRESSED:
        return "compile without -gz (the linker can compress, too), or use --strip-debug";
    case REFUSAL_KEEP: return "--keep or --only asks for that";
    case REFUSAL_HOT: return "--profile, or --outline-hot not given, asks for that";
    default: return NULL;
    }
}

/* Only when it is the answer to "why so little?": at least half of the code. */
static void put_hint(struct page *page, const struct report *report)
{
    uint64_t all = bytes_of_level(report, "open") + bytes_of_level(report, "sealed") +
                   bytes_of_level(report, "frozen");
    for (uint32_t i = REFUSAL_NONE + 1; i < REFUSAL_COUNT; i++) {
        enum refusal refusal = (enum refusal)i;
        uint64_t bytes = report->refusals[i].bytes;
        if (!remedy_of(refusal) || bytes == 0 || bytes < all - bytes)
            continue;
        put(page, "\nHint: %.1f %% of the code is %s for one reason (%s);\n%s.\n",
            percent((int64_t)bytes, all), refusal_level(refusal), refusal_name(refusal),
            remedy_of(refusal));
    }
}

struct bytes report_text(struct arena *session, const struct report *report)
{
    struct page page = {session, buffer_new(session)};
    put_totals(&page, report);
    put_folds(&page, report);
    put_rounds(&page, report);
    put_helpers(&page, report);
    put_units(&page, report);
    put_functions(&page, report);
    put_refusals(&page, report);
    put_hint(&page, report);
    return buffer_bytes(&page.text);
}
