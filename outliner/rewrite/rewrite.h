/* SPDX-License-Identifier: MIT
 *
 * Private to the rewriter: program + plan -> new objects. The rooms, in the order in
 * which they are walked through:
 *
 *   edits.c               plan -> which instructions are replaced by which bytes
 *   layout.c, offsets.c   edits -> where everything lies afterwards: the offset map
 *   helpers.c     the helpers' bodies, and where each lies in which section
 *   symbols.c     drafts of the new objects: symbols with new values, new
 * symbols references.c  relocations and jump tables that mean a moved position
 *   tables.c        call-site tables
 *   frames.c      unwind tables: old ones edited, new ones for the helpers
 *   stays.c       rows of tails that stay in place
 *   debug.c, debug_lines.c, debug_places.c   debug information
 *   code.c        the bytes of edited sections and of helper sections
 *   rewrite.c, price.c    all of it; the sizes alone
 */
#ifndef MO_OUTLINER_REWRITE_H
#define MO_OUTLINER_REWRITE_H

#include "mo/array.h"
#include "mo/plan.h"
#include "mo/table.h"

/* --- edits.c
 * ------------------------------------------------------------------------------ The
 * instructions [insn, insn + insn_count) go, `code` comes; with a count of 0, `code` is
 * inserted before `insn`. */
struct edit {
    uint32_t insn, insn_count;
    uint32_t start, end; /* the same as section offsets */
    struct code_bytes code;
    uint32_t site;   /* index in plan.sites, or NO_INDEX */
    uint32_t helper; /* index in plan.helpers that `code` refers to, or NO_INDEX */
    uint8_t call, call_end; /* where the call lies in the code of a site, bytes */
};

/* One edit for each site of the plan, sorted by instruction, plus `extra` (sorted,
 * too). */
struct edit_list {
    const struct edit *items;
    uint32_t count;
};
struct edit_list edits_of_plan(struct arena *arena, const struct program *program,
                               const struct plan *plan, const struct edit_list *extra);
void edits_sort(struct edit *edits,
                uint32_t count); /* and assert that they are disjoint */

/* --- offsets.c
 * ---------------------------------------------------------------------------- Old
 * section offset -> new one, for one code section. */
enum piece_kind {
    PIECE_KEPT,     /* the same bytes */
    PIECE_REPLACED, /* by an edit */
    PIECE_PADDING,  /* made anew */
};

struct piece {
    uint32_t old_start, new_start;
    uint32_t kind; /* enum piece_kind */
    uint32_t edit; /* PIECE_REPLACED: which edit of the section */
};

/* Sorted; they tile the section, old and new. The last one is empty, at the ends. No
 * pieces at all: nothing moved. */
struct offsets {
    const struct piece *pieces;
    uint32_t count;
    const uint32_t *index; /* by old offset / OFFSETS_STEP: how many pieces start before
                              that; NULL: none, searching takes longer */
};
enum { OFFSETS_STEP = 64 };
struct offsets offsets_make(struct arena *arena, const struct piece *pieces,
                            uint32_t count);

/* The new offset of what starts at `old`. In the middle of a replaced piece there is
 * nothing that could be meant: an assert. */
uint32_t offsets_start(const struct offsets *offsets, uint32_t old);
/* The new offset of the end of what ends at `old`: differs from the above where padding
 * was put between two neighbours. */
uint32_t offsets_end(const struct offsets *offsets, uint32_t old);
/* The piece around `old`, or NULL when nothing moved. */
const struct piece *offsets_piece(const struct offsets *offsets, uint32_t old);
/* The branch, which lies in the piece, leads as far as it did: all of it is there. */
bool piece_keeps_branch(const struct piece *piece, const struct insn *insn);

/* --- layout.c --- */
struct layout {
    struct edit_list edits; /* of this section; none: it keeps every byte */
    struct offsets offsets;
    /* Of one that has edits: its instructions with a PC-relative field that no relocation
     * fills (which need not be branches), in order. */
    const uint32_t *branches;
    uint32_t branch_count;
};

/* One layout for each code section of the program; `narrow`: with short branches where
 * long ones have become needless. Fails when a branch cannot reach. */
MO_MUST_CHECK bool layouts_make(struct arena *arena, const struct program *program,
                                const struct edit_list *edits, bool narrow,
                                const struct layout **out, struct error *err);

/* --- branches.c --- */
/* The instruction has a PC-relative field that no relocation fills. */
bool insn_is_resolved(const struct program *program, uint32_t insn);
/* All of them in a code section. */
void branches_find(struct arena *arena, const struct program *program, uint32_t code,
                   struct layout *layout);
struct new_edits {
    struct edit *items;
    uint32_t count, capacity;
};
/* More edits: for those that cannot reach, and for long ones that need not be. */
MO_MUST_CHECK bool branches_widen(struct arena *arena, const struct program *program,
                                  uint32_t code, const struct layout *layout,
                                  struct new_edits *added, struct error *err);
void branches_narrow(struct arena *arena, const struct program *program, uint32_t code,
                     const struct layout *layout, struct new_edits *added);

/* --- helpers.c --- */

/* A field of a helper that a relocation must fill. */
struct helper_ref {
    uint32_t offset; /* from the helper's start */
    uint32_t type;
    uint32_t
        reloc; /* the relocation of the first site that it stands for, or NO_INDEX … */
    uint32_t target; /* … and then the section offset (old) that is meant */
    int64_t addend;  /* added to what that relocation or position says */
    uint8_t bias;    /* of the relocation: see target.reloc_bias */
};

struct helper_body {
    struct bytes data;
    const uint32_t
        *offsets; /* of each payload instruction, from the start; then the end */
    const struct helper_ref *refs;
    uint32_t ref_count;
    uint32_t code;    /* code index of the first site, or of the one that stays */
    uint32_t section; /* index in helper_places.sections; NO_INDEX: one that stays */
    uint32_t start;   /* section offset there */
};

struct helper_section {
    const char *name;
    uint64_t flags;
    uint32_t size; /* bytes */
};

struct helper_places {
    struct helper_body *bodies; /* one for each helper of the plan */
    const struct helper_section *sections;
    uint32_t section_count;
};

MO_MUST_CHECK bool helpers_make(struct arena *arena, const struct program *program,
                                const struct plan *plan, struct helper_places *out,
                                struct error *err);

/* --- price.c
 * ------------------------------------------------------------------------------
 * Where everything of a plan will lie: made for its price, and used again to write it. */
struct placement {
    const struct layout *layouts; /* by code index */
    struct helper_places places;
    const struct new_frames *frames;  /* by object: their unwind tables */
    /* By helper section: theirs; without relocations: there is none. */
    const struct section *helper_frames;
};

MO_MUST_CHECK bool placement_make(struct arena *arena, const struct program *program,
                                  const struct plan *plan,
                                  const struct edit_list *extra, struct placement *out,
                                  struct error *err);

/* --- symbols.c, imports.c --- */

struct symbol_list {
    struct symbol *items;
    uint32_t count, capacity;
};

/* One new object in the making. */
struct draft {
    const struct object *old; /* NULL: the helper object */
    struct section *sections; /* room for the helpers' sections behind the old ones; NULL:
                                 nothing in it changes, and it stays the old one */
    uint32_t section_count;
    struct symbol_list symbols;
    struct reloc **relocs;     /* by old section: a copy with new addends, or NULL */
    uint8_t **data;            /* by old section: a copy of its bytes, or NULL */
    uint32_t *code_of;         /* by old section: code index, or NO_INDEX */
    uint32_t *section_symbols; /* by section: symbol index, or NO_INDEX */
};

struct rewrite {
    struct arena *arena; /* lifetime of the result */
    struct arena *stage;
    const struct program *program;
    const struct plan *plan;
    const struct rewrite_options *options;
    const struct layout *layouts; /* by code index */
    struct helper_places places;
    const struct new_frames *frames;  /* see struct placement */
    const struct section *helper_frames;
    struct draft *drafts; /* the program's objects, then the helper object, if any */
    uint32_t draft_count;
    uint32_t home;            /* the draft that holds the helpers; NO_INDEX: none */
    uint32_t first_section;   /* there: the first helper section */
    uint32_t unit;            /* there: the unit of the helpers */
    uint32_t *helper_symbols; /* there: symbol of each helper */
    uint32_t *site_symbols;   /* symbol of each helper in the object … */
    uint32_t *site_objects;   /* … with this index, plus 1: the last one that asked */
    struct table *names;      /* that are taken */
    struct table *imports;    /* what `home` refers to in other objects … */
    array_of(uint32_t) imported; /* … and its symbol in `home` */
};

/* The new offset of a position in a section of an object. */
uint32_t rewrite_start(const struct rewrite *rewrite, uint32_t object, uint32_t section,
                       uint32_t position);

/* The relocations of an old section with their new addends, at their old places. */
const struct reloc *rewrite_relocs(const struct rewrite *rewrite, uint32_t object,
                                   uint32_t section);

/* Sets up the drafts: symbols with their new values, names and symbols for the helpers.
 */
void symbols_draft(struct rewrite *rewrite);
/* Makes the relocation of a site in this object mean the helper: its symbol, and what is
 * added to that. */
void symbols_helper(struct rewrite *rewrite, uint32_t object, uint32_t helper,
                    struct reloc *reloc);
uint32_t symbols_section(struct rewrite *rewrite, uint32_t draft, uint32_t section);
/* `text`, or with a number behind it when that name is taken. It is taken then. */
const char *symbols_name(struct rewrite *rewrite, const char *text);
uint32_t symbols_add(struct rewrite *rewrite, uint32_t draft,
                     const struct symbol *symbol);

/* The relocation that says in `home` what a reference of a helper means. */
struct reloc symbols_import(struct rewrite *rewrite, const struct helper_body *body,
                            const struct helper_ref *ref);

/* --- the other rooms --- */

/* move.c: every field outside of edited code that says a position. */
MO_MUST_CHECK bool objects_move(struct rewrite *rewrite, struct error *err);

/* references.c: relocations' addends and tables' bytes. This and what follows is for one
 * object, which has a draft with sections, and touches no other one. */
MO_MUST_CHECK bool references_move(struct rewrite *rewrite, uint32_t object,
                                   struct error *err);

/* A section's relocations, to be changed. */
struct reloc *rewrite_own_relocs(struct rewrite *rewrite, uint32_t object,
                                 uint32_t section);
/* Its bytes, to be changed. */
uint8_t *rewrite_own_data(struct rewrite *rewrite, uint32_t object, uint32_t section);

/* tables.c: call-site tables, and what points to them. */
void tables_move(struct rewrite *rewrite, uint32_t object);

/* frames.c. The unwind tables of one object. */
struct new_frames {
    const struct section *sections; /* by section … */
    const bool *changed;            /* … where some FDE is written anew */
};
/* Fills both in the placement, where all else is known. */
MO_MUST_CHECK bool frames_make(struct arena *arena, const struct program *program,
                               const struct plan *plan, struct placement *placement,
                               struct error *err);
/* stays.c: tails that stay in place with weaker rows. Sorted. */
struct stay_range {
    uint32_t code, start, end; /* code index, section offsets */
    uint64_t settled;          /* registers whose rules go */
};
struct stay_list {
    struct stay_range *items;
    uint32_t count, capacity;
};
struct stay_list stays_of_plan(struct arena *arena, const struct program *program,
                               const struct plan *plan);
/* The entry with the rows that it has then; false when none of them lies in it. */
bool stays_change_rows(struct arena *arena, const struct program *program,
                       const struct stay_list *list, uint32_t code,
                       const struct fde *fde, struct fde *out);

/* retell.c: the entry with its rows told by SP where they can be and that is shorter; false
 * when there are none. */
bool rows_retold(struct arena *arena, const struct program *program, uint32_t code,
                 const struct fde *fde, struct fde *out);

/* rows.c: rows that exist only because of us. */
/* A site in this row overwrites the link register although the row finds the return address
 * there. */
bool row_loses_link(const struct program *program, uint32_t row, uint32_t form);
/* The row with what `other` says of the return address. */
uint32_t row_with_link_of(struct arena *arena, const struct program *program, uint32_t row,
                          uint32_t other);
/* The row while the link register is kept as the form says. */
uint32_t row_while_saved(struct arena *arena, const struct program *program,
                         uint32_t row, const struct site *site);
/* The row of a called helper while the register lies on the stack that it has pushed. */
uint32_t row_while_aligned(const struct program *program, uint32_t row);
/* Rows of a helper's instructions: rows[i] at instruction i of the payload, and
 * rows[length] behind it. */
void rows_of_helper(struct arena *arena, const struct program *program,
                    const struct helper *helper, const struct site *first,
                    uint32_t *rows);

/* --- debug_places.c: what positions of debug information become --- */
struct debug_tail {
    uint32_t section, start, end; /* section offsets (old) */
};
struct debug_places {
    const struct rewrite *rewrite;
    uint32_t object;
    const struct debug_tail *tails; /* that stay in place, and others jump to */
    uint32_t tail_count;
    uint64_t veneers; /* DWARF registers that a linker's veneer may write */
};
struct debug_places debug_places_of(const struct rewrite *rewrite, uint32_t object);
/* Where the code that begins at a position of a code section begins now; what was
 * replaced is over behind the code that came instead. */
uint32_t debug_start(const struct debug_places *places, uint32_t section,
                     uint32_t position);
/* The same for the code that ends there. */
uint32_t debug_end(const struct debug_places *places, uint32_t section,
                   uint32_t position);
/* The new position of a point; NO_INDEX: there is none any more. */
uint32_t debug_point_place(const struct debug_places *places,
                           const struct debug_point *point);
/* Where the place of a variable ends to hold, in [start, end]: its own end, or where code
 * of ours has changed what it depends on. */
uint32_t debug_location_end(const struct debug_places *places,
                            const struct debug_range *range);
/* Code of ours in the range changes what the place depends on. */
bool debug_expression_holds(const struct debug_places *places,
                            const struct debug_expression *expression);
/* The section's positions are other ones than before. */
bool debug_moves(const struct debug_places *places, uint32_t section);
/* It has been replaced, but for its start. */
bool debug_is_inside(const struct debug_places *places, uint32_t section,
                     uint32_t position);
/* It is among no-ops that are dropped. */
bool debug_is_dropped(const struct debug_places *places, uint32_t section,
                      uint32_t position);

/* debug_lines.c */
void debug_lines_move(struct rewrite *rewrite, const struct debug_places *places);
/* debug.c: all of it that one object has. */
void debug_move(struct rewrite *rewrite, uint32_t object);
/* Makes a relocation that meant `from` of a code section mean `to` of it. */
void debug_move_reloc(struct rewrite *rewrite, uint32_t object, uint32_t section,
                      uint32_t reloc, uint32_t from, uint32_t to);

/* code.c: all edited code sections. */
MO_MUST_CHECK bool code_write(struct rewrite *rewrite, struct error *err);
void helpers_write(struct rewrite *rewrite);

/* rewrite.c: with edits that no plan asks for (tests insert no-ops this way). */
MO_MUST_CHECK bool rewrite_with_edits(struct arena *arena,
                                      const struct program *program,
                                      const struct plan *plan,
                                      const struct edit_list *extra,
                                      const struct rewrite_options *options,
                                      struct objects *out, struct error *err);

/* shake.c: no-ops at random places, sorted; see there. */
struct edit_list edits_of_shaking(struct arena *arena, const struct program *program,
                                  uint32_t seed);

#endif
