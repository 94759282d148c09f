/* SPDX-License-Identifier: MIT
 *
 * Response files. @FILE on the command line stands for the words of FILE: separated by
 * white space, '…' and "…" keep it, a backslash keeps the next character. Files may
 * name further files; a list of open files serves for a call stack, and its depth is
 * bounded so that a file which names itself ends in a message.
 *
 * Reference: GCC manual, "Overall Options", @file. Unlike there, a file that is not
 * there is an error: an input that starts with '@' is less likely than a mistyped name
 * (and can be given as ./@name).
 */
#include "options_parts.h"

#include "mo/array.h"
#include "mo/bytes.h"
#include "mo/object.h"

#include <ctype.h>

enum { DEEPEST = 16 };

struct words {
    struct text_list list;
    uint32_t next;
};

static bool is_blank(uint8_t byte)
{
    return isspace(byte) != 0;
}

/* Reads one word at *at, which is not a blank; *at ends behind it. False at a quote
 * that is not closed. */
static bool read_word(struct buffer *word, struct bytes text, uint64_t *at)
{
    uint8_t quote = 0;
    uint64_t i = *at;
    for (; i < text.size && (quote || !is_blank(text.at[i])); i++) {
        uint8_t byte = text.at[i];
        if (byte == quote)
            quote = 0;
        else if (!quote && (byte == '\'' || byte == '"'))
            quote = byte;
        else if (byte == '\\' && quote != '\'' && i + 1 < text.size)
            buffer_u8(word, text.at[++i]);
        else
            buffer_u8(word, byte);
    }
    buffer_u8(word, '\0');
    *at = i;
    return quote == 0;
}

bool options_split(struct arena *session, const char *where, struct bytes text,
                   struct text_list *out, struct error *err)
{
    *out = (struct text_list){0};
    for (uint64_t at = 0; at < text.size;) {
        if (is_blank(text.at[at])) {
            at++;
            continue;
        }
        struct buffer word = buffer_new(session);
        if (!read_word(&word, text, &at))
            return fail(err, NULL, "%s: a quote is not closed", where);
        array_push(session, out, (const char *)word.at);
    }
    return true;
}

static bool read_words(struct arena *session, const char *path, struct words *out,
                       struct error *err)
{
    struct bytes text = {0};
    *out = (struct words){0};
    return file_read(session, path, &text, err) &&
           options_split(session, path, text, &out->list, err);
}

bool options_expand(struct arena *session, int argc, char *const *argv,
                    const char *const **out, uint32_t *count, struct error *err)
{
    struct words open[DEEPEST] = {0};
    uint32_t depth = 1;
    for (int i = 1; i < argc; i++)
        array_push(session, &open[0].list, (const char *)argv[i]);

    struct text_list result = {0};
    while (depth > 0) {
        struct words *words = &open[depth - 1];
        if (words->next == words->list.count) {
            depth--;
            continue;
        }
        const char *word = words->list.items[words->next++];
        if (word[0] != '@' || word[1] == '\0') {
            array_push(session, &result, word);
            continue;
        }
        if (depth == DEEPEST)
            return fail(err, NULL, "%s: response files name each other too deeply",
                        word);
        if (!read_words(session, word + 1, &open[depth], err))
            return false;
        depth++;
    }
    *out = result.items;
    *count = result.count;
    return true;
}
