"""Tiles that wait in shared memory while they are not used, where registers are short (passes/pipeline/park_tiles.c):
states that loops carry, operands of several products and their transposes, around loops inside and branches, ends and
empty ranges."""
import numpy as np

from rows import row
from values import exact, poison, small

PRODUCTS = """
kernel k(const {t} A[L, D], const {t} B[L, N], {t} O[L, N], {t} S[D, N], int trips)
    grid(1)
    require(D <= 128 && N <= {n})
    warps(4)
{{
    tile<{t}, 128, {n}> s = 0;
    auto w = A[0 +: 64, 0 +: 128];
    for (int p : range(0, L, 64)) {{
        auto a = A[p +: 64, 0 +: 128];
        auto b = B[p +: 64, 0 +: {n}];
        auto x = dot(a, trans(w));
        for (int i : range(trips))
            x = min(x, 4) - max(min(dot(x, x), 5), -5);
        auto y = dot(x, b) - dot(a, s);
        if (p >= 64)
            y += dot(w, s);
        O[p +: 64, 0 +: {n}] = y;
        s += max(min(dot(trans(a), y), 3), -3);
    }}
    S[0 +: 128, 0 +: {n}] = s;
}}
"""


def products(v):
    a, b = (v[n].astype(np.float64) for n in "AB")
    length, s, out = len(a), np.zeros((a.shape[1], b.shape[1])), []
    w = np.zeros((64, a.shape[1]))
    w[:length] = a[:64]
    for p in range(0, length, 64):
        c, d = np.zeros((64, a.shape[1])), np.zeros((64, b.shape[1]))
        c[:len(a[p:p + 64])], d[:len(b[p:p + 64])] = a[p:p + 64], b[p:p + 64]
        x = c @ w.T
        for _ in range(v["trips"]):
            x = np.minimum(x, 4) - np.clip(x @ x, -5, 5)
        y = x @ d - c @ s + (w @ s if p else 0)
        out.append(y)
        s = s + np.clip(c.T @ y, -3, 3)
    y = np.concatenate(out)[:length] if out else np.zeros(b.shape)
    return {"O": exact(y.astype(v["B"].dtype)), "S": exact(s.astype(v["B"].dtype))}


for t, n, length, d, cols, trips in (("f32", 64, 150, 128, 64, 2), ("f32", 64, 64, 99, 37, 0), ("f32", 64, 0, 8, 8, 1),
                                     ("i32", 64, 130, 100, 64, 1), ("f64", 32, 128, 128, 32, 1)):
    row(f"waits_{t}_{length}x{d}x{cols}_{trips}", PRODUCTS.format(t=t, n=n),
        {"A": small(t, 1, length, d, lo=-1, hi=2), "B": small(t, 2, length, cols, lo=-1, hi=2),
         "O": poison(t, length, cols), "S": poison(t, d, cols), "trips": trips}, products)


# The same beside a warp of its own that copies, where there is one, and products by matrix instructions.
CHUNKS = """
kernel k(const f16 Q[L, D], const f16 K[L, D], const f16 V[L, D], const f32 g[L, D], f32 O[L, D], f32 Z[D, D],
         const int C = 64, const int BD = 128)
    grid(1)
    require(D == BD)
{
    tile<f32, BD, BD> S = 0;
    for (int t : range(0, L, C)) {
        auto b = cumsum(g[t +: C, 0 +: BD], axis = 0);
        auto last = pick(b, 0, C - 1);
        auto q = (f16)((f32)Q[t +: C, 0 +: BD] * min(b, 2));
        auto k = (f32)K[t +: C, 0 +: BD];
        auto v = V[t +: C, 0 +: BD];
        auto s = dot(q, trans((f16)(k * max(1 - b, -2))));
        s = col(iota(C)) >= row(iota(C)) ? max(min(s, 4), -4) : 0.0;
        O[t +: C, 0 +: BD] = dot((f16)s, v) + dot(q, (f16)S);
        S = max(min(S, 8), -8) * col(min(last, 2)) + dot(trans((f16)(k * max(row(last) - b, 3))), v);
    }
    Z[0 +: BD, 0 +: BD] = S;
}
"""


def chunks(v):
    q, k, x, g = (v[n].astype(np.float64) for n in ("Q", "K", "V", "g"))
    length, d, out, s = *q.shape, [], np.zeros((q.shape[1], q.shape[1]))
    for p in range(0, length, 64):
        c, kk, xx, b = (np.concatenate([y[p:p + 64], np.zeros((max(0, p + 64 - length), d))]) for y in (q, k, x, g))
        b = b.cumsum(axis=0)
        c = c * np.minimum(b, 2)
        w = np.tril(np.clip(c @ (kk * np.maximum(1 - b, -2)).T, -4, 4))
        out.append(w @ xx + c @ s)
        s = np.clip(s, -8, 8) * np.minimum(b[-1], 2)[:, None] + (kk * np.maximum(b[-1] - b, 3)).T @ xx
    return {"O": exact(np.concatenate(out)[:length].astype(np.float32)), "Z": exact(s.astype(np.float32))}


for length in (128, 150):
    row(f"waits_chunks_{length}", CHUNKS,
        {**{n: small("f16", i, length, 128, lo=-1, hi=2) for i, n in enumerate("QKV")},
         "g": small("f32", 4, length, 128, lo=0, hi=2), "O": poison("f32", length, 128), "Z": poison("f32", 128, 128)},
        chunks)


# A tile that takes most registers, carried by loops in parts (passes/simplify/cut_carried.c), some of which wait over
# the back edge (passes/pipeline/park_carried.c): branches, an inner loop, stores between, no trip at all.
CARRIED = """
kernel k(const {t} X[N, M], {t} Y[N, M], {t} R[M], int trips, int inner)
    grid(1)
    require(N <= {n} && M <= {m})
    warps({warps})
{{
    auto v = X[0 +: {n}, 0 +: {m}];
    for (int i : range(trips)) {{
        v = max(v - col(max(v, axis = 1)), -4);
        auto s = ({t})sum(v, axis = 0);
        if (i % 2 == 0) {{
            v = v + row(max(s, -3));
            R[0 +: {m}] = s;
        }} else {{
            v = min(v * 2, 5) + row(max(R[0 +: {m}], -2));
        }}
        for (int _j : range(inner))
            v = max(v - ({t})min(max(sum(v), -1), 1), -6);
        v = min(v + row(min(v, axis = 0)), 7);
    }}
    Y[0 +: {n}, 0 +: {m}] = v;
}}
"""


def carried(n, m):
    def reference(v):
        x = v["X"].astype(np.float64)
        t, r = np.zeros((n, m)), v["R"].astype(np.float64)
        t[:x.shape[0], :x.shape[1]] = x
        for i in range(v["trips"]):
            t = np.maximum(t - t.max(axis=1, keepdims=True), -4)
            s = t.sum(axis=0)
            if i % 2 == 0:
                t = t + np.maximum(s, -3)
                r = s[:x.shape[1]]
            else:
                full = np.zeros(m)
                full[:x.shape[1]] = r
                t = np.minimum(t * 2, 5) + np.maximum(full, -2)
            for _ in range(v["inner"]):
                t = np.maximum(t - np.clip(t.sum(), -1, 1), -6)
            t = np.minimum(t + t.min(axis=0), 7)
        dtype = v["X"].dtype
        return {"Y": exact(t[:x.shape[0], :x.shape[1]].astype(dtype)), "R": exact(r.astype(dtype))}
    return reference


# fewer warps could not hold 256 x 256
for t, n, m, warps, rows, cols, trips, inner in (
        ("f32", 128, 256, 4, 128, 256, 3, 1), ("f32", 128, 256, 4, 99, 131, 2, 2), ("i32", 256, 128, 4, 256, 128, 4, 0),
        ("f32", 256, 256, 16, 256, 256, 2, 1), ("f64", 64, 256, 4, 64, 200, 2, 1), ("i16", 256, 256, 4, 256, 256, 3, 1),
        ("f32", 128, 256, 4, 128, 256, 0, 1)):
    row(f"waits_carried_{t}_{n}x{m}_{rows}x{cols}_{trips}_{inner}", CARRIED.format(t=t, n=n, m=m, warps=warps),
        {"X": small(t, 1, rows, cols, lo=-3, hi=4), "Y": poison(t, rows, cols), "R": small(t, 2, cols, lo=-1, hi=2),
         "trips": trips, "inner": inner}, carried(n, m), **({"warps": warps, "stages": 2} if n == m else {}))
