/* SPDX-License-Identifier: MIT */
#include "mo/bytes.h"

#include <assert.h>
#include <string.h>

bool bytes_equal(struct bytes a, struct bytes b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.at, b.at, a.size) == 0);
}

struct cursor cursor_of(struct bytes bytes)
{
    return (struct cursor){.at = bytes.at, .size = bytes.at ? bytes.size : 0};
}

bool cursor_ok(const struct cursor *cursor)
{
    return !cursor->failed;
}

uint64_t cursor_left(const struct cursor *cursor)
{
    return cursor->failed ? 0 : cursor->size - cursor->position;
}

/* True when `size` more bytes are there; else the cursor has failed. */
static bool available(struct cursor *cursor, uint64_t size)
{
    if (cursor_left(cursor) < size || cursor->failed)
        cursor->failed = true;
    return !cursor->failed;
}

static uint64_t take_word(struct cursor *cursor, uint32_t size)
{
    if (!available(cursor, size))
        return 0;
    uint64_t value = load_le(cursor->at + cursor->position, size);
    cursor->position += size;
    return value;
}

uint8_t cursor_u8(struct cursor *cursor)
{
    return (uint8_t)take_word(cursor, 1);
}

uint16_t cursor_u16(struct cursor *cursor)
{
    return (uint16_t)take_word(cursor, 2);
}

uint32_t cursor_u32(struct cursor *cursor)
{
    return (uint32_t)take_word(cursor, 4);
}

uint64_t cursor_u64(struct cursor *cursor)
{
    return take_word(cursor, 8);
}

/* Reads the groups of seven bits; *shift is the number of bits read, *last the final
 * byte. */
static uint64_t take_leb(struct cursor *cursor, uint32_t *shift, uint8_t *last)
{
    uint64_t value = 0;
    *shift = 0;
    do {
        *last = cursor_u8(cursor);
        if (*shift < 64)
            value |= (uint64_t)(*last & 0x7f) << *shift;
        *shift += 7;
        if (*shift > 70)
            cursor->failed = true;
    } while ((*last & 0x80) && !cursor->failed);
    return cursor->failed ? 0 : value;
}

uint64_t cursor_uleb(struct cursor *cursor)
{
    uint32_t shift;
    uint8_t last;
    return take_leb(cursor, &shift, &last);
}

int64_t cursor_sleb(struct cursor *cursor)
{
    uint32_t shift;
    uint8_t last;
    uint64_t value = take_leb(cursor, &shift, &last);
    if (!cursor->failed && shift < 64 && (last & 0x40))
        value |= UINT64_MAX << shift;
    return (int64_t)value;
}

struct bytes cursor_take(struct cursor *cursor, uint64_t size)
{
    if (!available(cursor, size))
        return (struct bytes){0};
    struct bytes taken = {cursor->at + cursor->position, size};
    cursor->position += size;
    return taken;
}

const char *cursor_string(struct cursor *cursor)
{
    uint64_t left = cursor_left(cursor);
    const uint8_t *start = left ? cursor->at + cursor->position : NULL;
    const uint8_t *end = left ? memchr(start, 0, left) : NULL;
    if (!end) {
        cursor->failed = true;
        return "";
    }
    cursor->position += (uint64_t)(end - start) + 1;
    return (const char *)start;
}

struct buffer buffer_new(struct arena *arena)
{
    return (struct buffer){.arena = arena};
}

struct bytes buffer_bytes(const struct buffer *buffer)
{
    return (struct bytes){buffer->at ? buffer->at : (const uint8_t *)"", buffer->size};
}

/* Room for `size` more bytes; returns where they go and counts them as written. */
static uint8_t *extend(struct buffer *buffer, uint64_t size)
{
    if (buffer->capacity - buffer->size < size) {
        uint64_t wanted = buffer->capacity ? buffer->capacity * 2 : 64;
        while (wanted - buffer->size < size)
            wanted *= 2;
        buffer->at =
            arena_grow(buffer->arena, buffer->at, buffer->capacity, wanted);
        buffer->capacity = wanted;
    }
    uint8_t *start = buffer->at ? buffer->at + buffer->size : NULL;
    buffer->size += size;
    return start;
}

void buffer_put(struct buffer *buffer, const void *bytes, uint64_t size)
{
    uint8_t *to = extend(buffer, size);
    if (size)
        memcpy(to, bytes, size);
}

void buffer_fill(struct buffer *buffer, uint8_t value, uint64_t count)
{
    uint8_t *to = extend(buffer, count);
    if (count)
        memset(to, value, count);
}

static void put_word(struct buffer *buffer, uint32_t size, uint64_t value)
{
    store_le(extend(buffer, size), size, value);
}

void buffer_u8(struct buffer *buffer, uint8_t value)
{
    put_word(buffer, 1, value);
}

void buffer_u16(struct buffer *buffer, uint16_t value)
{
    put_word(buffer, 2, value);
}

void buffer_u32(struct buffer *buffer, uint32_t value)
{
    put_word(buffer, 4, value);
}

void buffer_u64(struct buffer *buffer, uint64_t value)
{
    put_word(buffer, 8, value);
}

void buffer_uleb(struct buffer *buffer, uint64_t value)
{
    do {
        uint8_t byte = value & 0x7f;
        value >>= 7;
        buffer_u8(buffer, (uint8_t)(byte | (value ? 0x80 : 0)));
    } while (value);
}

void buffer_sleb(struct buffer *buffer, int64_t value)
{
    for (;;) {
        uint8_t byte = (uint8_t)((uint64_t)value & 0x7f);
        /* An arithmetic shift, spelled so that it does not depend on the compiler. */
        value = value < 0 ? ~(~value >> 7) : value >> 7;
        bool done = (value == 0 && !(byte & 0x40)) || (value == -1 && (byte & 0x40));
        buffer_u8(buffer, (uint8_t)(byte | (done ? 0 : 0x80)));
        if (done)
            return;
    }
}

void buffer_string(struct buffer *buffer, const char *text)
{
    buffer_put(buffer, text, strlen(text) + 1);
}

/* Compilers see one load in this, but not in a loop of unknown length. */
static uint64_t load_four(const uint8_t *at)
{
    return at[0] | (uint64_t)at[1] << 8 | (uint64_t)at[2] << 16 | (uint64_t)at[3] << 24;
}

static uint64_t load_eight(const uint8_t *at)
{
    return at[0] | (uint64_t)at[1] << 8 | (uint64_t)at[2] << 16 |
           (uint64_t)at[3] << 24 | (uint64_t)at[4] << 32 | (uint64_t)at[5] << 40 |
           (uint64_t)at[6] << 48 | (uint64_t)at[7] << 56;
}

uint64_t load_le(const uint8_t *at, uint32_t size)
{
    if (size == 4)
        return load_four(at);
    if (size == 8)
        return load_eight(at);
    uint64_t value = 0;
    for (uint32_t i = 0; i < size; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

int64_t load_le_signed(const uint8_t *at, uint32_t size)
{
    uint64_t value = load_le(at, size);
    uint64_t sign = (uint64_t)1 << (8 * size - 1);
    return (int64_t)(size < 8 ? (value ^ sign) - sign : value);
}

static void store_four(uint8_t *at, uint64_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
    at[2] = (uint8_t)(value >> 16);
    at[3] = (uint8_t)(value >> 24);
}

void store_le(uint8_t *at, uint32_t size, uint64_t value)
{
    if (size == 8) {
        store_four(at, value);
        store_four(at + 4, value >> 32);
    } else if (size == 4) {
        store_four(at, value);
    } else {
        for (uint32_t i = 0; i < size; i++)
            at[i] = (uint8_t)(value >> (8 * i));
    }
}

int64_t wrapping_add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

bool fits_signed(int64_t value, uint32_t bits)
{
    assert(bits >= 1 && bits <= 64);
    if (bits == 64)
        return true;
    int64_t limit = (int64_t)1 << (bits - 1);
    return value >= -limit && value < limit;
}

bool fits_unsigned(uint64_t value, uint32_t bits)
{
    assert(bits >= 1 && bits <= 64);
    return bits == 64 || value < (uint64_t)1 << bits;
}

uint64_t align_up(uint64_t value, uint64_t align)
{
    return align > 1 ? (value + align - 1) & ~(align - 1) : value;
}
