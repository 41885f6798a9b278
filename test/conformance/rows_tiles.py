"""Products that AMX multiplies by tiles, 16 rows by 64 bytes (codegen/cpu/cpu_tiles.c): bytes of both signs and bf16;
extents that no tile divides; few rows; tiles that are less deep; what is right behind an operand in memory. On a CPU
without AMX they are products like others; test/codegen/cpu/tiles_rows.test runs them with emulated instructions."""
import numpy as np

from product_kernel import product_kernel
from rows import row
from values import Arr, exact, poison, random_bits, small, store, wide, zeros

SUMS = {"i8": "i32", "u8": "i32", "bf16": "f32"}
PAIRS = (("i8", "i8"), ("i8", "u8"), ("u8", "i8"), ("u8", "u8"), ("bf16", "bf16"))


def data(t, seed, *shape):
    """Bytes of all values; bf16 whose sums are exact."""
    return small(t, seed, *shape, lo=-3, hi=4) if t == "bf16" else random_bits(t, seed, *shape)


def wide_of(x, acc):
    return x.astype(np.float64 if acc == "f32" else np.int64)


def product(a, b, acc):
    return wide_of(a, acc) @ wide_of(b, acc)


def head(ta, tb, acc, a="M, K", b="K, N", c="M, N", more=""):
    return f"const {ta} A[{a}], const {tb} B[{b}], {acc} C[{c}]{more}"


def gemm(name, ta, tb, m, n, k, block, **said):
    acc = SUMS[ta]
    row(f"amx_{name}_{ta}_{tb}_{m}x{n}x{k}", product_kernel(head(ta, tb, acc), block=block, acc=acc, **said),
        {"A": data(ta, 1, m, k), "B": data(tb, 2, k, n), "C": poison(acc, m, n)},
        lambda a: {"C": exact(product(a["A"], a["B"], acc))})


for ta, tb in PAIRS:
    deep = 64 if ta != "bf16" else 32
    gemm("odd", ta, tb, 101, 83, 150, (64, 64, deep))
    gemm("one_column_of_tiles", ta, tb, 45, 16, 5 * deep, (48, 16, deep))
    gemm("three_columns", ta, tb, 33, 48, 130, (32, 48, 2 * deep))
    for m in (1, 2, 3, 5, 17):
        gemm("few_rows", ta, tb, m, 64, 2 * deep, (32, 64, deep))

# Iterations that are no whole number of tiles along k: whole chunks are, and those that are not have smaller tiles.
for ta, tb, deep in (("i8", "i8", 32), ("i8", "u8", 40), ("bf16", "bf16", 48), ("u8", "u8", 4)):
    for k in (4 * deep, 5 * deep, 5 * deep - 3):
        gemm(f"by_{deep}", ta, tb, 40, 40, k, (48, 32, deep))

# Operands of which k is the last axis, and the first.
for ta, tb in PAIRS:
    acc = SUMS[ta]
    for turned_a, turned_b in ((False, True), (True, False), (True, True)):
        row(f"amx_turned_{'a' * turned_a}{'b' * turned_b}_{ta}_{tb}",
            product_kernel(head(ta, tb, acc, "K, M" if turned_a else "M, K", "N, K" if turned_b else "K, N"),
                           a="trans(A[k +: 64, m +: 32])" if turned_a else "A[m +: 32, k +: 64]",
                           b="trans(B[n +: 64, k +: 64])" if turned_b else "B[k +: 64, n +: 64]", block=(32, 64, 64),
                           acc=acc),
            {"A": data(ta, 3, *((150, 50) if turned_a else (50, 150))),
             "B": data(tb, 4, *((70, 150) if turned_b else (150, 70))), "C": poison(acc, 50, 70)},
            lambda a, ta=turned_a, tb=turned_b, acc=acc:
                {"C": exact(product(a["A"].T if ta else a["A"], a["B"].T if tb else a["B"], acc))})

# Sums that begin with something; no iteration; an epilogue; batches; parts of k in programs of their own.
for ta, tb in PAIRS:
    acc = SUMS[ta]
    inputs = {"A": data(ta, 5, 40, 200), "B": data(tb, 6, 200, 90)}
    row(f"amx_added_{ta}_{tb}",
        product_kernel(head(ta, tb, acc, more=f", const {acc} D[M, N]"), block=(32, 32, 64), acc=acc,
                       first="D[m +: 32, n +: 32]"),
        {**inputs, "C": poison(acc, 40, 90), "D": small(acc, 7, 40, 90)},
        lambda a, acc=acc: {"C": exact(product(a["A"], a["B"], acc) + wide_of(a["D"], acc))})
    row(f"amx_none_{ta}_{tb}",
        product_kernel(head(ta, tb, acc, more=", i32 end"), block=(32, 32, 64), acc=acc, over="0, end, 64", first="7"),
        {**inputs, "C": poison(acc, 40, 90), "end": 0},
        lambda a, acc=acc: {"C": exact(0 * product(a["A"], a["B"], acc) + 7)})
    row(f"amx_then_{ta}_{tb}",
        product_kernel(head(ta, tb, acc, more=f", const {acc} D[N]"), block=(32, 32, 64), acc=acc,
                       then="C[m +: 32, n +: 32] = max(acc + row(D[n +: 32]), 0) * 2;"),
        {**inputs, "C": poison(acc, 40, 90), "D": small(acc, 8, 90)},
        lambda a, acc=acc: {"C": exact(np.maximum(product(a["A"], a["B"], acc) + wide_of(a["D"], acc), 0) * 2)})
    row(f"amx_batches_{ta}_{tb}",
        product_kernel(head(ta, tb, acc, "L, M, K", "L, K, N", "L, M, N"), a="A[pid(2), m +: 32, k +: 64]",
                       b="B[pid(2), k +: 64, n +: 32]", block=(32, 32, 64), acc=acc, grid="cdiv(M, 32), cdiv(N, 32), L",
                       then="C[pid(2), m +: 32, n +: 32] = acc;"),
        {"A": data(ta, 9, 3, 20, 130), "B": data(tb, 10, 3, 130, 40), "C": poison(acc, 3, 20, 40)},
        lambda a, acc=acc: {"C": exact(product(a["A"], a["B"], acc))})
    row(f"amx_parts_of_k_{ta}_{tb}",
        product_kernel(head(ta, tb, acc), block=(32, 32, 64), acc=acc,
                       over="pid(2) * 128, min(K, pid(2) * 128 + 128), 64",
                       grid="cdiv(M, 32), cdiv(N, 32), cdiv(K, 128)", then="atomic_add(C[m +: 32, n +: 32], acc);"),
        {**inputs, "C": zeros(acc, 40, 90)}, lambda a, acc=acc: {"C": exact(product(a["A"], a["B"], acc))})
    # Taps: chunks of the iterations of a loop around are multiplied together.
    row(f"amx_taps_{ta}_{tb}",
        "\n".join([f"kernel k({head(ta, tb, acc, 'T, M, K', 'T, K, N')}) grid(cdiv(M, 32), cdiv(N, 32))", "{",
                   "    int m = pid(0) * 32;", "    int n = pid(1) * 32;", f"    tile<{acc}, 32, 32> acc = 0;",
                   "    for (int t : range(0, T)) {", "        for (int k : range(0, K, 64))",
                   "            acc = dot(A[t, m +: 32, k +: 64], B[t, k +: 64, n +: 32], acc);", "    }",
                   "    C[m +: 32, n +: 32] = acc;", "}", ""]),
        {"A": data(ta, 11, 5, 40, 128), "B": data(tb, 12, 5, 128, 90), "C": poison(acc, 40, 90)},
        lambda a, acc=acc: {"C": exact(product(a["A"], a["B"], acc).sum(0))})


# Rows of A and B lie in longer rows, and what is behind them is NaN.
def behind(t, seed, rows, columns, extra):
    v = np.full((rows, columns + extra), np.nan)
    v[:, :columns] = wide(small(t, seed, rows, columns, lo=-3, hi=4))
    return Arr(t, store(v, t))


row("amx_nan_behind_bf16",
    product_kernel(head("bf16", "bf16", "f32", "M, L", "L, P", "M, N", ", int K"),
                   a="view(raw(A), (M, K), (L, 1))[m +: 32, k +: 64]",
                   b="view(raw(B), (K, N), (P, 1))[k +: 64, n +: 32]", block=(32, 32, 64)),
    {"A": behind("bf16", 13, 40, 100, 28), "B": behind("bf16", 14, 128, 50, 14),
     "C": poison("f32", 40, 50), "K": 100},
    lambda a: {"C": exact(product(a["A"][:, :100], a["B"][:100, :50], "f32"))})
# Groups along k, each with a scale: a product that no loop sums as a whole.
for ta, tb in PAIRS[:4]:
    row(f"amx_groups_{ta}_{tb}",
        product_kernel(head(ta, tb, "f32", more=", const f32 S[cdiv(K, 64), N]"), block=(32, 32, 64), acc="f32")
        .replace("acc = dot(A[m +: 32, k +: 64], B[k +: 64, n +: 32], acc)",
                 "acc += (f32)dot(A[m +: 32, k +: 64], B[k +: 64, n +: 32]) * row(S[k / 64, n +: 32])"),
        {"A": small(ta, 15, 20, 192), "B": small(tb, 16, 192, 40), "C": poison("f32", 20, 40),
         "S": small("f32", 17, 3, 40)},
        lambda a: {"C": exact(sum(product(a["A"][:, 64 * g:64 * g + 64], a["B"][64 * g:64 * g + 64], "f32") * a["S"][g]
                                  for g in range(3)))})
