/* SPDX-License-Identifier: MIT
 *
 * May an occurrence become a site, and in which form? The rules and their reasons are
 * in the design, 4.4 to 4.8. In short:
 *
 * A tail is jumped to: nothing is on the stack that was not there, no register has
 * changed, so its payload may do as it likes. But no caller's frame is left to look at
 * while it runs: its unwind rows are those of the sites, which must be the same at
 * every instruction.
 *
 * All others are called. The return address lies in the link register or on the stack,
 * so the payload leaves both alone, and SP is lower by what the call pushed. While the
 * helper runs, an unwinder sees the caller in the row from before the site: what that
 * row says must stay true until the payload's end.
 */
#include "outliner/choose/choose.h"

#include <assert.h>

/* How far behind a site its block may go on, instructions, for us to look whether a
 * register is dead there. */
enum { LIVENESS_LIMIT = 256 };

/* GNU_PROPERTY_AARCH64_FEATURE_1_BTI: indirect jumps and calls land at different marks.
 */
enum { FEATURE_LANDING_MARKS = 1u << 0 };

static const struct insn *insn_of(const struct facts *facts, uint32_t insn)
{
    return &facts->program->insns[insn];
}

static const struct function *function_of(const struct facts *facts, uint32_t insn)
{
    return &facts->program->functions[facts->at[insn].function];
}

/* --- payloads --- */

static const uint8_t *bytes_of(const struct facts *facts, uint32_t insn)
{
    uint32_t code = function_of(facts, insn)->code;
    return program_section(facts->program, code)->data.at +
           insn_of(facts, insn)->offset;
}

bool thunk_ends_at(const struct facts *facts, uint32_t insn)
{
    const struct target *target = facts->program->target;
    const struct insn *call = insn_of(facts, insn);
    struct code_bytes jump;
    bool calls = call->flow == FLOW_CALL || call->flow == FLOW_CALL_INDIRECT;
    const uint32_t never = INSN_SP_MEMORY | INSN_SP_COPY | INSN_SP_OPAQUE | INSN_SIGNS;
    return calls && (call->traits & never) == 0 &&
           !has_register(call->uses, target->link_register) &&
           target->call_to_jump(bytes_of(facts, insn), call->length, &jump);
}

bool tail_ends_at(const struct facts *facts, uint32_t insn)
{
    /* Jumps that stay inside, and those through a table, are in no token. */
    uint8_t flow = insn_of(facts, insn)->flow;
    return flow == FLOW_RETURN || flow == FLOW_JUMP || flow == FLOW_JUMP_INDIRECT;
}

/* What the SP operands grow by when they are shifted; false if one cannot be. */
static bool growth_of(const struct facts *facts, const struct payload *payload,
                      int32_t shift, uint32_t *growth)
{
    *growth = 0;
    for (uint32_t i = payload->insn; i < payload->insn + payload->length; i++) {
        const struct insn *insn = insn_of(facts, i);
        struct code_bytes code;
        if (shift == 0 || (insn->traits & (INSN_SP_MEMORY | INSN_SP_COPY)) == 0) {
            continue;
        }
        if (!facts->program->target->shift_sp(bytes_of(facts, i), insn->length, shift,
                                              &code)) {
            return false;
        }
        *growth += (uint32_t)code.length - insn->length;
    }
    return true;
}

static bool is_call(const struct insn *insn)
{
    return insn->flow == FLOW_CALL || insn->flow == FLOW_CALL_INDIRECT;
}

static void look_at_insns(const struct facts *facts, struct payload *payload)
{
    uint32_t end = payload->insn + payload->length;
    uint32_t inner_end = payload->kind == PAYLOAD_THUNK ? end - 1 : end;
    for (uint32_t i = payload->insn; i < end; i++) {
        const struct insn *insn = insn_of(facts, i);
        payload->inner |= i < inner_end && is_call(insn);
        payload->uses_sp |= (insn->traits & (INSN_SP_MEMORY | INSN_SP_COPY)) != 0;
        payload->touched |= insn->uses | insn->defs;
        payload->written |= insn_may_write(facts->program, i);
    }
}

/* Bytes of the instructions when the last one has become what ends the helper. */
static uint32_t size_with_end(const struct facts *facts, const struct payload *payload,
                              uint32_t size)
{
    const struct target *target = facts->program->target;
    uint32_t last = payload->insn + payload->length - 1;
    struct code_bytes jump = {0};
    if (payload->kind == PAYLOAD_PLAIN) {
        return size + target->return_size;
    }
    if (payload->kind == PAYLOAD_THUNK) {
        bool known = target->call_to_jump(bytes_of(facts, last),
                                          insn_of(facts, last)->length, &jump);
        assert(known);
        return size - insn_of(facts, last)->length + jump.length;
    }
    return size;
}

/* Before the helper calls others it lowers SP, so that the stack is aligned for them. */
static uint32_t size_of_align(const struct target *target)
{
    struct code_bytes before, after;
    target->emit_align(&before, &after);
    return (uint32_t)before.length + after.length;
}

bool payload_make(const struct facts *facts, uint32_t insn, uint32_t length,
                  uint32_t size, enum payload_kind kind, struct payload *out)
{
    const struct target *target = facts->program->target;
    *out = (struct payload){.insn = insn, .length = length, .kind = kind};
    out->size = size_with_end(facts, out, size);
    if (kind == PAYLOAD_TAIL) {
        out->settled = tail_settled(facts->program, insn, length);
        return true;
    }
    look_at_insns(facts, out);
    out->indirect = insn_of(facts, insn + length - 1)->flow == FLOW_CALL_INDIRECT;
    if (out->inner) {
        out->size += size_of_align(target);
    }
    int32_t shift = target->call_pushes + (out->inner ? target->align_shift : 0);
    uint32_t growth, stack_growth;
    bool called = growth_of(facts, out, shift, &growth);
    bool stacked =
        kind == PAYLOAD_PLAIN && target->save_stack_size != 0 &&
        growth_of(facts, out, shift + target->save_stack_shift, &stack_growth);
    out->stack_size = stacked ? out->size + stack_growth : 0;
    out->size = called ? out->size + growth : 0;
    return called || stacked;
}

/* --- sites --- */

uint64_t site_settled(const struct facts *facts, const struct payload *payload,
                      const struct site *site)
{
    bool private = fact_is(facts, site->insn, FACT_PRIVATE);
    return site->form == FORM_TAIL && !private ? payload->settled : 0;
}

uint64_t tail_key(const struct facts *facts, const struct payload *payload,
                  uint32_t insn, uint64_t settled)
{
    uint32_t end = insn + payload->length;
    uint32_t row = tail_row(facts->tail_rows, facts->at[insn].row, settled);
    uint64_t key = mix(mix(fact_is(facts, insn, FACT_B_KEY), settled), row);
    for (uint32_t i = facts->at[insn].row_end; i < end; i = facts->at[i].row_end) {
        uint32_t next = tail_row(facts->tail_rows, facts->at[i].row, settled);
        key = next == row ? key : mix(mix(key, i - insn), next);
        row = next;
    }
    return key;
}

uint64_t site_key(const struct facts *facts, const struct payload *payload,
                  const struct site *site)
{
    if (site->form == FORM_TAIL) {
        return tail_key(facts, payload, site->insn, site_settled(facts, payload, site));
    }
    if (site->form == FORM_SAVE_STACK) {
        return payload->uses_sp; /* 1: it has slots in no case, see called_site() */
    }
    return slots_key(facts, site->insn, payload->length);
}

static bool tail_site(const struct facts *facts, const struct payload *payload,
                      uint32_t insn, struct site *out)
{
    if (fact_is(facts, insn, FACT_SIGNAL_FRAME) ||
        !throws_allow_tail(facts, insn, payload->length)) {
        return false;
    }
    *out = (struct site){.insn = insn, .form = FORM_TAIL};
    out->stay = (uint8_t)site_stay(facts, out);
    return true;
}

/* A register that can keep the link register: dead across the payload, and one that the
 * function writes anyway (a caller may count on all others, -fipa-ra) without having
 * saved it (preserve_most: it looks dead behind the load that restores it) or handing it
 * out. */
static uint8_t find_scratch(const struct facts *facts, const struct payload *payload,
                            uint32_t insn)
{
    const struct target *target = facts->program->target;
    const struct function *function = function_of(facts, insn);
    uint64_t regs = target->scratch_registers & function->written & ~function->keeps &
                    ~function->results & ~payload->touched;
    if (regs == 0) {
        return UINT8_MAX;
    }
    /* The payload does not touch it: dead before is dead behind. */
    regs &= ~program_live_before(facts->program, insn, LIVENESS_LIMIT).regs;
    for (uint8_t reg = 0; reg < 64; reg++) {
        if (has_register(regs, reg)) {
            return reg;
        }
    }
    return UINT8_MAX;
}

/* The row can say where the link register is while it lies on the stack. */
static bool stack_can_keep_link(const struct facts *facts, uint32_t insn)
{
    const struct target *target = facts->program->target;
    if (function_of(facts, insn)->signs) {
        return false;
    }
    if (facts->at[insn].row == ROW_NONE) {
        return true;
    }
    const struct row *row = row_get(facts->program->rows, facts->at[insn].row);
    return !row->cfa_is_expression && row->cfa_register == target->dwarf_stack_column;
}

static bool has_landing_marks(const struct facts *facts, uint32_t insn)
{
    const struct program *program = facts->program;
    uint32_t code = function_of(facts, insn)->code;
    const struct object *object = program_object(program, code);
    const struct unit *unit = &object->units[program_section(program, code)->unit];
    return program->target->link_register < 64 &&
           (unit->features & FEATURE_LANDING_MARKS) != 0;
}

static bool called_site(const struct facts *facts, const struct payload *payload,
                        uint32_t insn, struct site *out)
{
    const struct target *target = facts->program->target;
    *out = (struct site){.insn = insn, .form = FORM_PLAIN};
    if (target->call_pushes != 0 && fact_is(facts, insn, FACT_RED_ZONE)) {
        return false;
    }
    bool live = link_is_live(facts, insn);
    if (payload->kind == PAYLOAD_THUNK) {
        out->form = FORM_THUNK;
        if (live || (payload->indirect && has_landing_marks(facts, insn))) {
            return false;
        }
    }
    if (!rows_allow_call(facts, payload, insn)) {
        return false;
    }
    if (!live) {
        return payload->size != 0;
    }
    if (target->save_register_size != 0 && payload->size != 0) {
        out->scratch = find_scratch(facts, payload, insn);
        out->form = FORM_SAVE_REGISTER;
        if (out->scratch != UINT8_MAX) {
            return true;
        }
    }
    *out = (struct site){.insn = insn, .form = FORM_SAVE_STACK};
    return payload->stack_size != 0 && stack_can_keep_link(facts, insn) &&
           slots_key(facts, insn, payload->length) == 0;
}

/* The calls inside of the payload may be made from a helper's frame here; the helper has
 * one row before and one behind the instruction that lowers SP. */
static bool inner_site(const struct facts *facts, const struct payload *payload,
                       uint32_t insn)
{
    uint32_t end = insn + payload->length;
    uint32_t inner_end = payload->kind == PAYLOAD_THUNK ? end - 1 : end;
    return facts->inner_end != NULL && facts->inner_end[insn] >= inner_end &&
           facts->at[insn].row_end >= end &&
           slots_key(facts, insn, payload->length) == 0;
}

bool site_make(const struct facts *facts, const struct payload *payload, uint32_t insn,
               struct site *out)
{
    /* On its way to the helper a veneer would clobber a live register. */
    if (fact_is(facts, insn, FACT_VENEER_LIVE)) {
        return false;
    }
    if (payload->kind == PAYLOAD_TAIL) {
        return tail_site(facts, payload, insn, out);
    }
    return (!payload->inner || inner_site(facts, payload, insn)) &&
           called_site(facts, payload, insn, out) &&
           throws_allow_call(facts, payload, out);
}
