"""Control flow, functions, compile-time evaluation, shapes and broadcasting."""
import numpy as np

from rows import row
from values import exact, iota, poison, small, zeros


def one(name, body, want, head="", n=16):
    """A kernel of one program that fills y[16], zero before; x is 0, 1, 2, ... want: the first elements, or a
    function."""
    def padded(a):
        v = np.array(want() if callable(want) else want)
        return {"y": exact(np.concatenate([v, np.zeros(n - len(v), int)]))}
    row(name, f"{head}\nkernel k(const i32 x[N], i32 y[M], int three)\n    grid(1)\n{{\n{body}\n}}\n",
        {"x": iota("i32", 16), "y": zeros("i32", n), "three": 3}, padded)


one("for_ranges", """
    int n = 0;
    for (int i : range(5)) n += i;
    y[0] = n;
    n = 0;
    for (int i : range(10, 0, -3)) n = n * 10 + i;
    y[1] = n;
    n = 0;
    for (int i : range(0, 10, three - 3)) n += 1;
    y[2] = n;
    for (int i : range(5, 5)) n += 100;
    for (int i : range(5, 2)) n += 100;
    y[3] = n;
    for (int i : range(2147483640, 2147483647, 5)) n += 1;
    y[4] = n;
    int top = 3;
    for (int i : range(0, top)) { top = 100; i += 5; n += i; }
    y[5] = n;
    for (int i : range(three, three * three, three)) unroll(2) n += i;
    y[6] = n;
    for (int i = 0; i < 4; i += 1) { if (i == 2) continue; n += 1; }
    y[7] = n;
    u8 k = 0;
    for (u8 j : range(250, 255, 2)) k += j;
    y[8] = (i32)k;""", [10, 10741, 0, 0, 2, 20, 29, 32, (250 + 252 + 254) % 256])

one("loops_with_exits", """
    int n = 0;
    for (int i : range(10)) {
        if (i == 2) continue;
        if (i == 7) break;
        for (int j : range(10)) {
            if (j > i) break;
            if (j % 2 == 1) continue;
            n += 1;
        }
    }
    y[0] = n;
    int a = 27;
    int steps = 0;
    while (a != 1) {
        steps += 1;
        if (a % 2 == 0) { a /= 2; continue; }
        a = 3 * a + 1;
        if (steps > 1000) break;
    }
    y[1] = steps;
    while (true) { a += 1; if (a > 10) { y[2] = a; break; } }
    if (a > 100) y[3] = 1;
    else if (a == 11 && three == 3) y[3] = 2;
    else y[3] = 3;
    if (three == 3) { y[4] = 4; return; }
    y[4] = 5;
    y[5] = 6;""", [1 + 1 + 2 + 3 + 3 + 4, 111, 11, 2, 4, 0])
# i=0: j=0 -> 1; i=1: 0 -> 1; i=3: 0,2 -> 2; i=4: 0,2,4 -> 3; i=5: 3; i=6: 4

one("return_in_functions", """
    y[0] = first(0);
    y[1] = first(5);
    y[2] = first(50);
    y[3] = find(7);
    y[4] = find(1000);
    y[5] = sum(early(x[0 +: 4], true)) * 100 + sum(early(x[0 +: 4], false));""", [-1, 10, 51, 807, -1, 1206], head="""
i32 first(i32 v) {
    if (v == 0) return -1;
    if (v < 10) { if (v > 3) return v * 2; v = 100; }
    return v + 1;
}
i32 find(i32 v) {
    for (int i : range(100))
        for (int j : range(i)) if (j == v) return i * 100 + j;
    return -1;
}
tile<i32, 4> early(tile<i32, 4> t, bool twice) {
    if (twice) { t = t * 2; return t; }
    for (int i : range(3)) { t += i; if (i == 0) return t; }
    return t - 1000;
}
""")

one("tiles_carried_by_loops_and_branches", """
    tile<i32, 8> t = iota(8);
    tile<i32, 8> u;
    for (int i : range(three)) {
        auto old = t;
        t = t + u;
        u = old;
        if (i % 2 == 0) u += 1; else { t -= 1; }
    }
    y[0 +: 8] = t;
    y[8 +: 8] = u;""", lambda: carried())


def carried():
    t, u = np.arange(8), np.zeros(8, int)
    for i in range(3):
        t, u = t + u, t
        if i % 2 == 0:
            u = u + 1
        else:
            t = t - 1
    return np.concatenate([t, u])

one("static_for_if_assert", """
    static_assert(W == 4 && SUM == 10, "constants");
    tile<i32, W> t = 0;
    static for (int i : range(0, W)) t += i * x[i +: W];
    y[0 +: W] = t;
    static if (W > 3) y[4] = SUM; else y[4] = -1;
    static if (FLAG && !false) { y[5] = 1; }
    tile<i32, 2 * W + 1> odd = 1;
    y[6] = sum(odd);
    y[7] = (i32)(HALF * 4.0);""", [14, 20, 26, 32, 10, 1, 9, 2], head="""
const int W = 4;
const int SUM = W * (W + 1) / 2;
const bool FLAG = SUM > 9;
const f32 HALF = 1.0 / 2;
""")

row("control_views_in_branches_and_loops", """
auto pick_view(const f32 A[M, N], const f32 B[M, N], int c) { if (c > 0) { return A; } return B; }
f32 total(const f32 A[M, N]) { return sum(A[0 +: 8, 0 +: 8]) + (f32)(1000 * M + 10000 * N); }
void fill(f32 A[N], f32 v) { A[0 +: 16] = v; }

kernel k(const f32 a[M, N], const f32 b[P, Q], f32 y[L], f32 w[R, 6], int n)
    grid(1)
{
    int c = n;
    auto V = a;
    if (c > 0) { V = b; }
    y[0] = total(V);
    y[1] = total(pick_view(a, b, c));
    auto W = sub(a, (0, 0), (1, 8));
    for (int i : range(3)) {
        y[2 + i] = total(W);
        W = sub(a, (i, 1), (i + 1, 3));
    }
    y[5] = total(W);
    auto t = (V, c);
    while (c < 5) {
        auto (U, d) = t;
        t = (sub(U, (0, 1), (9, 9)), d + 1);
        c += 1;
    }
    auto (U, d) = t;
    y[6] = total(U) + (f32)d;
    y[7] = total(c > 3 ? a : b);
    auto row_ = view(raw(w), (6), (1));
    for (int i : range(3)) {
        fill(row_, (f32)i);
        row_ = view(raw(w) + 6 * (i + 1), (5 - i), (1));
    }
}
""", {"a": iota("f32", 3, 5), "b": iota("f32", 4, 4), "y": poison("f32", 8), "w": zeros("f32", 4, 6), "n": 0},
    lambda a: {"y": exact([53105, 44120, 51010, 31006, 32057, 31036, 3005, 53105]),
               "w": exact(np.array([[0] * 6, [1] * 5 + [0], [2] * 4 + [0] * 2, [0] * 6]))})

row(
    "functions_generic_and_higher_order", """
tile<T, N> relu(tile<T, N> t) { return max(t, 0); }
auto twice(auto v) { return v + v; }
tile<T, N> apply(tile<T, N> t, const fn f, const int times) {
    static for (int i : range(0, times)) t = f(t);
    return t;
}
auto last(tile<T, N> t) { return sum(t, where = iota(N) == N - 1); }
void fill(i32 y[M], i32 v) { y[M - 1] = v; y[0] = v + 1; }
auto both(i32 a) { return (a + 1, (f32)a * 0.5); }

kernel k(const f32 x[N], f32 y[N], i32 z[Q], f32 w[4], const fn g = twice)
    grid(cdiv(N, 16))
{
    int i = pid(0) * 16;
    y[i +: 16] = apply(g(relu(x[i +: 16])), twice, 3);
    if (i == 0) {
        fill(z, twice(4));
        auto (a, b) = both(7);
        z[1] = a;
        w[0] = b;
        (a, b) = both(a);
        w[1] = b;
        w[2] = last(x[0 +: 5]);
        w[3] = identity(2.5);
    }
}
""", {"x": small("f32", 3, 40), "y": poison("f32", 40), "z": zeros("i32", 5), "w": poison("f32", 4)}, lambda a:
    {"y": exact(np.maximum(a["x"], 0) * 16), "z": exact([9, 8, 0, 0, 8]), "w": exact([3.5, 4, a["x"][4], 2.5])})

# The type of an untyped parameter may be the widest: what is beside it does not decide before the call.
row(
    "generic_operand_may_be_the_widest", """
auto sum3(auto x) { return x + (f16)1 + (bf16)2; }
auto choose(auto x, bool b) { auto y = b ? x : (f16)1; return y + (bf16)1; }
auto least(auto x) { return min(x, (f16)8) + (bf16)1; }
auto mixed(auto x) { return x * (u8)2 + (i16)-3; }

kernel k(f32 y[4], i64 z[2], i32 s[3])
    grid(1)
{
    y[0] = sum3((f32)4);
    y[1] = choose((f32)5, true);
    y[2] = choose((f32)5, false);
    y[3] = least((f32)9);
    z[0] = mixed((i64)1 << 40);
    z[1] = mixed((i32)7);
    i32 top = -2147483648;
    s[0] = top >> -1;
    s[1] = top >> -31;
    s[2] = 1 + (top >> 33 << -2147483647);
}
""", {"y": poison("f32", 4), "z": poison("i64", 2), "s": poison("i32", 3)}, lambda a:
    {"y": exact([7, 6, 2, 9]), "z": exact(np.array([2**41 - 3, 11])), "s": exact(np.array([-1, -2**30, 1 - 2**31]))})

row(
    "structs", """
struct state { f32 m; tile<f32, 8> v; };
struct state step(struct state s, tile<f32, 8> t) {
    s.v = s.v + t;
    s.m = max(s.m, max(t));
    return s;
}
kernel k(const f32 x[R, C], f32 y[C], f32 m[1])
    grid(1)
{
    struct state s = {-inf, 0};
    for (int r : range(R)) s = step(s, x[r, 0 +: 8]);
    s.m += 1;
    y[0 +: 8] = s.v;
    m[0] = s.m;
}
""", {"x": small("f32", 4, 5, 8), "y": poison("f32", 8), "m": poison("f32", 1)},
    lambda a: {"y": exact(a["x"].sum(0)), "m": exact([a["x"].max() + 1])})

row(
    "broadcasting_and_shapes", """
kernel k(const f32 x[A, B], f32 y[A, B], f32 c[B, A], f32 r[5, 4], f32 p[4, 2, 3], f32 e[2, 3, 4], f32 s[3])
    grid(1)
{
    auto t = x[0 +: 4, 0 +: 5];
    auto v = x[0, 0 +: 5];
    y[0 +: 4, 0 +: 5] = t + v + row(v) * col(x[0 +: 4, 1]) + 1;
    c[0 +: 5, 0 +: 4] = trans(t) - col(v);
    r[0 +: 5, 0 +: 4] = reshape(t, 5, 4);
    auto q = reshape(iota(24), 2, 3, 4);
    p[0 +: 4, 0 +: 2, 0 +: 3] = (f32)trans(q, 2, 0, 1);
    e[0 +: 2, 0 +: 3, 0 +: 4] = broadcast(expand(expand((f32)iota(4), 0), 0), 2, 3, 4) + (f32)expand(col(iota(3)), 0);
    tile<f32, 1, 1> u = 7;
    s[0 +: 3] = 2;
    s[1] = sum(u + zeros_like(u));
    s[2 +: 1] = tile<f32, 1>(9);
}
""", {
        "x": small("f32", 5, 4, 5), "y": poison("f32", 4, 5), "c": poison("f32", 5, 4), "r": poison("f32", 5, 4),
        "p": poison("f32", 4, 2, 3), "e": poison("f32", 2, 3, 4), "s": poison("f32", 3)
    }, lambda a: shapes(a["x"]))


def shapes(x):
    v = x[0]
    q = np.arange(24).reshape(2, 3, 4)
    return {
        "y": exact(x + v + v * x[:, 1:2] + 1), "c": exact(x.T - v[:, None]), "r": exact(x.reshape(5, 4)),
        "p": exact(q.transpose(2, 0, 1)), "e": exact(np.zeros((2, 3, 4)) + np.arange(4) + np.arange(3)[:, None]),
        "s": exact([2, 7, 9])
    }


row(
    "short_circuit_and_scalar_choice", """
bool touch(i32 n[8], i32 at, bool v) { n[at] += 1; return v; }
kernel k(i32 n[8], i32 q[4], int zero)
    grid(1)
{
    if (touch(n, 0, false) && touch(n, 1, true)) n[7] = 9;
    if (touch(n, 2, true) || touch(n, 3, true)) q[0] = 1;
    q[1] = zero == 0 ? 5 : 7 / zero;
    q[2] = touch(n, 4, true) ? 3 : (touch(n, 5, true) ? 4 : 5);
    q[3] = !touch(n, 6, false) && zero == 0 ? 1 : 0;
}
""", {"n": zeros("i32", 8), "q": zeros("i32", 4), "zero": 0},
    lambda a: {"n": exact([1, 0, 1, 0, 1, 0, 1, 0]), "q": exact([1, 5, 3, 1])})

row(
    "scalar_parameters_of_every_type", """
kernel k(f64 y[14], bool b, i8 c, i16 d, i32 e, i64 f, u8 g, u16 h, u32 i, u64 j, f16 l, bf16 m, f32 n, f64 o)
    grid(1)
{
    y[0] = b ? 1 : 0;
    y[1] = (f64)c;
    y[2] = (f64)d;
    y[3] = (f64)e;
    y[4] = (f64)f;
    y[5] = (f64)g;
    y[6] = (f64)h;
    y[7] = (f64)i;
    y[8] = (f64)j;
    y[9] = (f64)l;
    y[10] = (f64)m;
    y[11] = n;
    y[12] = o;
    y[13] = (f64)(c + 100);
}
""", {
        "y": poison("f64", 14), "b": True, "c": -128, "d": -32768, "e": -(2**31), "f": -(2**53), "g": 255, "h": 65535,
        "i": 2**32 - 1, "j": 2**53, "l": 0.5, "m": -1.5, "n": 3.25, "o": 0.1
    }, lambda a: {
        "y": exact(
            [1, -128, -32768, -(2.0**31), -(2.0**53), 255, 65535, 2.0**32 - 1, 2.0**53, 0.5, -1.5, 3.25, 0.1, -28])
    })

row("const_parameters_and_type", """
kernel k(const T x[N], T y[N], f32 c[3], const type T = f32, const int B = 8, const bool NEG = false, const f32 S = 1.5)
    grid(cdiv(N, B))
    require(N > 0)
{
    int i = pid(0) * B;
    auto v = x[i +: B];
    y[i +: B] = NEG ? -v : v;
    if (pid(0) == 0) {
        c[0] = S;
        c[1] = (f32)B;
        c[2] = (f32)npid(0);
    }
}
""", {"x": small("i16", 3, 30), "y": poison("i16", 30), "c": poison("f32", 3)},
    lambda a: {"y": exact(-a["x"]), "c": exact([0.25, 7, 5])}, consts={"T": "i16", "B": 7, "NEG": "true", "S": "0.25"})

row(
    "variants_of_instantiate", """
kernel k(const f32 x[R, C], f32 s[R], i32 which[1], const int BC)
    grid(R)
    require(BC >= C)
    instantiate(BC = 16; BC = 64; BC = 256)
{
    s[pid(0)] = sum(x[pid(0), 0 +: BC]);
    if (pid(0) == 0) {
        which[0] = BC;
    }
}
""", {"x": small("f32", 3, 5, 50), "s": poison("f32", 5), "which": zeros("i32", 1)},
    lambda a: {"s": exact(a["x"].sum(1)), "which": exact([64])})
