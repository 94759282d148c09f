/* SPDX-License-Identifier: MIT
 *
 * Private to the checker of folding (fold*.c).
 */
#ifndef MO_OUTLINER_VERIFY_FOLD_H
#define MO_OUTLINER_VERIFY_FOLD_H

#include "mo/array.h"
#include "mo/fold.h"
#include "mo/table.h"

/* A place in one of the two objects. */
struct fold_place {
    uint32_t section;
    int64_t offset;
};

/* A jump that stands for a function. */
struct fold_jump {
    uint32_t section, offset, size; /* in `after` */
    uint32_t function;              /* of the plan: where it leads */
    uint32_t owner;                 /* of the plan: whose names it has; NO_INDEX so far */
};

struct fold_check {
    struct arena *arena;
    const struct object *before, *after;
    const struct target *target;
    const struct fold_plan *plan;
    const uint32_t *section_at;
    struct row_table *rows;
    struct frames old_frames, new_frames;
    struct lsdas old_lsdas, new_lsdas;
    const struct folded **gone; /* by function: the item, or NULL */
    uint32_t *first_of;         /* by section of `before`: its first function, or NO_INDEX */
    uint32_t *before_of; /* by section of `after`: section of `before`; 0: it is new */
    array_of(struct fold_jump) jumps;
    const bool *compared; /* by function: somebody may have its address (fold_parts.c) */
    struct table *places; /* of the jumps; its numbers are their indices */
    struct error *err;
};

/* "…: text"; returns false. */
bool fold_fail(const struct fold_check *check, uint32_t section, uint64_t offset,
               const char *format, ...) MO_PRINTF(4, 5);

/* fold_jumps.c: reads all jumps. */
bool fold_find_jumps(struct fold_check *check);
/* There is a jump at a place of `after`, it leads to the heir of this function, and it is
 * no other one's. */
bool fold_claim_jump(struct fold_check *check, const struct fold_place *place,
                     uint32_t number, const struct fold_jump **out);

/* The function of the plan around a place of `before`, or NO_INDEX. */
uint32_t fold_function_at(const struct fold_check *check, uint32_t section,
                          int64_t offset);

/* What a relocation means, as far as the object knows: a place, with what belongs to the
 * field taken off. False: an undefined or absolute symbol. */
bool fold_place_of(const struct object *object, const struct section *from,
                   const struct reloc *reloc, struct fold_place *out);

/* It is the field of a direct call or jump. */
bool fold_transfers(const struct object *object, const struct section *from,
                    const struct reloc *reloc);

/* Does the name mean what this object defines, whatever else is linked? */
bool fold_is_bound(const struct object *object, const struct symbol *symbol);

/* fold_code.c: all of one class are the same code. */
bool fold_check_classes(const struct fold_check *check);

/* fold_parts.c: unwind entries and symbols. */
bool fold_check_frames(const struct fold_check *check);
bool fold_check_symbols(struct fold_check *check);

#endif
