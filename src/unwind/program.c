/* SPDX-License-Identifier: MIT
 *
 * Rows as the smallest program of call frame instructions.
 *
 * The plain way states the difference from each row to the next (diff.c). It is long
 * where a row comes back: an epilogue in the middle of a function undoes everything,
 * and behind it everything holds again. There DW_CFA_remember_state at the earlier row
 * and DW_CFA_restore_state at the later one cost one byte each, whatever lies between
 * them.
 *
 * So the question is which pairs (k, j) to take: remember while row k holds, restore
 * when row j begins, then state what j differs from k. Pairs nest, because the states
 * are kept on a stack. With best(i, j) for the smallest program that leads from row i
 * to row j with balanced pairs only,
 *
 *     best(i, j) = min( best(i, j - 1) + difference(j - 1, j),
 *                       min over k: best(i, k) + 1 + best(k, j - 1) + 1 + difference(k,
 * j) )
 *
 * which is exact for programs of this shape. Few pairs are worth considering: those
 * whose own cost is below the plain difference they replace. Only their first rows are
 * needed as i, so that an ordinary function costs a few comparisons.
 *
 * gdb (13) takes an entry in two steps, up to the start of the function and on from there,
 * and between them forgets what was remembered if the CIE's row has no rules, as on
 * AArch64. Then only a row behind the start of a function is remembered, and until the
 * next function starts: a part ends there.
 *
 * A long program is cut into parts of PART rows, between which no pair reaches; the
 * tables then fit on the stack, and sizes can be asked for without an arena.
 *
 * Limits: only rows that exist are remembered, never a common ancestor in between; and
 * advances are as they are, at most five bytes each.
 *
 * The size of outgoing arguments (GNU_args_size) is not part of a remembered state, see
 * machine.c.
 */
#include "internal.h"

#include <assert.h>

enum { PART = 96, PLAIN = UINT8_MAX };

struct part {
    const struct terms *terms;
    uint32_t last; /* rows are numbered from 0, which holds before the part, to last */
    uint32_t first; /* the first one that may be remembered */
    const struct row *row[PART + 1];
    uint32_t plain[PART + 1];          /* difference from the row before */
    uint32_t pair[PART + 1][PART + 1]; /* [k][j]: cost of the pair, 0: not worth it */
    bool first_of_pair[PART + 1];
    uint32_t best[PART + 1][PART + 1];  /* [i][j]; rows i that begin a pair, and 0 */
    uint8_t choice[PART + 1][PART + 1]; /* [i][j]: k, or PLAIN */
    uint8_t restores[PART + 1];         /* [j]: k, or PLAIN */
    uint8_t remembers[PART + 1];        /* [k]: how often */
};

/* The state after the restore of a pair. */
static struct row restored(const struct part *part, uint32_t k, uint32_t j)
{
    struct row row = *part->row[k];
    row.args_size = part->row[j - 1]->args_size;
    return row;
}

/* Prices every difference and every pair; returns whether there is a pair. */
static bool price(struct part *part)
{
    bool any = false;
    for (uint32_t i = 0; i <= part->last; i++)
        part->first_of_pair[i] = false;
    for (uint32_t j = 1; j <= part->last; j++) {
        struct sink sink = {0};
        sink_difference(&sink, part->terms, part->row[j - 1], part->row[j], UINT64_MAX);
        part->plain[j] = (uint32_t)sink.size;
        for (uint32_t k = 0; k + 1 < j; k++) {
            part->pair[k][j] = 0;
            if (k < part->first)
                continue;
            if (part->plain[j] <= 2)
                continue;
            struct row state = restored(part, k, j);
            struct sink after = {0};
            sink_difference(&after, part->terms, &state, part->row[j],
                            part->plain[j] - 2);
            if (after.size + 2 >= part->plain[j])
                continue;
            part->pair[k][j] = (uint32_t)after.size + 2;
            part->first_of_pair[k] = any = true;
        }
    }
    return any;
}

/* best[i][..] and choice[i][..]; those of later rows i are there. */
static void find_best(struct part *part, uint32_t i)
{
    part->best[i][i] = 0;
    for (uint32_t j = i + 1; j <= part->last; j++) {
        part->best[i][j] = part->best[i][j - 1] + part->plain[j];
        part->choice[i][j] = PLAIN;
        for (uint32_t k = i; k + 1 < j; k++) {
            if (!part->pair[k][j])
                continue;
            uint32_t cost = part->best[i][k] + part->best[k][j - 1] + part->pair[k][j];
            if (cost < part->best[i][j]) {
                part->best[i][j] = cost;
                part->choice[i][j] = (uint8_t)k;
            }
        }
    }
}

/* Notes the pairs that best[0][last] is made of. */
static void collect(struct part *part)
{
    struct {
        uint8_t i, j;
    } stack[PART + 1];
    uint32_t depth = 0;
    stack[depth].i = 0;
    stack[depth++].j = (uint8_t)part->last;
    while (depth) {
        depth--;
        uint8_t i = stack[depth].i, j = stack[depth].j;
        while (j > i) {
            uint8_t k = part->choice[i][j];
            if (k == PLAIN) {
                j--;
                continue;
            }
            part->restores[j] = k;
            part->remembers[k]++;
            stack[depth].i = k; /* what lies inside the pair, for later */
            stack[depth++].j = (uint8_t)(j - 1);
            j = k;
        }
    }
}

static void plan(struct part *part)
{
    for (uint32_t i = 0; i <= part->last; i++) {
        part->restores[i] = PLAIN;
        part->remembers[i] = 0;
    }
    if (!price(part))
        return;
    for (uint32_t i = part->last; i > 0; i--)
        if (part->first_of_pair[i])
            find_best(part, i);
    find_best(part, 0);
    collect(part);
}

static void remember(struct sink *sink, const struct part *part, uint32_t row)
{
    for (uint32_t i = 0; i < part->remembers[row]; i++)
        sink_u8(sink, CFA_REMEMBER_STATE);
}

static void write_row(struct sink *sink, const struct part *part, uint32_t j)
{
    uint8_t k = part->restores[j];
    if (k == PLAIN) {
        sink_difference(sink, part->terms, part->row[j - 1], part->row[j], UINT64_MAX);
    } else {
        struct row state = restored(part, k, j);
        sink_u8(sink, CFA_RESTORE_STATE);
        sink_difference(sink, part->terms, &state, part->row[j], UINT64_MAX);
    }
    remember(sink, part, j);
}

/* The next part, from change `base` on: how far it reaches, and which of its rows may be
 * remembered. `location` is where row 0 began. */
static void cut(struct part *part, const struct span *span, uint32_t base,
                uint32_t location)
{
    uint32_t left = span->change_count - base;
    part->last = left < PART ? left : PART;
    part->first = 0;
    if (part->terms->initial->rule_count)
        return;
    uint32_t begin = span->changes[base].offset, start = span->start, next = 0;
    for (; next < span->start_count && span->starts[next] <= begin; next++)
        start = span->starts[next];
    for (uint32_t i = 1; next < span->start_count && i < part->last; i++) {
        if (span->changes[base + i].offset >= span->starts[next])
            part->last = i;
    }
    while (part->first <= part->last && location <= start) {
        if (++part->first <= part->last)
            location = span->changes[base + part->first - 1].offset;
    }
}

uint64_t program_write(struct buffer *out, const struct terms *terms,
                       const struct row_table *rows, const struct span *span)
{
    struct part part; /* large; only what `last` covers is ever touched */
    struct sink sink = {.out = out};
    const struct row *row = terms->initial;
    uint32_t location = span->start;
    part.terms = terms;
    for (uint32_t base = 0; base < span->change_count; base += part.last) {
        cut(&part, span, base, location);
        part.row[0] = row;
        for (uint32_t j = 1; j <= part.last; j++)
            part.row[j] = row_get(rows, span->changes[base + j - 1].row);
        plan(&part);
        remember(&sink, &part, 0);
        for (uint32_t j = 1; j <= part.last; j++) {
            uint32_t offset = span->changes[base + j - 1].offset;
            assert(offset >= location && (offset - location) % terms->code_align == 0);
            sink_advance(&sink, (offset - location) / terms->code_align);
            location = offset;
            write_row(&sink, &part, j);
        }
        row = part.row[part.last];
    }
    return sink.size;
}
