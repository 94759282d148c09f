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

const char *options_format_name(uint32_t format)
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

static bool set_format(struct options *out, const char *value, struct error *err)
{
    const char *rest = "";
    out->report = format_of(value, &rest);
    out->report_path = *rest == ':' ? rest + 1 : NULL;
    if (out->report == REPORT_NONE || (*rest == ':' && rest[1] == '\0'))
        return fail(err, NULL,
                    "-R: '%s' is no format; there are text, json, json:FILE, html and "
                    "html:FILE",
                    value);
    return true;
}

static bool same_report(const struct options *a, const struct options *b)
{
    return a->report == b->report && !a->report_path == !b->report_path &&
           (!a->report_path || strcmp(a->report_path, b->report_path) == 0);
}

bool options_report(struct options *out, const char *value, const char *next,
                    struct error *err)
{
    const char *rest;
    if (!value && next && format_of(next, &rest) != REPORT_NONE)
        return fail(err, NULL, "-R takes its format after '=': -R=%s", next);
    struct options before = *out;
    if (!set_format(out, value ? value : "text", err))
        return false;
    return before.report == REPORT_NONE || same_report(&before, out) ||
           fail(err, NULL, "-R is given twice, and there is one report: -R=%s",
                value ? value : "text");
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
    if (options->baseline && options->report > REPORT_TEXT && !options->report_path)
        return fail(err, NULL,
                    "--baseline and -R=%s both print to standard output: use "
                    "-R=%s:FILE",
                    formats[options->report], formats[options->report]);
    if (options->baseline && options->report_path &&
        strcmp(options->baseline, options->report_path) == 0)
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
        options->report != REPORT_NONE)
        return fail(
            err, NULL,
            "--compare is instead of a run: it takes no inputs, only --baseline "
            "and --max-growth");
    return options_check_gate(options, err);
}
