/* SPDX-License-Identifier: MIT
 *
 * --dump=rows: for each function the unwind state, at every instruction where it
 * changes. Columns are DWARF register numbers: "cfa=r31+16 r29@-16 r30@-8" says that
 * the frame's address is r31 + 16, and that r29 and r30 are saved 16 and 8 bytes below
 * it.
 */
#include "mo/dump.h"

#include <inttypes.h>

static void print_rule(FILE *out, const struct rule *rule)
{
    fprintf(out, " r%" PRIu32, rule->column);
    switch ((enum rule_kind)rule->kind) {
    case RULE_UNSPECIFIED: fprintf(out, "?"); break;
    case RULE_UNDEFINED: fprintf(out, "=undefined"); break;
    case RULE_SAME_VALUE: fprintf(out, "=same"); break;
    case RULE_OFFSET: fprintf(out, "@%+" PRId64, rule->value); break;
    case RULE_VAL_OFFSET: fprintf(out, "=cfa%+" PRId64, rule->value); break;
    case RULE_REGISTER: fprintf(out, "=r%" PRId64, rule->value); break;
    case RULE_EXPRESSION: fprintf(out, "@expression"); break;
    case RULE_VAL_EXPRESSION: fprintf(out, "=expression"); break;
    }
}

static void print_row(FILE *out, const struct row *row)
{
    if (row->cfa_is_expression)
        fprintf(out, " cfa=expression");
    else
        fprintf(out, " cfa=r%" PRIu32 "%+" PRId64, row->cfa_register, row->cfa_offset);
    for (uint32_t i = 0; i < row->rule_count; i++)
        print_rule(out, &row->rules[i]);
    if (row->ra_signed)
        fprintf(out, " signed");
    if (row->args_size)
        fprintf(out, " args=%" PRIu64, row->args_size);
    fprintf(out, "\n");
}

static void dump_fde(FILE *out, const struct program *program, const struct fde *fde)
{
    if (fde->refusal != REFUSAL_NONE)
        fprintf(out, "    %s: %s\n", refusal_name(fde->refusal),
                refusal_text(fde->refusal));
    for (uint32_t i = 0; i < fde->change_count; i++) {
        fprintf(out, "  %6" PRIx32, fde->changes[i].offset);
        if (fde->changes[i].row == ROW_NONE)
            fprintf(out, " none\n");
        else
            print_row(out, row_get(program->rows, fde->changes[i].row));
    }
}

void dump_rows(FILE *out, const struct program *program)
{
    for (uint32_t i = 0; i < program->function_count; i++) {
        const struct function *function = &program->functions[i];
        const struct code *code = &program->code[function->code];
        fprintf(out, "function %s %s+0x%" PRIx32 "-%" PRIx32,
                program_function_name(program, i),
                program_section(program, function->code)->name, function->start,
                function->end);
        if (function->fde == NO_INDEX) {
            fprintf(out, " no-fde\n");
            continue;
        }
        const struct frames *frames = &program->frames[code->object];
        const struct fde *fde = &frames->fdes[function->fde];
        const struct cie *cie = &frames->cies[fde->cie];
        fprintf(out, " fde %" PRIx32 "-%" PRIx32 "%s%s%s%s\n", fde->start,
                fde->start + fde->length, cie->signal_frame ? " signal" : "",
                cie->b_key ? " b-key" : "", cie->has_personality ? " personality" : "",
                fde->has_lsda ? " lsda" : "");
        dump_fde(out, program, fde);
    }
}
