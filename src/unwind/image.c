/* SPDX-License-Identifier: MIT
 *
 * Reading CIEs and FDEs with libdwarf, which wants what a relocatable object does not
 * have: addresses.
 *
 * In an object every section lies at address 0 and the fields that matter (pc_begin,
 * the personality, the LSDA pointer) are holes that relocations fill. So we link a
 * little: every section gets a pseudo address, the accepted records (walk.c) are copied
 * into an image that has an address as well, and the relocations are applied to the
 * copy. libdwarf gets the image as the one section of an object that lives in memory.
 *
 * An image holds the records of many sections, because setting up libdwarf costs more
 * than reading a small section, and a merged object has thousands of them. But libdwarf
 * looks for the CIE of a record in a list, so an image ends after CIES_PER_IMAGE.
 *
 * The copy differs from the original in what keeps libdwarf (20210528) content:
 *   - CIE pointers are recomputed, only accepted records are there;
 *   - records are padded to eight bytes: others make it format a complaint for each;
 *   - the letter 'B' (Arm's second key) becomes 'S': both have no data, and libdwarf
 *     rejects a whole section for a letter that it does not know;
 *   - zeros follow: it wants a byte to look at behind the last record.
 *
 * What libdwarf says is compared with what our own walk found. Where the two disagree
 * the entry is not agreed, and its reader refuses it.
 */
#include "internal.h"

#include <elf.h>
#include <libdwarf.h>
#include <string.h>

enum { CIES_PER_IMAGE = 128, IMAGE_ALIGN = 8, TAIL = 16 };

/* First pseudo address; 0 is for what is not here. */
static const uint64_t FIRST_ADDRESS = 0x10000;

struct image {
    struct entry *entries; /* of this image */
    uint32_t count;
    uint32_t *offsets; /* of each entry's record, in the image */
    uint64_t address;
    struct buffer bytes;
};

/* Pseudo addresses of all sections; the last one is where the images start. */
static uint64_t *place_sections(struct arena *arena, const struct object *object)
{
    uint64_t *addresses = arena_new_array(arena, uint64_t, object->section_count + 1);
    uint64_t next = FIRST_ADDRESS;
    for (uint32_t i = 0; i < object->section_count; i++) {
        addresses[i] = next;
        next = align_up(next + object->sections[i].data.size, 16);
    }
    addresses[object->section_count] = next;
    return addresses;
}

static uint64_t symbol_address(const struct object *object, const uint64_t *addresses,
                               uint32_t index)
{
    if (index >= object->symbol_count)
        return 0;
    const struct symbol *symbol = &object->symbols[index];
    if (symbol->section == SECTION_UNDEFINED ||
        symbol->section >= object->section_count)
        return 0;
    return addresses[symbol->section] + symbol->value;
}

/* --- making the image ---
 */

static void relocate(struct image *image, const struct object *object,
                     const uint64_t *addresses, const struct entry *entry, uint32_t at)
{
    const struct section *section = &object->sections[entry->walk->section];
    const struct record *record = entry->record;
    for (uint32_t i = 0; i < record->reloc_count; i++) {
        const struct reloc *reloc = &section->relocs[record->reloc + i];
        uint32_t field = (uint32_t)(reloc->offset - record->offset);
        const struct cie *cie = &entry->walk->cies[record->cie];
        uint8_t encoding = record->is_cie                  ? cie->personality_encoding
                           : reloc->offset == record->lsda ? cie->lsda_encoding
                                                           : cie->fde_encoding;
        uint64_t value =
            symbol_address(object, addresses, reloc->symbol) + (uint64_t)reloc->addend;
        if ((encoding & PE_APPLICATION) == PE_PCREL)
            value -= image->address + at + field;
        store_le(image->bytes.at + at + field, pointer_size(encoding), value);
    }
}

/* The letters of a CIE that libdwarf does not know, but we do. */
static void translate_letters(uint8_t *cie)
{
    for (uint8_t *letter = cie + 9; *letter; letter++)
        if (*letter == 'B')
            *letter = 'S';
}

/* Copies the entry's record to the end of the image. */
static void add_record(struct image *image, const struct object *object,
                       const uint64_t *addresses, uint32_t index, uint32_t cie_at)
{
    const struct entry *entry = &image->entries[index];
    const struct record *record = entry->record;
    uint32_t at = (uint32_t)image->bytes.size;
    const uint8_t *bytes = object->sections[entry->walk->section].data.at;
    image->offsets[index] = at;
    buffer_put(&image->bytes, bytes + record->offset, record->size);
    buffer_fill(&image->bytes, CFA_NOP,
                align_up(record->size, IMAGE_ALIGN) - record->size);
    uint8_t *copy = image->bytes.at + at;
    store_le(copy, 4, image->bytes.size - at - 4);
    if (record->is_cie)
        translate_letters(copy);
    else
        store_le(copy + 4, 4, at + 4 - cie_at);
    relocate(image, object, addresses, entry, at);
}

static void build_image(struct arena *arena, const struct object *object,
                        const uint64_t *addresses, struct image *image)
{
    image->offsets = arena_new_array(arena, uint32_t, image->count);
    image->bytes = buffer_new(arena);
    array_of(uint32_t) cie_at = {0}; /* by index in walk.cies */
    const struct walk *walk = NULL;
    for (uint32_t i = 0; i < image->count; i++) {
        const struct entry *entry = &image->entries[i];
        if (entry->walk != walk)
            cie_at.count = 0;
        walk = entry->walk;
        if (entry->record->is_cie)
            while (cie_at.count <= entry->record->cie)
                array_push(arena, &cie_at, (uint32_t)image->bytes.size);
        add_record(image, object, addresses, i, cie_at.items[entry->record->cie]);
    }
    buffer_fill(&image->bytes, 0, TAIL);
}

/* --- libdwarf's view of the image --- */

static int section_info(void *object, Dwarf_Half index, Dwarf_Obj_Access_Section *out,
                        int *error)
{
    const struct image *image = object;
    (void)error;
    /* The null section of ELF is 0; libdwarf takes index 0 for "not there". */
    *out = (Dwarf_Obj_Access_Section){.name = index == 1 ? ".eh_frame" : "",
                                      .type = index == 1 ? SHT_PROGBITS : SHT_NULL,
                                      .addr = index == 1 ? image->address : 0,
                                      .size = index == 1 ? image->bytes.size : 0};
    return index <= 1 ? DW_DLV_OK : DW_DLV_NO_ENTRY;
}

static Dwarf_Endianness byte_order(void *object)
{
    (void)object;
    return DW_OBJECT_LSB;
}

static Dwarf_Small length_size(void *object)
{
    (void)object;
    return 4;
}

static Dwarf_Small address_size(void *object)
{
    (void)object;
    return 8;
}

static Dwarf_Unsigned section_count(void *object)
{
    (void)object;
    return 2;
}

static int load_section(void *object, Dwarf_Half index, Dwarf_Small **data, int *error)
{
    const struct image *image = object;
    (void)error;
    *data = image->bytes.at;
    return index == 1 ? DW_DLV_OK : DW_DLV_NO_ENTRY;
}

static const Dwarf_Obj_Access_Methods METHODS = {
    .get_section_info = section_info,
    .get_byte_order = byte_order,
    .get_length_size = length_size,
    .get_pointer_size = address_size,
    .get_section_count = section_count,
    .load_section = load_section,
};

/* --- comparing --- */

/* The entry whose record lies at an offset of the image, or NULL. */
static struct entry *entry_at(const struct image *image, uint64_t offset)
{
    uint32_t low = 0, high = image->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (image->offsets[middle] < offset)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < image->count && image->offsets[low] == offset;
    return found ? &image->entries[low] : NULL;
}

/* Takes over the instructions when they lie where our walk saw them. */
static bool take_program(const struct image *image, struct entry *entry,
                         const void *program, Dwarf_Unsigned size)
{
    const struct record *record = entry->record;
    uint64_t header = record->program - record->offset;
    uint64_t padded = align_up(record->size, IMAGE_ALIGN);
    const uint8_t *expected =
        image->bytes.at + image->offsets[entry - image->entries] + header;
    entry->program = (struct bytes){expected, record->size - header};
    return (const uint8_t *)program == expected && size == padded - header;
}

static void take_cie(const struct image *image, Dwarf_Cie cie)
{
    Dwarf_Off offset;
    Dwarf_Unsigned size, code_align, program_size;
    Dwarf_Signed data_align;
    Dwarf_Half column, offset_size;
    Dwarf_Small version;
    Dwarf_Ptr program;
    char *letters;
    Dwarf_Error error; /* not NULL, or libdwarf would abort */
    if (dwarf_cie_section_offset(NULL, cie, &offset, &error) != DW_DLV_OK ||
        dwarf_get_cie_info_b(cie, &size, &version, &letters, &code_align, &data_align,
                             &column, &program, &program_size, &offset_size,
                             &error) != DW_DLV_OK)
        return;
    struct entry *entry = entry_at(image, offset);
    if (!entry || !entry->record->is_cie)
        return;
    const struct cie *ours = &entry->walk->cies[entry->record->cie];
    entry->agreed = ours->code_align == code_align && ours->data_align == data_align &&
                    ours->return_column == column &&
                    take_program(image, entry, program, program_size);
}

static void take_fde(const struct image *image, Dwarf_Fde fde,
                     const uint64_t *addresses)
{
    Dwarf_Off offset, cie_offset;
    Dwarf_Addr low;
    Dwarf_Unsigned length, size, program_size, data_size = 0;
    Dwarf_Signed cie_index;
    Dwarf_Ptr bytes, program;
    Dwarf_Small *data;
    Dwarf_Error error;
    if (dwarf_get_fde_range(fde, &low, &length, &bytes, &size, &cie_offset, &cie_index,
                            &offset, &error) != DW_DLV_OK ||
        dwarf_get_fde_instr_bytes(fde, &program, &program_size, &error) != DW_DLV_OK)
        return;
    struct entry *entry = entry_at(image, offset);
    if (!entry || entry->record->is_cie)
        return;
    const struct cie *cie = &entry->walk->cies[entry->record->cie];
    if (cie->augmented &&
        dwarf_get_fde_augmentation_data(fde, &data, &data_size, &error) != DW_DLV_OK)
        return;
    uint32_t bits = 8 * pointer_size(cie->fde_encoding);
    uint64_t mask = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
    uint64_t expected = low;
    if (entry->target.section != NO_INDEX)
        expected = addresses[entry->target.section] + entry->target.offset;
    entry->range = length & mask;
    entry->agreed = !((low ^ expected) & mask) && data_size == lsda_size(cie) &&
                    take_program(image, entry, program, program_size);
}

static void read_image(struct image *image, const uint64_t *addresses)
{
    Dwarf_Obj_Access_Interface access = {image, &METHODS};
    Dwarf_Debug debug = NULL;
    Dwarf_Error error = NULL;
    int status =
        dwarf_object_init_b(&access, NULL, NULL, DW_GROUPNUMBER_BASE, &debug, &error);
    if (status != DW_DLV_OK) {
        if (status == DW_DLV_ERROR)
            dwarf_dealloc(NULL, error, DW_DLA_ERROR);
        return;
    }
    Dwarf_Cie *cies = NULL;
    Dwarf_Fde *fdes = NULL;
    Dwarf_Signed cie_count = 0, fde_count = 0;
    status = dwarf_get_fde_list_eh(debug, &cies, &cie_count, &fdes, &fde_count, &error);
    if (status == DW_DLV_OK) {
        for (Dwarf_Signed i = 0; i < cie_count; i++)
            take_cie(image, cies[i]);
        for (Dwarf_Signed i = 0; i < fde_count; i++)
            take_fde(image, fdes[i], addresses);
    }
    /* Frees the lists, their members and the error as well. */
    dwarf_object_finish(debug, NULL);
}

void image_read(struct arena *arena, const struct object *object, struct entry *entries,
                uint32_t count)
{
    uint64_t *addresses = place_sections(arena, object);
    uint64_t next = addresses[object->section_count];
    uint32_t i = 0;
    while (i < count) {
        struct image image = {.entries = &entries[i], .address = next};
        uint32_t cies = 0;
        /* A new image starts where a section starts: an FDE needs its CIE beside it. */
        while (i + image.count < count) {
            const struct entry *entry = &image.entries[image.count];
            bool new_section = image.count && entry->walk != entry[-1].walk;
            if (new_section && cies >= CIES_PER_IMAGE)
                break;
            cies += entry->record->is_cie;
            image.count++;
        }
        build_image(arena, object, addresses, &image);
        read_image(&image, addresses);
        next = align_up(next + image.bytes.size, 16);
        i += image.count;
    }
}
