/* SPDX-License-Identifier: MIT
 *
 * Private to key.c and key_referents.c: one instruction and what is around it.
 */
#ifndef MO_OUTLINER_KEY_H
#define MO_OUTLINER_KEY_H

#include "outliner/choose/choose.h"

struct view {
    const struct program *program;
    const struct object *object;
    const struct section *section;
    uint32_t code; /* code index */
    const struct insn *insn;
    uint32_t index; /* instruction index */
};

struct view view_of(const struct program *program, uint32_t code, uint32_t insn);
const uint8_t *view_bytes(const struct view *view);

/* How many bits a relocation fills. */
uint32_t mask_bits(uint64_t mask);

/* What a relocation of the instruction refers to, bias included. */
struct referent view_referent(const struct view *view, const struct reloc *reloc);

/* A helper may refer to that position of the same object. */
bool view_stays_found(const struct view *view, uint32_t section, int64_t offset);
bool section_is_mergeable(const struct section *section);

/* The mergeable contents at an offset, terminator included; size 0 if there are none.
 */
struct bytes section_contents(const struct section *section, int64_t offset);
bool reloc_is_local(const struct object *object, const struct reloc *reloc);

/* Number of the instruction's relocations, and the first one's index. */
uint32_t view_relocs(const struct view *view, uint32_t *first);

/* The first, the second half of a pair that refers to mergeable contents. */
bool insn_heads_pair(const struct program *program, uint32_t code, uint32_t insn);
bool insn_ends_pair(const struct program *program, uint32_t code, uint32_t insn);

#endif
