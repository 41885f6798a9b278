#!/usr/bin/env python3
"""The built-in functions of frontend/LANGUAGE.md section 9, as frontend/builtins.def has them.

    list_builtins.py ROOT [--write]    without --write: says whether the list in the text is stale, exit 1 if it is
"""
import os
import re
import sys

BEGIN, END = "<!-- builtins: test/tools/list_builtins.py --write -->", "<!-- end -->"
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


def table(root):
    lines = ["| group | functions |", "| --- | --- |"]
    found = list(groups(root))
    if len(found) != len(GROUPS):
        sys.exit(f"builtins.def has {len(found)} groups, list_builtins.py names {len(GROUPS)}")
    for name, rows in zip(GROUPS, found):
        lines.append(f"| {name} | {' '.join(f'`{text}`' for text, later in rows if not later)} |")
    later = [text for rows in found for text, is_later in rows if is_later]
    if later:
        lines.append(f"| not yet supported | {' '.join(f'`{text}`' for text in later)} |")
    return "\n".join(lines)


def main(argv):
    path = os.path.join(argv[0], "frontend/LANGUAGE.md")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    head, rest = text.split(BEGIN)
    new = head + BEGIN + "\n" + table(argv[0]) + "\n" + END + rest.split(END)[1]
    if "--write" in argv:
        with open(path, "w", encoding="utf-8") as f:
            f.write(new)
    stale = new != text and "--write" not in argv
    print("stale: run test/tools/list_builtins.py ROOT --write" if stale else "fresh")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
