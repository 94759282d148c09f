/* SPDX-License-Identifier: MIT
 *
 * The walks, on several processors. What a walk needs of the checker, it only reads; what
 * it notes - rows that nobody had, references that must wait, claims - it notes in a
 * copy of the checker that its part has for itself. The notes are looked at when all
 * walks are done, in the order of the parts: the first difference is the one that is
 * told, whoever found one first.
 */
#include "outliner/verify/verify.h"

/* Bytes of code that make a part: some milliseconds. */
enum { PART_BYTES = 64 * 1024 };

struct part {
    struct verify verify;
    const struct changed *first;
    uint32_t count; /* of sections */
    struct error err;
};

struct parts {
    array_of(struct part) items;
    struct verify *verify;
    struct error tables_err;
    uint64_t bytes; /* of code, all together */
};

/* Of the checker, with its own notes. */
struct verify verify_copy(const struct verify *verify)
{
    struct verify copy = *verify;
    copy.arena = arena_new();
    copy.rows = row_table_over(copy.arena, verify->rows);
    copy.views = (struct views){0};
    copy.claimed = table_new(copy.arena);
    copy.confirmed = table_new(copy.arena);
    copy.before.nearby = arena_new_one(copy.arena, struct nearby);
    copy.after.nearby = arena_new_one(copy.arena, struct nearby);
    return copy;
}

static struct parts cut(struct verify *verify, const struct changes *changes)
{
    struct parts parts = {.verify = verify};
    uint64_t bytes = PART_BYTES; /* in the part at hand */
    for (uint32_t i = 0; i < changes->count; i++) {
        if (bytes >= PART_BYTES) {
            struct part part = {.verify = verify_copy(verify), .first = &changes->items[i]};
            array_push(verify->arena, &parts.items, part);
            bytes = 0;
        }
        parts.items.items[parts.items.count - 1].count++;
        uint64_t size = spot_section(&verify->before, changes->items[i].old)->data.size;
        bytes += size;
        parts.bytes += size;
    }
    return parts;
}

/* Meanwhile the lifter looks for jump tables, for verify_data(), unless they are known:
 * the longest part, so it is the first one. */
static void walk_part(void *context, uint32_t number, uint32_t worker)
{
    struct parts *parts = context;
    (void)worker;
    if (number == 0) {
        if (!parts->verify->knows_tables)
            (void)verify_find_tables(parts->verify, &parts->tables_err);
        return;
    }
    struct part *part = &parts->items.items[number - 1];
    for (uint32_t i = 0; i < part->count; i++) {
        if (!verify_section(&part->verify, &part->first[i], &part->err))
            return;
    }
}

static void judge_part(void *context, uint32_t number, uint32_t worker)
{
    struct parts *parts = context;
    struct part *part = &parts->items.items[number];
    (void)worker;
    (void)verify_pending(&part->verify, &part->err);
}

static bool tell_errors(const struct parts *parts, struct error *err)
{
    for (uint32_t i = 0; i < parts->items.count; i++) {
        if (parts->items.items[i].err.set)
            return fail(err, NULL, "%s", parts->items.items[i].err.message);
    }
    return !parts->tables_err.set ||
           fail(err, NULL, "%s", parts->tables_err.message);
}

static bool do_parts(const struct verify *verify, struct parts *parts, struct error *err)
{
    uint32_t count = parts->items.count;
    parallel_do(verify->workers, count + 1, walk_part, parts);
    if (!tell_errors(parts, err))
        return false;
    parallel_do(verify->workers, count, judge_part, parts);
    return tell_errors(parts, err);
}

/* Any site can confirm what another one claims, and many call the same function, so this
 * is for all parts together. */
static void collect_claims(struct verify *verify, const struct verify *part)
{
    for (uint32_t i = 0; i < table_count(part->confirmed); i++) {
        struct bytes key = table_key(part->confirmed, i);
        table_intern(verify->confirmed, key.at, key.size);
    }
    for (uint32_t i = 0; i < part->claims.count; i++) {
        struct claim claim = part->claims.items[i];
        struct bytes key = table_key(part->claimed, claim.number);
        claim.number = table_intern(verify->claimed, key.at, key.size);
        array_push(verify->arena, &verify->claims, claim);
    }
    for (uint32_t i = 0; i < part->inner.count; i++)
        array_push(verify->arena, &verify->inner, part->inner.items[i]);
}

bool verify_code(struct verify *verify, struct error *err)
{
    struct changes changes = {0};
    for (uint32_t i = 0; i < verify->before.objects->count; i++)
        verify_find_changes(verify, i, &changes);
    struct parts parts = cut(verify, &changes);
    decoder_expect(verify->decoder, parts.bytes, 0);
    bool good = do_parts(verify, &parts, err);
    for (uint32_t i = 0; i < parts.items.count; i++) {
        struct verify *part = &parts.items.items[i].verify;
        collect_claims(verify, part);
        arena_adopt(verify->arena, part->arena); /* the maps are in it */
    }
    return good && verify_claims(verify, err) && verify_inner(verify, err);
}
