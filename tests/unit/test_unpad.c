/* SPDX-License-Identifier: MIT
 *
 * No-ops that align labels, on x86-64 functions written by hand: which of them go, that
 * the checker takes the result, and that it takes no result from which more has gone.
 */
#include "mo/plan.h"

#include <check.h>
#include <elf.h>
#include <string.h>

struct example {
    const char *what;
    const char *code; /* bytes; the function is all of the section */
    uint32_t size, dropped;
};

#define CODE(text) text, sizeof(text) - 1

/* 75 jne rel8, eb jmp rel8, c3 ret, 90 and 66 90 no-ops, 31 c0 xor, ff c0 inc */
static const struct example examples[] = {
    {"nothing to drop", CODE("\x31\xc0\x75\x02\xff\xc0\xff\xc0\xc3"), 0},
    {"behind a jump", CODE("\x31\xc0\xeb\x03\x90\x66\x90\xff\xc0\x75\xfc\xc3"), 3},
    {"where code falls through", CODE("\x31\xc0\x66\x90\xff\xc0\x75\xfc\xc3"), 2},
    {"no label behind it", CODE("\x31\xc0\x66\x90\xff\xc0\xc3"), 0},
    {"it is where a jump leads", CODE("\x31\xc0\x75\x02\xff\xc0\x90\xff\xc0\x75\xfc\xc3"),
     0},
    {"before one where a jump leads",
     CODE("\x31\xc0\x75\x02\x66\x90\x90\xff\xc0\x75\xfc\xc3"), 0},
    {"behind a return", CODE("\x75\x03\xc3\x66\x90\xff\xc0\xc3"), 2},
    {"at the start", CODE("\x66\x90\xff\xc0\x75\xfc\xc3"), 0},
    {"behind a call", CODE("\x75\x05\xff\xd0\x0f\x1f\x00\xff\xc0\x75\xfc\xc3"), 0},
    {"two runs", CODE("\xeb\x01\x90\xff\xc0\xeb\x02\x66\x90\xff\xc0\x75\xfc\xc3"), 3},
};

static struct arena *arena;

struct scene {
    struct unit unit;
    struct section sections[2];
    struct symbol symbols[2];
    struct object object;
    const struct object *items[1];
    struct objects objects;
};

static void make(struct scene *scene, const void *code, uint32_t size)
{
    *scene = (struct scene){.unit = {.name = "a.o"}};
    scene->sections[0] = (struct section){.name = "", .align = 1, .group = NO_INDEX};
    scene->sections[1] = (struct section){.name = ".text",
                                          .type = SHT_PROGBITS,
                                          .flags = SHF_ALLOC | SHF_EXECINSTR,
                                          .align = 16,
                                          .data = {code, size},
                                          .group = NO_INDEX};
    scene->symbols[0].name = "";
    scene->symbols[1] = (struct symbol){.name = "f",
                                        .section = 1,
                                        .size = size,
                                        .bind = STB_GLOBAL,
                                        .type = STT_FUNC};
    scene->object = (struct object){.name = "a.o",
                                    .machine = EM_X86_64,
                                    .units = &scene->unit,
                                    .unit_count = 1,
                                    .sections = scene->sections,
                                    .section_count = 2,
                                    .symbols = scene->symbols,
                                    .symbol_count = 2};
    scene->items[0] = &scene->object;
    scene->objects = (struct objects){scene->items, 1};
}

static struct objects unpad(struct scene *scene)
{
    struct error err = {0};
    struct program *program;
    struct lift_options lift = {.drop_alignment = true};
    struct objects out = scene->objects;
    bool more;
    ck_assert_msg(program_lift(arena, &scene->objects, row_table_new(arena), &lift,
                               &program, &err) &&
                      program_unpad(arena, program, &out, &more, &err),
                  "%s", err.message);
    return out;
}

START_TEST(drops)
{
    const struct example *example = &examples[_i];
    arena = arena_new();
    struct scene scene;
    make(&scene, example->code, example->size);
    struct objects out = unpad(&scene);
    uint64_t size = out.items[0]->sections[1].data.size;
    ck_assert_msg(example->size - size == example->dropped, "%s: dropped %d, not %d",
                  example->what, (int)(example->size - size), (int)example->dropped);
    struct error err = {0};
    ck_assert_msg(unpad_verify(&scene.objects, &out, 1, &err), "%s: %s", example->what,
                  err.message);
    arena_free(arena);
}
END_TEST

/* Results from which something has gone, or come, that is no no-op. */
START_TEST(refuses)
{
    static const struct example bad[] = {
        {"an instruction has gone", CODE("\x31\xc0\x75\xfe\xc3"), 0},
        {"another one", CODE("\x31\xc0\xff\xc8\x75\xfc\xc3"), 0},
        {"the branch leads elsewhere", CODE("\x31\xc0\xff\xc0\x75\xfa\xc3"), 0},
        {"one too many", CODE("\x31\xc0\xff\xc0\xff\xc0\x75\xfc\xc3"), 0},
    };
    arena = arena_new();
    struct scene before, after;
    make(&before, CODE("\x31\xc0\x66\x90\xff\xc0\x75\xfc\xc3"));
    make(&after, bad[_i].code, bad[_i].size);
    struct error err = {0};
    ck_assert_msg(!unpad_verify(&before.objects, &after.objects, 1, &err), "%s: accepted",
                  bad[_i].what);
    arena_free(arena);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("unpad");
    TCase *tests = tcase_create("unpad");
    tcase_add_loop_test(tests, drops, 0, sizeof examples / sizeof *examples);
    tcase_add_loop_test(tests, refuses, 0, 4);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
