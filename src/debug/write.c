/* SPDX-License-Identifier: MIT
 *
 * Writing fields and line programs. Opcodes are chosen as assemblers do: what has changed
 * is stated, and the row itself by a special opcode where one fits.
 */
#include "internal.h"

#include <assert.h>
#include <string.h>

bool debug_store(uint8_t *data, const struct debug_field *field, uint64_t value)
{
    uint32_t bits = field->uleb ? field->size * 7u : field->size * 8u;
    if (bits < 64 && !fits_unsigned(value, bits))
        return false;
    uint8_t *at = data + field->offset;
    for (uint32_t i = 0; i < field->size; i++) {
        at[i] = field->uleb
                    ? (uint8_t)((value & 0x7f) | (i + 1 < field->size ? 0x80 : 0))
                    : (uint8_t)value;
        value >>= field->uleb ? 7 : 8;
    }
    return true;
}

/* --- line programs --- */

struct line_writer {
    struct arena *arena;
    const struct debug_lines *lines;
    struct buffer out;
    array_of(struct reloc) relocs;
    struct debug_row row; /* what a reader knows by now */
};

static void put_extended(struct buffer *out, uint8_t op, uint64_t size)
{
    buffer_u8(out, 0);
    buffer_uleb(out, size + 1);
    buffer_u8(out, op);
}

static void set_address(struct line_writer *writer, struct reloc reloc)
{
    put_extended(&writer->out, LNE_SET_ADDRESS, 8);
    reloc.offset = writer->out.size;
    array_push(writer->arena, &writer->relocs, reloc);
    buffer_u64(&writer->out, 0);
    writer->row = (struct debug_row){
        .file = 1, .line = 1, .is_stmt = writer->lines->default_is_stmt};
}

static void put_discriminator(struct line_writer *writer, uint32_t discriminator)
{
    struct buffer number = buffer_new(writer->arena);
    buffer_uleb(&number, discriminator);
    put_extended(&writer->out, LNE_SET_DISCRIMINATOR, number.size);
    buffer_put(&writer->out, number.at, number.size);
}

static void put_number(struct buffer *out, uint8_t op, uint64_t number)
{
    buffer_u8(out, op);
    buffer_uleb(out, number);
}

static void put_registers(struct line_writer *writer, const struct debug_row *row)
{
    struct buffer *out = &writer->out;
    const struct debug_row *old = &writer->row;
    if (row->file != old->file)
        put_number(out, LNS_SET_FILE, row->file);
    if (row->column != old->column)
        put_number(out, LNS_SET_COLUMN, row->column);
    if (row->discriminator)
        put_discriminator(writer, row->discriminator);
    /* The opcodes of version 3 are there if the row has what they say. */
    if (row->isa != old->isa)
        put_number(out, LNS_SET_ISA, row->isa);
    if (row->is_stmt != old->is_stmt)
        buffer_u8(out, LNS_NEGATE_STMT);
    if (row->basic_block)
        buffer_u8(out, LNS_SET_BASIC_BLOCK);
    if (row->prologue_end)
        buffer_u8(out, LNS_SET_PROLOGUE_END);
    if (row->epilogue_begin)
        buffer_u8(out, LNS_SET_EPILOGUE_BEGIN);
}

/* The special opcode for these steps; 0: none. */
static uint32_t special(const struct debug_lines *lines, int64_t line, uint64_t advance)
{
    int64_t most = 255 - lines->opcode_base;
    int64_t rest = line - lines->line_base;
    if (rest < 0 || rest >= lines->line_range || advance > 255)
        return 0;
    int64_t opcode = rest + (int64_t)advance * lines->line_range;
    return opcode <= most ? (uint32_t)(opcode + lines->opcode_base) : 0;
}

static uint64_t steps(const struct debug_lines *lines, uint32_t from, uint32_t to)
{
    assert(to >= from && (to - from) % lines->minimum_length == 0);
    return (to - from) / lines->minimum_length;
}

static void put_row(struct line_writer *writer, const struct debug_row *row)
{
    const struct debug_lines *lines = writer->lines;
    struct buffer *out = &writer->out;
    uint64_t advance = steps(lines, writer->row.position, row->position);
    int64_t line = (int64_t)row->line - (int64_t)writer->row.line;
    uint64_t constant = (255u - lines->opcode_base) / lines->line_range;
    put_registers(writer, row);
    if (line < lines->line_base || line >= lines->line_base + lines->line_range) {
        buffer_u8(out, LNS_ADVANCE_LINE);
        buffer_sleb(out, line);
        line = 0;
    }
    uint32_t opcode = special(lines, line, advance);
    if (!opcode && advance >= constant && special(lines, line, advance - constant)) {
        buffer_u8(out, LNS_CONST_ADD_PC);
        opcode = special(lines, line, advance - constant);
    } else if (!opcode) {
        if (advance)
            put_number(out, LNS_ADVANCE_PC, advance);
        opcode = special(lines, line, 0);
    }
    if (opcode == 0 || (line == 0 && advance == 0))
        opcode = LNS_COPY;
    assert(opcode != LNS_COPY || line == 0);
    buffer_u8(out, (uint8_t)opcode);
    writer->row = *row;
}

static void put_rows(struct line_writer *writer, const struct debug_row *rows,
                     uint32_t count, uint32_t last)
{
    for (uint32_t i = 0; i < count; i++)
        put_row(writer, &rows[i]);
    uint64_t advance = steps(writer->lines, writer->row.position, last);
    if (advance)
        put_number(&writer->out, LNS_ADVANCE_PC, advance);
    put_extended(&writer->out, LNE_END_SEQUENCE, 0);
}

/* Bytes that stay, with their relocations. */
static void put_old(struct line_writer *writer, const struct section *old,
                    const struct reloc *relocs, uint32_t start, uint32_t end)
{
    for (uint32_t i = section_reloc_at(old, start);
         i < old->reloc_count && relocs[i].offset < end; i++) {
        struct reloc reloc = relocs[i];
        reloc.offset += writer->out.size - start;
        array_push(writer->arena, &writer->relocs, reloc);
    }
    buffer_put(&writer->out, old->data.at + start, end - start);
}

/* A sequence begins at the position of its first row, or its end. */
static void put_sequence(struct line_writer *writer, const struct debug_sequence *rows,
                         struct reloc reloc)
{
    uint32_t start = rows->row_count ? rows->rows[0].position : rows->last;
    reloc.addend += (int64_t)start - (int64_t)rows->address;
    set_address(writer, reloc);
    writer->row.position = start;
    put_rows(writer, rows->rows, rows->row_count, rows->last);
}

static void put_added(struct line_writer *writer, const struct debug_new_sequence *added)
{
    struct reloc reloc = {.symbol = added->symbol,
                          .addend = added->addend,
                          .type = writer->lines->address_type};
    set_address(writer, reloc);
    put_rows(writer, added->rows, added->row_count, added->last);
}

static void put_program(struct line_writer *writer, const struct section *old,
                        const struct reloc *relocs, const struct debug_lines_edit *edit)
{
    const struct debug_lines *lines = writer->lines;
    uint64_t begin = writer->out.size;
    put_old(writer, old, relocs, lines->start, lines->program);
    for (uint32_t i = 0; i < lines->sequence_count; i++) {
        const struct debug_sequence *sequence = &lines->sequences[i];
        if (edit->rows && edit->rows[i])
            put_sequence(writer, edit->rows[i], relocs[sequence->reloc]);
        else
            put_old(writer, old, relocs, sequence->start, sequence->end);
    }
    for (uint32_t i = 0; i < edit->added_count; i++)
        put_added(writer, &edit->added[i]);
    uint64_t size = writer->out.size - begin - lines->length_size;
    uint8_t *length = writer->out.at + begin + lines->length_size;
    if (lines->length_size == 12)
        store_le(length - 8, 8, size);
    else
        store_le(length - 4, 4, size);
}

void debug_lines_write(struct arena *arena, const struct object *object, uint32_t section,
                       const struct reloc *relocs, const struct debug *debug,
                       const struct debug_lines_edit *edits, struct section *out,
                       uint32_t *starts)
{
    struct line_writer writer = {.arena = arena, .out = buffer_new(arena)};
    const struct section *old = &object->sections[section];
    for (uint32_t i = 0; i < debug->lines_count; i++) {
        if (debug->lines[i].section != section)
            continue;
        writer.lines = &debug->lines[i];
        starts[i] = (uint32_t)writer.out.size;
        put_program(&writer, old, relocs, &edits[i]);
    }
    out->data = buffer_bytes(&writer.out);
    out->relocs = writer.relocs.items;
    out->reloc_count = writer.relocs.count;
}
