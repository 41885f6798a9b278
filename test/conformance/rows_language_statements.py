"""The clauses of frontend/LANGUAGE.md on declarations, statements and functions, written from what they promise."""
import numpy as np

from rows import row
from rows_control import one
from values import exact, exactly, iota, poison, small, zeros


# ---- declarations and statements ------------------------------------------------------------------------------------
TYPES = ["bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64"]
row(
    "lang_variables_are_zero_without_an_initialiser", """
struct all { f32 a; tile<i64, 3> b; bool c; tile<f16, 2, 2> d; };
struct nest { struct all in_, too; i8 e; };
kernel k(f32 y[20], i64 z[3])
    grid(1)
{
""" + "\n".join(f"    {t} v{i};\n    tile<{t}, 5> t{i};\n    y[{i}] = (f32)v{i} + sum((tile<f32, 5>)t{i});"
                for i, t in enumerate(TYPES)) + """
    struct all s;
    struct nest n;
    z[0 +: 3] = s.b + n.too.b;
    y[13] = s.a + n.in_.a + (f32)n.e;
    y[14] = s.c || n.too.c ? 1 : 0;
    y[15] = sum((tile<f32, 2, 2>)(s.d + n.in_.d));
    struct all part = {3};
    y[16] = part.a * 100 + (part.c ? 1 : 0) + (f32)sum(part.b);
    for (int i : range(3)) { int fresh; fresh += i; y[17] = (f32)fresh; }
    int a, b = 5, c;
    y[18] = (f32)(a + b + c);
    f8e4m3 tiny;
    y[19] = (f32)tiny;
}
""", {"y": poison("f32", 20), "z": poison("i64", 3)},
    lambda a: {"y": exact([0] * 16 + [300, 2, 5, 0]), "z": exact([0, 0, 0])})

one("lang_scopes_and_hiding", """
    int v = 1;
    { int v = v + 1; y[0] = v; v = 9; }
    y[1] = v;
    if (three == 3) { f32 v = 2.5; y[2] = (i32)(v * 2); } else { bool v = true; }
    for (int v : range(2)) { y[3] += v + 1; }
    for (int v = 5; v < 7; v++) y[4] += v;
    { auto max = 7; y[5] = max; }
    y[6] = max(v, 4);
    int N = 100;
    y[7] = N;
    y[8] = hidden(2) + LIMIT;
    { const int LIMIT = 3; tile<i32, LIMIT> t = 1; y[9] = sum(t); }""", [2, 1, 5, 3, 11, 7, 4, 100, 52, 3], head="""
const int LIMIT = 50;
int hidden(int LIMIT) { LIMIT = LIMIT * 1; return LIMIT; }
""")

one(
    "lang_compound_assignments_and_steps", """
    int a = 12;
    a += 3; y[0] = a;
    a -= 20; y[1] = a;
    a *= -7; y[2] = a;
    a /= 4; y[3] = a;
    a %= 5; y[4] = a;
    a <<= 6; y[5] = a;
    a >>= 2; y[6] = a;
    a |= 7; y[7] = a;
    a &= 0x15; y[8] = a;
    a ^= 0xFF; y[9] = a;
    a++; y[10] = a;
    a--; a--; y[11] = a;
    tile<i32, 4> t = 1;
    t += iota(4); t *= 3; t++;
    y[12] = sum(t);
    y[13]++; y[13] += 4; y[13] <<= 3;
    struct two p = {1, 2};
    p.a += p.b; p.b--; p.a *= 5;
    y[14] = p.a * 10 + p.b;
    u8 w = 250; w += 10; y[15] = (i32)w;""", [
        15, -5, 35, 8, 3, 192, 48, 55, 0x15 & 55, 0xFF ^ (0x15 & 55), (0xFF ^ (0x15 & 55)) + 1,
        (0xFF ^ (0x15 & 55)) - 1, (1 + 2 + 3 + 4) * 3 + 4, 40, 151, 4
    ], head="struct two { int a, b; };")

row(
    "lang_broadcast_to_the_left_side", """
tile<f32, 2, 3> grown(tile<f32, 3> v) { return v; }
tile<f32, 2, 3> filled() { return 4; }
f32 total(tile<f32, 2, 3> v) { return sum(v); }
struct st { tile<f32, 2, 3> t; };
kernel k(const f32 x[N], f32 y[9, 2, 3], f32 s[3])
    grid(1)
{
    auto v = x[0 +: 3];
    tile<f32, 2, 3> a = v;
    y[0, 0 +: 2, 0 +: 3] = a;
    a = col(x[3 +: 2]);
    y[1, 0 +: 2, 0 +: 3] = a;
    a += v;
    y[2, 0 +: 2, 0 +: 3] = a;
    y[3, 0 +: 2, 0 +: 3] = v;
    y[4, 0 +: 2, 0 +: 3] = x[4];
    y[5, 0 +: 2, 0 +: 3] = grown(v) + filled();
    struct st w = {v};
    w.t += 1;
    y[6, 0 +: 2, 0 +: 3] = w.t;
    y[7, 0 +: 2, 0 +: 3] = 0;
    y[7, 0 +: 2, 0 +: 3] += v;
    y[8, 0 +: 2, 0 +: 3] = 7;
    store(y[8, 0 +: 2, 0 +: 3], v, mask = v > 1);
    s[0] = total(v);
    tile<f32, 1, 1> unit = 5;
    s[1] = total(unit);
    s[2] = sum(expand(expand(v, 0), 2) + broadcast(v, 4, 3, 3));
}
""", {"x": exactly("f32", [1, 2, 3, 10, 20]), "y": poison("f32", 9, 2, 3), "s": poison("f32", 3)},
    lambda a: leftward(a["x"]))


def leftward(x):
    v = np.stack([x[:3]] * 2)
    c = np.broadcast_to(x[3:5, None], (2, 3))
    return {
        "y": exact(np.stack([v, c, c + v, v, v * 0 + x[4], v + 4, v + 1, v,
                             np.where(v > 1, v, 7)])), "s": exact([12, 30, 4 * 9 * 2 * 2])
    }


one("lang_ranges", """
    int n = 0;
    for (int i : range(0, 0, 0)) n += 1;
    for (int i : range(3, 9, three - 3)) n += 10;
    for (int i : range(5, 0)) n += 100;
    for (int i : range(-3)) n += 1000;
    y[0] = n;
    n = 0;
    for (int i : range(2147483600, 2147483647, 40)) n += 1;
    for (int i : range(-2147483647, -2147483648, -1)) n += 10;
    for (int i : range(-2147483640, -2147483648, -5)) n += 100;
    y[1] = n;
    i64 far = 0;
    for (i64 i : range((i64)3_000_000_000, (i64)3_000_000_010, (i64)3)) far += i;
    y[2] = (i32)(far - 12_000_000_000);
    for (u32 u : range((u32)4294967290, (u32)4294967295, (u32)2)) y[3] += (i32)(u - 4294967290);
    for (auto i : range(three)) y[4] += i;
    for (i8 b : range(120, 127, 5)) y[5] += (i32)b;
    int hi = 4, step = 1;
    for (int i : range(0, hi, step)) { hi = 100; step = 7; i *= 2; y[6] += i; }
    for (int i : range(10, -10, -7)) y[7] = y[7] * 100 + (i + 50);
    for (int i : range(lo = 1, hi = 4)) y[8] += i;
    for (u32 u : range((u32)5, (u32)3)) y[9] += 1;
    for (int i = 0; i < 10; i += three) { i++; y[10] += i; }
    int j = 0;
    for (;;) { if (j >= 5) break; j++; }
    for (; j < 8;) j += 2;
    y[11] = j;
    for (i64 i : range(three)) y[12] += (i32)i;""",
    [0, 2 + 10 + 200, 18, 0 + 2 + 4, 3, 245, 12, 605346, 6, 0, 1 + 5 + 9, 9, 3])

one(
    "lang_jumps_from_anywhere", """
    y[0] = depth(5, 100);
    y[1] = depth(5, 3);
    for (int i : range(4))
            {
        if (i == 1) continue;
        for (int j = 0; j < 9; j++) { if (j == i) break; y[2] += 1; }
        if (i == 2) break;
        y[3] += 1;
    }
    int k = 10;
    while (k > 0) { k--; if (k % 3 == 0) continue; if (k < 3) break; y[4] += k; }
    static for (int i : range(0, 4)) { static if (i % 2 == 1) y[5] += i; }
    nothing(y, 6);
    nothing(y, -1);
    for (int i : range(10)) static for (int j : range(0, 2)) { if (i == 3) break; y[7] += 1; }
    if (three == 3) { if (y[0] > 0) return; }
    y[8] = 1;""", [103, 999, 2, 1, 8 + 7 + 5 + 4, 4, 1, 6], head="""
int depth(int a, int b) {
    while (true) {
        for (int i : range(a)) {
            for (int j : range(i)) { if (i + j > b) return 999; if (j == 2) return b + i; }
        }
        return 3;
    }
}
void nothing(i32 y[N], int at) { if (at < 0) return; y[at] += 1; }
""")

HINTED = """
kernel k(const f32 x[R, C], f32 y[C], i32 n[1])
    grid(1)
{{
    tile<f32, 32> t = 0;
    for (int i : range(0, R, 3)) {h}
        for (int j : range(i, min(i + 3, R))) {g} {{
            if (x[j, 0] > 100) continue;
            t += x[j, 0 +: 32] * (f32)(j + 1);
            n[0] += 1;
        }}
    for (int i = 0; i < 3; i++) {h}
        t = t + 1;
    int w = 0;
    while (w < 5) {g} w++;
    y[0 +: 32] = t + (f32)w;
}}
"""
for i, (h, g) in enumerate([("", ""), ("pipeline", ""), ("pipeline(3)", "unroll(2)"), ("unroll", "nounroll"),
                            ("nounroll", "unroll"), ("specialize", "pipeline(2)"),
                            ("pipeline(4) specialize unroll(3)", "unroll(7)")]):
    x = small("f32", 11, 17, 32)
    row(f"lang_hints_change_nothing_{i}", HINTED.format(h=h,
                                                        g=g), {"x": x, "y": poison("f32", 32), "n": zeros("i32", 1)},
        lambda a: {"y": exact((a["x"] * np.arange(1, 18)[:, None]).sum(0) + 8), "n": exact([17])})

one(
    "lang_static_statements", """
    static_assert(LAST == 42 && -7 / 2 == -3 && -7 % 2 == -1 && 1 << 4 == 16 && (0x0F ^ 0xFF) == 0xF0, "arithmetic");
    static_assert(!(1 > 2) || 1 / 1 == 1, "short");
    static_assert(max(3, 7) == 7 && min(-1, 1) == -1 && abs(-5) == 5 && cdiv(7, 2) == 4 && clamp(9, 0, 5) == 5,
            "built-in");
    static_assert((i8)200 == -56 && (i32)2.9 == 2 && (i32)-2.9 == -2 && (u8)300.0 == 255, "casts");
    static if (LAST > 40) { y[0] = 1; } else { y[0] = 0; }
    static for (int i : range(3, -1, -1)) y[1] = y[1] * 10 + i;
    static for (int i : range(0, 3)) { tile<i32, i + 1> t = 2; y[2] += sum(t); }
    const int n = pick(3);
    y[3] = n;
    tile<i32, TABLE - 1> wide = 1;
    y[4] = sum(wide);
    static if (KIND) { const int w = 4; tile<i32, w * 2> u = 1; y[5] = sum(u); }
    static for (int i : range(0, 2)) static for (int j : range(0, i + 1)) y[6] += 1;
    u8 c = WRAP;
    y[7] = (i32)c;
    y[8] = (i32)(EXACT * 3.0);
    static if (target.kind == "cuda" || target.kind == "hip") y[9] = 1; else y[9] = 2;
    y[10] = 0 != 0 ? 1 / 0 : 5;
    tile<i32, (1 << 3), 2 + 3 * 2 - 1, (FIRST > 20 ? 2 : 9)> sums = 1;
    y[11] = sum(sums);""", [1, 3210, 12, 3, 6, 8, 3, 4, 1, 2, 5, 112], head="""
const int LAST = FIRST * 2;
const int FIRST = 3 * SEVEN, SEVEN = 7, TABLE = 7;
const bool KIND = FIRST == 21;
const u8 TOP = 255;
const u8 WRAP = TOP + 5;
const f64 EXACT = 1 / 3.0;
static_assert(LAST == 42, "order is free");
int pick(int v) { return v; }
""")

# ---- functions ------------------------------------------------------------------------------------------------------
one("lang_functions_bind_types_and_extents", """
    y[0] = extents(tile<f32, 3, 7>(0));
    y[1] = (i32)same((f16)2.5, (f16)4);
    y[2] = fixed(tile<i32, 4>(2));
    y[3] = later(5);
    y[4] = counted(iota(6), 3);
    y[5] = widths(tile<u8, 9>(1), tile<i64, 2>(4));
    y[6] = with_default(10) + with_default(10, 5) + with_default(10, step = 7);
    y[7] = twice_of(7, inc) + twice_of(f = inc, v = 1);
    y[8] = clamp(hi = 3, x = three + 5, lo = 1);
    y[9] = sum(cast(x = iota(3), type = i32)) + sub_(b = 1, a = 10);
    y[10] = typed(f16) + typed(u8);
    int v = 5;
    changes(v);
    y[11] = v;
    y[12] = sum(generic(iota(4), 2)) + generic(three, 2);
    y[13] = max(3, 4);
    y[14] = cdiv(7, 2);
    auto (p, q) = ordered(9, 2);
    (q, p) = ordered(p + 1, q);
    y[15] = p * 10 + q;""", [307, 6, 8, 10, 18, 892, 150, 12, 3, 12, 1376, 5, 6 + 8 + 5, 1000, 4, 93], head="""
const int FOUR = 4;
int extents(tile<T, R, C> t) { return R * 100 + C; }
T same(T a, T b) { return a + b; }
int fixed(tile<i32, (FOUR)> t) { return sum(t); }
int later(int n) { return earlier(n) * 2; }
int counted(tile<T, N> t, const int n) { tile<i32, n> u = 1; return sum(u) * N; }
int widths(tile<S, A> s, tile<T, B> t) { return (i32)sum(t) * 100 + A * 10 + B; }
int with_default(int v, const int step = 3) { return v * step; }
int twice_of(int v, const fn f) { return f(f(v)); }
int inc(int v) { return v + 1; }
int sub_(int a, int b) { return a - b; }
int typed(const type T) { T v = 200; v += cast(1000, T); return (i32)v; }
void changes(int v) { v = v * 2; }
auto generic(auto a, auto b) { auto c = a; c += b; return c; }
int max(int a, int b) { return 1000; }
auto ordered(int a, int b) { if (a < b) return (a, b); return (b, a); }
int earlier(int n) { return n; }
""")

row(
    "lang_views_pointers_and_tuples_through_functions", """
struct acc { f32 s; tile<i32, 2> n; };
f32 first_of(const f32 *p, i64 at) { return p[at]; }
f32 *behind(f32 *p, int by) { return p + by; }
auto pair_of(const f32 A[M, K], int i) { return (A[i, 0], M, K, A); }
struct acc grow(struct acc a, f32 v) { a.s += v; a.n += 1; return a; }
T total(const T A[N]) { T s = 0; for (int i : range(N)) s += A[i]; return s; }
void set(f32 A[N], const f32 B[N], int n) { if (n >= N) return; A[n] = B[n]; }
auto swap(auto t) { auto (a, b) = t; return (b, a); }
i32 strides_of(const f32 A[M : lda, K : s]) { return lda * 1000 + s * 100 + K * 10 + M; }
f32 fifth(const f32 A[M, 4], const f32 B[M, K]) { return A[0, 4] + (f32)(M * 100 + K * 1000); }
kernel k(const f32 a[M, K], const i32 b[L], f32 y[14], f32 *q, int one)
    grid(1)
{
    y[0] = first_of(raw(a), one + 2);
    auto (v, m, n, A) = pair_of(a, one);
    y[1] = v + (f32)(m * 100 + n * 10000);
    y[2] = A[1, 1];
    struct acc s;
    for (int i : range(3)) s = grow(s, (f32)i + 0.5);
    y[3] = s.s;
    y[4] = (f32)sum(s.n);
    y[5] = (f32)total(b);
    store(behind(q, one), 6.0);
    set(y, view(raw(a), (12), (1)), 6);
    set(y, view(raw(a), (12), (1)), 12);
    auto t = swap((1, 2.5));
    auto (x, z) = swap(swap(t));
    y[7] = x * 10 + (f32)z;
    auto nested = ((1, 2), 3);
    auto (u, w) = nested;
    auto (f, g) = u;
    y[8] = (f32)(f * 100 + g * 10 + w);
    (y[9], f) = (1.5, 7);
    y[10] = (f32)f;
    (f, g) = (g, f);
    y[11] = (f32)(f * 10 + g);
    y[12] = (f32)strides_of(view(raw(a), (2, 3), (5, 2)));
    y[13] = fifth(view(raw(a), (2, 6), (6, 1)), a);
}
""", {"a": iota("f32", 3, 4), "b": iota("i32", 5), "y": poison("f32", 14), "q": zeros("f32", 3), "one": 1}, lambda a: {
        "y": exact([3, 4 + 300 + 40000, 5, 4.5, 6, 10, 6, 26, 123, 1.5, 7, 27, 5232, 4 + 200 + 4000]), "q": exact(
            [0, 6, 0])
    })

one("lang_evaluation_from_left_to_right", """
    y[0] = step(y) * 10 + step(y);
    y[at(y)] = step(y);
    y[4] = pair(step(y), b = step(y)) + pair(b = step(y), a = step(y));
    auto (p, q) = (step(y), step(y));
    y[5] = p * 100 + q;
    y[6] += step(y);
    bool both = step(y) == 12 && step(y) == 13;
    y[7] = both ? step(y) : step(y) * 1000;
    int n = y[15];
    if (n < 0 && 1 / (n - n) > 0) n = 5;
    y[8] = n;
    for (int i : range(step(y) - 15, step(y) - 10)) y[9] += 1;
    y[at(y)] += step(y);""", [12, 0, 0, 0, 143, 910, 11, 14, 14, 6 + 18, 0, 4, 0, 0, 0, 18], head="""
int step(i32 y[M]) { y[15] += 1; return y[15]; }
int at(i32 y[M]) { y[15] += 1; return (8 + y[15]) % 16; }
int pair(int a, int b) { return a * 10 + b; }
""")

row("lang_pick_and_put_by_any_integer", """
kernel k(const i32 x[N], i32 y[8], i8 a, u8 b, i16 c, u32 d, u64 e)
    grid(1)
{
    auto t = x[0 +: 300];
    y[0] = pick(t, 0, a);
    y[1] = pick(t, 0, b);
    y[2] = pick(t, 0, c);
    y[3] = pick(t, 0, d);
    y[4] = pick(t, 0, e);
    y[5] = sum(put(t, 0, a, 0));
    y[6] = sum(pick(reshape(t, 30, 10), 1, b));
}
""", {"x": iota("i32", 300), "y": zeros("i32", 8), "a": 5, "b": 3, "c": 258, "d": 299, "e": 7},
    lambda a: {"y": exact([5, 3, 258, 299, 7, 44850 - 5, sum(range(3, 300, 10)), 0])})
