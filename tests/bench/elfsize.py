#!/usr/bin/env python3
"""Loaded bytes of objects, archives and programs, read without any of mo-link's code.

usage: elfsize.py FILE...   prints code, eh_frame, eh_frame_hdr, lsda, loaded (a sum over all)

eh_frame_hdr of a relocatable object is what a linker will make of it: 8 bytes for each
FDE. `loaded` is every allocated section, plus that.
"""
import struct
import sys

SHF_ALLOC, SHF_EXECINSTR, SHT_NOBITS, ET_REL = 2, 4, 8, 1
NAMES = ("code", "eh_frame", "eh_frame_hdr", "lsda", "loaded")


def images(path):
    """The ELF files in a file: itself, or an archive's members."""
    data = open(path, "rb").read()
    if not data.startswith(b"!<arch>\n"):
        return [data] if data.startswith(b"\x7fELF") else []
    found, at = [], 8
    while at + 60 <= len(data):
        size = int(data[at + 48:at + 58])
        member = data[at + 60:at + 60 + size]
        if member.startswith(b"\x7fELF"):
            found.append(member)
        at += 60 + size + size % 2
    return found


def count_fdes(frame):
    count = at = 0
    while at + 8 <= len(frame):
        length, identity = struct.unpack_from("<II", frame, at)
        if length == 0:
            break
        count += identity != 0
        at += 4 + length
    return count


def sections(image):
    start, = struct.unpack_from("<Q", image, 40)
    size, count, strings = struct.unpack_from("<HHH", image, 58)
    if start == 0:
        return
    read = lambda i: struct.unpack_from("<IIQQQQIIQQ", image, start + size * i)
    count = count or read(0)[5]
    strings = read(0)[6] if strings == 0xffff else strings
    names = read(strings)[4]
    for i in range(count):
        name, kind, flags, _, offset, length = read(i)[:6]
        end = image.index(b"\0", names + name)
        yield (image[names + name:end].decode(errors="replace"), kind, flags,
               image[offset:offset + length] if kind != SHT_NOBITS else b"", length)


def measure(paths):
    total = dict.fromkeys(NAMES, 0)
    for image in (i for p in paths for i in images(p)):
        relocatable = struct.unpack_from("<H", image, 16)[0] == ET_REL
        for name, kind, flags, data, length in sections(image):
            if not flags & SHF_ALLOC:
                continue
            total["loaded"] += length
            if flags & SHF_EXECINSTR and kind != SHT_NOBITS:
                total["code"] += length
            elif name == ".eh_frame":
                total["eh_frame"] += length
                if relocatable:
                    header = 8 * count_fdes(data)
                    total["eh_frame_hdr"] += header
                    total["loaded"] += header
            elif name == ".eh_frame_hdr":
                total["eh_frame_hdr"] += length
            elif name.startswith(".gcc_except_table"):
                total["lsda"] += length
    return total


if __name__ == "__main__":
    print(" ".join("%s=%d" % item for item in measure(sys.argv[1:]).items()))
