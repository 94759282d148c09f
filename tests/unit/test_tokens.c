/* SPDX-License-Identifier: MIT
 *
 * Tokens: what is equal, what is not, and what may not move at all.
 */
#include "toy_program.h"

#include "mo/table.h"

#include <check.h>

/* Tokens of a function that holds just these instructions. */
static struct tokens tokens_of(struct toy *toy, const struct toy_insn *insns,
                               uint32_t count)
{
    struct tokens tokens;
    toy_function(toy, false, insns, count);
    tokens_make(toy->arena, toy_program(toy), false, &tokens);
    return tokens;
}

#define REF(type, sym)                                                                 \
    {                                                                                  \
        .op = 1, .defs = 1, .reloc = TOY_##type, .symbol = TOY_##sym                   \
    }

/* Two instructions with something between them that belongs to neither. */
/* clang-format off */
static const struct {
    const char *what;
    struct toy_insn a, b;
    bool equal;
} pairs[] = {
    {"same bytes",                  {.op = 1},       {.op = 1},                    true                                    },
    {"other bytes",                 {.op = 1},       {.op = 2},                    false                                   },
    {"same symbol",                 REF(CALL,        EXT),                         REF(CALL,                                 EXT), true},
    {"other symbol",                         REF(CALL,                                        EXT),                                                       REF(CALL,                                                               OTHER), false},
    {"other type",                     REF(PC,                              EXT),REF(ABSOLUTE,EXT), false},
    {"relocated or not",   REF(ABSOLUTE,EXT),   {.op = 1, .defs = 1},                                                               false},
    {"a hint means nothing",                             REF(HINT,                           EXT),                                         {.op = 1, .defs = 1},                                                                                             true},
    {"equal strings",                        REF(PC,                                       STRING_A),                                              REF(PC,STRING_B), true},
    {"equal strings, halves apart",         REF(LOW,                    STRING_A),        REF(LOW,STRING_B), false},
    {"ends of equal strings",
     {.op = 1, .reloc = TOY_PC, .symbol = TOY_STRING_A, .addend = 5},
     {.op = 1, .reloc = TOY_PC, .symbol = TOY_STRING_B, .addend = 5},
     false},
    {"string and place",                    REF(PC,STRING_A),REF(PC,              DATA), false},
    {"other addend",
     {.op = 1, .reloc = TOY_PC, .symbol = TOY_DATA},
     {.op = 1, .reloc = TOY_PC, .symbol = TOY_DATA, .addend = 8},
     false                          },
    {"glued or not",                        {.op = 1},                                       {.op = 1, .traits = INSN_GLUED},                                                  false                                                                },
};

START_TEST(equality)
{
    struct toy *toy = toy_new(false);
    struct toy_insn insns[] = {pairs[_i].a, {.op = 9}, pairs[_i].b, {.op = 9}};
    struct tokens tokens = tokens_of(toy, insns, 4);
    ck_assert_msg(tokens.count == 5, "%s", pairs[_i].what);
    bool equal = tokens.values[0] == tokens.values[2];
    ck_assert_msg(equal == pairs[_i].equal, "%s", pairs[_i].what);
    ck_assert_uint_eq(tokens.insns[4], NO_INDEX);
    ck_assert_uint_eq(tokens.sizes[0], 4);
    arena_free(toy->arena);
}
END_TEST

/* clang-format off */
static const struct {
    const char *what;
    struct toy_insn insn;
    bool moves;
} singles[] = {
    {"plain",                 {.op = 1},                                              true },
    {"pinned",                {.op = 1, .traits = INSN_PINNED},                       false},
    {"marker",                {.op = 1, .traits = INSN_MARKER},                       false},
    {"exclusive",             {.op = 1, .traits = INSN_EXCLUSIVE},                    false},
    {"forbidden",             {.op = 1, .traits = INSN_FORBIDDEN},                    false},
    {"no-op",                 {.op = 1, .traits = INSN_NOP},                          false},
    {"branch",                {.op = 1, .flow = FLOW_BRANCH},                         false},
    {"stop",                  {.op = 1, .flow = FLOW_STOP},                           false},
    {"jump inside",
     {.op = 1, .flow = FLOW_JUMP, .traits = INSN_PC_RELATIVE, .target = 1 + 4},
     false                                                                                 },
    {"jump to own start",
     {.op = 1, .flow = FLOW_JUMP, .traits = INSN_PC_RELATIVE, .target = 1},
     false                                                                                 },
    {"recursive call",
     {.op = 1, .flow = FLOW_CALL, .traits = INSN_PC_RELATIVE, .target = 1},
     true                                                                                  },
    {"inner label",           {.op = 1, .traits = INSN_PC_RELATIVE, .target = 1 + 4}, false},
    {"target unknown",        {.op = 1, .traits = INSN_PC_RELATIVE},                  false},
    {"tail call",
     {.op = 1,
      .flow = FLOW_JUMP,
      .traits = INSN_PC_RELATIVE,
      .reloc = TOY_CALL,
      .symbol = TOY_EXT},
     true                                                                                  },
    {"thread-local",          {.op = 1, .reloc = TOY_TLS, .symbol = TOY_EXT},         false},
    {"unknown relocation",    {.op = 1, .reloc = 99, .symbol = TOY_EXT},              false},
    {"short reach",           {.op = 1, .reloc = TOY_NARROW, .symbol = TOY_EXT},      false},
    {"in a group",            {.op = 1, .reloc = TOY_PC, .symbol = TOY_GROUPED},      false},
    {"page of the GOT alone",
     {.op = 1, .reloc = TOY_GOT_PAGE, .symbol = TOY_EXT},
     false                                                                                 },
    {"the other half alone",  {.op = 1, .reloc = TOY_GOT_LOW, .symbol = TOY_EXT},     false},
};

START_TEST(mobility)
{
    struct toy *toy = toy_new(false);
    struct toy_insn insns[] = {singles[_i].insn, {.op = 9}};
    struct tokens tokens = tokens_of(toy, insns, 2);
    ck_assert_msg((tokens.insns[0] == 0) == singles[_i].moves, "%s", singles[_i].what);
    arena_free(toy->arena);
}
END_TEST

/* A string's two halves side by side are compared by contents, and must stay together.
 */
START_TEST(string_pairs)
{
    struct toy *toy = toy_new(false);
    struct toy_insn insns[] = {REF(PAGE, STRING_A),
                               REF(LOW, STRING_A),
                               {.op = 9},
                               REF(PAGE, STRING_B),
                               REF(LOW, STRING_B)};
    struct tokens tokens = tokens_of(toy, insns, 5);
    ck_assert_uint_eq(tokens.values[0], tokens.values[3]);
    ck_assert_uint_eq(tokens.values[1], tokens.values[4]);
    ck_assert(tokens.glued[0] && !tokens.glued[1] && tokens.glued[3]);
    arena_free(toy->arena);
}
END_TEST

/* Mergeable bytes that a relocation fills say nothing. */
START_TEST(strings_with_relocations)
{
    struct toy *toy = toy_new(false);
    struct toy_insn insns[] = {REF(PC, STRING_A), {.op = 9}, REF(PC, STRING_B)};
    toy->sections[TOY_STRINGS].reloc_count = 1;
    struct tokens tokens = tokens_of(toy, insns, 3);
    ck_assert_uint_ne(tokens.values[0], tokens.values[2]);
    arena_free(toy->arena);
}
END_TEST

START_TEST(sealed_code_has_no_tokens)
{
    struct toy *toy = toy_new(false);
    struct toy_insn insns[] = {{.op = 1}, {.op = 2}};
    toy_function(toy, false, insns, 2)->refusal = REFUSAL_KEEP;
    struct tokens tokens = tokens_of(toy, insns, 2);
    ck_assert_uint_eq(tokens.count, 3);
    ck_assert_uint_eq(tokens.insns[0], 2);
    arena_free(toy->arena);
}
END_TEST

/* A jump through a table is no token, and before another round neither is what makes the
 * address that it goes to, as far as its block shows it. */
START_TEST(dispatches_stay)
{
    struct toy *toy = toy_new(false);
    struct toy_insn insns[] = {{.op = 1}, {.op = 2}, {.op = 3}, {.op = 4},
                               {.op = 5, .flow = FLOW_JUMP_INDIRECT}};
    struct jump_table table = {.insn = 4};
    toy_function(toy, false, insns, 5);
    const struct program *program = toy_program(toy);
    struct insn *at = toy->insns.items;
    at[4].uses = at[3].defs = 1u << 1;
    at[3].uses = at[1].defs = 1u << 2;
    at[0].defs = at[2].defs = 1u << 3;
    at[1].uses = 0;
    toy->program.tables = &table;
    toy->program.table_count = 1;
    struct tokens tokens;
    tokens_make(toy->arena, program, false, &tokens);
    ck_assert_uint_eq(tokens.count, 4 + 1);
    tokens_make(toy->arena, program, true, &tokens);
    ck_assert_uint_eq(tokens.count, 2 + 2);
    ck_assert_uint_eq(tokens.insns[0], 0);
    ck_assert_uint_eq(tokens.insns[2], 2);
    arena_free(toy->arena);
}
END_TEST

/* Code of a named section shares with nobody outside. */
START_TEST(section_names)
{
    struct toy *toy = toy_new(false);
    struct toy_insn insn = {.op = 1};
    uint32_t *value = arena_new_array(toy->arena, uint32_t, 2);
    struct tokens tokens = tokens_of(toy, &insn, 1);
    value[0] = tokens.sizes[0];
    toy->sections[TOY_TEXT].name = ".text.hot";
    tokens_make(toy->arena, toy_program(toy), false, &tokens);
    ck_assert_uint_eq(tokens.count, 2);
    toy->sections[TOY_TEXT].name = ".ramfunc";
    tokens_make(toy->arena, toy_program(toy), false, &tokens);
    ck_assert_uint_eq(tokens.count, 2);
    ck_assert_uint_eq(value[0], tokens.sizes[0]);
    arena_free(toy->arena);
}
END_TEST

static struct tokens changed_tokens(struct toy *toy, const struct table *old)
{
    struct tokens tokens;
    tokens_make_changed(toy->arena, &toy->program, false, old, &tokens);
    return tokens;
}

/* What an earlier round left alone is not looked at again; a call to a helper is new
 * once, and with it what stands beside it twice. */
START_TEST(sites_are_changes)
{
    struct toy *toy = toy_new(false);
    struct table *old = table_new(toy->arena);
    struct toy_insn call = {
        .op = 1, .flow = FLOW_CALL, .reloc = TOY_CALL, .symbol = TOY_EXT};
    struct toy_insn one[] = {{.op = 1}, call, {.op = 2}, {.op = 5}};
    struct toy_insn two[] = {{.op = 6}, {.op = 1}, call, {.op = 2}};
    toy_function(toy, false, one, 1);
    toy_function(toy, false, one, 4);
    toy_function(toy, false, two, 4);
    toy_program(toy);
    ck_assert_uint_eq(changed_tokens(toy, old).count, 0);
    toy->symbols[TOY_EXT].name = HELPER_PREFIX "0123";
    struct tokens tokens = changed_tokens(toy, old);
    ck_assert_uint_eq(tokens.count, 3 + 1 + 3 + 1);
    ck_assert_uint_eq(tokens.insns[0], 1);
    ck_assert_uint_eq(tokens.insns[4], 1 + 4 + 1);
    ck_assert(!tokens.functions[0] && tokens.functions[1] && tokens.functions[2]);
    helpers_note(old, &toy->objects); /* it is defined elsewhere */
    ck_assert_uint_eq(changed_tokens(toy, old).count, 3 + 1 + 3 + 1);
    toy->symbols[TOY_EXT].section = TOY_TEXT;
    helpers_note(old, &toy->objects);
    ck_assert_uint_eq(changed_tokens(toy, old).count, 0);
    arena_free(toy->arena);
}
END_TEST

/* All of a helper, and elsewhere the pairs of instructions that it holds. */
START_TEST(helpers_are_changes)
{
    struct toy *toy = toy_new(false);
    struct table *old = table_new(toy->arena);
    struct toy_insn helper[] = {{.op = 1}, {.op = 2}, {.op = 3, .flow = FLOW_RETURN}};
    struct toy_insn other[] = {{.op = 4}, {.op = 1}, {.op = 2}, {.op = 4}, {.op = 3}};
    toy_function(toy, false, helper, 3)->symbol = TOY_EXT;
    toy->symbols[TOY_EXT].name = HELPER_PREFIX "0123";
    toy_function(toy, false, other, 5);
    toy_program(toy);
    struct code codes[] = {toy->code, toy->code};
    codes[0].helpers = true;
    codes[0].function_count = codes[1].function_count = codes[1].first_function = 1;
    toy->functions.items[1].code = 1;
    toy->program.code = codes;
    struct tokens tokens = changed_tokens(toy, old);
    ck_assert_uint_eq(tokens.count, 3 + 1 + 2 + 1);
    ck_assert_uint_eq(tokens.insns[4], 3 + 1);
    ck_assert_uint_eq(tokens.insns[5], 3 + 2);
    ck_assert_uint_eq(tokens.values[0], tokens.values[4]);
    table_intern_string(old, HELPER_PREFIX "0123");
    ck_assert_uint_eq(changed_tokens(toy, old).count, 0);
    arena_free(toy->arena);
}
END_TEST

/* A jump to where others join a function: some tail stayed there for them. */
START_TEST(tails_that_stay_are_changes)
{
    struct toy *toy = toy_new(false);
    struct table *old = table_new(toy->arena);
    struct toy_insn tail[] = {{.op = 1}, {.op = 2}, {.op = 3, .flow = FLOW_RETURN}};
    struct toy_insn jump[] = {{.op = 4}, {.op = 5, .flow = FLOW_JUMP, .target = 1}};
    toy_function(toy, false, tail, 3);
    toy_function(toy, false, jump, 2);
    toy_program(toy);
    /* The whole function: so it was in the input. */
    ck_assert_uint_eq(changed_tokens(toy, old).count, 0);
    toy->insns.items[0].traits |= INSN_JOINED;
    struct tokens tokens = changed_tokens(toy, old);
    ck_assert(tokens.functions[0] && tokens.functions[1]);
    toy->insns.items[4].target = 4; /* not where they do */
    ck_assert(!changed_tokens(toy, old).functions[1]);
    arena_free(toy->arena);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tokens");
    TCase *all = tcase_create("all");
    tcase_add_loop_test(all, equality, 0, sizeof pairs / sizeof *pairs);
    tcase_add_loop_test(all, mobility, 0, sizeof singles / sizeof *singles);
    tcase_add_test(all, string_pairs);
    tcase_add_test(all, strings_with_relocations);
    tcase_add_test(all, sealed_code_has_no_tokens);
    tcase_add_test(all, dispatches_stay);
    tcase_add_test(all, section_names);
    tcase_add_test(all, sites_are_changes);
    tcase_add_test(all, helpers_are_changes);
    tcase_add_test(all, tails_that_stay_are_changes);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
