"""Loops that fetch ahead: what places are computed from, masks, trips that there are not, memory that the loop writes.
Each with 1 to 5 stages on every emulated target (`--devices emu:stages`); otherwise these go round."""
import numpy as np

from product_kernel import product_kernel
from rows import row
from values import exact, ints, poison, small


def total(x):
    return x.astype(np.float64)


# rows of B by an index that is loaded, which itself is found by a loaded index; A by blocks
row(
    "pipeline_indirect", """
kernel k(const f16 A[M, K], const f16 B[R, N], const i32 page[P], const i32 index[I], f32 C[M, N], const int BK = 32)
    grid(cdiv(M, 64)) stages(4)
{
    int m = pid(0) * 64;
    tile<f32, 64, 64> acc = 0;
    int p = 0;
    for (int k : range(0, K, BK)) pipeline {
        auto rows = index[page[p] * BK + iota(BK)];
        acc = dot(A[m +: 64, k +: BK], B[rows, 0 +: 64], acc);
        p += 1;
    }
    C[m +: 64, 0 +: 64] = acc;
}
""", {
        "A": small("f16", 1, 70, 192), "B": small("f16", 2, 50, 64), "page": ints("i32", 3, 0, 7, 6), "index": ints(
            "i32", 4, 0, 50, 7 * 32), "C": poison("f32", 70, 64)
    }, lambda a:
    {"C": exact(total(a["A"]) @ total(a["B"])[np.concatenate([a["index"][32 * p:32 * p + 32] for p in a["page"]])])})

# bytes that become f16 behind the buffer, both ways round
row(
    "pipeline_dequantise",
    product_kernel("const f16 A[M, K], const u8 B[N, K], const f16 scale[N], f32 C[M, N]",
                   b="trans((f16)B[n +: 64, k +: 32] - 3)",
                   then="C[m +: 64, n +: 64] = acc * row((f32)scale[n +: 64]);", block=(64, 64, 32)),
    {
        "A": small("f16", 1, 66, 144), "B": ints("u8", 2, 0, 8, 70, 144), "scale": small("f16", 3, 70), "C": poison(
            "f32", 66, 70)
    }, lambda a: {"C": exact(total(a["A"]) @ (total(a["B"]) - 3).T * total(a["scale"]))})

# copies beside each other, one with an extent of 64 bits, which ends before the loop does: what says that the other is
# inside as a
# whole says nothing of this one
row("pipeline_one_wide_extent", """
kernel k(const f16 A[M, K], const f16 B[i64 L, N], f32 C[M, N], const int BK = 32)
    grid(1)
{
    tile<f32, 64, 64> acc = 0;
    for (int k : range(0, K, BK)) pipeline
        acc = dot(A[0 +: 64, k +: BK], B[k +: BK, 0 +: 64], acc);
    C[0 +: 64, 0 +: 64] = acc;
}
""", {"A": small("f16", 1, 64, 256), "B": small("f16", 2, 104, 64), "C": poison("f32", 64, 64)},
    lambda a: {"C": exact(total(a["A"])[:, :104] @ total(a["B"]))})

# pointers that move with the loop, a mask, a padding value
row(
    "pipeline_pointers", """
kernel k(const f16 A[M, K], const f16 B[K, N], f32 C[M, N])
    grid(1)
{
    const f16 *a = raw(A);
    auto pa = a + (col(iota(64)) * K + row(iota(32)));
    tile<f32, 64, 64> acc = 0;
    for (int k : range(0, K, 32)) pipeline {
        auto x = load(pa, mask = row(k + iota(32)) < K && col(iota(64)) < M, other = 0);
        acc = dot(x, load(B[k +: 32, 0 +: 64], pad = 0.0), acc);
        pa = pa + 32;
    }
    C[0 +: 64, 0 +: 64] = acc;
}
""", {"A": small("f16", 1, 61, 130), "B": small("f16", 2, 130, 60), "C": poison("f32", 61, 60)},
    lambda a: {"C": exact(total(a["A"]) @ total(a["B"]))})

row(
    "pipeline_padding", """
kernel k(const f16 A[M, K], const f16 B[K, N], f32 C[M, N])
    grid(1)
{
    tile<f32, 64, 64> acc = 0;
    for (int k : range(0, K, 32)) pipeline
        acc = dot(load(A[0 +: 64, k +: 32], pad = 1.0), B[k +: 32, 0 +: 64], acc);
    C[0 +: 64, 0 +: 64] = acc;
}
""", {"A": small("f16", 1, 40, 100), "B": small("f16", 2, 100, 64), "C": poison("f32", 40, 64)},
    lambda a: {"C": exact(total(a["A"]) @ total(a["B"]))})

# no trip, one, two, ...; downward; by a step that is known only at run time; each after the other in one program
row(
    "pipeline_trips", """
kernel k(const f16 A[M, K], const f16 B[K, N], f32 C[T, M, N], int step)
    grid(1) stages(5)
{
    for (int t : range(12)) {
        tile<f32, 64, 64> acc = 0;
        for (int k : range(0, t * 32, 32)) pipeline
            acc = dot(A[0 +: 64, k +: 32], B[k +: 32, 0 +: 64], acc);
        for (int k : range(t * 32, 0, -32)) pipeline
            acc = dot(A[0 +: 64, k +: 32], B[k +: 32, 0 +: 64], acc);
        for (int k : range(64, t * 20, step)) pipeline
            acc = dot(A[0 +: 64, k +: 32], B[k +: 32, 0 +: 64], acc);
        C[t, 0 +: 64, 0 +: 64] = acc;
    }
}
""", {
        "A": small("f16", 1, 64, 400, lo=-1, hi=2), "B": small("f16", 2, 400, 64, lo=-1, hi=2), "C": poison(
            "f32", 12, 64, 64), "step": 48
    }, lambda a: {
        "C": exact(
            np.stack([
                sum((total(a["A"])[:, k:k + 32] @ total(a["B"])[k:k + 32]
                     for r in (range(0, 32 * t, 32), range(32 * t, 0, -32), range(64, 20 * t, 48))
                     for k in r), np.zeros((64, 64))) for t in range(12)
            ]))
    })

# what a trip stores is what the next one loads; and a tile that is used as it is and as an operand
row(
    "pipeline_stores", """
kernel k(const f16 A[M, K], f16 B[K, N], f32 C[M, N], f32 sums[M])
    grid(1)
{
    tile<f32, 64, 64> acc = 0;
    tile<f32, 64> all = 0;
    for (int k : range(0, K - 32, 32)) pipeline {
        auto a = A[0 +: 64, k +: 32];
        auto b = B[k +: 32, 0 +: 64];
        acc = dot(a, b, acc);
        all += sum((f32)a, axis = 1);
        B[k + 32 +: 32, 0 +: 64] = b + 1;
    }
    C[0 +: 64, 0 +: 64] = acc;
    sums[0 +: 64] = all;
}
""", {
        "A": small("f16", 1, 64, 160), "B": small("f16", 2, 160, 64), "C": poison("f32", 64, 64), "sums": poison(
            "f32", 64)
    }, lambda a: {
        "C": exact(total(a["A"])[:, :128] @ np.concatenate([total(a["B"])[:32] + i for i in range(4)])), "sums": exact(
            total(a["A"])[:, :128].sum(axis=1))
    })

# one tile for two products, as it is and transposed; a batch
row(
    "pipeline_two_uses", """
kernel k(const f16 A[B, M, K], f32 C[B, M, M], f32 D[B, L, L])
    grid(B)
{
    int b = pid(0);
    tile<f32, 64, 64> c = 0;
    tile<f32, 32, 32> d = 0;
    for (int k : range(0, K, 32)) pipeline {
        auto x = A[b, 0 +: 64, k +: 32];
        c = dot(x, trans(x), c);
        d = dot(trans(x), x, d);
    }
    C[b, 0 +: 64, 0 +: 64] = c;
    D[b, 0 +: 32, 0 +: 32] = d;
}
""", {"A": small("f16", 1, 2, 64, 96), "C": poison("f32", 2, 64, 64), "D": poison("f32", 2, 32, 32)}, lambda a: {
        "C": exact(total(a["A"]) @ total(a["A"]).transpose(0, 2, 1)), "D": exact(
            sum(total(a["A"])[:, :, k:k + 32].transpose(0, 2, 1) @ total(a["A"])[:, :, k:k + 32] for k in (0, 32, 64)))
    })

# no product: plain loads ahead, a transpose through shared memory, a scan over blocks
row(
    "pipeline_plain", """
kernel k(const f32 x[M, N], const i32 at[P], f32 y[N, M], f32 z[M])
    grid(1)
{
    tile<f32, 64> best = -inf;
    int i = 0;
    for (int n : range(0, N, 32)) pipeline(3) {
        auto t = x[0 +: 64, n +: 32];
        y[n +: 32, 0 +: 64] = trans(t);
        best = max(best, max(t, axis = 1) + (f32)at[at[i]]);
        i += 1;
    }
    z[0 +: 64] = best;
}
""",
    {"x": small("f32", 1, 64, 208), "at": ints("i32", 2, 0, 7, 7), "y": poison("f32", 208, 64), "z": poison("f32", 64)},
    lambda a: {
        "y": exact(a["x"].T), "z": exact(
            np.max([
                np.pad(a["x"], ((0, 0), (0, 16)))[:, 32 * i:32 * i + 32].max(axis=1) + a["at"][a["at"][i]]
                for i in range(7)
            ], axis=0))
    })

# extents that are no powers of two, and tiles of 8 bytes per element
row(
    "pipeline_odd_tiles",
    product_kernel("const f64 A[M, K], const f64 B[K, N], f64 C[M, N]", block=(48, 80, 24), acc="f64",
                   loop=" pipeline"),
    {"A": small("f64", 1, 50, 100), "B": small("f64", 2, 100, 90), "C": poison("f64", 50, 90)},
    lambda a: {"C": exact(a["A"] @ a["B"])})


for t, out in (("f64", "f64"), ("f32", "f32"), ("f16", "f32"), ("i8", "i32")):
    row(
        f"pipeline_stepped_{t}", f"""
/// Blocks whose elements are apart, from starts that move by less than a block; some reach over the end.
kernel k(const {t} x[M, N], const {t} w[K, Q], {out} y[P, Q], {out} z[P, Q])
    grid(1)
{{
    tile<{out}, 8, 24> u;
    tile<{out}, 8, 24> v;
    for (int i : range(5)) {{
        u = dot(x[2 * i +: 8 : 2, i +: 16 : 2], w[0 +: 16, 0 +: 24], u);
        v = dot(x[0 +: 8, i +: 16 : 3], w[2 * i +: 16 : 2, 0 +: 24], v);
    }}
    y[0 +: 8, 0 +: 24] = u;
    z[0 +: 8, 0 +: 24] = v;
}}
""",
        {"x": small(t, 1, 16, 33), "w": small(t, 2, 40, 24), "y": poison(out, 8, 24), "z": poison(out, 8, 24)},
        lambda a: stepped(a))


def stepped(a):
    x, w = np.zeros((40, 80)), np.zeros((80, 24))
    x[:16, :33], w[:40] = a["x"], a["w"]
    return {"y": exact(sum(x[2 * i:2 * i + 16:2, i:i + 32:2] @ w[:16] for i in range(5))),
            "z": exact(sum(x[:8, i:i + 48:3] @ w[2 * i:2 * i + 32:2] for i in range(5)))}


# Both operands run along K, so that copies bring them as they are, in rows of a wave on gfx950: blocks that end
# outside, that are whole, one row, nothing; 16 bytes of one to four bytes an element; more warps than there are rows
for t, out, bk, (m, n, k), warps, stages in (
        ("f16", "f32", 64, (130, 70, 200), 4, 3), ("f16", "f32", 64, (128, 128, 256), 4, 2),
        ("bf16", "f32", 32, (66, 64, 136), 8, 4), ("f32", "f32", 32, (70, 66, 100), 2, 2),
        ("i8", "i32", 128, (64, 70, 272), 4, 3), ("f16", "f32", 64, (1, 1, 8), 4, 3),
        ("f16", "f32", 64, (40, 30, 0), 4, 2), ("f16", "f32", 16, (64, 64, 72), 8, 3)):
    row(f"pipeline_rows_{t}_{m}x{n}x{k}_{bk}_{stages}",
        product_kernel(f"const {t} A[M, K], const {t} B[N, K], {out} C[M, N]", b=f"trans(B[n +: 64, k +: {bk}])",
                       block=(64, 64, bk), acc=out),
        {"A": small(t, 1, m, k), "B": small(t, 2, n, k), "C": poison(out, m, n)},
        lambda a: {"C": exact(total(a["A"]) @ total(a["B"]).T)}, warps=warps, stages=stages)
