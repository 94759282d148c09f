/* SPDX-License-Identifier: MIT */
#include "mo/target.h"

static const struct target *const targets[] = {&target_aarch64, &target_x86_64, NULL};

const struct target *const *target_list(void)
{
    return targets;
}

const struct target *target_of(uint16_t machine)
{
    for (const struct target *const *at = targets; *at; at++) {
        if ((*at)->machine == machine)
            return *at;
    }
    return NULL;
}
