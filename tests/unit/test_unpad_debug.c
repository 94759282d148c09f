/* SPDX-License-Identifier: MIT
 *
 * Debug information of a function from which no-ops were dropped. What it said of a
 * position among them, it says of what is behind them; nothing is taken back, and no row
 * of the line table goes. The checker refuses whatever else it could say.
 *
 *     0 xor eax, eax    2 jmp 7    4 nop    5 xchg ax, ax    7 inc eax    9 jne 7    11 ret
 */
#include "mo/debug.h"
#include "mo/plan.h"
#include "test_object.h"

#include <check.h>

static const uint8_t code[] = {0x31, 0xc0, 0xeb, 0x03, 0x90, 0x66,
                               0x90, 0xff, 0xc0, 0x75, 0xfc, 0xc3};
/* By old position: the new one. */
static const uint32_t becomes[] = {0, 1, 2, 3, 4, 4, 4, 4, 5, 6, 7, 8, 9};
enum { CODE_SIZE = sizeof code, NEW_SIZE = 9 };

/* A unit, and in it a label and a block; both have a low_pc, all but the label a high_pc
 * (a length). */
static const uint8_t abbrevs[] = {
    1, 0x11, 1, 0x11, 0x01, 0x12, 0x07, 0x10, 0x17, 0, 0, /* unit */
    2, 0x0a, 0, 0x11, 0x01, 0, 0,                         /* label */
    3, 0x0b, 0, 0x11, 0x01, 0x12, 0x07, 0, 0,             /* lexical block */
    0,
};
enum { LOW = 12, HIGH = 20, LINES = 28, LABEL = 33, BLOCK = 42, BLOCK_HIGH = 50 };
static const uint8_t info[] = {
    0x37, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, /* length, version, abbrevs, size */
    1, 0, 0, 0, 0, 0, 0, 0, 0, CODE_SIZE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /* unit */
    2, 0, 0, 0, 0, 0, 0, 0, 0,                                             /* label */
    3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,                     /* block */
    0,
};
/* Version 4: steps of 1, lines -5 to 8, 13 opcodes; no folders, a file "a". */
#define LINE_HEADER                                                                    \
    4, 0, 0x19, 0, 0, 0, 1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, \
        'a', 0, 0, 0, 0, 0
static const uint8_t lines[] = {
    0x33, 0, 0, 0, LINE_HEADER, 0, 9, 2, 0, 0, 0, 0, 0, 0, 0, 0, /* set_address */
    0x14, 0x4b, 0x21, 0x2f, /* special: lines 3 at 0, 4 at 4, 5 at 5, 6 at 7 */
    2, 5, 0, 1, 1,          /* advance 5; end of sequence */
};
enum { LINES_ADDRESS = 38 };

struct setting {
    uint32_t label, block, block_end;
};

/* The section numbers of every object here. */
enum { TEXT = 1, ABBREV, INFO, LINE };

static struct sketch *make(struct arena *arena, struct setting place)
{
    struct sketch *a = sketch_new(arena, "a.o");
    sketch_section(a, ".text", SHF_ALLOC | SHF_EXECINSTR, code, sizeof code);
    sketch_section(a, ".debug_abbrev", 0, abbrevs, sizeof abbrevs);
    sketch_section(a, ".debug_info", 0, info, sizeof info);
    sketch_section(a, ".debug_line", 0, lines, sizeof lines);
    uint32_t text = sketch_symbol(a, "", STB_LOCAL, TEXT, 0, 0);
    uint32_t shape = sketch_symbol(a, "", STB_LOCAL, ABBREV, 0, 0);
    uint32_t line = sketch_symbol(a, "", STB_LOCAL, LINE, 0, 0);
    uint32_t f = sketch_symbol(a, "f", STB_GLOBAL, TEXT, 0, CODE_SIZE);
    a->symbols[f].type = STT_FUNC;
    sketch_reloc(a, INFO, 6, shape, R_X86_64_32, 0);
    sketch_reloc(a, INFO, LOW, text, R_X86_64_64, 0);
    sketch_reloc(a, INFO, LINES, line, R_X86_64_32, 0);
    sketch_reloc(a, INFO, LABEL, text, R_X86_64_64, place.label);
    sketch_reloc(a, INFO, BLOCK, text, R_X86_64_64, place.block);
    sketch_reloc(a, LINE, LINES_ADDRESS, text, R_X86_64_64, 0);
    uint8_t *at = (uint8_t *)(uintptr_t)a->sections[INFO].data.at;
    at[BLOCK_HIGH] = (uint8_t)(place.block_end - place.block);
    return a;
}

static struct objects unpad(struct arena *arena, const struct objects *before)
{
    struct error err = {0};
    struct program *program;
    struct lift_options lift = {.drop_alignment = true};
    struct objects out = *before;
    bool more;
    ck_assert_msg(program_lift(arena, before, row_table_new(arena), &lift, &program,
                               &err) &&
                      program_unpad(arena, program, &out, &more, &err),
                  "%s", err.message);
    ck_assert(more);
    ck_assert_uint_eq(out.items[0]->sections[TEXT].data.size, NEW_SIZE);
    return out;
}

static const uint32_t starts[] = {0, 2, 4, 5, 7, 9, 11}; /* of instructions */

/* All labels, and all blocks that are not empty. */
START_TEST(positions)
{
    struct arena *arena = arena_new();
    uint32_t start = starts[_i];
    for (uint32_t end = start + 1; end <= CODE_SIZE; end++) {
        struct setting place = {start, start, end};
        struct sketch *sketch = make(arena, place);
        const struct object *items[] = {&sketch->object};
        struct objects before = {items, 1}, after = unpad(arena, &before);
        struct error err = {0};
        ck_assert_msg(unpad_verify(&before, &after, 1, &err), "%d to %d: %s",
                      (int)start, (int)end, err.message);
        struct debug debug;
        debug_read(arena, after.items[0], &debug);
        ck_assert_msg(debug.refused[0] == REFUSAL_NONE, "%s", debug.whys[0]);
        ck_assert_uint_eq(debug.point_count, 3); /* of unit, label, block */
        ck_assert_uint_eq(debug.points[1].role, DEBUG_LABEL);
        ck_assert_uint_eq(debug.points[1].position, becomes[start]);
        ck_assert_uint_eq(debug.range_count, 2);
        ck_assert_uint_eq(debug.ranges[0].start, 0);
        ck_assert_uint_eq(debug.ranges[0].end, NEW_SIZE);
        ck_assert_uint_eq(debug.ranges[1].start, becomes[start]);
        ck_assert_uint_eq(debug.ranges[1].end, becomes[end]);
    }
    arena_free(arena);
}
END_TEST

START_TEST(rows)
{
    static const uint32_t wanted[][2] = {{0, 3}, {4, 4}, {4, 5}, {4, 6}};
    struct arena *arena = arena_new();
    struct sketch *sketch = make(arena, (struct setting){0, 0, CODE_SIZE});
    const struct object *items[] = {&sketch->object};
    struct objects before = {items, 1}, after = unpad(arena, &before);
    struct debug debug;
    debug_read(arena, after.items[0], &debug);
    const struct debug_sequence *sequence = debug.lines[0].sequences;
    ck_assert_uint_eq(sequence->last, NEW_SIZE);
    ck_assert_uint_eq(sequence->row_count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert_uint_eq(sequence->rows[i].position, wanted[i][0]);
        ck_assert_uint_eq(sequence->rows[i].line, wanted[i][1]);
        ck_assert(sequence->rows[i].is_stmt);
    }
    arena_free(arena);
}
END_TEST

/* --- what the checker refuses --- */

static const char *const flaws[] = {
    "",
    "the label lies before the no-ops",
    "the label lies behind what was behind them",
    "the block begins before them",
    "the block ends later",
    "the unit ends earlier",
    "the label is gone",
    "another line",
    "a row is another one",
};

static struct reloc *reloc_at(const struct object *object, uint64_t offset)
{
    const struct section *section = &object->sections[INFO];
    for (uint32_t i = 0; i < section->reloc_count; i++) {
        if (section->relocs[i].offset == offset)
            return (struct reloc *)(uintptr_t)&section->relocs[i];
    }
    ck_abort_msg("no relocation");
    return NULL;
}

/* Takes the relocation of the label out: its address is 0 then. */
static void drop_label(const struct object *object)
{
    struct section *section = (struct section *)(uintptr_t)&object->sections[INFO];
    struct reloc *label = reloc_at(object, LABEL);
    size_t behind = (size_t)(section->relocs + section->reloc_count - (label + 1));
    memmove(label, label + 1, behind * sizeof *label);
    section->reloc_count--;
}

static void plant(const char *flaw, const struct object *object)
{
    uint8_t *at = (uint8_t *)(uintptr_t)object->sections[INFO].data.at;
    uint8_t *row = (uint8_t *)(uintptr_t)object->sections[LINE].data.at;
    uint64_t size = object->sections[LINE].data.size;
#define IS(text) (strcmp(flaw, text) == 0)
    if (IS("the label lies before the no-ops"))
        reloc_at(object, LABEL)->addend = 2;
    if (IS("the label lies behind what was behind them"))
        reloc_at(object, LABEL)->addend = 6;
    if (IS("the block begins before them"))
        reloc_at(object, BLOCK)->addend = 2;
    if (IS("the block ends later"))
        at[BLOCK_HIGH] += 2;
    if (IS("the unit ends earlier"))
        at[HIGH]--;
    if (IS("the label is gone"))
        drop_label(object);
    for (uint64_t i = LINES_ADDRESS + 8; i < size; i++) {
        if (row[i] == 0x4b && IS("another line"))
            row[i]++;
        if (row[i] == 0x4b && IS("a row is another one"))
            row[i] = 0x01; /* DW_LNS_copy: once more the row before it */
    }
#undef IS
}

START_TEST(lies)
{
    const char *flaw = flaws[_i];
    struct arena *arena = arena_new();
    struct sketch *sketch = make(arena, (struct setting){5, 5, 9});
    const struct object *items[] = {&sketch->object};
    struct objects before = {items, 1}, after = unpad(arena, &before);
    plant(flaw, after.items[0]);
    struct error err = {0};
    bool same = unpad_verify(&before, &after, 1, &err);
    ck_assert_msg(same == (*flaw == '\0'), "'%s': %s", flaw, err.message);
    arena_free(arena);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("unpad, debug information");
    TCase *tests = tcase_create("unpad");
    tcase_add_loop_test(tests, positions, 0, sizeof starts / sizeof *starts);
    tcase_add_test(tests, rows);
    tcase_add_loop_test(tests, lies, 0, sizeof flaws / sizeof *flaws);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
