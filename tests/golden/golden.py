#!/usr/bin/env python3
"""The stages of mo-link, dumped, are what they were.

usage: golden.py --mo-link PATH [--work DIR] [--accept]

For each target a small assembler file (aarch64.s, x86_64.s) and, for each stage that
--dump knows, the accepted text beside it. A change that is meant is accepted with

    tests/golden/golden.py --mo-link build/mo-link --accept

and shows in the diff of the commit.
"""
import argparse
import difflib
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ASSEMBLERS = {"aarch64": "aarch64-linux-gnu-gcc", "x86_64": "gcc"}
STAGES = ["object", "code", "rows", "tokens", "repeats", "candidates", "plan"]


def dump(args, target, stage):
    made = target + ".o"
    subprocess.run([ASSEMBLERS[target], "-c", os.path.join(HERE, target + ".s"), "-o", made],
                   cwd=args.work, check=True)
    return subprocess.run([args.mo_link, "--dump=" + stage, made], cwd=args.work,
                          check=True, stdout=subprocess.PIPE).stdout.decode()


def read(path):
    if not os.path.exists(path):
        return ""
    with open(path) as file:
        return file.read()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mo-link", required=True)
    parser.add_argument("--work", default="/tmp/mo-link-golden")
    parser.add_argument("--accept", action="store_true")
    args = parser.parse_args()
    args.mo_link = os.path.abspath(args.mo_link)
    os.makedirs(args.work, exist_ok=True)
    differ = 0
    for target in ASSEMBLERS:
        for stage in STAGES:
            path = os.path.join(HERE, "%s+%s.txt" % (stage, target))
            found, accepted = dump(args, target, stage), read(path)
            if found == accepted:
                continue
            if args.accept:
                with open(path, "w") as file:
                    file.write(found)
                print("accepted", path)
                continue
            differ += 1
            sys.stdout.writelines(list(difflib.unified_diff(
                accepted.splitlines(True), found.splitlines(True), path, "found"))[:40])
    print("%d of %d dumps differ" % (differ, len(ASSEMBLERS) * len(STAGES)))
    return differ != 0


if __name__ == "__main__":
    sys.exit(main())
