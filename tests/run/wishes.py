#!/usr/bin/env python3
"""What users wish to be left alone is left alone: --keep, --only, --profile and sections
.text.hot. Functions that are must have the bytes that they had, all others may change, and
the program behaves as before.

usage: wishes.py --mo-link PATH --work DIR
"""
import argparse
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, "..", "..", "fixtures", "programs", "trees.c")


def must(command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def functions(path):
    """Size of each function of an object, by name."""
    out = {}
    for line in must(["nm", "-S", "--defined-only", path]).decode().splitlines():
        words = line.split()
        if len(words) == 4 and words[2] in "tTwW" and not words[3].startswith("mo_"):
            out[words[3]] = int(words[1], 16)
    return out


def changed(before, after):
    return {name for name in before if after.get(name) != before[name]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mo-link", required=True)
    parser.add_argument("--work", default="/tmp/mo-link-wishes")
    args = parser.parse_args()
    os.makedirs(args.work, exist_ok=True)
    place = lambda name: os.path.join(args.work, name)
    made, out, failures = place("a.o"), place("out.o"), 0
    must(["gcc", "-O2", "-c", SOURCE, "-o", made])
    before = functions(made)

    def outline(*options, source=made):
        must([args.mo_link, "--outline", "--reruns=2", "-o", out, source] + list(options))
        program = place("program")
        must(["gcc", out, "-o", program])
        same = must([program]) == expected
        return changed(functions(source), functions(out)), same

    must(["gcc", made, "-o", place("plain")])
    expected = must([place("plain")])
    everything, _ = outline()
    names = sorted(everything)
    if len(names) < 4:
        print("only %d functions change: nothing can be seen" % len(names))
        return 1
    half = names[::2]
    with open(place("list.txt"), "w") as text:
        text.write("".join("%s %d\n" % (name, 1000) for name in half))
        text.write("".join("%s 1\n" % name for name in names[1::2]))
    with open(place("perf.txt"), "w") as text:
        text.write("".join("x 1 1.0: 1 cycles: 1234 %s+0x4 (/x)\n" % n for n in half * 300))
        text.write("".join("x 1 1.0: 1 cycles: 1234 %s+0x4 (/x)\n" % n
                           for n in names[1::2]))
    hot = place("hot.o")  # the same object, its code as hot as can be
    must(["objcopy", "--rename-section", ".text=.text.hot", made, hot])
    cases = [
        ("--keep", ["--keep=" + name for name in half], set(half), made),
        ("--only", ["--only=" + name for name in names[1::2]],
         set(before) - set(names[1::2]), made),
        ("--profile, a list", ["--profile=" + place("list.txt")], set(half), made),
        ("--profile, perf", ["--profile=" + place("perf.txt")], set(half), made),
        ("--profile and --fold", ["--profile=" + place("list.txt"), "--fold"], set(half),
         made),
        (".text.hot", [], set(before), hot),
    ]
    for what, options, alone, source in cases:
        touched, same = outline(*options, source=source)
        if touched & alone or not same:
            failures += 1
            print("FAIL %s: changed %s, output %s" % (
                what, sorted(touched & alone), "equal" if same else "differs"))
        if source == made and not touched:
            failures += 1
            print("FAIL %s: nothing changed at all" % what)
    touched, same = outline("--outline-hot", source=hot)
    if touched != everything or not same:
        failures += 1
        print("FAIL --outline-hot: %d functions changed, not %d" % (len(touched),
                                                                   len(everything)))
    print("%d cases, %d failures" % (len(cases) + 1, failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
