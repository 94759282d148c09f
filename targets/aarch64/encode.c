/* SPDX-License-Identifier: MIT
 *
 * Changing instructions and making new ones. All have four bytes, and no branch has a
 * longer form: what cannot reach does not reach.
 *
 * Growing an SP operand by a delta: scaled loads and stores take multiples of their
 * size, unscaled ones take -256 to 255 and become scaled where that fails, pairs take a
 * signed seven-bit multiple. Nothing here ever needs a second instruction; what does
 * not fit is refused. Arm ARM DDI 0487, C4.1.94 (loads and stores), C4.1.92
 * (immediates).
 */
#include "form.h"
#include "mo/bytes.h"
#include "target.h"

#include <assert.h>
#include <elf.h>
#include <string.h>

#define NOP                0xd503201fu
#define RET                0xd65f03c0u
#define B                  0x14000000u
#define BL                 0x94000000u
#define BR_BIT             0x00200000u /* blr and br, blraa and braa differ in it */
#define MOV_TO_X30         0xaa0003feu /* orr x30, xzr, x<m> */
#define MOV_FROM_X30       0xaa1e03e0u /* orr x<d>, xzr, x30 */
#define PUSH_X30           0xf81f0ffeu /* str x30, [sp, #-16]! */
#define POP_X30            0xf84107feu /* ldr x30, [sp], #16 */
#define UNSCALED_TO_SCALED 0x01000000u
#define SHIFT_12           0x00400000u /* of add (immediate) */

static void put_word(struct code_bytes *out, uint32_t word)
{
    store_le(out->bytes + out->length, 4, word);
    out->length = (uint8_t)(out->length + 4);
}

static struct code_bytes one_word(uint32_t word)
{
    struct code_bytes code = {0};
    put_word(&code, word);
    return code;
}

static struct code_bytes one_branch(uint32_t word, uint32_t type)
{
    struct code_bytes code = one_word(word);
    code.has_reloc = true;
    code.reloc_type = type;
    return code;
}

/* The form of one whole instruction, or NULL. */
static const struct form *form_of(const uint8_t *bytes, uint8_t length, uint32_t *word)
{
    if (length != 4)
        return NULL;
    *word = (uint32_t)load_le(bytes, 4);
    const struct form *form = aarch64_form(*word);
    return form && aarch64_allocated(form, *word) ? form : NULL;
}

/* --- PC-relative fields --- */

struct pc_field {
    uint32_t mask;
    uint8_t bits, scale; /* scale: log2 of the unit */
};

static struct pc_field pc_field(const struct form *form)
{
    switch ((enum form_kind)form->kind) {
    case PC_26: return (struct pc_field){0x03ffffff, 26, 2};
    case PC_19: return (struct pc_field){0x00ffffe0, 19, 2};
    case PC_14: return (struct pc_field){0x0007ffe0, 14, 2};
    case PC_ADR: return (struct pc_field){0x60ffffe0, 21, 0};
    case PC_PAGE: return (struct pc_field){0x60ffffe0, 21, 12};
    default: return (struct pc_field){0};
    }
}

bool aarch64_canonical(const uint8_t *bytes, uint8_t length, struct code_bytes *out)
{
    uint32_t word;
    const struct form *form = form_of(bytes, length, &word);
    if (!form)
        return false;
    *out = one_word(word & ~pc_field(form).mask);
    return true;
}

bool aarch64_retarget(const uint8_t *bytes, uint8_t length, int64_t displacement,
                      uint8_t *out)
{
    uint32_t word;
    const struct form *form = form_of(bytes, length, &word);
    if (!form || form->kind == PC_PAGE)
        return false;
    const struct pc_field pc = pc_field(form);
    if (!pc.mask || displacement % (1 << pc.scale))
        return false;
    const int64_t value = displacement / (1 << pc.scale);
    if (!fits_signed(value, pc.bits))
        return false;
    const uint32_t bits = (uint32_t)value & ((1u << pc.bits) - 1);
    word &= ~pc.mask;
    if (form->kind == PC_ADR)
        word |= field(bits, 0, 2) << 29 | field(bits, 2, 19) << 5;
    else if (form->kind == PC_26)
        word |= bits;
    else
        word |= bits << 5;
    store_le(out, 4, word);
    return true;
}

bool aarch64_widen(const uint8_t *bytes, uint8_t length, struct code_bytes *out)
{
    (void)bytes, (void)length, (void)out;
    return false;
}

bool aarch64_relocatable(const uint8_t *bytes, uint8_t length, struct code_bytes *out)
{
    uint32_t word;
    const struct form *form = form_of(bytes, length, &word);
    if (!form || form->kind != PC_26)
        return false;
    if (form->flow == FLOW_CALL)
        aarch64_emit_call(out);
    else
        aarch64_emit_jump(out);
    return true;
}

bool aarch64_call_to_jump(const uint8_t *bytes, uint8_t length, struct code_bytes *out)
{
    uint32_t word;
    const struct form *form = form_of(bytes, length, &word);
    if (!form)
        return false;
    if (form->flow == FLOW_CALL) {
        *out = one_branch((word & 0x03ffffffu) | B, R_AARCH64_JUMP26);
        return true;
    }
    if (form->flow == FLOW_CALL_INDIRECT) {
        *out = one_word(word & ~BR_BIT);
        return true;
    }
    return false;
}

uint32_t aarch64_call_reloc_to_jump(uint32_t type)
{
    return type == R_AARCH64_CALL26 ? R_AARCH64_JUMP26 : type;
}

/* --- SP operands --- */

/* [sp, #imm12 * size] with this displacement. */
static bool put_scaled(uint32_t word, int64_t bytes, uint32_t *out)
{
    const uint32_t scale = aarch64_access_scale(word, false);
    if (bytes < 0 || bytes % (1 << scale) || bytes >> scale > 0xfff)
        return false;
    *out = (word & ~0x003ffc00u) | (uint32_t)(bytes >> scale) << 10;
    return true;
}

static bool put_unscaled(uint32_t word, int64_t bytes, uint32_t *out)
{
    if (fits_signed(bytes, 9)) {
        *out = (word & ~0x001ff000u) | ((uint32_t)bytes & 0x1ff) << 12;
        return true;
    }
    /* Only ldur and its kin have a scaled twin: not ldtr (bits 10-11), not ldapur. */
    const bool has_scaled = (word & 0x3b200c00u) == 0x38000000u;
    return has_scaled && put_scaled(word | UNSCALED_TO_SCALED, bytes, out);
}

static bool put_pair(uint32_t word, int64_t bytes, uint32_t *out)
{
    const uint32_t scale = aarch64_access_scale(word, true);
    const int64_t value = bytes / (1 << scale);
    if (bytes % (1 << scale) || !fits_signed(value, 7))
        return false;
    *out = (word & ~0x003f8000u) | ((uint32_t)value & 0x7f) << 15;
    return true;
}

/* add or sub xN, sp, #imm: becomes the one whose immediate is not negative. */
static bool put_add(uint32_t word, int64_t bytes, uint32_t *out)
{
    const uint64_t size = (uint64_t)(bytes < 0 ? -bytes : bytes);
    if (word & SHIFT_12 || size > 0xfff)
        return false;
    const uint32_t op = bytes < 0 ? 0xd1000000u : 0x91000000u;
    *out = op | (uint32_t)size << 10 | (word & 0x3ff);
    return true;
}

bool aarch64_shift_sp(const uint8_t *bytes, uint8_t length, int32_t delta,
                      struct code_bytes *out)
{
    uint32_t word, shifted;
    const struct form *form = form_of(bytes, length, &word);
    struct insn insn;
    if (!form || !aarch64_decode(bytes, length, 0, &insn) ||
        !(insn.traits & (INSN_SP_MEMORY | INSN_SP_COPY)))
        return false;
    const int64_t value = (int64_t)insn.sp_value + delta;
    bool fits = false;
    if (form->kind == AT_SCALED)
        fits = put_scaled(word, value, &shifted);
    else if (form->kind == AT_UNSCALED)
        fits = put_unscaled(word, value, &shifted);
    else if (form->kind == AT_PAIR)
        fits = put_pair(word, value, &shifted);
    else if (form->kind == ADD_IMMEDIATE)
        fits = put_add(word, value, &shifted);
    if (!fits)
        return false;
    *out = one_word(shifted);
    return true;
}

/* --- emission --- */

void aarch64_emit_call(struct code_bytes *out)
{
    *out = one_branch(BL, R_AARCH64_CALL26);
}

void aarch64_emit_jump(struct code_bytes *out)
{
    *out = one_branch(B, R_AARCH64_JUMP26);
}

void aarch64_emit_return(struct code_bytes *out)
{
    *out = one_word(RET);
}

void aarch64_emit_save_register(uint8_t reg, struct code_bytes *before,
                                struct code_bytes *after)
{
    assert(reg < 30);
    *before = one_word(MOV_FROM_X30 | reg);
    *after = one_word(MOV_TO_X30 | (uint32_t)reg << 16);
}

void aarch64_emit_save_stack(struct code_bytes *before, struct code_bytes *after)
{
    *before = one_word(PUSH_X30);
    *after = one_word(POP_X30);
}

void aarch64_emit_padding(uint8_t *at, uint32_t size)
{
    assert(size % 4 == 0);
    for (uint32_t i = 0; i < size; i += 4)
        store_le(at + i, 4, NOP);
}
