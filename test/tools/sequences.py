#!/usr/bin/env python3
"""Random sequences of API calls under sanitizers: runtime_sequences (test/runtime/sequences.c) in build-asan and build-tsan.

    sequences.py [FIRST] [--asan N] [--tsan N] [--jobs N] [--root DIR]      seeds from FIRST on, 10000 and 2000 by default

Configures and builds what is missing. The last line is "N passed, N failed"; a failure says which seed repeats it.
"""
import argparse
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SANITIZERS = {"asan": "address,undefined", "tsan": "thread"}
DEBUG = ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS_DEBUG=-O1 -g"]
CHUNK = 250  # sequences of one process


def build(root, name, jobs):
    folder = os.path.join(root, "build-" + name)
    if not os.path.exists(os.path.join(folder, "build.ninja")):
        subprocess.run(["cmake", "-S", root, "-B", folder, "-G", "Ninja", "-DTILE_SANITIZE=" + SANITIZERS[name], *DEBUG],
                       check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", folder, "-j", str(jobs), "runtime_sequences"], check=True, stdout=subprocess.DEVNULL)
    return os.path.join(folder, "unit", "runtime_sequences")


def run(program, name, first, count):
    """How many passed; says what went wrong."""
    p = subprocess.run([program, "--seed", str(first), "--count", str(count)], capture_output=True, text=True)
    passed = re.search(r"^(\d+) passed, 0 failed", p.stdout, re.M)
    if p.returncode == 0 and passed:
        return int(passed[1])
    print(f"{name}, seeds {first} to {first + count - 1}, exit status {p.returncode}:\n{(p.stdout + p.stderr)[-6000:]}", flush=True)
    return 0


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("first", nargs="?", type=int, default=1)
    ap.add_argument("--asan", type=int, default=10000)
    ap.add_argument("--tsan", type=int, default=2000)
    ap.add_argument("--jobs", type=int, default=os.cpu_count())
    ap.add_argument("--root", default=ROOT)
    cx = ap.parse_args()
    work = []
    for name, count in (("asan", cx.asan), ("tsan", cx.tsan)):
        program = build(cx.root, name, cx.jobs) if count else None
        work += [(program, name, cx.first + i, min(CHUNK, count - i)) for i in range(0, count, CHUNK)]
    with ThreadPoolExecutor(cx.jobs) as pool:
        passed = sum(pool.map(lambda w: run(*w), work))
    failed = cx.asan + cx.tsan - passed
    print(f"{cx.asan} sequences under ASan, {cx.tsan} under TSan: {passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
