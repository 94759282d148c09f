/* SPDX-License-Identifier: MIT
 *
 * Who may keep bytes below SP, where a call would overwrite them (x86-64 psABI 3.2.2).
 *
 * Compilers do that in functions that call nobody. A part of a function without a call
 * may belong to one that has some in the other part (zones.c), and the other way round
 * a part that does not look at the stack may run while the other part has something
 * there. So the two are judged as the one function that they are.
 *
 * Then it spreads: ends of functions are shared by jumps (ours, of earlier rounds: a
 * site that stays in place is jumped to by others), and the code there runs on the
 * stack of whoever jumped. What may be below SP in the one may be below SP in the
 * other.
 */
#include "outliner/lift/zones.h"

/* --- what may be below SP --- */

/* Helpers that were taken from ends of functions go on to others, as deep as this. */
enum { TAIL_LEVELS = 8 };

bool function_has_traits(const struct program *program, uint32_t number,
                         uint32_t traits)
{
    const struct function *function = &program->functions[number];
    for (uint32_t i = 0; i < function->insn_count; i++) {
        if (program->insns[function->first_insn + i].traits & traits)
            return true;
    }
    return false;
}

/* Some instruction from `insn` to the end of its function has one of the traits. */
static bool tail_has_traits(const struct program *program, uint32_t insn,
                            uint32_t traits)
{
    const struct function *function =
        &program->functions[program_function_of_insn(program, insn)];
    for (; insn < function->first_insn + function->insn_count; insn++) {
        if (program->insns[insn].traits & traits)
            return true;
    }
    return false;
}

/* It jumps into the middle of another function, to a tail that stayed in its place in
 * an earlier round, and that has one of the traits. */
static bool shares_traits(const struct program *program, uint32_t insn, uint32_t traits)
{
    if (program->insns[insn].flow != FLOW_JUMP ||
        jump_stays_inside(program, &program->insns[insn]))
        return false;
    uint32_t there = insn_destination(program, insn);
    if (there == NO_INDEX ||
        program_function_of_insn(program, there) ==
            program_function_of_insn(program, insn) ||
        insn_is_tail_call(program, insn))
        return false;
    return tail_has_traits(program, there, traits);
}

/* Or it jumps to helpers that have them, which were part of it in an earlier round. */
static bool jumps_to_traits(const struct program *program, uint32_t number,
                            uint32_t traits)
{
    const struct function *function = &program->functions[number];
    for (uint32_t i = 0; i < function->insn_count; i++) {
        uint32_t at = function->first_insn + i;
        if (shares_traits(program, at, traits))
            return true;
        for (int level = 0; program->insns[at].flow == FLOW_JUMP &&
                            !jump_stays_inside(program, &program->insns[at]);
             level++) {
            uint32_t callee = insn_callee(program, at);
            if (callee == NO_INDEX ||
                !program->code[program->functions[callee].code].helpers)
                break;
            const struct function *helper = &program->functions[callee];
            if (level == TAIL_LEVELS || helper->insn_count == 0 ||
                function_has_traits(program, callee, traits))
                return true;
            at = helper->first_insn + helper->insn_count - 1;
        }
    }
    return false;
}

/* An exit of a function that leads neither to another function's entry nor to its own
 * other part. */
static bool goes_astray(const struct zones *zones, uint32_t number, uint32_t insn)
{
    const struct program *program = zones->program;
    const struct function *function = &program->functions[number];
    uint8_t flow = program->insns[insn].flow;
    const struct jump_table *table =
        flow == FLOW_JUMP_INDIRECT ? table_of_insn(program, insn) : NULL;
    uint32_t target = program->insns[insn].target, position;
    bool outside =
        target == NO_INDEX || target < function->start || target >= function->end;
    if (table != NULL)
        return table_leaves(program, table);
    if (!outside || (flow != FLOW_BRANCH &&
                     (flow != FLOW_JUMP || insn_is_tail_call(program, insn))))
        return false;
    uint32_t to = jump_leads_to(program, insn, &position);
    return to == NO_INDEX || to != zones_other_part(zones, number);
}

/* The code goes on in, or comes from, a place that nobody knows. */
static bool is_astray(const struct zones *zones, uint32_t number)
{
    const struct program *program = zones->program;
    const struct function *function = &program->functions[number];
    if (function_is_private(program, number) &&
        zones_other_part(zones, number) == NO_INDEX)
        return true;
    for (uint32_t i = 0; i < function->insn_count; i++) {
        if (goes_astray(zones, number, function->first_insn + i))
            return true;
    }
    return false;
}

/* Its instructions are what they look like, though it is left alone. */
static bool is_known_code(const struct function *function)
{
    return function->insn_count > 0 &&
           (function->refusal == REFUSAL_NONE || function->refusal == REFUSAL_KEEP ||
            function->refusal == REFUSAL_HOT ||
            function->refusal == REFUSAL_LABEL_TAKEN ||
            function->refusal == REFUSAL_INDIRECT_JUMP);
}

/* Of a sealed function depth.c does not know what memory at the frame register is. */
static bool looks_below(const struct program *program, uint32_t number, uint32_t traits)
{
    if (program->functions[number].refusal != REFUSAL_NONE &&
        function_has_traits(program, number, INSN_FRAME_SET))
        traits |= INSN_FRAME_MEMORY;
    return function_has_traits(program, number, traits) ||
           jumps_to_traits(program, number, traits);
}

/* What is known of the calls of a function and its other part. */
struct calls {
    bool any;     /* some follow the ABI: SP was lowered for them */
    bool outdone; /* something is looked at where SP is higher than at any of these, so
                     that they say nothing of it */
};

static struct calls calls_of(const struct function *function, const struct function *rest)
{
    int32_t call = function->call_depth, look = function->look_depth;
    bool any = function->has_calls;
    if (rest != NULL) {
        any |= rest->has_calls;
        call = rest->call_depth < call ? rest->call_depth : call;
        look = rest->look_depth < look ? rest->look_depth : look;
    }
    return (struct calls){any && call != INT32_MAX, look < call};
}

/* Bytes below SP may be in use. Code that makes no call may address them in more ways
 * than can be followed (an index, a pointer made of the frame register), so there every
 * look at the stack counts. Compilers lower SP by all they need in functions that call
 * (but do not know of calls that are made by inline assembly, or by the hooks of profilers).
 * A helper that is jumped to runs in the frame of its sites. */
static bool may_use(const struct zones *zones, uint32_t number)
{
    const uint32_t looks = INSN_SP_MEMORY | INSN_SP_COPY | INSN_SP_OPAQUE |
                           INSN_FRAME_MEMORY | INSN_SP_FROM_FRAME | INSN_BELOW_SP;
    const struct program *program = zones->program;
    const struct function *function = &program->functions[number];
    uint32_t other = zones_other_part(zones, number);
    const struct function *rest = other == NO_INDEX ? NULL : &program->functions[other];
    struct calls calls = calls_of(function, rest);
    if (program->code[function->code].helpers)
        return true;
    if (!calls.any &&
        (is_astray(zones, number) || (rest != NULL && is_astray(zones, other)) ||
         (rest != NULL && !is_known_code(rest))))
        return true;
    if (calls.any && calls.outdone)
        return true;
    uint32_t traits = calls.any ? (uint32_t)INSN_BELOW_SP : looks;
    return looks_below(program, number, traits) ||
           (rest != NULL && looks_below(program, other, traits));
}

/* --- spreading --- */

/* Depths are followed in each part by itself (depth.c): what the one was seen to keep
 * below SP, through a frame register that the other one never sets, is there in both.
 */
static void share(const struct zones *zones, uint32_t number)
{
    uint32_t other = zones_other_part(zones, number);
    if (other != NO_INDEX && zones->program->functions[number].red_zone)
        zones->program->functions[other].red_zone = true;
}

/* Returns whether anything has changed. */
static bool spread(struct program *program, const struct zone_jump *jump)
{
    struct function *to = &program->functions[jump->to];
    if (!program->functions[jump->from].red_zone || to->red_zone ||
        to->start == jump->position)
        return false;
    to->red_zone = true;
    return true;
}

struct parts {
    const struct zones *zones;
    struct stretches stretches;
};

static void judge_part(void *context, uint32_t part, uint32_t worker)
{
    const struct parts *parts = context;
    struct stretch stretch = parts->stretches.items[part];
    struct function *functions = parts->zones->program->functions;
    (void)worker;
    for (uint32_t f = stretch.first; f < stretch.first + stretch.count; f++)
        functions[f].red_zone |=
            !is_known_code(&functions[f]) || may_use(parts->zones, f);
}

void lift_red_zones(struct program *program)
{
    if (program->target->call_pushes == 0)
        return;
    struct arena *stage = arena_new();
    struct zones zones = zones_find(stage, program);
    struct parts parts = {&zones, program_stretches(stage, program, PART_INSNS)};
    parallel_do(program->workers, parts.stretches.count, judge_part, &parts);
    for (uint32_t f = 0; f < program->function_count; f++)
        share(&zones, f);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < zones.jumps.count; i++)
            changed |= spread(program, &zones.jumps.items[i]);
    }
    arena_free(stage);
}
