/* SPDX-License-Identifier: MIT
 *
 * --dump=tokens, repeats, plan (and candidates, of which the planner hands out only
 * those that it chose).
 */
#include "mo/dump.h"
#include "mo/suffixtree.h"

#include <inttypes.h>

enum { SHORTEST_REPEAT = 2, MOST_POSITIONS = 8 };

void dump_tokens(FILE *out, const struct program *program, const struct tokens *tokens)
{
    for (uint32_t i = 0; i < tokens->count; i++) {
        if (tokens->insns[i] == NO_INDEX) {
            fprintf(out, "%8" PRIu32 " separator\n", i);
            continue;
        }
        fprintf(out, "%8" PRIu32 " %8" PRIu32 " ", i, tokens->values[i]);
        dump_place(out, program, tokens->insns[i]);
        fprintf(out, "\n");
    }
}

/* In the tree's order, which depends on the tokens alone. */
void dump_repeats(FILE *out, const struct program *program, const struct tokens *tokens)
{
    struct arena *stage = arena_new();
    struct repeats repeats =
        suffixtree_repeats(stage, tokens->values, tokens->count, tokens->alphabet,
                           SHORTEST_REPEAT);
    fprintf(out, "repeats %" PRIu32 "\n", repeats.count);
    for (uint32_t i = 0; i < repeats.count; i++) {
        const struct repeat *repeat = &repeats.items[i];
        fprintf(out, "repeat length %" PRIu32 " count %" PRIu32 " at", repeat->length,
                repeat->count);
        for (uint32_t j = 0; j < repeat->count && j < MOST_POSITIONS; j++)
            fprintf(out, " %" PRIu32, repeats.positions[repeat->first + j]);
        fprintf(out, "%s, first ", repeat->count > MOST_POSITIONS ? " ..." : "");
        uint32_t insn = tokens->insns[repeats.positions[repeat->first]];
        if (insn == NO_INDEX)
            fprintf(out, "separator");
        else
            dump_place(out, program, insn);
        fprintf(out, "\n");
    }
    arena_free(stage);
}

void dump_plan(FILE *out, const struct program *program, const struct plan *plan)
{
    fprintf(out, "plan helpers %" PRIu32 " sites %" PRIu32 "\n", plan->helper_count,
            plan->site_count);
    for (uint32_t i = 0; i < plan->helper_count; i++) {
        const struct helper *helper = &plan->helpers[i];
        fprintf(out,
                "helper mo_outlined.%016" PRIx64 " length %" PRIu32 " bytes %" PRIu32
                " sites %" PRIu32 " saving %" PRId64 "%s%s",
                helper->hash, helper->length, helper->body_size, helper->site_count,
                helper->saving, helper->tail ? " tail" : "",
                helper->thunk ? " thunk" : "");
        if (helper->inner)
            fprintf(out, " inner");
        if (helper->stack_shift)
            fprintf(out, " shift %" PRIu32, helper->stack_shift);
        fprintf(out, "%s\n", helper->entry_row == ROW_NONE ? " no-fde" : "");
        for (uint32_t j = 0; j < helper->site_count; j++) {
            const struct site *site = &plan->sites[helper->first_site + j];
            fprintf(out, "  %s ", form_name((enum form)site->form));
            if (site->form == FORM_SAVE_REGISTER)
                fprintf(out, "in %u ", site->scratch);
            dump_place(out, program, site->insn);
            fprintf(out, "\n");
        }
    }
}
