/* SPDX-License-Identifier: MIT
 *
 * Merging: who wins for a name, what a dropped group takes with it, the notes. And
 * sections of one object put end to end.
 */
#include "test_object.h"

#include <check.h>

static struct arena *arena;
static struct error err;

static void setup(void)
{
    arena = arena_new();
    err = (struct error){0};
}

static void teardown(void)
{
    arena_free(arena);
}

static bool merge(struct sketch *a, struct sketch *b, const struct object **out)
{
    const struct object *const items[] = {&a->object, &b->object};
    const struct objects objects = {items, 2};
    return objects_merge(arena, "ab.o", &objects, out, &err);
}

/* What one object says about `x`: a kind of symbol. */
enum kind { WEAK_REFERENCE, REFERENCE, WEAK, COMMON, STRONG };

static void add_x(struct sketch *sketch, enum kind kind, uint8_t other, uint64_t size)
{
    uint32_t data = sketch_section(sketch, ".data", SHF_ALLOC, "abcdefgh", 8);
    bool defined = kind == WEAK || kind == STRONG;
    uint32_t section = defined ? data : kind == COMMON ? SECTION_COMMON : 0;
    uint8_t bind = kind == WEAK || kind == WEAK_REFERENCE ? STB_WEAK : STB_GLOBAL;
    uint32_t symbol =
        sketch_symbol(sketch, "x", bind, section, kind == COMMON ? size : 0,
                      defined || kind == COMMON ? size : 0);
    sketch->symbols[symbol].other = other;
}

static const struct {
    enum kind first, second;
    int winner; /* 0, 1; -1 for an error */
} cases[] = {
    {STRONG,         STRONG,         -1},
    {STRONG,         WEAK,           0 },
    {WEAK,           STRONG,         1 },
    {WEAK,           WEAK,           0 },
    {COMMON,         STRONG,         1 },
    {STRONG,         COMMON,         0 },
    {WEAK,           COMMON,         1 },
    {COMMON,         COMMON,         1 }, /* the second is larger */
    {REFERENCE,      WEAK,           1 },
    {WEAK_REFERENCE, REFERENCE,      1 },
    {REFERENCE,      WEAK_REFERENCE, 0 },
    {WEAK_REFERENCE, WEAK_REFERENCE, 0 },
};

START_TEST(resolution)
{
    const struct object *out = NULL;
    struct sketch *a = sketch_new(arena, "a.o"), *b = sketch_new(arena, "b.o");
    add_x(a, cases[_i].first, STV_PROTECTED, 4);
    add_x(b, cases[_i].second, STV_HIDDEN, 8);
    bool ok = merge(a, b, &out);
    ck_assert_int_eq(ok, cases[_i].winner >= 0);
    if (!ok) {
        ck_assert_str_eq(err.message, "ab.o: symbol x is defined in a.o and in b.o");
        return;
    }
    ck_assert_uint_eq(out->symbol_count, 2);
    const struct sketch *winner = cases[_i].winner ? b : a;
    const struct symbol *x = &out->symbols[1];
    ck_assert_uint_eq(x->bind, winner->symbols[1].bind);
    ck_assert_uint_eq(x->size, winner->symbols[1].size);
    ck_assert_uint_eq(x->other, STV_HIDDEN);
    if (winner->symbols[1].section == 1)
        ck_assert_uint_eq(out->sections[x->section].unit, (unsigned)cases[_i].winner);
}
END_TEST

/* Of weak functions in plain sections all bodies stay: those that have lost, under a
 * local name. */
START_TEST(weak_losers)
{
    static const uint32_t code = SHF_ALLOC | SHF_EXECINSTR;
    const struct object *out = NULL;
    struct sketch *a = sketch_new(arena, "a.o"), *b = sketch_new(arena, "b.o");
    uint32_t first = sketch_section(a, ".text", code, "01234567", 8);
    uint32_t second = sketch_section(b, ".text", code, "01234567", 8);
    bool strong = _i == 1;
    uint32_t x = sketch_symbol(a, "x", STB_WEAK, first, 0, 4);
    uint32_t y = sketch_symbol(b, "x", strong ? STB_GLOBAL : STB_WEAK, second, 4, 4);
    a->symbols[x].type = b->symbols[y].type = STT_FUNC;
    b->symbols[y].other = a->symbols[x].other = STV_HIDDEN;
    ck_assert_msg(merge(a, b, &out), "%s", err.message);
    ck_assert_uint_eq(out->symbol_count, 3);
    const struct symbol *loser = &out->symbols[1], *winner = &out->symbols[2];
    ck_assert_str_eq(loser->name, "x");
    ck_assert_uint_eq(loser->bind, STB_LOCAL);
    ck_assert_uint_eq(loser->other, STV_DEFAULT);
    ck_assert_uint_eq(loser->size, 4);
    ck_assert_uint_eq(out->sections[loser->section].unit, strong ? 0 : 1);
    ck_assert_uint_eq(out->sections[winner->section].unit, strong ? 1 : 0);
}
END_TEST

/* An object with a function f in a COMDAT group, and one record of unwind information
 * for it and one for plain code. */
static struct sketch *with_group(const char *name)
{
    static const uint8_t frames[] = {
        4,  0, 0, 0, 0,  0, 0, 0,                         /* CIE */
        12, 0, 0, 0, 12, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, /* FDE of f */
        12, 0, 0, 0, 28, 0, 0, 0, 3, 3, 3, 3, 4, 4, 4, 4, /* FDE of .text */
    };
    struct sketch *a = sketch_new(arena, name);
    uint32_t text =
        sketch_section(a, ".text", SHF_ALLOC | SHF_EXECINSTR, "01234567", 8);
    uint32_t f = sketch_section(a, ".text.f", SHF_ALLOC | SHF_EXECINSTR, "fffff", 5);
    uint32_t frame = sketch_section(a, ".eh_frame", SHF_ALLOC, frames, sizeof frames);
    uint32_t info = sketch_section(a, ".debug_info", 0, "abcdefgh", 8);
    uint32_t ranges = sketch_section(a, ".debug_ranges", 0, "abcdefgh", 8);
    uint32_t plain = sketch_symbol(a, "", STB_LOCAL, text, 0, 0);
    uint32_t local = sketch_symbol(a, "", STB_LOCAL, f, 0, 0);
    uint32_t end = sketch_symbol(a, "$d", STB_LOCAL, frame, 24, 0);
    uint32_t global = sketch_symbol(a, "f", STB_WEAK, f, 0, 5);
    (void)end;
    sketch_group(a, global, f);
    sketch_reloc(a, text, 1, global, R_X86_64_PLT32, -4);
    sketch_reloc(a, frame, 16, local, R_X86_64_PC32, 0);
    sketch_reloc(a, frame, 32, plain, R_X86_64_PC32, 0);
    sketch_reloc(a, info, 0, local, R_X86_64_64, 0);
    sketch_reloc(a, ranges, 0, local, R_X86_64_64, 0);
    return a;
}

START_TEST(dropped_group)
{
    const struct object *out = NULL;
    struct sketch *a = with_group("a.o"), *b = with_group("b.o");
    ck_assert_msg(merge(a, b, &out), "%s", err.message);
    ck_assert_uint_eq(out->group_count, 1);
    ck_assert_uint_eq(out->groups[0].member_count, 1);
    ck_assert_ptr_nonnull(find_section(out, ".text.f", 0));
    ck_assert_ptr_null(find_section(out, ".text.f", 1));
    ck_assert_str_eq(section_unit(out, find_symbol(out, "f")->section), "a.o");
    /* Both call the one that is left. */
    const struct section *text = find_section(out, ".text", 1);
    ck_assert_str_eq(out->symbols[text->relocs[0].symbol].name, "f");

    const struct section *frame = find_section(out, ".eh_frame", 1);
    static const uint8_t left[] = {4,  0, 0, 0, 0, 0, 0, 0, 12, 0, 0, 0,
                                   12, 0, 0, 0, 3, 3, 3, 3, 4,  4, 4, 4};
    ck_assert_uint_eq(frame->data.size, sizeof left);
    ck_assert_mem_eq(frame->data.at, left, sizeof left);
    ck_assert_uint_eq(frame->reloc_count, 1);
    ck_assert_uint_eq(frame->relocs[0].offset, 16);
    ck_assert_uint_eq(find_section(out, ".eh_frame", 0)->data.size, 40);

    const struct section *info = find_section(out, ".debug_info", 1);
    ck_assert_uint_eq(info->reloc_count, 0);
    ck_assert_uint_eq(load_le(info->data.at, 8), 0);
    ck_assert_uint_eq(load_le(find_section(out, ".debug_ranges", 1)->data.at, 8), 1);
    /* The input is as it was. */
    ck_assert_mem_eq(b->sections[4].data.at, "abcdefgh", 8);
}
END_TEST

/* Plain data that points into a dropped copy cannot be kept right: the linkers say so.
 */
START_TEST(lost_reference)
{
    const struct object *out = NULL;
    struct sketch *a = with_group("a.o"), *b = with_group("b.o");
    uint32_t data = sketch_section(b, ".data", SHF_ALLOC, "abcdefgh", 8);
    sketch_reloc(b, data, 0, 2, R_X86_64_64, 0);
    ck_assert(!merge(a, b, &out));
    ck_assert_str_eq(err.message,
                     "b.o: .data+0x0: refers to a section that is dropped as "
                     "a copy (.text.f)");
}
END_TEST

/* One property per object, of 4 bytes. */
static void add_property(struct sketch *sketch, uint32_t type, uint32_t value)
{
    struct buffer note = buffer_new(arena);
    buffer_u32(&note, 4);
    buffer_u32(&note, 16);
    buffer_u32(&note, NT_GNU_PROPERTY_TYPE_0);
    buffer_put(&note, "GNU", 4);
    buffer_u32(&note, type);
    buffer_u32(&note, 4);
    buffer_u32(&note, value);
    buffer_u32(&note, 0);
    uint32_t index =
        sketch_section(sketch, ".note.gnu.property", SHF_ALLOC, note.at, note.size);
    sketch->sections[index].type = SHT_NOTE;
}

static const struct {
    uint32_t type, first, second; /* 0: the object has no note */
    uint32_t result;              /* 0: nor has the result */
} notes[] = {
    {0xc0000002, 3, 1, 1}, /* FEATURE_1_AND: what both have */
    {0xc0000002, 3, 0, 0},
    {0xc0000002, 2, 1, 0},
    {0xc0008002, 1, 4, 5}, /* ISA_1_NEEDED: what any needs */
    {0xc0008002, 0, 4, 4},
    {0xc0010002, 1, 2, 3}, /* ISA_1_USED: known only if all say it */
    {0xc0010002, 1, 0, 0},
    {0xb0008000, 0, 1, 1}, /* 1_NEEDED */
    {0xe0000001, 1, 1, 0}, /* unknown */
};

START_TEST(properties)
{
    const struct object *out = NULL;
    struct sketch *a = sketch_new(arena, "a.o"), *b = sketch_new(arena, "b.o");
    if (notes[_i].first)
        add_property(a, notes[_i].type, notes[_i].first);
    if (notes[_i].second)
        add_property(b, notes[_i].type, notes[_i].second);
    ck_assert_msg(merge(a, b, &out), "%s", err.message);
    const struct section *note = find_section(out, ".note.gnu.property", 0);
    ck_assert_int_eq(note != NULL, notes[_i].result != 0);
    if (!note)
        return;
    ck_assert_uint_eq(note->data.size, 32);
    ck_assert_uint_eq(load_le(note->data.at + 16, 4), notes[_i].type);
    ck_assert_uint_eq(load_le(note->data.at + 24, 4), notes[_i].result);
}
END_TEST

START_TEST(stack_notes)
{
    const struct object *out = NULL;
    struct sketch *a = sketch_new(arena, "a.o"), *b = sketch_new(arena, "b.o");
    sketch_section(a, ".note.GNU-stack", 0, "", 0);
    ck_assert(merge(a, b, &out));
    ck_assert_ptr_null(find_section(out, ".note.GNU-stack", 0));
    uint32_t note = sketch_section(b, ".note.GNU-stack", 0, "", 0);
    ck_assert(merge(a, b, &out));
    ck_assert_uint_eq(out->section_count, 2);
    ck_assert_uint_eq(out->sections[1].flags, 0);
    b->sections[note].flags = SHF_EXECINSTR;
    ck_assert(merge(a, b, &out));
    ck_assert_uint_eq(out->sections[1].flags, SHF_EXECINSTR);
}
END_TEST

START_TEST(machines)
{
    const struct object *out = NULL;
    struct sketch *a = sketch_new(arena, "a.o"), *b = sketch_new(arena, "b.o");
    b->object.machine = EM_AARCH64;
    ck_assert(!merge(a, b, &out));
    ck_assert_str_eq(err.message, "b.o: is for machine 183, but a.o is for machine 62");
}
END_TEST

/* Two sections of code, and behind them data that names both by their section symbols:
 * each name says the same place afterwards. */
START_TEST(end_to_end)
{
    const uint64_t code = SHF_ALLOC | SHF_EXECINSTR;
    struct sketch *a = sketch_new(arena, "a.o");
    uint32_t first = sketch_section(a, ".text.x", code, "abcd", 4);
    uint32_t between = sketch_section(a, ".text", code, "q", 1);
    uint32_t second = sketch_section(a, ".text.x", code, "efghij", 6);
    uint32_t data = sketch_section(a, ".data", SHF_ALLOC | SHF_WRITE, "01234567", 8);
    uint32_t one = sketch_symbol(a, "", STB_LOCAL, first, 0, 0);
    uint32_t two = sketch_symbol(a, "", STB_LOCAL, second, 0, 0);
    uint32_t f = sketch_symbol(a, "f", STB_GLOBAL, second, 2, 3);
    uint32_t g = sketch_symbol(a, "g", STB_GLOBAL, between, 0, 1);
    sketch_reloc(a, first, 0, g, R_X86_64_PC32, -4);
    sketch_reloc(a, second, 1, one, R_X86_64_PC32, 7);
    sketch_reloc(a, data, 0, two, R_X86_64_64, 5);
    sketch_reloc(a, data, 4, f, R_X86_64_32, 1);
    uint32_t onto[TEST_SECTIONS] = {0};
    onto[second] = first;
    const struct object *out = NULL;
    ck_assert(section_can_follow(&a->sections[first], &a->sections[second]));
    ck_assert(!section_can_follow(&a->sections[first], &a->sections[between]));
    ck_assert_msg(object_append(arena, &a->object, onto, &out, &err), "%s",
                  err.message);
    ck_assert_uint_eq(out->section_count, 4);
    ck_assert_uint_eq(out->symbol_count, 4);
    const struct section *x = &out->sections[1], *d = &out->sections[3];
    ck_assert_uint_eq(x->data.size, 10);
    ck_assert_mem_eq(x->data.at, "abcdefghij", 10);
    ck_assert_uint_eq(find_symbol(out, "f")->section, 1);
    ck_assert_uint_eq(find_symbol(out, "f")->value, 6);
    ck_assert_uint_eq(find_symbol(out, "g")->section, 2);
    ck_assert_uint_eq(x->reloc_count, 2);
    ck_assert_str_eq(out->symbols[x->relocs[0].symbol].name, "g");
    ck_assert_uint_eq(x->relocs[1].offset, 5);
    ck_assert_uint_eq(out->symbols[x->relocs[1].symbol].section, 1);
    ck_assert_int_eq(x->relocs[1].addend, 7);
    ck_assert_uint_eq(out->symbols[d->relocs[0].symbol].section, 1);
    ck_assert_int_eq(out->symbols[d->relocs[0].symbol].type, STT_SECTION);
    ck_assert_int_eq(d->relocs[0].addend, 5 + 4);
    ck_assert_str_eq(out->symbols[d->relocs[1].symbol].name, "f");
    ck_assert_int_eq(d->relocs[1].addend, 1);
}
END_TEST

START_TEST(no_padding_between)
{
    struct sketch *a = sketch_new(arena, "a.o");
    struct section *first = &a->sections[sketch_section(a, ".text.x", 0, "abcd", 4)];
    struct section *second = &a->sections[sketch_section(a, ".text.x", 0, "efgh", 4)];
    first->align = second->align = 4;
    ck_assert(section_can_follow(first, second));
    first->align = second->align = 8;
    ck_assert(!section_can_follow(first, second));
    first->align = second->align = 4;
    second->group = 0;
    ck_assert(!section_can_follow(first, second));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("merge");
    TCase *tests = tcase_create("merge");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, resolution, 0, sizeof cases / sizeof *cases);
    tcase_add_loop_test(tests, weak_losers, 0, 2);
    tcase_add_test(tests, dropped_group);
    tcase_add_test(tests, lost_reference);
    tcase_add_loop_test(tests, properties, 0, sizeof notes / sizeof *notes);
    tcase_add_test(tests, stack_notes);
    tcase_add_test(tests, machines);
    tcase_add_test(tests, end_to_end);
    tcase_add_test(tests, no_padding_between);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
