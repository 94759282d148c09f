/* SPDX-License-Identifier: MIT
 *
 * --dump=object: the model of an object, in a few columns.
 */
#include "mo/dump.h"
#include "mo/target.h"

#include <elf.h>
#include <inttypes.h>

static const char *section_type_name(uint32_t type)
{
    switch (type) {
    case SHT_NULL: return "null";
    case SHT_PROGBITS: return "progbits";
    case SHT_NOBITS: return "nobits";
    case SHT_NOTE: return "note";
    case SHT_INIT_ARRAY: return "init_array";
    case SHT_FINI_ARRAY: return "fini_array";
    case SHT_PREINIT_ARRAY: return "preinit_array";
    case SHT_X86_64_UNWIND: return "unwind";
    default: return NULL;
    }
}

/* In readelf's letters. */
static void print_flags(FILE *out, uint64_t flags)
{
    static const struct {
        uint64_t flag;
        char letter;
    } letters[] = {
        {SHF_WRITE,      'W'},
        {SHF_ALLOC,      'A'},
        {SHF_EXECINSTR,  'X'},
        {SHF_MERGE,      'M'},
        {SHF_STRINGS,    'S'},
        {SHF_TLS,        'T'},
        {SHF_INFO_LINK,  'I'},
        {SHF_LINK_ORDER, 'L'},
        {SHF_COMPRESSED, 'C'},
        {SHF_GROUP,      'G'},
        {SHF_GNU_RETAIN, 'R'},
        {SHF_EXCLUDE,    'E'},
    };
    int width = 6;
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++) {
        if (flags & letters[i].flag) {
            fputc(letters[i].letter, out);
            width--;
        }
    }
    fprintf(out, "%*s", width > 0 ? width : 0, "");
}

static void dump_section(FILE *out, const struct object *object, uint32_t index)
{
    const struct section *section = &object->sections[index];
    const char *type = section_type_name(section->type);
    fprintf(out, "  %4" PRIu32 " ", index);
    if (type)
        fprintf(out, "%-10s", type);
    else
        fprintf(out, "0x%08" PRIx32, section->type);
    fprintf(out, " ");
    print_flags(out, section->flags);
    fprintf(out, " %8" PRIu64 " align %-4" PRIu64 " relocs %-6" PRIu32 " %s",
            section->data.size, section->align, section->reloc_count, section->name);
    if (section->group != NO_INDEX)
        fprintf(out, " group %" PRIu32, section->group);
    if (section->link)
        fprintf(out, " link %" PRIu32, section->link);
    fprintf(out, " <%s>\n", section_unit(object, index));
}

static void dump_relocs(FILE *out, const struct object *object, uint32_t index)
{
    const struct target *target = target_of(object->machine);
    const struct section *section = &object->sections[index];
    if (section->reloc_count == 0)
        return;
    fprintf(out, "relocations of %" PRIu32 " %s\n", index, section->name);
    for (uint32_t i = 0; i < section->reloc_count; i++) {
        const struct reloc *reloc = &section->relocs[i];
        const struct reloc_kind *kind = target ? target->reloc_kind(reloc->type) : NULL;
        const struct symbol *symbol = &object->symbols[reloc->symbol];
        fprintf(out, "  %8" PRIx64 " ", reloc->offset);
        if (kind)
            fprintf(out, "%-34s", kind->name);
        else
            fprintf(out, "type %-29" PRIu32, reloc->type);
        if (symbol->type == STT_SECTION && symbol->section < object->section_count)
            fprintf(out, " [%s]", object->sections[symbol->section].name);
        else
            fprintf(out, " %s", symbol->name);
        fprintf(out, " %+" PRId64 "\n", reloc->addend);
    }
}

static const char *bind_name(uint8_t bind)
{
    static const char *const names[] = {"local", "global", "weak"};
    return bind < 3 ? names[bind] : bind == STB_GNU_UNIQUE ? "unique" : "other";
}

static const char *symbol_type_name(uint8_t type)
{
    static const char *const names[] = {"notype", "object", "func", "section",
                                        "file",   "common", "tls"};
    return type < 7 ? names[type] : type == STT_GNU_IFUNC ? "ifunc" : "other";
}

static void dump_symbol(FILE *out, const struct symbol *symbol, uint32_t index)
{
    fprintf(out, "  %4" PRIu32 " ", index);
    if (symbol->section == SECTION_UNDEFINED)
        fprintf(out, "%5s", "undef");
    else if (symbol->section == SECTION_ABSOLUTE)
        fprintf(out, "%5s", "abs");
    else if (symbol->section == SECTION_COMMON)
        fprintf(out, "%5s", "com");
    else
        fprintf(out, "%5" PRIu32, symbol->section);
    fprintf(out, " %8" PRIx64 " %6" PRIu64 " %-6s %-7s %02x %s\n", symbol->value,
            symbol->size, bind_name(symbol->bind), symbol_type_name(symbol->type),
            symbol->other, symbol->name);
}

void dump_object(FILE *out, const struct object *object)
{
    fprintf(out, "object %s machine %" PRIu16 " flags 0x%" PRIx32 "\n", object->name,
            object->machine, object->flags);
    for (uint32_t i = 0; i < object->unit_count; i++)
        fprintf(out, "unit %" PRIu32 " %s features 0x%" PRIx32 "%s\n", i,
                object->units[i].name, object->units[i].features,
                object->units[i].helpers ? " helpers" : "");
    fprintf(out, "sections\n");
    for (uint32_t i = 1; i < object->section_count; i++)
        dump_section(out, object, i);
    for (uint32_t i = 0; i < object->group_count; i++) {
        const struct group *group = &object->groups[i];
        fprintf(out, "group %" PRIu32 " %s flags %" PRIu32 " members", i,
                object->symbols[group->signature].name, group->flags);
        for (uint32_t j = 0; j < group->member_count; j++)
            fprintf(out, " %" PRIu32, group->members[j]);
        fprintf(out, "\n");
    }
    fprintf(out, "symbols\n");
    for (uint32_t i = 1; i < object->symbol_count; i++)
        dump_symbol(out, &object->symbols[i], i);
    for (uint32_t i = 1; i < object->section_count; i++)
        dump_relocs(out, object, i);
}
