/* SPDX-License-Identifier: MIT
 *
 * Which function symbol a place of the input lies in. Asked for every jump of every
 * callee that is looked at, so they are sorted once, by section and start. Symbols may
 * lie in each other: then it is the largest one around the place that counts, and the
 * first of equals.
 */
#include "outliner/verify/verify.h"

#include <elf.h>
#include <stdlib.h>

/* A function symbol. */
struct span {
    uint32_t section, symbol;
    uint64_t start, end; /* section offsets */
    uint64_t reach;      /* the furthest end of those of its section up to and with it */
};

struct spans {
    array_of(struct span) items;
};

static int compare_spans(const void *left, const void *right)
{
    const struct span *a = left, *b = right;
    if (a->section != b->section)
        return a->section < b->section ? -1 : 1;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return (a->symbol > b->symbol) - (a->symbol < b->symbol);
}

static void index_object(struct arena *arena, const struct object *object,
                         struct spans *spans)
{
    for (uint32_t s = 1; s < object->symbol_count; s++) {
        const struct symbol *symbol = &object->symbols[s];
        uint64_t end;
        if (symbol->type != STT_FUNC ||
            __builtin_add_overflow(symbol->value, symbol->size, &end))
            continue;
        struct span span = {symbol->section, s, symbol->value, end, end};
        array_push(arena, &spans->items, span);
    }
    if (spans->items.count)
        qsort(spans->items.items, spans->items.count, sizeof *spans->items.items,
              compare_spans);
    for (uint32_t i = 1; i < spans->items.count; i++) {
        struct span *span = &spans->items.items[i];
        if (span[-1].section == span->section && span[-1].reach > span->reach)
            span->reach = span[-1].reach;
    }
}

void verify_index_functions(struct arena *arena, struct side *side)
{
    side->spans = arena_new_array(arena, struct spans, side->objects->count);
    for (uint32_t i = 0; i < side->objects->count; i++)
        index_object(arena, side->objects->items[i], &side->spans[i]);
}

/* The first one that begins behind the place. */
static uint32_t first_behind(const struct spans *spans, struct spot spot)
{
    uint32_t low = 0, high = spans->items.count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct span *span = &spans->items.items[middle];
        if (span->section < spot.section ||
            (span->section == spot.section && span->start <= spot.offset))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct symbol *verify_function_around(const struct side *side, struct spot spot)
{
    const struct spans *spans = &side->spans[spot.object];
    const struct span *found = NULL;
    for (uint32_t i = first_behind(spans, spot); i-- > 0;) {
        const struct span *span = &spans->items.items[i];
        if (span->section != spot.section || span->reach <= spot.offset)
            break;
        uint64_t size = span->end - span->start;
        bool better = !found || size > found->end - found->start ||
                      (size == found->end - found->start && span->symbol < found->symbol);
        if (span->end > spot.offset && better)
            found = span;
    }
    return found ? &side->objects->items[spot.object]->symbols[found->symbol] : NULL;
}
