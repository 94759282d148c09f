#!/usr/bin/env python3
"""Random C++ programs about exceptions.

usage: cxxgen.py SEED FOLDER     (writes main.cc, part0.cc, ..., callback.c)

Functions call one another, down to a fixed depth; many calls may throw. Each run of the
program lets the N-th of all the places where something could be thrown throw, for N = 1,
2, ... until there are no more, and prints a hash of all that was seen on the way: the
values of variables in handlers, destructors and behind calls (kept in registers that
callees save, of both kinds, or in the frame), which handlers were entered, whether the
program wanted to end. So a program says the same before and after only if every
exception finds the same handlers with the same values.

Functions come in families that share their shape, so that there is something to outline.
"""
import os
import random
import sys

PRELUDE = r"""
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
typedef unsigned long long u64;
#define NOINLINE __attribute__((noinline))
extern "C" {
extern u64 seen;                    /* the hash */
void note(long value);              /* never throws, but nobody knows */
void point(int id);                 /* may throw */
long value(int id, long input);     /* may throw */
double real(int id, double input);  /* may throw */
long *where(int id);                /* NULL when it is to throw */
long opaque(long input) noexcept;
double opaque_real(double input) noexcept;
long many(long a, long b, long c, long d, long e, long f, long g, double h, long i, int j,
          double k, char l); /* may throw; takes arguments on the stack */
struct Big { long a[9]; };
long big(int id, Big first, long between, Big second); /* may throw */
long by_callback(long (*callback)(long), long argument); /* C, with cleanups */
}
struct Base { long code; Base(long c) : code(c) {} Base(const Base &) = default; virtual ~Base(); };
struct Left : virtual Base { long left; Left(long c) : Base(c), left(c * 3) {} ~Left(); };
struct Right : virtual Base { long right; Right(long c) : Base(c), right(c * 5) {} ~Right(); };
struct Both : Left, Right { Both(long c) : Base(c), Left(c), Right(c) {} ~Both(); };
struct Guard { long id; Guard(long i) : id(i) {} ~Guard() { note(id); } };
struct Watch { const long *at; long id; ~Watch() { note(*at * 7 + id); } };
struct Loud { long id; Loud(long i) : id(i) { point((int)i); } ~Loud() { note(id * 11); } };
struct Shape { long n; virtual long work(long a, long b); virtual ~Shape(); };
static inline void clean(long *at) { note(*at + 13); }
/* Every part has a copy of these, made by another compiler: the linker keeps one. */
template <int N> NOINLINE long shared(long a, long b, double d)
{
    Guard guard(a);
    long kept = opaque(b) * N;
    double real_kept = opaque_real(d);
    try {
        Watch watch = {&kept, N};
        kept += value(900 + N, a);
        if (N & 1)
            kept ^= value(910 + N, b);
        return kept + (long)(real_kept * 4);
    } catch (Left &e) {
        note(e.left + kept + (long)real_kept);
        if (N & 2)
            throw;
    } catch (int e) {
        note(e + kept);
    }
    return kept - N;
}
"""

MAIN = r"""
#include <exception>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
u64 seen;
static int left, second, thrown;
static jmp_buf out;
Base::~Base() {}
Left::~Left() {}
Right::~Right() {}
Both::~Both() {}
Shape::~Shape() {}
long Shape::work(long a, long b) { return value(3, a + b); }
static void hash(u64 v) { seen = (seen ^ v) * 0x9e3779b97f4a7c15ull; seen ^= seen >> 31; }
static void leave(int id)
{
    thrown++;
    left = thrown == 1 ? second : 0;
    hash(7777 + id);
    switch (id % 7) {
    case 0: throw id;
    case 1: throw (long)id;
    case 2: throw Both(id);
    case 3: throw Left(id);
    case 4: throw Right(id);
    case 5: throw (const char *)"text";
    default: throw Base(id);
    }
}
extern "C" {
void note(long v) { hash((u64)v); }
void point(int id) { hash(id); if (left > 0 && --left == 0) leave(id); }
long value(int id, long input) { point(id); return input * 3 + id; }
double real(int id, double input) { point(id); return input * 0.5 + id; }
long *where(int id) { static long there = 5; hash(id); if (left > 0 && --left == 0) { left = thrown++ ? 0 : second; return NULL; } return &there; }
long opaque(long input) noexcept { return input; }
double opaque_real(double input) noexcept { return input; }
long many(long a, long b, long c, long d, long e, long f, long g, double h, long i, int j, double k, char l)
{
    hash(a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 9 * i + 10 * j + 11 * l + (long)(h * 8 + k));
    point(j);
    return a ^ l;
}
long big(int id, Big first, long between, Big second) { hash(first.a[8] + between + second.a[0]); point(id); return first.a[1]; }
}
long start(long a, long b, double d);
static void end() { hash(99); longjmp(out, 1); }
static void surprise() { hash(98); throw 4711; }
static void fault(int) { hash(97); throw Left(97); }
static void once(long i)
{
    try {
        hash(start(i, i * 17, i * 0.25));
    } catch (int e) { hash(1 + e);
    } catch (long e) { hash(2 + e);
    } catch (Base &e) { hash(3 + e.code);
    } catch (const char *) { hash(4);
    }
}
int main(int argc, char **argv)
{
    volatile int most = argc > 1 ? atoi(argv[1]) : 400;
    std::set_terminate(end);
    SURPRISE
    struct sigaction action = {};
    action.sa_handler = fault;
    action.sa_flags = SA_NODEFER;
    sigaction(SIGSEGV, &action, NULL);
    for (volatile int i = 1; i <= most; i++) {
        left = i, thrown = 0, second = i % 3 ? i % 11 : 0;
        if (setjmp(out) == 0)
            once(i % 5);
        printf("%d %016llx\n", i, seen);
        if (thrown == 0)
            break;
    }
    return (int)(seen % 100);
}
"""

CALLBACK = r"""
/* Exceptions of C++ pass through here. */
extern void note(long value);
extern long opaque(long input);
static void clean(long *at) { note(*at + 23); }
#define WAY(name, next, number)                                                       \
    static __attribute__((noinline)) long name(long (*callback)(long), long argument) \
    {                                                                                 \
        long kept __attribute__((cleanup(clean))) = opaque(argument) + number;        \
        long other = opaque(number);                                                  \
        long got = next(callback, argument + 1);                                      \
        note(got + other);                                                            \
        {                                                                             \
            long inner __attribute__((cleanup(clean))) = got * 2;                     \
            got += callback(other & 3);                                               \
        }                                                                             \
        return got + kept + other;                                                    \
    }
static __attribute__((noinline)) long last(long (*callback)(long), long argument)
{
    return callback(argument);
}
WAY(one, last, 100)
WAY(two, one, 200)
WAY(three, last, 300)
long by_callback(long (*callback)(long), long argument)
{
    return argument & 1 ? two(callback, argument) : three(callback, argument);
}
"""

TYPES = ["int e", "long e", "Both &e", "Left &e", "Right &e", "Base &e", "const char *e"]


class Function:
    def __init__(self, index, level):
        self.name = "f%d" % index
        self.level = level


class Generator:
    """One part: a translation unit with its functions."""

    def __init__(self, rng, part, traps, specs):
        self.rng = rng
        self.part = part
        self.traps = traps   # may load through null pointers
        self.specs = specs   # may state dynamic exception specifications
        self.id = part * 1000

    def pick(self, *choices):
        return self.rng.choice(choices)

    def next_id(self):
        self.id += 1
        return self.id

    # --- expressions; `longs` and `reals` are names in scope ---

    def operand(self):
        return self.pick(self.rng.choice(self.longs), str(self.rng.randint(1, 99)))

    def long_expr(self):
        return "(%s %s %s)" % (self.rng.choice(self.longs), self.pick("+", "^", "-", "*"),
                               self.operand())

    def real_expr(self):
        return "(%s %s %s)" % (self.rng.choice(self.reals), self.pick("+", "-", "*"),
                               self.pick("0.5", "2.0", self.rng.choice(self.reals)))

    def call(self):
        """A long expression that may throw."""
        kind = self.rng.randrange(12)
        if self.callees and kind < 4:
            name = self.rng.choice(self.callees)
            return "%s(%s, %s, %s)" % (name, self.long_expr(), self.operand(), self.real_expr())
        if kind == 4:
            return "many(%s, 2, %s, 4, 5, %s, 7, %s, 9, %d, 1.5, 'x')" % (
                self.operand(), self.operand(), self.operand(), self.real_expr(), self.next_id())
        if kind == 5:
            return "shape(%s)->work(%s, %s)" % (self.operand(), self.operand(), self.operand())
        if kind == 6:
            return "table[%s & 3](%s)" % (self.operand(), self.operand())
        if kind == 10:
            return "shared<%d>(%s, %s, %s)" % (self.rng.randrange(6), self.operand(),
                                               self.operand(), self.real_expr())
        if kind == 7:
            return "by_callback(table[%d], %s)" % (self.rng.randrange(4), self.operand())
        if kind == 8:
            return "big(%d, wide, %s, wide)" % (self.next_id(), self.operand())
        if kind == 9 and self.traps:
            return "*where(%d)" % self.next_id()
        return "value(%d, %s)" % (self.next_id(), self.operand())

    # --- statements ---

    def say(self):
        """Tells of some values."""
        chosen = self.rng.sample(self.longs, min(len(self.longs), self.rng.randint(1, 4)))
        text = " + ".join("%s * %d" % (n, i * 2 + 1) for i, n in enumerate(chosen))
        if self.rng.random() < 0.4:
            text += " + (long)(%s * 16)" % self.rng.choice(self.reals)
        return "note(%s);" % text

    def statement(self, depth):
        kind = self.rng.randrange(16)
        x = self.rng.choice(self.longs)
        if kind < 4:
            return "%s %s %s;" % (x, self.pick("=", "+=", "^="), self.call())
        if kind == 4:
            return "%s = real(%d, %s);" % (self.rng.choice(self.reals), self.next_id(),
                                           self.real_expr())
        if kind == 5:
            return self.say()
        if kind == 6:
            return "point(%d);" % self.next_id()
        if kind == 7:
            return "%s = %s;" % (x, self.long_expr())
        if depth <= 0:
            return self.say()
        if kind < 11:
            return self.try_block(depth - 1)
        if kind == 11:
            return "if (%s & %d) { %s } else { %s }" % (
                x, 1 << self.rng.randrange(3), self.body(depth - 1, 2), self.body(depth - 1, 2))
        if kind == 12:
            return "for (int i = 0; i < %d; i++) { %s }" % (self.rng.randint(1, 3),
                                                            self.body(depth - 1, 2))
        if kind == 13:
            return "{ %s %s }" % (self.local(), self.body(depth - 1, 2))
        if kind == 14:
            cases = " ".join("case %d: %s break;" % (i, self.body(0, 1)) for i in range(6))
            return "switch (%s & 7) { %s default: %s }" % (x, cases, self.say())
        return "if (%s == %d) throw %s;" % (self.call(), self.rng.randrange(50),
                                            self.pick("12", "13L", "Both(14)", "Base(15)"))

    def local(self):
        number = self.next_id()
        x = self.rng.choice(self.longs)
        return self.pick(
            "Guard guard%d(%s);" % (number, self.operand()),
            "Watch watch%d = {&%s, %d};" % (number, x, number),
            "Loud loud%d(%d);" % (number, number),
            "long clean%d __attribute__((cleanup(clean))) = %s;" % (number, self.long_expr()),
            "char *more%d = (char *)__builtin_alloca((%s & 63) + 8); memset(more%d, %d, 8); "
            "Guard held%d(more%d[3]);" % (number, x, number, number % 100, number, number),
            "alignas(64) long wide%d[9]; wide%d[(%s) & 7] = %s; "
            "Watch wider%d = {&wide%d[(%s) & 7], 5};" % (number, number, number, self.operand(),
                                                        number, number, number))

    def handler(self, kind, depth):
        use = {"int e": "e", "long e": "e", "const char *e": "e[0]"}.get(kind, "e.code")
        end = self.pick("", "", "", "throw;", "throw %s + 1;" % use if kind != "const char *e" else "",
                        "return %s;" % self.rng.choice(self.longs))
        return "catch (%s) { note(%s); %s %s %s }" % (kind, use, self.say(),
                                                      self.body(depth - 1, 1), end)

    def try_block(self, depth):
        kinds = self.rng.sample(TYPES, self.rng.randint(1, 3))
        kinds.sort(key=TYPES.index)
        handlers = " ".join(self.handler(kind, depth) for kind in kinds)
        if self.rng.random() < 0.3:
            handlers += " catch (...) { %s %s }" % (self.say(), self.pick("", "throw;"))
        inner = self.body(depth, 3)
        before = self.local() if self.rng.random() < 0.4 else ""
        return "try { %s %s } %s" % (before, inner, handlers)

    def body(self, depth, most):
        return " ".join(self.statement(depth) for _ in range(self.rng.randint(1, most)))

    # --- functions ---

    def head(self, name):
        spec = ""
        chance = self.rng.random()
        if chance < 0.08:
            spec = "noexcept"
        elif chance < 0.2 and self.specs:
            spec = self.pick("throw(int)", "throw(int, Base)", "throw()")
        return "NOINLINE long %s(long a, long b, double d)" % name, spec

    def function(self, name, callees, seed):
        """Families share a seed: their shape is one, numbers and callees are not."""
        own = self.rng
        self.rng = random.Random(seed)
        self.callees = callees
        self.longs = ["a", "b"] + ["x%d" % i for i in range(self.rng.randint(1, 6))]
        self.reals = ["d"] + ["y%d" % i for i in range(self.rng.randint(0, 3))]
        head, spec = self.head(name)
        lines = ["Big wide = {{a, b, 3}};"]
        for n in self.longs[2:]:
            lines.append("long %s = opaque(a + %d);" % (n, self.rng.randint(1, 50)))
        for n in self.reals[1:]:
            lines.append("double %s = opaque_real(d + %d);" % (n, self.rng.randint(1, 50)))
        if self.rng.random() < 0.3:
            lines.append(self.local())
        for _ in range(self.rng.randint(3, 7)):
            lines.append(self.statement(2))
        lines.append(self.say())
        lines.append("return %s;" % self.long_expr())
        body = "{\n    " + "\n    ".join(lines) + "\n}"
        if self.rng.random() < 0.1:
            body = "try %s catch (Left &e) { note(e.left); return e.code; }" % body
        self.rng = own
        return head + " " + spec, body

    def part_text(self, mine, all_levels):
        """`mine`: (name, level, family seed); functions call those of lower levels."""
        bodies, protos = [], []
        for name, level, family in mine:
            callees = [n for n, l in all_levels if l < level]
            if len(callees) > 6:
                callees = self.rng.sample(callees, 6)
            head, body = self.function(name, callees, family)
            bodies.append(head + "\n" + body)
            protos.append(head + ";")
        return bodies, protos


HELP = r"""
struct Shape%(p)d : Shape {
    long work(long a, long b) override { Guard g(n); return value(%(p)d005, a) + value(%(p)d006, b); }
};
static NOINLINE Shape *shape(long a)
{
    static Shape%(p)d mine;
    static Shape plain;
    mine.n = a;
    return a & 1 ? &mine : &plain;
}
static NOINLINE long t0(long a) { return value(%(p)d010, a); }
static NOINLINE long t1(long a) { Guard g(a); return value(%(p)d011, a + 1) * 2; }
static NOINLINE long t2(long a) { try { point(%(p)d012); return a; } catch (int e) { return e + a; } }
static NOINLINE long t3(long a) noexcept { note(a); try { return value(%(p)d013, a); } catch (...) { return 5; } }
static long (*const table[])(long) = {t0, t1, t2, t3};
"""


# What a part of a random C++ program may be compiled with: one of each line.
FLAGS = {
    "gcc": [["-O0", "-O1", "-O2", "-O2", "-O3", "-Os", "-Os"],
            ["", "", "-fno-omit-frame-pointer", "-fomit-frame-pointer", "-fno-ipa-ra"],
            ["", "", "-freorder-blocks-and-partition -fno-guess-branch-probability",
             "-fno-reorder-blocks-and-partition", "-fno-asynchronous-unwind-tables"],
            ["", "", "-fno-stack-protector -fno-shrink-wrap", "-fstack-protector-all",
             "-fno-inline"],
            ["", "", "", "-fno-dwarf2-cfi-asm", "-finstrument-functions",
             "-fzero-call-used-regs=used", "-fstack-clash-protection"]],
    "clang": [["-O0", "-O1", "-O2", "-O3", "-Os", "-Oz", "-Oz"],
              ["", "", "-fno-omit-frame-pointer -mno-omit-leaf-frame-pointer",
               "-fomit-frame-pointer"],
              ["", "", "-fno-asynchronous-unwind-tables"],
              ["", "", "-fstack-protector-all", "-fno-inline"]],
    "all": [["-fPIC", "-fPIC", "-ffunction-sections", "-fno-plt"]],
    "x86_64": [["", "-fcf-protection", "-mno-red-zone", "-march=haswell"]],
    "gcc-x86_64": [["", "", "-maccumulate-outgoing-args", "-mno-accumulate-outgoing-args",
                    "-mindirect-branch=thunk -fcf-protection=none", "-mstackrealign"]],
    "aarch64": [["", "-mbranch-protection=standard", "-mbranch-protection=pac-ret+leaf",
                 "-mbranch-protection=pac-ret+b-key", "-march=armv8.3-a"]],
}
# For programs as a whole.
OPTIONS = [[], [], ["--drop-alignment"], ["--no-veneers"]]


def flags(rng, kind, target, traits):
    """Random flags for one part, the language's standard last."""
    chosen = []
    for group in (kind, "all", target, "%s-%s" % (kind, target)):
        for line in FLAGS.get(group, []):
            chosen += rng.choice(line).split()
    # Who throws out of signal handlers needs rows at every instruction.
    if traits.get("traps"):
        chosen += ["-fnon-call-exceptions", "-fasynchronous-unwind-tables"]
    return chosen + ["-std=c++14" if traits.get("specs") else "-std=c++17"]


def plan(seed):
    """What the program is made of: how many parts, and what each may use."""
    rng = random.Random(seed * 7919 + 1)
    parts = rng.randint(1, 3)
    return [{"traps": rng.random() < 0.3, "specs": rng.random() < 0.4} for _ in range(parts)]


def program(seed):
    """Texts by file name."""
    parts = plan(seed)
    rng = random.Random(seed)
    families = [rng.random() for _ in range(rng.randint(2, 4))]
    functions = []
    for i in range(rng.randint(10, 24)):
        functions.append(("f%d" % i, 1 + i // 4, rng.choice(families), i % len(parts)))
    levels = [(n, l) for n, l, _, _ in functions]
    top = max(l for _, l in levels)
    generators = [Generator(rng, p, parts[p]["traps"], parts[p]["specs"])
                  for p in range(len(parts))]
    bodies, protos = {}, []
    for p, generator in enumerate(generators):
        mine = [(n, l, f) for n, l, f, q in functions if q == p]
        bodies[p], heads = generator.part_text(mine, levels)
        protos += heads
    # Who sees only the prototype must not see a specification that is not its language.
    plain = "\n".join(h.split(")", 1)[0] + ");" for h in protos)
    texts = {"callback.c": CALLBACK}
    for p in range(len(parts)):
        mine = {b.split("\n", 1)[0] for b in bodies[p]}
        others = "\n".join(h.split(")", 1)[0] + ");" for h in protos if h[:-1] not in mine)
        own = "\n".join(h for h in protos if h[:-1] in mine)
        texts["part%d.cc" % p] = "\n".join([PRELUDE, others, own, HELP % {"p": p + 1}] + bodies[p])
    surprise = ("#if __cplusplus < 201703L\nstd::set_unexpected(surprise);\n#endif\n"
                "    (void)surprise;")
    last = [n for n, l in levels if l == top]
    texts["main.cc"] = (PRELUDE + plain + MAIN.replace("SURPRISE", surprise) +
                        "long start(long a, long b, double d) { long sum = 0; %s return sum; }\n" %
                        " ".join("sum += %s(a, b, d);" % n for n in last))
    return texts


def write(seed, folder):
    for name, text in program(seed).items():
        with open(os.path.join(folder, name), "w") as out:
            out.write(text)


if __name__ == "__main__":
    write(int(sys.argv[1]), sys.argv[2])
