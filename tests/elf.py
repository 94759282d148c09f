# SPDX-License-Identifier: MIT
"""ELF64 little-endian objects and ar archives, read without any of mo-link's code.

    for name, image in elf.images(path): object = elf.Object(image)

Meant for tests: trusts its input, and raises whatever Python raises when that was wrong.
"""
import struct

SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_NOTE, SHT_NOBITS = 1, 2, 3, 4, 7, 8
SHT_GROUP, SHT_SYMTAB_SHNDX = 17, 18
SHF_ALLOC, SHF_EXECINSTR, SHF_GROUP = 2, 4, 0x200
SHN_XINDEX, SHN_LORESERVE, STT_SECTION, ET_REL, GRP_COMDAT = 0xffff, 0xff00, 3, 1, 1
EM_X86_64, EM_AARCH64 = 62, 183


class Section:
    """data is b"" for SHT_NOBITS; relocs: (offset, type, symbol index, addend)."""

    def __init__(self, image, at):
        (self.name_at, self.type, self.flags, self.address, self.offset, self.size,
         self.link, self.info, self.align, self.entry_size) = struct.unpack_from(
             "<IIQQQQIIQQ", image, at)
        self.data = b""
        if self.type != SHT_NOBITS:
            self.data = image[self.offset:self.offset + self.size]
        self.name = ""
        self.relocs = []

    def is_code(self):
        return bool(self.flags & SHF_EXECINSTR) and self.type != SHT_NOBITS

    def is_frame(self):
        return self.name == ".eh_frame"


class Symbol:
    """section is an index in Object.sections, or SHN_LORESERVE and up."""

    def __init__(self, image, at, names):
        name, info, self.other, self.section, self.value, self.size = \
            struct.unpack_from("<IBBHQQ", image, at)
        self.bind, self.type = info >> 4, info & 15
        self.name = text(names, name)


class Object:
    def __init__(self, image):
        self.type, self.machine = struct.unpack_from("<HH", image, 16)
        start, = struct.unpack_from("<Q", image, 40)
        size, count, names = struct.unpack_from("<HHH", image, 58)
        self.sections, self.symbols, self.groups = [], [], []
        if start == 0:
            return
        first = Section(image, start)
        count = count or first.size
        names = first.link if names == SHN_XINDEX else names
        self.sections = [Section(image, start + size * i) for i in range(count)]
        for section in self.sections:
            section.name = text(self.sections[names].data, section.name_at)
        for section in self.sections:
            self.read_special(section)

    def read_special(self, section):
        words = struct.unpack("<%dI" % (len(section.data) // 4),
                              section.data[:len(section.data) // 4 * 4])
        if section.type == SHT_SYMTAB:
            names = self.sections[section.link].data
            self.symbols = [Symbol(section.data, at, names)
                            for at in range(0, section.size, 24)]
            self.extend_symbols(self.sections.index(section))
        elif section.type == SHT_RELA:
            self.sections[section.info].relocs = [
                (offset, info & 0xffffffff, info >> 32, addend) for offset, info, addend
                in struct.iter_unpack("<QQq", section.data)]
        elif section.type == SHT_GROUP:
            self.groups.append((section.info, words[0], list(words[1:])))

    def extend_symbols(self, symtab):
        for section in self.sections:
            if section.type == SHT_SYMTAB_SHNDX and section.link == symtab:
                for symbol, (index,) in zip(self.symbols,
                                            struct.iter_unpack("<I", section.data)):
                    if symbol.section == SHN_XINDEX:
                        symbol.section = index

    def symbol_section(self, index):
        """The Section in which a symbol is defined, or None."""
        number = self.symbols[index].section
        defined = 0 < number < SHN_LORESERVE or SHN_XINDEX < number
        return self.sections[number] if defined and number < len(self.sections) else None


def text(table, at):
    return table[at:table.index(b"\0", at)].decode(errors="replace")


def is_elf(image):
    return image[:4] == b"\x7fELF"


def members(data):
    """(name, bytes) of each member of an ordinary archive, without its indices."""
    at, long_names = 8, b""
    while at + 60 <= len(data):
        name = data[at:at + 16].decode().rstrip()
        size = int(data[at + 48:at + 58])
        body = data[at + 60:at + 60 + size]
        at += 60 + size + size % 2
        if name == "//":
            long_names = body
        elif name not in ("/", "/SYM64/"):
            if name[0] == "/":
                start = int(name[1:])
                name = long_names[start:long_names.index(b"/", start)].decode()
            yield name.rstrip("/"), body


def images(path):
    """(name, bytes) of the ELF files in a file: itself, or an archive's members."""
    with open(path, "rb") as file:
        data = file.read()
    if data.startswith(b"!<arch>\n"):
        return [(name, body) for name, body in members(data) if is_elf(body)]
    return [(path, data)] if is_elf(data) else []


def frame_records(data):
    """(offset, bytes, identity) of each record of an .eh_frame; identity 0: a CIE."""
    at, found = 0, []
    while at + 8 <= len(data):
        length, identity = struct.unpack_from("<II", data, at)
        if length == 0:
            break
        found.append((at, data[at:at + 4 + length], identity))
        at += 4 + length
    return found
