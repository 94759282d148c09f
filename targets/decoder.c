/* SPDX-License-Identifier: MIT
 *
 * An instruction is remembered under its bytes, and found again by trying, for bytes
 * that start alike, the lengths that such instructions have had: no encoding is the
 * beginning of another one, so the first that fits is the right one. Only its place
 * differs: a PC-relative target is remembered as a distance.
 *
 * The memory is of fixed size, and an instruction drives out the one that was in its
 * slot. Machines with instructions of one length decode faster than this finds.
 */
#include "mo/decoder.h"

#include <string.h>

enum {
    SLOT_BITS = 15,
    SLOTS = 1 << SLOT_BITS,
    STARTS = 1 << 16, /* values of the first two bytes */
    LONGEST = 15      /* bytes of an instruction that is remembered */
};

/* The bytes of an instruction, zeros behind them, and its length in the last one. */
struct key {
    uint64_t low, high;
};

struct slot {
    struct key key;   /* all zeros: free */
    int64_t distance; /* from the offset to the PC-relative target */
    struct insn insn;
};

struct decoder {
    const struct target *target;
    struct slot *slots;
    uint16_t *lengths; /* by the first two bytes: a bit for each length seen */
};

struct decoder *decoder_new(struct arena *arena, const struct target *target)
{
    struct decoder *decoder = arena_new_one(arena, struct decoder);
    decoder->target = target;
    if (target->code_align > 1)
        return decoder;
    decoder->slots = arena_new_array(arena, struct slot, SLOTS);
    decoder->lengths = arena_new_array(arena, uint16_t, STARTS);
    return decoder;
}

static struct key key_of(uint64_t low, uint64_t high, uint32_t length)
{
    if (length < 8)
        return (struct key){low & ((UINT64_C(1) << length * 8) - 1),
                            (uint64_t)length << 56};
    uint64_t mask = (UINT64_C(1) << (length - 8) * 8) - 1;
    return (struct key){low, (high & mask) | (uint64_t)length << 56};
}

static struct slot *slot_of(const struct decoder *decoder, struct key key)
{
    uint64_t mixed = (key.low ^ key.high * UINT64_C(0x9e3779b97f4a7c15)) *
                     UINT64_C(0xbf58476d1ce4e5b9);
    return &decoder->slots[(mixed ^ mixed << 29) >> (64 - SLOT_BITS)];
}

static void place(const struct slot *slot, uint32_t offset, struct insn *out)
{
    *out = slot->insn;
    out->offset = offset;
    int64_t target = (int64_t)offset + slot->distance;
    if ((out->traits & INSN_PC_RELATIVE) != 0)
        out->target =
            target >= 0 && target < (int64_t)NO_INDEX ? (uint32_t)target : NO_INDEX;
}

static bool recall(const struct decoder *decoder, uint64_t low, uint64_t high,
                   uint32_t offset, struct insn *out)
{
    uint32_t lengths = decoder->lengths[low & (STARTS - 1)];
    for (; lengths != 0; lengths &= lengths - 1) {
        struct key key = key_of(low, high, (uint32_t)__builtin_ctz(lengths));
        const struct slot *slot = slot_of(decoder, key);
        if (slot->key.low == key.low && slot->key.high == key.high) {
            place(slot, offset, out);
            return true;
        }
    }
    return false;
}

static void remember(struct decoder *decoder, uint64_t low, uint64_t high,
                     const struct insn *insn)
{
    bool relative = (insn->traits & INSN_PC_RELATIVE) != 0;
    if (insn->length > LONGEST || (relative && insn->target == NO_INDEX))
        return;
    struct key key = key_of(low, high, insn->length);
    struct slot *slot = slot_of(decoder, key);
    *slot = (struct slot){key, (int64_t)insn->target - (int64_t)insn->offset, *insn};
    uint16_t *lengths = &decoder->lengths[low & (STARTS - 1)];
    *lengths = (uint16_t)(*lengths | 1u << insn->length);
}

bool decoder_decode(struct decoder *decoder, const uint8_t *bytes, uint64_t size,
                    uint32_t offset, struct insn *out)
{
    /* Near the end of the section the words would reach over it. */
    if (!decoder->slots || size < 16)
        return decoder->target->decode(bytes, size, offset, out);
    uint64_t low = load_le(bytes, 8), high = load_le(bytes + 8, 8);
    if (recall(decoder, low, high, offset, out))
        return true;
    if (!decoder->target->decode(bytes, size, offset, out))
        return false;
    remember(decoder, low, high, out);
    return true;
}
