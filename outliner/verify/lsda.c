/* SPDX-License-Identifier: MIT
 *
 * Does an exception find the same handlers? A personality looks up the call site around
 * the return address by which the unwinder came to its function. For an instruction in
 * a helper that was called, that is the call to the outermost helper; in one that was
 * jumped to there is no call site at all, since helpers have no table.
 *
 * So every call of `before`, what may fault (a signal handler may throw, too), and
 * whatever else a landing pad belongs to, must find
 * three things at its place in the output: a call site or a gap, the landing pad's new
 * place, and the same action. What actions mean is compared table by table: the bytes
 * behind the call sites, and what the types refer to.
 */
#include "outliner/verify/verify.h"

#include <string.h>

static const struct lsda *lsda_of(const struct side *side, uint32_t object,
                                  const struct fde *fde)
{
    const struct lsdas *lsdas = &side->lsdas[object];
    uint32_t i = lsdas->of_fde[fde - side->frames[object].fdes];
    return i == NO_INDEX || lsdas->items[i].refusal != REFUSAL_NONE ? NULL
                                                                    : &lsdas->items[i];
}

bool lsda_is_unread(const struct side *side, struct spot spot)
{
    const struct fde *fde;
    row_of_spot(side, spot, &fde);
    return fde && fde->has_lsda && !lsda_of(side, spot.object, fde);
}

/* --- one instruction --- */

enum handling {
    HANDLING_NONE, /* exceptions pass */
    HANDLING_GAP,
    HANDLING_SITE, /* a landing pad, or an action */
    HANDLING_UNREAD,
};

static enum handling handling_at(const struct side *side, struct spot spot,
                                 const struct call_site **site)
{
    const struct fde *fde;
    row_of_spot(side, spot, &fde);
    *site = NULL;
    if (!fde || !fde->has_lsda)
        return HANDLING_NONE;
    const struct lsda *lsda = lsda_of(side, spot.object, fde);
    if (!lsda)
        return HANDLING_UNREAD;
    *site = lsda_site_at(lsda, spot.offset);
    if (!*site)
        return HANDLING_GAP;
    bool passes = (*site)->pad == NO_INDEX && (*site)->action == 0;
    return passes ? HANDLING_NONE : HANDLING_SITE;
}

static bool is_call(const struct view *view)
{
    return view->insn.flow == FLOW_CALL || view->insn.flow == FLOW_CALL_INDIRECT;
}

/* A byte by which an unwinder looks up what handles the instruction in the output: in
 * the function around, in one whose tail was jumped to, or in a helper, where nothing
 * does. */
static struct spot find_asked(struct walk *walk, const struct view *after)
{
    struct spot spot = walk->after;
    const struct entered *first = walk_first_call(walk);
    if (first) {
        spot = first->resume;
        spot.offset--;
    } else if (is_call(after)) {
        spot.offset += after->insn.length - 1u;
    }
    return spot;
}

/* It throws out of a helper's own frame, not out of a callee's: it must land with the
 * registers and the SP that it has. */
static bool check_own_frame(struct walk *walk, struct error *err)
{
    const struct entered *first = walk_first_call(walk);
    for (uint32_t i = 0; i < walk->depth; i++) {
        if (walk->entered[i].keeping.save != SAVE_NONE)
            return walk_fail(walk, err,
                             "it would land while the link register is kept");
    }
    return !first ||
           first->row == row_of_spot(&walk->verify->before, walk->before, NULL) ||
           walk_fail(walk, err, "it would land with registers of another row");
}

bool walk_check_handler(struct walk *walk, const struct view *before,
                        const struct view *after, struct error *err)
{
    const struct verify *verify = walk->verify;
    const struct call_site *old, *new = NULL;
    enum handling was = handling_at(&verify->before, walk->before, &old);
    bool may_throw = is_call(before) || (before->insn.traits & INSN_FAULTS);
    if (was != HANDLING_SITE && !may_throw)
        return true;
    struct spot asked = find_asked(walk, after);
    enum handling now = handling_at(&verify->after, asked, &new);
    if (was != now || (was == HANDLING_UNREAD && walk->depth > 0))
        return walk_fail(walk, err, "an exception would be handled in another way");
    if (was != HANDLING_SITE)
        return true;
    if (old->action != new->action || (old->pad == NO_INDEX) != (new->pad == NO_INDEX))
        return walk_fail(walk, err, "an exception would find another action");
    if (!is_call(before) && !check_own_frame(walk, err))
        return false;
    if (old->pad == NO_INDEX)
        return true;
    struct pending pad = {walk->before, walk->after, walk->before, asked, 0};
    pad.before.offset = old->pad;
    pad.after.offset = new->pad;
    array_push(verify->arena, &walk->verify->pending, pad);
    return true;
}

/* --- one table --- */

struct table_pair {
    struct verify *verify;
    const struct lsda *before, *after;
    struct spot old, new; /* where they start */
    const struct section *old_section, *new_section;
};

static bool pair_fail(const struct table_pair *pair, struct error *err,
                      const char *what)
{
    return verify_fail(pair->verify, pair->old, pair->new, err,
                       "the call-site tables differ: %s", what);
}

/* `size` bytes from these offsets on, of which the output's must end before `limit`. */
static bool same_bytes(const struct table_pair *pair, uint32_t old, uint32_t new,
                       uint32_t size, uint32_t limit)
{
    return (uint64_t) new + size <= limit &&memcmp(pair->old_section->data.at + old,
                                                   pair->new_section->data.at + new,
                                                   size) ==
           0;
}

static bool headers_agree(const struct table_pair *pair)
{
    const struct lsda *a = pair->before, *b = pair->after;
    return a->types_field - a->start == b->types_field - b->start &&
           same_bytes(pair, a->start, b->start, a->types_field - a->start, b->end) &&
           a->sites_encoding == b->sites_encoding &&
           (a->types_end == NO_INDEX) == (b->types_end == NO_INDEX);
}

static const struct reloc *reloc_at(const struct section *section, uint32_t offset)
{
    uint32_t i = section_reloc_at(section, offset);
    return i < section->reloc_count && section->relocs[i].offset == offset
               ? &section->relocs[i]
               : NULL;
}

static bool type_agrees(const struct table_pair *pair, uint32_t number,
                        struct error *err)
{
    uint32_t size = lsda_type_size(pair->before);
    uint32_t old = pair->before->types_end - number * size;
    uint32_t new = pair->after->types_end - number *size;
    const struct reloc *a = reloc_at(pair->old_section, old);
    const struct reloc *b = reloc_at(pair->new_section, new);
    if (!same_bytes(pair, old, new, size, pair->after->types_end) || !a != !b ||
        (a && a->type != b->type))
        return pair_fail(pair, err, "another type");
    if (!a)
        return true;
    struct meaning before = meaning_of(&pair->verify->before, pair->old.object, a, 0);
    struct meaning after = meaning_of(&pair->verify->after, pair->new.object, b, 0);
    return meanings_agree(pair->verify, &before, &after, pair->old, pair->new, err);
}

static bool types_agree(const struct table_pair *pair, struct error *err)
{
    const struct lsda *a = pair->before, *b = pair->after;
    uint64_t size = (uint64_t)a->type_count * lsda_type_size(a);
    uint32_t actions = a->actions_end - a->actions;
    bool has_types = a->types_end != NO_INDEX;
    uint32_t limit = has_types ? b->types_end : b->end;
    if (limit - b->actions < size + actions ||
        !same_bytes(pair, a->actions, b->actions, actions, limit))
        return pair_fail(pair, err, "other actions");
    if (size && (a->types_end - b->types_end) % lsda_type_size(a) != 0)
        return pair_fail(pair, err, "types are not aligned");
    if (has_types && !same_bytes(pair, a->types_end, b->types_end,
                                 a->lists_end - a->types_end, b->end))
        return pair_fail(pair, err, "other lists of types");
    for (uint32_t i = 1; i <= a->type_count; i++) {
        if (!type_agrees(pair, i, err))
            return false;
    }
    return true;
}

/* Of code that has not changed. */
static bool sites_agree(const struct table_pair *pair)
{
    const struct lsda *a = pair->before, *b = pair->after;
    if (a->site_count != b->site_count)
        return false;
    for (uint32_t i = 0; i < a->site_count; i++) {
        const struct call_site *x = &a->sites[i], *y = &b->sites[i];
        if (x->start != y->start || x->end != y->end || x->pad != y->pad ||
            x->action != y->action)
            return false;
    }
    return true;
}

bool lsdas_agree(struct verify *verify, uint32_t object, const struct fde *before,
                 const struct fde *after, bool *read, struct error *err)
{
    struct table_pair pair = {.verify = verify,
                              .before = lsda_of(&verify->before, object, before),
                              .after = lsda_of(&verify->after, object, after)};
    *read = pair.before != NULL;
    if (!pair.before)
        return true; /* its section is compared, byte for byte */
    pair.old = (struct spot){object, pair.before->section, pair.before->start};
    pair.new = (struct spot){object, verify->after_of[object][pair.before->section], 0};
    if (!pair.after || pair.after->section != pair.new.section)
        return pair_fail(&pair, err, "it cannot be read, or lies elsewhere");
    pair.new.offset = pair.after->start;
    pair.old_section = spot_section(&verify->before, pair.old);
    pair.new_section = spot_section(&verify->after, pair.new);
    if (!headers_agree(&pair))
        return pair_fail(&pair, err, "other encodings");
    if (verify->maps[object][before->code_section].identity && !sites_agree(&pair))
        return pair_fail(&pair, err, "other call sites for the same code");
    return types_agree(&pair, err);
}

bool holds_tables(const struct verify *verify, uint32_t object, uint32_t section)
{
    const struct lsdas *lsdas = &verify->before.lsdas[object];
    uint32_t i = lsdas_in_section(lsdas, section);
    return i < lsdas->count && lsdas->items[i].section == section &&
           lsdas->items[i].refusal == REFUSAL_NONE;
}
