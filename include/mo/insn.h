/* SPDX-License-Identifier: MIT
 *
 * One machine instruction, in a vocabulary that all targets share. Distilled from the
 * target's decoder and kept for every instruction of the program, so it is small: its
 * bytes stay in the section, and everything that can be decoded again is not stored.
 *
 * Registers are bits of a 64-bit set, in the target's own numbering:
 *   AArch64  0-30 x0..x30, 31 sp, 32-63 v0..v31; flags N Z C V = bits 0-3
 *   x86-64   0-15 rax rcx rdx rbx rsp rbp rsi rdi r8..r15 (hardware order), 16-23 k0..k7,
 *            24 x87/MMX state, 25 other state (mxcsr, segment bases), 32-63 zmm0..zmm31;
 *            flags CF PF AF ZF SF DF OF = bits 0-6
 * A partial write (low byte, vector lane, merging) reads the register as well. Writing w0
 * or eax writes the whole register (zero extension) and does not read it.
 */
#ifndef MO_INSN_H
#define MO_INSN_H

#include "mo/base.h"

struct regset {
    uint64_t regs;
    uint8_t flags;
};

/* The register, by its bit number, is in the set; no register has a number from 64 on. */
static inline bool has_register(uint64_t regs, uint8_t reg)
{
    return reg < 64 && (regs >> reg & 1) != 0;
}

/* The most bytes that an access to memory has: 8 through general registers (bits 0-15). */
static inline int64_t access_reach(uint64_t touched)
{
    return touched >> 16 ? 64 : 8;
}

#define REGSET_ALL ((struct regset){UINT64_MAX, UINT8_MAX})

enum { MOST_INSN_BYTES = 15 }; /* on any machine */

/* Control flow: what comes after this instruction. */
enum flow {
    FLOW_NEXT,          /* the next instruction */
    FLOW_JUMP,          /* a direct jump */
    FLOW_BRANCH,        /* a direct jump or the next instruction */
    FLOW_JUMP_INDIRECT, /* through a register or memory: tail call or jump table */
    FLOW_CALL,          /* a direct call, then (usually) the next instruction */
    FLOW_CALL_INDIRECT, /* the same through a register or memory */
    FLOW_RETURN,
    FLOW_STOP,          /* never goes on: ud2, udf */
    FLOW_COUNT
};

/* Facts about an instruction that the generic code needs. sp_value is the number that goes
 * with whichever of the SP traits is set. At most one of SP_ADJUST, SP_FROM_FRAME and
 * SP_OPAQUE is set. An instruction that adjusts SP and addresses memory through it (push,
 * `stp …, [sp, #-16]!`) has SP_ADJUST alone. */
enum insn_trait {
    INSN_RELOCATED = 1u << 0,     /* a relocation lies in its bytes (set by the lifter) */
    INSN_PC_RELATIVE = 1u << 1,   /* has a PC-relative field: branch, adr, literal, rip */
    INSN_SP_MEMORY = 1u << 2,     /* memory at [SP + sp_value (+ index)]; can be shifted */
    INSN_SP_COPY = 1u << 3,       /* other register = SP + sp_value; can be shifted */
    INSN_SP_ADJUST = 1u << 4,     /* SP += sp_value, bytes */
    INSN_SP_FROM_FRAME = 1u << 5, /* SP = frame register + sp_value (leave: rbp + 8, the
                                     pop counted) */
    INSN_SP_OPAQUE = 1u << 6,     /* touches SP in any other way: cannot be shifted, and
                                     the depth is unknown behind it if it writes SP */
    INSN_FRAME_MEMORY = 1u << 7,  /* memory at [frame register + sp_value] */
    INSN_FRAME_SET = 1u << 8,     /* with SP_COPY: that register is the frame register */
    INSN_BELOW_SP = 1u << 9,      /* touches memory below SP, or makes a pointer to it */
    INSN_MARKER = 1u << 10,       /* bti, endbr64: must stay at its label */
    INSN_SIGNS = 1u << 11,        /* signs or authenticates a return address, strips it */
    INSN_EXCLUSIVE = 1u << 12,    /* load/store exclusive, clrex */
    INSN_OPAQUE = 1u << 13,       /* touches state that the sets do not describe: the sets
                                     are then everything that it may touch */
    INSN_PINNED = 1u << 14,       /* never moves: system calls, barriers for speculation,
                                     breakpoints, transactions, stack switches */
    INSN_NOP = 1u << 15,          /* does nothing (padding) */
    INSN_ENTERED = 1u << 16,      /* data hold its address, so that an indirect jump may lead
                                     here (set by the lifter) */
    INSN_JOINED = 1u << 23,       /* a jump in another function leads here (the same) */
    INSN_FAULTS = 1u << 24,       /* may fault by what it is given: memory elsewhere than at
                                     [SP + sp_value], [frame register + sp_value] or a fixed
                                     address; a division; arithmetic that may raise a
                                     floating-point exception */
    INSN_GLUED = 1u << 17,        /* must not be parted from the next one (set by the lifter,
                                     too) */
    INSN_LEADER = 1u << 18,       /* first of a basic block (set by the lifter) */
    INSN_FORBIDDEN = 1u << 19,    /* the lifter forbids moving it, whatever the target says:
                                     TLS sequences, calls that return twice, … */
    INSN_LINK_LIVE = 1u << 20,    /* return address live in its register before it (liveness) */
    INSN_LANDS = 1u << 22,       /* an exception at it may lead to a landing pad, or find an
                                    action (set by the lifter) */
    INSN_INNER = 1u << 25,       /* a call that may be made with other things above its
                                    return address (set by the lifter: inner_calls.c) */
    INSN_INDEXED = 1u << 26,     /* with SP_MEMORY, FRAME_MEMORY, FRAME_COPY: an index is
                                    added, too (not every target says so) */
    INSN_WRAPPED = 1u << 27,     /* refers to a name that `ld --wrap` gives another meaning in
                                    other files (set by the lifter) */
    INSN_FRAME_COPY = 1u << 28,  /* other register = frame register + sp_value (+ index) (not
                                    every target says so) */
    INSN_FRAME_STORED = 1u << 29, /* with SP_MEMORY, FRAME_MEMORY: the frame register is an
                                     operand besides (not every target says so) */
    INSN_VENEER_LIVE = 1u << 21,  /* a register that a veneer may clobber is live before it */
};

struct insn {
    uint32_t offset; /* section offset, bytes */
    uint32_t target; /* section offset in its own section that the PC-relative field means
                        (through a relocation, too, when that is certain), or NO_INDEX */
    uint64_t uses, defs; /* registers read and written */
    uint8_t flag_uses, flag_defs;
    uint8_t length; /* bytes */
    uint8_t flow;   /* enum flow */
    uint32_t traits;
    int32_t sp_value; /* see the traits */
    uint32_t function; /* function index (set by the lifter) */
    uint32_t reloc; /* index of its first relocation in the section, if it is relocated
                       (set by the lifter) */
};

#endif
