/* SPDX-License-Identifier: MIT
 *
 * --dump=candidates, and what --explain wants to know of them.
 *
 * Candidates exist only inside the choice, between pricing and picking; no other stage
 * has a use for them. So this file, and no other outside of outliner/, looks into that
 * room.
 */
#include "mo/dump.h"

#include "outliner/choose/choose.h"

#include <inttypes.h>

static struct candidates make(struct arena *arena, const struct program *program,
                              const struct tokens *tokens,
                              const struct plan_options *choice)
{
    struct facts facts = {0};
    struct candidates candidates = {0};
    candidates_make(arena, program, tokens, choice, &facts, &candidates);
    return candidates;
}

static const char *kind_name(enum payload_kind kind)
{
    switch (kind) {
    case PAYLOAD_PLAIN: return "plain";
    case PAYLOAD_THUNK: return "thunk";
    case PAYLOAD_TAIL: return "tail";
    }
    return "";
}

void dump_candidates(FILE *out, const struct program *program,
                     const struct tokens *tokens, const struct plan_options *choice)
{
    struct arena *stage = arena_new();
    struct candidates candidates = make(stage, program, tokens, choice);
    fprintf(out, "candidates %" PRIu32 "\n", candidates.count);
    for (uint32_t i = 0; i < candidates.count; i++) {
        const struct candidate *candidate = &candidates.items[i];
        fprintf(out,
                "candidate %s length %" PRIu32 " sites %" PRIu32 " saving %" PRId64
                " covers %" PRIu64 " first ",
                kind_name(candidate->payload.kind), candidate->payload.length,
                candidate->site_count, candidate->saving, candidate->covered);
        dump_place(out, program, candidate->payload.insn);
        fprintf(out, "\n");
    }
    arena_free(stage);
}

const int64_t *candidates_best(struct arena *arena, const struct program *program,
                               const struct tokens *tokens,
                               const struct plan_options *choice)
{
    int64_t *best = arena_new_array(arena, int64_t, program->insn_count);
    struct arena *stage = arena_new();
    struct candidates candidates = make(stage, program, tokens, choice);
    for (uint32_t i = 0; i < candidates.count; i++) {
        const struct candidate *candidate = &candidates.items[i];
        for (uint32_t j = 0; j < candidate->site_count; j++) {
            int64_t *at = best + candidate->sites[j].insn;
            for (uint32_t k = 0; k < candidate->payload.length; k++) {
                if (at[k] < candidate->saving)
                    at[k] = candidate->saving;
            }
        }
    }
    arena_free(stage);
    return best;
}
