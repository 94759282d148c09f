#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The command as a user meets it: what it says of bad input, what it writes and what not.

usage: cli.py --mo-link PATH --work FOLDER

Each case is one command line, the exit status, and words that its message must hold.
After a failure nothing may have appeared in the folder.
"""
import argparse
import json
import os
import pty
import re
import shutil
import subprocess
import sys

CODE = {
    "a.c": """#include <stdio.h>
        int b(int);
        static int same(int *p, int x) { p[0] = x * 3; p[1] = x + 7; return p[0] ^ p[1]; }
        int first(int *p, int x) { printf("%d %d\\n", x, x + 1); return same(p, x) + 1; }
        int main(void) { int p[4] = {0}; return first(p, 2) + b(3) == 1; }""",
    # Twenty functions that begin and end in the same way.
    "many.c": "int g(int, int);\nint h(int);\n" + "\n".join(
        f"""int many{i}(int *p, int x) {{
            int a = g(x, {i}), b = h(a + {i * 7});
            p[0] = a * 3 + b; p[1] = b + 7; p[2] = a ^ b; p[3] = a - b;
            return h(p[0]) + g(a, b); }}""" for i in range(20)),
    # The same twice, but for the section that keeps one of them.
    "kept.c": "".join(
        f"""int g(int, int);
        {where} int kept{i}(int *p, int x) {{
            int a = g(x, 3), b = g(a, 7); p[0] = a * 3 + b; p[1] = b + 7; p[2] = a ^ b;
            p[3] = a - b; return g(p[0], a) + g(a, b); }}
        """ for i, where in enumerate(["", "", "", "__attribute__((section(\".text.mo_keep\")))",
                                       "__attribute__((section(\".text.mo_keep.b\")))"])),
    "b.c": "int b(int x) { return x * 5; }",
    "into.c": """int many3(int *, int); char *into = (char *)many3 + 40;
        asm(".type look,@function\\n look: cmpl $1000, many6+4(%rip)\\n ret\\n"
            ".size look, .-look");""", # (the addend is -4)
    "dir/a.c": "int other;",
    "text.o": "this is no object\n",
    "script.so": "/* GNU ld script */\nOUTPUT_FORMAT(elf64-x86-64)\nGROUP ( a.so )\n",
    "empty.o": "",
}

# Command line, status, words on standard error.
BAD = [
    ("", 2, "no input files"),
    ("a.o", 2, "no output"),
    ("a.o -o o.o --outlin", 2, "did you mean --outline?"),
    ("a.o b.o -- cc", 2, "a.o: the command behind '--' names the inputs"),
    ("-o o.o -- cc", 2, "-o: the command"),
    ("--", 2, "'--' wants a command"),
    ("-- no-such-command", 2, "cannot run no-such-command"),
    ("-run no-such-command", 2, "cannot run no-such-command"),
    ("missing.o -o o.o", 1, "missing.o"),
    ("text.o -o o.o", 1, "text.o"),
    ("empty.o -o o.o", 1, "empty.o: an empty file"),
    ("--outline -R json a.o b.o -o o.o", 2, "takes its format after '=': -R=json"),
    ("--explain a.o b.o", 2, "wants the name of a function"),
    ("--explain=nosuch a.o b.o", 1, "--explain=nosuch: there is no such function here"),
    ("--print=nosuch a.o b.o", 1, "--print=nosuch: there is no such function here"),
    ("--explain=b.o:first a.o b.o", 1, "--explain=b.o:first: there is no such function"),
    ("--outline --profile=nosuch.txt a.o -o o.o", 1, "nosuch.txt: cannot open"),
    ("--outline --profile=a.o a.o -o o.o", 1, "a.o: line 1 is neither"),
    ("-run", 2, "'-run' wants a command"),
    ("cut.o -o o.o", 1, "cut.o"),
    ("script.so -o o.o", 1, "script.so: a linker script"),
    ("lib.so -o o.o", 1, "lib.so: a shared library or program"),
    ("slim.o -o o.o", 1, "slim.o: "),
    ("none.a -o o.o", 1, "none.a: there is no object in it"),
    ("a.o foreign.o -o o.o", 1, "foreign.o is for AArch64, but a.o is for x86-64"),
    ("a.o -o a.o", 1, "a.o: the output is the input"),
    ("a.o -o ./a.o", 1, "the output is the input a.o"),
    ("a.o -o link.o", 1, "the output is the input a.o"),
    ("a.o -o o.o -R=json:a.o", 1, "the output is the input a.o"),
    ("a.o dir/a.o -o out/", 1, "a.o and dir/a.o would both be written to out/a.o"),
    ("a.o -o ./", 1, "the output is the input a.o"),
    ("a.o -o missing/o.o", 1, "missing/o.o"),
    ("a.o a.o -o o.o", 1, "a.o is given twice"),
    ("a.o -o missing/o.o", 1, "missing/o.o: there is no folder"),
    ("run make", 2, "'mo-link -- COMMAND'"),
    ("run gcc -O2 -flto", 2, "'mo-link -- COMMAND'"),
    ("--outline --keep a.o -o o.o", 2, "a.o was taken as the value of --keep"),
    ("a.o -o o.o -R -R=json", 2, "-R=text and -R=json both print to standard output"),
    ("a.o -o o.o -R=json:q.json -R=json:r.json", 2,
     "-R=json is given twice, for 'q.json' and for 'r.json'"),
    ("a.o -o o.o -R=json:r -R=html:r", 2, "-R=html: another report is written to 'r'"),
    ("a.o -o o.o -R -R=html:o.o", 2, "-o and -R both name 'o.o'"),
    ("a.o -o o.o -R -R=html:a.o", 1, "the output is the input a.o"),
    ("a.c -o o.o", 1, "a.c: is not an ELF object (a .o file"),
    ("--outline a.o -o o.o --baseline=no.json", 1, "no.json: there is no such file; a run"),
    ("@missing.rsp -o o.o", 2, "missing.rsp"),
]


def run(command, folder, **more):
    return subprocess.run(command, cwd=folder, text=True, capture_output=True, **more)


def on_terminal(command, folder):
    """What a terminal gets on standard error."""
    master, slave = pty.openpty()
    process = subprocess.Popen(command, cwd=folder, stderr=slave, stdout=subprocess.DEVNULL,
                               env=dict(os.environ, TERM="xterm"))
    os.close(slave)
    said = b""
    while True:
        try:
            part = os.read(master, 4096)
        except OSError: # EIO: nobody writes any more
            break
        if not part:
            break
        said += part
    os.close(master)
    assert process.wait() == 0, said
    return said.decode()


def check_progress(mo_link, work):
    archive = run(["gcc", "-print-file-name=libsqlite3.a"], work).stdout.strip()
    command = [mo_link, "--outline", "--reruns=2", "--dry-run", "-j1", archive]
    if not os.path.exists(archive):
        return
    assert run(command, work).stderr == ""
    said = on_terminal(command, work)
    if said: # unless it took less than a second
        lines = said.split("\r\033[K")
        assert lines[0] == lines[-1] == "" and len(lines) > 2, lines
        for line in lines[1:-1]:
            assert re.fullmatch(r"mo-link: (round \d: )?[a-z ]+, \d+ s", line), lines
    assert "\033" not in on_terminal(command + ["-v"], work)


def tree(folder):
    return sorted(os.path.join(path, name)
                  for path, _, names in os.walk(folder) for name in names)


def prepare(folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(os.path.join(folder, "dir"))
    for name, text in CODE.items():
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)
    for name in "a", "b", "dir/a", "many", "into", "kept":
        run(["gcc", "-O1", "-c", name + ".c", "-o", name + ".o"], folder, check=True)
    run(["gcc", "-O1", "-c", "-flto", "b.c", "-o", "slim.o"], folder, check=True)
    run(["gcc", "-shared", "-fPIC", "b.c", "-o", "lib.so"], folder, check=True)
    run(["ar", "rcs", "none.a"], folder, check=True)
    run(["ar", "rcs", "b.a", "b.o", "text.o"], folder, check=True)
    os.link(os.path.join(folder, "a.o"), os.path.join(folder, "link.o"))
    with open(os.path.join(folder, "a.o"), "rb") as whole, \
            open(os.path.join(folder, "dir/a.o"), "rb") as other, \
            open(os.path.join(folder, "cut.o"), "wb") as cut, \
            open(os.path.join(folder, "foreign.o"), "wb") as foreign:
        image = whole.read()
        cut.write(image[:len(image) // 2])
        image = bytearray(other.read())
        image[18] = 183  # e_machine: EM_AARCH64; nothing in it is code
        foreign.write(image)


def check_bad(mo_link, folder):
    failures = 0
    before = tree(folder)
    for line, status, words in BAD:
        result = run([mo_link] + line.split(), folder)
        lines = result.stderr.splitlines()
        good = (result.returncode == status and words in result.stderr and
                len(lines) == 1 and lines[0].startswith("mo-link: error: ") and
                result.stdout == "" and tree(folder) == before)
        if not good:
            failures += 1
            print(f"FAILED: mo-link {line}\n  status {result.returncode}, "
                  f"wanted {status} and '{words}'\n  {result.stderr}")
    return failures


def check_talk(mo_link, folder):
    """What is said beside the work: one line each on standard error, and it goes on."""
    def mo(line):
        result = run([mo_link] + line.split(), folder)
        assert result.returncode == 0, f"mo-link {line}: {result.stderr}"
        return result

    for line, words in [
            ("--keep=firts", "--keep=firts: there is no such function"),
            ("--keep=fir*", ""),
            ("--keep-section=.txt*", "--keep-section=.txt*: there is no such code section"),
            ("--keep-section=.text*", ""),
            ("--keep-file=c.o", "--keep-file=c.o: there is no such input"),
            ("--keep-file=b.o", ""),
            ("-v --reruns=9", "nothing found that pays")]:
        said = mo(f"--outline --dry-run {line} a.o b.o").stderr
        assert words in said and (words or not said), (line, said)
    kept = mo("--outline --dry-run -R=json --keep-file=man*.o many.o b.o").stdout
    assert not json.loads(kept)["helpers"]
    run(["gcc", "-g", "-O1", "-c", "a.c", "-o", "debug.o"], folder, check=True)
    for line, hinted in ("debug.o b.o", True), ("--strip-debug debug.o b.o", False):
        said = mo("--outline --dry-run -R " + line).stdout
        assert ("Hint: " in said) <= hinted, said
    report = json.loads(mo("--outline --reruns=2 --dry-run -R=json "
                           "--min-saving=1 many.o b.o").stdout)
    parts = sum(helper["saved"] for helper in report["helpers"])
    fixed = sum(one["fixed"] for one in report["rounds"]) + report["shared_entries"]
    assert report["helpers"] and parts + fixed == report["saved"]["loaded"], report
    said = mo("--outline --reruns=2 --dry-run -R many.o b.o").stdout
    assert "the set as a whole" in said
    assert "the best choice has" not in said
    assert not any("choice" in one for one in report["rounds"]), report
    said = mo("--outline --dry-run --effort=2 -R many.o b.o").stdout
    assert "the best choice has at most" in said, said
    report = json.loads(mo("--outline --dry-run --effort=2 -R=json many.o b.o").stdout)
    choice = report["rounds"][0]["choice"]
    assert 0 < choice["saved"] <= choice["at_most"], choice


def check_units_of_functions(mo, folder):
    """Of several functions of one name: the one in that unit."""
    for name in "uart", "dir/spi":
        with open(os.path.join(folder, name + ".c"), "w") as file:
            file.write("static int setup(int x) { return x * 3; }\n"
                       f"int {name[-3:]}(int x) {{ return setup(x) + setup(x + 1); }}")
        run(["gcc", "-O0", "-c", name + ".c", "-o", name + ".o"], folder, check=True)
    for option in "--explain", "--print":
        for name, count in (("setup", 2), ("uart.o:setup", 1), ("spi.o:set*", 1),
                            ("dir/*:setup", 1), ("*.o:setup", 2)):
            said = mo(f"{option}={name} uart.o dir/spi.o")
            assert said.count("setup: ") == count, (option, name, said)
    for name in "uart", "dir/spi":
        for end in ".c", ".o":
            os.remove(os.path.join(folder, name + end))


def check_folded_explained(mo, folder):
    with open(os.path.join(folder, "twins.c"), "w") as file:
        file.write("".join(f"int twin{i}(int *p) {{ return p[0] * 7 + p[1] * p[2]; }}\n"
                           for i in range(2)))
    run(["gcc", "-O2", "-c", "twins.c"], folder, check=True)
    said = mo("--explain=twin* --outline --fold --dry-run twins.o")
    assert "twin1: twins.o, 15 bytes: folded: it is a jump to twin0" in said, said
    said = mo("--explain=twin* --outline --dry-run twins.o")
    assert "folded" not in said and said.count(": open") == 2, said
    for name in "twins.c", "twins.o":
        os.remove(os.path.join(folder, name))


COLD = """int g[40], h(int); void abort(void);
int sw(int k, int x) { switch (k) { case 0: return h(x) + 3; case 1: abort();
  case 2: return x * 7; case 3: return g[x]; case 4: abort(); case 5: return h(x * 3) ^ 9;
  case 6: return x / 9; case 7: abort(); case 8: return g[x + 4] + x; case 9: abort();
  case 10: return h(x + 2); case 11: abort(); case 12: return 5 - x; default: abort(); } }
int a1(int k) { if (k > 17) abort(); return g[k]; }
int a2(int k) { if (k > 18) abort(); return g[k + 1]; }
"""


def check_tables_of_distances_folded(mo, folder):
    """Entries of a jump table lead to sw.cold; without the table in mind they seem to lead
    into the cold parts behind it, which are equal."""
    with open(os.path.join(folder, "cold.c"), "w") as file:
        file.write(COLD)
    run(["gcc", "-O2", "-c", "cold.c"], folder, check=True)
    mo("--outline --fold --dry-run cold.o")
    for name in "cold.c", "cold.o":
        os.remove(os.path.join(folder, name))


def check_profile_warnings(mo_link, folder):
    for text, said in (("", "there is no function in it"),
                       ("nobody 5\n", "none of its functions is here"),
                       ("nobody 5000\nfirst 1\n", "")):
        with open(os.path.join(folder, "p.txt"), "w") as file:
            file.write(text)
        result = run([mo_link, "--outline", "--dry-run", "--profile=p.txt", "a.o"], folder)
        assert result.returncode == 0, result.stderr
        assert (said in result.stderr) if said else not result.stderr, result.stderr
    os.remove(os.path.join(folder, "p.txt"))


def check_good(mo_link, folder):
    def mo(line):
        result = run([mo_link] + line.split(), folder)
        assert result.returncode == 0, f"mo-link {line}: {result.stderr}"
        return result.stdout

    def same(*objects):
        run(["gcc", *objects, "-o", "new"], folder, check=True)
        old, new = (run([f"./{name}"], folder) for name in ("old", "new"))
        assert (old.stdout, old.returncode) == (new.stdout, new.returncode), objects

    run(["gcc", "a.o", "b.o", "-o", "old"], folder, check=True)
    before = tree(folder)
    report = json.loads(mo("--outline --dry-run -R=json a.o b.o"))
    for key in "before", "after", "saved":
        assert sorted(report[key]) == ["eh_frame", "eh_frame_hdr", "loaded", "text"]
    for key in "rounds", "helpers", "refusals", "units":
        assert isinstance(report[key], list)
    assert report["dry_run"] and report["verified"]
    assert [unit["name"] for unit in report["units"]][:2] == ["a.o", "b.o"]
    for stage in "object code rows tokens repeats candidates plan".split():
        assert mo(f"--dump={stage} a.o b.o") != "" or stage == "rows"
    assert "first" in mo("--explain=fir* a.o b.o")
    check_units_of_functions(mo, folder)
    check_folded_explained(mo, folder)
    check_tables_of_distances_folded(mo, folder)
    check_profile_warnings(mo_link, folder)
    assert "Verified" in mo("--outline -R --dry-run a.o b.o")
    assert "usage" in mo("--help") and mo("--version").startswith("mo-link ")
    assert tree(folder) == before, "something was written"

    mo("a.o b.o -o one.o")
    same("one.o")
    page = mo("--outline --reruns=2 -R -R=json:report.json -R=html:report.html a.o b.a "
              "-o small.o")
    assert "all loaded" in page
    with open(os.path.join(folder, "report.html")) as file:
        assert "<html" in file.read()
    same("small.o")
    with open(os.path.join(folder, "report.json")) as file:
        assert json.load(file)["verified"]
    mo("--outline --reruns=2 a.o b.a -o out/")
    objects = [os.path.join("out", name) for name in os.listdir(f"{folder}/out")]
    assert {"out/a.o", "out/b.a"} <= set(objects) <= {"out/a.o", "out/b.a",
                                                     "out/mo-outlined.o"}
    same(*sorted(objects))
    members = run(["ar", "t", "out/b.a"], folder).stdout.split()
    assert members[:2] == ["b.o", "text.o"], members
    # What the source says: .text.mo_keep.
    mo("--outline kept.o -o keeping/")
    for name, changed in ("kept0", True), ("kept3", False), ("kept4", False):
        old, new = (run(["objdump", "-d", "--no-addresses", f"--disassemble={name}", file],
                        folder).stdout.splitlines()[4:] for file in
                    ("kept.o", "keeping/kept.o"))
        assert (old != new) == changed, name
    # References from another object to the middle of a function: that keeps its bytes.
    mo("--outline many.o into.o -o inner/")
    for name, changed in ("many3", False), ("many4", True), ("many6", False):
        old, new = (run(["objdump", "-d", "--no-addresses", f"--disassemble={name}", file],
                        folder).stdout.splitlines()[4:] for file in
                    ("many.o", "inner/many.o"))
        assert (old != new) == changed, name
    with open(os.path.join(folder, "words.rsp"), "w") as file:
        file.write("--outline 'a.o'\nb.o")
    mo("@words.rsp -o again.o")
    same("again.o")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mo-link", required=True)
    parser.add_argument("--work", required=True)
    arguments = parser.parse_args()
    mo_link, folder = map(os.path.abspath, (arguments.mo_link, arguments.work))
    prepare(folder)
    failures = check_bad(mo_link, folder)
    check_talk(mo_link, folder)
    check_good(mo_link, folder)
    check_progress(mo_link, folder)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
