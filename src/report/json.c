/* SPDX-License-Identifier: MIT
 *
 * The report for programs. The keys are a promise: they may grow, never change.
 *
 *     { "version", "verified", "dry_run",
 *       "before", "after", "saved": { "text", "eh_frame", "eh_frame_hdr", "loaded" },
 *       "rounds":   [ { "helpers", "sites", "saved": { "text", … },
 *                     "fixed",       the part that no single helper brings
 *                     "choice": { "saved", "at_most" } } ],   with --effort=2
 *       "shared_entries": bytes that belong to no round: unwind entries that are shared
 *       "helpers":  [ { "name", "round", "bytes", "sites", "form", "saved" } ],
 *       "refusals": [ { "reason", "level", "text", "count", "bytes" } ],
 *       "sections": [ { "name", "before", "after" } ],
 *       "units":    [ { "name", "before": {…}, "after": {…},
 *                       "functions": [ { "key", "name", "before", "after", "shared",
 *                                        "helper" } ] } ] }
 *
 * With the helpers' bodies (for the page):
 *
 *       "bodies":   [ { "name", "key", "bytes", "code": [ [at, "hex", "text"] ],
 *                       "sites": [ { "key", "at" } ] } ]
 *
 * A function's "shared" is its part of the helpers' bytes, and its "key" the same on
 * every build (functions.c); "helper" is there, and true, for helpers.
 *
 * Reference: RFC 8259.
 */
#include "mo/report.h"

#include "report_parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct json {
    struct arena *session;
    struct buffer text;
};

static void put(struct json *json, const char *words)
{
    buffer_put(&json->text, words, strlen(words));
}

static void put_string(struct json *json, const char *string)
{
    put_json_string(&json->text, string);
}

static void put_sizes(struct json *json, const char *key, const struct sizes *sizes)
{
    put(json, arena_format(json->session,
                           "\"%s\": {\"text\": %" PRIu64 ", \"eh_frame\": %" PRIu64
                           ", \"eh_frame_hdr\": %" PRIu64 ", \"loaded\": %" PRIu64 "}",
                           key, sizes->text, sizes->eh_frame, sizes->eh_frame_hdr,
                           sizes->loaded));
}

static void put_saved(struct json *json, int64_t text, int64_t eh_frame, int64_t hdr,
                      int64_t loaded)
{
    put(json, arena_format(json->session,
                           "\"saved\": {\"text\": %" PRId64 ", \"eh_frame\": %" PRId64
                           ", \"eh_frame_hdr\": %" PRId64 ", \"loaded\": %" PRId64 "}",
                           text, eh_frame, hdr, loaded));
}

/* Between two elements of a list: one on each line. */
static void put_next(struct json *json, uint32_t position)
{
    put(json, position == 0 ? "\n    " : ",\n    ");
}

static void put_totals(struct json *json, const struct report *report)
{
    struct sizes before, after;
    report_totals(report, &before, &after);
    put(json, "  ");
    put_sizes(json, "before", &before);
    put(json, ",\n  ");
    put_sizes(json, "after", &after);
    put(json, ",\n  ");
    put_saved(json, (int64_t)(before.text - after.text),
              (int64_t)(before.eh_frame - after.eh_frame),
              (int64_t)(before.eh_frame_hdr - after.eh_frame_hdr),
              (int64_t)(before.loaded - after.loaded));
}

static void put_rounds(struct json *json, const struct report *report)
{
    put(json, ",\n  \"rounds\": [");
    for (uint32_t i = 0; i < report->rounds.count; i++) {
        const struct report_round *round = &report->rounds.items[i];
        put_next(json, i);
        put(json, arena_format(json->session,
                               "{\"helpers\": %" PRIu32 ", \"sites\": %" PRIu32 ", ",
                               round->helpers, round->sites));
        put_saved(json, round->code, round->eh_frame, round->eh_frame_hdr,
                  round->code + round->eh_frame + round->eh_frame_hdr);
        put(json,
            arena_format(json->session, ", \"fixed\": %" PRId64, round->fixed));
        if (round->choice_bound > 0)
            put(json, arena_format(json->session,
                                   ", \"choice\": {\"saved\": %" PRId64
                                   ", \"at_most\": %" PRId64 "}",
                                   round->choice_saving, round->choice_bound));
        put(json, "}");
    }
    put(json, "]");
    put(json, arena_format(json->session, ",\n  \"shared_entries\": %" PRId64,
                           report->shared_entries));
}

static void put_helpers(struct json *json, const struct report *report)
{
    uint32_t count = report->helpers.count;
    const struct report_helper *sorted = report_helpers_sorted(json->session, report);
    put(json, ",\n  \"helpers\": [");
    for (uint32_t i = 0; i < count; i++) {
        const struct report_helper *helper = &sorted[i];
        put_next(json, i);
        put(json, "{\"name\": ");
        put_string(json, helper->name);
        put(json, arena_format(json->session,
                               ", \"round\": %" PRIu32 ", \"bytes\": %" PRIu32
                               ", \"sites\": %" PRIu32 ", \"form\": \"%s\", \"saved\": "
                               "%" PRId64 "}",
                               helper->round, helper->size, helper->sites, helper->form,
                               helper->saving));
    }
    put(json, "]");
}

static void put_refusals(struct json *json, const struct report *report)
{
    uint32_t written = 0;
    put(json, ",\n  \"refusals\": [");
    for (uint32_t i = 0; i < REFUSAL_COUNT; i++) {
        enum refusal refusal = (enum refusal)i;
        const struct report_refusal *size = &report->refusals[i];
        if (size->count == 0 && size->bytes == 0)
            continue;
        put_next(json, written++);
        put(json,
            arena_format(json->session,
                         "{\"reason\": \"%s\", \"level\": \"%s\", \"text\": \"%s\", "
                         "\"count\": %" PRIu32 ", \"bytes\": %" PRIu64 "}",
                         refusal_name(refusal), refusal_level(refusal),
                         refusal_text(refusal), size->count, size->bytes));
    }
    put(json, "]");
}

static void put_sections(struct json *json, const struct report *report)
{
    put(json, ",\n  \"sections\": [");
    for (uint32_t i = 0; i < report->sections.count; i++) {
        const struct report_section *section = &report->sections.items[i];
        put_next(json, i);
        put(json, "{\"name\": ");
        put_string(json, section->name);
        put(json, arena_format(json->session,
                               ", \"before\": %" PRIu64 ", \"after\": %" PRIu64 "}",
                               section->before, section->after));
    }
    put(json, "]");
}

static void put_function(struct json *json, const struct report_function *function)
{
    put(json, "{\"key\": ");
    put_string(json, function->key);
    put(json, ", \"name\": ");
    put_string(json, function->name);
    put(json, arena_format(json->session,
                           ", \"before\": %" PRIu64 ", \"after\": %" PRIu64
                           ", \"shared\": %" PRIu64 "%s}",
                           function->before, function->after, function->after_shared,
                           function->is_helper ? ", \"helper\": true" : ""));
}

/* Of each unit its functions, in the order in which they were found: chains, so that
 * many units with many functions are one walk. */
static uint32_t *chain_functions(struct json *json, const struct report *report,
                                 uint32_t *first)
{
    uint32_t count = report->functions.count;
    uint32_t *next = arena_new_array(json->session, uint32_t, count);
    for (uint32_t i = 0; i < report->units.count; i++)
        first[i] = NO_INDEX;
    for (uint32_t i = count; i-- > 0;) {
        uint32_t unit = report->functions.items[i].unit;
        next[i] = first[unit];
        first[unit] = i;
    }
    return next;
}

static void put_units(struct json *json, const struct report *report)
{
    uint32_t *first = arena_new_array(json->session, uint32_t, report->units.count);
    const uint32_t *next = chain_functions(json, report, first);
    put(json, ",\n  \"units\": [");
    for (uint32_t i = 0; i < report->units.count; i++) {
        const struct report_unit *unit = &report->units.items[i];
        put_next(json, i);
        put(json, "{\"name\": ");
        put_string(json, unit->name);
        put(json, ", ");
        put_sizes(json, "before", &unit->before);
        put(json, ", ");
        put_sizes(json, "after", &unit->after);
        put(json, ", \"functions\": [");
        uint32_t position = 0;
        for (uint32_t f = first[i]; f != NO_INDEX; f = next[f]) {
            put(json, position++ == 0 ? "\n      " : ",\n      ");
            put_function(json, &report->functions.items[f]);
        }
        put(json, "]}");
    }
    put(json, "]");
}

static void put_folds(struct json *json, const struct report *report)
{
    put(json, ",\n  \"folded\": [");
    for (uint32_t i = 0; i < report->folds.count; i++) {
        const struct report_folded *folded = &report->folds.items[i];
        put_next(json, i);
        put(json, "{\"name\": ");
        put_string(json, folded->name);
        put(json, ", \"unit\": ");
        put_string(json, folded->unit);
        put(json, ", \"onto\": ");
        put_string(json, folded->heir);
        put(json, arena_format(json->session, ", \"bytes\": %" PRIu32 ", \"jump\": %s}",
                               folded->bytes, folded->jumps ? "true" : "false"));
    }
    put(json, "]");
}

static void put_code(struct json *json, const struct listing *code)
{
    put(json, "\"code\": [");
    for (uint32_t i = 0; i < code->count; i++) {
        const struct listing_line *line = &code->lines[i];
        put(json,
            arena_format(json->session, "%s[%" PRIu64 ", \"%s\", ", i == 0 ? "" : ", ",
                         line->at - code->lines[0].at, line->hex));
        put_string(json, line->text);
        put(json, "]");
    }
    put(json, "]");
}

static void put_body(struct json *json, const struct report *report,
                     const struct report_body *body)
{
    const struct report_function *functions = report->functions.items;
    put(json, "{\"name\": ");
    put_string(json, functions[body->function].name);
    put(json, ", \"key\": ");
    put_string(json, functions[body->function].key);
    put(json, arena_format(json->session, ", \"bytes\": %" PRIu64 ", ",
                           functions[body->function].after));
    put_code(json, &body->code);
    put(json, ", \"sites\": [");
    for (uint32_t i = 0; i < body->site_count; i++) {
        put(json, i == 0 ? "{\"key\": " : ", {\"key\": ");
        put_string(json, functions[body->sites[i].function].key);
        put(json,
            arena_format(json->session, ", \"at\": %" PRIu64 "}", body->sites[i].at));
    }
    put(json, "]}");
}

static void put_bodies(struct json *json, const struct report *report)
{
    put(json, ",\n  \"bodies\": [");
    for (uint32_t i = 0; i < report->bodies.count; i++) {
        put_next(json, i);
        put_body(json, report, &report->bodies.items[i]);
    }
    put(json, "]");
}

struct bytes report_json(struct arena *session, const struct report *report)
{
    struct json json = {session, buffer_new(session)};
    put(&json,
        arena_format(session,
                     "{\n  \"version\": \"%s\",\n  \"verified\": %s,\n  \"dry_run\": "
                     "%s,\n",
                     MO_VERSION, report->verified ? "true" : "false",
                     report->dry_run ? "true" : "false"));
    put_totals(&json, report);
    put_rounds(&json, report);
    put_helpers(&json, report);
    put_refusals(&json, report);
    put_sections(&json, report);
    put_units(&json, report);
    if (report->folds.count)
        put_folds(&json, report);
    if (report->wants_bodies)
        put_bodies(&json, report);
    put(&json, "\n}\n");
    return buffer_bytes(&json.text);
}
