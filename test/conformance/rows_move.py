"""Operations that move elements: gather, cat, flip, extract, shift; join, split, interleave, repeat, squeeze, pick,
put.

Odd extents, extents of 1, indices outside; every element type by its bits.
"""
import numpy as np

from rows import row
from values import ALL, F8, Arr, exact, ints, is_float, poison, random_bits, small, store


def values(t, seed, *shape):
    """Distinct enough, and representable in t."""
    if t == "bool" or not is_float(t):
        return random_bits(t, seed, *shape)
    return Arr(t, store(np.random.default_rng(seed).integers(-200, 200, shape) / 4, t))


def gathered(x, index, axis):
    """As NumPy's take_along_axis, and 0 where an index is outside."""
    n = x.shape[axis]
    inside = (index >= 0) & (index < n)
    return np.where(inside, np.take_along_axis(x,
                                               np.where(inside, index, 0).astype(np.int64), axis), np.zeros((),
                                                                                                            x.dtype))


def shifted(x, axis, n, fill=0):
    index = np.arange(x.shape[axis]) - n
    shape = [1] * x.ndim
    shape[axis] = -1
    index = np.broadcast_to(index.reshape(shape), x.shape)
    inside = (index >= 0) & (index < x.shape[axis])
    return np.where(inside, gathered(x, index, axis), np.array(fill).astype(x.dtype))


FAR = -(10**12) - 3
ROLLS = {"r0": (5, 7), "r1": (5, 7), "r2": (5, 7), "r3": (5, 7), "r4": (5, 7)}
for k, t in enumerate([*ALL, *F8]):
    out = ", ".join(f"{t} {n}[R, C]" for n in ROLLS)
    row(
        f"move_roll_{t}", f"""
kernel k(const {t} x[R, C], {out}, int n, i64 m, u8 b)
    grid(1)
{{
    auto v = x[0 +: 5, 0 +: 7];
    r0[0 +: 5, 0 +: 7] = roll(v, 0, 3);
    r1[0 +: 5, 0 +: 7] = roll(v, axis = 1, n = n);
    r2[0 +: 5, 0 +: 7] = roll(v, 0, m);
    r3[0 +: 5, 0 +: 7] = roll(roll(v, 1, b), 0, -6);
    r4[0 +: 5, 0 +: 7] = roll(v, 1, 700);
}}
""", {"x": values(t, 100 + k, 5, 7), **{n: poison(t, *s) for n, s in ROLLS.items()}, "n": -9, "m": FAR, "b": 250},
        lambda a: (lambda x: {
            "r0": exact(np.roll(x, 3, 0)), "r1": exact(np.roll(x, -9, 1)), "r2": exact(np.roll(x, FAR % 5, 0)),
            "r3": exact(np.roll(np.roll(x, 250, 1), -6, 0)), "r4": exact(x)
        })(a["x"]))
for n in (1, 2, 16, 37, 300):
    row(f"move_roll_extent_{n}", f"""
kernel k(const f32 x[N], f32 y[N], f32 z[N, 2], int n)
    grid(1)
{{
    auto v = x[0 +: {n}];
    y[0 +: {n}] = roll(v, 0, n);
    z[0 +: {n}, 0 +: 2] = roll(join(v, -v), 0, (i16)n * -1);
}}
""", {"x": small("f32", n, n), "y": poison("f32", n), "z": poison("f32", n, 2), "n": 29},
        lambda a: {"y": exact(np.roll(a["x"], 29)), "z": exact(np.roll(np.stack((a["x"], -a["x"]), -1), -29, 0))})

ROWS_OF = {
    "g0": (4, 7), "g1": (5, 9), "c0": (8, 7), "c1": (5, 14), "f0": (5, 7), "f1": (5, 7), "e": (2, 3), "s0": (5, 7),
    "s1": (5, 7)
}
for k, t in enumerate([*ALL, *F8]):
    out = ", ".join(f"{t} {n}[{n}R, {n}C]" for n in ROWS_OF)
    row(
        f"move_{t}", f"""
kernel k(const {t} x[R, C], const {t} z[Q, C], const i32 i[I, C], const i16 j[R, J], {out}, int n)
    grid(1)
{{
    auto v = x[0 +: 5, 0 +: 7];
    g0[0 +: 4, 0 +: 7] = gather(v, i[0 +: 4, 0 +: 7], 0);
    g1[0 +: 5, 0 +: 9] = gather(v, j[0 +: 5, 0 +: 9], axis = 1);
    c0[0 +: 8, 0 +: 7] = cat(v, z[0 +: 3, 0 +: 7], 0);
    c1[0 +: 5, 0 +: 14] = cat(v, flip(v, 1), 1);
    f0[0 +: 5, 0 +: 7] = flip(v, 0);
    f1[0 +: 5, 0 +: 7] = flip(flip(v, 1), 0);
    e[0 +: 2, 0 +: 3] = extract(v, 3 +: 2, 2 +: 3);
    s0[0 +: 5, 0 +: 7] = shift(v, 0, -2, v);
    s1[0 +: 5, 0 +: 7] = shift(v, 1, n);
}}
""", {
            "x": values(t, 10 + k, 5, 7), "z": values(t, 30 + k, 3, 7), "i": ints("i32", 1, -2, 7, 4, 7), "j": ints(
                "i16", 2, -2, 9, 5, 9), **{n: poison(t, *s)
                                           for n, s in ROWS_OF.items()}, "n": 3
        }, lambda a: (lambda x: {
            "g0": exact(gathered(x, a["i"], 0)), "g1": exact(gathered(x, a["j"], 1)), "c0": exact(
                np.concatenate((x, a["z"]), 0)), "c1": exact(np.concatenate((x, x[:, ::-1]), 1)), "f0": exact(x[::-1]),
            "f1": exact(x[::-1, ::-1]), "e": exact(x[3:5, 2:5]), "s0": exact(np.concatenate(
                (x[2:], x[3:]), 0)), "s1": exact(shifted(x, 1, 3))
        })(a["x"]))

PARTS = {
    "j": (5, 7, 2), "w": (5, 14), "b": (5, 7), "c": (5, 7), "n": (15, 7), "r": (5, 14), "q": (7, 5), "pr": (1, 7),
    "pc": (1, 5), "u": (5, 7)
}
for k, t in enumerate([*ALL, *F8]):
    out = ", ".join(f"{t} {n}[{', '.join(n + 'xyz'[d] for d in range(len(s)))}]" for n, s in PARTS.items())
    row(
        f"move_parts_{t}", f"""
kernel k(const {t} x[R, C], const {t} z[R, C], {out}, int i)
    grid(1)
{{
    auto v = x[0 +: 5, 0 +: 7];
    auto u_ = z[0 +: 5, 0 +: 7];
    j[0 +: 5, 0 +: 7, 0 +: 2] = join(v, u_);
    auto both = interleave(v, u_);
    w[0 +: 5, 0 +: 14] = both;
    auto (b_, c_) = split(reshape(both, 5, 7, 2));
    b[0 +: 5, 0 +: 7] = b_;
    c[0 +: 5, 0 +: 7] = c_;
    n[0 +: 15, 0 +: 7] = repeat(v, 0, 3);
    r[0 +: 5, 0 +: 14] = repeat(v, 1, 2);
    q[0 +: 7, 0 +: 5] = trans(v);
    pr[0, 0 +: 7] = pick(v, 0, i);
    pc[0, 0 +: 5] = squeeze(extract(v, 0 +: 5, 3 +: 1), 1);
    u[0 +: 5, 0 +: 7] = put(put(v, 1, i + 1, pick(u_, 1, 0)), 0, 4, pick(u_, 0, i));
}}
""", {
            "x": values(t, 50 + k, 5, 7), "z": values(t, 70 + k, 5, 7), **{n: poison(t, *s)
                                                                           for n, s in PARTS.items()}, "i": 2
        }, lambda a: parts_want(a["x"], a["z"]))


def parts_want(x, z):
    u = x.copy()
    u[:, 3] = z[:, 0]
    u[4] = z[2]
    return {
        "j": exact(np.stack((x, z), -1)), "w": exact(np.stack((x, z), -1).reshape(5, 14)), "b": exact(x), "c": exact(z),
        "n": exact(np.repeat(x, 3, 0)), "r": exact(np.repeat(x, 2, 1)), "q": exact(x.T), "pr": exact(x[2:3]),
        "pc": exact(x[:, 3].reshape(1, 5)), "u": exact(u)
    }


# Tiles of several threads' registers and several rounds through shared memory; all ranks; every axis.
row(
    "move_gather_1d_large", """
kernel k(const f64 x[N], const i32 i[M], f64 y[M], i32 back[M])
    grid(1)
{
    y[0 +: 1500] = gather(x[0 +: 5000], i[0 +: 1500], 0);
    back[0 +: 1500] = gather(gather(iota(5000), i[0 +: 1500], 0), 1499 - iota(1500), 0);
}
""", {
        "x": values("f64", 1, 5000), "i": ints("i32", 3, -5, 5010, 1500), "y": poison("f64", 1500), "back": poison(
            "i32", 1500)
    }, lambda a: (lambda g: {"y": exact(gathered(a["x"], a["i"], 0)), "back": exact(g[::-1])})
    (gathered(np.arange(5000, dtype=np.int32), a["i"], 0)))

for axis in range(3):
    shape = [6, 5, 16]
    shape[axis] = 11
    row(f"move_gather_3d_axis_{axis}", f"""
kernel k(const i8 x[A, B, C], const i64 i[P, Q, R], i8 y[P, Q, R])
    grid(1)
{{
    y[0 +: {shape[0]}, 0 +: {shape[1]}, 0 +: {shape[2]}] =
        gather(x[0 +: 6, 0 +: 5, 0 +: 16], i[0 +: {shape[0]}, 0 +: {shape[1]}, 0 +: {shape[2]}], {axis});
}}
""", {"x": values("i8", 4, 6, 5, 16), "i": ints("i64", 5, -3, 18, *shape), "y": poison("i8", *shape)},
        lambda a, axis=axis: {"y": exact(gathered(a["x"], a["i"], axis))})

# Each group of a few elements takes its own, in an order that is known; the last ones do not, or not all groups alike.
PERIODS = {
    "one_of_four": ("i / 4 * 4 + 2", lambda i: i // 4 * 4 + 2),
    "pairs": ("i ^ 1", lambda i: i ^ 1),
    "back": ("i ^ 7", lambda i: i ^ 7),
    "sixteens": ("i / 16 * 16 + 15 - i % 16 / 2", lambda i: i // 16 * 16 + 15 - i % 16 // 2),
    "unlike": ("i / 4 * 4 + (i + i / 4) % 4", lambda i: i // 4 * 4 + (i + i // 4) % 4),
    "past": ("i / 4 * 4 + 3 + i / 20", lambda i: i // 4 * 4 + 3 + i // 20),
    "one": ("i * 0 + 5", lambda i: i * 0 + 5)
}


def periods(x, n):
    i = np.arange(n)
    total = x + sum(gathered(x, i // 4 * 4 + 1, 0) + np.asarray(j, x.dtype) for j in range(3))
    return {"total": exact(total.astype(x.dtype)),
            **{name: exact(gathered(x, index(i), 0)) for name, (_, index) in PERIODS.items()}}


for k, t in enumerate(("f32", "u8", "f64", "i16")):
    for n in (8, 16, 48, 64):
        gathers = "\n".join(f"    {name}[0 +: {n}] = gather(v, {text}, 0);" for name, (text, _) in PERIODS.items())
        row(
            f"move_gather_periods_{t}_{n}", f"""
kernel k(const {t} x[N], {", ".join(f"{t} {name}[N]" for name in PERIODS)}, {t} total[N])
    grid(1)
{{
    auto i = iota({n});
    auto v = x[0 +: {n}];
    auto all = v;
    for (int j : range(3))
        all += gather(v + ({t})j, i / 4 * 4 + 1, 0);
    total[0 +: {n}] = all;
{gathers}
}}
""", {"x": small(t, 20 + k, n, lo=0), "total": poison(t, n), **{name: poison(t, n) for name in PERIODS}},
            lambda a, n=n: periods(a["x"], n))

row(
    "move_gather_index_types", """
kernel k(const f32 x[N], const i8 a[M], const u8 b[M], const u32 c[M], const u64 d[M], f32 y[K, M])
    grid(1)
{
    auto v = x[0 +: 200];
    y[0, 0 +: 64] = gather(v, a[0 +: 64], 0);
    y[1, 0 +: 64] = gather(v, b[0 +: 64], 0);
    y[2, 0 +: 64] = gather(v, c[0 +: 64], 0);
    y[3, 0 +: 64] = gather(v, d[0 +: 64], 0);
}
""", {
        "x": values("f32", 6, 200), "a": random_bits("i8", 7, 64), "b": random_bits("u8", 8, 64),
        "c": ints("u32", 9, 0, 2**32, 64), "d": Arr(
            "u64",
            np.random.default_rng(3).choice(np.array([0, 5, 199, 200, 2**32, 2**32 + 7, 2**63, 2**64 - 1], np.uint64),
                                            64)), "y": poison("f32", 4, 64)
    }, lambda a: {
        "y": exact(
            np.stack([
                gathered(a["x"], i if i.dtype.kind == "i" else np.minimum(i, np.uint64(999)).astype(np.int64), 0)
                for i in (a["a"], a["b"], a["c"], a["d"])
            ]))
    })

row("move_in_a_loop", """
/// A cyclic turn by one, N times over: each trip reads what the last one wrote.
kernel k(const i32 x[N], i32 y[N], i32 trips)
    grid(1)
{
    auto v = x[0 +: 100];
    auto next = (iota(100) + 1) % 100;
    for (int t : range(trips))
        v = gather(v, next, 0) + 1;
    y[0 +: 100] = v;
}
""", {"x": values("i32", 11, 100), "y": poison("i32", 100), "trips": 130},
    lambda a: {"y": exact(np.roll(a["x"], -130) + np.int32(130))})

row(
    "move_extents_of_1_and_edges", """
kernel k(const i32 x[A, B], i32 one[N], i32 s[B], i32 w[B, M], i32 c[K], i32 p[B], i32 q[B])
    grid(1)
{
    auto v = x[0 +: 1, 0 +: 9];
    one[0 +: 1] = flip(extract(v, 0, 8 +: 1), 0);
    one[1] = extract(v, 0, 3);
    one[2 +: 2] = cat(extract(v, 0, 1 +: 1), extract(v, 0, 2 +: 1), 0);
    s[0 +: 9] = extract(shift(v, 0, 1, 7), 0, 0 +: 9);
    w[0 +: 9, 0 +: 1] = shift(trans(v), 0, 9, -1);
    c[0 +: 19] = cat(reshape(v, 9), cat(reshape(v, 9), extract(v, 0, 0 +: 1), 0), axis = 0);
    p[0 +: 9] = shift(reshape(v, 9), 0, (i64)-2147483648 * 4, 5);
    q[0 +: 9] = shift(reshape(v, 9), 0, (i8)-128) + shift(reshape(v, 9), 0, (u64)0);
}
""", {
        "x": values("i32", 12, 1, 9), "one": poison("i32", 4), "s": poison("i32", 9), "w": poison("i32", 9, 1),
        "c": poison("i32", 19), "p": poison("i32", 9), "q": poison("i32", 9)
    }, lambda a: (lambda v: {
        "one": exact(v[[8, 3, 1, 2]]), "s": exact(np.full(9, 7)), "w": exact(np.full(
            (9, 1), -1)), "c": exact(np.concatenate((v, v, v[:1]))), "p": exact(np.full(9, 5)), "q": exact(v)
    })(a["x"][0]))

row(
    "move_rotary", """
/// Rotary embedding: halves of the last axis, 20 and not a power of two, turned against each other.
kernel k(const f32 x[R, D], const f32 c[R, H], const f32 s[R, H], f32 y[R, D])
    grid(cdiv(R, 8))
{
    int r = pid(0) * 8;
    auto v = x[r +: 8, 0 +: 40];
    auto a = extract(v, 0 +: 8, 0 +: 20);
    auto b = extract(v, 0 +: 8, 20 +: 20);
    auto co = c[r +: 8, 0 +: 20];
    auto si = s[r +: 8, 0 +: 20];
    y[r +: 8, 0 +: 40] = cat(a * co - b * si, b * co + a * si, 1);
}
""", {
        "x": values("f32", 13, 21, 40), "c": ints("f32", 14, -3, 4, 21, 20), "s": ints("f32", 15, -3, 4, 21, 20),
        "y": poison("f32", 21, 40)
    }, lambda a: (lambda p, q: {"y": exact(np.concatenate((p * a["c"] - q * a["s"], q * a["c"] + p * a["s"]), 1))})
    (a["x"][:, :20], a["x"][:, 20:]))

# Reshapes that no layout keeps in place: odd extents, more elements than a thread can hold.
for k, (a_, b_) in enumerate([((60, 50), (3000, )), ((3000, ), (60, 50)), ((33, 45), (45, 33)), ((7, 9, 11), (77, 9)),
                              ((96, 50), (50, 96)), ((5, 3, 7, 11), (35, 33)), ((130, ), (13, 10))]):
    for t in ("f32", "i8", "f64") if np.prod(a_) < 2000 else ("f32",):
        at = [", ".join(f"0 +: {n}" for n in s) for s in (a_, b_)]
        names = [", ".join("ABCD"[:len(a_)]), ", ".join("EFGH"[:len(b_)])]
        row(f"move_reshape_{'x'.join(map(str, a_))}_{'x'.join(map(str, b_))}_{t}", f"""
kernel k(const {t} x[{names[0]}], {t} y[{names[1]}], {t} z[{names[1]}])
    grid(1)
{{
    auto v = reshape(x[{at[0]}], {", ".join(map(str, b_))});
    y[{at[1]}] = v;
    z[{at[1]}] = v + reshape(y[{at[1]}], {", ".join(map(str, b_))});
}}
""", {"x": values(t, 100 + k, *a_), "y": poison(t, *b_), "z": poison(t, *b_)},
            lambda a, b_=b_: (lambda v: {"y": exact(v), "z": exact(v + v)})(a["x"].reshape(b_)))
# Sums of what is moved: the sides of `cat` are computed in branches of the loop that sums.
for n in (2, 65, 300, 5000):
    c = n // 3 + 1
    row(f"move_summed_{n}", f"""
kernel k(const f32 x[N, M], f32 y[N, 3])
    grid(N)
{{
    auto v = x[pid(0), 0 +: {n}];
    y[pid(0), 0] = sum(cat(extract(v, {c} +: {n - c}), extract(v, 0 +: {c}), 0), axis = 0);
    y[pid(0), 1] = max(cat(extract(v, 0 +: {n - c}), x[pid(0), 1 +: {c}], 0), axis = 0);
    y[pid(0), 2] = sum(roll(v, 0, {c}) * x[pid(0), 0 +: {n}], axis = 0);
}}
""", {"x": ints("f32", n, -9, 9, 3, n), "y": poison("f32", 3, 3)},
        lambda a, n=n, c=c: (lambda x: {"y": exact(np.stack([
            x.sum(1), np.maximum(x[:, :n - c].max(1), np.pad(x, ((0, 0), (0, c + 1)))[:, 1:c + 1].max(1)),
            (np.roll(x, c, 1) * x).sum(1)
        ], 1).astype(np.float32))})(a["x"]))
