"""Structs as options: defaults of fields, values by name, constants of struct type, options of kernels."""
import numpy as np

from rows import row
from rows_control import one
from values import exact, poison, small

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
