/* SPDX-License-Identifier: MIT
 *
 * What the files of this folder share. The order of work is walk -> image -> machine
 * when reading, and program -> write when writing.
 */
#ifndef MO_UNWIND_INTERNAL_H
#define MO_UNWIND_INTERNAL_H

#include "mo/array.h"
#include "mo/unwind.h"

/* cfa_register of a row whose CFA was never stated: only in the initial row of a CIE.
 */
#define CFA_UNDEFINED NO_INDEX

/* --- dwarf constants (DWARF 5 section 7.24; LSB core 10.5; GNU and Arm extensions) --- */

enum {
    CFA_NOP = 0x00,
    CFA_SET_LOC = 0x01,
    CFA_ADVANCE_LOC1 = 0x02,
    CFA_ADVANCE_LOC2 = 0x03,
    CFA_ADVANCE_LOC4 = 0x04,
    CFA_OFFSET_EXTENDED = 0x05,
    CFA_RESTORE_EXTENDED = 0x06,
    CFA_UNDEFINED_RULE = 0x07,
    CFA_SAME_VALUE = 0x08,
    CFA_REGISTER = 0x09,
    CFA_REMEMBER_STATE = 0x0a,
    CFA_RESTORE_STATE = 0x0b,
    CFA_DEF_CFA = 0x0c,
    CFA_DEF_CFA_REGISTER = 0x0d,
    CFA_DEF_CFA_OFFSET = 0x0e,
    CFA_DEF_CFA_EXPRESSION = 0x0f,
    CFA_EXPRESSION = 0x10,
    CFA_OFFSET_EXTENDED_SF = 0x11,
    CFA_DEF_CFA_SF = 0x12,
    CFA_DEF_CFA_OFFSET_SF = 0x13,
    CFA_VAL_OFFSET = 0x14,
    CFA_VAL_OFFSET_SF = 0x15,
    CFA_VAL_EXPRESSION = 0x16,
    CFA_NEGATE_RA_STATE = 0x2d, /* AArch64; DW_CFA_GNU_window_save elsewhere */
    CFA_GNU_ARGS_SIZE = 0x2e,
    CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
    CFA_ADVANCE_LOC = 0x40, /* the operand is in the low six bits, as in the next two */
    CFA_OFFSET = 0x80,
    CFA_RESTORE = 0xc0,
};

enum {
    PE_ABSPTR = 0x00,
    PE_UDATA2 = 0x02,
    PE_UDATA4 = 0x03,
    PE_UDATA8 = 0x04,
    PE_SDATA2 = 0x0a,
    PE_SDATA4 = 0x0b,
    PE_SDATA8 = 0x0c,
    PE_FORMAT = 0x0f,
    PE_PCREL = 0x10,
    PE_ALIGNED = 0x50,
    PE_APPLICATION = 0x70,
    PE_INDIRECT = 0x80,
    PE_OMIT = 0xff,
};

/* Bytes of a pointer so encoded; 0 when the size is not fixed or not known. */
uint32_t pointer_size(uint8_t encoding);

/* Bytes of the augmentation data of an FDE: the LSDA pointer or nothing. */
uint32_t lsda_size(const struct cie *cie);

/* --- rows.c --- */

/* row_at_entry() as a value. */
struct row entry_row(uint16_t machine);

/* --- walk.c --- */

/* One CIE or FDE as it lies in its section. All offsets are section offsets. */
struct record {
    uint32_t offset; /* of its length field */
    uint32_t size;   /* bytes, with the length field */
    bool is_cie;
    uint32_t cie;                /* index in walk.cies: itself, or the CIE of an FDE */
    uint32_t lsda;               /* offset of the LSDA pointer, 0: has none */
    uint32_t program;            /* offset of its instructions */
    uint32_t reloc, reloc_count; /* its part of section.relocs */
    enum refusal refusal;        /* not NONE: lsda and program do not count */
};

struct walk {
    uint32_t section;
    const struct record *records; /* in file order */
    uint32_t record_count;
    const struct cie *cies; /* in file order; initial_row does not count yet */
    uint32_t cie_count;
    uint32_t fde_count;
    uint32_t end; /* offset of the zero terminator, or the size of the section */
};

/* Finds the records of an .eh_frame section. Nothing else in this folder looks at bytes
 * of an .eh_frame section that did not pass here. */
MO_MUST_CHECK bool walk_section(struct arena *arena, const struct object *object,
                                uint32_t section, struct walk *out, struct error *err);

/* The relocation computes a plain or place-relative word of this size. */
bool reloc_fits(uint16_t machine, uint32_t type, uint32_t size, bool relative);

/* What pc_begin of an FDE points to. */
struct target_place {
    uint32_t section; /* NO_INDEX: nothing that is here */
    uint32_t offset;
    bool understood; /* the relocation fits the field */
};
struct target_place fde_target(const struct object *object, const struct walk *walk,
                               const struct record *record);

/* --- read.c --- */

/* The order of frames.fdes: code section, start, section, offset. */
int fde_compare(const void *left, const void *right);

/* What some sections of an object hold, in file order. */
struct frames_piece {
    struct cie *cies;
    uint32_t cie_count;
    struct fde *fdes; /* `cie` counts from the first one of the piece */
    uint32_t fde_count;
};
/* Of the sections from `first` up to `end`. */
MO_MUST_CHECK bool frames_read_sections(struct arena *arena, const struct object *object,
                                        uint32_t first, uint32_t end,
                                        struct row_table *rows, struct frames_piece *out,
                                        struct error *err);
/* All pieces of an object, in order. (Takes what is in them.) */
struct frames frames_join(struct arena *arena, const struct frames_piece *pieces,
                          uint32_t count);

/* --- image.c --- */

/* One record that is given to libdwarf, and what comes back. */
struct entry {
    const struct walk *walk;
    const struct record *record;
    struct target_place target; /* of an FDE */
    bool agreed;                /* libdwarf and our walk say the same of it */
    struct bytes program;       /* its instructions, in the relocated copy */
    uint64_t range;             /* pc_range of an FDE */
};

/* Fills agreed, program and range of every entry. An FDE stands behind its CIE. */
void image_read(struct arena *arena, const struct object *object, struct entry *entries,
                uint32_t count);

/* --- machine.c --- */

/* The row after the instructions of a CIE. */
enum refusal machine_run_cie(struct row_table *rows, uint16_t machine, struct cie *cie,
                             struct bytes program);

/* Changes, remembers and program_size of an FDE whose start and length are known. */
enum refusal machine_run_fde(struct arena *arena, struct row_table *rows,
                             uint16_t machine, const struct cie *cie,
                             struct bytes program, struct fde *fde);

/* --- program.c --- */

struct terms { /* in which terms a program is written: its CIE */
    const struct row *initial;
    uint64_t code_align;
    int64_t data_align;
};

/* What a program is for. */
struct span {
    const struct row_change *changes;
    uint32_t change_count;
    uint32_t start; /* of the code, counted like the changes */
    const uint32_t *starts; /* where more functions begin in it, ascending */
    uint32_t start_count;
};

/* The smallest program (that we find) for the changes, without padding; returns its
 * size. With `out` NULL nothing is written. */
uint64_t program_write(struct buffer *out, const struct terms *terms,
                       const struct row_table *rows, const struct span *span);

/* --- diff.c --- */

/* Where instructions go: into a buffer, or only into a count. */
struct sink {
    struct buffer *out; /* NULL: count only */
    uint64_t size;
};

void sink_u8(struct sink *sink, uint8_t value);
void sink_advance(struct sink *sink, uint64_t units);

/* The instructions that turn `from` into `to`, each in its shortest encoding. Stops
 * early, with a size of at least `limit`, when it only counts. */
void sink_difference(struct sink *sink, const struct terms *terms,
                     const struct row *from, const struct row *to, uint64_t limit);

/* --- write.c --- */

/* Bytes before the instructions of an FDE. */
uint32_t fde_header_size(const struct cie *cie);

#endif
