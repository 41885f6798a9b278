"""The library, function by function: what goes element by element (std.types, activation, loss, random, math in f16,
bf16 and
f64). rows_stdlib_tiles.py has what goes along an axis, rows_stdlib_quant.py the formats.

Bounds are those of the functions' `///` lines. test/tools/check_stdlib.py demands a row for each function that has one.
"""
import math

import numpy as np

from rows import row
from values import STORE, Arr, eps, exact, exactly, ints, normal, philox, poison, rng, spacing, store, within

U = eps("f32")
HALF = ("f32", "f16", "bf16")
WARPS = (4, 1, 8, 2)
SQRT2 = math.sqrt(2)
erf = np.vectorize(math.erf, otypes="d")
erfc = np.vectorize(math.erfc, otypes="d")


def near(v, slack, t):
    """v, computed in f32 with the error `slack`, then rounded to t; in f64 the same, 2^29 times finer, math functions
    not quite."""
    slack = (np.asarray(slack, np.float64) + 2.0**-149) * (2.0**-27 if t == "f64" else 1)
    with np.errstate(all="ignore"):
        return within(v, slack + (spacing(np.abs(v) + slack, t) * 0.5001 if t != "f32" else 0))


def ulps(v, n, t):
    return near(v, n * spacing(v, "f32"), t)


def relative(v, n, t):
    """n units of 2^-24, relative."""
    return near(v, np.where(np.isfinite(v), np.abs(v) * n * U, 0) + spacing(v, "f32"), t)


def elements(name, module, t, inputs, table, size, number, **more):
    """One kernel over blocks of `size` elements; table: output -> (type, expression, function of the inputs as f64
    giving a
    Want). All four emulated targets: the row says its warps."""
    params = [f"const {a.type} {v}_[N]"
              for v, a in inputs.items()] + [f"{ty} {n}[N]" for n, (ty, _, _) in table.items()]
    body = [f"    auto {v} = {v}_[i +: {size}];"
            for v in inputs] + [f"    {n}[i +: {size}] = {e};" for n, (_, e, _) in table.items()]
    source = (
        "" if module in ("math", "fast") else f"import std.{module};\n\n"
    ) + f"kernel k({', '.join(params)})\n    grid(cdiv(N, {size}))\n{{\n    int i = pid(0) * {size};\n" + "\n".join(
        body) + "\n}\n"
    args = {f"{v}_": a for v, a in inputs.items()}
    args.update({n: poison(ty, len(next(iter(inputs.values())).store)) for n, (ty, _, _) in table.items()})

    def want(a):
        with np.errstate(all="ignore"):
            return {
                n: f(*(a[f"{v}_"].astype(np.float64) if a[f"{v}_"].dtype.kind == "f" else a[f"{v}_"] for v in inputs))
                for n, (_, _, f) in table.items()
            }
    row(name, source, args, want, warps=WARPS[number % 4], stages=2, **more)


def sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def gelu(x):
    return np.where(x == -np.inf, -0.0, 0.5 * x * erfc(-x / SQRT2))


def gelu_tanh(x):
    return x * sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))


def gelu_tanh_slope(x):
    """1 and 0 at the infinities."""
    c = 2 * math.sqrt(2 / math.pi)
    s, rest = sigmoid(c * (x + 0.044715 * x**3)), sigmoid(-c * (x + 0.044715 * x**3))
    return s + np.where((s == 0) | (rest == 0), 0, x * c * (1 + 3 * 0.044715 * x * x) * s * rest)


def tanh_slack(x):
    return 12 + 4 * np.abs(x) + np.abs(x) ** 3 / 5


def activations(t):
    """output: (expression of x and y, function of both giving a Want)"""
    return {
        "relu": ("relu(x)", lambda x, y: exact(np.where(x < 0, 0, x))),
        "leaky": ("leaky_relu(x, 0.125)", lambda x, y: ulps(np.where(x < 0, 0.125 * x, x), 0.5, t)),
        "six": ("relu6(x)", lambda x, y: exact(np.where(x < 0, 0, np.where(x > 6, 6, x)))),
        "squared": ("relu_squared(x)", lambda x, y: ulps(np.where(x < 0, 0, x)**2, 0.5, t)),
        "elu": ("elu(x, 2.0)", lambda x, y: ulps(np.where(x < 0, 2 * np.expm1(x), x), 3, t)),
        "silu": ("silu(x)", lambda x, y: ulps(x * sigmoid(x), 6, t)),
        "silu_d": ("silu_grad(x)", lambda x, y: near(sigmoid(x) + x * sigmoid(x) * sigmoid(-x), 16 * U, t)),
        "gelu": ("gelu(x)", lambda x, y: relative(gelu(x), x**2 + 8, t)),
        "gelu_tanh_d": ("gelu_tanh_grad(x)", lambda x, y: near(gelu_tanh_slope(x), 32 * U, t)), "gelu_d": (
            "gelu_grad(x)",
            lambda x, y: near(0.5 * erfc(-x / SQRT2) + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi), 16 * U, t)),
        "by_tanh": ("gelu_tanh(x)", lambda x, y: relative(gelu_tanh(x), tanh_slack(x), t)),
        "quick": ("gelu_fast(x)", lambda x, y: relative(x * sigmoid(1.702 * x), 8 + 4 * np.abs(x), t)),
        "soft": ("softplus(x)",
                 lambda x, y: ulps(softplus(x), 4, t)), "mish": ("mish(x)",
                                                                 lambda x, y: ulps(x * np.tanh(softplus(x)), 10, t)),
        "sign": ("softsign(x)", lambda x, y: ulps(x / (1 + np.abs(x)), 3, t)),
        "hard": ("hard_swish(x)",
                 lambda x, y: near(x * np.clip(x + 3, 0, 6) / 6, np.where(np.isfinite(x), 4 * U *
                                                                          (np.abs(x) + 1), 0), t)),
        "cap": ("softcap(x, 5.0)",
                lambda x, y: ulps(5 * np.tanh(x / 5), 10, t)), "glu": ("glu(x, y)",
                                                                       lambda x, y: ulps(sigmoid(x) * y, 6, t)),
        "reglu": ("reglu(x, y)", lambda x, y: ulps(np.where(x < 0, 0, x) * y, 0.5, t)),
        "swiglu": ("swiglu(x, y)", lambda x, y: ulps(x * sigmoid(x) * y, 7, t)),
        "geglu": ("geglu(x, y)", lambda x, y: relative(gelu(x) * y, x**2 + 9, t)),
        "geglu_t": ("geglu_tanh(x, y)", lambda x, y: relative(gelu_tanh(x) * y,
                                                              tanh_slack(x) + 1, t)),
    }


def floats(t, seed, n):
    """n numbers of a few units, zeros, infinities and NaN among them (from 20 on)."""
    v = np.concatenate([rng(seed).normal(0, 3, n - n // 3), np.linspace(-12, 12, n // 3)])
    v[-8:] = (0, -0.0, 6, -3, 3, np.inf, np.nan, -np.inf) if n >= 20 else v[-8:]
    return Arr(t, store(rng(seed + 1).permutation(v), t))


for k, t in enumerate(HALF):
    named = activations(t)
    for part, names in enumerate((list(named)[:7], list(named)[7:14], list(named)[14:])):
        elements(f"std_activation_{t}_{part + 1}", "activation", t, {"x": floats(t, 3, 301), "y": normal(t, 5, 301)},
                 {n: (t, "activation." + named[n][0], named[n][1]) for n in names}, 48, k + part, same_bits=False)
for part, names in enumerate((list(named)[:11], list(named)[11:])):
    named = activations("f32")
    elements(f"std_activation_extent_1_{part + 1}", "activation", "f32",
             {"x": floats("f32", 4, 5), "y": normal("f32", 5, 5)},
             {n: ("f32", "activation." + named[n][0], named[n][1])
              for n in names}, 1, part, same_bits=False)

row(
    "std_activation_as_epilogue", """
import std.activation;

kernel k(const f16 a[M, K], const f16 b[K, N], f16 c[M, N], f32 s[2], const fn epi = activation.silu)
    grid(1)
{
    c[0 +: 16, 0 +: 24] = (f16)epi(dot(a[0 +: 16, 0 +: 16], b[0 +: 16, 0 +: 24]));
    s[0] = activation.gelu(2.0);
    s[1] = activation.relu6(s[0] + 5);
}
""", {"a": normal("f16", 1, 11, 13), "b": normal("f16", 2, 13, 21), "c": poison("f16", 11, 21), "s": poison("f32", 2)},
    lambda a:
    (lambda d:
     {"c": near(d * sigmoid(d), 30 * U * (np.abs(d) + 1) * 8, "f16"), "s": ulps(np.array([gelu(2.0), 6]), 8, "f32")})
    (a["a"].astype(np.float64) @ a["b"]), same_bits=False, warps=4, stages=2)

# ---- types ----------------------------------------------------------------------------------------------------------
row(
    "std_types", """
import std.types;

auto half_of(auto x) { return types.cast_like(types.widen(x) * 0.5, x); }

kernel k(const f16 a[N], const bf16 b[N], const f32 c[N], const f64 d[N], f32 x[N], f32 y[N], f32 z[N], f64 w[N],
         f16 ha[N], bf16 hb[N], f64 hd[N], i32 i[N])
    grid(cdiv(N, 7))
{
    int at = pid(0) * 7;
    x[at +: 7] = types.widen(a[at +: 7]);
    y[at +: 7] = types.widen(b[at +: 7]);
    z[at +: 7] = types.widen(c[at +: 7]);
    w[at +: 7] = types.widen(d[at +: 7]);
    ha[at +: 7] = half_of(a[at +: 7]);
    hb[at +: 7] = half_of(b[at +: 7]);
    hd[at +: 7] = half_of(d[at +: 7]);
    i[at +: 7] = types.cast_like(c[at +: 7], at);
}
""", {
        **{n: floats(t, 9, 31)
           for n, t in zip("abcd", ("f16", "bf16", "f32", "f64"))}, **{
            n: poison(t, 31)
            for n, t in (("x", "f32"), ("y", "f32"), ("z", "f32"), ("w", "f64"), ("ha", "f16"), ("hb", "bf16"),
                         ("hd", "f64"), ("i", "i32"))
        }
    }, lambda a: {
        "x": exact(a["a"]), "y": exact(a["b"]), "z": exact(a["c"]), "w": exact(a["d"]), "ha": exact(a["a"] / 2),
        "hb": exact(a["b"] / 2), "hd": exact(a["d"] / 2), "i": exact(
            np.nan_to_num(np.trunc(a["c"].astype(np.float64)), nan=0, posinf=2**31 - 1, neginf=-2**31).astype(np.int32))
    }, warps=1, stages=1)

# ---- losses ---------------------------------------------------------------------------------------------------------
def bce(x, y):
    return np.maximum(x, 0) - x * y + np.log1p(np.exp(-np.abs(x)))


def kl(log_p, q):
    return np.where(q == 0, 0, q * (np.log(q) - log_p))


def huber(x, y, d):
    e = np.abs(x - y)
    return np.where(e <= d, e * e / 2, d * (e - d / 2))


for k, t in enumerate(HALF + ("f64",)):
    wide = "f64" if t == "f64" else "f32"
    x = floats(t, 13, 151)
    p = Arr(t, store(np.where(np.arange(151) % 10 == 0, 0, rng(14).random(151)), t))
    if t != "f64":
        elements(f"std_loss_binary_{t}", "loss", t, {"x": x, "p": p}, {
            "bce": ("f32", "loss.binary_cross_entropy(x, p)",
                    lambda x, p: near(bce(x, p), np.where(np.isfinite(x), 4 * U * (np.abs(x) + 1), 0), "f32")),
            "kl": ("f32", "loss.kl_divergence(x, p)",
                   lambda x, p: near(kl(x, p), np.where(np.isfinite(x), 4 * U * (np.abs(p * x) + 1), 0), "f32"))
        }, 33, k, same_bits=False)
    elements(f"std_loss_distance_{t}", "loss", t, {"x": x, "y": normal(t, 15, 151)}, {
        "square": (wide, "loss.squared_error(x, y)", lambda x, y, w=wide: within(
            (x - y)**2, 1e-15 * (x - y)**2 if w == "f64" else 2 * spacing((x - y)**2, w))),
        "huber": (wide, "loss.huber(x, y, 1.5)",
                  lambda x, y, w=wide: within(huber(x, y, 1.5), 4 * spacing(huber(x, y, 1.5), w)))
    }, 33 if t != "f16" else 1, k)

# ---- random ---------------------------------------------------------------------------------------------------------
def words(seed, i):
    return np.array([philox(seed, int(v) & 0xFFFFFFFFFFFFFFFF) for v in i], np.uint64).T


def normals(w):
    turns = (w[1] >> 8) * 2.0**-24
    v = np.sqrt(-2 * np.log(((w[0] >> 8) + 1) * 2.0**-24)) * np.cos(2 * np.pi * turns)
    return np.where(turns % 0.5 == 0.25, 0, v)


SEED = 0x123456789ABCDEF0
for k, (t, size) in enumerate((("i32", 29), ("u32", 64), ("i64", 1), ("u64", 13), ("i16", 32))):
    n = 9 if size == 1 else 77
    info = np.iinfo(STORE[t])
    counters = np.concatenate(
        [np.array([0, 1, info.min, info.max], info.dtype),
         rng(20 + k).integers(info.min, info.max, n - 4, info.dtype)])
    row(
        f"std_random_{t}", f"""
import std.random;

kernel k(const {t} i_[N], u32 w[4, N], u32 b[N], f32 u[N], f32 n[N], u32 d[N], u64 seed)
    grid(cdiv(N, {size}))
{{
    int at = pid(0) * {size};
    auto i = i_[at +: {size}];
    auto (w0, w1, w2, w3) = random.bits4(seed, i);
    w[0, at +: {size}] = w0;
    w[1, at +: {size}] = w1;
    w[2, at +: {size}] = w2;
    w[3, at +: {size}] = w3;
    b[at +: {size}] = random.bits(seed, i);
    u[at +: {size}] = random.uniform(seed, i);
    n[at +: {size}] = random.normal(seed, i);
    d[at +: {size}] = random.below(seed, i, 6);
}}
""", {
            "i_": Arr(t, counters), "w": poison("u32", 4, n), "b": poison("u32", n), "u": poison("f32", n), "n": poison(
                "f32", n), "d": poison("u32", n), "seed": SEED
        }, lambda a: (lambda w: {
            "w": exact(w), "b": exact(w[0]), "u": exact((w[0] >> 8) * 2.0**-24), "n": near(
                normals(w), 4 * spacing(normals(w), "f32") + 1e-15, "f32"), "d": exact(w[0] * 6 >> 32)
        })(words(a["seed"], a["i_"])), warps=WARPS[k % 4], stages=2)

for k, t in enumerate(HALF):
    row(
        f"std_random_dropout_{t}", f"""
import std.random;

kernel k(const {t} x[R, C], {t} y[R, C], {t} all[R, C], {t} none[R, C], f32 p)
    grid(1)
{{
    auto i = col(iota(5)) * C + row(iota(67));
    auto v = x[0 +: 5, 0 +: 67];
    y[0 +: 5, 0 +: 67] = random.dropout(v, p, 9, i);
    all[0 +: 5, 0 +: 67] = random.dropout(v, 0, 9, i);
    none[0 +: 5, 0 +: 67] = random.dropout(v, 1, 9, i);
}}
""", {
            "x": floats(t, 30, 335)._replace(store=floats(t, 30, 335).store.reshape(5, 67)), "y": poison(t, 5, 67),
            "all": poison(t, 5, 67), "none": poison(t, 5, 67), "p": 0.25
        }, lambda a, t=t:
        (lambda x, keep:
         {"y": ulps(np.where(keep, x / 0.75, 0), 2, t), "all": exact(x), "none": exact(np.zeros_like(x))})
        (a["x"].astype(np.float64),
         ((words(9, range(335))[0] >> 8) * 2.0**-24 >= 0.25).reshape(5, 67)), warps=WARPS[k], stages=2)

# ---- math: the functions of f16 and bf16 that rows_elementwise.py leaves out, f64, fma in 16 bits --------------------
REST = {
    "expm1": np.expm1, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "cbrt": np.cbrt, "cos": np.cos,
    "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
    "erfc": erfc
}
for t in ("f16", "bf16"):
    elements(f"std_math_{t}", "math", t, {"x": floats(t, 40, 333), "y": normal(t, 41, 333)},
             {**{f"y_{n}": (t, f"{n}(x)", lambda x, y, f=f, t=t: ulps(f(x), 4, t)) for n, f in REST.items()},
              "angle": (t, "atan2(x, y)", lambda x, y, t=t: ulps(np.arctan2(x, y), 4, t)),
              "power": (t, "pow(x, y)", lambda x, y, t=t: ulps(np.power(x, y), 4, t))}, 64, 0)
    elements(f"std_math_fma_{t}", "math", t, {"x": floats(t, 42, 99), "y": normal(t, 43, 99), "z": normal(t, 44, 99)},
             {"f": (t, "fma(x, y, z)", lambda x, y, z, t=t: within(x * y + z, 0.5001 * spacing(x * y + z, t)))}, 33, 1)

DOUBLE = {"exp": np.exp, "log": np.log, "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "sqrt": np.sqrt}
LARGE = np.concatenate([
    floats("f64", 45, 200).store,
    rng(46).normal(0, 300, 100),
    np.exp(rng(47).uniform(-700, 700, 100)), [1e300, 5e-324, 1e22, 2.0**1023, -5e-324]
])
elements("std_math_f64", "math", "f64", {"x": Arr("f64", LARGE), "y": Arr("f64",
                                                                          rng(48).permutation(LARGE) / 100)},
         {
             **{
                 f"y_{n}": ("f64", f"{n}(x)", lambda x, y, f=f: within(f(x), 5 * spacing(f(x), "f64")))
                 for n, f in DOUBLE.items()
             }, "power": ("f64", "pow(x, y)", lambda x, y: within(np.power(x, y), 5 * spacing(np.power(x, y), "f64")))
         }, 64, 2)

# ---- fast forms: std.fast's, and the plain functions by the other names ----------------------------------------------
PLAIN = {
    "exp2": np.exp2, "log": np.log, "log2": np.log2, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "sin": np.sin,
    "cos": np.cos, "erf": erf, "floor": np.floor, "atan": np.arctan
}


def fast_exp(x):
    bound = (2 + 1.2 * np.where(np.isfinite(x), np.abs(x), 0)) * spacing(np.exp(x), "f32")
    return np.exp(x), np.where(np.exp(x) < 2.0**-126, np.maximum(bound, 2.0**-126), bound)  # what is subnormal may be 0


for k, t in enumerate(HALF):
    elements(f"std_fast_{t}", "fast", t,
             {"x": Arr(t, np.concatenate([floats(
                 t, 60, 121).store, store(rng(61).uniform(-100, 100, 80), t)]))}, {
                     "e": (t, "fast.exp(x)", lambda x, t=t: near(*fast_exp(x), t)),
                     "s": (t, "fast.sigmoid(x)", lambda x, t=t: near(
                         sigmoid(x), 2 * fast_exp(-np.abs(x))[1] + 4 * spacing(sigmoid(x), "f32") + 2.0**-127, t)),
                     "h": (t, "fast.tanh(x)", lambda x, t=t: near(np.tanh(x), 2.0**-22, t)), **{
                         f"y_{n}": (t, f"fast.{n}(x)", lambda x, f=f, t=t: near(
                             f(x), np.maximum(4 * spacing(f(x), "f32"), 2.0**-126 if f is np.exp2 else 0), t))
                         for n, f in PLAIN.items()
                     }
                 }, 67, k, same_bits=False)
row(
    "std_fast_strict_is_plain", """
kernel k(const f32 x[N], f32 y[N], f32 z[N], f64 w[N], f32 c[1])
    grid(1)
{
    y[0 +: 99] = fast.exp(x[0 +: 99]) - exp(x[0 +: 99]);
    z[0 +: 99] = fast.tanh(x[0 +: 99]) - tanh(x[0 +: 99]);
    w[0 +: 99] = fast.exp((f64)x[0 +: 99]) - exp((f64)x[0 +: 99]);
    c[0] = fast.exp(1.0);
}
""", {
        "x": normal("f32", 62, 99), "y": poison("f32", 99), "z": poison("f32", 99), "w": poison("f64", 99), "c": poison(
            "f32", 1)
    }, lambda a: {
        "y": exact(np.zeros(99)), "z": exact(np.zeros(99)), "w": exact(np.zeros(99)), "c": within(
            np.array([math.e]), 1e-6)
    }, options=["--fp", "strict"], warps=4, stages=1)
