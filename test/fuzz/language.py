#!/usr/bin/env python3
"""Random programs of the language, and what NumPy says about them: every operation of its table, under control flow.

    language.py FIRST COUNT [--products] [--ways ref,cpu,emu:sm_80/w4/c,...] [--per-program N] [--tilec tilec] [--keep DIR] [--jobs N] [--used]

Program number s depends on s only. Its values are built from views (any starts, steps, strides), by expressions of the wanted shape and
type, and changed by loops, branches, functions with early returns, and memory that is written and read back in another shape. While it is
made it is also run by NumPy; so a program that has gone out of a type's exact values is not written (floats stay small integers).
--products: of large products in loops (language_products.py), on Hopper. --used: how many programs each generator is in.
A way is DEVICE[/wWARPS][/tSTAGES][/sSEED][/c][/a], as in emu:gfx942/w8/s3/c (s: the seed of --stress-layouts, c: --check, a: under all
schedules); each program is run in --per-program of them (0: all), which change with the program. What fails is kept with --keep, as a .tile file and its command line.
Needs NumPy.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from language_products import Products
from language_statements import Maker

WAYS = ["ref", "cpu", "cpu/f", "cpu/O3"] + [f"emu:{t}/w{w}{s}" for t in ("sm_80", "sm_89", "sm_90", "sm_90a", "gfx90a", "gfx942", "gfx1100", "gfx1201") for w, s in ((1, "/c"), (4, "/c"), (4, "/s1"), (8, "/s2/c"), (2, "/f"))]
PRODUCTS = [f"emu:sm_90a/w{w}/t{t}{s}/c" for w, t, s in ((4, 1, "/a"), (8, 2, "/s1"), (4, 3, "/a"), (8, 4, ""), (4, 4, "/s2"), (8, 3, "/a"), (16, 2, ""), (4, 5, ""), (8, 5, "/s3"), (2, 3, ""))]
OPTIONS = {"w": "--warps", "t": "--stages", "s": "--stress-layouts"}
FLAGS = {"c": ["--check"], "f": ["--fp=strict"], "a": ["--schedules", "all"]}
SECONDS = 120


def saved(t, x):
    return (np.ascontiguousarray(x).view(np.uint32) >> 16).astype(np.uint16) if t == "bf16" and x.flags.c_contiguous else \
        np.asfortranarray((np.ascontiguousarray(x).view(np.uint32) >> 16).astype(np.uint16)) if t == "bf16" else x


def loaded(t, x):
    return (x.astype(np.uint32) << 16).view(np.float32) if t == "bf16" else x


def words_of(way):
    device, *more = way.split("/")
    words = ["--device", device]
    for m in more:
        words += FLAGS.get(m) or (["-" + m] if m[0] == "O" else [OPTIONS[m[0]], m[1:]])
    return words


def said(text):
    """The beginning, of errors if there are any, else of warnings."""
    text = text.decode("utf-8", "replace")
    return text[max(text.find("error"), 0):][:600]


def run(seed, ways, cx):
    try:
        maker = (Products if cx.products else Maker)(seed)
        text, arrays, want = maker.program()
        cx.used.update(maker.used)
    except Exception:
        return [(seed, "making", traceback.format_exc(limit=-4))]
    bad = []
    with tempfile.TemporaryDirectory(prefix="tile-fuzz-") as d:
        path = os.path.join(d, "k.tile")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        base = [cx.tilec, "run", path]
        for n, (t, x) in arrays.items():
            np.save(os.path.join(d, n + ".npy"), saved(t, x))
            base.append(f"{n}=@{d}/{n}.npy")
        base += maker.words
        for way in ways:
            words = base + words_of(way)
            for n in want:
                words += ["--save", f"{n}={d}/out_{n}.npy"]
            try:
                p = subprocess.run(words, capture_output=True, timeout=SECONDS)
            except subprocess.TimeoutExpired:
                bad.append((seed, way, "no end"))
                continue
            if p.returncode and "/s" in way and b"E0910" in p.stderr:
                continue  # these layouts want more shared memory than there is: said so
            if p.returncode:
                bad.append((seed, way, f"exit status {p.returncode}: " + said(p.stderr)))
                continue
            for n, w in want.items():
                g = loaded(arrays[n][0], np.load(f"{d}/out_{n}.npy"))
                if g.shape != w.shape or not np.all((g == w) | ((g != g) & (w != w))):
                    at = tuple(map(int, np.argwhere(g != w)[0])) if g.shape == w.shape else ()
                    bad.append((seed, way, f"{n}{list(at)}: got {g[at] if at else g.shape}, wanted {w[at] if at else w.shape}"))
                    break
        if bad and cx.keep:
            os.makedirs(cx.keep, exist_ok=True)
            os.system(f"rm -rf {cx.keep}/{seed} && cp -r {d} {cx.keep}/{seed}")
            with open(f"{cx.keep}/{seed}/command", "w", encoding="utf-8") as f:
                f.write(" ".join(w.replace(d, f"{cx.keep}/{seed}") for w in base + words_of(bad[0][1])) + "\n")
            np.savez(f"{cx.keep}/{seed}/want.npz", **want)
    return bad


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("first", type=int)
    ap.add_argument("count", type=int)
    ap.add_argument("--products", action="store_true")
    ap.add_argument("--ways")
    ap.add_argument("--per-program", type=int, default=3)
    ap.add_argument("--tilec", default="tilec")
    ap.add_argument("--keep")
    ap.add_argument("--jobs", type=int, default=2)
    ap.add_argument("--used", dest="used_shown", action="store_true", help="print how many programs each generator is in")
    cx = ap.parse_args()
    cx.used = Counter()
    ways = cx.ways.split(",") if cx.ways else PRODUCTS if cx.products else WAYS
    jobs = []
    for s in range(cx.first, cx.first + cx.count):
        n = cx.per_program or len(ways)
        jobs.append((s, ways if n >= len(ways) else [ways[(s * 7 + k * 11) % len(ways)] for k in range(n)]))
    failed = 0
    with ThreadPoolExecutor(cx.jobs) as pool:
        for (s, w), bad in zip(jobs, pool.map(lambda j: run(*j, cx), jobs)):
            failed += len(bad)
            for seed, way, text in bad:
                print(f"FAIL {seed} on {way}: {text}", flush=True)
    for name, count in sorted(cx.used.items()) if cx.used_shown else ():
        print(f"{count:6} {name}")
    print(f"{cx.count} programs, {sum(len(w) for _, w in jobs) - failed} passed, {failed} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
