#!/usr/bin/env python3
"""Outlined programs behave as before: build, outline, link, run, compare.

usage: run.py --mo-link PATH [--corpora DIR] [--work DIR] [--only SUBSTRING] [SUITE]...

Suites: fixtures (every program of fixtures/programs, by compilers, levels and flags),
        shared (a C++ library that throws into its user, and the programs of cxx, linked
        with shared libraries),
        debug (two files with debug information, merged),
        cxx (every program of fixtures/programs-cxx: exceptions of all kinds),
        cxxlib (the same, with Debian's libstdc++.a and libgcc_eh.a outlined along with
        them; wants --corpora),
        libc (programs that use much of the C and C++ libraries, all of which is outlined:
        fixtures/programs-libc, and programs-cxx again; wants --corpora),
        archives (sqlite, lua, zlib, libcrypto and libgmp from Debian's static archives; wants --corpora),
        fold (whole functions that are the same code: fixtures/programs-fold; some of the
        program's objects are folded, the others are linked with it as they were),
        random (programs of generate.py, with what csmith leaves out; --count of them),
        csmith (random programs; --count of them for each target and compiler),
        switches (random programs made of switches; the same, see switches.py),
        cxxrandom (random C++ programs about exceptions, of parts that several compilers
        made with all kinds of flags; --count of them for each target, see cxxgen.py).
With --with=OPTION every case is outlined with that option, too.
constructs.py and rust.py are suites with scripts of their own, and the same options.
With --shake=N every case is shaken instead (by N seeds alone, and once after outlining).
Every case compares standard output and exit code of the program before and after, linked
with GNU ld and with lld; AArch64 programs run under qemu-aarch64 -cpu max.
"""
import argparse
import concurrent.futures
import itertools
import os
import random
import shutil
import subprocess
import sys
import threading
import zlib

import cxxgen
import generate
import switches

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.normpath(os.path.join(HERE, "..", "..", "fixtures"))

GCC = {"x86_64": ["gcc"], "aarch64": ["aarch64-linux-gnu-gcc"]}
CLANG = {"x86_64": ["clang-19"], "aarch64": ["clang-19", "--target=aarch64-linux-gnu"]}
GXX = {"x86_64": "g++", "aarch64": "aarch64-linux-gnu-g++"}
CXX_LEVELS = {"gcc": ["-O2", "-Os", "-O0"], "clang": ["-O2", "-Oz", "-O0"]}
CXX_FLAGS = [["-fno-pic"], ["-fPIC"], ["-ffunction-sections", "-fdata-sections"]]
LEVELS = {"gcc": ["-O0", "-O1", "-O2", "-Os", "-O3"], "clang": ["-O0", "-O2", "-Oz"]}
RUNNER = {"x86_64": [], "aarch64": ["qemu-aarch64", "-cpu", "max"]}
DIRS = {"x86_64": ("amd64", "x86_64-linux-gnu"), "aarch64": ("arm64", "aarch64-linux-gnu")}
FLAGS = {
    "x86_64": [["-fno-pic"], ["-fPIC"], ["-ffunction-sections", "-fdata-sections"],
               ["-fcf-protection", "-fno-omit-frame-pointer"]],
    "aarch64": [["-fno-pic"], ["-fPIC"], ["-ffunction-sections", "-fdata-sections"],
                ["-mbranch-protection=standard"]],
}


# LLD_DIR is known later.
LINKER_FLAGS = {"bfd": lambda: ["-fuse-ld=bfd"], "lld": lambda: ["-fuse-ld=lld", "-B", LLD_DIR],
                "mold": lambda: ["-fuse-ld=mold", "-B", LLD_DIR]}


class Failed(Exception):
    pass


def call(command, timeout=120, **more):
    """Runs a command; returns (exit code, standard output, standard error)."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=timeout, **more)
    except subprocess.TimeoutExpired:
        raise Failed("timeout: " + " ".join(command))
    return done.returncode, done.stdout, done.stderr


def must(command, **more):
    code, out, err = call(command, **more)
    if code != 0:
        raise Failed("%s\n  exit %d: %s" % (" ".join(command), code,
                                            err.decode(errors="replace")[:2000]))
    return out


def compiler(kind, target):
    return (GCC if kind == "gcc" else CLANG)[target]


def link(target, linker, objects, out, libraries, flags=(), driver=None):
    command = (driver or GCC[target]) + ["-static"] + list(flags) + ["-o", out] + objects + libraries
    if linker == "lld":
        command += ["-fuse-ld=lld", "-B", LLD_DIR]
    must(command)


def run(target, program, arguments=(), timeout=60):
    code, out, _ = call(RUNNER[target] + [program] + list(arguments), timeout=timeout)
    return code, out


def compare(case, target, before, after, arguments=()):
    if before != after:
        raise Failed("%s behaves differently: exit %d -> %d, output %s" % (
            case, before[0], after[0],
            "equal" if before[1] == after[1] else "differs"))


def outline(args, objects, out, extra=()):
    must([args.mo_link, "--outline", "--reruns=2"] + list(extra) + objects + ["-o", out])


def works(args, case):
    """(options, linkers) of each piece of work to judge: outlining; or, with --shake,
    no-ops everywhere, once by themselves and once in outlined code. The seeds depend on
    the case, so that a few for each are many for all."""
    outline = ["--outline", "--reruns=2"] + args.also
    if not args.shake:
        return [(outline, ["bfd", "lld"])]
    seed = zlib.crc32(case.encode()) % 1000000 * 1000 + 1
    return ([(["--shake=%d" % (seed + i)], ["bfd", "lld"][i % 2:][:1])
             for i in range(args.shake)] +
            [(outline + ["--shake=%d" % (seed + args.shake)], ["lld"])])


def check(args, case, target, folder, objects, inputs, libraries, arguments=(), flags=(),
          driver=None, options=()):
    """Links the objects before and after outlining `inputs`; compares runs."""
    before = os.path.join(folder, "before")
    link(target, "bfd", objects, before, libraries, flags, driver)
    expected = run(target, before, arguments)
    out = os.path.join(folder, "out.o")
    for work, linkers in works(args, case):
        must([args.mo_link] + work + list(options) + inputs + ["-o", out])
        for linker in linkers:
            after = os.path.join(folder, "after-" + linker)
            link(target, linker, [out], after, libraries, flags, driver)
            compare("%s (%s, %s)" % (case, " ".join(work), linker), target, expected,
                    run(target, after, arguments))


def described(args, case):
    """Where no-ops inside of functions go, positions of debug information have to move
    behind them: most cases have some. And one of four has many no-ops."""
    choices = [[], ["-g"], ["-g", "-gdwarf-4"], ["-g", "-falign-labels=16"]]
    return choices[zlib.crc32(case.encode()) % 4 if "--drop-alignment" in args.also else 0]


def fixture_cases(args):
    programs = sorted(os.listdir(os.path.join(FIXTURES, "programs")))
    for target, kind in itertools.product(("x86_64", "aarch64"), ("gcc", "clang")):
        for level, flags in itertools.product(LEVELS[kind], FLAGS[target]):
            for program in programs:
                if program == "aligned.c" and "--drop-alignment" in args.also:
                    continue  # that is what it relies on
                name = "%s-%s%s%s-%s" % (target, kind, level, "".join(flags), program)

                def case(folder, target=target, kind=kind, level=level, flags=flags,
                         program=program, name=name):
                    source = os.path.join(FIXTURES, "programs", program)
                    made = os.path.join(folder, "a.o")
                    must(compiler(kind, target) + [level] + flags + described(args, name) +
                         ["-w", "-c", source, "-o", made])
                    check(args, name, target, folder, [made], [made], ["-lm"],
                          flags=["-no-pie"] if "-fno-pic" in flags else [])

                yield name, case


def fold_cases(args):
    """Both files folded together, each by itself, and one with the other as it was; each
    of these with sections for functions and without."""
    places = [["-ffunction-sections"], ["-fno-function-sections"],
              ["-ffunction-sections", "-g", "-fPIC"]]
    for target, kind in itertools.product(("x86_64", "aarch64"), ("gcc", "clang")):
        for level, flags in itertools.product(["-O1", "-O2", "-Os"], places):
            name = "%s-fold-%s%s%s" % (target, kind, level, "".join(flags))

            def case(folder, target=target, kind=kind, flags=[level] + flags, name=name):
                made = []
                for source in ("folding.cc", "other.cc"):
                    made.append(os.path.join(folder, source + ".o"))
                    command = list(compiler(kind, target))
                    command[0] = {"gcc": GXX[target], "clang": "clang++-19"}[kind]
                    must(command + flags + ["-w", "-std=c++17", "-c", os.path.join(
                        FIXTURES, "programs-fold", source), "-o", made[-1]])
                check_folded(args, name, target, folder, made)

            yield name, case


def check_folded(args, name, target, folder, made):
    before = os.path.join(folder, "before")
    link(target, "bfd", made, before, [], driver=[GXX[target]])
    expected = run(target, before)
    fold = ["--outline", "--reruns=1", "--fold"]
    whole = os.path.join(folder, "whole.o")
    code, _, said = call([args.mo_link] + fold + ["-v"] + made + ["-o", whole])
    if code != 0 or b"folded" not in said:
        raise Failed("%s: nothing was folded: %s" % (name, said.decode()))
    parts = []
    for one in made:
        parts.append(one + ".folded.o")
        must([args.mo_link] + fold + [one, "-o", parts[-1]])
    os.makedirs(os.path.join(folder, "dir"))
    must([args.mo_link] + fold + made + ["-o", os.path.join(folder, "dir") + "/"])
    apart = [os.path.join(folder, "dir", f) for f in sorted(os.listdir(folder + "/dir"))]
    for objects in ([whole], parts, [parts[0], made[1]], [made[1], parts[0]],
                    [parts[1], made[0]], apart):
        for linker in ("bfd", "lld"):
            after = os.path.join(folder, "after")
            link(target, linker, objects, after, [], ["-Wl,--gc-sections"],
                 driver=[GXX[target]])
            compare("%s (%s, %s)" % (name, " ".join(map(os.path.basename, objects)), linker),
                    target, expected, run(target, after))


def cxx_programs():
    """(name, flags, compilers) of each C++ program: its first lines may state them."""
    folder = os.path.join(FIXTURES, "programs-cxx")
    for program in sorted(os.listdir(folder)):
        flags, kinds = [], ["gcc", "clang"]
        with open(os.path.join(folder, program)) as source:
            for line in source.readlines()[:4]:
                words = line.lstrip("/* ").split()
                if words[:1] == ["flags:"]:
                    flags = words[1:]
                if words[:1] == ["only:"]:
                    kinds = words[1:]
        yield program, flags, kinds


def compile_cxx(kind, target, flags, program, made):
    command = list(compiler(kind, target))
    if program.endswith(".cc"):
        command[0] = command[0].replace("clang", "clang++").replace("gcc", "g++")
    must(command + flags + ["-w", "-c", os.path.join(FIXTURES, "programs-cxx", program),
                            "-o", made])


def cxx_cases(args):
    programs = list(enumerate(cxx_programs()))
    for target, kind in itertools.product(("x86_64", "aarch64"), ("gcc", "clang")):
        for (index, level), (number, (program, own, kinds)) in itertools.product(
                enumerate(CXX_LEVELS[kind]), programs):
            if kind not in kinds:
                continue
            # Every level with one of the flags, every flag with one of the levels.
            flags = CXX_FLAGS[(index + number) % len(CXX_FLAGS)]
            name = "%s-%s%s%s-%s" % (target, kind, level, "".join(flags), program)

            def case(folder, target=target, kind=kind, program=program, name=name,
                     flags=[level] + flags + own, pie=flags != ["-fno-pic"]):
                made = os.path.join(folder, "a.o")
                compile_cxx(kind, target, flags + described(args, name), program, made)
                check(args, name, target, folder, [made], [made], ["-pthread"],
                      flags=[] if pie else ["-no-pie"], driver=[GXX[target]])

            yield name, case


def cxxlib_cases(args):
    for target, (program, own, kinds) in itertools.product(("x86_64", "aarch64"),
                                                           cxx_programs()):
        name = "%s-cxxlib-%s" % (target, program)

        def case(folder, target=target, program=program, own=own, name=name):
            root, triple = DIRS[target]
            top = os.path.join(args.corpora, root, "usr", "lib", "gcc", triple, "12")
            archives = [os.path.join(top, "lib%s.a" % library)
                        for library in ("stdc++", "supc++", "gcc_eh")]
            made = os.path.join(folder, "a.o")
            compile_cxx("gcc", target, ["-O2"] + own, program, made)
            check(args, name, target, folder, [made], [made] + archives, ["-pthread"],
                  driver=[GXX[target]])

        yield name, case


LIBRARIES_LOCK = threading.Lock()


def archives_of(args, target):
    """Debian's static archives of the C and C++ libraries, as {name for -l: path}."""
    root, triple = DIRS[target]
    usr = os.path.join(args.corpora, root, "usr", "lib", triple)
    gcc = os.path.join(args.corpora, root, "usr", "lib", "gcc", triple, "12")
    libm = os.path.join(usr, "libm-2.36.a")  # x86-64: libm.a is a linker script
    if not os.path.exists(libm):
        libm = os.path.join(usr, "libm.a")
    found = {"c": os.path.join(usr, "libc.a"), "m": libm}
    for name in ("gcc_eh", "stdc++", "supc++"):
        found[name] = os.path.join(gcc, "lib%s.a" % name)
    return found


def libraries(args, target, work):
    """A folder with the whole C and C++ libraries after this work, archives as archives,
    so that a linker picks members as it did before. Made once."""
    name = "libraries-%s%s" % (target, "".join(work).replace("--", "-"))
    out = os.path.join(args.work, name)
    with LIBRARIES_LOCK:
        if os.path.exists(out + ".done"):
            return out
        shutil.rmtree(out, ignore_errors=True)
        inputs = os.path.join(args.work, name + ".in")
        os.makedirs(inputs, exist_ok=True)
        paths = []
        for library, path in archives_of(args, target).items():
            paths.append(os.path.join(inputs, "lib%s.a" % library))
            shutil.copyfile(path, paths[-1])
        must([args.mo_link] + work + paths + ["-o", out + "/"], timeout=600)
        open(out + ".done", "w").close()
    return out


def has_helpers(target, program):
    """Helpers' names in the program say that its libraries are ours."""
    nm = "nm" if target == "x86_64" else "aarch64-linux-gnu-nm"
    return b" mo_outlined." in must([nm, program])


def check_libraries(args, case, target, folder, made, options, driver=None):
    """Program and static libraries, each outlined, linked as the compiler does it."""
    before = os.path.join(folder, "before")
    link(target, "bfd", [made], before, options, driver=driver)
    expected = run(target, before)
    for work, linkers in works(args, "libraries"):
        out = os.path.join(folder, "out.o")
        must([args.mo_link] + work + [made, "-o", out])
        libs = libraries(args, target, work)
        for linker in linkers:
            after = os.path.join(folder, "after-" + linker)
            link(target, linker, [out], after, ["-L" + libs] + options, driver=driver)
            compare("%s (%s, %s)" % (case, " ".join(work), linker), target, expected,
                    run(target, after))
            if "--outline" in work and not has_helpers(target, after):
                raise Failed(case + ": linked with other libraries")


def libc_cases(args):
    programs = sorted(os.listdir(os.path.join(FIXTURES, "programs-libc")))
    for target, program in itertools.product(("x86_64", "aarch64"), programs):
        name = "%s-libc-%s" % (target, program)

        def case(folder, target=target, program=program, name=name):
            made = os.path.join(folder, "a.o")
            source = os.path.join(FIXTURES, "programs-libc", program)
            if program.endswith(".cc"):
                must([GXX[target], "-O2", "-w", "-c", source, "-o", made])
                check_libraries(args, name, target, folder, made, ["-pthread"],
                                [GXX[target]])
            else:
                must(GCC[target] + ["-O2", "-w", "-c", source, "-o", made])
                check_libraries(args, name, target, folder, made, ["-lm", "-pthread"])

        yield name, case
    for target, (program, own, _) in itertools.product(("x86_64", "aarch64"),
                                                       cxx_programs()):
        name = "%s-libc-cxx-%s" % (target, program)

        def case(folder, target=target, program=program, own=own, name=name):
            made = os.path.join(folder, "a.o")
            compile_cxx("gcc", target, ["-O2"] + own, program, made)
            check_libraries(args, name, target, folder, made, ["-pthread"], [GXX[target]])

        yield name, case


def run_dynamic(target, program):
    """With the target's own shared libraries."""
    emulator = RUNNER[target] + (["-L", "/usr/aarch64-linux-gnu"] if RUNNER[target] else [])
    code, out, _ = call(emulator + [program])
    return code, out


def link_shared(target, folder, library, user):
    """A user of a shared library that lies beside it."""
    os.makedirs(folder, exist_ok=True)
    program = os.path.join(folder, "user")
    if library:
        must([GXX[target], "-shared", library, "-o", os.path.join(folder, "libthrow.so")])
    must([GXX[target], user, "-o", program, "-pthread"] +
         (["-L" + folder, "-lthrow", "-Wl,-rpath,$ORIGIN"] if library else []))
    return run_dynamic(target, program)


def shared_cases(args):
    """A library that throws into its user; and the programs of programs-cxx, linked with
    shared libraries."""
    for target, kind in itertools.product(("x86_64", "aarch64"), ("gcc", "clang")):
        for level in CXX_LEVELS[kind]:
            sources = {"throw": ("shared/library.cc", "shared/user.cc")}
            for program, own, kinds in cxx_programs():
                if kind in kinds and level == CXX_LEVELS[kind][0]:
                    sources[program] = (None, "programs-cxx/" + program, *own)
            for short, (library, user, *own) in sources.items():
                name = "%s-%s%s-shared-%s" % (target, kind, level, short)

                def case(folder, target=target, kind=kind, level=level, library=library,
                         user=user, own=own, name=name):
                    objects = []
                    for source in (library, user):
                        made = source and os.path.join(folder, os.path.basename(source) + ".o")
                        if made:
                            compile_cxx(kind, target, [level, "-fPIC"] + own,
                                        os.path.join("..", source), made)
                        objects.append(made)
                    before = link_shared(target, os.path.join(folder, "before"), *objects)
                    for work, _ in works(args, name):
                        done = [made and made + ".out" for made in objects]
                        for made in filter(None, objects):
                            must([args.mo_link] + work + [made, "-o", made + ".out"])
                        after = link_shared(target, os.path.join(folder, "after"), *done)
                        compare("%s (%s)" % (name, " ".join(work)), target, before, after)

                yield name, case


def debug_cases(args):
    """Two files with debug information, merged: sections of it are joined."""
    flags = [["-g"], ["-g", "-gdwarf-4"], ["-g", "-ffunction-sections"], ["-g", "-gz"]]
    for target, kind, flag, strip in itertools.product(
            ("x86_64", "aarch64"), ("gcc", "clang"), flags, ([], ["--strip-debug"])):
        name = "%s-%s-O2%s%s-pair" % (target, kind, "".join(flag), "".join(strip))

        def case(folder, target=target, kind=kind, flag=flag, strip=strip, name=name):
            made = []
            for source in ("main", "other"):
                made.append(os.path.join(folder, source + ".o"))
                must(compiler(kind, target) + ["-O2"] + flag +
                     ["-c", os.path.join(FIXTURES, "pair", source + ".c"), "-o", made[-1]])
            outline(args, made, os.path.join(folder, "stripped.o"), ["--dry-run"] + strip)
            check(args, name, target, folder, made, made, [])

        yield name, case


def archive_cases(args):
    wanted = [("sqlite", "sqldemo.c", "libsqlite3.a", ["3000"], []),
              ("lua", "luademo.c", "liblua5.4.a",
               [os.path.join(FIXTURES, "demo", "suite.lua")], ["lua5.4"]),
              ("zlib", "zdemo.c", "libz.a", ["200"], []),
              ("crypto", "cryptodemo.c", "libcrypto.a", [], []),
              ("gmp", "gmpdemo.c", "libgmp.a", [], [])]
    for target in ("x86_64", "aarch64"):
        for name, source, library, arguments, include in wanted:
            def case(folder, target=target, name=name, source=source, library=library,
                     arguments=arguments, include=include):
                root, triple = DIRS[target]
                top = os.path.join(args.corpora, root, "usr")
                archive = os.path.join(top, "lib", triple, library)
                headers = []
                for part in include + [triple, ""]:
                    headers += ["-idirafter", os.path.join(top, "include", part)]
                made = os.path.join(folder, "main.o")
                must(GCC[target] + ["-O2", "-c"] + headers +
                     [os.path.join(FIXTURES, "demo", source), "-o", made])
                check(args, target + "-" + name, target, folder, [made, archive],
                      [made, archive], ["-lm", "-ldl", "-lpthread"], arguments)

            yield target + "-" + name, case


def csmith_cases(args):
    for target, kind in itertools.product(("x86_64", "aarch64"), ("gcc", "clang")):
        for seed in range(args.seed, args.seed + args.count):
            level = LEVELS[kind][seed % len(LEVELS[kind])]
            name = "%s-%s%s-csmith-%d" % (target, kind, level, seed)

            def case(folder, target=target, kind=kind, level=level, seed=seed, name=name):
                source = os.path.join(folder, "r.c")
                must(["csmith", "-s", str(seed), "-o", source], cwd=folder)
                made = os.path.join(folder, "a.o")
                # What Clang takes for an endless loop without effect (C17 6.8.5p6) leaves a
                # function without an end, which runs into whatever lies behind it.
                loops = ["-fno-finite-loops"] if kind == "clang" else []
                must(compiler(kind, target) + [level, "-w", "-I/usr/include/csmith", "-c",
                                               source, "-o", made] + loops)
                before = os.path.join(folder, "before")
                link(target, "bfd", [made], before, [])
                try:
                    run(target, before, timeout=10)
                except Failed:
                    return  # not every random program ends
                check(args, name, target, folder, [made], [made], [])

            yield name, case


SWITCH_FLAGS = [["-fno-pic"], ["-fPIC"], ["-ffunction-sections"], ["-fno-asynchronous-unwind-tables"]]


def switch_cases(args):
    for target, kind in itertools.product(("x86_64", "aarch64"), ("gcc", "clang")):
        for seed in range(args.seed, args.seed + args.count):
            level = LEVELS[kind][seed % len(LEVELS[kind])]
            flags = SWITCH_FLAGS[seed // 5 % len(SWITCH_FLAGS)]
            name = "%s-%s%s%s-switches-%d" % (target, kind, level, "".join(flags), seed)

            def case(folder, target=target, kind=kind, level=level, flags=flags, seed=seed,
                     name=name):
                source = os.path.join(folder, "s.c")
                with open(source, "w") as out:
                    out.write(switches.generate(seed))
                made = os.path.join(folder, "a.o")
                must(compiler(kind, target) + [level] + flags + ["-w", "-c", source, "-o", made])
                check(args, name, target, folder, [made], [made], [],
                      flags=["-no-pie"] if "-fno-pic" in flags else [])

            yield name, case


def linked_before(target, folder, objects, rng):
    """The objects as one, by a linker's -r, which drops some code and its unwind entries."""
    out = os.path.join(folder, "rel.o")
    linker = rng.choice([[], ["-fuse-ld=lld", "-B", LLD_DIR]])
    must(GCC[target] + linker + ["-r", "-nostdlib", "-o", out] + objects)
    return [out]


def cxxrandom_cases(args):
    for target, seed in itertools.product(("x86_64", "aarch64"),
                                          range(args.seed, args.seed + args.count)):
        name = "%s-cxxrandom-%d" % (target, seed)

        def case(folder, target=target, seed=seed, name=name):
            rng = random.Random("%s %d" % (target, seed))
            cxxgen.write(seed, folder)
            parts = {"main.cc": {"specs": True}, "callback.c": {}}
            for number, traits in enumerate(cxxgen.plan(seed)):
                parts["part%d.cc" % number] = traits
            made = []
            for source, traits in sorted(parts.items()):
                kind = "gcc" if traits.get("traps") else rng.choice(["gcc", "clang"])
                flags = cxxgen.flags(rng, kind, target, traits)
                command = list(compiler(kind, target)) + flags[:-1] + ["-fexceptions"]
                if source.endswith(".cc"):
                    command[0] = command[0].replace("clang", "clang++").replace("gcc", "g++")
                    command.append(flags[-1])
                made.append(os.path.join(folder, source + ".o"))
                must(command + ["-w", "-c", os.path.join(folder, source), "-o", made[-1]])
            check(args, name, target, folder, made,
                  rng.choice([made, made, linked_before(target, folder, made, rng)]), [],
                  driver=[GXX[target]], options=rng.choice(cxxgen.OPTIONS))

        yield name, case


def random_cases(args):
    for target, kind in itertools.product(("x86_64", "aarch64"), ("gcc", "clang")):
        for seed in range(args.seed, args.seed + args.count):
            level = LEVELS[kind][seed % len(LEVELS[kind])]
            flags = FLAGS[target][seed // 5 % len(FLAGS[target])]
            name = "%s-%s%s%s-random-%d" % (target, kind, level, "".join(flags), seed)

            def case(folder, target=target, kind=kind, level=level, seed=seed, name=name,
                     flags=flags):
                source, made = os.path.join(folder, "r.c"), os.path.join(folder, "a.o")
                with open(source, "w") as file:
                    file.write(generate.program(seed))
                must(compiler(kind, target) + [level, "-w"] + flags +
                     ["-c", source, "-o", made])
                check(args, name, target, folder, [made], [made], [],
                      flags=["-no-pie"] if "-fno-pic" in flags else [])

            yield name, case


SUITES = {"fixtures": fixture_cases, "fold": fold_cases, "debug": debug_cases, "cxx": cxx_cases,
          "cxxlib": cxxlib_cases, "cxxrandom": cxxrandom_cases, "shared": shared_cases,
          "libc": libc_cases, "archives": archive_cases, "csmith": csmith_cases,
          "switches": switch_cases, "random": random_cases}


def attempt(args, name, case):
    folder = os.path.join(args.work, name.replace("/", "_"))
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    try:
        case(folder)
    except Failed as failure:
        return str(failure)
    shutil.rmtree(folder, ignore_errors=True)
    return None


def main(description=__doc__.split("\n")[0], suites=("fixtures",)):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--mo-link", required=True)
    parser.add_argument("--corpora")
    parser.add_argument("--work", default="/tmp/mo-link-run")
    parser.add_argument("--only", default="")
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=int, default=1,
                        help="only every Nth case")
    parser.add_argument("--shake", type=int, default=0,
                        help="do not outline: put no-ops everywhere, by so many seeds")
    parser.add_argument("--with", dest="also", action="append", default=[],
                        help="outline with this option, too")
    parser.add_argument("--linkers", choices=["all", "one"], default="all",
                        help="constructs: with each linker, or with one of them in turn")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("suites", nargs="*", default=list(suites))
    args = parser.parse_args()
    args.work = os.path.abspath(args.work)
    os.makedirs(args.work, exist_ok=True)
    global LLD_DIR
    LLD_DIR = os.path.join(args.work, "lld")
    os.makedirs(LLD_DIR, exist_ok=True)
    for name, choices in (("ld.lld", ["ld.lld-19", "ld.lld"]), ("ld.mold", ["mold"])):
        found = next(filter(None, map(shutil.which, choices)), None)
        if found and not os.path.lexists(os.path.join(LLD_DIR, name)):
            os.symlink(found, os.path.join(LLD_DIR, name))

    cases = [(n, c) for s in args.suites for n, c in SUITES[s](args) if args.only in n]
    cases = cases[::args.every]
    failures = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        done = pool.map(lambda case: (case[0], attempt(args, *case)), cases)
        for name, failure in done:
            if failure:
                failures += 1
                print("FAIL %s\n  %s" % (name, failure), flush=True)
    print("%d passed, %d failed" % (len(cases) - failures, failures))
    return 1 if failures or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
