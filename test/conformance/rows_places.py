"""Combinations: places of every kind under masks and control, narrow types at run time, pointers in tuples, orders of
effects."""
import numpy as np

from rows import row
from values import DECODE, F8, Arr, exact, exactly, ints, iota, poison, random_bits, small, zeros

row(
    "f8_scalar_parameters", """
kernel k(f32 y[4], u8 z[4], f8e4m3 a, f8e5m2 b, const f8e5m2 C = 0.75, const bf16 D = -2.5)
    grid(1)
{
    y[0] = (f32)a;
    y[1] = (f32)b;
    y[2] = (f32)C * 2;
    y[3] = sum((f32)tile<f8e4m3, 5>(a)) + D;
    z[0] = bitcast(a, u8);
    z[1] = bitcast(b, u8);
    z[2] = bitcast(C, u8);
    z[3] = 9;
}
""", {"y": poison("f32", 4), "z": poison("u8", 4), "a": 0.3, "b": -1000.0},
    lambda a: {"y": exact([0.3125, -1024, 1.5, 5 * 0.3125 - 2.5]), "z": exact([0x2A, 0xE4, 0x3A, 9])})

row("f8_fnuz_scalars", """
kernel k(f32 y[6], u8 z[5], f8e4m3fnuz a, f8e5m2fnuz b, const f8e5m2fnuz C = 0.75, const f8e4m3fnuz D = 200)
    grid(1)
{
    y[0] = (f32)a;
    y[1] = (f32)b;
    y[2] = (f32)C * 2;
    y[3] = sum((f32)tile<f8e4m3fnuz, 5>(a));
    f16 half = a;
    y[4] = half;
    y[5] = (f32)D;
    z[0] = bitcast(a, u8);
    z[1] = bitcast(b, u8);
    z[2] = bitcast(C, u8);
    z[3] = bitcast((f8e4m3fnuz)-0.0, u8);
    z[4] = bitcast(cast(nan, f8e5m2fnuz), u8);
}
""", {"y": poison("f32", 6), "z": poison("u8", 5), "a": 0.3, "b": -1000.0},
    lambda a: {"y": exact([0.3125, -1024, 1.5, 5 * 0.3125, 0.3125, 192]), "z": exact([0x32, 0xE8, 0x3E, 0, 0x80])})

row(
    "atomics_with_masks_on_every_place", """
kernel k(i32 a[N], u32 b[R, C], i64 c[N, C3], f32 d[N], const i32 at[M], i32 old[M], i32 hits[4], i32 *p, u64 e[N])
    grid(2)
{
    auto i = at[0 +: 12];
    auto m = iota(12) % 3 != 0;
    auto was = atomic_add(a[i], 1, mask = m);
    atomic_add(hits[was < 0 ? 0 : was < 100 ? 1 : 2], 1, mask = m && i >= 0 && i < 9);
    atomic_max(b[-1 +: 4, 1 +: 5 : 2], (u32)(row(iota(5)) * 10 + col(iota(4))), mask = col(iota(4)) != 2);
    atomic_min(c[i, 0 +: 3], (i64)col(i) - 50, mask = broadcast(col(m), 12, 3));
    atomic_add(d[N - 3 +: 8 : 2], 0.5, mask = in(d[N - 3 +: 8 : 2]));
    atomic_xor(sub(e, (2), (3))[0 +: 8], (u64)1 << 63 >> (u64)iota(8), mask = iota(8) != 1);
    atomic_add(p + i, 2, mask = m && i >= 0 && i < 9);
    auto got = atomic_or(b[reshape(iota(12) % 3, 3, 4), 0 * reshape(iota(12), 3, 4)], (u32)256,
            mask = reshape(iota(12) < 6, 3, 4));
    if (pid(0) == 0) old[0 +: 12] = (i32)reshape(got, 12) >= 0 && iota(12) >= 6 ? (i32)reshape(got, 12) : 1;
}
""", {
        "a": iota("i32", 9), "b": zeros("u32", 3, 8), "c": zeros("i64", 9, 3), "d": zeros("f32", 9), "at": exactly(
            "i32", [0, 1, 1, 3, 8, 9, -1, 1, 4, 2**30, 8, 8]), "old": poison("i32", 12), "hits": zeros("i32", 4),
        "p": zeros("i32", 9), "e": zeros("u64", 9)
    }, lambda a: atomics(a))


def atomics(a):
    at, m = a["at"], np.arange(12) % 3 != 0
    x, b, c, d, p, e = (a[n].copy() for n in "abcdpe")
    ok = m & (at >= 0) & (at < 9)
    np.add.at(x, at[ok], 2)
    np.add.at(p, at[ok], 4)
    for i in range(4):
        for j in range(5):
            if i != 2 and 0 <= i - 1 < 3 and 1 + 2 * j < 8:
                b[i - 1, 1 + 2 * j] = max(b[i - 1, 1 + 2 * j], 10 * j + i)
    b[:, 0] |= 256
    for i in at[ok]:
        c[i] = np.minimum(c[i], i - 50)
    d[6:9:2] = 1
    e[:] = 0  # twice the same bits
    return {
        "a": exact(x), "b": exact(b), "c": exact(c), "d": exact(d), "p": exact(p), "e": exact(e),
        "hits": exact([0, 2 * ok.sum(), 0, 0]), "old": exact([1] * 6 + [0] * 6)
    }


row(
    "float_atomics_with_nan", """
kernel k(f32 a[N], f64 b[N], f32 c[N], f16 h[2], bf16 g[2], f32 o[N], const f32 x[N])
    grid(1)
{
    auto v = x[0 +: 6];
    o[0 +: 6] = atomic_max(a[0 +: 6], v);
    atomic_min(b[0 +: 6], (f64)v);
    atomic_xchg(c[0 +: 6], v, mask = iota(6) != 2);
    atomic_add(h[iota(6) % 2], (f16)1);
    atomic_add(g[iota(6) % 2], cast(0.5, bf16), mask = iota(6) < 5);
    atomic_cas(c[2], -0.0, 7.0);
    atomic_cas(c[2], 0.0, 8.0);
}
""", {
        "a": exactly("f32", [1, np.nan, 2, -np.inf, 0, np.nan]), "b": exactly("f64", [1, np.nan, 2, np.inf, 0, np.nan]),
        "c": zeros("f32", 6), "h": zeros("f16", 2), "g": zeros("bf16", 2), "o": poison("f32", 6), "x": exactly(
            "f32", [np.nan, 3, 1, np.inf, -1, np.nan])
    }, lambda a: {
        "a": exact(np.fmax(a["a"], a["x"])), "b": exact(np.fmin(a["b"], a["x"])), "c": exact(
            [np.nan, 3, 8, np.inf, -1, np.nan]), "h": exact([3, 3]), "g": exact([1.5, 1]), "o": exact(a["a"])
    })

row(
    "packed_views_by_every_index", """
kernel k(const u4 a[R, C], const i4 b[R, C], const f4e2m1 f[R, C], const i32 i[M], i32 o[6, M], f32 p[M, 5], i32 s[4])
    grid(1)
{
    auto r = i[0 +: 7];
    o[0, 0 +: 7] = (i32)a[r, 3];
    o[1, 0 +: 7] = (i32)b[2, r];
    o[2, 0 +: 7] = (i32)reshape(load(a[reshape(r, 7, 1), reshape(r, 7, 1)], pad = 15), 7);
    o[3, 0 +: 7] = (i32)a[1, -3 +: 7 : 2];
    o[4, 0 +: 7] = in(b[0, 5 +: 7]) ? (i32)b[0, 5 +: 7] : -100;
    o[5, 0 +: 7] = (i32)sub(b, (1, 3), (2, 4))[1, 0 +: 7];
    p[0 +: 7, 0 +: 5] = (f32)f[r, 1 +: 5];
    s[0] = (i32)a[2, 8];
    s[1] = (i32)b[3, 0];
    s[2] = sum((i32)trans(a[0 +: 3, 0 +: 9]), where = trans(in(a[0 +: 3, 0 +: 9])));
    s[3] = (i32)sum((f32)reshape(f[0 +: 2, 0 +: 8], 4, 4) * 2);
}
""",
    {
        "a": random_bits("u8", 1, 3, 5)._replace(type="u4"), "b": random_bits("u8", 2, 3, 5)._replace(type="i4"),
        "f": random_bits("u8", 3, 3, 5)._replace(type="f4e2m1"), "i": exactly(
            "i32", [0, 2, 1, -1, 3, 2, 9]), "o": poison("i32", 6, 7), "p": poison("f32", 7, 5), "s": poison("i32", 4)
    }, lambda a: packed(a))


def packed(a):
    A, B, F, i = a["a"], a["b"], a["f"], a["i"].tolist()

    def at(x, r, c, pad=0):
        return x[r, c] if 0 <= r < x.shape[0] and 0 <= c < x.shape[1] else pad

    o = [[at(A, r, 3) for r in i], [at(B, 2, r) for r in i], [at(A, r, r, 15) for r in i],
         [at(A, 1, c) for c in range(-3, 11, 2)], [at(B, 0, c, -100) for c in range(5, 12)],
         [B[2, 3 + c] if c < 4 else 0 for c in range(7)]]
    return {"o": exact(np.array(o)), "p": exact(np.array([[at(F, r, c) for c in range(1, 6)] for r in i], np.float32)),
            "s": exact([A[2, 8], 0, A[:, :9].astype(int).sum(), int(F[:2, :8].sum() * 2)])}


row("pointers_in_tuples_and_branches", """
auto walk(i32 *p, int n) { if (n > 2) return (p + n, n - 1); return (p, n + 10); }
kernel k(i32 *p, i32 *q, i32 y[N], int c)
    grid(1)
    alias(p, q)
{
    auto r = p;
    if (c > 3) r = q + 1;
    y[0] = r[0];
    for (int i : range(4)) {
        auto (s, n) = walk(r, i);
        y[1 + i] = s[0] + 1000 * n;
        r = c % 2 == 0 ? s : r + 1;
        store(r, -i);
    }
    auto t = (p, q);
    auto (u, v) = t;
    auto tile_ = u + iota(4) * 2;
    tile_ = c > 0 ? tile_ + 1 : tile_;
    auto w = load(tile_);
    y[5 +: 4] = w;
    store(tile_, w * 2, mask = w > 0);
    y[9] = v[1];
}
""", {"p": iota("i32", 16), "q": "&p", "y": poison("i32", 10), "c": 4}, lambda a: walked())


def walked():
    m, y = list(range(16)), [0] * 10
    r = 1
    y[0] = m[r]
    for i in range(4):
        s, n = (r + i, i - 1) if i > 2 else (r, i + 10)
        y[1 + i] = m[s] + 1000 * n
        r = s
        m[r] = -i
    w = [m[1 + 2 * j] for j in range(4)]
    y[5:9] = w
    for j, v in enumerate(w):
        if v > 0:
            m[1 + 2 * j] = 2 * v
    y[9] = m[1]
    return {"y": exact(y), "p": exact(m)}


row("left_to_right_with_effects", """
i32 next(i32 c[N]) { c[0] += 1; return c[0]; }
tile<i32, 3> three(i32 c[N]) { c[0] = c[0] * 2; return iota(3) + c[0]; }
kernel k(i32 c[N], i32 y[M], i32 z[M])
    grid(1)
{
    y[next(c)] = next(c) * 10 + next(c);
    y[next(c)] += next(c);
    z[next(c) - 6 +: 3] = three(c);
    (y[0], y[7]) = (next(c), next(c));
    z[next(c) % 8] = next(c) > 5 ? next(c) : next(c) + next(c);
    auto t = min(next(c), next(c)) - next(c);
    y[6] = t;
    bool b = next(c) < 0 && next(c) > 0 || next(c) > 0;
    y[3] = c[0];
    z[5] = b ? next(c) : -1;
}
""", {"c": zeros("i32", 1), "y": zeros("i32", 9), "z": zeros("i32", 9)}, lambda a: effects())


def effects():
    c, y, z = [0], [0] * 9, [0] * 9

    def nx():
        c[0] += 1
        return c[0]
    i = nx()
    a = nx() * 10
    y[i] = a + nx()
    i = nx()
    y[i] += nx()
    s = nx() - 6
    c[0] *= 2
    for k in range(3):
        z[s + k] = k + c[0]
    y[0], y[7] = nx(), nx()
    i = nx() % 8
    z[i] = nx() if nx() > 5 else nx() + nx()
    m = min(nx(), nx())
    y[6] = m - nx()
    nx()
    nx()
    y[3] = c[0]
    z[5] = nx()
    return {"c": exact(c), "y": exact(y), "z": exact(z)}


row(
    "big_extents_and_starts_on_small_buffers", """
kernel k(const i32 *p, i32 y[N], i64 n[6], i64 big, const i32 x[i64 M])
    grid(1)
{
    auto a = view(p, (2147483647, 2), (0, 1));
    y[0 +: 4] = a[2147483645 +: 4, 1];
    auto b = view(p - 2147483640, (2147483647), (1));
    y[4 +: 8] = b[2147483640 +: 8];
    y[12 +: 4] = x[big +: 4] + x[-big +: 4] + 5;
    y[16 +: 4] = x[M - 2 +: 4];
    y[20] = x[M - 1] + x[M] + x[big * 1000];
    y[21 +: 3] = in(x[big * 4 - 1 +: 3]) ? 1 : 0;
    auto c = sub(x, (M - 3), (big));
    y[24 +: 5] = c[-1 +: 5];
    n[0] = M;
    n[1] = cdiv(big * 4 - 1, 7);
    i64 trips = 0;
    for (i64 i : range(big, big + 5, 2)) trips += 1;
    n[2] = trips;
    trips = 0;
    for (int i : range(2147483600, 2147483647, 32)) trips += (i64)i;
    n[3] = trips;
    n[4] = (i64)cdiv(2147483647, 2);
    auto i = (i64)iota(4) * big - 1;
    y[29 +: 4] = x[i + 1];
    n[5] = (i64)sum(in(x[i]) ? 1 : 0);
}
""",
    {"p": iota("i32", 8), "y": poison("i32", 33), "n": poison("i64", 6), "big": 2**60, "x": iota("i32", 20)},
    lambda a: {
        "y": exact([1, 1, 0, 0, *range(7), 0, 5, 5, 5, 5, 18, 19, 0, 0, 19, 0, 0, 0, 0, 17, 18, 19, 0, 0, 0, 0, 0]),
        "n": exact(np.array([20, -(-(2**62 - 1) // 7), 3, 2147483600 + 2147483632, 2**30, 0]))
    })

row("column_major_written_by_every_access", """
kernel k(i32 C[M : 1, N : ld], const i32 A[M, N])
    grid(cdiv(M, 5), cdiv(N, 3))
{
    int m = pid(0) * 5;
    int n = pid(1) * 3;
    C[m +: 5, n +: 3] = A[m +: 5, n +: 3];
    C[m +: 5, n] += 1000;
    C[m, n +: 3] = -C[m, n +: 3];
    store(C[m + iota(5), n + iota(3)], C[m +: 5, n +: 3] + 1, mask = col(iota(5)) % 2 == row(iota(3)) % 2);
    atomic_add(C[m + 4, n +: 3], 5);
    C[m + 1 +: 2 : 2, n +: 2 : 2] *= 3;
    if (m == 0) C[0, n] = 7;
}
""", {"C": Arr("i32", np.asfortranarray(poison("i32", 13, 8).store)), "A": iota("i32", 13, 8)}, lambda a: column(a))


def column(a):
    A, C = a["A"].astype(int), np.zeros((15, 9), int)
    C[:13, :8] = A
    for m in range(0, 13, 5):
        for n in range(0, 8, 3):
            t = C[m:m + 5, n:n + 3]
            t[:, 0] += 1000
            t[0] *= -1
            t += (np.arange(5)[:, None] % 2 == np.arange(3) % 2)
            t[4] += 5
            t[[1, 3], 0] *= 3
            t[[1, 3], 2] *= 3
            if m == 0:
                t[0, 0] = 7
    return {"C": exact(C[:13, :8])}


row(
    "update_of_slices_in_every_type", f"""
kernel k({', '.join(f'{t} {t}_[N]' for t in ('i8', 'u16', 'i64', 'f16', 'bf16', 'f64'))}, bool b[N], const i8 x[N])
    grid(1)
{{
    auto v = x[0 +: 11];
    i8_[-2 +: 11] += v;
    i8_[3 +: 4 : 2] <<= 1;
    u16_[0 +: 11] -= (u16)v;
    u16_[4 +: 3] &= 0xFF;
    i64_[0 +: 11] *= (i64)v;
    i64_[1] -= 5;
    i64_[0 +: 11 : 1] %= 7;
    f16_[0 +: 11] += (f16)v;
    f16_[2 +: 3] /= 2;
    bf16_[0 +: 11] = -bf16_[0 +: 11];
    bf16_[5 +: 20] -= 1;
    f64_[0 +: 11] += 0.5;
    f64_[10] *= -1;
    b[0 +: 11] = b[0 +: 11] != (v > 0);
}}
""", {
        **{t + "_": iota(t, 11)
           for t in ("i8", "u16", "i64", "f16", "bf16", "f64")}, "b": random_bits("bool", 1, 11), "x": small(
            "i8", 2, 11)
    }, lambda a: updated(a))


def updated(a):
    x = a["x"].astype(int)
    i8, u16, i64, f16, bf16, f64 = (np.arange(11) for _ in range(6))
    i8[:9] += x[2:]
    i8[[3, 5, 7, 9]] *= 2
    u16 = (u16 - x) % 65536
    u16[4:7] &= 255
    i64 = i64 * x
    i64[1] -= 5
    f16 = f16 + x + 0.0
    f16[2:5] /= 2
    bf16 = -bf16 + 0.0
    bf16[5:] -= 1
    f64 = f64 + 0.5
    f64[10] *= -1
    return {
        "i8_": exact(i8), "u16_": exact(u16), "i64_": exact(np.fmod(i64, 7)), "f16_": exact(f16),
        "bf16_": exact(np.where(bf16 == 0, -0.0, bf16)), "f64_": exact(f64), "b": exact(a["b"] != (x > 0))
    }
