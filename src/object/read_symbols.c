/* SPDX-License-Identifier: MIT
 *
 * The symbol table. Reference: gABI chapter 4, "Symbol Table".
 */
#include "reader.h"

#include <inttypes.h>
#include <string.h>

#define symbol_fail(reader, number, ...)                                               \
    reader_fail((reader), (reader)->symtab, (uint64_t)(number) * sizeof(Elf64_Sym),    \
                __VA_ARGS__)

static bool check_tables(struct reader *reader)
{
    const Elf64_Shdr *symtab = &reader->headers[reader->symtab];
    if (symtab->sh_entsize != sizeof(Elf64_Sym) ||
        symtab->sh_size % sizeof(Elf64_Sym) != 0 || symtab->sh_size == 0)
        return reader_fail(reader, reader->symtab, 0,
                           "size 0x%" PRIx64 " is no whole number of symbols",
                           symtab->sh_size);
    reader->symbol_count = (uint32_t)(symtab->sh_size / sizeof(Elf64_Sym));
    if (symtab->sh_info > reader->symbol_count)
        return reader_fail(reader, reader->symtab, 0,
                           "says that it has %" PRIu32 " local symbols, of %" PRIu32,
                           symtab->sh_info, reader->symbol_count);
    struct bytes text = reader_bytes(reader, reader->strtab);
    if (reader->headers[reader->strtab].sh_type != SHT_STRTAB || text.size == 0 ||
        text.at[text.size - 1] != '\0')
        return reader_fail(reader, reader->symtab, 0,
                           "is linked to a section that is no string table");
    const Elf64_Shdr *shndx = &reader->headers[reader->shndx];
    if (reader->shndx && (shndx->sh_link != reader->symtab ||
                          shndx->sh_size != (uint64_t)reader->symbol_count * 4))
        return reader_fail(reader, reader->shndx, 0,
                           "does not belong to the symbol table");
    return true;
}

/* Where the symbol is defined: a section index or SECTION_...; NO_INDEX when its
 * section is not of the model. */
static bool read_place(struct reader *reader, uint32_t number, uint32_t section,
                       uint32_t *out)
{
    if (section == SHN_ABS || section == SHN_COMMON) {
        *out = section == SHN_ABS ? SECTION_ABSOLUTE : SECTION_COMMON;
        return true;
    }
    if (section == SHN_XINDEX) {
        struct bytes table = reader_bytes(reader, reader->shndx);
        if (!reader->shndx)
            return symbol_fail(reader, number,
                               "symbol %" PRIu32
                               " needs an extended index, but there is no such table",
                               number);
        section = (uint32_t)load_le(table.at + (size_t)number * 4, 4);
    } else if (section >= SHN_LORESERVE) {
        return symbol_fail(reader, number,
                           "symbol %" PRIu32 " has special section index 0x%" PRIx32
                           ", which is not supported",
                           number, section);
    }
    if (section >= reader->count)
        return symbol_fail(reader, number,
                           "symbol %" PRIu32 " is in section %" PRIu32 " of %" PRIu32,
                           number, section, reader->count);
    *out = section ? reader->section_of[section] : SECTION_UNDEFINED;
    return true;
}

static bool check_binding(struct reader *reader, uint32_t number, uint8_t bind)
{
    uint32_t locals = reader->headers[reader->symtab].sh_info;
    if (bind != STB_LOCAL && bind != STB_GLOBAL && bind != STB_WEAK &&
        bind != STB_GNU_UNIQUE)
        return symbol_fail(reader, number, "symbol %" PRIu32 " has unknown binding %u",
                           number, bind);
    if ((number < locals) != (bind == STB_LOCAL))
        return symbol_fail(reader, number,
                           "symbol %" PRIu32 " is on the wrong side of the %" PRIu32
                           " local symbols",
                           number, locals);
    return true;
}

/* Slim LTO objects hold GIMPLE only; gcc marks them with this symbol. */
static bool check_lto(struct reader *reader, const char *name)
{
    if (strcmp(name, "__gnu_lto_slim") == 0)
        return fail(reader->err, &(struct place){.file = reader->name},
                    "holds GCC's intermediate code (LTO), not machine code: compile "
                    "without -flto, or with -ffat-lto-objects");
    return true;
}

/* An assembler that needs a symbol only to name a group may place it in the group
 * section itself. It is nowhere, really. */
static bool settle_signature(const struct reader *reader, const Elf64_Sym *from,
                             struct symbol *out)
{
    if (out->bind != STB_LOCAL || from->st_shndx >= SHN_LORESERVE ||
        reader->headers[from->st_shndx].sh_type != SHT_GROUP)
        return false;
    out->section = SECTION_UNDEFINED;
    return true;
}

static bool read_symbol(struct reader *reader, const Elf64_Sym *from, uint32_t number,
                        struct symbol *out)
{
    struct bytes text = reader_bytes(reader, reader->strtab);
    if (from->st_name >= text.size)
        return symbol_fail(
            reader, number,
            "the name of symbol %" PRIu32 " lies outside the string table", number);
    out->name = (const char *)text.at + from->st_name;
    out->value = from->st_value;
    out->size = from->st_size;
    out->bind = ELF64_ST_BIND(from->st_info);
    out->type = ELF64_ST_TYPE(from->st_info);
    out->other = from->st_other;
    if (!check_lto(reader, out->name) || !check_binding(reader, number, out->bind) ||
        !read_place(reader, number, from->st_shndx, &out->section))
        return false;
    if (out->type == STT_SECTION)
        out->name = ""; /* the section has the name */
    else if (out->section == NO_INDEX && !settle_signature(reader, from, out))
        return symbol_fail(reader, number,
                           "symbol %s lies in a section without contents", out->name);
    return true;
}

bool read_symbols(struct reader *reader)
{
    struct object *object = reader->object;
    if (!reader->symtab) {
        object->symbols = arena_new_array(reader->arena, struct symbol, 1);
        ((struct symbol *)(uintptr_t)object->symbols)[0].name = "";
        object->symbol_count = 1;
        return true;
    }
    if (!check_tables(reader))
        return false;
    const uint8_t *records = reader_records(reader, reader->symtab);
    if (!records)
        return false;
    struct symbol *symbols =
        arena_new_array(reader->arena, struct symbol, reader->symbol_count);
    reader->symbol_of = arena_new_array(reader->arena, uint32_t, reader->symbol_count);
    symbols[0].name = "";
    uint32_t used = 1;
    for (uint32_t i = 1; i < reader->symbol_count; i++) {
        Elf64_Sym record;
        memcpy(&record, records + i * sizeof record, sizeof record);
        if (!read_symbol(reader, &record, i, &symbols[used]))
            return false;
        /* The section symbol of a section that is made anew on writing. */
        bool dropped = symbols[used].section == NO_INDEX;
        reader->symbol_of[i] = dropped ? NO_INDEX : used++;
    }
    object->symbols = symbols;
    object->symbol_count = used;
    return true;
}
