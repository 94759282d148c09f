/* SPDX-License-Identifier: MIT
 *
 * Asks an emulator whether the AArch64 decoder tells the truth.
 *
 *     oracle_aarch64 [-r RANDOM] [-n SAMPLES] [-s SEED] [-v] FILE.o|FILE.a …
 *
 * The words of all code in the files, and RANDOM random words, are sorted by form,
 * opcode and size; of each such kind up to SAMPLES words are executed by Unicorn from
 * random states, each several times:
 *   - a register or flag that changed must be in the set of those written;
 *   - with everything randomised that is not in the set of those read, the written
 *     registers, the memory traffic and the next PC must come out the same;
 *   - (-v) a register in the set of those read that never made a difference in any
 * sample of a kind is listed, as is one in the set of those written that never changed:
 * such a set is larger than it need be, which is safe. Words of code that do not decode
 * are counted and listed. Exit status 1 on a mismatch.
 *
 * Not executed: what is INSN_OPAQUE, INSN_PINNED or INSN_SIGNS, and what the emulator
 * does not implement (counted).
 */
#include "../../targets/aarch64/form.h"
#include "../../targets/aarch64/target.h"
#include "mo/bytes.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unicorn/unicorn.h>

enum {
    KINDS = 1 << 14,
    SAMPLES_MAX = 64,
    TRIALS = 6,
    WRITES = 64,
};

#define CODE       0x01000000ull /* mapped around it: literals reach 1 MiB */
#define CODE_FIRST 0x01400000ull
#define CODE_LAST  0x01800000ull
#define CODE_SIZE  0x00c00000ull
#define DATA       0x10000000ull
#define DATA_SIZE  0x00100000ull

struct kind {
    const struct form *form;
    uint32_t key;
    uint32_t words[SAMPLES_MAX];
    uint32_t count;
    uint64_t seen;
    uint32_t executed, failed;
    uint32_t idle_uses,
        idle_defs; /* samples in which some register made no difference */
};

struct state {
    uint64_t x[32]; /* 31: sp */
    uint64_t v[32][2];
    uint64_t nzcv;
};

struct traffic {
    uint64_t at[WRITES], value[WRITES];
    uint32_t count;
    uint64_t reads; /* hash of the addresses */
};

struct result {
    struct state state;
    struct traffic traffic;
    uint64_t pc;
    uc_err error;
};

struct oracle {
    uc_engine *uc;
    struct kind *kinds;
    struct traffic *traffic;
    uint8_t *memory;
    uint64_t random, code;
    uint32_t samples;
    uint64_t words, unknown, runs, mismatches;
    bool verbose;
};

/* xorshift64*, Vigna 2016 */
static uint64_t next_random(struct oracle *oracle)
{
    uint64_t x = oracle->random;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    oracle->random = x;
    return x * 0x2545f4914f6cdd1dull;
}

/* --- words and kinds --- */

static void add_word(struct oracle *oracle, uint32_t word, const struct form *form)
{
    uint32_t key = 0;
    if (form->opcodes != UINT32_MAX)
        key = field(word, form->shift, 5);
    if (form->sizes != 0xff)
        key |= field(word, 30, 1) << 5 | field(word, 22, 2) << 6 | 256;
    else
        key |= word >> 30 << 9;
    uint32_t at =
        (uint32_t)(((uintptr_t)form >> 3) * 2654435761u + key * 40503u) % KINDS;
    struct kind *kind = &oracle->kinds[at];
    while (kind->form && (kind->form != form || kind->key != key)) {
        at = (at + 1) % KINDS;
        kind = &oracle->kinds[at];
    }
    kind->form = form;
    kind->key = key;
    for (uint32_t i = 0; i < kind->count; i++) {
        if (kind->words[i] == word)
            return;
    }
    kind->seen++;
    if (kind->count < oracle->samples)
        kind->words[kind->count++] = word;
    else if (next_random(oracle) % kind->seen < oracle->samples)
        kind->words[next_random(oracle) % oracle->samples] = word;
}

static void add_code(struct oracle *oracle, const char *name, const uint8_t *at,
                     uint64_t size, const bool *is_data)
{
    for (uint64_t offset = 0; offset + 4 <= size; offset += 4) {
        struct insn insn;
        if (is_data[offset / 4])
            continue;
        const uint32_t word = (uint32_t)load_le(at + offset, 4);
        oracle->words++;
        if (aarch64_decode(at + offset, 4, (uint32_t)offset, &insn))
            add_word(oracle, word, aarch64_form(word));
        else if (oracle->unknown++ < 20)
            printf("%s+0x%llx: %08x does not decode\n", name,
                   (unsigned long long)offset, word);
    }
}

/* Marks what lies behind the mapping symbol $d (aaelf64, 4.5.4), up to the next symbol
 * of that kind. */
static void mark_data(const uint8_t *image, const Elf64_Shdr *sections, uint32_t count,
                      uint32_t index, bool *is_data)
{
    const uint64_t words = sections[index].sh_size / 4;
    uint8_t *map = calloc(words + 1, 1);
    for (uint32_t i = 0; i < count; i++) {
        if (sections[i].sh_type != SHT_SYMTAB)
            continue;
        const char *names =
            (const char *)image + sections[sections[i].sh_link].sh_offset;
        for (uint64_t s = 0; s < sections[i].sh_size / sizeof(Elf64_Sym); s++) {
            Elf64_Sym sym;
            memcpy(&sym, image + sections[i].sh_offset + s * sizeof sym, sizeof sym);
            const char *name = names + sym.st_name;
            if (sym.st_shndx == index && name[0] == '$' && sym.st_value / 4 < words)
                map[sym.st_value / 4] = (uint8_t)name[1];
        }
    }
    bool data = false;
    for (uint64_t i = 0; i < words; i++) {
        if (map[i])
            data = map[i] == 'd';
        is_data[i] = data;
    }
    free(map);
}

/* The images are trusted: this is a test tool. */
static void add_object(struct oracle *oracle, const char *name, const uint8_t *image,
                       uint64_t size)
{
    Elf64_Ehdr header;
    if (size < sizeof header || memcmp(image, ELFMAG, SELFMAG) != 0)
        return;
    memcpy(&header, image, sizeof header);
    if (header.e_machine != EM_AARCH64 || header.e_ident[EI_CLASS] != ELFCLASS64)
        return;
    Elf64_Shdr *sections = calloc(header.e_shnum + 1u, sizeof *sections);
    memcpy(sections, image + header.e_shoff, header.e_shnum * sizeof *sections);
    for (uint32_t i = 0; i < header.e_shnum; i++) {
        const Elf64_Shdr *section = &sections[i];
        if (section->sh_type != SHT_PROGBITS || !(section->sh_flags & SHF_EXECINSTR))
            continue;
        bool *is_data = calloc(section->sh_size / 4 + 1, sizeof *is_data);
        mark_data(image, sections, header.e_shnum, i, is_data);
        add_code(oracle, name, image + section->sh_offset, section->sh_size, is_data);
        free(is_data);
    }
    free(sections);
}

static void add_archive(struct oracle *oracle, const char *name, const uint8_t *image,
                        uint64_t size)
{
    uint64_t at = 8;
    while (at + 60 <= size) {
        char digits[11] = {0};
        memcpy(digits, image + at + 48, 10);
        const uint64_t length = strtoull(digits, NULL, 10);
        char full[200];
        snprintf(full, sizeof full, "%s(%.15s)", name, (const char *)image + at);
        uint8_t *copy = malloc(length + 1); /* aligned */
        memcpy(copy, image + at + 60, length);
        add_object(oracle, full, copy, length);
        free(copy);
        at += 60 + length + length % 2;
    }
}

static bool add_file(struct oracle *oracle, const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return false;
    }
    fseek(file, 0, SEEK_END);
    const uint64_t size = (uint64_t)ftell(file);
    rewind(file);
    uint8_t *image = malloc(size + 1);
    const bool whole = fread(image, 1, size, file) == size;
    fclose(file);
    if (whole && size >= 8 && memcmp(image, "!<arch>\n", 8) == 0)
        add_archive(oracle, path, image, size);
    else if (whole)
        add_object(oracle, path, image, size);
    free(image);
    return whole;
}

static void add_random(struct oracle *oracle, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        const uint32_t word = (uint32_t)next_random(oracle);
        const struct form *form = aarch64_form(word);
        if (form && aarch64_allocated(form, word))
            add_word(oracle, word, form);
    }
}

/* --- the emulator --- */

static void on_memory(uc_engine *uc, uc_mem_type type, uint64_t address, int size,
                      int64_t value, void *user)
{
    struct oracle *oracle = user;
    struct traffic *traffic = oracle->traffic;
    (void)uc;
    if (type != UC_MEM_WRITE) {
        traffic->reads = (traffic->reads ^ address) * 0x100000001b3ull + (unsigned)size;
        return;
    }
    if (traffic->count == WRITES)
        return;
    const uint64_t mask = size >= 8 ? UINT64_MAX : (1ull << size * 8) - 1;
    traffic->at[traffic->count] = address;
    traffic->value[traffic->count++] = (uint64_t)value & mask;
}

static void registers(struct state *state, int *ids, void **values)
{
    for (int i = 0; i < 32; i++) {
        ids[i] = i < 29 ? UC_ARM64_REG_X0 + i : UC_ARM64_REG_SP;
        values[i] = &state->x[i];
        ids[32 + i] = UC_ARM64_REG_Q0 + i;
        values[32 + i] = state->v[i];
    }
    ids[29] = UC_ARM64_REG_X29;
    ids[30] = UC_ARM64_REG_X30;
    ids[64] = UC_ARM64_REG_NZCV;
    values[64] = &state->nzcv;
}

static void run(struct oracle *oracle, const struct state *from, struct result *out)
{
    int ids[65];
    void *values[65];
    memset(out, 0, sizeof *out);
    out->state = *from;
    oracle->traffic = &out->traffic;
    registers(&out->state, ids, values);
    uc_reg_write_batch(oracle->uc, ids, values, 65);
    out->error = uc_emu_start(oracle->uc, oracle->code, oracle->code + 4, 0, 1);
    uc_reg_read_batch(oracle->uc, ids, values, 65);
    uc_reg_read(oracle->uc, UC_ARM64_REG_PC, &out->pc);
    for (uint32_t i = 0; i < out->traffic.count; i++) { /* undo */
        const uint64_t at = out->traffic.at[i] & ~15ull;
        if (at >= DATA && at < DATA + DATA_SIZE - 32)
            uc_mem_write(oracle->uc, at, oracle->memory + (at - DATA), 32);
    }
    oracle->runs++;
}

/* --- states --- */

static uint64_t random_lane(struct oracle *oracle)
{
    const uint64_t bits = next_random(oracle);
    switch (next_random(oracle) % 4) {
    case 0: return bits;
    case 1: /* two floats of moderate size */
        return (bits & 0x80ffffff80ffffffull) | 0x3f0000003f000000ull;
    case 2: return (bits & 0x803fffffffffffffull) | 0x3fc0000000000000ull; /* double */
    default: /* halves */ return (bits & 0x83ff83ff83ff83ffull) | 0x3800380038003800ull;
    }
}

static void randomise_general(struct oracle *oracle, struct state *state, uint32_t reg)
{
    state->x[reg] = next_random(oracle);
    if (next_random(oracle) % 4 == 0)
        state->x[reg] &= 0xff;
    if (reg == 31)
        state->x[reg] = DATA + DATA_SIZE / 2 + (state->x[reg] & 0xff00);
}

/* Registers that address memory must stay inside it. */
static void randomise(struct oracle *oracle, struct state *state, uint32_t reg,
                      const struct form *form, uint32_t word)
{
    if (reg >= 32) {
        state->v[reg - 32][0] = random_lane(oracle);
        state->v[reg - 32][1] = random_lane(oracle);
        return;
    }
    randomise_general(oracle, state, reg);
    if (form->kind < AT_PLAIN || form->kind > AT_LANE_POST)
        return;
    if (form->kind == AT_INDEX && reg == field(word, 16, 5))
        state->x[reg] &= 0xfff;
    const bool twice =
        form->kind == AT_INDEX && field(word, 5, 5) == field(word, 16, 5);
    if (reg == field(word, 5, 5) && !twice)
        state->x[reg] = DATA + DATA_SIZE / 2 + (next_random(oracle) & 0xff00);
}

static uint8_t flags_of(uint64_t nzcv)
{
    return (uint8_t)((nzcv >> 31 & 1) | (nzcv >> 30 & 1) << 1 | (nzcv >> 29 & 1) << 2 |
                     (nzcv >> 28 & 1) << 3);
}

static uint64_t nzcv_of(uint32_t flags)
{
    return (uint64_t)(flags & 1) << 31 | (uint64_t)(flags >> 1 & 1) << 30 |
           (uint64_t)(flags >> 2 & 1) << 29 | (uint64_t)(flags >> 3 & 1) << 28;
}

/* Everything that is not in the set gets another value. */
static struct state other_state(struct oracle *oracle, const struct state *from,
                                uint64_t keep, uint8_t keep_flags,
                                const struct form *form, uint32_t word)
{
    struct state state = *from;
    for (uint32_t reg = 0; reg < 64; reg++) {
        if (!(keep >> reg & 1))
            randomise(oracle, &state, reg, form, word);
    }
    const uint32_t flags = (uint32_t)next_random(oracle);
    state.nzcv = nzcv_of((flags_of(from->nzcv) & keep_flags) |
                         (flags & (uint8_t)~keep_flags & 15u));
    return state;
}

/* --- comparisons --- */

static bool same_register(const struct state *a, const struct state *b, uint32_t reg)
{
    if (reg < 32)
        return a->x[reg] == b->x[reg];
    return memcmp(a->v[reg - 32], b->v[reg - 32], 16) == 0;
}

/* Registers and flags of the set, memory traffic and PC are equal. */
static bool same_outcome(const struct result *a, const struct result *b, uint64_t set,
                         uint8_t flags)
{
    for (uint32_t reg = 0; reg < 64; reg++) {
        if (set >> reg & 1 && !same_register(&a->state, &b->state, reg))
            return false;
    }
    return !((flags_of(a->state.nzcv) ^ flags_of(b->state.nzcv)) & flags) &&
           a->pc == b->pc && memcmp(&a->traffic, &b->traffic, sizeof a->traffic) == 0;
}

static void mismatch(struct oracle *oracle, const struct kind *kind, uint32_t word,
                     const char *what, int reg)
{
    if (oracle->mismatches++ < 100)
        printf("MISMATCH %08x (%s): %s %d\n", word, kind->form->name, what, reg);
}

static bool check_changes(struct oracle *oracle, const struct kind *kind, uint32_t word,
                          const struct insn *insn, const struct state *before,
                          const struct result *after)
{
    for (uint32_t reg = 0; reg < 64; reg++) {
        if (!(insn->defs >> reg & 1) && !same_register(before, &after->state, reg)) {
            mismatch(oracle, kind, word, "unexpected write of register", (int)reg);
            return false;
        }
    }
    const uint8_t changed = flags_of(before->nzcv) ^ flags_of(after->state.nzcv);
    if (changed & (uint8_t)~insn->flag_defs) {
        mismatch(oracle, kind, word, "unexpected write of flags", changed);
        return false;
    }
    return true;
}

struct influence {
    uint64_t uses, defs;
    uint8_t flag_uses, flag_defs;
};

/* The emulator gave up on the instruction itself. What a branch leads to is another
 * matter: nothing sensible lies there. */
static bool did_not_run(const struct oracle *oracle, const struct insn *insn,
                        const struct result *result)
{
    return result->error != UC_ERR_OK &&
           (insn->flow == FLOW_NEXT || result->pc == oracle->code);
}

static bool run_trial(struct oracle *oracle, struct kind *kind, uint32_t word,
                      const struct insn *insn, struct influence *seen)
{
    const struct form *form = kind->form;
    struct state zero = {0};
    const struct state state = other_state(oracle, &zero, 0, 0, form, word);
    struct result base, other;
    run(oracle, &state, &base);
    if (did_not_run(oracle, insn, &base)) {
        kind->failed++;
        return false;
    }
    if (!check_changes(oracle, kind, word, insn, &state, &base))
        return false;
    const struct state rest =
        other_state(oracle, &state, insn->uses, insn->flag_uses, form, word);
    run(oracle, &rest, &other);
    if (!did_not_run(oracle, insn, &other) &&
        !same_outcome(&base, &other, insn->defs, insn->flag_defs)) {
        mismatch(oracle, kind, word, "depends on an unlisted register", -1);
        return false;
    }
    for (uint32_t reg = 0; reg < 64; reg++) {
        if (insn->defs >> reg & 1 && !same_register(&state, &base.state, reg))
            seen->defs |= 1ull << reg;
        if (!(insn->uses >> reg & 1) || seen->uses >> reg & 1)
            continue;
        const struct state one =
            other_state(oracle, &state, ~(1ull << reg), 15, form, word);
        run(oracle, &one, &other);
        if (!same_outcome(&base, &other, insn->defs, insn->flag_defs))
            seen->uses |= 1ull << reg;
    }
    seen->flag_defs |= flags_of(state.nzcv) ^ flags_of(base.state.nzcv);
    for (uint8_t bit = 1; bit < 16; bit = (uint8_t)(bit << 1)) {
        if (!(insn->flag_uses & bit))
            continue;
        struct state one = state;
        one.nzcv = nzcv_of(flags_of(state.nzcv) ^ bit);
        run(oracle, &one, &other);
        if (!same_outcome(&base, &other, insn->defs, insn->flag_defs))
            seen->flag_uses |= bit;
    }
    return true;
}

static void check_word(struct oracle *oracle, struct kind *kind, uint32_t word)
{
    uint8_t bytes[4];
    struct insn insn;
    struct influence seen = {0};
    store_le(bytes, 4, word);
    if (!aarch64_decode(bytes, 4, 0, &insn))
        return;
    if (insn.traits & (INSN_OPAQUE | INSN_PINNED | INSN_SIGNS) ||
        insn.flow == FLOW_STOP)
        return;
    oracle->code += 4;
    if (oracle->code >= CODE_LAST) {
        oracle->code = CODE_FIRST;
        uc_ctl_remove_cache(oracle->uc, CODE_FIRST, CODE_LAST);
    }
    uc_mem_write(oracle->uc, oracle->code, bytes, 4);
    for (int trial = 0; trial < TRIALS; trial++) {
        if (!run_trial(oracle, kind, word, &insn, &seen))
            return;
    }
    kind->executed++;
    if (insn.uses & ~seen.uses || insn.flag_uses & (uint8_t)~seen.flag_uses) {
        kind->idle_uses++;
        if (oracle->verbose)
            printf("idle read %08x (%s): %016llx flags %x\n", word, kind->form->name,
                   (unsigned long long)(insn.uses & ~seen.uses),
                   insn.flag_uses & ~seen.flag_uses & 15u);
    }
    if (insn.defs & ~seen.defs || insn.flag_defs & (uint8_t)~seen.flag_defs)
        kind->idle_defs++;
}

static bool start(struct oracle *oracle)
{
    uc_hook hook;
    uint64_t cpacr = 3u << 20; /* no traps of floating point */
    if (uc_open(UC_ARCH_ARM64, UC_MODE_ARM, &oracle->uc) != UC_ERR_OK)
        return false;
    uc_ctl_set_cpu_model(oracle->uc, UC_CPU_ARM64_MAX);
    uc_mem_map(oracle->uc, CODE, CODE_SIZE, UC_PROT_ALL);
    uc_mem_map(oracle->uc, DATA, DATA_SIZE, UC_PROT_ALL);
    oracle->memory = malloc(DATA_SIZE);
    for (uint64_t i = 0; i < DATA_SIZE; i++)
        oracle->memory[i] = (uint8_t)(next_random(oracle) >> 8);
    uc_mem_write(oracle->uc, DATA, oracle->memory, DATA_SIZE);
    uc_reg_write(oracle->uc, UC_ARM64_REG_CPACR_EL1, &cpacr);
    void *callback; /* ISO C has no conversion from function to object pointers */
    uc_cb_hookmem_t function = on_memory;
    memcpy(&callback, &function, sizeof callback);
    uc_hook_add(oracle->uc, &hook, UC_HOOK_MEM_READ | UC_HOOK_MEM_WRITE, callback,
                oracle, 1, 0);
    oracle->code = CODE_FIRST;
    return true;
}

static void report(const struct oracle *oracle)
{
    uint32_t kinds = 0, checked = 0, words = 0, failed = 0;
    for (uint32_t i = 0; i < KINDS; i++) {
        const struct kind *kind = &oracle->kinds[i];
        if (!kind->form)
            continue;
        kinds++;
        words += kind->executed;
        checked += kind->executed > 0;
        failed += !kind->executed && kind->failed > 0;
        if (!oracle->verbose)
            continue;
        if (!kind->executed)
            printf("not executed: %s key %u (%08x)%s\n", kind->form->name, kind->key,
                   kind->words[0], kind->failed ? ", emulator fails" : "");
        else if (kind->idle_uses == kind->executed)
            printf("always an idle read: %s key %u (%08x)\n", kind->form->name,
                   kind->key, kind->words[0]);
        else if (kind->idle_defs == kind->executed)
            printf("always an idle write: %s key %u (%08x)\n", kind->form->name,
                   kind->key, kind->words[0]);
    }
    printf("%llu words of code, %llu do not decode; %u kinds, %u executed (%u words, "
           "%llu runs), %u that the emulator lacks; %llu mismatches\n",
           (unsigned long long)oracle->words, (unsigned long long)oracle->unknown,
           kinds, checked, words, (unsigned long long)oracle->runs, failed,
           (unsigned long long)oracle->mismatches);
}

int main(int argc, char **argv)
{
    struct oracle oracle = {.random = 0x6d6f2d6c696e6bull, .samples = 8};
    uint64_t random = 0;
    oracle.kinds = calloc(KINDS, sizeof *oracle.kinds);
    int arg = 1;
    for (; arg < argc && argv[arg][0] == '-'; arg++) {
        if (strcmp(argv[arg], "-v") == 0)
            oracle.verbose = true;
        else if (strcmp(argv[arg], "-r") == 0 && arg + 1 < argc)
            random = strtoull(argv[++arg], NULL, 0);
        else if (strcmp(argv[arg], "-s") == 0 && arg + 1 < argc)
            oracle.random ^= strtoull(argv[++arg], NULL, 0) * 0x9e3779b97f4a7c15ull;
        else if (strcmp(argv[arg], "-n") == 0 && arg + 1 < argc)
            oracle.samples = (uint32_t)strtoul(argv[++arg], NULL, 0);
        else
            return 2;
    }
    if (oracle.samples == 0 || oracle.samples > SAMPLES_MAX)
        return 2;
    if (!start(&oracle))
        return 77;
    bool ok = true;
    for (; arg < argc; arg++)
        ok = add_file(&oracle, argv[arg]) && ok;
    add_random(&oracle, random);
    for (uint32_t i = 0; i < KINDS; i++) {
        for (uint32_t w = 0; w < oracle.kinds[i].count; w++)
            check_word(&oracle, &oracle.kinds[i], oracle.kinds[i].words[w]);
    }
    report(&oracle);
    uc_close(oracle.uc);
    return ok && oracle.mismatches == 0 ? 0 : 1;
}
