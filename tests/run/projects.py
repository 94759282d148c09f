#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Other people's programs, built by their own build systems with the one flag added.

usage: projects.py --ld PATH --corpora FOLDER --work FOLDER [--only SUBSTRING]

FOLDER/src holds unpacked Debian source packages (tests/corpora.sh FOLDER projects).
Each project is built with `-B<folder of PATH>` among its linker flags, by GCC with GNU
ld and by Clang with lld, some also for AArch64 (run under qemu), and its own tests are
passed. Prints a table: what was linked, bytes loaded before and after, seconds.
"""
import argparse
import glob
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
DEMO = os.path.normpath(os.path.join(HERE, "..", "..", "fixtures", "demo"))
LLD_FOLDER = "/usr/lib/llvm-19/bin"

TOOLS = {
    "gcc-bfd": {"CC": "gcc", "CXX": "g++", "HOST": "", "RUN": "", "LINKER": ""},
    "clang-lld": {"CC": "clang-19", "CXX": "clang++-19", "HOST": "", "RUN": "",
                  "LINKER": "-fuse-ld=lld"},
    "cross-bfd": {"CC": "aarch64-linux-gnu-gcc", "CXX": "aarch64-linux-gnu-g++",
                  "HOST": "--host=aarch64-linux-gnu", "LINKER": "",
                  "RUN": "qemu-aarch64 -L /usr/aarch64-linux-gnu"},
}

# Shell, in a copy of the source; $FLAG is what our README says to add. `tests` must
# succeed; `only` names the tools (default: the two native ones).
NATIVE = ["gcc-bfd", "clang-lld"]
PROJECTS = {
    "lua5.4": {
        "tools": NATIVE + ["cross-bfd"],
        # Upstream's makefile: Debian's wants libtool installed.
        "build": 'cp .pc/0001-build-system.patch/src/Makefile src/ && '
                 'echo "#define DEB_HOST_MULTIARCH \\"here\\"" > src/lua5.4-deb-multiarch.h && '
                 'make -C src posix CC="$CC" MYLDFLAGS="$FLAG" MYLIBS=-ldl',
        "tests": f'$RUN src/lua {DEMO}/suite.lua > ours.txt && '
                 '$RUN src/luac -o suite.luac ' + f'{DEMO}/suite.lua && '
                 '$RUN src/lua suite.luac > again.txt && cmp ours.txt again.txt && '
                 'test -s ours.txt',
    },
    "zlib": {
        "tools": NATIVE + ["cross-bfd"],
        "build": 'case "$FLAG" in *lld*) FLAG="$FLAG -Wl,--undefined-version";; esac; '
                 'CHOST="${HOST#--host=}" CC="$CC" LDFLAGS="$FLAG" ./configure && make',
        "tests": 'for test in teststatic testshared; do '
                 'sed -i "s,| \\./,| $RUN ./,; s,if \\./example,if $RUN ./example,; '
                 's,minigzip -d,minigzip -d," Makefile; done; '
                 'if [ -z "$RUN" ]; then make test; else '
                 '$RUN ./example && echo hello | $RUN ./minigzip | $RUN ./minigzip -d '
                 '| grep hello; fi',
    },
    "bzip2": {
        "tools": NATIVE + ["cross-bfd"],
        "build": 'make bzip2 bzip2recover CC="$CC" LDFLAGS="$FLAG" CFLAGS="-O2 -fPIC"',
        "tests": 'export LD_LIBRARY_PATH=.; '
                 'for n in 1 2 3; do $RUN ./bzip2 -$n < sample$n.ref > sample$n.rb2 && '
                 'cmp sample$n.bz2 sample$n.rb2 || exit 1; done; '
                 '$RUN ./bzip2 -d < sample1.bz2 > sample1.tst && cmp sample1.tst sample1.ref && '
                 '$RUN ./bzip2 -d < sample2.bz2 > sample2.tst && cmp sample2.tst sample2.ref && '
                 '$RUN ./bzip2 -ds < sample3.bz2 > sample3.tst && cmp sample3.tst sample3.ref',
    },
    "libpng1.6": {
        # In CC: libtool drops -B from LDFLAGS when it links a library.
        "build": './configure CC="$CC $FLAG" CFLAGS=-O2 && make -j2',
        "tests": 'make check TESTS="tests/pngtest-all tests/pngstest-1.8 tests/pngimage-quick '
                 'tests/pngunknown-vpAg"',
    },
    "mbedtls": {
        "build": 'make -C library CC="$CC" CFLAGS=-Os && cd tests && for suite in $SUITES; do '
                 'make CC="$CC" CFLAGS=-Os LDFLAGS="$FLAG" test_suite_$suite || exit 1; done',
        "tests": 'cd tests && for suite in $SUITES; do ./test_suite_$suite | tail -1 | '
                 'grep PASSED || exit 1; done',
        # (x509parse and ssl hold certificates that have expired: they fail as they are.)
        "environment": {"SUITES": "aes.cbc md rsa ecp"},
    },
    "sqlite3": {
        "build": './configure CC="$CC $FLAG" --disable-tcl --disable-readline '
                 'CFLAGS="-Os" && make sqlite3',
        "tests": "./sqlite3 :memory: 'create table t(a,b); with recursive c(x) as (select 1 "
                 "union all select x+1 from c where x<5000) insert into t select x, "
                 "hex(x*7919) from c; create index i on t(b); select count(*), sum(a), max(b) "
                 "from t where b like \"3%\"; pragma integrity_check;' | tee out.txt && "
                 "grep -q ok out.txt",
    },
    # C++, with exceptions.
    "libjsoncpp": {
        "build": 'mkdir -p b && cd b && cmake .. -DCMAKE_C_COMPILER="$CC" '
                 '-DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_EXE_LINKER_FLAGS="$FLAG" '
                 '-DCMAKE_SHARED_LINKER_FLAGS="$FLAG" -DCMAKE_BUILD_TYPE=MinSizeRel '
                 '-DJSONCPP_WITH_POST_BUILD_UNITTEST=OFF && make',
        "tests": 'cd b && ./bin/jsoncpp_test && '
                 'python3 ../test/runjsontests.py bin/jsontestrunner_exe ../test/data',
    },
    "re2": {
        # (Debian's source is without the tables that its package unicode-data makes.)
        "build": 'make REBUILD_TABLES=1 re2/perl_groups.cc re2/unicode_casefold.cc '
                 're2/unicode_groups.cc && '
                 'mkdir -p b && cd b && cmake .. -DCMAKE_CXX_COMPILER="$CXX" '
                 '-DCMAKE_EXE_LINKER_FLAGS="$FLAG" -DCMAKE_SHARED_LINKER_FLAGS="$FLAG" '
                 '-DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=ON && '
                 'make re2 $SUITES',
        "tests": 'cd b && for suite in $SUITES; do ./$suite | tail -1 | grep "^PASS" || '
                 'exit 1; done',
        "environment": {"SUITES": "parse_test re2_test search_test set_test simplify_test"},
        "shows": "libre2",
        "needs": ["/usr/share/unicode/UnicodeData.txt"],
    },
    # Rust, with its crates from Debian packages; -g is on, and stays on.
    "rust-ripgrep": {
        # What a linker says that succeeds, cargo keeps to itself: hence the script.
        "build": 'printf "#!/bin/sh\\nexec $CC \\"\\$@\\" 2>>$LOG\\n" > cc && chmod +x cc && '
                 'mkdir -p .cargo && printf \'[source.crates-io]\\nreplace-with = "debian"\\n'
                 '[source.debian]\\ndirectory = "/usr/share/cargo/registry"\\n\' '
                 '> .cargo/config.toml && rm -f Cargo.lock && '
                 'sed -i /simd-accel/d Cargo.toml && $CARGO build --release',
        "tests": '$CARGO test --release --test integration',
        "environment": {"CARGO": "/usr/bin/cargo", "RUSTC": "/usr/bin/rustc"},
        "shows": "rg-",
        "needs": ["/usr/bin/cargo", "/usr/share/cargo/registry/grep-0.2.10"],
    },
}

SKIPPED = ["skipped"]
LINE = re.compile(r"^mo-link: (\S+): outlined: (\d+) loaded bytes, (\d+) before "
                  r"\(seconds: link ([\d.]+), outlining ([\d.]+), link ([\d.]+)\)$")


def run(script, folder, environment, log):
    with open(log, "a") as file:
        file.write(f"+ {script}\n")
        file.flush()
        return subprocess.run(["sh", "-c", script], cwd=folder, env=environment,
                              stdout=file, stderr=file, stdin=subprocess.DEVNULL).returncode


def build(arguments, name, tools):
    """Builds and tests; returns what its log says was outlined. None: failed."""
    found = glob.glob(os.path.join(arguments.corpora, "src", name + "-*", ""))
    if not found:
        print(f"SKIPPED {name}: not there (tests/corpora.sh {arguments.corpora} projects)")
        return SKIPPED
    project = PROJECTS[name]
    missing = [path for path in project.get("needs", []) if not os.path.exists(path)]
    if missing:
        print(f"SKIPPED {name}: {missing[0]} is missing (tests/install.sh projects)")
        return SKIPPED
    folder = os.path.join(arguments.work, f"{name}-{tools}")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(found[0], folder, symlinks=True)
    log = os.path.join(arguments.work, f"{name}-{tools}.log")
    if os.path.exists(log):
        os.unlink(log)
    environment = dict(os.environ, MO_LINK_FLAGS="-v", **TOOLS[tools],
                       **project.get("environment", {}))
    environment["FLAG"] = (f"-B{os.path.dirname(arguments.ld)} -B{LLD_FOLDER} "
                           f"{TOOLS[tools]['LINKER']}").strip()
    environment["LOG"] = log
    environment["RUSTFLAGS"] = " ".join(
        [f"-Clinker={folder}/cc"] +
        [f"-Clink-arg={word}" for word in environment["FLAG"].split()])
    for step in "build", "tests":
        if run(project[step], folder, environment, log) != 0:
            print(f"FAILED {name} {tools}: {step}, see {log}")
            return None
    with open(log, errors="replace") as file:
        return [match.groups() for match in map(LINE.match, file) if match]


def show(name, tools, links):
    last = {link[0]: link for link in links}
    for output, after, before, first, outlining, second in last.values():
        saved = 100 * (1 - int(after) / int(before))
        total = float(first) + float(outlining) + float(second)
        print(f"| {name} {os.path.basename(output)} | {tools} | {before} | {after} | "
              f"{saved:.2f} % | {float(first):.2f} | {total:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ld", required=True)
    parser.add_argument("--corpora", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    for name in "ld", "corpora", "work":
        setattr(arguments, name, os.path.abspath(getattr(arguments, name)))
    os.makedirs(arguments.work, exist_ok=True)
    failures = count = 0
    print("| program | by | loaded bytes | with mo-link | saved | link, s | all, s |")
    print("|---|---|---|---|---|---|---|")
    for name, project in PROJECTS.items():
        for tools in project.get("tools", NATIVE):
            if arguments.only not in f"{name}-{tools}":
                continue
            links = build(arguments, name, tools)
            if links is SKIPPED:
                continue
            count += 1
            if links is None:
                failures += 1
            elif not links:
                failures += 1
                print(f"FAILED {name} {tools}: nothing was outlined")
            else:
                show(name, tools, [link for link in links if
                                   os.path.basename(link[0]).startswith(
                                       project.get("shows", ""))])
    return 1 if failures else 0 if count else 77


if __name__ == "__main__":
    sys.exit(main())
