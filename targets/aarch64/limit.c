/* SPDX-License-Identifier: MIT
 *
 * How large a value can be: trace_limit().
 *
 * We follow the value back along every edge into its instruction, through copies and
 * through the stack slots in which unoptimised code keeps it, until
 *   - an edge of a conditional branch says it: the value was compared with a constant,
 * and the branch is only taken (or not taken) this way when it is small enough;
 *   - or its own definition does: a mask, a bit field, a load of a byte.
 * A path that ends anywhere else - the function's entry, an instruction that only an
 * indirect jump can lead to, any other definition - is not understood, and there is no
 * limit. The largest limit of all paths counts.
 *
 * A compare of a w register limits the low half only. When all of the register counts
 * (an index [xT, xI]), we go on looking on that path for the definition of the value,
 * which must then be one of a w register, for these clear the upper half.
 *
 * The value compared and the value used need not be in one place: clang -O0 stores the
 * index, compares the register, and loads the index again. same_value() looks a few
 * instructions back from the compare for the copy or store that made them equal.
 */
#include "target.h"
#include "trace.h"

enum {
    STATES = 4096,
    BACK = 16, /* instructions from a branch to its compare, and from there to a copy */
    STACK = 31,
};

/* Where the value is. */
struct home {
    bool slot;     /* on the stack: `where` is the displacement from SP */
    bool wide;     /* all of it counts, not only the low 32 bits */
    int32_t where; /* register number or displacement */
};

enum phase { PHASE_LIMIT, PHASE_EXTENSION };

struct place_in_time {
    uint32_t insn; /* just before it */
    struct home home;
    uint8_t phase;
};

struct walk {
    struct trace *trace;
    array_of(struct place_in_time) states; /* seen so far, done up to `next` */
    uint32_t next;
    uint64_t limit;
    bool *seen;
};

enum step { STEP_ON, STEP_DONE, STEP_LOST };

static bool same_home(struct home a, struct home b)
{
    return a.slot == b.slot && a.where == b.where && a.wide == b.wide;
}

static bool push(struct walk *walk, uint32_t insn, struct home home, enum phase phase)
{
    for (uint32_t i = 0; i < walk->states.count; i++) {
        const struct place_in_time *seen = &walk->states.items[i];
        if (seen->insn == insn && seen->phase == phase && same_home(seen->home, home))
            return true;
    }
    if (walk->states.count == STATES)
        return false;
    const struct place_in_time state = {insn, home, (uint8_t)phase};
    array_push(walk->trace->stage, &walk->states, state);
    walk->seen[insn - walk->trace->first] = true;
    return true;
}

static void raise_limit(struct walk *walk, uint64_t limit)
{
    if (walk->limit < limit)
        walk->limit = limit;
}

/* --- stack slots --- */

static bool is_wide_access(uint32_t word)
{
    return field(word, 30, 1);
}

/* The instruction may change the slot. */
static bool may_write_slot(uint32_t word, const struct insn *insn, struct home home)
{
    const struct form *form = aarch64_form(word);
    if (insn->flow == FLOW_CALL || insn->flow == FLOW_CALL_INDIRECT || !form ||
        insn->traits & INSN_OPAQUE || insn->defs >> STACK & 1u)
        return true;
    if (!form_is_store(form))
        return false;
    return !(insn->traits & INSN_SP_MEMORY) ||
           trace_writes_slot(word, insn, home.where, home.wide ? 8 : 4);
}

static enum step step_slot(uint32_t word, const struct insn *insn, struct home *home)
{
    if (trace_is_slot_access(word, insn, false) && insn->sp_value == home->where) {
        if (home->wide && !is_wide_access(word))
            return STEP_LOST;
        *home = (struct home){false, home->wide, (int32_t)field(word, 0, 5)};
        return home->where == 31 ? STEP_LOST : STEP_ON;
    }
    return may_write_slot(word, insn, *home) ? STEP_LOST : STEP_ON;
}

/* --- definitions --- */

/* mov and its likes: add and sub of nothing (clang -O0). */
static bool is_copy(uint32_t word, uint32_t *source, bool *wide)
{
    *wide = word >> 31;
    if ((word & 0x7fe0ffe0u) == 0x2a0003e0u) { /* orr D, zr, M */
        *source = field(word, 16, 5);
        return *source != 31;
    }
    if ((word & 0x1ffffc00u) == 0x11000000u) { /* add, adds, sub, subs D, N, #0 */
        *source = field(word, 5, 5);
        return *source != 31;
    }
    return false;
}

/* The limit that a definition sets by itself. */
static bool own_limit(uint32_t word, uint64_t *limit)
{
    const uint32_t immr = field(word, 16, 6), imms = field(word, 10, 6);
    if ((word & 0x7f800000u) == 0x12000000u) { /* and #ones from bit 0 on */
        const bool one_element = word >> 31 ? field(word, 22, 1) : !(imms >> 5);
        if (!one_element || immr != 0 || imms > 30)
            return false;
        *limit = (2ull << imms) - 1;
        return true;
    }
    if ((word & 0x7f800000u) == 0x53000000u) { /* ubfx, uxtb, uxth, lsr */
        if (imms < immr || imms - immr > 30)
            return false;
        *limit = (2ull << (imms - immr)) - 1;
        return true;
    }
    const struct form *form = aarch64_form(word);
    if (!form || !form_is_memory(form) || !(form->roles & D_W) || word >> 31 ||
        form->kind < AT_INDEX || form->kind > AT_POST || field(word, 23, 1))
        return false;
    *limit = word >> 30 ? 0xffff : 0xff; /* ldrb, ldrh */
    return true;
}

/* The definition clears the upper half. */
static bool clears_upper_half(uint32_t word)
{
    uint64_t limit;
    if (own_limit(word, &limit))
        return true;
    const struct form *form = aarch64_form(word);
    if (!form || !(form->roles & (D_W | DSP_W)))
        return false;
    if (form->kind >= AT_INDEX && form->kind <= AT_POST)
        return word >> 30 == 2 && field(word, 22, 2) == 1; /* ldr w */
    const bool general = field(word, 26, 3) == 4 || field(word, 25, 3) == 5;
    /* data processing, immediate or register */
    return general && !(word >> 31) &&
           (form->kind < PC_26 || form->kind > AT_LANE_POST);
}

static enum step step_register(struct walk *walk, uint32_t at, enum phase phase,
                               struct home *home)
{
    const struct insn *insn = &walk->trace->program->insns[at];
    const uint32_t word = trace_word(walk->trace, at);
    uint32_t source;
    uint64_t limit;
    bool wide;
    if (insn->flow == FLOW_CALL || insn->flow == FLOW_CALL_INDIRECT)
        return trace_survives_call(walk->trace, at, (uint32_t)home->where) ? STEP_ON
                                                                           : STEP_LOST;
    if (!(insn->defs >> home->where & 1u))
        return STEP_ON;
    if (is_copy(word, &source, &wide)) {
        if (phase == PHASE_EXTENSION && !wide)
            return STEP_DONE;
        *home = (struct home){false, home->wide && wide, (int32_t)source};
        return STEP_ON;
    }
    if (trace_is_slot_access(word, insn, true)) {
        if (phase == PHASE_EXTENSION && !is_wide_access(word))
            return STEP_DONE;
        *home = (struct home){true, home->wide && is_wide_access(word), insn->sp_value};
        return STEP_ON;
    }
    if ((int32_t)field(word, 0, 5) != home->where) /* a base written back, … */
        return STEP_LOST;
    if (phase == PHASE_EXTENSION)
        return clears_upper_half(word) ? STEP_DONE : STEP_LOST;
    if (!own_limit(word, &limit))
        return STEP_LOST;
    raise_limit(walk, limit);
    return STEP_DONE;
}

/* --- compares --- */

static bool is_call(const struct insn *insn)
{
    return insn->flow == FLOW_CALL || insn->flow == FLOW_CALL_INDIRECT;
}

static bool may_write_home(uint32_t word, const struct insn *insn, struct home home)
{
    return home.slot ? may_write_slot(word, insn, home) : insn->defs >> home.where & 1u;
}

/* The instruction makes home and register equal: a copy, a store or a load. */
static bool makes_equal(uint32_t word, const struct insn *insn, struct home home,
                        uint32_t reg)
{
    uint32_t source;
    bool wide;
    if (home.slot) {
        const bool loads = trace_is_slot_access(word, insn, true);
        return (loads || trace_is_slot_access(word, insn, false)) &&
               insn->sp_value == home.where && field(word, 0, 5) == reg &&
               (!home.wide || is_wide_access(word));
    }
    if (!is_copy(word, &source, &wide) || (home.wide && !wide))
        return false;
    const uint32_t to = field(word, 0, 5), here = (uint32_t)home.where;
    return (to == here && source == reg) || (to == reg && source == here);
}

/* Before `insn` register `reg` holds what is at home: the last thing that happened to
 * either made them equal. That must be passed in every case, so the way there counts as
 * seen. */
static bool same_value(struct walk *walk, uint32_t insn, struct home home, uint32_t reg)
{
    const struct trace *trace = walk->trace;
    if (!home.slot && home.where == (int32_t)reg)
        return true;
    for (uint32_t i = 0; i < BACK && trace_only_falls_in(trace, insn); i++) {
        walk->seen[insn - trace->first] = true;
        const struct insn *is = &trace->program->insns[--insn];
        const uint32_t word = trace_word(trace, insn);
        if (makes_equal(word, is, home, reg))
            return true;
        if (may_write_home(word, is, home) || is->defs >> reg & 1u || is_call(is))
            return false;
    }
    return false;
}

/* The compare with a constant whose flags a branch reads: flags set once, and nothing
 * else leads between the two, nor changes the value at home. */
static bool find_compare(const struct trace *trace, uint32_t branch, struct home home,
                         uint32_t *compare)
{
    uint32_t at = branch;
    for (uint32_t i = 0; i < BACK && trace_only_falls_in(trace, at); i++) {
        const struct insn *insn = &trace->program->insns[--at];
        const uint32_t word = trace_word(trace, at);
        if (is_call(insn) || insn->traits & INSN_OPAQUE ||
            may_write_home(word, insn, home))
            return false;
        if (!insn->flag_defs)
            continue;
        *compare = at;
        return (word & 0x7f800000u) == 0x71000000u && field(word, 5, 5) != 31;
    }
    return false;
}

/* The largest value with which a conditional branch leaves by this edge, if what it
 * tests was compared with `constant`. */
static bool limit_of_condition(uint32_t condition, bool taken, uint64_t constant,
                               uint64_t *limit)
{
    if (!taken)
        condition ^= 1;
    *limit = constant;
    switch (condition) {
    case 0: /* eq */
    case 9: /* ls */ return true;
    case 3: /* lo */ *limit = constant - 1; return constant > 0;
    default: return false;
    }
}

/* What the edge says about the value at home. `narrow`: about its low half only. */
static bool edge_limit(struct walk *walk, struct edge edge, struct home home,
                       uint64_t *limit, bool *narrow)
{
    const struct trace *trace = walk->trace;
    const uint32_t word = trace_word(trace, edge.from);
    uint32_t compare;
    if ((word & 0x7e000000u) == 0x34000000u) { /* cbz, cbnz */
        *limit = 0;
        *narrow = !(word >> 31);
        return !home.slot && home.where == (int32_t)field(word, 0, 5) &&
               edge.taken != (bool)field(word, 24, 1);
    }
    if ((word & 0xff000000u) != 0x54000000u ||
        !find_compare(trace, edge.from, home, &compare))
        return false;
    const uint32_t by = trace_word(trace, compare);
    const uint64_t constant = (uint64_t)field(by, 10, 12) << field(by, 22, 1) * 12;
    *narrow = !(by >> 31);
    if (!limit_of_condition(field(word, 0, 4), edge.taken, constant, limit) ||
        !same_value(walk, compare, home, field(by, 5, 5)))
        return false;
    for (uint32_t i = compare + 1; i <= edge.from; i++)
        walk->seen[i - trace->first] = true;
    return true;
}

/* --- the walk --- */

static bool follow_edge(struct walk *walk, struct edge edge, struct place_in_time to)
{
    const struct insn *from = &walk->trace->program->insns[edge.from];
    struct home home = to.home;
    enum phase phase = (enum phase)to.phase;
    uint64_t limit;
    bool narrow = false;
    if (phase == PHASE_LIMIT && from->flow == FLOW_BRANCH &&
        edge_limit(walk, edge, home, &limit, &narrow)) {
        raise_limit(walk, limit);
        if (!narrow || !home.wide)
            return true;
        phase = PHASE_EXTENSION;
    }
    const enum step step =
        home.slot ? step_slot(trace_word(walk->trace, edge.from), from, &home)
                  : step_register(walk, edge.from, phase, &home);
    if (step == STEP_DONE)
        return true;
    if (phase == PHASE_EXTENSION && step == STEP_ON && !home.wide)
        return true;
    return step == STEP_ON && push(walk, edge.from, home, phase);
}

bool trace_limit(struct trace *trace, uint32_t insn, struct operand operand, bool *seen,
                 uint64_t *limit)
{
    struct walk walk = {.trace = trace, .seen = seen};
    const struct home home = {false, operand.wide, (int32_t)operand.reg};
    if (operand.reg == 31 || !push(&walk, insn, home, PHASE_LIMIT))
        return false;
    while (walk.next < walk.states.count) {
        const struct place_in_time state = walk.states.items[walk.next++];
        struct edge edge = FIRST_EDGE;
        if (state.insn == trace->first ||
            trace->program->insns[state.insn].traits & INSN_JOINED ||
            !trace_next_edge(trace, state.insn, &edge))
            return false;
        do {
            if (!follow_edge(&walk, edge, state))
                return false;
        } while (trace_next_edge(trace, state.insn, &edge));
    }
    *limit = walk.limit;
    return true;
}
