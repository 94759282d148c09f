/* SPDX-License-Identifier: MIT
 *
 * Debug information: which positions are found, that line programs say after writing what
 * they were told, that the checker sees a lie, and that damage is refused.
 */
#include "mo/debug.h"
#include "mo/plan.h"
#include "test_object.h"

#include <check.h>
#include <stdlib.h>

/* --- one small object --- */

/* A unit with low_pc and high_pc (a length), a line program, and a child of each kind: a
 * label, a variable in rbx. */
static const uint8_t abbrevs[] = {
    1, 0x11, 1, 0x11, 0x01, 0x12, 0x07, 0x10, 0x17, 0, 0, /* unit */
    2, 0x0a, 0, 0x11, 0x01, 0, 0,                         /* label */
    3, 0x34, 0, 0x02, 0x18, 0x0b, 0x0b, 0, 0,             /* variable, byte_size */
    0,
};
enum { INFO_LOW = 12, INFO_HIGH = 20, INFO_LINES = 28, INFO_LABEL = 33 };
static const uint8_t info[] = {
    0x2a, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8,          /* length, version, abbrevs, size */
    1, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /* unit */
    2, 0, 0, 0, 0, 0, 0, 0, 0,                   /* label */
    3, 1, 0x53, 4,                               /* variable */
    0,                                           /* end of children */
};
/* Version 4: steps of 1, lines -5 to 8, 13 opcodes; no folders, a file "a". */
#define LINE_HEADER                                                                    \
    4, 0, 0x19, 0, 0, 0, 1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, \
        'a', 0, 0, 0, 0, 0
static const uint8_t lines[] = {
    0x31, 0, 0, 0, LINE_HEADER, 0, 9, 2, 0, 0, 0, 0, 0, 0, 0, 0, /* set_address */
    0x14,            /* special: line 3 at 0 */
    0x4b,            /* special: line 4 at 4 */
    2, 12, 0, 1, 1,  /* advance 12; end of sequence */
};
enum { LINES_ADDRESS = 38 };

struct scene {
    struct sketch *sketch;
    uint32_t text, info, lines;
};

static struct scene make_scene(struct arena *arena)
{
    struct sketch *a = sketch_new(arena, "a.o");
    uint8_t nops[16];
    memset(nops, 0x90, sizeof nops);
    struct scene scene = {.sketch = a};
    scene.text = sketch_section(a, ".text", SHF_ALLOC | SHF_EXECINSTR, nops, sizeof nops);
    uint32_t shapes = sketch_section(a, ".debug_abbrev", 0, abbrevs, sizeof abbrevs);
    scene.info = sketch_section(a, ".debug_info", 0, info, sizeof info);
    scene.lines = sketch_section(a, ".debug_line", 0, lines, sizeof lines);
    uint32_t text = sketch_symbol(a, "", STB_LOCAL, scene.text, 0, 0);
    uint32_t shape = sketch_symbol(a, "", STB_LOCAL, shapes, 0, 0);
    uint32_t line = sketch_symbol(a, "", STB_LOCAL, scene.lines, 0, 0);
    sketch_reloc(a, scene.info, 6, shape, R_X86_64_32, 0);
    sketch_reloc(a, scene.info, INFO_LOW, text, R_X86_64_64, 0);
    sketch_reloc(a, scene.info, INFO_LINES, line, R_X86_64_32, 0);
    sketch_reloc(a, scene.info, INFO_LABEL, text, R_X86_64_64, 4);
    sketch_reloc(a, scene.lines, LINES_ADDRESS, text, R_X86_64_64, 0);
    return scene;
}

static uint8_t *data_of(const struct scene *scene, uint32_t section)
{
    return (uint8_t *)(uintptr_t)scene->sketch->sections[section].data.at;
}

START_TEST(positions)
{
    struct arena *arena = arena_new();
    struct scene scene = make_scene(arena);
    struct debug debug;
    debug_read(arena, &scene.sketch->object, &debug);
    ck_assert_msg(debug.refused[0] == REFUSAL_NONE, "%s", debug.whys[0]);
    ck_assert_uint_eq(debug.point_count, 2);
    ck_assert_uint_eq(debug.points[0].role, DEBUG_START);
    ck_assert_uint_eq(debug.points[1].role, DEBUG_LABEL);
    ck_assert_uint_eq(debug.points[1].position, 4);
    ck_assert_uint_eq(debug.range_count, 1);
    ck_assert_uint_eq(debug.ranges[0].end, 16);
    ck_assert_uint_eq(debug.ranges[0].end_field.offset, INFO_HIGH);
    ck_assert_uint_eq(debug.expression_count, 1);
    ck_assert_uint_eq(debug.expressions[0].registers, 1u << 3);
    ck_assert_uint_eq(debug.expressions[0].size, 2);
    ck_assert_uint_eq(debug.lines_count, 1);
    const struct debug_sequence *sequence = debug.lines[0].sequences;
    ck_assert_uint_eq(sequence->row_count, 2);
    ck_assert_uint_eq(sequence->last, 16);
    ck_assert_uint_eq(debug_row_at(sequence, 3)->line, 3);
    ck_assert_uint_eq(debug_row_at(sequence, 4)->line, 4);
    ck_assert_ptr_null(debug_row_at(sequence, 16));
    arena_free(arena);
}
END_TEST

/* An address that no field explains, and one in the middle of a program. */
START_TEST(unexplained)
{
    struct arena *arena = arena_new();
    struct scene scene = make_scene(arena);
    sketch_reloc(scene.sketch, scene.info, 44, 1, R_X86_64_64, 0);
    struct debug debug;
    debug_read(arena, &scene.sketch->object, &debug);
    ck_assert_uint_eq(debug.refused[0], REFUSAL_DEBUG_INFO);
    bool code[TEST_SECTIONS] = {false};
    debug_refused_code(&scene.sketch->object, &debug, code);
    ck_assert(code[scene.text] && !code[scene.info]);

    scene = make_scene(arena);
    ((struct reloc *)(uintptr_t)scene.sketch->sections[scene.info].relocs)[2].addend = 4;
    debug_read(arena, &scene.sketch->object, &debug);
    ck_assert_uint_eq(debug.refused[0], REFUSAL_DEBUG_INFO);
    arena_free(arena);
}
END_TEST

/* --- the checker --- */

static const char *const flaws[] = {
    "", "length", "start", "label", "place", "bytes", "line", "row", "end", "link",
};

static void plant(const struct scene *scene, const char *flaw)
{
    struct section *sections = scene->sketch->sections;
    struct reloc *relocs = (struct reloc *)(uintptr_t)sections[scene->info].relocs;
    uint8_t *text = data_of(scene, scene->info), *rows = data_of(scene, scene->lines);
    if (strcmp(flaw, "length") == 0)
        text[INFO_HIGH] = 15;
    else if (strcmp(flaw, "start") == 0)
        relocs[1].addend = 1;
    else if (strcmp(flaw, "label") == 0)
        relocs[3].addend = 5;
    else if (strcmp(flaw, "place") == 0)
        text[sizeof info - 3] = 0x54;
    else if (strcmp(flaw, "bytes") == 0)
        text[sizeof info - 2] = 8;
    else if (strcmp(flaw, "line") == 0)
        rows[LINES_ADDRESS + 9]++;
    else if (strcmp(flaw, "row") == 0)
        rows[LINES_ADDRESS + 9] += 14; /* one byte later */
    else if (strcmp(flaw, "end") == 0)
        rows[LINES_ADDRESS + 11]--;
    else if (strcmp(flaw, "link") == 0)
        relocs[2].addend = 1;
}

static const struct verify_options one_worker = {.workers = 1};

START_TEST(lies)
{
    struct arena *arena = arena_new();
    const char *flaw = flaws[_i];
    struct scene before = make_scene(arena), after = make_scene(arena);
    plant(&after, flaw);
    const struct object *olds[] = {&before.sketch->object};
    const struct object *news[] = {&after.sketch->object};
    struct objects old = {olds, 1}, new = {news, 1};
    struct error err = {0};
    bool same = outline_verify(&old, &new, &one_worker, &err);
    ck_assert_msg(same == (*flaw == '\0'), "'%s': %s", flaw, err.message);
    arena_free(arena);
}
END_TEST

/* --- line programs --- */

static uint32_t number(uint32_t *state, uint32_t below)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % below;
}

static struct debug_row random_row(uint32_t *state, uint32_t position)
{
    static const uint32_t most[] = {2, 20, 3000, 100000};
    return (struct debug_row){.position = position,
                              .file = 1 + number(state, 3),
                              .line = number(state, most[number(state, 4)]),
                              .column = number(state, 200),
                              .discriminator = number(state, 4) ? 0 : number(state, 900),
                              .isa = number(state, 9) ? 0 : 1,
                              .is_stmt = number(state, 2),
                              .basic_block = !number(state, 5),
                              .prologue_end = !number(state, 5),
                              .epilogue_begin = !number(state, 5)};
}

/* Rows written as a sequence for new code are the rows that are read. */
START_TEST(round_trip)
{
    struct arena *arena = arena_new();
    struct scene scene = make_scene(arena);
    uint32_t state = (uint32_t)_i * 77 + 5, count = number(&state, 40), at = 0;
    uint8_t step = _i % 2 ? 4 : 1;
    data_of(&scene, scene.lines)[10] = step; /* the length of an instruction */
    data_of(&scene, scene.lines)[LINES_ADDRESS + 11] = (uint8_t)(12 / step);
    data_of(&scene, scene.lines)[LINES_ADDRESS + 9] = step == 4 ? 0x21 : 0x4b;
    struct section *text = &scene.sketch->sections[scene.text];
    text->data.size = 1u << 20;
    text->data.at = arena_alloc(arena, text->data.size);
    struct debug debug;
    debug_read(arena, &scene.sketch->object, &debug);
    ck_assert_msg(debug.refused[0] == REFUSAL_NONE, "%s", debug.whys[0]);
    struct debug_row *rows = arena_new_array(arena, struct debug_row, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        rows[i] = random_row(&state, at);
        at += number(&state, 3) ? step * number(&state, number(&state, 2) ? 9 : 3000) : 0;
    }
    struct debug_new_sequence added = {1, 0, rows, count, at};
    struct debug_lines_edit edit = {NULL, &added, 1};
    uint32_t start;
    debug_lines_write(arena, &scene.sketch->object, scene.lines,
                      scene.sketch->sections[scene.lines].relocs, &debug, &edit,
                      &scene.sketch->sections[scene.lines], &start);
    debug_read(arena, &scene.sketch->object, &debug);
    ck_assert_msg(debug.refused[0] == REFUSAL_NONE, "%s", debug.whys[0]);
    ck_assert_uint_eq(debug.lines[0].sequence_count, 2);
    ck_assert_uint_eq(debug.lines[0].sequences[0].row_count, 2);
    const struct debug_sequence *read = &debug.lines[0].sequences[1];
    ck_assert_uint_eq(read->row_count, count);
    ck_assert_uint_eq(read->last, at);
    for (uint32_t i = 0; i < count; i++) {
        const struct debug_row *a = &rows[i], *b = &read->rows[i];
        ck_assert_uint_eq(a->position, b->position);
        ck_assert_uint_eq(a->file, b->file);
        ck_assert_uint_eq(a->line, b->line);
        ck_assert_uint_eq(a->column, b->column);
        ck_assert_uint_eq(a->discriminator, b->discriminator);
        ck_assert_uint_eq(a->isa, b->isa);
        ck_assert(a->is_stmt == b->is_stmt && a->basic_block == b->basic_block);
        ck_assert(a->prologue_end == b->prologue_end &&
                  a->epilogue_begin == b->epilogue_begin);
    }
    arena_free(arena);
}
END_TEST

/* Without edits a section of line programs keeps every byte. */
START_TEST(unchanged)
{
    struct arena *arena = arena_new();
    struct scene scene = make_scene(arena);
    struct debug debug;
    debug_read(arena, &scene.sketch->object, &debug);
    struct debug_lines_edit edit = {0};
    struct section out = scene.sketch->sections[scene.lines];
    uint32_t start;
    debug_lines_write(arena, &scene.sketch->object, scene.lines, out.relocs, &debug, &edit,
                      &out, &start);
    ck_assert_uint_eq(out.data.size, sizeof lines);
    ck_assert_int_eq(memcmp(out.data.at, lines, sizeof lines), 0);
    ck_assert_uint_eq(out.reloc_count, 1);
    ck_assert_uint_eq(out.relocs[0].offset, LINES_ADDRESS);
    arena_free(arena);
}
END_TEST

START_TEST(fields)
{
    uint8_t data[8] = {0};
    struct debug_field padded = {0, 1, NO_INDEX, 3, true};
    ck_assert(debug_store(data, &padded, 5));
    static const uint8_t five[] = {0, 0x85, 0x80, 0x00, 0};
    ck_assert_int_eq(memcmp(data, five, sizeof five), 0);
    ck_assert(debug_store(data, &padded, (1 << 21) - 1));
    ck_assert(!debug_store(data, &padded, 1 << 21));
    struct debug_field word = {0, 0, NO_INDEX, 2, false};
    ck_assert(debug_store(data, &word, 0x1234) && data[0] == 0x34 && data[1] == 0x12);
    ck_assert(!debug_store(data, &word, 0x10000));
}
END_TEST

/* Each byte of each section as it should not be: read, or refused, but never trusted
 * beyond its end (the sanitizers watch). */
START_TEST(damage)
{
    static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
    struct arena *arena = arena_new();
    struct scene scene = make_scene(arena);
    uint32_t refused = 0;
    for (uint32_t s = 2; s < scene.sketch->object.section_count; s++) {
        uint8_t *data = data_of(&scene, s);
        for (uint64_t i = 0; i < scene.sketch->sections[s].data.size; i++) {
            uint8_t old = data[i];
            for (size_t v = 0; v < sizeof values; v++) {
                struct arena *stage = arena_new();
                struct debug debug;
                data[i] = values[v];
                debug_read(stage, &scene.sketch->object, &debug);
                refused += debug.refused[0] != REFUSAL_NONE;
                arena_free(stage);
            }
            data[i] = old;
        }
    }
    ck_assert_uint_gt(refused, 100);
    arena_free(arena);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("debug");
    TCase *tests = tcase_create("debug");
    tcase_add_test(tests, positions);
    tcase_add_test(tests, unexplained);
    tcase_add_loop_test(tests, lies, 0, sizeof flaws / sizeof *flaws);
    tcase_add_loop_test(tests, round_trip, 0, 40);
    tcase_add_test(tests, unchanged);
    tcase_add_test(tests, fields);
    tcase_add_test(tests, damage);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
