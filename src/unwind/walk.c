/* SPDX-License-Identifier: MIT
 *
 * The records of an .eh_frame section, found by ourselves before anybody else looks.
 *
 * An .eh_frame section is a chain of records: a length, an identification (0 for a CIE,
 * the distance back to its CIE for an FDE), the fields, the instructions, padding. A
 * zero length ends the chain (LSB core, 10.6). Bytes come from a file that anybody may
 * have written, and libdwarf is easily led astray by a wrong one; so this walk checks
 * that the chain holds together, and only what it understands goes further:
 *
 *   - a chain that leads outside, an unknown version, a CIE pointer that meets no CIE:
 *     nothing in the section can be trusted, an error;
 *   - a record that is sound as a link of the chain, but whose inside we do not
 *     understand: REFUSAL_BAD_FRAME for the record (for a CIE: and all its FDEs).
 * Writing can still carry it through, because nothing inside it needs to change.
 *
 * Not accepted: 64-bit lengths (no producer, and linkers refuse them), the "eh"
 * augmentation of GCC 2, pointers of two bytes or in LEB128, DW_EH_PE_aligned.
 */
#include "internal.h"

#include <elf.h>
#include <stdarg.h>
#include <stdio.h>

enum { RETURN_COLUMN_LIMIT = 128 };

uint32_t pointer_size(uint8_t encoding)
{
    if (encoding == PE_OMIT || (encoding & PE_APPLICATION) == PE_ALIGNED)
        return 0;
    switch (encoding & PE_FORMAT) {
    case PE_UDATA2:
    case PE_SDATA2: return 2;
    case PE_UDATA4:
    case PE_SDATA4: return 4;
    case PE_ABSPTR:
    case PE_UDATA8:
    case PE_SDATA8: return 8;
    default: return 0;
    }
}

uint32_t lsda_size(const struct cie *cie)
{
    return cie->lsda_encoding == PE_OMIT ? 0 : pointer_size(cie->lsda_encoding);
}

/* pc_begin and pc_range: absolute or relative to their place, four or eight bytes. */
static bool fde_encoding_known(uint8_t encoding)
{
    uint8_t application = encoding & (PE_APPLICATION | PE_INDIRECT);
    return pointer_size(encoding) >= 4 && (application == 0 || application == PE_PCREL);
}

struct walker {
    struct arena *arena;
    const struct object *object;
    const struct section *section;
    uint32_t index; /* of the section */
    array_of(struct record) records;
    array_of(struct cie) cies;
    uint32_t fde_count;
    uint32_t last_cie; /* where the CIE pointer led last time */
    uint32_t reloc;    /* first relocation that no record has taken */
    struct error *err;
};

MO_PRINTF(3, 4)
static bool untrusted(const struct walker *walker, uint64_t offset, const char *format,
                      ...)
{
    char text[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const struct object *object = walker->object;
    uint32_t unit = walker->section->unit;
    const char *file =
        unit < object->unit_count ? object->units[unit].name : object->name;
    struct place place = {
        .file = file, .section = walker->section->name, .offset = offset};
    return fail(walker->err, &place, "%s", text);
}

/* A cursor over the rest of a record, positions being section offsets. */
static struct cursor cursor_in(const struct walker *walker, const struct record *record,
                               uint32_t position)
{
    struct cursor cursor = cursor_of(walker->section->data);
    cursor.position = position;
    cursor.size = record->offset + record->size;
    return cursor;
}

/* The augmentation data that the letters after 'z' speak of. Returns false for a letter
 * or an encoding that we do not know; *personality is the place of that pointer. */
static bool read_augmentation(const char *letters, struct cursor *data, struct cie *cie,
                              uint64_t *personality)
{
    for (; *letters; letters++) {
        switch (*letters) {
        case 'R': cie->fde_encoding = cursor_u8(data); break;
        case 'L': cie->lsda_encoding = cursor_u8(data); break;
        case 'S': cie->signal_frame = true; break;
        case 'B': cie->b_key = true; break;
        case 'P':
            cie->has_personality = true;
            cie->personality_encoding = cursor_u8(data);
            *personality = data->position;
            if (!pointer_size(cie->personality_encoding))
                return false;
            cursor_take(data, pointer_size(cie->personality_encoding));
            break;
        default: return false;
        }
    }
    return cursor_ok(data);
}

/* The inside of a CIE behind its augmentation string. False: not understood. */
static bool read_cie_fields(struct cursor *cursor, uint8_t version, const char *letters,
                            struct cie *cie, uint64_t *personality)
{
    cie->fde_encoding = PE_ABSPTR;
    cie->lsda_encoding = PE_OMIT;
    cie->personality_encoding = PE_OMIT;
    cie->augmented = letters[0] == 'z';
    if (letters[0] && !cie->augmented)
        return false;
    cie->code_align = cursor_uleb(cursor);
    cie->data_align = cursor_sleb(cursor);
    uint64_t column = version == 1 ? cursor_u8(cursor) : cursor_uleb(cursor);
    cie->return_column = (uint32_t)column;
    if (cie->augmented) {
        struct cursor data = *cursor;
        uint64_t size = cursor_uleb(&data);
        cursor->position = data.position;
        cursor->failed |= data.failed;
        cursor_take(cursor, size);
        data.size = cursor->position;
        if (!cursor_ok(cursor) ||
            !read_augmentation(letters + 1, &data, cie, personality))
            return false;
    }
    /* libdwarf keeps the code's factor in one byte; nobody needs more. */
    return cursor_ok(cursor) && cie->code_align >= 1 && cie->code_align <= 255 &&
           cie->data_align && ROW_FACTOR % cie->data_align == 0 &&
           column < RETURN_COLUMN_LIMIT && fde_encoding_known(cie->fde_encoding) &&
           (cie->lsda_encoding == PE_OMIT || lsda_size(cie));
}

/* True when the record's relocations lie at these places only. */
static bool relocs_only_at(const struct walker *walker, const struct record *record,
                           uint64_t first, uint64_t second)
{
    for (uint32_t i = 0; i < record->reloc_count; i++) {
        uint64_t offset = walker->section->relocs[record->reloc + i].offset;
        bool again =
            i && offset == walker->section->relocs[record->reloc + i - 1].offset;
        if (again || (offset != first && offset != second))
            return false;
    }
    return true;
}

static bool walk_cie(struct walker *walker, struct record *record)
{
    struct cursor cursor = cursor_in(walker, record, record->offset + 8);
    uint8_t version = cursor_u8(&cursor);
    if (version != 1 && version != 3)
        return untrusted(walker, record->offset, "unwind entry of unknown version %u",
                         version);
    const char *letters = cursor_string(&cursor);
    struct cie cie = {.section = walker->index, .offset = record->offset};
    uint64_t personality = 0;
    if (!cursor_ok(&cursor) ||
        !read_cie_fields(&cursor, version, letters, &cie, &personality) ||
        !relocs_only_at(walker, record, personality, personality))
        cie.refusal = REFUSAL_BAD_FRAME;
    if (cie.refusal == REFUSAL_NONE && cie.has_personality && record->reloc_count)
        cie.personality = walker->section->relocs[record->reloc].symbol;
    record->is_cie = true;
    record->cie = walker->cies.count;
    record->program = (uint32_t)cursor.position;
    record->refusal = cie.refusal;
    array_push(walker->arena, &walker->cies, cie);
    return true;
}

/* Index of the CIE at a section offset, or NO_INDEX. */
static uint32_t find_cie(struct walker *walker, uint32_t offset)
{
    const struct cie *cies = walker->cies.items;
    if (walker->last_cie < walker->cies.count &&
        cies[walker->last_cie].offset == offset)
        return walker->last_cie;
    uint32_t low = 0, high = walker->cies.count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (cies[middle].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == walker->cies.count || cies[low].offset != offset)
        return NO_INDEX;
    walker->last_cie = low;
    return low;
}

static bool walk_fde(struct walker *walker, struct record *record, uint32_t distance)
{
    uint32_t field = record->offset + 4;
    record->cie = distance <= field ? find_cie(walker, field - distance) : NO_INDEX;
    if (record->cie == NO_INDEX)
        return untrusted(walker, record->offset, "unwind entry whose CIE is not there");
    walker->fde_count++;
    const struct cie *cie = &walker->cies.items[record->cie];
    record->refusal = cie->refusal;
    if (cie->refusal != REFUSAL_NONE)
        return true;
    uint32_t pointer = pointer_size(cie->fde_encoding);
    struct cursor cursor = cursor_in(walker, record, record->offset + 8);
    cursor_take(&cursor, 2 * pointer);
    if (cie->augmented) {
        /* One byte of length, as every producer writes it; fde_size() counts on it. */
        bool expected = cursor_u8(&cursor) == lsda_size(cie);
        if (lsda_size(cie))
            record->lsda = (uint32_t)cursor.position;
        cursor_take(&cursor, lsda_size(cie));
        cursor.failed |= !expected;
    }
    record->program = (uint32_t)cursor.position;
    uint32_t begin = record->offset + 8;
    if (!cursor_ok(&cursor) ||
        !relocs_only_at(walker, record, begin, record->lsda ? record->lsda : begin))
        record->refusal = REFUSAL_BAD_FRAME;
    return true;
}

/* Takes the relocations of the record out of those that are left. */
static void take_relocs(struct walker *walker, struct record *record)
{
    const struct section *section = walker->section;
    uint64_t end = (uint64_t)record->offset + record->size;
    record->reloc = walker->reloc;
    while (walker->reloc < section->reloc_count &&
           section->relocs[walker->reloc].offset < end)
        walker->reloc++;
    record->reloc_count = walker->reloc - record->reloc;
}

static bool walk_record(struct walker *walker, struct cursor *cursor, uint32_t length)
{
    struct record record = {.offset = (uint32_t)(cursor->position - 4),
                            .size = length + 4};
    if (length == UINT32_MAX)
        return untrusted(walker, record.offset,
                         "64-bit unwind entries are not supported");
    uint32_t id = cursor_u32(cursor);
    if (length < 4 || (cursor_take(cursor, length - 4), !cursor_ok(cursor)))
        return untrusted(walker, record.offset, "unwind entry of %u bytes does not fit",
                         length);
    take_relocs(walker, &record);
    /* Length and identification are what the chain hangs on. */
    if (record.reloc_count &&
        walker->section->relocs[record.reloc].offset < record.offset + UINT64_C(8))
        return untrusted(walker, record.offset,
                         "relocation in the header of an unwind entry");
    if (id == 0 ? !walk_cie(walker, &record) : !walk_fde(walker, &record, id))
        return false;
    array_push(walker->arena, &walker->records, record);
    return true;
}

/* Behind the terminator nothing but zeros may follow: nobody would read it. */
static bool check_end(const struct walker *walker, uint64_t end)
{
    const struct bytes *data = &walker->section->data;
    for (uint64_t i = end; i < data->size; i++)
        if (data->at[i])
            return untrusted(walker, i, "unwind entry behind the terminator");
    if (walker->reloc < walker->section->reloc_count)
        return untrusted(walker, end, "relocation outside of every unwind entry");
    return true;
}

bool walk_section(struct arena *arena, const struct object *object, uint32_t section,
                  struct walk *out, struct error *err)
{
    struct walker walker = {.arena = arena,
                            .object = object,
                            .section = &object->sections[section],
                            .index = section,
                            .err = err};
    if (walker.section->data.size >= UINT32_MAX)
        return untrusted(&walker, 0, "unwind table of 4 GiB or more");
    if (walker.section->data.size && !walker.section->data.at)
        return untrusted(&walker, 0, "unwind table without contents");
    struct cursor cursor = cursor_of(walker.section->data);
    uint64_t end = cursor.size;
    while (cursor_left(&cursor)) {
        uint32_t length = cursor_u32(&cursor);
        if (!cursor_ok(&cursor))
            return untrusted(&walker, cursor.position, "unwind entry is cut off");
        if (length == 0) {
            end = cursor.position - 4;
            break;
        }
        if (!walk_record(&walker, &cursor, length))
            return false;
    }
    if (!check_end(&walker, end))
        return false;
    *out = (struct walk){section,           walker.records.items, walker.records.count,
                         walker.cies.items, walker.cies.count,    walker.fde_count,
                         (uint32_t)end};
    return true;
}

/* --- where an FDE points to ---
 */

bool reloc_fits(uint16_t machine, uint32_t type, uint32_t size, bool relative)
{
    static const struct {
        uint16_t machine;
        uint8_t size;
        bool relative;
        uint32_t type;
    } known[] = {
        {EM_X86_64,  4, true,  R_X86_64_PC32   },
        {EM_X86_64,  8, true,  R_X86_64_PC64   },
        {EM_X86_64,  4, false, R_X86_64_32     },
        {EM_X86_64,  8, false, R_X86_64_64     },
        {EM_AARCH64, 4, true,  R_AARCH64_PREL32},
        {EM_AARCH64, 8, true,  R_AARCH64_PREL64},
        {EM_AARCH64, 4, false, R_AARCH64_ABS32 },
        {EM_AARCH64, 8, false, R_AARCH64_ABS64 },
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].machine == machine && known[i].type == type)
            return known[i].size == size && known[i].relative == relative;
    return false;
}

struct target_place fde_target(const struct object *object, const struct walk *walk,
                               const struct record *record)
{
    struct target_place nowhere = {NO_INDEX, 0, true};
    if (!record->reloc_count)
        return nowhere;
    const struct reloc *reloc = &object->sections[walk->section].relocs[record->reloc];
    if (reloc->offset != record->offset + UINT64_C(8))
        return nowhere;
    if (reloc->symbol >= object->symbol_count)
        return nowhere;
    const struct symbol *symbol = &object->symbols[reloc->symbol];
    if (symbol->section == SECTION_UNDEFINED ||
        symbol->section >= object->section_count)
        return nowhere;
    uint64_t offset = symbol->value + (uint64_t)reloc->addend;
    nowhere.understood = false;
    if (offset > object->sections[symbol->section].data.size || offset >= UINT32_MAX)
        return nowhere;
    const struct cie *cie = &walk->cies[record->cie];
    bool relative = (cie->fde_encoding & PE_APPLICATION) == PE_PCREL;
    bool fits = cie->refusal == REFUSAL_NONE &&
                reloc_fits(object->machine, reloc->type,
                           pointer_size(cie->fde_encoding), relative);
    return (struct target_place){symbol->section, (uint32_t)offset, fits};
}
