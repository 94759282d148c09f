/* SPDX-License-Identifier: MIT */
#include "mo/refusal.h"

/* ORDER refusal */
static const struct {
    const char *name, *level, *text;
} table[REFUSAL_COUNT] = {
#define X(name, level, text) {#name, level, text},
    REFUSALS(X)
#undef X
};

const char *refusal_name(enum refusal refusal)
{
    return table[refusal].name;
}

const char *refusal_level(enum refusal refusal)
{
    return table[refusal].level;
}

const char *refusal_text(enum refusal refusal)
{
    return table[refusal].text;
}
