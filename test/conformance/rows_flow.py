"""Every kind of operation under loops, branches and in functions; structs and tuples carried through them; exits from
anywhere."""
import numpy as np

from rows import row
from values import Arr, exact, exactly, ints, iota, poison, random_bits, small, zeros

row(
    "flow_moves_in_a_loop_with_branches", """
kernel k(const i32 x[R, C], i32 y[R, C], i32 n)
    grid(1)
{
    auto v = x[0 +: 6, 0 +: 10];
    for (int t : range(n)) {
        if (t % 5 == 0) v = flip(v, 0);
        else if (t % 5 == 1) v = flip(v, 1) + t;
        else if (t % 5 == 2) v = trans(reshape(trans(v), 10, 6));
        else if (t % 5 == 3) {
            auto a = extract(v, 0 +: 6, 0 +: 5);
            auto b = extract(v, 0 +: 6, 5 +: 5);
            v = interleave(b, a);
        } else v = cat(extract(v, 3 +: 3, 0 +: 10), extract(v, 0 +: 3, 0 +: 10), 0);
        if (sum(v) % 2 == 0) v = put(v, 0, t % 6, pick(v, 0, t % 3)) ;
        v = shift(v, 1, t - 3, t);
    }
    y[0 +: 6, 0 +: 10] = v;
}
""",
    {"x": small("i32", 1, 6, 10, lo=0, hi=99), "y": poison("i32", 6, 10), "n": 13}, lambda a: moved(a["x"].copy(), 13))


def moved(v, n):
    for t in range(n):
        if t % 5 == 0:
            v = v[::-1]
        elif t % 5 == 1:
            v = v[:, ::-1] + t
        elif t % 5 == 2:
            v = v.T.reshape(10, 6).T
        elif t % 5 == 3:
            v = np.stack((v[:, 5:], v[:, :5]), -1).reshape(6, 10)
        else:
            v = np.concatenate((v[3:], v[:3]))
        v = v.copy()
        if v.sum() % 2 == 0:
            v[t % 6] = v[t % 3]
        w = np.full_like(v, t)
        for c in range(10):
            if 0 <= c - (t - 3) < 10:
                w[:, c] = v[:, c - (t - 3)]
        v = w
    return {"y": exact(v)}


row(
    "flow_sorts_scans_and_reductions_in_a_while", """
auto lowest(auto v, i32 k) {
    auto (a, i) = topk(v, 4);
    if (k > 2) return (a, i);
    return (-a, i + 1);
}
kernel k(const i32 x[N], i32 y[N], i32 w[4], i32 at[4], i32 steps[1], i32 h[8])
    grid(1)
{
    auto v = x[0 +: 37];
    int n = 0;
    tile<i32, 4> best;
    tile<i32, 4> where_;
    tile<i32, 8> bins;
    while (sum(v) > 0 && n < 9) {
        n += 1;
        auto c = cumsum(v, axis = 0, reverse = true) ;
        v = sort(v - (c % 7), 0);
        if (pick(v, 0, n) > 3) break;
        bins += histogram(v, 8, mask = v != n);
        (best, where_) = lowest(v, n);
    }
    y[0 +: 37] = v;
    w[0 +: 4] = best;
    at[0 +: 4] = where_;
    steps[0] = n;
    h[0 +: 8] = bins;
}
""", {
        "x": small("i32", 3, 37, lo=0, hi=30), "y": poison("i32", 37), "w": poison("i32", 4), "at": poison("i32", 4),
        "steps": poison("i32", 1), "h": poison("i32", 8)
    }, lambda a: searched(a["x"].copy()))


def searched(v):
    n, best, at, bins = 0, np.zeros(4, int), np.zeros(4, int), np.zeros(8, int)
    while v.sum() > 0 and n < 9:
        n += 1
        c = v[::-1].cumsum()[::-1]
        v = np.sort(v - np.fmod(c, 7))
        if v[n] > 3:
            break
        ok = (v >= 0) & (v < 8) & (v != n)
        bins += np.bincount(v[ok], minlength=8)
        i = np.argsort(-v, kind="stable")[:4]
        best, at = (v[i], i) if n > 2 else (-v[i], i + 1)
    return {"y": exact(v), "w": exact(best), "at": exact(at), "steps": exact([n]), "h": exact(bins)}


row(
    "flow_structs_of_structs_through_everything", """
struct vec { tile<f32, 5> v; i32 n; };
struct two { struct vec a; struct vec b; bool swapped; };

struct two turn(struct two t) {
    auto a = t.a;
    t.a = t.b;
    t.b = a;
    t.swapped = !t.swapped;
    return t;
}
struct vec grow(struct vec v, f32 by) {
    if (v.n > 3) return v;
    for (int i : range(v.n)) { v.v += by; if (i == 1) return v; }
    v.n += 1;
    return v;
}
kernel k(const f32 x[R, C], f32 y[2, C], i32 n[4], int trips)
    grid(1)
{
    struct two t = {(struct vec){x[0, 0 +: 5], 0}, (struct vec){x[1, 0 +: 5], 1}, false};
    for (int i : range(trips)) {
        if (i % 3 == 2) continue;
        if (i == 11) break;
        t = turn(t);
        t.a = grow(t.a, (f32)i);
        if (t.swapped) t.b.n += 10; else t.b.v = t.b.v * 2 - t.a.v;
        if (t.b.n > 100) t.b = (struct vec){t.a.v, 1};
    }
    y[0, 0 +: 5] = t.a.v;
    y[1, 0 +: 5] = t.b.v;
    n[0] = t.a.n;
    n[1] = t.b.n;
    n[2] = t.swapped ? 1 : 0;
    n[3] = trips;
}
""", {"x": small("f32", 1, 2, 5), "y": poison("f32", 2, 5), "n": poison("i32", 4), "trips": 10},
    lambda a: turned(a["x"].astype(float), 10))


def turned(x, trips):
    a, b, s = [x[0], 0], [x[1], 1], False

    def grow(v, by):
        v = list(v)
        if v[1] > 3:
            return v
        for i in range(v[1]):
            v[0] = v[0] + by
            if i == 1:
                return v
        v[1] += 1
        return v
    for i in range(trips):
        if i % 3 == 2:
            continue
        a, b, s = b, a, not s
        a = grow(a, i)
        if s:
            b = [b[0], b[1] + 10]
        else:
            b = [b[0] * 2 - a[0], b[1]]
        if b[1] > 100:
            b = [a[0], 1]
    return {"y": exact(np.stack((a[0], b[0]))), "n": exact([a[1], b[1], int(s), trips])}


row(
    "flow_tuples_of_tiles_of_many_types", """
auto step(auto a, auto b, auto c, auto d) { return (b + 1, a, !c, d * cast(2, f16)); }
auto nest(auto t, i32 i) { return (t, (i, (t + 1, i * 2))); }

kernel k(const i8 p[N], const f16 q[N], i8 y[N], i8 z[N], i32 b[N], f16 h[N], i32 o[5], int n)
    grid(1)
{
    auto t = (p[0 +: 9], flip(p[0 +: 9], 0), p[0 +: 9] > 0, q[0 +: 9]);
    for (int i : range(n)) {
        auto (a, u, c, d) = t;
        if (i % 2 == 0) t = step(a, u, c, d);
        else if (any(c)) t = (u, a, u > a, d);
    }
    auto (a, u, c, d) = t;
    y[0 +: 9] = a;
    z[0 +: 9] = u;
    b[0 +: 9] = c ? 1 : 0;
    h[0 +: 9] = d;
    auto (s, inner) = nest(sum(p[0 +: 9]), n);
    auto (i, deep) = inner;
    auto (r, j) = deep;
    o[0] = s;
    o[1] = i;
    o[2] = r;
    o[3] = j;
    (i, inner) = (5, inner);
    (s, j) = (6, 7);
    o[4] = i * 100 + s * 10 + j;
}
""", {
        "p": small("i8", 1, 9), "q": small("f16", 2, 9), "y": poison("i8", 9), "z": poison("i8", 9), "b": poison(
            "i32", 9), "h": poison("f16", 9), "o": poison("i32", 5), "n": 5
    }, lambda a: tuples(a))


def tuples(a):
    p, q = a["p"], a["q"].astype(float)
    t = (p, p[::-1], p > 0, q)
    for i in range(5):
        x, u, c, d = t
        if i % 2 == 0:
            t = (u + 1, x, ~c, d * 2)
        elif c.any():
            t = (u, x, u > x, d)
    x, u, c, d = t
    s = int(p.sum(dtype=int))
    return {"y": exact(x), "z": exact(u), "b": exact(c.astype(int)), "h": exact(d), "o": exact([s, 5, s + 1, 10, 567])}


row(
    "flow_memory_effects_in_order_under_control", """
void bump(i32 y[N], i32 at, i32 by) {
    if (by == 0) return;
    y[at +: 3] += by;
    while (by > 0) { y[at] += 1; by -= 1; }
}
kernel k(i32 y[N], const i32 plan[P, 2], i32 z[N])
    grid(1)
{
    for (int p : range(P)) {
        int at = plan[p, 0];
        int by = plan[p, 1];
        bump(y, at, by);
        if (by > 3) {
            z[0 +: 16] = y[15 - iota(16)];
            y[0 +: 16] = z[0 +: 16] + 1;
        } else if (by < 0) {
            auto s = sort(y[0 +: 16], 0);
            y[iota(16) * 5 % 16] = s;
        }
        atomic_add(y[iota(16) % 4], 1);
    }
}
""", {
        "y": zeros("i32", 16), "plan": Arr(
            "i32", np.stack(
                (ints("i32", 1, -2, 17, 20).store, ints("i32", 2, -2, 6, 20).store), -1)), "z": zeros("i32", 16)
    }, lambda a: bumped(a))


def bumped(a):
    y, z = a["y"].copy(), a["z"].copy()
    for at, by in a["plan"]:
        if by != 0:
            for k in range(3):
                if 0 <= at + k < 16:
                    y[at + k] += by
            if 0 <= at < 16:
                y[at] += max(by, 0)
        if by > 3:
            z[:] = y[::-1]
            y = z + 1
        elif by < 0:
            s = np.sort(y)
            y[np.arange(16) * 5 % 16] = s
        y[:4] += 4
    return {"y": exact(y), "z": exact(z)}


row(
    "flow_for_loops_of_every_integer_type", """
kernel k(i64 y[12], i8 lo, i8 hi, u8 ulo, u8 uhi, i64 big, u64 ubig, u32 u)
    grid(1)
{
    i64 n = 0;
    for (i8 i : range(lo, hi, 50)) n = n * 1000 + (i64)i;
    y[0] = n;
    n = 0;
    for (i8 i : range(hi, lo, -50)) n = n * 1000 + (i64)i;
    y[1] = n;
    n = 0;
    for (u8 i : range(ulo, uhi, 100)) n = n * 1000 + (i64)i;
    y[2] = n;
    n = 0;
    for (i64 i : range(big, big + 10, 3)) n += i - big;
    y[3] = n;
    n = 0;
    for (u64 i : range(ubig, ubig + 10, 4)) n += (i64)(i - ubig);
    y[4] = n;
    n = 0;
    for (u32 i : range(u, 0xFFFF_FFFF, 2)) n += (i64)i;
    y[5] = n;
    n = 0;
    for (i16 i = 32760; i > 0; i += 3) n += 1;
    y[6] = n;
    n = 0;
    for (u8 i = 250; i != 4; i += 2) n += (i64)i;
    y[7] = n;
    n = 0;
    for (auto i : range((i64)-1, 3)) n += i;
    y[8] = n;
    n = 0;
    for (int i : range(-2147483648, 2147483647, 2147483647)) n = n * 10 + (i64)(i & 7);
    y[9] = n;
    n = 0;
    for (int i : range(2147483647, -2147483648, -2147483648)) n += 1;
    y[10] = n;
    n = 0;
    for (;;) { n += 1; if (n > 6) break; }
    y[11] = n;
}
""", {
        "y": poison("i64", 12), "lo": -128, "hi": 127, "ulo": 0, "uhi": 255, "big": 2**62, "ubig": 2**64 - 20,
        "u": 2**32 - 6
    }, lambda a: {
        "y": exact(
            np.array([
                fold(range(-128, 127, 50)),
                fold(range(127, -128, -50)),
                fold(range(0, 255, 100)), 0 + 3 + 6 + 9, 0 + 4 + 8,
                sum(range(2**32 - 6, 2**32 - 1, 2)), 3,
                sum((250 + 2 * k) % 256 for k in range(5)), 2,
                fold((-2**31 & 7, -1 & 7, 2**31 - 2 & 7), 10), 2, 7
            ]))
    })


def fold(values, by=1000):
    n = 0
    for v in values:
        n = n * by + v
    return n


row(
    "flow_static_for_builds_tiles", """
tile<T, N> rot(tile<T, N> v, const int by) {
    static if (by == 0) return v;
    else return cat(extract(v, by +: (N - by)), extract(v, 0 +: by), 0);
}
auto pyramid(auto v, const int n) {
    static if (n == 1) return v;
    else return pyramid_step(v, n);
}
auto pyramid_step(auto v, const int n) { return sum(reshape(v, n / 2, 2), axis = 1); }

kernel k(const i32 x[N], i32 y[N], i32 z[4], i32 w[2], const int N2 = 12)
    grid(1)
{
    auto v = x[0 +: N2];
    tile<i32, N2> acc;
    static for (int i : range(0, N2, 5)) {
        static if (i % 2 == 0) acc += rot(v, i) * (i + 1);
        else acc -= rot(v, i);
    }
    y[0 +: N2] = acc;
    z[0 +: 4] = pyramid(extract(v, 0 +: 8), 8);
    int c = 0;
    static for (int i : range(0, 3)) static for (int j : range(i, 3)) {
        const int K = i * 3 + j + 1;
        tile<i32, K> t = 2;
        c += sum(t) * j;
    }
    w[0] = c;
    w[1] = pyramid(7, 1);
}
""", {"x": small("i32", 1, 12), "y": poison("i32", 12), "z": poison("i32", 4), "w": poison("i32", 2)}, lambda a:
    (lambda x: {
        "y": exact(x - np.roll(x, -5) + 11 * np.roll(x, -10)), "z": exact(x[:8].reshape(4, 2).sum(1)), "w": exact(
            [sum(2 * (3 * i + j + 1) * j for i in range(3) for j in range(i, 3)), 7])
    })(a["x"]))

row(
    "flow_functions_with_views_and_defaults", """
f32 at(const f32 A[M : lda, N : s], i32 i,
        i32 j) { return A[i, j] + (f32)(1000 * M + 100 * N) + (f32)lda * 0.5 + (f32)s * 0.25; }
void put_row(f32 A[M, N], i32 i, tile<f32, W> t) { A[i, 0 +: W] = t; }
auto through(const f32 A[M, N], const fn f, const int K = 2) { return f(A[0 +: K, 0 +: K]); }
auto total(auto t) { return sum(t); }
auto least(auto t) { return min(t); }
auto compose(auto v, const fn f, const fn g) { return f(g(v)); }
auto neg(auto v) { return -v; }

kernel k(const f32 A[M, N], const f32 B[P : 1, Q : ld], f32 C[R, S], f32 y[8])
    grid(1)
{
    y[0] = at(A, 1, 2);
    y[1] = at(B, 1, 2);
    y[2] = at(sub(A, (1, 1), (2, 2)), 0, 1);
    y[3] = through(A, total);
    y[4] = through(A, least, K = 3);
    y[5] = compose(2.0, neg, neg);
    y[6] = compose(A[0, 0 +: 4], total, neg);
    y[7] = through(sub(A, (1, 1), (9, 9)), f = total, K = 4);
    put_row(C, 1, A[0, 0 +: 7]);
    put_row(sub(C, (2, 1), (2, 3)), 0, A[1, 0 +: 7]);
    put_row(t = tile<f32, 2>(5), A = C, i = 0);
}
""", {
        "A": iota("f32", 3, 5), "B": Arr("f32", np.asfortranarray(iota("f32", 4, 6).store)), "C": zeros("f32", 4, 6),
        "y": poison("f32", 8)
    }, lambda a: (lambda A, C: {
        "y": exact([
            A[1, 2] + 3500 + 2.5 + 0.25, a["B"][1, 2] + 4600 + 0.5 + 1, A[1, 2] + 2200 + 2.5 + 0.25, 0 + 1 + 5 + 6, 0,
            2, -6, A[1:, 1:].sum()
        ]), "C": exact(C)
    })(a["A"], np.array([[5, 5, 0, 0, 0, 0], [0, 1, 2, 3, 4, 0], [0, 5, 6, 7, 0, 0], [0] * 6])))

row(
    "flow_returns_from_nested_loops_with_tiles", """
auto hunt(const i32 A[M, N], i32 what) {
    tile<i32, 4> seen;
    for (int i : range(M)) {
        int j = 0;
        while (true) {
            if (j >= N) break;
            if (A[i, j] == what) {
                for (int q : range(10)) { if (q == j) return (seen, i * 100 + j); if (q > 50) return (seen - 1, -2); }
            }
            j += 1;
            if (A[i, j] < 0) { seen += 100; break; }
            seen = seen + iota(4) * A[i, j];
        }
        if (i == 3) return (seen * 0, -3);
    }
    return (seen, -1);
}
kernel k(const i32 A[M, N], const i32 what[P], i32 y[P, 4], i32 z[P])
    grid(P)
{
    auto (s, at) = hunt(A, what[pid(0)]);
    y[pid(0), 0 +: 4] = s;
    z[pid(0)] = at;
}
""", {
        "A": small("i32", 3, 5, 7, lo=-1, hi=20), "what": iota("i32", 22), "y": poison("i32", 22, 4), "z": poison(
            "i32", 22)
    }, lambda a: hunted(a))


def hunted(a):
    A, y, z = a["A"], np.zeros((22, 4), int), np.zeros(22, int)

    def get(i, j):
        return A[i, j] if j < 7 else 0

    def hunt(what):
        seen = np.zeros(4, int)
        for i in range(5):
            j = 0
            while True:
                if j >= 7:
                    break
                if A[i, j] == what:
                    return seen, i * 100 + j
                j += 1
                if get(i, j) < 0:
                    seen = seen + 100
                    break
                seen = seen + np.arange(4) * get(i, j)
            if i == 3:
                return seen * 0, -3
        return seen, -1
    for p in range(22):
        y[p], z[p] = hunt(a["what"][p])
    return {"y": exact(y), "z": exact(z)}


row(
    "flow_scalar_types_carried", """
kernel k(const u8 x[N], f64 d[1], u8 b[2], i64 l[1], bool t[3], f16 h[1], bf16 g[1])
    grid(1)
{
    f64 p = 1;
    u8 m = 0;
    u8 w = 200;
    i64 s = -1;
    bool any_ = false;
    bool all_ = true;
    f16 q = 0;
    bf16 r = 1;
    for (int i : range(N)) {
        u8 v = x[i];
        w += v;
        m = max(m, v);
        s = s * 31 + (i64)v;
        any_ = any_ || v > 250;
        all_ = all_ && v != 7;
        if (v % 2 == 0) { p *= 1.5; q += 0.5; } else { p = p / 2 + 1; r = -r; }
    }
    d[0] = p;
    b[0] = m;
    b[1] = w;
    l[0] = s;
    t[0] = any_;
    t[1] = all_;
    t[2] = any_ != all_;
    h[0] = q;
    g[0] = r;
}
""", {
        "x": random_bits("u8", 5, 90), "d": poison("f64", 1), "b": poison("u8", 2), "l": poison("i64", 1), "t": poison(
            "bool", 3), "h": poison("f16", 1), "g": poison("bf16", 1)
    }, lambda a: carried(a["x"]))


def carried(x):
    p, s = 1.0, -1
    for v in x.tolist():
        s = s * 31 + v
        p = p * 1.5 if v % 2 == 0 else p / 2 + 1
    s = (s + 2**63) % 2**64 - 2**63
    t = [bool((x > 250).any()), bool((x != 7).all())]
    odd = int((x % 2).sum())
    return {
        "d": exact([p]), "b": exact([x.max(), (200 + int(x.sum(dtype=int))) % 256]), "l": exact(np.array([s])),
        "t": exact([*t, t[0] != t[1]]), "h": exact([0.5 * (90 - odd)]), "g": exact([(-1.0)**odd])
    }


# A program of thousands of instructions and some hundred loops, several of them in a run.
def in_turn(a):
    x, n = a["x"].astype(object), a["n"]
    y = np.zeros((2, 64, 45), object)
    for q in range(2):
        for p in range(64):
            s = p + 10 * q
            for i in range(45):
                t = np.zeros(16, object)
                for j in range(int(n[i % 4])):
                    if j == p:
                        break
                    t = t + x[i + j:i + j + 16] * (q + 1)
                    s = (s * 3 + j) % 1009
                s = (s + int(t.sum()) + i) % 1009
                y[q, p, i] = s
    return {"y": exact(y.astype(np.int64))}


row(
    "flow_long_programs", """
kernel k(const i64 x[N], const i32 n[4], i64 y[A, B, C])
    grid(B, A)
{
    i64 s = pid(0) + 10 * pid(1);
    static for (int i : range(45)) {
        tile<i64, 16> t = 0;
        for (int j : range(n[i % 4])) {
            if (j == pid(0)) break;
            t += x[i + j +: 16] * (i64)(pid(1) + 1);
            s = (s * 3 + j) % 1009;
        }
        s = (s + sum(t) + i) % 1009;
        y[pid(1), pid(0), i] = s;
    }
}
""", {"x": ints("i64", 3, 0, 100, 70), "n": Arr("i32", np.array([3, 0, 4, 6], "i4")), "y": poison("i64", 2, 64, 45)},
    in_turn)
