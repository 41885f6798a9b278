"""Types, values and helpers of random programs of the language (language.py)."""
import numpy as np

np.seterr(all="ignore")

INTS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
FLOATS = ["f16", "bf16", "f32", "f64"]
# How far values of a float type go: products of two and sums of some are still exact.
MOST = {"f16": 16, "bf16": 8, "f32": 1000, "f64": 1000}
STORE = {"bool": np.bool_, **{t: np.dtype(t.replace("i", "int").replace("u", "uint")).type if t[0] == "i" else np.dtype("uint" + t[1:]).type for t in INTS},
         "f16": np.float16, "bf16": np.float32, "f32": np.float32, "f64": np.float64}
F8 = ["f8e4m3", "f8e5m2", "f8e4m3fnuz", "f8e5m2fnuz"]
PACKED = ["i4", "u4", "f4e2m1"]
STORE.update({t: np.uint8 for t in F8 + PACKED})
SUM = {"i8": "i32", "i16": "i32", "u8": "u32", "u16": "u32", "bool": "i32"}
SHAPES = [(), (1,), (3,), (5,), (8,), (13,), (32,), (50,), (64,), (100,), (3, 5), (1, 7), (9, 1), (4, 8), (16, 16), (12, 20), (2, 3, 4), (5, 1, 6), (4, 4, 8), (2, 3, 2, 5), (1, 2, 3, 1, 2)]


def bf16(x):
    """The f32 values x rounded to bf16."""
    b = np.ascontiguousarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return (((b + 0x7FFF + ((b >> 16) & 1)) >> 16) << 16).astype(np.uint32).view(np.float32).reshape(np.shape(x))


def is_int(t):
    return t in INTS


def bits(t):
    return 8 if t == "bool" else int(t.lstrip("biuf"))


def f8_values(t):
    """What the bytes mean."""
    b, m = np.arange(256), 3 if "e4m3" in t else 2
    e, f, bias = (b & 127) >> m, b & (2**m - 1), (7 if m == 3 else 15) + ("fnuz" in t)
    v = np.where(e > 0, np.ldexp(1 + f / 2**m, e - bias), np.ldexp(f / 2**m, 1 - bias))
    if t == "f8e4m3":
        v[(b & 127) == 127] = np.nan
    elif t == "f8e5m2":
        v[(b & 127) > 124] = np.nan
        v[(b & 127) == 124] = np.inf
    else:
        v[128] = np.nan
    return np.where(b > 127, -v, v).astype(np.float32)


TABLE = {**{t: f8_values(t) for t in F8}, "u4": np.arange(16), "i4": np.array([*range(8), *range(-8, 0)]),
         "f4e2m1": np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])}
NUMBERS = INTS + FLOATS
WILD = [np.nan, np.inf, -np.inf, -0.0]


def to(x, t):
    """x, exact values, as type t: integers wrap, floats saturate to integers."""
    x = np.asarray(x)
    if is_int(t) and x.dtype.kind == "f":
        x = np.where(np.isnan(x), 0, x.astype(np.float64))
        lo, hi = np.iinfo(STORE[t]).min, np.iinfo(STORE[t]).max
        big = np.trunc(x) >= float(hi)
        return np.where(big, np.array(hi).astype(STORE[t]), np.where(big, 0, np.maximum(np.trunc(x), float(lo))).astype(STORE[t]))
    return bf16(x.astype(np.float32)) if t == "bf16" else x.astype(STORE[t])


class Value:
    """text: an expression; type, shape: its type; run: function(environment) -> array."""
    def __init__(self, text, type_, shape, run):
        self.text, self.type, self.shape, self.run = text, type_, tuple(shape), run


def tile_of(t, shape):
    return f"tile<{t}, {', '.join(map(str, shape))}>" if shape else t


def slices(shape):
    return ", ".join(f"0 +: {n}" for n in shape)


def clamped(x, most):
    return np.fmin(np.fmax(x, -most), most)


def ordered(x, k, down):
    """Sorted along axis k, NaN last either way; the order too."""
    key = x.astype(object) if x.dtype.kind in "iu" else x.astype(np.float64)
    key = -key if down else key
    if x.dtype.kind == "f":
        return np.argsort(key, k, kind="stable")  # NumPy's NaN comes last
    return np.argsort(key, k, kind="stable")


def mirrored(i, n, p, last):
    """Positions i in periods of p, the second half of each backwards."""
    i = i % max(p, 1)
    return np.minimum(i, last - i)


# Where positions i are read along an extent of n.
BORDER = {"edge": lambda i, n: np.clip(i, 0, n - 1), "wrap": lambda i, n: i % max(n, 1),
          "reflect": lambda i, n: mirrored(i, n, 2 * (n - 1), max(2 * (n - 1), 1)),
          "symmetric": lambda i, n: mirrored(i, n, 2 * n, 2 * n - 1)}


def window(x, starts, widths, steps, pad=0):
    index = [s + np.arange(w) * k for s, w, k in zip(starts, widths, steps)]
    ok = np.ones(widths, bool)
    for axis, i in enumerate(index):
        shape = [1] * len(widths)
        shape[axis] = -1
        ok &= ((i >= 0) & (i < x.shape[axis])).reshape(shape)
    if 0 in x.shape:
        return np.full(widths, pad, x.dtype), ok
    got = x[np.ix_(*[np.clip(i, 0, n - 1) for i, n in zip(index, x.shape)])]
    return np.where(ok, got, np.array(pad).astype(x.dtype)), ok
