/* SPDX-License-Identifier: MIT
 *
 * Reading line programs (DWARF 5, 6.2), versions 2 to 5. The header is only measured: it
 * holds nothing that depends on positions. Of the program every row is kept, with its
 * position in code; opcodes that are not known refuse the unit.
 */
#include "internal.h"

struct machine {
    struct reader *reader;
    struct debug_lines *lines;
    struct cursor cursor;
    array_of(struct debug_sequence) sequences;
    array_of(struct debug_row) rows;
    struct debug_row row; /* registers, but for: */
    uint64_t address;     /* the position, or the address of what is not here */
    struct debug_sequence sequence;
    bool begun; /* the sequence has an address, or a row */
};

static void reset(struct machine *machine)
{
    machine->row = (struct debug_row){.file = 1,
                                      .line = 1,
                                      .is_stmt = machine->lines->default_is_stmt};
    machine->address = 0;
    machine->rows.items = NULL;
    machine->rows.count = machine->rows.capacity = 0;
    machine->sequence = (struct debug_sequence){
        .code = NO_INDEX,
        .reloc = NO_INDEX,
        .start = (uint32_t)machine->cursor.position};
    machine->begun = false;
}

/* The address is inside of the section, and no row goes back. */
static bool is_placed(const struct machine *machine)
{
    if (machine->sequence.code == NO_INDEX)
        return true;
    uint64_t size =
        machine->reader->object->sections[machine->sequence.code].data.size;
    return machine->address <= size &&
           (machine->rows.count == 0 ||
            machine->rows.items[machine->rows.count - 1].position <= machine->address);
}

static bool emit(struct machine *machine)
{
    if (!is_placed(machine))
        return false;
    machine->row.position = (uint32_t)machine->address;
    machine->begun = true;
    if (machine->sequence.code != NO_INDEX)
        array_push(machine->reader->arena, &machine->rows, machine->row);
    machine->row.discriminator = 0;
    machine->row.basic_block = machine->row.prologue_end =
        machine->row.epilogue_begin = false;
    return true;
}

static bool end_sequence(struct machine *machine)
{
    if (!is_placed(machine))
        return false;
    struct debug_sequence *sequence = &machine->sequence;
    sequence->last = (uint32_t)machine->address;
    sequence->rows = machine->rows.items;
    sequence->row_count = machine->rows.count;
    sequence->end = (uint32_t)machine->cursor.position;
    array_push(machine->reader->arena, &machine->sequences, *sequence);
    reset(machine);
    return true;
}

/* Only at the start of a sequence, or to go on in the same section. */
static bool set_address(struct machine *machine)
{
    struct debug_field field;
    struct debug_sequence *sequence = &machine->sequence;
    struct place_of place = read_place(machine->reader, machine->lines->section,
                                       machine->cursor.position, &field);
    uint64_t address = cursor_u64(&machine->cursor);
    if (machine->begun && (sequence->code == NO_INDEX) == place.known)
        return false;
    if (machine->begun && place.known && place.code != sequence->code)
        return false;
    machine->address = place.known ? place.position : address;
    if (!machine->begun && place.known) {
        sequence->code = place.code;
        sequence->reloc = field.reloc;
        sequence->address = place.position;
        const struct section *section =
            &machine->reader->object->sections[machine->lines->section];
        machine->lines->address_type = section->relocs[field.reloc].type;
    }
    machine->begun = true;
    return true;
}

static bool narrow(uint64_t value, uint32_t *out)
{
    *out = (uint32_t)value;
    return value <= UINT32_MAX;
}

static bool take_extended(struct machine *machine)
{
    struct cursor *cursor = &machine->cursor;
    uint64_t size = cursor_uleb(cursor), start = cursor->position;
    uint8_t op = cursor_u8(cursor);
    bool done = false;
    if (op == LNE_END_SEQUENCE)
        done = size == 1 && end_sequence(machine);
    else if (op == LNE_SET_ADDRESS)
        done = size == 9 && set_address(machine);
    else if (op == LNE_SET_DISCRIMINATOR)
        done = narrow(cursor_uleb(cursor), &machine->row.discriminator);
    return done && cursor_ok(cursor) && cursor->position == start + size;
}

static uint64_t advance_of(const struct machine *machine, uint32_t opcode)
{
    return (uint64_t)((opcode - machine->lines->opcode_base) /
                      machine->lines->line_range) *
           machine->lines->minimum_length;
}

static bool take_special(struct machine *machine, uint8_t op)
{
    uint32_t adjusted = (uint32_t)op - machine->lines->opcode_base;
    machine->address += advance_of(machine, op);
    machine->row.line += (uint32_t)(machine->lines->line_base +
                                    (int)(adjusted % machine->lines->line_range));
    return emit(machine);
}

static bool take_standard(struct machine *machine, uint8_t op)
{
    struct cursor *cursor = &machine->cursor;
    struct debug_row *row = &machine->row;
    switch (op) {
    case LNS_COPY: return emit(machine);
    case LNS_ADVANCE_PC:
        machine->address += cursor_uleb(cursor) * machine->lines->minimum_length;
        return true;
    case LNS_ADVANCE_LINE: row->line += (uint32_t)cursor_sleb(cursor); return true;
    case LNS_SET_FILE: return narrow(cursor_uleb(cursor), &row->file);
    case LNS_SET_COLUMN: return narrow(cursor_uleb(cursor), &row->column);
    case LNS_NEGATE_STMT: row->is_stmt = !row->is_stmt; return true;
    case LNS_SET_BASIC_BLOCK: row->basic_block = true; return true;
    case LNS_CONST_ADD_PC: machine->address += advance_of(machine, 255); return true;
    case LNS_FIXED_ADVANCE_PC: machine->address += cursor_u16(cursor); return true;
    case LNS_SET_PROLOGUE_END: row->prologue_end = true; return true;
    case LNS_SET_EPILOGUE_BEGIN: row->epilogue_begin = true; return true;
    case LNS_SET_ISA: return narrow(cursor_uleb(cursor), &row->isa);
    default: return false;
    }
}

static bool run(struct machine *machine)
{
    reset(machine);
    while (machine->cursor.position < machine->lines->end) {
        uint8_t op = cursor_u8(&machine->cursor);
        bool done = op >= machine->lines->opcode_base ? take_special(machine, op)
                    : op == 0                         ? take_extended(machine)
                                                      : take_standard(machine, op);
        if (!done || !cursor_ok(&machine->cursor) ||
            machine->cursor.position > machine->lines->end)
            return false;
    }
    return !machine->begun; /* a sequence without an end */
}

/* The numbers of operands are those that the standard gives its opcodes. */
static bool operands_are_standard(struct cursor *cursor, uint8_t opcode_base)
{
    static const uint8_t counts[LNS_COUNT] = {0, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
    for (uint32_t op = 1; op < opcode_base; op++) {
        uint8_t count = cursor_u8(cursor);
        if (op < LNS_COUNT && count != counts[op])
            return false;
    }
    return cursor_ok(cursor);
}

static bool read_header(struct cursor *cursor, struct debug_lines *lines)
{
    uint64_t length = cursor_u32(cursor);
    lines->length_size = length == UINT32_MAX ? 12 : 4;
    if (length == UINT32_MAX)
        length = cursor_u64(cursor);
    if (length > cursor_left(cursor))
        return false;
    lines->end = (uint32_t)(cursor->position + length);
    lines->version = cursor_u16(cursor);
    if (lines->version < 2 || lines->version > 5)
        return false;
    if (lines->version >= 5 && (cursor_u8(cursor) != 8 || cursor_u8(cursor) != 0))
        return false; /* size of an address, and of a segment selector */
    uint64_t header = lines->length_size == 12 ? cursor_u64(cursor) : cursor_u32(cursor);
    if (header > cursor_left(cursor) || cursor->position + header > lines->end)
        return false;
    lines->program = (uint32_t)(cursor->position + header);
    lines->minimum_length = cursor_u8(cursor);
    bool one = lines->version < 4 || cursor_u8(cursor) == 1; /* operations */
    lines->default_is_stmt = cursor_u8(cursor) != 0;
    lines->line_base = (int8_t)cursor_u8(cursor);
    lines->line_range = cursor_u8(cursor);
    lines->opcode_base = cursor_u8(cursor);
    return one && lines->line_range != 0 && lines->minimum_length != 0 &&
           lines->opcode_base >= LNS_FIXED_ADVANCE_PC + 1 &&
           operands_are_standard(cursor, lines->opcode_base);
}

static bool read_program(struct reader *reader, uint32_t section, uint64_t *at)
{
    struct debug_lines lines = {.section = section, .start = (uint32_t)*at};
    struct machine machine = {
        .reader = reader, .lines = &lines, .cursor = cursor_at(reader, section, *at)};
    if (!read_header(&machine.cursor, &lines))
        return false;
    machine.cursor.position = lines.program;
    if (!run(&machine))
        return false;
    lines.sequences = machine.sequences.items;
    lines.sequence_count = machine.sequences.count;
    array_push(reader->arena, &reader->lines, lines);
    *at = lines.end;
    return true;
}

void lines_read(struct reader *reader, uint32_t section)
{
    uint64_t at = 0, size = reader->object->sections[section].data.size;
    while (at < size) {
        if (!read_program(reader, section, &at)) {
            refuse(reader, section, "a line program that cannot be read");
            return;
        }
    }
}

const struct debug_row *debug_row_at(const struct debug_sequence *sequence,
                                     uint32_t position)
{
    uint32_t low = 0, high = sequence->row_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (sequence->rows[middle].position <= position)
            low = middle + 1;
        else
            high = middle;
    }
    return low && position < sequence->last ? &sequence->rows[low - 1] : NULL;
}
