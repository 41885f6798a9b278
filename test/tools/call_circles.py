#!/usr/bin/env python3
"""Which files of a folder call each other in circles: an arrow from A to B where A names a function that B defines.

    call_circles.py FOLDER [--arrows] [--most N]

Prints each circle with its files, then a line of totals; --arrows: first each arrow with the functions it stands for.
Exit 1 if there are more than N circles (0), so that a test can say that a folder has none.
"""
import argparse
import os
import re
import sys

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"", re.S)
DEFINED = re.compile(r"^(?!static\b)[A-Za-z_][\w *]*?[ *\n](\w+)\([^;{}]*\)\n\{", re.M)


def read(folder):
    """Name of each C file to its text without comments and strings."""
    texts = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".c"):
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                texts[name] = COMMENT.sub("", f.read())
    return texts


def arrows(texts):
    """(A, B) to the names of B's functions that A has."""
    where = {f: name for name, text in texts.items() for f in DEFINED.findall(text)}
    found = {}
    for name, text in texts.items():
        for word in set(re.findall(r"\w+", text)):
            if where.get(word, name) != name:
                found.setdefault((name, where[word]), set()).add(word)
    return found


def circles(nodes, edges):
    """The sets of more than one node that all reach each other."""
    reach = {n: {n} for n in nodes}
    grown = True
    while grown:
        grown = False
        for a, b in edges:
            new = reach[b] - reach[a]
            if new:
                reach[a] |= new
                grown = True
    return sorted({tuple(sorted(m for m in reach[n] if n in reach[m])) for n in nodes if sum(n in reach[m] for m in reach[n]) > 1})


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("folder")
    ap.add_argument("--arrows", action="store_true")
    ap.add_argument("--most", type=int, default=0)
    o = ap.parse_args()
    texts = read(o.folder)
    edges = arrows(texts)
    if o.arrows:
        for (a, b), names in sorted(edges.items()):
            print(f"{a} -> {b}: {' '.join(sorted(names))}")
    found = circles(texts, edges)
    for c in found:
        print("circle:", " ".join(c))
    print(f"{len(texts)} files, {len(edges)} arrows, {len(found)} circles of {sum(map(len, found))} files")
    return len(found) > o.most


if __name__ == "__main__":
    sys.exit(main())
