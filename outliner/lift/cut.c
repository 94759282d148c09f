/* SPDX-License-Identifier: MIT
 *
 * Cuts code sections into functions and decodes them, where it is known which ranges
 * symbols describe. What lies between two is either padding (no-ops only) or a gap.
 *
 * Every part of the ranges has a place in the program's arrays that should do for it;
 * when all are decoded they are moved together. So the result is the same for any
 * number of workers.
 */
#include "outliner/lift/lift.h"

#include <string.h>

/* Ranges of one section that follow each other. */
struct run {
    const struct span *spans;
    uint32_t code; /* code index */
    uint32_t count;
    uint32_t start;          /* the gap before the first one begins here */
    uint32_t end;            /* and the one behind the last one ends here */
    uint32_t function_count; /* that come of it */
};

/* Runs that follow each other, and what comes of them: numbered from 0 on. */
struct part {
    uint32_t first_run, run_count;
    struct arena
        *arena; /* of the arrays when they outgrow their places: the worker's */
    array_of(struct function) functions;
    array_of(struct insn) insns;
    const struct insn *place;          /* where its instructions are if they did not */
    uint32_t function_base, insn_base; /* the numbers of the first ones */
};

struct cutter {
    struct lift *lift;
    struct arena *stage;
    struct decoder *decoder;
    struct arena **arenas; /* by worker */
    array_of(struct run) runs;
    array_of(struct part) parts;
};

/* What one call works with. */
struct cut {
    const struct program *program;
    const struct section *section;
    struct decoder *decoder;
    struct part *out;
    uint32_t code;
};

/* Decodes [start, end); false, with nothing added, when the bytes do not decode
 * exactly. *only_nops says whether it was all padding. */
static bool decode_range(const struct cut *cut, uint32_t start, uint32_t end,
                         bool *only_nops)
{
    struct part *out = cut->out;
    uint32_t first = out->insns.count;
    *only_nops = true;
    if (start % cut->program->target->code_align)
        return false;
    for (uint32_t at = start; at < end;) {
        struct insn insn = {0};
        if (!decoder_decode(cut->decoder, cut->section->data.at + at, end - at, at,
                            &insn) ||
            insn.length == 0 || insn.length > end - at) {
            out->insns.count = first;
            return false;
        }
        if (!(insn.traits & INSN_NOP))
            *only_nops = false;
        insn.function = out->functions.count; /* the one that this makes */
        array_push(out->arena, &out->insns, insn);
        at += insn.length;
    }
    return true;
}

static void add_function(const struct cut *cut, const struct span *span)
{
    struct part *out = cut->out;
    struct function function = {.code = cut->code,
                                .symbol = span->symbol,
                                .start = span->start,
                                .end = span->end,
                                .fde = NO_INDEX,
                                .refusal = span->refusal,
                                .why_offset = span->start,
                                .first_insn = out->insns.count};
    bool only_nops;
    bool decodes = decode_range(cut, span->start, span->end, &only_nops);
    bool gap = span->symbol == NO_INDEX;
    if (gap || !decodes) /* tables lie in gaps, and may decode by chance */
        out->insns.count = function.first_insn;
    if (gap && decodes && only_nops)
        return; /* padding */
    function.opaque = gap || !decodes;
    if (!decodes && !gap)
        function.refusal = REFUSAL_UNDECODABLE;
    function.insn_count = out->insns.count - function.first_insn;
    array_push(out->arena, &out->functions, function);
}

static void add_gap(const struct cut *cut, uint32_t start, uint32_t end)
{
    struct span gap = {start, end, NO_INDEX, REFUSAL_NO_SYMBOL};
    if (start < end)
        add_function(cut, &gap);
}

static void cut_run(struct cut *cut, struct run *run)
{
    uint32_t before = cut->out->functions.count, at = run->start;
    cut->code = run->code;
    cut->section = program_section(cut->program, run->code);
    for (uint32_t i = 0; i < run->count; i++) {
        add_gap(cut, at, run->spans[i].start);
        add_function(cut, &run->spans[i]);
        at = run->spans[i].end;
    }
    add_gap(cut, at, run->end);
    run->function_count = cut->out->functions.count - before;
}

/* Instructions that the ranges can hold, or are likely to where these have any length.
 */
static uint32_t likely_insns(const struct cutter *cutter, const struct part *part)
{
    enum { LIKELY_LENGTH = 3 }; /* bytes; x86-64 code has 3.5 to 4.5 */
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < part->run_count; i++) {
        const struct run *run = &cutter->runs.items[part->first_run + i];
        bytes += run->end - run->start;
    }
    uint32_t align = cutter->lift->program->target->code_align;
    uint64_t count = bytes / (align > 1 ? align : LIKELY_LENGTH) + 1;
    return count < NO_INDEX ? (uint32_t)count : 0;
}

static void place_parts(struct cutter *cutter)
{
    uint64_t sum = 0;
    for (uint32_t p = 0; p < cutter->parts.count; p++) {
        struct part *part = &cutter->parts.items[p];
        part->insns.capacity = likely_insns(cutter, part);
        sum += part->insns.capacity;
    }
    struct insn *insns =
        sum < NO_INDEX ? array_room(cutter->lift->arena, (uint32_t)sum, sizeof *insns)
                       : NULL;
    cutter->lift->program->insns = insns;
    for (uint32_t p = 0; p < cutter->parts.count; p++) {
        struct part *part = &cutter->parts.items[p];
        part->place = part->insns.items = insns;
        part->insns.capacity = insns ? part->insns.capacity : 0;
        insns += part->insns.capacity;
    }
}

static void cut_part(void *context, uint32_t number, uint32_t worker)
{
    struct cutter *cutter = context;
    struct part *part = &cutter->parts.items[number];
    struct cut cut = {
        .program = cutter->lift->program, .decoder = cutter->decoder, .out = part};
    part->arena = cutter->arenas[worker];
    for (uint32_t i = 0; i < part->run_count; i++)
        cut_run(&cut, &cutter->runs.items[part->first_run + i]);
}

/* --- who does what --- */

enum { PART_BYTES = 64 * 1024 }; /* of code */

static void add_run(struct cutter *cutter, const struct run *run, bool new_part)
{
    if (new_part) {
        struct part part = {.first_run = cutter->runs.count};
        array_push(cutter->stage, &cutter->parts, part);
    }
    array_push(cutter->stage, &cutter->runs, *run);
    cutter->parts.items[cutter->parts.count - 1].run_count++;
}

/* Cuts the ranges of a section into runs. `room` is what the last part still takes. */
static void make_runs(struct cutter *cutter, uint32_t code,
                      const struct span_list *list, uint64_t *room)
{
    uint32_t size = (uint32_t)program_section(cutter->lift->program, code)->data.size;
    struct run run = {.spans = list->items, .code = code};
    bool new_part = *room == 0;
    if (new_part)
        *room = PART_BYTES;
    for (uint32_t i = 0; i < list->count; i++) {
        bool last = i + 1 == list->count;
        uint32_t end = last ? size : list->items[i].end;
        uint32_t bytes = end - (i ? list->items[i - 1].end : 0);
        run.count++;
        run.end = end;
        *room = bytes < *room ? *room - bytes : 0;
        if (!last && (*room > 0 || cutter->lift->program->workers < 2))
            continue;
        add_run(cutter, &run, new_part);
        if (last)
            break;
        run = (struct run){&list->items[i + 1], code, 0, end, 0, 0};
        new_part = true;
        *room = PART_BYTES;
    }
    if (cutter->lift->program->workers < 2)
        *room = PART_BYTES;
}

/* --- putting it together --- */

static void number_sections(struct cutter *cutter, const struct span_list *lists)
{
    struct program *program = cutter->lift->program;
    uint32_t functions = 0, run = 0;
    for (uint32_t c = 0; c < program->code_count; c++) {
        struct code *code = &program->code[c];
        code->first_function = functions;
        for (; lists[c].count && run < cutter->runs.count &&
               cutter->runs.items[run].code == c;
             run++)
            functions += cutter->runs.items[run].function_count;
        code->function_count = functions - code->first_function;
    }
    uint32_t insns = 0;
    functions = 0;
    for (uint32_t p = 0; p < cutter->parts.count; p++) {
        struct part *part = &cutter->parts.items[p];
        part->function_base = functions;
        part->insn_base = insns;
        functions += part->functions.count;
        insns += part->insns.count;
    }
    program->function_count = functions;
    program->insn_count = insns;
}

static bool is_in_place(const struct part *part)
{
    return part->place && part->insns.items == part->place;
}

/* Each part to its place among the others; those in front of it have made room. Where
 * one has outgrown its own, all go to new ones. */
static void move_insns(struct cutter *cutter)
{
    struct program *program = cutter->lift->program;
    bool in_place = true;
    for (uint32_t p = 0; p < cutter->parts.count; p++)
        in_place &= is_in_place(&cutter->parts.items[p]);
    if (!in_place)
        program->insns = array_room(cutter->lift->arena, program->insn_count,
                                    sizeof *program->insns);
    for (uint32_t p = 0; p < cutter->parts.count; p++) {
        const struct part *part = &cutter->parts.items[p];
        if (part->insns.count)
            memmove(program->insns + part->insn_base, part->insns.items,
                    part->insns.count * sizeof *program->insns);
    }
}

/* They have been numbered from 0 on. */
static void renumber_part(void *context, uint32_t number, uint32_t worker)
{
    const struct cutter *cutter = context;
    const struct part *part = &cutter->parts.items[number];
    struct program *program = cutter->lift->program;
    (void)worker;
    for (uint32_t i = 0; i < part->functions.count; i++) {
        struct function *function = &program->functions[part->function_base + i];
        *function = part->functions.items[i];
        function->first_insn += part->insn_base;
    }
    for (uint32_t i = 0; i < part->insns.count; i++)
        program->insns[part->insn_base + i].function += part->function_base;
}

static void put_together(struct cutter *cutter)
{
    struct program *program = cutter->lift->program;
    program->functions = array_room(cutter->lift->arena, program->function_count,
                                    sizeof *program->functions);
    move_insns(cutter);
    parallel_do(program->workers, cutter->parts.count, renumber_part, cutter);
}

/* Functions around a place are asked for again and again. */
static void index_functions(struct arena *arena, struct program *program)
{
    uint32_t room = 0;
    for (uint32_t c = 0; c < program->code_count; c++) {
        struct code *code = &program->code[c];
        uint64_t size = program_section(program, c)->data.size;
        code->near_count = code->function_count ? (uint32_t)(size / NEAR_BYTES) + 2 : 0;
        room += code->near_count;
    }
    uint32_t *near = array_room(arena, room, sizeof *near);
    for (uint32_t c = 0; c < program->code_count; c++) {
        struct code *code = &program->code[c];
        uint32_t at = code->first_function, end = at + code->function_count;
        code->near = near;
        for (uint64_t piece = 0; piece < code->near_count; piece++) {
            while (at < end && program->functions[at].end <= piece * NEAR_BYTES)
                at++;
            *near++ = at;
        }
    }
}

void lift_cut(struct lift *lift, const struct span_list *lists)
{
    struct program *program = lift->program;
    struct cutter cutter = {.lift = lift, .stage = arena_new()};
    uint64_t room = 0, bytes = 0;
    cutter.decoder = lift->options->decoder;
    if (!cutter.decoder)
        cutter.decoder = decoder_new(cutter.stage, program->target);
    for (uint32_t c = 0; c < program->code_count; c++) {
        if (lists[c].count)
            make_runs(&cutter, c, &lists[c], &room);
        bytes += program_section(program, c)->data.size;
    }
    place_parts(&cutter);
    cutter.arenas = parallel_arenas(cutter.stage, program->workers);
    decoder_expect(cutter.decoder, bytes, 0);
    parallel_do(program->workers, cutter.parts.count, cut_part, &cutter);
    number_sections(&cutter, lists);
    put_together(&cutter);
    index_functions(lift->arena, program);
    parallel_adopt(cutter.stage, cutter.arenas, program->workers);
    arena_free(cutter.stage);
}
