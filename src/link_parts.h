/* SPDX-License-Identifier: MIT
 *
 * Shared by link.c (all sets), link_set.c (one set), link_round.c (one round),
 * link_join.c (what the rounds made) and link_results.c (what is told and written). Nobody else includes it.
 */
#ifndef MO_LINK_PARTS_H
#define MO_LINK_PARTS_H

#include "mo/decoder.h"
#include "mo/inputs.h"
#include "mo/link.h"
#include "mo/plan.h"
#include "mo/progress.h"
#include "mo/program.h"
#include "mo/remarks.h"
#include "mo/report.h"

struct link {
    const struct options *options;
    struct arena *session;
    struct row_table *rows;  /* unwind rows have one numbering for the whole run */
    uint32_t workers;        /* as in mo/parallel.h */
    struct decoder *decoder; /* the rounds see the same instructions again and again */
    struct inputs inputs;
    struct sets before, after;
    struct report report;
    struct remarks *remarks; /* NULL: not asked for */
    struct table *helpers;   /* names of those that the last round began with */
    uint32_t helper_count;   /* made so far, under --bisect-limit */
    struct progress *progress;
    struct known_tables tables; /* of the set at hand, as its first round has seen it */
    bool known_link;         /* the linker has said already what it loads */
};

struct savings {
    int64_t code, eh_frame, eh_frame_hdr; /* bytes */
};

/* How to lift the objects of a set. */
struct lift_options link_lift_options(const struct link *link, const struct set *set);

/* One round over one set; rounds count from 1. `more` tells whether it changed anything;
 * if not, `objects` is as it was. What it saves is added to `sum`. */
MO_MUST_CHECK bool link_round(struct link *link, const struct set *set, uint32_t round,
                              struct objects *objects, struct savings *sum, bool *more,
                              struct error *err);

/* Holds nothing but helpers: an earlier round made it, or an earlier run, of which only
 * the names tell. */
bool is_helper_object(const struct object *object);

/* Behind the last round: objects of helpers become one, in a directory … */
MO_MUST_CHECK bool link_join_objects(struct link *link, const struct set *set,
                                     struct objects *objects, struct error *err);
/* … and then the sections of helpers of each object, with their unwind entries. What that
 * saves belongs to no round. */
MO_MUST_CHECK bool link_join_sections(struct link *link, const struct set *set,
                                      struct objects *objects, struct error *err);

/* All that is done to one set under --outline; verified. */
MO_MUST_CHECK bool link_outline_set(struct link *link, const struct set *given,
                                    struct objects *after, struct error *err);

/* A proof that nothing else moves along: see outliner/rewrite/shake.c. */
MO_MUST_CHECK bool link_shake_set(struct link *link, struct objects *objects,
                                  struct error *err);

/* Measures; the reports that the options ask for. */
void link_report(struct link *link, struct report_texts *out);

/* The listing beside the file of --remarks. */
const char *link_listing_name(const struct link *link);

/* --compare: two reports, and no run. */
MO_MUST_CHECK bool link_compare(struct link *link, struct error *err);

/* The objects, and what is told of them: all or nothing. */
MO_MUST_CHECK bool link_write(struct link *link, struct error *err);

#endif
