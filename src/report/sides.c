/* SPDX-License-Identifier: MIT
 *
 * Two columns. The right one is the function as it is now; behind each instruction that
 * enters a helper the helper's own follow, set off by a bar for each level. Equal
 * instructions stand side by side; where a helper has another form of one (a shifted
 * stack operand), that stands beside the one it took over.
 */
#include "mo/sides.h"

#include "mo/array.h"
#include "mo/costs.h"
#include "mo/listing.h"
#include "mo/match.h"
#include "mo/table.h"
#include "report_parts.h"

#include <inttypes.h>
#include <string.h>

enum { LEFT_COLUMNS = 44, DEEPEST = 8 };

struct side {
    const char *text; /* offset, bars, instruction */
    const char *same;
    uint32_t depth; /* 0: of the function itself */
    bool enters;    /* a helper: nothing took its place before */
};

struct sides {
    struct side *items;
    uint32_t count, capacity;
};

/* One state of a set. */
struct state {
    const struct objects *objects;
    struct costs costs;
};

struct printer {
    struct arena *stage;
    FILE *out;
    struct state before, after;
};

static const char *line_text(struct printer *printer, const struct listing_line *line,
                             uint64_t start, uint32_t depth)
{
    char bars[2 * DEEPEST + 1] = "";
    for (uint32_t i = 0; i < depth; i++)
        strcat(bars, "| ");
    return arena_format(printer->stage, "%5" PRIx64 " %s%s", line->at - start, bars,
                        line->text);
}

/* How an instruction of this function enters a helper; NULL: it does not. */
static const struct entry *entry_at(const struct costs *costs, uint32_t caller,
                                    const struct listing_line *line)
{
    for (uint32_t i = 0; line->reloc != NO_INDEX && i < costs->entry_count; i++) {
        const struct entry *entry = &costs->entries[i];
        if (entry->caller == caller && entry->offset >= line->at &&
            entry->offset < line->at + line->length)
            return entry;
    }
    return NULL;
}

static struct listing listing_at(struct printer *printer, const struct state *state,
                                 uint32_t index)
{
    const struct cost *cost = &state->costs.items[index];
    return listing_of(printer->stage, state->objects->items[cost->object],
                      cost->section, cost->start, cost->bytes);
}

/* A stack of the listings that are open, one in the other. */
struct level {
    uint32_t function, next;
    struct listing listing;
};

static struct level level_of(struct printer *printer, const struct state *state,
                             const struct entry *entry)
{
    struct level level = {entry->helper, 0, listing_at(printer, state, entry->helper)};
    uint64_t from = state->costs.items[entry->helper].start + entry->skipped;
    while (level.next < level.listing.count &&
           level.listing.lines[level.next].at < from)
        level.next++;
    return level;
}

static void expand(struct printer *printer, const struct state *state, uint32_t index,
                   struct sides *out)
{
    struct level levels[DEEPEST];
    uint32_t depth = 0;
    levels[0] = (struct level){index, 0, listing_at(printer, state, index)};
    for (;;) {
        struct level *level = &levels[depth];
        if (level->next == level->listing.count) {
            if (depth-- == 0)
                return;
            continue;
        }
        const struct listing_line *line = &level->listing.lines[level->next++];
        const struct entry *entry = entry_at(&state->costs, level->function, line);
        uint64_t start = state->costs.items[level->function].start;
        struct side side = {line_text(printer, line, start, depth), line->same, depth,
                            entry != NULL};
        array_push(printer->stage, out, side);
        if (entry && depth + 1 < DEEPEST)
            levels[++depth] = level_of(printer, state, entry);
    }
}

static uint32_t *numbers_of(struct printer *printer, struct table *names,
                            const struct sides *sides)
{
    uint32_t *numbers = arena_new_array(printer->stage, uint32_t, sides->count);
    for (uint32_t i = 0; i < sides->count; i++)
        numbers[i] = table_intern_string(names, sides->items[i].same);
    return numbers;
}

static void print_row(struct printer *printer, const struct side *left,
                      const struct side *right)
{
    const char *text = left ? left->text : "";
    if (!right) {
        fprintf(printer->out, "%s\n", text);
        return;
    }
    if (strlen(text) > LEFT_COLUMNS)
        text = arena_format(printer->stage, "%.*s...", LEFT_COLUMNS - 3, text);
    fprintf(printer->out, "%-*s  %s\n", LEFT_COLUMNS, text, right->text);
}

/* Rows without a match: what the left has lost beside what helpers have instead. */
static void print_gap(struct printer *printer, const struct sides *left,
                      uint32_t left_at, uint32_t left_end, const struct sides *right,
                      uint32_t right_at, uint32_t right_end)
{
    for (; right_at < right_end; right_at++) {
        const struct side *side = &right->items[right_at];
        bool beside = left_at < left_end && !side->enters && side->depth > 0;
        print_row(printer, beside ? &left->items[left_at++] : NULL, side);
    }
    for (; left_at < left_end; left_at++)
        print_row(printer, &left->items[left_at], NULL);
}

static void print_columns(struct printer *printer, const struct sides *left,
                          const struct sides *right)
{
    struct table *names = table_new(printer->stage);
    const uint32_t *a = numbers_of(printer, names, left);
    const uint32_t *b = numbers_of(printer, names, right);
    const uint32_t *matches = align(printer->stage, a, left->count, b, right->count);
    uint32_t left_at = 0, right_at = 0;
    for (uint32_t i = 0; i <= left->count; i++) {
        uint32_t match = i < left->count ? matches[i] : right->count;
        if (match == NO_INDEX)
            continue;
        print_gap(printer, left, left_at, i, right, right_at, match);
        if (i < left->count)
            print_row(printer, &left->items[i], &right->items[match]);
        left_at = i + 1;
        right_at = match + 1;
    }
}

static const char *unit_of(const struct state *state, const struct cost *cost)
{
    return section_unit(state->objects->items[cost->object], cost->section);
}

/* The function of the same unit and name, the same one of several; NO_INDEX: gone. */
static uint32_t partner_of(const struct printer *printer, uint32_t index)
{
    const struct costs *old = &printer->before.costs, *new = &printer->after.costs;
    const struct cost *wanted = &old->items[index];
    const char *unit = unit_of(&printer->before, wanted);
    uint32_t repeat = 0;
    for (uint32_t i = 0; i < index; i++)
        repeat += strcmp(old->items[i].name, wanted->name) == 0 &&
                  strcmp(unit_of(&printer->before, &old->items[i]), unit) == 0;
    for (uint32_t i = 0; i < new->count; i++) {
        if (strcmp(new->items[i].name, wanted->name) == 0 &&
            strcmp(unit_of(&printer->after, &new->items[i]), unit) == 0 &&
            repeat-- == 0)
            return i;
    }
    return NO_INDEX;
}

static void print_function(struct printer *printer, uint32_t index)
{
    const struct cost *old = &printer->before.costs.items[index];
    uint32_t partner = partner_of(printer, index);
    if (partner == NO_INDEX)
        return;
    const struct cost *new = &printer->after.costs.items[partner];
    fprintf(printer->out,
            "%s: %s %s, %" PRIu64 " bytes before, %" PRIu64 " now and %" PRIu64
            " as its share of helpers\n",
            old->name, unit_of(&printer->before, old),
            printer->before.objects->items[old->object]->sections[old->section].name,
            old->bytes, new->bytes, new->shared);
    struct sides left = {0}, right = {0};
    expand(printer, &printer->before, index, &left);
    expand(printer, &printer->after, partner, &right);
    print_columns(printer, &left, &right);
}

/* The number of functions printed. */
static uint32_t print_set(FILE *out, const struct objects *before,
                          const struct objects *after, const char *glob)
{
    struct arena *stage = arena_new();
    struct printer printer = {
        .stage = stage,
        .out = out,
        .before = {before, costs_of(stage, before)},
        .after = {after,  costs_of(stage, after) }
    };
    uint32_t count = 0;
    for (uint32_t i = 0; i < printer.before.costs.count; i++) {
        const struct cost *cost = &printer.before.costs.items[i];
        if (!glob_is_function(glob, unit_of(&printer.before, cost), cost->name))
            continue;
        if (count++ > 0)
            fputc('\n', out);
        print_function(&printer, i);
    }
    arena_free(stage);
    return count;
}

void print_sides(FILE *out, const struct sets *before, const struct sets *after,
                 const char *glob)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < before->count; i++)
        count +=
            print_set(out, &before->items[i].objects, &after->items[i].objects, glob);
    if (count == 0)
        fprintf(out, "%s: there is no such function here\n", glob);
}
