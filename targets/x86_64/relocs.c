/* SPDX-License-Identifier: MIT
 *
 * The static relocations of the System V psABI for AMD64, table 4.9, by number. Dynamic
 * ones (COPY, GLOB_DAT, RELATIVE …) have no place in a relocatable object: unknown.
 *
 * The large code model's (GOT64, GOTOFF64, PLTOFF64 …) and GOTPC32 are known by name
 * and size, but the pairs of instructions around them are not understood: that code
 * stays as it is.
 */
#include "x86_64.h"

#include <elf.h>

#define WORD8  UINT64_C(0xff)
#define WORD16 UINT64_C(0xffff)
#define WORD32 UINT64_C(0xffffffff)
#define WORD64 UINT64_MAX

#define KIND(type, size, kind, mask) [type] = {#type, size, kind, mask}

static const struct reloc_kind kinds[] = {
    KIND(R_X86_64_NONE, 1, RELOC_NONE, 0),
    KIND(R_X86_64_64, 8, RELOC_ABSOLUTE, WORD64),
    KIND(R_X86_64_PC32, 4, RELOC_PC, WORD32),
    KIND(R_X86_64_GOT32, 4, RELOC_UNKNOWN, WORD32),
    KIND(R_X86_64_PLT32, 4, RELOC_CALL, WORD32),
    KIND(R_X86_64_GOTPCREL, 4, RELOC_GOT, WORD32),
    KIND(R_X86_64_32, 4, RELOC_ABSOLUTE, WORD32),
    KIND(R_X86_64_32S, 4, RELOC_ABSOLUTE, WORD32),
    KIND(R_X86_64_16, 2, RELOC_ABSOLUTE, WORD16),
    KIND(R_X86_64_PC16, 2, RELOC_PC, WORD16),
    KIND(R_X86_64_8, 1, RELOC_ABSOLUTE, WORD8),
    KIND(R_X86_64_PC8, 1, RELOC_PC, WORD8),
    KIND(R_X86_64_DTPOFF64, 8, RELOC_TLS, WORD64),
    KIND(R_X86_64_TPOFF64, 8, RELOC_TLS, WORD64),
    KIND(R_X86_64_TLSGD, 4, RELOC_TLS_ATOM, WORD32),
    KIND(R_X86_64_TLSLD, 4, RELOC_TLS_ATOM, WORD32),
    KIND(R_X86_64_DTPOFF32, 4, RELOC_TLS, WORD32),
    KIND(R_X86_64_GOTTPOFF, 4, RELOC_TLS, WORD32),
    KIND(R_X86_64_TPOFF32, 4, RELOC_TLS, WORD32),
    KIND(R_X86_64_PC64, 8, RELOC_PC, WORD64),
    KIND(R_X86_64_GOTOFF64, 8, RELOC_UNKNOWN, WORD64),
    KIND(R_X86_64_GOTPC32, 4, RELOC_UNKNOWN, WORD32),
    KIND(R_X86_64_GOT64, 8, RELOC_UNKNOWN, WORD64),
    KIND(R_X86_64_GOTPCREL64, 8, RELOC_UNKNOWN, WORD64),
    KIND(R_X86_64_GOTPC64, 8, RELOC_UNKNOWN, WORD64),
    KIND(R_X86_64_GOTPLT64, 8, RELOC_UNKNOWN, WORD64),
    KIND(R_X86_64_PLTOFF64, 8, RELOC_UNKNOWN, WORD64),
    KIND(R_X86_64_SIZE32, 4, RELOC_SIZE, WORD32),
    KIND(R_X86_64_SIZE64, 8, RELOC_SIZE, WORD64),
    KIND(R_X86_64_GOTPC32_TLSDESC, 4, RELOC_TLS_ATOM, WORD32),
    /* Marks `call *(%rax)`, two bytes, and fills nothing. */
    KIND(R_X86_64_TLSDESC_CALL, 2, RELOC_TLS_ATOM, 0),
    KIND(R_X86_64_GOTPCRELX, 4, RELOC_GOT, WORD32),
    KIND(R_X86_64_REX_GOTPCRELX, 4, RELOC_GOT, WORD32),
};

const struct reloc_kind *x86_64_reloc_kind(uint32_t type)
{
    if (type >= sizeof kinds / sizeof *kinds || !kinds[type].name)
        return NULL;
    return &kinds[type];
}

/* A processor adds the displacement to the address of the next instruction, a linker
 * subtracts the address of the field: what lies between is in the addend (-4, or -5,
 * -6, -8 with an immediate behind). A difference kept in an immediate has no such bias.
 */
uint8_t x86_64_reloc_bias(const struct insn *insn, uint64_t reloc_offset)
{
    uint64_t end = (uint64_t)insn->offset + insn->length;
    if (!(insn->traits & INSN_PC_RELATIVE) || reloc_offset < insn->offset ||
        reloc_offset >= end)
        return 0;
    return (uint8_t)(end - reloc_offset);
}
