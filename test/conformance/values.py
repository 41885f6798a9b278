"""Element types, values and comparisons of the conformance suite.

An array is kept as `Arr(type, store)`: the language's element type and a NumPy array of what memory holds (bf16 as u16
bits, f8 as u8, 4-bit types as bytes of two elements, the low one first). `wide` gives the values: integers as they are,
floats as f32 (exact), f64 as f64.
"""
import math
from collections import namedtuple
from fractions import Fraction

import numpy as np

Arr = namedtuple("Arr", "type store")
Want = namedtuple("Want", "value bound")  # bound: allowed |got - value|, 0 = equal (NaN to NaN, -0 to -0)

# Float formats: bits of the significand with the hidden one, least and greatest exponent of its first bit.
Format = namedtuple("Format", "p emin emax")
FORMATS = {
    "f16": Format(11, -14, 15), "bf16": Format(8, -126, 127), "f32": Format(24, -126, 127),
    "f64": Format(53, -1022, 1023), "f8e4m3": Format(4, -6, 8), "f8e5m2": Format(3, -14, 15),
    "f8e4m3fnuz": Format(4, -7, 7), "f8e5m2fnuz": Format(3, -15, 15)
}
STORE = {
    "bool": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8,
    "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "f16": np.float16, "bf16": np.uint16, "f32": np.float32,
    "f64": np.float64, "f8e4m3": np.uint8, "f8e5m2": np.uint8, "f8e4m3fnuz": np.uint8, "f8e5m2fnuz": np.uint8,
    "u4": np.uint8, "i4": np.uint8, "f4e2m1": np.uint8,
}
FLOATS = ["f16", "bf16", "f32", "f64"]
INTS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
ALL = ["bool"] + INTS + FLOATS
PACKED = ["u4", "i4", "f4e2m1"]


def is_float(t):
    return t in FORMATS


def bits_of(t):
    return 8 if t == "bool" else 8 * STORE[t]().itemsize


def int_range(t):
    n = bits_of(t)
    return (0, 2**n - 1) if t[0] == "u" else (-(2 ** (n - 1)), 2 ** (n - 1) - 1)


# ---- to and from what memory holds ---------------------------------------------------------------------------------
def quantize(x, t):
    """f64 values rounded once, to nearest even, to format t; overflow to infinity. Exact for every f64 input."""
    f = FORMATS[t]
    x = np.asarray(x, np.float64)
    if t == "f64":
        return x
    with np.errstate(all="ignore"):
        e = np.maximum(np.frexp(x)[1] - 1, f.emin)
        q = np.ldexp(np.rint(np.ldexp(x, -(e - f.p + 1))), e - f.p + 1)
        q = np.where(np.abs(q) >= 2.0 ** (f.emax + 1), np.copysign(np.inf, x), q)
    return np.where(np.isfinite(x), q, x)


def f8_values(t):
    """What the 256 bytes of an f8 type mean."""
    e, m = (np.arange(128) >> 3, np.arange(128) & 7) if "e4m3" in t else (np.arange(128) >> 2, np.arange(128) & 3)
    f = FORMATS[t]
    v = np.where(e == 0, np.ldexp(1.0 * m, f.emin - f.p + 1), np.ldexp(2.0 ** (f.p - 1) + m, e - 1 + f.emin - f.p + 1))
    if t == "f8e4m3":
        v[127] = np.nan
    elif t == "f8e5m2":
        v[124:] = np.inf, np.nan, np.nan, np.nan
    v = np.concatenate([v, -v]).astype(np.float32)
    if "fnuz" in t:
        v[128] = np.nan
    return v


F8 = {t: f8_values(t) for t in ("f8e4m3", "f8e5m2", "f8e4m3fnuz", "f8e5m2fnuz")}
NAN8 = {t: 128 if "fnuz" in t else 127 for t in F8}  # a code of NaN
# By hand, from the formats' definitions: AMD's Instinct MI300 ISA, section 7.2.
assert F8["f8e4m3fnuz"][[0, 1, 7, 8, 0x40, 0x7F, 0xFF,
                         0x81]].tolist() == [0, 2**-10, 7 * 2**-10, 2**-7, 1, 240, -240, -(2**-10)]
assert F8["f8e5m2fnuz"][[0, 1, 3, 4, 0x40, 0x7F, 0xFF,
                         0x81]].tolist() == [0, 2**-17, 3 * 2**-17, 2**-15, 1, 57344, -57344, -(2**-17)]
# What each pattern of bits stands for.
DECODE = {
    **F8,
    "u4": np.arange(16, dtype=np.int32),
    "i4": np.array([*range(8), *range(-8, 0)], np.int32),
    "f4e2m1": np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32),
}


def store(values, t):
    """Values (numbers that t can hold, or floats that are rounded once) as memory holds them; f8 saturates."""
    if not is_float(t):
        return np.asarray(values).astype(STORE[t])
    if t in F8:
        table = F8[t][:128]
        code = np.searchsorted(table[np.isfinite(table)],
                               np.minimum(np.abs(quantize(values, t)), np.nanmax(table[np.isfinite(table)])))
        sign = np.signbit(values) & ((code > 0) if "fnuz" in t else True)
        return np.where(np.isnan(values), NAN8[t], code + 128 * sign).astype(np.uint8)
    with np.errstate(all="ignore"):
        q = quantize(values, t)
        if t == "bf16":
            b = q.astype(np.float32).view(np.uint32)
            return np.where(np.isnan(q), np.uint16(0x7FC0), (b >> 16).astype(np.uint16)).astype(np.uint16)
        return q.astype(STORE[t])


def wide(a):
    if a.type == "bf16":
        return (a.store.astype(np.uint32) << 16).view(np.float32)
    if a.type in F8:
        return F8[a.type][a.store]
    if a.type in PACKED:
        halves = np.stack((a.store & 15, a.store >> 4), -1)
        return DECODE[a.type][halves.reshape(*a.store.shape[:-1], -1)]
    return a.store.astype(np.float32) if a.type == "f16" else a.store


def round_exact(value, t):
    """A Python int or Fraction rounded once to float format t, as a float (exact: any format fits f64)."""
    f, v = FORMATS[t], Fraction(value)
    if v == 0:
        return 0.0
    e = max(_exponent(abs(v)), f.emin)
    unit = Fraction(2) ** (e - f.p + 1)
    n = round(v / unit)  # Python rounds halves to even
    q = n * unit
    if abs(q) >= Fraction(2) ** (f.emax + 1):
        return float("inf") if v > 0 else float("-inf")
    return math.copysign(float(q), v)


def _exponent(v):
    e = v.numerator.bit_length() - v.denominator.bit_length()
    return e if Fraction(2) ** e <= v else e - 1


# ---- generators: all take a seed and a shape, all are the same on every machine -------------------------------------
def rng(seed):
    return np.random.Generator(np.random.PCG64(seed))


def normal(t, seed, *shape):
    return Arr(t, store(rng(seed).standard_normal(shape), t))


def small(t, seed, *shape, lo=-4, hi=5):
    """Small integers: sums and products are exact in every type, so results are compared bit for bit."""
    lo = 0 if t[0] == "u" else lo
    x = rng(seed).integers(lo, hi, shape)
    return Arr(t, (x & 1).astype(np.bool_) if t == "bool" else store(x, t))


def random_bits(t, seed, *shape):
    """Any value of an integer type or bool."""
    n = STORE[t]().itemsize
    raw = rng(seed).integers(0, 256, (*shape, n), dtype=np.uint8)
    return Arr(t, (raw[..., 0] & 1).astype(np.bool_) if t == "bool" else raw.view(STORE[t]).reshape(shape))


def ints(t, seed, lo, hi, *shape):
    return Arr(t, rng(seed).integers(lo, hi, shape).astype(STORE[t]))


def exactly(t, values):
    if is_float(t) or t == "bool":
        return Arr(t, store(np.array(values), t))
    return Arr(t, np.array(values, dtype=object).astype(STORE[t]))  # u64 beside i64 would become f64


def edges(t):
    """The values where an implementation goes wrong."""
    if t == "bool":
        return [False, True]
    if not is_float(t):
        lo, hi = int_range(t)
        near = [
            0, 1, 2, 3, 7, 8, 100, 127, 128, 255, 256, 2047, 2049, 4095, 32767, 32768, 65504, 65519, 65520, 65535,
            65536, 2**24 - 1, 2**24 + 1, 2**24 + 3, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53 + 1, 2**53 + 3, 2**63 - 1,
            2**63 - 513, 2**63, 2**64 - 1, 2**64 - 1025
        ]
        return sorted({v for n in near for v in (n, -n, -n - 1) if lo <= v <= hi} | {lo, hi, lo + 1, hi - 1})
    f = FORMATS[t]
    tiny, least = 2.0 ** (f.emin - f.p + 1), 2.0**f.emin
    most = (2.0 - 2.0 ** (1 - f.p)) * 2.0**f.emax
    eps = 2.0 ** (1 - f.p)
    mags = [
        0.0, tiny, 3 * tiny, least - tiny, least, 0.25, 0.5, 0.5 + eps / 4, 0.75, 1 - eps / 2, 1.0, 1 + eps, 1.5, 2.5,
        3.5, 126.5, 127.5, 128.0, 255.0, 255.5, 256.0, 32767.5, 65504.0, 65519.0, 65520.0, 65535.5, 65536.0, 1e9,
        2147483583.0, 2147483648.0, 4294967040.0, 4294967296.0, 9.2233720368547e18, 2.0**63, 1.8446744073709e19,
        2.0**64, 3.4e38, 2.0**-24, 2.0**-25, 1.5 * 2.0**-25, 2.0**-133, 2.0**-134, 1.5 * 2.0**-134, 2.0**-149,
        2.0**-150, 1.5 * 2.0**-150, 2049.0, 2051.0, 257.0, 259.0, 16777217.0, 3.3961e38, 1e300, most,
        float("inf")
    ]
    vals = quantize(np.array(mags), t)
    vals = vals[np.isfinite(vals) | np.isinf(np.array(mags))]
    return sorted(set(vals.tolist())) + sorted(set((-vals).tolist())) + [-0.0, float("nan")]


def poison(t, *shape):
    """Outputs start as this, so an element that a kernel leaves unwritten is seen."""
    if t == "bf16":
        return Arr(t, np.full(shape, 0x7FC1, np.uint16))
    if t in F8:
        return Arr(t, np.full(shape, NAN8[t] if "fnuz" in t else 0x7F, np.uint8))
    if t == "bool":
        return Arr(t, np.zeros(shape, np.bool_))
    return Arr(t, np.full(shape, np.nan, STORE[t]) if is_float(t) else np.full(shape, 0xAB, np.uint8).astype(STORE[t]))


def zeros(t, *shape):
    return Arr(t, np.zeros(shape, STORE[t]))


def iota(t, *shape):
    return Arr(t, store(np.arange(int(np.prod(shape))).reshape(shape), t))


# ---- what is allowed ------------------------------------------------------------------------------------------------
def spacing(value, t):
    """One unit in the last place of format t at `value`."""
    f = FORMATS[t]
    v = np.abs(np.asarray(value, np.float64))
    with np.errstate(all="ignore"):
        e = np.where(v > 0, np.frexp(np.where(np.isfinite(v), v, 1))[1] - 1, f.emin)
    return np.ldexp(1.0, np.clip(e, f.emin, f.emax) - f.p + 1)


def eps(t):
    return 2.0 ** -FORMATS[t].p  # half a unit of 1: the bound of one rounding, relative


def exact(value):
    return Want(value, 0)


def rounded(value, t):
    """An exact (f64) value that the kernel must give rounded once."""
    return Want(quantize(value, t), 0)


def ulps(value, t, n):
    """Within n units in the last place of format t of the true value."""
    return Want(value, n * spacing(value, t))


def either_zero(value, *operands):
    """Exact, but +0 and -0 are one where all operands are zero (min and max may give either)."""
    zero = np.logical_and.reduce([np.asarray(o) == 0 for o in operands])
    return Want(value, np.where(zero, 1e-320, 0))


def within(value, bound):
    return Want(value, bound)


def sum_bound(terms_abs, n, t_acc, t_out, value):
    """Any order of n-term summation in t_acc, products rounded too, then one rounding to t_out."""
    slack = np.asarray(terms_abs, np.float64) * (n + 2) * eps(t_acc)
    return slack + (spacing(np.abs(value) + slack, t_out) / 2 if t_out != t_acc else 0)


def compare(got, want):
    """None, or what is wrong. got: Arr."""
    g, w = wide(got), np.asarray(want.value)
    if g.shape != w.shape:
        return f"shape {g.shape}, wanted {w.shape}"
    if g.size == 0:
        return None
    if not is_float(got.type):
        bad = g != w.astype(g.dtype)
    else:
        g, w = g.astype(np.float64), w.astype(np.float64)
        bad = _float_differs(g, w, np.broadcast_to(np.asarray(want.bound, np.float64), w.shape), got.type)
    if not np.any(bad):
        return None
    at = tuple(int(i) for i in np.argwhere(bad)[0])
    return f"{np.count_nonzero(bad)} of {bad.size} elements wrong, first at {list(at)}: got {g[at]!r}, wanted {w[at]!r}"


def _float_differs(g, w, bound, t):
    with np.errstate(all="ignore"):
        differ = np.abs(g - w) > bound
        special = ~np.isfinite(g) | ~np.isfinite(w)
        same = (g == w) | (np.isnan(g) & np.isnan(w))
        zero_sign = (bound == 0) & (g == 0) & (w == 0) & (np.signbit(g) != np.signbit(w))
        differs = np.where(special, ~same & ~_crosses(g, w, bound, t), differ) | zero_sign
    return differs


def _crosses(g, w, bound, t):
    """Where one is finite, the other beyond the greatest finite number, and less than the bound between them. A
    bound that grew infinite with what is wanted says nothing: then only that infinity will do."""
    no_infinity = {"f8e4m3": 448, "f8e4m3fnuz": 240}
    most = no_infinity.get(t) or (2.0 - 2.0 ** (1 - FORMATS[t].p)) * 2.0 ** FORMATS[t].emax
    up = np.isinf(g) & np.isfinite(w) & (most - np.copysign(w, w * g) < bound)
    up |= np.isnan(g) & np.isfinite(w) & (np.abs(w) + bound > most) & (t in no_infinity)
    down = np.isinf(w) & np.isfinite(g) & np.isfinite(bound) & (most - np.copysign(g, w * g) < bound)
    return (bound > 0) & (up | down)


# ---- random numbers ----

def philox(seed, i):
    """The four words of Philox-4x32-10, as std.random and stochastic casts have them."""
    c = [i & 0xFFFFFFFF, i >> 32 & 0xFFFFFFFF, 0, 0]
    k = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [k[0] + 0x9E3779B9 & 0xFFFFFFFF, k[1] + 0xBB67AE85 & 0xFFFFFFFF]
    return c


assert philox(0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]  # the published answer
