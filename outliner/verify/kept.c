/* SPDX-License-Identifier: MIT
 *
 * Instructions that have stayed, outside of helpers: most of a section that has changed.
 * What walk_over() asks of each of them is answered here for many at once: bytes are
 * compared up to the first that differs, rows up to where one of the two ends. What is
 * left for each is what it refers to; and branches lead over sites, so that theirs are
 * often the bytes that differ.
 *
 * Nothing is refused here: where not everything is as it was, the walk goes on
 * instruction by instruction, and judges.
 */
#include "outliner/verify/verify.h"

#include <string.h>

struct kept {
    struct walk *walk;
    const struct section *new;
    uint32_t shift;            /* new offset - old offset, modulo 2^32 */
    uint32_t limit;            /* old offset: one of the two has no more behind it */
    uint32_t end;              /* old offset: bytes are the same up to there */
    uint32_t rows_end;         /* old offset: rows are the same up to there … */
    uint32_t row;              /* … namely this one */
    bool has_handlers;         /* a call-site table may say something */
    uint32_t reloc;            /* index of the next one of `new` */
};

/* How many of `size` bytes are the same, counted in words as far as possible. */
static uint32_t same_bytes(const uint8_t *a, const uint8_t *b, uint32_t size)
{
    enum { WORD = 8 };
    uint32_t same = 0;
    while (same + WORD <= size && load_le(a + same, WORD) == load_le(b + same, WORD))
        same += WORD;
    while (same < size && a[same] == b[same])
        same++;
    return same;
}

/* Compares from where the next instruction is, or the one behind the branch there. */
static void find_end(struct kept *kept, uint32_t branch)
{
    const struct walk *walk = kept->walk;
    const struct section *old = spot_section(&walk->verify->before, walk->before);
    uint32_t before = walk->before.offset + branch, after = before + kept->shift;
    kept->end = before + same_bytes(old->data.at + before, kept->new->data.at + after,
                                    kept->limit - before);
}

static struct kept start(struct walk *walk, struct pair end)
{
    const struct section *new = spot_section(&walk->verify->after, walk->after);
    uint32_t before = walk->before.offset, after = walk->after.offset;
    uint32_t size = end.before - before, room = end.after - after;
    struct kept kept = {.walk = walk,
                        .new = new,
                        .shift = after - before,
                        .limit = before + (size < room ? size : room),
                        .reloc = section_reloc_at(new, after)};
    find_end(&kept, 0);
    return kept;
}

/* --- what is asked of each --- */

static bool keeps_row(struct kept *kept)
{
    struct walk *walk = kept->walk;
    const struct verify *verify = walk->verify;
    const struct fde *old, *new;
    if (walk->before.offset < kept->rows_end)
        return true;
    kept->row = row_of_spot(&verify->before, walk->before, &old);
    uint32_t now = row_of_spot(&verify->after, walk->after, &new);
    if (kept->row == ROW_UNREAD || walk_row_told(walk, kept->row, now) != now)
        return false;
    uint32_t before = row_end(&verify->before, walk->before);
    uint32_t after = row_end(&verify->after, walk->after) - kept->shift;
    kept->rows_end = before < after ? before : after;
    kept->has_handlers = (old && old->has_lsda) || (new && new->has_lsda);
    return true;
}

/* Its relocations are of the same types, in the same places. */
static bool keeps_fields(const struct kept *kept, const struct view *view)
{
    uint32_t next = kept->reloc + view->reloc_count;
    if (next > kept->new->reloc_count)
        return false;
    for (uint32_t i = 0; i < view->reloc_count; i++) {
        const struct reloc *old = &view->relocs[i];
        const struct reloc *new = &kept->new->relocs[kept->reloc + i];
        if (new->type != old->type ||
            new->offset != (uint32_t)(old->offset + kept->shift))
            return false;
    }
    return next == kept->new->reloc_count ||
           kept->new->relocs[next].offset >=
               (uint64_t)kept->walk->after.offset + view->insn.length;
}

/* The assembler has left the PC-relative field to the relocation: it is zero, or it is
 * known to be that one's. (Zero means the next instruction. Where that is of the same
 * function it has kept its distance, if it is kept.) */
static bool fills_target(const struct kept *kept, const struct view *view)
{
    const struct reloc *reloc = view->relocs;
    uint32_t next = view->at.offset + view->insn.length;
    bool zero = view->reloc_count == 1 && is_relative(kept->walk->verify, reloc) &&
                view->insn.target == next && next < kept->end;
    return zero || (view->reloc_count == 1 &&
                    is_pc_field(kept->walk->verify, view, reloc));
}

/* A direct call or jump to where helpers may lie has to be looked at. */
static bool may_enter(const struct verify *verify, const struct view *view,
                      const struct meaning *meaning)
{
    bool direct = view->insn.flow == FLOW_CALL || view->insn.flow == FLOW_JUMP;
    return direct && meaning->placed &&
           is_helper_section(verify, meaning->object, meaning->section);
}

static bool keeps_meaning(const struct kept *kept, const struct view *view,
                          const struct meaning *before, const struct meaning *after)
{
    const struct walk *walk = kept->walk;
    struct error ignored = {0};
    return !may_enter(walk->verify, view, after) &&
           meanings_agree(walk->verify, before, after, walk->before, walk->after,
                          &ignored);
}

static bool keeps_reloc(const struct kept *kept, const struct view *view,
                        const struct reloc *old, const struct reloc *new)
{
    const struct verify *verify = kept->walk->verify;
    if (is_hint(verify, old))
        return true;
    uint8_t bias = is_relative(verify, old)
                       ? verify->target->reloc_bias(&view->insn, old->offset)
                       : 0;
    struct meaning before = meaning_of(&verify->before, view->at.object, old, bias);
    struct meaning after =
        meaning_of(&verify->after, kept->walk->after.object, new, bias);
    return keeps_meaning(kept, view, &before, &after);
}

/* What the assembler resolved. */
static bool keeps_target(const struct kept *kept, const struct view *view, int64_t now)
{
    struct meaning before = meaning_of_place(view->at, view->insn.target);
    struct meaning after = meaning_of_place(kept->walk->after, now);
    return view->insn.target != NO_INDEX &&
           keeps_meaning(kept, view, &before, &after);
}

static bool keeps_refs(const struct kept *kept, const struct view *view)
{
    if (!keeps_fields(kept, view))
        return false;
    for (uint32_t i = 0; i < view->reloc_count; i++) {
        const struct reloc *new = &kept->new->relocs[kept->reloc + i];
        if (!keeps_reloc(kept, view, &view->relocs[i], new))
            return false;
    }
    bool resolved = (view->insn.traits & INSN_PC_RELATIVE) &&
                    (view->reloc_count == 0 || !fills_target(kept, view));
    int64_t shift = (int64_t)kept->walk->after.offset - kept->walk->before.offset;
    return !resolved ||
           (view->reloc_count == 0 &&
            keeps_target(kept, view, view->insn.target + shift));
}

/* A branch of the same length, but for its field the same bytes. */
static bool keeps_branch(const struct kept *kept, const struct view *view)
{
    const struct verify *verify = kept->walk->verify;
    uint8_t flow = view->insn.flow;
    struct code_bytes old, new;
    struct view now;
    return (flow == FLOW_JUMP || flow == FLOW_BRANCH) && view->reloc_count == 0 &&
           (view->insn.traits & INSN_PC_RELATIVE) &&
           view_at(verify, &verify->after, kept->walk->after, &now) &&
           now.insn.length == view->insn.length && now.insn.flow == flow &&
           now.reloc_count == 0 && now.insn.target != NO_INDEX &&
           verify->target->canonical(view->bytes, view->insn.length, &old) &&
           verify->target->canonical(now.bytes, now.insn.length, &new) &&
           old.length == new.length &&
           memcmp(old.bytes, new.bytes, old.length) == 0 &&
           keeps_target(kept, view, now.insn.target);
}

static bool keeps_handler(const struct kept *kept, const struct view *view)
{
    struct error ignored = {0};
    return !kept->has_handlers ||
           walk_check_handler(kept->walk, view, view, &ignored);
}

static bool is_kept(struct kept *kept, const struct view *view)
{
    uint32_t end = view->at.offset + view->insn.length;
    if (end > kept->limit || !keeps_row(kept))
        return false;
    if (end <= kept->end)
        return keeps_refs(kept, view) && keeps_handler(kept, view);
    if (!keeps_branch(kept, view) || !keeps_handler(kept, view))
        return false;
    find_end(kept, view->insn.length);
    return true;
}

/* --- many of them --- */

/* The walk is where nothing is remembered of the way that it came. */
static bool can_start(const struct walk *walk)
{
    bool parted =
        walk->is_glued && memcmp(&walk->glued, &walk->after, sizeof walk->after) != 0;
    return walk->depth == 0 && !walk->link_lost && !parted && !walk->verify->padded &&
           walk->after.offset % walk->verify->target->code_align == 0;
}

uint32_t walk_over_kept(struct walk *walk, struct section_map *map, uint32_t view,
                        struct pair end)
{
    if (!can_start(walk) || walk->after.offset >= end.after)
        return view;
    struct kept kept = start(walk, end);
    uint32_t next = view;
    for (; next < walk->views.count; next++) {
        const struct view *at = &walk->views.items[next];
        if (!is_kept(&kept, at))
            break;
        map_note(walk->verify->arena, map, walk->before.offset, walk->after.offset);
        map_note_taken(map, &at->insn);
        walk_note_link(walk, at, kept.row);
        kept.reloc += at->reloc_count;
        walk->before.offset += at->insn.length;
        walk->after.offset += at->insn.length;
    }
    if (next > view)
        walk_note_glue(walk, &walk->views.items[next - 1]);
    return next;
}
