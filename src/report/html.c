/* SPDX-License-Identifier: MIT
 *
 * The report as a page: page.html with the JSON report in it, and the helpers' bodies.
 */
#include "mo/report.h"

#include <string.h>

/* page.html, made a string by embed.cmake. */
extern const char report_page[];

/* "</script>" in a name must not end the script: JSON can say '<' in another way, and
 * it stands in strings only. */
static void put_json(struct buffer *out, struct bytes json)
{
    for (uint64_t i = 0; i < json.size; i++) {
        if (json.at[i] == '<')
            buffer_put(out, "\\u003c", 6);
        else
            buffer_u8(out, json.at[i]);
    }
}

struct bytes report_html(struct arena *session, const struct report *report)
{
    static const char mark[] = "@REPORT@";
    /* The last one: the comment at the head of the page names it, too. */
    const char *at = strstr(report_page, mark), *next;
    while ((next = strstr(at + 1, mark)) != NULL)
        at = next;
    struct buffer out = buffer_new(session);
    buffer_put(&out, report_page, (uint64_t)(at - report_page));
    put_json(&out, report_json(session, report));
    buffer_put(&out, at + strlen(mark), strlen(at + strlen(mark)));
    return buffer_bytes(&out);
}
