/* SPDX-License-Identifier: MIT
 *
 * What a later round has to look at. A repeat that holds nothing new was there in the
 * round before, too, in as many places: it was taken then, or it did not pay. New are
 *
 *   sites      a call or jump to a helper stands where its payload did
 *   helpers    what was in many places is in one, and that one is not taken any more
 *   hosts      the same of a tail that has stayed in place: others jump to it now
 *
 * and repeats do not cross blocks. Before anything costly is done with an instruction
 * it is asked what its neighbours are. All pairs of instructions that stand side by
 * side in helpers and hosts are noted, and those that occur twice in blocks with sites.
 * Then in a block with sites what hangs together by such pairs is of interest if it
 * holds a site; and in any block the pairs that helpers and hosts hold. (And single
 * instructions of theirs, where those can be longer than a call.)
 *
 * Pairs are noted by hashes of what is easily known of an instruction, a bit or two for
 * each: to take some code for interesting that is not costs time and nothing else.
 *
 * Lost are repeats that were too dear in one round and would not be in the next, since
 * what lies around them has moved: some bytes in a hundred thousand. The objects alone
 * tell what has changed, and which helpers there were in the round before.
 */
#include "mo/parallel.h"
#include "outliner/choose/traces.h"

#include <string.h>

/* Instructions of a part: about a millisecond. */
enum { PART_INSNS = 32 * 1024 };

/* Some ten bits for each pair in a large program; fewer for what is only to be asked
 * first, so that the set stays near. */
enum {
    HASH_BITS = 21,
    SET_BYTES = 1 << (HASH_BITS - 3),
    ROUGH_BITS = 18,
    ROUGH_BYTES = 1 << (ROUGH_BITS - 3),
};

/* What an earlier round has made of a block. */
enum change {
    CHANGE_NONE,
    CHANGE_SITE,   /* something in it now goes elsewhere */
    CHANGE_SHARED, /* it is a helper, or others now jump to it */
};

/* Of what each worker has seen. */
struct sets {
    uint8_t *rough, *shared; /* helpers and hosts hold it */
    uint8_t *once, *twice;   /* blocks with sites hold it */
    struct arena *arena;
    array_of(uint32_t) entered; /* instructions that others go to, see traces.h */
};

struct marker {
    struct traces traces;
    const struct program *program;
    struct stretches stretches;
    uint8_t *blocks;  /* by block index, enum change */
    uint32_t *hashes; /* by instruction index: in blocks with a change */
    bool *wanted;     /* the same: in all */
    struct sets *sets; /* by worker */
};

/* A block, and what instructions are hashed with. */
struct spot {
    const struct block *block;
    const struct insn *insns; /* the block's */
    const struct section *section;
    const struct symbol *symbols;
};

static struct spot spot_of(const struct program *program, const struct block *block)
{
    uint32_t code = program->functions[block->function].code;
    return (struct spot){block, &program->insns[block->first_insn],
                          program_section(program, code),
                          program_object(program, code)->symbols};
}

/* --- hashes --- */

/* The lowest bit of an instruction's hash says that it is a site. */
enum { SITE_BIT = 1 };

/* Of where a relocated call goes, if that has one name everywhere; else 0, as for one
 * that the assembler has resolved. */
static uint64_t hash_of_callee(const struct spot *spot, const struct insn *insn)
{
    const struct symbol *symbol =
        &spot->symbols[spot->section->relocs[insn->reloc].symbol];
    return symbol_is_local(symbol) ? 0 : hash_bytes(symbol->name, strlen(symbol->name));
}

/* Interchangeable instructions have equal hashes: what they do, and their bytes where
 * no field is filled by the linker or says a distance. */
static uint32_t hash_of(const struct spot *spot, uint32_t i)
{
    const struct insn *insn = &spot->insns[i];
    uint64_t hash = mix(mix(insn->flow, insn->uses), insn->defs);
    if ((insn->traits & (INSN_RELOCATED | INSN_PC_RELATIVE)) == 0) {
        const uint8_t *bytes = spot->section->data.at + insn->offset;
        hash = mix(hash, hash_bytes(bytes, insn->length));
    } else if ((insn->traits & INSN_RELOCATED) != 0 && insn->flow != FLOW_NEXT) {
        hash += hash_of_callee(spot, insn);
    }
    return (uint32_t)(mix(hash, 0) >> 32) & ~(uint32_t)SITE_BIT;
}

static uint32_t pair_bit(uint32_t first, uint32_t second)
{
    first &= ~(uint32_t)SITE_BIT;
    second &= ~(uint32_t)SITE_BIT;
    uint64_t both = (uint64_t)first << 32 | second;
    return (uint32_t)(mix(both, 0) >> (64 - HASH_BITS));
}

/* The same of less, at a glance: what the instructions read and write. */
static uint32_t rough_bit(const struct insn *first, const struct insn *second)
{
    uint64_t hash = first->uses ^ first->defs << 16 ^ first->defs >> 48;
    if (second != NULL) {
        hash = hash << 5 ^ hash >> 59 ^ second->uses ^ second->defs << 24 ^
               second->defs >> 40;
    }
    return (uint32_t)(mix(hash, 0) >> (64 - ROUGH_BITS));
}

/* It is worth something alone. */
static bool is_long(const struct program *program, const struct insn *insn)
{
    return insn->length > program->target->call_size;
}

/* --- before: helpers and hosts --- */

static void note_shared(const struct marker *marker, const struct block *block,
                        struct sets *sets)
{
    struct spot spot = spot_of(marker->program, block);
    uint32_t *hashes = marker->hashes + block->first_insn;
    for (uint32_t i = 0; i < block->insn_count; i++) {
        const struct insn *insn = &spot.insns[i];
        hashes[i] = hash_of(&spot, i);
        if (i > 0) {
            bit_set(sets->rough, rough_bit(insn - 1, insn));
            bit_set(sets->shared, pair_bit(hashes[i - 1], hashes[i]));
        }
        if (is_long(marker->program, insn)) {
            bit_set(sets->rough, rough_bit(insn, NULL));
            bit_set(sets->shared, pair_bit(hashes[i], 0));
        }
    }
    memset(marker->wanted + block->first_insn, true, block->insn_count);
}

static void look_at_head(const struct marker *marker, uint32_t number, bool helper,
                         struct sets *sets)
{
    const struct program *program = marker->program;
    const struct block *block = &program->blocks[number];
    bool joined = (program->insns[block->first_insn].traits & INSN_JOINED) != 0;
    bool starts =
        block->first_insn == program->functions[block->function].first_insn;
    uint32_t code = program->functions[block->function].code;
    bool open = program->code[code].refusal == REFUSAL_NONE;
    if (open && (joined || (helper && starts))) {
        array_push(sets->arena, &sets->entered, block->first_insn);
    }
    if (joined || helper) {
        marker->blocks[number] = CHANGE_SHARED;
        note_shared(marker, block, sets);
    }
}

static void look_for_shared(void *context, uint32_t part, uint32_t worker)
{
    const struct marker *marker = context;
    struct stretch stretch = marker->stretches.items[part];
    for (uint32_t f = stretch.first; f < stretch.first + stretch.count; f++) {
        const struct function *function = &marker->program->functions[f];
        bool helper = trace_is_helper(&marker->traces, f);
        for (uint32_t b = 0; b < function->block_count; b++) {
            look_at_head(marker, function->first_block + b, helper,
                         &marker->sets[worker]);
        }
    }
}

/* --- before: sites, and what helpers and hosts hold --- */

static bool mark_sites(const struct marker *marker, const struct block *block)
{
    bool any = false;
    for (uint32_t i = block->first_insn; i < block->first_insn + block->insn_count;
         i++) {
        uint8_t flow = marker->program->insns[i].flow;
        if ((flow == FLOW_CALL || flow == FLOW_JUMP) &&
            trace_is_site(&marker->traces, i)) {
            marker->hashes[i] |= SITE_BIT;
            any = true;
        }
    }
    return any;
}

static void note_sites(const struct marker *marker, const struct block *block,
                       const struct sets *sets)
{
    struct spot spot = spot_of(marker->program, block);
    uint32_t *hashes = marker->hashes + block->first_insn;
    for (uint32_t i = 0; i < block->insn_count; i++) {
        hashes[i] |= hash_of(&spot, i);
        if (i > 0) {
            uint32_t bit = pair_bit(hashes[i - 1], hashes[i]);
            bit_set(bit_get(sets->once, bit) ? sets->twice : sets->once, bit);
        }
    }
}

/* Few instructions do what those of a helper do: only they are looked at closely. */
static void select_shared(const struct marker *marker, const struct block *block)
{
    struct spot spot = spot_of(marker->program, block);
    const struct sets *sets = &marker->sets[0];
    bool *wanted = marker->wanted + block->first_insn;
    for (uint32_t i = 0; i < block->insn_count; i++) {
        const struct insn *insn = &spot.insns[i];
        if (i > 0 && bit_get(sets->rough, rough_bit(insn - 1, insn)) &&
            bit_get(sets->shared, pair_bit(hash_of(&spot, i - 1), hash_of(&spot, i)))) {
            wanted[i - 1] = wanted[i] = true;
        }
        if (is_long(marker->program, insn) && !wanted[i] &&
            bit_get(sets->rough, rough_bit(insn, NULL))) {
            wanted[i] = bit_get(sets->shared, pair_bit(hash_of(&spot, i), 0));
        }
    }
}

static void look_for_sites(void *context, uint32_t part, uint32_t worker)
{
    const struct marker *marker = context;
    struct stretch stretch = marker->stretches.items[part];
    for (uint32_t f = stretch.first; f < stretch.first + stretch.count; f++) {
        const struct function *function = &marker->program->functions[f];
        for (uint32_t b = 0; b < function->block_count; b++) {
            uint32_t number = function->first_block + b;
            const struct block *block = &marker->program->blocks[number];
            bool shared = marker->blocks[number] == CHANGE_SHARED;
            if (mark_sites(marker, block)) {
                marker->blocks[number] = shared ? CHANGE_SHARED : CHANGE_SITE;
                note_sites(marker, block, &marker->sets[worker]);
            }
            if (!shared) {
                select_shared(marker, block);
            }
        }
    }
}

/* What two workers have seen once each has been seen twice. */
static void add_sets(struct sets *sets, const struct sets *more)
{
    for (uint32_t i = 0; i < SET_BYTES; i++) {
        uint32_t both = sets->once[i] & more->once[i];
        sets->twice[i] = (uint8_t)(sets->twice[i] | more->twice[i] | both);
        sets->once[i] |= more->once[i];
    }
}

static void add_shared(struct sets *sets, const struct sets *more)
{
    for (uint32_t i = 0; i < SET_BYTES; i++) {
        sets->shared[i] |= more->shared[i];
    }
    for (uint32_t i = 0; i < ROUGH_BYTES; i++) {
        sets->rough[i] |= more->rough[i];
    }
}

/* Of all workers, in the first one's. */
static void unite_shared(const struct marker *marker, uint32_t workers)
{
    for (uint32_t w = 0; w < workers; w++) {
        const struct sets *sets = &marker->sets[w];
        if (w > 0) {
            add_shared(&marker->sets[0], sets);
        }
        for (uint32_t i = 0; i < sets->entered.count; i++) {
            traces_enter(&marker->traces, sets->entered.items[i]);
        }
    }
}

/* --- behind --- */

/* What hangs together by pairs that occur twice, from `first` on, is wanted if there is
 * a site in it. Returns its end. */
static uint32_t select_chain(const struct marker *marker, const struct block *block,
                             uint32_t first)
{
    const uint32_t *hashes = marker->hashes + block->first_insn;
    bool *wanted = marker->wanted + block->first_insn;
    bool holds = (hashes[first] & SITE_BIT) != 0;
    uint32_t end = first + 1;
    for (; end < block->insn_count; end++) {
        uint32_t bit = pair_bit(hashes[end - 1], hashes[end]);
        if (!bit_get(marker->sets[0].twice, bit) &&
            !bit_get(marker->sets[0].shared, bit)) {
            break;
        }
        holds |= (hashes[end] & SITE_BIT) != 0;
    }
    if (holds) {
        memset(wanted + first, true, end - first);
    }
    return end;
}

static void select_around_sites(void *context, uint32_t part, uint32_t worker)
{
    const struct marker *marker = context;
    struct stretch stretch = marker->stretches.items[part];
    const struct function *first = &marker->program->functions[stretch.first];
    const struct function *last = first + stretch.count - 1;
    (void)worker;
    for (uint32_t b = first->first_block; b < last->first_block + last->block_count;
         b++) {
        const struct block *block = &marker->program->blocks[b];
        if (marker->blocks[b] != CHANGE_SITE) {
            continue;
        }
        for (uint32_t i = 0; i < block->insn_count;) {
            i = select_chain(marker, block, i);
        }
    }
}

static struct sets *sets_new(struct arena *arena, struct arena *const *arenas,
                             uint32_t workers)
{
    struct sets *sets = arena_new_array(arena, struct sets, workers);
    for (uint32_t w = 0; w < workers; w++) {
        sets[w].arena = arenas[w];
        sets[w].rough = arena_alloc(arena, ROUGH_BYTES);
        sets[w].shared = arena_alloc(arena, SET_BYTES);
        sets[w].once = arena_alloc(arena, SET_BYTES);
        sets[w].twice = arena_alloc(arena, SET_BYTES);
    }
    return sets;
}

const bool *changes_find(struct arena *arena, const struct program *program,
                         const struct table *old)
{
    struct arena *stage = arena_new();
    uint32_t workers =
        program->workers < MOST_WORKERS ? program->workers : MOST_WORKERS;
    workers = workers > 0 ? workers : 1;
    struct arena **arenas = parallel_arenas(stage, workers);
    struct marker marker = {
        .traces = traces_find(stage, program, old),
        .program = program,
        .stretches = program_stretches(stage, program, PART_INSNS),
        .blocks = arena_alloc(stage, program->block_count),
        .hashes = arena_new_array(stage, uint32_t, program->insn_count),
        .wanted = arena_new_array(arena, bool, program->insn_count),
        .sets = sets_new(stage, arenas, workers),
    };
    parallel_do(workers, marker.stretches.count, look_for_shared, &marker);
    unite_shared(&marker, workers);
    parallel_do(workers, marker.stretches.count, look_for_sites, &marker);
    for (uint32_t w = 1; w < workers; w++) {
        add_sets(&marker.sets[0], &marker.sets[w]);
    }
    parallel_do(workers, marker.stretches.count, select_around_sites, &marker);
    parallel_adopt(stage, arenas, workers);
    arena_free(stage);
    return marker.wanted;
}
