/* SPDX-License-Identifier: MIT
 *
 * What the files of this target share: the functions that its table is made of.
 */
#ifndef MO_AARCH64_TARGET_H
#define MO_AARCH64_TARGET_H

#include "mo/target.h"

enum aarch64_flag {
    AARCH64_N = 1,
    AARCH64_Z = 2,
    AARCH64_C = 4,
    AARCH64_V = 8,
    AARCH64_FLAGS = 15,
};

/* decode.c */
bool aarch64_decode(const uint8_t *bytes, uint64_t size, uint32_t offset,
                    struct insn *out);

/* relocs.c */
const struct reloc_kind *aarch64_reloc_kind(uint32_t type);

/* encode.c */
bool aarch64_canonical(const uint8_t *bytes, uint8_t length, struct code_bytes *out);
bool aarch64_retarget(const uint8_t *bytes, uint8_t length, int64_t displacement,
                      uint8_t *out);
bool aarch64_widen(const uint8_t *bytes, uint8_t length, struct code_bytes *out);
bool aarch64_relocatable(const uint8_t *bytes, uint8_t length, struct code_bytes *out);
bool aarch64_shift_sp(const uint8_t *bytes, uint8_t length, int32_t delta,
                      struct code_bytes *out);
bool aarch64_call_to_jump(const uint8_t *bytes, uint8_t length, struct code_bytes *out);
uint32_t aarch64_call_reloc_to_jump(uint32_t type);
void aarch64_emit_call(struct code_bytes *out);
void aarch64_emit_jump(struct code_bytes *out);
void aarch64_emit_return(struct code_bytes *out);
void aarch64_emit_save_register(uint8_t reg, struct code_bytes *before,
                                struct code_bytes *after);
void aarch64_emit_save_stack(struct code_bytes *before, struct code_bytes *after);
void aarch64_emit_padding(uint8_t *at, uint32_t size);

/* tables.c */
bool aarch64_find_table(struct arena *arena, const struct program *program,
                        uint32_t insn, struct jump_table *out);

#endif
