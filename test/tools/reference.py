#!/usr/bin/env python3
"""The parts of frontend/LANGUAGE.md that other files say better: each block between `<!-- NAME: ... -->` and `<!-- end -->`.

    reference.py ROOT [--write]    without --write: says which blocks are stale, exit 1 if one is

    grammar    frontend/grammar.y, for readers (ebnf.py)
    builtins   the functions of frontend/builtins.def
    ulp        the errors of std.math, the tables of stdlib/README.md
"""
import os
import re
import sys

import ebnf

GROUPS = ["make", "shape", "choose, integer", "math", "matrix", "reduce, scan, order", "cast", "memory", "program, debug, hints"]


def parameter(text):
    name = text.split(":")[1].rstrip("?=*")
    if text.endswith("?"):
        return f"[{name}]"
    if text.endswith("="):
        return f"{name} ="
    return name + ("..." if text.endswith("*") else "")


def groups(root):
    with open(os.path.join(root, "frontend/builtins.def"), encoding="utf-8") as f:
        text = f.read().split("clang-format off */")[1]
    for block in text.strip().split("\n\n"):
        rows = re.findall(r'^BUILTIN\((\w+),\s*"([^"]*)",\s*(\w+),', block, re.M)
        if rows:
            yield [(f"{name}({', '.join(parameter(p) for p in params.split())})", fn.endswith("_later")) for name, params, fn in rows]


def builtins(root):
    lines = ["| group | functions |", "| --- | --- |"]
    found = list(groups(root))
    if len(found) != len(GROUPS):
        sys.exit(f"builtins.def has {len(found)} groups, reference.py names {len(GROUPS)}")
    for name, rows in zip(GROUPS, found):
        lines.append(f"| {name} | {' '.join(f'`{text}`' for text, later in rows if not later)} |")
    later = [text for rows in found for text, is_later in rows if is_later]
    if later:
        lines.append(f"| not yet supported | {' '.join(f'`{text}`' for text in later)} |")
    return "\n".join(lines)


def grammar(root):
    return "\n" + ebnf.listing(os.path.join(root, "frontend/grammar.y")) + "\n"


def ulp(root):
    """Every table whose head speaks of what was measured."""
    with open(os.path.join(root, "stdlib/README.md"), encoding="utf-8") as f:
        text = f.read()
    tables = [t for t in re.findall(r"^(?:\|.*\n)+", text, re.M) if "bound" in t.split("\n")[0]]
    if not tables:
        sys.exit("stdlib/README.md has no table with a column of bounds")
    return "\n" + "\n".join(tables)


BLOCKS = {"grammar": grammar, "builtins": builtins, "ulp": ulp}


def main(argv):
    path = os.path.join(argv[0], "frontend/LANGUAGE.md")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    seen, stale = [], []

    def fresh(m):
        new = f"{m[1]}\n{BLOCKS[m[2]](argv[0])}\n<!-- end -->"
        seen.append(m[2])
        stale.extend([m[2]] if new != m[0] else [])
        return new

    new = re.sub(r"(<!-- (\w+): test/tools/reference.py --write -->)\n.*?<!-- end -->", fresh, text, flags=re.S)
    if sorted(seen) != sorted(BLOCKS):
        sys.exit(f"LANGUAGE.md has the blocks {seen}, not {list(BLOCKS)}")
    if "--write" in argv:
        with open(path, "w", encoding="utf-8") as f:
            f.write(new)
        stale = []
    print(f"stale: {', '.join(stale)}: run test/tools/reference.py ROOT --write" if stale else "fresh")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
