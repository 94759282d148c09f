/* SPDX-License-Identifier: MIT
 *
 * Call-site tables by hand: every encoding, what is refused, and what becomes of a
 * section of them when one is edited.
 */
#include "mo/array.h"
#include "mo/lsda.h"

#include <check.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum { CODE = 1, TABLES, DATA, SECTIONS };
enum { SYM_CODE = 1, SYM_TABLES, SYM_TYPE, SYM_PERSONALITY, SYM_LABEL, SYMBOLS };
enum { MOST_TABLES = 4, CODE_SIZE = 0x1000, FUNCTION = 0x400 };
enum { OMIT = 0xff, ULEB = 1, PCREL_SDATA4 = 0x9b, PCREL_SDATA8 = 0x9c };

static struct arena *arena;
static struct section sections[SECTIONS];
static struct symbol symbols[SYMBOLS];
static struct unit unit = {.name = "a.o"};
static struct object object;
static struct cie cie;
static struct fde fdes[MOST_TABLES];
static struct frames frames;
static struct buffer bytes;
static array_of(struct reloc) relocs;

static void setup(void)
{
    arena = arena_new();
    memset(sections, 0, sizeof sections);
    memset(fdes, 0, sizeof fdes);
    sections[0] = (struct section){.name = "", .group = NO_INDEX};
    sections[CODE] = (struct section){
        .name = ".text",
        .type = SHT_PROGBITS,
        .flags = SHF_ALLOC | SHF_EXECINSTR,
        .align = 16,
        .group = NO_INDEX,
        .data = {arena_alloc(arena, CODE_SIZE), CODE_SIZE}
    };
    sections[DATA] = (struct section){
        .name = ".data",
        .type = SHT_PROGBITS,
        .flags = SHF_ALLOC | SHF_WRITE,
        .align = 8,
        .group = NO_INDEX,
        .data = {arena_alloc(arena, 64), 64}
    };
    memset(symbols, 0, sizeof symbols);
    symbols[SYM_CODE] =
        (struct symbol){.name = "", .type = STT_SECTION, .section = CODE};
    symbols[SYM_TABLES] =
        (struct symbol){.name = "", .type = STT_SECTION, .section = TABLES};
    symbols[SYM_TYPE] = (struct symbol){.name = "_ZTIi", .bind = STB_GLOBAL};
    symbols[SYM_PERSONALITY] =
        (struct symbol){.name = "DW.ref.__gxx_personality_v0", .bind = STB_GLOBAL};
    symbols[SYM_LABEL] =
        (struct symbol){.name = "GCC_except_table0", .section = TABLES};
    object = (struct object){.name = "a.o",
                             .machine = EM_X86_64,
                             .units = &unit,
                             .unit_count = 1,
                             .sections = sections,
                             .section_count = SECTIONS,
                             .symbols = symbols,
                             .symbol_count = SYMBOLS};
    cie = (struct cie){.has_personality = true, .personality = SYM_PERSONALITY};
    frames = (struct frames){&cie, 1, fdes, 0};
    bytes = buffer_new(arena);
    memset(&relocs, 0, sizeof relocs);
}

static void teardown(void)
{
    arena_free(arena);
}

/* --- making tables --- */

struct shape {
    uint8_t start, types, sites; /* encodings */
    const struct call_site *records;
    uint32_t record_count;
    const uint8_t *actions;
    uint32_t action_count;
    uint32_t type_count;
    const char *lists; /* bytes behind the types */
    uint32_t lists_size;
};

static const struct call_site plain_sites[] = {
    {0x10,  0x18,  0x200,    1},
    {0x20,  0x90,  NO_INDEX, 0},
    {0x100, 0x180, 0x300,    0},
    {0x180, 0x190, 0x310,    5},
};
/* 1: type 1, then 3; 3: cleanup; 5: the list at -1, then nothing. */
static const uint8_t plain_actions[] = {1, 1, 0, 0, 0x7f, 0};

static const struct shape plain = {
    OMIT, PCREL_SDATA4, ULEB, plain_sites, 4, plain_actions, 6, 2, "\2", 2};

static void put_number(struct buffer *out, uint8_t encoding, uint64_t value)
{
    switch (encoding & 0xf) {
    case 2:
    case 10: buffer_u16(out, (uint16_t)value); break;
    case 3:
    case 11: buffer_u32(out, (uint32_t)value); break;
    case 4:
    case 12: buffer_u64(out, value); break;
    default: buffer_uleb(out, value);
    }
}

static struct bytes sites_of(const struct shape *shape)
{
    struct buffer out = buffer_new(arena);
    for (uint32_t i = 0; i < shape->record_count; i++) {
        const struct call_site *site = &shape->records[i];
        put_number(&out, shape->sites, site->start);
        put_number(&out, shape->sites, site->end - site->start);
        put_number(&out, shape->sites, site->pad == NO_INDEX ? 0 : site->pad);
        buffer_uleb(&out, site->action);
    }
    return buffer_bytes(&out);
}

static uint32_t uleb_size(uint64_t value)
{
    uint32_t size = 1;
    while (value >>= 7)
        size++;
    return size;
}

/* Appends a table as compilers write it, and an FDE for it. */
static void add_table(const struct shape *shape)
{
    uint32_t type_size = (shape->types & 0xf) == 0xc ? 8 : 4;
    if (shape->types != OMIT)
        buffer_fill(&bytes, 0, align_up(bytes.size, type_size) - bytes.size);
    uint32_t f = frames.fde_count++;
    fdes[f] = (struct fde){.code_section = CODE,
                           .start = f * FUNCTION,
                           .length = FUNCTION,
                           .has_lsda = true,
                           .lsda_section = TABLES,
                           .lsda_offset = (uint32_t)bytes.size};
    buffer_u8(&bytes, shape->start);
    if (shape->start != OMIT) {
        struct reloc reloc = {bytes.size, fdes[f].start, SYM_CODE, R_X86_64_64};
        array_push(arena, &relocs, reloc);
        buffer_u64(&bytes, 0);
    }
    buffer_u8(&bytes, shape->types);
    struct bytes sites = sites_of(shape);
    if (shape->types != OMIT) {
        uint64_t behind = 1 + uleb_size(sites.size) + sites.size + shape->action_count;
        uint32_t width = 0;
        uint64_t end;
        do {
            width++;
            end = align_up(bytes.size + width + behind, type_size) +
                  shape->type_count * type_size;
        } while (uleb_size(end - bytes.size - width) > width);
        buffer_uleb(&bytes, end - bytes.size - width);
    }
    buffer_u8(&bytes, shape->sites);
    buffer_uleb(&bytes, sites.size);
    buffer_put(&bytes, sites.at, sites.size);
    buffer_put(&bytes, shape->actions, shape->action_count);
    if (shape->types == OMIT)
        return;
    buffer_fill(&bytes, 0, align_up(bytes.size, type_size) - bytes.size);
    for (uint32_t i = 0; i < shape->type_count; i++) {
        struct reloc reloc = {bytes.size, i, SYM_TYPE, R_X86_64_PC32};
        array_push(arena, &relocs, reloc);
        buffer_fill(&bytes, 0, type_size);
    }
    buffer_put(&bytes, shape->lists, shape->lists_size);
}

/* The relocations of the FDEs' pointers lie in some section: `.data` will do. */
static struct lsdas read_tables(void)
{
    struct reloc *pointers = arena_new_array(arena, struct reloc, MOST_TABLES);
    for (uint32_t i = 0; i < frames.fde_count; i++)
        pointers[i] =
            (struct reloc){8 * i, fdes[i].lsda_offset, SYM_TABLES, R_X86_64_PC32};
    sections[DATA].relocs = pointers;
    sections[DATA].reloc_count = frames.fde_count;
    /* A copy, so that a sanitizer sees what is read behind its end. */
    uint8_t *copy = malloc(bytes.size ? bytes.size : 1);
    memcpy(copy, bytes.at, bytes.size);
    sections[TABLES] = (struct section){
        .name = ".gcc_except_table",
        .type = SHT_PROGBITS,
        .flags = SHF_ALLOC,
        .align = 8,
        .group = NO_INDEX,
        .data = {copy, bytes.size},
        .relocs = relocs.items,
        .reloc_count = relocs.count
    };
    struct lsdas lsdas;
    lsdas_read(arena, &object, &frames, &lsdas);
    return lsdas;
}

static void free_tables(void)
{
    free((void *)sections[TABLES].data.at);
}

static void check_all(const struct lsdas *lsdas, enum refusal wanted)
{
    ck_assert_uint_eq(lsdas->count, frames.fde_count);
    for (uint32_t i = 0; i < lsdas->count; i++)
        ck_assert_uint_eq(lsdas->items[i].refusal, wanted);
}

static void check_sites(const struct lsda *lsda, const struct shape *shape,
                        uint32_t base)
{
    ck_assert_uint_eq(lsda->site_count, shape->record_count);
    for (uint32_t i = 0; i < lsda->site_count; i++) {
        const struct call_site *a = &lsda->sites[i], *b = &shape->records[i];
        ck_assert_uint_eq(a->start, base + b->start);
        ck_assert_uint_eq(a->end, base + b->end);
        ck_assert_uint_eq(a->pad, b->pad == NO_INDEX ? NO_INDEX : base + b->pad);
        ck_assert_uint_eq(a->action, b->action);
    }
}

/* --- reading --- */

START_TEST(reads_every_encoding)
{
    static const uint8_t encodings[] = {1, 2, 3, 4, 10, 11, 12};
    static const uint8_t types[] = {PCREL_SDATA4, PCREL_SDATA8, 0x03, 0x00};
    struct shape shape = plain;
    shape.sites = encodings[_i % 7];
    shape.types = types[_i / 7 % 4];
    shape.start = _i % 2 ? 0 : OMIT;
    if (shape.types == 0)
        shape.types = 0x0c; /* absolute, of eight bytes */
    add_table(&plain);
    add_table(&shape);
    struct lsdas lsdas = read_tables();
    check_all(&lsdas, REFUSAL_NONE);
    check_sites(&lsdas.items[0], &plain, 0);
    check_sites(&lsdas.items[1], &shape, FUNCTION);
    ck_assert_uint_eq(lsdas.items[1].type_count, 2);
    ck_assert_uint_eq(lsdas.items[1].actions_end - lsdas.items[1].actions, 6);
    ck_assert_uint_eq(lsdas.items[1].lists_end, bytes.size);
    ck_assert_uint_eq(lsdas.of_fde[1], 1);
    free_tables();
}
END_TEST

START_TEST(finds_the_site_around)
{
    add_table(&plain);
    struct lsdas lsdas = read_tables();
    const struct lsda *lsda = &lsdas.items[0];
    ck_assert_ptr_null(lsda_site_at(lsda, 0x0f));
    ck_assert_ptr_eq(lsda_site_at(lsda, 0x10), &lsda->sites[0]);
    ck_assert_ptr_eq(lsda_site_at(lsda, 0x17), &lsda->sites[0]);
    ck_assert_ptr_null(lsda_site_at(lsda, 0x18));
    ck_assert_ptr_eq(lsda_site_at(lsda, 0x20), &lsda->sites[1]);
    ck_assert_ptr_eq(lsda_site_at(lsda, 0x180), &lsda->sites[3]);
    ck_assert_ptr_null(lsda_site_at(lsda, 0x190));
    free_tables();
}
END_TEST

/* --- refusing --- */

enum { GOOD_TABLE = 0 };

struct malformed {
    const char *what;
    struct call_site sites[2];
    uint8_t actions[4];
    uint8_t types, sites_encoding;
};

static const struct malformed malformed[] = {
    {"overlapping sites",
     {{0x10, 0x20, NO_INDEX, 0}, {0x18, 0x28, NO_INDEX, 0}},
     {0},
     OMIT,         ULEB},
    {"a site behind the end",
     {{0x10, 0x20, NO_INDEX, 0}, {0x30, 0x401, NO_INDEX, 0}},
     {0},
     OMIT,         ULEB},
    {"a pad at the end",
     {{0x10, 0x20, 0x400, 0}, {0x30, 0x38, NO_INDEX, 0}},
     {0},
     OMIT,         ULEB},
    {"an action too far",
     {{0x10, 0x20, 0x40, 90}, {0x30, 0x38, NO_INDEX, 0}},
     {0},
     OMIT,         ULEB},
    {"a type without types",
     {{0x10, 0x20, 0x40, 1}, {0x30, 0x38, NO_INDEX, 0}},
     {1, 0},
     OMIT,         ULEB},
    {"too many types",
     {{0x10, 0x20, 0x40, 1}, {0x30, 0x38, NO_INDEX, 0}},
     {60, 0},
     PCREL_SDATA4, ULEB},
    {"a list too far",
     {{0x10, 0x20, 0x40, 1}, {0x30, 0x38, NO_INDEX, 0}},
     {0x40, 0},
     PCREL_SDATA4, ULEB},
    {"a chain that leaves",
     {{0x10, 0x20, 0x40, 1}, {0x30, 0x38, NO_INDEX, 0}},
     {0, 0x40},
     OMIT,         ULEB},
    {"types of two bytes",
     {{0x10, 0x20, 0x40, 0}, {0x30, 0x38, NO_INDEX, 0}},
     {0},
     0x9a,         ULEB},
    {"types in LEB128",
     {{0x10, 0x20, 0x40, 0}, {0x30, 0x38, NO_INDEX, 0}},
     {0},
     0x01,         ULEB},
    {"signed sites",
     {{0x10, 0x20, 0x40, 0}, {0x30, 0x38, NO_INDEX, 0}},
     {0},
     OMIT,         0x09},
    {"relative sites",
     {{0x10, 0x20, 0x40, 0}, {0x30, 0x38, NO_INDEX, 0}},
     {0},
     OMIT,         0x13},
};

START_TEST(refuses_malformed)
{
    const struct malformed *bad = &malformed[_i];
    struct shape shape = {
        OMIT, bad->types, bad->sites_encoding, bad->sites, 2, bad->actions, 4, 1,
        "",   0};
    add_table(&plain);
    add_table(&shape);
    struct lsdas lsdas = read_tables();
    check_all(&lsdas, REFUSAL_EXCEPTION_TABLE);
    free_tables();
}
END_TEST

/* Cut off anywhere, and with any byte changed: no crash, and what is accepted lies in
 * the code. (A sanitizer looks at the rest.) */
START_TEST(survives_damage)
{
    add_table(&plain);
    struct buffer whole = bytes;
    array_of(struct reloc) none = {0};
    memcpy(&relocs, &none, sizeof relocs);
    for (uint32_t i = 0; i < whole.size * 4; i++) {
        static const uint8_t changes[] = {0xff, 0x80, 0x7f, 0x01};
        bytes = buffer_new(arena);
        buffer_put(&bytes, whole.at, _i ? whole.size : i / 4 + 1);
        if (_i)
            bytes.at[i / 4] ^= changes[i % 4];
        struct lsdas lsdas = read_tables();
        for (uint32_t s = 0; s < lsdas.items[0].site_count; s++)
            ck_assert(lsdas.items[0].refusal != REFUSAL_NONE ||
                      lsdas.items[0].sites[s].end <= FUNCTION);
        free_tables();
    }
}
END_TEST

enum foreign {
    FOREIGN_REFERENCE,
    FOREIGN_SYMBOL,
    FOREIGN_GLOBAL,
    FOREIGN_SHARED,
    FOREIGN_PERSONALITY,
    FOREIGN_NO_PERSONALITY,
    FOREIGN_FRAME,
    FOREIGN_RELOC,
    FOREIGN_COUNT
};

START_TEST(refuses_what_others_refer_to)
{
    add_table(&plain);
    add_table(&plain);
    struct reloc *code = arena_new_one(arena, struct reloc);
    switch ((enum foreign)_i) {
    case FOREIGN_REFERENCE:
        *code = (struct reloc){4, 0, SYM_TABLES, R_X86_64_PC32};
        sections[CODE].relocs = code;
        sections[CODE].reloc_count = 1;
        break;
    case FOREIGN_SYMBOL: symbols[SYM_LABEL].value = 3; break;
    case FOREIGN_GLOBAL: symbols[SYM_LABEL].bind = STB_GLOBAL; break;
    case FOREIGN_SHARED: fdes[1].lsda_offset = 0; break;
    case FOREIGN_PERSONALITY: symbols[SYM_PERSONALITY].name = "mine"; break;
    case FOREIGN_NO_PERSONALITY: cie.has_personality = false; break;
    case FOREIGN_FRAME: fdes[1].refusal = REFUSAL_BAD_FRAME; break;
    default: relocs.items[0].offset = 6; /* among the call sites */
    }
    struct lsdas lsdas = read_tables();
    check_all(&lsdas, REFUSAL_EXCEPTION_TABLE);
    free_tables();
}
END_TEST

/* GNU as marks data in the middle of a table, too; on other machines that is a symbol
 * like any other, and so is a global one. */
START_TEST(knows_marks_of_data)
{
    add_table(&plain);
    add_table(&plain);
    object.machine = _i == 1 ? EM_X86_64 : EM_AARCH64;
    symbols[SYM_LABEL].name = _i == 2 ? "$data" : "$d.1";
    symbols[SYM_LABEL].bind = _i == 3 ? STB_GLOBAL : STB_LOCAL;
    symbols[SYM_LABEL].value = 3;
    struct lsdas lsdas = read_tables();
    check_all(&lsdas, _i == 0 ? REFUSAL_NONE : REFUSAL_EXCEPTION_TABLE);
    free_tables();
}
END_TEST

/* --- writing --- */

static struct section rewrite(const struct lsdas *lsdas, struct lsda_edit *edits,
                              uint32_t *starts)
{
    struct section out;
    lsdas_rewrite(arena, &object, TABLES, sections[TABLES].relocs, lsdas, edits, &out,
                  starts);
    return out;
}

/* The sites of table i, as an edit that changes nothing. */
static struct lsda_edit same_sites(const struct lsdas *lsdas, uint32_t i)
{
    const struct lsda *lsda = &lsdas->items[i];
    return (struct lsda_edit){true, fdes[lsda->fde].start, lsda->sites,
                              lsda->site_count};
}

START_TEST(writes_what_it_read)
{
    static const uint8_t cleanup[] = {0, 0};
    static const uint8_t encodings[] = {1, 2, 3, 4, 10, 11, 12};
    struct shape shape = plain;
    shape.sites = encodings[_i % 7];
    shape.start = _i % 2 ? 0 : OMIT;
    if (_i >= 7) {
        shape.types = OMIT;
        shape.record_count = 3;
        shape.actions = cleanup;
        shape.action_count = 2;
    }
    for (int i = 0; i < MOST_TABLES; i++)
        add_table(i % 2 ? &plain : &shape);
    struct lsdas lsdas = read_tables();
    check_all(&lsdas, REFUSAL_NONE);
    struct lsda_edit edits[MOST_TABLES];
    uint32_t starts[MOST_TABLES];
    for (uint32_t i = 0; i < MOST_TABLES; i++)
        edits[i] = same_sites(&lsdas, i);
    struct section out = rewrite(&lsdas, edits, starts);
    ck_assert_uint_eq(out.data.size, bytes.size);
    ck_assert_int_eq(memcmp(out.data.at, bytes.at, bytes.size), 0);
    for (uint32_t i = 0; i < relocs.count; i++)
        ck_assert_uint_eq(out.relocs[i].offset, relocs.items[i].offset);
    free_tables();
}
END_TEST

/* The first table shrinks, the others move up; a table that is nobody's stays with the
 * one before it. */
START_TEST(moves_the_others)
{
    add_table(&plain);
    bool orphan = _i % 2;
    add_table(&plain);
    if (orphan)
        frames.fde_count--;
    struct shape bare = {OMIT, OMIT, ULEB, plain_sites, 3, (const uint8_t *)"", 0,
                         0,    "",   0};
    add_table(&bare);
    add_table(&plain);
    if (orphan)
        frames.fde_count = 3;
    struct lsdas lsdas = read_tables();
    check_all(&lsdas, REFUSAL_NONE);
    struct lsda_edit edits[MOST_TABLES] = {{0}};
    uint32_t starts[MOST_TABLES];
    static const struct call_site fewer[] = {
        {0x10, 0x14, 0x100, 1},
        {0x40, 0x44, 0x104, 5},
    };
    edits[0] = (struct lsda_edit){true, 0, fewer, 2};
    struct section out = rewrite(&lsdas, edits, starts);
    ck_assert_uint_lt(out.data.size, bytes.size);
    for (uint32_t i = 0; i < frames.fde_count; i++)
        fdes[i].lsda_offset = starts[i];
    uint32_t type_count = relocs.count;
    memcpy(relocs.items, out.relocs, relocs.count * sizeof *relocs.items);
    free_tables();
    bytes = buffer_new(arena);
    buffer_put(&bytes, out.data.at, out.data.size);
    lsdas = read_tables();
    check_all(&lsdas, REFUSAL_NONE);
    ck_assert_uint_eq(type_count, out.reloc_count);
    struct shape edited = plain;
    edited.records = fewer;
    edited.record_count = 2;
    check_sites(&lsdas.items[0], &edited, 0);
    check_sites(&lsdas.items[frames.fde_count - 2], &bare,
                fdes[lsdas.items[frames.fde_count - 2].fde].start);
    check_sites(&lsdas.items[frames.fde_count - 1], &plain,
                fdes[lsdas.items[frames.fde_count - 1].fde].start);
    for (uint32_t i = 0; i < lsdas.count; i++) {
        if (lsdas.items[i].types_end != NO_INDEX)
            ck_assert_uint_eq(lsdas.items[i].types_end % 4, 0);
    }
    free_tables();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lsda");
    TCase *tests = tcase_create("lsda");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, reads_every_encoding, 0, 28);
    tcase_add_test(tests, finds_the_site_around);
    tcase_add_loop_test(tests, refuses_malformed, 0,
                        sizeof malformed / sizeof *malformed);
    tcase_add_loop_test(tests, survives_damage, 0, 2);
    tcase_add_loop_test(tests, refuses_what_others_refer_to, 0, FOREIGN_COUNT);
    tcase_add_loop_test(tests, knows_marks_of_data, 0, 4);
    tcase_add_loop_test(tests, writes_what_it_read, 0, 14);
    tcase_add_loop_test(tests, moves_the_others, 0, 2);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
