/* SPDX-License-Identifier: MIT
 *
 * The checker on helpers that call others: the stack that they align, and whom they may
 * call.
 */
#include "verify_draft.h"

#define BYTES(...)                                                                     \
    ((const uint8_t[]){__VA_ARGS__}), sizeof((const uint8_t[]){__VA_ARGS__})
#define SUB(bytes) 0x48, 0x83, 0xec, (bytes)
#define ADD_40     0x48, 0x83, 0xc4, 0x28
#define MOV_EAX_1  0xb8, 1, 0, 0, 0
#define MOV_EBX_1  0xbb, 1, 0, 0, 0
#define LOAD(disp) 0x48, 0x8b, 0x4c, 0x24, (disp) /* mov disp(%rsp), %rcx */
#define LOAD_RIP   0x48, 0x8b, 0x0d, 0, 0, 0, 0 /* mov x(%rip), %rcx */
#define CALL_REL   0xe8, 0, 0, 0, 0
#define JMP_REL    0xe9, 0, 0, 0, 0
#define PUSH_RAX   0x50
#define RAISE      0x48, 0x8d, 0x64, 0x24, 8 /* lea 8(%rsp), %rsp */
#define POP_RBX    0x5b
#define RETQ       0xc3

static void put(struct buffer *code, const void *bytes, size_t size)
{
    buffer_put(code, bytes, size);
}
#define PUT(code, ...) put((code), BYTES(__VA_ARGS__))

/* f with `size` bytes, its last one a return, and the callee g behind it, in `code`. */
static uint32_t add_functions(struct scene *scene, struct draft *draft,
                              struct buffer *code, uint32_t *g)
{
    uint32_t size = (uint32_t)code->size, symbol;
    uint32_t entry = row_at_entry(scene->rows, EM_X86_64);
    if (has(scene, "argument"))
        PUT(code, LOAD(8), RETQ);
    else if (has(scene, "return address"))
        PUT(code, LOAD(0), RETQ);
    else if (has(scene, "indexed"))
        PUT(code, 0x48, 0x8b, 0x4c, 0xfc, 0xe0, RETQ); /* mov -32(%rsp,%rdi,8), %rcx */
    else if (has(scene, "pointer"))
        PUT(code, 0x48, 0x8d, 0x4c, 0x24, 0xe0, RETQ); /* lea -32(%rsp), %rcx */
    else if (has(scene, "tail call"))
        PUT(code, 0xff, 0x67, 0, 0x66, 0x90, RETQ); /* jmp *0(%rdi) */
    else if (has(scene, "falls through"))
        PUT(code, MOV_EAX_1, 0x90);
    else if (has(scene, "own frame"))
        PUT(code, LOAD(0xf8), RETQ);
    else
        PUT(code, MOV_EAX_1, RETQ);
    PUT(code, LOAD_RIP, RETQ); /* d, which compilers make for executables */
    uint32_t text = add_code(draft, 0, code->at, code->size, &symbol);
    add_function(draft, "f", text, 0, size, true);
    *g = has(scene, "undefined") ? add_undefined(draft, "g")
                                 : add_function(draft, "g", text, size, 6, true);
    if (!has(scene, "undefined") && !has(scene, "default name") && !has(scene, "direct"))
        draft->symbols[*g].other = STV_HIDDEN;
    if (has(scene, "weak"))
        draft->symbols[*g].bind = STB_WEAK;
    if (has(scene, "chosen"))
        draft->symbols[*g].type = STT_GNU_IFUNC;
    struct row_change changes[] = {
        {0,         entry    },
        {4,         row(scene, has(scene, "aligned to more") ? 32 : 48, SAVED(16, -8),
                        NONE)               },
        {size - 1, entry      }
    };
    add_function(draft, "d", text, size + 6, 8, true);
    if (!has(scene, "no rows"))
        add_frame(scene, draft, symbol, 0, (uint32_t)code->size, changes, 3);
    return text;
}

/* d refers directly to a global name, as in code for executables only. */
static void add_direct(struct scene *scene, struct draft *draft, uint32_t text,
                       uint32_t d)
{
    if (has(scene, "direct"))
        add_reloc(draft, text, d + 3, R_X86_64_PC32, add_undefined(draft, "x"), -4);
}

static void add_helper(struct scene *scene, const struct buffer *code, uint32_t start,
                       uint32_t end, uint32_t *text, uint32_t *symbol)
{
    struct draft *new = &scene->after;
    uint32_t entry = row_at_entry(scene->rows, EM_X86_64);
    uint32_t pushed = row(scene, 16, SAVED(16, -8), NONE);
    *text = add_code(new, 1, code->at, code->size, symbol);
    struct row_change changes[] = {
        {0,     entry },
        {start, pushed},
        {end,   entry }
    };
    uint32_t count = has(scene, "no row") ? 1 : has(scene, "late row") ? 2 : 3;
    if (!has(scene, "no rows"))
        add_frame(scene, new, *symbol, 1, (uint32_t)code->size, changes,
                  start == end ? 1 : count);
}

/* sub; mov; call g; load or so; mov; add; ret: all in between is a helper. */
static void make_before(struct scene *scene)
{
    struct buffer code = buffer_new(scene->arena);
    uint32_t g;
    PUT(&code, SUB(has(scene, "aligned to more") ? 24 : 40), MOV_EAX_1, CALL_REL, LOAD(8));
    if (has(scene, "written"))
        PUT(&code, MOV_EBX_1, ADD_40, RETQ);
    else
        PUT(&code, MOV_EAX_1, ADD_40, RETQ);
    uint32_t text = add_functions(scene, &scene->before, &code, &g);
    add_reloc(&scene->before, text, 10, R_X86_64_PLT32, g, -4);
    add_direct(scene, &scene->before, text, 35);
}

static uint32_t make_after(struct scene *scene, uint32_t *g)
{
    struct buffer code = buffer_new(scene->arena);
    PUT(&code, SUB(has(scene, "aligned to more") ? 24 : 40), CALL_REL, ADD_40, RETQ);
    return add_functions(scene, &scene->after, &code, g);
}

static void inner(struct scene *scene)
{
    struct buffer code = buffer_new(scene->arena);
    bool aligned = !has(scene, "not aligned");
    uint32_t g, helpers, symbol, text;
    make_before(scene);
    text = make_after(scene, &g);
    if (aligned)
        PUT(&code, PUSH_RAX);
    uint32_t start = (uint32_t)code.size;
    PUT(&code, MOV_EAX_1, CALL_REL);
    if (aligned && !has(scene, "not shifted"))
        PUT(&code, LOAD(24));
    else
        PUT(&code, LOAD(16));
    if (has(scene, "written"))
        PUT(&code, MOV_EBX_1);
    else
        PUT(&code, MOV_EAX_1);
    if (has(scene, "popped"))
        PUT(&code, POP_RBX);
    else if (aligned && !has(scene, "not raised"))
        PUT(&code, RAISE);
    uint32_t end = aligned ? (uint32_t)code.size : start;
    PUT(&code, RETQ);
    if (has(scene, "not raised"))
        PUT(&code, RETQ); /* the first one has the row of the payload */
    add_helper(scene, &code, start, end + has(scene, "not raised"), &helpers, &symbol);
    add_function(&scene->after, "h", helpers, 0, code.size, false);
    add_reloc(&scene->after, text, 5, R_X86_64_PLT32, symbol, -4);
    add_direct(scene, &scene->after, text, 20);
    add_reloc(&scene->after, helpers, start + 6, R_X86_64_PLT32, g, -4);
}

/* The helper's call is the end of a thunk, which it calls. */
static void inner_thunk(struct scene *scene)
{
    struct buffer code = buffer_new(scene->arena);
    bool aligned = !has(scene, "not aligned");
    uint32_t g, helpers, symbol, text;
    make_before(scene);
    text = make_after(scene, &g);
    if (aligned)
        PUT(&code, PUSH_RAX, CALL_REL, LOAD(24), MOV_EAX_1, RAISE);
    else
        PUT(&code, CALL_REL, LOAD(16), MOV_EAX_1);
    uint32_t start = aligned, end = aligned ? (uint32_t)code.size : start;
    PUT(&code, RETQ);
    uint32_t thunk = (uint32_t)code.size;
    PUT(&code, MOV_EAX_1, JMP_REL);
    add_helper(scene, &code, start, end, &helpers, &symbol);
    add_function(&scene->after, "h", helpers, 0, thunk, false);
    add_function(&scene->after, "t", helpers, thunk, 10, false);
    add_reloc(&scene->after, text, 5, R_X86_64_PLT32, symbol, -4);
    add_reloc(&scene->after, helpers, start + 1, R_X86_64_PLT32, symbol, thunk - 4);
    add_reloc(&scene->after, helpers, thunk + 6, R_X86_64_PLT32, g, -4);
}

/* Where the helper raises SP another one does, too: it jumps there. */
static void elsewhere(struct scene *scene)
{
    struct buffer code = buffer_new(scene->arena);
    uint32_t g, helpers, symbol, text, entry = row_at_entry(scene->rows, EM_X86_64);
    make_before(scene);
    text = make_after(scene, &g);
    PUT(&code, PUSH_RAX, MOV_EAX_1, CALL_REL, LOAD(24), MOV_EAX_1, JMP_REL, MOV_EAX_1);
    if (has(scene, "popped"))
        PUT(&code, POP_RBX, RETQ);
    else
        PUT(&code, RAISE, RETQ);
    helpers = add_code(&scene->after, 1, code.at, code.size, &symbol);
    struct row_change changes[] = {
        {0,  entry                                },
        {1,  row(scene, 16, SAVED(16, -8), NONE)},
        {36, entry                                }
    };
    if (has(scene, "other row"))
        changes[2].offset = 27;
    add_frame(scene, &scene->after, symbol, 1, (uint32_t)code.size, changes, 3);
    add_function(&scene->after, "h", helpers, 0, 26, false);
    add_function(&scene->after, "p", helpers, 26, code.size - 26, false);
    add_reloc(&scene->after, text, 5, R_X86_64_PLT32, symbol, -4);
    add_reloc(&scene->after, helpers, 7, R_X86_64_PLT32, g, -4);
    add_reloc(&scene->after, helpers, 22, R_X86_64_PLT32, symbol, 31 - 4);
}

/* sub; mov; call g; mov; call other; add; ret: a helper that ends in a jump to the
 * other, which may be who it likes. */
static void thunk(struct scene *scene)
{
    struct buffer code = buffer_new(scene->arena);
    struct draft *old = &scene->before, *new = &scene->after;
    uint32_t g, helpers, symbol, text;
    PUT(&code, SUB(has(scene, "aligned to more") ? 24 : 40), MOV_EAX_1, CALL_REL, MOV_EAX_1, CALL_REL, ADD_40, RETQ);
    text = add_functions(scene, old, &code, &g);
    add_reloc(old, text, 10, R_X86_64_PLT32, g, -4);
    add_reloc(old, text, 20, R_X86_64_PLT32, add_undefined(old, "other"), -4);
    text = make_after(scene, &g);
    code = buffer_new(scene->arena);
    PUT(&code, PUSH_RAX, MOV_EAX_1, CALL_REL, MOV_EAX_1);
    if (!has(scene, "not raised"))
        PUT(&code, RAISE);
    uint32_t end = (uint32_t)code.size;
    PUT(&code, JMP_REL);
    add_helper(scene, &code, 1, has(scene, "not raised") ? end + 1 : end, &helpers,
               &symbol);
    add_function(new, "h", helpers, 0, code.size, false);
    add_reloc(new, text, 5, R_X86_64_PLT32, symbol, -4);
    add_reloc(new, helpers, 7, R_X86_64_PLT32, g, -4);
    add_reloc(new, helpers, end + 1, R_X86_64_PLT32, add_undefined(new, "other"), -4);
}

/* --- the table --- */

#define LOOKS "may look at its caller's frame"

static const struct pair_case cases[] = {
    {EM_X86_64, inner,       "",                NULL                                },
    {EM_X86_64, inner,       "own frame",       NULL                                },
    {EM_X86_64, inner,       "not aligned",     "not aligned"                       },
    {EM_X86_64, inner,       "not shifted",     "another instruction"               },
    {EM_X86_64, inner,       "not raised",      "leaves SP lowered"                 },
    {EM_X86_64, inner,       "popped",          "moves SP"                          },
    {EM_X86_64, inner,       "written",         NULL                                },
    {EM_X86_64, inner,       "no row",          "called helper"                     },
    {EM_X86_64, inner,       "late row",        "called helper"                     },
    {EM_X86_64, inner,       "argument",        LOOKS                               },
    {EM_X86_64, inner,       "return address",  LOOKS                               },
    {EM_X86_64, inner,       "indexed",         LOOKS                               },
    {EM_X86_64, inner,       "pointer",         LOOKS                               },
    {EM_X86_64, inner,       "tail call",       LOOKS                               },
    {EM_X86_64, inner,       "falls through",   LOOKS                               },
    {EM_X86_64, inner,       "undefined",       LOOKS                               },
    {EM_X86_64, inner,       "weak",            LOOKS                               },
    {EM_X86_64, inner,       "chosen",          LOOKS                               },
    {EM_X86_64, inner,       "default name",    LOOKS                               },
    {EM_X86_64, inner,       "direct",          NULL                                },
    {EM_X86_64, inner,       "no rows",         LOOKS                               },
    {EM_X86_64, inner,       "aligned to more", "may want the stack aligned to more"},
    {EM_X86_64, inner_thunk, "",                NULL                                },
    {EM_X86_64, inner_thunk, "not aligned",     "not aligned"                       },
    {EM_X86_64, inner_thunk, "argument",        LOOKS                               },
    {EM_X86_64, elsewhere,   "",                NULL                                },
    {EM_X86_64, elsewhere,   "popped",          "moves SP"                          },
    {EM_X86_64, elsewhere,   "other row",       "called helper"                     },
    {EM_X86_64, thunk,       "",                NULL                                },
    {EM_X86_64, thunk,       "not raised",      "leaves SP lowered"                 },
    {EM_X86_64, thunk,       "argument",        LOOKS                               },
};

START_TEST(pairs)
{
    check_pair(&cases[_i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("verify_inner");
    TCase *tests = tcase_create("pairs");
    tcase_add_loop_test(tests, pairs, 0, (int)(sizeof cases / sizeof *cases));
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
