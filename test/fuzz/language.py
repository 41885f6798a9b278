#!/usr/bin/env python3
"""Random programs of the language, and what NumPy says about them: every operation of its table, under control flow.

    language.py FIRST COUNT [--ways ref,cpu,emu:sm_80/w4/c,...] [--per-program N] [--tilec tilec] [--keep DIR] [--jobs N]

Program number s depends on s only. Its values are built from views (any starts, steps, strides), by expressions of the wanted shape and
type, and changed by loops, branches, functions with early returns, and memory that is written and read back in another shape. While it is
made it is also run by NumPy; so a program that has gone out of a type's exact values is not written (floats stay small integers).
A way is DEVICE[/wWARPS][/sSEED][/c], as in emu:gfx942/w8/s3/c (s: the seed of --stress-layouts, c: --check); each program is run in
--per-program of them (0: all), which change with the program. What fails is kept with --keep, as a .tile file and its command line.
Needs NumPy.
"""
import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import traceback
from concurrent.futures import ThreadPoolExecutor

import numpy as np

np.seterr(all="ignore")
INTS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
FLOATS = ["f16", "bf16", "f32", "f64"]
# How far values of a float type go: products of two and sums of some are still exact.
MOST = {"f16": 16, "bf16": 8, "f32": 1000, "f64": 1000}
STORE = {"bool": np.bool_, **{t: np.dtype(t.replace("i", "int").replace("u", "uint")).type if t[0] == "i" else np.dtype("uint" + t[1:]).type for t in INTS},
         "f16": np.float16, "bf16": np.float32, "f32": np.float32, "f64": np.float64}
F8 = ["f8e4m3", "f8e5m2"]
PACKED = ["i4", "u4", "f4e2m1"]
STORE.update({t: np.uint8 for t in F8 + PACKED})
SUM = {"i8": "i32", "i16": "i32", "u8": "u32", "u16": "u32", "bool": "i32"}
SHAPES = [(), (1,), (3,), (5,), (8,), (13,), (32,), (50,), (64,), (100,), (3, 5), (1, 7), (9, 1), (4, 8), (16, 16), (12, 20), (2, 3, 4), (5, 1, 6), (4, 4, 8), (2, 3, 2, 5), (1, 2, 3, 1, 2)]
WAYS = ["ref", "cpu", "cpu/f", "cpu/O3"] + [f"emu:{t}/w{w}{s}" for t in ("sm_80", "sm_89", "sm_90", "sm_90a", "gfx90a", "gfx942", "gfx1100", "gfx1201") for w, s in ((1, "/c"), (4, "/c"), (4, "/s1"), (8, "/s2/c"), (2, "/f"))]
SECONDS = 120


def bf16(x):
    """The f32 values x rounded to bf16."""
    b = np.ascontiguousarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return (((b + 0x7FFF + ((b >> 16) & 1)) >> 16) << 16).astype(np.uint32).view(np.float32).reshape(np.shape(x))


def is_int(t):
    return t in INTS


def bits(t):
    return 8 if t == "bool" else int(t.lstrip("biuf"))


def f8_values(t):
    """What the bytes mean."""
    b, m = np.arange(256), 3 if t == "f8e4m3" else 2
    e, f, bias = (b & 127) >> m, b & (2**m - 1), 7 if t == "f8e4m3" else 15
    v = np.where(e > 0, np.ldexp(1 + f / 2**m, e - bias), np.ldexp(f / 2**m, 1 - bias))
    if t == "f8e4m3":
        v[(b & 127) == 127] = np.nan
    else:
        v[(b & 127) > 124] = np.nan
        v[(b & 127) == 124] = np.inf
    return np.where(b > 127, -v, v).astype(np.float32)


TABLE = {**{t: f8_values(t) for t in F8}, "u4": np.arange(16), "i4": np.array([*range(8), *range(-8, 0)]),
         "f4e2m1": np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])}
NUMBERS = INTS + FLOATS
WILD = [np.nan, np.inf, -np.inf, -0.0]


def to(x, t):
    """x, exact values, as type t: integers wrap, floats saturate to integers."""
    x = np.asarray(x)
    if is_int(t) and x.dtype.kind == "f":
        x = np.where(np.isnan(x), 0, x.astype(np.float64))
        lo, hi = np.iinfo(STORE[t]).min, np.iinfo(STORE[t]).max
        big = np.trunc(x) >= float(hi)
        return np.where(big, np.array(hi).astype(STORE[t]), np.where(big, 0, np.maximum(np.trunc(x), float(lo))).astype(STORE[t]))
    return bf16(x.astype(np.float32)) if t == "bf16" else x.astype(STORE[t])


class Value:
    """text: an expression; type, shape: its type; run: function(environment) -> array."""
    def __init__(self, text, type_, shape, run):
        self.text, self.type, self.shape, self.run = text, type_, tuple(shape), run


class Return(Exception):
    pass


class Break(Exception):
    pass


class Continue(Exception):
    pass


def tile_of(t, shape):
    return f"tile<{t}, {', '.join(map(str, shape))}>" if shape else t


def slices(shape):
    return ", ".join(f"0 +: {n}" for n in shape)


def clamped(x, most):
    return np.fmin(np.fmax(x, -most), most)


def ordered(x, k, down):
    """Sorted along axis k, NaN last either way; the order too."""
    key = x.astype(object) if x.dtype.kind in "iu" else x.astype(np.float64)
    key = -key if down else key
    if x.dtype.kind == "f":
        return np.argsort(key, k, kind="stable")  # NumPy's NaN comes last
    return np.argsort(key, k, kind="stable")


def window(x, starts, widths, steps, pad=0):
    index = [s + np.arange(w) * k for s, w, k in zip(starts, widths, steps)]
    ok = np.ones(widths, bool)
    for axis, i in enumerate(index):
        shape = [1] * len(widths)
        shape[axis] = -1
        ok &= ((i >= 0) & (i < x.shape[axis])).reshape(shape)
    if 0 in x.shape:
        return np.full(widths, pad, x.dtype), ok
    got = x[np.ix_(*[np.clip(i, 0, n - 1) for i, n in zip(index, x.shape)])]
    return np.where(ok, got, np.array(pad).astype(x.dtype)), ok


class Maker:
    def __init__(self, seed):
        self.loops = seed % 3 == 0  # mostly loops of products
        self.r = random.Random(seed)
        self.np = np.random.default_rng(seed)
        self.params, self.arrays, self.functions = [], {}, []
        self.vars, self.count, self.mutable = [], 0, []
        self.depth = 0
        self.programs = self.r.choice([1, 1, 2, 3])

    def name(self, prefix):
        self.count += 1
        return f"{prefix}{self.count}"

    # ---- data -----------------------------------------------------------------------------------------------------
    def data(self, t, shape):
        if t == "bool":
            return self.np.integers(0, 2, shape).astype(bool)
        if t in TABLE:
            return self.np.integers(0, 256, shape).astype(np.uint8)
        if is_int(t):
            if self.r.random() < .5:
                return self.np.integers(0, 256, (*shape, STORE[t]().itemsize), dtype=np.uint8).view(STORE[t]).reshape(shape)
            return self.np.integers(0 if t[0] == "u" else -20, 40, shape).astype(STORE[t])
        x = self.np.integers(-MOST[t], MOST[t] + 1, shape).astype(STORE[t])
        if self.r.random() < .3:
            x = np.where(self.np.random(shape) < .2, self.np.choice(np.array(WILD), shape), x).astype(STORE[t])
        return x

    def view(self, t, shape, want_fortran=False):
        """A view parameter with an array about as large as shape."""
        if len(self.params) > 60 or self.r.random() < .2:
            same = [(n, a) for n, (of, a) in self.arrays.items() if n[0] == "x" and of == t and a.ndim == len(shape)]
            if same:
                return self.r.choice(same)
        name = self.name("x")
        extents = [max(0 if self.r.random() < .04 else 1, n + self.r.choice([0, 0, 0, -1, 2, 5, -n // 2])) for n in shape]
        array = self.data(t, extents)
        fortran = len(shape) == 2 and t not in PACKED and self.r.random() < .2
        if fortran:
            array = np.asfortranarray(array)
        names = [f"{name}_{k}" for k in range(len(shape))]
        strides = [" : 1", f" : {name}_ld"] if fortran else [""] * len(shape)
        self.params.append(f"const {t} {name}[{', '.join(a + b for a, b in zip(names, strides))}]")
        self.arrays[name] = (t, array)
        return name, array

    def fresh_load(self, t, shape):
        r = self.r
        if t in INTS + FLOATS and r.random() < .08:
            return self.narrow_load(t, shape)
        if len(shape) <= 3 and r.random() < .25:
            return self.gather_load(t, shape)
        shape_of = shape or (self.r.choice([1, 4]),)
        name, array = self.view(t, shape_of)
        starts = [r.choice([0, 0, 0, -1, 1, 3, -2]) for _ in shape_of]
        steps = [r.choice([1, 1, 1, 1, 2]) for _ in shape_of]
        by = r.choice([0, 0, 0, 1, -2])  # the first start moves with the program
        first = f"{starts[0]} + pid(0) * {by}" if by else str(starts[0])
        trips = [v for v in self.vars if v.text.startswith("loop")]
        trip, far = r.choice(trips) if trips and r.random() < .7 else None, r.choice([1, 2, 8, -1])
        which = r.randrange(len(shape_of))  # the axis that moves with the loop
        heads = [first, *map(str, starts[1:])]
        if trip:
            heads[which] += f" + {trip.text} * {far}"

        def at_program(e):
            at = [starts[0] + by * e["pid"], *starts[1:]]
            at[which] += far * int(trip.run(e)) if trip else 0
            return at
        if not shape:
            return Value(f"{name}[{heads[0]}]", t, (), lambda e: window(array, at_program(e), (1,), (1,))[0][0])
        at = ", ".join(f"{s} +: {n}" + (f" : {k}" if k > 1 else "") for s, n, k in zip(heads, shape, steps))
        k = r.random()
        if k < .1:
            return Value(f"{self.part_of(name, array)}[{at}]", t, shape, lambda e: window(array, at_program(e), shape, steps)[0])
        if k < .25 and t not in ("bool", *F8):
            pad = r.randrange(0, 9)
            return Value(f"load({name}[{at}], pad = {pad})", t, shape, lambda e: window(array, at_program(e), shape, steps, pad)[0])
        if k < .3 and t == "bool":
            return Value(f"in({name}[{at}])", t, shape, lambda e: window(array, at_program(e), shape, steps)[1])
        return Value(f"{name}[{at}]", t, shape, lambda e: window(array, at_program(e), shape, steps)[0])

    def part_of(self, name, array):
        """The whole view, said in another way."""
        if array.ndim == 1 and self.r.random() < .5:
            return f"view(raw({name}), ({name}_0), (1))"
        return f"sub({name}, ({', '.join(self.r.choice(['0', '-3']) for _ in array.shape)}), ({', '.join(f'{name}_{k} + {self.r.randrange(3)}' for k in range(array.ndim))}))"

    def narrow_load(self, t, shape):
        """Elements of 8 and 4 bits, widened by a cast."""
        of = self.r.choice(F8 + PACKED)
        full = shape or (1,)
        name, array = self.view(of, (*full[:-1], full[-1] // 2 + 1) if of in PACKED else full)
        values = TABLE[of][array if of in F8 else np.stack((array & 15, array >> 4), -1).reshape(*array.shape[:-1], 2 * array.shape[-1])]
        start = self.r.choice([0, 0, -1, 2])
        at = ", ".join(["0 +: %d" % n for n in full[:-1]] + ([f"{start} +: {full[-1]}"] if shape else [f"{start}"]))
        pad = TABLE[of][0]
        v = Value(f"cast({name}[{at}], {t})", t, shape, lambda e: to(window(values, [0] * (len(full) - 1) + [start], full, (1,) * len(full), pad)[0].reshape(shape), t))
        return v if is_int(t) else self.small(Value(f"rint({v.text})", t, shape, lambda e: np.rint(v.run(e))), t)

    def gather_load(self, t, shape):
        """Index tiles: of rank 1, each its own axis; of the shape itself, pointwise; pointers."""
        r, k = self.r, self.r.random()
        if k < .3 and shape and t not in ("bool", *F8):
            name, array = self.view(t, (40,))
            i, m = self.expr("i32", shape, 3), self.expr("bool", shape, 3)

            def run(e):
                n, ok = array.shape[0], m.run(e)
                at = i.run(e).astype(np.int64) & 15
                ok = ok & (at < n)
                return np.where(ok, array[np.minimum(at, n - 1)], np.array(5).astype(STORE[t]))
            if array.size == 0:
                return self.leaf(t, shape)
            return Value(f"load(raw({name}) + ({i.text} & 15), mask = {m.text} && ({i.text} & 15) < {name}_0, other = 5)", t, shape, run)
        if k < .6 or not shape:
            n = r.choice([1, 2, 3])
            name, array = self.view(t, (7, 5, 6)[:n])
            parts = [self.expr("i32", r.choice([shape, shape, ()]) if j else shape, 3) for j in range(n)]

            def run(e):
                at = np.broadcast_arrays(*[p.run(e).astype(np.int64) & 7 for p in parts]) if shape else [int(p.run(e)) & 7 for p in parts]
                ok = np.logical_and.reduce([(a >= 0) & (a < m) for a, m in zip(at, array.shape)])
                if array.size == 0:
                    return np.zeros(shape, array.dtype)
                got = array[tuple(np.where(ok, a, 0) for a in at)]
                return np.where(ok, got, np.zeros((), array.dtype))
            if len(shape) == 1 and sum(len(p.shape) for p in parts) > 1:  # vectors are an outer product
                return self.leaf(t, shape)
            return Value(f"{name}[{', '.join(f'({p.text} & 7)' for p in parts)}]", t, shape, run)
        name, array = self.view(t, tuple(max(n, 3) for n in shape))
        which = [r.random() < .5 for _ in shape]
        parts = [self.expr(r.choice(["i32", "i64", "u8"]), (n,), 3) if w else None for n, w in zip(shape, which)]

        def run(e):
            index = [(p.run(e).astype(np.int64) & 7) if p else np.arange(n) for p, n in zip(parts, shape)]
            ok = np.ones(shape, bool)
            for d, i in enumerate(index):
                ok &= ((i >= 0) & (i < array.shape[d])).reshape([-1 if d == q else 1 for q in range(len(shape))])
            if array.size == 0:
                return np.zeros(shape, array.dtype)
            return np.where(ok, array[np.ix_(*[np.minimum(i, m - 1) for i, m in zip(index, array.shape)])], np.zeros((), array.dtype))
        return Value(f"{name}[{', '.join(f'({p.text} & 7)' if p else f'0 +: {n}' for p, n in zip(parts, shape))}]", t, shape, run)

    # ---- expressions --------------------------------------------------------------------------------------------------
    def leaf(self, t, shape):
        r = self.r
        found = [v for v in self.vars if v.type == t and v.shape == tuple(shape)]
        if found and r.random() < .75:
            return r.choice(found)
        k = r.random()
        if k < .12 and t == "i32" and len(shape) == 1:
            return Value(f"iota({shape[0]})", t, shape, lambda e: np.arange(shape[0], dtype=np.int32))
        if k < .25 and t not in F8:
            lit = r.randrange(0, 8) if t != "bool" else bool(r.randrange(2))
            text = str(lit).lower()
            if not shape:
                return Value(f"cast({text}, {t})", t, shape, lambda e: to(lit, t))
            return Value(f"{tile_of(t, shape)}({text})", t, shape, lambda e: np.full(shape, to(lit, t)))
        return self.fresh_load(t, shape)

    def expr(self, t, shape, depth=0):
        shape = tuple(shape)
        r = self.r
        if depth > 3 or r.random() < .12 * (depth + 1) - .1:
            return self.leaf(t, shape)
        for _ in range(20):
            make = r.choice(self.moves if t in F8 else self.makers)
            v = make(self, t, shape, depth + 1)
            if v is not None:
                return v
        return self.leaf(t, shape)

    def scalar(self, depth=2):
        return self.expr("i32", (), depth)

    def small(self, v, t):
        """A float kept to where sums are exact."""
        return Value(f"clamp({v.text}, -{MOST[t]}, {MOST[t]})", t, v.shape, lambda e: clamped(v.run(e), MOST[t]).astype(STORE[t])) if not is_int(t) else v

    def arithmetic(self, t, shape, depth):
        if t == "bool":
            return None
        op = self.r.choice(["+", "-", "*"] + (["&", "|", "^"] if is_int(t) else []))
        other = shape if self.r.random() < .6 else self.r.choice([(), shape[1:], *[(1,) * k + shape[k:] for k in range(len(shape))]])
        a, b = self.expr(t, shape, depth), self.expr(t, other, depth)
        if self.r.random() < .5:
            a, b = b, a
        f = {"+": np.add, "-": np.subtract, "*": np.multiply, "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor}[op]
        round_ = bf16 if t == "bf16" else (lambda x: x.astype(STORE[t]))
        return self.small(Value(f"({a.text} {op} {b.text})", t, shape, lambda e: round_(f(a.run(e), b.run(e)))), t)

    def shifts(self, t, shape, depth):
        if not is_int(t):
            return None
        op, a, b = self.r.choice(["<<", ">>"]), self.expr(t, shape, depth), self.expr(self.r.choice(["u8", "i32", t]), shape, depth)

        def run(e):
            x, n = a.run(e), (b.run(e).astype(np.int64) & (bits(t) - 1)).astype(STORE[t])
            return (np.left_shift(x, n) if op == "<<" else np.right_shift(x, n)).astype(STORE[t])
        return Value(f"({a.text} {op} {b.text})", t, shape, run)

    def division(self, t, shape, depth):
        if not is_int(t):
            return None
        op, a, b = self.r.choice(["/", "%"]), self.expr(t, shape, depth), self.expr(t, shape, depth)

        def run(e):
            x, y = a.run(e).astype(object), ((b.run(e) & STORE[t](7)) | STORE[t](1)).astype(object)
            q = np.vectorize(lambda p, d: abs(int(p)) // int(d) * (1 if p >= 0 else -1), otypes=[object])(x, y)
            return np.asarray(q if op == "/" else x - q * y).astype(STORE[t])
        return Value(f"({a.text} {op} ({b.text} & 7 | 1))", t, shape, run)

    def unary(self, t, shape, depth):
        a = self.expr(t, shape, depth)
        if t == "bool":
            return Value(f"(!{a.text})", t, shape, lambda e: ~a.run(e))
        k = self.r.choice(["-", "abs", "~", "popcount", "clz", "rotl"] if is_int(t) else ["-", "abs", "floor", "rint", "identity"])
        n = bits(t)
        if k == "-":
            return Value(f"(-({a.text}))", t, shape, lambda e: (STORE[t](0) - a.run(e)).astype(STORE[t]))
        if k == "~":
            return Value(f"(~{a.text})", t, shape, lambda e: np.invert(a.run(e)))
        if k == "abs":
            return Value(f"abs({a.text})", t, shape, lambda e: np.abs(a.run(e)).astype(STORE[t]))
        if k in ("floor", "rint", "identity"):
            return Value(f"{k}({a.text})", t, shape, lambda e: {"floor": np.floor, "rint": np.rint, "identity": lambda x: x}[k](a.run(e)))

        def run(e):
            x = np.asarray(a.run(e)).astype(object) % 2**n
            f = {"popcount": lambda v: bin(v).count("1"), "clz": lambda v: n - int(v).bit_length(), "rotl": lambda v: (v << 3 | v >> (n - 3)) % 2**n}[k]
            y = np.vectorize(lambda v: f(int(v)), otypes=[object])(x)
            return np.asarray(np.where(y >= 2**(n - 1), y - 2**n, y) if t[0] == "i" else y).astype(STORE[t])
        return Value(f"{k}({a.text}, 3)" if k == "rotl" else f"{k}({a.text})", t, shape, run)

    def extremes(self, t, shape, depth):
        if t == "bool":
            return None
        op, a, b = self.r.choice(["min", "max"]), self.expr(t, shape, depth), self.expr(t, self.r.choice([shape, ()]), depth)
        f = np.fmin if op == "min" else np.fmax
        return Value(f"{op}({a.text}, {b.text})", t, shape, lambda e: f(a.run(e), b.run(e)))

    def compare(self, t, shape, depth):
        if t != "bool":
            return None
        of = self.r.choice(INTS + FLOATS)
        op, a, b = self.r.choice(["<", "<=", ">", ">=", "==", "!="]), self.expr(of, shape, depth), self.expr(of, self.r.choice([shape, ()]), depth)
        f = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal}[op]
        return Value(f"({a.text} {op} {b.text})", t, shape, lambda e: f(a.run(e), b.run(e)))

    def logic(self, t, shape, depth):
        if t != "bool":
            return None
        op, a, b = self.r.choice(["&&", "||", "==", "!="]), self.expr(t, shape, depth), self.expr(t, shape, depth)
        f = {"&&": np.logical_and, "||": np.logical_or, "==": np.equal, "!=": np.not_equal}[op]
        return Value(f"({a.text} {op} {b.text})", t, shape, lambda e: f(a.run(e), b.run(e)))

    def select(self, t, shape, depth):
        c = self.expr("bool", self.r.choice([shape, shape, ()]), depth)
        a, b = self.expr(t, shape, depth), self.expr(t, shape, depth)
        return Value(f"({c.text} ? {a.text} : {b.text})", t, shape, lambda e: np.where(c.run(e), a.run(e), b.run(e)))

    def casts(self, t, shape, depth):
        if t == "bool" or not is_int(t):
            of = self.r.choice(["i8", "u8"] if t != "bool" else INTS + FLOATS)
            a = self.expr(of, shape, depth)
            if t == "bool":
                return Value(f"cast({a.text}, bool)", t, shape, lambda e: a.run(e) != 0)
            m = 8
            return Value(f"cast({a.text} % {m}, {t})", t, shape, lambda e: np.fmod(a.run(e), STORE[of](m)).astype(STORE[t]))
        a = self.expr(self.r.choice([*INTS, *FLOATS, "bool"]), shape, depth)
        return Value(f"cast({a.text}, {t})", t, shape, lambda e: to(a.run(e), t))

    def transposed(self, t, shape, depth):
        if len(shape) < 2:
            return None
        perm = list(range(len(shape)))
        self.r.shuffle(perm)
        source = [0] * len(shape)
        for i, p in enumerate(perm):
            source[p] = shape[i]
        a = self.expr(t, source, depth)
        return Value(f"trans({a.text}, {', '.join(map(str, perm))})", t, shape, lambda e: a.run(e).transpose(perm))

    def reshaped(self, t, shape, depth):
        n = int(np.prod(shape))
        if not shape:
            return None
        options = [(n,)] + [(d, n // d) for d in range(1, n + 1) if n % d == 0] + [(d, 2, n // d // 2) for d in range(1, n) if n % (2 * d) == 0]
        a = self.expr(t, self.r.choice(options), depth)
        return Value(f"reshape({a.text}, {', '.join(map(str, shape))})", t, shape, lambda e: a.run(e).reshape(shape))

    def axis(self, shape):
        return self.r.randrange(len(shape)) if shape else None

    def flipped(self, t, shape, depth):
        k = self.axis(shape)
        if k is None:
            return None
        a = self.expr(t, shape, depth)
        return Value(f"flip({a.text}, {k})", t, shape, lambda e: np.flip(a.run(e), k))

    def repeated(self, t, shape, depth):
        k = self.axis(shape)
        ways = [d for d in (2, 3, 4, 5) if k is not None and shape[k] % d == 0]
        if not ways:
            return None
        n = self.r.choice(ways)
        a = self.expr(t, (*shape[:k], shape[k] // n, *shape[k + 1:]), depth)
        return Value(f"repeat({a.text}, {k}, {n})", t, shape, lambda e: a.run(e).repeat(n, k))

    def joined(self, t, shape, depth):
        k = self.axis(shape)
        if k is None or shape[k] < 2:
            return None
        cut = self.r.randrange(1, shape[k])
        a, b = (self.expr(t, (*shape[:k], n, *shape[k + 1:]), depth) for n in (cut, shape[k] - cut))
        return Value(f"cat({a.text}, {b.text}, {k})", t, shape, lambda e: np.concatenate((a.run(e), b.run(e)), k))

    def interleaved(self, t, shape, depth):
        if not shape or shape[-1] % 2:
            return None
        half = (*shape[:-1], shape[-1] // 2)
        if shape[-1] == 2 and self.r.random() < .5:
            a, b = self.expr(t, shape[:-1], depth), self.expr(t, shape[:-1], depth)
            return Value(f"join({a.text}, {b.text})", t, shape, lambda e: np.stack((a.run(e), b.run(e)), -1))
        a, b = self.expr(t, half, depth), self.expr(t, half, depth)
        return Value(f"interleave({a.text}, {b.text})", t, shape, lambda e: np.stack((a.run(e), b.run(e)), -1).reshape(shape))

    def extracted(self, t, shape, depth):
        if not shape or np.prod(shape) > 200:
            return None
        extents = [n + self.r.choice([0, 0, 1, 3]) for n in shape]
        starts = [self.r.randrange(m - n + 1) for m, n in zip(extents, shape)]
        a = self.expr(t, extents, depth)
        cut = tuple(slice(s, s + n) for s, n in zip(starts, shape))
        return Value(f"extract({a.text}, {', '.join(f'{s} +: {n}' for s, n in zip(starts, shape))})", t, shape, lambda e: a.run(e)[cut])

    def picked(self, t, shape, depth):
        if len(shape) > 3 or np.prod(shape) > 200:
            return None
        k, n = self.r.randrange(len(shape) + 1), self.r.choice([1, 2, 3, 7])
        a, i = self.expr(t, (*shape[:k], n, *shape[k:]), depth), self.scalar()
        return Value(f"pick({a.text}, {k}, ({i.text} & 65535) % {n})", t, shape, lambda e: np.take(a.run(e), (int(i.run(e)) & 65535) % n, k))

    def put(self, t, shape, depth):
        k = self.axis(shape)
        if k is None:
            return None
        a, i, v = self.expr(t, shape, depth), self.scalar(), self.expr(t, (*shape[:k], *shape[k + 1:]), depth)

        def run(e):
            x, at, w = a.run(e).copy(), (int(i.run(e)) & 65535) % shape[k], v.run(e)
            x[(slice(None),) * k + (at,)] = w
            return x
        return Value(f"put({a.text}, {k}, ({i.text} & 65535) % {shape[k]}, {v.text})", t, shape, run)

    def shifted(self, t, shape, depth):
        k = self.axis(shape)
        if k is None:
            return None
        a, n, f = self.expr(t, shape, depth), self.scalar(), self.expr(t, self.r.choice([(), shape]), depth)

        def run(e):
            x, by, fill = a.run(e), int(np.fmod(int(n.run(e)), 5)), f.run(e)
            i = np.arange(shape[k]) - by
            ok = ((i >= 0) & (i < shape[k])).reshape([-1 if d == k else 1 for d in range(len(shape))])
            return np.where(ok, np.take(x, np.clip(i, 0, shape[k] - 1), k), fill)
        return Value(f"shift({a.text}, {k}, {n.text} % 5, {f.text})", t, shape, run)

    def squeezed(self, t, shape, depth):
        if len(shape) > 4:
            return None
        k = self.r.randrange(len(shape) + 1)
        a = self.expr(t, (*shape[:k], 1, *shape[k:]), depth)
        return Value(f"squeeze({a.text}, {k})", t, shape, lambda e: a.run(e).squeeze(k))

    def expanded(self, t, shape, depth):
        ones = [k for k, n in enumerate(shape) if n == 1]
        if not ones:
            return None
        k = self.r.choice(ones)
        a = self.expr(t, (*shape[:k], *shape[k + 1:]), depth)
        return Value(f"expand({a.text}, {k})", t, shape, lambda e: np.expand_dims(a.run(e), k))

    def spread(self, t, shape, depth):
        if not shape:
            return None
        lower = self.r.choice([(), shape[1:], *[shape[:k] + (1,) + shape[k + 1:] for k in range(len(shape))]])
        a = self.expr(t, lower, depth)
        return Value(f"broadcast({a.text}, {', '.join(map(str, shape))})", t, shape, lambda e: np.broadcast_to(a.run(e), shape))

    def reduced(self, t, shape, depth):
        if len(shape) > 3 or np.prod(shape) > 128:
            return None
        r, n = self.r, self.r.choice([1, 2, 3, 5, 8, 16])
        k = r.randrange(len(shape) + 1)
        full, m = (*shape[:k], n, *shape[k:]), None
        of = t
        if t == "bool":
            a, op = self.expr("bool", full, depth), r.choice(["any", "all"])
            return Value(f"{op}({a.text}, axis = {k})", t, shape, lambda e: getattr(np, op)(a.run(e), k))
        op = r.choice(["sum", "max", "min", "xor_sum", "prod"] if is_int(t) else ["sum", "max", "min"])
        if t == "i32" and r.random() < .3:
            op, of = r.choice(["argmax", "argmin"]), r.choice(INTS + FLOATS)
        elif op in ("sum", "prod"):
            of = r.choice([s for s in SUM if SUM[s] == t and (op == "sum" or s != "bool")] + [t]) if t in ("i32", "u32") else t
            if of in SUM.keys() and of == t:
                return None
        a = self.expr(of, full, depth)
        where = self.expr("bool", full, depth) if r.random() < .25 and op != "xor_sum" else None
        text = f"{op}({a.text}, axis = {k}{f', where = {where.text}' if where else ''})"

        def run(e):
            x, w = a.run(e), where.run(e) if where else np.ones(full, bool)
            if op in ("sum", "prod", "xor_sum"):
                x = np.where(w, x, 1 if op == "prod" else 0).astype(STORE[t])
                return {"sum": np.add, "prod": np.multiply, "xor_sum": np.bitwise_xor}[op].reduce(x, k, dtype=STORE[t])
            lo, hi = (-np.inf, np.inf) if not is_int(of) else (np.iinfo(STORE[of]).min, np.iinfo(STORE[of]).max)
            least = op in ("max", "argmax")
            x = np.where(w, x, np.array(lo if least else hi).astype(STORE[of]))
            if op in ("max", "min"):
                return (np.fmax if op == "max" else np.fmin).reduce(x, k)
            # of what was left out nothing is taken, even where it ties
            best = (x == (np.fmax if least else np.fmin).reduce(x, k, keepdims=True)) & w
            return best.argmax(k).astype(np.int32)
        v = Value(text, t, shape, run)
        return self.small(v, t) if op == "sum" or where else v

    def by_function(self, t, shape, depth):
        """reduce and scan with a function of the program."""
        if t not in ("i32", "u32", "i64", "u64") or not shape:
            return None
        f, run_one = self.r.choice([("f_last", lambda x, y: np.where(y != 0, y, x)), ("f_xor", np.bitwise_xor), ("f_add", np.add)])
        text = {"f_last": "auto f_last(auto a, auto b) { return b != 0 ? b : a; }", "f_xor": "auto f_xor(auto a, auto b) { if (a == 0) return b; return a ^ b; }", "f_add": "auto f_add(auto a, auto b) { return a + b; }"}[f]
        if text not in self.functions:
            self.functions.append(text)
        k, back = self.axis(shape), self.r.random() < .5
        a = self.expr(t, shape, depth)

        def run(e):
            x = np.moveaxis(a.run(e), k, 0)
            x = (x[::-1] if back else x).copy()
            for i in range(1, len(x)):
                x[i] = run_one(x[i - 1], x[i])
            return np.moveaxis(x[::-1] if back else x, 0, k)
        return Value(f"scan({a.text}, {k}, {f}{', reverse = true' if back else ''})", t, shape, run)

    def scanned(self, t, shape, depth):
        if not shape or not is_int(t) or np.prod(shape) > 300:
            return None
        of = self.r.choice([s for s in SUM if SUM[s] == t and s != "bool"] + [t]) if t in ("i32", "u32") else t
        if of in SUM:
            if of == t:
                return None
        k, back, op = self.axis(shape), self.r.random() < .4, self.r.choice(["cumsum", "cumsum", "cumprod"])
        a = self.expr(of, shape, depth)

        def run(e):
            x = a.run(e).astype(STORE[t])
            x = np.flip(x, k) if back else x
            y = getattr(np, op)(x, k, dtype=STORE[t])
            return np.flip(y, k) if back else y
        return Value(f"{op}({a.text}, axis = {k}{', reverse = true' if back else ''})", t, shape, run)

    def sorted_(self, t, shape, depth):
        if t == "bool" or not shape:
            return None
        k, down = self.axis(shape), self.r.random() < .5
        if t == "i32" and self.r.random() < .4:
            a = self.expr(self.r.choice(INTS + FLOATS), shape, depth)

            def run(e):
                return ordered(a.run(e), k, down).astype(np.int32)
            return Value(f"argsort({a.text}, {k}{', descending = true' if down else ''})", t, shape, run)
        a = self.expr(t, shape, depth)
        if k == len(shape) - 1 and self.r.random() < .3:
            n = self.r.randrange(0, 4)
            b = self.expr(t, (*shape[:-1], shape[-1] + n), depth)
            name = "top"
            if "auto top(" not in " ".join(self.functions):
                self.functions.append("auto top(auto v, const int n) { auto (a, i) = topk(v, n); return a; }")
            return Value(f"{name}({b.text}, {shape[-1]})", t, shape, lambda e: (lambda x: np.take_along_axis(x, ordered(x, -1, True), -1)[..., :shape[-1]])(b.run(e)))
        return Value(f"sort({a.text}, {k}{', descending = true' if down else ''})", t, shape, lambda e: (lambda x: np.take_along_axis(x, ordered(x, k, down), k))(a.run(e)))

    def gathered(self, t, shape, depth):
        k = self.axis(shape)
        if k is None:
            return None
        n = self.r.choice([1, 3, 8, 20])
        a, i = self.expr(t, (*shape[:k], n, *shape[k + 1:]), depth), self.expr(self.r.choice(["i32", "u8", "i64"]), shape, depth)

        def run(e):
            x, at = a.run(e), (i.run(e) & 31).astype(np.int64) - 2
            ok = (at >= 0) & (at < n)
            return np.where(ok, np.take_along_axis(x, np.where(ok, at, 0), k), np.zeros((), x.dtype))
        return Value(f"gather({a.text}, cast({i.text} & 31, i32) - 2, {k})", t, shape, run)

    def counted(self, t, shape, depth):
        if t != "i32" or len(shape) != 1:
            return None
        a = self.expr(self.r.choice(INTS), self.r.choice([(1,), (13,), (64,), (100,)]), depth)

        def run(e):
            x = a.run(e).astype(object)
            return np.array([(x == b).sum() for b in range(shape[0])], np.int32)
        return Value(f"histogram({a.text}, {shape[0]})", t, shape, run)

    def product(self, t, shape, depth):
        if len(shape) not in (2, 3) or t not in ("i32", "f32", "f64"):
            return None
        n = self.r.choice([1, 3, 8, 16, 20, 32])
        of = {"i32": ["i8", "u8"], "f32": ["f16", "bf16", "f32"], "f64": ["f64"]}[t]
        p = self.r.choice(of)
        q = self.r.choice(of) if t == "i32" else p
        a, b = self.expr(p, (*shape[:-1], n), depth), self.expr(q, (*shape[:-2], n, shape[-1]), depth)
        cut = (lambda v, u: f"clamp({v.text}, -8, 8)" if not is_int(u) else v.text)
        lim = (lambda x, u: clamped(x, 8) if not is_int(u) else x)
        v = Value(f"dot({cut(a, p)}, {cut(b, q)})", t, shape, lambda e: to((lim(a.run(e), p).astype(np.int64 if t == "i32" else np.float64) @ lim(b.run(e), q).astype(np.int64 if t == "i32" else np.float64)), t))
        return self.small(v, t) if t != "i32" else v

    makers = [arithmetic, arithmetic, shifts, division, unary, extremes, compare, logic, select, casts, transposed, reshaped, flipped, repeated, joined, interleaved, extracted, picked, put, shifted, squeezed,
              expanded, spread, reduced, reduced, by_function, scanned, sorted_, gathered, counted, product]

    moves = [select, transposed, reshaped, flipped, repeated, joined, interleaved, extracted, picked, put, shifted, squeezed, expanded, spread, gathered]

    # ---- statements ---------------------------------------------------------------------------------------------------
    def declare(self, indent):
        t = self.r.choice(INTS + FLOATS + ["bool", "i32", "i32"] + F8)
        shape = self.r.choice(SHAPES)
        v = self.expr(t, shape, self.r.choice([0, 0, 1]))
        name = self.name("v")

        def step(e):
            e[name] = v.run(e)
        self.vars.append(Value(name, t, shape, lambda e: e[name]))
        how = self.r.choice(["auto", tile_of(t, shape)])
        return [f"{indent}{how} {name} = {v.text};"], [step]

    def assign(self, indent):
        if not self.vars or self.r.random() < .2:
            return self.memory(indent)
        var = self.r.choice([v for v in self.vars if v.text.startswith("v")] or self.vars)
        if not var.text.startswith("v"):
            return self.declare(indent)
        v = self.expr(var.type, var.shape, 2)
        name = var.text

        def step(e):
            e[name] = v.run(e)
        return [f"{indent}{name} = {v.text};"], [step]

    def memory(self, indent):
        """Stores to a scratch view and loads back in another shape."""
        r = self.r
        t, n = r.choice([s for s in INTS + FLOATS]), r.choice([24, 60, 96])
        name, got = self.name("m"), self.name("v")
        self.params.append(f"{t} {name}[{self.programs}, {name}_n]")
        self.arrays[name] = (t, self.data(t, (self.programs, n)))
        v, start, step_ = self.expr(t, (r.choice([8, 13, 24]),), 2), r.choice([0, -3, 5, n - 6]), r.choice([1, 1, 2])
        w = r.choice([(6, 4), (5,), (3, 2, 2)])
        mask = self.expr("bool", v.shape, 3) if r.random() < .4 else None
        scatter, turn = r.random() < .4, r.choice([1, 7, 11])
        perm = Value(f"((iota({v.shape[0]}) * {turn} + {start}) % {n} - 2)", "i32", v.shape, lambda e: np.fmod(np.arange(v.shape[0]) * turn + start, n) - 2)
        mult = r.choice([1, 5, 7, 11])
        at = f"({'reshape(iota(%d), %s)' % (int(np.prod(w)), ', '.join(map(str, w)))} * {mult} - 3)"
        atomic = is_int(t) and bits(t) >= 32 and r.random() < .4

        def step(e):
            m = e[name][e["pid"]]
            x = v.run(e)
            i = (perm.run(0) if scatter else start + np.arange(v.shape[0]) * step_)
            ok = (i >= 0) & (i < n) & (mask.run(e) if mask else True)
            m[i[ok]] = m[i[ok]] + x[ok] if atomic else x[ok]
            j = np.arange(int(np.prod(w))).reshape(w) * mult - 3
            okj = (j >= 0) & (j < n)
            e[got] = np.where(okj, m[np.clip(j, 0, n - 1)], np.zeros((), m.dtype))
        where = f"{name}[pid(0), {start} +: {v.shape[0]}" + (f" : {step_}]" if step_ > 1 else "]")
        if scatter:
            where = f"{name}[pid(0), {perm.text}]"
        masked = f", mask = {mask.text}" if mask else ""
        lines = [f"{indent}atomic_add({where}, {v.text}{masked});" if atomic else f"{indent}store({where}, {v.text}{masked});" if mask else f"{indent}{where} = {v.text};",
                 f"{indent}auto {got} = {name}[pid(0), {at}];"]
        self.vars.append(Value(got, t, w, lambda e: e[got]))
        return lines, [step]

    def block(self, indent, count):
        mark = len(self.vars)
        lines, steps = [], []
        for _ in range(count):
            more, run = self.statement(indent)
            lines += more
            steps += run
        self.vars = self.vars[:mark]
        return lines, steps

    def accumulate(self, indent):
        """A variable and a loop that adds products of loaded blocks to it."""
        r, got, i = self.r, self.name("v"), self.name("loop")
        t, m, n, k = r.choice(["f32", "i32", "f64"]), r.choice([1, 7, 16, 32]), r.choice([8, 16, 24]), r.choice([3, 8, 16, 32])
        p = r.choice({"i32": ["i8", "u8"], "f32": ["f16", "bf16", "f32"], "f64": ["f64"]}[t])
        trips, hint = r.choice([0, 1, 2, 5]), r.choice(["", " pipeline", " pipeline(2)", " pipeline(4)", " unroll(2)", " unroll"])
        mark = len(self.vars)
        self.vars.append(Value(i, "i32", (), lambda e: np.int32(e[i])))
        a, b = (self.fresh_load(p, s) if r.random() < .7 else self.expr(p, s, 2) for s in ((m, k), (k, n)))
        extra = self.expr("bool", (), 3)
        self.vars = self.vars[:mark]
        cut = (lambda v: f"clamp({v.text}, -2, 2)" if not is_int(p) else v.text)
        lim = (lambda x: clamped(x, 2).astype(np.float64) if not is_int(p) else x.astype(np.int64))
        how = r.choice(["plain", "if", "sum"])

        def step(e):
            x = np.zeros((m, n), STORE[t])
            for j in range(trips):
                e[i] = j
                if how == "if" and not extra.run(e):
                    continue
                x = (x + (lim(a.run(e)) @ lim(b.run(e)))).astype(STORE[t])
                if how == "sum":
                    x = clamped(x, 1000) if t != "i32" else x ^ np.int32(j)
            e[got] = x
        add = f"{got} = dot({cut(a)}, {cut(b)}, {got});"
        body = {"plain": add, "if": f"if ({extra.text}) {add}", "sum": add + (f" {got} = clamp({got}, -1000, 1000);" if t != "i32" else f" {got} ^= {i};")}[how]
        self.vars.append(Value(got, t, (m, n), lambda e: e[got]))
        return [f"{indent}{tile_of(t, (m, n))} {got};", f"{indent}for (int {i} : range({trips})){hint} {{ {body} }}"], [step]

    def operand(self, t, shape, bound):
        """A block for a product: loaded, turned, widened, looked up or computed, within what sums keep exact."""
        r, k = self.r, self.r.random()
        if k < .5:
            v = self.fresh_load(t, shape)
        elif k < .65:
            u = self.fresh_load(t, shape[::-1])
            v = Value(f"trans({u.text})", t, shape, lambda e: u.run(e).T)
        elif k < .8 and t in ("f16", "bf16", "f32"):
            u = self.fresh_load(r.choice(["i8", "u8"]), shape)
            v = Value(f"cast({u.text} & 3, {t})", t, shape, lambda e: (u.run(e) & 3).astype(STORE[t]))
        else:
            v = self.expr(t, shape, 2)
        return v if is_int(t) else Value(f"clamp({v.text}, -{bound}, {bound})", t, shape, lambda e: clamped(v.run(e), bound).astype(STORE[t]))

    def action(self, i, states):
        """(line, step) of one thing that a pipelined loop does."""
        r, k = self.r, self.r.random()
        name = self.name("v")
        if k < .5:
            t, m, n, q = r.choice(["f32", "f32", "i32", "f64"]), r.choice([1, 5, 16, 32, 64]), r.choice([8, 16, 24, 32]), r.choice([1, 8, 16, 24, 32])
            p = r.choice({"i32": ["i8", "u8"], "f32": ["f16", "bf16", "f32"], "f64": ["f64"]}[t])
            a, b = self.operand(p, (m, q), 2), self.operand(p, (q, n), 2)
            states.append(Value(name, t, (m, n), lambda e: e[name]))

            def step(e):
                wide = np.int64 if t == "i32" else np.float64
                e[name] = (e[name] + a.run(e).astype(wide) @ b.run(e).astype(wide)).astype(STORE[t])
            return f"{name} = dot({a.text}, {b.text}, {name});", step
        if k < .7:
            t, shape = r.choice(["i32", "u16", "i64", "u8"]), r.choice([(32,), (5, 9), (16, 16), (100,)])
            v, op = self.expr(t, shape, 2), r.choice(["+", "^"])
            states.append(Value(name, t, shape, lambda e: e[name]))

            def step(e):
                e[name] = (e[name] + v.run(e) if op == "+" else e[name] ^ v.run(e)).astype(STORE[t])
            return f"{name} {op}= {v.text};", step
        if k < .85:
            v = self.fresh_load(r.choice(["i8", "i32", "u16"]), (8, r.choice([5, 16, 40])))
            states.append(Value(name, "i32", (8,), lambda e: e[name]))

            def step(e):
                e[name] = np.maximum(e[name], v.run(e).astype(np.int32).sum(1, dtype=np.int32))
            return f"{name} = max({name}, sum(cast({v.text}, i32), axis = 1));", step
        # what a trip stores the next reads
        memory, t, n = self.name("m"), r.choice(["i32", "f16", "u8", "f64"]), r.choice([8, 13, 32])
        self.params.append(f"{t} {memory}[{self.programs}, {memory}_n]")
        self.arrays[memory] = (t, self.data(t, (self.programs, 90)))
        back, by, v = r.choice([0, 1, n, -3]), r.choice([1, n, 5]), self.expr(t, (n,), 3)
        states.append(Value(name, t, (n,), lambda e: e[name]))

        def step(e):
            m, at = e[memory][e["pid"]], int(e[i]) * by
            old = window(m, [at - back], (n,), (1,))[0]
            index = at + np.arange(n)
            ok = (index >= 0) & (index < 90)
            m[index[ok]] = np.fmax(old, v.run(e))[ok]
            e[name] = old
        return f"{name} = {memory}[pid(0), {i} * {by} - {back} +: {n}]; {memory}[pid(0), {i} * {by} +: {n}] = max({name}, {v.text});", step

    def pipelined(self, indent):
        """A loop of products, sums and memory, with any bounds, hints and exits."""
        r, i = self.r, self.name("loop")
        n = self.scalar(3)
        lo, by = r.choice([0, 0, 2, -3]), r.choice([1, 1, 2, 16, -1])
        runs_to = r.choice([None, 0, 1, 3, 6])  # None: known at run time only
        states, actions, mark = [], [], len(self.vars)
        self.vars.append(Value(i, "i32", (), lambda e: np.int32(e[i])))
        for _ in range(r.randrange(1, 4)):
            actions.append(self.action(i, states))
        end = self.expr("bool", (), 3) if r.random() < .3 else None
        word, at = r.choice(["break", "continue"]), r.randrange(len(actions) + 1)
        under = self.expr("bool", (), 3) if r.random() < .2 else None
        self.vars = self.vars[:mark]
        hint = r.choice(["", "", " pipeline", " pipeline", " pipeline(2)", " pipeline(4)", " unroll(2)", " pipeline(3) unroll(2)", " specialize"])
        hi = f"{lo} + {by} * (({n.text}) & 3)" if runs_to is None else str(lo + by * runs_to)
        lines = [line for line, _ in actions]
        if under:
            lines[-1] = f"if ({under.text}) {{ {lines[-1]} }}"
        if end:
            lines.insert(at, f"if ({end.text}) {word};")

        def step(e):
            for v in states:
                e[v.text] = np.zeros(v.shape, STORE[v.type])
            stop = lo + by * (int(n.run(e)) & 3) if runs_to is None else lo + by * runs_to
            for j in range(lo, stop, by):
                e[i] = j
                for k, (_, run) in enumerate(actions):
                    if end is not None and k == at and end.run(e):
                        break
                    if under is None or k < len(actions) - 1 or under.run(e):
                        run(e)
                else:
                    if end is None or at < len(actions) or not end.run(e) or word == "continue":
                        continue
                    break
                if word == "break":
                    break
        out = [f"{indent}{tile_of(v.type, v.shape)} {v.text};" for v in states]
        out += [f"{indent}for (int {i} : range({lo}, {hi}, {by})){hint} {{", *[f"{indent}    {line}" for line in lines], f"{indent}}}"]
        self.vars += states
        return out, [step]

    def record(self, indent):
        """Variables go through a struct, whose fields change."""
        r = self.r
        some = [v for v in self.vars if v.text.startswith("v")]
        if len(some) < 2:
            return self.declare(indent)
        given = r.sample(some, min(len(some), r.randrange(2, 4)))
        name, var = self.name("pack"), self.name("s")
        fields = [f"f{k}" for k in range(len(given))]
        self.functions.append(f"struct {name} {{ {' '.join(f'{tile_of(v.type, v.shape)} {f};' for v, f in zip(given, fields))} }};\n"
                              f"struct {name} turn_{name}(struct {name} p, bool c) {{ if (c) {{ auto t = p.f0; p.f0 = t; return p; }} p.f1 = p.f1; return p; }}")
        c, k = self.expr("bool", (), 3), r.randrange(len(given))
        new = self.expr(given[k].type, given[k].shape, 2)

        def step(e):
            values = [v.run(e) for v in given]
            if c.run(e):
                values[k] = new.run(e)
            for v, x in zip(given, values):
                e[v.text] = x
        out = [f"{indent}struct {name} {var} = {{{', '.join(v.text for v in given)}}};", f"{indent}if ({c.text}) {var}.f{k} = {new.text};", f"{indent}{var} = turn_{name}({var}, {c.text});"]
        return out + [f"{indent}{v.text} = {var}.{f};" for v, f in zip(given, fields)], [step]

    def branch(self, indent):
        c = self.expr("bool", (), 2)
        a_lines, a = self.block(indent + "    ", self.r.randrange(1, 3))
        b_lines, b = self.block(indent + "    ", self.r.randrange(0, 3))

        def step(e):
            for s in a if c.run(e) else b:
                s(e)
        return [f"{indent}if ({c.text}) {{", *a_lines, f"{indent}}} else {{", *b_lines, f"{indent}}}"], [step]

    def loop(self, indent):
        r, i = self.r, self.name("loop")
        lo, hi, by = r.choice([(0, 3, 1), (2, -4, -2), (5, 5, 1), (-3, 9, 5), (0, 1, 1)])
        mark = len(self.vars)
        self.vars.append(Value(i, "i32", (), lambda e: np.int32(e[i])))
        end = self.expr("bool", (), 2) if r.random() < .4 else None
        word = r.choice(["break", "continue"])
        lines, steps = self.block(indent + "    ", r.randrange(1, 3))
        more, rest = self.block(indent + "    ", r.randrange(0, 2))
        self.vars = self.vars[:mark]
        hint = r.choice(["", "", " unroll(2)", " pipeline", " nounroll", " unroll"])

        def step(e):
            for k in range(lo, hi, by):
                e[i] = k
                for s in steps:
                    s(e)
                if end is not None and end.run(e):
                    if word == "break":
                        break
                    continue
                for s in rest:
                    s(e)
        exit_ = [f"{indent}    if ({end.text}) {word};"] if end is not None else []
        return [f"{indent}for (int {i} : range({lo}, {hi}, {by})){hint} {{", *lines, *exit_, *more, f"{indent}}}"], [step]

    def call(self, indent):
        """A function of some variables that returns early or late."""
        some = [v for v in self.vars if v.text.startswith("v")]
        if not some:
            return self.declare(indent)
        given = self.r.sample(some, min(len(some), self.r.randrange(1, 4)))
        name, got = self.name("g"), self.name("v")
        names = [self.name("v") for _ in given]
        saved, self.vars = self.vars, [Value(n, v.type, v.shape, (lambda n: lambda e: e[n])(n)) for n, v in zip(names, given)]
        out = self.r.choice(given)
        early = self.expr("bool", (), 2)
        lines, steps = self.block("    ", self.r.randrange(1, 3))
        first = self.expr(out.type, out.shape, 2)
        last = self.expr(out.type, out.shape, 2)
        self.vars = saved
        views = []
        text = " ".join([*lines, early.text, first.text, last.text])
        for p in self.params:  # the views that the body uses are passed on
            n = p.split("[")[0].split()[-1]
            if re.search(rf"\b{n}\b", text):
                views.append((n, p))
        typed = ", ".join([f"{tile_of(v.type, v.shape)} {n}" if self.r.random() < .5 else f"auto {n}" for n, v in zip(names, given)] + [p for _, p in views])
        self.functions.append(f"auto {name}({typed}) {{\n    if ({early.text}) return {first.text};\n" + "\n".join(lines) + f"\n    return {last.text};\n}}")
        gets = [v for v in given]

        def step(e):
            for n, v in zip(names, gets):
                e[n] = v.run(e)
            if early.run(e):
                e[got] = first.run(e)
                return
            for s in steps:
                s(e)
            e[got] = last.run(e)
        self.vars.append(Value(got, out.type, out.shape, lambda e: e[got]))
        return [f"{indent}auto {got} = {name}({', '.join([v.text for v in given] + [n for n, _ in views])});"], [step]

    def statement(self, indent):
        self.depth += 1
        k = self.r.random()
        if self.loops and self.depth < 3 and k < .8:
            out = self.pipelined(indent)
        elif self.depth > 3 or k < .3:
            out = self.declare(indent) if k < .5 else self.assign(indent)
        elif k < .55:
            out = self.assign(indent)
        elif k < .7:
            out = self.branch(indent)
        elif k < .74:
            out = self.accumulate(indent)
        elif k < .77:
            out = self.pipelined(indent)
        elif k < .8:
            out = self.record(indent)
        elif k < .9:
            out = self.loop(indent)
        else:
            out = self.call(indent)
        self.depth -= 1
        return out

    def program(self):
        """(text, arrays by name, expected by name)"""
        lines, steps = [], []
        for _ in range(self.r.randrange(3, 8)):
            more, run = self.statement("    ")
            lines += more
            steps += run
        for k, v in enumerate([v for v in self.vars if v.text.startswith("v") and len(v.shape) < 5][-6:]):
            y, shape = f"y{k}", v.shape or (1,)
            self.params.append(f"{v.type} {y}[{', '.join(f'{y}_{d}' for d in range(len(shape) + 1))}]")
            self.arrays[y] = (v.type, np.full((self.programs, *shape), 77 if v.type != "bool" else 0).astype(STORE[v.type]))
            first = self.r.choice(["pid(0)", "pid(0)", "pid(0) +: 1"])
            lines.append(f"    {y}[{first}, {slices(v.shape) or '0'}] = {v.text};" if v.shape or "+" not in first else f"    {y}[{first}, 0 +: 1] = {v.text};")
            steps.append((lambda y, v, shape: lambda e: e[y].__setitem__(e["pid"], np.asarray(v.run(e)).reshape(shape)))(y, v, shape))
        e = {n: a.copy() for n, (_, a) in self.arrays.items()}
        for pid in range(self.programs):
            e["pid"] = pid
            for s in steps:
                s(e)
        head = "\n".join(self.functions)
        text = f"{head}\nkernel k({', '.join(self.params)})\n    grid({self.programs})\n{{\n" + "\n".join(lines) + "\n}\n"
        written = [n for n in self.arrays if n[0] in "my"]
        return text, self.arrays, {n: e[n] for n in written}


# ---- running ------------------------------------------------------------------------------------------------------------
def saved(t, x):
    return (np.ascontiguousarray(x).view(np.uint32) >> 16).astype(np.uint16) if t == "bf16" and x.flags.c_contiguous else \
        np.asfortranarray((np.ascontiguousarray(x).view(np.uint32) >> 16).astype(np.uint16)) if t == "bf16" else x


def loaded(t, x):
    return (x.astype(np.uint32) << 16).view(np.float32) if t == "bf16" else x


def words_of(way):
    device, *more = way.split("/")
    words = ["--device", device]
    for m in more:
        words += ["--check"] if m == "c" else ["--fp=strict"] if m == "f" else ["-" + m] if m[0] == "O" else ["--warps", m[1:]] if m[0] == "w" else ["--stress-layouts", m[1:]]
    return words


def run(seed, ways, cx):
    try:
        text, arrays, want = Maker(seed).program()
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
        for way in ways:
            words = base + words_of(way)
            for n in want:
                words += ["--save", f"{n}={d}/out_{n}.npy"]
            try:
                p = subprocess.run(words, capture_output=True, timeout=SECONDS)
            except subprocess.TimeoutExpired:
                bad.append((seed, way, "no end"))
                continue
            if p.returncode:
                bad.append((seed, way, f"exit status {p.returncode}: " + p.stderr.decode("utf-8", "replace")[:600]))
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
    ap.add_argument("--ways", default=",".join(WAYS))
    ap.add_argument("--per-program", type=int, default=3)
    ap.add_argument("--tilec", default="tilec")
    ap.add_argument("--keep")
    ap.add_argument("--jobs", type=int, default=2)
    cx = ap.parse_args()
    ways = cx.ways.split(",")
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
    print(f"{cx.count} programs, {sum(len(w) for _, w in jobs) - failed} passed, {failed} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
