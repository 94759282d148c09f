/* SPDX-License-Identifier: MIT
 *
 * Functions in two parts: foo, and foo.cold in a section of its own (GCC and LLVM name
 * them so), with one frame. What one of them keeps below SP is there while the other
 * one runs, which need not look at the stack at all. So for the red zone the two are
 * one function. Where several functions of one unit have such a name, nobody knows whose
 * part it is, and none is taken for one.
 */
#include "outliner/verify/verify.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

static const char COLD[] = ".cold";

struct found {
    struct stretch_of_code main, cold;
    uint32_t mains, colds; /* how many there are */
};

struct finder {
    struct verify *verify;
    struct arena *stage;
    struct table *names; /* (unit, name without ".cold") of the object at hand */
    array_of(struct found) found;
};

static uint32_t number_of(struct finder *finder, uint32_t unit, const char *name,
                          size_t length, bool make)
{
    char *key = arena_format(finder->stage, "%u %.*s", unit, (int)length, name);
    if (!make)
        return table_find_string(finder->names, key);
    return table_intern_string(finder->names, key);
}

static bool is_function(const struct object *object, const struct symbol *symbol)
{
    return symbol->type == STT_FUNC && symbol->size > 0 &&
           symbol->section < object->section_count &&
           section_is_code(&object->sections[symbol->section]);
}

/* The length of the name without ".cold", or 0. */
static size_t cold_length(const char *name)
{
    size_t length = strlen(name), suffix = sizeof COLD - 1;
    bool cold = length > suffix && strcmp(name + length - suffix, COLD) == 0;
    return cold ? length - suffix : 0;
}

static struct stretch_of_code stretch_of(uint32_t object, const struct symbol *symbol)
{
    return (struct stretch_of_code){
        {object, symbol->section, (uint32_t)symbol->value},
        (uint32_t)(symbol->value + symbol->size)
    };
}

static void find_colds(struct finder *finder, uint32_t number)
{
    const struct object *object = finder->verify->before.objects->items[number];
    for (uint32_t s = 1; s < object->symbol_count; s++) {
        const struct symbol *symbol = &object->symbols[s];
        size_t length = cold_length(symbol->name);
        if (length == 0 || !is_function(object, symbol))
            continue;
        uint32_t unit = object->sections[symbol->section].unit;
        uint32_t at = number_of(finder, unit, symbol->name, length, true);
        if (at == finder->found.count)
            array_push(finder->stage, &finder->found, (struct found){0});
        finder->found.items[at].cold = stretch_of(number, symbol);
        finder->found.items[at].colds++;
    }
}

static void find_mains(struct finder *finder, uint32_t number)
{
    const struct object *object = finder->verify->before.objects->items[number];
    for (uint32_t s = 1; s < object->symbol_count && finder->found.count > 0; s++) {
        const struct symbol *symbol = &object->symbols[s];
        if (!is_function(object, symbol))
            continue;
        uint32_t unit = object->sections[symbol->section].unit;
        uint32_t at =
            number_of(finder, unit, symbol->name, strlen(symbol->name), false);
        if (at == NO_INDEX)
            continue;
        finder->found.items[at].main = stretch_of(number, symbol);
        finder->found.items[at].mains++;
    }
}

static void keep_pairs(struct finder *finder)
{
    struct verify *verify = finder->verify;
    for (uint32_t i = 0; i < finder->found.count; i++) {
        const struct found *found = &finder->found.items[i];
        if (found->mains != 1 || found->colds != 1)
            continue;
        struct two_parts one = {found->main, found->cold};
        struct two_parts two = {found->cold, found->main};
        array_push(verify->arena, &verify->parts, one);
        array_push(verify->arena, &verify->parts, two);
    }
}

static int compare_spots(struct spot a, struct spot b)
{
    if (a.object != b.object)
        return a.object < b.object ? -1 : 1;
    if (a.section != b.section)
        return a.section < b.section ? -1 : 1;
    return (a.offset > b.offset) - (a.offset < b.offset);
}

static int compare_parts(const void *left, const void *right)
{
    const struct two_parts *a = left, *b = right;
    return compare_spots(a->part.start, b->part.start);
}

void verify_find_parts(struct verify *verify)
{
    if (verify->target->call_pushes == 0)
        return;
    for (uint32_t i = 0; i < verify->before.objects->count; i++) {
        struct arena *stage = arena_new();
        struct finder finder = {verify, stage, .names = table_new(stage)};
        find_colds(&finder, i);
        find_mains(&finder, i);
        keep_pairs(&finder);
        arena_free(stage);
    }
    if (verify->parts.count > 0)
        qsort(verify->parts.items, verify->parts.count, sizeof *verify->parts.items,
              compare_parts);
}

bool verify_other_part(const struct verify *verify, struct spot start,
                       struct stretch_of_code *out)
{
    uint32_t low = 0, high = verify->parts.count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare_spots(verify->parts.items[middle].part.start, start) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == verify->parts.count ||
        compare_spots(verify->parts.items[low].part.start, start) != 0)
        return false;
    *out = verify->parts.items[low].other;
    return true;
}
