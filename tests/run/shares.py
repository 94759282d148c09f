#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How much of the code of Debian's static archives is open to change.

usage: shares.py --mo-link PATH --corpora DIR

Of all bytes in functions with a symbol and a size, the share that lies in open functions
must not be less than LIMITS says: within a point of what a study of these archives found
possible before the tool existed (second column), and what has been reached since. Copies
of a COMDAT group that another member carries count as that one does. The rest is named.
"""
import argparse
import json
import os
import subprocess
import sys

DIRS = {"x86_64": ("amd64", "x86_64-linux-gnu"), "aarch64": ("arm64", "aarch64-linux-gnu")}
# (least share reached, share found possible), in percent
LIMITS = {
    ("x86_64", "stdc++"): (99.8, 99.9), ("aarch64", "stdc++"): (99.8, 100),
    ("x86_64", "sqlite3"): (99.9, 100), ("aarch64", "sqlite3"): (99.9, 98.7),
    ("x86_64", "c"): (98.0, 94.9), ("aarch64", "c"): (99.0, 97.0),
    ("x86_64", "crypto"): (98.0, 93.5), ("aarch64", "crypto"): (99.4, 96.4),
    ("x86_64", "lua5.4"): (99.9, 98), ("aarch64", "lua5.4"): (99.9, 98),
}
NOT_FUNCTIONS = ("NO_SYMBOL", "NO_FUNCTIONS")


def archive(corpora, target, name):
    root, triple = DIRS[target]
    folder = os.path.join(corpora, root, "usr", "lib")
    if name == "stdc++":
        return os.path.join(folder, "gcc", triple, "12", "libstdc++.a")
    return os.path.join(folder, triple, "lib%s.a" % name)


def refusals(mo_link, path):
    done = subprocess.run([mo_link, "--outline", "--dry-run", "-R=json", path, "-o", "all/"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        sys.exit(done.stderr.decode())
    return json.loads(done.stdout)["refusals"]


def share(found):
    bytes_of = {"open": 0, "sealed": 0, "frozen": 0}
    for item in found:
        if item["level"] in bytes_of and item["reason"] not in NOT_FUNCTIONS:
            level = "open" if item["reason"] == "DUPLICATE_COMDAT" else item["level"]
            bytes_of[level] += item["bytes"]
    return 100 * bytes_of["open"] / sum(bytes_of.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mo-link", required=True)
    parser.add_argument("--corpora", required=True)
    args = parser.parse_args()
    bad = 0
    for (target, name), (least, possible) in LIMITS.items():
        found = refusals(args.mo_link, archive(args.corpora, target, name))
        reached = share(found)
        fine = reached >= least and reached >= possible - 1
        bad += not fine
        print("%s %s lib%s: %.2f %% open (at least %.1f; %.1f was found possible)" %
              ("ok  " if fine else "FAIL", target, name, reached, least, possible))
        for item in sorted(found, key=lambda item: -item["bytes"]):
            if item["level"] in ("sealed", "frozen"):
                print("       %8d  %s" % (item["bytes"], item["reason"]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
