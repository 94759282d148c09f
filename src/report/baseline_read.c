/* SPDX-License-Identifier: MIT
 *
 * Reports that are read, by libjansson (which lives here only). What is asked of one is
 * little, so that reports of other versions can be read: "after.loaded", "sections" and
 * "units[].functions[]".
 */
#include "comparison.h"

#include <jansson.h>
#include <unistd.h>

/* A report that is being read, as what was or as what is. */
struct reading {
    struct comparison *comparison;
    bool is_new;
};

static bool read_bytes(const json_t *value, int64_t *out)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        json_integer_value(value) >> 33)
        return false;
    *out = json_integer_value(value);
    return true;
}

static bool read_section(const struct reading *reading, const json_t *section)
{
    const char *name = json_string_value(json_object_get(section, "name"));
    int64_t bytes = 0;
    if (!name || !read_bytes(json_object_get(section, "after"), &bytes))
        return false;
    comparison_put(reading->comparison, reading->is_new, SCOPE_SECTION, name, bytes);
    return true;
}

static bool read_function(const struct reading *reading, const json_t *function)
{
    const char *key = json_string_value(json_object_get(function, "key"));
    int64_t bytes = 0, shared = 0;
    if (!key || !read_bytes(json_object_get(function, "after"), &bytes) ||
        !read_bytes(json_object_get(function, "shared"), &shared))
        return false;
    if (!json_is_true(json_object_get(function, "helper")) && bytes > 0)
        comparison_put(reading->comparison, reading->is_new, SCOPE_FUNCTION, key,
                       bytes + shared);
    return true;
}

typedef bool read_item(const struct reading *reading, const json_t *item);

static bool read_list(const struct reading *reading, const json_t *list,
                      read_item *read)
{
    if (!json_is_array(list))
        return false;
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (!read(reading, json_array_get(list, i)))
            return false;
    }
    return true;
}

static bool read_unit(const struct reading *reading, const json_t *unit)
{
    return read_list(reading, json_object_get(unit, "functions"), read_function);
}

static bool read_json(const struct reading *reading, const json_t *report)
{
    int64_t loaded = 0;
    if (!read_bytes(json_object_get(json_object_get(report, "after"), "loaded"),
                    &loaded))
        return false;
    comparison_put(reading->comparison, reading->is_new, SCOPE_TOTAL, COMPARISON_TOTAL,
                   loaded);
    return read_list(reading, json_object_get(report, "sections"), read_section) &&
           read_list(reading, json_object_get(report, "units"), read_unit);
}

bool comparison_read(struct comparison *comparison, bool is_new, const char *path,
                     struct error *err)
{
    struct reading reading = {comparison, is_new};
    struct bytes text = {0};
    struct place place = {.file = path};
    if (access(path, F_OK) != 0)
        return fail(err, &place,
                    "there is no such file; a run without --baseline makes one, with "
                    "-R=json:%s",
                    path);
    if (!file_read(comparison->session, path, &text, err))
        return false;
    json_error_t wrong;
    json_t *report =
        json_loadb((const char *)text.at, text.size, JSON_REJECT_DUPLICATES, &wrong);
    if (!report)
        return fail(err, &place, "line %d: %s", wrong.line, wrong.text);
    bool ok = read_json(&reading, report);
    json_decref(report);
    return ok || fail(err, &place,
                      "not a report of this mo-link with sections and functions; make "
                      "one with -R=json:FILE");
}
