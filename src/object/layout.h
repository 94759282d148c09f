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

/* Sections of the model that are one in the file; most chains have one link. */
struct chain {
    uint32_t first, last; /* section indices; `first` says name, type and flags */
    uint32_t symbol;      /* ELF number of its section symbol; 0: none so far */
    uint64_t size, align, reloc_count;
    bool compressed;
    bool placed; /* has its number in the file, that of the first of them in the model */
};

/* One ELF section of the file. Its header is complete once the file is laid out. */
struct part {
    Elf64_Shdr header;
    enum {
        PART_BYTES,   /* `bytes` */
        PART_SECTION, /* the chain whose first section is `of`; compressed: `bytes` */
        PART_RELOCS,  /* its relocations */
        PART_GROUP,   /* group `of` */
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

    /* By section. */
    struct chain **chains;
    uint32_t *next;       /* in the chain; 0 at its end */
    uint32_t *base;       /* offset in the file's section */
    uint32_t *section_at; /* ELF index */

    uint32_t *symbol_at;    /* ELF number of every symbol */
    uint32_t *symbol_order; /* the other way round */
    uint32_t symbol_count;  /* ELF symbols, with the null symbol */
    uint32_t local_count;   /* those that are local, with the null symbol */
    uint32_t symtab, indices, strtab, shstrtab; /* ELF indices */
    struct strings *names;                      /* .strtab */
    uint64_t section_headers;                   /* file offset */
    uint64_t size;                              /* of the file */
};

/* join.c: sets `chains`, `next` and `base`. */
void layout_join(struct layout *layout);

/* compress.c: false when it would not become smaller. */
bool bytes_compress(struct arena *arena, struct bytes plain, uint64_t align,
                    struct bytes *out);

/* write.c */
void put_sections(const struct layout *layout, uint32_t first, uint8_t *at);

/* layout.c */
bool layout_make(struct layout *layout, struct error *err);

#endif
