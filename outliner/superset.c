/* SPDX-License-Identifier: MIT
 *
 * Hand-written assembly keeps tables among its code, and where no mapping symbols tell
 * one from the other (x86-64) nothing says which bytes are instructions. Moving such
 * bytes as a block keeps every distance inside of them. What it could break is a
 * reference from the block to code around it, which the assembler has resolved: to be
 * sure of those, every offset is decoded.
 *
 * Most of what that finds in data is no code, and some of it can be told: code goes on.
 * An offset may be code only if it decodes, what it jumps to or calls is code, too, and
 * so is the instruction behind it, unless control never gets there. (Behind a call it
 * may not: callees need not return.) Taking away offsets until nothing changes
 * leaves all that is code for certain, and a few that are not, which do no harm: they
 * only keep a distance that nobody needs.
 */
#include "mo/superset.h"

struct
try {
    uint32_t target;         /* of its PC-relative field, or NO_INDEX */
    uint8_t length;          /* 0: cannot be code */
    bool goes_on, transfers; /* its target must be code, then */
};

struct scan {
    const struct superset_range *range;
    struct try *tries; /* by offset in the range */
    uint32_t step;
};

static bool is_inside(const struct superset_range *range, uint32_t offset)
{
    return offset >= range->start && offset < range->end;
}

static struct try try_at(struct decoder *decoder, const struct superset_range *range,
                         uint32_t offset)
{
    const struct bytes *data = &range->section->data;
    struct insn insn = {0};
    struct try none = {.length = 0};
    if (!decoder_try(decoder, data->at + offset, data->size - offset, offset, &insn))
        return none;
    const struct section *section = range->section;
    uint32_t reloc = section_reloc_at(section, offset);
    bool relocated = reloc < section->reloc_count &&
                     section->relocs[reloc].offset < (uint64_t)offset + insn.length;
    bool goes_on = insn.flow == FLOW_NEXT || insn.flow == FLOW_BRANCH;
    bool relative = insn.traits & INSN_PC_RELATIVE;
    bool transfers =
        insn.flow == FLOW_JUMP || insn.flow == FLOW_BRANCH || insn.flow == FLOW_CALL;
    if (relocated && transfers) /* the relocation says where it goes */
        return (struct try){NO_INDEX, insn.length, goes_on, false};
    return (struct try){relative ? insn.target : NO_INDEX, insn.length, goes_on,
                        transfers};
}

/* Code may go on there, or mean it. */
static bool is_possible(const struct scan *scan, uint32_t offset)
{
    const struct superset_range *range = scan->range;
    if (is_inside(range, offset))
        return scan->tries[offset - range->start].length != 0;
    return range->is_place(range->context, offset);
}

static bool holds(const struct scan *scan, uint32_t offset)
{
    const struct try *at = &scan->tries[offset - scan->range->start];
    uint32_t next = offset + at->length;
    if (at->goes_on && next < scan->range->end && !is_possible(scan, next))
        return false;
    /* Addresses may be biased: "table - 128" lies anywhere. */
    return !at->transfers || (at->target != NO_INDEX && is_possible(scan, at->target));
}

static void take_away(const struct scan *scan)
{
    const struct superset_range *range = scan->range;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = range->end - range->start; i-- > 0;) {
            if (scan->tries[i].length == 0 || holds(scan, range->start + i))
                continue;
            scan->tries[i].length = 0;
            changed = true;
        }
    }
}

struct superset superset_of(struct arena *arena, struct decoder *decoder,
                            const struct target *target,
                            const struct superset_range *range)
{
    struct superset out = {0};
    struct arena *stage = arena_new();
    struct scan scan = {
        range, arena_new_array(stage, struct try, range->end - range->start + 1),
        target->code_align};
    uint32_t first = (uint32_t)align_up(range->start, scan.step);
    for (uint32_t at = first; at < range->end; at += scan.step)
        scan.tries[at - range->start] = try_at(decoder, range, at);
    take_away(&scan);
    for (uint32_t at = first; at < range->end; at += scan.step) {
        const struct try *try = &scan.tries[at - range->start];
        if (try->length == 0 || try->target >= range->section->data.size ||
            is_inside(range, try->target))
            continue;
        struct superset_reference reference = {at, try->target};
        array_push(arena, &out.references, reference);
    }
    arena_free(stage);
    return out;
}
