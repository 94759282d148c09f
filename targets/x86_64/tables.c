/* SPDX-License-Identifier: MIT
 *
 * Jump tables of gcc, clang and rustc.
 *
 *   position-independent:  lea    T(%rip),%base            T: .long L0 - T, L1 - T, …
 *                          movslq (%base,%index,4),%entry
 *                          add    %base,%entry
 *                          jmp    *%entry
 *   absolute:              jmp    *T(,%index,8)            T: .quad L0, L1, …
 *                          or  mov T(,%index,8),%entry; jmp *%entry, or
 * (%base,%index,8)
 *
 * in any registers and order, other instructions between, the lea hoisted out of a
 * loop, and -O0's way of scaling the index and extending the entry in steps of their
 * own. So we do not match text: starting at the jump we ask which instructions define a
 * register that reaches it (see reach.c), and build the shape from the answers.
 *
 * What an entry means. Assemblers write `.long L - T` as R_X86_64_PC32 against the
 * place of the entry, so the addend is biased: A = L - section + 4 i. One that is read
 * with the wrong i looks well and is wrong: the number of entries and the start of the
 * table matter.
 *
 * How many entries. First from the code: the largest index that a compare or a mask
 * lets through, on every path. Where that cannot be seen (the index lives in memory;
 * the default case is unreachable) the run of relocations says it, up to the next place
 * in that data section that anything refers to. In both cases every entry must have its
 * relocation and land on an instruction of the function that jumps, or of a .cold part
 * in another section (gcc moves unlikely cases there). An entry that we
 * miss costs little: the lifter finds a relocation that nobody explains, and refuses.
 */
#include "reach.h"

#include <elf.h>
#include <string.h>

enum { COPY_LIMIT = 8 };

/* A position in a data section. */
struct address {
    uint32_t section, offset;
};

/* What the code says about its table. */
struct shape {
    struct address table;
    uint8_t kind, entry_size;
    uint32_t load; /* instruction that reads the entry */
    uint8_t index; /* register whose value counts entries there, or NO_REG */
};

/* --- from registers to the table --- */

/* The position that the relocated field at `field` (from the instruction's start)
 * means. */
static bool relocated_address(const struct reach *reach, uint32_t insn, uint8_t field,
                              struct address *out)
{
    uint32_t first = 0, count = program_relocs(reach->program, insn, &first);
    const struct insn *at = &reach->program->insns[insn];
    for (uint32_t i = first; i < first + count; i++) {
        const struct reloc *reloc = &reach->section->relocs[i];
        const struct reloc_kind *kind = x86_64_reloc_kind(reloc->type);
        if (reloc->offset != (uint64_t)at->offset + field || !kind)
            continue;
        if (kind->kind != RELOC_PC && kind->kind != RELOC_ABSOLUTE)
            return false;
        uint8_t bias =
            kind->kind == RELOC_PC ? x86_64_reloc_bias(at, reloc->offset) : 0;
        struct referent to = program_referent(reach->object, reloc, bias);
        if (!to.local || to.offset < 0 || to.offset >= (int64_t)NO_INDEX)
            return false;
        *out = (struct address){to.section, (uint32_t)to.offset};
        return true;
    }
    return false;
}

/* The address that an instruction puts into its register: lea T(%rip), mov $T. */
static bool defined_address(const struct reach *reach, uint32_t insn,
                            struct address *out)
{
    struct view view;
    if (!reach_view(reach, insn, &view))
        return false;
    const ZydisDecodedInstruction *is = &view.parsed.insn;
    if (is->mnemonic == ZYDIS_MNEMONIC_LEA && x86_64_is_rip_memory(is))
        return relocated_address(reach, insn, is->raw.disp.offset, out);
    if (is->mnemonic == ZYDIS_MNEMONIC_MOV &&
        view.operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
        view.operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
        return relocated_address(reach, insn, is->raw.imm[0].offset, out);
    return false;
}

/* Steps from a register to the one that it was copied from, as long as one instruction
 * defines it. Returns that instruction, or NO_INDEX. */
static uint32_t sole_def(struct reach *reach, uint32_t insn, uint8_t reg)
{
    for (uint32_t i = 0; i < COPY_LIMIT; i++) {
        struct defs defs = reach_definitions(reach, insn, reg, false);
        struct view view;
        if (defs.count != 1 || defs.killed || !reach_view(reach, defs.insns[0], &view))
            return NO_INDEX;
        insn = defs.insns[0];
        if (!view_is_copy(&view, &reg))
            return insn;
    }
    return NO_INDEX;
}

/* An entry of some table could be there: a relocation is. */
static bool may_be_table(const struct reach *reach, struct address at)
{
    const struct section *section = &reach->object->sections[at.section];
    uint32_t reloc = section_reloc_at(section, at.offset);
    return reloc < section->reloc_count && section->relocs[reloc].offset == at.offset;
}

/* The table address that all of these definitions give which give one. Others are
 * passed over: most come along edges that do not exist (behind a call that does not
 * return), and a second table hidden there would leave relocations that nobody
 * explains. Returns how many agree; 0 if any two do not. */
static uint32_t agreed_address(struct reach *reach, const struct defs *defs,
                               struct address *out)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < defs->count; i++) {
        struct address one;
        struct view view;
        uint32_t def = defs->insns[i];
        uint8_t source;
        if (!reach_view(reach, def, &view))
            return 0;
        if (view_is_copy(&view, &source))
            def = sole_def(reach, def, source);
        if (def == NO_INDEX || !defined_address(reach, def, &one) ||
            !may_be_table(reach, one))
            continue;
        if (found != 0 && (one.section != out->section || one.offset != out->offset))
            return 0;
        *out = one;
        found++;
    }
    return found;
}

/* The register holds the address of one known place. */
static bool register_address(struct reach *reach, uint32_t insn, uint8_t reg,
                             struct address *out)
{
    struct defs seen = reach_definitions(reach, insn, reg, false);
    if (agreed_address(reach, &seen, out) != 0)
        return true;
    struct defs all = reach_definitions(reach, insn, reg, true);
    return agreed_address(reach, &all, out) != 0;
}

/* The table that a memory operand reads an entry of. */
static bool memory_table(struct reach *reach, const struct view *view,
                         const ZydisDecodedOperand *operand, struct shape *out)
{
    const ZydisDecodedOperandMem *mem = &operand->mem;
    const ZydisDecodedInstruction *is = &view->parsed.insn;
    uint8_t base = view_register(mem->base), index = view_register(mem->index);
    out->load = view->insn;
    out->index = index;
    if (mem->base == ZYDIS_REGISTER_RIP) /* a constant index; not a pointer in memory */
        return out->kind == TABLE_RELOC_RELATIVE &&
               relocated_address(reach, view->insn, is->raw.disp.offset, &out->table);
    if (index == NO_REG || mem->segment == ZYDIS_REGISTER_FS ||
        mem->segment == ZYDIS_REGISTER_GS)
        return false;
    if (mem->base == ZYDIS_REGISTER_NONE)
        return mem->scale == out->entry_size &&
               relocated_address(reach, view->insn, is->raw.disp.offset, &out->table);
    if (base == NO_REG || mem->disp.value != 0 ||
        (reach->program->insns[view->insn].traits & INSN_RELOCATED))
        return false;
    if (mem->scale == out->entry_size)
        return register_address(reach, view->insn, base, &out->table);
    out->index = NO_REG; /* was scaled before */
    return mem->scale == 1 && (register_address(reach, view->insn, base, &out->table) ||
                               register_address(reach, view->insn, index, &out->table));
}

static bool is_memory(const ZydisDecodedOperand *operand, uint16_t bits)
{
    return operand->type == ZYDIS_OPERAND_TYPE_MEMORY && operand->size == bits;
}

/* The instruction that loads the entry which `reg` holds, sign-extended to 64 bits. */
static bool find_entry_load(struct reach *reach, uint32_t insn, uint8_t reg,
                            struct view *view)
{
    uint32_t def = sole_def(reach, insn, reg);
    if (def == NO_INDEX || !reach_view(reach, def, view))
        return false;
    ZydisMnemonic mnemonic = view->parsed.insn.mnemonic;
    if (mnemonic == ZYDIS_MNEMONIC_MOVSXD && is_memory(&view->operands[1], 32))
        return true;
    if (mnemonic == ZYDIS_MNEMONIC_CDQE)
        reg = BIT_RAX;
    else if (mnemonic == ZYDIS_MNEMONIC_MOVSXD)
        reg = view_register(view->operands[1].reg.value);
    else
        return false;
    def = reg == NO_REG ? NO_INDEX : sole_def(reach, def, reg);
    return def != NO_INDEX && reach_view(reach, def, view) &&
           view->parsed.insn.mnemonic == ZYDIS_MNEMONIC_MOV &&
           is_memory(&view->operands[1], 32);
}

static bool match_relative(struct reach *reach, uint32_t sum, uint8_t base,
                           uint8_t entry, struct shape *out)
{
    struct address from;
    struct view load;
    *out = (struct shape){.kind = TABLE_RELOC_RELATIVE, .entry_size = 4};
    return base != NO_REG && entry != NO_REG &&
           find_entry_load(reach, sum, entry, &load) &&
           register_address(reach, sum, base, &from) &&
           memory_table(reach, &load, &load.operands[1], out) &&
           from.section == out->table.section && from.offset == out->table.offset;
}

/* The two registers whose sum an instruction makes. */
static bool view_is_sum(const struct view *view, uint8_t *a, uint8_t *b)
{
    const ZydisDecodedOperand *operands = view->operands;
    if (view->parsed.insn.operand_width != 64)
        return false;
    if (view->parsed.insn.mnemonic == ZYDIS_MNEMONIC_ADD &&
        operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
        operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER) {
        *a = view_register(operands[0].reg.value);
        *b = view_register(operands[1].reg.value);
        return true;
    }
    if (view->parsed.insn.mnemonic == ZYDIS_MNEMONIC_LEA &&
        operands[1].mem.disp.value == 0 && operands[1].mem.scale == 1) {
        *a = view_register(operands[1].mem.base);
        *b = view_register(operands[1].mem.index);
        return true;
    }
    return false;
}

static bool match_jump(struct reach *reach, uint32_t jump, struct shape *out)
{
    struct view view;
    if (!reach_view(reach, jump, &view))
        return false;
    *out = (struct shape){.kind = TABLE_RELOC_ABSOLUTE, .entry_size = 8};
    if (is_memory(&view.operands[0], 64))
        return memory_table(reach, &view, &view.operands[0], out);
    uint8_t reg = view_register(view.operands[0].reg.value), a, b;
    uint32_t def = reg == NO_REG ? NO_INDEX : sole_def(reach, jump, reg);
    if (def == NO_INDEX || !reach_view(reach, def, &view))
        return false;
    if (view.parsed.insn.mnemonic == ZYDIS_MNEMONIC_MOV &&
        is_memory(&view.operands[1], 64))
        return memory_table(reach, &view, &view.operands[1], out);
    return view_is_sum(&view, &a, &b) && (match_relative(reach, def, a, b, out) ||
                                          match_relative(reach, def, b, a, out));
}

/* --- entries --- */

/* A switch may lead into this function: the one around it, or a cold part. */
static bool is_part(const struct reach *reach, uint32_t number)
{
    const struct function *function = &reach->program->functions[number];
    return function == reach->function ||
           strstr(program_function_name(reach->program, number), ".cold");
}

struct entry {
    uint32_t code, offset; /* code index, section offset */
};

/* The position that entry i means; false when it is no entry of this function. */
static bool entry_target(const struct reach *reach, const struct shape *shape,
                         const struct reloc *reloc, uint32_t i, struct entry *out)
{
    const struct program *program = reach->program;
    bool relative = shape->kind == TABLE_RELOC_RELATIVE;
    if (reloc->type != (relative ? (uint32_t)R_X86_64_PC32 : (uint32_t)R_X86_64_64))
        return false;
    struct referent to = program_referent(reach->object, reloc, 0);
    int64_t position = to.offset - (relative ? 4 * (int64_t)i : 0);
    uint32_t code =
        to.local ? program_code_of(program, reach->code->object, to.section) : NO_INDEX;
    if (code == NO_INDEX || position < 0 || position >= (int64_t)NO_INDEX)
        return false;
    *out = (struct entry){code, (uint32_t)position};
    uint32_t function = program_function_at(program, code, out->offset);
    return function != NO_INDEX && is_part(reach, function) &&
           program_insn_in(program, function, out->offset) != NO_INDEX;
}

/* Relocations of consecutive entries, `limit` at most, stopping before `end`. */
static uint32_t count_run(const struct section *section, const struct shape *shape,
                          uint32_t first, uint32_t limit, uint32_t end)
{
    uint32_t count = 0;
    while (count < limit && first + count < section->reloc_count) {
        uint64_t place = shape->table.offset + (uint64_t)count * shape->entry_size;
        if (section->relocs[first + count].offset != place || place >= end)
            break;
        count++;
    }
    return count;
}

static bool read_entries(struct arena *arena, struct reach *reach,
                         const struct shape *shape, struct jump_table *out)
{
    const struct section *section = &reach->object->sections[shape->table.section];
    struct bound bound = {0};
    if (shape->index != NO_REG)
        bound = reach_bound(reach, shape->load, shape->index);
    uint32_t end = program_next_place(reach->program, reach->code->object,
                                      shape->table.section, shape->table.offset);
    uint32_t limit = bound.count ? bound.count : UINT32_MAX;
    uint32_t first = section_reloc_at(section, shape->table.offset);
    uint32_t count = count_run(section, shape, first, limit, end);
    if (count == 0 || (bound.is_exact && count != bound.count))
        return false;
    uint32_t *targets = arena_new_array(arena, uint32_t, count);
    uint32_t *codes = arena_new_array(arena, uint32_t, count);
    for (uint32_t i = 0; i < count; i++) {
        struct entry entry;
        if (!entry_target(reach, shape, &section->relocs[first + i], i, &entry))
            return false;
        targets[i] = entry.offset;
        codes[i] = entry.code;
    }
    out->count = count;
    out->targets = targets;
    out->codes = codes;
    return true;
}

bool x86_64_find_table(struct arena *arena, const struct program *program,
                       uint32_t insn, struct jump_table *out)
{
    struct arena *stage = arena_new();
    struct reach reach;
    struct shape shape;
    reach_init(&reach, stage, program, insn);
    bool found = match_jump(&reach, insn, &shape) &&
                 !section_is_code(&reach.object->sections[shape.table.section]);
    if (found) {
        *out = (struct jump_table){.insn = insn,
                                   .object = reach.code->object,
                                   .section = shape.table.section,
                                   .offset = shape.table.offset,
                                   .entry_size = shape.entry_size,
                                   .kind = shape.kind,
                                   .explains = NO_INDEX};
        found = read_entries(arena, &reach, &shape, out);
    }
    arena_free(stage);
    return found;
}
