/* SPDX-License-Identifier: MIT
 *
 * Cuts every code section into functions and decodes them. A function is the range of a
 * sized FUNC symbol with its aliases; what lies between two is either padding (no-ops
 * only, made anew when the section is laid out again) or a gap: code that no symbol
 * describes, kept as a sealed function of its own.
 *
 * Alignment. A section only states its strictest alignment, and no object says what
 * each function needs. All functions of a section keep the largest power of two that
 * divides every function's start: where a compiler aligned all of them, they stay
 * aligned, and where it packed them, they stay packed. Each keeps the target's least
 * alignment if it had it (bit 0 of a C++ member function's address tells virtual ones).
 */
#include "mo/table.h"
#include "outliner/lift/lift.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

struct span {
    uint32_t start, end, symbol;
    enum refusal refusal;
};

struct cutter {
    struct lift *lift;
    uint32_t code; /* code index */
    const struct object *object;
    const struct section *section;
    const struct span *spans; /* sorted, disjoint */
    uint32_t span_count;
    struct decoder *decoder;
};

static int by_start(const void *left, const void *right)
{
    const struct span *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    if (a->end != b->end)
        return a->end > b->end ? -1 : 1;
    return a->symbol < b->symbol ? -1 : a->symbol > b->symbol;
}

static bool is_function_symbol(const struct symbol *symbol)
{
    return (symbol->type == STT_FUNC || symbol->type == STT_GNU_IFUNC) &&
           symbol->size > 0;
}

/* Sorts the spans and joins those that overlap: aliases silently, others as a reason to
 * freeze. Returns how many are left. */
static uint32_t join_spans(struct span *spans, uint32_t count)
{
    if (count == 0)
        return 0;
    qsort(spans, count, sizeof *spans, by_start);
    uint32_t kept = 0;
    for (uint32_t i = 1; i < count; i++) {
        struct span *last = &spans[kept];
        if (spans[i].start >= last->end) {
            spans[++kept] = spans[i];
            continue;
        }
        bool alias = spans[i].start == last->start && spans[i].end == last->end;
        if (!alias)
            last->refusal = REFUSAL_OVERLAP;
        if (spans[i].end > last->end)
            last->end = spans[i].end;
    }
    return kept + 1;
}

static uint32_t low_bit(uint64_t value, uint64_t limit)
{
    uint64_t bit = value ? value & (~value + 1) : limit;
    return (uint32_t)(bit < limit ? bit : limit);
}

/* Sections of code have this alignment when nothing in them asks for more. */
enum { DEFAULT_ALIGN = 4 };

static void set_alignments(struct lift *lift, uint32_t number)
{
    struct code *code = &lift->program->code[number];
    uint64_t limit = program_section(lift->program, number)->align;
    uint32_t least = lift->program->target->function_align;
    uint32_t common = limit > 4096 ? 4096 : (uint32_t)limit;
    code->align = common;
    if (code->function_count == 0)
        return;
    struct function *functions = &lift->functions.items[code->first_function];
    for (uint32_t i = 0; i < code->function_count; i++) {
        if (functions[i].symbol != NO_INDEX)
            common = low_bit(functions[i].start, common);
    }
    code->align = common;
    bool pack = limit <= DEFAULT_ALIGN || lift->options->drop_alignment;
    uint32_t keep = pack ? common : (uint32_t)limit;
    for (uint32_t i = 0; i < code->function_count; i++) {
        struct function *function = &functions[i];
        function->align = low_bit(function->start, keep > least ? keep : least);
        if (function->symbol == NO_INDEX) /* begins with padding, if anything */
            function->align = lift->program->target->code_align;
    }
}

/* Decodes [start, end); false, with nothing added, when the bytes do not decode
 * exactly. *only_nops says whether it was all padding. */
static bool decode_range(const struct cutter *cutter, uint32_t start, uint32_t end,
                         bool *only_nops)
{
    struct lift *lift = cutter->lift;
    uint32_t first = lift->insns.count;
    *only_nops = true;
    if (start % lift->program->target->code_align)
        return false;
    for (uint32_t at = start; at < end;) {
        struct insn insn = {0};
        if (!decoder_decode(cutter->decoder, cutter->section->data.at + at, end - at,
                            at, &insn) ||
            insn.length == 0 || insn.length > end - at) {
            lift->insns.count = first;
            return false;
        }
        if (!(insn.traits & INSN_NOP))
            *only_nops = false;
        insn.function = lift->functions.count; /* the one that this makes */
        array_push(lift->arena, &lift->insns, insn);
        at += insn.length;
    }
    return true;
}

static bool add_function(const struct cutter *cutter, const struct span *span)
{
    struct lift *lift = cutter->lift;
    struct function function = {.code = cutter->code,
                                .symbol = span->symbol,
                                .start = span->start,
                                .end = span->end,
                                .fde = NO_INDEX,
                                .refusal = span->refusal,
                                .why_offset = span->start,
                                .first_insn = lift->insns.count};
    bool only_nops;
    if (span->refusal == REFUSAL_OVERLAP) { /* ends may lie in mid-instruction */
        lift_freeze(lift, cutter->code, span->refusal, span->start);
        return false;
    }
    bool decodes = decode_range(cutter, span->start, span->end, &only_nops);
    bool gap = span->symbol == NO_INDEX;
    if (gap || !decodes) /* tables lie in gaps, and may decode by chance */
        lift->insns.count = function.first_insn;
    if (gap && decodes && only_nops)
        return true; /* padding */
    function.opaque = gap || !decodes;
    if (!decodes && !gap)
        function.refusal = REFUSAL_UNDECODABLE;
    function.insn_count = lift->insns.count - function.first_insn;
    array_push(lift->arena, &lift->functions, function);
    return true;
}

static bool add_gap(const struct cutter *cutter, uint32_t start, uint32_t end)
{
    struct span gap = {start, end, NO_INDEX, REFUSAL_NO_SYMBOL};
    return start >= end || add_function(cutter, &gap);
}

static void cut(const struct cutter *cutter)
{
    struct lift *lift = cutter->lift;
    struct code *code = &lift->program->code[cutter->code];
    uint32_t first_insn = lift->insns.count, at = 0;
    bool good = true;
    code->first_function = lift->functions.count;
    for (uint32_t i = 0; good && i < cutter->span_count; i++) {
        good = add_gap(cutter, at, cutter->spans[i].start) &&
               add_function(cutter, &cutter->spans[i]);
        at = cutter->spans[i].end;
    }
    good = good && add_gap(cutter, at, (uint32_t)cutter->section->data.size);
    if (!good) {
        lift->functions.count = code->first_function;
        lift->insns.count = first_insn;
    }
    code->function_count = lift->functions.count - code->first_function;
    set_alignments(lift, cutter->code);
}

/* Symbols in the middle of a function seal it: something may enter there that nobody
 * sees. Mapping symbols of code say nothing here; where data lies, no byte counts as an
 * instruction. */
static bool is_mapping_symbol(const struct symbol *symbol, char kind)
{
    return symbol->name[0] == '$' && symbol->name[1] == kind &&
           (symbol->name[2] == '\0' || symbol->name[2] == '.') &&
           symbol->bind == STB_LOCAL;
}

void lift_make_opaque(struct lift *lift, uint32_t number, enum refusal why,
                      uint64_t offset)
{
    struct function *function = &lift->program->functions[number];
    lift_seal(lift, number, why, offset);
    function->opaque = true;
    function->insn_count = 0;
}

static void check_symbol(struct lift *lift, uint32_t code, const struct symbol *symbol)
{
    if (symbol->type == STT_SECTION)
        return;
    bool data = symbol->type == STT_OBJECT || is_mapping_symbol(symbol, 'd');
    if (is_mapping_symbol(symbol, 'x'))
        return;
    uint32_t number = program_function_at(lift->program, code, (uint32_t)symbol->value);
    if (data && number != NO_INDEX)
        lift_make_opaque(lift, number, REFUSAL_DATA_IN_CODE, symbol->value);
    else if (data && symbol->value < program_section(lift->program, code)->data.size)
        lift_freeze(lift, code, REFUSAL_REFERENCE_INTO_SECTION, symbol->value);
    if (data || number == NO_INDEX)
        return;
    const struct function *function = &lift->program->functions[number];
    if (symbol->value != function->start)
        lift_seal(lift, number, REFUSAL_SYMBOL_INSIDE, symbol->value);
}

static void check_symbols(struct lift *lift, uint32_t object)
{
    const struct object *of = lift->program->objects->items[object];
    for (uint32_t i = 1; i < of->symbol_count; i++) {
        const struct symbol *symbol = &of->symbols[i];
        if (symbol->section == SECTION_UNDEFINED ||
            symbol->section >= of->section_count)
            continue;
        uint32_t code = program_code_of(lift->program, object, symbol->section);
        if (code != NO_INDEX)
            check_symbol(lift, code, symbol);
    }
}

/* With or without the folders that lead to it. */
static bool keeps_unit(const struct lift_options *options, const char *unit)
{
    const char *slash = strrchr(unit, '/');
    return lift_matches(options->keep_files, options->keep_file_count, unit) ||
           lift_matches(options->keep_files, options->keep_file_count,
                        slash ? slash + 1 : unit);
}

/* .text.hot, .text.hot.NAME: where compilers put what a profile has shown them. */
static bool is_hot_section(const char *name)
{
    static const char hot[] = ".text.hot";
    size_t size = sizeof hot - 1;
    return strncmp(name, hot, size) == 0 && (name[size] == '\0' || name[size] == '.');
}

/* (Parts of a function, as .cold and .part.0, have names of their own.) */
static bool is_hot_name(const struct table *hot, const char *name)
{
    return hot && table_find_string(hot, name) != NO_INDEX;
}

static enum refusal wish_of(const struct lift *lift, uint32_t number)
{
    const struct lift_options *options = lift->options;
    const struct program *program = lift->program;
    const struct code *code = &program->code[program->functions[number].code];
    const struct object *object = program->objects->items[code->object];
    const char *name = program_function_name(program, number);
    if (lift_matches(options->keep, options->keep_count, name) ||
        (options->keep_file_count &&
         keeps_unit(options, section_unit(object, code->section))) ||
        (options->only_count && !code->helpers && /* of an earlier round */
         !lift_matches(options->only, options->only_count, name)))
        return REFUSAL_KEEP;
    if (is_hot_name(options->hot, name) ||
        (!options->outline_hot && is_hot_section(object->sections[code->section].name)))
        return REFUSAL_HOT;
    return REFUSAL_NONE;
}

static void keep_by_wish(struct lift *lift)
{
    const struct program *program = lift->program;
    for (uint32_t i = 0; i < program->function_count; i++) {
        enum refusal why = wish_of(lift, i);
        if (why != REFUSAL_NONE)
            lift_seal(lift, i, why, program->functions[i].start);
    }
}

/* The sized FUNC symbols of one object, by code section: counted, then laid side by
 * side, so that the work is linear in symbols and sections. */
struct symbol_spans {
    struct span *spans;
    uint32_t *first; /* by section index; section_count + 1 of them */
};

static struct symbol_spans collect_spans(struct arena *arena,
                                         const struct object *object)
{
    struct symbol_spans all = {
        .first = arena_new_array(arena, uint32_t, object->section_count + 2u)};
    uint32_t total = 0;
    for (uint32_t i = 1; i < object->symbol_count; i++) {
        const struct symbol *symbol = &object->symbols[i];
        if (is_function_symbol(symbol) && symbol->section < object->section_count) {
            all.first[symbol->section + 2]++;
            total++;
        }
    }
    for (uint32_t s = 2; s < object->section_count + 2u; s++)
        all.first[s] += all.first[s - 1];
    all.spans = arena_new_array(arena, struct span, total);
    for (uint32_t i = 1; i < object->symbol_count; i++) {
        const struct symbol *symbol = &object->symbols[i];
        if (!is_function_symbol(symbol) || symbol->section >= object->section_count)
            continue;
        all.spans[all.first[symbol->section + 1]++] =
            (struct span){(uint32_t)symbol->value,
                          (uint32_t)(symbol->value + symbol->size), i, REFUSAL_NONE};
    }
    return all;
}

/* Instructions that the sections can hold, or are likely to where they have any length.
 */
static void reserve_insns(struct lift *lift)
{
    const struct program *program = lift->program;
    enum { LIKELY_LENGTH = 3 }; /* bytes; x86-64 code has 3.5 to 4.5 */
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < program->code_count; i++)
        bytes += program_section(program, i)->data.size;
    uint32_t align = program->target->code_align;
    uint64_t count = bytes / (align > 1 ? align : LIKELY_LENGTH) + 1;
    if (count < NO_INDEX)
        array_reserve(lift->arena, &lift->insns, (uint32_t)count);
}

void lift_functions(struct lift *lift)
{
    struct program *program = lift->program;
    reserve_insns(lift);
    struct arena *stage = arena_new();
    struct symbol_spans all = {0};
    struct decoder *decoder = lift->options->decoder;
    if (!decoder)
        decoder = decoder_new(stage, program->target);
    for (uint32_t i = 0; i < program->code_count; i++) {
        struct code *code = &program->code[i];
        const struct object *object = program_object(program, i);
        if (i == 0 || code->object != program->code[i - 1].object)
            all = collect_spans(stage, object);
        struct span *spans = &all.spans[all.first[code->section]];
        uint32_t count = all.first[code->section + 1] - all.first[code->section];
        code->first_function = lift->functions.count;
        /* Frozen ones, too: what their relocations mean depends on the instruction. */
        if (count == 0) {
            lift_freeze(lift, i, REFUSAL_NO_FUNCTIONS, 0);
            continue;
        }
        struct cutter cutter = {lift,   i,
                                object, program_section(program, i),
                                spans,  join_spans(spans, count),
                                decoder};
        cut(&cutter);
    }
    arena_free(stage);
    program->functions = lift->functions.items;
    program->function_count = lift->functions.count;
    program->insns = lift->insns.items;
    program->insn_count = lift->insns.count;
    for (uint32_t o = 0; o < program->objects->count; o++)
        check_symbols(lift, o);
    keep_by_wish(lift);
}
