/* SPDX-License-Identifier: MIT */
#include "mo/object.h"

#include <string.h>

bool archive_recognise(struct bytes image)
{
    return image.size >= 8 && (memcmp(image.at, "!<arch>\n", 8) == 0 ||
                               memcmp(image.at, "!<thin>\n", 8) == 0);
}
