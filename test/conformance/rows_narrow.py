"""Narrow floats and integers (f8, f4, 4 bits): casts from and to every type in every rounding mode, ties, overflow,
and what is no number.

What is expected is found in the table of all values of a type, in exact arithmetic.
"""
import bisect
import math
from fractions import Fraction

import numpy as np

from rows import row
from rows_cast import cast_all
from values import (ALL, DECODE, F8, FLOATS, FORMATS, INTS, Arr, edges, exact, exactly, int_range, is_float, philox,
                    poison, wide)

SMALL = [*F8, "f4e2m1"]
MOST = {"f8e4m3": 0x7E, "f8e5m2": 0x7B, "f4e2m1": 7, "f8e4m3fnuz": 0x7F,
        "f8e5m2fnuz": 0x7F}  # the greatest finite number's code
TABLE = {t: [Fraction(float(v)) for v in DECODE[t][:m + 1]] for t, m in MOST.items()}


def shrink(v, t, zero=False, sat=True):
    """v as an element of t, as a float."""
    v = float(v) if isinstance(v, (float, np.floating)) else int(v)
    top = DECODE[t][MOST[t]]
    over = float(top) if sat or t == "f4e2m1" else math.inf if t == "f8e5m2" else math.nan
    if v != v:
        return float(top) if t == "f4e2m1" else math.nan
    if v in (math.inf, -math.inf):
        return math.copysign(over, v)
    table, m = TABLE[t], abs(Fraction(v))
    low = bisect.bisect_right(table, m) - 1
    step = table[low] - table[low - 1] if low == MOST[t] else table[low + 1] - table[low]
    rest = m - table[low]
    up = not zero and (2 * rest > step or (2 * rest == step and low % 2))
    r = float(table[low]) if not up else over if low == MOST[t] else float(table[low + 1])
    if low == MOST[t] and not zero and rest > step:
        r = over
    if "fnuz" in t and r == 0:
        return 0.0
    return math.copysign(r, v) if not isinstance(v, int) else (-r if v < 0 else r)


def ties(t):
    """Every finite value, the middle of each two, and what lies just beside that."""
    out = [Fraction(0)]
    table = TABLE[t] + [2 * TABLE[t][-1] - TABLE[t][-2]]
    for a, b in zip(table, table[1:]):
        m = (a + b) / 2
        out += [a, m, m - (b - a) / 1024, m + (b - a) / 1024]
    return [float(v) for v in out + [-v for v in out]] + [-0.0, math.inf, -math.inf, math.nan, 1e9, -1e9, 1e-30]


WORDS = {"n": "", "z": ", round = zero", "s": ", sat = false", "zs": ", round = zero, sat = false"}
for t in SMALL:
    for src in FLOATS + INTS:
        x = exactly(src, ties(t) + edges(src) if is_float(src) else edges(src))
        ways = list(WORDS) if t in F8 else ["n", "z"]
        params = ", ".join(f"f32 {w}[N]" for w in ways)
        body = "\n".join(f"    {w}[i +: 64] = (f32)cast(x[i +: 64], {t}{WORDS[w]});" for w in ways)
        row(
            f"narrow_{src}_to_{t}",
            f"kernel k(const {src} x[N], {params})\n    grid(cdiv(N, 64))\n{{\n    int i = pid(0) * 64;\n{body}\n}}\n",
            {"x": x, **{w: poison("f32", len(x.store))
                        for w in ways}}, lambda a, t=t, ways=ways:
            {w: exact(np.array([shrink(v, t, "z" in w, "s" not in w) for v in a["x"].tolist()]))
             for w in ways})

# ---- stochastic rounding --------------------------------------------------------------------------------------------
def drawn(v, t, seed, i, sat):
    """v rounded at random: up in magnitude when the draw is below the fraction cut off."""
    if not math.isfinite(v):
        return shrink(v, t, sat=sat) if t in F8 else v
    f, m = FORMATS[t], abs(Fraction(v))
    top = Fraction(float(DECODE[t][MOST[t]])) if t in F8 else (2 - Fraction(2) ** (1 - f.p)) * 2**f.emax
    e = max(math.frexp(v)[1] - 1, f.emin)
    unit = Fraction(2) ** (min(e, math.frexp(float(top))[1] - 1) - f.p + 1)
    low = min(m // unit * unit, top)
    r = low
    if Fraction(philox(seed, i)[0] >> 8, 2**24) * unit < m - low:
        r = low + unit
        if r > top:
            return math.copysign(
                float(top) if sat and t in F8 else math.nan if t in F8 and t != "f8e5m2" else math.inf, v)
    return 0.0 if "fnuz" in t and r == 0 else math.copysign(float(r), v)


for src, t in [("f32", "f16"), ("f32", "bf16"), ("f64", "f32"), ("f64", "f16"), ("f32", "f8e4m3"), ("f32", "f8e5m2"),
               ("f16", "f8e4m3"), ("f64", "bf16"), ("bf16", "f8e5m2"), ("f32", "f8e4m3fnuz"), ("f32", "f8e5m2fnuz"),
               ("f16", "f8e4m3fnuz"), ("f64", "f8e5m2fnuz")]:
    some = np.random.default_rng(len(src + t)).standard_normal(120) * np.exp2(
        np.random.default_rng(3).integers(-20, 20, 120))
    x = exactly(src, [*some.tolist(), *edges(src)][:256])
    n = len(x.store)
    sat = ", sat = false" if t in F8 else ""
    row(
        f"narrow_stochastic_{src}_to_{t}", f"""
kernel k(const {src} x[N], {t} y[N], {t} z[2, N], f64 one[1])
    grid(1)
{{
    auto v = x[0 +: {n}];
    y[0 +: {n}] = cast(v, {t}, round = stochastic(12345678901234567890));
    z[0 +: 2, 0 +: {n}] = cast(broadcast(row(v), 2, {n}), {t}, round = stochastic((u64)x[0] + 5){sat});
    one[0] = (f64)(f32)cast(x[1], {t}, round = stochastic(5));
}}
""", {
            "x": exactly(src, [7.0, *x.store.tolist()[1:]]) if src != "bf16" else Arr(
                src, np.concatenate((np.array([0x40E0], np.uint16), x.store[1:]))), "y": poison(t, n), "z": poison(
                    t, 2, n), "one": poison("f64", 1)
        }, lambda a, t=t, n=n: (lambda x: {
            "y": exact(np.array([drawn(v, t, 12345678901234567890, i, True) for i, v in enumerate(x)])), "z": exact(
                np.array([drawn(v, t, 12, i, False)
                          for i, v in enumerate(x + x)]).reshape(2, n)), "one": exact([drawn(x[1], t, 5, 0, True)])
        })(a["x"].astype(np.float64).tolist()))

for src in F8:
    others = [t for t in [*ALL, *F8] if t != src]
    params = ", ".join(f"{t} to_{t}[N]" for t in others)
    body = "\n".join(f"    to_{t}[i +: 64] = ({t})x[i +: 64];" for t in others)
    row(
        f"narrow_from_{src}",
        f"kernel k(const {src} x[N], {params})\n    grid(cdiv(N, 64))\n{{\n    int i = pid(0) * 64;\n{body}\n}}\n",
        {"x": Arr(src, np.arange(256, dtype=np.uint8)), **{f"to_{t}": poison(t, 256)
                                                           for t in others}}, lambda a, s=src, o=others: {
             f"to_{t}": exact(np.array([shrink(v, t) for v in a["x"].tolist()])) if t in F8 else cast_all(a["x"], s, t)
             for t in o
         })

for src in ("u4", "i4", "f4e2m1"):
    params = ", ".join(f"{t} to_{t}[N]" for t in [*ALL, *F8])
    body = "\n".join(f"    to_{t}[0 +: 16] = ({t})x[0 +: 16];" for t in [*ALL, *F8])
    row(
        f"narrow_from_{src}", f"kernel k(const {src} x[B], {params})\n    grid(1)\n{{\n{body}\n}}\n", {
            "x": Arr(src,
                     np.arange(16, dtype=np.uint8).reshape(8, 2) @ np.array([1, 16], np.uint8)),
            **{f"to_{t}": poison(t, 16)
               for t in [*ALL, *F8]}
        }, lambda a, s=src: {
            f"to_{t}": cast_all(a["x"], "f32" if s[0] == "f" else "i8", t)
            if t in ALL else exact(np.array([shrink(v, t) for v in a["x"].tolist()]))
            for t in [*ALL, *F8]
        })

for src in ("f32", "i32", "u64", "f8e5m2", "f8e4m3fnuz"):
    n = 96
    x = Arr(src,
            np.arange(n, dtype=np.uint8) * 7) if src in F8 else exactly(src, [
                v for v in (-9, -8, -7.5, -1, -0.5, 0.99, 7, 7.9, 8, 15, 15.9, 16, 17, 100)
                if src[0] != "u" or v >= 0 and v == int(v)
            ] * 16)
    x = Arr(src, x.store[:n].copy())
    row(
        f"narrow_{src}_to_4_bits", f"""
kernel k(const {src} x[N], i32 i[N], i32 u[N])
    grid(1)
{{
    i[0 +: {n}] = (i32)cast(x[0 +: {n}], i4);
    u[0 +: {n}] = (i32)cast(x[0 +: {n}], u4);
}}
""", {"x": x, "i": poison("i32", n), "u": poison("i32", n)}, lambda a, s=src: {
            "i": exact([four(v, s, -8, 7)
                        for v in a["x"].tolist()]), "u": exact([four(v, s, 0, 15) for v in a["x"].tolist()])
        })


def four(v, src, lo, hi):
    if is_float(src):
        return 0 if v != v else int(min(max(v, lo), hi))
    return (int(v) - lo) % 16 + lo
