/* SPDX-License-Identifier: MIT
 *
 * Tails that stay in place. Of several functions that end alike one can keep its end,
 * and the others jump there: no helper is needed at all. The one that stays may be a
 * helper of an earlier round as well, so this is also how a sequence joins the end of a
 * helper.
 *
 * The sites run in their own frames, so while they are there the unwind rows must be
 * theirs. Where rows differ in settled registers only (tails.c), these rules are left
 * out of the rows of the one that stays, too: the reason for which the sites do not
 * need them holds for it as well. In a function with conventions of its own it does
 * not, so there the rows must be right as they are.
 *
 * A jump makes the linker keep the section that it leads to. So only sections that are
 * kept whole hold what others jump to: plain `.text` and our own. A section of a COMDAT
 * group may be dropped for another copy.
 */
#include "outliner/choose/choose.h"

#include <string.h>

bool is_kept_whole(const struct program *program, const struct function *function)
{
    const struct section *section = program_section(program, function->code);
    return section->group == NO_INDEX && (program->code[function->code].helpers ||
                                          strcmp(section->name, ".text") == 0);
}

enum stay site_stay(const struct facts *facts, const struct site *site)
{
    bool wanted =
        !facts->options->apart && (facts->options->without & TECHNIQUE_STAY) == 0;
    return wanted && fact_is(facts, site->insn, FACT_KEPT_WHOLE) ? STAY_CAN : STAY_NEVER;
}

bool helper_may_stay(const struct facts *facts, const struct payload *payload,
                     const struct site *site, uint64_t *key)
{
    uint64_t settled = payload->settled;
    if (site->stay == STAY_NEVER || settled == 0 ||
        !fact_is(facts, site->insn, FACT_PRIVATE)) {
        return false;
    }
    for (uint32_t i = site->insn; i < site->insn + payload->length; i++) {
        if (tail_row(facts->tail_rows, facts->at[i].row, settled) != facts->at[i].row) {
            return false;
        }
    }
    *key = tail_key(facts, payload, site->insn, settled);
    return true;
}

int64_t stay_cost(const struct facts *facts, const struct payload *payload,
                  const struct site *site)
{
    uint64_t settled = site_settled(facts, payload, site);
    uint32_t last = site->insn + payload->length - 1;
    uint32_t behind = facts_behind(facts, site->insn, payload->length);
    uint32_t row = facts->at[site->insn].row;
    uint32_t weak = tail_row(facts->tail_rows, row, settled);
    if (weak == row) {
        return 0;
    }
    int64_t cost = cost_change(facts, row, weak);
    if (behind != NO_INDEX && facts->at[behind].row == facts->at[last].row) {
        cost += cost_change(facts, weak, row);
    }
    return cost;
}
