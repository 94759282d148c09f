#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mo-link in the linker's place: `cc -B<folder>` links as before, only smaller.

usage: ld.py --ld PATH --work FOLDER [--all] [--only SUBSTRING]

PATH is our `ld`, in a folder of its own with its other names. Each case links a program
with and without -B, by several drivers and linkers, and compares what the two do; what
the linker says, and its status, must be the real linker's.
"""
import argparse
import itertools
import os
import shutil
import signal
import subprocess
import sys

LINKERS = ["bfd", "gold", "lld", "mold"]
DRIVERS = {
    "gcc": ["gcc"], "clang": ["clang-19"],
    "cross-gcc": ["aarch64-linux-gnu-gcc"],
    "cross-clang": ["clang-19", "--target=aarch64-linux-gnu"],
}
# What the ordinary tests take; --all takes all pairs.
COMMON = {("gcc", "bfd"), ("gcc", "gold"), ("gcc", "mold"), ("clang", "lld"),
          ("cross-gcc", "bfd"), ("cross-clang", "lld")}
LLD_FOLDER = "/usr/lib/llvm-19/bin"


def repetitive(prefix, count):
    """C functions that share most of their instructions, so that outlining pays."""
    lines = ["struct state { long a, b, c, d; char text[64]; };",
             "int snprintf(char *, unsigned long, const char *, ...);"]
    for i in range(count):
        lines.append(f"""
int {prefix}{i}(struct state *s, long x)
{{
    if (x < {i})
        s->d += {i};
    s->a = s->b * 3 + s->c; s->b = s->a ^ (s->d >> 2); s->c += s->b * 5 - s->a;
    s->d = (s->d << 1) ^ s->c; s->text[s->c & 63] = (char)s->a;
    return snprintf(s->text, sizeof s->text, "%ld %ld {prefix}", s->a + {i}, s->d) + (int)x;
}}""")
    return "\n".join(lines) + "\n"


def calls_wrapped(prefix):
    """Functions that share all but a number, a call of `wrapped` among it."""
    return "int wrapped(int, int, int, int);\n" + "".join(
        f"int {prefix}{i}(int *p) {{ int sum = p[{i}]; "
        f"sum += wrapped(p[0] + 11, p[1] ^ 22, p[2] * 33, p[3] - 44); return sum ^ {i}; }}\n"
        for i in range(6))


def calls(prefix, count):
    return "".join(f"    sum = sum * 31 + {prefix}{i}(&s, sum & 15);\n" for i in range(count))


SOURCES = {
    "one.c": repetitive("one", 12),
    "two.c": repetitive("two", 12),
    "dead.c": repetitive("dead", 12),
    "lto-words.c": 'const char *words(int i) { return i ? ".gnu.lto_.x" : ".llvm.lto"; }\n',
    # what no link may load: it would clash with main.c
    "unneeded.c": repetitive("unneeded", 4) + "int main(void) { return 99; }\n",
    # what nothing in its link defines
    "wants.c": "int wanted(int);\n" + "".join(
        f"int w{i}(int *p) {{ p[9] = {i}; p[1] = 4; p[2] = 19; p[3] = 77; "
        f"p[4] = wanted(p[0]); p[5] = 12; p[6] = 99; return p[4] * 3; }}\n" for i in range(8)),
    "main.c": repetitive("own", 6) + "int printf(const char *, ...);\n" +
              "".join(f"int {p}{i}(struct state *, long);\n"
                      for p in ("one", "two") for i in range(12)) +
              "int main(void)\n{\n    struct state s = {1, 2, 3, 4, {0}};\n"
              "    long sum = 7;\n" + calls("own", 6) + calls("one", 12) + calls("two", 12) +
              '    printf("%ld %s\\n", sum, s.text);\n    return (int)(sum & 63);\n}\n',
    "throw.cc": "".join(f"""
#include <stdexcept>
#include <string>
#include <cstdio>
struct guard{i} {{ std::string &log; ~guard{i}() {{ log += "~{i}"; }} }};
int thrower{i}(int x, std::string &log)
{{
    guard{i} g{{log}};
    log += "in{i} ";
    if (x % 3 == 0) throw std::runtime_error("run " + std::to_string(x));
    if (x % 3 == 1) throw x + {i};
    return x;
}}
int catcher{i}(int x, std::string &log)
{{
    try {{ return thrower{i}(x, log); }}
    catch (const std::exception &e) {{ log += e.what(); return 1; }}
    catch (int y) {{ log += std::to_string(y); return y; }}
}}""" for i in range(8)) + """
int main()
{
    std::string log; int sum = 0;
    for (int x = 0; x < 9; x++) {
""" + "".join(f"        sum += catcher{i}(x, log);\n" for i in range(8)) + """
    }
    std::printf("%d %s\\n", sum, log.c_str());
    return sum & 63;
}
""",
    "streams.cc": """
#include <iostream>
#include <map>
#include <sstream>
int main()
{
    std::map<std::string, int> seen;
    std::istringstream words("the quick brown fox and the lazy dog");
    for (std::string word; words >> word;) seen[word]++;
    for (auto &word : seen) std::cout << word.first << ' ' << word.second << '\\n';
    return (int)seen.size();
}
""",
    "user.c": 'int printf(const char *, ...); int two_sum(void);\n'
              'int main(void) { printf("%d\\n", two_sum()); return 3; }\n',
    "shared.c": repetitive("two", 12) + "__attribute__((visibility(\"hidden\"))) "
                "int inner(int x) { return x * 3; }\nint two_sum(void)\n{\n"
                "    struct state s = {1, 2, 3, 4, {0}};\n    long sum = 7;\n" +
                calls("two", 12) + "    return inner((int)sum);\n}\n",
    # `early` is wanted by all of the sites that become one helper. If the helper wanted it,
    # too, GNU ld would find it in the archive before its users, and not in the one behind.
    "early-user.c": "int early(int);\n" + "".join(
        f"int use{i}(int *p, int x) {{ if (x > {i}) p[0]++; p[1] = early(p[2] * 7 + x); "
        f"p[3] = early(p[1] ^ p[4]); p[5] = p[3] * 9 + p[1]; return early(p[5]) + {i}; }}\n"
        for i in range(8)),
    "early-main.c": repetitive("own", 8) + "int printf(const char *, ...);\n" + "".join(
        f"int use{i}(int *, int);\n" for i in range(8)) +
        "int main(void)\n{\n    struct state s = {1, 2, 3, 4, {0}};\n    long sum = 7;\n"
        "    int p[8] = {1};\n" + calls("own", 8) +
        "".join(f"    sum += use{i}(p, (int)sum & 7);\n" for i in range(8)) +
        '    printf("%ld\\n", sum);\n    return 0;\n}\n',
    # Calls in the file that defines a name are not wrapped, but by lld.
    "wrap-inside.c": calls_wrapped("inside") +
                     "int wrapped(int a, int b, int c, int d) { return a + b + c + d; }\n",
    "wrap-outside.c": calls_wrapped("outside"),
    "wrap-main.c": repetitive("own", 8) + "int printf(const char *, ...);\n"
        "int __real_wrapped(int, int, int, int);\n"
        "int __wrap_wrapped(int a, int b, int c, int d)\n"
        "{ return 1000000 + __real_wrapped(a, b, c, d); }\n" +
        "".join(f"int inside{i}(int *), outside{i}(int *);\n" for i in range(6)) +
        "int main(void)\n{\n    struct state s = {1, 2, 3, 4, {0}};\n    long sum = 7;\n"
        "    int p[8] = {1, 2, 3, 4, 5, 6, 7, 8};\n" + calls("own", 8) +
        "".join(f'    printf("%d %d\\n", inside{i}(p), outside{i}(p));\n' for i in range(6)) +
        '    printf("%ld\\n", sum);\n    return 0;\n}\n',
    "early-wrong.c": "int early(int x) { return x + 100; }\n",
    "early-right.c": "int early(int x) { return x + 1; }\n",
    "bad.c": "int missing(int);\nint main(void) { return missing(1); }\n",
    "part.c": repetitive("one", 12),
    "words.rsp": "main.o 'one.o'\n-L. -ltwo\n",
    "names.ld": "SECTIONS { .text : { *(.text.hot) src/one.o(.text) *(.text .text.*) } }\n",
}


class Failed(Exception):
    pass


class Place:
    """One driver with one linker, in a folder of its own."""

    def __init__(self, arguments, driver, linker):
        self.ours = os.path.dirname(os.path.abspath(arguments.ld))
        self.cross = driver.startswith("cross")
        self.name = f"{driver}-{linker}"
        self.command = list(DRIVERS[driver])
        self.linker = linker
        self.folder = os.path.join(arguments.work, self.name)
        self.scratch = os.path.join(self.folder, "tmp")
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.scratch)
        os.makedirs(os.path.join(self.folder, "other"))
        for name, text in SOURCES.items():
            with open(os.path.join(self.folder, name), "w") as file:
                file.write(text)

    def run(self, command, flags="-v", **more):
        environment = dict(os.environ, TMPDIR=self.scratch, MO_LINK_FLAGS=flags)
        environment.update(more.pop("environment", {}))
        return subprocess.run(command, cwd=self.folder, text=True, capture_output=True,
                              env=environment, timeout=120, **more)

    def must(self, command, **more):
        result = self.run(command, **more)
        if result.returncode != 0:
            raise Failed(f"{' '.join(command)}\n{result.stderr}")
        return result

    def compile(self, *sources, flags=()):
        for source in sources:
            driver = list(self.command)
            if source.endswith(".cc"):
                driver[0] = driver[0].replace("clang", "clang++").replace("gcc", "g++")
            self.must(driver + ["-Os", "-w", *flags, "-c", source, "-o",
                                os.path.splitext(source)[0] + ".o"])

    def link(self, words, ours, cxx=False, **more):
        driver = list(self.command)
        if cxx:
            driver[0] = driver[0].replace("clang", "clang++").replace("gcc", "g++")
        chosen = [] if self.linker == "default" else ["-fuse-ld=" + self.linker]
        place = ["-B", self.ours] if ours else []
        return self.run(driver + chosen + place + ["-B", LLD_FOLDER] + list(words), **more)

    def execute(self, name):
        runner = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"] if self.cross else []
        result = self.run(runner + ["./" + name],
                          environment={"LD_LIBRARY_PATH": self.folder})
        return result.returncode, result.stdout

    def symbols(self, name):
        return self.must(["llvm-nm-19", "-a", name]).stdout.split()

    def both(self, words, out="prog", gains=True, cxx=False, runs=True):
        """Links without and with us, in this order; what both did must be equal."""
        old = self.link([*words, "-o", "old-" + out], ours=False, cxx=cxx)
        new = self.link([*words, "-o", out], ours=True, cxx=cxx)
        if old.returncode != 0 or new.returncode != 0:
            raise Failed(f"link: {old.returncode} {new.returncode}\n{old.stderr}{new.stderr}")
        outlined = any("mo_outlined" in symbol for symbol in self.symbols(out))
        if gains is not None and outlined != gains:
            raise Failed(f"outlined: {outlined}, wanted {gains}\n{new.stderr}")
        if os.listdir(self.scratch):
            raise Failed("something is left in the scratch folder")
        if [name for name in os.listdir(self.folder) if ".mo-link-" in name]:
            raise Failed("a second output is left")
        if runs and self.execute("old-" + out) != self.execute(out):
            raise Failed(f"behaves differently: {self.execute('old-' + out)} "
                         f"{self.execute(out)}")
        return new

    def like_real(self, words, said=""):
        """The link is the real linker's: its messages, its status, its output."""
        results = [self.link(words, ours, environment={"LC_ALL": "C"}, flags="")
                   for ours in (False, True)]
        old, new = results
        lines = [line for line in new.stderr.splitlines()
                 if not line.startswith("mo-link:")]
        if (old.returncode != new.returncode or old.stdout != new.stdout or
                [l.replace("/usr/bin/", "") for l in old.stderr.splitlines()] !=
                [l.replace("/usr/bin/", "") for l in lines] or said not in new.stderr):
            raise Failed(f"{words}: {old.returncode} {new.returncode}\n{old.stderr}---\n"
                         f"{new.stderr}---\n{old.stdout}---\n{new.stdout}")
        return new


# --- cases: the name says what is linked ---

def case_objects(place):
    place.compile("main.c", "one.c", "two.c", "lto-words.c")
    new = place.both(["main.o", "one.o", "two.o", "lto-words.o"])
    if "link-time optimisation" in new.stderr:
        raise Failed("a string is taken for a section")


def case_archive_with_unneeded_members(place):
    place.compile("main.c", "one.c", "two.c", "unneeded.c")
    place.must(["ar", "rcs", "libparts.a", "unneeded.o", "one.o", "two.o"])
    for words in (["main.o", "libparts.a"], ["main.o", "-L.", "-lparts"],
                  ["main.o", "-L", ".", "-l", "parts"], ["main.o", "-L.", "-l:libparts.a"],
                  ["-Wl,--start-group", "main.o", "libparts.a", "-Wl,--end-group"]):
        place.both(words)
        if any("unneeded" in symbol for symbol in place.symbols("prog")):
            raise Failed("a member that is not needed has been loaded")


def case_whole_archive(place):
    place.compile("main.c", "one.c", "two.c", "dead.c")
    place.must(["ar", "rcs", "libparts.a", "one.o", "two.o", "dead.o"])
    place.both(["main.o", "-Wl,--whole-archive", "libparts.a", "-Wl,--no-whole-archive"])
    if "dead3" not in place.symbols("prog"):
        raise Failed("--whole-archive has lost its meaning")


def case_library_that_is_a_script(place):
    """As Debian's libm.a."""
    place.compile("main.c", "one.c", "two.c")
    place.must(["ar", "rcs", "other/libreal.a", "one.o", "two.o"])
    with open(os.path.join(place.folder, "libnamed.a"), "w") as file:
        file.write("/* GNU ld script */\nGROUP ( " +
                   os.path.join(place.folder, "other", "libreal.a") + " )\n")
    for words in ["-L.", "-lnamed"], ["-L", "other", "-L", place.folder, "-l", "named"]:
        place.both(["main.o", *words])
        report = place.link(["main.o", *words, "-o", "prog"], ours=True, flags="-R").stdout
        if "libreal.a(two.o)" not in report:
            raise Failed("what the script names is not outlined:\n" + report)


def case_members_of_one_name(place):
    place.compile("main.c", "one.c", "two.c")
    os.rename(os.path.join(place.folder, "two.o"),
              os.path.join(place.folder, "other", "one.o"))
    place.must(["ar", "qcs", "libparts.a", "one.o", "other/one.o"])
    place.both(["main.o", "libparts.a"])


def case_thin_archive(place):
    place.compile("main.c", "one.c", "two.c", "unneeded.c")
    place.must(["ar", "rcsT", "other/libthin.a", "unneeded.o", "one.o", "two.o"])
    place.both(["main.o", "other/libthin.a"])
    for name in "one.o", "two.o":
        shutil.copy(os.path.join(place.folder, name), os.path.join(place.folder, "other"))
    place.must(["ar", "rcsT", "other/libbeside.a", "other/one.o", "other/two.o"])
    words = ["main.o", "other/libbeside.a"]
    place.both(words)
    report = place.link([*words, "-o", "prog"], ours=True, flags="-R").stdout
    if "one.o" not in report:
        raise Failed("the thin archive is not outlined:\n" + report)


def case_response_file(place):
    place.compile("main.c", "one.c", "two.c")
    place.must(["ar", "rcs", "libtwo.a", "two.o"])
    place.both(["@words.rsp"])
    place.both(["-Wl,@words.rsp"])


def case_static(place):
    place.compile("main.c", "one.c", "two.c")
    place.both(["-static", "main.o", "one.o", "two.o"])


def case_no_pie(place):
    place.compile("main.c", "one.c", "two.c", flags=["-fno-pie"])
    place.both(["-no-pie", "main.o", "one.o", "two.o"])


def case_exceptions(place):
    place.compile("throw.cc")
    # GCC's call-site tables for AArch64 are not all read yet: nothing may be gained.
    gains = None if place.name.startswith("cross-gcc") else True
    place.both(["throw.o"], cxx=True, gains=gains)
    place.both(["-static", "throw.o"], cxx=True)


def case_static_streams(place):
    """What helpers want must not choose among the archive's many copies of a function."""
    if place.cross or place.linker not in ("bfd", "lld"):
        return
    place.compile("streams.cc")
    place.both(["-static", "streams.o"], cxx=True)


def link_library(place, source):
    """With us and without: what it defines and wants, and how strongly, is the same."""
    place.compile(source, flags=["-fPIC", "-Os"])
    stem, names = source[:-2], []
    for name in f"old-lib{stem}.so", f"lib{stem}.so":
        result = place.link(["-shared", stem + ".o", "-o", name], ours=name[0] == "l")
        if result.returncode != 0:
            raise Failed(result.stderr)
        said = place.must(["llvm-nm-19", "-D", "--format=posix", name]).stdout
        names.append(sorted(line.split()[:2] for line in said.splitlines()))
    if not any("mo_outlined" in symbol for symbol in place.symbols(f"lib{stem}.so")):
        raise Failed("the shared library is not outlined: " + result.stderr)
    if names[0] != names[1]:
        raise Failed(f"the names differ:\n{names[0]}\n{names[1]}")


def case_shared(place):
    place.compile("user.c")
    link_library(place, "shared.c")
    place.both(["user.o", "-L.", "-lshared", "-Wl,--allow-shlib-undefined"], gains=False)


def case_shared_with_gaps(place):
    link_library(place, "wants.c")


def case_gc_sections(place):
    place.compile("main.c", "one.c", "two.c", "dead.c",
                  flags=["-ffunction-sections", "-fdata-sections"])
    place.must(["ar", "rcs", "libparts.a", "one.o", "two.o"])
    words = ["main.o", "dead.o", "libparts.a", "-Wl,--gc-sections"]
    place.both(words)
    report = place.link([*words, "-o", "prog"], ours=True,
                        flags="-R").stdout
    # What mold drops whole it does not name at all.
    if "nothing refers to it" not in report and (place.linker != "mold" or
                                                 "dead.o" in report):
        raise Failed("dropped sections were outlined:\n" + report)
    if any("dead" in symbol for symbol in place.symbols("prog")
           if not symbol.startswith("dead.")):
        raise Failed("a section that was dropped is there")


def case_twice(place):
    place.compile("main.c", "one.c", "two.c")
    images = []
    for _ in range(2):
        place.both(["main.o", "one.o", "two.o"])
        with open(os.path.join(place.folder, "prog"), "rb") as file:
            images.append(file.read())
    if images[0] != images[1]:
        raise Failed("two links give different bytes")


def case_wanted_earlier(place):
    place.compile("early-main.c", "early-user.c", "early-wrong.c", "early-right.c")
    for name in "wrong", "right":
        place.must(["ar", "rcs", f"lib{name}.a", f"early-{name}.o"])
    words = ["early-main.o", "libwrong.a", "early-user.o", "libright.a"]
    place.both(words)


def case_wrap(place):
    """A name that means one thing in one file and another in others."""
    place.compile("wrap-main.c", "wrap-inside.c", "wrap-outside.c")
    files = ["wrap-main.o", "wrap-inside.o", "wrap-outside.o"]
    place.both([*files, "-Wl,--wrap=wrapped"])
    # The same where the link comes later.
    place.must([os.path.join(place.ours, "..", "..", "mo-link"), "--outline", "--wrap=wrapped",
                "-o", "other/", *files])
    files = [f"other/{file}" for file in [*files, "mo-outlined.o"]]
    result = place.link([*files, "-Wl,--wrap=wrapped", "-o", "prog"], ours=False)
    if result.returncode != 0 or place.execute("old-prog") != place.execute("prog"):
        raise Failed(f"outlined before: {result.stderr}{place.execute('prog')}")


def case_output_elsewhere(place):
    """Through a symbolic link, or not, as the linker does; the mode, too."""
    place.compile("main.c", "one.c", "two.c")
    files = ["main.o", "one.o", "two.o"]
    found = []
    for ours in False, True:
        for name in "real", "link":
            path = os.path.join(place.folder, name)
            if os.path.lexists(path):
                os.remove(path)
        with open(os.path.join(place.folder, "real"), "w") as file:
            os.chmod(file.fileno(), 0o751)
        os.symlink("real", os.path.join(place.folder, "link"))
        result = place.link([*files, "-o", "link"], ours)
        if result.returncode != 0:
            raise Failed(result.stderr)
        path = os.path.join(place.folder, "link")
        found.append((os.path.islink(path), os.stat(path).st_mode,
                      os.stat(os.path.join(place.folder, "real")).st_size > 0))
    if not any("mo_outlined" in symbol for symbol in place.symbols("link")):
        raise Failed("not outlined: " + result.stderr)
    if found[0] != found[1]:
        raise Failed(f"link, mode, file: {found}")


def case_output_of_two_names(place):
    if place.linker != "mold": # the others replace the file
        return
    place.compile("main.c", "one.c", "two.c")
    place.link(["main.o", "-r", "-o", "prog"], ours=False)
    os.link(os.path.join(place.folder, "prog"), os.path.join(place.folder, "name"))
    said = place.link(["main.o", "one.o", "two.o", "-o", "prog"], ours=True).stderr
    same = os.path.samefile(*(os.path.join(place.folder, name) for name in ("prog", "name")))
    if not same or "it has other names" not in said:
        raise Failed(f"same file: {same}: {said}")


def case_prints(place):
    place.compile("main.c", "one.c", "two.c")
    new = place.both(["main.o", "one.o", "two.o", "-Wl,-M"])
    if ".text" not in new.stdout:
        raise Failed("-M prints nothing")
    place.both(["main.o", "one.o", "two.o", "-Wl,-Map=prog.map"])
    with open(os.path.join(place.folder, "prog.map")) as file:
        text = file.read()
    if ".text" not in text or "one.o" not in text or "mo-outlined.o" not in text:
        raise Failed("-Map writes nothing")
    if "mo-link-" in text:
        raise Failed("-Map knows the scratch folder")


def case_report(place):
    place.compile("main.c", "one.c", "two.c")
    place.link(["main.o", "one.o", "two.o", "-o", "prog"], ours=True,
               flags="-R=json:report.json")
    with open(os.path.join(place.folder, "report.json")) as file:
        if '"one.o"' not in file.read():
            raise Failed("the report does not name the inputs")


def case_report_of_each_link(place):
    place.compile("main.c", "one.c", "two.c")
    for out in "prog", "other/prog":
        place.link(["main.o", "one.o", "two.o", "-o", out], ours=True,
                   flags="-R=json:%o.size.json -R=html:%o.html")
        for report in out + ".size.json", out + ".html":
            if not os.path.exists(os.path.join(place.folder, report)):
                raise Failed(f"no report {report} beside {out}")


def case_closed_pipe(place):
    """Nobody reads the report: that costs the report, not the link."""
    place.compile("main.c", "one.c", "two.c")
    words = " ".join(place.command + ["-fuse-ld=" + place.linker, "-B", place.ours, "-B",
                                      LLD_FOLDER, "main.o", "one.o", "two.o", "-o", "prog"])
    # The reader is gone before the linker is there.
    result = place.run(["bash", "-c", f"(sleep 0.3; {words}; echo $? >status) | true"],
                       flags="-R")
    with open(os.path.join(place.folder, "status")) as file:
        status = file.read().strip()
    if status != "0" or "cannot write to standard output" not in result.stderr:
        raise Failed(f"status {status}: {result.stderr}")
    if not any("mo_outlined" in symbol for symbol in place.symbols("prog")):
        raise Failed("the link is not outlined")
    if os.listdir(place.scratch):
        raise Failed("something is left in the scratch folder")


def case_interrupted(place):
    """Stopped while it outlines, as by Ctrl-C, it says nothing more and leaves nothing."""
    if place.name != "gcc-bfd":
        return
    place.compile("streams.cc")
    link = subprocess.Popen(
        ["g++", "-B", place.ours, "-static", "streams.o", "-o", "prog"], cwd=place.folder,
        env=dict(os.environ, TMPDIR=place.scratch, MO_LINK_FLAGS="-v --reruns=9"),
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, start_new_session=True)
    first = link.stderr.readline() # of the first round; more are to come
    os.killpg(link.pid, signal.SIGINT)
    said = link.communicate()[1] # until the linker step has closed it, too
    if link.returncode == 0 or "round 1" not in first or "outlin" in said:
        raise Failed(f"status {link.returncode}: {first}{said}")
    if [name for name in os.listdir(place.scratch) if name.startswith("mo-link-")]:
        raise Failed("something is left in the scratch folder")


def case_32_bit(place):
    if place.name != "gcc-bfd":
        return
    with open(os.path.join(place.folder, "start.s"), "w") as file:
        file.write(".globl _start\n_start: ret\n")
    place.must(["as", "--32", "start.s", "-o", "start.o"])
    said = place.must([os.path.join(place.ours, "ld"), "-melf_i386", "start.o", "-o",
                       "prog"]).stderr
    if "not outlined: the output is a 32-bit program" not in said:
        raise Failed(said)


def case_like_the_real_linker(place):
    place.compile("main.c", "one.c", "two.c", "bad.c")
    place.like_real(["bad.o", "-o", "none"])
    place.like_real(["main.o", "one.o", "two.o", "-Wl,--no-such-option", "-o", "none"])
    place.like_real(["main.o", "one.o", "two.o", "no-such.o", "-o", "none"])
    place.like_real(["main.o", "-lno-such-library", "-o", "none"])
    if os.path.exists(os.path.join(place.folder, "none")):
        raise Failed("a link that failed has left an output")
    versions = [place.must([*folder, "--version"]).stdout for folder in (
        [place.ours + "/ld." + place.linker], ["ld." + place.linker])]
    if versions[0] != versions[1]:
        raise Failed(f"--version: {versions}")
    images = []
    for ours in False, True:
        place.link(["-nostdlib", "-r", "one.o", "two.o", "-o", "both.o"], ours)
        with open(os.path.join(place.folder, "both.o"), "rb") as file:
            images.append(file.read())
    if images[0] != images[1]:
        raise Failed("-r is not passed through")
    place.both(["main.o", "both.o"])


def case_optimised_at_link_time(place):
    place.compile("main.c", "two.c")
    place.compile("one.c", flags=["-flto"])
    if place.linker == "lld" and "clang" not in place.name:
        return  # it does not read GCC's
    new = place.both(["-flto", "main.o", "one.o", "two.o"])
    if "link-time optimisation, not outlined: one.o" not in new.stderr:
        raise Failed("the LTO object is not named: " + new.stderr)


def case_strange(place):
    place.compile("main.c", "one.c", "two.c")
    with open(os.path.join(place.folder, "blob"), "w") as file:
        file.write("blob")
    if place.linker in ("bfd", "gold") and not place.cross:
        place.like_real(["main.o", "one.o", "two.o", "-Wl,-b,binary,blob,-b,elf64-x86-64",
                         "-o", "prog"], said="linked without outlining: -b")
    if place.linker == "bfd":
        place.like_real(["main.o", "one.o", "two.o", "-Wl,-T,names.ld", "-o", "prog"],
                        said="names files: src/one.o")


def jumps_out_of(place, section):
    """Code of that output section that leads to a helper."""
    said = place.must(["llvm-objdump-19", "-d", "-j", section, "prog"]).stdout
    if section + ":" not in said:
        raise Failed(f"there is no {section}:\n{said}")
    return "mo_outlined" in said


def case_placed_apart(place):
    """Code that a script puts into memory of its own must not leave it."""
    if place.linker not in ("bfd", "lld"):
        return
    place.compile("main.c", "one.c", "two.c")
    place.compile("one.c", flags=["-ffunction-sections"])
    place.must(["ar", "rcs", "libparts.a", "one.o"])
    apart = {
        "*one.o(.text .text.*)": "one.o",
        "KEEP(*[o]ne.o (.text*))": "one.o",
        "*libparts.a:one.o(SORT(.text.*))": "libparts.a",
        "*libparts.a:(.text.*)": "libparts.a",
        ". = ALIGN(4); x = .; *(.text.one1 .text.one[2-8])": "one.o",
        "*(EXCLUDE_FILE(*main.o *two.o *mo-outlined.o) .text "
        "EXCLUDE_FILE(*main.o *two.o *mo-outlined.o) .text.*)": "one.o",
    }
    together = {
        "*(.nothing)": "one.o",
        "/* *one.o(.text.*) */ . += 8; *(.nothing)": "one.o",
        "*one.o(.data)": "one.o",
    }
    for pattern, part in (apart | together).items():
        with open(os.path.join(place.folder, "apart.ld"), "w") as file:
            file.write(f"SECTIONS {{ .apart : {{ {pattern} BYTE(0) }} }} INSERT AFTER .text;\n")
        new = place.both(["main.o", part, "two.o", "-Wl,-T,apart.ld"])
        report = place.link(["main.o", part, "two.o", "-Wl,-T,apart.ld", "-o", "prog"],
                            ours=True, flags="-R").stdout
        if pattern in apart and jumps_out_of(place, ".apart"):
            raise Failed(f"{pattern}: code placed apart calls helpers\n{new.stderr}")
        if (pattern in apart) != ("puts it elsewhere than the helpers" in report):
            raise Failed(f"{pattern}: the report:\n{report}")


def case_scripts_not_understood(place):
    if place.linker != "bfd":
        return
    place.compile("main.c", "one.c", "two.c")
    for text, said in (("SECTIONS { .b : { *(.b } }", "is not understood at }"),
                       ("SECTIONS { .b : { *(.b) } } INCLUDE no-such.ld", "INCLUDE no-such"),
                       ("SECTIONS { .b : { ?ne*(.text) } } INSERT AFTER .text;",
                        "names the folder of one.o")):
        with open(os.path.join(place.folder, "strange.ld"), "w") as file:
            file.write(text)
        place.like_real(["main.o", "one.o", "two.o", "-Wl,-T,strange.ld", "-o", "prog"],
                        said=said)


def case_whole_script(place):
    """The linker's own script, as -T: nothing in it is apart."""
    if place.linker != "bfd":
        return
    place.compile("main.c", "one.c", "two.c")
    said = place.run([*place.command, "-Wl,--verbose"]).stdout # and no input: it fails
    with open(os.path.join(place.folder, "whole.ld"), "w") as file:
        file.write(said.split("=" * 50)[1])
    place.both(["main.o", "one.o", "two.o", "-Wl,-T,whole.ld"])


def case_real_linker(place):
    place.compile("main.c", "one.c", "two.c")
    words = ["main.o", "one.o", "two.o", "-o", "prog"]
    lost = place.link(words, ours=True, environment={"MO_LINK_LD": "/no/such/ld"})
    if lost.returncode == 0 or "MO_LINK_LD: there is no linker" not in lost.stderr:
        raise Failed("a linker that is not there: " + lost.stderr)
    wrong = place.link(words, ours=True, flags="--no-such-flag")
    if wrong.returncode == 0 or "MO_LINK_FLAGS: unknown option" not in wrong.stderr:
        raise Failed("flags that are wrong: " + wrong.stderr)


def case_environment(place):
    """No flag at all: the drivers look into COMPILER_PATH, too."""
    place.compile("main.c", "one.c", "two.c")
    chosen = ["-fuse-ld=" + place.linker]
    place.must(place.command + chosen + ["main.o", "one.o", "two.o", "-o", "prog"],
               environment={"COMPILER_PATH": place.ours})
    if not any("mo_outlined" in symbol for symbol in place.symbols("prog")):
        raise Failed("not outlined")
    # Our own command does no more than that; the word with a blank arrives whole.
    result = place.run([os.path.join(place.ours, "..", "..", "mo-link"), "-v",
                        "--keep=no such", "--", *place.command, *chosen, "main.o", "one.o",
                        "two.o", "-o", "by-command"])
    if "outlined: " not in result.stderr:
        raise Failed("mo-link -- COMMAND: " + result.stderr)


CASES = {name[5:]: function for name, function in sorted(globals().items())
         if name.startswith("case_")}


def available(driver, linker):
    if shutil.which(DRIVERS[driver][0]) is None:
        return False
    if driver.startswith("cross") and linker == "gold" or \
            (driver, linker) == ("cross-gcc", "mold"):
        return False
    return linker == "lld" or shutil.which("ld." + linker) is not None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ld", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--all", action="store_true", help="every driver with every linker")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    arguments.work = os.path.abspath(arguments.work)
    failures = count = 0
    for driver, linker in itertools.product(DRIVERS, LINKERS):
        if not (arguments.all or arguments.only or (driver, linker) in COMMON):
            continue
        if not available(driver, linker):
            print(f"SKIPPED {driver} with {linker}: not installed")
            continue
        for name, case in CASES.items():
            if arguments.only not in f"{driver}-{linker}-{name}":
                continue
            count += 1
            try:
                case(Place(arguments, driver, linker))
            except Failed as why:
                failures += 1
                print(f"FAILED {driver}-{linker}-{name}: {why}")
    print(f"{count} cases, {failures} failed")
    return 1 if failures or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
