/* SPDX-License-Identifier: MIT
 *
 * Reading an object: bytes in, a checked model out. Everything that is wrong with a
 * file is found here, so that nobody later has to look again ("parse, then trust").
 *
 * Which sections become sections of the model? All that hold contents. Those that only
 * say how other sections hang together (symbol table, string tables, relocations,
 * groups, extended indices) are read into structures and made anew by the writer. Two
 * kinds are dropped: .llvm_addrsig and .llvm.call-graph-profile name symbols by their
 * raw number in the symbol table, which changes. Both are hints: without the first, a
 * linker takes every symbol as address-significant (folds less), without the second it
 * keeps the order of functions. So dropping them is always right.
 *
 * Compressed debug sections lose their compression here (compress.c). Others
 * (SHF_COMPRESSED) are carried through as they are; their relocations count in the
 * uncompressed image.
 */
#include "properties.h"
#include "reader.h"

#include <inttypes.h>
#include <string.h>

enum role {
    ROLE_CONTENT, /* becomes a section of the model */
    ROLE_TABLE,   /* read into structures, or nothing to keep */
    ROLE_HINT,    /* dropped, see above */
    ROLE_REL,     /* SHT_REL: no such thing on our machines, but for dropped sections */
    ROLE_CREL,
    ROLE_LINKED, /* made by a link: does not belong here */
};

static enum role role_of(uint32_t type)
{
    switch (type) {
    case SHT_NULL:
    case SHT_SYMTAB:
    case SHT_SYMTAB_SHNDX:
    case SHT_RELA:
    case SHT_GROUP: return ROLE_TABLE;
    case SECTION_LLVM_ADDRSIG:
    case SECTION_LLVM_PROFILE:
    case SECTION_LLVM_PROFILE_OLD: return ROLE_HINT;
    case SHT_REL: return ROLE_REL;
    case SECTION_CREL: return ROLE_CREL;
    case SHT_HASH:
    case SHT_DYNAMIC:
    case SHT_SHLIB:
    case SHT_DYNSYM:
    case SECTION_RELR:
    case SHT_GNU_HASH:
    case SHT_GNU_versym:
    case SHT_GNU_verdef:
    case SHT_GNU_verneed: return ROLE_LINKED;
    default: return ROLE_CONTENT;
    }
}

static bool check_role(struct reader *reader, uint32_t index)
{
    const Elf64_Shdr *header = &reader->headers[index];
    switch (role_of(header->sh_type)) {
    case ROLE_CREL:
        return reader_fail(reader, index, 0,
                           "holds relocations in CREL format, which is not supported: "
                           "compile with -Wa,--no-crel");
    case ROLE_REL:
        /* LLVM writes the relocations of .llvm.call-graph-profile in this form. */
        if (header->sh_info < reader->count &&
            role_of(reader->headers[header->sh_info].sh_type) == ROLE_HINT)
            return true;
        return reader_fail(reader, index, 0,
                           "holds relocations without addends (SHT_REL), which are not "
                           "supported on this machine");
    case ROLE_LINKED:
        return reader_fail(reader, index, 0,
                           "section type 0x%" PRIx32
                           " does not belong into a relocatable object",
                           header->sh_type);
    case ROLE_CONTENT:
        /* Whoever links to the symbol table names symbols by number, in a way that we
         * do not know. */
        if (header->sh_link && header->sh_link == reader->symtab)
            return reader_fail(reader, index, 0,
                               "section type 0x%" PRIx32
                               " refers to the symbol table in an unknown way",
                               header->sh_type);
        return true;
    case ROLE_TABLE:
    case ROLE_HINT: return true;
    }
    return true;
}

/* Finds the tables of which there must be no more than one. */
static bool find_tables(struct reader *reader)
{
    for (uint32_t i = 1; i < reader->count; i++) {
        uint32_t type = reader->headers[i].sh_type;
        if (type != SHT_SYMTAB && type != SHT_SYMTAB_SHNDX)
            continue;
        uint32_t *found = type == SHT_SYMTAB ? &reader->symtab : &reader->shndx;
        if (*found)
            return reader_fail(reader, i, 0, "is a second table beside %s",
                               reader_section_name(reader, *found));
        *found = i;
    }
    if (reader->symtab)
        reader->strtab = reader->headers[reader->symtab].sh_link;
    return true;
}

static bool is_content(const struct reader *reader, uint32_t index)
{
    return role_of(reader->headers[index].sh_type) == ROLE_CONTENT &&
           index != reader->strtab && index != reader->shstrtab;
}

/* Gives the sections of the model their numbers. */
static bool number_sections(struct reader *reader)
{
    reader->section_of = arena_new_array(reader->arena, uint32_t, reader->count);
    reader->group_of = arena_new_array(reader->arena, uint32_t, reader->count);
    uint32_t used = 1;
    for (uint32_t i = 0; i < reader->count; i++) {
        reader->group_of[i] = NO_INDEX;
        reader->section_of[i] = NO_INDEX;
        if (i == 0)
            continue;
        if (!check_role(reader, i))
            return false;
        if (is_content(reader, i))
            reader->section_of[i] = used++;
    }
    reader->object->section_count = used;
    return true;
}

/* What sh_link or sh_info says, as a section index. */
static bool read_link(struct reader *reader, uint32_t index, uint32_t link,
                      uint32_t *out)
{
    if (link == 0) {
        *out = 0;
        return true;
    }
    if (link >= reader->count || reader->section_of[link] == NO_INDEX)
        return reader_fail(reader, index, 0,
                           "is linked to section %" PRIu32 ", which has no contents",
                           link);
    *out = reader->section_of[link];
    return true;
}

static bool read_section(struct reader *reader, uint32_t index)
{
    const Elf64_Shdr *header = &reader->headers[index];
    struct section *section = &reader->sections[reader->section_of[index]];
    section->name = reader->names[index];
    section->type = header->sh_type;
    section->flags = header->sh_flags & ~(uint64_t)SHF_GROUP;
    section->align = header->sh_addralign ? header->sh_addralign : 1;
    section->entry_size = header->sh_entsize;
    section->data = reader_bytes(reader, index);
    section->data.size = header->sh_size;
    section_expand(reader->arena, section);
    section->info = header->sh_info;
    section->group = NO_INDEX;
    if ((header->sh_flags & SHF_INFO_LINK) &&
        !read_link(reader, index, header->sh_info, &section->info))
        return false;
    return read_link(reader, index, header->sh_link, &section->link);
}

static bool read_sections(struct reader *reader)
{
    struct object *object = reader->object;
    reader->sections =
        arena_new_array(reader->arena, struct section, object->section_count);
    object->sections = reader->sections;
    reader->sections[0].name = "";
    reader->sections[0].align = 1;
    reader->sections[0].group = NO_INDEX;
    for (uint32_t i = 1; i < reader->count; i++) {
        if (reader->section_of[i] != NO_INDEX && !read_section(reader, i))
            return false;
    }
    return true;
}

static void read_unit(struct reader *reader)
{
    struct object *object = reader->object;
    struct unit *unit = arena_new_one(reader->arena, struct unit);
    unit->name = reader->name;
    for (uint32_t i = 1; i < object->section_count; i++) {
        const struct section *section = &object->sections[i];
        if (section->type == SHT_NOTE &&
            strcmp(section->name, ".note.gnu.property") == 0)
            unit->features |= properties_features(object->machine, section->data);
    }
    object->units = unit;
    object->unit_count = 1;
}

bool object_read(struct arena *arena, const char *name, struct bytes image,
                 const struct object **out, struct error *err)
{
    struct reader reader = {.arena = arena, .image = image, .err = err};
    reader.name = arena_strdup(arena, name);
    reader.object = arena_new_one(arena, struct object);
    reader.object->name = reader.name;
    bool ok = read_headers(&reader) && find_tables(&reader) &&
              number_sections(&reader) && read_sections(&reader) &&
              read_symbols(&reader) && read_relocs(&reader) && read_groups(&reader);
    elf_end(reader.elf);
    if (!ok)
        return false;
    read_unit(&reader);
    *out = reader.object;
    return object_check(reader.object, err);
}
