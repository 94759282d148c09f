#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Rust for x86-64: a library made smaller by itself, and a program with all of std.

Panics pass through helpers and find their destructors and handlers; with -C panic=abort
they end the program as before. By each rustc that is installed. Options as in run.py.
"""
import itertools
import os
import shutil
import sys

import run

def rust_compilers():
    found = {p for p in ("/usr/bin/rustc", shutil.which("rustc")) if p and os.path.exists(p)}
    return sorted(found)


def rust_program(rustc, flags, folder, shapes, out):
    run.must([rustc, os.path.join(run.FIXTURES, "programs-rust", "main.rs"), "-A", "warnings",
          "--extern", "shapes=" + shapes, "-o", out] + flags)
    return run.run("x86_64", out)


def rust_library(args, rustc, flags, folder):
    """A crate as a library: made smaller as it is, with what rustc keeps beside objects."""
    made, small = os.path.join(folder, "libshapes.rlib"), os.path.join(folder, "small")
    run.must([rustc, os.path.join(run.FIXTURES, "programs-rust", "shapes.rs"), "--crate-type", "rlib",
          "--crate-name", "shapes", "-o", made] + flags)
    before = rust_program(rustc, flags, folder, made, os.path.join(folder, "before"))
    for work, _ in run.works(args, folder):
        run.must([args.mo_link] + work + [made, "-o", small + "/"])
        after = rust_program(rustc, flags, folder, os.path.join(small, "libshapes.rlib"),
                             os.path.join(folder, "after"))
        run.compare("%s (%s)" % (folder, " ".join(work)), "x86_64", before, after)
    if "--outline" in work and not run.has_helpers("x86_64", os.path.join(folder, "after")):
        raise run.Failed("nothing was outlined")


def rust_whole(args, rustc, flags, folder):
    """The program and all of Rust's standard library as one object."""
    made, whole = os.path.join(folder, "main.o"), os.path.join(folder, "libwhole.a")
    shapes = os.path.join(folder, "libshapes.rlib")
    run.must([rustc, os.path.join(run.FIXTURES, "programs-rust", "shapes.rs"), "--crate-type", "rlib",
          "--crate-name", "shapes", "-o", shapes] + flags)
    run.must([rustc, os.path.join(run.FIXTURES, "programs-rust", "main.rs"), "-A", "warnings",
          "--crate-type", "staticlib", "--cfg", "whole", "--extern", "shapes=" + shapes,
          "-o", whole] + flags)
    run.must(["gcc", "-O2", "-c", os.path.join(run.FIXTURES, "programs-rust", "main.c"), "-o", made])
    run.check(args, folder, "x86_64", folder, [made, whole], [made, whole],
          ["-lpthread", "-ldl", "-lm"])


RUST_FLAGS = [["-Copt-level=2"], ["-Copt-level=z"], ["-Copt-level=0", "-g"],
              ["-Copt-level=2", "-Cpanic=abort"], ["-Copt-level=s", "-Clto=fat"]]


def rust_cases(args):
    """Rust for x86-64, by Debian's compiler and by the one that is used here."""
    for rustc, flags in itertools.product(rust_compilers(), RUST_FLAGS):
        for how in (rust_library, rust_whole):
            if "-Clto=fat" in flags and how == rust_library:
                continue  # such a library holds no machine code
            version = run.must([rustc, "--version"]).split()[1].decode()
            name = "%s-%s%s" % (how.__name__.replace("_", "-"), version, "".join(flags))

            def case(folder, rustc=rustc, flags=flags, how=how):
                how(args, rustc, flags, folder)

            yield name, case


if __name__ == "__main__":
    run.SUITES["rust"] = rust_cases
    sys.exit(run.main(__doc__.split("\n")[0], ["rust"]))
