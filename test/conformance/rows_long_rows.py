"""Rows that registers do not hold, which the compiler cuts into chunks on GPUs: odd lengths, NaN, ties, in place."""
import numpy as np

from rows import row
from values import eps, exact, exactly, normal, poison, small, spacing, store, sum_bound, within, zeros

R, C, B = 3, 8501, 8601  # 8601 is a multiple of no chunk
ONE = {"warps": 1, "stages": 1}  # for which this is long, and which emulators run soon


def softmax_want(t):
    def want(a):
        x = a["y"].astype(np.float64)
        e = np.exp(x - x.max(1, keepdims=True))
        v = e / e.sum(1, keepdims=True)
        return {"y": within(v, v * (C + 30) * eps("f32") + spacing(v, t))}
    return want


for t in ("f32", "f16"):
    row(f"long_rows_softmax_{t}", f"""
kernel k({t} y[R, C], const int B) grid(R) require(C <= B)
{{
    int r = pid(0);
    auto v = (f32)load(y[r, 0 +: B], pad = -inf);
    auto e = exp(v - max(v));
    y[r, 0 +: B] = cast(e / sum(e), {t});
}}
""", {"y": normal(t, 1, R, C)}, softmax_want(t), consts={"B": B}, same_bits=False, **ONE)


def norm_want(a):
    x, w = a["x"].astype(np.float64), a["w"].astype(np.float64)
    mean = x.mean(1, keepdims=True)
    d = x - mean
    rstd = 1 / np.sqrt((d * d).mean(1, keepdims=True) + 1e-5)
    y = d * rstd * w
    slack = (C + 20) * eps("f32")
    return {
        "y": within(y, 4 * slack * (np.abs(y) + np.abs(w))), "stats": within(np.concatenate([mean, rstd], 1), slack * 4)
    }


row(
    "long_rows_layer_norm", """
kernel k(const f32 x[R, C], const f32 w[C], f32 y[R, C], f32 stats[R, 2], const int B) grid(1)
{
    auto weights = w[0 +: B];
    for (int r : range(0, R)) {
        auto v = x[r, 0 +: B];
        f32 mean = sum(v) / (f32)C;
        stats[r, 0] = mean;
        auto d = in(x[r, 0 +: B]) ? v - mean : 0;
        f32 scale = rsqrt(sum(d * d) / (f32)C + 1e-5);
        stats[r, 1] = scale;
        y[r, 0 +: B] = d * scale * weights;
    }
}
""", {"x": normal("f32", 2, R, C), "w": normal("f32", 3, C), "y": poison("f32", R, C), "stats": poison("f32", R, 2)},
    norm_want, consts={"B": B}, same_bits=False, **ONE)


def scans_want(a):
    i, x = a["i"].astype(np.int64), a["x"].astype(np.float64)
    y = x.cumsum(1)
    return {"up": exact(i.cumsum(1)), "down": exact(i[:, ::-1].cumsum(1)[:, ::-1] + i.max(1, keepdims=True)),
            "y": within(y, sum_bound(np.abs(x).cumsum(1), C, "f32", "f16", y))}


row("long_rows_scans", """
kernel k(const i32 i[R, C], i32 up[R, C], i32 down[R, C], const f16 x[R, C], f16 y[R, C], const int B) grid(R)
{
    int r = pid(0);
    auto v = load(i[r, 0 +: B], pad = 0);
    up[r, 0 +: B] = cumsum(v, axis = 0);
    down[r, 0 +: B] = cumsum(v, axis = 0, reverse = true) + max(v);
    y[r, 0 +: B] = cumsum(x[r, 0 +: B], axis = 0);
}
""", {"i": small("i32", 4, R, C), "up": poison("i32", R, C), "down": poison("i32", R, C), "x": small("f16", 5, R, C),
      "y": poison("f16", R, C)}, scans_want, consts={"B": B}, same_bits=False, **ONE)

best = np.random.default_rng(6).integers(-50, 50, (4, C)).astype(np.float32)
best[2, [7000, 8400]] = np.nan
best[3] = -np.inf
row(
    "long_rows_argmax", """
kernel k(const f32 x[R, C], i32 at[R], i32 low[R], f32 top[R], const int B) grid(R)
{
    int r = pid(0);
    auto v = load(x[r, 0 +: B], pad = nan);
    top[r] = max(v);
    at[r] = argmax(load(x[r, 0 +: B], pad = -inf), axis = 0);
    low[r] = argmin(load(x[r, 0 +: B], pad = inf), axis = 0);
}
""", {"x": exactly("f32", best), "at": poison("i32", 4), "low": poison("i32", 4), "top": poison("f32", 4)}, lambda a: {
        "at": exact(np.nanargmax(a["x"], 1)), "low": exact(np.nanargmin(a["x"], 1)), "top": exact(
            np.fmax.reduce(a["x"], 1))
    }, consts={"B": B}, **ONE)

row("long_rows_tile_of_rows", """
kernel k(const f32 x[R, C], f32 y[C, 3], i32 count[1], const int B) grid(1)
{
    auto v = load(x[1 +: 3, 2 +: B : 2], pad = 5);
    auto high = v > max(v, axis = 1, keep = true) - 10;
    y[3 +: B, 0 +: 3] = trans(high ? v : -v);
    count[0] = sum(cast(high, i32));
}
""",
    {"x": small("f32", 7, 4, C, lo=-20, hi=20), "y": zeros("f32", C, 3), "count": poison("i32", 1)},
    lambda a: tile_of_rows(a["x"]), consts={"B": 4251}, **ONE)


def tile_of_rows(x):
    v = np.full((3, 4251), 5, np.float32)
    part = x[1:4, 2::2]
    v[:, :part.shape[1]] = part[:, :4251]
    high = v > v.max(1, keepdims=True) - 10
    y = np.zeros((C, 3), np.float32)
    y[3:3 + 4251] = np.where(high, v, -v).T
    return {"y": exact(y), "count": exact(np.array([high.sum()]))}


row(
    "long_rows_atomics", """
kernel k(const i32 x[R, C], i32 total[C], i32 last[R, C], const int B) grid(R)
{
    int r = pid(0);
    auto v = x[r, 0 +: B];
    atomic_add(total[0 +: B], v + max(v));
    last[r, 0 +: B] = v * 2 + iota(B);
}
""", {"x": small("i32", 8, R, C), "total": zeros("i32", C), "last": poison("i32", R, C)}, lambda a: {
        "total": exact(
            (a["x"] + np.maximum(a["x"].max(1, keepdims=True), 0)).sum(0)), "last": exact(a["x"] * 2 + np.arange(C))
    }, consts={"B": B}, **ONE)

# One count indexes two axes, of which one is cut.
for t in ("i32", "u8"):
    row(f"long_rows_one_count_for_two_axes_{t}", f"""
kernel k(const {t} x[A, B], const {t} z[A, C], {t} y[A, B])
    grid(1)
{{
    auto i = iota(128);
    y[0 +: 128, 0 +: 128] = x[i, i] + z[0 +: 128, 2 +: 128];
}}
""", {"x": small(t, 11, 128, 128), "z": small(t, 12, 128, 130), "y": poison(t, 128, 128)},
        lambda a: {"y": exact(a["x"] + a["z"][:, 2:])}, **ONE)

# A row beside itself shifted, beyond both ends of the array.
row(
    "long_rows_shifted", """
kernel k(const f32 x[N], const i32 id[N], f32 y[N], i32 ends[N], const int B) grid(1)
{
    auto s = load(id[0 +: B], pad = -1);
    auto begins = s != shift(s, 0, 3, -7);
    y[0 +: B] = cumsum((f32)begins + x[0 +: B], 0);
    ends[0 +: B] = s != shift(s, 0, -1, -1) ? s : 100;
}
""", {"x": small("f32", 13, C), "id": small("i32", 14, C, lo=-1, hi=2), "y": poison("f32", C),
        "ends": poison("i32", C)},
    lambda a: shifted(a["x"], a["id"]), consts={"B": B}, **ONE)


def shifted(x, s):
    s = np.concatenate([s, np.full(B - C, -1, np.int32)])
    before, behind = np.concatenate([[-7] * 3, s[:-3]]), np.concatenate([s[1:], [-1]])
    y = np.cumsum((s != before)[:C] + x, dtype=np.float32)
    return {"y": exact(y), "ends": exact(np.where(s != behind, s, 100)[:C].astype(np.int32))}


# Sums of a product that registers do not hold, of which the least of each row is wanted; and two parts of sums.
row(
    "long_rows_nearest", """
kernel k(const f32 x[M, D], const f32 c[N, D], i32 near[M], const int BM, const int BN, const int BD)
    grid(1)
{
    auto q = c[0 +: BN, 0 +: BD];
    auto d = row(sum(q * q, axis = 1)) - 2.0 * dot(x[0 +: BM, 0 +: BD], trans(q));
    near[0 +: BM] = argmin(d, axis = 1);
}
""", {"x": small("f32", 15, 64, 16), "c": small("f32", 16, 150, 16), "near": poison("i32", 64)},
    lambda a: {"near": exact(((a["c"]**2).sum(1) - 2 * a["x"] @ a["c"].T).argmin(1).astype(np.int32))},
    consts={"BM": 64, "BN": 150, "BD": 16}, **ONE)

for t, (lo, n) in (("f16", (32, 32)), ("f32", (0, 48))):
    row(f"long_rows_part_of_product_{t}", f"""
kernel k(const f16 a[M, K], const f16 b[K, N], {t} y[M, P], const int BN, const int FROM, const int BP)
    grid(1)
{{
    tile<f32, 32, BN> acc = 0;
    for (int k : range(0, K, 16))
        acc = dot(a[0 +: 32, k +: 16], b[k +: 16, 0 +: BN], acc);
    y[0 +: 32, 0 +: BP] = ({t})extract(acc, 0 +: 32, FROM +: BP) + ({t})extract(acc, 0 +: 32, BN - BP +: BP);
}}
""", {"a": small("f16", 17, 32, 40), "b": small("f16", 18, 40, 96), "y": poison(t, 32, n)},
        lambda a, lo=lo, n=n, t=t: {"y": exact(parts(a["a"], a["b"], lo, n).astype(t.replace("f", "float")))},
        consts={"BN": 96, "FROM": lo, "BP": n}, **ONE)


def parts(a, b, lo, n):
    s = a.astype(np.float64) @ b.astype(np.float64)
    return s[:, lo:lo + n] + s[:, -n:]
