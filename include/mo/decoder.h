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

/* Several workers at once: each takes the one of its number, from here up to
 * decoder_settle(); what one has decoded all know from then on. */
void decoder_share(struct decoder *decoder, uint32_t workers);
struct decoder *decoder_of(struct decoder *decoder, uint32_t worker);
void decoder_settle(struct decoder *decoder);

/* What target.decode() says. */
bool decoder_decode(struct decoder *decoder, const uint8_t *bytes, uint64_t size,
                    uint32_t offset, struct insn *out);

/* The same for bytes that may be anything. */
bool decoder_try(struct decoder *decoder, const uint8_t *bytes, uint64_t size,
                 uint32_t offset, struct insn *out);

#endif
