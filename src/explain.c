/* SPDX-License-Identifier: MIT
 *
 * --explain=FUNCTION: what became of every instruction, and why.
 *
 * The reason given is the first that applies in the order in which the tool itself
 * asks: frozen, sealed, pinned, not repeated, repeated but not chosen. The last one is
 * a weighing (length, number of places, forms that are legal there), not a rule, so the
 * numbers are given instead: the longest repeat that holds the instruction and how
 * often it occurs.
 *
 * Neighbours with the same reason are one line.
 */
#include "mo/dump.h"
#include "mo/match.h"
#include "mo/suffixtree.h"

#include <inttypes.h>
#include <string.h>

enum { SHORTEST_REPEAT = 2 };

/* The longest repeat that an instruction lies in; length 0: none. */
struct cover {
    uint32_t length, count;
};

struct explainer {
    struct arena *stage;
    const struct program *program;
    const struct plan *plan;
    struct cover *covers; /* by instruction index */
    uint32_t *helpers;    /* by instruction index: its helper's index, or NO_INDEX */
    uint8_t *forms;       /* by instruction index: the form of its site */
    const int64_t *best;  /* by instruction index: saving of its best candidate, or 0 */
};

/* Longest repeat that starts at each position. Repeats are nested intervals of the leaf
 * order, outer (shorter) before inner, so a stack of the open ones has at each leaf the
 * innermost on top. */
static void find_starts(struct explainer *explainer, const struct repeats *repeats,
                        struct cover *starts)
{
    uint32_t *open = arena_new_array(explainer->stage, uint32_t, repeats->count);
    uint32_t depth = 0, next = 0;
    for (uint32_t leaf = 0; leaf < repeats->position_count; leaf++) {
        while (depth > 0 && repeats->items[open[depth - 1]].first +
                                    repeats->items[open[depth - 1]].count <=
                                leaf)
            depth--;
        while (next < repeats->count && repeats->items[next].first == leaf)
            open[depth++] = next++;
        if (depth > 0) {
            const struct repeat *inner = &repeats->items[open[depth - 1]];
            starts[repeats->positions[leaf]] =
                (struct cover){inner->length, inner->count};
        }
    }
}

static void find_covers(struct explainer *explainer, const struct tokens *tokens)
{
    const struct program *program = explainer->program;
    struct repeats repeats =
        suffixtree_repeats(explainer->stage, tokens->values, tokens->count,
                           tokens->alphabet, SHORTEST_REPEAT);
    struct cover *starts =
        arena_new_array(explainer->stage, struct cover, tokens->count + 1);
    find_starts(explainer, &repeats, starts);
    explainer->covers =
        arena_new_array(explainer->stage, struct cover, program->insn_count);
    struct cover current = {0};
    uint32_t end = 0; /* position behind the repeat that reaches furthest */
    for (uint32_t i = 0; i < tokens->count; i++) {
        if (starts[i].length > 0 && i + starts[i].length > end) {
            current = starts[i];
            end = i + starts[i].length;
        }
        if (i < end && tokens->insns[i] != NO_INDEX)
            explainer->covers[tokens->insns[i]] = current;
    }
}

static void find_sites(struct explainer *explainer)
{
    uint32_t count = explainer->program->insn_count;
    explainer->helpers = arena_new_array(explainer->stage, uint32_t, count);
    explainer->forms = arena_new_array(explainer->stage, uint8_t, count);
    memset(explainer->helpers, 0xff, count * sizeof *explainer->helpers);
    for (uint32_t i = 0; i < explainer->plan->helper_count; i++) {
        const struct helper *helper = &explainer->plan->helpers[i];
        for (uint32_t j = 0; j < helper->site_count; j++) {
            const struct site *site = &explainer->plan->sites[helper->first_site + j];
            for (uint32_t k = 0; k < helper->length; k++) {
                explainer->helpers[site->insn + k] = i;
                explainer->forms[site->insn + k] = site->form;
            }
        }
    }
}

static const char *reason_of(struct explainer *explainer, uint32_t index)
{
    const struct program *program = explainer->program;
    if (explainer->helpers[index] != NO_INDEX) {
        const struct helper *helper =
            &explainer->plan->helpers[explainer->helpers[index]];
        return arena_format(explainer->stage,
                            "outlined: %s, mo_outlined.%016" PRIx64 " with %" PRIu32
                            " sites",
                            form_name((enum form)explainer->forms[index]), helper->hash,
                            helper->site_count);
    }
    if (program->insns[index].traits & INSN_NOP)
        return "left: a no-op";
    uint32_t code = program->functions[program_function_of_insn(program, index)].code;
    enum refusal pinned = insn_refusal(program, code, index);
    if (pinned != REFUSAL_NONE)
        return arena_format(explainer->stage, "pinned: %s", refusal_text(pinned));
    if (explainer->best[index] > 0)
        return arena_format(explainer->stage,
                            "left: a helper for it could save %" PRId64
                            " bytes, but better ones took its places",
                            explainer->best[index]);
    struct cover cover = explainer->covers[index];
    if (cover.length == 0)
        return "left: not repeated with a neighbour anywhere";
    return arena_format(explainer->stage,
                        "left: repeats %" PRIu32 " long at %" PRIu32
                        " places, but no form is legal or none pays",
                        cover.length, cover.count);
}

static void explain_insns(FILE *out, struct explainer *explainer,
                          const struct function *function)
{
    const struct insn *insns = explainer->program->insns;
    uint32_t end = function->first_insn + function->insn_count;
    for (uint32_t first = function->first_insn; first < end;) {
        const char *reason = reason_of(explainer, first);
        uint32_t last = first + 1;
        while (last < end && strcmp(reason_of(explainer, last), reason) == 0)
            last++;
        uint32_t stop = insns[last - 1].offset + insns[last - 1].length;
        fprintf(out, "  +0x%04" PRIx32 " %4" PRIu32 " insns %5" PRIu32 " bytes  %s\n",
                insns[first].offset - function->start, last - first,
                stop - insns[first].offset, reason);
        first = last;
    }
}

static void explain_function(FILE *out, struct explainer *explainer, uint32_t index)
{
    const struct program *program = explainer->program;
    const struct function *function = &program->functions[index];
    const struct code *code = &program->code[function->code];
    const char *section = program_section(program, function->code)->name;
    fprintf(
        out, "%s: %s %s+0x%" PRIx32 ", %" PRIu32 " bytes, %" PRIu32 " instructions: ",
        program_function_name(program, index),
        section_unit(program_object(program, function->code), code->section), section,
        function->start, function->end - function->start, function->insn_count);
    if (function->refusal == REFUSAL_NONE) {
        fprintf(out, "open\n");
        explain_insns(out, explainer, function);
        return;
    }
    fprintf(out, "sealed\n  %s at %s+0x%" PRIx64 "\n", refusal_text(function->refusal),
            section, function->why_offset);
}

/* A frozen section may have no functions; its symbols tell whether one was meant. */
static uint32_t explain_frozen(FILE *out, const struct program *program,
                               const char *glob)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < program->code_count; i++) {
        const struct code *code = &program->code[i];
        const struct object *object = program_object(program, i);
        for (uint32_t j = 1; code->refusal != REFUSAL_NONE && j < object->symbol_count;
             j++) {
            const struct symbol *symbol = &object->symbols[j];
            if (symbol->section != code->section || symbol->name[0] == '\0' ||
                !glob_is_function(glob, section_unit(object, code->section),
                                  symbol->name))
                continue;
            const char *section = program_section(program, i)->name;
            fprintf(out, "%s: %s %s+0x%" PRIx64 ", %" PRIu64 " bytes: frozen\n",
                    symbol->name, section_unit(object, code->section), section,
                    symbol->value, symbol->size);
            fprintf(out, "  %s at %s+0x%" PRIx64 "\n", refusal_text(code->refusal),
                    section, code->why_offset);
            found++;
        }
    }
    return found;
}

/* Functions that are not here any more, or only as a jump. */
static uint32_t explain_folded(FILE *out, const struct report *folds, const char *glob)
{
    uint32_t found = 0;
    for (uint32_t i = 0; folds && i < folds->folds.count; i++) {
        const struct report_folded *folded = &folds->folds.items[i];
        if (!glob_is_function(glob, folded->unit, folded->name))
            continue;
        fprintf(out, "%s: %s, %" PRIu32 " bytes: folded: %s %s\n", folded->name,
                folded->unit, folded->bytes,
                folded->jumps ? "it is a jump to" : "it is the same code as",
                folded->heir);
        found++;
    }
    return found;
}

void explain(FILE *out, const struct program *program, const struct tokens *tokens,
             const struct plan *plan, const struct plan_options *choice,
             const struct report *folds, const char *glob)
{
    struct arena *stage = arena_new();
    struct explainer explainer = {.stage = stage, .program = program, .plan = plan};
    find_covers(&explainer, tokens);
    find_sites(&explainer);
    explainer.best = candidates_best(stage, program, tokens, choice);
    uint32_t found = explain_folded(out, folds, glob);
    found += explain_frozen(out, program, glob);
    for (uint32_t i = 0; i < program->function_count; i++) {
        uint32_t at = program->functions[i].code;
        const struct code *code = &program->code[at];
        const char *unit = section_unit(program_object(program, at), code->section);
        if (code->refusal != REFUSAL_NONE ||
            !glob_is_function(glob, unit, program_function_name(program, i)))
            continue;
        explain_function(out, &explainer, i);
        found++;
    }
    if (found == 0)
        fprintf(out, "%s: there is no such function here\n", glob);
    arena_free(stage);
}
