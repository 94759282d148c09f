# SPDX-License-Identifier: MIT
"""Unwinds one frame by the .eh_frame of a linked program, for tests.

    tables = cfi.Tables(elf.Object(image))
    caller = tables.unwind(pc, registers, read)     # or None: no entry for that pc

Written from DWARF 5 section 6.4 and the LSB's description of .eh_frame, for the encodings
that linkers leave behind. Shares nothing with mo-link, libgcc or libdwarf. Raises what
Python raises when the tables make no sense.
"""
import bisect
import struct

EM_X86_64 = 62
MASK = (1 << 64) - 1
CODE_BITS = (1 << 48) - 1  # an AArch64 return address without its signature


class Cursor:
    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def take(self, layout):
        value, = struct.unpack_from("<" + layout, self.data, self.at)
        self.at += struct.calcsize(layout)
        return value

    def uleb(self):
        value = shift = 0
        while True:
            byte = self.take("B")
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def sleb(self):
        start = self.at
        value = self.uleb()
        bits = 7 * (self.at - start)
        return value - (1 << bits) if value >> (bits - 1) & 1 else value

    def block(self):
        size = self.uleb()
        self.at += size
        return self.data[self.at - size:self.at]

    def pointer(self, encoding, address):
        """Of a DW_EH_PE_ encoding; `address` is where the section's first byte lies."""
        place = address + self.at
        form = encoding & 15
        if form in (1, 9):
            value = self.uleb() if form == 1 else self.sleb()
        else:
            value = self.take({0: "Q", 2: "H", 3: "I", 4: "Q", 10: "h", 11: "i",
                               12: "q"}[form])
        return (value + place) & MASK if encoding & 0x70 == 0x10 else value & MASK


class Cie:
    def __init__(self, data, at, address):
        cursor = Cursor(data, at)
        self.end = at + 4 + cursor.take("I")
        assert cursor.take("I") == 0
        version = cursor.take("B")
        end = data.index(b"\0", cursor.at)
        augmentation = data[cursor.at:end].decode()
        cursor.at = end + 1
        self.code_factor, self.data_factor = cursor.uleb(), cursor.sleb()
        self.return_column = cursor.take("B") if version == 1 else cursor.uleb()
        self.encoding, self.signal = 0, "S" in augmentation
        if augmentation.startswith("z"):
            behind = cursor.uleb()
            behind += cursor.at
            for letter in augmentation[1:]:
                if letter == "R":
                    self.encoding = cursor.take("B")
                elif letter == "L":
                    cursor.take("B")
                elif letter == "P":
                    cursor.pointer(cursor.take("B") & 0x7f, address)
            cursor.at = behind
        self.program = data[cursor.at:self.end]


class Fde:
    def __init__(self, data, at, address, cies):
        cursor = Cursor(data, at)
        end = at + 4 + cursor.take("I")
        where = cursor.at - cursor.take("I")
        if where not in cies:
            cies[where] = Cie(data, where, address)
        self.cie = cies[where]
        self.start = cursor.pointer(self.cie.encoding, address)
        self.size = cursor.pointer(self.cie.encoding & 15, address)
        size = cursor.uleb()
        cursor.at += size
        self.program = data[cursor.at:end]
        self.rows = None

    def row(self, pc):
        """(CFA rule, {column: rule}) at an address."""
        if self.rows is None:
            self.rows = rows_of(self)
            self.starts = [start for start, _, _ in self.rows]
        return self.rows[bisect.bisect_right(self.starts, pc) - 1][1:]


def rows_of(fde):
    cie, rows, stack = fde.cie, [], []
    state = [None, {}]  # CFA rule: ("register", column, offset) or ("expression", block)
    initial = {}
    pc = fde.start

    def run(program):
        nonlocal pc
        cursor = Cursor(program)
        while cursor.at < len(program):
            code = cursor.take("B")
            high, low = code & 0xc0, code & 0x3f
            advance = None
            if high == 0x40:
                advance = low
            elif high == 0x80:
                state[1][low] = ("offset", cursor.uleb() * cie.data_factor)
            elif high == 0xc0:
                restore(low)
            elif code in (2, 3, 4):
                advance = cursor.take(" BHI"[code - 1])
            elif code == 5 or code == 0x11:
                column = cursor.uleb()
                offset = cursor.uleb() if code == 5 else cursor.sleb()
                state[1][column] = ("offset", offset * cie.data_factor)
            elif code == 6:
                restore(cursor.uleb())
            elif code in (7, 8):
                state[1][cursor.uleb()] = ("undefined",) if code == 7 else ("same",)
            elif code == 9:
                column = cursor.uleb()
                state[1][column] = ("register", cursor.uleb())
            elif code == 0x0a:
                stack.append((state[0], dict(state[1])))
            elif code == 0x0b:
                state[0], state[1] = stack.pop()
            elif code == 0x0c:
                state[0] = ("register", cursor.uleb(), cursor.uleb())
            elif code == 0x0d:
                state[0] = ("register", cursor.uleb(), state[0][2])
            elif code == 0x0e:
                state[0] = ("register", state[0][1], cursor.uleb())
            elif code == 0x0f:
                state[0] = ("expression", cursor.block())
            elif code in (0x10, 0x16):
                column = cursor.uleb()
                kind = "expression" if code == 0x10 else "value"
                state[1][column] = (kind, cursor.block())
            elif code == 0x12:
                state[0] = ("register", cursor.uleb(), cursor.sleb() * cie.data_factor)
            elif code == 0x13:
                state[0] = ("register", state[0][1], cursor.sleb() * cie.data_factor)
            elif code == 0x2e:
                cursor.uleb()  # GNU_args_size: for landing pads only
            elif code not in (0, 0x2d):  # nop; negate_ra_state: signatures are dropped
                raise ValueError("unwind opcode %#x" % code)
            if advance is not None:
                rows.append((pc, state[0], dict(state[1])))
                pc += advance * cie.code_factor

    def restore(column):
        state[1].pop(column, None)
        if column in initial:
            state[1][column] = initial[column]

    run(cie.program)
    initial = dict(state[1])
    run(fde.program)
    rows.append((pc, state[0], dict(state[1])))
    return rows


def evaluate(block, registers, read, first=None):
    """A DWARF expression, of what compilers and mo-link use in unwind tables."""
    stack = [] if first is None else [first]
    cursor = Cursor(block)
    while cursor.at < len(block):
        code = cursor.take("B")
        if 0x30 <= code <= 0x4f:
            stack.append(code - 0x30)
        elif 0x70 <= code <= 0x8f:
            stack.append(registers[code - 0x70] + cursor.sleb())
        elif code == 0x92:
            column = cursor.uleb()
            stack.append(registers[column] + cursor.sleb())
        elif code in (0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f):
            stack.append(cursor.take("BbHhIiQq"[code - 8]))
        elif code in (0x10, 0x11):
            stack.append(cursor.uleb() if code == 0x10 else cursor.sleb())
        elif code == 0x06:
            stack.append(read(stack.pop() & MASK))
        elif code == 0x12:
            stack.append(stack[-1])
        elif code == 0x23:
            stack.append(stack.pop() + cursor.uleb())
        elif code in (0x1a, 0x1c, 0x22, 0x24, 0x2a):
            b, a = stack.pop(), stack.pop() & MASK
            stack.append({0x1a: lambda: a & b, 0x1c: lambda: a - b, 0x22: lambda: a + b,
                          0x24: lambda: a << b, 0x2a: lambda: int(a >= b)}[code]())
        else:
            raise ValueError("expression opcode %#x" % code)
    return stack.pop() & MASK


class Tables:
    def __init__(self, program):
        self.is_x86 = program.machine == EM_X86_64
        self.stack = 7 if self.is_x86 else 31  # column of the stack pointer
        section = next(s for s in program.sections if s.name == ".eh_frame")
        data, at, cies, fdes = section.data, 0, {}, []
        while at + 4 <= len(data):
            length, = struct.unpack_from("<I", data, at)
            if length == 0:
                break
            if struct.unpack_from("<I", data, at + 4)[0] != 0:
                fdes.append(Fde(data, at, section.address, cies))
            at += 4 + length
        self.fdes = sorted(fdes, key=lambda fde: fde.start)
        self.starts = [fde.start for fde in self.fdes]

    def fde(self, pc):
        at = bisect.bisect_right(self.starts, pc) - 1
        fde = self.fdes[at] if at >= 0 else None
        return fde if fde and pc < fde.start + fde.size else None

    def unwind(self, pc, registers, read, is_call):
        """(CFA, return address, the caller's registers) or None; `is_call`: pc is where a
        call returns to, so the row is that of the call."""
        at = pc - 1 if is_call else pc
        fde = self.fde(at)
        if fde is None:
            return None
        rule, rules = fde.row(at)
        if rule[0] == "register":
            cfa = registers[rule[1]] + rule[2] & MASK
        else:
            cfa = evaluate(rule[1], registers, read)
        caller = dict(registers)
        for column, rule in rules.items():
            if rule[0] == "offset":
                caller[column] = read(cfa + rule[1] & MASK)
            elif rule[0] == "register":
                caller[column] = registers[rule[1]]
            elif rule[0] == "expression":
                caller[column] = read(evaluate(rule[1], registers, read, cfa))
            elif rule[0] == "value":
                caller[column] = evaluate(rule[1], registers, read, cfa)
            elif rule[0] == "undefined":
                caller[column] = None
        back = caller[fde.cie.return_column]
        if back is not None and not self.is_x86:
            back &= CODE_BITS
        caller[self.stack] = cfa
        return cfa, back, caller
