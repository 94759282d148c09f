/* SPDX-License-Identifier: MIT */
#include "mo/bytes.h"
#include "mo/profile.h"

#include <check.h>
#include <string.h>

struct example {
    const char *text;
    uint32_t percent;
    const char *hot; /* names, busiest first; NULL: it is an error … */
    const char *said; /* … that says this */
};

static const struct example examples[] = {
    {"", 99, "", NULL},
    {"f 10\n", 99, "f", NULL},
    {"# names and counts\n  f\t10  \n\ng 90", 99, "g f", NULL},
    {"f 10\ng 90\n", 90, "g", NULL},
    {"f 10\ng 90\n", 91, "g f", NULL},
    {"f 1\ng 1\nh 1\n", 10, "f g h", NULL}, /* none is busier than another */
    {"f 50\ng 30\nf 20\nh 0\n", 50, "f", NULL}, /* counts of a name add up */
    {"f 1\ng 0\n", 99, "f", NULL},
    {"f 99999999999999999\ng 1\n", 99, "f", NULL},
    {"lua 4711 1.5:  999 cycles:  55d0 luaV_execute+0x1c (/usr/bin/lua)\n"
     "lua 4711 1.6:  999 cycles:u:  55d8 luaV_execute+0x24 (/usr/bin/lua)\n"
     "lua 4711 1.7:  999 cycles:  5610 luaD_call (/usr/bin/lua)\n",
     60, "luaV_execute", NULL},
    {"lua 1 1.5: 1 cycles: \n\t    55d0 f+0x1c (/usr/bin/lua)\n\t 5610 g+0x40 (x)\n\n"
     "lua 1 1.6: 1 cycles: \n\t    55d0 f+0x1c (/usr/bin/lua)\n\t 5610 h+0x40 (x)\n\n"
     "lua 1 1.7: 1 cycles: \n\t    55d0 h+0x1c (/usr/bin/lua)\n\t 5610 g+0x40 (x)\n\n",
     99, "f h", NULL}, /* innermost frames only */
    {"lua 1 1.5: 1 cycles: \n\t 55d0 [unknown] (/usr/bin/lua)\n\t 5610 g+0x40 (x)\n\n"
     "lua 1 1.6: 1 cycles:  55d0 [unknown] ([unknown])\n",
     99, "", NULL},
    {"lua 1 1.5: 1 cycles: 10 operator new(unsigned long)+0x1 (/lib/x.so)\n", 99,
     "operator new(unsigned long)", NULL},
    {"lua 1 1.5: 1 cycles: 10 f(int) (.cold)+0x1 (/lib/x.so)\n", 99, "f(int)", NULL},
    {"f 10\ng ten\n", 99, NULL, "line 2"},
    {"f 10\nnonsense\n", 99, NULL, "line 2"},
    {"f -1\n", 99, NULL, "line 1"},
    {"f 1 2\n", 99, NULL, "line 1"},
};

START_TEST(reads)
{
    const struct example *example = &examples[_i];
    struct arena *arena = arena_new();
    struct bytes text = {(const uint8_t *)example->text, strlen(example->text)};
    struct error err = {0};
    struct table *hot, *all;
    bool ok = profile_read(arena, "p.txt", text, example->percent, &hot, &all, &err);
    ck_assert_msg(ok == (example->hot != NULL), "%d: %s", _i, ok ? "read" : err.message);
    if (!ok) {
        ck_assert_msg(strstr(err.message, example->said) != NULL, "%s", err.message);
        arena_free(arena);
        return;
    }
    char names[256] = "";
    for (uint32_t i = 0; i < table_count(hot); i++) {
        struct bytes name = table_key(hot, i);
        if (i > 0)
            strcat(names, " ");
        strncat(names, (const char *)name.at, name.size);
    }
    ck_assert_msg(strcmp(names, example->hot) == 0, "%d: '%s', not '%s'", _i, names,
                  example->hot);
    arena_free(arena);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("profile");
    TCase *tests = tcase_create("profile");
    tcase_add_loop_test(tests, reads, 0, sizeof examples / sizeof *examples);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
