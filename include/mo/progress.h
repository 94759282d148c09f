/* SPDX-License-Identifier: MIT
 *
 * What is going on, for somebody who waits: one line on standard error, from the second
 * second on, gone when the work is done. Only on a terminal.
 */
#ifndef MO_PROGRESS_H
#define MO_PROGRESS_H

#include "mo/arena.h"

struct progress;

/* NULL, which the others take for "say nothing", unless standard error is a terminal that
 * can erase a line. Nobody may write to it before progress_end(). */
struct progress *progress_start(struct arena *session);

/* What begins now: a few words that stay where they are. `round` from 1; 0: none. */
void progress_at(struct progress *progress, const char *words, uint32_t round);

/* Takes the line away. */
void progress_end(struct progress *progress);

#endif
