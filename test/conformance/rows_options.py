"""Structs as options: defaults of fields, values by name, constants of struct type, options of kernels."""
import numpy as np

from rows import row
from rows_control import one
from values import exact, exactly, iota, poison, small, zeros

one("options_fields_by_position_name_and_default", """
    pair none;
    pair empty = {};
    pair first = {5};
    pair named = {right = 7};
    pair both = {1, right = three};
    auto made = (struct pair){right = 9};
    nest deep = {inner = {left = 8}};
    nest given = {4, {6, right = 1}};
    y[0] = none.left * 10 + none.right;
    y[1] = empty.left * 10 + empty.right;
    y[2] = first.left * 10 + first.right;
    y[3] = named.left * 10 + named.right;
    y[4] = both.left * 10 + both.right;
    y[5] = made.left * 10 + made.right;
    y[6] = deep.n * 100 + deep.inner.left * 10 + deep.inner.right;
    y[7] = given.n * 100 + given.inner.left * 10 + given.inner.right;
    deep.inner = (struct pair){2};
    y[8] = deep.inner.left * 10 + deep.inner.right;""",
    [23, 23, 53, 27, 13, 29, 983, 461, 23],
    """const int THREE = 3;
struct pair { int left = 2, right = THREE; };
struct nest { int n = THREE * 3; pair inner; };
""")

OPTIONS = """
struct inner { int n = 2; f32 w; };
struct options { bool relu = false; f32 scale = 1, bias = 0.5; int B = 16; struct inner inner = {w = 3}; };
const options strong = {scale = 4, inner = {n = 3}};
auto apply(auto x, const options o)
{
    auto v = x * o.scale + o.bias;
    static if (o.relu) v = max(v, 0);
    return v * o.inner.n + o.inner.w;
}
auto plain(auto x, const options o = {bias = 0}) { return x * o.scale + o.bias; }
kernel k(const f32 x[N, (o.B)], f32 y[N, (o.B)], const options o = {true, B = THREE * 3}, const int M = o.B + 1)
    grid(cdiv(N, o.B))
    require(N >= o.inner.n)
    tune(o.inner.n in {2, 3}, o.scale in {1, 2}; where o.inner.n < 4)
{
    int i = pid(0) * o.B;
    tile<f32, o.B, (o.B)> v = apply(x[i +: o.B, 0 +: o.B], o);
    y[i +: o.B, 0 +: o.B] = v + plain(apply(x[i +: o.B, 0 +: o.B], strong)) + M / o.scale;
}
const int THREE = 3;
"""


def applied(x, relu=True, scale=1, bias=0.5, n=2, w=3, B=9):
    v = x * scale + bias
    v = (np.maximum(v, 0) if relu else v) * n + w
    return v + (x * 4 + 0.5) * 3 + (B + 1) / scale


for name, consts, what in (
    ("by_default", {}, {}),
    ("given", {"o.relu": "false", "o.scale": 0.5, "o.bias": -1, "o.inner.n": 3, "o.inner.w": 1e1},
     dict(relu=False, scale=0.5, bias=-1, n=3, w=10)),
    ("given_by_kernel", {"k.o.B": 4, "o.B": 3, "o.relu": 1}, dict(B=4)),
):
    B = what.get("B", 9)
    row(f"options_of_a_kernel_{name}", OPTIONS, {"x": small("f32", 3, 21, B), "y": poison("f32", 21, B)},
        lambda a, what=what: {"y": exact(applied(a["x"], **what))}, consts=consts)

row(
    "options_of_every_scalar_type", """
struct tiles { i64 first = -7; u8 B = 8; f64 factor = 0.25; bf16 half = 0.5; bool twice; };
kernel k(const f32 x[N], f32 y[N], const tiles a, const tiles b = {B = a.B, factor = 2, twice = true})
    grid(cdiv(N, a.B))
{
    auto v = x[pid(0) * a.B +: a.B] * a.half + b.first;
    static if (a.twice) v *= 2;
    static if (b.twice) v += cast(a.factor * b.factor, f32);
    y[pid(0) * a.B +: a.B] = v;
}
""", {"x": small("f32", 3, 21), "y": poison("f32", 21)}, lambda a: {"y": exact((a["x"] / 2 - 7) * 2 + 0.5)},
    consts={"a.twice": "true"})

PASSED = """
struct range { int lo; int hi = 100; };
struct work {
    f32 scale; range r; bool negative = false; i64 big = 7; bf16 half = 1.5;
    u8 small = 250; f64 d = 0.5; f16 h = 2; i8 last = -3;
};
work twice(work o) { o.scale *= 2; o.r.lo += 1; return o; }
kernel k(const f32 x[N], work s, f32 y[N], range other, int n)
    grid(cdiv(N, 16))
    require(s.r.lo <= s.r.hi, N > other.lo)
    key(s.r.hi, n)
{
    work t = twice(s), u = s;
    u = t;
    range both = other;
    int i = pid(0) * 16;
    auto at = i + iota(16);
    auto rest = (f32)s.big + (f32)s.half + (f32)s.small + (f32)s.d + (f32)s.h + (f32)s.last;
    auto inside = at >= u.r.lo && at < u.r.hi;
    y[i +: 16] = (inside ? x[i +: 16] * t.scale * (s.negative ? -1.0 : 1.0) : rest) + (f32)(n + both.lo * 3 + both.hi);
}
"""
FIRST = {"s.scale": 1.5, "s.r.lo": 2, "s.r.hi": 15, "s.negative": 1, "s.big": -(1 << 20), "s.half": 0.5, "s.small": 3,
         "s.d": 2.25, "s.h": -4, "s.last": 100}
THEN = {"other.lo": -9, "other.hi": 1 << 10, "n": 5}


def passed(x):
    at = np.arange(x.size)
    rest = -(1 << 20) + 0.5 + 3 + 2.25 - 4 + 100
    inside = (at >= 3) & (at < 15)
    return np.where(inside, -x * 3, rest).astype(np.float32) + np.float32(5 - 27 + 1024)


row("structs_passed_at_run_time", PASSED, {"x": small("f32", 3, 21), **FIRST, "y": poison("f32", 21), **THEN},
    lambda a: {"y": exact(passed(a["x"]))})

row("structs_of_views_pointers_and_functions", """
struct act { auto f; f32 a = 2; };
struct field { auto v; auto p; int n; };
struct step { auto f = fn (a) => a + 1; int n = 0; };
struct outer { act inner; auto more; };
auto run(auto x, const act o) { return o.f(x) * o.a; }
auto run_any(auto x, auto o) { return o.f(x) * o.a; }
auto run_act(auto x, act o) { return o.f(x) - o.a; }
auto twice(auto v) { return v * 2; }
auto apply(auto x, const fn g = fn (a) => a * 5) { return g(x); }
auto row_of(auto v, int i) { field s = {v, raw(v) + i, i}; return s; }
auto scaled(auto o, f32 by) { act t = {o.f, by}; return t; }
kernel k(const f32 x[N], f32 y[N], const i32 *p) grid(1) {
    const act o = {fn (v) => v + 1};
    act q = {twice, 3};
    act unary = {a = 0.5, f = abs};
    y[0] = run(x[0], o) + o.f(x[2]);
    y[1] = run_any(x[1], q) + run_act(x[0], q);
    q.a = x[1];
    for (int i = 0; i < 3; i++) {
        act r = q;
        r.a += (f32)i;
        q = r;
        y[2] += q.f(q.a);
    }
    if (N > 3)
        q = scaled(q, 4);
    y[3] = run_any(x[3], q) + run_any(-x[3], unary);
    field s = row_of(y, 4);
    s.v[5] = s.p[0] + x[5];
    step d;
    step e = {n = 3};
    y[6] = d.f(x[6]) + (f32)e.f(e.n) + apply(x[1]);
    f32 seen = x[7];
    auto near(auto v) { return v + seen; }
    outer deep = {{near}, p};
    seen = 40;
    y[7] = deep.inner.f(x[1]) * deep.inner.a + (f32)deep.more[0];
    outer other = deep;
    other.inner.a = 1;
    deep = other;
    y[8] = deep.inner.f(1.0) + deep.inner.a;
}
""", {"x": iota("f32", 9), "y": zeros("f32", 9), "p": exactly("i32", [6])},
    lambda a: {"y": exact(np.array([5, 3, 14, 25.5, 0, 5, 16, 88, 42], np.float32))})
