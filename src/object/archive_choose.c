/* SPDX-License-Identifier: MIT
 *
 * Which members a link needs. As GNU ld does with an archive: go through the members in
 * order, load each that defines what is wanted by then, and start again until a pass
 * loads nothing. Several archives are seen as one, so the order of archives on the
 * command line does not matter here; the result may hold a member more than the link
 * would take.
 *
 * Wanted is a name that is undefined, not only weakly so; and one that is common, if
 * the member defines it for good (Fortran's block data).
 */
#include "mo/object.h"
#include "mo/table.h"

#include <elf.h>
#include <string.h>

enum state { STATE_UNKNOWN, STATE_WANTED, STATE_COMMON, STATE_DEFINED };

struct names {
    struct arena *stage;
    struct table *table;
    uint8_t *states; /* enum state, by number in the table */
    uint32_t capacity;
};

static uint8_t *state_of(struct names *names, const char *name)
{
    uint32_t number = table_intern_string(names->table, name);
    if (number >= names->capacity) {
        uint32_t capacity = names->capacity ? names->capacity * 2 : 1024;
        uint8_t *states = arena_new_array(names->stage, uint8_t, capacity);
        if (names->capacity)
            memcpy(states, names->states, names->capacity);
        names->states = states;
        names->capacity = capacity;
    }
    return &names->states[number];
}

static void load(struct names *names, const struct object *object)
{
    for (uint32_t i = 1; i < object->symbol_count; i++) {
        const struct symbol *symbol = &object->symbols[i];
        enum state brings = symbol->section == SECTION_COMMON      ? STATE_COMMON
                            : symbol->section != SECTION_UNDEFINED ? STATE_DEFINED
                            : symbol->bind == STB_WEAK             ? STATE_UNKNOWN
                                                                   : STATE_WANTED;
        if (symbol->bind == STB_LOCAL)
            continue;
        uint8_t *state = state_of(names, symbol->name);
        if (brings > *state)
            *state = (uint8_t)brings;
    }
}

static bool is_wanted(struct names *names, const struct object *object)
{
    for (uint32_t i = 1; i < object->symbol_count; i++) {
        const struct symbol *symbol = &object->symbols[i];
        if (symbol->bind == STB_LOCAL || symbol->section == SECTION_UNDEFINED)
            continue;
        uint8_t state = *state_of(names, symbol->name);
        if (state == STATE_WANTED ||
            (state == STATE_COMMON && symbol->section != SECTION_COMMON))
            return true;
    }
    return false;
}

void archive_choose(struct arena *arena, const struct objects *roots,
                    const struct object *const *members, uint32_t count, bool *chosen)
{
    (void)arena;
    struct arena *stage = arena_new();
    struct names names = {.stage = stage, .table = table_new(stage)};
    for (uint32_t i = 0; i < roots->count; i++)
        load(&names, roots->items[i]);
    for (uint32_t i = 0; i < count; i++)
        chosen[i] = false;
    for (bool more = true; more;) {
        more = false;
        for (uint32_t i = 0; i < count; i++) {
            if (chosen[i] || !members[i] || !is_wanted(&names, members[i]))
                continue;
            chosen[i] = more = true;
            load(&names, members[i]);
        }
    }
    arena_free(stage);
}
