/* SPDX-License-Identifier: MIT
 *
 * What stands in files that options name is input: read when the command line is known to
 * be right.
 */
#include "mo/options.h"

#include "mo/object.h"
#include "mo/profile.h"

bool options_load(struct arena *session, struct options *options, struct error *err)
{
    struct bytes text;
    struct table *hot, *all;
    if (!options->profile)
        return true;
    if (!file_read(session, options->profile, &text, err) ||
        !profile_read(session, options->profile, text, options->hot_share, &hot, &all,
                      err))
        return false;
    options->hot = hot;
    options->profiled = all;
    return true;
}
