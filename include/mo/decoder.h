/* SPDX-License-Identifier: MIT
 *
 * Decoding with a memory. Programs repeat a few ten thousand instructions over and
 * over, and decoders of machines whose instructions have any length are slow. Answers
 * are those of target.decode(), always.
 */
#ifndef MO_DECODER_H
#define MO_DECODER_H

#include "mo/arena.h"
#include "mo/target.h"

struct decoder;

/* Lives as long as the arena. */
struct decoder *decoder_new(struct arena *arena, const struct target *target);

/* Makes room to remember what so many bytes may hold: of code, and of what is tried at
 * every offset. Nobody else may be at work. Without, it remembers less, and is slower. */
void decoder_expect(struct decoder *decoder, uint64_t code, uint64_t anything);

/* All that follow may be called by any number of workers at once. */

/* What target.decode() says. */
bool decoder_decode(struct decoder *decoder, const uint8_t *bytes, uint64_t size,
                    uint32_t offset, struct insn *out);

/* The same for bytes that may be anything. */
bool decoder_try(struct decoder *decoder, const uint8_t *bytes, uint64_t size,
                 uint32_t offset, struct insn *out);

/* What decoder_try() says of one offset, as far as control is concerned. */
struct attempt {
    int64_t distance; /* relative: from its start to the place that is meant */
    uint8_t length;   /* bytes; 0: no instruction */
    uint8_t flow;     /* enum flow */
    bool relative;    /* has a PC-relative field */
};

/* Of every offset from `start` up to `end`, in that order. Equal bytes are tried once:
 * those of the range and, since the last attempts look at them, up to MOST_INSN_BYTES
 * behind it. NULL where instructions have one length: decoding them takes no longer than
 * this. They live as long as the decoder. */
const struct attempt *decoder_try_all(struct decoder *decoder, struct bytes bytes,
                                      uint32_t start, uint32_t end);

#endif
