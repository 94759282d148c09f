/* SPDX-License-Identifier: MIT
 *
 * Private to the lifter (lift.c and the files it names): the program while it is built.
 */
#ifndef MO_OUTLINER_LIFT_H
#define MO_OUTLINER_LIFT_H

#include "mo/array.h"
#include "mo/decoder.h"
#include "mo/parallel.h"
#include "mo/program.h"

struct lift {
    struct arena *arena; /* lifetime of the program */
    const struct lift_options *options;
    struct program *program; /* arrays are in place once cut and decoded */
    array_of(struct jump_table) tables;
    array_of(struct code_ref) refs;
    array_of(struct data_place) places;
    /* For each instruction of `program` that takes the address of an inner label: the
     * label (section offset) is insn.target; whether a table explains it is found
     * later. */
    array_of(uint32_t) address_takers; /* instruction indices */
    /* Labels that something else than a branch refers to. */
    array_of(struct taken_label) taken;
    /* Functions of which an instruction takes an inner label, nobody knows what for. */
    array_of(uint32_t) suspects;
    /* Those that tables of labels hold, for computed goto. */
    array_of(struct label) labels;
};

/* A range of a code section that a symbol describes. */
struct span {
    uint32_t start, end, symbol;
    enum refusal refusal;
};
struct span_list {
    const struct span *items; /* sorted, disjoint */
    uint32_t count;
};

struct label {
    uint32_t function, position; /* index, section offset */
    uint32_t section, offset;    /* of its object: the entry that holds its address */
};

struct taken_label {
    uint32_t code, position;         /* code index, section offset */
    uint32_t object, section, reloc; /* the relocation that takes it; section NO_INDEX:
                                        an instruction without one */
    uint32_t insn;                   /* that instruction, or NO_INDEX */
    bool exact;                      /* the relocation needs no bias */
};

/* Each stage, in order. None fails: what is not understood is refused. */
void lift_sections(struct lift *lift);  /* sections.c: which sections are code */
void lift_functions(struct lift *lift); /* functions.c, cut.c: cut, decode */
void lift_operands(struct lift *lift);  /* operands.c: relocations of instructions */
void lift_positions(struct lift *lift); /* leads.c, positions.c: references into code */
void lift_outside(struct lift *lift);   /* outside.c: from other objects */
void lift_debug(struct lift *lift);     /* debug.c: debug information */
void lift_landings(struct lift *lift);  /* landings.c: call-site tables */
void lift_places(struct lift *lift);    /* places.c: where tables end at the latest */
void lift_switches(struct lift *lift);  /* switches.c: jump tables; labels left over */
void lift_gotos(struct lift *lift);     /* gotos.c: computed goto */
void lift_covered(struct lift *lift);   /* covered.c: functions that may hold data */
void lift_islands(struct lift *lift);   /* islands.c: data among code */
void lift_blocks(struct lift *lift);    /* blocks.c: leaders, basic blocks */
void lift_frames(struct lift *lift);    /* frames.c: an FDE for each function */
void lift_depth(struct lift *lift);     /* depth.c: stack depth, red zone, witnesses */
void lift_red_zones(struct program *program); /* red_zone.c, zones.c: … of parts; spread */
void lift_inner_calls(struct program *program); /* inner_calls.c, blind.c: callees that
                                                   see nothing of the caller's frame */
void lift_liveness(struct lift *lift);        /* liveness.c */

/* Instructions that make a part for a worker: about a millisecond. */
enum { PART_INSNS = 16 * 1024 };

/* frame_helpers.c: LLVM's helpers that move SP for their callers. */
bool name_moves_frame(const char *name);
/* A direct call or jump to one; `body`: where it begins, NO_INDEX: not among the inputs. */
bool insn_moves_frame(const struct program *program, uint32_t insn, uint32_t *body);

/* Some instruction of the function has one of the traits. */
bool function_has_traits(const struct program *program, uint32_t function,
                         uint32_t traits);

/* special.c: what is under rules of its own in a function whose leaders are known. */
void lift_special(struct lift *lift, uint32_t function);

/* The most blocks that one of these functions has. */
uint32_t lift_most_blocks(const struct program *program, struct stretch stretch);

/* Refuse, unless it is refused already: the first reason found is the one reported. */
void lift_freeze(struct lift *lift, uint32_t code, enum refusal why, uint64_t offset);
void lift_seal(struct lift *lift, uint32_t function, enum refusal why, uint64_t offset);
/* Seals it, and forgets its instructions: data may lie among them. */
void lift_make_opaque(struct lift *lift, uint32_t function, enum refusal why,
                      uint64_t offset);

/* cut.c: the functions and instructions of all sections, `lists` by code index. */
void lift_cut(struct lift *lift, const struct span_list *lists);

/* Shell-style match against any of the globs. */
bool lift_matches(const char *const *globs, uint32_t count, const char *name);

/* Successors of a block inside its own function, as block indices: at most two, plus
 * the targets of its jump table. */
struct successors {
    uint32_t direct[2]; /* NO_INDEX: none */
    const struct jump_table *table;
    bool leaves; /* control may also go where the function cannot see */
};
struct successors block_successors(const struct program *program, uint32_t block);

/* The label may be an entry of a table of labels: it is kept for lift_gotos(). */
bool label_is_goto(struct lift *lift, uint32_t function,
                   const struct taken_label *label);

/* Some entry leads to another part of the function (.cold). */
bool table_leaves(const struct program *program, const struct jump_table *table);

#endif
