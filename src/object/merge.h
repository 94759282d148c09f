/* SPDX-License-Identifier: MIT
 *
 * What the parts of the merger share. The same machinery merges many objects and copies
 * one without some of its sections: first somebody says which sections vanish, then
 * merge_apply() builds what is left.
 */
#ifndef MO_OBJECT_MERGE_H
#define MO_OBJECT_MERGE_H

#include "frames.h"
#include "mo/object.h"
#include "mo/table.h"

/* An .eh_frame section from which records have been cut. */
struct frame_cut {
    struct section section; /* contents and relocations, symbols still of the input */
    const uint32_t *old_at; /* starts of the records, with the end as the last one */
    const uint32_t *new_at; /* where they are now, or where the next kept one is */
    uint32_t count;
};

/* How one input goes into the result. */
struct input {
    const struct object *object;
    bool *dropped;           /* by section */
    struct frame_cut **cuts; /* by section; NULL: nothing was cut */
    uint32_t *section_at;    /* by section: index in the result, 0 if dropped */
    uint32_t *symbol_at;     /* by symbol: the same */
    uint32_t first_unit;
};

struct merge {
    struct arena *arena; /* of the result */
    struct arena *stage;
    struct error *err;
    const char *name; /* of the result */
    bool by_name;     /* global symbols of equal name become one */
    struct input *inputs;
    uint32_t input_count;

    struct section *sections; /* of the result, with room for the made ones */
    uint32_t section_count;
    uint32_t section_end; /* before the made sections */
    struct symbol *symbols;
    uint32_t symbol_count;
};

/* Sections that the merger makes itself: the two notes. */
enum { MADE_SECTIONS = 2 };

void merge_start(struct merge *merge, const struct objects *objects);

/* merge_groups.c: marks what vanishes because an earlier input has it already. */
void merge_drop_copies(struct merge *merge);
/* What follows a dropped section: sections that are linked to it. */
void merge_drop_linked(struct merge *merge);
/* No member of the group is left. */
bool merge_group_is_gone(const struct input *input, const struct group *group);
bool merge_build_groups(struct merge *merge, struct object *out);

/* merge_frames.c: cuts the FDEs of dropped code. */
bool merge_cut_frames(struct merge *merge);
/* Offset in the result's section of an offset in the input's. */
uint64_t merge_offset(const struct input *input, uint32_t section, uint64_t offset);

/* merge_symbols.c: sets symbol_at of all inputs and the result's symbols. */
bool merge_symbols(struct merge *merge);

/* merge_relocs.c: the relocations of one section, and its contents where they change.
 */
bool merge_relocs(struct merge *merge, const struct input *input, uint32_t section,
                  struct section *out);

/* merge.c: what is left after dropping, as one object. `made` are the sections to add.
 */
bool merge_apply(struct merge *merge, const struct section *made, uint32_t made_count,
                 const struct object **out);

#endif
