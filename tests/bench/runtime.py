#!/usr/bin/env python3
"""Instructions executed before and after outlining, without and with a profile.

usage: runtime.py --mo-link PATH --corpora DIR [--work DIR] [--only SUBSTRING] [--most PERCENT]

The workloads of fixtures/demo on Debian's libsqlite3.a, liblua5.4.a and libz.a, each linked
with the library as one object. Native instructions are counted by valgrind (callgrind),
AArch64's by a plugin for qemu-aarch64 (insns.c). The profile is a list of functions with the
instructions that the program as it was executed in each. Everything counts, the C library
too. With --most it fails when a program with a profile executes so much more.
"""
import argparse
import bisect
import collections
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
DEMO = os.path.join(HERE, "..", "..", "fixtures", "demo")
TARGETS = {"aarch64": ("arm64", "aarch64-linux-gnu", "aarch64-linux-gnu-gcc",
                       "aarch64-linux-gnu-nm"),
           "x86_64": ("amd64", "x86_64-linux-gnu", "gcc", "nm")}
WORKLOADS = [("sqlite", "sqldemo.c", "libsqlite3.a", ["2000"], []),
             ("lua", "luademo.c", "liblua5.4.a", [os.path.join(DEMO, "suite.lua")],
              ["lua5.4"]),
             ("zlib", "zdemo.c", "libz.a", ["60"], [])]


def must(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
    if done.returncode != 0:
        sys.exit("%s\n%s" % (" ".join(command), done.stderr.decode(errors="replace")))
    return done.stdout


def functions_of(nm, program):
    """Start addresses, and (end, name) of each, of a program's functions."""
    found = {}
    for line in must([nm, "-S", "--defined-only", program]).decode().splitlines():
        words = line.split()
        if len(words) == 4 and words[2] in "tTwWiI":
            start = int(words[0], 16)
            found[start] = (start + int(words[1], 16), words[3])
    starts = sorted(found)
    return starts, found


def count_aarch64(args, program, arguments):
    out = os.path.join(args.work, "insns.txt")
    text = must(["qemu-aarch64", "-cpu", "max", "-plugin", "%s,out=%s" % (args.plugin, out),
                 program] + arguments)
    starts, found = functions_of(TARGETS["aarch64"][3], program)
    counts = collections.Counter()
    with open(out) as lines:
        total = int(next(lines).split()[1])
        for line in lines:
            address, count = line.split()
            at = bisect.bisect_right(starts, int(address, 16)) - 1
            if at >= 0 and int(address, 16) < found[starts[at]][0]:
                counts[found[starts[at]][1]] += int(count)
    return text, total, counts


def count_x86_64(args, program, arguments):
    out = os.path.join(args.work, "callgrind.out")
    text = must(["valgrind", "--tool=callgrind", "--callgrind-out-file=" + out, program] +
                arguments)
    counts, total = collections.Counter(), 0
    listing = must(["callgrind_annotate", "--threshold=100", out]).decode(errors="replace")
    for line in listing.splitlines():
        match = re.match(r"\s*([\d,]+)\s*\([^)]*\)\s+(.*)$", line)
        if not match:
            continue
        number = int(match.group(1).replace(",", ""))
        if match.group(2).startswith("PROGRAM TOTALS"):
            total = number
        else:
            name = re.sub(r" \[[^]]*\]$", "", match.group(2)).rsplit(":", 1)[-1]
            counts[name.split("'")[0]] += number
    return text, total, counts


COUNT = {"aarch64": count_aarch64, "x86_64": count_x86_64}


def measure(args, target, workload):
    name, source, library, arguments, include = workload
    root, triple, cc, _ = TARGETS[target]
    top = os.path.join(args.corpora, root, "usr")
    archive = os.path.join(top, "lib", triple, library)
    headers = []
    for part in include + [triple, ""]:
        headers += ["-idirafter", os.path.join(top, "include", part)]
    place = lambda what: os.path.join(args.work, "%s-%s-%s" % (target, name, what))
    made, profile = place("main.o"), place("profile.txt")
    must([cc, "-O2", "-c"] + headers + [os.path.join(DEMO, source), "-o", made])

    def build(what, objects):
        must([cc, "-static", "-o", place(what)] + objects + ["-lm", "-ldl", "-lpthread"])
        return COUNT[target](args, place(what), arguments)

    before, total, counts = build("before", [made, archive])
    with open(profile, "w") as text:
        for function, count in counts.most_common():
            if not re.search(r"\s", function):
                text.write("%s %d\n" % (function, count))
    row = [target, name, total]
    for what, options in (("without", []), ("with", ["--profile=" + profile])):
        out = place(what + ".o")
        report = must([args.mo_link, "--outline", "--reruns=2", "-R", made, archive, "-o",
                       out] + options).decode()
        saved = re.search(r"^  code .* ([-\d.]+) %$", report, re.M).group(1)
        after, now, _ = build(what, [out])
        if after != before:
            sys.exit("%s %s %s: behaves differently" % (target, name, what))
        row += [float(saved), 100.0 * (now - total) / total]
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mo-link", required=True)
    parser.add_argument("--corpora", required=True)
    parser.add_argument("--work", default="/tmp/mo-link-runtime")
    parser.add_argument("--only", default="")
    parser.add_argument("--most", type=float)
    args = parser.parse_args()
    os.makedirs(args.work, exist_ok=True)
    args.plugin = os.path.join(os.path.abspath(args.work), "insns.so")
    must(["gcc", "-O2", "-shared", "-fPIC", os.path.join(HERE, "insns.c"), "-o",
          args.plugin])
    print("| | instructions | code saved | executed | with profile: code saved | executed |")
    print("|---|---|---|---|---|---|")
    worst = 0.0
    for target in TARGETS:
        for workload in WORKLOADS:
            if args.only not in target + "-" + workload[0]:
                continue
            target, name, total, saved, slower, saved_hot, slower_hot = measure(
                args, target, workload)
            worst = max(worst, slower_hot)
            print("| %s %s | %d | %.2f %% | %+.2f %% | %.2f %% | %+.2f %% |" % (
                target, name, total, saved, slower, saved_hot, slower_hot), flush=True)
    if args.most is not None and worst > args.most:
        sys.exit("with a profile at most %.2f %% more should be executed" % args.most)


if __name__ == "__main__":
    main()
