/* SPDX-License-Identifier: MIT
 *
 * Values of the options that show something, and the mistakes that everybody makes with
 * them once.
 */
#include "options_parts.h"

#include "mo/baseline.h"

#include <string.h>
#include <sys/stat.h>

/* ORDER report */
static const char *const formats[REPORT_COUNT] = {NULL, "text", "json", "html"};

const char *report_format_name(enum report_format format)
{
    return formats[format];
}

/* "json", "json:FILE": the format, and what follows the name. REPORT_NONE: neither. */
static enum report_format format_of(const char *text, const char **rest)
{
    for (uint32_t i = REPORT_NONE + 1; i < REPORT_COUNT; i++) {
        size_t size = strlen(formats[i]);
        if (strncmp(text, formats[i], size) != 0)
            continue;
        *rest = text + size;
        if (**rest == '\0' || (**rest == ':' && i != REPORT_TEXT))
            return (enum report_format)i;
    }
    return REPORT_NONE;
}

bool options_want_report(const struct options *options)
{
    for (uint32_t i = REPORT_NONE + 1; i < REPORT_COUNT; i++) {
        if (options->reports[i].wanted)
            return true;
    }
    return false;
}

enum report_format options_printed_report(const struct options *options)
{
    for (uint32_t i = REPORT_NONE + 1; i < REPORT_COUNT; i++) {
        if (options->reports[i].wanted && !options->reports[i].path)
            return (enum report_format)i;
    }
    return REPORT_NONE;
}

bool options_report_names(const struct options *options, const char *path)
{
    for (uint32_t i = REPORT_NONE + 1; i < REPORT_COUNT; i++) {
        const char *other = options->reports[i].path;
        if (path && other && strcmp(path, other) == 0)
            return true;
    }
    return false;
}

static bool same_place(const char *a, const char *b)
{
    return !a == !b && (!a || strcmp(a, b) == 0);
}

/* Each form once; each file, and standard output, for one of them. */
static bool add_wish(struct options *out, enum report_format format, const char *path,
                     struct error *err)
{
    struct report_wish *wish = &out->reports[format];
    const char *name = formats[format];
    if (wish->wanted)
        return same_place(wish->path, path) ||
               fail(err, NULL, "-R=%s is given twice, for '%s' and for '%s'", name,
                    wish->path ? wish->path : "standard output",
                    path ? path : "standard output");
    enum report_format printed = options_printed_report(out);
    if (!path && printed != REPORT_NONE)
        return fail(err, NULL,
                    "-R=%s and -R=%s both print to standard output: use -R=%s:FILE",
                    formats[printed], name,
                    format == REPORT_TEXT ? formats[printed] : name);
    if (options_report_names(out, path))
        return fail(err, NULL, "-R=%s: another report is written to '%s'", name, path);
    *wish = (struct report_wish){true, path};
    return true;
}

bool options_report(struct options *out, const char *value, const char *next,
                    struct error *err)
{
    const char *rest;
    if (!value && next && format_of(next, &rest) != REPORT_NONE)
        return fail(err, NULL, "-R takes its format after '=': -R=%s", next);
    const char *text = value ? value : formats[REPORT_TEXT];
    enum report_format format = format_of(text, &rest);
    if (format == REPORT_NONE || (*rest == ':' && rest[1] == '\0'))
        return fail(err, NULL,
                    "-R: '%s' is no format; there are text, json, json:FILE, html and "
                    "html:FILE",
                    text);
    return add_wish(out, format, *rest == ':' ? rest + 1 : NULL, err);
}

bool options_is_input(const char *text)
{
    struct stat status;
    size_t size = strlen(text);
    return size > 2 && text[size - 2] == '.' &&
           (text[size - 1] == 'o' || text[size - 1] == 'a') &&
           stat(text, &status) == 0 && S_ISREG(status.st_mode);
}

bool options_check_function(const char *option, const char *value, struct error *err)
{
    if (!value || !options_is_input(value))
        return true;
    return fail(err, NULL,
                "%s wants the name of a function before the inputs: %s=main %s", option,
                option, value);
}

bool options_check_gate(const struct options *options, struct error *err)
{
    if (options->max_growth.count > 0 && !options->baseline)
        return fail(err, NULL,
                    "--max-growth needs --baseline=FILE, a report to compare with");
    for (uint32_t i = 0; i < options->max_growth.count; i++) {
        struct limit limit;
        const char *text = options->max_growth.items[i];
        if (!limit_parse(text, &limit))
            return fail(err, NULL,
                        "--max-growth: '%s' is no limit; 0.5%% and 64 are, and "
                        "section:1%% and function:64",
                        text);
    }
    enum report_format printed = options_printed_report(options);
    if (options->baseline && printed > REPORT_TEXT)
        return fail(err, NULL,
                    "--baseline and -R=%s both print to standard output: use "
                    "-R=%s:FILE",
                    formats[printed], formats[printed]);
    if (options_report_names(options, options->baseline))
        return fail(err, NULL,
                    "--baseline and -R both name '%s': a run that is too large would "
                    "become the measure of the next",
                    options->baseline);
    return true;
}

bool options_check_compare(const struct options *options, struct error *err)
{
    if (!options->baseline)
        return fail(err, NULL, "--compare needs --baseline=FILE, the earlier report");
    if (options->inputs.count > 0 || options->output || options->outline ||
        options_want_report(options))
        return fail(
            err, NULL,
            "--compare is instead of a run: it takes no inputs, only --baseline "
            "and --max-growth");
    return options_check_gate(options, err);
}
