#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `cmake --install` and `cpack` bring along serves: the linker step by CMake and
pkg-config, the library, the manual, completions.

usage: package.py --build FOLDER --work FOLDER
"""
import argparse
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys

PROGRAM = """int g(int, int); int h(int);
int g(int a, int b) { return a * 3 ^ b; }
int h(int a) { return a * 7 + 1; }
#define F(i) int f##i(volatile int *p, int x) { int a = g(x, i), b = h(a + i * 7); \\
    p[0] = a * 3 + b; p[1] = b + 7; p[2] = a ^ b; p[3] = a - b; return h(p[0]) + g(a, b); }
F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8)
int main(void) { int p[4] = {0}; return (f1(p, 1) + f2(p, 2) + f3(p, 3) + f4(p, 4) +
    f5(p, 5) + f6(p, 6) + f7(p, 7) + f8(p, 8)) & 63; }
"""
LIBRARY_USER = """#include "mo/arena.h"
#include "mo/options.h"
#include <stdio.h>
int main(void)
{
    struct arena *session = arena_new();
    fputs(options_help(session), stdout);
    arena_free(session);
    return 0;
}
"""
PROJECT = """cmake_minimum_required(VERSION 3.18)
project(user C)
find_package(mo-link 0.1 REQUIRED)
set(CMAKE_C_FLAGS "-Os -fno-inline")
add_executable(plain program.c)
add_executable(outlined program.c)
mo_link_outline(outlined)
add_executable(asks asks.c)
target_link_libraries(asks mo-link::mo)
add_custom_command(TARGET plain POST_BUILD COMMAND mo-link::mo-link --version)
"""


def run(command, folder, status=0, **more):
    result = subprocess.run(command, cwd=folder, text=True, capture_output=True, **more)
    assert result.returncode == status, (command, result.returncode, result.stdout,
                                         result.stderr)
    return result.stdout


def holds_helpers(path):
    return "mo_outlined" in run(["nm", "-a", path], ".")


def check_tree(prefix, work):
    """Everything of use, from the installed tree alone."""
    os.makedirs(work)
    for name, text in ("program.c", PROGRAM), ("asks.c", LIBRARY_USER), \
            ("CMakeLists.txt", PROJECT):
        with open(os.path.join(work, name), "w") as file:
            file.write(text)
    tool = os.path.join(prefix, "bin", "mo-link")
    said = run([tool, "--help"], work)

    run(["cmake", "-S", ".", "-B", "b", f"-DCMAKE_PREFIX_PATH={prefix}"], work)
    run(["cmake", "--build", "b"], work)
    plain, outlined = (os.path.join(work, "b", name) for name in ("plain", "outlined"))
    assert holds_helpers(outlined) and not holds_helpers(plain)
    assert [subprocess.run([path]).returncode for path in (plain, outlined)] == \
        [subprocess.run([plain]).returncode] * 2
    assert run([os.path.join(work, "b", "asks")], work) == said

    folder = os.path.dirname(glob.glob(os.path.join(
        prefix, "**", "pkgconfig", "mo-link.pc"), recursive=True)[0])
    environment = dict(os.environ, PKG_CONFIG_PATH=folder)
    ask = lambda *words: shlex.split(run(["pkg-config", *words, "mo-link"], work, env=environment))
    run(["gcc", "asks.c", *ask("--cflags", "--libs"), "-o", "asks"], work)
    assert run(["./asks"], work) == said
    [linker] = ask("--variable=linkerdir")
    run(["gcc", "-Os", "-fno-inline", "program.c", "-B", linker, "-o", "by-b"], work)
    assert holds_helpers(os.path.join(work, "by-b"))
    run([tool, "-run", "gcc", "-Os", "-fno-inline", "program.c", "-o", "by-run"], work)
    assert holds_helpers(os.path.join(work, "by-run"))

    # The manual names every option, and so does the completion.
    options = re.findall(r"^  (?:-\w, )?(--[a-z-]+)", said, re.M)
    assert "--outline" in options and len(options) > 20
    for page in "mo-link.1", "mo-link-bisect.1":
        with open(os.path.join(prefix, "share/man/man1", page)) as file:
            manual = file.read().replace("\\-", "-")
        for option in options if page == "mo-link.1" else []:
            assert re.search(rf"^\.B (-\w, )?{option}\b", manual, re.M), option
    script = os.path.join(prefix, "share/bash-completion/completions/mo-link")
    for words, wanted in [("--", options), ("--out", ["--outline", "--output="]),
                          ("--dump=rep", ["repeats"]), ("program.", ["program.c"]),
                          ("-- gcc-no", []), ("-run fals", ["false"])]:
        line = ["mo-link"] + re.findall(r"=|[^ =]+", words)
        completed = run(["bash", "-c", 'source "$0"; tool=$1; shift; COMP_WORDS=("$tool" "$@"); '
                         'COMP_CWORD=$#; _mo_link; printf "%s\\n" "${COMPREPLY[@]}"', script,
                         tool, *line[1:]], work).split()
        found = {word.rstrip("=") for word in completed}
        assert {word.rstrip("=") for word in wanted} <= found, (words, completed)
        assert wanted or not found, (words, completed)

    # Links between the documents lead somewhere.
    documents = os.path.join(prefix, "share/doc/mo-link")
    with open(os.path.join(documents, "README.md")) as file:
        for name in re.findall(r"\((docs/[^)#]+)", file.read()):
            assert os.path.exists(os.path.join(documents, name)), name


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--work", required=True)
    arguments = parser.parse_args()
    build, work = map(os.path.abspath, (arguments.build, arguments.work))
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    prefix = os.path.join(work, "tree with blank")
    run(["cmake", "--install", build, "--prefix", prefix], work)
    check_tree(prefix, os.path.join(work, "installed"))
    if shutil.which("dpkg-shlibdeps") is None:
        print("no dpkg-dev: the Debian package was not made")
        return
    run(["cpack", "--config", os.path.join(build, "CPackConfig.cmake"), "-B", work], work)
    [package] = glob.glob(os.path.join(work, "mo-link_*.deb"))
    run(["dpkg-deb", "-x", package, "root"], work)
    fields = run(["dpkg-deb", "-f", package, "Depends"], work)
    assert "libc6" in fields and "libelf" in fields, fields
    check_tree(os.path.join(work, "root", "usr"), os.path.join(work, "unpacked"))


if __name__ == "__main__":
    sys.exit(main())
