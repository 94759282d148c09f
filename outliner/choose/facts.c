/* SPDX-License-Identifier: MIT
 *
 * Answers prepared once, so that looking at one more occurrence of a repeat costs a few
 * loads, however long the repeat is.
 */
#include "outliner/choose/choose.h"

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

static void fill_call_ends(const struct program *program, uint32_t *call_end)
{
    for (uint32_t b = 0; b < program->block_count; b++) {
        const struct block *block = &program->blocks[b];
        uint32_t end = block->first_insn + block->insn_count;
        for (uint32_t i = end; i-- > block->first_insn;) {
            if (breaks_call(program->target, &program->insns[i])) {
                end = i;
            }
            call_end[i] = end;
        }
    }
}

/* The link register has been stored in the frame earlier in the block, and its row does
 * not say so yet: compilers that describe calls only (Clang for AArch64) state a whole
 * prologue at its end. Such a row is no witness of where the return address is. */
static void fill_link_stored(const struct program *program, const uint32_t *row,
                             uint8_t *stored)
{
    const struct target *target = program->target;
    if (target->link_register >= 64) {
        return;
    }
    uint64_t link = (uint64_t)1 << target->link_register;
    for (uint32_t b = 0; b < program->block_count; b++) {
        const struct block *block = &program->blocks[b];
        bool is_stored = false;
        for (uint32_t k = 0; k < block->insn_count; k++) {
            uint32_t i = block->first_insn + k;
            const struct insn *insn = &program->insns[i];
            is_stored = is_stored && row[i] == row[i - 1];
            if (is_stored) {
                bit_set(stored, i);
            }
            bool stores = insn->flow == FLOW_NEXT && (insn->uses & link) != 0 &&
                          (insn->traits & (INSN_SP_MEMORY | INSN_SP_ADJUST)) != 0 &&
                          (insn->traits & INSN_SIGNS) == 0;
            is_stored = (is_stored || stores) && (insn->defs & link) == 0;
        }
    }
}

static void fill_rows(const struct program *program, const struct function *function,
                      uint32_t *row)
{
    const struct fde *fde = NULL;
    if (function->fde != NO_INDEX) {
        uint32_t object = program->code[function->code].object;
        fde = &program->frames[object].fdes[function->fde];
    }
    uint32_t change = 0;
    for (uint32_t k = 0; k < function->insn_count; k++) {
        uint32_t i = function->first_insn + k;
        if (fde == NULL || fde->change_count == 0) {
            row[i] = ROW_NONE;
            continue;
        }
        while (change + 1 < fde->change_count &&
               fde->changes[change + 1].offset <= program->insns[i].offset) {
            change++;
        }
        row[i] = fde->changes[change].row;
    }
}

static void fill_functions(const struct program *program, uint32_t *function,
                           uint32_t *row, uint32_t *row_end)
{
    for (uint32_t f = 0; f < program->function_count; f++) {
        const struct function *of = &program->functions[f];
        uint32_t end = of->first_insn + of->insn_count;
        fill_rows(program, of, row);
        for (uint32_t i = end; i-- > of->first_insn;) {
            function[i] = f;
            bool differs = i + 1 < end && row[i + 1] != row[i];
            row_end[i] = i + 1 == end ? end : differs ? i + 1 : row_end[i + 1];
        }
    }
}

void facts_make(struct arena *arena, const struct program *program,
                const struct tokens *tokens, const struct plan_options *options,
                struct facts *out)
{
    size_t count = program->insn_count;
    uint32_t *function = arena_new_array(arena, uint32_t, count);
    uint32_t *row = arena_new_array(arena, uint32_t, count);
    uint32_t *row_end = arena_new_array(arena, uint32_t, count);
    uint32_t *call_end = arena_new_array(arena, uint32_t, count);
    uint8_t *glued = arena_alloc(arena, count / 8 + 1);
    uint8_t *private = arena_alloc(arena, program->function_count / 8 + 1);
    for (uint32_t f = 0; f < program->function_count; f++) {
        if (function_is_private(program, f)) {
            bit_set(private, f);
        }
    }
    fill_functions(program, function, row, row_end);
    fill_call_ends(program, call_end);
    uint8_t *link_stored = arena_alloc(arena, count / 8 + 1);
    fill_link_stored(program, row, link_stored);
    for (uint32_t p = 0; p < tokens->count; p++) {
        if (tokens->insns[p] != NO_INDEX && tokens->glued[p] != 0) {
            bit_set(glued, tokens->insns[p]);
        }
    }
    bool veneers = !options->no_veneers && program->target->veneer_registers != 0;
    *out = (struct facts){
        .program = program,
        .tokens = tokens,
        .options = options,
        .function = function,
        .row = row,
        .row_end = row_end,
        .call_end = call_end,
        .glued = glued,
        .private = private,
        .link_stored = link_stored,
        .tail_rows = tail_rows_new(arena, program),
        .throws = throws_make(arena, program),
        .veneer_live = veneers ? INSN_VENEER_LIVE : 0,
    };
}

uint32_t facts_behind(const struct facts *facts, uint32_t insn, uint32_t length)
{
    const struct function *function = &facts->program->functions[facts->function[insn]];
    uint32_t behind = insn + length;
    return behind < function->first_insn + function->insn_count ? behind : NO_INDEX;
}

uint32_t facts_bytes(const struct facts *facts, uint32_t insn, uint32_t length)
{
    const struct insn *last = &facts->program->insns[insn + length - 1];
    return last->offset + last->length - facts->program->insns[insn].offset;
}
