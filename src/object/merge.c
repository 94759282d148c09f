/* SPDX-License-Identifier: MIT
 *
 * Many objects as one, the way `ld -r --unique` would do it if it knew COMDAT. Sections
 * are not put together: each stays its own, so that --gc-sections and link orders mean
 * the same as before. Sections follow each other in the order of the inputs, and within
 * an input in its own, which is the order a linker would have met them in; only an
 * .eh_frame section that ends in a zero terminator (crtend.o has one) goes last, since
 * everything behind the terminator would be lost.
 *
 * Not carried over: .note.gnu.property and .note.GNU-stack, of which one each is made;
 * .comment sections that say the same; and intermediate code for link-time optimisation
 * (-ffat-lto-objects): a merged object is beyond it, and its copies of the code would
 * come back to life in place of ours.
 */
#include "merge.h"
#include "properties.h"

#include <elf.h>
#include <string.h>

void merge_start(struct merge *merge, const struct objects *objects)
{
    merge->inputs = arena_new_array(merge->stage, struct input, objects->count);
    merge->input_count = objects->count;
    uint32_t units = 0;
    for (uint32_t i = 0; i < objects->count; i++) {
        struct input *input = &merge->inputs[i];
        uint32_t count = objects->items[i]->section_count;
        input->object = objects->items[i];
        input->dropped = arena_new_array(merge->stage, bool, count);
        input->cuts = arena_new_array(merge->stage, struct frame_cut *, count);
        input->section_at = arena_new_array(merge->stage, uint32_t, count);
        input->first_unit = units;
        units += input->object->unit_count;
    }
}

/* Gives the kept sections their places in the result. */
static void number_sections(struct merge *merge)
{
    uint32_t next = 1;
    for (int last = 0; last <= 1; last++) {
        for (uint32_t i = 0; i < merge->input_count; i++) {
            struct input *input = &merge->inputs[i];
            for (uint32_t k = 1; k < input->object->section_count; k++) {
                if (!input->dropped[k] &&
                    frame_is_terminated(&input->object->sections[k]) == (last == 1))
                    input->section_at[k] = next++;
            }
        }
    }
    merge->section_count = merge->section_end = next;
}

static bool place_section(struct merge *merge, const struct input *input,
                          uint32_t index)
{
    const struct section *from = &input->object->sections[index];
    struct section *out = &merge->sections[input->section_at[index]];
    *out = input->cuts[index] ? input->cuts[index]->section : *from;
    out->link = input->section_at[from->link];
    if (from->flags & SHF_INFO_LINK)
        out->info = input->section_at[from->info];
    out->group = NO_INDEX;
    out->unit = from->unit + input->first_unit;
    if (frame_is_terminated(from) && input->section_at[index] + 1 != merge->section_end)
        out->data.size -= 4; /* there is one behind it, which has its own */
    return merge_relocs(merge, input, index, out);
}

static bool place_sections(struct merge *merge, const struct section *made,
                           uint32_t made_count)
{
    merge->sections = arena_new_array(merge->arena, struct section,
                                      (size_t)merge->section_count + made_count);
    merge->sections[0] = (struct section){.name = "", .align = 1, .group = NO_INDEX};
    for (uint32_t i = 0; i < merge->input_count; i++) {
        const struct input *input = &merge->inputs[i];
        for (uint32_t k = 1; k < input->object->section_count; k++) {
            if (!input->dropped[k] && !place_section(merge, input, k))
                return false;
        }
    }
    for (uint32_t i = 0; i < made_count; i++)
        merge->sections[merge->section_count++] = made[i];
    return true;
}

static void place_units(const struct merge *merge, struct object *out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < merge->input_count; i++)
        count += merge->inputs[i].object->unit_count;
    struct unit *units = arena_new_array(merge->arena, struct unit, count);
    for (uint32_t i = 0; i < merge->input_count; i++) {
        const struct object *object = merge->inputs[i].object;
        if (object->unit_count)
            memcpy(units + merge->inputs[i].first_unit, object->units,
                   object->unit_count * sizeof *units);
    }
    out->units = units;
    out->unit_count = count;
}

bool merge_apply(struct merge *merge, const struct section *made, uint32_t made_count,
                 const struct object **out)
{
    merge_drop_linked(merge);
    if (!merge_cut_frames(merge))
        return false;
    number_sections(merge);
    struct object *object = arena_new_one(merge->arena, struct object);
    if (!merge_symbols(merge) || !place_sections(merge, made, made_count) ||
        !merge_build_groups(merge, object))
        return false;
    *object = (struct object){
        .name = merge->name,
        .machine = merge->inputs[0].object->machine,
        .flags = merge->inputs[0].object->flags,
        .os_abi = merge->inputs[0].object->os_abi,
        .sections = merge->sections,
        .section_count = merge->section_count,
        .symbols = merge->symbols,
        .symbol_count = merge->symbol_count,
        .groups = object->groups,
        .group_count = object->group_count,
    };
    for (uint32_t i = 1; i < merge->input_count; i++) {
        uint8_t abi = merge->inputs[i].object->os_abi;
        if (object->os_abi == ELFOSABI_NONE)
            object->os_abi = abi; /* GNU says only that extensions may be in use */
    }
    place_units(merge, object);
    *out = object;
    return true;
}

static bool check_alike(const struct merge *merge, const struct object *a,
                        const struct object *b)
{
    const struct place place = {.file = b->name};
    if (a->machine != b->machine)
        return fail(merge->err, &place, "is for machine %u, but %s is for machine %u",
                    b->machine, a->name, a->machine);
    if (a->flags != b->flags)
        return fail(merge->err, &place, "has e_flags 0x%x, but %s has 0x%x",
                    (unsigned)b->flags, a->name, (unsigned)a->flags);
    bool plain = a->os_abi == ELFOSABI_NONE || b->os_abi == ELFOSABI_NONE;
    if (a->os_abi != b->os_abi && !plain)
        return fail(merge->err, &place, "is for OS ABI %u, but %s is for %u", b->os_abi,
                    a->name, a->os_abi);
    return true;
}

static bool is_lto(const struct section *section)
{
    return !(section->flags & SHF_ALLOC) &&
           (strncmp(section->name, ".gnu.lto_", 9) == 0 ||
            strcmp(section->name, ".llvm.lto") == 0);
}

static bool is_stack_note(const struct section *section)
{
    return strcmp(section->name, ".note.GNU-stack") == 0;
}

static void drop_special(struct merge *merge)
{
    struct table *comments = table_new(merge->stage);
    for (uint32_t i = 0; i < merge->input_count; i++) {
        struct input *input = &merge->inputs[i];
        for (uint32_t k = 1; k < input->object->section_count; k++) {
            const struct section *section = &input->object->sections[k];
            bool drop = is_lto(section) || is_stack_note(section) ||
                        section_is_property(section);
            if (strcmp(section->name, ".comment") == 0 && section->data.at) {
                uint32_t count = table_count(comments);
                drop = table_intern(comments, section->data.at, section->data.size) <
                       count;
            }
            input->dropped[k] = input->dropped[k] || drop;
        }
    }
}

/* One note for all, executable if any is. An object without the note means different
 * things to different linkers (GNU ld on x86-64: an executable stack, and a warning;
 * others: nothing), so if one has none, then the result has none either, and every
 * linker does what it would have done with the inputs. */
static bool merge_stack_note(const struct objects *objects, struct section *out)
{
    bool executable = false, missing = false;
    for (uint32_t i = 0; i < objects->count; i++) {
        bool found = false;
        for (uint32_t k = 1; k < objects->items[i]->section_count; k++) {
            const struct section *section = &objects->items[i]->sections[k];
            if (!is_stack_note(section))
                continue;
            found = true;
            executable = executable || (section->flags & SHF_EXECINSTR);
        }
        missing = missing || !found;
    }
    *out = (struct section){.name = ".note.GNU-stack",
                            .type = SHT_PROGBITS,
                            .flags = executable ? (uint64_t)SHF_EXECINSTR : 0,
                            .align = 1,
                            .group = NO_INDEX};
    return executable || !missing;
}

bool objects_merge(struct arena *arena, const char *name, const struct objects *objects,
                   const struct object **out, struct error *err)
{
    struct merge merge = {.arena = arena, .err = err, .by_name = true};
    merge.name = arena_strdup(arena, name);
    if (objects->count == 0)
        return fail(err, &(struct place){.file = merge.name},
                    "there is nothing to merge");
    for (uint32_t i = 1; i < objects->count; i++) {
        if (!check_alike(&merge, objects->items[0], objects->items[i]))
            return false;
    }
    merge.stage = arena_new();
    merge_start(&merge, objects);
    merge_drop_copies(&merge);
    drop_special(&merge);
    struct section made[MADE_SECTIONS];
    uint32_t made_count = 0;
    made_count += properties_merge(arena, objects, &made[made_count]);
    made_count += merge_stack_note(objects, &made[made_count]);
    bool ok = merge_apply(&merge, made, made_count, out) && object_check(*out, err);
    arena_free(merge.stage);
    return ok;
}
