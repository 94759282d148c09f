/* SPDX-License-Identifier: MIT
 *
 * Instructions of x86-64 as text, and numbers of its registers.
 */
#ifndef MO_TEST_X86_64_TEXT_H
#define MO_TEST_X86_64_TEXT_H

#include "mo/target.h"

#include <check.h>
#include <stdio.h>


#define TARGET (&target_x86_64)
#define BIT(n) (UINT64_C(1) << (n))

enum {
    RAX,
    RCX,
    RDX,
    RBX,
    RSP,
    RBP,
    RSI,
    RDI,
    R8,
    R9,
    R10,
    R11,
    R12,
    R15 = 15,
    K1 = 17,
    X87 = 24,
    STATE = 25,
    V0 = 32,
    V1 = 33,
    V2 = 34
};
enum {
    CF = 1,
    PF = 2,
    AF = 4,
    ZF = 8,
    SF = 16,
    DF = 32,
    OF = 64,
    ARITHMETIC = CF | PF | AF | ZF | SF | OF
};

struct text {
    uint8_t bytes[16];
    uint8_t length;
};

/* "48 8b 04 24" */
static struct text text_of(const char *hex)
{
    struct text text = {.length = 0};
    unsigned value;
    int used;
    while (sscanf(hex, " %2x%n", &value, &used) == 1) {
        text.bytes[text.length++] = (uint8_t)value;
        hex += used;
    }
    return text;
}

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

#endif
