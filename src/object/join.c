/* SPDX-License-Identifier: MIT
 *
 * Which sections of the model share one section of the file.
 *
 * The model keeps sections apart, since each belongs to a unit. Most may stay apart in
 * the file, too, and should: --gc-sections drops whole sections. But of some kinds the
 * readers of object files expect one, and look no further than the first (or last) they
 * find:
 *
 * - .eh_frame: given several, GNU ld 2.40 with --gc-sections keeps all code that any of
 *   their FDEs describes, used or not (measured; lld 19 and mold 1.10 do not mind).
 *   Records are put end to end, since zeros between them would be a terminator; a
 * section that ends in one comes last. Nothing in the format needs records aligned.
 * - debug information: readelf, gdb and the linkers' --gdb-index take the first
 *   .debug_abbrev for that of all .debug_info. These are put together as a linker does
 * it, with alignment. Members of groups must not be, and what is still compressed cannot.
 */
#include "frames.h"
#include "layout.h"

static bool is_plain(const struct section *section)
{
    const uint64_t special = SHF_INFO_LINK | SHF_LINK_ORDER | SHF_COMPRESSED;
    return section->group == NO_INDEX && section->link == 0 && section->info == 0 &&
           !(section->flags & special) && section->type != SHT_NOBITS;
}

const char *section_join_key(struct arena *stage, const struct section *section)
{
    if (!is_plain(section))
        return NULL;
    if (section_is_frame(section))
        return section->name;
    if (!section_is_debug(section))
        return NULL;
    return arena_format(stage, "%s %u %lu %lu", section->name, (unsigned)section->type,
                        (unsigned long)section->flags,
                        (unsigned long)section->entry_size);
}

static void append(struct layout *layout, struct chain *chain, uint32_t index)
{
    const struct section *section = &layout->object->sections[index];
    if (chain->last)
        layout->next[chain->last] = index;
    else
        chain->first = index;
    chain->last = index;
    if (!section_is_frame(section))
        chain->size = align_up(chain->size, section->align);
    layout->base[index] = (uint32_t)chain->size;
    chain->size += section->data.size;
    chain->reloc_count += section->reloc_count;
    chain->compressed = chain->compressed || section->compressed;
    if (section->align > chain->align)
        chain->align = section->align;
}

void layout_join(struct layout *layout)
{
    const struct object *object = layout->object;
    uint32_t count = object->section_count;
    struct table *keys = table_new(layout->arena);
    struct chain **known = arena_new_array(layout->arena, struct chain *, count);
    layout->chains = arena_new_array(layout->arena, struct chain *, count);
    layout->next = arena_new_array(layout->arena, uint32_t, count);
    layout->base = arena_new_array(layout->arena, uint32_t, count);
    for (int last = 0; last <= 1; last++) {
        for (uint32_t i = 1; i < count; i++) {
            const struct section *section = &object->sections[i];
            if (frame_is_terminated(section) != (last == 1))
                continue;
            const char *key = section_join_key(layout->arena, section);
            uint32_t number = key ? table_intern_string(keys, key) : NO_INDEX;
            struct chain *chain = key ? known[number] : NULL;
            if (!chain)
                chain = arena_new_one(layout->arena, struct chain);
            if (key)
                known[number] = chain;
            layout->chains[i] = chain;
            append(layout, chain, i);
        }
    }
}
