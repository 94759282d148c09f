/* SPDX-License-Identifier: MIT
 *
 * Folding, on a small x86-64 object made by hand:
 *
 *     f, g     global, the same code (they call `outside`)
 *     l        local, the same code as well
 *     h, i     local, the same code: each calls the other
 *     main     calls them all
 *     .data    holds the address of g
 *
 * Each case is this object with one thing about it changed. The checker is shown results
 * with a flaw in them, and must refuse every one.
 */
#include "mo/fold.h"

#include <check.h>
#include <elf.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_F = 1, TEXT_G, TEXT_L, TEXT_H, TEXT_I, TEXT_MAIN, DATA, SECTIONS };
enum {
    SYM_F = SECTIONS, /* behind the section symbols, one for each section */
    SYM_G,
    SYM_L,
    SYM_H,
    SYM_I,
    SYM_MAIN,
    SYM_OUTSIDE,
    SYM_OTHER,
    SYMBOLS
};

/* call; add $1,%eax; …; ret */
#define ADD(number) 0x83, 0xc0, (number)
static const uint8_t body[] = {0xe8,   0,      0,      0,       0,       ADD(1),
                               ADD(2), ADD(3), ADD(4), ADD(5),  ADD(6),  ADD(7),
                               ADD(8), ADD(9), ADD(10), ADD(11), ADD(12), 0xc3};
enum { SIZE = sizeof body, JUMP = 5, SECOND = 48 };

static struct arena *arena;
static struct row_table *rows;

struct scene {
    struct unit unit;
    struct section sections[SECTIONS];
    struct symbol symbols[SYMBOLS];
    struct reloc relocs[SECTIONS][8];
    uint8_t bytes[SECTIONS][128];
    struct group group;
    uint32_t members[1];
    struct object object;
    const struct object *items[1];
    struct objects objects;
};

static void put_text(struct scene *scene, uint32_t section, const char *name,
                     uint32_t callee)
{
    memcpy(scene->bytes[section], body, sizeof body);
    scene->relocs[section][0] = (struct reloc){1, -4, callee, R_X86_64_PLT32};
    scene->sections[section] = (struct section){
        .name = name,
        .type = SHT_PROGBITS,
        .flags = SHF_ALLOC | SHF_EXECINSTR,
        .align = 16,
        .data = {scene->bytes[section], sizeof body},
        .relocs = scene->relocs[section],
        .reloc_count = 1,
        .group = NO_INDEX,
    };
}

static void name(struct scene *scene, uint32_t symbol, const char *text,
                 uint32_t section, uint8_t bind)
{
    scene->symbols[symbol] = (struct symbol){
        .name = text,
        .section = section,
        .size = section ? scene->sections[section].data.size : 0,
        .bind = bind,
        .type = section ? STT_FUNC : STT_NOTYPE,
    };
}

static void put_main(struct scene *scene)
{
    static const uint32_t callees[] = {SYM_F, SYM_G, TEXT_L, SYM_H, SYM_I};
    put_text(scene, TEXT_MAIN, ".text.main", SYM_F);
    for (uint32_t i = 0; i < 5; i++) {
        scene->bytes[TEXT_MAIN][i * 5] = 0xe8;
        memset(&scene->bytes[TEXT_MAIN][i * 5 + 1], 0, 4);
        scene->relocs[TEXT_MAIN][i] =
            (struct reloc){i * 5 + 1, -4, callees[i], R_X86_64_PLT32};
    }
    scene->bytes[TEXT_MAIN][25] = 0xc3;
    scene->sections[TEXT_MAIN].data.size = 26;
    scene->sections[TEXT_MAIN].reloc_count = 5;
}

static struct scene *scene_new(void)
{
    struct scene *scene = arena_new_one(arena, struct scene);
    scene->unit.name = "a.o";
    scene->sections[0] = (struct section){.name = "", .align = 1, .group = NO_INDEX};
    put_text(scene, TEXT_F, ".text.f", SYM_OUTSIDE);
    put_text(scene, TEXT_G, ".text.g", SYM_OUTSIDE);
    put_text(scene, TEXT_L, ".text.l", SYM_OUTSIDE);
    put_text(scene, TEXT_H, ".text.h", SYM_I);
    put_text(scene, TEXT_I, ".text.i", SYM_H);
    put_main(scene);
    scene->relocs[DATA][0] = (struct reloc){8, 0, SYM_G, R_X86_64_64};
    scene->sections[DATA] = (struct section){.name = ".data",
                                             .type = SHT_PROGBITS,
                                             .flags = SHF_ALLOC | SHF_WRITE,
                                             .align = 8,
                                             .data = {scene->bytes[DATA], 16},
                                             .relocs = scene->relocs[DATA],
                                             .reloc_count = 1,
                                             .group = NO_INDEX};
    scene->symbols[0].name = "";
    for (uint32_t s = 1; s < SECTIONS; s++)
        scene->symbols[s] =
            (struct symbol){.name = "", .section = s, .type = STT_SECTION};
    name(scene, SYM_F, "f", TEXT_F, STB_GLOBAL);
    name(scene, SYM_G, "g", TEXT_G, STB_GLOBAL);
    name(scene, SYM_L, "l", TEXT_L, STB_LOCAL);
    name(scene, SYM_H, "h", TEXT_H, STB_LOCAL);
    name(scene, SYM_I, "i", TEXT_I, STB_LOCAL);
    name(scene, SYM_MAIN, "main", TEXT_MAIN, STB_GLOBAL);
    name(scene, SYM_OUTSIDE, "outside", 0, STB_GLOBAL);
    name(scene, SYM_OTHER, "other", 0, STB_GLOBAL);
    scene->object = (struct object){.name = "a.o",
                                    .machine = EM_X86_64,
                                    .units = &scene->unit,
                                    .unit_count = 1,
                                    .sections = scene->sections,
                                    .section_count = SECTIONS,
                                    .symbols = scene->symbols,
                                    .symbol_count = SYMBOLS};
    scene->items[0] = &scene->object;
    scene->objects = (struct objects){scene->items, 1};
    return scene;
}

static void put_in_group(struct scene *scene, uint32_t section, uint32_t symbol,
                         uint8_t bind)
{
    scene->members[0] = section;
    scene->group = (struct group){symbol, GRP_COMDAT, scene->members, 1};
    scene->object.groups = &scene->group;
    scene->object.group_count = 1;
    scene->sections[section].group = 0;
    scene->symbols[symbol].bind = bind;
}

static void setup(void)
{
    arena = arena_new();
    rows = row_table_new(arena);
}

static void teardown(void)
{
    arena_free(arena);
}

static const char *const keep_g[] = {"g"};
static const struct lift_options plain, kept = {.keep = keep_g, .keep_count = 1};

struct result {
    const struct object *before, *after;
    struct fold_plan plan;
    const uint32_t *section_at;
};

static void fold(struct scene *scene, const struct lift_options *lift, bool apart,
                 struct result *out)
{
    struct error err = {0};
    struct program *program;
    ck_assert_msg(object_check(&scene->object, &err), "%s", err.message);
    ck_assert_msg(program_lift(arena, &scene->objects, rows, lift, &program, &err), "%s",
                  err.message);
    struct fold_options options = {.apart = apart};
    *out = (struct result){.before = &scene->object};
    fold_make(arena, program, 0, &options, &out->plan);
    ck_assert_msg(fold_apply(arena, &out->plan, &out->after, &out->section_at, &err),
                  "%s", err.message);
}

static bool verify(const struct result *result, struct error *err)
{
    return fold_verify(result->before, result->after, &result->plan, result->section_at,
                       err);
}

/* The item of the function in a section, or NULL. */
static const struct folded *item_of(const struct result *result, uint32_t section)
{
    for (uint32_t i = 0; i < result->plan.count; i++) {
        const struct folded *item = &result->plan.items[i];
        if (result->plan.functions[item->function].section == section)
            return item;
    }
    return NULL;
}

static const struct symbol *symbol_of(const struct object *object, const char *text)
{
    for (uint32_t i = 1; i < object->symbol_count; i++) {
        if (strcmp(object->symbols[i].name, text) == 0)
            return &object->symbols[i];
    }
    ck_abort_msg("no symbol %s", text);
    return NULL;
}

/* --- what is folded --- */

struct expected {
    const char *what;
    int change; /* see change() */
    char f, g, l, h, i; /* '-': stays, 'a': its names are aliases, 'j': a jump */
    int64_t code;
};

enum {
    NOTHING,
    OTHER_CALLEE,
    OTHER_BYTE,
    TAKEN_LOCAL,
    TAKEN_FROM_GOT,
    UNALIGNED,
    KEPT,
    GROUP_WEAK,
    GROUP_APART,
    HIDDEN_CALLEES,
    STRONG_CALLEES,
    NO_END,
    ENDS_IN_CALL
};

static const struct expected cases[] = {
    {"as it is",                         NOTHING,        '-', 'j', 'a', '-', 'a', 3 * SIZE - JUMP},
    {"g calls another function",         OTHER_CALLEE,   '-', '-', 'a', '-', 'a', 2 * SIZE       },
    {"g has another byte",               OTHER_BYTE,     '-', '-', 'a', '-', 'a', 2 * SIZE       },
    {"the address of l is taken",        TAKEN_LOCAL,    '-', 'j', 'j', '-', 'a',
     3 * SIZE - 6 - JUMP                                                                         },
    {"the same, through the GOT",        TAKEN_FROM_GOT, '-', 'j', 'j', '-', 'a',
     3 * SIZE - 6 - JUMP                                                                         },
    {"sections that are not aligned",    UNALIGNED,      '-', 'j', 'a', '-', 'a', 3 * SIZE - JUMP},
    {"g is kept",                        KEPT,           '-', '-', 'a', '-', 'a', 2 * SIZE       },
    {"f in a group that may go",         GROUP_WEAK,     'j', '-', 'a', '-', 'a', 3 * SIZE - JUMP},
    {"f in a group, more objects",       GROUP_APART,    'j', '-', 'a', '-', 'a', 3 * SIZE - JUMP},
    {"all others called by strong name", STRONG_CALLEES, '-', 'j', 'a', '-', '-', 2 * SIZE - JUMP},
    {"f, g and l go on behind their ends", NO_END,       '-', '-', '-', '-', 'a', SIZE           },
    {"they end in calls",                ENDS_IN_CALL,   '-', '-', '-', '-', 'a', SIZE           },
    {"by hidden name",                   HIDDEN_CALLEES, '-', 'j', 'a', '-', 'j',
     3 * SIZE - 2 * JUMP                                                                         },
};

/* main ends in mov l@GOTPCREL(%rip),%rax; ret. */
static void load_from_got(struct scene *scene)
{
    static const uint8_t load[] = {0x48, 0x8b, 0x05, 0, 0, 0, 0, 0xc3};
    memcpy(&scene->bytes[TEXT_MAIN][25], load, sizeof load);
    scene->relocs[TEXT_MAIN][5] = (struct reloc){28, -4, SYM_L, R_X86_64_REX_GOTPCRELX};
    scene->sections[TEXT_MAIN].reloc_count = 6;
    scene->sections[TEXT_MAIN].data.size = 25 + sizeof load;
    scene->symbols[SYM_MAIN].size = 25 + sizeof load;
}

static void change(struct scene *scene, int what)
{
    switch (what) {
    case OTHER_CALLEE: scene->relocs[TEXT_G][0].symbol = SYM_OTHER; break;
    case OTHER_BYTE: scene->bytes[TEXT_G][7] = 9; break;
    case NO_END:
        for (uint32_t s = TEXT_F; s <= TEXT_L; s++)
            scene->bytes[s][SIZE - 1] = 0x98; /* cwtl */
        break;
    case ENDS_IN_CALL: /* call *%rax, without an unwind entry */
        for (uint32_t s = TEXT_F; s <= TEXT_L; s++) {
            scene->bytes[s][SIZE - 2] = 0xff;
            scene->bytes[s][SIZE - 1] = 0xd0;
            scene->bytes[s][SIZE - 4] = scene->bytes[s][SIZE - 3] = 0x98;
        }
        break;
    case UNALIGNED:
        for (uint32_t s = TEXT_F; s <= TEXT_MAIN; s++)
            scene->sections[s].align = 1;
        break;
    case TAKEN_FROM_GOT: load_from_got(scene); break;
    case TAKEN_LOCAL: scene->relocs[DATA][0].symbol = SYM_L; break;
    case GROUP_WEAK:
    case GROUP_APART: put_in_group(scene, TEXT_F, SYM_F, STB_WEAK); break;
    case STRONG_CALLEES:
    case HIDDEN_CALLEES:
        scene->symbols[SYM_H].bind = scene->symbols[SYM_I].bind = STB_GLOBAL;
        if (what == HIDDEN_CALLEES)
            scene->symbols[SYM_H].other = scene->symbols[SYM_I].other = STV_HIDDEN;
        break;
    default: break;
    }
}

static char way_of(const struct result *result, uint32_t section)
{
    const struct folded *item = item_of(result, section);
    return !item ? '-' : item->jumps ? 'j' : 'a';
}

START_TEST(folds)
{
    const struct expected *expected = &cases[_i];
    struct scene *scene = scene_new();
    change(scene, expected->change);
    struct result result;
    fold(scene, expected->change == KEPT ? &kept : &plain,
         expected->change == GROUP_APART, &result);
    char ways[6] = {way_of(&result, TEXT_F), way_of(&result, TEXT_G),
                    way_of(&result, TEXT_L), way_of(&result, TEXT_H),
                    way_of(&result, TEXT_I)};
    char wanted[6] = {expected->f, expected->g, expected->l, expected->h, expected->i};
    ck_assert_msg(strcmp(ways, wanted) == 0, "%s: %s, not %s", expected->what, ways,
                  wanted);
    ck_assert_msg(result.plan.code == expected->code, "%s: saves %d, not %d",
                  expected->what, (int)result.plan.code, (int)expected->code);
    for (uint32_t s = 1; s < result.after->section_count; s++) {
        const struct section *section = &result.after->sections[s];
        /* C++ takes odd addresses for virtual functions. */
        ck_assert(strcmp(section->name, ".text.folded") != 0 || section->align == 2);
    }
    struct error err = {0};
    ck_assert_msg(verify(&result, &err), "%s: %s", expected->what, err.message);
}
END_TEST

/* Two copies in groups: the first one's group is dissolved, unless there may be more. */
START_TEST(heirs_in_groups)
{
    for (int apart = 0; apart <= 1; apart++) {
        struct scene *scene = scene_new();
        static struct group groups[3];
        static uint32_t members[3];
        for (uint32_t i = 0; i < 3; i++) {
            members[i] = TEXT_F + i;
            groups[i] = (struct group){SYM_F + i, GRP_COMDAT, &members[i], 1};
            scene->sections[TEXT_F + i].group = i;
            scene->symbols[SYM_F + i].bind = STB_WEAK;
        }
        scene->object.groups = groups;
        scene->object.group_count = 3;
        struct result result;
        fold(scene, &plain, apart, &result);
        ck_assert_int_eq(way_of(&result, TEXT_G), apart ? '-' : 'j');
        ck_assert_int_eq(way_of(&result, TEXT_L), apart ? '-' : 'j');
        ck_assert_uint_eq(result.after->group_count, apart ? 3 : 0);
        struct error err = {0};
        ck_assert_msg(verify(&result, &err), "%s", err.message);
    }
}
END_TEST

/* Names, and where they are now. */
START_TEST(moves_names)
{
    struct scene *scene = scene_new();
    struct result result;
    fold(scene, &plain, false, &result);
    const struct symbol *f = symbol_of(result.after, "f");
    const struct symbol *g = symbol_of(result.after, "g");
    const struct symbol *l = symbol_of(result.after, "l");
    ck_assert_uint_eq(f->section, result.section_at[TEXT_F]);
    ck_assert_uint_eq(l->section, f->section);
    ck_assert_str_eq(result.after->sections[g->section].name, ".text.folded");
    ck_assert_uint_eq(g->size, JUMP);
    ck_assert_uint_eq(result.section_at[TEXT_G], 0);
}
END_TEST

/* --- in one section --- */

/* f and g side by side in .text, with padding between. */
static void put_together(struct scene *scene)
{
    uint8_t *at = scene->bytes[TEXT_F];
    memset(at + SIZE, 0x90, SECOND - SIZE);
    memcpy(at + SECOND, body, SIZE);
    scene->relocs[TEXT_F][1] =
        (struct reloc){SECOND + 1, -4, SYM_OUTSIDE, R_X86_64_PLT32};
    scene->sections[TEXT_F].name = ".text";
    scene->sections[TEXT_F].data.size = SECOND + SIZE;
    scene->sections[TEXT_F].reloc_count = 2;
    scene->symbols[SYM_G].section = TEXT_F;
    scene->symbols[SYM_G].value = SECOND;
    scene->bytes[TEXT_G][7] = 8; /* what was g has no name */
}

START_TEST(jumps_in_place)
{
    struct scene *scene = scene_new();
    put_together(scene);
    struct result result;
    fold(scene, &plain, false, &result);
    ck_assert_int_eq(way_of(&result, TEXT_F), 'j');
    ck_assert_int_eq(way_of(&result, TEXT_L), 'a');
    ck_assert_int_eq(result.plan.padding, SIZE - JUMP);
    const struct symbol *g = symbol_of(result.after, "g");
    ck_assert_uint_eq(g->value, SECOND);
    ck_assert_uint_eq(g->size, JUMP);
    const uint8_t *at =
        result.after->sections[result.section_at[TEXT_F]].data.at + g->value;
    ck_assert_uint_eq(at[0], 0xe9);
    struct error err = {0};
    ck_assert_msg(verify(&result, &err), "%s", err.message);
}
END_TEST

/* --- what the checker refuses --- */

static const char *const flaws[] = {
    "",
    "a byte of the heir",
    "g on the heir, though its address may be compared",
    "l on the jump of g",
    "the address of g is that of f",
    "main calls main",
    "another addend",
    "the jump leads elsewhere",
    "not a jump",
    "a symbol is gone",
    "a symbol is strong",
    "a section is gone",
    "g called something else",
    "g had another byte",
    "g was of another class",
    "h called f",
    "f, g and l went on behind their ends",
    "the plan is not in order",
};

static void plant(const char *flaw, struct scene *scene, struct result *result)
{
    struct object *after = arena_copy(arena, result->after, sizeof *after);
    struct section *sections =
        arena_copy(arena, after->sections, after->section_count * sizeof *sections);
    struct symbol *symbols =
        arena_copy(arena, after->symbols, after->symbol_count * sizeof *symbols);
    uint32_t *section_at = arena_copy(arena, result->section_at,
                                      SECTIONS * sizeof *section_at);
    for (uint32_t s = 1; s < after->section_count; s++) {
        sections[s].data.at =
            arena_copy(arena, sections[s].data.at, sections[s].data.size);
        sections[s].relocs = arena_copy(arena, sections[s].relocs,
                                        sections[s].reloc_count * sizeof(struct reloc));
    }
    after->sections = sections;
    after->symbols = symbols;
    result->after = after;
    result->section_at = section_at;
    struct symbol *f = &symbols[symbol_of(after, "f") - symbols];
    struct symbol *g = &symbols[symbol_of(after, "g") - symbols];
    struct symbol *l = &symbols[symbol_of(after, "l") - symbols];
    uint32_t text_main = section_at[TEXT_MAIN];
    struct reloc *calls = (struct reloc *)sections[text_main].relocs;
    struct reloc *jump = (struct reloc *)sections[g->section].relocs;
#define IS(text) (strcmp(flaw, text) == 0)
    if (IS("a byte of the heir"))
        ((uint8_t *)sections[f->section].data.at)[7]++;
    if (IS("g on the heir, though its address may be compared"))
        *g = (struct symbol){"g", 0, f->size, f->section, g->bind, g->type, g->other};
    if (IS("l on the jump of g"))
        *l = (struct symbol){"l", g->value, g->size, g->section, l->bind, l->type, 0};
    if (IS("the address of g is that of f"))
        ((struct reloc *)sections[section_at[DATA]].relocs)->symbol =
            (uint32_t)(f - symbols);
    if (IS("main calls main"))
        calls[0].symbol = (uint32_t)(symbol_of(after, "main") - symbols);
    if (IS("another addend"))
        calls[2].addend++;
    if (IS("the jump leads elsewhere"))
        jump->addend++;
    if (IS("not a jump"))
        ((uint8_t *)sections[g->section].data.at)[0] = 0xe8;
    if (IS("a symbol is gone"))
        g->name = "gg";
    if (IS("a symbol is strong"))
        l->bind = STB_GLOBAL;
    if (IS("a section is gone"))
        section_at[TEXT_MAIN] = 0;
    if (IS("g called something else"))
        scene->relocs[TEXT_G][0].symbol = SYM_OTHER;
    if (IS("g had another byte"))
        scene->bytes[TEXT_G][7] = 9;
    if (IS("h called f"))
        scene->relocs[TEXT_H][0].symbol = SYM_F;
    for (uint32_t s = TEXT_F; s <= TEXT_L && IS("f, g and l went on behind their ends");
         s++) {
        scene->bytes[s][SIZE - 1] = 0x98;
        if (section_at[s])
            ((uint8_t *)sections[section_at[s]].data.at)[SIZE - 1] = 0x98;
    }
    uint32_t count = result->plan.function_count;
    struct fold_function *functions =
        arena_copy(arena, result->plan.functions, count * sizeof *functions);
    result->plan.functions = functions;
    if (IS("g was of another class"))
        functions[item_of(result, TEXT_G)->function].class = 77;
    if (IS("the plan is not in order")) { /* of main nobody else speaks */
        struct fold_function last = functions[count - 1];
        memmove(functions + 1, functions, (count - 1) * sizeof *functions);
        functions[0] = last;
        struct folded *items = arena_copy(arena, result->plan.items,
                                          result->plan.count * sizeof *items);
        for (uint32_t i = 0; i < result->plan.count; i++) {
            items[i].function++;
            items[i].heir++;
        }
        result->plan.items = items;
    }
#undef IS
}

START_TEST(refuses)
{
    struct scene *scene = scene_new();
    struct result result;
    fold(scene, &plain, false, &result);
    plant(flaws[_i], scene, &result);
    struct error err = {0};
    bool right = verify(&result, &err);
    ck_assert_msg(right == (_i == 0), "%s: %s", flaws[_i],
                  right ? "accepted" : err.message);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fold");
    TCase *tests = tcase_create("fold");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, folds, 0, sizeof cases / sizeof *cases);
    tcase_add_test(tests, heirs_in_groups);
    tcase_add_test(tests, moves_names);
    tcase_add_test(tests, jumps_in_place);
    tcase_add_loop_test(tests, refuses, 0, sizeof flaws / sizeof *flaws);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
