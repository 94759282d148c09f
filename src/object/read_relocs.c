/* SPDX-License-Identifier: MIT
 *
 * Relocation sections and section groups: tables that refer to sections and symbols by
 * number. Reference: gABI chapter 4, "Relocation", "Section Groups".
 */
#include "frames.h"
#include "reader.h"

#include <inttypes.h>
#include <string.h>

/* Stable: relocations of equal offset keep their order, which means something on some
 * machines and is what a linker would see. Compilers write them sorted, so the merge
 * sort is for the rest. */
static void sort_relocs(struct arena *arena, struct reloc *relocs, uint32_t count)
{
    bool sorted = true;
    for (uint32_t i = 1; i < count && sorted; i++)
        sorted = relocs[i - 1].offset <= relocs[i].offset;
    if (sorted)
        return;
    struct reloc *other = arena_new_array(arena, struct reloc, count);
    struct reloc *from = relocs, *to = other;
    for (uint64_t width = 1; width < count; width *= 2) {
        for (uint64_t start = 0; start < count; start += 2 * width) {
            uint64_t middle = start + width < count ? start + width : count;
            uint64_t end = start + 2 * width < count ? start + 2 * width : count;
            uint64_t left = start, right = middle;
            for (uint64_t i = start; i < end; i++) {
                bool take_left =
                    left < middle &&
                    (right >= end || from[left].offset <= from[right].offset);
                to[i] = take_left ? from[left++] : from[right++];
            }
        }
        struct reloc *swap = from;
        from = to;
        to = swap;
    }
    if (from != relocs)
        memcpy(relocs, from, count * sizeof *relocs);
}

/* GNU ld -r and lld -r drop code that is there twice (COMDAT), and leave of its unwind
 * entries' relocations ones of no type and no symbol. lld's stand where the entry says
 * which code it describes: such an entry is dead, and who merges objects cuts it. All
 * others ask for nothing, and may lie anywhere: GNU ld has cut the entries already. */
static uint32_t without_leftovers(const struct section *section, struct reloc *relocs,
                                  uint32_t count)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct reloc reloc = relocs[i];
        bool alone = (used == 0 || relocs[used - 1].offset != reloc.offset) &&
                     (i + 1 == count || relocs[i + 1].offset != reloc.offset);
        if (!reloc_is_void(&reloc) ||
            (alone && frame_names_code(section, reloc.offset)))
            relocs[used++] = reloc;
    }
    return used;
}

static bool check_reloc_section(struct reader *reader, uint32_t index)
{
    const Elf64_Shdr *header = &reader->headers[index];
    if (header->sh_entsize != sizeof(Elf64_Rela) ||
        header->sh_size % sizeof(Elf64_Rela) != 0)
        return reader_fail(reader, index, 0,
                           "size 0x%" PRIx64 " is no whole number of relocations",
                           header->sh_size);
    if (header->sh_link != reader->symtab || !reader->symtab)
        return reader_fail(reader, index, 0, "is not linked to the symbol table");
    if (header->sh_info == 0 || header->sh_info >= reader->count)
        return reader_fail(reader, index, 0,
                           "relocates section %" PRIu32 " of %" PRIu32, header->sh_info,
                           reader->count);
    return true;
}

static bool read_reloc(struct reader *reader, uint32_t index, uint32_t number,
                       const Elf64_Rela *from, struct reloc *out)
{
    uint64_t at = (uint64_t)number * sizeof(Elf64_Rela);
    uint32_t symbol = (uint32_t)ELF64_R_SYM(from->r_info);
    if (symbol >= reader->symbol_count)
        return reader_fail(reader, index, at,
                           "refers to symbol %" PRIu32 " of %" PRIu32, symbol,
                           reader->symbol_count);
    out->symbol = symbol ? reader->symbol_of[symbol] : 0;
    if (out->symbol == NO_INDEX)
        return reader_fail(
            reader, index, at,
            "refers to symbol %" PRIu32 ", whose section has no contents", symbol);
    out->offset = from->r_offset;
    out->addend = from->r_addend;
    out->type = (uint32_t)ELF64_R_TYPE(from->r_info);
    return true;
}

/* The relocations of ELF section `index`, which is of type SHT_RELA. */
static bool read_reloc_section(struct reader *reader, uint32_t index)
{
    if (!check_reloc_section(reader, index))
        return false;
    const Elf64_Shdr *header = &reader->headers[index];
    uint32_t count = (uint32_t)(header->sh_size / sizeof(Elf64_Rela));
    uint32_t target = reader->section_of[header->sh_info];
    if (target == NO_INDEX || reader->sections[target].type == SHT_NOBITS)
        return reader_fail(reader, index, 0, "relocates %s, which has no contents",
                           reader_section_name(reader, header->sh_info));
    struct section *section = &reader->sections[target];
    if (section->relocs)
        return reader_fail(reader, index, 0, "is a second relocation section for %s",
                           section->name);
    const uint8_t *records = reader_records(reader, index);
    if (!records)
        return false;
    struct reloc *relocs = arena_new_array(reader->arena, struct reloc, count);
    for (uint32_t i = 0; i < count; i++) {
        Elf64_Rela record;
        memcpy(&record, records + i * sizeof record, sizeof record);
        if (!read_reloc(reader, index, i, &record, &relocs[i]))
            return false;
    }
    sort_relocs(reader->arena, relocs, count);
    if (section_is_frame(section))
        count = without_leftovers(section, relocs, count);
    section->relocs = relocs;
    section->reloc_count = count;
    return true;
}

bool read_relocs(struct reader *reader)
{
    for (uint32_t i = 1; i < reader->count; i++) {
        if (reader->headers[i].sh_type == SHT_RELA && !read_reloc_section(reader, i))
            return false;
    }
    return true;
}

static bool read_member(struct reader *reader, uint32_t index, uint64_t at,
                        uint32_t group)
{
    struct bytes data = reader_bytes(reader, index);
    uint32_t member = (uint32_t)load_le(data.at + at, 4);
    if (member == 0 || member >= reader->count)
        return reader_fail(reader, index, at,
                           "member %" PRIu32 " is no section of %" PRIu32, member,
                           reader->count);
    if (reader->headers[member].sh_type == SHT_GROUP)
        return reader_fail(reader, index, at, "member %" PRIu32 " is itself a group",
                           member);
    if (reader->group_of[member] != NO_INDEX)
        return reader_fail(reader, index, at, "section %s is in two groups",
                           reader_section_name(reader, member));
    reader->group_of[member] = group;
    return true;
}

static bool read_group(struct reader *reader, uint32_t index, uint32_t number,
                       struct group *out)
{
    const Elf64_Shdr *header = &reader->headers[index];
    struct bytes data = reader_bytes(reader, index);
    if (data.size < 4 || data.size % 4 != 0)
        return reader_fail(reader, index, 0,
                           "size 0x%" PRIx64 " is no whole number of group members",
                           data.size);
    if (header->sh_link != reader->symtab || !reader->symtab)
        return reader_fail(reader, index, 0, "is not linked to the symbol table");
    if (header->sh_info == 0 || header->sh_info >= reader->symbol_count ||
        reader->symbol_of[header->sh_info] == NO_INDEX)
        return reader_fail(reader, index, 0,
                           "signature is symbol %" PRIu32 " of %" PRIu32,
                           header->sh_info, reader->symbol_count);
    out->signature = reader->symbol_of[header->sh_info];
    out->flags = (uint32_t)load_le(data.at, 4);
    if (out->flags & ~(uint32_t)GRP_COMDAT)
        return reader_fail(reader, index, 0, "has unknown group flags 0x%" PRIx32,
                           out->flags);
    uint32_t *members = arena_new_array(reader->arena, uint32_t, data.size / 4);
    for (uint64_t at = 4; at < data.size; at += 4) {
        if (!read_member(reader, index, at, number))
            return false;
        uint32_t section = reader->section_of[load_le(data.at + at, 4)];
        if (section == NO_INDEX) /* its relocation section: follows its section */
            continue;
        members[out->member_count++] = section;
        reader->sections[section].group = number;
    }
    out->members = members;
    return true;
}

/* A section that says it is in a group which does not list it would survive when the
 * group is dropped. */
static bool check_group_flags(struct reader *reader)
{
    for (uint32_t i = 1; i < reader->count; i++) {
        if ((reader->headers[i].sh_flags & SHF_GROUP) &&
            reader->headers[i].sh_type != SHT_NULL && reader->group_of[i] == NO_INDEX)
            return reader_fail(reader, i, 0,
                               "says that it is in a group, but no group lists it");
    }
    return true;
}

bool read_groups(struct reader *reader)
{
    uint32_t count = 0;
    for (uint32_t i = 1; i < reader->count; i++)
        count += reader->headers[i].sh_type == SHT_GROUP;
    struct group *groups = arena_new_array(reader->arena, struct group, count);
    uint32_t used = 0;
    for (uint32_t i = 1; i < reader->count; i++) {
        if (reader->headers[i].sh_type != SHT_GROUP)
            continue;
        if (!read_group(reader, i, used, &groups[used]))
            return false;
        used++;
    }
    reader->object->groups = groups;
    reader->object->group_count = count;
    return check_group_flags(reader);
}
