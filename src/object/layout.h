/* SPDX-License-Identifier: MIT
 *
 * How an object becomes a file: which ELF number everything gets, and where it lies.
 */
#ifndef MO_OBJECT_LAYOUT_H
#define MO_OBJECT_LAYOUT_H

#include "frames.h"

#include "mo/object.h"
#include "mo/table.h"

#include <elf.h>

/* A string table under construction: equal strings are stored once. */
struct strings {
    struct table *known;
    struct buffer bytes;
    uint64_t *offsets; /* by number in `known` */
    uint32_t capacity;
};

struct strings *strings_new(struct arena *arena);
uint32_t strings_add(struct strings *strings, const char *text); /* its offset */

/* One ELF section of the file. Its header is complete once the file is laid out. */
struct part {
    Elf64_Shdr header;
    enum {
        PART_BYTES,  /* `bytes` (nothing for SHT_NOBITS) */
        PART_FRAMES, /* the .eh_frame sections, joined */
        PART_RELOCS, /* of section `of`, or of all frames if it is the first of them */
        PART_GROUP,  /* group `of` */
        PART_SYMBOLS,
        PART_INDICES, /* SHT_SYMTAB_SHNDX */
    } kind;
    uint32_t of;
    struct bytes bytes;
};

struct layout {
    struct arena *arena;
    const struct object *object;
    struct part *parts; /* by ELF index */
    uint32_t part_count;
    uint32_t
        *section_at;  /* ELF index of every section; all joined frames have the same */
    uint32_t *base;   /* where the section starts in its part: 0 unless it is joined */
    uint32_t *frames; /* joined frames: section indices in the order of the part */
    uint32_t frame_count;
    uint32_t first_frame;   /* the one at whose place the part is, or 0 */
    uint32_t *symbol_at;    /* ELF number of every symbol */
    uint32_t *symbol_order; /* the other way round */
    uint32_t symbol_count;  /* ELF symbols, with the null symbol */
    uint32_t local_count;   /* ELF symbols that are local, with the null symbol */
    uint32_t symtab, indices, strtab, shstrtab; /* ELF indices */
    struct strings *names;                      /* .strtab */
    uint64_t section_headers;                   /* file offset */
    uint64_t size;                              /* of the file */
};

/* layout.c */
bool layout_make(struct layout *layout, struct error *err);

#endif
