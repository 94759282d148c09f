/* SPDX-License-Identifier: MIT */
#include "mo/match.h"

#include <fnmatch.h>
#include <string.h>

bool glob_is_unit(const char *glob, const char *unit)
{
    const char *slash = strrchr(unit, '/');
    return fnmatch(glob, unit, 0) == 0 || (slash && fnmatch(glob, slash + 1, 0) == 0);
}

bool glob_is_function(const char *glob, const char *unit, const char *name)
{
    if (fnmatch(glob, name, 0) == 0)
        return true;
    char first[1024];
    const char *colon = strrchr(glob, ':');
    size_t size = colon ? (size_t)(colon - glob) : 0;
    if (size == 0 || size >= sizeof first || fnmatch(colon + 1, name, 0) != 0)
        return false;
    memcpy(first, glob, size);
    first[size] = '\0';
    return glob_is_unit(first, unit);
}
