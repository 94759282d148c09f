#!/usr/bin/env python3
"""At every instruction boundary of an outlined program an unwinder finds what it should.

usage: steps.py --mo-link PATH [--work DIR] [--only SUBSTRING] [--jobs N]

Small programs of fixtures/programs-steps run one instruction at a time (under the gdb
server of qemu-user, both targets). While they run, the truth is written down: at the
entry of each function of the program its CFA, its return address and the callee-saved
registers. At each instruction boundary inside the program, helpers included, the
unwinder of cfi.py must find exactly the functions that are active, each with these CFAs,
addresses and registers. Frames of helpers, and of other code in between (the C library
calling back), are passed over.

The program is judged before and after. What compilers state wrongly before (Clang says
nothing of epilogues on AArch64) may be wrong in the same function after; nothing else.
"""
import argparse
import bisect
import concurrent.futures
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import cfi  # noqa: E402
import elf  # noqa: E402

FIXTURES = os.path.normpath(os.path.join(HERE, "..", "..", "fixtures", "programs-steps"))
HELPER = "mo_outlined."
MOST_STEPS = 400000
MASK = (1 << 64) - 1

COMPILERS = {
    ("x86_64", "gcc"): ["gcc"], ("aarch64", "gcc"): ["aarch64-linux-gnu-gcc"],
    ("x86_64", "clang"): ["clang-19", "-fasynchronous-unwind-tables"],
    ("aarch64", "clang"): ["clang-19", "--target=aarch64-linux-gnu", "-mno-outline",
                           "-fasynchronous-unwind-tables"],
}
LEVELS = {"gcc": ["-O0", "-Os", "-O2"], "clang": ["-O0", "-Oz", "-O2"]}
# Of the gdb register packet: (offset, DWARF column); the program counter is by itself.
LAYOUT = {
    "x86_64": ([(i * 8, column) for i, column in enumerate(
        [0, 3, 2, 1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15])], 128),
    "aarch64": ([(i * 8, i) for i in range(32)], 256),
}
SAVED = {"x86_64": [3, 6, 12, 13, 14, 15], "aarch64": list(range(19, 30))}
STACK = {"x86_64": 7, "aarch64": 31}


class Failed(Exception):
    pass


def must(command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise Failed("%s\n  %s" % (" ".join(command), done.stderr.decode()[:1000]))
    return done.stdout


class Remote:
    """The gdb remote serial protocol, as much of it as this needs."""

    def __init__(self, command, place):
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for _ in range(200):
            try:
                self.socket = socket.socket(socket.AF_UNIX)
                self.socket.connect(place)
                break
            except OSError:
                time.sleep(0.05)
        self.socket.settimeout(120)
        self.pending = b""

    def ask(self, text):
        data = text.encode()
        self.socket.sendall(b"$" + data + b"#%02x" % (sum(data) & 255))
        while True:
            start = self.pending.find(b"$")
            end = self.pending.find(b"#", start)
            if start >= 0 and end >= 0 and len(self.pending) >= end + 3:
                answer = self.pending[start + 1:end]
                self.pending = self.pending[end + 3:]
                self.socket.sendall(b"+")
                return answer.decode()
            more = self.socket.recv(1 << 16)
            if not more:
                return "W00"
            self.pending += more

    def close(self):
        self.socket.close()
        try:
            out = self.process.communicate(timeout=20)[0]
        except subprocess.TimeoutExpired:
            self.process.kill()
            out = self.process.communicate()[0]
        return out


class Program:
    """What is known of a linked program: its functions, which are watched, its rows."""

    def __init__(self, target, path, names):
        self.target, self.path = target, path
        with open(path, "rb") as file:
            self.elf = elf.Object(file.read())
        self.tables = cfi.Tables(self.elf)
        ranges = {}
        for symbol in self.elf.symbols:
            if symbol.type == 2 and symbol.size and 0 < symbol.section < 0xff00:
                watched = symbol.name in names or symbol.name.startswith(HELPER)
                old = ranges.get(symbol.value)
                if old is None or watched:
                    ranges[symbol.value] = (symbol.value, symbol.value + symbol.size,
                                            symbol.name, watched)
        self.ranges = sorted(ranges.values())
        self.outlined = any(symbol.startswith(HELPER) for _, _, symbol, _ in self.ranges)
        self.starts = [r[0] for r in self.ranges]

    def find(self, pc):
        """(name, watched, start) of the function around pc."""
        at = bisect.bisect_right(self.starts, pc) - 1
        if at >= 0 and pc < self.ranges[at][1]:
            return self.ranges[at][2], self.ranges[at][3], self.ranges[at][0]
        return "?", False, 0

    def instructions(self):
        """Address of every instruction of the functions that are watched."""
        tool = "objdump" if self.target == "x86_64" else "aarch64-linux-gnu-objdump"
        text = must([tool, "-d", "--no-show-raw-insn", self.path]).decode()
        found = [int(line.split(":")[0], 16) for line in text.splitlines()
                 if re.match(r" *[0-9a-f]+:\t", line)]
        return [pc for pc in found if self.find(pc)[1]]


def base_name(name):
    return name.split(".cold")[0]


class Active:
    """A function that has been entered and not left: the truth about its frame."""

    def __init__(self, name, cfa, back, saved):
        self.name, self.cfa, self.back, self.saved = name, cfa, back, saved


class Stepper:
    def __init__(self, program, remote):
        self.program, self.remote = program, remote
        self.columns, self.pc_at = LAYOUT[program.target]
        self.saved, self.stack = SAVED[program.target], STACK[program.target]
        self.is_x86 = program.target == "x86_64"
        self.active = []
        self.wrong = {}   # by function: how often
        self.first = {}   # by function: what was wrong the first time
        self.steps = self.helper_steps = 0
        self.deepest = 0
        self.cache = {}

    def look(self):
        data = bytes.fromhex(self.remote.ask("g"))
        self.registers = {column: struct.unpack_from("<Q", data, at)[0]
                          for at, column in self.columns}
        self.pc, = struct.unpack_from("<Q", data, self.pc_at)
        if self.is_x86:
            self.registers[16] = self.pc
        self.cache = {}

    def read(self, address):
        page = address & ~1023
        if page not in self.cache:
            self.cache[page] = bytes.fromhex(self.remote.ask("m%x,%x" % (page, 1024)))
        data = self.cache[page]
        if address - page + 8 > len(data):
            low = self.read_bytes(address)
            return struct.unpack("<Q", low)[0]
        return struct.unpack_from("<Q", data, address - page)[0]

    def read_bytes(self, address):
        return bytes.fromhex(self.remote.ask("m%x,8" % address))

    # --- the truth ---

    def entry(self):
        """(CFA, return address) if a function began at pc."""
        if self.is_x86:
            return self.registers[7] + 8, self.read(self.registers[7])
        return self.registers[31], self.registers[30] & cfi.CODE_BITS

    def leave(self):
        """Takes functions from the list that have just returned."""
        stack = self.registers[self.stack]
        while self.active and self.pc == self.active[-1].back and \
                stack == self.active[-1].cfa:
            self.active.pop()

    def follow(self, from_foreign):
        """Brings the list of active functions up to date."""
        stack = self.registers[self.stack]
        name, _, start = self.program.find(self.pc)
        at_entry = self.pc == start and not name.startswith(HELPER) and ".cold" not in name
        if from_foreign and not at_entry:
            while self.active and self.active[-1].cfa <= stack and \
                    base_name(self.active[-1].name) != base_name(name):
                self.active.pop()
            while self.active and self.active[-1].cfa <= stack and \
                    self.active[-1].cfa != stack:
                self.active.pop()
        if not at_entry:
            return
        cfa, back = self.entry()
        while self.active and self.active[-1].cfa < cfa:
            self.active.pop()  # left by an exception
        top = self.active[-1] if self.active else None
        if top and top.cfa == cfa and top.back == back:
            if top.name == name:
                return  # a loop to its own start
            self.active.pop()  # a tail call
        self.active.append(Active(name, cfa, back,
                                  [self.registers[r] for r in self.saved]))

    # --- the unwinder ---

    def frames(self):
        """Yields (function, watched, CFA, return address, callee-saved registers)."""
        pc, registers, is_call = self.pc, self.registers, False
        while True:
            name, watched, _ = self.program.find(pc - 1 if is_call else pc)
            found = self.program.tables.unwind(pc, registers, self.read, is_call)
            if found is None:
                return
            cfa, back, registers = found
            yield name, watched, cfa, back, [registers[r] for r in self.saved]
            if not back:
                return
            pc, is_call = back, True

    def check(self):
        wanted = list(reversed(self.active))
        found = []
        for name, watched, cfa, back, saved in self.frames():
            if len(found) == len(wanted):
                break
            want = wanted[len(found)]
            same = (cfa, back) == (want.cfa, want.back)
            if not watched or (name.startswith(HELPER) and not same):
                continue
            found.append(name)
            # A function's end may be a helper's, or another function's: its frame is
            # what counts there.
            if not (self.program.outlined and same) and base_name(name) != base_name(want.name):
                return "frame %d is %s, not %s" % (len(found), name, want.name)
            if cfa != want.cfa:
                return "frame %d (%s): CFA %#x, not %#x" % (len(found), name, cfa, want.cfa)
            if back != want.back:
                return "frame %d (%s): returns to %#x, not %#x" % (
                    len(found), name, back or 0, want.back)
            for column, have, value in zip(self.saved, saved, want.saved):
                if have != value:
                    return "frame %d (%s): register %d is %#x, not %#x" % (
                        len(found), name, column, have or 0, value)
        if len(found) < len(wanted):
            return "%d of %d frames found" % (len(found), len(wanted))
        return None

    def note(self):
        if not self.active:
            return
        self.steps += 1
        name = self.program.find(self.pc)[0]
        if name.startswith(HELPER):
            self.helper_steps += 1
        self.deepest = max(self.deepest, len(self.active))
        try:
            problem = self.check()
        except (ValueError, KeyError, IndexError, TypeError, struct.error, AssertionError) as error:
            problem = "%s: %s" % (type(error).__name__, error)
        if problem:
            top = base_name(self.active[-1].name)
            self.wrong[top] = self.wrong.get(top, 0) + 1
            self.first.setdefault(top, "at %#x (%s): %s" % (self.pc, name, problem))

    # --- running ---

    def run(self):
        for pc in self.program.instructions():
            if self.remote.ask("Z0,%x,%d" % (pc, 1 if self.is_x86 else 4)) != "OK":
                raise Failed("no breakpoint at %#x" % pc)
        answer = self.remote.ask("c")
        from_foreign = True
        while answer.startswith(("T", "S")):
            self.look()
            self.leave()
            if not self.program.find(self.pc)[1]:
                answer, from_foreign = self.remote.ask("c"), True
                continue
            self.follow(from_foreign)
            self.note()
            if self.steps > MOST_STEPS:
                raise Failed("more than %d steps" % MOST_STEPS)
            answer, from_foreign = self.remote.ask("vCont;s"), False
        return answer


def trace(target, path, names, place):
    program = Program(target, path, names)
    command = ["qemu-" + target] + (["-cpu", "max"] if target == "aarch64" else [])
    remote = Remote(command + ["-g", place, path], place)
    stepper = Stepper(program, remote)
    try:
        stepper.end = stepper.run()
    finally:
        stepper.output = remote.close()
        if os.path.exists(place):
            os.unlink(place)
    return stepper


def functions_of(path):
    """Names of the functions that an object defines."""
    with open(path, "rb") as file:
        symbols = elf.Object(file.read()).symbols
    return {s.name for s in symbols if s.type == 2 and 0 < s.section < 0xff00}


def judge(name, before, after):
    if (before.output, before.end) != (after.output, after.end):
        raise Failed("%s: behaves differently: %s -> %s" % (name, before.end, after.end))
    if before.steps < 500:
        raise Failed("%s: only %d steps were seen" % (name, before.steps))
    for function, count in after.wrong.items():
        if function not in before.wrong:
            raise Failed("%s: %s: %d of %d steps wrong, the first %s" % (
                name, function, count, after.steps, after.first[function]))
    return "%s: %d -> %d steps, %d of them in helpers, %d deep; %d functions were wrong before" % (
        name, before.steps, after.steps, after.helper_steps, after.deepest,
        len(before.wrong))


def cases():
    for source in sorted(os.listdir(FIXTURES)):
        for (target, kind), command in COMPILERS.items():
            for level in LEVELS[kind]:
                yield "%s-%s%s-%s" % (target, kind, level, source), target, command, \
                    level, os.path.join(FIXTURES, source)


def attempt(args, case):
    name, target, command, level, source = case
    folder = os.path.join(args.work, name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    made, out = os.path.join(folder, "a.o"), os.path.join(folder, "out.o")
    command, driver = list(command), list(COMPILERS[target, "gcc"])
    if source.endswith(".cc"):
        command[0] = command[0].replace("clang", "clang++").replace("gcc", "g++")
        driver[0] = driver[0].replace("gcc", "g++")
    try:
        must(command + [level, "-w", "-fno-pic", "-c", source, "-o", made])
        # Helpers want something to share: small programs are outlined at any price.
        must([args.mo_link, "--outline", "--reruns=2", made, "-o", out])
        runs = []
        for stage, item in (("before", made), ("after", out)):
            program = os.path.join(folder, stage)
            must(driver + ["-static", "-no-pie", item, "-o", program])
            runs.append(trace(target, program, functions_of(item),
                              os.path.join(folder, "gdb")))
        text = judge(name, *runs)
    except Failed as failure:
        return name, str(failure), None
    shutil.rmtree(folder, ignore_errors=True)
    return name, None, text


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mo-link", required=True)
    parser.add_argument("--work", default="/tmp/mo-link-steps")
    parser.add_argument("--only", default="")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    args.work = os.path.abspath(args.work)
    todo = [case for case in cases() if args.only in case[0]][::args.every]
    failures = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for name, failure, text in pool.map(lambda case: attempt(args, case), todo):
            failures += failure is not None
            print("FAIL %s\n  %s" % (name, failure) if failure else text, flush=True)
    print("%d passed, %d failed" % (len(todo) - failures, failures))
    return 1 if failures or not todo else 0


if __name__ == "__main__":
    sys.exit(main())
