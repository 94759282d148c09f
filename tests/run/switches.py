#!/usr/bin/env python3
"""Random C programs that are made of switches, each of whose cases is executed.

usage: switches.py SEED > program.c

What csmith lacks, and where an outliner goes wrong without a word: jump tables, whose
entries and limits it has to find in the code. Every function holds one switch (or two, or
one in another) of a random shape: type and range of the index, where the index lives, how
its range is known (a compare, a mask, a remainder, an unreachable default), dense or with
holes, what the cases do (fall through, return, call, go round again, call what is cold).
The driver runs each function over all values around its range and prints a sum.
"""
import random
import sys

PROLOGUE = """\
#include <stdio.h>
static unsigned sum = 1;
static __attribute__((noinline)) void mix(unsigned a, unsigned b)
{
    sum = (sum << 5 | sum >> 27) ^ (a * 2654435761u + b);
}
static __attribute__((noinline, cold)) void rare(unsigned a) { mix(a, 77); }
struct place {
    unsigned char u8; signed char s8; unsigned short u16; short s16;
    unsigned u32; int s32; unsigned long u64; unsigned bits : 5;
};
"""

# type, lowest and highest value
TYPES = [("unsigned char", 0, 255), ("signed char", -128, 127), ("char", 0, 127),
         ("unsigned short", 0, 65535), ("short", -32768, 32767), ("int", -2**31, 2**31 - 1),
         ("unsigned", 0, 2**32 - 1), ("long", -2**63, 2**63 - 1), ("unsigned long", 0, 2**64 - 1)]
FIELDS = {"unsigned char": "u8", "signed char": "s8", "unsigned short": "u16", "short": "s16",
          "unsigned": "u32", "int": "s32", "unsigned long": "u64"}


class Function:
    def __init__(self, rng, number):
        self.rng, self.number = rng, number
        self.type, self.least, self.most = rng.choice(TYPES)
        self.name = "f%d" % number
        self.again = rng.random() < 0.2      # a case may go round again
        self.loops = rng.random() < 0.3      # the switch lies in a loop
        self.statics = []
        self.values = self.choose_values()

    def choose_values(self):
        rng = self.rng
        count = rng.choice([4, 6, 9, 13, 17, 20, 33, 60, 130]) if rng.random() < 0.9 else 260
        count = min(count, (self.most - self.least) // 2)
        low = rng.choice([0, 0, 0, 1, 5, -3, -20, 97, 1000, self.least])
        low = max(self.least, min(low, self.most - 2 * count))
        holes = rng.choice([0, 0, 0.1, 0.4])
        values = [low + i for i in range(count) if rng.random() >= holes]
        if rng.random() < 0.15:              # and some that are far away
            values += [v for v in (low + 500, low + 501, low + 502) if v <= self.most]
        return values or [low]

    def body(self, value, depth=0):
        rng = self.rng
        texts = []
        for _ in range(rng.choice([1, 1, 2, 3])):
            texts.append(rng.choice([
                "mix(%d, r);" % (value & 0xff), "r += %d;" % rng.randrange(1, 9),
                "r = r * 33 + y;", "mix(r, y); r ^= y << 3;", "mix(y, 5); mix(r, 9);",
                "r += (unsigned)x * 7;", "if (r & 1) mix(r, 3); else r += 2;",
                "q->u32 += r; mix(q->u32, 1);", "z += r; r -= z >> 2;"]))
        kind = rng.random()
        if kind < 0.08:
            texts.append("rare(r);")
        elif kind < 0.10:
            texts = ["rare(%d); return r;" % rng.randrange(99)]
        if depth == 0 and rng.random() < 0.03:
            texts.append(self.inner())
        end = rng.random()
        if end < 0.12:
            texts.append("return r + %d;" % rng.randrange(5))
        elif self.again and end < 0.25:
            texts.append("if (budget-- > 0) { x = (%s)%d; goto again; } break;" % (
                self.type, rng.choice(self.values)))
        elif end < 0.85:
            texts.append("break;")
        else:
            texts.append("/* fall through */")
        return " ".join(texts)

    def inner(self):
        cases = " ".join("case %d: %s" % (i, self.body(i, 1)) for i in range(self.rng.choice([5, 8, 12])))
        return "switch (y & 15) { %s default: r += 4; }" % cases

    def cases(self, values, default):
        """Several values may share a body, as with `case 1: case 2:`."""
        rng, lines, left = self.rng, [], list(values)
        if rng.random() < 0.3:
            rng.shuffle(left)
        while left:
            take = rng.choice([1, 1, 1, 1, 2, 3])
            now, left = left[:take], left[take:]
            labels = " ".join("case %s:" % literal(v, self.type) for v in now)
            lines.append("    %s %s" % (labels, self.body(now[0])))
        place = rng.choice([0, len(lines), rng.randrange(len(lines) + 1)])
        # Nothing may fall through into a default that is never reached.
        lines.insert(0 if "unreachable" in default else place, default)
        return "\n".join(lines)

    def index(self):
        """(expression, statement before, values that may be given, how the default ends)"""
        rng = self.rng
        inside = list(range(min(self.values), max(self.values) + 1))
        if len(inside) > 700:
            inside = [v for v in inside if v in self.values or rng.random() < 0.02]
        around = [v for v in range(min(inside) - 3, min(inside)) if v >= self.least]
        around += [v for v in range(max(inside) + 1, max(inside) + 4) if v <= self.most]
        around += [self.least, self.most]
        normal = "    default: %s break;" % rng.choice(["r += 11;", "mix(3, r);", "rare(4);", "return 7;"])
        never = "    default: __builtin_unreachable();"
        kind = rng.random()
        if kind < 0.35:
            return "x", "", inside + around, normal
        if kind < 0.5 and set(inside) == set(self.values):
            return "x", "", inside, never
        if kind < 0.6:
            guard = "if (x < %s || x > %s) return 3;" % (
                literal(inside[0], self.type), literal(inside[-1], self.type))
            return "x", guard, inside + around, normal
        if kind < 0.66 and set(inside) == set(self.values):
            guard = "if (x < %s || x > %s) __builtin_unreachable();" % (
                literal(inside[0], self.type), literal(inside[-1], self.type))
            return "x", guard, inside, normal
        if kind < 0.85:
            mask = rng.choice([7, 15, 31, 63])
            self.values = [v for v in range(mask + 1) if rng.random() < 0.95] or [0]
            full = len(self.values) == mask + 1
            expression = rng.choice(["x & %d" % mask, "(unsigned)x %% %du" % (mask + 1),
                                     "(unsigned)x >> 2 & %d" % mask])
            given = [v for v in range(0, 4 * mask + 5) if v <= self.most]
            return expression, "", given, never if full and rng.random() < 0.5 else normal
        if self.type in FIELDS:              # the index lives in memory
            field = FIELDS[self.type]
            prefix = rng.choice(["q", "((volatile struct place *)q)"])
            return "%s->%s" % (prefix, field), "q->%s = x;" % field, inside + around, normal
        return "x", "", inside + around, normal

    def text(self):
        rng = self.rng
        if rng.random() < 0.12:
            return self.labels()
        expression, before, given, default = self.index()
        self.given = sorted(set(given))
        switch = "switch (%s) {\n%s\n    }" % (expression, self.cases(self.values, default))
        second = ""
        if rng.random() < 0.2:               # the same cases once more: shared or threaded
            second = "switch (%s) {\n%s\n    }" % (
                expression, self.cases(self.values, default))
        loop = "for (unsigned turn = 0; turn < 2; turn++, r += turn)" if self.loops else ""
        label = "again:\n    " if self.again else ""
        return FUNCTION % {"name": self.name, "type": self.type, "before": before, "label": label,
                           "loop": loop, "switch": switch, "second": second, "statics": ""}

    def labels(self):
        """Computed goto, by addresses or by distances."""
        rng = self.rng
        count = rng.choice([4, 8, 16])
        self.given = [v for v in range(0, 2 * count) if v <= self.most]
        distance = rng.random() < 0.3
        entries = ["&&l%d%s" % (i, " - &&l0" if distance else "") for i in range(count)]
        table = "static %s const table[] = { %s };" % (
            "int" if distance else rng.choice(["void *", "void *"]), ", ".join(entries))
        jump = "goto *(&&l0 + table[x & %d]);" if distance else "goto *table[x & %d];"
        jump = jump % (count - 1)
        # (gcc 12 cannot assemble a distance to a label that it moves to a cold part.)
        lines = ["    l%d: %s %s" % (i, self.straight(i, not distance), rng.choice(
            ["goto out;", "", "if (budget-- > 0) { x += 3; %s } goto out;" % jump]))
            for i in range(count)]
        switch = jump + "\n" + "\n".join(lines) + "\n    out: mix(r, 2);"
        return FUNCTION % {"name": self.name, "type": self.type, "before": "", "label": "",
                           "loop": "", "switch": switch, "second": "", "statics": table}

    def straight(self, value, may_be_cold):
        return self.rng.choice(["mix(%d, r); r += y;" % value, "r = r * 33 + y;",
                                "mix(r, y); r ^= y << 3;", "mix(r, 5); r += %d;" % value] +
                               ["rare(%d);" % value] * may_be_cold)


FUNCTION = """\
static __attribute__((noinline)) unsigned %(name)s(%(type)s x, unsigned y, struct place *q)
{
    %(statics)s
    unsigned r = y + 1, z = 3;
    int budget = 3;
    (void)budget, (void)z;
    %(before)s
    %(label)s%(loop)s
    %(switch)s
    mix(r, z);
    %(second)s
    return r;
}
"""


def literal(value, kind):
    suffix = "ull" if value > 2**63 - 1 else "ll" if value > 2**31 - 1 else ""
    if value == -2**63:
        return "(-9223372036854775807ll - 1)"
    return "%d%s" % (value, suffix) if value != -2**31 else "(-2147483647 - 1)"


def driver(function):
    kept = function.given
    values = ", ".join("(%s)%s" % (function.type, literal(v, function.type)) for v in kept)
    return ("    { static const %s v[] = { %s };\n"
            "      for (unsigned i = 0; i < sizeof v / sizeof *v; i++)\n"
            "          for (unsigned y = 0; y < 16; y += 1 + (sizeof v > 512) * 6)\n"
            "              mix(%s(v[i], y, &q), i);\n"
            "      printf(\"%s %%u\\n\", sum); }\n" % (function.type, values, function.name,
                                                      function.name))


def generate(seed):
    rng = random.Random(seed)
    functions = [Function(rng, i) for i in range(rng.choice([6, 10, 16]))]
    texts = [f.text() for f in functions]
    main = "int main(void)\n{\n    static struct place q;\n%s    return 0;\n}\n" % "".join(
        driver(f) for f in functions)
    return PROLOGUE + "\n".join(texts) + main


if __name__ == "__main__":
    sys.stdout.write(generate(int(sys.argv[1])))
