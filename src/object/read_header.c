/* SPDX-License-Identifier: MIT
 *
 * File header and section headers: what must hold before anything else is looked at.
 * Reference: gABI chapter 4, "ELF Header", "Sections"; its rules for extended numbering
 * (e_shnum 0, SHN_XINDEX) live in section header 0.
 */
#include "reader.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool starts_with(struct bytes image, const char *magic, size_t size)
{
    return image.size >= size && memcmp(image.at, magic, size) == 0;
}

static uint64_t header_field(const struct reader *reader, size_t offset, uint32_t size)
{
    return load_le(reader->image.at + offset, size);
}
#define FIELD(reader, field)                                                           \
    header_field((reader), offsetof(Elf64_Ehdr, field),                                \
                 (uint32_t)sizeof((Elf64_Ehdr){0}.field))

/* What is no ELF file at all, named as what it is if we know. */
static bool check_magic(struct reader *reader)
{
    const struct place place = {.file = reader->name};
    struct bytes image = reader->image;
    if (starts_with(image, "BC\xC0\xDE", 4) ||
        starts_with(image, "\xDE\xC0\x17\x0B", 4))
        return fail(reader->err, &place,
                    "is LLVM bitcode, not machine code: compile without -flto, or with "
                    "-ffat-lto-objects");
    if (archive_recognise(image))
        return fail(reader->err, &place, "is an archive, not an object");
    if (!starts_with(image, ELFMAG, SELFMAG))
        return fail(reader->err, &place,
                    "is not an ELF object (a .o file, which a compiler writes with -c)");
    if (image.size < sizeof(Elf64_Ehdr))
        return fail(reader->err, &place,
                    "is truncated: %" PRIu64 " bytes, less than an "
                    "ELF header",
                    image.size);
    return true;
}

static bool check_identity(struct reader *reader)
{
    const struct place place = {.file = reader->name};
    const uint8_t *ident = reader->image.at;
    if (ident[EI_CLASS] != ELFCLASS64)
        return fail(reader->err, &place,
                    ident[EI_CLASS] == ELFCLASS32
                        ? "is a 32-bit object; only 64-bit objects are supported"
                        : "has an invalid ELF class");
    if (ident[EI_DATA] != ELFDATA2LSB)
        return fail(reader->err, &place,
                    ident[EI_DATA] == ELFDATA2MSB
                        ? "is a big-endian object; only little-endian is supported"
                        : "has an invalid byte order");
    if (ident[EI_VERSION] != EV_CURRENT || FIELD(reader, e_version) != EV_CURRENT)
        return fail(reader->err, &place, "has an unknown ELF version");
    if (FIELD(reader, e_type) != ET_REL)
        return fail(reader->err, &place,
                    "is not a relocatable object (ELF type %" PRIu64 ")",
                    FIELD(reader, e_type));
    uint64_t machine = FIELD(reader, e_machine);
    if (machine != EM_AARCH64 && machine != EM_X86_64)
        return fail(reader->err, &place,
                    "is for machine %" PRIu64 "; only AArch64 and x86-64 are supported",
                    machine);
    reader->object->machine = (uint16_t)machine;
    reader->object->flags = (uint32_t)FIELD(reader, e_flags);
    reader->object->os_abi = ident[EI_OSABI];
    return true;
}

/* Sets `count` and `shstrtab`; afterwards the whole table is known to be in the image.
 */
static bool check_table(struct reader *reader)
{
    const struct place place = {.file = reader->name};
    uint64_t start = FIELD(reader, e_shoff), count = FIELD(reader, e_shnum);
    uint64_t names = FIELD(reader, e_shstrndx), size = reader->image.size;
    if (start == 0)
        return fail(reader->err, &place, "has no section headers");
    if (FIELD(reader, e_shentsize) != sizeof(Elf64_Shdr))
        return fail(reader->err, &place, "has section headers of %" PRIu64 " bytes",
                    FIELD(reader, e_shentsize));
    if (start > size || size - start < sizeof(Elf64_Shdr))
        return fail(reader->err, &place,
                    "is truncated: section headers lie at 0x%" PRIx64
                    ", the file ends at 0x%" PRIx64,
                    start, size);
    const uint8_t *first = reader->image.at + start;
    if (count == 0)
        count = load_le(first + offsetof(Elf64_Shdr, sh_size), 8);
    if (names == SHN_XINDEX)
        names = load_le(first + offsetof(Elf64_Shdr, sh_link), 4);
    if (count == 0)
        return fail(reader->err, &place, "has no section headers");
    if (count > (size - start) / sizeof(Elf64_Shdr))
        return fail(reader->err, &place,
                    "is truncated: %" PRIu64 " section headers at 0x%" PRIx64
                    " do not fit in 0x%" PRIx64 " bytes",
                    count, start, size);
    if (names == SHN_UNDEF || names >= count)
        return fail(reader->err, &place, "has no section names");
    reader->count = (uint32_t)count;
    reader->shstrtab = (uint32_t)names;
    return true;
}

static bool load_headers(struct reader *reader)
{
    const struct place place = {.file = reader->name};
    size_t count = 0;
    if (!reader->elf || elf_getshdrnum(reader->elf, &count) != 0 ||
        count != reader->count)
        return fail(reader->err, &place, "cannot be read: %s", elf_errmsg(-1));
    Elf64_Shdr *headers = arena_new_array(reader->arena, Elf64_Shdr, count);
    for (uint32_t i = 0; i < count; i++) {
        Elf_Scn *section = elf_getscn(reader->elf, i);
        const void *header = section ? elf64_getshdr(section) : NULL;
        if (!header)
            return fail(reader->err, &place,
                        "section header %" PRIu32 " cannot be read: %s", i,
                        elf_errmsg(-1));
        /* A copy: the header may lie unaligned in an archive. */
        memcpy(&headers[i], header, sizeof *headers);
    }
    reader->headers = headers;
    return true;
}

static bool occupies_file(const Elf64_Shdr *header)
{
    return header->sh_type != SHT_NOBITS && header->sh_type != SHT_NULL &&
           header->sh_size != 0;
}

/* One section header against the size of the image. Names are not known yet. */
static bool check_section(struct reader *reader, uint32_t index)
{
    const struct place place = {.file = reader->name};
    const Elf64_Shdr *header = &reader->headers[index];
    uint64_t size = reader->image.size, align = header->sh_addralign;
    if (occupies_file(header) &&
        (header->sh_offset > size || header->sh_size > size - header->sh_offset))
        return fail(reader->err, &place,
                    "is truncated: section %" PRIu32 " (0x%" PRIx64
                    " bytes at 0x%" PRIx64 ") leaves the file (0x%" PRIx64 " bytes)",
                    index, header->sh_size, header->sh_offset, size);
    if (header->sh_size > UINT32_MAX)
        return fail(reader->err, &place, "section %" PRIu32 " has 4 GiB or more",
                    index);
    if (align & (align - 1))
        return fail(reader->err, &place,
                    "section %" PRIu32 " has alignment %" PRIu64
                    ", which is no power of two",
                    index, align);
    if (header->sh_link >= reader->count)
        return fail(reader->err, &place,
                    "section %" PRIu32 " links to section %" PRIu32 " of %" PRIu32,
                    index, header->sh_link, reader->count);
    return true;
}

static bool check_names(struct reader *reader)
{
    const struct place place = {.file = reader->name};
    struct bytes text = reader_bytes(reader, reader->shstrtab);
    if (reader->headers[reader->shstrtab].sh_type != SHT_STRTAB || text.size == 0 ||
        text.at[text.size - 1] != '\0')
        return fail(reader->err, &place, "the section name table is no string table");
    const char **names = arena_new_array(reader->arena, const char *, reader->count);
    for (uint32_t i = 0; i < reader->count; i++) {
        uint32_t offset = reader->headers[i].sh_name;
        if (offset >= text.size)
            return fail(reader->err, &place,
                        "the name of section %" PRIu32
                        " lies outside the section name table",
                        i);
        names[i] = (const char *)text.at + offset;
    }
    reader->names = names;
    return true;
}

struct extent {
    uint64_t start, end; /* file offsets */
    uint32_t index;      /* ELF section index; NO_INDEX for the section headers */
};

static int compare_extents(const void *left, const void *right)
{
    const struct extent *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

/* Contents that share bytes would be carried through as two copies: nothing good makes
 * such files, so they are refused rather than understood. */
static bool check_overlap(struct reader *reader)
{
    struct extent *extents =
        arena_new_array(reader->arena, struct extent, reader->count + 1);
    uint32_t used = 0;
    uint64_t start = FIELD(reader, e_shoff);
    extents[used++] =
        (struct extent){start, start + reader->count * sizeof(Elf64_Shdr), NO_INDEX};
    for (uint32_t i = 1; i < reader->count; i++) {
        const Elf64_Shdr *header = &reader->headers[i];
        if (occupies_file(header))
            extents[used++] = (struct extent){header->sh_offset,
                                              header->sh_offset + header->sh_size, i};
    }
    qsort(extents, used, sizeof *extents, compare_extents);
    for (uint32_t i = 0; i < used; i++) {
        uint64_t end = i == 0 ? sizeof(Elf64_Ehdr) : extents[i - 1].end;
        if (extents[i].start >= end)
            continue;
        const char *other = i == 0 ? "the ELF header"
                            : extents[i - 1].index == NO_INDEX
                                ? "the section headers"
                                : reader->names[extents[i - 1].index];
        const char *name = extents[i].index == NO_INDEX
                               ? "the section headers"
                               : reader->names[extents[i].index];
        return fail(reader->err, &(struct place){.file = reader->name},
                    "%s at file offset 0x%" PRIx64 " overlaps %s", name,
                    extents[i].start, other);
    }
    return true;
}

const char *reader_section_name(const struct reader *reader, uint32_t index)
{
    const char *name = reader->names[index];
    return *name ? name : arena_format(reader->arena, "section %" PRIu32, index);
}

struct bytes reader_bytes(const struct reader *reader, uint32_t index)
{
    const Elf64_Shdr *header = &reader->headers[index];
    if (index == 0 || !occupies_file(header))
        return (struct bytes){0};
    return (struct bytes){reader->image.at + header->sh_offset, header->sh_size};
}

const uint8_t *reader_records(struct reader *reader, uint32_t index)
{
    const Elf_Data *data = elf_getdata(elf_getscn(reader->elf, index), NULL);
    if (!data || data->d_size != reader->headers[index].sh_size ||
        (data->d_size && !data->d_buf)) {
        (void)!reader_fail(reader, index, 0, "cannot be read: %s", elf_errmsg(-1));
        return NULL;
    }
    static const uint8_t nothing[1];
    return data->d_size ? data->d_buf : nothing;
}

bool read_headers(struct reader *reader)
{
    if (!check_magic(reader) || !check_identity(reader) || !check_table(reader))
        return false;
    /* elf_memory() wants a writable image but does not write to it. */
    (void)elf_version(EV_CURRENT);
    reader->elf = elf_memory((char *)(uintptr_t)reader->image.at, reader->image.size);
    if (!load_headers(reader))
        return false;
    for (uint32_t i = 1; i < reader->count; i++) {
        if (!check_section(reader, i))
            return false;
    }
    return check_names(reader) && check_overlap(reader);
}
