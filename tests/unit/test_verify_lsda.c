/* SPDX-License-Identifier: MIT
 *
 * The checker on call-site tables: a thunk under a landing pad, and a tail.
 */
#include "verify_draft.h"

#define BYTES(...)                                                                     \
    ((const uint8_t[]){__VA_ARGS__}), sizeof((const uint8_t[]){__VA_ARGS__})
#define SUB_24    0x48, 0x83, 0xec, 0x18
#define ADD_24    0x48, 0x83, 0xc4, 0x18
#define MOV_EAX_1 0xb8, 1, 0, 0, 0
#define CALL_REL  0xe8, 0, 0, 0, 0
#define LOAD      0x48, 0x8b, 0x44, 0x0f, 8 /* mov 8(%rdi,%rcx),%rax */
#define JMP_REL   0xe9, 0, 0, 0, 0
#define RETQ      0xc3
#define UD2       0x0f, 0x0b

/* One end of an object: its symbols, and the table of its only function. */
struct side_maker {
    struct scene *scene;
    struct draft *draft;
    uint32_t text, text_symbol;
    const uint8_t *table;
    uint32_t table_size, type_at; /* offset of the only type, or 0 */
    const char *type;
};

enum { CIE_SIZE = 0x20, LSDA_FIELD = 17 };

/* Personality, table, code; the frame of 24 bytes lasts from 4 to `end`. */
static void add_entry(const struct side_maker *maker, uint32_t size, uint32_t end)
{
    struct draft *draft = maker->draft;
    uint32_t tables_symbol, frames_symbol;
    uint32_t tables = add_section(draft, ".gcc_except_table", 0, 0, maker->table,
                                  maker->table_size, &tables_symbol);
    if (maker->type_at)
        add_reloc(draft, tables, maker->type_at, R_X86_64_PC32,
                  add_undefined(draft, maker->type), 0);
    uint8_t bytes[CIE_SIZE + 0x24] = {
        /* CIE: zPLR; CFA = rsp + 8, return address at CFA - 8 */
        CIE_SIZE - 4, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'P', 'L', 'R', 0, 1, 0x78, 16, 7,
        0x9b, 0, 0, 0, 0, 0x1b, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0,
        /* FDE */
        0x20, 0, 0, 0, CIE_SIZE + 4, 0, 0, 0, 0, 0, 0, 0, (uint8_t)size, 0, 0, 0, 4, 0,
        0, 0, 0, 0x44, 0x0e, 32, (uint8_t)(0x40 + end - 4), 0x0e, 8};
    uint32_t frames =
        add_section(draft, ".eh_frame", 0, 0, bytes, sizeof bytes, &frames_symbol);
    add_reloc(draft, frames, 19, R_X86_64_PC32,
              add_undefined(draft, "DW.ref.__gxx_personality_v0"), 0);
    add_reloc(draft, frames, CIE_SIZE + 8, R_X86_64_PC32, maker->text_symbol, 0);
    add_reloc(draft, frames, CIE_SIZE + LSDA_FIELD, R_X86_64_PC32, tables_symbol, 0);
}

static struct side_maker maker_of(struct scene *scene, struct draft *draft)
{
    return (struct side_maker){.scene = scene, .draft = draft, .type = "_ZTIi"};
}

/* A header, two call sites of four bytes, an action of two, a type at 16. */
#define SITES(...)       0xff, 0x9b, 17, 1, 8, __VA_ARGS__, 1, 0, 0, 0, 0, 0, 0
#define PASSING(...)     0xff, 0xff, 1, 4, __VA_ARGS__
#define NOTHING          0xff, 0xff, 1, 0
#define SITE(a, b, c, d) (a), (b), (c), (d)

/* mov, call g under a landing pad; the pad calls again. */
static void make_old_thunk(struct scene *scene)
{
    struct side_maker maker = maker_of(scene, &scene->before);
    struct draft *draft = maker.draft;
    maker.text = add_code(
        draft, 0,
        BYTES(SUB_24, MOV_EAX_1, CALL_REL, ADD_24, RETQ, MOV_EAX_1, CALL_REL, UD2),
        &maker.text_symbol);
    add_function(draft, "f", maker.text, 0, 31, true);
    uint32_t g = add_undefined(draft, "g");
    add_reloc(draft, maker.text, 10, R_X86_64_PLT32, g, -4);
    add_reloc(draft, maker.text, 25, R_X86_64_PLT32, g, -4);
    uint8_t table[] = {SITES(SITE(9, 5, 19, 1), SITE(24, 5, 0, 0))};
    maker.table = table;
    maker.table_size = sizeof table;
    maker.type_at = 16;
    add_entry(&maker, 31, 31);
}

static void thunk(struct scene *scene)
{
    make_old_thunk(scene);
    struct side_maker maker = maker_of(scene, &scene->after);
    struct draft *draft = maker.draft;
    uint32_t helpers, helper_symbol;
    maker.text =
        add_code(draft, 0, BYTES(SUB_24, CALL_REL, ADD_24, RETQ, CALL_REL, UD2),
                 &maker.text_symbol);
    add_function(draft, "f", maker.text, 0, 21, true);
    helpers = add_code(draft, 1, BYTES(MOV_EAX_1, JMP_REL), &helper_symbol);
    add_function(draft, "h", helpers, 0, 10, false);
    add_reloc(draft, maker.text, 5, R_X86_64_PLT32, helper_symbol, -4);
    add_reloc(draft, maker.text, 15, R_X86_64_PLT32, helper_symbol, -4);
    add_reloc(draft, helpers, 6, R_X86_64_PLT32, add_undefined(draft, "g"), -4);
    uint8_t table[] = {SITES(SITE(4, 5, 14, 1), SITE(14, 5, 0, 0))};
    if (has(scene, "gap"))
        table[6] = 4; /* the call's last byte is outside */
    if (has(scene, "passes"))
        table[7] = table[8] = 0;
    if (has(scene, "pad"))
        table[7] = 13;
    if (has(scene, "action"))
        table[8] = 2;
    if (has(scene, "caught"))
        table[12] = 1;
    if (has(scene, "actions"))
        table[13] = 0;
    if (has(scene, "unreadable"))
        table[3] = 9;
    if (has(scene, "type"))
        maker.type = "_ZTIl";
    maker.table = table;
    maker.table_size = sizeof table;
    maker.type_at = has(scene, "no type") ? 0 : 16;
    add_entry(&maker, 21, 21);
    helper_rows(scene, helper_symbol, 10, row_at_entry(scene->rows, EM_X86_64));
}

static void add_call(struct draft *draft, uint32_t section, uint32_t at, bool calls)
{
    if (calls)
        add_reloc(draft, section, at + 1, R_X86_64_PLT32, add_undefined(draft, "g"),
                  -4);
}

/* call g (or a load, which may fault); add; ret: a tail, if exceptions pass through. */
static void tail(struct scene *scene)
{
    static const uint8_t passing[] = {PASSING(SITE(4, 5, 0, 0))};
    static const uint8_t nothing[] = {NOTHING};
    static const uint8_t landing[] = {PASSING(SITE(4, 5, 9, 0))};
    bool lands = has(scene, "lands"),
         load = has(scene, "load") || has(scene, "load gap");
    bool gap = has(scene, "gap") || has(scene, "load gap");
    for (int side = 0; side < 2; side++) {
        struct draft *draft = side ? &scene->after : &scene->before;
        struct side_maker maker = maker_of(scene, draft);
        uint32_t helpers, helper_symbol, text;
        maker.table = gap ? nothing : lands ? landing : passing;
        maker.table_size = gap ? sizeof nothing : sizeof passing;
        if (side && has(scene, "empty"))
            maker.table = nothing, maker.table_size = sizeof nothing;
        if (!side) {
            const uint8_t calls[] = {SUB_24, CALL_REL, ADD_24, RETQ};
            const uint8_t loads[] = {SUB_24, LOAD, ADD_24, RETQ};
            text = add_code(draft, 0, load ? loads : calls, sizeof calls,
                            &maker.text_symbol);
            add_function(draft, "f", text, 0, 14, true);
            add_call(draft, text, 4, !load);
            add_entry(&maker, 14, 13);
            continue;
        }
        text = add_code(draft, 0, BYTES(SUB_24, JMP_REL), &maker.text_symbol);
        add_function(draft, "f", text, 0, 9, true);
        const uint8_t calls[] = {CALL_REL, ADD_24, RETQ},
                      loads[] = {LOAD, ADD_24, RETQ};
        helpers =
            add_code(draft, 1, load ? loads : calls, sizeof calls, &helper_symbol);
        add_function(draft, "h", helpers, 0, 10, false);
        add_reloc(draft, text, 5, R_X86_64_PLT32, helper_symbol, -4);
        add_call(draft, helpers, 0, !load);
        /* 9 is no place in the code any more */
        static const uint8_t landing_new[] = {PASSING(SITE(4, 5, 4, 0))};
        if (lands)
            maker.table = landing_new;
        add_entry(&maker, 9, 8);
        struct row_change changes[] = {
            {0,    row(scene, 32, SAVED(16, -8), NONE)},
            {9, row_at_entry(scene->rows,     EM_X86_64)      }
        };
        add_frame(scene, draft, helper_symbol, 1, 10, changes, 2);
    }
}

static const struct pair_case pairs[] = {
    {EM_X86_64, thunk, "",           NULL                    },
    {EM_X86_64, thunk, "gap",        "handled in another way"},
    {EM_X86_64, thunk, "passes",     "handled in another way"},
    {EM_X86_64, thunk, "pad",        "did not become"        },
    {EM_X86_64, thunk, "action",     "another action"        },
    {EM_X86_64, thunk, "caught",     "handled in another way"},
    {EM_X86_64, thunk, "actions",    "other actions"         },
    {EM_X86_64, thunk, "unreadable", "handled in another way"},
    {EM_X86_64, thunk, "type",       "refers to '_ZTIl'"     },
    {EM_X86_64, thunk, "no type",    "another type"          },
    {EM_X86_64, tail,  "",           NULL                    },
    {EM_X86_64, tail,  "empty",      NULL                    },
    {EM_X86_64, tail,  "gap",        "handled in another way"},
    {EM_X86_64, tail,  "lands",      "handled in another way"},
    {EM_X86_64, tail,  "load",       NULL                    },
    {EM_X86_64, tail,  "load gap",   "handled in another way"},
};

START_TEST(judges_pairs)
{
    check_pair(&pairs[_i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("verify_lsda");
    TCase *tests = tcase_create("pairs");
    tcase_add_loop_test(tests, judges_pairs, 0, sizeof pairs / sizeof *pairs);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
