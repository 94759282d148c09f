/* SPDX-License-Identifier: MIT
 *
 * Fuzzes the reader and the writer of call-site tables: the input becomes a section of
 * them. What is read is written back, as it was and with half of its call sites, and
 * read again.
 *
 * The first byte chooses the machine (bit 0) and how many tables there are (bits 1, 2);
 * the next three say where the second to fourth start, in eighths of the section; the
 * next one, which words at the end of each table are filled by relocations.
 */
#include "mo/lsda.h"
#include "tests/fuzz/replay.h"

#include <assert.h>
#include <elf.h>
#include <string.h>

enum { CODE = 1, TABLES, DATA, SECTIONS };
enum { TABLES_SYMBOL = 1, TYPE, PERSONALITY, SYMBOLS };
enum { HEADER = 5, MOST = 4, LENGTH = 4096 };

struct scene {
    struct arena *arena;
    struct section sections[SECTIONS];
    struct symbol symbols[SYMBOLS];
    struct unit unit;
    struct object object;
    struct cie cie;
    struct fde fdes[MOST];
    struct frames frames;
    struct reloc pointers[MOST];
};

static void make_object(struct scene *scene, uint16_t machine)
{
    scene->sections[CODE] = (struct section){
        .name = ".text",
        .type = SHT_PROGBITS,
        .flags = SHF_ALLOC | SHF_EXECINSTR,
        .data = {arena_alloc(scene->arena, MOST * LENGTH), MOST * LENGTH}
    };
    scene->sections[DATA] = (struct section){.name = ".data", .type = SHT_NOBITS};
    scene->symbols[0] = (struct symbol){.name = ""};
    scene->symbols[TABLES_SYMBOL] =
        (struct symbol){.name = "", .section = TABLES, .type = STT_SECTION};
    scene->symbols[TYPE] = (struct symbol){.name = "type", .bind = STB_GLOBAL};
    scene->symbols[PERSONALITY] =
        (struct symbol){.name = "__gxx_personality_v0", .bind = STB_GLOBAL};
    scene->unit = (struct unit){.name = "input"};
    scene->object = (struct object){.name = "input",
                                    .machine = machine,
                                    .units = &scene->unit,
                                    .unit_count = 1,
                                    .sections = scene->sections,
                                    .section_count = SECTIONS,
                                    .symbols = scene->symbols,
                                    .symbol_count = SYMBOLS};
    scene->cie = (struct cie){.has_personality = true, .personality = PERSONALITY};
}

/* An FDE for each table; their pointers are relocations of `.data`. */
static void make_frames(struct scene *scene, const uint8_t *data, uint64_t size)
{
    uint32_t count = 1 + (data[0] >> 1 & 3);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t start = i ? (uint32_t)(size * (data[i] & 7) / 8) : 0;
        scene->fdes[i] = (struct fde){.code_section = CODE,
                                      .start = i * LENGTH,
                                      .length = LENGTH,
                                      .has_lsda = true,
                                      .lsda_section = TABLES,
                                      .lsda_offset = start};
        scene->pointers[i] = (struct reloc){8 * i, start, TABLES_SYMBOL, R_X86_64_PC32};
    }
    scene->frames = (struct frames){&scene->cie, 1, scene->fdes, count};
    scene->sections[DATA].relocs = scene->pointers;
    scene->sections[DATA].reloc_count = count;
}

static void make_tables(struct scene *scene, const uint8_t *data, size_t size)
{
    uint64_t left = size - HEADER, count = 0;
    struct reloc *relocs = arena_new_array(scene->arena, struct reloc, left);
    for (uint64_t at = 0; at + 8 <= left; at += 4) {
        bool filled = data[4] >> (at / 4 % 8) & 1;
        if (filled && load_le(data + HEADER + at, 4) == 0)
            relocs[count++] = (struct reloc){at, 0, TYPE, R_X86_64_PC32};
    }
    scene->sections[TABLES] = (struct section){
        .name = ".gcc_except_table",
        .type = SHT_PROGBITS,
        .flags = SHF_ALLOC,
        .align = 4,
        .data = {arena_copy(scene->arena, data + HEADER, left), left},
        .relocs = relocs,
        .reloc_count = (uint32_t)count
    };
}

static bool is_same(const struct call_site *a, const struct call_site *b)
{
    return a->start == b->start && a->end == b->end && a->pad == b->pad &&
           a->action == b->action;
}

/* Writes every `step`-th call site of every table, reads them again. */
static void check_written(struct scene *scene, const struct lsdas *lsdas, uint32_t step)
{
    struct lsda_edit edits[MOST] = {{0}};
    uint32_t starts[MOST];
    for (uint32_t i = 0; i < lsdas->count; i++) {
        const struct lsda *lsda = &lsdas->items[i];
        struct call_site *sites =
            arena_new_array(scene->arena, struct call_site, lsda->site_count);
        edits[i] = (struct lsda_edit){true, scene->fdes[lsda->fde].start, sites, 0};
        for (uint32_t s = 0; s < lsda->site_count; s += step)
            sites[edits[i].site_count++] = lsda->sites[s];
    }
    struct scene again = *scene;
    again.object.sections = again.sections;
    again.frames.fdes = again.fdes;
    again.sections[DATA].relocs = again.pointers;
    lsdas_rewrite(scene->arena, &scene->object, TABLES, scene->sections[TABLES].relocs,
                  lsdas, edits, &again.sections[TABLES], starts);
    assert(again.sections[TABLES].data.size <= scene->sections[TABLES].data.size);
    for (uint32_t i = 0; i < lsdas->count; i++)
        again.fdes[lsdas->items[i].fde].lsda_offset = starts[i];
    struct lsdas read;
    lsdas_read(scene->arena, &again.object, &again.frames, &read);
    for (uint32_t i = 0; i < read.count; i++) {
        const struct lsda *lsda = &read.items[i];
        assert(lsda->refusal == REFUSAL_NONE);
        assert(lsda->site_count == edits[i].site_count);
        for (uint32_t s = 0; s < lsda->site_count; s++)
            assert(is_same(&lsda->sites[s], &edits[i].sites[s]));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size <= HEADER || size > 1 << 16)
        return 0;
    struct scene *scene = NULL;
    struct arena *arena = arena_new();
    scene = arena_new_one(arena, struct scene);
    scene->arena = arena;
    make_object(scene, data[0] & 1 ? EM_AARCH64 : EM_X86_64);
    make_frames(scene, data, size - HEADER);
    make_tables(scene, data, size);
    struct lsdas lsdas;
    lsdas_read(arena, &scene->object, &scene->frames, &lsdas);
    bool good = true;
    for (uint32_t i = 0; i < lsdas.count; i++) {
        const struct lsda *lsda = &lsdas.items[i];
        good &= lsda->refusal == REFUSAL_NONE;
        for (uint32_t place = 0; good && place < LENGTH; place += 64)
            lsda_site_at(lsda, scene->fdes[lsda->fde].start + place);
    }
    if (good) {
        check_written(scene, &lsdas, 1);
        check_written(scene, &lsdas, 2);
    }
    arena_free(arena);
    return 0;
}
