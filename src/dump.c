/* SPDX-License-Identifier: MIT
 *
 * --dump and --explain: runs the stages as link.c does and stops behind the one asked
 * for.
 */
#include "mo/dump.h"

#include <inttypes.h>

struct lift_options lift_options_of(const struct options *options)
{
    return (struct lift_options){.keep = options->keep.items,
                                 .keep_count = options->keep.count,
                                 .keep_sections = options->keep_sections.items,
                                 .keep_section_count = options->keep_sections.count,
                                 .keep_files = options->keep_files.items,
                                 .keep_file_count = options->keep_files.count,
                                 .only = options->only.items,
                                 .only_count = options->only.count,
                                 .wrap = options->wrap.items,
                                 .wrap_count = options->wrap.count,
                                 .hot = options->hot,
                                 .outline_hot = options->outline_hot,
                                 .drop_alignment = options->drop_alignment,
                                 .inner_calls = options->effort > 1 &&
                                                !(options->without & TECHNIQUE_INNER)};
}

struct plan_options plan_options_of(const struct options *options)
{
    return (struct plan_options){.minimum_saving = options->min_saving,
                                 .no_veneers = options->no_veneers,
                                 .apart = options->output_is_directory,
                                 .effort = options->effort,
                                 .without = options->without};
}

void dump_place(FILE *out, const struct program *program, uint32_t insn)
{
    uint32_t function = program_function_of_insn(program, insn);
    uint32_t code = program->functions[function].code;
    const struct object *object = program_object(program, code);
    uint32_t offset = program->insns[insn].offset;
    fprintf(out, "%s %s+0x%" PRIx32 " (%s+0x%" PRIx32 ")",
            section_unit(object, program->code[code].section),
            program_section(program, code)->name, offset,
            program_function_name(program, function),
            offset - program->functions[function].start);
}

static void dump_program(FILE *out, const struct options *options, struct arena *stage,
                         const struct program *program, const struct report *folds)
{
    if (options->dump == DUMP_CODE) {
        dump_code(out, program);
        return;
    }
    if (options->dump == DUMP_ROWS) {
        dump_rows(out, program);
        return;
    }
    struct tokens tokens;
    tokens_make(stage, program, options->reruns > 0, &tokens);
    if (options->dump == DUMP_TOKENS) {
        dump_tokens(out, program, &tokens);
        return;
    }
    if (options->dump == DUMP_REPEATS) {
        dump_repeats(out, program, &tokens);
        return;
    }
    struct plan_options choice = plan_options_of(options);
    if (options->dump == DUMP_CANDIDATES) {
        dump_candidates(out, program, &tokens, &choice);
        return;
    }
    struct plan plan = {0};
    plan_make(stage, program, &tokens, &choice, &plan);
    if (options->explain)
        explain(out, program, &tokens, &plan, &choice, folds, options->explain);
    else
        dump_plan(out, program, &plan);
}

bool dump_set(FILE *out, const struct options *options,
              const struct lift_options *given, const struct objects *objects, const struct report *folds,
              struct row_table *rows, struct error *err)
{
    if (options->dump == DUMP_OBJECT) {
        for (uint32_t i = 0; i < objects->count; i++)
            dump_object(out, objects->items[i]);
        return true;
    }
    struct arena *stage = arena_new();
    struct lift_options lift = *given;
    lift.all_liveness = true;
    struct program *program = NULL;
    bool ok = program_lift(stage, objects, rows, &lift, &program, err);
    if (ok)
        dump_program(out, options, stage, program, folds);
    arena_free(stage);
    return ok;
}
