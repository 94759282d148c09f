#!/usr/bin/env python3
"""The Python interpreter, made of Debian's outlined libpython3.11.a, passes its own tests.

usage: python.py --mo-link PATH --corpora DIR [--work DIR] [--only x86_64|aarch64]

Natively the interpreter loads the modules of Debian's packages; AArch64's is linked
statically, has no such modules, and passes fewer tests under qemu-aarch64. Everything is on:
folding, packing, sections .text.hot (half of the code: Debian builds with a profile). Wants
`tests/corpora.sh DIR python`.
"""
import argparse
import os
import re
import signal
import subprocess
import sys

OPTIONS = ["--outline", "--reruns=2", "--fold", "--drop-alignment", "--outline-hot", "-R"]
MAIN = "int Py_BytesMain(int, char **);\nint main(int c, char **v) { return Py_BytesMain(c, v); }\n"
TARGETS = {
    "x86_64": ("amd64", "x86_64-linux-gnu", ["gcc", "-no-pie", "-rdynamic"], [],
               "test_grammar test_json test_re test_collections test_exceptions "
               "test_generators test_unittest test_dict test_list test_set test_struct"),
    "aarch64": ("arm64", "aarch64-linux-gnu", ["aarch64-linux-gnu-gcc", "-static"],
                ["qemu-aarch64", "-cpu", "max"],
                "test_grammar test_generators test_dict test_list test_set"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mo-link", required=True)
    parser.add_argument("--corpora", required=True)
    parser.add_argument("--work", default="/tmp/mo-link-python")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    corpora, work = os.path.abspath(args.corpora), os.path.abspath(args.work)
    library = os.path.join(corpora, "amd64", "usr", "lib", "python3.11")
    if not os.path.exists(os.path.join(library, "test", "test_grammar.py")):
        print("no python packages in %s" % corpora)
        return 77
    # Who is started in the background ignores interruptions, and so do its children; but
    # test_generators interrupts itself.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    failures = 0
    for target, (root, triple, link, runner, tests) in TARGETS.items():
        if args.only not in target:
            continue
        prefix = os.path.join(work, target)
        os.makedirs(os.path.join(prefix, "bin"), exist_ok=True)
        os.makedirs(os.path.join(prefix, "lib"), exist_ok=True)
        place = os.path.join(prefix, "lib", "python3.11")
        if not os.path.lexists(place):
            os.symlink(library, place)
        source, made, out = (os.path.join(prefix, n) for n in ("main.c", "main.o", "out.o"))
        with open(source, "w") as text:
            text.write(MAIN)
        libraries = os.path.join(corpora, root, "usr", "lib", triple)
        archive = os.path.join(libraries, "libpython3.11.a")
        subprocess.run(link[:1] + ["-O2", "-c", source, "-o", made], check=True)
        report = subprocess.run([args.mo_link] + OPTIONS + ["--whole-archive", archive, made,
                                                            "-o", out],
                                check=True, stdout=subprocess.PIPE).stdout.decode()
        print(target, re.search(r"^  code .*$", report, re.M).group(0).strip(), flush=True)
        program = os.path.join(prefix, "bin", "python3.11")
        subprocess.run(link + ["-o", program, out, "-L" + libraries, "-lexpat", "-lz", "-lm",
                               "-ldl", "-lutil", "-lpthread"], check=True,
                       stderr=subprocess.DEVNULL)
        done = subprocess.run(runner + [program, "-m", "test"] + tests.split(),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              cwd=prefix, env={
                                  "PATH": os.environ["PATH"],
                                  # the library's own machine, whose tree serves both
                                  "_PYTHON_SYSCONFIGDATA_NAME":
                                      "_sysconfigdata__x86_64-linux-gnu"})
        said = done.stdout.decode(errors="replace")
        wanted = "All %d tests OK." % len(tests.split())
        if done.returncode != 0 or wanted not in said:
            failures += 1
            print("FAIL %s\n%s" % (target, said[-3000:]))
        else:
            print("%s: %s" % (target, wanted), flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
