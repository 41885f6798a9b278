"""Products whose result has few rows, both operands along k: how many rows, columns and k there are, where blocks begin
and where B ends, by every type and by what A and B are computed from."""
import numpy as np

from product_kernel import product_kernel
from rows import row
from values import exact, normal, poison, small, sum_bound, within

SUMS = {"f16": "f32", "bf16": "f32", "f32": "f32", "f64": "f64", "i8": "i32", "u8": "i32", "i32": "i32"}
SIZES = ((1, 64, 64), (1, 1, 33), (1, 13, 100), (2, 70, 96), (3, 129, 31), (4, 64, 200), (5, 7, 130), (8, 100, 96),
         (15, 65, 257), (17, 40, 192), (40, 90, 448), (66, 33, 65), (1, 300, 1), (3, 0, 64), (2, 20, 0))


def product(name, t, u, sizes, b="trans(B[n +: 64, k +: 32])", data=small, block=(16, 64, 32), **more):
    """C = A B^T; B's array may have other rows than C has columns."""
    m, n, k, *of_b = sizes
    s, rows_of_b = SUMS[t], of_b[0] if of_b else n
    a, w = data(t, 1, m, k), data(u, 2, rows_of_b, k)

    def want(arrays):
        x, y = arrays["A"], np.zeros((n, k), arrays["B"].dtype)
        y[:min(n, rows_of_b)] = arrays["B"][:n]
        value = x.astype(np.float64) @ y.astype(np.float64).T + more.get("begins", 0)
        if data is small:
            return {"C": exact(value)}
        return {"C": within(value, sum_bound(abs(x) @ abs(y).T, k, s, s, value))}

    size = "N" if rows_of_b == n else "R"
    text = product_kernel(f"const {t} A[M, K], const {u} B[{size}, K], {s} C[M, N]", b=b, acc=s, block=block,
                          first=str(more.get("begins", 0)), **({"n": more["n"], "grid": "cdiv(M, 16), cdiv(N + 3, 64)"}
                                                               if "n" in more else {}))
    row(name, text, {"A": a, "B": w, "C": poison(s, m, n)}, want, same_bits=data is small)


for t, u in (("f32", "f32"), ("bf16", "bf16"), ("f16", "f16"), ("f64", "f64"), ("i8", "i8"), ("u8", "i8"), ("i8", "u8"),
             ("u8", "u8"), ("i32", "i32")):
    for i, sizes in enumerate(SIZES):
        if t in ("f32", "bf16", "i8") or i % 3 == 0:
            product(f"few_rows_{t}_{u}_{'x'.join(map(str, sizes))}", t, u, sizes, block=(80 if i % 2 else 16, 64, 32))

# blocks of C of fewer columns than a vector has lanes, and more
for bn, bk in ((4, 64), (8, 32), (16, 128), (256, 64), (20, 32), (64, 20)):
    product(f"few_rows_block_{bn}x{bk}", "f32", "f32", (3, 50, 150), f"trans(B[n +: {bn}, k +: {bk}])",
            block=(16, bn, bk))
    product(f"few_rows_block_{bn}x{bk}_i8", "i8", "i8", (3, 50, 150), f"trans(B[n +: {bn}, k +: {bk}])",
            block=(16, bn, bk))

# B's array ends before C does, or after; the first block begins before both; sums begin with something
for name, sizes in (("shorter", (2, 100, 96, 77)), ("longer", (2, 77, 96, 100)), ("much_shorter", (1, 130, 64, 3))):
    product(f"few_rows_b_{name}", "f32", "f32", sizes)
product("few_rows_from_before", "f32", "f32", (2, 100, 96), n="pid(1) * {} - 3")
product("few_rows_on_top", "f32", "f32", (5, 100, 96), begins=3)
product("few_rows_on_top_i8", "i8", "i8", (5, 100, 96), begins=3)

# columns of B side by side
for t in ("f32", "f64", "bf16", "i8"):
    for m, n, k in ((1, 70, 96), (2, 128, 100), (6, 64, 33), (13, 129, 64), (16, 128, 128), (17, 64, 64), (23, 128, 96),
                    (33, 64, 64)):
        row(f"few_rows_nn_{t}_{m}x{n}x{k}", product_kernel(f"const {t} A[M, K], const {t} B[K, N], {SUMS[t]} C[M, N]",
                                                           acc=SUMS[t], block=(32, 64, 32)),
            {"A": small(t, 1, m, k), "B": small(t, 2, k, n), "C": poison(SUMS[t], m, n)},
            lambda a: {"C": exact(a["A"].astype(np.float64) @ a["B"].astype(np.float64))})

# more rows than few, up to as many as read B where it lies, and more; blocks of 6, 8 and 12 rows, some rows are left
SOME = (((47, 100, 70), (64, 64, 32)), ((64, 64, 300), (64, 64, 32)), ((130, 200, 129), (64, 32, 64)),
        ((33, 128, 513), (16, 48, 16)), ((101, 53, 97), (50, 64, 20)), ((512, 40, 65), (128, 16, 32)),
        ((513, 40, 65), (128, 64, 32)))
for t in ("f32", "f64", "i32", "bf16"):
    for (m, n, k), block in SOME:
        for first in (0, 3) if t == "f32" else (0,):
            row(f"few_rows_or_some_{t}_{m}x{n}x{k}_from_{first}",
                product_kernel(f"const {t} A[M, K], const {t} B[K, N], {SUMS[t]} C[M, N]", acc=SUMS[t], block=block,
                               first=str(first)),
                {"A": small(t, 1, m, k), "B": small(t, 2, k, n), "C": poison(SUMS[t], m, n)},
                lambda a, first=first: {"C": exact(a["A"].astype(np.float64) @ a["B"].astype(np.float64) + first)},
                big=m * n * k > 1 << 22)

# one row, and more or fewer columns and rows of B than it takes at a time
for bn, bk in ((128, 32), (256, 16), (96, 20), (16, 5), (8, 64)):
    for t in ("f32", "f64", "i32"):
        row(f"few_rows_nn_{t}_1x{3 * bn}x{7 * bk}_by_{bn}x{bk}",
            product_kernel(f"const {t} A[M, K], const {t} B[K, N], {SUMS[t]} C[M, N]", acc=SUMS[t], block=(16, bn, bk)),
            {"A": small(t, 1, 1, 7 * bk), "B": small(t, 2, 7 * bk, 3 * bn), "C": poison(SUMS[t], 1, 3 * bn)},
            lambda a: {"C": exact(a["A"].astype(np.float64) @ a["B"].astype(np.float64))})

# errors of sums that are not exact, one row and several
for t in ("f32", "bf16", "f16", "f64"):
    for m in (1, 6):
        product(f"few_rows_normal_{t}_{m}", t, t, (m, 65, 1000), data=normal)
