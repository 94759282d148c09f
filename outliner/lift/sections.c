/* SPDX-License-Identifier: MIT
 *
 * Which sections are plain code. A section whose name has a meaning of its own (the
 * pieces of _init that the linker concatenates, sections that a program walks between
 * __start_ and __stop_ symbols, code that is patched or copied) stays byte for byte,
 * and so does one about which another section keeps positions in a format of its own.
 */
#include "mo/table.h"
#include "outliner/lift/lift.h"

#include <elf.h>
#include <string.h>

static bool starts_with(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Plain code by name: .text and its relatives, our own helpers, and what compilers call
 * functions that they place apart. Not .gnu.linkonce.t.*: GNU ld keeps one section of
 * each such name, so helpers under it would go. */
static bool plain_name(const char *name)
{
    return strcmp(name, ".text") == 0 || starts_with(name, ".text.") ||
           strcmp(name, ".ltext") == 0 || starts_with(name, ".ltext.") ||
           strcmp(name, ".ramfunc") == 0 || strcmp(name, ".init.text") == 0;
}

/* Sections with SHF_LINK_ORDER whose contents hold no position but a function's start,
 * or hold them as relocations or relative to the function's start (which sealing
 * keeps). */
static bool harmless_link_order(const struct section *section)
{
    return strcmp(section->name, ".stack_sizes") == 0 ||
           strcmp(section->name, "__patchable_function_entries") == 0 ||
           starts_with(section->name, ".gcc_except_table") || section_is_code(section);
}

static bool is_unused(const struct lift_options *options, uint32_t object,
                      uint32_t section)
{
    if (object >= options->unused_count)
        return false;
    const struct unused *unused = &options->unused[object];
    return unused->sections && section < unused->count && unused->sections[section];
}

static bool is_apart(const struct lift_options *options, uint32_t object,
                     uint32_t section)
{
    if (object >= options->unused_count)
        return false;
    const struct unused *unused = &options->unused[object];
    return unused->apart && section < unused->count && unused->apart[section];
}

/* What a source says without an option: docs/reports.md. */
#define KEEP_SECTION ".text.mo_keep"

static void add_section(struct lift *lift, uint32_t object, uint32_t index)
{
    struct program *program = lift->program;
    const struct object *of = program->objects->items[object];
    const struct section *section = &of->sections[index];
    struct code *code = &program->code[program->code_count++];
    code->object = object;
    code->section = index;
    /* By its name, too: an earlier run of ours may have made the input. */
    code->helpers = of->units[section->unit].helpers ||
                    strcmp(section->name, ".text.outlined") == 0;
    const struct lift_options *options = lift->options;
    if (!plain_name(section->name) || starts_with(section->name, KEEP_SECTION) ||
        lift_matches(options->keep_sections, options->keep_section_count,
                     section->name))
        code->refusal = REFUSAL_SECTION_NAME;
    else if (is_unused(options, object, index))
        code->refusal = REFUSAL_UNUSED;
    else if (is_apart(options, object, index))
        code->refusal = REFUSAL_PLACED_APART;
}

static void freeze_link_ordered(struct lift *lift, uint32_t object)
{
    const struct object *of = lift->program->objects->items[object];
    for (uint32_t i = 1; i < of->section_count; i++) {
        const struct section *section = &of->sections[i];
        if (!(section->flags & SHF_LINK_ORDER) || section->link == 0 ||
            harmless_link_order(section))
            continue;
        uint32_t code = program_code_of(lift->program, object, section->link);
        if (code != NO_INDEX)
            lift_freeze(lift, code, REFUSAL_LINK_ORDER, 0);
    }
}

/* Sections of code generators that say where calls and faults are, by their distance from
 * a function's start, for a run-time system (LLVM's StackMaps.rst, FaultMaps.rst). */
static bool holds_distances(const struct section *section)
{
    return strcmp(section->name, ".llvm_stackmaps") == 0 ||
           strcmp(section->name, ".llvm_faultmaps") == 0;
}

static void freeze_mapped(struct lift *lift, uint32_t object)
{
    const struct object *of = lift->program->objects->items[object];
    for (uint32_t i = 1; i < of->section_count; i++) {
        const struct section *section = &of->sections[i];
        for (uint32_t r = 0; holds_distances(section) && r < section->reloc_count; r++) {
            uint32_t in = of->symbols[section->relocs[r].symbol].section;
            uint32_t code = in < of->section_count
                                ? program_code_of(lift->program, object, in)
                                : NO_INDEX;
            if (code != NO_INDEX)
                lift_freeze(lift, code, REFUSAL_LINK_ORDER, 0);
        }
    }
}

/* Of several copies of a COMDAT group the linker keeps one, which one is its choice:
 * the first of the set is edited, the others stay as they are, so that any choice is
 * right. */
static void freeze_copies(struct lift *lift, struct table *seen, uint32_t object)
{
    const struct object *of = lift->program->objects->items[object];
    for (uint32_t g = 0; g < of->group_count; g++) {
        const struct group *group = &of->groups[g];
        uint32_t before = table_count(seen);
        const char *name = of->symbols[group->signature].name;
        if (!(group->flags & GRP_COMDAT) || *name == '\0' ||
            table_intern_string(seen, name) == before)
            continue;
        for (uint32_t m = 0; m < group->member_count; m++) {
            uint32_t code = program_code_of(lift->program, object, group->members[m]);
            if (code != NO_INDEX)
                lift_freeze(lift, code, REFUSAL_DUPLICATE_COMDAT, 0);
        }
    }
}

/* Every reference asks for the code that it leads into. */
static void index_sections(struct lift *lift)
{
    struct program *program = lift->program;
    uint32_t **code_of =
        arena_new_array(lift->arena, uint32_t *, program->objects->count);
    for (uint32_t o = 0; o < program->objects->count; o++) {
        size_t size = program->objects->items[o]->section_count * sizeof *code_of[o];
        code_of[o] = arena_alloc(lift->arena, size);
        memset(code_of[o], 0xff, size); /* NO_INDEX */
    }
    for (uint32_t c = 0; c < program->code_count; c++)
        code_of[program->code[c].object][program->code[c].section] = c;
    program->code_of = code_of;
}

void lift_sections(struct lift *lift)
{
    struct arena *stage = arena_new();
    struct table *seen = table_new(stage);
    struct program *program = lift->program;
    uint32_t total = 0;
    for (uint32_t o = 0; o < program->objects->count; o++)
        total += program->objects->items[o]->section_count;
    program->code = arena_new_array(lift->arena, struct code, total);
    for (uint32_t o = 0; o < program->objects->count; o++) {
        const struct object *object = program->objects->items[o];
        for (uint32_t s = 1; s < object->section_count; s++) {
            if (section_is_code(&object->sections[s]) &&
                object->sections[s].data.size > 0)
                add_section(lift, o, s);
        }
        freeze_link_ordered(lift, o);
        freeze_mapped(lift, o);
        freeze_copies(lift, seen, o);
    }
    index_sections(lift);
    arena_free(stage);
}
