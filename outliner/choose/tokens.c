/* SPDX-License-Identifier: MIT
 *
 * The program as one string of integers, for the suffix tree. An instruction that may
 * move gets the number of its key (key.c); one that may not ends the piece of code
 * before it, as the end of a block does: a separator, which is no part of any repeat.
 * So every repeat of the string is a sequence within one block whose instructions may
 * all move.
 *
 * The string is written in parts, each with a numbering of its own, and then the parts
 * are joined. Keys count up from 0, in the order in which they appear.
 */
#include "mo/parallel.h"
#include "outliner/choose/choose.h"

#include <string.h>

/* Instructions of a part. The larger one is, the more of its keys it knows already. */
enum { PART_INSNS = 64 * 1024 };

/* The string, or a part of it: see struct tokens. */
struct text {
    uint32_t *values, *insns;
    uint8_t *sizes, *glued;
    uint32_t count;
};

struct writer {
    const struct program *program;
    const struct changes *changes; /* NULL: all of it */
    const uint8_t *table_jumps;    /* a bit for each instruction */
    bool *functions;               /* see struct tokens */
    struct arena *arena;
    struct table *keys;
    struct buffer key;
    bool *wanted; /* by instruction of the block at hand */
    uint32_t wanted_room;
    struct text text;
};

static struct text text_new(struct arena *arena, size_t room)
{
    return (struct text){.values = arena_new_array(arena, uint32_t, room),
                         .insns = arena_new_array(arena, uint32_t, room),
                         .sizes = arena_new_array(arena, uint8_t, room),
                         .glued = arena_new_array(arena, uint8_t, room)};
}

static void put(struct text *text, uint32_t value, uint32_t insn, uint8_t size,
                bool glued)
{
    uint32_t at = text->count++;
    text->values[at] = value;
    text->insns[at] = insn;
    text->sizes[at] = size;
    text->glued[at] = glued;
}

/* One separator is as good as many. */
static void separate(struct text *text)
{
    if (text->count > 0 && text->insns[text->count - 1] != NO_INDEX) {
        put(text, TOKEN_SEPARATOR, NO_INDEX, 0, false);
    }
}

static void put_insn(struct writer *writer, uint32_t code, uint32_t insn)
{
    uint8_t size = 0;
    writer->key.size = 0;
    if (bit_get(writer->table_jumps, insn) ||
        insn_key(writer->program, code, insn, KEY_EXACT, &writer->key, &size) !=
            REFUSAL_NONE) {
        separate(&writer->text);
        return;
    }
    uint32_t value = table_intern(writer->keys, writer->key.at, writer->key.size);
    put(&writer->text, value, insn, size, insn_is_glued(writer->program, code, insn));
}

static void select_insns(struct writer *writer, uint32_t number)
{
    uint32_t count = writer->program->blocks[number].insn_count;
    if (count > writer->wanted_room) {
        writer->wanted_room = count * 2;
        writer->wanted = arena_new_array(writer->arena, bool, writer->wanted_room);
    }
    changes_select(writer->changes, number, writer->wanted);
}

static void put_block(struct writer *writer, uint32_t code, uint32_t number)
{
    const struct block *block = &writer->program->blocks[number];
    if (writer->changes != NULL) {
        select_insns(writer, number);
    }
    for (uint32_t i = 0; i < block->insn_count; i++) {
        if (writer->changes == NULL || writer->wanted[i]) {
            put_insn(writer, code, block->first_insn + i);
        } else {
            separate(&writer->text);
        }
    }
    separate(&writer->text);
}

static void put_function(struct writer *writer, const struct function *function)
{
    const struct program *program = writer->program;
    if (function->refusal != REFUSAL_NONE ||
        program->code[function->code].refusal != REFUSAL_NONE) {
        return;
    }
    for (uint32_t b = 0; b < function->block_count; b++) {
        put_block(writer, function->code, function->first_block + b);
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

/* --- parts --- */

/* What becomes of a part in the whole. */
struct joint {
    uint32_t start;    /* position */
    uint32_t *numbers; /* of its keys */
};

struct parts {
    struct stretches stretches;
    struct writer *writers;
    struct joint *joints;
    struct text text; /* all of it */
    uint32_t alphabet;
};

static uint32_t insns_in(const struct program *program, struct stretch stretch)
{
    const struct function *first = &program->functions[stretch.first];
    const struct function *last = first + stretch.count - 1;
    return last->first_insn + last->insn_count - first->first_insn;
}

static void write_part(void *context, uint32_t part, uint32_t worker)
{
    const struct parts *parts = context;
    struct writer *writer = &parts->writers[part];
    struct stretch stretch = parts->stretches.items[part];
    writer->arena = arena_new();
    writer->keys = table_new(writer->arena);
    writer->key = buffer_new(writer->arena);
    /* At most a separator behind every instruction. */
    writer->text =
        text_new(writer->arena, (size_t)insns_in(writer->program, stretch) * 2 + 1);
    (void)worker;
    for (uint32_t f = stretch.first; f < stretch.first + stretch.count; f++) {
        uint32_t before = writer->text.count;
        put_function(writer, &writer->program->functions[f]);
        writer->functions[f] = writer->text.count > before;
    }
}

/* A part with anything in it ends in a separator, so that the next one can follow. */
static void place_parts(struct arena *stage, struct parts *parts)
{
    struct table *keys = table_new(stage);
    uint32_t start = 0;
    for (uint32_t p = 0; p < parts->stretches.count; p++) {
        const struct writer *writer = &parts->writers[p];
        uint32_t count = table_count(writer->keys);
        uint32_t *numbers = arena_new_array(stage, uint32_t, count);
        for (uint32_t i = 0; i < count; i++) {
            struct bytes key = table_key(writer->keys, i);
            numbers[i] = table_intern(keys, key.at, key.size);
        }
        parts->joints[p] = (struct joint){start, numbers};
        start += writer->text.count;
    }
    parts->text.count = start;
    parts->alphabet = table_count(keys);
}

static void copy_part(void *context, uint32_t part, uint32_t worker)
{
    const struct parts *parts = context;
    const struct text *from = &parts->writers[part].text, *to = &parts->text;
    struct joint joint = parts->joints[part];
    (void)worker;
    for (uint32_t i = 0; i < from->count; i++) {
        uint32_t value = from->values[i];
        to->values[joint.start + i] =
            value == TOKEN_SEPARATOR ? value : joint.numbers[value];
    }
    memcpy(to->insns + joint.start, from->insns, from->count * sizeof *to->insns);
    memcpy(to->sizes + joint.start, from->sizes, from->count);
    memcpy(to->glued + joint.start, from->glued, from->count);
}

static void make(struct arena *arena, const struct program *program,
                 const struct changes *changes, struct tokens *out)
{
    struct arena *stage = arena_new();
    struct parts parts = {.stretches = program_stretches(stage, program, PART_INSNS)};
    uint32_t count = parts.stretches.count;
    const uint8_t *table_jumps = mark_table_jumps(stage, program);
    bool *functions = arena_new_array(arena, bool, program->function_count);
    parts.writers = arena_new_array(stage, struct writer, count);
    parts.joints = arena_new_array(stage, struct joint, count);
    for (uint32_t p = 0; p < count; p++) {
        parts.writers[p] = (struct writer){.program = program,
                                           .changes = changes,
                                           .table_jumps = table_jumps,
                                           .functions = functions};
    }
    parallel_do(program->workers, count, write_part, &parts);
    place_parts(stage, &parts);
    uint32_t total = parts.text.count;
    parts.text = text_new(arena, total);
    parts.text.count = total;
    parallel_do(program->workers, count, copy_part, &parts);
    for (uint32_t p = 0; p < count; p++) {
        arena_free(parts.writers[p].arena);
    }
    *out = (struct tokens){
        .values = parts.text.values,
        .insns = parts.text.insns,
        .sizes = parts.text.sizes,
        .glued = parts.text.glued,
        .count = total,
        .alphabet = parts.alphabet,
        .functions = functions,
    };
    arena_free(stage);
}

void tokens_make(struct arena *arena, const struct program *program, struct tokens *out)
{
    make(arena, program, NULL, out);
}

void tokens_make_changed(struct arena *arena, const struct program *program,
                         const struct table *old, struct tokens *out)
{
    struct arena *stage = arena_new();
    struct changes changes = changes_find(stage, program, old);
    make(arena, program, &changes, out);
    arena_free(stage);
}
