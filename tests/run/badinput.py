#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Bad input gives one clear line, the right exit status, and leaves no file behind.

usage: badinput.py --mo-link PATH --work FOLDER

Every case runs three times: merging, outlining, and outlining into a directory. Inputs are
made here from small objects of both machines (cut at every 64 bytes, of other classes and
kinds), or are those of fixtures/malformed, whose `expected` says what must be said. Kinds
whose compiler is missing are left out.
"""
import argparse
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
MALFORMED = os.path.normpath(os.path.join(HERE, "..", "..", "fixtures", "malformed"))
SOURCE = """int outer(int); extern int table[];
int f(int x) { return outer(x * 3) + table[x & 7]; }
int g(int x) { return outer(x * 3) + table[x & 3] - outer(x); }"""
MODES = [["-o", "new.o"], ["--outline", "--reruns=2", "-o", "new.o"],
         ["--outline", "-o", "new/"]]

# Name, compiler and flags: objects that are none of ours.
FOREIGN = [
    ("32-bit.o", ["gcc", "-m32", "-c"]),
    ("32-bit-arm.o", ["clang-19", "--target=armv7-linux-gnueabihf", "-c"]),
    ("x32.o", ["gcc", "-mx32", "-c"]),
    ("big-endian.o", ["clang-19", "--target=aarch64_be-linux-gnu", "-c"]),
    ("riscv.o", ["clang-19", "--target=riscv64-linux-gnu", "-c"]),
    ("bitcode.o", ["clang-19", "-flto", "-c"]),
    ("bitcode-thin.o", ["clang-19", "-flto=thin", "-c"]),
    ("assembly.s", ["gcc", "-S"]),
    ("slim.o", ["gcc", "-flto", "-c"]),
    ("slim-arm.o", ["aarch64-linux-gnu-gcc", "-flto", "-c"]),
    ("macho.o", ["clang-19", "--target=arm64-apple-macos", "-c"]),
    ("coff.o", ["clang-19", "--target=x86_64-windows-msvc", "-c"]),
    ("shared.so", ["gcc", "-shared", "-fPIC", "-nostdlib"]),
    ("program", ["gcc", "-static", "-nostdlib", "-Wl,-e,f,--unresolved-symbols=ignore-all"]),
]
ADVICE = {"bitcode.o": "-flto", "bitcode-thin.o": "-flto", "slim.o": "-flto",
          "slim-arm.o": "-flto", "32-bit.o": "32-bit", "32-bit-arm.o": "32-bit",
          "big-endian.o": "big-endian"}

# Command line, exit status, words of the message. No mode is added to these.
LINES = [
    ("a.o -o missing/new.o", 1, "missing/new.o"),
    ("a.o -o missing/new/", 1, "missing/new"),
    ("a.o -o text.o/new.o", 1, "text.o/new.o"),
    ("a.o -o text.o/", 1, "text.o"),
    ("a.o -o a.o", 1, "a.o"),
    ("a.o -o alias.o", 1, "a.o"),
    ("folder/../a.o -o a.o", 1, "a.o"),
    ("--outline --set-name=x a.o -o ./", 1, "a.o"),
    ("a.o b.o -o b.o", 1, "b.o"),
    ("a.o -o new.o -R=json:a.o", 1, "a.o"),
    ("a.o -o new.o -R=json:new.o", 2, "new.o"),
    ("--outline a.o -o new.o -R=json:missing/report", 1, "missing/report"),
    ("--outline a.o -o new.o -R=json:folder", 1, "folder"),
    ("a.o arm.o -o new.o", 1, "arm.o"),
    ("arm.o a.o -o new/", 1, "a.o"),
    ("a.o arm.a -o new.o", 1, "arm.a"),
    ("a.o twice.o -o new.o", 1, "twice.o"),
    ("empty.a -o new.o", 1, "empty.a"),
    ("a.o -o", 2, ""),
    ("a.o", 2, ""),
    ("-o new.o", 2, ""),
    ("--bogus a.o -o new.o", 2, "--bogus"),
    ("--reruns=x --outline a.o -o new.o", 2, "--reruns"),
    ("--reruns=-1 --outline a.o -o new.o", 2, "--reruns"),
    ("--min-saving=0x --outline a.o -o new.o", 2, "--min-saving"),
    ("--dump=nothing a.o", 2, "nothing"),
    ("-R=xml --outline a.o -o new.o", 2, "xml"),
    ("-o new.o -o new2.o a.o", 2, "-o"),
    ("--outline=yes a.o -o new.o", 2, "--outline"),
    ("@missing -o new.o", 2, "missing"),
]


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def compile_to(folder, name, command, source=SOURCE):
    """False when there is no such compiler, or it cannot do that."""
    if not shutil.which(command[0]):
        return False
    write(os.path.join(folder, "source.c"), source.encode())
    done = subprocess.run(command + ["-O2", "source.c", "-o", name], cwd=folder,
                          capture_output=True)
    os.remove(os.path.join(folder, "source.c"))
    return done.returncode == 0


def prepare(folder):
    """Files for LINES, and the objects that the inputs are made from."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(os.path.join(folder, "folder"))
    compile_to(folder, "a.o", ["gcc", "-c"])
    compile_to(folder, "b.o", ["gcc", "-c"], "int b;")
    compile_to(folder, "twice.o", ["gcc", "-c"], "int g(void) { return 1; }")
    compile_to(folder, "arm.o", ["aarch64-linux-gnu-gcc", "-c"])
    os.symlink("a.o", os.path.join(folder, "alias.o"))
    write(os.path.join(folder, "text.o"), b"int main(void) { return 0; }\n")
    for name, parts in ("arm.a", ["arm.o"]), ("good.a", ["a.o", "b.o"]), ("empty.a", []):
        subprocess.run(["ar", "rcs", name] + parts, cwd=folder, check=True)
    subprocess.run(["ar", "rcsT", "thin.a", "a.o", "b.o"], cwd=folder, check=True)


def cuts(folder, name, step):
    """The file without its end, for every multiple of `step`."""
    whole = read(os.path.join(folder, name))
    for size in range(0, len(whole), step):
        yield "cut-%d-%s" % (size, name), whole[:size]


def broken_archives(folder):
    whole = read(os.path.join(folder, "good.a"))
    yield from cuts(folder, "good.a", 64)
    yield "size.a", whole[:8 + 48] + b"9999999999" + whole[8 + 58:]
    yield "number.a", whole[:8 + 48] + b"-12       " + whole[8 + 58:]
    yield "letters.a", whole[:8 + 48] + b"twelve    " + whole[8 + 58:]
    yield "mark.a", whole[:8 + 58] + b"xx" + whole[8 + 60:]
    yield "name.a", whole.replace(b"a.o/  ", b"/99   ")
    yield "thin-missing.a", read(os.path.join(folder, "thin.a")).replace(b"a.o/", b"z.o/")
    member = whole.index(b"\x7fELF")
    yield "member.a", whole[:member + 40] + b"\xff" * 8 + whole[member + 48:]


def malformed():
    """What the reader says, unless the command knows better."""
    better = {"shared.o": "shared library"}
    with open(os.path.join(MALFORMED, "expected")) as file:
        for line in file:
            name, colon, words = line.rstrip("\n").partition(": ")
            if colon and not line.startswith("#"):
                yield name, read(os.path.join(MALFORMED, name)), better.get(name, words)


def inputs(folder):
    """(name, contents, words of the message)"""
    yield from malformed()
    for name in "a.o", "arm.o":
        for cut, data in cuts(folder, name, 64):
            yield cut, data, cut
    for name, data in broken_archives(folder):
        yield name, data, "z.o" if name == "thin-missing.a" else name
    yield "empty.o", b"", "empty.o"
    yield "text2.o", b"hello\n", "text2.o"
    yield "script.so", b"/* GNU ld script */\nINPUT ( x.so )\n", "script"
    for name, command in FOREIGN:
        if compile_to(folder, "made", command):
            data = read(os.path.join(folder, "made"))
            os.remove(os.path.join(folder, "made"))
            yield name, data, ADVICE.get(name, name)


def tree(folder):
    """Every file with its contents: nothing may appear, vanish or change."""
    found = {}
    for path, folders, names in os.walk(folder):
        found[path] = None
        for name in names:
            file = os.path.join(path, name)
            found[file] = read(file)
    return found


def complaint(done, status, words):
    """What is wrong with how the command ended, or None."""
    lines = done.stderr.splitlines()
    if done.returncode != status:
        return "exit status %d, not %d" % (done.returncode, status)
    if len(lines) != 1 or not lines[0].startswith("mo-link: error: "):
        return "not one line that starts with 'mo-link: error: '"
    if words not in lines[0]:
        return "does not say '%s'" % words
    if not lines[0].isprintable():
        return "unprintable characters"
    return "something on standard output" if done.stdout else None


class Checker:
    def __init__(self, args):
        self.mo_link, self.folder = os.path.abspath(args.mo_link), os.path.abspath(args.work)
        self.verbose = args.verbose
        self.cases = self.failures = 0

    def check(self, arguments, status, words):
        before = tree(self.folder)
        done = subprocess.run([self.mo_link] + arguments, cwd=self.folder, text=True,
                              errors="replace", stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=60)
        wrong = complaint(done, status, words)
        after = tree(self.folder)
        if after != before:
            changed = sorted(path for path in before.keys() | after.keys()
                             if before.get(path, 0) != after.get(path, 0))
            wrong = "%s%s appeared or changed" % (wrong + "; " if wrong else "",
                                                  " ".join(changed))
            self.restore(before, after)
        self.cases += 1
        self.failures += wrong is not None
        if wrong or self.verbose:
            print("%s: mo-link %s\n  %s\n  %s" % (
                "FAIL" if wrong else "ok", " ".join(arguments), wrong or "",
                done.stderr.strip()), flush=True)
        return wrong is None

    @staticmethod
    def restore(before, after):
        for path, data in sorted(after.items(), reverse=True):
            if path not in before:
                (os.rmdir if data is None else os.remove)(path)
        for path, data in before.items():
            if data is not None and after.get(path) != data:
                write(path, data)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mo-link", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()
    checker = Checker(args)
    prepare(checker.folder)
    for line, status, words in LINES:
        checker.check(line.split(), status, words)
    for mode in MODES:
        checker.check(["missing.o"] + mode, 1, "missing.o")
        checker.check(["folder"] + mode, 1, "folder")
        checker.check(["a.o", "folder"] + mode, 1, "folder")
    for name, data, words in list(inputs(checker.folder)):
        path = os.path.join(checker.folder, name)
        write(path, data)
        # A second mode says nothing new when the first went wrong.
        all(checker.check([name] + mode, 1, words) for mode in MODES)
        os.remove(path)
    print("%d cases, %d failed" % (checker.cases, checker.failures))
    return 1 if checker.failures else 0


if __name__ == "__main__":
    sys.exit(main())
