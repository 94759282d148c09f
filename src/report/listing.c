/* SPDX-License-Identifier: MIT */
#include "mo/listing.h"

#include "mo/array.h"
#include "mo/program.h"
#include "mo/target.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MOST_TEXT = 160 };

struct lister {
    struct arena *arena;
    const struct object *object;
    const struct section *section;
    const struct target *target;
    uint64_t start;
};

/* "name+0x8": what the relocation means, the distance to the end of the instruction
 * taken off it. */
static const char *referent_of(const struct lister *lister, const struct insn *insn,
                               const struct reloc *reloc)
{
    const struct object *object = lister->object;
    const struct symbol *symbol = &object->symbols[reloc->symbol];
    const struct reloc_kind *kind = lister->target->reloc_kind(reloc->type);
    int64_t addend = reloc->addend;
    if (insn && kind && (kind->kind == RELOC_PC || kind->kind == RELOC_CALL))
        addend = wrapping_add(addend, lister->target->reloc_bias(insn, reloc->offset));
    const char *name = symbol->name;
    if (symbol->type == STT_SECTION && symbol->section < object->section_count)
        name =
            arena_format(lister->arena, "[%s]", object->sections[symbol->section].name);
    if (addend == 0)
        return name;
    return arena_format(lister->arena, "%s%s0x%" PRIx64, name, addend < 0 ? "-" : "+",
                        addend < 0 ? -(uint64_t)addend : (uint64_t)addend);
}

static const char *hex_of(const struct lister *lister, const uint8_t *bytes,
                          uint32_t length)
{
    if (length == 4 && lister->target->code_align == 4)
        return arena_format(lister->arena, "%08" PRIx64, load_le(bytes, 4));
    char *text = arena_alloc(lister->arena, (size_t)length * 3 + 1);
    for (uint32_t i = 0; i < length; i++)
        sprintf(text + (size_t)i * 3, i + 1 < length ? "%02x " : "%02x", bytes[i]);
    return text;
}

/* Machines without a printer of their own: the word, and what is known of its flow. */
static const char *words_text(const struct lister *lister, const uint8_t *bytes,
                              const struct insn *insn)
{
    static const char *const flows[FLOW_COUNT] = {
        [FLOW_NEXT] = "",
        [FLOW_JUMP] = "  // jump",
        [FLOW_BRANCH] = "  // branch",
        [FLOW_JUMP_INDIRECT] = "  // indirect jump",
        [FLOW_CALL] = "  // call",
        [FLOW_CALL_INDIRECT] = "  // indirect call",
        [FLOW_RETURN] = "  // return",
        [FLOW_STOP] = "  // stop",
    };
    return arena_format(lister->arena, ".inst 0x%08" PRIx64 "%s",
                        load_le(bytes, insn->length), flows[insn->flow]);
}

static const char *text_of(const struct lister *lister, const uint8_t *bytes,
                           const struct insn *insn, const char *referent)
{
    char text[MOST_TEXT];
    const char *line = text;
    if (!lister->target->print ||
        !lister->target->print(bytes, insn->length, insn->offset, text, sizeof text))
        line = words_text(lister, bytes, insn);
    if (referent)
        return arena_format(lister->arena, "%s  <%s>", line, referent);
    if (insn->target != NO_INDEX)
        return arena_format(lister->arena, "%s  <%s0x%" PRIx64 ">", line,
                            insn->target < lister->start ? "-" : "+",
                            insn->target < lister->start
                                ? lister->start - insn->target
                                : insn->target - lister->start);
    return arena_strdup(lister->arena, line);
}

/* Without what depends on its place: the bytes in their longest form, the field of an
 * address zero, and what it refers to. */
static const char *same_of(const struct lister *lister, const uint8_t *bytes,
                           const struct insn *insn, const char *referent)
{
    struct code_bytes plain;
    if (!(insn->traits & INSN_PC_RELATIVE) && !referent)
        return hex_of(lister, bytes, insn->length);
    if (!lister->target->canonical(bytes, insn->length, &plain))
        return arena_format(lister->arena, "%s %s", hex_of(lister, bytes, insn->length),
                            referent ? referent : "");
    return arena_format(lister->arena, "%s %s",
                        hex_of(lister, plain.bytes, plain.length),
                        referent ? referent : "(own)");
}

/* Of what the assembler has resolved: the function that starts there, or NULL. */
static const char *function_name_at(const struct lister *lister, uint64_t offset)
{
    const struct object *object = lister->object;
    for (uint32_t i = 1; i < object->symbol_count; i++) {
        const struct symbol *symbol = &object->symbols[i];
        if (symbol->type == STT_FUNC && symbol->value == offset &&
            symbol->section < object->section_count &&
            &object->sections[symbol->section] == lister->section)
            return symbol->name;
    }
    return NULL;
}

/* One instruction, or what is data up to where the next may start. */
static struct listing_line line_at(const struct lister *lister, uint64_t at,
                                   uint64_t end)
{
    const struct section *section = lister->section;
    const uint8_t *bytes = section->data.at + at;
    struct insn insn = {0};
    struct listing_line line = {.at = at, .reloc = NO_INDEX};
    bool decoded = lister->target->decode(bytes, end - at, (uint32_t)at, &insn);
    uint64_t step = decoded ? insn.length : lister->target->code_align;
    line.length = (uint8_t)(step < end - at ? step : end - at);
    uint32_t reloc = section_reloc_at(section, at);
    if (reloc < section->reloc_count &&
        section->relocs[reloc].offset < at + line.length) {
        line.reloc = reloc;
        line.referent =
            referent_of(lister, decoded ? &insn : NULL, &section->relocs[reloc]);
    }
    bool leaves = decoded && insn.target != NO_INDEX &&
                  (insn.target < lister->start || insn.target >= end);
    if (!line.referent && leaves)
        line.referent = function_name_at(lister, insn.target);
    line.hex = hex_of(lister, bytes, line.length);
    line.text = decoded ? text_of(lister, bytes, &insn, line.referent) : "(data)";
    line.same = decoded ? same_of(lister, bytes, &insn, line.referent) : line.hex;
    return line;
}

struct listing listing_of(struct arena *arena, const struct object *object,
                          uint32_t section, uint64_t start, uint64_t size)
{
    struct lister lister = {arena, object, &object->sections[section],
                            target_of(object->machine), start};
    array_of(struct listing_line) lines = {0};
    uint64_t end = start + size;
    if (end > lister.section->data.size)
        end = lister.section->data.size;
    for (uint64_t at = start; lister.target && at < end;) {
        struct listing_line line = line_at(&lister, at, end);
        array_push(arena, &lines, line);
        at += line.length;
    }
    return (struct listing){lines.items, lines.count};
}
