/* SPDX-License-Identifier: MIT
 *
 * The program as one string of integers, for the suffix tree. An instruction that may
 * move gets the number of its key (key.c); one that may not ends the piece of code
 * before it, as the end of a block does: a separator, which is no part of any repeat.
 * So every repeat of the string is a sequence within one block whose instructions may
 * all move.
 *
 * The string is written in parts, each to a place with room for the longest that it can
 * be. Every worker has a numbering of its own. Then the parts are moved together, and
 * keys get the numbers that they keep: in the order in which they appear, whoever came
 * across them.
 */
#include "mo/parallel.h"
#include "outliner/choose/choose.h"

#include <string.h>

/* Instructions of a part: some milliseconds. */
enum { PART_INSNS = 32 * 1024 };

/* The string, or a part of it: see struct tokens. */
struct text {
    uint32_t *values, *insns;
    uint8_t *sizes, *glued;
    uint32_t count;
};

struct part {
    struct text text;
    uint32_t worker; /* whose numbers it has */
};

struct writer {
    struct arena *arena;
    struct table *keys;
    struct buffer key;
};

struct job {
    const struct program *program;
    const bool *wanted;         /* by instruction index; NULL: all */
    const uint8_t *dispatches;  /* a bit for each instruction */
    bool *functions;            /* see struct tokens */
    struct stretches stretches;
    struct part *parts;
    struct writer writers[MOST_WORKERS];
};

static struct text text_new(struct arena *arena, uint32_t room)
{
    return (struct text){.values = array_room(arena, room, sizeof(uint32_t)),
                         .insns = array_room(arena, room, sizeof(uint32_t)),
                         .sizes = array_room(arena, room, sizeof(uint8_t)),
                         .glued = array_room(arena, room, sizeof(uint8_t))};
}

static struct text text_from(const struct text *text, uint32_t start)
{
    return (struct text){text->values + start, text->insns + start, text->sizes + start,
                         text->glued + start, 0};
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

static void put_insn(const struct job *job, struct writer *writer, uint32_t code,
                     uint32_t insn, struct text *text)
{
    struct token token;
    writer->key.size = 0;
    if ((job->wanted != NULL && !job->wanted[insn]) ||
        bit_get(job->dispatches, insn) ||
        insn_key(job->program, code, insn, KEY_EXACT, &writer->key, &token) !=
            REFUSAL_NONE) {
        separate(text);
        return;
    }
    uint32_t value = table_intern(writer->keys, writer->key.at, writer->key.size);
    put(text, value, insn, token.size, token.glued);
}

static void put_function(const struct job *job, struct writer *writer,
                         const struct function *function, struct text *text)
{
    const struct program *program = job->program;
    if (function->refusal != REFUSAL_NONE ||
        program->code[function->code].refusal != REFUSAL_NONE) {
        return;
    }
    for (uint32_t b = 0; b < function->block_count; b++) {
        const struct block *block = &program->blocks[function->first_block + b];
        if (job->wanted != NULL &&
            memchr(job->wanted + block->first_insn, true, block->insn_count) == NULL) {
            continue;
        }
        for (uint32_t i = 0; i < block->insn_count; i++) {
            put_insn(job, writer, function->code, block->first_insn + i, text);
        }
        separate(text);
    }
}

/* Instructions that make the address which a jump through a table goes to: the sum of
 * the table's address and an entry, the one that reads the entry, … */
enum { DISPATCH_INSNS = 3 };

static void mark_dispatch(const struct program *program, uint32_t jump, uint8_t *bits)
{
    uint64_t wanted = program->insns[jump].uses;
    uint32_t left = DISPATCH_INSNS;
    for (uint32_t i = jump;
         left > 0 && i > 0 && (program->insns[i].traits & INSN_LEADER) == 0; i--) {
        const struct insn *before = &program->insns[i - 1];
        if ((before->defs & wanted) != 0) {
            bit_set(bits, i - 1);
            wanted = (wanted & ~before->defs) | before->uses;
            left--;
        }
    }
}

/* The jumps; and what leads to them, for a later round: with that in helpers it would not
 * find the tables, and a section with entries that nobody understands stays as it is. */
static const uint8_t *mark_dispatches(struct arena *arena,
                                      const struct program *program, bool again)
{
    uint8_t *bits = arena_alloc(arena, program->insn_count / 8 + 1);
    for (uint32_t i = 0; i < program->table_count; i++) {
        bit_set(bits, program->tables[i].insn);
        if (again) {
            mark_dispatch(program, program->tables[i].insn, bits);
        }
    }
    return bits;
}

/* --- parts --- */

/* A token for each instruction, or a separator; and one behind each block. But behind
 * every separator there is a token before the next one. */
static uint32_t most_tokens(const struct job *job, struct stretch stretch)
{
    const struct function *first = &job->program->functions[stretch.first];
    const struct function *last = first + stretch.count - 1;
    uint32_t insns = last->first_insn + last->insn_count - first->first_insn;
    uint32_t blocks = last->first_block + last->block_count - first->first_block;
    uint32_t wanted = job->wanted == NULL ? insns : 0;
    for (uint32_t i = 0; job->wanted != NULL && i < insns; i++) {
        wanted += job->wanted[first->first_insn + i];
    }
    return insns + blocks < 2 * wanted ? insns + blocks : 2 * wanted;
}

static struct text place_parts(struct arena *arena, struct job *job)
{
    uint32_t count = job->stretches.count, room = 0;
    uint32_t *starts = arena_new_array(arena, uint32_t, count);
    for (uint32_t p = 0; p < count; p++) {
        starts[p] = room;
        room += most_tokens(job, job->stretches.items[p]);
    }
    struct text text = text_new(arena, room);
    for (uint32_t p = 0; p < count; p++) {
        job->parts[p].text = text_from(&text, starts[p]);
    }
    return text;
}

static void write_part(void *context, uint32_t number, uint32_t worker)
{
    struct job *job = context;
    struct part *part = &job->parts[number];
    struct writer *writer = &job->writers[worker];
    struct stretch stretch = job->stretches.items[number];
    if (writer->arena == NULL) {
        *writer = (struct writer){.arena = arena_new()};
        writer->keys = table_new(writer->arena);
        writer->key = buffer_new(writer->arena);
    }
    part->worker = worker;
    for (uint32_t f = stretch.first; f < stretch.first + stretch.count; f++) {
        uint32_t before = part->text.count;
        put_function(job, writer, &job->program->functions[f], &part->text);
        job->functions[f] = part->text.count > before;
    }
}

/* By worker, and by its numbers: one number for each key. */
static uint32_t **unite_keys(struct arena *stage, const struct job *job,
                             uint32_t *count)
{
    uint32_t **numbers = arena_new_array(stage, uint32_t *, MOST_WORKERS);
    struct table *all =
        NULL; /* the first numbering that there is, with the others' keys */
    for (uint32_t w = 0; w < MOST_WORKERS; w++) {
        struct table *keys = job->writers[w].keys;
        uint32_t key_count = keys == NULL ? 0 : table_count(keys);
        all = all == NULL ? keys : all;
        numbers[w] = arena_new_array(stage, uint32_t, key_count);
        for (uint32_t i = 0; i < key_count; i++) {
            struct bytes key = table_key(keys, i);
            numbers[w][i] = keys == all ? i : table_intern(all, key.at, key.size);
        }
    }
    *count = all == NULL ? 0 : table_count(all);
    return numbers;
}

/* The parts side by side, in the numbering that depends on the string alone. A part
 * with anything in it ends in a separator, so that the next one can follow. Returns how
 * many numbers there are. */
static uint32_t join_parts(struct arena *stage, const struct job *job,
                           struct text *text)
{
    uint32_t count, next = 0;
    uint32_t *const *numbers = unite_keys(stage, job, &count);
    uint32_t *order = arena_new_array(stage, uint32_t, count); /* plus 1; 0: none yet */
    for (uint32_t p = 0; p < job->stretches.count; p++) {
        const struct text *part = &job->parts[p].text;
        const uint32_t *number = numbers[job->parts[p].worker];
        struct text to = text_from(text, text->count);
        memmove(to.insns, part->insns, part->count * sizeof *to.insns);
        memmove(to.sizes, part->sizes, part->count);
        memmove(to.glued, part->glued, part->count);
        for (uint32_t i = 0; i < part->count; i++) {
            uint32_t value = part->values[i];
            if (value != TOKEN_SEPARATOR) {
                uint32_t *at = &order[number[value]];
                *at = *at != 0 ? *at : ++next;
                value = *at - 1;
            }
            to.values[i] = value;
        }
        text->count += part->count;
    }
    return next;
}

static void make(struct arena *arena, const struct program *program, bool again,
                 const bool *wanted, struct tokens *out)
{
    struct arena *stage = arena_new();
    struct job *job = arena_new_one(stage, struct job);
    job->program = program;
    job->wanted = wanted;
    job->dispatches = mark_dispatches(stage, program, again);
    job->functions = arena_new_array(arena, bool, program->function_count);
    job->stretches = program_stretches(stage, program, PART_INSNS);
    job->parts = arena_new_array(stage, struct part, job->stretches.count);
    struct text text = place_parts(arena, job);
    parallel_do(program->workers, job->stretches.count, write_part, job);
    uint32_t alphabet = join_parts(stage, job, &text);
    for (uint32_t w = 0; w < MOST_WORKERS; w++) {
        arena_free(job->writers[w].arena);
    }
    *out = (struct tokens){
        .values = text.values,
        .insns = text.insns,
        .sizes = text.sizes,
        .glued = text.glued,
        .count = text.count,
        .alphabet = alphabet,
        .functions = job->functions,
    };
    arena_free(stage);
}

void tokens_make(struct arena *arena, const struct program *program, bool again,
                 struct tokens *out)
{
    make(arena, program, again, NULL, out);
}

void tokens_make_changed(struct arena *arena, const struct program *program, bool again,
                         const struct table *old, struct tokens *out)
{
    struct arena *stage = arena_new();
    make(arena, program, again, changes_find(stage, program, old), out);
    arena_free(stage);
}
