/* SPDX-License-Identifier: MIT
 *
 * Names of the techniques that --without takes: each can be switched off alone, so that
 * it can be measured what it is worth (docs/savings.md), and told apart from others
 * when something goes wrong.
 */
#include "options_parts.h"

#include "mo/plan.h"

#include <string.h>

/* ORDER technique */
static const struct {
    const char *name;
    enum technique bit;
} techniques[] = {
    {"stay-in-place", TECHNIQUE_STAY},
    {"joins", TECHNIQUE_JOIN},
    {"short-branches", TECHNIQUE_SHORT},
    {"leftovers", TECHNIQUE_LEFTOVERS},
    {"shared-entries", TECHNIQUE_UNITE},
    {"stack-rows", TECHNIQUE_ROWS},
    {"inner-calls", TECHNIQUE_INNER},
};

bool options_technique(const char *name, uint32_t *out, struct error *err)
{
    for (size_t i = 0; i < sizeof techniques / sizeof *techniques; i++) {
        if (strcmp(name, techniques[i].name) == 0) {
            *out |= techniques[i].bit;
            return true;
        }
    }
    return fail(err, NULL, "--without: there is no technique '%s' (see --help)", name);
}
