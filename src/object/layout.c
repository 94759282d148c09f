/* SPDX-License-Identifier: MIT
 *
 * Numbering and placing. The order of the file is
 *
 *     header, groups, (section, its relocations)..., symtab, [indices], strtab,
 *     shstrtab, section headers
 *
 * Groups come before their members (gABI demands it), all others where an assembler
 * would put them. Nothing here depends on addresses or hash seeds: equal objects give
 * equal files.
 */
#include "layout.h"

#include <string.h>

static struct part *add_part(struct layout *layout, const char *name, uint32_t type,
                             struct strings *section_names)
{
    struct part *part = &layout->parts[layout->part_count++];
    part->header.sh_name = strings_add(section_names, name);
    part->header.sh_type = type;
    part->header.sh_addralign = 1;
    return part;
}

static void add_groups(struct layout *layout, struct strings *names)
{
    for (uint32_t i = 0; i < layout->object->group_count; i++) {
        struct part *part = add_part(layout, ".group", SHT_GROUP, names);
        part->kind = PART_GROUP;
        part->of = i;
        part->header.sh_addralign = part->header.sh_entsize = 4;
    }
}

/* Adds the relocation section of `section`, whose part was added last. */
static void add_relocs(struct layout *layout, uint32_t index, uint64_t count,
                       struct strings *names)
{
    const struct section *section = &layout->object->sections[index];
    if (count == 0)
        return;
    const char *name = arena_format(layout->arena, ".rela%s", section->name);
    struct part *part = add_part(layout, name, SHT_RELA, names);
    part->kind = PART_RELOCS;
    part->of = index;
    part->header.sh_flags =
        SHF_INFO_LINK | (section->group == NO_INDEX ? 0u : (unsigned)SHF_GROUP);
    part->header.sh_addralign = 8;
    part->header.sh_entsize = sizeof(Elf64_Rela);
    part->header.sh_size = count * sizeof(Elf64_Rela);
    part->header.sh_info = layout->section_at[index];
}

static void compress_chain(struct layout *layout, const struct chain *chain,
                           struct part *part)
{
    uint8_t *plain = arena_alloc(layout->arena, chain->size + 1);
    put_sections(layout, chain->first, plain);
    if (!bytes_compress(layout->arena, (struct bytes){plain, chain->size}, chain->align,
                        &part->bytes))
        return;
    part->header.sh_size = part->bytes.size;
    part->header.sh_flags |= SHF_COMPRESSED;
    part->header.sh_addralign = 8; /* of an Elf64_Chdr */
}

/* The section of the file that holds a chain, and behind it its relocations. */
static void add_chain(struct layout *layout, const struct chain *chain,
                      struct strings *names)
{
    const struct section *section = &layout->object->sections[chain->first];
    for (uint32_t i = chain->first; i; i = layout->next[i])
        layout->section_at[i] = layout->part_count;
    struct part *part = add_part(layout, section->name, section->type, names);
    part->kind = PART_SECTION;
    part->of = chain->first;
    part->header.sh_flags = section->flags & ~(uint64_t)SHF_GROUP;
    if (section->group != NO_INDEX)
        part->header.sh_flags |= SHF_GROUP;
    part->header.sh_addralign = chain->align;
    part->header.sh_entsize = section->entry_size;
    part->header.sh_size = chain->size;
    if (chain->compressed)
        compress_chain(layout, chain, part);
    add_relocs(layout, chain->first, chain->reloc_count, names);
}

static void add_sections(struct layout *layout, struct strings *names)
{
    for (uint32_t i = 1; i < layout->object->section_count; i++) {
        if (!layout->chains[i]->placed)
            add_chain(layout, layout->chains[i], names);
        layout->chains[i]->placed = true;
    }
}

/* The chain whose section symbol this is, if there are several sections in it. Of their
 * section symbols one is written, for all. */
static struct chain *joined_chain(const struct layout *layout,
                                  const struct symbol *symbol)
{
    if (symbol->type != STT_SECTION || symbol->bind != STB_LOCAL ||
        symbol->section == 0 || symbol->section >= layout->object->section_count)
        return NULL;
    struct chain *chain = layout->chains[symbol->section];
    return chain->first == chain->last ? NULL : chain;
}

/* Locals first, each kind in its old order: STT_FILE stays before the symbols of its
 * file, mapping symbols stay in order. */
static void number_symbols(struct layout *layout)
{
    const struct object *object = layout->object;
    uint32_t next = 1;
    layout->symbol_at = arena_new_array(layout->arena, uint32_t, object->symbol_count);
    layout->symbol_order =
        arena_new_array(layout->arena, uint32_t, object->symbol_count);
    for (int local = 1; local >= 0; local--) {
        for (uint32_t i = 1; i < object->symbol_count; i++) {
            const struct symbol *symbol = &object->symbols[i];
            if ((symbol->bind == STB_LOCAL) != local)
                continue;
            struct chain *chain = joined_chain(layout, symbol);
            if (chain && chain->symbol) {
                layout->symbol_at[i] = chain->symbol;
                continue;
            }
            if (chain)
                chain->symbol = next;
            layout->symbol_at[i] = next;
            layout->symbol_order[next++] = i;
        }
        if (local)
            layout->local_count = next;
    }
    layout->symbol_count = next;
}

static void add_tables(struct layout *layout, struct strings *names)
{
    const struct object *object = layout->object;
    layout->symtab = layout->part_count;
    struct part *part = add_part(layout, ".symtab", SHT_SYMTAB, names);
    part->kind = PART_SYMBOLS;
    part->header.sh_addralign = 8;
    part->header.sh_entsize = sizeof(Elf64_Sym);
    part->header.sh_size = layout->symbol_count * sizeof(Elf64_Sym);
    part->header.sh_info = layout->local_count;
    if (layout->part_count > SHN_LORESERVE) {
        layout->indices = layout->part_count;
        part = add_part(layout, ".symtab_shndx", SHT_SYMTAB_SHNDX, names);
        part->kind = PART_INDICES;
        part->header.sh_addralign = part->header.sh_entsize = 4;
        part->header.sh_size = (uint64_t)layout->symbol_count * 4;
        part->header.sh_link = layout->symtab;
    }
    layout->strtab = layout->part_count;
    (void)add_part(layout, ".strtab", SHT_STRTAB, names);
    layout->shstrtab = layout->part_count;
    (void)add_part(layout, ".shstrtab", SHT_STRTAB, names);
    layout->parts[layout->symtab].header.sh_link = layout->strtab;
    for (uint32_t i = 1; i < object->symbol_count; i++)
        (void)strings_add(layout->names, object->symbols[i].name);
    layout->parts[layout->strtab].bytes = buffer_bytes(&layout->names->bytes);
    layout->parts[layout->shstrtab].bytes = buffer_bytes(&names->bytes);
    layout->parts[layout->strtab].header.sh_size = layout->names->bytes.size;
    layout->parts[layout->shstrtab].header.sh_size = names->bytes.size;
}

/* sh_link and sh_info, now that every section has its number. */
static void link_parts(struct layout *layout)
{
    const struct object *object = layout->object;
    for (uint32_t i = 1; i < layout->part_count; i++) {
        struct part *part = &layout->parts[i];
        const struct section *section = &object->sections[part->of];
        switch (part->kind) {
        case PART_RELOCS: part->header.sh_link = layout->symtab; break;
        case PART_GROUP:
            part->header.sh_link = layout->symtab;
            part->header.sh_info =
                layout->symbol_at[object->groups[part->of].signature];
            break;
        case PART_SECTION:
            part->header.sh_link = layout->section_at[section->link];
            part->header.sh_info = (section->flags & SHF_INFO_LINK)
                                       ? layout->section_at[section->info]
                                       : section->info;
            break;
        case PART_BYTES:
        case PART_SYMBOLS:
        case PART_INDICES: break;
        }
    }
}

/* A group lists its members and, each after its section, their relocations. */
static void size_groups(struct layout *layout)
{
    for (uint32_t i = 1; i < layout->part_count; i++) {
        struct part *part = &layout->parts[i];
        if (part->kind != PART_GROUP)
            continue;
        const struct group *group = &layout->object->groups[part->of];
        uint64_t words = 1;
        for (uint32_t k = 0; k < group->member_count; k++)
            words += layout->object->sections[group->members[k]].reloc_count ? 2 : 1;
        part->header.sh_size = words * 4;
    }
}

static void place_parts(struct layout *layout)
{
    uint64_t at = sizeof(Elf64_Ehdr);
    for (uint32_t i = 1; i < layout->part_count; i++) {
        Elf64_Shdr *header = &layout->parts[i].header;
        /* Alignment in the file is a courtesy to readers; huge ones are not worth it.
         */
        uint64_t align = header->sh_addralign < 64 ? header->sh_addralign : 64;
        if (header->sh_type != SHT_NOBITS)
            at = align_up(at, align);
        header->sh_offset = at;
        if (header->sh_type != SHT_NOBITS)
            at += header->sh_size;
    }
    layout->section_headers = align_up(at, 8);
    layout->size =
        layout->section_headers + (uint64_t)layout->part_count * sizeof(Elf64_Shdr);
}

static uint64_t most_parts(const struct object *object)
{
    return 5 + (uint64_t)object->group_count + 2 * (uint64_t)object->section_count;
}

bool layout_make(struct layout *layout, struct error *err)
{
    const struct object *object = layout->object;
    const struct place place = {.file = object->name};
    if (most_parts(object) > UINT32_MAX)
        return fail(err, &place, "has too many sections to write");
    struct strings *names = strings_new(layout->arena);
    layout->names = strings_new(layout->arena);
    layout->parts = arena_new_array(layout->arena, struct part, most_parts(object));
    layout->section_at =
        arena_new_array(layout->arena, uint32_t, object->section_count);
    layout_join(layout);
    layout->part_count = 1;
    add_groups(layout, names);
    add_sections(layout, names);
    number_symbols(layout);
    add_tables(layout, names);
    link_parts(layout);
    size_groups(layout);
    place_parts(layout);
    for (uint32_t i = 1; i < layout->part_count; i++) {
        if (layout->parts[i].header.sh_size > UINT32_MAX)
            return fail(err, &place, "a section of 4 GiB or more cannot be written");
    }
    return true;
}
