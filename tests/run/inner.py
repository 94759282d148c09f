#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Calls from inside of helpers (--effort=2, x86-64): callees that would notice are not
called so, and others are. One row for each way in which a callee may notice; every row is
compiled by several compilers, outlined and run as before. Options as in run.py.
"""
import itertools
import os
import re
import sys
from dataclasses import dataclass

import run

GCC, CLANG = ["gcc"], ["clang-19"]
LEVELS = {"gcc": ["-O2", "-Os", "-O1 -fno-omit-frame-pointer"],
          "clang-19": ["-Oz", "-O2", "-O1 -fno-omit-frame-pointer"]}
EVERY = GCC + CLANG


@dataclass
class Row:
    case: str              # of fixtures/programs-inner/hostile.c
    compilers: tuple = tuple(EVERY)
    flags: dict = None     # by compiler
    callee: str = "f"
    called: bool = False   # from inside of some helper, by some compiler; None: or not
    shared: bool = False   # a library, and user.c


NO_FRAME = {"gcc": "-fomit-frame-pointer", "clang-19": "-fomit-frame-pointer"}
ROWS = [
    Row("PLAIN", called=True),
    Row("UNDEFINED"), Row("TAIL"), Row("INDEXED"), Row("LOOP"), Row("WRITES"),
    Row("VARIADIC"),
    Row("VECTORS", flags={"gcc": "-mavx -mpreferred-stack-boundary=5",
                          "clang-19": "-mavx -mstack-alignment=32"}),
    Row("SWIFT", compilers=("clang-19",), flags=NO_FRAME, callee="thrower", called=None),
    Row("RESULTS", flags=NO_FRAME, called=True),
    Row("SETJMP", callee="mark"), Row("COPIES_SP"), Row("ADDS_SP"), Row("POPS"),
    Row("FALLS"), Row("NO_ROWS"), Row("WALKS"), Row("HOOKED"),
    Row("INTERPOSED", flags={"gcc": "-fPIC -DNO_MAIN", "clang-19": "-fPIC -DNO_MAIN"},
        shared=True),
]


def inner_callees(out):
    """Whom helpers call that have aligned the stack for it."""
    text = run.must(["objdump", "-dr", "--no-show-raw-insn", out]).decode()
    callees = set()
    for body in re.split(r"\n[0-9a-f]+ <", text)[1:]:
        lines = body.split("\n")
        if not lines[0].startswith("mo_outlined") or not re.search(r"push\s+%rax", lines[1]):
            continue
        for line, target in zip(lines, lines[1:]):
            if re.search(r"\tcall", line):
                names = re.findall(r"PLT32\s+([\w.]+)|<([\w.]+)>", target + line)
                callees.update(filter(None, itertools.chain(*names)))
    return callees


def inner_link(row, folder, made, name):
    out = os.path.join(folder, name)
    if not row.shared:
        run.must(["gcc", "-o", out, made])
        return out
    library = os.path.join(folder, "lib%s.so" % name)
    run.must(["gcc", "-shared", "-o", library, made])
    run.must(["gcc", "-o", out, os.path.join(run.FIXTURES, "programs-inner", "user.c"),
              library, "-Wl,-rpath,$ORIGIN"])
    return out


def inner_row(args, row, folder):
    seen = set()
    for compiler in row.compilers:
        for level in LEVELS[compiler]:
            flags = level.split() + (row.flags or {}).get(compiler, "").split()
            made, out = os.path.join(folder, "a.o"), os.path.join(folder, "out.o")
            run.must([compiler, "-w", "-D" + row.case] + flags + [
                "-c", os.path.join(run.FIXTURES, "programs-inner", "hostile.c"), "-o", made])
            expected = run.run("x86_64", inner_link(row, folder, made, "before"))
            run.outline(args, [made], out, ["--effort=2"] + args.also)
            run.compare(" ".join(["inner", row.case, compiler] + flags), "x86_64", expected,
                        run.run("x86_64", inner_link(row, folder, out, "after")))
            seen |= inner_callees(out)
    if row.called is not None and (row.callee in seen) != row.called:
        raise run.Failed("%s is %scalled from inside of a helper" % (
            row.callee, "not " if row.called else ""))


def inner_cases(args):
    for row in ROWS:
        yield "inner-" + row.case, lambda folder, row=row: inner_row(args, row, folder)


if __name__ == "__main__":
    run.SUITES["inner"] = inner_cases
    sys.exit(run.main(__doc__.split("\n")[0], ["inner"]))
