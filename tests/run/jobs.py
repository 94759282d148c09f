#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Any number of processors, the same bytes: large archives, cut into many parts.

usage: jobs.py --mo-link PATH --corpora FOLDER --work FOLDER
"""
import argparse
import os
import shutil
import subprocess
import sys

ARCHIVES = ["amd64/usr/lib/x86_64-linux-gnu/libcrypto.a",
            "arm64/usr/lib/aarch64-linux-gnu/libssl.a",
            "arm64/usr/lib/gcc/aarch64-linux-gnu/12/libstdc++.a"]
JOBS = [1, 2, 7]


def outputs(args, archive, jobs):
    """The bytes of the object and of the report."""
    paths = [os.path.join(args.work, name) for name in ("out.o", "report.json")]
    subprocess.run([args.mo_link, "--outline", "--reruns=2", "--whole-archive", archive,
                    "--effort=2", "-j%d" % jobs, "-R=json:" + paths[1], "-o",
                    paths[0]], check=True)
    found = []
    for path in paths:
        with open(path, "rb") as file:
            found.append(file.read())
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mo-link", required=True)
    parser.add_argument("--corpora", required=True)
    parser.add_argument("--work", required=True)
    args = parser.parse_args()
    shutil.rmtree(args.work, ignore_errors=True)
    os.makedirs(args.work)
    archives = [os.path.join(args.corpora, name) for name in ARCHIVES]
    archives = [path for path in archives if os.path.exists(path)]
    bad = 0
    for archive in archives:
        runs = [outputs(args, archive, jobs) for jobs in JOBS]
        for jobs, run in zip(JOBS, runs):
            if run != runs[0]:
                print("FAIL %s: -j%d differs from -j1" % (archive, jobs))
                bad = 1
    print("%d archives" % len(archives))
    return 1 if bad or not archives else 0


if __name__ == "__main__":
    sys.exit(main())
