/* SPDX-License-Identifier: MIT
 *
 * No-ops at random instruction boundaries of every open function: nothing is saved, and
 * everything moves. A position that nobody re-encoded still says where the code was,
 * and the program says so when it runs. So this proves, without any outlining, that the
 * lifter's table of code references is complete, that jump tables have the entries that
 * it thinks, and that unwind tables and call-site tables follow.
 *
 * Seeded, and the same on every machine. How thickly no-ops are strewn differs from
 * function to function, so that near and far references meet both little and much
 * growth. Short fields would not reach across too many of them: where one would not,
 * those in between are thinned out until it does.
 *
 * Nothing is put before a no-op, so that it is plain which one is ours: the last of a
 * row.
 */
#include "outliner/rewrite/rewrite.h"

#include <string.h>

enum {
    THINNEST = 24,   /* a no-op before every 24th instruction, or more often */
    MOST_AT_ONCE = 3 /* no-ops in a row, in units of the target's code alignment */
};

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX */
    return (uint32_t)(*state >> 33);
}

/* --- strewing --- */

/* A no-op may come before this instruction, which is not the first of its function. */
static bool bears_nop(const struct insn *insn)
{
    bool parts = (insn[-1].traits & (INSN_GLUED | INSN_FORBIDDEN)) != 0;
    return !parts && !(insn->traits & (INSN_MARKER | INSN_NOP));
}

struct strewn {
    struct edit *items;
    uint32_t count, capacity;
};

/* jrcxz and loop reach 127 bytes and have no longer form. */
static bool is_cramped(const struct program *program, const struct function *function)
{
    uint8_t far[CODE_BYTES];
    struct code_bytes wide;
    for (uint32_t i = 0; i < function->insn_count; i++) {
        uint32_t number = function->first_insn + i;
        const struct insn *insn = &program->insns[number];
        const uint8_t *bytes = program_bytes(program, number);
        if ((insn->traits & INSN_PC_RELATIVE) && insn_is_resolved(program, number) &&
            !program->target->retarget(bytes, insn->length, 1024, far) &&
            !program->target->widen(bytes, insn->length, &wide))
            return true;
    }
    return false;
}

static void strew_function(struct arena *arena, const struct program *program,
                           const struct function *function, uint64_t *state,
                           struct strewn *out)
{
    uint32_t every = 1 + next_random(state) % THINNEST;
    for (uint32_t i = 1; i < function->insn_count; i++) {
        const struct insn *insn = &program->insns[function->first_insn + i];
        uint32_t units = 1 + next_random(state) % MOST_AT_ONCE;
        if (next_random(state) % every || !bears_nop(insn))
            continue;
        struct edit edit = {.insn = function->first_insn + i,
                            .start = insn->offset,
                            .end = insn->offset,
                            .site = NO_INDEX,
                            .helper = NO_INDEX};
        edit.code.length = (uint8_t)(program->target->code_align * units);
        program->target->emit_padding(edit.code.bytes, edit.code.length);
        array_push(arena, out, edit);
    }
}

/* --- thinning --- */

/* The no-ops of one code section. */
struct strip {
    const struct program *program;
    uint32_t code;
    struct edit *edits; /* a length of 0: dropped */
    uint32_t count;
    uint32_t *growth; /* growth[i]: of all before edits[i]; and of all */
};

static void sum_up(struct strip *strip)
{
    strip->growth[0] = 0;
    for (uint32_t i = 0; i < strip->count; i++)
        strip->growth[i + 1] = strip->growth[i] + strip->edits[i].code.length;
}

/* Number of no-ops at or before an old offset. */
static uint32_t count_until(const struct strip *strip, uint32_t offset)
{
    uint32_t low = 0, high = strip->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (strip->edits[middle].start <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Bytes by which padding between functions may grow between two offsets. */
static uint32_t slack(const struct strip *strip, uint32_t from, uint32_t to)
{
    const struct program *program = strip->program;
    uint32_t first = program_function_at(program, strip->code, from);
    uint32_t last = program_function_at(program, strip->code, to), sum = 0;
    for (uint32_t f = first; f != NO_INDEX && last != NO_INDEX && f < last; f++)
        sum += program->functions[f + 1].align;
    return sum;
}

/* A field somewhere that says a distance between two old offsets. */
struct distance {
    uint32_t from, to;
    const uint8_t *bytes;           /* of an instruction … */
    uint8_t length;                 /* … of this length, or … */
    const struct jump_table *table; /* … in this table */
};

static bool reaches(const struct strip *strip, const struct distance *of, uint32_t more)
{
    uint8_t out[CODE_BYTES];
    struct code_bytes wide;
    const struct target *target = strip->program->target;
    int64_t now = (int64_t)of->to - (int64_t)of->from;
    now += of->to < of->from ? -(int64_t)more : (int64_t)more;
    if (!of->table)
        return target->retarget(of->bytes, of->length, now, out) ||
               target->widen(of->bytes, of->length, &wide);
    int64_t entry = now / ((int64_t)1 << of->table->shift);
    uint32_t bits = of->table->entry_size * 8u;
    return of->table->is_signed ? fits_signed(entry, bits)
                                : entry >= 0 && fits_unsigned((uint64_t)entry, bits);
}

/* Drops every other no-op in between, and again, until the distance can be said. */
static void make_reach(struct strip *strip, const struct distance *of)
{
    uint32_t low = of->from < of->to ? of->from : of->to;
    uint32_t high = of->from < of->to ? of->to : of->from;
    if (strip->count == 0 || reaches(strip, of, strip->growth[strip->count]))
        return;
    uint32_t first = count_until(strip, low), end = count_until(strip, high);
    uint32_t padding = slack(strip, low, high);
    while (strip->growth[end] > strip->growth[first] &&
           !reaches(strip, of, strip->growth[end] - strip->growth[first] + padding)) {
        bool drop = true;
        for (uint32_t i = first; i < end; i++) {
            if (strip->edits[i].code.length && drop)
                strip->edits[i].code.length = 0;
            else if (strip->edits[i].code.length == 0)
                continue;
            drop = !drop;
        }
        sum_up(strip);
    }
}

static void thin_for_code(struct strip *strip)
{
    const struct program *program = strip->program;
    const struct code *code = &program->code[strip->code];
    for (uint32_t f = 0; f < code->function_count; f++) {
        const struct function *function = &program->functions[code->first_function + f];
        for (uint32_t i = 0; i < function->insn_count; i++) {
            uint32_t number = function->first_insn + i;
            const struct insn *insn = &program->insns[number];
            if (!(insn->traits & INSN_PC_RELATIVE) ||
                !insn_is_resolved(program, number))
                continue;
            struct distance distance = {insn->offset, insn->target,
                                        program_bytes(program, number), insn->length,
                                        NULL};
            make_reach(strip, &distance);
        }
    }
}

static void thin_for_tables(struct strip *strip)
{
    const struct program *program = strip->program;
    for (uint32_t t = 0; t < program->table_count; t++) {
        const struct jump_table *table = &program->tables[t];
        const struct insn *jump = &program->insns[table->insn];
        if (table->kind != TABLE_RAW ||
            program->functions[jump->function].code != strip->code)
            continue;
        for (uint32_t i = 0; i < table->count; i++) {
            struct distance distance = {table->base, table->targets[i], NULL, 0, table};
            make_reach(strip, &distance);
        }
    }
}

static uint32_t keep_rest(struct edit *edits, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (edits[i].code.length)
            edits[kept++] = edits[i];
    }
    return kept;
}

/* --- the whole --- */

static void shake_code(struct arena *arena, const struct program *program,
                       uint32_t number, uint32_t seed, struct strewn *out)
{
    const struct code *code = &program->code[number];
    uint32_t first = out->count;
    for (uint32_t f = 0; f < code->function_count; f++) {
        uint32_t index = code->first_function + f;
        const struct function *function = &program->functions[index];
        uint64_t state = ((uint64_t)seed << 32) + index;
        next_random(&state);
        if (function->refusal == REFUSAL_NONE && !is_cramped(program, function))
            strew_function(arena, program, function, &state, out);
    }
    struct strip strip = {program, number, out->items + first, out->count - first,
                          NULL};
    if (strip.count == 0)
        return;
    strip.growth = arena_new_array(arena, uint32_t, strip.count + 1);
    sum_up(&strip);
    thin_for_code(&strip);
    thin_for_tables(&strip);
    out->count = first + keep_rest(strip.edits, strip.count);
}

struct edit_list edits_of_shaking(struct arena *arena, const struct program *program,
                                  uint32_t seed)
{
    struct strewn strewn = {0};
    for (uint32_t c = 0; c < program->code_count; c++)
        shake_code(arena, program, c, seed, &strewn);
    return (struct edit_list){strewn.items, strewn.count};
}

bool program_shake(struct arena *arena, const struct program *program, uint32_t seed,
                   struct objects *out, struct error *err)
{
    struct arena *stage = arena_new();
    struct plan none = {0};
    struct edit_list edits = edits_of_shaking(stage, program, seed);
    struct rewrite_options options = {NO_INDEX, ""};
    bool done = rewrite_with_edits(arena, program, &none, &edits, &options, out, err);
    arena_free(stage);
    return done;
}
