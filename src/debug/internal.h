/* SPDX-License-Identifier: MIT
 *
 * What the files of this folder share. The order of work is read -> info (units, entries)
 * -> attributes -> lists, expression; lines and aranges stand for themselves.
 *
 * Nothing here fails: what is not understood refuses the unit that it belongs to, and
 * reading goes on with the next.
 */
#ifndef MO_DEBUG_INTERNAL_H
#define MO_DEBUG_INTERNAL_H

#include "mo/array.h"
#include "mo/debug.h"
#include "mo/table.h"

/* --- DWARF 5, 6.2.5: line programs --- */

enum {
    LNS_COPY = 1,
    LNS_ADVANCE_PC,
    LNS_ADVANCE_LINE,
    LNS_SET_FILE,
    LNS_SET_COLUMN,
    LNS_NEGATE_STMT,
    LNS_SET_BASIC_BLOCK,
    LNS_CONST_ADD_PC,
    LNS_FIXED_ADVANCE_PC,
    LNS_SET_PROLOGUE_END,
    LNS_SET_EPILOGUE_BEGIN,
    LNS_SET_ISA,
    LNS_COUNT
};
enum { LNE_END_SEQUENCE = 1, LNE_SET_ADDRESS, LNE_DEFINE_FILE, LNE_SET_DISCRIMINATOR };

/* --- DWARF 5, 7.5 and 7.7; GNU extensions --- */

enum {
    TAG_LABEL = 0x0a,
    TAG_COMPILE_UNIT = 0x11,
    TAG_SUBPROGRAM = 0x2e,
    TAG_CALL_SITE = 0x48,
    TAG_GNU_CALL_SITE = 0x4109,
};

enum {
    AT_LOCATION = 0x02,
    AT_LOW_PC = 0x11,
    AT_HIGH_PC = 0x12,
    AT_FRAME_BASE = 0x40,
    AT_SEGMENT = 0x46,
    AT_ENTRY_PC = 0x52,
    AT_RANGES = 0x55,
    AT_ADDR_BASE = 0x73,
    AT_RNGLISTS_BASE = 0x74,
    AT_DWO_NAME = 0x76,
    AT_CALL_RETURN_PC = 0x7d,
    AT_CALL_PC = 0x81,
    AT_LOCLISTS_BASE = 0x8c,
    AT_GNU_DWO_NAME = 0x2130,
    AT_GNU_LOCVIEWS = 0x2137,
    AT_GNU_ENTRY_VIEW = 0x2138,
};

enum {
    FORM_ADDR = 0x01,
    FORM_BLOCK2 = 0x03,
    FORM_BLOCK4 = 0x04,
    FORM_DATA2 = 0x05,
    FORM_DATA4 = 0x06,
    FORM_DATA8 = 0x07,
    FORM_STRING = 0x08,
    FORM_BLOCK = 0x09,
    FORM_BLOCK1 = 0x0a,
    FORM_DATA1 = 0x0b,
    FORM_FLAG = 0x0c,
    FORM_SDATA = 0x0d,
    FORM_STRP = 0x0e,
    FORM_UDATA = 0x0f,
    FORM_REF_ADDR = 0x10,
    FORM_REF1 = 0x11,
    FORM_REF2 = 0x12,
    FORM_REF4 = 0x13,
    FORM_REF8 = 0x14,
    FORM_REF_UDATA = 0x15,
    FORM_INDIRECT = 0x16,
    FORM_SEC_OFFSET = 0x17,
    FORM_EXPRLOC = 0x18,
    FORM_FLAG_PRESENT = 0x19,
    FORM_STRX = 0x1a,
    FORM_ADDRX = 0x1b,
    FORM_REF_SUP4 = 0x1c,
    FORM_STRP_SUP = 0x1d,
    FORM_DATA16 = 0x1e,
    FORM_LINE_STRP = 0x1f,
    FORM_REF_SIG8 = 0x20,
    FORM_IMPLICIT_CONST = 0x21,
    FORM_LOCLISTX = 0x22,
    FORM_RNGLISTX = 0x23,
    FORM_REF_SUP8 = 0x24,
    FORM_STRX1 = 0x25,
    FORM_STRX2 = 0x26,
    FORM_STRX3 = 0x27,
    FORM_STRX4 = 0x28,
    FORM_ADDRX1 = 0x29,
    FORM_ADDRX2 = 0x2a,
    FORM_ADDRX3 = 0x2b,
    FORM_ADDRX4 = 0x2c,
    FORM_GNU_ADDR_INDEX = 0x1f01,
    FORM_GNU_STR_INDEX = 0x1f02,
};

#define NOWHERE ((struct debug_field){NO_INDEX, 0, NO_INDEX, 0, false})

/* --- the reader --- */

/* An address as it is stored: a place in code, or nothing of ours. */
struct place_of {
    bool known; /* in a code section of this object */
    uint32_t code, position;
};

struct list_context {
    struct place_of base;
    uint64_t frame_base;
};

struct reader {
    struct arena *arena; /* lifetime of the result */
    struct arena *stage;
    const struct object *object;
    bool **seen; /* by debug section, relocation: a field of ours holds it */
    uint8_t *refused;
    const char **whys;
    array_of(struct debug_point) points;
    array_of(struct debug_range) ranges;
    array_of(struct debug_expression) expressions;
    array_of(struct debug_lines) lines;
    struct table *abbrevs; /* of (section, offset) … */
    array_of(struct abbrev_table *) abbrev_tables; /* … by their number there */
    struct table *lists; /* lists that have been read, by (section, offset) … */
    array_of(struct list_context) list_contexts; /* … and what they were read with */
};

void refuse_unit(struct reader *reader, uint32_t unit, enum refusal why,
                 const char *text);
/* The same for the unit of a section. */
void refuse(struct reader *reader, uint32_t section, const char *text);

/* The relocation at exactly this offset, or NO_INDEX; it counts as seen. */
uint32_t take_reloc(struct reader *reader, uint32_t section, uint64_t offset);
/* An address of 8 bytes. `field->reloc` is NO_INDEX when nothing relocates it. */
struct place_of read_place(struct reader *reader, uint32_t section, uint64_t offset,
                           struct debug_field *field);
/* An offset into another debug section: that section, or NO_INDEX, and the offset. */
uint32_t read_link(struct reader *reader, uint32_t section, uint64_t offset,
                   uint32_t size, uint64_t *to);
struct cursor cursor_at(const struct reader *reader, uint32_t section,
                        uint64_t offset);
/* A ULEB128, with the place where it is stored. */
uint64_t field_uleb(struct cursor *cursor, uint32_t section,
                    struct debug_field *field);
bool section_named(const struct reader *reader, uint32_t section, const char *name);

void add_point(struct reader *reader, enum debug_role role, struct place_of place,
               struct debug_field field);

/* --- abbrev.c --- */

struct abbrev_attribute {
    uint16_t name, form; /* names and forms above that are 0 here: unknown to us */
    int64_t constant;    /* FORM_IMPLICIT_CONST */
};

struct abbrev {
    uint64_t code;
    uint32_t tag;
    bool has_children;
    const struct abbrev_attribute *attributes;
    uint32_t attribute_count;
};

struct abbrev_table {
    array_of(struct abbrev) items; /* in file order */
    bool bad;
};

/* The table at an offset of an abbreviation section; read once. */
const struct abbrev_table *abbrevs_at(struct reader *reader, uint32_t section,
                                      uint64_t offset);
const struct abbrev *abbrev_find(const struct abbrev_table *table, uint64_t code);

/* --- info.c --- */

/* A unit of .debug_info (or .debug_types). */
struct unit_of {
    uint32_t section;
    uint64_t end;
    uint16_t version;
    uint8_t offset_size; /* 4 or 8 */
    const struct abbrev_table *abbrevs;
    struct place_of base; /* its low_pc */
    uint32_t addr_section, rnglists_section, loclists_section; /* or NO_INDEX */
    uint64_t addr_base, rnglists_base, loclists_base;
};

/* What the entries around say. */
struct scope_of {
    bool ranged;          /* code of a known range: */
    struct place_of start;
    uint32_t end;
    uint64_t frame_base;  /* registers that DW_OP_fbreg depends on */
    uint32_t entry_index; /* of .debug_addr, for the start of the function; NO_INDEX */
};

void info_read(struct reader *reader, uint32_t section, bool types);

/* --- forms.c --- */

struct value {
    uint16_t name, form;
    uint32_t offset; /* where it is stored */
    uint32_t size;   /* bytes there */
    uint64_t number; /* constants, references, indices; length of a block */
    uint32_t body;   /* blocks: where their bytes begin */
};

/* False for forms that are not known, and at the end. */
bool value_read(struct cursor *cursor, const struct unit_of *unit,
                const struct abbrev_attribute *attribute, struct value *out);
bool form_is_address(uint16_t form);
bool form_is_index(uint16_t form); /* of .debug_addr */
bool form_is_constant(uint16_t form);
bool form_is_block(uint16_t form);

/* --- attributes.c --- */

/* The attributes of one entry. `scope` is what holds around it, and becomes what holds
 * in it. */
bool entry_read(struct reader *reader, struct unit_of *unit, uint32_t tag,
                const struct value *values, uint32_t count, struct scope_of *scope);
bool root_read(struct reader *reader, struct unit_of *unit, const struct value *values,
               uint32_t count);
/* Entry `index` of the unit's addresses. */
bool pool_place(struct reader *reader, const struct unit_of *unit, uint64_t index,
                struct place_of *place, struct debug_field *field);

/* --- expression.c --- */

/* Looks through an expression: the registers that it depends on, and the addresses in
 * it. */
bool expression_read(struct reader *reader, const struct unit_of *unit,
                     const struct scope_of *scope, uint64_t offset, uint64_t size,
                     uint32_t section, uint64_t *registers);

/* --- lists.c --- */

bool ranges_read(struct reader *reader, const struct unit_of *unit, uint32_t section,
                 uint64_t offset);
/* `views`: offset of its pairs of view numbers, or UINT64_MAX. */
bool locations_read(struct reader *reader, const struct unit_of *unit,
                    const struct scope_of *scope, uint32_t section, uint64_t offset,
                    uint64_t views);

/* --- lines.c, aranges.c --- */
void lines_read(struct reader *reader, uint32_t section);
void aranges_read(struct reader *reader, uint32_t section);

#endif
