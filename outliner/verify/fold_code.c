/* SPDX-License-Identifier: MIT
 *
 * Whether functions of a class are the same code. Each is compared with the first of its
 * class, and calls from one and the other may go to different functions of one class:
 * if every such comparison holds, no sequence of calls can tell them apart
 * (bisimulation), so it does not matter that the classes were only said to be right.
 */
#include "outliner/verify/fold.h"

#include <elf.h>
#include <string.h>

/* One function, and what describes it. */
struct body {
    const struct fold_function *function;
    const struct section *section;
    const struct fde *fde;
    const struct lsda *lsda;
    uint32_t first_reloc, reloc_count;
};

static bool body_of(const struct fold_check *check, uint32_t number, struct body *out)
{
    const struct fold_function *function = &check->plan->functions[number];
    *out = (struct body){.function = function,
                         .section = &check->before->sections[function->section]};
    if (function->end <= function->start ||
        function->end > out->section->data.size)
        return false;
    out->first_reloc = section_reloc_at(out->section, function->start);
    out->reloc_count = section_reloc_at(out->section, function->end) - out->first_reloc;
    uint32_t first;
    uint32_t count = frames_find(&check->old_frames, function->section, function->start,
                                 function->end, &first);
    if (count > 1)
        return false;
    if (count == 0)
        return true;
    out->fde = &check->old_frames.fdes[first];
    if (out->fde->refusal != REFUSAL_NONE || out->fde->start != function->start ||
        out->fde->length != function->end - function->start)
        return false;
    if (!out->fde->has_lsda)
        return true;
    uint32_t lsda = check->old_lsdas.of_fde[first];
    out->lsda = lsda == NO_INDEX ? NULL : &check->old_lsdas.items[lsda];
    return out->lsda && out->lsda->refusal == REFUSAL_NONE;
}

/* Contents of a mergeable section from a place on: to the end of a string, or of a
 * constant. Size 0: there are none. */
static struct bytes contents_at(const struct fold_check *check,
                                const struct fold_place *place)
{
    const struct section *of = &check->before->sections[place->section];
    uint64_t unit = of->entry_size ? of->entry_size : 1, size = of->data.size;
    if (!(of->flags & SHF_MERGE) || of->reloc_count || !of->data.at ||
        place->offset < 0 || (uint64_t)place->offset >= size ||
        (uint64_t)place->offset % unit)
        return (struct bytes){0};
    const uint8_t *at = of->data.at + place->offset;
    uint64_t left = size - (uint64_t)place->offset;
    if (!(of->flags & SHF_STRINGS))
        return left >= unit ? (struct bytes){at, unit} : (struct bytes){0};
    for (uint64_t end = 0; end + unit <= left; end += unit) {
        bool zero = true;
        for (uint64_t i = 0; i < unit; i++)
            zero = zero && at[end + i] == 0;
        if (zero)
            return (struct bytes){at, end + unit};
    }
    return (struct bytes){0};
}

/* A place inside of its own function, at the same distance from its start. */
static bool same_inside(const struct body *a, const struct fold_place *at_a,
                        const struct body *b, const struct fold_place *at_b)
{
    const struct fold_function *f = a->function, *g = b->function;
    return at_a->section == f->section && at_b->section == g->section &&
           at_a->offset > f->start && at_a->offset < f->end &&
           at_a->offset - f->start == at_b->offset - g->start;
}

static bool same_callee(const struct fold_check *check, const struct fold_place *a,
                        const struct fold_place *b)
{
    uint32_t f = fold_function_at(check, a->section, a->offset);
    uint32_t g = fold_function_at(check, b->section, b->offset);
    const struct fold_function *all = check->plan->functions;
    return f != NO_INDEX && g != NO_INDEX && all[f].class == all[g].class &&
           a->offset - all[f].start == b->offset - all[g].start;
}

/* Two relocations at the same place of two functions, or of their call-site tables (then
 * without bodies). */
static bool same_meaning(const struct fold_check *check, const struct section *of_a,
                         const struct reloc *a, const struct section *of_b,
                         const struct reloc *b, const struct body *body_a,
                         const struct body *body_b)
{
    const struct object *object = check->before;
    const struct symbol *to_a = &object->symbols[a->symbol];
    const struct symbol *to_b = &object->symbols[b->symbol];
    struct fold_place at_a, at_b;
    if (a->type != b->type)
        return false;
    if (a->symbol == b->symbol && a->addend == b->addend)
        return true;
    if (!fold_place_of(object, of_a, a, &at_a) || !fold_place_of(object, of_b, b, &at_b))
        return false;
    bool local = to_a->bind == STB_LOCAL && to_b->bind == STB_LOCAL;
    if (local && at_a.section == at_b.section && at_a.offset == at_b.offset)
        return true;
    if (body_a && fold_transfers(object, of_a, a) && fold_is_bound(object, to_a) &&
        fold_is_bound(object, to_b) && same_callee(check, &at_a, &at_b))
        return true;
    if (local && body_a && same_inside(body_a, &at_a, body_b, &at_b))
        return true;
    if (!local)
        return false;
    struct bytes s = contents_at(check, &at_a), t = contents_at(check, &at_b);
    return s.size && s.size == t.size && memcmp(s.at, t.at, s.size) == 0 &&
           object->sections[at_a.section].entry_size ==
               object->sections[at_b.section].entry_size;
}

static bool same_code(const struct fold_check *check, const struct body *a,
                      const struct body *b)
{
    uint32_t size = a->function->end - a->function->start;
    if (b->function->end - b->function->start != size ||
        memcmp(a->section->data.at + a->function->start,
               b->section->data.at + b->function->start, size) != 0 ||
        a->reloc_count != b->reloc_count ||
        check->before->units[a->section->unit].features !=
            check->before->units[b->section->unit].features)
        return false;
    for (uint32_t i = 0; i < a->reloc_count; i++) {
        const struct reloc *x = &a->section->relocs[a->first_reloc + i];
        const struct reloc *y = &b->section->relocs[b->first_reloc + i];
        if (x->offset - a->function->start != y->offset - b->function->start ||
            !same_meaning(check, a->section, x, b->section, y, a, b))
            return false;
    }
    return true;
}

static bool same_rows(const struct fold_check *check, const struct body *a,
                      const struct body *b)
{
    if (!a->fde || !b->fde)
        return !a->fde && !b->fde;
    const struct cie *c = &check->old_frames.cies[a->fde->cie];
    const struct cie *d = &check->old_frames.cies[b->fde->cie];
    if (c->signal_frame != d->signal_frame || c->b_key != d->b_key ||
        c->has_personality != d->has_personality || c->personality != d->personality ||
        c->return_column != d->return_column ||
        a->fde->change_count != b->fde->change_count)
        return false;
    for (uint32_t i = 0; i < a->fde->change_count; i++) {
        if (a->fde->changes[i].row != b->fde->changes[i].row ||
            a->fde->changes[i].offset - a->fde->start !=
                b->fde->changes[i].offset - b->fde->start)
            return false;
    }
    return true;
}

/* [start_a, start_a + size) of one table and the same of another. */
static bool same_part(const struct fold_check *check, const struct lsda *a,
                      uint32_t start_a, const struct lsda *b, uint32_t start_b,
                      uint32_t size)
{
    const struct section *s = &check->before->sections[a->section];
    const struct section *t = &check->before->sections[b->section];
    uint32_t i = section_reloc_at(s, start_a), j = section_reloc_at(t, start_b);
    if (memcmp(s->data.at + start_a, t->data.at + start_b, size) != 0)
        return false;
    for (;; i++, j++) {
        bool more_a = i < s->reloc_count && s->relocs[i].offset < start_a + size;
        bool more_b = j < t->reloc_count && t->relocs[j].offset < start_b + size;
        if (!more_a || !more_b)
            return more_a == more_b;
        if (s->relocs[i].offset - start_a != t->relocs[j].offset - start_b ||
            !same_meaning(check, s, &s->relocs[i], t, &t->relocs[j], NULL, NULL))
            return false;
    }
}

static uint32_t relative(uint32_t position, uint32_t start)
{
    return position == NO_INDEX ? NO_INDEX : position - start;
}

static bool same_handlers(const struct fold_check *check, const struct body *a,
                          const struct body *b)
{
    const struct lsda *x = a->lsda, *y = b->lsda;
    if (!x || !y)
        return !x && !y;
    if (x->site_count != y->site_count || x->types_encoding != y->types_encoding ||
        x->type_count != y->type_count ||
        (x->types_end == NO_INDEX) != (y->types_end == NO_INDEX) ||
        x->actions_end - x->actions != y->actions_end - y->actions)
        return false;
    for (uint32_t i = 0; i < x->site_count; i++) {
        const struct call_site *s = &x->sites[i], *t = &y->sites[i];
        uint32_t f = a->function->start, g = b->function->start;
        if (s->start - f != t->start - g || s->end - f != t->end - g ||
            relative(s->pad, f) != relative(t->pad, g) || s->action != t->action)
            return false;
    }
    if (!same_part(check, x, x->actions, y, y->actions, x->actions_end - x->actions))
        return false;
    if (x->types_end == NO_INDEX)
        return true;
    uint32_t types = x->type_count * lsda_type_size(x);
    uint32_t lists = x->lists_end - x->types_end;
    return lists == y->lists_end - y->types_end && types <= x->types_end &&
           same_part(check, x, x->types_end - types, y, y->types_end - types, types) &&
           same_part(check, x, x->types_end, y, y->types_end, lists);
}

/* What lies behind a function is not compared, so it must not be run. A call at the end
 * does not return where a compiler has made, and described, the function. */
static bool ends(const struct insn *last, const struct body *body)
{
    bool call = last->flow == FLOW_CALL || last->flow == FLOW_CALL_INDIRECT;
    return last->flow == FLOW_JUMP || last->flow == FLOW_JUMP_INDIRECT ||
           last->flow == FLOW_RETURN || last->flow == FLOW_STOP || (call && body->fde);
}

/* Distances in it lead nowhere but into it, none is the address of its entry, and it
 * ends in itself. */
static bool is_whole(const struct fold_check *check, const struct body *body)
{
    const struct fold_function *function = body->function;
    uint32_t reloc = body->first_reloc, end = body->first_reloc + body->reloc_count;
    struct insn insn = {.flow = FLOW_NEXT};
    for (uint32_t at = function->start; at < function->end;) {
        if (!check->target->decode(body->section->data.at + at, function->end - at, at,
                                   &insn))
            return false;
        bool related = false;
        while (reloc < end && body->section->relocs[reloc].offset < at + insn.length) {
            related = true;
            reloc++;
        }
        bool transfers = insn.flow == FLOW_JUMP || insn.flow == FLOW_BRANCH ||
                         insn.flow == FLOW_CALL;
        if ((insn.traits & INSN_PC_RELATIVE) && !related &&
            (insn.target < function->start || insn.target >= function->end ||
             (!transfers && insn.target == function->start)))
            return false;
        at += insn.length;
    }
    return ends(&insn, body);
}

bool fold_check_classes(const struct fold_check *check)
{
    const struct fold_plan *plan = check->plan;
    uint32_t classes = 0;
    for (uint32_t i = 0; i < plan->function_count; i++) {
        if (plan->functions[i].class >= classes)
            classes = plan->functions[i].class + 1;
    }
    uint32_t *first = arena_new_array(check->arena, uint32_t, classes);
    for (uint32_t i = 0; i < plan->function_count; i++) {
        const struct fold_function *function = &plan->functions[i];
        uint32_t *leader = &first[function->class];
        if (*leader == 0) {
            *leader = i + 1;
            continue;
        }
        struct body a, b;
        if (!body_of(check, *leader - 1, &a) || !body_of(check, i, &b) ||
            !same_code(check, &a, &b) || !same_rows(check, &a, &b) ||
            !same_handlers(check, &a, &b) || !is_whole(check, &a) || !is_whole(check, &b))
            return fold_fail(check, function->section, function->start,
                             "not the same code as another function of its class");
    }
    return true;
}
