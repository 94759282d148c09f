/* SPDX-License-Identifier: MIT
 *
 * Names come from files and may hold any bytes; what is not UTF-8 is written as U+FFFD,
 * so that every reader accepts the result. Reference: RFC 8259 section 7, RFC 3629.
 */
#include "report_parts.h"

#include <stdio.h>
#include <string.h>

/* Bytes of the UTF-8 character at `at`, or 0 when there is none (RFC 3629 section 4).
 * The string's NUL ends every sequence too early, so nothing is read behind it. */
static size_t utf8_size(const uint8_t *at)
{
    uint8_t low = 0x80, high = 0xbf;
    size_t size;
    if (at[0] < 0x80)
        return 1;
    if (at[0] >= 0xc2 && at[0] <= 0xdf)
        size = 2;
    else if (at[0] >= 0xe0 && at[0] <= 0xef)
        size = 3;
    else if (at[0] >= 0xf0 && at[0] <= 0xf4)
        size = 4;
    else
        return 0;
    if (at[0] == 0xe0)
        low = 0xa0; /* longer than needed below */
    if (at[0] == 0xf0)
        low = 0x90;
    if (at[0] == 0xed)
        high = 0x9f; /* surrogates above */
    if (at[0] == 0xf4)
        high = 0x8f;
    if (at[1] < low || at[1] > high)
        return 0;
    for (size_t i = 2; i < size; i++) {
        if (at[i] < 0x80 || at[i] > 0xbf)
            return 0;
    }
    return size;
}

void put_json_string(struct buffer *out, const char *string)
{
    buffer_u8(out, '"');
    for (const uint8_t *at = (const uint8_t *)string; *at;) {
        size_t size = utf8_size(at);
        char escaped[8];
        if (size == 0)
            snprintf(escaped, sizeof escaped, "\\ufffd");
        else if (*at == '"' || *at == '\\')
            snprintf(escaped, sizeof escaped, "\\%c", *at);
        else if (*at < 0x20 || *at == 0x7f)
            snprintf(escaped, sizeof escaped, "\\u%04x", (unsigned)*at);
        else
            escaped[0] = '\0';
        if (escaped[0])
            buffer_put(out, escaped, strlen(escaped));
        else
            buffer_put(out, at, size);
        at += size == 0 ? 1 : size;
    }
    buffer_u8(out, '"');
}
