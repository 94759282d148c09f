/* SPDX-License-Identifier: MIT
 *
 * What every object of ours satisfies, whoever made it: the reader from foreign bytes,
 * the merger, or the rewriter. So it is both a check of the input and an invariant.
 */
#include "mo/object.h"

#include <elf.h>
#include <inttypes.h>
#include <string.h>

struct checker {
    const struct object *object;
    struct error *err;
};

#define section_fail(checker, index, at, ...)                                          \
    fail((checker)->err,                                                               \
         (struct place[]){object_place((checker)->object, (index), (at))},             \
         __VA_ARGS__)
#define object_fail(checker, ...)                                                      \
    fail((checker)->err, &(struct place){.file = (checker)->object->name}, __VA_ARGS__)

/* Bytes of the field of an AArch64 relocation (aaelf64, 5.7). Instructions are words;
 * R_NONE and the TLSDESC_CALL marker change nothing. */
static uint32_t field_aarch64(uint32_t type)
{
    switch (type) {
    case R_AARCH64_NONE:
    case 256: return 0; /* the old number of R_AARCH64_NONE */
    case R_AARCH64_ABS64:
    case R_AARCH64_PREL64: return 8;
    case R_AARCH64_ABS16:
    case R_AARCH64_PREL16: return 2;
    default: return type >= R_AARCH64_COPY ? 8 : 4; /* dynamic relocations are words */
    }
}

/* The same for x86-64 (psABI, table 4.10). */
static uint32_t field_x86_64(uint32_t type)
{
    switch (type) {
    case R_X86_64_NONE:
    case R_X86_64_TLSDESC_CALL:
    case 250:           /* R_X86_64_GNU_VTINHERIT */
    case 251: return 0; /* R_X86_64_GNU_VTENTRY */
    case R_X86_64_8:
    case R_X86_64_PC8: return 1;
    case R_X86_64_16:
    case R_X86_64_PC16: return 2;
    case R_X86_64_64:
    case R_X86_64_PC64:
    case R_X86_64_DTPMOD64:
    case R_X86_64_DTPOFF64:
    case R_X86_64_TPOFF64:
    case R_X86_64_GOTOFF64:
    case R_X86_64_GOT64:
    case R_X86_64_GOTPCREL64:
    case R_X86_64_GOTPC64:
    case R_X86_64_GOTPLT64:
    case R_X86_64_PLTOFF64:
    case R_X86_64_SIZE64: return 8;
    default: return 4;
    }
}

/* Offsets of relocations count in the uncompressed contents. */
static uint64_t relocatable_size(const struct section *section)
{
    if (!(section->flags & SHF_COMPRESSED))
        return section->data.size;
    if (!section->data.at || section->data.size < sizeof(Elf64_Chdr))
        return 0;
    return load_le(section->data.at + offsetof(Elf64_Chdr, ch_size), 8);
}

static bool check_relocs(const struct checker *checker, uint32_t index)
{
    const struct object *object = checker->object;
    const struct section *section = &object->sections[index];
    uint64_t size = relocatable_size(section), last = 0;
    bool aarch64 = object->machine == EM_AARCH64;
    for (uint32_t i = 0; i < section->reloc_count; i++) {
        const struct reloc *reloc = &section->relocs[i];
        uint32_t field =
            aarch64 ? field_aarch64(reloc->type) : field_x86_64(reloc->type);
        if (reloc->offset > size || size - reloc->offset < field)
            return section_fail(checker, index, reloc->offset,
                                "relocation (type %" PRIu32
                                ") leaves the section, which ends at 0x%" PRIx64,
                                reloc->type, size);
        if (reloc->offset < last)
            return section_fail(checker, index, reloc->offset,
                                "relocations are unsorted");
        if (reloc->symbol >= object->symbol_count)
            return section_fail(checker, index, reloc->offset,
                                "relocation to symbol %" PRIu32 " of %" PRIu32,
                                reloc->symbol, object->symbol_count);
        last = reloc->offset;
    }
    return true;
}

static bool check_section(const struct checker *checker, uint32_t index)
{
    const struct object *object = checker->object;
    const struct section *section = &object->sections[index];
    if (section->unit >= object->unit_count)
        return object_fail(
            checker, "section %" PRIu32 " (%s) is in unit %" PRIu32 " of %" PRIu32,
            index, section->name, section->unit, object->unit_count);
    if (section->align == 0 || (section->align & (section->align - 1)))
        return section_fail(checker, index, 0,
                            "alignment %" PRIu64 " is no power of two", section->align);
    if (section->data.size > UINT32_MAX)
        return section_fail(checker, index, 0, "section of 4 GiB or more");
    if (section->data.size &&
        (section->data.at == NULL) != (section->type == SHT_NOBITS))
        return section_fail(checker, index, 0, "type and contents disagree");
    if (section->type == SHT_NOBITS && section->reloc_count)
        return section_fail(checker, index, 0, "relocations but no contents");
    if (section->link >= object->section_count)
        return section_fail(checker, index, 0,
                            "linked to section %" PRIu32 " of %" PRIu32, section->link,
                            object->section_count);
    if ((section->flags & SHF_INFO_LINK) && section->info >= object->section_count)
        return section_fail(checker, index, 0,
                            "refers to section %" PRIu32 " of %" PRIu32, section->info,
                            object->section_count);
    if (section->group != NO_INDEX && section->group >= object->group_count)
        return section_fail(checker, index, 0, "in group %" PRIu32 " of %" PRIu32,
                            section->group, object->group_count);
    return check_relocs(checker, index);
}

/* Linked-to sections are put in order by a linker, so the links must not go round.
 * Every section has one link: walk on until a section that is known to be fine, or that
 * was met on this same walk. */
static bool check_links(const struct checker *checker, struct arena *stage)
{
    const struct object *object = checker->object;
    uint32_t *walk = arena_new_array(stage, uint32_t, object->section_count);
    for (uint32_t i = 1; i < object->section_count; i++) {
        uint32_t at = i;
        while (at && !walk[at]) {
            walk[at] = i;
            at = object->sections[at].link;
        }
        if (at && walk[at] == i)
            return section_fail(checker, at, 0, "is linked to itself (sh_link)");
    }
    return true;
}

/* Where the symbol lies without its tag. Code and what describes it have none. */
static uint64_t untagged(const struct section *section, const struct symbol *symbol)
{
    bool data = (section->flags & SHF_ALLOC) && !(section->flags & SHF_EXECINSTR) &&
                !section_is_frame(section) && symbol->type == STT_OBJECT;
    return data ? symbol->value & ADDRESS_BITS : symbol->value;
}

static bool check_symbol(const struct checker *checker, uint32_t index)
{
    const struct object *object = checker->object;
    const struct symbol *symbol = &object->symbols[index];
    if (symbol->section == SECTION_ABSOLUTE || symbol->section == SECTION_UNDEFINED)
        return true;
    if (symbol->section == SECTION_COMMON) {
        if (symbol->value & (symbol->value - 1))
            return object_fail(checker,
                               "common symbol %s has alignment %" PRIu64
                               ", which is no power of two",
                               symbol->name, symbol->value);
        return true;
    }
    if (symbol->section >= object->section_count)
        return object_fail(
            checker, "symbol %" PRIu32 " (%s) is in section %" PRIu32 " of %" PRIu32,
            index, symbol->name, symbol->section, object->section_count);
    const struct section *section = &object->sections[symbol->section];
    uint64_t size = section->data.size, start = untagged(section, symbol);
    if (start > size || symbol->size > size - start)
        return section_fail(checker, symbol->section, symbol->value,
                            "symbol %s (0x%" PRIx64
                            " bytes) leaves the section, which ends at 0x%" PRIx64,
                            symbol->name, symbol->size, size);
    return true;
}

/* Members and their `group` agree, so no section is in two groups. */
static bool check_groups(const struct checker *checker)
{
    const struct object *object = checker->object;
    uint64_t listed = 0, marked = 0;
    for (uint32_t i = 0; i < object->group_count; i++) {
        const struct group *group = &object->groups[i];
        if (group->signature == 0 || group->signature >= object->symbol_count)
            return object_fail(
                checker, "group %" PRIu32 " is named by symbol %" PRIu32 " of %" PRIu32,
                i, group->signature, object->symbol_count);
        listed += group->member_count;
        for (uint32_t k = 0; k < group->member_count; k++) {
            uint32_t member = group->members[k];
            if (member == 0 || member >= object->section_count ||
                object->sections[member].group != i)
                return object_fail(checker,
                                   "group %" PRIu32 " lists section %" PRIu32
                                   ", which is not in it",
                                   i, member);
        }
    }
    for (uint32_t i = 1; i < object->section_count; i++)
        marked += object->sections[i].group != NO_INDEX;
    if (listed != marked)
        return object_fail(checker,
                           "%" PRIu64 " sections are in groups, which list %" PRIu64,
                           marked, listed);
    return true;
}

bool object_check(const struct object *object, struct error *err)
{
    const struct checker checker = {object, err};
    if (object->machine != EM_AARCH64 && object->machine != EM_X86_64)
        return object_fail(&checker, "machine %u is not supported", object->machine);
    if (object->section_count == 0 || object->symbol_count == 0)
        return object_fail(&checker, "there is no null section or no null symbol");
    for (uint32_t i = 1; i < object->section_count; i++) {
        if (!check_section(&checker, i))
            return false;
    }
    for (uint32_t i = 1; i < object->symbol_count; i++) {
        if (!check_symbol(&checker, i))
            return false;
    }
    struct arena *stage = arena_new();
    bool ok = check_links(&checker, stage) && check_groups(&checker);
    arena_free(stage);
    return ok;
}
