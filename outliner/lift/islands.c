/* SPDX-License-Identifier: MIT
 *
 * Islands: opaque functions, of which nobody knows what is code and what is data.
 * Tables between and behind functions of hand-written assembly (gaps, always),
 * functions that do not decode, functions in which data lies. An island keeps its bytes
 * and moves as a block, congruent to its old place by the section's alignment.
 * References into it are relocations or fields of known instructions, like all others.
 * What else could depend on where it lies, and what we do about it:
 *
 * - It holds code with references out of it that the assembler has resolved. All that
 *   could be one is found (mo/superset.h), and such an island and what it may refer to
 *   keep their distance: everything from the one to the other is sealed and moves as
 *   one block.
 * - Control falls from it into the next function, or a marker before a function belongs
 *   to that: the next function stays right behind it.
 * - An instruction takes an address with an offset from a table, so that it seems to
 *   mean a place beside the table, or uses the distance between two tables. So islands
 *   whose addresses are taken keep their distances from each other, and from the places
 *   in other functions that seem to be meant - unless it is a function's start, far
 *   from every island.
 * - It holds distances to code for a computed jump. Then some function of the section
 *   jumps to where nobody knows, and the section is frozen.
 */
#include "mo/superset.h"
#include "outliner/lift/lift.h"

/* Furthest that an address is taken beside a table, where it could be a function, too.
 */
enum { BIAS = 512 };

struct islands {
    struct lift *lift;
    struct arena *stage;
    uint32_t code;
    uint32_t first, end; /* its functions */
    const struct code_ref *const *refs; /* that lead into it */
    uint32_t ref_count;
    uint32_t low, high;  /* islands whose address is taken, as function indices */
    bool taken;
};

static bool is_place(const void *context, uint32_t offset)
{
    const struct islands *islands = context;
    const struct program *program = islands->lift->program;
    uint32_t number = program_function_at(program, islands->code, offset);
    return number != NO_INDEX && (program->functions[number].opaque ||
                                  program_insn_in(program, number, offset) != NO_INDEX);
}

/* The function at, or the first behind, a position. */
static uint32_t function_from(const struct islands *islands, uint32_t position)
{
    const struct function *functions = islands->lift->program->functions;
    uint32_t low = islands->first, high = islands->end - 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (functions[middle].end <= position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* From one function to the other all keep their distances. */
static void join(struct islands *islands, uint32_t a, uint32_t b)
{
    struct function *functions = islands->lift->program->functions;
    uint32_t low = a < b ? a : b, high = a < b ? b : a;
    for (uint32_t i = low; i <= high; i++) {
        if (i > low)
            functions[i].fixed = true;
        lift_seal(islands->lift, i, REFUSAL_BESIDE_DATA, functions[i].start);
    }
}

static void join_references(struct islands *islands, struct decoder *decoder,
                            uint32_t number)
{
    const struct program *program = islands->lift->program;
    const struct function *function = &program->functions[number];
    struct superset_range range = {program_section(program, islands->code),
                                   function->start, function->end, is_place, islands};
    struct superset all = superset_of(islands->stage, decoder, program->target, &range);
    for (uint32_t i = 0; i < all.references.count; i++)
        join(islands, number, function_from(islands, all.references.items[i].to));
}

/* --- addresses that are taken --- */

static bool takes_address(const struct insn *insn)
{
    bool transfer =
        insn->flow == FLOW_JUMP || insn->flow == FLOW_BRANCH || insn->flow == FLOW_CALL;
    return (insn->traits & INSN_PC_RELATIVE) && !transfer && insn->target != NO_INDEX;
}

static void take_island(struct islands *islands, uint32_t number)
{
    if (!islands->taken || number < islands->low)
        islands->low = number;
    if (!islands->taken || number > islands->high)
        islands->high = number;
    islands->taken = true;
}

static void for_each_address(struct islands *islands,
                             void (*visit)(struct islands *, uint32_t function,
                                           uint32_t position))
{
    const struct program *program = islands->lift->program;
    for (uint32_t f = islands->first; f < islands->end; f++) {
        const struct function *function = &program->functions[f];
        for (uint32_t i = 0; i < function->insn_count; i++) {
            const struct insn *insn = &program->insns[function->first_insn + i];
            if (takes_address(insn))
                visit(islands, f, insn->target);
        }
    }
    for (uint32_t r = 0; r < islands->ref_count; r++)
        visit(islands, NO_INDEX, islands->refs[r]->position);
}

static void visit_taken(struct islands *islands, uint32_t function, uint32_t position)
{
    (void)function;
    uint32_t to = program_function_at(islands->lift->program, islands->code, position);
    if (to != NO_INDEX && islands->lift->program->functions[to].opaque)
        take_island(islands, to);
}

/* The island nearest to a position, and how far it is. */
static uint32_t nearest(const struct islands *islands, uint32_t position,
                        uint32_t *distance)
{
    const struct function *functions = islands->lift->program->functions;
    uint32_t best = NO_INDEX;
    *distance = UINT32_MAX;
    for (uint32_t f = islands->first; f < islands->end; f++) {
        const struct function *function = &functions[f];
        uint32_t far = position < function->start ? function->start - position
                       : position < function->end ? 0
                                                  : position - function->end;
        if (!function->opaque || far >= *distance)
            continue;
        *distance = far;
        best = f;
    }
    return best;
}

static void visit_bias(struct islands *islands, uint32_t function, uint32_t position)
{
    const struct program *program = islands->lift->program;
    uint32_t at = function_from(islands, position), far;
    uint32_t island = nearest(islands, position, &far);
    bool start = program->functions[at].start == position;
    if (program->functions[at].opaque || (start && far > BIAS))
        return;
    /* A relocation from elsewhere: frames and symbols of functions are no addresses. */
    if (function == NO_INDEX && start)
        return;
    join(islands, at, island);
}

/* A jump to who knows where. */
static bool jumps_anywhere(const struct islands *islands)
{
    const struct program *program = islands->lift->program;
    for (uint32_t f = islands->first; f < islands->end; f++) {
        const struct function *function = &program->functions[f];
        for (uint32_t i = 0; i < function->insn_count; i++) {
            uint32_t insn = function->first_insn + i;
            if (program->insns[insn].flow == FLOW_JUMP_INDIRECT &&
                !table_of_insn(program, insn))
                return true;
        }
    }
    return false;
}

/* A sealed function cannot make its branches longer, and around a block padding may
 * grow by the section's alignment: short ones keep their distance. */
enum { SHORT_BRANCH = 3 }; /* bytes, with a prefix */

static void join_short_branches(struct islands *islands)
{
    const struct program *program = islands->lift->program;
    for (uint32_t f = islands->first; f < islands->end; f++) {
        const struct function *function = &program->functions[f];
        for (uint32_t i = 0; i < function->insn_count; i++) {
            const struct insn *insn = &program->insns[function->first_insn + i];
            bool branch = insn->flow == FLOW_JUMP || insn->flow == FLOW_BRANCH;
            if (branch && insn->length <= SHORT_BRANCH && insn->target != NO_INDEX &&
                (insn->target < function->start || insn->target >= function->end))
                join(islands, f, function_from(islands, insn->target));
        }
    }
}

/* --- one section --- */

static bool has_islands(const struct islands *islands)
{
    for (uint32_t f = islands->first; f < islands->end; f++) {
        if (islands->lift->program->functions[f].opaque)
            return true;
    }
    return false;
}

/* Blocks keep their place by the section's alignment: data in them may need it. */
static void align_blocks(const struct islands *islands)
{
    const struct program *program = islands->lift->program;
    uint32_t align = (uint32_t)program_section(program, islands->code)->align;
    for (uint32_t f = islands->first; f < islands->end; f++) {
        struct function *function = &program->functions[f];
        bool block = function->opaque ||
                     (f + 1 < islands->end && program->functions[f + 1].fixed);
        if (block && !function->fixed)
            function->align = align > function->align ? align : function->align;
        if (function->opaque && f + 1 < islands->end)
            program->functions[f + 1].fixed = true;
    }
}

static void settle_section(struct islands *islands, struct decoder *decoder)
{
    const struct program *program = islands->lift->program;
    for (uint32_t f = islands->first; f < islands->end; f++) {
        if (program->functions[f].opaque)
            join_references(islands, decoder, f);
    }
    for_each_address(islands, visit_taken);
    if (islands->taken) {
        join(islands, islands->low, islands->high);
        for_each_address(islands, visit_bias);
        if (jumps_anywhere(islands))
            lift_freeze(islands->lift, islands->code, REFUSAL_REFERENCE_INTO_SECTION,
                        program->functions[islands->low].start);
    }
    join_short_branches(islands);
    align_blocks(islands);
}

/* --- all sections: each looks at itself alone --- */

struct all {
    struct lift *lift;
    struct decoder *decoder;
    const struct code_ref **refs; /* sorted by code, else as in the program */
    uint32_t *first_ref;          /* by code index; code_count + 1 of them */
    array_of(uint32_t) codes;     /* with islands */
};

static struct islands islands_of(const struct all *all, uint32_t code)
{
    const struct code *of = &all->lift->program->code[code];
    return (struct islands){.lift = all->lift,
                            .code = code,
                            .first = of->first_function,
                            .end = of->first_function + of->function_count};
}

static void group_refs(struct all *all, struct arena *stage)
{
    const struct program *program = all->lift->program;
    all->refs = arena_new_array(stage, const struct code_ref *, program->ref_count);
    uint32_t *next = arena_new_array(stage, uint32_t, program->code_count + 2u);
    for (uint32_t r = 0; r < program->ref_count; r++)
        next[program->refs[r].code + 2]++;
    for (uint32_t c = 2; c < program->code_count + 2u; c++)
        next[c] += next[c - 1];
    for (uint32_t r = 0; r < program->ref_count; r++)
        all->refs[next[program->refs[r].code + 1]++] = &program->refs[r];
    all->first_ref = next;
}

static void settle_part(void *context, uint32_t part, uint32_t worker)
{
    const struct all *all = context;
    struct islands islands = islands_of(all, all->codes.items[part]);
    (void)worker;
    uint32_t first = all->first_ref[islands.code];
    islands.stage = arena_new();
    islands.refs = &all->refs[first];
    islands.ref_count = all->first_ref[islands.code + 1] - first;
    settle_section(&islands, all->decoder);
    arena_free(islands.stage);
}

void lift_islands(struct lift *lift)
{
    const struct program *program = lift->program;
    struct arena *stage = arena_new();
    struct all all = {.lift = lift, .decoder = lift->options->decoder};
    if (!all.decoder)
        all.decoder = decoder_new(stage, program->target);
    for (uint32_t c = 0; c < program->code_count; c++) {
        struct islands islands = islands_of(&all, c);
        if (program->code[c].refusal == REFUSAL_NONE && has_islands(&islands))
            array_push(stage, &all.codes, c);
    }
    group_refs(&all, stage);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < all.codes.count; i++)
        bytes += program_section(program, all.codes.items[i])->data.size;
    decoder_expect(all.decoder, 0, bytes);
    parallel_do(program->workers, all.codes.count, settle_part, &all);
    arena_free(stage);
}
