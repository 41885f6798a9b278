"""Tiles whose last axis is shorter than a vector.

Computed, carried by loops, exchanged by them, in place, beside what has other rows.
"""
import numpy as np

from rows import row
from values import Arr, exact, is_float, poison, random_bits, rounded, store


def values(t, seed, *shape):
    if not is_float(t):
        return random_bits(t, seed, *shape)
    return Arr(t, store(np.random.default_rng(seed).integers(-20, 20, shape) / 4, t))


for k, (h, w) in enumerate([(4, 4), (8, 8), (2, 8), (16, 2), (3, 4), (7, 2), (64, 1), (5, 3), (64, 3)]):
    for t in ("u8", "f32", "f64"):
        row(
            f"short_{t}_{h}x{w}", f"""
kernel k(const {t} x[H, W], const {t} z[H, W], {t} a[H, W], {t} b[H, W], {t} c[H, W], {t} s, int n)
    grid(cdiv(W, {w}), cdiv(H, {h}))
{{
    int j = pid(1) * {h}, i = pid(0) * {w};
    auto v = x[j +: {h}, i +: {w}];
    auto u = z[j +: {h}, i +: {w}];
    c[j +: {h}, i +: {w}] = c[j +: {h}, i +: {w}] + v * u + s;
    tile<{t}, {h}, {w}> r = 1;
    for (int _k : range(n)) {{
        auto before = v;
        v = u + before * s;
        u = before;
        r = r + (v > u ? v : s);
    }}
    a[j +: {h}, i +: {w}] = v + r;
    auto p = u;
    static for (int _k : range(12)) p = min(max(p * s + v, p - (({t})2)), p + p);
    b[j +: {h}, i +: {w}] = p + max(p, axis = 0, keep = true);
}}
""", {
                "x": values(t, k, 19, 13),
                "z": values(t, 20 + k, 19, 13),
                "a": poison(t, 19, 13),
                "b": poison(t, 19, 13),
                "c": values(t, 40 + k, 19, 13),
                "s": 2,
                "n": 3
            }, lambda a, h=h, w=w: short(a, h, w))


def short(a, h, w):
    x, z, c, s = a["x"], a["z"], a["c"], a["x"].dtype.type(2)
    v, u, r = x, z, np.ones_like(x)
    for _ in range(3):
        v, u = u + v * s, v
        r = r + np.where(v > u, v, s)
    p = u
    for _ in range(12):
        p = np.minimum(np.maximum(p * s + v, p - s), p + p)
    total = p.copy()
    for j in range(0, 19, h):
        rows = np.arange(j, j + h)
        inside = rows[rows < 19]
        tile = np.zeros((h, x.shape[1]), x.dtype)
        tile[:len(inside)] = p[inside]
        total[inside] = p[inside] + tile.max(0)
    return {"a": exact(v + r), "b": exact(total), "c": exact(c + x * z + s)}


def small(t, seed):
    x = np.random.default_rng(seed).integers(-20, 20, (19, 26))
    return Arr(t, store(x / 4, t) if is_float(t) else x.astype(t.replace("i", "int")))


# Loops that go on while any element does: rows and columns that repeat, elements from a table, branches, the greatest
# of each row.
for k, (h, w) in enumerate([(4, 4), (8, 8), (2, 8), (5, 3), (16, 3), (64, 1), (3, 12), (4, 16)]):
    for t in ("i8", "i16", "f32", "f64"):
        row(
            f"short_while_{t}_{h}x{w}", f"""
kernel k(const {t} x[H, W], const i32 p[16], {t} a[H, W], i32 b[H, W], {t} c[H, W])
    grid(cdiv(W, {w}), cdiv(H, {h}))
{{
    int j = pid(1) * {h}, i = pid(0) * {w};
    auto v = x[j +: {h}, i +: {w}];
    auto r = row(iota({w}) + i);
    auto d = col((({t})3) - ({t})(iota({h}) + j));
    tile<i32, {h}, {w}> n = 0;
    tile<i32, {h}, {w}> sum = 0;
    auto u = v;
    int trip = 0;
    while (any(n < 9)) {{
        auto live = n < 9;
        auto step = at(p, (n + r) & 15);
        auto far = r * trip + 1;
        if (trip % 2 == 0) u = live ? max(u + ({t})step, d) : u;
        sum += live ? max(n, axis = 1, keep = true) - n + far : 0;
        n += live ? step : 0;
        trip += 1;
    }}
    a[j +: {h}, i +: {w}] = u;
    b[j +: {h}, i +: {w}] = sum * 16 + n;
    c[j +: {h}, i +: {w}] = (n > 9 ? u : v) + d;
}}
""", {
                "x": small(t, k),
                "p": Arr("i32", np.random.default_rng(k).integers(1, 4, 16).astype(np.int32)),
                "a": poison(t, 19, 26),
                "b": poison("i32", 19, 26),
                "c": poison(t, 19, 26)
            }, lambda a, h=h, w=w: looped(a, h, w))


def looped(a, h, w):
    rows, columns = (19 + h - 1) // h * h, (26 + w - 1) // w * w
    x = np.zeros((rows, columns), a["x"].dtype)
    x[:19, :26] = a["x"]
    r, d = np.arange(columns, dtype=np.int32)[None, :], (3 - np.arange(rows))[:, None].astype(x.dtype)
    u, n, total = x.copy(), np.zeros((rows, columns), np.int32), np.zeros((rows, columns), np.int32)
    for trip in range(9):
        live, step = n < 9, a["p"][n + r & 15]
        if trip % 2 == 0:
            u = np.where(live, np.maximum(u + step.astype(x.dtype), d), u)
        most = n.reshape(rows, columns // w, w).max(2, keepdims=True).repeat(w, 2).reshape(rows, columns)
        total += np.where(live, most - n + r * trip + 1, 0)
        n += np.where(live, step, 0)
    last = np.where(n > 9, u, x) + d
    return {"a": exact(u[:19, :26]), "b": exact((total * 16 + n)[:19, :26]), "c": exact(last[:19, :26])}


# The last element of a tile, alone in its vector, of what was computed wider. Later programs have earlier places: what
# is stored too wide is over what the program before has stored.
for t, wide in (("u8", "i32"), ("i16", "i32"), ("bf16", "bf16"), ("i32", "i64")):
    for w in (17, 33, 65):
        row(
            f"short_last_lane_of_{t}_{w}", f"""
kernel k(const {t} x[N], {t} y[N])
    grid(cdiv(N, {w}))
{{
    int i = (cdiv((int)N, {w}) - 1 - pid(0)) * {w};
    auto v = cast(x[i +: {w}], {wide});
    y[i +: {w}] = cast(v * v{" / 7" if wide[0] == "i" else ""}, {t});
}}
""", {
                "x": values(t, w, 7 * w),
                "y": poison(t, 7 * w)
            }, lambda a, t=t: {"y": rounded(a["x"] * a["x"], t) if is_float(t) else
                                    exact((a["x"].astype(np.int64)**2 // 7).astype(a["x"].dtype))})
