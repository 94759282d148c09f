/* SPDX-License-Identifier: MIT
 *
 * What the fields of a helper refer to, in the words of the object that holds the
 * helper. In the object of its first site that is the same symbol. In an object of its
 * own,
 *
 * - a symbol that is bound by name is an undefined symbol of that name;
 * - a local symbol, or a position that a section symbol says, gets a hidden global
 * beside it, named after the set, the object and the thing itself.
 *
 * A position is named where it is, never as "another symbol + a distance": in a section
 * whose strings are merged a distance means nothing.
 */
#include "outliner/rewrite/rewrite.h"

#include <assert.h>
#include <elf.h>
#include <string.h>

/* Something in another object, as a key: equal things are imported once. */
struct import_key {
    uint32_t object, section; /* section NO_INDEX: the symbol itself */
    uint64_t value;           /* symbol index, or section offset (new) */
};

static uint32_t remember(struct rewrite *rewrite, uint32_t number,
                         const struct symbol *symbol)
{
    assert(number == rewrite->imported.count);
    struct symbol import = *symbol;
    import.section = SECTION_UNDEFINED;
    import.value = import.size = 0;
    if (import.type != STT_TLS)
        import.type = STT_NOTYPE;
    uint32_t index = symbols_add(rewrite, rewrite->home, &import);
    array_push(rewrite->stage, &rewrite->imported, index);
    return index;
}

/* A symbol that other objects can name already. */
static uint32_t import_named(struct rewrite *rewrite, const struct symbol *symbol)
{
    uint32_t count = table_count(rewrite->imports);
    uint32_t number = table_intern_string(rewrite->imports, symbol->name);
    if (number < count)
        return rewrite->imported.items[number];
    struct symbol import = *symbol;
    if (import.section != SECTION_UNDEFINED)
        import.bind = STB_GLOBAL;
    return remember(rewrite, number, &import);
}

/* A hidden global, defined beside something local. */
static uint32_t import_hidden(struct rewrite *rewrite, const struct import_key *key,
                              struct symbol symbol, const char *name)
{
    uint32_t count = table_count(rewrite->imports);
    uint32_t number = table_intern(rewrite->imports, key, sizeof *key);
    if (number < count)
        return rewrite->imported.items[number];
    symbol.name = symbols_name(rewrite, name);
    symbol.bind = STB_GLOBAL;
    symbol.other = (uint8_t)((symbol.other & ~3u) | STV_HIDDEN);
    symbols_add(rewrite, key->object, &symbol);
    return remember(rewrite, number, &symbol);
}

static uint32_t import_local(struct rewrite *rewrite, uint32_t object, uint32_t symbol)
{
    struct import_key key = {object, NO_INDEX, symbol};
    struct symbol copy = rewrite->drafts[object].symbols.items[symbol];
    const char *name = arena_format(rewrite->arena, "%s.%u.%s",
                                    rewrite->options->set_name, object, copy.name);
    return import_hidden(rewrite, &key, copy, name);
}

static uint32_t import_position(struct rewrite *rewrite, uint32_t object,
                                uint32_t section, uint64_t offset)
{
    struct import_key key = {object, section, offset};
    const struct section *in = &rewrite->drafts[object].old->sections[section];
    struct symbol symbol = {.value = offset,
                            .section = section,
                            .type = in->flags & SHF_TLS ? STT_TLS : STT_NOTYPE};
    const char *name =
        arena_format(rewrite->arena, "%s.%u.%s+%#llx", rewrite->options->set_name,
                     object, in->name, (unsigned long long)offset);
    return import_hidden(rewrite, &key, symbol, name);
}

/* The relocation of another object, said in `home`. */
static void import_reloc(struct rewrite *rewrite, uint32_t object, uint8_t bias,
                         struct reloc *reloc)
{
    const struct symbol *symbol = &rewrite->drafts[object].symbols.items[reloc->symbol];
    if (reloc->symbol == 0)
        return;
    if (!symbol_is_local(symbol)) {
        reloc->symbol = import_named(rewrite, symbol);
    } else if (symbol->type != STT_SECTION) {
        reloc->symbol = import_local(rewrite, object, reloc->symbol);
    } else {
        const struct section *in =
            &rewrite->drafts[object].old->sections[symbol->section];
        int64_t offset = wrapping_add(reloc->addend, bias);
        bool inside = offset >= 0 && (uint64_t)offset <= in->data.size;
        uint64_t anchor = inside ? (uint64_t)offset : 0;
        reloc->addend -= (int64_t)anchor;
        reloc->symbol = import_position(rewrite, object, symbol->section, anchor);
    }
}

/* A position that the assembler resolved. A local function there is as good as the
 * position, and says more; a global one might be preempted, which the field could not
 * be. */
static struct reloc name_position(struct rewrite *rewrite,
                                  const struct helper_body *body,
                                  const struct helper_ref *ref)
{
    const struct program *program = rewrite->program;
    const struct code *code = &program->code[body->code];
    struct reloc out = {.addend = ref->addend};
    uint32_t number = program_function_at(program, body->code, ref->target);
    const struct function *function =
        number == NO_INDEX ? NULL : &program->functions[number];
    bool named =
        function && function->start == ref->target && function->symbol != NO_INDEX;
    if (named) {
        const struct object *object = program_object(program, body->code);
        named = object->symbols[function->symbol].bind == STB_LOCAL;
    }
    uint32_t place = rewrite_start(rewrite, code->object, code->section, ref->target);
    if (code->object != rewrite->home) {
        out.symbol = named
                         ? import_local(rewrite, code->object, function->symbol)
                         : import_position(rewrite, code->object, code->section, place);
    } else if (named) {
        out.symbol = function->symbol;
    } else {
        out.symbol = symbols_section(rewrite, code->object, code->section);
        out.addend += place;
    }
    return out;
}

struct reloc symbols_import(struct rewrite *rewrite, const struct helper_body *body,
                            const struct helper_ref *ref)
{
    struct reloc out;
    const struct code *code = &rewrite->program->code[body->code];
    if (ref->reloc == NO_INDEX) {
        out = name_position(rewrite, body, ref);
    } else {
        out = rewrite_relocs(rewrite, code->object, code->section)[ref->reloc];
        out.addend += ref->addend;
        if (code->object != rewrite->home)
            import_reloc(rewrite, code->object, ref->bias, &out);
    }
    out.type = ref->type;
    return out;
}
