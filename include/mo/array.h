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

/* Room for `wanted` items, as long as the array is empty. Memory that is never written
 * costs next to nothing, copies of an array that has grown do. */
#define array_reserve(arena, array, wanted) \
    ((array)->capacity = (wanted), \
     (array)->items = arena_alloc_array((arena), (array)->capacity, sizeof *(array)->items))

/* Returns a copy of `items` with room for at least one more; updates *capacity. */
void *array_grow(struct arena *arena, const void *items, uint32_t *capacity, size_t size);

#endif
