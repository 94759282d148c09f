/* SPDX-License-Identifier: MIT
 *
 * Compressed debug sections (-gz). The model holds their contents as they are without
 * compression, and a mark; the writer compresses what bears it again. Zlib only: what
 * is compressed in another way (zstd) is carried through as it is, and freezes the code
 * that it describes.
 */
#include "layout.h"
#include "reader.h"

#include <string.h>
#include <zlib.h>

/* Deflate makes nothing smaller than this part of itself (zlib's technical notes); more
 * is a lie, and would only cost memory. */
enum { BEST_RATIO = 1032, SLACK = 64 };

static bool is_honest(uint64_t size, uint64_t compressed)
{
    return size / BEST_RATIO <= compressed + SLACK && size <= UINT32_MAX;
}

void section_expand(struct arena *arena, struct section *section)
{
    const uint8_t *at = section->data.at;
    if (!(section->flags & SHF_COMPRESSED) || !section_is_debug(section) || !at ||
        section->data.size < sizeof(Elf64_Chdr))
        return;
    uint64_t size = load_le(at + offsetof(Elf64_Chdr, ch_size), 8);
    uint64_t align = load_le(at + offsetof(Elf64_Chdr, ch_addralign), 8);
    uint64_t packed = section->data.size - sizeof(Elf64_Chdr);
    if (load_le(at + offsetof(Elf64_Chdr, ch_type), 4) != ELFCOMPRESS_ZLIB ||
        !is_honest(size, packed) || align > UINT32_MAX || (align & (align - 1)))
        return;
    uint8_t *out = arena_alloc(arena, size + 1);
    uLongf made = (uLongf)size;
    if (uncompress(out, &made, at + sizeof(Elf64_Chdr), (uLong)packed) != Z_OK ||
        made != size)
        return;
    section->data = (struct bytes){out, size};
    section->align = align ? align : 1;
    section->flags &= ~(uint64_t)SHF_COMPRESSED;
    section->compressed = true;
}

bool bytes_compress(struct arena *arena, struct bytes plain, uint64_t align,
                    struct bytes *out)
{
    uLongf packed = compressBound((uLong)plain.size);
    uint8_t *at = arena_alloc(arena, sizeof(Elf64_Chdr) + packed);
    memset(at, 0, sizeof(Elf64_Chdr));
    if (compress2(at + sizeof(Elf64_Chdr), &packed, plain.at, (uLong)plain.size,
                  Z_BEST_COMPRESSION) != Z_OK ||
        packed + sizeof(Elf64_Chdr) >= plain.size)
        return false;
    store_le(at + offsetof(Elf64_Chdr, ch_type), 4, ELFCOMPRESS_ZLIB);
    store_le(at + offsetof(Elf64_Chdr, ch_size), 8, plain.size);
    store_le(at + offsetof(Elf64_Chdr, ch_addralign), 8, align);
    *out = (struct bytes){at, sizeof(Elf64_Chdr) + packed};
    return true;
}
