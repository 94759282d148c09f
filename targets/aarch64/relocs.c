/* SPDX-License-Identifier: MIT
 *
 * The static relocations of "ELF for the Arm 64-bit Architecture" (aaelf64),
 * section 5.7, in the order of their numbers. Dynamic ones (1024 and up) have no place
 * in an object.
 *
 * Classes that are not obvious:
 * - TLSIE_ADR_GOTTPREL_PAGE21 and its LD64 are a GOT page and its other half: linkers
 *   treat them like the pair for a plain GOT entry.
 * - GOTOFF and GOTPAGE_LO15 do not depend on where the instruction is, so they count as
 *   complete although the register that they add to came from elsewhere.
 * - MOVW_PREL groups mean a different place in each of their instructions, by the
 * addends that the compiler counted out: nothing may be moved (RELOC_UNKNOWN).
 */
#include "target.h"

#include <elf.h>

/* Bits that the linker fills */
#define IMM12    0x003ffc00u /* add, ldr, str */
#define IMM16    0x001fffe0u /* movz, movk */
#define IMM16_OP 0x601fffe0u /* movz or movn, as the sign demands */
#define IMM19    0x00ffffe0u /* b.cond, cbz, ldr literal */
#define IMM14    0x0007ffe0u /* tbz */
#define IMM21    0x60ffffe0u /* adr, adrp */
#define IMM26    0x03ffffffu /* b, bl */

struct entry {
    uint32_t type;
    struct reloc_kind kind;
};

#define DATA(name, size, mask, kind)                                                   \
    {                                                                                  \
        R_AARCH64_##name,                                                              \
        {                                                                              \
            "R_AARCH64_" #name, size, kind, mask                                       \
        }                                                                              \
    }
#define CODE(name, mask, kind)                                                         \
    {                                                                                  \
        R_AARCH64_##name,                                                              \
        {                                                                              \
            "R_AARCH64_" #name, 4, kind, mask                                          \
        }                                                                              \
    }

/* Sorted by type. */
static const struct entry entries[] = {
    {0,   {"R_AARCH64_NONE", 1, RELOC_NONE, 0}             },
    {256, {"R_AARCH64_NONE", 1, RELOC_NONE, 0}             }, /* its withdrawn number */
    DATA(ABS64, 8, UINT64_MAX, RELOC_ABSOLUTE),
    DATA(ABS32, 4, UINT32_MAX, RELOC_ABSOLUTE),
    DATA(ABS16, 2, UINT16_MAX, RELOC_ABSOLUTE),
    DATA(PREL64, 8, UINT64_MAX, RELOC_PC),
    DATA(PREL32, 4, UINT32_MAX, RELOC_PC),
    DATA(PREL16, 2, UINT16_MAX, RELOC_PC),
    CODE(MOVW_UABS_G0, IMM16, RELOC_ABSOLUTE),
    CODE(MOVW_UABS_G0_NC, IMM16, RELOC_ABSOLUTE),
    CODE(MOVW_UABS_G1, IMM16, RELOC_ABSOLUTE),
    CODE(MOVW_UABS_G1_NC, IMM16, RELOC_ABSOLUTE),
    CODE(MOVW_UABS_G2, IMM16, RELOC_ABSOLUTE),
    CODE(MOVW_UABS_G2_NC, IMM16, RELOC_ABSOLUTE),
    CODE(MOVW_UABS_G3, IMM16, RELOC_ABSOLUTE),
    CODE(MOVW_SABS_G0, IMM16_OP, RELOC_ABSOLUTE),
    CODE(MOVW_SABS_G1, IMM16_OP, RELOC_ABSOLUTE),
    CODE(MOVW_SABS_G2, IMM16_OP, RELOC_ABSOLUTE),
    CODE(LD_PREL_LO19, IMM19, RELOC_PC),
    CODE(ADR_PREL_LO21, IMM21, RELOC_PC),
    CODE(ADR_PREL_PG_HI21, IMM21, RELOC_PAGE),
    CODE(ADR_PREL_PG_HI21_NC, IMM21, RELOC_PAGE),
    CODE(ADD_ABS_LO12_NC, IMM12, RELOC_ABSOLUTE),
    CODE(LDST8_ABS_LO12_NC, IMM12, RELOC_ABSOLUTE),
    CODE(TSTBR14, IMM14, RELOC_BRANCH),
    CODE(CONDBR19, IMM19, RELOC_BRANCH),
    CODE(JUMP26, IMM26, RELOC_CALL),
    CODE(CALL26, IMM26, RELOC_CALL),
    CODE(LDST16_ABS_LO12_NC, IMM12, RELOC_ABSOLUTE),
    CODE(LDST32_ABS_LO12_NC, IMM12, RELOC_ABSOLUTE),
    CODE(LDST64_ABS_LO12_NC, IMM12, RELOC_ABSOLUTE),
    CODE(MOVW_PREL_G0, IMM16_OP, RELOC_UNKNOWN),
    CODE(MOVW_PREL_G0_NC, IMM16, RELOC_UNKNOWN),
    CODE(MOVW_PREL_G1, IMM16_OP, RELOC_UNKNOWN),
    CODE(MOVW_PREL_G1_NC, IMM16, RELOC_UNKNOWN),
    CODE(MOVW_PREL_G2, IMM16_OP, RELOC_UNKNOWN),
    CODE(MOVW_PREL_G2_NC, IMM16, RELOC_UNKNOWN),
    CODE(MOVW_PREL_G3, IMM16_OP, RELOC_UNKNOWN),
    CODE(LDST128_ABS_LO12_NC, IMM12, RELOC_ABSOLUTE),
    CODE(MOVW_GOTOFF_G0, IMM16_OP, RELOC_GOT),
    CODE(MOVW_GOTOFF_G0_NC, IMM16, RELOC_GOT),
    CODE(MOVW_GOTOFF_G1, IMM16_OP, RELOC_GOT),
    CODE(MOVW_GOTOFF_G1_NC, IMM16, RELOC_GOT),
    CODE(MOVW_GOTOFF_G2, IMM16_OP, RELOC_GOT),
    CODE(MOVW_GOTOFF_G2_NC, IMM16, RELOC_GOT),
    CODE(MOVW_GOTOFF_G3, IMM16_OP, RELOC_GOT),
    DATA(GOTREL64, 8, UINT64_MAX, RELOC_ABSOLUTE),
    DATA(GOTREL32, 4, UINT32_MAX, RELOC_ABSOLUTE),
    CODE(GOT_LD_PREL19, IMM19, RELOC_GOT),
    CODE(LD64_GOTOFF_LO15, IMM12, RELOC_GOT),
    CODE(ADR_GOT_PAGE, IMM21, RELOC_GOT_PAGE),
    CODE(LD64_GOT_LO12_NC, IMM12, RELOC_GOT_LOW),
    CODE(LD64_GOTPAGE_LO15, IMM12, RELOC_GOT),
    {314, {"R_AARCH64_PLT32", 4, RELOC_PC, UINT32_MAX}     },
    {315, {"R_AARCH64_GOTPCREL32", 4, RELOC_PC, UINT32_MAX}},
    CODE(TLSGD_ADR_PREL21, IMM21, RELOC_TLS_ATOM),
    CODE(TLSGD_ADR_PAGE21, IMM21, RELOC_TLS_ATOM),
    CODE(TLSGD_ADD_LO12_NC, IMM12, RELOC_TLS_ATOM),
    CODE(TLSGD_MOVW_G1, IMM16, RELOC_TLS_ATOM),
    CODE(TLSGD_MOVW_G0_NC, IMM16, RELOC_TLS_ATOM),
    CODE(TLSLD_ADR_PREL21, IMM21, RELOC_TLS_ATOM),
    CODE(TLSLD_ADR_PAGE21, IMM21, RELOC_TLS_ATOM),
    CODE(TLSLD_ADD_LO12_NC, IMM12, RELOC_TLS_ATOM),
    CODE(TLSLD_MOVW_G1, IMM16, RELOC_TLS_ATOM),
    CODE(TLSLD_MOVW_G0_NC, IMM16, RELOC_TLS_ATOM),
    CODE(TLSLD_LD_PREL19, IMM19, RELOC_TLS_ATOM),
    CODE(TLSLD_MOVW_DTPREL_G2, IMM16_OP, RELOC_TLS_ATOM),
    CODE(TLSLD_MOVW_DTPREL_G1, IMM16_OP, RELOC_TLS_ATOM),
    CODE(TLSLD_MOVW_DTPREL_G1_NC, IMM16, RELOC_TLS_ATOM),
    CODE(TLSLD_MOVW_DTPREL_G0, IMM16_OP, RELOC_TLS_ATOM),
    CODE(TLSLD_MOVW_DTPREL_G0_NC, IMM16, RELOC_TLS_ATOM),
    CODE(TLSLD_ADD_DTPREL_HI12, IMM12, RELOC_TLS_ATOM),
    CODE(TLSLD_ADD_DTPREL_LO12, IMM12, RELOC_TLS_ATOM),
    CODE(TLSLD_ADD_DTPREL_LO12_NC, IMM12, RELOC_TLS_ATOM),
    CODE(TLSLD_LDST8_DTPREL_LO12, IMM12, RELOC_TLS_ATOM),
    CODE(TLSLD_LDST8_DTPREL_LO12_NC, IMM12, RELOC_TLS_ATOM),
    CODE(TLSLD_LDST16_DTPREL_LO12, IMM12, RELOC_TLS_ATOM),
    CODE(TLSLD_LDST16_DTPREL_LO12_NC, IMM12, RELOC_TLS_ATOM),
    CODE(TLSLD_LDST32_DTPREL_LO12, IMM12, RELOC_TLS_ATOM),
    CODE(TLSLD_LDST32_DTPREL_LO12_NC, IMM12, RELOC_TLS_ATOM),
    CODE(TLSLD_LDST64_DTPREL_LO12, IMM12, RELOC_TLS_ATOM),
    CODE(TLSLD_LDST64_DTPREL_LO12_NC, IMM12, RELOC_TLS_ATOM),
    CODE(TLSIE_MOVW_GOTTPREL_G1, IMM16, RELOC_TLS_ATOM),
    CODE(TLSIE_MOVW_GOTTPREL_G0_NC, IMM16, RELOC_TLS_ATOM),
    CODE(TLSIE_ADR_GOTTPREL_PAGE21, IMM21, RELOC_GOT_PAGE),
    CODE(TLSIE_LD64_GOTTPREL_LO12_NC, IMM12, RELOC_GOT_LOW),
    CODE(TLSIE_LD_GOTTPREL_PREL19, IMM19, RELOC_TLS),
    CODE(TLSLE_MOVW_TPREL_G2, IMM16_OP, RELOC_TLS),
    CODE(TLSLE_MOVW_TPREL_G1, IMM16_OP, RELOC_TLS),
    CODE(TLSLE_MOVW_TPREL_G1_NC, IMM16, RELOC_TLS),
    CODE(TLSLE_MOVW_TPREL_G0, IMM16_OP, RELOC_TLS),
    CODE(TLSLE_MOVW_TPREL_G0_NC, IMM16, RELOC_TLS),
    CODE(TLSLE_ADD_TPREL_HI12, IMM12, RELOC_TLS),
    CODE(TLSLE_ADD_TPREL_LO12, IMM12, RELOC_TLS),
    CODE(TLSLE_ADD_TPREL_LO12_NC, IMM12, RELOC_TLS),
    CODE(TLSLE_LDST8_TPREL_LO12, IMM12, RELOC_TLS),
    CODE(TLSLE_LDST8_TPREL_LO12_NC, IMM12, RELOC_TLS),
    CODE(TLSLE_LDST16_TPREL_LO12, IMM12, RELOC_TLS),
    CODE(TLSLE_LDST16_TPREL_LO12_NC, IMM12, RELOC_TLS),
    CODE(TLSLE_LDST32_TPREL_LO12, IMM12, RELOC_TLS),
    CODE(TLSLE_LDST32_TPREL_LO12_NC, IMM12, RELOC_TLS),
    CODE(TLSLE_LDST64_TPREL_LO12, IMM12, RELOC_TLS),
    CODE(TLSLE_LDST64_TPREL_LO12_NC, IMM12, RELOC_TLS),
    CODE(TLSDESC_LD_PREL19, IMM19, RELOC_TLS_ATOM),
    CODE(TLSDESC_ADR_PREL21, IMM21, RELOC_TLS_ATOM),
    CODE(TLSDESC_ADR_PAGE21, IMM21, RELOC_TLS_ATOM),
    CODE(TLSDESC_LD64_LO12, IMM12, RELOC_TLS_ATOM),
    CODE(TLSDESC_ADD_LO12, IMM12, RELOC_TLS_ATOM),
    CODE(TLSDESC_OFF_G1, IMM16, RELOC_TLS_ATOM),
    CODE(TLSDESC_OFF_G0_NC, IMM16, RELOC_TLS_ATOM),
    CODE(TLSDESC_LDR, 0, RELOC_TLS_ATOM),
    CODE(TLSDESC_ADD, 0, RELOC_TLS_ATOM),
    CODE(TLSDESC_CALL, 0, RELOC_TLS_ATOM),
    CODE(TLSLE_LDST128_TPREL_LO12, IMM12, RELOC_TLS),
    CODE(TLSLE_LDST128_TPREL_LO12_NC, IMM12, RELOC_TLS),
    CODE(TLSLD_LDST128_DTPREL_LO12, IMM12, RELOC_TLS_ATOM),
    CODE(TLSLD_LDST128_DTPREL_LO12_NC, IMM12, RELOC_TLS_ATOM),
};

const struct reloc_kind *aarch64_reloc_kind(uint32_t type)
{
    uint32_t low = 0, high = sizeof(entries) / sizeof(entries[0]);
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (entries[middle].type < type)
            low = middle + 1;
        else
            high = middle;
    }
    const bool found =
        low < sizeof(entries) / sizeof(entries[0]) && entries[low].type == type;
    return found ? &entries[low].kind : NULL;
}
