/* SPDX-License-Identifier: MIT
 *
 * Answers prepared once, so that looking at one more occurrence of a repeat costs a few
 * loads, however long the repeat is.
 */
#include "mo/parallel.h"
#include "outliner/choose/choose.h"

#include <string.h>

/* Instructions that make a part for a worker: about a millisecond. */
enum { PART_INSNS = 32 * 1024 };

/* The instruction cannot stand in a helper that is entered by a call (as its last one,
 * a call can: that is a thunk). What is wanted is that SP and the return address are
 * the same all along; see design 4.7 and 4.8. */
static bool breaks_call(const struct target *target, const struct insn *insn)
{
    const uint32_t never = INSN_SP_ADJUST | INSN_SP_FROM_FRAME | INSN_SP_OPAQUE |
                           INSN_BELOW_SP | INSN_SIGNS | INSN_EXCLUSIVE;
    uint64_t touched = insn->uses | insn->defs;
    if (insn->flow != FLOW_NEXT || (insn->traits & never) != 0) {
        return true;
    }
    if (target->link_register < 64 && (touched >> target->link_register & 1) != 0) {
        return true;
    }
    /* SP in a way that no trait describes. */
    return (touched >> target->stack_register & 1) != 0 &&
           (insn->traits & (INSN_SP_MEMORY | INSN_SP_COPY)) == 0;
}

/* What facts_make() fills. */
struct filler {
    const struct program *program;
    const struct tokens *tokens;
    struct fact *at;
    uint32_t *call_end, *inner_end, *site_end;
    uint32_t veneer_live; /* trait that forbids every form, or 0 */
    struct stretches stretches;
};

static bool is_call(const struct insn *insn)
{
    return insn->flow == FLOW_CALL || insn->flow == FLOW_CALL_INDIRECT;
}

static void fill_call_ends(const struct filler *filler, const struct block *block)
{
    const struct program *program = filler->program;
    uint32_t end = block->first_insn + block->insn_count;
    for (uint32_t i = end; i-- > block->first_insn;) {
        if (breaks_call(program->target, &program->insns[i])) {
            end = i;
        }
        filler->call_end[i] = end;
    }
}

static void fill_inner_ends(const struct filler *filler, const struct block *block)
{
    const struct program *program = filler->program;
    uint32_t end = block->first_insn + block->insn_count;
    for (uint32_t i = end; i-- > block->first_insn;) {
        const struct insn *insn = &program->insns[i];
        bool breaks = is_call(insn) ? (insn->traits & INSN_INNER) == 0
                                    : breaks_call(program->target, insn);
        end = breaks ? i : end;
        filler->inner_end[i] = end;
    }
}

/* The link register has been stored in the frame earlier in the block, and its row does
 * not say so yet: compilers that describe calls only (Clang for AArch64) state a whole
 * prologue at its end. Such a row is no witness of where the return address is. */
static void fill_link_stored(const struct filler *filler, const struct block *block)
{
    const struct target *target = filler->program->target;
    if (target->link_register >= 64) {
        return;
    }
    uint64_t link = (uint64_t)1 << target->link_register;
    bool is_stored = false;
    for (uint32_t k = 0; k < block->insn_count; k++) {
        uint32_t i = block->first_insn + k;
        const struct insn *insn = &filler->program->insns[i];
        is_stored = is_stored && filler->at[i].row == filler->at[i - 1].row;
        if (is_stored) {
            filler->at[i].flags |= FACT_LINK_STORED;
        }
        bool stores = insn->flow == FLOW_NEXT && (insn->uses & link) != 0 &&
                      (insn->traits & (INSN_SP_MEMORY | INSN_SP_ADJUST)) != 0 &&
                      (insn->traits & INSN_SIGNS) == 0;
        is_stored = (is_stored || stores) && (insn->defs & link) == 0;
    }
}

static const struct fde *fde_of(const struct program *program,
                                const struct function *function)
{
    uint32_t object = program->code[function->code].object;
    return function->fde == NO_INDEX ? NULL
                                     : &program->frames[object].fdes[function->fde];
}

static void fill_rows(const struct filler *filler, const struct function *function)
{
    const struct fde *fde = fde_of(filler->program, function);
    uint32_t change = 0;
    for (uint32_t k = 0; k < function->insn_count; k++) {
        uint32_t i = function->first_insn + k;
        if (fde == NULL || fde->change_count == 0) {
            filler->at[i].row = ROW_NONE;
            continue;
        }
        while (change + 1 < fde->change_count &&
               fde->changes[change + 1].offset <= filler->program->insns[i].offset) {
            change++;
        }
        filler->at[i].row = fde->changes[change].row;
    }
}

static bool begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Sections in which GCC and Clang put what is run once or hardly ever. */
static bool is_cold(const struct program *program, const struct function *function)
{
    const char *name = program_section(program, function->code)->name;
    return begins_with(name, ".text.unlikely") || begins_with(name, ".text.startup") ||
           begins_with(name, ".text.exit") || begins_with(name, ".text.split");
}

static uint16_t flags_of(const struct program *program, uint32_t number)
{
    const struct function *function = &program->functions[number];
    const struct fde *fde = fde_of(program, function);
    uint32_t object = program->code[function->code].object;
    const struct cie *cie =
        fde == NULL ? NULL : &program->frames[object].cies[fde->cie];
    bool private = function_is_private(program, number);
    uint32_t flags = private ? FACT_PRIVATE : 0;
    flags |= function->red_zone ? FACT_RED_ZONE : 0;
    flags |= is_kept_whole(program, function) ? FACT_KEPT_WHOLE : 0;
    flags |= cie != NULL && cie->signal_frame ? FACT_SIGNAL_FRAME : 0;
    flags |= cie != NULL && cie->b_key ? FACT_B_KEY : 0;
    flags |= is_cold(program, function) ? FACT_COLD : 0;
    return (uint16_t)flags;
}

static void fill_function(const struct filler *filler, uint32_t number)
{
    const struct program *program = filler->program;
    const struct function *function = &program->functions[number];
    uint32_t end = function->first_insn + function->insn_count;
    uint32_t row_end = end;
    uint16_t flags = flags_of(program, number);
    fill_rows(filler, function);
    for (uint32_t i = end; i-- > function->first_insn;) {
        const struct insn *insn = &program->insns[i];
        struct fact *fact = &filler->at[i];
        row_end = i + 1 < end && fact[1].row != fact->row ? i + 1 : row_end;
        fact->function = number;
        fact->function_end = end;
        fact->row_end = row_end;
        fact->offset = insn->offset;
        fact->length = insn->length;
        fact->flags = flags;
        if ((insn->traits & filler->veneer_live) != 0) {
            fact->flags |= FACT_VENEER_LIVE;
        }
        /* Whether or not the first half has a token of its own. */
        if ((insn->traits & INSN_GLUED) != 0 && i + 1 < end &&
            (insn[1].traits & INSN_LEADER) == 0) {
            fact[1].flags |= FACT_PARTED;
        }
    }
    throws_fill(program, function, filler->at, filler->site_end);
    for (uint32_t b = 0; b < function->block_count; b++) {
        const struct block *block = &program->blocks[function->first_block + b];
        fill_call_ends(filler, block);
        if (filler->inner_end != NULL) {
            fill_inner_ends(filler, block);
        }
        fill_link_stored(filler, block);
    }
}

static void fill_part(void *context, uint32_t part, uint32_t worker)
{
    const struct filler *filler = context;
    struct stretch stretch = filler->stretches.items[part];
    (void)worker;
    for (uint32_t f = stretch.first; f < stretch.first + stretch.count; f++) {
        if (filler->tokens->functions[f]) {
            fill_function(filler, f);
        }
    }
}

/* To the instruction behind it, if that is one of the same block. */
static void glue(const struct filler *filler, uint32_t insn)
{
    filler->at[insn].flags |= FACT_GLUED;
    if (insn + 1 < filler->at[insn].function_end &&
        (filler->program->insns[insn + 1].traits & INSN_LEADER) == 0) {
        filler->at[insn + 1].flags |= FACT_PARTED;
    }
}

void facts_make(struct arena *arena, const struct program *program,
                const struct tokens *tokens, const struct plan_options *options,
                struct facts *out)
{
    bool inner = program->target->align_shift != 0 && options->effort > 1 &&
                 (options->without & TECHNIQUE_INNER) == 0;
    bool veneers = !options->no_veneers && program->target->veneer_registers != 0;
    struct filler filler = {
        .program = program,
        .tokens = tokens,
        .at = array_room(arena, program->insn_count, sizeof(struct fact)),
        .call_end = array_room(arena, program->insn_count, sizeof(uint32_t)),
        .inner_end =
            inner ? array_room(arena, program->insn_count, sizeof(uint32_t)) : NULL,
        .site_end = array_room(arena, program->insn_count, sizeof(uint32_t)),
        .veneer_live = veneers ? INSN_VENEER_LIVE : 0,
        .stretches = program_stretches(arena, program, PART_INSNS),
    };
    parallel_do(program->workers, filler.stretches.count, fill_part, &filler);
    for (uint32_t p = 0; p < tokens->count; p++) {
        if (tokens->glued[p] != 0) {
            glue(&filler, tokens->insns[p]);
        }
    }
    *out = (struct facts){
        .program = program,
        .tokens = tokens,
        .options = options,
        .at = filler.at,
        .call_end = filler.call_end,
        .inner_end = filler.inner_end,
        .site_end = filler.site_end,
        .tail_rows = tail_rows_new(arena, program),
    };
}

uint32_t facts_behind(const struct facts *facts, uint32_t insn, uint32_t length)
{
    uint32_t behind = insn + length;
    return behind < facts->at[insn].function_end ? behind : NO_INDEX;
}

uint32_t facts_bytes(const struct facts *facts, uint32_t insn, uint32_t length)
{
    const struct fact *last = &facts->at[insn + length - 1];
    return last->offset + last->length - facts->at[insn].offset;
}
