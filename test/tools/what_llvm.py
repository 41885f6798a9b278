#!/usr/bin/env python3
"""What does each way around LLVM buy? Compiles the benchmark of each row of codegen/workaround/workarounds.def with it and without it.

    what_llvm.py TILEC [NAME...] [--bench "BENCH TARGET"] [--callgrind] [--factor N] [-j N]

NAME: rows whose names contain one. A line of the table for each: instructions of the code, vector registers and those spilled (AMD), and what
compiling took, without -> with: seconds of processor time, or millions of instructions (--callgrind, slow; the same on every machine).
--bench: this benchmark instead of the row's. --factor multiplies how much of a form there is, to see how time grows.
A row that buys nothing, neither code nor time, with a new LLVM, can go.
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
from growth_forms import FORMS  # noqa: E402
from same_code import ROOT, instructions, library  # noqa: E402

TABLE = os.path.join(ROOT, "codegen", "workaround", "workarounds.def")
ROW = re.compile(r'^WORKAROUND\(\w+,\s*"([\w-]+)",\s*[^"]*?,\s*(TIME|CODE|RIGHT),\s*"([^"]*)"', re.M)


def rows():
    """(name, what it buys, benchmark)"""
    with open(TABLE, encoding="utf-8") as f:
        return ROW.findall(f.read())


def words_of(bench, factor, folder):
    """The compiler's arguments for "FORM:N TARGET", "KERNEL TARGET" or "FILE TARGET OPTION..."."""
    what, target, *options = bench.split()
    emit = ["--target", target, "--emit", "ptx" if target.startswith("sm_") else "asm", *options]
    if "/" in what:
        return [os.path.join(ROOT, what), *emit]
    form, _, n = what.partition(":")
    if n:
        path = os.path.join(folder, f"{form}.tile")
        for name, text in FORMS[form][0](int(n) * factor).items():
            with open(path if name == "k.tile" else os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write(text)
        return [path, *emit]
    row = next(r for r in library(True) if r.name.split()[0] == what)
    consts = [w for n, v in row.consts.items() for w in ("--const", f"{n}={v}")]
    return [os.path.join(ROOT, row.file), "--kernel", row.kernel, *emit, *consts]


def measure(o, words):
    """Instructions, registers, spilled ones, cost; text instead, where the compiler refuses."""
    with tempfile.TemporaryDirectory() as folder:
        out, counts = os.path.join(folder, "out"), os.path.join(folder, "counts")
        grind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={counts}"] if o.callgrind else []
        env = {**os.environ, "TILE_CACHE": "off"}
        p = subprocess.Popen([*grind, o.tilec, *words, "-o", out], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
        _, status, used = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        if p.returncode:
            return f"exit {p.returncode}"
        cost = used.ru_utime + used.ru_stime
        if o.callgrind:
            with open(counts, encoding="utf-8") as f:
                cost = int(re.search(r"^(?:summary|totals): (\d+)", f.read(), re.M).group(1)) / 1e6
        with open(out, encoding="utf-8") as f:
            text = f.read()
    registers, spills = (sum(map(int, re.findall(rf"\.vgpr_{x}: +(\d+)", text))) for x in ("count", "spill_count"))
    return instructions(text), registers, spills, round(cost, 2)


def both(job):
    o, (name, buys, bench) = job
    bench = o.bench or bench
    with tempfile.TemporaryDirectory() as folder:
        words = words_of(bench, o.factor, folder)
        return name, buys, bench, measure(o, [*words, "--skip", name]), measure(o, words)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("tilec")
    ap.add_argument("names", nargs="*")
    ap.add_argument("--bench")
    ap.add_argument("--callgrind", action="store_true")
    ap.add_argument("--factor", type=int, default=1)
    ap.add_argument("-j", type=int, default=1)
    o = ap.parse_intermixed_args()
    chosen = [r for r in rows() if not o.names or any(n in r[0] for n in o.names)]
    print(f"| name | buys | benchmark | instructions | registers | spilled | {'million instructions' if o.callgrind else 'seconds'} of compiling |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(o.j) as pool:
        for name, buys, bench, without, having in pool.map(both, [(o, r) for r in chosen]):
            fine = isinstance(without, tuple) and isinstance(having, tuple)
            bad += not isinstance(having, tuple)
            cells = [f"{a} -> {b}" for a, b in zip(without, having)] if fine else [f"{without} -> {having}"]
            print(f"| {name} | {buys} | {bench} | " + " | ".join(cells) + " |", flush=True)
    return bad > 0


if __name__ == "__main__":
    raise SystemExit(main())
