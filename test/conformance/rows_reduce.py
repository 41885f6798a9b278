"""Reductions and scans: every type, every axis, odd extents, where, keep, NaN, ties, functions of the user's,
tuples."""
import numpy as np

from rows import row
from values import (ALL, FLOATS, INTS, Arr, exact, exactly, ints, is_float, normal, poison, small, store, sum_bound,
                    within)

SUM = {"bool": "i32", "i8": "i32", "i16": "i32", "u8": "u32", "u16": "u32"}  # what sums of small integers are
WIDE = {"i32": np.int32, "u32": np.uint32}
R, C = 11, 13


def total(x, axis):
    """Exact sums: integers wrap in their result type, floats are small integers."""
    t = {"b": np.int32, "i": np.int64, "u": np.uint64, "f": np.float64}[x.dtype.kind]
    return x.astype(t).sum(axis, dtype=t)


for k, t in enumerate(ALL):
    s = SUM.get(t, t)
    x = small(t, k, R, C)
    extra = "" if t == "bool" else f", {t} m0[C], {t} m1[R], {t} n1[R], {t} m[1], i32 a0[C], i32 a1[R], i32 b[1]"
    more = "" if t == "bool" else """
    m0[0 +: 13] = max(t, axis = 0);
    m1[0 +: 11] = max(t, axis = 1);
    n1[0 +: 11] = min(t, axis = 1);
    m[0] = max(t);
    a0[0 +: 13] = argmax(t, axis = 0);
    a1[0 +: 11] = argmin(t, axis = 1);
    b[0] = argmax(t);"""
    args = {"x": x, "s0": poison(s, C), "s1": poison(s, R), "s": poison(s, 1)}
    if t != "bool":
        args.update(m0=poison(t, C), m1=poison(t, R), n1=poison(t, R), m=poison(t, 1), a0=poison("i32", C),
                    a1=poison("i32", R), b=poison("i32", 1))

    def want(a, t=t):
        x = a["x"]
        w = {"s0": exact(total(x, 0)), "s1": exact(total(x, 1)), "s": exact(total(x, None).reshape(1))}
        if t != "bool":
            w.update(m0=exact(x.max(0)), m1=exact(x.max(1)), n1=exact(x.min(1)), m=exact(x.max().reshape(1)),
                     a0=exact(x.argmax(0)), a1=exact(x.argmin(1)), b=exact(np.array([x.argmax()])))
        return w
    row(f"reduce_{t}", f"""
kernel k(const {t} x[R, C], {s} s0[C], {s} s1[R], {s} s[1]{extra})
    grid(1)
{{
    auto t = x[0 +: {R}, 0 +: {C}];
    s0[0 +: {C}] = sum(t, axis = 0);
    s1[0 +: {R}] = sum(t, axis = 1);
    s[0] = sum(t);{more}
}}
""", args, want)

for t in ["bool"] + INTS:
    x = Arr(t, store(np.random.default_rng(1).integers(0, 2, (6, 9)), t)) if t == "bool" else ints(t, 7, 0, 100, 6, 9)
    bool_body = ("    every[0 +: 6] = all(t, axis = 1);\n    some[0 +: 6] = any(t, axis = 1);\n"
                 "    none[0] = any(t && !t);")
    int_body = "    odd[0 +: 6] = xor_sum(t, axis = 1);\n    cross[0 +: 9] = xor_sum(t, axis = 0);"
    if t == "bool":
        row(
            "reduce_any_all",
            f"kernel k(const bool x[R, C], bool every[R], bool some[R], bool none[1])\n    grid(1)\n{{\n"
            f"    auto t = x[0 +: 6, 0 +: 9];\n{bool_body}\n}}\n",
            {"x": x, "every": poison(t, 6), "some": poison(t, 6), "none": poison(t, 1)},
            lambda a: {"every": exact(a["x"].all(1)), "some": exact(a["x"].any(1)), "none": exact(np.array([False]))})
    else:
        row(
            f"reduce_xor_{t}",
            f"kernel k(const {t} x[R, C], {t} odd[R], {t} cross[C])\n    grid(1)\n{{\n    auto t = x[0 +: 6, 0 +: 9];\n"
            f"{int_body}\n}}\n",
            {"x": x, "odd": poison(t, 6), "cross": poison(t, 9)}, lambda a:
            {"odd": exact(np.bitwise_xor.reduce(a["x"], 1)), "cross": exact(np.bitwise_xor.reduce(a["x"], 0))})

for t in ["i8", "u8", "i32", "u64"] + FLOATS:
    s = SUM.get(t, t)
    x = exactly(t, np.random.default_rng(3).choice([1, 1, 2, 1, 1] if t[0] == "u" else [1, -1, 2, 1, -1], (7, 9)))
    row(
        f"reduce_prod_{t}", f"""
kernel k(const {t} x[R, C], {s} p0[C], {s} p1[R], {s} c[R, C])
    grid(1)
{{
    auto t = x[0 +: 7, 0 +: 9];
    p0[0 +: 9] = prod(t, axis = 0);
    p1[0 +: 7] = prod(t, axis = 1);
    c[0 +: 7, 0 +: 9] = cumprod(t, axis = 1);
}}
""", {"x": x, "p0": poison(s, 9), "p1": poison(s, 7), "c": poison(s, 7, 9)}, lambda a:
        (lambda v: {"p0": exact(v.prod(0)), "p1": exact(v.prod(1)), "c": exact(v.cumprod(1))})
        (a["x"].astype(np.float64 if is_float(t) else np.int64)))

# Random floats: any order of summation, f16 and bf16 in f32, one rounding at the end.
for t in FLOATS:
    acc = "f64" if t == "f64" else "f32"
    for n in (1, 7, 1000, 4097):
        row(
            f"reduce_sum_random_{t}_{n}",
            f"kernel k(const {t} x[R, N], {t} s[R])\n    grid(R)\n{{\n    s[pid(0)] = sum(x[pid(0), 0 +: {n}]);\n}}\n",
            {"x": normal(t, n, 3, n), "s": poison(t, 3)}, lambda a, t=t, acc=acc, n=n:
            (lambda v: {"s": within(v.sum(1), sum_bound(np.abs(v).sum(1), n, acc, t, v.sum(1)))})
            (a["x"].astype(np.longdouble).astype(np.float64)), same_bits=False)

nan, inf = np.nan, np.inf
SPECIAL = np.array([[1, nan, 3, nan, 2], [nan] * 5, [-inf, nan, -inf, -inf, -inf], [inf, 1, inf, nan, -inf],
                    [2, 2, 2, 2, 2], [-0.0, 0.0, -0.0, 0.0, -1]])
for t in FLOATS:
    row(
        f"reduce_nan_loses_{t}", f"""
kernel k(const {t} x[R, 5], {t} hi[R], {t} lo[R], i32 at[R], i32 low[R], {t} s[R])
    grid(R)
{{
    auto v = x[pid(0), 0 +: 5];
    hi[pid(0)] = max(v);
    lo[pid(0)] = min(v);
    at[pid(0)] = argmax(v);
    low[pid(0)] = argmin(v);
    s[pid(0)] = sum(v);
}}
""", {
            "x": exactly(t, SPECIAL), "hi": poison(t, 6), "lo": poison(t, 6), "at": poison("i32", 6), "low": poison(
                "i32", 6), "s": poison(t, 6)
        }, lambda a: {
            "hi": within([3, nan, -inf, inf, 2, 0.0], [0, 0, 0, 0, 0, 1e-320]), "lo": exact(
                [1, nan, -inf, -inf, 2, -1.0]), "at": exact([2, 0, 0, 0, 0, 0]), "low": exact([0, 0, 0, 4, 0, 4]),
            "s": exact([nan, nan, nan, nan, 10, -1])
        }, same_bits=False)  # the greatest of zeros may have either sign



def first_best(x, left, sign):
    """The first index of the greatest sign * x of those left: NaN loses, the first among equals, 0 of none."""
    best = -1
    for i in np.flatnonzero(left):
        better = best < 0 or (np.isnan(x[best]) and not np.isnan(x[i])) or sign * x[i] > sign * x[best]
        best = i if better else best
    return max(best, 0)


def arg_want(a):
    x, m = a["x"].astype(np.float64), a["m"]
    n, c = x.shape
    every = np.ones_like(m)
    return {"down": exact([first_best(x[:, j], every[:, j], 1) for j in range(c)]),
            "low": exact([first_best(x[i], every[i], -1) for i in range(n)]),
            "at": exact([first_best(x[i], m[i], 1) for i in range(n)]),
            "least": exact([first_best(x[:, j], m[:, j], -1) for j in range(c)]),
            "all": exact([first_best(x.reshape(-1), m.reshape(-1), 1)]),
            "top": within(np.fmax.reduce(x, 1), np.where(np.fmax.reduce(x, 1) == 0, 1e-320, 0))}


for k, t in enumerate([t for t in ALL if t != "bool"]):
    rng = np.random.default_rng(k)
    x, m = rng.integers(0, 7, (13, 200)).astype(np.float64), rng.integers(0, 2, (13, 200)) == 1
    m[2], m[:, 3], m[4, 5:] = False, False, False
    if is_float(t):
        x[5], x[6], x[7, :100], x[8, ::3], x[:, 9] = nan, -inf, nan, nan, nan
        x[9] = np.where(np.arange(200) % 2, -0.0, 0.0)
    else:
        x[6] = np.iinfo(store(np.zeros(1), t).dtype).min
    x = exactly(t, x) if is_float(t) else Arr(t, store(x, t))
    row(  # many elements of a thread: the extreme value first, then its index
        f"reduce_argmax_wide_{t}", f"""
kernel k(const {t} x[R, C], const bool m[R, C], i32 down[C], i32 low[R], i32 at[R], i32 least[C], i32 all[1],
         {t} top[R])
    grid(1)
{{
    auto t = x[0 +: 13, 0 +: 200];
    auto m = m[0 +: 13, 0 +: 200];
    down[0 +: 200] = argmax(t, axis = 0);
    low[0 +: 13] = argmin(t, axis = 1);
    at[0 +: 13] = argmax(t, axis = 1, where = m);
    least[0 +: 200] = argmin(t, axis = 0, where = m);
    all[0] = argmax(t, where = m);
    top[0 +: 13] = max(t, axis = 1);
}}
""", {"x": x, "m": Arr("bool", store(m, "bool")), "down": poison("i32", 200), "low": poison("i32", 13),
      "at": poison("i32", 13), "least": poison("i32", 200), "all": poison("i32", 1), "top": poison(t, 13)},
        arg_want, same_bits=False)

row(
    "reduce_where_and_keep", """
kernel k(const i32 x[R, C], i32 s[R], i32 hi[R], i32 lo[R], i32 p[R], i32 at[R], i32 kept[R, C], f32 none[4])
    grid(1)
{
    auto t = x[0 +: 9, 0 +: 7];
    auto m = t > 2;
    s[0 +: 9] = sum(t, axis = 1, where = m);
    hi[0 +: 9] = max(t, axis = 1, where = t < 0);
    lo[0 +: 9] = min(t, axis = 1, where = m);
    p[0 +: 9] = prod(t, axis = 1, where = m);
    at[0 +: 9] = argmax(t, axis = 1, where = m);
    kept[0 +: 9, 0 +: 7] = t - max(t, axis = 1, keep = true);
    auto f = (f32)x[0, 0 +: 7];
    none[0] = sum(f, where = f > 99);
    none[1] = max(f, where = f > 99);
    none[2] = min(f, where = f > 99);
    none[3] = prod(f, where = f > 99);
}
""", {
        "x": small("i32", 5, 9, 7), **{n: poison("i32", 9)
                                       for n in ("s", "hi", "lo", "p", "at")}, "kept": poison("i32", 9, 7),
        "none": poison("f32", 4)
    }, lambda a: where_want(a["x"]))


def where_want(x):
    m, lo, hi = x > 2, np.iinfo(np.int32).min, np.iinfo(np.int32).max
    masked = np.where(m, x, lo)
    return {
        "s": exact(np.where(m, x, 0).sum(1)), "hi": exact(np.where(x < 0, x,
                                                                   lo).max(1)), "lo": exact(np.where(m, x, hi).min(1)),
        "p": exact(np.where(m, x, 1).prod(1)), "at": exact(np.where(m.any(1), masked.argmax(1), 0)),
        "kept": exact(x - x.max(1, keepdims=True)), "none": exact([0.0, -np.inf, np.inf, 1.0])
    }


row(
    "reduce_rank_3_and_1", """
kernel k(const i32 x[A, B, C], i32 s0[B, C], i32 s1[A, C], i32 s2[A, B], i32 one[1], i32 scalar[1])
    grid(1)
{
    auto t = x[0 +: 3, 0 +: 5, 0 +: 6];
    s0[0 +: 5, 0 +: 6] = sum(t, axis = 0);
    s1[0 +: 3, 0 +: 6] = max(t, axis = 1);
    s2[0 +: 3, 0 +: 5] = min(t, axis = 2);
    one[0] = sum(sum(sum(t, axis = 2), axis = 1), axis = 0);
    scalar[0] = sum(x[2, 4, 5]) + max(x[1, 1, 0 +: 1]);
}
""", {
        "x": small("i32", 6, 3, 5, 6), "s0": poison("i32", 5, 6), "s1": poison("i32", 3, 6), "s2": poison("i32", 3, 5),
        "one": poison("i32", 1), "scalar": poison("i32", 1)
    }, lambda a: {
        "s0": exact(a["x"].sum(0)), "s1": exact(a["x"].max(1)), "s2": exact(a["x"].min(2)), "one": exact([a["x"].sum(
        )]), "scalar": exact([a["x"][2, 4, 5] + a["x"][1, 1, 0]])
    })

row(
    "reduce_user_function_and_tuple", """
i32 gcd_like(i32 a, i32 b) { return max(a, b) ^ (min(a, b) & 0); }
auto both(f32 s, f32 q, i32 n, f32 s2, f32 q2, i32 n2) { return (s + s2, q + q2, n + n2); }

kernel k(const i32 x[R, C], i32 g[R], f32 s[C], f32 q[C], i32 n[C])
    grid(1)
{
    auto t = x[0 +: 10, 0 +: 19];
    g[0 +: 10] = reduce(t, 1, gcd_like);
    auto f = (f32)t;
    auto (a, b, c) = reduce((f, f * f, broadcast(1, 10, 19)), 0, both);
    s[0 +: 19] = a;
    q[0 +: 19] = b;
    n[0 +: 19] = c;
}
""", {
        "x": small("i32", 8, 10, 19), "g": poison("i32", 10), "s": poison("f32", 19), "q": poison("f32", 19),
        "n": poison("i32", 19)
    }, lambda a: {
        "g": exact(a["x"].max(1)), "s": exact(a["x"].sum(0).astype(float)), "q": exact(
            (a["x"].astype(float)**2).sum(0)), "n": exact(np.full(19, 10))
    })

# ---- scans ----------------------------------------------------------------------------------------------------------
for k, t in enumerate(["i8", "u16", "i32", "i64", "u64"] + FLOATS):
    s = SUM.get(t, t)
    row(
        f"scan_cumsum_{t}", f"""
kernel k(const {t} x[R, C], {s} c0[R, C], {s} c1[R, C], {s} back[R, C])
    grid(1)
{{
    auto t = x[0 +: 9, 0 +: 21];
    c0[0 +: 9, 0 +: 21] = cumsum(t, axis = 0);
    c1[0 +: 9, 0 +: 21] = cumsum(t, axis = 1);
    back[0 +: 9, 0 +: 21] = cumsum(t, axis = 1, reverse = true);
}}
""", {"x": small(t, 20 + k, 9, 21), "c0": poison(s, 9, 21), "c1": poison(s, 9, 21), "back": poison(s, 9, 21)},
        lambda a, t=t:
        (lambda v: {"c0": exact(v.cumsum(0)), "c1": exact(v.cumsum(1)), "back": exact(v[:, ::-1].cumsum(1)[:, ::-1])})
        (a["x"].astype(np.float64 if is_float(t) else np.uint64 if t[0] == "u" else np.int64)))

for n in (33, 2, 7, 16, 32, 64):
    name = "scan_user_function" + ("" if n == 33 else f"_{n}")
    row(
        name, f"""
i32 later(i32 a, i32 b) {{ return b != 0 ? b : a; }}
auto affine(f32 a, f32 b, f32 c, f32 d) {{ return (a * c, b * c + d); }}

kernel k(const i32 x[R, C], i32 last[R, C], i32 first[R, C], const f32 m[R, C], const f32 p[R, C], f32 h[R, C], f32 s[R,
         C])
    grid(R)
{{
    int r = pid(0);
    last[r, 0 +: {n}] = scan(x[r, 0 +: {n}], 0, later);
    first[r, 0 +: {n}] = scan(x[r, 0 +: {n}], 0, later, reverse = true);
    auto (u, v) = scan((m[r, 0 +: {n}], p[r, 0 +: {n}]), 0, affine);
    h[r, 0 +: {n}] = v;
    s[r, 0 +: {n}] = cumsum(p[r, 0 +: {n}], 0, reverse = true);
}}
""", {
            "x": small("i32", 9, 4, n, lo=-1, hi=3), "last": poison("i32", 4, n), "first": poison(
                "i32", 4, n), "m": small("f32", 10, 4, n, lo=-1, hi=2), "p": small("f32", 11, 4, n), "h": poison(
                    "f32", 4, n), "s": poison("f32", 4, n)
        }, lambda a: scan_want(a))


def scan_want(a):
    def carry(rows):
        out = rows.copy()
        for i in range(1, rows.shape[1]):
            out[:, i] = np.where(rows[:, i] != 0, rows[:, i], out[:, i - 1])
        return out
    h = np.zeros_like(a["m"])
    for i in range(h.shape[1]):
        h[:, i] = (h[:, i - 1] * a["m"][:, i] if i else 0) + a["p"][:, i]
    return {"last": exact(carry(a["x"])), "first": exact(carry(a["x"][:, ::-1])[:, ::-1]), "h": exact(h),
            "s": exact(a["p"].astype(np.float64)[:, ::-1].cumsum(1)[:, ::-1])}


# Rows that end long before the tile: what is outside counts as often as it is there, whether or not it is as if it were
# not.
WIDE_ROW, SHORT_ROW = 512, 37
PLACE = np.arange(float(WIDE_ROW))


def padded(x, pad=0):
    return np.pad(x.astype(np.float64), ((0, 0), (0, WIDE_ROW - SHORT_ROW)), constant_values=pad)


for what, expression, of in (("sum", "sum(x[r, 0 +: 512])",
                              lambda x, w: padded(x).sum(1)), ("sum_of_pads", "sum(load(x[r, 0 +: 512], pad = -5))",
                                                               lambda x, w: padded(x, -5).sum(1)),
                             ("sum_inside", "sum(in(x[r, 0 +: 512]) ? x[r, 0 +: 512] - 1 : 0)", lambda x, w:
                              (x - 1.0).sum(1)), ("sum_of_difference", "sum(2 - x[r, 0 +: 512])", lambda x, w:
                                                  (2 - padded(x)).sum(1)),
                             ("sum_by_place", "sum(x[r, 0 +: 512] + (iota(512) > 500 ? 1.0 : 0.0))",
                              lambda x, w: padded(x).sum(1) + 11),
                             ("sum_with_longer", "sum(x[r, 0 +: 512] + w[0 +: 512])",
                              lambda x, w: padded(x).sum(1) + w.sum(dtype=np.float64)),
                             ("sum_with_longest", "sum(x[r, 0 +: 512] + w[iota(512) % 300])",
                              lambda x, w: padded(x).sum(1) + w[PLACE.astype(int) % 300].sum(dtype=np.float64)),
                             ("sum_turned", "sum(reshape(x[r, 0 +: 512], 2, 256) + w[0 +: 256])",
                              lambda x, w: padded(x).sum(1) + 2 * w[:256].sum(dtype=np.float64)),
                             ("max", "max(load(x[r, 0 +: 512], pad = -inf))",
                              lambda x, w: x.max(1)), ("max_by_place", "max(iota(512) > 500 ? 30 : x[r, 0 +: 512])",
                                                       lambda x, w: np.full(6, 30)),
                             ("min_by_place", "min(x[r, 0 +: 512] + (f32)(511 - iota(512)))", lambda x, w:
                              (padded(x) + 511 - PLACE).min(1)),
                             ("xor", "xor_sum(load(n[r, 0 +: 512], pad = 6))",
                              lambda x, w: np.full(6, 37 % 2 * 1 ^ (512 - 37) % 2 * 6)),
                             ("any", "any(n[r, 0 +: 512] == 0) ? 1 : 0",
                              lambda x, w: np.ones(6)), ("all", "all(load(n[r, 0 +: 512], pad = 3) != 0) ? 1 : 0",
                                                         lambda x, w: np.ones(6))):
    row(
        f"reduce_rows_end_before_tile_{what}",
        f"kernel k(const f32 x[R, C], const i32 n[R, C], const f32 w[D], f32 s[R])\n    grid(R)\n{{\n"
        f"    int r = pid(0);\n    s[r] = (f32)({expression});\n}}\n",
        {
            "x": small("f32", 70, 6, SHORT_ROW), "n": small("i32", 71, 6, SHORT_ROW, lo=1, hi=2), "w": small(
                "f32", 72, 300), "s": poison("f32", 6)
        }, lambda a, of=of: {"s": exact(of(a["x"], a["w"]).astype(np.float32))})

# Across the lanes: vectors side by side, arrays that end within a vector, between vectors, before the last row
for t, m, n, rows, lanes in (("f32", 7, 128, 7, 128), ("f32", 6, 77, 8, 96), ("i8", 9, 300, 9, 320),
                             ("f16", 3, 40, 4, 40), ("f64", 5, 16, 5, 16), ("i32", 1, 1, 3, 64), ("f32", 0, 64, 2, 64)):
    row(
        f"reduce_across_{t}_{m}x{n}", f"""
kernel k(const {t} x[A, M, N], const f32 w[M], {t} s[A, N], {t} most[A, N], f32 weighted[A, N])
    grid(1)
{{
    auto v = x[0 +: 2, 0 +: {rows}, 0 +: {lanes}];
    s[0 +: 2, 0 +: {lanes}] = cast(sum(v, axis = 1), {t});
    most[0 +: 2, 0 +: {lanes}] = max(v, axis = 1);
    weighted[0 +: 2, 0 +: {lanes}] = sum((f32)v * expand(col(w[0 +: {rows}]), 0), axis = 1);
}}
""", {
            "x": small(t, 90, 2, m, n), "w": small("f32", 91, m), "s": poison(t, 2, n), "most": poison(t, 2, n),
            "weighted": poison("f32", 2, n)
        }, lambda a, rows=rows, m=m: {
            "s": exact(a["x"].astype(float).sum(1)),
            "most": exact(np.pad(a["x"].astype(float), ((0, 0), (0, rows - m), (0, 0))).max(1)),
            "weighted": exact((a["x"].astype(float) * a["w"].astype(float)[None, :, None]).sum(1))
        })


# Rows of all lengths up to those of a slice: steps of several vectors, vectors that these leave, and a part of one.
ENDS, LONG = 1060, 1024


def ends_want(t):
    def want(a):
        rows = [a["x"][i * 7:i * 7 + LONG] for i in range(ENDS // 7 + 1)]
        wide = np.int32 if t == "i32" else np.float64
        return {"s": exact(np.array([r.astype(wide).sum(dtype=wide) for r in rows])),
                "most": exact(np.array([r.max() for r in rows])),
                "square": exact(np.array([(r.astype(wide) * r).sum(dtype=wide) for r in rows]))}
    return want


for t in ("f32", "i32", "f64"):
    n = ENDS // 7 + 1
    least = "-inf" if is_float(t) else "-100"
    row(f"reduce_to_any_end_{t}", f"""
kernel k(const {t} x[N], {t} s[M], {t} most[M], {t} square[M])
    grid(M)
{{
    int i = 7 * pid(0);
    auto v = x[i +: {LONG}];
    s[pid(0)] = sum(v);
    most[pid(0)] = max(load(x[i +: {LONG}], pad = {least}));
    square[pid(0)] = sum(v * v);
}}
""", {"x": small(t, 90, ENDS), "s": poison(t, n), "most": poison(t, n), "square": poison(t, n)}, ends_want(t))
