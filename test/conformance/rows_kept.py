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


# Little work for each row: a store goes down columns, with the rows in registers (nest_columns.c), of two homes.
COLUMNS = """
kernel k(const {t} x[H, W], {t} y[H, W], const int BH = {bh}, const int BW = 128)
    grid(cdiv(W, BW), cdiv(H, BH))
{{
    int j = pid(1) * BH;
    int i = pid(0) * BW;
    auto a = x[j +: BH + 3, i +: BW] + x[j +: BH + 3, i + 1 +: BW] + ({t})1;
    auto b = extract(a, 0 +: BH + 1, 0 +: BW) * ({t})2 + extract(a, 2 +: BH + 1, 0 +: BW);
    y[j +: BH, i +: BW] = extract(b, 0 +: BH, 0 +: BW) - extract(b, 1 +: BH, 0 +: BW) +
                          extract(a, 1 +: BH, 0 +: BW);
}}
"""


def columns(x):
    h, w = x.shape
    t = x.dtype.type

    def a(u):
        return tap(x[None], 0, u, 0, h, w)[0] + tap(x[None], 0, u, 1, h, w)[0] + t(1)

    def b(u):
        return a(u) * t(2) + a(u + 2)
    return {"y": exact(b(0) - b(1) + a(1))}


for t, bh, shape in (("u16", 8, (19, 260)), ("f32", 4, (24, 389)), ("f32", 2, (5, 128)), ("u8", 4, (13, 300)),
                     ("f64", 4, (9, 257)), ("i32", 4, (1, 1)), ("f32", 8, (40, 1664))):
    row(f"kept_in_registers_{t}_{bh}_{shape[0]}", COLUMNS.format(t=t, bh=bh),
        {"x": small(t, bh, *shape), "y": poison(t, *shape)}, lambda a: columns(a["x"]))

# Rows of 70: the last vector of a row overlaps the one before. One home is read by rows and by lanes; one is carried.
HALO = """
kernel k(const {t} x[H, W], {t} y[H, W], {t} z[H, W], const int BH = 4, const int BW = 64)
    grid(cdiv(W, BW), cdiv(H, BH))
{{
    int j = pid(1) * BH;
    int i = pid(0) * BW;
    auto c = clamp(i - 3 + iota(BW + 6), 0, W - 1);
    auto r = clamp(j - 3 + iota(BH + 6), 0, H - 1);
    auto grey = x[r, c] * ({t})3 + ({t})1;
    auto down = extract(grey, 0 +: BH, 0 +: BW + 6) + extract(grey, 6 +: BH, 0 +: BW + 6) +
                extract(grey, 3 +: BH, 0 +: BW + 6);
    y[j +: BH, i +: BW] = extract(down, 0 +: BH, 0 +: BW) + extract(down, 0 +: BH, 6 +: BW) -
                          extract(grey, 3 +: BH, 3 +: BW);
    tile<{t}, BH, BW + 6> t = 0;
    for (int d : range(3)) t = t * ({t})2 + x[j + d +: BH, i - 3 +: BW + 6];
    z[j +: BH, i +: BW] = extract(t, 0 +: BH, 2 +: BW);
}}
"""


def halo(x):
    h, w = x.shape
    t = x.dtype.type

    def grey(u, v):
        return bordered("edge", x, r(u, h), r(v, w)) * t(3) + t(1)

    def down(v):
        return grey(-3, v) + grey(3, v) + grey(0, v)
    z = np.zeros_like(x)
    for d in range(3):
        z = z * t(2) + tap(x[None], 0, d, -1, h, w)[0]
    return {"y": exact(down(-3) + down(3) - grey(0, 0)), "z": exact(z)}


for t, shape in (("f32", (11, 200)), ("f32", (4, 64)), ("u8", (9, 131)), ("f64", (6, 67)), ("i32", (1, 1)),
                 ("f16", (5, 190))):
    row(f"kept_beside_halo_{t}_{shape[0]}", HALO.format(t=t),
        {"x": small(t, 7, *shape), "y": poison(t, *shape), "z": poison(t, *shape)}, lambda a: halo(a["x"]))

# A reduction of what a shift computes, of an array so large that its loads ask for what lies further on.
row("kept_from_asking_where_a_shift_loads", """
kernel k(const i64 x[N], i64 y[P])
    grid(4)
{
    auto v = x[pid(0) * 256 + 1 +: 256];
    y[pid(0)] = min(shift(v * v, 0, 128, 3), axis = 0);
}
""", {"x": small("i64", 9, 1000), "y": poison("i64", 4)},
    lambda a: {"y": exact(np.array([shifted_least(a["x"], 256 * p + 1) for p in range(4)]))})


def shifted_least(x, at):
    v = np.zeros(256, x.dtype)
    here = x[at:at + 256]
    v[:len(here)] = here
    return np.minimum(np.min((v * v)[:128]), 3)


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
