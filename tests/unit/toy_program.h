/* SPDX-License-Identifier: MIT
 *
 * Small lifted programs, built by hand for a machine that does not exist: every
 * instruction is four bytes, says by itself what it is, and refers to at most one
 * symbol. So each rule of the choice can be tested alone, whatever real decoders do.
 */
#ifndef TOY_PROGRAM_H
#define TOY_PROGRAM_H

#include "mo/array.h"
#include "mo/plan.h"

#include <elf.h>
#include <string.h>

enum { TOY_LINK = 30, TOY_SP = 31, TOY_FRAME = 29 };
enum {
    TOY_CALL = 1,
    TOY_ABSOLUTE,
    TOY_PAGE,
    TOY_LOW,
    TOY_PC,
    TOY_NARROW,
    TOY_TLS,
    TOY_GOT_PAGE,
    TOY_GOT_LOW,
    TOY_HINT
};
enum {
    TOY_EXT = 1,
    TOY_OTHER,
    TOY_STRING_A,
    TOY_STRING_B,
    TOY_DATA,
    TOY_GROUPED,
    TOY_SYMBOLS
};
enum { TOY_TEXT = 1, TOY_STRINGS, TOY_DATA_SECTION, TOY_GROUP_SECTION, TOY_SECTIONS };

struct toy_insn {
    uint8_t op, flow;
    uint32_t traits;
    uint64_t uses, defs;
    uint32_t reloc, symbol; /* relocation type, or 0 */
    int64_t addend;
    uint32_t row;    /* number, or 0: that of the instruction before it */
    uint32_t target; /* 1 + section offset, or 0 */
};

struct toy {
    struct arena *arena;
    struct program program;
    array_of(struct insn) insns;
    array_of(struct function) functions;
    array_of(struct block) blocks;
    array_of(struct reloc) relocs;
    array_of(struct fde) fdes;
    struct buffer text;
    struct target target;
    struct object object;
    struct section sections[TOY_SECTIONS];
    struct symbol symbols[TOY_SYMBOLS];
    struct code code;
    struct unit unit;
    struct group group;
    struct cie cie;
    struct frames frames;
    struct objects objects;
    const struct object *items[1];
};

static const struct reloc_kind *toy_reloc_kind(uint32_t type)
{
    static const struct reloc_kind kinds[] = {
        [TOY_CALL] = {"CALL",     4, RELOC_CALL,     0xffffff00},
        [TOY_ABSOLUTE] = {"ABSOLUTE", 4, RELOC_ABSOLUTE, 0xffffff00},
        [TOY_PAGE] = {"PAGE",     4, RELOC_PAGE,     0x1fffff00},
        [TOY_LOW] = {"LOW",      4, RELOC_ABSOLUTE, 0x000fff00},
        [TOY_PC] = {"PC",       4, RELOC_PC,       0xffffffff},
        [TOY_NARROW] = {"NARROW",   4, RELOC_PC,       0x1fffff00},
        [TOY_TLS] = {"TLS",      4, RELOC_TLS_ATOM, 0x000fff00},
        [TOY_GOT_PAGE] = {"GOT_PAGE", 4, RELOC_GOT_PAGE, 0x1fffff00},
        [TOY_GOT_LOW] = {"GOT_LOW",  4, RELOC_GOT_LOW,  0x000fff00},
        [TOY_HINT] = {"HINT",     4, RELOC_NONE,     0         },
    };
    return type < sizeof kinds / sizeof *kinds && kinds[type].name ? &kinds[type]
                                                                   : NULL;
}

static uint8_t toy_bias(const struct insn *insn, uint64_t offset)
{
    (void)insn, (void)offset;
    return 0;
}

static bool toy_canonical(const uint8_t *bytes, uint8_t length, struct code_bytes *out)
{
    memcpy(out->bytes, bytes, length);
    out->length = length;
    return true;
}

static bool toy_relocatable(const uint8_t *bytes, uint8_t length,
                            struct code_bytes *out)
{
    *out = (struct code_bytes){
        .length = length, .has_reloc = true, .reloc_type = TOY_CALL};
    out->bytes[0] = bytes[0];
    return true;
}

/* Operands that say 0xff cannot be shifted. */
static bool toy_shift_sp(const uint8_t *bytes, uint8_t length, int32_t delta,
                         struct code_bytes *out)
{
    toy_canonical(bytes, length, out);
    return delta == 0 || bytes[0] != 0xff;
}

static bool toy_call_to_jump(const uint8_t *bytes, uint8_t length,
                             struct code_bytes *out)
{
    return toy_canonical(bytes, length, out);
}

static uint8_t toy_register_of_dwarf(uint32_t column)
{
    return column < 64 ? (uint8_t)column : 0xff;
}

static struct target toy_target(bool pushes)
{
    return (struct target){
        .name = "toy",
        .machine = EM_AARCH64,
        .code_align = 4,
        .function_align = 4,
        .call_size = 4,
        .jump_size = 4,
        .return_size = 4,
        .call_pushes = pushes ? 8 : 0,
        .save_register_size = pushes ? 0 : 8,
        .save_stack_size = pushes ? 0 : 8,
        .save_stack_shift = pushes ? 0 : 16,
        .link_register = pushes ? 0xff : TOY_LINK,
        .stack_register = TOY_SP,
        .frame_register = TOY_FRAME,
        .veneer_registers = pushes ? 0 : 3u << 16,
        .scratch_registers = 0xff00,
        .dwarf_return_column = 30,
        .dwarf_stack_column = 31,
        .register_of_dwarf = toy_register_of_dwarf,
        .reloc_kind = toy_reloc_kind,
        .reloc_bias = toy_bias,
        .canonical = toy_canonical,
        .relocatable = toy_relocatable,
        .shift_sp = toy_shift_sp,
        .call_to_jump = toy_call_to_jump,
    };
}

static struct toy *toy_new(bool pushes)
{
    static const uint8_t strings[] = "\0hello\0hello\0";
    static const uint8_t data[64];
    struct arena *arena = arena_new();
    struct toy *toy = arena_new_one(arena, struct toy);
    toy->arena = arena;
    toy->target = toy_target(pushes);
    toy->text = buffer_new(arena);
    toy->program.rows = row_table_new(arena);
    toy->unit = (struct unit){.name = "toy.o"};
    toy->group = (struct group){.signature = TOY_EXT};
    toy->sections[0] = (struct section){.name = "", .group = NO_INDEX};
    toy->sections[TOY_TEXT] = (struct section){.name = ".text",
                                               .type = SHT_PROGBITS,
                                               .flags = SHF_ALLOC | SHF_EXECINSTR,
                                               .align = 4,
                                               .group = NO_INDEX};
    toy->sections[TOY_STRINGS] = (struct section){
        .name = ".rodata.str1.1",
        .type = SHT_PROGBITS,
        .entry_size = 1,
        .align = 1,
        .flags = SHF_ALLOC | SHF_MERGE | SHF_STRINGS,
        .group = NO_INDEX,
        .data = {strings, sizeof strings - 1}
    };
    toy->sections[TOY_DATA_SECTION] = (struct section){
        .name = ".data",
        .type = SHT_PROGBITS,
        .flags = SHF_ALLOC | SHF_WRITE,
        .align = 8,
        .group = NO_INDEX,
        .data = {data, sizeof data}
    };
    toy->sections[TOY_GROUP_SECTION] = toy->sections[TOY_DATA_SECTION];
    toy->sections[TOY_GROUP_SECTION].group = 0;
    toy->symbols[0] = (struct symbol){.name = ""};
    toy->symbols[TOY_EXT] = (struct symbol){.name = "ext", .bind = STB_GLOBAL};
    toy->symbols[TOY_OTHER] = (struct symbol){.name = "other", .bind = STB_GLOBAL};
    toy->symbols[TOY_STRING_A] =
        (struct symbol){.name = ".LA", .value = 1, .section = TOY_STRINGS};
    toy->symbols[TOY_STRING_B] =
        (struct symbol){.name = ".LB", .value = 7, .section = TOY_STRINGS};
    toy->symbols[TOY_DATA] = (struct symbol){.name = "d", .section = TOY_DATA_SECTION};
    toy->symbols[TOY_GROUPED] =
        (struct symbol){.name = "g", .section = TOY_GROUP_SECTION};
    return toy;
}

static inline uint32_t toy_row(struct toy *toy, uint32_t base, int64_t offset, bool link_saved,
                        bool saved_19)
{
    struct rule rules[2];
    uint32_t count = 0;
    if (saved_19)
        rules[count++] = (struct rule){.column = 19, .kind = RULE_OFFSET, .value = -32};
    if (link_saved)
        rules[count++] = (struct rule){.column = 30, .kind = RULE_OFFSET, .value = -8};
    struct row row = {.cfa_register = base,
                      .cfa_offset = offset,
                      .rules = rules,
                      .rule_count = count};
    return row_intern(toy->program.rows, &row);
}

/* One function of one block. Without `rows` it has no FDE. */
static inline struct function *toy_function(struct toy *toy, bool rows,
                                     const struct toy_insn *insns, uint32_t count)
{
    uint32_t start = (uint32_t)toy->text.size;
    struct function function = {.symbol = NO_INDEX,
                                .start = start,
                                .end = start + count * 4,
                                .align = 4,
                                .first_insn = toy->insns.count,
                                .insn_count = count,
                                .first_block = toy->blocks.count,
                                .block_count = 1,
                                .fde = NO_INDEX};
    struct block block = {.function = toy->functions.count,
                          .first_insn = toy->insns.count,
                          .insn_count = count};
    struct row_change *changes = arena_new_array(toy->arena, struct row_change, count);
    uint32_t change_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct toy_insn *from = &insns[i];
        struct insn insn = {.offset = start + i * 4,
                            .target = from->target - 1,
                            .uses = from->uses,
                            .defs = from->defs,
                            .length = 4,
                            .flow = from->flow,
                            .traits = from->traits,
                            .function = toy->functions.count,
                            .reloc = toy->relocs.count};
        if (from->reloc != 0) {
            struct reloc reloc = {.offset = insn.offset,
                                  .addend = from->addend,
                                  .symbol = from->symbol,
                                  .type = from->reloc};
            array_push(toy->arena, &toy->relocs, reloc);
            insn.traits |= INSN_RELOCATED;
        }
        if (i == 0)
            insn.traits |= INSN_LEADER;
        if (i == 0 || from->row != 0)
            changes[change_count++] = (struct row_change){insn.offset, from->row};
        function.written |= insn.defs;
        array_push(toy->arena, &toy->insns, insn);
        buffer_u8(&toy->text, from->op);
        buffer_fill(&toy->text, 0, 3);
    }
    if (rows) {
        struct fde fde = {.code_section = TOY_TEXT,
                          .start = start,
                          .length = count * 4,
                          .changes = changes,
                          .change_count = change_count};
        function.fde = toy->fdes.count;
        array_push(toy->arena, &toy->fdes, fde);
    }
    array_push(toy->arena, &toy->blocks, block);
    array_push(toy->arena, &toy->functions, function);
    return &toy->functions.items[toy->functions.count - 1];
}

static const struct program *toy_program(struct toy *toy)
{
    toy->sections[TOY_TEXT].data = buffer_bytes(&toy->text);
    toy->sections[TOY_TEXT].relocs = toy->relocs.items;
    toy->sections[TOY_TEXT].reloc_count = toy->relocs.count;
    toy->object = (struct object){.name = "toy.o",
                                  .machine = EM_AARCH64,
                                  .units = &toy->unit,
                                  .unit_count = 1,
                                  .sections = toy->sections,
                                  .section_count = TOY_SECTIONS,
                                  .symbols = toy->symbols,
                                  .symbol_count = TOY_SYMBOLS,
                                  .groups = &toy->group,
                                  .group_count = 1};
    toy->items[0] = &toy->object;
    toy->objects = (struct objects){toy->items, 1};
    toy->code =
        (struct code){.section = TOY_TEXT, .function_count = toy->functions.count};
    toy->frames = (struct frames){&toy->cie, 1, toy->fdes.items, toy->fdes.count};
    struct program *program = &toy->program;
    program->objects = &toy->objects;
    program->target = &toy->target;
    program->frames = &toy->frames;
    program->code = &toy->code;
    program->code_count = 1;
    program->functions = toy->functions.items;
    program->function_count = toy->functions.count;
    program->blocks = toy->blocks.items;
    program->block_count = toy->blocks.count;
    program->insns = toy->insns.items;
    program->insn_count = toy->insns.count;
    return program;
}

#endif
