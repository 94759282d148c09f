/* SPDX-License-Identifier: MIT
 *
 * Call frame information (DWARF 5 section 6.4, LSB .eh_frame) as values: a row is the
 * unwind state at one instruction, an FDE a list of rows by section offset. Entries are
 * read by libdwarf from a relocated private copy of the section; the state machine that
 * turns them into rows, and the one that writes rows as a small program, are ours.
 */
#ifndef MO_UNWIND_H
#define MO_UNWIND_H

#include "mo/arena.h"
#include "mo/object.h"
#include "mo/refusal.h"

enum rule_kind {
    RULE_UNSPECIFIED, /* never in a list: columns that are not listed are unspecified */
    RULE_UNDEFINED,
    RULE_SAME_VALUE,
    RULE_OFFSET,     /* saved at CFA + value */
    RULE_VAL_OFFSET, /* is CFA + value */
    RULE_REGISTER,   /* is in DWARF register `value` */
    RULE_EXPRESSION, /* saved at the address that the expression computes */
    RULE_VAL_EXPRESSION,
};

/* Every offset that is a multiple of this many bytes can be stated under every CIE that
 * is understood: data alignment factors divide it. */
enum { ROW_FACTOR = 8 };

struct rule {
    uint32_t column; /* DWARF register number */
    uint32_t kind;   /* enum rule_kind */
    int64_t value;   /* bytes (already multiplied by the data alignment), or a register */
    struct bytes expression;
};

struct row {
    bool cfa_is_expression;
    uint32_t cfa_register; /* DWARF register number */
    int64_t cfa_offset;    /* bytes */
    struct bytes cfa_expression;
    const struct rule *rules; /* sorted by column */
    uint32_t rule_count;
    bool ra_signed;     /* toggled by DW_CFA_AARCH64_negate_ra_state (0x2d) */
    uint64_t args_size; /* DW_CFA_GNU_args_size (0x2e) */
};

/* Rows are interned: equal rows have equal numbers, over all objects of a run. */
struct row_table;
struct row_table *row_table_new(struct arena *arena);
/* One that knows all rows of `below` by their numbers there and gives new ones to
 * others. `below`, itself over nothing, must not grow meanwhile; so any number of them
 * may be over one, each for a worker of its own. */
struct row_table *row_table_over(struct arena *arena, const struct row_table *below);
/* Gives the new rows of such a one to the table that it is over, in their order. */
void row_table_collect(struct row_table *below, const struct row_table *over);
/* The same; returns the numbers that they have there. */
const uint32_t *row_table_numbers(struct arena *arena, struct row_table *below,
                                  const struct row_table *over);
uint32_t row_table_count(const struct row_table *table);
uint32_t row_intern(struct row_table *table, const struct row *row);
const struct row *row_get(const struct row_table *table, uint32_t row);
/* The rule of a column, or NULL when it is unspecified. */
const struct rule *row_rule(const struct row *row, uint32_t column);
/* Whether the two rules, each NULL for "none", say the same. */
bool rule_equal(const struct rule *a, const struct rule *b);
/* The register still holds the caller's value: the rule says so, or there is none. */
bool rule_keeps_value(const struct rule *rule);
#define ROW_NONE NO_INDEX /* no unwind information */

struct row_change {
    uint32_t offset; /* section offset in the code section from which the row holds */
    uint32_t row;    /* number in the row_table */
};

struct cie {
    uint32_t section; /* index of its .eh_frame section */
    uint32_t offset;  /* section offset of its length field */
    uint64_t code_align;
    int64_t data_align;
    uint32_t return_column;
    bool signal_frame;  /* 'S' */
    bool b_key;         /* 'B' */
    bool augmented;     /* 'z': its FDEs have augmentation data, if only its length 0 */
    uint8_t fde_encoding, lsda_encoding, personality_encoding; /* DW_EH_PE_... */
    bool has_personality;
    uint32_t personality; /* symbol index of what its relocation refers to, or 0 */
    uint32_t initial_row;
    enum refusal refusal; /* not NONE: its FDEs cannot be read either */
};

struct fde {
    uint32_t section; /* index of its .eh_frame section */
    uint32_t offset;  /* section offset of its length field */
    uint32_t cie;     /* index in frames.cies */
    uint32_t code_section; /* section index; NO_INDEX when it describes nothing that is
                              here (a dropped group) */
    uint32_t start, length; /* section offset and bytes of the code */
    bool has_lsda;
    /* Where that is: section index (NO_INDEX: not known), section offset, and the index
     * of the relocation in `section` that says it. */
    uint32_t lsda_section, lsda_offset, lsda_reloc;
    const struct row_change *changes; /* sorted; the first is at `start` */
    uint32_t change_count;
    bool remembers;       /* (for size estimates) the program uses remember/restore */
    uint32_t program_size; /* bytes of its instructions without the padding at the end */
    enum refusal refusal; /* not NONE: `changes` is empty */
};

struct frames {
    const struct cie *cies;
    uint32_t cie_count;
    const struct fde *fdes; /* sorted by (code_section, start) */
    uint32_t fde_count;
};

/* All FDEs of the object, from all its .eh_frame sections. A section that cannot be
 * trusted as a whole (lengths that lead outside, unknown versions) fails with a place. */
MO_MUST_CHECK bool frames_read(struct arena *arena, const struct object *object,
                               struct row_table *rows, struct frames *out,
                               struct error *err);

/* The same for each of the objects, by several workers. */
MO_MUST_CHECK bool frames_read_all(struct arena *arena, const struct objects *objects,
                                   struct row_table *rows, uint32_t workers,
                                   const struct frames **out, struct error *err);

/* The FDEs [*first, *first + count) that touch [start, end) of a code section. */
uint32_t frames_find(const struct frames *frames, uint32_t code_section, uint32_t start,
                     uint32_t end, uint32_t *first);

/* The last change at or before a section offset (index in fde->changes), or NO_INDEX. */
uint32_t fde_change_at(const struct fde *fde, uint32_t offset);
/* The row that holds at a section offset inside the FDE. */
uint32_t fde_row_at(const struct fde *fde, uint32_t offset);

/* --- writing --- */

/* What becomes of one FDE. */
struct fde_edit {
    bool drop;         /* the FDE goes (its code is gone) */
    bool rewrite;      /* `length` and `changes` count; else the program keeps its bytes */
    uint32_t length;   /* bytes of the code afterwards */
    const struct row_change *changes; /* offsets from the *new* start of the code */
    uint32_t change_count;
    const uint32_t *starts; /* where more functions begin in it, ascending, likewise */
    uint32_t start_count;
};

/* The .eh_frame section `section` of the object with its FDEs edited: edits[i] belongs to
 * frames->fdes[i] (all sections in one array; those of other sections are passed over).
 * With no drop and no rewrite the result equals the input byte for byte. Relocations move
 * with their fields; what they point to is not changed here. */
void frames_rewrite(struct arena *arena, const struct object *object, uint32_t section,
                    const struct row_table *rows, const struct frames *frames,
                    const struct fde_edit *edits, struct section *out);

/* A new .eh_frame section for code that had none: helpers. One CIE of the target's plain
 * kind (augmentation zR, or zRB/zRS), and one FDE for every range. The relocation of each
 * pc_begin is against `symbol` (the section symbol of the code) with addend `start`. */
struct frame_range {
    uint32_t start, length; /* section offset and bytes of the code */
    bool signal_frame, b_key;
    const struct row_change *changes; /* section offsets; the first at `start` */
    uint32_t change_count;
    uint32_t symbol; /* of its own section; 0: the one for all */
    const uint32_t *starts; /* of helpers, ascending section offsets; NULL: not known, so
                               each change may be one */
    uint32_t start_count;
};
void frames_build(struct arena *arena, uint16_t machine, const struct row_table *rows,
                  const struct frame_range *ranges, uint32_t range_count, uint32_t symbol,
                  uint32_t unit, struct section *out);

/* The object with fewer FDEs: functions side by side share them where they can. Rows stay
 * what they are, everywhere. */
MO_MUST_CHECK bool frames_unite(struct arena *arena, const struct object *object,
                                struct row_table *rows, const struct object **out,
                                struct error *err);

/* The .eh_frame section `section` of the object, which holds what frames_build() made
 * several times over, as if made at once: one CIE of a kind, and ranges that lie side by
 * side as one, as long as that does not make unwinding slow. Left as it is when it holds
 * anything else. */
MO_MUST_CHECK bool frames_regroup(struct arena *arena, const struct object *object,
                                  uint32_t section, struct section *out,
                                  struct error *err);

/* Bytes that an FDE with this program takes in .eh_frame, its header and padding included:
 * exactly what frames_rewrite and frames_build write. (The last record of a section also
 * fills up the section's alignment, at most 4 bytes with the usual 8.) */
uint32_t fde_size(const struct row_table *rows, const struct cie *cie,
                  const struct row_change *changes, uint32_t change_count, uint32_t start,
                  uint32_t length);

/* Number of FDEs in an .eh_frame section (each costs 8 bytes of .eh_frame_hdr). */
uint32_t frame_count(const struct section *section);

/* The plain row at a helper's entry: CFA = SP (+ what a call pushes), return address where
 * a call leaves it. */
uint32_t row_at_entry(struct row_table *rows, uint16_t machine);

/* An FDE of this CIE can state the row: offsets are multiples of the data alignment, and
 * columns that the CIE gives a rule have one in the row too (no instruction takes a rule
 * away). Writing asserts it; rows of the CIE's own FDEs are always fine. */
bool cie_can_state(const struct row_table *rows, const struct cie *cie, uint32_t row);

/* The CIE that frames_build gives to helpers, for fde_size(). */
struct cie helper_cie(struct row_table *rows, uint16_t machine);

#endif
