/* SPDX-License-Identifier: MIT
 *
 * What the checker asks about the objects that the first round lifts: which jump tables
 * there are. The program itself is too large to be kept until then.
 */
#include "mo/program.h"

#include <assert.h>

struct known_tables program_tables(struct arena *arena, const struct program *program)
{
    struct known_table *items =
        arena_new_array(arena, struct known_table, program->table_count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < program->table_count; i++) {
        const struct jump_table *table = &program->tables[i];
        if (table->kind == TABLE_LABELS) /* relocations like all others */
            continue;
        uint32_t function = program_function_of_insn(program, table->insn);
        const struct code *code = &program->code[program->functions[function].code];
        assert(code->object == table->object);
        items[count].table = *table;
        items[count].code = code->section;
        items[count++].table.targets = arena_copy(arena, table->targets,
                                                  table->count * sizeof *table->targets);
    }
    return (struct known_tables){items, count};
}
