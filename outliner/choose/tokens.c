/* SPDX-License-Identifier: MIT
 *
 * The program as one string of integers, for the suffix tree. An instruction that may
 * move gets the number of its key (key.c); one that may not ends the piece of code
 * before it, as the end of a block does: a separator that is found nowhere else. So
 * every repeat of the string is a sequence within one block whose instructions may all
 * move.
 *
 * Separators count down from UINT32_MAX - 1, keys count up from 0.
 */
#include "outliner/choose/choose.h"

struct writer {
    const struct program *program;
    struct table *keys;
    struct buffer key;
    const uint8_t *table_jumps; /* a bit for each instruction */
    uint32_t *values, *insns;
    uint8_t *sizes, *glued;
    uint32_t count;
    uint32_t separator;
};

static void put(struct writer *writer, uint32_t value, uint32_t insn, uint8_t size,
                bool glued)
{
    uint32_t at = writer->count++;
    writer->values[at] = value;
    writer->insns[at] = insn;
    writer->sizes[at] = size;
    writer->glued[at] = glued;
}

/* One separator is as good as many. */
static void separate(struct writer *writer)
{
    if (writer->count > 0 && writer->insns[writer->count - 1] != NO_INDEX) {
        put(writer, writer->separator--, NO_INDEX, 0, false);
    }
}

static void put_block(struct writer *writer, uint32_t code, const struct block *block)
{
    for (uint32_t i = 0; i < block->insn_count; i++) {
        uint32_t insn = block->first_insn + i;
        uint8_t size = 0;
        writer->key.size = 0;
        if (bit_get(writer->table_jumps, insn) ||
            insn_key(writer->program, code, insn, KEY_EXACT, &writer->key, &size) !=
                REFUSAL_NONE) {
            separate(writer);
            continue;
        }
        uint32_t value = table_intern(writer->keys, writer->key.at, writer->key.size);
        put(writer, value, insn, size, insn_is_glued(writer->program, code, insn));
    }
    separate(writer);
}

static void put_function(struct writer *writer, const struct function *function)
{
    const struct program *program = writer->program;
    if (function->refusal != REFUSAL_NONE ||
        program->code[function->code].refusal != REFUSAL_NONE) {
        return;
    }
    for (uint32_t b = 0; b < function->block_count; b++) {
        put_block(writer, function->code, &program->blocks[function->first_block + b]);
    }
}

static const uint8_t *mark_table_jumps(struct arena *arena,
                                       const struct program *program)
{
    uint8_t *bits = arena_alloc(arena, program->insn_count / 8 + 1);
    for (uint32_t i = 0; i < program->table_count; i++) {
        bit_set(bits, program->tables[i].insn);
    }
    return bits;
}

void tokens_make(struct arena *arena, const struct program *program, struct tokens *out)
{
    struct arena *stage = arena_new();
    /* At most a separator behind every instruction. */
    size_t room = (size_t)program->insn_count * 2 + 1;
    struct writer writer = {
        .program = program,
        .keys = table_new(stage),
        .key = buffer_new(stage),
        .table_jumps = mark_table_jumps(stage, program),
        .values = arena_new_array(arena, uint32_t, room),
        .insns = arena_new_array(arena, uint32_t, room),
        .sizes = arena_new_array(arena, uint8_t, room),
        .glued = arena_new_array(arena, uint8_t, room),
        .separator = UINT32_MAX - 1,
    };
    for (uint32_t f = 0; f < program->function_count; f++) {
        put_function(&writer, &program->functions[f]);
    }
    *out = (struct tokens){
        .values = writer.values,
        .insns = writer.insns,
        .sizes = writer.sizes,
        .glued = writer.glued,
        .count = writer.count,
    };
    arena_free(stage);
}
