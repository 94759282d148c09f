/* SPDX-License-Identifier: MIT
 *
 * --remarks: what was done and what was left alone, in LLVM's format of optimisation
 * remarks, for opt-viewer and its kin.
 *
 * Those want a line of a source file for each remark. Objects need not have line
 * tables, so the source is a listing of the code that the remarks speak of, written
 * beside them (FILE.s): a function as it was before the round, wherever something was
 * done to it or refused.
 *
 * Reference: LLVM, docs/Remarks.rst, "YAML remarks".
 */
#include "mo/remarks.h"

#include "mo/bytes.h"
#include "mo/listing.h"
#include "report_parts.h"

#include <elf.h>
#include <inttypes.h>
#include <string.h>

struct remarks {
    struct arena *session;
    const char *listing_name;
    struct buffer yaml, listing;
    uint32_t line; /* the next of the listing */
};

struct remarks *remarks_new(struct arena *session, const char *listing_name)
{
    struct remarks *remarks = arena_new_one(session, struct remarks);
    *remarks = (struct remarks){session, listing_name, buffer_new(session),
                                buffer_new(session), 1};
    return remarks;
}

struct bytes remarks_yaml(const struct remarks *remarks)
{
    return buffer_bytes(&remarks->yaml);
}

struct bytes remarks_listing(const struct remarks *remarks)
{
    return buffer_bytes(&remarks->listing);
}

/* --- pieces --- */

static void put(struct remarks *remarks, const char *text)
{
    buffer_put(&remarks->yaml, text, strlen(text));
}

static void put_key(struct remarks *remarks, const char *key, const char *value)
{
    put(remarks, key);
    put_json_string(&remarks->yaml, value); /* JSON strings are YAML strings */
    put(remarks, "\n");
}

static void begin(struct remarks *remarks, const char *tag, const char *name,
                  uint32_t line, const char *function)
{
    put(remarks, arena_format(remarks->session, "--- !%s\n", tag));
    put_key(remarks, "Pass: ", "mo-link");
    put_key(remarks, "Name: ", name);
    put(remarks, "DebugLoc: { File: ");
    put_json_string(&remarks->yaml, remarks->listing_name);
    put(remarks,
        arena_format(remarks->session, ", Line: %" PRIu32 ", Column: 0 }\n", line));
    put_key(remarks, "Function: ", function);
    put(remarks, "Args:\n");
}

static void put_string(struct remarks *remarks, const char *value)
{
    put_key(remarks, "  - String: ", value);
}

static void put_number(struct remarks *remarks, const char *key, int64_t value)
{
    put_key(remarks, arena_format(remarks->session, "  - %s: ", key),
            arena_format(remarks->session, "%" PRId64, value));
}

static void put_line(struct remarks *remarks, const char *text)
{
    buffer_put(&remarks->listing, text, strlen(text));
    buffer_u8(&remarks->listing, '\n');
    remarks->line++;
}

/* --- sites --- */

/* The plan's helper and site at each instruction where one begins. */
struct places {
    const uint32_t *helper, *site; /* by instruction index; NO_INDEX: none begins */
};

static struct places find_places(struct arena *stage, const struct program *program,
                                 const struct plan *plan)
{
    size_t size = (size_t)program->insn_count * sizeof(uint32_t);
    uint32_t *helper = arena_alloc(stage, size), *site = arena_alloc(stage, size);
    memset(helper, 0xff, size);
    memset(site, 0xff, size);
    for (uint32_t i = 0; i < plan->helper_count; i++) {
        const struct helper *of = &plan->helpers[i];
        for (uint32_t j = of->first_site; j < of->first_site + of->site_count; j++) {
            helper[plan->sites[j].insn] = i;
            site[plan->sites[j].insn] = j;
        }
    }
    return (struct places){helper, site};
}

static void put_site(struct remarks *remarks, const struct program *program,
                     const struct helper *helper, const struct site *site)
{
    const struct insn *first = &program->insns[site->insn];
    const struct insn *last = first + helper->length - 1;
    uint32_t function = program_function_of_insn(program, site->insn);
    begin(remarks, "Passed", "Outlined", remarks->line,
          program_function_name(program, function));
    put_number(remarks, "Length", helper->length);
    put_string(remarks, " instructions (");
    put_number(remarks, "Bytes", last->offset + last->length - first->offset);
    put_string(remarks, " bytes) became a ");
    put_key(remarks, "  - Form: ", form_name((enum form)site->form));
    put_string(remarks, site->form == FORM_TAIL ? " jump to " : " call to ");
    put_key(remarks, "  - Callee: ",
            arena_format(remarks->session, HELPER_PREFIX "%016" PRIx64, helper->hash));
    put_string(remarks, ", which saves ");
    put_number(remarks, "Saved", helper->saving);
    put_string(remarks, " bytes at ");
    put_number(remarks, "Sites", helper->site_count);
    put_string(remarks, " places");
    put(remarks, "...\n");
}

static bool has_site(const struct function *function, const struct places *places)
{
    for (uint32_t i = 0; i < function->insn_count; i++) {
        if (places->helper[function->first_insn + i] != NO_INDEX)
            return true;
    }
    return false;
}

static const char *place_of(const struct remarks *remarks,
                            const struct program *program, uint32_t code,
                            uint64_t offset)
{
    return arena_format(
        remarks->session, "%s %s+0x%" PRIx64,
        section_unit(program_object(program, code), program->code[code].section),
        program_section(program, code)->name, offset);
}

/* The instructions of a function, and in front of each where a site begins its remark:
 * both have the same line. */
static void add_function(struct remarks *remarks, const struct program *program,
                         const struct plan *plan, const struct places *places,
                         uint32_t index, uint32_t round)
{
    struct arena *stage = arena_new();
    const struct function *function = &program->functions[index];
    uint32_t code = function->code;
    put_line(remarks, "");
    put_line(remarks,
             arena_format(stage, "%s:  # %s, before round %" PRIu32,
                          program_function_name(program, index),
                          place_of(remarks, program, code, function->start), round));
    struct listing listing =
        listing_of(stage, program_object(program, code), program->code[code].section,
                   function->start, function->end - function->start);
    for (uint32_t i = 0; i < listing.count; i++) {
        uint32_t insn = program_insn_in(program, index, (uint32_t)listing.lines[i].at);
        if (insn != NO_INDEX && places->helper[insn] != NO_INDEX)
            put_site(remarks, program, &plan->helpers[places->helper[insn]],
                     &plan->sites[places->site[insn]]);
        put_line(remarks, arena_format(stage, "\t%s", listing.lines[i].text));
    }
    arena_free(stage);
}

/* --- what was left alone --- */

static void put_missed(struct remarks *remarks, const char *function, const char *place,
                       enum refusal refusal)
{
    put_line(remarks, "");
    begin(remarks, "Missed", refusal_name(refusal), remarks->line, function);
    put_string(remarks, refusal_level(refusal));
    put_string(remarks, ": ");
    put_string(remarks, refusal_text(refusal));
    put(remarks, "...\n");
    put_line(remarks, arena_format(remarks->session, "%s:  # %s, %s", function, place,
                                   refusal_level(refusal)));
}

static void add_frozen(struct remarks *remarks, const struct program *program,
                       uint32_t code)
{
    const struct object *object = program_object(program, code);
    for (uint32_t i = 1; i < object->symbol_count; i++) {
        const struct symbol *symbol = &object->symbols[i];
        if (symbol->type == STT_FUNC && symbol->section == program->code[code].section)
            put_missed(remarks, symbol->name,
                       place_of(remarks, program, code, symbol->value),
                       program->code[code].refusal);
    }
}

void remarks_refusals(struct remarks *remarks, const struct program *program)
{
    for (uint32_t i = 0; i < program->code_count; i++) {
        const struct code *code = &program->code[i];
        if (code->refusal != REFUSAL_NONE)
            add_frozen(remarks, program, i);
        for (uint32_t j = 0; code->refusal == REFUSAL_NONE && j < code->function_count;
             j++) {
            uint32_t index = code->first_function + j;
            const struct function *function = &program->functions[index];
            if (function->refusal != REFUSAL_NONE)
                put_missed(remarks, program_function_name(program, index),
                           place_of(remarks, program, i, function->start),
                           function->refusal);
        }
    }
}

void remarks_round(struct remarks *remarks, uint32_t round,
                   const struct program *program, const struct plan *plan)
{
    struct arena *stage = arena_new();
    struct places places = find_places(stage, program, plan);
    for (uint32_t i = 0; i < program->function_count; i++) {
        if (has_site(&program->functions[i], &places))
            add_function(remarks, program, plan, &places, i, round);
    }
    arena_free(stage);
}
