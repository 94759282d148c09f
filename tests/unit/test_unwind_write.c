/* SPDX-License-Identifier: MIT
 *
 * src/unwind on small sections: writing, sharing, building for helpers.
 */
#include "tests/unit/unwind_draft.h"

/* --- writing --- */

/* Three FDEs of 16 bytes at 0, 16 and 32; the third has a CIE of its own. */
static struct frames three_fdes(void)
{
    static struct reloc relocs[3];
    struct buffer out = buffer_new(arena);
    put_plain_cie(&out);
    for (uint32_t i = 0; i < 2; i++) {
        relocs[i] = pc_begin(out.size, (int64_t)i * 16);
        put_fde(&out, 0, 16, PUSH_POP, sizeof PUSH_POP);
    }
    uint32_t cie = (uint32_t)out.size;
    put_cie(&out, "zRS", (struct bytes){PCREL4, 1});
    relocs[2] = pc_begin(out.size, 32);
    put_fde(&out, cie, 16, PUSH_POP, sizeof PUSH_POP);
    buffer_u32(&out, 0);
    set_frames(buffer_bytes(&out), relocs, 3);
    struct frames frames;
    struct error err = {0};
    ck_assert_msg(frames_read(arena, &object, rows, &frames, &err), "%s", err.message);
    ck_assert_uint_eq(frames.fde_count, 3);
    ck_assert_uint_eq(frame_count(&sections[FRAMES]), 3);
    return frames;
}

static struct frames rewrite(const struct frames *frames, const struct fde_edit *edits)
{
    struct section out;
    struct frames again;
    struct error err = {0};
    frames_rewrite(arena, &object, FRAMES, rows, frames, edits, &out);
    sections[FRAMES] = out;
    ck_assert_msg(frames_read(arena, &object, rows, &again, &err), "%s", err.message);
    return again;
}

START_TEST(no_edit_no_change)
{
    struct frames frames = three_fdes();
    struct section out;
    struct fde_edit edits[3] = {0};
    frames_rewrite(arena, &object, FRAMES, rows, &frames, edits, &out);
    ck_assert_uint_eq(out.data.size, sections[FRAMES].data.size);
    ck_assert_mem_eq(out.data.at, sections[FRAMES].data.at, out.data.size);
}
END_TEST

START_TEST(a_dropped_fde_takes_its_cie_along)
{
    struct frames frames = three_fdes();
    struct fde_edit edits[3] = {[2] = {.drop = true}};
    uint64_t before = sections[FRAMES].data.size;
    struct frames again = rewrite(&frames, edits);
    ck_assert_uint_eq(again.fde_count, 2);
    ck_assert_uint_eq(again.cie_count, 1);
    ck_assert_uint_eq(sections[FRAMES].data.size, before - 24 - 28);
    ck_assert_uint_eq(sections[FRAMES].reloc_count, 2);
}
END_TEST

START_TEST(a_shortened_fde_moves_the_rest)
{
    struct frames frames = three_fdes();
    struct row_change plain = {0, row_at_entry(rows, EM_X86_64)};
    struct fde_edit edits[3] = {
        [0] = {.rewrite = true, .length = 5, .changes = &plain, .change_count = 1}
    };
    struct frames again = rewrite(&frames, edits);
    ck_assert_uint_eq(again.fdes[0].length, 5);
    ck_assert_uint_eq(again.fdes[0].program_size, 0);
    ck_assert_uint_eq(again.fdes[1].offset, frames.fdes[1].offset - 8);
    ck_assert_uint_eq(again.fdes[1].change_count, frames.fdes[1].change_count);
    ck_assert_uint_eq(again.cies[1].offset, frames.cies[1].offset - 8);
    ck_assert_uint_eq(sections[FRAMES].relocs[2].offset, again.fdes[2].offset + 8);
}
END_TEST

START_TEST(a_row_that_comes_back_is_remembered)
{
    /* push rbx; push rbp; (epilogue in the middle); push state again; epilogue */
    static const uint8_t program[] = {0x41, 0x0e, 0x10, 0x83, 2,    0x41, 0x0e,
                                      0x18, 0x86, 3,    0x45, 0x0a, 0xc3, 0xc6,
                                      0x0e, 8,    0x41, 0x0b, 0x45, 0x0e, 8};
    struct fde fde = read_one(program, sizeof program, 0x40);
    ck_assert_int_eq(fde.refusal, REFUSAL_NONE);
    ck_assert_uint_eq(fde.change_count, 6);
    struct cie cie = helper_cie(rows, EM_X86_64);
    uint32_t size =
        fde_size(rows, &cie, fde.changes, fde.change_count, fde.start, 0x40);
    ck_assert_uint_eq(size, align_up(17 + sizeof program, 4));
}
END_TEST

/* gdb forgets at the start of a function, if the CIE has no rules; see program.c. */
START_TEST(nothing_is_remembered_over_a_start)
{
    struct rule rules[] = {
        {19, RULE_OFFSET, -16, {NULL, 0}},
        {29, RULE_OFFSET, -32, {NULL, 0}},
        {30, RULE_OFFSET, -24, {NULL, 0}}
    };
    struct row framed = {
        .cfa_register = 31, .cfa_offset = 32, .rules = rules, .rule_count = 3};
    uint32_t entry = row_at_entry(rows, EM_AARCH64), inside = row_intern(rows, &framed);
    struct row_change changes[] = {
        {0,  entry },
        {4,  inside},
        {12, entry }, /* the end of the first function; the second begins at 16 */
        {20, inside},
        {28, entry },
        {32, inside}, /* behind its epilogue */
    };
    struct terms terms = {row_get(rows, entry), 4, -8};
    static const uint32_t starts[] = {16};
    struct span span = {changes, 4, 0, starts, 1};
    struct buffer apart = buffer_new(arena), together = buffer_new(arena);
    program_write(&apart, &terms, rows, &span);
    ck_assert(!memchr(apart.at, CFA_REMEMBER_STATE, apart.size));
    span.start_count = 0;
    program_write(&together, &terms, rows, &span);
    ck_assert(memchr(together.at, CFA_REMEMBER_STATE, together.size));
    ck_assert_uint_lt(together.size, apart.size);
    /* Within the second one it may be. */
    span = (struct span){changes, 6, 0, starts, 1};
    struct buffer second = buffer_new(arena);
    program_write(&second, &terms, rows, &span);
    ck_assert(memchr(second.at + apart.size - 1, CFA_REMEMBER_STATE,
                     second.size - apart.size + 1));
}
END_TEST

/* --- sharing --- */

/* Two functions side by side of one kind, and one of another kind (its CIE says so). */
START_TEST(neighbours_share_an_entry)
{
    sections[CODE].flags = SHF_ALLOC | SHF_EXECINSTR;
    struct frames old = three_fdes(), new;
    struct symbol marked[] = {
        symbols[0],
        symbols[1],
        {.name = "$d.1", .section = FRAMES, .value = sections[FRAMES].data.size}
    };
    object.symbols = marked;
    object.symbol_count = 3;
    const struct object *out;
    struct error err = {0};
    ck_assert_msg(frames_unite(arena, &object, rows, &out, &err), "%s", err.message);
    ck_assert_msg(frames_read(arena, out, rows, &new, &err), "%s", err.message);
    ck_assert_uint_eq(new.fde_count, 2);
    ck_assert_uint_eq(new.fdes[0].start, 0);
    ck_assert_uint_eq(new.fdes[0].length, 32);
    for (uint32_t at = 0; at < 32; at++)
        ck_assert_uint_eq(fde_row_at(&new.fdes[0], at),
                          fde_row_at(&old.fdes[at / 16], at));
    ck_assert_uint_eq(fde_row_at(&new.fdes[0], 16), fde_row_at(&new.fdes[0], 0));
    ck_assert_uint_eq(new.fdes[1].start, 32);
    ck_assert_uint_lt(out->sections[FRAMES].data.size, sections[FRAMES].data.size);
    ck_assert_uint_eq(out->symbols[2].value, 0);
}
END_TEST

/* A gap, a name in the middle of the section, code that is none. */
START_TEST(strangers_share_nothing)
{
    sections[CODE].flags = _i == 2 ? SHF_ALLOC : SHF_ALLOC | SHF_EXECINSTR;
    three_fdes();
    struct reloc relocs[3];
    memcpy(relocs, sections[FRAMES].relocs, sizeof relocs);
    relocs[1].addend += _i == 0;
    relocs[2].addend += _i == 0;
    sections[FRAMES].relocs = relocs;
    struct symbol named[] = {
        symbols[0], symbols[1], {.name = "middle", .section = FRAMES, .value = 4}
    };
    if (_i == 1) {
        object.symbols = named;
        object.symbol_count = 3;
    }
    const struct object *out;
    struct error err = {0};
    ck_assert_msg(frames_unite(arena, &object, rows, &out, &err), "%s", err.message);
    ck_assert_ptr_eq(out, &object);
}
END_TEST

/* --- building --- */

START_TEST(helpers_get_frames)
{
    object.machine = _i ? EM_AARCH64 : EM_X86_64;
    uint32_t plain = row_at_entry(rows, object.machine);
    struct row_change one = {0x10, plain};
    struct frame_range ranges[] = {
        {.length = 0x20,   .changes = &one,   .change_count = 1   },
        { .length = 0x20, .changes = &one, .change_count = 1, .signal_frame = true},
        { .length = 0x20, .changes = &one, .change_count = 1,     .b_key = _i == 1}
    };
    struct row_change changes[3] = {
        {0x10, plain},
        {0x40, plain},
        {0x80, plain}
    };
    for (uint32_t i = 0; i < 3; i++) {
        ranges[i].start = changes[i].offset;
        ranges[i].changes = &changes[i];
    }
    frames_build(arena, object.machine, rows, ranges, 3, 1, 0, &sections[FRAMES]);
    ck_assert_uint_eq(sections[FRAMES].data.size % 8, 0);
    struct frames frames;
    struct error err = {0};
    ck_assert_msg(frames_read(arena, &object, rows, &frames, &err), "%s", err.message);
    ck_assert_uint_eq(frames.cie_count, _i ? 3 : 2);
    ck_assert_uint_eq(frames.fde_count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        const struct fde *fde = &frames.fdes[i];
        ck_assert_int_eq(fde->refusal, REFUSAL_NONE);
        ck_assert_uint_eq(fde->start, changes[i].offset);
        ck_assert_uint_eq(fde->length, 0x20);
        ck_assert_uint_eq(fde->change_count, 1);
        ck_assert_uint_eq(fde->changes[0].row, plain);
        ck_assert_int_eq(frames.cies[fde->cie].signal_frame, ranges[i].signal_frame);
        ck_assert_int_eq(frames.cies[fde->cie].b_key, ranges[i].b_key);
    }
    uint32_t first;
    ck_assert_uint_eq(frames_find(&frames, CODE, 0x20, 0x41, &first), 2);
    ck_assert_uint_eq(first, 0);
    ck_assert_uint_eq(frames_find(&frames, CODE, 0x30, 0x40, &first), 0);
    ck_assert_uint_eq(frames_find(&frames, FRAMES, 0, 0x1000, &first), 0);
}
END_TEST

/* What two rounds say of their helpers, put end to end. */
static struct section two_tables(const struct frame_range *first,
                                 const struct frame_range *second)
{
    struct section one, two;
    frames_build(arena, object.machine, rows, first, 1, 1, 0, &one);
    frames_build(arena, object.machine, rows, second, 1, 1, 0, &two);
    struct buffer bytes = buffer_new(arena);
    struct reloc *relocs = arena_new_array(arena, struct reloc, 2);
    buffer_put(&bytes, one.data.at, one.data.size);
    buffer_put(&bytes, two.data.at, two.data.size);
    relocs[0] = one.relocs[0];
    relocs[1] = two.relocs[0];
    relocs[1].offset += one.data.size;
    one.data = buffer_bytes(&bytes);
    one.relocs = relocs;
    one.reloc_count = 2;
    return one;
}

/* Side by side they are one entry, and rows are where they were; with a gap between
 * them, or of two kinds, they are two under as few CIEs as there are kinds. */
START_TEST(tables_of_rounds_become_one)
{
    object.machine = _i & 1 ? EM_AARCH64 : EM_X86_64;
    sections[CODE].flags = SHF_ALLOC | SHF_EXECINSTR;
    bool gap = _i / 2 == 1, strange = _i / 2 == 2;
    uint32_t plain = row_at_entry(rows, object.machine);
    struct row other = *row_get(rows, plain);
    other.cfa_offset += 32;
    uint32_t row = row_intern(rows, &other), start = gap ? 0x40 : 0x30;
    struct row_change a[] = {
        {0x10, plain},
        {0x20, row  }
    };
    struct row_change b[] = {
        {start,     row  },
        {start + 8, plain}
    };
    struct frame_range first = {
        .start = 0x10, .length = 0x20, .changes = a, .change_count = 2};
    struct frame_range second = {.start = start,
                                 .length = 0x10,
                                 .changes = b,
                                 .change_count = 2,
                                 .signal_frame = strange};
    sections[FRAMES] = two_tables(&first, &second);
    uint64_t size = sections[FRAMES].data.size;
    struct section out;
    struct error err = {0};
    ck_assert_msg(frames_regroup(arena, &object, FRAMES, &out, &err), "%s",
                  err.message);
    sections[FRAMES] = out;
    struct frames frames;
    ck_assert_msg(frames_read(arena, &object, rows, &frames, &err), "%s", err.message);
    ck_assert_uint_eq(frames.fde_count, gap || strange ? 2 : 1);
    ck_assert_uint_eq(frames.cie_count, strange ? 2 : 1);
    ck_assert(strange ? out.data.size == size : out.data.size < size);
    const uint32_t at[] = {0x10, 0x20, 0x28, start, start + 8, start + 15};
    const uint32_t wanted[] = {plain, row, row, row, plain, plain};
    for (uint32_t i = 0; i < 6; i++) {
        uint32_t f;
        ck_assert_uint_eq(frames_find(&frames, CODE, at[i], at[i] + 1, &f), 1);
        ck_assert_uint_eq(fde_row_at(&frames.fdes[f], at[i]), wanted[i]);
    }
}
END_TEST

static uint32_t random_state;

static uint32_t random_below(uint32_t limit)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % limit;
}

/* A row near `from`: one thing changed. */
static uint32_t random_neighbour(uint32_t from)
{
    static const uint8_t expression[] = {0x77, 0x08, 0x06};
    struct row row = *row_get(rows, from);
    struct rule rules[40];
    uint32_t column = 17 + random_below(60), at = 0;
    memcpy(rules, row.rules, row.rule_count * sizeof *rules);
    switch (random_below(6)) {
    case 0:
        row.cfa_is_expression = random_below(8) == 0;
        row.cfa_expression = (struct bytes){expression, 1 + random_below(3)};
        row.cfa_register = 6 + random_below(2);
        break;
    case 1:
        row.cfa_is_expression = false;
        row.cfa_offset = random_below(100) * 8 - 80;
        break;
    case 2: row.args_size = random_below(3) * 16; break;
    default:
        while (at < row.rule_count && rules[at].column < column)
            at++;
        if (row.rule_count > 12 && at < row.rule_count && rules[at].column != 16) {
            memmove(&rules[at], &rules[at + 1],
                    (--row.rule_count - at) * sizeof *rules);
        } else if (at == row.rule_count || rules[at].column != column) {
            memmove(&rules[at + 1], &rules[at],
                    (row.rule_count++ - at) * sizeof *rules);
            rules[at] = (struct rule){
                column, 1 + random_below(7), 0, {NULL, 0}
            };
            if (rules[at].kind == RULE_OFFSET || rules[at].kind == RULE_VAL_OFFSET)
                rules[at].value = random_below(200) * 8 - 800;
            if (rules[at].kind == RULE_REGISTER)
                rules[at].value = random_below(16);
            if (rules[at].kind >= RULE_EXPRESSION)
                rules[at].expression = (struct bytes){expression, 3};
        }
    }
    row.rules = rules;
    return row_intern(rows, &row);
}

/* Any list of rows survives writing and reading, and has the size that was foretold. */
START_TEST(random_rows_survive)
{
    struct row_change changes[300];
    random_state = (uint32_t)_i;
    uint32_t count = 1 + random_below(_i % 8 ? 20 : 300), offset = 0x10;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t row =
            i ? random_neighbour(changes[i - 1].row) : row_at_entry(rows, EM_X86_64);
        if (i > 3 && random_below(4) == 0)
            row = changes[random_below(i)].row; /* comes back */
        if (i && row == changes[i - 1].row) {
            count = i;
            break;
        }
        changes[i] = (struct row_change){offset, row};
        offset += 1 + random_below(random_below(10) ? 10 : 90);
    }
    struct frame_range range = {.start = 0x10,
                                .length = offset - 0x10,
                                .changes = changes,
                                .change_count = count};
    sections[CODE].data = (struct bytes){arena_alloc(arena, offset), offset};
    frames_build(arena, EM_X86_64, rows, &range, 1, 1, 0, &sections[FRAMES]);
    struct frames frames;
    struct error err = {0};
    ck_assert_msg(frames_read(arena, &object, rows, &frames, &err), "%s", err.message);
    const struct fde *fde = &frames.fdes[0];
    ck_assert_int_eq(fde->refusal, REFUSAL_NONE);
    ck_assert_uint_eq(fde->change_count, count);
    for (uint32_t i = 0; i < count; i++) {
        ck_assert_uint_eq(fde->changes[i].offset, changes[i].offset);
        ck_assert_uint_eq(fde->changes[i].row, changes[i].row);
    }
    struct cie cie = helper_cie(rows, EM_X86_64);
    uint32_t size = fde_size(rows, &cie, changes, count, 0x10, offset - 0x10);
    ck_assert_uint_eq(size, align_up(17 + fde->program_size, 4));
}
END_TEST

START_TEST(what_a_cie_can_state)
{
    struct cie cie = helper_cie(rows, EM_X86_64);
    struct rule rules[2] = {
        {3,  RULE_OFFSET, -16, {NULL, 0}},
        {16, RULE_OFFSET, -8,  {NULL, 0}}
    };
    struct row row = {
        .cfa_register = 7, .cfa_offset = 16, .rules = rules, .rule_count = 2};
    ck_assert(cie_can_state(rows, &cie, cie.initial_row));
    ck_assert(cie_can_state(rows, &cie, row_intern(rows, &row)));
    rules[0].value = -12;
    ck_assert(!cie_can_state(rows, &cie, row_intern(rows, &row)));
    row.rule_count = 1; /* no return address */
    rules[0].value = -16;
    ck_assert(!cie_can_state(rows, &cie, row_intern(rows, &row)));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("unwind, written");
    TCase *tests = tcase_create("writing");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, no_edit_no_change);
    tcase_add_test(tests, a_dropped_fde_takes_its_cie_along);
    tcase_add_test(tests, a_shortened_fde_moves_the_rest);
    tcase_add_test(tests, a_row_that_comes_back_is_remembered);
    tcase_add_test(tests, nothing_is_remembered_over_a_start);
    tcase_add_test(tests, neighbours_share_an_entry);
    tcase_add_loop_test(tests, strangers_share_nothing, 0, 3);
    tcase_add_loop_test(tests, helpers_get_frames, 0, 2);
    tcase_add_loop_test(tests, tables_of_rounds_become_one, 0, 6);
    tcase_add_loop_test(tests, random_rows_survive, 0, 300);
    tcase_add_test(tests, what_a_cie_can_state);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
