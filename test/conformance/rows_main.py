"""The main job on real input: matmul, softmax, layer norm and attention on odd sizes, in f32, f16 and bf16.

Bounds follow from the number of terms and the types: products and sums in f32, one rounding to the output's type.
"""
import numpy as np

from rows import row
from values import eps, normal, poison, spacing, within

GEMM = """
tile<f32, M, N> none(tile<f32, M, N> t) { return t; }
tile<f32, M, N> silu(tile<f32, M, N> t) { return t * sigmoid(t); }

kernel gemm(const T A[M, K], const T B[K, N], T C[M, N], const type T, const fn epi = none)
    grid(cdiv(M, 64), cdiv(N, 64), group = 8)
{
    int m = pid(0) * 64;
    int n = pid(1) * 64;
    tile<f32, 64, 64> acc = 0;
    for (int k : range(0, K, 32)) pipeline
        acc = dot(A[m +: 64, k +: 32], B[k +: 32, n +: 64], acc);
    C[m +: 64, n +: 64] = cast(epi(acc), T);
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
    row(f"main_matmul_{t}_1000x777x513", GEMM, {"A": normal(t, 1, 1000, 513), "B": normal(t, 2, 513, 777), "C": poison(t, 1000, 777)}, gemm_want(t),
        consts={"T": t}, same_bits=False, from_c=True, big=True)
    row(f"main_matmul_{t}_silu", GEMM, {"A": normal(t, 1, 100, 65), "B": normal(t, 2, 65, 77), "C": poison(t, 100, 77)},
        gemm_want(t, lambda x: x / (1 + np.exp(-x))), consts={"T": t, "epi": "silu"}, same_bits=False, from_c=True)

SOFTMAX = """
kernel softmax(const T x[R, C], T y[R, C], const type T, const int BC)
    grid(R)
    require(BC >= C)
{
    int r = pid(0);
    auto v = (f32)load(x[r, 0 +: BC], pad = -inf);
    auto e = exp(v - max(v));
    y[r, 0 +: BC] = cast(e / sum(e), T);
}
"""
for t in ("f32", "f16", "bf16"):
    for rows, cols, block in ((1000, 777, 1024), (3, 1, 16), (7, 5000, 8192), (1, 16, 16)):
        def want(a, t=t):
            x = a["x"].astype(np.float64)
            e = np.exp(x - x.max(1, keepdims=True))
            v = e / e.sum(1, keepdims=True)  # f32: exp 2 ulp of an argument rounded once, sum of C terms, quotient 2 ulp
            rel = (2 * 10 + 2 + x.shape[1] + 4) * eps("f32") * 2
            return {"y": within(v, rel * v + spacing(v, t) * 0.51)}
        row(f"main_softmax_{t}_{rows}x{cols}", SOFTMAX, {"x": normal(t, 3, rows, cols), "y": poison(t, rows, cols)}, want, consts={"T": t, "BC": block}, same_bits=False, from_c=True,
            big=rows * cols > 100000)

NORM = """
kernel layernorm(const T x[R, C], const T w[C], const T b[C], T y[R, C], f32 eps, const type T, const int BC)
    grid(R)
    require(BC >= C)
{
    int r = pid(0);
    auto v = (f32)x[r, 0 +: BC];
    f32 mean = sum(v) / (f32)C;
    auto d = in(x[r, 0 +: BC]) ? v - mean : 0;
    f32 scale = rsqrt(sum(d * d) / (f32)C + eps);
    y[r, 0 +: BC] = cast(d * scale * (f32)w[0 +: BC] + (f32)b[0 +: BC], T);
}
"""
for t in ("f32", "f16", "bf16"):
    def want(a, t=t):
        x, w, b = (a[n].astype(np.float64) for n in "xwb")
        d = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
        v = d * w + b
        slack = 4 * x.shape[1] * eps("f32") * (np.abs(d) + 1) * np.abs(w) + 4 * eps("f32") * np.abs(b)
        return {"y": within(v, slack + spacing(v, t) * 0.51)}
    row(f"main_layernorm_{t}_1000x777", NORM, {"x": normal(t, 3, 1000, 777), "w": normal(t, 4, 777), "b": normal(t, 5, 777), "y": poison(t, 1000, 777), "eps": 1e-5}, want,
        consts={"T": t, "BC": 1024}, same_bits=False, from_c=True, big=True)

ATTENTION = """
const f32 LOG2E = 1.4426950408889634;

kernel attention(const E Q[H, S, D], const E K[H, T, D], const E V[H, T, D], E O[H, S, D], f32 scale, const type E,
                 const int BD = 64, const bool CAUSAL = false, const int BM = 64, const int BN = 32)
    grid(cdiv(S, BM), H)
    require(BD >= D)
{
    int m = pid(0) * BM;
    int h = pid(1);
    auto q = Q[h, m +: BM, 0 +: BD];
    tile<f32, BM> top = -inf;
    tile<f32, BM> l = 0;
    tile<f32, BM, BD> acc = 0;
    auto i = col(m + iota(BM));
    int end = CAUSAL ? min(T, m + BM) : T;
    for (int t : range(0, end, BN)) pipeline(2) {
        auto s = dot(q, trans(K[h, t +: BN, 0 +: BD])) * (scale * LOG2E);
        auto j = row(t + iota(BN));
        s = j < T && (!CAUSAL || j <= i) ? s : -inf;
        auto next = max(top, max(s, axis = 1));
        auto p = exp2(s - col(next));
        auto f = exp2(top - next);
        l = l * f + sum(p, axis = 1);
        acc = dot(cast(p, E), V[h, t +: BN, 0 +: BD], acc * col(f));
        top = next;
    }
    O[h, m +: BM, 0 +: BD] = cast(acc / col(l), E);
}
"""


def attention_want(t, causal):
    def want(a):
        q, k, v = (a[n].astype(np.float64) for n in "QKV")
        s = np.einsum("hid,hjd->hij", q, k) * a["scale"]
        if causal:
            s = np.where(np.arange(s.shape[2]) <= np.arange(s.shape[1])[:, None], s, -np.inf)
        p = np.exp(s - s.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        o = np.einsum("hij,hjd->hid", p, v)
        # p is rounded to the input type; s has d products in f32, l and acc have T terms
        rel = eps(t) * (t != "f32") + (2 * q.shape[2] * np.abs(s[np.isfinite(s)]).max() + 3 * k.shape[1] + 50) * eps("f32")
        slack = 2 * rel * np.einsum("hij,hjd->hid", p, np.abs(v))
        return {"O": within(o, slack + spacing(np.abs(o) + slack, t) * 0.51)}
    return want


for t in ("f32", "f16", "bf16"):
    for causal in (False, True):
        for heads, s, k, d, big in ((2, 333, 333, 61, True), (1, 1, 1, 64, False), (3, 65, 65, 16, False)) + (() if causal else ((1, 100, 777, 64, True), (2, 5, 33, 1, False))):
            row(f"main_attention_{t}_{'causal' if causal else 'full'}_{heads}x{s}x{k}x{d}", ATTENTION,
                {"Q": normal(t, 1, heads, s, d), "K": normal(t, 2, heads, k, d), "V": normal(t, 3, heads, k, d), "O": poison(t, heads, s, d), "scale": d**-0.5},
                attention_want(t, causal), consts={"E": t, "CAUSAL": str(causal).lower()}, same_bits=False, from_c=True, big=big)
