/* SPDX-License-Identifier: MIT
 *
 * What the generic code asks of a machine: one const table of facts and functions for each
 * target, chosen at run time by e_machine. Generic code asks for a fact, never for a name.
 * A target knows nothing of unwinding and nothing of other targets.
 *
 * How to add one: targets/README.md.
 */
#ifndef MO_TARGET_H
#define MO_TARGET_H

#include "mo/insn.h"
#include "mo/object.h"

struct program;
struct jump_table;

/* What a relocation means, as far as moving its instruction goes. */
enum reloc_class {
    RELOC_UNKNOWN,  /* the code around it stays as it is */
    RELOC_NONE,     /* R_*_NONE and hints that mean nothing once moved */
    RELOC_ABSOLUTE, /* S + A, whole or in parts (lo12, movw groups, 32S): any place will do */
    RELOC_PC,       /* S + A - P, data or address */
    RELOC_PAGE,     /* AArch64 Page(S + A) - Page(P) */
    RELOC_CALL,     /* S + A - P of a call or jump; may go through a PLT or veneer */
    RELOC_BRANCH,   /* S + A - P of a branch that gets no veneer: cannot leave its section */
    RELOC_GOT,      /* through the global offset table, complete in one instruction */
    RELOC_GOT_PAGE, /* AArch64 page of a GOT entry; glued to the next instruction */
    RELOC_GOT_LOW,  /* its other half */
    RELOC_TLS,      /* thread-local, complete in one instruction: local or initial exec */
    RELOC_TLS_ATOM, /* part of a TLS sequence that linkers rewrite by pattern: never moves */
    RELOC_SIZE,     /* Z + A */
};

struct reloc_kind {
    const char *name;  /* "R_X86_64_PC32" */
    uint8_t size;      /* bytes of the word that holds the field: 1, 2, 4 or 8 */
    uint8_t kind;      /* enum reloc_class */
    uint64_t mask;     /* bits of that word which the linker fills */
};

/* A few bytes of code, with the one relocation that they may need. */
enum { CODE_BYTES = 32 };
struct code_bytes {
    uint8_t bytes[CODE_BYTES];
    uint8_t length;
    bool has_reloc;
    uint8_t reloc_offset; /* of the field, from the first byte */
    uint32_t reloc_type;
    int64_t reloc_addend; /* so that the field means "symbol + 0" */
};

struct target {
    const char *name; /* "aarch64" */
    uint16_t machine; /* EM_... */

    /* --- facts: sizes in bytes --- */
    uint8_t code_align;     /* instructions start at multiples of it: 4, 1 */
    uint8_t function_align; /* least alignment that a function keeps: 4, 2 */
    uint8_t call_size;      /* a call to a helper in another section: 4, 5 */
    uint8_t jump_size;      /* a jump to one: 4, 5 */
    uint8_t return_size;    /* a return: 4, 1 */
    uint8_t call_pushes;    /* what a call takes of the stack: 0, 8 */
    uint8_t save_register_size; /* keeping the link register in another: 8, 0 = cannot */
    uint8_t save_stack_size;    /* keeping it on the stack: 8, 0 = cannot */
    uint8_t save_stack_shift;   /* and what that takes of the stack: 16, 0 */
    uint8_t align_shift; /* by what a called helper lowers SP before it calls others: 8;
                            0 = it cannot call */
    const char *code_mark; /* mapping symbol at the start of code, "$x", or NULL: none */

    /* --- facts: registers --- */
    uint8_t link_register;  /* bit number, or 0xff when calls push */
    uint8_t stack_register; /* bit number */
    uint8_t frame_register; /* bit number; x29, rbp */
    uint64_t veneer_registers; /* a linker's veneer may clobber these on the way to a helper */
    uint64_t scratch_registers; /* may be tried for keeping the link register */
    struct regset call_uses;    /* a call by the ABI reads at most these (arguments, SP) */
    struct regset call_kills;   /* a call by the ABI leaves these undefined */
    struct regset return_uses;  /* live at a return: results, callee-saved, SP, link */
    struct regset callee_saved;

    /* --- facts: unwinding vocabulary (DWARF register numbers of the psABI) --- */
    uint8_t dwarf_return_column; /* 30, 16 */
    uint8_t dwarf_stack_column;  /* 31, 7 */
    /* DWARF column -> register bit, or 0xff when the sets do not hold it; and back. */
    uint8_t (*register_of_dwarf)(uint32_t column);
    uint32_t (*dwarf_of_register)(uint8_t reg); /* NO_INDEX when it has none */

    /* --- decoding --- */

    /* Decodes one instruction at section offset `offset`, of which `size` bytes are there.
     * False when the bytes are not an instruction that we know exactly. `target` is the
     * PC-relative field taken at its face value (as if no relocation lay in it), or
     * NO_INDEX where that is negative or beyond 4 GiB. */
    bool (*decode)(const uint8_t *bytes, uint64_t size, uint32_t offset, struct insn *out);

    const struct reloc_kind *(*reloc_kind)(uint32_t type); /* NULL: unknown */

    /* What to add to S + A of a RELOC_PC or RELOC_CALL to get the position that is meant:
     * bytes from the field to the end of the instruction on x86-64 (4, 5, 6, 8), else 0. */
    uint8_t (*reloc_bias)(const struct insn *insn, uint64_t reloc_offset);

    /* --- re-encoding --- */

    /* Bytes with the PC-relative field set to zero and in its longest form: equal bytes
     * and equal referents mean interchangeable instructions. */
    bool (*canonical)(const uint8_t *bytes, uint8_t length, struct code_bytes *out);

    /* The same instruction, in its own length, with its PC-relative field meaning
     * (own start + displacement); false when the field cannot reach. */
    bool (*retarget)(const uint8_t *bytes, uint8_t length, int64_t displacement,
                     uint8_t *out);

    /* The longest form of a short branch (x86-64 rel8 -> rel32), field zero; false when it
     * has none (jrcxz, loop) or is in it already. */
    bool (*widen)(const uint8_t *bytes, uint8_t length, struct code_bytes *out);

    /* The shortest form of a long branch (x86-64 rel32 -> rel8), field zero; false when it
     * has none, or is in it already. NULL: all branches have one length. */
    bool (*narrow)(const uint8_t *bytes, uint8_t length, struct code_bytes *out);

    /* A PC-relative instruction whose target was resolved by the assembler, as it looks
     * with a relocation to "symbol + 0" instead; false when no relocation can say it
     * from another section (conditional branches). */
    bool (*relocatable)(const uint8_t *bytes, uint8_t length, struct code_bytes *out);

    /* The instruction with its SP operand (INSN_SP_MEMORY, INSN_SP_COPY) larger by `delta`
     * bytes. A relocation behind the operand moves by the growth. False: no such form. */
    bool (*shift_sp)(const uint8_t *bytes, uint8_t length, int32_t delta,
                     struct code_bytes *out);

    /* A call turned into a jump to the same place (the last instruction of a thunk):
     * length, field offset and addend may differ; the relocation type, if the call has
     * one, becomes call_reloc_to_jump(type). */
    bool (*call_to_jump)(const uint8_t *bytes, uint8_t length, struct code_bytes *out);
    uint32_t (*call_reloc_to_jump)(uint32_t type);

    /* --- emission --- */
    void (*emit_call)(struct code_bytes *out); /* to a symbol, by relocation */
    void (*emit_jump)(struct code_bytes *out);
    void (*emit_return)(struct code_bytes *out);
    /* Code before and after a call that keeps the link register; sizes as stated above.
     * Targets whose calls push leave these NULL. */
    void (*emit_save_register)(uint8_t reg, struct code_bytes *before,
                               struct code_bytes *after);
    void (*emit_save_stack)(struct code_bytes *before, struct code_bytes *after);
    /* Code that lowers SP so that the stack is aligned in a called helper, and that raises
     * it again. Writes no register and no flags. NULL when align_shift is 0. */
    void (*emit_align)(struct code_bytes *before, struct code_bytes *after);
    void (*emit_padding)(uint8_t *at, uint32_t size); /* no-ops, the longest first */

    /* --- jump tables --- */

    /* Explains the indirect jump at instruction index `insn` of the program as a jump
     * table with a known number of entries. False when it is anything else. */
    bool (*find_table)(struct arena *arena, const struct program *program, uint32_t insn,
                       struct jump_table *out);

    /* --- for people --- */

    /* The instruction at section offset `offset` as text. NULL: there is nothing that can
     * print this machine's instructions, and they are shown as words. */
    bool (*print)(const uint8_t *bytes, uint8_t length, uint32_t offset, char *out,
                  size_t size);
};

/* The target of an e_machine, or NULL. */
const struct target *target_of(uint16_t machine);

/* All of them, NULL-terminated, for --help and for tests. */
const struct target *const *target_list(void);

extern const struct target target_aarch64;
extern const struct target target_x86_64;

#endif
