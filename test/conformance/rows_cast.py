"""Casts between all pairs of types on edge values, widening on assignment, bitcast."""
import math
from fractions import Fraction

import numpy as np

from rows import row
from values import (ALL, INTS, STORE, Arr, bits_of, edges, exact, exactly, int_range, is_float, poison, quantize,
                    random_bits, round_exact, wide)


def cast_one(v, src, dst):
    """What the language says, on Python numbers."""
    if dst == "bool":
        return v != 0
    if is_float(dst):
        if not is_float(src):
            return round_exact(int(v), dst)
        return float(quantize(np.float64(v), dst))
    lo, hi = int_range(dst)
    if is_float(src):  # toward zero, saturating, NaN gives 0
        if math.isnan(v):
            return 0
        return hi if v > hi else lo if v < lo else int(v)
    n = bits_of(dst)
    w = int(v) & (2**n - 1)
    return w - 2**n if w > hi else w


def cast_all(values, src, dst):
    out = [cast_one(v, src, dst) for v in values.tolist()]
    return exact(np.array(out, np.float64) if is_float(dst) else np.array(out, object).astype(STORE[dst]))


for src in ALL:
    x = exactly(src, edges(src))
    others = [t for t in ALL if t != src]
    outs = ", ".join(f"{t} to_{t}[N]" for t in others)
    body = "\n".join(f"    to_{t}[i +: 32] = ({t})x[i +: 32];" for t in others)
    args = {"x": x, **{f"to_{t}": poison(t, len(x.store)) for t in others}}
    row(f"cast_from_{src}",
        f"kernel k(const {src} x[N], {outs})\n    grid(cdiv(N, 32))\n{{\n    int i = pid(0) * 32;\n{body}\n}}\n", args,
        lambda a, s=src, o=others: {f"to_{t}": cast_all(a["x"], s, t)
                                    for t in o})

# Integers to integers, clamped; nibbles too, to them and from what a cast makes of x.
def clamped(values, lo, hi, dst):
    return exact(np.array([max(lo, min(hi, v)) for v in values], object).astype(STORE[dst]))


def clamped_want(x, src, others):
    values = [int(v) for v in x.tolist()]
    want = {f"to_{t}": clamped(values, *int_range(t), t) for t in others}
    for t, lo, hi in (("i4", -8, 7), ("u4", 0, 15)):
        want[f"{t}_of"] = clamped(values, lo, hi, src)
        want[f"{t}_to"] = clamped([(v - lo) % 16 + lo for v in values], *int_range(src), src)
    return want


for src in INTS:
    x = exactly(src, edges(src))
    others = [t for t in INTS if t != src]
    outs = {f"to_{t}": t for t in others} | {f"{t}_{d}": src for t in ("i4", "u4") for d in ("of", "to")}
    params = ", ".join(f"{t} {n}[N]" for n, t in outs.items())
    lines = [f"to_{t}[i +: 32] = cast(x[i +: 32], {t}, sat = true);" for t in others]
    lines += [f"{t}_of[i +: 32] = ({src})cast(x[i +: 32], {t}, sat = true);" for t in ("i4", "u4")]
    lines += [f"{t}_to[i +: 32] = cast(({t})x[i +: 32], {src}, sat = true);" for t in ("i4", "u4")]
    body = "\n    ".join(lines)
    row(f"cast_clamped_{src}",
        f"kernel k(const {src} x[N], {params})\n    grid(cdiv(N, 32))\n{{\n    int i = pid(0) * 32;\n    {body}\n}}\n",
        {"x": x, **{n: poison(t, len(x.store))
                    for n, t in outs.items()}}, lambda a, s=src, o=others: clamped_want(a["x"], s, o))

# Lossless widening needs no cast: stores, initialisers, arguments, mixed arithmetic.
WIDEN = [("i8", "i32"), ("u8", "i32"), ("i16", "i64"), ("u32", "i64"), ("u8", "u64"), ("f16", "f32"), ("bf16", "f32"),
         ("f32", "f64"), ("f16", "f64")]
for src, dst in WIDEN:
    x = exactly(src, [v for v in edges(src) if v == v])
    row(f"widen_{src}_{dst}", f"""
{dst} one({dst} v) {{ return v; }}
kernel k(const {src} x[N], {dst} y[N], {dst} z[N], {dst} w[N])
    grid(cdiv(N, 16))
{{
    int i = pid(0) * 16;
    y[i +: 16] = x[i +: 16];
    tile<{dst}, 16> t = x[i +: 16];
    z[i +: 16] = t - x[i +: 16];
    w[i] = one(x[i]);
}}
""", {"x": x, "y": poison(dst, len(x.store)), "z": poison(dst, len(x.store)), "w": poison(dst, len(x.store))},
        lambda a, d=dst, n=len(x.store): widen_want(a, d, n))


def widen_want(a, dst, n):
    y = a["x"].astype(np.float64) if is_float(dst) else a["x"].astype(STORE[dst])
    with np.errstate(all="ignore"):
        z = y - y
    w = np.full(n, np.nan) if is_float(dst) else np.full(n, 0xAB, np.uint8).astype(STORE[dst])
    w[::16] = y[::16]
    return {"y": exact(y), "z": exact(z), "w": exact(w)}


PAIRS = [("f32", "i32"), ("f32", "u32"), ("u32", "f32"), ("f16", "u16"), ("i16", "f16"), ("bf16", "u16"),
         ("u16", "bf16"), ("f64", "i64"), ("u64", "f64"), ("i8", "u8"), ("u64", "i64"), ("f16", "bf16")]
for src, dst in PAIRS:
    raw = f"u{bits_of(src)}"
    x = Arr(src, random_bits(raw, 5, 333).store.view(STORE[src]))
    row(f"bitcast_{src}_{dst}", f"""
kernel k(const {src} x[N], {dst} y[N], {raw} b[N])
    grid(cdiv(N, 128))
{{
    int i = pid(0) * 128;
    y[i +: 128] = bitcast(x[i +: 128], {dst});
    b[i +: 128] = bitcast(bitcast(x[i +: 128], {dst}), {raw});
}}
""", {"x": x, "y": poison(dst, 333), "b": poison(raw, 333)},
        lambda a, s=x.store, d=dst, r=raw: {"y": exact(wide(Arr(d, s.view(STORE[d])))), "b": exact(s.view(STORE[r]))})

# Stored values of narrow floats round once, ties to even, also from f64 where going through f32 would round twice.
TIES = [
    1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-8, 1 + 2.0**-8 + 2.0**-45, 1 + 3 * 2.0**-8,
    65519.99999999999, 65520.0, 2.0**-25, 2.0**-25 * (1 + 2.0**-30), 3.3895313892515355e38, 3.39e38
]
row(
    "cast_f64_rounds_once", """
kernel k(const f64 x[N], f16 h[N], bf16 b[N], f32 s[N])
    grid(1)
{
    h[0 +: 32] = (f16)x[0 +: 32];
    b[0 +: 32] = (bf16)x[0 +: 32];
    s[0 +: 32] = cast(x[0 +: 32], f32);
}
""", {
        "x": exactly("f64", TIES + [-v for v in TIES]), "h": poison("f16", 24), "b": poison("bf16", 24), "s": poison(
            "f32", 24)
    }, lambda a: {
        n: exact(np.array([round_exact(Fraction(v), t) for v in a["x"].tolist()]))
        for n, t in (("h", "f16"), ("b", "bf16"), ("s", "f32"))
    })


def toward_zero(v, dst):
    """The nearest value, or its neighbour toward zero where the nearest is too great; a finite value never becomes
    infinite."""
    if not math.isfinite(v):
        return v
    if abs(v) > TOP[dst]:
        return math.copysign(TOP[dst], v)
    y = round_exact(Fraction(v), dst)
    if abs(Fraction(y)) <= abs(Fraction(v)):
        return math.copysign(y, v)
    bits = {"f16": np.uint16, "bf16": np.uint32, "f32": np.uint32}[dst]
    ulp = 1 << 16 if dst == "bf16" else 1
    as_float = np.float16 if dst == "f16" else np.float32
    return float((np.array(y, as_float).view(bits) - bits(ulp)).view(as_float))


TOP = {"f16": 65504.0, "bf16": 3.3895313892515355e38, "f32": 3.4028234663852886e38}
ZEROWARD = TIES + [0.0, math.inf, math.nan, 1.9999999999, 1e-50, 2.0**-24 * 2.7, 1e-40, 70000.0, 1e300, 100.3]
for src, outs in (("f64", "f16 bf16 f32"), ("f32", "f16 bf16")):
    x = exactly(src, list((np.float32 if src == "f32" else np.float64)(ZEROWARD + [-v for v in ZEROWARD])))
    params = ", ".join(f"{t} to_{t}[N]" for t in outs.split())
    body = "\n".join(f"    to_{t}[i +: 16] = cast(x[i +: 16], {t}, round = zero);" for t in outs.split())
    row(f"cast_toward_zero_{src}",
        f"kernel k(const {src} x[N], {params})\n    grid(cdiv(N, 16))\n{{\n    int i = pid(0) * 16;\n{body}\n}}\n",
        {"x": x, **{f"to_{t}": poison(t, len(x.store))
                    for t in outs.split()}},
        lambda a, o=outs: {f"to_{t}": exact(np.array([toward_zero(float(v), t) for v in a["x"]]))
                           for t in o.split()})

row(
    "cast_toward_zero_i32", """
kernel k(const i32 x[N], f32 y[N], f16 h[N])
    grid(1)
{
    y[0 +: 8] = cast(x[0 +: 8], f32, round = zero);
    h[0 +: 8] = cast(x[0 +: 8], f16, round = zero);
}
""", {
        "x": exactly("i32", [16777219, -16777219, 2147483647, -2147483648, 70000, -70000, 2051, 5]), "y": poison(
            "f32", 8), "h": poison("f16", 8)
    }, lambda a: {
        "y": exact([16777218, -16777218, 2147483520, -2147483648, 70000, -70000, 2051, 5]), "h": exact(
            [65504, -65504, 65504, -65504, 65504, -65504, 2050, 5])
    })

BIG = [2**53 + 1, 2**53 + 3, 2**63 - 1, 2**63 - 513, 2**62 + 2**9 + 1, 16777219, 2**40 + 2**16 + 1, 5, 0]
for t in ("i64", "u64"):
    x = exactly(t, BIG + [-v for v in BIG] if t == "i64" else BIG + [2**64 - 1, 2**64 - 1025, 2**63 + 1025])
    row(
        f"cast_toward_zero_{t}", f"""
kernel k(const {t} x[N], f64 d[N], f32 s[N], bf16 b[N])
    grid(cdiv(N, 8))
{{
    int i = pid(0) * 8;
    d[i +: 8] = cast(x[i +: 8], f64, round = zero);
    s[i +: 8] = cast(x[i +: 8], f32, round = zero);
    b[i +: 8] = cast(x[i +: 8], bf16, round = zero);
}}
""", {"x": x, "d": poison("f64", len(x.store)), "s": poison("f32", len(x.store)), "b": poison("bf16", len(x.store))},
        lambda a:
        {n: exact(np.array([chopped(int(v), p) for v in a["x"]]))
         for n, p in (("d", 53), ("s", 24), ("b", 8))})


def chopped(v, bits):
    """v without what lies below its highest bits."""
    cut = max(abs(v).bit_length() - bits, 0)
    return float(abs(v) >> cut << cut) * (-1 if v < 0 else 1)
