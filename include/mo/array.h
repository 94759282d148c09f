/* SPDX-License-Identifier: MIT
 *
 * A growing array that lives in an arena. Growth doubles, so the abandoned copies cost at
 * most as much as the array itself.
 *
 *     array_of(uint32_t) list = {0};
 *     array_push(stage, &list, 7);
 */
#ifndef MO_ARRAY_H
#define MO_ARRAY_H

#include "mo/arena.h"

#define array_of(type) \
    struct { \
        type *items; \
        uint32_t count, capacity; \
    }

#define array_push(arena, array, value) \
    ((array)->count == (array)->capacity \
         ? (void)((array)->items = array_grow((arena), (array)->items, \
                                              &(array)->capacity, \
                                              sizeof *(array)->items)) \
         : (void)0, \
     (array)->items[(array)->count++] = (value))

/* Returns a copy of `items` with room for at least one more; updates *capacity. */
void *array_grow(struct arena *arena, const void *items, uint32_t *capacity, size_t size);

#endif
