/* SPDX-License-Identifier: MIT */
#include "frames.h"

#include <elf.h>

/* An ordinary record may well end in four zero bytes (DW_CFA_nop), so this is only a
 * quick way out. */
static bool ends_in_zeros(const struct section *section)
{
    uint64_t size = section->data.size;
    return section->data.at && size >= 4 &&
           load_le(section->data.at + size - 4, 4) == 0;
}

bool frame_is_terminated(const struct section *section)
{
    if (!section_is_frame(section) || !ends_in_zeros(section))
        return false;
    struct cursor cursor = cursor_of(section->data);
    while (cursor_left(&cursor) > 0) {
        uint64_t length = cursor_u32(&cursor);
        if (length == 0)
            return cursor_ok(&cursor) && cursor_left(&cursor) == 0;
        if (length == UINT32_MAX)
            length = cursor_u64(&cursor);
        (void)cursor_take(&cursor, length);
    }
    return false;
}

bool reloc_is_void(const struct reloc *reloc)
{
    _Static_assert(R_X86_64_NONE == R_AARCH64_NONE, "one number for both");
    return reloc->type == R_X86_64_NONE && reloc->symbol == 0;
}

bool frame_names_code(const struct section *section, uint64_t offset)
{
    if (!section->data.at)
        return false;
    struct cursor cursor = cursor_of(section->data);
    while (cursor_left(&cursor) > 0 && cursor.position < offset) {
        uint64_t start = cursor.position;
        uint32_t length = cursor_u32(&cursor);
        struct bytes record = cursor_take(&cursor, length);
        if (!cursor_ok(&cursor) || length < 4)
            return false;
        if (start + 8 == offset)
            return load_le(record.at, 4) != 0; /* 0: a CIE */
    }
    return false;
}
