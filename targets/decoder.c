/* SPDX-License-Identifier: MIT
 *
 * An instruction is remembered under its bytes, and found again by trying, for bytes
 * that start alike, the lengths that such keys have had: no encoding is the beginning
 * of another one, so the first that fits is the right one. Only its place differs: a
 * PC-relative target is remembered as a distance.
 *
 * Where a direct jump or call leads changes nothing else about it, and hardly two of
 * them lead equally far. So their keys end before the displacement, which is what such
 * an instruction ends in.
 *
 * The memory is of fixed size, and an instruction drives out the one that was in its
 * slot. Machines with instructions of one length decode faster than this finds.
 */
#include "mo/decoder.h"

#include "mo/parallel.h"

#include <string.h>

enum {
    SLOT_BITS = 15,
    SLOTS = 1 << SLOT_BITS,
    STARTS = 1 << 16, /* values of the first two bytes */
    LONGEST = 15      /* bytes of a key */
};

/* The bytes of a key, zeros behind them, and its length in the last one. */
struct key {
    uint64_t low, high;
};

/* insn.target is the distance from the instruction's end to its PC-relative target, or,
 * where the key leaves out the displacement, the size of that. */
struct slot {
    struct key key; /* all zeros: free */
    struct insn insn;
};

struct decoder {
    struct arena *arena;
    const struct target *target;
    struct decoder *others[MOST_WORKERS]; /* by worker; NULL: not made yet */
    struct slot *slots;
    uint16_t *tags;    /* by slot: bits of its key, so that most misses stay out of it */
    uint16_t *lengths; /* by the first two bytes: a bit for each length of a key */
};

/* Each in a line of the cache of its own. */
static struct slot *aligned_slots(struct arena *arena)
{
    _Static_assert(sizeof(struct slot) == 64, "a line of the cache");
    struct slot *slots = arena_new_array(arena, struct slot, SLOTS + 1);
    return (struct slot *)align_up((uintptr_t)slots, sizeof *slots);
}

struct decoder *decoder_new(struct arena *arena, const struct target *target)
{
    struct decoder *decoder = arena_new_one(arena, struct decoder);
    decoder->arena = arena;
    decoder->target = target;
    if (target->code_align > 1)
        return decoder;
    decoder->slots = aligned_slots(arena);
    decoder->tags = arena_new_array(arena, uint16_t, SLOTS);
    decoder->lengths = arena_new_array(arena, uint16_t, STARTS);
    return decoder;
}

/* Without a memory there is nothing that two could not share. */
void decoder_share(struct decoder *decoder, uint32_t workers)
{
    for (uint32_t i = 1; i < workers && i < MOST_WORKERS && decoder->slots; i++) {
        if (!decoder->others[i])
            decoder->others[i] = decoder_new(decoder->arena, decoder->target);
    }
}

struct decoder *decoder_of(struct decoder *decoder, uint32_t worker)
{
    return worker && decoder->slots ? decoder->others[worker] : decoder;
}

static struct key key_of(uint64_t low, uint64_t high, uint32_t length)
{
    if (length < 8)
        return (struct key){low & ((UINT64_C(1) << length * 8) - 1),
                            (uint64_t)length << 56};
    uint64_t mask = (UINT64_C(1) << (length - 8) * 8) - 1;
    return (struct key){low, (high & mask) | (uint64_t)length << 56};
}

/* The slot of a key, and its tag. */
static uint32_t slot_of(struct key key, uint16_t *tag)
{
    uint64_t mixed = (key.low ^ key.high * UINT64_C(0x9e3779b97f4a7c15)) *
                     UINT64_C(0xbf58476d1ce4e5b9);
    mixed ^= mixed << 29;
    *tag = (uint16_t)(mixed >> (64 - SLOT_BITS - 16));
    return (uint32_t)(mixed >> (64 - SLOT_BITS));
}

/* (xbegin, which is pinned, may have a displacement of two bytes.) */
static bool ends_in_displacement(const struct insn *insn)
{
    return (insn->traits & (INSN_PC_RELATIVE | INSN_PINNED)) == INSN_PC_RELATIVE &&
           (insn->flow == FLOW_JUMP || insn->flow == FLOW_BRANCH ||
            insn->flow == FLOW_CALL);
}

static void place(const struct slot *slot, const uint8_t *bytes, uint32_t offset,
                  struct insn *out)
{
    *out = slot->insn;
    out->offset = offset;
    if ((out->traits & INSN_PC_RELATIVE) == 0)
        return;
    uint32_t known = slot->insn.target;
    int64_t target = (int64_t)offset + out->length;
    target += ends_in_displacement(out)
                  ? load_le_signed(bytes + out->length - known, known)
                  : (int32_t)known;
    out->target =
        target >= 0 && target < (int64_t)NO_INDEX ? (uint32_t)target : NO_INDEX;
}

static const struct slot *recall(const struct decoder *decoder, uint64_t low,
                                 uint64_t high)
{
    uint32_t lengths = decoder->lengths[low & (STARTS - 1)];
    for (; lengths != 0; lengths &= lengths - 1) {
        struct key key = key_of(low, high, (uint32_t)__builtin_ctz(lengths));
        uint16_t tag;
        uint32_t at = slot_of(key, &tag);
        const struct slot *slot = &decoder->slots[at];
        if (decoder->tags[at] == tag && slot->key.low == key.low &&
            slot->key.high == key.high)
            return slot;
    }
    return NULL;
}

/* Bytes of the displacement at its end that leads to its target; 0: there is none. */
static uint32_t displacement_size(const uint8_t *bytes, const struct insn *insn)
{
    int64_t wanted = (int64_t)insn->target - insn->offset - insn->length;
    for (uint32_t size = 4; size != 0; size /= 4) {
        if (size < insn->length &&
            load_le_signed(bytes + insn->length - size, size) == wanted)
            return size;
    }
    return 0;
}

/* What stands behind a key of one byte is no part of it. */
static void note_length(struct decoder *decoder, uint64_t start, uint32_t length)
{
    uint64_t step = length == 1 ? 1 << 8 : STARTS;
    for (uint64_t i = start & (step - 1); i < STARTS; i += step)
        decoder->lengths[i] = (uint16_t)(decoder->lengths[i] | 1u << length);
}

static void remember(struct decoder *decoder, const uint8_t *bytes, uint64_t low,
                     uint64_t high, const struct insn *insn)
{
    struct insn kept = *insn;
    uint32_t length = insn->length;
    if (length > LONGEST ||
        ((insn->traits & INSN_PC_RELATIVE) && insn->target == NO_INDEX))
        return;
    if (ends_in_displacement(insn)) {
        kept.target = displacement_size(bytes, insn);
        length -= kept.target;
        if (kept.target == 0)
            return;
    } else if (insn->traits & INSN_PC_RELATIVE) {
        kept.target = insn->target - insn->offset - insn->length;
    }
    struct key key = key_of(low, high, length);
    uint16_t tag;
    uint32_t at = slot_of(key, &tag);
    decoder->slots[at] = (struct slot){key, kept};
    decoder->tags[at] = tag;
    note_length(decoder, low & (STARTS - 1), length);
}

/* Zeros stand behind the end of the section. */
static uint64_t word_at(const uint8_t *bytes, uint64_t size, uint64_t at)
{
    if (size >= at + 8)
        return load_le(bytes + at, 8);
    return size > at ? load_le(bytes + at, (uint32_t)(size - at)) : 0;
}

bool decoder_decode(struct decoder *decoder, const uint8_t *bytes, uint64_t size,
                    uint32_t offset, struct insn *out)
{
    if (!decoder->slots)
        return decoder->target->decode(bytes, size, offset, out);
    uint64_t low = word_at(bytes, size, 0), high = word_at(bytes, size, 8);
    const struct slot *slot = recall(decoder, low, high);
    if (slot && slot->insn.length <= size) {
        place(slot, bytes, offset, out);
        return true;
    }
    if (!decoder->target->decode(bytes, size, offset, out))
        return false;
    remember(decoder, bytes, low, high, out);
    return true;
}
