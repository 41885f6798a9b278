#!/usr/bin/env python3
"""Every operation, for every element type and rank, as code of every CPU level: compiled for all of them, run on those
that this machine has.

    levels.py [--build DIR] [--long] [-k SUBSTRING] [-v]

Kernels are made here, one for each element type, rank and group of operations. They are compiled for CPU levels, and for
emulated GPUs on such; the objects in the images are read here, too: nothing in them may be undefined. Then they run on `ref`
and on levels of this machine: what NumPy can say must be right, and all bits as on `ref`.

--long: every kernel for every level, also one for each operation alone. Without it ranks, levels and emulated GPUs go round:
floats have two ranks, other types one; floats are for the least level and another, the rest for one; every fourth kernel runs.
Prints what is wrong and, last, "N compiled, N run, N failed"; exit 1 if any failed. Needs NumPy.
"""
import argparse
import itertools
import os
import struct
import subprocess
import sys
import tempfile
import warnings
from collections import namedtuple
from fractions import Fraction

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test", "conformance"))
import numpy as np  # noqa: E402
from values import (ALL, FLOATS, INTS, PACKED, STORE, Arr, bits_of, compare, edges, either_zero, exact, exactly, is_float, poison, quantize,  # noqa: E402
                    random_bits, rng, round_exact, small, wide)

warnings.simplefilter("ignore")
np.seterr(all="ignore")
LEVELS = ["x86-64-v2", "x86-64-v3", "x86-64-v4", "native", "aarch64", "x86-64-v4-zen4", "armv8.4-a", "armv8.6-a", "x86-64-v4-vnni", "x86-64-v4-amx", "x86-64-v4-avx10", "x86-64-v4-apx", "armv9-a"]
EMULATED = ["emu:sm_80@x86-64-v2", "emu:gfx942@x86-64-v2"]
MORE_EMULATED = [f"emu:{t}@{v}" for t in ("sm_90a", "gfx1100") for v in ("x86-64-v2", "x86-64-v3", "aarch64")]
F8 = ["f8e4m3", "f8e5m2", "f8e4m3fnuz", "f8e5m2fnuz"]
TILES = {0: (), 1: (64,), 2: (5, 13), 3: (3, 5, 7)}  # what one program takes; rank 0: a scalar
MATH = "exp exp2 expm1 log log2 log10 log1p rsqrt cbrt sin cos tan asin acos atan sinh cosh tanh erf erfc sigmoid".split()

Op = namedtuple("Op", "name type text types want")  # type None: the operands'; want: of wide x, y, z; None: ref says
Case = namedtuple("Case", "name source args want type", defaults=["f32"])


# ---- the operations -------------------------------------------------------------------------------------------------
def once(op):
    """In f64 exact, or innocuous: one rounding to the type."""
    return lambda t, *v: exact(quantize(op(*(a.astype(np.float64) for a in v)), t)) if is_float(t) else exact(op(*v))


def just(op):
    return lambda t, *v: exact(op(*v))


def signless(op):
    return lambda t, *v: either_zero(op(*v), *v) if is_float(t) else exact(op(*v))


def fused(t, x, y, z):
    true = [Fraction(a) * Fraction(b) + Fraction(c) if np.isfinite([a, b, c]).all() else None for a, b, c in
            zip(*(v.ravel().tolist() for v in (x, y, z)))]
    finite = np.isfinite(x) & np.isfinite(y)  # their product may still overflow in f64
    plain = np.where(finite & ~np.isfinite(z), z, x.astype(np.float64) * y + z).ravel()  # right where the exact result is 0 or none
    return exact(np.array([p if not f else round_exact(f, t) for p, f in zip(plain, true)]).reshape(x.shape))


NUMBERS, FUSED = INTS + FLOATS, ["f32", "f64"]
ELEMENTWISE = [
    Op("add", None, "x + y", NUMBERS, once(np.add)), Op("sub", None, "x - y", NUMBERS, once(np.subtract)),
    Op("mul", None, "x * y", NUMBERS, once(np.multiply)), Op("div", None, "x / y", FLOATS, once(np.divide)),
    Op("idiv", None, "x / (y == 0 || y + 1 == 0 ? 1 : y)", INTS, None), Op("irem", None, "x % (y == 0 || y + 1 == 0 ? 1 : y)", INTS, None),
    Op("fmod", None, "fmod(x, y)", FLOATS, once(np.fmod)), Op("neg", None, "-x", NUMBERS, just(np.negative)),
    Op("abs", None, "abs(x)", NUMBERS, just(np.abs)), Op("min", None, "min(x, y)", NUMBERS, signless(np.fmin)),
    Op("max", None, "max(x, y)", NUMBERS, signless(np.fmax)), Op("min_nan", None, "min_nan(x, y)", FLOATS, signless(np.minimum)),
    Op("max_nan", None, "max_nan(x, y)", FLOATS, signless(np.maximum)), Op("clamp", None, "clamp(x, y, z)", NUMBERS, None),
    Op("sign", None, "sign(x)", NUMBERS, None), Op("sqrt", None, "sqrt(x)", FLOATS, once(np.sqrt)), Op("floor", None, "floor(x)", FLOATS, just(np.floor)),
    Op("ceil", None, "ceil(x)", FLOATS, just(np.ceil)), Op("trunc", None, "trunc(x)", FLOATS, just(np.trunc)),
    Op("rint", None, "rint(x)", FLOATS, just(np.rint)), Op("round", None, "round(x)", FLOATS, None),
    Op("fma", None, "fma(x, y, z)", FUSED, fused), Op("isnan", "bool", "isnan(x)", FLOATS, just(np.isnan)),
    Op("isinf", "bool", "isinf(x)", FLOATS, just(np.isinf)), Op("select", None, "x < y ? z : x", NUMBERS, just(lambda x, y, z: np.where(x < y, z, x))),
    Op("and", None, "x & y", INTS, just(np.bitwise_and)), Op("or", None, "x | y", INTS, just(np.bitwise_or)), Op("xor", None, "x ^ y", INTS, just(np.bitwise_xor)),
    Op("not", None, "~x", INTS, just(np.invert)), Op("shl", None, "x << (y & 7)", INTS, None), Op("shr", None, "x >> (y & 7)", INTS, None),
    Op("rotl", None, "rotl(x, y)", INTS, None), Op("mulhi", None, "mulhi(x, y)", INTS, None), Op("popcount", None, "popcount(x)", INTS, None),
    Op("clz", None, "clz(x)", INTS, None), Op("ctz", None, "ctz(x)", INTS, None), Op("cdiv", None, "cdiv(x, y | 1)", [t for t in INTS if t[0] == "u"], None),
    Op("conj", "bool", "x && y", ["bool"], just(np.logical_and)), Op("disj", "bool", "x || y", ["bool"], just(np.logical_or)),
    Op("inverse", "bool", "!x", ["bool"], just(np.logical_not)), Op("pow", None, "pow(x, y)", ["f32", "f16"], None), Op("atan2", None, "atan2(x, y)", ["f32", "f16"], None),
    *[Op(f, None, f"{f}(x)", ["f32", "f16", "bf16"], None) for f in MATH],
    *[Op(n, "bool", f"x {o} y", NUMBERS + ["bool"] * (n in ("eq", "ne")), just(f)) for n, o, f in
      (("lt", "<", np.less), ("le", "<=", np.less_equal), ("gt", ">", np.greater), ("ge", ">=", np.greater_equal), ("eq", "==", np.equal), ("ne", "!=", np.not_equal))],
]
REDUCTIONS = [
    Op("sum", None, "sum(x, axis = {a})", NUMBERS + ["bool"], None), Op("prod", None, "prod(x, axis = {a})", NUMBERS, None),
    Op("max", None, "max(x, axis = {a})", NUMBERS, lambda t, x, a: exact(x.max(a))), Op("min", None, "min(x, axis = {a})", NUMBERS, lambda t, x, a: exact(x.min(a))),
    Op("argmax", "i32", "argmax(x, axis = {a})", NUMBERS, lambda t, x, a: exact(x.argmax(a))),
    Op("argmin", "i32", "argmin(x, axis = {a})", NUMBERS, lambda t, x, a: exact(x.argmin(a))),
    Op("any", "bool", "any(x, axis = {a})", ["bool"], lambda t, x, a: exact(x.any(a))), Op("all", "bool", "all(x, axis = {a})", ["bool"], lambda t, x, a: exact(x.all(a))),
    Op("xor_sum", None, "xor_sum(x, axis = {a})", INTS, lambda t, x, a: exact(np.bitwise_xor.reduce(x, a))),
    Op("user", None, "reduce(x, {a}, longer)", NUMBERS, lambda t, x, a: exact(x.max(a))),
]
SCANS = [
    Op("cumsum", None, "cumsum(x, {a})", NUMBERS, None), Op("cumprod", None, "cumprod(x, {a}, reverse = true)", NUMBERS, None),
    Op("sort", None, "sort(x, {a})", NUMBERS, lambda t, x, a: exact(np.sort(x, a))), Op("argsort", "i32", "argsort(x, {a})", NUMBERS, None),
    Op("flip", None, "flip(x, {a})", NUMBERS + ["bool"], lambda t, x, a: exact(np.flip(x, a))),
    Op("gather", None, "gather(x, (i32)(x > 0), {a})", NUMBERS, lambda t, x, a: exact(np.take_along_axis(x, (x > 0).astype(np.int64), a))),
    Op("scan", None, "scan(x, {a}, longer)", NUMBERS, lambda t, x, a: exact(np.maximum.accumulate(x, a))),
]
# What small results are kept in: the language's own widening of sums and products.
WIDENED = {"bool": "i32", "i8": "i32", "i16": "i32", "u8": "u32", "u16": "u32"}


# ---- kernels --------------------------------------------------------------------------------------------------------
def axes(rank):
    return ", ".join("ABC"[:rank or 1])


def slices(tile, first):
    return ", ".join([f"{first} +: {tile[0]}"] + [f"0 +: {n}" for n in tile[1:]]) if tile else str(first)


def step(tile):
    return tile[0] if tile else 1


def whole(values, tile):
    """Values repeated to fill rows of the tile's shape; the last program has a part of a tile."""
    if not tile:
        return values
    row = int(np.prod(tile[1:], dtype=int))
    n = -(-len(values) // row)
    n += n % tile[0] == 0
    return np.resize(values, (n, *tile[1:]))


def operands(t, tile):
    """x, y, z: all pairs of edge values; z goes round over them."""
    e = edges(t) if len(edges(t)) < 40 else edges(t)[::2]
    pairs = list(itertools.product(e, e))
    x, y = (exactly(t, v).store for v in zip(*pairs))
    z = np.roll(exactly(t, e).store, 3)
    if t in INTS:
        x, y = (np.concatenate([v, random_bits(t, s, 100).store]) for s, v in enumerate((x, y)))
    return [Arr(t, whole(v, tile)) for v in (x, y, np.resize(z, len(x)))]


def elementwise(t, rank, ops, name):
    tile = TILES[rank]
    params = [f"const {t} {v}_[{axes(rank)}]" for v in "xyz"] + [f"{op.type or t} {op.name}_[{axes(rank)}]" for op in ops]
    body = [f"    auto {v} = {v}_[{slices(tile, 'i')}];" for v in "xyz"] + [f"    {op.name}_[{slices(tile, 'i')}] = {op.text};" for op in ops]
    source = f"kernel k({', '.join(params)})\n    grid(cdiv(A, {step(tile)}))\n{{\n    int i = pid(0) * {step(tile)};\n" + "\n".join(body) + "\n}\n"
    args = dict(zip(("x_", "y_", "z_"), operands(t, tile)))
    x, y, z = (wide(a) for a in args.values())
    args.update({op.name + "_": poison(op.type or t, *x.shape) for op in ops})

    def want():
        out = {}
        for op in ops:
            n = 0 if not op.want else 3 if op.name in ("fma", "select") else 1 if not any(v in op.text for v in ("y",)) else 2
            out[op.name + "_"] = op.want(op.type or t, *(x, y, z)[:n]) if n else None
        return out
    return Case(name, source, args, want, t)


def casts(t, rank, to, name):
    tile = TILES[rank]
    forms = {f"to_{u}": (u, f"({u})x") for u in to}
    forms.update({f"cut_{u}": (u, f"cast(x, {u}, round = zero)") for u in to if is_float(u) and u != t and u not in F8 and t != "bool"})
    if t not in F8 + ["bool"]:
        forms.update({f"bits_{u}": (u, f"bitcast(x, {u})") for u in to if u not in ("bool", t) and bits_of(u) == bits_of(t)})
    params = [f"const {t} x_[{axes(rank)}]"] + [f"{u} {n}[{axes(rank)}]" for n, (u, _) in forms.items()]
    body = [f"    auto x = x_[{slices(tile, 'i')}];"] + [f"    {n}[{slices(tile, 'i')}] = {e};" for n, (_, e) in forms.items()]
    source = f"kernel k({', '.join(params)})\n    grid(cdiv(A, {step(tile)}))\n{{\n    int i = pid(0) * {step(tile)};\n" + "\n".join(body) + "\n}\n"
    values = np.arange(256, dtype=np.uint8) if t in F8 else exactly(t, edges(t)).store
    args = {"x_": Arr(t, whole(values, tile))}
    args.update({n: poison(u, *args["x_"].store.shape) for n, (u, _) in forms.items()})
    x = wide(args["x_"])
    return Case(name, source, args, lambda: {n: exact(quantize(x.astype(np.float64), u)) if n == f"to_{u}" and u in FLOATS and bits_of(t) < 64 else None
                                             for n, (u, _) in forms.items()}, t)


def packed(t, name):
    """4-bit types, two in a byte: all pairs, to every other type and back."""
    params = [f"const {t} x_[A]"] + [f"{u} to_{u}[A]" for u in ALL if u != "bool"] + ["f32 back[A]"]
    body = [f"    to_{u}[i +: 64] = ({u})x;" for u in ALL if u != "bool"] + [f"    back[i +: 64] = (f32)({t})(f32)x;"]
    source = (f"kernel k({', '.join(params)})\n    grid(cdiv(A, 64))\n{{\n    int i = pid(0) * 64;\n    auto x = x_[i +: 64];\n" + "\n".join(body) + "\n}\n")
    args = {"x_": Arr(t, np.arange(250, dtype=np.uint8)), **{f"to_{u}": poison(u, 500) for u in ALL if u != "bool"}, "back": poison("f32", 500)}
    x = wide(args["x_"])
    return Case(name, source, args, lambda: {**{f"to_{u}": exact(x) if u in FLOATS or u[0] == "i" and t == "i4" or t == "u4" else None for u in ALL if u != "bool"},
                                             "back": exact(x)}, t)


def over_axes(t, rank, ops, name):
    tile = TILES[rank]
    x = small(t, rank, *tile, lo=-1, hi=3)
    outs, params, body = {}, [f"const {t} x_[{axes(rank)}]"], [f"    auto x = x_[{slices(tile, 0)}];"]
    for op, a in itertools.product(ops, range(rank)):
        kept = op in SCANS
        u = op.type or (WIDENED.get(t, t) if op.name in ("sum", "prod", "cumsum", "cumprod") else t)
        shape = tile if kept else tile[:a] + tile[a + 1:]
        key, text = f"{op.name}{a}_", op.text.format(a=a)
        params.append(f"{u} {key}[{', '.join(map(str, shape or (1,)))}]")
        body.append(f"    {key}[{slices(shape, 0) if shape else '0'}] = {text};")
        outs[key] = (op, u, a, shape or (1,))
    source = (f"{t} longer({t} a, {t} b) {{ return {'a || b' if t == 'bool' else 'a > b ? a : b'}; }}\nkernel k({', '.join(params)})\n    grid(1)\n{{\n" + "\n".join(body) + "\n}\n")
    args = {"x_": x, **{k: poison(u, *s) for k, (_, u, _, s) in outs.items()}}

    def want():
        return {k: (lambda w: w._replace(value=w.value.reshape(s)))(op.want(u, wide(x), a)) if op.want else None for k, (op, u, a, s) in outs.items()}
    return Case(name, source, args, want, t)


def dots(t, u, acc, rank, name):
    a, b, c = ((7, 9), (9, 13), (7, 13)) if rank == 2 else ((2, 7, 9), (2, 9, 13), (2, 7, 13))
    sizes = {"a": (t, a), "b": (u, b), "c": (acc, c)}
    params = [f"{'const ' * (n != 'c')}{v} {n}[{', '.join(map(str, s))}]" for n, (v, s) in sizes.items()]
    source = f"kernel k({', '.join(params)})\n    grid(1)\n{{\n    tile<{acc}, {', '.join(map(str, c))}> zero = 0;\n    c[{slices(c, 0)}] = dot(a[{slices(a, 0)}], b[{slices(b, 0)}], zero);\n}}\n"
    args = {"a": small(t, 1, *a), "b": small(u, 2, *b), "c": poison(acc, *c)}
    return Case(name, source, args, lambda: {"c": exact(wide(args["a"]).astype(np.float64) @ wide(args["b"]).astype(np.float64))})


def atomics(t, name):
    ops = ["add"] + (["min", "max", "xchg", "and", "or", "xor"] if t in INTS else [])
    x = small(t, 5, 40)
    params = [f"const {t} x_[A]"] + [f"{t} {o}_[B]" for o in ops]
    body = [f"    atomic_{o}({o}_[{'i' if o == 'xchg' else 'i % 9'}], x_[iota(40)]);" for o in ops]
    source = f"kernel k({', '.join(params)})\n    grid(1)\n{{\n    auto i = iota(40);\n" + "\n".join(body) + "\n}\n"
    args = {"x_": x, **{f"{o}_": Arr(t, np.zeros(40, STORE[t])) for o in ops}}
    return Case(name, source, args, lambda: {f"{o}_": None for o in ops})


def exhaustive(name):
    """All numbers of f16; f32 at, and beside, what rounds to f16 in halves; sums that cancel in fma."""
    h = np.arange(65536, dtype=np.uint16).view(np.float16)
    n = 1 << 16
    r = rng(7)
    near = np.resize(h[np.isfinite(h)].astype(np.float32), n).view(np.uint32) + r.integers(-2, 3, n).astype(np.uint32)
    half_way = near + (r.integers(0, 3, n) * 0x1000).astype(np.uint32)
    f = np.where(r.integers(0, 4, n) == 0, r.integers(0, 2**32, n, dtype=np.uint64).astype(np.uint32), half_way).view(np.float32)
    a, b = (np.ldexp(r.integers(1 << 22, 1 << 24, n), r.integers(-90, 40, n)).astype(np.float32) for _ in range(2))
    c = (-(a.astype(np.float64) * b) * (1 + np.ldexp(r.integers(-3, 4, n).astype(np.float64), -r.integers(20, 60, n)))).astype(np.float32)
    d, e = (np.ldexp(r.integers(1 << 51, 1 << 53, 400).astype(np.float64), r.integers(-300, 200, 400)) for _ in range(2))
    g = -(d * e) * (1 + np.ldexp(r.integers(-3, 4, 400).astype(np.float64), -r.integers(20, 60, 400)))
    params = ("const f16 h[N], f32 to_f32[N], f64 to_f64[N], const f32 f[N], f16 to_f16[N], const f32 a[N], const f32 b[N], const f32 c[N], f32 fused[N], "
              "const f64 d[M], const f64 e[M], const f64 g[M], f64 wide[M]")
    source = (f"kernel k({params})\n    grid(cdiv(N, 100))\n{{\n    int i = pid(0) * 100;\n    to_f32[i +: 100] = (f32)h[i +: 100];\n    to_f64[i +: 100] = (f64)h[i +: 100];\n"
              "    to_f16[i +: 100] = (f16)f[i +: 100];\n    fused[i +: 100] = fma(a[i +: 100], b[i +: 100], c[i +: 100]);\n"
              "    wide[i +: 100] = fma(d[i +: 100], e[i +: 100], g[i +: 100]);\n}\n")
    data = {"h": h, "f": f, "a": a, "b": b, "c": c, "d": d, "e": e, "g": g}
    args = {k: Arr(f"f{8 * v.itemsize}", v) for k, v in data.items()}
    args.update(to_f32=poison("f32", n), to_f64=poison("f64", n), to_f16=poison("f16", n), fused=poison("f32", n), wide=poison("f64", 400))
    return Case(name, source, args, lambda: {"to_f32": exact(h.astype(np.float32)), "to_f64": exact(h.astype(np.float64)), "to_f16": exact(f.astype(np.float16)),
                                             "fused": fused("f32", a, b, c), "wide": fused("f64", d, e, g)})


def ranks_of(t, long):
    some = [(0, 2), (1, 3)][FLOATS.index(t) % 2] if t in FLOATS else [(ALL + F8).index(t) % 4]
    return TILES if long else some


def all_cases(long):
    yield exhaustive("exhaustive")
    for t, rank in ((t, r) for t in ALL for r in ranks_of(t, long)):
        ops = [op for op in ELEMENTWISE if t in op.types]
        simple, functions = [op for op in ops if op.name not in MATH], [op for op in ops if op.name in MATH]
        groups = [("elementwise", simple), ("functions", functions)] + ([(op.name, [op]) for op in ops] if long else [])
        for group, some in groups:
            if some and (long or rank in (1, 2) or group != "functions"):
                yield elementwise(t, rank, some, f"{group}_{t}_{rank}")
        for group, table in (("reduce", REDUCTIONS), ("scan", SCANS)) if rank else ():
            some = [op for op in table if t in op.types]
            groups = [(group, some)] + ([(f"{group}_{op.name}", [op]) for op in some] if long else [])
            for n, part in groups:
                yield over_axes(t, rank, part, f"{n}_{t}_{rank}")
    for t, rank in ((t, r) for t in ALL + F8 for r in ranks_of(t, long)):
        to = [u for u in ALL + F8 if not (t in F8 and u == t)]
        for n, part in [("cast", to)] + ([(f"cast_{u}", [u]) for u in to] if long else []):
            yield casts(t, rank, part, f"{n}_{t}_{rank}")
    for t in PACKED:
        yield packed(t, f"packed_{t}")
    for (t, u, acc), rank in itertools.product([("f16", "f16", "f32"), ("bf16", "bf16", "f32"), ("f32", "f32", "f32"), ("f64", "f64", "f64"),
                                                ("i8", "i8", "i32"), ("u8", "i8", "i32"), ("f8e4m3", "f8e5m2", "f32")], (2, 3)):
        yield dots(t, u, acc, rank, f"dot_{t}_{u}_{acc}_{rank}")
    for t in ["i32", "u32", "i64", "u64", "f16", "bf16", "f32", "f64"]:
        yield atomics(t, f"atomic_{t}")


# ---- compiling ------------------------------------------------------------------------------------------------------
def undefined_names(data):
    """Of the ELF objects in an image."""
    at, names = 0, set()
    while (at := data.find(b"\x7fELF", at)) >= 0:
        offset, = struct.unpack_from("<Q", data, at + 40)
        size, count = struct.unpack_from("<HH", data, at + 58)
        sections = [struct.unpack_from("<IIQQQQIIQQ", data, at + offset + i * size) for i in range(count)]
        for s in sections:
            if s[1] != 2:  # SHT_SYMTAB
                continue
            strings = at + sections[s[6]][4]
            for k in range(1, s[5] // 24):
                name, _, _, section = struct.unpack_from("<IBBH", data, at + s[4] + 24 * k)
                if section == 0:
                    names.add(data[strings + name:data.index(b"\0", strings + name)].decode())
        at += 4
    return names


class Runner:
    def __init__(self, o, folder):
        self.o, self.folder = o, folder
        self.tilec = os.path.join(o.build, "bin", "tilec")
        self.compiled = self.ran = self.failed = 0

    def fail(self, what, text):
        self.failed += 1
        print(f"{what}: {text}")

    def call(self, words):
        p = subprocess.run(words, capture_output=True, timeout=600)
        lines = (p.stderr + p.stdout).decode("utf-8", "replace").strip().splitlines()
        return p.returncode, " / ".join(lines[:4])

    def compile(self, case, target):
        path, out = os.path.join(self.folder, case.name + ".tile"), os.path.join(self.folder, "out.image")
        status, text = self.call([self.tilec, path, "--target", target, "--emit=image", "-o", out])
        self.compiled += 1
        if status:
            return self.fail(f"{case.name} for {target}", text)
        with open(out, "rb") as f:
            names = undefined_names(f.read())
        bad = sorted(n for n in names if target.startswith("cpu") or not n.startswith("tl_emu_"))
        if bad or (target.startswith("emu") and not names):  # the emulator's kernels call it: else nothing was read
            self.fail(f"{case.name} for {target}", f"undefined: {bad}")

    def run(self, case, device):
        """The outputs by name, None when there are none."""
        words, outs = [self.tilec, "run", os.path.join(self.folder, case.name + ".tile"), "--kernel", "k", "--device", device], {}
        for name, a in case.args.items():
            path = os.path.join(self.folder, f"{name}.npy")
            np.save(path, a.store)
            words.append(f"{name}=@{path}")
        for name in self.wanted:
            outs[name] = os.path.join(self.folder, f"{name}.out.npy")
            words += ["--save", f"{name}={outs[name]}"]
        status, text = self.call(words)
        self.ran += 1
        if status:
            return self.fail(f"{case.name} on {device}", text)
        return {name: np.load(path) for name, path in outs.items()}

    def compare(self, case, device, got, ref):
        for name, want in self.wanted.items():
            a = Arr(case.args[name].type, got[name])
            wrong = compare(a, want) if want else None
            if not wrong and ref is not None:
                wrong = compare(a, exact(wide(Arr(a.type, ref[name]))))
                wrong = wrong and "not as on ref: " + wrong
            if wrong:
                self.fail(f"{case.name} on {device}", f"{name}: {wrong}")

    def run_all(self, case, devices):
        self.wanted = case.want()
        ref = self.run(case, "ref") if case.name != "exhaustive" else None
        if ref is not None:
            self.compare(case, "ref", ref, None)
        for device in devices:
            got = self.run(case, device)
            if got is not None:
                self.compare(case, device, got, ref)

    def has(self, device):
        path = os.path.join(self.folder, "probe.tile")
        with open(path, "w", encoding="utf-8") as f:
            f.write("kernel k(f32 y[N]) grid(1) { y[0] = 1; }\n")
        status, text = self.call([self.tilec, "run", path, "--device", device, "y=zeros[1]"])
        if status and "is not available" not in text:
            self.fail(device, text)
        return status == 0


def targets_of(case, n, long):
    """What case number n is compiled for."""
    levels = [f"cpu:{v}" for v in LEVELS]
    if long or n == 0:
        return levels + EMULATED + MORE_EMULATED * long
    floats = [levels[0], levels[1 + n % 5]]
    return (floats if is_float(case.type) else [levels[n % 6]]) + EMULATED[n // 4 % 2:][:n % 4 == 0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--long", action="store_true")
    parser.add_argument("-k", default="")
    parser.add_argument("-v", action="store_true")
    o = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tile-levels-") as folder:
        r = Runner(o, folder)
        devices = [f"cpu:{v}" for v in LEVELS if r.has(f"cpu:{v}")]
        print("runs on", ", ".join(devices))
        for n, case in enumerate(c for c in all_cases(o.long) if o.k in c.name):
            with open(os.path.join(folder, case.name + ".tile"), "w", encoding="utf-8") as f:
                f.write(case.source)
            for target in targets_of(case, n, o.long):
                r.compile(case, target)
            if o.long or n % 4 == 0:
                r.run_all(case, devices if o.long or n == 0 else devices[n // 4 % len(devices):][:1])
            if o.v:
                print(case.name, r.compiled, r.ran, r.failed, flush=True)
    print(f"{r.compiled} compiled, {r.ran} run, {r.failed} failed")
    return r.failed > 0


if __name__ == "__main__":
    sys.exit(main())
