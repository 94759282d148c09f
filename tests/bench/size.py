#!/usr/bin/env python3
"""Bytes saved by mo-link and by clang's own machine outliner, side by side in one run.

usage: size.py --mo-link PATH --corpora DIR [--work DIR] [--target NAME]... [PROGRAM]...

DIR is what `tests/corpora.sh DIR sources` leaves. Each program is compiled by clang-19
-Oz twice: without an outliner (A), and with clang's, two re-runs (B). All objects of A
together go through `mo-link --outline --reruns=2`. The table says what B and mo-link save
of A: code bytes, and loaded bytes (code, .eh_frame, .eh_frame_hdr, .gcc_except_table).
"""
import argparse
import glob
import math
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import elfsize  # noqa: E402

OUTLINER = ["-mllvm", "-enable-machine-outliner=always", "-mllvm",
            "-machine-outliner-reruns=2"]
NO_OUTLINER = ["-mllvm", "-enable-machine-outliner=never"]


def one(pattern):
    found = sorted(glob.glob(pattern))
    if not found:
        sys.exit("size.py: nothing matches %s (tests/corpora.sh DIR sources)" % pattern)
    return found[-1]


def lua(corpora, work):
    top = one(corpora + "/src/lua5.4-*/") + "src/"
    # Debian's build makes this header; it holds one macro.
    with open(os.path.join(work, "lua5.4-deb-multiarch.h"), "w") as header:
        header.write('#define DEB_HOST_MULTIARCH "any"\n')
    return [f for f in sorted(glob.glob(top + "*.c")) if not f.endswith("/luac.c")], \
        ["-I" + top, "-I" + work, "-DLUA_USE_LINUX", "-DLUA_COMPAT_5_3"]


def zlib(corpora, _work):
    top = one(corpora + "/src/zlib-*/")
    return sorted(glob.glob(top + "*.c")), ["-I" + top, "-DHAVE_UNISTD_H"]


def mbedtls(corpora, _work):
    top = one(corpora + "/src/mbedtls-*/")
    return sorted(glob.glob(top + "library/*.c")), \
        ["-I" + top + "include", "-I" + top + "library"]


def sqlite3(corpora, work):
    top = os.path.abspath(one(corpora + "/src/sqlite3-*/"))
    made = os.path.join(work, "sqlite-amalgamation")
    if not os.path.exists(os.path.join(made, "shell.c")):
        os.makedirs(made, exist_ok=True)
        quiet = dict(cwd=made, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        subprocess.run([top + "/configure", "--disable-tcl", "--disable-readline"],
                       check=True, **quiet)
        subprocess.run(["make", "sqlite3.c", "shell.c"], check=True, **quiet)
    return [made + "/sqlite3.c", made + "/shell.c"], \
        ["-I" + made, "-DSQLITE_THREADSAFE=1", "-DSQLITE_ENABLE_FTS5",
         "-DSQLITE_ENABLE_RTREE", "-DSQLITE_ENABLE_COLUMN_METADATA"]


PROGRAMS = {"lua": lua, "zlib": zlib, "mbedtls": mbedtls, "sqlite3": sqlite3}


def compile_all(sources, flags, folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)

    def compile_one(source):
        out = os.path.join(folder, os.path.basename(source)[:-2] + ".o")
        subprocess.run(["clang-19", "-Oz", "-w", "-c", source, "-o", out] + flags, check=True)
        return out

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(compile_one, sources))


def loaded(size):
    return size["code"] + size["eh_frame"] + size["eh_frame_hdr"] + size["lsda"]


def percent(part, whole):
    return "%7d %5.2f %%" % (part, 100.0 * part / whole)


def measure(args, target, program):
    sources, flags = PROGRAMS[program](args.corpora, args.work)
    flags = flags + ["--target=%s-linux-gnu" % target]
    folder = os.path.join(args.work, target, program)
    plain = compile_all(sources, flags + NO_OUTLINER, folder + "/plain")
    clang = compile_all(sources, flags + OUTLINER, folder + "/clang")
    out = folder + "/out.o"
    subprocess.run([args.mo_link, "--outline", "--reruns=2"] + args.mo_flags + plain +
                   ["-o", out], check=True)
    sizes = [elfsize.measure(files) for files in (plain, clang, [out])]
    code = [s["code"] for s in sizes]
    load = [loaded(s) for s in sizes]
    saved = [code[0] - code[1], code[0] - code[2]]
    ratio = saved[1] / saved[0] if saved[0] > 0 else float("inf")
    print("%-8s %-8s %8d | %s %s | %s %s | %5.2f" % (
        target, program, code[0], percent(saved[0], code[0]),
        percent(load[0] - load[1], load[0]), percent(saved[1], code[0]),
        percent(load[0] - load[2], load[0]), ratio), flush=True)
    return ratio


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mo-link", required=True)
    parser.add_argument("--corpora", required=True)
    parser.add_argument("--work", default="/tmp/mo-link-size")
    parser.add_argument("--target", action="append")
    parser.add_argument("--mo-flags", type=str.split, default=[])
    parser.add_argument("programs", nargs="*", default=list(PROGRAMS))
    args = parser.parse_args()
    args.work = os.path.abspath(args.work)
    os.makedirs(args.work, exist_ok=True)
    print("%-8s %-8s %8s | %-31s | %-31s | mo/clang" % (
        "target", "program", "code", "clang saves code, loaded", "mo-link saves code, loaded"))
    for target in args.target or ["aarch64", "x86_64"]:
        ratios = [measure(args, target, p) for p in args.programs]
        if all(0 < r < float("inf") for r in ratios):
            mean = math.exp(sum(math.log(r) for r in ratios) / len(ratios))
            print("%-8s geometric mean of mo-link's saving over clang's: %.2f" % (target, mean))


if __name__ == "__main__":
    main()
