"""Plain kernels on real input: matmul, softmax, layer norm and attention on odd sizes, in f32, f16 and bf16.

Bounds follow from the number of terms and the types: products and sums in f32, one rounding to the output's type.
"""
import numpy as np

from rows import row
from values import eps, normal, poison, spacing, within

GEMM = """
tile<f32, M, N> plain(tile<f32, M, N> t) { return t; }
tile<f32, M, N> silu(tile<f32, M, N> t) { return t * sigmoid(t); }

/// Nine programs share the blocks of C.
kernel gemm(const T A[M, K], const T B[K, N], T C[M, N], const type T, const fn last = plain)
    grid(9)
{
    int across = cdiv(N, 64);
    for (int block : range(pid(0), cdiv(M, 48) * across, npid(0))) {
        int m = block / across * 48;
        int n = block % across * 64;
        tile<f32, 48, 64> sum_;
        for (int k : range(0, K, 32))
            sum_ = dot(A[m +: 48, k +: 32], B[k +: 32, n +: 64], sum_);
        C[m +: 48, n +: 64] = cast(last(sum_), T);
    }
}
"""


def gemm_want(t, f=lambda x: x):
    def want(a):
        A, B = a["A"].astype(np.float64), a["B"].astype(np.float64)
        v, k = f(A @ B), A.shape[1]
        slack = 2 * (k + 2) * eps("f32") * (np.abs(A) @ np.abs(B))
        return {"C": within(v, slack + spacing(np.abs(v) + slack, t) * 0.51)}
    return want


for t in ("f32", "f16", "bf16"):
    row(f"matmul_{t}_1000x777x513", GEMM,
        {"A": normal(t, 1, 1000, 513), "B": normal(t, 2, 513, 777), "C": poison(t, 1000, 777)}, gemm_want(t),
        consts={"T": t}, same_bits=False, from_c=True, big=True)
    row(f"matmul_{t}_silu", GEMM, {"A": normal(t, 1, 100, 65), "B": normal(t, 2, 65, 77), "C": poison(t, 100, 77)},
        gemm_want(t, lambda x: x / (1 + np.exp(-x))), consts={"T": t, "last": "silu"}, same_bits=False, from_c=True)

SOFTMAX = """
/// Blocks of a row in turn: greatest value and sum so far, then the quotients.
kernel softmax(const T x[R, C], T y[R, C], const type T, const int B)
    grid(R)
{
    int r = pid(0);
    f32 top = -inf;
    f32 total = 0;
    for (int c : range(0, C, B)) {
        auto v = (f32)load(x[r, c +: B], pad = -inf);
        f32 higher = max(top, max(v));
        total = total * exp(top - higher) + sum(exp(v - higher));
        top = higher;
    }
    for (int c : range(0, C, B))
        y[r, c +: B] = cast(exp((f32)x[r, c +: B] - top) / total, T);
}
"""
for t in ("f32", "f16", "bf16"):
    for rows, cols, block in ((1000, 777, 256), (3, 1, 16), (7, 5000, 8192), (1, 16, 16), (5, 1000, 100)):
        def want(a, t=t):
            x = a["x"].astype(np.float64)
            e = np.exp(x - x.max(1, keepdims=True))
            v = e / e.sum(1,
                          keepdims=True)  # f32: exp 2 ulp of an argument rounded once, sum of C terms, quotient 2 ulp
            rel = (2 * 10 + 2 + x.shape[1] + 4 + 8 * (x.shape[1] // 100)) * eps("f32") * 2
            return {"y": within(v, rel * v + spacing(v, t) * 0.51)}

        row(f"softmax_{t}_{rows}x{cols}", SOFTMAX, {"x": normal(t, 3, rows, cols), "y": poison(t, rows, cols)},
            want, consts={"T": t, "B": block}, same_bits=False, from_c=True, big=rows * cols > 100000)

NORM = """
/// Four rows at a time.
kernel layernorm(const T x[R, C], const T w[C], const T b[C], T y[R, C], f32 eps, const type T, const int BC)
    grid(cdiv(R, 4))
    require(BC >= C)
{
    int r = pid(0) * 4;
    auto v = (f32)x[r +: 4, 0 +: BC];
    auto mean = sum(v, axis = 1, keep = true) / (f32)C;
    auto off = row(iota(BC)) < C ? v - mean : 0;
    auto spread = sum(off * off, axis = 1, keep = true) / (f32)C;
    y[r +: 4, 0 +: BC] = cast(off / sqrt(spread + eps) * row((f32)w[0 +: BC]) + row((f32)b[0 +: BC]), T);
}
"""
for t in ("f32", "f16", "bf16"):
    def want(a, t=t):
        x, w, b = (a[n].astype(np.float64) for n in "xwb")
        d = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
        v = d * w + b
        slack = 4 * x.shape[1] * eps("f32") * (np.abs(d) + 1) * np.abs(w) + 4 * eps("f32") * np.abs(b)
        return {"y": within(v, slack + spacing(v, t) * 0.51)}

    row(
        f"layernorm_{t}_1000x777", NORM, {
            "x": normal(t, 3, 1000, 777), "w": normal(t, 4, 777), "b": normal(t, 5, 777), "y": poison(t, 1000, 777),
            "eps": 1e-5
        }, want, consts={"T": t, "BC": 1024}, same_bits=False, from_c=True, big=True)

ATTENTION = """
/// Keys in blocks of 48; what was summed fades when a greater score comes.
kernel attention(const E q[H, S, D], const E k[H, T, D], const E v[H, T, D], E o[H, S, D], f32 scale, const type E,
                 const bool CAUSAL = false, const int ROWS = 32, const int KEYS = 48, const int W = 64)
    grid(H, cdiv(S, ROWS))
    require(W >= D)
{
    int head = pid(0);
    int first = pid(1) * ROWS;
    auto mine = q[head, first +: ROWS, 0 +: W];
    tile<f32, ROWS, 1> top = -inf;
    tile<f32, ROWS, 1> mass;
    tile<f32, ROWS, W> mix;
    for (int key : range(0, T, KEYS)) {
        static if (CAUSAL) {
            if (key >= first + ROWS) break;
        }
        auto seen = broadcast(row(key + iota(KEYS)) < T, ROWS, KEYS);
        static if (CAUSAL)
            seen = seen && row(key + iota(KEYS)) <= col(first + iota(ROWS));
        auto score = seen ? scale * dot(mine, trans(k[head, key +: KEYS, 0 +: W])) : -inf;
        auto higher = max(top, max(score, axis = 1, keep = true));
        auto weight = exp(score - higher);
        auto fade = exp(top - higher);
        mass = mass * fade + sum(weight, axis = 1, keep = true);
        mix = dot(cast(weight, E), v[head, key +: KEYS, 0 +: W], mix * fade);
        top = higher;
    }
    o[head, first +: ROWS, 0 +: W] = cast(mix / mass, E);
}
"""


def attention_want(t, causal):
    def want(a):
        q, k, v = (a[n].astype(np.float64) for n in "qkv")
        s = np.einsum("hid,hjd->hij", q, k) * a["scale"]
        if causal:
            s = np.where(np.arange(s.shape[2]) <= np.arange(s.shape[1])[:, None], s, -np.inf)
        p = np.exp(s - s.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        o = np.einsum("hij,hjd->hid", p, v)
        # p is rounded to the input type; s has d products in f32, l and acc have T terms
        rel = eps(t) * (t != "f32") + (2 * q.shape[2] * np.abs(s[np.isfinite(s)]).max() + 3 * k.shape[1] +
                                       50) * eps("f32")
        slack = 2 * rel * np.einsum("hij,hjd->hid", p, np.abs(v))
        return {"o": within(o, slack + spacing(np.abs(o) + slack, t) * 0.51)}
    return want


for t in ("f32", "f16", "bf16"):
    for causal in (False, True):
        for heads, s, k, d, big in ((2, 333, 333, 61, True), (1, 1, 1, 64, False),
                                    (3, 65, 65, 16, False)) + (() if causal else
                                                               ((1, 100, 777, 64, True), (2, 5, 33, 1, False))):
            row(
                f"attention_{t}_{'causal' if causal else 'full'}_{heads}x{s}x{k}x{d}", ATTENTION, {
                    "q": normal(t, 1, heads, s, d), "k": normal(t, 2, heads, k, d), "v": normal(t, 3, heads, k, d),
                    "o": poison(t, heads, s, d), "scale": d**-0.5
                }, attention_want(t, causal), consts={"E": t, "CAUSAL": str(causal).lower()}, same_bits=False,
                from_c=True, big=big)
