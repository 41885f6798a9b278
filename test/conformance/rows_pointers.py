"""Pointers that come from memory: tables of addresses, views of them, casts both ways; types compared."""
import numpy as np

from rows import row
from values import Arr, exact, exactly, ints, iota, poison, quantize, small, zeros

GROUPED = """
/// C[g] = A[g] B[g]: the matrices lie anywhere, their sizes in tables.
kernel grouped(const u64 PA[G], const u64 PB[G], const u64 PC[G], const i32 size[G, 3], {arrays}, const int BM = 16,
               const int BN = 16, const int BK = 16)
    grid(G, 3)
{{
    int g = pid(0);
    int M = size[g, 0];
    int N = size[g, 1];
    int K = size[g, 2];
    auto A = view((const f16 *)PA[g], (M, K), (K, 1));
    auto B = view((const f16 *)PB[g], (K, N), (1, K));
    auto C = view(({out} *)PC[g], (M, N), (N, 1));
    for (int m : range(pid(1) * BM, M, 3 * BM))
        for (int n : range(0, N, BN)) {{
            tile<f32, BM, BN> acc;
            for (int k : range(0, K, BK)) pipeline
                acc = dot(A[m +: BM, k +: BK], B[k +: BK, n +: BN], acc);
            C[m +: BM, n +: BN] = ({out})acc;
        }}
}}
"""
SIZES = [(33, 20, 40), (1, 1, 1), (50, 17, 16), (16, 32, 48), (7, 3, 0)]


def grouped(name, out, block=None):
    args = {
        "PA": f"addresses({','.join(f'A{i}' for i in range(5))})",
        "PB": f"addresses({','.join(f'B{i}' for i in range(5))})",
        "PC": f"addresses({','.join(f'C{i}' for i in range(5))})", "size": exactly("i32", SIZES)
    }
    arrays = []
    for i, (m, n, k) in enumerate(SIZES):
        args |= {f"A{i}": small("f16", 2 * i, m, k), f"B{i}": small("f16", 2 * i + 1, n, k), f"C{i}": poison(out, m, n)}
        arrays += [f"const f16 A{i}[M{i}, K{i}]", f"const f16 B{i}[N{i}, K{i}]", f"{out} C{i}[M{i}, N{i}]"]

    def want(a):
        return {f"C{i}": exact(quantize(a[f"A{i}"].astype(float) @ a[f"B{i}"].astype(float).T, out)) for i in range(5)}

    row(f"pointers_{name}", GROUPED.format(arrays=", ".join(arrays), out=out), args, want,
        consts=dict(zip(("BM", "BN", "BK"), block)) if block else None)


grouped("grouped_products", "f32")
grouped("grouped_products_of_odd_tiles", "f16", (24, 8, 32))

row(
    "pointers_of_a_table_by_every_access", """
kernel k(const u64 P[G], const f32 x[N], f32 y[N], const i32 at[M], i32 count[1], f32 z[40])
    grid(1)
{
    auto src = (const f32 *)P[0];
    auto dst = (f32 *)P[1];
    y[0] = src[3];                                              // a scalar
    auto i = at[0 +: 8];
    dst[1] = 5;
    store(dst + 2 + iota(8), load(src + i, mask = i < 30, other = -1.0));
    auto V = view(src, (4, 5), (5, 1));
    z[0 +: 20] = reshape(V[0 +: 4, 0 +: 5], 20);                // a view
    z[20 +: 8] = V[i % 4, 2];                                   // gathered
    auto part = sub(V, (1, 1), (2, 9));
    z[28 +: 8] = reshape(part[0 +: 2, 0 +: 4], 8);
    auto table = (const f32 *)P[iota(2) * 2];                   // a tile of pointers
    z[36 +: 2] = load(table + iota(2));
    for (int j : range(3)) atomic_add((i32 *)P[3], 7);
    auto w = view((f32 *)(P[1] + 4 * 12), (3), (1));            // arithmetic on addresses
    w[0 +: 4] = 9;
    w[1] += 0.5;
    z[38] = (f32)((u64)(dst + 10) - (u64)dst);
    z[39] = (u64)raw(y) == P[1] ? 1.0 : 0.0;
}
""", {
        "P": "addresses(x,y,x+16,count)", "x": iota("f32", 32), "y": poison("f32", 15), "at": exactly(
            "i32", [5, 0, 31, 7, 30, 1, 2, 29]), "count": zeros("i32", 1), "z": poison("f32", 40)
    }
    | {"y": Arr("f32", np.full(32, -8, np.float32))}, lambda a: {
        "y": exact([3, 5, 5, 0, -1, 7, -1, 1, 2, 29, -8, -8, 9, 9.5, 9] + [-8] * 17), "count": exact([21]), "z": exact(
            [*range(20), *[5 * (i % 4) + 2 for i in a["at"]], 6, 7, 8, 9, 11, 12, 13, 14, 0, 5, 40, 1])
    })

row(
    "pointers_are_kept_in_memory", """
// Lists: node i says where the next one lies, and has a number. Then a table is written and read again.
kernel k(const u64 heads[H], const u64 nodes[N], i64 sums[H], u64 made[4], i32 values[4], i32 seen[4])
    grid(H)
{
    u64 p = heads[pid(0)];
    i64 total = 0;
    while (p != 0) {
        auto node = (const u64 *)p;
        total += (i64)node[1];
        p = node[0];
    }
    sums[pid(0)] = total;
    if (pid(0) == 0) {
        made[0 +: 4] = (u64)(raw(values) + (3 - iota(4)));
        values[0 +: 4] = 10 * iota(4) + 1;
        seen[0 +: 4] = load((const i32 *)made[0 +: 4]);
        store((i32 *)made[1], 77);
        seen[1] = values[2];
    }
}
""", {
        "heads": "addresses(nodes)", "nodes": exactly("u64", [0, 42]), "sums": poison("i64", 1), "made": zeros(
            "u64", 4), "values": zeros("i32", 4), "seen": poison("i32", 4)
    }, lambda a: {"sums": exact([42]), "values": exact([1, 11, 77, 31]), "seen": exact([31, 77, 11, 1])})

row(
    "pointers_of_a_generic_type", """
tile<T, N> fetch(u64 p, const type T, const int N) { return load((const T *)p + iota(N)); }
void put_(u64 p, tile<T, N> x) { store((T *)p + iota(N), x); }
kernel k(const u64 P[G], const i16 a[A], const f64 b[B], const u8 c[C], i16 x[A], f64 y[B], u8 z[C])
    grid(1)
{
    put_(P[3], -fetch(P[0], i16, 5));
    put_(P[4], fetch(P[1], f64, 7) * 2);
    put_(P[5], fetch(P[2], u8, 13) + 1);
}
""", {
        "P": "addresses(a,b,c,x,y,z)", "a": ints("i16", 1, -99, 99, 5), "b": small("f64", 2, 7), "c": ints(
            "u8", 3, 0, 200, 13), "x": poison("i16", 5), "y": poison("f64", 7), "z": poison("u8", 13)
    }, lambda a: {"x": exact(-a["a"]), "y": exact(a["b"] * 2), "z": exact(a["c"] + 1)})

row(
    "pointers_program_order", """
// What was stored through a pointer from memory is seen through the view of the same array, and the other way round.
kernel k(const u64 P[G], i32 x[N], i32 y[N])
    grid(1)
{
    auto p = (i32 *)P[0];
    auto before = x[0 +: 16];
    store(p + iota(16), before + 1);
    auto between = x[0 +: 16];
    x[0 +: 16] = between * 2;
    auto after = load(p + iota(16));
    for (int i : range(3)) {
        p[i] = p[i + 1] + x[i];
        x[i + 1] += p[i];
    }
    y[0 +: 16] = before + 100 * between + 10000 * after;
}
""", {"P": "addresses(x)", "x": iota("i32", 16), "y": poison("i32", 16)}, lambda a:
    (lambda x: {"x": exact(ordered(2 * (x + 1))), "y": exact(x + 100 * (x + 1) + 20000 * (x + 1))})(a["x"]))


def ordered(x):
    x = x.copy()
    for i in range(3):
        x[i] = x[i + 1] + x[i]
        x[i + 1] += x[i]
    return x


# ---- types compared -------------------------------------------------------------------------------------------------
TESTS = """
struct pair { f32 a; i32 b; };
i32 name(tile<T, N> x)
{
    static if (T == f16) return 1;
    else static if (bf16 == T) return 2;
    else return T != i64 ? 3 : 4;
}
i32 kind(const type T)
{
    static if (T == tile<f32, 4>) return 10;
    static if (T == tile<f32, 8>) return 11;
    static if (T == f32) return 12;
    return 13;
}
i32 same(tile<T, N> x, tile<U, N> y) { return T == U ? 1 : 0; }
kernel k(const T x[N], i32 y[16], const type T)
    grid(1)
{
    y[0] = name(x[0 +: 4]);
    y[1] = kind(tile<f32, 4>) + 100 * kind(tile<f32, 8>) + 10000 * kind(f32);
    y[2] = kind(T);
    const bool half = T == f16 || T == bf16;
    static_assert(half == (T == f16 || T == bf16), "a constant");
    tile<i32, (half ? 2 : 4)> wide = 7;
    y[3] = sum(wide);
    y[4] = same(x[0 +: 4], (f16)x[0 +: 4]);
    y[5] = same((i8)x[0 +: 2], (u8)x[0 +: 2]);
    y[6] = T == int ? 1 : T != float ? 2 : 3;
    y[7] = i32 == int && u8 != i8 && f8e4m3 != f8e4m3fnuz && tile<f32, 2, 3> != tile<f32, 3, 2> && tile<T, 3> == tile<T,
            3> ? 1 : 0;
    y[8] = name(tile<f32, 2>(1.0)) + 10 * name(tile<f16, 2>(1.0));
    y[9] = tile<f32, 4> == tile<T, 4> ? 1 : 0;
    y[10] = pair == pair && pair != f32 ? 1 : 0;
    y[11 +: 5] = 0;
}
"""
for t, want in (
        ("f16", [1, 121110, 13, 14, 1, 0, 2, 1, 13, 0, 1]),
        ("bf16", [2, 121110, 13, 14, 0, 0, 2, 1, 13, 0, 1]),
        ("f32", [3, 121110, 12, 28, 0, 0, 3, 1, 13, 1, 1]),
        ("i64", [4, 121110, 13, 28, 0, 0, 2, 1, 13, 0, 1])):
    row(f"types_compared_{t}", TESTS, {"x": small(t, 1, 4), "y": poison("i32", 16)},
        lambda a, w=want: {"y": exact(w + [0] * 5)}, consts={"T": t})
