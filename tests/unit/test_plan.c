/* SPDX-License-Identifier: MIT
 *
 * The choice: each rule of legality with a case that it refuses, sites that never
 * overlap, the same plan every time.
 */
#include "toy_program.h"

#include <check.h>
#include <stdlib.h>

static struct plan plan_with(struct toy *toy, const struct plan_options *options)
{
    struct tokens tokens;
    struct plan plan;
    const struct program *program = toy_program(toy);
    tokens_make(toy->arena, program, false, &tokens);
    plan_make(toy->arena, program, &tokens, options, &plan);
    return plan;
}

static struct plan plan_of(struct toy *toy, bool no_veneers)
{
    struct plan_options options = {.minimum_saving = 1, .no_veneers = no_veneers};
    return plan_with(toy, &options);
}

/* --- legality --- */

/* A body of eight instructions, with one of them replaced, in six functions that differ
 * otherwise. Rows are numbers of the table below. */
enum { BODY = 8, COPIES = 6 };
enum { ROW_SAME, ROW_ENTRY, ROW_SAVED, ROW_SAVED_19, ROW_FRAME };

struct rule_case {
    const char *what;
    bool pushes;          /* the machine's calls push */
    uint32_t at;          /* which instruction of the body … */
    struct toy_insn insn; /* … is this one */
    bool link_live, veneer_live, red_zone, scratch, signs, no_rows, marks;
    uint32_t row_before, row_at; /* from the start; from `at` on */
    bool no_veneers;
    int form;        /* of the sites that hold `at`, or -1: there are none */
    uint32_t length; /* of the helper; 0: any */
};

#define CALL                                                                           \
    {                                                                                  \
        .op = 7, .flow = FLOW_CALL, .defs = 1u << TOY_LINK, .reloc = TOY_CALL,         \
        .symbol = TOY_EXT, .traits = INSN_PC_RELATIVE                                  \
    }
#define CALL_INDIRECT                                                                  \
    {                                                                                  \
        .op = 7, .flow = FLOW_CALL_INDIRECT, .defs = 1u << TOY_LINK                    \
    }
#define RETURN                                                                         \
    {                                                                                  \
        .op = 6, .flow = FLOW_RETURN, .uses = 1u << TOY_LINK                           \
    }
#define LAST (BODY - 1)

/* clang-format off */
static const struct rule_case rule_cases[] = {
    {"plain", .row_before = ROW_SAVED, .insn = {.op = 50}, .form = FORM_PLAIN, .length = BODY},
    {"plain, calls push", .pushes = true, .row_before = ROW_ENTRY, .insn = {.op = 50}, .form = FORM_PLAIN},
    {"no unwind table", .no_rows = true, .insn = {.op = 50}, .form = FORM_PLAIN},
    {"link live, says the code alone", .row_before = ROW_SAVED, .link_live = true, .insn = {.op = 50}, .form = FORM_SAVE_STACK},
    {"row finds the link register live", .row_before = ROW_FRAME, .insn = {.op = 50}, .form = -1},
    {"link live, scratch", .row_before = ROW_ENTRY, .scratch = true, .insn = {.op = 50}, .form = FORM_SAVE_REGISTER},
    {"link live, stack", .row_before = ROW_ENTRY, .insn = {.op = 50}, .form = FORM_SAVE_STACK},
    {"link live, signs", .row_before = ROW_ENTRY, .signs = true, .insn = {.op = 50}, .form = -1},
    {"link live, stack, no rows", .no_rows = true, .link_live = true, .insn = {.op = 50}, .form = FORM_SAVE_STACK},
    {"link read", .row_before = ROW_SAVED, .at = LAST, .insn = {.op = 50, .uses = 1u << TOY_LINK}, .form = -1},
    {"veneer", .row_before = ROW_SAVED, .veneer_live = true, .insn = {.op = 50}, .form = -1},
    {"veneer promised away", .row_before = ROW_SAVED, .veneer_live = true, .no_veneers = true, .insn = {.op = 50}, .form = FORM_PLAIN},
    {"red zone", .pushes = true, .row_before = ROW_ENTRY, .red_zone = true, .insn = {.op = 50}, .form = -1},
    {"no red zone to write to", .row_before = ROW_SAVED, .red_zone = true, .insn = {.op = 50}, .form = FORM_PLAIN},
    {"SP moves", .row_before = ROW_SAVED, .at = LAST, .insn = {.op = 50, .traits = INSN_SP_ADJUST}, .form = -1},
    {"SP from frame", .row_before = ROW_SAVED, .at = LAST, .insn = {.op = 50, .traits = INSN_SP_FROM_FRAME}, .form = -1},
    {"SP opaque", .row_before = ROW_SAVED, .at = LAST, .insn = {.op = 50, .traits = INSN_SP_OPAQUE}, .form = -1},
    {"SP, not described", .row_before = ROW_SAVED, .at = LAST, .insn = {.op = 50, .uses = 1u << TOY_SP}, .form = -1},
    {"below SP", .row_before = ROW_SAVED, .at = LAST, .insn = {.op = 50, .traits = INSN_BELOW_SP}, .form = -1},
    {"signs", .row_before = ROW_SAVED, .at = LAST, .insn = {.op = 50, .traits = INSN_SIGNS}, .form = -1},
    {"glued end", .row_before = ROW_SAVED, .at = LAST, .insn = {.op = 50, .traits = INSN_GLUED}, .form = -1},
    {"SP shifted", .pushes = true, .row_before = ROW_ENTRY, .insn = {.op = 50, .traits = INSN_SP_MEMORY}, .form = FORM_PLAIN},
    {"SP cannot be shifted", .pushes = true, .row_before = ROW_ENTRY, .insn = {.op = 0xff, .traits = INSN_SP_MEMORY}, .form = -1},
    {"no shift needed", .row_before = ROW_SAVED, .insn = {.op = 0xff, .traits = INSN_SP_MEMORY}, .form = FORM_PLAIN},
    {"stack shift needed", .row_before = ROW_ENTRY, .insn = {.op = 0xff, .traits = INSN_SP_MEMORY}, .form = -1},
    {"thunk", .row_before = ROW_SAVED, .at = LAST, .insn = CALL, .form = FORM_THUNK, .length = BODY},
    {"thunk with link live", .no_rows = true, .link_live = true, .at = LAST, .insn = CALL, .form = -1},
    {"thunk, indirect", .row_before = ROW_SAVED, .at = LAST, .insn = CALL_INDIRECT, .form = FORM_THUNK},
    {"thunk, indirect, landing marks", .row_before = ROW_SAVED, .marks = true, .at = LAST, .insn = CALL_INDIRECT, .form = -1},
    {"inner call", .row_before = ROW_SAVED, .at = 4, .insn = CALL, .form = FORM_THUNK, .length = 5},
    {"tail", .row_before = ROW_ENTRY, .at = LAST, .insn = RETURN, .form = FORM_TAIL},
    {"tail with a red zone", .pushes = true, .red_zone = true, .row_before = ROW_ENTRY, .at = LAST, .insn = RETURN, .form = FORM_TAIL},
    {"tail with veneer", .veneer_live = true, .row_before = ROW_ENTRY, .at = LAST, .insn = RETURN, .form = -1},
    {"register saved", .row_before = ROW_SAVED, .at = 4, .row_at = ROW_SAVED_19, .insn = {.op = 50}, .form = FORM_PLAIN, .length = BODY},
    {"register saved, then written", .row_before = ROW_SAVED, .at = 4, .row_at = ROW_SAVED_19, .insn = {.op = 50, .defs = 1u << 19}, .form = FORM_PLAIN, .length = BODY},
    {"register saved, then written, and a call", .row_before = ROW_SAVED, .at = LAST, .row_at = ROW_SAVED_19, .insn = {.op = 7, .flow = FLOW_CALL, .defs = 1u << TOY_LINK | 1u << 19}, .form = -1},
    {"register restored", .row_before = ROW_SAVED_19, .at = 4, .row_at = ROW_SAVED, .insn = {.op = 50, .defs = 1u << 19}, .form = FORM_PLAIN},
    {"thunk that moves the CFA", .row_before = ROW_SAVED, .at = 4, .row_at = ROW_ENTRY, .insn = CALL, .form = -1},
};
/* clang-format on */

static void make_rows(struct toy *toy, uint32_t *rows)
{
    /* Row 0 means "no change" in a toy: burn it. */
    toy_row(toy, 31, 1000, false, false);
    rows[ROW_ENTRY] = toy_row(toy, 31, 0, false, false);
    rows[ROW_SAVED] = toy_row(toy, 31, 32, true, false);
    rows[ROW_SAVED_19] = toy_row(toy, 31, 32, true, true);
    rows[ROW_FRAME] = toy_row(toy, 29, 32, false, false);
    rows[ROW_SAME] = 0;
}

static void make_copy(struct toy *toy, const struct rule_case *rule,
                      const uint32_t *rows, uint8_t copy)
{
    struct toy_insn insns[BODY + 2] = {{.op = (uint8_t)(100 + copy)}};
    struct toy_insn *body = insns + 1;
    for (uint8_t i = 0; i < BODY; i++)
        body[i] = (struct toy_insn){.op = (uint8_t)(10 + i)};
    insns[BODY + 1].op = (uint8_t)(120 + copy);
    body[rule->at] = rule->insn;
    insns[0].row = rows[rule->row_before];
    if (rule->row_at != ROW_SAME)
        body[rule->at].row = rows[rule->row_at];
    uint32_t traits = (rule->link_live ? INSN_LINK_LIVE : 0) |
                      (rule->veneer_live ? INSN_VENEER_LIVE : 0);
    for (uint32_t i = 0; i < BODY; i++)
        body[i].traits |= traits;
    if (rule->scratch)
        insns[0].defs = 1u << 9;
    uint32_t count = body[LAST].flow == FLOW_RETURN ? BODY + 1 : BODY + 2;
    struct function *function = toy_function(toy, !rule->no_rows, insns, count);
    function->red_zone = rule->red_zone;
    function->signs = rule->signs;
}

/* The helper whose first occurrence holds the instruction in question. */
static const struct helper *helper_around(const struct plan *plan, uint32_t insn)
{
    for (uint32_t h = 0; h < plan->helper_count; h++) {
        const struct helper *helper = &plan->helpers[h];
        uint32_t first = helper->stays ? helper->stays_at
                                       : plan->sites[helper->first_site].insn;
        if (first <= insn && insn < first + helper->length)
            return helper;
    }
    return NULL;
}

START_TEST(legality)
{
    const struct rule_case *rule = &rule_cases[_i];
    struct toy *toy = toy_new(rule->pushes);
    uint32_t rows[ROW_FRAME + 1];
    make_rows(toy, rows);
    if (rule->marks)
        toy->unit.features = 1;
    for (uint8_t copy = 0; copy < COPIES; copy++)
        make_copy(toy, rule, rows, copy);
    struct plan plan = plan_of(toy, rule->no_veneers);
    const struct helper *helper = helper_around(&plan, 1 + rule->at);
    if (rule->form < 0) {
        bool all = helper != NULL && helper->length == BODY;
        /* A rule that forbids the whole may leave a part. */
        ck_assert_msg(helper == NULL || (rule->row_at != ROW_SAME && !all), "%s",
                      rule->what);
    } else {
        ck_assert_msg(helper != NULL, "%s", rule->what);
        int form = plan.sites[helper->first_site].form;
        ck_assert_msg(form == rule->form, "%s: %s", rule->what,
                      form_name((enum form)form));
        ck_assert_msg(helper->site_count + helper->stays == COPIES, "%s", rule->what);
        ck_assert_msg(rule->length == 0 || helper->length == rule->length, "%s",
                      rule->what);
        uint32_t end = form == FORM_THUNK || form == FORM_TAIL ? 0 : 4;
        ck_assert_uint_eq(helper->body_size,
                          helper->stays ? 0 : helper->length * 4 + end);
    }
    arena_free(toy->arena);
}
END_TEST

/* --- tails and rows --- */

START_TEST(tails_part_by_row)
{
    struct toy *toy = toy_new(false);
    uint32_t rows[ROW_FRAME + 1];
    make_rows(toy, rows);
    for (uint8_t copy = 0; copy < 8; copy++) {
        struct toy_insn insns[] = {{.op = (uint8_t)(100 + copy)},
                                   {.op = 1},
                                   {.op = 2},
                                   {.op = 3},
                                   {.op = 4},
                                   {.op = 5},
                                   RETURN};
        insns[0].row = rows[copy % 2 == 0 ? ROW_SAVED : ROW_SAVED_19];
        insns[5].row = rows[ROW_ENTRY];
        insns[1].traits = INSN_SP_ADJUST;
        toy_function(toy, copy != 7, insns, 7);
    }
    struct plan_options options = {.minimum_saving = 1, .without = TECHNIQUE_STAY};
    struct plan plan = plan_with(toy, &options);
    ck_assert_uint_eq(plan.helper_count, 2);
    for (uint32_t h = 0; h < 2; h++) {
        const struct helper *helper = &plan.helpers[h];
        ck_assert(helper->tail);
        ck_assert_uint_eq(helper->length, 6);
        const struct row *entry = row_get(toy->program.rows, helper->entry_row);
        ck_assert_int_eq(entry->cfa_offset, 32);
        ck_assert((row_rule(entry, 19) == NULL) == (helper->site_count == 4));
        for (uint32_t i = 0; i < helper->site_count; i++) {
            uint32_t copy = plan.sites[helper->first_site + i].insn / 7;
            ck_assert_uint_ne(copy, 7);
            ck_assert_uint_eq(copy % 2, helper->site_count == 4 ? 0 : 1);
        }
    }
    ck_assert_uint_ne(plan.helpers[0].hash, plan.helpers[1].hash);
    arena_free(toy->arena);
}
END_TEST

/* The return address has been signed and stored, and the rows say so behind the payload
 * only. Where the code shows no store, the old row is what an unwinder goes by. */
START_TEST(signed_late)
{
    bool stored = _i == 0, calls = _i == 2;
    struct toy *toy = toy_new(false);
    uint32_t rows[ROW_FRAME + 1];
    make_rows(toy, rows);
    struct row saved = *row_get(toy->program.rows, rows[ROW_SAVED]);
    saved.ra_signed = true;
    uint32_t row_signed = row_intern(toy->program.rows, &saved);
    for (uint8_t copy = 0; copy < 8; copy++) {
        struct toy_insn insns[] = {{.op = (uint8_t)(100 + copy), .row = rows[ROW_ENTRY]},
                                   {.op = 1},
                                   {.op = 2},
                                   {.op = 3},
                                   {.op = 4},
                                   {.op = 5},
                                   {.op = (uint8_t)(200 + copy), .row = row_signed}};
        if (stored || calls) {
            insns[0].uses = 1u << TOY_LINK;
            insns[0].traits = INSN_SP_ADJUST;
        }
        if (calls)
            insns[5] = (struct toy_insn)CALL;
        toy_function(toy, true, insns, 7);
    }
    struct plan_options options = {.minimum_saving = 1};
    struct plan plan = plan_with(toy, &options);
    uint32_t longest = 0;
    for (uint32_t h = 0; h < plan.helper_count; h++) {
        bool all = plan.helpers[h].length > longest;
        longest = all ? plan.helpers[h].length : longest;
    }
    if (stored)
        ck_assert_uint_eq(longest, 5);
    else
        ck_assert_uint_lt(longest, 5);
    arena_free(toy->arena);
}
END_TEST

/* --- the whole --- */

/* Random code over few opcodes: repeats everywhere, tandem ones too. */
static struct toy *random_toy(uint32_t seed, uint32_t opcodes)
{
    struct toy *toy = toy_new(false);
    uint32_t rows[ROW_FRAME + 1];
    make_rows(toy, rows);
    for (uint32_t f = 0; f < 40; f++) {
        struct toy_insn insns[60] = {0};
        for (uint32_t i = 0; i < 60; i++) {
            seed = seed * 1664525 + 1013904223;
            insns[i].op = (uint8_t)(10 + (seed >> 16) % opcodes);
            if ((seed >> 8) % 16 == 0)
                insns[i] = (struct toy_insn)CALL;
        }
        insns[0].row = rows[ROW_SAVED];
        insns[59] = (struct toy_insn)RETURN;
        toy_function(toy, true, insns, 60);
    }
    return toy;
}

static void check_disjoint(const struct toy *toy, const struct plan *of)
{
    const struct plan plan = *of;
    uint8_t *taken = arena_alloc(toy->arena, toy->program.insn_count);
    ck_assert_uint_gt(plan.helper_count, 0);
    for (uint32_t h = 0; h < plan.helper_count; h++) {
        const struct helper *helper = &plan.helpers[h];
        ck_assert_uint_ge(helper->site_count + helper->stays, 2);
        ck_assert_int_gt(helper->saving, 0);
        for (uint32_t i = 0; i < helper->site_count; i++) {
            const struct site *site = &plan.sites[helper->first_site + i];
            ck_assert(i == 0 || site[-1].insn < site->insn);
            for (uint32_t k = 0; k < helper->length; k++)
                ck_assert_uint_eq(taken[site->insn + k]++, 0);
        }
    }
    /* What stays in place stays whole. */
    for (uint32_t h = 0; h < plan.helper_count; h++) {
        const struct helper *helper = &plan.helpers[h];
        for (uint32_t k = 0; helper->stays && k < helper->length; k++)
            ck_assert_uint_eq(taken[helper->stays_at + k], 0);
    }
}

static int64_t saving_of(const struct plan *plan)
{
    int64_t saving = 0;
    for (uint32_t h = 0; h < plan->helper_count; h++)
        saving += plan->helpers[h].saving;
    return saving;
}

START_TEST(sites_are_disjoint)
{
    struct toy *toy = random_toy((uint32_t)_i, (uint32_t)_i + 1);
    struct plan_options options = {
        .minimum_saving = 1, .effort = 1, .without = TECHNIQUE_JOIN};
    struct plan greedy = plan_with(toy, &options);
    check_disjoint(toy, &greedy);
    options.effort = 2;
    struct plan relaxed = plan_with(toy, &options);
    check_disjoint(toy, &relaxed);
    ck_assert_int_ge(saving_of(&relaxed), saving_of(&greedy));
    arena_free(toy->arena);
}
END_TEST

/* "a; b; c" and "x; b; c" in turns: "b; c" has no body of its own beside "a; b; c". */
START_TEST(helpers_join)
{
    for (uint32_t without = 0; without <= TECHNIQUE_JOIN; without += TECHNIQUE_JOIN) {
        struct toy *toy = toy_new(false);
        uint32_t rows[ROW_FRAME + 1];
        make_rows(toy, rows);
        for (uint8_t copy = 0; copy < 12; copy++) {
            struct toy_insn insns[] = {{.op = (uint8_t)(100 + copy)},
                                       {.op = 1},
                                       {.op = 2},
                                       {.op = 3},
                                       {.op = 4},
                                       {.op = 5},
                                       {.op = (uint8_t)(150 + copy)},
                                       {.op = (uint8_t)(200 + copy)}};
            insns[0].row = rows[ROW_SAVED];
            if (copy >= 6)
                insns[1].op = insns[2].op = (uint8_t)(50 + copy);
            toy_function(toy, true, insns, 8);
        }
        struct plan_options options = {.minimum_saving = 1, .without = without};
        struct plan plan = plan_with(toy, &options);
        uint32_t joins = 0;
        for (uint32_t h = 0; h < plan.helper_count; h++) {
            const struct helper *helper = &plan.helpers[h];
            joins += helper->joins;
            if (helper->joins) {
                const struct helper *other = &plan.helpers[helper->joined];
                ck_assert(helper_has_body(other) && helper->body_size == 0);
                ck_assert_uint_eq(helper->joins_at + helper->length, other->length);
            }
        }
        ck_assert_uint_eq(plan.helper_count, 2);
        ck_assert_uint_eq(joins, without ? 0 : 1);
        arena_free(toy->arena);
    }
}
END_TEST

/* "a; b; c; d" six times, and one "c; d", which alone pays for nothing: it joins. Not in
 * front of a pair's second half, nor where a veneer would do harm. */
static const struct {
    const char *what;
    uint32_t traits, before, without;
    bool joins;
} leftover_cases[] = {
    {"it joins", 0, 0, 0, true},
    {"not wanted", 0, 0, TECHNIQUE_LEFTOVERS, false},
    {"no joins, no leftovers", 0, 0, TECHNIQUE_JOIN, false},
    {"parted", 0, INSN_GLUED, 0, false},
    {"veneer", INSN_VENEER_LIVE, 0, 0, false},
};

START_TEST(leftovers_join)
{
    struct toy *toy = toy_new(false);
    uint32_t rows[ROW_FRAME + 1];
    make_rows(toy, rows);
    for (uint8_t copy = 0; copy < 7; copy++) {
        struct toy_insn insns[] = {
            {.op = (uint8_t)(100 + copy)}, {.op = 1}, {.op = 2}, {.op = 3},
            {.op = 4},                     {.op = (uint8_t)(200 + copy)}};
        insns[0].row = rows[ROW_SAVED];
        if (copy == 6) {
            insns[1].op = 50;
            insns[2].op = 51;
            insns[2].traits = leftover_cases[_i].before;
            insns[3].traits = leftover_cases[_i].traits;
        }
        toy_function(toy, true, insns, 6);
    }
    struct plan_options options = {.minimum_saving = 1,
                                   .without = leftover_cases[_i].without};
    struct plan plan = plan_with(toy, &options);
    ck_assert_uint_eq(plan.helper_count, leftover_cases[_i].joins ? 2 : 1);
    for (uint32_t h = 0; h < plan.helper_count; h++) {
        const struct helper *helper = &plan.helpers[h];
        ck_assert_uint_eq(helper->site_count, helper->joins ? 1 : 6);
        ck_assert_uint_eq(helper->length, helper->joins ? 2 : 4);
        ck_assert_uint_eq(helper->joins_at, helper->joins ? 2 : 0);
    }
    arena_free(toy->arena);
}
END_TEST

/* --- tails that stay in place --- */

struct stay_case {
    const char *what;
    bool grouped, apart;
    const char *section;
    bool stays;
};

static const struct stay_case stay_cases[] = {
    {"plain code", false, false, ".text", true},
    {"a section that may be dropped", false, false, ".text.f", false},
    {"a group", true, false, ".text", false},
    {"several objects", false, true, ".text", false},
};

START_TEST(tails_stay)
{
    const struct stay_case *one = &stay_cases[_i];
    struct toy *toy = toy_new(false);
    uint32_t rows[ROW_FRAME + 1];
    make_rows(toy, rows);
    for (uint8_t copy = 0; copy < 4; copy++) {
        struct toy_insn insns[] = {{.op = (uint8_t)(100 + copy), .row = rows[ROW_ENTRY]},
                                   {.op = 1},
                                   {.op = 2},
                                   {.op = 3},
                                   {.op = 4},
                                   RETURN};
        toy_function(toy, true, insns, 6);
    }
    struct plan_options options = {.minimum_saving = 1, .apart = one->apart};
    toy->sections[TOY_TEXT].name = one->section;
    toy->sections[TOY_TEXT].group = one->grouped ? 0 : NO_INDEX;
    struct plan plan = plan_with(toy, &options);
    ck_assert_msg(plan.helper_count == 1, "%s", one->what);
    ck_assert_msg(plan.helpers[0].stays == one->stays, "%s", one->what);
    ck_assert_uint_eq(plan.site_count, one->stays ? 3 : 4);
    ck_assert_uint_eq(plan.helpers[0].body_size, one->stays ? 0 : 20);
    ck_assert_int_eq(plan.helpers[0].saving, one->stays ? 3 * 16 : 4 * 16 - 20 - 4);
    arena_free(toy->arena);
}
END_TEST

START_TEST(same_every_time)
{
    struct toy *one = random_toy(7, 4), *two = random_toy(7, 4);
    struct plan a = plan_of(one, false), b = plan_of(two, false);
    ck_assert_uint_eq(a.helper_count, b.helper_count);
    ck_assert_uint_eq(a.site_count, b.site_count);
    for (uint32_t h = 0; h < a.helper_count; h++) {
        ck_assert_uint_eq(a.helpers[h].hash, b.helpers[h].hash);
        ck_assert_uint_eq(a.helpers[h].first_site, b.helpers[h].first_site);
        for (uint32_t i = 0; i < h; i++)
            ck_assert_uint_ne(a.helpers[h].hash, a.helpers[i].hash);
    }
    for (uint32_t i = 0; i < a.site_count; i++)
        ck_assert_uint_eq(a.sites[i].insn, b.sites[i].insn);
    arena_free(one->arena);
    arena_free(two->arena);
}
END_TEST

/* One block of equal instructions is the worst that can happen to a suffix tree's user.
 */
START_TEST(long_run)
{
    enum { RUN = 20000 };
    struct toy *toy = toy_new(true);
    struct toy_insn *insns = calloc(RUN, sizeof *insns);
    for (uint32_t i = 0; i < RUN; i++)
        insns[i].op = 1;
    toy_function(toy, false, insns, RUN);
    struct plan plan = plan_of(toy, false);
    ck_assert_uint_gt(plan.helper_count, 0);
    ck_assert_int_gt(plan.helpers[0].saving, RUN * 3);
    free(insns);
    arena_free(toy->arena);
}
END_TEST

START_TEST(nothing_to_do)
{
    struct toy *toy = toy_new(false);
    struct toy_insn insns[] = {{.op = 1}, {.op = 2}, RETURN};
    toy_function(toy, false, insns, 3);
    struct plan plan = plan_of(toy, false);
    ck_assert_uint_eq(plan.helper_count, 0);
    ck_assert_uint_eq(plan.site_count, 0);
    arena_free(toy->arena);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 60);
    tcase_add_loop_test(all, legality, 0, sizeof rule_cases / sizeof *rule_cases);
    tcase_add_test(all, tails_part_by_row);
    tcase_add_loop_test(all, signed_late, 0, 3);
    tcase_add_loop_test(all, sites_are_disjoint, 0, 12);
    tcase_add_loop_test(all, tails_stay, 0, sizeof stay_cases / sizeof *stay_cases);
    tcase_add_test(all, helpers_join);
    tcase_add_loop_test(all, leftovers_join, 0, sizeof leftover_cases / sizeof *leftover_cases);
    tcase_add_test(all, same_every_time);
    tcase_add_test(all, long_run);
    tcase_add_test(all, nothing_to_do);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
