"""Index tiles that are start, start + 1, ..., as they are and bounded: slices where that is the same.

Starts before the array and behind it, numbers that wrap, rows and columns, stores, extents of 1 and 0.
"""
import numpy as np

from rows import row
from values import ALL, F8, Arr, exact, is_float, poison, random_bits, small, store


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


# ---- patterns: numbers that repeat, each time larger by a step -------------------------------------------------------
def cut(i, by):
    """Toward 0."""
    return np.sign(i) * (np.abs(i) // by)


PATTERNS = {  # result: index in the language, and of integers i
    "half": ("i / 2", lambda i, n: cut(i, 2)),
    "quarter": ("clamp(i / 4 + 5, 0, N - 1)", lambda i, n: np.clip(cut(i, 4) + 5, 0, n - 1)),
    "shifted": ("min((i >> 1) - 3, 40)", lambda i, n: np.minimum((i >> 1) - 3, 40)),
    "beside": ("clamp(i % 2 == 0 ? (i - 1) / 2 : (i + 1) / 2, 0, N - 1)",
               lambda i, n: np.clip(np.where(i % 2 == 0, cut(i - 1, 2), cut(i + 1, 2)), 0, n - 1)),
    "bounded_first": ("(i & 1) != 0 ? clamp(i / 2, 3, 60) : clamp((i + 4) / 2, 3, 60)",
                      lambda i, n: np.clip(np.where(i & 1, cut(i, 2), cut(i + 4, 2)), 3, 60)),
    "blocks": ("i - (i & 3)", lambda i, n: i - (i & 3)),
    "turned": ("i - (i & 7) + (7 - (i & 7))", lambda i, n: i - (i & 7) + 7 - (i & 7)),
    "after": ("(i - 3) / 2 + 4", lambda i, n: cut(i - 3, 2) + 4),
    "pairs": ("max((i & 15) < 8 ? i / 16 : i / 16 + 1, -2)",
              lambda i, n: np.maximum(np.where((i & 15) < 8, cut(i, 16), cut(i, 16) + 1), -2)),
}
for k, t in enumerate([*ALL, *F8]):
    row(
        f"affine_pattern_{t}", f"""
kernel k(const {t} x[N], {", ".join(f"{t} {name}[R, C]" for name in PATTERNS)})
    grid(11)
{{
    auto i = (pid(0) - 2) * 64 + iota(64);
    int p = pid(0);
{"".join(f"    {name}[p, 0 +: 64] = x[{text}];{chr(10)}" for name, (text, _) in PATTERNS.items())}}}
""", {"x": values(t, 80 + k, 157), **{name: poison(t, 11, 64) for name in PATTERNS}}, lambda a: {
            name: exact(taken(a["x"], f(np.arange(-128, 576).reshape(11, 64), 157).reshape(-1)).reshape(11, 64))
            for name, (_, f) in PATTERNS.items()
        })

# What is computed from loads of one pattern is computed before elements are repeated (nest_spread.c); rows outside are
# zeros, and arrays end with what is loaded.
SPREAD = """
kernel k(const {t} x[H, W], {t} y[R, C], {t} z[R, C], const int B = {b})
    grid(cdiv(C, B), R)
{{
    int j = pid(1) - 1;
    auto i = pid(0) * B + iota(B);
    auto c = clamp(i / 2, 0, W - 1);
    auto d = clamp(i % 2 == 0 ? (i - 1) / 2 : (i + 1) / 2, 0, W - 1);
    y[pid(1), pid(0) * B +: B] = ({t})2 * (x[j, c] + ({t})3 * x[j + 1, c]) + (x[j, d] + ({t})3 * x[j + 1, d]);
    z[pid(1), pid(0) * B +: B] = x[j, i / 4] + ({t})2 * x[j, i / 4 + 3];
}}
"""


def spread(x, y):
    rows, columns = y.shape
    t, (h, w), i = x.dtype.type, x.shape, np.arange(y.shape[1])
    padded = np.zeros((max(h, rows) + 2, w), x.dtype)
    padded[1:h + 1] = x
    c, d = np.clip(i // 2, 0, w - 1), np.clip(np.where(i % 2 == 0, (i - 1) // 2, (i + 1) // 2), 0, w - 1)
    y, z = np.zeros_like(y), np.zeros_like(y)
    for j in range(rows):
        a, b = padded[j], padded[j + 1]
        y[j] = t(2) * (a[c] + t(3) * b[c]) + (a[d] + t(3) * b[d])
        z[j] = taken(a, i // 4) + t(2) * taken(a, i // 4 + 3)
    return {"y": exact(y), "z": exact(z)}


for t, b, shape, out in (("f32", 256, (5, 300), (7, 600)), ("f32", 64, (3, 65), (4, 257)),
                         ("i32", 128, (2, 1), (3, 130)), ("f64", 128, (4, 128), (4, 512)),
                         ("u16", 256, (3, 200), (5, 401)), ("u8", 256, (3, 257), (3, 700)),
                         ("f32", 128, (1, 1), (1, 1)), ("f32", 128, (2, 2000), (2, 4000))):
    row(f"affine_pattern_spread_{t}_{b}_{shape[1]}", SPREAD.format(t=t, b=b),
        {"x": small(t, b, *shape), "y": poison(t, *out), "z": poison(t, *out)}, lambda a: spread(a["x"], a["y"]))

row(
    "affine_pattern_far", """
kernel k(const f32 x[N], f32 y[R, C], f32 z[R, C], f32 none[R, C], const f32 e[Z])
    grid(66)
{
    int p = pid(0);
    auto i = p * 67108864 + iota(64);
    y[p, 0 +: 64] = x[clamp((i + 2) / 2, 0, N - 1)];
    z[p, 0 +: 64] = x[clamp(i % 2 == 0 ? (i - 1) / 2 : (i + 1) / 2, 0, N - 1)];
    none[p, 0 +: 64] = e[clamp(i / 2, 0, Z - 1)];
}
""", {"x": values("f32", 99, 50), "y": poison("f32", 66, 64), "z": poison("f32", 66, 64),
      "none": poison("f32", 66, 64), "e": Arr("f32", np.zeros(0, np.float32))}, lambda a: far_patterns(a["x"]))


def far_patterns(x):
    wrap = lambda v: (v + 2**31) % 2**32 - 2**31
    i = wrap(np.arange(66, dtype=np.int64)[:, None] * 67108864 + np.arange(64))
    left, right = cut(wrap(i - 1), 2), cut(wrap(i + 1), 2)
    return {
        "y": exact(x[np.clip(cut(wrap(i + 2), 2), 0, 49)]),
        "z": exact(x[np.clip(np.where(i % 2 == 0, left, right), 0, 49)]),
        "none": exact(np.zeros((66, 64), np.float32))
    }


row(
    "affine_pattern_of_planes", """
kernel k(const u16 x[H, W], u16 y[2 * H, 2 * W], u16 z[2 * H, 2 * W], u16 before[2 * H, 2 * W],
         u16 padded[2 * H, 2 * W], f32 sums[H])
    grid(cdiv(2 * W, 32), cdiv(2 * H, 8))
{
    int j = pid(1) * 8, i = pid(0) * 32;
    auto rows = (j + iota(8)) / 2;
    auto columns = (i + iota(32)) / 2;
    y[j +: 8, i +: 32] = x[rows, columns];
    z[j +: 8, i +: 32] = x[clamp(rows, 0, H - 1), clamp(columns - 1, 0, W - 1)];
    before[j +: 8, i +: 32] = x[rows - 3, columns];
    padded[j +: 8, i +: 32] = load(x[2 * rows - 5, clamp(columns, 0, W - 1)], pad = 7);
    if (pid(0) == 0) sums[j / 2 +: 4] = sum((f32)x[j / 2 + iota(4), columns], axis = 1);
}
""", {"x": random_bits("u16", 5, 9, 37), "y": poison("u16", 18, 74), "z": poison("u16", 18, 74),
      "before": poison("u16", 18, 74), "padded": poison("u16", 18, 74), "sums": poison("f32", 9)}, lambda a: {
          "before": exact(np.repeat(np.repeat(np.pad(a["x"], ((3, 0), (0, 0))), 2, 0), 2, 1)[:18]),
          "padded": exact(np.stack([np.repeat(a["x"][r], 2) if 0 <= r < 9 else np.full(74, 7, np.uint16)
                                    for r in 2 * (np.arange(18) // 2) - 5])),
          "y": exact(np.repeat(np.repeat(a["x"], 2, 0), 2, 1)),
          "z": exact(np.repeat(np.repeat(a["x"], 2, 0), 2, 1)[:, [0, 0, *range(72)]]),
          "sums": exact(2 * a["x"][:, :16].astype(np.float32).sum(1))
      })

# A pattern down a column, whose elements are not side by side; bounded numbers in columns, and interleaved.
COLUMNS = {
    "quarter": ("j / 4 + 2", lambda j, n: j // 4 + 2),
    "half": ("clamp(j / 2 - 3, 0, A - 1)", lambda j, n: np.clip(j // 2 - 3, 0, n - 1))
}
for k, t in enumerate(("u8", "i16", "f32", "f64")):
    for n in (16, 33, 64):
        row(
            f"affine_pattern_of_columns_{t}_{n}", f"""
kernel k(const {t} x[A, B], {", ".join(f"{t} {name}[B, C]" for name in COLUMNS)})
    grid(B)
{{
    auto j = iota({n});
    int p = pid(0);
{"".join(f"    {name}[p, 0 +: {n}] = x[{text}, p];{chr(10)}" for name, (text, _) in COLUMNS.items())}}}
""", {"x": values(t, 120 + k, 37, 3), **{name: poison(t, 3, n) for name in COLUMNS}}, lambda a, n=n: {
                name: exact(a["x"][f(np.arange(n), 37)].T) for name, (_, f) in COLUMNS.items()
            })
    for m, n in ((4, 4), (8, 16), (16, 8)):
        row(
            f"affine_across_lanes_{t}_{m}x{n}", f"""
kernel k(const {t} x[A], const {t} z[B], {t} y[C, D], {t} two[C, 2], {t} beside[E], {t} whole[C, 2])
    grid(3)
{{
    int p = pid(0) * {m};
    auto v = load(x[p - 2 +: {m}], border = edge);
    auto w = z[0 +: {m}];
    y[p +: {m}, 0 +: {n}] = pid(0) >= 0 ? col(v) : row(z[0 +: {n}]);
    two[p +: {m}, 0 +: 2] = join(w, v);
    beside[2 * p +: {2 * m}] = interleave(w, v);
    whole[p +: {m}, 0 +: 2] = join((unchecked x[clamp(p + iota({m}), 1, {m})]), w);
}}
""", {"x": values(t, 140 + k, 3 * m - 3), "z": values(t, 150 + k, 16), "y": poison(t, 3 * m, n),
      "two": poison(t, 3 * m, 2), "beside": poison(t, 6 * m), "whole": poison(t, 3 * m, 2)},
            lambda a, m=m, n=n: across(a["x"], a["z"], m, n))


def across(x, z, m, n):
    v, w = x[np.clip(np.arange(3 * m) - 2, 0, 3 * m - 4)], np.tile(z[:m], 3)
    both = np.stack((w, v), -1)
    return {"y": exact(np.repeat(v[:, None], n, 1)), "two": exact(both), "beside": exact(both.reshape(-1)),
            "whole": exact(np.stack((x[np.clip(np.arange(3 * m), 1, m)], w), -1))}


# Two loads by the same index tile, of arrays of known and other extents; lanes of the last rows are outside.
for k, t in enumerate(("i32", "f32", "f64", "u64")):
    row(
        f"affine_shared_by_loads_{t}", f"""
kernel k(const {t} x[A, B], const {t} w[A, 24], {t} y[A, 8], {t} z[A, 8])
    grid(1)
{{
    auto i = iota(8) * 3 + 3;
    y[0 +: 8, 0 +: 8] = x[0 +: 8, i];
    z[0 +: 8, 0 +: 8] = w[0 +: 8, i];
}}
""", {"x": values(t, 160 + k, 6, 28), "w": values(t, 170 + k, 6, 24), "y": poison(t, 6, 8), "z": poison(t, 6, 8)},
        lambda a: {"y": exact(a["x"][:, 3:27:3]), "z": exact(np.pad(a["w"][:, 3::3], ((0, 0), (0, 1))))})

# So wide a period that all lanes of a vector have the same element; a pick that is stored and reduced, too.
for k, t in enumerate(("u8", "i16", "f32", "f64")):
    row(
        f"affine_pattern_of_wide_periods_{t}", f"""
kernel k(const {t} x[A, B], {t} y[A, 64], {t} z[A, 32])
    grid(1)
{{
    y[0 +: 4, 0 +: 64] = x[0 +: 4, iota(64) / 4 + 3];
    z[0 +: 4, 0 +: 32] = load(x[1 +: 4, iota(32) / 8 - 1], border = edge);
}}
""", {"x": values(t, 180 + k, 4, 17), "y": poison(t, 4, 64), "z": poison(t, 4, 32)}, lambda a: {
            "y": exact(np.where(np.arange(64) // 4 + 3 < 17, a["x"][:, np.minimum(np.arange(64) // 4 + 3, 16)], 0)),
            "z": exact(a["x"][[1, 2, 3, 3]][:, np.maximum(np.arange(32) // 8 - 1, 0)])
        })

# Rows by an index tile, some of them outside, of which bounded columns are taken.
for k, t in enumerate(("u8", "i16", "f16", "f32")):
    for n in (20, 33):
        row(
            f"affine_rows_outside_{t}_{n}", f"""
kernel k(const {t} x[A, 3, C], {t} y[E, 2, F])
    grid(4)
{{
    int p = pid(0);
    auto rows = iota(2) * 4 % 3 + (2 * p - 1);
    y[p * 2 +: 2, 0 +: 2, 0 +: {n}] = x[rows, (iota(2) ^ 3) - 1, clamp({n} * p + iota({n}), 0, 9)];
}}
""", {"x": values(t, 190 + k, 4, 3, 11), "y": poison(t, 8, 2, n)}, lambda a, n=n: {"y": exact(rows_outside(a["x"], n))})


def rows_outside(x, n):
    y = np.zeros((8, 2, n), x.dtype)
    for p in range(4):
        for a, r in enumerate((2 * p - 1, 2 * p)):
            for b, c in enumerate((2, 1)):
                if 0 <= r < 4:
                    y[2 * p + a, b] = x[r, c, np.clip(n * p + np.arange(n), 0, 9)]
    return y
