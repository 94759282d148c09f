/* SPDX-License-Identifier: MIT
 *
 * Jump tables of AArch64: small programs with one, as GCC and Clang write them, and what
 * must not be taken for one.
 */
#include "mo/bytes.h"
#include "mo/program.h"

#include <check.h>
#include <elf.h>
#include <string.h>

#define TARGET       (&target_aarch64)
#define COUNT(array) (int)(sizeof(array) / sizeof((array)[0]))

/* --- a jump table --- */

enum { WORDS = 16 };

static const uint32_t gcc_switch[WORDS] = {
    0x7100081f, /*  0 cmp w0, #2 */
    0x54000148, /*  4 b.hi 2c */
    0x90000001, /*  8 adrp x1, T */
    0x91000021, /*  c add x1, x1, :lo12:T */
    0x38604821, /* 10 ldrb w1, [x1, w0, uxtw] */
    0x10000062, /* 14 adr x2, 20 */
    0x8b218841, /* 18 add x1, x2, w1, sxtb #2 */
    0xd61f0020, /* 1c br x1 */
    0xd65f03c0, /* 20 */
    0xd65f03c0, /* 24 */
    0xd65f03c0, /* 28 */
    0xd65f03c0, /* 2c */
    0xd65f03c0, 0xd65f03c0, 0xd65f03c0, 0xd65f03c0,
};

static const uint32_t clang_switch[WORDS] = {
    0x7100081f, /*  0 cmp w0, #2 */
    0x54000188, /*  4 b.hi 34 */
    0x90000001, /*  8 adrp x1, T */
    0x91000021, /*  c add x1, x1, :lo12:T */
    0x2a0003e8, /* 10 mov w8, w0 */
    0x100000a2, /* 14 adr x2, 28 */
    0x38686823, /* 18 ldrb w3, [x1, x8] */
    0x8b030842, /* 1c add x2, x2, x3, lsl #2 */
    0xd503201f, /* 20 nop */
    0xd61f0040, /* 24 br x2 */
    0xd65f03c0, /* 28 */
    0xd65f03c0, /* 2c */
    0xd65f03c0, /* 30 */
    0xd65f03c0, /* 34 */
    0xd65f03c0, 0xd65f03c0,
};

struct world {
    uint8_t text[4 * WORDS], table[4];
    uint32_t table_size;
    uint64_t table_flags;
    struct reloc relocs[2];
    uint32_t from, to; /* a word changed */
};

/* One function, one table of three entries behind section symbol 1. */
static bool find(const uint32_t *words, struct world *world, uint32_t branch,
                 struct jump_table *out)
{
    struct insn insns[WORDS];
    for (uint32_t i = 0; i < WORDS; i++) {
        store_le(world->text + 4 * i, 4, words[i]);
        if (world->to && world->from == i)
            store_le(world->text + 4 * i, 4, world->to);
        ck_assert(TARGET->decode(world->text + 4 * i, 4, 4 * i, &insns[i]));
    }
    insns[2].traits |= INSN_RELOCATED;
    insns[3].traits |= INSN_RELOCATED;
    insns[3].reloc = 1;
    world->relocs[0] = (struct reloc){8, 0, 1, R_AARCH64_ADR_PREL_PG_HI21};
    world->relocs[1] = (struct reloc){12, 0, 1, R_AARCH64_ADD_ABS_LO12_NC};
    const struct section sections[3] = {
        {.name = ""                               },
        { .name = ".text",
         .type = SHT_PROGBITS,
         .flags = SHF_ALLOC | SHF_EXECINSTR,
         .align = 4,
         .data = {world->text, sizeof world->text},
         .relocs = world->relocs,
         .reloc_count = 2},
        {                     .name = ".rodata",
         .type = SHT_PROGBITS,
         .flags = world->table_flags,
         .align = 1,
         .data = {world->table, world->table_size}},
    };
    const struct symbol symbols[2] = {
        {.name = ""          },
        { .name = "", .section = 2, .type = STT_SECTION}
    };
    const struct object object = {.name = "a.o",
                                  .machine = EM_AARCH64,
                                  .sections = sections,
                                  .section_count = 3,
                                  .symbols = symbols,
                                  .symbol_count = 2};
    const struct object *items[1] = {&object};
    const struct objects objects = {items, 1};
    struct code code = {.section = 1, .function_count = 1};
    struct function function = {
        .symbol = NO_INDEX, .end = 4 * WORDS, .insn_count = WORDS, .fde = NO_INDEX};
    const struct program program = {.objects = &objects,
                                    .target = TARGET,
                                    .code = &code,
                                    .code_count = 1,
                                    .functions = &function,
                                    .function_count = 1,
                                    .insns = insns,
                                    .insn_count = WORDS};
    struct arena *arena = arena_new();
    bool found = TARGET->find_table(arena, &program, branch, out);
    if (found) {
        static uint32_t targets[8];
        ck_assert_uint_le(out->count, 8);
        memcpy(targets, out->targets, out->count * sizeof targets[0]);
        out->targets = targets;
    }
    arena_free(arena);
    return found;
}

static struct world small_world(void)
{
    return (struct world){
        .table = {0, 2, 1},
          .table_size = 3, .table_flags = SHF_ALLOC
    };
}

START_TEST(test_tables)
{
    struct world world = small_world();
    struct jump_table table;
    ck_assert(find(gcc_switch, &world, 7, &table));
    ck_assert_uint_eq(table.count, 3);
    ck_assert_uint_eq(table.base, 0x20);
    ck_assert_uint_eq(table.explains, 5);
    ck_assert(table.is_signed && table.shift == 2 && table.entry_size == 1);
    ck_assert_uint_eq(table.targets[1], 0x28);

    ck_assert(find(clang_switch, &world, 9, &table));
    ck_assert_uint_eq(table.count, 3);
    ck_assert(!table.is_signed);
    ck_assert_uint_eq(table.targets[2], 0x2c);
}
END_TEST

/* One word of the gcc switch changed, so that the table is not certain any more. */
static const struct {
    const char *why;
    uint32_t at, word;
} doubts[] = {
    {"a limit beyond the section",   0,  0x71000c1f}, /* cmp w0, #3 */
    {"another register compared",    0,  0x7100087f}, /* cmp w3, #2 */
    {"a signed limit",               1,  0x5400014c}, /* b.gt */
    {"a way around the compare",     12, 0x17fffff6}, /* 30: b 8 */
    {"the index changed in between", 2,  0x0b000000}, /* add w0, w0, w0 */
    {"another page",                 2,  0xd503201f}, /* no adrp */
    {"a base that is a sum",         5,  0x91000042}, /* add x2, x2, #0 */
    {"an extension of another size", 6,  0x8b21a841}, /* sxth */
    {"an unscaled entry",            6,  0x8b218041}, /* sxtb #0 */
    {"no indirect jump",             7,  0xd65f0020}, /* ret x1 */
};

START_TEST(test_doubts)
{
    struct world world = small_world();
    struct jump_table table;
    world.from = doubts[_i].at;
    world.to = doubts[_i].word;
    ck_assert_msg(!find(gcc_switch, &world, 7, &table), "%s", doubts[_i].why);
}
END_TEST

START_TEST(test_bad_tables)
{
    struct jump_table table;
    struct world world = small_world();
    world.table_flags |= SHF_WRITE;
    ck_assert(!find(gcc_switch, &world, 7, &table));
    world = small_world();
    world.table[1] = 8; /* 0x40, behind the end */
    ck_assert(!find(gcc_switch, &world, 7, &table));
    world.table[1] = 0xff; /* the br itself */
    ck_assert(!find(gcc_switch, &world, 7, &table));
    world.table[1] = 0xf8; /* the compare: that is a loop */
    ck_assert(find(gcc_switch, &world, 7, &table));
    world.table_size = 2;
    ck_assert(!find(gcc_switch, &world, 7, &table));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("aarch64, tables");
    TCase *tests = tcase_create("tables");
    tcase_add_test(tests, test_tables);
    tcase_add_loop_test(tests, test_doubts, 0, COUNT(doubts));
    tcase_add_test(tests, test_bad_tables);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
