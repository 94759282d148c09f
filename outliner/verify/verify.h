/* SPDX-License-Identifier: MIT
 *
 * Private to the checker (verify*.c): two sets of objects side by side, and what is
 * known about which place of one is which place of the other.
 */
#ifndef MO_OUTLINER_VERIFY_H
#define MO_OUTLINER_VERIFY_H

#include "mo/array.h"
#include "mo/decoder.h"
#include "mo/parallel.h"
#include "mo/program.h"
#include "mo/table.h"

/* A place in a set of objects. */
struct spot {
    uint32_t object, section; /* index in the set, index in the object */
    uint32_t offset;          /* section offset, bytes */
};

struct named {
    uint32_t object, symbol;
};

/* A row that has been found. */
struct known_row {
    const struct fde *fde; /* its entry; NULL: nothing is known */
    struct spot from;      /* from here … */
    uint32_t end, row;     /* … up to this section offset it is this one */
};

/* Where the last questions about a side were answered: the walk goes from instruction
 * to instruction, so the next answer is usually the same one, or lies behind it. */
struct nearby {
    const struct section *section;
    uint32_t reloc;       /* index in that section's relocs */
    uint32_t object, fde; /* index in the set, index in its frames */
    uint32_t change;      /* index in the changes of that entry */
    struct known_row rows[2]; /* the last one first: a helper, and what calls it */
};

/* One of the two sets. */
struct side {
    const struct objects *objects;
    const struct frames *frames;        /* by object */
    struct lsdas *lsdas;                /* by object */
    struct debug *debug;                /* by object */
    struct table *names;                /* of defined global symbols … */
    array_of(struct named) definitions; /* … by their number there */
    uint32_t **wanted; /* by object, symbol: that number of an undefined one */
    struct spans *spans; /* by object: its functions; of `before` alone, see around.c */
    struct nearby *nearby;
};

struct pair {
    uint32_t before, after; /* section offsets */
};

/* A stretch of bytes that may be data. */
struct island {
    uint32_t before, after, size; /* section offsets, bytes */
    bool gap;                     /* between functions */
};

/* A function that has kept its bytes. If some instruction takes an address in it, parts of
 * it may be data, whose instructions make no sense. */
struct suspect {
    struct island island;
    struct spot old, new;
};

/* What an offset of `before` is in `after`: anything from `first` to `last`. */
struct image {
    uint32_t before, first, last; /* section offsets */
};
struct images {
    struct image *items; /* sorted by `before` */
    uint32_t count, capacity;
};

/* Where the code of a section of `before` has gone. */
struct section_map {
    bool identity;    /* nothing changed; the rest is unused */
    bool walked;      /* code that has changed; else the rest is unused, too */
    uint32_t size;    /* of the old section */
    uint64_t *starts; /* a bit for each old offset: it is known what starts there … */
    array_of(struct pair) shifts; /* … and is as far away as in the last pair before */
    uint64_t *taken;  /* a bit for each old offset: an instruction takes its address */
    struct images ends; /* of ranges */
    struct images gone; /* no-ops of `after` that would lie there */
    array_of(struct island) islands;
};

/* A reference that was met before the map of its section was complete. */
struct pending {
    struct spot from_before, from_after; /* where the reference is … */
    struct spot before, after;           /* … and what it means */
    uint32_t suspect; /* index + 1 of the suspect that holds it, or 0 */
};

/* A helper's row says where a register was saved, and the row of this site does not say
 * it (yet): compilers may state that late. Another site of the helper must. */
struct claim {
    uint32_t number; /* in verify.claimed */
    struct spot before, after;
};

/* The code of a function symbol. */
struct stretch_of_code {
    struct spot start;
    uint32_t end; /* section offset */
};
/* A function that is cut in two, each way round. */
struct two_parts {
    struct stretch_of_code part, other;
};

/* Instructions of a stretch. */
struct view;
struct views {
    struct view *items;
    uint32_t count, capacity;
};

struct verify {
    struct arena *arena;
    const struct target *target;
    struct decoder *decoder;
    struct row_table *rows;
    uint32_t entry_row; /* the plain row at a helper's entry */
    uint32_t workers;
    struct side before, after;
    uint32_t **after_of;  /* by object, section of `before`: section, or NO_INDEX */
    uint32_t **before_of; /* by object, section of `after`: section, or NO_INDEX */
    struct section_map **maps; /* by object, section of `before` */
    bool maps_complete;
    uint32_t first, end; /* objects of `before` that this worker looks at: objects.c */
    bool knows_tables; /* by somebody who has asked the lifter before */
    struct known_tables tables; /* of `before` */
    struct arena *tables_arena;
    bool padded; /* `after` may have no-ops that `before` has not … */
    /* … because they were dropped: `before` is the result. Rows of what was dropped do
     * not matter, and what debug information said of it, it says of what is behind. */
    bool dropped;
    struct views views; /* room for those of the walk, from one section to the next */
    array_of(struct pending) pending;
    array_of(struct suspect) suspects;
    array_of(struct two_parts) parts; /* sorted; see cold.c */
    struct table *claimed;   /* what helpers' rows say of saved registers … */
    struct table *confirmed; /* … and what some site's rows say as well */
    array_of(struct claim) claims;
    array_of(struct claim) inner; /* calls from inside of helpers: inner.c */
    bool **fixed; /* by object, unit: its names mean its own definitions, see bound.c */
};

const struct section *spot_section(const struct side *side, struct spot spot);

/* "…: text (in the output at …)"; returns false. */
bool verify_fail(const struct verify *verify, struct spot before, struct spot after,
                 struct error *err, const char *format, ...) MO_PRINTF(5, 6);

/* --- map.c: where code has gone --- */
void map_prepare(struct arena *arena, struct section_map *map, uint32_t size);
/* What starts at `before` starts at `after` now. Told in ascending order. */
void map_note(struct arena *arena, struct section_map *map, uint32_t before,
              uint32_t after);
bool map_is_start(const struct section_map *map, uint32_t before);
/* The new offset of the instruction, or byte of what may be data; NO_INDEX: none. */
uint32_t map_start(const struct section_map *map, uint32_t before);
/* An instruction takes an address in its section: data may lie there. */
void map_note_taken(struct section_map *map, const struct insn *insn);
/* An instruction takes an address in [start, end). */
bool map_is_taken(const struct section_map *map, uint32_t start, uint32_t end);

/* --- pairs.c: sections, groups, global names --- */
bool verify_pair_sections(struct verify *verify, struct error *err);
void verify_index_names(struct arena *arena, struct side *side);
/* Helpers may lie there: a code section of `after` that is new, or in a unit of ours.
 */
bool is_helper_section(const struct verify *verify, uint32_t object, uint32_t section);

/* --- refs.c: what references mean --- */
struct meaning {
    bool absolute; /* no symbol, or an absolute one: `addend` is the value */
    bool placed;   /* a place in the set: `object`, `section` and `offset` count */
    bool section_symbol;
    const char *name;   /* of a global symbol, or NULL */
    uint8_t visibility; /* of its definition (STV_…) */
    int64_t addend;     /* bias included */
    uint32_t object, section;
    int64_t offset; /* section offset, addend included */
};
struct meaning meaning_of(const struct side *side, uint32_t object,
                          const struct reloc *reloc, uint8_t bias);
struct meaning meaning_of_place(struct spot spot, int64_t offset);
bool meanings_agree(struct verify *verify, const struct meaning *before,
                    const struct meaning *after, struct spot from_before,
                    struct spot from_after, struct error *err);
/* A position in code of `before` and one in `after` are the same. Maps must be
 * complete. */
bool positions_agree(const struct verify *verify, struct spot before,
                     struct spot after);
/* No-ops were dropped, and the position in `after` lies among some that were right before
 * the one in `before`. Only debug information may speak of those. */
bool gone_agrees(const struct verify *verify, struct spot before, struct spot after);
/* A range ends at the old offset. */
bool is_known_end(const struct section_map *map, uint32_t before);
bool verify_pending(struct verify *verify, struct error *err);
/* The instructions around two positions that lie as far into them, and of which one has
 * become the other; false: there are none. Maps must be complete. */
struct view;
bool views_around(const struct verify *verify, struct spot before, struct spot after,
                  struct view *old, struct view *new);

/* --- insn.c: one instruction --- */
struct view {
    struct spot at;
    struct insn insn;
    const uint8_t *bytes;
    const struct reloc *relocs; /* that lie in its bytes */
    uint32_t reloc_count;
};
/* False when no instruction can be decoded there. */
bool view_at(const struct verify *verify, const struct side *side, struct spot at,
             struct view *out);
/* The same; it may well be the instruction `like`, which needs no decoding then. */
bool view_like(const struct verify *verify, const struct side *side, struct spot at,
               const struct view *like, struct view *out);
/* Its addend counts from the field's own place, so that a bias belongs to it. */
bool is_relative(const struct verify *verify, const struct reloc *reloc);
/* It means nothing. */
bool is_hint(const struct verify *verify, const struct reloc *reloc);
/* It fills the PC-relative field. */
bool is_pc_field(const struct verify *verify, const struct view *view,
                 const struct reloc *reloc);
/* Where a direct call or jump goes, if that is known. */
bool view_target(const struct verify *verify, const struct side *side,
                 const struct view *view, struct spot *out);
/* The same instruction: bytes, relocations, what they mean. `shift` is added to its SP
 * operand; `thunk` says that the call has become a jump. */
bool views_agree(struct verify *verify, const struct view *before,
                 const struct view *after, int32_t shift, bool thunk,
                 struct error *err);

/* --- rows.c: unwind rows --- */
#define ROW_UNREAD (UINT32_MAX - 1) /* there is unwind data, but it cannot be read */
uint32_t row_of_spot(const struct side *side, struct spot spot, const struct fde **fde);
/* Up to where the row is known to be that one: section offset. */
uint32_t row_end(const struct side *side, struct spot spot);
/* The rows of so many bytes are the same; else both are where they are not. */
bool rows_stay(const struct verify *verify, struct spot *before, struct spot *after,
               uint32_t size);
/* The row leaves the return address in the link register. */
bool row_keeps_link(const struct verify *verify, uint32_t row);
/* The row of `before` there; where it leaves the return address in the link register, the
 * next one, in a straight line from here and before any call, may say where it has been
 * stored: with that, or, when the row is stale, that one. */
uint32_t row_with_link_told(const struct verify *verify, struct spot spot, bool stale);
enum save { SAVE_NONE, SAVE_REGISTER, SAVE_STACK };
/* Where a site keeps the link register. */
struct keeping {
    enum save save;
    uint8_t scratch; /* SAVE_REGISTER: in that register */
    bool returns;    /* it holds the return address for certain, whatever rows say */
};
/* `after` is the row `before`, plus where the link register is kept. A row that finds
 * the return address elsewhere may go on to, or, when `returns`, say the new place. */
bool row_is_saved(const struct verify *verify, uint32_t before, uint32_t after,
                  struct keeping keeping);

/* What an unwinder has to know inside a called helper. */
struct inside {
    struct spot before, after; /* where we are */
    uint32_t
        site; /* row of `before` at the outermost site: what it sees of the caller */
    uint32_t now;     /* row of `before` where the payload has got to: the truth */
    uint32_t last;    /* the same one instruction earlier */
    int32_t depth;    /* the helper's CFA is that far below the caller's SP */
    uint64_t written; /* registers that the payload has written since the site */
    uint64_t stated;  /* those that the rows of the helpers around this one find */
    struct keeping keeping; /* the helper keeps the link register itself right now */
    int64_t pushed;         /* bytes that the helper itself has pushed */
};
/* `after` is a plain row that tells the truth, and with it the row of the site does. */
bool row_is_inside(struct verify *verify, const struct inside *inside, uint32_t after);
/* The site's row is as good as the truth for a callee that unwinds through it. */
bool row_is_good_enough(const struct verify *verify, const struct inside *inside);
bool verify_claims(struct verify *verify, struct error *err);

/* --- lsda.c: call-site tables --- */
struct walk;
/* There is a table for this code, but it cannot be read. */
bool lsda_is_unread(const struct side *side, struct spot spot);
/* The tables of two FDEs that correspond say the same; what they say of code that has
 * changed is judged by walk_check_handler(). Not `read`: nobody can tell. */
bool lsdas_agree(struct verify *verify, uint32_t object, const struct fde *before,
                 const struct fde *after, bool *read, struct error *err);
/* The section of `before` holds tables, and all of them can be read. */
bool holds_tables(const struct verify *verify, uint32_t object, uint32_t section);

/* --- frames.c --- */
/* FDE by FDE: personality, LSDA, flags; and the helpers' have none. */
bool verify_frames(struct verify *verify, struct error *err);
/* Every row of a code section that keeps its bytes is what it was: where others jump to
 * its functions' ends, rows may leave out what no longer matters there. */
bool rows_are_unchanged(const struct verify *verify, uint32_t object, uint32_t section);

/* --- walk.c, site.c: code --- */

/* Function symbols, sorted. */
struct range {
    uint32_t section, start, end; /* section offsets */
};
struct ranges {
    struct range *items;
    uint32_t count;
};

/* A code section that has changed. */
struct changed {
    struct spot old, new;
    struct ranges before, after; /* of its own function symbols */
};
struct changes {
    struct changed *items;
    uint32_t count, capacity;
};
void verify_find_changes(struct verify *verify, uint32_t object, struct changes *out);
bool verify_section(struct verify *verify, const struct changed *changed,
                    struct error *err);

/* --- cold.c: functions in two parts, foo and foo.cold --- */
void verify_find_parts(struct verify *verify);
/* The other part of the function that starts here, if it has one. */
bool verify_other_part(const struct verify *verify, struct spot start,
                       struct stretch_of_code *out);

/* --- around.c --- */
void verify_index_functions(struct arena *arena, struct side *side);
/* The largest function symbol around a place of `before`, or NULL. */
const struct symbol *verify_function_around(const struct side *side, struct spot spot);

/* --- bound.c --- */
/* Fills `fixed`, which the others of this file look at. */
void verify_find_fixed(struct verify *verify);
/* The global symbol that a call or jump of `before` names, or NULL. */
const struct symbol *verify_name(const struct verify *verify, const struct view *view);
/* Where it leads, if that is certain whatever the object is linked with. */
bool verify_callee(const struct verify *verify, const struct view *view, struct spot *out);

/* --- blind.c --- */
/* The function that starts there looks neither at its return address nor above it. */
bool verify_is_blind(struct verify *verify, struct spot callee);

/* --- inner.c --- */
/* A call is made from inside of a helper that has been called. */
void verify_note_inner(struct verify *verify, struct spot before, struct spot after);
/* They may all be: for one worker, once the walks of all are done. */
bool verify_inner(struct verify *verify, struct error *err);

/* --- parts.c --- */
/* All code sections that have changed, and what references into them mean. */
bool verify_code(struct verify *verify, struct error *err);
/* For a worker: what it finds is its own. */
struct verify verify_copy(const struct verify *verify);

/* --- objects.c --- */
/* Everything but changed code. Maps must be complete. */
bool verify_objects(struct verify *verify, struct error *err);

/* A helper that has been entered and not left. */
struct entered {
    bool call;              /* else by a jump */
    struct keeping keeping; /* of the link register, around the call */
    uint32_t row;           /* the row of `before` at the payload's first instruction */
    uint32_t caller;        /* what an unwinder has to find at the call: that, or the next
                               one if it is told before its time */
    int32_t shift;          /* bytes that SP is lower for it */
    uint64_t written;       /* registers that the payload has written so far */
    uint32_t outer;         /* the row of `after` at a call from inside a helper */
    bool aligns;            /* it has lowered SP, and not raised it again yet */
    bool link_stored;       /* walk.link_stored, when it was entered */
    bool link_told;         /* the row at the call says where it was stored */
    struct spot resume;     /* behind the call or jump */
};

enum { MOST_ENTERED = 64 };

/* The parallel walk of one range of code. */
struct walk {
    struct verify *verify;
    struct spot before, after; /* next instruction of each */
    struct entered entered[MOST_ENTERED];
    uint32_t depth;
    struct views views;          /* what `before` has in the stretch at hand */
    uint32_t function_start, function_end; /* of the code around, in `before` */
    bool is_known; /* what the function does anywhere in it: */
    uint32_t
        end; /* behind it, also when it is no function: what follows is other code */
    bool is_glued; /* the next instruction must follow at once: */
    struct spot glued;
    bool is_told_known; /* SP tells its frames as well as the frame pointer: */
    bool is_told_by_stack;
    int64_t height;    /* bytes from SP up to the frame pointer there */
    bool below_sp;     /* that code touches memory below SP */
    uint64_t written;  /* registers that it writes anywhere */
    uint32_t last_row; /* of `before`, at the instruction taken last */
    /* `before` has just stored the link register in its frame, and no row says so yet:
     * a compiler that describes calls only states a prologue at its end. */
    bool link_stored;
    bool row_stale; /* SP has moved since that row began */
    /* A helper has overwritten it meanwhile: the output must say where it was stored. */
    bool link_lost;
    uint32_t row; /* what the output's row at the next instruction has been held against */
};
#define NOT_KEPT ((struct keeping){SAVE_NONE, 0, false})
#define walk_fail(walk, err, ...)                                                      \
    verify_fail((walk)->verify, (walk)->before, (walk)->after, (err), __VA_ARGS__)

/* Learns what is not known yet of the function around. */
void walk_know_function(struct walk *walk);

/* Takes the walk over the instruction `view` of `before`, through as many helpers as it
 * needs. */
bool walk_over(struct walk *walk, const struct view *view, struct error *err);

/* --- told.c: rows that are told by another register --- */

/* What has become of a row of `before` here, if it need not be the same: `before` itself, or
 * where `after` is told by SP, the row that says the same. */
uint32_t walk_row_told(struct walk *walk, uint32_t before, uint32_t after);

/* --- inside.c: what must be so inside helpers --- */

/* The innermost and the outermost helper that has been called, or NULL. */
struct entered *walk_open_call(struct walk *walk);
struct entered *walk_first_call(struct walk *walk);
/* Bytes that SP is lower than it was in `before`. */
int32_t walk_shift(const struct walk *walk);
/* The row at the next instruction of the output is what it must be. */
bool walk_check_row(struct walk *walk, struct keeping keeping, struct error *err);
/* The link register holds the return address, as far as rows and the next instructions
 * of `before` can tell. */
bool walk_link_is_return(const struct walk *walk);
/* The next instruction of `before` may be where it is now; `thunk`: as a jump. */
bool walk_check(struct walk *walk, const struct view *before, bool thunk,
                struct error *err);
/* An exception that it throws finds the same handler. */
bool walk_check_handler(struct walk *walk, const struct view *before,
                        const struct view *after, struct error *err);
/* It has been found there, in this row of `before`. */
void walk_note_link(struct walk *walk, const struct view *before, uint32_t row);
/* The walk is behind it now. */
void walk_note_glue(struct walk *walk, const struct view *before);

/* --- kept.c: code that has kept its bytes --- */
/* Takes the walk, outside of helpers, over those of its views from number `view` on that
 * are what they were in every respect; returns the number of the next one. `end`: where
 * both have to end. */
uint32_t walk_over_kept(struct walk *walk, struct section_map *map, uint32_t view,
                        struct pair end);

/* --- islands.c: bytes that may be data --- */
/* It is what it was; its bytes go into the map. */
bool verify_island(struct verify *verify, const struct island *island, struct spot old,
                   struct spot new, struct section_map *map, struct error *err);
/* Whatever an island may refer to is where it finds it. */
bool verify_distance(struct verify *verify, const struct island *island,
                     struct spot old, struct spot new, struct error *err);
/* The same for all islands of a section. */
bool verify_distances(struct verify *verify, struct spot old, struct spot new,
                      struct error *err);

/* --- data.c, symbols.c --- */
/* Asks the lifter for jump tables. Touches nothing that walks touch. */
bool verify_find_tables(struct verify *verify, struct error *err);
bool verify_data(struct verify *verify, struct error *err);
/* Every byte of a code section is what it was. */
bool is_unchanged(const struct verify *verify, uint32_t object, uint32_t section);
/* Then only what its relocations mean is to be compared. */
bool verify_unchanged(struct verify *verify, uint32_t object, uint32_t section,
                      struct error *err);
bool verify_symbols(struct verify *verify, struct error *err);
/* A relocation of one section and its counterpart mean the same. */
bool verify_reloc(struct verify *verify, struct spot old, struct spot new,
                  const struct reloc *a, const struct reloc *b, uint8_t bias,
                  struct error *err);

/* --- debug.c, debug_lines.c --- */
/* The section's positions are judged by verify_debug(). */
bool is_debug_read(const struct verify *verify, uint32_t object, uint32_t section);
bool verify_debug(struct verify *verify, struct error *err);
/* A range that began or ended at an old position may do so at a new one. */
bool debug_positions_agree(const struct verify *verify, struct spot before,
                           struct spot after);
bool verify_debug_lines(struct verify *verify, uint32_t object, struct error *err);

#endif
