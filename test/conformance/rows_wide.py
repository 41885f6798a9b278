"""Programs whose tiles are narrow, or that compute columns again which the next program computes: on the CPU several
of them run at once (nest_wide.c). Grids that are no whole number of those, borders, loops, rows that are kept, values
that differ from program to program."""
import numpy as np

from rows import row
from values import exact, poison, small

from rows_borders import bordered, r, tap

# Taps of several kinds, a value that a loop carries, a mask, a store that begins a few elements further on.
TAPS = """
kernel k(const {t} x[D, H, W], const {t} s[W], {t} y[D, H, W], {t} z[D, H, W + 3],
         const int BH = {bh}, const int BW = {bw})
    grid(cdiv(W, BW), cdiv(H, BH), D)
{{
    int k = pid(2);
    int j = pid(1) * BH;
    int i = pid(0) * BW;
    auto near = x[k, j +: BH, i +: BW] * ({t})3 + x[k, j - 1 +: BH, i + 2 +: BW];
    auto c = clamp(i - 1 + iota(BW), 0, W - 1);
    auto v = near + x[k, clamp(j + 1 + iota(BH), 0, H - 1), c] + row(s[i +: BW]){varies};
    for (int n : range(3)) v = v * ({t})2 + s[n];
    y[k, j +: BH, i +: BW] = v;
    auto even = (i + iota(BW)) % 2 == 0;
    z[k, j +: BH, i + 3 +: BW] = row(even) ? v : near;
}}
"""


def taps(x, s, z, bw, varies):
    d, h, w = x.shape
    t = x.dtype.type
    near = x * t(3) + tap(x, 0, -1, 2, h, w)
    v = near + bordered("edge", x, r(0, d), r(1, h), r(-1, w)) + s
    if varies:
        v = v + (np.arange(w) // bw).astype(x.dtype)
    for n in range(3):
        v = v * t(2) + (s[n] if n < w else t(0))
    z[:, :, 3:] = np.where(np.arange(w) % 2 == 0, v, near)
    return {"y": exact(v), "z": exact(z)}


for t, bh, bw, shape, varies in (("f32", 8, 1, (1, 19, 70), False), ("f32", 4, 4, (2, 9, 61), False),
                                 ("u8", 2, 16, (1, 5, 200), False), ("f64", 3, 2, (2, 7, 33), False),
                                 ("i32", 16, 3, (1, 20, 50), False), ("i16", 1, 8, (1, 3, 40), False),
                                 ("f32", 4, 4, (1, 9, 61), True), ("i32", 4, 1, (1, 1, 1), False),
                                 ("i64", 4, 1, (1, 6, 23), True)):
    row(f"wide_{t}_{bh}x{bw}_{shape[-1]}{'_varying' if varies else ''}",
        TAPS.format(t=t, bh=bh, bw=bw, varies=f" + ({t})pid(0)" if varies else ""),
        {"x": small(t, bh, *shape), "s": small(t, 5, shape[-1]), "y": poison(t, *shape),
         "z": small(t, 6, *shape[:-1], shape[-1] + 3)},
        lambda a, b=bw, v=varies: taps(a["x"], a["s"], a["z"].copy(), b, v))

# Columns: no program fills a vector, and what lies side by side is in as many programs. Booleans and loops, too.
COLUMNS = """
kernel k(const {t} x[H, W], {t} y[H, W], bool z[H, W], const int BH = {bh})
    grid(W, cdiv(H, BH))
{{
    int j = pid(1) * BH;
    int i = pid(0);
    auto v = x[j +: BH, i +: 1];
    auto least = x[j +: BH, i - 1 +: 1];
    for (int n : range(4)) {{
        v = n % 2 == 0 ? v * ({t})2 + ({t})1 : v;
        least = min(least, x[j + n - 2 +: BH, i +: 1]);
    }}
    for (int n : range(2)) y[j +: BH, i +: 1] = v - least * ({t})n;
    z[j +: BH, i +: 1] = v > least;
}}
"""


def down_columns(x):
    h, w = x.shape
    t = x.dtype.type
    v = (x * t(2) + t(1)) * t(2) + t(1)
    least = tap(x[None], 0, 0, -1, h, w)[0]
    for n in range(4):
        least = np.minimum(least, tap(x[None], 0, n - 2, 0, h, w)[0])
    return {"y": exact(v - least), "z": exact(v > least)}


for t, bh, shape in (("f32", 64, (130, 37)), ("f32", 4, (9, 16)), ("i32", 16, (16, 15)), ("u8", 8, (20, 200)),
                     ("f64", 32, (40, 9)), ("f16", 16, (33, 70))):
    row(f"wide_columns_{t}_{bh}_{shape[1]}", COLUMNS.format(t=t, bh=bh),
        {"x": small(t, bh, *shape), "y": poison(t, *shape), "z": poison("bool", *shape)},
        lambda a: down_columns(a["x"]))

# A filter in two steps along both axes: its home has columns that the next program has, too, and rows that the one
# below it takes over.
HALO = """
kernel k(const {t} x[H, W], {t} y[H, W], const int BH = {bh}, const int BW = {bw})
    grid(cdiv(W, BW), cdiv(H, BH))
{{
    int j = pid(1) * BH;
    int i = pid(0) * BW;
    auto c = clamp(i - 3 + iota(BW + 6), 0, W - 1);
    auto r = clamp(j - 3 + iota(BH + 6), 0, H - 1);
    auto grey = x[r, c] * ({t})3 + x[r, c] * x[r, c] * ({t})2;
    tile<{t}, BH, BW + 6> down = 0;
    static for (int d : range(7)) down += extract(grey, d +: BH, 0 +: BW + 6) * ({t})(d + 1);
    tile<{t}, BH, BW> all = 0;
    static for (int d : range(7)) all += extract(down, 0 +: BH, d +: BW);
    y[j +: BH, i +: BW] = all - extract(grey, 3 +: BH, 3 +: BW);
}}
"""


def halo(x):
    h, w = x.shape
    t = x.dtype.type

    def grey(u, v):
        g = bordered("edge", x, r(u, h), r(v, w))
        return g * t(3) + g * g * t(2)
    all_taps = np.zeros_like(x)
    for u in range(7):
        for v in range(7):
            all_taps = all_taps + grey(u - 3, v - 3) * t(u + 1)
    return {"y": exact(all_taps - grey(0, 0))}


for t, bh, bw, shape in (("f32", 8, 64, (45, 700)), ("f32", 4, 4, (30, 131)), ("i32", 8, 16, (21, 67)),
                         ("u8", 4, 32, (17, 900)), ("f64", 2, 8, (13, 100)), ("f32", 4, 8, (9, 1300)),
                         ("i32", 8, 64, (1, 1))):
    row(f"wide_halo_{t}_{bh}x{bw}_{shape[1]}", HALO.format(t=t, bh=bh, bw=bw),
        {"x": small(t, bh, *shape), "y": poison(t, *shape)}, lambda a: halo(a["x"]))

# A star of many taps and few vectors: whether they are inside is found once for several programs. Rows and planes
# outside, grids that leave programs over in each row.
STAR = """
kernel k(const {t} x[D, H, W], {t} y[D, H, W], const int B = {b})
    grid(cdiv(W, B), H, D)
{{
    int k = pid(2);
    int j = pid(1);
    int i = pid(0) * B;
    auto sum = x[k, j, i +: B] * ({t})5;
    static for (int d : range(1, 4))
        sum += (x[k, j, i - d +: B] + x[k, j, i + d +: B] * ({t})2 + x[k, j - d, i +: B] +
                x[k, j + d, i +: B] * ({t})3 + x[k - d, j, i +: B] + x[k + d, j, i +: B] * ({t})4) * ({t})d;
    y[k, j, i +: B] = sum;
}}
"""


def star(x):
    d, h, w = x.shape
    t = x.dtype.type
    at = lambda k, j, i: np.stack([tap(x, k + n, j, i, h, w)[0] for n in range(d)])
    y = x * t(5)
    for n in range(1, 4):
        y = y + (at(0, 0, -n) + at(0, 0, n) * t(2) + at(0, -n, 0) + at(0, n, 0) * t(3) + at(-n, 0, 0) +
                 at(n, 0, 0) * t(4)) * t(n)
    return {"y": exact(y)}


for t, b, shape in (("f32", 64, (2, 9, 640)), ("f32", 16, (9, 3, 133)), ("i32", 64, (8, 8, 259)),
                    ("u8", 64, (3, 5, 700)), ("f64", 32, (2, 7, 129)), ("i64", 16, (1, 1, 64)),
                    ("f16", 128, (2, 4, 517))):
    row(f"wide_star_{t}_{b}_{shape[-1]}", STAR.format(t=t, b=b),
        {"x": small(t, b, *shape), "y": poison(t, *shape)}, lambda a: star(a["x"]))

# Rows that are loaded further than they are stored: several programs of a row, and four rows abreast; beyond a row's
# last program, and in place, where none runs again.
ROW_ENDS = """
kernel k(const {t} x[H, W], {t} y[H, W], const int B = {b})
    grid(cdiv(W, B), H)
{{
    int j = pid(1);
    int i = pid(0) * B;
    auto c = {right};
    y[j, i +: B] = {own}[j, i +: B] + x[j, i - 1 +: B] * ({t})2 + c * ({t})3 + x[j - 1, i +: B] * ({t})4 +
                   x[j + 1, i +: B] * ({t})5 + x[j, i - 3 +: B] * x[j, i +: B];
}}
"""
RIGHT = {"zero": "x[j, i + 1 +: B]", "edge": "x[j, clamp(i + 1 + iota(B), 0, W - 1)]"}


def row_ends(x, own, border):
    h, w = x.shape
    t = x.dtype.type
    at = lambda j, i: tap(x[None], 0, j, i, h, w)[0]
    right = bordered("edge", x, r(0, h), r(1, w)) if border == "edge" else at(0, 1)
    return {"y": exact(own + at(0, -1) * t(2) + right * t(3) + at(-1, 0) * t(4) + at(1, 0) * t(5) + at(0, -3) * x)}


for t, b, own, border, shape in (("f32", 64, "x", "zero", (9, 320)), ("f32", 64, "x", "edge", (7, 1)),
                                 ("i32", 64, "x", "zero", (6, 1091)), ("u8", 64, "x", "zero", (13, 1500)),
                                 ("f64", 32, "x", "edge", (5, 161)), ("f32", 64, "y", "zero", (9, 327)),
                                 ("i32", 32, "y", "edge", (4, 1027)), ("f32", 64, "x", "zero", (1, 2113)),
                                 ("i16", 128, "x", "zero", (8, 127)), ("i64", 16, "x", "zero", (17, 64))):
    row(f"wide_row_ends_{t}_{b}_{border}_{shape[-1]}{'_in_place' if own == 'y' else ''}",
        ROW_ENDS.format(t=t, b=b, own=own, right=RIGHT[border]),
        {"x": small(t, b, *shape), "y": small(t, 7, *shape)},
        lambda a, o=own, e=border: row_ends(a["x"], a[o], e))

# Twice as many columns by patterns of two, each vector's neighbours within the bounds.
TWICE = """
kernel k(const {t} x[H, W], {t} y[H, 2 * W], const int B = {b})
    grid(cdiv(2 * W, B), H)
{{
    auto i = pid(0) * B + iota(B);
    auto c = clamp(i / 2, 0, W - 1);
    auto near = i % 2 == 0 ? clamp((i - 1) / 2, 0, W - 1) : clamp((i + 1) / 2, 0, W - 1);
    y[pid(1), pid(0) * B +: B] = x[pid(1), c] * ({t})3 + x[pid(1), near];
}}
"""


def twice(x):
    i = np.arange(2 * x.shape[1])
    near = np.clip(np.where(i % 2 == 0, (i - 1) // 2, (i + 1) // 2), 0, x.shape[1] - 1)
    return {"y": exact(x[:, i // 2] * x.dtype.type(3) + x[:, near])}


for t, b, shape in (("f32", 256, (5, 640)), ("f32", 64, (3, 1)), ("i32", 64, (4, 559)), ("u16", 128, (3, 1030)),
                    ("f64", 32, (2, 130)), ("u8", 256, (2, 77))):
    row(f"wide_twice_{t}_{b}_{shape[-1]}", TWICE.format(t=t, b=b),
        {"x": small(t, b, *shape), "y": poison(t, shape[0], 2 * shape[1])}, lambda a: twice(a["x"]))

# Gathers along the lanes that end with a program's tile, or go around in it; elements of memory apart.
ENDS = """
kernel k(const {t} x[H, 2 * W], {t} y[H, W], const int BW = 4)
    grid(cdiv(W, BW), H)
{{
    int i = pid(0) * BW;
    auto v = x[pid(1), 2 * i +: BW : 2] + x[pid(1), 2 * i + 1 +: BW : 2] * ({t})2;
    y[pid(1), i +: BW] = {moved} + v * ({t})3;
}}
"""


def ends(x, how):
    h, w = x.shape[0], x.shape[1] // 2
    t = x.dtype.type
    v = x[:, ::2] + x[:, 1::2] * t(2)
    padded = np.zeros((h, (w + 3) // 4 * 4), x.dtype)
    padded[:, :w] = v
    tiles = padded.reshape(h, -1, 4)
    moved = {"shift": np.concatenate([np.zeros_like(tiles[:, :, :1]), tiles[:, :, :-1]], 2),
             "roll": np.roll(tiles, 1, 2), "flip": tiles[:, :, ::-1]}[how].reshape(h, -1)
    return {"y": exact(moved[:, :w] + v * t(3))}


for t, how, call in (("f32", "shift", "shift(v, 0, 1)"), ("i32", "roll", "roll(v, 0, 1)"),
                     ("u8", "flip", "flip(v, 0)")):
    row(f"wide_ends_{how}_{t}", ENDS.format(t=t, moved=call),
        {"x": small(t, 3, 5, 2 * 43), "y": poison(t, 5, 43)}, lambda a, h=how: ends(a["x"], h))

# Little work: more programs at once, beyond the last one, or some of them again; along the grid's second axis; in
# place, where none may run again; a store that begins elsewhere, of which nobody knows what is beyond the last one.
LITTLE = """
kernel k(const {t} x[H, W], {t} y[H, W], const int BH = {bh}, const int BW = {bw})
    grid({grid})
{{
    int j = pid({row}) * BH;
    int i = pid({column}) * BW{first};
    auto v = {of}[j +: BH, i +: BW] * ({t})2 + x[j - 1 +: BH, i + 1 +: BW];
    y[j +: BH, i{more} +: BW] = v + ({t})1;
}}
"""


def little(x, y, of, more, first):
    h, w = x.shape
    t = x.dtype.type
    v = (y if of == "y" else x) * t(2) + tap(x[None], 0, -1, 1, h, w)[0] + t(1)
    if more:
        v = np.concatenate([y[:, :more], v[:, :-more]], 1)
    v[:, :first] = y[:, :first]
    return {"y": exact(v)}


for t, bh, bw, shape in (("f32", 4, 4, (9, 256)), ("f32", 4, 4, (13, 50)), ("f32", 2, 8, (5, 24)),
                         ("f32", 1, 16, (7, 90)), ("f32", 16, 3, (33, 100)), ("f32", 16, 3, (16, 3)),
                         ("f32", 64, 1, (70, 9)), ("f64", 3, 2, (7, 41)), ("u8", 2, 8, (4, 300)),
                         ("i16", 5, 5, (11, 77)), ("f16", 4, 4, (6, 60)), ("bf16", 8, 2, (9, 31)),
                         ("i32", 1, 1, (3, 200)), ("i32", 1, 20, (4, 130)), ("i8", 1, 3, (2, 500)),
                         ("i64", 2, 1, (0, 5))):
    for how, of, turned, more, first in (("", "x", False, 0, 0), ("turned_", "x", True, 0, 0),
                                         ("in_place_", "y", False, 0, 0), ("later_", "x", True, 2, 0),
                                         ("later_in_place_", "y", False, 0, 2)):
        grid = ["cdiv(W, BW)", "cdiv(H, BH)"]
        row(f"wide_little_{how}{t}_{bh}x{bw}_{shape[1]}",
            LITTLE.format(t=t, bh=bh, bw=bw, of=of, grid=", ".join(grid[::-1] if turned else grid), row=int(not turned),
                          column=int(turned), more=f" + {more}" if more else "", first=f" + {first}" if first else ""),
            {"x": small(t, bh, *shape), "y": small(t, bw + 50, *shape)},
            lambda a, o=of, m=more, f=first: little(a["x"], a["y"], o, m, f))

# What is stored has its axes from a reshape that splits or joins others: of what was loaded no axis moves.
RESHAPED = """
kernel k(const {t} x[N], {t} y[H, W])
    grid({grid})
{{
    int j = pid({row}) * {bh};
    int i = pid({column}) * {bw};
    y[j +: {bh}, i +: {bw}] = reshape({of}, {bh}, {bw}){more};
}}
"""


def reshaped(x, h, w, bh, bw):
    y = np.zeros((h + bh, w + bw), x.dtype)
    for i in range(0, w, bw):
        part = x[i * bh:(i + bw) * bh]
        y[:, i:i + bw] = np.tile(np.concatenate([part, np.zeros(bh * bw - len(part), x.dtype)]).reshape(bh, bw),
                                 (y.shape[0] // bh + 1, 1))[:y.shape[0]]
    return y[:h, :w]


for t, bh, bw, shape in (("f32", 2, 16, (5, 70)), ("f32", 4, 4, (9, 33)), ("u8", 2, 8, (4, 100)),
                         ("f64", 3, 2, (6, 11))):
    for turned in (False, True):
        for how, of in (("split", f"x[i * {bh} +: {bh * bw}]"),
                        ("joined", f"reshape(x[i * {bh} +: {bh * bw}], {bw}, {bh})")):
            grid = [f"cdiv(W, {bw})", f"cdiv(H, {bh})"]
            row(f"wide_{how}_{'turned_' if turned else ''}{t}_{bh}x{bw}",
                RESHAPED.format(t=t, bh=bh, bw=bw, row=int(not turned), column=int(turned), more=f" + ({t})1", of=of,
                                grid=", ".join(grid[::-1] if turned else grid)),
                {"x": small(t, bw, bh * shape[1]), "y": poison(t, *shape)},
                lambda a, s=shape, b=(bh, bw): {"y": exact(reshaped(a["x"], *s, *b) + a["x"].dtype.type(1))})

# Filters in two steps, whose first one has columns on both sides: more columns before these begin with a line of memory
# (nest_halo.c). By slices, by clamped tiles, two that begin at different columns; narrow arrays, and wide ones.
LEAD = """
kernel k(const {t} x[H, W], {t} y[H, W], const int BH = 4, const int BW = {bw})
    grid(cdiv(W, BW), cdiv(H, BH))
{{
    int j = pid(1) * BH;
    int i = pid(0) * BW;
    auto r = clamp(j - 1 + iota(BH + 2), 0, (int)H - 1);
    auto v = {load};
    auto w = v * ({t})2{number};
    auto d = extract(w, 0 +: BH, 0 +: BW + {n}) + extract(w, 1 +: BH, 0 +: BW + {n}) * ({t})3 +
             extract(v, 2 +: BH, 0 +: BW + {n});
    y[j +: BH, i +: BW] = extract(d, 0 +: BH, 0 +: BW) + extract(d, 0 +: BH, {n} +: BW) * ({t})2 +
                          extract(v, 1 +: BH, {m} +: BW);
}}
"""
LEAD_LOADS = {
    "slice": "x[j - 1 +: BH + 2, i - {m} +: BW + {n}]",
    "clamped": "x[r, clamp(i - {m} + iota(BW + {n}), 0, (int)W - 1)]",
    "two": "x[r, clamp(i - {m} + iota(BW + {n}), 0, (int)W - 1)] + x[j - 1 +: BH + 2, i - {m} +: BW + {n}]",
    "apart": "x[r, clamp(i - {m} + iota(BW + {n}), 0, (int)W - 1)] + x[r, i + 2 +: BW + {n}]",
}


def led(x, kind, bw, n, m, number):
    h, w = x.shape
    t = x.dtype.type
    width = (w + bw - 1) // bw * bw
    columns = np.arange(width).reshape(-1, bw)[:, :1] + np.arange(bw + n) - m  # of each program
    rows = np.arange(-1, (h + 3) // 4 * 4 + 1)

    def at(rows, columns, clamps_rows, clamps):
        j, i = rows[:, None, None], columns[None]
        inside = (clamps_rows | ((j >= 0) & (j < h))) & (clamps | ((i >= 0) & (i < w)))
        return np.where(inside, x[np.clip(j, 0, h - 1), np.clip(i, 0, w - 1)], t(0))

    v = {"slice": lambda: at(rows, columns, False, False), "clamped": lambda: at(rows, columns, True, True),
         "two": lambda: at(rows, columns, True, True) + at(rows, columns, False, False),
         "apart": lambda: at(rows, columns, True, True) + at(rows, columns + m + 2, True, False)}[kind]()
    s = v * t(2) + (np.arange(bw + n) // 64).astype(x.dtype) * t(bool(number))
    k = len(rows) - 2
    d = s[:k] + s[1:k + 1] * t(3) + v[2:k + 2]
    y = d[..., :bw] + d[..., n:n + bw] * t(2) + v[1:k + 1, :, m:m + bw]
    return {"y": exact(y.reshape(k, -1)[:h, :w])}


for k, (t, kind, bw, n, m, h, w) in enumerate((
        ("f32", "slice", 64, 6, 3, 17, 640), ("f32", "clamped", 64, 6, 3, 9, 517), ("f32", "two", 64, 2, 1, 8, 300),
        ("f32", "apart", 64, 6, 3, 9, 320), ("f32", "clamped", 256, 13, 9, 7, 600),
        ("f32", "slice", 256, 32, 17, 5, 1025), ("f32", "two", 512, 7, 0, 6, 900), ("f32", "apart", 256, 6, 3, 6, 500),
        ("f64", "clamped", 32, 5, 5, 6, 200), ("i32", "two", 64, 7, 0, 6, 333), ("u8", "clamped", 1024, 6, 3, 9, 1300),
        ("u8", "slice", 256, 6, 3, 9, 1800), ("i16", "slice", 512, 9, 4, 6, 700), ("f32", "clamped", 64, 6, 3, 1, 1),
        ("f32", "slice", 256, 6, 3, 3, 3), ("f16", "clamped", 512, 4, 2, 6, 1200),
        ("i64", "slice", 128, 3, 2, 5, 250))):
    # with the number of a column, programs differ, so that each runs by itself
    for number in ("", f" + ({t})(iota(BW + {n}) / 64)"):
        row(f"wide_lead_{t}_{kind}_{bw}_{n}_{m}_{h}x{w}{'_alone' if number else ''}",
            LEAD.format(t=t, bw=bw, n=n, m=m, load=LEAD_LOADS[kind].format(n=n, m=m), number=number),
            {"x": small(t, k, h, w), "y": poison(t, h, w)},
            lambda a, kind=kind, bw=bw, n=n, m=m, number=number: led(a["x"], kind, bw, n, m, number))

# ---- an element of a tile of one, as a number ------------------------------------------------------------------------
ONE_OF_A_TILE = """
kernel k(const {t} x[N], const {t} y[M], {t} z[N])
    grid(cdiv(N, {b}))
{{
    int i = pid(0) * {b};
    auto one = squeeze(y[2 +: 1], 0);
    z[i +: {b}] = load(x[i - 1 +: {b}], pad = one + ({t})3) * one +
                  squeeze(squeeze(reshape(y[3 +: 1], 1, 1), 0), 0) * ({t})2;
}}
"""


def with_one(a):
    x, y = a["x"], a["y"]
    shifted = np.concatenate(([y[2] + y.dtype.type(3)], x[:-1])) if len(x) else x
    return {"z": exact(shifted * y[2] + y[3] * y.dtype.type(2))}


for t in ("i32", "f32", "f64", "u16"):
    for b, n in ((2, 33), (3, 10), (16, 100), (64, 1), (2, 0)):
        row(f"wide_number_of_a_tile_{t}_{b}_{n}", ONE_OF_A_TILE.format(t=t, b=b),
            {"x": small(t, 5, n), "y": small(t, 6, 5), "z": poison(t, n)}, with_one)
