/* SPDX-License-Identifier: MIT
 *
 * What the relocations of an instruction say about it: where it really points, whether
 * it may move, and what it must not be parted from.
 *
 * A PC-relative field that a relocation fills means nothing by itself, so its target is
 * forgotten, unless the relocation surely leads back into the same section: then it is
 * a branch like one that the assembler resolved. (A default-visibility global symbol
 * may be preempted, so it never is.)
 *
 * Thread-local sequences are rewritten by linkers on sight: separated ones are rejected
 * by one linker and silently miscompiled by others, so their instructions, and those
 * between them, stay. ADRP with the page of a GOT entry may be relaxed together with
 * the LDR right behind it: the two stay glued, and one that stands alone stays put.
 */
#include "outliner/lift/lift.h"

#include <string.h>

/* Furthest that two relocations of one thread-local sequence are apart, bytes. */
enum { TLS_SEQUENCE = 64 };

/* Calls that return twice: the second time with the stack of then, and our helper's
 * return address gone. And the entry hooks of profilers, which look at who called them.
 */
static const char *const stay_names[] = {
    "setjmp",          "_setjmp",        "__setjmp",
    "sigsetjmp",       "__sigsetjmp",    "vfork",
    "__vfork",         "getcontext",     "__getcontext",
    "savectx",         "swapcontext",    "__swapcontext",
    "mcount",          "_mcount",        "__mcount",
    "__fentry__",      "__tls_get_addr", "__tls_get_addr_opt",
    "___tls_get_addr", "returns_twice",
};

/* Of an instrumented call only the return address says where it was. */
static bool is_place_name(const char *name)
{
    static const char prefix[] = "__sanitizer_cov_trace_";
    return name[0] == '_' && strncmp(name, prefix, sizeof prefix - 1) == 0;
}

bool name_stays(const char *name)
{
    for (size_t i = 0; i < sizeof stay_names / sizeof *stay_names; i++) {
        /* Most names are told apart without a call. */
        if (name[0] == stay_names[i][0] && strcmp(name, stay_names[i]) == 0)
            return true;
    }
    return is_place_name(name);
}

/* Functions return through it, so that no plain return is ever executed
 * (-mfunction-return=thunk). */
static bool is_return_thunk(const char *name)
{
    return name[0] == '_' && strcmp(name, "__x86_return_thunk") == 0;
}

static bool is_split_stack_name(const char *name)
{
    return name[0] == '_' && strncmp(name, "__morestack", strlen("__morestack")) == 0;
}

struct operand {
    struct lift *lift;
    uint32_t code, function, insn; /* indices */
    const struct object *object;
    const struct reloc *reloc;
    const struct reloc_kind *kind;
    const uint8_t *names; /* by symbol: NAME_... */
};

/* The relocation's field is the PC-relative one, as opposed to an immediate beside it.
 */
static bool fills_pc_field(const struct operand *operand)
{
    switch ((enum reloc_class)operand->kind->kind) {
    case RELOC_PC:
    case RELOC_PAGE:
    case RELOC_CALL:
    case RELOC_BRANCH:
    case RELOC_GOT:
    case RELOC_GOT_PAGE:
    case RELOC_TLS:
    case RELOC_TLS_ATOM: return true;
    default: return false;
    }
}

static void set_target(const struct operand *operand)
{
    struct program *program = operand->lift->program;
    struct insn *insn = &program->insns[operand->insn];
    insn->target = NO_INDEX;
    enum reloc_class kind = operand->kind->kind;
    if (kind != RELOC_PC && kind != RELOC_CALL && kind != RELOC_BRANCH)
        return;
    uint8_t bias = program->target->reloc_bias(insn, operand->reloc->offset);
    struct referent to = program_referent(operand->object, operand->reloc, bias);
    const struct code *code = &program->code[operand->code];
    if (to.local && to.section == code->section && to.offset >= 0 &&
        (uint64_t)to.offset < operand->object->sections[to.section].data.size)
        insn->target = (uint32_t)to.offset;
}

/* What the name of a symbol says about whoever refers to it. */
enum {
    NAME_STAYS = 1,
    NAME_SPLIT_STACK = 2,
    NAME_WRAPPED = 4,
    NAME_RETURN_THUNK = 8
};

/* Under --wrap=foo an undefined foo is __wrap_foo, and an undefined __real_foo is foo; in
 * a file that defines it a name means what it always did (GNU ld, gold, mold; for lld all
 * files are alike). So the two mean other things in the file of a helper than in the file
 * that the helper's code is from. __wrap_foo is the same everywhere. */
static bool is_wrapped(const struct lift_options *options, const struct symbol *symbol)
{
    static const char real[] = "__real_";
    enum { REAL = sizeof real - 1 };
    const char *name = symbol->name;
    bool local = options->wrap_count == 0 || symbol_is_local(symbol);
    for (uint32_t i = 0; !local && i < options->wrap_count; i++) {
        const char *wrapped = options->wrap[i];
        if (strcmp(name, wrapped) == 0 ||
            (strncmp(name, real, REAL) == 0 && strcmp(name + REAL, wrapped) == 0))
            return true;
    }
    return false;
}

/* By symbol: they are fewer than the references to them. */
static const uint8_t *judge_names(struct arena *arena, const struct lift_options *options,
                                  const struct object *object)
{
    uint8_t *names = arena_alloc(arena, object->symbol_count);
    for (uint32_t i = 0; i < object->symbol_count; i++) {
        const struct symbol *symbol = &object->symbols[i];
        const char *name = symbol->name;
        names[i] = (uint8_t)((name_stays(name) ? NAME_STAYS : 0) |
                             (is_split_stack_name(name) ? NAME_SPLIT_STACK : 0) |
                             (is_wrapped(options, symbol) ? NAME_WRAPPED : 0) |
                             (is_return_thunk(name) ? NAME_RETURN_THUNK : 0));
    }
    return names;
}

static void apply_name(const struct operand *operand)
{
    struct insn *insn = &operand->lift->program->insns[operand->insn];
    uint8_t name = operand->names[operand->reloc->symbol];
    if (name & NAME_STAYS)
        insn->traits |= INSN_FORBIDDEN;
    if (name & NAME_WRAPPED)
        insn->traits |= INSN_WRAPPED;
    if (name & NAME_SPLIT_STACK)
        lift_seal(operand->lift, operand->function, REFUSAL_SPLIT_STACK, insn->offset);
    if (name & NAME_RETURN_THUNK)
        lift_seal(operand->lift, operand->function, REFUSAL_HARDENED, insn->offset);
}

static void apply_reloc(const struct operand *operand)
{
    struct program *program = operand->lift->program;
    struct insn *insn = &program->insns[operand->insn];
    insn->traits |= INSN_RELOCATED;
    switch ((enum reloc_class)operand->kind->kind) {
    case RELOC_UNKNOWN:
    case RELOC_SIZE:
        lift_freeze(operand->lift, operand->code, REFUSAL_UNKNOWN_RELOC,
                    operand->reloc->offset);
        return;
    case RELOC_TLS_ATOM: insn->traits |= INSN_FORBIDDEN; break;
    default: break;
    }
    if ((insn->traits & INSN_PC_RELATIVE) && fills_pc_field(operand))
        set_target(operand);
    apply_name(operand);
}

/* Everything from one thread-local relocation to the next, when that is near. */
static void forbid_between(struct program *program, uint32_t from, uint32_t to)
{
    if (program->insns[to].offset - program->insns[from].offset > TLS_SEQUENCE)
        return;
    for (uint32_t i = from; i <= to; i++)
        program->insns[i].traits |= INSN_FORBIDDEN;
}

/* The halves of a GOT access: glued when they stand together, put when they do not. */
static void glue(struct program *program, uint32_t insn, enum reloc_class kind,
                 uint32_t symbol, uint32_t *open, uint32_t *open_symbol)
{
    bool follows = *open != NO_INDEX && *open + 1 == insn;
    if (kind == RELOC_GOT_LOW && follows && symbol == *open_symbol) {
        program->insns[*open].traits &= ~(uint32_t)INSN_FORBIDDEN;
        program->insns[*open].traits |= INSN_GLUED;
    } else if (kind == RELOC_GOT_LOW || kind == RELOC_GOT_PAGE) {
        program->insns[insn].traits |= INSN_FORBIDDEN;
    }
    *open = kind == RELOC_GOT_PAGE ? insn : NO_INDEX;
    *open_symbol = symbol;
}

/* Walks relocations and instructions of one function side by side. Returns the index of
 * the first relocation behind it. */
static uint32_t walk_function(struct operand *operand, uint32_t reloc)
{
    struct program *program = operand->lift->program;
    const struct function *function = &program->functions[operand->function];
    const struct section *section = program_section(program, operand->code);
    uint32_t last_atom = NO_INDEX, open = NO_INDEX, open_symbol = 0;
    uint32_t last = NO_INDEX; /* instruction with a relocation */
    operand->insn = function->first_insn;
    if (function->opaque)
        return section_reloc_at(section, function->end);
    for (; reloc < section->reloc_count; reloc++) {
        operand->reloc = &section->relocs[reloc];
        uint64_t at = operand->reloc->offset;
        if (at >= function->end)
            break;
        while (program->insns[operand->insn].offset +
                   program->insns[operand->insn].length <=
               at)
            operand->insn++;
        if (operand->insn != last)
            program->insns[operand->insn].reloc = reloc;
        last = operand->insn;
        operand->kind = program->target->reloc_kind(operand->reloc->type);
        if (!operand->kind) {
            lift_freeze(operand->lift, operand->code, REFUSAL_UNKNOWN_RELOC, at);
            continue;
        }
        const struct insn *insn = &program->insns[operand->insn];
        if (at + operand->kind->size > (uint64_t)insn->offset + insn->length) {
            lift_freeze(operand->lift, operand->code, REFUSAL_UNKNOWN_RELOC, at);
            continue;
        }
        apply_reloc(operand);
        enum reloc_class kind = operand->kind->kind;
        glue(program, operand->insn, kind, operand->reloc->symbol, &open, &open_symbol);
        if (kind == RELOC_TLS_ATOM) {
            if (last_atom != NO_INDEX)
                forbid_between(program, last_atom, operand->insn);
            last_atom = operand->insn;
        }
    }
    return reloc;
}

/* One code section. */
static void walk_section(struct lift *lift, uint32_t number, const uint8_t *names)
{
    struct program *program = lift->program;
    const struct code *code = &program->code[number];
    const struct section *section = program_section(program, number);
    uint32_t reloc = 0;
    for (uint32_t f = 0; f < code->function_count; f++) {
        uint32_t function = code->first_function + f;
        uint32_t start = program->functions[function].start;
        if (reloc < section->reloc_count && section->relocs[reloc].offset < start)
            lift_freeze(lift, number, REFUSAL_UNKNOWN_RELOC,
                        section->relocs[reloc].offset); /* in the padding */
        reloc = section_reloc_at(section, start);
        struct operand operand = {.lift = lift,
                                  .code = number,
                                  .function = function,
                                  .object = program_object(program, number),
                                  .names = names};
        reloc = walk_function(&operand, reloc);
    }
    if (code->function_count && reloc < section->reloc_count)
        lift_freeze(lift, number, REFUSAL_UNKNOWN_RELOC, section->relocs[reloc].offset);
}

struct parts {
    struct lift *lift;
    const uint8_t **names; /* by object; NULL: it has no code */
    array_of(struct stretch) codes;
};

static void walk_part(void *context, uint32_t number, uint32_t worker)
{
    const struct parts *parts = context;
    struct stretch part = parts->codes.items[number];
    const struct program *program = parts->lift->program;
    (void)worker;
    for (uint32_t c = part.first; c < part.first + part.count; c++)
        walk_section(parts->lift, c, parts->names[program->code[c].object]);
}

/* A section's relocations say something of itself alone. */
void lift_operands(struct lift *lift)
{
    struct program *program = lift->program;
    struct arena *stage = arena_new();
    struct parts parts = {
        .lift = lift,
        .names = arena_new_array(stage, const uint8_t *, program->objects->count)};
    enum { PART_RELOCS = 8 * 1024 };
    uint32_t room = 0;
    for (uint32_t c = 0; c < program->code_count; c++) {
        uint32_t object = program->code[c].object;
        uint32_t relocs = program_section(program, c)->reloc_count;
        struct stretch part = {c, 0};
        if (!parts.names[object])
            parts.names[object] =
                judge_names(stage, lift->options, program->objects->items[object]);
        if (room == 0) {
            array_push(stage, &parts.codes, part);
            room = PART_RELOCS;
        }
        parts.codes.items[parts.codes.count - 1].count++;
        room = relocs < room ? room - relocs : 0;
    }
    parallel_do(program->workers, parts.codes.count, walk_part, &parts);
    arena_free(stage);
}
