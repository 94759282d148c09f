/* SPDX-License-Identifier: MIT
 *
 * What each stage made of the input, as text: for finding out why, and for the golden
 * tests. The text depends on the inputs and their names alone: no addresses, no time.
 */
#ifndef MO_DUMP_H
#define MO_DUMP_H

#include "mo/options.h"
#include "mo/plan.h"
#include "mo/program.h"
#include "mo/report.h"

#include <stdio.h>

/* The options that the first stages take, from those of the user. */
struct lift_options lift_options_of(const struct options *options);
struct plan_options plan_options_of(const struct options *options);

/* Does the stages of the first round over one set, up to the one that --dump names (or
 * all for --explain), and prints what was asked for. `lift`: of the set. `folds`: what
 * was folded in it before, or NULL. */
MO_MUST_CHECK bool dump_set(FILE *out, const struct options *options,
                            const struct lift_options *lift,
                            const struct objects *objects,
                            const struct report *folds, struct row_table *rows,
                            struct error *err);

/* --- dump_object.c, dump_code.c, dump_rows.c, dump_plan.c,
 * dump_candidates.c, explain.c
 * ---------------------- */

void dump_object(FILE *out, const struct object *object);
void dump_code(FILE *out, const struct program *program);
void dump_rows(FILE *out, const struct program *program);
void dump_tokens(FILE *out, const struct program *program, const struct tokens *tokens);
void dump_repeats(FILE *out, const struct program *program,
                  const struct tokens *tokens);
void dump_candidates(FILE *out, const struct program *program,
                     const struct tokens *tokens, const struct plan_options *choice);
void dump_plan(FILE *out, const struct program *program, const struct plan *plan);

/* For each function that the glob names: its state, and for each stretch of
 * instructions what became of it and why. */
void explain(FILE *out, const struct program *program, const struct tokens *tokens,
             const struct plan *plan, const struct plan_options *choice,
             const struct report *folds, const char *glob);

/* By instruction index: what the best candidate that covers it would save, or 0. */
const int64_t *candidates_best(struct arena *arena, const struct program *program,
                               const struct tokens *tokens,
                               const struct plan_options *choice);

/* "a.o .text+0x10", where an instruction is. */
void dump_place(FILE *out, const struct program *program, uint32_t insn);

#endif
