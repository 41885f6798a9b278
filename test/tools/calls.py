#!/usr/bin/env python3
"""Which files of a folder call which, and in which direction: an arrow from A to B where A names a function that B defines.

    calls.py FOLDER [--arrows]            circles of files that call each other; exit 1 if there are any
    calls.py HEADER [--most N]            calls against the order in which the comment at the top of HEADER lists its package's files,
                                          callers first; exit 1 if more than N arrows go up, or a file that includes HEADER is not listed
    calls.py --self-test                  shows that a circle, and an arrow up, is seen

Prints what it finds, then a line of totals; --arrows: first each arrow with its functions. Functions that are called through
pointers make no arrow.
"""
import argparse
import os
import re
import sys

NO_CODE = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"", re.S)
DEFINED = re.compile(r"^(?!static\b)[A-Za-z_][\w *]*?[ *\n](\w+)\([^;{}]*\)\n\{", re.M)
PASTED = re.compile(r"\b(tl_\w*?)##\w+(?!\w*\()")  # names of a table of functions


def read(folder):
    """Name of each C file to its text."""
    texts = {}
    for name in sorted(n for n in os.listdir(folder) if n.endswith(".c")):
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            texts[name] = f.read()
    return texts


def arrows(texts):
    """(A, B) to the names of B's functions that A has."""
    codes = {name: NO_CODE.sub("", text) for name, text in texts.items()}
    where = {f: name for name, code in codes.items() for f in DEFINED.findall(code)}
    found = {}
    for name, code in codes.items():
        words = set(re.findall(r"\w+", code)) | {f for p in PASTED.findall(code) for f in where if f.startswith(p)}
        for word in words:
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
            if reach[b] - reach[a]:
                reach[a] |= reach[b]
                grown = True
    return sorted({tuple(sorted(m for m in reach[n] if n in reach[m])) for n in nodes if sum(n in reach[m] for m in reach[n]) > 1})


def upward(listed, edges):
    return sorted((a, b) for a, b in edges if listed.index(b) < listed.index(a))


def self_test():
    def edges(*calls):
        texts = {f"{f}.c": f"int {f}(int x)\n{{\n    return {g}(x); /* {f} */\n}}\n" for f, g in zip("abc", calls)}
        return texts, arrows(texts)

    order = ["a.c", "b.c", "c.c"]
    return (circles(*edges("b", "c", "a")) != [tuple(order)] or circles(*edges("b", "c", "min")) != [] or circles(*edges("a", "b", "b")) != [] or
            upward(order, edges("b", "c", "a")[1]) != [("c.c", "a.c")])


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("where", metavar="FOLDER or HEADER")
    ap.add_argument("--most", type=int, default=0)
    ap.add_argument("--arrows", action="store_true")
    o = ap.parse_args()
    of_header = o.where.endswith(".h")
    folder = os.path.dirname(os.path.abspath(o.where)) if of_header else o.where
    texts, missing = read(folder), []
    if of_header:
        with open(o.where, encoding="utf-8") as f:
            listed = list(dict.fromkeys(re.findall(r"\b\w+\.c\b", f.read().split("*/")[0].split("below it", 1)[-1])))
        own = f'#include "{os.path.basename(folder)}/{os.path.basename(o.where)}"'
        missing = [n for n in texts if n not in listed and own in texts[n]]
        texts = {n: texts[n] for n in listed}
    edges = arrows(texts)
    up = upward(listed, edges) if of_header else []
    for a, b in sorted(edges) if o.arrows else up:
        print(f"{a} -> {b}: {' '.join(sorted(edges[a, b]))}")
    for n in missing:
        print(f"{n} is not in the list of {os.path.basename(o.where)}")
    found = [] if of_header else circles(texts, edges)
    for c in found:
        print("circle:", " ".join(c))
    what = f"{len(up)} of them up" if of_header else f"{len(found)} circles of {sum(map(len, found))} files"
    print(f"{len(texts)} files, {len(edges)} arrows, {what}")
    return len(up) > o.most or bool(missing or found)


if __name__ == "__main__":
    sys.exit(main())
