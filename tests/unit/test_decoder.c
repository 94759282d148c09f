/* SPDX-License-Identifier: MIT
 *
 * The decoder that remembers says what the target says: for jumps to all distances, and
 * at every offset of the code of libc.a, between instructions, too (skipped where there
 * is no libc.a), by several workers at once; and ranges that are tried whole.
 */
#include "mo/decoder.h"
#include "mo/object.h"
#include "mo/parallel.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static bool same_insn(const struct insn *a, const struct insn *b)
{
    return a->offset == b->offset && a->target == b->target && a->uses == b->uses &&
           a->defs == b->defs && a->flag_uses == b->flag_uses &&
           a->flag_defs == b->flag_defs && a->length == b->length &&
           a->flow == b->flow && a->traits == b->traits && a->sp_value == b->sp_value;
}

/* False when neither can decode it. */
static bool compare(struct decoder *decoder, const struct target *target,
                    const uint8_t *bytes, uint64_t size, uint32_t offset)
{
    struct insn told = {0}, remembered = {0}, tried = {0};
    bool known = target->decode(bytes, size, offset, &told);
    bool same = decoder_decode(decoder, bytes, size, offset, &remembered) == known &&
                decoder_try(decoder, bytes, size, offset, &tried) == known &&
                (!known ||
                 (same_insn(&told, &remembered) && same_insn(&told, &tried)));
    if (!same) /* an assertion costs as much as a thousand instructions */
        ck_abort_msg("offset %u, bytes %02x %02x %02x …", offset, bytes[0], bytes[1],
                     bytes[2]);
    return known;
}

static const struct branch {
    uint8_t bytes[16];
    uint32_t length, field; /* bytes; of the displacement at the end */
} branches[] = {
    {{0xe8},                                   5, 4}, /* call */
    {{0xe9},                                   5, 4}, /* jmp */
    {{0xeb},                                   2, 1},
    {{0x74},                                   2, 1}, /* je */
    {{0x0f, 0x84},                             6, 4},
    {{0xe3},                                   2, 1}, /* jrcxz */
    {{0x2e, 0x74},                             3, 1}, /* with a prefix */
    {{0x2e, 0x2e, 0x2e, 0x75},                 5, 1},
    {{0xc7, 0xf8},                             6, 4}, /* xbegin */
    {{0x48, 0x8d, 0x05},                       7, 4}, /* lea …(%rip), %rax */
    {{0x66, 0xe9},                             4, 2}, /* not known */
    {{0x66, 0xc7, 0xf8},                       5, 2},
};

static const int32_t distances[] = {0,  1,    -1,   2,     5,         -5,       127,
                                    -128, 255, 256, -256, 0x7fffffff, INT32_MIN, 0x101};

/* Twice, so that the second time it is remembered. */
START_TEST(test_branches)
{
    struct arena *stage = arena_new();
    struct decoder *decoder = decoder_new(stage, &target_x86_64);
    const struct branch *branch = &branches[_i];
    const uint32_t offsets[] = {0, 3, 1000, 0x7fffffff, 0xfffffff0};
    for (int round = 0; round < 2 * COUNT(distances); round++) {
        uint8_t bytes[16];
        memset(bytes, 0x90, sizeof bytes);
        memcpy(bytes, branch->bytes, branch->length);
        store_le(bytes + branch->length - branch->field, branch->field,
                 (uint64_t)distances[round / 2]);
        for (int i = 0; i < COUNT(offsets); i++)
            compare(decoder, &target_x86_64, bytes, sizeof bytes, offsets[i]);
    }
    arena_free(stage);
}
END_TEST

static uint64_t compare_section(struct decoder *decoder, const struct target *target,
                                struct bytes code)
{
    uint64_t known = 0;
    for (uint64_t at = 0; at < code.size; at += target->code_align)
        known += compare(decoder, target, code.at + at, code.size - at, (uint32_t)at);
    return known;
}

static const struct library {
    const struct target *target;
    const char *path;
} libraries[] = {
    {&target_x86_64,  MO_CORPORA "/amd64/usr/lib/x86_64-linux-gnu/libc.a"  },
    {&target_aarch64, MO_CORPORA "/arm64/usr/lib/aarch64-linux-gnu/libc.a" },
};

START_TEST(test_library)
{
    const struct library *library = &libraries[_i];
    if (access(library->path, R_OK) != 0)
        return;
    struct arena *session = arena_new();
    struct decoder *decoder = decoder_new(session, library->target);
    struct error err = {0};
    struct bytes image;
    struct archive archive;
    uint64_t known = 0;
    ck_assert(file_read(session, library->path, &image, &err));
    ck_assert(archive_read(session, library->path, image, &archive, &err));
    for (uint32_t i = 0; i < archive.count; i++) {
        const struct object *object;
        if (i % 100 == 0) /* so that some is not remembered, too */
            decoder_expect(decoder, archive.members[i].image.size, 0);
        if (!archive.members[i].is_object ||
            !object_read(session, archive.members[i].name, archive.members[i].image,
                         &object, &err))
            continue;
        for (uint32_t s = 0; s < object->section_count; s++)
            if (section_is_code(&object->sections[s]))
                known += compare_section(decoder, library->target,
                                         object->sections[s].data);
    }
    printf("%s: %llu offsets decode\n", library->target->name,
           (unsigned long long)known);
    ck_assert_uint_gt(known, 100000);
    arena_free(session);
}
END_TEST

/* Every offset but the last ones, at two places: as if it had been tried there. */
static void compare_range(struct decoder *decoder, const struct target *machine,
                          struct bytes code)
{
    if (code.size <= MOST_INSN_BYTES)
        return;
    uint32_t end = (uint32_t)code.size - MOST_INSN_BYTES;
    const struct attempt *attempts = decoder_try_all(decoder, code, 0, end);
    for (uint32_t at = 0; at < end; at++) {
        const struct attempt *attempt = &attempts[at];
        struct insn told = {0};
        uint32_t offset = at + 0x40000000;
        bool known = machine->decode(code.at + at, code.size - at, offset, &told);
        int64_t target = (int64_t)offset + attempt->distance;
        uint32_t wanted = attempt->relative && target >= 0 && target < NO_INDEX
                              ? (uint32_t)target
                              : NO_INDEX;
        if ((attempt->length != 0) != known ||
            (known && (attempt->length != told.length || attempt->flow != told.flow ||
                       wanted != ((told.traits & INSN_PC_RELATIVE) != 0 ? told.target
                                                                        : NO_INDEX))))
            ck_abort_msg("offset %u of a range", at);
    }
}

struct members {
    struct decoder *decoder;
    const struct object **objects;
};

static void compare_member(void *context, uint32_t number, uint32_t worker)
{
    const struct members *members = context;
    const struct object *object = members->objects[number];
    (void)worker;
    for (uint32_t s = 0; s < object->section_count; s++) {
        if (!section_is_code(&object->sections[s]))
            continue;
        compare_section(members->decoder, &target_x86_64, object->sections[s].data);
        compare_range(members->decoder, &target_x86_64, object->sections[s].data);
    }
}

/* All at once, with room for some of what they meet. */
START_TEST(test_workers)
{
    enum { MEMBERS = 300, WORKERS = 4 };
    if (access(libraries[0].path, R_OK) != 0)
        return;
    struct arena *session = arena_new();
    struct members members = {decoder_new(session, &target_x86_64),
                              arena_new_array(session, const struct object *, MEMBERS)};
    struct error err = {0};
    struct bytes image;
    struct archive archive;
    uint32_t count = 0;
    ck_assert(file_read(session, libraries[0].path, &image, &err));
    ck_assert(archive_read(session, libraries[0].path, image, &archive, &err));
    for (uint32_t i = 0; i < archive.count && count < MEMBERS; i++) {
        if (archive.members[i].is_object)
            count +=
                object_read(session, archive.members[i].name, archive.members[i].image,
                            &members.objects[count], &err);
    }
    decoder_expect(members.decoder, 1 << 18, 1 << 16);
    parallel_do(WORKERS, count, compare_member, &members);
    decoder_expect(members.decoder, 1 << 22, 1 << 20);
    parallel_do(WORKERS, count, compare_member, &members);
    ck_assert_uint_gt(count, 100);
    arena_free(session);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("decoder");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, test_workers);
    tcase_add_loop_test(tests, test_branches, 0, COUNT(branches));
    tcase_add_loop_test(tests, test_library, 0, COUNT(libraries));
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
