#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The same inputs give the same bytes: again, in another folder, in another order of work.

usage: same.py --mo-link PATH --work FOLDER

For both machines, with gcc and clang, over all of fixtures/programs:
  - a second run, and a run on copies in a folder with a longer name, write the same bytes
    on any number of processors: one object, a directory, an archive in a directory, the
    JSON report;
  - objects compiled with -g give the same code sections as without, with --strip-debug
    and without;
  - a run on the own output works.
Compilers that are missing are left out.
"""
import argparse
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import elf  # noqa: E402

PROGRAMS = os.path.normpath(os.path.join(HERE, "..", "..", "fixtures", "programs"))
COMPILERS = {
    "gcc": ["gcc"],
    "arm-gcc": ["aarch64-linux-gnu-gcc"],
    "clang": ["clang-19", "--target=x86_64-linux-gnu"],
    "arm-clang": ["clang-19", "--target=aarch64-linux-gnu"],
}


def run(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit("in %s: %s\n%s" % (folder, " ".join(command), done.stderr))


def compile_all(compiler, folder, flags):
    """All programs as objects; each has a main() of its own, so that gets other names."""
    os.makedirs(folder)
    made = []
    for name in sorted(os.listdir(PROGRAMS)):
        out = name.replace(".c", ".o")
        run(compiler + ["-w", "-Dmain=main_" + name[:-2], "-c",
                        os.path.join(PROGRAMS, name), "-o", out] + flags, folder)
        made.append(out)
    run(["ar", "rcsD", "all.a"] + made, folder)
    return made


def tree(folder):
    found = {}
    for path, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(path, name), "rb") as file:
                found[os.path.relpath(os.path.join(path, name), folder)] = file.read()
    return found


def outline(args, objects, folder, extra=()):
    """All kinds of output that there are."""
    base = [args.mo_link, "--outline", "--reruns=2", *extra]
    run(base + objects + ["-o", "out.o", "-R=json:report.json"], folder)
    run(base + objects + ["-o", "out/"], folder)
    run(base + ["all.a", "-o", "archive/"], folder)
    run([args.mo_link, "--outline", "--reruns=2", "out.o", "-o", "second.o"], folder)


def code(path):
    """What is executed, and where the relocations in it lie. Their symbols have other
    numbers when there is debug information."""
    (_, image), = elf.images(path)
    thing = elf.Object(image)
    return [(s.name, s.data, [(r[0], r[1], thing.symbols[r[2]].name) for r in s.relocs])
            for s in thing.sections if s.is_code()]


def differences(before, after):
    return sorted(name for name in before.keys() | after.keys()
                  if before.get(name) != after.get(name))


def check(args, name, level):
    """Complaints about one compiler and level."""
    compiler, found = COMPILERS[name], []
    top = os.path.join(args.work, name + level)
    here, again = os.path.join(top, "a"), os.path.join(top, "again")
    there = os.path.join(top, "another-folder-with-a-longer-name", "b")
    objects = compile_all(compiler, here, [level])
    shutil.copytree(here, again)
    shutil.copytree(here, there)
    for folder, jobs in ((here, "-j1"), (again, "-j2"), (there, "-j5")):
        outline(args, objects, folder, [jobs])
    for folder in (again, there):
        for file in differences(tree(here), tree(folder)):
            found.append("%s differs between %s and %s" % (file, here, folder))
    debug, kept = os.path.join(top, "debug"), os.path.join(top, "kept")
    compile_all(compiler, debug, [level, "-g"])
    shutil.copytree(debug, kept)
    outline(args, objects, kept)
    for folder in (debug, again):
        outline(args, objects, folder, ["--strip-debug"])
    for file in ["out.o", "second.o"] + ["out/" + o for o in objects]:
        for folder in (debug, kept):
            if code(os.path.join(folder, file)) != code(os.path.join(again, file)):
                found.append("%s: -g changes the code of %s" % (folder, file))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mo-link", required=True)
    parser.add_argument("--work", required=True)
    args = parser.parse_args()
    args.mo_link, args.work = os.path.abspath(args.mo_link), os.path.abspath(args.work)
    shutil.rmtree(args.work, ignore_errors=True)
    names = [n for n, command in COMPILERS.items() if shutil.which(command[0])]
    found = [complaint for n in names for level in ("-O2", "-Os")
             for complaint in check(args, n, level)]
    for complaint in found:
        print("FAIL " + complaint)
    print("%d compilers, %d complaints" % (len(names), len(found)))
    return 1 if found or not names else 0


if __name__ == "__main__":
    sys.exit(main())
