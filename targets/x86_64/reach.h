/* SPDX-License-Identifier: MIT
 *
 * Questions about one function before its blocks are known: which instructions define a
 * register that reaches a point, and how large can it be there. For tables.c.
 */
#ifndef MO_TARGETS_X86_64_REACH_H
#define MO_TARGETS_X86_64_REACH_H

#include "mo/program.h"
#include "x86_64.h"

enum { NO_REG = 0xff, DEFS_LIMIT = 128 };

struct reach {
    const struct program *program;
    const struct object *object;
    const struct section *section; /* the code */
    const struct code *code;
    const struct function *function;
    struct edges edges;
    uint32_t *indirect; /* its indirect jumps, as instruction indices of the program */
    uint32_t indirect_count;
    uint32_t *work; /* worklist; an instruction enters at most once per register */
    uint16_t *seen; /* general registers asked for at instruction i */
};

/* An instruction with its operands. */
struct view {
    uint32_t insn;
    struct parsed parsed;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

struct defs {
    uint32_t count; /* 0: none, or more than DEFS_LIMIT */
    uint32_t insns[DEFS_LIMIT];
    bool killed; /* on some path a call destroys the register */
};

void reach_init(struct reach *reach, struct arena *arena, const struct program *program,
                uint32_t insn);
bool reach_view(const struct reach *reach, uint32_t insn, struct view *out);

/* Bit number of a general register of any width; NO_REG for all else. */
uint8_t view_register(ZydisRegister reg);
/* A move from register to register that keeps at least the low 32 bits; `reg` becomes
 * the source. */
bool view_is_copy(const struct view *view, uint8_t *reg);

/* The instructions whose value of `reg` may reach `insn` by the control flow that is
 * visible inside the function. With
 * `hidden`, an instruction that nothing visible leads to is reached from every indirect
 * jump of the function. */
struct defs reach_definitions(struct reach *reach, uint32_t insn, uint8_t reg,
                              bool hidden);

/* How many values from 0 up the register can have at `insn`. */
struct bound {
    uint32_t count; /* 0: not known */
    bool is_exact;  /* a compare says so; a mask lets through what may never come */
};
struct bound reach_bound(struct reach *reach, uint32_t insn, uint8_t reg);

#endif
