#!/usr/bin/env python3
"""Loaded bytes of objects, archives and programs, read without any of mo-link's code.

usage: elfsize.py FILE...   prints code, eh_frame, eh_frame_hdr, lsda, loaded (a sum over all)

eh_frame_hdr of a relocatable object is what a linker will make of it: 8 bytes for each
FDE. `loaded` is every allocated section, plus that.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import elf  # noqa: E402

NAMES = ("code", "eh_frame", "eh_frame_hdr", "lsda", "loaded")


def measure(paths):
    """Bytes of the ELF files, and of the members of the archives, by kind; one sum."""
    total = dict.fromkeys(NAMES, 0)
    for image in (image for path in paths for _, image in elf.images(path)):
        thing = elf.Object(image)
        for section in thing.sections:
            if section.flags & elf.SHF_ALLOC:
                add(total, section, thing.type == elf.ET_REL)
    return total


def add(total, section, relocatable):
    total["loaded"] += section.size
    if section.is_code():
        total["code"] += section.size
    elif section.is_frame():
        total["eh_frame"] += section.size
        if relocatable:
            records = elf.frame_records(section.data)
            header = 8 * sum(identity != 0 for _, _, identity in records)
            total["eh_frame_hdr"] += header
            total["loaded"] += header
    elif section.name == ".eh_frame_hdr":
        total["eh_frame_hdr"] += section.size
    elif section.name.startswith(".gcc_except_table"):
        total["lsda"] += section.size


if __name__ == "__main__":
    print(" ".join("%s=%d" % item for item in measure(sys.argv[1:]).items()))
