"""The library along an axis: std.reduce, softmax, norm, loss of rows, order. Odd extents, extent 1, rows that do not
fill
their tile, NaN and infinities, f16, bf16 and f32. Bounds are those of the `///` lines, over the sums in any order."""
import numpy as np

from rows import row
from rows_stdlib import HALF, U, WARPS, near
from values import Arr, exact, exactly, ints, normal, poison, rng, spacing, store, within

F64 = np.float64
# extents of the array, of the tile, type
SHAPES = [((7, 45), (8, 48), "f32"), ((5, 33), (5, 33), "f16"), ((6, 70), (9, 128), "bf16"), ((1, 1), (1, 1), "f32"),
          ((3, 1), (4, 3), "f16"), ((1, 19), (1, 64), "f32"), ((3, 21), (4, 32), "f64")]


def wild(t, seed, shape, scale=3.0):
    """Rows with a NaN, an infinity, both, nothing but zeros; plain ones."""
    x = rng(seed).normal(0, scale, shape)
    if shape[0] > 4 and shape[1] > 4:
        x[1, 3], x[2, 4], x[3] = np.nan, np.inf, 0
        x[4, 0], x[4, 1] = -np.inf, np.nan
    return Arr(t, store(x, t))


def of(a, *names):
    return [a[n].astype(F64) for n in names]


def kept(v, axis=1):
    return np.expand_dims(v, axis)


# ---- reduce ---------------------------------------------------------------------------------------------------------
def norm2(x, axis):
    m = np.nanmax(np.where(np.isfinite(x), np.abs(x), 0), axis, keepdims=True)
    m = np.where(m == 0, 1, m)
    return np.sqrt(np.sum((x / m) ** 2, axis)) * np.squeeze(m, axis)


def reduce_want(a, t, correction=1.0):
    (x,) = of(a, "x")
    with np.errstate(all="ignore"):
        n, size = x.shape[1], np.where(np.isfinite(x), np.abs(x), 0).mean(1)
        mean, var = x.mean(1), x.var(1) * n / (n - correction)
        var = np.where(np.isnan(x.var(1)), np.nan, var)
        slack = lambda v, k: np.where(np.isfinite(v), k * 2 * U * np.abs(v), 0)
        top, low = np.max(x, 0), np.min(x, 0)
        return {
            "mean": near(mean, (n + 3) * 2 * U * size, t), "var": near(var,
                                                                       slack(var, n + 5) + (n * 2 * U * size)**2, t),
            "l1": near(np.abs(x).sum(1), slack(np.abs(x).sum(1), n), t), "l2": near(norm2(x, 1),
                                                                                    slack(norm2(x, 1), n / 2 + 6), t),
            "most": exact(np.abs(x).max(1)), "kept": near(mean, (n + 3) * 2 * U * size,
                                                          t), "down": near(norm2(x, 0),
                                                                           slack(norm2(x, 0), x.shape[0] / 2 + 6),
                                                                           t), "top": exact(top), "low": exact(low)
        }


for k, (shape, tile, t) in enumerate(SHAPES):
    (m, n), (bm, bn) = shape, tile
    whole = shape == tile
    # a row of nothing but 0 in the tile does not disturb max and min along axis 0 where the tile is the array
    row(
        f"std_reduce_{t}_{m}x{n}_in_{bm}x{bn}", f"""
import std.reduce;

kernel k(const {t} x[M, N], {t} mean[M], {t} var[M], {t} l1[M], {t} l2[M], {t} most[M], {t} kept[M], {t} down[N],
         {t} top[N], {t} low[N])
    grid(1)
{{
    auto v = x[0 +: {bm}, 0 +: {bn}];
    auto inside = in(x[0 +: {bm}, 0 +: {bn}]);
    mean[0 +: {bm}] = reduce.mean(v, inside, 1);
    var[0 +: {bm}] = reduce.variance(v, inside, 1.0, axis = 1);
    l1[0 +: {bm}] = reduce.l1_norm(v, {'true' if whole else 'inside'}, 1);
    l2[0 +: {bm}] = reduce.l2_norm(v, inside, 1);
    most[0 +: {bm}] = reduce.inf_norm(v, inside, 1);
    kept[0 +: {bm}] = squeeze(reduce.mean(v, row(iota({bn})) < N, 1, keep = true), 1);
    down[0 +: {bn}] = squeeze(reduce.l2_norm(v, inside, 0, true), 0);
    most[0 +: {bm}] = squeeze(reduce.inf_norm(v, inside, 1, true), 1);
    top[0 +: {bn}] = reduce.maximum(load(x[0 +: {bm}, 0 +: {bn}], pad = -inf), 0);
    low[0 +: {bn}] = reduce.minimum(load(x[0 +: {bm}, 0 +: {bn}], pad = inf), axis = 0);
}}
""", {
            "x": wild(t, 50 + k, shape), **{o: poison(t, m)
                                            for o in ("mean", "var", "l1", "l2", "most", "kept")},
            **{o: poison(t, n)
               for o in ("down", "top", "low")}
        }, lambda a, t=t: reduce_want(a, t), same_bits=False, warps=WARPS[k % 4], stages=2)

TINY, HUGE = 2.0**-140, 1.5 * 2.0**126
row(
    "std_reduce_l2_norm_of_extremes", """
import std.reduce;

kernel k(const f32 x[M, N], f32 y[M])
    grid(1)
{
    y[0 +: 6] = reduce.l2_norm(x[0 +: 6, 0 +: 5], true, 1);
}
""", {
        "x": exactly(
            "f32",
            np.array([[TINY] * 5, [HUGE, HUGE, 0, 0, 1], [HUGE] * 5, [0] * 5, [3e-30, 4e-30, 0, 0, 0],
                      [-np.inf, 1, 2, 3, 4]])), "y": poison("f32", 6)
    }, lambda a: (lambda v: {"y": within(v, np.where(np.isfinite(v), 9 * spacing(v, "f32"), 0))})
    (norm2(a["x"].astype(F64), 1)), warps=4, stages=1)
for t in ("f32", "f64"):
    row(
        f"std_reduce_errors_{t}", f"""
import std.reduce;

kernel k(const {t} x[M, N], const {t} y[M, N], {t} s[M, N], {t} e[M, N], {t} p[M, N], {t} q[M, N], {t} high[N],
         {t} low[N])
    grid(1)
{{
    auto (a, b) = reduce.two_sum(x[0 +: 40, 0 +: 7], y[0 +: 40, 0 +: 7]);
    s[0 +: 40, 0 +: 7] = a;
    e[0 +: 40, 0 +: 7] = b;
    auto (c, d) = reduce.two_product(x[0 +: 40, 0 +: 7], y[0 +: 40, 0 +: 7]);
    p[0 +: 40, 0 +: 7] = c;
    q[0 +: 40, 0 +: 7] = d;
    tile<{t}, 7> sum_;
    tile<{t}, 7> rest;
    for (int i : range(M))
        (sum_, rest) = reduce.compensated_add(sum_, rest, x[i, 0 +: 7]);
    high[0 +: 7] = sum_ + rest;
    low[0 +: 7] = rest;
}}
""", {
            **{
                n: Arr(t, (rng(60 + k).normal(0, 1, (40, 7)) * 10.0**rng(62 + k).integers(-6, 7, (40, 7)))
                        .astype(np.float32 if t == "f32" else F64))
                for k, n in enumerate("xy")
            }, **{n: poison(t, 40, 7)
                  for n in "sepq"}, "high": poison(t, 7), "low": poison(t, 7)
        }, lambda a, t=t: errors_want(a, t), warps=2, stages=1)


def errors_want(a, t):
    from fractions import Fraction
    native = a["x"].dtype.type
    x, y = a["x"], a["y"]
    s, p = x + y, x * y
    exactly_ = np.vectorize(lambda u, v, w: float(Fraction(float(u)) + Fraction(float(v)) - Fraction(float(w))))
    product = np.vectorize(lambda u, v, w: float(Fraction(float(u)) * Fraction(float(v)) - Fraction(float(w))))
    total = np.array([float(sum(Fraction(float(v)) for v in x[:, j])) for j in range(x.shape[1])])
    size = np.abs(x.astype(F64)).sum(0)
    u = np.finfo(native).eps / 2
    return {
        "s": exact(s), "e": exact(exactly_(x, y, s).astype(native)), "p": exact(p),
        "q": exact(product(x, y, p).astype(native)), "high": within(total, 2 * spacing(total, t) + 40**2 * u * u * size)
    }


row(
    "std_reduce_recurrences", """
import std.reduce;

kernel k(const f32 a[M, N], const f32 b[M, N], f32 p[M, N], f32 h[M, N], f32 down[M, N], const bool first[M, N],
         const i32 c[M, N], i32 s[M, N], f32 t[M, N], f32 one[1])
    grid(1)
{
    auto (q, g) = reduce.linear_recurrence(a[0 +: 5, 0 +: 37], b[0 +: 5, 0 +: 37], 1);
    p[0 +: 5, 0 +: 37] = q;
    h[0 +: 5, 0 +: 37] = g;
    auto (r, d) = reduce.linear_recurrence(a[0 +: 5, 0 +: 37], b[0 +: 5, 0 +: 37], axis = 0);
    down[0 +: 5, 0 +: 37] = d;
    s[0 +: 5, 0 +: 37] = reduce.segmented_sum(c[0 +: 5, 0 +: 37], first[0 +: 5, 0 +: 37], 1);
    t[0 +: 5, 0 +: 37] = reduce.segmented_sum((f32)c[0 +: 5, 0 +: 37], first[0 +: 5, 0 +: 37], 0);
    auto (u, w) = reduce.linear_recurrence(a[0 +: 1, 0], b[0 +: 1, 0], 0);
    one[0 +: 1] = w;
}
""", {
        "a": exactly("f32",
                     rng(70).choice([1, -1, 0.5, 2], (5, 37))), "b": ints("f32", 71, -3, 4, 5, 37), "p": poison(
                         "f32", 5, 37), "h": poison("f32", 5, 37), "down": poison("f32", 5, 37), "first": Arr(
                             "bool",
                             rng(72).random((5, 37)) < 0.2), "c": ints("i32", 73, -9, 10, 5, 37), "s": poison(
                                 "i32", 5, 37), "t": poison("f32", 5, 37), "one": poison("f32", 1)
    }, lambda a: recurrences(a), same_bits=False, warps=8, stages=2)


def recurrences(a):
    A, B, F, C = a["a"].astype(F64), a["b"].astype(F64), a["first"], a["c"].astype(F64)
    h, size, down, s, t = (np.zeros(A.shape) for _ in range(5))
    for i in range(A.shape[1]):
        h[:, i] = (A[:, i] * h[:, i - 1] if i else 0) + B[:, i]
        size[:, i] = (np.abs(A[:, i]) * size[:, i - 1] if i else 0) + np.abs(B[:, i])
        s[:, i] = (np.where(F[:, i], 0, s[:, i - 1]) if i else 0) + C[:, i]
    for i in range(A.shape[0]):
        down[i] = (A[i] * down[i - 1] if i else 0) + B[i]
        t[i] = (np.where(F[i], 0, t[i - 1]) if i else 0) + C[i]
    return {
        "p": exact(np.cumprod(A, 1)), "h": within(h, 40 * U * size), "down": exact(down),
        "s": exact(s.astype(np.int32)), "t": exact(t), "one": exact(B[0, :1])
    }


# ---- softmax --------------------------------------------------------------------------------------------------------
def softmax_parts(x, axis=1):
    m = np.where(np.isnan(x), -np.inf, x).max(axis, keepdims=True)
    d = x - np.where(m == -np.inf, 0, m)
    e = np.exp(d)
    return m, d, e, e.sum(axis, keepdims=True)


def softmax_want(a, t):
    (x,) = of(a, "x")
    with np.errstate(all="ignore"):
        m, d, e, total = softmax_parts(x)
        p, n = e / np.where(total == 0, 1, total), x.shape[1]
        far = np.where(np.isfinite(d), np.abs(d), 0)
        lse = np.where(m == -np.inf, 0, m) + np.log(total)
        some = np.where(np.isfinite(m), np.abs(m), 0)
        log_p = d - np.log(total)
        q = softmax_parts(x.T, 0)
        return {
            "p": near(p,
                      np.where(np.isnan(p), 0, p) * (n + far + 16) * U + spacing(p, "f32"), t),
            "l": near(log_p, (n + 16 + 2 * far) * U, t), "s": near(lse[:, 0], (n + 16 + 2 * some[:, 0]) * U, t),
            "q": near(p.T,
                      np.where(np.isnan(p), 0, p).T * (n + far.T + 16) * U + spacing(p.T, "f32"), t)
        }


for k, (shape, tile, t) in enumerate(SHAPES):
    (m, n), (bm, bn) = shape, tile
    x = wild(t, 80 + k, shape, 20)
    if m > 5:
        x.store[5] = store(-np.inf, t)
        x.store[0, 7:] = store(-np.inf, t)
    row(
        f"std_softmax_{t}_{m}x{n}_in_{bm}x{bn}", f"""
import std.softmax;

kernel k(const {t} x[M, N], {t} p[M, N], {t} l[M, N], {t} s[M], {t} q[N, M])
    grid(1)
{{
    auto v = load(x[0 +: {bm}, 0 +: {bn}], pad = -inf);
    p[0 +: {bm}, 0 +: {bn}] = softmax.softmax(v, 1);
    l[0 +: {bm}, 0 +: {bn}] = softmax.log_softmax(v, axis = 1);
    s[0 +: {bm}] = softmax.log_sum_exp(v, 1);
    q[0 +: {bn}, 0 +: {bm}] = softmax.softmax(trans(v), axis = 0);
}}
""", {"x": x, "p": poison(t, m, n), "l": poison(t, m, n), "s": poison(t, m), "q": poison(t, n, m)},
        lambda a, t=t: softmax_want(a, t), same_bits=False, warps=WARPS[k % 4], stages=2)

ONLINE = """
import std.softmax;

/// A row in parts of 16; two halves apart, joined at the end. y is the mean of v by the weights.
kernel k(const f32 x[M, N], const f32 v[N, D], f32 m[M], f32 l[M], f32 lse[M], f32 y[M, D], f32 z[M, D])
    grid(1)
{
    tile<f32, %(m)d> top = -inf;
    tile<f32, %(m)d> total;
    tile<f32, %(m)d, %(d)d> acc;
    for (int i : range(0, 32, 16)) {
        auto (next, sum_, scale, p) = softmax.online(top, total, load(x[0 +: %(m)d, i +: 16], pad = -inf));
        acc = dot(p, v[i +: 16, 0 +: %(d)d], acc * col(scale));
        top = next;
        total = sum_;
    }
    tile<f32, %(m)d> top2 = -inf;
    tile<f32, %(m)d> total2;
    tile<f32, %(m)d, %(d)d> acc2;
    for (int i : range(32, N, 16)) {
        auto (next, sum_, scale, p) = softmax.online(top2, total2, load(x[0 +: %(m)d, i +: 16], pad = -inf));
        acc2 = dot(p, v[i +: 16, 0 +: %(d)d], acc2 * col(scale));
        top2 = next;
        total2 = sum_;
    }
    auto (all, of_all, a, b) = softmax.online_join(top, total, top2, total2);
    m[0 +: %(m)d] = all;
    l[0 +: %(m)d] = of_all;
    lse[0 +: %(m)d] = softmax.online_lse(all, of_all);
    y[0 +: %(m)d, 0 +: %(d)d] = softmax.online_result(acc * col(a) + acc2 * col(b), of_all);

    tile<f32, %(m)d> top3 = -inf;
    tile<f32, %(m)d> total3;
    tile<f32, %(m)d, %(d)d> acc3;
    for (int i : range(0, N, 16)) {
        auto scores = load(x[0 +: %(m)d, i +: 16], pad = -inf) * 1.44269504;
        auto (next, sum_, scale, p) = softmax.online_base2(top3, total3, scores);
        acc3 = dot(p, v[i +: 16, 0 +: %(d)d], acc3 * col(scale));
        top3 = next;
        total3 = sum_;
    }
    z[0 +: %(m)d, 0 +: %(d)d] = softmax.online_result(acc3, total3);
}
"""
x = rng(90).normal(0, 30, (7, 45))
x[1, :32], x[2, 32:], x[3], x[4, 5] = -np.inf, -np.inf, -np.inf, 1000
x[5] /= 30  # both halves count, each once with the greatest
x[6] = x[5, ::-1]


def online_want(a):
    x, v = of(a, "x", "v")
    with np.errstate(all="ignore"):
        m, d, e, total = softmax_parts(x)
        w = e / np.where(total == 0, 1, total)
        far = np.where(np.isfinite(d), np.abs(d), 0)
        slack = (w * (60 + 2 * far)) @ np.abs(v) * U * 4 + 1e-30
        base2 = slack + (w @ np.abs(v)) * (np.where(np.isfinite(x), np.abs(x), 0).max() * 8 * U)
        lse = np.where(m == -np.inf, 0, m) + np.log(total)
        return {
            "m": exact(m[:, 0]), "l": within(total[:, 0], 200 * U * total[:, 0]),
            "lse": within(lse[:, 0], np.where(np.isfinite(m[:, 0]), (70 + np.abs(m[:, 0])) * U,
                                              0)), "y": within(w @ v, slack), "z": within(w @ v, base2)
        }


row("std_softmax_online", ONLINE % {"m": 7, "d": 5}, {
    "x": Arr("f32", x.astype(np.float32)), "v": normal("f32", 91, 45, 5), "m": poison("f32", 7), "l": poison("f32", 7),
    "lse": poison("f32", 7), "y": poison("f32", 7, 5), "z": poison("f32", 7, 5)
}, online_want, same_bits=False, warps=4, stages=2)
row("std_softmax_online_extent_1", ONLINE % {"m": 1, "d": 1}, {
    "x": normal("f32", 92, 1, 1), "v": normal("f32", 93, 1, 1), "m": poison("f32", 1), "l": poison("f32", 1),
    "lse": poison("f32", 1), "y": poison("f32", 1, 1), "z": poison("f32", 1, 1)
}, online_want, same_bits=False, warps=1, stages=1)


# ---- norm -----------------------------------------------------------------------------------------------------------
def norm_want(a, t):
    (x,) = of(a, "x")
    with np.errstate(all="ignore"):
        n, size = x.shape[1], np.where(np.isfinite(x), np.abs(x), 0).mean(1, keepdims=True)
        mean, var = x.mean(1, keepdims=True), x.var(1, keepdims=True)
        d_mean = (n + 2) * 2 * U * size
        d_var = np.where(np.isfinite(var), (n + 4) * 2 * U * var, 0) + d_mean**2
        root = np.sqrt(var + 0.5)
        d_layer = d_mean / root + np.where(np.isfinite(x - mean), np.abs(x - mean), 0) / root * (d_var /
                                                                                                 (var + 0.5) + 6 * U)
        square = (x * x).mean(1, keepdims=True)
        rms = x / np.sqrt(square + 0.5)
        rms[~np.isfinite(square[:, 0])] = np.nan
        finite = np.isfinite(rms)
        return {
            "mean": within(mean, d_mean), "var": within(var, d_var), "layer": within(
                (x - mean) / root, np.where(np.isfinite(d_layer), d_layer,
                                            0)), "rms": within(rms, np.where(finite,
                                                                             np.abs(rms) * (n + 10) * U, 0)),
            "n": exact(np.full(x.shape[0], float(n))), "mean2": within(mean[:, 0], 4 * d_mean[:, 0]),
            "m2": within(var[:, 0] * n,
                         n * (4 * d_var[:, 0] + (8 * d_mean[:, 0])**2 + 40 * U * np.nan_to_num(var[:, 0]))),
            "mean3": within(mean[:, 0], 8 * n * d_mean[:, 0]),
            "m3": within(var[:, 0] * n,
                         n * n * (d_var[:, 0] + 40 * U * np.nan_to_num(var[:, 0]) + (8 * d_mean[:, 0])**2))
        }


for k, (shape, tile, t) in enumerate(SHAPES):
    (m, n), (bm, bn) = shape, tile
    x = wild(t, 100 + k, shape)
    if m > 4 and n > 4:  # rms_norm of infinity is inf * 0
        x.store[2, 4] = store(np.nan, t)
    whole = shape == tile
    row(
        f"std_norm_{t}_{m}x{n}_in_{bm}x{bn}", f"""
import std.norm;

kernel k(const {t} x[M, N], f32 mean[M, 1], f32 var[M, 1], f32 layer[M, N], f32 rms[M, N], f32 n[M], f32 mean2[M],
         f32 m2[M], f32 mean3[M], f32 m3[M])
    grid(1)
{{
    auto v = x[0 +: {bm}, 0 +: {bn}];
    auto inside = in(x[0 +: {bm}, 0 +: {bn}]);
    auto (average, variance) = norm.moments(v, {'true' if whole else 'inside'}, (f32)N, 1);
    mean[0 +: {bm}, 0 +: 1] = average;
    var[0 +: {bm}, 0 +: 1] = variance;
    layer[0 +: {bm}, 0 +: {bn}] = norm.layer_norm(v, inside, (f32)N, 0.5, axis = 1);
    rms[0 +: {bm}, 0 +: {bn}] = norm.rms_norm(v, inside, (f32)N, 0.5, 1);
    tile<f32, {bm}> count;
    tile<f32, {bm}> average2;
    tile<f32, {bm}> squares;
    for (int i : range(0, N, 8)) {{
        auto (cp, ap, sp) = norm.welford_part(x[0 +: {bm}, i +: 8], in(x[0 +: {bm}, i +: 8]), 1);
        (count, average2, squares) = norm.welford_combine(count, average2, squares, cp, ap, sp);
    }}
    n[0 +: {bm}] = count;
    mean2[0 +: {bm}] = average2;
    m2[0 +: {bm}] = squares;
    tile<f32, {bm}> zero;
    count = zero;
    average2 = zero;
    squares = zero;
    for (int i : range({bn}))
        (count, average2, squares) = norm.welford_add(count, average2, squares, (f32)x[0 +: {bm}, i], in(x[0 +: {bm},
                i]));
    mean3[0 +: {bm}] = average2;
    m3[0 +: {bm}] = squares;
}}
""", {
            "x": x, "mean": poison("f32", m, 1), "var": poison("f32", m, 1), "layer": poison("f32", m, n),
            "rms": poison("f32", m, n), **{o: poison("f32", m)
                                           for o in ("n", "mean2", "m2", "mean3", "m3")}
        }, lambda a, t=t: norm_want(a, t), same_bits=False, warps=WARPS[k % 4], stages=2)


# ---- losses of rows -------------------------------------------------------------------------------------------------
IGNORE = -100


def cross_entropy(x, target, classes, e, ignore):
    v = x[:, :classes]
    m = v.max(1, keepdims=True)
    below = m - v
    log_total = np.log(np.exp(-below).sum(1))
    known = (target >= 0) & (target < classes)
    one = np.take_along_axis(below, np.where(known, target, 0)[:, None].astype(int), 1)[:, 0]
    loss = log_total + (1 - e) * one + (e * below.mean(1) if e else 0)
    slack = (classes + 8) * U + 4 * U * (np.where(np.isfinite(one), one, 0) + (below.mean(1) * classes if e else 0))
    loss = np.where(target == ignore, 0, np.where(known, loss, np.nan))
    p = np.exp(-below) / np.exp(-below).sum(1, keepdims=True)
    grad = p - (1 - e) * (np.arange(classes) == target[:, None]) - e / classes
    grad = np.where((target == ignore)[:, None], 0, np.where(known[:, None], grad, np.nan))
    return loss, slack, np.pad(grad, ((0, 0), (0, x.shape[1] - classes)))


def loss_want(a, e):
    (x,) = of(a, "x")
    with np.errstate(all="ignore"):
        loss, slack, grad = cross_entropy(x, a["t"].astype(np.int64), a["classes"], e, IGNORE)
        return {
            "loss": within(loss, np.where(np.isfinite(loss), slack, 0)),
            "grad": within(grad, np.where(np.isfinite(grad), 2.0**-20 + a["classes"] * U, 0))
        }


CASES = [("f32", 9, 45, 41, 64, "i32"), ("f16", 7, 33, 33, 33, "i64"), ("bf16", 5, 70, 64, 128, "i32"),
         ("f32", 1, 1, 1, 1, "u8"), ("f64", 5, 21, 20, 32, "i32")]
for k, (t, m, n, classes, bn, label) in enumerate(CASES):
    wide = "f64" if t == "f64" else "f32"
    for e in (0.0, 0.125):
        target = rng(110 + k).integers(0, classes, m)
        x = rng(120 + k).normal(0, 8, (m, n))
        if m > 4:
            target[2], target[3] = (IGNORE if label != "u8" else 0), classes  # ignored, no class
            if e == 0:  # a class that is ruled out, its own or another
                x[0, target[0]], x[1, (target[1] + 1) % classes] = -np.inf, -np.inf
            x[:, classes:] = np.nan
            x[4, 2] = np.nan
            x[0] *= 20
        row(
            f"std_loss_cross_entropy_{t}_{m}x{n}{'_smooth' if e else ''}", f"""
import std.loss;

kernel k(const {t} x[M, N], const {label} t[M], {wide} y[M], {wide} grad[M, N], int classes, f32 e)
    grid(1)
{{
    auto v = load(x[0 +: {m}, 0 +: {bn}], pad = nan);
    y[0 +: {m}] = loss.cross_entropy(v, t[0 +: {m}], classes, e, {IGNORE});
    grad[0 +: {m}, 0 +: {bn}] = loss.cross_entropy_grad(v, t[0 +: {m}], classes, smoothing = e, ignore = {IGNORE});
}}
""", {
                "x": Arr(t, store(x, t)), "t": Arr(
                    label, target.astype({"i32": np.int32, "i64": np.int64, "u8": np.uint8}[label])), "y": poison(
                        wide, m), "grad": poison(wide, m, n), "classes": classes, "e": e
            }, lambda a, e=e: (lambda w: {"y": w["loss"], "grad": w["grad"]})(loss_want(a, e)), same_bits=False,
            warps=WARPS[k % 4], stages=2)

row(
    "std_loss_of_a_large_vocabulary", """
import std.loss;
import std.softmax;

kernel k(const f16 x[M, N], const i32 t[M], f32 y[M])
    grid(cdiv(M, 3))
{
    int m = pid(0) * 3;
    auto target = t[m +: 3];
    tile<f32, 3> top = -inf;
    tile<f32, 3> total;
    tile<f32, 3> logit;
    for (int n : range(0, N, 64)) {
        auto part = load(x[m +: 3, n +: 64], pad = -inf);
        logit += loss.target_logit(part, target, n);
        auto (next, sum_, scale, p) = softmax.online(top, total, (f32)part);
        top = next;
        total = sum_;
    }
    y[m +: 3] = softmax.online_lse(top, total) - logit;
}
""", {"x": normal("f16", 130, 7, 1001), "t": ints("i32", 131, 0, 1001, 7), "y": poison("f32", 7)},
    lambda a: {"y": within(cross_entropy(a["x"].astype(F64), a["t"].astype(np.int64), 1001, 0, IGNORE)[0], 2.0**-18)},
    same_bits=False, warps=4, stages=2)

# ---- order: its functions by name (the built-in ones are in rows_order.py) -------------------------------------------
row(
    "std_order_by_name", """
import std.order;

kernel k(const f32 x[M, N], f32 y[M, N], i32 i[M, N], i32 z[N, M], const i32 w[N, M])
    grid(1)
{
    auto (v, at) = order.sort_pairs(x[0 +: 5, 0 +: 13], broadcast(row(iota(13)), 5, 13), 1, 13, true);
    y[0 +: 5, 0 +: 13] = v;
    i[0 +: 5, 0 +: 13] = at;
    z[0 +: 13, 0 +: 5] = order.sort_values(w[0 +: 13, 0 +: 5], broadcast(col(iota(13)), 13, 5), 0, 13, false);
}
""", {
        "x": ints("f32", 140, -4, 5, 5, 13), "y": poison("f32", 5, 13), "i": poison("i32", 5, 13), "z": poison(
            "i32", 13, 5), "w": ints("i32", 141, -99, 100, 13, 5)
    }, lambda a:
    (lambda o:
     {"y": exact(np.take_along_axis(a["x"], o, 1)), "i": exact(o.astype(np.int32)), "z": exact(np.sort(a["w"], 0))})
    (np.argsort(-a["x"], 1, kind="stable")), warps=2, stages=1)
