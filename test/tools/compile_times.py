#!/usr/bin/env python3
"""How long the compiler takes for each kernel of the library: seconds of CPU of one `tilec`, by target, without the cache.

    compile_times.py TILEC [--targets T,T..] [--sets] [--over SECONDS] [--limit SECONDS] [-j N] [NAME | FILE.tile]...

NAME: the library's kernels whose names contain one. FILE.tile: each of its kernels, at its own constants, in place of the library.
--sets: all types and options that the conformance suite has of a kernel, not its first. Code is made to PTX for NVIDIA, to an
hsaco for AMD, to assembly for CPUs. A row for each kernel that takes over --over seconds (0.5) on a target, slowest first, with what the
compiler says of its length or spilled registers, then a table of targets: kernels, median, the longest, how many took over 2 seconds,
how many of these without a warning. Exit 1 if one took so long, or was refused, or was ended after --limit (60) seconds of CPU.
"""
import argparse
import concurrent.futures
import os
import re
import resource
import statistics
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from amd_asm import ROOT, Row, library  # noqa: E402

TARGETS = "sm_80,sm_90a,sm_120,gfx942,gfx1100,gfx1201,cpu:x86-64-v2,cpu:x86-64-v3,cpu:x86-64-v4"
TOO_LONG = 2.0


def rows_of(file):
    with open(file, encoding="utf-8") as f:
        for kernel in re.findall(r"^kernel\s+(\w+)", f.read(), re.M):
            row = Row(os.path.abspath(file), kernel)
            row.name = f"{os.path.basename(file).removesuffix('.tile')}.{kernel}"
            yield row


def seconds_of(o, row, target):
    """Seconds of CPU, and what is wrong."""
    words = [o.tilec, os.path.join(ROOT, row.file), "--kernel", row.kernel, "--target", target, "-o", os.devnull]
    words += ["--emit", "ptx" if target.startswith("sm_") else "asm" if target.startswith("cpu") else "hsaco"]
    words += [w for n, v in row.consts.items() for w in ("--const", f"{n}={v}")]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, "TILE_CACHE": "off"},
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (o.limit, o.limit))) as p:
        said = p.stderr.read().decode("utf-8", "replace").strip().splitlines()
        _, status, used = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
    seconds = used.ru_utime + used.ru_stime
    wrong = "" if p.returncode == 0 else "ended" if p.returncode < 0 else (said or [f"exit {p.returncode}"])[0]
    return seconds, wrong or next((x.partition("]: ")[2] for x in said if "[large]" in x or "[scratch]" in x), ""), p.returncode != 0


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("tilec")
    ap.add_argument("names", nargs="*")
    ap.add_argument("--targets", default=TARGETS)
    ap.add_argument("--sets", action="store_true")
    ap.add_argument("--over", type=float, default=0.5)
    ap.add_argument("--limit", type=int, default=60)
    ap.add_argument("-j", type=int, default=1)
    o = ap.parse_intermixed_args()
    files = [n for n in o.names if n.endswith(".tile")]
    names = [n for n in o.names if n not in files]
    rows = [r for f in files for r in rows_of(f)]
    if names or not files:
        rows += [r for r in library(not o.sets) if not names or any(n in r.name for n in names)]
    targets, found = o.targets.split(","), []
    with concurrent.futures.ThreadPoolExecutor(o.j) as pool:
        jobs = [(r, t) for r in rows for t in targets]
        for (row, target), result in zip(jobs, pool.map(lambda j: seconds_of(o, *j), jobs)):
            found.append((*result, row.name, target))
    print("| seconds of CPU | target | kernel | said |\n| --- | --- | --- | --- |")
    for seconds, said, wrong, name, target in sorted(found, reverse=True):
        if seconds > o.over or wrong:
            print(f"| {seconds:.2f} | {target} | {name} | {said} |")
    print("\n| target | kernels | median, ms | longest, s | over 2 s | without a warning | refused or ended |\n"
          "| --- | --- | --- | --- | --- | --- | --- |")
    for target in targets:
        times = [f[0] for f in found if f[4] == target]
        silent = sum(f[0] > TOO_LONG and not f[1] for f in found if f[4] == target)
        bad = sum(f[2] for f in found if f[4] == target)
        print(f"| {target} | {len(times)} | {statistics.median(times) * 1e3:.0f} | {max(times):.2f} | {sum(t > TOO_LONG for t in times)} | {silent} | {bad} |")
    return any(f[0] > TOO_LONG or f[2] for f in found)


if __name__ == "__main__":
    raise SystemExit(main())
