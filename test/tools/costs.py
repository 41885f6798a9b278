#!/usr/bin/env python3
"""What the words of language 1.2 cost: instructions of kernels written in them (costs_twins.py) beside their twins in older words.

    costs.py TILEC [--targets cpu:x86-64-v3,sm_90a,gfx942] [--keep DIR] [-j N] [NAME...]

A table: for each word and target the instructions of the kernel and of its twin and, where they have a loop, those of the largest innermost
one. NAME: only words whose names contain one. Exit 1 if a kernel has more than its twin, but for those in MORE.
"""
import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from costs_twins import MORE, TWINS  # noqa: E402

INSTRUCTION = re.compile(r"\s+(?:\{\s*)?(?:@!?%?\w+\s+)?([a-z][\w.]*)(?:\s|;|$)")
LABEL = re.compile(r"([.$\w]+):")
BRANCH = re.compile(r"\s+(?:@!?%?\w+\s+)?(?:j[a-z]+|bra(?:\.\w+)*|s_c?branch\w*)\s+([.$\w]+)")


def counted(text):
    """(instructions, those of the largest innermost loop or 0)"""
    place, loops, count = {}, [], 0
    for line in text.splitlines():
        label, jump, found = LABEL.match(line), BRANCH.match(line), INSTRUCTION.match(line)
        if label:
            place[label.group(1)] = count
        if not found or found.group(1).startswith("."):
            continue
        count += 1
        if jump and jump.group(1) in place:
            loops.append((place[jump.group(1)], count))
    inner = [(a, b) for a, b in loops if not any(a <= c and d <= b and (c, d) != (a, b) for c, d in loops)]
    return count, max((b - a for a, b in inner), default=0)


def assembly(tilec, text, target, path):
    with open(path + ".tile", "w", encoding="utf-8") as f:
        f.write(text)
    words = [tilec, path + ".tile", "--target", target, "--emit", "ptx" if target.startswith("sm_") else "asm", "-o", path + ".s"]
    p = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "TILE_CACHE": "off"})
    if p.returncode:
        raise SystemExit(f"{path}.tile: {p.stderr}")
    with open(path + ".s", encoding="utf-8") as f:
        return f.read()


def measure(job):
    tilec, folder, name, target = job
    path = os.path.join(folder, re.sub(r"\W+", "_", f"{name}.{target}"))
    return [counted(assembly(tilec, text, target, f"{path}.{side}")) for text, side in zip(TWINS[name], ("new", "old"))]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("tilec")
    ap.add_argument("names", nargs="*")
    ap.add_argument("--targets", default="cpu:x86-64-v3,sm_90a,gfx942")
    ap.add_argument("--keep", metavar="DIR")
    ap.add_argument("-j", type=int, default=os.cpu_count())
    o = ap.parse_intermixed_args()
    targets = o.targets.split(",")
    names = [n for n in TWINS if not o.names or any(part in n for part in o.names)]
    with tempfile.TemporaryDirectory() as d, concurrent.futures.ThreadPoolExecutor(o.j) as pool:
        folder = o.keep or d
        os.makedirs(folder, exist_ok=True)
        jobs = [(o.tilec, folder, n, t) for n in names for t in targets]
        got = dict(zip([j[2:] for j in jobs], pool.map(measure, jobs)))
    print("| word | " + " | ".join(targets) + " |\n" + "| --- " * (len(targets) + 1) + "|")
    bad = []
    for name in names:
        cells = []
        for target in targets:
            (new, loop), (old, loop_of_old) = got[name, target]
            cells.append(f"{new} {old}" + (f", loop {loop} {loop_of_old}" if loop or loop_of_old else ""))
            if new > old or loop > loop_of_old:
                cells[-1] += " (more)"
                bad += [(name, target)] if name not in MORE else []
        print(f"| {name} | " + " | ".join(cells) + " |")
    for name in names:
        if name in MORE:
            print(f"more: {name}: {MORE[name]}")
    print(f"{len(names) * len(targets)} pairs, {len(bad)} with more instructions than their twin")
    return bool(bad)


if __name__ == "__main__":
    raise SystemExit(main())
