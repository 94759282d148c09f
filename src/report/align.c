/* SPDX-License-Identifier: MIT
 *
 * The longest common subsequence of two lists, by the greedy algorithm of E. W. Myers
 * ("An O(ND) Difference Algorithm and Its Variations", Algorithmica 1, 1986): quick
 * when the lists are alike. Names are the paper's: D edits, diagonal k is x - y, V[k]
 * the furthest x on it.
 */
#include "report_parts.h"

#include <string.h>

enum { MOST_EDITS = 3000 }; /* 36 MB of kept Vs; beyond that nothing is alike anyway */

struct walk {
    const uint32_t *a, *b;
    int32_t a_count, b_count;
    int32_t *kept[MOST_EDITS + 1]; /* V before step D, from diagonal -D - 1 on */
};

/* Where the furthest path to diagonal k comes from: k - 1 or k + 1. */
static int32_t from_diagonal(const int32_t *v, int32_t d, int32_t k)
{
    return k == -d || (k != d && v[k - 1] < v[k + 1]) ? k + 1 : k - 1;
}

/* The number of edits, or -1: too many. */
static int32_t search(struct arena *arena, struct walk *walk)
{
    int32_t *v = arena_new_array(arena, int32_t, 2 * MOST_EDITS + 5);
    v += MOST_EDITS + 2; /* diagonals count from here, in both directions */
    for (int32_t d = 0; d <= MOST_EDITS; d++) {
        walk->kept[d] = arena_copy(arena, v - d - 1, (2 * (size_t)d + 3) * sizeof *v);
        for (int32_t k = -d; k <= d; k += 2) {
            int32_t from = from_diagonal(v, d, k);
            int32_t x = from > k ? v[from] : v[from] + 1;
            while (x < walk->a_count && x - k < walk->b_count &&
                   walk->a[x] == walk->b[x - k])
                x++;
            v[k] = x;
            if (x >= walk->a_count && x - k >= walk->b_count)
                return d;
        }
    }
    return -1;
}

static void walk_back(const struct walk *walk, int32_t edits, uint32_t *matches)
{
    int32_t x = walk->a_count, y = walk->b_count;
    for (int32_t d = edits; d >= 0; d--) {
        const int32_t *v = walk->kept[d] + d + 1;
        int32_t from = from_diagonal(v, d, x - y);
        int32_t old_x = d > 0 ? v[from] : 0, old_y = d > 0 ? v[from] - from : 0;
        for (; x > old_x && y > old_y; x--, y--)
            matches[x - 1] = (uint32_t)(y - 1);
        x = old_x;
        y = old_y;
    }
}

uint32_t *align(struct arena *arena, const uint32_t *a, uint32_t a_count,
                const uint32_t *b, uint32_t b_count)
{
    uint32_t *matches = arena_new_array(arena, uint32_t, a_count);
    memset(matches, 0xff, a_count * sizeof *matches);
    if (a_count > INT32_MAX / 4 || b_count > INT32_MAX / 4)
        return matches;
    struct walk *walk = arena_new_one(arena, struct walk);
    walk->a = a;
    walk->b = b;
    walk->a_count = (int32_t)a_count;
    walk->b_count = (int32_t)b_count;
    int32_t edits = search(arena, walk);
    if (edits >= 0)
        walk_back(walk, edits, matches);
    return matches;
}
