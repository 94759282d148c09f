/* SPDX-License-Identifier: MIT
 *
 * Fuzzes src/unwind: the input becomes the .eh_frame section of an object with one code
 * section. What is read is written back, with and without edits, and read again.
 *
 * The first byte chooses the machine (bit 0) and whether the second half of the records
 * lies in a section of its own (bit 1). Relocations are not in the input: every record
 * that is no CIE gets one for its pc_begin, with an addend from the field itself,
 * because without it hardly any input would come past the first check.
 */
#include "mo/array.h"
#include "mo/unwind.h"
#include "tests/fuzz/replay.h"

#include <assert.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum { CODE = 1, FRAMES = 2, MORE_FRAMES = 3, SECTIONS = 4, CODE_SIZE = 4096 };

typedef array_of(struct reloc) relocs;

/* The relocations of an input section, up to where its chain of records breaks. */
static relocs make_relocs(struct arena *arena, struct bytes bytes, uint16_t machine)
{
    relocs list = {0};
    struct cursor cursor = cursor_of(bytes);
    uint8_t encoding = 0x1b;
    while (cursor_left(&cursor) >= 20) {
        uint64_t at = cursor.position;
        uint32_t length = cursor_u32(&cursor);
        uint32_t id = cursor_u32(&cursor);
        uint32_t word = cursor_u32(&cursor);
        if (length < 4 || length > bytes.size - at - 4)
            break;
        cursor.position = at + 4 + length;
        if (id == 0) { /* zR with one-byte fields */
            encoding = length >= 13 ? bytes.at[at + 16] : encoding;
            continue;
        }
        bool wide =
            (encoding & 0xf) == 0 || (encoding & 0xf) == 4 || (encoding & 0xf) == 12;
        bool relative = encoding & 0x10;
        uint32_t x86 = relative ? (wide ? R_X86_64_PC64 : R_X86_64_PC32)
                                : (wide ? R_X86_64_64 : R_X86_64_32);
        uint32_t arm = relative ? (wide ? R_AARCH64_PREL64 : R_AARCH64_PREL32)
                                : (wide ? R_AARCH64_ABS64 : R_AARCH64_ABS32);
        struct reloc reloc = {at + 8, word & 0x1fff, word & 0x8000 ? 2 : 1,
                              machine == EM_AARCH64 ? arm : x86};
        if (length >= (wide ? 20 : 12))
            array_push(arena, &list, reloc);
    }
    return list;
}

static struct section frame_section(struct arena *arena, struct bytes bytes,
                                    uint16_t machine)
{
    relocs list = make_relocs(arena, bytes, machine);
    /* A copy, so that a sanitizer sees what is read behind its end. */
    uint8_t *copy = arena_copy(arena, bytes.at, bytes.size);
    return (struct section){
        .name = ".eh_frame",
        .type = SHT_PROGBITS,
        .flags = SHF_ALLOC,
        .align = 8,
        .data = {copy, bytes.size},
        .relocs = list.items,
        .reloc_count = list.count,
        .group = NO_INDEX
    };
}

static struct object rewritten(struct arena *arena, const struct object *object,
                               const struct row_table *rows,
                               const struct frames *frames,
                               const struct fde_edit *edits)
{
    struct section *sections =
        arena_new_array(arena, struct section, object->section_count);
    memcpy(sections, object->sections, object->section_count * sizeof *sections);
    for (uint32_t i = FRAMES; i < object->section_count; i++)
        frames_rewrite(arena, object, i, rows, frames, edits, &sections[i]);
    struct object copy = *object;
    copy.sections = sections;
    return copy;
}

static void check_same(const struct fde *a, const struct fde *b)
{
    assert(a->change_count == b->change_count && a->start == b->start);
    assert(a->refusal == b->refusal && a->length == b->length);
    for (uint32_t i = 0; i < a->change_count; i++)
        assert(a->changes[i].offset == b->changes[i].offset &&
               a->changes[i].row == b->changes[i].row);
}

static int by_place(const void *left, const void *right)
{
    const struct fde *a = *(const struct fde *const *)left;
    const struct fde *b = *(const struct fde *const *)right;
    if (a->section != b->section)
        return a->section < b->section ? -1 : 1;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

/* In the order in which they lie, which a rewrite keeps: where what was cut off is
 * completed by padding, others may come before it when they are sorted by their code. */
static const struct fde **in_place(struct arena *arena, const struct frames *frames)
{
    const struct fde **fdes =
        arena_new_array(arena, const struct fde *, frames->fde_count);
    for (uint32_t i = 0; i < frames->fde_count; i++)
        fdes[i] = &frames->fdes[i];
    if (frames->fde_count)
        qsort(fdes, frames->fde_count, sizeof *fdes, by_place);
    return fdes;
}

static struct frames read_again(struct arena *arena, const struct object *object,
                                struct row_table *rows)
{
    struct frames frames;
    struct error err = {0};
    bool good = frames_read(arena, object, rows, &frames, &err);
    assert(good);
    (void)good;
    return frames;
}

static void check_edits(struct arena *arena, const struct object *object,
                        struct row_table *rows, const struct frames *frames)
{
    struct fde_edit *edits = arena_new_array(arena, struct fde_edit, frames->fde_count);
    struct object copy = rewritten(arena, object, rows, frames, edits);
    for (uint32_t i = FRAMES; i < object->section_count; i++)
        assert(copy.sections[i].data.at == object->sections[i].data.at);
    uint32_t left = 0;
    for (uint32_t i = 0; i < frames->fde_count; i++) {
        const struct fde *fde = &frames->fdes[i];
        struct row_change *changes =
            arena_new_array(arena, struct row_change, fde->change_count);
        for (uint32_t c = 0; c < fde->change_count; c++)
            changes[c] = (struct row_change){fde->changes[c].offset - fde->start,
                                             fde->changes[c].row};
        edits[i] = (struct fde_edit){.rewrite = fde->refusal == REFUSAL_NONE,
                                     .length = fde->length,
                                     .changes = changes,
                                     .change_count = fde->change_count};
        left += i % 3 != 0;
    }
    copy = rewritten(arena, object, rows, frames, edits);
    struct frames again = read_again(arena, &copy, rows);
    assert(again.fde_count == frames->fde_count);
    const struct fde **old = in_place(arena, frames), **new = in_place(arena, &again);
    for (uint32_t i = 0; i < frames->fde_count; i++)
        if (old[i]->refusal == REFUSAL_NONE) /* padding may complete others */
            check_same(old[i], new[i]);
    for (uint32_t i = 0; i < frames->fde_count; i += 3)
        edits[i].drop = true;
    copy = rewritten(arena, object, rows, frames, edits);
    again = read_again(arena, &copy, rows);
    assert(again.fde_count == left);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > 1 << 16)
        return 0;
    struct arena *arena = arena_new();
    uint16_t machine = data[0] & 1 ? EM_AARCH64 : EM_X86_64;
    uint64_t half = data[0] & 2 ? (size - 1) / 2 & ~UINT64_C(3) : size - 1;
    struct bytes first = {data + 1, half}, second = {data + 1 + half, size - 1 - half};
    struct symbol symbols[] = {
        {.name = ""      },
        {.name = "",       .type = STT_SECTION, .section = CODE},
        {.name = "elsewhere"}
    };
    struct section sections[SECTIONS] = {
        [CODE] = {
                  .name = ".text", .type = SHT_PROGBITS, .align = 16, .group = NO_INDEX}
    };
    sections[CODE].data = (struct bytes){arena_alloc(arena, CODE_SIZE), CODE_SIZE};
    sections[FRAMES] = frame_section(arena, first, machine);
    sections[MORE_FRAMES] = frame_section(arena, second, machine);
    struct unit unit = {.name = "input"};
    struct object object = {.name = "input",
                            .machine = machine,
                            .units = &unit,
                            .unit_count = 1,
                            .sections = sections,
                            .section_count = SECTIONS,
                            .symbols = symbols,
                            .symbol_count = 3};
    struct row_table *rows = row_table_new(arena);
    struct frames frames;
    struct error err = {0};
    if (frames_read(arena, &object, rows, &frames, &err)) {
        uint32_t at;
        for (uint32_t place = 0; place < CODE_SIZE; place += 256)
            frames_find(&frames, CODE, place, place + 256, &at);
        check_edits(arena, &object, rows, &frames);
    } else {
        assert(err.set);
    }
    arena_free(arena);
    return 0;
}
