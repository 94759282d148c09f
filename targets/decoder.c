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
 * What is remembered lies in the order in which it was met, and is met in the same
 * order the next time. When there is too much of it, all is forgotten. Machines with
 * instructions of one length decode faster than this finds.
 *
 * Workers look into what was known before, which nobody changes meanwhile, and remember
 * for themselves what is new.
 */
#include "mo/decoder.h"

#include "mo/parallel.h"

#include <string.h>

enum {
    TAG_BITS = 12,
    MOST_BITS = 18,   /* instructions at most: fewer than a spot can tell apart */
    CHUNK = 1024,     /* instructions that get their memory together */
    FIRST_INDEX = 12, /* bits */
    STARTS = 1 << 16, /* values of the first two bytes */
    LONGEST = 15      /* bytes of a key */
};

/* What starts at a place. */
struct words {
    uint64_t low, high;
};

/* The bytes of a key, zeros behind them, and its length in the last one. */
struct key {
    uint64_t low, high;
};

/* insn.target is the distance from the instruction's end to its PC-relative target, or,
 * where the key leaves out the displacement, the size of that. */
struct slot {
    struct key key;
    struct insn insn;
};

/* Where a key leads: most of those that are not looked for have another tag. */
struct spot {
    uint32_t tag : TAG_BITS;
    uint32_t number : 32 - TAG_BITS; /* of a slot, from 1 on; 0: free */
};

struct memory {
    struct slot *chunks[(1 << MOST_BITS) / CHUNK];
    uint32_t count;
    struct spot *index; /* by hash; a key that finds its spot taken has the next one */
    uint32_t bits;      /* of hashes */
    uint16_t *lengths;  /* by the first two bytes: a bit for each length of a key */
};

struct decoder {
    struct arena *arena;
    const struct target *target;
    bool remembers;
    struct memory code, anything; /* apart: most of the latter is met in one place */
    const struct decoder *known;  /* the one that it works for, or NULL */
    struct decoder *workers[MOST_WORKERS]; /* while they work */
};

static void forget(struct arena *arena, struct memory *memory)
{
    memory->count = 0;
    memory->bits = FIRST_INDEX;
    memory->index = arena_new_array(arena, struct spot, (size_t)1 << FIRST_INDEX);
    memory->lengths = arena_new_array(arena, uint16_t, STARTS);
}

struct decoder *decoder_new(struct arena *arena, const struct target *target)
{
    struct decoder *decoder = arena_new_one(arena, struct decoder);
    decoder->arena = arena;
    decoder->target = target;
    decoder->remembers = target->code_align == 1;
    if (decoder->remembers) {
        forget(arena, &decoder->code);
        forget(arena, &decoder->anything);
    }
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

static const struct slot *slot_at(const struct memory *memory, uint32_t number)
{
    return &memory->chunks[number / CHUNK][number % CHUNK];
}

static bool same_key(struct key a, struct key b)
{
    return a.low == b.low && a.high == b.high;
}

static uint64_t hash_of(struct key key)
{
    uint64_t mixed = (key.low ^ key.high * UINT64_C(0x9e3779b97f4a7c15)) *
                     UINT64_C(0xbf58476d1ce4e5b9);
    return mixed ^ mixed >> 29;
}

static uint32_t tag_of(uint64_t hash)
{
    return (uint32_t)(hash >> (64 - TAG_BITS));
}

/* Where the key is in the index, or where it would be: a free spot. */
static uint32_t find_spot(const struct memory *memory, struct key key, uint64_t hash)
{
    uint32_t mask = (1u << memory->bits) - 1, at = (uint32_t)hash & mask;
    for (;; at = (at + 1) & mask) {
        struct spot spot = memory->index[at];
        if (spot.number == 0 || (spot.tag == tag_of(hash) &&
                                 same_key(slot_at(memory, spot.number - 1)->key, key)))
            return at;
    }
}

static const struct slot *recall(const struct memory *memory, struct words words)
{
    uint32_t lengths = memory->lengths[words.low & (STARTS - 1)];
    for (; lengths != 0; lengths &= lengths - 1) {
        struct key key =
            key_of(words.low, words.high, (uint32_t)__builtin_ctz(lengths));
        uint32_t at = find_spot(memory, key, hash_of(key));
        if (memory->index[at].number != 0)
            return slot_at(memory, memory->index[at].number - 1);
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
static void note_length(struct memory *memory, uint64_t start, uint32_t length)
{
    uint64_t step = length == 1 ? 1 << 8 : STARTS;
    for (uint64_t i = start & (step - 1); i < STARTS; i += step)
        memory->lengths[i] = (uint16_t)(memory->lengths[i] | 1u << length);
}

static void put_spot(struct memory *memory, struct key key, uint32_t number)
{
    uint64_t hash = hash_of(key);
    uint32_t at = find_spot(memory, key, hash);
    memory->index[at].tag = tag_of(hash) & ((1u << TAG_BITS) - 1);
    memory->index[at].number = (number + 1) & ((1u << (32 - TAG_BITS)) - 1);
}

static void enlarge_index(struct arena *arena, struct memory *memory)
{
    memory->bits++;
    memory->index = arena_new_array(arena, struct spot, (size_t)1 << memory->bits);
    for (uint32_t i = 0; i < memory->count; i++)
        put_spot(memory, slot_at(memory, i)->key, i);
}

/* A key that is not in it. */
static void add_slot(struct arena *arena, struct memory *memory,
                     const struct slot *slot)
{
    if (memory->count == 1u << MOST_BITS)
        forget(arena, memory);
    if (memory->count >= (1u << memory->bits) / 2)
        enlarge_index(arena, memory);
    struct slot **chunk = &memory->chunks[memory->count / CHUNK];
    if (!*chunk)
        *chunk = arena_new_array(arena, struct slot, CHUNK);
    (*chunk)[memory->count % CHUNK] = *slot;
    put_spot(memory, slot->key, memory->count);
    memory->count++;
    note_length(memory, slot->key.low & (STARTS - 1), (uint32_t)(slot->key.high >> 56));
}

static void remember(struct arena *arena, struct memory *memory, const uint8_t *bytes,
                     struct words words, const struct insn *insn)
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
    struct slot slot = {key_of(words.low, words.high, length), kept};
    add_slot(arena, memory, &slot);
}

/* Zeros stand behind the end of the section. */
static uint64_t word_at(const uint8_t *bytes, uint64_t size, uint64_t at)
{
    if (size >= at + 8)
        return load_le(bytes + at, 8);
    return size > at ? load_le(bytes + at, (uint32_t)(size - at)) : 0;
}

/* What is known already is looked for first. */
static bool decode(struct decoder *decoder, const struct memory *known,
                   struct memory *memory, struct bytes bytes, struct insn *out)
{
    uint32_t offset = out->offset;
    struct words words = {word_at(bytes.at, bytes.size, 0),
                          word_at(bytes.at, bytes.size, 8)};
    const struct slot *slot = known ? recall(known, words) : NULL;
    if (!slot)
        slot = recall(memory, words);
    if (slot && slot->insn.length <= bytes.size) {
        place(slot, bytes.at, offset, out);
        return true;
    }
    if (!decoder->target->decode(bytes.at, bytes.size, offset, out))
        return false;
    if (!slot)
        remember(decoder->arena, memory, bytes.at, words, out);
    return true;
}

bool decoder_decode(struct decoder *decoder, const uint8_t *bytes, uint64_t size,
                    uint32_t offset, struct insn *out)
{
    if (!decoder->remembers)
        return decoder->target->decode(bytes, size, offset, out);
    out->offset = offset;
    return decode(decoder, decoder->known ? &decoder->known->code : NULL,
                  &decoder->code, (struct bytes){bytes, size}, out);
}

bool decoder_try(struct decoder *decoder, const uint8_t *bytes, uint64_t size,
                 uint32_t offset, struct insn *out)
{
    if (!decoder->remembers)
        return decoder->target->decode(bytes, size, offset, out);
    out->offset = offset;
    return decode(decoder, decoder->known ? &decoder->known->anything : NULL,
                  &decoder->anything, (struct bytes){bytes, size}, out);
}

/* --- several workers --- */

void decoder_share(struct decoder *decoder, uint32_t workers)
{
    for (uint32_t i = 0; i < workers && i < MOST_WORKERS && workers > 1; i++) {
        struct arena *arena = arena_new();
        decoder->workers[i] = decoder_new(arena, decoder->target);
        decoder->workers[i]->known = decoder;
    }
}

struct decoder *decoder_of(struct decoder *decoder, uint32_t worker)
{
    return decoder->workers[worker] ? decoder->workers[worker] : decoder;
}

static void take_over(struct arena *arena, struct memory *memory,
                      const struct memory *from)
{
    for (uint32_t i = 0; i < from->count; i++) {
        const struct slot *slot = slot_at(from, i);
        uint32_t at = find_spot(memory, slot->key, hash_of(slot->key));
        if (memory->index[at].number == 0)
            add_slot(arena, memory, slot);
    }
}

void decoder_settle(struct decoder *decoder)
{
    for (uint32_t i = 0; i < MOST_WORKERS && decoder->workers[i]; i++) {
        take_over(decoder->arena, &decoder->code, &decoder->workers[i]->code);
        take_over(decoder->arena, &decoder->anything, &decoder->workers[i]->anything);
        arena_free(decoder->workers[i]->arena);
        decoder->workers[i] = NULL;
    }
}
