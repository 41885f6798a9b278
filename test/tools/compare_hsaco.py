#!/usr/bin/env python3
"""Our linker of code objects against ld.lld's.

    compare_hsaco.py OBJECT.o OURS.hsaco THEIRS.hsaco

OURS and THEIRS were linked from OBJECT. They may place things differently, but must say the same: exported symbols
(name, kind, size, visibility, section), notes, flags, code and constants, byte for byte but for the relocated words, and
these must lead to the same place of the same section. Prints what differs and exits 1.
"""
import struct
import sys

SYMTAB, RELA, NOBITS, DYNSYM = 2, 4, 8, 11


class Elf:
    def __init__(self, path):
        self.path = path
        self.data = open(path, "rb").read()
        h = struct.unpack_from("<16sHHIQQQIHHHHHH", self.data)
        self.ident, self.type, self.machine, self.flags = h[0], h[1], h[2], h[7]
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", self.data, h[6] + i * h[11]) for i in range(h[12])]
        names = self.sections[h[13]]
        self.names = [self.text(names[4] + s[0]) for s in self.sections]
        self.segments = [struct.unpack_from("<IIQQQQQQ", self.data, h[5] + i * h[9]) for i in range(h[10])] if h[5] else []

    def text(self, at):
        return self.data[at:self.data.index(b"\0", at)].decode()

    def section(self, name):
        return self.sections[self.names.index(name)] if name in self.names else None

    def content(self, name):
        s = self.section(name)
        return b"" if s is None or s[1] == NOBITS else self.data[s[4]:s[4] + s[5]]

    def symbols(self, kind):
        for s in self.sections:
            if s[1] != kind:
                continue
            for at in range(s[4], s[4] + s[5], 24):
                name, info, other, index, value, size = struct.unpack_from("<IBBHQQ", self.data, at)
                yield self.text(self.sections[s[6]][4] + name), info, other, index, value, size

    def relocations(self):
        """(section, offset, type) of the object's loaded sections."""
        for s in self.sections:
            if s[1] == RELA and self.sections[s[7]][2] & 2:
                for at in range(s[4], s[4] + s[5], 24):
                    offset, info, addend = struct.unpack_from("<QQq", self.data, at)
                    yield self.names[s[7]], offset, info & 0xffffffff, addend

    def place(self, address):
        """(section, offset in it) that an address is in."""
        for name, s in zip(self.names, self.sections):
            if s[2] & 2 and s[3] <= address < s[3] + s[5]:
                return name, address - s[3]
        return None


def exported(elf):
    return sorted((name, info, other, elf.names[index], size, elf.place(value))
                  for name, info, other, index, value, size in elf.symbols(DYNSYM) if info >> 4 and index)


def relocated(obj, elf):
    """Where each relocated word of the linked file leads, and the contents with these words blanked."""
    contents = {name: bytearray(elf.content(name)) for name in (".text", ".rodata")}
    targets, pairs = [], {}
    for name, offset, kind, addend in obj.relocations():
        at, data = elf.section(name)[3] + offset, contents[name]
        size = 8 if kind == 5 else 4
        value = int.from_bytes(data[offset:offset + size], "little")
        if kind == 10:  # the low half: code is smaller than 2 GiB, so it says where
            pairs[name] = (value ^ 1 << 31) - (1 << 31) + at - addend
        elif kind == 11:  # the high half, of the low one before it
            where = pairs.pop(name)
            assert value == (where + addend - at >> 32) % 2**32, (name, offset)
            targets.append((name, offset, elf.place(where)))
        else:
            targets.append((name, offset, elf.place((at + value - addend) % 2**64)))
        data[offset:offset + size] = b"\0" * size
    assert not pairs, pairs
    return targets, contents


def notes(elf):
    return b"".join(elf.content(n) for n in elf.names if n.startswith(".note") and n != ".note.GNU-stack")


def check_segments(elf):
    loads = [s for s in elf.segments if s[0] == 1]
    for kind, flags, offset, address, _, nfile, nmemory, align in loads:
        if (address - offset) % align or nfile > nmemory:
            yield f"{elf.path}: segment at {address:#x} is not aligned as the file"
    pages = [(s[3] // 4096, (s[3] + max(s[6], 1) - 1) // 4096) for s in loads]
    if any(a[1] >= b[0] for a, b in zip(pages, pages[1:])):
        yield f"{elf.path}: two segments share a page"


def main(paths):
    obj, ours, theirs = [Elf(p) for p in paths]
    wrong = [*check_segments(ours)]
    (a_targets, a), (b_targets, b) = relocated(obj, ours), relocated(obj, theirs)
    facts = [("flags", ours.flags, theirs.flags), ("ident", ours.ident, theirs.ident), ("type", ours.type, theirs.type),
             ("exported symbols", exported(ours), exported(theirs)), ("notes", notes(ours), notes(theirs)),
             ("targets of relocations", a_targets, b_targets), ("code", a[".text"], b[".text"]),
             ("constants", a[".rodata"], b[".rodata"])]
    wrong += [f"{name} differ" for name, x, y in facts if x != y]
    if not a_targets or None in [t[2] for t in a_targets]:
        wrong.append("a relocation leads nowhere")
    print("\n".join(wrong) or f"{len(a_targets)} relocations, {len(exported(ours))} symbols: alike")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
