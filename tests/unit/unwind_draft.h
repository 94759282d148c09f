/* SPDX-License-Identifier: MIT
 *
 * An object with one section of code and one of unwind entries, put together by hand.
 */
#ifndef MO_TEST_UNWIND_DRAFT_H
#define MO_TEST_UNWIND_DRAFT_H

#include "mo/array.h"
#include "mo/unwind.h"
#include "src/unwind/internal.h"

#include <check.h>
#include <elf.h>
#include <string.h>

enum { CODE = 1, FRAMES = 2, SECTIONS = 3, CODE_SIZE = 0x1000 };

static struct arena *arena;
static struct row_table *rows;
static struct section sections[SECTIONS];
static struct symbol symbols[2];
static struct unit unit = {.name = "a.o"};
static struct object object;

static void setup(void)
{
    arena = arena_new();
    rows = row_table_new(arena);
    memset(sections, 0, sizeof sections);
    sections[CODE] = (struct section){
        .name = ".text",
        .type = SHT_PROGBITS,
        .align = 16,
        .group = NO_INDEX,
        .data = {arena_alloc(arena, CODE_SIZE), CODE_SIZE}
    };
    symbols[1] = (struct symbol){.name = "", .type = STT_SECTION, .section = CODE};
    object = (struct object){.name = "a.o",
                             .machine = EM_X86_64,
                             .units = &unit,
                             .unit_count = 1,
                             .sections = sections,
                             .section_count = SECTIONS,
                             .symbols = symbols,
                             .symbol_count = 2};
}

static void teardown(void)
{
    arena_free(arena);
}

/* --- assembling --- */

/* A CIE of the compilers' kind with these letters; its augmentation data is `data`. */
static void put_cie(struct buffer *out, const char *letters, struct bytes data)
{
    bool arm = object.machine == EM_AARCH64;
    static const uint8_t x86[] = {0x0c, 7, 8, 0x90, 1}, aarch64[] = {0x0c, 31, 0};
    uint64_t at = out->size;
    buffer_u32(out, 0);
    buffer_u32(out, 0);
    buffer_u8(out, 1);
    buffer_string(out, letters);
    buffer_uleb(out, arm ? 4 : 1);
    buffer_sleb(out, -8);
    buffer_u8(out, arm ? 30 : 16);
    buffer_uleb(out, data.size);
    buffer_put(out, data.at, data.size);
    buffer_put(out, arm ? aarch64 : x86, arm ? sizeof aarch64 : sizeof x86);
    buffer_fill(out, 0, align_up(out->size, 4) - out->size);
    store_le(out->at + at, 4, out->size - at - 4);
}

static const uint8_t PCREL4[] = {0x1b};

static void put_plain_cie(struct buffer *out)
{
    put_cie(out, "zR", (struct bytes){PCREL4, 1});
}

/* An FDE whose CIE lies at `cie`. */
static void put_fde(struct buffer *out, uint32_t cie, uint32_t length,
                    const void *program, uint32_t size)
{
    uint64_t at = out->size;
    buffer_u32(out, 0);
    buffer_u32(out, (uint32_t)(at + 4 - cie));
    buffer_u32(out, 0);
    buffer_u32(out, length);
    buffer_u8(out, 0);
    buffer_put(out, program, size);
    buffer_fill(out, 0, align_up(out->size, 4) - out->size);
    store_le(out->at + at, 4, out->size - at - 4);
}

static void set_frames(struct bytes data, const struct reloc *relocs, uint32_t count)
{
    sections[FRAMES] = (struct section){.name = ".eh_frame",
                                        .type = SHT_PROGBITS,
                                        .flags = SHF_ALLOC,
                                        .align = 8,
                                        .group = NO_INDEX,
                                        .data = data,
                                        .relocs = relocs,
                                        .reloc_count = count};
}

static struct reloc pc_begin(uint64_t fde, int64_t start)
{
    uint32_t type = object.machine == EM_AARCH64 ? R_AARCH64_PREL32 : R_X86_64_PC32;
    return (struct reloc){fde + 8, start, 1, type};
}

/* One plain CIE, one FDE [0x40, 0x40 + length) with this program, read. */
static struct fde read_one(const void *program, uint32_t size, uint32_t length)
{
    static struct reloc reloc;
    struct buffer out = buffer_new(arena);
    struct frames frames;
    struct error err = {0};
    put_plain_cie(&out);
    reloc = pc_begin(out.size, 0x40);
    put_fde(&out, 0, length, program, size);
    set_frames(buffer_bytes(&out), &reloc, 1);
    ck_assert_msg(frames_read(arena, &object, rows, &frames, &err), "%s", err.message);
    ck_assert_uint_eq(frames.fde_count, 1);
    return frames.fdes[0];
}

static const uint8_t PUSH_POP[] = {0x41, 0x0e, 0x10, 0x83, 0x02, 0x50, 0x0e, 0x08};

#endif
