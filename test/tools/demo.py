#!/usr/bin/env python3
"""What `./bootstrap demo` runs after the build: every example's C program on the CPU device.

    demo.py BUILD

Kernels print sizes, their error against plain C in double precision, and their speed; programs what they compute. Pictures go to
BUILD/demo. Exit status 1 if one fails.
"""
import glob
import os
import subprocess
import sys
import time


def main(build):
    here = os.path.dirname(os.path.abspath(__file__))
    root = os.path.normpath(os.path.join(here, "..", ".."))
    programs = [p for p in sorted(glob.glob(os.path.join(root, build, "bin", "[0-9][0-9]_*"))) if os.access(p, os.X_OK)]
    failed, pictures = 0, os.path.join(root, build, "demo")
    os.makedirs(pictures, exist_ok=True)
    for program in programs:
        name = os.path.basename(program)
        start = time.time()
        p = subprocess.run([program], cwd=pictures, capture_output=True, text=True, errors="replace", env=dict(os.environ, TILE_DEVICE="cpu"))  # any bytes
        for line in p.stdout.splitlines():
            print(f"{name:15} {line}")
        if p.returncode != 0:
            failed += 1
            print(f"{name:15} FAILED with status {p.returncode} after {time.time() - start:.1f} s\n{p.stderr}")
    if not programs:
        print("no example was built")
    print("pictures are in", os.path.relpath(pictures))
    print(f"{len(programs) - failed} of {len(programs)} examples right on the CPU device")
    return 1 if failed or not programs else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
