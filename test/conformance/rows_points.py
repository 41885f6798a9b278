"""Points: at(view, i, j, ...) read, assigned, and given to load, store, in and atomics; indices of every rank and type,
slices behind them, places outside."""
import numpy as np

from rows import row
from values import ALL, PACKED, STORE, exact, exactly, ints, iota, poison, random_bits, small, zeros

from rows_packed import packed


def at(v, *index, fill=0):
    """v at points; `fill` outside."""
    index = np.broadcast_arrays(*index)
    ok = np.logical_and.reduce([(i >= 0) & (i < n) for i, n in zip(index, v.shape)])
    return np.where(ok, v[tuple(np.where(ok, i, 0) for i in index)] if v.size else fill, np.array(fill, v.dtype))


READ = """
kernel k(const {t} x[H, W], const i32 r[N], const i32 c[N], {t} y[N], {t} z[N], {t} w[N, N2], bool inside[N])
    grid(1)
{{
    auto R = r[0 +: {n}];
    auto C = c[0 +: {n}];
    y[0 +: {n}] = at(x, R, C);
    inside[0 +: {n}] = in(at(x, R, C));
    store(z[0 +: {n}], load(at(x, R, C), mask = R != 1));
    w[0 +: {n}, 0 +: {n}] = at(x, R, col(C));
}}
"""


def read(a):
    r, c = a["r"], a["c"]
    y = at(a["x"], r, c)
    return {
        "y": exact(y), "inside": exact(at(np.ones(a["x"].shape, bool), r, c)),
        "z": exact(np.where(r != 1, y, 0).astype(y.dtype)), "w": exact(at(a["x"], r[None, :], c[:, None]))
    }


for k, t in enumerate(ALL):
    n = (13, 16, 1, 33)[k % 4]
    x = random_bits(t, k, 5, 7) if t in STORE and t[0] in "biu" and t != "bf16" else small(t, k, 5, 7)
    row(f"points_read_{t}", READ.format(t=t, n=n), {
        "x": x, "r": ints("i32", 1, -1, 6, n), "c": ints("i32", 2, -2, 9, n), "y": poison(t, n), "z": poison(t, n),
        "w": poison(t, n, n), "inside": poison("bool", n)
    }, read)

for n in (1, 12, 40):
    row(
        f"points_written_{n}", f"""
kernel k(f32 x[H, W], f32 y[H, W], i32 n[H, W], i32 old[N], const i32 r[N], const i32 c[N])
    grid(1)
{{
    auto R = r[0 +: {n}];
    auto C = c[0 +: {n}];
    at(x, R, C) = (f32)(R * 100 + C);
    store(at(y, R, C), (f32)C, mask = R % 2 == 0);
    old[0 +: {n}] = atomic_add(at(n, R, C), 1 + R * 0, mask = C != 3);
    atomic_max(at(n, 0, 0), 1000);
    (at(x, 4, 6), at(y, -1, 0)) = (7.5, 9.5);
    unchecked at(y, 4, 5) = 8.5;
}}
""", {
            "x": zeros("f32", 5, 7), "y": zeros("f32", 5, 7), "n": zeros("i32", 5, 7), "old": poison("i32", n),
            "r": ints("i32", 1, -1, 6, n), "c": ints("i32", 2, -2, 8, n)
        }, lambda a: written(a), same_bits=False)


def written(a):
    x, y, n = np.zeros((5, 7), np.float32), np.zeros((5, 7), np.float32), np.zeros((5, 7), np.int32)
    inside = (a["r"] >= 0) & (a["r"] < 5) & (a["c"] >= 0) & (a["c"] < 7)
    for r, c in zip(a["r"][inside], a["c"][inside]):
        x[r, c] = r * 100 + c
        if r % 2 == 0:
            y[r, c] = c
        n[r, c] += c != 3
    n[0, 0] = max(n[0, 0], 1000)
    x[4, 6], y[4, 5] = 7.5, 8.5
    return {"x": exact(x), "y": exact(y), "n": exact(n)}


row(
    "points_old_values_are_distinct", """
kernel k(u32 n[H, W], u64 was[64], i64 one[2])
    grid(1)
{
    auto i = iota(64) % 2;
    auto old = atomic_add(at(n, i, (u8)0), (u32)1);
    was[0 +: 64] = (u64)sort((i32)old, 0);
    one[0] = (i64)atomic_add(at(n, 0, 1), (u32)5);
    one[1] = (i64)atomic_cas(at(n, (i8)0, (u16)1), (u32)5, (u32)9);
}
""", {"n": zeros("u32", 2, 2), "was": poison("u64", 64), "one": poison("i64", 2)}, lambda a: {
        "n": exact([[32, 9], [32, 0]]), "was": exact(np.repeat(np.arange(32), 2).astype(np.uint64)),
        "one": exact([0, 5])
    })

# Slices behind; ranks of the indices and of the result up to 5.
row(
    "points_with_slices_behind", """
kernel k(i32 x[A, B, C], const i32 i[N], const i32 j[N], i32 y[N, C2], i32 z[N, C3], i32 u[M, N, C2], i32 v[C2])
    grid(1)
{
    auto I = i[0 +: 6];
    auto J = j[0 +: 6];
    y[0 +: 6, 0 +: 9] = at(x, I, J, -1 +: 9);
    z[0 +: 6, 0 +: 3] = load(at(x, I, J, 6 +: 3 : -2), pad = -5);
    u[0 +: 4, 0 +: 6, 0 +: 9] = at(x, I, col(iota(4)), 0 +: 9);
    v[0 +: 9] = at(x, 1, 2, 0 +: 9);
    at(x, I % 2 + 1, iota(6) % 5, 7 +: 4) = 1000 + row(iota(4));
}
""", {
        "x": iota("i32", 3, 5, 8), "i": ints("i32", 3, -1, 4, 6), "j": ints("i32", 4, -1, 6, 6), "y": poison(
            "i32", 6, 9), "z": poison("i32", 6, 3), "u": poison("i32", 4, 6, 9), "v": poison("i32", 9)
    }, lambda a: sliced(a))


def sliced(a):
    x, i, j, r = a["x"], a["i"], a["j"], np.arange
    after = x.copy()
    after[np.abs(np.fmod(i, 2)) * np.sign(i) + 1, r(6) % 5, 7] = 1000
    return {
        "y": exact(at(x, i[:, None], j[:, None], r(9) - 1)), "z": exact(
            at(x, i[:, None], j[:, None], 6 - 2 * r(3), fill=-5)), "u": exact(
                at(x, i[None, :, None], r(4)[:, None, None], r(9))), "v": exact(at(x, 1, 2, r(9))), "x": exact(after)
    }


row(
    "points_of_rank_5", """
kernel k(const i32 x[A, B, C, D, E, F], const i32 p[N], i32 y[N, C2, D2, E2, F2], i32 z[N, N2, N3, N4, N5], i32 w[N])
    grid(1)
{
    auto P = p[0 +: 3];
    y[0 +: 3, 0 +: 2, 0 +: 3, 0 +: 2, 0 +: 3] = at(x, P, P - 1, -1 +: 2, 0 +: 3, 1 +: 2, 0 +: 3);
    auto deep = reshape(P, 3, 1, 1, 1, 1);
    z[0 +: 3, 0 +: 3, 0 +: 3, 0 +: 3, 0 +: 3] =
        at(x, deep, reshape(P, 3, 1, 1, 1), reshape(P, 3, 1, 1), col(P), P, 1);
    w[0 +: 3] = at(x, P, P, P, P, P, P);
}
""", {
        "x": iota("i32", 3, 3, 2, 3, 3, 2), "p": exactly("i32", [0, 2, 1]), "y": poison("i32", 3, 2, 3, 2, 3),
        "z": poison("i32", 3, 3, 3, 3, 3), "w": poison("i32", 3)
    }, lambda a: rank_5(a["x"], a["p"], np.arange))


def rank_5(x, p, r):
    q = p.reshape(3, 1, 1, 1, 1)
    y = at(x, q, q - 1, (r(2) - 1).reshape(2, 1, 1, 1), r(3).reshape(3, 1, 1), (r(2) + 1)[:, None], r(3))
    z = at(x, q, p.reshape(3, 1, 1, 1), p.reshape(3, 1, 1), p[:, None], p, 1)
    return {"y": exact(y), "z": exact(z), "w": exact(at(x, p, p, p, p, p, p))}


row(
    "points_by_every_integer", """
kernel k(const f32 x[H, W], f32 y[M], const u8 a[N], const i64 b[N], i16 s, u64 far)
    grid(1)
{
    auto A = a[0 +: 5];
    auto B = b[0 +: 5];
    y[0 +: 5] = at(x, A, B);
    y[5 +: 5] = at(x, s, B);
    y[10 +: 5] = at(x, A, s);
    y[15] = at(x, s, s);
    y[16] = at(x, s, far) + 3;
}
""", {
        "x": iota("f32", 4, 6), "y": poison("f32", 17), "a": exactly("u8", [0, 3, 2, 200, 1]), "b": exactly(
            "i64", [5, 0, 1 << 40, 1, -1]), "s": 2, "far": 1 << 63
    }, lambda a: {
        "y": exact(
            np.concatenate([
                at(a["x"], a["a"].astype(int), a["b"]),
                at(a["x"], 2, a["b"]),
                at(a["x"], a["a"].astype(int), 2), [14, 3]
            ]))
    })

for name, shape in (("no_rows", (0, 4)), ("no_columns", (4, 0)), ("one", (1, 1))):
    row(f"points_of_extent_{name}", READ.format(t="f32", n=5), {
        "x": small("f32", 1, *shape), "r": ints("i32", 1, -1, 3, 5), "c": ints("i32", 2, -1, 3, 5), "y": poison(
            "f32", 5), "z": poison("f32", 5), "w": poison("f32", 5, 5), "inside": poison("bool", 5)
    }, read)

for t in PACKED:
    w = {"f4e2m1": "f32"}.get(t, "i32")
    row(
        f"points_of_packed_{t}", f"""
kernel k(const {t} q[H, W], const i32 r[N], {w} y[N], {w} z[N, N2])
    grid(1)
{{
    auto R = r[0 +: 9];
    y[0 +: 9] = ({w})at(q, R, 2 * R - 1);
    z[0 +: 9, 0 +: 4] = ({w})at(sub(q, (0, 1), (H, W)), R, 3 +: 4);
}}
""", {"q": packed(t, 3, 6, 11), "r": ints("i32", 5, -1, 7, 9), "y": poison(w, 9), "z": poison(w, 9, 4)}, lambda a: {
            "y": exact(at(a["q"][:, :11], a["r"], 2 * a["r"] - 1)), "z": exact(
                at(a["q"][:, 1:11], a["r"][:, None],
                   np.arange(4) + 3))
        })

row(
    "points_in_functions_and_loops", """
auto column(const f32 A[M, K], auto rows, int j) { return at(A, rows, j); }

kernel k(const f32 x[H, W], const i32 r[N], f32 y[N])
    grid(1)
{
    auto R = r[0 +: 7];
    tile<f32, 7> s;
    for (int j : range(W))
        s += column(x, R, j) + at(x, iota(7) % H, R * 0 + j);
    at(y, iota(7)) = s;
}
""", {"x": small("f32", 2, 5, 6), "r": ints("i32", 3, -1, 6, 7),
                                                       "y": poison("f32", 7)},
    lambda a: {
        "y": exact(
            sum(at(a["x"], a["r"], j) + a["x"][np.arange(7) % 5, j] for j in range(6)).astype(np.float32))
    })

# Lanes that may be near each other: a vector's elements, one place, far apart, beyond either end; down and up again.
NEAR = """
kernel k(const {t} x[H, W], {t} y[H, N], {t} z[H, N], {t} w[N], f32 by, f32 from, f32 down)
    grid(H)
{{
    auto c = ({i})floor(from + by * (f32)iota({n}));
    auto r = ({i})(down * (f32)iota({n}));
    y[pid(0), 0 +: {n}] = at(x, pid(0), c);
    z[pid(0), 0 +: {n}] = at(x, pid(0), min(c, 40) + 1) + load(at(x, ({i})pid(0) + 1, abs(c)), other = 3);
    if (pid(0) == 0) w[0 +: {n}] = at(x, r, c);
}}
"""


def near(a):
    n = np.arange(a["w"].size, dtype=np.float32)
    floors = np.floor(np.float32(a["from"]) + np.float32(a["by"]) * n)
    c, r = floors.astype(np.int64), (np.float32(a["down"]) * n).astype(np.int64)
    pid = np.arange(a["x"].shape[0])[:, None]
    return {
        "y": exact(at(a["x"], pid, c[None])), "w": exact(at(a["x"], r, c)),
        "z": exact(at(a["x"], pid, np.minimum(c, 40)[None] + 1) + at(a["x"], pid + 1, np.abs(c)[None], fill=3))
    }


for t, i, n in (("f32", "i32", 64), ("i64", "i32", 37), ("f64", "i64", 16), ("i32", "i64", 33), ("u32", "i32", 8)):
    for by, start, down in ((0.0625, 3, 0), (0.25, -2, 0.03125), (-0.5, 40, 0.125), (1, 20, 0), (0, 5, 0.0625),
                            (-1, 7, 0.5), (1.5, 30, 0), (16, -64, 0.25), (0.125, 45, -1)):
        row(f"points_near_{t}_{i}_{n}_by_{by}_from_{start}", NEAR.format(t=t, i=i, n=n), {
            "x": ints(t, 5, 0, 99, 5, 51), "y": poison(t, 5, n), "z": poison(t, 5, n), "w": poison(t, n), "by": by,
            "from": start, "down": down
        }, near)
