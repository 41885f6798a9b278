#!/usr/bin/env python3
"""The compiler's estimate of registers beside what ptxas and LLVM report, over the library's kernels at their defaults; and what spills.

    registers.py [TILEC] [--targets sm_80,sm_90a,gfx942,gfx1100] [--file PATH]... [--limit PERCENT] [-j N] [NAME...]

NAME: the kernels whose names contain one. --file: a .tile file more, with its own defaults (with "", nothing of the library but what NAME says).
Prints a table of errors (those of forms with spills against what they would need: registers and spilled words), and the forms that spill.
NVIDIA needs ptxas on PATH. Exit 1 if a form spills, does not compile, or the median error of a target is above the limit.
"""
import argparse
import concurrent.futures
import json
import os
import statistics
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import amd_asm  # noqa: E402

TARGETS = "sm_80,sm_90a,gfx942,gfx1100"
WORD = {"sm": 4, "gf": 1}  # of `spilled`: bytes of ptxas, registers of LLVM


def explain(job):
    tilec, name, words, target = job
    p = subprocess.run([tilec, "explain", *words, "--target", target, "--json"], capture_output=True, text=True, check=False,
                       env={**os.environ, "TILE_CACHE": "off"})
    if p.returncode:
        return name, target, [], (p.stderr.strip().splitlines() or [f"exit {p.returncode}"])[0]
    return name, target, json.loads(p.stdout)["targets"][0]["kernels"], ""


def rows(names, files):
    for r in amd_asm.library(True):
        if not names or any(n in r.name for n in names):
            yield r.name, [os.path.join(amd_asm.ROOT, r.file), "--kernel", r.kernel, *(w for n, v in r.consts.items() for w in ("--const", f"{n}={v}"))]
    for f in files:
        yield os.path.basename(f), [f]


def need(k, target):
    return k["registers"] + max(k["spilled"], 0) // WORD[target[:2]]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("tilec", nargs="?", default=os.path.join(amd_asm.ROOT, "build", "bin", "tilec"))
    ap.add_argument("names", nargs="*")
    ap.add_argument("--targets", default=TARGETS)
    ap.add_argument("--file", action="append", default=[])
    ap.add_argument("--limit", type=float, default=0)
    ap.add_argument("-j", type=int, default=os.cpu_count())
    o = ap.parse_intermixed_args()
    targets, bad = o.targets.split(","), 0
    jobs = [(o.tilec, name, words, t) for t in targets for name, words in rows(o.names, o.file)]
    errors, forms, spills = {t: [] for t in targets}, {t: 0 for t in targets}, []
    with concurrent.futures.ThreadPoolExecutor(o.j) as pool:
        for name, target, kernels, wrong in pool.map(explain, jobs):
            bad += bool(wrong)
            if wrong:
                spills.append(f"| {target} | {name} | {wrong} | | | |")
            for k in kernels:
                forms[target] += 1
                if k["registers"] < 0:
                    continue
                errors[target].append(abs(k["registers_estimated"] / need(k, target) - 1))
                if k["spilled"] > 0:
                    spills.append(f"| {target} | {name} | {k['variant']} | {k['warps']} | {k['registers']} + {k['spilled']} | {k['registers_estimated']} |")
    print("| target | forms | with known registers | median error | 90th percentile | spill |\n| --- | --- | --- | --- | --- | --- |")
    for t in targets:
        e = sorted(errors[t])
        of_target = [s for s in spills if s.startswith(f"| {t} ")]
        median = 100 * statistics.median(e) if e else 0
        bad += bool(o.limit and median > o.limit)
        print(f"| {t} | {forms[t]} | {len(e)} | {median:.0f} % | {100 * e[len(e) * 9 // 10] if e else 0:.0f} % | {len(of_target)} |")
    if spills:
        print("\n| target | kernel | form | warps | registers + spilled | estimate |\n| --- | --- | --- | --- | --- | --- |")
        print("\n".join(spills))
    return 1 if bad or spills else 0


if __name__ == "__main__":
    sys.exit(main())
