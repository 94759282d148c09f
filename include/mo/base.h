/* SPDX-License-Identifier: MIT
 *
 * What every other header may use: attributes, the "no index" sentinel, byte ranges.
 *
 * Integer policy: indices and offsets within a section are uint32_t (the reader refuses
 * sections of 4 GiB and more); file offsets, addresses and sizes are uint64_t; addends,
 * displacements and savings are int64_t.
 */
#ifndef MO_BASE_H
#define MO_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MO_PRINTF(text, first) __attribute__((format(printf, text, first)))
#define MO_MUST_CHECK            __attribute__((warn_unused_result))
#define MO_NORETURN              __attribute__((noreturn))

/* "There is none", for every index in this project. */
#define NO_INDEX UINT32_MAX

/* A range of bytes owned by somebody else (an arena, usually). */
struct bytes {
    const uint8_t *at; /* NULL only when there is nothing to read */
    uint64_t size;
};

#endif
