#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Time and memory of mo-link beside those of lld and of LLVM's own outliner, in one run.

usage: speed.py --mo-link PATH --suffixtree-bench PATH --corpora DIR [--work DIR]
                [--target NAME]... [tree|tool|llvm]...

tree  the suffix tree on made-up strings of growing size, and on the tokens of archives
tool  `mo-link --outline --reruns=2` on one processor and on all, and one round of it,
      verified, on more and more archives merged into one object, next to `ld.lld -r` on the
      same files; at the end how the time grows with the code
llvm  the MachineOutliner pass of llc (two re-runs) on the linked bitcode of whole programs,
      next to mo-link on the object that llc makes without it (wants the corpora's sources)

Seconds are those of processors (user and system, of all threads): others may be using
them. Where more than one works on it, seconds by the clock say more: the column "clock" is
worth something on a machine that does nothing else. MB are 1000000 bytes of code, as input.
The best of --repeat runs counts. MB/s is that of the seconds to its left.
"""
import argparse
import array
import math
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import elfsize  # noqa: E402
import size  # noqa: E402

TRIPLES = {"x86_64": ("amd64", "x86_64-linux-gnu"), "aarch64": ("arm64", "aarch64-linux-gnu")}
NAMES = {"x86_64": ["lua5.4", "sqlite3", "m-2.36", "c", "stdc++", "crypto"],
         "aarch64": ["lua5.4", "sqlite3", "m", "c", "stdc++", "crypto"]}


# A process counts the memory of the one that it was forked from, until it has more of its
# own; so a small one starts the command.
STARTER = """import os, sys, time
start = time.monotonic()
child = os.fork()
if child == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(child, 0)
print("USAGE", usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024,
      time.monotonic() - start)
sys.exit(os.waitstatus_to_exitcode(status) & 127)
"""


class Run:
    """One finished command: seconds of processor time, peak memory in MB, seconds by the
    clock."""

    def __init__(self, command):
        done = subprocess.run([sys.executable, "-S", "-E", "-c", STARTER] + command,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.ok = done.returncode == 0
        self.text, _, usage = done.stdout.rpartition("USAGE ")
        self.seconds, self.memory, self.clock = map(float, usage.split())


def best(command, repeat):
    runs = [Run(command) for _ in range(repeat)]
    found = min(runs, key=lambda run: run.seconds)
    found.clock = min(run.clock for run in runs)
    return found


def archives(args, target):
    arch, triple = TRIPLES[target]
    top = os.path.join(args.corpora, arch, "usr", "lib")
    for name in NAMES[target]:
        folder = os.path.join(top, "gcc", triple, "12") if name == "stdc++" else \
            os.path.join(top, triple)
        yield name, os.path.join(folder, "lib%s.a" % name)


# --- tree ---------------------------------------------------------------------------------


def tokens(args, files):
    """The token string of the first round. Separators, all different, get new numbers."""
    dump = subprocess.run([args.mo_link, "--dump=tokens", "--whole-archive"] + files,
                          check=True, capture_output=True, text=True).stdout
    values, fresh = array.array("I"), 1 << 31
    for line in dump.splitlines():
        word = line.split(None, 2)[1]
        fresh += word == "separator"
        values.append(fresh if word == "separator" else int(word))
    return values


def tree(args):
    print("suffix tree, made-up strings (bytes: the peak of tree and result)")
    print(Run([args.suffixtree_bench, str(args.largest)]).text)
    for target in args.target:
        files, strings = [], []
        for name, archive in archives(args, target):
            files.append(archive)
            strings.append(os.path.join(WORK, "tokens-%s-%s" % (target, name)))
            with open(strings[-1], "wb") as out:
                tokens(args, files).tofile(out)
        print("suffix tree, %s tokens of the archives %s, one by one more" % (
            target, " ".join(NAMES[target])))
        print(Run([args.suffixtree_bench, "-f"] + strings).text, flush=True)


# --- tool ---------------------------------------------------------------------------------


def cell(run, code):
    if not run.ok:
        return "%8s %8s %8s" % ("failed", "", "")
    return "%8.2f %8.2f %8.0f" % (run.seconds, code / run.seconds, run.memory)


def growth(sizes, seconds):
    """The exponent of the power that fits best: 1 is linear."""
    points = [(math.log(x), math.log(y)) for x, y in zip(sizes, seconds)]
    if not points:
        return math.nan
    mean_x, mean_y = (sum(axis) / len(points) for axis in zip(*points))
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 1.0


def clock_cell(run, code):
    return "%8.2f %8.2f" % (run.clock, code / run.clock) if run.ok else "%17s" % ""


def tool(args):
    titles = " | ".join("%-26s" % title for title in (
        "two re-runs, -j1", "one round, -j1", "merge only", "ld.lld -r"))
    for target in args.target:
        print("%-8s %8s | %s | lld/mo | two re-runs, all -j" % (target, "MB code", titles))
        print("%-8s %8s | %s |        | %8s %8s" % ("", "", " | ".join(
            ["%8s %8s %8s" % ("s", "MB/s", "peak MB")] * 4), "clock", "MB/s"))
        files, failures, sizes, seconds = [], [], [], []
        for name, archive in archives(args, target):
            files.append(archive)
            code = elfsize.measure(files)["code"] / 1e6
            out = os.path.join(WORK, "out.o")
            merge = [args.mo_link, "--whole-archive"] + files + ["-o", out]
            runs = [best(command, args.repeat) for command in (
                merge + ["--outline", "--reruns=2", "-j1"], merge + ["--outline", "-j1"],
                merge, [args.lld, "-r", "--whole-archive"] + files + ["-o", out],
                merge + ["--outline", "--reruns=2"])]
            failures += [run.text for run in runs if not run.ok]
            print("%-8s %8.2f | %s | %6.2f | %s" % (
                "+" + name, code, " | ".join(cell(run, code) for run in runs[:4]),
                runs[3].seconds / runs[0].seconds, clock_cell(runs[4], code)), flush=True)
            if runs[0].ok:
                sizes.append(code)
                seconds.append(runs[0].seconds)
        print("seconds (two re-runs, -j1) grow as MB of code to the power of %.2f" %
              growth(sizes, seconds))
        for text in sorted(set(failures)):
            print("failed: " + text.strip())
        print()


# --- llvm ---------------------------------------------------------------------------------


def bitcode(args, target, program):
    """The program as one module, as link-time optimisation sees it."""
    sources, flags = size.PROGRAMS[program](args.corpora, WORK)
    folder = os.path.join(WORK, "bitcode", target, program)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    made = []
    for source in sources:
        made.append(os.path.join(folder, os.path.basename(source)[:-2] + ".bc"))
        subprocess.run(["clang-19", "-Oz", "-w", "-emit-llvm", "-c", source, "-o", made[-1],
                        "--target=%s-linux-gnu" % target] + flags, check=True)
    whole = os.path.join(folder, "whole.bc")
    # Two main() functions in one program (sqlite3's shell is part of it) would not link.
    subprocess.run(["llvm-link-19"] + made + ["-o", whole], check=True)
    return whole


def outliner_seconds(report):
    """User and system seconds of all runs of the pass, from -time-passes."""
    found = re.findall(r"^((?:\s+[0-9.]+ \([^)]*\))+)\s.*Machine Outliner", report, re.M)
    return max((float(line.split("(")[2].split(")")[1]) for line in found), default=0.0)


def llvm_one(args, target, program):
    whole = bitcode(args, target, program)
    plain = whole[:-3] + ".o"
    base = ["llc-19", "-O2", "-filetype=obj", "-function-sections", whole]
    subprocess.run(base + ["-enable-machine-outliner=never", "-o", plain], check=True)
    code = elfsize.measure([plain])["code"] / 1e6
    report = Run(base + ["-enable-machine-outliner=always", "-machine-outliner-reruns=2",
                         "-time-passes", "-o", plain + ".outlined"])
    mine = best([args.mo_link, "--outline", "--reruns=2", plain, "-o", plain + ".mo"],
                args.repeat)
    theirs = outliner_seconds(report.text)
    if not mine.ok or not report.ok or theirs == 0:
        print("%-8s %-8s failed: %s" % (target, program, (mine.text or report.text)[:500]))
        return
    print("%-8s %-8s %8.2f | %8.2f %8.2f %8.0f | %s | %6.1f" % (
        target, program, code, theirs, code / theirs, report.memory, cell(mine, code),
        theirs / mine.seconds), flush=True)


def llvm(args):
    print("%-8s %-8s %8s | %-26s | %-26s | llvm/mo" % (
        "target", "program", "MB code", "the pass alone (llc's peak)",
        "mo-link, two re-runs, all"))
    print("%-8s %-8s %8s | %8s %8s %8s | %8s %8s %8s |" % (
        ("", "", "") + ("s", "MB/s", "peak MB") * 2))
    for target in args.target:
        for program in args.programs:
            llvm_one(args, target, program)
    print()


KINDS = {"tree": tree, "tool": tool, "llvm": llvm}


def main():
    global WORK
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mo-link", required=True)
    parser.add_argument("--suffixtree-bench", required=True)
    parser.add_argument("--corpora", required=True)
    parser.add_argument("--work", default="/tmp/mo-link-speed")
    parser.add_argument("--target", action="append", choices=list(TRIPLES))
    parser.add_argument("--programs", nargs="*", default=["lua", "sqlite3"])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--largest", type=int, default=4000000)
    parser.add_argument("--lld", default="ld.lld-19")
    parser.add_argument("kinds", nargs="*", default=list(KINDS))
    args = parser.parse_args()
    args.target = args.target or list(TRIPLES)
    WORK = os.path.abspath(args.work)
    os.makedirs(WORK, exist_ok=True)
    for kind in args.kinds:
        KINDS[kind](args)


if __name__ == "__main__":
    sys.exit(main())
