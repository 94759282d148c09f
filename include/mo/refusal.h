/* SPDX-License-Identifier: MIT
 *
 * Why something was left alone. One table feeds the code, the report, --explain, the
 * tests and docs/refusals.md. ORDER refusal: refusal.c holds nothing but this table.
 *
 *   frozen   a section that keeps every byte (its functions neither move nor change)
 *   sealed   a function that keeps its bytes but may move
 *   pinned   an instruction that stays where it is, in a function that is open
 */
#ifndef MO_REFUSAL_H
#define MO_REFUSAL_H

#define REFUSALS(X)                                                                    \
    /* name, level, what it says */                                                    \
    X(NONE, "open", "open")                                                            \
    /* sections */                                                                     \
    X(SECTION_NAME, "frozen", "section has a meaning beyond plain code")               \
    X(UNKNOWN_RELOC, "frozen", "relocation whose meaning for moved code is not known") \
    X(REFERENCE_INTO_SECTION, "frozen",                                                \
      "reference into the section that is not understood")                             \
    X(DEBUG_INFO, "frozen",                                                            \
      "debug information that cannot be kept right describes it")                     \
    X(DEBUG_SPLIT, "frozen", "split debug information (.dwo) describes it")            \
    X(DEBUG_COMPRESSED, "frozen", "compressed debug information describes it")         \
    X(LINK_ORDER, "frozen", "another section holds positions of it in its own format") \
    X(OVERLAP, "frozen", "function symbols overlap")                                   \
    X(NO_FUNCTIONS, "frozen", "no function symbol lies in the section")                \
    X(DUPLICATE_COMDAT, "frozen", "another copy of the COMDAT group is edited")        \
    X(BAD_FRAME_SECTION, "frozen", "unwind table that cannot be read")                 \
    X(UNUSED, "frozen", "the linker drops it: nothing refers to it")                   \
    X(PLACED_APART, "frozen", "a linker script puts it elsewhere than the helpers")    \
    /* functions */                                                                    \
    X(KEEP, "sealed", "kept by request")                                               \
    X(HOT, "sealed", "hot code, as a profile or the section's name says")              \
    X(NO_SYMBOL, "sealed", "code outside of every sized function symbol")              \
    X(UNDECODABLE, "sealed", "bytes that do not decode exactly")                       \
    X(DATA_IN_CODE, "sealed", "data lies in it")                                       \
    X(BESIDE_DATA, "sealed", "keeps its distance from data that may refer to it")      \
    X(SYMBOL_INSIDE, "sealed", "a symbol lies in its middle")                          \
    X(LABEL_TAKEN, "sealed", "address of an inner label is taken")                     \
    X(INDIRECT_JUMP, "sealed", "indirect jump that is neither table nor tail call")    \
    X(BRANCH_INTO_INSN, "sealed", "branch into the middle of an instruction")          \
    X(BRANCH_TO_END, "sealed", "branch to its own end")                                \
    X(CALL_INSIDE, "sealed", "call into its own middle")                               \
    X(EXCEPTION_TABLE, "sealed", "has a call-site table that cannot be read")          \
    X(NO_FRAME, "sealed", "no unwind entry, in a unit that has some")                  \
    X(FRAME_MISMATCH, "sealed", "unwind entries do not cover it exactly")              \
    X(BAD_FRAME, "sealed", "unwind entry that cannot be read")                         \
    X(DEPTH_MISMATCH, "sealed", "code and unwind rows disagree about the stack depth") \
    X(SPLIT_STACK, "sealed", "segmented stack prologue")                               \
    X(HARDENED, "sealed", "returns in a hardened way that a helper would not")         \
    X(STACK_SETUP, "sealed", "sets up its stack")                                      \
    X(PATCHABLE, "sealed", "entry that is patched at run time")                        \
    /* instructions */                                                                 \
    X(INSN_PINNED, "pinned", "instruction that must stay where it is")                 \
    X(INSN_LOCAL, "pinned", "refers to a place in its own function")                   \
    X(INSN_TLS, "pinned", "part of a thread-local access sequence")                    \
    X(INSN_TWICE, "pinned", "call that may return twice")                              \
    X(INSN_RELOC, "pinned", "relocation that cannot leave its section or group")       \
    X(INSN_WRAPPED, "pinned", "refers to a name that is wrapped (--wrap)")             \
    X(INSN_PARTED, "pinned", "would be parted from its other half")

enum refusal {
#define X(name, level, text) REFUSAL_##name,
    REFUSALS(X)
#undef X
        REFUSAL_COUNT
};

const char *refusal_name(enum refusal refusal);  /* "LABEL_TAKEN" */
const char *refusal_level(enum refusal refusal); /* "frozen", "sealed", "pinned" */
const char *refusal_text(enum refusal refusal);

#endif
