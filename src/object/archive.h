/* SPDX-License-Identifier: MIT
 *
 * Sizes and places in an archive, for those who read and those who write one.
 */
#ifndef MO_OBJECT_ARCHIVE_H
#define MO_OBJECT_ARCHIVE_H

#include "mo/object.h"

enum {
    ARCHIVE_MAGIC = 8,    /* "!<arch>\n" */
    ARCHIVE_HEADER = 60,  /* bytes of a member's header */
    ARCHIVE_NAME = 16,    /* bytes of its name field */
    ARCHIVE_SIZE_AT = 48, /* where the size field starts */
};

#endif
