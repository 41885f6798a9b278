#!/usr/bin/env python3
"""Random kernels on rows that registers do not hold, so that chunk-rows cuts them, and what NumPy says about them.

    chunked_rows.py FIRST COUNT [--ways ref,cpu,emu:sm_90a,...] [--per-program N] [--tilec tilec] [--keep DIR] [--jobs N]

Program number s depends on s only. On rows of tiles of rank 1 and 2, along either axis, it scans in both directions (sums, products, maxima,
functions of the program that are associative but not commutative, pairs), reduces, combines what came of that with the rows again, and
stores: elsewhere, in place, several times. Integers wrap, and floats are small integers, so that each order gives
the same bits. With one warp, rows of 8000 elements are long enough; so a program runs in a tenth of a second. What fails is kept with
--keep, as a .tile file and its command line. Needs NumPy.
"""
import argparse
import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np

WAYS = ["ref", "emu:sm_90a", "emu:gfx942"]
TYPES = {"i32": np.int32, "u32": np.uint32, "i64": np.int64, "f32": np.float32}
ELEMENTS = 8200  # of a tile, at least: more than 128 in each of 64 threads
EXACT = 2 ** 23  # floats stay below
SECONDS = 600  # on a busy machine, a row that stays whole
FUNCTIONS = """T larger(T a, T b) { return max(a, b); }
T latest(T a, T b) { return b == 0 ? a : b; }
T either(T a, T b) { return min(a, b); }
auto affine(T a, T b, T c, T d) { return (a * c, b * c + d); }
auto first_most(T a, i32 i, T b, i32 j) {
    auto left = a > b || (a == b && i < j);
    return (left ? a : b, left ? i : j);
}
"""


def latest(a, b):
    return np.where(b == 0, a, b)


def scanned(x, axis, reverse, f):
    """x: a tuple of arrays. f: of two such tuples, the elements before and one element."""
    x = [np.flip(np.moveaxis(v, axis, 0), 0) if reverse else np.moveaxis(v, axis, 0) for v in x]
    out = [v.copy() for v in x]
    for k in range(1, len(x[0])):
        for o, v in zip(out, f([o[k - 1] for o in out], [v[k] for v in x])):
            o[k] = v
    return [np.moveaxis(np.flip(o, 0) if reverse else o, 0, axis) for o in out]


class Value:
    def __init__(self, name, x, whole, ways=0):
        self.name, self.x, self.whole, self.ways = name, x, whole, ways  # whole: it has the row's axis; ways: of the scans in it, as bits


class Inexact(Exception):
    pass


class Maker:
    """Arrays have the programs as their first axis; then come the tile's."""

    def __init__(self, seed):
        r = self.r = random.Random(seed)
        self.dtype = r.choice(["i32", "i32", "u32", "i64", "f32"])
        self.programs, self.rank = r.choice([1, 1, 2]), r.choice([1, 2, 2])
        self.axis = 0 if self.rank == 1 else r.choice([0, 1, 1])
        self.rows = 1 if self.rank == 1 else r.choice([1, 2, 3, 4, 8])
        self.extent = -(-ELEMENTS // self.rows)
        self.extent += r.choice([0, r.randrange(1, 300), -self.extent % 64])
        self.shape = (self.extent,) if self.rank == 1 else (self.rows, self.extent) if self.axis else (self.extent, self.rows)
        self.loop = r.random() < .3  # the programs are trips of a loop
        self.data = np.random.default_rng(seed)
        self.lines, self.values, self.arrays, self.now, self.const = [], [], {}, {}, set()
        self.names = 0

    # ---- text ----
    def name(self):
        self.names += 1
        return f"v{self.names}"

    def let(self, text, x, whole, ways=0):
        if x.dtype == np.float32 and not np.all(np.abs(x) < EXACT):
            raise Inexact
        v = Value(self.name(), x, whole, ways)
        self.lines.append(f"auto {v.name} = {text};")
        self.values.append(v)
        return v

    def place(self, name, start=0):
        along = f"{start} +: {self.extent}"
        if self.rank == 1:
            return f"{name}[p, {along}]"
        rows = f"p * {self.rows} +: {self.rows}"
        return f"{name}[{rows}, {along}]" if self.axis else f"{name}[{along}, {rows}]"

    # ---- arrays ----
    def numbers(self, more=0):
        shape = tuple(e + more * (d == self.axis) for d, e in enumerate(self.shape))
        most = 2 if self.dtype == "f32" else self.r.choice([2, 3, 1000])
        x = self.data.integers(0 if self.dtype == "u32" else 1 - most, most, (self.programs,) + shape)
        return np.where(self.data.random(x.shape) < .3, 0, x).astype(TYPES[self.dtype])

    def array(self, const, more=0, poison=False):
        n = f"{'a' if const else 'o'}{len(self.arrays)}"
        x = self.numbers(more)
        self.arrays[n] = np.full_like(x, 77) if poison else x
        self.now[n] = self.arrays[n].copy()
        if const:
            self.const.add(n)
        return n

    def flat(self, x):
        """As the kernel sees it, programs side by side along the rows."""
        if x.ndim == 2 and x.shape[1:] != self.shape and self.rank == 2 or x.ndim == 1:
            return x.reshape(-1)  # results of reductions
        if self.rank == 1 or self.axis:
            return x.reshape(-1, x.shape[-1])
        return np.ascontiguousarray(np.moveaxis(x, 0, 1)).reshape(x.shape[1], -1)

    # ---- statements ----
    def load(self):
        old = [n for n in self.arrays if self.arrays[n].ndim == self.rank + 1]
        if old and self.r.random() < .5:
            n = self.r.choice(old)
        else:
            n = self.array(self.r.random() < .5, self.r.choice([0, 0, 5]))
        start = self.r.randrange(0, self.now[n].shape[self.axis + 1] - self.extent + 1)
        x = np.take(self.now[n], range(start, start + self.extent), self.axis + 1)
        return self.let(self.place(n, start), x, True)

    def wide(self, ways=0):
        """Seldom of both directions: such a row is not cut."""
        fit = [v for v in self.values if v.whole and v.x.dtype == TYPES[self.dtype] and (v.ways | ways != 3 or self.r.random() < .03)]
        return self.r.choice(fit[-7:]) if fit and self.r.random() < .9 else self.load()

    def spread(self, v):
        """A value of a row for each element: its text, its numbers."""
        if v.whole:
            return v.name, v.x
        if self.rank == 1:
            return v.name, v.x[:, None]
        return f"{'col' if self.axis else 'row'}({v.name})", np.expand_dims(v.x, self.axis + 1)

    def work(self):
        a = self.wide()
        v = self.r.choice([v for v in self.values[-6:] if not v.whole] + [self.wide(a.ways)])
        b, y = self.spread(v)
        ways = a.ways | (v.ways if v.whole else 0)
        y = y.astype(TYPES[self.dtype])
        b = f"({self.dtype}){b}"
        op = self.r.choice(["+", "-", "max", "min", "select"] + ["*", "^"] * (self.dtype != "f32"))
        if op in "+-*^":
            f = {"+": np.add, "-": np.subtract, "*": np.multiply, "^": np.bitwise_xor}[op]
            return self.let(f"{a.name} {op} {b}", f(a.x, y), True, ways)
        if op == "select":
            return self.let(f"{a.name} > {b} ? {a.name} : {b}", np.where(a.x > y, a.x, y), True, ways)
        return self.let(f"{op}({a.name}, {b})", (np.maximum if op == "max" else np.minimum)(a.x, y), True, ways)

    def count(self):
        n = np.arange(self.extent, dtype=np.int32)
        shape = [1] * (self.rank + 1)
        shape[self.axis + 1] = self.extent
        x = np.broadcast_to(n.reshape(shape), (self.programs,) + self.shape)
        text = f"iota({self.extent})"
        if self.rank == 2:
            text = f"{'row' if self.axis else 'col'}({text}) + 0 * {'col' if self.axis else 'row'}(iota({self.rows}))"
        return text, x

    def scan(self):
        r = self.r
        back = r.random() < .5
        axis = r.randrange(self.rank) if r.random() < .15 else self.axis
        way = 0 if axis != self.axis else 2 if back else 1
        v = self.wide(way)
        tail = ", reverse = true" if back else ""
        kind = r.choice(["sum", "sum", "larger", "latest", "either"] + ["prod", "affine"] * (self.dtype != "f32"))
        t = TYPES[self.dtype]
        if kind == "affine":
            w = self.wide(way | v.ways)
            way |= w.ways | v.ways
            a, b = scanned((v.x, w.x), axis + 1, back, lambda x, y: (x[0] * y[0], x[1] * y[0] + y[1]))
            n, m = self.name(), self.name()
            self.lines.append(f"auto ({n}, {m}) = scan(({v.name}, {w.name}), {axis}, affine{tail});")
            self.values += [Value(n, a, True, way), Value(m, b, True, way)]
            return
        if kind in ("sum", "prod"):
            f = np.cumsum if kind == "sum" else np.cumprod
            x = np.flip(f(np.flip(v.x, axis + 1), axis + 1, dtype=t), axis + 1) if back else f(v.x, axis + 1, dtype=t)
            text = f"cum{kind}({v.name}, axis = {axis}{tail})"
        else:
            f = {"larger": np.maximum, "either": np.minimum, "latest": latest}[kind]
            x, = scanned((v.x,), axis + 1, back, lambda a, b: (f(a[0], b[0]),))
            text = f"scan({v.name}, {axis}, {kind}{tail})"
        self.let(text, x, True, way | v.ways)

    def reduce(self):
        v, axis = self.wide(), self.axis + 1
        kind = self.r.choice(["sum", "sum", "max", "min", "argmax", "larger", "most"] + ["xor_sum"] * (self.dtype != "f32"))
        t = TYPES[self.dtype]
        if kind == "most":
            text, n = self.count()
            a, b = self.name(), self.name()
            self.lines.append(f"auto ({a}, {b}) = reduce(({v.name}, {text}), {self.axis}, first_most);")
            self.values += [Value(a, v.x.max(axis), False), Value(b, v.x.argmax(axis).astype(np.int32), False)]
            return
        if kind == "larger":
            self.let(f"reduce({v.name}, {self.axis}, larger)", v.x.max(axis), False)
            return
        f = {"sum": lambda x: x.sum(axis, dtype=t), "max": lambda x: x.max(axis), "min": lambda x: x.min(axis),
             "argmax": lambda x: x.argmax(axis).astype(np.int32), "xor_sum": lambda x: np.bitwise_xor.reduce(x, axis)}[kind]
        if kind == "sum" and self.dtype == "f32" and np.any(np.abs(v.x).sum(axis, dtype=np.float64) >= EXACT):
            raise Inexact
        self.let(f"{kind}({v.name}, axis = {self.axis})", f(v.x), False)

    def store(self):
        v = self.r.choice([v for v in self.values if v.whole][-5:])
        old = [n for n in self.arrays if n not in self.const and self.arrays[n].ndim == self.rank + 1]
        n = self.r.choice(old) if old and self.r.random() < .4 else self.array(False, 0, True)
        start = self.r.randrange(0, self.now[n].shape[self.axis + 1] - self.extent + 1)
        self.lines.append(f"{self.place(n, start)} = ({self.dtype}){v.name};")
        at = [slice(None)] * (self.rank + 1)
        at[self.axis + 1] = slice(start, start + self.extent)
        self.now[n][tuple(at)] = v.x.astype(TYPES[self.dtype])

    def store_reduced(self):
        fit = [v for v in self.values if not v.whole]
        if not fit:
            return
        v = self.r.choice(fit[-3:])
        n = f"o{len(self.arrays)}"
        self.arrays[n] = np.full_like(v.x, 77)
        self.now[n] = v.x.copy()
        place = f"{n}[p]" if self.rank == 1 else f"{n}[p * {self.rows} +: {self.rows}]"
        self.lines.append(f"{place} = {v.name};")

    def program(self):
        self.load()
        steps = [self.scan] * 4 + [self.reduce] * 2 + [self.work] * 2 + [self.store] * 3 + [self.store_reduced]
        for _ in range(self.r.randint(5, 12)):
            kept = len(self.lines), len(self.values)
            try:
                self.r.choice(steps)()
            except Inexact:  # what was loaded for it stays
                while len(self.values) > kept[1] and not self.values[-1].name == self.lines[-1].split()[1]:
                    self.values.pop()
        self.store()
        self.store()
        self.store_reduced()
        params = []
        for n, x in self.arrays.items():
            x = self.flat(x)
            t = next(t for t, d in TYPES.items() if d == x.dtype)
            dims = ", ".join(str(e) for e in x.shape) if self.r.random() < .5 else ", ".join(f"{n}_{d}" for d in range(x.ndim))
            params.append(f"{'const ' * (n in self.const)}{t} {n}[{dims}]")
        head = "grid(1)" if self.loop else f"grid({self.programs})"
        body = ["for (int p = 0; p < %d; p++) {" % self.programs] + ["    " + s for s in self.lines] + ["}"] if self.loop else \
            ["int p = pid(0);"] + self.lines
        text = FUNCTIONS.replace("T ", self.dtype + " ") + f"kernel k({', '.join(params)})\n    {head}\n    warps(1)\n{{\n" + \
            "".join(f"    {s}\n" for s in body) + "}\n"
        return text, {n: self.flat(x) for n, x in self.arrays.items()}, {n: self.flat(x) for n, x in self.now.items() if n not in self.const}


def said(p):
    text = p.stderr.decode("utf-8", "replace")
    return text[max(text.find("error"), 0):][:600]


def run(seed, ways, cx):
    with np.errstate(all="ignore"):
        text, arrays, want = Maker(seed).program()
    bad = []
    with tempfile.TemporaryDirectory(prefix="tile-fuzz-") as d:
        path = os.path.join(d, "k.tile")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        base = [cx.tilec, "run", path, "-Wno-large", "-Wno-unused", "-Wno-unrequired-tail"]
        for n, x in arrays.items():
            np.save(f"{d}/{n}.npy", np.ascontiguousarray(x))
            base.append(f"{n}=@{d}/{n}.npy")
        for way in ways:
            words = base + ["--device", way]
            for n in want:
                words += ["--save", f"{n}={d}/out_{n}.npy"]
            try:
                p = subprocess.run(words, capture_output=True, timeout=SECONDS, check=False)
            except subprocess.TimeoutExpired:
                bad.append((way, "no end"))
                continue
            if p.returncode:
                bad.append((way, f"exit status {p.returncode}: {said(p)}"))
                continue
            for n, w in want.items():
                g = np.load(f"{d}/out_{n}.npy")
                if not np.array_equal(g, w):
                    at = tuple(map(int, np.argwhere(g != w)[0]))
                    bad.append((way, f"{n}{list(at)}: got {g[at]}, wanted {w[at]}"))
                    break
        if bad and cx.keep:
            os.makedirs(f"{cx.keep}/{seed}", exist_ok=True)
            for n in os.listdir(d):
                os.replace(f"{d}/{n}", f"{cx.keep}/{seed}/{n}")
            with open(f"{cx.keep}/{seed}/command", "w", encoding="utf-8") as f:
                f.write(" ".join(base + ["--device", bad[0][0]]).replace(d, f"{cx.keep}/{seed}") + "\n")
    return bad


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("first", type=int)
    ap.add_argument("count", type=int)
    ap.add_argument("--ways", default=",".join(WAYS))
    ap.add_argument("--per-program", type=int, default=0)
    ap.add_argument("--tilec", default="tilec")
    ap.add_argument("--keep")
    ap.add_argument("--jobs", type=int, default=2)
    cx = ap.parse_args()
    ways = cx.ways.split(",")
    n = min(cx.per_program or len(ways), len(ways))
    jobs = [(s, [ways[(s + k) % len(ways)] for k in range(n)]) for s in range(cx.first, cx.first + cx.count)]
    failed = 0
    with ThreadPoolExecutor(cx.jobs) as pool:
        for (s, _), bad in zip(jobs, pool.map(lambda j: run(*j, cx), jobs)):
            failed += len(bad)
            for way, text in bad:
                print(f"FAIL {s} on {way}: {text}", flush=True)
    print(f"{cx.count} programs, {cx.count * n - failed} passed, {failed} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
