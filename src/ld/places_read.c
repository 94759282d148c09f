/* SPDX-License-Identifier: MIT
 *
 * The input section descriptions of a linker script (GNU ld manual, "Input Section
 * Description"), and nothing else of it:
 *
 *     SECTIONS { .ramcode : { KEEP(*b.o(EXCLUDE_FILE(*x.o) .text SORT(.text.*))) } > RAM }
 *
 * Expressions, assignments and other commands are stepped over. What is not understood
 * is said, and the link stays as it is.
 */
#include "ld.h"

#include "mo/array.h"

#include <string.h>

enum { DEEPEST_INCLUDE = 8 };

struct parsing {
    struct arena *session;
    const struct command *command;
    struct text_list words; /* "(", ")", "{", "}", ";", "," and "=" are words, too */
    uint32_t at;
    struct places *places;
    const char *fault; /* the word at which understanding ends */
    /* of the next pattern */
    struct text_list excluded;
    bool doubtful;
};

/* --- words --- */

static const char marks[] = "(){};,=";

static bool split(struct parsing *parsing, struct bytes text, int depth);

static bool include(struct parsing *parsing, const char *name, int depth)
{
    struct bytes text = {0};
    return depth < DEEPEST_INCLUDE &&
           script_open(parsing->session, parsing->command, name, &text) &&
           split(parsing, text, depth + 1);
}

/* Behind a comment, or `at` itself. In the middle of a word none begins: "drivers/" "*". */
static const char *behind_comment(const char *at)
{
    const char *end = NULL;
    if (at[0] == '/' && at[1] == '*') {
        end = strstr(at + 2, "*/");
        return end ? end + 2 : at + strlen(at);
    }
    return at[0] == '#' ? at + strcspn(at, "\n") : at;
}

static const char *next_word(struct arena *session, const char *at, const char **word)
{
    size_t size = 1;
    bool quoted = *at == '"';
    if (quoted)
        size = strcspn(++at, "\"");
    else if (!strchr(marks, *at))
        size = strcspn(at, " \t\r\n\"(){};,=");
    *word = arena_format(session, "%.*s", (int)size, at);
    return at + size + (quoted && at[size] == '"');
}

static bool split(struct parsing *parsing, struct bytes text, int depth)
{
    const char *at =
        arena_format(parsing->session, "%.*s", (int)text.size, (const char *)text.at);
    bool includes = false;
    for (at += strspn(at, " \t\r\n"); *at; at += strspn(at, " \t\r\n")) {
        const char *word = NULL, *behind = behind_comment(at);
        if (behind != at) {
            at = behind;
            continue;
        }
        at = next_word(parsing->session, at, &word);
        if (includes && !include(parsing, word, depth)) {
            parsing->fault = arena_format(parsing->session, "INCLUDE %s", word);
            return false;
        }
        bool was_included = includes;
        includes = strcmp(word, "INCLUDE") == 0;
        if (!includes && !was_included)
            array_push(parsing->session, &parsing->words, word);
    }
    return true;
}

static const char *peek(const struct parsing *parsing, uint32_t ahead)
{
    uint32_t at = parsing->at + ahead;
    return at < parsing->words.count ? parsing->words.items[at] : "";
}

static bool is(const struct parsing *parsing, uint32_t ahead, const char *word)
{
    return strcmp(peek(parsing, ahead), word) == 0;
}

static bool ended(const struct parsing *parsing)
{
    return parsing->fault || parsing->at >= parsing->words.count;
}

static void stop_at(struct parsing *parsing)
{
    if (!parsing->fault)
        parsing->fault = parsing->at < parsing->words.count ? peek(parsing, 0) : "its end";
}

/* From an opening mark to behind the one that closes it. */
static void skip(struct parsing *parsing, const char *open, const char *close)
{
    uint32_t depth = 0;
    do {
        depth += is(parsing, 0, open);
        depth -= is(parsing, 0, close);
        parsing->at++;
    } while (depth > 0 && !ended(parsing));
}

static bool is_one_of(const char *word, const char *const *names)
{
    for (; *names; names++) {
        if (strcmp(word, *names) == 0)
            return true;
    }
    return false;
}

static bool sorts(const char *word)
{
    static const char *const names[] = {"SORT", "SORT_BY_NAME", "SORT_BY_ALIGNMENT",
                                        "SORT_BY_INIT_PRIORITY", "SORT_NONE", "REVERSE",
                                        NULL};
    return is_one_of(word, names);
}

/* --- patterns --- */

static void add(struct parsing *parsing, const char *file, const char *section,
                const struct text_list *excluded, const struct text_list *doubted)
{
    struct place_pattern pattern = {.file = file,
                                    .section = section,
                                    .excluded = {parsing->excluded, *excluded},
                                    .doubted = *doubted,
                                    .doubtful = parsing->doubtful,
                                    .output = parsing->places->outputs};
    array_push(parsing->session, parsing->places, pattern);
}

/* "(" a list ")", at the first of them. */
static void read_list(struct parsing *parsing, struct text_list *out)
{
    if (!is(parsing, 0, "("))
        stop_at(parsing);
    for (parsing->at++; !ended(parsing) && !is(parsing, 0, ")"); parsing->at++) {
        if (strchr(marks, peek(parsing, 0)[0]) && !is(parsing, 0, ","))
            stop_at(parsing);
        else if (!is(parsing, 0, ","))
            array_push(parsing->session, out, peek(parsing, 0));
    }
    parsing->at++;
}

/* The sections, behind the parenthesis that opens their list. To GNU ld EXCLUDE_FILE is
 * part of the pattern behind it, to lld of all that follow: for these nobody knows. */
static void read_sections(struct parsing *parsing, const char *file)
{
    struct text_list excluded = {0}, doubted = {0};
    for (uint32_t depth = 1; depth > 0;) {
        const char *word = peek(parsing, 0);
        if (ended(parsing) || strchr("({};=", word[0])) {
            stop_at(parsing);
            return;
        }
        parsing->at++;
        if (word[0] == ')') {
            depth--;
        } else if (sorts(word) && is(parsing, 0, "(")) {
            depth++;
            parsing->at++;
        } else if (strcmp(word, "EXCLUDE_FILE") == 0) {
            excluded = (struct text_list){0};
            read_list(parsing, &excluded);
        } else if (word[0] != ',') {
            add(parsing, file, word, &excluded, &doubted);
            for (uint32_t i = 0; i < excluded.count; i++)
                array_push(parsing->session, &doubted, excluded.items[i]);
            excluded = (struct text_list){0};
        }
    }
}

static void forget(struct parsing *parsing)
{
    parsing->excluded = (struct text_list){0};
    parsing->doubtful = false;
}

/* WORD "(": a description, or what may stand before one, or something else. */
static void read_call(struct parsing *parsing, const char *word, uint32_t *wrapped)
{
    static const char *const others[] = {
        "ASSERT", "PROVIDE", "PROVIDE_HIDDEN", "HIDDEN", "BYTE",  "SHORT",
        "LONG",   "QUAD",    "SQUAD",          "FILL",   "ASCIZ", NULL};
    if (is_one_of(word, others) || is(parsing, 1, "CONSTRUCTORS")) {
        skip(parsing, "(", ")");
    } else if (strcmp(word, "KEEP") == 0) {
        parsing->at++;
        (*wrapped)++;
    } else if (strcmp(word, "EXCLUDE_FILE") == 0) {
        read_list(parsing, &parsing->excluded);
    } else if (strcmp(word, "INPUT_SECTION_FLAGS") == 0) {
        skip(parsing, "(", ")");
        parsing->doubtful = true;
    } else {
        if (sorts(word)) { /* SORT(*)(.ctors) */
            word = peek(parsing, 1);
            if (!is(parsing, 2, ")") || !is(parsing, 3, "("))
                stop_at(parsing);
            parsing->at += 3;
        }
        parsing->at++;
        read_sections(parsing, word);
        forget(parsing);
    }
}

/* A word that no list follows and that is not assigned to: a file, with all it has. */
static void read_bare(struct parsing *parsing, const char *word)
{
    static const char *const others[] = {"CONSTRUCTORS", "CREATE_OBJECT_SYMBOLS",
                                         "LINKER_VERSION", NULL};
    const struct text_list none = {0};
    if (!word || is_one_of(word, others))
        return;
    add(parsing, word, "*", &none, &none);
    forget(parsing);
}

/* What was taken for a file is what is assigned to. */
static void forget_bare(struct parsing *parsing, uint32_t first)
{
    if (parsing->places->count > first)
        parsing->places->count--;
}

/* What an output section consists of, behind the brace that opens it. */
static void read_contents(struct parsing *parsing)
{
    const char *word = NULL;
    uint32_t wrapped = 0, first = parsing->places->count;
    for (; !ended(parsing); parsing->at++) {
        const char *next = peek(parsing, 0);
        if (next[0] == '=') {
            if (word && word[strspn(word, "+-*/<>&|")] == '\0')
                forget_bare(parsing, first); /* ". += 4;": ".", "+" and this */
            while (!ended(parsing) && !is(parsing, 0, ";"))
                parsing->at++;
            word = NULL;
        } else if (next[0] == '(') {
            if (!word)
                break;
            read_call(parsing, word, &wrapped);
            parsing->at--;
            word = NULL;
        } else {
            read_bare(parsing, word);
            bool mark = strchr(marks, next[0]) != NULL;
            word = mark ? NULL : next;
            if (next[0] == '}' && wrapped == 0) {
                parsing->at++;
                return;
            }
            if (next[0] == '{' || next[0] == '}' || (next[0] == ')' && wrapped-- == 0))
                break;
        }
        if (!word)
            first = parsing->places->count;
    }
    stop_at(parsing);
}

/* Output sections, behind the brace that opens SECTIONS, or OVERLAY in it. */
static void read_outputs(struct parsing *parsing, bool inner)
{
    bool overlay = false;
    while (!ended(parsing) && !is(parsing, 0, "}")) {
        bool opens = is(parsing, 0, "{");
        overlay |= !inner && is(parsing, 0, "OVERLAY");
        parsing->at++;
        if (opens && overlay) {
            read_outputs(parsing, true);
            overlay = false;
        } else if (opens) {
            parsing->places->outputs++;
            read_contents(parsing);
        }
    }
    if (ended(parsing))
        stop_at(parsing);
    parsing->at++;
}

const char *places_read(struct arena *session, const struct command *command,
                        struct bytes text, struct places *places)
{
    struct parsing parsing = {.session = session, .command = command, .places = places};
    if (!split(&parsing, text, 0))
        return parsing.fault;
    while (!ended(&parsing)) {
        if (is(&parsing, 0, "SECTIONS") && is(&parsing, 1, "{")) {
            parsing.at += 2;
            read_outputs(&parsing, false);
        } else if (is(&parsing, 0, "{")) { /* MEMORY, PHDRS, VERSION */
            skip(&parsing, "{", "}");
        } else {
            parsing.at++;
        }
    }
    return parsing.fault;
}
