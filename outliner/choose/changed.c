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
#include "outliner/choose/choose.h"

#include <string.h>

/* Instructions of a part: about a millisecond. */
enum { PART_INSNS = 32 * 1024 };

/* Some ten bits for each pair in a large program. */
enum { HASH_BITS = 21, SET_BYTES = 1 << (HASH_BITS - 3) };

/* --- helpers --- */

static bool is_helper_name(const char *name)
{
    return strncmp(name, HELPER_PREFIX, strlen(HELPER_PREFIX)) == 0;
}

static bool is_new_name(const struct table *old, const char *name)
{
    return is_helper_name(name) && table_find_string(old, name) == NO_INDEX;
}

void helpers_note(struct table *names, const struct objects *objects)
{
    for (uint32_t o = 0; o < objects->count; o++) {
        const struct object *object = objects->items[o];
        for (uint32_t s = 1; s < object->symbol_count; s++) {
            const struct symbol *symbol = &object->symbols[s];
            if (symbol->section != SECTION_UNDEFINED && is_helper_name(symbol->name)) {
                table_intern_string(names, symbol->name);
            }
        }
    }
}

/* --- blocks --- */

/* What an earlier round has made of a block. */
enum change {
    CHANGE_NONE,
    CHANGE_SITE,   /* something in it now goes elsewhere */
    CHANGE_SHARED, /* it is a helper, or others now jump to it */
};

/* Of what each worker has seen. */
struct sets {
    uint8_t *shared;       /* helpers and hosts hold it */
    uint8_t *once, *twice; /* blocks with sites hold it */
};

struct marker {
    const struct program *program;
    const struct table
        *old; /* names of helpers that were there before the last round */
    struct stretches stretches;
    uint8_t *blocks;  /* by block index, enum change */
    uint32_t *hashes; /* by instruction index */
    bool *wanted;     /* the same */
    struct sets sets[MOST_WORKERS];
};

static bool names_new_helper(const struct marker *marker, uint32_t code, uint32_t insn)
{
    uint32_t first;
    uint32_t count = program_relocs(marker->program, insn, &first);
    const struct reloc *relocs = program_section(marker->program, code)->relocs;
    const struct symbol *symbols = program_object(marker->program, code)->symbols;
    for (uint32_t i = first; i < first + count; i++) {
        if (is_new_name(marker->old, symbols[relocs[i].symbol].name)) {
            return true;
        }
    }
    return false;
}

/* A call or jump to a helper, or into another function: to a host. */
static bool is_site(const struct marker *marker, uint32_t code, uint32_t insn)
{
    const struct program *program = marker->program;
    const struct insn *from = &program->insns[insn];
    if (from->flow != FLOW_CALL && from->flow != FLOW_JUMP) {
        return false;
    }
    if (names_new_helper(marker, code, insn)) {
        return true;
    }
    uint32_t destination = insn_destination(program, insn);
    if (destination == NO_INDEX ||
        program->insns[destination].function == from->function) {
        return false;
    }
    uint32_t to = program->insns[destination].function;
    return destination != program->functions[to].first_insn ||
           (program->code[program->functions[to].code].helpers &&
            is_new_name(marker->old, program_function_name(program, to)));
}

static bool is_shared(const struct marker *marker, const struct block *block)
{
    const struct program *program = marker->program;
    uint32_t code = program->functions[block->function].code;
    return (program->insns[block->first_insn].traits & INSN_JOINED) != 0 ||
           (program->code[code].helpers &&
            is_new_name(marker->old, program_function_name(program, block->function)));
}

/* --- hashes --- */

/* The lowest bit of an instruction's hash says that it is a site. */
enum { SITE_BIT = 1 };

/* Of where a relocated call goes, if that has one name everywhere; else 0, as for one
 * that the assembler has resolved. */
static uint64_t hash_of_callee(const struct program *program, uint32_t code,
                               const struct insn *insn)
{
    const struct object *object = program_object(program, code);
    const struct reloc *reloc = &program_section(program, code)->relocs[insn->reloc];
    const struct symbol *symbol = &object->symbols[reloc->symbol];
    return symbol_is_local(symbol) ? 0 : hash_bytes(symbol->name, strlen(symbol->name));
}

/* Interchangeable instructions have equal hashes: what they do, and their bytes where
 * no field is filled by the linker or says a distance. */
static uint32_t hash_of(const struct program *program, uint32_t code, uint32_t number)
{
    const struct insn *insn = &program->insns[number];
    uint64_t hash = mix(mix(insn->flow, insn->uses), insn->defs);
    if ((insn->traits & (INSN_RELOCATED | INSN_PC_RELATIVE)) == 0) {
        const uint8_t *bytes = program_section(program, code)->data.at + insn->offset;
        hash = mix(hash, hash_bytes(bytes, insn->length));
    } else if ((insn->traits & INSN_RELOCATED) != 0 && insn->flow != FLOW_NEXT) {
        hash += hash_of_callee(program, code, insn);
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

/* --- before --- */

static void note_shared(const struct marker *marker, const struct block *block,
                        const struct sets *sets)
{
    const struct program *program = marker->program;
    const uint32_t *hashes = marker->hashes + block->first_insn;
    for (uint32_t i = 0; i < block->insn_count; i++) {
        if (i > 0) {
            bit_set(sets->shared, pair_bit(hashes[i - 1], hashes[i]));
        }
        if (program->insns[block->first_insn + i].length > program->target->call_size) {
            bit_set(sets->shared, pair_bit(hashes[i], 0));
        }
    }
}

static void note_sites(const struct marker *marker, const struct block *block,
                       const struct sets *sets)
{
    const uint32_t *hashes = marker->hashes + block->first_insn;
    for (uint32_t i = 1; i < block->insn_count; i++) {
        uint32_t bit = pair_bit(hashes[i - 1], hashes[i]);
        bit_set(bit_get(sets->once, bit) ? sets->twice : sets->once, bit);
    }
}

static void note_block(const struct marker *marker, uint32_t number,
                       const struct sets *sets)
{
    const struct program *program = marker->program;
    const struct block *block = &program->blocks[number];
    uint32_t code = program->functions[block->function].code, sites = 0;
    for (uint32_t i = 0; i < block->insn_count; i++) {
        uint32_t insn = block->first_insn + i;
        marker->hashes[insn] = hash_of(program, code, insn);
        if (is_site(marker, code, insn)) {
            marker->hashes[insn] |= SITE_BIT;
            sites++;
        }
    }
    bool shared = is_shared(marker, block);
    marker->blocks[number] = shared      ? CHANGE_SHARED
                             : sites > 0 ? CHANGE_SITE
                                         : CHANGE_NONE;
    if (shared) {
        note_shared(marker, block, sets);
    }
    if (sites > 0) {
        note_sites(marker, block, sets);
    }
}

static void note_part(void *context, uint32_t part, uint32_t worker)
{
    const struct marker *marker = context;
    struct stretch stretch = marker->stretches.items[part];
    for (uint32_t f = stretch.first; f < stretch.first + stretch.count; f++) {
        const struct function *function = &marker->program->functions[f];
        for (uint32_t b = 0; b < function->block_count; b++) {
            note_block(marker, function->first_block + b, &marker->sets[worker]);
        }
    }
}

/* What two workers have seen once each has been seen twice. */
static void add_sets(struct sets *sets, const struct sets *more)
{
    for (uint32_t i = 0; i < SET_BYTES; i++) {
        uint32_t both = sets->once[i] & more->once[i];
        sets->shared[i] |= more->shared[i];
        sets->twice[i] = (uint8_t)(sets->twice[i] | more->twice[i] | both);
        sets->once[i] |= more->once[i];
    }
}

/* --- behind --- */

/* What hangs together by pairs that occur twice, from `first` on, is wanted if there is
 * a site in it. Returns its end. */
static uint32_t select_chain(const struct marker *marker, const struct block *block,
                             uint32_t first, bool *wanted)
{
    const uint32_t *hashes = marker->hashes + block->first_insn;
    bool holds_site = (hashes[first] & SITE_BIT) != 0;
    uint32_t end = first + 1;
    for (; end < block->insn_count; end++) {
        uint32_t bit = pair_bit(hashes[end - 1], hashes[end]);
        if (!bit_get(marker->sets[0].twice, bit) &&
            !bit_get(marker->sets[0].shared, bit)) {
            break;
        }
        holds_site |= (hashes[end] & SITE_BIT) != 0;
    }
    for (uint32_t i = first; holds_site && i < end; i++) {
        wanted[i] = true;
    }
    return end;
}

static void select_shared(const struct marker *marker, const struct block *block,
                          bool *wanted)
{
    const struct program *program = marker->program;
    const uint32_t *hashes = marker->hashes + block->first_insn;
    for (uint32_t i = 0; i < block->insn_count; i++) {
        if (i > 0 &&
            bit_get(marker->sets[0].shared, pair_bit(hashes[i - 1], hashes[i]))) {
            wanted[i - 1] = wanted[i] = true;
        }
        bool alone =
            program->insns[block->first_insn + i].length > program->target->call_size;
        wanted[i] |= alone && bit_get(marker->sets[0].shared, pair_bit(hashes[i], 0));
    }
}

static void select_block(const struct marker *marker, uint32_t number)
{
    const struct block *block = &marker->program->blocks[number];
    bool *wanted = marker->wanted + block->first_insn;
    memset(wanted, marker->blocks[number] == CHANGE_SHARED, block->insn_count);
    if (marker->blocks[number] == CHANGE_SHARED) {
        return;
    }
    uint32_t end = marker->blocks[number] == CHANGE_SITE ? block->insn_count : 0;
    for (uint32_t i = 0; i < end;) {
        i = select_chain(marker, block, i, wanted);
    }
    select_shared(marker, block, wanted);
}

static void select_part(void *context, uint32_t part, uint32_t worker)
{
    const struct marker *marker = context;
    struct stretch stretch = marker->stretches.items[part];
    (void)worker;
    for (uint32_t f = stretch.first; f < stretch.first + stretch.count; f++) {
        const struct function *function = &marker->program->functions[f];
        for (uint32_t b = 0; b < function->block_count; b++) {
            select_block(marker, function->first_block + b);
        }
    }
}

const bool *changes_find(struct arena *arena, const struct program *program,
                         const struct table *old)
{
    struct arena *stage = arena_new();
    uint32_t workers =
        program->workers < MOST_WORKERS ? program->workers : MOST_WORKERS;
    workers = workers > 0 ? workers : 1;
    struct marker marker = {
        .program = program,
        .old = old,
        .stretches = program_stretches(stage, program, PART_INSNS),
        .blocks = arena_alloc(stage, program->block_count),
        .hashes = array_room(stage, program->insn_count, sizeof(uint32_t)),
        .wanted = arena_new_array(arena, bool, program->insn_count),
    };
    for (uint32_t w = 0; w < workers; w++) {
        marker.sets[w] =
            (struct sets){arena_alloc(stage, SET_BYTES), arena_alloc(stage, SET_BYTES),
                          arena_alloc(stage, SET_BYTES)};
    }
    parallel_do(workers, marker.stretches.count, note_part, &marker);
    for (uint32_t w = 1; w < workers; w++) {
        add_sets(&marker.sets[0], &marker.sets[w]);
    }
    parallel_do(workers, marker.stretches.count, select_part, &marker);
    arena_free(stage);
    return marker.wanted;
}
