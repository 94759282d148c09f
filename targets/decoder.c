/* SPDX-License-Identifier: MIT
 *
 * An instruction is remembered under its bytes, and found again by trying, for bytes
 * that start alike, the lengths that such keys have had, seldom more than one or two:
 * no encoding is the beginning of another one, so the first that fits is the right one.
 * Only its place differs: a PC-relative target is remembered as a distance.
 *
 * Where a direct jump or call leads changes nothing else about it, and hardly two of
 * them lead equally far. So their keys end before the displacement, which is what such
 * an instruction ends in.
 *
 * What is remembered lies in the order in which it was met, and is met in the same
 * order the next time. Machines with instructions of one length decode faster than this
 * finds.
 *
 * Any number of workers look and remember at once. A slot is written first and then put
 * into the index, in one step, and stays what it is. Who finds that another worker was
 * faster leaves a slot that nobody finds. While they work there is as much room as
 * there is: what does not fit is not remembered. The index grows, or all is forgotten,
 * only where no one else is at work (decoder_expect()).
 */
#include "mo/decoder.h"

#include "mo/array.h"
#include "mo/table.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum {
    MOST_BITS = 18,     /* instructions at most */
    CHUNK = 1024,       /* instructions that get their memory together */
    FIRST_INDEX = 12,   /* bits */
    CODE_PER_SLOT = 32, /* bytes of code with one new instruction, hardly fewer … */
    TRIES_PER_SLOT = 8, /* … and the same where it is tried at every offset */
    STARTS = 1 << 16,   /* of bytes: see start_of() */
    LONGEST = MOST_INSN_BYTES /* bytes of a key */
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
enum { LINE = 64 }; /* bytes of memory that come together: a slot's */

/* Where a key leads, in one word: the number of a slot, from 1 on (0: free); above it
 * how long the instruction is, so that the processor can go on with the next one while
 * it waits for the slot; and a tag. Most keys that are not looked for have another one.
 */
typedef uint32_t spot;
enum {
    NUMBER_BITS = MOST_BITS + 1,
    SIZE_BITS = 4,
    TAG_SHIFT = NUMBER_BITS + SIZE_BITS
};

struct memory {
    struct slot *_Atomic chunks[(1 << MOST_BITS) / CHUNK];
    atomic_uint count;   /* of slots; more than `room` when there was none */
    uint32_t room;       /* slots, until the index grows */
    _Atomic spot *index; /* by hash; who finds a spot taken has the next one */
    uint32_t bits;       /* of hashes */
    /* A bit for each length of a key: by the first two bytes if it has no more, … */
    atomic_ushort *short_lengths;
    atomic_ushort *lengths; /* … and by the first three, which say more */
};

struct decoder {
    struct arena *arena;
    pthread_mutex_t lock; /* of the arena, while workers work */
    const struct target *target;
    bool remembers;
    struct memory code, anything; /* apart: most of the latter is met in one place */
    struct table *ranges;         /* tried at every offset: their bytes -> … */
    array_of(const struct attempt *) attempts; /* … what came of it */
};

static void make_index(struct arena *arena, struct memory *memory, uint32_t bits)
{
    memory->bits = bits;
    memory->index = arena_new_array(arena, _Atomic spot, (size_t)1 << bits);
    memory->room = 1u << (bits - 1);
    if (memory->room > 1u << MOST_BITS)
        memory->room = 1u << MOST_BITS;
}

static void forget(struct arena *arena, struct memory *memory)
{
    memory->count = 0;
    make_index(arena, memory, FIRST_INDEX);
    memory->short_lengths = arena_new_array(arena, atomic_ushort, STARTS);
    memory->lengths = arena_new_array(arena, atomic_ushort, STARTS);
}

struct decoder *decoder_new(struct arena *arena, const struct target *target)
{
    struct decoder *decoder = arena_new_one(arena, struct decoder);
    decoder->arena = arena;
    decoder->target = target;
    decoder->remembers = target->code_align == 1;
    if (decoder->remembers) {
        pthread_mutex_init(&decoder->lock, NULL);
        forget(arena, &decoder->code);
        forget(arena, &decoder->anything);
        decoder->ranges = table_new(arena);
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

static void place(const struct slot *slot, uint32_t length, const uint8_t *bytes,
                  uint32_t offset, struct insn *out)
{
    *out = slot->insn;
    out->length = (uint8_t)length; /* known before the slot is */
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

static spot spot_of(uint64_t hash, uint32_t size, uint32_t number)
{
    return (spot)(hash >> (32 + TAG_SHIFT)) << TAG_SHIFT | size << NUMBER_BITS |
           (number + 1);
}

static uint32_t size_of(spot of)
{
    return of >> NUMBER_BITS & ((1u << SIZE_BITS) - 1);
}

static uint32_t number_of(spot of)
{
    return (of & ((1u << NUMBER_BITS) - 1)) - 1;
}

/* Where the key is in the index, or where it would be, and what stands there: 0 if it
 * is a free spot. */
static _Atomic spot *find_spot(const struct memory *memory, struct key key,
                               uint64_t hash, spot *found)
{
    uint32_t mask = (1u << memory->bits) - 1, at = (uint32_t)hash & mask;
    for (;; at = (at + 1) & mask) {
        *found = atomic_load_explicit(&memory->index[at], memory_order_acquire);
        if (*found == 0 || (*found >> TAG_SHIFT == hash >> (32 + TAG_SHIFT) &&
                            same_key(slot_at(memory, number_of(*found))->key, key)))
            return &memory->index[at];
    }
}

/* Where bytes that start alike are: the first three tell opcode and operands apart,
 * after a prefix. Others may be there, too. */
static uint32_t start_of(uint64_t low)
{
    return ((uint32_t)(low & 0xffffff) * UINT32_C(0x9e3779b1)) >> 16;
}

/* The spot, or 0. */
static spot recall(const struct memory *memory, struct words words)
{
    uint32_t lengths = atomic_load_explicit(&memory->lengths[start_of(words.low)],
                                            memory_order_relaxed);
    lengths |= atomic_load_explicit(&memory->short_lengths[words.low & (STARTS - 1)],
                                    memory_order_relaxed);
    for (; lengths != 0; lengths &= lengths - 1) {
        struct key key =
            key_of(words.low, words.high, (uint32_t)__builtin_ctz(lengths));
        spot found;
        find_spot(memory, key, hash_of(key), &found);
        if (found != 0)
            return found;
    }
    return 0;
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

static void add_length(atomic_ushort *lengths, uint32_t length)
{
    atomic_fetch_or_explicit(lengths, (unsigned short)(1u << length),
                             memory_order_relaxed);
}

/* What stands behind a key of one byte is no part of it. */
static void note_length(struct memory *memory, uint64_t low, uint32_t length)
{
    uint64_t step = length == 1 ? 1 << 8 : STARTS;
    if (length > 2)
        add_length(&memory->lengths[start_of(low)], length);
    for (uint64_t i = low & (step - 1); length <= 2 && i < STARTS; i += step)
        add_length(&memory->short_lengths[i], length);
}

/* Unless the key is there by now. */
static void put_spot(struct memory *memory, const struct slot *slot, uint32_t number)
{
    uint64_t hash = hash_of(slot->key);
    spot found, wanted = spot_of(hash, slot->insn.length, number);
    for (;;) {
        _Atomic spot *at = find_spot(memory, slot->key, hash, &found);
        if (found != 0 || atomic_compare_exchange_strong_explicit(at, &found, wanted,
                                                                  memory_order_release,
                                                                  memory_order_relaxed))
            return;
    }
}

static struct slot *new_chunk(struct arena *arena)
{
    uint8_t *memory = arena_alloc(arena, CHUNK * sizeof(struct slot) + LINE);
    return (struct slot *)(memory + (-(uintptr_t)memory & (LINE - 1)));
}

/* Room for a slot, or NULL. */
static struct slot *new_slot(struct decoder *decoder, struct memory *memory,
                             uint32_t *number)
{
    *number = atomic_fetch_add_explicit(&memory->count, 1, memory_order_relaxed);
    if (*number >= memory->room) {
        memory->count = memory->room;
        return NULL;
    }
    struct slot *_Atomic *chunk = &memory->chunks[*number / CHUNK];
    if (!*chunk) {
        pthread_mutex_lock(&decoder->lock);
        if (!*chunk)
            *chunk = new_chunk(decoder->arena);
        pthread_mutex_unlock(&decoder->lock);
    }
    return &(*chunk)[*number % CHUNK];
}

static void remember(struct decoder *decoder, struct memory *memory,
                     const uint8_t *bytes, struct words words, const struct insn *insn)
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
    uint32_t number;
    struct slot *slot = new_slot(decoder, memory, &number);
    if (!slot)
        return;
    *slot = (struct slot){key_of(words.low, words.high, length), kept};
    put_spot(memory, slot, number);
    note_length(memory, words.low, length);
}

/* Zeros stand behind the end of the section. */
static uint64_t word_at(const uint8_t *bytes, uint64_t size, uint64_t at)
{
    if (size >= at + 8)
        return load_le(bytes + at, 8);
    return size > at ? load_le(bytes + at, (uint32_t)(size - at)) : 0;
}

static bool decode(struct decoder *decoder, struct memory *memory, struct bytes bytes,
                   struct insn *out)
{
    uint32_t offset = out->offset;
    struct words words = {word_at(bytes.at, bytes.size, 0),
                          word_at(bytes.at, bytes.size, 8)};
    spot found = recall(memory, words);
    if (found != 0 && size_of(found) <= bytes.size) {
        place(slot_at(memory, number_of(found)), size_of(found), bytes.at, offset, out);
        return true;
    }
    if (!decoder->target->decode(bytes.at, bytes.size, offset, out))
        return false;
    if (found == 0)
        remember(decoder, memory, bytes.at, words, out);
    return true;
}

bool decoder_decode(struct decoder *decoder, const uint8_t *bytes, uint64_t size,
                    uint32_t offset, struct insn *out)
{
    if (!decoder->remembers)
        return decoder->target->decode(bytes, size, offset, out);
    out->offset = offset;
    return decode(decoder, &decoder->code, (struct bytes){bytes, size}, out);
}

bool decoder_try(struct decoder *decoder, const uint8_t *bytes, uint64_t size,
                 uint32_t offset, struct insn *out)
{
    if (!decoder->remembers)
        return decoder->target->decode(bytes, size, offset, out);
    out->offset = offset;
    return decode(decoder, &decoder->anything, (struct bytes){bytes, size}, out);
}

/* --- every offset --- */

/* All distances lead somewhere from one of these places: those up to 2 GB from the one in
 * the middle, and what is an instruction's length farther from the first one. */
static bool distance_of(struct decoder *decoder, struct bytes bytes, struct insn *insn,
                        int64_t *distance)
{
    const uint32_t places[] = {UINT32_C(1) << 31, 0};
    for (int i = 0; i < 2; i++) {
        if (!decoder_try(decoder, bytes.at, bytes.size, places[i], insn) ||
            !(insn->traits & INSN_PC_RELATIVE))
            return false;
        *distance = (int64_t)insn->target - places[i];
        if (insn->target != NO_INDEX)
            return true;
    }
    return false;
}

static struct attempt attempt_at(struct decoder *decoder, struct bytes bytes)
{
    struct insn insn = {0};
    struct attempt attempt = {0};
    attempt.relative = distance_of(decoder, bytes, &insn, &attempt.distance);
    attempt.length = insn.length;
    attempt.flow = insn.flow;
    return attempt;
}

static const struct attempt *known_range(struct decoder *decoder, struct bytes key)
{
    pthread_mutex_lock(&decoder->lock);
    uint32_t number = table_find(decoder->ranges, key.at, key.size);
    const struct attempt *known =
        number == NO_INDEX ? NULL : decoder->attempts.items[number];
    pthread_mutex_unlock(&decoder->lock);
    return known;
}

/* Two workers may have tried the same. */
static void note_range(struct decoder *decoder, struct bytes key,
                       const struct attempt *attempts)
{
    pthread_mutex_lock(&decoder->lock);
    if (table_intern(decoder->ranges, key.at, key.size) == decoder->attempts.count)
        array_push(decoder->arena, &decoder->attempts, attempts);
    pthread_mutex_unlock(&decoder->lock);
}

/* What an attempt may look at lies in the range, or at most an instruction behind it.
 * The key says where the range ends. */
static struct bytes key_of_range(struct decoder *decoder, struct bytes bytes,
                                 uint32_t start, uint32_t end)
{
    uint64_t behind = bytes.size - end;
    uint64_t size = end - start + (behind < LONGEST ? behind : LONGEST);
    pthread_mutex_lock(&decoder->lock);
    uint8_t *key = arena_alloc(decoder->arena, size + sizeof end);
    pthread_mutex_unlock(&decoder->lock);
    store_le(key, sizeof end, end - start);
    memcpy(key + sizeof end, bytes.at + start, size);
    return (struct bytes){key, size + sizeof end};
}

const struct attempt *decoder_try_all(struct decoder *decoder, struct bytes bytes,
                                      uint32_t start, uint32_t end)
{
    if (!decoder->remembers)
        return NULL;
    struct bytes key = key_of_range(decoder, bytes, start, end);
    const struct attempt *known = known_range(decoder, key);
    if (known)
        return known;
    pthread_mutex_lock(&decoder->lock);
    struct attempt *attempts =
        arena_new_array(decoder->arena, struct attempt, end - start);
    pthread_mutex_unlock(&decoder->lock);
    for (uint32_t at = start; at < end; at++)
        attempts[at - start] =
            attempt_at(decoder, (struct bytes){bytes.at + at, bytes.size - at});
    note_range(decoder, key, attempts);
    return attempts;
}

/* --- room --- */

/* A quarter of the room is left, and there is as much as is expected of new code. */
static bool has_room(const struct memory *memory, uint32_t room, uint64_t more)
{
    return room >= 1u << MOST_BITS ||
           (more <= room && memory->count <= room - room / 4);
}

static void expect(struct arena *arena, struct memory *memory, uint64_t more)
{
    if (memory->count == 1u << MOST_BITS)
        forget(arena, memory);
    uint32_t bits = memory->bits;
    while (!has_room(memory, 1u << (bits - 1), more))
        bits++;
    if (bits == memory->bits)
        return;
    make_index(arena, memory, bits);
    for (uint32_t i = 0; i < memory->count; i++)
        put_spot(memory, slot_at(memory, i), i);
}

void decoder_expect(struct decoder *decoder, uint64_t code, uint64_t anything)
{
    if (!decoder->remembers)
        return;
    expect(decoder->arena, &decoder->code, code / CODE_PER_SLOT);
    expect(decoder->arena, &decoder->anything, anything / TRIES_PER_SLOT);
}
