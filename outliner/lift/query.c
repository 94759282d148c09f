/* SPDX-License-Identifier: MIT
 *
 * Questions to the lifted program. All arrays are sorted, so most are binary searches.
 */
#include "mo/program.h"

#include "mo/array.h"

#include <assert.h>
#include <elf.h>

struct stretches program_stretches(struct arena *arena, const struct program *program,
                                   uint32_t insns)
{
    struct stretches out = {0};
    uint32_t room = 0; /* in the one at hand */
    for (uint32_t f = 0; f < program->function_count; f++) {
        if (room == 0) {
            struct stretch stretch = {.first = f};
            array_push(arena, &out, stretch);
            room = insns;
        }
        uint32_t count = program->functions[f].insn_count;
        out.items[out.count - 1].count++;
        room = count < room ? room - count : 0;
    }
    return out;
}

const struct object *program_object(const struct program *program, uint32_t code)
{
    return program->objects->items[program->code[code].object];
}

const struct section *program_section(const struct program *program, uint32_t code)
{
    return &program_object(program, code)->sections[program->code[code].section];
}

uint32_t program_code_of(const struct program *program, uint32_t object,
                         uint32_t section)
{
    if (program->code_of)
        return section < program->objects->items[object]->section_count
                   ? program->code_of[object][section]
                   : NO_INDEX;
    uint32_t low = 0, high = program->code_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct code *code = &program->code[middle];
        bool before = code->object < object ||
                      (code->object == object && code->section < section);
        if (before)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < program->code_count && program->code[low].object == object &&
                 program->code[low].section == section;
    return found ? low : NO_INDEX;
}

uint32_t program_function_at(const struct program *program, uint32_t code,
                             uint32_t offset)
{
    const struct code *in = &program->code[code];
    uint32_t low = in->first_function, high = low + in->function_count;
    uint32_t piece = offset / NEAR_BYTES;
    if (in->function_count > 0 && piece + 1 < in->near_count) {
        low = in->near[piece];
        high = in->near[piece + 1];
    }
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (program->functions[middle].end <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < in->first_function + in->function_count &&
                 program->functions[low].start <= offset;
    return found ? low : NO_INDEX;
}

uint32_t program_insn_at(const struct program *program, uint32_t code, uint32_t offset)
{
    uint32_t function = program_function_at(program, code, offset);
    return function == NO_INDEX ? NO_INDEX : program_insn_in(program, function, offset);
}

uint32_t program_insn_in(const struct program *program, uint32_t number,
                         uint32_t offset)
{
    const struct function *function = &program->functions[number];
    uint32_t low = function->first_insn, high = low + function->insn_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (program->insns[middle].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < function->first_insn + function->insn_count &&
                 program->insns[low].offset == offset;
    return found ? low : NO_INDEX;
}

uint32_t program_insn_around(const struct program *program, uint32_t number,
                             uint32_t offset)
{
    const struct function *function = &program->functions[number];
    uint32_t low = function->first_insn, high = low + function->insn_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct insn *insn = &program->insns[middle];
        if (insn->offset + insn->length <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < function->first_insn + function->insn_count &&
                 program->insns[low].offset <= offset;
    return found ? low : NO_INDEX;
}

uint32_t program_function_of_insn(const struct program *program, uint32_t insn)
{
    return program->insns[insn].function;
}

uint32_t program_block_of_insn(const struct program *program, uint32_t insn)
{
    uint32_t low = 0, high = program->block_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct block *block = &program->blocks[middle];
        if (block->first_insn + block->insn_count <= insn)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < program->block_count && program->blocks[low].first_insn <= insn;
    return found ? low : NO_INDEX;
}

/* The code index of the section that an instruction lies in. */
static uint32_t code_of_insn(const struct program *program, uint32_t insn)
{
    return program->functions[program_function_of_insn(program, insn)].code;
}

const uint8_t *program_bytes(const struct program *program, uint32_t insn)
{
    return program_section(program, code_of_insn(program, insn))->data.at +
           program->insns[insn].offset;
}

const char *program_function_name(const struct program *program, uint32_t function)
{
    const struct function *of = &program->functions[function];
    const struct object *object = program_object(program, of->code);
    return of->symbol == NO_INDEX ? "" : object->symbols[of->symbol].name;
}

const struct jump_table *table_of_insn(const struct program *program, uint32_t insn)
{
    uint32_t low = 0, high = program->table_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (program->tables[middle].insn < insn)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < program->table_count && program->tables[low].insn == insn;
    return found ? &program->tables[low] : NULL;
}

uint32_t table_code(const struct program *program, const struct jump_table *table,
                    uint32_t entry)
{
    return table->codes ? table->codes[entry] : code_of_insn(program, table->insn);
}

uint32_t table_insn(const struct program *program, const struct jump_table *table,
                    uint32_t entry)
{
    uint32_t number = program->insns[table->insn].function;
    uint32_t target = table->targets[entry];
    const struct function *function = &program->functions[number];
    bool inside = table_code(program, table, entry) == function->code &&
                  target >= function->start && target < function->end;
    return inside ? program_insn_in(program, number, target) : NO_INDEX;
}

const struct call_site *insn_call_site(const struct function *function,
                                       const struct insn *insn)
{
    return function->lsda ? lsda_site_at(function->lsda, insn->offset) : NULL;
}

enum guard insn_guard(const struct function *function, const struct insn *insn)
{
    if (!function->lsda)
        return GUARD_NONE;
    const struct call_site *site = insn_call_site(function, insn);
    if (!site)
        return GUARD_GAP;
    return site->pad == NO_INDEX && site->action == 0 ? GUARD_NONE : GUARD_PAD;
}

uint32_t program_relocs(const struct program *program, uint32_t insn, uint32_t *first)
{
    const struct insn *of = &program->insns[insn];
    if (!(of->traits & INSN_RELOCATED))
        return 0;
    const struct section *section =
        program_section(program, code_of_insn(program, insn));
    *first = of->reloc;
    uint32_t count = 0;
    while (*first + count < section->reloc_count &&
           section->relocs[*first + count].offset < (uint64_t)of->offset + of->length)
        count++;
    return count;
}

uint32_t program_row(const struct program *program, uint32_t insn)
{
    const struct function *function =
        &program->functions[program_function_of_insn(program, insn)];
    if (function->fde == NO_INDEX)
        return ROW_NONE;
    const struct frames *frames =
        &program->frames[program->code[function->code].object];
    return fde_row_at(&frames->fdes[function->fde], program->insns[insn].offset);
}

bool program_row_is_stale(const struct program *program, uint32_t insn)
{
    uint32_t number = program_row(program, insn);
    if (number == ROW_NONE)
        return false;
    const struct row *row = row_get(program->rows, number);
    if (row->cfa_is_expression ||
        row->cfa_register != program->target->dwarf_stack_column)
        return false;
    for (uint32_t i = insn; i > 0 && !(program->insns[i].traits & INSN_LEADER) &&
                            program_row(program, i - 1) == number;
         i--) {
        if (program->insns[i - 1].traits & INSN_SP_ADJUST)
            return true;
    }
    return false;
}

struct referent program_referent(const struct object *object, const struct reloc *reloc,
                                 uint8_t bias)
{
    const struct symbol *symbol = &object->symbols[reloc->symbol];
    int64_t added = wrapping_add(reloc->addend, bias);
    bool local = reloc->symbol != 0 && symbol_is_local(symbol) &&
                 symbol->section != SECTION_UNDEFINED &&
                 symbol->section < object->section_count;
    if (local)
        return (struct referent){.local = true,
                                 .section = symbol->section,
                                 .offset = wrapping_add((int64_t)symbol->value, added)};
    return (struct referent){.symbol = reloc->symbol, .addend = added};
}

uint32_t program_insn_of_reloc(const struct program *program, uint32_t code,
                               const struct reloc *reloc)
{
    uint32_t offset = (uint32_t)reloc->offset;
    uint32_t function =
        code == NO_INDEX ? NO_INDEX : program_function_at(program, code, offset);
    return function == NO_INDEX ? NO_INDEX
                                : program_insn_around(program, function, offset);
}

/* An instruction may hold two fields, `cmpq $callback, handler(%rip)`, and only the
 * PC-relative one counts from its end: the kind says which that is. */
uint8_t insn_reloc_bias(const struct program *program, uint32_t insn,
                        const struct reloc *reloc)
{
    const struct reloc_kind *kind = program->target->reloc_kind(reloc->type);
    bool relative = kind && (kind->kind == RELOC_PC || kind->kind == RELOC_CALL ||
                             kind->kind == RELOC_BRANCH || kind->kind == RELOC_GOT);
    return insn != NO_INDEX && relative
               ? program->target->reloc_bias(&program->insns[insn], reloc->offset)
               : 0;
}

struct regset program_live_before(const struct program *program, uint32_t insn,
                                  uint32_t limit)
{
    assert(!program->no_liveness && "nobody said that liveness is wanted");
    uint32_t number = program_block_of_insn(program, insn);
    if (number == NO_INDEX)
        return REGSET_ALL;
    const struct block *block = &program->blocks[number];
    uint32_t end = block->first_insn + block->insn_count;
    if (end - insn > limit)
        return REGSET_ALL;
    struct regset live = block->live_out;
    for (uint32_t i = end; i-- > insn;) {
        struct regset uses, kills;
        insn_effects(program, i, &uses, &kills);
        live.regs = (live.regs & ~kills.regs) | uses.regs;
        live.flags = (uint8_t)((live.flags & ~kills.flags) | uses.flags);
    }
    return live;
}
