#!/usr/bin/env python3
"""Calls that may be made from inside of helpers are those that inner_calls*.s say.

usage: inner_calls.py --mo-link PATH [--work DIR]

Each call in these files has a comment, "# inner" or "# not: why". They are compared,
in the order in which they stand in their sections, with what --dump=code finds.
"""
import argparse
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def wanted(path):
    """By section, (line number, is inner) of each call."""
    calls, section = {}, ".text"
    with open(path) as file:
        for number, line in enumerate(file, 1):
            words = line.split()
            if words[:1] == [".text"]:
                section = ".text"
            elif words[:1] == [".section"]:
                section = words[1].split(",")[0]
            elif re.match(r"(\w+:)?\s+call\s", line):
                said = re.search(r"# (inner|not:)", line)
                if not said:
                    sys.exit("line %d says nothing" % number)
                calls.setdefault(section, []).append((number, said.group(1) == "inner"))
    return calls


def found(dump):
    calls, section = {}, None
    for line in dump.splitlines():
        words = line.split()
        if words[:1] == ["code"]:
            section = words[2]
        elif re.match(r" {4,}[0-9a-f]+ [0-9a-f]+ (call|call-indirect)\b", line):
            calls.setdefault(section, []).append("inner" in words)
    return calls


def compare(mo_link, name, work):
    source, made = os.path.join(HERE, name), os.path.join(work, name + ".o")
    subprocess.run(["gcc", "-c", source, "-o", made], check=True)
    dump = subprocess.run([mo_link, "--effort=2", "--dump=code", made], check=True,
                          stdout=subprocess.PIPE).stdout.decode()
    wants, has, bad = wanted(source), found(dump), 0
    for section, calls in wants.items():
        seen = has.get(section, [])
        if len(seen) != len(calls):
            sys.exit("%s: %s has %d calls, not %d" % (name, section, len(seen), len(calls)))
        for (number, inner), finds in zip(calls, seen):
            if inner != finds:
                bad += 1
                print("%s:%d: %s" % (name, number, "inner" if finds else "not inner"))
    print("%s: %d calls, %d wrong" % (name, sum(map(len, wants.values())), bad))
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mo-link", required=True)
    parser.add_argument("--work", default="/tmp/mo-link-inner-calls")
    args = parser.parse_args()
    os.makedirs(args.work, exist_ok=True)
    mo_link = os.path.abspath(args.mo_link)
    return sum(compare(mo_link, name, args.work)
               for name in ("inner_calls.s", "inner_calls_pic.s")) != 0


if __name__ == "__main__":
    sys.exit(main())
