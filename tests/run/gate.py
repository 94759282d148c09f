#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The size gate: a regression that is planted in one function turns it red, by name.

usage: gate.py --mo-link PATH --work FOLDER

Also: what the report says of functions adds up, and a report of another folder, with its
objects in another place, serves as well.
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
PLANTED = "".join(f" p[{i}] = g(p[{i}], {i * i * 37}) * {i + 3};" for i in range(4, 14))


def run(command, folder, status=0):
    result = subprocess.run(command, cwd=folder, text=True, capture_output=True)
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mo-link", required=True)
    parser.add_argument("--work", required=True)
    arguments = parser.parse_args()
    work = os.path.abspath(arguments.work)
    shutil.rmtree(work, ignore_errors=True)
    check(os.path.abspath(arguments.mo_link), work)


if __name__ == "__main__":
    sys.exit(main())
