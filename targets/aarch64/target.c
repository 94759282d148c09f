/* SPDX-License-Identifier: MIT
 *
 * AArch64 Linux (AAPCS64, LP64): the table of facts, and its functions.
 *
 * Registers at a call. What a call by the ABI reads is bounded by the argument
 * registers, SP, and x8 (address of a returned structure); x18 may be a shadow call
 * stack, x29 is what a stack walker follows. A call leaves undefined x0-x18, x30,
 * v0-v7, v16-v31 and the upper halves of v8-v15; the sets hold whole registers, and a
 * set of what is certainly gone must not name registers whose lower half is kept.
 *
 * x16 and x17 belong to the linker between a branch and its target. x18 is the
 * platform's. DWARF numbers: "DWARF for the Arm 64-bit Architecture" (aadwarf64),
 * section 4.1.
 */
#include "target.h"

#include <elf.h>

#define X(n)        (1ull << (n))
#define V(n)        (1ull << (32 + (n)))
#define RANGE(a, b) ((~0ull >> (63 - ((b) - (a)))) << (a)) /* bits a to b */

#define X_ARGUMENTS RANGE(0, 8)
#define V_ARGUMENTS RANGE(32, 39)
#define X_SAVED     RANGE(19, 29)
#define V_SAVED     RANGE(40, 47)
#define SP_BIT      X(31)

/* In DWARF x0-x30 and sp have our numbers; v0-v31 are 64-95. */
static uint8_t register_of_dwarf(uint32_t column)
{
    if (column < 32)
        return (uint8_t)column;
    if (column >= 64 && column < 96)
        return (uint8_t)(column - 32);
    return 0xff;
}

static uint32_t dwarf_of_register(uint8_t reg)
{
    if (reg < 32)
        return reg;
    return reg < 64 ? reg + 32u : NO_INDEX;
}

/* Fields count from the instruction's own start: S + A is the position. */
static uint8_t reloc_bias(const struct insn *insn, uint64_t reloc_offset)
{
    (void)insn, (void)reloc_offset;
    return 0;
}

const struct target target_aarch64 = {
    .name = "aarch64",
    .machine = EM_AARCH64,

    .code_align = 4,
    .function_align = 4,
    .call_size = 4,
    .jump_size = 4,
    .return_size = 4,
    .call_pushes = 0,
    .save_register_size = 8,
    .save_stack_size = 8,
    .save_stack_shift = 16,
    .code_mark = "$x",

    .link_register = 30,
    .stack_register = 31,
    .frame_register = 29,
    .veneer_registers = X(16) | X(17),
    .scratch_registers = RANGE(0, 15),
    .call_uses = {X_ARGUMENTS | V_ARGUMENTS | X(18) | X(29) | SP_BIT, 0                                   },
    .call_kills = {RANGE(0,                                            18) | X(30) | V_ARGUMENTS | RANGE(48, 63), AARCH64_FLAGS},
    .return_uses = {X_ARGUMENTS | V_ARGUMENTS | X(18) | X_SAVED | V_SAVED | X(30) |
                        SP_BIT,                                     0                                                                        },
    .callee_saved = {X_SAVED | V_SAVED | SP_BIT,             0},

    .dwarf_return_column = 30,
    .dwarf_stack_column = 31,
    .register_of_dwarf = register_of_dwarf,
    .dwarf_of_register = dwarf_of_register,

    .decode = aarch64_decode,
    .reloc_kind = aarch64_reloc_kind,
    .reloc_bias = reloc_bias,

    .canonical = aarch64_canonical,
    .retarget = aarch64_retarget,
    .widen = aarch64_widen,
    .relocatable = aarch64_relocatable,
    .shift_sp = aarch64_shift_sp,
    .call_to_jump = aarch64_call_to_jump,
    .call_reloc_to_jump = aarch64_call_reloc_to_jump,

    .emit_call = aarch64_emit_call,
    .emit_jump = aarch64_emit_jump,
    .emit_return = aarch64_emit_return,
    .emit_save_register = aarch64_emit_save_register,
    .emit_save_stack = aarch64_emit_save_stack,
    .emit_padding = aarch64_emit_padding,

    .find_table = aarch64_find_table,
};
