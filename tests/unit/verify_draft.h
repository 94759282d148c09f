/* SPDX-License-Identifier: MIT
 *
 * Pairs of small objects, made by hand, for the checker. Each scene is right when
 * nothing is planted in it, and must be refused, for the reason that is given, with
 * each of its flaws: a checker that accepts everything would pass no line of a table
 * but the first of each scene.
 */
#ifndef MO_TEST_VERIFY_DRAFT_H
#define MO_TEST_VERIFY_DRAFT_H

#include "mo/object.h"
#include "mo/plan.h"
#include "mo/unwind.h"

#include <check.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

/* --- making objects --- */

enum { MOST_SECTIONS = 8, MOST_SYMBOLS = 16, MOST_RELOCS = 16, MOST_CHANGES = 4 };

struct draft {
    struct arena *arena;
    struct object object;
    struct unit units[2]; /* the input, ours */
    struct section sections[MOST_SECTIONS];
    struct symbol symbols[MOST_SYMBOLS];
    struct reloc relocs[MOST_SECTIONS][MOST_RELOCS];
};

/* What a scene is made with. */
struct scene {
    struct arena *arena;
    struct row_table *rows;
    struct draft before, after;
    const char *flaw; /* "" for none */
};

static inline bool has(const struct scene *scene, const char *flaw)
{
    return strcmp(scene->flaw, flaw) == 0;
}

static inline void start(struct draft *draft, struct arena *arena, uint16_t machine)
{
    *draft = (struct draft){.arena = arena};
    draft->units[0] = (struct unit){.name = "a.o"};
    draft->units[1] = (struct unit){.name = "(helpers)", .helpers = true};
    draft->sections[0] = (struct section){.name = "", .group = NO_INDEX};
    draft->symbols[0] = (struct symbol){.name = ""};
    draft->object = (struct object){.name = "a.o",
                                    .machine = machine,
                                    .units = draft->units,
                                    .unit_count = 2,
                                    .sections = draft->sections,
                                    .section_count = 1,
                                    .symbols = draft->symbols,
                                    .symbol_count = 1};
}

static uint32_t add_symbol(struct draft *draft, struct symbol symbol)
{
    ck_assert_uint_lt(draft->object.symbol_count, MOST_SYMBOLS);
    draft->symbols[draft->object.symbol_count] = symbol;
    return draft->object.symbol_count++;
}

/* Returns the index; the section's symbol is the one behind it in `symbols`. */
static uint32_t add_section(struct draft *draft, const char *name, uint64_t flags,
                            uint32_t unit, const void *data, uint64_t size,
                            uint32_t *symbol)
{
    ck_assert_uint_lt(draft->object.section_count, MOST_SECTIONS);
    uint32_t number = draft->object.section_count++;
    draft->sections[number] = (struct section){
        .name = name,
        .type = SHT_PROGBITS,
        .flags = SHF_ALLOC | flags,
        .align = 4,
        .data = {arena_copy(draft->arena, data, size), size},
        .relocs = draft->relocs[number],
        .group = NO_INDEX,
        .unit = unit
    };
    struct symbol section = {
        .name = "", .section = number, .bind = STB_LOCAL, .type = STT_SECTION};
    *symbol = add_symbol(draft, section);
    return number;
}

static uint32_t add_code(struct draft *draft, uint32_t unit, const void *data,
                         uint64_t size, uint32_t *symbol)
{
    return add_section(draft, unit ? ".text.outlined" : ".text", SHF_EXECINSTR, unit,
                       data, size, symbol);
}

static uint32_t add_function(struct draft *draft, const char *name, uint32_t section,
                             uint64_t value, uint64_t size, bool global)
{
    return add_symbol(draft, (struct symbol){.name = name,
                                             .value = value,
                                             .size = size,
                                             .section = section,
                                             .bind = global ? STB_GLOBAL : STB_LOCAL,
                                             .type = STT_FUNC});
}

static inline uint32_t add_undefined(struct draft *draft, const char *name)
{
    return add_symbol(draft, (struct symbol){.name = name, .bind = STB_GLOBAL});
}

static inline void add_reloc(struct draft *draft, uint32_t section, uint64_t offset,
                             uint32_t type, uint32_t symbol, int64_t addend)
{
    uint32_t *count = &draft->sections[section].reloc_count;
    ck_assert_uint_lt(*count, MOST_RELOCS);
    draft->relocs[section][(*count)++] = (struct reloc){offset, addend, symbol, type};
}

/* One row: the CFA's offset from SP, and up to three rules. */
static inline uint32_t row(struct scene *scene, int64_t cfa, struct rule a, struct rule b)
{
    struct rule rules[2] = {a, b};
    uint32_t stack = scene->before.object.machine == EM_AARCH64 ? 31 : 7;
    return row_intern(scene->rows,
                      &(struct row){.cfa_register = stack,
                                    .cfa_offset = cfa,
                                    .rules = rules,
                                    .rule_count = (a.kind != RULE_UNSPECIFIED) +
                                                  (b.kind != RULE_UNSPECIFIED)});
}

#define NONE ((struct rule){0})
#define SAVED(reg, at)                                                                 \
    ((struct rule){.column = (reg), .kind = RULE_OFFSET, .value = (at)})
#define KEPT(reg, in)                                                                  \
    ((struct rule){.column = (reg), .kind = RULE_REGISTER, .value = (in)})

/* An .eh_frame with one entry for [0, size) of a code section. */
static inline void add_frame(struct scene *scene, struct draft *draft,
                             uint32_t code_symbol, uint32_t unit, uint32_t size,
                             const struct row_change *changes, uint32_t change_count)
{
    struct frame_range range = {
        .length = size, .changes = changes, .change_count = change_count};
    uint32_t number = draft->object.section_count++;
    ck_assert_uint_lt(number, MOST_SECTIONS);
    frames_build(scene->arena, draft->object.machine, scene->rows, &range, 1,
                 code_symbol, unit, &draft->sections[number]);
    draft->sections[number].group = NO_INDEX;
}

static inline void helper_rows(struct scene *scene, uint32_t symbol, uint32_t size,
                               uint32_t helper_row)
{
    struct row_change changes[] = {
        {0, helper_row}
    };
    if (!has(scene, "no helper row"))
        add_frame(scene, &scene->after, symbol, 1, size, changes, 1);
}

/* --- running --- */

static const struct verify_options one_worker = {.workers = 1};

struct pair_case {
    uint16_t machine;
    void (*make)(struct scene *scene);
    const char *flaw;
    const char *reason; /* in the message; NULL: all is well */
};

static inline struct scene *make_scene(const struct pair_case *pair)
{
    struct scene *scene = calloc(1, sizeof *scene);
    ck_assert_ptr_nonnull(scene);
    scene->arena = arena_new();
    scene->rows = row_table_new(scene->arena);
    scene->flaw = pair->flaw;
    start(&scene->before, scene->arena, pair->machine);
    start(&scene->after, scene->arena, pair->machine);
    pair->make(scene);
    return scene;
}

static inline void free_scene(struct scene *scene)
{
    arena_free(scene->arena);
    free(scene);
}

static inline void check_pair(const struct pair_case *pair)
{
    struct scene *scene = make_scene(pair);
    const struct object *before = &scene->before.object, *after = &scene->after.object;
    struct error err = {0};
    ck_assert_msg(object_check(before, &err), "%s: %s", pair->flaw, err.message);
    ck_assert_msg(object_check(after, &err), "%s: %s", pair->flaw, err.message);
    bool same = outline_verify(&(struct objects){&before, 1},
                               &(struct objects){&after, 1}, &one_worker, &err);
    if (!pair->reason)
        ck_assert_msg(same, "flaw '%s': %s", pair->flaw, err.message);
    else
        ck_assert_msg(!same && strstr(err.message, pair->reason), "flaw '%s': %s",
                      pair->flaw, same ? "accepted" : err.message);
    free_scene(scene);
}

static inline int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
