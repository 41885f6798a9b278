"""Shapes: every rank from 0 to 5, every order of axes, broadcasting along every axis, reshapes, and parts put together,
in all types' sizes.

Expected values are NumPy's own operation of the same name.
"""
import itertools

import numpy as np

from rows import row
from values import Arr, exact, iota, poison, random_bits, small, store

UNSIGNED = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}


def slices(shape):
    return ", ".join(f"0 +: {n}" for n in shape)


def names(prefix, shape):
    return ", ".join(f"{prefix}{k}" for k in range(len(shape)))


def one(name, source, x, want, t="i32", out=None, **more):
    """A kernel of one program from x to y; source: an expression of v, all of x. want: the same of a NumPy array."""
    y = want(x.store)
    out = out or t
    row(name, f"""
kernel k(const {t} x[{names('A', x.store.shape)}], {out} y[{names('B', y.shape)}])
    grid(1)
{{
    auto v = x[{slices(x.store.shape)}];
    y[{slices(y.shape)}] = {source};
}}
""", {"x": x, "y": poison(out, *y.shape)}, lambda a: {"y": exact(want(a["x"]))}, **more)


def bits(size, seed, *shape):
    return random_bits(UNSIGNED[size], seed, *shape)


# ---- the order of axes: every permutation of three and four, some of five, in every size of element ------------------
for k, perm in enumerate(itertools.permutations(range(3))):
    size = (1, 2, 4, 8)[k % 4]
    for shape in ((6, 5, 7), (8, 4, 16)):
        one(f"trans_{''.join(map(str, perm))}_of_{'x'.join(map(str, shape))}", f"trans(v, {', '.join(map(str, perm))})",
            bits(size, k, *shape), lambda x, p=perm: x.transpose(p), UNSIGNED[size])
for k, perm in enumerate(itertools.permutations(range(4))):
    size = (4, 1, 8, 2)[k % 4]
    shape = ((2, 3, 4, 5), (4, 2, 8, 2), (1, 6, 1, 7))[k % 3]
    one(f"trans_{''.join(map(str, perm))}", f"trans(v, {', '.join(map(str, perm))})", bits(size, k, *shape),
        lambda x, p=perm: x.transpose(p), UNSIGNED[size])
for k, perm in enumerate([(4, 3, 2, 1, 0), (1, 0, 3, 2, 4), (2, 4, 0, 3, 1), (0, 1, 2, 4, 3), (3, 4, 0, 1, 2)]):
    one(f"trans_{''.join(map(str, perm))}_of_five", f"trans(v, {', '.join(map(str, perm))})",
        bits((4, 2, 1, 8, 4)[k], k, 2, 3, 4, 2, 5), lambda x, p=perm: x.transpose(p), UNSIGNED[(4, 2, 1, 8, 4)[k]])
for rank in range(2, 6):
    shape = (3, 2, 4, 6, 5)[:rank]
    one(f"trans_last_two_of_rank_{rank}", "trans(v)", iota("i32", *shape), lambda x: x.swapaxes(-1, -2))
    one(f"trans_twice_of_rank_{rank}", "trans(trans(v) + 1)", iota("i32", *shape), lambda x: x + 1)

# ---- a short last axis taken into the one before it: its vectors are interleaved -------------------------------------
for k, (r, n, s) in enumerate([(3, 32, 2), (2, 16, 4), (3, 8, 8), (2, 18, 2), (3, 6, 4), (5, 3, 2)]):
    row(
        f"reshape_joins_{n}x{s}", f"""
kernel k(const i16 x[A, B, C], const i16 w[D], i32 y[E, F], i32 z[A, E, F])
    grid(1)
{{
    auto v = (i32)x[0 +: {r}, 0 +: {n}, 0 +: {s}] * 3 + w[0 +: {s}];
    y[0 +: {r}, 0 +: {n * s}] = reshape(v, {r}, {n * s});
    auto many = broadcast(reshape(x[0 +: {r}, 0 +: {n}, 0 +: {s}], {r}, 1, {n}, {s}), {r}, {r}, {n}, {s});
    z[0 +: {r}, 0 +: {r}, 0 +: {n * s}] = (i32)reshape(many, {r}, {r}, {n * s}) - 1;
}}
""", {
            "x": random_bits("i16", k, r, n, s), "w": small("i16", 9, s), "y": poison("i32", r, n * s), "z": poison(
                "i32", r, r, n * s)
        }, lambda a, r=r, n=n, s=s: {
            "y": exact((a["x"].astype("i4") * 3 + a["w"]).reshape(r, n * s)), "z": exact(
                np.broadcast_to(a["x"].reshape(r, 1, n * s).astype("i4") - 1, (r, r, n * s)))
        })

# ---- broadcasting ----------------------------------------------------------------------------------------------------
BROADCAST = [((1, ), (1, )), ((1, ), (7, )), ((7, ), (5, 7)), ((5, 1), (5, 7)), ((5, 1), (1, 7)), ((1, 1), (6, 4)),
             ((4, 1, 6), (5, 1)), ((2, 1, 3, 1), (1, 4, 1, 5)), ((1, 1, 1, 1, 3), (2, 2, 2, 2, 1)),
             ((2, 3, 2, 3, 2), (2, )), ((16, 1), (1, 32)), ((1, 1, 8), (4, 8, 1))]
for a, b in BROADCAST:
    shape = np.broadcast_shapes(a, b)
    row(
        f"broadcast_{'x'.join(map(str, a))}_and_{'x'.join(map(str, b))}", f"""
kernel k(const i32 p[{names('A', a)}], const i32 q[{names('B', b)}], i32 y[{names('C', shape)}],
         i32 z[{names('C', shape)}], bool less[{names('C', shape)}], i32 c[{names('C', shape)}],
                 i32 s[{names('C', shape)}])
    grid(1)
{{
    auto u = p[{slices(a)}];
    auto v = q[{slices(b)}];
    y[{slices(shape)}] = u - v;
    z[{slices(shape)}] = v * 100 + u;
    less[{slices(shape)}] = u < v;
    c[{slices(shape)}] = v % 2 == 0 ? u : v;
    tile<i32, {', '.join(map(str, shape))}> w = u;
    w += v;
    s[{slices(shape)}] = w + broadcast(v, {', '.join(map(str, shape))});
}}
""", {
            "p": small("i32", 1, *a), "q": small("i32", 2, *b, lo=0, hi=9), "less": poison("bool", *shape),
            **{n: poison("i32", *shape)
               for n in "yzcs"}
        }, lambda a: {
            "y": exact(a["p"] - a["q"]), "z": exact(a["q"] * 100 + a["p"]), "less": exact(a["p"] < a["q"]), "c": exact(
                np.where(a["q"] % 2 == 0, a["p"], a["q"])), "s": exact(a["p"] + 2 * a["q"])
        })

row(
    "broadcast_of_scalars_and_stores", """
kernel k(const i32 x[A, B], i32 y[A, B, C], i32 z[A, B], f32 f[C], i32 r[C], int n)
    grid(1)
{
    y[0 +: 3, 0 +: 4, 0 +: 5] = n;
    y[1, 0 +: 4, 0 +: 5] = col(x[2, 0 +: 4]);
    y[0 +: 3, 2, 0 +: 5] = iota(5);
    z[0 +: 3, 0 +: 4] = x[1, 0 +: 4];
    z[0 +: 3, 1] = x[0, 3];
    f[0 +: 5] = 0.25;
    tile<i32, 1> one = 9;
    r[0 +: 5] = one;
    r[1 +: 1] = n;
    r[2] = n + 1;
}
""", {
        "x": iota("i32", 3, 4), "y": poison("i32", 3, 4, 5), "z": poison("i32", 3, 4), "f": poison("f32", 5),
        "r": poison("i32", 5), "n": -7
    }, lambda a: scalars(a["x"]))


def scalars(x):
    y, z = np.full((3, 4, 5), -7), np.broadcast_to(x[1], (3, 4)).copy()
    y[1] = x[2][:, None]
    y[:, 2] = np.arange(5)
    z[:, 1] = x[0, 3]
    return {"y": exact(y), "z": exact(z), "f": exact(np.full(5, 0.25)), "r": exact([9, -7, -6, 9, 9])}


# ---- new axes and fewer ----------------------------------------------------------------------------------------------
for axis in range(5):
    one(f"expand_axis_{axis}_of_rank_4", f"expand(v, {axis})", bits(2, axis, 2, 3, 4, 5),
        lambda x, k=axis: np.expand_dims(x, k), "u16")
    if axis < 4:
        shape = [3, 4, 5, 2]
        shape[axis] = 1
        one(f"squeeze_axis_{axis}_of_rank_4", f"squeeze(v, {axis})", bits(4, axis, *shape),
            lambda x, k=axis: x.squeeze(k), "u32")
        one(f"flip_axis_{axis}_of_rank_4", f"flip(v, {axis})", bits(1, axis, 3, 4, 5, 2),
            lambda x, k=axis: np.flip(x, k), "u8")
        one(f"repeat_axis_{axis}_of_rank_4", f"repeat(v, {axis}, 3)", bits(2, axis, 2, 3, 1, 4),
            lambda x, k=axis: x.repeat(3, k), "u16")
        one(f"cat_axis_{axis}_of_rank_4", f"cat(v, flip(v + 1, {axis}), {axis})", iota("i32", 2, 3, 1, 5),
            lambda x, k=axis: np.concatenate((x, np.flip(x + 1, k)), k))
        one(f"sum_axis_{axis}_of_rank_4", f"sum(v, axis = {axis})", iota("i32", 3, 4, 2, 5), lambda x, k=axis: x.sum(k))
        one(f"cumsum_axis_{axis}_of_rank_4", f"cumsum(v, axis = {axis}, reverse = {'true' if axis % 2 else 'false'})",
            iota("i32", 3, 4, 2, 5), lambda x, k=axis: np.flip(np.flip(x, k).cumsum(k), k) if k % 2 else x.cumsum(k))
        one(f"sort_axis_{axis}_of_rank_4", f"sort(v, {axis}, descending = {'true' if axis % 2 else 'false'})",
            small("i32", axis, 3, 4, 2, 5, lo=-50, hi=50), lambda x, k=axis: np.flip(np.sort(x, k), k)
            if k % 2 else np.sort(x, k))

# ---- reshapes: powers of two and not, through every rank -------------------------------------------------------------
CHAIN = [((24, ), (2, 3, 4)), ((2, 3, 4), (6, 4)), ((6, 4), (3, 8)), ((3, 8), (2, 2, 3, 2, 1)), ((64, ), (4, 4, 4)),
         ((4, 4, 4), (16, 4)), ((16, 4), (2, 32)), ((1, 30), (30, 1)), ((30, 1), (5, 6)), ((5, 6), (1, 2, 3, 5)),
         ((128, 64), (64, 128)), ((96, ), (96, 1)), ((7, 11, 13), (1001, )), ((1001, ), (91, 11)),
         ((2, 2, 2, 2, 2), (32, )), ((32, ), (2, 2, 2, 2, 2))]
for k, (a, b) in enumerate(CHAIN):
    t = UNSIGNED[(4, 1, 2, 8)[k % 4]]
    one(f"reshape_{'x'.join(map(str, a))}_to_{'x'.join(map(str, b))}", f"reshape(v, {', '.join(map(str, b))})",
        random_bits(t, k, *a), lambda x, b=b: x.reshape(b), t)
one("reshape_chain_with_work_between", "trans(reshape(trans(reshape(v * 2, 3, 8)) + 1, 4, 6)) - 1", iota("i32", 24),
    lambda x: (((x * 2).reshape(3, 8).T + 1).reshape(4, 6)).T - 1)
one("reshape_of_a_sum", "reshape(sum(reshape(v, 2, 3, 4), axis = 1), 4, 2)", iota("i32", 24),
    lambda x: x.reshape(2, 3, 4).sum(1).reshape(4, 2))

# ---- scalars as tiles of rank 0 --------------------------------------------------------------------------------------
row(
    "rank_0_through_every_operation", """
kernel k(const i32 x[N], const f32 f[M], i32 y[20], f32 z[8], int n)
    grid(1)
{
    i32 a = x[2];
    i32 b = x[3];
    y[0 +: 2] = join(a, b);
    auto (c, d) = split(join(b, a));
    y[2] = c;
    y[3] = d;
    y[4] = sum(a);
    y[5] = max(a);
    y[6] = min(a, b);
    y[7 +: 1] = reshape(a, 1);
    y[8] = reshape(x[4 +: 1]);
    y[9] = squeeze(x[5 +: 1], 0);
    y[10 +: 1] = expand(a, 0);
    y[11] = argmax(a) + argmin(b);
    y[12] = any(a > 0) ? 1 : 0;
    y[13] = all(a > 100) ? 1 : 0;
    y[14] = xor_sum(a);
    y[15] = prod(b);
    y[16 +: 3] = broadcast(a, 3);
    tile<i32> e = n;
    y[19] = e + tile<i32>(1);
    f32 g = f[1];
    z[0] = sum(g);
    z[1] = sqrt(g);
    z[2] = clamp(g, 0, 1);
    z[3 +: 2] = join(g, g + 1);
    z[5] = extract(f[0 +: 4], 3);
    z[6] = pick(f[0 +: 4], 0, n - 3);
    z[7] = fma(g, 2, 1);
}
""", {"x": iota("i32", 8), "f": iota("f32", 4), "y": poison("i32", 20), "z": poison("f32", 8), "n": 5}, lambda a:
    {"y": exact([2, 3, 3, 2, 2, 2, 2, 2, 4, 5, 2, 0, 1, 0, 2, 3, 2, 2, 2, 6]), "z": exact([1, 1, 1, 1, 2, 3, 2, 3])})

row(
    "join_split_interleave_of_every_rank", """
kernel k(const i16 x[A, B, C], i16 j1[E, 2], i16 j2[A, B, C, 2], i16 i1[E2], i16 i3[A, B, C2], i16 s[A, B, 1], i16 t[A,
         B], i16 w[4])
    grid(1)
{
    auto v = x[0 +: 2, 0 +: 3, 0 +: 5];
    auto r = x[1, 2, 0 +: 5];
    j1[0 +: 5, 0 +: 2] = join(r, r * 2);
    j2[0 +: 2, 0 +: 3, 0 +: 5, 0 +: 2] = join(v, -v);
    i1[0 +: 10] = interleave(r, flip(r, 0));
    i3[0 +: 2, 0 +: 3, 0 +: 10] = interleave(v, v + 100);
    auto (a, b) = split(extract(v, 0 +: 2, 0 +: 3, 1 +: 2));
    s[0 +: 2, 0 +: 3, 0 +: 1] = expand(a, 2);
    t[0 +: 2, 0 +: 3] = b - a;
    auto (p, q) = split(reshape(x[0, 0, 0 +: 4], 2, 2));
    auto (p0, p1) = split(p);
    auto (q0, q1) = split(q);
    w[0 +: 4] = interleave(join(p1, q1), join(q0, p0));
}
""", {
        "x": small("i16", 1, 2, 3, 5, lo=-90, hi=90), "j1": poison("i16", 5, 2),
        "j2": poison("i16", 2, 3, 5, 2), "i1": poison("i16", 10), "i3": poison("i16", 2, 3, 10), "s": poison(
            "i16", 2, 3, 1), "t": poison("i16", 2, 3), "w": poison("i16", 4)
    }, lambda a: (lambda x, r: {
        "j1": exact(np.stack((r, r * 2), -1)), "j2": exact(np.stack(
            (x, -x), -1)), "i1": exact(np.stack(
                (r, r[::-1]), -1).reshape(-1)), "i3": exact(np.stack((x, x + 100), -1).reshape(2, 3, 10)), "s": exact(x[
                    ..., 1:2]), "t": exact(x[..., 2] - x[..., 1]), "w": exact(x[0, 0, [2, 1, 3, 0]])
    })(a["x"], a["x"][1, 2]))

one("interleave_of_rank_5", "interleave(v, flip(v, 4) + 1)", iota("i32", 2, 1, 3, 2, 3), lambda x: np.stack(
    (x, x[..., ::-1] + 1), -1).reshape(2, 1, 3, 2, 6))
one("interleave_of_rank_5_bytes", "interleave(v, v ^ 85)", bits(1, 7, 1, 4, 2, 2, 8), lambda x: np.stack(
    (x, x ^ 85), -1).reshape(1, 4, 2, 2, 16), "u8")

# What is interleaved joins short axes itself, of fewer elements than a vector has lanes; the arrays are not dense.
for t in ("u8", "i16", "i32", "f64"):
    for rows_, cols in ((2, 4), (2, 8), (4, 2), (2, 2)):
        n = 2 * rows_ * cols
        row(f"interleave_of_joined_{t}_{rows_}x{cols}", f"""
kernel k(const {t} x[M, Q, P, (C)], const {t} z[M, Q, P, (C)], {t} y[M, N], const i32 C = {cols}, const i32 B = 4)
    grid(cdiv(M, B))
{{
    i32 m = pid(0) * B;
    auto a = reshape(x[m +: B, 0 +: 2, 0 +: {rows_}, 0 +: C], B, {n});
    auto b = reshape(z[m +: B, 0 +: 2, 0 +: {rows_}, 0 +: C], B, {n});
    y[m +: B, 0 +: {2 * n}] = interleave(a, b);
}}
""", {
                "x": small(t, 5, 5, 2, rows_ + 1, cols, lo=0, hi=99),
                "z": small(t, 6, 5, 2, rows_ + 1, cols, lo=0, hi=99), "y": poison(t, 5, 2 * n)
            }, lambda a, r=rows_:
            {"y": exact(np.stack([a[k][:, :, :r].reshape(5, -1) for k in "xz"], -1).reshape(5, -1))})

row(
    "extract_of_every_form", """
kernel k(const u8 x[A, B, C], u8 p[3, 2], u8 q[B], u8 r[A, 1, 4], u8 s[2], u8 all_[A, B, C])
    grid(1)
{
    auto v = x[0 +: 5, 0 +: 6, 0 +: 7];
    p[0 +: 3, 0 +: 2] = extract(v, 1 +: 3, 2, 5 +: 2);
    q[0 +: 6] = extract(v, 4, 0 +: 6, 6);
    r[0 +: 5, 0 +: 1, 0 +: 4] = extract(v, 0 +: 5, 3 +: 1, 2 +: 4);
    s[0] = extract(v, 0, 0, 0);
    s[1] = extract(v, 4, 5, 6);
    all_[0 +: 5, 0 +: 6, 0 +: 7] = extract(v, 0 +: 5, 0 +: 6, 0 +: 7);
}
""", {
        "x": random_bits("u8", 3, 5, 6, 7), "p": poison("u8", 3, 2), "q": poison("u8", 6), "r": poison("u8", 5, 1, 4),
        "s": poison("u8", 2), "all_": poison("u8", 5, 6, 7)
    }, lambda a: (lambda x: {
        "p": exact(x[1:4, 2, 5:7]), "q": exact(x[4, :, 6]), "r": exact(x[:, 3:4, 2:6]), "s": exact(x[
            [0, 4], [0, 5], [0, 6]]), "all_": exact(x)
    })(a["x"]))

row(
    "pick_put_shift_on_every_axis", """
kernel k(const f16 x[A, B, C], f16 p[A, C], f16 q[A, B], f16 u[A, B, C], f16 s[A, B, C], f16 w[A, B, C], int i, i64 j,
         u8 m)
    grid(1)
{
    auto v = x[0 +: 3, 0 +: 5, 0 +: 6];
    p[0 +: 3, 0 +: 6] = pick(v, 1, i);
    q[0 +: 3, 0 +: 5] = pick(v, axis = 2, i = m);
    auto t = put(v, 0, j, 7);
    t = put(t, 1, i, pick(v, 1, 0));
    u[0 +: 3, 0 +: 5, 0 +: 6] = put(t, 2, m, iota_f());
    s[0 +: 3, 0 +: 5, 0 +: 6] = shift(v, 2, i - 5, -1);
    w[0 +: 3, 0 +: 5, 0 +: 6] = shift(shift(v, 1, 1), 0, -1, row_f());
}
tile<f16, 5> iota_f() { return cast(iota(5), f16); }
tile<f16, 6> row_f() { return cast(iota(6), f16); }
""", {
        "x": small("f16", 1, 3, 5, 6), "p": poison("f16", 3, 6), "q": poison("f16", 3, 5),
        **{n: poison("f16", 3, 5, 6)
           for n in "usw"}, "i": 3, "j": 1, "m": 5
    }, lambda a: put_want(a["x"]))


def put_want(x):
    u = x.copy()
    u[1] = 7
    u[:, 3] = x[:, 0]
    u[:, :, 5] = np.arange(5)
    s = np.full_like(x, -1)
    s[:, :, :4] = x[:, :, 2:]
    w = np.zeros_like(x)
    w[:, 1:] = x[:, :-1]
    w = np.concatenate((w[1:], np.broadcast_to(np.arange(6), (1, 5, 6))))
    return {"p": exact(x[:, 3]), "q": exact(x[:, :, 5]), "u": exact(u), "s": exact(s), "w": exact(w)}


row(
    "strides_of_zero", """
kernel k(const f32 *p, f32 y[M, N], f32 z[M, N], i32 big[2])
    grid(1)
{
    auto a = view(p, (5, 7), (0, 1));
    auto b = view(p, (5, 7), (1, 0));
    y[0 +: 5, 0 +: 7] = a[0 +: 5, 0 +: 7];
    z[0 +: 5, 0 +: 7] = b[0 +: 5, 0 +: 7] + view(p, (5, 7), (0, 0))[2, 3];
    auto c = view(p, (2147483647, 3), (0, 1));
    big[0] = (i32)sum(c[2147483640 +: 16, 0 +: 4]);
    big[1] = sum(in(c[2147483640 +: 16, 0 +: 4]));
}
""", {"p": iota("f32", 7), "y": poison("f32", 5, 7), "z": poison("f32", 5, 7), "big": poison("i32", 2)}, lambda a: {
        "y": exact(np.broadcast_to(a["p"], (5, 7))), "z": exact(np.broadcast_to(a["p"][:5, None] + a["p"][0],
                                                                                (5, 7))), "big": exact([7 * 3, 7 * 3])
    })

row(
    "unsqueeze_by_row_and_col_in_arithmetic", """
kernel k(const i64 x[N], const i64 y[M], i64 o[N, M], i64 d[N, M])
    grid(cdiv(N, 8), cdiv(M, 16))
{
    int i = pid(0) * 8;
    int j = pid(1) * 16;
    auto a = x[i +: 8];
    auto b = y[j +: 16];
    o[i +: 8, j +: 16] = col(a) * row(b);
    d[i +: 8, j +: 16] = trans(row(a)) - trans(col(b));
}
""", {
        "x": random_bits("i64", 1, 21), "y": random_bits("i64", 2, 35), "o": poison("i64", 21, 35), "d": poison(
            "i64", 21, 35)
    }, lambda a: {"o": exact(a["x"][:, None] * a["y"]), "d": exact(a["x"][:, None] - a["y"])})

# Reshapes of whole vectors are only other indices, also where a transposition turns what they give; extents as wide as
# vectors are.
for t in ("u8", "f32"):
    for m, n in ((4, 8), (16, 16), (32, 48), (16, 64)):
        row(
            f"reshape_then_turned_{t}_{m}x{n}", f"""
kernel k(const {t} x[N], {t} y[L], {t} z[M, K])
    grid(1)
{{
    auto v = x[0 +: {m * n}];
    y[0 +: {m * n}] = reshape(trans(reshape(v + 1, {m}, {n})), {m * n});
    z[0 +: {n}, 0 +: {m}] = trans(reshape(v, {m}, {n})) + ({t})(trans(reshape(iota({m * n}), {m}, {n})) % 7);
}}
""", {"x": small(t, 60, m * n - 5, lo=0, hi=50), "y": poison(t, m * n), "z": poison(t, n, m)}, lambda a, m=m, n=n:
            (lambda v:
             {"y": exact((v + 1).reshape(m, n).T.ravel()), "z": exact(
                 (v + np.arange(m * n) % 7).reshape(m, n).T)})(np.append(a["x"], np.zeros(5, a["x"].dtype))))

# What is picked is stored, and reduced.
for t in ("u8", "i32", "u64", "f32"):
    row(f"pick_put_of_the_middle_and_its_sum_{t}", f"""
kernel k(const {t} x[A, 4, 2, B], {t} y[A, 2, B], {t} z[A, B])
    grid(1)
{{
    auto v = pick(x[0 +: 5, 0 +: 4, 0 +: 2, iota(4) * 3 % 4], 1, 3);
    z[0 +: 5, 0 +: 4] = max(v, axis = 1);
    y[0 +: 5, 0 +: 2, 0 +: 4] = v;
}}
""", {"x": small(t, 3, 5, 4, 2, 4, lo=0, hi=99), "y": poison(t, 5, 2, 4), "z": poison(t, 5, 4)}, lambda a: (
        lambda v: {"y": exact(v), "z": exact(v.max(1))})(a["x"][:, 3][..., np.arange(4) * 3 % 4]))
