/* SPDX-License-Identifier: MIT
 *
 * --dump=code: every code section cut into functions, blocks and instructions, with
 * what the target and the lifter say of each.
 *
 * Registers are printed by their bit numbers (see mo/insn.h): this file knows no
 * target.
 */
#include "mo/dump.h"

#include <inttypes.h>

/* "0-3,30": the numbers of the bits that are set. */
static void print_bits(FILE *out, uint64_t bits)
{
    const char *comma = "";
    for (uint32_t i = 0; i < 64; i++) {
        if (!(bits >> i & 1))
            continue;
        uint32_t last = i;
        while (last < 63 && (bits >> (last + 1) & 1))
            last++;
        fprintf(out, last > i ? "%s%" PRIu32 "-%" PRIu32 : "%s%" PRIu32, comma, i,
                last);
        comma = ",";
        i = last;
    }
}

static void print_set(FILE *out, const char *what, uint64_t regs, uint8_t flags)
{
    if (!regs && !flags)
        return;
    fprintf(out, " %s{", what);
    print_bits(out, regs);
    if (flags)
        fprintf(out, ";");
    print_bits(out, flags);
    fprintf(out, "}");
}

/* ORDER flow */
static const char *const flow_names[] = {
    "next", "jump",          "branch", "jump-indirect",
    "call", "call-indirect", "return", "stop",
};
_Static_assert(sizeof flow_names / sizeof *flow_names == FLOW_COUNT, "ORDER flow");

static const struct {
    uint32_t trait;
    const char *name;
} trait_names[] = {
    {INSN_RELOCATED,     "reloc"        },
    {INSN_PC_RELATIVE,   "pc"           },
    {INSN_SP_MEMORY,     "sp-memory"    },
    {INSN_SP_COPY,       "sp-copy"      },
    {INSN_SP_ADJUST,     "sp-adjust"    },
    {INSN_SP_FROM_FRAME, "sp-from-frame"},
    {INSN_SP_OPAQUE,     "sp-opaque"    },
    {INSN_FRAME_MEMORY,  "frame-memory" },
    {INSN_FRAME_SET,     "frame-set"    },
    {INSN_BELOW_SP,      "below-sp"     },
    {INSN_MARKER,        "marker"       },
    {INSN_SIGNS,         "signs"        },
    {INSN_EXCLUSIVE,     "exclusive"    },
    {INSN_OPAQUE,        "opaque"       },
    {INSN_PINNED,        "pinned"       },
    {INSN_NOP,           "nop"          },
    {INSN_FAULTS,        "faults"       },
    {INSN_GLUED,         "glued"        },
    {INSN_FORBIDDEN,     "forbidden"    },
    {INSN_LINK_LIVE,     "link-live"    },
    {INSN_VENEER_LIVE,   "veneer-live"  },
    {INSN_FRAME_COPY,    "frame-copy"   },
    {INSN_FRAME_STORED,  "frame-stored" },
    {INSN_INDEXED,       "indexed"      },
    {INSN_INNER,         "inner"        },
    {INSN_WRAPPED,       "wrapped"      },
};

static void print_traits(FILE *out, const struct insn *insn)
{
    const uint32_t sp = INSN_SP_MEMORY | INSN_SP_COPY | INSN_SP_ADJUST |
                        INSN_SP_FROM_FRAME | INSN_FRAME_MEMORY | INSN_FRAME_COPY;
    for (size_t i = 0; i < sizeof trait_names / sizeof *trait_names; i++) {
        if (insn->traits & trait_names[i].trait)
            fprintf(out, " %s", trait_names[i].name);
    }
    if (insn->traits & sp)
        fprintf(out, " %+" PRId32, insn->sp_value);
}

static void dump_insn(FILE *out, const struct program *program, uint32_t index)
{
    const struct insn *insn = &program->insns[index];
    const uint8_t *bytes = program_bytes(program, index);
    fprintf(out, "    %6" PRIx32 " ", insn->offset);
    for (uint32_t i = 0; i < insn->length; i++)
        fprintf(out, "%02x", bytes[i]);
    if (insn->flow != FLOW_NEXT)
        fprintf(out, " %s", flow_names[insn->flow]);
    if (insn->target != NO_INDEX)
        fprintf(out, " ->%" PRIx32, insn->target);
    print_set(out, "uses", insn->uses, insn->flag_uses);
    print_set(out, "defs", insn->defs, insn->flag_defs);
    print_traits(out, insn);
    fprintf(out, "\n");
}

static void print_refusal(FILE *out, enum refusal refusal, uint64_t offset)
{
    fprintf(out, " %s", refusal_level(refusal));
    if (refusal != REFUSAL_NONE)
        fprintf(out, " %s at 0x%" PRIx64, refusal_name(refusal), offset);
}

static void dump_function(FILE *out, const struct program *program, uint32_t index)
{
    const struct function *function = &program->functions[index];
    fprintf(out, "  function %s %" PRIx32 "-%" PRIx32 " align %" PRIu32,
            program_function_name(program, index), function->start, function->end,
            function->align);
    print_refusal(out, function->refusal, function->why_offset);
    fprintf(out, "%s%s%s%s%s", function->fde == NO_INDEX ? " no-fde" : "",
            function->red_zone ? " red-zone" : "", function->signs ? " signs" : "",
            function->has_calls ? " calls" : "", function->blind ? " blind" : "");
    print_set(out, "writes", function->written, 0);
    fprintf(out, "\n");
    if (function->block_count == 0) {
        for (uint32_t i = 0; i < function->insn_count; i++)
            dump_insn(out, program, function->first_insn + i);
    }
    for (uint32_t i = 0; i < function->block_count; i++) {
        const struct block *block = &program->blocks[function->first_block + i];
        fprintf(out, "   block %" PRIu32, i);
        print_set(out, "live-out", block->live_out.regs, block->live_out.flags);
        fprintf(out, "\n");
        for (uint32_t j = 0; j < block->insn_count; j++)
            dump_insn(out, program, block->first_insn + j);
    }
}

static void dump_table(FILE *out, const struct program *program,
                       const struct jump_table *table)
{
    static const char *const kinds[] = {"absolute", "relative", "raw"};
    const struct object *object = program->objects->items[table->object];
    if (table->kind == TABLE_LABELS)
        fprintf(out, "table of %" PRIu32 " labels, jump at ", table->count);
    else
        fprintf(out,
                "table %s+0x%" PRIx32 " %s entries %" PRIu32 " of %u bytes, jump at ",
                object->sections[table->section].name, table->offset,
                kinds[table->kind], table->count, table->entry_size);
    dump_place(out, program, table->insn);
    for (uint32_t i = 0; i < table->count; i++)
        fprintf(out, "%s%" PRIx32, i == 0 ? ":\n  " : " ", table->targets[i]);
    fprintf(out, "\n");
}

void dump_code(FILE *out, const struct program *program)
{
    for (uint32_t i = 0; i < program->code_count; i++) {
        const struct code *code = &program->code[i];
        fprintf(out, "code %s %s align %" PRIu32,
                section_unit(program_object(program, i), code->section),
                program_section(program, i)->name, code->align);
        print_refusal(out, code->refusal, code->why_offset);
        fprintf(out, "%s\n", code->helpers ? " helpers" : "");
        for (uint32_t j = 0; j < code->function_count; j++)
            dump_function(out, program, code->first_function + j);
    }
    for (uint32_t i = 0; i < program->table_count; i++)
        dump_table(out, program, &program->tables[i]);
    for (uint32_t i = 0; i < program->ref_count; i++) {
        const struct code_ref *ref = &program->refs[i];
        const struct object *object = program->objects->items[ref->object];
        fprintf(out, "ref %s reloc %" PRIu32 " -> %s+0x%" PRIx32 "\n",
                object->sections[ref->section].name, ref->reloc,
                program_section(program, ref->code)->name, ref->position);
    }
}
