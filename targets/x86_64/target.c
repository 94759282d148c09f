/* SPDX-License-Identifier: MIT
 *
 * x86-64 as the generic code sees it. System V psABI for AMD64: registers across calls
 * in figure 3.4, DWARF numbers in figure 3.36.
 *
 * A call takes its return address from the stack, so nothing is needed to keep it; what
 * a helper costs instead is that everything it addresses through rsp moves by 8 bytes.
 * Nothing survives or dies on the way to a helper: linkers put no veneers.
 */
#include "x86_64.h"

#include <elf.h>

/* rbx, rbp, r12 to r15 */
#define CALLEE_SAVED (BIT(BIT_RBX) | BIT(BIT_RBP) | UINT64_C(0xf000))

/* rdi, rsi, rdx, rcx, r8, r9; al says how many vector registers a variadic call uses,
 * r10 is the static chain, and r11 is what lazy binding and thunks of compilers may
 * take. */
#define ARGUMENTS                                                                      \
    (BIT(BIT_RDI) | BIT(BIT_RSI) | BIT(BIT_RDX) | BIT(BIT_RCX) | UINT64_C(0x0f00) |    \
     BIT(BIT_RAX) | (UINT64_C(0xff) << BIT_ZMM0))

/* rax, rcx, rdx, rsi, rdi, r8 to r11 and all vectors, masks and x87 registers. The
 * control part of mxcsr is callee-saved, so "other state" is not among them. */
#define CALL_KILLS                                                                     \
    (BIT(BIT_RAX) | BIT(BIT_RCX) | BIT(BIT_RDX) | BIT(BIT_RSI) | BIT(BIT_RDI) |        \
     UINT64_C(0x0f00) | ALL_MASKS | BIT(BIT_X87) | ALL_VECTORS)

#define RESULTS (BIT(BIT_RAX) | BIT(BIT_RDX) | BIT(BIT_X87) | (UINT64_C(3) << BIT_ZMM0))

enum {
    DWARF_RETURN = 16,
    DWARF_XMM0 = 17,
    DWARF_ST0 = 33,
    DWARF_MM7 = 48,
    DWARF_FS_BASE = 58,
    DWARF_GS_BASE = 59,
    DWARF_MXCSR = 64,
    DWARF_XMM16 = 67,
    DWARF_XMM31 = 82,
    DWARF_K0 = 118,
    DWARF_K7 = 125,
    NO_REGISTER = 0xff
};

/* DWARF column 0 to 7 -> hardware number. The permutation is its own inverse. */
static const uint8_t low_registers[8] = {BIT_RAX, BIT_RDX, BIT_RCX, BIT_RBX,
                                         BIT_RSI, BIT_RDI, BIT_RBP, BIT_RSP};
static const uint8_t low_columns[8] = {0, 2, 1, 3, 7, 6, 4, 5};

static uint8_t register_of_dwarf(uint32_t column)
{
    if (column < 8)
        return low_registers[column];
    if (column < DWARF_RETURN)
        return (uint8_t)column;
    if (column >= DWARF_XMM0 && column < DWARF_ST0)
        return (uint8_t)(BIT_ZMM0 + (column - DWARF_XMM0));
    if (column >= DWARF_ST0 && column <= DWARF_MM7)
        return BIT_X87;
    if (column >= DWARF_XMM16 && column <= DWARF_XMM31)
        return (uint8_t)(BIT_ZMM0 + 16 + (column - DWARF_XMM16));
    if (column >= DWARF_K0 && column <= DWARF_K7)
        return (uint8_t)(BIT_K0 + (column - DWARF_K0));
    if (column == DWARF_FS_BASE || column == DWARF_GS_BASE || column == DWARF_MXCSR)
        return BIT_STATE;
    return NO_REGISTER;
}

static uint32_t dwarf_of_register(uint8_t reg)
{
    if (reg < 8)
        return low_columns[reg];
    if (reg < 16)
        return reg;
    if (reg >= BIT_K0 && reg < BIT_K0 + 8)
        return (uint32_t)DWARF_K0 + (reg - BIT_K0);
    if (reg >= BIT_ZMM0 && reg < BIT_ZMM0 + 16)
        return (uint32_t)DWARF_XMM0 + (reg - BIT_ZMM0);
    if (reg >= BIT_ZMM0 + 16 && reg < BIT_ZMM0 + 32)
        return (uint32_t)(DWARF_XMM16 - 16) + (uint32_t)(reg - BIT_ZMM0);
    return NO_INDEX;
}

const struct target target_x86_64 = {
    .name = "x86-64",
    .machine = EM_X86_64,
    .code_align = 1,
    .function_align = 2, /* pointers to C++ member functions keep a flag in bit 0 */
    .call_size = 5,
    .jump_size = 5,
    .return_size = 1,
    .call_pushes = 8,
    .align_shift = 8,
    .link_register = NO_REGISTER,
    .stack_register = BIT_RSP,
    .frame_register = BIT_RBP,
    .call_uses = {ARGUMENTS | BIT(BIT_RSP) | BIT(BIT_STATE),              FLAG_DF             },
    .call_kills = {CALL_KILLS,                                             ALL_FLAGS & ~FLAG_DF},
    .return_uses = {RESULTS | CALLEE_SAVED | BIT(BIT_RSP) | BIT(BIT_STATE), FLAG_DF             },
    .callee_saved = {CALLEE_SAVED | BIT(BIT_RSP),                            0                   },
    .dwarf_return_column = DWARF_RETURN,
    .dwarf_stack_column = 7,
    .register_of_dwarf = register_of_dwarf,
    .dwarf_of_register = dwarf_of_register,
    .decode = x86_64_decode,
    .reloc_kind = x86_64_reloc_kind,
    .reloc_bias = x86_64_reloc_bias,
    .canonical = x86_64_canonical,
    .retarget = x86_64_retarget,
    .widen = x86_64_widen,
    .narrow = x86_64_narrow,
    .relocatable = x86_64_relocatable,
    .shift_sp = x86_64_shift_sp,
    .call_to_jump = x86_64_call_to_jump,
    .call_reloc_to_jump = x86_64_call_reloc_to_jump,
    .emit_call = x86_64_emit_call,
    .emit_jump = x86_64_emit_jump,
    .emit_return = x86_64_emit_return,
    .emit_align = x86_64_emit_align,
    .emit_padding = x86_64_emit_padding,
    .find_table = x86_64_find_table,
    .print = x86_64_print,
};
