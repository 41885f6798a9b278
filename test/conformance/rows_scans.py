"""Scans that are exclusive, or begin with a value: every type, axis and direction, odd extents and extent 1; running
extremes with NaN."""
import numpy as np

from rows import row
from values import ALL, FLOATS, INTS, Arr, exact, int_range, is_float, poison, random_bits, small, store

SUM = {"bool": "i32", "i8": "i32", "i16": "i32", "u8": "u32", "u16": "u32"}
NAN = float("nan")


def along(x, axis, f, first=None, reverse=False, exclusive=False):
    """Python's own loop. f: of rows of elements; first: None, or what the scan begins with."""
    x = np.moveaxis(np.asarray(x), axis, 0)
    out, so_far = np.empty_like(x), None if first is None else np.full_like(x[0], first)
    for i in (range(len(x) - 1, -1, -1) if reverse else range(len(x))):
        after = x[i] if so_far is None else f(so_far, x[i])
        out[i] = so_far if exclusive else after
        so_far = after
    return np.moveaxis(out, 0, axis)


def computed(x, t):
    """As the sums are: wide enough to wrap at the end."""
    return x.astype(np.float64 if is_float(t) else np.uint64 if t[0] == "u" else np.int64)


# ---- cumsum, cumprod ------------------------------------------------------------------------------------------------
def sums_kernel(last):
    return f"""
kernel k(const T x[R, C], S a[R, C], S b[R, C], S c[R, C], S p[R, C], const type T, const type S, const int M,
         const int N)
    grid(1)
{{
    auto t = x[0 +: M, 0 +: N];
    a[0 +: M, 0 +: N] = cumsum(t, 0, exclusive = true);
    b[0 +: M, 0 +: N] = cumsum(t, axis = 1, exclusive = true);
    c[0 +: M, 0 +: N] = cumsum(t, 1, reverse = true, exclusive = true);
    p[0 +: M, 0 +: N] = {last};
}}
"""


def sums(name, t, x):
    m, n = x.store.shape
    s = SUM.get(t, t)
    product = "cumprod(t, 1, exclusive = true)" if t != "bool" else "cumsum(t, 0, reverse = true, exclusive = true)"

    def want(a):
        v, add, mul = computed(a["x"], t), np.add, np.multiply
        last = along(v, 1, mul, 1, exclusive=True) if t != "bool" else along(v, 0, add, 0, True, True)
        return {"a": exact(along(v, 0, add, 0, exclusive=True)), "b": exact(along(v, 1, add, 0, exclusive=True)),
                "c": exact(along(v, 1, add, 0, True, True)), "p": exact(last)}
    row(name, sums_kernel(product), {"x": x, **{n_: poison(s, m, n) for n_ in "abcp"}}, want,
        consts={"T": t, "S": s, "M": m, "N": n})


for k, t in enumerate(ALL):
    lo, hi = (0 if t[0] in "bu" else -1), (3 if is_float(t) and t not in ("f16", "bf16") else 2)
    sums(f"scan_exclusive_{t}", t, small(t, 30 + k, 7, 13, lo=lo, hi=hi))
for m, n in ((1, 1), (1, 5), (3, 1), (2, 16), (16, 33), (5, 64), (64, 3), (4, 127)):
    sums(f"scan_exclusive_{m}x{n}", "i32", random_bits("i32", m + n, m, n))
    sums(f"scan_exclusive_f32_{m}x{n}", "f32", small("f32", m + n, m, n, lo=-1, hi=2))

row("scan_exclusive_long_and_3_axes", """
kernel k(const i32 x[N], i32 y[N], i32 z[N], const f32 u[A, B, C], f32 v[A, B, C])
    grid(1)
{
    y[0 +: 3000] = cumsum(x[0 +: 3000], 0, exclusive = true);
    z[0 +: 3000] = cummax(x[0 +: 3000], 0, reverse = true, exclusive = true);
    v[0 +: 3, 0 +: 5, 0 +: 4] = cumsum(u[0 +: 3, 0 +: 5, 0 +: 4], 1, exclusive = true);
}
""", {"x": random_bits("i32", 3, 3000), "y": poison("i32", 3000), "z": poison("i32", 3000),
      "u": small("f32", 4, 3, 5, 4), "v": poison("f32", 3, 5, 4)},
    lambda a: {"y": exact(along(a["x"], 0, np.add, 0, exclusive=True)),
               "z": exact(along(a["x"], 0, np.maximum, int_range("i32")[0], True, True)),
               "v": exact(along(a["u"], 1, np.add, 0, exclusive=True))})

# ---- cummax, cummin -------------------------------------------------------------------------------------------------
EXTREMES = """
kernel k(const T x[R, C], T a[R, C], T b[R, C], T c[R, C], T d[R, C], T e[R, C], T f[R, C], const type T)
    grid(1)
{
    auto t = x[0 +: 7, 0 +: 13];
    a[0 +: 7, 0 +: 13] = cummax(t, 1);
    b[0 +: 7, 0 +: 13] = cummin(t, axis = 0);
    c[0 +: 7, 0 +: 13] = cummax(t, 0, reverse = true);
    d[0 +: 7, 0 +: 13] = cummin(t, 1, reverse = true, exclusive = true);
    e[0 +: 7, 0 +: 13] = cummax(t, 1, exclusive = true);
    f[0 +: 7, 0 +: 13] = cummin(t, 0, exclusive = true);
}
"""


def with_nan(t, seed):
    """Rows that begin with NaN, one of NaN alone, infinities of both signs."""
    r = np.random.default_rng(seed)
    v = r.integers(-9, 10, (7, 13)) / 2
    v = np.where(r.random((7, 13)) < .2, NAN, v)
    v[0], v[1, :4], v[2, -3:], v[3, 5], v[4, 5], v[:, 2] = NAN, NAN, NAN, np.inf, -np.inf, NAN
    v = np.where(v == 0, 1, v)  # which zero a maximum gives is open
    return Arr(t, store(v, t))


def extremes_want(a, t):
    x = a["x"]
    least, most = (-np.inf, np.inf) if is_float(t) else int_range(t)
    return {"a": exact(along(x, 1, np.fmax)), "b": exact(along(x, 0, np.fmin)),
            "c": exact(along(x, 0, np.fmax, None, True)), "d": exact(along(x, 1, np.fmin, most, True, True)),
            "e": exact(along(x, 1, np.fmax, least, exclusive=True)),
            "f": exact(along(x, 0, np.fmin, most, exclusive=True))}


for k, t in enumerate(INTS + FLOATS):
    row(f"scan_extremes_{t}", EXTREMES, {
        "x": with_nan(t, k) if is_float(t) else random_bits(t, 50 + k, 7, 13), **{n: poison(t, 7, 13) for n in "abcdef"}
    }, lambda a, t=t: extremes_want(a, t), consts={"T": t})

# ---- scan with init -------------------------------------------------------------------------------------------------
for n in (1, 2, 7, 16, 33, 64, 200):
    row(f"scan_init_{n}", f"""
i32 twice_and(i32 a, i32 b) {{ return b != 0 ? b : a; }}
auto affine(f32 a, f32 b, f32 c, f32 d) {{ return (a * c, b * c + d); }}
i64 add(i64 a, i64 b) {{ return a + b; }}

kernel k(const i32 x[R, C], i32 incl[R, C], i32 excl[R, C], i32 back[R, C], const f32 m[R, C], const f32 p[R, C],
         f32 h[R, C], f32 g[R, C], i64 s[R, C], i64 z[R, C], i32 start, const int N = {n})
    grid(1)
{{
    auto v = x[0 +: 4, 0 +: N];
    incl[0 +: 4, 0 +: N] = scan(v, 1, twice_and, init = start);
    excl[0 +: 4, 0 +: N] = scan(v, 1, twice_and, exclusive = true, init = -7);
    back[0 +: 4, 0 +: N] = scan(v, 1, twice_and, reverse = true, exclusive = true, init = start + 1);
    auto (u, w) = scan((m[0 +: 4, 0 +: N], p[0 +: 4, 0 +: N]), 1, affine, exclusive = true, init = (1, 3));
    h[0 +: 4, 0 +: N] = w;
    auto (u2, w2) = scan((m[0 +: 4, 0 +: N], p[0 +: 4, 0 +: N]), axis = 1, f = affine, reverse = true, init = (1, 0.5));
    g[0 +: 4, 0 +: N] = w2;
    s[0 +: 4, 0 +: N] = scan((i64)v, 0, add, init = (i64)start << 32);
    z[0 +: 4, 0 +: N] = scan((i64)v, 0, add, exclusive = true, reverse = true, init = start);
}}
""", {
        "x": small("i32", n, 4, n, lo=-1, hi=3), "incl": poison("i32", 4, n), "excl": poison("i32", 4, n),
        "back": poison("i32", 4, n), "m": small("f32", n + 1, 4, n, lo=-1, hi=2), "p": small("f32", n + 2, 4, n),
        "h": poison("f32", 4, n), "g": poison("f32", 4, n), "s": poison("i64", 4, n), "z": poison("i64", 4, n),
        "start": 5
    }, lambda a: init_want(a))


def init_want(a):
    def later(p, q):
        return np.where(q != 0, q, p)

    def affine(first, exclusive, reverse):
        m, p = a["m"], a["p"]
        out, so_far = np.empty_like(m), np.full(len(m), first, np.float32)
        for i in (range(m.shape[1] - 1, -1, -1) if reverse else range(m.shape[1])):
            after = so_far * m[:, i] + p[:, i]
            out[:, i] = so_far if exclusive else after
            so_far = after
        return out
    x, wide = a["x"], a["x"].astype(np.int64)
    return {
        "incl": exact(along(x, 1, later, 5)), "excl": exact(along(x, 1, later, -7, exclusive=True)),
        "back": exact(along(x, 1, later, 6, True, True)), "h": exact(affine(3, True, False)),
        "g": exact(affine(0.5, False, True)), "s": exact(along(wide, 0, np.add, 5 << 32)),
        "z": exact(along(wide, 0, np.add, 5, True, True))
    }


# A combiner with a loop.
row("scan_init_with_a_loop", """
u32 divisor(u32 a, u32 b)
{
    u32 p = a;
    u32 q = b;
    while (q != 0) {
        u32 r = p % q;
        p = q;
        q = r;
    }
    return p;
}
kernel k(const u32 x[N], u32 y[N], u32 z[N])
    grid(1)
{
    y[0 +: 21] = scan(x[0 +: 21], 0, divisor, exclusive = true, init = 0);
    z[0 +: 21] = scan(x[0 +: 21], 0, divisor, reverse = true, init = 36288000);
}
""", {"x": Arr("u32", (np.random.default_rng(6).integers(1, 400, 21) * 36).astype(np.uint32)), "y": poison("u32", 21),
      "z": poison("u32", 21)},
    lambda a: {"y": exact(along(a["x"], 0, np.gcd, 0, exclusive=True)),
               "z": exact(along(a["x"], 0, np.gcd, 36288000, True))})

# Vectors longer than what a few threads keep in registers.
for k, t in enumerate(("i32", "u64", "f32", "f64")):
    row(f"scan_init_long_{t}", f"""
{t} add({t} a, {t} b) {{ return a + b; }}
kernel k(const {t} x[N], {t} y[N], {t} z[N], {t} q[N])
    grid(1)
{{
    auto v = x[0 +: 5000];
    y[0 +: 5000] = scan(v, 0, add, exclusive = true, init = x[0] + 2);
    z[0 +: 5000] = scan(v, 0, add, reverse = true, init = 1);
    q[0 +: 5000] = cumsum(v, 0, reverse = true, exclusive = true);
}}
""", {"x": small(t, 70 + k, 5000, lo=0, hi=3), "y": poison(t, 5000), "z": poison(t, 5000), "q": poison(t, 5000)},
        lambda a: {"y": exact(along(a["x"], 0, np.add, a["x"][0] + 2, exclusive=True)),
                   "z": exact(along(a["x"], 0, np.add, 1, True)), "q": exact(along(a["x"], 0, np.add, 0, True, True))})
