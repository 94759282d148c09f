/* SPDX-License-Identifier: MIT
 *
 * Bytes of a changed section of which nobody knows whether they are code: what lies
 * between functions, and functions that do not decode. Each must be what it was, its
 * relocations must mean what they meant, an unwinder must find the same rows, and
 * whatever it could refer to, if it was code, must have kept its distance.
 */
#include "outliner/verify/verify.h"

#include "mo/superset.h"

#include <string.h>

/* A function symbol to which the addend of a call's field leads back is tracked. */
static uint8_t bias_of(const struct verify *verify, const struct reloc *reloc)
{
    return is_relative(verify, reloc) && reloc->addend == -4 &&
                   verify->target->code_align == 1
               ? 4
               : 0;
}

static bool relocs_agree(struct verify *verify, const struct island *island,
                         struct spot old, struct spot new, struct error *err)
{
    const struct section *a = spot_section(&verify->before, old);
    const struct section *b = spot_section(&verify->after, new);
    uint32_t i = section_reloc_at(a, island->before);
    uint32_t k = section_reloc_at(b, island->after);
    for (; i < a->reloc_count; i++, k++) {
        const struct reloc *x = &a->relocs[i];
        if (x->offset >= island->before + island->size)
            break;
        old.offset = (uint32_t)x->offset;
        new.offset = old.offset - island->before + island->after;
        const struct reloc *y = k < b->reloc_count ? &b->relocs[k] : NULL;
        if (!y || y->offset != new.offset || y->type != x->type)
            return verify_fail(verify, old, new, err, "a relocation of data differs");
        struct meaning before =
            meaning_of(&verify->before, old.object, x, bias_of(verify, x));
        struct meaning after =
            meaning_of(&verify->after, new.object, y, bias_of(verify, y));
        if (!meanings_agree(verify, &before, &after, old, new, err))
            return false;
    }
    return (k == b->reloc_count ||
            b->relocs[k].offset >= island->after + island->size) ||
           verify_fail(verify, old, new, err, "data has a relocation that it had not");
}

bool verify_island(struct verify *verify, const struct island *island, struct spot old,
                   struct spot new, struct section_map *map, struct error *err)
{
    const struct section *a = spot_section(&verify->before, old);
    const struct section *b = spot_section(&verify->after, new);
    old.offset = island->before;
    new.offset = island->after;
    if (memcmp(a->data.at + island->before, b->data.at + island->after, island->size) !=
        0)
        return verify_fail(verify, old, new, err, "data among code differs");
    if (!relocs_agree(verify, island, old, new, err))
        return false;
    if (!rows_stay(verify, &old, &new, island->size))
        return verify_fail(verify, old, new, err, "an unwind row differs");
    for (uint32_t i = 0; i < island->size; i++)
        map_note(verify->arena, map, island->before + i, island->after + i);
    struct island *last =
        map->islands.count ? &map->islands.items[map->islands.count - 1] : NULL;
    bool same = last && last->gap && island->gap &&
                last->before + last->size == island->before &&
                last->after + last->size == island->after;
    if (same)
        last->size += island->size;
    else
        array_push(verify->arena, &map->islands, *island);
    return true;
}

/* --- distances --- */

static bool is_place(const void *context, uint32_t offset)
{
    const struct section_map *map = context;
    return map_is_start(map, offset);
}

/* The known position that tells how far what lies at an offset has moved: the
 * instruction around it, or what comes behind when that is padding. */
static uint32_t witness(const struct verify *verify, const struct section_map *map,
                        struct spot at)
{
    uint32_t before = at.offset, after = at.offset;
    while (before > 0 && !map_is_start(map, before))
        before--;
    while (after < map->size && !map_is_start(map, after))
        after++;
    struct view view;
    struct spot start = {at.object, at.section, before};
    bool around = map_is_start(map, before) &&
                  view_at(verify, &verify->before, start, &view) &&
                  before + view.insn.length > at.offset;
    return around || after >= map->size ? before : after;
}

bool verify_distance(struct verify *verify, const struct island *island,
                     struct spot old, struct spot new, struct error *err)
{
    const struct section_map *map = &verify->maps[old.object][old.section];
    struct superset_range range = {spot_section(&verify->before, old), island->before,
                                   island->before + island->size, is_place, map};
    struct superset all =
        superset_of(verify->arena, verify->decoder, verify->target, &range);
    for (uint32_t i = 0; i < all.references.count; i++) {
        old.offset = all.references.items[i].to;
        uint32_t known = witness(verify, map, old);
        int64_t moved = (int64_t)map_start(map, known) - known;
        int64_t own = (int64_t)island->after - island->before;
        new.offset = (uint32_t)(old.offset + own);
        if (moved != own)
            return verify_fail(verify, old, new, err,
                               "data at 0x%x may refer to this, and lies %d bytes "
                               "further off",
                               all.references.items[i].from, (int)(moved - own));
    }
    return true;
}

bool verify_distances(struct verify *verify, struct spot old, struct spot new,
                      struct error *err)
{
    const struct section_map *map = &verify->maps[old.object][old.section];
    for (uint32_t i = 0; i < map->islands.count; i++) {
        if (!verify_distance(verify, &map->islands.items[i], old, new, err))
            return false;
    }
    return true;
}
