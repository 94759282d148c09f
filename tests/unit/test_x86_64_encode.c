/* SPDX-License-Identifier: MIT
 *
 * Instructions of x86-64 that are made from others, and shift_sp on every instruction of
 * libc.a that addresses the stack (skipped where there is none).
 */
#include "mo/object.h"
#include "tests/unit/x86_64_text.h"

#include <elf.h>
#include <string.h>
#include <unistd.h>

/* --- encoding --- */

static void check_code(const struct code_bytes *code, const char *hex)
{
    struct text text = text_of(hex);
    ck_assert_msg(code->length == text.length, "%s: %d", hex, code->length);
    ck_assert_msg(memcmp(code->bytes, text.bytes, text.length) == 0, "%s", hex);
}

static const struct {
    const char *hex, *result; /* NULL: refused */
} canonicals[] = {
    {"eb 10",                "e9 00 00 00 00"      },
    {"3e 74 10",             "3e 0f 84 00 00 00 00"},
    {"0f 85 10 00 00 00",    "0f 85 00 00 00 00"   },
    {"e3 10",                "e3 00"               },
    {"80 3d 10 00 00 00 01", "80 3d 00 00 00 00 01"},
    {"48 89 d8",             "48 89 d8"            },
    {"48 89",                NULL                  },
};

START_TEST(test_canonical)
{
    struct text text = text_of(canonicals[_i].hex);
    struct code_bytes code;
    bool ok = TARGET->canonical(text.bytes, text.length, &code);
    ck_assert(ok == (canonicals[_i].result != NULL));
    if (ok)
        check_code(&code, canonicals[_i].result);
}
END_TEST

static const struct {
    const char *hex;
    int64_t displacement;
    const char *result;
} retargets[] = {
    {"eb 00",                0,                      "eb fe"               },
    {"eb 00",                129,                    "eb 7f"               },
    {"eb 00",                130,                    NULL                  },
    {"eb 00",                -126,                   "eb 80"               },
    {"eb 00",                -127,                   NULL                  },
    {"e8 00 00 00 00",       5,                      "e8 00 00 00 00"      },
    {"e8 00 00 00 00",       (int64_t)1 << 31,       "e8 fb ff ff 7f"      },
    {"e8 00 00 00 00",       ((int64_t)1 << 31) + 5, NULL                  },
    {"80 3d 00 00 00 00 01", 0x17,                   "80 3d 10 00 00 00 01"},
    {"48 89 d8",             0,                      NULL                  },
};

START_TEST(test_retarget)
{
    struct text text = text_of(retargets[_i].hex);
    struct code_bytes code = {.length = text.length};
    bool ok = TARGET->retarget(text.bytes, text.length, retargets[_i].displacement,
                               code.bytes);
    ck_assert(ok == (retargets[_i].result != NULL));
    if (ok)
        check_code(&code, retargets[_i].result);
}
END_TEST

static const struct {
    const char *hex, *result;
    uint8_t offset;
    uint32_t type;
    int64_t addend;
} relocatables[] = {
    {"e8 10 00 00 00",                "e8 00 00 00 00",                1, R_X86_64_PLT32, -4},
    {"eb 10",                         "e9 00 00 00 00",                1, R_X86_64_PLT32, -4},
    {"f2 e9 10 00 00 00",             "f2 e9 00 00 00 00",             2, R_X86_64_PLT32, -4},
    {"48 8d 05 10 00 00 00",          "48 8d 05 00 00 00 00",          3, R_X86_64_PC32,  -4},
    {"80 3d 10 00 00 00 01",          "80 3d 00 00 00 00 01",          2, R_X86_64_PC32,  -5},
    {"81 3d 10 00 00 00 78 56 34 12", "81 3d 00 00 00 00 78 56 34 12", 2, R_X86_64_PC32,
     -8                                                                                     },
    {"ff 25 10 00 00 00",             "ff 25 00 00 00 00",             2, R_X86_64_PC32,  -4},
    {"74 10",                         NULL,                            0, 0,              0 },
    {"0f 84 10 00 00 00",             NULL,                            0, 0,              0 },
    {"e3 10",                         NULL,                            0, 0,              0 },
    {"c7 f8 00 00 00 00",             NULL,                            0, 0,              0 },
    {"c3",                            NULL,                            0, 0,              0 },
};

/* Short forms are the long ones' own: widening leads back. */
static const struct {
    const char *hex, *result;
} narrows[] = {
    {"e9 11 22 33 44",       "eb 00"}, /* jmp */
    {"0f 84 11 22 33 44",    "74 00"}, /* je */
    {"0f 8f 11 22 33 44",    "7f 00"}, /* jg */
    {"e8 11 22 33 44",       NULL   }, /* call */
    {"eb 11",                NULL   }, /* is short */
    {"f2 e9 11 22 33 44",    NULL   }, /* bnd jmp */
    {"3e 0f 84 11 22 33 44", NULL   }, /* a branch hint */
    {"ff e0",                NULL   }, /* jmp *%rax */
};

START_TEST(test_narrow)
{
    struct text text = text_of(narrows[_i].hex);
    struct code_bytes code, canonical, wide;
    bool ok = TARGET->narrow(text.bytes, text.length, &code);
    ck_assert(ok == (narrows[_i].result != NULL));
    if (!ok)
        return;
    check_code(&code, narrows[_i].result);
    ck_assert(TARGET->widen(code.bytes, code.length, &wide));
    ck_assert(TARGET->canonical(text.bytes, text.length, &canonical));
    ck_assert_uint_eq(wide.length, canonical.length);
    ck_assert_mem_eq(wide.bytes, canonical.bytes, wide.length);
}
END_TEST

START_TEST(test_relocatable)
{
    struct text text = text_of(relocatables[_i].hex);
    struct code_bytes code;
    bool ok = TARGET->relocatable(text.bytes, text.length, &code);
    ck_assert_msg(ok == (relocatables[_i].result != NULL), "%s", relocatables[_i].hex);
    if (!ok)
        return;
    check_code(&code, relocatables[_i].result);
    ck_assert(code.has_reloc);
    ck_assert_uint_eq(code.reloc_offset, relocatables[_i].offset);
    ck_assert_uint_eq(code.reloc_type, relocatables[_i].type);
    ck_assert_int_eq(code.reloc_addend, relocatables[_i].addend);
}
END_TEST

static const struct {
    const char *hex;
    int32_t delta;
    const char *result;
} shifts[] = {
    {"48 8b 04 24",                8,   "48 8b 44 24 08"                  },
    {"48 8b 44 24 08",             -8,  "48 8b 04 24"                     },
    {"48 8b 44 24 78",             8,   "48 8b 84 24 80 00 00 00"         },
    {"48 8b 84 24 80 00 00 00",    -8,  "48 8b 44 24 78"                  },
    {"48 89 e7",                   8,   "48 8d 7c 24 08"                  },
    {"49 89 e0",                   8,   "4c 8d 44 24 08"                  },
    {"4c 8b dc",                   8,   "4c 8d 5c 24 08"                  },
    {"48 89 e5",                   256, "48 8d ac 24 00 01 00 00"         },
    {"48 8d 6c 24 78",             16,  "48 8d ac 24 88 00 00 00"         },
    {"c7 44 24 78 01 00 00 00",    8,   "c7 84 24 80 00 00 00 01 00 00 00"},
    {"42 8b 44 24 08",             8,   "42 8b 44 24 10"                  }, /* (%rsp,%r12), not without index */
    {"8b 44 8c 08",                8,   "8b 44 8c 10"                     },
    {"ff 14 24",                   8,   "ff 54 24 08"                     },
    {"48 c7 44 24 08 00 00 00 00", 0,   "48 c7 44 24 08 00 00 00 00"      },
    {"62 f1 7c 48 28 44 24 01",    64,  "62 f1 7c 48 28 44 24 02"         },
    {"62 f1 7c 48 28 44 24 01",    8,   "62 f1 7c 48 28 84 24 48 00 00 00"},
    {"48 8b 84 24 00 00 00 00",    8,   NULL                              }, /* left to a relocation */
    {"55",                         8,   NULL                              },
    {"48 83 ec 18",                8,   NULL                              },
    {"ff 74 24 08",                8,   NULL                              },
    {"48 8b 45 08",                8,   NULL                              },
};

START_TEST(test_shift)
{
    struct text text = text_of(shifts[_i].hex);
    struct code_bytes code;
    bool ok = TARGET->shift_sp(text.bytes, text.length, shifts[_i].delta, &code);
    ck_assert_msg(ok == (shifts[_i].result != NULL), "%s", shifts[_i].hex);
    if (ok)
        check_code(&code, shifts[_i].result);
}
END_TEST

static const struct {
    const char *hex, *result;
} thunks[] = {
    {"e8 01 02 03 04",       "e9 01 02 03 04"      },
    {"67 e8 01 02 03 04",    "67 e9 01 02 03 04"   },
    {"ff d0",                "ff e0"               },
    {"41 ff d3",             "41 ff e3"            },
    {"3e ff d0",             "3e ff e0"            },
    {"ff 15 01 02 03 04",    "ff 25 01 02 03 04"   },
    {"48 ff 15 01 02 03 04", "48 ff 25 01 02 03 04"},
    {"ff 54 24 08",          "ff 64 24 08"         },
    {"ff 1d 00 00 00 00",    NULL                  }, /* lcall */
    {"e9 00 00 00 00",       NULL                  },
    {"c3",                   NULL                  },
};

START_TEST(test_call_to_jump)
{
    struct text text = text_of(thunks[_i].hex);
    struct code_bytes code;
    bool ok = TARGET->call_to_jump(text.bytes, text.length, &code);
    ck_assert_msg(ok == (thunks[_i].result != NULL), "%s", thunks[_i].hex);
    if (ok)
        check_code(&code, thunks[_i].result);
}
END_TEST

START_TEST(test_emission)
{
    struct code_bytes code;
    TARGET->emit_call(&code);
    check_code(&code, "e8 00 00 00 00");
    TARGET->emit_jump(&code);
    check_code(&code, "e9 00 00 00 00");
    ck_assert_uint_eq(code.reloc_offset, 1);
    ck_assert_int_eq(code.reloc_addend, -4);
    TARGET->emit_return(&code);
    check_code(&code, "c3");
    for (uint32_t size = 0; size <= 40; size++) {
        uint8_t padding[40];
        uint32_t at = 0;
        TARGET->emit_padding(padding, size);
        while (at < size) {
            struct insn insn;
            ck_assert(TARGET->decode(padding + at, size - at, at, &insn));
            ck_assert(insn.traits == INSN_NOP);
            at += insn.length;
        }
        ck_assert_uint_eq(at, size);
    }
}
END_TEST

START_TEST(test_dwarf)
{
    for (uint32_t reg = 0; reg < 64; reg++) {
        uint32_t column = TARGET->dwarf_of_register((uint8_t)reg);
        if (column != NO_INDEX)
            ck_assert_uint_eq(TARGET->register_of_dwarf(column), reg);
    }
    ck_assert_uint_eq(TARGET->dwarf_of_register(RSP), 7);
    ck_assert_uint_eq(TARGET->dwarf_of_register(RBX), 3);
    ck_assert_uint_eq(TARGET->dwarf_of_register(RDX), 1);
    ck_assert_uint_eq(TARGET->register_of_dwarf(16), 0xff);
}
END_TEST

/* --- every stack operand of a library --- */

static const int32_t deltas[] = {8, 16, 128, 4096, -8};

static uint32_t check_round_trip(const uint8_t *bytes, const struct insn *insn)
{
    uint32_t refused = 0;
    for (size_t i = 0; i < sizeof deltas / sizeof *deltas; i++) {
        struct code_bytes there, back;
        struct insn shifted;
        if (!TARGET->shift_sp(bytes, insn->length, deltas[i], &there)) {
            refused++;
            continue;
        }
        ck_assert(TARGET->decode(there.bytes, there.length, 0, &shifted));
        ck_assert(shifted.length == there.length);
        ck_assert_int_eq(shifted.sp_value, insn->sp_value + deltas[i]);
        ck_assert(TARGET->shift_sp(there.bytes, there.length, -deltas[i], &back));
        struct insn same;
        ck_assert(TARGET->decode(back.bytes, back.length, 0, &same));
        ck_assert_int_eq(same.sp_value, insn->sp_value);
        if (back.length == insn->length && !(insn->traits & INSN_SP_COPY))
            ck_assert(memcmp(back.bytes, bytes, back.length) == 0);
    }
    return refused;
}

static void check_section(const struct section *section, uint32_t *shifted,
                          uint32_t *refused)
{
    for (uint64_t at = 0; at < section->data.size;) {
        const uint8_t *bytes = section->data.at + at;
        struct insn insn;
        if (!TARGET->decode(bytes, section->data.size - at, (uint32_t)at, &insn)) {
            at++;
            continue;
        }
        if (insn.traits & (INSN_SP_MEMORY | INSN_SP_COPY)) {
            (*shifted)++;
            *refused += check_round_trip(bytes, &insn);
        }
        at += insn.length;
    }
}

START_TEST(test_library)
{
    const char *path = MO_CORPORA "/amd64/usr/lib/x86_64-linux-gnu/libc.a";
    if (access(path, R_OK) != 0)
        return;
    struct arena *session = arena_new();
    struct error err = {0};
    struct bytes image;
    struct archive archive;
    uint32_t shifted = 0, refused = 0;
    ck_assert(file_read(session, path, &image, &err));
    ck_assert(archive_read(session, path, image, &archive, &err));
    for (uint32_t i = 0; i < archive.count; i++) {
        const struct object *object;
        if (!archive.members[i].is_object ||
            !object_read(session, archive.members[i].name, archive.members[i].image,
                         &object, &err))
            continue;
        for (uint32_t s = 0; s < object->section_count; s++)
            if (section_is_code(&object->sections[s]))
                check_section(&object->sections[s], &shifted, &refused);
    }
    printf("%u stack operands, %u shifts refused\n", shifted, refused);
    ck_assert_uint_gt(shifted, 10000);
    ck_assert_uint_lt(refused, 50);
    arena_free(session);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("x86-64, encoded");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, test_canonical, 0, COUNT(canonicals));
    tcase_add_loop_test(tests, test_retarget, 0, COUNT(retargets));
    tcase_add_loop_test(tests, test_narrow, 0, COUNT(narrows));
    tcase_add_loop_test(tests, test_relocatable, 0, COUNT(relocatables));
    tcase_add_loop_test(tests, test_shift, 0, COUNT(shifts));
    tcase_add_loop_test(tests, test_call_to_jump, 0, COUNT(thunks));
    tcase_add_test(tests, test_emission);
    tcase_add_test(tests, test_dwarf);
    tcase_add_test(tests, test_library);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
