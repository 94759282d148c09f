/* SPDX-License-Identifier: MIT
 *
 * Instructions re-encoded. All work is done on the raw bytes: Zydis tells where ModRM,
 * displacement and immediate lie, everything else is copied, so prefixes, hints and odd
 * but legal encodings survive.
 *
 *     prefixes  opcode  ModRM  SIB  displacement  immediate      (Intel SDM vol.
 * 2, 2.1)
 *
 * Two kinds of PC-relative field exist, and an instruction has at most one of them: the
 * immediate of a direct branch (8 or 32 bits), and disp32(%rip).
 */
#include "x86_64.h"

#include "mo/bytes.h"

#include <elf.h>
#include <string.h>

enum {
    OPCODE_CALL = 0xe8,
    OPCODE_JUMP = 0xe9,
    OPCODE_JUMP_SHORT = 0xeb,
    OPCODE_JCC_SHORT = 0x70,
    OPCODE_TWO_BYTE = 0x0f,
    OPCODE_JCC = 0x80,
    OPCODE_GROUP5 = 0xff,
    GROUP5_CALL = 2,
    GROUP5_JUMP = 4,
    OPCODE_LEA = 0x8d,
    OPCODE_RET = 0xc3,
    OPCODE_PUSH = 0x50,
    REX_W = 0x48,
    MODRM_DISP8_RSP = 0x64, /* disp8(SIB), rsp */
    SIB_RSP = 0x24
};

/* The PC-relative field of an instruction. */
struct field {
    uint8_t offset; /* from its first byte */
    uint8_t size;   /* bytes; 0: it has none */
};

static struct field field_of(const ZydisDecodedInstruction *insn)
{
    if (insn->raw.imm[0].is_relative)
        return (struct field){insn->raw.imm[0].offset, insn->raw.imm[0].size / 8};
    if (x86_64_is_rip_memory(insn))
        return (struct field){insn->raw.disp.offset, 4};
    return (struct field){0, 0};
}

/* The field of a call or jump without prefixes; size 0 for everything else. They are
 * most of what is asked for, and can be told without a decoder. */
static struct field field_of_branch(const uint8_t *bytes, uint8_t length)
{
    if (length == 5 && (bytes[0] == OPCODE_CALL || bytes[0] == OPCODE_JUMP))
        return (struct field){1, 4};
    if (length == 6 && bytes[0] == OPCODE_TWO_BYTE && (bytes[1] & 0xf0) == OPCODE_JCC)
        return (struct field){2, 4};
    if (length == 2 &&
        (bytes[0] == OPCODE_JUMP_SHORT || (bytes[0] & 0xf0) == OPCODE_JCC_SHORT))
        return (struct field){1, 1};
    return (struct field){0, 0};
}

/* Parses exactly `length` bytes. */
static bool parse_whole(const uint8_t *bytes, uint8_t length, struct parsed *out)
{
    return x86_64_parse(bytes, length, out) && out->insn.length == length;
}

static void copy(struct code_bytes *out, const uint8_t *bytes, uint8_t length)
{
    *out = (struct code_bytes){.length = length};
    memcpy(out->bytes, bytes, length);
}

static void append(struct code_bytes *out, uint32_t value, uint8_t size)
{
    store_le(out->bytes + out->length, size, value);
    out->length = (uint8_t)(out->length + size);
}

/* --- PC-relative fields --- */

static bool is_jump_short(const ZydisDecodedInstruction *insn)
{
    return insn->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
           insn->opcode == OPCODE_JUMP_SHORT;
}

static bool is_jcc_short(const ZydisDecodedInstruction *insn)
{
    return insn->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
           (insn->opcode & 0xf0) == OPCODE_JCC_SHORT;
}

/* rel8 -> rel32, prefixes kept: they lie before the opcode, which is one byte and comes
 * right before the field. */
static void put_long_branch(const uint8_t *bytes, uint8_t field, struct code_bytes *out)
{
    uint8_t opcode = bytes[field - 1];
    copy(out, bytes, (uint8_t)(field - 1));
    if (opcode == OPCODE_JUMP_SHORT) {
        append(out, OPCODE_JUMP, 1);
    } else {
        append(out, OPCODE_TWO_BYTE, 1);
        append(out, (uint32_t)(OPCODE_JCC | (opcode & 0x0f)), 1);
    }
    out->reloc_offset = out->length;
    append(out, 0, 4);
}

static bool widen(const uint8_t *bytes, const ZydisDecodedInstruction *insn,
                  struct code_bytes *out)
{
    if (!is_jump_short(insn) && !is_jcc_short(insn))
        return false;
    put_long_branch(bytes, insn->raw.imm[0].offset, out);
    return true;
}

bool x86_64_widen(const uint8_t *bytes, uint8_t length, struct code_bytes *out)
{
    struct parsed parsed;
    return parse_whole(bytes, length, &parsed) && widen(bytes, &parsed.insn, out);
}

/* Without prefixes only: a branch hint or `bnd` is there for a reason. */
bool x86_64_narrow(const uint8_t *bytes, uint8_t length, struct code_bytes *out)
{
    struct field field = field_of_branch(bytes, length);
    if (field.size != 4 || bytes[0] == OPCODE_CALL)
        return false;
    *out = (struct code_bytes){0};
    append(out,
           bytes[0] == OPCODE_JUMP ? (uint32_t)OPCODE_JUMP_SHORT
                                   : (uint32_t)(OPCODE_JCC_SHORT | (bytes[1] & 0x0f)),
           1);
    out->reloc_offset = out->length;
    append(out, 0, 1);
    return true;
}

static void clear_field(const uint8_t *bytes, uint8_t length, struct field field,
                        struct code_bytes *out)
{
    copy(out, bytes, length);
    memset(out->bytes + field.offset, 0, field.size);
    out->reloc_offset = field.offset;
}

bool x86_64_canonical(const uint8_t *bytes, uint8_t length, struct code_bytes *out)
{
    struct field branch = field_of_branch(bytes, length);
    if (branch.size == 1)
        put_long_branch(bytes, branch.offset, out);
    else if (branch.size == 4)
        clear_field(bytes, length, branch, out);
    if (branch.size != 0)
        return true;
    struct parsed parsed;
    if (!parse_whole(bytes, length, &parsed))
        return false;
    if (!widen(bytes, &parsed.insn, out))
        clear_field(bytes, length, field_of(&parsed.insn), out);
    return true;
}

bool x86_64_retarget(const uint8_t *bytes, uint8_t length, int64_t displacement,
                     uint8_t *out)
{
    struct parsed parsed;
    struct field field = field_of_branch(bytes, length);
    if (field.size == 0 && !parse_whole(bytes, length, &parsed))
        return false;
    if (field.size == 0)
        field = field_of(&parsed.insn);
    int64_t value = displacement - length; /* counts from the next instruction */
    if (field.size == 0 || !fits_signed(value, field.size * 8u))
        return false;
    memmove(out, bytes, length);
    store_le(out + field.offset, field.size, (uint64_t)value);
    return true;
}

static void add_reloc(struct code_bytes *out, uint8_t field, uint32_t type)
{
    out->has_reloc = true;
    out->reloc_offset = field;
    out->reloc_type = type;
    out->reloc_addend = -(int64_t)(out->length - field);
}

/* Conditional jumps stay local by decision: some linkers take R_X86_64_PLT32 in one,
 * but a helper is reached by call and jmp alone. xbegin, loop and jrcxz have no
 * relocation that every linker knows. */
bool x86_64_relocatable(const uint8_t *bytes, uint8_t length, struct code_bytes *out)
{
    struct parsed parsed;
    if (!x86_64_canonical(bytes, length, out))
        return false;
    if (field_of_branch(out->bytes, out->length).size != 0) {
        bool conditional = out->bytes[0] == OPCODE_TWO_BYTE;
        if (!conditional)
            add_reloc(out, 1, R_X86_64_PLT32);
        return !conditional;
    }
    if (!parse_whole(out->bytes, out->length, &parsed))
        return false;
    struct field field = field_of(&parsed.insn);
    bool branch = parsed.insn.raw.imm[0].is_relative;
    if (field.size != 4 || (branch && parsed.insn.opcode != OPCODE_CALL &&
                            parsed.insn.opcode != OPCODE_JUMP))
        return false;
    if (parsed.insn.opcode_map != ZYDIS_OPCODE_MAP_DEFAULT && branch)
        return false;
    add_reloc(out, field.offset, branch ? R_X86_64_PLT32 : R_X86_64_PC32);
    return true;
}

/* --- the stack operand --- */

static bool is_rsp_memory(const ZydisDecodedInstruction *insn)
{
    return (insn->attributes & ZYDIS_ATTRIB_HAS_SIB) && insn->raw.modrm.mod != 3 &&
           insn->raw.sib.base == BIT_RSP && insn->address_width == 64;
}

/* mov %rsp,%reg -> lea value(%rsp),%reg. `reg` is what Zydis calls it. */
static void put_lea(struct code_bytes *out, uint32_t reg, int32_t value)
{
    bool small = fits_signed(value, 8);
    *out = (struct code_bytes){0};
    append(out, reg >= 8 ? 0x4c : 0x48, 1); /* REX.W, REX.R */
    append(out, OPCODE_LEA, 1);
    append(out, (small ? 0x44u : 0x84u) | (reg & 7) << 3, 1);
    append(out, 0x24, 1); /* no index, base rsp */
    append(out, (uint32_t)value, small ? 1 : 4);
}

/* How a displacement is written. EVEX counts 8-bit ones in units of the memory operand
 * (disp8*N, Intel SDM vol. 2, 2.7.5); for all others the unit is 1. */
struct disp {
    uint8_t mod, size;
    uint32_t bits;
};

static struct disp smallest_disp(int64_t value, int64_t unit)
{
    if (value == 0)
        return (struct disp){0, 0, 0};
    if (value % unit == 0 && fits_signed(value / unit, 8))
        return (struct disp){1, 1, (uint32_t)(value / unit)};
    return (struct disp){2, 4, (uint32_t)value};
}

/* Replaces the displacement of disp(%rsp,…). One that is not in its smallest form has
 * been left to a relocation (or to taste): it is not ours to change. */
static bool put_disp(const uint8_t *bytes, const struct parsed *parsed, int64_t old,
                     int32_t delta, struct code_bytes *out)
{
    const ZydisDecodedInstruction *insn = &parsed->insn;
    int64_t unit = parsed->context.cd8_scale ? parsed->context.cd8_scale : 1;
    uint8_t at = (uint8_t)(insn->raw.sib.offset + 1);
    uint8_t behind = (uint8_t)(at + insn->raw.disp.size / 8);
    if (!fits_signed(old + delta, 32) ||
        smallest_disp(old, unit).size != insn->raw.disp.size / 8)
        return false;
    struct disp disp = smallest_disp(old + delta, unit);
    copy(out, bytes, at);
    out->bytes[insn->raw.modrm.offset] =
        (uint8_t)((bytes[insn->raw.modrm.offset] & 0x3f) | disp.mod << 6);
    append(out, disp.bits, disp.size);
    memcpy(out->bytes + out->length, bytes + behind, (size_t)(insn->length - behind));
    out->length = (uint8_t)(out->length + insn->length - behind);
    return true;
}

/* The result must decode to the same instruction, its stack operand moved. */
static bool is_shifted(const struct insn *before, const struct code_bytes *code,
                       int32_t delta)
{
    struct insn after;
    uint32_t direction = INSN_BELOW_SP; /* may change: it is the sign of the sum */
    return code->length <= ZYDIS_MAX_INSTRUCTION_LENGTH &&
           x86_64_decode(code->bytes, code->length, 0, &after) &&
           after.length == code->length &&
           (after.traits | direction) == (before->traits | direction) &&
           (int64_t)after.sp_value == (int64_t)before->sp_value + delta &&
           after.uses == before->uses && after.defs == before->defs &&
           after.flag_uses == before->flag_uses &&
           after.flag_defs == before->flag_defs && after.flow == before->flow;
}

bool x86_64_shift_sp(const uint8_t *bytes, uint8_t length, int32_t delta,
                     struct code_bytes *out)
{
    struct parsed parsed;
    struct insn before;
    if (!parse_whole(bytes, length, &parsed) ||
        !x86_64_decode(bytes, length, 0, &before) ||
        !(before.traits & (INSN_SP_MEMORY | INSN_SP_COPY)) ||
        (before.traits & (INSN_SP_OPAQUE | INSN_SP_ADJUST)))
        return false;
    const ZydisDecodedInstruction *insn = &parsed.insn;
    if (delta == 0) {
        copy(out, bytes, length);
        return true;
    }
    if (insn->mnemonic == ZYDIS_MNEMONIC_MOV && insn->raw.modrm.mod == 3) {
        uint64_t copy_to = before.defs;
        uint32_t reg = 0;
        while (!(copy_to >> reg & 1))
            reg++;
        put_lea(out, reg, delta);
    } else if (!is_rsp_memory(insn) ||
               !put_disp(bytes, &parsed, before.sp_value, delta, out)) {
        return false;
    }
    return is_shifted(&before, out, delta);
}

/* --- calls and jumps --- */

/* e8 -> e9, ff /2 -> ff /4. Both keep length and field, so displacements and
 * relocations stay right; all prefixes (bnd, notrack, a padding 67 or REX.W left by a
 * linker) mean the same on a jump. */
bool x86_64_call_to_jump(const uint8_t *bytes, uint8_t length, struct code_bytes *out)
{
    struct parsed parsed;
    struct insn insn;
    if (length == 5 && bytes[0] == OPCODE_CALL) {
        x86_64_emit_jump(out);
        memcpy(out->bytes + 1, bytes + 1, 4);
        return true;
    }
    if (!parse_whole(bytes, length, &parsed) || !x86_64_decode(bytes, length, 0, &insn))
        return false;
    copy(out, bytes, length);
    struct field field = field_of(&parsed.insn);
    if (insn.flow == FLOW_CALL && field.offset != 0) {
        out->bytes[field.offset - 1] = OPCODE_JUMP;
    } else if (insn.flow == FLOW_CALL_INDIRECT && parsed.insn.opcode == OPCODE_GROUP5 &&
               parsed.insn.raw.modrm.reg == GROUP5_CALL) {
        uint8_t *modrm = &out->bytes[parsed.insn.raw.modrm.offset];
        *modrm = (uint8_t)((*modrm & ~0x38) | GROUP5_JUMP << 3);
    } else {
        return false;
    }
    if (field.size != 0) {
        out->has_reloc = true;
        out->reloc_offset = field.offset;
        out->reloc_type = insn.flow == FLOW_CALL ? R_X86_64_PLT32 : R_X86_64_PC32;
        out->reloc_addend = -(int64_t)(length - field.offset);
    }
    return true;
}

uint32_t x86_64_call_reloc_to_jump(uint32_t type)
{
    return type;
}

static void emit_branch(struct code_bytes *out, uint8_t opcode)
{
    *out = (struct code_bytes){.bytes = {opcode},
                               .length = 5,
                               .has_reloc = true,
                               .reloc_offset = 1,
                               .reloc_type = R_X86_64_PLT32,
                               .reloc_addend = -4};
}

void x86_64_emit_call(struct code_bytes *out)
{
    emit_branch(out, OPCODE_CALL);
}

void x86_64_emit_jump(struct code_bytes *out)
{
    emit_branch(out, OPCODE_JUMP);
}

void x86_64_emit_return(struct code_bytes *out)
{
    *out = (struct code_bytes){.bytes = {OPCODE_RET}, .length = 1};
}

/* push %rax; lea 8(%rsp),%rsp. A pop would be shorter, but needs a register that nobody
 * wants: callees may hand back something in any of them, whatever the ABI says. */
void x86_64_emit_align(struct code_bytes *before, struct code_bytes *after)
{
    *before = (struct code_bytes){.bytes = {OPCODE_PUSH}, .length = 1};
    *after = (struct code_bytes){0};
    append(after, REX_W, 1);
    append(after, OPCODE_LEA, 1);
    append(after, MODRM_DISP8_RSP, 1);
    append(after, SIB_RSP, 1);
    append(after, 8, 1);
}

/* The recommended multi-byte no-ops, Intel SDM vol. 2, NOP, table 4-12. */
enum { LONGEST_NOP = 9 };
static const char *const nops[LONGEST_NOP] = {
    "\x90",
    "\x66\x90",
    "\x0f\x1f\x00",
    "\x0f\x1f\x40\x00",
    "\x0f\x1f\x44\x00\x00",
    "\x66\x0f\x1f\x44\x00\x00",
    "\x0f\x1f\x80\x00\x00\x00\x00",
    "\x0f\x1f\x84\x00\x00\x00\x00\x00",
    "\x66\x0f\x1f\x84\x00\x00\x00\x00\x00",
};

void x86_64_emit_padding(uint8_t *at, uint32_t size)
{
    while (size != 0) {
        uint32_t length = size < LONGEST_NOP ? size : LONGEST_NOP;
        memcpy(at, nops[length - 1], length);
        at += length;
        size -= length;
    }
}
