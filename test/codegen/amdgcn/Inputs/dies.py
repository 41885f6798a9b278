#!/usr/bin/env python3
"""Grids of many sizes on a GPU of eight dies: every program runs once, at its own place. dies.py TILEC FILE.tile"""
import subprocess
import sys

# rows and columns of programs: fewer than dies, as many, multiples, one more, one less
GRIDS = [(r, c) for r in (1, 2, 3, 5, 8, 17) for c in (1, 3, 4, 7)]


def run(tilec, file, device, r, c):
    p = subprocess.run([tilec, "run", file, "--kernel", "products", "--device", device, f"x=full(0.5)[{16 * r},16]", f"n=zeros[{r},{c}]",
                        f"y=nan[{16 * r},{16 * c}]", "--print", "n", "--print", "y"], capture_output=True, text=True)
    return p.stdout if p.returncode == 0 else p.stderr


def main(tilec, file):
    differ = 0
    for r, c in GRIDS:
        want, got = (run(tilec, file, d, r, c) for d in ("ref", "emu:gfx942"))
        once = "[" + ", ".join("1" * c) + "]"
        if want != got or once not in got:
            print(r, c, want, got)
            differ += 1
    print(f"{len(GRIDS)} grids, {differ} differ")
    return differ > 0


sys.exit(main(*sys.argv[1:]))
