/* SPDX-License-Identifier: MIT
 *
 * What the real linker says of a link. No guess of ours about archives, groups, weak
 * symbols or garbage collection is as exact as its own word:
 *
 *     GNU ld --trace --trace    a.o    (libfoo.a)bar.o    (thin: the member's own path)
 *     gold, lld                 a.o    libfoo.a(bar.o)
 *     mold -Map                 … libfoo.a(bar.o):(.text.bar)     for what it kept
 *
 *     GNU ld --print-gc-sections   …: removing unused section 'S' in file 'F'
 *     gold                         …: removing unused section from 'S' in file 'F'
 *     lld                          removing unused section F:(S)
 *
 * A line that is something else becomes an entry that matches no input, which is
 * nothing.
 */
#include "ld.h"

#include "mo/array.h"
#include "mo/table.h"

#include <string.h>

static const char gc_words[] = "removing unused section ";

struct tracing {
    struct arena *session;
    struct table *names; /* "path\0member": number = index in items */
    array_of(struct loaded) items;
};

bool line_next(struct bytes *text, struct bytes *line)
{
    if (text->size == 0)
        return false;
    const uint8_t *end = memchr(text->at, '\n', text->size);
    line->at = text->at;
    line->size = end ? (uint64_t)(end - text->at) : text->size;
    uint64_t used = line->size + (end != NULL);
    *text = (struct bytes){text->at + used, text->size - used};
    return true;
}

static const char *text_of(struct arena *session, struct bytes line)
{
    return arena_format(session, "%.*s", (int)line.size, (const char *)line.at);
}

bool trace_is_gc_line(struct bytes line)
{
    size_t size = sizeof gc_words - 1;
    for (uint64_t i = 0; i + size <= line.size; i++) {
        if (memcmp(line.at + i, gc_words, size) == 0)
            return true;
    }
    return false;
}

/* "(lib.a)m.o" and "lib.a(m.o)" become path and member; a path stays one. */
static void split_name(struct arena *session, const char *name, struct loaded *out)
{
    size_t size = strlen(name);
    *out = (struct loaded){.path = name};
    if (size > 2 && name[0] == '(' && strchr(name, ')')) {
        const char *end = strchr(name, ')');
        if (end[1] == '\0')
            return;
        out->path = arena_format(session, "%.*s", (int)(end - name) - 1, name + 1);
        out->member = end + 1;
        return;
    }
    const char *open = strrchr(name, '(');
    if (size > 2 && name[size - 1] == ')' && open && open > name) {
        out->path = arena_format(session, "%.*s", (int)(open - name), name);
        out->member =
            arena_format(session, "%.*s", (int)(name + size - open) - 2, open + 1);
    }
}

static struct loaded *entry_of(struct tracing *tracing, const char *name)
{
    struct loaded entry;
    split_name(tracing->session, name, &entry);
    while (strncmp(entry.path, "//", 2) == 0)
        entry.path++; /* --sysroot=/ in front of what a script names */
    const char *key = arena_format(tracing->session, "%s\n%s", entry.path,
                                   entry.member ? entry.member : "");
    uint32_t number = table_intern_string(tracing->names, key);
    if (number == tracing->items.count)
        array_push(tracing->session, &tracing->items, entry);
    return &tracing->items.items[number];
}

static void add_name(struct tracing *tracing, const char *file, const char *section)
{
    struct loaded *entry = entry_of(tracing, file);
    array_push(tracing->session, &entry->named, section);
}

/* "F:(S)". False when the text is nothing like it. */
static bool add_place(struct tracing *tracing, const char *text)
{
    const char *at = strstr(text, ":(");
    size_t size = strlen(text);
    if (!at || at == text || text[size - 1] != ')')
        return false;
    add_name(tracing,
             arena_format(tracing->session, "%.*s", (int)(at - text), text),
             arena_format(tracing->session, "%.*s", (int)(text + size - at) - 3, at + 2));
    return true;
}

static void add_gc_line(struct tracing *tracing, const char *line)
{
    const char *at = strstr(line, gc_words) + sizeof gc_words - 1;
    const char *quote = strchr(at, '\''), *middle = strstr(at, "' in file '");
    if (add_place(tracing, at) || !quote || !middle)
        return;
    const char *section =
        arena_format(tracing->session, "%.*s", (int)(middle - quote) - 1, quote + 1);
    const char *file = middle + strlen("' in file '");
    const char *end = strrchr(file, '\'');
    if (end)
        add_name(tracing,
                 arena_format(tracing->session, "%.*s", (int)(end - file), file),
                 section);
}

static void add_lines(struct tracing *tracing, struct bytes text, bool names)
{
    for (struct bytes line; line_next(&text, &line);) {
        if (trace_is_gc_line(line))
            add_gc_line(tracing, text_of(tracing->session, line));
        else if (names && line.size > 0)
            entry_of(tracing, text_of(tracing->session, line))->times++;
    }
}

struct trace trace_read(struct arena *session, const struct outcome *outcome)
{
    struct tracing tracing = {.session = session, .names = table_new(session)};
    add_lines(&tracing, outcome->out, true);
    add_lines(&tracing, outcome->err, false);
    return (struct trace){tracing.items.items, tracing.items.count, false};
}

/* Four columns, then "F:(S)". Everything else (output sections, symbols) has none. */
struct trace trace_read_map(struct arena *session, struct bytes map)
{
    struct tracing tracing = {.session = session, .names = table_new(session)};
    for (struct bytes line; line_next(&map, &line);) {
        const char *text = text_of(session, line);
        text += strspn(text, " ");
        for (int column = 0; column < 3; column++) {
            text += strcspn(text, " ");
            text += strspn(text, " ");
        }
        (void)add_place(&tracing, text);
    }
    for (uint32_t i = 0; i < tracing.items.count; i++)
        tracing.items.items[i].times = 1;
    return (struct trace){tracing.items.items, tracing.items.count, true};
}
