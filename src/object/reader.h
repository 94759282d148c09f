/* SPDX-License-Identifier: MIT
 *
 * What the parts of the reader share. The reader goes through an image once, from the
 * outside in: file header, section headers, symbols, relocations, groups. Each step
 * trusts only what the steps before it have checked.
 *
 * libelf is used for what it is good at: giving typed records whatever the alignment
 * and the byte order of the host. It is called only after the header fields that it
 * follows have been compared with the size of the image.
 */
#ifndef MO_OBJECT_READER_H
#define MO_OBJECT_READER_H

#include "mo/object.h"

#include <elf.h>
#include <libelf.h>

/* Section types newer than Debian 12's <elf.h>. */
enum {
    SECTION_CREL = 0x40000014,             /* SHT_CREL, LLVM 19 */
    SECTION_LLVM_ADDRSIG = 0x6fff4c03,     /* SHT_LLVM_ADDRSIG */
    SECTION_LLVM_PROFILE = 0x6fff4c09,     /* SHT_LLVM_CALL_GRAPH_PROFILE */
    SECTION_LLVM_PROFILE_OLD = 0x6fff4c02, /* the same before LLVM 13 */
    SECTION_RELR = 19,                     /* SHT_RELR */
};

struct reader {
    struct arena *arena;
    const char *name; /* of the object, for messages */
    struct bytes image;
    struct error *err;
    Elf *elf;

    /* By ELF section index. */
    uint32_t count;
    const Elf64_Shdr *headers;
    const char *const *names;
    uint32_t *section_of; /* section index, or NO_INDEX when it is not of the model */
    uint32_t *group_of;   /* index in object.groups, or NO_INDEX */

    uint32_t symtab, strtab, shndx, shstrtab; /* ELF indices; 0: there is none */

    uint32_t symbol_count; /* ELF symbols */
    uint32_t *symbol_of;   /* symbol index by ELF symbol index; NO_INDEX: not kept */

    struct object *object;
    struct section *sections; /* object->sections */
};

/* read_header.c: sets everything up to `shstrtab`, but `section_of` and `group_of`. */
bool read_headers(struct reader *reader);

/* read_symbols.c: sets the symbols; section_of must be known. */
bool read_symbols(struct reader *reader);

/* read_relocs.c */
bool read_relocs(struct reader *reader);
bool read_groups(struct reader *reader);

/* Fails with the name of ELF section `index` as the place. */
#define reader_fail(reader, index, at, ...)                                            \
    fail((reader)->err,                                                                \
         &(struct place){.file = (reader)->name,                                       \
                         .section = reader_section_name((reader), (index)),            \
                         .offset = (at)},                                              \
         __VA_ARGS__)
const char *reader_section_name(const struct reader *reader, uint32_t index);

/* The bytes of ELF section `index` in the image; nothing for SHT_NOBITS. */
struct bytes reader_bytes(const struct reader *reader, uint32_t index);

/* The records of a table, in host byte order; NULL with an error set if libelf fails.
 */
const uint8_t *reader_records(struct reader *reader, uint32_t index);

/* compress.c: takes the compression from a debug section, if it is one that we know. */
void section_expand(struct arena *arena, struct section *section);

#endif
