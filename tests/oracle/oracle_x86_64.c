/* SPDX-License-Identifier: MIT
 *
 * Asks the processor whether the decoder's sets are right.
 *
 *     oracle_x86_64 [-v] [--random N] FILE.o|FILE.a …
 *
 * For each form of instruction found in the code of the files (mnemonic, encoding,
 * kinds and sizes of operands, equal registers) a few samples are run from random
 * states:
 *  - what is not in `defs` must come out as it went in;
 *  - what is not in `uses` is changed, one register or flag at a time; nothing else may
 *    come out differently, and it must itself come out the same when it is in `defs`.
 * --random adds what decodes among N random encodings: forms that no compiler emits.
 * Flags that the manual leaves undefined may differ. Memory operands are aimed at a
 * small arena, whose contents are compared too.
 *
 * Not run: calls, returns, indirect jumps, fs and gs segments, pinned and opaque
 * instructions, whatever this processor does not have (counted as such).
 */
#define _GNU_SOURCE
#include "native_x86_64.h"

#include "mo/object.h"
#include "mo/table.h"
#include "mo/target.h"

#include <Zydis/Zydis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SAMPLES = 3, STATES = 24, TRIES = 400 };
enum { BIT_X87 = 24, BIT_STATE = 25, BIT_ZMM0 = 32, REP_LIMIT = 16 };

/* What the sets speak of, one by one: 16 registers, 16 vectors, x87, mxcsr, 7 flags. */
enum {
    ITEM_GPR = 0,
    ITEM_VECTOR = 16,
    ITEM_X87 = 32,
    ITEM_MXCSR = 33,
    ITEM_FLAG = 34,
    ITEM_COUNT = 41
};

static const uint8_t flag_shift[7] = {0, 2, 4, 6, 7, 10, 11};
static const char *const flag_names = "CPAZSDO";

struct random {
    uint64_t state;
};

static uint64_t next(struct random *random)
{
    random->state ^= random->state << 13;
    random->state ^= random->state >> 7;
    random->state ^= random->state << 17;
    return random->state * UINT64_C(0x2545f4914f6cdd1d);
}

/* An instruction under test. */
struct sample {
    uint8_t bytes[16];
    struct insn insn;
    ZydisDecodedInstruction is;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    uint8_t undefined; /* flags */
};

static bool parse(const uint8_t *bytes, uint64_t size, struct sample *out)
{
    ZydisDecoder decoder;
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    if (!target_x86_64.decode(bytes, size, 0, &out->insn) ||
        ZYAN_FAILED(
            ZydisDecoderDecodeFull(&decoder, bytes, size, &out->is, out->operands)))
        return false;
    memcpy(out->bytes, bytes, out->insn.length);
    out->undefined = 0;
    for (uint32_t i = 0; i < 7; i++)
        if (out->is.cpu_flags && (out->is.cpu_flags->undefined >> flag_shift[i] & 1))
            out->undefined = (uint8_t)(out->undefined | 1u << i);
    return true;
}

/* --- items of a state --- */

static bool item_in(uint32_t item, uint64_t regs, uint8_t flags)
{
    if (item >= ITEM_FLAG)
        return flags >> (item - ITEM_FLAG) & 1;
    if (item == ITEM_MXCSR)
        return regs >> BIT_STATE & 1;
    if (item == ITEM_X87)
        return regs >> BIT_X87 & 1;
    return regs >> (item >= ITEM_VECTOR ? item - ITEM_VECTOR + BIT_ZMM0 : item) & 1;
}

static bool item_equal(uint32_t item, const struct state *a, const struct state *b)
{
    if (item >= ITEM_FLAG)
        return ((a->flags ^ b->flags) >> flag_shift[item - ITEM_FLAG] & 1) == 0;
    if (item == ITEM_MXCSR)
        return memcmp(a->xsave + XSAVE_MXCSR, b->xsave + XSAVE_MXCSR, 4) == 0;
    if (item == ITEM_X87)
        return memcmp(a->xsave, b->xsave, 5) == 0 &&
               memcmp(a->xsave + 32, b->xsave + 32, XSAVE_X87_END - 32) == 0;
    if (item < ITEM_VECTOR)
        return a->gpr[item] == b->gpr[item];
    uint32_t at = 16 * (item - ITEM_VECTOR);
    return memcmp(a->xsave + XSAVE_XMM + at, b->xsave + XSAVE_XMM + at, 16) == 0 &&
           memcmp(a->xsave + XSAVE_YMM_HIGH + at, b->xsave + XSAVE_YMM_HIGH + at, 16) ==
               0;
}

static void fill(struct random *random, uint8_t *at, size_t size)
{
    for (size_t i = 0; i < size; i++)
        at[i] = (uint8_t)(next(random) >> 32);
}

/* Values that make interesting things happen more often than random bits do. */
static uint64_t value(struct random *random)
{
    uint64_t bits = next(random);
    switch (next(random) >> 60) {
    case 0: return 0;
    case 1: return 1;
    case 2: return UINT64_MAX;
    case 3: return bits & 0xff;
    case 4: return (uint64_t)INT64_MIN;
    case 5: return UINT64_C(0xffffffff);
    case 6: return bits & 0xffff;
    case 7: return bits & 0xffffffff;
    default: return bits;
    }
}

static void fill_item(struct random *random, uint32_t item, struct state *state)
{
    if (item >= ITEM_FLAG) {
        state->flags ^= UINT64_C(1) << flag_shift[item - ITEM_FLAG];
    } else if (item == ITEM_MXCSR) {
        uint32_t word = 0x1f80 | ((uint32_t)next(random) & 0xe07f);
        memcpy(state->xsave + XSAVE_MXCSR, &word, 4);
    } else if (item == ITEM_X87) {
        uint16_t control = (uint16_t)(0x037f | (next(random) & 0x0c00));
        memcpy(state->xsave, &control, 2);
        state->xsave[3] = (uint8_t)(next(random) & 0x7f); /* top, condition codes */
        state->xsave[4] = (uint8_t)(next(random) & 1 ? 0xff : next(random));
        for (uint32_t i = 0; i < 8; i++)
            fill(random, state->xsave + 32 + 16 * i, 10);
    } else if (item >= ITEM_VECTOR) {
        uint32_t at = 16 * (item - ITEM_VECTOR);
        fill(random, state->xsave + XSAVE_XMM + at, 16);
        fill(random, state->xsave + XSAVE_YMM_HIGH + at, 16);
    } else {
        state->gpr[item] = value(random);
    }
}

/* --- states --- */

static uint32_t number_of(ZydisRegister reg)
{
    return (
        uint32_t)(ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg) -
                  ZYDIS_REGISTER_RAX);
}

/* Registers such that the operand lies in the middle of the arena. */
static void aim(struct random *random, const struct sample *sample,
                const ZydisDecodedOperandMem *mem, struct state *state)
{
    uint64_t to = ARENA_BASE + ARENA_SIZE / 2 + 64 * (next(random) % 16);
    uint64_t displacement = (uint64_t)mem->disp.value;
    bool based = mem->base != ZYDIS_REGISTER_NONE && mem->base != ZYDIS_REGISTER_RIP;
    bool vector = mem->type == ZYDIS_MEMOP_TYPE_VSIB;
    if (vector) {
        uint8_t *xmm =
            state->xsave + XSAVE_XMM + 16 * ((mem->index - ZYDIS_REGISTER_XMM0) & 15);
        uint8_t *ymm = xmm + (XSAVE_YMM_HIGH - XSAVE_XMM);
        for (uint32_t i = 0; i < 16; i += 4) {
            uint32_t small = sample->is.raw.modrm.reg & 1 ? 0 : (uint32_t)i * 4;
            memcpy(xmm + i, &small, 4);
            memcpy(ymm + i, &small, 4);
        }
    } else if (mem->index != ZYDIS_REGISTER_NONE && mem->index == mem->base) {
        state->gpr[number_of(mem->index)] = (to - displacement) / (1u + mem->scale);
        return;
    } else if (mem->index != ZYDIS_REGISTER_NONE && based) {
        uint64_t index = 64 * (next(random) % 8);
        state->gpr[number_of(mem->index)] = index;
        displacement += index * mem->scale;
    } else if (mem->index != ZYDIS_REGISTER_NONE) {
        state->gpr[number_of(mem->index)] = (to - displacement) / mem->scale;
    }
    if (based)
        state->gpr[number_of(mem->base)] = to - displacement;
}

static void make_state(struct random *random, const struct sample *sample,
                       struct state *state)
{
    memset(state, 0, sizeof *state);
    state->xsave[XSAVE_HEADER] = 7; /* x87, SSE and AVX are in use */
    for (uint32_t item = 0; item < ITEM_COUNT; item++)
        if (item < ITEM_FLAG || (next(random) >> 63))
            fill_item(random, item, state);
    if (next(random) >> 63)
        state->xsave[4] = 0; /* an empty x87 stack, or MMX state */
    bool zero = next(random) >> 62 == 0;
    if (!zero)
        fill(random, state->memory, ARENA_SIZE);
    for (uint32_t i = 0; i < sample->is.operand_count; i++)
        if (sample->operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
            aim(random, sample, &sample->operands[i].mem, state);
    if (sample->is.attributes &
        (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE))
        state->gpr[1] = next(random) % REP_LIMIT;
    if (sample->is.mnemonic == ZYDIS_MNEMONIC_LEAVE)
        state->gpr[5] = ARENA_BASE + ARENA_SIZE / 2;
    if (sample->is.mnemonic == ZYDIS_MNEMONIC_DIV ||
        sample->is.mnemonic == ZYDIS_MNEMONIC_IDIV) {
        state->gpr[2] = 0; /* or the quotient is too large, mostly */
        state->gpr[0] &= 0x7f;
    }
}

/* --- one sample --- */

struct verdict {
    uint32_t ran; /* states that raised no signal */
    uint32_t mismatches;
    char first[160];
};

static const char *item_name(uint32_t item, char *buffer, size_t size)
{
    static const char *const names[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp",
                                        "rsi", "rdi", "r8",  "r9",  "r10", "r11",
                                        "r12", "r13", "r14", "r15"};
    if (item < ITEM_VECTOR)
        return names[item];
    if (item == ITEM_X87 || item == ITEM_MXCSR)
        return item == ITEM_X87 ? "x87" : "mxcsr";
    if (item >= ITEM_FLAG)
        snprintf(buffer, size, "%cF", flag_names[item - ITEM_FLAG]);
    else
        snprintf(buffer, size, "ymm%u", item - ITEM_VECTOR);
    return buffer;
}

static void complain(struct verdict *verdict, const char *what, uint32_t cause,
                     uint32_t item)
{
    char a[16], b[16];
    if (verdict->mismatches++ == 0)
        snprintf(verdict->first, sizeof verdict->first, "%s: %s -> %s", what,
                 item_name(cause, a, sizeof a), item_name(item, b, sizeof b));
}

/* Changes `item`, which the instruction is said not to read. */
static void check_unread(struct random *random, const struct sample *sample,
                         const struct state *before, const struct state *after,
                         uint32_t item, struct verdict *verdict)
{
    static struct state changed, result;
    const struct insn *insn = &sample->insn;
    changed = *before;
    fill_item(random, item, &changed);
    if (!native_run(sample->bytes, insn->length, &changed, &result)) {
        complain(verdict, "raises a signal", item, item);
        return;
    }
    for (uint32_t other = 0; other < ITEM_COUNT; other++) {
        bool defined = item_in(other, insn->defs, insn->flag_defs);
        if (item_in(other, 0, sample->undefined))
            continue;
        const struct state *expected = other == item && !defined ? &changed : after;
        if (!item_equal(other, &result, expected))
            complain(verdict, "is read", item, other);
    }
    if (memcmp(result.memory, after->memory, ARENA_SIZE) != 0 ||
        result.taken != after->taken)
        complain(verdict, "is read (memory, branch)", item, item);
}

static void check_state(struct random *random, const struct sample *sample,
                        struct verdict *verdict)
{
    static struct state before, after;
    const struct insn *insn = &sample->insn;
    make_state(random, sample, &before);
    if (!native_run(sample->bytes, insn->length, &before, &after))
        return;
    verdict->ran++;
    for (uint32_t item = 0; item < ITEM_COUNT; item++) {
        if (!item_in(item, insn->defs, insn->flag_defs) &&
            !item_equal(item, &before, &after))
            complain(verdict, "is written", item, item);
        if (!item_in(item, insn->uses, insn->flag_uses))
            check_unread(random, sample, &before, &after, item, verdict);
    }
}

static void check_sample(const struct sample *sample, struct verdict *verdict)
{
    struct random random = {0x9e3779b97f4a7c15};
    for (uint32_t i = 0; i < TRIES && verdict->ran < STATES; i++)
        check_state(&random, sample, verdict);
}

/* --- forms --- */

/* Everything that makes two instructions different in kind. */
struct form {
    ZydisMnemonic mnemonic;
    uint32_t encoding, attributes_low, attributes_high;
    struct {
        uint32_t type, size, kind, same;
    } operands[ZYDIS_MAX_OPERAND_COUNT];
};

static struct form form_of(const struct sample *sample)
{
    struct form form;
    memset(&form, 0, sizeof form);
    form.mnemonic = sample->is.mnemonic;
    form.encoding = sample->is.encoding;
    uint64_t prefixes =
        sample->is.attributes & (ZYDIS_ATTRIB_HAS_LOCK | ZYDIS_ATTRIB_HAS_REP |
                                 ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
    form.attributes_low = (uint32_t)prefixes;
    form.attributes_high = (uint32_t)sample->is.avx.mask.mode;
    for (uint32_t i = 0; i < sample->is.operand_count_visible; i++) {
        const ZydisDecodedOperand *operand = &sample->operands[i];
        form.operands[i].type = operand->type;
        form.operands[i].size = operand->size;
        if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER) {
            ZydisRegister reg = operand->reg.value;
            form.operands[i].kind =
                (uint32_t)ZydisRegisterGetClass(reg) << 1 |
                (reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH);
            form.operands[i].same =
                i != 0 && operand->reg.value == sample->operands[0].reg.value;
        } else if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY) {
            form.operands[i].kind = (operand->mem.base == ZYDIS_REGISTER_RIP ? 1u : 0) |
                                    (operand->mem.index != ZYDIS_REGISTER_NONE ? 2u : 0) |
                                    (operand->mem.base != ZYDIS_REGISTER_NONE ? 4u : 0);
        } else if (operand->imm.value.u == 0) {
            form.operands[i].same = 1; /* shifts by 0 */
        }
    }
    return form;
}

static bool is_runnable(const struct sample *sample)
{
    if (sample->insn.traits & (INSN_PINNED | INSN_OPAQUE))
        return false;
    if (sample->insn.flow != FLOW_NEXT && sample->insn.flow != FLOW_BRANCH &&
        sample->insn.flow != FLOW_JUMP)
        return false;
    return !(sample->is.attributes &
             (ZYDIS_ATTRIB_HAS_SEGMENT_FS | ZYDIS_ATTRIB_HAS_SEGMENT_GS));
}

/* PC-relative fields lead where we want them. */
static void settle(struct sample *sample)
{
    if (!(sample->insn.traits & INSN_PC_RELATIVE))
        return;
    uint8_t length = sample->insn.length;
    int64_t distance = length + NATIVE_TAKEN_DISTANCE;
    if (sample->insn.flow == FLOW_NEXT)
        distance = (int64_t)(ARENA_BASE + ARENA_SIZE / 2 - native_insn_address());
    uint8_t bytes[16];
    memcpy(bytes, sample->bytes, length);
    if (target_x86_64.retarget(bytes, length, distance, sample->bytes))
        parse(sample->bytes, length, sample);
}

struct samples {
    struct arena *arena;
    struct table *forms;
    uint32_t *seen; /* samples of each form */
    uint32_t capacity, count;
    struct sample *items;
};

static void add_sample(struct samples *samples, const struct sample *sample)
{
    struct form form = form_of(sample);
    uint32_t number = table_intern(samples->forms, &form, sizeof form);
    if (number >= samples->capacity || samples->count == samples->capacity ||
        samples->seen[number] == SAMPLES)
        return;
    samples->seen[number]++;
    samples->items[samples->count] = *sample;
    settle(&samples->items[samples->count++]);
}

static void scan_object(struct samples *samples, const struct object *object)
{
    for (uint32_t s = 0; s < object->section_count; s++) {
        const struct section *section = &object->sections[s];
        if (!section_is_code(section))
            continue;
        for (uint64_t at = 0; at < section->data.size;) {
            struct sample sample;
            if (!parse(section->data.at + at, section->data.size - at, &sample)) {
                at++;
                continue;
            }
            if (is_runnable(&sample))
                add_sample(samples, &sample);
            at += sample.insn.length;
        }
    }
}

static bool scan_file(struct samples *samples, const char *path)
{
    struct error err = {0};
    struct bytes image;
    struct archive archive;
    const struct object *object;
    if (!file_read(samples->arena, path, &image, &err))
        goto failed;
    if (!archive_recognise(image)) {
        if (!object_read(samples->arena, path, image, &object, &err))
            goto failed;
        scan_object(samples, object);
        return true;
    }
    if (!archive_read(samples->arena, path, image, &archive, &err))
        goto failed;
    for (uint32_t i = 0; i < archive.count; i++) {
        struct error skipped = {0};
        if (archive.members[i].is_object &&
            object_read(samples->arena, archive.members[i].name,
                        archive.members[i].image, &object, &skipped))
            scan_object(samples, object);
    }
    return true;
failed:
    fprintf(stderr, "oracle: %s\n", err.message);
    return false;
}

/* Random encodings, prefixes and opcode maps in fair shares. */
static void scan_random(struct samples *samples, uint64_t count)
{
    static const char *const heads[] = {"",
                                        "\x66",
                                        "\xf2",
                                        "\xf3",
                                        "\x48",
                                        "\x0f",
                                        "\x66\x0f",
                                        "\xf2\x0f",
                                        "\xf3\x0f",
                                        "\x0f\x38",
                                        "\x66\x0f\x38",
                                        "\x0f\x3a",
                                        "\x66\x0f\x3a",
                                        "\xc5",
                                        "\xc4"};
    struct random random = {1};
    for (uint64_t i = 0; i < count; i++) {
        uint8_t bytes[16];
        struct sample sample;
        const char *head = heads[next(&random) % (sizeof heads / sizeof *heads)];
        fill(&random, bytes, sizeof bytes);
        memcpy(bytes, head, strlen(head));
        if (*head == '\xc4') /* VEX: maps 1 to 3 */
            bytes[1] = (uint8_t)((bytes[1] & 0xe0) | (1 + bytes[1] % 3));
        if (*head == '\xc4' && (bytes[15] & 1)) /* no second source */
            bytes[2] |= 0x78;
        if (parse(bytes, sizeof bytes, &sample) && is_runnable(&sample))
            add_sample(samples, &sample);
    }
}

/* --- all samples, in children that may crash --- */

static void print_sample(const struct sample *sample, const char *text)
{
    char line[128] = "";
    ZydisFormatter formatter;
    ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_ATT);
    ZydisFormatterFormatInstruction(&formatter, &sample->is, sample->operands,
                                    sample->is.operand_count_visible, line, sizeof line,
                                    0, NULL);
    printf("%-50s %s\n", line, text);
}

static void run_samples(const struct samples *samples, struct verdict *verdicts)
{
    for (uint32_t i = 0; i < samples->count;) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            uint32_t end = samples->count - i < 64 ? samples->count : i + 64;
            for (; i < end; i++) {
                verdicts[i].mismatches = UINT32_MAX; /* stays when we crash */
                alarm(20);
                struct verdict verdict = {0};
                check_sample(&samples->items[i], &verdict);
                verdicts[i] = verdict;
            }
            _exit(0);
        }
        int status;
        if (child < 0 || waitpid(child, &status, 0) != child)
            return;
        uint32_t end = samples->count - i < 64 ? samples->count : i + 64;
        bool ended = WIFEXITED(status);
        while (i < end && (ended || verdicts[i].mismatches != UINT32_MAX))
            i++;
        if (!ended)
            i++; /* the one that crashed */
    }
}

int main(int argc, char **argv)
{
    enum { CAPACITY = 1 << 16 };
    bool verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
    struct arena *session = arena_new();
    struct samples samples = {.arena = session,
                              .forms = table_new(session),
                              .seen = arena_new_array(session, uint32_t, CAPACITY),
                              .capacity = CAPACITY,
                              .items =
                                  arena_new_array(session, struct sample, CAPACITY)};
    if (!native_init()) {
        puts("cannot run instructions here");
        return 77;
    }
    for (int i = 1 + verbose; i < argc; i++) {
        if (strcmp(argv[i], "--random") == 0 && i + 1 < argc)
            scan_random(&samples, strtoull(argv[++i], NULL, 10));
        else if (!scan_file(&samples, argv[i]))
            return 1;
    }
    struct verdict *verdicts =
        mmap(NULL, sizeof *verdicts * (samples.count + 1), PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (verdicts == MAP_FAILED)
        return 1;
    run_samples(&samples, verdicts);
    uint32_t wrong = 0, idle = 0;
    for (uint32_t i = 0; i < samples.count; i++) {
        if (verdicts[i].mismatches == UINT32_MAX)
            print_sample(&samples.items[i], "crashed");
        else if (verdicts[i].mismatches)
            print_sample(&samples.items[i], verdicts[i].first);
        else if (verbose && verdicts[i].ran == 0)
            print_sample(&samples.items[i], "never ran");
        wrong += verdicts[i].mismatches != 0;
        idle += verdicts[i].mismatches == 0 && verdicts[i].ran == 0;
    }
    printf("%u forms, %u samples: %u wrong, %u could not run\n",
           table_count(samples.forms), samples.count, wrong, idle);
    arena_free(session);
    return wrong ? 1 : 0;
}
