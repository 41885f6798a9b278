#!/usr/bin/env python3
"""Do two compilers make the same code of the library's kernels? For changes that are to keep what the code generator does.

    same_code.py OLD NEW [--targets cpu:x86-64-v3,sm_80,sm_90a,gfx942,gfx1100] [--sets] [-j N] [--keep DIR] [NAME...]

OLD, NEW: two programs `tilec`. NAME: the kernels whose names contain one; --sets: all types and options that the conformance suite has of a
kernel, not its first. A row of a table for each target: kernels with equal text, those that differ, and the instructions of these before and
after. Kernels that differ are listed; --keep writes both texts to DIR. Exit 1 if one compiler refuses what the other takes, or both refuse all for
a target.
"""
import argparse
import concurrent.futures
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from amd_asm import library  # noqa: E402

INSTRUCTION = re.compile(r"^\s+(?:@!?%?\w+\s+)?[a-z][\w.]*(?:\s|;|$)", re.M)


def text_of(tilec, row, target):
    """The assembly of a kernel, or the first line of what the compiler says."""
    emit = "ptx" if target.startswith("sm_") else "asm"
    words = [tilec, os.path.join(ROOT, row.file), "--kernel", row.kernel, "--target", target, "--emit", emit, "-o", "-"]
    words += [w for n, v in row.consts.items() for w in ("--const", f"{n}={v}")]
    p = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "TILE_CACHE": "off"})
    if p.returncode:
        return None, (p.stderr.strip().splitlines() or [f"exit {p.returncode}"])[0]
    return p.stdout, ""


def instructions(text):
    return sum(not m.group().lstrip().startswith(".") for m in INSTRUCTION.finditer(text))


def compare(job):
    old, new, row, target, keep = job
    (a, why_a), (b, why_b) = text_of(old, row, target), text_of(new, row, target)
    if keep and a != b:
        for side, text in (("old", a), ("new", b)):
            with open(os.path.join(keep, f"{row.name}.{target.replace(':', '_')}.{side}.s"), "w", encoding="utf-8") as f:
                f.write(text or "")
    return row, target, a, b, why_a, why_b


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("old")
    ap.add_argument("new")
    ap.add_argument("names", nargs="*")
    ap.add_argument("--targets", default="cpu:x86-64-v3,sm_80,sm_90a,gfx942,gfx1100")
    ap.add_argument("--sets", action="store_true")
    ap.add_argument("--keep", metavar="DIR")
    ap.add_argument("-j", type=int, default=os.cpu_count())
    o = ap.parse_intermixed_args()
    if o.keep:
        os.makedirs(o.keep, exist_ok=True)
    rows = [r for r in library(not o.sets) if not o.names or any(n in r.name for n in o.names)]
    jobs = [(o.old, o.new, r, t, o.keep) for t in o.targets.split(",") for r in rows]
    count = {t: [0, 0, 0, 0, 0] for t in o.targets.split(",")}
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(o.j) as pool:
        for row, target, a, b, why_a, why_b in pool.map(compare, jobs):
            c = count[target]
            if a is None or b is None:
                c[4] += 1
                if (a is None) != (b is None) or why_a != why_b:
                    bad += 1
                    print(f"{target} {row.name}: {why_a or 'compiles'} | {why_b or 'compiles'}")
            elif a == b:
                c[0] += 1
            else:
                before, after = instructions(a), instructions(b)
                c[1], c[2], c[3] = c[1] + 1, c[2] + before, c[3] + after
                print(f"{target} {row.name}: {before} instructions, now {after} ({after / before:.3f})")
    print("| target | equal | differ | their instructions before | after | refused |\n| --- | --- | --- | --- | --- | --- |")
    for target, c in count.items():
        print(f"| {target} | " + " | ".join(map(str, c)) + " |")
        if c[4] == len(rows):
            bad += 1
            print(f"{target}: no kernel compiles", file=sys.stderr)
    return bad > 0


if __name__ == "__main__":
    raise SystemExit(main())
