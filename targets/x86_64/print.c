/* SPDX-License-Identifier: MIT
 *
 * Instructions as text, in the syntax of the GNU tools.
 */
#include "x86_64.h"

/* No leading zeros, no capitals; displacements from rip stay what they are, since most
 * of them are relocated. */
static bool plain_formatter(ZydisFormatter *formatter)
{
    static const struct {
        ZydisFormatterProperty property;
        ZyanUPointer value;
    } properties[] = {
        {ZYDIS_FORMATTER_PROP_HEX_UPPERCASE,         ZYAN_FALSE            },
        {ZYDIS_FORMATTER_PROP_FORCE_RELATIVE_RIPREL, ZYAN_TRUE             },
        {ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE, ZYDIS_PADDING_DISABLED},
        {ZYDIS_FORMATTER_PROP_ADDR_PADDING_RELATIVE, ZYDIS_PADDING_DISABLED},
        {ZYDIS_FORMATTER_PROP_DISP_PADDING,          ZYDIS_PADDING_DISABLED},
        {ZYDIS_FORMATTER_PROP_IMM_PADDING,           ZYDIS_PADDING_DISABLED},
    };
    if (!ZYAN_SUCCESS(ZydisFormatterInit(formatter, ZYDIS_FORMATTER_STYLE_ATT)))
        return false;
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++) {
        if (!ZYAN_SUCCESS(ZydisFormatterSetProperty(formatter, properties[i].property,
                                                    properties[i].value)))
            return false;
    }
    return true;
}

bool x86_64_print(const uint8_t *bytes, uint8_t length, uint32_t offset, char *out,
                  size_t size)
{
    struct parsed parsed;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    ZydisFormatter formatter;
    return x86_64_parse(bytes, length, &parsed) && x86_64_operands(&parsed, operands) &&
           plain_formatter(&formatter) &&
           ZYAN_SUCCESS(ZydisFormatterFormatInstruction(
               &formatter, &parsed.insn, operands, parsed.insn.operand_count_visible,
               out, size, offset, NULL));
}
