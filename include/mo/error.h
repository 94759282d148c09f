/* SPDX-License-Identifier: MIT
 *
 * Errors: bad input or a failing system call, for which nothing is written and the exit
 * status is 1. A function that can fail returns bool, takes `struct error *` last and
 * leaves it untouched on success, so that steps chain with &&. Only fail() returns the
 * false: there is no silent failure.
 *
 * (Bugs are asserts. Refusals - code that is left alone - are in mo/refusal.h.)
 */
#ifndef MO_ERROR_H
#define MO_ERROR_H

#include "mo/base.h"

struct error {
    bool set;
    bool over_limit; /* nothing is wrong with the input, a size gate is closed: exit 3 */
    char message[1024];
};

/* Where it happened. Unknown parts are NULL; the offset counts only with a section. */
struct place {
    const char *file;         /* "a.o" or "libfoo.a(bar.o)" */
    const char *section;      /* ".text.foo" */
    uint64_t offset;          /* section offset, bytes */
    const char *function;     /* name of the function around it */
    uint64_t function_offset; /* bytes from the function's start */
};

/* Records "file: section+0x1a (function+0xa): text" (the parts that are known) and returns
 * false. The first error wins: a second call on the same error changes nothing. */
bool fail(struct error *err, const struct place *place, const char *format, ...)
    MO_PRINTF(3, 4);

/* The same for a failing system call: ": strerror(errno)" is appended. */
bool fail_errno(struct error *err, const struct place *place, const char *format, ...)
    MO_PRINTF(3, 4);

#endif
