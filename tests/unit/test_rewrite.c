/* SPDX-License-Identifier: MIT
 *
 * Small programs, rewritten by hand-made plans: every form on both machines, helpers in
 * the object itself and in one of their own. Each program is linked and run as it was
 * and as it has become, and must print the same. It prints, among other things, how
 * deep the stack is from inside its calls (by _Unwind_Backtrace), and the callee-saved
 * register that the unwinder finds for the frame above: so the unwind tables are right,
 * too.
 *
 * A second sort of test inserts no-ops at random places of compiled programs: whatever
 * encodes a position in code and was not found makes the program fail.
 *
 * Needs the compilers of both machines, and qemu; a machine without them is passed
 * over.
 */
#include "outliner/rewrite/rewrite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct machine {
    const char *name, *cc, *run;
    const char *text; /* functions f and g; alike, but for numbers */
};

/* Both sites of a form lie at the same instructions of f and g. */
#define X86_FUNCTION(name, number)                                                     \
    ".globl " name "\n.type " name ",@function\n" name ":\n.cfi_startproc\n"           \
    "push %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset %rbx,-16\n"                        \
    "sub $32,%rsp\n.cfi_def_cfa_offset 48\n"                                           \
    "mov $" number ",%ebx\n" /* 3: plain, the stack in it */                           \
    "mov %edi,12(%rsp)\nimul $3,12(%rsp),%eax\nadd %eax,%ebx\nmov %rsp,%rcx\n"         \
    "mov 12(%rcx),%eax\n" /* 8 */                                                      \
    "xor %eax,%ebx\ncmp $100,%ebx\njg 1f\n"                                            \
    "add $50,%ebx\n1:\n"                      /* 12: thunk */                          \
    "mov %ebx,%edi\nxor $1,%edi\ncall look\n" /* 15: tail, with a call in it */        \
    "lea 4(%rax),%edi\ncall look\nadd %ebx,%eax\nadd $32,%rsp\n"                       \
    ".cfi_def_cfa_offset 16\npop %rbx\n.cfi_def_cfa_offset 8\nret\n.cfi_endproc\n"     \
    ".size " name ",.-" name "\n.p2align 4\n"

/* No link register is saved at 4, and x9 is scratch: written, and dead there. */
#define ARM_FUNCTION(name, number)                                                     \
    ".globl " name "\n.type " name ",@function\n" name ":\n.cfi_startproc\n"           \
    "mov w9,#" number "\nadd w9,w9,w0\n"                                               \
    "sub sp,sp,#32\n.cfi_def_cfa_offset 32\n"                                          \
    "str w9,[sp,#8]\n" /* 4: kept in a register, or on the stack */                    \
    "ldr w1,[sp,#8]\nadd w0,w0,w1,lsl #1\nadd x2,sp,#8\nldr w2,[x2]\n"                 \
    "eor w0,w0,w2\n" /* 9 */                                                           \
    "stp x19,x30,[sp,#16]\n.cfi_offset 19,-16\n.cfi_offset 30,-8\n"                    \
    "cmp w0,#100\nb.gt 1f\nadd w0,w0,#50\n1:\n" /* 13: plain */                        \
    "mov w19,w0\neor w0,w0,#1\nadd w0,w0,w19\n" /* 16: thunk */                        \
    "add w0,w0,#2\nlsl w0,w0,#1\nbl look\n"     /* 19: tail, with a call in it */      \
    "add w0,w0,#4\nbl look\nadd w0,w0,w19\nldp x19,x30,[sp,#16]\n"                     \
    ".cfi_restore 19\n.cfi_restore 30\nadd sp,sp,#32\n.cfi_def_cfa_offset 0\nret\n"    \
    ".cfi_endproc\n.size " name ",.-" name "\n.p2align 4\n"

/* `look` is local to the file: its calls are resolved by the assembler. */
static const struct machine machines[] = {
    {"x86_64",  "gcc",                   "",
     ".text\n.type look,@function\nlook:\n.cfi_startproc\njmp see\n.cfi_endproc\n"
     ".size look,.-look\n.p2align 4\n" X86_FUNCTION("f", "17") X86_FUNCTION("g", "23")
         X86_FUNCTION("h", "5") ".section .note.GNU-stack\n"},
    {"aarch64", "aarch64-linux-gnu-gcc", "qemu-aarch64 ",
     ".text\n.type look,%function\nlook:\n.cfi_startproc\nb see\n.cfi_endproc\n"
     ".size look,.-look\n.p2align 4\n" ARM_FUNCTION("f", "17") ARM_FUNCTION("g", "23")
         ARM_FUNCTION("h", "5") ".section .note.GNU-stack\n"},
};

/* Prints what an unwinder sees from inside of the calls. */
static const char main_text[] =
    "#include <stdio.h>\n#include <unwind.h>\n"
    "int f(int), g(int), h(int); int main(void);\n"
    "static int depth, at_main;\n"
    "static _Unwind_Reason_Code count(struct _Unwind_Context *c, void *d) {\n"
    "  (void)d; if (at_main) return _URC_NO_REASON;\n"
    "  depth++; if (_Unwind_GetRegionStart(c) == (_Unwind_Ptr)main) {\n"
    "    at_main = 1; printf(\"saved %lx \", (unsigned long)_Unwind_GetGR(c, SAVED)); "
    "}\n"
    "  return _URC_NO_REASON; }\n"
    "__attribute__((used)) int see(int x) { depth = at_main = 0;\n"
    "  _Unwind_Backtrace(count, 0);\n"
    "  printf(\"see %d depth %d main %d\\n\", x, depth, at_main); return x * 5; }\n"
    "int main(void) { register long k __asm__(NAME) = 0x1234;\n"
    "  for (int i = -3; i < 90; i += 31) { __asm__ volatile(\"\" : \"+r\"(k));\n"
    "    printf(\"%d\\n\", f(i)); __asm__ volatile(\"\" : \"+r\"(k));\n"
    "    printf(\"%d\\n\", g(i)); __asm__ volatile(\"\" : \"+r\"(k));\n"
    "    printf(\"%d\\n\", h(i)); __asm__ volatile(\"\" : \"+r\"(k)); }\n"
    "  return 0; }\n";

struct form_case {
    const char *machine;
    enum form form;
    uint8_t scratch;
    uint32_t first, length; /* instructions of f, g and h */
    uint32_t shift;
};

static const struct form_case form_cases[] = {
    {"x86_64",  FORM_PLAIN,         0, 3,  5, 8 },
    {"x86_64",  FORM_PLAIN,         0, 3,  3, 8 },
    {"x86_64",  FORM_THUNK,         0, 12, 3, 8 },
    {"x86_64",  FORM_TAIL,          0, 15, 6, 0 },
    {"x86_64",  FORM_TAIL,          0, 19, 2, 0 },
    {"aarch64", FORM_PLAIN,         0, 13, 3, 0 },
    {"aarch64", FORM_SAVE_REGISTER, 9, 4,  5, 0 },
    {"aarch64", FORM_SAVE_STACK,    0, 4,  5, 16},
    {"aarch64", FORM_THUNK,         0, 16, 3, 0 },
    {"aarch64", FORM_TAIL,          0, 19, 6, 0 },
};
enum { FORM_CASES = sizeof form_cases / sizeof *form_cases };

/* --- the bench --- */

struct bench {
    struct arena *arena;
    const struct machine *machine;
    char directory[64];
    struct objects objects;
    const struct object *item;
    struct program *program;
};

static const struct machine *machine_of(const char *name)
{
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        if (strcmp(machines[i].name, name) == 0)
            return &machines[i];
    }
    return NULL;
}

static int run(const struct bench *bench, const char *format, const char *a,
               const char *b)
{
    char *command = arena_format(bench->arena, format, a, b);
    return system(
        arena_format(bench->arena, "cd %s && { %s; }", bench->directory, command));
}

static bool is_there(const struct machine *machine)
{
    char command[256];
    snprintf(command, sizeof command, "%s --version >/dev/null 2>&1", machine->cc);
    bool there = system(command) == 0;
    snprintf(command, sizeof command, "%s--version >/dev/null 2>&1", machine->run);
    return there && (machine->run[0] == '\0' || system(command) == 0);
}

static void write_text(const struct bench *bench, const char *name, const char *text)
{
    struct error err = {0};
    const char *path = arena_format(bench->arena, "%s/%s", bench->directory, name);
    struct bytes bytes = {(const uint8_t *)text, strlen(text)};
    ck_assert(file_write(path, bytes, &err));
}

static void lift(struct bench *bench, const char *name)
{
    struct error err = {0};
    struct bytes image;
    const char *path = arena_format(bench->arena, "%s/%s", bench->directory, name);
    struct lift_options options = {0};
    bool done = file_read(bench->arena, path, &image, &err) &&
                object_read(bench->arena, path, image, &bench->item, &err);
    ck_assert_msg(done, "%s", err.message);
    bench->objects = (struct objects){&bench->item, 1};
    done = program_lift(bench->arena, &bench->objects, row_table_new(bench->arena),
                        &options, &bench->program, &err);
    ck_assert_msg(done, "%s", err.message);
}

static struct bench *bench_new(const struct machine *machine)
{
    struct arena *arena = arena_new();
    struct bench *bench = arena_new_one(arena, struct bench);
    bench->arena = arena;
    bench->machine = machine;
    strcpy(bench->directory, "/tmp/mo-rewrite-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(bench->directory));
    return bench;
}

static void bench_free(struct bench *bench)
{
    run(bench, "cd / && rm -rf %s", bench->directory, "");
    arena_free(bench->arena);
}

/* Links the objects with main.o, runs the program, and compares with what `expected`
 * holds. */
static void run_objects(struct bench *bench, const struct objects *objects)
{
    struct error err = {0};
    run(bench, "rm -f new*.o", "", "");
    for (uint32_t i = 0; i < objects->count; i++) {
        struct bytes bytes;
        const char *path =
            arena_format(bench->arena, "%s/new%u.o", bench->directory, i);
        bool done = object_build(bench->arena, objects->items[i], &bytes, &err) &&
                    file_write(path, bytes, &err);
        ck_assert_msg(done, "%s", err.message);
    }
    ck_assert_int_eq(
        run(bench, "%s -static main.o new*.o -o after%s", bench->machine->cc, ""), 0);
    ck_assert_int_eq(run(bench, "%s./after >after.txt%s", bench->machine->run, ""), 0);
    ck_assert_int_eq(run(bench, "cmp before.txt after.txt", "", ""), 0);
}

static int64_t frame_bytes(const struct objects *objects, uint32_t *count)
{
    int64_t size = 0;
    for (uint32_t o = 0; o < objects->count; o++) {
        for (uint32_t s = 1; s < objects->items[o]->section_count; s++) {
            const struct section *section = &objects->items[o]->sections[s];
            if (!section_is_frame(section))
                continue;
            size += (int64_t)section->data.size;
            *count += frame_count(section);
        }
    }
    return size;
}

static int64_t code_bytes(const struct objects *objects)
{
    int64_t size = 0;
    for (uint32_t o = 0; o < objects->count; o++) {
        for (uint32_t s = 1; s < objects->items[o]->section_count; s++) {
            const struct section *section = &objects->items[o]->sections[s];
            if (section_is_code(section))
                size += (int64_t)section->data.size;
        }
    }
    return size;
}

static void check_prediction(const struct plan *plan, const struct objects *before,
                             const struct objects *after)
{
    uint32_t old_count = 0, new_count = 0;
    int64_t frames = frame_bytes(before, &old_count) - frame_bytes(after, &new_count);
    ck_assert_int_eq(plan->predicted_code, code_bytes(before) - code_bytes(after));
    ck_assert_int_eq(plan->predicted_eh, frames);
    ck_assert_int_eq(plan->predicted_hdr, 8 * ((int64_t)old_count - new_count));
}

/* --- forms --- */

static uint32_t insn_of(const struct program *program, const char *name, uint32_t index)
{
    for (uint32_t f = 0; f < program->function_count; f++) {
        const struct function *function = &program->functions[f];
        if (strcmp(program_function_name(program, f), name) != 0)
            continue;
        ck_assert_int_eq(function->refusal, REFUSAL_NONE);
        ck_assert_uint_lt(index, function->insn_count);
        return function->first_insn + index;
    }
    ck_abort_msg("no function %s", name);
    return NO_INDEX;
}

/* Rows while the link register is kept. */
static void check_kept_link(const struct bench *bench, const struct form_case *wanted,
                            const struct objects *after)
{
    struct error err = {0};
    struct row_table *rows = row_table_new(bench->arena);
    struct frames frames;
    ck_assert(frames_read(bench->arena, after->items[0], rows, &frames, &err));
    uint32_t found = 0;
    for (uint32_t f = 0; f < frames.fde_count; f++) {
        for (uint32_t c = 0; c < frames.fdes[f].change_count; c++) {
            const struct row *row = row_get(rows, frames.fdes[f].changes[c].row);
            const struct rule *rule = row_rule(row, 30);
            if (!rule)
                continue;
            bool kept = wanted->form == FORM_SAVE_REGISTER
                            ? rule->kind == RULE_REGISTER && rule->value == 9 &&
                                  row->cfa_offset == 32
                            : rule->kind == RULE_OFFSET && rule->value == -48 &&
                                  row->cfa_offset == 48;
            found += kept;
        }
    }
    ck_assert_uint_eq(found, 3); /* one for each site */
}

static void try_form(struct bench *bench, const struct form_case *wanted, uint32_t host)
{
    static const char *const names[] = {"f", "g", "h"};
    struct site sites[3];
    for (uint32_t i = 0; i < 3; i++)
        sites[i] = (struct site){.insn = insn_of(bench->program, names[i], wanted->first),
                                 .form = (uint8_t)wanted->form,
                                 .scratch = wanted->scratch};
    struct helper helper = {.length = wanted->length,
                            .site_count = 3,
                            .stack_shift = wanted->shift,
                            .tail = wanted->form == FORM_TAIL,
                            .thunk = wanted->form == FORM_THUNK,
                            .hash = 0x123456789abcdef0};
    helper.entry_row = helper.tail ? program_row(bench->program, sites[0].insn)
                                   : row_at_entry(bench->program->rows,
                                                  bench->program->target->machine);
    struct plan plan = {
        .helpers = &helper, .helper_count = 1, .sites = sites, .site_count = 3};
    struct rewrite_options options = {host, "set"};
    struct error err = {0};
    struct objects after;
    bool done =
        plan_price(bench->arena, bench->program, &plan, &err) &&
        program_rewrite(bench->arena, bench->program, &plan, &options, &after, &err);
    ck_assert_msg(done, "%s", err.message);
    ck_assert_uint_eq(after.count, host == NO_INDEX ? 2 : 1);
    check_prediction(&plan, &bench->objects, &after);
    if (wanted->form == FORM_SAVE_REGISTER || wanted->form == FORM_SAVE_STACK)
        check_kept_link(bench, wanted, &after);
    run_objects(bench, &after);
}

START_TEST(form)
{
    const struct form_case *wanted = &form_cases[_i];
    const struct machine *machine = machine_of(wanted->machine);
    if (!is_there(machine))
        return;
    struct bench *bench = bench_new(machine);
    bool x86 = machine->run[0] == '\0';
    write_text(bench, "text.s", machine->text);
    write_text(bench, "main.c", main_text);
    run(bench, "%s -c text.s%s", machine->cc, "");
    run(bench, "%s -O1 -fexceptions -fno-omit-frame-pointer %s -c main.c", machine->cc,
        x86 ? "-DSAVED=3 -DNAME='\"rbx\"'" : "-DSAVED=19 -DNAME='\"x19\"'");
    run(bench, "%s -static main.o text.o -o before && %s./before >before.txt",
        machine->cc, machine->run);
    lift(bench, "text.o");
    try_form(bench, wanted, 0);
    try_form(bench, wanted, NO_INDEX);
    bench_free(bench);
}
END_TEST

/* --- no-ops everywhere --- */

static const char shaken_text[] =
    "#include <stdio.h>\n#include <string.h>\n"
    "static int hash(const char *s, int k) { while (*s) k = k * 31 + *s++; return k; "
    "}\n"
    "int alias_a(int x) { return x * 3 + hash(\"alias\", x); }\n"
    "extern int alias_b(int) __attribute__((alias(\"alias_a\")));\n"
    "static int twice(int x) { return hash(\"two\", x) * 2; }\n"
    "static int (*const calls[])(int) = {alias_a, twice, alias_b};\n"
    "__attribute__((noinline)) int dense(int x) { switch (x) {\n"
    "  case 0: return hash(\"zero\", x); case 1: puts(\"one\"); return x + 7;\n"
    "  case 2: return calls[x](x); case 3: puts(\"three\"); return hash(\"3\", 3);\n"
    "  case 4: return x * 77; case 5: puts(\"five\"); break; case 6: return 13;\n"
    "  case 7: x = twice(x); break; case 8: puts(\"eight\"); return alias_b(x);\n"
    "  case 9: return -x; case 10: x ^= 99; break; case 11: puts(\"e\"); return 1; }\n"
    "  return hash(\"rest\", x); }\n"
    "__attribute__((noinline)) int loops(const int *v, int n) { int s = 0;\n"
    "  for (int i = 0; i < n; i++) { if (v[i] & 1) s += v[i]; else if (v[i] > 50) s -= "
    "3;\n"
    "    else s ^= v[i]; while (s > 1000) { puts(\"large\"); s -= 700; } }\n"
    "  return s; }\n"
    "int main(void) { int v[60]; for (int i = 0; i < 60; i++) v[i] = i * i * 7 % 101;\n"
    "  for (int i = -2; i < 15; i++) printf(\"%d %d\\n\", i, dense(i));\n"
    "  for (int i = 0; i < 3; i++) printf(\"%d\\n\", calls[i](i));\n"
    "  printf(\"%d\\n\", loops(v, 60)); return 0; }\n";

static const struct verify_options one_worker = {.workers = 1};

static void try_edits(struct bench *bench, const struct edit_list *edits)
{
    struct plan none = {0};
    struct rewrite_options options = {NO_INDEX, "set"};
    struct error err = {0};
    struct objects after;
    bool done = rewrite_with_edits(bench->arena, bench->program, &none, edits, &options,
                                   &after, &err);
    ck_assert_msg(done, "%s", err.message);
    run_objects(bench, &after);
    done = shake_verify(&bench->objects, &after, &err);
    ck_assert_msg(done, "%s", err.message);
    /* More no-ops are not the same program, unless that is what was asked for. */
    ck_assert(outline_verify(&bench->objects, &after, &one_worker, &err) ==
              (edits->count == 0));
}

static const char *const shaken_flags[] = {"-O0", "-Os", "-O2 -fPIC",
                                           "-O2 -ffunction-sections", "-O3 -fno-pic"};
enum { SHAKEN_FLAGS = sizeof shaken_flags / sizeof *shaken_flags };

START_TEST(shaken)
{
    const struct machine *machine = &machines[_i / SHAKEN_FLAGS];
    if (!is_there(machine))
        return;
    struct bench *bench = bench_new(machine);
    write_text(bench, "shaken.c", shaken_text);
    write_text(bench, "main.c", "");
    run(bench, "%s -c main.c%s", machine->cc, "");
    run(bench, "%s %s -c shaken.c", machine->cc, shaken_flags[_i % SHAKEN_FLAGS]);
    run(bench, "%s -static shaken.o -o before && %s./before >before.txt", machine->cc,
        machine->run);
    lift(bench, "shaken.o");
    struct edit_list none = {NULL, 0};
    try_edits(bench, &none);
    for (uint32_t seed = 1; seed <= 4; seed++) {
        struct edit_list edits = edits_of_shaking(bench->arena, bench->program, seed);
        ck_assert_uint_gt(edits.count, 0);
        try_edits(bench, &edits);
    }
    bench_free(bench);
}
END_TEST

/* No edits: everything stays, byte for byte. */
START_TEST(identity)
{
    const struct machine *machine = &machines[_i];
    if (!is_there(machine))
        return;
    struct bench *bench = bench_new(machine);
    write_text(bench, "shaken.c", shaken_text);
    run(bench, "%s -O2 -c shaken.c%s", machine->cc, "");
    lift(bench, "shaken.o");
    struct plan none = {0};
    struct rewrite_options options = {0, NULL};
    struct error err = {0};
    struct objects after;
    struct bytes before_image, after_image;
    bool done =
        program_rewrite(bench->arena, bench->program, &none, &options, &after, &err) &&
        object_build(bench->arena, bench->item, &before_image, &err) &&
        object_build(bench->arena, after.items[0], &after_image, &err);
    ck_assert_msg(done, "%s", err.message);
    ck_assert_uint_eq(before_image.size, after_image.size);
    ck_assert_int_eq(memcmp(before_image.at, after_image.at, before_image.size), 0);
    bench_free(bench);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rewrite");
    TCase *tests = tcase_create("rewrite");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, form, 0, FORM_CASES);
    tcase_add_loop_test(tests, shaken, 0, 2 * SHAKEN_FLAGS);
    tcase_add_loop_test(tests, identity, 0, 2);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
