"""sort, argsort, topk, histogram: any extent and axis, every type, ties, NaN and zeros of both signs."""
import numpy as np

from rows import row
from values import (ALL, FLOATS, INTS, STORE, Arr, exact, exactly, int_range, ints, is_float, poison, random_bits,
                    small, store, wide)

SORTED = INTS + FLOATS


def order(x, axis, down=False):
    """The stable order, NaN last; NumPy's argsort turned around would not be stable."""
    if x.dtype.kind == "f":
        nan = np.isnan(x)
        key = np.where(nan, 0, -x if down else x)
        # the last key counts first: NaN or not, then the value
        keys = (np.where(nan, 0, key) + 0.0, nan)
        return np.lexsort(keys, axis=axis).astype(np.int32)
    key = x.astype(object) * (-1 if down else 1)
    return np.argsort(key, axis=axis, kind="stable").astype(np.int32)


def ties(t, seed, *shape):
    """Few different values, so that equal ones meet."""
    x = np.random.default_rng(seed).integers(0 if t[0] == "u" else -3, 4, shape)
    if not is_float(t):
        return Arr(t, store(x, t))
    v = x.astype(np.float64) / 2
    r = np.random.default_rng(seed + 1)
    v = np.where(r.random(shape) < .1, np.nan, v)
    v = np.where((v == 0) & (r.random(shape) < .5), -0.0, v)
    return Arr(t, store(np.where(r.random(shape) < .05, np.inf, v), t))


KERNEL = """
kernel k(const T x[R, C], T a[R, C], T d[R, C], i32 i[R, C], i32 j[R, C], T v[R, K], i32 w[R, K], const type T,
         const int M, const int N)
    grid(1)
{
    auto t = x[0 +: M, 0 +: N];
    a[0 +: M, 0 +: N] = sort(t, 1);
    d[0 +: M, 0 +: N] = sort(t, axis = 0, descending = true);
    i[0 +: M, 0 +: N] = argsort(t, 0);
    j[0 +: M, 0 +: N] = argsort(t, 1, true);
    auto (top, at) = topk(t, 3);
    v[0 +: M, 0 +: 3] = top;
    w[0 +: M, 0 +: 3] = at;
}
"""


def want(a):
    x = a["x"]
    take = np.take_along_axis
    first = order(x, 1, True)[:, :3]
    return {
        "a": exact(take(x, order(x, 1), 1)), "d": exact(take(x, order(x, 0, True), 0)), "i": exact(order(x, 0)),
        "j": exact(order(x, 1, True)), "v": exact(take(x, first, 1)), "w": exact(first)
    }


def sorts(name, t, x, **kw):
    m, n = x.store.shape
    row(
        name, KERNEL, {
            "x": x, "a": poison(t, m, n), "d": poison(t, m, n), "i": poison("i32", m, n), "j": poison("i32", m, n),
            "v": poison(t, m, 3), "w": poison("i32", m, 3)
        }, want, consts={"T": t, "M": m, "N": n}, **kw)


for k, t in enumerate(SORTED):
    sorts(f"order_{t}", t, ties(t, 40 + k, 7, 13))
    if not is_float(t):
        sorts(f"order_all_{t}", t, random_bits(t, 60 + k, 5, 16))
for shape in ((1, 3), (2, 4), (33, 5), (17, 31), (9, 64), (3, 127)):
    sorts(f"order_{shape[0]}x{shape[1]}", "f32", ties("f32", sum(shape), *shape))

row(
    "order_long", """
kernel k(const f32 x[N], f32 y[N], i32 i[N], const i32 z[N], i32 s[N], f32 v[K], i32 w[K])
    grid(1)
{
    auto t = x[0 +: 1500];
    y[0 +: 1500] = sort(t, 0);
    i[0 +: 1500] = argsort(t, 0);
    s[0 +: 1500] = sort(z[0 +: 1500], 0, true);
    auto (a, b) = topk(t, 10);
    v[0 +: 10] = a;
    w[0 +: 10] = b;
}
""", {
        "x": ties("f32", 5, 1500), "y": poison("f32", 1500), "i": poison("i32", 1500), "z": random_bits("i32", 6, 1500),
        "s": poison("i32", 1500), "v": poison("f32", 10), "w": poison("i32", 10)
    }, lambda a:
    (lambda o, p:
     {"y": exact(a["x"][o]), "i": exact(o), "s": exact(np.sort(a["z"])[::-1]), "v": exact(a["x"][p]), "w": exact(p)})
    (order(a["x"], 0), order(a["x"], 0, True)[:10]))

row(
    "order_extent_1_and_3_axes", """
kernel k(const f32 x[A, B, C], f32 y[A, B, C], f32 one[A, B], f32 s[A], i32 n[A])
    grid(1)
{
    auto t = x[0 +: 3, 0 +: 4, 0 +: 5];
    y[0 +: 3, 0 +: 4, 0 +: 5] = sort(t, 1);
    auto u = sort(extract(t, 0 +: 3, 0 +: 4, 2 +: 1), 2, true);
    one[0 +: 3, 0 +: 4] = squeeze(u, 2);
    auto (top, at) = topk(reshape(t, 60), 3);
    s[0 +: 3] = top;
    n[0 +: 3] = at;
}
""", {
        "x": ties("f32", 7, 3, 4, 5), "y": poison("f32", 3, 4, 5), "one": poison("f32", 3, 4), "s": poison("f32", 3),
        "n": poison("i32", 3)
    }, lambda a: (lambda f: {
        "y": exact(np.take_along_axis(a["x"], order(a["x"], 1), 1)), "one": exact(a["x"][:, :, 2]), "s": exact(a[
            "x"].reshape(-1)[f]), "n": exact(f)
    })(order(a["x"].reshape(-1), 0, True)[:3]))

# ---- with what stands beside the key --------------------------------------------------------------------------------
BESIDE = """
kernel k(const T x[R, C], const bool p[R, C], const f64 q[C], T a[R, C], bool b[R, C], f64 c[R, C], i32 d[R, C],
         T e[R, C], u8 f[R, C], T top[R, K], f64 tq[R, K], bool tp[R, K], const type T, const int M, const int N)
    grid(1)
{
    auto t = x[0 +: M, 0 +: N];
    auto u = p[0 +: M, 0 +: N];
    auto w = q[0 +: N];
    auto (ta, tb, tc, td) = sort((t, u, w, iota(N)), 1);
    a[0 +: M, 0 +: N] = ta;
    b[0 +: M, 0 +: N] = tb;
    c[0 +: M, 0 +: N] = tc;
    d[0 +: M, 0 +: N] = td;
    auto (te, tf) = sort((t, (u8)u), axis = 0, descending = true);
    e[0 +: M, 0 +: N] = te;
    f[0 +: M, 0 +: N] = tf;
    auto (k0, k1, k2) = topk((t, w, u), 3);
    top[0 +: M, 0 +: 3] = k0;
    tq[0 +: M, 0 +: 3] = k1;
    tp[0 +: M, 0 +: 3] = k2;
}
"""


def beside_want(a):
    x, p, take = a["x"], a["p"], np.take_along_axis
    q = np.broadcast_to(a["q"], x.shape)
    o, down = order(x, 1), order(x, 0, True)
    first = order(x, 1, True)[:, :3]
    return {"a": exact(take(x, o, 1)), "b": exact(take(p, o, 1)), "c": exact(take(q, o, 1)), "d": exact(o),
            "e": exact(take(x, down, 0)), "f": exact(take(p, down, 0)), "top": exact(take(x, first, 1)),
            "tq": exact(take(q, first, 1)), "tp": exact(take(p, first, 1))}


def beside(name, t, x):
    m, n = x.store.shape
    args = {"x": x, "p": random_bits("bool", m, m, n), "q": Arr("f64", np.arange(n) / 4 - 1)}
    args |= {v: poison(u, m, n) for v, u in zip("abcdef", (t, "bool", "f64", "i32", t, "u8"))}
    args |= {"top": poison(t, m, 3), "tq": poison("f64", m, 3), "tp": poison("bool", m, 3)}
    row(name, BESIDE, args, beside_want,
        consts={"T": t, "M": m, "N": n})


for k, t in enumerate(SORTED):
    beside(f"order_beside_{t}", t, ties(t, 140 + k, 6, 11))
for shape in ((1, 3), (9, 64), (17, 33)):
    beside(f"order_beside_{shape[0]}x{shape[1]}", "f32", ties("f32", sum(shape), *shape))

row("order_beside_long_extent_1_and_f8", """
kernel k(const u16 x[N], u16 y[N], i32 i[N], const f8e4m3 q[N], f8e4m3 p[N], f32 one[4], i32 at[4])
    grid(1)
{
    auto (s, n, w) = sort((x[0 +: 1500], iota(1500), q[0 +: 1500]), 0);
    y[0 +: 1500] = s;
    i[0 +: 1500] = n;
    p[0 +: 1500] = w;
    auto v = expand((f32)x[0 +: 4], 1);
    auto (a, b) = sort((v, expand(iota(4), 1)), 1, true);
    one[0 +: 4] = squeeze(a, 1);
    auto (c, d) = topk((v, expand(iota(4), 1) + 5), 1);
    at[0 +: 4] = squeeze(d, 1);
}
""", {"x": ints("u16", 8, 0, 300, 1500), "y": poison("u16", 1500), "i": poison("i32", 1500),
      "q": small("f8e4m3", 9, 1500), "p": poison("f8e4m3", 1500), "one": poison("f32", 4), "at": poison("i32", 4)},
    lambda a: (lambda o: {"y": exact(a["x"][o]), "i": exact(o), "p": exact(a["q"][o]),
                          "one": exact(a["x"][:4].astype(float)), "at": exact([5, 6, 7, 8])})(order(a["x"], 0)))

# ---- histogram ------------------------------------------------------------------------------------------------------
for k, t in enumerate(INTS):
    row(
        f"histogram_{t}", f"""
kernel k(const {t} x[N], i32 h[B], i32 m[B], i32 all[C], i32 one[1])
    grid(1)
{{
    auto v = x[0 +: 777];
    h[0 +: 19] = histogram(v, 19);
    m[0 +: 19] = histogram(v, 19, mask = iota(777) % 3 == 1);
    all[0 +: 300] = histogram(v, bins = 300);
    one[0 +: 1] = histogram(reshape(v, 37, 21), 1);
}}
""", {
            "x": Arr(t,
                     np.where(np.arange(777) % 2,
                              ints(t, 80 + k, 0, 24, 777).store,
                              random_bits(t, 90 + k, 777).store)), "h": poison("i32", 19), "m": poison("i32", 19),
            "all": poison("i32", 300), "one": poison("i32", 1)
        }, lambda a: (lambda x: {
            n: exact(counts(v, b))
            for n, v, b in (("h", x, 19), ("m", [v for i, v in enumerate(x) if i % 3 == 1], 19), ("all", x, 300),
                            ("one", x, 1))
        })([int(v) for v in a["x"]]))


def counts(x, bins):
    return np.bincount([v for v in x if 0 <= v < bins], minlength=bins).astype(np.int32)


row(
    "histogram_wide_values_and_rounds", """
kernel k(const i64 x[N], const u32 y[N], i32 h[B], i32 u[B], i32 big[C], i32 s[4])
    grid(1)
{
    h[0 +: 7] = histogram(x[0 +: 64], 7);
    u[0 +: 7] = histogram(y[0 +: 64], 7);
    big[0 +: 100] = histogram(iota(9001) % 101, 100);
    s[0 +: 4] = histogram(3, 4);
}
""", {
        "x": Arr(
            "i64",
            np.random.default_rng(1).choice(np.array(
                [0, 6, 7, -1, 2**32, 2**32 + 3, -2**32 + 3, -2**63, -2**40 + 1]), 64)), "y": Arr(
                    "u32",
                    np.random.default_rng(2).choice(np.array([0, 6, 7, 2**31, 2**32 - 1, 2**31 + 3], np.uint32), 64)),
        "h": poison("i32", 7), "u": poison("i32", 7), "big": poison("i32", 100), "s": poison("i32", 4)
    }, lambda a: {
        "h": exact(counts([int(v) for v in a["x"]], 7)), "u": exact(counts([int(v) for v in a["y"]], 7)), "big": exact(
            counts(np.arange(9001) % 101, 100)), "s": exact([0, 0, 0, 1])
    })

# Tables of more than 32 KiB, of which a round takes a part: 20000 bins, three rounds; weights too
row("histogram_of_many_bins", """
kernel k(const i32 x[N], const i32 w[N], i32 h[B], i32 s[B])
    grid(1)
{
    h[0 +: 20000] = histogram(x[0 +: 1001], 20000);
    s[0 +: 20000] = histogram(x[0 +: 1001], 20000, weights = w[0 +: 1001], mask = iota(1001) % 5 != 2);
}
""", {"x": ints("i32", 7, -3, 20010, 1001), "w": random_bits("i32", 8, 1001), "h": poison("i32", 20000),
      "s": poison("i32", 20000)},
lambda a: (lambda x, w, some: {"h": exact(counts(x, 20000)), "s": exact(weighed(x[some], w[some], 20000, "i32"))})(
    a["x"], a["w"], np.arange(1001) % 5 != 2))

# ---- weights --------------------------------------------------------------------------------------------------------
SUM = {"bool": "i32", "i8": "i32", "i16": "i32", "u8": "u32", "u16": "u32"}
WEIGHED = """
kernel k(const i32 x[R, C], const T w[R, C], S h[B], S m[B], S all[C2], S one[1], const type T, const type S,
         const int M, const int N)
    grid(1)
{
    auto v = x[0 +: M, 0 +: N];
    auto u = w[0 +: M, 0 +: N];
    h[0 +: 19] = histogram(v, 19, weights = u);
    m[0 +: 19] = histogram(v, bins = 19, weights = u, mask = v % 3 != 1);
    all[0 +: 150] = histogram(reshape(v, M * N), 150, weights = reshape(u, M * N));
    one[0 +: 1] = histogram(v, 1, weights = u);
}
"""


def weighed(x, w, bins, t):
    """Exact, then as the sum's type wraps."""
    keep = (x >= 0) & (x < bins)
    kind = float if is_float(t) else np.uint64 if t[0] == "u" else np.int64
    out = np.zeros(bins, kind)
    np.add.at(out, x[keep], w[keep].astype(kind))
    return out if is_float(t) else out.astype(STORE[SUM.get(t, t)])


def weights(name, t, m, n, **kw):
    s = SUM.get(t, t)
    x = np.random.default_rng(m * n).integers(-3, 24, (m, n)).astype(np.int32)
    w = small(t, 5, m, n) if is_float(t) or t == "bool" else random_bits(t, 5, m, n)
    row(name, WEIGHED, {"x": Arr("i32", x), "w": w, "h": poison(s, 19), "m": poison(s, 19), "all": poison(s, 150),
                        "one": poison(s, 1)},
        lambda a: weights_want(a["x"].reshape(-1), a["w"].reshape(-1), t),
        consts={"T": t, "S": s, "M": m, "N": n}, **kw)


def weights_want(x, w, t):
    some = x % 3 != 1
    return {"h": exact(weighed(x, w, 19, t)), "m": exact(weighed(x[some], w[some], 19, t)),
            "all": exact(weighed(x, w, 150, t)), "one": exact(weighed(x, w, 1, t))}


for k, t in enumerate(ALL):
    weights(f"histogram_weights_{t}", t, 9, 37)
for m, n in ((1, 1), (1, 7), (64, 3), (16, 16), (50, 181)):
    weights(f"histogram_weights_f32_{m}x{n}", "f32", m, n)
    weights(f"histogram_weights_i64_{m}x{n}", "i64", m, n)

row("histogram_weights_of_scalars_and_columns", """
kernel k(const u8 x[R, C], const f32 w[R], f32 h[8], i32 n[8], f32 s[4], f32 one[4])
    grid(1)
{
    auto v = x[0 +: 12, 0 +: 10];
    h[0 +: 8] = histogram(v, 8, weights = col(w[0 +: 12]));
    n[0 +: 8] = histogram(v, 8, weights = 3);
    s[0 +: 4] = histogram(2, 4, weights = 1.5);
    one[0 +: 4] = histogram((i64)2, 4, weights = w[1]);
}
""", {"x": ints("u8", 3, 0, 10, 12, 10), "w": small("f32", 4, 12), "h": poison("f32", 8), "n": poison("i32", 8),
      "s": poison("f32", 4), "one": poison("f32", 4)},
    lambda a: {"h": exact(np.bincount(a["x"].reshape(-1), np.repeat(a["w"], 10), 10)[:8]),
               "n": exact(3 * np.bincount(a["x"].reshape(-1), minlength=10)[:8]), "s": exact([0, 0, 1.5, 0]),
               "one": exact([0, 0, a["w"][1], 0])})

# Few of many are taken one by one: nothing but NaN, -inf beside NaN, the least integers, all equal; from all columns.
def worst(t, seed, r, n):
    x = ties(t, seed, r, n)
    v = wide(x)
    lo = -np.inf if is_float(t) else int_range(t)[0]
    v = v.astype(np.float64 if is_float(t) else object)
    for i in range(min(r, 4)):
        v[i] = (np.nan if is_float(t) else lo, lo, 0, 1)[i]
        v[i, ::3] = (np.nan if is_float(t) else lo, np.nan if is_float(t) else lo, -0.0 if is_float(t) else 0, lo)[i]
    return Arr(t, store(v, t))


def most(a, k):
    at = order(a["x"], 1, True)[:, :k]
    take = np.take_along_axis
    return {"v": exact(take(a["x"], at, 1)), "w": exact(at), "u": exact(take(a["z"], at, 1))}


for i, t in enumerate(SORTED):
    for n, k in ((2, 1), (7, 4), (33, 8), (64, 21), (64, 22))[i % 3::2] + ((130, 2),):
        r = (5, 1, 6)[i % 3]
        row(
            f"order_greatest_{t}_{n}_{k}", f"""
kernel k(const {t} x[R, C], const i32 z[R, C], {t} v[R, {k}], i32 w[R, {k}], i32 u[R, {k}])
    grid(1)
{{
    auto t = x[0 +: {r}, 0 +: {n}];
    auto (top, at) = topk(t, {k});
    v[0 +: {r}, 0 +: {k}] = top;
    w[0 +: {r}, 0 +: {k}] = at;
    auto (same, beside) = topk((t, z[0 +: {r}, 0 +: {n}]), {k});
    u[0 +: {r}, 0 +: {k}] = beside;
}}
""", {"x": worst(t, 40 + i, r, n), "z": random_bits("i32", 41 + i, r, n), "v": poison(t, r, k),
      "w": poison("i32", r, k), "u": poison("i32", r, k)}, lambda a, k=k: most(a, k))
