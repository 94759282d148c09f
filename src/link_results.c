/* SPDX-License-Identifier: MIT
 *
 * What a run tells and writes: reports, the size gate, the files.
 */
#include "link_parts.h"

#include "mo/array.h"
#include "mo/baseline.h"
#include "mo/outputs.h"
#include "mo/sides.h"

#include <stdio.h>

const char *link_listing_name(const struct link *link)
{
    return arena_format(link->session, "%s.s", link->options->remarks);
}

static void measure(struct link *link)
{
    const struct options *options = link->options;
    link->report.wants_bodies = options->reports[REPORT_HTML].wanted;
    for (uint32_t i = 0; i < link->before.count; i++) {
        report_before(&link->report, &link->before.items[i].objects);
        report_after(&link->report, &link->after.items[i].objects);
    }
    link->report.outlined = options->outline;
    link->report.verified = options->outline && !options->no_verify;
    link->report.dry_run = options->dry_run;
}

static struct bytes report_as(struct link *link, enum report_format format)
{
    switch (format) {
    case REPORT_JSON: return report_json(link->session, &link->report);
    case REPORT_TEXT: return report_text(link->session, &link->report);
    case REPORT_HTML: return report_html(link->session, &link->report);
    case REPORT_NONE:
    case REPORT_COUNT: break;
    }
    return (struct bytes){0};
}

void link_report(struct link *link, struct report_texts *out)
{
    const struct options *options = link->options;
    *out = (struct report_texts){0};
    if (options_want_report(options) || options->baseline)
        measure(link);
    for (uint32_t i = 0; i < REPORT_COUNT; i++) {
        if (options->reports[i].wanted)
            out->by_format[i] = report_as(link, (enum report_format)i);
    }
}

static void print(struct bytes text)
{
    if (text.size)
        fwrite(text.at, 1, text.size, stdout); /* main() looks at ferror(stdout) */
}

/* False, with err->over_limit: it has grown too much. */
static bool pass_gate(struct link *link, struct bytes *out, struct error *err)
{
    const struct options *options = link->options;
    struct limits limits = {0};
    *out = (struct bytes){0};
    if (!options->baseline)
        return true;
    for (uint32_t i = 0; i < options->max_growth.count; i++) {
        struct limit limit;
        if (limit_parse(options->max_growth.items[i], &limit))
            array_push(link->session, &limits, limit);
    }
    struct baseline baseline = {
        options->baseline, options->compare ? NULL : &link->report, options->compare};
    return baseline_compare(link->session, &baseline, &limits, out, err);
}

bool link_compare(struct link *link, struct error *err)
{
    struct bytes text;
    bool passed = pass_gate(link, &text, err);
    print(text);
    return passed;
}

/* A file beside the objects. */
struct side_file {
    const char *path; /* NULL: not wanted */
    struct bytes bytes;
};

static void remove_side_files(const struct side_file *files, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (files[i].path)
            remove(files[i].path);
    }
}

static bool write_side_files(const struct side_file *files, uint32_t count,
                             struct error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        if (files[i].path && !file_write(files[i].path, files[i].bytes, err)) {
            remove_side_files(files, i);
            return false;
        }
    }
    return true;
}

/* Of `files` there is room for all. */
static uint32_t list_side_files(const struct link *link,
                                const struct report_texts *reports,
                                struct side_file *files)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < REPORT_COUNT; i++)
        files[count++] = (struct side_file){link->options->reports[i].path,
                                            reports->by_format[i]};
    if (link->remarks) {
        files[count++] = (struct side_file){link->options->remarks,
                                            remarks_yaml(link->remarks)};
        files[count++] = (struct side_file){link_listing_name(link),
                                            remarks_listing(link->remarks)};
    }
    return count;
}

/* The objects, and what is told of them: all or nothing. Side files are written first,
 * since they can be taken back. A closed gate keeps the objects back, so that the next
 * `make` does not take them for made; the side files are what tells why. */
bool link_write(struct link *link, struct error *err)
{
    const struct options *options = link->options;
    struct report_texts reports;
    struct bytes gate;
    link_report(link, &reports);
    bool passed = pass_gate(link, &gate, err);
    if (!passed && !err->over_limit)
        return false;
    struct side_file files[REPORT_COUNT + 2];
    uint32_t count = list_side_files(link, &reports, files);
    if (!write_side_files(files, count, err))
        return false;
    if (passed &&
        !outputs_write(link->session, options, &link->inputs, &link->after, err)) {
        remove_side_files(files, count);
        return false;
    }
    if (options->print)
        print_sides(stdout, &link->before, &link->after, options->print);
    print(reports.by_format[options_printed_report(options)]);
    print(gate);
    return passed;
}
