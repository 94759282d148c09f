/* SPDX-License-Identifier: MIT
 *
 * Private to leads.c and positions.c: references to code positions, one by one.
 */
#ifndef MO_OUTLINER_LEADS_H
#define MO_OUTLINER_LEADS_H

#include "outliner/lift/lift.h"

/* One relocation that leads into a code section. */
struct lead {
    struct lift *lift;
    uint32_t object, section, reloc; /* where it is */
    const struct reloc *at;
    const struct reloc_kind *kind;
    uint32_t insn;    /* the instruction that holds it, or NO_INDEX */
    uint32_t code;    /* code index it leads into */
    int64_t position; /* section offset there */
    bool exact;       /* that is certain, whatever the relocation's bias */
};

/* It has a PC-relative field that means something. */
bool insn_refers(const struct insn *insn);
/* Settles a branch to an instruction of its own function; touches nothing else. False:
 * it is something else, for … */
bool lead_settle_branch(struct program *program, uint32_t insn);
/* … any resolved PC-relative field. */
void lead_note_resolved(struct lift *lift, uint32_t insn);

/* What a relocation needs. */
enum lead_sort {
    LEAD_PLAIN,   /* nothing: it leads elsewhere, or its symbol tracks the position */
    LEAD_IN_CODE, /* it lies in an instruction */
    LEAD_IN_DATA,
    LEAD_OUTSIDE, /* it leads to no place in the section */
};
/* Finds out, and where it leads. Changes nothing but the lead. */
enum lead_sort lead_sort_of(struct lead *lead);
void lead_note(struct lead *lead, enum lead_sort sort);
/* One in code that was not decoded, or in an opaque function. */
void lead_note_frozen(struct lead *lead);

#endif
