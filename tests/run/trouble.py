#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What helps to find trouble: --bisect-limit with mo-link-bisect, --print, --remarks.

usage: trouble.py --mo-link PATH --work FOLDER
"""
import argparse
import json
import os
import re
import shutil
import stat
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BISECT = os.path.join(HERE, "../../src/mo-link-bisect")
UNIT = """int g(int x, int y) { return x * 7 + y; }
int h(int x) { return x ^ 5; }
""" + "\n".join(f"""__attribute__((noinline)) int f{i}(int *p, int x) {{
    int a = g(x, {i}), b = h(a + {i} * 7);
    p[0] = a * 3 + b; p[1] = b + 7; p[2] = a ^ b; p[3] = a - b;
    return h(p[0]) + g(a, b) + {i % 3} * p[1]; }}""" for i in range(40)) + """
int main(void) {
    int p[4], sum = 0;
""" + "".join(f"    sum += f{i}(p, sum + {i});\n" for i in range(40)) + """
    return sum & 127; }"""


def run(command, folder, status=0, **more):
    result = subprocess.run(command, cwd=folder, text=True, capture_output=True, **more)
    assert result.returncode == status, (command, result.returncode, result.stdout,
                                         result.stderr)
    return result


def names_in(folder, name):
    symbols = run(["nm", name], folder).stdout
    return set(re.findall(r"mo_outlined\.[0-9a-f]{16}", symbols))


def check_limit(mo_link, folder):
    outline = [mo_link, "--outline", "--reruns=2", "a.o", "-o"]
    run(["gcc", "a.o", "-o", "old"], folder)
    wanted = subprocess.run([os.path.join(folder, "old")]).returncode
    run(outline + ["all.o", "-R=json:all.json"], folder)
    everything = names_in(folder, "all.o")
    with open(os.path.join(folder, "all.json")) as file:
        count = len(json.load(file)["helpers"])
    grown = []
    for limit in list(range(12)) + [10 ** 6]:
        said = run(outline + ["part.o", f"--bisect-limit={limit}"], folder).stderr
        assert ("the last one is mo_outlined." in said) == (0 < limit <= count), said
        run(["gcc", "part.o", "-o", "new"], folder)
        assert subprocess.run([os.path.join(folder, "new")]).returncode == wanted
        names = names_in(folder, "part.o")
        assert not grown or names >= grown[-1], "a helper is gone under a higher limit"
        grown.append(names)
    assert not grown[0] and len(grown[3]) > 1
    with open(os.path.join(folder, "all.o"), "rb") as one, \
            open(os.path.join(folder, "part.o"), "rb") as other:
        assert one.read() == other.read(), "a limit that is not reached changes something"
    return sorted(everything)


def check_bisect(mo_link, folder, everything):
    """Any build with a certain helper in it is bad."""
    script = os.path.join(folder, "build-and-test")
    for culprit in everything[0], everything[-1]:
        with open(script, "w") as file:
            file.write(f"""#!/bin/sh
{mo_link} --outline --reruns=2 a.o -o b.o --bisect-limit="$MO_LINK_BISECT_LIMIT" || exit 1
! nm b.o | grep {culprit}
""")
        os.chmod(script, stat.S_IRWXU)
        result = run(["sh", BISECT, script], folder)
        limit = int(re.fullmatch(r"MO_LINK_BISECT_LIMIT=(\d+)\n", result.stdout).group(1))
        assert f"the last one is {culprit}" in result.stderr, (culprit, result.stderr)
        assert f"good with {limit - 1} helpers, bad with {limit}" in result.stderr
    assert "fails without any" in run(["sh", BISECT, "false"], folder, 1).stderr
    assert "does not fail" in run(["sh", BISECT, "true"], folder, 1).stderr
    assert "cannot run" in run(["sh", BISECT, "./missing"], folder, 2).stderr
    assert "usage" in run(["sh", BISECT], folder, 2).stderr
    assert "usage" in run(["sh", BISECT, "--help"], folder, 0).stdout


def check_print(mo_link, folder):
    before = sorted(os.listdir(folder))
    text = run([mo_link, "--print=f3", "--reruns=2", "a.o"], folder).stdout
    assert sorted(os.listdir(folder)) == before
    lines = text.splitlines()
    assert re.match(r"f3: a\.o \.text, \d+ bytes before, \d+ now and \d+ as", lines[0])
    left = [line[:46].strip() for line in lines[1:]]
    right = [line[46:].strip() for line in lines[1:]]
    # The left column is the function as it was, every instruction once and in order.
    wanted = run([mo_link, "--print=f3", "--min-saving=1000000", "a.o"], folder).stdout
    whole = [line[:46].strip() for line in wanted.splitlines()[1:]]
    assert [line for line in left if line] == whole, (left, whole)
    assert all(line[:46].strip() == line[46:].strip() for line in wanted.splitlines()[1:])
    entered = [i for i, line in enumerate(right) if "mo_outlined." in line]
    assert entered
    for i in entered:
        assert not left[i] and "| " in right[i + 1], lines[i + 1:i + 3]
    both = [(a, b) for a, b in zip(left, right) if a and "|" in b]
    assert any(a.split(None, 1)[1] == b.split("| ")[-1] for a, b in both), both
    nobody = run([mo_link, "--print=nobody", "a.o"], folder, status=1)
    assert "no such function" in nobody.stderr and not nobody.stdout


def check_remarks(mo_link, folder):
    run([mo_link, "--outline", "--reruns=1", "--remarks=r.yaml", "--keep=f7", "a.o", "-o",
         "all.o"], folder)
    with open(os.path.join(folder, "r.yaml")) as file:
        remarks = file.read().split("...\n")
    with open(os.path.join(folder, "r.yaml.s")) as file:
        listing = file.read().splitlines()
    assert remarks.pop() == ""
    passed = [one for one in remarks if one.startswith("--- !Passed")]
    missed = [one for one in remarks if one.startswith("--- !Missed")]
    assert len(passed) > 40 and len(passed) + len(missed) == len(remarks)
    assert any('Name: "KEEP"' in one and 'Function: "f7"' in one for one in missed)
    for one in remarks:
        line = int(re.search(r'File: "r.yaml.s", Line: (\d+)', one).group(1))
        function = re.search(r'Function: "(.*)"', one).group(1)
        if one in missed:
            assert listing[line - 1].startswith(function + ":"), one
            continue
        assert listing[line - 1].startswith("\t"), (line, one)
        head = max(i for i in range(line) if not listing[i].startswith("\t"))
        assert listing[head].startswith(function + ":"), (listing[head], one)
    tool = shutil.which("llvm-remarkutil-19") or shutil.which("llvm-remarkutil")
    if tool:
        run([tool, "yaml2bitstream", "r.yaml", "-o", "r.bin"], folder)
    else:
        print("no llvm-remarkutil: nobody else has read the remarks")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mo-link", required=True)
    parser.add_argument("--work", required=True)
    arguments = parser.parse_args()
    mo_link, work = map(os.path.abspath, (arguments.mo_link, arguments.work))
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    with open(os.path.join(work, "a.c"), "w") as file:
        file.write(UNIT)
    run(["gcc", "-O1", "-fno-inline", "-c", "a.c"], work)
    everything = check_limit(mo_link, work)
    check_bisect(mo_link, work, everything)
    check_print(mo_link, work)
    check_remarks(mo_link, work)


if __name__ == "__main__":
    sys.exit(main())
