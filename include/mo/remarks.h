/* SPDX-License-Identifier: MIT
 *
 * Optimisation remarks in LLVM's YAML format.
 */
#ifndef MO_REMARKS_H
#define MO_REMARKS_H

#include "mo/plan.h"
#include "mo/program.h"

struct remarks;

/* The remarks will name lines of a file called `listing_name`. */
struct remarks *remarks_new(struct arena *session, const char *listing_name);

/* What the first round refuses. */
void remarks_refusals(struct remarks *remarks, const struct program *program);

/* A round that is being done: its sites. */
void remarks_round(struct remarks *remarks, uint32_t round,
                   const struct program *program, const struct plan *plan);

struct bytes remarks_yaml(const struct remarks *remarks);
struct bytes remarks_listing(const struct remarks *remarks);

#endif
