/* SPDX-License-Identifier: MIT
 *
 * A growing array that lives in an arena. Growth doubles, so copies that are left behind
 * cost at most as much as the array itself; one that was made last grows in its place.
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

/* Room for `wanted` items, as long as the array is empty. Memory that is never written
 * costs next to nothing, copies of an array that has grown do. */
#define array_reserve(arena, array, wanted) \
    ((array)->capacity = (wanted), \
     (array)->items = array_room((arena), (array)->capacity, sizeof *(array)->items))

/* The items, there or elsewhere, with room for at least one more; updates *capacity. */
void *array_grow(struct arena *arena, const void *items, uint32_t *capacity, size_t size);
void *array_room(struct arena *arena, uint32_t wanted, size_t size);

#endif
