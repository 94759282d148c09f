/* SPDX-License-Identifier: MIT
 *
 * Reading foreign bytes and building new ones, little-endian. A cursor never reads outside
 * its range: the first read that would returns 0, and so do all reads after it; check
 * cursor_ok() once per record.
 */
#ifndef MO_BYTES_H
#define MO_BYTES_H

#include "mo/arena.h"

bool bytes_equal(struct bytes a, struct bytes b);

struct cursor {
    const uint8_t *at;
    uint64_t position; /* next byte to read */
    uint64_t size;
    bool failed;
};

struct cursor cursor_of(struct bytes bytes);
bool cursor_ok(const struct cursor *cursor);
uint64_t cursor_left(const struct cursor *cursor); /* 0 after a failure */
uint8_t cursor_u8(struct cursor *cursor);
uint16_t cursor_u16(struct cursor *cursor);
uint32_t cursor_u32(struct cursor *cursor);
uint64_t cursor_u64(struct cursor *cursor);
uint64_t cursor_uleb(struct cursor *cursor); /* DWARF 5, 7.6; more than 64 bits fails */
int64_t cursor_sleb(struct cursor *cursor);
struct bytes cursor_take(struct cursor *cursor, uint64_t size);
const char *cursor_string(struct cursor *cursor); /* up to and over the NUL; "" on failure */

/* A growing run of bytes in an arena. */
struct buffer {
    struct arena *arena;
    uint8_t *at;
    uint64_t size, capacity;
};

struct buffer buffer_new(struct arena *arena);
struct bytes buffer_bytes(const struct buffer *buffer);
void buffer_put(struct buffer *buffer, const void *bytes, uint64_t size);
void buffer_fill(struct buffer *buffer, uint8_t value, uint64_t count);
void buffer_u8(struct buffer *buffer, uint8_t value);
void buffer_u16(struct buffer *buffer, uint16_t value);
void buffer_u32(struct buffer *buffer, uint32_t value);
void buffer_u64(struct buffer *buffer, uint64_t value);
void buffer_uleb(struct buffer *buffer, uint64_t value);
void buffer_sleb(struct buffer *buffer, int64_t value);
void buffer_string(struct buffer *buffer, const char *text); /* with its NUL */

/* Little-endian words in place; `size` is 1, 2, 4 or 8. */
uint64_t load_le(const uint8_t *at, uint32_t size);
int64_t load_le_signed(const uint8_t *at, uint32_t size);
void store_le(uint8_t *at, uint32_t size, uint64_t value);

/* The sum as two's complement has it: what linkers compute, whatever the input says. */
int64_t wrapping_add(int64_t a, int64_t b);

/* Value fits a field of `bits` (1 to 64) bits. */
bool fits_signed(int64_t value, uint32_t bits);
bool fits_unsigned(uint64_t value, uint32_t bits);

/* Smallest multiple of `align` (a power of two; 0 counts as 1) not below `value`. */
uint64_t align_up(uint64_t value, uint64_t align);

#endif
