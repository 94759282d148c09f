/* SPDX-License-Identifier: MIT
 *
 * Relocations in the result: the same ones against other symbol numbers. What refers to
 * a local symbol of a dropped section has nothing to refer to any more. In tables about
 * code (debug information, exception tables) the linkers write 0 there, and so do we;
 * but in .debug_ranges and .debug_loc, where a pair of zeros ends a list, they write 1.
 * Elsewhere they fail ("defined in discarded section"), and so do we.
 */
#include "merge.h"

#include <elf.h>
#include <string.h>

static bool may_lose(const struct section *section)
{
    return !(section->flags & SHF_ALLOC) || section_is_frame(section) ||
           strncmp(section->name, ".gcc_except_table", 17) == 0 ||
           strcmp(section->name, ".sframe") == 0;
}

static uint64_t tombstone(const struct section *section)
{
    return strcmp(section->name, ".debug_ranges") == 0 ||
                   strcmp(section->name, ".debug_loc") == 0
               ? 1
               : 0;
}

/* Bytes of an absolute or relative data field; such are all that point out of tables.
 */
static uint32_t data_field(uint16_t machine, uint32_t type)
{
    if (machine == EM_AARCH64)
        return type == R_AARCH64_ABS64 || type == R_AARCH64_PREL64 ||
                       type == R_AARCH64_TLS_DTPREL
                   ? 8
               : type == R_AARCH64_ABS32 || type == R_AARCH64_PREL32 ? 4
                                                                     : 0;
    return type == R_X86_64_64 || type == R_X86_64_PC64 || type == R_X86_64_DTPOFF64 ? 8
           : type == R_X86_64_32 || type == R_X86_64_32S || type == R_X86_64_PC32 ||
                   type == R_X86_64_DTPOFF32
               ? 4
               : 0;
}

/* Relocations whose symbol has gone. */
static uint32_t count_lost(const struct input *input, const struct section *section)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < section->reloc_count; i++) {
        uint32_t symbol = section->relocs[i].symbol;
        count += symbol != 0 && input->symbol_at[symbol] == 0;
    }
    return count;
}

static bool lose(struct merge *merge, const struct input *input, uint32_t section,
                 const struct reloc *reloc, struct section *out)
{
    const struct object *object = input->object;
    uint32_t size = data_field(object->machine, reloc->type);
    struct place place = object_place(object, section, reloc->offset);
    /* Offsets in compressed contents are not ours to write to: there the field keeps
     * what the assembler left in it, which is 0 with explicit addends. */
    bool compressed = out->flags & SHF_COMPRESSED;
    if (!may_lose(out) || (size == 0 && !compressed))
        return fail(merge->err, &place,
                    "refers to a section that is dropped as a copy (%s)",
                    object->sections[object->symbols[reloc->symbol].section].name);
    if (!compressed)
        store_le((uint8_t *)(uintptr_t)out->data.at + reloc->offset, size,
                 tombstone(out));
    return true;
}

bool merge_relocs(struct merge *merge, const struct input *input, uint32_t section,
                  struct section *out)
{
    const struct section from = *out;
    if (from.reloc_count == 0)
        return true;
    if (count_lost(input, &from) > 0)
        out->data.at = arena_copy(merge->arena, from.data.at, from.data.size);
    struct reloc *relocs =
        arena_new_array(merge->arena, struct reloc, from.reloc_count);
    uint32_t used = 0;
    for (uint32_t i = 0; i < from.reloc_count; i++) {
        const struct reloc *reloc = &from.relocs[i];
        uint32_t symbol = input->symbol_at[reloc->symbol];
        if (reloc->symbol != 0 && symbol == 0) {
            if (!lose(merge, input, section, reloc, out))
                return false;
            continue;
        }
        relocs[used] = *reloc;
        relocs[used++].symbol = symbol;
    }
    out->relocs = relocs;
    out->reloc_count = used;
    return true;
}
