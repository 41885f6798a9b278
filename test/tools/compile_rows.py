#!/usr/bin/env python3
"""Every kernel of the conformance suite as code of real GPUs: what the emulator runs, the target's tools take.

    compile_rows.py [--build DIR] [--targets sm_80,gfx942] [-k SUBSTRING] [--every N] [--small] [-v]

For NVIDIA the PTX goes through ptxas when that is on PATH (else it is only emitted, and the last line says so), for AMD an
hsaco is linked. Prints what fails and, last, "N compiled, N failed"; exit 1 if any failed. --small: not the rows
that take seconds. -v: also ptxas's registers and spills.
"""
import argparse
import glob
import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test", "conformance"))
from rows import ROWS  # noqa: E402


def first_line(p):
    lines = (p.stderr + p.stdout).decode("utf-8", "replace").strip().splitlines()
    return lines[0] if lines else f"exit status {p.returncode}"


def compile_row(row, target, tilec, folder, verbose):
    """What is wrong, or None."""
    path, out = os.path.join(folder, row.name + ".tile"), os.path.join(folder, "out")
    with open(path, "w", encoding="utf-8") as f:
        f.write(row.source)
    nvidia = target.startswith("sm_")
    words = [tilec, path, "--target", target, f"--emit={'ptx' if nvidia else 'hsaco'}", "-o", out]
    words += [o for o in row.options if o in ("-g", "--check") or o.startswith("-O")]
    words += ["--kernel", row.kernel] if row.kernel else []
    for name, value in row.consts.items():
        words += ["--const", f"{name}={value}"]
    p = subprocess.run(words, capture_output=True, timeout=300)
    if p.returncode:
        return first_line(p)
    if nvidia and shutil.which("ptxas"):
        p = subprocess.run(["ptxas", "-v", f"-arch={target}", out, "-o", out + ".cubin"], capture_output=True, timeout=300)
        if p.returncode:
            return "ptxas: " + first_line(p)
        words = p.stderr.decode()
        spills = sum(int(n) for n in re.findall(r"(\d+) bytes spill", words))
        if verbose or spills:
            registers = ", ".join(re.findall(r"Used (\d+) registers", words))
            print(f"{row.name} for {target}: {registers} registers, {spills} bytes spilled")
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--targets", default="sm_80,gfx942")
    parser.add_argument("-k", default="")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("-v", action="store_true")
    a = parser.parse_args()
    for path in sorted(glob.glob(os.path.join(ROOT, "test", "conformance", "rows_*.py"))):
        importlib.import_module(os.path.basename(path)[:-3])
    done = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for row in [r for r in ROWS if not (a.small and r.big)][::a.every]:
            gpu = not row.devices or "emu" in row.devices
            for target in a.targets.split(",") if gpu and a.k in row.name else []:
                wrong = compile_row(row, target, os.path.join(a.build, "bin", "tilec"), folder, a.v)
                done, failed = done + 1, failed + bool(wrong)
                if wrong:
                    print(f"{row.name} for {target}: {wrong}")
    if not shutil.which("ptxas"):
        print("skipped: ptxas, which is not here")
    print(f"{done - failed} compiled, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
