/* SPDX-License-Identifier: MIT
 *
 * The lifted program: every code section of a set of objects cut into functions, basic
 * blocks and instructions, with every reference to a code position found. A value: the
 * lifter builds it once, then nobody changes it (liveness fills its traits before the
 * lifter hands it out).
 *
 * Numbering. *code index*: position in program.code; *function index*: in program.functions;
 * *block index*: in program.blocks; *instruction index*: in program.insns. All four arrays
 * are in the order (object, section, offset), so everything of one function, one section
 * or one object is contiguous.
 */
#ifndef MO_PROGRAM_H
#define MO_PROGRAM_H

#include "mo/debug.h"
#include "mo/insn.h"
#include "mo/lsda.h"
#include "mo/object.h"
#include "mo/refusal.h"
#include "mo/target.h"
#include "mo/unwind.h"

enum { NEAR_BYTES = 256 };

/* One executable section of one object. */
struct code {
    uint32_t object;  /* index in the set of objects */
    uint32_t section; /* section index in that object */
    uint32_t first_function, function_count;
    /* By piece of NEAR_BYTES the first function that ends behind its start, for the one
     * around an offset. None: all are searched. */
    const uint32_t *near;
    uint32_t near_count;
    uint32_t align;       /* start alignment that its functions keep (see lift.c) */
    bool helpers;         /* our own helper section: its functions follow no ABI */
    enum refusal refusal; /* not NONE: frozen, has no functions */
    uint64_t why_offset;  /* section offset that the refusal speaks of */
};

/* A range of a code section: one sized FUNC symbol with its aliases, or a gap between two
 * (padding no-ops between functions belong to no function). */
struct function {
    uint32_t code;   /* code index */
    uint32_t symbol; /* symbol index of its name, or NO_INDEX for a gap */
    uint32_t start, end; /* section offsets; end is behind the last instruction */
    uint32_t align;      /* start alignment that it keeps, bytes */
    uint32_t first_insn, insn_count;
    uint32_t first_block, block_count;
    uint32_t fde; /* index in frames of its object, or NO_INDEX */
    const struct lsda *lsda; /* its call-site table; NULL: exceptions pass through */
    uint64_t written;     /* registers that it writes anywhere (-fipa-ra); none of a shared
                             one: who jumps to its middle need not write them */
    uint64_t keeps;       /* registers live at its entry, though no call by the ABI puts
                             anything there: it saves them for callers who count on that
                             (preserve_most and its kin; liveness) */
    uint64_t results;     /* scratch registers that it may hand to its callers, though no
                             function by the ABI does (results.c) */
    bool opaque;          /* may be data: has no instructions, keeps its bytes (islands.c) */
    bool fixed;           /* keeps its distance from the function before it */
    bool shared;          /* other functions (not its cold part) jump to its middle */
    bool red_zone;        /* may keep bytes below SP */
    bool signs;           /* signs its return address somewhere */
    bool has_calls;
    /* Bytes below the entry SP, where calls push (depth.c): the least depth at which it
     * makes a call by the ABI (INT32_MIN: an unknown one), and at which it looks at memory
     * near SP that cannot be told (INT32_MAX - 1: an unknown one); INT32_MAX: nowhere. */
    int32_t call_depth, look_depth;
    bool blind;           /* looks neither at its return address nor above it, and goes
                             on to nobody who does (inner calls) */
    /* A helper without branches, as its callers see it: what it reads of theirs, what it
     * surely overwrites. Nothing is known of other functions. */
    bool is_summarised;
    struct regset reads, overwrites;
    uint64_t clobbers; /* registers that may have other values when it is left */
    enum refusal refusal; /* not NONE: sealed */
    uint64_t why_offset;  /* section offset that the refusal speaks of */
};

struct block {
    uint32_t function;
    uint32_t first_insn, insn_count;
    struct regset live_out;
};

/* Encodings of the entries of a jump table. */
enum table_kind {
    TABLE_RELOC_ABSOLUTE, /* 8-byte entries, a relocation says the position */
    TABLE_RELOC_RELATIVE, /* 4-byte entries, R_*_PC32-like: position - table start */
    TABLE_RAW,            /* no relocations: base + (entry << shift) */
    TABLE_LABELS,         /* no known place: every label of the function whose address lies
                             in data (computed goto); their relocations say the positions */
};

struct jump_table {
    uint32_t insn;    /* instruction index of the indirect jump */
    uint32_t object, section; /* where the table lies (section index; TABLE_LABELS: none) */
    uint32_t offset;  /* section offset of entry 0 */
    uint32_t count;   /* entries */
    uint8_t entry_size; /* 1, 2, 4, 8 */
    uint8_t kind;     /* enum table_kind */
    bool is_signed;   /* TABLE_RAW: entries are sign-extended */
    uint8_t shift;    /* TABLE_RAW */
    uint32_t base;    /* TABLE_RAW: section offset in the code section */
    bool doubtful; /* TABLE_LABELS: the jump may be a tail call, if the stack allows it */
    /* Instructions (indices, or NO_INDEX) whose taking of an inner label it explains. */
    uint32_t explains;
    const uint32_t *targets; /* `count` section offsets in code sections: */
    const uint32_t *codes;   /* their code indices; NULL: all in that of the jump */
};

/* A relocation, anywhere in the set, that means a position inside a code section which its
 * symbol does not already track: through a section symbol, or with an addend that leads
 * away from the symbol's own value. After a rewrite its addend is computed anew. */
struct code_ref {
    uint32_t object, section; /* where the relocation is (section index) */
    uint32_t reloc;           /* its index in that section's relocs */
    uint32_t code;            /* code index that it points into (same object) */
    uint32_t position;        /* section offset that is meant */
};

/* An instruction that the assembler resolved needs no code_ref: insn.target says it all. */

/* A place in data that some relocation refers to. */
struct data_place {
    uint32_t object, section; /* section index */
    uint32_t offset;          /* section offset */
};

/* The jumps that lead to instruction i of a function: from[start[i]] up to
 * from[start[i + 1]], as instruction indices of the program. */
struct edges {
    const uint32_t *start, *from;
};

struct program {
    uint32_t workers; /* as in mo/parallel.h: for what is done function by function */
    const struct objects *objects;
    bool loose; /* members of an archive: a link takes some of them without the others */
    const struct target *target;
    struct row_table *rows;
    const struct frames *frames; /* one for each object */
    const struct lsdas *lsdas;   /* the same */
    const struct debug *debug;   /* the same; NULL with only_tables */
    struct code *code;
    uint32_t code_count;
    uint32_t **code_of; /* by object and section: program_code_of(), which searches
                           while this is NULL */
    struct function *functions;
    uint32_t function_count;
    struct block *blocks;
    uint32_t block_count;
    bool no_liveness; /* live_out is not filled: see lift_options.all_liveness */
    struct insn *insns;
    uint32_t insn_count;
    struct jump_table *tables; /* sorted by insn; one table may serve two jumps */
    uint32_t table_count;
    /* While tables of a function are looked for, each by the light of the same others:
     * its jumps (`start` is NULL else). */
    struct edges edges;
    uint32_t edges_of; /* function index */
    struct data_place *places; /* sorted; of sections that have relocations */
    uint32_t place_count;
    struct code_ref *refs; /* sorted by (object, section, reloc) */
    uint32_t ref_count;
    /* bytes of code by refusal of its section or function; [REFUSAL_NONE] is open code */
    uint64_t refused_bytes[REFUSAL_COUNT];
    uint32_t refused_count[REFUSAL_COUNT];
};

/* Sections of an object that helpers would be of no use to, as somebody knows who knows
 * the link. Both by section index; NULL: there are none. */
struct unused {
    const bool *sections; /* the link will drop them */
    const bool *apart;    /* the link puts them elsewhere than the helpers */
    uint32_t count;
};

struct decoder;
struct table;
struct lift_options {
    const char *const *keep; /* globs of function names to leave alone */
    uint32_t keep_count;
    const char *const *keep_sections; /* globs of section names */
    uint32_t keep_section_count;
    const char *const *keep_files; /* globs of units: "a.o", "libfoo.a(*)" */
    uint32_t keep_file_count;
    const char *const *only; /* if there are any, no other functions are touched */
    uint32_t only_count;
    const char *const *wrap; /* names that the link is given with --wrap */
    uint32_t wrap_count;
    const struct table *hot; /* names of functions that a profile found hot, or NULL */
    bool outline_hot;        /* take sections .text.hot…, too */
    bool loose;          /* see struct program */
    const struct unused *unused; /* one for each of the first `unused_count` objects */
    uint32_t unused_count;
    bool drop_alignment; /* functions keep no alignment beyond what all of theirs have */
    uint32_t workers; /* as in mo/parallel.h */
    struct decoder *decoder; /* that remembers earlier rounds, or NULL */
    bool all_liveness; /* fill live_out where no plan asks for it, too: for dumps */
    bool inner_calls;  /* look for calls that may be made from inside of helpers */
    bool only_tables; /* stop once the jump tables are known: no frames, no blocks */
    /* Read already (only_tables): one for each object, or NULL. */
    const struct frames *frames;
    const struct lsdas *lsdas;
};

/* --- lift.c: objects -> program. Fails only on objects that cannot be trusted. --- */
MO_MUST_CHECK bool program_lift(struct arena *arena, const struct objects *objects,
                                struct row_table *rows, const struct lift_options *options,
                                struct program **out, struct error *err);

/* --- known.c --- */

/* A jump table that outlives its program: all of it but indices of the program. */
struct known_table {
    struct jump_table table;
    uint32_t code; /* section index of the jump, in the object of the table */
};
struct known_tables {
    const struct known_table *items;
    uint32_t count;
};
/* Those of entries that say positions by their distance from something. */
struct known_tables program_tables(struct arena *arena, const struct program *program);

/* --- places.c --- */

/* The next place behind the offset that something refers to, in a data section that has
 * relocations; NO_INDEX: none. */
uint32_t program_next_place(const struct program *program, uint32_t object,
                            uint32_t section, uint32_t offset);

/* --- query.c --- */

/* Functions that follow each other and have about `insns` instructions together: what
 * one worker does in one go. The cut depends on the program alone. */
struct stretch {
    uint32_t first, count; /* function indices */
};
struct stretches {
    struct stretch *items;
    uint32_t count, capacity;
};
struct stretches program_stretches(struct arena *arena, const struct program *program,
                                   uint32_t insns);

const struct object *program_object(const struct program *program, uint32_t code);
const struct section *program_section(const struct program *program, uint32_t code);
/* The code index of a section, or NO_INDEX. */
uint32_t program_code_of(const struct program *program, uint32_t object, uint32_t section);
/* The function at a section offset (gaps too), or NO_INDEX. */
uint32_t program_function_at(const struct program *program, uint32_t code, uint32_t offset);
/* The instruction that starts at this offset, or NO_INDEX. */
uint32_t program_insn_at(const struct program *program, uint32_t code, uint32_t offset);
/* The same when its function is known. */
uint32_t program_insn_in(const struct program *program, uint32_t function, uint32_t offset);
/* The instruction of a function that holds the byte at this offset, or NO_INDEX. */
uint32_t program_insn_around(const struct program *program, uint32_t function,
                             uint32_t offset);
uint32_t program_function_of_insn(const struct program *program, uint32_t insn);
uint32_t program_block_of_insn(const struct program *program, uint32_t insn);
const uint8_t *program_bytes(const struct program *program, uint32_t insn);
const char *program_function_name(const struct program *program, uint32_t function);
/* Relocations of one instruction: index of the first in its section, and how many. */
uint32_t program_relocs(const struct program *program, uint32_t insn, uint32_t *first);
/* The row at an instruction; ROW_NONE without an FDE. */
uint32_t program_row(const struct program *program, uint32_t insn);
/* That row tells the CFA by SP, and SP has moved in the same block since it began: it comes
 * late, and finds no frame. */
bool program_row_is_stale(const struct program *program, uint32_t insn);

/* The jump table of an indirect jump, or NULL. */
const struct jump_table *table_of_insn(const struct program *program, uint32_t insn);
/* Where entry `entry` of a jump table leads: the code index, and the instruction when it
 * lies in the function of the jump; NO_INDEX: in another one (its .cold part). */
uint32_t table_code(const struct program *program, const struct jump_table *table,
                    uint32_t entry);
uint32_t table_insn(const struct program *program, const struct jump_table *table,
                    uint32_t entry);

/* What a relocated field refers to, resolved as far as the object itself can tell. */
struct referent {
    bool local;       /* a position in this object: section and offset count */
    uint32_t section; /* section index */
    int64_t offset;   /* section offset, bias and addend included */
    uint32_t symbol;  /* not local: symbol index … */
    int64_t addend;   /* … and what is added to it, bias included */
};
struct referent program_referent(const struct object *object, const struct reloc *reloc,
                                 uint8_t bias);

/* The instruction that a relocation of a code section lies in; NO_INDEX when the section
 * is none (code NO_INDEX), or its instructions are not known there. */
uint32_t program_insn_of_reloc(const struct program *program, uint32_t code,
                               const struct reloc *reloc);
/* The bias of a relocation in this instruction, as in target.reloc_bias; 0 for NO_INDEX
 * and for kinds that have none. */
uint8_t insn_reloc_bias(const struct program *program, uint32_t insn,
                        const struct reloc *reloc);

/* What an instruction reads and certainly overwrites, calls taken by what may be assumed
 * of their callees (effects.c): a call reads the argument registers, and kills nothing
 * but the link register and what a veneer may clobber on its way. */
void insn_effects(const struct program *program, uint32_t insn, struct regset *uses,
                  struct regset *kills);

/* What an exception finds at an instruction. */
enum guard {
    GUARD_NONE, /* nothing: it passes */
    GUARD_GAP,  /* a gap in the call-site table: usually the end of the program */
    GUARD_PAD,  /* a landing pad, or an action */
};
enum guard insn_guard(const struct function *function, const struct insn *insn);
/* The call site around an instruction of a function with a table; NULL: a gap. */
const struct call_site *insn_call_site(const struct function *function,
                                       const struct insn *insn);

/* Where an exception out of this call lands, as an instruction index, or NO_INDEX. */
uint32_t insn_landing(const struct program *program, const struct function *function,
                      uint32_t insn);
/* It has a call site with instructions, but no call: compiled so that accesses to memory
 * may throw (-fnon-call-exceptions). */
bool function_traps(const struct program *program, const struct function *function);

/* --- edges.c --- */

/* In the arena, or those that the program knows just now. */
struct edges function_edges(struct arena *arena, const struct program *program,
                            const struct function *function);

/* A jump that leaves the function for the entry of another one, as a call by the ABI would. */
bool insn_is_tail_call(const struct program *program, uint32_t insn);
/* The function whose entry a direct call or jump goes to, in any section of the object;
 * NO_INDEX when that is not certain, or elsewhere. */
uint32_t insn_callee(const struct program *program, uint32_t insn);
/* The instruction that a direct call or jump goes to, in any section of the object;
 * NO_INDEX when that is not certain, or elsewhere. */
uint32_t insn_destination(const struct program *program, uint32_t insn);
/* What the names of our helpers begin with, here and in the output of earlier runs. */
#define HELPER_PREFIX "mo_outlined."
/* A function of this name follows conventions of its own: our helpers and LLVM's, cold
 * parts. */
bool name_is_private(const char *name);
/* Calls to it are never moved: it returns twice, or looks at who has called its caller. */
bool name_stays(const char *name);
/* The function follows conventions of its own: an outlined one, a cold part. */
bool function_is_private(const struct program *program, uint32_t function);

/* Registers that may have other values behind an instruction, for a call those that its
 * callee may leave changed: by the ABI, or all of them where it follows no ABI (an
 * outlined function may be the prologue or epilogue of its caller). */
uint64_t insn_may_write(const struct program *program, uint32_t insn);

/* Registers and flags live before instruction `insn` of its block, by walking back from
 * the block's end; REGSET_ALL when that is more than `limit` instructions away. */
struct regset program_live_before(const struct program *program, uint32_t insn,
                                  uint32_t limit);

#endif
