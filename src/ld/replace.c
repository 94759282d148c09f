/* SPDX-License-Identifier: MIT
 *
 * Command lines for the two links.
 *
 * The first is the user's, word for word, but for what prints on standard output, where
 * the answers to our questions will stand. The second has new paths in the places of
 * the old ones, so that order, groups, --whole-archive, --as-needed and --start-lib mean
 * what they meant, and the helpers in front of the first new file: what helpers refer to
 * must be wanted no later than their sites wanted it.
 */
#include "ld.h"

#include "mo/array.h"

#include <string.h>
#include <unistd.h>

static struct arguments start(struct arena *session, const char *real)
{
    struct arguments arguments = {0};
    array_push(session, &arguments, real);
    return arguments;
}

/* Twice: GNU ld names members only then. mold has no -t. */
static void ask(struct arena *session, struct arguments *arguments,
                const struct command *command, const char *map)
{
    array_push(session, arguments, "--trace");
    array_push(session, arguments, "--trace");
    if (command->gc_sections)
        array_push(session, arguments, "--print-gc-sections");
    if (map)
        array_push(session, arguments, arena_format(session, "-Map=%s", map));
}

static bool prints(const struct word *word)
{
    return word->meaning == MEANS_PRINT || word->meaning == MEANS_PRINT_MAP ||
           word->meaning == MEANS_PRINT_GC || word->meaning == MEANS_INFORM;
}

struct arguments arguments_first(struct arena *session, const char *real,
                                 const struct command *command, const char *map)
{
    struct arguments arguments = start(session, real);
    for (uint32_t i = 0; i < command->count; i++) {
        if (!prints(&command->words[i]))
            array_push(session, &arguments, command->words[i].text);
    }
    ask(session, &arguments, command, map);
    return arguments;
}

/* "-l" and its value become one path. */
static void push_word(struct arena *session, struct arguments *arguments,
                      const struct command *command, uint32_t i, const char *new_path)
{
    const struct word *word = &command->words[i];
    bool before_name = word->role == WORD_OPTION && word->meaning == MEANS_LIBRARY;
    if (word->meaning == MEANS_OUTPUT || word->meaning == MEANS_SIDE || before_name)
        return;
    if (!new_path && word->role == WORD_LIBRARY_NAME)
        array_push(session, arguments, arena_format(session, "-l%s", word->text));
    else
        array_push(session, arguments, new_path ? new_path : word->text);
}

struct arguments arguments_second(struct arena *session, const char *real,
                                  const struct command *command,
                                  const struct choice *choice, const char *helpers,
                                  const char *output, const char *map)
{
    struct arguments arguments = start(session, real);
    bool lazy = false, placed = access(helpers, F_OK) != 0;
    for (uint32_t i = 0; i < command->count; i++) {
        enum word_meaning meaning = command->words[i].meaning;
        uint32_t file = choice->file_of[i];
        const char *new_path = file == NO_INDEX ? NULL : choice->files[file].new_path;
        if (new_path && access(new_path, F_OK) != 0)
            new_path = NULL;
        if ((new_path || meaning == MEANS_LAZY) && !lazy && !placed) {
            array_push(session, &arguments, helpers);
            placed = true;
        }
        lazy = meaning == MEANS_LAZY || (lazy && meaning != MEANS_EAGER);
        push_word(session, &arguments, command, i, new_path);
    }
    ask(session, &arguments, command, map);
    array_push(session, &arguments, "-o");
    array_push(session, &arguments, output);
    return arguments;
}
