/* SPDX-License-Identifier: MIT
 *
 * The harness is a page of hand-assembled code. Addressing memory by disp32 alone
 * (ModRM with a SIB byte 25: no base, no index) leaves every register to the
 * instruction.
 */
#define _GNU_SOURCE
#include "native_x86_64.h"

#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#define CODE_BASE UINT64_C(0x30000000)
#define DESK_BASE UINT64_C(0x10000000)
enum { CODE_SIZE = 4096, DESK_SIZE = 1 << 14 };

/* What lies at DESK_BASE. */
struct desk {
    uint8_t in[1024], out[1024], host[1024]; /* XSAVE areas, 64-byte aligned */
    uint64_t in_gpr[16], out_gpr[16];
    uint64_t in_flags, out_flags;
    uint64_t host_rsp, stack, taken;
    uint8_t room[2048]; /* for `stack` */
};

static struct {
    uint8_t *at;   /* next byte of the harness */
    uint8_t *slot; /* where the instruction goes */
    sigjmp_buf fault;
    uint8_t alternate[1 << 16];
} native; /* one per process, like the signal handlers */

static struct desk *desk(void)
{
    return (struct desk *)DESK_BASE;
}

static void put(const char *bytes, size_t count)
{
    memcpy(native.at, bytes, count);
    native.at += count;
}

static void put32(uint64_t value)
{
    uint32_t word = (uint32_t)value;
    memcpy(native.at, &word, sizeof word);
    native.at += sizeof word;
}

#define FIELD(name) (DESK_BASE + offsetof(struct desk, name))

/* opcode reg, [address]: `reg` is a register number or an opcode extension. */
static void put_absolute(uint8_t rex, const char *opcode, size_t count, uint32_t reg,
                         uint64_t address)
{
    *native.at = (uint8_t)(rex | (reg >= 8 ? 0x44 : 0));
    native.at += *native.at != 0;
    put(opcode, count);
    *native.at++ = (uint8_t)(0x04 | (reg & 7) << 3);
    *native.at++ = 0x25;
    put32(address);
}

static void put_xsave_mask(void)
{
    put("\xb8\x07\x00\x00\x00\x31\xd2", 7); /* mov $7,%eax; xor %edx,%edx */
}

static void put_prologue(void)
{
    put("\x53\x55\x41\x54\x41\x55\x41\x56\x41\x57", 10); /* push callee-saved */
    put_absolute(0x48, "\x89", 1, 4, FIELD(host_rsp));
    put_xsave_mask();
    put_absolute(0x48, "\x0f\xae", 2, 4, FIELD(host)); /* xsave64 */
    put_absolute(0x48, "\x0f\xae", 2, 5, FIELD(in));   /* xrstor64 */
    put_absolute(0x48, "\x8b", 1, 4, FIELD(stack));
    put_absolute(0, "\xff", 1, 6, FIELD(in_flags)); /* push */
    put("\x9d", 1);                                 /* popf */
    for (uint32_t reg = 0; reg < 16; reg++)
        put_absolute(0x48, "\x8b", 1, reg, FIELD(in_gpr) + 8 * reg);
}

/* Falls through here; NATIVE_TAKEN_DISTANCE behind is where taken branches arrive. */
static void put_epilogue(void)
{
    put("\xe9", 1);
    put32(9);
    put("\xc6\x04\x25", 3); /* movb $1,taken */
    put32(FIELD(taken));
    put("\x01\x90", 2);
    for (uint32_t reg = 0; reg < 16; reg++)
        put_absolute(0x48, "\x89", 1, reg, FIELD(out_gpr) + 8 * reg);
    put_absolute(0x48, "\x8b", 1, 4, FIELD(stack));
    put("\x9c", 1);                                  /* pushf */
    put_absolute(0, "\x8f", 1, 0, FIELD(out_flags)); /* pop */
    put("\xfc", 1);                                  /* cld */
    put_xsave_mask();
    put_absolute(0x48, "\x0f\xae", 2, 4, FIELD(out));
    put_absolute(0x48, "\x0f\xae", 2, 5, FIELD(host));
    put_absolute(0x48, "\x8b", 1, 4, FIELD(host_rsp));
    put("\x41\x5f\x41\x5e\x41\x5d\x41\x5c\x5d\x5b\xc3", 11);
}

static void on_fault(int signal)
{
    (void)signal;
    siglongjmp(native.fault, 1);
}

static bool catch_signals(void)
{
    stack_t stack = {.ss_sp = native.alternate, .ss_size = sizeof native.alternate};
    struct sigaction action = {.sa_handler = on_fault,
                               .sa_flags = SA_ONSTACK | SA_NODEFER};
    bool ok = sigaltstack(&stack, NULL) == 0;
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGALRM};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        ok = ok && sigaction(signals[i], &action, NULL) == 0;
    return ok;
}

static bool map(uint64_t address, size_t size, int protection)
{
    void *at = (void *)address;
    return mmap(at, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
                -1, 0) == at;
}

bool native_init(void)
{
    int data = PROT_READ | PROT_WRITE;
    if (!__builtin_cpu_supports("avx") ||
        !map(CODE_BASE, CODE_SIZE, data | PROT_EXEC) ||
        !map(DESK_BASE, DESK_SIZE, data) || !map(ARENA_BASE, ARENA_SIZE, data) ||
        !catch_signals())
        return false;
    native.at = (uint8_t *)CODE_BASE;
    put_prologue();
    native.slot = native.at;
    desk()->stack = FIELD(room) + sizeof desk()->room;
    return true;
}

uint64_t native_insn_address(void)
{
    return (uint64_t)(uintptr_t)native.slot;
}

/* Only these bits may be set in popf: the rest stays as the kernel wants it. */
#define FLAG_BITS UINT64_C(0xcd5)

bool native_run(const uint8_t *bytes, uint8_t length, const struct state *before,
                struct state *after)
{
    struct desk *on = desk();
    memcpy(on->in, before->xsave, XSAVE_BYTES);
    memcpy(on->in_gpr, before->gpr, sizeof before->gpr);
    on->in_flags = (before->flags & FLAG_BITS) | 2;
    on->taken = 0;
    memset(on->out, 0, sizeof on->out);
    memcpy((void *)ARENA_BASE, before->memory, ARENA_SIZE);
    memcpy(native.slot, bytes, length);
    native.at = native.slot + length;
    put_epilogue();
    if (sigsetjmp(native.fault, 1) != 0)
        return false;
    void (*run)(void);
    void *start = (void *)CODE_BASE;
    memcpy(&run, &start, sizeof run);
    run();
    memcpy(after->xsave, on->out, XSAVE_BYTES);
    memcpy(after->gpr, on->out_gpr, sizeof after->gpr);
    after->flags = on->out_flags & FLAG_BITS;
    after->taken = on->taken;
    memcpy(after->memory, (void *)ARENA_BASE, ARENA_SIZE);
    return true;
}
