#!/usr/bin/env python3
"""Legal programs that move large tiles: does every GPU take them? None may end in E0901 or E0910, whatever its shared memory.

    nothing_refused.py TILEC [--targets T,T..] [--every N] [NAME...]

NAME: the forms below whose names contain one. Each form in each shape and element type, laid out for each target (no LLVM, some ms);
--every N: each Nth of them. Prints what is refused and, last, "N compiled, N refused"; exit 1 if one is.
"""
import argparse
import itertools
import os
import subprocess
import sys
import tempfile

TARGETS = "gfx942,gfx90a,gfx1100,gfx1201,sm_75,sm_80,sm_86,sm_90a,sm_120"
HEAD = "kernel k(const T x[M, N], {more}T y[R, S], const int A = 256, const int B = 64, const type T = f32)\n    grid(1)\n{{\n"
LOAD = "    auto t = x[0 +: A, 0 +: B];\n"
STEP = "auto step(auto a, auto b, auto c, auto d) { return (a * c, b * c + d); }\n"
PLAIN, TURNED = "    y[0 +: A, 0 +: B] = cast({}, T);\n}}\n", "    y[0 +: B, 0 +: A] = cast({}, T);\n}}\n"


def form(value, turned=False, more="", before="", first=""):
    return before + HEAD.format(more=more) + LOAD + first + (TURNED if turned else PLAIN).format(value)


INDEX, SECOND = "const i32 i[M, N], ", "const T f[M, N], "
FORMS = {
    "scan_down": form("cumsum(t, 0)"),
    "scan_along": form("cumsum(t, 1)"),
    "scan_back": form("cumsum(t, 0, reverse = true)"),
    "scan_pair_down": form("s", more=SECOND, before=STEP, first="    auto (_p, s) = scan((f[0 +: A, 0 +: B], t), 0, step);\n"),
    "scan_pair_along": form("s", more=SECOND, before=STEP, first="    auto (_p, s) = scan((f[0 +: A, 0 +: B], t), 1, step);\n"),
    "scans": form("trans(cumsum(trans(cumsum(t, 0)), 0))"),
    "transpose": form("trans(t)", True),
    "fold": form("trans(reshape(t, B, A))"),
    "flip": form("flip(t, 0)"),
    "gather_down": form("gather(t, i[0 +: A, 0 +: B], 0)", more=INDEX),
    "gather_along": form("gather(t, i[0 +: A, 0 +: B], 1)", more=INDEX),
    "sort_down": form("sort(t, axis = 0)"),
    "sort_along": form("sort(t, axis = 1)"),
    "row_and_column": form("cast(t, f32) * col(sum(cast(t, f32), axis = 1)) * row(max(cast(t, f32), axis = 0))"),
    "argmax": form("t + col(cast(argmax(t, axis = 1), T)) + row(cast(argmax(t, axis = 0), T))"),
    "turned_twice": form("trans(trans(t) + trans(f[0 +: A, 0 +: B]))", more=SECOND, first="    y[0 +: B, 0 +: A] = trans(t);\n"),
    "scan_and_sort": form("sort(cumsum(trans(sort(t, axis = 0)), 0), axis = 1)", True),
}
SHAPES = ((256, 64), (64, 256), (128, 128), (512, 64), (64, 512), (256, 256), (1024, 32), (8192, 4), (16, 4096), (2, 32768), (512, 512), (1024, 1024))
TYPES = {"f32": 4, "f64": 8, "f16": 2, "i8": 1, "i64": 8, "f8e4m3": 1}
LEAST = 64 << 10  # bytes of a tile
MOST = {"sort": 1 << 16, "scan": 1 << 18}  # elements: larger ones are legal, too, and take seconds
LONGEST_SORT = 1 << 14
MOVES = ("transpose", "fold", "flip", "gather_down", "gather_along")  # of any type


def most_of(name):
    return min([n for word, n in MOST.items() if word in name] + [1 << 20])


def is_legal(name, a, b, t):
    return (t != "f8e4m3" or name in MOVES) and ("sort" not in name or max(a, b) <= LONGEST_SORT)


def cases(names):
    for (name, text), (a, b), t in itertools.product(FORMS.items(), SHAPES, TYPES):
        wanted = not names or any(n in name for n in names)
        if wanted and is_legal(name, a, b, t) and a * b * TYPES[t] >= LEAST and a * b <= most_of(name):
            yield name, text, a, b, t


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("tilec")
    ap.add_argument("names", nargs="*")
    ap.add_argument("--targets", default=TARGETS)
    ap.add_argument("--every", type=int, default=1)
    o = ap.parse_intermixed_args()
    all_cases = [(c, t) for c in cases(o.names) for t in o.targets.split(",")]
    done = refused = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "k.tile")
        for (name, text, a, b, t), target in all_cases[::o.every]:
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            words = [o.tilec, path, "--target", target, "--emit", "laidout", "-o", os.devnull]
            words += [w for c in (f"A={a}", f"B={b}", f"T={t}") for w in ("--const", c)]
            p = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "TILE_CACHE": "off"}, check=False)
            done, refused = done + (p.returncode == 0), refused + (p.returncode != 0)
            if p.returncode:
                why = next((x for x in p.stderr.splitlines() if "error" in x), f"exit {p.returncode}")
                print(f"{name} {a}x{b} {t} for {target}: {why.partition('error')[2] or why}", flush=True)
    print(f"{done} compiled, {refused} refused")
    return refused > 0


if __name__ == "__main__":
    sys.exit(main())
