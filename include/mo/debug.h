/* SPDX-License-Identifier: MIT
 *
 * Debug information (DWARF 2 to 5) as far as it speaks of positions in code: every field
 * that encodes one, where it is stored, and what it means. Reading finds them all once;
 * after a rewrite each field is computed anew from the position that it meant, in its old
 * place and with its old size. Only line programs are written anew as a whole.
 *
 * A unit of the object (an input) whose debug information is not understood down to the
 * last position is refused as a whole: its code must not move.
 *
 * Numbering. Sections are section indices of the object, for debug and code sections alike;
 * offsets and positions are section offsets.
 */
#ifndef MO_DEBUG_H
#define MO_DEBUG_H

#include "mo/arena.h"
#include "mo/object.h"
#include "mo/refusal.h"

/* Where something is stored. A section of NO_INDEX: nowhere. */
struct debug_field {
    uint32_t section, offset;
    uint32_t reloc; /* index in the section's relocs, or NO_INDEX: the bytes say it */
    uint8_t size;   /* bytes */
    bool uleb;      /* a ULEB128 that may be padded to its size */
};

/* What a position stands for, when it lies where code has been replaced. */
enum debug_role {
    DEBUG_START,  /* the first instruction of something that goes on behind it */
    DEBUG_ENTRY,  /* of a function, as a value: always the start of one */
    DEBUG_LABEL,  /* this very instruction */
    DEBUG_CALL,   /* a call or jump */
    DEBUG_RETURN, /* behind a call */
};

struct debug_point {
    struct debug_field field; /* an address, by relocation */
    uint32_t role;            /* enum debug_role */
    uint32_t code, position;
    /* It is an entry of .debug_addr that others may use, too: the index here may be
     * changed to `spare`, which names the start of the function around. */
    struct debug_field index;
    uint32_t spare;
    struct debug_field view; /* number of a view at this position, or nowhere */
};

enum debug_bound {
    DEBUG_ADDRESS,    /* by relocation */
    DEBUG_FROM_BASE,  /* bytes from `base` */
    DEBUG_FROM_START, /* bytes from the range's start */
    DEBUG_ELSEWHERE,  /* a point says it */
};

struct debug_range {
    uint32_t code, start, end; /* a range of one code section */
    uint32_t base;             /* position in it */
    uint8_t start_bound, end_bound; /* enum debug_bound */
    struct debug_field start_field, end_field;
    struct debug_field start_view, end_view; /* or nowhere */
    bool location;      /* something is kept in a place there; else code */
    uint64_t registers; /* location: DWARF registers that the place depends on */
};

/* A place that holds all over a range of code; the field is its length (a ULEB128) and its
 * bytes. Padding the length of 0 to that size says that there is no place any more. */
struct debug_expression {
    uint32_t section, offset, size;
    uint64_t registers;
    uint32_t code, start, end; /* code NO_INDEX: somewhere in its unit */
    uint32_t unit;
};

/* --- line programs --- */

struct debug_row {
    uint32_t position;
    uint32_t file, line, column, discriminator, isa;
    bool is_stmt, basic_block, prologue_end, epilogue_begin;
};

/* Rows up to an end of sequence, all in one code section. */
struct debug_sequence {
    uint32_t code;            /* section index; NO_INDEX: none that is here */
    uint32_t start, end;      /* its opcodes: offsets in the line section */
    uint32_t reloc, address;  /* index of its address's relocation; what that says */
    uint32_t row_count;
    const struct debug_row *rows; /* ascending */
    uint32_t last;            /* position of the end of the sequence */
};

struct debug_lines {
    uint32_t section;
    uint32_t start, program, end; /* of the unit, of its opcodes, behind them */
    uint32_t length_size; /* bytes of its length field: 4, or 12 with the escape */
    uint8_t minimum_length, line_range, opcode_base;
    int8_t line_base;
    bool default_is_stmt;
    uint16_t version;
    uint32_t address_type; /* of the relocation of a sequence's address; 0: has none */
    const struct debug_sequence *sequences;
    uint32_t sequence_count;
};

struct debug {
    const struct debug_point *points;
    uint32_t point_count;
    const struct debug_range *ranges;
    uint32_t range_count;
    const struct debug_expression *expressions;
    uint32_t expression_count;
    const struct debug_lines *lines; /* sorted by (section, start) */
    uint32_t lines_count;
    const uint8_t *refused;   /* by unit: enum refusal */
    const char *const *whys;  /* by unit: what is not understood; NULL: refused not */
};

/* All debug information of the object. What cannot be read refuses its unit. */
void debug_read(struct arena *arena, const struct object *object, struct debug *out);

/* The code sections that debug information of a refused unit describes, as true. */
void debug_refused_code(const struct object *object, const struct debug *debug,
                        bool *sections);

/* The row that holds at a position of the sequence, or NULL. */
const struct debug_row *debug_row_at(const struct debug_sequence *sequence,
                                     uint32_t position);

/* --- writing --- */

/* A sequence for new code. */
struct debug_new_sequence {
    uint32_t symbol; /* its address is this symbol, … */
    int64_t addend;  /* … and this */
    const struct debug_row *rows; /* positions count from that address */
    uint32_t row_count;
    uint32_t last;
};

/* What becomes of one line program. */
struct debug_lines_edit {
    /* By sequence: its rows with their new positions, or NULL: the opcodes stay. */
    const struct debug_sequence *const *rows;
    const struct debug_new_sequence *added;
    uint32_t added_count;
};

/* The line section `section` of the object with its programs edited: edits[i] belongs to
 * debug->lines[i] (those of other sections are passed over). `relocs` are its relocations
 * with their new addends. starts[i] is the new offset of each program. */
void debug_lines_write(struct arena *arena, const struct object *object, uint32_t section,
                       const struct reloc *relocs, const struct debug *debug,
                       const struct debug_lines_edit *edits, struct section *out,
                       uint32_t *starts);

/* Stores a value in a field without a relocation. False when it does not fit. */
bool debug_store(uint8_t *data, const struct debug_field *field, uint64_t value);

#endif
