/* SPDX-License-Identifier: MIT
 *
 * Runs one x86-64 instruction on this very processor: all registers and flags are
 * loaded from a state, the instruction executes, and everything is stored again. Memory
 * lives at fixed low addresses, so that the code around the instruction needs no
 * register.
 */
#ifndef MO_TESTS_NATIVE_X86_64_H
#define MO_TESTS_NATIVE_X86_64_H

#include "mo/base.h"

enum {
    XSAVE_BYTES = 832,
    XSAVE_X87_END = 160,
    XSAVE_MXCSR = 24,
    XSAVE_XMM = 160,
    XSAVE_HEADER = 512,
    XSAVE_YMM_HIGH = 576
};

/* Memory that instructions under test may address. */
#define ARENA_BASE UINT64_C(0x20000000)
enum { ARENA_SIZE = 1 << 14 };

struct state {
    uint8_t xsave[XSAVE_BYTES] __attribute__((aligned(64))); /* standard format */
    uint64_t gpr[16];                                        /* hardware order */
    uint64_t flags;
    uint64_t taken; /* out: 1 when a branch was taken */
    uint8_t memory[ARENA_SIZE];
};

/* Maps memory and installs signal handlers; once per process. False: cannot run here.
 */
bool native_init(void);

/* Where the instruction under test is put: for retargeting PC-relative ones. */
uint64_t native_insn_address(void);
/* What a relative branch under test must lead to: this many bytes behind its end. */
enum { NATIVE_TAKEN_DISTANCE = 5 };

/* False when it raised a signal. */
bool native_run(const uint8_t *bytes, uint8_t length, const struct state *before,
                struct state *after);

#endif
