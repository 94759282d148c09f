/* SPDX-License-Identifier: MIT
 *
 * Private to changed.c and traces.c: what the round before has left behind.
 */
#ifndef MO_OUTLINER_TRACES_H
#define MO_OUTLINER_TRACES_H

#include "outliner/choose/choose.h"

struct traces {
    const struct program *program;
    bool **is_new;     /* by object and symbol: it names a helper that is new */
    uint8_t **entered; /* by code index, a bit for each byte: see traces_enter() */
};

/* `old`: names of the helpers that there were before the last round. */
struct traces traces_find(struct arena *arena, const struct program *program,
                          const struct table *old);

/* The function is a helper that is new. */
bool trace_is_helper(const struct traces *traces, uint32_t function);

/* Who goes to this instruction from another function is a site. */
void traces_enter(const struct traces *traces, uint32_t insn);

/* The call or jump goes to a helper that is new, or to an instruction that has been
 * entered. */
bool trace_is_site(const struct traces *traces, uint32_t insn);

#endif
