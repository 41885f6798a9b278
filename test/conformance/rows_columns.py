"""Tiles of few columns that meet what has none: sums along their rows, columns that they repeat, parts put together.

Computed, carried by loops and branches, of views with gaps, under masks, beyond the array, from rows in any order.
"""
import numpy as np

from rows import row
from values import Arr, exact, is_float, poison, random_bits, store

from rows_packed import packed


def values(t, seed, *shape):
    if not is_float(t):
        return random_bits(t, seed, *shape)
    return Arr(t, store(np.random.default_rng(seed).integers(-8, 9, shape), t))


def positive(t, seed, *shape):
    """So that no product is -0."""
    return Arr(t, store(np.random.default_rng(seed).integers(1, 9, shape), t))


TYPES = ("u8", "i32", "u64", "f16", "f32", "f64")

MEET = """
kernel k(const {t} x[N, {c}], const {t} w[{c}], const {t} s[N], {t} y[N, {c}], {t} most[N], {t} all[N], i32 which[N],
         {t} turned[N, {c}], const int B = {b})
    grid(cdiv(N, B))
{{
    int i = pid(0) * B;
    auto v = x[i +: B, 0 +: {c}];
    auto m = max(v, axis = 1);
    most[i +: B] = m;
    all[i +: B] = ({t})sum(v * row(w[0 +: {c}]), axis = 1);
    which[i +: B] = argmax(v, axis = 1);
    y[i +: B, 0 +: {c}] = v * col(s[i +: B]) - min(v, axis = 1, keep = true);
    turned[i +: B, 0 +: {c}] = row(iota({c})) == 0 ? col(m) : row(iota({c})) == 1 ? col(s[i +: B]) : v;
}}
"""


def meet(a, c):
    x, w, s = a["x"], a["w"], a["s"]
    t = x.dtype
    turned = x.copy()
    turned[:, 0] = x.max(axis=1)
    turned[:, 1] = s
    with np.errstate(over="ignore"):
        return {
            "most": exact(x.max(axis=1)),
            "all": exact((x * w).sum(axis=1, dtype=None if t.kind != "f" else np.float64).astype(t)),
            "which": exact(x.argmax(axis=1).astype(np.int32)),
            "y": exact((x * s[:, None] - x.min(axis=1, keepdims=True)).astype(t)), "turned": exact(turned)
        }


for k, t in enumerate(TYPES):
    for c in (2, 3, 4):
        for b, n in ((64, 150), (32, 33), (128, 1), (16, 64)):
            row(
                f"columns_meet_{t}_{c}_{b}_{n}", MEET.format(t=t, c=c, b=b), {
                    "x": values(t, k + c, n, c), "w": positive(t, 3, c), "s": positive(t, 4 + b, n), "y": poison(
                        t, n, c), "most": poison(t, n), "all": poison(t, n), "which": poison("i32", n), "turned":
                    poison(t, n, c)
                }, lambda a, c=c: meet(a, c))

# Loops and branches carry them; behind a slice with a step, under masks, from column 1 on, rows by an index tile.
FLOW = """
kernel k(const {t} p[N, {c}], const {t} m[N], {t} y[N, {c}], {t} z[N], int n, const int B = 64)
    grid(cdiv(N, B))
{{
    int i = pid(0) * B;
    auto q = p[i +: B, 0 +: {c}];
    tile<{t}, B, {c}> acc = 0;
    tile<{t}, B> total = 1;
    for (int j : range(n)) {{
        auto d = row(p[j, 0 +: {c}]) - q;
        auto e = sum(d * d, axis = 1);
        if (j % 2 == 0) {{
            acc += d * col(e);
            total += e;
        }} else {{
            acc -= q;
        }}
        for (int _k : range(2)) q = q + acc * col(m[i +: B]);
    }}
    y[i +: B, 0 +: {c}] = acc;
    z[i +: B] = total + sum(q, axis = 1);
}}
"""


def flow(a):
    p, m, n = a["p"], a["m"], a["n"]
    q, acc, total = p.copy(), np.zeros_like(p), np.ones(len(p), p.dtype)
    with np.errstate(over="ignore"):
        for j in range(n):
            d = p[j] - q
            e = (d * d).sum(axis=1, dtype=p.dtype)
            if j % 2 == 0:
                acc, total = acc + d * e[:, None], total + e
            else:
                acc = acc - q
            for _ in range(2):
                q = q + acc * m[:, None]
    return {"y": exact(acc), "z": exact(total + q.sum(axis=1, dtype=p.dtype))}


for t in ("i32", "u64", "i64"):
    for c in (2, 3, 4):
        for n in (0, 3):
            row(
                f"columns_flow_{t}_{c}_{n}", FLOW.format(t=t, c=c), {
                    "p": values(t, 7, 70, c), "m": values(t, 8, 70), "y": poison(t, 70, c), "z": poison(t, 70), "n": n
                }, flow)

PLACES = """
kernel k(const {t} x[H, N, W], const i32 order[N], {t} y[N, 3], {t} z[H, N, W], {t} part[N])
    grid(cdiv(N, 48), H)
{{
    int i = pid(0) * 48;
    auto v = load(x[pid(1), i +: 48, 1 +: 3], pad = 7);
    auto u = x[pid(1), order[i +: 48], 0 +: 3];
    auto t = v + u * col(max(u, axis = 1));
    z[pid(1), i +: 48, 2 +: 3] = in(x[pid(1), i +: 48, 1 +: 3]) ? t : u;
    if (pid(1) == 0) {{
        store(y[order[i +: 48], 0 +: 3], v * col(min(u, axis = 1)), mask = v > u && col(i + iota(48) < N));
        part[i +: 48] = sum(load(x[0, i +: 48, 0 +: 4 : 2], mask = col(iota(48) % 3) != row(iota(4) % 2)), axis = 1);
    }}
}}
"""


def places(a):
    x, order, y = a["x"], a["order"], a["y"].copy()
    h, n, w = x.shape
    z, wide = a["z"].copy(), np.full((h, n, 6 + w), 7, x.dtype)
    wide[:, :, :w] = x
    far = np.zeros((h, n, 8), x.dtype)
    far[:, :, :w] = x
    v, u = wide[:, :, 1:4], far[:, order, 0:3]
    t = v + u * u.max(axis=2, keepdims=True)
    inside = np.broadcast_to(np.arange(1, 4) < w, t.shape)
    whole = np.where(inside, t, u)
    z[:, :, 2:5] = whole[:, :, :max(w - 2, 0)] if w < 5 else whole
    s = v[0] * u[0].min(axis=1, keepdims=True)
    for k in range(n):
        y[order[k]] = np.where(v[0, k] > u[0, k], s[k], y[order[k]])
    keep = (np.arange(n) % 48 % 3)[:, None] != (np.arange(4) % 2)
    return {
        "y": exact(y), "z": exact(z), "part": exact(np.where(keep, far[0, :, 0:8:2], 0).sum(axis=1, dtype=x.dtype))
    }


for t in ("i32", "u64"):
    for w in (3, 4, 5):
        for n in (1, 48, 100):
            row(
                f"columns_places_{t}_{w}_{n}", PLACES.format(t=t), {
                    "x": values(t, 9, 2, n, w),
                    "order": Arr("i32", np.random.default_rng(n).permutation(n).astype("i4")),
                    "y": values(t, 10, n, 3), "z": values(t, 11, 2, n, w), "part": poison(t, n)
                }, places)

row(
    "columns_none", MEET.format(t="f32", c=3, b=64), {
        "x": values("f32", 1, 0, 3), "w": values("f32", 2, 3), "s": values("f32", 3, 0), "y": poison("f32", 0, 3),
        "most": poison("f32", 0), "all": poison("f32", 0), "which": poison("i32", 0), "turned": poison("f32", 0, 3)
    }, lambda a: {n: exact(a[n]) for n in ("y", "most", "all", "turned")})

# Turned round, of neighbouring elements, and several times: planes of rows of columns.
TURN = """
kernel k(const {t} x[N, {c}], const {t} p[{c}, N], {t} across[{c}, N], {t} down[N, {c}], {t} most[N], {t} squares[M],
         {t} fours[M], const {t} image[4, K], const int B = {b})
    grid(cdiv(N, B))
{{
    int i = pid(0) * B;
    auto v = x[i +: B, 0 +: {c}];
    auto w = p[0 +: {c}, i +: B];
    across[0 +: {c}, i +: B] = trans(v) + w * col(iota({c}) == 1 ? ({t})3 : ({t})2);
    down[i +: B, 0 +: {c}] = trans(w) - col(min(v, axis = 1));
    most[i +: B] = max(w, axis = 0);
    auto box = reshape(image[1 +: 2, 2 * i +: 2 * B], 2, B, 2);
    squares[i +: B] = ({t})sum(sum(box, axis = 2), axis = 0);
    auto (even, odd) = split(reshape(image[3, 2 * i +: 2 * B] + image[0, 2 * i + 1 +: 2 * B], B, 2));
    fours[i +: B] = even * 3 - odd;
}}
"""


def turn(a, c):
    x, p, image, m = a["x"], a["p"], a["image"], len(a["fours"])
    t = x.dtype
    far = np.zeros((4, 2 * m + 1), t)
    far[:, :image.shape[1]] = image
    with np.errstate(over="ignore"):
        scale = np.where(np.arange(c) == 1, 3, 2).astype(t)[:, None]
        both = (far[3, :2 * m] + far[0, 1:2 * m + 1]).reshape(m, 2)
        boxes = far[1:3, :2 * m].reshape(2, m, 2)
        return {
            "across": exact((x.T + p * scale).astype(t)), "down": exact((p.T - x.min(axis=1, keepdims=True)).astype(t)),
            "most": exact(p.max(axis=0)), "squares": exact(boxes.sum(axis=(0, 2)).astype(t)),
            "fours": exact((both[:, 0] * t.type(3) - both[:, 1]).astype(t))
        }


for k, t in enumerate(("u8", "i32", "f32", "f64", "i64")):
    for c in (2, 3, 4):
        for b, n, short in ((64, 150, 0), (32, 33, 5), (128, 1, 0), (16, 64, 1)):
            row(
                f"columns_turn_{t}_{c}_{b}_{n}", TURN.format(t=t, c=c, b=b), {
                    "x": positive(t, k + c, n, c), "p": positive(t, 3, c, n), "across": poison(t, c, n),
                    "down": poison(t, n, c), "most": poison(t, n), "squares": poison(t, n), "fours": poison(t, n),
                    "image": positive(t, 5, 4, max(2 * n - short, 1))
                }, lambda a, c=c: turn(a, c))

# Of packed elements, which have no columns.
for t in ("i4", "u4"):
    values_of = packed(t, 3, 70, 4)
    row(
        f"columns_packed_{t}", f"""
kernel k(const {t} x[N, 4], const i32 s[N], i32 y[N], i32 z[N, 4])
    grid(cdiv(N, 64))
{{
    auto v = (i32)x[pid(0) * 64 +: 64, 0 +: 4];
    y[pid(0) * 64 +: 64] = sum(v, axis = 1);
    z[pid(0) * 64 +: 64, 0 +: 4] = v * col(s[pid(0) * 64 +: 64]);
}}
""", {
            "x": values_of, "s": values("i32", 6, 70), "y": poison("i32", 70), "z": poison("i32", 70, 4)
        }, lambda a: {
            "y": exact(a["x"].sum(axis=1).astype(np.int32)), "z": exact((a["x"] * a["s"][:, None]).astype(np.int32))
        })

# Both axes of few rows; tiles of two rows and columns.
for t in ("i32", "f32", "f64"):
    for c in (2, 3, 4):
        row(
            f"columns_both_ways_{t}_{c}", f"""
kernel k(const {t} p[{c}, N], {t} across[{c}], {t} down[N], {t} most[{c}, N], const {t} q[{c}, {c}], {t} r[{c}])
    grid(1)
{{
    auto v = p[0 +: {c}, 0 +: 64];
    across[0 +: {c}] = max(v, axis = 1);
    down[0 +: 64] = sum(v, axis = 0);
    most[0 +: {c}, 0 +: 64] = v - max(v, axis = 1, keep = true) + sum(v, axis = 0, keep = true);
    auto u = q[0 +: {c}, 0 +: {c}];
    r[0 +: {c}] = sum(trans(u) * u, axis = 1) + max(u, axis = 0);
}}
""", {
                "p": positive(t, 3, c, 50), "across": poison(t, c), "down": poison(t, 50), "most": poison(t, c, 50),
                "q": positive(t, 4, c, c), "r": poison(t, c)
            }, lambda a: {
                "across": exact(a["p"].max(axis=1)),
                "down": exact(a["p"].sum(axis=0, dtype=a["p"].dtype)),
                "most": exact(a["p"] - a["p"].max(axis=1, keepdims=True) + a["p"].sum(axis=0, keepdims=True,
                                                                                      dtype=a["p"].dtype)),
                "r": exact((a["q"].T * a["q"]).sum(axis=1, dtype=a["q"].dtype) + a["q"].max(axis=0))
            })
