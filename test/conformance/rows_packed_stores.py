"""Stores to views of 4-bit elements: parts of rows, rows of odd length, whose last byte keeps its other half, parts of
views; and every cast to these types.
"""
import math

import numpy as np

from rows import row
from rows_narrow import shrink
from rows_packed import packed
from values import (ALL, DECODE, F8, INTS, PACKED, Arr, edges, exact, exactly, int_range, is_float, ints, poison,
                    wide)

NARROW = {"u4": "i32", "i4": "i32", "f4e2m1": "f32"}


def fit(v, t):
    """An integer that wraps, or a small float."""
    return DECODE[t][np.asarray(v) & 15] if t != "f4e2m1" else np.asarray(v, np.float32)


# q[at, ...] are elements; what no slice names, and the half behind a row of 21, keeps its value.
for k, t in enumerate(PACKED):
    x = ints("i32", 70 + k, -8, 30, 6, 22) if t != "f4e2m1" else Arr(
        "f32", DECODE[t][np.random.default_rng(5).integers(0, 16, (6, 22))])
    w = NARROW[t]
    for n in (1, 2, 21, 22):
        row(
            f"packed_store_{t}_{n}", f"""
kernel k(const {w} x[A, B], {t} q[M, N], {t} part[C, D], {t} edge[E, F], int at, i32 odd[N])
    grid(2)
    require(M == 6)
{{
    auto v = cast(x[0 +: 6, 0 +: 22], {t});
    if (pid(0) == 0) {{
        q[0 +: 6, 0 +: 22] = v;
        auto P = sub(part, (1, 2 * at), (3, 7));
        P[0 +: 4, 0 +: 8] = cast(x[0 +: 4, 0 +: 8], {t});
        for (int i : range(-2, 6, 4))
            P[2, i +: 4] = cast(x[5, 2 +: 4], {t});
    }} else {{
        i64 start = multiple_of(at * 3 - 1, 2);
        edge[-1 +: 3, start - 4 +: 6] = cast(x[0 +: 3, 0 +: 6], {t});
        for (int i = 4; i < 40; i += 2)
            if (i % 3 == 0)
                edge[4, i +: 2] = cast(x[4, 0 +: 2], {t});
        edge[iota(2) + 2, 4 +: 4] = cast(x[2 +: 2, 4 +: 4], {t});
    }}
}}
""", {
                "x": x, "q": packed(t, 20 + k, 6, n), "part": packed(t, 30 + k, 5, 16), "edge":
                packed(t, 40 + k, 5, 15), "at": 1, "odd": ints("i32", 1, 0, 2, n)
            }, lambda a, n=n, t=t: {"q": exact(whole(a, n, t)), "part": exact(parts(a, t)),
                                    "edge": exact(edge(a, t))})


def whole(a, n, t):
    q = a["q"].copy()
    q[:, :n] = fit(a["x"], t)[:, :n]
    return q


def parts(a, t):
    v, q = fit(a["x"], t), a["part"].copy()
    q[1:4, 2:9] = v[:3, :7]
    for i in (-2, 2):
        for c in range(4):
            if 0 <= i + c < 7:
                q[3, 2 + i + c] = v[5, 2 + c]
    return q


def edge(a, t):
    v, q = fit(a["x"], t), a["edge"].copy()
    for r in range(3):
        for c in range(6):
            if r - 1 >= 0 and c - 2 >= 0:
                q[r - 1, c - 2] = v[r, c]
    for i in range(4, 40, 2):
        for c in range(2):
            if i % 3 == 0 and i + c < 15:
                q[4, i + c] = v[4, c]
    q[2:4, 4:8] = v[2:4, 4:8]
    return q


# ---- every shape ----------------------------------------------------------------------------------------------------
row(
    "packed_store_ranks", """
kernel k(const i32 x[N], u4 a[A, B, C, D, E], i4 b[F, G], i4 c[B2 : 8, C2], u4 d[O], u4 z[Z], int at)
    grid(1)
{
    a[0 +: 2, 0 +: 1, 1 +: 3, 0 +: 2, 0 +: 6] = cast(reshape(x[0 +: 72], 2, 1, 3, 2, 6), u4);
    b[1, 2 +: 8] = cast(x[0 +: 8], i4);
    c[0 +: 3, 0 +: 4] = cast(reshape(x[0 +: 12], 3, 4), i4);
    unchecked d[at * 2 +: 64] = cast(x[3 +: 64], u4);
    z[0 +: 2] = cast(5, u4);
    d[0 +: 4] = bitcast(d[4 +: 4], u4);
}
""", {
        "x": ints("i32", 3, -9, 30, 80), "a": packed("u4", 1, 2, 1, 5, 2, 6), "b": packed("i4", 2, 2, 10), "c":
        packed("i4", 3, 3, 8), "d": packed("u4", 4, 66), "z": packed("u4", 5, 2), "at": 1
    }, lambda a: ranks(a))


def ranks(a):
    x, q, b, c, d = a["x"], a["a"].copy(), a["b"].copy(), a["c"].copy(), a["d"].copy()
    q[:, :, 1:4] = x[:72].reshape(2, 1, 3, 2, 6) & 15
    b[1, 2:10] = fit(x[:8], "i4")
    c[:, :4] = fit(x[:12].reshape(3, 4), "i4")
    d[2:66] = x[3:67] & 15
    d[:4] = d[4:8].copy()
    return {"a": exact(q), "b": exact(b), "c": exact(c), "d": exact(d), "z": exact(np.array([5, 5]))}


# ---- odd rows, which no aligned form of the kernel may take for even ones -----------------------------------------
for n in (5, 6, 31, 32):
    row(
        f"packed_row_of_{n}_stored_and_loaded", f"""
kernel k(u4 m[1, H, N], const i32 _odd[N], f32 y[A])
    grid(1)
    require(N == {n})
{{
    m[pid(0), 0 +: 1, 4 +: 2] = cast(tile<i32, 1, 2>(3), u4);
    y[0 +: 33] = cast(m[pid(0), 0, 0 +: 33], f32);
}}
""", {"m": packed("u4", 1, 1, 3, n), "_odd": ints("i32", 1, 0, 2, n), "y": poison("f32", 33)},
        lambda a, n=n: odd_rows(a, n))


def odd_rows(a, n):
    m, y = a["m"].copy(), np.zeros(33, np.float32)
    m[0, 0, 4:min(6, n)] = 3
    y[:n] = m[0, 0, :n]
    return {"m": exact(m), "y": exact(y)}


# ---- casts ----------------------------------------------------------------------------------------------------------
def narrow(v, t, sat):
    """One number as an element of t."""
    if t == "f4e2m1":
        return shrink(v, t)
    lo, hi = (-8, 7) if t == "i4" else (0, 15)
    if isinstance(v, (float, np.floating)):
        v = 0 if math.isnan(v) else lo if v < lo else hi if v > hi else int(v)
    elif sat:
        v = min(max(int(v), lo), hi)
    return int(DECODE[t][int(v) & 15])


def sources(src):
    if src in PACKED:
        return Arr(src, np.arange(256, dtype=np.uint8))
    if src in F8:
        return Arr(src, np.arange(256, dtype=np.uint8))
    more = [-17, -16, -15, -9, -8, -7, -1, 0, 1, 4, 5, 6, 7, 8, 9, 14, 15, 16, 17, 31]
    if is_float(src):
        more = [v + f for v in more for f in (-0.5, -0.25, 0.0, 0.25, 0.5)] + [0.75, 1.25, 1.75, 2.5, -0.1, -0.25, 0.26]
    elif src == "bool":
        more = [0, 1]
    else:
        lo, hi = int_range(src)
        more = [v for v in more if lo <= v <= hi]
    all_of = [*edges(src), *more]
    x = exactly(src, all_of + all_of[:len(all_of) % 2])
    if is_float(src):  # NaN with a sign
        nan = np.flatnonzero(np.isnan(wide(x)))
        sign = x.store.view(f"u{x.store.itemsize}")
        sign[nan[-1]] |= sign.dtype.type(1 << (8 * x.store.itemsize - 1))
    return x


for t in PACKED:
    for src in ALL + list(F8) + PACKED:
        x = sources(src)
        n = len(x.store) * (2 if src in PACKED else 1)
        ways = ["w", "s"] if t != "f4e2m1" and src in INTS else ["w"]
        params = ", ".join(f"{t} {way}[N]" for way in ways)
        body = "\n".join(f"    {way}[i +: 64] = cast(x[i +: 64], {t}{', sat = true' if way == 's' else ''});"
                         for way in ways)
        row(
            f"packed_cast_{src}_to_{t}",
            f"kernel k(const {src} x[N], {params})\n    grid(cdiv(N, 64))\n{{\n    int i = pid(0) * 64;\n{body}\n}}\n",
            {"x": x, **{way: packed(t, 9, n)
                        for way in ways}}, lambda a, t=t, ways=ways: {
                            way: exact(np.array([narrow(v, t, way == "s") for v in a["x"].tolist()]))
                            for way in ways
                        })
