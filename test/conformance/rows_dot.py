"""Matrix products: every type, odd sizes, tiles that are not powers of two, chained products, accumulators."""
import itertools

import numpy as np

from product_kernel import product_kernel
from rows import ROWS, row
from values import STORE, Arr, eps, exact, ints, normal, poison, random_bits, small, store, within

GEMM = product_kernel(
    """const T A[M, K], const U B[K, N], R C[M, N], const type T, const type U, const type R,
            const int BM, const int BN, const int BK""", name="gemm", block=("BM", "BN", "BK"), acc="R",
    grid="cdiv(M, BM), cdiv(N, BN), group = 4", loop=" pipeline")


def product(a):
    big = (lambda x: x.astype(np.float64)) if a["A"].dtype.kind == "f" else (lambda x: x.astype(np.int64))
    return big(a["A"]) @ big(a["B"])


def gemm(name, t, u, r, shape, block, data=small, **more):
    m, n, k = shape
    row(name, GEMM, {"A": data(t, 1, m, k), "B": data(u, 2, k, n), "C": poison(r, m, n)},
        more.pop("want", lambda a: {"C": exact(product(a))}),
        consts={"T": t, "U": u, "R": r, **dict(zip(("BM", "BN", "BK"), block))}, **more)


TYPES = [("f16", "f16", "f32"), ("bf16", "bf16", "f32"), ("f32", "f32", "f32"), ("f64", "f64", "f64"),
         ("i8", "i8", "i32"), ("u8", "u8", "i32"), ("i8", "u8", "i32"), ("u8", "i8", "i32")]
TYPES += [("i16", "i16", "i32"), ("u16", "u16", "i32"), ("i16", "u16", "i32"), ("u16", "i16", "i32"),
          ("i32", "i32", "i32"), ("u32", "u32", "u32"), ("i64", "i64", "i64"), ("u64", "u64", "u64")]
for t, u, r in TYPES:
    gemm(f"dot_{t}_{u}", t, u, r, (65, 47, 83), (32, 32, 32))


def modulo(a, b, r):
    """The product as type r wraps."""
    n = np.uint32 if r[1:] == "32" else np.uint64
    return a.astype(n) @ b.astype(n)


for t, u, r in TYPES[-8:]:
    def wrapped(a, r=r):
        return {"C": exact(modulo(a["A"], a["B"], r).astype(STORE[r]))}

    def added(a, r=r):
        p = modulo(a["A"], a["C"], r)
        return {"E": exact((p + a["D"].astype(p.dtype)).astype(STORE[r])), "F": exact(p.astype(STORE[r]))}
    for shape, block in (((33, 21, 50), (32, 16, 16)), ((7, 9, 11), (5, 3, 4)), ((70, 130, 64), (64, 64, 32))):
        gemm(f"dot_wraps_{t}_{u}_{'x'.join(map(str, block))}", t, u, r, shape, block, data=random_bits, want=wrapped)
    row(f"dot_batch_{t}_{u}", f"""
kernel k(const {t} A[B, M, K], const {u} C[B, K, N], const {r} D[B, M, N], {r} E[B, M, N], {r} F[B, M, N])
    grid(1)
{{
    auto a = A[0 +: 3, 0 +: 5, 0 +: 7];
    auto c = C[0 +: 3, 0 +: 7, 0 +: 6];
    E[0 +: 3, 0 +: 5, 0 +: 6] = dot(a, c, D[0 +: 3, 0 +: 5, 0 +: 6]);
    F[0 +: 3, 0 +: 5, 0 +: 6] = dot(a, c, out = {r});
}}
""", {"A": random_bits(t, 3, 3, 5, 7), "C": random_bits(u, 4, 3, 7, 6), "D": random_bits(r, 5, 3, 5, 6),
      "E": poison(r, 3, 5, 6), "F": poison(r, 3, 5, 6)},
        added)
for shape, block in (
        ((1, 1, 1), (16, 16, 16)), ((129, 3, 5), (64, 16, 16)), ((50, 70, 90), (48, 80, 24)),
        ((7, 250, 33), (1, 96, 8)), ((40, 30, 0), (16, 16, 16)), ((33, 1, 100), (32, 1, 64)),
         ((20, 20, 20), (5, 7, 3))):
    for t, r in (("f32", "f32"), ("f16", "f32"), ("i8", "i32")):
        gemm(f"dot_shape_{t}_{'x'.join(map(str, shape))}_tile_{'x'.join(map(str, block))}", t, t, r, shape, block)
# The standard f8 by instructions of 32 x 32 x 64 and of 16 x 16 x 128 (gfx950): warps decide which.
for t, u in itertools.product(("f8e4m3", "f8e5m2"), repeat=2):
    for bm, bk, warps in ((64, 64, 1), (32, 128, 4)):
        gemm(f"dot_deep_{t}_{u}_{bm}x{bk}", t, u, "f32", (70, 50, 200), (bm, 32, bk), warps=warps, stages=2)
for t, acc in (("f32", "f32"), ("f16", "f32"), ("bf16", "f32"), ("f64", "f64")):
    def bound(a, acc=acc):  # any order, fused or not
        k = a["A"].shape[1]
        return {
            "C": within(product(a),
                        (k + 1) * eps(acc) * 2 * (np.abs(a["A"]).astype(float) @ np.abs(a["B"]).astype(float)))
        }
    gemm(f"dot_random_{t}", t, t, acc, (70, 90, 333), (32, 64, 32), data=normal, want=bound, same_bits=False)

# The f8 of gfx942, which has instructions for them; others widen. Every pair, shapes of both instructions, odd ones,
# every code.
FNUZ = ("f8e4m3fnuz", "f8e5m2fnuz")
for i, (t, u) in enumerate((p, q) for p in FNUZ for q in FNUZ):
    gemm(f"dot_{t}_{u}", t, u, "f32", (65, 47, 83), (32, 32, 32))
    gemm(f"dot_large_{t}_{u}", t, u, "f32", (70, 130, 100), (64, 64, 32 << i % 2))
    gemm(f"dot_odd_{t}_{u}", t, u, "f32", (20, 20, 20), (5, 7, 3))
row(
    "dot_fnuz_out_f16", """
kernel k(const f8e4m3fnuz A[M, K], const f8e5m2fnuz B[K, N], f16 C[M, N])
    grid(1)
{
    C[0 +: 32, 0 +: 32] = dot(A[0 +: 32, 0 +: 64], B[0 +: 64, 0 +: 32], out = f16);
}
""", {"A": small("f8e4m3fnuz", 1, 30, 60), "B": small("f8e5m2fnuz", 2, 60, 31), "C": poison("f16", 30, 31)},
    lambda a: {"C": exact(product(a))})
# One product for each code: row i of A is code i, then zeros.
row(
    "dot_fnuz_every_code", """
kernel k(const T A[M, K], const f8e4m3fnuz B[K, N], f32 C[M, N], const type T)
    grid(cdiv(M, 32))
{
    int m = pid(0) * 32;
    C[m +: 32, 0 +: 16] = dot(A[m +: 32, 0 +: 32], B[0 +: 32, 0 +: 16]);
}
""", {
        "A": Arr("f8e4m3fnuz",
                 np.concatenate((np.arange(256, dtype=np.uint8)[:, None], np.zeros(
                     (256, 31), np.uint8)), 1)), "B": small("f8e4m3fnuz", 3, 32, 16, lo=1), "C": poison("f32", 256, 16)
    }, lambda a: {"C": exact(product(a) + 0.0)}, consts={"T": "f8e4m3fnuz"})
row(
    "dot_fnuz_every_code_e5m2", ROWS[-1].source, {
        "A": Arr("f8e5m2fnuz", ROWS[-1].args["A"].store), "B": small("f8e4m3fnuz", 3, 32, 16, lo=1), "C": poison(
            "f32", 256, 16)
    }, lambda a: {"C": exact(product(a) + 0.0)}, consts={"T": "f8e5m2fnuz"})

full = lambda t, s, *shape: ints(t, s, -128 if t == "i8" else 0, 128 if t == "i8" else 256, *shape)  # noqa: E731
gemm("dot_i8_extremes", "i8", "i8", "i32", (33, 34, 500), (32, 32, 32), data=full)
gemm("dot_u8_extremes", "u8", "u8", "i32", (33, 34, 500), (32, 32, 32), data=full)
gemm("dot_i8_u8_extremes", "i8", "u8", "i32", (33, 34, 500), (32, 32, 32), data=full)

row(
    "dot_special_values", """
kernel k(const f32 A[M, K], const f32 B[K, N], f32 C[M, N])
    grid(1)
{
    C[0 +: 8, 0 +: 8] = dot(A[0 +: 8, 0 +: 8], B[0 +: 8, 0 +: 8]);
}
""", {
        "A": Arr("f32", np.array([[np.inf, 1], [np.nan, 0], [1e38, 1e38], [0, 0], [-0.0, 0]], np.float32)), "B": Arr(
            "f32", np.array([[1, 0, -1], [2, 3, 1e38]], np.float32)), "C": poison("f32", 5, 3)
    }, lambda a: {
        "C": within([[np.inf, np.nan, -np.inf], [np.nan] * 3, [3e38, 3e38, np.inf], [0] * 3, [0] * 3],
                    [[0] * 3, [0] * 3, [1e32] * 3, [1e-30] * 3, [1e-30] * 3])
    }, same_bits=False)

row(
    "dot_without_accumulator_and_chained", """
kernel k(const f16 A[M, K], const f16 B[K, N], const f16 C[N, P], f32 D[M, P], f16 E[M, N], f32 F[M, N])
    grid(1)
{
    auto ab = dot(A[0 +: 16, 0 +: 16], B[0 +: 16, 0 +: 32]);
    D[0 +: 16, 0 +: 16] = dot((f16)ab, C[0 +: 32, 0 +: 16]);
    E[0 +: 16, 0 +: 32] = dot(A[0 +: 16, 0 +: 16], B[0 +: 16, 0 +: 32], out = f16);
    F[0 +: 16, 0 +: 32] = dot((f32)A[0 +: 16, 0 +: 16], (f32)B[0 +: 16, 0 +: 32], ab, precision = ieee);
}
""", {
        "A": small("f16", 1, 13, 9), "B": small("f16", 2, 9, 27), "C": small("f16", 3, 27, 11, lo=-1, hi=2),
        "D": poison("f32", 13, 11), "E": poison("f16", 13, 27), "F": poison("f32", 13, 27)
    }, lambda a: (lambda ab: {"D": exact(ab @ a["C"].astype(float)), "E": exact(ab), "F": exact(2 * ab)})
    (a["A"].astype(float) @ a["B"].astype(float)))

row(
    "dot_of_transposed_and_computed", """
kernel k(const f32 A[M, K], const f32 B[N, K], f32 C[M, N], f32 D[N, M])
    grid(1)
{
    auto a = A[0 +: 24, 0 +: 40];
    auto b = B[0 +: 32, 0 +: 40];
    C[0 +: 24, 0 +: 32] = dot(a * 2 - 1, trans(max(b, 0)));
    D[0 +: 32, 0 +: 24] = dot(b, trans(a), broadcast(col((f32)iota(32)), 32, 24));
}
""", {
        "A": small("f32", 1, 24, 40), "B": small("f32", 2, 32, 40), "C": poison("f32", 24, 32), "D": poison(
            "f32", 32, 24)
    }, lambda a:
    {"C": exact((a["A"] * 2 - 1) @ np.maximum(a["B"], 0).T), "D": exact(a["B"] @ a["A"].T + np.arange(32.0)[:, None])})

row(
    "dot_column_major_operands",
    product_kernel("const f32 A[M : 1, K : lda], const f32 B[K : sk, N : sn], f32 C[M : ldc, N]",
                   then="C[m +: 16, n +: 32] += acc;"),
    {
        "A": Arr("f32", np.asfortranarray(small("f32", 1, 37, 45).store)), "B": Arr(
            "f32", np.asfortranarray(small("f32", 2, 45, 50).store)), "C": Arr("f32", store(np.ones((37, 50)), "f32"))
    }, lambda a: {"C": exact(a["A"].astype(float) @ a["B"].astype(float) + 1)})

# Rows that blocks of the CPU's registers do not divide: the last block repeats a row.
for t, acc in (("f32", "f32"), ("f64", "f64"), ("f16", "f32"), ("i8", "i32")):
    for m, n in ((7, 40), (13, 16), (23, 48), (64, 64), (64, 8)):
        row(
            f"dot_of_{m}_rows_{t}_{n}", f"""
kernel k(const {t} A[M, K], const {t} B[K, N], {acc} C[M, N], {acc} D[2, M, N], const {t} T[K, M])
    grid(1)
{{
    auto c = C[0 +: {m}, 0 +: {n}];
    C[0 +: {m}, 0 +: {n}] = dot(A[0 +: {m}, 0 +: 24], B[0 +: 24, 0 +: {n}], c) - dot(trans(T[0 +: 24, 0 +: {m}]),
            B[0 +: 24, 0 +: {n}]);
    auto two = broadcast(reshape(A[0 +: {m}, 0 +: 24], 1, {m}, 24), 2, {m}, 24);
    D[0 +: 2, 0 +: {m}, 0 +: {n}] = dot(two, broadcast(reshape(B[0 +: 24, 0 +: {n}], 1, 24, {n}), 2, 24, {n}));
}}
""", {
                "A": small(t, 1, m, 24), "B": small(t, 2, 24, n), "C": small(acc, 3, m, n), "D": poison(acc, 2, m, n),
                "T": small(t, 4, 24, m)
            }, lambda a: (lambda A, B, T, C: {"C": exact(C + A @ B - T.T @ B), "D": exact(np.stack([A @ B] * 2))})
            (*(a[v].astype(np.float64) for v in "ABTC")))
