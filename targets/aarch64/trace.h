/* SPDX-License-Identifier: MIT
 *
 * Walking back through one function before it has basic blocks: where does the value in
 * a register come from, and how large can it be? For jump tables (tables.c).
 */
#ifndef MO_AARCH64_TRACE_H
#define MO_AARCH64_TRACE_H

#include "form.h"
#include "mo/array.h"
#include "mo/program.h"

struct trace {
    struct arena *stage;
    const struct program *program;
    const struct object *object;
    const struct section *section; /* of the code */
    uint32_t first, count;         /* instructions of the function */
    struct edges edges;
};

struct trace trace_new(struct arena *stage, const struct program *program,
                       uint32_t insn);

/* The call is to an outlined function, or to none that is known. */
bool trace_calls_outlined(const struct trace *trace, uint32_t insn);

/* A register certainly has the same value behind the call. Which registers a callee
 * leaves alone beyond the ABI nobody says (TLSDESC, preserve_most, gcc's -fipa-ra), so the
 * others neither survive nor are they certainly lost. */
bool trace_survives_call(const struct trace *trace, uint32_t insn, uint32_t reg);

uint32_t trace_word(const struct trace *trace, uint32_t insn);

/* An edge into an instruction. */
struct edge {
    uint32_t from; /* instruction index */
    bool taken;    /* by its branch, not by falling through */
    uint32_t next; /* in trace.edges */
};

#define FIRST_EDGE ((struct edge){NO_INDEX, false, 0})

/* Steps to the next edge into an instruction, from FIRST_EDGE on; false behind the
 * last. Only edges that are known: see edges.c. */
bool trace_next_edge(const struct trace *trace, uint32_t insn, struct edge *edge);

/* Nothing but the instruction before it leads here. */
bool trace_only_falls_in(const struct trace *trace, uint32_t insn);

enum { DEFS = 8 };
struct defs {
    uint32_t count; /* more than DEFS: too many */
    uint32_t insns[DEFS];
};

/* Instructions that write the register last before `insn`, along all edges that can be
 * seen. Where it is as it was on entry, or as a call left it, nobody writes: the
 * program cannot come that way and use the register as an address. */
struct defs trace_defs(struct trace *trace, uint32_t insn, uint32_t reg);

/* The only one, looking through register copies; NO_INDEX when there is not just one.
 */
uint32_t trace_def(struct trace *trace, uint32_t insn, uint32_t reg);

/* The same for the eight bytes at [sp + displacement]: instructions that store there.
 * Only stores through SP count: what the compiler spills has no other name. */
struct defs trace_slot_defs(struct trace *trace, uint32_t insn, int32_t displacement);

/* `str xR` or `stp` puts a whole x register into the slot: which. */
bool trace_spilled(uint32_t word, const struct insn *insn, int32_t displacement,
                   uint32_t *reg);

/* ldr or str of one w or x register at [sp, #imm]; stores through SP with their size.
 */
bool trace_is_slot_access(uint32_t word, const struct insn *insn, bool load);
bool trace_writes_slot(uint32_t word, const struct insn *insn, int32_t displacement,
                       int32_t size);

/* The instruction copies one general register to another, all 64 bits. */
bool trace_is_copy(uint32_t word, uint32_t *source);

/* A register as an operand: x register, or only its low half. */
struct operand {
    uint32_t reg;
    bool wide;
};

/* The largest unsigned value that the operand can have before `insn` by the compares
 * and masks on every path there. False when a path has none that we understand. `seen`,
 * one for each instruction of the function, says which instructions the paths go
 * through from there on: nothing else may lead to these. */
bool trace_limit(struct trace *trace, uint32_t insn, struct operand operand, bool *seen,
                 uint64_t *limit);

#endif
