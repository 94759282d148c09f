#!/usr/bin/env python3
"""Random C programs of what csmith leaves out. usage: generate.py SEED > program.c

Computed goto, variadic functions, arguments on the stack, structures returned in
registers and in memory, floating point, vectors, arrays of variable length, alloca,
thread-local variables, tail calls (direct and through pointers), setjmp and longjmp, bit
fields, 128-bit integers, atomics. The same seed gives the same program. A program takes
no input, is defined (unsigned arithmetic, shifts in range, no addresses in its output)
and prints one checksum for each of its functions.

Statements come from a few patterns with few constants, so that sequences repeat.
"""
import random
import sys

PRELUDE = """\
#include <alloca.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#define NOINLINE __attribute__((noinline))
typedef uint64_t u64;
typedef uint32_t u32;
typedef unsigned __int128 u128;
typedef u32 v4u __attribute__((vector_size(16)));
typedef double v2d __attribute__((vector_size(16)));
typedef uint8_t v16b __attribute__((vector_size(16)));
struct pair { u64 a, b; };
struct large { u64 a[5]; u32 b; };
struct reals { double a, b, c; };
struct mixed { float a; u32 b; double c; };
struct bits { u32 a : 3, b : 11, c : 1, d : 17; u64 e : 37, f : 27; int g : 5; };
static u64 global[8];
static struct bits bits;
static _Thread_local u64 own[4];
static _Thread_local double own_real;
static u64 counter;
static u32 small;
static jmp_buf place;
static volatile u64 sink;
static u64 of_double(double x) { return x > -1e15 && x < 1e15 ? (u64)(int64_t)(x * 16) : 77; }
static u64 of_vector(v4u x) { return x[0] + x[1] * 3ull + x[2] * 5ull + x[3] * 7ull; }
static u64 of_bytes(v16b x) { u64 y[2]; memcpy(y, &x, 16); return y[0] ^ y[1] * 3; }
"""

CONSTANTS = [c + "ull" for c in ("1", "3", "7", "13", "255", "4096", "0x12345",
                                 "0x9e3779b97f4a7c15")]
SMALL = ["1", "2", "3", "5", "7"]
REALS = ["0.5", "1.25", "-2.0", "3.75", "0.125"]


class Function:
    def __init__(self, name, kind, text, call):
        self.name, self.kind, self.text, self.call = name, kind, text, call


class Generator:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.functions = []

    def pick(self, items):
        return items[self.random.randrange(len(items))]

    def chance(self, of):
        return self.random.randrange(of) == 0

    # --- expressions and statements over u64 a, b, c; double x, y; v4u v; v2d w ---

    def value(self):
        return self.pick(["a", "b", "c", "a", "b", "c", self.pick(CONSTANTS),
                          "global[%d]" % self.random.randrange(8),
                          "own[%d]" % self.random.randrange(4)])

    def call(self):
        """A call of an earlier function, as an expression of type u64."""
        if not self.functions:
            return self.value()
        return self.pick(self.functions[-5:]).call(self)

    def expression(self, depth=2):
        if depth == 0 or self.chance(4):
            return self.value()
        left, right = self.expression(depth - 1), self.expression(depth - 1)
        return self.pick([
            "(%s + %s)", "(%s ^ %s)", "(%s - %s)", "(%s * (%s | 1))", "(%s & %s)",
            "(%s | %s)", "(%s / (%s | 1))", "(%s %% (%s | 1))", "(%s << (%s & 31))",
            "(%s >> (%s & 63))", "(%s > %s ? a : c)", "((u64)(u32)%s * (u32)%s)",
            "((u64)(%s < %s) + b)", "(u64)((u128)%s * %s >> 64)",
        ]) % (left, right)

    def real(self, depth=2):
        if depth == 0 or self.chance(4):
            return self.pick(["x", "y", "x", "y", self.pick(REALS), "own_real",
                              "(double)(u32)a", "(double)(float)(b & 0xffff)", "w[0]",
                              "w[1]"])
        left, right = self.real(depth - 1), self.real(depth - 1)
        return self.pick(["(%s + %s)", "(%s - %s)", "(%s * %s)", "(%s > %s ? x : y)",
                          "(%s / (1.5 + %s * 0 * (x == x)))"]) % (left, right)

    def simple(self):
        n, m = self.random.randrange(8), self.random.randrange(4)
        v = self.pick("abc")
        return self.pick([
            lambda: "%s = %s;" % (v, self.expression()),
            lambda: "%s += %s;" % (v, self.expression(1)),
            lambda: "%s ^= %s;" % (v, self.call()),
            lambda: "%s = %s + %s;" % (v, self.call(), self.call()),
            lambda: "global[%d] = %s;" % (n, self.expression(1)),
            lambda: "own[%d] += %s;" % (m, self.expression(1)),
            lambda: "%s = %s;" % (self.pick("xy"), self.real()),
            lambda: "own_real = %s;" % self.real(1),
            lambda: "%s += of_double(%s);" % (v, self.real(1)),
            lambda: "v = v * (v4u){(u32)a, %s, (u32)b, 9} + %s;" % (self.pick(SMALL),
                                                                  self.pick(SMALL)),
            lambda: "v ^= (v4u){(u32)%s, 1, 2, (u32)c} >> 3;" % self.value(),
            lambda: "%s += of_vector(v);" % v,
            lambda: "w = w * %s + (v2d){x, y};" % self.pick(REALS),
            lambda: "%s ^= of_bytes((v16b)v + (v16b)(v4u){(u32)%s, 2, 3, 4});" % (v, v),
            lambda: "bits.%s = %s;" % (self.pick("abcdef"), self.value()),
            lambda: "%s += bits.%s + bits.%s;" % (v, self.pick("abcdef"), self.pick("abcdef")),
            lambda: "bits.g = (int)(%s & 15); %s += (u64)(bits.g + 3);" % (self.value(), v),
            lambda: "__atomic_fetch_add(&counter, %s, __ATOMIC_SEQ_CST);" % self.value(),
            lambda: "%s += __atomic_fetch_xor(&small, (u32)%s, __ATOMIC_ACQ_REL);" % (
                v, self.value()),
            lambda: "{ u64 old = __atomic_load_n(&counter, __ATOMIC_ACQUIRE); __atomic_compare_exchange_n(&counter, &old, "
                    "old + %s, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED); }" % self.value(),
            lambda: "{ u128 q = (u128)%s << 64 | %s; q = q * %s + a; %s = (u64)(q / (b | 1)); }"
                    % (self.value(), self.value(), self.pick(CONSTANTS), v),
            lambda: "sink = %s;" % v,
        ])()

    def statements(self, count, depth=2):
        lines = []
        for _ in range(count):
            kind = self.random.randrange(12) if depth else 11
            if kind == 0:
                lines.append("if (%s & %s) {" % (self.value(), self.pick(SMALL)))
                lines += self.statements(2, depth - 1)
                if self.chance(2):
                    lines.append("} else {")
                    lines += self.statements(2, depth - 1)
                lines.append("}")
            elif kind == 1:
                i = "i%d" % depth
                lines.append("for (u32 %s = 0; %s < %s; %s++) {" % (i, i, self.pick(SMALL), i))
                lines += self.statements(2, depth - 1) + ["a += %s;" % i, "}"]
            elif kind == 2:
                lines.append("switch (%s %% %d) {" % (self.value(), 9))
                for case in range(self.random.randrange(5, 9)):
                    lines.append("case %d:" % case)
                    lines += self.statements(1, depth - 1)
                    if not self.chance(4):
                        lines.append("break;")
                lines += ["default: c++; }"]
            elif kind == 3 and self.chance(2):
                lines.append("if (a == %s) return b;" % self.pick(CONSTANTS))
            else:
                lines.append(self.simple())
        return lines

    def locals(self):
        return ["u64 c = %s;" % self.pick(CONSTANTS), "double x = %s, y = %s;" % (
            self.pick(REALS), self.pick(REALS)), "v4u v = {1, 2, 3, (u32)a};",
            "v2d w = {x, y};", "(void)v; (void)w; (void)y;"]

    def body(self, count=None):
        return self.locals() + self.statements(count or self.random.randrange(3, 9))

    END = "return a + b * 3 + c + of_double(x) + of_vector(v);"

    # --- functions ---

    def add(self, kind, head, lines, call):
        name = "f%d_%s" % (len(self.functions), kind)
        inline = "" if self.chance(5) else "NOINLINE "
        text = "%sstatic %s\n{\n    %s\n}\n" % (inline, head % name, "\n    ".join(lines))
        self.functions.append(Function(name, kind, text, call(name)))

    def plain(self):
        self.add("plain", "u64 %s(u64 a, u64 b)", self.body() + [self.END],
                 lambda f: lambda g: "%s(%s, %s)" % (f, g.value(), g.value()))

    def many(self):
        lines = ["u64 a = p1 + p3 * 3 + p12, b = p5 ^ p10 ^ (u64)p11.a[3];"] + self.body() + [
            "x += p2 + p4 + p6 + p7 + p8 + p9.c + p13.a + p14 + p15;",
            "b += p11.b + p9.b + p16;", self.END]
        self.add("many", "u64 %s(u64 p1, double p2, u32 p3, float p4, u64 p5, double p6, "
                 "double p7, double p8, struct mixed p9, u64 p10, struct large p11, "
                 "uint8_t p12, struct reals p13, double p14, float p15, short p16)", lines,
                 lambda f: lambda g: "%s(%s, x, 3, 1.5f, %s, y, 2.5, %s, (struct mixed)"
                 "{1, 2, 3}, b, (struct large){{1, a, 3, 4, c}, 6}, (uint8_t)%s, "
                 "(struct reals){x, 2, y}, 0.5, 4.5f, -3)" % (
                     f, g.value(), g.value(), g.real(0), g.value()))

    def variadic(self):
        lines = ["u64 a = n, b = 1;"] + self.locals() + [
            "va_list list;", "va_start(list, n);",
            "for (u32 i = 0; i < n; i++) {", "switch (i % 4) {",
            "case 0: a += va_arg(list, u64); break;", "case 1: x += va_arg(list, double); break;",
            "case 2: b ^= va_arg(list, u32); break;",
            "default: { struct pair p = va_arg(list, struct pair); a += p.a * 3 + p.b; } }"] + \
            self.statements(1, 0) + ["}", "va_end(list);"] + self.statements(2) + [self.END]
        self.add("variadic", "u64 %s(u32 n, ...)", lines,
                 lambda f: lambda g: "%s(%d, %s, x, (u32)b, (struct pair){a, c}, %s, y, "
                 "(u32)7, (struct pair){1, b}, (u64)5, 2.5)" % (
                     f, g.random.randrange(1, 11), "(u64)" + g.value(), "(u64)" + g.value()))

    def structure(self):
        kind = self.pick(["pair", "large", "reals", "mixed"])
        fields = {"pair": "{a, b}", "large": "{{a, b, c, a ^ b, 5}, (u32)a}",
                  "reals": "{x, y, (double)(u32)a}", "mixed": "{(float)x, (u32)b, y}"}
        use = {"pair": "(q.a + q.b * 3)", "large": "(q.a[0] + q.a[3] * 3 + q.b)",
               "reals": "of_double(q.a + q.b - q.c)", "mixed": "(of_double(q.a + q.c) + q.b)"}
        lines = ["u64 b = p.b + of_double(k);"] + self.body() + [
            "return (struct %s)%s;" % (kind, fields[kind])]
        lines = [line.replace("return b;", "return (struct %s){0};" % kind) for line in lines]
        self.add(kind, "struct " + kind + " %s(u64 a, struct pair p, double k)", lines,
                 lambda f: lambda g: "({ struct %s q = %s(%s, (struct pair){b, %s}, %s); %s; })"
                 % (kind, f, g.value(), g.value(), g.pick(REALS), use[kind]))

    def goto(self):
        count = self.random.randrange(4, 9)
        lines = self.locals() + [
            "static const void *const table[] = {%s};" % ", ".join(
                "&&op%d" % i for i in range(count)),
            "static const uint8_t code[] = {%s};" % ", ".join(
                str(self.random.randrange(count)) for _ in range(20)),
            "u32 pc = 0, steps = 0;", "goto *table[code[pc++]];"]
        for i in range(count):
            lines += ["op%d:" % i] + self.statements(self.random.randrange(1, 4), 1) + [
                "if (++steps > 30 + (a & 7)) goto out;",
                "pc = pc < sizeof code ? pc : 0;", "goto *table[code[pc++]];"]
        self.add("goto", "u64 %s(u64 a, u64 b)", lines + ["out:;", self.END],
                 lambda f: lambda g: "%s(%s, %s)" % (f, g.value(), g.value()))

    def variable(self):
        lines = self.locals() + [
            "u32 n = (u32)(a %% 13) + 1;".replace("%%", "%"), "u64 array[n];",
            "uint8_t *more = alloca(n * 3 + 1);", "memset(more, (int)n, n * 3 + 1);",
            "for (u32 i = 0; i < n; i++) {", "array[i] = a * i + more[i * 3];"] + \
            self.statements(1, 0) + ["}"] + self.statements(3) + [
            "for (u32 i = 0; i < n; i++)", "    c += array[i] ^ more[i];", self.END]
        self.add("variable", "u64 %s(u64 a, u64 b)", lines,
                 lambda f: lambda g: "%s(%s, %s)" % (f, g.value(), g.value()))

    def jumps(self):
        name = "j%d" % len(self.functions)
        helper = "NOINLINE static u64 %s(u64 a, u64 b)\n{\n    %s\n    if (a & 1) " \
            "longjmp(place, (int)(b & 7) + 1);\n    return b;\n}\n" % (
                name, "\n    ".join(self.locals() + self.statements(2, 1)))
        # Only what is volatile, or has not changed since setjmp(), is defined behind it.
        lines = ["volatile u64 kept = a; u64 first = b;",
                 "int how = setjmp(place);", "if (how == 0) {", "kept = a + 3;",
                 "kept += %s(a, b);" % name, "kept ^= %s(first, a);" % name, "}",
                 "return kept * 5 + (u64)how + first;"]
        self.add("jumps", "u64 %s(const u64 a, const u64 b)", lines,
                 lambda f: lambda g: g.value())  # place is one for all: called by main only
        self.functions[-1].text = helper + self.functions[-1].text
        self.functions[-1].direct = True

    def tail(self):
        two = [f for f in self.functions if f.kind in ("plain", "goto", "variable", "tail")]
        if len(two) < 2:
            return self.plain()
        one, other = self.pick(two).name, self.pick(two).name
        lines = self.body(3) + self.pick([
            ["return %s(b, a + c);" % one],
            ["if (a & 1) return %s(c, b);" % one, "a += of_vector(v);",
             "return %s(a, c);" % other],
            ["static u64 (*const table[])(u64, u64) = {%s, %s};" % (one, other),
             "return table[a & 1](b, c);"]])
        self.add("tail", "u64 %s(u64 a, u64 b)", lines,
                 lambda f: lambda g: "%s(%s, %s)" % (f, g.value(), g.value()))

    def program(self):
        kinds = [self.plain, self.many, self.variadic, self.structure, self.goto,
                 self.variable, self.jumps, self.tail]
        order = kinds + [self.pick(kinds) for _ in range(self.random.randrange(2, 7))]
        self.random.shuffle(order)
        for make in order:
            make()
        lines = ["u64 a = 1, b = 2, c = 3;", "double x = 0.5, y = 1.5;", "v2d w = {x, y};",
                 "(void)w;"]
        for function in self.functions:
            for _ in range(2):
                call = "%s(a, b)" % function.name if hasattr(function, "direct") else \
                    function.call(self)
                lines.append('c = %s; a += c; printf("%s %%llx\\n", (unsigned long long)c);'
                             % (call, function.name))
        lines += ['printf("%llx %llx %llx\\n", (unsigned long long)global[3], '
                  '(unsigned long long)own[1], (unsigned long long)(counter + small));',
                  "return 0;"]
        return PRELUDE + "\n" + "\n".join(f.text for f in self.functions) + \
            "\nint main(void)\n{\n    %s\n}\n" % "\n    ".join(lines)


def program(seed):
    return Generator(seed).program()


if __name__ == "__main__":
    sys.stdout.write(program(int(sys.argv[1])))
