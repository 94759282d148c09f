#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Without --outline nothing changes: the command against archives, judged by their bytes.

usage: cli.py --mo-link PATH --work FOLDER [--count N] ARCHIVE...

Three ways for each archive: as an archive into a directory, its members as loose objects
into a directory (at most N of them, spread evenly; 0 means all), and everything merged
into one object. Into a directory every section must keep its name, type, flags,
alignment, bytes and relocations, in the same order. Merged, the allocated sections must
be those of the members in their order, without the later copies of COMDAT groups, and
one .eh_frame hold all of theirs, without the FDEs of such copies.
.note.gnu.property and .note.GNU-stack become one each; what is in them is not looked at.
"""
import argparse
import collections
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import elf  # noqa: E402

MADE_ANEW = (elf.SHT_SYMTAB, elf.SHT_STRTAB, elf.SHT_RELA, elf.SHT_GROUP,
             elf.SHT_SYMTAB_SHNDX, 0)
ONE_EACH = (".note.gnu.property", ".note.GNU-stack")


class Differs(Exception):
    pass


def run(args, *words):
    subprocess.run([args.mo_link, *words], check=True)


def carried(thing):
    """The sections that are not made anew from the model on writing."""
    return [s for s in thing.sections if s.type not in MADE_ANEW]


def header(section):
    return (section.name, section.type, section.flags, section.align, section.entry_size,
            section.size)


def meaning(thing, reloc):
    """A relocation without symbol numbers: those are given anew."""
    offset, kind, index, addend = reloc
    symbol = thing.symbols[index]
    section = thing.symbol_section(index)
    return (offset, kind, addend, symbol.name, symbol.type, symbol.bind, symbol.value,
            section.name if section else symbol.section)


def in_order(relocs):
    """Assemblers do not always write them by offset; those of one field keep their order."""
    return sorted(relocs, key=lambda reloc: reloc[0])


def same_section(name, old_object, old, new_object, new):
    place = "%s: %s" % (name, old.name)
    if header(old) != header(new):
        raise Differs("%s: header %s became %s" % (place, header(old), header(new)))
    if old.data != new.data:
        raise Differs("%s: bytes differ" % place)
    if [meaning(old_object, r) for r in in_order(old.relocs)] != \
            [meaning(new_object, r) for r in in_order(new.relocs)]:
        raise Differs("%s: relocations differ" % place)


def names_of(thing):
    return collections.Counter(
        (s.name, s.bind, s.type, s.other, s.value, s.size, s.section >= elf.SHN_LORESERVE)
        for s in thing.symbols[1:])


def group_names(thing):
    return [(thing.symbols[signature].name, flags, len(listed))
            for signature, flags, listed in thing.groups]


def same_object(name, old, new):
    before, after = carried(old), carried(new)
    if [s.name for s in before] != [s.name for s in after]:
        raise Differs("%s: other sections" % name)
    for pair in zip(before, after):
        same_section(name, old, pair[0], new, pair[1])
    if names_of(old) != names_of(new):
        raise Differs("%s: other symbols" % name)
    if old.machine != new.machine or group_names(old) != group_names(new):
        raise Differs("%s: other machine or groups" % name)


def read(path):
    return [(name, elf.Object(image)) for name, image in elf.images(path)]


def same_files(before, after):
    if [n for n, _ in before] != [n for n, _ in after]:
        raise Differs("other members")
    for (member, old), (_, new) in zip(before, after):
        same_object(member, old, new)


# --- merged -------------------------------------------------------------------------------


def group_key(thing, signature):
    symbol = thing.symbols[signature]
    if symbol.type == elf.STT_SECTION:
        return thing.sections[symbol.section].name
    return symbol.name


def dropped_sections(thing, known):
    """The members of groups that came already; notes the others in `known`."""
    dropped = set()
    for signature, flags, listed in thing.groups:
        if not flags & elf.GRP_COMDAT:
            continue
        key = group_key(thing, signature)
        if key in known:
            dropped.update(id(thing.sections[i]) for i in listed)
        known.add(key)
    return dropped


def kept_records(thing, section, dropped):
    """The FDEs that stay: (bytes without the distance to the CIE, bytes of the CIE)."""
    target = {r[0]: thing.symbol_section(r[2]) for r in section.relocs}
    cies = {at: body for at, body, identity in elf.frame_records(section.data)
            if identity == 0}
    return [(body[:4] + body[8:], cies[at + 4 - identity])
            for at, body, identity in elf.frame_records(section.data)
            if identity != 0 and id(target.get(at + 8)) not in dropped]


class Expected:
    """What a merged object must hold: `sections` are (place, section) in their order,
    `frames` (object, section, dropped sections of the object)."""

    def __init__(self, objects):
        self.sections, self.frames = [], []
        known = set()
        for name, thing in objects:
            dropped = dropped_sections(thing, known)
            for section in carried(thing):
                if not section.flags & elf.SHF_ALLOC or section.name in ONE_EACH or \
                        id(section) in dropped:
                    continue
                if section.is_frame():
                    self.frames.append((thing, section, dropped))
                else:
                    self.sections.append(("%s: %s" % (name, section.name), section))


def fields(section):
    return [reloc[:2] for reloc in in_order(section.relocs)]


def same_merged_frames(expected, merged, frames):
    """All .eh_frame sections become one; those that end the list come last."""
    ends = [f for f in expected.frames if f[1].data.endswith(bytes(4))
            and sum(len(r[1]) for r in elf.frame_records(f[1].data)) == f[1].size - 4]
    ordered = [f for f in expected.frames if f not in ends] + ends
    whole = b"".join(section.data for _, section, _ in ordered)
    if sum(f.size for f in frames) == len(whole):
        if b"".join(f.data for f in frames) != whole:
            raise Differs(".eh_frame, merged: bytes differ")
        return 0
    want = [r for f in ordered for r in kept_records(*f)]
    have = [r for f in frames for r in kept_records(merged, f, set())]
    if want != have:
        raise Differs(".eh_frame, merged: other FDEs (%d, not %d)" % (len(have), len(want)))
    return sum(len(kept_records(t, s, set())) for t, s, _ in ordered) - len(want)


def same_merged(objects, merged):
    left = [s for s in carried(merged)
            if s.flags & elf.SHF_ALLOC and s.name not in ONE_EACH]
    expected = Expected(objects)
    others = [s for s in left if not s.is_frame()]
    for (place, old), new in zip(expected.sections, others):
        if (old.name, old.type, old.align) != (new.name, new.type, new.align):
            raise Differs("%s, merged: became %s" % (place, new.name))
        if old.data != new.data or old.size != new.size:
            raise Differs("%s, merged: bytes differ" % place)
        if fields(old) != fields(new):
            raise Differs("%s, merged: relocations differ" % place)
    if len(expected.sections) != len(others):
        raise Differs("merged: %d sections, not %d" % (len(others), len(expected.sections)))
    cut = same_merged_frames(expected, merged, [s for s in left if s.is_frame()])
    return len(left), cut


# --- the three ways -----------------------------------------------------------------------


def sample(items, count):
    if count == 0 or count >= len(items):
        return items
    return [items[len(items) * i // count] for i in range(count)]


def loose_files(objects, folder):
    """Writes members as files; of members of one name only the first, as a shell would."""
    paths = {}
    for name, image in objects:
        path = os.path.join(folder, os.path.basename(name))
        if path not in paths:
            with open(path, "wb") as file:
                file.write(image)
            paths[path] = image
    return paths


def check(args, archive):
    folder = os.path.join(args.work, "%s-%d" % (os.path.basename(archive), os.getpid()))
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder + "/loose")
    run(args, archive, "-o", folder + "/archive/")
    before = read(archive)
    same_files(before,
               read(os.path.join(folder, "archive", os.path.basename(archive))))

    paths = loose_files(sample(elf.images(archive), args.count), folder + "/loose")
    run(args, *paths, "-o", folder + "/out/")
    for path, image in paths.items():
        new, = read(os.path.join(folder, "out", os.path.basename(path)))
        same_object(path, elf.Object(image), new[1])
    if set(os.listdir(folder + "/out")) != set(os.listdir(folder + "/loose")):
        raise Differs("other files in the directory")

    run(args, "--whole-archive", archive, "-o", folder + "/merged.o")
    (_, merged), = read(folder + "/merged.o")
    sections, cut = same_merged(before, merged)
    print("%s: %d members, %d loose; merged: %d allocated sections, %d FDEs cut" % (
        archive, len(before), len(paths), sections, cut), flush=True)
    shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mo-link", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("archives", nargs="+")
    args = parser.parse_args()
    status = 0
    for archive in args.archives:
        try:
            check(args, archive)
        except (Differs, subprocess.CalledProcessError) as failure:
            print("FAIL %s: %s" % (archive, failure), flush=True)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
