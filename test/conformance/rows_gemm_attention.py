"""Attention: two products with a softmax between them; the bound is derived below. And its backward pass, exact."""
import numpy as np

from rows import row
from values import Arr, FORMATS, eps, exact, normal, poison, quantize, small, spacing, within

FORWARD = """
kernel attention(const T Q[H, M, D], const T K[%s], const T V[H2, N, D], O_ O[H, M, D]%s, const type T, const type O_,
                 const int BM, const int BN, const int BD, const bool CAUSAL = false)
    grid(cdiv(M, BM), H)
{
    int h = pid(1);
    int m = pid(0) * BM;
    auto q = Q[h, m +: BM, 0 +: BD];
    tile<f32, BM> greatest = -inf;
    tile<f32, BM> total = 0;
    tile<f32, BM, BD> acc = 0;
    int end = CAUSAL ? min(N, m + BM) : N;
    for (int n : range(0, end, BN)) pipeline {
        %s
        auto key = row(n + iota(BN));
        tile<bool, BM, BN> seen = key < N;
        static if (CAUSAL) seen = seen && key <= col(m + iota(BM));
        auto s = seen ? dot(q, k) * 0.125 : -inf;
        auto next = max(greatest, max(s, axis = 1));
        auto p = exp(s - col(next));
        auto rescale = exp(greatest - next);
        total = total * rescale + sum(p, axis = 1);
        acc = dot(cast(p, T), v, acc * col(rescale));
        greatest = next;
    }
    O[h, m +: BM, 0 +: BD] = cast(acc / col(total), O_);
}
"""


def attention(q, k, v, causal, t, out, bn):
    """The exact result and the bound, of f64 arrays [heads, length, dimension]."""
    s = q @ k.transpose(0, 2, 1) / 8
    if causal:
        s = np.where(np.tril(np.ones(s.shape[1:], bool)), s, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    total = p.sum(-1, keepdims=True)
    o = p @ v / total
    n, e = k.shape[1], eps("f32")
    ds = (q.shape[2] + 2) * 2 * e * (np.abs(q) @ np.abs(k).transpose(0, 2, 1) / 8).max()  # a score, and the greatest
    width = 2 * np.abs(s[np.isfinite(s)]).max()  # of an argument of exp, which is rounded
    # numerator and denominator: exp (2 ulp), scores, n sums, a rescaling per block; then p as T, then the division
    each = 2 * ds + width * e + 4 * e + 2 * n * e + -(-n // bn) * (2 * ds + width * e + 6 * e)
    tiny = n * 2.0 ** (FORMATS[t].emin - FORMATS[t].p) * np.abs(v).max()  # p below the normal numbers of T
    bound = (2 * each + eps(t) + 4 * e) * (p @ np.abs(v) / total) + tiny
    return within(o, bound + spacing(np.abs(o) + bound, out) / 2)


SLICES = {
    "plain": ("H2, N, D", "", "auto k = trans(K[h, n +: BN, 0 +: BD]); auto v = V[h, n +: BN, 0 +: BD];"),
    "k_transposed": ("H2, D, N", "", "auto k = K[h, 0 +: BD, n +: BN]; auto v = V[h, n +: BN, 0 +: BD];"),
    "grouped": ("H2, N, D", "", "auto k = trans(K[h / 2, n +: BN, 0 +: BD]); auto v = V[h / 2, n +: BN, 0 +: BD];"),
    "paged": (
        "H2, N, D", ", const i32 pages[P]",
        "int at = pages[n / BN] * BN; auto k = trans(K[h, at +: BN, 0 +: BD]); auto v = V[h, at +: BN, 0 +: BD];"),
}


def forward(name, t, shape, block, warps, stages, out=None, causal=False, form="plain"):
    h, m, n, d = shape
    out = out or t
    heads = h // 2 if form == "grouped" else h
    q, k, v = normal(t, 1, h, m, d), normal(t, 2, heads, n, d), normal(t, 3, heads, n, d)
    order = [2, 0, 3, 1][:n // block[1]] if form == "paged" else None
    args = {
        "Q": q, "K": Arr(t,
                         k.store.transpose(0, 2, 1).copy()) if form == "k_transposed" else k, "V": v,
        "O": poison(out, h, m, d)
    }
    if order:
        args["pages"] = Arr("i32", np.array(order, np.int32))

    def want(a):
        x, y, z = (a[name].astype(float) for name in "QKV")
        y = y.transpose(0, 2, 1) if form == "k_transposed" else y
        if form == "grouped":
            y, z = np.repeat(y, 2, 0), np.repeat(z, 2, 0)
        if form == "paged":
            y, z = (np.concatenate([w[:, i * block[1]:(i + 1) * block[1]] for i in order], 1) for w in (y, z))
        return {"O": attention(x, y, z, causal, t, out, block[1])}
    row(f"gemm_attention_{name}", FORWARD % SLICES[form], args, want, same_bits=False, warps=warps, stages=stages,
        consts={"T": t, "O_": out, **dict(zip(("BM", "BN", "BD"), block)), **({"CAUSAL": "true"} if causal else {})})


forward("64", "f16", (1, 70, 130, 64), (128, 64, 64), 8, 2)
forward("64_causal", "f16", (2, 100, 100, 64), (64, 32, 64), 4, 3, causal=True)
forward("128", "f16", (1, 64, 120, 128), (64, 64, 128), 4, 2)
forward("128_causal", "f16", (1, 140, 140, 128), (128, 64, 128), 8, 3, causal=True)
forward("bf16_causal", "bf16", (1, 70, 70, 64), (64, 64, 64), 4, 4, causal=True)
forward("bf16_to_f32", "bf16", (2, 33, 90, 60), (32, 32, 64), 8, 1, out="f32")
forward("f32", "f32", (1, 30, 50, 24), (16, 16, 32), 4, 2)
forward("odd", "f16", (3, 21, 37, 20), (16, 16, 32), 4, 5)
forward("odd_tiles", "f16", (1, 50, 170, 83), (48, 80, 96), 8, 2)
forward("tiny", "f16", (1, 12, 11, 5), (5, 3, 7), 4, 3, causal=True)
forward("k_transposed", "f16", (1, 60, 90, 64), (64, 32, 64), 4, 3, form="k_transposed")
forward("grouped", "f16", (4, 20, 70, 32), (16, 32, 32), 8, 4, form="grouped")
forward("paged", "f16", (1, 40, 128, 64), (32, 32, 64), 4, 3, form="paged")

row(
    "gemm_attention_backward", """
kernel backward(const f16 Q[M, D], const f16 K[N, D], const f16 V[N, D], const f16 G[M, D], f32 DK[N, D], f32 DV[N, D],
                f32 DQ[M, D],
                const int BM = 32, const int BN = 32, const int BD = 32)
    grid(cdiv(N, BN))
{
    int n = pid(0) * BN;
    auto k = K[n +: BN, 0 +: BD];
    auto v = V[n +: BN, 0 +: BD];
    tile<f32, BN, BD> dk = 0;
    tile<f32, BN, BD> dv = 0;
    for (int m : range(0, M, BM)) pipeline {
        auto q = Q[m +: BM, 0 +: BD];
        auto g = G[m +: BM, 0 +: BD];
        auto p = max(dot(q, trans(k)), 0);
        dv = dot(trans((f16)p), g, dv);
        auto ds = (f16)(p > 0 ? dot(g, trans(v)) : 0);
        dk = dot(trans(ds), q, dk);
        atomic_add(DQ[m +: BM, 0 +: BD], dot(ds, k));
    }
    DK[n +: BN, 0 +: BD] = dk;
    DV[n +: BN, 0 +: BD] = dv;
}
""", {
        "Q": small("f16", 1, 70, 25, lo=-1, hi=2), "K": small("f16", 2, 50, 25, lo=-1, hi=2), "V": small(
            "f16", 3, 50, 25, lo=-1, hi=2), "G": small("f16", 4, 70, 25, lo=-1, hi=2), "DK": poison("f32", 50, 25),
        "DV": poison("f32", 50, 25), "DQ": Arr("f32", np.zeros((70, 25), np.float32))
    }, lambda a: backward(*(a[n].astype(float) for n in "QKVG")), warps=4, stages=3)


def backward(q, k, v, g):
    p = quantize(np.maximum(q @ k.T, 0), "f16")
    ds = np.where(p > 0, g @ v.T, 0)
    return {"DK": exact(ds.T @ q + 0.0), "DV": exact(p.T @ g + 0.0), "DQ": exact(ds @ k + 0.0)}
