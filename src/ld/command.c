/* SPDX-License-Identifier: MIT
 *
 * The words of a linker's command line, each with its role. Nothing is decided here
 * about an input: whether a word names one, and which file that is, the linker itself
 * will say (trace.c). So an unknown option does no harm.
 */
#include "ld.h"

#include "mo/array.h"

#include <ctype.h>
#include <string.h>

struct reading {
    struct arena *session;
    struct command command;
    array_of(struct word) words;
};

static void note_value(struct reading *reading, enum word_meaning meaning,
                       const char *value)
{
    struct command *command = &reading->command;
    switch (meaning) {
    case MEANS_OUTPUT: command->output = value; break;
    case MEANS_MAP: command->map = value; break;
    case MEANS_EMULATION: command->emulation = value; break;
    case MEANS_SCRIPT: array_push(reading->session, &command->scripts, value); break;
    case MEANS_WRAP: array_push(reading->session, &command->wrap, value); break;
    default: break;
    }
}

static void note_option(struct reading *reading, const struct word *word)
{
    struct command *command = &reading->command;
    switch (word->meaning) {
    case MEANS_RELOCATABLE: command->relocatable = true; break;
    case MEANS_GC: command->gc_sections = true; break;
    case MEANS_NO_GC: command->gc_sections = false; break;
    case MEANS_STRIP: command->strips_debug = true; break;
    case MEANS_PRINT_GC: command->prints = command->prints_gc = true; break;
    case MEANS_PRINT_MAP: command->prints = command->prints_map = true; break;
    case MEANS_PRINT:
    case MEANS_INFORM: command->prints = true; break;
    case MEANS_STRANGE: command->strange = word->text; break;
    default: break;
    }
}

static void push(struct reading *reading, struct word word)
{
    bool is_library = word.role == WORD_LIBRARY || word.role == WORD_LIBRARY_NAME;
    if (word.role == WORD_FILE || is_library)
        reading->command.file_count++;
    array_push(reading->session, &reading->words, word);
}

/* The option at `word`, and its value in `next` if it takes one from there. Returns how
 * many words that is. */
static uint32_t read_option(struct reading *reading, const char *word, const char *next)
{
    const char *value = NULL;
    struct known_option known = option_known(word, &value);
    bool is_library = known.meaning == MEANS_LIBRARY;
    bool apart = known.takes_value && !value && next;
    struct word option = {word, NULL, WORD_OPTION, known.meaning};
    if (is_library && value) {
        option.role = WORD_LIBRARY;
        option.library = value;
    }
    note_option(reading, &option);
    push(reading, option);
    if (apart) {
        enum word_role role = is_library ? WORD_LIBRARY_NAME : WORD_VALUE;
        push(reading, (struct word){next, is_library ? next : NULL, role,
                                    known.meaning});
        value = next;
    }
    if (value)
        note_value(reading, known.meaning, value);
    return apart ? 2 : 1;
}

struct command command_read(struct arena *session, const char *const *words,
                            uint32_t count)
{
    struct reading reading = {.session = session};
    reading.command.output = "a.out";
    for (uint32_t i = 0; i < count;) {
        const char *word = words[i];
        if (word[0] == '-' && word[1] != '\0') {
            i += read_option(&reading, word, i + 1 < count ? words[i + 1] : NULL);
            continue;
        }
        push(&reading, (struct word){word, NULL, WORD_FILE, MEANS_NOTHING});
        i++;
    }
    reading.command.words = reading.words.items;
    reading.command.count = reading.words.count;
    return reading.command;
}

/* --- linker scripts --- */

static bool ends_in(const char *word, const char *suffix)
{
    size_t size = strlen(word), tail = strlen(suffix);
    return size >= tail && strcmp(word + size - tail, suffix) == 0;
}

/* "*", "*crtend.o" and "*" "/crtend.o" match wherever the file lies; what names a folder
 * or a whole path does not. */
static bool survives_moving(const char *word)
{
    if (strncmp(word, "/DISCARD/", 9) == 0 || strcmp(word, "/") == 0)
        return true;
    if (word[0] == '*')
        return strchr(word[1] == '/' ? word + 2 : word + 1, '/') == NULL;
    return !strchr(word, '/') && !strstr(word, ".a:") && !ends_in(word, ".o") && !ends_in(word, ".a");
}

/* Between words. "*libfoo-c++.a:bar.o" is one. */
static const char gaps[] = " \t\r\n(){},;=<>!&|";

/* The text without comments and without what stands in quotes, where no pattern is. In
 * the middle of a word, "drivers/ *" without the blank, no comment begins. */
static void blank_out(char *text)
{
    for (char *at = text; *at;) {
        bool first = at == text || strchr(gaps, at[-1]);
        bool comment = first && at[0] == '/' && at[1] == '*', quote = *at == '"';
        if (!comment && !quote) {
            at++;
            continue;
        }
        char *end = strstr(at + (comment ? 2 : 1), comment ? "*/" : "\"");
        end = end ? end + (comment ? 2 : 1) : at + strlen(at);
        memset(at, ' ', (size_t)(end - at));
        at = end;
    }
}

const char *script_names_files(struct arena *session, struct bytes text)
{
    char *copy = arena_format(session, "%.*s", (int)text.size, (const char *)text.at);
    blank_out(copy);
    for (char *at = copy + strspn(copy, gaps); *at; at += strspn(at, gaps)) {
        char *word = at;
        at += strcspn(at, gaps);
        if (*at)
            *at++ = '\0';
        if (!survives_moving(word))
            return word;
    }
    return NULL;
}
