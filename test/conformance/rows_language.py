"""The clauses of frontend/LANGUAGE.md on text, types, conversions and operators, written from what they promise.

Statements and functions: rows_language_statements.py; memory and launches: rows_language_memory.py. What must not
compile is in
test/frontend and test/language.
"""
import math

import numpy as np

from rows import row
from rows_control import one
from values import Arr, exact, exactly, int_range, iota, normal, poison, quantize, within, zeros

# ---- text -----------------------------------------------------------------------------------------------------------
one("lang_clause_words_are_names", """
    int grid = 1, require = 2, assume_ = 0, tune = 3, key = 4, group = 5, stages = 13;
    int cluster = 8, maxreg = 9, alias = 10, instantiate = 11, where = 12, type = 13, assume = 14;
    y[0] = grid + require + tune + key + group + stages;
    y[1] = cluster + maxreg + alias + instantiate + where + type + assume;
    y[2] = warps(key);
    struct words w = {7, 8};
    y[3] = w.key * 10 + w.where;
    for (int tune : range(3)) y[4] += tune;
    y[5] = warps(type = 5);""", [28, 77, 12, 78, 3, 15], head="""
struct words { i32 key, where; };
int warps(int type) { return type * 3; }
""")

one("lang_literals_in_every_base", """
    y[0] = 0b1010_0101;
    y[1] = 0xFF_ff;
    y[2] = 0B11 + 0XA;
    y[3] = 1_000_000;
    y[4] = (i32)(0x1.8p3 + 5. + .5 + 1e2 + 2E-1 * 10);
    y[5] = (i32)(0x10P-2 * 4);
    y[6] = true ? 1 : 0;
    y[7] = (i32)(f32)inf == 2147483647 ? 7 : 0;
    f32 not_a_number = nan;
    y[8] = not_a_number == not_a_number ? 0 : 8;
    y[9] = -0x8000_0000;
    y[10] = (i32)0xFFFF_FFFF_FFFF_FFFF;
    y[11] = - 2147483648;""",
    [0xA5, 65535, 13, 1000000, 119, 16, 1, 7, 8, -2**31, -1, -2**31])

one("lang_comments_anywhere", """
    y[0]/* a place */=/**/1 // one
        ;
    y[1] = 4 /* * / */ / 2; // /* not open
    y[2] = 7 //* divided by nothing
        ;
    //// four strokes are a plain comment
    /// a document of nothing is a comment
    y[3] = 1; /*/ still one comment /*/""", [1, 2, 7, 1])

one("lang_casts_to_types_and_names", """
    auto t = (tile<f32, 4>)iota(4) * 0.5;
    y[0] = (i32)sum(t);
    y[1] = (i32)cast(2.75, f32) + (i32)(f32)3;
    auto u = cast(iota(4), tile<i64, 4>);
    y[2] = (i32)sum(u << 40 >> 40);
    y[3] = (i32)to(3.75, 1);
    y[4] = (i32) - 5 + -(i32)3;
    y[5] = (i32)(u8)-1;
    y[6] = (int)(float)2 + (int)true;
    y[7] = i32(7) + (i32)f32(1.5);""", [3, 5, 6, 3, -8, 255, 3, 8], head="""
auto to(f32 v, T like) { return cast(v, T); }
""")

# ---- literals and conversions ---------------------------------------------------------------------------------------
row(
    "lang_literals_take_the_other_side", """
kernel k(const u8 a[N], const i64 b[N], const f16 h[N], const bf16 g[N], const f64 d[N], u8 u[3], i64 l[4], f16 f[6],
         bf16 e[2], f64 w[6], f32 s[6])
    grid(1)
{
    u[0] = a[0] + 255;
    u[1] = 255 - a[0];
    u[2] = a[0] * (1 + 2 * 3);
    l[0] = b[0] + 9_223_372_036_854_775_806;
    l[1] = b[0] - 0x7FFF_FFFF_FFFF_FFFF;
    l[2] = 3_000_000_000;
    auto big = 3_000_000_000;
    l[3] = big + 1_000_000_000_000;
    f[0] = h[0] + 2049;
    f[1] = 0.1;
    f[2] = h[0] * 65519;
    f[3] = -1e-9;
    f[4] = h[0] + -inf;
    f[5] = 1 / 3.0;
    e[0] = g[0] * 257;
    e[1] = 1e-40;
    w[0] = d[0] + 0.1;
    w[1] = d[0] * 9007199254740993;
    w[2] = 18446744073709551615;
    w[3] = 1 / 3.0;
    w[4] = 1e308 / 100 * 10;
    w[5] = 0.1 + 0.2;
    s[0] = 16777217;
    s[1] = 0.1;
    s[2] = 1.00000017881393432617187500001;
    s[3] = 1 / 2;
    s[4] = 7 / 2 * 1.0;
    s[5] = -0.0;
}
""", {
        "a": exactly("u8", [3]), "b": exactly("i64", [1]), "h": exactly("f16", [1]), "g": exactly("bf16", [1]),
        "d": exactly("f64", [1]), "u": zeros("u8", 3), "l": zeros("i64", 4), "f": poison("f16", 6), "e": poison(
            "bf16", 2), "w": poison("f64", 6), "s": poison("f32", 6)
    }, lambda a: {
        "u": exact([2, 252, 21]), "l": exact(np.array([2**63 - 1, 2 - 2**63, 3 * 10**9, 1003 * 10**9])), "f": exact(
            quantize([2048, 0.1, 65504, -1e-9, -math.inf, 1 / 3], "f16")), "e": exact(quantize([256, 1e-40], "bf16")),
        "w": exact([1.1, 9007199254740992, 2.0**64, 1 / 3, 1e307, 0.1 + 0.2]), "s": exact(
            np.array([16777216, np.float32(0.1), 1 + 2.0**-22, 0, 3, -0.0]))
    })
# s[2]: just above the middle of 1 + 2^-23 and 1 + 2^-22; to f64 first and then to f32 is what "exactly enough for f64"
# allows,
# and gives the tie to even, which is the same number.

row(
    "lang_small_integers_are_not_promoted", """
kernel k(const u8 a[A], const i8 b[B], const u16 c[C], const i16 d[D], u8 u[4], i8 s[4], u16 v[2], i16 t[3])
    grid(1)
{
    u[0] = a[0] + a[1];
    u[1] = (a[0] + a[1]) / 2;
    u[2] = ~a[0];
    u[3] = a[0] << 1 >> 1;
    s[0] = b[0] + b[1];
    s[1] = -b[2];
    s[2] = b[0] * b[1] / 3;
    s[3] = (b[2] >> 1) & 127;
    v[0] = c[0] * c[0];
    v[1] = c[0] + a[0];
    t[0] = d[0] + d[0];
    t[1] = d[0] + b[0];
    t[2] = a[0] + d[0];
}
""", {
        "a": exactly("u8", [200, 100]), "b": exactly("i8", [100, 100, -128]), "c": exactly("u16", [65535]),
        "d": exactly("i16", [32767]), "u": zeros("u8", 4), "s": zeros("i8", 4), "v": zeros("u16", 2), "t": zeros(
            "i16", 3)
    }, lambda a: {
        "u": exact([44, 22, 55, (200 << 1 & 255) >> 1]), "s": exact([
            -56, -128, (10000 - 39 * 256) // 3 if 10000 - 39 * 256 > 0 else 0, 64
        ]), "v": exact([1, (65535 + 200) % 65536]), "t": exact([-2, 32767 + 100 - 65536, 32767 + 200 - 65536])
    })

row(
    "lang_widening_at_stores_initialisers_arguments_returns", """
struct wide { f32 a; i64 b; tile<f64, 4> c; };
f32 twice(f32 v) { return v + v; }
f64 narrow_in(f32 v) { return v; }
tile<f32, 4> spread(f16 v) { return v; }
void put_in(f64 A[N], f32 v) { A[4] = v; }
kernel k(const f16 h[H], const f8e5m2 e[E], const u8 b[B], f32 x[12], i64 y[4], f64 z[8])
    grid(1)
{
    x[0] = h[0];
    f32 v = h[1];
    x[1] = v;
    v = h[2];
    x[2] = v;
    x[3] = twice(h[3]);
    x[4 +: 4] = spread(h[1]);
    x[8] = (f32)(f16)e[0];
    f16 from8 = e[1];
    x[9] = from8;
    x[10 +: 2] = h[0 +: 2];
    i32 i = b[0];
    y[0] = i;
    y[1] = b[0] + (i64)1;
    y[2] += b[1];
    struct wide w = {h[0], b[0], h[0 +: 4]};
    w.a = h[2];
    y[3] = w.b;
    z[0 +: 4] = w.c + w.a;
    put_in(z, h[3]);
    z[5] = narrow_in(h[1]);
    z[6] = v + (f64)0.1;
    z[7] = true ? h[0] : z[0];
}
""", {
        "h": exactly("f16", [0.5, 1.5, 2.5, 3.5]), "e": Arr("f8e5m2", np.array([0x3C, 0x40], np.uint8)), "b": exactly(
            "u8", [200, 7]), "x": poison("f32", 12), "y": zeros("i64", 4), "z": poison("f64", 8)
    }, lambda a: {
        "x": exact([0.5, 1.5, 2.5, 7, 1.5, 1.5, 1.5, 1.5, 1, 2, 0.5, 1.5]), "y": exact([200, 201, 7, 200]), "z": exact(
            [3, 4, 5, 6, 3.5, 1.5, 2.5 + 0.1, 0.5])
    })

row(
    "lang_types_of_auto", """
kernel k(i32 s[12], const f16 h[H], const u8 b[B])
    grid(1)
{
    auto a = 1;
    auto f = 1.0;
    auto l = 0x1_0000_0000;
    auto t = h[0 +: 3];
    auto c = a < 2;
    const auto z = 5;
    tile<i32, z> five = 1;
    s[0] = bitcast(f, i32);
    s[1] = (i32)(l >> 30);
    a = 2147483647;
    a += 1;
    s[2] = a;
    f = 16777216;
    f += 1.0;
    s[3] = (i32)f;
    s[4] = c ? 1 : 0;
    auto d = b[0];
    d += 1;
    s[5] = (i32)d;
    s[6] = sum(t == 2);
    s[7] = sum(five);
    auto e = -2_147_483_648;
    e -= 1;
    s[8] = e;
    auto g = c ? 1 : 2.0;
    g /= 4;
    s[9] = (i32)(g * 100);
    auto third = t / 3;
    s[10] = (i32)bitcast(max(third), u16);
    tile<i32> no_axes = 7;
    s[11] = no_axes + 1;
}
""", {"s": zeros("i32", 12), "h": exactly("f16", [2, 1, 2]), "b": exactly("u8", [255])}, lambda a: {
        "s": exact(
            [0x3F800000, 4, -2**31, 16777216, 1, 0, 2, 5, 2**31 - 1, 25,
             int(np.float16(2 / 3).view(np.uint16)), 8])
    })

row(
    "lang_infinities_nan_and_signed_zero", """
const f32 ZERO = 0.0;
f32 some(f32 v) { return v * 0; }
kernel k(const f32 x[N], f32 y[9, N], bool b[6, N], f32 s[4])
    grid(1)
{
    auto v = x[0 +: 8];
    y[0, 0 +: 8] = v * 0;
    y[1, 0 +: 8] = v + 0.0;
    y[2, 0 +: 8] = v - 0.0;
    y[3, 0 +: 8] = 0.0 - v;
    y[4, 0 +: 8] = -v;
    y[5, 0 +: 8] = v - v;
    y[6, 0 +: 8] = v / v;
    y[7, 0 +: 8] = v + -0.0;
    y[8, 0 +: 8] = v * 1;
    b[0, 0 +: 8] = v == v;
    b[1, 0 +: 8] = v != v;
    b[2, 0 +: 8] = v < inf;
    b[3, 0 +: 8] = !(v >= 0);
    b[4, 0 +: 8] = v <= nan;
    b[5, 0 +: 8] = v != nan;
    s[0] = 1 / -some(1);
    s[1] = -ZERO;
    s[2] = inf - inf;
    s[3] = 0 * -1.0;
}
""", {
        "x": exactly("f32", [1.5, -2, 0.0, -0.0, math.inf, -math.inf, math.nan, 1e-45]), "y": poison("f32", 9, 8),
        "b": zeros("bool", 6, 8), "s": poison("f32", 4)
    }, lambda a: special(a["x"]))


def special(x):
    z, n = np.float32(0), np.float32(-0.0)
    return {
        "y": exact(np.stack([x * z, x + z, x - z, z - x, -x, x - x, x / x, x + n,
                             x])), "s": exact(np.array([-math.inf, -0.0, math.nan, -0.0])),
        "b": exact(np.stack([x == x, x != x, x < np.inf, ~(x >= 0), x <= np.nan, x != np.nan]))
    }


# ---- operators ------------------------------------------------------------------------------------------------------
for t in ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"):
    width = int(t[1:])
    n = exactly(t, [c for c in (0, 1, 3, width - 1, width, width + 1, 2 * width - 1, 2 * width, 100, 127)])
    row(
        f"lang_shift_amounts_modulo_the_width_{t}", f"""
kernel k(const {t} x[N], const {t} n[N], const u8 m[N], {t} l[N], {t} r[N], {t} c[4], {t} w[N])
    grid(1)
{{
    l[0 +: 10] = x[0 +: 10] << n[0 +: 10];
    r[0 +: 10] = x[0 +: 10] >> n[0 +: 10];
    c[0] = x[0] << {width + 2};
    c[1] = x[1] >> {width};
    c[2] = x[2] << -1;
    c[3] = x[3] >> -{width - 1};
    w[0 +: 10] = x[0 +: 10] << m[0 +: 10];
}}
""", {
            "x": exactly(t, [1, 3, 5, 77, 100, 127, 2, int_range(t)[0],
                             int_range(t)[1], 64]), "n": n, "m": exactly("u8", n.store), "l": zeros(t, 10), "r": zeros(
                                 t, 10), "c": zeros(t, 4), "w": zeros(t, 10)
        }, lambda a, t=t, b=width: shifts(a, t, b))


def wrap(v, t):
    lo, hi = int_range(t)
    return (int(v) - lo) % (hi - lo + 1) + lo


def shifts(a, t, b):
    x, n = [int(v) for v in a["x"]], [int(v) % b for v in a["n"]]
    left = [wrap(v << s, t) for v, s in zip(x, n)]
    return {
        "l": exact(exactly(t, left).store), "w": exact(exactly(t, left).store),
        "r": exact(exactly(t, [v >> s for v, s in zip(x, n)]).store),
        "c": exact(exactly(t, [wrap(x[0] << 2, t), x[1], wrap(x[2] << b - 1, t), x[3] >> 1]).store)
    }


one("lang_precedence_and_grouping_of_c", """
    int a = three + 4, b = three + 2, c = three;
    y[0] = a + b * c - a / b % c;
    y[1] = a << 1 + c >> 2;
    y[2] = (a & b ^ c | 8) + 0;
    y[3] = a - b - c;
    y[4] = a / b * c;
    y[5] = -a % c + - -b;
    y[6] = a > b == true && b > a || c == 3 ? 1 : 2;
    y[7] = ~a & 0xFF;
    y[8] = a == 7 ? b == 5 ? 10 : 20 : 30;
    y[9] = (a < b | c > 2 ^ true & false) ? 1 : 0;
    y[10] = 100 / 7 % 4 - -3 * 2;""",
    [7 + 15 - 7 // 5 % 3, 7 << 4 >> 2, (7 & 5 ^ 3 | 8), -1, 3, -1 + 5, 1, ~7 & 255, 10, 1, 14 % 4 + 6])

row("lang_logic_on_tiles", """
kernel k(const i32 x[N], bool b[6, N], i32 s[N])
    grid(1)
{
    auto v = x[0 +: 9];
    auto p = v > 2;
    auto q = v % 2 == 0;
    b[0, 0 +: 9] = p && q;
    b[1, 0 +: 9] = p || q;
    b[2, 0 +: 9] = !p;
    b[3, 0 +: 9] = p && true;
    b[4, 0 +: 9] = p ^ q;
    b[5, 0 +: 9] = x[1] == 1 && p;
    s[0 +: 9] = p ? v : q ? -v : 100;
}
""", {"x": iota("i32", 9), "b": zeros("bool", 6, 9), "s": zeros("i32", 9)}, lambda a: logic(a["x"]))


def logic(v):
    p, q = v > 2, v % 2 == 0
    return {"b": exact(np.stack([p & q, p | q, ~p, p, p ^ q, p])), "s": exact(np.where(p, v, np.where(q, -v, 100)))}


FUSED = """
kernel k(const f32 x[N], const f32 y[N], const f32 z[N], f32 s[N], f32 d[N], const f64 u[N], f64 t[N])
    grid(1)
{
    s[0 +: 512] = x[0 +: 512] * y[0 +: 512] + z[0 +: 512];
    auto p = x[0 +: 512] * y[0 +: 512];
    d[0 +: 512] = p - z[0 +: 512] * y[0 +: 512];
    t[0 +: 512] = u[0 +: 512] * u[0 +: 512] + (f64)z[0 +: 512];
}
"""
fused_args = {
    "x": normal("f32", 1, 512), "y": normal("f32", 2, 512), "z": normal("f32", 3, 512), "s": poison("f32", 512),
    "d": poison("f32", 512), "u": normal("f64", 4, 512), "t": poison("f64", 512)
}
row(
    "lang_fp_strict_rounds_each_operation", FUSED, fused_args, lambda a: {
        "s": exact(a["x"] * a["y"] + a["z"]), "d": exact(a["x"] * a["y"] - a["z"] * a["y"]), "t": exact(a["u"] * a[
            "u"] + a["z"].astype(np.float64))
    }, options=("--fp=strict", ))
row(
    "lang_fusing_is_the_same_on_every_device", FUSED, fused_args, lambda a: {
        n: within(v,
                  np.abs(v) * 2.0**-22 + 2.0**-22 * 8)
        for n, v in {
            "s": a["x"].astype(float) * a["y"] + a["z"], "d": a["x"].astype(float) * a["y"] - a["z"].astype(float) * a[
                "y"], "t": a["u"] * a["u"] + a["z"]
        }.items()
    })
STRICT = {
    "exp": ("exp(v) + exp2(v)", lambda v: np.exp(v) + np.exp2(v)),
    "sin": ("sin(v) * cos(v)", lambda v: np.sin(v) * np.cos(v)),
    "log": ("log(abs(v)) + sqrt(abs(v))", lambda v: np.log(abs(v)) + np.sqrt(abs(v))),
    "tanh": ("tanh(v) / sigmoid(v)", lambda v: np.tanh(v) *
             (1 + np.exp(-v))), "pow": ("rsqrt(abs(v)) + pow(abs(v), v)", lambda v: 1 / np.sqrt(abs(v)) + abs(v)**v),
    "div": ("v / (x[1] + v)", lambda v: v / (v[1] + v))
}
for f, (text, numpy_says) in STRICT.items():
    row(
        f"lang_fp_strict_functions_are_portable_{f}",
        f"kernel k(const f32 x[N], f32 y[N])\n    grid(1)\n{{\n    auto v = x[0 +: 300];\n    y[0 +: 300] = {text};\n"
        f"}}\n",
        {"x": normal("f32", 5, 300), "y": poison("f32", 300)}, lambda a, says=numpy_says:
        (lambda w: {"y": within(w,
                                np.abs(w) * 2.0**-19 + 2.0**-19)})(says(a["x"].astype(float))),
        options=("--fp=strict", ))

# ---- what may be less exact, and packed elements --------------------------------------------------------------------
FAST = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10,
    "log1p": np.log1p, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "cbrt": np.cbrt, "sin": np.sin,
    "cos": np.cos, "tan": np.tan, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "erf": lambda x: np.vectorize(math.erf)(x)
}
for f in [*FAST, "pow"]:
    row(
        f"lang_fast_forms_{f}",
        f"kernel k(const f32 x[N], f32 y[N])\n    grid(1)\n{{\n"
        f"    y[0 +: 200] = fast.{f}(x[0 +: 200]{', 1.5' if f == 'pow' else ''});\n}}\n",
        {"x": exactly("f32",
                      np.linspace(0.05, 1.5, 200).tolist()), "y": poison("f32", 200)}, lambda a, f=f:
        (lambda w: {"y": within(w,
                                np.abs(w) * 2.0**-10 + 2.0**-14)})
        (FAST[f](a["x"].astype(float)) if f in FAST else a["x"].astype(float)**1.5), same_bits=False)

row(
    "lang_packed_tiles_are_values", """
kernel k(const i4 w[R, C], i32 y[6, 8], int n)
    grid(1)
{
    auto t = w[0, 0 +: 8];
    auto u = t;
    if (n > 0) u = w[1, 0 +: 8];
    y[0, 0 +: 8] = (i32)u;
    y[1, 0 +: 8] = (i32)(n > 0 ? t : u);
    y[2, 0 +: 8] = (i32)(iota(8) % 2 == 0 ? t : u);
    y[3, 0 +: 8] = reshape((i32)trans(reshape(t, 2, 4)), 8);
    y[4, 0 +: 8] = reshape((i32)broadcast(row(w[1, 2 +: 4]), 2, 4), 8);
    y[5, 0 +: 8] = (i32)w[1, 1 +: 8];
}
""", {
        "w": Arr("i4", np.array([[0x21, 0x43, 0x65, 0x87], [0xFE, 0xDC, 0xBA, 0x09]], np.uint8)), "y": poison(
            "i32", 6, 8), "n": 1
    }, lambda a: (lambda t, u: {
        "y": exact(
            np.stack([
                u, t,
                np.where(np.arange(8) % 2 == 0, t, u),
                t.reshape(2, 4).T.ravel(),
                np.tile(u[2:6], 2),
                np.append(u[1:], 0)
            ]))
    })(*a["w"].astype(int)))

row(
    "lang_choices_and_functions_of_literals_are_literals", """
const f64 ROOT = sqrt(2.0) * 3;
const u8 MOST = clamp(300, 0, 255);
kernel k(const u8 c[N], const f16 h[N], u8 b[5, N], f32 s[8], f16 g[N], f64 w[4], int n)
    grid(1)
{
    auto v = c[0 +: 8];
    b[0, 0 +: 8] = n > 0 ? 1 : n < 0 ? 2 : 3;
    b[1, 0 +: 8] = v + (v > 3 ? 1 : 0);
    b[2, 0 +: 8] = v + ((n > 0 ? 1 : 0) * 2 + 200);
    b[3, 0 +: 8] = 255 - (v > 3 ? 1 : n > 0 ? 2 : 3) - v;
    b[4, 0 +: 8] = MOST - max(3, 7) - cdiv(7, 2) - abs(-1);
    g[0 +: 8] = h[0 +: 8] * (v % 2 == 0 ? 0.5 : -(n > 0 ? 1 : 2));
    auto i = n > 0 ? 1 : 2;
    auto f = n > 0 ? 1 : 2.5;
    s[0] = (f32)(i / 2) + f / 2;
    s[1] = (n > 0 ? 7 : 1) % 4;
    s[2] = n > 0 ? inf : -1;
    s[3] = -(n > 0 ? 3 : 4);
    s[4] = 1.5 * (n < 0 ? 1 : 3);
    s[5] = (n > 0 ? 1 : 2) == 1 ? 5 : 6;
    s[6] = floor(2.5) + round(-2.5) + rint(2.5);
    s[7] = (f32)((n > 0 ? 1 : 2) << 3);
    w[0] = ROOT;
    w[1] = exp(1.0);
    w[2] = pow(2.0, 0.5) - sqrt(2.0);
    w[3] = 0.1 + (n > 0 ? 0.2 : 1);
}
""", {
        "c": exactly("u8", [0, 1, 2, 3, 4, 5, 6, 50]), "h": exactly("f16", [1, 2, 3, 4, 5, 6, 7, 8]), "b": zeros(
            "u8", 5, 8), "s": poison("f32", 8), "g": poison("f16", 8), "w": poison("f64", 4), "n": 1
    }, lambda a: (lambda c: {
        "b": exact(np.stack([c * 0 + 1, c + (c > 3), c + 202, 255 - np.where(c > 3, 1, 2) - c, c * 0 + 243])
                   ), "s": exact([0.5, 3, math.inf, -3, 4.5, 5, 2 - 3 + 2, 8]), "g": exact(a["h"] * np.where(
                       c % 2 == 0, 0.5, -1)), "w": within(np.array([math.sqrt(2) * 3, math.e, 0, 0.1 + 0.2]), 1e-15)
    })(a["c"].astype(int)))

row(
    "lang_reductions_of_nothing_and_of_scalars", """
kernel k(const f32 x[N], const i16 y[N], const u8 z[N], f32 f[12], i32 i[16], bool b[4], const bool m[N])
    grid(1)
{
    auto v = x[0 +: 5];
    auto w = y[0 +: 5];
    auto off = m[0 +: 5];
    f[0] = sum(v, where = off);
    f[1] = prod(v, where = off);
    f[2] = max(v, where = off);
    f[3] = min(v, where = off);
    f[4] = max((tile<f32, 5>)nan);
    f[5] = sum(2.5) + max(x[0]) + prod(x[1]);
    f[6] = sum(max(reshape(x[0 +: 6], 2, 3), axis = 1, where = reshape(m[0 +: 6], 2, 3)));
    i[0] = sum(w, where = off);
    i[1] = prod(w, where = off);
    i[2] = (i32)max(w, where = off);
    i[3] = (i32)min(w, where = off);
    i[4] = argmax(v, where = off) + argmin(w, where = off) + argmax((tile<f32, 5>)nan);
    i[5] = sum(v > 1) + sum(off);
    i[6] = sum(w) + (i32)sum(z[0 +: 5]);
    i[7] = (i32)max(z[0 +: 5], where = off) + (i32)min(z[0 +: 5], where = off);
}
""", {
        "x": exactly("f32", [3, 0.5, 2, 7, -1, 9]), "y": exactly("i16", [30000, 30000, -5, 1, 2, 0]), "z": exactly(
            "u8", [200, 200, 200, 1, 2, 0]), "f": zeros("f32", 12), "i": zeros("i32", 16), "b": zeros("bool", 4),
        "m": zeros("bool", 6)
    }, lambda a: {
        "f": exact([0, 1, -math.inf, math.inf, math.nan, 2.5 + 3 + 0.5, -math.inf, 0, 0, 0, 0, 0]), "i": exact(
            [0, 1, -32768, 32767, 0, 3, 59998 + 603, 255] + [0] * 8)
    })

# A sum of two f16 numbers, in f32 and then rounded, is the f16 sum; a chain of two is not: each operation rounds.
for t in ("f16", "bf16"):
    row(
        f"lang_arithmetic_rounds_each_time_{t}", f"""
kernel k(const {t} x[N], const {t} y[N], const {t} z[N], {t} o[5, N])
    grid(1)
{{
    auto a = x[0 +: 512];
    auto b = y[0 +: 512];
    auto c = z[0 +: 512];
    o[0, 0 +: 512] = a + b - a;
    o[1, 0 +: 512] = a / b * b;
    o[2, 0 +: 512] = a * b * c;
    o[3, 0 +: 512] = (a - b) / c - a;
    o[4, 0 +: 512] = a * b + c;
}}
""", {n: normal(t, i, 512)
      for i, n in enumerate("xyz")} | {"o": poison(t, 5, 512)}, lambda a, t=t: rounded_each(a, t),
        options=("--fp=strict", ))


def rounded_each(a, t):
    def r(v):
        return quantize(v, t)
    x, y, z = (a[n].astype(np.float64) for n in "xyz")
    f = np.float32
    return {
        "o": exact(
            np.stack([
                r(r(x + y) - x),
                r(r(f(x) / f(y)) * y),
                r(r(x * y) * z),
                r(r(f(r(x - y)) / f(z)) - x),
                r(r(x * y) + z)
            ]))
    }
