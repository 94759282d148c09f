/* SPDX-License-Identifier: MIT
 *
 * Private to the folder: the sections that may take part, and what refers to them.
 */
#ifndef MO_OUTLINER_FOLD_H
#define MO_OUTLINER_FOLD_H

#include "mo/array.h"
#include "mo/fold.h"

struct foldable {
    uint32_t section, start, end; /* section index, section offsets */
    uint32_t function;       /* function index */
    const struct fde *fde;   /* or NULL */
    const struct lsda *lsda; /* or NULL */
    uint32_t class;          /* equal numbers: the same code */
    bool alone;   /* all that the section holds */
    bool outside; /* a global name is on it: other objects may take its address */
    bool taken;   /* something among the inputs takes it */
    bool unsure;  /* something refers to it in a way that only an alias serves */
    bool fixed;   /* it cannot go */
};

struct folder {
    struct arena *arena;
    const struct program *program;
    uint32_t number; /* of the object in the program */
    const struct object *object;
    const struct fold_options *options;
    array_of(struct foldable) candidates; /* sorted by place */
    uint32_t *first_of; /* by section: index of its first candidate, or NO_INDEX */
};

/* The candidate around a place, or NO_INDEX. */
uint32_t fold_at(const struct folder *folder, uint32_t section, int64_t position);

/* Where a relocation leads, as far as folding goes. */
struct lead {
    uint32_t section; /* section index; SECTION_UNDEFINED: nowhere in this object */
    int64_t position; /* section offset there */
    bool exact;       /* the position is certain */
    bool transfers;   /* a direct call or jump */
};
struct lead fold_lead(const struct folder *folder, uint32_t section, uint32_t reloc);

/* A section about code, which refers to it without taking addresses: unwind entries,
 * debug information. */
bool fold_is_table(const struct section *section);

/* --- eligible.c --- */
void fold_find(struct folder *folder);

/* --- taken.c --- */
void fold_find_taken(struct folder *folder);

/* --- classes.c --- */
void fold_classify(struct folder *folder);

/* --- fold.c --- */

/* Bytes of the jump that stands for a function of this candidate's class: what marks
 * its entry as a landing place, and the jump. False: there can be none. */
bool fold_jump(const struct folder *folder, const struct foldable *candidate,
               struct code_bytes *out);

#endif
