/* SPDX-License-Identifier: MIT
 *
 * Jump tables of gcc and clang. Their entries have no relocations: nothing but the code
 * that uses a table tells that it is one.
 *
 *   gcc      adrp/add xT, T                         T: .byte (L0 - B) / 4, …   (or
 * .2byte, ldrb     wE, [xT, wI, uxtw]               .word) adr      xB, B add      xE,
 * xB, wE, sxtb #2 br       xE                            B: clang    adr      xB, B T:
 * .byte (L0 - B) >> 2, … ldrb     wE, [xT, xI]                     unsigned; B the
 * lowest target add      xB, xB, xE, lsl #2 br       xB clang,   adr      xB, B T:
 * .word L0 - B, … far      ldrsw    xE, [xT, xI, lsl #2] add      xB, xB, xE br xB
 *
 * in any registers, with other instructions between, adrp/add or adr hoisted, the
 * table's address spilled to the stack. So we do not match text but ask, from the
 * branch on, which instruction defines what.
 *
 * How many entries: the largest index that compares and masks let through (limit.c). A
 * limit is not yet the size of the table: with `default: __builtin_unreachable()` an
 * earlier compare or a mask may let more through than the table has entries. So a table
 * must also end before the next place in its section that anything refers to or a
 * symbol names; compilers put tables beside objects that are all named or referred to,
 * so this catches it. Nor may it end too early, which nothing else would notice: up to
 * that next place there may be only what aligns it, fewer zeros than the section's
 * alignment. As entries those would lead to the base, so we take them for entries: a
 * way that nobody goes does no harm. Every entry must lead to an instruction of the
 * function, and none into the code between compare and branch. If anything is in doubt,
 * we do not explain it.
 */
#include "mo/bytes.h"
#include "target.h"
#include "trace.h"

#include <elf.h>

enum { ENTRIES = 65536 };

/* What the code says about its table. */
struct shape {
    uint32_t adr, load; /* instructions */
    uint32_t base;      /* section offset that entries count from */
    uint8_t entry_size, shift;
    bool is_signed;
    struct operand index;
    uint32_t section, offset; /* of entry 0 */
};

/* --- the address of the table --- */

/* What the relocation of this type in an instruction refers to. */
static bool relocated(const struct trace *trace, uint32_t insn, uint32_t type,
                      uint32_t other_type, struct referent *out)
{
    uint32_t first = 0;
    if (program_relocs(trace->program, insn, &first) != 1)
        return false;
    const struct reloc *reloc = &trace->section->relocs[first];
    if (reloc->type != type && reloc->type != other_type)
        return false;
    *out = program_referent(trace->object, reloc, 0);
    return out->local && out->offset >= 0 && out->offset < (int64_t)NO_INDEX;
}

static bool same_referent(const struct referent *a, const struct referent *b)
{
    return a->section == b->section && a->offset == b->offset;
}

/* add xD, xP, :lo12:T with adrp xP, T on every way there; or adr xD, T. */
static bool defined_address(struct trace *trace, uint32_t insn, struct referent *out)
{
    const uint32_t word = trace_word(trace, insn);
    if ((word & 0x9f000000u) == 0x10000000u)
        return relocated(trace, insn, R_AARCH64_ADR_PREL_LO21, R_AARCH64_ADR_PREL_LO21,
                         out);
    if ((word & 0xffc00000u) != 0x91000000u ||
        !relocated(trace, insn, R_AARCH64_ADD_ABS_LO12_NC, R_AARCH64_ADD_ABS_LO12_NC,
                   out))
        return false;
    const struct defs pages = trace_defs(trace, insn, field(word, 5, 5));
    for (uint32_t i = 0; i < pages.count && pages.count <= DEFS; i++) {
        struct referent page;
        if ((trace_word(trace, pages.insns[i]) & 0x9f000000u) != 0x90000000u ||
            !relocated(trace, pages.insns[i], R_AARCH64_ADR_PREL_PG_HI21,
                       R_AARCH64_ADR_PREL_PG_HI21_NC, &page) ||
            !same_referent(&page, out))
            return false;
    }
    return pages.count > 0 && pages.count <= DEFS;
}

/* The address that one definition gives, perhaps through a copy. */
static bool address_of_def(struct trace *trace, uint32_t def, struct referent *out)
{
    uint32_t source;
    if (trace_is_copy(trace_word(trace, def), &source))
        def = trace_def(trace, def, source);
    return def != NO_INDEX && defined_address(trace, def, out);
}

/* Every store to the slot that reaches the load stores the same address. */
static bool spilled_address(struct trace *trace, uint32_t load, struct referent *out)
{
    const int32_t slot = trace->program->insns[load].sp_value;
    const struct defs stores = trace_slot_defs(trace, load, slot);
    bool found = false;
    for (uint32_t i = 0; i < stores.count && stores.count <= DEFS; i++) {
        const uint32_t store = stores.insns[i];
        uint32_t reg;
        if (!trace_spilled(trace_word(trace, store), &trace->program->insns[store],
                           slot, &reg) ||
            reg == 31)
            return false;
        const struct defs defs = trace_defs(trace, store, reg);
        for (uint32_t d = 0; d < defs.count; d++) {
            struct referent one;
            if (defs.count > DEFS || !address_of_def(trace, defs.insns[d], &one) ||
                (found && !same_referent(&one, out)))
                return false;
            *out = one;
            found = true;
        }
    }
    return found && stores.count <= DEFS;
}

/* All definitions of the register that get to the instruction give the same address. */
static bool register_address(struct trace *trace, uint32_t insn, uint32_t reg,
                             struct referent *out)
{
    const struct defs defs = trace_defs(trace, insn, reg);
    if (defs.count == 0 || defs.count > DEFS)
        return false;
    for (uint32_t i = 0; i < defs.count; i++) {
        struct referent one;
        const uint32_t def = defs.insns[i], word = trace_word(trace, def);
        const bool reloaded =
            trace_is_slot_access(word, &trace->program->insns[def], true) &&
            field(word, 30, 1);
        const bool known = reloaded ? spilled_address(trace, def, &one)
                                    : address_of_def(trace, def, &one);
        if (!known || (i > 0 && !same_referent(&one, out)))
            return false;
        *out = one;
    }
    return true;
}

/* --- the shape of the code --- */

/* The load of the entry: [xT, wI, uxtw #s], [xT, xI, lsl #s]. */
static bool match_load(struct trace *trace, uint32_t insn, struct shape *out)
{
    const uint32_t word = trace_word(trace, insn);
    const uint32_t size = word >> 30, option = field(word, 13, 3);
    if ((word & 0x3f200c00u) != 0x38200800u || size > 2 || (option & 3) < 2)
        return false;
    if (size > 0 && !field(word, 12, 1))
        return false;
    const uint32_t opc = field(word, 22, 2);
    if (opc == 0)
        return false;
    out->load = insn;
    out->entry_size = (uint8_t)(1u << size);
    out->is_signed = opc != 1;
    /* sxtw is no worse than uxtw: the index has an unsigned limit */
    out->index = (struct operand){field(word, 16, 5), option & 1};
    struct referent table = {0};
    if (!register_address(trace, insn, field(word, 5, 5), &table))
        return false;
    out->section = table.section;
    out->offset = (uint32_t)table.offset;
    return true;
}

static bool match_base(struct trace *trace, uint32_t insn, uint32_t reg,
                       struct shape *out)
{
    out->adr = trace_def(trace, insn, reg);
    if (out->adr == NO_INDEX)
        return false;
    const struct insn *adr = &trace->program->insns[out->adr];
    out->base = adr->target;
    return (trace_word(trace, out->adr) & 0x9f000000u) == 0x10000000u &&
           adr->target != NO_INDEX && !(adr->traits & INSN_RELOCATED);
}

/* add xE, xB, wE, sxtX #2: the extension must be that of the entry's size. */
static bool match_extended(struct trace *trace, uint32_t add, struct shape *out)
{
    const uint32_t word = trace_word(trace, add);
    const uint32_t load = trace_def(trace, add, field(word, 16, 5));
    const uint32_t option = field(word, 13, 3);
    if (load == NO_INDEX || !match_base(trace, add, field(word, 5, 5), out) ||
        !match_load(trace, load, out) || field(word, 10, 3) != 2 || out->is_signed)
        return false;
    const uint32_t extension = option & 3;
    if (extension > 2 || 1u << extension != out->entry_size)
        return false;
    out->is_signed = option & 4;
    out->shift = 2;
    return true;
}

/* add xB, xB, xE, lsl #2, or #0 */
static bool match_shifted(struct trace *trace, uint32_t add, struct shape *out)
{
    const uint32_t word = trace_word(trace, add);
    const uint32_t load = trace_def(trace, add, field(word, 16, 5));
    if (load == NO_INDEX || !match_base(trace, add, field(word, 5, 5), out) ||
        !match_load(trace, load, out))
        return false;
    const uint32_t opc = field(trace_word(trace, load), 22, 2);
    out->shift = (uint8_t)field(word, 10, 6);
    /* ldrsw, or an unsigned load; the others extend to a w register only */
    return (out->shift == 0 || out->shift == 2) && opc < 3;
}

static bool match_shape(struct trace *trace, uint32_t branch, struct shape *out)
{
    const uint32_t reg = field(trace_word(trace, branch), 5, 5);
    const uint32_t add = trace_def(trace, branch, reg);
    if (add == NO_INDEX)
        return false;
    const uint32_t word = trace_word(trace, add);
    if ((word & 0xffe00000u) == 0x8b200000u)
        return match_extended(trace, add, out);
    if ((word & 0xffe00000u) == 0x8b000000u)
        return match_shifted(trace, add, out);
    return false;
}

/* --- the table --- */

/* The first place in the section behind `offset` that a symbol or a relocation of this
 * object names, or the section's end. */
static uint64_t next_place(const struct object *object, uint32_t section,
                           uint64_t offset)
{
    uint64_t next = object->sections[section].data.size;
    for (uint32_t i = 0; i < object->symbol_count; i++) {
        const struct symbol *symbol = &object->symbols[i];
        if (symbol->section == section && symbol->value > offset &&
            symbol->value < next)
            next = symbol->value;
    }
    for (uint32_t s = 0; s < object->section_count; s++) {
        for (uint32_t r = 0; r < object->sections[s].reloc_count; r++) {
            const struct reloc *reloc = &object->sections[s].relocs[r];
            const struct symbol *symbol = &object->symbols[reloc->symbol];
            if (symbol->section != section)
                continue;
            const int64_t place = (int64_t)symbol->value + reloc->addend;
            if (place > (int64_t)offset && (uint64_t)place < next)
                next = (uint64_t)place;
        }
    }
    return next;
}

/* Nothing but alignment lies between the table and the next place. */
static bool is_padding(const struct section *data, uint64_t start, uint64_t end)
{
    for (uint64_t at = start; at < end; at++) {
        if (data->data.at[at] != 0)
            return false;
    }
    return start <= end && (end - start < data->align || start == end);
}

/* The entries can be read, and are what they are: constant bytes without relocations,
 * all that lies before the next object in their section. *count grows by the padding.
 */
static bool table_holds(const struct trace *trace, const struct shape *shape,
                        uint64_t *count)
{
    const struct section *data = &trace->object->sections[shape->section];
    const uint64_t end = shape->offset + *count * shape->entry_size;
    if (data->type != SHT_PROGBITS || !(data->flags & SHF_ALLOC) ||
        data->flags & (SHF_WRITE | SHF_EXECINSTR) || end > data->data.size ||
        shape->offset % shape->entry_size)
        return false;
    const uint32_t reloc = section_reloc_at(data, shape->offset);
    if (reloc < data->reloc_count && data->relocs[reloc].offset < end)
        return false;
    const uint64_t next = next_place(trace->object, shape->section, shape->offset);
    if (!is_padding(data, end, next))
        return false;
    *count += (next - end) / shape->entry_size;
    return true;
}

/* Section offsets that the entries mean, NULL when one of them is no good. */
static uint32_t *read_targets(struct arena *arena, const struct trace *trace,
                              const struct shape *shape, uint32_t count,
                              const bool *forbidden)
{
    const uint8_t *at = trace->object->sections[shape->section].data.at + shape->offset;
    const struct insn *insns = trace->program->insns + trace->first;
    const int64_t start = insns[0].offset, size = (int64_t)trace->count * 4;
    uint32_t *targets = arena_new_array(arena, uint32_t, count);
    for (uint32_t i = 0; i < count; i++, at += shape->entry_size) {
        const int64_t entry = shape->is_signed
                                  ? load_le_signed(at, shape->entry_size)
                                  : (int64_t)load_le(at, shape->entry_size);
        const int64_t target = shape->base + entry * (1 << shape->shift);
        const int64_t inside = target - start;
        if (inside < 0 || inside >= size || inside % 4 || forbidden[inside / 4])
            return NULL;
        targets[i] = (uint32_t)target;
    }
    return targets;
}

static bool explain(struct arena *arena, struct trace *trace, uint32_t branch,
                    struct jump_table *out)
{
    struct shape shape = {0};
    uint64_t limit, count;
    bool *seen = arena_new_array(trace->stage, bool, trace->count);
    if (!match_shape(trace, branch, &shape) ||
        !trace_limit(trace, shape.load, shape.index, seen, &limit) || limit >= ENTRIES)
        return false;
    count = limit + 1;
    if (!table_holds(trace, &shape, &count))
        return false;
    for (uint32_t i = shape.load; i <= branch; i++) /* nor past the load */
        seen[i - trace->first] = true;
    const uint32_t *targets = read_targets(arena, trace, &shape, (uint32_t)count, seen);
    if (!targets)
        return false;
    const struct function *function =
        &trace->program->functions[program_function_of_insn(trace->program, branch)];
    *out = (struct jump_table){
        .insn = branch,
        .object = trace->program->code[function->code].object,
        .section = shape.section,
        .offset = shape.offset,
        .count = (uint32_t)count,
        .entry_size = shape.entry_size,
        .kind = TABLE_RAW,
        .is_signed = shape.is_signed,
        .shift = shape.shift,
        .base = shape.base,
        .explains = shape.adr,
        .targets = targets,
    };
    return true;
}

bool aarch64_find_table(struct arena *arena, const struct program *program,
                        uint32_t insn, struct jump_table *out)
{
    const struct function *function =
        &program->functions[program_function_of_insn(program, insn)];
    if (program->insns[insn].flow != FLOW_JUMP_INDIRECT || function->insn_count == 0)
        return false;
    /* Instructions are found by their offset: no gaps in between. */
    const struct insn *last =
        &program->insns[function->first_insn + function->insn_count - 1];
    const uint32_t first = program->insns[function->first_insn].offset;
    if (last->offset - first != (function->insn_count - 1) * 4)
        return false;
    struct arena *stage = arena_new();
    struct trace trace = trace_new(stage, program, insn);
    const uint32_t word = trace_word(&trace, insn);
    const bool found =
        (word & 0xfffffc1fu) == 0xd61f0000u && explain(arena, &trace, insn, out);
    arena_free(stage);
    return found;
}
