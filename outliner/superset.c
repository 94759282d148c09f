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

/* What stands at an offset, of which nobody knows whether it is code. */
static struct attempt attempt_at(struct decoder *decoder,
                                 const struct superset_range *range, uint32_t offset)
{
    const struct bytes *data = &range->section->data;
    struct insn insn = {0};
    if (!decoder_try(decoder, data->at + offset, data->size - offset, offset, &insn))
        return (struct attempt){.length = 0};
    bool relative = (insn.traits & INSN_PC_RELATIVE) != 0 && insn.target != NO_INDEX;
    return (struct attempt){
        .distance = relative ? (int64_t)insn.target - offset : 0,
        .length = insn.length,
        .flow = insn.flow,
        .relative = relative,
    };
}

static uint32_t target_of_attempt(const struct attempt *attempt, uint32_t offset)
{
    int64_t target = (int64_t)offset + attempt->distance;
    return attempt->relative && target >= 0 && target < (int64_t)NO_INDEX
               ? (uint32_t)target
               : NO_INDEX;
}

static struct try try_of(const struct superset_range *range, uint32_t offset,
                         const struct attempt *attempt)
{
    uint8_t flow = attempt->flow, length = attempt->length;
    if (length == 0)
        return (struct try){.length = 0};
    const struct section *section = range->section;
    uint32_t reloc = section_reloc_at(section, offset);
    bool relocated = reloc < section->reloc_count &&
                     section->relocs[reloc].offset < (uint64_t)offset + length;
    bool goes_on = flow == FLOW_NEXT || flow == FLOW_BRANCH;
    bool transfers = flow == FLOW_JUMP || flow == FLOW_BRANCH || flow == FLOW_CALL;
    if (relocated && transfers) /* the relocation says where it goes */
        return (struct try){NO_INDEX, length, goes_on, false};
    return (struct try){target_of_attempt(attempt, offset), length, goes_on, transfers};
}

/* The same bytes are looked at in every round and by the checker. What stands behind
 * them changes, so the last few are tried anew. */
static void try_all(const struct scan *scan, struct decoder *decoder, uint32_t first)
{
    const struct superset_range *range = scan->range;
    uint32_t end = range->end - range->start > MOST_INSN_BYTES
                       ? range->end - MOST_INSN_BYTES
                       : range->start;
    const struct attempt *attempts =
        decoder_try_all(decoder, range->section->data, range->start, end);
    for (uint32_t at = first; at < range->end; at += scan->step) {
        struct attempt attempt = attempts && at < end ? attempts[at - range->start]
                                                      : attempt_at(decoder, range, at);
        scan->tries[at - range->start] = try_of(range, at, &attempt);
    }
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
    try_all(&scan, decoder, first);
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
