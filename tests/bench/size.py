#!/usr/bin/env python3
"""Bytes saved by mo-link and by clang's own machine outliner, side by side in one run.

usage: size.py --mo-link PATH --corpora DIR [--work DIR] [--table NAME]... [--target NAME]...
               [PROGRAM]...

DIR is what `tests/corpora.sh DIR sources` leaves. In every table the objects A of a
program are made without an outliner, and all of them together go through `mo-link
--outline --reruns=2`. B is what the other outliner makes of the same sources. The table
says what B and mo-link save of A: code bytes, and loaded bytes (code, .eh_frame,
.eh_frame_hdr, .gcc_except_table).

  oz           clang -Oz; B: its outliner, two re-runs, one unit at a time
  pac          the same with -mbranch-protection=standard (AArch64)
  lto          the object that a clang -Oz -flto link makes; B: with its outliner
  on-top       A: what clang's outliner left over
  homogeneous  clang -Oz with homogeneous prologues (AArch64)
  gcc-os, gcc-o2   what GCC makes
"""
import argparse
import math
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import corpus  # noqa: E402
import elfsize  # noqa: E402

OUTLINER = ["-enable-machine-outliner=always", "-machine-outliner-reruns=2"]
NO_OUTLINER = ["-enable-machine-outliner=never"]


def llvm(options):
    return [word for option in options for word in ("-mllvm", option)]


class Clang:
    def __init__(self, plain, rival=None, flags=(), targets=("aarch64", "x86_64")):
        self.plain, self.rival, self.flags, self.targets = plain, rival, list(flags), targets

    def build(self, target, program, sources, flags, folder):
        flags = flags + self.flags + ["--target=%s-linux-gnu" % target]
        return [compile_all(["clang-19", "-Oz"], sources, flags + llvm(options),
                            os.path.join(folder, name))
                for name, options in (("plain", self.plain), ("rival", self.rival))
                if options is not None]


class Lto(Clang):
    def build(self, target, program, sources, flags, folder):
        flags = flags + ["-flto", "--target=%s-linux-gnu" % target]
        parts = compile_all(["clang-19", "-Oz"], sources, flags, folder + "/parts")
        # What a program does not show is internal; what it needs of others does not matter.
        shown = ["-e", "main"] if program in corpus.WITH_MAIN else ["-shared", "-Bsymbolic"]
        made = []
        for name, options in (("plain", self.plain), ("rival", self.rival)):
            out = "%s/%s.o" % (folder, name)
            subprocess.run(["/usr/lib/llvm-19/bin/ld.lld", "--lto-obj-path=" + out,
                            "--unresolved-symbols=ignore-all", "-o", out + "ut"] + shown +
                           llvm(options) + parts, check=True)
            made.append([out])
        return made


class Gcc:
    targets = ("aarch64", "x86_64")

    def __init__(self, level):
        self.level = level

    def build(self, target, program, sources, flags, folder):
        command = "%s-linux-gnu-g++" if program in ("tinyxml2", "fmt") else \
            "%s-linux-gnu-gcc"
        return [compile_all([command % target, self.level], sources, flags,
                            folder + "/plain")]


TABLES = {
    "oz": Clang(NO_OUTLINER, OUTLINER),
    "pac": Clang(NO_OUTLINER, OUTLINER, ["-mbranch-protection=standard"], ["aarch64"]),
    "lto": Lto(NO_OUTLINER, OUTLINER),
    "on-top": Clang(OUTLINER),
    "homogeneous": Clang(NO_OUTLINER + ["-homogeneous-prolog-epilog"], targets=["aarch64"]),
    "gcc-os": Gcc("-Os"),
    "gcc-o2": Gcc("-O2"),
}


def compile_all(command, sources, flags, folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)

    def compile_one(source):
        stem = os.path.splitext(os.path.basename(source))[0]
        out = os.path.join(folder, stem + ".o")
        subprocess.run(command + ["-w", "-c", source, "-o", out] + flags, check=True)
        return out

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(compile_one, sources))


def loaded(size):
    return size["code"] + size["eh_frame"] + size["eh_frame_hdr"] + size["lsda"]


def percent(part, whole):
    return "%7d %5.2f %%" % (part, 100.0 * part / whole)


def saving(before, after):
    return "%s %s" % (percent(before["code"] - after["code"], before["code"]),
                      percent(loaded(before) - loaded(after), loaded(before)))


def measure(args, table, target, program):
    sources, flags = corpus.PROGRAMS[program](args.corpora, args.work)
    folder = os.path.join(args.work, table, target, program)
    os.makedirs(folder, exist_ok=True)
    plain, *rival = TABLES[table].build(target, program, sources, flags, folder)
    out = folder + "/out.o"
    subprocess.run([args.mo_link, "--outline", "--reruns=2"] + args.mo_flags + plain +
                   ["-o", out], check=True)
    before, after = elfsize.measure(plain), elfsize.measure([out])
    mine = before["code"] - after["code"]
    other, ratio = "%31s" % "", None
    if rival:
        size = elfsize.measure(rival[0])
        other = saving(before, size)
        theirs = before["code"] - size["code"]
        ratio = mine / theirs if theirs > 0 else math.inf
    print("%-11s %-7s %-8s %8d | %s | %s | %s" % (
        table, target, program, before["code"], other, saving(before, after),
        "" if ratio is None else "%5.2f" % ratio), flush=True)
    return ratio


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mo-link", required=True)
    parser.add_argument("--corpora", required=True)
    parser.add_argument("--work", default="/tmp/mo-link-size")
    parser.add_argument("--table", action="append", choices=list(TABLES))
    parser.add_argument("--target", action="append")
    parser.add_argument("--mo-flags", type=str.split, default=[])
    parser.add_argument("programs", nargs="*", default=list(corpus.PROGRAMS))
    args = parser.parse_args()
    args.work = os.path.abspath(args.work)
    os.makedirs(args.work, exist_ok=True)
    print("%-11s %-7s %-8s %8s | %-31s | %-31s | mo/clang" % (
        "table", "target", "program", "code", "clang saves code, loaded",
        "mo-link saves code, loaded"))
    for table in args.table or ["oz"]:
        for target in args.target or TABLES[table].targets:
            if target not in TABLES[table].targets:
                continue
            ratios = [measure(args, table, target, p) for p in args.programs]
            if all(r is not None and 0 < r < math.inf for r in ratios):
                mean = math.exp(sum(math.log(r) for r in ratios) / len(ratios))
                print("%-11s %-7s geometric mean of mo-link's saving over clang's: %.2f" % (
                    table, target, mean))


if __name__ == "__main__":
    main()
