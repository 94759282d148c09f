/* SPDX-License-Identifier: MIT
 *
 * Which function of `before` a call or jump leads to, if that is certain whatever the
 * object is linked with: one of its own object, whose name stands for no other one.
 * Weak and COMDAT definitions may give way to others. So may global names of default
 * visibility, unless their unit is compiled for executables only: then it refers
 * directly to such names. (What it jumps to without naming anybody is certain.)
 */
#include "outliner/verify/verify.h"

#include <elf.h>

static const struct object *object_of(const struct verify *verify, uint32_t object)
{
    return verify->before.objects->items[object];
}

/* --- units --- */

static bool refers_directly(const struct verify *verify, const struct object *object,
                            const struct section *section)
{
    for (uint32_t r = 0; r < section->reloc_count; r++) {
        const struct symbol *symbol = &object->symbols[section->relocs[r].symbol];
        const struct reloc_kind *kind =
            verify->target->reloc_kind(section->relocs[r].type);
        if (kind && kind->kind == RELOC_PC && symbol->bind == STB_GLOBAL &&
            ELF64_ST_VISIBILITY(symbol->other) == STV_DEFAULT &&
            (symbol->type == STT_NOTYPE || symbol->type == STT_OBJECT ||
             symbol->type == STT_FUNC))
            return true;
    }
    return false;
}

/* Helpers of earlier runs come from all the units. */
static bool unit_is_fixed(const struct verify *verify, uint32_t number, uint32_t unit)
{
    const struct object *object = object_of(verify, number);
    bool fixed = false, has_code = false, all = true;
    for (uint32_t s = 1; s < object->section_count; s++) {
        const struct section *section = &object->sections[s];
        if (section->unit != unit || !section_is_code(section))
            continue;
        has_code |= section->data.size > 0;
        fixed = fixed || refers_directly(verify, object, section);
    }
    if (!object->units[unit].helpers)
        return fixed || !has_code;
    for (uint32_t u = 0; u < object->unit_count; u++)
        all = all && (object->units[u].helpers || verify->fixed[number][u]);
    return all;
}

void verify_find_fixed(struct verify *verify)
{
    uint32_t count = verify->before.objects->count;
    verify->fixed = arena_new_array(verify->arena, bool *, count);
    for (uint32_t o = 0; o < count; o++) {
        const struct object *object = object_of(verify, o);
        verify->fixed[o] = arena_new_array(verify->arena, bool, object->unit_count);
        for (uint32_t helpers = 0; helpers < 2; helpers++)
            for (uint32_t u = 0; u < object->unit_count; u++) {
                if (object->units[u].helpers == (helpers == 1))
                    verify->fixed[o][u] = unit_is_fixed(verify, o, u);
            }
    }
}

/* --- names --- */

const struct symbol *verify_name(const struct verify *verify, const struct view *view)
{
    const struct object *object = object_of(verify, view->at.object);
    for (uint32_t i = 0; i < view->reloc_count; i++) {
        const struct symbol *symbol = &object->symbols[view->relocs[i].symbol];
        if (!symbol_is_local(symbol))
            return symbol;
    }
    return NULL;
}

static bool is_bound(const struct verify *verify, struct spot from,
                     const struct symbol *symbol)
{
    const struct object *object = object_of(verify, from.object);
    if (symbol->section == SECTION_UNDEFINED ||
        symbol->section >= object->section_count || symbol->type != STT_FUNC ||
        symbol->bind != STB_GLOBAL ||
        object->sections[symbol->section].group != NO_INDEX)
        return false;
    uint32_t unit = object->sections[from.section].unit;
    return ELF64_ST_VISIBILITY(symbol->other) != STV_DEFAULT ||
           verify->fixed[from.object][unit];
}

bool verify_callee(const struct verify *verify, const struct view *view,
                   struct spot *out)
{
    const struct symbol *symbol = verify_name(verify, view);
    struct view direct = *view;
    if (direct.insn.flow == FLOW_BRANCH)
        direct.insn.flow = FLOW_JUMP;
    return (!symbol || is_bound(verify, view->at, symbol)) &&
           view_target(verify, &verify->before, &direct, out);
}
