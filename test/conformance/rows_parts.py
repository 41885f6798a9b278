"""Tiles that threads exchange and that shared memory has no room for: transpositions, folds, scans, reductions,
gathers, sorts and old values of
atomics, in parts. The larger ones take 128 to 512 KiB as a whole, where a GPU of today has 64 to 227; the small ones
are forced into parts
(--stress-layouts). Data are small integers, and bits are compared."""
import numpy as np

from rows import row
from values import exact, iota, ints, poison, small

SCANNED = {"cumsum": lambda x, d: np.cumsum(x, d), "last": lambda x, d: np.flip(np.cumsum(np.flip(x, d), d), d)}


def add(name, source, args, want, warps=16, seed=0, consts=None, **more):
    options = ["--stress-layouts", str(seed)] if seed else []
    row(f"parts_{name}", source, args, want, consts=consts, options=options, warps=warps, stages=3, **more)


def transposed(name, t, b, bn, m=None, n=None, **more):
    m, n = m or b, n or bn
    add(name, f"""
kernel k(const {t} x[M, N], {t} y[N, M], const int B, const int BN) grid(cdiv(M, B), cdiv(N, BN))
{{
    int m = pid(0) * B;
    int n = pid(1) * BN;
    y[n +: BN, m +: B] = trans(x[m +: B, n +: BN]);
}}
""", {"x": iota(t, m, n), "y": poison(t, n, m)}, lambda a: {"y": exact(a["x"].T)}, consts={"B": b, "BN": bn}, **more)


transposed("transpose_512_64", "f32", 512, 64)
transposed("transpose_128_256", "f32", 128, 256, warps=8)
transposed("transpose_256_256", "f32", 256, 256)
transposed("transpose_f64", "f64", 128, 256)
transposed("transpose_past_the_end", "f32", 256, 256, m=251, n=203)
transposed("transpose_padded", "f32", 160, 224, m=160, n=223)
for seed in (1, 2, 3, 4):
    for t, b, bn in (("u8", 64, 32), ("f16", 48, 40), ("f32", 32, 64), ("f64", 24, 20)):
        transposed(f"forced_{seed}_transpose_{t}", t, b, bn, m=b - 3, n=bn - 1, warps=4, seed=seed)

add(
    "fold", """
kernel k(const f32 x[M, N], f32 y[M, N], const int B, const int BN) grid(1) require(B == M && BN == N)
{
    y[0 +: B, 0 +: BN] = trans(reshape(x[0 +: B, 0 +: BN], BN, B));
}
""", {"x": iota("f32", 512, 64), "y": poison("f32", 512, 64)}, lambda a: {"y": exact(a["x"].reshape(64, 512).T)},
    consts={"B": 512, "BN": 64})

SCAN = """
kernel k(const {t} x[M, N], {t} y[M, N], const int B, const int BN) grid(1) require(M <= B && N <= BN)
{{
    y[0 +: B, 0 +: BN] = cumsum(x[0 +: B, 0 +: BN], {axis}, reverse = {reverse});
}}
"""
PAIRS = """
auto step(auto a, auto b, auto c, auto d) { return (a * c, b * c + d); }

kernel k(const T f[M, N], const T x[M, N], T h[M, N], const int B, const int BN,
         const type T) grid(1) require(M <= B && N <= BN)
{
    auto (_p, s) = scan((f[0 +: B, 0 +: BN], x[0 +: B, 0 +: BN]), %d, step, reverse = %s);
    h[0 +: B, 0 +: BN] = s;
}
"""


def scanned(name, t, b, bn, axis, reverse=False, less=0, **more):
    m, n = b - less, bn - less
    source = SCAN.format(t=t, axis=axis, reverse=str(reverse).lower())
    way = SCANNED["last" if reverse else "cumsum"]
    add(name, source, {"x": small(t, 1, m, n), "y": poison(t, m, n)}, lambda a: {"y": exact(way(a["x"], axis))},
        consts={"B": b, "BN": bn}, **more)


def pairs(name, t, b, bn, axis, reverse=False, less=0, **more):
    """f is 0, 1 or -1: a segment begins, goes on, or turns."""
    m, n = b - less, bn - less

    def want(a):
        f, x = (np.moveaxis(a[k], axis, 0) for k in ("f", "x"))
        f, x = (f[::-1], x[::-1]) if reverse else (f, x)
        h, last = np.zeros_like(x), np.zeros_like(x[0])
        for i in range(len(x)):
            last = h[i] = last * f[i] + x[i]
        return {"h": exact(np.moveaxis(h[::-1] if reverse else h, 0, axis))}

    source = PAIRS % (axis, str(reverse).lower())
    add(name, source, {"f": small(t, 2, m, n, lo=-1, hi=2), "x": small(t, 1, m, n), "h": poison(t, m, n)}, want,
        consts={"B": b, "BN": bn, "T": t}, **more)


scanned("scan_down_512_64", "f32", 512, 64, 0)
scanned("scan_down_64_512", "f32", 64, 512, 0, reverse=True)
scanned("scan_down_f64", "f64", 128, 128, 0)
scanned("scan_down_256_256", "f32", 256, 256, 0, less=5)
scanned("scan_along_f64", "f64", 64, 512, 1, reverse=True)
pairs("scan_pair_down", "f32", 128, 128, 0)
pairs("scan_pair_down_f64", "f64", 128, 128, 0, reverse=True)
pairs("scan_pair_along_f64", "f64", 128, 128, 1, less=1)
for seed in (1, 2, 3, 4):
    for axis in (0, 1):
        scanned(f"forced_{seed}_scan_{axis}", ("f16", "f32", "f64", "i32")[seed - 1], 48, 64, axis,
                reverse=seed % 2 == 0, less=3, warps=8, seed=seed)
        pairs(f"forced_{seed}_scan_pair_{axis}", ("f64", "f32", "i64", "i32")[seed - 1], 32, 40, axis,
              reverse=seed % 2 == 1, less=2, warps=4, seed=seed)


def greatest(name, b, bn, **more):
    add(
        name, """
kernel k(const f32 x[M, N], i32 at[N], f32 down[N], f32 along[M], const int B,
         const int BN) grid(1) require(M == B && N == BN)
{
    auto t = x[0 +: B, 0 +: BN];
    at[0 +: BN] = argmax(t, axis = 0);
    down[0 +: BN] = sum(t, axis = 0);
    along[0 +: B] = sum(t, axis = 1);
}
""", {
            "x": small("f32", 3, b, bn, lo=-90, hi=90), "at": poison("i32", bn), "down": poison("f32", bn),
            "along": poison("f32", b)
        }, lambda a: {"at": exact(np.argmax(a["x"], 0)), "down": exact(a["x"].sum(0)), "along": exact(a["x"].sum(1))},
        consts={"B": b, "BN": bn}, **more)


greatest("reduce_down", 16, 4096)
for seed in (1, 2, 3, 4):
    greatest(f"forced_{seed}_reduce", 32, 96, warps=8, seed=seed)


def gathered(name, t, b, bn, n, **more):
    add(
        name, f"""
kernel k(const {t} x[M, N], const i32 at[K, N], {t} y[K, N], i32 count[8], const int B, const int BN, const int BK)
    grid(1) require(M == B && N == BN && K == BK)
{{
    auto i = at[0 +: BK, 0 +: BN];
    y[0 +: BK, 0 +: BN] = gather(x[0 +: B, 0 +: BN], i, 0);
    count[0 +: 8] = histogram(reshape(i, BK * BN), 8);
}}
""", {"x": small(t, 4, b, bn), "at": ints("i32", 5, 0, b - 1, n, bn), "y": poison(t, n, bn), "count": poison("i32", 8)},
        lambda a: {
            "y": exact(np.take_along_axis(a["x"], a["at"], 0)), "count": exact(
                np.bincount(a["at"].ravel(), minlength=8)[:8])
        }, consts={"B": b, "BN": bn, "BK": n}, **more)


gathered("gather", "f64", 256, 128, 64)
for seed in (1, 2, 3, 4):
    gathered(f"forced_{seed}_gather", ("u8", "f64", "f32", "f16")[seed - 1], 24, 20, 40, warps=4, seed=seed)


def sorted_rows(name, t, m, n, down, **more):
    add(
        name, f"""
kernel k(const {t} x[M, N], {t} y[M, N], const int B, const int BN) grid(1) require(M == B && N == BN)
{{
    y[0 +: B, 0 +: BN] = sort(x[0 +: B, 0 +: BN], {down});
}}
""", {"x": small(t, 6, m, n, lo=-100, hi=100), "y": poison(t, m, n)}, lambda a: {"y": exact(np.sort(a["x"], down))},
        consts={"B": m, "BN": n}, **more)


sorted_rows("sort_f64", "f64", 128, 128, 0)
for seed in (1, 2):
    sorted_rows(f"forced_{seed}_sort", "f32", 24, 64, seed % 2, warps=4, seed=seed)


def old_values(name, n, m, **more):
    """Each column has a counter; what all rows get of it is passed on to all threads."""
    add(
        name, """
kernel k(i32 count[N], i32 y[M, N], const int B, const int BN) grid(1) require(M == B && N == BN)
{
    auto old = atomic_add(count[0 +: BN], iota(BN));
    y[0 +: B, 0 +: BN] = col(iota(B)) + row(old);
}
""", {"count": iota("i32", n), "y": poison("i32", m, n)},
        lambda a: {"count": exact(2 * np.arange(n)), "y": exact(np.arange(m)[:, None] + np.arange(n)[None])},
        consts={"B": m, "BN": n}, **more)


for seed in (1, 2, 3, 4):
    old_values(f"forced_{seed}_old_values", 96, 4, warps=4, seed=seed)


def batches(name, t, n, m, k, **more):
    add(
        name, f"""
kernel k(const {t} x[L, M, K], const {t} z[L, K, M], {t} y[L, M, M], const int N, const int B, const int BK)
    grid(1) require(L <= N && M == B && K == BK)
{{
    y[0 +: N, 0 +: B, 0 +: B] = dot(x[0 +: N, 0 +: B, 0 +: BK], z[0 +: N, 0 +: BK, 0 +: B]);
}}
""", {"x": small(t, 7, n, m, k), "z": small(t, 8, n, k, m), "y": poison(t, n, m, m)},
        lambda a: {"y": exact(a["x"] @ a["z"])}, consts={"N": n, "B": m, "BK": k}, **more)


batches("batches", "f64", 1021, 4, 8)
for seed in (1, 2, 3, 4):
    batches(f"forced_{seed}_batches", ("f32", "f64", "f32", "f64")[seed - 1], 61 - seed, 4 + seed, 9, warps=4,
            seed=seed)
