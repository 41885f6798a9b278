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
