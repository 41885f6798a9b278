"""Movement by whole vectors: parts, turns, reversals and shifts of tiles longer than a vector.

Of what memory holds and of what is computed, along the lanes and across them, in reductions, in place.
"""
import functools

import numpy as np

from rows import row
from values import Arr, exact, ints, is_float, poison, random_bits, store


def values(t, seed, *shape):
    if not is_float(t):
        return random_bits(t, seed, *shape)
    return Arr(t, store(np.random.default_rng(seed).integers(-200, 200, shape) / 4, t))


def shifted(x, n, fill=0):
    """x[i - n] along the first axis."""
    at = np.arange(len(x)) - n
    inside = (at >= 0) & (at < len(x))
    at = np.where(inside, at, 0)
    return np.where(inside.reshape(-1, *[1] * (x.ndim - 1)), x[at], np.array(fill).astype(x.dtype))


DISTANCES = (0, 1, -1, 3, 15, 16, -16, 17, 63, 64, -65, 200, -255, 256, 300)
N = 256
for k, t in enumerate(("u8", "i16", "f32", "f64", "i64")):
    stores = "\n".join(f"    y[{i}, 0 +: {N}] = shift(v, 0, {d}, 5);" for i, d in enumerate(DISTANCES))
    row(
        f"windows_shift_{t}", f"""
kernel k(const {t} x[N], {t} y[R, N])
    grid(1)
{{
    auto v = x[0 +: {N}];
{stores}
}}
""", {"x": values(t, k, N - 3), "y": poison(t, len(DISTANCES), N - 3)},
        lambda a: (lambda x: {"y": exact(np.stack([shifted(x, d, 5)[:N - 3] for d in DISTANCES]))})(np.concatenate(
            (a["x"], np.zeros(3, a["x"].dtype)))))
    row(
        f"windows_{t}", f"""
kernel k(const {t} x[N], {t} f[N], {t} g[M], {t} r[N], {t} q[N], {t} c[N], {t} e[P], {t} s[N])
    grid(2)
{{
    int p = pid(0) * 256;
    auto v = x[p +: 256];
    f[p +: 256] = flip(v, 0);
    g[pid(0) * 100 +: 100] = flip(x[p +: 100], 0);
    r[p +: 256] = roll(v, 0, 1);
    q[p +: 256] = roll(v, 0, -77);
    c[p +: 256] = cat(extract(v, 48 +: 208), extract(v, 0 +: 48), 0);
    e[pid(0) * 101 +: 101] = flip(extract(v, 7 +: 101), 0);
    s[p +: 256] = flip(shift(flip(roll(v, 0, 9), 0), 0, 20), 0);
}}
""", {
            "x": values(t, 10 + k, 512),
            **{n: poison(t, m)
               for n, m in dict(f=512, g=200, r=512, q=512, c=512, e=202, s=512).items()}
        }, lambda a: both(a["x"]))


def both(x):
    parts = [x[:256], x[256:]]

    def of(f):
        return exact(np.concatenate([f(v) for v in parts]))

    return {
        "f": of(lambda v: v[::-1]),
        "g": of(lambda v: v[:100][::-1]),
        "r": of(lambda v: np.roll(v, 1)),
        "q": of(lambda v: np.roll(v, -77)),
        "c": of(lambda v: np.concatenate((v[48:], v[:48]))),
        "e": of(lambda v: v[7:108][::-1]),
        "s": of(lambda v: shifted(np.roll(v, 9)[::-1], 20)[::-1]),
    }


# Computed values, carried ones, those of arrays that are stored to; reductions; indices that only the run knows; the
# array's end.
row(
    "windows_of_values", """
kernel k(const i32 x[N], i32 z[N], i32 d[N], i32 s[1], i32 m[H], i32 w[H, W], const i32 a[H, W], int n)
    grid(1)
{
    auto v = x[0 +: 256];
    auto u = v * 3 + 1;
    d[0 +: 256] = shift(u, 0, 1) - 2 * u + shift(u, 0, -1);
    s[0] = sum(v * shift(v, 0, 2));
    for (int i : range(3)) v = v + shift(v, 0, 1) - flip(v, 0);
    z[0 +: 256] += v;
    z[0 +: 256] = shift(z[0 +: 256], 0, 1);
    auto b = a[0 +: 8, 0 +: 64];
    m[0 +: 8] = sum(shift(b, 0, n) * roll(b, 0, 3), axis = 1);
    auto other = broadcast(col((iota(8) * 5 + n) % 8), 8, 64);
    w[0 +: 8, 0 +: 64] = gather(b, other, 0) + shift(b, 0, 1, -7) + shift(b, 1, 1);
}
""", {
        "x": Arr("i32",
                 np.arange(251, dtype=np.int32) % 17 - 5),
        "z": Arr("i32", np.arange(251, dtype=np.int32)),
        "d": poison("i32", 251),
        "s": poison("i32", 1),
        "m": poison("i32", 7),
        "w": poison("i32", 7, 61),
        "a": Arr("i32",
                 np.random.default_rng(1).integers(-99, 99, (7, 61)).astype(np.int32)),
        "n": 2
    }, lambda a: of_values(a))


def of_values(a):
    v = np.zeros(256, np.int32)
    v[:251] = a["x"]
    b = np.zeros((8, 64), np.int32)
    b[:7, :61] = a["a"]
    u = v * 3 + 1
    d = shifted(u, 1) - 2 * u + shifted(u, -1)
    s = np.array([(v * shifted(v, 2)).sum()], np.int32)
    for _ in range(3):
        v = v + shifted(v, 1) - v[::-1]
    z = np.zeros(256, np.int32)
    z[:251] = a["z"] + v[:251]
    m = (shifted(b, 2) * np.roll(b, 3, 0)).sum(1).astype(np.int32)
    w = b[(np.arange(8) * 5 + 2) % 8] + shifted(b, 1, -7) + shifted(b.T, 1).T
    return {
        "z": exact(shifted(z, 1)[:251]), "d": exact(d[:251]), "s": exact(s), "m": exact(m[:7]), "w": exact(w[:7, :61])
    }

# Split, interleaved, repeated: tiles of many vectors, from memory and computed; parts of 2, 3, 4 and 8.
PARTS = {"a": 128, "b": 128, "c": 96, "d": 64, "e": 32, "i": 256, "r": 256, "q": 512, "f": 64}
for k, t in enumerate(("u8", "i16", "f32", "f64", "bool")):
    outs = ", ".join(f"{t} {n}[{n.upper()}]" for n in PARTS)
    row(
        f"windows_parts_{t}", f"""
kernel k(const {t} x[N], const {t} z[M], {outs})
    grid(1)
{{
    auto v = x[0 +: 256];
    auto (a_, b_) = split(reshape(v, 128, 2));
    a[0 +: 128] = a_;
    b[0 +: 128] = b_;
    c[0 +: 96] = pick(reshape(z[0 +: 288], 96, 3), 1, 1);
    d[0 +: 64] = pick(reshape(flip(v, 0), 64, 4), 1, 3);
    e[0 +: 32] = pick(reshape(v, 32, 8), 1, 5);
    i[0 +: 256] = interleave(b_, a_);
    r[0 +: 256] = repeat(a_, 0, 2);
    q[0 +: 512] = repeat(x[4 +: 128], 0, 4);
    f[0 +: 64] = pick(pick(reshape(v, 2, 64, 2), 2, 1), 0, 1);
}}
""",
        {
            "x": values(t, 30 + k, 256),
            "z": values(t, 40 + k, 285),
            **{n: poison(t, m)
               for n, m in PARTS.items()}
        }, lambda a: of_parts(a["x"], a["z"]))


def of_parts(x, z):
    z = np.concatenate((z, np.zeros(3, z.dtype)))
    return {
        "a": exact(x[::2]),
        "b": exact(x[1::2]),
        "c": exact(z[1::3]),
        "d": exact(x[::-1][3::4]),
        "e": exact(x[5::8]),
        "i": exact(np.stack((x[1::2], x[::2]), -1).reshape(-1)),
        "r": exact(np.repeat(x[::2], 2)),
        "q": exact(np.repeat(x[4:132], 4)),
        "f": exact(x.reshape(2, 64, 2)[1, :, 1]),
    }


# ---- windows that slide along the lanes (nest_sliding.c): extremes, bits, sums of integers --------------------------
SLIDES = """
kernel k(const {t} x[H, W], {t} high[H, W], {t} low[H, W], {t} plain[H, W], {t} box[H, W]{more})
    grid(cdiv(W, {b}), H)
{{
    int j = pid(1);
    int i = pid(0) * {b};
    auto v = load(x[j, i - 6 +: {b}], border = edge);
    static for (int d : range(1, 13)) v = max(v, load(x[j, i - 6 + d +: {b}], border = edge));
    high[j, i +: {b}] = v;
    auto u = x[j, i + 9 +: {b}];
    static for (int d : range(1, 20)) u = min(u, x[j, i + 9 - d +: {b}]);
    low[j, i +: {b}] = u;
    auto p = max(x[j, i +: {b}], 3);
    static for (int d : range(1, 5)) p = max(x[j, i + d +: {b}], p);
    plain[j, i +: {b}] = p;
    auto q = min(x[j, i +: {b}], x[j + 1, i +: {b}]);
    static for (int d : range(1, 5)) q = min(q, min(x[j + 1, i + d +: {b}], x[j, i + d +: {b}]));
    box[j, i +: {b}] = q;
{sums}}}
"""
SUMS = """    auto s = x[j, i - 1 +: {b}];
    static for (int d : range(11)) s = s + x[j, i + d +: {b}];
    sum[j, i +: {b}] = s;
    auto e = x[j, i +: {b}] & x[j, i + 1 +: {b}];
    static for (int d : range(2, 9)) e = e & x[j, i + d +: {b}];
    all[j, i +: {b}] = e;
    auto o = x[j, i +: {b}] | x[j, i + 1 +: {b}];
    static for (int d : range(2, 6)) o = x[j, i + d +: {b}] | o;
    any[j, i +: {b}] = o;
"""


def slid(x, offsets, op, edge=False):
    """op of x[:, i + d] for each d; 0 outside, or the border's."""
    n = x.shape[1]
    r = None
    for d in offsets:
        at = np.arange(n) + d
        v = x[:, np.clip(at, 0, n - 1)]
        if not edge:
            v = np.where((at >= 0) & (at < n), v, np.zeros((), x.dtype))
        r = v if r is None else op(r, v)
    return r


def slides(a, sums):
    x = a["x"]
    down = np.concatenate((x[1:], np.zeros((1, x.shape[1]), x.dtype)))
    r = {
        "high": slid(x, range(-6, 7), np.fmax, edge=True),
        "low": slid(x, range(-10, 10), np.fmin),
        "plain": np.fmax(slid(x, range(5), np.fmax), np.array(3).astype(x.dtype)),
        "box": np.fmin(slid(x, range(5), np.fmin), slid(down, range(5), np.fmin))
    }
    if sums:
        r |= {"sum": slid(x, range(-1, 11), np.add), "all": slid(x, range(9), np.bitwise_and),
              "any": slid(x, range(6), np.bitwise_or)}
    return {n: exact(v) for n, v in r.items()}


def with_nan(t, seed, *shape):
    """Some floats are NaN, and all of a stretch."""
    if not is_float(t):
        return random_bits(t, seed, *shape)
    g = np.random.default_rng(seed)
    v = np.where(g.random(shape) < 0.2, np.nan, g.integers(-200, 200, shape) / 4)
    v[:, 40:75] = np.nan
    return Arr(t, store(v, t))


for k, t in enumerate(("u8", "i8", "u16", "i16", "i32", "u32", "i64", "f16", "bf16", "f32", "f64")):
    for b, shape in ((256, (3, 700)), (100, (2, 301)), (64, (1, 1))):
        sums = not is_float(t)
        row(
            f"windows_slide_{t}_{b}_{shape[1]}",
            SLIDES.format(t=t, b=b, sums=SUMS.format(b=b) if sums else "",
                          more=f", {t} sum[H, W], {t} all[H, W], {t} any[H, W]" if sums else ""),
            {"x": with_nan(t, 60 + k, *shape),
             **{n: poison(t, *shape)
                for n in ("high", "low", "plain", "box", *(("sum", "all", "any") if sums else ()))}},
            lambda a, s=sums: slides(a, s))

# ---- the same of rows, by stores that go down columns ---------------------------------------------------------------
DOWN = """
kernel k(const {t} x[H, W], {t} y[H, W], int far)
    grid(cdiv(W, {n}), cdiv(H, {m}))
{{
    int j = pid(1) * {m} + far;
    int i = pid(0) * {n};
    {first};
    static for (int d : range(1, {taps})) v = {more};
    y[j - far +: {m}, i +: {n}] = {last};
}}
"""
X = "x[j + {} +: {{m}}, i +: {{n}}]".format
EDGE = "load(x[j + {} - 6 +: {{m}}, i +: {{n}}], border = edge)".format
BY_ROWS = {  # the first row, each further one, how many; what is stored
    "high": (f"auto v = {EDGE(0)}", f"max(v, {EDGE('d')})", 13, "v"),
    "low": (f"auto v = {X(3)}", f"min({X('3 - d')}, v)", 6, "v"),
    "plain": (f"auto v = max({X(0)}, 3)", f"max({X('d')}, v)", 5, "v + x[j +: {m}, i + 1 +: {n}]"),
    "sum": (f"auto v = {X(-1)}", f"v + {X('d - 1')}", 11, "v"),
    "all": (f"auto v = {X(0)}", f"v & {X('d')}", 7, "~v"),
    "any": (f"auto v = {X(0)}", f"{X('d')} | v", 6, f"v ^ {X(0)}"),
}


def by_rows(x, name, m, far):
    """Tiles of m rows begin where numbers of 32 bits are that wrap."""
    h, w = x.shape
    beside = np.concatenate((x[:, 1:], np.zeros((h, 1), x.dtype)), axis=1)
    zeros = np.zeros((), x.dtype)

    def row_at(v, d, edge=False):
        at = np.array([(j // m * m + far + d + 2**31) % 2**32 - 2**31 + j % m for j in range(h)], np.int64)
        inside = ((at >= 0) & (at < h))[:, None]
        r = v[np.clip(at, 0, h - 1)]
        return r if edge else np.where(inside, r, zeros)

    over = lambda op, offsets, edge=False: functools.reduce(op, (row_at(x, d, edge) for d in offsets))
    if name == "high":
        return over(np.fmax, range(-6, 7), True)
    if name == "low":
        return over(np.fmin, range(-2, 4))
    if name == "plain":
        return (np.fmax(over(np.fmax, range(5)), np.array(3).astype(x.dtype)) + row_at(beside, 0)).astype(x.dtype)
    if name == "sum":
        return over(np.add, range(-1, 10))
    return ~over(np.bitwise_and, range(7)) if name == "all" else over(np.bitwise_or, range(6)) ^ row_at(x, 0)


for k, t in enumerate(("u8", "i16", "i32", "u64", "f16", "f32", "f64")):
    for what, (first, more, taps, last) in BY_ROWS.items():
        if is_float(t) and what in ("sum", "all", "any"):
            continue
        for m, n, shape, far in ((8, 64, (43, 200), 0), (16, 256, (70, 600), 0), (5, 32, (1, 1), 0),
                                 (16, 256, (33, 300), -2**31 + 3), (16, 256, (20, 256), 2**31 - 12)):
            row(
                f"windows_down_{what}_{t}_{m}x{n}_{shape[1]}",
                DOWN.format(t=t, m=m, n=n, taps=taps, first=first.format(m=m, n=n), more=more.format(m=m, n=n),
                            last=last.format(m=m, n=n)),
                {"x": with_nan(t, 80 + k, *shape), "y": poison(t, *shape), "far": far},
                lambda a, what=what, m=m, far=far: {"y": exact(by_rows(a["x"], what, m, far))})

# Starts that wrap at the ends of i32: windows slide there by none of their elements.
FAR = (0, -3, 290, -2**31, -2**31 + 5, 2**31 - 3, 2**31 - 70)


def far_windows(a):
    x, n = a["x"], len(a["x"])
    r = {"edge": [], "zero": []}
    for s in FAR:
        starts = [(s + d - 4 + 2**31) % 2**32 - 2**31 for d in range(9)]
        at = [np.arange(128) + start for start in starts]
        r["edge"].append(np.maximum.reduce([x[np.clip(i, 0, n - 1)] for i in at]))
        r["zero"].append(np.maximum.reduce([taken_at(x, i) for i in at]))
    return {k: exact(np.stack(v)) for k, v in r.items()}


def taken_at(x, at):
    inside = (at >= 0) & (at < len(x))
    return np.where(inside, x[np.where(inside, at, 0)], np.zeros((), x.dtype))


for k, t in enumerate(("u8", "i32", "f32", "f64")):
    row(
        f"windows_slide_far_{t}", f"""
kernel k(const {t} x[N], const i32 starts[R], {t} edge[R, C], {t} zero[R, C])
    grid({len(FAR)})
{{
    int p = pid(0);
    int s = starts[p];
    auto v = load(x[s - 4 +: 128], border = edge);
    static for (int d : range(1, 9)) v = max(v, load(x[s - 4 + d +: 128], border = edge));
    edge[p, 0 +: 128] = v;
    auto u = x[s - 4 +: 128];
    static for (int d : range(1, 9)) u = max(u, x[s - 4 + d +: 128]);
    zero[p, 0 +: 128] = u;
}}
""", {"x": values(t, 80 + k, 301), "starts": Arr("i32", np.array(FAR, np.int32)),
      "edge": poison(t, len(FAR), 128), "zero": poison(t, len(FAR), 128)}, lambda a: far_windows(a))

# Loops that read a window of an array again and again: programs at the border read a copy of it.
COPIED = """
kernel k(const {t} x[C, H, W], const {t} e[H, W], {t} y[H, W], {t} z[H, W2])
    grid(cdiv(W, {w}), cdiv(H, 3))
{{
    int j = pid(1) * 3;
    int i = pid(0) * {w};
    tile<{t}, 3, {w}> s = 0;
    for (int u : range(-3, 3)) {{
        for (int v : range(4, -5, -2)) {{
            static for (int d : range(3))
                s += x[d - 1, j + u +: 3, i + v - d +: {w}] * ({t})(u - v + d);
        }}
    }}
    y[j +: 3, i +: {w}] = s;
}}
kernel k_edge(const {t} x[C, H, W], const {t} e[H, W], {t} y[H, W], {t} z[H, W2])
    grid(cdiv(W, {w}), cdiv(H, 3))
{{
    int j = pid(1) * 3;
    int i = pid(0) * {w};
    tile<{t}, 3, {w}> s = 0;
    for (int u : range(-3, 3)) {{
        for (int v : range(-4, 5)) {{
            static for (int d : range(2))
                s += load(e[j + u +: 3, i + v - d +: {w}], border = edge) * ({t})(u - v + d);
            s += x[0, j + v, i + u +: {w}];
        }}
    }}
    y[j +: 3, i +: {w}] = s;
}}
kernel k_step(const {t} x[C, H, W], const {t} e[H, W], {t} y[H, W], {t} z[H, W2])
    grid(cdiv(W2, {w}), H)
{{
    int j = pid(1);
    int i = pid(0) * {w};
    tile<{t}, {w}> s = 0;
    for (int u : range(-3, 3)) {{
        for (int v : range(-12, 13))
            s += x[0, j + u, 2 * i + v +: {w} : 2] * ({t})(u - v) + x[1, j - u, 2 * i - v +: {w} : 2];
    }}
    z[j, i +: {w}] = s;
}}
"""


def copied(a):
    x, y = a["x"], np.zeros(a["y"].shape, a["y"].dtype)
    for u in range(-3, 3):
        for v in range(4, -5, -2):
            for d in range(3):
                y += taken(x, d - 1, u, v - d) * np.array(u - v + d).astype(x.dtype)
    return {"y": exact(y)}


def taken(x, c, u, v, edge=False, step=1, columns=None):
    rows, all_columns = x.shape[1:]
    j, i = np.arange(rows)[:, None] + u, np.arange(columns or all_columns)[None] * step + v
    if edge:
        return x[c][np.clip(j, 0, rows - 1), np.clip(i, 0, all_columns - 1)]
    ok = (j >= 0) & (j < rows) & (i >= 0) & (i < all_columns) & (0 <= c < len(x))
    return np.where(ok, x[min(max(c, 0), len(x) - 1)][np.where(ok, j, 0), np.where(ok, i, 0)], np.zeros((), x.dtype))


def copied_edge(a):
    x, y = a["x"], np.zeros(a["y"].shape, a["y"].dtype)
    for u in range(-3, 3):
        for v in range(-4, 5):
            for d in range(2):
                y += taken(a["e"][None], 0, u, v - d, True) * np.array(u - v + d).astype(x.dtype)
            y += taken(x, 0, v - np.arange(len(y))[:, None] % 3, u)
    return {"y": exact(y)}


def copied_step(a):
    x, z = a["x"], np.zeros(a["z"].shape, a["z"].dtype)
    for u in range(-3, 3):
        for v in range(-12, 13):
            z += taken(x, 0, u, v, step=2, columns=z.shape[1]) * np.array(u - v).astype(x.dtype)
            z += taken(x, 1, -u, -v, step=2, columns=z.shape[1])
    return {"z": exact(z)}


for k, (t, w) in enumerate((("f32", 64), ("i16", 128), ("u8", 256), ("f64", 32), ("i64", 16), ("f32", 24))):
    for h, n in ((7, 2 * w + 5), (1, 1), (5, 3), (9, w), (11, 3 * w)):
        for kernel, reference in (("k", copied), ("k_edge", copied_edge), ("k_step", copied_step)):
            row(f"windows_copied_{t}_{w}_{h}_{n}_{kernel}", COPIED.format(t=t, w=w), {
                "x": ints(t, 90 + k, 0, 5, 2, h, n), "e": ints(t, 95 + k, 0, 5, h, n), "y": poison(t, h, n),
                "z": poison(t, h, (n + 1) // 2)
            }, reference, kernel=kernel)


# ---- two trips of a loop at once (nest_trips.c): rows from themselves and rows further on -------------------------
TRIPS = """
kernel k(const {t} x[N, W], {t} y[N, W], {t} first[W])
    grid(cdiv(W, {w}))
{{
    int i = pid(0) * {w};
    auto v = x[0 +: {n}, i +: {w}];
    for (int _j : range({trips})) v = {step};
    y[0 +: {n}, i +: {w}] = v;
    auto u = x[0 +: {n}, i +: {w}];
    for (int _k : range({trips})) u = {step_u};
    first[i +: {w}] = extract(u, {at}, 0 +: {w});
}}
"""


def up(v, by):
    return shifted(v, -by)


STEPS = {
    "sum": ("{0} + shift({0}, 0, -1)", lambda v: v + up(v, 1)),
    "far": ("max({0}, shift({0}, 0, -2)) - shift({0}, 0, -1)", lambda v: np.maximum(v, up(v, 2)) - up(v, 1)),
    "own": ("shift({0}, 0, -1) + shift({0}, 0, -3)", lambda v: up(v, 1) + up(v, 3)),
}
for k, (t, n, w, trips, step, at, cols) in enumerate((
        ("f32", 64, 16, 64, "sum", 0, 40), ("i32", 17, 64, 5, "far", 16, 64), ("f64", 33, 8, 4, "far", 3, 19),
        ("u8", 48, 64, 7, "own", 47, 100), ("i64", 16, 5, 9, "sum", 0, 5), ("f32", 40, 128, 6, "own", 11, 300),
        ("i16", 20, 2, 8, "sum", 7, 3), ("f32", 64, 1, 8, "sum", 0, 3), ("f16", 32, 32, 4, "far", 5, 33),
        ("f32", 32, 16, 4, "sum", 0, 0))):
    def trip_rows(a, n=n, trips=trips, step=step, at=at):
        v = a["x"]
        for _ in range(trips):
            v = STEPS[step][1](v).astype(v.dtype)
        return {"y": exact(v), "first": exact(v[at])}

    row(f"windows_trips_{t}_{n}_{w}_{trips}_{step}",
        TRIPS.format(t=t, n=n, w=w, trips=trips, at=at, step=STEPS[step][0].format("v"),
                     step_u=STEPS[step][0].format("u")),
        {"x": Arr(t, store(np.random.default_rng(k).integers(0, 3, (n, cols)), t)), "y": poison(t, n, cols),
         "first": poison(t, cols)}, trip_rows)


# ---- down the rows of a vector, each loaded once; neighbours along the lanes of a home (nest_down.c, nest_way.c) -----
FILTER = """
auto add_two(auto a, auto b) {{ return ({t})(a + b); }}
kernel k(const {t} x[H, W], {t} y[H, W])
    grid(cdiv(W, {w}), cdiv(H, {h}))
{{
    int j = pid(1) * {h};
    int i = pid(0) * {w};
    auto v = load(x[j - {r} +: {h} + {n} - 1, i - {r} +: {w} + {n} - 1], border = edge) * ({t})2;
    auto down = extract(v, 0 +: {h}, 0 +: {w} + {n} - 1);
    static for (int d : range(1, {n}))
        down = {op}(down, extract(v, d +: {h}, 0 +: {w} + {n} - 1) + ({t})d);
    auto all = extract(down, 0 +: {h}, 0 +: {w});
    static for (int d : range(1, {n}))
        all = {op}(all, extract(down, 0 +: {h}, d +: {w}) - ({t})d);
    y[j +: {h}, i +: {w}] = all;
}}
"""
OPS = {"sum": ("add_two", lambda a, b: a + b), "max": ("max", np.maximum)}
for k, (t, n, w, h, op, size) in enumerate((
        ("f32", 5, 64, 8, "sum", (19, 150)), ("f32", 7, 256, 4, "sum", (9, 300)), ("i32", 4, 32, 16, "max", (40, 33)),
        ("f64", 6, 40, 5, "sum", (5, 40)), ("u16", 9, 128, 8, "sum", (16, 129)), ("i64", 5, 16, 8, "max", (8, 17)),
        ("f32", 13, 64, 8, "max", (8, 64)), ("f32", 5, 64, 8, "sum", (1, 1)), ("u8", 5, 96, 4, "sum", (7, 97)),
        ("f32", 3, 48, 8, "sum", (12, 0)))):
    def filtered(a, n=n, op=op):
        x = a["x"]
        if not x.size:
            return {"y": exact(x)}
        r, by = n // 2, OPS[op][1]
        rows, cols = (np.clip(np.arange(-r, m + n - 1 - r), 0, m - 1) for m in x.shape)
        v = (x[rows][:, cols] * x.dtype.type(2)).astype(x.dtype)
        down = v[:x.shape[0]]
        for d in range(1, n):
            down = by(down, (v[d:d + x.shape[0]] + x.dtype.type(d)).astype(x.dtype)).astype(x.dtype)
        all_ = down[:, :x.shape[1]]
        for d in range(1, n):
            all_ = by(all_, (down[:, d:d + x.shape[1]] - x.dtype.type(d)).astype(x.dtype)).astype(x.dtype)
        return {"y": exact(all_)}

    row(f"windows_filter_{t}_{n}_{w}_{op}_{size[0]}_{size[1]}",
        FILTER.format(t=t, n=n, w=w, h=h, r=n // 2, op=OPS[op][0]),
        {"x": Arr(t, store(np.random.default_rng(k).integers(0, 50, size), t)), "y": poison(t, *size)}, filtered)
