/* SPDX-License-Identifier: MIT
 *
 * All candidates of a program. Repeats that begin with different instructions have
 * nothing to do with each other: the trees below the root of the suffix tree are looked
 * at in parts, on several processors.
 */
#include "mo/parallel.h"
#include "outliner/choose/choose.h"

/* Occurrences that make a part: some milliseconds. */
enum { PART_OCCURRENCES = 64 * 1024 };

struct part {
    uint32_t first, count; /* repeats: whole trees */
    /* A copy of the facts that can make rows of its own. */
    struct facts facts;
    struct program program;
    struct arena *arena; /* of these rows, and of what has been found */
    struct candidates found;
};

struct parts {
    array_of(struct part) items;
    const struct facts *facts;
    struct repeats repeats;
    uint32_t minimum;
};

static void cut(struct arena *stage, struct parts *parts)
{
    uint32_t end = 0; /* of the tree's positions */
    uint64_t occurrences = PART_OCCURRENCES;
    for (uint32_t i = 0; i < parts->repeats.count; i++) {
        const struct repeat *repeat = &parts->repeats.items[i];
        bool is_root = repeat->first >= end;
        end = is_root ? repeat->first + repeat->count : end;
        if (is_root && occurrences >= PART_OCCURRENCES) {
            struct part part = {.first = i};
            array_push(stage, &parts->items, part);
            occurrences = 0;
        }
        parts->items.items[parts->items.count - 1].count++;
        occurrences += repeat->count;
    }
}

static void look_at_part(void *context, uint32_t number, uint32_t worker)
{
    struct parts *parts = context;
    struct part *part = &parts->items.items[number];
    part->arena = arena_new();
    part->program = *parts->facts->program;
    part->program.rows = row_table_over(part->arena, parts->facts->program->rows);
    part->facts = *parts->facts;
    part->facts.program = &part->program;
    part->facts.tail_rows = tail_rows_new(part->arena, &part->program);
    (void)worker;
    struct repeats repeats = parts->repeats;
    repeats.items += part->first;
    repeats.count = part->count;
    candidates_look(part->arena, &part->facts, &repeats, parts->minimum, &part->found);
}

/* Candidates and rows come in the order of the parts. */
static void collect(struct arena *arena, const struct parts *parts,
                    struct candidates *out)
{
    uint32_t count = 0;
    for (uint32_t p = 0; p < parts->items.count; p++) {
        count += parts->items.items[p].found.count;
    }
    array_reserve(arena, out, count);
    for (uint32_t p = 0; p < parts->items.count; p++) {
        struct part *part = &parts->items.items[p];
        row_table_collect(parts->facts->program->rows, part->program.rows);
        for (uint32_t i = 0; i < part->found.count; i++) {
            array_push(arena, out, part->found.items[i]);
        }
        arena_adopt(arena, part->arena);
    }
}

/* --- the whole --- */

struct search {
    struct arena *arena, *stage;
    const struct program *program;
    const struct tokens *tokens;
    const struct plan_options *options;
    struct facts *facts;
    struct parts parts;
};

/* The tree needs the tokens alone, and one processor: others gather the facts. */
static void prepare(void *context, uint32_t part, uint32_t worker)
{
    struct search *search = context;
    const struct tokens *tokens = search->tokens;
    (void)worker;
    if (part == 0) {
        search->parts.repeats =
            suffixtree_repeats(search->stage, tokens->values, tokens->count,
                               tokens->alphabet, search->parts.minimum);
    } else {
        facts_make(search->arena, search->program, tokens, search->options,
                   search->facts);
    }
}

void candidates_make(struct arena *arena, const struct program *program,
                     const struct tokens *tokens, const struct plan_options *options,
                     struct facts *facts, struct candidates *out)
{
    const struct target *target = program->target;
    struct search search = {arena,   arena_new(), program,         tokens,
                            options, facts,       {.facts = facts}};
    /* A single instruction can be longer than a call where lengths differ: on x86-64
     * that is 1 to 12 % of all that is saved. */
    search.parts.minimum = target->code_align < target->call_size ? 1 : 2;
    parallel_do(program->workers, 2, prepare, &search);
    cut(search.stage, &search.parts);
    parallel_do(program->workers, search.parts.items.count, look_at_part,
                &search.parts);
    collect(arena, &search.parts, out);
    arena_free(search.stage);
}
