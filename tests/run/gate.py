#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The size gate: a regression that is planted in one function turns it red, by name.

usage: gate.py --mo-link PATH --work FOLDER

Also: what the report says of functions adds up, and a report of another folder, with its
objects in another place, serves as well; and the examples of docs/ci.md do what they say.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys

BODY = """int g(int, int);
int h(int);
{functions}
"""
FUNCTION = """int f{unit}_{i}(int *p, int x) {{
    int a = g(x, {i}), b = h(a + {i} * 7);
    p[0] = a * 3 + b; p[1] = b + 7; p[2] = a ^ b; p[3] = a - b;{more}
    return h(p[0]) + g(a, b); }}"""
DOCS = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..",
                                     "docs"))
PLANTED = "".join(f" p[{i}] = g(p[{i}], {i * i * 37}) * {i + 3};" for i in range(4, 14))


def run(command, folder, status=0, **more):
    result = subprocess.run(command, cwd=folder, text=True, capture_output=True, **more)
    assert result.returncode == status, (command, result.returncode, result.stdout,
                                         result.stderr)
    return result


def compile_units(folder, planted):
    os.makedirs(folder)
    for unit in "abc":
        functions = "\n".join(
            FUNCTION.format(unit=unit, i=i, more=PLANTED if f"{unit}{i}" == planted else "")
            for i in range(12))
        with open(os.path.join(folder, unit + ".c"), "w") as file:
            file.write(BODY.format(functions=functions))
        run(["gcc", "-O1", "-c", unit + ".c"], folder)


def load(*path):
    with open(os.path.join(*path)) as file:
        return json.load(file)


def check_sums(report):
    functions = [one for unit in report["units"] for one in unit["functions"]]
    keys = [one["key"] for one in functions]
    assert len(keys) == len(set(keys)) and "a.o:fa_0" in keys
    own = sum(one["after"] for one in functions)
    shared = sum(one["shared"] for one in functions if not one.get("helper"))
    helpers = sum(one["after"] for one in functions if one.get("helper"))
    assert 0 < helpers == shared, (helpers, shared)
    assert own <= report["after"]["text"] < own + 16 * len(functions)
    for side in "before", "after":
        assert sum(one[side] for one in report["sections"]) == report[side]["loaded"]


def check(mo_link, work):
    old, same, new = (os.path.join(work, name) for name in ("old", "same", "new"))
    compile_units(old, None)
    compile_units(same, None)
    compile_units(new, "b7")
    outline = [mo_link, "--outline", "--reruns=2"]
    objects = ["a.o", "b.o", "c.o"]

    run(outline + objects + ["-o", "all.o", "-R=json:size.json"], old)
    report = load(old, "size.json")
    check_sums(report)
    assert report["helpers"], "nothing to attribute"

    gate = ["--baseline=../old/size.json"]
    limits = ["--max-growth=0%", "--max-growth=section:0", "--max-growth=function:0"]
    places = [os.path.join(same, name) for name in objects]
    said = run(outline + places + gate + limits + ["-o", "all.o"], same).stdout
    assert "+0.00 %" in said and "changed" not in said, said

    # What has grown is named first in the table, whatever the limit; and the objects are
    # not there, but the report is.
    for limit, words in [
            ("0.5%", "total of all that is loaded grew"), ("64", "; most in b.o:fb_7 (+"),
            ("section:1%", "section .text grew"), ("function:64", "function b.o:fb_7 grew"),
            ("function:10%", "function b.o:fb_7 grew")]:
        result = run(outline + objects + gate + ["-R=json:new.json", "-o", "all.o",
                                                 f"--max-growth={limit}"], new, 3)
        assert words in result.stderr and len(result.stderr.splitlines()) == 1, result
        rows = result.stdout.split("Functions that changed")[1].splitlines()
        assert rows[2].split()[-5 if "over" in rows[2] else -1] == "b.o:fb_7", rows
        assert not os.path.exists(os.path.join(new, "all.o"))
        check_sums(load(new, "new.json"))
        os.remove(os.path.join(new, "new.json"))

    # Two reports, without a run.
    run(outline + objects + ["--dry-run", "-R=json:new.json"], new)
    result = run([mo_link, *gate, "--compare=new.json", "--max-growth=function:64"], new, 3)
    assert "function b.o:fb_7 grew" in result.stderr and "b.o:fb_7" in result.stdout
    assert "+0.00 %" in run([mo_link, *gate, "--compare=../old/size.json",
                             "--max-growth=0"], new).stdout
    assert "takes no inputs" in run([mo_link, "a.o", *gate, "--compare=new.json"], new,
                                    2).stderr

    # Enough room: green, and the table is still there.
    said = run(outline + objects + gate + ["--max-growth=total:100000", "--dry-run",
                                           "--max-growth=function:90000%"], new).stdout
    assert "b.o:fb_7" in said
    # Helpers keep their names when other code changes: most of them are in both.
    old_names, new_names = (
        {one["name"] for one in load(folder, "size.json")["helpers"]} for folder in (
            old, new) if not run(outline + objects + ["--dry-run", "-R=json:size.json"],
                                 folder).stderr)
    assert len(old_names & new_names) * 2 > len(old_names), (old_names, new_names)

    with open(os.path.join(new, "broken.json"), "w") as file:
        file.write('{"after": {"loaded": 12},')
    with open(os.path.join(new, "other.json"), "w") as file:
        file.write('{"after": {"loaded": 12}}')
    for baseline, status, words in [
            ("broken.json", 1, "broken.json: line 1: "),
            ("other.json", 1, "other.json: not a report"),
            ("missing.json", 1, "missing.json")]:
        result = run(outline + objects + ["--dry-run", "--baseline=" + baseline], new,
                     status)
        assert words in result.stderr and not result.stdout, result
    for line, words in [("--max-growth=1%", "needs --baseline"),
                        ("--baseline=x --max-growth=one", "'one' is no limit"),
                        ("--baseline=x --max-growth=unit:1", "'unit:1' is no limit"),
                        ("--baseline=x -R=json", "use -R=json:FILE"),
                        ("--baseline=x -R=json:x", "both name 'x'")]:
        result = run(outline + objects + ["--dry-run"] + line.split(), new, 2)
        assert words in result.stderr, result


# --- the examples of docs/ci.md, as they stand there ---

MAIN = "int main(void) { return 0; }\nint g(int a, int b) { return a * b; }\n" \
       "int h(int a) { return a + 1; }\n"
MAKEFILE = "OBJECTS = a.o b.o c.o\nCFLAGS = -O1\n"
PROJECT = """cmake_minimum_required(VERSION 3.18)
project(example C)
set(CMAKE_C_FLAGS "-O1")
enable_testing()
add_executable(prog main.c a.c b.c c.c)
"""


def example(name):
    """The indented text below a heading."""
    with open(os.path.join(DOCS, "ci.md")) as file:
        part = file.read().split(f"## {name}\n")[1].split("\n## ")[0]
    return "\n".join(line[4:] for line in part.splitlines() if line.startswith("    ")
                     or not line) + "\n"


def write(folder, name, text):
    with open(os.path.join(folder, name), "w") as file:
        file.write(text)


def plant(folder):
    """Another compilation, with the regression in it."""
    shutil.rmtree(os.path.join(folder, "planted"), ignore_errors=True)
    compile_units(os.path.join(folder, "planted"), "b7")
    shutil.move(os.path.join(folder, "planted", "b.c"), os.path.join(folder, "b.c"))


def prepare_example(work, name):
    folder = os.path.join(work, name)
    compile_units(folder, None)
    write(folder, "main.c", MAIN)
    return folder


def check_make(mo_link, work):
    folder = prepare_example(work, "make")
    write(folder, "Makefile", MAKEFILE + example("Make"))
    write(folder, "size.json", "{}")
    ours = dict(os.environ, PATH=os.path.dirname(mo_link) + ":" + os.environ["PATH"])
    make = ["make", "LDFLAGS=-no-pie", "LDLIBS=main.c"]
    # The first size has nothing to be compared with: it is accepted as it is.
    run([mo_link, "--outline", "--reruns=2", "--dry-run", "-R=json:size.new.json", "a.o", "b.o",
         "c.o"], folder)
    run(["make", "accept-size"], folder, env=ours)
    run(make + ["prog"], folder, env=ours)
    plant(folder)
    red = run(make + ["prog"], folder, 2, env=ours)
    assert "function b.o:fb_7 grew" in red.stderr, red
    run(["make", "accept-size"], folder, env=ours)
    run(make + ["prog"], folder, env=ours)


def check_ctest(mo_link, work):
    folder = prepare_example(work, "ctest")
    write(folder, "CMakeLists.txt", PROJECT + example("CTest").replace(
        "COMMAND mo-link", "COMMAND " + mo_link))
    build = ["cmake", "--build", "build"]
    run(["cmake", "-S", ".", "-B", "build"], folder)
    run(build, folder)
    objects = sorted(os.path.join(path, name) for path, _, names in os.walk(
        os.path.join(folder, "build", "CMakeFiles", "prog.dir")) for name in names
        if name.endswith(".o"))
    run([mo_link, "--outline", "--reruns=2", "--dry-run", "-R=json:size.json", *objects], folder)
    ctest = ["ctest", "--test-dir", "build", "-L", "size", "--output-on-failure"]
    run(ctest, folder)
    plant(folder)
    run(build, folder)
    red = run(ctest, folder, 8)
    assert "b.c.o:fb_7 grew" in red.stdout, red


def check_github(mo_link, work):
    folder = prepare_example(work, "github")
    text = example("GitHub")
    step = text[text.index("mo-link --outline"):text.index("shell: bash")]
    script = step.rsplit("\n", 1)[0]
    os.makedirs(os.path.join(folder, "build"))
    ours = dict(os.environ, PATH=os.path.dirname(mo_link) + ":" + os.environ["PATH"],
                GITHUB_STEP_SUMMARY=os.path.join(folder, "summary.md"))

    def workflow(status):
        for unit in "abc":
            run(["gcc", "-O1", "-c", unit + ".c", "-o", f"build/{unit}.o"], folder)
        # As GitHub calls it for `shell: bash`.
        return run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script], folder,
                   status, env=ours)
    for unit in "abc":
        run(["gcc", "-O1", "-c", unit + ".c", "-o", f"build/{unit}.o"], folder)
    run([mo_link, "--outline", "--reruns=2", "--dry-run", "-R=json:size.json",
         *(f"build/{unit}.o" for unit in "abc")], folder)
    workflow(0)
    plant(folder)
    assert "function b.o:fb_7 grew" in workflow(3).stderr
    with open(ours["GITHUB_STEP_SUMMARY"]) as file:
        assert "b.o:fb_7" in file.read()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mo-link", required=True)
    parser.add_argument("--work", required=True)
    arguments = parser.parse_args()
    work = os.path.abspath(arguments.work)
    shutil.rmtree(work, ignore_errors=True)
    mo_link = os.path.abspath(arguments.mo_link)
    check(mo_link, work)
    for name in check_make, check_ctest, check_github:
        name(mo_link, work)


if __name__ == "__main__":
    sys.exit(main())
