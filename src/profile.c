/* SPDX-License-Identifier: MIT
 *
 * Two forms of text.
 *
 *     NAME COUNT                    a list; '#' begins a comment
 *
 *     lua 4711 1.5:  999 cycles:  55d0 luaV_execute+0x1c (/usr/bin/lua)
 *
 * or, with call chains, `perf script` prints a line without a function and below it, one
 * to a line and indented, the frames, the innermost first:
 *
 *     lua 4711 1.5:  999 cycles:
 *                 55d0 luaV_execute+0x1c (/usr/bin/lua)
 *                 5610 luaD_call+0x40 (/usr/bin/lua)
 *
 * Each sample counts for the innermost function. Names in objects are mangled, so perf
 * must not demangle them (`perf script --no-demangle`).
 */
#include "mo/profile.h"

#include "mo/array.h"
#include "mo/bytes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct count {
    uint32_t name; /* number in the table */
    uint64_t samples;
};

struct profile {
    struct arena *session;
    const char *path;
    struct table *names;
    array_of(struct count) counts; /* by name */
    uint64_t total;
    bool inside; /* perf: a sample's frames follow, and the innermost has been seen */
};

struct line {
    const char *at, *end;
    uint32_t number;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static const char *skip(const char *at, const char *end, bool blanks)
{
    while (at < end && is_blank(*at) == blanks)
        at++;
    return at;
}

static void add(struct profile *profile, const char *name, size_t size, uint64_t samples)
{
    uint32_t number = table_intern(profile->names, name, size);
    if (number == profile->counts.count) {
        struct count count = {number, 0};
        array_push(profile->session, &profile->counts, count);
    }
    profile->counts.items[number].samples += samples;
    profile->total += samples;
}

static bool is_hex(const char *at, const char *end)
{
    const char *start = at;
    while (at < end && strchr("0123456789abcdef", *at))
        at++;
    return at > start && at == end;
}

/* "ADDRESS NAME+0xOFFSET (FILE)": the name's length, 0 when it is none (perf writes
 * "[unknown]" where it knows no function). False: that is no such thing. */
static bool read_frame(const char *at, const char *end, const char **name, size_t *size)
{
    at = skip(at, end, true);
    const char *word = skip(at, end, false);
    if (!is_hex(at, word))
        return false;
    *name = skip(word, end, true);
    const char *stop = *name;
    while (stop < end && !(*stop == ' ' && stop + 1 < end && stop[1] == '('))
        stop++;
    for (const char *plus = stop; plus > *name; plus--) {
        if (plus + 2 < stop && memcmp(plus, "+0x", 3) == 0) {
            stop = plus;
            break;
        }
    }
    *size = *name < end && **name == '[' ? 0 : (size_t)(stop - *name);
    return *name < stop;
}

/* What stands behind the last ": " of a sample's first line; NULL: it is none. */
static const char *behind_event(const struct line *line)
{
    for (const char *at = line->end; at > line->at + 1; at--) {
        if (at[-1] == ':' && (at == line->end || is_blank(*at)))
            return at;
    }
    return NULL;
}

static bool read_perf(struct profile *profile, const struct line *line)
{
    const char *name;
    size_t size;
    if (is_blank(*line->at) && read_frame(line->at, line->end, &name, &size)) {
        if (!profile->inside && size)
            add(profile, name, size, 1);
        profile->inside = true;
        return true;
    }
    const char *at = behind_event(line);
    if (!at)
        return false;
    profile->inside = false;
    if (read_frame(at, line->end, &name, &size)) {
        profile->inside = true;
        if (size)
            add(profile, name, size, 1);
        return true;
    }
    return skip(at, line->end, true) == line->end;
}

static bool read_pair(struct profile *profile, const struct line *line)
{
    const char *name = skip(line->at, line->end, true);
    const char *name_end = skip(name, line->end, false);
    const char *count = skip(name_end, line->end, true);
    const char *count_end = skip(count, line->end, false);
    size_t digits = strspn(count, "0123456789");
    if (name == name_end || count + digits != count_end || digits == 0 || digits > 18 ||
        skip(count_end, line->end, true) != line->end)
        return false;
    add(profile, name, (size_t)(name_end - name), strtoull(count, NULL, 10));
    return true;
}

static int by_samples(const void *left, const void *right)
{
    const struct count *a = left, *b = right;
    if (a->samples != b->samples)
        return a->samples > b->samples ? -1 : 1;
    return (a->name > b->name) - (a->name < b->name);
}

/* The busiest ones until the share is reached; equals of the last one come along, so
 * that the order of the text does not matter. */
static struct table *choose(struct profile *profile, uint32_t percent)
{
    struct table *hot = table_new(profile->session);
    struct count *items = profile->counts.items;
    if (profile->counts.count)
        qsort(items, profile->counts.count, sizeof *items, by_samples);
    uint64_t sum = 0, last = 0, wanted = profile->total / 100 * percent +
                                         (profile->total % 100 * percent + 99) / 100;
    for (uint32_t i = 0; i < profile->counts.count && items[i].samples > 0; i++) {
        if (sum >= wanted && items[i].samples != last)
            break;
        sum += last = items[i].samples;
        struct bytes name = table_key(profile->names, items[i].name);
        table_intern(hot, name.at, name.size);
    }
    return hot;
}

/* Lines as a list, or all as perf's output. `number` of the line that is neither. */
static bool read_lines(struct profile *profile, const char *text,
                       bool (*read)(struct profile *, const struct line *),
                       uint32_t *number)
{
    *number = 0;
    for (const char *at = text; *at != '\0';) {
        struct line line = {at, at + strcspn(at, "\n"), ++*number};
        const char *start = skip(line.at, line.end, true);
        if (start < line.end && *start != '#' && !read(profile, &line))
            return false;
        if (start == line.end)
            profile->inside = false;
        at = *line.end ? line.end + 1 : line.end;
    }
    return true;
}

bool profile_read(struct arena *session, const char *path, struct bytes text,
                  uint32_t percent, struct table **hot, struct table **all,
                  struct error *err)
{
    char *copy = arena_alloc(session, text.size + 1);
    memcpy(copy, text.at, text.size);
    struct profile list = {.session = session, .names = table_new(session)};
    struct profile perf = {.session = session, .names = table_new(session)};
    uint32_t list_line, perf_line;
    if (read_lines(&list, copy, read_pair, &list_line)) {
        *hot = choose(&list, percent);
        *all = list.names;
        return true;
    }
    if (read_lines(&perf, copy, read_perf, &perf_line)) {
        *hot = choose(&perf, percent);
        *all = perf.names;
        return true;
    }
    uint32_t line = perf_line > list_line ? perf_line : list_line;
    return fail(err, &(struct place){.file = path},
                "line %" PRIu32 " is neither \"NAME COUNT\" nor what perf script prints",
                line);
}
