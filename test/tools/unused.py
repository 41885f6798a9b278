#!/usr/bin/env python3
"""Functions and tables with external linkage that no library or tool uses. One line each, then "N unused"; exit 1 if any.

    unused.py BUILD [ROOT] [--self-test]

A symbol that a library of BUILD/lib defines is used when another object of a library or a tool refers to it (tables
made by macros included), or when a source names it twice (what a debug build uses, or its own file). A symbol that
nothing but its own file uses, tests included, should be static. Tests and benchmarks do not count as users: what they
alone need belongs in them. binutils' objdump reads the objects.
"""
import glob
import os
import re
import subprocess
import sys
from collections import Counter

# Public functions (tile.h, tilec.h, tile_jit.h) are for users.
PUBLIC = re.compile(r"tilec?_|_?llvm_blake3_")  # and what is LLVM's, in libtilec.a
# name: why it stays without a user in the tree
EXCEPTIONS = {
    "tl_fiber_boot": "written in assembly",
    "tl_fiber_swap": "written in assembly",
    "tl_core_entry": "what libtilec-core.so exports",
    "tl_jit_keeps": "a reference that keeps the drivers in the program",
}


def objdump(option, paths):
    return subprocess.run(["objdump", option, *paths], capture_output=True, text=True, check=True).stdout


def symbols(paths):
    """[(object, name, "defined" or "used")] of archives and objects. Debug information does not count as a user."""
    rows, place, counts = [], "?", True
    for line in objdump("-r", paths).splitlines():
        if re.match(r"\S+:\s+file format", line):
            place = line.split(":")[0]
        elif line.startswith("RELOCATION RECORDS FOR"):
            counts = ".debug" not in line and ".eh_frame" not in line
        else:
            m = re.match(r"[0-9a-f]+ \S+\s+(\w+)", line)
            if m and counts:
                rows.append((place, m.group(1), "used"))
    for line in objdump("-t", paths).splitlines():
        if re.match(r"\S+:\s+file format", line):
            place = line.split(":")[0]
        else:
            m = re.match(r"[0-9a-f]{16} g.{6} (\S+)\s+[0-9a-f]+ (?:\.\w+ )*(\w+)$", line)
            if m and m.group(1) != "*UND*":
                rows.append((place, m.group(2), "defined"))
    return sorted(set(rows))


def strip(text):
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
    return pattern.sub(" ", text)


def source_words(root):
    """Counter of the words of libraries and tools, headers left out."""
    words = Counter()
    for package in ("ir", "frontend", "passes", "codegen", "runtime", "tools"):
        for path in glob.glob(os.path.join(root, package, "**", "*"), recursive=True):
            if path.endswith((".c", ".re", ".y")):
                with open(path, encoding="utf-8") as f:
                    words.update(re.findall(r"\w+", strip(f.read())))
    return words


def unused(library, tools, tests, words):
    """[(name, object, what is wrong)]"""
    users = {}
    for o, n, what in library + tools + tests:
        if what == "used":
            users.setdefault(n, set()).add(o)
    of_tests = {o for o, _, _ in tests}
    found = []
    for o, n, what in sorted(library):
        if what != "defined" or PUBLIC.match(n) or n in EXCEPTIONS:
            continue
        who = users.get(n, set())
        if who - of_tests - {o}:
            continue
        inside = o in who or words[n] > 1
        if not inside:
            found.append((n, o, "only tests use it" if who & of_tests else "nothing uses it"))
        elif not who & of_tests and words[n] > 1 and who <= {o}:
            found.append((n, o, "only its own file uses it: static"))
    return found


def objects(folder):
    return glob.glob(os.path.join(folder, "**", "*.o"), recursive=True)


def self_test():
    library = [("x.o", "tl_used", "defined"), ("x.o", "tl_dead", "defined"), ("x.o", "tl_tested", "defined"),
               ("x.o", "tl_own", "defined"), ("x.o", "tile_open", "defined"), ("y.o", "tl_used", "used"),
               ("x.o", "tl_in_a_table", "defined"), ("x.o", "tl_in_a_table", "used")]
    tests = [("t.o", "tl_tested", "used"), ("t.o", "tl_used", "used")]
    words = Counter(tl_used=2, tl_dead=1, tl_tested=1, tl_own=2)
    got = {n: why.split()[1] for n, _, why in unused(library, [], tests, words)}
    assert got == {"tl_dead": "uses", "tl_own": "its", "tl_tested": "tests"}, got
    print("self-test passed")
    return 0


def main(args):
    if "--self-test" in args:
        return self_test()
    build = args[0]
    root = args[1] if len(args) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    libraries = [p for p in glob.glob(os.path.join(build, "lib", "*.a"))]
    tools = symbols(objects(os.path.join(build, "tools")))
    tests = symbols(objects(os.path.join(build, "test")))
    library = symbols(libraries)
    found = unused(library, tools, tests, source_words(root))
    stale = sorted(set(EXCEPTIONS) - {name for _, name, what in library if what == "defined"})
    for n, o, why in found:
        print(f"{o}: {n}: {why}")
    for n in stale:
        print(f"EXCEPTIONS: {n} is not defined any more")
    print(f"{len(found) + len(stale)} unused")
    return 1 if found or stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
