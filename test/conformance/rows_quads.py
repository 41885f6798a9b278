"""Sums of four products of neighbouring bytes, which CPUs have an instruction for: signs, lengths, bounds, uses."""
import numpy as np

from rows import row
from values import exact, ints, poison, small

RANGE = {"i8": (-128, 128), "u8": (0, 256)}


def fours(a, b):
    p = a.astype(np.int64) * b.astype(np.int64)
    return p.reshape(*p.shape[:-1], -1, 4).sum(-1).astype(np.int32)


def all_bytes(t, seed, *shape):
    """With the extremes beside each other, so that four products are as large as they get."""
    a = ints(t, seed, *RANGE[t], *shape)
    a.store[..., :4] = RANGE[t][0]
    a.store[..., 4:8] = RANGE[t][1] - 1
    return a


for k, (ta, tb) in enumerate((("i8", "i8"), ("u8", "i8"), ("i8", "u8"), ("u8", "u8"))):
    # a row for all, a row for each, a tile of which the arrays end within a row and between rows
    for m, n, rows, fours_of in ((1, 16, 1, 4), (5, 68, 5, 17), (3, 60, 4, 32), (7, 160, 8, 40), (3, 0, 4, 2)):
        row(
            f"quads_{ta}_{tb}_{m}x{n}", f"""
kernel k(const {ta} a[M, K], const {tb} b[K], const {tb} c[M, K], i32 shared[M, K4], i32 each[M, K4], f32 total[M])
    grid(1)
{{
    auto x = a[0 +: {rows}, 0 +: {4 * fours_of}];
    auto y = b[0 +: {4 * fours_of}];
    auto z = c[0 +: {rows}, 0 +: {4 * fours_of}];
    auto p = sum(reshape((i32)x * (i32)row(y), {rows}, {fours_of}, 4), axis = 2);
    shared[0 +: {rows}, 0 +: {fours_of}] = p;
    each[0 +: {rows}, 0 +: {fours_of}] = sum(reshape((i32)x * (i32)z, {rows}, {fours_of}, 4), axis = 2);
    auto q = sum(reshape((i32)z * (i32)row(b[0 +: {4 * fours_of}]), {rows}, {fours_of}, 4), axis = 2);
    total[0 +: {rows}] = sum((f32)(p + (q & 1)) * 0.5, axis = 1);
}}
""", {
                "a": all_bytes(ta, 20 + k, m, n), "b": all_bytes(tb, 30 + k, n), "c": all_bytes(tb, 40 + k, m, n),
                "shared": poison("i32", m, n // 4), "each": poison("i32", m, n // 4), "total": poison("f32", m)
            }, lambda a: (lambda p, q: {
                "shared": exact(p), "each": exact(fours(a["a"], a["c"])),
                "total": exact((p.astype(np.int64) + (q & 1)).sum(-1) * 0.5)
            })(fours(a["a"], a["b"][None]), fours(a["c"], a["b"][None])))

# rows of b together, which share what is computed of a's; what is added begins the sum
for k, (ta, tb) in enumerate((("u8", "i8"), ("i8", "i8"), ("u8", "u8"))):
    for m, r, n, rows, together, fours_of in ((1, 4, 64, 1, 4, 16), (5, 3, 72, 5, 4, 32), (6, 2, 160, 8, 2, 40),
                                              (3, 5, 64, 4, 8, 16)):
        row(
            f"quads_together_{ta}_{tb}_{m}x{r}x{n}", f"""
kernel k(const {ta} a[M, K], const {tb} b[R, K], const i32 c[R, K4], const f32 d[M, K4], i32 y[M, R, K4],
         f32 total[M, R])
    grid(1)
{{
    auto x = a[0 +: {rows}, 0 +: {4 * fours_of}];
    auto z = b[0 +: {together}, 0 +: {4 * fours_of}];
    auto p = sum(reshape((i32)expand(x >> 1, 1) * (i32)expand(z, 0), {rows}, {together}, {fours_of}, 4), axis = 3);
    auto q = sum(reshape((i32)expand(x & 1, 1) * (i32)expand(z, 0), {rows}, {together}, {fours_of}, 4), axis = 3);
    auto s = p + (q + expand(c[0 +: {together}, 0 +: {fours_of}], 0));
    y[0 +: {rows}, 0 +: {together}, 0 +: {fours_of}] = s;
    auto u = (p + (expand(c[0 +: {together}, 0 +: {fours_of}], 0) + q));
    total[0 +: {rows}, 0 +: {together}] = sum((f32)u * expand(d[0 +: {rows}, 0 +: {fours_of}], 1), axis = 2);
}}
""", {
                "a": all_bytes(ta, 50 + k, m, n), "b": all_bytes(tb, 60 + k, r, n),
                "c": ints("i32", 70 + k, -9, 9, r, n // 4), "d": small("f32", 80 + k, m, n // 4, lo=-1, hi=2),
                "y": poison("i32", m, r, n // 4), "total": poison("f32", m, r)
            }, lambda a: (lambda s: {
                "y": exact(s), "total": exact((s * a["d"].astype(np.int64)[:, None]).sum(-1).astype(float))
            })((fours(a["a"][:, None] >> 1, a["b"][None]) + fours(a["a"][:, None] & 1, a["b"][None])
                + a["c"][None]).astype(np.int64)))

for k, (ta, tb) in enumerate((("i8", "i8"), ("u8", "i8"), ("i8", "u8"), ("u8", "u8"))):
    row(
        f"quads_of_a_row_in_a_home_{ta}_{tb}", f"""
kernel k(const {ta} a[M, K], const {tb} b[L], i32 y[M, K / 4])
    grid(1)
{{
    auto row = load(b[-8 +: 128], pad = 2);
    auto v = (i32)a[0 +: 3, 0 +: 128] * (i32)broadcast(row, 3, 128);
    y[0 +: 3, 0 +: 32] = sum(reshape(v, 3, 32, 4), axis = 2);
}}
""", {"a": all_bytes(ta, 70 + k, 3, 120), "b": all_bytes(tb, 80 + k, 100), "y": poison("i32", 3, 30)}, lambda a: {
            "y": exact(fours(a["a"], np.pad(a["b"], (8, 12), constant_values=2)[None, :120]))
        })
