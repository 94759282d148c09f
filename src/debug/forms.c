/* SPDX-License-Identifier: MIT
 *
 * Values of attributes: how long they are, and what number they hold (DWARF 5, 7.5.6).
 */
#include "internal.h"

#include <string.h>

bool form_is_index(uint16_t form)
{
    return form == FORM_ADDRX || form == FORM_GNU_ADDR_INDEX ||
           (form >= FORM_ADDRX1 && form <= FORM_ADDRX4);
}

bool form_is_address(uint16_t form)
{
    return form == FORM_ADDR || form_is_index(form);
}

bool form_is_constant(uint16_t form)
{
    return form == FORM_DATA1 || form == FORM_DATA2 || form == FORM_DATA4 ||
           form == FORM_DATA8 || form == FORM_UDATA || form == FORM_SDATA ||
           form == FORM_IMPLICIT_CONST;
}

bool form_is_block(uint16_t form)
{
    return form == FORM_BLOCK || form == FORM_BLOCK1 || form == FORM_BLOCK2 ||
           form == FORM_BLOCK4 || form == FORM_EXPRLOC;
}

/* Bytes of a form of fixed size; 0: it has none. */
static uint32_t fixed_size(uint16_t form, const struct unit_of *unit)
{
    switch (form) {
    case FORM_DATA1:
    case FORM_FLAG:
    case FORM_REF1:
    case FORM_STRX1:
    case FORM_ADDRX1: return 1;
    case FORM_DATA2:
    case FORM_REF2:
    case FORM_STRX2:
    case FORM_ADDRX2: return 2;
    case FORM_STRX3:
    case FORM_ADDRX3: return 3;
    case FORM_DATA4:
    case FORM_REF4:
    case FORM_REF_SUP4:
    case FORM_STRX4:
    case FORM_ADDRX4: return 4;
    case FORM_ADDR:
    case FORM_DATA8:
    case FORM_REF8:
    case FORM_REF_SIG8:
    case FORM_REF_SUP8: return 8;
    case FORM_DATA16: return 16;
    case FORM_STRP:
    case FORM_LINE_STRP:
    case FORM_STRP_SUP:
    case FORM_SEC_OFFSET: return unit->offset_size;
    /* DWARF 2 had it as wide as an address. */
    case FORM_REF_ADDR: return unit->version < 3 ? 8 : unit->offset_size;
    default: return 0;
    }
}

static uint64_t little(struct bytes bytes)
{
    uint64_t number = 0;
    for (uint64_t i = 0; i < bytes.size && i < 8; i++)
        number |= (uint64_t)bytes.at[i] << (8 * i);
    return number;
}

static bool read_block(struct cursor *cursor, struct value *out)
{
    switch (out->form) {
    case FORM_BLOCK1: out->number = cursor_u8(cursor); break;
    case FORM_BLOCK2: out->number = cursor_u16(cursor); break;
    case FORM_BLOCK4: out->number = cursor_u32(cursor); break;
    default: out->number = cursor_uleb(cursor); break;
    }
    out->body = (uint32_t)cursor->position;
    cursor_take(cursor, out->number);
    return true;
}

static bool read_variable(struct cursor *cursor, const struct abbrev_attribute *attribute,
                          struct value *out)
{
    switch (out->form) {
    case FORM_FLAG_PRESENT: out->number = 1; return true;
    case FORM_IMPLICIT_CONST: out->number = (uint64_t)attribute->constant; return true;
    case FORM_SDATA: out->number = (uint64_t)cursor_sleb(cursor); return true;
    case FORM_STRING: cursor_string(cursor); return true;
    case FORM_UDATA:
    case FORM_REF_UDATA:
    case FORM_STRX:
    case FORM_ADDRX:
    case FORM_LOCLISTX:
    case FORM_RNGLISTX:
    case FORM_GNU_ADDR_INDEX:
    case FORM_GNU_STR_INDEX: out->number = cursor_uleb(cursor); return true;
    default: return form_is_block(out->form) && read_block(cursor, out);
    }
}

bool value_read(struct cursor *cursor, const struct unit_of *unit,
                const struct abbrev_attribute *attribute, struct value *out)
{
    *out = (struct value){.name = attribute->name, .form = attribute->form};
    if (out->form == FORM_INDIRECT) {
        uint64_t form = cursor_uleb(cursor);
        out->form = form <= UINT16_MAX && form != FORM_INDIRECT &&
                            form != FORM_IMPLICIT_CONST
                        ? (uint16_t)form
                        : 0;
    }
    out->offset = (uint32_t)cursor->position;
    uint32_t size = fixed_size(out->form, unit);
    if (size)
        out->number = little(cursor_take(cursor, size));
    else if (!read_variable(cursor, attribute, out))
        return false;
    out->size = (uint32_t)cursor->position - out->offset;
    return cursor_ok(cursor);
}
