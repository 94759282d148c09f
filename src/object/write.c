/* SPDX-License-Identifier: MIT
 *
 * Writing an object: layout.c has said where everything goes; here the bytes are put.
 * No libelf: it writes to files only, and a deterministic image is easier to make by
 * hand than to coax out of it.
 */
#include "layout.h"

#include <string.h>

static void put_header(uint8_t *at, const Elf64_Shdr *header)
{
    store_le(at + offsetof(Elf64_Shdr, sh_name), 4, header->sh_name);
    store_le(at + offsetof(Elf64_Shdr, sh_type), 4, header->sh_type);
    store_le(at + offsetof(Elf64_Shdr, sh_flags), 8, header->sh_flags);
    store_le(at + offsetof(Elf64_Shdr, sh_addr), 8, header->sh_addr);
    store_le(at + offsetof(Elf64_Shdr, sh_offset), 8, header->sh_offset);
    store_le(at + offsetof(Elf64_Shdr, sh_size), 8, header->sh_size);
    store_le(at + offsetof(Elf64_Shdr, sh_link), 4, header->sh_link);
    store_le(at + offsetof(Elf64_Shdr, sh_info), 4, header->sh_info);
    store_le(at + offsetof(Elf64_Shdr, sh_addralign), 8, header->sh_addralign);
    store_le(at + offsetof(Elf64_Shdr, sh_entsize), 8, header->sh_entsize);
}

static void put_file_header(const struct layout *layout, uint8_t *at)
{
    const struct object *object = layout->object;
    memcpy(at, ELFMAG, SELFMAG);
    at[EI_CLASS] = ELFCLASS64;
    at[EI_DATA] = ELFDATA2LSB;
    at[EI_VERSION] = EV_CURRENT;
    at[EI_OSABI] = object->os_abi;
    store_le(at + offsetof(Elf64_Ehdr, e_type), 2, ET_REL);
    store_le(at + offsetof(Elf64_Ehdr, e_machine), 2, object->machine);
    store_le(at + offsetof(Elf64_Ehdr, e_version), 4, EV_CURRENT);
    store_le(at + offsetof(Elf64_Ehdr, e_shoff), 8, layout->section_headers);
    store_le(at + offsetof(Elf64_Ehdr, e_flags), 4, object->flags);
    store_le(at + offsetof(Elf64_Ehdr, e_ehsize), 2, sizeof(Elf64_Ehdr));
    store_le(at + offsetof(Elf64_Ehdr, e_shentsize), 2, sizeof(Elf64_Shdr));
    /* What does not fit goes into section header 0. */
    uint32_t count = layout->part_count, names = layout->shstrtab;
    store_le(at + offsetof(Elf64_Ehdr, e_shnum), 2, count < SHN_LORESERVE ? count : 0);
    store_le(at + offsetof(Elf64_Ehdr, e_shstrndx), 2,
             names < SHN_LORESERVE ? names : SHN_XINDEX);
    Elf64_Shdr *first = &layout->parts[0].header;
    first->sh_size = count < SHN_LORESERVE ? 0 : count;
    first->sh_link = names < SHN_LORESERVE ? 0 : names;
}

void put_sections(const struct layout *layout, uint32_t first, uint8_t *at)
{
    for (uint32_t i = first; i; i = layout->next[i]) {
        const struct section *section = &layout->object->sections[i];
        if (section->type != SHT_NOBITS && section->data.size)
            memcpy(at + layout->base[i], section->data.at, section->data.size);
    }
}

/* Where the symbol's section starts in the file's section. */
static uint64_t section_base(const struct layout *layout, const struct symbol *symbol)
{
    return symbol->section < layout->object->section_count
               ? layout->base[symbol->section]
               : 0;
}

/* The relocations of one section. What refers to the section symbol of a joined
 * section refers to the one that stands for all, and the place of this section in it.
 */
static uint8_t *put_relocs(const struct layout *layout, uint32_t index, uint8_t *at)
{
    const struct section *section = &layout->object->sections[index];
    for (uint32_t i = 0; i < section->reloc_count; i++) {
        const struct reloc *reloc = &section->relocs[i];
        const struct symbol *to = &layout->object->symbols[reloc->symbol];
        uint64_t symbol = layout->symbol_at[reloc->symbol];
        uint64_t base = to->type == STT_SECTION ? section_base(layout, to) : 0;
        store_le(at + offsetof(Elf64_Rela, r_offset), 8,
                 reloc->offset + layout->base[index]);
        store_le(at + offsetof(Elf64_Rela, r_info), 8, symbol << 32 | reloc->type);
        store_le(at + offsetof(Elf64_Rela, r_addend), 8,
                 (uint64_t)reloc->addend + base);
        at += sizeof(Elf64_Rela);
    }
    return at;
}

static void put_group(const struct layout *layout, const struct group *group,
                      uint8_t *at)
{
    store_le(at, 4, group->flags);
    at += 4;
    for (uint32_t i = 0; i < group->member_count; i++) {
        uint32_t member = group->members[i];
        store_le(at, 4, layout->section_at[member]);
        at += 4;
        if (layout->object->sections[member].reloc_count) {
            store_le(at, 4, layout->section_at[member] + 1);
            at += 4;
        }
    }
}

/* st_shndx of a symbol, or its section if that needs the extended table. */
static uint32_t symbol_section(const struct layout *layout, const struct symbol *symbol)
{
    switch (symbol->section) {
    case SECTION_UNDEFINED: return SHN_UNDEF;
    case SECTION_ABSOLUTE: return SHN_ABS;
    case SECTION_COMMON: return SHN_COMMON;
    default: return layout->section_at[symbol->section];
    }
}

static void put_symbol(const struct layout *layout, const struct symbol *symbol,
                       uint8_t *at)
{
    bool special =
        symbol->section == SECTION_ABSOLUTE || symbol->section == SECTION_COMMON;
    uint32_t section = symbol_section(layout, symbol);
    uint64_t base = symbol->type == STT_SECTION ? 0 : section_base(layout, symbol);
    store_le(at + offsetof(Elf64_Sym, st_name), 4,
             strings_add(layout->names, symbol->name));
    at[offsetof(Elf64_Sym, st_info)] =
        (uint8_t)ELF64_ST_INFO(symbol->bind, symbol->type);
    at[offsetof(Elf64_Sym, st_other)] = symbol->other;
    store_le(at + offsetof(Elf64_Sym, st_shndx), 2,
             special || section < SHN_LORESERVE ? section : SHN_XINDEX);
    store_le(at + offsetof(Elf64_Sym, st_value), 8, symbol->value + base);
    store_le(at + offsetof(Elf64_Sym, st_size), 8, symbol->size);
}

static void put_symbols(const struct layout *layout, uint8_t *at)
{
    for (uint32_t i = 1; i < layout->symbol_count; i++)
        put_symbol(layout, &layout->object->symbols[layout->symbol_order[i]],
                   at + (uint64_t)i * sizeof(Elf64_Sym));
}

static void put_indices(const struct layout *layout, uint8_t *at)
{
    for (uint32_t i = 1; i < layout->symbol_count; i++) {
        const struct symbol *symbol = &layout->object->symbols[layout->symbol_order[i]];
        uint32_t section = symbol_section(layout, symbol);
        if (symbol->section != SECTION_ABSOLUTE && symbol->section != SECTION_COMMON &&
            section >= SHN_LORESERVE)
            store_le(at + (uint64_t)i * 4, 4, section);
    }
}

static void put_part(const struct layout *layout, const struct part *part, uint8_t *at)
{
    switch (part->kind) {
    case PART_BYTES:
        if (part->bytes.size)
            memcpy(at, part->bytes.at, part->bytes.size);
        break;
    case PART_SECTION:
        if (part->bytes.at)
            memcpy(at, part->bytes.at, part->bytes.size);
        else
            put_sections(layout, part->of, at);
        break;
    case PART_RELOCS:
        for (uint32_t i = part->of; i; i = layout->next[i])
            at = put_relocs(layout, i, at);
        break;
    case PART_GROUP: put_group(layout, &layout->object->groups[part->of], at); break;
    case PART_SYMBOLS: put_symbols(layout, at); break;
    case PART_INDICES: put_indices(layout, at); break;
    }
}

bool object_build(struct arena *arena, const struct object *object, struct bytes *out,
                  struct error *err)
{
    struct arena *stage = arena_new();
    struct layout layout = {.arena = stage, .object = object};
    bool ok = object_check(object, err) && layout_make(&layout, err);
    if (ok) {
        uint8_t *image = arena_alloc(arena, layout.size);
        put_file_header(&layout, image);
        for (uint32_t i = 0; i < layout.part_count; i++) {
            const struct part *part = &layout.parts[i];
            put_part(&layout, part, image + part->header.sh_offset);
            put_header(image + layout.section_headers + i * sizeof(Elf64_Shdr),
                       &part->header);
        }
        *out = (struct bytes){image, layout.size};
    }
    arena_free(stage);
    return ok;
}
