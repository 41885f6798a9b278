"""Loads of every few elements: slices with a step, channels of an image.

Whole vectors, borders before and behind, odd extents, tiles larger than the array, sums of them.
"""
import numpy as np

from rows import row
from values import ALL, F8, Arr, exact, is_float, poison, random_bits, store

START = -7  # before the array


def values(t, seed, *shape):
    if t == "bool" or not is_float(t):
        return random_bits(t, seed, *shape)
    return Arr(t, store(np.random.default_rng(seed).integers(-200, 200, shape) / 4, t))


def every(x, start, n, step):
    """Elements start, start + step, ...: n of them, 0 outside."""
    at = start + step * np.arange(n)
    inside = (at >= 0) & (at < len(x))
    return np.where(inside, x[np.where(inside, at, 0)], np.zeros((), x.dtype))


N, H = 301, 75
OUT = {"a": 128, "b": 64, "c": 37, "d": 256, "e": H, "f": H, "g": H, "h": 128}


def wanted(a):
    x = a["x"]
    return {
        "a": exact(every(x, 0, 128, 2)),
        "b": exact(every(x, START, 64, 3)),
        "c": exact(every(x, 5, 37, 4)),
        "d": exact(every(x, 0, 256, 5)),
        "e": exact(a["c3"][:, 1]),
        "f": exact(a["c4"][:, 3]),
        "g": exact(a["c8"][2, :, 7]),
        "h": exact(np.concatenate((every(x, 0, 64, -2), every(x, 64, 64, -2)))),
    }


for k, t in enumerate([*ALL, *F8]):
    ins = {
        "x": values(t, 10 + k, N),
        "c3": values(t, 30 + k, H, 3),
        "c4": values(t, 50 + k, H, 4),
        "c8": values(t, 70 + k, 8, H, 8),
    }
    row(
        f"strides_{t}", f"""
kernel k(const {t} x[N], const {t} c3[H, 3], const {t} c4[H, 4], const {t} c8[8, H, 8],
         {t} a[128], {t} b[64], {t} c[37], {t} d[256], {t} e[H], {t} f[H], {t} g[H], {t} h[128])
    grid(2)
{{
    int p = pid(0);
    a[p * 64 +: 64] = x[p * 128 +: 64 : 2];
    b[p * 32 +: 32] = x[p * 96 - 7 +: 32 : 3];
    if (p == 0) c[0 +: 37] = x[5 +: 37 : 4];
    d[p * 128 +: 128] = x[p * 128 * 5 +: 128 : 5];
    e[p * 64 +: 64] = c3[p * 64 +: 64, 1];
    f[p * 64 +: 64] = c4[p * 64 +: 64, 3];
    g[p * 64 +: 64] = c8[2, p * 64 +: 64, 7];
    h[p * 64 +: 64] = x[p * 64 +: 64 : -2];
}}
""", {**ins, **{n: poison(t, m)
                for n, m in OUT.items()}}, wanted)

# In what is not split: sums down an axis, gathers' operands, histograms; a column of another column's number.
row(
    "strides_in_reductions", """
kernel k(const i32 x[H, W, 3], i32 s[W], i32 m[H], i32 y[W], i32 n[16])
    grid(1)
{
    auto v = x[0 +: 8, -3 +: 64, 1];
    s[-3 +: 64] = sum(v, axis = 0);
    m[0 +: 8] = max(v, axis = 1);
    y[-3 +: 64] = flip(x[5, -3 +: 64, 2], 0);
    n[0 +: 16] = histogram((u8)x[2, 0 +: 64, 0] & 15, 16, mask = iota(64) < 50);
}
""", {
        "x": Arr("i32",
                 np.random.default_rng(3).integers(0, 1000, (7, 50, 3)).astype(np.int32)),
        "s": poison("i32", 50),
        "m": poison("i32", 7),
        "y": poison("i32", 50),
        "n": poison("i32", 16)
    }, lambda a: reduced(a["x"]))


def reduced(x):
    tile = np.zeros(64, x.dtype)
    tile[3:53] = x[5, :, 2]
    return {
        "s": exact(x[:, :, 1].sum(0).astype(np.int32)),
        "m": exact(x[:, :, 1].max(1)),
        "y": exact(tile[::-1][3:53]),
        "n": exact(np.bincount(x[2, :, 0] & 15, minlength=16).astype(np.int32)),
    }


# Strides that only the launch knows: of the lanes 1, 0, others, and backwards; slices that begin before the array.
def spaced(t, seed, rows, n, stride):
    """n elements of each row, so far apart."""
    x = values(t, seed, rows, max((n - 1) * abs(stride) + 1, 1)).store
    x = x[:, ::stride] if stride else np.lib.stride_tricks.as_strided(x, (rows, n), (x.strides[0], 0))
    return Arr(t, x[:, :n])


OF_LAUNCH = [("f32", 1, 1), ("f32", 0, 3), ("f64", 1, 0), ("i32", -1, 1), ("f16", 0, 1), ("f32", 2, 0)]
for k, (t, a, b) in enumerate(OF_LAUNCH):
    for n in (1, 37, 90):
        row(f"strides_at_launch_{t}_{a}_{b}_{n}", f"""
kernel k(const {t} x[M : xm, N : xn], const {t} z[M : zm, N : zn], {t} y[M : ym, N : yn])
    grid(M, cdiv(N + 3, 64))
{{
    int n = pid(1) * 64 - 3;
    y[pid(0), n +: 64] = x[pid(0), n +: 64] + z[pid(0), n +: 64];
}}
""", {"x": spaced(t, k, 3, n, a), "z": spaced(t, k + 9, 3, n, b), "y": poison(t, 3, n)},
            lambda a: {"y": exact(a["x"] + a["z"])})
