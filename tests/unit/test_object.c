/* SPDX-License-Identifier: MIT
 *
 * Reading, writing, checking and asking objects; files.
 */
#include "test_object.h"

#include "mo/outputs.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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

static const struct object *write_and_read(const struct object *object)
{
    struct bytes image;
    const struct object *again = NULL;
    ck_assert_msg(object_build(arena, object, &image, &err), "%s", err.message);
    ck_assert_msg(object_read(arena, object->name, image, &again, &err), "%s",
                  err.message);
    return again;
}

/* Globals are written behind locals; relocations and groups follow their symbols. */
START_TEST(round_trip)
{
    struct sketch *a = sketch_new(arena, "a.o");
    uint32_t text =
        sketch_section(a, ".text", SHF_ALLOC | SHF_EXECINSTR, "\xe8\0\0\0\0", 5);
    uint32_t inlined =
        sketch_section(a, ".text.f", SHF_ALLOC | SHF_EXECINSTR, "\xc3", 1);
    uint32_t order = sketch_section(a, ".order", SHF_ALLOC | SHF_LINK_ORDER, "ab", 2);
    uint32_t f = sketch_symbol(a, "f", STB_WEAK, inlined, 0, 1);
    uint32_t local = sketch_symbol(a, "local", STB_LOCAL, text, 2, 0);
    sketch_symbol(a, "common", STB_GLOBAL, SECTION_COMMON, 8, 24);
    sketch_symbol(a, "absolute", STB_GLOBAL, SECTION_ABSOLUTE, 0x1234, 0);
    a->sections[order].link = text;
    sketch_group(a, f, inlined);
    sketch_reloc(a, text, 1, f, R_X86_64_PLT32, -4);
    sketch_reloc(a, inlined, 0, local, R_X86_64_8, 7);
    const struct object *b = write_and_read(&a->object);
    ck_assert_uint_eq(b->section_count, 4);
    ck_assert_uint_eq(b->symbol_count, 5);
    ck_assert_str_eq(b->symbols[1].name, "local");
    ck_assert_str_eq(b->symbols[2].name, "f");
    ck_assert_uint_eq(b->sections[order].link, text);
    ck_assert_uint_eq(b->sections[text].relocs[0].symbol, 2);
    ck_assert_int_eq(b->sections[text].relocs[0].addend, -4);
    ck_assert_uint_eq(b->sections[inlined].relocs[0].symbol, 1);
    ck_assert_uint_eq(b->sections[inlined].group, 0);
    ck_assert_uint_eq(b->sections[text].group, NO_INDEX);
    ck_assert_uint_eq(b->group_count, 1);
    ck_assert_uint_eq(b->groups[0].signature, 2);
    ck_assert_uint_eq(b->groups[0].member_count, 1);
    ck_assert_uint_eq(find_symbol(b, "common")->section, SECTION_COMMON);
    ck_assert_uint_eq(find_symbol(b, "absolute")->section, SECTION_ABSOLUTE);
}
END_TEST

/* More sections than 16 bits can number: gABI's extended numbering. */
START_TEST(many_sections)
{
    enum { MANY = 70000 };
    struct sketch *a = sketch_new(arena, "many.o");
    struct section *sections = arena_new_array(arena, struct section, MANY);
    struct symbol *symbols = arena_new_array(arena, struct symbol, MANY);
    symbols[0].name = "";
    sections[0] = a->sections[0];
    for (uint32_t i = 1; i < MANY; i++) {
        uint8_t *byte = arena_alloc(arena, 1);
        *byte = (uint8_t)i;
        sections[i] = (struct section){
            .name = ".data",
            .type = SHT_PROGBITS,
            .align = 1,
            .data = {byte, 1},
            .group = NO_INDEX
        };
        symbols[i] = (struct symbol){.name = "s", .section = i, .bind = STB_LOCAL};
    }
    a->object.sections = sections;
    a->object.symbols = symbols;
    a->object.section_count = a->object.symbol_count = MANY;
    const struct object *b = write_and_read(&a->object);
    ck_assert_uint_eq(b->section_count, MANY);
    for (uint32_t i = 1; i < MANY; i++) {
        ck_assert_uint_eq(b->symbols[i].section, i);
        ck_assert_uint_eq(*b->sections[i].data.at, (uint8_t)i);
    }
}
END_TEST

/* Equal objects give equal bytes. */
START_TEST(deterministic)
{
    struct bytes image[2];
    for (int i = 0; i < 2; i++) {
        struct sketch *a = sketch_new(arena, "a.o");
        uint32_t text = sketch_section(a, ".text", SHF_ALLOC, "abcd", 4);
        for (int k = 0; k < 20; k++)
            sketch_symbol(a, arena_format(arena, "name%d", k * 7919 % 20), STB_GLOBAL,
                          text, 0, 0);
        ck_assert(object_build(arena, &a->object, &image[i], &err));
    }
    ck_assert_uint_eq(image[0].size, image[1].size);
    ck_assert_mem_eq(image[0].at, image[1].at, image[0].size);
}
END_TEST

/* Frames become one section, the one with a terminator last; a relocation against the
 * section symbol of the second still means the same byte. */
START_TEST(joined_frames)
{
    static const uint8_t end[] = {0, 0, 0, 0};
    static const uint8_t record[] = {4, 0, 0, 0, 0, 0, 0, 0};
    struct sketch *a = sketch_new(arena, "a.o");
    uint32_t first = sketch_section(a, ".eh_frame", SHF_ALLOC, end, sizeof end);
    uint32_t second = sketch_section(a, ".eh_frame", SHF_ALLOC, record, sizeof record);
    uint32_t third = sketch_section(a, ".eh_frame", SHF_ALLOC, record, sizeof record);
    uint32_t data = sketch_section(a, ".data", SHF_ALLOC, "12345678", 8);
    sketch_symbol(a, "", STB_LOCAL, second, 0, 0);
    uint32_t symbol = sketch_symbol(a, "", STB_LOCAL, third, 0, 0);
    sketch_symbol(a, "end", STB_GLOBAL, first, 0, 0);
    sketch_reloc(a, data, 0, symbol, R_X86_64_64, 4);
    sketch_reloc(a, third, 4, 0, R_X86_64_32, 0);
    const struct object *b = write_and_read(&a->object);
    ck_assert_uint_eq(b->section_count, 3);
    ck_assert_uint_eq(b->sections[1].data.size, 20);
    ck_assert_mem_eq(b->sections[1].data.at, record, 8);
    ck_assert_uint_eq(find_symbol(b, "end")->value, 16);
    ck_assert_uint_eq(b->sections[1].relocs[0].offset, 12);
    ck_assert_int_eq(b->sections[2].relocs[0].addend, 12);
    ck_assert_uint_eq(b->symbols[b->sections[2].relocs[0].symbol].type, STT_SECTION);
}
END_TEST

/* One that ends in a terminator stands before others of the model, as in what `ld -r`
 * makes, and helpers' frames behind: what is between keeps its number. */
START_TEST(joined_behind)
{
    static const uint8_t end[] = {0, 0, 0, 0};
    static const uint8_t record[] = {4, 0, 0, 0, 0, 0, 0, 0};
    struct sketch *a = sketch_new(arena, "a.o");
    struct bytes image;
    sketch_section(a, ".eh_frame", SHF_ALLOC, end, sizeof end);
    uint32_t data = sketch_section(a, ".data", SHF_ALLOC, "12345678", 8);
    uint32_t last = sketch_section(a, ".eh_frame", SHF_ALLOC, record, sizeof record);
    uint32_t symbol = sketch_symbol(a, "", STB_LOCAL, data, 0, 0);
    sketch_symbol(a, "", STB_LOCAL, last, 0, 0);
    sketch_reloc(a, data, 0, symbol, R_X86_64_64, 4);
    ck_assert(object_build(arena, &a->object, &image, &err));
    ck_assert_msg(output_read_back(&a->object, image, &err), "%s", err.message);
}
END_TEST

/* Debug sections are put together with their alignment; others stay apart. */
START_TEST(joined_debug)
{
    struct sketch *a = sketch_new(arena, "a.o");
    uint32_t first = sketch_section(a, ".debug_info", 0, "abcde", 5);
    uint32_t data = sketch_section(a, ".data", SHF_ALLOC, "12345678", 8);
    uint32_t other = sketch_section(a, ".data", SHF_ALLOC, "12345678", 8);
    uint32_t second = sketch_section(a, ".debug_info", 0, "fghi", 4);
    a->sections[second].align = 4;
    sketch_symbol(a, "", STB_LOCAL, first, 0, 0);
    uint32_t symbol = sketch_symbol(a, "", STB_LOCAL, second, 0, 0);
    uint32_t label = sketch_symbol(a, "label", STB_LOCAL, second, 1, 0);
    sketch_reloc(a, data, 0, symbol, R_X86_64_64, 3);
    sketch_reloc(a, other, 0, label, R_X86_64_64, 0);
    const struct object *b = write_and_read(&a->object);
    ck_assert_uint_eq(b->section_count, 4);
    ck_assert_uint_eq(b->sections[1].data.size, 12);
    ck_assert_mem_eq(b->sections[1].data.at, "abcde\0\0\0fghi", 12);
    ck_assert_int_eq(b->sections[2].relocs[0].addend, 11);
    ck_assert_uint_eq(find_symbol(b, "label")->value, 9);
}
END_TEST

/* Data may carry tags above their addresses; what lies beyond a section without them, and
 * code with them, is still an error. */
START_TEST(tagged_data)
{
    const uint64_t tag = UINT64_C(0x8e) << 56;
    struct sketch *a = sketch_new(arena, "a.o");
    uint32_t text = sketch_section(a, ".text", SHF_ALLOC | SHF_EXECINSTR, "\xc3", 1);
    uint32_t data = sketch_section(a, ".data", SHF_ALLOC | SHF_WRITE, "12345678", 8);
    uint32_t name = sketch_symbol(a, "x", STB_GLOBAL, data, tag + 4, 4);
    a->symbols[name].type = STT_OBJECT;
    sketch_reloc(a, data, 0, name, R_X86_64_64, 0);
    const struct object *b = write_and_read(&a->object);
    ck_assert(find_symbol(b, "x")->value == tag + 4);
    const struct object *alone[] = {b}, *merged = NULL;
    ck_assert(objects_merge(arena, "m.o", &(struct objects){alone, 1}, &merged, &err));
    ck_assert(find_symbol(merged, "x")->value == tag + 4);
    struct error why = {0};
    a->symbols[name].value = tag + 5;
    ck_assert(!object_check(&a->object, &why));
    a->symbols[name].value = tag + (UINT64_C(1) << 55);
    ck_assert(!object_check(&a->object, &why));
    a->symbols[name] = (struct symbol){"f", tag, 1, text, STB_GLOBAL, STT_OBJECT, 0};
    ck_assert(!object_check(&a->object, &why));
}
END_TEST

START_TEST(queries)
{
    struct sketch *a = sketch_new(arena, "a.o");
    uint32_t text =
        sketch_section(a, ".text", SHF_ALLOC | SHF_EXECINSTR, "0123456789", 10);
    uint32_t debug = sketch_section(a, ".debug_info", 0, "0123", 4);
    uint32_t f = sketch_symbol(a, "f", STB_GLOBAL, text, 4, 4);
    uint32_t symbol = sketch_symbol(a, "", STB_LOCAL, text, 0, 0);
    a->symbols[f].type = STT_FUNC;
    for (uint64_t at = 1; at < 9; at += 3)
        sketch_reloc(a, text, at, f, R_X86_64_8, 0);
    ck_assert(section_is_code(&a->sections[text]));
    ck_assert(!section_is_code(&a->sections[debug]));
    ck_assert(section_is_debug(&a->sections[debug]));
    ck_assert_uint_eq(section_reloc_at(&a->sections[text], 0), 0);
    ck_assert_uint_eq(section_reloc_at(&a->sections[text], 4), 1);
    ck_assert_uint_eq(section_reloc_at(&a->sections[text], 5), 2);
    ck_assert_uint_eq(section_reloc_at(&a->sections[text], 8), 3);
    ck_assert_uint_eq(object_section_symbol(&a->object, text), symbol);
    ck_assert_uint_eq(object_section_symbol(&a->object, debug), NO_INDEX);
    struct place place = object_place(&a->object, text, 6);
    ck_assert_str_eq(place.function, "f");
    ck_assert_uint_eq(place.function_offset, 2);
    ck_assert_ptr_null(object_place(&a->object, text, 8).function);
    const struct object *stripped = object_strip_debug(arena, &a->object);
    ck_assert_uint_eq(stripped->section_count, 2);
    ck_assert_uint_eq(stripped->sections[1].reloc_count, 3);
}
END_TEST

/* The first line of each pair says why; the second is the file, and what reading it
 * says. */
START_TEST(malformed)
{
    const char *here = __FILE__, *slash = strrchr(here, '/');
    const char *folder =
        arena_format(arena, "%.*s/../../fixtures/malformed",
                     slash ? (int)(slash - here) : 1, slash ? here : ".");
    char line[512];
    uint32_t count = 0;
    FILE *expected = fopen(arena_format(arena, "%s/expected", folder), "r");
    ck_assert_ptr_nonnull(expected);
    while (fgets(line, sizeof line, expected)) {
        if (line[0] == '#')
            continue;
        line[strcspn(line, "\n")] = '\0';
        const char *name = arena_format(arena, "%.*s", (int)strcspn(line, ":"), line);
        struct error found = {0};
        struct bytes image;
        const struct object *object;
        ck_assert_msg(file_read(arena, arena_format(arena, "%s/%s", folder, name),
                                &image, &found),
                      "%s", found.message);
        bool ok = object_read(arena, name, image, &object, &found);
        ck_assert_str_eq(ok ? name : found.message, line);
        count++;
    }
    fclose(expected);
    ck_assert_uint_gt(count, 40);
}
END_TEST

/* Every prefix of a sound object is refused, or read, but never crashes the reader. */
START_TEST(truncated)
{
    struct sketch *a = sketch_new(arena, "a.o");
    uint32_t text = sketch_section(a, ".text", SHF_ALLOC, "abcdefgh", 8);
    sketch_reloc(a, text, 0, sketch_symbol(a, "f", STB_GLOBAL, 0, 0, 0), R_X86_64_64,
                 0);
    struct bytes image;
    const struct object *object;
    ck_assert(object_build(arena, &a->object, &image, &err));
    for (uint64_t size = 0; size < image.size; size++) {
        struct error found = {0};
        struct bytes part = {arena_copy(arena, image.at, size), size};
        ck_assert(!object_read(arena, "part.o", part, &object, &found));
        ck_assert(found.set);
    }
}
END_TEST

/* Whole or not at all, and with the mode that the umask says. */
START_TEST(files)
{
    char folder[] = "/tmp/mo-test-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    const char *path = arena_format(arena, "%s/out", folder);
    const struct bytes bytes = {(const uint8_t *)"hello", 5};
    struct bytes back;
    ck_assert_msg(file_write(path, bytes, &err), "%s", err.message);
    ck_assert(file_write(path, bytes, &err));
    ck_assert(file_read(arena, path, &back, &err));
    ck_assert_uint_eq(back.size, 5);
    ck_assert_mem_eq(back.at, "hello", 5);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_msg(rmdir(folder) == 0, "a temporary file is left");
    ck_assert(!file_write(path, bytes, &err));
    ck_assert(err.set);
    struct error other = {0};
    ck_assert(file_write("/dev/null", bytes, &other));
    ck_assert(!file_read(arena, path, &back, &other));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("object");
    TCase *tests = tcase_create("object");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, round_trip);
    tcase_add_test(tests, many_sections);
    tcase_add_test(tests, deterministic);
    tcase_add_test(tests, joined_frames);
    tcase_add_test(tests, joined_behind);
    tcase_add_test(tests, joined_debug);
    tcase_add_test(tests, tagged_data);
    tcase_add_test(tests, queries);
    tcase_add_test(tests, malformed);
    tcase_add_test(tests, truncated);
    tcase_add_test(tests, files);
    tcase_set_timeout(tests, 60);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
