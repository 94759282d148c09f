/* SPDX-License-Identifier: MIT
 *
 * Code that is under rules which no ABI states, and which a call to a helper, or a
 * helper's return, would break:
 *
 *   load-exclusive ... store-exclusive   a core may lose its reservation at any indirect
 *       branch or other access to memory between the two, and the loop around them never
 *       ends (Arm ARM B2.9.5); nothing there moves;
 *   a barrier or a trap behind a return  keeps a core from running on there (straight-line
 *       speculation, -mharden-sls); the return of a helper has none (x86-64: retpolines'
 *       return thunks are known by their name, operands.c);
 *   SP is set before anything uses it    there is no stack yet: start-up code, the entry
 *       of a second processor, longjmp.
 */
#include "outliner/lift/lift.h"

/* The guarantee ends after 128 bytes; compilers that go beyond that count on luck. */
enum { MOST_BETWEEN = 64 };

static void keep_between(struct program *program, uint32_t first, uint32_t last)
{
    for (uint32_t i = first + 1; last - first <= MOST_BETWEEN && i < last; i++)
        program->insns[i].traits |= INSN_EXCLUSIVE;
}

/* Nothing jumps there, and still it is what stops a core. */
static bool is_barrier(const struct insn *insn)
{
    return (insn->traits & INSN_PINNED) && !(insn->traits & (INSN_LEADER | INSN_ENTERED));
}

static bool touches(const struct target *target, const struct insn *insn)
{
    return insn->flow != FLOW_NEXT ||
           ((insn->uses | insn->defs) >> target->stack_register & 1) != 0;
}

static bool sets_up_stack(const struct target *target, const struct insn *insn)
{
    uint64_t stack = (uint64_t)1 << target->stack_register;
    return insn->flow == FLOW_NEXT && (insn->traits & INSN_SP_OPAQUE) &&
           (insn->defs & stack) && !(insn->uses & stack);
}

void lift_special(struct lift *lift, uint32_t number)
{
    struct program *program = lift->program;
    const struct target *target = program->target;
    const struct function *function = &program->functions[number];
    uint32_t end = function->first_insn + function->insn_count, exclusive = NO_INDEX;
    bool has_stack = program->code[function->code].helpers;
    for (uint32_t i = function->first_insn; i < end; i++) {
        const struct insn *insn = &program->insns[i];
        if (insn->traits & INSN_EXCLUSIVE) {
            if (exclusive != NO_INDEX)
                keep_between(program, exclusive, i);
            exclusive = i;
        }
        if (insn->flow == FLOW_RETURN && i + 1 < end && is_barrier(insn + 1))
            lift_seal(lift, number, REFUSAL_HARDENED, insn->offset);
        if (!has_stack && sets_up_stack(target, insn))
            lift_seal(lift, number, REFUSAL_STACK_SETUP, insn->offset);
        has_stack |= touches(target, insn);
    }
}
