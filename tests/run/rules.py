#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Code under rules that no ABI states (outliner/lift/special.c): what must not stand in it.

usage: rules.py --mo-link PATH --work FOLDER

Each case is some assembly that says the same in several functions, so that helpers would pay,
and what must hold of the output: a reason in the report, or two instructions side by side.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys

X86, ARM = ("gcc-12", "objdump"), ("aarch64-linux-gnu-gcc-12", "aarch64-linux-gnu-objdump")

SAME_ARM = "\n".join(f"    add x{2 + i % 4}, x{2 + (i + 1) % 4}, x{2 + i % 3}, lsl #{i}"
                     for i in range(1, 13))
SAME_X86 = "\n".join(f"    lea {i}(%rdi,%rsi,2), %{reg}" for i, reg in enumerate(
    ["rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "rax", "rcx", "rdx"]))


COUNT = 6


def functions(text, count=COUNT):
    out = [".text"]
    for i in range(count):
        out.append(f"    .globl f{i}\n    .type f{i}, %function\nf{i}:\n"
                   + text.replace("@", str(i)) + f"\n    .size f{i}, . - f{i}")
    return "\n".join(out) + "\n"


# Name, tools, assembly, reason that the report must name ("": none), pattern that must not
# occur in the disassembly of the output (or how often it must), and whether something must
# have been saved.
CASES = [
    ("exclusive", ARM, functions(
        "    mov x9, #@\n1:  ldaxr x1, [x0]\n" + SAME_ARM +
        "\n    stlxr w10, x2, [x0]\n    cbnz w10, 1b\n" + SAME_ARM + "\n    ret"),
     "", r"ldaxr[^\n]*\n(?!([^\n]*\n){12}[^\n]*stlxr)", True),
    ("eret", ARM, functions(
        "    mov sp, x0\n    ldp x8, x9, [sp, #64]\n    ldp x10, x11, [sp, #80]\n"
        "    ldp x12, x13, [sp, #96]\n    ldp x14, x15, [sp, #112]\n    ldr x30, [sp, #240]\n"
        "    ldp x0, x1, [sp]\n    ldp x2, x3, [sp, #16]\n    ldp x4, x5, [sp, #32]\n"
        "    ldp x6, x7, [sp, #48]\n    eret"),
     "", r"mov\s+x\d+, x30", False),
    ("guarded stack", ARM, functions(
        "    mov x5, #@\n" + SAME_ARM + "\n    mrs x3, s3_3_c2_c5_1\n    sysl x4, #3, c7, c7, #1\n"
        + SAME_ARM + "\n    ret"),
     "", (r"mrs\s+x3, s3_3_c2_c5_1\n[^\n]*sysl", COUNT), True),
    ("movprfx", ARM, ".arch armv8.2-a+sve\n" + functions(
        "    mov x9, #@\n    movprfx z0, z@\n    mul z0.s, p0/m, z0.s, z3.s\n" + SAME_ARM +
        "\n    ret"),
     "", r"movprfx[^\n]*\n(?![^\n]*mul)", True),
    # (The link register of a leaf is wanted behind them.)
    ("break that goes on", ARM, functions(
        "    mov x9, #@\n" + SAME_ARM + "\n    brk #0xf000\n    mov x0, #@\n    ret"),
     "", r"mov\s+x9, #0x[^\n]*\n[^\n]*\sbl\s", True),
    ("call to the host", ARM, functions(
        "    mov x9, #@\n" + SAME_ARM + "\n    hlt #0xf000\n    add x0, x0, x9\n    ret"),
     "", r"mov\s+x\d+, x30", True),
    ("stack set-up", ARM, functions("    mov x9, #@\n" + SAME_ARM + "\n    mov sp, x2\n    b f0"),
     "STACK_SETUP", "", False),
    ("stack set-up", X86, functions("    mov $@, %edi\n" + SAME_X86 +
                                    "\n    mov %rax, %rsp\n    call main\n1:  hlt\n    jmp 1b"),
     "STACK_SETUP", "", False),
    ("trap behind return", X86, functions("    add $@, %rdi\n" + SAME_X86 +
                                          "\n    ret\n    int3"), "HARDENED", "", False),
    ("barrier behind return", ARM, functions("    mov x9, #@\n" + SAME_ARM +
                                             "\n    ret\n    dsb sy\n    isb"),
     "HARDENED", "", False),
    ("return thunk", X86, functions("    add $@, %rdi\n" + SAME_X86 +
                                    "\n    jmp __x86_return_thunk"), "HARDENED", "", False),
    ("stack maps", X86, functions("    add $@, %rdi\n" + SAME_X86 + "\n    ret") +
     '    .section .llvm_stackmaps, "a"\n    .quad f1\n    .quad 8\n', "LINK_ORDER", "", False),
    ("coverage", X86, functions(
        "    sub $8, %rsp\n    add $@, %rdi\n" + SAME_X86 +
        "\n    call __sanitizer_cov_trace_pc\n    mov $1, %eax\n    add $8, %rsp\n    ret"),
     "", ("__sanitizer_cov_trace_pc", COUNT), True),
    ("pairs that only a handler reads", X86, functions(
        "    add $@, %rdi\n" + SAME_X86 + "\n1:  mov (%rdi), %rax\n    mov %rax, (%rsi)\n"
        "    test %rdx, %rdx\n    je 2f\n    jmp *%rdx\n2:  mov $-1, %eax\n    ret\n"
        '    .section .data.rel.ro.local, "aw"\n    .quad 1b, 2b\n    .text'),
     "LABEL_TAKEN", "", False),
]


def check(args, number, case):
    name, (compiler, objdump), text, reason, never, saves = case
    stem = os.path.join(args.work, f"case{number}")
    with open(stem + ".s", "w") as file:
        file.write(text)
    subprocess.run([compiler, "-c", stem + ".s", "-o", stem + ".o"], check=True)
    done = subprocess.run([args.mo_link, "--outline", "--reruns=2", "--no-veneers", "-R=json",
                           stem + ".o", "-o", stem + ".out.o"], capture_output=True, text=True)
    if done.returncode != 0:
        return done.stderr
    report = json.loads(done.stdout)
    reasons = {refusal["reason"] for refusal in report["refusals"]}
    if reason and reason not in reasons:
        return f"no {reason} in {sorted(reasons)}"
    if saves != (report["saved"]["text"] > 0) and (saves or reason):
        return f"{report['saved']['text']} bytes saved"
    code = subprocess.run([objdump, "-dr", "--no-show-raw-insn", stem + ".out.o"], check=True,
                          capture_output=True, text=True).stdout
    if isinstance(never, tuple):
        times = len(re.findall(never[0], code))
        return "" if times == never[1] else f"{times} of {never[1]} are where they were"
    found = re.search(never, code) if never else None
    return f"the output has {found.group(0)!r}" if found else ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mo-link", required=True)
    parser.add_argument("--work", required=True)
    args = parser.parse_args()
    shutil.rmtree(args.work, ignore_errors=True)
    os.makedirs(args.work)
    failures = 0
    for number, case in enumerate(CASES):
        problem = check(args, number, case)
        failures += problem != ""
        print("%-32s %-8s %s" % (case[0], "x86-64" if case[1] is X86 else "AArch64",
                                 problem or "ok"))
    sys.exit(failures != 0)


if __name__ == "__main__":
    main()
