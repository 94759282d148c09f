/* SPDX-License-Identifier: MIT
 *
 * --help, made from the table of options, and the hint for a mistyped option.
 */
#include "options_parts.h"

#include "mo/bytes.h"

#include <string.h>

enum { HELP_COLUMN = 25, HELP_WIDTH = 80 };

static const char intro[] =
    "usage: mo-link [OPTIONS] INPUT... -o PATH\n"
    "       mo-link [OPTIONS] -- COMMAND\n"
    "\n"
    "Makes programs smaller after the compiler has finished: finds instruction "
    "sequences\n"
    "that repeat anywhere in a set of objects and moves each into one shared helper.\n"
    "INPUT is an object (.o) or an archive (.a), for AArch64 or x86-64; @FILE stands "
    "for\n"
    "the words in FILE.\n"
    "\n"
    "Examples:\n"
    "  Outline a whole program, link the one object that comes out, and see the gain:\n"
    "    mo-link --outline --reruns=2 -R *.o libfoo.a -o all && cc all -o prog\n"
    "  Keep one object per input, so that the build goes on as it was:\n"
    "    mo-link --outline *.o libfoo.a -o small/ && cc small/*.o small/libfoo.a -o "
    "prog\n"
    "  Outline whatever a build links, with the build as it is:\n"
    "    mo-link -- make        (or add -Blibexec/mo-link to the linker flags)\n"
    "    (the only right way if the link uses --gc-sections: helpers made beforehand\n"
    "    keep alive what it would drop)\n"
    "  Ask why a function did not get smaller:\n"
    "    mo-link --explain=main *.o\n";

static const char outro[] =
    "\n"
    "Exit status: 0 success, 1 bad input or a failed write (nothing is written then),\n"
    "2 a command line that makes no sense, 3 --max-growth is exceeded (only the report\n"
    "is written then).\n";

static const char *const headings[GROUP_COUNT] = {
    [GROUP_WORK] = "What to do",
    [GROUP_OUTPUT] = "What to write",
    [GROUP_CHOICE] = "How careful to be",
    [GROUP_LOOK] = "What to show",
    [GROUP_GENERAL] = "General",
    [GROUP_PROOFS] = "Proofs, for tests of mo-link itself",
};

static void put(struct buffer *text, const char *words)
{
    buffer_put(text, words, strlen(words));
}

/* The sentence, broken at blanks, from HELP_COLUMN on. */
static void put_wrapped(struct buffer *text, const char *sentence)
{
    size_t width = HELP_WIDTH - HELP_COLUMN;
    while (strlen(sentence) > width) {
        size_t cut = width;
        while (cut > 1 && sentence[cut] != ' ')
            cut--;
        buffer_put(text, sentence, cut);
        buffer_u8(text, '\n');
        buffer_fill(text, ' ', HELP_COLUMN);
        sentence += cut + 1;
    }
    put(text, sentence);
    buffer_u8(text, '\n');
}

static void put_option(struct arena *session, struct buffer *text,
                       const struct option *option)
{
    const char *equals = option->value && option->value[0] != '[' ? "=" : "";
    const char *spelt =
        arena_format(session, "  %s%s%s%s%s", option->letter ? option->letter : "",
                     option->letter ? ", " : "", option->name, equals,
                     option->value ? option->value : "");
    put(text, spelt);
    if (strlen(spelt) + 2 > HELP_COLUMN) {
        buffer_u8(text, '\n');
        buffer_fill(text, ' ', HELP_COLUMN);
    } else {
        buffer_fill(text, ' ', HELP_COLUMN - strlen(spelt));
    }
    put_wrapped(text, option->help);
}

const char *options_help(struct arena *session)
{
    struct buffer text = buffer_new(session);
    put(&text, intro);
    for (uint32_t group = 0; group < GROUP_COUNT; group++) {
        put(&text, arena_format(session, "\n%s:\n", headings[group]));
        for (uint32_t i = 0; i < OPTION_COUNT; i++) {
            if (options_table[i].group == group)
                put_option(session, &text, &options_table[i]);
        }
    }
    put(&text, outro);
    buffer_u8(&text, '\0');
    return (const char *)text.at;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Edits (insert, delete, replace one character) that turn `a` into `b`. */
static size_t distance(struct arena *session, const char *a, const char *b)
{
    size_t width = strlen(b);
    size_t *row = arena_new_array(session, size_t, width + 1);
    for (size_t j = 0; j <= width; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= width; j++) {
            size_t change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = least(change, least(row[j], row[j - 1]) + 1);
        }
    }
    return row[width];
}

/* A third of the letters may be wrong; more is no likeness but chance. */
const char *options_nearest(struct arena *session, const char *argument)
{
    size_t size = strcspn(argument, "=");
    if (size < 4 || size > 40)
        return NULL;
    const char *name = arena_format(session, "%.*s", (int)size, argument);
    const char *best = NULL;
    size_t best_distance = size / 3 + 1;
    for (uint32_t i = 0; i < OPTION_COUNT; i++) {
        size_t edits = distance(session, name, options_table[i].name);
        if (edits < best_distance) {
            best_distance = edits;
            best = options_table[i].name;
        }
    }
    return best;
}
