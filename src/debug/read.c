/* SPDX-License-Identifier: MIT
 *
 * All debug information of an object. Completeness is what matters: a position that nobody
 * finds stays as it was, and lies. So each relocation of a debug section that leads into
 * code must have been met as one of the fields; one that was not refuses its unit. Fields
 * without relocations are distances from such a field, in structures that only the fields
 * read here lead to.
 */
#include "internal.h"

#include <elf.h>
#include <string.h>

void refuse_unit(struct reader *reader, uint32_t unit, enum refusal why,
                 const char *text)
{
    if (reader->refused[unit] != REFUSAL_NONE)
        return;
    reader->refused[unit] = (uint8_t)why;
    reader->whys[unit] = text;
}

void refuse(struct reader *reader, uint32_t section, const char *text)
{
    refuse_unit(reader, reader->object->sections[section].unit, REFUSAL_DEBUG_INFO,
                text);
}

bool section_named(const struct reader *reader, uint32_t section, const char *name)
{
    return strcmp(reader->object->sections[section].name, name) == 0;
}

struct cursor cursor_at(const struct reader *reader, uint32_t section, uint64_t offset)
{
    struct cursor cursor = cursor_of(reader->object->sections[section].data);
    if (offset > cursor.size)
        cursor.failed = true;
    else
        cursor.position = offset;
    return cursor;
}

uint64_t field_uleb(struct cursor *cursor, uint32_t section, struct debug_field *field)
{
    uint64_t start = cursor->position, value = cursor_uleb(cursor);
    *field = (struct debug_field){section, (uint32_t)start, NO_INDEX,
                                  (uint8_t)(cursor->position - start), true};
    return value;
}

uint32_t take_reloc(struct reader *reader, uint32_t section, uint64_t offset)
{
    const struct section *of = &reader->object->sections[section];
    uint32_t reloc = section_reloc_at(of, offset);
    if (reloc >= of->reloc_count || of->relocs[reloc].offset != offset)
        return NO_INDEX;
    reader->seen[section][reloc] = true;
    return reloc;
}

static bool is_address(const struct object *object, uint32_t type)
{
    return type == (object->machine == EM_AARCH64 ? (uint32_t)R_AARCH64_ABS64
                                                  : (uint32_t)R_X86_64_64);
}

struct place_of read_place(struct reader *reader, uint32_t section, uint64_t offset,
                           struct debug_field *field)
{
    struct place_of place = {0};
    const struct object *object = reader->object;
    *field = (struct debug_field){section, (uint32_t)offset,
                                  take_reloc(reader, section, offset), 8, false};
    if (field->reloc == NO_INDEX)
        return place;
    const struct reloc *reloc = &object->sections[section].relocs[field->reloc];
    const struct symbol *symbol = &object->symbols[reloc->symbol];
    if (symbol->section == SECTION_UNDEFINED ||
        symbol->section >= object->section_count ||
        !section_is_code(&object->sections[symbol->section]))
        return place;
    int64_t position = wrapping_add((int64_t)symbol->value, reloc->addend);
    uint64_t size = object->sections[symbol->section].data.size;
    if (!is_address(object, reloc->type) || position < 0 || (uint64_t)position > size) {
        refuse(reader, section, "an address that is not understood");
        return place;
    }
    return (struct place_of){true, symbol->section, (uint32_t)position};
}

uint32_t read_link(struct reader *reader, uint32_t section, uint64_t offset,
                   uint32_t size, uint64_t *to)
{
    const struct object *object = reader->object;
    uint32_t number = take_reloc(reader, section, offset);
    (void)size; /* the relocation's type knows */
    if (number == NO_INDEX)
        return NO_INDEX;
    const struct reloc *reloc = &object->sections[section].relocs[number];
    const struct symbol *symbol = &object->symbols[reloc->symbol];
    if (symbol->section == SECTION_UNDEFINED ||
        symbol->section >= object->section_count ||
        !section_is_debug(&object->sections[symbol->section]))
        return NO_INDEX;
    int64_t position = wrapping_add((int64_t)symbol->value, reloc->addend);
    if (position < 0 ||
        (uint64_t)position > object->sections[symbol->section].data.size)
        return NO_INDEX;
    *to = (uint64_t)position;
    return symbol->section;
}

void add_point(struct reader *reader, enum debug_role role, struct place_of place,
               struct debug_field field)
{
    struct debug_point point = {.field = field,
                                .role = role,
                                .code = place.code,
                                .position = place.position,
                                .index = NOWHERE,
                                .spare = NO_INDEX,
                                .view = NOWHERE};
    array_push(reader->arena, &reader->points, point);
}

/* --- sections --- */

static bool has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static void read_section(struct reader *reader, uint32_t section)
{
    const struct section *of = &reader->object->sections[section];
    if (strcmp(of->name, ".debug_info") == 0)
        info_read(reader, section, false);
    else if (strcmp(of->name, ".debug_types") == 0)
        info_read(reader, section, true);
    else if (strcmp(of->name, ".debug_line") == 0)
        lines_read(reader, section);
    else if (strcmp(of->name, ".debug_aranges") == 0)
        aranges_read(reader, section);
}

static bool is_compressed(const struct section *section)
{
    return (section->flags & SHF_COMPRESSED) || has_prefix(section->name, ".zdebug_");
}

/* Compressed contents are not looked at, so nothing of the unit is. */
static bool is_readable(struct reader *reader, uint32_t section)
{
    const struct section *of = &reader->object->sections[section];
    bool compressed = is_compressed(of);
    if (compressed)
        refuse_unit(reader, of->unit, REFUSAL_DEBUG_COMPRESSED,
                    "compressed debug sections");
    return !compressed;
}

static bool leads_into_code(const struct object *object, const struct reloc *reloc)
{
    uint32_t section = object->symbols[reloc->symbol].section;
    return section != SECTION_UNDEFINED && section < object->section_count &&
           section_is_code(&object->sections[section]);
}

/* Addresses of a pool that no entry uses are still addresses. */
static void read_pool(struct reader *reader, uint32_t section)
{
    const struct section *of = &reader->object->sections[section];
    for (uint32_t i = 0; i < of->reloc_count; i++) {
        if (reader->seen[section][i])
            continue;
        struct debug_field field;
        struct place_of place =
            read_place(reader, section, of->relocs[i].offset, &field);
        if (place.known)
            add_point(reader, DEBUG_START, place, field);
    }
}

static void check_seen(struct reader *reader, uint32_t section)
{
    const struct section *of = &reader->object->sections[section];
    for (uint32_t i = 0; i < of->reloc_count; i++) {
        if (reader->seen[section][i] ||
            !leads_into_code(reader->object, &of->relocs[i]))
            continue;
        refuse(reader, section, "an address in a place that is not understood");
        return;
    }
}

/* Line programs are written anew, so what refers to one must name its start. */
static void check_links(struct reader *reader, uint32_t section)
{
    const struct object *object = reader->object;
    const struct section *of = &object->sections[section];
    for (uint32_t i = 0; i < of->reloc_count; i++) {
        const struct reloc *reloc = &of->relocs[i];
        const struct symbol *symbol = &object->symbols[reloc->symbol];
        if (symbol->section == SECTION_UNDEFINED ||
            symbol->section >= object->section_count ||
            !section_named(reader, symbol->section, ".debug_line"))
            continue;
        uint64_t to = symbol->value + (uint64_t)reloc->addend;
        bool found = false;
        for (uint32_t l = 0; l < reader->lines.count && !found; l++)
            found = reader->lines.items[l].section == symbol->section &&
                    reader->lines.items[l].start == to;
        if (!found || symbol->value != 0)
            refuse(reader, symbol->section, "a reference into a line program");
    }
}

/* "$d" (AAELF64 5.5.5), where several objects have become one: all of the section is
 * data, so that the mark says nothing wherever it stands. */
static bool is_data_mark(const struct symbol *symbol)
{
    return symbol->bind == STB_LOCAL && symbol->name[0] == '$' &&
           symbol->name[1] == 'd' && symbol->size == 0;
}

/* Symbols keep their values. */
static void check_symbols(struct reader *reader)
{
    for (uint32_t i = 1; i < reader->object->symbol_count; i++) {
        const struct symbol *symbol = &reader->object->symbols[i];
        if (symbol->section < reader->object->section_count && symbol->value != 0 &&
            !is_data_mark(symbol) &&
            section_named(reader, symbol->section, ".debug_line"))
            refuse(reader, symbol->section, "a symbol in a line program");
    }
}

/* An address that a call shares with something else may have to become another one for
 * the call; then its index has to change, in the room that it has. */
static void check_shared(struct reader *reader)
{
    uint32_t count = reader->object->section_count;
    bool **others = arena_new_array(reader->stage, bool *, count);
    for (uint32_t i = 0; i < reader->points.count; i++) {
        const struct debug_point *point = &reader->points.items[i];
        uint32_t s = point->field.section;
        if (point->role != DEBUG_START && point->role != DEBUG_ENTRY)
            continue;
        if (!others[s])
            others[s] = arena_new_array(reader->stage, bool,
                                        reader->object->sections[s].reloc_count);
        others[s][point->field.reloc] = true;
    }
    for (uint32_t i = 0; i < reader->points.count; i++) {
        const struct debug_point *point = &reader->points.items[i];
        uint32_t s = point->field.section;
        const struct debug_field *index = &point->index;
        bool moves = point->role != DEBUG_START && point->role != DEBUG_ENTRY;
        if (!moves || !others[s] || !others[s][point->field.reloc])
            continue;
        uint32_t bits = index->uleb ? 7u * index->size : 8u * index->size;
        if (index->section == NO_INDEX || point->spare == NO_INDEX ||
            !fits_unsigned(point->spare, bits))
            refuse(reader, s, "a call shares its address");
    }
}

static void read_all(struct reader *reader)
{
    const struct object *object = reader->object;
    for (uint32_t s = 1; s < object->section_count; s++) {
        const struct section *section = &object->sections[s];
        if (!section_is_debug(section))
            continue;
        reader->seen[s] = arena_new_array(reader->stage, bool, section->reloc_count);
    }
    for (uint32_t s = 1; s < object->section_count; s++)
        if (section_is_debug(&object->sections[s]) && is_readable(reader, s))
            read_section(reader, s);
    /* Offsets of relocations count in contents that are not compressed: where these are,
     * no field of ours lies. */
    for (uint32_t s = 1; s < object->section_count; s++) {
        const struct section *section = &object->sections[s];
        if (!section_is_debug(section) || is_compressed(section))
            continue;
        if (section_named(reader, s, ".debug_addr"))
            read_pool(reader, s);
        check_seen(reader, s);
    }
    for (uint32_t s = 1; s < object->section_count; s++)
        check_links(reader, s);
    check_symbols(reader);
    check_shared(reader);
}

/* --- the whole --- */

static bool has_debug(const struct object *object)
{
    for (uint32_t s = 1; s < object->section_count; s++)
        if (section_is_debug(&object->sections[s]))
            return true;
    return false;
}

static void finish(struct reader *reader, struct debug *out)
{
    *out = (struct debug){.points = reader->points.items,
                          .point_count = reader->points.count,
                          .ranges = reader->ranges.items,
                          .range_count = reader->ranges.count,
                          .expressions = reader->expressions.items,
                          .expression_count = reader->expressions.count,
                          .lines = reader->lines.items,
                          .lines_count = reader->lines.count,
                          .refused = reader->refused,
                          .whys = reader->whys};
}

void debug_read(struct arena *arena, const struct object *object, struct debug *out)
{
    struct reader reader = {.arena = arena, .stage = arena_new(), .object = object};
    reader.refused = arena_new_array(arena, uint8_t, object->unit_count);
    reader.whys = arena_new_array(arena, const char *, object->unit_count);
    if (has_debug(object)) {
        reader.seen = arena_new_array(reader.stage, bool *, object->section_count);
        reader.abbrevs = table_new(reader.stage);
        reader.lists = table_new(reader.stage);
        read_all(&reader);
    }
    finish(&reader, out);
    arena_free(reader.stage);
}

void debug_refused_code(const struct object *object, const struct debug *debug,
                        bool *sections)
{
    for (uint32_t s = 1; s < object->section_count; s++) {
        const struct section *section = &object->sections[s];
        if (debug->refused[section->unit] == REFUSAL_NONE)
            continue;
        sections[s] |= section_is_code(section);
        for (uint32_t i = 0; section_is_debug(section) && i < section->reloc_count; i++)
            if (leads_into_code(object, &section->relocs[i]))
                sections[object->symbols[section->relocs[i].symbol].section] = true;
    }
}
