#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Debug information stays true.

Programs are linked from objects with -g, before and after outlining. The two are laid side
by side, instruction by instruction, from their disassembly alone; then, for every
instruction that was not outlined, and for every call that stands for some that were,

  - two readers (addr2line, llvm-symbolizer) find the same functions and lines;
  - gdb, stopped there in the running program, prints the same locals and arguments, or says
    that a value is optimized out;

and no reader complains of what it did not complain of before.
"""
import argparse
import collections
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.join(HERE, "..", "..", "fixtures")

DWARF = ["-gdwarf-5", "-gdwarf-4"]
LEVELS = ["-O0", "-Og", "-Os", "-O2"]
COMPILERS = {
    "x86_64-gcc": ["gcc"],
    "x86_64-clang": ["clang-19"],
    "aarch64-gcc": ["aarch64-linux-gnu-gcc"],
    "aarch64-clang": ["clang-19", "--target=aarch64-linux-gnu"],
}
LINKERS = {"x86_64": "gcc", "aarch64": "aarch64-linux-gnu-gcc"}
TOOLS = {"x86_64": "", "aarch64": "aarch64-linux-gnu-"}
CXX = {"gcc": "g++", "clang-19": "clang++-19", "aarch64-linux-gnu-gcc": "aarch64-linux-gnu-g++"}
PROGRAMS = ["control.c", "interp.c", "strings.c", "tables_outlined.c", "trees.c",
            "../programs-cxx/handlers.cc"]
HELPER = "mo_outlined."
VERIFY_SECONDS = 20


class Failed(Exception):
    pass


def run(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, errors="replace", **more)
    if done.returncode != 0:
        raise Failed("%s: %s" % (" ".join(command), done.stderr[-500:]))
    return done.stdout


# --- two programs side by side ---

Insn = collections.namedtuple("Insn", "address op operands to name")
JUMPS, CALLS, RETURNS = ("jmp", "b"), ("call", "bl"), ("ret", "retaa", "retab", "br")


def disassemble(path, tools):
    """Name -> list of functions, each a list of instructions without padding at its end."""
    functions = collections.defaultdict(list)
    here = None
    for line in run([tools + "objdump", "-d", "--no-show-raw-insn", "-z", path]).splitlines():
        head = re.match(r"^([0-9a-f]+) <(.*)>:$", line)
        if head:
            here = []
            functions[head.group(2)].append(here)
            continue
        body = re.match(r"^\s*([0-9a-f]+):\t(.*)$", line)
        if not body or here is None:
            continue
        text = body.group(2).split("#")[0].split("//")[0].strip()
        op, _, operands = text.partition(" " if "\t" not in text else "\t")
        target = re.search(r"\b([0-9a-f]+) <([^>]+)>", operands)
        here.append(Insn(int(body.group(1), 16), op, operands.strip(),
                         int(target.group(1), 16) if target else None,
                         target.group(2) if target else ""))
    for copies in functions.values():
        for function in copies:
            while function and function[-1].op.startswith(("nop", "xchg", "data16", "cs")):
                function.pop()
    return functions


class Sides:
    """Pairs (address before, address after) of instructions that were kept, and of the
    first instruction of each replaced sequence and what stands for it."""

    def __init__(self, before, after):
        self.place = {}  # address -> function and index of the instruction there
        for copies in after.values():
            for function in copies:
                self.place.update((i.address, (function, n)) for n, i in enumerate(function))
        self.shared = set()  # addresses that several functions lead to
        self.kept, self.sites, self.lost = [], [], 0
        for name, copies in before.items():
            others = after.get(name, [])
            if len(copies) != len(others) or name.startswith(HELPER):
                self.lost += len(copies)
                continue
            for old, new in zip(copies, others):
                self.align(name, old, new)

    def own(self):
        """Pairs where a debugger stops on behalf of one function only."""
        return sorted(p for p in self.kept + self.sites
                      if p[1] not in self.shared and not self.dispatches(p[1]))

    def dispatches(self, address):
        """Near a jump by a table on AArch64: GCC says of the register with the table's entry,
        which is a distance in code, that it still holds what the table was asked for."""
        body, here = self.place[address]
        return any(insn.op == "br" for insn in body[here:here + 4])

    def is_entry(self, insn):
        """A call of a helper, or a jump to one, or into the tail of some function."""
        if insn.op not in JUMPS + CALLS or insn.to not in self.place:
            return False
        inside = self.place[insn.to][1] > 0
        return insn.name.startswith(HELPER) or (inside and insn.op in JUMPS)

    def length(self, insn, jumped):
        """Instructions of the program that what is entered there stands for."""
        body, first = self.place[insn.to]
        # One that calls others aligns the stack by a push, which is undone at its end.
        count = -2 if not jumped and body[first].op == "push" else 0
        for here in body[first:]:
            self.shared.add(here.address)
            last = here.op in JUMPS + RETURNS
            # Where it ends in a jump to another one, that returns to the same place.
            if self.is_entry(here):
                count += self.length(here, jumped if last else False)
            else:
                count += 1
            if last:
                return count - (not jumped and here.op.startswith("ret"))
        return count

    def site(self, old, new, j):
        """How many instructions of the output are a site at new[j], where its call is."""
        # Another function may be nothing but the tail.
        if new[j].op in JUMPS and old.op not in JUMPS and new[j].to in self.place:
            return 1, new[j]
        for skip in (0, 1):
            if j + skip >= len(new) or not self.is_entry(new[j + skip]):
                continue
            if skip == 0:
                return 1, new[j]
            # The link register is kept around the call.
            saves = j + 2 < len(new) and all(re.search(r"\bx30\b", new[k].operands)
                                             for k in (j, j + 2))
            if saves:
                return 3, new[j + 1]
        return 0, None

    def align(self, name, old, new):
        i = j = 0
        while j < len(new) and i < len(old):
            count, call = self.site(old[i], new, j)
            own = call is not None and not call.name.startswith(HELPER) and \
                old[i].op in JUMPS and old[i].name.partition("+")[0] == \
                call.name.partition("+")[0]
            if count and not own:
                self.sites.append((old[i].address, new[j].address))
                i += self.length(call, call.op in JUMPS)
                j += count
                continue
            if old[i].op != new[j].op:
                raise Failed("%s: %s at %#x has become %s at %#x" %
                             (name, old[i].op, old[i].address, new[j].op, new[j].address))
            self.kept.append((old[i].address, new[j].address))
            i, j = i + 1, j + 1
        if i != len(old) or j != len(new):
            raise Failed("%s: %d of %d instructions left, %d of %d" %
                         (name, len(old) - i, len(old), len(new) - j, len(new)))


# --- what readers say ---

def resolve(command, path, addresses):
    """What the reader says of each address: functions and lines, inlined ones first."""
    text = run(command + [path], input="".join("%#x\n" % a for a in addresses))
    found, here = [], None
    for line in text.splitlines():
        if re.fullmatch(r"0x[0-9a-f]+", line):
            here = []
            found.append(here)
        elif here is not None and line:
            here.append(line)
    if len(found) != len(addresses):
        raise Failed("%s: %d answers to %d questions" % (command[0], len(found), len(addresses)))
    return found


def line_of(answer):
    """The innermost line; a column may follow it, or a discriminator."""
    return [re.sub(r" \(discriminator.*", "", line) for line in answer]


def check_readers(before, after, pairs, what, tools):
    readers = [[tools + "addr2line", "-a", "-f", "-i", "-e"],
               ["llvm-symbolizer-19", "--output-style=GNU", "--addresses", "--functions",
                "--inlines", "-e"]]
    for reader in readers:
        olds = resolve(reader, before, [a for a, _ in pairs])
        news = resolve(reader, after, [b for _, b in pairs])
        for (a, b), old, new in zip(pairs, olds, news):
            if line_of(old) != line_of(new):
                raise Failed("%s: %s at %#x is %s, and at %#x %s" %
                             (reader[0], what, a, old, b, new))


def complaints(command, limit=None):
    """Kinds of complaints, each with its number; None when it takes too long."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", timeout=limit)
    except subprocess.TimeoutExpired:
        return None
    kinds = collections.Counter()
    for line in done.stdout.splitlines():
        if re.search(r"error|warning|complaint", line, re.I):
            kinds[re.sub(r"(0x)?[0-9a-f]{3,}|\d+|\S*/(before|after)", "N", line)] += 1
    return kinds


def check_complaints(before, after, tools):
    commands = [["llvm-dwarfdump-19", "--verify"],
                [tools + "readelf", "--debug-dump=decodedline"],
                [tools + "readelf", "--debug-dump=info,ranges,loc,aranges,addr"]]
    for command in commands:
        old = complaints(command + [before], VERIFY_SECONDS)
        if old is None:
            continue  # LLVM 19 needs minutes for some of GCC's entries
        new = complaints(command + [after], 5 * VERIFY_SECONDS)
        worse = {"no end": 1} if new is None else {k: n for k, n in new.items() if n > old[k]}
        if worse:
            raise Failed("%s: %s" % (" ".join(command), worse))


# --- gdb ---

GDB = """
import gdb
gdb.execute("set pagination off")
gdb.execute("set confirm off")
gdb.execute("set disable-randomization on")
gdb.execute("set print address off")
gdb.execute("set width 0")
gdb.execute("set print frame-arguments all")
gdb.execute("set print entry-values no")
gdb.execute("set breakpoint pending off")
with open(places) as file:
    for line in file:
        gdb.execute("tbreak *" + line.strip(), to_string=True)
if remote:
    # The program waits behind its emulator's stub for a debugger.
    gdb.execute("target remote " + remote, to_string=True)
    gdb.execute("continue", to_string=True)
else:
    gdb.execute("run > /dev/null", to_string=True)
with open(output, "w") as out:
    while True:
        try:
            frame = gdb.newest_frame()
        except gdb.error:
            break
        out.write("@ %#x\\n" % frame.pc())
        for command in ("info args", "info locals", "up", "info args", "info locals"):
            try:
                out.write(gdb.execute(command, to_string=True))
            except gdb.error as problem:
                out.write("! %s\\n" % problem)
        try:
            gdb.execute("continue", to_string=True)
        except gdb.error:
            break
"""


def run_gdb(program, script, remote):
    """Natively, or by the gdb stub of qemu, which listens at a socket."""
    if not remote:
        run(["gdb", "-batch", "-nx", "-x", script, program], timeout=300)
        return
    waiting = subprocess.Popen(["qemu-aarch64", "-cpu", "max", "-L", "/usr/aarch64-linux-gnu",
                                "-g", remote, program], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(300):
            if os.path.exists(remote):
                break
            time.sleep(0.1)
        run(["gdb-multiarch", "-batch", "-nx", "-x", script, program], timeout=300)
    finally:
        waiting.kill()
        waiting.wait()


def gdb_says(program, addresses, emulated):
    """Address -> what gdb prints when the program gets there first."""
    places, output, script = (program + end for end in (".places", ".said", ".gdb.py"))
    # Not below the program: names of sockets are short.
    remote = tempfile.mktemp(prefix="mo-gdb-") if emulated else ""
    with open(places, "w") as file:
        file.writelines("%#x\n" % a for a in addresses)
    with open(script, "w") as file:
        file.write("places, output, remote = %r, %r, %r\n" % (places, output, remote) + GDB)
    run_gdb(program, script, remote)
    said, here = {}, None
    with open(output, errors="replace") as file:
        for line in file:
            if line.startswith("@ "):
                here = said.setdefault(int(line[2:], 16), [])
            else:
                here.append(line.rstrip("\n"))
    return said


def holds_many(value):
    # An address of the stack in a number is what was there before: programs of different
    # names have their stacks at different places.
    return value[:1] in "{\"'" or "{" in value or re.fullmatch(r"1407\d{11}", value)


def is_honest(old, new):
    """The same, or less."""
    if old == new:
        return True
    left, right = old.partition(" = ")[::2], new.partition(" = ")[::2]
    if left[0] != right[0]:
        return False
    # Before it is filled, an array or structure holds whatever the stack did: addresses of
    # code, for one.
    return right[1] == "<optimized out>" or (holds_many(left[1]) and
                                             holds_many(right[1]))


def check_gdb(before, after, pairs, most, emulated):
    step = max(1, len(pairs) // most)
    chosen = pairs[::step]
    olds = gdb_says(before, [a for a, _ in chosen], emulated)
    news = gdb_says(after, [b for _, b in chosen], emulated)
    count = values = less = 0
    for a, b in chosen:
        old, new = olds.get(a), news.get(b)
        if (old is None) != (new is None):
            raise Failed("gdb stops at only one of %#x and %#x" % (a, b))
        if old is None:
            continue
        count += 1
        if len(old) != len(new):
            raise Failed("gdb: %s at %#x, %s at %#x" % (old, a, new, b))
        for x, y in zip(old, new):
            values += " = " in x
            less += x != y
            if not is_honest(x, y):
                raise Failed("gdb: '%s' at %#x has become '%s' at %#x" % (x, a, y, b))
    return count, values, less


# --- the whole ---

def compile_one(kind, flags, source, made):
    compiler = list(COMPILERS[kind])
    if source.endswith(".cc"):
        compiler[0] = CXX[compiler[0]]
        flags = flags + ["-std=c++17"]
    # What the stack held before is nobody's value.
    flags = flags + ["-g", "-w", "-ftrivial-auto-var-init=zero"]
    run(compiler + flags + ["-c", os.path.join(FIXTURES, "programs", source), "-o", made])


def link(kind, source, made, program):
    target = kind.split("-")[0]
    driver = LINKERS[target]
    if source.endswith(".cc"):
        driver = CXX[driver]
    # At fixed addresses: what gdb prints of pointers to data can be compared.
    run([driver, "-no-pie", made, "-o", program, "-lm", "-lpthread"])


def compressed(path, tools):
    """Names of sections that are stored compressed."""
    rows = run([tools + "readelf", "-WS", path]).splitlines()
    return {row.split("] ")[1].split()[0] for row in rows if re.search(r" \w*C\w* +\d", row)}


def check_compressed(made, out, tools):
    lost = compressed(made, tools) - compressed(out, tools)
    if lost:
        raise Failed("no longer compressed: %s" % sorted(lost))


def check(args, kind, flags, source, folder):
    os.makedirs(folder, exist_ok=True)
    tools = TOOLS[kind.split("-")[0]]
    made, out, before, after = (os.path.join(folder, n)
                                for n in ("a.o", "b.o", "before", "after"))
    compile_one(kind, flags, source, made)
    run([args.mo_link, "--outline", "--reruns=2", made, "-o", out])
    check_compressed(made, out, tools)
    link(kind, source, made, before)
    link(kind, source, out, after)
    sides = Sides(disassemble(before, tools), disassemble(after, tools))
    check_readers(before, after, sides.kept, "an instruction", tools)
    check_readers(before, after, sides.sites, "a site", tools)
    check_complaints(before, after, tools)
    text = "%d kept, %d sites" % (len(sides.kept), len(sides.sites))
    # Without optimization the places of parameters hold nothing before the prologue's end;
    # and the standard library has locals that hold nothing at first.
    emulated = kind.startswith("aarch64")
    if "-O0" not in flags and source.endswith(".c") and \
            shutil.which("gdb-multiarch" if emulated else "gdb"):
        stops = check_gdb(before, after, sides.own(), args.stops, emulated)
        text += ", %d stops, %d values, %d less" % stops
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mo-link", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--only", default="", help="part of a case's name")
    parser.add_argument("--all", action="store_true",
                        help="every program at every level, not at one each")
    parser.add_argument("--stops", type=int, default=70,
                        help="places where gdb stops, at most about so many for each program")
    args = parser.parse_args()
    args.mo_link, args.work = os.path.abspath(args.mo_link), os.path.abspath(args.work)
    shutil.rmtree(args.work, ignore_errors=True)
    count = bad = 0
    for kind, source in itertools.product(COMPILERS, PROGRAMS):
        turn = list(COMPILERS).index(kind) + PROGRAMS.index(source)
        for number, level in enumerate(LEVELS):
            dwarf = DWARF[(number + PROGRAMS.index(source)) % 2]
            if not args.all and number != turn % len(LEVELS):
                continue
            packed = ["-gz"] if turn % 3 == 0 else []
            name = "%s%s%s%s-%s" % (kind, level, dwarf, "".join(packed),
                                    os.path.basename(source))
            if args.only not in name or not shutil.which(COMPILERS[kind][0]):
                continue
            count += 1
            try:
                said = check(args, kind, [level, dwarf] + packed, source,
                             os.path.join(args.work, name))
                print("ok   %s: %s" % (name, said), flush=True)
            except (Failed, subprocess.TimeoutExpired) as problem:
                bad += 1
                print("FAIL %s: %s" % (name, problem), flush=True)
    print("%d cases, %d failed" % (count, bad))
    return 1 if bad or not count else 0


if __name__ == "__main__":
    sys.exit(main())
