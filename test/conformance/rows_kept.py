"""Filters in two steps, whose first one computes rows that the program before has computed, too (nest_keep.c): along
both axes of a grid, with borders and zeros, more programs in a row than homes, and values that differ from program to
program."""
import numpy as np

from rows import row
from values import exact, iota, poison, small

from rows_borders import bordered, r, tap

FILTER = """
kernel k(const {t} x[D, H, W], {t} y[D, H, W], const int BH = {bh}, const int BW = {bw})
    grid(cdiv(W, BW), cdiv(H, BH), D)
{{
    int k = pid(2);
    int j = pid(1) * BH;
    int i = pid(0) * BW;
    tile<{t}, BH + 6, BW> rows = 0;
    static for (int d : range(-3, 4)) rows += x[k, {place}] * ({t})(d + 4){varies};
    tile<{t}, BH, BW> all = 0;
    static for (int d : range(7)) all += extract(rows, d +: BH, 0 +: BW) * ({t})(2 * d + 1);
    y[k, j +: BH, i +: BW] = all;
}}
"""
EDGE, ZEROS = "clamp(j - 3 + iota(BH + 6), 0, H - 1), clamp(i + d + iota(BW), 0, W - 1)", "j - 3 +: BH + 6, i + d +: BW"


def filtered(x, border, varies, bh):
    d, h, w = x.shape
    t = x.dtype.type
    more = np.arange(h) // bh if varies else np.zeros(h, int)
    all_rows = np.zeros_like(x)
    for u in range(-3, 4):
        rows = np.zeros_like(x)
        for v in range(-3, 4):
            at = bordered("edge", x, r(0, d), r(u, h), r(v, w)) if border else tap(x, 0, u, v, h, w)
            rows = rows + at * t(v + 4) + more.astype(x.dtype)[None, :, None]
        all_rows = all_rows + rows * t(2 * u + 7)
    return {"y": exact(all_rows)}


for name, t, shape, bh, bw, border, varies in (("edge", "f32", (2, 29, 70), 4, 32, True, False),
                                               ("edge_bytes", "u8", (1, 19, 200), 2, 128, True, False),
                                               ("edge_of_many", "f32", (1, 13, 600), 4, 16, True, False),
                                               ("zeros", "i32", (3, 21, 65), 5, 64, False, False),
                                               ("zeros_f64", "f64", (2, 9, 40), 1, 32, False, False),
                                               ("one_row", "f32", (1, 1, 1), 4, 64, True, False),
                                               ("varying", "i32", (2, 22, 70), 4, 32, True, True)):
    row(f"kept_{name}", FILTER.format(t=t, bh=bh, bw=bw, place=EDGE if border else ZEROS,
                                      varies=f" + ({t})pid(1)" if varies else ""),
        {"x": small(t, bh, *shape), "y": poison(t, *shape)},
        lambda a, b=border, v=varies, n=bh: filtered(a["x"], b, v, n))


# The grid's first axis goes along the rows; what is stored meanwhile is read, and so no row of it is kept.
row("kept_along_first", """
kernel k(const f32 x[H, 64], f32 y[H, 64], f32 z[H + 6, 64])
    grid(cdiv(H, 4))
{
    int j = pid(0) * 4;
    auto rows = x[j - 1 +: 6, 0 +: 64];
    auto more = rows * rows + 3.0 * rows;
    more = more * rows + rows;
    tile<f32, 4, 64> all = 0;
    static for (int d : range(3)) all += extract(more, d +: 4, 0 +: 64);
    y[j +: 4, 0 +: 64] = all;
    if (j == 0) z[0 +: 1, 0 +: 64] = extract(all, 0 +: 1, 0 +: 64);
}
""", {"x": small("f32", 4, 31, 64), "y": poison("f32", 31, 64), "z": iota("f32", 37, 64)},
    lambda a: along_first(a["x"], a["z"].copy()))


def along_first(x, z):
    h, w = x.shape
    y = np.zeros_like(x)
    for d in (-1, 0, 1):
        v = tap(x[None], 0, d, 0, h, w)[0]
        m = v * v + 3 * v
        y = y + (m * v + v)
    z[0] = y[0]
    return {"y": exact(y), "z": exact(z)}
