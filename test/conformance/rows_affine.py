"""Index tiles that are start, start + 1, ..., as they are and bounded: slices where that is the same.

Starts before the array and behind it, numbers that wrap, rows and columns, stores, extents of 1 and 0.
"""
import numpy as np

from rows import row
from values import ALL, F8, Arr, exact, is_float, poison, random_bits, store


def values(t, seed, *shape):
    if not is_float(t):
        return random_bits(t, seed, *shape)
    return Arr(t, store(np.random.default_rng(seed).integers(-200, 200, shape) / 4, t))


def taken(x, at):
    """x[at] along the first axis, 0 outside."""
    inside = (at >= 0) & (at < len(x))
    r = x[np.where(inside, at, 0)] if len(x) else np.zeros((len(at), *x.shape[1:]), x.dtype)
    return np.where(inside.reshape(-1, *[1] * (x.ndim - 1)), r, np.zeros((), x.dtype))


N = 301
STARTS = (0, 3, -9, 250, 400, -2**31, 2**31 - 40)
for k, t in enumerate([*ALL, *F8]):
    row(
        f"affine_{t}", f"""
kernel k(const {t} x[N], {t} a[R, C], {t} b[R, C], {t} c[R, C], {t} d[N], const i32 starts[R])
    grid({len(STARTS)})
{{
    int p = pid(0);
    int s = starts[p];
    a[p, 0 +: 64] = x[s + iota(64)];
    b[p, 0 +: 64] = x[clamp(s + iota(64) - 2, 0, N - 1)];
    c[p, 0 +: 64] = x[min(s - 5 + iota(64), 40)];
    if (p < 2) d[p * 200 + (iota(128) - s)] = x[p * 128 +: 128];
}}
""", {
            "x": values(t, k, N),
            **{n: poison(t, len(STARTS), 64)
               for n in "abc"},
            "d": values(t, 50 + k, N),
            "starts": Arr("i32", np.array(STARTS, np.int32))
        }, lambda a: wanted(a))


def wanted(a):
    x, d, i = a["x"], a["d"].copy(), np.arange(64)
    out = {n: [] for n in "abc"}
    for s in STARTS:
        wrapped = (np.int64(s) + i + 2**31) % 2**32 - 2**31
        out["a"].append(taken(x, wrapped))
        lower = (np.int64(s) + i - 2 + 2**31) % 2**32 - 2**31
        out["b"].append(taken(x, np.clip(lower, 0, N - 1)))
        lower = (np.int64(s) + i - 5 + 2**31) % 2**32 - 2**31
        out["c"].append(taken(x, np.minimum(lower, 40)))
    d[:128] = x[:128]
    d[197:301] = x[128:232]
    return {**{n: exact(np.stack(v)) for n, v in out.items()}, "d": exact(d)}


row(
    "affine_planes", """
kernel k(const f32 x[H, W], const f32 e[Z], f32 y[H, W], f32 z[H, W], f32 s[H], f32 n[64], i64 far)
    grid(cdiv(W, 32), cdiv(H, 8))
{
    int j = pid(1) * 8, i = pid(0) * 32;
    auto rows = j + iota(8);
    auto columns = i + iota(32);
    y[rows, columns] = x[clamp(rows - 1, 0, H - 1), clamp(columns + 2, 0, W - 1)] + x[rows, i +: 32];
    z[j +: 8, i +: 32] = x[max(rows - 3, 0), columns] * x[j +: 8, far + iota(32) + (i64)i];
    if (pid(0) == 0) s[rows] = sum(x[rows, clamp(iota(128), 1, 50)], axis = 1);
    if (pid(0) == 0 && pid(1) == 0) n[0 +: 64] = e[clamp(iota(64), 0, Z - 1)] + e[iota(64)];
}
""", {
        "x": Arr("f32",
                 np.random.default_rng(5).integers(-50, 50, (13, 61)).astype(np.float32)),
        "e": Arr("f32", np.zeros(0, np.float32)),
        "y": poison("f32", 13, 61),
        "z": poison("f32", 13, 61),
        "s": poison("f32", 13),
        "n": poison("f32", 64),
        "far": -4
    }, lambda a: planes(a["x"]))


def planes(x):
    j, i = np.arange(13), np.arange(61)
    near = x[np.clip(j - 1, 0, 12)][:, np.clip(i + 2, 0, 60)] + x
    return {
        "y": exact(near),
        "z": exact(x[np.maximum(j - 3, 0)] * taken(x.T, i - 4).T),
        "s": exact(x[:, np.clip(np.arange(128), 1, 50)].sum(1)),
        "n": exact(np.zeros(64, np.float32)),
    }
