/* SPDX-License-Identifier: MIT */
#include "mo/error.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Appends to the message; text that does not fit is cut. */
MO_PRINTF(2, 0) static void vadd(struct error *err, const char *format, va_list arguments)
{
    size_t used = strlen(err->message);
    vsnprintf(err->message + used, sizeof err->message - used, format, arguments);
}

MO_PRINTF(2, 3) static void add(struct error *err, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vadd(err, format, arguments);
    va_end(arguments);
}

static void add_place(struct error *err, const struct place *place)
{
    if (!place)
        return;
    if (place->file)
        add(err, "%s: ", place->file);
    if (place->section && place->function)
        add(err, "%s+0x%" PRIx64 " (%s+0x%" PRIx64 "): ", place->section, place->offset,
            place->function, place->function_offset);
    else if (place->section)
        add(err, "%s+0x%" PRIx64 ": ", place->section, place->offset);
}

/* The first error wins; false: there was one already. */
MO_PRINTF(3, 0) static bool record(struct error *err, const struct place *place,
                                   const char *format, va_list arguments)
{
    if (err->set)
        return false;
    err->set = true;
    err->message[0] = '\0';
    add_place(err, place);
    vadd(err, format, arguments);
    return true;
}

bool fail(struct error *err, const struct place *place, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)record(err, place, format, arguments);
    va_end(arguments);
    return false;
}

bool fail_errno(struct error *err, const struct place *place, const char *format, ...)
{
    int number = errno;
    va_list arguments;
    va_start(arguments, format);
    if (record(err, place, format, arguments))
        add(err, ": %s", strerror(number));
    va_end(arguments);
    return false;
}
