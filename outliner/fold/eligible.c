/* SPDX-License-Identifier: MIT
 *
 * Who may take part: an open function that ends in itself, described by at most one
 * unwind entry, whose distances lead nowhere but into itself. One that is alone in its
 * section goes with it, whatever refers to it. One in company becomes a jump where it
 * lies, so nothing may refer to its middle: no table of jumps or of call sites, no other
 * function, no debugger.
 */
#include "outliner/fold/fold.h"

#include <elf.h>
#include <string.h>

bool fold_is_table(const struct section *section)
{
    return section_is_frame(section) || !(section->flags & SHF_ALLOC);
}

static bool is_plain(const struct folder *folder, const struct section *section)
{
    bool text = strcmp(section->name, ".text") == 0 ||
                strncmp(section->name, ".text.", 6) == 0;
    return text && !(section->flags & (SHF_LINK_ORDER | SHF_INFO_LINK)) &&
           (section->group == NO_INDEX ||
            folder->object->groups[section->group].flags == GRP_COMDAT);
}

static bool find_lsda(const struct folder *folder, const struct fde *fde,
                      const struct lsda **out)
{
    *out = NULL;
    if (!fde->has_lsda)
        return true;
    const struct lsdas *lsdas = &folder->program->lsdas[folder->number];
    const struct frames *frames = &folder->program->frames[folder->number];
    uint32_t index = lsdas->of_fde[fde - frames->fdes];
    if (index == NO_INDEX)
        return false;
    *out = &lsdas->items[index];
    return (*out)->refusal == REFUSAL_NONE;
}

static bool find_frame(const struct folder *folder, struct foldable *candidate)
{
    const struct frames *frames = &folder->program->frames[folder->number];
    uint32_t first;
    uint32_t count = frames_find(frames, candidate->section, candidate->start,
                                 candidate->end, &first);
    if (count == 0)
        return true;
    const struct fde *fde = &frames->fdes[first];
    candidate->fde = fde;
    return count == 1 && fde->refusal == REFUSAL_NONE &&
           fde->start == candidate->start && find_lsda(folder, fde, &candidate->lsda);
}

static bool is_transfer(const struct insn *insn)
{
    return insn->flow == FLOW_JUMP || insn->flow == FLOW_BRANCH ||
           insn->flow == FLOW_CALL;
}

/* Everything that the assembler resolved leads to a place in the function itself, and is
 * not the address of its entry, which would be that of another function. */
static bool keeps_to_itself(const struct program *program,
                            const struct function *function)
{
    for (uint32_t i = 0; i < function->insn_count; i++) {
        const struct insn *insn = &program->insns[function->first_insn + i];
        if ((insn->traits & INSN_PC_RELATIVE) && !(insn->traits & INSN_RELOCATED) &&
            (insn->target < function->start || insn->target >= function->end ||
             (insn->target == function->start && !is_transfer(insn))))
            return false;
    }
    return true;
}

/* It does not go on into what lies behind it, as hand-written functions may: that is
 * something else behind each. (Compilers end functions in calls that do not return, and
 * describe those functions.) */
static bool ends_itself(const struct program *program, const struct function *function,
                        bool described)
{
    const struct insn *last =
        &program->insns[function->first_insn + function->insn_count - 1];
    switch ((enum flow)last->flow) {
    case FLOW_JUMP:
    case FLOW_JUMP_INDIRECT:
    case FLOW_RETURN:
    case FLOW_STOP: return true;
    case FLOW_CALL:
    case FLOW_CALL_INDIRECT: return described;
    default: return false;
    }
}

/* Only its own instructions know of its middle. */
static bool is_closed(const struct program *program, const struct function *function)
{
    if (function->shared || function->lsda)
        return false;
    for (uint32_t i = 0; i < function->insn_count; i++) {
        const struct insn *insn = &program->insns[function->first_insn + i];
        if ((i > 0 && (insn->traits & (INSN_ENTERED | INSN_JOINED))) ||
            table_of_insn(program, function->first_insn + i))
            return false;
    }
    return true;
}

static void consider(struct folder *folder, uint32_t code, uint32_t number)
{
    const struct program *program = folder->program;
    const struct code *of = &program->code[code];
    const struct function *function = &program->functions[number];
    if (function->refusal != REFUSAL_NONE || function->symbol == NO_INDEX ||
        function->opaque || function->fixed || function->insn_count == 0)
        return;
    struct foldable candidate = {.section = of->section,
                                 .start = function->start,
                                 .end = function->end,
                                 .function = number,
                                 .alone = of->function_count == 1};
    if ((candidate.alone && function->start != 0) ||
        !keeps_to_itself(program, function) || !find_frame(folder, &candidate) ||
        !ends_itself(program, function, candidate.fde != NULL))
        return;
    candidate.fixed = !candidate.alone && !is_closed(program, function);
    if (folder->first_of[of->section] == NO_INDEX)
        folder->first_of[of->section] = folder->candidates.count;
    array_push(folder->arena, &folder->candidates, candidate);
}

/* The first reference of the object. */
static uint32_t first_ref(const struct folder *folder)
{
    uint32_t low = 0, high = folder->program->ref_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (folder->program->refs[middle].object < folder->number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* References from elsewhere to the middle of functions. */
static void fix_referred(struct folder *folder)
{
    const struct program *program = folder->program;
    for (uint32_t r = first_ref(folder);
         r < program->ref_count && program->refs[r].object == folder->number; r++) {
        const struct code_ref *ref = &program->refs[r];
        const struct code *code = &program->code[ref->code];
        uint32_t to = fold_at(folder, code->section, ref->position);
        if (to == NO_INDEX || folder->candidates.items[to].start == ref->position)
            continue;
        uint64_t from =
            folder->object->sections[ref->section].relocs[ref->reloc].offset;
        struct foldable *candidate = &folder->candidates.items[to];
        if (ref->section != candidate->section || from < candidate->start ||
            from >= candidate->end)
            candidate->fixed = candidate->fixed || !candidate->alone;
    }
}

/* Debug information speaks of more positions of a function than its start. */
static void fix_described(struct folder *folder)
{
    const struct object *object = folder->object;
    bool *seen = arena_new_array(folder->arena, bool, object->section_count);
    for (uint32_t s = 1; s < object->section_count; s++) {
        if (!section_is_debug(&object->sections[s]))
            continue;
        for (uint32_t r = 0; r < object->sections[s].reloc_count; r++) {
            uint32_t symbol = object->sections[s].relocs[r].symbol;
            uint32_t to = object->symbols[symbol].section;
            if (symbol == 0 || to >= object->section_count || seen[to])
                continue;
            seen[to] = true;
            for (uint32_t i = folder->first_of[to];
                 i < folder->candidates.count &&
                 folder->candidates.items[i].section == to;
                 i++)
                folder->candidates.items[i].fixed |= !folder->candidates.items[i].alone;
        }
    }
}

uint32_t fold_at(const struct folder *folder, uint32_t section, int64_t position)
{
    uint32_t low = folder->first_of[section], high = folder->candidates.count;
    const struct foldable *all = folder->candidates.items;
    if (low == NO_INDEX)
        return NO_INDEX;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (all[middle].section == section && all[middle].end <= position)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < folder->candidates.count && all[low].section == section &&
                 all[low].start <= position;
    return found ? low : NO_INDEX;
}

void fold_find(struct folder *folder)
{
    const struct program *program = folder->program;
    uint32_t count = folder->object->section_count;
    folder->first_of = arena_new_array(folder->arena, uint32_t, count);
    for (uint32_t s = 0; s < count; s++)
        folder->first_of[s] = NO_INDEX;
    for (uint32_t s = 1; s < count; s++) {
        uint32_t c = program_code_of(program, folder->number, s);
        if (c == NO_INDEX || program->code[c].refusal != REFUSAL_NONE ||
            program->code[c].helpers || !is_plain(folder, program_section(program, c)))
            continue;
        for (uint32_t f = 0; f < program->code[c].function_count; f++)
            consider(folder, c, program->code[c].first_function + f);
    }
    fix_referred(folder);
    fix_described(folder);
}
