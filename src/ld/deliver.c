/* SPDX-License-Identifier: MIT
 *
 * What the links have said, for the user. Warnings come from the first one, which had
 * the user's own files; maps and everything else that describes the output come from the
 * second, with the names of the user's files put back, since people and scripts that
 * read them know no others.
 */
#include "ld.h"

#include <stdio.h>
#include <string.h>

void deliver_messages(const struct command *command, struct bytes text)
{
    for (struct bytes line; line_next(&text, &line);) {
        if (command->prints_gc || !trace_is_gc_line(line))
            fprintf(stderr, "%.*s\n", (int)line.size, (const char *)line.at);
    }
}

/* "12/a.o" behind the scratch folder: the file's number and its name. Returns how much
 * of the text that is; 0: nothing of ours. */
static uint64_t match_file(struct bytes text, const struct choice *choice,
                           const char **old)
{
    uint64_t at = 0, number = 0;
    for (; at < text.size && at < 9 && text.at[at] >= '0' && text.at[at] <= '9'; at++)
        number = number * 10 + (uint64_t)(text.at[at] - '0');
    if (at == 0 || at >= text.size || text.at[at] != '/' || number >= choice->file_count)
        return 0;
    const struct chosen *file = &choice->files[number];
    const char *name = path_base(file->new_path);
    size_t size = strlen(name);
    if (text.size - at - 1 < size || memcmp(text.at + at + 1, name, size) != 0)
        return 0;
    *old = file->path;
    return at + 1 + size;
}

static bool starts_with(struct bytes text, const char *word)
{
    size_t size = strlen(word);
    return text.size >= size && memcmp(text.at, word, size) == 0;
}

/* The helpers lose their folder, too. */
static struct bytes old_names(const struct delivery *delivery, struct bytes text)
{
    struct buffer out = buffer_new(delivery->session);
    const char *folder = arena_format(delivery->session, "%s/", delivery->scratch);
    for (uint64_t i = 0; i < text.size;) {
        struct bytes rest = {text.at + i, text.size - i};
        const char *old = "";
        uint64_t used = 0;
        if (starts_with(rest, folder)) {
            used = strlen(folder);
            used += match_file((struct bytes){rest.at + used, rest.size - used},
                               delivery->choice, &old);
        } else if (starts_with(rest, delivery->output)) {
            used = strlen(delivery->output);
            old = delivery->command->output;
        }
        if (used == 0)
            buffer_u8(&out, text.at[i++]);
        buffer_put(&out, old, strlen(old));
        i += used;
    }
    return buffer_bytes(&out);
}

void deliver_output(const struct delivery *delivery, struct bytes text)
{
    const struct command *command = delivery->command;
    struct error err = {0};
    bool any = command->prints;
    if (command->prints_map && delivery->mold_map) /* mold prints its map or writes it */
        any = file_read(delivery->session, delivery->mold_map, &text, &err);
    if (!any)
        return;
    text = old_names(delivery, text);
    fwrite(text.at, 1, text.size, stdout);
}

void deliver_map(const struct delivery *delivery)
{
    struct bytes text = {0};
    struct error err = {0};
    const char *path = delivery->command->map;
    if (!path || strcmp(path, "-") == 0 ||
        !file_read(delivery->session, path, &text, &err))
        return;
    if (!file_write(path, old_names(delivery, text), &err))
        fprintf(stderr, "mo-link: %s\n", err.message);
}

static const char *report_path(struct arena *session, const char *pattern,
                               const char *output)
{
    struct buffer path = buffer_new(session);
    for (const char *at = pattern; *at; at++) {
        if (at[0] != '%' || at[1] != 'o') {
            buffer_u8(&path, (uint8_t)*at);
            continue;
        }
        buffer_put(&path, output, strlen(output));
        at++;
    }
    buffer_u8(&path, '\0');
    return (const char *)buffer_bytes(&path).at;
}

const char *report_in_scratch(struct arena *session, const char *scratch,
                              enum report_format format)
{
    return path_join(session, scratch,
                     arena_format(session, "report.%u", (unsigned)format));
}

static void deliver_report(struct arena *session, const struct report_wish *wish,
                           const char *output, const char *scratch_file)
{
    struct error err = {0};
    struct bytes text = {0};
    if (!file_read(session, scratch_file, &text, &err))
        return; /* the outliner has told why there is none */
    if (!wish->path)
        fwrite(text.at, 1, text.size, stdout);
    else if (!file_write(report_path(session, wish->path, output), text, &err))
        fprintf(stderr, "mo-link: %s\n", err.message);
}

void deliver_reports(struct arena *session, const struct options *options,
                     const char *output, const char *scratch)
{
    for (uint32_t i = 0; i < REPORT_COUNT; i++) {
        if (options->reports[i].wanted)
            deliver_report(session, &options->reports[i], output,
                           report_in_scratch(session, scratch, (enum report_format)i));
    }
}
