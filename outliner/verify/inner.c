/* SPDX-License-Identifier: MIT
 *
 * Calls that are made from inside of a called helper. The callee finds the helper's
 * return address above its own, and what the helper has pushed, where arguments on the
 * stack would be; so it must be certain who that is (bound.c), and it must look at none
 * of that (blind.c). And the helper keeps no more of the stack's alignment than the ABI
 * asks for: where the caller may have kept more, some other call of the same function
 * shows that it needs none.
 *
 * The walks note such calls. Each callee is judged once, when all walks are done.
 */
#include "outliner/verify/verify.h"

void verify_note_inner(struct verify *verify, struct spot before, struct spot after)
{
    struct claim call = {.before = before, .after = after};
    array_push(verify->arena, &verify->inner, call);
}

struct judge {
    struct verify *verify;
    struct table *callees; /* by spot: those that have been judged */
    array_of(bool) verdicts;
    struct table *plain; /* those that are called with a stack aligned plainly */
};

/* --- the stack's alignment --- */

/* SP is not aligned to more than the ABI asks for, if it was on entry. */
static bool aligns_plainly(const struct verify *verify, struct spot at)
{
    const struct target *target = verify->target;
    uint32_t number = row_of_spot(&verify->before, at, NULL);
    int64_t alignment = target->call_pushes + target->align_shift;
    if (number == ROW_NONE || number == ROW_UNREAD)
        return false;
    const struct row *row = row_get(verify->rows, number);
    return !row->cfa_is_expression && row->cfa_register == target->dwarf_stack_column &&
           row->cfa_offset % (2 * alignment) != 0;
}

/* The opcode of a direct call is the byte before its field. */
static void note_plain(struct judge *judge, struct spot field)
{
    const struct verify *verify = judge->verify;
    struct spot at = field, callee;
    struct view view;
    if (field.offset == 0 || !aligns_plainly(verify, field))
        return;
    at.offset--;
    if (view_at(verify, &verify->before, at, &view) && view.insn.flow == FLOW_CALL &&
        view.reloc_count == 1 && verify_callee(verify, &view, &callee))
        table_intern(judge->plain, &callee, sizeof callee);
}

static void find_plain(struct judge *judge)
{
    const struct verify *verify = judge->verify;
    judge->plain = table_new(verify->arena);
    for (uint32_t o = 0; o < verify->before.objects->count; o++) {
        const struct object *object = verify->before.objects->items[o];
        for (uint32_t s = 1; s < object->section_count; s++) {
            const struct section *section = &object->sections[s];
            for (uint32_t r = 0; section_is_code(section) && r < section->reloc_count;
                 r++) {
                const struct reloc *reloc = &section->relocs[r];
                const struct reloc_kind *kind = verify->target->reloc_kind(reloc->type);
                if (kind && (kind->kind == RELOC_CALL || kind->kind == RELOC_PC))
                    note_plain(judge, (struct spot){o, s, (uint32_t)reloc->offset});
            }
        }
    }
}

static bool is_called_plainly(struct judge *judge, struct spot callee)
{
    if (!judge->plain)
        find_plain(judge);
    return table_find(judge->plain, &callee, sizeof callee) != NO_INDEX;
}

/* --- one call --- */

static bool is_blind(struct judge *judge, struct spot callee)
{
    uint32_t count = judge->verdicts.count;
    uint32_t number = table_intern(judge->callees, &callee, sizeof callee);
    if (number == count)
        array_push(judge->verify->arena, &judge->verdicts,
                   verify_is_blind(judge->verify, callee));
    return judge->verdicts.items[number];
}

static bool check_call(struct judge *judge, const struct claim *call, struct error *err)
{
    const struct verify *verify = judge->verify;
    struct view view;
    struct spot callee;
    if (!view_at(verify, &verify->before, call->before, &view) ||
        view.insn.flow != FLOW_CALL || !verify_callee(verify, &view, &callee) ||
        !is_blind(judge, callee))
        return verify_fail(verify, call->before, call->after, err,
                           "a helper calls who may look at its caller's frame");
    return aligns_plainly(verify, call->before) || is_called_plainly(judge, callee) ||
           verify_fail(verify, call->before, call->after, err,
                       "a helper calls who may want the stack aligned to more");
}

bool verify_inner(struct verify *verify, struct error *err)
{
    if (verify->inner.count == 0)
        return true;
    struct judge judge = {.verify = verify, .callees = table_new(verify->arena)};
    verify_find_fixed(verify);
    for (uint32_t i = 0; i < verify->inner.count; i++) {
        if (!check_call(&judge, &verify->inner.items[i], err))
            return false;
    }
    return true;
}
