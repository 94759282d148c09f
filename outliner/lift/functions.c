/* SPDX-License-Identifier: MIT
 *
 * Which ranges of code sections are functions (cut.c decodes them). A function is the range of a
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
    struct function *functions = &lift->program->functions[code->first_function];
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

/* The ranges of a section; none where nothing can be cut. */
static struct span_list spans_of(struct lift *lift, uint32_t code,
                                 const struct symbol_spans *all)
{
    uint32_t section = lift->program->code[code].section;
    struct span *spans = &all->spans[all->first[section]];
    uint32_t count = all->first[section + 1] - all->first[section];
    if (count == 0)
        lift_freeze(lift, code, REFUSAL_NO_FUNCTIONS, 0);
    count = join_spans(spans, count);
    for (uint32_t i = 0; i < count; i++) {
        if (spans[i].refusal != REFUSAL_OVERLAP)
            continue;
        /* Ends may lie in mid-instruction. */
        lift_freeze(lift, code, REFUSAL_OVERLAP, spans[i].start);
        count = 0;
    }
    return (struct span_list){spans, count};
}

void lift_functions(struct lift *lift)
{
    struct program *program = lift->program;
    struct arena *stage = arena_new();
    struct span_list *lists =
        arena_new_array(stage, struct span_list, program->code_count);
    struct symbol_spans all = {0};
    for (uint32_t i = 0; i < program->code_count; i++) {
        if (i == 0 || program->code[i].object != program->code[i - 1].object)
            all = collect_spans(stage, program_object(program, i));
        lists[i] = spans_of(lift, i, &all);
    }
    /* Frozen ones, too: what their relocations mean depends on the instruction. */
    lift_cut(lift, lists);
    for (uint32_t i = 0; i < program->code_count; i++)
        set_alignments(lift, i);
    arena_free(stage);
    for (uint32_t o = 0; o < program->objects->count; o++)
        check_symbols(lift, o);
    keep_by_wish(lift);
}
