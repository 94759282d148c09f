/* SPDX-License-Identifier: MIT
 *
 * Expressions (DWARF 5, 7.7.1): which registers they depend on, and which addresses they
 * hold. What registers held on entry of the function (DW_OP_entry_value) cannot be
 * changed by code in its middle, so an expression in there counts for its addresses only.
 */
#include "internal.h"

enum {
    OP_ADDR = 0x03,
    OP_CONST1U = 0x08,
    OP_CONST8S = 0x0f,
    OP_CONSTU = 0x10,
    OP_CONSTS = 0x11,
    OP_DUP = 0x12,
    OP_PICK = 0x15,
    OP_PLUS_UCONST = 0x23,
    OP_BRA = 0x28,
    OP_SKIP = 0x2f,
    OP_LIT0 = 0x30,
    OP_REG0 = 0x50,
    OP_BREG0 = 0x70,
    OP_REGX = 0x90,
    OP_FBREG = 0x91,
    OP_BREGX = 0x92,
    OP_PIECE = 0x93,
    OP_DEREF_SIZE = 0x94,
    OP_XDEREF_SIZE = 0x95,
    OP_NOP = 0x96,
    OP_PUSH_OBJECT_ADDRESS = 0x97,
    OP_CALL2 = 0x98,
    OP_CALL4 = 0x99,
    OP_FORM_TLS_ADDRESS = 0x9b,
    OP_CALL_FRAME_CFA = 0x9c,
    OP_BIT_PIECE = 0x9d,
    OP_IMPLICIT_VALUE = 0x9e,
    OP_STACK_VALUE = 0x9f,
    OP_IMPLICIT_POINTER = 0xa0,
    OP_ADDRX = 0xa1,
    OP_CONSTX = 0xa2,
    OP_ENTRY_VALUE = 0xa3,
    OP_CONST_TYPE = 0xa4,
    OP_REGVAL_TYPE = 0xa5,
    OP_DEREF_TYPE = 0xa6,
    OP_CONVERT = 0xa8,
    OP_REINTERPRET = 0xa9,
    OP_GNU_PUSH_TLS = 0xe0,
    OP_GNU_UNINIT = 0xf0,
    OP_GNU_IMPLICIT_POINTER = 0xf2,
    OP_GNU_ENTRY_VALUE = 0xf3,
    OP_GNU_CONST_TYPE = 0xf4,
    OP_GNU_REGVAL_TYPE = 0xf5,
    OP_GNU_DEREF_TYPE = 0xf6,
    OP_GNU_CONVERT = 0xf7,
    OP_GNU_REINTERPRET = 0xf9,
    OP_GNU_PARAMETER_REF = 0xfa,
    OP_GNU_ADDR_INDEX = 0xfb,
    OP_GNU_CONST_INDEX = 0xfc,
    OP_GNU_VARIABLE_VALUE = 0xfd,
};

/* Registers beyond 63 are vectors: no form of ours writes them. */
static uint64_t bit_of(uint64_t number)
{
    return number < 64 ? UINT64_C(1) << number : 0;
}

struct scan {
    struct reader *reader;
    const struct unit_of *unit;
    const struct scope_of *scope;
    struct cursor cursor;
    uint32_t section;
    uint64_t registers;
    uint64_t entry_end; /* up to here it speaks of the function's entry */
};

static void use(struct scan *scan, uint64_t registers)
{
    if (scan->cursor.position > scan->entry_end)
        scan->registers |= registers;
}

/* An address that is used as a value: of data, or of a function. */
static bool take_address(struct scan *scan, bool pooled)
{
    struct place_of place = {0};
    struct debug_field field;
    if (pooled) {
        uint64_t index = cursor_uleb(&scan->cursor);
        if (!pool_place(scan->reader, scan->unit, index, &place, &field))
            return false;
    } else {
        place = read_place(scan->reader, scan->section, scan->cursor.position, &field);
        cursor_u64(&scan->cursor);
    }
    if (place.known)
        add_point(scan->reader, DEBUG_ENTRY, place, field);
    return true;
}

static bool take_typed(struct scan *scan, uint8_t op)
{
    struct cursor *cursor = &scan->cursor;
    uint64_t number;
    switch (op) {
    case OP_CONST_TYPE:
    case OP_GNU_CONST_TYPE:
        cursor_uleb(cursor);
        cursor_take(cursor, cursor_u8(cursor));
        return true;
    case OP_REGVAL_TYPE:
    case OP_GNU_REGVAL_TYPE:
        number = cursor_uleb(cursor);
        cursor_uleb(cursor);
        use(scan, bit_of(number));
        return true;
    case OP_DEREF_TYPE:
    case OP_GNU_DEREF_TYPE:
        cursor_u8(cursor);
        cursor_uleb(cursor);
        return true;
    case OP_CONVERT:
    case OP_REINTERPRET:
    case OP_GNU_CONVERT:
    case OP_GNU_REINTERPRET: cursor_uleb(cursor); return true;
    case OP_IMPLICIT_POINTER:
    case OP_GNU_IMPLICIT_POINTER:
        /* It points to an entry of any unit: that is as wide as DW_FORM_ref_addr. */
        cursor_take(cursor, scan->unit->version < 3 ? 8 : scan->unit->offset_size);
        cursor_sleb(cursor);
        return true;
    case OP_GNU_VARIABLE_VALUE:
        cursor_take(cursor, scan->unit->version < 3 ? 8 : scan->unit->offset_size);
        return true;
    case OP_ENTRY_VALUE:
    case OP_GNU_ENTRY_VALUE: {
        uint64_t size = cursor_uleb(cursor);
        if (size <= cursor_left(cursor) && cursor->position + size > scan->entry_end)
            scan->entry_end = cursor->position + size;
        return true;
    }
    default: return false;
    }
}

static bool take_register(struct scan *scan, uint8_t op)
{
    struct cursor *cursor = &scan->cursor;
    uint64_t number;
    if (op >= OP_REG0 && op < OP_BREG0) {
        use(scan, bit_of(op - OP_REG0));
        return true;
    }
    if (op >= OP_BREG0 && op < OP_REGX) {
        cursor_sleb(cursor);
        use(scan, bit_of(op - OP_BREG0));
        return true;
    }
    switch (op) {
    case OP_REGX:
        number = cursor_uleb(cursor);
        use(scan, bit_of(number));
        return true;
    case OP_BREGX:
        number = cursor_uleb(cursor);
        cursor_sleb(cursor);
        use(scan, bit_of(number));
        return true;
    case OP_FBREG:
        cursor_sleb(cursor);
        use(scan, scan->scope->frame_base);
        return true;
    default: return take_typed(scan, op);
    }
}

/* Bytes of the operand of these, or UINT32_MAX. */
static uint32_t operand_size(uint8_t op)
{
    if (op >= OP_CONST1U && op <= OP_CONST8S)
        return 1u << ((op - OP_CONST1U) / 2);
    if (op == OP_BRA || op == OP_SKIP || op == OP_CALL2)
        return 2;
    if (op == OP_CALL4 || op == OP_GNU_PARAMETER_REF)
        return 4;
    if (op == OP_PICK || op == OP_DEREF_SIZE || op == OP_XDEREF_SIZE)
        return 1;
    bool none = op == 0x06 || (op >= OP_DUP && op < OP_REG0) || op == OP_NOP ||
                op == OP_PUSH_OBJECT_ADDRESS || op == OP_FORM_TLS_ADDRESS ||
                op == OP_CALL_FRAME_CFA || op == OP_STACK_VALUE ||
                op == OP_GNU_PUSH_TLS || op == OP_GNU_UNINIT;
    return none ? 0 : UINT32_MAX;
}

static bool take(struct scan *scan)
{
    struct cursor *cursor = &scan->cursor;
    uint8_t op = cursor_u8(cursor);
    switch (op) {
    case OP_ADDR: return take_address(scan, false);
    case OP_ADDRX:
    case OP_CONSTX:
    case OP_GNU_ADDR_INDEX:
    case OP_GNU_CONST_INDEX: return take_address(scan, true);
    case OP_CONSTU:
    case OP_PLUS_UCONST:
    case OP_PIECE: cursor_uleb(cursor); return true;
    case OP_CONSTS: cursor_sleb(cursor); return true;
    case OP_BIT_PIECE:
        cursor_uleb(cursor);
        cursor_uleb(cursor);
        return true;
    case OP_IMPLICIT_VALUE: cursor_take(cursor, cursor_uleb(cursor)); return true;
    default: break;
    }
    uint32_t size = operand_size(op);
    if (size == UINT32_MAX)
        return take_register(scan, op);
    cursor_take(cursor, size);
    return true;
}

bool expression_read(struct reader *reader, const struct unit_of *unit,
                     const struct scope_of *scope, uint64_t offset, uint64_t size,
                     uint32_t section, uint64_t *registers)
{
    struct scan scan = {.reader = reader,
                        .unit = unit,
                        .scope = scope,
                        .cursor = cursor_at(reader, section, offset),
                        .section = section};
    uint64_t end = scan.cursor.position + size; /* the caller has seen that it fits */
    while (scan.cursor.position < end)
        if (!take(&scan) || !cursor_ok(&scan.cursor) || scan.cursor.position > end)
            return false;
    *registers = scan.registers;
    return true;
}
