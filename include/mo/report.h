/* SPDX-License-Identifier: MIT
 *
 * What a run did, in numbers. link.c feeds it as the run goes on; report_text() and
 * report_json() then say the same in two forms.
 *
 * Bytes are those that a program brings into memory. `.eh_frame_hdr` is made by the
 * link; here it is 8 bytes for each FDE, which is what the link will write.
 */
#ifndef MO_REPORT_H
#define MO_REPORT_H

#include "mo/bytes.h"
#include "mo/fold.h"
#include "mo/listing.h"
#include "mo/object.h"
#include "mo/plan.h"
#include "mo/program.h"
#include "mo/table.h"

struct costs;

struct sizes {
    uint64_t text; /* allocated executable sections */
    uint64_t eh_frame;
    uint64_t eh_frame_hdr;
    uint64_t loaded; /* all allocated sections with contents, and eh_frame_hdr */
};

struct report_unit {
    const char *name; /* "a.o", "libfoo.a(bar.o)", "(helpers)" */
    struct sizes before, after;
};

/* A section of the link: what goes into ".text", wherever it comes from. */
struct report_section {
    const char *name;
    uint64_t before, after; /* loaded bytes */
};

struct report_function {
    const char *key; /* the same on every build: functions.c */
    const char *name;
    uint32_t unit; /* index in report.units */
    bool is_helper;
    uint64_t before, after;               /* its own bytes */
    uint64_t before_shared, after_shared; /* its share of the bytes of helpers */
};

/* How many functions had this key already, before and after. */
struct report_repeat {
    uint32_t count[2];
};

struct report_site {
    uint32_t function; /* that enters the helper: index in report.functions */
    uint64_t at;       /* bytes from its start */
};

/* A helper as it is in the end. */
struct report_body {
    uint32_t function; /* index in report.functions */
    struct listing code;
    const struct report_site *sites;
    uint32_t site_count;
};

struct report_round {
    uint32_t helpers, sites;
    int64_t code, eh_frame, eh_frame_hdr; /* saved */
    /* The part of their sum that belongs to no single helper: padding, CIE, FDEs and header
     * entries that all share (below zero), and what shows only when they lie side by side
     * (mostly above). */
    int64_t fixed;
    int64_t choice_saving, choice_bound; /* see struct plan; 0: nobody knows */
};

struct report_helper {
    const char *name;
    uint32_t round; /* from 1 */
    uint32_t size;  /* bytes */
    uint32_t sites;
    const char *form; /* "tail"; "plain+save-stack" when its sites differ */
    int64_t saving;
};

struct report_folded {
    const char *name, *unit; /* of the function that has gone */
    const char *heir;        /* the one that stands for it */
    uint32_t bytes;
    bool jumps; /* a jump is left of it */
};

struct report_refusal {
    uint64_t bytes;
    uint32_t
        count; /* sections, functions or instructions; [REFUSAL_NONE]: open functions */
};

struct report {
    struct arena *session;
    struct table *unit_names;
    struct {
        struct report_unit *items;
        uint32_t count, capacity;
    } units;
    struct table *section_names;
    struct {
        struct report_section *items;
        uint32_t count, capacity;
    } sections;
    struct table *key_bases, *keys;
    struct {
        struct report_repeat *items; /* by number in key_bases */
        uint32_t count, capacity;
    } repeats;
    struct {
        struct report_function *items; /* by number in keys */
        uint32_t count, capacity;
    } functions;
    bool wants_bodies;
    struct {
        struct report_body *items; /* wants_bodies: in the order of the objects */
        uint32_t count, capacity;
    } bodies;
    struct {
        struct report_round *items;
        uint32_t count, capacity;
    } rounds;
    struct {
        struct report_helper *items;
        uint32_t count, capacity;
    } helpers;
    struct {
        struct report_folded *items; /* in the order of the objects */
        uint32_t count, capacity;
    } folds;
    int64_t shared_entries; /* bytes saved by unwind entries that functions share, which is
                               part of no round */
    struct report_refusal refusals[REFUSAL_COUNT]; /* of the first round */
    bool outlined;                                 /* false: merged only */
    bool verified;
    bool dry_run;
};

struct report report_new(struct arena *session);

/* --- gather.c --- */

struct sizes sizes_of(const struct objects *objects);

void report_before(struct report *report, const struct objects *objects);
void report_after(struct report *report, const struct objects *objects);

/* What the first round's lifting refused, and the instructions that cannot move. */
void report_refusals(struct report *report, const struct program *program);

/* What was folded in an object. (folds.c) */
void report_folds(struct report *report, const struct object *object,
                  const struct fold_plan *plan);

/* A round that was done; `round` counts from 1, and rounds of several sets add up. */
void report_round(struct report *report, uint32_t round, const struct program *program,
                  const struct plan *plan);

/* Sums over all units. */
void report_totals(const struct report *report, struct sizes *before,
                   struct sizes *after);

/* The helpers, largest saving first. */
const struct report_helper *report_helpers_sorted(struct arena *session,
                                                  const struct report *report);

/* --- functions.c --- */

/* The index in report.units of what a section came from. */
uint32_t report_unit_of(struct report *report, const struct object *object,
                        const struct section *section);
void report_add_functions(struct report *report, const struct objects *objects,
                          bool after);
void report_add_section(struct report *report, const struct section *section,
                        const struct sizes *sizes, bool after);

/* --- bodies.c --- */

/* functions[i]: index in report.functions of costs.items[i]. */
void report_add_bodies(struct report *report, const struct objects *objects,
                       const struct costs *costs, const uint32_t *functions);

/* --- functions.c --- */

/* The functions that are no helpers, the largest change first. */
const struct report_function *report_functions_sorted(struct arena *session,
                                                      const struct report *report,
                                                      uint32_t *count);

/* --- text.c, json.c, html.c --- */

struct bytes report_text(struct arena *session, const struct report *report);
struct bytes report_json(struct arena *session, const struct report *report);
struct bytes report_html(struct arena *session, const struct report *report);

#endif
