#!/usr/bin/env python3
"""Which matrix instructions the library's products are done by on NVIDIA GPUs, at their defaults, and why not by warpgroups.

    matrix_instructions.py TILEC [--target sm_90a] [--sets] [--all] [NAME...]

NAME: the kernels whose names contain one; --sets: all types and options that the conformance suite has of a kernel, not its first. A line for each
kernel that has mma.sync (--all: for each with products): how many wgmma and mma.sync its code has, all forms together, and what `tilec explain`
says of each product that warpgroups do not do. The last line counts kernels.
"""
import argparse
import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from amd_asm import ROOT, library  # noqa: E402
from same_code import text_of  # noqa: E402


def reasons(tilec, row, target):
    """(line, why) of each product that each warp does for itself."""
    words = [tilec, "explain", os.path.join(ROOT, row.file), "--kernel", row.kernel, "--target", target, "--json"]
    words += [w for n, v in row.consts.items() for w in ("--const", f"{n}={v}")]
    p = subprocess.run(words, capture_output=True, text=True, check=True, env={**os.environ, "TILE_CACHE": "off"})
    for k in json.loads(p.stdout)["targets"][0]["kernels"]:
        for x in k["exchanges"]:
            if x["op"] == "dot":
                yield x["line"], x["why"]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("tilec")
    ap.add_argument("names", nargs="*")
    ap.add_argument("--target", default="sm_90a")
    ap.add_argument("--sets", action="store_true")
    ap.add_argument("--all", action="store_true")
    o = ap.parse_intermixed_args()
    count = {"without products": 0, "wgmma alone": 0, "both": 0, "mma.sync alone": 0}
    for row in library(not o.sets):
        if o.names and not any(n in row.name for n in o.names):
            continue
        text, why = text_of(o.tilec, row, o.target)
        if text is None:
            print(f"{row.name}: {why}")
            continue
        n = [len(re.findall(x, text)) for x in (r"\bwgmma\.mma_async", r"\bmma\.sync")]
        count[("wgmma alone" if not n[1] else "both") if n[0] else "mma.sync alone" if n[1] else "without products"] += 1
        if n[1] or (o.all and n[0]):
            print(f"{row.name}: {n[0]} wgmma, {n[1]} mma.sync", flush=True)
            for line, why in sorted(set(reasons(o.tilec, row, o.target))) if n[1] else ():
                print(f"    line {line}: {why}")
    print(", ".join(f"{n} {what}" for what, n in count.items()))


if __name__ == "__main__":
    sys.exit(main())
