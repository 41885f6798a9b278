#!/usr/bin/env python3
"""Calls between the files of a package that go against the order in which its header lists them.

    arrows.py HEADER [--most N]

The comment at the top of HEADER lists the package's files, each above those that it calls. An arrow is a pair of files of which one names a
function of the other; one that goes up is printed with its functions. Exit 1 if more than N arrows go up, or a file is not in the list.
"""
import argparse
import os
import re
import sys


def code_of(path):
    """The text of a source without comments and strings."""
    with open(path, encoding="utf-8") as f:
        text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", f.read(), flags=re.S)
    return re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("header")
    ap.add_argument("--most", type=int, default=0)
    o = ap.parse_args()
    folder = os.path.dirname(os.path.abspath(o.header))
    with open(o.header, encoding="utf-8") as f:
        listed = list(dict.fromkeys(re.findall(r"\b\w+\.c\b", f.read().split("*/")[0].split("below it", 1)[-1])))
    code = {n: code_of(os.path.join(folder, n)) for n in listed}
    own = f'#include "{os.path.basename(folder)}/{os.path.basename(o.header)}"'
    missing = [n for n in sorted(os.listdir(folder))
               if n.endswith(".c") and n not in code and own in open(os.path.join(folder, n), encoding="utf-8").read()]
    home = {m: n for n, text in code.items() for m in re.findall(r"^(?!static)\w[\w \*]*?\b(tl_\w+)\([^;{}]*\)\s*\{", text, re.M)}
    arrows = {}
    for n, text in code.items():
        named = set(re.findall(r"\btl_\w+", text))
        for prefix in re.findall(r"\b(tl_\w*?)##\w+(?!\w*\()", text):  # a table of functions
            named |= {m for m in home if m.startswith(prefix)}
        for m in named:
            if home.get(m, n) != n:
                arrows.setdefault((n, home[m]), []).append(m)
    up = sorted((a, b) for a, b in arrows if listed.index(b) < listed.index(a))
    for a, b in up:
        print(f"{a} -> {b}: {', '.join(sorted(arrows[a, b]))}")
    for n in missing:
        print(f"{n} is not in the list of {os.path.basename(o.header)}")
    print(f"{len(listed)} files, {len(arrows)} arrows, {len(up)} of them up")
    return len(up) > o.most or bool(missing)


if __name__ == "__main__":
    sys.exit(main())
