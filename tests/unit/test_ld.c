/* SPDX-License-Identifier: MIT
 *
 * The linker step's ears: command lines of linkers, what linkers print, linker scripts.
 * tests/run/ld.py has the real ones; here is what they rarely say.
 */
#include "src/ld/ld.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = 16 };

static struct arena *arena;

static struct command read_line(const char *line)
{
    const char **words = arena_new_array(arena, const char *, MOST_WORDS);
    uint32_t count = 0;
    for (char *word = strtok(arena_strdup(arena, line), " "); word;
         word = strtok(NULL, " "))
        words[count++] = word;
    return command_read(arena, words, count);
}

/* One letter for each word: o option, v value, f file, l library, n name of one. */
static const struct {
    const char *line, *roles;
} lines[] = {
    {"a.o -o prog b.o",                    "fovf"   },
    {"a.o -oprog b.o",                     "fof"    },
    {"--output prog a.o",                  "ovf"    },
    {"-output a.o",                        "of"     }, /* -o with "utput" */
    {"-soname libx.so a.o",                "ovf"    },
    {"-soname=libx.so a.o",                "of"     },
    {"--soname libx.so a.o",               "ovf"    },
    {"-s a.o",                             "of"     },
    {"-lfoo -l foo --library=foo",         "lonl"   },
    {"--library foo -l:libfoo.a",          "onl"    },
    {"-T x.ld -Tx.ld -Ttext 0 -Ttext=0",   "ovoovo" },
    {"-z now -znow -m elf_x86_64 a.o",     "ovoovf" },
    {"-e start -estart -entry start a.o",  "ovoovf" },
    {"--no-such-option a.o",               "of"     },
    {"-L dir -Ldir -rpath dir a.o",        "ovoovf" },
    {"-plugin x.so -plugin-opt=-lfoo a.o", "ovof"   },
    {"- a.o -(",                           "ffo"    },
};

START_TEST(roles)
{
    static const char letters[] = "ovfln"; /* ORDER word_role */
    struct command command = read_line(lines[_i].line);
    ck_assert_uint_eq(command.count, strlen(lines[_i].roles));
    for (uint32_t i = 0; i < command.count; i++)
        ck_assert_msg(letters[command.words[i].role] == lines[_i].roles[i],
                      "'%s': word %u is '%c'", lines[_i].line, i,
                      letters[command.words[i].role]);
}
END_TEST

START_TEST(meanings)
{
    struct command command = read_line("a.o -Map=m -Map m2 -o p -m elf_x86_64 -r -s "
                                       "--gc-sections --no-gc-sections -M");
    ck_assert_str_eq(command.map, "m2");
    ck_assert_str_eq(command.output, "p");
    ck_assert_str_eq(command.emulation, "elf_x86_64");
    ck_assert(command.relocatable && command.strips_debug && command.prints &&
              command.prints_map && !command.gc_sections && !command.strange);
    ck_assert_uint_eq(command.file_count, 1);
    command = read_line("a.o -b binary x.txt");
    ck_assert_str_eq(command.strange, "-b");
    ck_assert_str_eq(command.output, "a.out");
    command = read_line("a.o --wrap=f -wrap g --defsym=h=f -wrap=i");
    ck_assert_uint_eq(command.wrap.count, 3);
    ck_assert_str_eq(command.wrap.items[0], "f");
    ck_assert_str_eq(command.wrap.items[1], "g");
    ck_assert_str_eq(command.wrap.items[2], "i");
    ck_assert_uint_eq(read_line("--version").file_count, 0);
}
END_TEST

static struct bytes bytes_of(const char *text)
{
    return (struct bytes){(const uint8_t *)text, strlen(text)};
}

static const struct loaded *find(const struct trace *trace, const char *path,
                                 const char *member)
{
    for (uint32_t i = 0; i < trace->count; i++) {
        const struct loaded *loaded = &trace->items[i];
        if (strcmp(loaded->path, path) == 0 && !loaded->member == !member &&
            (!member || strcmp(loaded->member, member) == 0))
            return loaded;
    }
    ck_abort_msg("no entry for %s", path);
}

START_TEST(traces)
{
    struct outcome outcome = {
        .out = bytes_of("a.o\n./lib(1).a\n(./lib(1).a)m.o\nlibx.a(m.o)\nlibx.a(m.o)\n"
                        "removing unused section a.o:(.text.lld)\n\n()\n(x)\n"
                        "removing unused section libx.a(m.o):(.text.(odd):(one))\n"),
        .err = bytes_of("ld: removing unused section '.text.bfd' in file 'a.o'\n"
                        "b.o: a warning\n"
                        "ld.gold: removing unused section from '.t' in file "
                        "'libx.a(m.o)'\nremoving unused section of a kind unknown")};
    struct trace trace = trace_read(arena, &outcome);
    const struct loaded *object = find(&trace, "a.o", NULL);
    ck_assert_uint_eq(object->times, 1);
    ck_assert_uint_eq(object->named.count, 2);
    ck_assert_str_eq(object->named.items[0], ".text.lld");
    ck_assert_str_eq(object->named.items[1], ".text.bfd");
    const struct loaded *member = find(&trace, "libx.a", "m.o");
    ck_assert_uint_eq(member->times, 2);
    ck_assert_uint_eq(member->named.count, 2);
    ck_assert_str_eq(member->named.items[1], ".t");
    for (uint32_t i = 0; i < trace.count; i++)
        ck_assert_str_ne(trace.items[i].path, "b.o: a warning");
}
END_TEST

START_TEST(maps)
{
    struct trace trace = trace_read_map(
        arena, bytes_of("     VMA   Size Align Out   In   Symbol\n"
                        "  0x1760    323    16 .text\n"
                        "  0x1769     69     1         a b.o:(.text.main)\n"
                        "  0x1769      0     0                 main\n"
                        "  0x17ae     17     1         libfoo.a(foo.o):(.text.foo)\n"));
    ck_assert(trace.kept);
    ck_assert_uint_eq(trace.count, 2);
    ck_assert_str_eq(find(&trace, "a b.o", NULL)->named.items[0], ".text.main");
    ck_assert_str_eq(find(&trace, "libfoo.a", "foo.o")->named.items[0], ".text.foo");
}
END_TEST

/* NULL: new paths match wherever the old ones did. */
static const struct {
    const char *script, *names;
} scripts[] = {
    {"SECTIONS { .text : { *(.text .text.*) } /DISCARD/ : { *(.x) } }", NULL          },
    {"{ KEEP (*crtbegin.o(.ctors)) KEEP(*(SORT(.ctors.*))) }",          NULL          },
    {"{ KEEP (*(EXCLUDE_FILE (*crtend.o *crtend?.o ) .ctors)) }",       NULL          },
    {"{ */crtn.o(.fini) *libc.a:*(.text) }",                            NULL          },
    {"SEARCH_DIR(\"=/usr/lib\"); /* src/a.o */ . = 0x1000;",            NULL          },
    {"{ src/a.o(.text) }",                                              "src/a.o"     },
    {"{ a.o(.text) }",                                                  "a.o"         },
    {"{ */src/a.o(.text) }",                                            "*/src/a.o"   },
    {"{ libx.a:b.o(.text) }",                                           "libx.a:b.o"  },
    {"{ libx.a:b?(.text) }",                                            "libx.a:b?"   },
    {"{ *libfoo-c++.a:bar.o(.text) }",                                  NULL          },
    {"{ drivers/*(.text) }",                                            "drivers/*"   },
    {"/* no end a.o",                                                   NULL          },
    {"",                                                                NULL          },
};

START_TEST(linker_scripts)
{
    const char *name = script_names_files(arena, bytes_of(scripts[_i].script));
    if (!scripts[_i].names)
        ck_assert_msg(!name, "'%s' names %s", scripts[_i].script, name);
    else
        ck_assert_str_eq(name, scripts[_i].names);
}
END_TEST

static void set_up(void)
{
    arena = arena_new();
}

static void tear_down(void)
{
    arena_free(arena);
}

int main(void)
{
    Suite *suite = suite_create("ld");
    TCase *cases = tcase_create("words");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_loop_test(cases, roles, 0, sizeof lines / sizeof *lines);
    tcase_add_test(cases, meanings);
    tcase_add_test(cases, traces);
    tcase_add_test(cases, maps);
    tcase_add_loop_test(cases, linker_scripts, 0, sizeof scripts / sizeof *scripts);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
