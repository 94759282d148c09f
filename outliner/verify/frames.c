/* SPDX-License-Identifier: MIT
 *
 * Unwind entries as wholes: which personality, which LSDA, which flags and encodings.
 * Their rows are compared where the code is; an entry that cannot be read must be the
 * same bytes.
 */
#include "outliner/verify/verify.h"

#include <string.h>

/* The bytes of the entry at `offset` of an .eh_frame section, its length field
 * included. */
static uint32_t entry_size(const struct section *section, uint32_t offset)
{
    if (offset + UINT64_C(4) > section->data.size)
        return 0;
    return (uint32_t)load_le(section->data.at + offset, 4) + 4;
}

struct entry {
    struct spot at;
    uint32_t end;
    uint32_t skip, skip_too; /* section offsets of fields that are judged elsewhere */
};

static struct entry entry_of(const struct side *side, uint32_t object, uint32_t section,
                             uint32_t offset)
{
    struct spot at = {object, section, offset};
    return (struct entry){at, offset + entry_size(spot_section(side, at), offset),
                          NO_INDEX, NO_INDEX};
}

/* The next relocation of the entry that counts, or NULL. */
static const struct reloc *next_reloc(const struct side *side,
                                      const struct entry *entry, uint32_t *index)
{
    const struct section *section = spot_section(side, entry->at);
    for (; *index < section->reloc_count; ++*index) {
        const struct reloc *reloc = &section->relocs[*index];
        if (reloc->offset >= entry->end)
            return NULL;
        if (reloc->offset != entry->skip && reloc->offset != entry->skip_too) {
            ++*index;
            return reloc;
        }
    }
    return NULL;
}

static bool relocs_agree(struct verify *verify, const struct entry *before,
                         const struct entry *after, struct error *err)
{
    uint32_t i =
        section_reloc_at(spot_section(&verify->before, before->at), before->at.offset);
    uint32_t j =
        section_reloc_at(spot_section(&verify->after, after->at), after->at.offset);
    for (;;) {
        const struct reloc *old = next_reloc(&verify->before, before, &i);
        const struct reloc *new = next_reloc(&verify->after, after, &j);
        if (!old && !new)
            return true;
        if (!old || !new || old->type != new->type)
            return verify_fail(verify, before->at, after->at, err,
                               "the unwind entry has other relocations");
        struct meaning a = meaning_of(&verify->before, before->at.object, old, 0);
        struct meaning b = meaning_of(&verify->after, after->at.object, new, 0);
        if (!meanings_agree(verify, &a, &b, before->at, after->at, err))
            return false;
    }
}

static bool same_cie(const struct cie *a, const struct cie *b)
{
    return a->code_align == b->code_align && a->data_align == b->data_align &&
           a->return_column == b->return_column && a->signal_frame == b->signal_frame &&
           a->b_key == b->b_key && a->fde_encoding == b->fde_encoding &&
           a->lsda_encoding == b->lsda_encoding &&
           a->personality_encoding == b->personality_encoding &&
           a->has_personality == b->has_personality && a->refusal == b->refusal;
}

/* An entry that cannot be read must be the same bytes: header of length, CIE pointer
 * and start apart (its length of code is compared). */
static bool unread_agree(struct verify *verify, const struct entry *before,
                         const struct entry *after)
{
    enum { HEADER = 16 };
    const struct section *old = spot_section(&verify->before, before->at);
    const struct section *new = spot_section(&verify->after, after->at);
    uint32_t size = before->end - before->at.offset;
    return size >= HEADER && size == after->end - after->at.offset &&
           before->end <= old->data.size &&
           after->end <= new->data.size &&memcmp(
                             old->data.at + before->at.offset + HEADER,
                             new->data.at + after->at.offset + HEADER, size - HEADER) ==
               0;
}

/* The field that leads to the call-site table. */
static uint32_t pointer_field(const struct side *side, uint32_t object,
                              const struct fde *fde)
{
    const struct section *section =
        &side->objects->items[object]->sections[fde->section];
    return (uint32_t)section->relocs[fde->lsda_reloc].offset;
}

static bool fdes_agree(struct verify *verify, uint32_t object, const struct fde *before,
                       const struct fde *after, struct error *err)
{
    enum { START_FIELD = 8 };
    const struct cie *old_cie = &verify->before.frames[object].cies[before->cie];
    const struct cie *new_cie = &verify->after.frames[object].cies[after->cie];
    struct entry old =
        entry_of(&verify->before, object, before->section, before->offset);
    struct entry new = entry_of(&verify->after, object, after->section, after->offset);
    old.skip = before->offset + START_FIELD;
    new.skip = after->offset + START_FIELD;
    if (!same_cie(old_cie, new_cie) || before->has_lsda != after->has_lsda ||
        before->refusal != after->refusal)
        return verify_fail(verify, old.at, new.at, err,
                           "the unwind entry's kind differs");
    if (before->refusal != REFUSAL_NONE &&
        (before->length != after->length || !unread_agree(verify, &old, &new)))
        return verify_fail(verify, old.at, new.at, err,
                           "an unwind entry that nobody can read differs");
    bool read = false;
    if (before->has_lsda && !lsdas_agree(verify, object, before, after, &read, err))
        return false;
    if (read) {
        old.skip_too = pointer_field(&verify->before, object, before);
        new.skip_too = pointer_field(&verify->after, object, after);
    }
    struct entry old_head =
        entry_of(&verify->before, object, old_cie->section, old_cie->offset);
    struct entry new_head =
        entry_of(&verify->after, object, new_cie->section, new_cie->offset);
    return relocs_agree(verify, &old, &new, err) &&
           relocs_agree(verify, &old_head, &new_head, err);
}

static bool changes_agree(const struct fde *a, const struct fde *b)
{
    return a->length == b->length && a->change_count == b->change_count &&
           (a->change_count == 0 ||
            memcmp(a->changes, b->changes, a->change_count * sizeof *a->changes) == 0);
}

bool rows_are_unchanged(const struct verify *verify, uint32_t object, uint32_t section)
{
    const struct frames *old = &verify->before.frames[object];
    const struct frames *new = &verify->after.frames[object];
    uint32_t to = verify->after_of[object][section], first, other;
    uint32_t size = (uint32_t)spot_section(&verify->before,
                                           (struct spot){object, section, 0})
                        ->data.size;
    uint32_t count = frames_find(old, section, 0, size, &first);
    if (count != frames_find(new, to, 0, size, &other))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const struct fde *a = &old->fdes[first + i], *b = &new->fdes[other + i];
        if (a->start != b->start || a->refusal != b->refusal || !changes_agree(a, b))
            return false;
    }
    return true;
}

static const struct fde *fde_there(const struct verify *verify, struct spot spot)
{
    const struct frames *frames = &verify->after.frames[spot.object];
    uint32_t first;
    uint32_t count =
        frames_find(frames, spot.section, spot.offset, spot.offset + 1, &first);
    for (uint32_t i = 0; i < count; i++) {
        if (frames->fdes[first + i].start == spot.offset)
            return &frames->fdes[first + i];
    }
    return NULL;
}

/* Where an entry ends matters little, since rows are compared at every instruction; but
 * it should be the end of what it was the end of. One that ended in padding may end
 * anywhere there. */
static bool ends_alike(const struct verify *verify, struct spot before,
                       struct spot after)
{
    const struct section_map *map = &verify->maps[before.object][before.section];
    if (map->identity || before.offset > map->size)
        return true;
    bool known = map_is_start(map, before.offset) ||
                 is_known_end(map, before.offset);
    return !known || positions_agree(verify, before, after);
}

static bool check_fde(struct verify *verify, uint32_t object, const struct fde *fde,
                      struct error *err)
{
    const struct objects *objects = verify->before.objects;
    if (fde->code_section == NO_INDEX || fde->length == 0 ||
        !section_is_code(&objects->items[object]->sections[fde->code_section]))
        return true;
    /* What cannot be read cannot be told apart, either, but if nothing has changed … */
    if (fde->refusal != REFUSAL_NONE && is_unchanged(verify, object, fde->section))
        return true;
    const struct section_map *map = &verify->maps[object][fde->code_section];
    struct spot old = {object, fde->code_section, fde->start};
    struct spot new = {object, verify->after_of[object][fde->code_section], fde->start};
    if (!map->identity)
        new.offset = map->walked ? map_start(map, fde->start) : NO_INDEX;
    const struct fde *other = new.offset == NO_INDEX ? NULL : fde_there(verify, new);
    if (!other || other->start != new.offset)
        return verify_fail(verify, old, new, err, "no unwind entry starts there now");
    if (map->identity && !changes_agree(fde, other))
        return verify_fail(verify, old, new, err, "its unwind rows differ");
    old.offset += fde->length;
    new.offset += other->length;
    if (!ends_alike(verify, old, new))
        return verify_fail(verify, old, new, err, "an unwind entry ends elsewhere");
    return fdes_agree(verify, object, fde, other, err);
}

static bool check_helper_fdes(struct verify *verify, uint32_t object, struct error *err)
{
    const struct frames *frames = &verify->after.frames[object];
    for (uint32_t i = 0; i < frames->fde_count; i++) {
        const struct fde *fde = &frames->fdes[i];
        if (fde->code_section == NO_INDEX ||
            !is_helper_section(verify, object, fde->code_section))
            continue;
        const struct section *code =
            &verify->after.objects->items[object]->sections[fde->code_section];
        if ((uint64_t)fde->start + fde->length > code->data.size || fde->has_lsda ||
            frames->cies[fde->cie].has_personality) {
            struct place place = object_place(verify->after.objects->items[object],
                                              fde->code_section, fde->start);
            return fail(err, &place,
                        "internal error: a helper has a personality, or no end");
        }
    }
    return true;
}

bool verify_frames(struct verify *verify, struct error *err)
{
    bool last = verify->end == verify->before.objects->count;
    uint32_t end = last ? verify->after.objects->count : verify->end;
    for (uint32_t i = verify->first; i < end; i++) {
        if (!check_helper_fdes(verify, i, err))
            return false;
    }
    for (uint32_t i = verify->first; i < verify->end; i++) {
        const struct frames *frames = &verify->before.frames[i];
        for (uint32_t f = 0; f < frames->fde_count; f++) {
            if (!check_fde(verify, i, &frames->fdes[f], err))
                return false;
        }
    }
    return true;
}
