/* SPDX-License-Identifier: MIT
 *
 * Private to this folder: what its files share. The machine's facts are in target.c.
 */
#ifndef MO_TARGETS_X86_64_H
#define MO_TARGETS_X86_64_H

#include "mo/target.h"

#include <Zydis/Zydis.h>

/* Bits of the register sets, see mo/insn.h. */
enum {
    BIT_RAX = 0,
    BIT_RCX = 1,
    BIT_RDX = 2,
    BIT_RBX = 3,
    BIT_RSP = 4,
    BIT_RBP = 5,
    BIT_RSI = 6,
    BIT_RDI = 7,
    BIT_R8 = 8,
    BIT_R10 = 10,
    BIT_R11 = 11,
    BIT_K0 = 16,
    BIT_X87 = 24,
    BIT_STATE = 25,
    BIT_ZMM0 = 32,
};

#define BIT(number)   (UINT64_C(1) << (number))
#define ALL_MASKS     (UINT64_C(0xff) << BIT_K0)
#define ALL_VECTORS   (UINT64_C(0xffffffff) << BIT_ZMM0)
#define FIRST_VECTORS (UINT64_C(0xffff) << BIT_ZMM0)

enum {
    FLAG_CF = 1,
    FLAG_PF = 2,
    FLAG_AF = 4,
    FLAG_ZF = 8,
    FLAG_SF = 16,
    FLAG_DF = 32,
    FLAG_OF = 64,
    ALL_FLAGS = 127
};

/* Register numbers of ModRM and SIB bytes, without their REX bits. */
enum { RM_SIB = 4, RM_RIP = 5, SIB_NONE = 4 };

/* What Zydis says of one instruction; the operands only where a caller asked for them.
 */
struct parsed {
    ZydisDecodedInstruction insn;
    ZydisDecoderContext context;
};

/* --- decode.c --- */

bool x86_64_decode(const uint8_t *bytes, uint64_t size, uint32_t offset,
                   struct insn *out);
/* False unless the bytes start with an instruction. */
bool x86_64_parse(const uint8_t *bytes, uint64_t size, struct parsed *out);
bool x86_64_operands(const struct parsed *parsed,
                     ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT]);
/* The memory operand is disp32(%rip). */
bool x86_64_is_rip_memory(const ZydisDecodedInstruction *insn);

/* --- stack.c --- */

/* Adds the traits that have to do with the stack pointer. Needs flow, uses and defs. */
void x86_64_judge_stack(struct insn *out, const ZydisDecodedInstruction *insn,
                        const ZydisDecodedOperand *operands);

/* --- faults.c --- */

/* It may fault by what it is given (INSN_FAULTS). */
bool x86_64_may_fault(const ZydisDecodedInstruction *insn,
                      const ZydisDecodedOperand *operands);

/* --- relocs.c --- */

const struct reloc_kind *x86_64_reloc_kind(uint32_t type);
uint8_t x86_64_reloc_bias(const struct insn *insn, uint64_t reloc_offset);

/* --- encode.c --- */

bool x86_64_print(const uint8_t *bytes, uint8_t length, uint32_t offset, char *out,
                  size_t size);
bool x86_64_canonical(const uint8_t *bytes, uint8_t length, struct code_bytes *out);
bool x86_64_retarget(const uint8_t *bytes, uint8_t length, int64_t displacement,
                     uint8_t *out);
bool x86_64_narrow(const uint8_t *bytes, uint8_t length, struct code_bytes *out);
bool x86_64_widen(const uint8_t *bytes, uint8_t length, struct code_bytes *out);
bool x86_64_relocatable(const uint8_t *bytes, uint8_t length, struct code_bytes *out);
bool x86_64_shift_sp(const uint8_t *bytes, uint8_t length, int32_t delta,
                     struct code_bytes *out);
bool x86_64_call_to_jump(const uint8_t *bytes, uint8_t length, struct code_bytes *out);
uint32_t x86_64_call_reloc_to_jump(uint32_t type);
void x86_64_emit_call(struct code_bytes *out);
void x86_64_emit_jump(struct code_bytes *out);
void x86_64_emit_return(struct code_bytes *out);
void x86_64_emit_align(struct code_bytes *before, struct code_bytes *after);
void x86_64_emit_padding(uint8_t *at, uint32_t size);

/* --- tables.c --- */

bool x86_64_find_table(struct arena *arena, const struct program *program,
                       uint32_t insn, struct jump_table *out);

#endif
