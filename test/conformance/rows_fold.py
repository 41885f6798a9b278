"""Whole rows of arrays: of three, of one, of five elements, which on the CPU are one axis (nest_fold.c). Loops, masks,
in place, planes of such rows, rows before the first one and after the last one. Rows of which only the launch knows how
long they are."""
import numpy as np

from rows import row
from values import exact, poison, small

POINTS = """
kernel k(const {t} x[N, {e}], {t} y[N, {e}], {t} z[N, {e}], const int BH = {bh})
    grid(cdiv(N, BH))
{{
    int j = pid(0) * BH;
    auto v = x[j +: BH, 0 +: {e}] * ({t})3 + x[j - 1 +: BH, 0 +: {e}];
    for (int n : range(3)) v = n == 1 ? v * ({t})2 : v + ({t})n;
    y[j +: BH, 0 +: {e}] = v;
    store(z[j + 1 +: BH, 0 +: {e}], z[j + 1 +: BH, 0 +: {e}] + v, mask = v > ({t})4);
}}
"""


def points(x, z):
    t = x.dtype.type
    before = np.concatenate([np.zeros_like(x[:1]), x[:-1]])[:len(x)]
    v = (x * t(3) + before) * t(2) + t(2)
    moved = z.copy()
    moved[1:] = np.where(v[:-1] > t(4), z[1:] + v[:-1], z[1:])
    return {"y": exact(v), "z": exact(moved)}


for t, e, bh, n in (("f32", 3, 16, 50), ("f32", 3, 2, 7), ("f32", 1, 64, 200), ("f64", 3, 5, 33), ("u8", 3, 16, 100),
                    ("i8", 5, 8, 40), ("f16", 3, 16, 37), ("i16", 2, 4, 61), ("i32", 7, 3, 20), ("f32", 20, 4, 9),
                    ("i64", 3, 4, 1), ("f32", 3, 16, 0)):
    row(f"fold_points_{t}_{bh}x{e}_{n}", POINTS.format(t=t, e=e, bh=bh),
        {"x": small(t, bh, n, e), "y": poison(t, n, e), "z": small(t, n, n, e)}, lambda a: points(a["x"], a["z"]))

IMAGE = """
kernel k(const {t} x[D, H, W, 3], {t} y[D, H, W, 3], const int BH = 4, const int BW = {bw})
    grid(cdiv(W, BW), cdiv(H, BH), D)
{{
    int j = pid(1) * BH;
    int i = pid(0) * BW;
    y[pid(2), j +: BH, i +: BW, 0 +: 3] =
        x[pid(2), j - 1 +: BH, i + 2 +: BW, 0 +: 3] * ({t})2 + x[pid(2), j +: BH, i +: BW, 0 +: 3];
}}
"""


def image(x):
    near = np.zeros_like(x)
    near[:, 1:, :-2] = x[:, :-1, 2:]
    return {"y": exact(near * x.dtype.type(2) + x)}


for t, bw, shape in (("u8", 16, (2, 9, 70, 3)), ("f32", 4, (1, 6, 33, 3)), ("bf16", 8, (1, 5, 21, 3))):
    row(f"fold_image_{t}_{bw}_{shape[2]}", IMAGE.format(t=t, bw=bw),
        {"x": small(t, bw, *shape), "y": poison(t, *shape)}, lambda a: image(a["x"]))

# What cares for the axes stays as it is: a sum of each row, and a row that repeats.
LENGTHS = """
kernel k(const f32 x[N, 3], const f32 c[3], f32 y[N, 3])
    grid(cdiv(N, 16))
{
    auto v = x[pid(0) * 16 +: 16, 0 +: 3] - row(c[0 +: 3]);
    y[pid(0) * 16 +: 16, 0 +: 3] = v + col(sum(v, axis = 1));
}
"""


def lengths(x, c):
    v = x - c
    return {"y": exact(v + v.sum(1, dtype=np.float32)[:, None])}


row("fold_not_of_rows_by_themselves", LENGTHS,
    {"x": small("f32", 1, 45, 3), "c": small("f32", 2, 3), "y": poison("f32", 45, 3)},
    lambda a: lengths(a["x"], a["c"]))

# Only the launch knows how long rows are: as a tile's, longer, shorter; several programs along a row or along planes;
# in place; none at all. Rows that lie apart are tested by unit/fold_test.c.
ANY = """
kernel k(const {t} x[D : dx, H : sx, W], const {t} c[H, W], {t} y[D, H : sy, W], {t} z[D, H, W],
         const int BH = {bh}, const int BW = {bw})
    grid({grid})
{{
    int d = pid({d});
    int j = pid({j}) * BH;
    i64 i = (i64)pid({i}) * BW;
    auto v = x[d, j +: BH, i +: BW] * ({t})2 + x[d, j + 1 +: BH, i +: BW] + c[j +: BH, i +: BW];
    y[d, j +: BH, i +: BW] = v;
    z[d, j +: BH, i +: BW] = z[d, j +: BH, i +: BW] - v;
}}
"""


def any_rows(x, c, z):
    v = x * x.dtype.type(2) + c
    v[:, :-1] += x[:, 1:]
    return {"y": exact(v), "z": exact(z - v)}


GRIDS = {"ijd": "cdiv(W, BW), cdiv(H, BH), D", "jid": "cdiv(H, BH), cdiv(W, BW), D",
         "dji": "D, cdiv(H, BH), cdiv(W, BW)"}
for n, (t, bh, bw, shape, grid) in enumerate((
        ("f32", 16, 3, (1, 100, 3), "ijd"), ("f32", 16, 3, (2, 45, 3), "jid"), ("f32", 16, 3, (3, 20, 3), "dji"),
        ("f32", 16, 3, (1, 40, 5), "ijd"), ("f32", 16, 3, (1, 40, 2), "ijd"), ("f32", 16, 3, (1, 40, 7), "jid"),
        ("f32", 64, 1, (1, 300, 1), "ijd"), ("f64", 7, 5, (2, 29, 5), "ijd"), ("u8", 16, 3, (1, 130, 3), "jid"),
        ("i16", 3, 20, (1, 17, 20), "ijd"), ("f16", 8, 3, (2, 33, 3), "ijd"), ("bf16", 16, 3, (1, 21, 3), "jid"),
        ("i64", 4, 3, (1, 9, 3), "ijd"), ("f32", 16, 3, (1, 0, 3), "ijd"), ("f32", 16, 3, (1, 40, 0), "ijd"),
        ("f32", 16, 3, (1, 1, 3), "ijd"))):
    row(f"fold_launch_{t}_{bh}x{bw}_{grid}_{'x'.join(map(str, shape))}",
        ANY.format(t=t, bh=bh, bw=bw, grid=GRIDS[grid], **dict(zip(grid, range(3)))),
        {"x": small(t, n, *shape), "c": small(t, n + 50, *shape[1:]), "y": poison(t, *shape),
         "z": small(t, n + 90, *shape)}, lambda a: any_rows(a["x"], a["c"], a["z"]))

# Columns beside a row's own: outside, or the nearest ones; weights of each column; rows that are clamped by hand.
COLUMNS = """
kernel k(const {t} x[H, W], const {t} w[W], {t} y[H, W], {t} z[H, W], {t} e[H, W],
         const int BH = {bh}, const int BW = {e})
    grid(cdiv(W, BW), cdiv(H, BH))
{{
    int j = pid(1) * BH;
    int i = pid(0) * BW;
    auto v = x[j +: BH, i +: BW];
    y[j +: BH, i +: BW] = v * ({t})2 + x[j - 1 +: BH, i - 1 +: BW] + x[j +: BH, i + 1 +: BW] +
                          load(x[j + 1 +: BH, i + 2 +: BW], other = ({t})5);
    z[j +: BH, i +: BW] = v * w[i +: BW] + (w[i +: BW] + ({t})1) + ({t})iota(BW);
    auto r = clamp(j - 2 + iota(BH), 0, (int)H - 1);
    e[j +: BH, i +: BW] = load(x[j - 1 +: BH, i - 1 +: BW], border = edge) +
                          load(x[j +: BH, i + 2 +: BW], border = edge) + x[r, i +: BW];
}}
"""


def moved(x, dj, di, border=None):
    """x[j + dj, i + di]; outside: that number, or the nearest element."""
    h, w = x.shape
    j, i = np.arange(h)[:, None] + dj, np.arange(w) + di
    if not x.size:
        return x
    near = x[np.clip(j, 0, h - 1), np.clip(i, 0, w - 1)]
    if border is None:
        return near
    return np.where((j >= 0) & (j < h) & (i >= 0) & (i < w), near, np.array(border).astype(x.dtype))


def beside(x, w):
    t = x.dtype.type
    return {"y": exact(x * t(2) + moved(x, -1, -1, 0) + moved(x, 0, 1, 0) + moved(x, 1, 2, 5)),
            "z": exact(x * w + (w + t(1)) + np.arange(len(w)).astype(x.dtype)),
            "e": exact(moved(x, -1, -1) + moved(x, 0, 2) + moved(x, -2, 0))}


for n, (t, bh, e, h) in enumerate((
        ("f32", 16, 3, 200), ("f32", 16, 3, 37), ("f32", 64, 1, 200), ("f32", 16, 2, 61), ("f32", 16, 5, 100),
        ("f32", 5, 7, 33), ("f32", 64, 3, 300), ("f32", 16, 3, 1), ("f32", 16, 3, 2), ("f32", 16, 3, 0),
        ("f64", 16, 3, 50), ("u8", 64, 3, 300), ("u8", 16, 3, 150), ("i16", 16, 4, 90), ("f16", 16, 3, 70),
        ("bf16", 8, 3, 40), ("i32", 16, 3, 64), ("i64", 4, 3, 21), ("f32", 4, 9, 30))):
    row(f"fold_columns_{t}_{bh}x{e}_{h}", COLUMNS.format(t=t, bh=bh, e=e),
        {"x": small(t, n, h, e), "w": small(t, n + 30, e), **{k: poison(t, h, e) for k in "yze"}},
        lambda a: beside(a["x"], a["w"]))
    if h:  # rows that are longer, and are none
        row(f"fold_columns_{t}_{bh}x{e}_{h}_longer", COLUMNS.format(t=t, bh=bh, e=e),
            {"x": small(t, n, h, e + 2), "w": small(t, n + 30, e + 2),
             **{k: poison(t, h, e + 2) for k in "yze"}},
            lambda a, e=e: {**beside(a["x"], a["w"]),
                            "z": exact(a["x"] * a["w"] + (a["w"] + a["x"].dtype.type(1)) +
                                       (np.arange(len(a["w"])) % e).astype(a["x"].dtype))})

RGB = """
kernel k(const {t} x[H, W, 3], const f32 mean[3], const f32 by[3], f32 y[H, W, 3],
         const int BH = 4, const int BW = {bw})
    grid(cdiv(W, BW), cdiv(H, BH))
{{
    int j = pid(1) * BH;
    int i = pid(0) * BW;
    auto v = (f32)x[j +: BH, i +: BW, 0 +: 3] + (f32)load(x[j - 1 +: BH, i + 1 +: BW, 0 +: 3], border = edge);
    auto s = (f32)load(x[j +: BH, i - 2 +: BW, -1 +: 3], border = edge) - (f32)x[j +: BH, i +: BW, 1 +: 3];
    y[j +: BH, i +: BW, 0 +: 3] = (v - mean[0 +: 3]) * (by[0 +: 3] * 0.5) + s;
}}
"""


def rgb(x, mean, by):
    f = x.astype(np.float32)
    h, w = x.shape[:2]

    def at(dj, di, dc):
        j, i, c = (np.clip(np.arange(n) + d, 0, n - 1) for n, d in ((h, dj), (w, di), (3, dc)))
        return f[j][:, i][:, :, c]

    right = np.concatenate([f[:, :, 1:], np.zeros_like(f[:, :, :1])], axis=2)
    return {"y": exact((f + at(-1, 1, 0) - mean) * (by * np.float32(0.5)) + (at(0, -2, -1) - right))}


for t, bw, h, w in (("u8", 16, 9, 150), ("f32", 16, 6, 70), ("f32", 8, 3, 5), ("i8", 16, 5, 1), ("u8", 32, 1, 64)):
    row(f"fold_rgb_{t}_{bw}_{h}x{w}", RGB.format(t=t, bw=bw),
        {"x": small(t, bw, h, w, 3), "mean": small("f32", 1, 3), "by": small("f32", 2, 3),
         "y": poison("f32", h, w, 3)},
        lambda a: rgb(a["x"], a["mean"], a["by"]))
