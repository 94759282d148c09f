/* SPDX-License-Identifier: MIT
 *
 * Jump tables of gcc and clang.
 */
#include "x86_64.h"

#include "mo/program.h"

bool x86_64_find_table(struct arena *arena, const struct program *program,
                       uint32_t insn, struct jump_table *out)
{
    (void)arena, (void)program, (void)insn, (void)out;
    return false;
}
