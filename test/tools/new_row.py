#!/usr/bin/env python3
"""Who must decide about a new row of a table? Compiles the tree with one more row and lists the places where the build stops.

    new_row.py BUILD [KIND...] [-v]

KIND: a row of ROWS below. The row is added in a copy of the table alone; every C file that sees the table is compiled against it. A line for
each KIND: how many places stop the build, and which (FILE: what). A place that the compiler does not find is one that a person must know. What the
linker misses is not listed (an op's evaluator).
"""
import argparse
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# KIND: (table, how the line begins that the new one follows, the new line, what the case of a switch over the rows begins with)
ROWS = {
    "elementwise": ("ir/ops.def", 'ELEM(MUL, ', 'ELEM(NEW, "new", 2, arith, 0, 0, 1, 1, 1, INTS, "new")', r"TL_OP_"),
    "op": ("ir/ops.def", 'OP(MEET, ', 'OP(NEW, "new", 0, 0, 0, barrier, 0, F_DEBUG, FREE, "new")', "TL_OP_"),
    "elementwise, no work": ("ir/ops.def", "ELEM(MUL, ", 'ELEM(NEW, "new", 2, arith, 0, 0, "new")', "TL_OP_"),
    "reduction": ("ir/enums.def", "COMBINE(XOR, ", 'COMBINE(NEW, "new", MAX, NUMBERS, NUMBERS, OWN, NOTHING)', "TL_COMBINE_"),
    "storage type": ("ir/types.def", "DTYPE(F8E5M2FNUZ, ", 'DTYPE(NEW, "new", 8, F, "|u1", 4, 3, 7, TOP)', "(TL|TILE)_(BOOL|[IUF][0-9]|BF16|DTYPE_COUNT)"),
    "GPU": ("runtime/contract/gpu.def", "GPU(gfx1101, ", "GPU(gfx1109, ", "TL_GPU_"),
    "GPU, no roof": ("runtime/contract/gpu.def", "GPU(gfx1101, ", "GPU(gfx1109, ", "TL_GPU_"),
}


def with_row(kind):
    table, after, line, _ = ROWS[kind]
    with open(os.path.join(ROOT, table), encoding="utf-8") as f:
        lines = f.read().splitlines()
    at = next(i for i, x in enumerate(lines) if x.startswith(after))
    if line.startswith("GPU("):  # a copy, of several lines
        end = next(i for i in range(at + 1, len(lines)) if lines[i].endswith("))"))
        new = [line + "AMDGPU,"] + [re.sub(r"IS\(cache, \d+\)", "", x) if "no roof" in kind else x for x in lines[at + 1:end + 1]]
        return "\n".join(lines[:at] + new + lines[at:]) + "\n"
    return "\n".join(lines[:at + 1] + [line] + lines[at + 1:]) + "\n"


def commands(build):
    """{file: the compiler's words}, of the product's C files"""
    rules = subprocess.run(["ninja", "-C", build, "-t", "compdb"], capture_output=True, text=True, check=True).stdout
    found = {}
    for c in json.loads(rules):
        path = os.path.relpath(os.path.join(c["directory"], c["file"]), ROOT)
        if path.endswith(".c") and path.split("/")[0] in ("ir", "frontend", "passes", "codegen", "runtime", "tools"):
            found.setdefault(path, (c["directory"], shlex.split(c["command"].split(" && ")[0])))
    return found


def sees(build, table):
    """Files that were compiled with the table, as ninja knows."""
    deps = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    for block in deps.split("\n\n"):
        names = [os.path.relpath(os.path.join(build, line.strip()), ROOT) for line in block.splitlines()[1:]]
        if table in names:
            yield next(n for n in names if n.endswith(".c"))


def mentions(path, table, word):
    """Does the file itself include the table or have a switch over its rows? Others only pass it on."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return re.search(rf"case {word}|{re.escape(table)}", f.read()) is not None


def stops(job):
    """What the compiler says of a file."""
    path, (directory, words), overlay = job
    words = [w for w in words if w not in ("-g", "-O2") and not w.endswith("ccache")]
    for flag in ("-o", "-MF", "-MT"):
        i = words.index(flag)
        del words[i:i + 2]
    words = [w for w in words if w != "-MD"]
    words.insert(1, f"-I{overlay}")
    p = subprocess.run([*words, "-fsyntax-only", "-fmax-errors=0"], cwd=directory, capture_output=True, text=True)
    return [(path, m.group(2)) for m in re.finditer(r"^(.+?):\d+:(?:\d+:)? error: (.*)$", p.stderr, re.M)] if p.returncode else []


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("build")
    ap.add_argument("kinds", nargs="*")
    ap.add_argument("-j", type=int, default=os.cpu_count())
    o = ap.parse_intermixed_args()
    all_commands = commands(o.build)
    for kind in o.kinds or ROWS:
        table, word = ROWS[kind][0], ROWS[kind][3]
        with tempfile.TemporaryDirectory() as overlay, concurrent.futures.ThreadPoolExecutor(o.j) as pool:
            os.makedirs(os.path.join(overlay, os.path.dirname(table)))
            with open(os.path.join(overlay, table), "w", encoding="utf-8") as f:
                f.write(with_row(kind))
            files = sorted(f for f in set(sees(o.build, table)) & set(all_commands) if mentions(f, table, word))
            places = [x for found in pool.map(stops, [(f, all_commands[f], overlay) for f in files]) for x in found]
        row = [(table, what) for _, what in places if re.search(r"macro .* requires \d+ arguments", what)]
        places = row[:1] or places  # the rest follows from that
        print(f"{kind}: {len(places)} places of {len(files)} files stop the build")
        for path, what in places:
            print(f"  {path}: {what}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
