"""Masked scalars, grids of thousands, products by hand and in groups, hints, moves that keep all bits of floats."""
import numpy as np

from rows import row
from values import STORE, Arr, bits_of, exact, exactly, ints, iota, is_float, poison, random_bits, small, wide, zeros

# ---- moves keep every bit: NaN with what it carries, both zeros, subnormals ------------------------------------------
for k, t in enumerate(("f16", "bf16", "f32", "f64", "f8e4m3", "f8e5m2", "f8e4m3fnuz")):
    u = f"u{bits_of(t)}"
    raw = random_bits(u, k, 6, 8)
    special = {
        "f16": (0x7C00, 0x7E01, 0xFDFF, 0x8000, 1), "bf16": (0x7F80, 0x7FC1, 0xFF81, 0x8000, 1),
        "f32": (0x7F800000, 0x7FC00001, 0xFF800001, 0x80000000, 1),
        "f64": (0x7FF0 << 48, (0x7FF8 << 48) + 1, (0xFFF0 << 48) + 1, 1 << 63, 1),
        "f8e4m3": (0x7F, 0xFF, 0x7E, 0x80, 1), "f8e5m2": (0x7C, 0x7D, 0xFF, 0x80, 1),
        "f8e4m3fnuz": (0x80, 0x7F, 0xFF, 0x81, 1)
    }[t]
    raw.store.reshape(-1)[3::9] = np.array(special * 2, np.uint64).astype(STORE[u])[:len(raw.store.reshape(-1)[3::9])]
    row(
        f"moves_keep_bits_{t}", f"""
kernel k(const {t} x[R, C], {t} y[R, C], {u} o[13, R, C], const i32 at[R], const i32 *n)
    grid(1)
{{
    auto v = x[0 +: 6, 0 +: 8];
    o[0, 0 +: 6, 0 +: 8] = bitcast(flip(v, 0), {u});
    o[1, 0 +: 6, 0 +: 8] = bitcast(gather(v, broadcast(col(at[0 +: 6]), 6, 8), 0), {u});
    o[2, 0 +: 6, 0 +: 8] = bitcast(shift(v, 1, 3, v), {u});
    o[3, 0 +: 6, 0 +: 8] = bitcast(trans(reshape(v, 8, 6)), {u});
    auto (a, b) = split(reshape(v, 6, 4, 2));
    o[4, 0 +: 6, 0 +: 8] = bitcast(interleave(b, a), {u});
    o[5, 0 +: 6, 0 +: 8] = bitcast(cat(extract(v, 0 +: 6, 5 +: 3), extract(v, 0 +: 6, 0 +: 5), 1), {u});
    o[6, 0 +: 6, 0 +: 8] = bitcast(put(v, 0, n[0], pick(v, 0, n[1])), {u});
    o[7, 0 +: 6, 0 +: 8] = bitcast(x[at[0 +: 6], 0 +: 8], {u});
    o[8, 0 +: 6, 0 +: 8] = bitcast(col(at[0 +: 6]) > 2 ? v : flip(v, 1), {u});
    o[9, 0 +: 6, 0 +: 8] = bitcast(broadcast(row(x[n[0], 0 +: 8]), 6, 8), {u});
    o[10, 0 +: 6, 0 +: 8] = bitcast(repeat(extract(v, 0 +: 3, 0 +: 8), 0, 2), {u});
    auto w = v;
    for (int i : range(n[1])) w = i % 2 == 0 ? flip(w, 1) : trans(trans(w));
    o[11, 0 +: 6, 0 +: 8] = bitcast(w, {u});
    y[0 +: 6, 0 +: 8] = v;
    o[12, 0 +: 6, 0 +: 8] = bitcast(y[5 - iota(6), 0 +: 8], {u});
}}
""", {
            "x": Arr(t, raw.store.view(STORE[t])), "y": poison(t, 6, 8), "o": poison(u, 13, 6, 8), "at": exactly(
                "i32", [5, 0, 3, 3, 1, 2]), "n": exactly("i32", [4, 1])
        }, lambda a, x=raw.store: (lambda at: {
            "o": exact(
                np.stack([
                    x[::-1], x[at],
                    np.concatenate((x[:, :3], x[:, :5]), 1),
                    x.reshape(8, 6).T,
                    np.stack((x[:, 1::2], x[:, ::2]), -1).reshape(6, 8),
                    np.concatenate((x[:, 5:], x[:, :5]), 1), x[[0, 1, 2, 3, 1, 5]], x[at],
                    np.where(np.array(at)[:, None] > 2, x, x[:, ::-1]),
                    np.broadcast_to(x[4], (6, 8)), x[:3].repeat(2, 0), x[:, ::-1], x[::-1]
                ]))
        })([5, 0, 3, 3, 1, 2]))

row(
    "masked_scalars", """
kernel k(const i32 *p, i32 *q, const f16 x[N], i32 y[8], f16 h[4], int n, const i32 v[M])
    grid(1)
{
    y[0] = load(p + n, mask = n < 5, other = 7);
    y[1] = load(p + n, mask = n > 5, other = 7);
    y[2] = load(p + n, mask = n > 5);
    y[3] = load(v[n], pad = 9);
    y[4] = load(v[n + 100], pad = 9);
    y[5] = in(v[n + 100]) || !in(v[n]) ? 1 : 0;
    store(q, 5, mask = n > 5);
    store(q + 1, 6, mask = n < 5);
    store(v_of(q)[2], 8, mask = n == 3);
    y[6] = atomic_add(q + 1, 1, mask = n == 4);
    y[7] = atomic_add(q + 1, 1, mask = n == 3);
    h[0 +: 4] = load(x[N - 2 +: 4], pad = nan);
    if (n == 3) h[1] = load(x[-1], pad = -inf);
}
auto v_of(i32 *q) { return view(q, (3), (1)); }
""", {
        "p": iota("i32", 5), "q": zeros("i32", 3), "x": iota("f16", 3), "y": poison("i32", 8), "h": poison("f16", 4),
        "n": 3, "v": iota("i32", 6)
    },
    lambda a: {"y": exact([3, 7, 0, 3, 9, 0, 0, 6]), "q": exact([0, 7, 8]), "h": exact([1, -np.inf, np.nan, np.nan])})

for t, s in (("f32", "f32"), ("i16", "i32"), ("f64", "f64")):
    row(f"product_by_broadcast_and_sum_{t}", f"""
kernel k(const {t} A[M, K], const {t} B[K, N], {s} C[M, N], {s} D[M, N])
    grid(1)
{{
    auto a = A[0 +: 20, 0 +: 12];
    auto b = B[0 +: 12, 0 +: 24];
    C[0 +: 20, 0 +: 24] = sum(expand(a, 2) * expand(b, 0), axis = 1);
    tile<{s}, 20, 24> acc;
    for (int k : range(12))
        acc += ({s})col(pick(a, 1, k)) * ({s})row(pick(b, 0, k));
    D[0 +: 20, 0 +: 24] = acc;
}}
""", {"A": small(t, 1, 20, 12), "B": small(t, 2, 12, 24), "C": poison(s, 20, 24), "D": poison(s, 20, 24)},
        lambda a: (lambda p: {"C": exact(p), "D": exact(p)})(a["A"].astype(float) @ a["B"].astype(float)))

row(
    "product_of_joined_halves", """
kernel k(const i8 lo[M, H], const i8 hi[M, H], const i8 B[K, N], i32 C[M, N], i32 D[M2, N])
    grid(1)
{
    auto a = interleave(lo[0 +: 16, 0 +: 16], hi[0 +: 16, 0 +: 16]);
    auto b = B[0 +: 32, 0 +: 16];
    C[0 +: 16, 0 +: 16] = dot(a, b);
    auto j = reshape(trans(join(extract(a, 0 +: 16, 0 +: 32), flip(a, 0)), 0, 2, 1), 32, 32);
    D[0 +: 32, 0 +: 16] = dot(j, b, tile<i32, 32, 16>(1));
}
""", {
        "lo": small("i8", 1, 16, 16), "hi": small("i8", 2, 16, 16), "B": small("i8", 3, 32, 16), "C": poison(
            "i32", 16, 16), "D": poison("i32", 32, 16)
    }, lambda a: (lambda x, b: {"C": exact(x @ b), "D": exact(np.stack((x, x[::-1]), 1).reshape(32, 32) @ b + 1)})
    (np.stack((a["lo"], a["hi"]), -1).reshape(16, 32).astype(int), a["B"].astype(int)))

row(
    "groups_of_products", """
/// Group g has rows ptr[g] to ptr[g + 1] of A, and weights B[g]: as a mixture of experts has them.
kernel grouped(const f16 A[T, K], const f16 B[G, K, N], const i32 ptr[G + 1], f32 C[T, N], const int BM = 16,
               const int BN = 16, const int BK = 16)
    grid(G, cdiv(N, BN))
{
    int g = pid(0);
    int n = pid(1) * BN;
    int first = ptr[g];
    auto rows = sub(A, (first, 0), (ptr[g + 1] - first, K));
    auto out = sub(C, (first, 0), (ptr[g + 1] - first, N));
    for (int m : range(0, ptr[g + 1] - first, BM)) {
        tile<f32, BM, BN> acc;
        for (int k : range(0, K, BK)) pipeline
            acc = dot(rows[m +: BM, k +: BK], B[g, k +: BK, n +: BN], acc);
        out[m +: BM, n +: BN] = acc;
    }
}
""", {
        "A": small("f16", 1, 70, 40), "B": small("f16", 2, 5, 40, 23), "ptr": exactly("i32", [0, 3, 3, 40, 41, 70]),
        "C": poison("f32", 70, 23)
    }, lambda a: {
        "C": exact(
            np.concatenate([
                a["A"][p:q].astype(float) @ a["B"][g].astype(float)
                for g, (p, q) in enumerate(zip(a["ptr"], a["ptr"][1:]))
            ]))
    })

row(
    "grid_of_thousands", """
kernel k(const i32 x[N], i32 y[N], i32 n[2])
    grid(N)
{
    y[pid(0)] = x[npid(0) - 1 - pid(0)] + pid(0);
    atomic_add(n[pid(0) % 2], 1);
}
""", {"x": ints("i32", 1, -999, 999, 4099), "y": poison("i32", 4099), "n": zeros("i32", 2)},
    lambda a: {"y": exact(a["x"][::-1] + np.arange(4099)), "n": exact([2050, 2049])})
row(
    "grid_of_thousands_on_three_axes", """
kernel k(i32 y[A, B, C])
    grid(A, B, C, group = 3)
{
    atomic_add(y[pid(0), pid(1), pid(2)], pid(0) + 100 * (pid(1) + 100 * pid(2)) + 1);
}
""", {"y": zeros("i32", 13, 11, 17)},
    lambda a: {"y": exact(np.add.outer(np.arange(13), 100 * np.add.outer(np.arange(11), 100 * np.arange(17))) + 1)})

row(
    "hints_change_nothing", """
kernel k(const i32 x[N], i32 y[N], i32 *q, int n)
    grid(1)
{
    assume(n % 16 == 0 && n > 0);
    auto i = multiple_of(contiguous(iota(16), 16), 16);
    int at = multiple_of(n, 16);
    for (int k : range(0, at, 16)) specialize {
        assume(k >= 0);
        store(q + k + i, load(raw(x) + k + i) * 2);
    }
    for (int k : range(0, at, 16)) pipeline(4) unroll(2)
        y[k +: 16] = x[k +: 16] + 1;
}
""", {"x": iota("i32", 64), "y": poison("i32", 64), "q": poison("i32", 64), "n": 64},
    lambda a: {"y": exact(np.arange(64) + 1), "q": exact(np.arange(64) * 2)})

row(
    "cache_and_eviction_words", """
kernel k(const f32 x[N], f32 y[N], f32 *z)
    grid(cdiv(N, 16))
{
    int i = pid(0) * 16;
    auto v = load(x[i +: 16], cache = all) + load(x[i +: 16], cache = global) + load(x[i +: 16],
            evict = first) + load(x[i +: 16], evict = last, pad = 1);
    store(y[i +: 16], v, cache = stream);
    store(z + i + iota(16), v, mask = i + iota(16) < N);
}
""", {"x": small("f32", 1, 53), "y": poison("f32", 53), "z": poison("f32", 53)},
    lambda a: {"y": exact(4 * a["x"]), "z": exact(4 * a["x"])})

row(
    "recursive_pipeline_of_dependent_loads", """
/// Each link names the next: a list walked while sums are kept, and two loads that follow from a load.
kernel k(const i32 next[N], const f32 value[N], f32 y[4], i32 path[M])
    grid(1)
{
    int at = 0;
    f32 s = 0;
    for (int i : range(M)) pipeline(3) {
        s += value[at] + value[next[next[at]]];
        path[i] = at;
        at = next[at];
        if (at < 0) break;
    }
    y[0 +: 4] = s;
}
""", {
        "next": Arr("i32",
                    np.random.default_rng(5).permutation(50).astype(np.int32)), "value": iota("f32", 50), "y": poison(
                        "f32", 4), "path": zeros("i32", 30)
    }, lambda a: linked(a))


def linked(a):
    at, s, path = 0, 0.0, []
    for _ in range(30):
        s += a["value"][at] + a["value"][a["next"][a["next"][at]]]
        path.append(at)
        at = a["next"][at]
    return {"y": exact([s] * 4), "path": exact(path)}


# Extents that the compiler knows: the test of buffers by the hardware is a number then, for all elements of a thread.
for k, t in enumerate(("u8", "f16", "f32", "f64")):
    row(f"bounds_of_known_extents_{t}", f"""
kernel k(const {t} x[1, 512], {t} y[3, 512], const {t} w[3, 1030], {t} z[3, 1024])
    grid(3)
{{
    int p = pid(0);
    y[p, 1 +: 512] = w[p, 1 +: 512];
    z[p, 0 +: 1024] = w[p, 7 +: 1024];
    z[p, 5 +: 512] = x[p, 0 +: 512];
    y[p, 500 +: 512] = x[0, 3 +: 512];
}}
""", {"x": random_bits(t, k, 1, 512), "y": poison(t, 3, 512), "w": random_bits(t, 10 + k, 3, 1030),
      "z": poison(t, 3, 1024)}, lambda a: known_extents(**a), warps=1, stages=1)


def known_extents(x, y, w, z):
    y[:, 1:] = w[:, 1:512]
    z[:] = np.pad(w[:, 7:], ((0, 0), (0, 1)))
    z[:, 5:517] = 0
    z[0, 5:517] = x[0]
    y[:, 500:] = x[0, 3:15]
    return {"y": exact(y), "z": exact(z)}
