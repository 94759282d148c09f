/* SPDX-License-Identifier: MIT
 *
 * Where the code of a section has gone. Code moves in few blocks, so a place is kept as
 * the distance of its block; which offsets are places at all is a bit for each.
 */
#include "outliner/verify/verify.h"

enum { WORD = 64 };

static uint64_t bit_of(uint32_t offset)
{
    return UINT64_C(1) << offset % WORD;
}

void map_prepare(struct arena *arena, struct section_map *map, uint32_t size)
{
    map->walked = true;
    map->size = size;
    map->starts = arena_new_array(arena, uint64_t, size / WORD + 1);
    map->taken = arena_new_array(arena, uint64_t, size / WORD + 1);
}

void map_note(struct arena *arena, struct section_map *map, uint32_t before,
              uint32_t after)
{
    const struct pair *last =
        map->shifts.count ? &map->shifts.items[map->shifts.count - 1] : NULL;
    struct pair shift = {before, after};
    map->starts[before / WORD] |= bit_of(before);
    if (!last || last->after - last->before != after - before)
        array_push(arena, &map->shifts, shift);
}

bool map_is_start(const struct section_map *map, uint32_t before)
{
    return before < map->size && (map->starts[before / WORD] & bit_of(before)) != 0;
}

uint32_t map_start(const struct section_map *map, uint32_t before)
{
    uint32_t low = 0, high = map->shifts.count;
    if (!map_is_start(map, before))
        return NO_INDEX;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (map->shifts.items[middle].before <= before)
            low = middle + 1;
        else
            high = middle;
    }
    const struct pair *shift = &map->shifts.items[low - 1];
    return shift->after + (before - shift->before);
}

void map_note_taken(struct section_map *map, const struct insn *insn)
{
    bool transfers =
        insn->flow == FLOW_JUMP || insn->flow == FLOW_BRANCH || insn->flow == FLOW_CALL;
    if ((insn->traits & INSN_PC_RELATIVE) && !transfers && insn->target < map->size)
        map->taken[insn->target / WORD] |= bit_of(insn->target);
}

bool map_is_taken(const struct section_map *map, uint32_t start, uint32_t end)
{
    for (uint32_t at = start; at < end; at++) {
        if (map->taken[at / WORD] & bit_of(at))
            return true;
    }
    return false;
}
