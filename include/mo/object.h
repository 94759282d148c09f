/* SPDX-License-Identifier: MIT
 *
 * A relocatable object as a checked, immutable value: what ELF says, without ELF's file
 * layout. Symbol table, string tables, relocation sections, group sections and the
 * extended section index table are not sections of the model: they are read into the
 * structures below and made anew on writing. All else is carried through.
 *
 * Rules: ELF gABI chapter 4; "ELF for the Arm 64-bit Architecture" (aaelf64); System V
 * psABI for AMD64, chapter 4.
 *
 * Numbering. A *section index* is a position in object.sections (0 is the null section),
 * not an ELF index; a *symbol index* is a position in object.symbols (0 is the null
 * symbol). The writer gives ELF its own numbering: locals first, as gABI demands.
 */
#ifndef MO_OBJECT_H
#define MO_OBJECT_H

#include "mo/arena.h"
#include "mo/bytes.h"
#include "mo/error.h"

/* Values of symbol.section that are no index. SECTION_UNDEFINED is index 0. */
#define SECTION_UNDEFINED 0u
#define SECTION_ABSOLUTE  (UINT32_MAX - 1)
#define SECTION_COMMON    (UINT32_MAX - 2)

/* One input that went into the object: objects are merged, their origin is kept for
 * messages, the report, and facts that hold per input. */
struct unit {
    const char *name;  /* "a.o", "libfoo.a(bar.o)" */
    uint32_t features; /* GNU_PROPERTY_*_FEATURE_1_AND of its .note.gnu.property, or 0 */
    bool helpers;      /* made by us: holds nothing but helpers */
};

struct reloc {
    uint64_t offset; /* section offset of the field, bytes */
    int64_t addend;
    uint32_t symbol; /* symbol index; 0 means "no symbol", value 0 */
    uint32_t type;   /* R_<machine>_... */
};

struct section {
    const char *name;
    uint32_t type;       /* SHT_... */
    uint64_t flags;      /* SHF_...; SHF_GROUP is derived from `group` on writing */
    uint64_t align;      /* a power of two, at least 1 */
    uint64_t entry_size; /* sh_entsize */
    struct bytes data;   /* SHT_NOBITS: `at` is NULL, `size` is the size in memory */
    const struct reloc *relocs; /* sorted by offset; equal offsets in file order */
    uint32_t reloc_count;
    uint32_t link;  /* section index that sh_link names (SHF_LINK_ORDER and the like), or 0 */
    uint32_t info;  /* sh_info as it stands; a section index with SHF_INFO_LINK */
    uint32_t group; /* index in object.groups, or NO_INDEX */
    uint32_t unit;  /* index in object.units */
    bool compressed; /* debug information that is compressed in files, not here */
};

struct symbol {
    const char *name; /* "" for section symbols */
    uint64_t value;   /* section offset; alignment for SECTION_COMMON */
    uint64_t size;    /* bytes */
    uint32_t section; /* section index or SECTION_... */
    uint8_t bind;     /* STB_... */
    uint8_t type;     /* STT_... */
    uint8_t other;    /* st_other: visibility and machine bits */
};

/* The bits of a value that are an address. A name of data may carry a tag above them,
 * which memory accesses ignore or check: Clang's HWASan adds it to symbols. */
#define ADDRESS_BITS ((UINT64_C(1) << 56) - 1)

struct group {
    uint32_t signature; /* symbol index */
    uint32_t flags;     /* GRP_COMDAT */
    const uint32_t *members; /* section indices */
    uint32_t member_count;
};

struct object {
    const char *name; /* file or archive member, for messages */
    uint16_t machine; /* EM_AARCH64 or EM_X86_64 */
    uint32_t flags;   /* e_flags */
    uint8_t os_abi;   /* EI_OSABI */
    const struct unit *units;
    uint32_t unit_count;
    const struct section *sections;
    uint32_t section_count;
    const struct symbol *symbols;
    uint32_t symbol_count;
    const struct group *groups;
    uint32_t group_count;
};

/* A set of objects that will be linked together; all of one machine. */
struct objects {
    const struct object *const *items;
    uint32_t count;
};

/* --- read.c, check.c --- */

/* Reads one ET_REL image. `name` is used in messages. Everything in the result lives in
 * the arena, but contents and names may point into `image`, which must live as long. The
 * object has passed object_check(). Fails with a place for everything that is truncated,
 * overlapping, cyclic, of another machine, class or byte order, or no ELF object at all
 * (LLVM bitcode and slim GIMPLE objects are named as what they are, with what to do). */
MO_MUST_CHECK bool object_read(struct arena *arena, const char *name, struct bytes image,
                               const struct object **out, struct error *err);

/* Every index in range, every relocation field inside its section, symbols inside their
 * sections, groups disjoint. Called after reading and before writing. */
MO_MUST_CHECK bool object_check(const struct object *object, struct error *err);

/* Reads a whole file; the bytes live in the arena. */
MO_MUST_CHECK bool file_read(struct arena *arena, const char *path, struct bytes *out,
                             struct error *err);

/* --- archive.c --- */

struct archive_member {
    const char *name;    /* "bar.o" */
    struct bytes image;
    bool is_object;      /* ELF; other members are carried through */
    const struct object *object; /* what the image has been built from, or NULL */
};

struct archive {
    const char *name;
    const struct archive_member *members;
    uint32_t count;
    bool thin;
};

bool archive_recognise(struct bytes image); /* "!<arch>\n" or "!<thin>\n" */
/* Thin archives read their members from files beside `path`. */
MO_MUST_CHECK bool archive_read(struct arena *arena, const char *path, struct bytes image,
                                struct archive *out, struct error *err);
/* The bytes of an archive with these members and a symbol index (as `ar rcsD` makes it:
 * no dates, no owners). */
MO_MUST_CHECK bool archive_build(struct arena *arena, const struct archive *archive,
                                 struct bytes *out, struct error *err);

/* Which members a linker would load for these objects: repeatedly every member that
 * defines a symbol that is undefined (and not only weakly so) among what is loaded.
 * chosen[i] belongs to members[i]. `roots` are the objects given on the command line. */
void archive_choose(struct arena *arena, const struct objects *roots,
                    const struct object *const *members, uint32_t count, bool *chosen);

/* --- merge.c --- */

/* One object that holds them all: one section per input section (so that --gc-sections
 * works as before), symbols of equal name resolved as a linker would, later copies of a
 * COMDAT group dropped together with the FDEs that describe them, .note.gnu.property
 * merged by the psABI's rule for each type, one .note.GNU-stack. Units are concatenated.
 * Fails on a symbol that is defined twice, naming both units. */
MO_MUST_CHECK bool objects_merge(struct arena *arena, const char *name,
                                 const struct objects *objects, const struct object **out,
                                 struct error *err);

/* The .note.gnu.property section of an object merged from these, by the rule of each
 * type. False: there is nothing left to say, hence no section. */
bool properties_merge(struct arena *arena, const struct objects *objects,
                      struct section *out);

/* The object without its .debug_* (and .stab*, .gdb_index …) sections; as it was when its
 * unwind entries refer to them and cannot be read. */
const struct object *object_strip_debug(struct arena *arena, const struct object *object);

/* The object without some of its sections: what describes them (unwind entries, debug
 * information) loses what it says of them, as when a linker drops a copy of a group. A
 * local symbol goes with its section. `section_at`: by old section index the new one, 0
 * for those that have gone. Fails when something else refers to one that goes. */
MO_MUST_CHECK bool object_drop(struct arena *arena, const struct object *object,
                               const bool *dropped, const struct object **out,
                               const uint32_t **section_at, struct error *err);

/* --- append.c --- */

/* The object with some of its sections put end to end: onto[s] is the section, before s
 * and itself not moved, at whose end the contents of section s go, or 0. Each must be
 * able to follow what then stands before it; indices of sections and symbols change. */
MO_MUST_CHECK bool object_append(struct arena *arena, const struct object *object,
                                 const uint32_t *onto, const struct object **out,
                                 struct error *err);

/* Both are plain sections of one name and kind, and no padding is needed between them. */
bool section_can_follow(const struct section *section, const struct section *next);

/* --- write.c --- */

/* The bytes of an ET_REL file; equal objects give equal bytes. Sections of the same name
 * stay apart, but .eh_frame and (uncompressed, ungrouped) debug sections become one each:
 * join.c says why. */
MO_MUST_CHECK bool object_build(struct arena *arena, const struct object *object,
                                struct bytes *out, struct error *err);

/* Writes through a temporary file beside `path` and rename(2): whole or not at all. */
MO_MUST_CHECK bool file_write(const char *path, struct bytes bytes, struct error *err);

/* --- query.c --- */

bool section_is_code(const struct section *section); /* PROGBITS, ALLOC and EXECINSTR */
bool section_is_frame(const struct section *section); /* .eh_frame, of either type */
bool section_is_debug(const struct section *section);

/* First relocation of the section at or after `offset`; section->reloc_count if none. */
uint32_t section_reloc_at(const struct section *section, uint64_t offset);

/* The symbol is bound inside its object: local, or a section symbol. */
bool symbol_is_local(const struct symbol *symbol);

/* Index of the section symbol (STT_SECTION) of a section, or NO_INDEX. Linear: build a map
 * when you ask often. */
uint32_t object_section_symbol(const struct object *object, uint32_t section);

/* A place for messages. `function` is the FUNC symbol around the offset, if any. */
struct place object_place(const struct object *object, uint32_t section, uint64_t offset);

/* "a.o" or "libfoo.a(bar.o)": the input that this section came from. */
const char *section_unit(const struct object *object, uint32_t section);

#endif
