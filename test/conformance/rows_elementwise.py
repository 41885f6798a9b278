"""Arithmetic, comparison, choice, integer and math operations, element by element, on the values that hurt.

Every pair of edge values of a type meets once, so each operation sees 0, -0, subnormals, the extremes, infinities, NaN.
"""
import itertools
import math
from fractions import Fraction

import numpy as np

from rows import row
from values import (FLOATS, INTS, STORE, Arr, bits_of, edges, either_zero, exact, exactly, int_range, ints, normal,
                    poison, quantize, random_bits, rng, round_exact, rounded, spacing, store, ulps, within)

def pairs(t, seed, extra=200):
    """x and y: all pairs of edge values, then random ones; an odd number, so that the last tile is not full."""
    e = edges(t)
    x, y = zip(*itertools.product(e, e))
    x, y = exactly(t, x).store, exactly(t, y).store
    more = (lambda s: random_bits(t, s, extra).store) if t in INTS else (lambda s: normal(t, s, extra).store)
    x, y = np.concatenate([x, more(seed)]), np.concatenate([y, more(seed + 1)])
    if len(x) % 2 == 0:
        x, y = x[1:], y[1:]
    return Arr(t, x), Arr(t, y)


def kernel(t, outputs, inputs="xy"):
    """outputs: name -> (type, expression in the input tiles)."""
    params = [f"const {t} {v}_[N]" for v in inputs] + [f"{ty} {n}[N]" for n, (ty, _) in outputs.items()]
    body = [f"    auto {v} = {v}_[i +: 64];"
            for v in inputs] + [f"    {n}[i +: 64] = {e};" for n, (_, e) in outputs.items()]
    return (f"kernel k({', '.join(params)})\n    grid(cdiv(N, 64))\n{{\n    int i = pid(0) * 64;\n" + "\n".join(body) +
            "\n}\n")


def elementwise(name, t, inputs, table, **more):
    """table: name -> (type, expression, function of wide inputs giving a Want)."""
    outputs = {n: (ty, e) for n, (ty, e, _) in table.items()}
    args = {f"{v}_": a for v, a in inputs.items()}
    size = len(next(iter(inputs.values())).store)
    args.update({n: poison(ty, size) for n, (ty, _) in outputs.items()})
    row(name, kernel(t, outputs, list(inputs)), args,
        lambda a: {n: f(*(a[f"{v}_"] for v in inputs)) for n, (_, _, f) in table.items()}, **more)


def f64(x):
    return x.astype(np.float64)


# ---- floats ---------------------------------------------------------------------------------------------------------
def once(t, op):
    """op in f64 is exact or innocuous for types up to f32; f64 itself is NumPy's own."""
    return lambda *v: rounded(op(*map(f64, v)), t)


def native(op):
    """f32 and f64: NumPy's operation of that very type, correctly rounded."""
    return lambda *v: exact(op(*v))


def basic(t):
    return native if t in ("f32", "f64") else lambda op: once(t, op)


def division(t):
    return {"f64": lambda x, y: exact(x / y), "f32": lambda x, y: ulps(f64(x) / f64(y), t, 2)}.get(
        t, lambda x, y: ulps(f64(x) / f64(y), t, 0.51))


def quotients(t):
    """Every value of `edges` and random ones by every other, with divisors that a whole row or column shares."""
    v = store(
        np.concatenate([np.array(edges(t)),
                        np.random.default_rng(3).normal(0, 9, 30) * 2.0**np.arange(-30, 30, 2)]), t)
    n = len(v)
    row(
        f"divide_by_one_{t}", f"""
kernel k(const {t} x[N], const {t} s[N], {t} whole[N, N], {t} rows[N, N], {t} columns[N, N])
    grid(N)
{{
    int p = pid(0);
    auto v = x[0 +: {n}];
    whole[p, 0 +: {n}] = v / s[p];
    if (p == 0) {{
        auto d = s[0 +: {n}];
        rows[0 +: {n}, 0 +: {n}] = expand(v, 0) / expand(d, 1);
        columns[0 +: {n}, 0 +: {n}] = expand(v, 1) / expand(d, 0);
    }}
}}
""", {"x": Arr(t, v), "s": Arr(t, v), "whole": poison(t, n, n), "rows": poison(t, n, n), "columns": poison(t, n, n)},
        lambda a: {
            "whole": division(t)(a["x"][None, :], a["s"][:, None]), "rows": division(t)
            (a["x"][None, :], a["s"][:, None]), "columns": division(t)(a["x"][:, None], a["s"][None, :])
        })


for t in FLOATS:
    quotients(t)

for k, t in enumerate(FLOATS):
    x, y = pairs(t, 10 * k)
    b = basic(t)
    elementwise(f"float_arithmetic_{t}", t, {"x": x, "y": y}, {
        "add": (t, "x + y", b(np.add)),
        "minus": (t, "x - y", b(np.subtract)),
        "times": (t, "x * y", b(np.multiply)),
        "over": (t, "x / y", division(t)),
        "negative": (t, "-x", lambda x, y: exact(-x)),
        "literal": (t, "1 + 2 * (x - 0.5)", lambda x, y, t=t: doubled(x, t)),
    })
    elementwise(f"float_choice_{t}", t, {"x": x, "y": y}, {
        "smaller": (t, "min(x, y)", lambda x, y: either_zero(np.fmin(x, y), x, y)),
        "larger": (t, "max(x, y)", lambda x, y: either_zero(np.fmax(x, y), x, y)),
        "smaller_nan": (t, "min_nan(x, y)", lambda x, y: either_zero(np.minimum(x, y), x, y)),
        "larger_nan": (t, "max_nan(x, y)", lambda x, y: either_zero(np.maximum(x, y), x, y)),
        "clamped": (t, "clamp(x, -1, 2.5)", lambda x, y: exact(np.fmin(np.fmax(x, -1), 2.5))),
        "absolute": (t, "abs(x)", lambda x, y: exact(np.abs(x))),
        "chosen": (t, "x > y ? x : -y", lambda x, y: exact(np.where(x > y, x, -y))),
    })
    elementwise(f"float_compare_{t}", t, {"x": x, "y": y}, {
        "lt": ("bool", "x < y", lambda x, y: exact(x < y)),
        "le": ("bool", "x <= y", lambda x, y: exact(x <= y)),
        "gt": ("bool", "x > y", lambda x, y: exact(x > y)),
        "ge": ("bool", "x >= y", lambda x, y: exact(x >= y)),
        "eq": ("bool", "x == y", lambda x, y: exact(x == y)),
        "ne": ("bool", "x != y", lambda x, y: exact(x != y)),
        "nan_of": ("bool", "isnan(x)", lambda x, y: exact(np.isnan(x))),
        "inf_of": ("bool", "isinf(x)", lambda x, y: exact(np.isinf(x))),
        "both": ("bool", "x < 1 && !(y < 1) || x == y", lambda x, y: exact((x < 1) & ~(y < 1) | (x == y))),
    })


# ---- extremes of operands of which something is known ---------------------------------------------------------------
def specials(t):
    """Bits of numbers that a comparison may take for each other: zeros, infinities, NaNs, signaling ones among them."""
    n, p = bits_of(t), {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}[t]
    top = ((1 << (n - 1 - p)) - 1) << p
    one = (((1 << (n - 2 - p)) - 1) << p)
    magnitudes = [0, 1, one, one + 1, top, top | 1 << (p - 1), top | 1 << (p - 2)]
    return [sign << (n - 1) | m for m in magnitudes for sign in (0, 1)]


def extreme(t, larger, x, y):
    """Of bits: NaN loses, -0 < +0; any NaN is -1."""
    n, p = bits_of(t), {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}[t]
    top, sign = ((1 << (n - 1 - p)) - 1) << p, 1 << (n - 1)
    key = lambda b: -1 - (b ^ sign) if b & sign else b
    nans = [b == -1 or b & ~sign > top for b in (x, y)]
    if any(nans):
        return -1 if all(nans) else y if nans[0] else x
    return (max if larger else min)(x, y, key=key)


def known_extremes(t):
    n, p = bits_of(t), {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}[t]
    u, e, pairs = f"u{n}", specials(t), list(itertools.product(specials(t), specials(t)))
    pairs = [*pairs, *pairs, pairs[0]]
    sign, top = 1 << (n - 1), ((1 << (n - 1 - p)) - 1) << p
    one = ((1 << (n - 2 - p)) - 1) << p
    most, least = (lambda x, y: extreme(t, True, x, y)), (lambda x, y: extreme(t, False, x, y))
    size = lambda x: x & ~sign
    table = {
        "larger": ("max(x, y)", most), "smaller": ("min(x, y)", least),
        "above_zero": ("max(x, zero)", lambda x, y: most(x, 0)),
        "above_minus_zero": ("max(x, -zero)", lambda x, y: most(x, sign)),
        "below_zero": ("min(x, zero)", lambda x, y: least(x, 0)),
        "below_minus_zero": ("min(x, -zero)", lambda x, y: least(x, sign)),
        "between": ("clamp(x, zero, one)", lambda x, y: least(most(x, 0), one)),
        "of_both": ("max(max(x, -inf), y)", lambda x, y: most(most(x, top | sign), y)),
        "least_of_both": ("min(y, min(x, inf))", lambda x, y: least(y, least(x, top))),
        "of_sizes": ("max(abs(x), y)", lambda x, y: most(size(x), y)),
        "least_of_sizes": ("min(abs(x), -abs(y))", lambda x, y: least(size(x), size(y) | sign)),
        "chosen": ("max(y > one ? x : one, y)", lambda x, y: most(x if most(y, one) != one else one, y)),
    }
    outputs = "".join(f", {u} {name}[N]" for name in table)
    stores = "".join(f"    {name}[i +: 64] = bits({text});\n" for name, (text, _) in table.items())
    source = f"""
auto bits(auto v) {{ return isnan(v) ? ({u})0 - 1 : bitcast(v, {u}); }}
kernel k(const {t} x_[N], const {t} y_[N]{outputs}, {u} carried[N])
    grid(cdiv(N, 64))
{{
    int i = pid(0) * 64;
    auto x = x_[i +: 64];
    auto y = y_[i +: 64];
    const {t} zero = 0.0;
    const {t} one = 1.0;
{stores}    tile<{t}, 64> v = -inf;
    for (int k : range(3)) v = max(v, k == 1 ? x : y);
    carried[i +: 64] = bits(v);
}}
"""
    table["carried"] = (None, lambda x, y: most(most(top | sign, y), x))
    xs, ys = (np.array(v, STORE[u]).view(STORE[t]) for v in zip(*pairs))
    mask = (1 << n) - 1
    want = {
        name: exact(np.array([f(x, y) & mask for x, y in pairs], STORE[u]))
        for name, (_, f) in table.items()
    }
    row(f"float_extremes_{t}", source, {"x_": Arr(t, xs), "y_": Arr(t, ys),
                                        **{name: poison(u, len(pairs)) for name in table}}, lambda a: want)


for t in FLOATS:
    known_extremes(t)


def doubled(x, t):
    """1 + 2 * (x - 0.5), each step rounded in t; doubling is exact, so an fma changes nothing, but at overflow."""
    d = quantize(f64(x) - 0.5, t) if t != "f64" else x - 0.5
    s = 1 + 2 * d  # f64: exact enough for narrower types
    return ulps(s, t, 0.5001) if t != "f64" else exact(s)



def round_away(x):
    r = np.array([
        math.copysign(math.floor(Fraction(abs(v)) + Fraction(1, 2)), v) if math.isfinite(v) else v
        for v in f64(x).tolist()
    ])
    return r.reshape(x.shape)


for k, t in enumerate(FLOATS):
    e = exactly(t, edges(t) + [v / 2 for v in range(-9, 10)]).store
    x = Arr(
        t,
        np.concatenate([
            e, (normal("f32", 70 + k, 300).store * 50).astype(np.float32).astype(e.dtype)
            if t not in ("bf16", ) else store(normal("f32", 70, 300).store * 50, "bf16")
        ]))
    elementwise(f"float_rounding_{t}", t, {"x": x}, {
        "down": (t, "floor(x)", lambda x: exact(np.floor(x))),
        "up": (t, "ceil(x)", lambda x: exact(np.ceil(x))),
        "cut": (t, "trunc(x)", lambda x: exact(np.trunc(x))),
        "even": (t, "rint(x)", lambda x: exact(np.rint(x))),
        "away": (t, "round(x)", lambda x: exact(round_away(x))),
        "which": (t, "sign(x)", lambda x: either_zero(np.sign(x), x)),
    })


def exact_fma(t):
    def f(x, y, z):
        out = []
        for a, b, c in zip(f64(x).tolist(), f64(y).tolist(), f64(z).tolist()):
            plain = a * b + c  # right where the exact result is zero or not finite
            true = Fraction(a) * Fraction(b) + Fraction(c) if all(map(math.isfinite, (a, b, c))) else 0
            out.append(round_exact(true, t) if true else plain)
        return exact(np.array(out))
    return f


for t in ("f32", "f64"):
    e = [v for v in edges(t) if v == v and abs(v) < 1e18][::3]
    x, y, z = (exactly(t, v) for v in zip(*itertools.product(e, e[::4] + [1 / 3], e[::5] + [-1e-8])))
    elementwise(f"float_fma_{t}", t, {"x": x, "y": y, "z": z}, {"one": (t, "fma(x, y, z)", exact_fma(t))})
for t in FLOATS:
    x, y = pairs(t, 5, 300)
    elementwise(f"float_fmod_{t}", t, {"x": x, "y": y}, {"rest": (t, "fmod(x, y)", lambda x, y: exact(np.fmod(x, y)))})

# ---- math functions in f32 ------------------------------------------------------------------------------------------
vec = np.vectorize
MATH = {  # name: (true value in f64, ulps)
    "exp": (np.exp, 2), "exp2": (np.exp2, 2), "expm1": (np.expm1, 2), "log": (np.log, 2), "log2": (np.log2, 2),
    "log10": (np.log10, 2), "log1p": (np.log1p, 2), "sqrt": (np.sqrt, 2), "rsqrt": (lambda x: 1 / np.sqrt(x), 2),
    "cbrt": (np.cbrt, 2), "sin": (np.sin, 2), "cos": (np.cos, 2), "tan": (np.tan, 4), "asin": (np.arcsin, 4),
    "acos": (np.arccos, 4), "atan": (np.arctan, 4), "sinh": (np.sinh, 4), "cosh": (np.cosh, 4), "tanh": (np.tanh, 4),
    "erf": (vec(math.erf, otypes="d"), 4), "erfc": (vec(math.erfc, otypes="d"), 4),
    "sigmoid": (lambda x: np.where(x < 0, np.exp(x) / (1 + np.exp(x)), 1 / (1 + np.exp(-x))), 4),
}


INSTRUCTIONS = ("exp", "exp2", "sqrt", "rsqrt", "sigmoid"
                )  # GPUs have their own, as good as the bound; bits differ unless --fp=strict


def math_data(t):
    r = rng(99)
    spread = [r.standard_normal(400), r.uniform(-1, 1, 400), r.uniform(-110, 110, 400), np.exp(r.uniform(-80, 80, 400)),
              1 + r.standard_normal(200) * 1e-3, np.arange(-40, 41) * (math.pi / 4), np.arange(-150, 151) * 0.5]
    return Arr(t, np.concatenate([exactly(t, edges(t)).store, store(np.concatenate(spread), t)]))


def fix_special(name, f):
    def g(x):
        v = f(x)
        if name == "sigmoid":  # inf / inf in the formula above
            v = np.where(np.isnan(x), np.nan, np.where(x < -745, np.exp(np.maximum(x, -1e4)), v))
            v = np.where(x == -np.inf, 0.0, v)
        return v
    return g


for name, (f, n) in MATH.items():
    f = fix_special(name, f)
    elementwise(f"math_{name}_f32", "f32", {"x": math_data("f32")},
                {"y": ("f32", f"{name}(x)", lambda x, f=f, n=n: ulps(f(f64(x)), "f32", n))}, same_bits=name
                not in INSTRUCTIONS)
for name in INSTRUCTIONS:
    f, n = MATH[name]
    elementwise(f"math_{name}_f32_strict", "f32", {"x": math_data("f32")},
                {"y": ("f32", f"{name}(x)", lambda x, f=f, n=n: ulps(f(f64(x)), "f32", n))}, options=["--fp=strict"])
for t in ("f16", "bf16"):
    elementwise(f"math_{t}", t, {"x": math_data(t)}, {
        f"y_{n}": (t, f"{n}(x)", lambda x, f=fix_special(n, MATH[n][0]), t=t: ulps(f(f64(x)), t, 0.51))
        for n in ("exp", "exp2", "log", "sqrt", "rsqrt", "sin", "tanh", "erf", "sigmoid")})
def overflown(v):
    """What f32 holds of it where that is an infinity."""
    return np.where(v >= 2.0**128 - 2.0**103, np.inf, v)


# Uses of exp that do not show results below 2^-126: shorter forms on GPUs (frontend/powers.c).
with np.errstate(all="ignore"):
    elementwise("math_exp_unseen_f32", "f32", {"x": math_data("f32")}, {
        "plus": ("f32", "1.0 + exp(x)", lambda x: ulps(1 + np.exp(f64(x)), "f32", 2.5)),
        "gate": ("f32", "1.0 / (3.0 + exp(-x))", lambda x: ulps(1 / (3 + overflown(np.exp(-f64(x)))), "f32", 5)),
        "narrow": ("f16", "(f16)(exp(-abs(x)) * 0.75)", lambda x: ulps(np.exp(-np.abs(f64(x))) * 0.75, "f16", 0.51)),
        "seen": ("f32", "exp(-abs(x)) * 0.75", lambda x: ulps(np.exp(-np.abs(f64(x))) * 0.75, "f32", 3)),
    }, same_bits=False)
x, y = pairs("f32", 31, 500)
elementwise("math_atan2_f32", "f32", {"x": x, "y": y},
            {"at": ("f32", "atan2(x, y)", lambda x, y: ulps(np.arctan2(f64(x), f64(y)), "f32", 4))})
elementwise("math_pow_f32", "f32", {"x": x, "y": y},
            {"p": ("f32", "pow(x, y)", lambda x, y: ulps(np.power(f64(x), f64(y)), "f32", 4))})


# 4 ulp, or 4 ulp of the greater operand: where it is of another sign than the rest, both may cancel.
def log_sum(x, y):
    """In the operands' type or a wider one; of two equal infinities that one."""
    most, least = np.maximum(x, y), np.minimum(x, y)
    with np.errstate(all="ignore"):
        d = np.where(most == least, 0, least - most)
        return np.where(np.isinf(most) & (most == least), most, most + np.log1p(np.exp(d)))


def log_sum_want(x, y, t):
    if t == "f64":
        x, y = x.astype(np.longdouble), y.astype(np.longdouble)
    else:
        x, y = f64(x), f64(y)
    v = log_sum(x, y).astype(np.float64)
    rounding = 0 if t in ("f32", "f64") else spacing(v, t) / 2
    unit = t if t == "f64" else "f32"
    bound = rounding + 4 * np.maximum(spacing(v, unit), spacing(np.maximum(x, y).astype(np.float64), unit))
    return within(v, np.where(np.isinf(x) | np.isinf(y), 0, bound))


def log_sum_data(t):
    """All pairs of special values; sums near 0, where most of it cancels; small ones beside much smaller ones."""
    x, y = pairs(t, 33, 700)
    r = rng(34)
    near = r.uniform(-3, 0.5, 700)
    with np.errstate(all="ignore"):
        other = np.log1p(-np.exp(np.minimum(near, -1e-3))) + r.uniform(-.02, .02, 700)
    small_ones = np.exp(r.uniform(-30, 0, 700)) * r.choice([-1, 1], 700)
    far = -r.uniform(0, 40, 700)
    more = [store(np.concatenate(v), t) for v in ((near, small_ones), (other, far))]
    return Arr(t, np.concatenate([x.store, more[0]])), Arr(t, np.concatenate([y.store, more[1]]))


for t in FLOATS:
    x, y = log_sum_data(t)
    for strict in (False, True):
        elementwise(f"math_logaddexp_{t}" + "_strict" * strict, t, {"x": x, "y": y}, {
            "z": (t, "logaddexp(x, y)", lambda x, y, t=t: log_sum_want(x, y, t)),
            "w": (t, "logaddexp(y, x)", lambda x, y, t=t: log_sum_want(x, y, t)),
        }, options=["--fp=strict"] * strict, same_bits=strict or t == "f64")


# ---- integers -------------------------------------------------------------------------------------------------------
def py(op, t):
    """An operation on Python's integers, wrapped to type t."""
    lo, hi = int_range(t)
    n = bits_of(t)

    def wrap(v):
        v &= 2**n - 1
        return v - 2**n if v > hi else v

    return lambda *arrays: exact(
        np.array([wrap(op(*map(int, v))) for v in zip(*arrays)], object).astype(arrays[0].dtype))


def trunc_div(a, b):
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


for k, t in enumerate(INTS):
    n = bits_of(t)
    lo, hi = int_range(t)
    mask = 2**n - 1
    x, y = pairs(t, 40 + k)
    elementwise(f"int_arithmetic_{t}", t, {"x": x, "y": y}, {
        "add": (t, "x + y", lambda x, y: exact(x + y)), "minus": (t, "x - y", lambda x, y: exact(x - y)),
        "times": (t, "x * y", lambda x, y: exact(x * y)), "negative": (t, "-x", lambda x, y: exact(-x)),
        "conj": (t, "x & y", lambda x, y: exact(x & y)), "disj": (t, "x | y", lambda x, y: exact(x | y)),
        "diff": (t, "x ^ y", lambda x, y: exact(x ^ y)), "inverse": (t, "~x", lambda x, y: exact(~x)),
        "left": (t, "x << y", py(lambda a, b, n=n: a <<
                                 (b % n), t)), "right": (t, "x >> y", py(
                                     lambda a, b, n=n: a >>
                                     (b % n), t)), "absolute": (t, "abs(x)", lambda x, y: exact(np.abs(x))),
        "smaller": (t, "min(x, y)", lambda x, y: exact(np.minimum(x, y))),
        "larger": (t, "max(x, y)", lambda x, y: exact(np.maximum(x, y))),
    })
    elementwise(f"int_compare_{t}", t, {"x": x, "y": y}, {
        "lt": ("bool", "x < y", lambda x, y: exact(x < y)), "le": ("bool", "x <= y", lambda x, y: exact(x <= y)),
        "gt": ("bool", "x > y", lambda x, y: exact(x > y)), "ge": ("bool", "x >= y", lambda x, y: exact(x >= y)),
        "eq": ("bool", "x == y", lambda x, y: exact(x == y)), "ne": ("bool", "x != y", lambda x, y: exact(x != y)),
    })
    elementwise(f"int_bits_{t}", t, {"x": x, "y": y}, {
        "high": (t, "mulhi(x, y)", py(lambda a, b, n=n: (a * b) >> n, t)),
        "ones": (t, "popcount(x)", py(lambda a, b, m=mask: bin(a & m).count("1"), t)),
        "lead": (t, "clz(x)", py(lambda a, b, n=n, m=mask: n - (a & m).bit_length(), t)),
        "trail": (t, "ctz(x)", py(lambda a, b, n=n, m=mask: ((a & m) & -(a & m)).bit_length() - 1 if a else n, t)),
        "turned": (t, "rotl(x, y)", py(lambda a, b, n=n, m=mask: (a & m) << (b % n) | (a & m) >> (n - b % n), t)),
    })
    ok = (y.store != 0) & ~((x.store == lo) & (y.store.astype(object) == -1))
    ok &= np.arange(len(ok)) < np.flatnonzero(ok)[-1]
    dx, dy = Arr(t, x.store[ok]), Arr(t, y.store[ok])
    elementwise(f"int_division_{t}", t, {"x": dx, "y": dy}, {
        "over": (t, "x / (y == 0 ? 1 : y)", py(trunc_div, t)),
        "rest": (t, "x % (y == 0 ? 1 : y)", py(lambda a, b: a - b * trunc_div(a, b), t)),
    })
    floors = {
        "down": (t, "floor_div(x, y == 0 ? 1 : y)", py(lambda a, b: a // b, t)),
        "side": (t, "floor_mod(x, y == 0 ? 1 : y)", py(lambda a, b: a % b, t)),
    }
    for c in (1, 3, 8, 64) + ((-3, -8) if lo else ()):
        name = f"c{c}".replace("-", "_")
        floors[f"{name}_down"] = (t, f"floor_div(x, {c})", py(lambda a, b, c=c: a // c, t))
        floors[f"{name}_side"] = (t, f"floor_mod(x, {c})", py(lambda a, b, c=c: a % c, t))
    elementwise(f"int_floor_{t}", t, {"x": dx, "y": dy}, floors)
    limit = lambda v, lo=lo, hi=hi: max(lo, min(hi, v))
    elementwise(f"int_saturating_{t}", t, {"x": x, "y": y}, {
        "more": (t, "add_sat(x, y)", py(lambda a, b, f=limit: f(a + b), t)),
        "less": (t, "sub_sat(x, y)", py(lambda a, b, f=limit: f(a - b), t)),
        "more_100": (t, "add_sat(100, x)", py(lambda a, b, f=limit: f(a + 100), t)),
        "less_100": (t, "sub_sat(x, 100)", py(lambda a, b, f=limit: f(a - 100), t)),
        "mean": (t, "avg(x, y)", py(lambda a, b: (a + b + 1) // 2, t)),
        "mean_1": (t, "avg(x, 1)", py(lambda a, b: (a + 2) // 2, t)),
    })
    pos = dy.store > 0
    elementwise(f"int_cdiv_{t}", t, {"x": Arr(t, dx.store[pos]), "y": Arr(t, dy.store[pos])}, {
        "up": (t, "cdiv(x, y == 0 ? 1 : y)", py(lambda a, b: -(-a // b), t))})
# Division by zero and MIN / -1: unspecified, but nothing traps and the other elements are right.
for t in ("i32", "i64", "u8"):
    x, y = pairs(t, 3)
    least, minus_one = int_range(t)[0], STORE[t](0) - STORE[t](1)
    wild = (y.store == 0) | (y.store == minus_one) & (x.store == least)
    elementwise(f"int_division_never_traps_{t}", t, {"x": x, "y": y}, {
        "q": (
            t, f"y == 0 || (x == {least} && y + 1 == 0) ? 5 : x / y",
            lambda x, y, w=wild, t=t: exact(np.where(w, 5,
                                                     py(trunc_div, t)(x, np.where(w, 1, y).astype(x.dtype)).value)))
    })
x = exactly("bool", [False, False, True, True, True])
y = exactly("bool", [False, True, False, True, True])
elementwise("bool_logic", "bool", {"x": x, "y": y}, {
    "conj": ("bool", "x && y", lambda x, y: exact(x & y)), "disj": ("bool", "x || y", lambda x, y: exact(x | y)),
    "inverse": ("bool", "!x", lambda x, y: exact(~x)), "same": ("bool", "x == y", lambda x, y: exact(x == y)),
    "differ": ("bool", "x != y", lambda x, y: exact(x != y)),
    "pick": ("i32", "x ? 3 : (y ? 4 : 5)", lambda x, y: exact(np.where(x, 3, np.where(y, 4, 5)))),
})

# Division by a constant is division: a reciprocal that is not exact would be one ulp off, in f64 too.
DIVIDENDS = np.random.default_rng(9).standard_normal(200) * 10.0 ** np.arange(-100, 100)
row("division_by_constants", """
kernel k(const f64 x[N], f64 a[N], f64 b[N], f64 c[N])
    grid(cdiv(N, 64))
{
    int i = pid(0) * 64;
    a[i +: 64] = x[i +: 64] / 3;
    b[i +: 64] = x[i +: 64] / -10.0;
    c[i +: 64] = x[i +: 64] / 8;
}
""", {"x": exactly("f64", list(DIVIDENDS)), "a": poison("f64", 200), "b": poison("f64", 200), "c": poison("f64", 200)},
    lambda a: {"a": exact(a["x"] / 3), "b": exact(a["x"] / -10.0), "c": exact(a["x"] / 8)})


# More scalar loads than a CPU's code is optimised for: what its level has no instruction for are calls there.
def of_halves(a):
    x, y, z = a["x"], a["y"], a["z"]
    return {
        "s": exact(np.full(len(a["s"]), int(a["n"].sum()))), "wide": exact(f64(x)), "product": once("f16",
                                                                                                    np.multiply)(x, y),
        "narrow": rounded(f64(z), "f16"), "one": exact_fma("f32")(f64(x), f64(y), z), "half": exact_fma("f16")(x, y, y)
    }


x, y = pairs("f16", 7, 300)
z = Arr("f32",
        np.resize(np.concatenate([exactly("f32", edges("f32")).store,
                                  normal("f32", 72, 200).store]), len(x.store)))
row(
    "float_halves_in_quick_code", """
kernel k(const f16 x[N], const f16 y[N], const f32 z[N], const i32 n[M], f32 wide[N], f16 product[N], f16 narrow[N],
         f32 one[N], f16 half[N], i64 s[P])
    grid(cdiv(N, 40))
{
    i64 sum = 0;
    static for (int i : range(2100)) sum += n[i];
    s[pid(0)] = sum;
    auto at = pid(0) * 40;
    auto a = x[at +: 40];
    auto b = y[at +: 40];
    auto c = z[at +: 40];
    wide[at +: 40] = a;
    product[at +: 40] = a * b;
    narrow[at +: 40] = (f16)c;
    one[at +: 40] = fma((f32)a, (f32)b, c);
    half[at +: 40] = fma(a, b, b);
}
""", {
        "x": x, "y": y, "z": z, "n": ints("i32", 9, -9, 9, 2100), "s": poison("i64", (len(x.store) + 39) // 40),
        "wide": poison("f32", len(x.store)), "product": poison("f16", len(x.store)), "narrow": poison(
            "f16", len(x.store)), "one": poison("f32", len(x.store)), "half": poison("f16", len(x.store))
    }, of_halves)


# Functions of the low or the high bits of a byte: of all 256, in tiles of one width and another.
for b in (16, 32, 64):
    row(
        f"int_bits_functions_of_four_{b}", f"""
kernel k(const u8 x[M, N], f32 y[M, N])
    grid(cdiv(N, {b}))
{{
    int i = pid(0) * {b};
    y[0, i +: {b}] = (f32)((i8)(x[0, i +: {b}] & 15) - 8);
    y[1, i +: {b}] = (f32)((i8)(x[1, i +: {b}] >> 4) - 8) * 0.25 + 3;
    y[2, i +: {b}] = (f32)((i32)(x[2, i +: {b}] & 7) * 5 - 3);
    auto low = x[3, i +: {b}] & 15;
    y[3, i +: {b}] = (low & 8) != 0 ? -(f32)(low & 7) : (f32)(low & 7);
    auto both = x[4, i +: {b}];
    y[4, i +: {b}] = (f32)((both & 15) * 2 + 1) + (f32)((i8)(both >> 4) - 3);
    y[5, i +: {b}] = (f32)((x[5, i +: {b}] & 31) + 1) - 7;
}}
""", {"x": Arr("u8", np.tile(np.arange(261).astype(np.uint8), (6, 1))), "y": poison("f32", 6, 261)}, lambda a:
        (lambda v, low, high: {
            "y": exact(
                np.stack([
                    low - 8, (high - 8) * 0.25 + 3, (v & 7) * 5 - 3,
                    np.where(low & 8, -1.0, 1.0) * (low & 7), low * 2 + 1 + high - 3, (v & 31) - 6
                ]))
        })(*(lambda v: (v, v & 15, v >> 4))(a["x"][0].astype(int))))
