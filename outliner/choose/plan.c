/* SPDX-License-Identifier: MIT
 *
 * From what has been chosen to the plan: helpers in the order in which they will lie,
 * each with a name made of what it is.
 */
#include "mo/parallel.h"
#include "outliner/choose/choose.h"

#include <assert.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

const char *form_name(enum form form)
{
    static const char *const names[FORM_COUNT] = {"plain", "save-register",
                                                  "save-stack", "thunk", "tail"};
    return form < FORM_COUNT ? names[form] : "unknown";
}

static void put_row(struct buffer *key, const struct row *row)
{
    buffer_u32(key, row->cfa_register);
    buffer_u64(key, (uint64_t)row->cfa_offset);
    buffer_put(key, row->cfa_expression.at, row->cfa_expression.size);
    for (uint32_t i = 0; i < row->rule_count; i++) {
        const struct rule *rule = &row->rules[i];
        buffer_u32(key, rule->column);
        buffer_u32(key, rule->kind);
        buffer_u64(key, (uint64_t)rule->value);
        buffer_put(key, rule->expression.at, rule->expression.size);
    }
    buffer_u8(key, row->ra_signed);
    buffer_u64(key, row->args_size);
}

/* Of everything that makes the helper what it is, in words that another build uses,
 * too. */
static uint64_t hash_of(struct buffer *key, const struct facts *facts,
                        const struct candidate *candidate, const struct helper *helper)
{
    const struct program *program = facts->program;
    key->size = 0;
    uint32_t first = candidate->sites[0].insn;
    uint32_t code = program->functions[facts->at[first].function].code;
    buffer_string(key, program_section(program, code)->name);
    buffer_u8(key, (uint8_t)candidate->payload.kind);
    buffer_u32(key, helper->stack_shift);
    if (!helper->tail) {
        buffer_u64(key, site_key(facts, &candidate->payload, &candidate->sites[0]));
    }
    for (uint32_t i = 0; i < helper->length; i++) {
        struct token token;
        enum refusal refusal =
            insn_key(program, code, first + i, KEY_STABLE, key, &token);
        assert(refusal == REFUSAL_NONE);
        if (helper->tail && facts->at[first + i].row != ROW_NONE) {
            put_row(key, row_get(program->rows, facts->at[first + i].row));
        }
    }
    return hash_bytes(key->at, key->size);
}

static uint32_t entry_row_of(const struct facts *facts,
                             const struct candidate *candidate)
{
    const struct program *program = facts->program;
    if (candidate->payload.kind == PAYLOAD_TAIL) {
        const struct site *first = &candidate->sites[0];
        return tail_row(facts->tail_rows, facts->at[first->insn].row,
                        site_settled(facts, &candidate->payload, first));
    }
    for (uint32_t i = 0; i < candidate->site_count; i++) {
        if (facts->at[candidate->sites[i].insn].row != ROW_NONE) {
            return row_at_entry(program->rows, program->target->machine);
        }
    }
    return ROW_NONE;
}

static uint32_t shift_of(const struct target *target, const struct candidate *candidate)
{
    if (candidate->payload.kind == PAYLOAD_TAIL) {
        return 0;
    }
    if (candidate->payload.inner) {
        return (uint32_t)target->call_pushes + target->align_shift;
    }
    bool stacked =
        candidate->payload.uses_sp && candidate->sites[0].form == FORM_SAVE_STACK;
    return target->call_pushes + (stacked ? (uint32_t)target->save_stack_shift : 0);
}

static struct entry entry_of(const struct facts *facts,
                             const struct candidates *candidates, uint32_t index)
{
    const struct candidate *candidate = &candidates->items[index];
    struct entry entry = {.candidate = index};
    entry.helper = (struct helper){
        .length = candidate->payload.length,
        .site_count = candidate->site_count,
        .stack_shift = shift_of(facts->program->target, candidate),
        .tail = candidate->payload.kind == PAYLOAD_TAIL,
        .thunk = candidate->payload.kind == PAYLOAD_THUNK,
        .inner = candidate->payload.inner,
        .stays = candidate->stays_at != NO_INDEX,
        .stays_at = candidate->stays_at,
        .entry_row = entry_row_of(facts, candidate),
        .settled = site_settled(facts, &candidate->payload, &candidate->sites[0]),
        .body_size = candidate->stays_at == NO_INDEX
                         ? cost_body(&candidate->payload, &candidate->sites[0])
                         : 0,
        .saving = candidate->saving,
    };
    /* Those without unwind ranges, then those with the plain row, those that push
     * something, then tails by row, and those without a body. */
    entry.group = entry.helper.tail ? 3 : entry.helper.inner ? 2 : 1;
    if (entry.helper.entry_row == ROW_NONE) {
        entry.group = 0;
    }
    if (entry.helper.stays) {
        entry.group = 4;
    }
    return entry;
}

/* Helpers that make a part: about a millisecond. */
enum { PART_HELPERS = 1024 };

struct namer {
    const struct facts *facts;
    const struct candidates *candidates;
    struct entry *entries; /* one for each of them */
    struct arena **arenas; /* by worker */
};

static void hash_part(void *context, uint32_t part, uint32_t worker)
{
    const struct namer *namer = context;
    struct buffer key = buffer_new(namer->arenas[worker]);
    uint32_t first = part * PART_HELPERS, count = namer->candidates->count;
    uint32_t end = count - first < PART_HELPERS ? count : first + PART_HELPERS;
    for (uint32_t i = first; i < end; i++) {
        struct helper *helper = &namer->entries[i].helper;
        helper->hash =
            hash_of(&key, namer->facts, &namer->candidates->items[i], helper);
    }
}

static struct entry *entries_make(struct arena *stage, const struct facts *facts,
                                  const struct candidates *candidates)
{
    uint32_t workers = facts->program->workers, count = candidates->count;
    struct entry *entries = arena_new_array(stage, struct entry, count);
    for (uint32_t i = 0; i < count; i++) {
        entries[i] = entry_of(facts, candidates, i);
    }
    struct namer namer = {facts, candidates, entries, parallel_arenas(stage, workers)};
    parallel_do(workers, (count + PART_HELPERS - 1) / PART_HELPERS, hash_part, &namer);
    parallel_adopt(stage, namer.arenas, workers);
    return entries;
}

static int compare_entries(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    if (a->group != b->group) {
        return a->group < b->group ? -1 : 1;
    }
    if (a->helper.entry_row != b->helper.entry_row) {
        return a->helper.entry_row < b->helper.entry_row ? -1 : 1;
    }
    if (a->helper.site_count != b->helper.site_count) {
        return a->helper.site_count > b->helper.site_count ? -1 : 1;
    }
    if (a->helper.hash != b->helper.hash) {
        return a->helper.hash < b->helper.hash ? -1 : 1;
    }
    return (a->candidate > b->candidate) - (a->candidate < b->candidate);
}

/* Names are made from hashes: equal ones (helpers that differ in indices only, such as
 * two units' static functions at one offset) are told apart by their order. */
static void part_hashes(struct arena *stage, struct entry *entries, uint32_t count)
{
    struct table *seen = table_new(stage);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t *hash = &entries[i].helper.hash;
        while (table_find(seen, hash, sizeof *hash) != NO_INDEX) {
            ++*hash;
        }
        table_intern(seen, hash, sizeof *hash);
    }
}

static void put_plan(struct arena *arena, const struct candidates *candidates,
                     const struct entry *entries, uint32_t count, bool short_branches,
                     struct plan *out)
{
    uint32_t site_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        site_count += entries[i].helper.site_count;
    }
    struct helper *helpers = arena_new_array(arena, struct helper, count);
    struct site *sites = arena_new_array(arena, struct site, site_count);
    uint32_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct candidate *candidate = &candidates->items[entries[i].candidate];
        helpers[i] = entries[i].helper;
        helpers[i].first_site = at;
        memcpy(sites + at, candidate->sites, candidate->site_count * sizeof *sites);
        at += candidate->site_count;
    }
    *out = (struct plan){
        .helpers = helpers,
        .helper_count = count,
        .sites = sites,
        .site_count = site_count,
        .short_branches = short_branches,
    };
}

/* Most candidates have not been chosen: nobody looks at them any more. */
static void drop_others(struct candidates *candidates)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < candidates->count; i++) {
        if (candidates->items[i].chosen) {
            candidates->items[kept++] = candidates->items[i];
        }
    }
    candidates->count = kept;
}

void plan_make(struct arena *arena, const struct program *program,
               const struct tokens *tokens, const struct plan_options *options,
               struct plan *out)
{
    struct arena *stage = arena_new();
    struct facts facts;
    struct candidates candidates = {0};
    candidates_make(stage, program, tokens, options, &facts, &candidates);
    int64_t bound;
    relax(stage, &facts, &candidates, &bound);
    int64_t saving = chosen_saving(&candidates);
    drop_others(&candidates);
    const uint32_t *positions = positions_of_insns(stage, &facts);
    ends_take(stage, &facts, positions, &candidates);
    struct entry *entries = entries_make(stage, &facts, &candidates);
    uint32_t count = candidates.count;
    qsort(entries, count, sizeof *entries, compare_entries);
    part_hashes(stage, entries, count);
    entries_join(stage, &facts, positions, &candidates, entries, count);
    put_plan(arena, &candidates, entries, count,
             (options->without & TECHNIQUE_SHORT) == 0, out);
    out->choice_saving = saving;
    out->choice_bound = bound;
    arena_free(stage);
}
