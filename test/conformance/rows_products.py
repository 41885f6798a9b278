"""Loops that only sum matrix products: operands of any extents and strides, starts and ends that differ between
programs, and what
is outside of views, where an operand has infinities. The CPU does such a loop by chunks, reads A where it lies, keeps
packed B from
program to program and leaves out what nobody sees (codegen/cpu/cpu_matmul.c); none of it may show. Data are small
integers."""
import numpy as np

from product_kernel import product_kernel
from rows import row
from values import Arr, exact, ints, poison, random_bits, small, store, wide


def few(t, seed, *shape):
    return small(t, seed, *shape, lo=-2, hi=3)


def with_some(a, value, *places):
    """a, with `value` at some places."""
    v = wide(a).copy()
    for p in places:
        v[p] = value
    return Arr(a.type, store(v, a.type))


def big(x):
    return x.astype(np.float64 if x.dtype.kind == "f" else np.int64)


def product(a, b):
    with np.errstate(all="ignore"):
        return big(a) @ big(b)


def gemm(t, acc, bm, bn, bk):
    return product_kernel(
        f"const {t} A[M, K], const {t} B[K, N], {acc} C[M, N], "
        f"const int BM = {bm}, const int BN = {bn}, const int BK = {bk}",
        block=("BM", "BN", "BK"), acc=acc)


for t, acc, (m, n,
             k), (bm,
                  bn, bk) in (("f32", "f32", (37, 53, 70), (16, 32, 16)), ("f32", "f32", (5, 100, 601), (32, 64, 32)),
                              ("f32", "f32", (130, 7, 300), (64, 16, 8)), ("f32", "f32", (1, 1, 1), (16, 16, 16)),
                              ("f32", "f32", (19, 40, 33), (19, 40, 3)), ("f32", "f32", (70, 530, 900), (64, 512, 64)),
                              ("f64", "f64", (33, 29, 310), (32, 32, 64)), ("f16", "f32", (33, 29, 310), (16, 32, 128)),
                              ("bf16", "f32", (20, 66, 270), (32, 64, 16)), ("i8", "i32", (33, 29, 310), (16, 32, 32))):
    row(f"products_{t}_{m}x{n}x{k}_by_{bm}x{bn}x{bk}", gemm(t, acc, bm, bn, bk),
        {"A": few(t, 1, m, k), "B": few(t, 2, k, n), "C": poison(acc, m, n)},
        lambda a: {"C": exact(product(a["A"], a["B"]))}, big=m * n * k > 1 << 22)

# Few columns in a block with room for many: chunks of B are deeper, but where A's rows are outside.
for t, (m, n, k), (bm, bn, bk) in (("f32", (37, 3, 1300), (16, 64, 16)), ("f32", (50, 16, 2100), (32, 128, 64)),
                                   ("f32", (20, 17, 700), (16, 32, 32)), ("f32", (40, 69, 1100), (16, 64, 48)),
                                   ("f64", (20, 5, 1100), (16, 32, 32)), ("i8", (20, 9, 600), (16, 32, 32))):
    row(f"products_of_few_columns_{t}_{m}x{n}x{k}_by_{bm}x{bn}x{bk}", gemm(t, "i32" if t == "i8" else t, bm, bn, bk),
        {"A": few(t, 50, m, k), "B": few(t, 51, k, n), "C": poison("i32" if t == "i8" else t, m, n)},
        lambda a: {"C": exact(product(a["A"], a["B"]))})
for shift in (-3, 5):
    row(f"products_of_few_columns_rows_{'above' if shift < 0 else 'below'}", product_kernel(
        "const f32 A[M, K], const f32 B[K, N], f32 C[M, N]", a=f"A[m + {shift} +: 16, k +: 32]", block=(16, 64, 32)),
        {"A": few("f32", 52, 40, 1200), "B": few("f32", 53, 1200, 4), "C": poison("f32", 40, 4)},
        lambda a, shift=shift: {"C": exact(shifted(product(a["A"], a["B"]), shift))})


def shifted(c, rows):
    out = np.zeros_like(c)
    out[max(0, -rows):min(len(c), len(c) - rows)] = c[max(0, rows):min(len(c), len(c) + rows)]
    return out


# A is the transposition of what a load gives: the CPU reads it down its columns, or packs it so.
BY_COLUMNS = [("f32", "f32", (37, 53, 70), (16, 32, 16)), ("f32", "f32", (130, 7, 301), (64, 16, 8)),
              ("f32", "f32", (1, 1, 1), (16, 16, 16)), ("f32", "f32", (19, 40, 33), (19, 40, 3)),
              ("f64", "f64", (33, 29, 310), (32, 32, 64)), ("f16", "f32", (33, 29, 70), (16, 32, 16)),
              ("f32", "f32", (40, 3, 1300), (16, 64, 16))]
for t, acc, (m, n, k), (bm, bn, bk) in BY_COLUMNS:
    for shift in (0, -3, 5):
        name = f"products_by_columns_{t}_{m}x{n}x{k}{'_above' if shift < 0 else '_below' if shift else ''}"
        text = product_kernel(
            f"const {t} A[K, M], const {t} B[K, N], {acc} C[M, N]", a=f"trans(A[k +: {bk}, m + {shift} +: {bm}])",
            acc=acc, block=(bm, bn, bk))
        row(name, text, {"A": few(t, 70, k, m), "B": few(t, 71, k, n), "C": poison(acc, m, n)},
            lambda a, shift=shift: {"C": exact(shifted(product(a["A"].T, a["B"]), shift))})
row("products_by_columns_of_what_is_computed", product_kernel(
    "const f32 A[K, M], const f32 B[K, N], f32 C[M, N]", a="trans(A[k +: 16, m +: 16])", b="B[k +: 16, n +: 32] * 2"),
    {"A": few("f32", 72, 50, 21), "B": few("f32", 73, 50, 40), "C": poison("f32", 21, 40)},
    lambda a: {"C": exact(product(a["A"].T, a["B"]) * 2)})

# Many short sums after each other, as the taps of a filter are: with more chunks than are kept, of 3, 40 and 300 deep;
# columns that are stored apart.
for k, taps in ((3, 105), (40, 37), (300, 3), (1, 33)):
    for m, n, step in ((20, 45, 1), (3, 26, 2), (70, 17, 3)):
        row(f"products_of_{taps}_taps_{m}x{n}x{k}_by_{step}", f"""
kernel k(const f32 A[T, K, M], const f32 B[T, K, W], f32 C[M, N])
    grid(cdiv(M, 64), cdiv(cdiv(N, {step}), 32))
{{
    int m = pid(0) * 64;
    int n = pid(1) * 32;
    int at = n * {step} + {step} - 1;
    tile<f32, 64, 32> acc = 0;
    for (int t : range(T))
        for (int k : range(0, K, 4))
            acc = dot(trans(A[t, k +: 4, m +: 64]), B[t, k +: 4, n - {step} +: 32], acc);
    C[m +: 64, at +: 32 : {step}] = acc;
}}
""", {"A": few("f32", 74, taps, k, m), "B": few("f32", 75, taps, k, n // step + 2), "C": few("f32", 76, m, n)},
            lambda a, n=n, step=step: {"C": exact(of_taps(a, n, step))})


def of_taps(a, n, step):
    c = a["C"].astype(np.float64)
    b = np.pad(big(a["B"]), ((0, 0), (0, 0), (step, 64)))
    sums = np.einsum("tkm,tkn->mn", big(a["A"]), b)
    columns = np.arange(step - 1, n, step)
    c[:, columns] = sums[:, :len(columns)]
    return c


# Small blocks with a long k: on GPUs warps have parts of it (part-dots), which are added up behind the loop.
for t, acc, block, precision in (("f16", "f32", (16, 16, 128), ""), ("bf16", "f32", (16, 32, 64), ""),
                                 ("f8e4m3", "f32", (32, 16, 128), ""), ("f32", "f32", (16, 16, 64), "tf32x3"),
                                 ("f32", "f32", (16, 16, 32), "bf16x3"), ("f64", "f64", (8, 8, 32), ""),
                                 ("i8", "i32", (16, 8, 128), "")):
    for (m, n, k), warps, first in (((37, 21, 401), 4, "0"), ((16, 48, 128), 8, "3"), ((5, 1, 0), 4, "2")):
        row(f"products_parts_of_k_{t}_{precision}{'_' if precision else ''}{m}x{n}x{k}", product_kernel(
            f"const {t} A[M, K], const {t} B[K, N], {acc} C[M, N]", block=block, acc=acc, first=first,
            precision=f", precision = {precision}" if precision else ""),
            {"A": few(t, 60, m, k), "B": few(t, 61, k, n), "C": poison(acc, m, n)},
            lambda a, first=first: {"C": exact(product(a["A"], a["B"]) + int(first))}, warps=warps, stages=3)

# What is outside is 0 in a product, which with infinity is NaN: where it is seen, it must be there.
row("products_infinity_in_b", gemm("f32", "f32", 16, 32, 16), {
    "A": few("f32", 3, 21, 40), "B": with_some(few("f32", 4, 40, 50), np.inf, (3, 5),
                                               (39, 49)), "C": poison("f32", 21, 50)
}, lambda a: {"C": exact(product(a["A"], a["B"]))})

row(
    "products_rows_outside_are_seen",
    product_kernel("const f32 A[M, K], const f32 B[K, N], f32 C[M, N], f32 S[P, N]", then="""
C[m +: 16, n +: 32] = acc;
S[pid(0), n +: 32] = sum(acc, axis = 0);
"""), {
        "A": few("f32", 5, 21, 40), "B": with_some(few("f32", 6, 40, 50), np.inf,
                                                   (3, 5)), "C": poison("f32", 21, 50), "S": poison("f32", 2, 50)
    }, lambda a: {"C": exact(product(a["A"], a["B"])), "S": exact(outside_seen(a))})


def outside_seen(a):
    rows = np.zeros((32, 40))
    rows[:21] = big(a["A"])
    with np.errstate(all="ignore"):
        return np.stack([(rows[i:i + 16] @ big(a["B"])).sum(0) for i in (0, 16)])


row("products_k_ends_elsewhere",
    product_kernel("const f32 A[M, K], const f32 B[L, N], f32 C[M, N]", over="0, max(K, L), 16"),
    {"A": few("f32", 7, 20, 33), "B": with_some(few("f32", 8, 60, 40), np.nan, (45, 7)), "C": poison("f32", 20, 40)},
    lambda a: {"C": exact(longer(a))})


def longer(a):
    rows = np.zeros((20, 60))
    rows[:, :33] = big(a["A"])
    return rows @ big(a["B"])


# Programs that a worker runs one after another, with the same columns of B and another end, start, batch or scale.
row("products_ends_by_program",
    product_kernel("const f32 A[M, K], const f32 B[K, N], f32 C[M, N]", first="1", over="0, min(K, 40 + m * 3), 16"),
    {"A": few("f32", 9, 90, 300), "B": few("f32", 10, 300, 64), "C": poison("f32", 90, 64)},
    lambda a: {"C": exact(by_program(a))})


def by_program(a):
    ends = [min(300, -(-min(300, 40 + m * 3) // 16) * 16) for m in range(0, 90, 16)]
    A, B = big(a["A"]), big(a["B"])
    return np.concatenate([1 + A[16 * i:16 * i + 16, :e] @ B[:e] for i, e in enumerate(ends)])


row(
    "products_starts_by_program",
    product_kernel("const f32 A[M, K], const f32 B[K, N], f32 C[M, N], int first", over="first + pid(0), K, 16",
                   m="pid(0) * 16 - 5", n="pid(1) * 32 - 9", grid="cdiv(M, 16) + 1, cdiv(N, 32) + 1"),
    {"A": few("f32", 11, 50, 200), "B": few("f32", 12, 200, 64), "C": poison("f32", 50, 64), "first": -3},
    lambda a: {"C": exact(started(a))})


def started(a):
    A, B, c = big(a["A"]), big(a["B"]), np.zeros((50, 64))
    for p in range(5):
        rows = slice(max(0, 16 * p - 5), 16 * p + 11)
        k = max(0, p - 3)
        c[rows] = A[rows, k:] @ B[k:]
    return c


# Rows of B that the loop's k alone does not tell: a table of pages, another factor or step in each program.
row(
    "products_rows_by_table",
    product_kernel("const f32 A[M, K], const f32 B[L, N], const i32 page[P, T], f32 C[M, N]",
                   b="B[page[pid(0), k / 16] * 16 +: 16, n +: 32]"),
    {
        "A": few("f32", 30, 48, 64), "B": few("f32", 31, 128, 40), "C": poison("f32", 48, 40), "page": Arr(
            "i32", np.array([[0, 3, 1, 2], [0, 7, 5, 6], [0, 1, 2, 3]], np.int32))
    }, lambda a: {"C": exact(by_table(a))})


def by_table(a):
    A, B = big(a["A"]), big(a["B"])
    return np.concatenate([
        A[16 * i:16 * i + 16] @ np.concatenate([B[16 * r:16 * r + 16] for r in pages])
        for i, pages in enumerate(a["page"])
    ])


row(
    "products_rows_by_factor",
    product_kernel(
        "const f32 A[M, K], const f32 B[L, N], f32 C[M, N]", b="B[k * (1 + pid(0)) +: 16, n +: 32]", then="""
for (int k : range(0, K, 16 + 16 * pid(0)))
    acc = dot(A[m +: 16, k +: 16], B[k +: 16, n +: 32], acc);
C[m +: 16, n +: 32] = acc;
"""), {"A": few("f32", 32, 48, 64), "B": few("f32", 33, 200, 40), "C": poison("f32", 48, 40)},
    lambda a: {"C": exact(by_factor(a))})


def by_factor(a):
    A, B, c = big(a["A"]), big(a["B"]), np.zeros((48, 40))
    for p in range(3):
        rows = slice(16 * p, 16 * p + 16)
        for k in range(0, 64, 16):
            c[rows] += A[rows, k:k + 16] @ B[k * (1 + p):k * (1 + p) + 16]
        for k in range(0, 64, 16 + 16 * p):
            c[rows] += A[rows, k:k + 16] @ B[k:k + 16]
    return c


row(
    "products_rows_by_index",
    product_kernel("const f32 A[M, K], const f32 B[L, N], f32 C[M, N]", b="B[(k + iota(16)) * (1 + pid(0)), n +: 32]"),
    {"A": few("f32", 34, 48, 64), "B": few("f32", 35, 200, 40), "C": poison("f32", 48, 40)}, lambda a: {
        "C": exact(
            np.concatenate([big(a["A"])[16 * p:16 * p + 16] @ big(a["B"])[0:64 * (1 + p):1 + p] for p in range(3)]))
    })

row(
    "products_stored_under_a_branch",
    product_kernel("const f32 A[M, K], const f32 B[K, N], const i32 row[P], f32 C[M, N]", then="""
if (row[pid(0)] >= 0) {
    int r = row[pid(0)] * 16;
    C[r +: 16, n +: 32] = acc;
}
"""), {
        "A": few("f32", 36, 48, 64), "B": few("f32", 37, 64, 40), "row": Arr("i32", np.array([2, -1, 0], np.int32)),
        "C": poison("f32", 48, 40)
    }, lambda a: {"C": exact(moved_rows(a))})


def moved_rows(a):
    c, p = big(a["C"]).copy(), big(a["A"]) @ big(a["B"])
    c[32:48], c[0:16] = p[0:16], p[32:48]
    return c


# What is inside is asked for at other places of the tile, too.
row(
    "products_inside_across", """
kernel k(const f32 X[M, N], i32 Y[16, 16], i32 Z[16, 16])
    grid(1)
{
    auto seen = in(X[0 +: 16, 0 +: 16]) ? 1 : 0;
    Y[0 +: 16, 0 +: 16] = seen + 2 * trans(seen);
    tile<i32, 16, 16> back = 15;
    Z[0 +: 16, 0 +: 16] = seen + 2 * gather(seen, back - row(iota(16)), 1);
}
""", {"X": few("f32", 38, 16, 10), "Y": poison("i32", 16, 16), "Z": poison("i32", 16, 16)},
    lambda a: {"Y": exact(across()[0]), "Z": exact(across()[1])})


def across():
    seen = np.zeros((16, 16), np.int64)
    seen[:, :10] = 1
    return seen + 2 * seen.T, seen + 2 * seen[:, ::-1]


BATCHED = product_kernel("const f32 A[L, M, K], const f32 B[G, K, N], f32 C[L, M, N]", "A[l, m +: 16, k +: 16]",
                         "B[l / 2, k +: 16, n +: 32]", "C[l, m +: 16, n +: 32] = acc;", before="int l = pid(2);",
                         grid="cdiv(M, 16), cdiv(N, 32), L")
row("products_batched", BATCHED,
    {"A": few("f32", 13, 5, 20, 40), "B": few("f32", 14, 3, 40, 40), "C": poison("f32", 5, 20, 40)},
    lambda a: {"C": exact(np.stack([big(a["A"])[i] @ big(a["B"])[i // 2] for i in range(5)]))})
row(
    "products_batches_outside", BATCHED,
    {"A": few("f32", 15, 5, 20, 40), "B": few("f32", 16, 1, 40, 40), "C": poison("f32", 5, 20, 40)}, lambda a:
    {"C": exact(np.stack([big(a["A"])[i] @ big(a["B"])[0] if i < 2 else np.zeros((20, 40)) for i in range(5)]))})

row(
    "products_b_is_written", """
kernel k(const f32 A[M, K], f32 B[P, K, N], f32 C[P, M, N])
    grid(P)
{
    int p = pid(0);
    for (int turn : range(0, 3)) {
        for (int k : range(0, K, 16))
            B[p, k +: 16, 0 +: 32] += 1;
        tile<f32, 16, 32> acc = 0;
        for (int k : range(0, K, 16))
            acc = dot(A[0 +: 16, k +: 16], B[p, k +: 16, 0 +: 32], acc);
        C[p, 0 +: 16, 0 +: 32] += acc;
    }
}
""", {"A": few("f32", 19, 10, 40), "B": few("f32", 20, 3, 40, 30), "C": Arr("f32", np.zeros((3, 10, 30), np.float32))},
    lambda a: {
        "C": exact(np.stack([sum(big(a["A"]) @ (b + i) for i in (1, 2, 3))
                             for b in big(a["B"])])), "B": exact(big(a["B"]) + 3)
    })

row(
    "products_scaled_and_shifted",
    product_kernel("const f32 A[M, K], const i8 Q[K, N], const f32 scale[G, N], f32 C[M, N]", "A[m +: 16, k +: 16] * 2",
                   "((f32)Q[k +: 16, n +: 32] - 1) * scale[k / 32, n +: 32]", "C[m +: 16, n +: 32] = max(acc, 0);"),
    {
        "A": few("f32", 21, 35, 64), "Q": few("i8", 22, 64, 50), "scale": few("f32", 23, 2, 50), "C": poison(
            "f32", 35, 50)
    }, lambda a: {"C": exact(np.maximum(2 * big(a["A"]) @ ((big(a["Q"]) - 1) * np.repeat(big(a["scale"]), 32, 0)), 0))})

row(
    "products_two_stores",
    product_kernel("const f32 A[M, K], const f32 B[K, N], f32 C[M, N], f32 D[P, N]", then="""
C[m +: 16, n +: 32] = acc;
D[m +: 16, n +: 32] = acc;
"""), {
        "A": few("f32", 24, 21, 40), "B": with_some(few("f32", 25, 40, 40), np.inf,
                                                    (3, 5)), "C": poison("f32", 21, 40), "D": poison("f32", 30, 40)
    }, lambda a: {"C": exact(product(a["A"], a["B"])), "D": exact(stored_twice(a))})


def stored_twice(a):
    rows = np.zeros((30, 40))
    rows[:21] = big(a["A"])
    with np.errstate(all="ignore"):
        return rows @ big(a["B"])


# Whole tiles are stored by the product itself: what stood there must have been read before.
def over(between, last):
    return product_kernel("const f32 A[M, K], const f32 B[K, N], f32 C[M, N], f32 S[M, T]",
                          before="auto old = C[m +: 16, n +: 32];", first="1", then=f"""
auto s = {between};
C[m +: 16, n +: 32] = acc;
S[m +: 16, pid(1)] = {last};
""")


def of_tiles(c, reduce):
    """What `reduce` makes of each tile of 16 x 32: a number, or one for each row."""
    return np.stack([
        np.concatenate([np.broadcast_to(reduce(big(c)[i:i + 16, j:j + 32]), len(c[i:i + 16])) for i in (0, 16, 32)])
        for j in (0, 32, 64)
    ], 1)


for name, between, last, reduce in (
        ("rows_before", "sum(old, axis = 1)", "s", lambda t: t.sum(1)),
        ("rows_after", "0.0", "sum(old, axis = 1) + s", lambda t: t.sum(1)),
        ("tile_before", "sum(old)", "s", lambda t: t.sum()),
        ("element_before", "C[m, n]", "s", lambda t: t[0, 0])):
    row(f"products_stored_over_what_is_used_{name}", over(between, last), {
        "A": few("f32", 26, 35, 300), "B": few("f32", 27, 300, 80), "C": few("f32", 28, 35, 80), "S": poison(
            "f32", 35, 3)
    }, lambda a, reduce=reduce: {"C": exact(1 + product(a["A"], a["B"])), "S": exact(of_tiles(a["C"], reduce))})

row(
    "products_minus_zero",
    product_kernel(
        "const f32 A[M, K], const f32 B[K, N], f32 C[M, N], const f32 none[Z, N]", first="-0.0", then="""
tile<f32, 16, 32> still = -0.0;
for (int k : range(0, Z, 16))
    still = dot(A[m +: 16, k +: 16], none[k +: 16, n +: 32], still);
C[m +: 16, n +: 32] = 1 / acc + 1 / still;
"""), {
            "A": Arr("f32", np.full((20, 16), -0.0, np.float32)), "B": Arr("f32", np.ones(
                (16, 40), np.float32)), "C": poison("f32", 20, 40), "none": poison("f32", 0, 40)
        }, lambda a: {"C": exact(np.full((20, 40), -np.inf))}, warps=8, stages=3)


# One loop of products after the other, of any numbers of trips: what counts how many are done, where products are
# asynchronous, goes on from the first to the second.
TWO_LOOPS = """
kernel k(const u8 A[M, K], const u8 B[N, K], const {t} C[M, L], const {t} D[L, P], i32 X[M, N], f32 Y[M, P])
    grid(cdiv(M, 64))
    require(N <= 32)
    require(P <= 256)
{{
    int m = pid(0) * 64;
    tile<i32, 64, 32> x;
    for (int k : range(0, K, 64)) {hint}
        x = dot(A[m +: 64, k +: 64], trans(B[0 +: 32, k +: 64]), x);
    tile<f32, 64, 256> y;
    for (int k : range(0, L, 64)) {hint}
        y = dot(C[m +: 64, k +: 64], D[k +: 64, 0 +: 256], y);
    X[m +: 64, 0 +: 32] = x;
    Y[m +: 64, 0 +: 256] = y;
}}
"""
for t, hint, first, second, stages in (("f8e4m3", "specialize", 192, 112, 2), ("f16", "pipeline", 192, 112, 2),
                                       ("f16", "pipeline(3)", 320, 70, 3), ("bf16", "pipeline", 130, 250, 2)):
    row(f"products_two_loops_{t}_{first}x{second}", TWO_LOOPS.format(t=t, hint=hint), {
        "A": ints("u8", 31, 0, 5, 71, first), "B": ints("u8", 32, 0, 5, 29, first), "C": few(t, 33, 71, second),
        "D": few(t, 34, second, 131), "X": poison("i32", 71, 29), "Y": poison("f32", 71, 131)
    }, lambda a: {"X": exact(product(a["A"], a["B"].T)), "Y": exact(product(a["C"], a["D"]))},
        warps=4, stages=stages)

# A loop of products, one product of its own begun behind it, and both awaited together: again and again, so that
# what counts asynchronous products comes round.
LOOP_AND_ONE = """
kernel k(const {t} A[M, K], const {t} B[K, N], const {t} C[M, L], const {t} D[L, N], f32 X[M, N])
    grid(1)
    require(N <= 64)
    require(L <= 64)
{{
    for (int m : range(0, M, 64)) {{
        tile<f32, 64, 64> x;
        for (int k : range(0, K, 32)) {hint}
            x = dot(A[m +: 64, k +: 32], B[k +: 32, 0 +: 64], x);
        auto y = dot(C[m +: 64, 0 +: 64], D[0 +: 64, 0 +: 64]);
        X[m +: 64, 0 +: 64] = x * y;
    }}
}}
"""
for t, hint, k, stages in (("f16", "specialize", 96, 2), ("f16", "pipeline", 64, 2), ("bf16", "pipeline(3)", 70, 3),
                           ("f8e5m2", "specialize", 130, 3)):
    row(f"products_loop_and_one_{t}_{k}", LOOP_AND_ONE.format(t=t, hint=hint), {
        "A": few(t, 41, 300, k), "B": few(t, 42, k, 61), "C": few(t, 43, 300, 50), "D": few(t, 44, 50, 61),
        "X": poison("f32", 300, 61)
    }, lambda a: {"X": exact(product(a["A"], a["B"]) * product(a["C"], a["D"]))}, warps=4, stages=stages)

# Pairs along k of i8 and u8, as x86-64 sums them: all values, odd extents, steps that are odd or 2, columns from 1 to
# 70, blocks that
# begin at odd k, and trips that do not fill a chunk.
def pairs(ta, tb, bm, bn, bk):
    return product_kernel(f"const {ta} A[M, K], const {tb} B[K, N], i32 C[M, N], int first", block=(bm, bn, bk),
                          acc="i32", first="7", over=f"first, K, {bk}")


for ta, tb, (m, n, k), (bm, bn, bk), first in (
        ("i8", "i8", (37, 53, 71), (16, 32, 16), 0),
        ("u8", "u8", (37, 53, 71), (16, 32, 16), 1),
        ("i8", "u8", (20, 70, 1201), (32, 64, 32), 3),
        ("u8", "i8", (20, 70, 1201), (32, 64, 32), -5),
        ("i8", "i8", (11, 40, 33), (16, 40, 3), 0),
        ("i8", "u8", (11, 40, 33), (16, 48, 2), 1),
        ("i8", "i8", (7, 1, 50), (8, 1, 8), 0),
        ("u8", "i8", (7, 3, 50), (8, 2, 8), 0),
        ("i8", "i8", (7, 9, 50), (8, 4, 6), 1),
        ("i8", "u8", (1, 1, 1), (4, 16, 4), 0),
        ("i8", "i8", (3, 5, 0), (4, 16, 4), 0),
        ("u8", "u8", (70, 9, 640), (64, 8, 64), 0)):
    row(f"products_pairs_{ta}_{tb}_{m}x{n}x{k}_by_{bm}x{bn}x{bk}", pairs(ta, tb, bm, bn, bk),
        {"A": random_bits(ta, 40, m, k), "B": random_bits(tb, 41, k, n), "C": poison("i32", m, n), "first": first},
        lambda a: {"C": exact(7 + big(a["A"])[:, max(0, a["first"]):] @ big(a["B"])[max(0, a["first"]):])})

row(
    "products_pairs_of_the_least", pairs("i8", "i8", 16, 16, 16), {
        "A": Arr("i8", np.full((20, 300), -128, np.int8)), "B": Arr("i8", np.full(
            (300, 20), -128, np.int8)), "C": poison("i32", 20, 20), "first": 0
    }, lambda a: {"C": exact(np.full((20, 20), 7 + 300 * 128 * 128))})

row(
    "products_pairs_computed", """
kernel k(const i8 A[M, K], const i4 Q[K, N], const i8 shift[N], const i8 last[M, N], i32 C[M, N])
    grid(cdiv(M, 16), cdiv(N, 32))
{
    int m = pid(0) * 16;
    int n = pid(1) * 32;
    auto acc = (i32)last[m +: 16, n +: 32];
    for (int k : range(0, K, 16))
        acc = dot(A[m +: 16, k +: 16] * 3, (i8)Q[k +: 16, n +: 32] + row(shift[n +: 32]), acc);
    C[m +: 16, n +: 32] = acc >> 1;
}
""", {
        "A": few("i8", 42, 21, 70), "Q": Arr("i4",
                                             np.random.default_rng(43).integers(0, 256, (70, 18), dtype=np.uint8)),
        "shift": few("i8", 44, 36), "last": few("i8", 45, 21, 36), "C": poison("i32", 21, 36)
    }, lambda a: {"C": exact((3 * big(a["A"]) @ (big(a["Q"]) + big(a["shift"])) + big(a["last"])) >> 1)})

# Pairs of bf16, which some CPUs sum at once: an element of the next row, here infinite, must not become the other half
# of a row's last one.
for (m, n, k), (bm, bn, bk), first in (((37, 53, 71), (16, 32, 16), 0), ((37, 53, 72), (16, 32, 16), 0),
                                       ((20, 70, 1201), (32, 64, 32), 3), ((20, 70, 1202), (32, 64, 32), -5),
                                       ((11, 40, 33), (16, 40, 3), 0), ((11, 40, 33), (16, 48, 2), 1),
                                       ((7, 1, 50), (8, 1, 8), 0), ((7, 3, 51), (8, 2, 8), 0),
                                       ((2, 1, 1), (4, 16, 4), 0), ((3, 5, 0), (4, 16, 4), 0),
                                       ((70, 9, 641), (64, 8, 64), 0), ((64, 64, 128), (64, 64, 64), 0)):
    row(
        f"products_bf16_pairs_{m}x{n}x{k}_by_{bm}x{bn}x{bk}",
        product_kernel("const bf16 A[M, K], const bf16 B[K, N], f32 C[M, N]", block=(bm, bn, bk), first="7",
                       over=f"{first}, K, {bk}"), {
                           "A": with_some(few("bf16", 46, m, k), np.inf, *[(m - 1, 0)] *
                                          (k > 0)), "B": few("bf16", 47, k, n), "C": poison("f32", m, n)
                       }, lambda a, k=max(0, first): {"C": exact(7 + product(a["A"][:, k:], a["B"][k:]))})

# Operands of which columns lie in memory without gaps: by trans, or as a view says. They are packed by blocks that are
# turned in
# registers where the extents suit, else one by one.
WAYS = {
    "plain": ("{x}, {y}", "{cast}{v}[{i}, {j}]", lambda s: s),
    "trans": ("{y}, {x}", "trans({cast}{v}[{j}, {i}])", lambda s: np.ascontiguousarray(s.T)),
    "columns": ("{x} : 1, {y} : ld{v}", "{cast}{v}[{i}, {j}]", np.asfortranarray),
    "twice": ("{y} : 1, {x} : ld{v}", "trans({cast}{v}[{j}, {i}])", lambda s: np.asfortranarray(s.T)),
    "any": ("{x} : s{v}, {y} : t{v}", "{cast}{v}[{i}, {j}]", np.asfortranarray)
}


def turned(name, way_a, way_b, ta, tb, acc, shape, block, first=0, cast=None, options=(), warps=0):
    (m, n, k), (bm, bn, bk) = shape, block
    (pa, ea, fa), (pb, eb, fb) = WAYS[way_a], WAYS[way_b]
    a = ea.format(v="A", i=f"m +: {bm}", j=f"k +: {bk}", cast="")
    b = eb.format(v="B", i=f"k +: {bk}", j=f"n +: {bn}", cast=f"({cast})" if cast else "")
    A, B = few(ta, 50, m, k), few(tb, 51, k, n)
    of_a, of_b = pa.format(x="M", y="K", v="A"), pb.format(x="K", y="N", v="B")
    of = f"const {ta} A[{of_a}], const {tb} B[{of_b}], {acc} C[M, N]"
    source = product_kernel(of, a, b, block=block, acc=acc, over=f"{first}, K, {bk}", loop=" pipeline" if warps else "")
    start = max(0, first)
    want = big(wide(A))[:, start:] @ big(wide(B))[start:]
    row(f"products_turned_{name}", source,
        {"A": Arr(ta, fa(A.store)), "B": Arr(tb, fb(B.store)), "C": poison(acc, m, n)}, lambda v: {"C": exact(want)},
        options=options, big=m * n * k > 1 << 22, warps=warps, stages=3 if warps else 0)


for t, acc in (("f32", "f32"), ("f64", "f64"), ("f16", "f32"), ("bf16", "f32"), ("f8e4m3", "f32"), ("f8e5m2", "f32"),
               ("i8", "i32"), ("u8", "i32")):
    for way_a, way_b in (("plain", "trans"), ("trans", "plain"), ("trans", "trans"), ("columns", "columns")):
        turned(f"{t}_{way_a}_{way_b}", way_a, way_b, t, t, acc, (37, 53, 70), (16, 32, 16))
    turned(f"{t}_by_odd_blocks", "trans", "trans", t, t, acc, (23, 21, 31), (12, 20, 6), first=1)
for i, (shape, block, first) in enumerate(
    (
        ((5, 100, 601), (32, 64, 32), 0), ((130, 7, 300), (64, 8, 8), -3), ((1, 1, 1), (16, 16, 16), 0),
        ((9, 40, 0), (16, 16, 16), 0), ((19, 40, 33), (19, 40, 3), 0), ((70, 530, 900), (64, 512, 64), 0),
        ((33, 4, 50), (32, 4, 4), 5), ((8, 2, 9), (8, 2, 2), 0), ((4, 34, 40), (4, 1, 8), 0),
        ((6, 34, 40), (1, 16, 8), 0))):
    for t, acc in (("f32", "f32"), ("i8", "i32")):
        turned(f"{t}_of_extents_{i}", "plain", "trans", t, t, acc, shape, block, first)
        turned(f"{t}_both_of_extents_{i}", "trans", "columns", t, t, acc, shape, block, first)
turned("i8_with_u8", "plain", "trans", "i8", "u8", "i32", (37, 53, 70), (16, 32, 16))
# Bytes that lie along M or N, on the way to matrix instructions: Blackwell's ldmatrix transposes them. Whole rows of 16
# bytes, and not; one row, one column, no k.
for i, (shape, block, warps) in enumerate((((70, 96, 80), (64, 64, 64), 4), ((64, 64, 64), (32, 32, 32), 1),
                                           ((45, 61, 70), (32, 64, 32), 2), ((1, 48, 64), (16, 32, 32), 2),
                                           ((80, 1, 33), (64, 16, 32), 4), ((48, 112, 96), (48, 48, 32), 1),
                                           ((32, 48, 0), (32, 32, 32), 4), ((130, 144, 96), (64, 128, 32), 8))):
    for t, u, acc, cast in (("i8", "i8", "i32", None), ("i8", "u8", "i32", None), ("f8e4m3", "f8e5m2", "f32", None),
                            ("f16", "i8", "f32", "f16")):
        turned(f"bytes_{t}_{u}_{i}", "plain", "plain", t, u, acc, shape, block, cast=cast, warps=warps)
        turned(f"bytes_both_{t}_{u}_{i}", "trans", "plain", t, u, acc, shape, block, cast=cast, warps=warps)
turned("widened", "plain", "trans", "f32", "i8", "f32", (37, 53, 70), (16, 32, 16), cast="f32")
turned("twice", "twice", "twice", "f32", "f32", "f32", (37, 53, 70), (16, 32, 16))
turned("any_strides", "any", "any", "f32", "f32", "f32", (37, 53, 70), (16, 32, 16))
turned("any_strides_i8", "any", "any", "i8", "i8", "i32", (37, 53, 70), (16, 32, 16))
turned("widened_columns", "columns", "columns", "f32", "bf16", "f32", (37, 53, 70), (16, 32, 16), cast="f32")
for i, block in enumerate(((16, 32, 16), (64, 8, 8), (12, 20, 6), (8, 4, 1))):
    turned(f"checked_{i}", "plain", "trans", "f32", "f32", "f32", (37, 53, 70), block, options=["--check"])
    turned(f"both_checked_{i}", "trans", "columns", "f32", "f32", "f32", (37, 53, 70), block, options=["--check"])

row(
    "products_turned_and_scaled",
    product_kernel("const f32 A[M, K], const f32 B[N, K], const f32 scale[K], f32 C[M, N]",
                   "A[m +: 16, k +: 16] * row(scale[k +: 16])", "trans(B[n +: 32, k +: 16])"),
    {"A": few("f32", 63, 21, 50), "B": few("f32", 64, 40, 50), "scale": few("f32", 65, 50), "C": poison("f32", 21, 40)},
    lambda a: {"C": exact(big(a["A"]) * big(a["scale"]) @ big(a["B"]).T)})

row("products_turned_keys_of_heads", """
kernel k(const f32 Q[H, M, D], const f32 K[G, N, D], f32 S[H, M, N])
    grid(cdiv(M, 16), cdiv(N, 32), H)
{
    int m = pid(0) * 16;
    int n = pid(1) * 32;
    int h = pid(2);
    tile<f32, 16, 32> acc = 0;
    for (int d : range(0, D, 16))
        acc = dot(Q[h, m +: 16, d +: 16], trans(K[h / 2, n +: 32, d +: 16]), acc);
    S[h, m +: 16, n +: 32] = acc;
}
""", {"Q": few("f32", 52, 5, 20, 40), "K": few("f32", 53, 3, 50, 40), "S": poison("f32", 5, 20, 50)},
    lambda a: {"S": exact(np.stack([big(a["Q"])[i] @ big(a["K"])[i // 2].T for i in range(5)]))})

# What is outside is 0, and infinity times 0 is seen; B has another k than A; B is written before; the loop's k does not
# tell B's rows.
row(
    "products_turned_infinity",
    product_kernel("const f32 A[M, K], const f32 B[N, L], f32 C[M, N]", b="trans(B[n +: 32, k +: 16])"), {
        "A": few("f32", 54, 21, 40), "B": with_some(few("f32", 55, 50, 45), np.inf, (3, 5), (49, 39),
                                                    (7, 43)), "C": poison("f32", 21, 50)
    }, lambda a: {"C": exact(longer_by_rows(a))})


def longer_by_rows(a):
    rows = np.zeros((21, 45))
    rows[:, :40] = big(a["A"])
    with np.errstate(all="ignore"):
        return rows @ big(a["B"]).T


row(
    "products_turned_by_table",
    product_kernel("const f32 A[M, K], const f32 B[N, L], const i32 page[P, T], f32 C[M, N]",
                   b="trans(B[n +: 32, page[pid(0), k / 16] * 16 +: 16])"),
    {
        "A": few("f32", 56, 48, 64), "B": Arr("f32", np.ascontiguousarray(few("f32", 57, 128, 40).store.T)),
        "C": poison("f32", 48, 40), "page": Arr("i32", np.array([[0, 3, 1, 2], [0, 7, 5, 6], [0, 1, 2, 3]], np.int32))
    }, lambda a: {"C": exact(by_table(dict(a, B=a["B"].T)))})

row(
    "products_turned_b_is_written", """
kernel k(const f32 A[M, K], f32 B[P, N, K], f32 C[P, M, N])
    grid(P)
{
    int p = pid(0);
    for (int turn : range(0, 3)) {
        for (int k : range(0, K, 16))
            B[p, 0 +: 32, k +: 16] += 1;
        tile<f32, 16, 32> acc = 0;
        for (int k : range(0, K, 16))
            acc = dot(A[0 +: 16, k +: 16], trans(B[p, 0 +: 32, k +: 16]), acc);
        C[p, 0 +: 16, 0 +: 32] += acc;
    }
}
""", {"A": few("f32", 58, 10, 40), "B": few("f32", 59, 3, 30, 40), "C": Arr("f32", np.zeros((3, 10, 30), np.float32))},
    lambda a: {
        "C": exact(np.stack([sum(big(a["A"]) @ (b.T + i) for i in (1, 2, 3))
                             for b in big(a["B"])])), "B": exact(big(a["B"]) + 3)
    })

# B is computed while it is packed: from few bits and scales, by a scalar of each program; A has an end that B, computed
# from what is outside, has not.
row(
    "products_computed_from_few_bits",
    product_kernel("const f32 A[M, K], const u4 W[N, K], const i8 s[N, G], const i8 z[P], f32 C[P, M, N]",
                   grid="cdiv(M, 16), cdiv(N, 32), P", before="i32 by = (i32)z[pid(2)];",
                   b="trans(((f32)W[n +: 32, k +: 16] - 8) * (f32)s[n +: 32, k / 32 +: 1] * (f32)by)",
                   then="C[pid(2), m +: 16, n +: 32] = acc;"),
    {
        "A": few("f32", 90, 41, 72), "W": random_bits("u4", 91, 38, 36), "s": small("i8", 92, 38, 3), "z": small(
            "i8", 93, 3), "C": poison("f32", 3, 41, 38)
    }, lambda a: {
        "C": exact(
            np.stack(
                [big(a["A"]) @ ((big(a["W"]) - 8) * np.repeat(big(a["s"]), 32, 1)[:, :72] * z).T for z in big(a["z"])]))
    })
row("products_computed_without_end",
    product_kernel("const f32 A[M, K], const f32 W[N, K], f32 C[M, N]", b="trans(1 / W[n +: 32, k +: 16])"),
    {"A": few("f32", 94, 20, 40), "W": Arr("f32", np.full(
        (38, 40), 0.5, np.float32)), "C": poison("f32", 20, 38)}, lambda a: {"C": exact(np.full((20, 38), np.nan))})

# An operand in a trip that is used twice, or turned outside of the loop, is no load that is packed.
row(
    "products_turned_and_used", """
kernel k(const f32 A[M, K], const f32 B[N, K], const f32 Q[D, M], f32 C[M, N], f32 S[N])
    grid(cdiv(N, 32))
{
    int n = pid(0) * 32;
    tile<f32, 16, 32> acc = 0;
    tile<f32, 32> total = 0;
    for (int k : range(0, K, 16)) {
        auto b = B[n +: 32, k +: 16];
        acc = dot(A[0 +: 16, k +: 16], trans(b), acc);
        total += sum(b, axis = 1);
    }
    auto q = trans(Q[0 +: 16, 0 +: 16]);
    for (int k : range(0, 3))
        acc = dot(q, trans(B[n +: 32, k * 16 +: 16]), acc);
    C[0 +: 16, n +: 32] = acc;
    S[n +: 32] = total;
}
""", {
        "A": few("f32", 60, 13, 40), "B": few("f32", 61, 50, 40), "Q": few("f32", 62, 10, 13), "C": poison(
            "f32", 13, 50), "S": poison("f32", 50)
    }, lambda a: {"C": exact(big(a["A"]) @ big(a["B"]).T + turned_thrice(a)), "S": exact(big(a["B"]).sum(1))})


def turned_thrice(a):
    b = np.zeros((50, 64))
    b[:, :40] = big(a["B"])
    q = np.zeros((13, 16))
    q[:, :10] = big(a["Q"]).T
    return sum(q @ b[:, 16 * k:16 * k + 16].T for k in range(3))


# Loops around that pass the sum on: the rows of A and the chunks of B change with them.
def convolution(loops, at_row, at_column, tap, more="", seen="y[i, j +: 16, o +: 32] = acc;", begin=1):
    nest = "".join("    " * depth + f"    for (int {name} : range({over}))\n"
                   for depth, (name, over) in enumerate(loops))
    return f"""
kernel k(const f32 x[P, Q, I], const f32 w[T, I, O], f32 y[H, W, O]{more})
    grid(cdiv(W, 16), H, cdiv(O, 32))
{{
    int j = pid(0) * 16;
    int i = pid(1);
    int o = pid(2) * 32;
    tile<f32, 16, 32> acc = {begin};
{nest}        for (int c : range(0, I, 16))
            acc = dot(x[i + {at_row}, j + {at_column} +: 16, c +: 16], w[{tap}, c +: 16, o +: 32], acc);
    {seen}
}}
"""


def convolved(a, taps, columns, begin=1):
    """taps: (row, column, tap); rows and columns of x outside are zeros."""
    x, w = big(a["x"]), big(a["w"])
    p, q, _ = x.shape
    y = np.full((a["y"].shape[0], columns, w.shape[2]), float(begin))
    with np.errstate(all="ignore"):
        for i in range(y.shape[0]):
            for dy, dx, t in taps:
                rows = np.array(
                    [x[i + dy, j + dx] if 0 <= i + dy < p and 0 <= j + dx < q else 0 * x[0, 0] for j in range(columns)])
                y[i] += rows @ w[t]
    return y


NINE = [(t // 3, t % 3, t) for t in range(9)]
OWN_BORDER = (5, 39, 40), [("t", "0, 9")], "t / 3", "t % 3", "t", NINE
NO_BORDER = (3, 37, 40), [("t", "0, 9")], "t / 3 - 1", "t % 3 - 1", "t", [(r - 1, c - 1, t) for r, c, t in NINE]
TWO_LOOPS = (3, 37, 300), [("u", "0, 3"),
                           ("v", "2, -1, -1")], "u - 1", "v - 1", "u * 3 + v", [(r - 1, c - 1, t) for r, c, t in NINE]
ONE_FILTER = (4, 40, 33), [("t", "0, 4")], "t % 2", "t", "2", [(t % 2, t, 2) for t in range(4)]
MANY = (3, 60, 20), [("t", "0, 70, 2")], "0", "t % 5", "t", [(0, t % 5, t) for t in range(0, 70, 2)]
for what, ((p, q, depth), loops, at_row, at_column, tap,
           taps) in (("own_border", OWN_BORDER), ("no_border", NO_BORDER), ("two_loops", TWO_LOOPS),
                     ("one_filter", ONE_FILTER), ("many_taps", MANY)):
    row(f"products_around_{what}", convolution(loops, at_row, at_column, tap),
        {"x": few("f32", 60, p, q, depth), "w": few("f32", 61, 70, depth, 45), "y": poison("f32", 3, 37, 45)},
        lambda a, taps=taps: {"y": exact(convolved(a, taps, 37))}, big=depth > 100)
    # Sums that begin at zero stay in registers over several trips.
    row(f"products_around_{what}_from_zero", convolution(loops, at_row, at_column, tap, begin=0),
        {"x": few("f32", 60, p, q, depth), "w": few("f32", 61, 70, depth, 45), "y": poison("f32", 3, 37, 45)},
        lambda a, taps=taps: {"y": exact(convolved(a, taps, 37, begin=0))}, big=depth > 100)

row(
    "products_around_outside_is_seen",
    convolution(
        *NO_BORDER[1:5], ", f32 s[G, O]", """
    y[i, j +: 16, o +: 32] = acc;
    s[i * cdiv(W, 16) + pid(0), o +: 32] = sum(acc, axis = 0);
"""), {
            "x": few("f32", 62, 3, 37, 20), "w": with_some(few("f32", 63, 9, 20, 45), np.inf, (4, 3, 5)), "y": poison(
                "f32", 3, 37, 45), "s": poison("f32", 9, 45)
        }, lambda a: (lambda y: {"y": exact(y[:, :37]), "s": exact(y.reshape(9, 16, 45).sum(axis=1))})
    (convolved(a, NO_BORDER[5], 48)))


# The loop moves A's rows, and all of its k are in each iteration: where rows are as far apart as the tile is deep, the
# CPU reads iterations where they lie, one after the other; where they are not, where channels or rows are outside, or
# rows go up, it packs them.
def rows_that_move(t, acc, depth, taps, at, first_channel=0, index="int"):
    return f"""
kernel k(const {t} x[P, Q, I], const {t} w[U, T, {depth}, O], {acc} y[H, W, O])
    grid(cdiv(W, 16), H, cdiv(O, 32))
{{
    {index} j = ({index})(pid(0) * 16);
    int i = pid(1);
    int o = pid(2) * 32;
    tile<{acc}, 16, 32> acc = 0;
    for (int u : range(2)) {{
        for ({index} v : range({taps}))
            acc = dot(x[i + u, {at} +: 16, {first_channel} +: {depth}], w[u, v, 0 +: {depth}, o +: 32], acc);
    }}
    y[i, j +: 16, o +: 32] = acc;
}}
"""


def moved(a, at, taps, first_channel):
    x, w = big(a["x"]), big(a["w"])
    y = np.zeros(a["y"].shape)
    depth = w.shape[2]
    x = np.pad(x, ((0, 2), (40, 60), (40, depth + 40)))[:, :, 40 + first_channel:40 + first_channel + depth]
    for i in range(y.shape[0]):
        for u in range(2):
            for v in taps:
                rows = x[i + u, 40 + at(v):][:y.shape[1]]
                y[i] += rows @ w[u, v]
    return y


SIDE_BY_SIDE = "3", range(3), "j + v", lambda v: v
ONE_BEFORE = "5", range(5), "j - 1 + v", lambda v: v - 1
TWICE = "0, 7, 2", range(0, 7, 2), "v * 2 + j", lambda v: 2 * v
DOWNWARDS = "4, 0, -1", range(4, 0, -1), "j + v", lambda v: v
for t, acc in (("f32", "f32"), ("f64", "f64"), ("bf16", "f32"), ("i8", "i32")):
    for what, channels, depth, first, (taps, numbers, at, place), index in (
        ("inside", 16, 16, 0, SIDE_BY_SIDE, "int"), ("apart", 24, 16, 0, SIDE_BY_SIDE, "int"),
        ("of_later_channels", 24, 16, 8, SIDE_BY_SIDE, "int"), ("past_channels", 16, 16, 4, SIDE_BY_SIDE, "int"),
        ("before_channels", 16, 16, -4, SIDE_BY_SIDE, "int"), ("before_the_first", 16, 16, 0, ONE_BEFORE, "int"),
        ("four_at_a_time", 4, 16, 0, TWICE, "int"), ("one_deep", 1, 1, 0, SIDE_BY_SIDE, "i64"),
        ("six_deep", 6, 6, 0, TWICE, "i16"), ("downwards", 16, 16, 0, DOWNWARDS, "int"),
        ("many_deep", 300, 300, 0, SIDE_BY_SIDE, "int")):
        for size in (37, 64) if t == "f32" else (37,):
            row(f"products_of_rows_that_move_{t}_{what}_{size}",
                rows_that_move(t, acc, depth, taps, at, first, index), {
                    "x": few(t, 90, 4, size, channels), "w": few(t, 91, 2, max(numbers) + 1, depth, 40), "y": poison(
                        acc, 3, size - 2, 40)
                }, lambda a, place=place, numbers=numbers, first=first: {"y": exact(moved(a, place, numbers, first))},
                big=depth > 100)
