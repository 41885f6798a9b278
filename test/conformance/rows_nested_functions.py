"""Functions within functions and `fn (a, b) => e`: what they see, where they may stand, that they cost nothing."""
import numpy as np

from rows import row
from rows_control import one
from values import exact, poison, small, zeros

row(
    "nested_sees_views_variables_and_constants", """
const int FIVE = 5;
kernel k(const f32 x[N], f32 y[N], f32 z[4], f32 s, const int B = 16, const type T = f32)
    grid(cdiv(N, B))
{
    int i = pid(0) * B;
    auto v = x[i +: B];
    auto scaled(auto t) { return t * s; }
    tile<f32, M> both(tile<f32, M> t) {
        auto more(auto u) { return scaled(u) + cast(FIVE, T); }
        return more(t) + more(t + 1);
    }
    auto all(tile<f32, (B)> t) { return both(t); }
    y[i +: B] = all(v);
    void keep(int at, auto t) { z[at] = t + x[at]; }
    if (i == 0) keep(2, scaled(3.0));
}
""", {"x": small("f32", 3, 37), "y": poison("f32", 37), "z": zeros("f32", 4), "s": 2.0}, lambda a:
    {"y": exact(a["x"] * 4 + 12), "z": exact([0, 0, 6 + a["x"][2], 0])})

one("nested_sees_values_of_the_call", """
    int n = 1;
    int next() { return n * 10 + 1; }
    y[0] = next();
    n = 2;
    y[1] = next();
    if (three == 3) n = three + 4;
    y[2] = next();
    for (int i : range(3)) { n += i; y[3] += next(); }
    while (n < 1000) n = next();
    y[4] = n;
    static for (int i : range(2)) {
        int add(int a) { return a + i + n; }
        y[5 + i] = add(i);
    }
    { int n = 7; int hides() { int n = 8; n += 1; return n; } y[7] = hides() * 100 + n * 10 + next() - next(); }
    for (int i : range(5)) { bool last() { return i == three; } if (last()) break; y[8] += 1; }
    int early(int a) { if (a > n) return 1; for (int i : range(9)) { if (i == a) return i * 2; } return -1; }
    y[9] = early(5000) * 100 + early(4) * 10 + early(20);
    int twice(int a) { return a * 2; }
    int other(const fn f, int a) { return f(f(a)); }
    y[10] = other(twice, 3) + other(fn (a) => a + n, 0) - 2 * n;
    auto pair(auto a) { return (a, n); }
    auto (p, q) = pair(three);
    y[11] = p * 10000 + q;""",
    [11, 21, 71, 71 + 81 + 101, 1011, 1011, 1013, 970, 3, 100 + 80 - 1, 12, 31011])

one("nested_hides_what_is_outside", """
    int f(int a) { return a + 1; }
    y[0] = f(1);
    { int f(int a) { return a + 10; } y[1] = f(1); }
    y[2] = f(1);
    int max(int a, int b) { return a * 100 + b; }
    y[3] = max(1, 2);
    int key(int three) { int y = three; three += 1; return three * 10 + y; }
    y[4] = key(4);
    y[5] = (fn (a, b) => a - b)(9, 2);
    y[6] = (fn () => three)();
    if (three > 0) int one() { return 1; }
    y[7] = outer(three);""", [2, 11, 2, 102, 54, 7, 3, 46], head="""
int f(int a) { return a; }
int outer(int a) {
    int f(int b) { int f(int c) { return c + a; } return f(b) * 2; }
    int g() { return f(20); }
    return g();
}
""")

COMBINE = """
kernel k(const {t} x[R, N], {t} y[R], {t} w[R, N], {t} m[R], {t} s)
    grid(R)
    require(N <= 48)
{{
    int r = pid(0);
    auto v = x[r, 0 +: 48];
    {t} d = s;
    if (r > 1) d = s + s;
    y[r] = reduce(v, 0, fn (a, b) => a + b + d - d);
    w[r, 0 +: 48] = scan(v, 0, fn (a, b) => max(a, min(b, d)));
    auto clipped(auto a, auto b) {{ auto more(auto c) {{ return c > d ? d : c; }} return min(more(a), more(b)); }}
    m[r] = reduce(v, 0, clipped);
}}
"""
for _t in ("i32", "f32", "i64", "f64"):
    def _combined(a):
        x, d = a["x"], np.array([a["s"] * (2 if r > 1 else 1) for r in range(len(a["x"]))])
        low = np.concatenate([np.minimum(x, d[:, None])], axis=1)
        scan = x.copy()
        for i in range(1, x.shape[1]):
            scan[:, i] = np.maximum(scan[:, i - 1], low[:, i])
        return {"y": exact(x.sum(1)), "w": exact(scan), "m": exact(np.minimum(np.minimum(x.min(1), 0), d))}
    row(f"nested_combines_with_what_it_sees_{_t}", COMBINE.format(t=_t),
        {"x": small(_t, 5, 4, 37), "y": poison(_t, 4), "w": poison(_t, 4, 37), "m": poison(_t, 4), "s": 2}, _combined)

row(
    "nested_default_of_a_function_parameter", """
auto apply(auto x, const int times = 2, const fn f = fn (a) => a * 2 + times) {
    static for (int i : range(times)) x = f(x);
    return x;
}
kernel k(const f32 x[N], f32 y[N], const int K = 3, const fn g = fn (a) => a + (f32)K)
    grid(cdiv(N, 8))
{
    int i = pid(0) * 8;
    y[i +: 8] = g(apply(x[i +: 8], f = fn (a) => -a)) + apply(1.0, times = 1, f = fn (a) => a + 1) - 2;
}
""", {"x": small("f32", 3, 13), "y": poison("f32", 13)}, lambda a: {"y": exact(a["x"] + 3)})

row(
    "nested_in_a_loop_of_products", """
kernel k(const f16 A[M, K], const f16 B[K, N], f32 C[M, N], f32 bias,
         const int BM = 32, const int BN = 32, const int BK = 16)
    grid(cdiv(M, BM), cdiv(N, BN))
{
    int m = pid(0) * BM;
    int n = pid(1) * BN;
    tile<f32, BM, BN> acc = 0;
    auto step(auto sum, int at) { return dot(A[m +: BM, at +: BK], B[at +: BK, n +: BN], sum); }
    for (int at : range(0, K, BK)) pipeline acc = step(acc, at);
    void finish(auto t) { C[m +: BM, n +: BN] = t + bias; }
    finish(acc);
}
""", {"A": small("f16", 1, 40, 50), "B": small("f16", 2, 50, 33), "C": poison("f32", 40, 33), "bias": 3.0}, lambda a:
    {"C": exact(a["A"].astype(np.float32) @ a["B"].astype(np.float32) + 3)})

one("nested_of_a_long_chain", """
    int g_0(int a) { return a + three; }
""" + "\n".join(f"    int g_{i}(int a) {{ return g_{i - 1}(a) + {i}; }}" for i in range(1, 40)) + """
    y[0] = g_39(0);""", [3 + sum(range(40))])

