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
