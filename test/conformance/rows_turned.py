"""Loops along rows, of which each lane has one (turn-rows): blocks of columns are transposed, as many trips at a time
as fill lines of memory. Here: types, extents from 0, backwards, in place, columns that trips share, parts of rows,
masks."""
import numpy as np

from rows import row
from values import ALL, Arr, exact, is_float, poison, rng, small, wide

SHAPES = ((1, 1), (0, 5), (5, 0), (17, 3), (16, 64), (40, 67), (9, 200))


def recur(x, s, t):
    """The next value of a recurrence whose order matters, exact in any type."""
    return np.maximum(x, s - 1) if is_float(t) else (x | s) if t == "bool" else x + s * x.dtype.type(3)


def text(x, s, t):
    return f"max({x}, {s} - 1)" if is_float(t) else f"({x} || {s})" if t == "bool" else f"{x} + {s} * 3"


def filtered(a, t, back=False):
    x = wide(a)
    y, s = np.zeros(x.shape, x.dtype), np.zeros(x.shape[0], x.dtype)
    with np.errstate(over="ignore"):
        for i in range(x.shape[1])[::-1 if back else 1]:
            s = y[:, i] = recur(x[:, i], s, t)
    return exact(y)


def rows_of(t, seed, h, w):
    return small(t, seed, h, w, lo=0, hi=2 if t == "bool" else 9)


for t in ALL:
    for n, (h, w) in enumerate(SHAPES if t in ("f32", "u8") else ((40, 67),)):
        for name, trips, at in (("forward", "range(W)", "i"), ("down", "range(W - 1, -1, -1)", "i"),
                                ("reversed", "range(W)", "W - 1 - i")):
            row(f"turned_{name}_{t}_{h}x{w}", f"""
kernel k(const {t} x[H, W], {t} y[H, W]) grid(cdiv(H, 16))
{{
    int r = pid(0) * 16;
    tile<{t}, 16> s = {"false" if t == "bool" else 0};
    for (int i : {trips}) {{
        s = {text(f"x[r +: 16, {at}]", "s", t)};
        y[r +: 16, {at}] = s;
    }}
}}
""", {"x": rows_of(t, n, h, w), "y": poison(t, h, w)},
                lambda a, t=t, name=name, x=rows_of(t, n, h, w): {"y": filtered(x, t, name != "forward")})


def several(a):
    """Of columns that trips share, and of four a trip."""
    x, g, p = a["x"].astype(np.int64), a["g"].astype(np.int64), a["p"]
    h, w = x.shape
    padded = np.pad(x, ((0, 0), (2, 2)))[p]
    s, y, z = np.zeros(len(p), np.int64), np.zeros((h, w), np.int64), np.zeros((h, w), np.int64)
    lo, hi = 1, w - 2
    y[:], z[:] = 7, 9
    for i in range(lo, hi):
        s = (s * 3 + padded[:, i] - padded[:, i + 2] * 5 + padded[:, i + 4]) & 0xffff
        y[p, i] = s
        four = g[:, 4 * i:4 * i + 4] @ np.array([1, 2, 3, 5])
        z[:, i] = np.where(np.arange(h) % 3 > 0, four, z[:, i])
    return {"y": exact(y.astype(np.int32)), "z": exact(z.astype(np.int32))}


for h, w in ((24, 70), (8, 1), (24, 5), (48, 200)):
    row(f"turned_several_{h}x{w}", """
kernel k(const i32 x[H, W], const u8 g[H, V], const i32 p[H], i32 y[H, W], i32 z[H, W]) grid(cdiv(H, 8))
{
    int r = pid(0) * 8;
    auto rows = p[r +: 8];
    auto some = (r + iota(8)) % 3 > 0;
    tile<i32, 8> s = 0;
    for (int i : range(1, W - 2)) {
        s = (s * 3 + x[rows, i - 2] - x[rows, i] * 5 + x[rows, i + 2]) & 0xffff;
        y[rows, i] = s;
        auto sum = (i32)g[r +: 8, 4 * i] + (i32)g[r +: 8, 4 * i + 1] * 2 + (i32)g[r +: 8, 4 * i + 2] * 3
            + (i32)g[r +: 8, i * 4 + 3] * 5;
        store(z[r +: 8, i], sum, mask = some);
    }
}
""", {"x": small("i32", 1, h, w, lo=0, hi=99), "g": small("u8", 2, h, 4 * w, lo=0, hi=99),
      "p": Arr("i32", rng(3).permutation(h).astype(np.int32)), "y": Arr("i32", np.full((h, w), 7, np.int32)),
      "z": Arr("i32", np.full((h, w), 9, np.int32))}, several)


def in_place(a):
    x, y, z, u = (a[k].astype(np.int64) for k in "xyzu")
    s = np.zeros(len(x), np.int64)
    for i in range(x.shape[1]):
        right = x[:, i + 1] if i + 1 < x.shape[1] else 0
        s = (s + x[:, i] * 3 + right) & 0xffff
        x[:, i] = s
        y[:, i] = (y[:, i - 1] if i else 0) + y[:, i] + s & 0xffff
        z[:, i] = s
        s = s + z[:, i]
        u[:, i] += s & 0xff
        if i + 2 < x.shape[1]:
            u[:, i + 2] -= 1
    return {k: exact(v.astype(np.int32)) for k, v in zip("xyzu", (x, y, z, u))}


for h, w in ((16, 64), (20, 75), (16, 1), (16, 2)):
    row(f"turned_in_place_{h}x{w}", """
kernel k(i32 x[H, W], i32 y[H, W], i32 z[H, W], i32 u[H, W]) grid(cdiv(H, 16))
{
    int r = pid(0) * 16;
    tile<i32, 16> s = 0;
    for (int i : range(W)) {
        s = (s + x[r +: 16, i] * 3 + x[r +: 16, i + 1]) & 0xffff;
        x[r +: 16, i] = s;
        y[r +: 16, i] = (y[r +: 16, i - 1] + y[r +: 16, i] + s) & 0xffff;
        z[r +: 16, i] = s;
        s = s + z[r +: 16, i];
        u[r +: 16, i] += s & 0xff;
        u[r +: 16, i + 2] += -1;
    }
}
""", {k: small("i32", n, h, w, lo=0, hi=999) for n, k in enumerate("xyzu")}, in_place)


def planes(a):
    x, s = a["x"], np.zeros((a["x"].shape[0], a["x"].shape[1]), np.float32)
    y = np.full_like(x, 5)
    for i in range(a["lo"], a["hi"], 2):
        left = np.where(0 <= i < x.shape[2], x[:, :, i % x.shape[2]], np.float32(3))
        right = np.where(0 <= i + 1 < x.shape[2], x[:, :, (i + 1) % x.shape[2]], np.float32(0))
        s = np.maximum(s - np.float32(1), left + right * np.float32(2))
    y[:, :, 0] = s
    return {"y": exact(y)}


for lo, hi in ((0, 90), (-7, 130), (3, 4), (9, 2), (5, 84)):
    row(f"turned_planes_{lo}_{hi}".replace("-", "m"), """
kernel k(const f32 x[C, H, W], f32 y[C, H, W], int lo, int hi) grid(C)
{
    tile<f32, 12> s = 0;
    for (int i : range(lo, hi, 2))
        s = max(s - 1, load(x[pid(0), 0 +: 12, i], pad = 3) + x[pid(0), 0 +: 12, i + 1] * 2);
    y[pid(0), 0 +: 12, 0] = s;
}
""", {"x": small("f32", 1, 3, 12, 90, lo=0, hi=50), "y": Arr("f32", np.full((3, 12, 90), 5, np.float32)),
      "lo": lo, "hi": hi}, planes)
