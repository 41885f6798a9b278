"""Borders: load(place, border = edge|reflect|symmetric|wrap) by slices and indices of every kind, at any distance, for
extents from 0, with masks and in, of packed views and of parts."""
import numpy as np

from rows import row
from values import ALL, PACKED, Arr, exact, exactly, iota, poison, rng, small

from rows_packed import packed

BORDERS = ("edge", "reflect", "symmetric", "wrap")


def place_inside(border, i, n):
    """Where position i is read along an extent of n, as Python's exact integers say."""
    i = int(i)
    if n == 0:
        return None
    if border == "edge":
        return min(max(i, 0), n - 1)
    if border == "wrap":
        return i % n
    p = max(2 * (n - 1), 1) if border == "reflect" else 2 * n
    r = i % p
    return min(r, p - r if border == "reflect" else p - 1 - r)


def bordered(border, v, *index):
    """v at the outer product of vectors of positions; scalars drop their axes."""
    at = [[place_inside(border, i, n) for i in np.atleast_1d(np.array(x, object))] for x, n in zip(index, v.shape)]
    shape = tuple(len(a) for a, x in zip(at, index) if np.ndim(x))
    if 0 in v.shape:
        return np.zeros(shape, v.dtype)
    return v[np.ix_(*at)].reshape(shape)


def r(start, width, step=1):
    return [start + step * i for i in range(width)]


EVERY = """
kernel k(const {t} x[H, W], {t} y[A, B], {t} z[C, B], {t} line[B], {t} one[4], {t} near[A, B], bool within[A, B],
         int m, i64 far)
    grid(1)
{{
    y[0 +: 9, 0 +: 21] = load(x[-2 +: 9, m - 3 +: 21], border = {b});
    within[0 +: 9, 0 +: 21] = in(x[-2 +: 9, m - 3 +: 21]);
    z[0 +: 5, 0 +: 21] = load(x[7 +: 5 : -3, -40 +: 21 : 5], border = {b});
    line[0 +: 21] = load(x[-m, far +: 21], border = {b});
    one[0] = load(x[m, -far], border = {b});
    one[1] = load(x[100, -100], border = {b});
    one[2] = load(x[0, 0], border = {b});
    one[3] = load(x[m, m], mask = m == 0, border = {b});
    near[0 +: 9, 0 +: 21] = load(x[m - 1 +: 9, 0 +: 21], mask = col(iota(9)) != row(iota(21)), border = {b});
}}
"""


def every(a, b):
    x, m, far = a["x"], a["m"], a["far"]
    y = bordered(b, x, r(-2, 9), r(m - 3, 21))
    within = np.logical_and.outer(*[[0 <= i < n for i in p] for p, n in zip((r(-2, 9), r(m - 3, 21)), x.shape)])
    one = [bordered(b, x, i, j) for i, j in ((m, -far), (100, -100), (0, 0))] + [np.zeros((), x.dtype)]
    near = bordered(b, x, r(m - 1, 9), r(0, 21))
    near = np.where(np.arange(9)[:, None] != np.arange(21), near, np.zeros((), x.dtype))
    return {
        "y": exact(y), "within": exact(within), "z": exact(bordered(b, x, r(7, 5, -3), r(-40, 21, 5))), "line": exact(
            bordered(b, x, -m, r(far, 21))), "one": exact(np.array(one, x.dtype)), "near": exact(near)
    }


def every_row(name, b, t, shape, seed, far):
    row(name, EVERY.format(t=t, b=b), {
        "x": small(t, seed, *shape), "y": poison(t, 9, 21), "z": poison(t, 5, 21), "line": poison(t, 21), "one": poison(
            t, 4), "near": poison(t, 9, 21), "within": poison("bool", 9, 21), "m": 1, "far": far
    }, lambda a: every(a, b))


for k, t in enumerate(ALL):
    for b in (BORDERS[k % 4], BORDERS[(k + 1) % 4]):
        every_row(f"border_{b}_{t}", b, t, (6, 11), k, (1 << 40) + 3 * k)
for b in BORDERS:
    for name, shape in (("one", (1, 1)), ("one_row", (1, 7)), ("two", (2, 2)), ("no_rows", (0, 3)),
                        ("no_columns", (3, 0)), ("large", (40, 70))):
        every_row(f"border_{b}_of_{name}", b, "f32", shape, 3, -(1 << 62))
    row(
        f"border_{b}_of_indices", f"""
kernel k(const i32 x[H, W, D], const i32 i[N], const i64 j[N], const u8 s[N], i32 y[N, N], i32 z[N], i32 p[M, N, K],
         i32 q[N, K], i32 w[N, K2])
    grid(1)
{{
    auto I = i[0 +: 7];
    auto J = j[0 +: 7];
    y[0 +: 7, 0 +: 7] = load(x[I, J, 1], border = {b});
    z[0 +: 7] = load(at(x, I, J, s[0 +: 7]), border = {b});
    p[0 +: 3, 0 +: 7, 0 +: 4] = load(x[I, col(iota(3)), -2 +: 4], border = {b});
    q[0 +: 7, 0 +: 4] = load(at(x, I, J, 1 +: 4), mask = col(I) != 0, border = {b});
    w[0 +: 7, 0 +: 2] = load(x[2, I, 1 +: 2], border = {b});
}}
""", {
            "x": iota("i32", 4, 5, 3), "i": exactly("i32", [0, -1, 4, -2147483648, 2147483647, -9, 3]), "j": exactly(
                "i64", [-1, 5, 2, 1 << 50, -(1 << 50), 0, 11]), "s": exactly("u8", [0, 2, 3, 4, 5, 200, 255]),
            "y": poison("i32", 7, 7), "z": poison("i32", 7), "p": poison("i32", 3, 7, 4), "q": poison("i32", 7, 4),
            "w": poison("i32", 7, 2)
        }, lambda a, b=b: indices(a, b))
    row(
        f"border_{b}_of_parts_and_loops", f"""
auto blurred(const f32 A[N], int i) {{
    return load(A[i - 1 +: 16], border = {b}) + 2 * A[i +: 16] + load(A[i + 1 +: 16], border = {b});
}}

kernel k(const f32 x[N], f32 y[N], f32 z[M], const u4 w[P, Q], i32 c[R, S], i32 first[Q])
    grid(1)
{{
    for (int i : range(0, N, 16))
        y[i +: 16] = blurred(x, i);
    first[0 +: 10] = (i32)w[0, 0 +: 10];
    auto part = sub(x, (3), (5));
    z[0 +: 20] = load(part[-8 +: 20], border = {b});
    auto turned = view(raw(x) + (N - 1), (N), (-1));
    z[20 +: 5] = load(turned[-3 +: 5], border = {b});
    c[0 +: 2, 0 +: 9] = (i32)load(sub(w, (0, 1), (3, 6))[1 +: 2, -4 +: 9], border = {b});
}}
""", {"x": small("f32", 1, 37), "y": poison("f32", 37), "z": poison("f32", 25), "w": packed("u4", 2, 4, 9),
      "c": poison("i32", 2, 9), "first": poison("i32", 9)}, lambda a, b=b: parts(a, b))
    for t in PACKED:
        wide = {"f4e2m1": "f32"}.get(t, "i32")
        row(
            f"border_{b}_of_packed_{t}", f"""
kernel k(const {t} q[H, W], {wide} y[A, B], {wide} z[A, B], {wide} one[N],
         {wide} first[W])
    grid(1)
{{
    first[0 +: 12] = ({wide})q[0, 0 +: 12];
    y[0 +: 5, 0 +: 24] = ({wide})load(q[-1 +: 5, -4 +: 24], border = {b});
    z[0 +: 5, 0 +: 24] = ({wide})load(q[0 +: 5, 2 +: 24 : -3], border = {b});
    one[0 +: 9] = ({wide})load(at(q, iota(9), -iota(9)), border = {b});
}}
""", {"q": packed(t, 3, 4, 11), "y": poison(wide, 5, 24), "z": poison(wide, 5, 24), "one": poison(wide, 9),
                "first": poison(wide, 11)},
            lambda a, b=b: (lambda v: {
                "y": exact(bordered(b, v, r(-1, 5), r(-4, 24))), "z": exact(bordered(b, v, r(0, 5), r(2, 24, -3))),
                "one": exact(np.array([bordered(b, v, i, -i) for i in range(9)])), "first": exact(v[0])
            })(a["q"][:, :11]))


def indices(a, b):
    x, i, j, s = a["x"], a["i"], a["j"], a["s"]
    q = np.array([bordered(b, x, i[k], j[k], r(1, 4)) for k in range(7)])
    return {
        "y": exact(bordered(b, x, i, j, 1)), "z": exact(
            np.array([bordered(b, x, i[k], j[k], s[k]) for k in range(7)])), "p": exact(
                np.array([[bordered(b, x, i[k], m, r(-2, 4)) for k in range(7)] for m in range(3)])),
        "q": exact(np.where(i[:, None] != 0, q, 0)), "w": exact(bordered(b, x, 2, i, r(1, 2)))
    }


def parts(a, b):
    x, w = a["x"], a["w"][:3, 1:7]
    n = x.shape[0]
    y = bordered(b, x, r(-1, n)) + 2 * x + bordered(b, x, r(1, n))
    z = np.concatenate([bordered(b, x[3:8], r(-8, 20)), bordered(b, x[::-1], r(-3, 5))])
    c = bordered(b, w, r(1, 2), r(-4, 9)).astype(np.int32)
    return {"y": exact(y), "z": exact(z), "c": exact(c), "first": exact(a["w"][0, :9])}


# Taps of a stencil together: blocks before the array, behind it, and across both ends; a border on one axis only.
for w in (1, 5, 64, 130, 300):
    for t in ("u8", "f32", "f64"):
        row(f"border_taps_{t}_{w}", f"""
kernel k(const {t} x[H, W], {t} y[H, W], {t} z[H, W])
    grid(cdiv(W, 128), cdiv(H, 4))
{{
    int j = pid(1) * 4;
    int i = pid(0) * 128;
    tile<{t}, 4, 128> all = 0;
    tile<{t}, 4, 70> some = 0;
    static for (int u : range(-1, 2)) {{
        static for (int v : range(-3, 4)) {{
            all += load(x[j + u +: 4, i + v +: 128], border = edge) * ({t})(u + 2 * v + 8);
            some += load(x[j + u +: 4, i + v +: 70], border = edge) * ({t})(3 * u + v + 7);
        }}
    }}
    y[j +: 4, i +: 128] = all + x[j +: 4, i - 2 +: 128];
    z[j +: 4, i +: 70] = some;
}}
""", {"x": small(t, w, 9, w), "y": poison(t, 9, w), "z": iota(t, 9, w)}, lambda a: taps(a["x"], a["z"].copy()))


def taps(x, z):
    h, w = x.shape
    at = lambda u, v: bordered("edge", x, r(u, h), r(v, w))
    y = np.zeros_like(x)
    some = np.zeros_like(x)
    for u in range(-1, 2):
        for v in range(-3, 4):
            y = y + at(u, v) * x.dtype.type(u + 2 * v + 8)
            some = some + at(u, v) * x.dtype.type(3 * u + v + 7)
    y[:, 2:] = y[:, 2:] + x[:, :-2] if w > 2 else y[:, 2:]
    for i in range(0, w, 128):
        z[:, i:i + 70] = some[:, i:i + 70]
    return {"y": exact(y), "z": exact(z)}


# Taps without a border: planes and rows outside are zeros, beside others that are inside; a pad that is no zero; steps.
def tap(x, k, j, i, h, w, step=1, pad=0):
    """x[k + .., j + .., i + step * ..], `pad` where that is outside."""
    at = [np.arange(n) * s + f for n, s, f in ((x.shape[0], 1, k), (h, 1, j), (w, step, i))]
    inside = [(a >= 0) & (a < n) for a, n in zip(at, x.shape)]
    v = x[np.ix_(*[np.where(b, a, 0) for a, b in zip(at, inside)])]
    mask = inside[0][:, None, None] & inside[1][None, :, None] & inside[2][None, None, :]
    return np.where(mask, v, x.dtype.type(pad))


for d, h, w in ((1, 1, 1), (3, 5, 70), (4, 9, 150)):
    for t in ("u8", "i16", "f32", "f64"):
        row(f"taps_{t}_{d}x{h}x{w}", f"""
kernel k(const {t} x[D, H, W], {t} y[D, H, W], {t} z[D, H, W], {t} v[D, H, W])
    grid(cdiv(W, 64), cdiv(H, 4), D)
{{
    int k = pid(2);
    int j = pid(1) * 4;
    int i = pid(0) * 64;
    auto block = x[k, j +: 4, i +: 64];
    static for (int n : range(-1, 2))
        block += x[k + n, j +: 4, i - n +: 64] + x[k - n, j + 2 * n +: 4, i + 3 * n +: 64] * 2;
    y[k, j +: 4, i +: 64] = block;
    for (int r : range(4)) {{
        auto line = x[k, j + r, i +: 64];
        static for (int n : range(-2, 3)) line += x[k + n, j + r - n, 2 * i - n +: 64 : 2] * ({t})(n + 3);
        z[k, j + r, i +: 64] = line;
        static for (int n : range(-1, 3))
            line += load(x[k, j + r + n, i + n +: 64], pad = 3);
        v[k, j + r, i +: 64] = line;
    }}
}}
""", {"x": small(t, w, d, h, w), "y": poison(t, d, h, w), "z": poison(t, d, h, w), "v": poison(t, d, h, w)},
            lambda a: outside_taps(a["x"]))


def outside_taps(x):
    _, h, w = x.shape
    at = lambda *p, **o: tap(x, *p, h, w, **o)
    y, z = x.copy(), x.copy()
    for n in (-1, 0, 1):
        y = y + at(n, 0, -n) + at(-n, 2 * n, 3 * n) * x.dtype.type(2)
    for n in range(-2, 3):
        z = z + at(n, -n, -n, step=2) * x.dtype.type(n + 3)
    v = z.copy()
    for n in range(-1, 3):
        v = v + at(0, n, n, pad=3)
    return {"y": exact(y), "z": exact(z), "v": exact(v)}


# Tiles of several short rows, of which each asks whether what it loads is inside: rows above and below the array,
# planes before and behind it, beside loads that repeat or turn what they load, and a tile that two stores take.
for shape, d, h, w in (((1, 8, 8), 1, 21, 40), ((2, 64, 1), 3, 70, 33), ((4, 4, 3), 5, 9, 7),
                       ((2, 5, 40), 3, 12, 97), ((1, 16, 3), 1, 40, 3), ((3, 32, 2), 2, 1, 1)):
    for t in ("u8", "f16", "f32", "f64"):
        p, m, n = shape
        row(f"taps_by_row_{t}_{p}x{m}x{n}", f"""
kernel k(const {t} x[D, H, W], const {t} s[W], {t} y[D, H, W], {t} z[D, W, H], {t} v[D, H, W],
         int by)
    grid(cdiv(W, {n}), cdiv(H, {m}), cdiv(D, {p}))
{{
    int k = pid(2) * {p};
    int j = pid(1) * {m};
    int i = pid(0) * {n};
    auto a = x[k +: {p}, j - 1 +: {m}, i +: {n}] + x[k +: {p}, j + by +: {m}, i +: {n}] * 2;
    auto b = a + x[k - 1 +: {p}, j +: {m}, i - 1 +: {n}] + x[k + 1 +: {p}, j +: {m}, i + 1 +: {n}] * 3;
    y[k +: {p}, j +: {m}, i +: {n}] = b + s[i + 2 +: {n}];
    z[k +: {p}, i +: {n}, j +: {m}] = trans(a, 0, 2, 1) + x[k +: {p}, i - by +: {n}, j +: {m}];
    v[k +: {p}, j +: {m}, i +: {n}] = b * b + load(x[k +: {p}, j + 3 +: {m}, i - 2 +: {n}], pad = 2);
}}
""", {"x": small(t, w, d, h, w), "s": small(t, h, w), "y": poison(t, d, h, w), "z": poison(t, d, w, h),
      "v": poison(t, d, h, w), "by": 1}, lambda a: taps_by_row(a["x"], a["s"]))


def taps_by_row(x, s):
    _, h, w = x.shape
    at = lambda *p, **o: tap(x, *p, h, w, **o)
    two, three = x.dtype.type(2), x.dtype.type(3)
    a = at(0, -1, 0) + at(0, 1, 0) * two
    b = a + at(-1, 0, -1) + at(1, 0, 1) * three
    y = b + np.concatenate([s, np.zeros(2, s.dtype)])[2:w + 2]
    return {"y": exact(y), "z": exact(a.transpose(0, 2, 1) + tap(x, 0, -1, 0, w, h)),
            "v": exact(b * b + at(0, 3, -2, pad=2))}


# What is interleaved is computed at other lanes than the store's.
for w in (3, 64, 150):
    row(f"taps_interleaved_{w}", """
kernel k(const f32 x[2, H, W], f32 y[H, 2 * W])
    grid(cdiv(W, 64), H)
{
    int j = pid(1);
    int i = pid(0) * 64;
    auto a = x[0, j, i +: 64];
    auto b = x[1, j, i +: 64];
    auto c = x[0, j, i + 1 +: 64];
    auto d = x[1, j, i + 1 +: 64];
    y[j, 2 * i +: 128] = interleave(a + 2.0 * b - c + d, b - 3.0 * a + c + 2.0 * d);
}
""", {"x": small("f32", w, 2, 4, w), "y": poison("f32", 4, 2 * w)}, lambda a: interleaved_taps(a["x"]))


def interleaved_taps(x):
    _, h, w = x.shape
    a, b = x
    c, d = (tap(x[n:n + 1], 0, 0, 1, h, w)[0] for n in range(2))
    both = a + 2 * b - c + d, b - 3 * a + c + 2 * d
    return {"y": exact(np.stack(both, -1).reshape(h, 2 * w))}


# The same in straight lines, so that programs of which all is inside have code of their own; taps of every `step`th
# element lie in several groups of so many.
for step, w in ((2, 1), (2, 64), (2, 131), (3, 70), (4, 129)):
    for t in ("u8", "f32", "f64"):
        row(f"taps_apart_{step}_{t}_{w}", f"""
kernel k(const {t} x[H, W], {t} y[P, Q], {t} z[P, Q])
    grid(cdiv(Q, 64), P)
{{
    int j = pid(1);
    int i = {step} * pid(0) * 64;
    tile<{t}, 64> sum = 0;
    static for (int u : range(-1, 2))
        sum += x[j + u, i - 1 +: 64 : {step}] + x[j + u, i +: 64 : {step}] * 2 + x[j + u, i + {step} +: 64 : {step}];
    y[j, pid(0) * 64 +: 64] = sum;
    static for (int v : range(-4, 5)) sum += x[j, i + v +: 64 : {step}] * ({t})(v + 5);
    z[j, pid(0) * 64 +: 64] = sum;
}}
""", {"x": small(t, w, 5, step * w - 1), "y": poison(t, 6, w), "z": poison(t, 6, w)},
            lambda a, step=step, w=w: apart_taps(a["x"], step, w))


def apart_taps(x, step, w):
    at = lambda u, v: tap(x[None], 0, u, v, 6, w, step)[0]
    y = np.zeros((6, w), x.dtype)
    for u in (-1, 0, 1):
        y = y + at(u, -1) + at(u, 0) * x.dtype.type(2) + at(u, step)
    z = y.copy()
    for v in range(-4, 5):
        z = z + at(0, v) * x.dtype.type(v + 5)
    return {"y": exact(y), "z": exact(z)}


# Twice the size: index tiles with a pattern, at the borders of small images, too.
for w in (1, 2, 9, 64, 133):
    for t in ("u16", "f32", "f64"):
        row(f"taps_between_{t}_{w}", f"""
kernel k(const {t} x[H, W], {t} y[P, Q], {t} z[P, Q])
    grid(cdiv(Q, 64), P)
{{
    int j = pid(1);
    auto i = pid(0) * 64 + iota(64);
    auto near = clamp(i / 2, 0, W - 1);
    auto far = clamp(i % 2 == 0 ? (i - 1) / 2 : (i + 1) / 2, 0, W - 1);
    y[j, pid(0) * 64 +: 64] = x[j / 2, near] * 3 + x[j / 2, far] + x[(j + 1) / 2, near] * 2;
    z[j, pid(0) * 64 +: 64] = x[j / 2, (i + 1) / 2] + load(x[j / 2 - 1, (i + 3) / 2], pad = 3);
}}
""", {"x": small(t, w, 3, w), "y": poison(t, 6, 2 * w + 1), "z": poison(t, 6, 2 * w + 1)},
            lambda a: between_taps(a["x"]))


def between_taps(x):
    h, w = x.shape
    i, j, t = np.arange(2 * w + 1), np.arange(2 * h), x.dtype.type

    def at(rows, columns, pad=0):
        inside = (rows >= 0) & (rows < h)
        inside = inside[:, None] & (columns < w)[None, :]
        return np.where(inside, x[np.ix_(np.clip(rows, 0, h - 1), np.clip(columns, 0, w - 1))], t(pad))

    near = np.clip(i // 2, 0, w - 1)
    far = np.clip(np.where(i % 2 == 0, (i - 1) // 2, (i + 1) // 2), 0, w - 1)
    y = at(j // 2, near) * t(3) + at(j // 2, far) + at((j + 1) // 2, near) * t(2)
    z = at(j // 2, (i + 1) // 2) + at(j // 2 - 1, (i + 3) // 2, 3)
    return {"y": exact(y), "z": exact(z)}


# Fields of rows that an index tile lists: two to four side by side, some left out, of rows that are there or not.
for h in (0, 1, 40):
    for t in ("i32", "f32", "f64"):
        row(f"fields_{t}_{h}", f"""
kernel k(const {t} two[H, 2], const {t} three[H, 3], const {t} seven[H, 7], const i32 at[N], {t} y[4, N])
    grid(cdiv(N, 32))
{{
    int i = pid(0) * 32;
    auto k = at[i +: 32];
    y[0, i +: 32] = two[k, 0] + two[k, 1] * 2;
    y[1, i +: 32] = three[k, 0] + three[k, 1] * 2 + three[k, 2] * 3;
    y[2, i +: 32] = seven[k, 1] + seven[k, 3] * 2 + seven[k, 4] * 3 + seven[k, 6] * 4;
    y[3, i +: 32] = load(seven[k, 4], mask = k % 2 == 0) + seven[k, 5] * 2 + load(seven[k, 6], pad = 3);
}}
""", {"two": small(t, 1, h, 2), "three": small(t, 2, h, 3), "seven": small(t, 3, h, 7),
      "at": small("i32", 4, 70, lo=-3, hi=h + 4), "y": poison(t, 4, 70)}, lambda a: fields(a))


def fields(a):
    k, h = a["at"], a["two"].shape[0]
    inside, t = (k >= 0) & (k < h), a["two"].dtype.type

    def at(x, c, pad=0):
        v = a[x][np.where(inside, k, 0), c] if h else np.zeros(len(k), t)
        return np.where(inside, v, t(pad))

    return {"y": exact(np.array([
        at("two", 0) + at("two", 1) * t(2),
        at("three", 0) + at("three", 1) * t(2) + at("three", 2) * t(3),
        at("seven", 1) + at("seven", 3) * t(2) + at("seven", 4) * t(3) + at("seven", 6) * t(4),
        np.where(k % 2 == 0, at("seven", 4), t(0)) + at("seven", 5) * t(2) + at("seven", 6, 3)]))}


# Lanes that go through a list, of an array that is there or not: read once where all are at one place (one-place).
for h in (0, 1, 40):
    for t, lanes in (("f32", 16), ("i32", 33), ("f64", 64), ("u8", 16)):
        row(f"one_place_{t}_{lanes}_{h}", f"""
kernel k(const {t} x[H, 3], const i32 more[H], const i32 first[N], {t} y[N], i32 steps[N])
    grid(cdiv(N, {lanes}))
{{
    int i = pid(0) * {lanes};
    auto n = first[i +: {lanes}];
    tile<{t}, {lanes}> sum = 0;
    tile<i32, {lanes}> trips = 0;
    while (any(n < H)) {{
        auto live = n < H;
        auto k = live ? n : 0;
        sum += live ? x[k, 0] * 2 + x[k, 2] : 0;
        trips += live ? 1 : 0;
        n = live ? k + 1 + more[k] : n;
    }}
    y[i +: {lanes}] = sum;
    steps[i +: {lanes}] = trips;
}}
""", {"x": small(t, 1, h, 3, lo=0, hi=3), "more": small("i32", 2, h, lo=0, hi=3),
      "first": Arr("i32", np.repeat(rng(3).integers(0, 5, 9), 9)[:70].astype(np.int32)),
      "y": poison(t, 70), "steps": poison("i32", 70)}, lambda a: walks(a))


def walks(a):
    h, y, steps = len(a["more"]), np.zeros(70, a["x"].dtype), np.zeros(70, np.int32)
    for i, k in enumerate(a["first"]):
        while k < h:
            y[i] += a["x"][k, 0] * a["x"].dtype.type(2) + a["x"][k, 2]
            steps[i] += 1
            k += 1 + a["more"][k]
    return {"y": exact(y), "steps": exact(steps)}
