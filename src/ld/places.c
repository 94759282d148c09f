/* SPDX-License-Identifier: MIT
 *
 * Where a linker script puts an input section. Linkers take the first pattern that
 * matches; what exactly a file pattern is compared with differs: with GNU ld the path of
 * a file, or the name of a member, with lld "archive:member". Where the spellings of one
 * input do not agree, the answer is that nobody knows.
 */
#include "ld.h"

#include <fnmatch.h>
#include <string.h>

enum answer { NO, PERHAPS, YES };

struct spelling {
    struct arena *session;
    const char *path, *member;
};

static bool fits(const char *pattern, const char *name)
{
    return fnmatch(pattern, name, 0) == 0;
}

/* "archive:member", "archive:" (all of it), ":file" (in no archive). */
static enum answer match_parts(const struct spelling *input, const char *pattern)
{
    const char *colon = strchr(pattern, ':');
    const char *archive =
        arena_format(input->session, "%.*s", (int)(colon - pattern), pattern);
    if (!input->member)
        return archive[0] == '\0' && fits(colon + 1, input->path) ? YES : NO;
    if (archive[0] == '\0' || !fits(archive, input->path))
        return NO;
    return colon[1] == '\0' || fits(colon + 1, input->member) ? YES : NO;
}

static enum answer match_file(const struct spelling *input, const char *pattern)
{
    if (strcmp(pattern, "*") == 0)
        return YES;
    if (strchr(pattern, ':'))
        return match_parts(input, pattern);
    if (!input->member)
        return fits(pattern, input->path) ? YES : NO;
    const char *both =
        arena_format(input->session, "%s:%s", input->path, input->member);
    bool certain = fits(pattern, input->member) && fits(pattern, both);
    bool possible = fits(pattern, input->member) || fits(pattern, both) ||
                    fits(pattern, input->path);
    return certain ? YES : possible ? PERHAPS : NO;
}

static enum answer match_any(const struct spelling *input, const struct text_list *files)
{
    enum answer answer = NO;
    for (uint32_t i = 0; i < files->count; i++) {
        enum answer one = match_file(input, files->items[i]);
        answer = one > answer ? one : answer;
    }
    return answer;
}

static enum answer match(const struct spelling *input, const struct place_pattern *pattern,
                         const char *section)
{
    if (!fits(pattern->section, section))
        return NO;
    enum answer file = match_file(input, pattern->file);
    enum answer out[] = {match_any(input, &pattern->excluded[0]),
                         match_any(input, &pattern->excluded[1])};
    if (file == NO || out[0] == YES || out[1] == YES)
        return NO;
    bool certain = file == YES && out[0] == NO && out[1] == NO && !pattern->doubtful &&
                   match_any(input, &pattern->doubted) == NO;
    return certain ? YES : PERHAPS;
}

uint32_t places_find(struct arena *session, const struct places *places,
                     const char *path, const char *member, const char *section)
{
    struct spelling input = {session, path, member};
    uint32_t perhaps = PLACE_ELSEWHERE;
    for (uint32_t i = 0; i < places->count; i++) {
        const struct place_pattern *pattern = &places->items[i];
        enum answer answer = match(&input, pattern, section);
        if (answer == NO)
            continue;
        if (perhaps != PLACE_ELSEWHERE && perhaps != pattern->output)
            return PLACE_UNKNOWN;
        if (answer == YES)
            return pattern->output;
        perhaps = pattern->output;
    }
    return perhaps == PLACE_ELSEWHERE ? PLACE_ELSEWHERE : PLACE_UNKNOWN;
}
