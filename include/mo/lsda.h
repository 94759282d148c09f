/* SPDX-License-Identifier: MIT
 *
 * Call-site tables (LSDA, "language-specific data area"; Itanium C++ ABI: Exception
 * Handling, and what GCC and LLVM make of it) as values. One table belongs to one FDE:
 *
 *   where landing pads count from (omitted: the start of the FDE's code)
 *   how types are encoded, and how far it is to where they end
 *   the call sites: start, length, landing pad, action; sorted, with gaps
 *   actions, each the number of a type or of a list of types, and the next action
 *   types, counted from their end backwards; then the lists of types
 *
 * Only the call sites speak of places in the code. All behind them is carried as bytes
 * with its relocations, which stay at the same distance from where the types end.
 *
 * What a gap means is up to the personality; C++ and Rust end the program. So a gap is
 * not the same as a call site without a landing pad, which lets exceptions pass.
 */
#ifndef MO_LSDA_H
#define MO_LSDA_H

#include "mo/unwind.h"

/* One record. All offsets are section offsets of the code. */
struct call_site {
    uint32_t start, end;
    uint32_t pad;    /* where an exception goes on, or NO_INDEX */
    uint32_t action; /* 0: none; else 1 + offset of the first action */
};

/* One table. All offsets are section offsets of the section that it lies in. */
struct lsda {
    uint32_t fde;     /* index in frames.fdes */
    uint32_t section; /* section index */
    uint32_t start, end;     /* up to the next table or the section's end, so padding and
                                tables that nobody refers to may lie behind it */
    uint8_t types_encoding;  /* DW_EH_PE_..., 0xff: no types */
    uint8_t sites_encoding;
    uint32_t types_field;    /* the byte behind types_encoding */
    uint32_t sites_field;    /* the byte of sites_encoding */
    uint32_t actions;        /* the first one; the call sites end here */
    uint32_t actions_end;    /* behind the last one that a call site leads to */
    uint32_t types_end;      /* where types are counted from; NO_INDEX: no types */
    uint32_t type_count;     /* that an action or a list names */
    uint32_t lists_end;      /* behind the last list that an action names */
    const struct call_site *sites;
    uint32_t site_count;
    enum refusal refusal; /* not NONE: only fde, section, start and end count */
};

struct lsdas {
    const struct lsda *items; /* sorted by (section, start) */
    uint32_t count;
    const uint32_t *of_fde; /* for each FDE: its table, or NO_INDEX */
};

/* The tables of all FDEs of the object. One that is not understood is refused, and with
 * it all tables of its section: they cannot be moved apart. The same goes for a table
 * that two FDEs share, for a personality that is not known to read this format, and for
 * a section that something else than FDEs refers to. */
void lsdas_read(struct arena *arena, const struct object *object,
                const struct frames *frames, struct lsdas *out);

/* Index of the first table of a section, if it has any: they lie together. */
uint32_t lsdas_in_section(const struct lsdas *lsdas, uint32_t section);

/* The record of an instruction at this section offset of the code; NULL: a gap. */
const struct call_site *lsda_site_at(const struct lsda *lsda, uint32_t offset);

/* Bytes of a type; 0: of no fixed size. */
uint32_t lsda_type_size(const struct lsda *lsda);

/* --- writing --- */

/* New call sites of a table. */
struct lsda_edit {
    bool rewrite;  /* else the table keeps its bytes, though it may move */
    uint32_t base; /* where the FDE's code starts now */
    const struct call_site *sites; /* at their new section offsets */
    uint32_t site_count;
};

/* The section with its tables edited: edits[i] belongs to lsdas->items[i] (those of
 * other sections are passed over), and `relocs` are the section's relocations at their
 * old places. starts[i] is filled with where items[i] lies now. Without an edit every
 * byte stays what it was. */
void lsdas_rewrite(struct arena *arena, const struct object *object, uint32_t section,
                   const struct reloc *relocs, const struct lsdas *lsdas,
                   const struct lsda_edit *edits, struct section *out,
                   uint32_t *starts);

#endif
