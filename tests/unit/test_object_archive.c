/* SPDX-License-Identifier: MIT
 *
 * Archives: names of all kinds, thin ones, hostile ones, and the choice of members.
 */
#include "test_object.h"

#include <check.h>
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

/* An object that defines one name and refers to another (either may be NULL). */
static const struct object *object_of(const char *defined, const char *wanted,
                                      uint8_t bind)
{
    struct sketch *a = sketch_new(arena, "a.o");
    uint32_t text = sketch_section(a, ".text", SHF_ALLOC, "abcdefgh", 8);
    if (defined)
        sketch_symbol(a, defined, STB_GLOBAL, text, 0, 0);
    if (wanted)
        sketch_symbol(a, wanted, bind, SECTION_UNDEFINED, 0, 0);
    return &a->object;
}

static struct bytes image_of(const struct object *object)
{
    struct bytes image;
    ck_assert_msg(object_build(arena, object, &image, &err), "%s", err.message);
    return image;
}

START_TEST(round_trip)
{
    struct archive_member members[] = {
        {"short.o",                    image_of(object_of("f",      NULL,  0)),          true, NULL},
        {"a-name-that-does-not-fit.o", image_of(object_of("g",      "f",   STB_GLOBAL)), true, NULL},
        {"notes.txt",                  {(const uint8_t *)"odd", 3}, false, NULL},
        {"fifteen-chars.o",                         image_of(object_of(NULL,                                          "g",  STB_WEAK)),             true, NULL},
    };
    const struct archive archive = {"lib.a", members, 4, false};
    struct archive back;
    struct bytes image;
    ck_assert(archive_build(arena, &archive, &image, &err));
    ck_assert(archive_recognise(image));
    /* The index says that f is in the first member: big-endian offset of its header. */
    ck_assert_mem_eq(image.at + 8, "/               0 ", 18);
    ck_assert_uint_eq(image.at[8 + 60 + 3], 2);
    ck_assert_mem_eq(image.at + 8 + 60 + 12, "f\0g", 4);
    ck_assert_msg(archive_read(arena, "lib.a", image, &back, &err), "%s", err.message);
    ck_assert_uint_eq(back.count, 4);
    for (int i = 0; i < 4; i++) {
        ck_assert_str_eq(back.members[i].name, members[i].name);
        ck_assert_int_eq(back.members[i].is_object, members[i].is_object);
        ck_assert_uint_eq(back.members[i].image.size, members[i].image.size);
        ck_assert_mem_eq(back.members[i].image.at, members[i].image.at,
                         members[i].image.size);
    }
}
END_TEST

static void put_header(struct buffer *out, const char *name, uint64_t size)
{
    const char *text = arena_format(arena, "%-16s%-12s%-6s%-6s%-8s%-10u`\n", name, "0",
                                    "0", "0", "644", (unsigned)size);
    buffer_put(out, text, 60);
}

START_TEST(bsd_names)
{
    struct buffer out = buffer_new(arena);
    struct archive archive;
    buffer_put(&out, "!<arch>\n", 8);
    put_header(&out, "#1/12", 16);
    buffer_put(&out, "long name.o\0body", 16);
    put_header(&out, "__.SYMDEF", 4);
    buffer_put(&out, "1234", 4);
    ck_assert_msg(archive_read(arena, "lib.a", buffer_bytes(&out), &archive, &err),
                  "%s", err.message);
    ck_assert_uint_eq(archive.count, 1);
    ck_assert_str_eq(archive.members[0].name, "long name.o");
    ck_assert_mem_eq(archive.members[0].image.at, "body", 4);
}
END_TEST

/* Members of a thin archive lie beside it. */
START_TEST(thin)
{
    char folder[] = "/tmp/mo-test-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    const char *member = arena_format(arena, "%s/member.o", folder);
    const char *path = arena_format(arena, "%s/lib.a", folder);
    struct bytes image = image_of(object_of("f", NULL, 0));
    struct buffer out = buffer_new(arena);
    struct archive archive;
    buffer_put(&out, "!<thin>\n", 8);
    put_header(&out, "//", 10);
    buffer_put(&out, "member.o/\n", 10);
    put_header(&out, "/0", image.size);
    ck_assert(!archive_read(arena, path, buffer_bytes(&out), &archive, &err));
    err.set = false;
    ck_assert(file_write(member, image, &err));
    ck_assert_msg(archive_read(arena, path, buffer_bytes(&out), &archive, &err), "%s",
                  err.message);
    ck_assert(archive.thin);
    ck_assert_uint_eq(archive.count, 1);
    ck_assert_str_eq(archive.members[0].name, "member.o");
    ck_assert_mem_eq(archive.members[0].image.at, image.at, image.size);
    unlink(member);
    rmdir(folder);
}
END_TEST

static const struct {
    const char *name, *size;
    const char *message;
} hostile[] = {
    {"a.o/",    "99999",
     "lib.a: archive+0x8: is truncated: member a.o/ of 99999 bytes "
     "leaves the file"                                                           },
    {"a.o/",    "-1",    "lib.a: archive+0x8: there is no member header"         },
    {"/7",      "4",     "lib.a: archive+0x44: member name /7 leads nowhere"     },
    {"#1/5",    "4",     "lib.a: archive+0x44: member name #1/5 leads nowhere"   },
    {"/999999", "4",     "lib.a: archive+0x44: member name /999999 leads nowhere"},
};

START_TEST(hostile_archives)
{
    struct buffer out = buffer_new(arena);
    struct archive archive;
    buffer_put(&out, "!<arch>\n", 8);
    const char *text =
        arena_format(arena, "%-48s%-10s`\n", hostile[_i].name, hostile[_i].size);
    buffer_put(&out, text, 60);
    buffer_put(&out, "body", 4);
    ck_assert(!archive_read(arena, "lib.a", buffer_bytes(&out), &archive, &err));
    ck_assert_str_eq(err.message, hostile[_i].message);
}
END_TEST

START_TEST(choice)
{
    const struct object *root = object_of("main", "f", STB_GLOBAL);
    const struct object *weak = object_of(NULL, "w", STB_WEAK);
    const struct object *const items[] = {root, weak};
    const struct objects roots = {items, 2};
    const struct object *const members[] = {
        object_of("g", NULL, 0),
        object_of("f", "g", STB_GLOBAL),
        object_of("f", NULL, 0),
        object_of("w", NULL, 0),
        object_of("unused", "f", STB_GLOBAL),
        NULL,
    };
    bool chosen[6];
    archive_choose(arena, &roots, members, 6, chosen);
    static const bool expected[] = {true, true, false, false, false, false};
    for (int i = 0; i < 6; i++)
        ck_assert_msg(chosen[i] == expected[i], "member %d", i);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("archive");
    TCase *tests = tcase_create("archive");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, round_trip);
    tcase_add_test(tests, bsd_names);
    tcase_add_test(tests, thin);
    tcase_add_loop_test(tests, hostile_archives, 0, sizeof hostile / sizeof *hostile);
    tcase_add_test(tests, choice);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
