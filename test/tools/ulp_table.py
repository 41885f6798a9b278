#!/usr/bin/env python3
"""The tables of errors in stdlib/README.md, measured by `ulp`.

    ulp_table.py [--build DIR] [--write] [--from FILE] [--types f32,f16,bf16,f64] [--stride N] [--pairs N] [NAME...]

Without --write: measures, and says where a figure is greater than the committed one, or a function of `ulp` has none (exit 1). With
it: puts what was measured into the tables; other figures stay. --from: nothing is measured, the file is what `ulp` printed. All
of it anew, on `cpu`, an hour of one core:

    ulp_table.py --write

Figures are rounded up. Those of f32 and f64 that are written must come from all arguments, so --stride goes without --write.
"""
import argparse
import math
import os
import re
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
BEGIN, END = "<!-- errors: test/tools/ulp_table.py --write -->", "<!-- end -->"
LINE = re.compile(r"^(\S+) +(f32|f16|bf16|f64) +([\d.]+) (ulp|u) of (\S+)( \+ \S+ abs\(x\))? at")
DIGITS = {"f32": 2, "f64": 2, "f16": 4, "bf16": 4}
ABSOLUTE = ("fast.tanh",)  # in units of 2^-24; in 16 bits, its half ulp comes on top, which is no figure


def measure(a):
    """[(name, type, figure as text, bound as text)], and whether all is within its bound"""
    found, ok = [], True
    if a.printed:
        with open(a.printed, encoding="utf-8") as f:
            text = f.read()
    else:
        words = [os.path.join(a.build, "test", "tools", "ulp"), "--types", a.types, "--stride", str(a.stride), "--pairs", str(a.pairs)]
        p = subprocess.run(words + a.names, stdout=subprocess.PIPE, text=True)
        text, ok = p.stdout, p.returncode == 0
    for line in text.splitlines():
        m = LINE.match(line)
        if m and not (m[1] in ABSOLUTE and m[2] != "f32"):
            scale = 10 ** DIGITS[m[2]]
            figure = f"{math.ceil(float(m[3]) * scale - 1e-9) / scale:.{DIGITS[m[2]]}f}"
            found.append((m[1], m[2], figure, m[5] + (m[6] or "") + (" u" if m[4] == "u" else "")))
        elif not m and line:
            print(line)
            ok = ok and not a.printed  # a special value that is wrong
    return found, ok


def read(text):
    """name -> {type: figure}, of all tables"""
    cells, types = {}, []
    for line in text.splitlines():
        words = [w.strip(" `") for w in line.strip().strip("|").split(" | ")]
        if words[0] == "function":
            types = words[2:]
        elif line.startswith("| `") and types:
            cells[words[0]] = dict(zip(types, words[2:]))
    return cells


def table(names, types, bounds, cells):
    lines = ["| function | bound | " + " | ".join(types) + " |", "| --- | --- | " + " | ".join("---" for _ in types) + " |"]
    return lines + [f"| `{n}` | {bounds[n]} | " + " | ".join(cells.get(n, {}).get(t, "") for t in types) + " |" for n in names]


def tables(bounds, cells):
    plain, wide = [n for n in bounds if not n.endswith("_f64")], [n for n in bounds if n.endswith("_f64")]
    return "\n".join(table(plain, ["f32", "f16", "bf16"], bounds, cells) + [""] + table(wide, ["f64"], bounds, cells))


def bounds_of(text):
    return {m[1]: m[2].strip() for m in re.finditer(r"^\| `([\w.]+)` \| ([^|]*) \|", text, re.M)}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--build", default=os.path.join(here, "..", "..", "build"))
    ap.add_argument("--write", action="store_true")
    ap.add_argument("--from", dest="printed", metavar="FILE")
    ap.add_argument("--types", default="f32,f16,bf16,f64")
    ap.add_argument("--stride", type=int, default=1)
    ap.add_argument("--pairs", type=int, default=1 << 24)
    ap.add_argument("names", nargs="*")
    a = ap.parse_args()
    if a.write and a.stride != 1:
        sys.exit("ulp_table.py: --stride goes without --write")
    path = os.path.join(here, "..", "..", "stdlib", "README.md")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    head, rest = text.split(BEGIN)
    old, tail = rest.split(END, 1)
    cells, bounds = read(old), bounds_of(old)
    found, ok = measure(a)
    if a.write:
        for name, kind, figure, bound in found:
            cells.setdefault(name, {})[kind] = figure
            bounds[name] = bound
        with open(path, "w", encoding="utf-8") as f:
            f.write(head + BEGIN + "\n" + tables(bounds, cells) + "\n" + END + tail)
    for name, kind, figure, bound in found:
        known = cells.get(name, {}).get(kind, "")
        if not known or float(figure) > float(known) or bounds.get(name) != bound:
            print(f"{name} {kind}: measured {figure} of {bound}, the table has {known or 'nothing'} of {bounds.get(name)}")
            ok = False
    print(f"{len(found)} figures, {'all as in the table' if ok else 'not as in the table'}")
    return 0 if ok and found else 1


if __name__ == "__main__":
    sys.exit(main())
